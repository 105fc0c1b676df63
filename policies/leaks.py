"""Policies about secrets where everybody can read them."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import object_policy
from policies.judging.unknown import SEALED, known
from policies.judging.view import Resource, View, dig
from policies.reading.pods import pods_of

# The last words of names whose values are secret. `secret` alone is not among them: it mostly names a Secret.
_ENDINGS: Final = (
    *(("pwd",), ("token",)),
    *(("api", "key"), ("access", "key"), ("secret", "key"), ("private", "key"), ("account", "key"), ("signing", "key")),
    *(("client", "secret"), ("app", "secret"), ("shared", "secret"), ("session", "secret"), ("jwt", "secret")),
)
# The same inside a word: PGPASSWORD.
_ENDS: Final = ("password", "passwd", "passphrase", "apikey", "accesskey", "secretkey")
# Tokens of a text, not of a caller.
_OF_TEXTS: Final = frozenset({"eos", "bos", "pad", "unk", "sep", "cls", "mask", "stop", "start", "end", "special"})
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# A file, a variable, a template, a placeholder, an address of a store of secrets.
_REFERENCE: Final = re.compile(
    r"[/~.<\[{]|\$[({_a-z]|.*(\{\{|\$\(|\$\{)|(https?|vault|ref\+\w+|file|env|arn|secretref):", re.IGNORECASE
)
_NO_SECRET: Final = frozenset({"", "true", "false", "yes", "no", "none", "null", "optional", "required", "disabled"})
_NUMBER: Final = re.compile(r"-?[0-9]{1,6}(\.[0-9]+)?[a-z]{0,2}")
_SHAPES: Final = (
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----")),
    ("the id of an AWS access key", re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])")),
    ("a token (JWT)", re.compile(r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{4,}\.[\w-]{8,}")),
    # Neither part is a variable or a placeholder.
    ("an address with a password", re.compile(r"(?<=[a-z0-9])://[^\s:/@$<{\"']{1,256}:[^\s:/@$<{\"']{3,256}@[\w\[]")),
)
_HINTS: Final = re.compile("PRIVATE KEY|AKIA|ASIA|eyJ|://")
# Where a value is: where the mapping or list is that holds it, and its place in that.
_Path = tuple[Any, str | int] | None
# A line of a file of settings: a name, a value without blanks, nothing else. What looks like code is none.
_LINE: Final = re.compile(
    r"""^[ \t]*(?:- |export )?["']?([\w.-]{2,60})["']?[ \t]*[:=][ \t]*["']?([^\s"',;()]{4,200})["']?,?$""", re.MULTILINE
)
# An option or a variable inside the text that a shell gets.
_IN_SHELL: Final = re.compile(
    r"""(?:^|[\s;"'])(--?[A-Za-z][\w-]{1,60}|[A-Z][A-Z0-9_]{1,60})[= ]["']?([^\s"';]{1,200})"""
)
_CODE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+|str|string|int|bytes|None")


@object_policy(
    "secret-in-plain-sight",
    "No secret stands outside the data of a Secret",
    why="Arguments, variables, annotations and ConfigMaps are read by whoever may list them, and stay in the state, in "
    "audit logs and in dumps long after the secret was changed.",
    fix="keep it in a Secret and name that: credentials.secret in the model file, valueFrom.secretKeyRef or a mounted "
    "Secret elsewhere; then change the secret, for it has been seen",
    severity=Severity.CRITICAL,
    dev=Level.MANDATORY,
)
def secret_in_plain_sight(found: Resource, view: View) -> Iterator[str]:
    """Marks of Pulumi, telling names, telling shapes."""
    del view
    if not found.type.startswith("kubernetes:"):
        return
    hidden = {"data", "stringData"} if found.kind == "Secret" else set()
    said: set[str] = set()
    for path, value in _leaves({key: value for key, value in found.inputs.items() if key not in hidden}, None):
        if value is SEALED:
            yield f"{_text(path)} is a Pulumi secret, and whoever may read the object would see it"
        elif isinstance(value, str):
            for what in _shapes_in(value):
                said.add(_text(path))
                yield f"{_text(path)} holds {what}"
    for where in dict.fromkeys(_named(found)):
        if where not in said:
            yield f"{where} has a literal value, and its name says that it is secret"


def _shapes_in(text: str) -> list[str]:
    # One quick look first: nearly no text has any of it.
    return [what for what, shape in _SHAPES if shape.search(text)] if _HINTS.search(text) else []


def _leaves(value: Any, path: _Path) -> Iterator[tuple[_Path, Any]]:  # noqa: ANN401  # JSON
    """Every value and where it is."""
    below = [(path, value)]
    while below:
        where, found = below.pop()
        if isinstance(found, dict):
            below += [((where, key), item) for key, item in reversed(found.items())]
        elif isinstance(found, list):
            below += [((where, index), found[index]) for index in reversed(range(len(found)))]
        else:
            yield where, found


def _text(path: _Path) -> str:
    if path is None:
        return ""
    before, step = _text(path[0]), path[1]
    return f"{before}[{step}]" if isinstance(step, int) else f"{before}.{step}" if before else str(step)


def _named(found: Resource) -> Iterator[str]:
    """Where a name says that its value is secret, and the value is there."""
    if not found.is_object:
        values = found.inputs.get("values")
        for path, value in _leaves(values if known(values) else None, (None, "values")):
            if path and isinstance(path[1], str) and _tells(path[1]) and _literal(value):
                yield _text(path)
        return
    yield from _in_metadata(found.inputs, "metadata")
    if found.kind == "ConfigMap":
        yield from _in_files(found)
    if pods := pods_of(found):
        if found.kind != "Pod":
            yield from _in_metadata({"metadata": pods.metadata}, "template.metadata")
        for container in pods.all_containers:
            yield from _in_container(container)


def _in_metadata(holder: Mapping[str, Any], where: str) -> Iterator[str]:
    for part in ("annotations", "labels"):
        for key, value in dig(holder, "metadata", part, default={}).items():
            if _tells(key.rpartition("/")[2]) and _literal(value):
                yield f"{where}.{part}.{key}"


def _in_files(found: Resource) -> Iterator[str]:
    for key, text in found.at("data", default={}).items():
        if not known(text) or not isinstance(text, str):
            continue
        if _tells(key) and "\n" not in text.strip() and _literal(text.strip()):
            yield f"data.{key}"
        for line in _LINE.finditer(text):
            name, value = line.groups()
            if _tells(name) and _literal(value) and not _CODE.fullmatch(value):
                yield f"data.{key}, {name}"


def _in_container(container: Mapping[str, Any]) -> Iterator[str]:
    where = f"container {dig(container, 'name', default='')}"
    for variable in dig(container, "env", default=[]):
        name = dig(variable, "name", default="")
        if (_tells(name) or _is_secret(name)) and _literal(variable.get("value")):
            yield f"{where}, env {name}"
    for part in ("command", "args"):
        words = [word if known(word) and isinstance(word, str) else "" for word in dig(container, part, default=[])]
        for name, value in _options(words):
            if _tells(name) and _literal(value):
                yield f"{where}, {part} {name}"


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Names and values in the words of a command, also inside what a shell gets."""
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if len(word.split()) > 1:
            yield from ((found[1], found[2]) for found in _IN_SHELL.finditer(word))
            continue
        name, assigned, value = word.partition("=")
        if assigned:
            yield name, value
        elif name.startswith("-") and not following.startswith("-"):
            yield name, following


@lru_cache(10_000)
def _tells(name: str) -> bool:
    words = tuple(_words(name))
    if not _OF_TEXTS.isdisjoint(words):
        return False
    return any(words[-len(ending) :] == ending for ending in _ENDINGS) or "".join(words[-1:]).endswith(_ENDS)


def _is_secret(variable: str) -> bool:
    """Whether a variable is called a secret, other than one that names the Secret of a certificate or a registry."""
    *before, last = _words(variable) or [""]
    return last == "secret" and not {"tls", "pull"} & set(before)


def _words(name: str) -> list[str]:
    """The words of a name in any style: ``adminPassword``, ``API_KEY``, ``access-key``."""
    return [word.lower() for word in _WORDS.findall(name)]


def _literal(value: object) -> bool:
    """Whether a value is the secret itself, and not where to find it."""
    if not known(value) or not isinstance(value, str):
        return False
    return not (value.lower() in _NO_SECRET or _REFERENCE.match(value) or _NUMBER.fullmatch(value))
