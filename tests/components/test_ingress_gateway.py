"""Gateways, who may talk to pods behind them, sidecars, addresses, and in which order it all comes."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import kubernetes_validate
import pytest

from components import versions
from spec import schema
from spec.names import DNS_LABEL
from tests.components.conftest import ONNX, Render
from tests.components.exposed import API, AUTH, CLUSTER, DOMAIN, INTERNAL, THREE, existing, stack
from tests.components.monitored import closure
from tests.components.proxy import services

Renderer = Callable[..., Render]
NAMESPACE = "kubernetes.io/metadata.name"
INJECT = "sidecar.istio.io/inject"
EXCLUDED = "traffic.sidecar.istio.io/excludeInboundPorts"


def releases(found: Render) -> dict[str, dict[str, Any]]:
    return {name: inputs for (token, name), inputs in found.resources.items() if token.endswith(":Release")}


class TestIstio:
    def test_a_managed_one_is_installed_from_its_charts(self, render: Renderer) -> None:
        found = releases(render({}, **stack()))
        assert {name: (one["chart"], one["version"], one["namespace"]) for name, one in found.items()} == {
            "istio-base": ("base", versions.ISTIO_VERSION, "istio-system"),
            "istiod": ("istiod", versions.ISTIO_VERSION, "istio-system"),
            "istio-ingressgateway": ("gateway", versions.ISTIO_VERSION, "istio-ingress"),
        }

    @pytest.mark.parametrize("chart", ["base", "istiod", "gateway"])
    def test_a_chart_may_lie_in_a_folder(self, chart: str, render: Renderer) -> None:
        found = releases(render({}, charts={chart: "/charts/x"}, **stack()))
        assert [one["chart"] for one in found.values()].count("/charts/x") == 1

    def test_an_existing_one_is_left_alone(self, render: Renderer) -> None:
        found = render({"m": ""}, **existing())
        assert not releases(found)
        assert {one["metadata"]["name"] for one in found.objects("Namespace")} == {"serving"}
        gateway = found.one("Gateway")
        assert (gateway["metadata"]["namespace"], gateway["spec"]["selector"]) == ("gates", {"istio": "estate"})

    def test_every_object_of_istio_comes_after_its_kind(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **stack(internal=INTERNAL))
        objects = [key for key in found.resources if "istio.io" in key[0]]
        assert len(objects) > 8
        for token, name in objects:
            before = closure(found, token.rpartition(":")[2], name)
            assert any(urn.endswith("Release::istio-base") for urn in before), (token, name)
            assert any(urn.endswith("Release::istiod") for urn in before), (token, name)

    def test_namespaces_admit_no_more_than_they_have_to(self, render: Renderer) -> None:
        levels = {
            one["metadata"]["name"]: one["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
            for one in render({}, **stack()).objects("Namespace")
        }
        assert levels == {"serving": "restricted", "istio-system": "baseline", "istio-ingress": "baseline"}

    def test_the_gateway_is_not_alone_and_grows(self, render: Renderer) -> None:
        values = releases(render({}, **stack(replicas={"min": 3, "max": 9})))["istio-ingressgateway"]["values"]
        assert (values["autoscaling"]["minReplicas"], values["autoscaling"]["maxReplicas"]) == (3, 9)
        assert values["autoscaling"]["enabled"] is True
        assert values["podDisruptionBudget"] == {"maxUnavailable": 1}
        keys = [spread["topologyKey"] for spread in values["topologySpreadConstraints"]]
        assert keys == ["topology.kubernetes.io/zone", "kubernetes.io/hostname"]

    def test_by_itself_it_has_two_pods(self, render: Renderer) -> None:
        values = releases(render({}, **stack()))["istio-ingressgateway"]["values"]
        assert values["autoscaling"]["minReplicas"] == 2

    def test_a_pod_that_goes_finishes_the_longest_request(self, render: Renderer) -> None:
        models = {"m": "traffic: {timeout: 20m}\n", "n": ""}
        values = releases(render(models, **stack()))["istio-ingressgateway"]["values"]
        assert values["terminationGracePeriodSeconds"] > 1200
        assert values["env"]["EXIT_ON_ZERO_ACTIVE_CONNECTIONS"] == "true"

    def test_its_labels_are_those_that_everything_selects(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **stack(internal=INTERNAL))
        # The chart labels its pods with the name of the release, less "istio-".
        labels = {name.removeprefix("istio-") for name in releases(found) if "gateway" in name}
        selectors = {one["spec"]["selector"]["istio"] for one in found.objects("Gateway")}
        assert selectors == labels == {"ingressgateway", "internalgateway"}


class TestListeners:
    def test_with_a_certificate_plain_http_leads_to_https(self, render: Renderer) -> None:
        secure, plain = render({}, **stack()).one("Gateway")["spec"]["servers"]
        assert secure["port"] == {"number": 443, "name": "https", "protocol": "HTTPS"}
        assert (secure["tls"]["mode"], secure["tls"]["minProtocolVersion"]) == ("SIMPLE", "TLSV1_2")
        assert plain == {
            "port": {"number": 80, "name": "http", "protocol": "HTTP"},
            "hosts": [f"serving/*.{DOMAIN}"],
            "tls": {"httpsRedirect": True},
        }

    def test_without_one_there_is_plain_http_only(self, render: Renderer) -> None:
        (server,) = render({}, **stack(tls=None)).one("Gateway")["spec"]["servers"]
        assert server == {
            "port": {"number": 80, "name": "http", "protocol": "HTTP"},
            "hosts": [f"serving/*.{DOMAIN}"],
        }

    def test_the_certificate_holds_for_every_host(self, render: Renderer) -> None:
        found = render({}, **stack())
        certificate, gateway = found.one("Certificate"), found.one("Gateway")
        assert certificate["spec"]["dnsNames"] == [f"*.{DOMAIN}"]
        assert certificate["spec"]["issuerRef"]["name"] == "letsencrypt"
        # The gateway reads it in the namespace of its pods.
        assert certificate["metadata"]["namespace"] == gateway["metadata"]["namespace"] == "istio-ingress"
        assert gateway["spec"]["servers"][0]["tls"]["credentialName"] == certificate["spec"]["secretName"]

    def test_each_gateway_has_one_for_the_hosts_that_it_serves(self, render: Renderer) -> None:
        internal = {"domain": "models.internal", "tls": {"issuer": "inside"}}
        models = {"m": "", "n": "traffic: {host: other}\n"}
        found = render(models, **stack(prefixHost=DOMAIN, internal=internal | {"prefixHost": "all.models.internal"}))
        kept = {one["spec"]["secretName"]: one for one in found.objects("Certificate")}
        assert len(kept) == len(found.objects("Gateway")) == 2
        for gateway, issuer in zip(found.objects("Gateway"), ("letsencrypt", "inside"), strict=True):
            (credential,) = [one["tls"]["credentialName"] for one in gateway["spec"]["servers"][:1]]
            metadata, certificate = gateway["metadata"], kept[credential]
            assert certificate["metadata"]["namespace"] == metadata["namespace"]
            named = set(certificate["spec"].pop("dnsNames"))
            reference = {"group": "cert-manager.io", "kind": "ClusterIssuer", "name": issuer}
            assert certificate["spec"] == {"secretName": credential, "issuerRef": reference}
            served = set(services(found, f"{metadata['namespace']}/{metadata['name']}"))
            assert len(served) == 3
            # A wildcard stands for one label.
            assert {f"*.{host.partition('.')[2]}" if host not in named else host for host in served} == named

    def test_a_given_one_is_taken(self, render: Renderer) -> None:
        found = render({}, **stack(tls={"secret": "wildcard"}))
        assert not found.objects("Certificate")
        assert found.one("Gateway")["spec"]["servers"][0]["tls"]["credentialName"] == "wildcard"

    def test_the_domain_itself_may_be_the_shared_host(self, render: Renderer) -> None:
        found = render({"m": ""}, **stack(prefixHost=DOMAIN))
        hosts = [f"serving/*.{DOMAIN}", f"serving/{DOMAIN}"]
        assert all(server["hosts"] == hosts for server in found.one("Gateway")["spec"]["servers"])
        assert found.one("Certificate")["spec"]["dnsNames"] == [f"*.{DOMAIN}", DOMAIN]

    def test_two_gateways_share_nothing(self, render: Renderer) -> None:
        found = render({}, **stack(internal=INTERNAL))
        names = [one["metadata"]["name"] for one in found.objects("Gateway")]
        hosts = [one["spec"]["servers"][0]["hosts"] for one in found.objects("Gateway")]
        assert names == ["triton-estate", "triton-estate-internal"]
        assert hosts == [[f"serving/*.{DOMAIN}"], ["serving/*.models.internal"]]
        # Istio refuses a gateway whose name has a dot.
        assert all(DNS_LABEL.fullmatch(name) for name in names)

    def test_access_is_logged_unless_told_otherwise(self, render: Renderer) -> None:
        telemetry = render({}, **stack()).one("Telemetry")
        assert telemetry["spec"]["accessLogging"] == [{"providers": [{"name": "envoy"}]}]
        assert not render({}, **stack(accessLogs=False)).objects("Telemetry")


def peers(found: Render, port: int, name: str = "m-v1") -> list[Any]:
    """Who may come to a port of a pod; None for everybody."""
    rules = found.one("NetworkPolicy", name)["spec"]["ingress"]
    return [rule.get("from") for rule in rules if port in {one["port"] for one in rule["ports"]}]


def namespaces(found: Render, port: int, name: str = "m-v1") -> set[str]:
    return {
        peer["namespaceSelector"]["matchLabels"][NAMESPACE] for rule in peers(found, port, name) for peer in rule or []
    }


class TestWhoComesIn:
    @pytest.mark.parametrize("port", [8000, 8001])
    def test_requests_come_from_the_gateways_and_the_estate_itself(self, port: int, render: Renderer) -> None:
        found = render({"m": ""}, **stack())
        assert namespaces(found, port) == {"istio-ingress", "serving"}
        assert None not in peers(found, port)

    def test_of_the_gateways_namespace_only_its_pods(self, render: Renderer) -> None:
        found = render({"m": ""}, **existing())
        (peer,) = [
            peer
            for rule in peers(found, 8000)
            for peer in rule
            if peer["namespaceSelector"]["matchLabels"][NAMESPACE] == "gates"
        ]
        assert peer["podSelector"] == {"matchLabels": {"istio": "estate"}}

    @pytest.mark.parametrize(("more", "allowed"), [("", True), (AUTH, False)], ids=["open", "token"])
    def test_callers_come_past_the_gateway_where_no_token_is_asked_for(
        self, more: str, *, allowed: bool, render: Renderer
    ) -> None:
        found = render({"m": more}, **stack(callers=["shop"]))
        assert ("shop" in namespaces(found, 8000)) == allowed
        assert "shop" not in namespaces(found, 8002)

    @pytest.mark.parametrize(
        ("prometheus", "namespace"),
        [
            ({"provider": "managed"}, "monitoring"),
            ({"provider": "existing", "release": "mon", "namespace": "obs"}, "obs"),
        ],
    )
    def test_metrics_are_for_the_prometheus_of_the_stack(
        self, prometheus: dict[str, str], namespace: str, render: Renderer
    ) -> None:
        found = render({"m": ""}, monitoring={"prometheus": prometheus}, **stack())
        assert namespaces(found, 8002) == {namespace, "serving"}
        assert None not in peers(found, 8002)

    def test_where_it_is_unknown_they_are_for_any(self, render: Renderer) -> None:
        assert None in peers(render({"m": ""}, **stack()), 8002)

    def test_without_a_gateway_it_is_as_before(self, render: Renderer) -> None:
        assert peers(render({"m": ""}, **CLUSTER), 8000) == [None]


def pod(found: Render) -> dict[str, Any]:
    return found.one("Deployment", "m-v1")["spec"]["template"]["metadata"]


class TestSidecars:
    def test_off_means_off_whatever_the_namespace_says(self, render: Renderer) -> None:
        found = pod(render({"m": ""}, **stack()))
        assert found["labels"][INJECT] == "false"
        assert not [name for name in found["annotations"] if "istio" in name]

    def test_on_prometheus_goes_past_it(self, render: Renderer) -> None:
        found = pod(render({"m": ""}, **stack(sidecars=True)))
        assert found["labels"][INJECT] == "true"
        assert "8002" in found["annotations"][EXCLUDED].split(",")

    def test_it_is_no_second_place_of_a_pods_metrics(self, render: Renderer) -> None:
        annotations = pod(render({"m": ""}, **stack(sidecars=True)))["annotations"]
        assert annotations["prometheus.istio.io/merge-metrics"] == "false"

    @pytest.mark.parametrize("sidecars", [True, False])
    def test_what_stands_beside_a_model_stays_outside_whatever_the_namespace_says(
        self, sidecars: bool, render: Renderer
    ) -> None:
        found = render({"m": f"{ONNX}heartbeat: {{}}\ndebug: {{}}\n"}, **stack(sidecars=sidecars))
        beating = found.one("Deployment", "m-v1-heartbeat")["spec"]
        assert beating["template"]["metadata"]["labels"][INJECT] == "false"
        assert INJECT not in beating["selector"]["matchLabels"]
        assert found.one("Pod", "m-debug")["metadata"]["labels"][INJECT] == "false"

    def test_a_stack_without_a_gateway_says_nothing_of_sidecars(self, render: Renderer) -> None:
        assert INJECT not in str(render({"m": f"{ONNX}heartbeat: {{}}\ndebug: {{}}\n"}, **CLUSTER).resources)

    @pytest.mark.parametrize(
        ("settings", "waits"),
        [(stack(sidecars=True), True), (stack(), False), (existing(sidecars=True), False)],
        ids=["managed", "off", "existing"],
    )
    def test_no_pod_comes_before_what_injects_it(self, settings: dict[str, Any], waits: bool, render: Renderer) -> None:
        before = closure(render({"m": ""}, **settings), "Deployment", "m-v1")
        assert any(urn.endswith("Release::istiod") for urn in before) is waits

    @pytest.mark.parametrize("more", ["", ONNX], ids=["direct", "synced"])
    def test_it_is_there_before_the_models_are_fetched(self, more: str, render: Renderer) -> None:
        annotations = pod(render({"m": more}, **stack(sidecars=True)))["annotations"]
        assert annotations["sidecar.istio.io/nativeSidecar"] == "true"
        assert json.loads(annotations["proxy.istio.io/config"]) == {"holdApplicationUntilProxyStarts": True}

    def test_no_selector_asks_for_it(self, render: Renderer) -> None:
        found = render({"m": ""}, **stack(sidecars=True))
        assert INJECT not in str(found.one("Deployment", "m-v1")["spec"]["selector"])

    def test_it_reaches_istiod(self, render: Renderer) -> None:
        def istiod(found: Render) -> bool:
            rules = found.one("NetworkPolicy", "m-v1")["spec"]["egress"]
            return any({"port": 15012, "protocol": "TCP"} in rule["ports"] for rule in rules)

        assert istiod(render({"m": ""}, **stack(sidecars=True)))
        assert not istiod(render({"m": ""}, **stack()))

    def test_a_managed_istio_brings_the_plugin_that_restricted_pods_need(self, render: Renderer) -> None:
        found = render({"m": ""}, **stack(sidecars=True))
        assert releases(found)["istio-cni"]["chart"] == "cni"
        assert releases(found)["istiod"]["values"]["pilot"] == {"cni": {"enabled": True}}
        level = found.one("Namespace", "istio-system")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        assert level == "privileged"
        assert found.one("Namespace", "serving")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == (
            "restricted"
        )

    def policy(self, found: Render) -> dict[str, Any]:
        (policy,) = [one for one in found.objects("AuthorizationPolicy") if one["spec"]["action"] == "ALLOW"]
        return policy

    def test_pods_know_who_calls(self, render: Renderer) -> None:
        found = self.policy(render({"m": ""}, **stack(sidecars=True, callers=["shop"])))
        assert found["spec"]["selector"]["matchLabels"] == {
            "app.kubernetes.io/name": "triton",
            "app.kubernetes.io/instance": "m",
        }
        (rule,) = found["spec"]["rules"]
        assert rule == {"from": [{"source": {"namespaces": ["istio-ingress", "serving", "shop"]}}]}

    def test_callers_past_the_gateway_have_no_token(self, render: Renderer) -> None:
        found = self.policy(render({"m": AUTH}, **stack(sidecars=True, callers=["shop"])))
        assert found["spec"]["rules"][0]["from"][0]["source"]["namespaces"] == ["istio-ingress", "serving"]

    def test_a_heartbeat_has_no_identity_and_is_let_through_to_what_it_asks(self, render: Renderer) -> None:
        _, rule = self.policy(render({"m": f"{ONNX}heartbeat: {{}}\n"}, **stack(sidecars=True)))["spec"]["rules"]
        (operation,) = [one["operation"] for one in rule["to"]]
        assert operation["paths"] == ["/v2/models/m/infer", "/v2/models/m/config"]
        assert operation["ports"] == ["8000"]

    def test_without_sidecars_nobody_would_enforce_it(self, render: Renderer) -> None:
        assert not render({"m": ""}, **stack()).objects("AuthorizationPolicy")


class TestOrder:
    def test_a_revision_gets_requests_when_it_can_take_them(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 50, v2: 50}}\n", "n": ""}, **stack())
        before = closure(found, "VirtualService", "m")
        assert {urn.rpartition("::")[2] for urn in before if "Deployment" in urn} == {"m-v1", "m-v2", "m-v3"}

    def test_another_model_is_not_waited_for(self, render: Renderer) -> None:
        found = render({"m": "", "n": ""}, **stack())
        assert not [urn for urn in closure(found, "VirtualService", "m") if urn.endswith("Deployment::n-v1")]

    @pytest.mark.parametrize("more", ["mirror: {to: v3, percent: 5}, ", ""], ids=["mirror", "none"])
    def test_a_promotion_changes_routes_and_the_front_service_only(self, more: str, render: Renderer) -> None:
        splits = ("{v1: 80, v2: 20}", "{v1: 20, v2: 80}")
        one, two = (
            render({"m": f"{THREE}traffic: {{{more}split: {split}}}\n"}, **stack(internal=INTERNAL)) for split in splits
        )
        assert set(one.resources) == set(two.resources)
        changed = {key for key in one.resources if one.resources[key] != two.resources[key]}
        kinds = {(token.rpartition(":")[2], name) for token, name in changed}
        assert kinds == {
            ("VirtualService", "m"),
            ("VirtualService", "m.internal"),
            ("VirtualService", "m.mesh"),
            ("VirtualService", "triton-estate.public"),
            ("Service", "m"),
            ("ConfigMap", "triton-models"),
        }

    def test_numbers_between_change_routes_only(self, render: Renderer) -> None:
        splits = ("{v1: 90, v2: 10}", "{v1: 80, v2: 20}")
        one, two = (render({"m": f"{THREE}traffic: {{split: {split}}}\n"}, **stack()) for split in splits)
        changed = {key[0].rpartition(":")[2] for key in one.resources if one.resources[key] != two.resources[key]}
        assert changed == {"VirtualService", "ConfigMap"}


def fits(outputs: object) -> None:
    """They are what the schema says."""
    text = (schema.FOLDER / "contract.schema.json").read_text(encoding="utf-8")
    jsonschema.Draft202012Validator(json.loads(text)).validate(outputs)


class TestAddresses:
    def test_they_are_the_gateways(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **stack(internal=INTERNAL)).outputs["models"]["m"]
        assert {key: found[key] for key in ("httpUrl", "httpTarget", "grpcTarget", "tls", "requestHeaders")} == {
            "httpUrl": f"https://m.{DOMAIN}",
            "httpTarget": f"m.{DOMAIN}:443",
            "grpcTarget": f"m.{DOMAIN}:443",
            "tls": True,
            "requestHeaders": ["authorization"],
        }
        assert found["inferUrl"] == f"https://m.{DOMAIN}/v2/models/m/infer"
        assert found["shared"] == {"httpUrl": f"https://{API}/m", "httpTarget": f"{API}:443/m", "tls": True}
        assert found["internal"] == {
            "httpUrl": "https://m.models.internal",
            "httpTarget": "m.models.internal:443",
            "grpcTarget": "m.models.internal:443",
            "tls": True,
        }
        host = "m.serving.svc.cluster.local"
        assert found["service"] == {
            "httpUrl": f"http://{host}:8000",
            "httpTarget": f"{host}:8000",
            "grpcTarget": f"{host}:8001",
            "tls": False,
        }

    def test_without_a_certificate_they_are_in_clear_text(self, render: Renderer) -> None:
        found = render({"m": ""}, **stack(tls=None)).outputs["models"]["m"]
        assert (found["httpUrl"], found["httpTarget"], found["tls"]) == (f"http://m.{DOMAIN}", f"m.{DOMAIN}:80", False)
        assert "requestHeaders" not in found

    def test_the_snippets_bring_a_token_and_check_the_certificate(self, render: Renderer) -> None:
        snippets = render({"m": AUTH}, **stack()).outputs["models"]["m"]["snippets"]
        assert snippets["curl"] == f'curl -H "authorization: Bearer $TOKEN" https://m.{DOMAIN}/v2/models/m'
        compile(snippets["python"], "snippet", "exec")
        assert "ssl=True, ssl_context_factory=gevent.ssl.create_default_context" in snippets["python"]
        assert 'headers={"authorization": "Bearer " + os.environ["TOKEN"]}' in snippets["python"]

    def test_they_fit_the_schema(self, render: Renderer) -> None:
        models = {"m": AUTH + THREE + "traffic: {split: {v1: 100}, mirror: {to: v2, percent: 0.5}}\n"}
        outputs = render(models, **stack(internal=INTERNAL)).outputs
        fits(outputs)
        assert outputs["models"]["m"]["mirror"] == {"to": "v2", "percent": 0.5}

    def test_clients_in_the_cluster_look_models_up_by_name(self, render: Renderer) -> None:
        more = AUTH + THREE + "traffic: {split: {v1: 90, v2: 10}}\n"
        found = render({"m": more}, **stack())
        config_map = found.one("ConfigMap", "triton-models")
        assert config_map["metadata"]["namespace"] == "serving"
        entry = json.loads(config_map["data"]["models.json"])["models"]["m"]
        assert entry["revisions"] == {"v1": 90, "v2": 10, "v3": 0}
        outputs = found.outputs["models"]["m"]
        assert all(entry[key] == outputs[key] for key in ("httpUrl", "grpcTarget", "service", "requestHeaders"))

    def test_a_revision_is_listed_when_it_is_there(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 100}}\n"}, **stack())
        before = closure(found, "ConfigMap", "triton-models")
        assert {urn.rpartition("::")[2] for urn in before if "Deployment" in urn} == {"m-v1", "m-v2", "m-v3"}


class TestProtocols:
    def test_every_port_says_what_it_speaks(self, render: Renderer) -> None:
        # Istio takes a port that does not say grpc for HTTP/1.1: no retries, no copies, no balancing by request.
        found = render({"m": ""}, **stack())
        for service in found.objects("Service"):
            spoken = {port["name"]: (port["port"], port["appProtocol"]) for port in service["spec"]["ports"]}
            assert spoken == {"http": (8000, "http"), "grpc": (8001, "grpc"), "http-metrics": (8002, "http")}

    def test_the_address_for_grpc_is_one_that_balances_by_request(self, render: Renderer) -> None:
        found = render({"m": f"{ONNX}heartbeat: {{}}\n"}, **stack())
        host = found.outputs["models"]["m"]["grpcTarget"].partition(":")[0]
        headless = {
            one["metadata"]["name"] for one in found.objects("Service") if one["spec"].get("clusterIP") == "None"
        }
        assert headless
        assert host == f"m.{DOMAIN}"
        assert found.outputs["models"]["m"]["service"]["grpcTarget"].partition(".")[0] not in headless
        for service in found.objects("VirtualService"):
            assert not any(f"{name}." in str(service["spec"]) for name in headless)

    def test_copies_are_counted_once_because_triton_counts_and_not_the_mesh(self, render: Renderer) -> None:
        more = THREE + "scaling: {qps: 5}\ntraffic: {split: {v1: 100}, mirror: {to: v3}}\n"
        found = render({"m": more}, monitoring={"prometheus": {"provider": "managed"}}, **stack())
        assert "istio_requests" not in str(found.objects())
        assert {one["metadata"]["name"] for one in found.objects("HorizontalPodAutoscaler")} == {"m-v1", "m-v2", "m-v3"}


class TestValid:
    @pytest.mark.parametrize("settings", [stack(sidecars=True, callers=["a"]), existing()], ids=["managed", "existing"])
    def test_every_object_of_kubernetes_is_valid(self, settings: dict[str, Any], render: Renderer) -> None:
        found = render({"m": AUTH + f"{ONNX}heartbeat: {{}}\n"}, **settings)
        checked = 0
        for one in found.objects():
            if "istio" not in one["apiVersion"] and "." not in one["apiVersion"].partition(".k8s.io")[0]:
                kubernetes_validate.validate(one, "1.33", strict=True)
                checked += 1
        assert checked > 8
