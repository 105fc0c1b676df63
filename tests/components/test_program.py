"""The program as a whole: one object of everything for each model, all valid, nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Generator
from functools import cache
from typing import Any
from unittest import mock

import kubernetes_validate
import pulumi
import pytest
from kubernetes_validate import utils

from tests.components.conftest import PROD_MODELS, Render, unsealed


@pytest.fixture(scope="module", autouse=True)
def schemas() -> Generator[None]:
    """The validator reads megabytes of schemas anew for each object: once is enough."""
    with mock.patch.object(utils, "schema_contents", cache(utils.schema_contents)):
        yield


def built_in(found: Render) -> list[dict[str, Any]]:
    """The objects of Kubernetes itself, whose schemas the validator has."""
    groups = [(item["apiVersion"].rpartition("/")[0], item) for item in found.objects()]
    return [item for group, item in groups if "." not in group or group.endswith(".k8s.io")]


def check(obj: dict[str, Any]) -> None:
    kubernetes_validate.validate(unsealed(obj), kubernetes_validate.latest_version(), strict=True)


class TestObjects:
    def test_each_of_dev_is_valid_in_the_newest_kubernetes(self, dev: Render) -> None:
        for found in built_in(dev):
            check(found)

    def test_each_of_prod_is_valid_in_the_newest_kubernetes(self, prod: Render) -> None:
        for found in built_in(prod):
            check(found)

    def test_the_check_would_notice_a_field_that_does_not_exist(self, dev: Render) -> None:
        broken = dev.one("Deployment", "mobilenet-v1")
        broken = broken | {"spec": broken["spec"] | {"replica": 3}}
        with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
            check(broken)

    def test_no_two_of_a_kind_share_a_name(self, prod: Render) -> None:
        names = Counter((found["kind"], found["metadata"]["name"]) for found in prod.objects())
        assert set(names.values()) == {1}

    def test_all_but_nodes_and_namespace_live_in_the_namespace(self, prod: Render) -> None:
        for found in prod.objects():
            namespace = found["metadata"].get("namespace")
            assert namespace == (None if found["kind"] in {"Node", "Namespace"} else "models")

    def test_the_namespace_is_made_once(self, prod: Render) -> None:
        assert prod.one("Namespace")["metadata"]["name"] == "models"

    def test_every_name_is_a_dns_label_of_63_characters(self, prod: Render) -> None:
        for found in prod.objects():
            assert len(found["metadata"]["name"]) <= 63
            assert "." not in found["metadata"]["name"]

    def test_nothing_skips_the_wait_for_it_to_work(self, prod: Render) -> None:
        assert "skipAwait" not in json.dumps(prod.objects())

    def test_everything_says_whose_it_is(self, prod: Render) -> None:
        for found in prod.objects():
            labels = found["metadata"]["labels"]
            assert labels["app.kubernetes.io/part-of"] == "triton-estate"
            assert labels["app.kubernetes.io/managed-by"] == "pulumi"


class TestModels:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_each_has_a_deployment_and_a_service(self, name: str, prod: Render) -> None:
        assert prod.one("Deployment", f"{name}-v1")
        assert prod.one("Service", name)

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_each_has_an_autoscaler_unless_its_number_is_fixed(self, name: str, prod: Render) -> None:
        assert bool(prod.objects("HorizontalPodAutoscaler", name)) == (name != "fixed")

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_each_has_a_config_map_if_it_has_a_configuration(self, name: str, prod: Render) -> None:
        assert bool(prod.objects("ConfigMap", name)) == ("\nconfig:" in f"\n{PROD_MODELS[name]}")

    def test_the_four_of_dev_are_there(self, dev: Render) -> None:
        services = [found["metadata"] for found in dev.objects("Service")]
        models = [found for found in services if found["namespace"] == "serving"]
        names = {found["name"] for found in models if "app.kubernetes.io/version" not in found["labels"]}
        assert names == {"fraud-score", "inception-graphdef", "mobilenet", "photo-tagger"}

    def test_every_object_of_a_model_says_who_answers_for_it(self, dev: Render) -> None:
        for found in dev.objects(model="mobilenet"):
            assert found["metadata"]["labels"]["triton-estate.io/owner"] == "vision"

    @pytest.mark.parametrize(
        "kind", ["Deployment", "ConfigMap", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy"]
    )
    def test_every_object_of_a_revision_says_which(self, kind: str, dev: Render) -> None:
        (found,) = dev.objects(kind, "inception-graphdef")
        assert found["metadata"]["labels"]["app.kubernetes.io/version"] == "v1"

    def test_all_but_the_front_service_are_named_after_their_revision(self, dev: Render) -> None:
        names = {
            found["metadata"]["name"]
            for kind in ("Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Service")
            for found in dev.objects(kind, "mobilenet")
        }
        beside = {"mobilenet-v1-heartbeat", "mobilenet-v1-replicas"}
        assert names == {"mobilenet", "mobilenet-v1"} | beside


class TestOrder:
    def test_a_workload_comes_after_the_namespace_and_the_nodes_of_its_pool(self, prod: Render) -> None:
        # The component waits, and its children wait for it.
        assert prod.request("Deployment", "whole-v1").parent.endswith("TritonService::whole")
        needed = {urn.rpartition("::")[2] for urn in prod.request("TritonService", "whole").dependencies}
        assert needed == {"models", "whole-0", "whole-1"}

    def test_a_workload_comes_after_its_config_map(self, prod: Render) -> None:
        needed = [urn.rpartition("::")[2] for urn in prod.request("Deployment", "python-v1").dependencies]
        assert "python-v1-config" in needed

    def test_an_autoscaler_comes_after_its_workload(self, prod: Render) -> None:
        needed = prod.request("HorizontalPodAutoscaler", "python-v1").dependencies
        assert any(urn.endswith("Deployment::python-v1") for urn in needed)

    def test_every_object_belongs_to_a_component(self, prod: Render) -> None:
        for (token, _), request in prod.requests.items():
            if token.startswith("kubernetes:"):
                assert "triton-estate:" in request.parent


class TestCluster:
    def provider(self, found: Render) -> dict[str, Any]:
        return found.resources["pulumi:providers:kubernetes", "cluster"]

    def test_the_embedded_plane_is_asked_for_by_name(self, dev: Render) -> None:
        assert self.provider(dev)["context"] == "triton-estate"
        assert "kubeconfig" not in self.provider(dev)

    def test_an_existing_cluster_is_what_kubectl_would_use(self, render: Callable[..., Render]) -> None:
        found = self.provider(render({}, cluster={"provider": "existing"}))
        assert found.keys().isdisjoint({"context", "kubeconfig"})

    def test_a_kubeconfig_and_context_of_your_own_are_passed_on(
        self, render: Callable[..., Render], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        cluster = {"provider": "existing", "kubeconfig": "~/.kube/prod", "context": "eu"}
        found = self.provider(render({}, cluster=cluster))
        assert (found["kubeconfig"], found["context"]) == ("/home/me/.kube/prod", "eu")

    def test_every_object_goes_through_the_one_provider(self, prod: Render) -> None:
        for (token, _), request in prod.requests.items():
            if token.startswith("kubernetes:"):
                assert "pulumi:providers:kubernetes::cluster" in request.provider


class TestBadInput:
    def test_nothing_is_registered_and_every_mistake_is_told(self, render: Callable[..., Render]) -> None:
        with pytest.raises(pulumi.RunError) as refused:
            render({"a": "colour: red\n", "b": "scaling: {min: -1}\n"}, namespace="My_Space")
        text = str(refused.value)
        assert text.startswith("3 mistakes in the input, nothing was applied")
        for place in ("Pulumi.test.yaml: namespace", "models/a.yaml:5: colour", "models/b.yaml:5: scaling.min"):
            assert place in text
