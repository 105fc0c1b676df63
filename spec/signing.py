"""Tokens themselves: the public keys that check them, the private ones that sign them. No error shows a key."""

import base64
import datetime as dt
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from spec.problems import Problem, SpecError
from spec.tokens import ConsumerSpec, TokenKeySpec, TokensSpec

# Name of the stack's secret setting with the private keys.
KEYS_SETTING: Final = "tokenKeys"
_HOW: Final = f"cat key.pem | pulumi config set --secret --path triton-estate:{KEYS_SETTING}.<id>"


@lru_cache
def jwks(keys: tuple[TokenKeySpec, ...]) -> str:
    """The public keys as a JSON Web Key Set (RFC 7517)."""
    found = []
    for key in keys:
        public = serialization.load_pem_public_key(key.public_key.encode())
        if not isinstance(public, rsa.RSAPublicKey):
            raise TypeError(key.id)
        numbers = public.public_numbers()
        found.append(
            {
                "kty": "RSA",
                "use": "sig",
                "alg": "RS256",
                "kid": key.id,
                "n": _integer(numbers.n),
                "e": _integer(numbers.e),
            }
        )
    return json.dumps({"keys": found}, separators=(",", ":"))


def private_keys(text: str) -> dict[str, str] | None:
    """The private keys by id, None where they are still encrypted: outside the engine nobody can read them.

    Raises:
        SpecError: not a mapping of PEM texts; the text itself is not shown.
    """
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    keys: dict[str, object] = found if isinstance(found, dict) else {}
    if "secure" in keys or (keys and all(isinstance(value, dict) for value in keys.values())):
        return None
    texts = {str(name): value for name, value in keys.items() if isinstance(value, str)}
    if not keys or len(texts) < len(keys):
        raise SpecError([Problem(KEYS_SETTING, "not a mapping of private keys", "(not shown)", "id: PEM", _HOW)])
    return texts


def check_keys(tokens: TokensSpec | None, text: str | None, *, secret: bool) -> None:
    """Check the setting with the private keys, as far as that can be done without reading them.

    Args:
        tokens: of the stack.
        text: the setting, None where it is absent.
        secret: whether the engine knows it for a secret.

    Raises:
        SpecError: it is needed and absent, or it stands in the file for everybody to read; it is not shown.
    """
    if text is None:
        if tokens and tokens.consumers:
            message = "the key that signs the tokens of the consumers is missing"
            raise SpecError([Problem(KEYS_SETTING, message, fix=_HOW)])
    elif not secret and private_keys(text) is not None:
        message, fix = "a private key stands in the file in clear text", f"treat it as lost; of a new one {_HOW}"
        raise SpecError([Problem(KEYS_SETTING, message, "(not shown)", "a secret", fix)])


def mint(tokens: TokensSpec, audience: str, keys: Mapping[str, str]) -> dict[str, str]:
    """A token for each consumer, signed with the first key; of the same input the same token (RS256, no time).

    Args:
        tokens: of the stack.
        audience: who the tokens are for.
        keys: private keys as PEM, by id.

    Raises:
        SpecError: the key is missing, or not the private half of the public one; no key is shown.
    """
    signer = tokens.keys[0]
    field = f"{KEYS_SETTING}.{signer.id}"
    if signer.id not in keys:
        raise SpecError([Problem(field, "the key that signs is missing", allowed=", ".join(keys), fix=_HOW)])
    try:
        private = serialization.load_pem_private_key(keys[signer.id].encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    public = serialization.load_pem_public_key(signer.public_key.encode())
    if not isinstance(private, rsa.RSAPrivateKey) or private.public_key() != public:
        message = "not the private half of the public key"
        raise SpecError([Problem(field, message, "(not shown)", "PEM without a password", _HOW)])
    head = {"alg": "RS256", "kid": signer.id, "typ": "JWT"}
    return {
        name: _signed(private, head, _claims(tokens, audience, name, consumer))
        for name, consumer in sorted(tokens.consumers.items())
    }


def _claims(tokens: TokensSpec, audience: str, name: str, consumer: ConsumerSpec) -> dict[str, object]:
    claims: dict[str, object] = {"iss": tokens.issuer, "sub": name, "aud": audience}
    claims[tokens.claim] = sorted(set(consumer.models))
    if consumer.expires:
        last = dt.datetime.fromisoformat(consumer.expires).replace(tzinfo=dt.UTC)
        claims["exp"] = int((last + dt.timedelta(days=1)).timestamp())
    return claims


def _signed(key: rsa.RSAPrivateKey, head: Mapping[str, object], claims: Mapping[str, object]) -> str:
    body = ".".join(
        _encoded(json.dumps(part, separators=(",", ":"), sort_keys=True).encode()) for part in (head, claims)
    )
    return f"{body}.{_encoded(key.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _integer(value: int) -> str:
    return _encoded(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _encoded(data: bytes) -> str:
    """Base64 for URLs, without padding (RFC 7515)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
