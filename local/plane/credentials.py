"""A plane's own certificate authority, certificates and kubeconfigs."""

import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from spec.names import EMBEDDED_CONTEXT

_LIFETIME: Final = dt.timedelta(days=365)
_RENEW_BEFORE: Final = dt.timedelta(days=30)
_LOCAL_ADDRESSES: Final = (ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1"))
_API_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")

# (file name, common name, groups): who talks to the API server, and etcd's two ends.
_CLIENTS: Final = (
    ("admin", "triton-estate-admin", ("system:masters",)),
    # One identity for all controllers: a service account and a token for each would double the start-up time.
    ("controller-manager", "triton-estate-controller-manager", ("system:masters",)),
    ("scheduler", "system:kube-scheduler", ()),
    ("kwok", "triton-estate-kwok", ("system:masters",)),
    ("etcd-client", "kube-apiserver", ()),
)
# Who the API server is to an aggregated API, such as that of a metrics adapter; an authority of its own, because
# whoever it signs may speak for any user.
FRONT_PROXY: Final = "front-proxy"
FRONT_PROXY_AUTHORITY: Final = f"{FRONT_PROXY}-ca"
KUBECONFIGS: Final = ("admin", "controller-manager", "scheduler", "kwok")


@dataclass(frozen=True)
class Credentials:
    """Files below ``folder``: ``<name>.crt`` and ``<name>.key`` for each party, all private to the user."""

    folder: Path

    def cert(self, name: str) -> Path:
        """Certificate of a party."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Private key of a party."""
        return self.folder / f"{name}.key"

    def kubeconfig(self, name: str) -> Path:
        """Kubeconfig of a client."""
        return self.folder / f"{name}.kubeconfig"


def ensure(folder: Path) -> Credentials:
    """Make the credentials, or keep those that are there and live for another month."""
    credentials = Credentials(folder)
    if _is_current(credentials):
        return credentials
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("triton-estate plane CA", (), authority_key, None, authority_key)
    service_accounts = ec.generate_private_key(ec.SECP256R1())
    public = service_accounts.public_key()
    _write(
        credentials.cert("service-accounts"),
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    _write_key(credentials.key("service-accounts"), service_accounts)
    for name, common_name in (("apiserver", "kube-apiserver"), ("etcd", "etcd")):
        key = ec.generate_private_key(ec.SECP256R1())
        _write_pair(credentials, name, _certificate(common_name, (), key, authority, authority_key, server=True), key)
    for name, common_name, groups in _CLIENTS:
        key = ec.generate_private_key(ec.SECP256R1())
        _write_pair(credentials, name, _certificate(common_name, groups, key, authority, authority_key), key)
    _ensure_front_proxy(credentials)
    # The authorities' keys are not kept: nothing else is ever signed. This certificate comes last, as the sign of a
    # complete set.
    _write(credentials.cert("ca"), authority.public_bytes(serialization.Encoding.PEM))
    return credentials


def _ensure_front_proxy(credentials: Credentials) -> None:
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _certificate("triton-estate front-proxy CA", (), authority_key, None, authority_key)
    _write_pair(credentials, FRONT_PROXY, _certificate(FRONT_PROXY, (), key, authority, authority_key), key)
    _write(credentials.cert(FRONT_PROXY_AUTHORITY), authority.public_bytes(serialization.Encoding.PEM))


def write_kubeconfig(credentials: Credentials, name: str, server: str, path: Path) -> None:
    """Write a kubeconfig with one context, which verifies the server by the plane's CA."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": EMBEDDED_CONTEXT,
                "cluster": {"server": server, "certificate-authority": str(credentials.cert("ca"))},
            }
        ],
        "users": [
            {
                "name": name,
                "user": {
                    "client-certificate": str(credentials.cert(name)),
                    "client-key": str(credentials.key(name)),
                },
            }
        ],
        "contexts": [{"name": EMBEDDED_CONTEXT, "context": {"cluster": EMBEDDED_CONTEXT, "user": name}}],
        "current-context": EMBEDDED_CONTEXT,
    }
    _write(path, yaml.safe_dump(config, sort_keys=False).encode())


def _is_current(credentials: Credentials) -> bool:
    for name in ("ca", FRONT_PROXY_AUTHORITY):
        try:
            authority = x509.load_pem_x509_certificate(credentials.cert(name).read_bytes())
        except (FileNotFoundError, ValueError):
            return False
        if authority.not_valid_after_utc - dt.datetime.now(dt.UTC) <= _RENEW_BEFORE:
            return False
    return True


def _certificate(
    common_name: str,
    groups: Sequence[str],
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Certificate | None,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    server: bool = False,
) -> x509.Certificate:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if issuer is not None:
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False
        )
        # etcd dials its own serving address as a client, so a server certificate carries both uses.
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH] + ([ExtendedKeyUsageOID.SERVER_AUTH] if server else [])
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    else:
        builder = builder.add_extension(_CA_USAGE, critical=True)
    if server:
        alternatives = [x509.DNSName(name) for name in _API_NAMES]
        addresses = [x509.IPAddress(address) for address in _LOCAL_ADDRESSES]
        builder = builder.add_extension(x509.SubjectAlternativeName([*alternatives, *addresses]), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


_CA_USAGE: Final = x509.KeyUsage(
    digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _write_pair(
    credentials: Credentials, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    _write(credentials.cert(name), certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(credentials.key(name), key)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write(path, encoded)


def _write(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # so that the mode below always holds
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
