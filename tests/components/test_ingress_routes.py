"""Routes: each model is reached by its own names and only by them, on the paths that are for callers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tritonclient.grpc import service_pb2

from components.ingress import routes
from components.ingress.crds import HttpRoute
from components.ingress.numbers import larger_than
from spec.catalog import load
from spec.names import DNS_LABEL, MODEL_NAME_MAX
from spec.resolve import Model
from tests.components.conftest import FIVE_LINES, Render
from tests.components.exposed import API, CLUSTER, DOMAIN, INTERNAL, THREE, stack
from tests.components.proxy import Request, answer, first, services

Renderer = Callable[..., Render]
SERVICE = "/inference.GRPCInferenceService"
INFER = "/v2/models/m/infer"
HTTP_PATHS = [
    "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/m", "/v2/models/m/ready", "/v2/models/m/infer",
    "/v2/models/m/config", "/v2/models/m/stats", "/v2/models/stats", "/v2/models/m/generate",
    "/v2/models/m/generate_stream", "/v2/models/m/versions/3/infer", "/v2/models/m/versions/3",
    "/v2/models/a.b_c-D/ready", "/v2/models/m/infer?timeout=5",
]  # fmt: skip
GRPC_PATHS = [
    f"{SERVICE}/{method}"
    for method in ("ServerLive", "ServerReady", "ServerMetadata", "ModelReady", "ModelMetadata", "ModelConfig",
                   "ModelStatistics", "ModelInfer", "ModelStreamInfer")
]  # fmt: skip
CLOSED = [
    "/", "/metrics", "/v2/", "/v2/models/", "/v2/repository/index", "/v2/repository/models/m/load",
    "/v2/repository/models/m/unload", "/v2/systemsharedmemory/status", "/v2/systemsharedmemory/region/a/register",
    "/v2/cudasharedmemory/region/a/unregister", "/v2/trace/setting", "/v2/models/m/trace/setting", "/v2/logging",
    "/v2/health/../repository/index", "/v2/models/m%2Ftrace/setting", "/v2/models/m/infer/x", "/x/v2/models/m/infer",
    f"{SERVICE}/RepositoryIndex", f"{SERVICE}/RepositoryModelLoad", f"{SERVICE}/RepositoryModelUnload",
    f"{SERVICE}/SystemSharedMemoryRegister", f"{SERVICE}/CudaSharedMemoryStatus", f"{SERVICE}/TraceSetting",
    f"{SERVICE}/LogSettings", "/inferenceXGRPCInferenceService/ModelInfer",
]  # fmt: skip


@pytest.fixture
def one(render: Renderer) -> Render:
    return render({"m": ""}, **stack(internal=INTERNAL))


class TestPaths:
    @pytest.mark.parametrize("path", HTTP_PATHS)
    def test_http_goes_to_its_port(self, path: str, one: Render) -> None:
        found = answer(one, Request(f"m.{DOMAIN}", path))
        assert found
        assert (found.to, found.path) == ("m-v1:8000", path)

    @pytest.mark.parametrize("path", GRPC_PATHS)
    def test_grpc_goes_to_its_port_on_the_same_host(self, path: str, one: Render) -> None:
        found = answer(one, Request(f"m.{DOMAIN}", path))
        assert found
        assert (found.to, found.path) == ("m-v1:8001", path)

    @pytest.mark.parametrize("path", CLOSED)
    @pytest.mark.parametrize("at", ["", "/m"], ids=["host", "prefix"])
    def test_what_changes_a_server_is_not_routed(self, path: str, at: str, one: Render) -> None:
        assert answer(one, Request(API if at else f"m.{DOMAIN}", at + path)) is None

    @pytest.mark.parametrize("path", HTTP_PATHS)
    def test_on_a_shared_host_the_prefix_is_taken_away(self, path: str, one: Render) -> None:
        found = answer(one, Request(API, f"/m{path}"))
        assert found
        assert (found.to, found.path) == ("m-v1:8000", path)

    @pytest.mark.parametrize("path", GRPC_PATHS)
    def test_grpc_has_no_prefix(self, path: str, one: Render) -> None:
        assert answer(one, Request(API, f"/m{path}")) is None
        assert answer(one, Request(API, path)) is None

    def test_a_port_after_the_host_changes_nothing(self, one: Render) -> None:
        assert answer(one, Request(f"M.{DOMAIN}:8443", INFER))

    def test_the_internal_gateway_has_its_own_hosts(self, one: Render) -> None:
        internal = "istio-ingress/triton-estate-internal"
        assert answer(one, Request("m.models.internal", INFER), internal)
        assert answer(one, Request(f"m.{DOMAIN}", INFER), internal) is None
        assert answer(one, Request("m.models.internal", INFER)) is None

    def test_every_expression_is_short_enough_for_istio(self, render: Renderer) -> None:
        longest = "traffic: {prefix: /" + "a" * 127 + ", limits: {maxRequestSize: 4095Mi}}\n"
        for rules in services(render({"m": longest}, **stack())).values():
            for match in (match for rule in rules for match in rule["match"]):
                texts = [match["uri"], *match.get("headers", {}).values()]
                assert all(len(text["regex"]) <= 1024 for text in texts)


ALIKE = {"bert": "", "bert-large": "", "ber": "", "bert-large-2": "traffic: {prefix: /bert/large}\n"}


class TestEachModelIsReachedByItsOwnName:
    @pytest.mark.parametrize("name", ["bert", "bert-large"])
    def test_names_that_begin_alike_are_kept_apart(self, name: str, render: Renderer) -> None:
        found = render(ALIKE, **stack())
        for request in (
            Request(f"{name}.{DOMAIN}", f"/v2/models/{name}/infer"),
            Request(API, f"/{name}/v2/models/{name}/infer"),
        ):
            reached = answer(found, request)
            assert reached
            assert (reached.to, reached.path) == (f"{name}-v1:8000", f"/v2/models/{name}/infer")

    def test_a_prefix_in_another_is_kept_apart_too(self, render: Renderer) -> None:
        found = render(ALIKE, **stack())
        reached = {path: answer(found, Request(API, f"{path}{INFER}")) for path in ("/bert", "/bert/large")}
        assert {path: one.to for path, one in reached.items() if one} == {
            "/bert": "bert-v1:8000",
            "/bert/large": "bert-large-2-v1:8000",
        }

    def test_the_longer_prefix_stands_before_the_shorter(self, render: Renderer) -> None:
        rules = services(render(ALIKE, **stack()))[API]
        lengths = [len(rule["rewrite"]["uriRegexRewrite"]["match"]) for rule in rules]
        assert lengths == sorted(lengths, reverse=True)

    def test_twenty_models_behind_one_gateway(self, render: Renderer) -> None:
        found = render({f"model-{number}": "" for number in range(20)}, **stack())
        for number in range(20):
            for request in (Request(f"model-{number}.{DOMAIN}", INFER), Request(API, f"/model-{number}{INFER}")):
                reached = answer(found, request)
                assert reached
                assert reached.to == f"model-{number}-v1:8000"

    def test_a_model_may_have_another_name_at_the_gateway(self, render: Renderer) -> None:
        found = render({"m": "traffic: {host: detect}\n"}, **stack())
        assert answer(found, Request(f"detect.{DOMAIN}", INFER))
        assert answer(found, Request(f"m.{DOMAIN}", INFER)) is None


# Few letters: names that begin alike are common.
NAME = st.from_regex(r"[ab]([ab-]{0,6}[ab])?", fullmatch=True).filter(lambda name: len(name) <= MODEL_NAME_MAX)
PART = st.from_regex(r"[ab]([ab.]{0,2}[ab])?", fullmatch=True)
PREFIXES = st.lists(PART, min_size=1, max_size=3).map(lambda parts: "/" + "/".join(parts))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    folder = tmp_path_factory.mktemp("models")
    (folder / "m.yaml").write_text(FIVE_LINES.format(name="m"), encoding="utf-8")
    ((found),) = load(folder, {"environment": "dev"} | CLUSTER, "Pulumi.test.yaml").models
    return found


def renamed(model: Model, name: str, prefix: str | None = None) -> Model:
    """The same model under another name, and on another path of a shared host."""
    traffic = model.spec.traffic.model_copy(update={"prefix": prefix})
    return replace(model, spec=model.spec.model_copy(update={"name": name, "traffic": traffic}))


def as_plain(found: list[HttpRoute]) -> list[dict[str, Any]]:
    return [route.model_dump(by_alias=True, exclude_none=True) for route in found]


class TestAnyNames:
    @given(names=st.lists(NAME, min_size=1, max_size=6, unique=True))
    @settings(max_examples=100, deadline=None)
    def test_each_name_reaches_exactly_its_model(self, names: list[str], model: Model) -> None:
        rules = as_plain(routes.prefix_routes([renamed(model, name) for name in names], "serving", {}))
        for name in [*names, "other"]:
            found = first(rules, Request(API, f"/{name}{INFER}"))
            assert (found.to if found else None) == (f"{name}-v1:8000" if name in names else None)

    @given(prefixes=st.lists(PREFIXES, min_size=1, max_size=6, unique=True))
    @settings(max_examples=100, deadline=None)
    def test_each_prefix_reaches_exactly_its_model_in_whatever_order(self, prefixes: list[str], model: Model) -> None:
        models = {path: renamed(model, f"model-{number}", path) for number, path in enumerate(prefixes)}
        forwards = as_plain(routes.prefix_routes(models.values(), "serving", {}))
        assert forwards == as_plain(routes.prefix_routes(reversed(list(models.values())), "serving", {}))
        for path, one in models.items():
            for inside in ("/v2", INFER, "/v2/health/ready"):
                for rules in (forwards, list(reversed(forwards))):
                    found = first(rules, Request(API, path + inside))
                    assert found
                    assert (found.to, found.path) == (f"{one.name}-v1:8000", inside)

    @given(number=st.integers(0, 2**33), other=st.integers(0, 2**33), zeros=st.integers(0, 3))
    @settings(max_examples=300, deadline=None)
    def test_a_number_as_an_expression_tells_larger_ones(self, number: int, other: int, zeros: int) -> None:
        header = {"content-length": "0" * zeros + str(other)}
        match = {"headers": {"content-length": {"regex": larger_than(number)}}}
        rule = {"match": [match], "directResponse": {"status": 413}}
        assert (first([rule], Request("m", "/", headers=header)) is not None) == (other > number)

    @given(number=st.integers(0, 10**6))
    def test_its_neighbours_are_told_apart(self, number: int) -> None:
        match = {"headers": {"content-length": {"regex": larger_than(number)}}}
        rule = {"match": [match], "directResponse": {"status": 413}}
        above = [first([rule], Request("m", "/", headers={"content-length": str(n)})) for n in (number, number + 1)]
        assert [one is not None for one in above] == [False, True]

    @given(name=NAME)
    def test_the_names_that_are_tried_are_names_of_models(self, name: str) -> None:
        assert DNS_LABEL.fullmatch(name)


class TestSplit:
    def test_requests_are_shared_out_by_weight(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 80, v2: 20}}\n"}, **stack())
        for path, port in ((INFER, 8000), (f"{SERVICE}/ModelInfer", 8001), (f"{SERVICE}/ModelStreamInfer", 8001)):
            reached = answer(found, Request(f"m.{DOMAIN}", path))
            assert reached
            assert reached.shares == {f"m-v1:{port}": 80, f"m-v2:{port}": 20}

    @given(cuts=st.lists(st.integers(0, 100), min_size=2, max_size=2).map(sorted))
    @settings(max_examples=60, deadline=None)
    def test_whatever_the_weights_they_arrive_and_add_up(self, cuts: list[int], model: Model) -> None:
        weights = {"v1": cuts[0], "v2": cuts[1] - cuts[0], "v3": 100 - cuts[1]}
        rules = as_plain(routes.host_routes(replace(model, weights=weights), "serving", None))
        reached = first(rules, Request(f"m.{DOMAIN}", INFER))
        assert reached
        assert reached.shares == {f"m-{name}:8000": weight for name, weight in weights.items() if weight}
        assert sum(reached.shares.values()) == 100

    @pytest.mark.parametrize(
        ("testers", "headers", "to"),
        [
            ("header: {name: x-rev, value: v2}", {"x-rev": "v2"}, "m-v2"),
            ("header: {name: x-rev, value: v2}", {"x-rev": "v1"}, "m-v1"),
            ("header: {name: x-rev, value: v2}", {}, "m-v1"),
            ("cookie: {name: a.b, value: y}", {"cookie": "a.b=y"}, "m-v2"),
            ("cookie: {name: a.b, value: y}", {"cookie": "z=1; a.b=y; c=d"}, "m-v2"),
            ("cookie: {name: a.b, value: y}", {"cookie": "a.b=yes"}, "m-v1"),
            ("cookie: {name: a.b, value: y}", {"cookie": "axb=y"}, "m-v1"),
            ("cookie: {name: a.b, value: y}", {"cookie": "za.b=y"}, "m-v1"),
        ],
    )
    def test_testers_are_known_by_their_sign(
        self, testers: str, headers: dict[str, str], to: str, render: Renderer
    ) -> None:
        more = THREE + f"traffic: {{split: {{v1: 100}}, testers: {{{testers}, to: v2}}}}\n"
        found = render({"m": more}, **stack())
        for host, path, port in (
            (f"m.{DOMAIN}", INFER, 8000),
            (f"m.{DOMAIN}", f"{SERVICE}/ModelInfer", 8001),
            (API, f"/m{INFER}", 8000),
        ):
            reached = answer(found, Request(host, path, headers=headers))
            assert reached
            assert reached.to == f"{to}:{port}"


class TestMirror:
    @pytest.mark.parametrize(("percent", "value"), [("5", 5), ("12.5", 12.5), ("0.01", 0.01), ("100", 100)])
    def test_a_share_is_copied_to_a_revision(self, percent: str, value: float, render: Renderer) -> None:
        more = THREE + f"traffic: {{split: {{v1: 100}}, mirror: {{to: v3, percent: {percent}}}}}\n"
        for path, port in ((INFER, 8000), (f"{SERVICE}/ModelInfer", 8001)):
            reached = answer(render({"m": more}, **stack()), Request(f"m.{DOMAIN}", path))
            assert reached
            assert reached.route["mirror"] == {"host": "m-v3.serving.svc.cluster.local", "port": {"number": port}}
            assert reached.route["mirrorPercentage"] == {"value": value}

    def test_the_older_one_may_get_the_copies(self, render: Renderer) -> None:
        reached = answer(
            render({"m": THREE + "traffic: {split: {v2: 100}, mirror: {to: v1}}\n"}, **stack()),
            Request(f"m.{DOMAIN}", INFER),
        )
        assert reached
        assert (reached.to, reached.route["mirror"]["host"]) == ("m-v2:8000", "m-v1.serving.svc.cluster.local")

    def test_another_model_may(self, render: Renderer) -> None:
        models = {
            "m": "traffic: {mirror: {model: n, percent: 5}}\nconfig: {name: m, backend: python, input: [{name: a,"
            " data_type: TYPE_FP32, dims: [1]}], output: [{name: b, data_type: TYPE_FP32, dims: [1]}]}\n",
            "n": "members: {m: {}}\nrevisions: {v1: {}, v2: {}}\ntraffic: {split: {v2: 100}}\n",
        }
        reached = answer(render(models, **stack()), Request(f"m.{DOMAIN}", INFER))
        assert reached
        assert reached.route["mirror"]["host"] == "n-v2.serving.svc.cluster.local"

    def test_the_deprecated_field_is_not_used(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 100}, mirror: {to: v3}}\n"}, **stack())
        for rules in services(found).values():
            assert not {"mirror_percent", "mirrorPercent"} & {key for rule in rules for key in rule}

    def test_without_copies_nothing_is_said_of_them(self, one: Render) -> None:
        for rules in services(one).values():
            assert not any({"mirror", "mirrorPercentage"} & set(rule) for rule in rules)


class TestPatience:
    @pytest.mark.parametrize(
        ("written", "sent"), [("300s", "300s"), ("1500ms", "1.5s"), ("5m", "300s"), ("24h", "86400s"), ("10m", "600s")]
    )
    def test_the_timeout_is_the_models_in_seconds(self, written: str, sent: str, render: Renderer) -> None:
        found = render({"m": f"traffic: {{timeout: {written}}}\n"}, **stack())
        timeouts = {rule["timeout"] for rules in services(found).values() for rule in rules}
        assert timeouts == {sent}

    def test_only_what_triton_never_saw_is_sent_again(self, one: Render) -> None:
        for rules in services(one).values():
            for rule in rules:
                # Istio's own default also repeats what Triton has begun to answer.
                assert set(rule["retries"]["retryOn"].split(",")) <= {
                    "connect-failure", "refused-stream", "reset-before-request",
                }  # fmt: skip


class TestMesh:
    """Callers with a sidecar use the model's Service."""

    def test_they_get_the_same_shares(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 80, v2: 20}, mirror: {to: v3}}\n"}, **stack())
        (rules,) = services(found, "mesh").values()
        for port in (8000, 8001):
            reached = first(rules, Request("m", "/v2/repository/index", port=port))
            assert reached
            assert reached.shares == {f"m-v1:{port}": 80, f"m-v2:{port}": 20}
            assert reached.route["mirror"]["port"]["number"] == port

    def test_the_host_is_the_front_service(self, one: Render) -> None:
        assert list(services(one, "mesh")) == ["m.serving.svc.cluster.local"]

    def test_metrics_stay_where_they_are(self, one: Render) -> None:
        (rules,) = services(one, "mesh").values()
        reached = first(rules, Request("m", "/metrics", port=8002))
        assert reached
        assert reached.to == "m-v1:8002"


