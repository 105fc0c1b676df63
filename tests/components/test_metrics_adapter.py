"""prometheus-adapter: every rule answers in any namespace, and the API server finds and trusts it."""

import re
from collections.abc import Callable, Generator
from functools import cache
from typing import Any
from unittest import mock

import kubernetes_validate
import promql_parser as promql
import pytest
import yaml
from kubernetes_validate import utils

from components.monitoring import adapter_rules
from spec.signals import SIGNALS, Windows
from tests.components.alerting import nodes
from tests.components.conftest import PROD_MODELS, Render

Renderer = Callable[..., Render]
NAME = "prometheus-adapter"
URL = "http://prometheus.obs.svc:9090"
EXISTING = {"prometheus": {"provider": "existing", "url": URL}}
ADAPTER = {"provider": "managed"}
APIS = ["v1beta1.custom.metrics.k8s.io", "v1beta2.custom.metrics.k8s.io"]
RULES: list[dict[str, Any]] = yaml.safe_load(adapter_rules.config(Windows(gpu="5m", rate="2m")))["rules"]
COUNTER = re.compile(r"_(us|total|count|success)$")


@pytest.fixture(scope="module", autouse=True)
def schemas() -> Generator[None]:
    """The validator reads megabytes of schemas anew for each object: once is enough."""
    with mock.patch.object(utils, "schema_contents", cache(utils.schema_contents)):
        yield


@pytest.fixture(scope="module")
def found(render: Renderer) -> Render:
    return render({"m": "scaling: {max: 5, qps: 5}\n"}, monitoring=EXISTING, autoscaler=ADAPTER)


@pytest.fixture(scope="module")
def issued(render: Renderer) -> Render:
    return render({"m": ""}, monitoring=EXISTING, autoscaler=ADAPTER | {"tls": {"issuer": "internal"}})


def objects(found: Render) -> list[dict[str, Any]]:
    """The adapter's own objects."""
    return [one for one in found.objects() if one["metadata"]["labels"]["app.kubernetes.io/name"] == NAME]


def config(found: Render) -> dict[str, Any]:
    return yaml.safe_load(found.one("ConfigMap", NAME)["data"]["config.yaml"])


def container(found: Render) -> dict[str, Any]:
    (one,) = found.pod(NAME)["containers"]
    return one


def expanded(rule: dict[str, Any], namespace: str, *more: str) -> str:
    """The query as the adapter makes it for two pods of a namespace (pkg/naming/metrics_query.go)."""
    labels = {value["resource"]: label for label, value in rule["resources"]["overrides"].items()}
    matchers = [*more, f'{labels["namespace"]}="{namespace}"', f'{labels["pod"]}=~"a-1|a-2"']
    query = rule["metricsQuery"].replace("<<.LabelMatchers>>", ",".join(matchers))
    return query.replace("<<.GroupBy>>", labels["pod"]).replace("<<.Series>>", rule["seriesQuery"].partition("{")[0])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["seriesQuery"])
