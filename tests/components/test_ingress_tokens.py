"""Tokens at the gateway: who is let through to which model, and that nothing secret is anywhere but in the secret."""

import json
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from spec.stack_file import stack_settings
from tests.components.conftest import SEALED, Render, run
from tests.components.exposed import API, AUTH, DOMAIN, INTERNAL, ISSUER, TOKENS, existing, stack
from tests.components.proxy import Request, denied
from tests.keys import private, public

Renderer = Callable[..., Render]
INFER = "/v2/models/m/infer"
GRPC = "/inference.GRPCInferenceService"
GOOD = {"iss": ISSUER, "sub": "team", "models": ["m", "n"]}
# Claims of tokens that the gateway takes for good ones: signed, not expired, for this audience.
BAD: dict[str, dict[str, Any] | None] = {
    "none": None,
    "another-model": GOOD | {"models": ["other"]},
    "a-name-that-begins-alike": GOOD | {"models": ["m-large", "mm"]},
    "no-models": {"iss": ISSUER, "sub": "team"},
    "another-issuer": GOOD | {"iss": "https://elsewhere.example.com"},
}
HOSTS = [
    (f"m.{DOMAIN}", ""),
    (f"m.{DOMAIN}:443", ""),
    (f"M.{DOMAIN.upper()}:8443", ""),
    (API, "/m"),
    (f"{API}:443", "/m"),
]
# The key under which the SDK wraps what it keeps secret.


def policies(found: Render) -> list[dict[str, Any]]:
    return [one["spec"] for one in found.objects("AuthorizationPolicy") if one["spec"]["action"] == "DENY"]


@pytest.fixture
def guarded(render: Renderer) -> Render:
    return render({"m": AUTH, "open": ""}, **stack())


class TestPolicies:
    @pytest.mark.parametrize(("host", "prefix"), HOSTS)
    @pytest.mark.parametrize("path", [INFER, "/v2", "/v2/models/m", "/v2/models/m/ready", "/v2/health/live/x"])
    def test_a_token_for_the_model_is_let_through(self, path: str, host: str, prefix: str, guarded: Render) -> None:
        assert not denied(policies(guarded), Request(host, prefix + path), GOOD)

    @pytest.mark.parametrize("claims", BAD.values(), ids=BAD.keys())
    @pytest.mark.parametrize(("host", "prefix"), HOSTS)
    @pytest.mark.parametrize("path", [INFER, "/v2", "/v2/models/m", "/v2/models/m/ready", "/v2/health/live/x"])
    def test_any_other_is_refused_and_none_too(
        self, path: str, host: str, prefix: str, claims: dict[str, Any] | None, guarded: Render
    ) -> None:
        assert denied(policies(guarded), Request(host, prefix + path), claims)

    @pytest.mark.parametrize("claims", [None, GOOD | {"models": ["other"]}], ids=["none", "another-model"])
    @pytest.mark.parametrize("method", ["ModelInfer", "ModelStreamInfer", "ModelMetadata"])
    def test_grpc_is_no_way_around(self, method: str, claims: dict[str, Any] | None, guarded: Render) -> None:
        assert denied(policies(guarded), Request(f"m.{DOMAIN}:443", f"{GRPC}/{method}"), claims)
        assert not denied(policies(guarded), Request(f"m.{DOMAIN}:443", f"{GRPC}/{method}"), GOOD)

    @pytest.mark.parametrize(
        ("host", "path"),
        [
            (f"m.{DOMAIN}", "/v2/health/live"),
            (f"m.{DOMAIN}", "/v2/health/ready"),
            (API, "/m/v2/health/live"),
            (f"m.{DOMAIN}", f"{GRPC}/ServerLive"),
            (f"m.{DOMAIN}", f"{GRPC}/ServerReady"),
        ],
    )
    def test_health_is_open(self, host: str, path: str, guarded: Render) -> None:
        assert not denied(policies(guarded), Request(host, path), None)

    @pytest.mark.parametrize(
        ("paths", "opened"), [([], set()), (["/v2/health/live"], {"/v2/health/live", f"{GRPC}/ServerLive"})]
    )
    def test_or_as_the_file_says(self, paths: list[str], opened: set[str], render: Renderer) -> None:
        found = render({"m": f"auth: {{token: true, openPaths: {json.dumps(paths)}}}\n"}, **stack())
        asked = ["/v2/health/live", "/v2/health/ready", f"{GRPC}/ServerLive", f"{GRPC}/ServerReady"]
        assert {path for path in asked if not denied(policies(found), Request(f"m.{DOMAIN}", path), None)} == opened

    def test_a_model_without_a_check_is_open(self, guarded: Render) -> None:
        assert not denied(policies(guarded), Request(f"open.{DOMAIN}", INFER), None)
        assert not denied(policies(guarded), Request(API, f"/open{INFER}"), None)

    def test_what_else_an_existing_gateway_serves_stays_as_it_is(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **existing())
        assert not denied(policies(found), Request("shop.example.com", "/"), None)
        assert {one["spec"]["action"] for one in found.objects("AuthorizationPolicy")} == {"DENY"}

    def test_each_gateway_checks(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **stack(internal=INTERNAL))
        selectors = [
            sorted(one["spec"]["selector"]["matchLabels"].values())
            for kind in ("AuthorizationPolicy", "RequestAuthentication")
            for one in found.objects(kind)
        ]
        assert selectors == [["ingressgateway"], ["internalgateway"]] * 2
        assert denied(policies(found), Request("m.models.internal", INFER), None)

    def test_the_check_stands_before_the_routes(self, guarded: Render) -> None:
        request = guarded.request("VirtualService", "m")
        assert [urn for urn in request.dependencies if urn.endswith(":AuthorizationPolicy::triton-estate.m")]


