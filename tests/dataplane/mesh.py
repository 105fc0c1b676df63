"""A mesh on the plane: Istio as its own charts install it through the stack, its real istiod, agents and Envoys.

Three things stand for what this machine cannot have. No image is pulled: a container's program is the real one, built
from Istio's Go module, and Envoy is the upstream one, so Istio's filters for its own metrics are off. Istio's CNI
plugin runs on no node: the rules it would write are made by Istio's own code and written by ``mesh_redirect``. And in
place of rclone a few lines of Python fetch the models, by HTTP from a store outside the mesh.
"""

import json
import sys
import tarfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from local import envoy
from local.triton import TritonServer
from spec.catalog import load
from spec.ingress import CONTROL_NAMESPACE
from tests.dataplane import mesh_network, mesh_pod
from tests.dataplane.mesh_pod import Image, PodProcess
from tests.dataplane.serving import write_models
from tests.dataplane.world import InWorld, Running, World

# An address of the network that no pod has.
STORE: Final = "http://10.255.0.30:9000"
CALLER: Final = "caller"
CHARTS: Final = ("base", "istiod", "cni", "gateway")
_DISCOVERY: Final = f"istiod.{CONTROL_NAMESPACE}.svc"
_HEALTH: Final = 8080
_INSTALL_SECONDS: Final = 240.0
# Filters of Istio's own Envoy.
_ISTIOD_ENVIRONMENT: Final = {"PILOT_ENABLE_METADATA_EXCHANGE": "false", "PILOT_ENABLE_ALPN_FILTER": "false"}
_WEBHOOK: Final = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/istio-sidecar-injector"
_SYNC: Final = """
import io, re, sys, tarfile, urllib.request
source, target = sys.argv[-2:]
store = re.search('endpoint="(.+?)"', source)[1]
with urllib.request.urlopen(f"{store}/{source.rpartition(':')[2]}.tar", timeout=5) as found:
    tarfile.open(fileobj=io.BytesIO(found.read())).extractall(target)
"""


@dataclass(frozen=True)
class Mesh:
    """A running mesh.

    Attributes:
        world: where.
        project: the stack that installed it.
        istiod: the process.
        images: what stands for the images of pods, by container.
        folder: for files.
        pods: those that run.
    """

    world: World
    project: InWorld
    istiod: Running
    images: Mapping[str, Image]
    folder: Path
    pods: list[PodProcess] = field(default_factory=list)

    def begin(self, pod: Mapping[str, Any]) -> PodProcess:
        """The network of a pod, and nothing in it."""
        folder = self.folder / pod["metadata"]["name"]
        folder.mkdir()
        self.pods.append(mesh_pod.begin(self.world, pod, self.images, folder, self._hosts()))
        return self.pods[-1]

    def end(self) -> None:
        """End all pods at once, none of which has anything to finish."""
        for pod in self.pods:
            pod.kill()

    def _hosts(self) -> Path:
        hosts = self.folder / "hosts"
        if not hosts.exists():
            service = self.world.kubectl.get("service", "istiod", f"--namespace={CONTROL_NAMESPACE}")
            hosts.write_text(f"127.0.0.1 localhost\n{service['spec']['clusterIP']} {_DISCOVERY}\n")
        return hosts


def install(world: World, project: InWorld, server: TritonServer, folder: Path) -> Mesh:
    """Bring up a stack that installs Istio, and run its istiod as soon as its chart is there.

    Args:
        world: an empty one.
        project: its models have their files in the store.
        server: what runs in a model's pods.
        folder: an empty one for files.
    """
    mesh_network.connect(world)
    _start_store(world, project, folder / "store")
    with ThreadPoolExecutor(1) as threads:
        deploying = threads.submit(project.up)
        limit = time.monotonic() + _INSTALL_SECONDS
        while not world.kubectl.raw(_WEBHOOK):
            assert not deploying.done(), deploying.result().text
            assert time.monotonic() < limit
            time.sleep(0.2)
        istiod = _start_istiod(world, folder)
        deploying.result().must_succeed()
    return Mesh(world, project, istiod, _images(world, server), folder)


def settings(world: World, **ingress: object) -> dict[str, object]:
    """Of a stack that installs Istio from the charts of the version that runs here."""
    charts = {name: str(world.tools.istio_charts / name) for name in CHARTS}
    cluster = {"provider": "existing", "kubeconfig": str(world.plane.kubeconfig)}
    return {"cluster": cluster, "models": {}, "gpuPools": [], "charts": charts, "ingress": ingress}


