"""Tokens: whose are good, who gets one, and that no private key is ever shown."""

import base64
import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from spec.catalog import Estate
from spec.problems import Problem, SpecError
from spec.signing import KEYS_SETTING, check_keys, jwks, mint, private_keys
from spec.tokens import TokensSpec
from tests.keys import elliptic, private, public

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
AUDIENCE = "models.example.com"
KEY = {"id": "k1", "publicKey": public()}
TOKENS: dict[str, Any] = {
    "issuer": "https://issuer.example.com",
    "keys": [KEY],
    "consumers": {"team-search": {"models": ["resnet"], "expires": "2027-06-30"}},
}


def stack(tokens: Mapping[str, Any], environment: str = "dev") -> dict[str, Any]:
    ingress = {"domain": AUDIENCE, "tls": {"issuer": "le"}}
    cluster = {"provider": "existing"}
    return {"environment": environment, "cluster": cluster, "ingress": ingress, "tokens": {**TOKENS, **tokens}}


def spec(**more: Any) -> TokensSpec:
    return TokensSpec.model_validate(TOKENS | more)


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[..., Problem]:
    """The only problem of a stack with tokens and one model that asks for one."""

    def _refused(tokens: Mapping[str, Any], environment: str = "dev", auth: str = "auth: {token: true}\n") -> Problem:
        (problem,) = refusals({"a.yaml": five_lines + auth}, stack(tokens, environment))
        return problem

    return _refused