class TestAuthentication:
    """A RequestAuthentication alone refuses bad tokens only; a policy for the same pods refuses those without one."""

    def test_every_policy_acts_where_tokens_are_checked(self, guarded: Render) -> None:
        checked = guarded.one("RequestAuthentication")
        for policy in guarded.objects("AuthorizationPolicy"):
            assert policy["metadata"]["namespace"] == checked["metadata"]["namespace"] == "istio-ingress"
            assert policy["spec"]["selector"] == checked["spec"]["selector"]

    def test_the_issuer_and_the_audience_are_checked(self, guarded: Render) -> None:
        (rule,) = guarded.one("RequestAuthentication")["spec"]["jwtRules"]
        assert (rule["issuer"], rule["audiences"]) == (ISSUER, [DOMAIN])

    def test_the_audience_may_be_another(self, render: Renderer) -> None:
        found = render({"m": AUTH}, **stack() | {"tokens": TOKENS | {"audience": "models"}})
        assert found.one("RequestAuthentication")["spec"]["jwtRules"][0]["audiences"] == ["models"]

    def test_two_keys_are_valid_while_one_is_replaced(self, render: Renderer) -> None:
        keys = [{"id": "k2", "publicKey": public("k2")}, *TOKENS["keys"]]
        found = render({"m": AUTH}, **stack() | {"tokens": TOKENS | {"keys": keys}})
        (rule,) = found.one("RequestAuthentication")["spec"]["jwtRules"]
        assert [key["kid"] for key in json.loads(rule["jwks"])["keys"]] == ["k2", "k1"]
        assert "jwksUri" not in rule

    def test_an_issuer_outside_publishes_its_own(self, render: Renderer) -> None:
        outside = {"issuer": ISSUER, "jwksUri": "https://id.example.com/jwks", "claim": "scopes"}
        found = render({"m": AUTH}, **stack() | {"tokens": outside})
        (rule,) = found.one("RequestAuthentication")["spec"]["jwtRules"]
        assert rule["jwksUri"] == "https://id.example.com/jwks"
        assert "jwks" not in rule
        assert not denied(policies(found), Request(f"m.{DOMAIN}", INFER), GOOD | {"scopes": ["m"]})
        assert denied(policies(found), Request(f"m.{DOMAIN}", INFER), GOOD)

    def test_the_token_is_looked_for_in_one_place(self, guarded: Render) -> None:
        # Envoy wants all that it finds to be good, and the bare header holds "Bearer <token>" as well.
        (rule,) = guarded.one("RequestAuthentication")["spec"]["jwtRules"]
        assert rule["fromHeaders"] == [{"name": "authorization", "prefix": "Bearer "}]
        assert rule["forwardOriginalToken"] is False

    def test_a_bare_token_is_made_one_with_the_word_before_all_filters(self, guarded: Render) -> None:
        patch = guarded.one("EnvoyFilter")["spec"]["configPatches"][0]
        assert (patch["applyTo"], patch["patch"]["operation"]) == ("HTTP_FILTER", "INSERT_FIRST")
        code = patch["patch"]["value"]["typed_config"]["default_source_code"]["inline_string"]
        assert '"Bearer " .. value' in code

    def test_without_tokens_nothing_is_checked(self, render: Renderer) -> None:
        found = render({"m": ""}, **{key: value for key, value in stack().items() if key != "tokens"})
        assert not found.objects("RequestAuthentication") + found.objects("AuthorizationPolicy")
        assert not found.objects("EnvoyFilter")


