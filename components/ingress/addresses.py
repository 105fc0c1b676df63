"""Where a model is reached: at the gateways, on the hosts that models share, and by its Service."""

from components.serving import runtime
from spec import names
from spec.contract import AddressEntry
from spec.ingress import INTERNAL, Gateway, IngressSpec, gateways_of, prefix
from spec.resolve import Model


def service(model: Model, namespace: str) -> AddressEntry:
    """The model's Service."""
    host = names.service_host(model.name, namespace)
    http = f"{host}:{runtime.HTTP_PORT}"
    return AddressEntry(
        http_url=f"http://{http}", http_target=http, grpc_target=f"{host}:{runtime.GRPC_PORT}", tls=False
    )


def main(model: Model, ingress: IngressSpec) -> AddressEntry:
    """The model's own host at the first of its gateways: the public one, unless it is not there."""
    return _own(model, gateways_of(ingress, model.spec.traffic)[0])


def internal(model: Model, ingress: IngressSpec) -> AddressEntry | None:
    """The model's own host at the internal gateway, where that leads to it."""
    leading = gateways_of(ingress, model.spec.traffic)
    return next((_own(model, gateway) for gateway in leading if gateway.name == INTERNAL), None)


def shared(model: Model, ingress: IngressSpec) -> AddressEntry | None:
    """The model on the host that models share at the first of its gateways, where there is one."""
    gateway = gateways_of(ingress, model.spec.traffic)[0]
    host = gateway.spec.prefix_host
    if host is None:
        return None
    path = prefix(model.name, model.spec.traffic)
    url, target = f"{gateway.scheme}://{host}{path}", f"{host}:{gateway.port}{path}"
    return AddressEntry(http_url=url, http_target=target, tls=gateway.spec.tls is not None)


def _own(model: Model, gateway: Gateway) -> AddressEntry:
    host = gateway.host(model.name, model.spec.traffic)
    # Clients want a port, and take one that the scheme has by itself.
    target = f"{host}:{gateway.port}"
    url, tls = f"{gateway.scheme}://{host}", gateway.spec.tls is not None
    return AddressEntry(http_url=url, http_target=target, grpc_target=target, tls=tls)
