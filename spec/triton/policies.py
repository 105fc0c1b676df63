"""Checks of the remaining policies: versions, optimization, response cache, metrics.

Sources: Triton model configuration, sections Version Policy, Optimization Policy and Response Cache; Triton
response cache, section Known Limitations; the comments in Triton's proto file; the validation of Triton core
(model_config_utils).
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import fits, only_for, wrong_dims

# The proto file calls these "currently only recognized by TensorRT backend".
_TENSORRT_ONLY: Final = ("gather_kernel_buffer_threshold", "eager_batching")
_CUDA_FLAGS: Final = ("graphs", "busy_wait_events", "output_copy_stream")


def check_versions(config: ModelConfig) -> Iterator[Problem]:
    """The version policy chooses versions that can exist."""
    if not config.HasField("version_policy"):
        return
    policy = config.version_policy
    choice = policy.WhichOneof("policy_choice")
    if choice is None:
        fix = "write all: {} for every version, or take version_policy out for the latest"
        message = "an empty policy loads every version"
        yield Problem("version_policy", message, {}, "latest, all, specific", fix)
    elif choice == "latest" and policy.latest.num_versions == 0:
        message = "the latest 0 versions are none, nothing would load"
        fix = "write num_versions: 1"
        yield Problem("version_policy.latest.num_versions", message, 0, "1 or more", fix)
    elif choice == "specific":
        versions = list(policy.specific.versions)
        path = "version_policy.specific.versions"
        if not versions:
            message = "no version is listed, nothing would load"
            yield Problem(path, message, versions, "one version or more", "list the versions")
        for index, version in enumerate(versions):
            if version < 1 or version in versions[:index]:
                message = "a version is a number from 1 and listed once"
                fix = "correct the number, or remove it"
                yield Problem(f"{path}[{index}]", message, version, "1 or more, each once", fix)


def check_response_cache(config: ModelConfig) -> Iterator[Problem]:
    """Section Known Limitations: no cache for sequences, none for decoupled models."""
    if not config.response_cache.enable:
        return
    reasons = {
        "a model with sequence batching": config.HasField("sequence_batching"),
        "a decoupled model": config.model_transaction_policy.decoupled,
    }
    for reason, applies in reasons.items():
        if applies:
            message = f"{reason} cannot have its responses cached"
            fix = "take response_cache out"
            yield Problem("response_cache.enable", message, value=True, allowed="false", fix=fix)


def check_metrics(config: ModelConfig) -> Iterator[Problem]:
    """Histogram buckets rise. Triton metrics, section Custom Metrics."""
    for index, control in enumerate(config.model_metrics.metric_control):
        path = f"model_metrics.metric_control[{index}]"
        if not control.metric_identifier.family:
            at = f"{path}.metric_identifier.family"
            allowed = "the name of a histogram, e.g. nv_inference_first_response_histogram_ms"
            yield Problem(at, "the metric is not named", ABSENT, allowed, "add the name")
        buckets = list(control.histogram_options.buckets)
        if not buckets or any(low >= high for low, high in pairwise(buckets)):
            message = "the buckets do not rise" if buckets else "no buckets are given"
            at = f"{path}.histogram_options.buckets"
            yield Problem(at, message, buckets, "rising numbers", "write e.g. [10, 50, 100]")


def check_optimization(config: ModelConfig, *, gpu: bool) -> Iterator[Problem]:
    """Settings that only one backend knows, and those that need a GPU."""
    policy = config.optimization
    path = "optimization"
    for name in _TENSORRT_ONLY:
        if getattr(policy, name):
            yield from only_for(config, "tensorrt", f"{path}.{name}", getattr(policy, name))
    priority = enum_name(policy, "priority")
    if priority != "PRIORITY_DEFAULT":
        yield from only_for(config, "tensorrt", f"{path}.priority", priority)
    yield from _cuda(config, gpu=gpu)
    accelerators = policy.execution_accelerators
    for name in ("gpu_execution_accelerator", "cpu_execution_accelerator"):
        at = f"{path}.execution_accelerators.{name}"
        items = getattr(accelerators, name)
        if items and name.startswith("gpu") and not gpu:
            message = "the accelerator works on a GPU, and the service asks for none"
            fix = "take it out, or ask for a GPU in resources"
            yield Problem(at, message, [item.name for item in items], "absent", fix)
        for index, item in enumerate(items):
            if not item.name:
                allowed = "e.g. tensorrt (GPU), openvino (CPU)"
                yield Problem(f"{at}[{index}].name", "name is missing", ABSENT, allowed, "add name")


def _cuda(config: ModelConfig, *, gpu: bool) -> Iterator[Problem]:
    cuda = config.optimization.cuda
    path = "optimization.cuda"
    used = [name for name in _CUDA_FLAGS if getattr(cuda, name)] + ["graph_spec"] * bool(cuda.graph_spec)
    for name in used:
        if gpu:
            yield from only_for(config, "tensorrt", f"{path}.{name}", "set")
        else:
            message = "a CUDA setting needs a GPU, and the service asks for none"
            fix = "take it out, or ask for a GPU in resources"
            yield Problem(f"{path}.{name}", message, "set", "absent", fix)
    inputs = {tensor.name: list(tensor.dims) for tensor in config.input}
    for index, spec in enumerate(cuda.graph_spec):
        at = f"{path}.graph_spec[{index}]"
        yield from _graph(spec, at, inputs, config.max_batch_size)
        if spec.HasField("graph_lower_bound"):
            bound = f"{at}.graph_lower_bound"
            yield from _graph(spec.graph_lower_bound, bound, inputs, config.max_batch_size)


def _graph(spec: Node, path: str, inputs: Mapping[str, list[int]], most: int) -> Iterator[Problem]:
    least = 1 if most > 0 else 0
    if not least <= spec.batch_size <= max(most, 0):
        allowed = f"1 to {most}" if most > 0 else "0"
        message = f"max_batch_size is {most}, a graph cannot be of batch {spec.batch_size}"
        yield Problem(f"{path}.batch_size", message, spec.batch_size, allowed, f"write {allowed}")
    for name in sorted(spec.input):
        at = f"{path}.input.{name}"
        dims = list(spec.input[name].dim)
        yield from wrong_dims(f"{at}.dim", dims, concrete=True)
        if inputs and name not in inputs:
            message = f"the model has no input {name!r}"
            yield Problem(at, message, name, ", ".join(inputs), "name one of the model's inputs")
        elif inputs and not fits(dims, inputs[name]):
            message = f"the shape {dims} does not fit the input {inputs[name]}"
            fix = "write the input's dims with every -1 replaced by a size"
            yield Problem(f"{at}.dim", message, dims, str(inputs[name]), fix)
