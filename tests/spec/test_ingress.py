"""Gateways and what models ask of them: refused while the files are read, with the way out."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from spec.catalog import Estate
from spec.ingress import IngressSpec, gateways, gateways_of, host_label, prefix
from spec.problems import Problem
from spec.traffic import TrafficSpec
from tests.keys import public

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
CLUSTER = {"cluster": {"provider": "existing"}}
MANAGED: dict[str, Any] = {"domain": "models.example.com", "tls": {"issuer": "le"}}
EXISTING: dict[str, Any] = {
    "provider": "existing", "domain": "models.example.com", "namespace": "gates", "selector": {"istio": "estate"},
}  # fmt: skip
TENSORS = "input: [{{name: a, data_type: {0}, dims: [{1}]}}], output: [{{name: b, data_type: TYPE_FP32, dims: [3]}}]"


def stack(ingress: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"environment": "dev"} | CLUSTER | more
    return found | ({"ingress": {**MANAGED, **ingress}} if ingress is not None else {})


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[..., Problem]:
    """The only problem of a stack and the five lines with more lines."""

    def _refused(settings: Mapping[str, Any], more: str = "") -> Problem:
        (problem,) = refusals({"a.yaml": five_lines + more}, settings)
        return problem

    return _refused


class TestGateways:
    def test_an_empty_setting_is_none_because_the_engine_knows_no_null(self, load_stack: Load) -> None:
        spec = load_stack({}, {"environment": "dev", "ingress": {}, "tokens": {}}).spec
        assert (spec.ingress, spec.tokens) == (None, None)

    def test_a_managed_one_has_the_labels_that_its_chart_gives(self) -> None:
        ingress = IngressSpec(domain="a.b", internal={"domain": "c.d"})  # ty: ignore[invalid-argument-type]
        found = [(one.name, one.namespace, dict(one.selector)) for one in gateways(ingress)]
        assert found == [
            ("public", "istio-ingress", {"istio": "ingressgateway"}),
            ("internal", "istio-ingress", {"istio": "internalgateway"}),
        ]

    def test_an_existing_one_has_those_that_are_written(self) -> None:
        (found,) = gateways(IngressSpec.model_validate(EXISTING))
        assert (found.namespace, dict(found.selector)) == ("gates", {"istio": "estate"})

    @pytest.mark.parametrize("domain", ["models", "*.example.com", "Models.example.com", "a..b", "-a.b", "a.b.", ""])
    def test_what_is_no_domain_is_refused(self, domain: str, refused: Callable[..., Problem]) -> None:
        assert refused(stack({"domain": domain})).field == "ingress.domain"

    @pytest.mark.parametrize("host", ["api.example.com", "a.b.models.example.com", "models.example.org"])
    def test_a_shared_host_outside_the_domain_is_refused(self, host: str, refused: Callable[..., Problem]) -> None:
        problem = refused(stack({"prefixHost": host}))
        assert (problem.field, problem.value) == ("ingress.prefixHost", host)
        assert problem.fix == f"write {host.partition('.')[0]}.models.example.com"

    @pytest.mark.parametrize("host", ["api.models.example.com", "models.example.com"])
    def test_one_inside_it_is_taken(self, host: str, load_stack: Load) -> None:
        ingress = load_stack({}, stack({"prefixHost": host})).spec.ingress
        assert ingress
        assert ingress.prefix_host == host

    @pytest.mark.parametrize("tls", [{}, {"secret": "a", "issuer": "b"}])
    def test_a_certificate_comes_from_one_place(self, tls: dict[str, str], refused: Callable[..., Problem]) -> None:
        assert refused(stack({"tls": tls})).field == "ingress.tls.secret"

    @pytest.mark.parametrize("ingress", [{"tls": None}, {"internal": {"domain": "c.d"}}], ids=["public", "internal"])
    def test_clear_text_is_refused_in_prod(self, ingress: dict[str, Any], refused: Callable[..., Problem]) -> None:
        problem = refused(stack(ingress, environment="prod"))
        assert problem.field == ("ingress.internal.tls" if "internal" in ingress else "ingress.tls")

    def test_in_dev_it_is_taken(self, load_stack: Load) -> None:
        assert load_stack({}, stack({"tls": None})).spec.ingress

    @pytest.mark.parametrize("field", ["service", "replicas", "nodeSelector"])
    def test_what_only_a_managed_gateway_has_is_refused_for_an_existing_one(
        self, field: str, refusals: Refusals
    ) -> None:
        (problem,) = refusals({}, stack() | {"ingress": {**EXISTING, field: {}}})
        assert (problem.field, problem.allowed) == (f"ingress.{field}", "absent")

    @pytest.mark.parametrize(("field", "value"), [("selector", {"a": "b"}), ("namespace", "a")])
    def test_what_only_an_existing_one_has_is_refused_for_a_managed_one(
        self, field: str, value: object, refused: Callable[..., Problem]
    ) -> None:
        assert refused(stack({field: value})).field == f"ingress.{field}"

    @pytest.mark.parametrize("field", ["selector", "namespace"])
    def test_an_existing_one_has_to_be_found(self, field: str, refusals: Refusals) -> None:
        (problem,) = refusals({}, stack() | {"ingress": {k: v for k, v in EXISTING.items() if k != field}})
        assert problem.field == f"ingress.{field}"

    def test_two_with_the_same_domain_are_refused(self, refused: Callable[..., Problem]) -> None:
        internal = {"domain": "models.example.com", "tls": {"issuer": "le"}}
        assert refused(stack({"internal": internal})).field == "ingress.internal.domain"

    def test_two_that_are_the_same_pods_are_refused(self, refusals: Refusals) -> None:
        internal = {k: v for k, v in EXISTING.items() if k != "provider"} | {"domain": "c.d"}
        (problem,) = refusals({}, stack() | {"ingress": EXISTING | {"internal": internal}})
        assert problem.field == "ingress.internal.selector"

    def test_the_embedded_plane_cannot_run_a_managed_istio(self, refusals: Refusals) -> None:
        (problem,) = refusals({}, {"environment": "dev", "ingress": MANAGED})
        assert (problem.field, problem.allowed) == ("ingress.provider", "existing")

    def test_fewer_replicas_at_most_than_at_least_are_refused(self, refused: Callable[..., Problem]) -> None:
        assert refused(stack({"replicas": {"min": 3, "max": 2}})).field == "ingress.replicas.max"

    @pytest.mark.parametrize("chart", ["base", "istiod", "gateway"])
    def test_a_chart_that_is_not_installed_is_refused(self, chart: str, refusals: Refusals) -> None:
        (problem,) = refusals({}, stack(charts={chart: "./charts"}))
        assert (problem.field, problem.fix) == (
            f"charts.{chart}", f"set ingress: {{provider: managed}}, or leave {chart} out",
        )  # fmt: skip


class TestNames:
    @pytest.mark.parametrize(
        ("traffic", "label"),
        [({}, "m"), ({"host": "detect"}, "detect"), ({"host": "detect.models.example.com"}, "detect")],
    )
    def test_a_model_is_called_as_its_file_says_or_by_its_name(self, traffic: dict[str, str], label: str) -> None:
        assert host_label("m", TrafficSpec.model_validate(traffic)) == label

    def test_its_prefix_is_its_name_unless_told_otherwise(self) -> None:
        assert prefix("m", TrafficSpec()) == "/m"
        assert prefix("m", TrafficSpec(prefix="/vision/m")) == "/vision/m"

    def test_a_host_outside_the_domain_is_refused(self, refused: Callable[..., Problem]) -> None:
        problem = refused(stack({}), "traffic: {host: detect.example.org}\n")
        assert (problem.field, problem.line) == ("traffic.host", 5)
        assert problem.fix == "write detect, which is detect.models.example.com"

    @pytest.mark.parametrize("value", ["/v2", "/a/v2", "a", "/", "/a/", "//a", "/a b", "/" + "a" * 128, "/../a"])
    def test_what_is_no_prefix_is_refused(self, value: str, refused: Callable[..., Problem]) -> None:
        problem = refused(stack({"prefixHost": "models.example.com"}), f"traffic: {{prefix: '{value}'}}\n")
        assert problem.field == "traffic.prefix"

    def test_a_prefix_needs_a_host_that_models_share(self, refused: Callable[..., Problem]) -> None:
        assert refused(stack({}), "traffic: {prefix: /a}\n").field == "traffic.prefix"


def named(five_lines: str, name: str, more: str = "") -> dict[str, str]:
    return {f"{name}.yaml": five_lines.replace("resnet", name) + more}


class TestClashes:
    SHARED = stack({"prefixHost": "api.models.example.com"})

    @pytest.mark.parametrize(
        ("more", "field"), [("traffic: {host: a}\n", "traffic.host"), ("traffic: {prefix: /a}\n", "traffic.prefix")]
    )
    def test_two_models_on_one_host_and_prefix_are_refused(
        self, more: str, field: str, refusals: Refusals, five_lines: str
    ) -> None:
        (problem,) = refusals(named(five_lines, "a") | named(five_lines, "b", more), self.SHARED)
        assert (problem.file, problem.field, problem.line) == ("models/b.yaml", field, 5)
        assert "a has the same address" in problem.message

    def test_the_shared_host_is_no_models_own(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals(named(five_lines, "api"), self.SHARED)
        assert (problem.file, problem.field) == ("models/api.yaml", "name")

    def test_the_stack_is_to_blame_where_its_override_clashes(self, refusals: Refusals, five_lines: str) -> None:
        settings = self.SHARED | {"models": {"b": {"traffic": {"host": "a"}}}}
        (problem,) = refusals(named(five_lines, "a") | named(five_lines, "b"), settings)
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.b.traffic.host")

    def test_names_that_begin_alike_do_not_clash(self, load_stack: Load, five_lines: str) -> None:
        files = named(five_lines, "bert") | named(five_lines, "bert-large") | named(five_lines, "ber")
        assert len(load_stack(files, self.SHARED).models) == 3


INTERNAL: dict[str, Any] = {"internal": {"domain": "models.internal", "prefixHost": "api.models.internal"}}


class TestAtOneGateway:
    @pytest.mark.parametrize(
        ("gateways", "leading"),
        [
            (None, ["public", "internal"]),
            (["public"], ["public"]),
            (["internal"], ["internal"]),
            (["internal", "public"], ["public", "internal"]),
        ],
    )
    def test_a_model_is_at_those_that_it_names_or_at_all(self, gateways: list[str] | None, leading: list[str]) -> None:
        ingress = IngressSpec.model_validate(MANAGED | INTERNAL)
        traffic = TrafficSpec.model_validate({"gateways": gateways} if gateways else {})
        assert [gateway.name for gateway in gateways_of(ingress, traffic)] == leading

    @pytest.mark.parametrize(
        ("gateways", "wrong", "message"),
        [
            ("[]", {"": []}, "nobody would reach the model"),
            ("[public, public]", {"[1]": "public"}, "is there already"),
            ("[internal, inside, internal, 5]", {"[1]": "inside", "[2]": "internal", "[3]": 5}, "not a gateway"),
            ("internal", {"": "internal"}, "must be a list"),
        ],
    )
    def test_what_names_no_gateway_is_refused_all_at_once(
        self, gateways: str, wrong: dict[str, object], message: str, refusals: Refusals, five_lines: str
    ) -> None:
        found = refusals({"a.yaml": f"{five_lines}traffic: {{gateways: {gateways}}}\n"}, stack(INTERNAL))
        assert {one.field: one.value for one in found} == {f"traffic.gateways{at}": one for at, one in wrong.items()}
        assert found[0].message == message
        assert all(one.line == 5 and one.allowed and one.fix for one in found)

    @pytest.mark.parametrize("gateways", ["[internal]", "[public, internal]"])
    def test_one_that_the_stack_lacks_is_refused(self, gateways: str, refused: Callable[..., Problem]) -> None:
        problem = refused(stack({}), f"traffic: {{gateways: {gateways}, prefix: /a}}\n")
        assert (problem.field, problem.value, problem.allowed) == ("traffic.gateways", "internal", "public")
        assert problem.fix == "add ingress: {internal: {domain: …}} to the stack, or leave internal out"

    def test_the_stack_is_to_blame_where_its_override_names_it(self, refusals: Refusals, five_lines: str) -> None:
        settings = stack({}) | {"models": {"resnet": {"traffic": {"gateways": ["internal"]}}}}
        (problem,) = refusals({"a.yaml": five_lines}, settings)
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.resnet.traffic.gateways")

    def test_a_prefix_needs_a_shared_host_there(self, refused: Callable[..., Problem]) -> None:
        problem = refused(stack(INTERNAL), "traffic: {gateways: [public], prefix: /a}\n")
        assert (problem.field, problem.fix) == (
            "traffic.prefix", "add ingress: {prefixHost: …} to the stack, or leave prefix out",
        )  # fmt: skip
        inside = {"prefixHost": "api.models.example.com", "internal": {"domain": "models.internal"}}
        problem = refused(stack(inside), "traffic: {gateways: [internal], prefix: /a}\n")
        assert problem.fix.startswith("add ingress: {internal: {prefixHost: …}} to the stack")

    @pytest.mark.parametrize("gateways", ["[internal]", "[public]"])
    def test_a_host_is_in_the_domain_of_the_first(
        self, gateways: str, load_stack: Load, refused: Callable[..., Problem], five_lines: str
    ) -> None:
        inside, outside = "detect.models.internal", "detect.models.example.com"
        good, bad = (inside, outside) if gateways == "[internal]" else (outside, inside)
        more = f"traffic: {{gateways: {gateways}, host: "
        assert load_stack({"a.yaml": f"{five_lines}{more}{good}}}\n"}, stack(INTERNAL)).models
        problem = refused(stack(INTERNAL), f"{more}{bad}}}\n")
        assert (problem.field, problem.value) == ("traffic.host", bad)
        assert problem.fix == f"write detect, which is {good}"

    @pytest.mark.parametrize(
        ("one", "two", "clash"),
        [
            ("[public]", "[internal]", False),
            ("[public]", "[public, internal]", True),
            ("[internal]", "[internal]", True),
        ],
    )
    def test_models_clash_at_a_gateway_that_leads_to_both(
        self, one: str, two: str, *, clash: bool, load_stack: Load, refusals: Refusals, five_lines: str
    ) -> None:
        settings = stack(INTERNAL | {"prefixHost": "api.models.example.com"})
        files = named(five_lines, "a", f"traffic: {{gateways: {one}, host: x, prefix: /x}}\n")
        files |= named(five_lines, "b", f"traffic: {{gateways: {two}, host: x, prefix: /x}}\n")
        if clash:
            assert {(found.file, found.field) for found in refusals(files, settings)} == {
                ("models/b.yaml", "traffic.host"), ("models/b.yaml", "traffic.prefix"),
            }  # fmt: skip
        else:
            assert len(load_stack(files, settings).models) == 2


class TestWithoutAGateway:
    """What only a gateway does is refused where there is none, because nobody would do it."""

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ("auth: {token: true}\n", "auth.token"),
            ("traffic: {limits: {requestsPerSecond: 5}}\n", "traffic.limits"),
            ("traffic: {testers: {header: {name: a, value: b}, to: v1}}\n", "traffic.testers"),
            ("traffic: {gateways: [public]}\n", "traffic.gateways"),
            ("traffic: {host: a}\n", "traffic.host"),
            ("traffic: {prefix: /a}\n", "traffic.prefix"),
        ],
    )
    def test_it_is_refused(self, more: str, field: str, refused: Callable[..., Problem]) -> None:
        problem = refused(stack(), more)
        assert (problem.field, problem.line) == (field, 5)

    def test_no_token_needs_no_gateway(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines + "auth: {token: false}\n"}).models
        assert not model.needs_token

    def test_a_stack_may_take_it_away(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + "traffic: {limits: {requestsPerSecond: 5}}\nauth: {token: true}\n"}
        override = {"models": {"resnet": {"traffic": {"limits": None}, "auth": None}}}
        assert load_stack(files, stack() | override).models[0].spec.auth is None

    def test_tokens_need_a_gateway(self, refused: Callable[..., Problem]) -> None:
        tokens = {"issuer": "a", "keys": [{"id": "k1", "publicKey": public()}]}
        assert refused(stack(tokens=tokens)).field == "tokens"

    def test_a_token_needs_somebody_who_knows_a_good_one(self, refused: Callable[..., Problem]) -> None:
        problem = refused(stack({}), "auth: {token: true}\n")
        assert (problem.field, problem.allowed) == ("auth.token", "absent without tokens")


class TestTraffic:
    @pytest.mark.parametrize(
        ("testers", "field"),
        [
            ("{header: {name: a, value: b}, to: v9}", "traffic.testers.to"),
            ("{to: v1}", "traffic.testers.header"),
            ("{header: {name: a, value: b}, cookie: {name: a, value: b}, to: v1}", "traffic.testers.header"),
            ("{header: {name: Authorization, value: b}, to: v1}", "traffic.testers.header.name"),
            ("{header: {name: authorization, value: b}, to: v1}", "traffic.testers.header.name"),
            ("{header: {name: 'a:b', value: b}, to: v1}", "traffic.testers.header.name"),
            ("{cookie: {name: 'a=b', value: b}, to: v1}", "traffic.testers.cookie.name"),
            ("{cookie: {name: a, value: 'b; c'}, to: v1}", "traffic.testers.cookie.value"),
        ],
    )
    def test_testers_without_a_way_are_refused(self, testers: str, field: str, refused: Callable[..., Problem]) -> None:
        assert refused(stack({}), f"traffic: {{testers: {testers}}}\n").field == field

    @pytest.mark.parametrize("percent", [0, 0.009, 100.01, 101, -1])
    def test_a_mirror_out_of_range_is_refused(self, percent: float, refused: Callable[..., Problem]) -> None:
        more = "revisions: {v1: {}, v2: {}}\n"
        more += f"traffic: {{split: {{v1: 100}}, mirror: {{to: v2, percent: {percent}}}}}\n"
        assert refused(stack({}), more).field == "traffic.mirror.percent"

    @pytest.mark.parametrize("mirror", ["{}", "{to: v1, model: other}"])
    def test_copies_go_to_one_place(self, mirror: str, refused: Callable[..., Problem]) -> None:
        assert refused(stack({}), f"traffic: {{mirror: {mirror}}}\n").field == "traffic.mirror.to"

    @pytest.mark.parametrize(
        ("limits", "field"),
        [
            ("{}", "traffic.limits"),
            ("{requestsPerSecond: 0}", "traffic.limits.requestsPerSecond"),
            ("{requestsPerSecond: 1.5}", "traffic.limits.requestsPerSecond"),
            ("{maxRequestSize: 4Gi}", "traffic.limits.maxRequestSize"),
            ("{maxRequestSize: 1023}", "traffic.limits.maxRequestSize"),
            ("{maxRequestSize: 1k}", "traffic.limits.maxRequestSize"),
        ],
    )
    def test_limits_that_make_no_sense_are_refused(
        self, limits: str, field: str, refused: Callable[..., Problem]
    ) -> None:
        assert refused(stack({}), f"traffic: {{limits: {limits}}}\n").field == field

    def test_a_size_that_the_models_own_request_does_not_fit_is_refused(self, refused: Callable[..., Problem]) -> None:
        # One picture of 299 x 299 x 3 numbers of 4 bytes.
        more = f"config: {{backend: python, {TENSORS.format('TYPE_FP32', '299, 299, 3')}}}\n"
        problem = refused(stack({}), more + "traffic: {limits: {maxRequestSize: 1Mi}}\n")
        assert problem.field == "traffic.limits.maxRequestSize"
        assert "1072812 bytes" in problem.message

    def test_one_that_it_fits_is_taken(self, load_stack: Load, five_lines: str) -> None:
        more = f"config: {{backend: python, {TENSORS.format('TYPE_FP32', '299, 299, 3')}}}\n"
        files = {"a.yaml": five_lines + more + "traffic: {limits: {maxRequestSize: 1100k}}\n"}
        assert load_stack(files, stack({})).models

    def test_open_paths_without_a_check_are_refused(self, refused: Callable[..., Problem]) -> None:
        assert refused(stack({}), "auth: {token: false, openPaths: []}\n").field == "auth.openPaths"


def config(name: str, dims: str = "3", data_type: str = "TYPE_FP32") -> str:
    return f"config: {{name: {name}, backend: python, {TENSORS.format(data_type, dims)}}}\n"


class TestMirrorToAnotherModel:
    @pytest.mark.parametrize(
        ("model", "message"),
        [("resnet", "a model cannot mirror to itself"), ("other", "no model file has this name")],
    )
    def test_one_to_itself_or_to_nobody_is_refused(
        self, model: str, message: str, refused: Callable[..., Problem]
    ) -> None:
        problem = refused(stack({}), f"traffic: {{mirror: {{model: {model}}}}}\n")
        assert (problem.field, problem.line, problem.message) == ("traffic.mirror.model", 5, message)

    @pytest.mark.parametrize("shadow", [config("b"), config("a", "4"), config("a", "3", "TYPE_INT8")])
    def test_one_that_could_not_take_the_copies_is_refused(
        self, shadow: str, refusals: Refusals, five_lines: str
    ) -> None:
        files = named(five_lines, "a", config("a") + "traffic: {mirror: {model: b}}\n") | named(five_lines, "b", shadow)
        (problem,) = refusals(files, stack({}))
        assert (problem.file, problem.field) == ("models/a.yaml", "traffic.mirror.model")

    @pytest.mark.parametrize("shadow", [config("a"), "members: {a: {}}\n"], ids=["same", "member"])
    def test_one_that_knows_the_model_is_taken(self, shadow: str, load_stack: Load, five_lines: str) -> None:
        files = named(five_lines, "a", config("a") + "traffic: {mirror: {model: b}}\n") | named(five_lines, "b", shadow)
        assert len(load_stack(files, stack({})).models) == 2
