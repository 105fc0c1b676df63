"""Files in ConfigMaps."""

from collections.abc import Iterator

from policies.judging.unknown import known
from policies.judging.view import Resource


def files(found: Resource) -> Iterator[tuple[str, str]]:
    """Name and content of each file of a ConfigMap that is known; others may hold anything."""
    data = found.inputs.get("data")
    if known(data) and data is not None:
        yield from ((name, text) for name, text in data.items() if known(text) and isinstance(text, str))


def is_known(found: Resource) -> bool:
    """Whether all files of a ConfigMap are known."""
    data = found.inputs.get("data")
    return known(data) and all(known(text) for text in (data or {}).values())
