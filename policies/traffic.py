"""Policies about traffic: Services here, routes and gateways in modules of their own."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.exposure import (
    debug_exposed,
    endpoint_clear_text,
    endpoint_token,
    gateway_tls,
    token_without_authorization,
)
from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy
from policies.judging.view import View, dig
from policies.reading import triton
from policies.reading.mesh import Services, container_port, ports
from policies.reading.pods import Pods
from policies.routes import mirror_share, route_clash, route_destination, route_timeout, route_weights

__all__ = [
    "debug_exposed",
    "endpoint_clear_text",
    "endpoint_token",
    "gateway_tls",
    "mirror_share",
    "route_clash",
    "route_destination",
    "route_timeout",
    "route_weights",
    "service_port_name",
    "token_without_authorization",
]

_SPOKEN: Final[Mapping[str, str]] = {"http-port": "http", "grpc-port": "grpc", "metrics-port": "http"}


@estate_policy(
    "service-port-name",
    "Ports of a model's Service say which protocol they speak",
    why="The mesh reads it from appProtocol or from the name: gRPC behind any other name is balanced by connection, "
    "and without retries, copies and metrics.",
    fix="name: grpc or appProtocol: grpc for Triton's port 8001, http for 8000, http-metrics for 8002",
    severity=Severity.MEDIUM,
    dev=Level.MANDATORY,
)
def service_port_name(view: View) -> Iterator[Finding]:
    """Ports of Services against those that Triton listens to."""
    services = Services(view)
    for service in services.by_name.values():
        serving = services.serving(service)
        spoken = _spoken(serving)
        for port in ports(service) if serving else ():
            wanted, said = spoken.get(container_port(port, serving) or 0), _said(port)
            if wanted and said != wanted:
                yield Finding(
                    service, f"port {dig(port, 'port')} has {_called(port)}, and Triton speaks {wanted} there"
                )


def _spoken(serving: list[Pods]) -> Mapping[int, str]:
    """The ports that Triton listens to, and what it speaks there."""
    return {
        triton.number(container, option, triton.PORTS[option]): protocol
        for pods in serving
        for container in list(triton.servers(pods)) or [{}]
        for option, protocol in _SPOKEN.items()
    }


def _said(port: Mapping[str, Any]) -> str:
    """The protocol of a port as Istio understands it: ``appProtocol``, or the name up to the first dash."""
    return dig(port, "appProtocol", default=dig(port, "name", default="").partition("-")[0]).lower()


def _called(port: Mapping[str, Any]) -> str:
    for field in ("appProtocol", "name"):
        if (found := dig(port, field)) is not None:
            return f"{field} {found}"
    return "no name"
