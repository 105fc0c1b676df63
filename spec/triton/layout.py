"""A model repository on disk, checked before it is uploaded: Triton skips what it does not understand.

Sources: Triton model repository, sections Repository Layout and Model Files; Triton model configuration, warm-up.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from spec.problems import Problem
from spec.triton.proto import ModelConfig
from spec.triton.revisions import check_version_directories
from spec.triton.text import parse_text
from spec.triton.values import backend_of, is_ensemble

# What a backend loads from a version folder unless default_model_filename says otherwise.
_MODEL_FILES: Final = {
    "onnxruntime": "model.onnx",
    "tensorrt": "model.plan",
    "pytorch": "model.pt",
    "python": "model.py",
    "openvino": "model.xml",
}
_CONFIG: Final = "config.pbtxt"


def check_layout(folder: Path, name: str, config: ModelConfig | None) -> list[Problem]:
    """What Triton would not find, or would skip, of one model.

    Args:
        folder: the repository.
        name: the model inside Triton, which is its folder.
        config: its configuration in the model file; None where the repository's own counts.

    Returns:
        The problems; ``file`` is the path inside the repository.
    """
    model = folder / name
    if not model.is_dir():
        others = ", ".join(sorted(path.name for path in folder.iterdir() if path.is_dir())) or "no folder"
        return [Problem("", "the repository has no folder of this name", name, others, f"create {name}/1/", file=name)]
    problems: list[Problem] = []
    if config is None and (model / _CONFIG).is_file():
        config, wrong = parse_text((model / _CONFIG).read_text(encoding="utf-8", errors="replace"))
        if wrong:
            return [replace(problem, file=f"{name}/{_CONFIG}") for problem in wrong]
        if config.name not in {"", name}:
            fix = f"write {name}, or leave name out"
            problems.append(
                Problem("name", "is not the name of the folder", config.name, name, fix, file=f"{name}/{_CONFIG}")
            )
    folders = sorted(path.name for path in model.iterdir() if path.is_dir())
    problems += [replace(problem, file=f"{name}/") for problem in check_version_directories(folders)]
    if config is not None:
        problems += _files(model, config, [folder for folder in folders if folder.isdecimal()])
    return problems


def _files(model: Path, config: ModelConfig, versions: list[str]) -> Iterator[Problem]:
    wanted = {str(version) for version in config.version_policy.specific.versions}
    for version in sorted(wanted - set(versions)):
        fix = f"create {model.name}/{version}/, or take it out of version_policy"
        yield Problem("", "version_policy asks for a version that is not there", version, ", ".join(versions), fix,
                      file=f"{model.name}/")  # fmt: skip
    for output in config.output:
        if output.label_filename:
            yield from _absent(model, output.label_filename, f"output {output.name} takes its labels from it")
    for warmup in config.model_warmup:
        for name, data in sorted(warmup.inputs.items()):
            if data.input_data_file:
                yield from _absent(
                    model, f"warmup/{data.input_data_file}", f"warm-up {warmup.name} reads {name} from it"
                )
    file = config.default_model_filename or _MODEL_FILES.get(backend_of(config), "")
    if file and not is_ensemble(config):
        for version in versions:
            if not config.cc_model_filenames:
                yield from _absent(model, f"{version}/{file}", "it is what the backend loads")


def _absent(model: Path, file: str, why: str) -> Iterator[Problem]:
    if not (model / file).exists():
        yield Problem("", f"the file is missing: {why}", fix="put it there, or name another in config",
                      file=f"{model.name}/{file}")  # fmt: skip
