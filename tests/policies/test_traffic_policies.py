"""Routes, gateways and tokens: what files of the corpus do not show."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import traffic
from policies.judging.judge import Outcome
from policies.judging.unknown import UNKNOWN
from policies.judging.view import Resource
from policies.reading.authorization import Checks, Request
from policies.reading.matching import Uri, swallowed, uri
from policies.reading.mesh import service_of
from tests.policies.judging import deployment, judged, made, messages, outcomes

ISTIO = "networking.istio.io/v1"
HOST = "triton.serving.svc.cluster.local"
PORTS = [{"name": "http", "port": 8000}, {"name": "grpc", "port": 8001}, {"name": "http-metrics", "port": 8002}]
TRITON = deployment({})


def service(ports: list[dict[str, Any]] | None = None, name: str = "triton", **spec: Any) -> Resource:
    return made("core/v1", "Service", name, {"selector": {"app": "triton"}, "ports": ports or PORTS, **spec})


def routes(*http: Any, name: str = "routes", **spec: Any) -> Resource:
    content = {"hosts": ["a.example.com"], "gateways": ["gates/public"], "http": list(http), **spec}
    return made(ISTIO, "VirtualService", name, content)


def to(*weights: int | None, host: Any = HOST, port: Any = 8000, **rule: Any) -> dict[str, Any]:
    destination = {"host": host} | ({} if port is None else {"port": {"number": port}})
    shares = [{"destination": destination} | ({} if weight is None else {"weight": weight}) for weight in weights]
    return {"route": shares, "timeout": "60s", **rule}


def gateway(*servers: dict[str, Any], namespace: str = "gates", name: str = "public", **metadata: Any) -> Resource:
    return made(ISTIO, "Gateway", name, {"selector": {"istio": "x"}, "servers": list(servers)}, namespace, **metadata)


def security(kind: str, namespace: str = "gates", selector: dict[str, str] | None = None, **spec: Any) -> Resource:
    labels = {"istio": "x"} if selector is None else selector
    found = {"selector": {"matchLabels": labels}, **spec}
    return made("security.istio.io/v1", kind, kind.lower(), found, namespace)


INSIDE = {"app.kubernetes.io/name": "internal-gateway"}
STRANGERS = {"from": [{"source": {"notRequestPrincipals": ["*"]}}]}
DENY = security("AuthorizationPolicy", action="DENY", rules=[STRANGERS])
JWT = security("RequestAuthentication", jwtRules=[{"issuer": "a"}])
PLAIN = {"port": {"number": 80, "protocol": "HTTP"}, "hosts": ["*"]}
SECURE = {"port": {"number": 443, "protocol": "HTTPS"}, "hosts": ["*"]}


class TestWeights:
    @given(st.lists(st.integers(0, 100), min_size=2, max_size=5))
    def test_they_are_good_if_they_sum_to_a_hundred(self, weights: list[int]) -> None:
        assert bool(messages(traffic.route_weights, routes(to(*weights)))) == (sum(weights) != 100)

    @pytest.mark.parametrize("rule", [to(None), to(0), to(100), to(50), {}, {"route": None}])
    def test_a_single_destination_gets_everything(self, rule: dict[str, Any]) -> None:
        assert messages(traffic.route_weights, routes(rule)) == []

    @pytest.mark.parametrize("protocol", ["tcp", "tls"])
    def test_other_protocols_are_shared_out_too(self, protocol: str) -> None:
        spec: dict[str, Any] = {protocol: [to(60, 50)]}
        found = routes(**spec)
        assert messages(traffic.route_weights, found) == [f"rule {protocol}[0]: weights sum to 110 (60, 50)"]

    def test_every_rule_is_named(self) -> None:
        found = routes(to(1, 2, name="first"), to(100), to(3, 4))
        assert [text.partition(":")[0] for text in messages(traffic.route_weights, found)] == [
            "rule first",
            "rule http[2]",
        ]

    def test_an_unknown_weight_is_not_nothing(self) -> None:
        broken = to(50, 50)
        broken["route"][0]["weight"] = UNKNOWN
        assert outcomes(traffic.route_weights, routes(broken)) == [Outcome.UNDECIDED]

    def test_the_kind_of_another_system_is_left_alone(self) -> None:
        other = made("appmesh.k8s.aws/v1beta2", "VirtualService", "a", {"http": [to(1, 2)]})
        assert messages(traffic.route_weights, other) == []


class TestMirrors:
    @pytest.mark.parametrize(("percent", "found"), [(0, 0), (0.1, 0), (100, 0), (100.1, 1), (-1, 1)])
    @pytest.mark.parametrize("form", ["mirrorPercentage", "mirrorPercent", "mirrors"])
    def test_the_share_is_between_nothing_and_everything(self, percent: float, found: int, form: str) -> None:
        copy = {"host": "shadow", "port": {"number": 8000}}
        rule = {
            "mirrorPercentage": {"mirror": copy, "mirrorPercentage": {"value": percent}},
            "mirrorPercent": {"mirror": copy, "mirrorPercent": percent},
            "mirrors": {"mirrors": [{"destination": copy, "percentage": {"value": percent}}]},
        }[form]
        estate = routes(to(None, **rule)), service(), service(name="shadow")
        assert len(messages(traffic.mirror_share, *estate)) == found

    @pytest.mark.parametrize(
        ("weights", "subset", "found"), [((100,), None, 1), ((0, 100), None, 1), ((0,), None, 0), ((100,), "b", 0)]
    )
    def test_a_copy_goes_where_the_request_does_not(self, weights: Any, subset: str | None, found: int) -> None:
        copy = {"host": "triton"} | ({"subset": subset} if subset else {})
        assert len(messages(traffic.mirror_share, routes(to(*weights, mirror=copy)), service())) == found


def clashes(*matches: Any) -> list[str]:
    rules = [to(None) | ({"match": match} if match is not None else {}) for match in matches]
    return messages(traffic.route_clash, routes(*rules))


def path(**condition: str) -> dict[str, Any]:
    return {"uri": condition}


class TestClashes:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ([path(prefix="/a")], [path(prefix="/a/b")]),
            ([path(prefix="/a")], [path(exact="/a")]),
            ([path(prefix="/a")], [path(regex="/a/.*")]),
            ([path(prefix="/")], [path(exact="/a")]),
            ([path(exact="/a")], [path(exact="/a")]),
            ([path(regex="/a/[0-9]+")], [path(regex="/a/[0-9]+")]),
            ([path(regex="/a/[0-9]+")], [path(exact="/a/7")]),
            ([path(regex=".*")], [path(prefix="/a")]),
            ([path(regex=r"/a\.b.*")], [path(exact="/a.bc")]),
            (None, [path(exact="/a")]),
            ([{}], None),
            ([path(exact="/x"), path(prefix="/a")], [path(exact="/a"), path(exact="/b")]),
            ([path(prefix="/a") | {"port": 80}], [path(prefix="/a") | {"port": 80, "headers": {"x": {"exact": "1"}}}]),
            ([{"headers": {"x": {"exact": "1"}}}], [{"headers": {"x": {"exact": "1"}, "y": {}}}]),
            ([{"gateways": ["a", "b"]}], [{"gateways": ["a"]}]),
        ],
    )
    def test_the_later_one_gets_nothing(self, first: Any, second: Any) -> None:
        assert len(clashes(first, second)) == 1

    @pytest.mark.parametrize(
        ("first", "second"),
        [
            ([path(prefix="/a/b")], [path(prefix="/a")]),
            ([path(exact="/a")], [path(prefix="/a")]),
            ([path(exact="/a")], None),
            ([path(prefix="/a") | {"headers": {"x": {"exact": "1"}}}], [path(prefix="/a")]),
            (
                [path(prefix="/a") | {"headers": {"x": {"exact": "1"}}}],
                [path(prefix="/a") | {"headers": {"x": {"exact": "2"}}}],
            ),
            ([path(prefix="/a") | {"port": 80}], [path(prefix="/a") | {"port": 81}]),
            ([path(prefix="/a") | {"method": {"exact": "GET"}}], [path(prefix="/a")]),
            ([path(prefix="/a") | {"withoutHeaders": {"x": {}, "y": {}}}], [path(prefix="/a")]),
            ([path(prefix="/a")], [path(prefix="/a") | {"ignoreUriCase": True}]),
            ([path(regex="/a/[0-9]+")], [path(regex="/a/[0-9]*")]),
            ([path(prefix="/a")], [path(regex="/a?b")]),
            ([path(prefix="/a")], [path(regex="/a|/b")]),
            ([path(prefix="/a.b")], [path(regex="/a.b")]),
            ([path(prefix="/a")], [path(regex="(?i)/a")]),
            ([path(regex="/[a")], [path(exact="/a")]),
            ([{"gateways": ["a"]}], [{"gateways": ["a", "b"]}]),
        ],
    )
    def test_it_gets_something(self, first: Any, second: Any) -> None:
        assert clashes(first, second) == []

    @given(st.data())
    def test_what_covers_takes_every_path_of_the_other(self, data: st.DataObject) -> None:
        one, two = (
            uri(
                path(
                    **{
                        kind: data.draw(
                            expressions() if kind == "regex" else st.text("/ab.", max_size=4).map("/".__add__)
                        )
                    }
                )
            )
            for kind in data.draw(st.tuples(*[st.sampled_from(["prefix", "exact", "regex"])] * 2))
        )
        if one.covers(two):
            for found in data.draw(st.lists(st.text("/ab.", max_size=6), max_size=20)):
                assert not takes(two, found) or takes(one, found), (one, two, found)

    @pytest.mark.parametrize(
        ("other", "found"),
        [
            ({}, 1),
            ({"gateways": ["gates/public", "mesh"]}, 1),
            ({"gateways": ["gates/internal"]}, 0),
            ({"gateways": None}, 0),
            ({"hosts": ["b.example.com"]}, 0),
            ({"hosts": ["b.example.com", "a.example.com"]}, 1),
            ({"hosts": ["*.example.com"]}, 0),
        ],
    )
    def test_one_object_for_one_host_at_one_gateway(self, other: dict[str, Any], found: int) -> None:
        second = routes(to(None), name="second", **other)
        assert len(messages(traffic.route_clash, routes(to(None)), second)) == found

    @pytest.mark.parametrize(
        ("namespace", "export", "found"),
        [("serving", None, 1), ("other", None, 0), ("other", ["."], 0), ("serving", ["."], 1)],
    )
    def test_short_names_in_the_mesh_belong_to_a_namespace(self, namespace: str, export: Any, found: int) -> None:
        spec = {"hosts": ["triton"], "http": [to(None)], "exportTo": export}
        both = [
            made(ISTIO, "VirtualService", name, spec, where) for name, where in (("a", "serving"), ("b", namespace))
        ]
        assert len(messages(traffic.route_clash, *both)) == found

    def test_rules_of_many_models_are_looked_at_in_time(self) -> None:
        rules = [to(None, match=[path(regex=f"/model-{number}/v2(/.*)?")]) for number in range(2000)]
        assert list(swallowed(routes(*rules))) == []


def expressions() -> st.SearchStrategy[str]:
    parts = st.sampled_from(["/", "a", "b", r"\.", ".", "a?", "b*", "[ab]", "(a|b)", ".*", "a|b"])
    return st.lists(parts, min_size=1, max_size=4).map("".join)


def takes(one: Uri, text: str) -> bool:
    match one.kind:
        case "prefix":
            return text.startswith(one.text)
        case "exact":
            return text == one.text
    return re.fullmatch(one.text, text) is not None


class TestDestinations:
    @pytest.mark.parametrize(
        ("host", "meant"),
        [
            ("triton", ("serving", "triton")),
            ("triton.other.svc.cluster.local", ("other", "triton")),
            ("triton.other.svc.my.domain", ("other", "triton")),
            ("triton.other", None), ("triton.other.svc", None), ("api.example.com", None), ("*", None),
        ],
    )  # fmt: skip
    def test_hosts_are_read_as_istio_reads_them(self, host: str, meant: Any) -> None:
        assert service_of(host, "serving") == meant

    @pytest.mark.parametrize(
        ("rule", "extra", "found"),
        [
            (to(None), [], 0),
            (to(None, host="triton"), [], 0),
            (to(None, host="triton.serving"), [], 1),
            (to(None, host="api.example.com"), [], 1),
            (to(None, host="api.example.com"), [made(ISTIO, "ServiceEntry", "a", {"hosts": ["*.example.com"]})], 0),
            (to(None, host="x.monitoring.svc.cluster.local"), [], 1),
            (
                to(None, host="x.monitoring.svc.cluster.local"),
                [Resource("kubernetes:helm.sh/v3:Release", "x", {"namespace": "monitoring"})],
                0,
            ),
            (to(None, port=None), [], 1),
            (to(None, port=8003), [], 1),
        ],
    )
    def test_what_is_not_there_is_found(self, rule: Any, extra: list[Resource], found: int) -> None:
        assert len(messages(traffic.route_destination, routes(rule), service(), *extra)) == found

    def test_a_port_is_not_needed_where_there_is_one_or_a_sidecar_knows_it(self) -> None:
        lone = service([{"port": 80}], name="lone")
        rules = routes(to(None, host="lone", port=None)), routes(to(None, port=None), name="m", gateways=["mesh"])
        assert messages(traffic.route_destination, *rules, service(), lone) == []

    @pytest.mark.parametrize(("named", "found"), [("b", 0), ("c", 1)])
    def test_a_subset_is_one_of_a_rule_for_the_same_host(self, named: str, found: int) -> None:
        rule = made(ISTIO, "DestinationRule", "a", {"host": "triton", "subsets": [{"name": named}]})
        subset = to(None)
        subset["route"][0]["destination"]["subset"] = "b"
        assert len(messages(traffic.route_destination, routes(subset), service(), rule)) == found

    def test_an_unknown_host_may_be_anything(self) -> None:
        assert outcomes(traffic.route_destination, routes(to(None, host=UNKNOWN)), service()) == [Outcome.UNDECIDED]


class TestTimeouts:
    @pytest.mark.parametrize(
        ("rule", "found"),
        [
            (to(None), 0),
            (to(None, timeout=None), 1),
            (to(None, timeout="0s"), 1),
            (to(None, timeout=None, port=8002), 0),
            (to(None, timeout=None, host="web"), 0),
            ({"redirect": {"uri": "/a"}}, 0),
        ],
    )
    def test_routes_to_models_have_one(self, rule: Any, found: int) -> None:
        web = service([{"port": 80}], name="web", selector={"app": "web"})
        other = deployment({"image": "acme/web:1"}, name="web")
        assert len(messages(traffic.route_timeout, routes(rule), service(), TRITON, web, other)) == found


class TestPorts:
    @pytest.mark.parametrize(
        ("port", "found"),
        [
            ({"name": "grpc", "port": 8001}, 0),
            ({"name": "grpc-api", "port": 80, "targetPort": 8001}, 0),
            ({"name": "x", "port": 8001, "appProtocol": "grpc"}, 0),
            ({"name": "grpc", "port": 8001, "appProtocol": "http"}, 1),
            ({"name": "grpc-web", "port": 8000}, 1),
            ({"name": "http2", "port": 8000}, 1),
            ({"name": "http0", "port": 8000}, 1),
            ({"name": "metrics", "port": 8002}, 1),
            ({"port": 80, "targetPort": 8001}, 1),
            ({"name": "x", "port": 8001, "targetPort": 9000}, 0),
            ({"name": "x", "port": 1, "targetPort": "rpc"}, 1),
            ({"name": "x", "port": 1, "targetPort": "other"}, 0),
        ],
    )
    def test_they_are_called_after_what_triton_speaks_there(self, port: dict[str, Any], found: int) -> None:
        pods = deployment({"ports": [{"name": "rpc", "containerPort": 8001}]})
        assert len(messages(traffic.service_port_name, service([port]), pods)) == found

    def test_triton_may_listen_elsewhere(self) -> None:
        pods = deployment({"args": ["--grpc-port=9001"]})
        assert messages(traffic.service_port_name, service([{"name": "x", "port": 8001}]), pods) == []
        assert len(messages(traffic.service_port_name, service([{"name": "x", "port": 9001}]), pods)) == 1

    def test_the_port_of_another_program_is_its_own_business(self) -> None:
        found = service([{"name": "x", "port": 8001}])
        assert messages(traffic.service_port_name, found, deployment({"image": "acme/web:1"})) == []
        assert messages(traffic.service_port_name, found) == []

    def test_an_unknown_port_cannot_be_judged(self) -> None:
        found = service([{"name": "x", "port": UNKNOWN}])
        assert outcomes(traffic.service_port_name, found, TRITON) == [Outcome.UNDECIDED]


class TestGateways:
    @pytest.mark.parametrize(
        ("server", "found"),
        [
            (PLAIN, 1),
            (PLAIN | {"port": {"number": 80, "protocol": "http2"}}, 1),
            (PLAIN | {"tls": {"httpsRedirect": True}}, 0),
            (SECURE | {"tls": {"mode": "SIMPLE"}}, 0),
            (SECURE, 1),
            (SECURE | {"port": {"number": 443, "protocol": "TLS"}, "tls": {"mode": "AUTO_PASSTHROUGH"}}, 1),
            (SECURE | {"tls": {"mode": "MUTUAL", "minProtocolVersion": "TLSV1_1"}}, 1),
            (SECURE | {"tls": {"mode": "SIMPLE", "minProtocolVersion": "TLSV1_3"}}, 0),
            (PLAIN | {"port": {"number": 5432, "protocol": "TCP"}}, 0),
        ],
    )  # fmt: skip
    def test_they_end_tls(self, server: dict[str, Any], found: int) -> None:
        assert len(messages(traffic.gateway_tls, gateway(server))) == found

    def test_a_plain_one_is_worse_where_tokens_are_taken_and_said_once(self) -> None:
        assert [
            len(messages(policy, gateway(PLAIN), JWT)) for policy in (traffic.gateway_tls, traffic.endpoint_clear_text)
        ] == [0, 1]
        assert [
            len(messages(policy, gateway(PLAIN))) for policy in (traffic.gateway_tls, traffic.endpoint_clear_text)
        ] == [1, 0]

    @pytest.mark.parametrize("policy", [traffic.gateway_tls, traffic.endpoint_clear_text, traffic.endpoint_token])
    def test_a_developer_may_do_without(self, policy: Any) -> None:
        assert judged(policy, gateway(PLAIN), JWT, routes(to(None)), service(), TRITON, environment="dev") == []

    def test_that_of_the_gateway_api_is_another_kind(self) -> None:
        other = made("gateway.networking.k8s.io/v1", "Gateway", "a", {"servers": [PLAIN]})
        assert messages(traffic.gateway_tls, other) == []


class TestTokens:
    @pytest.mark.parametrize(
        ("policies", "found"),
        [
            ([], 1),
            ([DENY], 0),
            ([security("AuthorizationPolicy", "istio-system", action="DENY", rules=[STRANGERS])], 0),
            ([security("AuthorizationPolicy", "istio-system", {}, action="DENY", rules=[STRANGERS])], 0),
            ([security("AuthorizationPolicy", "pods-of-gateways", action="DENY", rules=[STRANGERS])], 0),
            ([security("AuthorizationPolicy", "elsewhere", {}, action="DENY", rules=[STRANGERS])], 1),
            ([security("AuthorizationPolicy", selector={"istio": "y"}, action="DENY", rules=[STRANGERS])], 1),
            ([security("AuthorizationPolicy", rules=[STRANGERS])], 1),
            ([security("AuthorizationPolicy", rules=[])], 0),
            ([security("AuthorizationPolicy", rules=[{}])], 1),
            ([security("AuthorizationPolicy", action="CUSTOM", rules=[{}])], 0),
            ([security("AuthorizationPolicy", action="AUDIT", rules=[STRANGERS])], 1),
        ],
    )
    def test_a_public_model_asks_for_one(self, policies: list[Resource], found: int) -> None:
        estate = [gateway(PLAIN), routes(to(None)), service(), TRITON, *policies]
        assert len(messages(traffic.endpoint_token, *estate)) == found

    @pytest.mark.parametrize(
        ("found", "said"),
        [
            (routes(to(None), gateways=["mesh"]), 0),
            (routes(to(None), gateways=["other"]), 1),
            (routes(to(None, host="web")), 0),
            (routes(to(None, match=[path(exact="/v2/health/ready")])), 0),
            (routes(to(None, match=[path(exact="/v2/models/a/infer")])), 1),
            (routes({"directResponse": {"status": 404}}), 0),
            (routes(to(0)), 0),
            (routes(to(None), to(None)), 1),
        ],
    )
    def test_what_leads_no_stranger_to_a_model_needs_none(self, found: Resource, said: int) -> None:
        assert len(messages(traffic.endpoint_token, gateway(PLAIN), found, service(), TRITON)) == said

    def test_our_gateway_for_callers_from_inside_is_not_public(self) -> None:
        inside = gateway(PLAIN, labels=INSIDE)
        assert messages(traffic.endpoint_token, inside, routes(to(None)), service(), TRITON) == []

    @pytest.mark.parametrize(
        ("rule", "refused"),
        [
            (STRANGERS, True),
            (STRANGERS | {"to": [{"operation": {"hosts": ["a.example.com", "a.example.com:*"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"hosts": ["A.Example.com*"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"hosts": ["*"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"hosts": ["a.example.com"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"hosts": ["b.example.com*"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"notHosts": ["a.*"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"paths": ["/v2/models/*"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"paths": ["/v2/models/{*}/infer"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"paths": ["/v2/{**}/infer"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"paths": ["/v2/{*}/infer"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"paths": ["*/infer"], "notPaths": ["/v2/health/*"]}}]}, True),
            (STRANGERS | {"to": [{"operation": {"notPaths": ["*/infer"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"methods": ["GET"]}}]}, False),
            (STRANGERS | {"to": [{"operation": {"notMethods": ["POST"]}}]}, False),
            (STRANGERS | {"when": [{"key": "source.ip", "values": ["10.0.0.0/8"]}]}, False),
            ({"from": [{"source": {"notRequestPrincipals": ["*"], "namespaces": ["a"]}}]}, False),
            ({"from": [{"source": {"namespaces": ["a"]}}, *STRANGERS["from"]]}, True),
            ({"when": [{"key": "request.auth.claims[models]", "notValues": ["a"]}]}, True),
            ({"when": [{"key": "request.auth.claims[models]", "values": ["a"]}]}, False),
            ({"when": [{"key": "request.headers[x]", "notValues": ["a"]}]}, False),
            ({"from": [{"source": {"requestPrincipals": ["*"]}}]}, False),
            ({}, True),
        ],
    )
    def test_a_rule_denies_every_stranger_or_it_does_not_count(self, rule: dict[str, Any], refused: bool) -> None:
        checks = Checks.of([security("AuthorizationPolicy", action="DENY", rules=[rule])])
        reason = checks.lets_through(Request("a.example.com", "/v2/models/a/infer"))
        assert (reason is None) == refused

    def test_an_unknown_rule_is_none_that_denies(self) -> None:
        policy = security("AuthorizationPolicy", action="DENY", rules=UNKNOWN)
        estate = gateway(PLAIN), routes(to(None)), service(), TRITON, policy
        assert outcomes(traffic.endpoint_token, *estate) == [Outcome.UNDECIDED]

    @pytest.mark.parametrize(
        ("policies", "found"),
        [
            ([], 1),
            ([DENY], 0),
            ([security("AuthorizationPolicy", selector={}, action="DENY", rules=[STRANGERS])], 0),
            ([security("AuthorizationPolicy", rules=[{"from": [{"source": {"requestPrincipals": ["*"]}}]}])], 0),
            (
                [
                    security(
                        "AuthorizationPolicy", rules=[{"when": [{"key": "request.auth.claims[a]", "values": ["b"]}]}]
                    )
                ],
                0,
            ),
            ([security("AuthorizationPolicy", rules=[{"to": [{"operation": {"paths": ["/a"]}}]}])], 1),
            ([security("AuthorizationPolicy", selector={"istio": "x", "a": "b"}, action="DENY", rules=[STRANGERS])], 1),
            ([security("AuthorizationPolicy", "elsewhere", action="DENY", rules=[STRANGERS])], 1),
        ],
    )
    def test_a_check_goes_with_a_demand_for_the_same_pods(self, policies: list[Resource], found: int) -> None:
        assert len(messages(traffic.token_without_authorization, JWT, *policies)) == found

    @pytest.mark.parametrize(
        ("gates", "found"),
        [
            ([gateway(SECURE), routes(to(None))], 1),
            ([gateway(SECURE), routes(to(None), gateways=["gates/other"])], 0),
            ([gateway(SECURE), routes(to(None, host="web"))], 0),
            ([gateway(SECURE, labels=INSIDE), routes(to(None))], 0),
            (
                [
                    gateway(SECURE, labels=INSIDE),
                    gateway(SECURE, namespace="more"),
                    routes(to(None), gateways=["more/public"]),
                ],
                0,
            ),
            (
                # The same pods stand behind a public one.
                [
                    gateway(SECURE, labels=INSIDE),
                    gateway(SECURE, name="again"),
                    routes(to(None), gateways=["gates/again"]),
                ],
                1,
            ),
        ],
        ids=["public", "of-others", "no-model", "internal", "elsewhere", "both"],
    )
    def test_a_gateway_without_public_models_may_check_without_demanding(
        self, gates: list[Resource], found: int
    ) -> None:
        assert len(messages(traffic.token_without_authorization, JWT, *gates, service(), TRITON)) == found


class TestDebugging:
    TWIN = made("core/v1", "Pod", "twin", {}, labels={"app.kubernetes.io/name": "triton-debug", "of": "a"})

    @pytest.mark.parametrize(
        ("selector", "found"),
        [
            ({"app.kubernetes.io/name": "triton-debug"}, 1),
            ({"of": "a"}, 1),
            ({"of": "b"}, 0),
            ({"app.kubernetes.io/name": "triton"}, 0),
            ({}, 0),
        ],
    )
    def test_no_service_leads_to_a_twin(self, selector: dict[str, str], found: int) -> None:
        assert len(messages(traffic.debug_exposed, self.TWIN, service(selector=selector))) == found

    @pytest.mark.parametrize(
        ("selector", "ingress", "found"),
        [
            ({"matchLabels": {"app.kubernetes.io/name": "triton-debug"}}, [{"from": [{"podSelector": {}}]}], 1),
            ({"matchLabels": {"app.kubernetes.io/name": "triton-debug"}}, [], 0),
            ({"matchLabels": {"app.kubernetes.io/name": "triton-debug"}}, None, 0),
            ({}, [{}], 1),
            ({}, [{"from": []}], 1),
            ({}, [{"from": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}], 0),
            ({"matchLabels": {"of": "b"}}, [{}], 0),
        ],
    )
    def test_no_rule_opens_one(self, selector: Any, ingress: Any, found: int) -> None:
        policy = made("networking.k8s.io/v1", "NetworkPolicy", "a", {"podSelector": selector, "ingress": ingress})
        assert len(messages(traffic.debug_exposed, self.TWIN, policy)) == found

    @pytest.mark.parametrize(
        ("container", "found"),
        [
            ({"image": "quay.io/jupyter/base-notebook:1"}, 1),
            ({"image": "acme/tools:1", "command": ["jupyter", "lab"]}, 1),
            ({"image": "acme/tools:1", "args": ["-c", "exec jupyter-lab --ip=0.0.0.0"]}, 1),
            ({"image": "acme/tools:1"}, 0),
        ],
    )
    def test_nor_to_a_notebook(self, container: dict[str, Any], found: int) -> None:
        assert len(messages(traffic.debug_exposed, deployment(container), service())) == found


POLICIES = [
    traffic.route_weights, traffic.mirror_share, traffic.route_clash, traffic.route_timeout, traffic.route_destination,
    traffic.service_port_name, traffic.gateway_tls, traffic.endpoint_token, traffic.endpoint_clear_text,
    traffic.token_without_authorization, traffic.debug_exposed,
]  # fmt: skip
EMPTY = [
    *(made(ISTIO, kind, "none", None) for kind in ("VirtualService", "DestinationRule", "Gateway", "ServiceEntry")),
    made(ISTIO, "VirtualService", "nulls", {"hosts": None, "gateways": None, "http": [{"match": None, "route": None}]}),
    made("security.istio.io/v1", "AuthorizationPolicy", "none", None),
    made("core/v1", "Service", "none", None),
    made("core/v1", "Service", "nulls", {"selector": None, "ports": None, "type": "ExternalName"}),
    made("serving.knative.dev/v1", "Service", "other", {"template": {"spec": {"containers": [{"image": "a"}]}}}),
    made("networking.k8s.io/v1", "NetworkPolicy", "none", None),
]


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_what_says_nothing_breaks_nothing(policy: Any) -> None:
    assert judged(policy, *EMPTY, TRITON) == []
