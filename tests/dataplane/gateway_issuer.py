"""An issuer of tokens outside the stack: signs whatever it is told to, and publishes its keys in the network."""

import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from spec.signing import jwks
from spec.tokens import TokenKeySpec
from tests.dataplane.gateway_certificates import Authority
from tests.dataplane.world import World
from tests.keys import private, public

# An address of the network that no pod has.
_ADDRESS: Final = "10.255.0.20"
_PORT: Final = 9443
ADDRESS: Final = f"https://{_ADDRESS}:{_PORT}/keys"


@dataclass(frozen=True)
class Issuer:
    """The issuer; ``folder`` holds what it publishes."""

    folder: Path

    def publish(self, *names: str) -> None:
        """From now on these keys are valid, and no other."""
        keys = [TokenKeySpec.model_validate({"id": name, "publicKey": public(name)}) for name in names]
        new = self.folder / "keys.new"
        new.write_text(jwks(tuple(keys)))
        new.replace(self.folder / "keys.json")


def start(world: World, folder: Path, authority: Authority) -> Issuer:
    """Publish the key ``k1``.

    Args:
        world: where.
        folder: an empty one.
        authority: signs the certificate of the address.
    """
    issued = authority.issue(_ADDRESS)
    (folder / "tls.crt").write_text(issued.certificate)
    (folder / "tls.key").write_text(issued.key)
    issuer = Issuer(folder)
    issuer.publish("k1")
    program = Path(__file__).with_name("gateway_keys.py")
    running = world.start("issuer", sys.executable, program, folder, _ADDRESS, str(_PORT))
    running.until((folder / "ready").exists)
    return issuer


def sign(claims: Mapping[str, Any], key: str = "k1") -> str:
    """A token that says this."""
    found = serialization.load_pem_private_key(private(key).encode(), password=None)
    assert isinstance(found, rsa.RSAPrivateKey)
    body = ".".join(_encoded(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": key}, claims))
    return f"{body}.{_encoded(found.sign(body.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
