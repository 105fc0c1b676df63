"""Who may talk to the pods of a revision and to whom they may talk, and how many may leave at once."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import ONNX, PROD_MODELS, Render

Renderer = Callable[..., Render]
DNS = [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]


def anywhere(rules: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The ports of each rule without peers."""
    return [rule["ports"] for rule in rules if "to" not in rule and "from" not in rule]


def egress(found: Render) -> list[dict[str, Any]]:
    return found.one("NetworkPolicy")["spec"]["egress"]


class TestPolicy:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_guards_the_pods_of_the_deployment(self, name: str, prod: Render) -> None:
        policy, deployment = (prod.one(kind, f"{name}-v1")["spec"] for kind in ("NetworkPolicy", "Deployment"))
        assert policy["podSelector"] == deployment["selector"]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_closes_both_ways(self, name: str, prod: Render) -> None:
        assert prod.one("NetworkPolicy", f"{name}-v1")["spec"]["policyTypes"] == ["Ingress", "Egress"]

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_in_come_the_ports_of_triton_and_no_other(self, name: str, prod: Render) -> None:
        (rule,) = prod.one("NetworkPolicy", f"{name}-v1")["spec"]["ingress"]
        assert rule == {"ports": [{"port": port, "protocol": "TCP"} for port in (8000, 8001, 8002)]}

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_lets_in_all_ports_of_the_service(self, name: str, prod: Render) -> None:
        (rule,) = prod.one("NetworkPolicy", f"{name}-v1")["spec"]["ingress"]
        ports = {port["port"] for port in prod.one("Service", name)["spec"]["ports"]}
        assert ports == {port["port"] for port in rule["ports"]}

    @pytest.mark.parametrize(
        ("uri", "port"),
        [
            ("s3://acme/m", 443),
            ("gs://acme/m", 443),
            ("as://account/container/m", 443),
            ("s3://minio:9000/acme/m", 9000),
            ("s3://https://minio.example.com:9443/acme/m", 9443),
            ("s3://http://minio:80/acme/m", 80),
        ],
    )
    @pytest.mark.parametrize("more", ["", ONNX], ids=["direct", "synced"])
    def test_out_go_names_and_the_port_of_the_store(self, more: str, uri: str, port: int, render: Renderer) -> None:
        found = egress(render({"m": f"repository: {uri}\n{more}"}))
        assert anywhere(found) == [DNS, [{"port": port, "protocol": "TCP"}]]

    def test_out_of_a_pod_on_a_claim_go_names_only(self, render: Renderer) -> None:
        assert egress(render({"m": "repository: pvc://claim/m\n"})) == [{"ports": DNS}]

    def test_the_credentials_of_a_workload_identity_are_in_reach(self, render: Renderer) -> None:
        (rule,) = [rule for rule in egress(render({"m": ""})) if "to" in rule]
        cidrs = {peer["ipBlock"]["cidr"] for peer in rule["to"]}
        assert {"169.254.169.254/32", "169.254.170.23/32"} <= cidrs
        assert {port["port"] for port in rule["ports"]} == {80, 988}

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_no_rule_opens_every_port(self, name: str, prod: Render) -> None:
        spec = prod.one("NetworkPolicy", f"{name}-v1")["spec"]
        assert all(rule["ports"] for rule in [*spec["ingress"], *spec["egress"]])
        assert not any("endPort" in port for rule in spec["egress"] for port in rule["ports"])


class TestDisruption:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_one_replica_at_a_time_may_leave(self, name: str, prod: Render) -> None:
        spec = prod.one("PodDisruptionBudget", f"{name}-v1")["spec"]
        assert spec["maxUnavailable"] == 1
        assert "minAvailable" not in spec

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_counts_the_pods_of_the_deployment(self, name: str, prod: Render) -> None:
        budget, deployment = (prod.one(kind, f"{name}-v1")["spec"] for kind in ("PodDisruptionBudget", "Deployment"))
        assert budget["selector"] == deployment["selector"]
