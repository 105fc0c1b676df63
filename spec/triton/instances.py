"""Instance groups: how many instances run where, and what the rate limiter holds for them.

Sources: Triton model configuration, section Instance Groups; Triton rate limiter; the validation of Triton
core (model_config_utils).
"""

from collections.abc import Iterator
from typing import Final

from spec.problems import ABSENT, Problem
from spec.triton.proto import ModelConfig, Node, enum_name
from spec.triton.values import backend_of, is_ensemble, only_for

# Section CPU Model Instance: these start two instances when a KIND_CPU group gives no count.
_TWO_ON_CPU: Final = frozenset({"onnxruntime", "tensorflow"})


def version_count(config: ModelConfig) -> int:
    """The versions that the server loads at once; 1 where only the repository knows (policy ``all``)."""
    policy = config.version_policy
    if policy.HasField("specific"):
        return max(len(set(policy.specific.versions)), 1)
    return max(policy.latest.num_versions, 1)


def served_versions(config: ModelConfig) -> str:
    """Which versions of the repository the server loads, in words: ``all``, ``latest 1`` or ``1, 3``."""
    policy = config.version_policy
    if policy.HasField("all"):
        return "all"
    if policy.HasField("specific"):
        return ", ".join(str(version) for version in sorted(set(policy.specific.versions)))
    return f"latest {version_count(config)}"


def instance_count(config: ModelConfig, *, gpus: int = 1) -> int:
    """The instances that the server starts for the model, e.g. to size shared memory.

    Args:
        config: the model's configuration.
        gpus: how many GPUs the server sees: a group on GPUs that names none has its count on each of them.
    """
    if is_ensemble(config):
        return 0  # an ensemble only passes tensors on
    if not config.instance_group:
        return 1
    return sum(_instances(config, group, max(gpus, 1)) for group in config.instance_group)


def _instances(config: ModelConfig, group: Node, gpus: int) -> int:
    kind = enum_name(group, "kind")
    default = 2 if kind == "KIND_CPU" and backend_of(config) in _TWO_ON_CPU else 1
    count = group.count if group.count > 0 else default
    devices = len(set(group.gpus)) or gpus if kind == "KIND_GPU" else len(set(group.gpus)) or 1
    return count * devices


def check_instances(config: ModelConfig, *, gpu: bool) -> Iterator[Problem]:
    """All instance groups. What an ensemble must not have is checked with the ensemble."""
    if is_ensemble(config):
        return
    for index, group in enumerate(config.instance_group):
        path = f"instance_group[{index}]"
        yield from _kind(group, path, gpu=gpu)
        yield from _profiles(config, group, path)
        if group.count < 0:
            message = "Triton would use its default for a negative count"
            yield Problem(f"{path}.count", message, group.count, "1 or more", "write 1 or more")
    yield from _resources(config)


def _kind(group: Node, path: str, *, gpu: bool) -> Iterator[Problem]:
    kind, gpus = enum_name(group, "kind"), list(group.gpus)
    if kind == "KIND_GPU" and not gpu:
        message = "KIND_GPU needs a GPU, and the service asks for none"
        fix = "write KIND_CPU, or ask for a GPU in resources"
        yield Problem(f"{path}.kind", message, kind, "KIND_CPU, KIND_AUTO, KIND_MODEL", fix)
    if gpus and kind in {"KIND_CPU", "KIND_MODEL"}:
        message = f"a group of {kind} cannot name GPUs"
        fix = "take gpus out, or write KIND_GPU"
        yield Problem(f"{path}.gpus", message, gpus, "absent", fix)
    elif gpus and kind == "KIND_AUTO" and not gpu:
        message = "the group names GPUs, and the service asks for none: it would fall back to the CPU"
        fix = "take gpus out, or ask for a GPU in resources"
        yield Problem(f"{path}.gpus", message, gpus, "absent", fix)
    for at, number in enumerate(gpus):
        if number < 0 or number in gpus[:at]:
            message = "a GPU is named once, by its index in the pod from 0"
            yield Problem(f"{path}.gpus[{at}]", message, number, "0 or more, each once", "correct the index")


def _profiles(config: ModelConfig, group: Node, path: str) -> Iterator[Problem]:
    if group.profile:
        yield from only_for(config, "tensorrt", f"{path}.profile", list(group.profile))
    for at, profile in enumerate(group.profile):
        if not (profile.isascii() and profile.isdigit()):
            message = f"{profile!r} is not the index of an optimization profile"
            fix = 'write the index as text, e.g. "0"'
            yield Problem(f"{path}.profile[{at}]", message, profile, "a whole number from 0", fix)
    if group.secondary_devices:
        count = len(group.secondary_devices)
        yield from only_for(config, "tensorrt", f"{path}.secondary_devices", count)


def _resources(config: ModelConfig) -> Iterator[Problem]:
    """A resource is named, counted, and either global or not in all groups."""
    scope: dict[str, bool] = {}
    for index, group in enumerate(config.instance_group):
        seen: set[str] = set()
        for at, resource in enumerate(group.rate_limiter.resources):
            path = f"instance_group[{index}].rate_limiter.resources[{at}]"
            if not resource.name:
                yield Problem(f"{path}.name", "a resource needs a name", ABSENT, "any text", "add name")
                continue
            if resource.count == 0:
                message = f"the instances would take nothing of {resource.name!r}"
                yield Problem(f"{path}.count", message, 0, "1 or more", "write count: 1 or more")
            if resource.name in seen:
                message = f"{resource.name!r} is listed twice in this group"
                yield Problem(f"{path}.name", message, resource.name, "each resource once", "keep one entry")
            everywhere = getattr(resource, "global")
            if scope.setdefault(resource.name, everywhere) != everywhere:
                message = f"{resource.name!r} is global in one place and per device in another"
                fix = "write the same in all groups, or use two names"
                yield Problem(f"{path}.global", message, everywhere, str(not everywhere).lower(), fix)
            seen.add(resource.name)
