"""A gateway that somebody else has installed: its objects in the cluster, and how its Envoy finds istiod."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

XDS: Final = 15012
# What the token of a pod is for that asks istiod for its configuration.
AUDIENCE: Final = "istio-ca"
ACCOUNT: Final = "gateway"
# As Istio starts it: connections of a configuration that is no more are told so at once.
ENVOY_OPTIONS: Final = ("--drain-time-s", "45", "--drain-strategy", "immediate", "--disable-hot-restart")
_ISTIOD: Final = "istiod.istio-system.svc"


@dataclass(frozen=True)
class Front:
    """A gateway that somebody else has installed.

    Attributes:
        namespace: of its pods.
        selector: labels of its pods.
        ports: of its Service, and for each where the pods listen.
        address: one of the network that no pod has.
        admin: port of Envoy's own interface.
    """

    namespace: str
    selector: Mapping[str, str]
    ports: Mapping[int, int]
    address: str
    admin: int


# Of a stack with two gateways. Their pods listen elsewhere, as two processes of one network have to.
PUBLIC: Final = Front("gates-public", {"istio": "gates-public"}, {80: 18080, 443: 18443}, "10.255.0.11", 15100)
INTERNAL: Final = Front("gates-internal", {"istio": "gates-internal"}, {80: 18081}, "10.255.0.12", 15200)


def objects(front: Front) -> Iterator[dict[str, Any]]:
    """The objects that a gateway's chart makes: its pod runs nothing, Envoy runs beside it."""
    # So named, it is known for a part of the mesh.
    selector = dict(front.selector)
    metadata = {"name": ACCOUNT, "namespace": front.namespace, "labels": selector}
    names = {port: {80: "http", 443: "https"}[port] for port in front.ports}
    container = {
        "name": "istio-proxy",
        "image": "registry.example.com/proxyv2:1",
        "ports": [{"containerPort": port} for port in front.ports.values()],
    }
    pod = {"serviceAccountName": ACCOUNT, "containers": [container]}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": selector},
            "template": {"metadata": {"labels": selector}, "spec": pod},
        },
    }
    ports = [{"name": names[port], "port": port, "targetPort": target} for port, target in front.ports.items()]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": selector, "ports": ports},
    }
    # By its right to read Secrets istiod knows that a proxy may have a certificate.
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "watch", "list"]}]
    access = "rbac.authorization.k8s.io"
    yield {"apiVersion": f"{access}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": f"{access}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": access, "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT}],
    }


def bootstrap(front: Front, root: str, token: str) -> dict[str, Any]:
    """Envoy's own part: who it is, and where its configuration comes from.

    Args:
        front: the gateway.
        root: PEM of the certificate that istiod's is signed with.
        token: by which istiod knows the gateway's pods.
    """
    namespace = front.namespace
    from_istiod = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
    metadata = {"LABELS": dict(front.selector), "NAMESPACE": namespace}
    shown = [{"key": "authorization", "value": f"Bearer {token}"}]
    return {
        "node": {
            "id": f"router~{front.address}~gateway-0.{namespace}~{namespace}.svc.cluster.local",
            "cluster": f"gateway.{namespace}",
            "metadata": metadata | {"ISTIO_VERSION": "1.31.0", "CLUSTER_ID": "Kubernetes"},
        },
        "admin": {"address": _socket(front.admin)},
        "layered_runtime": {
            "layers": [
                {
                    "name": "static",
                    # As Istio's own bootstrap has it: larger regular expressions.
                    "static_layer": {"re2.max_program_size.error_level": 32768},
                }
            ]
        },
        "dynamic_resources": {
            "ads_config": {
                "api_type": "GRPC",
                "transport_api_version": "V3",
                "grpc_services": [{"envoy_grpc": {"cluster_name": "istiod"}, "initial_metadata": shown}],
            },
            "lds_config": from_istiod,
            "cds_config": from_istiod,
        },
        "static_resources": {"clusters": [_istiod(root)]},
    }


def _istiod(root: str) -> dict[str, Any]:
    """The cluster that istiod is for Envoy: over TLS, as it gives certificates to nobody else."""
    http2 = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    known = {
        "trusted_ca": {"inline_string": root},
        "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": _ISTIOD}}],
    }
    tls = {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": _ISTIOD,
        "common_tls_context": {"alpn_protocols": ["h2"], "validation_context": known},
    }
    return {
        "name": "istiod",
        "type": "STATIC",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2},
        "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
        "load_assignment": {
            "cluster_name": "istiod",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _socket(XDS)}}]}],
        },
    }


def _socket(port: int) -> dict[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
