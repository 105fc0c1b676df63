"""The managed Prometheus: valid, least privileged, and certain to find every monitor and rule of the estate."""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any
from unittest import mock

import jsonschema
import kubernetes_validate
import pytest
from kubernetes_validate import utils

from components import versions
from components.monitoring import prometheus
from components.monitoring.operator import operator_values
from local.toolchain import Toolchain
from spec.estate import EstateSpec
from spec.monitoring import MonitoringSpec
from spec.prometheus import PrometheusSpec
from tests.components.conftest import Render
from tests.components.monitored import EXISTING, FULL, MANAGED, POOL, SOFTWARE, closure, jobs, validator

Renderer = Callable[..., Render]
MODELS = {"a": "", "b": "scaling: {min: 2, max: 2}\nheartbeat: {}\n"}
KINDS = ("Prometheus", "Alertmanager", "PrometheusRule")
NAME_LABEL = "kubernetes.io/metadata.name"


@pytest.fixture(scope="module", autouse=True)
def schemas() -> Generator[None]:
    """Read the validator's schemas once."""
    with mock.patch.object(utils, "schema_contents", cache(utils.schema_contents)):
        yield


@pytest.fixture(scope="module")
def managed(render: Renderer) -> Render:
    return render(MODELS, namespace="models", monitoring=MANAGED, gpuPools=[POOL], gpuSoftware=SOFTWARE)


@pytest.fixture(scope="module")
def full(render: Renderer) -> Render:
    return render(MODELS, monitoring=FULL, gpuPools=[POOL], gpuSoftware=SOFTWARE)


@pytest.fixture(scope="module")
def existing(render: Renderer) -> Render:
    return render(MODELS, monitoring=EXISTING)


def spec(found: Render) -> dict[str, Any]:
    return found.one("Prometheus")["spec"]


class TestNothingUnasked:
    def test_without_the_setting_nothing_is_made(self, render: Renderer) -> None:
        found = render(MODELS)
        kinds = {one["kind"] for one in found.objects()}
        assert kinds.isdisjoint({"Prometheus", "Alertmanager", "Secret", "ClusterRole", "ServiceAccount"})
        assert [one["metadata"]["name"] for one in found.objects("Namespace")] == ["serving"]
        assert "platform-monitoring" not in {one["metadata"]["name"] for one in found.objects("PrometheusRule")}

    def test_an_existing_one_gets_the_rules_and_nothing_else(self, existing: Render, render: Renderer) -> None:
        before = {key for key in render(MODELS).resources if key[0].startswith("kubernetes:")}
        after = {key for key in existing.resources if key[0].startswith("kubernetes:")}
        assert {name for _, name in after - before} == {"platform-monitoring"}

    def test_an_existing_one_without_operator_gets_nothing(self, render: Renderer) -> None:
        found = render(MODELS, monitoring={"operator": False} | EXISTING)
        assert dict(found.resources) == dict(render(MODELS, monitoring={"operator": False}).resources)

    def test_no_alertmanager_unless_asked_for(self, managed: Render) -> None:
        assert not managed.objects("Alertmanager")
        assert "alerting" not in spec(managed)