def decoded(part: str) -> dict[str, Any]:
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def claims(token: str) -> dict[str, Any]:
    """What a token says; its signature has to be that of the key which it names."""
    head, body, signature = token.split(".")
    said = decoded(head)
    assert (said["alg"], said["typ"]) == ("RS256", "JWT")
    key = serialization.load_pem_public_key(public(said["kid"]).encode())
    assert isinstance(key, rsa.RSAPublicKey)
    signed = base64.urlsafe_b64decode(signature + "=" * (-len(signature) % 4))
    key.verify(signed, f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    return decoded(body)


class TestMint:
    def test_a_token_says_who_may_call_what_until_when(self) -> None:
        (token,) = mint(spec(), AUDIENCE, {"k1": private()}).values()
        assert claims(token) == {
            "iss": "https://issuer.example.com",
            "sub": "team-search",
            "aud": AUDIENCE,
            "models": ["resnet"],
            "exp": int(dt.datetime(2027, 7, 1, tzinfo=dt.UTC).timestamp()),
        }

    def test_each_consumer_gets_its_own(self) -> None:
        consumers = {"a": {"models": ["m"]}, "b": {"models": ["n", "m", "n"]}}
        found = {name: claims(token) for name, token in mint(spec(consumers=consumers), "x", {"k1": private()}).items()}
        assert {name: (said["sub"], said["models"]) for name, said in found.items()} == {
            "a": ("a", ["m"]),
            "b": ("b", ["m", "n"]),
        }
        assert all("exp" not in said for said in found.values())

    def test_the_same_input_gives_the_same_token(self) -> None:
        one, two = (mint(spec(), AUDIENCE, {"k1": private(), "k2": private("k2")}) for _ in range(2))
        assert one == two

    def test_the_claim_may_have_another_name(self) -> None:
        (token,) = mint(spec(claim="scopes"), AUDIENCE, {"k1": private()}).values()
        assert claims(token)["scopes"] == ["resnet"]

    def test_the_first_key_signs(self) -> None:
        keys = [{"id": "k2", "publicKey": public("k2")}, KEY]
        (token,) = mint(spec(keys=keys), AUDIENCE, {"k1": private(), "k2": private("k2")}).values()
        assert decoded(token.split(".")[0])["kid"] == "k2"
        assert claims(token)

    def test_the_check_would_notice_another_key(self) -> None:
        (token,) = mint(spec(keys=[{"id": "k2", "publicKey": public("k1")}]), "x", {"k2": private("k1")}).values()
        with pytest.raises(InvalidSignature):
            claims(token)

    @pytest.mark.parametrize(
        "keys", [{}, {"k2": private("k2")}, {"k1": private("k2")}, {"k1": "abc"}, {"k1": public()}]
    )
    def test_a_key_that_is_missing_or_another_is_refused_and_not_shown(self, keys: dict[str, str]) -> None:
        with pytest.raises(SpecError) as refused:
            mint(spec(), AUDIENCE, keys)
        assert f"{KEYS_SETTING}.k1" in str(refused.value)
        assert "BEGIN" not in str(refused.value)


class TestPublicKeys:
    def test_both_of_two_keys_are_valid(self) -> None:
        found = json.loads(jwks(tuple(spec(keys=[KEY, {"id": "k2", "publicKey": public("k2")}]).keys)))
        assert [(key["kid"], key["kty"], key["alg"], key["use"]) for key in found["keys"]] == [
            ("k1", "RSA", "RS256", "sig"),
            ("k2", "RSA", "RS256", "sig"),
        ]

    def test_they_are_those_of_the_pem_and_nothing_private(self) -> None:
        ((key,),) = json.loads(jwks(tuple(spec().keys))).values()
        loaded = serialization.load_pem_public_key(public().encode())
        assert isinstance(loaded, rsa.RSAPublicKey)
        numbers = {
            name: int.from_bytes(base64.urlsafe_b64decode(key[name] + "=" * (-len(key[name]) % 4)), "big")
            for name in ("n", "e")
        }
        assert numbers == {"n": loaded.public_numbers().n, "e": loaded.public_numbers().e}
        assert set(key) == {"kty", "use", "alg", "kid", "n", "e"}

    @pytest.mark.parametrize("text", ["abc", elliptic(), public("short", 1024)], ids=["text", "elliptic", "short"])
    def test_what_is_no_public_rsa_key_is_refused(self, text: str, refused: Callable[..., Problem]) -> None:
        assert refused({"keys": [{"id": "k1", "publicKey": text}]}).field == "tokens.keys[0].publicKey"

    def test_a_private_one_is_refused_and_not_shown(self, refused: Callable[..., Problem]) -> None:
        problem = refused({"keys": [{"id": "k1", "publicKey": private()}]})
        assert problem.field == "tokens.keys[0].publicKey"
        assert "BEGIN" not in str(problem)


class TestSettings:
    @pytest.mark.parametrize(
        ("tokens", "field"),
        [
            ({"keys": []}, "tokens.keys"),
            ({"jwksUri": "https://a.b/jwks", "consumers": {}}, "tokens.keys"),
            ({"jwksUri": "https://a.b/jwks", "keys": []}, "tokens.consumers"),
            ({"jwksUri": "http://a.b/jwks", "keys": [], "consumers": {}}, "tokens.jwksUri"),
            ({"keys": [KEY, KEY]}, "tokens.keys"),
            ({"claim": "aud"}, "tokens.claim"),
            ({"claim": "a.b"}, "tokens.claim"),
            ({"issuer": "a b"}, "tokens.issuer"),
            ({"audience": ""}, "tokens.audience"),
            ({"consumers": {"A_b": {"models": ["resnet"]}}}, "tokens.consumers.A_b"),
            ({"consumers": {"a": {"models": []}}}, "tokens.consumers.a.models"),
            ({"consumers": {"a": {"models": ["resnet"], "expires": "soon"}}}, "tokens.consumers.a.expires"),
            ({"consumers": {"a": {"models": ["resnet"], "expires": "2027-02-30"}}}, "tokens.consumers.a.expires"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, tokens: dict[str, Any], field: str, refusals: Refusals, five_lines: str
    ) -> None:
        problems = refusals({"a.yaml": five_lines + "auth: {token: true}\n"}, stack(tokens))
        assert {problem.field for problem in problems} == {field}

    def test_keys_may_come_from_an_issuer_outside(self, load_stack: Load) -> None:
        settings = stack({"jwksUri": "https://id.example.com/jwks", "keys": [], "consumers": {}})
        assert load_stack({}, settings).spec.tokens

    @pytest.mark.parametrize("written", ["2027-06-30", "2027-06-30 00:00:00 +0000 UTC"], ids=["text", "engine"])
    def test_a_date_is_the_last_day_however_it_comes(self, written: str) -> None:
        consumers = {"a": {"models": ["m"], "expires": written}}
        assert spec(consumers=consumers).consumers["a"].expires == "2027-06-30"

    def test_a_token_without_an_end_is_refused_in_prod(self, refused: Callable[..., Problem]) -> None:
        problem = refused({"consumers": {"a": {"models": ["resnet"]}}}, "prod")
        assert (problem.field, problem.allowed) == ("tokens.consumers.a.expires", "needed in prod")

    def test_in_dev_it_is_taken(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + "auth: {token: true}\n"}
        assert load_stack(files, stack({"consumers": {"a": {"models": ["resnet"]}}})).spec.tokens

    def test_an_unknown_model_is_refused_with_a_known_one(self, refused: Callable[..., Problem]) -> None:
        problem = refused({"consumers": {"a": {"models": ["resnet", "resnit"]}}})
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "tokens.consumers.a.models[1]")
        assert problem.fix == "did you mean resnet?"

    def test_a_model_that_asks_for_no_token_is_refused(self, refused: Callable[..., Problem]) -> None:
        assert refused({}, auth="").field == "tokens.consumers.team-search.models[0]"


SECURE = [{"secure": "v1:abc"}, {"k1": {"secure": "v1:abc"}}]


class TestPrivateKeys:
    @pytest.mark.parametrize("setting", SECURE, ids=["whole", "each"])
    def test_encrypted_ones_cannot_be_read_and_are_no_mistake(self, setting: object) -> None:
        assert private_keys(json.dumps(setting)) is None

    @pytest.mark.parametrize("text", ["", "k3y-777", "[]", "{}", '{"k1": 5}', '"k3y-777"'])
    def test_what_is_no_mapping_of_keys_is_refused_and_not_shown(self, text: str) -> None:
        with pytest.raises(SpecError, match=KEYS_SETTING) as refused:
            private_keys(text)
        assert "k3y-777" not in str(refused.value)

    def test_they_have_to_be_a_secret_of_the_engine(self) -> None:
        with pytest.raises(SpecError, match="clear text") as refused:
            check_keys(spec(), json.dumps({"k1": private()}), secret=False)
        assert "BEGIN" not in str(refused.value)

    def test_they_are_missed_where_consumers_wait_for_tokens(self) -> None:
        with pytest.raises(SpecError, match="pulumi config set --secret"):
            check_keys(spec(), None, secret=False)

    @pytest.mark.parametrize(
        ("tokens", "text", "secret"),
        [
            (None, None, False),
            (spec(consumers={}), None, False),
            (spec(), json.dumps({"k1": private()}), True),
            *((spec(), json.dumps(setting), False) for setting in SECURE),
        ],
        ids=["no-tokens", "no-consumers", "secret", "encrypted", "each-encrypted"],
    )
    def test_otherwise_all_is_well(self, tokens: TokensSpec | None, text: str | None, *, secret: bool) -> None:
        check_keys(tokens, text, secret=secret)