class TestRules:
    def test_both_placeholders_are_in_the_query(self, rule: dict[str, Any]) -> None:
        query = rule["metricsQuery"]
        assert query.count("<<.LabelMatchers>>") == query.count("{")
        assert query.count("<<.GroupBy>>") == len(re.findall(r"\bby \(", query)) > 0
        assert not re.findall(r"<<(?!\.LabelMatchers>>|\.GroupBy>>)", query)

    def test_braces_and_parentheses_are_balanced(self, rule: dict[str, Any]) -> None:
        for query in (rule["metricsQuery"], rule["seriesQuery"]):
            assert all(query.count(one) == query.count(other) for one, other in ("()", "{}", "[]"))

    def test_every_rate_and_mean_has_a_range(self, rule: dict[str, Any]) -> None:
        calls = re.findall(r"(?:rate|avg_over_time)\([^)]*\)", rule["metricsQuery"])
        assert all(re.search(r"\}\[[0-9]+[smh]\]\)$", one) for one in calls)

    def test_no_raw_counter_is_a_metric(self, rule: dict[str, Any]) -> None:
        parts = list(nodes(expanded(rule, "vision")))
        rates = [one.args[0].vector_selector.name for one in parts
                 if isinstance(one, promql.Call) and one.func.name in {"rate", "increase"}]  # fmt: skip
        read = [one.name for one in parts if isinstance(one, promql.VectorSelector)]
        counters = [name for name in read if COUNTER.search(name) and name != "nv_inference_pending_request_count"]
        assert sorted(rates) == sorted(counters)

    def test_no_namespace_is_named(self, rule: dict[str, Any]) -> None:
        assert not re.search(r'namespace\w*="', rule["seriesQuery"] + rule["metricsQuery"])
        assert "template" not in rule["resources"]

    def test_pod_and_namespace_have_a_label_each(self, rule: dict[str, Any]) -> None:
        overrides = rule["resources"]["overrides"]
        assert sorted(one["resource"] for one in overrides.values()) == ["namespace", "pod"]
        assert all(f'{label}!=""' in rule["seriesQuery"] for label in overrides)

    @pytest.mark.parametrize("namespace", ["vision", "default"])
    def test_the_query_for_a_namespace_is_valid_and_asks_for_it(self, rule: dict[str, Any], namespace: str) -> None:
        labels = {value["resource"]: label for label, value in rule["resources"]["overrides"].items()}
        found = [one for one in nodes(expanded(rule, namespace)) if isinstance(one, promql.VectorSelector)]
        assert found
        for one in found:
            asked = [(each.name, each.op, each.value) for each in one.matchers.matchers]
            assert (labels["namespace"], promql.MatchOp.Equal, namespace) in asked
            assert (labels["pod"], promql.MatchOp.Re, "a-1|a-2") in asked
            assert (labels["pod"], promql.MatchOp.NotEqual, "") in asked

    def test_the_series_that_find_it_are_those_that_it_reads(self, rule: dict[str, Any]) -> None:
        read = {one.name for one in nodes(expanded(rule, "a")) if isinstance(one, promql.VectorSelector)}
        assert rule["seriesQuery"].partition("{")[0] in read


class TestConfig:
    def test_each_signal_has_a_rule(self, found: Render) -> None:
        rules = config(found)["rules"]
        assert {rule["name"]["as"] for rule in rules} == {signal.metric for signal in SIGNALS}
        assert len(rules) == len(SIGNALS) + sum(signal.older is not None for signal in SIGNALS)

    def test_hami_is_understood_by_its_old_and_its_new_labels(self) -> None:
        labels = [set(rule["resources"]["overrides"]) for rule in RULES if rule["name"]["as"].endswith("_hami")]
        assert labels == [{"namespace", "pod"}, {"podnamespace", "podname"}]

    def test_no_other_api_is_served(self, found: Render) -> None:
        assert config(found).keys() == {"rules"}

    def test_the_windows_are_those_of_the_stack(self, render: Renderer) -> None:
        settings = ADAPTER | {"gpuWindow": "7m", "rateWindow": "3m"}
        text = render({"m": ""}, monitoring=EXISTING, autoscaler=settings).one("ConfigMap", NAME)["data"]["config.yaml"]
        assert set(re.findall(r"\[(\w+)\]", text)) == {"7m", "3m"}

    def test_a_changed_rule_rolls_the_adapter(self, found: Render, render: Renderer) -> None:
        other = render({"m": ""}, monitoring=EXISTING, autoscaler=ADAPTER | {"rateWindow": "3m"})
        same = render({"m": ""}, monitoring=EXISTING, autoscaler=ADAPTER | {"relistInterval": "1m"})
        hashes = [
            one.one("Deployment", NAME)["spec"]["template"]["metadata"]["annotations"] for one in (found, other, same)
        ]
        assert hashes[0] == hashes[2] != hashes[1]

    def test_every_metric_of_an_hpa_is_one_that_it_serves(self, render: Renderer) -> None:
        pools = [{"name": mode, "sharing": mode, "gpuModel": "A100", "gpuMemory": "80Gi"} for mode in ("whole", "hami")]
        every = "gpu: 70, qps: 5, queueMs: 5, pending: 5"
        files = {
            "whole": f"resources: {{cpu: 1, memory: 2Gi, gpu: 1}}\nscaling: {{max: 5, {every}}}\n",
            "hami": "resources: {cpu: 1, memory: 2Gi, gpu: 0.5}\nscaling: {max: 5, gpu: 70}\n",
        }
        settings: dict[str, Any] = {"monitoring": EXISTING, "autoscaler": ADAPTER, "gpuPools": pools}
        estate = render(files, **settings)
        served = {rule["name"]["as"] for rule in config(estate)["rules"]}
        asked = {metric["pods"]["metric"]["name"] for one in estate.objects("HorizontalPodAutoscaler")
                 for metric in one["spec"]["metrics"]}  # fmt: skip
        assert len(asked) == 5
        assert asked <= served