class TestValid:
    @pytest.mark.parametrize("stack", ["managed", "full", "existing"])
    def test_each_custom_resource(self, stack: str, tools: Toolchain, request: pytest.FixtureRequest) -> None:
        found: Render = request.getfixturevalue(stack)
        for kind in KINDS:
            for one in found.objects(kind):
                validator(tools, kind).validate(one)
        assert found.objects("PrometheusRule")

    def test_a_field_that_does_not_exist_would_be_noticed(self, tools: Toolchain, full: Render) -> None:
        for kind in KINDS:
            broken = full.objects(kind)[0]
            broken = broken | {"spec": broken["spec"] | {"retentoin": "1d"}}
            with pytest.raises(jsonschema.ValidationError, match="retentoin"):
                validator(tools, kind).validate(broken)

    @pytest.mark.parametrize("kind", ["Service", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Namespace"])
    def test_each_object_of_kubernetes_itself(self, kind: str, full: Render) -> None:
        found = full.objects(kind)
        assert found
        for one in found:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)

    def test_images_are_pinned_and_tell_their_version(self, full: Render) -> None:
        images = {"Prometheus": versions.PROMETHEUS_IMAGE, "Alertmanager": versions.ALERTMANAGER_IMAGE}
        for kind, image in images.items():
            found = full.one(kind)["spec"]
            assert found["image"] == image == f"quay.io/prometheus/{kind.lower()}:{found['version']}"

    @pytest.mark.parametrize(("pin", "version"), [(":v3.5.0@", "v3.5.0"), ("@", None)])
    def test_a_digest_is_not_taken_for_a_version(
        self, pin: str, version: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(versions, "PROMETHEUS_IMAGE", f"quay.io/prometheus/prometheus{pin}sha256:{'0' * 64}")
        spec = PrometheusSpec.model_validate({"provider": "managed"})
        assert prometheus.prometheus_resource(spec, MonitoringSpec(), ["serving"]).version == version


class TestSelection:
    """A monitor that no Prometheus selects is silent."""

    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule", "PodMonitor"])
    @pytest.mark.parametrize("stack", ["managed", "full"])
    def test_every_monitor_and_rule_is_selected(self, stack: str, kind: str, request: pytest.FixtureRequest) -> None:
        found: Render = request.getfixturevalue(stack)
        field = {"ServiceMonitor": "serviceMonitor", "PodMonitor": "podMonitor", "PrometheusRule": "rule"}[kind]
        selector, within = spec(found)[f"{field}Selector"], spec(found)[f"{field}NamespaceSelector"]
        assert selector["matchLabels"]
        assert kind == "PodMonitor" or len(found.objects(kind)) > 2
        for one in found.objects(kind):
            assert selector["matchLabels"].items() <= one["metadata"]["labels"].items()
            assert one["metadata"]["namespace"] in names(within)

    def test_the_selectors_are_the_labels_of_the_stack(self, full: Render) -> None:
        for field in ("serviceMonitorSelector", "podMonitorSelector", "ruleSelector"):
            assert spec(full)[field]["matchLabels"] == {"prometheus": "estate", "team": "infra"}

    def test_the_namespaces_of_models_exporters_and_charts_are_watched(self, managed: Render) -> None:
        for field in ("serviceMonitor", "podMonitor", "rule"):
            watched = names(spec(managed)[f"{field}NamespaceSelector"])
            assert watched == ["gpu-system", "models", "monitoring"]
            assert watched == sorted(set(watched))

    def test_probes_and_scrape_configs_of_others_are_not_selected(self, managed: Render) -> None:
        assert spec(managed).keys().isdisjoint({"probeSelector", "scrapeConfigSelector"})

    def test_kube_state_metrics_of_the_chart_is_selected_too(self, full: Render) -> None:
        monitor = release(full)["values"]["kube-state-metrics"]
        assert (
            monitor["prometheus"]["monitor"]["additionalLabels"] == spec(full)["serviceMonitorSelector"]["matchLabels"]
        )
        assert monitor["prometheus"]["monitor"]["honorLabels"] is True
        assert monitor["releaseLabel"] is False


class TestAddress:
    @pytest.mark.parametrize(("kind", "port"), [("Prometheus", 9090), ("Alertmanager", 9093)])
    def test_a_service_of_ours_leads_to_the_operators_pods(self, kind: str, port: int, full: Render) -> None:
        custom, service = full.one(kind), full.one("Service", kind.lower())
        # Labels that the operator gives to the pods, prometheus-operator v0.85.0, pkg/prometheus and pkg/alertmanager.
        key = {"Prometheus": "operator.prometheus.io/name", "Alertmanager": "alertmanager"}[kind]
        pod = {"app.kubernetes.io/name": kind.lower(), key: custom["metadata"]["name"]}
        assert service["spec"]["selector"] == pod
        assert service["metadata"]["namespace"] == custom["metadata"]["namespace"] == "monitoring"
        assert service["spec"]["ports"] == [{"name": "web", "port": port, "targetPort": "web"}]

    def test_the_url_is_that_of_the_service(self, full: Render) -> None:
        url = EstateSpec.model_validate({"environment": "dev", "monitoring": FULL}).prometheus_url
        metadata, (port,) = (
            full.one("Service", "prometheus")["metadata"],
            full.one("Service", "prometheus")["spec"]["ports"],
        )
        assert url == f"http://{metadata['name']}.{metadata['namespace']}.svc:{port['port']}"

    def test_a_reader_stays_with_one_replica(self, full: Render) -> None:
        assert full.one("Service", "prometheus")["spec"]["sessionAffinity"] == "ClientIP"

    def test_alerts_go_to_the_alertmanagers_service(self, full: Render) -> None:
        (target,) = spec(full)["alerting"]["alertmanagers"]
        service = full.one("Service", target["name"])
        assert (service["metadata"]["namespace"], target["apiVersion"]) == (target["namespace"], "v2")
        assert target["port"] in [port["name"] for port in service["spec"]["ports"]]


class TestSettings:
    def test_defaults(self, managed: Render) -> None:
        found = spec(managed)
        assert (found["replicas"], found["retention"], found["scrapeInterval"]) == (1, "15d", "15s")
        assert found["storage"] == {"emptyDir": {"sizeLimit": "10Gi"}}
        assert found["retentionSize"] == "8192MiB"
        assert found["resources"] == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}

    def test_all_that_can_be_set(self, full: Render) -> None:
        found = spec(full)
        assert (found["replicas"], found["retention"], found["scrapeInterval"]) == (2, "30d", "30s")
        claim = found["storage"]["volumeClaimTemplate"]["spec"]
        assert claim == {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "100Gi"}},
            "storageClassName": "fast",
        }
        assert found["retentionSize"] == "81920MiB"
        assert found["resources"] == {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "8Gi"}}
        assert found["externalLabels"] == {"cluster": "eu"}

    def test_the_clusters_own_storage_class_is_the_default(self, render: Renderer) -> None:
        found = render({}, monitoring={"prometheus": {"storage": {"size": "20Gi"}}})
        assert "storageClassName" not in spec(found)["storage"]["volumeClaimTemplate"]["spec"]

    def test_receivers_come_from_a_secret_that_is_there(self, full: Render) -> None:
        found = full.one("Alertmanager")["spec"]
        assert (found["configSecret"], found["replicas"]) == ("receivers", 3)
        assert [one["metadata"]["name"] for one in full.objects("Secret")] == ["prometheus-scrape-jobs"]

    def test_an_alertmanager_without_storage_has_none(self, render: Renderer) -> None:
        found = render({}, monitoring={"prometheus": {"alertmanager": {"configSecret": "a"}}})
        assert "storage" not in found.one("Alertmanager")["spec"]

    def test_both_jobs_are_read(self, managed: Render) -> None:
        assert list(jobs(managed)) == ["kubernetes-service-endpoints", "kubernetes-apiservers"]