class TestObjects:
    def test_every_host_has_one_virtual_service(self, render: Renderer) -> None:
        found = render({"a": "", "b": THREE + "traffic: {split: {v1: 100}}\n"}, **stack(internal=INTERNAL))
        hosts = [
            (gateway, host)
            for service in found.objects("VirtualService")
            for gateway in service["spec"]["gateways"]
            for host in service["spec"]["hosts"]
        ]
        assert len(hosts) == len(set(hosts)) == 2 + 2 + 2 + 1

    def test_every_destination_is_a_service_that_is_there(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 60, v2: 40}, mirror: {to: v3}}\n"}, **stack())
        known = {service["metadata"]["name"] for service in found.objects("Service")}
        for service in found.objects("VirtualService"):
            for rule in service["spec"]["http"]:
                targets = [one["destination"] for one in rule.get("route", [])] + [rule.get("mirror")]
                names = {target["host"].partition(".")[0] for target in targets if target}
                assert names <= known
                assert all(target["host"].endswith(".serving.svc.cluster.local") for target in targets if target)

    def test_the_namespace_is_the_stacks(self, render: Renderer) -> None:
        found = render({"m": ""}, namespace="models", **stack())
        assert ".models.svc.cluster.local" in str(found.objects("VirtualService"))
        assert ".serving.svc" not in str(found.objects("VirtualService") + found.objects("DestinationRule"))

    def test_every_revision_has_its_rule(self, render: Renderer) -> None:
        found = render({"m": THREE + "traffic: {split: {v1: 100}}\n"}, **stack())
        hosts = {rule["spec"]["host"] for rule in found.objects("DestinationRule")}
        assert hosts == {f"m-v{number}.serving.svc.cluster.local" for number in (1, 2, 3)}

    def test_a_rule_balances_by_request_over_all_zones(self, one: Render) -> None:
        policy = one.one("DestinationRule")["spec"]["trafficPolicy"]
        assert policy["loadBalancer"] == {"simple": "LEAST_REQUEST", "localityLbSetting": {"enabled": False}}

    def test_it_breaks_the_circuit_for_a_pod_that_is_gone_and_not_for_a_bad_request(self, one: Render) -> None:
        found = one.one("DestinationRule")["spec"]["trafficPolicy"]["outlierDetection"]
        assert found["splitExternalLocalOriginErrors"] is True
        assert found["consecutiveLocalOriginFailures"] < found["consecutiveGatewayErrors"]
        # 500 is what Triton says of a request that it cannot compute.
        assert found["consecutive5xxErrors"] == 0
        assert 0 < found["maxEjectionPercent"] <= 50

    def test_it_bounds_what_a_proxy_has_open(self, one: Render) -> None:
        pool = one.one("DestinationRule")["spec"]["trafficPolicy"]["connectionPool"]
        assert pool["tcp"]["maxConnections"] == pool["http"]["http2MaxRequests"] == 1024
        assert pool["http"]["h2UpgradePolicy"] == "DO_NOT_UPGRADE"

    def test_without_a_gateway_there_is_nothing_of_it(self, render: Renderer) -> None:
        found = render({"m": ""}, **CLUSTER)
        assert not [key for key in found.resources if "istio" in key[0] or "ingress" in key[0]]
        assert "sidecar" not in str(found.objects())


def test_every_method_of_triton_is_either_open_or_closed() -> None:
    methods = {method.name for method in service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods}
    opened = {path.rpartition("/")[2] for path in GRPC_PATHS}
    closed = {name for name in methods - opened if not name.startswith(("Repository", "SystemShared", "CudaShared"))}
    assert opened < methods
    assert closed == {"TraceSetting", "LogSettings"}
