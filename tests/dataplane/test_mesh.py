"""Sidecars by one switch, on and off: who gets one, in which order a pod starts, and that it works beside one.

Real are the engine, the API server with Pod Security, Istio's charts, istiod with its webhook and its certificates,
its agent and its CNI's rules, Envoy and Triton; what stands for the rest is said in ``mesh``.
"""

import json
from collections.abc import Iterator

import pytest

from components.serving import runtime
from local.plane.errors import PlaneError
from local.toolchain import ToolchainForTests
from local.triton import TritonServer
from tests.dataplane import mesh as parts
from tests.dataplane import mesh_pod, mesh_scene
from tests.dataplane.mesh import Mesh
from tests.dataplane.mesh_network import fetch
from tests.dataplane.mesh_pod import PodProcess
from tests.dataplane.mesh_scene import (
    CALLER,
    DOMAIN,
    GATEWAYS,
    MODELS,
    READY,
    STRANGER,
    Callers,
    init_containers,
    injected,
    pod_of,
)
from tests.dataplane.world import made


@pytest.fixture(scope="module")
def mesh(
    tools_for_tests: ToolchainForTests, tritonserver: TritonServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mesh]:
    """A cluster of its own, with sidecars."""
    with made(tmp_path_factory.mktemp("mesh-world"), tools_for_tests) as world:
        found = mesh_scene.install(world, tritonserver, tmp_path_factory.mktemp("mesh"))
        yield found
        found.end()


@pytest.fixture(scope="module")
def plain(mesh: Mesh) -> str:
    """The namespace of a stack without sidecars."""
    return mesh_scene.deploy_plain(mesh).namespace


@pytest.fixture(scope="module")
def steady(mesh: Mesh) -> PodProcess:
    return mesh_scene.started(mesh, pod_of(mesh, mesh.project.namespace, "steady"))


@pytest.fixture(scope="module")
def alone(mesh: Mesh, plain: str) -> PodProcess:
    """The same model's pod without a sidecar."""
    return mesh_scene.started(mesh, pod_of(mesh, plain, "steady"))


@pytest.fixture(scope="module")
def callers(mesh: Mesh, steady: PodProcess) -> Callers:
    assert steady.probe("triton", "readinessProbe")
    return Callers(mesh)


class TestInjection:
    def test_every_pod_of_a_model_has_a_native_sidecar(self, mesh: Mesh) -> None:
        for model in MODELS:
            containers = pod_of(mesh, mesh.project.namespace, model)["spec"]["initContainers"]
            (proxy,) = [one for one in containers if one["name"] == "istio-proxy"]
            assert proxy["restartPolicy"] == "Always"
            assert proxy["startupProbe"]["httpGet"]["path"] == "/healthz/ready"

    @pytest.mark.parametrize(("model", "more"), [("steady", ["model-sync"]), ("direct", [])])
    def test_it_comes_before_what_fetches_the_models(self, model: str, more: list[str], mesh: Mesh) -> None:
        found = pod_of(mesh, mesh.project.namespace, model)
        assert init_containers(found) == ["istio-validation", "istio-proxy", *more]
        assert [one["name"] for one in found["spec"]["containers"]] == ["triton"]

    def test_the_namespace_admits_restricted_pods_only(self, mesh: Mesh) -> None:
        bad = parts.bare_pod("bad", mesh.project.namespace, {})
        del bad["spec"]["securityContext"], bad["spec"]["containers"][0]["securityContext"]
        with pytest.raises(PlaneError, match='violates PodSecurity "restricted'):
            mesh.world.kubectl.run("create", "--dry-run=server", "--filename=-", stdin=json.dumps(bad))

    def test_what_stands_beside_the_models_has_none(self, mesh: Mesh, plain: str) -> None:
        for namespace in (mesh.project.namespace, plain):
            for kind in ("heartbeat", "debug"):
                assert not injected(pod_of(mesh, namespace, "steady", kind))

    def test_switched_off_no_pod_is_touched_whatever_the_namespace_says(self, mesh: Mesh, plain: str) -> None:
        found = mesh.world.kubectl.get("pods", f"--namespace={plain}")["items"]
        assert len(found) == len(MODELS) + 2
        assert [one["metadata"]["name"] for one in found if injected(one)] == []

    def test_others_get_one_in_a_namespace_that_wants_it(self, mesh: Mesh, plain: str) -> None:
        other = parts.bare_pod("other", plain, {})
        said = mesh.world.kubectl.run(
            "create", "--dry-run=server", "--output=json", "--filename=-", stdin=json.dumps(other)
        )
        assert injected(json.loads(said))
        # Where the cluster does not say that it has native ones, only a pod that asks for one gets one.
        assert "istio-proxy" not in init_containers(json.loads(said))

    def test_no_pod_is_annotated_as_another_place_of_metrics(self, mesh: Mesh) -> None:
        annotations = pod_of(mesh, mesh.project.namespace, "steady")["metadata"]["annotations"]
        assert [name for name in annotations if name.startswith("prometheus.io/")] == []


