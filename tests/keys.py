"""Key pairs for tests of tokens: made anew in each run, and the same in all of it."""

from functools import lru_cache

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa


def private(name: str = "k1", bits: int = 2048) -> str:
    """PEM of a private RSA key; another name is another key."""
    return _pem(_key(name, bits))


def public(name: str = "k1", bits: int = 2048) -> str:
    """PEM of its public half."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return _key(name, bits).public_key().public_bytes(serialization.Encoding.PEM, form).decode()


@lru_cache
def elliptic() -> str:
    """PEM of a public key that is not RSA."""
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_bytes(serialization.Encoding.PEM, form).decode()


@lru_cache
def _key(name: str, bits: int) -> rsa.RSAPrivateKey:
    del name
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def _pem(key: rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
