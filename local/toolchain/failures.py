"""What went wrong while tools were found or built, in plain words."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_TAIL_LINES: Final = 12

NETWORK: Final = "network"
_DISK: Final = "disk"

_CAUSES: Final = (
    (_DISK, r"no space left on device|disk quota exceeded"),
    (
        NETWORK,
        (
            r"dial tcp|no such host|i/o timeout|TLS handshake|connection re(?:fused|set)"
            r"|network is unreachable|name resolution|proxyconnect|context deadline exceeded"
            r"|NewConnectionError|Max retries exceeded"
            r"|module lookup disabled|Read timed out|unexpected EOF|No matching distribution found"
        ),
    ),
    ("memory", r"signal: killed|cannot allocate memory|out of memory"),
    ("checksum", r"checksum mismatch|SECURITY ERROR|DO NOT MATCH THE HASHES"),
    ("permission", r"permission denied|operation not permitted"),
)
_WORDS: Final = {
    _DISK: ("the disk is full", "free some space, or set TRITON_ESTATE_CACHE to a folder on a larger disk"),
    NETWORK: (
        "the network cannot be reached",
        (
            "connect once and run the command again (later runs work offline from the cache), "
            "or install the official tools on PATH"
        ),
    ),
    "memory": (
        "the compiler ran out of memory",
        (
            "close other programs and run the command again (4 GB of free memory are enough), "
            "or install the official tools on PATH"
        ),
    ),
    "checksum": (
        "a download is not what local/toolchain/go says it must be",
        "try another network; if it stays, do not trust the source it comes from",
    ),
    "permission": (
        "a file may not be written or run",
        "make the cache folder yours, not mounted noexec, or set TRITON_ESTATE_CACHE to another",
    ),
}


class ToolchainError(Exception):
    """The tools cannot be had; the message says what failed, why, and what to do.

    Attributes:
        cause: ``network``, ``disk``, ``memory``, ``checksum``, ``permission`` or empty.
    """

    def __init__(self, message: str, *, cause: str = "") -> None:
        self.cause = cause
        super().__init__(message)


def cause_of(text: str) -> str:
    """The kind of failure that the output of a failed command tells of; empty when it is another."""
    return next((cause for cause, pattern in _CAUSES if re.search(pattern, text, re.IGNORECASE)), "")


def failed(what: str, output: str, *, log: Path | None = None) -> ToolchainError:
    """The error for a command that failed with this output.

    Args:
        what: what was being done, e.g. ``building kwok 0.8.0``.
        output: what the command printed.
        log: the file that holds all of it.
    """
    cause = cause_of(output)
    reason, advice = _WORDS.get(
        cause,
        ("the last lines of its log tell why", "run the command again, or install the official tool on PATH"),
    )
    tail = [line for line in output.splitlines() if line.strip()][-_TAIL_LINES:]
    lines = [f"{what} failed: {reason}", *(f"  | {line}" for line in tail)]
    if log is not None:
        lines.append(f"  log: {log}")
    lines.append(f"  fix: {advice}")
    return ToolchainError("\n".join(lines), cause=cause)


def offline(error: ToolchainError, lacking: Iterable[str]) -> ToolchainError:
    """The same network failure, saying which tools cannot be had because of it."""
    return ToolchainError(f"there is no network to fetch what lacks: {', '.join(lacking)}\n{error}", cause=NETWORK)
