"""Read YAML files so that every later complaint can name its line."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from spec.problems import ABSENT, Problem

Location = tuple[str | int, ...]

# Aliases can write a file of a few lines that unfolds to gigabytes.
_MOST_VALUES: Final = 100_000
_PLAIN_FIX: Final = "write a plain string, number, true or false"


@dataclass(frozen=True)
class Source:
    """One parsed file: plain data, the line of every field, and what was wrong with the YAML itself."""

    file: str
    data: Mapping[str, object]
    lines: Mapping[Location, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def line(self, at: Location | str) -> int | None:
        """Line of the field, or of the closest enclosing one that exists (for a field that is missing)."""
        path = at if isinstance(at, str) else field_path(at)
        lines = {field_path(location): line for location, line in self.lines.items()}
        while path and path not in lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return lines.get(path)


class _CoreLoader(yaml.SafeLoader):
    """YAML 1.2 scalars in their plainest form: ``on``, ``yes`` and ``010`` stay the text that the author sees."""


_SCALARS: Final = {
    "bool": (re.compile(r"^(?:true|false)$"), "tf"),
    "null": (re.compile(r"^(?:~|null|)$"), ["~", "n", ""]),
    "int": (re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$"), "-+0123456789"),
    "float": (
        re.compile(r"^[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*|(?=[eE])))(?:[eE][-+]?[0-9]+)?$"),
        "-+.0123456789",
    ),
}
_CoreLoader.yaml_implicit_resolvers = {}
for _tag, (_pattern, _first) in _SCALARS.items():
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)


def read(path: Path, shown_as: str) -> Source:
    """Parse one YAML file.

    Args:
        path: the file.
        shown_as: its name in messages.

    Returns:
        The source; on a syntax error ``data`` is empty and ``problems`` says where it is.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _refused(shown_as, "the file does not exist", fix=f"create {path}")
    except UnicodeDecodeError as error:
        return _refused(shown_as, f"is not UTF-8 text: {error.reason}", fix="save the file as UTF-8")
    except OSError as error:
        return _refused(shown_as, f"cannot be read: {error.strerror}", fix="make it a file that you may read")
    return parse(text, shown_as)


def parse(text: str, shown_as: str) -> Source:
    """Parse YAML text; see :func:`read`."""
    try:
        root = yaml.compose(text, Loader=_CoreLoader)
        if not isinstance(root, yaml.MappingNode):
            message = "the file is empty" if root is None else "must hold a mapping of fields"
            fix = "write `field: value` lines; the README shows a five-line model file"
            return _refused(shown_as, message, fix=fix)
        builder = _Builder(shown_as)
        data = builder.build(root, ())
    except RecursionError:
        return _refused(shown_as, "is nested too deeply", fix="write fewer levels")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        return _refused(shown_as, f"not valid YAML: {error.problem}", line, fix="correct the text there")
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"not valid YAML: the character U+{ord(text[error.position]):04X} is not allowed"
        return _refused(shown_as, message, line, fix="take the character out")
    return Source(shown_as, data if isinstance(data, dict) else {}, builder.lines, tuple(builder.problems))


def _refused(file: str, message: str, line: int | None = None, *, fix: str) -> Source:
    return Source(file, {}, problems=(Problem("", message, file=file, line=line, fix=fix),))


class _Builder:
    """Plain data out of YAML nodes, and the line of everything in it."""

    def __init__(self, file: str) -> None:
        self.lines: dict[Location, int] = {}
        self.problems: list[Problem] = []
        self._file = file
        self._open: set[yaml.Node] = set()

    def build(self, node: yaml.Node, at: Location) -> object:
        self.lines.setdefault(at, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, at)
        wanted = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != f"tag:yaml.org,2002:{wanted}":
            return self._refuse(node, at, f"the YAML tag {node.tag!r} is not supported", "take the tag out")
        if node in self._open:
            return self._refuse(node, at, "the alias stands for something around itself", "write the value out")
        if len(self.lines) > _MOST_VALUES:
            if not any(problem.field == "" for problem in self.problems):
                self._refuse(node, (), f"holds more than {_MOST_VALUES} values", "use fewer aliases, or split the file")
            return None
        self._open.add(node)
        if isinstance(node, yaml.MappingNode):
            result: object = self._mapping(node, at)
        else:
            result = [self.build(child, (*at, index)) for index, child in enumerate(node.value)]
        self._open.remove(node)
        return result

    def _mapping(self, node: yaml.MappingNode, at: Location) -> dict[str, object]:
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._refuse(key_node, at, "a list or a mapping cannot be the name of a field", "write plain text")
                continue
            key = str(key_node.value)
            if key == "<<" and key_node.style is None:
                fix = "write the fields out, or use an alias for the whole mapping"
                self._refuse(key_node, (*at, key), "YAML 1.2 has no merge keys", fix)
                continue
            if key in result:
                first = self.lines[(*at, key)]
                self._refuse(key_node, (*at, key), f"given twice, first on line {first}", "keep one")
                continue
            self.lines[(*at, key)] = key_node.start_mark.line + 1
            result[key] = self.build(value_node, (*at, key))
        return result

    def _scalar(self, node: yaml.ScalarNode, at: Location) -> object:
        kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), str(node.value)
        if kind == "str":
            return text
        if kind not in _SCALARS or not _SCALARS[kind][0].fullmatch(text):
            return self._refuse(node, at, f"the YAML tag {node.tag!r} is not supported", _PLAIN_FIX, text)
        if kind in {"bool", "null"}:
            return text == "true" if kind == "bool" else None
        number = _number(text, kind)
        if not math.isfinite(number):
            return self._refuse(node, at, "is too large a number", "write a smaller number", text)
        return number

    def _refuse(self, node: yaml.Node, at: Location, message: str, fix: str, value: object = ABSENT) -> None:
        line = node.start_mark.line + 1
        self.problems.append(Problem(field_path(at), message, value, fix=fix, file=self._file, line=line))


def _number(text: str, kind: str) -> float:
    # Python refuses to convert thousands of digits, which no field could hold anyway.
    value = float(text)
    return int(text) if kind == "int" and math.isfinite(value) else value


def field_path(location: Location) -> str:
    """``("input", 0, "dims")`` as ``input[0].dims``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
