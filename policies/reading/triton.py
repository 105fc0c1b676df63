"""Containers that run Triton, whoever wrote them, and the options that they give it."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from policies.judging.unknown import CannotDecide, known
from policies.judging.view import dig
from policies.reading.pods import Pods
from spec.images import parse_image

SERVER: Final = "tritonserver"
# The client's tools come in an image of the same name.
_CLIENT_TAG: Final = "-sdk"
_PROGRAM: Final = re.compile(rf"(^|[\s/;&|(]){SERVER}(\s|;|$)")
# Where Triton listens unless it is told otherwise, by option.
PORTS: Final[Mapping[str, int]] = {"http-port": 8000, "grpc-port": 8001, "metrics-port": 8002}
_EXIT_TIMEOUT_SECONDS: Final = 30


def is_server(container: Mapping[str, Any]) -> bool:
    """Whether a container runs Triton: what it starts says so, or its image does where it starts nothing else."""
    if any(_PROGRAM.search(word) for word in words(container)):
        return True
    return not dig(container, "command", default=[]) and _is_image(dig(container, "image", default=""))


def servers(pods: Pods | None) -> Iterator[Mapping[str, Any]]:
    """The containers that run Triton; none in an object without pods."""
    return (container for container in (pods.containers if pods else ()) if is_server(container))


def runs_triton(pods: Pods) -> bool:
    """Whether requests may be for these pods."""
    return pods.serves or next(servers(pods), None) is not None


def words(container: Mapping[str, Any]) -> Sequence[str]:
    """Command and arguments of a container.

    Raises:
        CannotDecide: one of them is not known yet.
    """
    found = [*dig(container, "command", default=[]), *dig(container, "args", default=[])]
    if not all(known(word) for word in found):
        raise CannotDecide("a word of the container's command is unknown")
    return [str(word) for word in found]


def option(container: Mapping[str, Any], name: str) -> str | None:
    """The value of an option of ``tritonserver``, the last one where it is given twice, None where it is absent.

    Raises:
        CannotDecide: the value comes from a variable.
    """
    found = None
    listed = [part for word in words(container) for part in _parts(word)]
    for index, part in enumerate(listed):
        key, equals, value = part.partition("=")
        if key == f"--{name}":
            found = value if equals else next(iter(listed[index + 1 :]), "")
    if found is not None and "$" in found:
        raise CannotDecide(f"--{name} takes its value from a variable")
    return found


def number(container: Mapping[str, Any], name: str, default: int) -> int:
    """An option that is a number; Triton also takes true and false for 1 and 0."""
    value = option(container, name)
    if value is None:
        return default
    told = {"true": 1, "on": 1, "false": 0, "off": 0}
    try:
        return told[value.lower()] if value.lower() in told else int(value)
    except ValueError:
        return default  # Triton itself refuses to start with it


def exit_timeout(container: Mapping[str, Any]) -> int:
    """Seconds that Triton waits for requests in flight when it is told to stop."""
    return number(container, "exit-timeout-secs", _EXIT_TIMEOUT_SECONDS)


def _parts(word: str) -> Sequence[str]:
    """The words of a shell command that is one word of the container's."""
    if not any(character.isspace() for character in word):
        return [word]
    lexer = shlex.shlex(word, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return word.split()


def _is_image(text: str) -> bool:
    image = parse_image(text)
    return image.name.rpartition("/")[2] == SERVER and not (image.tag or "").endswith(_CLIENT_TAG)