class TestObjects:
    def test_each_is_valid_in_the_newest_kubernetes(self, found: Render, issued: Render) -> None:
        for one in [*objects(found), *objects(issued)]:
            if "cert-manager" not in one["apiVersion"]:
                kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)

    def test_they_are_there_only_where_the_stack_asks_for_them(self, render: Renderer, found: Render) -> None:
        assert len(objects(found)) == 13
        assert objects(render({"m": ""}, monitoring=EXISTING)) == []
        assert objects(render({"m": ""}, monitoring=EXISTING, autoscaler={"backend": "keda"})) == []

    def test_the_estate_is_otherwise_as_before(self, render: Renderer) -> None:
        models = {name: text for name, text in PROD_MODELS.items() if "gpu" not in text and "pool" not in text}
        before = render(models, monitoring=EXISTING)
        after = render(models, monitoring=EXISTING, autoscaler=ADAPTER)
        own = {key for key in after.resources if key not in before.resources}
        assert {key: after.resources[key] for key in before.resources} == dict(before.resources)
        assert len(own) == 15  # with the component and the namespace

    def test_they_live_where_the_pod_may(self, found: Render) -> None:
        labels = found.one("Namespace", "monitoring")["metadata"]["labels"]
        assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
        for kind in ("Deployment", "Service", "ConfigMap", "ServiceAccount", "PodDisruptionBudget"):
            assert found.one(kind, NAME)["metadata"]["namespace"] == "monitoring"