CONSUMERS = {"team-search": {"models": ["m"], "expires": "2027-06-30"}, "team-ads": {"models": ["m"]}}


@pytest.fixture
def minted(render: Renderer, monkeypatch: pytest.MonkeyPatch) -> Render:
    """A stack with consumers, whose setting with the private key the engine knows for a secret."""
    monkeypatch.setattr("pulumi.runtime.is_config_secret", lambda key: key == "triton-estate:tokenKeys")
    tokens = TOKENS | {"consumers": CONSUMERS}
    return render({"m": AUTH}, **stack() | {"tokens": tokens, "tokenKeys": {"k1": private()}})


class TestMintedTokens:
    def test_they_are_a_secret_output(self, minted: Render) -> None:
        wrapped = minted.outputs["tokens"]
        assert SEALED in wrapped
        assert set(wrapped["value"]) == set(CONSUMERS)
        assert all(token.count(".") == 2 for token in wrapped["value"].values())

    def test_neither_key_nor_token_is_in_any_object(self, minted: Render, caplog: pytest.LogCaptureFixture) -> None:
        body = "".join(private().splitlines()[1:-1])
        texts = [json.dumps(list(minted.resources.values())), caplog.text]
        texts.append(json.dumps({name: value for name, value in minted.outputs.items() if name != "tokens"}))
        for text in texts:
            assert "PRIVATE KEY" not in text
            assert body[100:200] not in text
            assert not any(token in text for token in minted.outputs["tokens"]["value"].values())

    def test_the_output_without_the_wrapping_is_the_contract(self, minted: Render) -> None:
        assert minted.outputs["models"]["m"]["requestHeaders"] == ["authorization"]

    def test_a_key_that_the_engine_does_not_keep_secret_is_refused(self, render: Renderer) -> None:
        tokens = TOKENS | {"consumers": CONSUMERS | {"one-more": {"models": ["m"]}}}
        with pytest.raises(pulumi.RunError, match="clear text") as refused:
            render({"m": AUTH}, **stack() | {"tokens": tokens, "tokenKeys": {"k1": private()}})
        assert "BEGIN" not in str(refused.value)

    def test_a_missing_key_is_refused(self, render: Renderer) -> None:
        with pytest.raises(pulumi.RunError, match="--secret"):
            render({"m": AUTH}, **stack() | {"tokens": TOKENS | {"consumers": CONSUMERS}})

    def test_where_it_is_encrypted_the_plan_shows_everything_else(self, render: Renderer) -> None:
        tokens = TOKENS | {"consumers": CONSUMERS}
        found = render({"m": AUTH}, **stack() | {"tokens": tokens, "tokenKeys": {"k1": {"secure": "v1:abc"}}})
        assert found.objects("RequestAuthentication")
        assert found.outputs["tokens"]["value"] == {}

    def test_a_stack_file_with_an_encrypted_key_can_be_planned(self, tmp_path: Any) -> None:
        (tmp_path / "models").mkdir()
        text = "config:\n  triton-estate:environment: dev\n  triton-estate:tokenKeys: {k1: {secure: 'v1:abc'}}\n"
        (tmp_path / "Pulumi.test.yaml").write_text(text, encoding="utf-8")
        assert run(tmp_path, stack_settings(tmp_path, "test")).outputs["models"] == {}
