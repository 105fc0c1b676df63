"""Certificates of a test's own authority, and what a client finds out when it shakes hands."""

import datetime as dt
import ipaddress
import json
import socket
import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.dataplane.world import World

_DAY: Final = dt.timedelta(days=1)
_SECONDS: Final = 10.0
_SIGNS: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, both as PEM."""

    certificate: str
    key: str

    @property
    def serial(self) -> int:
        return x509.load_pem_x509_certificate(self.certificate.encode()).serial_number

    def keep(self, world: World, namespace: str, name: str) -> None:
        """Make or replace the Secret that holds it."""
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "kubernetes.io/tls",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {"tls.crt": self.certificate, "tls.key": self.key},
        }
        world.kubectl.run("apply", "--server-side", "--validate=false", "--filename=-", stdin=json.dumps(secret))


class Authority:
    """Signs certificates for whoever trusts it."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)

    @cached_property
    def root(self) -> str:
        """PEM of its own certificate."""
        builder = self._builder(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        return _pem(builder.add_extension(_SIGNS, critical=True).sign(self._key, hashes.SHA256()))

    def issue(self, *hosts: str) -> Issued:
        """A new certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_general(host) for host in hosts])
        builder = self._builder(_named(hosts[0]), key.public_key()).add_extension(names, critical=False)
        form = serialization.PrivateFormat.PKCS8
        text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()
        return Issued(_pem(builder.sign(self._key, hashes.SHA256())), text)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder(subject_name=subject, issuer_name=self._name, public_key=key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(by, critical=False)
        )


@dataclass(frozen=True)
class Handshake:
    """What both sides agreed on.

    Attributes:
        version: of TLS, as Python's ``ssl`` calls it.
        protocol: by ALPN.
        serial: of the certificate.
    """

    version: str | None
    protocol: str | None
    serial: int


def context(trust: str, *protocols: str) -> ssl.SSLContext:
    """A client that trusts one authority, and offers these protocols."""
    found = ssl.create_default_context(cadata=trust)
    if protocols:
        found.set_alpn_protocols(list(protocols))
    return found


def shake(door: Path, host: str, client: ssl.SSLContext) -> Handshake:
    """Open a connection and end it again.

    Args:
        door: a socket that leads to the port.
        host: that the client asks for, and that the certificate has to hold for.
        client: how it goes about it.

    Raises:
        ssl.SSLError: they did not come to terms.
    """
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(_SECONDS)
        plain.connect(str(door))
        with client.wrap_socket(plain, server_hostname=host) as secure:
            serial = (secure.getpeercert() or {}).get("serialNumber", "")
            return Handshake(secure.version(), secure.selected_alpn_protocol(), int(str(serial), 16))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
