"""Certificates of cert-manager, typed: as far as the estate uses them, in the API's own names."""

from typing import ClassVar

from components.crds import CustomSpec, Part


class IssuerRef(Part):
    """Who signs."""

    group: str = "cert-manager.io"
    kind: str = "ClusterIssuer"
    name: str


class Certificate(CustomSpec):
    """A certificate that cert-manager makes, renews and keeps in a Secret."""

    API_VERSION: ClassVar[str] = "cert-manager.io/v1"
    KIND: ClassVar[str] = "Certificate"

    secret_name: str
    dns_names: list[str]
    issuer_ref: IssuerRef
