"""Text of others inside Markdown: names and values are a fork's to choose, and must not write the comment."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

LONGEST: Final = 300  # characters of one value
# Between a sign and the name behind it, this keeps GitHub from calling people and linking issues; nobody sees it.
_JOINER: Final = "\u2060"
_SPECIAL: Final = re.compile(r"[\\`*_{}\[\]~|$]")
_NO_WORD: Final = re.compile(r"[^\w \-]")
# @somebody, and #12 of this repository or of another; an image@sha256 stays as it is, to be copied.
_CALLS: Final = re.compile(r"((?<!\w)@|#)(?=\w)")
_ADDRESS: Final = re.compile(r"://|\bwww\.", re.IGNORECASE)


def line(text: str, longest: int = LONGEST) -> str:
    """One line of a text, without signs that nobody sees, and not longer than anybody reads."""
    if not text.isprintable():
        text = "".join(" " if one.isspace() else one for one in text if one.isspace() or _visible(one))
    flat = " ".join(text.split())
    return flat if len(flat) <= longest else flat[: longest - 1] + "…"


def _visible(character: str) -> bool:
    # Cc, Cf: control signs, and among them those that turn the direction of writing round; Cs, Co: no text at all.
    return unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co"}


def prose(text: str, longest: int = LONGEST) -> str:
    """A text as running text: no markup, no tag, no link, nobody called."""
    found = line(text, longest).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    found = _SPECIAL.sub(lambda match: f"\\{match[0]}", found)
    found = _ADDRESS.sub(lambda match: match[0].replace(":", "\\:").replace(".", "\\."), found)
    return _CALLS.sub(rf"\1{_JOINER}", found)


def code(text: str, longest: int = LONGEST) -> str:
    """A value as it is, in a code span that it cannot end, be it in a table or not."""
    found = line(text, longest)
    if not found:
        return "(empty)"
    if "|" in found or "\\" in found:
        # A bar ends a cell of a table even inside backticks, and a backslash before it may or may not keep it.
        return f"<code>{_NO_WORD.sub(lambda match: f'&#{ord(match[0])};', found)}</code>"
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", found)), default=0))
    pad = " " if found.startswith("`") or found.endswith("`") else ""
    return f"{fence}{pad}{found}{pad}{fence}"


def row(*cells: str) -> str:
    """A line of a table, of cells that are made here."""
    return f"| {' | '.join(cells)} |"


def table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    """The lines of a table."""
    return [row(*header), row(*("---" for _ in header)), *(row(*cells) for cells in rows)]


def fenced(text: str, most: int = 200) -> Iterator[str]:
    """A text as it is, line by line, in a block that it cannot end."""
    listed = text.splitlines()
    shown = [" " * (len(one) - len(one.lstrip(" "))) + line(one, 500) for one in listed[:most]]
    fence = "`" * max(3, 1 + max((one.count("`") for one in shown), default=0))
    yield fence
    yield from (one.rstrip() for one in shown)
    if len(listed) > most:
        yield f"{len(listed) - most} more lines left out"
    yield fence


def left_out(count: int, what: str, indent: str = "") -> Iterator[str]:
    """Says how much of a list is not shown."""
    if count > 0:
        yield f"{indent}- {count} more {what} left out"


def plain(text: str) -> str:
    """One line of a text for a terminal, however long."""
    return line(text, longest=len(text) + 1)
