"""Lay one mapping over another, and tell afterwards who decided a value."""

from collections.abc import Iterator, Mapping


def lay_over(base: Mapping[str, object], differences: Mapping[str, object]) -> dict[str, object]:
    """A model file with somebody's differences: as :func:`merge`, but a config is either fields or a file."""
    old, new = base.get("config"), differences.get("config")
    if isinstance(old, Mapping) and isinstance(new, Mapping) and ("file" in old) != ("file" in new):
        base = {key: value for key, value in base.items() if key != "config"}
    return merge(base, differences)


def merge(base: Mapping[str, object], patch: Mapping[str, object]) -> dict[str, object]:
    """JSON merge patch (RFC 7396): mappings merge, null removes, everything else replaces."""
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            result[key] = merge(old if isinstance(old, Mapping) else {}, value)
        else:
            result[key] = value
    return result


def removed_in_vain(base: Mapping[str, object], patch: Mapping[str, object], at: str = "") -> Iterator[str]:
    """Path of each null of a patch that removes nothing."""
    for key, value in patch.items():
        old, path = base.get(key), f"{at}.{key}" if at else key
        if value is None and key not in base:
            yield path
        elif isinstance(value, Mapping):
            yield from removed_in_vain(old if isinstance(old, Mapping) else {}, value, path)


def reaches(override: Mapping[str, object], field: str) -> bool:
    """Whether an override decides the value of a field: it holds it, or replaces something around it."""

    def inside(data: Mapping[str, object], at: str) -> bool:
        for key, value in data.items():
            path = f"{at}.{key}" if at else key
            below = field.startswith((f"{path}.", f"{path}["))
            if field == path or (below and (not isinstance(value, Mapping) or inside(value, path))):
                return True
        return False

    return inside(override, "")
