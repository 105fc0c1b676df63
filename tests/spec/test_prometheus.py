"""The Prometheus of a stack file: its address in every case, and what is refused."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from spec.monitoring import MonitoringSpec
from spec.problems import Problem
from spec.prometheus import chart_service, prometheus_url, retention_mebibytes

Refusals = Callable[..., list[Problem]]


def url(**prometheus: object) -> str | None:
    return prometheus_url(MonitoringSpec.model_validate({"prometheus": prometheus}))


class TestAddress:
    def test_without_a_prometheus_there_is_none(self) -> None:
        assert prometheus_url(MonitoringSpec()) is None

    def test_the_managed_one_has_a_service_of_its_own(self) -> None:
        assert url() == url(provider="managed") == "http://prometheus.monitoring.svc:9090"

    @pytest.mark.parametrize(
        ("written", "asked"),
        [
            ("http://prometheus.obs.svc:9090", "http://prometheus.obs.svc:9090"),
            ("https://metrics.example.com/tenant/", "https://metrics.example.com/tenant"),
        ],
    )
    def test_that_of_an_existing_one_is_taken_as_it_is(self, written: str, asked: str) -> None:
        assert url(provider="existing", url=written) == asked

    @pytest.mark.parametrize(
        ("release", "namespace", "host"),
        [
            ("mon", "obs", "mon-kube-prometheus-stack-prometheus.obs.svc"),
            ("prometheus", "monitoring", "prometheus-kube-prometheus-prometheus.monitoring.svc"),
            ("kube-prometheus-stack", "monitoring", "kube-prometheus-stack-prometheus.monitoring.svc"),
            # Seen in a cluster: the cut falls within a word.
            ("prometheus-stack", "monitoring", "prometheus-stack-kube-prom-prometheus.monitoring.svc"),
            ("my-kube-prometheus-stack-eu-west-1", "a", "my-kube-prometheus-stack-e-prometheus.a.svc"),
        ],
    )
    def test_that_of_a_release_follows_from_its_name(self, release: str, namespace: str, host: str) -> None:
        assert url(provider="existing", release=release, namespace=namespace) == f"http://{host}:9090"

    @pytest.mark.parametrize("length", [1, 3, 4, 5, 25, 26, 53])
    def test_a_services_name_never_has_two_dashes_at_the_cut_or_is_too_long(self, length: int) -> None:
        name = chart_service("a" * length)
        assert "--" not in name
        assert len(name) <= 63

    def test_it_can_be_asked_without_the_operator(self) -> None:
        monitoring = {"operator": False, "prometheus": {"provider": "existing", "url": "http://a.example"}}
        assert prometheus_url(MonitoringSpec.model_validate(monitoring)) == "http://a.example"


class TestDisk:
    @pytest.mark.parametrize(("disk", "mebibytes"), [("10Gi", 8192), ("1Gi", 819), ("50G", 38146)])
    def test_four_fifths_are_for_blocks(self, disk: str, mebibytes: int) -> None:
        assert retention_mebibytes(disk) == mebibytes


class TestBadInput:
    @pytest.mark.parametrize(
        ("prometheus", "says"),
        [
            ({"provider": "thanos"}, "monitoring.prometheus.provider: not one of the allowed values"),
            ({"retention": "15"}, "monitoring.prometheus.retention: not a retention"),
            ({"retention": "1h"}, "monitoring.prometheus.retention: not a retention"),
            ({"retention": 15}, "allowed: a whole number and h, d or w"),
            ({"storage": {"size": "500Mi"}}, "monitoring.prometheus.storage.size: too small"),
            ({"storage": {}}, "monitoring.prometheus.storage.size: is missing"),
            (
                {"storage": {"size": "50Gi", "storageClass": "Fast SSD"}},
                "storage.storageClass: not a Kubernetes object",
            ),
            ({"cpu": "much"}, "monitoring.prometheus.cpu: not a CPU quantity"),
            ({"memory": 2}, "monitoring.prometheus.memory: memory needs a unit"),
            ({"replicas": 0}, "monitoring.prometheus.replicas: must be at least 1"),
            ({"replicas": 6}, "monitoring.prometheus.replicas: must be at most 5"),
            ({"alertmanager": {}}, "monitoring.prometheus.alertmanager.configSecret: is missing"),
            ({"alertmanager": {"configSecret": "a", "receivers": []}}, "alertmanager.receivers: unknown field"),
            ({"externalLabels": {"my-cluster": "eu"}}, "externalLabels.my-cluster: not the name of a Prometheus label"),
            ({"externalLabels": {"__a": "eu"}}, "externalLabels.__a: not the name of a Prometheus label"),
            ({"externalLabels": {"prometheus": "eu"}}, "is decided by the Prometheus operator"),
            ({"externalLabels": {"cluster": "$HOME"}}, "would put an environment variable there"),
            ({"url": "http://a.example"}, "monitoring.prometheus.url: does nothing with provider: managed"),
            (
                {"release": "a", "namespace": "b"},
                "prometheus.namespace: does nothing with provider: managed",
            ),
            ({"provider": "existing", "url": "http://a", "retention": "1d"}, "retention: does nothing with provider"),
            ({"provider": "existing"}, "monitoring.prometheus.url: an existing Prometheus has one address"),
            ({"provider": "existing", "url": "http://a", "release": "a", "namespace": "b"}, "fix:     leave url out"),
            ({"provider": "existing", "release": "a"}, "fix:     add `namespace:`"),
            ({"provider": "existing", "namespace": "a"}, "fix:     add `release:`"),
            ({"provider": "existing", "url": "prometheus:9090"}, "url: not the address of a Prometheus"),
            ({"provider": "existing", "url": "http://me:secret@a.example"}, "without user"),
            ({"provider": "existing", "url": "http://a.example/?b=c"}, "url: not the address of a Prometheus"),
            ({"retension": "15d"}, "did you mean retention?"),
        ],
        ids=str,
    )
    def test_is_refused_with_the_way_out(self, prometheus: dict[str, Any], says: str, refusals: Refusals) -> None:
        settings = {"environment": "dev", "monitoring": {"prometheus": prometheus}}
        assert says in "\n".join(map(str, refusals({}, settings)))

    def test_every_mistake_is_told_at_once(self, refusals: Refusals) -> None:
        prometheus = {"provider": "existing", "url": "http://a", "retention": "1d", "cpu": 1, "replicas": 2}
        found = refusals({}, {"environment": "dev", "monitoring": {"prometheus": prometheus}})
        assert {problem.field.rpartition(".")[2] for problem in found} == {"retention", "cpu", "replicas"}

    @pytest.mark.parametrize(
        ("monitoring", "says"),
        [
            ({"operator": False, "prometheus": {}}, "monitoring.prometheus: does nothing without the operator"),
            ({"operator": False, "installOperator": True}, "installOperator: does nothing without the operator"),
            ({"owner": "infra"}, "monitoring.owner: no alert about the platform is made"),
            ({"labels": {}, "prometheus": {}}, "monitoring.labels: a Prometheus that selects no label"),
        ],
    )
    def test_settings_that_do_not_go_together(self, monitoring: dict[str, Any], says: str, refusals: Refusals) -> None:
        found = refusals({}, {"environment": "dev", "monitoring": monitoring})
        assert says in "\n".join(map(str, found))

    def test_a_chart_that_is_not_installed(self, refusals: Refusals) -> None:
        (problem,) = refusals({}, {"environment": "dev", "charts": {"kube-prometheus-stack": "./a.tgz"}})
        assert "monitoring: {installOperator: true}" in problem.fix


class TestFrozen:
    def test_a_spec_never_changes(self) -> None:
        spec = MonitoringSpec.model_validate({"prometheus": {}}).prometheus
        assert spec is not None
        with pytest.raises(ValidationError):
            spec.replicas = 2  # ty: ignore[invalid-assignment]
