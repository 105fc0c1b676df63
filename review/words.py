"""Values of resources in words: what is unknown or secret is named, and never taken for something else."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from policies.judging.unknown import SEALED, UNKNOWN, plain
from policies.judging.view import Resource
from policies.reading.pods import Pods

# How the JSON of a preview shows a secret; a text that really says this is taken for one, too.
BLINDED: Final = "[secret]"
NOT_YET: Final = "(known after the update)"
SECRET: Final = "(secret)"  # noqa: S105  # a word
# Annotations that follow from other fields, which are told instead.
_HASH: Final = "-sha256"


def read(value: Any) -> Any:  # noqa: ANN401  # JSON
    """Data of a preview or of a recorded program with the marks of :mod:`policies.judging.unknown`."""
    return _marked(plain(value))


def _marked(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, dict):
        return {key: _marked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_marked(item) for item in value]
    return SEALED if isinstance(value, str) and value == BLINDED else value


def worded(value: Any) -> Any:  # noqa: ANN401
    """The same data with words in place of the marks, so that it can be compared and shown."""
    if isinstance(value, Mapping):
        return {key: worded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [worded(item) for item in value]
    return NOT_YET if value is UNKNOWN else SECRET if value is SEALED else value


def in_words(resource: Resource) -> Resource:
    """A resource with words in place of the marks."""
    return replace(resource, inputs=worded(resource.inputs))


def mapping(value: Any) -> Mapping[str, Any]:  # noqa: ANN401
    """A mapping, or an empty one in place of anything else."""
    return value if isinstance(value, Mapping) else {}


def items(value: Any) -> Sequence[Any]:  # noqa: ANN401
    """A list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:  # noqa: ANN401
    """A single value as people write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def labels(resource: Resource) -> Mapping[str, Any]:
    """Labels of a resource in words."""
    return mapping(resource.at("metadata", "labels"))


def containers(pods: Pods | None) -> list[Mapping[str, Any]]:
    """Containers of pods in words, those that start before the others last."""
    found = [*items(pods.field("containers")), *items(pods.field("initContainers"))] if pods else []
    return [one for one in found if isinstance(one, Mapping)]


def title(resource: Resource) -> str:
    """A resource in words, as policies and waivers name it."""
    return text(resource.key)


def differences(old: Any, new: Any, path: str = "") -> Iterator[str]:  # noqa: ANN401
    """Paths of the fields that differ, e.g. ``spec.template.spec.containers[0].image``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys((*old, *new)):
            if not str(key).endswith(_HASH):
                yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, after, f"{path}[{index}]")
    elif old != new:
        yield path
