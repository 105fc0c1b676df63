"""The Service: ports that a mesh understands, and exactly the pods of its model."""

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

    def test_it_takes_every_revision(self, prod: Render) -> None:
        assert "app.kubernetes.io/version" not in prod.one("Service", "whole")["spec"]["selector"]
