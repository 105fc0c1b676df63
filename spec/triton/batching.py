"""Checks of the dynamic batcher and of max_batch_size.

Sources: Triton batchers, sections Dynamic Batcher, Priority Levels and Queue Policy; the validation of Triton
core (model_config_utils).
"""

from collections.abc import Iterable, Iterator

from spec.problems import Problem
from spec.triton.proto import ModelConfig, Node, enum_name


def check_batching(config: ModelConfig) -> Iterator[Problem]:
    """max_batch_size and the dynamic batcher."""
    most = config.max_batch_size
    if most < 0:
        fix = "write the largest batch, or 0 for a model without a batch dimension"
        yield Problem("max_batch_size", "a batch cannot be negative", most, "0 or more", fix)
    if not config.HasField("dynamic_batching"):
        return
    batching = config.dynamic_batching
    if most <= 0:
        message = "dynamic batching needs batches, and max_batch_size is 0 or absent"
        fix = "set max_batch_size to 1 or more, or take dynamic_batching out"
        yield Problem("dynamic_batching", message, most, "max_batch_size of 1 or more", fix)
    path = "dynamic_batching.preferred_batch_size"
    yield from preferred_sizes(path, batching.preferred_batch_size, most)
    yield from _priorities(batching)
    yield from _ordering(batching)


def preferred_sizes(path: str, sizes: Iterable[int], most: int) -> Iterator[Problem]:
    """Preferred batch sizes lie between 1 and max_batch_size."""
    for index, size in enumerate(sizes):
        if 0 < size <= most:
            continue
        message = f"a batch of {size} cannot be formed, max_batch_size is {most}"
        allowed = f"1 to {most}" if most > 0 else "absent"
        fix = f"write a size from 1 to {most}" if most > 0 else "set max_batch_size first, or take it out"
        yield Problem(f"{path}[{index}]", message, size, allowed, fix)


def _priorities(batching: Node) -> Iterator[Problem]:
    levels, default = batching.priority_levels, batching.default_priority_level
    path = "dynamic_batching"
    if levels == 0:
        for name in ("default_priority_level", "priority_queue_policy"):
            if getattr(batching, name):
                message = f"{name} has no effect without priority_levels"
                fix = "set priority_levels, or take it out"
                yield Problem(f"{path}.{name}", message, "set", "absent, or priority_levels: 1 or more", fix)
        return
    if not 1 <= default <= levels:
        message = f"a request without a priority gets level {default}, the levels are 1 to {levels}"
        fix = f"write default_priority_level: {levels} (the lowest), or another level"
        yield Problem(f"{path}.default_priority_level", message, default, f"1 to {levels}", fix)
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            message = f"there is no level {level}, the levels are 1 to {levels}"
            fix = "correct the level, or raise priority_levels"
            yield Problem(f"{path}.priority_queue_policy.{level}", message, level, f"1 to {levels}", fix)


def _ordering(batching: Node) -> Iterator[Problem]:
    """Responses cannot keep the order of requests that overtake each other by priority or by a delay."""
    if not batching.preserve_ordering:
        return
    path = "dynamic_batching"
    if batching.priority_levels > 1:
        message = "preserve_ordering allows one priority level only"
        fix = "write priority_levels: 1, or take preserve_ordering out"
        yield Problem(f"{path}.priority_levels", message, batching.priority_levels, "0, 1", fix)
    policies = {"default_queue_policy": batching.default_queue_policy}
    for level in sorted(batching.priority_queue_policy):
        policies[f"priority_queue_policy.{level}"] = batching.priority_queue_policy[level]
    for name, policy in policies.items():
        if policy.default_timeout_microseconds and enum_name(policy, "timeout_action") == "DELAY":
            message = "preserve_ordering excludes delaying a timed-out request"
            fix = "write REJECT, or take preserve_ordering out"
            yield Problem(f"{path}.{name}.timeout_action", message, "DELAY", "REJECT", fix)