class TestPod:
    def test_two_replicas_survive_a_drained_node(self, found: Render) -> None:
        spec = found.one("Deployment", NAME)["spec"]
        assert spec["replicas"] == 2
        assert found.one("PodDisruptionBudget", NAME)["spec"]["maxUnavailable"] == 1
        (spread,) = found.pod(NAME)["topologySpreadConstraints"]
        assert spread["topologyKey"] == "kubernetes.io/hostname"
        labels = spec["template"]["metadata"]["labels"]
        selectors = [spec["selector"]["matchLabels"], spread["labelSelector"]["matchLabels"],
                     found.one("PodDisruptionBudget", NAME)["spec"]["selector"]["matchLabels"],
                     found.one("Service", NAME)["spec"]["selector"]]  # fmt: skip
        assert all(one.items() <= labels.items() for one in selectors)

    @pytest.mark.parametrize("which", ["found", "issued"])
    def test_it_is_restricted(self, which: str, request: pytest.FixtureRequest) -> None:
        render: Render = request.getfixturevalue(which)
        pod, one = render.pod(NAME), container(render)
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }

    def test_it_writes_its_certificate_to_a_volume(self, found: Render) -> None:
        path = next(arg.partition("=")[2] for arg in container(found)["args"] if arg.startswith("--cert-dir="))
        (mount,) = [mount for mount in container(found)["volumeMounts"] if mount["mountPath"] == path]
        (volume,) = [volume for volume in found.pod(NAME)["volumes"] if volume["name"] == mount["name"]]
        assert volume["emptyDir"] == {}
        assert not mount.get("readOnly")

    def test_it_reads_its_rules_from_the_config_map(self, found: Render) -> None:
        path = next(arg.partition("=")[2] for arg in container(found)["args"] if arg.startswith("--config="))
        (mount,) = [mount for mount in container(found)["volumeMounts"] if path.startswith(mount["mountPath"])]
        (volume,) = [volume for volume in found.pod(NAME)["volumes"] if volume["name"] == mount["name"]]
        assert volume["configMap"]["name"] == NAME
        assert path.removeprefix(f"{mount['mountPath']}/") in found.one("ConfigMap", NAME)["data"]

    def test_its_probes_and_service_meet_its_port(self, found: Render) -> None:
        one = container(found)
        (port,) = one["ports"]
        assert f"--secure-port={port['containerPort']}" in one["args"]
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert (one[probe]["httpGet"]["port"], one[probe]["httpGet"]["scheme"]) == (port["name"], "HTTPS")
        (service,) = found.one("Service", NAME)["spec"]["ports"]
        assert service["targetPort"] == port["name"]

    @pytest.mark.parametrize(
        ("monitoring", "url"),
        [
            (EXISTING, URL),
            ({"prometheus": {"provider": "existing", "release": "mon", "namespace": "obs"}},
             "http://mon-kube-prometheus-stack-prometheus.obs.svc:9090"),
            ({"prometheus": {"provider": "managed"}}, "http://prometheus.monitoring.svc:9090"),
        ],
    )  # fmt: skip
    def test_it_asks_the_prometheus_of_the_stack(self, monitoring: dict[str, Any], url: str, render: Renderer) -> None:
        estate = render({"m": ""}, monitoring=monitoring, autoscaler=ADAPTER)
        assert f"--prometheus-url={url}" in container(estate)["args"]

    @pytest.mark.parametrize(
        ("interval", "written", "relist", "age"),
        [("15s", {}, "30s", "1m"), ("45s", {}, "45s", "3m"), ("15s", {"relistInterval": "5m"}, "5m", "5m")],
    )
    def test_a_metric_stays_known_between_two_scrapes(
        self, interval: str, written: dict[str, str], relist: str, age: str, render: Renderer
    ) -> None:
        estate = render({"m": ""}, monitoring=EXISTING | {"scrapeInterval": interval}, autoscaler=ADAPTER | written)
        arguments = container(estate)["args"]
        assert {f"--metrics-relist-interval={relist}", f"--metrics-max-age={age}"} <= set(arguments)


class TestRights:
    def test_it_may_read_pods_and_namespaces_and_nothing_else(self, found: Render) -> None:
        role = found.one("ClusterRole", "triton-estate-metrics-adapter")
        (rule,) = role["rules"]
        assert rule == {"apiGroups": [""], "resources": ["namespaces", "pods"], "verbs": ["get", "list", "watch"]}

    @pytest.mark.parametrize(
        ("binding", "role", "subject"),
        [
            ("triton-estate-metrics-adapter", "triton-estate-metrics-adapter", ("monitoring", NAME)),
            ("triton-estate-metrics-adapter-auth", "system:auth-delegator", ("monitoring", NAME)),
            ("triton-estate-custom-metrics", "triton-estate-custom-metrics",
             ("kube-system", "horizontal-pod-autoscaler")),
        ],
    )  # fmt: skip
    def test_each_right_goes_to_one_account(
        self, binding: str, role: str, subject: tuple[str, str], found: Render
    ) -> None:
        one = found.one("ClusterRoleBinding", binding)
        (account,) = one["subjects"]
        assert one["roleRef"]["name"] == role
        assert (account["kind"], account["namespace"], account["name"]) == ("ServiceAccount", *subject)

    def test_it_knows_the_api_server(self, found: Render) -> None:
        one = found.one("RoleBinding")
        assert one["metadata"]["namespace"] == "kube-system"
        assert one["roleRef"]["name"] == "extension-apiserver-authentication-reader"
        assert found.pod(NAME)["serviceAccountName"] == one["subjects"][0]["name"]

    def test_the_hpa_controller_may_read_every_custom_metric(self, found: Render) -> None:
        (rule,) = found.one("ClusterRole", "triton-estate-custom-metrics")["rules"]
        assert (rule["apiGroups"], rule["resources"]) == (["custom.metrics.k8s.io"], ["*"])


