"""A gateway on the plane: a real istiod that reads our objects, and a real Envoy that does what it makes of them."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from local import envoy
from tests.dataplane.backends import Backends
from tests.dataplane.gateway_front import ACCOUNT, AUDIENCE, ENVOY_OPTIONS, XDS, Front, bootstrap, objects
from tests.dataplane.world import Running, World

NAMESPACE: Final = "istio-ingress"
SELECTOR: Final = {"istio": "estate"}
PORT: Final = 80
FRONT: Final = Front(NAMESPACE, SELECTOR, {PORT: PORT}, "10.255.0.10", 15000)
_HEALTH: Final = 8088
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
    front: Front = FRONT

    def admin(self, path: str) -> str:
        """What Envoy says about itself."""
        status, text = self.world.fetch(f"http://127.0.0.1:{self.front.admin}/{path}")
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


def install(world: World, fronts: Sequence[Front] = (FRONT,)) -> None:
    """Istio's kinds, and the namespaces of Istio and of gateways that somebody else has installed."""
    kinds = f"--filename={world.tools.istio_crds}"
    world.kubectl.run("apply", "--server-side", kinds)
    world.kubectl.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    for name in ("istio-system", *(front.namespace for front in fronts)):
        world.kubectl.run("create", "namespace", name)
    items = {"apiVersion": "v1", "kind": "List", "items": [one for front in fronts for one in objects(front)]}
    # Or it would first fetch a description of all kinds, which is just being made anew.
    world.kubectl.run("apply", "--server-side", "--validate=false", "--filename=-", stdin=json.dumps(items))


def start(
    world: World,
    folder: Path,
    fronts: Sequence[Front] = (FRONT,),
    environment: Mapping[str, str] | None = None,
) -> Gate:
    """Start what answers for pods, istiod, and the first gateway's Envoy; see :func:`install` and :func:`join`.

    Args:
        world: where.
        folder: an empty one with a short path, for sockets.
        fronts: gateways whose ports get doors.
        environment: more variables of istiod.
    """
    program = Path(__file__).with_name("backends.py")
    backends = Backends(folder)
    ports = [str(port) for front in fronts for port in front.ports.values()]
    answering = world.start("backends", sys.executable, program, folder, *ports)
    answering.until((folder / "control").exists)
    mesh = folder / "mesh.yaml"
    mesh.write_text(yaml.safe_dump(_MESH))
    istiod = world.start(
        "istiod",
        world.tools.pilot_discovery,
        "discovery",
        f"--kubeconfig={world.plane.kubeconfig}",
        f"--meshConfig={mesh}",
        "--grpcAddr=127.0.0.1:15010",
        f"--secureGRPCAddr=127.0.0.1:{XDS}",
        f"--httpAddr=127.0.0.1:{_HEALTH}",
        "--httpsAddr=",
        "--monitoringAddr=127.0.0.1:15014",
        environment=_ISTIOD_ENVIRONMENT | dict(environment or {}),
    )
    istiod.until(lambda: world.fetch(f"http://127.0.0.1:{_HEALTH}/ready")[0] == 200)
    return _joined(world, backends, istiod, fronts[0])


def join(gate: Gate, front: Front) -> Gate:
    """Start the Envoy of one more gateway, which has the same istiod and the same pods behind it."""
    return _joined(gate.world, gate.backends, gate.istiod, front)


def _joined(world: World, backends: Backends, istiod: Running, front: Front) -> Gate:
    config = backends.folder / f"{front.namespace}.json"
    roots = f"/api/v1/namespaces/{front.namespace}/configmaps/istio-ca-root-cert"
    # istiod puts it there for every pod that will want to know whether it is istiod.
    istiod.until(lambda: world.kubectl.raw(roots))
    root = (world.kubectl.raw(roots) or {})["data"]["root-cert.pem"]
    token = world.kubectl.run("create", "token", ACCOUNT, f"--namespace={front.namespace}", f"--audience={AUDIENCE}")
    config.write_text(json.dumps(bootstrap(front, root, token.strip())))
    options = ("--concurrency", "2", *ENVOY_OPTIONS)
    proxy = world.start(f"envoy-{front.namespace}", envoy.ensure(), "--config-path", config, *options)
    proxy.until(lambda: world.fetch(f"http://127.0.0.1:{front.admin}/ready")[0] == 200)
    return Gate(world, backends, istiod, proxy, front)