class TestSecurity:
    @pytest.mark.parametrize("kind", ["Prometheus", "Alertmanager"])
    def test_pods_are_what_their_namespace_admits(self, kind: str, full: Render) -> None:
        namespace = full.one("Namespace", "monitoring")["metadata"]["labels"]
        assert namespace["pod-security.kubernetes.io/enforce"] == "restricted"
        found = full.one(kind)["spec"]["securityContext"]
        assert found["runAsNonRoot"] is True
        assert found["runAsUser"] > 0
        assert found["seccompProfile"] == {"type": "RuntimeDefault"}

    def test_prometheus_reads_what_discovery_needs_and_nothing_else(self, full: Render) -> None:
        rules = full.one("ClusterRole", "triton-estate-prometheus")["rules"]
        read = {(group, name) for rule in rules for group in rule.get("apiGroups", []) for name in rule["resources"]}
        assert read == {("", "services"), ("", "pods"), ("discovery.k8s.io", "endpointslices")}
        assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
        assert [url for rule in rules for url in rule.get("nonResourceURLs", [])] == ["/metrics"]
        assert "*" not in str(rules)

    def test_the_role_is_that_of_prometheus_alone(self, full: Render) -> None:
        binding = full.one("ClusterRoleBinding", "triton-estate-prometheus")
        account = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}
        assert binding["subjects"] == [account]
        assert spec(full)["serviceAccountName"] == full.one("ServiceAccount", "prometheus")["metadata"]["name"]

    def test_discovery_asks_for_what_the_role_allows(self, full: Render) -> None:
        assert spec(full)["serviceDiscoveryRole"] == "EndpointSlice"
        assert all(job["kubernetes_sd_configs"][0]["role"] == "endpointslice" for job in jobs(full).values())

    def test_alertmanager_is_nobody_to_the_api_server(self, full: Render) -> None:
        assert full.one("Alertmanager")["spec"]["automountServiceAccountToken"] is False


