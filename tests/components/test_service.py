"""The Services: ports that a mesh understands, and exactly the pods of one revision."""

from collections.abc import Callable

import pytest

from tests.components.conftest import PROD_MODELS, Render


class TestPorts:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_they_are_named_and_numbered_for_the_mesh(self, name: str, prod: Render) -> None:
        assert prod.one("Service", name)["spec"]["ports"] == [
            {"name": "http", "port": 8000, "targetPort": "http", "appProtocol": "http"},
            {"name": "grpc", "port": 8001, "targetPort": "grpc", "appProtocol": "grpc"},
            {"name": "http-metrics", "port": 8002, "targetPort": "http-metrics", "appProtocol": "http"},
        ]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_each_leads_to_a_port_of_the_container(self, name: str, prod: Render) -> None:
        container = {port["name"]: port["containerPort"] for port in prod.triton(f"{name}-v1")["ports"]}
        for port in prod.one("Service", name)["spec"]["ports"]:
            assert container[port["targetPort"]] == port["port"]

    def test_each_leads_to_the_port_that_triton_was_told(self, prod: Render) -> None:
        args = prod.triton("five-lines-v1")["args"]
        numbers = {port["name"]: port["port"] for port in prod.one("Service", "five-lines")["spec"]["ports"]}
        for name, flag in (("http", "http"), ("grpc", "grpc"), ("http-metrics", "metrics")):
            assert f"--{flag}-port={numbers[name]}" in args


class TestSelector:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_picks_the_pods_of_this_model_only(self, name: str, prod: Render) -> None:
        selector = prod.one("Service", name)["spec"]["selector"]
        picked = [
            found["metadata"]["name"]
            for found in prod.objects("Deployment")
            if selector.items() <= found["spec"]["template"]["metadata"]["labels"].items()
        ]
        assert picked == [f"{name}-v1"]

    @pytest.mark.parametrize(("split", "primary"), [("{v1: 90, v2: 10}", "v1"), ("{v1: 10, v2: 90}", "v2")])
    def test_that_of_the_front_takes_the_primary_revision_only(
        self, split: str, primary: str, render: Callable[..., Render]
    ) -> None:
        found = render({"m": f"revisions: {{v1: {{}}, v2: {{}}}}\ntraffic: {{split: {split}}}\n"})
        assert found.one("Service", "m")["spec"]["selector"] == {
            "app.kubernetes.io/name": "triton",
            "app.kubernetes.io/instance": "m",
            "app.kubernetes.io/version": primary,
        }

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_that_of_a_revision_is_that_of_its_deployment(self, name: str, prod: Render) -> None:
        service, deployment = (prod.one(kind, f"{name}-v1")["spec"] for kind in ("Service", "Deployment"))
        assert service["selector"] == deployment["selector"]["matchLabels"]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_a_service_of_a_revision_has_the_ports_of_the_front(self, name: str, prod: Render) -> None:
        front, revision = prod.one("Service", name), prod.one("Service", f"{name}-v1")
        assert front["spec"]["ports"] == revision["spec"]["ports"]

    def test_only_that_of_a_revision_carries_its_label(self, prod: Render) -> None:
        # A ServiceMonitor that asks for the label finds each pod once.
        assert "app.kubernetes.io/version" not in prod.one("Service", "whole")["metadata"]["labels"]
        assert prod.one("Service", "whole-v1")["metadata"]["labels"]["app.kubernetes.io/version"] == "v1"
