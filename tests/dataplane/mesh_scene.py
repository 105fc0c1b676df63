"""Two estates in one cluster, one with sidecars and one without, and pods of theirs that run."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from components.serving import runtime
from local.triton import TritonServer
from tests.dataplane import mesh as parts
from tests.dataplane import mesh_pod
from tests.dataplane.mesh import Mesh
from tests.dataplane.mesh_network import fetch
from tests.dataplane.mesh_pod import PodProcess
from tests.dataplane.world import InWorld, World

DOMAIN: Final = "models.example.com"
ENABLED: Final = "istio-injection=enabled"
# A namespace that may call models, and one that may not.
CALLER, STRANGER = "shop", "street"
GATEWAYS: Final = "istio-ingress"
CONFIG: Final = {
    "backend": "python",
    "max_batch_size": 8,
    "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [1]}],
}
MODELS: Final[dict[str, dict[str, Any]]] = {
    # Its files are copied by an init container, as its configuration is laid over them.
    "steady": {"config": CONFIG, "heartbeat": {}, "debug": {}},
    "late": {"config": CONFIG},
    # Triton reads the store itself.
    "direct": {},
}
READY: Final = "/v2/models/steady/ready"
_SIDECARS: Final = {
    "domain": DOMAIN,
    "sidecars": True,
    "callers": [CALLER],
    "service": {"type": "ClusterIP"},
    "replicas": {"min": 1, "max": 1},
}
_NONE: Final = {
    "domain": "plain.example.com",
    "sidecars": False,
    "provider": "existing",
    "namespace": "gates",
    "selector": {"istio": "gates"},
}


def install(world: World, server: TritonServer, folder: Path) -> Mesh:
    """A stack that brings Istio, with sidecars, in a namespace that says nothing of them."""
    project = world.project("mesh")
    parts.write(project, MODELS)
    project.set(**parts.settings(world, **_SIDECARS))
    return parts.install(world, project, server, folder)


def deploy_plain(mesh: Mesh) -> InWorld:
    """A stack without sidecars, in a namespace that wants one in every pod."""
    project = mesh.world.project("plain")
    parts.write(project, MODELS)
    project.set(**parts.settings(mesh.world, **_NONE) | {"charts": {}})
    for name in ("gates", project.namespace):
        mesh.world.kubectl.run("create", "namespace", name)
    mesh.world.kubectl.run("label", "namespace", project.namespace, ENABLED)
    project.up().must_succeed()
    return project


def pod_of(mesh: Mesh, namespace: str, model: str, kind: str = "") -> dict[str, Any]:
    """The one pod of a model; ``kind`` is that of what stands beside it."""
    selector = f"app.kubernetes.io/name=triton{kind and '-'}{kind},app.kubernetes.io/instance={model}"
    (found,) = mesh_pod.wait_for_pods(mesh.world, namespace, selector, 1)
    return found


def init_containers(found: Mapping[str, Any]) -> list[str]:
    return [one["name"] for one in found["spec"].get("initContainers", [])]


def injected(found: Mapping[str, Any]) -> bool:
    """Whether a pod has anything of Istio's, a native sidecar or another."""
    names = [*init_containers(found), *(one["name"] for one in found["spec"]["containers"])]
    marked = "sidecar.istio.io/status" in found["metadata"].get("annotations", {})
    return marked or any(name.startswith("istio-") for name in names)


def started(mesh: Mesh, found: Mapping[str, Any]) -> PodProcess:
    """A pod whose containers all run, its traffic captured where it has a sidecar."""
    process = mesh.begin(found)
    if "istio-validation" in init_containers(found):
        mesh_pod.capture(process, mesh.world.tools.pilot_agent)
    process.start()
    return process


def gateway(mesh: Mesh) -> PodProcess:
    """The gateway's pod."""
    (found,) = mesh_pod.wait_for_pods(mesh.world, GATEWAYS, "istio=ingressgateway", 1)
    return started(mesh, found)


@dataclass(frozen=True)
class Callers:
    """Pods of other namespaces, beside a sidecar."""

    mesh: Mesh
    _pods: dict[str, PodProcess] = field(default_factory=dict)

    def ask(self, namespace: str, path: str) -> int:
        """Status of a request to the Service of ``steady``, out of a pod of a namespace."""
        if namespace not in self._pods:
            self._pods[namespace] = started(self.mesh, parts.deploy_caller(self.mesh.world, namespace))
        where = self.mesh.project.namespace
        service = self.mesh.world.kubectl.get("service", "steady", f"--namespace={where}")
        host = f"steady.{where}.svc.cluster.local:{runtime.HTTP_PORT}"
        url = f"http://{service['spec']['clusterIP']}:{runtime.HTTP_PORT}{path}"
        return fetch(self.mesh.world, self._pods[namespace].inside(), url, {"Host": host})[0]


def allowed(process: PodProcess) -> int:
    """Requests that a sidecar let through to Triton's HTTP port."""
    said = process.admin(f"stats?filter=inbound_0.0.0.0_{runtime.HTTP_PORT}.*rbac.allowed$")
    return int(said.rpartition(": ")[2])


def named(process: PodProcess) -> set[str]:
    """Namespaces whose identities a sidecar knows by name."""
    dump = json.loads(process.admin("config_dump?resource=dynamic_listeners"))
    return set(re.findall(r"/ns/([-a-z0-9]+)/", json.dumps(dump)))