class TestOperator:
    def test_it_comes_from_the_pinned_chart(self, full: Render) -> None:
        found, chart = release(full), versions.PROMETHEUS_STACK
        assert (found["chart"], found["version"]) == ("kube-prometheus-stack", chart.version)
        assert found["repositoryOpts"] == {"repo": chart.repository}
        assert found["namespace"] == "monitoring"

    def test_or_from_a_folder(self, render: Renderer) -> None:
        found = release(render({}, monitoring={"installOperator": True}, charts={"kube-prometheus-stack": "./stack"}))
        assert found["chart"] == "./stack"
        assert found.keys().isdisjoint({"version", "repositoryOpts"})

    def test_what_is_typed_here_is_off_there(self) -> None:
        values: dict[str, Any] = operator_values(MonitoringSpec())
        for part in ("prometheus", "alertmanager", "grafana", "nodeExporter", "kubeApiServer", "kubelet"):
            assert values[part] == {"enabled": False}
        assert values["defaultRules"] == {"create": False}
        # Without its webhook the operator has no certificate, and must not wait for one.
        assert (
            values["prometheusOperator"]["admissionWebhooks"]
            == values["prometheusOperator"]["tls"]
            == {"enabled": False}
        )
        assert values["kubeStateMetrics"] == values["crds"] == {"enabled": True}

    @pytest.mark.parametrize("kind", ["ServiceMonitor", "PrometheusRule", "Prometheus", "Alertmanager"])
    def test_every_custom_resource_comes_after_its_kind(self, kind: str, full: Render) -> None:
        for one in full.objects(kind):
            before = closure(full, kind, one["metadata"]["name"])
            assert any(urn.endswith("kubernetes:helm.sh/v3:Release::prometheus-operator") for urn in before)
            assert any(urn.endswith("Namespace::monitoring") for urn in before)

    def test_without_it_nothing_waits_for_it(self, managed: Render) -> None:
        assert not [key for key in managed.resources if "helm" in key[0]]
        before = closure(managed, "Prometheus", "prometheus")
        assert not any("Release" in urn for urn in before)

    @pytest.mark.parametrize(
        "needed", ["Secret::prometheus-scrape-jobs", "ClusterRoleBinding::triton-estate-prometheus"]
    )
    def test_prometheus_comes_after_what_it_reads_with(self, needed: str, full: Render) -> None:
        assert any(urn.endswith(needed) for urn in closure(full, "Prometheus", "prometheus"))


def release(found: Render) -> dict[str, Any]:
    return found.resources["kubernetes:helm.sh/v3:Release", "prometheus-operator"]


def names(within: dict[str, Any]) -> list[str]:
    """Namespaces that a namespace selector takes, by the label that the API server writes."""
    (wanted,) = within["matchExpressions"]
    assert (wanted["key"], wanted["operator"]) == (NAME_LABEL, "In")
    return wanted["values"]
