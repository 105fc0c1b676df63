"""A model is at the gateways that its file names, and nothing of it at the others."""

import json
from collections.abc import Callable

import pytest

from tests.components.conftest import Render
from tests.components.exposed import AUTH, DOMAIN, INTERNAL, existing, stack
from tests.components.proxy import Request, answer
from tests.components.test_ingress_gateway import fits, namespaces, releases

Renderer = Callable[..., Render]
MODELS = {
    "outside": AUTH + "traffic: {gateways: [public], limits: {requestsPerSecond: 5}}\n",
    "inside": AUTH + "traffic: {gateways: [internal], limits: {requestsPerSecond: 5}}\n",
    "both": "",
}


class TestObjects:
    @pytest.fixture
    def found(self, render: Renderer) -> Render:
        return render(MODELS, **stack(internal=INTERNAL | {"prefixHost": "api.models.internal"}))

    @pytest.mark.parametrize(
        ("gateway", "domain", "there"),
        [
            ("triton-estate", DOMAIN, ["outside", "both"]),
            ("triton-estate-internal", "models.internal", ["inside", "both"]),
        ],
    )
    def test_its_hosts_and_prefixes(self, gateway: str, domain: str, there: list[str], found: Render) -> None:
        for name in MODELS:
            for request in (
                Request(f"{name}.{domain}", "/v2/models/m/infer"),
                Request(f"{name}.{domain}", "/inference.GRPCInferenceService/ModelInfer"),
                Request(f"api.{domain}", f"/{name}/v2/models/m/infer"),
            ):
                assert (answer(found, request, f"istio-ingress/{gateway}") is not None) == (name in there), request

    def test_a_shared_host_without_models_has_no_routes(self, render: Renderer) -> None:
        found = render({"m": "traffic: {gateways: [internal]}\n"}, **stack(internal=INTERNAL))
        assert {one["metadata"]["name"] for one in found.objects("VirtualService")} == {"m.internal", "m.mesh"}

    def test_who_is_asked_for_a_token(self, found: Render) -> None:
        policies = [one["metadata"]["name"] for one in found.objects("AuthorizationPolicy")]
        assert sorted(policies) == ["triton-estate.inside.internal", "triton-estate.outside"]

    @pytest.mark.parametrize(
        ("gateway", "limited", "other"),
        [("triton-estate", "outside", "inside"), ("triton-estate-internal", "inside", "outside")],
    )
    def test_whose_rate_is_limited(self, gateway: str, limited: str, other: str, found: Render) -> None:
        changes = json.dumps(found.one("EnvoyFilter", gateway)["spec"])
        assert f'"{limited}.http"' in changes
        assert other not in changes

    def test_another_one_restarts_no_gateway(self, render: Renderer) -> None:
        at = ("traffic: {gateways: [public]}\n", "traffic: {gateways: [internal]}\n")
        one, two = (releases(render({"m": more}, **stack(internal=INTERNAL))) for more in at)
        assert one == two

    @pytest.mark.parametrize("sidecars", [True, False])
    def test_which_gateways_its_pods_let_in(self, sidecars: bool, render: Renderer) -> None:
        inside = INTERNAL | {"namespace": "inside", "selector": {"istio": "inside"}}
        found = render(MODELS, **existing(internal=inside, sidecars=sidecars))
        let_in = {"outside": {"gates"}, "inside": {"inside"}, "both": {"gates", "inside"}}
        for name, gates in let_in.items():
            assert namespaces(found, 8000, f"{name}-v1") - {"serving"} == gates
        identities = {
            one["metadata"]["name"]: {*one["spec"]["rules"][0]["from"][0]["source"]["namespaces"]} - {"serving"}
            for one in found.objects("AuthorizationPolicy")
            if one["spec"]["action"] == "ALLOW"
        }
        assert identities == (let_in if sidecars else {})


class TestAddresses:
    def test_those_of_a_model_inside_are_of_the_internal_gateway(self, render: Renderer) -> None:
        inside = stack(internal=INTERNAL | {"prefixHost": "api.models.internal", "tls": None})
        outputs = render({"m": "traffic: {gateways: [internal]}\n"}, **inside).outputs
        found = outputs["models"]["m"]
        own = {
            "httpUrl": "http://m.models.internal",
            "httpTarget": "m.models.internal:80",
            "grpcTarget": "m.models.internal:80",
            "tls": False,
        }
        assert {key: found[key] for key in own} == found["internal"] == own
        assert found["shared"] == {
            "httpUrl": "http://api.models.internal/m", "httpTarget": "api.models.internal:80/m", "tls": False,
        }  # fmt: skip
        assert found["gateways"] == ["internal"]
        assert found["snippets"]["curl"] == "curl http://m.models.internal/v2/models/m"
        assert DOMAIN not in json.dumps(outputs)
        fits(outputs)

    @pytest.mark.parametrize(
        ("more", "gateways"),
        [("", ["public", "internal"]), ("traffic: {gateways: [public]}\n", ["public"])],
        ids=["both", "public"],
    )
    def test_the_internal_one_is_told_where_it_leads_to_the_model(
        self, more: str, gateways: list[str], render: Renderer
    ) -> None:
        found = render({"m": more}, **stack(internal=INTERNAL))
        entry = found.outputs["models"]["m"]
        assert (entry["gateways"], "internal" in entry) == (gateways, "internal" in gateways)
        assert entry["httpUrl"] == f"https://m.{DOMAIN}"
        listed = json.loads(found.one("ConfigMap", "triton-models")["data"]["models.json"])["models"]["m"]
        assert {key: listed.get(key) for key in ("gateways", "internal", "shared")} == {
            key: entry.get(key) for key in ("gateways", "internal", "shared")
        }
