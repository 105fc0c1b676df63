"""Which requests a rule of a VirtualService takes, and whether an earlier rule leaves it any."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from policies.judging.view import Resource, dig
from policies.reading.mesh import rules

# Where a regular expression stops being plain text.
_PLAIN: Final = re.compile(r"(?:[^\\.^$*+?()\[\]{}|]|\\[^a-zA-Z0-9])*")
_MAYBE: Final = ("*", "?", "{")
_CLASS: Final = re.compile(r"\\.|\[[^\]]*\]")
# Of a match, what is no condition or is looked at as the path.
_NO_CONDITION: Final = frozenset({"uri", "name", "statPrefix"})


@dataclass(frozen=True)
class Uri:
    """What a path has to be like.

    Attributes:
        kind: ``prefix``, ``exact`` or ``regex``.
        text: the path, or the expression.
    """

    kind: str
    text: str

    @property
    def beginning(self) -> str:
        """What every path that it takes begins with."""
        if self.kind != "regex":
            return self.text
        if _has_branches(self.text):
            return ""
        plain = _PLAIN.match(self.text)
        end = plain.end() if plain else 0
        if self.text[end : end + 1] in _MAYBE:
            end -= 2 if self.text[end - 2 : end - 1] == "\\" else 1  # the last character may be absent
        return _unescaped(self.text[:end])

    def covers(self, other: "Uri") -> bool:
        """Whether it takes every path that the other one takes; False where nobody can tell."""
        if self.kind == "prefix":
            return other.beginning.startswith(self.text)
        if self == other:
            return True
        return self.kind == "regex" and other.kind == "exact" and _takes(self.text, other.text)


def uri(match: Mapping[str, Any]) -> Uri:
    """The path of a match, in the widest form that says the same."""
    for kind in ("prefix", "exact", "regex"):
        text = dig(match, "uri", kind)
        if text is None:
            continue
        if kind == "regex" and text.endswith(".*") and _PLAIN.fullmatch(text[:-2]):
            return Uri("prefix", _unescaped(text[:-2]))
        return Uri(kind, text)
    return Uri("prefix", "")


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _has_branches(expression: str) -> bool:
    """Whether an expression is a choice as a whole, and not inside brackets."""
    depth = 0
    for character in _CLASS.sub("", expression):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "|" and depth == 0:
            return True
    return False


def _takes(expression: str, path: str) -> bool:
    try:
        return re.fullmatch(expression, path) is not None
    except re.error:
        return False  # RE2 knows forms that Python does not


@dataclass
class Earlier:
    """The matches of earlier rules, found by what could cover a later one."""

    wide: list[tuple[str, Uri, Mapping[str, Any]]] = field(default_factory=list)
    same: dict[Uri, list[tuple[str, Mapping[str, Any]]]] = field(default_factory=dict)

    def add(self, name: str, path: Uri, match: Mapping[str, Any]) -> None:
        """Remember a match of a rule."""
        self.same.setdefault(path, []).append((name, match))
        if path.kind == "prefix":
            self.wide.append((name, path, match))

    def swallowing(self, path: Uri, match: Mapping[str, Any]) -> str | None:
        """Name of the first rule that takes all that a later match would."""
        candidates = self.same.get(path, []) + [(name, other) for name, wide, other in self.wide if wide.covers(path)]
        if path.kind == "exact":
            candidates += [one for other, found in self.same.items() if other.covers(path) for one in found]
        return next((name for name, other in candidates if _holds_wherever(other, match)), None)


def swallowed(routes: Resource) -> Iterator[tuple[str, str, str]]:
    """Rules of which no request is left because of an earlier one.

    Returns:
        The later rule, what it asks for, and the earlier rule.
    """
    earlier = Earlier()
    for name, rule in rules(routes, "http"):
        matches: Sequence[Mapping[str, Any]] = dig(rule, "match", default=[]) or [{}]
        paths = [uri(match) for match in matches]
        for match, path in zip(matches, paths, strict=True):
            if before := earlier.swallowing(path, match):
                yield name, f"{path.kind} {path.text}" if path.text else "everything", before
        for match, path in zip(matches, paths, strict=True):
            earlier.add(name, path, match)


def _holds_wherever(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    """Whether all conditions of one match, except that of the path, hold wherever those of another do."""
    if narrow.get("ignoreUriCase") and not wide.get("ignoreUriCase"):
        return False
    for key, condition in wide.items():
        if key in _NO_CONDITION or not condition:
            continue
        other = narrow.get(key)
        if isinstance(condition, Mapping) and isinstance(other, Mapping):
            if any(other.get(name) != value for name, value in condition.items()):
                return False
        elif isinstance(condition, list) and isinstance(other, list):
            if not set(other) <= set(condition):
                return False
        elif condition != other:
            return False
    return True