class TestApi:
    @pytest.mark.parametrize("name", APIS)
    def test_the_api_server_finds_it(self, name: str, found: Render) -> None:
        spec = found.one("APIService", name)["spec"]
        service = found.one("Service", spec["service"]["name"])
        assert f"{spec['version']}.{spec['group']}" == name
        assert spec["service"]["namespace"] == service["metadata"]["namespace"]
        assert spec["service"]["port"] == service["spec"]["ports"][0]["port"]

    def test_there_are_no_others(self, found: Render) -> None:
        assert sorted(one["metadata"]["name"] for one in found.objects("APIService")) == APIS

    @pytest.mark.parametrize("name", APIS)
    def test_nobody_checks_a_certificate_of_its_own(self, name: str, found: Render) -> None:
        assert found.one("APIService", name)["spec"]["insecureSkipTLSVerify"] is True
        assert "Certificate" not in {one["kind"] for one in found.objects()}

    @pytest.mark.parametrize("name", APIS)
    def test_one_that_an_issuer_signed_is_checked(self, name: str, issued: Render) -> None:
        api, certificate = issued.one("APIService", name), issued.one("Certificate")
        assert not api["spec"].get("insecureSkipTLSVerify")
        at = f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
        assert api["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": at}

    def test_the_certificate_is_for_the_name_that_the_api_server_calls(self, issued: Render) -> None:
        certificate, service = issued.one("Certificate")["spec"], issued.one("Service", NAME)["metadata"]
        assert certificate["dnsNames"] == [f"{service['name']}.{service['namespace']}.svc"]
        assert certificate["issuerRef"] == {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": "internal"}

    def test_the_certificate_is_the_one_that_is_served(self, issued: Render) -> None:
        secret = issued.one("Certificate")["spec"]["secretName"]
        (volume,) = [one for one in issued.pod(NAME)["volumes"] if "secret" in one]
        (mount,) = [one for one in container(issued)["volumeMounts"] if one["name"] == volume["name"]]
        assert volume["secret"]["secretName"] == secret
        flags = dict(arg.split("=", 1) for arg in container(issued)["args"])
        path = mount["mountPath"]
        assert (flags["--tls-cert-file"], flags["--tls-private-key-file"]) == (f"{path}/tls.crt", f"{path}/tls.key")
        assert "--cert-dir" not in flags

    def test_it_is_registered_when_the_adapter_runs(self, found: Render) -> None:
        for name in APIS:
            needed = {urn.split("::")[2].rpartition("$")[2] for urn in found.request("APIService", name).dependencies}
            assert {"kubernetes:apps/v1:Deployment", "kubernetes:core/v1:Service"} <= needed

    def test_the_adapter_comes_after_what_it_needs(self, issued: Render) -> None:
        needed = {urn.split("::")[2].rpartition("$")[2] for urn in issued.request("Deployment", NAME).dependencies}
        assert {one.rpartition(":")[2] for one in needed} >= {
            "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "RoleBinding", "ConfigMap", "Certificate",
        }  # fmt: skip
