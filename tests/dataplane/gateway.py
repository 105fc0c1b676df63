"""A gateway on the plane: a real istiod that reads our objects, and a real Envoy that does what it makes of them."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from local import envoy
from tests.dataplane.backends import Backends
from tests.dataplane.world import Running, World

NAMESPACE: Final = "istio-ingress"
SELECTOR: Final = {"istio": "estate"}
PORT: Final = 80
# An address of the network that no pod has.
_ADDRESS: Final = "10.255.0.10"
_XDS, _HEALTH, _ADMIN = 15010, 8088, 15000
_ISTIOD_ENVIRONMENT: Final = {
    "PILOT_ENABLE_METADATA_EXCHANGE": "false",  # filters of Istio's own Envoy
    "PILOT_ENABLE_ALPN_FILTER": "false",
    "POD_NAMESPACE": "istio-system",
    "POD_NAME": "istiod-0",
}
_MESH: Final = {"enableAutoMtls": False, "accessLogFile": "/dev/stdout"}


@dataclass(frozen=True)
class Gate:
    """A running gateway and what answers behind it."""

    world: World
    backends: Backends
    istiod: Running
    envoy: Running

    def admin(self, path: str) -> str:
        """What Envoy says about itself."""
        status, text = self.world.fetch(f"http://127.0.0.1:{_ADMIN}/{path}")
        assert status == 200, text
        return text

    def routes(self) -> list[str]:
        """Names of the routes that Envoy has."""
        found = json.loads(self.admin("config_dump?resource=dynamic_route_configs"))["configs"]
        hosts = [host for one in found for host in one["route_config"].get("virtual_hosts", [])]
        return [route.get("name", "") for host in hosts for route in host.get("routes", [])]

    def rejected(self) -> dict[str, int]:
        """How often Envoy did not take what istiod sent, by counter."""
        lines = self.admin("stats?filter=update_rejected").splitlines()
        return {name: int(value) for name, _, value in (line.partition(": ") for line in lines)}


def install(world: World) -> None:
    """Istio's kinds, and the namespaces of Istio and of a gateway that somebody else has installed."""
    kinds = f"--filename={world.tools.istio_crds}"
    world.kubectl.run("apply", "--server-side", kinds)
    world.kubectl.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    for name in ("istio-system", NAMESPACE):
        world.kubectl.run("create", "namespace", name)
    items = {"apiVersion": "v1", "kind": "List", "items": list(_gateway())}
    world.kubectl.run("apply", "--server-side", "--filename=-", stdin=json.dumps(items))


def start(world: World, folder: Path) -> Gate:
    """Start what answers for pods, istiod, and Envoy; see :func:`install`.

    Args:
        world: where.
        folder: an empty one with a short path, for sockets.
    """
    program = Path(__file__).with_name("backends.py")
    backends = Backends(folder)
    answering = world.start("backends", sys.executable, program, folder, str(PORT))
    answering.until((folder / "control").exists)
    mesh, bootstrap = folder / "mesh.yaml", folder / "envoy.json"
    mesh.write_text(yaml.safe_dump(_MESH))
    bootstrap.write_text(json.dumps(_bootstrap()))
    istiod = world.start(
        "istiod",
        world.tools.pilot_discovery,
        "discovery",
        f"--kubeconfig={world.plane.kubeconfig}",
        f"--meshConfig={mesh}",
        f"--grpcAddr=127.0.0.1:{_XDS}",
        f"--httpAddr=127.0.0.1:{_HEALTH}",
        "--secureGRPCAddr=",
        "--httpsAddr=",
        "--monitoringAddr=127.0.0.1:15014",
        environment=_ISTIOD_ENVIRONMENT,
    )
    istiod.until(lambda: world.fetch(f"http://127.0.0.1:{_HEALTH}/ready")[0] == 200)
    proxy = world.start(
        "envoy", envoy.ensure(), "--config-path", bootstrap, "--concurrency", "2", "--use-dynamic-base-id"
    )
    proxy.until(lambda: world.fetch(f"http://127.0.0.1:{_ADMIN}/ready")[0] == 200)
    return Gate(world, backends, istiod, proxy)


def _gateway() -> Iterator[dict[str, Any]]:
    """The objects that somebody else's gateway has in the cluster: its pod runs nothing, Envoy runs beside it."""
    # So named, it is known for a part of the mesh.
    metadata = {"name": "gateway", "namespace": NAMESPACE, "labels": SELECTOR}
    container = {"name": "istio-proxy", "image": "registry.example.com/proxyv2:1", "ports": [{"containerPort": PORT}]}
    yield {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": SELECTOR},
            "template": {"metadata": {"labels": SELECTOR}, "spec": {"containers": [container]}},
        },
    }
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": SELECTOR, "ports": [{"name": "http", "port": PORT}]},
    }


def _bootstrap() -> dict[str, Any]:
    """Envoy's own part: who it is, and where its configuration comes from."""
    metadata = {"LABELS": SELECTOR, "NAMESPACE": NAMESPACE, "ISTIO_VERSION": "1.31.0", "CLUSTER_ID": "Kubernetes"}
    address = {"socket_address": {"address": "127.0.0.1", "port_value": _XDS}}
    http2 = {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}},
    }
    from_istiod = {"ads": {}, "resource_api_version": "V3", "initial_fetch_timeout": "0s"}
    return {
        "node": {
            "id": f"router~{_ADDRESS}~gateway-0.{NAMESPACE}~{NAMESPACE}.svc.cluster.local",
            "cluster": f"gateway.{NAMESPACE}",
            "metadata": metadata,
        },
        "admin": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": _ADMIN}}},
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
                "grpc_services": [{"envoy_grpc": {"cluster_name": "istiod"}}],
            },
            "lds_config": from_istiod,
            "cds_config": from_istiod,
        },
        "static_resources": {
            "clusters": [
                {
                    "name": "istiod",
                    "type": "STATIC",
                    "connect_timeout": "5s",
                    "typed_extension_protocol_options": {
                        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": http2
                    },
                    "load_assignment": {
                        "cluster_name": "istiod",
                        "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
                    },
                }
            ]
        },
    }
