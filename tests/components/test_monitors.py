"""Prometheus finds each pod once."""

import re
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from local.toolchain import Toolchain
from tests.components.alerting import MODELS
from tests.components.conftest import PROD_MODELS, Render
from tests.components.monitored import validator

Renderer = Callable[..., Render]


@pytest.fixture(scope="session")
def estate(render: Renderer) -> Render:
    return render(MODELS, namespace="models")


def selected(monitor: dict[str, Any], found: Render) -> list[dict[str, Any]]:
    """The Services that a ServiceMonitor selects."""
    spec = monitor["spec"]
    expressions = [one for one in spec["selector"]["matchExpressions"] if one["operator"] == "Exists"]
    assert expressions == spec["selector"]["matchExpressions"]
    return [
        service
        for service in found.objects("Service")
        if service["metadata"]["namespace"] in spec["namespaceSelector"]["matchNames"]
        and spec["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
        and all(one["key"] in service["metadata"]["labels"] for one in expressions)
        and spec["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
    ]


class TestScraping:
    @pytest.mark.parametrize("name", MODELS)
    def test_a_monitor_selects_the_services_of_the_revisions_and_no_other(self, name: str, estate: Render) -> None:
        found = {service["metadata"]["name"] for service in selected(estate.one("ServiceMonitor", name), estate)}
        beside = {"beating-v1-heartbeat"} if name == "beating" else set()
        assert found == {f"{name}-{one}" for one in estate.outputs["models"][name]["revisions"]} | beside

    def test_each_pod_is_scraped_once(self, estate: Render) -> None:
        services = [service for one in estate.objects("ServiceMonitor") for service in selected(one, estate)]
        for deployment in estate.objects("Deployment"):
            labels = deployment["spec"]["template"]["metadata"]["labels"]
            assert sum(service["spec"]["selector"].items() <= labels.items() for service in services) == 1

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_the_port_exists_by_name_and_is_tritons(self, name: str, prod: Render) -> None:
        monitor = prod.one("ServiceMonitor", name)
        (endpoint,) = monitor["spec"]["endpoints"]
        for service in selected(monitor, prod):
            (port,) = [port for port in service["spec"]["ports"] if port["name"] == endpoint["port"]]
            (open_port,) = [one for one in prod.triton(f"{name}-v1")["ports"] if one["name"] == port["targetPort"]]
            assert f"--metrics-port={open_port['containerPort']}" in prod.triton(f"{name}-v1")["args"]
        assert (endpoint["path"], endpoint["scheme"]) == ("/metrics", "http")

    def test_series_carry_model_revision_and_owner(self, estate: Render) -> None:
        for monitor in estate.objects("ServiceMonitor"):
            for service in selected(monitor, estate):
                carried = {service["metadata"]["labels"][key] for key in monitor["spec"]["targetLabels"]}
                model, revision = service["metadata"]["name"].removesuffix("-heartbeat").split("-")
                assert carried == {model, revision, "vision"}

    def test_no_label_of_triton_is_called_as_one_of_the_target(self, estate: Render) -> None:
        for monitor in estate.objects("ServiceMonitor"):
            carried = {re.sub(r"\W", "_", key) for key in monitor["spec"]["targetLabels"]}
            assert carried.isdisjoint({"model", "version", "gpu_uuid", "quantile", "reason"})
            assert monitor["spec"]["endpoints"][0]["honorLabels"] is False

    @pytest.mark.parametrize(("interval", "timeout"), [("5s", "5s"), ("30s", "10s"), ("2m", "10s")])
    def test_a_scrape_ends_before_the_next_begins(self, interval: str, timeout: str, render: Renderer) -> None:
        found = render({"a": ""}, monitoring={"scrapeInterval": interval})
        (endpoint,) = found.one("ServiceMonitor")["spec"]["endpoints"]
        assert (endpoint["interval"], endpoint["scrapeTimeout"]) == (interval, timeout)

    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
    def test_prometheus_is_told_by_its_own_labels(self, kind: str, estate: Render, render: Renderer) -> None:
        other = render({"a": ""}, monitoring={"labels": {"prometheus": "k8s"}})
        for found, labels in ((estate, {"release": "kube-prometheus-stack"}), (other, {"prometheus": "k8s"})):
            for one in found.objects(kind):
                assert labels.items() <= one["metadata"]["labels"].items()
                assert ("release" in one["metadata"]["labels"]) == ("release" in labels)

    def test_only_what_prometheus_selects_carries_its_labels(self, estate: Render) -> None:
        marked = {one["kind"] for one in estate.objects() if "release" in one["metadata"].get("labels", {})}
        assert marked == {"ServiceMonitor", "PrometheusRule"}


class TestWithoutOperator:
    @pytest.fixture
    def bare(self, render: Renderer) -> Render:
        return render({name: MODELS[name] for name in ("plain", "fixed")}, monitoring={"operator": False})

    def test_no_custom_resource_is_made(self, bare: Render) -> None:
        assert not [one["kind"] for one in bare.objects() if "monitoring.coreos.com" in one["apiVersion"]]

    def test_each_pod_is_marked_once(self, bare: Render) -> None:
        marked = [one for one in bare.objects("Service") if "annotations" in one["metadata"]]
        assert {one["metadata"]["name"] for one in marked} == {"plain-v1", "fixed-v1"}
        for one in marked:
            assert one["metadata"]["annotations"] == {
                "prometheus.io/scrape": "true",
                "prometheus.io/scheme": "http",
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": "8002",
            }

    def test_with_the_operator_nothing_is_marked(self, estate: Render) -> None:
        assert "prometheus.io/" not in str(estate.objects())


class TestKinds:
    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule"])
    def test_each_object_is_valid(self, kind: str, tools: Toolchain, estate: Render, prod: Render) -> None:
        check = validator(tools, kind)
        for found in [*estate.objects(kind), *prod.objects(kind)]:
            check.validate(found)

    def test_a_field_that_does_not_exist_would_be_noticed(self, tools: Toolchain, estate: Render) -> None:
        broken = estate.one("ServiceMonitor", "plain")
        broken = broken | {"spec": broken["spec"] | {"targetLabel": []}}
        with pytest.raises(jsonschema.ValidationError, match="targetLabel"):
            validator(tools, "ServiceMonitor").validate(broken)
