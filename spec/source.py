"""Read YAML files so that every later complaint can name its line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from spec.problems import Problem

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Source:
    """One parsed file: plain data, the line of every field, and what was wrong with the YAML itself."""

    file: str
    data: Mapping[str, object]
    lines: Mapping[Location, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def line(self, location: Location) -> int | None:
        """Line of the field, or of the closest enclosing one that exists (for a field that is missing)."""
        while location and location not in self.lines:
            location = location[:-1]
        return self.lines.get(location)


class _CoreLoader(yaml.SafeLoader):
    """YAML 1.2 core scalars only: ``on``, ``yes`` and ``010`` stay the text that the author sees."""


_CoreLoader.yaml_implicit_resolvers = {}


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


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
        return Source(shown_as, {}, problems=(_problem(shown_as, "the file does not exist", fix=f"create {path}"),))
    except (OSError, UnicodeDecodeError) as error:
        return Source(shown_as, {}, problems=(_problem(shown_as, f"cannot be read: {error}"),))
    return parse(text, shown_as)


def parse(text: str, shown_as: str) -> Source:
    """Parse YAML text; see :func:`read`."""
    loader = _CoreLoader(text)
    try:
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        return Source(shown_as, {}, problems=(_problem(shown_as, f"not valid YAML: {error.problem}", line),))
    except yaml.YAMLError as error:
        return Source(shown_as, {}, problems=(_problem(shown_as, f"not valid YAML: {error}"),))
    finally:
        loader.dispose()
    if not isinstance(root, yaml.MappingNode):
        message = "the file is empty" if root is None else "must hold a mapping of fields"
        fix = "write `field: value` lines; the README shows a five-line model file"
        return Source(shown_as, {}, problems=(_problem(shown_as, message, fix=fix),))
    lines: dict[Location, int] = {}
    problems: list[Problem] = []
    data = _build(root, (), lines, problems, shown_as)
    return Source(shown_as, data if isinstance(data, dict) else {}, lines, tuple(problems))


def _problem(file: str, message: str, line: int | None = None, fix: str = "") -> Problem:
    return Problem(field="", message=message, file=file, line=line, fix=fix)


def _build(node: yaml.Node, at: Location, lines: dict[Location, int], problems: list[Problem], file: str) -> object:
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        result: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            line = key_node.start_mark.line + 1
            if key in result:
                where = field_path((*at, key))
                first = lines[(*at, key)]
                problems.append(
                    Problem(where, f"given twice, first on line {first}", fix="keep one", file=file, line=line)
                )
                continue
            lines[(*at, key)] = line
            result[key] = _build(value_node, (*at, key), lines, problems, file)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_build(child, (*at, i), lines, problems, file) for i, child in enumerate(node.value)]
    return _scalar(node, at, problems, file)


def _scalar(node: yaml.Node, at: Location, problems: list[Problem], file: str) -> object:
    tag = node.tag.removeprefix("tag:yaml.org,2002:")
    text = str(node.value)
    match tag:
        case "str":
            return text
        case "bool":
            return text == "true"
        case "null":
            return None
        case "int":
            return int(text)
        case "float":
            return float(text)
    problems.append(
        Problem(field_path(at), f"the YAML tag {node.tag!r} is not supported", text, file=file,
                line=node.start_mark.line + 1, fix="write a plain string, number, true or false")
    )  # fmt: skip
    return None


def field_path(location: Location) -> str:
    """``("input", 0, "dims")`` as ``input[0].dims``."""
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def location(path: str) -> Location:
    """``input[0].dims`` as ``("input", 0, "dims")``; the reverse of :func:`field_path`."""
    parts: list[str | int] = []
    for index, name in re.findall(r"\[([0-9]+)\]|([^.\[\]]+)", path):
        parts.append(int(index) if index else name)
    return tuple(parts)
