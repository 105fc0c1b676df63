"""Checks of what runs a model: platform, backend and the files that belong to it.

Sources: Triton model configuration, sections Minimal Model Configuration and CUDA Compute Capability; Triton
backend, section "Where can I find all the backends"; the validation of Triton core (model_config_utils).
"""

import re
from collections.abc import Iterator
from typing import Final

from spec.images import parse_image
from spec.problems import ABSENT, Problem
from spec.triton.parse import closest
from spec.triton.proto import ModelConfig
from spec.triton.values import ENSEMBLE, PLATFORMS, backend_of, is_ensemble, only_for, wrong_file_name

_KNOWN_BACKENDS: Final = frozenset(PLATFORMS.values())
_CAPABILITY: Final = re.compile(r"[1-9]\d*\.\d+")
_STOCK_IMAGE: Final = "nvcr.io/nvidia/tritonserver"
_STOCK_TAG: Final = re.compile(r"(\d\d)\.(\d\d)-.+")
_TENSORFLOW: Final = "tensorflow"
# Release notes of Triton 25.03: the TensorFlow backend is deprecated and no longer in the image.
_LAST_WITH_TENSORFLOW: Final = (25, 2)
_NOT_COMPLETED: Final = "tensorflow_graphdef"


def check_platform(config: ModelConfig) -> Iterator[Problem]:
    """Platform and backend fit together, and what Triton cannot complete is there."""
    if is_ensemble(config):
        return
    yield from _backend(config)
    yield from _platform(config)
    if config.platform == _NOT_COMPLETED:
        for side in ("input", "output"):
            if not getattr(config, side):
                message = f"Triton cannot complete the {side}s of a {_NOT_COMPLETED} model"
                fix = f"add {side}: [{{name: …, data_type: …, dims: […]}}]"
                yield Problem(side, message, ABSENT, f"one {side} or more", fix)


def check_image(config: ModelConfig, image: str) -> list[Problem]:
    """The image has the backend, as far as its name says: NVIDIA's own images dropped TensorFlow."""
    backend = backend_of(config)
    found = parse_image(image)
    stock = _STOCK_TAG.fullmatch(found.tag or "") if found.name == _STOCK_IMAGE else None
    if backend != _TENSORFLOW or not stock or (int(stock[1]), int(stock[2])) <= _LAST_WITH_TENSORFLOW:
        return []
    last = "nvcr.io/nvidia/tritonserver:25.02-py3"
    message = f"{image} has no TensorFlow backend, the last image that has it is 25.02"
    fix = f"write image: {last}, name an image of your own that has it, or export the model to ONNX"
    field, value = ("backend", config.backend) if config.backend else ("platform", config.platform)
    return [Problem(field, message, value, f"{last} or older, or an image of your own", fix)]


def check_files(config: ModelConfig) -> Iterator[Problem]:
    """File names of models and libraries."""
    if config.default_model_filename:
        folder = "the version folder"
        yield from wrong_file_name("default_model_filename", config.default_model_filename, folder)
    for key in sorted(config.cc_model_filenames):
        path = f"cc_model_filenames.{key}"
        if not _CAPABILITY.fullmatch(key):
            message = f"{key!r} is not a CUDA compute capability"
            yield Problem(path, message, key, "major.minor, e.g. 8.0", "write major.minor in quotes")
        yield from wrong_file_name(path, config.cc_model_filenames[key], "the version folder")
    libraries = list(config.model_operations.op_library_filename)
    if libraries:
        path = "model_operations.op_library_filename"
        yield from only_for(config, "onnxruntime", path, libraries)
    for index, agent in enumerate(config.model_repository_agents.agents):
        if not agent.name:
            path = f"model_repository_agents.agents[{index}].name"
            yield Problem(path, "an agent needs a name", ABSENT, "e.g. checksum", "add name")


def _backend(config: ModelConfig) -> Iterator[Problem]:
    """Backends are an open set: only a platform's name in the place of a backend's is refused."""
    backend = config.backend
    if backend == ENSEMBLE:
        fix = "write platform: ensemble and leave backend out"
        yield Problem("backend", "ensemble is a platform, not a backend", backend, "absent", fix)
    elif backend in PLATFORMS:
        actual = PLATFORMS[backend]
        fix = f"write backend: {actual}"
        yield Problem("backend", f"{backend!r} is a platform, not a backend", backend, actual, fix)


def _platform(config: ModelConfig) -> Iterator[Problem]:
    platform, backend = config.platform, config.backend
    if not platform:
        return
    needed = PLATFORMS.get(platform)
    if not backend and needed is None:
        known = [*PLATFORMS, ENSEMBLE]
        meant = closest(platform, known)
        fix = f"write platform: {meant}" if meant else "name the backend instead, e.g. backend: python"
        message = f"Triton knows no platform {platform!r}"
        yield Problem("platform", message, platform, ", ".join(known), fix)
    elif backend in _KNOWN_BACKENDS and needed != backend:
        own = [name for name, runner in PLATFORMS.items() if runner == backend]
        fix = f"write backend: {needed}, or leave platform out" if needed else "leave platform out"
        message = f"platform {platform} does not run on backend {backend}"
        yield Problem("platform", message, platform, f"absent, {', '.join(own)}", fix)
