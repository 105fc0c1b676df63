"""Who reads the store and with which credentials, and how Triton is told to load from it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import ONNX, TENSORS, Render

Renderer = Callable[..., Render]
KEYS = "credentials: {secret: store-keys}\n"
FROM_SECRET = [{"secretRef": {"name": "store-keys"}}]
MEMBERS = f"members: {{decode: {{}}, classify: {{config: {{backend: python, {TENSORS}}}}}}}\n"


def containers(found: Render) -> dict[str, dict[str, Any]]:
    pod = found.pod()
    return {container["name"]: container for container in [*pod["containers"], *pod.get("initContainers", [])]}


def control(found: Render) -> list[str]:
    return [arg for arg in found.triton()["args"] if arg.startswith(("--model-control", "--load-model"))]


class TestServiceAccount:
    @pytest.mark.parametrize("more", ["", ONNX], ids=["direct", "synced"])
    def test_the_pod_runs_as_it(self, more: str, render: Renderer) -> None:
        assert render({"m": f"credentials: {{serviceAccount: reader}}\n{more}"}).pod()["serviceAccountName"] == "reader"

    def test_the_token_of_the_cluster_stays_out_of_the_pod(self, render: Renderer) -> None:
        pod = render({"m": "credentials: {serviceAccount: reader}\n"}).pod()
        assert pod["automountServiceAccountToken"] is False

    def test_no_container_gets_a_secret_then(self, render: Renderer) -> None:
        found = render({"m": f"credentials: {{serviceAccount: reader}}\n{ONNX}"})
        assert not any("envFrom" in container for container in containers(found).values())

    @pytest.mark.parametrize("more", ["", KEYS])
    def test_without_one_the_pod_runs_as_the_default(self, more: str, render: Renderer) -> None:
        assert "serviceAccountName" not in render({"m": more}).pod()


class TestSecret:
    @pytest.mark.parametrize("more", [ONNX, "load: sync\n"])
    def test_of_a_synced_repository_only_the_sync_gets_it(self, more: str, render: Renderer) -> None:
        found = containers(render({"m": KEYS + more}))
        assert found["model-sync"]["envFrom"] == FROM_SECRET
        assert "envFrom" not in found["triton"]

    @pytest.mark.parametrize("more", ["", "load: direct\n"])
    def test_triton_gets_it_where_it_reads_the_store_itself(self, more: str, render: Renderer) -> None:
        found = containers(render({"m": KEYS + more}))
        assert found.keys() == {"triton"}
        assert found["triton"]["envFrom"] == FROM_SECRET

    @pytest.mark.parametrize("more", ["", ONNX], ids=["direct", "synced"])
    def test_it_is_named_once_and_nothing_of_it_is_copied(self, more: str, render: Renderer) -> None:
        found = render({"m": KEYS + more})
        assert json.dumps(found.objects()).count("store-keys") == 1
        assert "store-keys" not in json.dumps(found.outputs)

    def test_the_estate_makes_no_secret(self, render: Renderer) -> None:
        assert render({"m": KEYS}).objects("Secret") == []

    def test_one_revision_may_have_another(self, render: Renderer) -> None:
        more = "revisions: {v1: {}, v2: {credentials: {secret: other}}}\ntraffic: {split: {v1: 100}}\n"
        found = render({"m": KEYS + more})
        secrets = [found.triton(f"m-{name}")["envFrom"][0]["secretRef"]["name"] for name in ("v1", "v2")]
        assert secrets == ["store-keys", "other"]


class TestEnvironment:
    def test_variables_reach_triton_in_a_fixed_order(self, render: Renderer) -> None:
        found = render({"m": "environment: {OMP_NUM_THREADS: '4', A: b}\n"}).triton()["env"]
        assert found[1:] == [{"name": "A", "value": "b"}, {"name": "OMP_NUM_THREADS", "value": "4"}]

    def test_home_stays_on_the_writable_volume(self, render: Renderer) -> None:
        found = render({"m": "environment: {A: b}\n"}).triton()["env"]
        assert found[0] == {"name": "HOME", "value": "/tmp"}  # noqa: S108  # a volume

    def test_the_sync_gets_none_of_them(self, render: Renderer) -> None:
        assert "env" not in containers(render({"m": "environment: {A: b}\n" + ONNX}))["model-sync"]


class TestLoad:
    def test_a_repository_may_be_synced_without_a_configuration(self, render: Renderer) -> None:
        found = render({"m": "load: sync\n"})
        assert "model-sync" in containers(found)
        assert "--model-repository=/models" in found.triton()["args"]
        assert found.objects("ConfigMap") == []

    def test_direct_is_what_happens_without_a_configuration_anyway(self, render: Renderer) -> None:
        assert render({"m": ""}).pod() == render({"m": "load: direct\n"}).pod()


class TestControl:
    def test_models_are_loaded_once_unless_told_otherwise(self, render: Renderer) -> None:
        assert control(render({"m": MEMBERS})) == ["--model-control-mode=none"]

    def test_explicit_loads_the_model_of_the_file(self, render: Renderer) -> None:
        assert control(render({"m": "control: explicit\n"})) == ["--model-control-mode=explicit", "--load-model=m"]

    def test_explicit_loads_every_member_too(self, render: Renderer) -> None:
        assert control(render({"m": "control: explicit\n" + MEMBERS})) == [
            "--model-control-mode=explicit",
            "--load-model=m",
            "--load-model=decode",
            "--load-model=classify",
        ]

    def test_it_loads_the_model_by_its_name_inside_triton(self, render: Renderer) -> None:
        more = f"control: explicit\nconfig: {{name: My_Model, backend: python, {TENSORS}}}\n"
        assert control(render({"m": more}))[1:] == ["--load-model=My_Model"]

    def test_poll_follows_the_store(self, render: Renderer) -> None:
        found = render({"m": "control: poll\nserver: {repository-poll-secs: 30}\n"})
        assert control(found) == ["--model-control-mode=poll"]
        assert "--repository-poll-secs=30" in found.triton()["args"]
        assert "--model-repository=s3://acme/m" in found.triton()["args"]