class TestOrder:
    def test_everything_waits_for_what_it_needs(self, steady: PodProcess) -> None:
        assert steady.order == [
            "istio-validation started",
            "istio-validation ended with 0",
            "istio-proxy started",
            "istio-proxy passed startupProbe",
            "model-sync started",
            "model-sync ended with 0",
            "triton started",
            "triton passed startupProbe",
            "triton passed readinessProbe",
        ]

    def test_without_a_sidecar_too(self, alone: PodProcess) -> None:
        assert alone.order == [
            "model-sync started",
            "model-sync ended with 0",
            "triton started",
            "triton passed startupProbe",
            "triton passed readinessProbe",
        ]

    def test_models_arrive_through_the_sidecar_and_only_once_it_is_there(self, mesh: Mesh) -> None:
        late = mesh.begin(pod_of(mesh, mesh.project.namespace, "late"))
        mesh_pod.capture(late, mesh.world.tools.pilot_agent)
        assert late.run_init("istio-validation") == 0
        assert late.run_init("model-sync") != 0
        assert "Connection refused" in late.log("model-sync")
        late.begin("istio-proxy")
        late.until("istio-proxy", "startupProbe")
        assert not late.probe("triton", "livenessProbe")
        assert late.run_init("model-sync") == 0, late.log("model-sync")
        assert (late.volumes.path("models") / "late" / "config.pbtxt").exists()
        store = parts.STORE.removeprefix("http://")
        assert f"PassthroughCluster::{store}::cx_total::1\n" in late.admin("clusters")


class TestProbes:
    def test_the_agent_asks_triton(self, steady: PodProcess) -> None:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            asked = steady.container("triton")[name]["httpGet"]
            assert (asked["port"], asked["path"].split("/")[:3]) == (15020, ["", "app-health", "triton"])
            assert steady.probe("triton", name)

    def test_without_a_sidecar_the_node_asks_triton(self, alone: PodProcess) -> None:
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert alone.container("triton")[name]["httpGet"]["port"] == runtime.HTTP_PORT
            assert alone.probe("triton", name)


class TestMetrics:
    @pytest.mark.parametrize("which", ["steady", "alone"])
    def test_prometheus_reaches_them_where_it_is_told(self, which: str, request: pytest.FixtureRequest) -> None:
        running: PodProcess = request.getfixturevalue(which)
        where = f"--namespace={running.pod['metadata']['namespace']}"
        (told,) = running.world.kubectl.get("servicemonitor", "steady", where)["spec"]["endpoints"]
        ports = running.world.kubectl.get("service", "steady-v1", where)["spec"]["ports"]
        (name,) = [one["targetPort"] for one in ports if one["name"] == told["port"]]
        (port,) = [one["containerPort"] for one in running.container("triton")["ports"] if one["name"] == name]
        assert told["scheme"] == "http"
        status, text = running.fetch(port, told["path"])
        assert status == 200
        assert 'nv_inference_request_success{model="steady",version="3"}' in text

    def test_they_do_not_pass_the_sidecar(self, steady: PodProcess) -> None:
        port = runtime.METRICS_PORT
        counted = steady.admin(f"stats?filter=inbound_0.0.0.0_{port}.*rbac.(allowed|denied)$")
        assert steady.fetch(port, "/metrics")[0] == 200
        assert steady.admin(f"stats?filter=inbound_0.0.0.0_{port}.*rbac.(allowed|denied)$") == counted
        assert counted.count(": 0\n") == counted.count("\n") == 2


class TestAccess:
    def test_the_gateway_comes_in(self, mesh: Mesh, steady: PodProcess) -> None:
        url, host = f"http://{mesh_scene.gateway(mesh).address}{READY}", {"Host": f"steady.{DOMAIN}"}
        steady.running["istio-proxy"].until(lambda: fetch(mesh.world, (), url, host)[0] == 200)
        before = mesh_scene.allowed(steady)
        assert fetch(mesh.world, (), url, host)[0] == 200
        assert mesh_scene.allowed(steady) == before + 1

    @pytest.mark.parametrize(("namespace", "status"), [(CALLER, 200), (STRANGER, 403)])
    def test_callers_that_are_named_come_in(self, namespace: str, status: int, callers: Callers) -> None:
        assert callers.ask(namespace, READY) == status

    def test_the_sidecar_knows_nobody_else(self, mesh: Mesh, steady: PodProcess) -> None:
        assert mesh_scene.named(steady) == {CALLER, GATEWAYS, mesh.project.namespace}

    def test_without_an_identity_nobody_comes_in(self, steady: PodProcess) -> None:
        assert steady.fetch(runtime.HTTP_PORT, READY) == (403, "RBAC: access denied")

    def test_but_what_a_heartbeat_asks(self, steady: PodProcess) -> None:
        assert steady.fetch(runtime.HTTP_PORT, "/v2/models/steady/config")[0] == 200

    def test_a_pod_beside_the_models_comes_in_with_a_sidecar(self, mesh: Mesh, callers: Callers) -> None:
        """As a load test."""
        assert callers.ask(mesh.project.namespace, READY) == 200

    def test_without_sidecars_triton_answers_itself(self, alone: PodProcess) -> None:
        assert alone.fetch(runtime.HTTP_PORT, READY)[0] == 200

    def test_envoy_took_all_that_istiod_sent(self, steady: PodProcess) -> None:
        lines = steady.admin("stats?filter=update_rejected").splitlines()
        assert lines
        assert [line for line in lines if not line.endswith(": 0")] == []