def write(project: InWorld, models: Mapping[str, Mapping[str, object]]) -> None:
    """The models of a stack, from the store of this machine."""
    for file in (project.folder / "models").iterdir():
        file.unlink()
    for name, more in models.items():
        repository = f"s3://{STORE}/acme/{name}"
        content: dict[str, object] = {"name": name, "owner": "tests", "repository": repository}
        content |= {"resources": {"cpu": 1, "memory": "1Gi"}} | dict(more)
        (project.folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(content))


def bare_pod(name: str, namespace: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """A pod of somebody else that does nothing, of the kind that every namespace admits."""
    security = {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {"name": CALLER, "image": "registry.example.com/caller:1", "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {"containers": [container], "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
    }


def deploy_caller(world: World, namespace: str) -> dict[str, Any]:
    """A pod beside a sidecar, in a namespace that need not be there."""
    if not world.kubectl.raw(f"/api/v1/namespaces/{namespace}"):
        world.kubectl.run("create", "namespace", namespace)
    world.kubectl.run("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=30s")
    labels = {"app": CALLER, "sidecar.istio.io/inject": "true"}
    pod = bare_pod(f"{CALLER}-{namespace}", namespace, labels)
    world.kubectl.run("create", "--filename=-", stdin=json.dumps(pod))
    (found,) = mesh_pod.wait_for_pods(world, namespace, f"app={CALLER}", 1)
    return found


def _start_store(world: World, project: InWorld, folder: Path) -> None:
    estate = load(project.folder / "models", project.settings(), project.stack_file.name)
    (folder / "acme").mkdir(parents=True)
    for model in estate.models:
        write_models(model.primary, folder / model.name)
        with tarfile.open(folder / "acme" / f"{model.name}.tar", "w") as archive:
            archive.add(folder / model.name, ".")
    address, _, port = STORE.removeprefix("http://").partition(":")
    store = world.start("store", sys.executable, "-m", "http.server", "--bind", address, "--directory", folder, port)
    store.until(lambda: world.fetch(STORE)[0] == 200)


def _start_istiod(world: World, folder: Path) -> Running:
    """The container of istiod's pods, with their account, on the address of each of them."""
    deployment = world.kubectl.get("deployment", "istiod", f"--namespace={CONTROL_NAMESPACE}")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    fields = {"POD_NAME": "istiod-0", "POD_NAMESPACE": CONTROL_NAMESPACE, "SERVICE_ACCOUNT": "istiod"}
    told = yaml.safe_load(world.kubectl.get("configmap", "istio", f"--namespace={CONTROL_NAMESPACE}")["data"]["mesh"])
    told.pop("defaultProviders")  # metrics, a filter of Istio's own Envoy
    mesh = folder / "mesh.yaml"
    mesh.write_text(yaml.safe_dump(told))
    command = (world.tools.pilot_discovery, *container["args"], f"--meshConfig={mesh}")
    istiod = world.start(
        "istiod",
        *command,
        account=f"{CONTROL_NAMESPACE}/istiod",
        environment=variables | fields | _ISTIOD_ENVIRONMENT,
    )
    istiod.until(lambda: world.fetch(f"http://127.0.0.1:{_HEALTH}/ready")[0] == 200)
    return istiod


def _images(world: World, server: TritonServer) -> dict[str, Image]:
    agent, python = Path("/usr/local/bin/pilot-agent"), Path(sys.executable).resolve()
    bootstrap = world.tools.istio_charts / "envoy_bootstrap.json"
    proxy = Image(
        lambda arguments: [agent, *arguments],
        files={
            str(agent): world.tools.pilot_agent,
            "/usr/local/bin/envoy": envoy.ensure(),
            "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json": bootstrap,
        },
    )

    def sync(arguments: Sequence[str]) -> list[str | Path]:
        return [python, "-c", _SYNC, *arguments]

    libraries = (server.binary, server.python.resolve(), server.base.libraries)
    return {
        "istio-validation": proxy,
        "istio-proxy": proxy,
        "model-sync": Image(sync, needs=(python,)),
        CALLER: Image(lambda _: ["sleep", "infinity"]),
        "triton": Image(server.command, environment=server.environment(), needs=libraries),
    }
