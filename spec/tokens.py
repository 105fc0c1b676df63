"""Who may call models that ask for a token: issuer, keys and consumers (stack file)."""

import datetime as dt
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from spec.fields import DnsLabel, ModelName, Spec, refuse, refuse_all
from spec.problems import Problem
from spec.validation import closest

_FEWEST_BITS: Final = 2048
_URL: Final = re.compile(r"^https://[^\s?#/@]+(/[^\s#]*)?$")
_ISSUER: Final = re.compile(r"^[^\s*]+$")
_CLAIM: Final = re.compile(r"^[A-Za-z][A-Za-z0-9_-]*$")
_KEY_ID: Final = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")
_DAY: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
# The engine takes what looks like a date for one, and hands on the first moment of that day as Go prints it.
_DATE: Final = re.compile(rf"^({_DAY})( 00:00:00 \+0000 UTC)?$")
_OWN_CLAIMS: Final = ("iss", "sub", "aud", "exp", "nbf", "iat", "jti")


def _check_public_key(value: str) -> str:
    if "PRIVATE" in value:
        # Not shown, or it would be in the log too.
        refuse_all([Problem("", "a private key has no place in a file", "(not shown)", "the public key",
                            "treat this key as lost; write the output of openssl pkey -pubout")])  # fmt: skip
    try:
        key = serialization.load_pem_public_key(value.encode())
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size < _FEWEST_BITS:
        refuse("not a public key", allowed=f"PEM of an RSA key of at least {_FEWEST_BITS} bits",
               fix="write the output of openssl pkey -in key.pem -pubout")  # fmt: skip
    return value


def _check_date(value: object) -> str:
    match = _DATE.fullmatch(value) if isinstance(value, str) else None
    try:
        return dt.date.fromisoformat(match[1] if match else "").isoformat()
    except ValueError:
        refuse("not a date", allowed="year-month-day", fix="write for example 2027-06-30")


def _check_models(value: list[str]) -> list[str]:
    if not value:
        refuse("a token that is good for nothing", allowed="one model or more", fix="name the models, or leave it out")
    return value


def _matching(pattern: re.Pattern[str], what: str, allowed: str, example: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            refuse(f"not {what}", allowed=allowed, fix=f"write for example {example}")
        return value

    return AfterValidator(check)


def _text(pattern: re.Pattern[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern.pattern})


KeyId = Annotated[
    str, _matching(_KEY_ID, "the name of a key", "1 to 63 letters, digits, ., _ and -", "2026-11"), _text(_KEY_ID)
]
PublicKey = Annotated[str, AfterValidator(_check_public_key)]
JwksUrl = Annotated[
    str, _matching(_URL, "the address of keys", "https://, without user and #", "https://id.example.com/jwks"),
    _text(_URL),
]  # fmt: skip
Issuer = Annotated[
    str, _matching(_ISSUER, "an issuer", "text without spaces and *", "https://models.example.com"), _text(_ISSUER)
]
Claim = Annotated[str, _matching(_CLAIM, "the name of a claim", "letters, digits, _ and -", "models"), _text(_CLAIM)]
ExpiryDate = Annotated[str, BeforeValidator(_check_date), _text(_DATE)]


class TokenKeySpec(Spec):
    """A key pair that signs tokens. Its private half is a secret of the stack, its public half stands here.

    Attributes:
        id: by which a token says who signed it.
        public_key: PEM of an RSA key.
    """

    id: KeyId
    public_key: PublicKey


class ConsumerSpec(Spec):
    """Somebody who calls models.

    Attributes:
        models: those that the token is good for.
        expires: last day of the token, in UTC; absent for a token without an end, not in prod.
    """

    models: Annotated[list[ModelName], AfterValidator(_check_models)]
    expires: ExpiryDate | None = None


class TokensSpec(Spec):
    """Whose tokens the gateways take.

    Attributes:
        issuer: what a token says in ``iss``.
        audience: what a token says in ``aud``; by default the domain of the gateway.
        claim: what holds the names of the models that a token is good for.
        keys: keys of the stack's own tokens. The first one signs; all of them are valid, so that one can be replaced
            without an outage. The private halves stand in the secret setting ``tokenKeys``.
        consumers: who gets a token, by name; each becomes a secret output.
        jwks_uri: where an issuer outside the stack publishes its keys, instead of ``keys`` and ``consumers``.
    """

    issuer: Issuer
    audience: Issuer | None = None
    claim: Claim = "models"
    keys: list[TokenKeySpec] = Field(default_factory=list)
    consumers: dict[DnsLabel, ConsumerSpec] = Field(default_factory=dict)
    jwks_uri: JwksUrl | None = None

    @model_validator(mode="after")
    def _one_source_of_keys(self) -> "TokensSpec":
        problems = []
        if bool(self.keys) == (self.jwks_uri is not None):
            problems.append(Problem("keys", "tokens are checked with the keys of one issuer",
                                    allowed="keys, or jwksUri", fix="keep one of them"))  # fmt: skip
        if self.jwks_uri and self.consumers:
            problems.append(Problem("consumers", "an issuer outside the stack makes its tokens itself",
                                    allowed="absent with jwksUri", fix="leave consumers out"))  # fmt: skip
        ids = [key.id for key in self.keys]
        twice = sorted({one for one in ids if ids.count(one) > 1})
        if twice:
            problems.append(Problem("keys", f"two keys are named {', '.join(twice)}", fix="give each its own id"))
        if self.claim in _OWN_CLAIMS:
            allowed = f"not {', '.join(_OWN_CLAIMS)}"
            problems.append(Problem("claim", "has a meaning of its own", self.claim, allowed, "write claim: models"))
        if problems:
            refuse_all(problems)
        return self


def check_expiry(tokens: TokensSpec) -> Iterator[Problem]:
    """Tokens that would never end, fields relative to ``tokens``; for prod."""
    for name, consumer in tokens.consumers.items():
        if consumer.expires is None:
            yield Problem(f"consumers.{name}.expires", "a token without an end cannot be taken back",
                          allowed="needed in prod", fix="write for example expires: 2027-06-30")  # fmt: skip


def check_consumers(tokens: TokensSpec, models: Mapping[str, bool]) -> Iterator[Problem]:
    """Consumers of models that are not there, or that ask for no token, fields relative to ``tokens``.

    Args:
        tokens: of the stack.
        models: whether each model asks for a token, by name.
    """
    for name, consumer in tokens.consumers.items():
        for index, model in enumerate(consumer.models):
            field = f"consumers.{name}.models[{index}]"
            if model not in models:
                hint = closest(model, list(models)) or "name one of them"
                yield Problem(field, "no model file has this name", model, ", ".join(sorted(models)), hint)
            elif not models[model]:
                fix = f"write auth: {{token: true}} in the file of {model}, or leave it out here"
                yield Problem(field, "the model asks for no token", model, "a model with auth: {token: true}", fix)
