"""The literal pulumi on a real API server: up, again, change, refuse, interrupt, drift, destroy."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable

from tests.engine.project import Outcome, Project

MODELS = ["fraud-score", "inception-graphdef", "mobilenet", "photo-tagger"]


class TestFirstUp:
    def test_every_model_is_available_on_the_pool_that_serves_it(self, deployed: Project) -> None:
        assert deployed.deployments() == {f"{model}-v1": 1 for model in MODELS}
        chosen = "--selector=app.kubernetes.io/name=triton"
        pods = deployed.kubectl.get("pods", f"--namespace={deployed.namespace}", chosen)["items"]
        nodes = {pod["metadata"]["labels"]["app.kubernetes.io/instance"]: pod["spec"]["nodeName"] for pod in pods}
        assert nodes == {
            "fraud-score": "general-0",
            "inception-graphdef": "main-a100-0",
            "mobilenet": "main-t4-0",
            "photo-tagger": "main-a100-0",
        }

    def test_each_model_has_its_objects(self, deployed: Project) -> None:
        found = deployed.objects("configmaps,deployments,services,hpa,pdb,networkpolicies")
        configured = [model for model in MODELS if model != "fraud-score"]
        expected = [f"ConfigMap/{model}-v1-config" for model in configured] + ["ConfigMap/kube-root-ca.crt"]
        kinds = ("Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service")
        expected += [f"{kind}/{model}-v1" for kind in kinds for model in MODELS]
        expected += [f"Service/{model}" for model in MODELS]
        beside = ("ConfigMap", "Deployment", "NetworkPolicy", "Service")
        expected += [f"{kind}/mobilenet-v1-heartbeat" for kind in beside]
        expected += ["ConfigMap/triton-heartbeat", "Service/mobilenet-v1-replicas"]
        assert found == sorted(expected)

    def test_the_outputs_carry_every_models_addresses(self, deployed: Project) -> None:
        outputs = deployed.outputs()
        assert outputs["contract"] == "triton-estate/v1"
        assert sorted(outputs["models"]) == MODELS
        inception = outputs["models"]["inception-graphdef"]
        host = f"inception-graphdef.{deployed.namespace}.svc.cluster.local"
        assert inception["httpUrl"] == f"http://{host}:8000"
        assert inception["grpcTarget"] == f"{host}:8001"
        assert inception["metricsPort"] == 8002

    def test_an_address_in_the_outputs_is_a_service_with_a_ready_pod_behind_it(self, deployed: Project) -> None:
        slices = deployed.kubectl.get("endpointslices", f"--namespace={deployed.namespace}")["items"]
        ready = {
            one["metadata"]["labels"]["kubernetes.io/service-name"]: sorted(port["port"] for port in one["ports"])
            for one in slices
            if any(endpoint["conditions"]["ready"] for endpoint in one["endpoints"])
        }
        beside = {"mobilenet-v1-heartbeat": [8003], "mobilenet-v1-replicas": [8000]}
        assert ready == {f"{model}{of}": [8000, 8001, 8002] for model in MODELS for of in ("", "-v1")} | beside


class TestAgain:
    def test_a_second_up_changes_nothing(self, deployed: Project) -> None:
        assert deployed.up().must_succeed().changes == {}

    def test_changing_one_model_touches_only_that_model(self, deployed: Project) -> None:
        file = deployed.folder / "models" / "mobilenet.yaml"
        text = file.read_text()
        try:
            file.write_text(text.replace("max_batch_size: 32", "max_batch_size: 64"))
            changed = deployed.up().must_succeed().changes
        finally:
            file.write_text(text)
            deployed.up().must_succeed()
        assert changed == {"ConfigMap mobilenet-v1-config": "update", "Deployment mobilenet-v1": "update"}

    def test_a_changed_config_rolls_the_pods_without_touching_replicas(self, deployed: Project) -> None:
        deployed.kubectl.run("scale", "deployment/mobilenet-v1", "--replicas=2", f"--namespace={deployed.namespace}")
        file = deployed.folder / "models" / "mobilenet.yaml"
        text = file.read_text()
        try:
            file.write_text(text.replace("max_batch_size: 32", "max_batch_size: 48"))
            deployed.up().must_succeed()
            assert deployed.deployments()["mobilenet-v1"] == 2
            config = deployed.kubectl.get("configmap/mobilenet-v1-config", f"--namespace={deployed.namespace}")
            assert "max_batch_size: 48" in config["data"]["mobilenet.pbtxt"]
        finally:
            file.write_text(text)
            deployed.kubectl.run(
                "scale", "deployment/mobilenet-v1", "--replicas=1", f"--namespace={deployed.namespace}"
            )
            deployed.up().must_succeed()

    def test_a_revision_comes_is_promoted_and_goes_without_touching_the_other(self, deployed: Project) -> None:
        file = deployed.folder / "models" / "fraud_score.yaml"
        text = file.read_text()
        second = text + "revisions: {v1: {}, v2: {image: 'example.org/triton:2'}}\n"
        weights = "traffic: {split: {v1: %d, v2: %d}}\n"
        try:
            file.write_text(second + weights % (100, 0))
            added = deployed.up().must_succeed().changes
            file.write_text(second + weights % (0, 100))
            promoted = deployed.up().must_succeed().changes
            behind = deployed.kubectl.get("service/fraud-score", f"--namespace={deployed.namespace}")
        finally:
            file.write_text(text)
            dropped = deployed.up().must_succeed().changes
        assert set(added.values()) == {"create"}
        assert all(name.endswith("fraud-score-v2") for name in added)
        assert promoted == {"Service fraud-score": "update"}
        assert behind["spec"]["selector"]["app.kubernetes.io/version"] == "v2"
        assert {name for name, op in dropped.items() if op == "delete"} == set(added)
        assert {name for name, op in dropped.items() if op != "delete"} == {"Service fraud-score"}

    def test_changing_a_pools_size_replaces_only_its_nodes(self, new_project: Callable[[str], Project]) -> None:
        project = new_project("pools")
        for file in (project.folder / "models").glob("*.yaml"):
            if "fraud" not in file.name:
                file.unlink()
        pools = project.settings()["gpuPools"]
        project.set(models={})
        project.up().must_succeed()
        project.set(gpuPools=[pools[0] | {"gpusPerNode": 8}, pools[1]])
        assert set(project.up().must_succeed().changes) == {"Node pools-a100-0"}
        node = project.kubectl.get("node/pools-a100-0")
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


class TestRefusal:
    def test_an_invalid_model_file_is_refused_before_anything_is_applied(self, deployed: Project) -> None:
        file = deployed.folder / "models" / "mobilenet.yaml"
        text = file.read_text()
        before = deployed.objects("configmaps,deployments,services,hpa")
        try:
            wrong = text.replace("max_batch_size: 32", "max_batch_sise: 32").replace("memory: 4Gi", "memory: 4000")
            file.write_text(wrong)
            (deployed.folder / "models" / "new.yaml").write_text("name: triton_test\nowner: vision\n")
            outcome = deployed.up()
        finally:
            file.write_text(text)
            (deployed.folder / "models" / "new.yaml").unlink()
        assert outcome.code != 0
        assert "Traceback" not in outcome.text
        assert "max_batch_sise" not in outcome.text or "did you mean max_batch_size" in outcome.text
        for expected in ("models/mobilenet.yaml:5: resources.memory", "models/new.yaml:1: name", "write triton-test"):
            assert expected in outcome.text
        assert not [op for op in outcome.changes.values() if op in {"create", "update", "delete", "replace"}]
        assert deployed.objects("configmaps,deployments,services,hpa") == before
        assert deployed.up().must_succeed().changes == {}

    def test_a_misspelt_stack_setting_names_the_right_one(self, deployed: Project) -> None:
        text = deployed.stack_file.read_text()
        try:
            deployed.stack_file.write_text(text.replace("triton-estate:gpuPools", "triton-estate:gpuPool"))
            outcome = deployed.pulumi("preview")
        finally:
            deployed.stack_file.write_text(text)
        assert outcome.code != 0
        assert "did you mean gpuPools?" in outcome.text


class TestCluster:
    def test_the_same_program_runs_on_any_cluster_that_a_kubeconfig_reaches(
        self, new_project: Callable[[str], Project]
    ) -> None:
        project = new_project("own")
        kubeconfig = project.folder / "own-cluster"
        kubeconfig.write_text(_renamed_context(project, "somebody"))
        project.set(cluster={"provider": "existing", "kubeconfig": str(kubeconfig), "context": "somebody"})
        project.up().must_succeed()
        assert project.deployments() == {f"{model}-v1": 1 for model in MODELS}

    def test_an_embedded_stack_leaves_the_cluster_alone_that_the_users_kubeconfig_names(
        self, new_project: Callable[[str], Project]
    ) -> None:
        project = new_project("stray")
        production = project.folder / "production"
        production.write_text(_renamed_context(project, "production"))
        outcome = project.up(KUBECONFIG=str(production))
        assert outcome.code != 0
        assert 'context "triton-estate" does not exist' in outcome.text
        assert _everything(project) == []

    def test_an_unreachable_cluster_ends_in_words(self, new_project: Callable[[str], Project]) -> None:
        project = new_project("far")
        kubeconfig = project.folder / "far-cluster"
        server = re.sub(r"server: .*", "server: https://127.0.0.1:9", project.plane.kubeconfig.read_text())
        kubeconfig.write_text(server)
        project.set(cluster={"provider": "existing", "kubeconfig": str(kubeconfig)})
        outcome = project.up()
        assert outcome.code != 0
        assert "configured Kubernetes cluster is unreachable" in outcome.text
        assert "Traceback" not in outcome.text


class TestDrift:
    def test_refresh_sees_a_deployment_deleted_by_hand_and_up_brings_it_back(self, deployed: Project) -> None:
        deployed.kubectl.run("delete", "deployment/fraud-score-v1", f"--namespace={deployed.namespace}")
        refreshed = deployed.pulumi("refresh", "--yes", "--skip-preview").must_succeed()
        assert "fraud-score-v1 deleted" in refreshed.text.replace("  ", " ")
        assert deployed.up().must_succeed().changes == {"Deployment fraud-score-v1": "create"}
        assert deployed.deployments()["fraud-score-v1"] == 1


class TestInterruption:
    def test_ctrl_c_in_the_middle_of_an_up_is_followed_by_a_clean_recovery(
        self, new_project: Callable[[str], Project]
    ) -> None:
        project = new_project("broken-off")
        with subprocess.Popen(
            project.command("up", "--yes", "--skip-preview"),
            cwd=project.folder,
            env=project.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as running:
            _wait(lambda: any(name.startswith("Deployment/") for name in project.objects("deployments")))
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does: to everybody at once
            text, _ = running.communicate(timeout=120)
        assert running.returncode != 0
        assert "Traceback" not in text
        again = project.up().must_succeed()
        assert "pending" not in again.text.lower()
        assert project.deployments() == {f"{model}-v1": 1 for model in MODELS}
        assert project.up().must_succeed().changes == {}


class TestDestroy:
    def test_nothing_is_left_behind(self, new_project: Callable[[str], Project]) -> None:
        project = new_project("gone")
        before = _everything(project)
        project.up().must_succeed()
        assert _everything(project) != before
        outcome: Outcome = project.pulumi("destroy", "--yes", "--skip-preview").must_succeed()
        assert set(outcome.changes.values()) == {"delete"}
        assert _everything(project) == before
        assert project.outputs() == {}


def _renamed_context(project: Project, name: str) -> str:
    return project.plane.kubeconfig.read_text().replace("triton-estate\n", f"{name}\n")


def _everything(project: Project) -> list[str]:
    kinds = "namespaces,nodes,deployments,replicasets,pods,services,endpointslices,configmaps,hpa,pv,crd"
    found = project.kubectl.get(kinds, "--all-namespaces")["items"]
    own = [one["metadata"] for one in found]
    return sorted(
        f"{one['kind']}/{metadata['name']}"
        for one, metadata in zip(found, own, strict=True)
        if metadata.get("namespace", metadata["name"]) == project.namespace
        or metadata["name"].startswith(project.stack)
    )


def _wait(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "did not happen in time"
        time.sleep(0.1)
