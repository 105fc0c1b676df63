"""Stacks with a gateway."""

from typing import Any

from spec.estate import EstateSpec
from spec.fields import Spec
from spec.ingress import GatewayReplicasSpec, GatewayServiceSpec, GatewaySpec, IngressSpec, IngressTlsSpec
from spec.merge import merge
from spec.model import ModelSpec
from spec.tokens import ConsumerSpec, TokenKeySpec, TokensSpec
from spec.traffic import AuthSpec, CookieMatchSpec, ForTestersSpec, HeaderMatchSpec, LimitsSpec, MirrorSpec, TrafficSpec
from tests.keys import private, public

DOMAIN = "models.example.com"
API = f"api.{DOMAIN}"
CLUSTER: dict[str, Any] = {"cluster": {"provider": "existing"}}
INGRESS: dict[str, Any] = {"domain": DOMAIN, "prefixHost": API, "tls": {"issuer": "letsencrypt"}}
INTERNAL: dict[str, Any] = {"domain": "models.internal", "tls": {"secret": "internal-cert"}}
ISSUER = "https://issuer.example.com"
TOKENS: dict[str, Any] = {"issuer": ISSUER, "keys": [{"id": "k1", "publicKey": public()}]}
AUTH = "auth: {token: true}\n"
THREE = "revisions: {v1: {}, v2: {}, v3: {}}\n"


def stack(**ingress: Any) -> dict[str, Any]:
    """Settings of a stack with a managed gateway, and tokens."""
    return CLUSTER | {"ingress": INGRESS | ingress, "tokens": TOKENS}


def existing(**ingress: Any) -> dict[str, Any]:
    """The same with an Istio that is there."""
    own = {"provider": "existing", "namespace": "gates", "selector": {"istio": "estate"}}
    return stack() | {"ingress": INGRESS | own | ingress}


TESTED = {"revisions": {"v1": {}, "v2": {}}, "traffic": {"split": {"v1": 100}}}
SIGN = {"name": "a", "value": "b"}
BY_HEADER = merge(TESTED, {"traffic": {"testers": {"header": SIGN, "to": "v2"}}})
BY_COOKIE = merge(TESTED, {"traffic": {"testers": {"cookie": SIGN, "to": "v2"}}})
LIMITED = {"traffic": {"limits": {"requestsPerSecond": 5, "maxRequestSize": "8Mi"}}}
GUARDED = {"auth": {"token": True}}
# Specs of the model file, their fields, the model before, and the patch that changes the field; all need a gateway.
MODEL_CASES: list[tuple[type[Spec], str, dict[str, Any], dict[str, Any]]] = [
    (ModelSpec, "auth", {}, GUARDED),
    (TrafficSpec, "testers", TESTED, BY_HEADER),
    (TrafficSpec, "limits", {}, LIMITED),
    (TrafficSpec, "gateways", {}, {"traffic": {"gateways": ["internal"]}}),
    (TrafficSpec, "host", {}, {"traffic": {"host": "other"}}),
    (TrafficSpec, "prefix", {}, {"traffic": {"prefix": "/other"}}),
    (MirrorSpec, "model", {"traffic": {"mirror": {"model": "one"}}}, {"traffic": {"mirror": {"model": "two"}}}),
    (ForTestersSpec, "header", BY_COOKIE, {"traffic": {"testers": {"cookie": None, "header": SIGN}}}),
    (ForTestersSpec, "cookie", BY_HEADER, {"traffic": {"testers": {"header": None, "cookie": SIGN}}}),
    (ForTestersSpec, "to", BY_HEADER, {"traffic": {"testers": {"to": "v1"}}}),
    *((HeaderMatchSpec, name, BY_HEADER, {"traffic": {"testers": {"header": {name: "c"}}}}) for name in SIGN),
    *((CookieMatchSpec, name, BY_COOKIE, {"traffic": {"testers": {"cookie": {name: "c"}}}}) for name in SIGN),
    (LimitsSpec, "requestsPerSecond", LIMITED, {"traffic": {"limits": {"requestsPerSecond": 6}}}),
    (LimitsSpec, "maxRequestSize", LIMITED, {"traffic": {"limits": {"maxRequestSize": "9Mi"}}}),
    (AuthSpec, "token", GUARDED, {"auth": {"token": False}}),
    (AuthSpec, "openPaths", GUARDED, {"auth": {"openPaths": []}}),
]  # fmt: skip
AT_THE_GATEWAY = {(spec, field) for spec, field, _, _ in MODEL_CASES}

MANAGED = stack()
ADOPTED = existing()
TWO = stack(internal=INTERNAL)
TWO_ADOPTED = existing(internal=INTERNAL | {"namespace": "inside", "selector": {"istio": "inside"}})
ASKING: dict[str, Any] = stack() | {
    "models": {"m": {"auth": {"token": True}}},
    "tokenKeys": {"k1": private(), "k2": private("k2")},
    "tokens": TOKENS | {"consumers": {"team": {"models": ["m"], "expires": "2027-06-30"}}},
}
SECOND = [{"id": "k2", "publicKey": public("k2")}]


def _ingress(**fields: Any) -> dict[str, Any]:
    return {"ingress": fields}


# As MODEL_CASES, of the stack file.
STACK_CASES: list[tuple[type[Spec], str, dict[str, Any], dict[str, Any]]] = [
    (EstateSpec, "ingress", CLUSTER, {"ingress": INGRESS}),
    (EstateSpec, "tokens", CLUSTER | {"ingress": INGRESS}, {"tokens": TOKENS}),
    (IngressSpec, "provider", MANAGED, {"ingress": ADOPTED["ingress"]}),
    *((IngressSpec, field, MANAGED, _ingress(**{field: value})) for field, value in {
        "prefixHost": None, "tls": {"issuer": "other"}, "service": {"type": "NodePort"},
        "replicas": {"max": 9}, "nodeSelector": {"pool": "gates"}, "internal": INTERNAL, "accessLogs": False,
        "sidecars": True, "callers": ["shop"]}.items()),
    (IngressSpec, "domain", MANAGED, _ingress(domain="other.com", prefixHost="api.other.com")),
    (IngressSpec, "selector", ADOPTED, _ingress(selector={"istio": "other"})),
    (IngressSpec, "namespace", ADOPTED, _ingress(namespace="other")),
    *((GatewaySpec, field, TWO, _ingress(internal={field: value})) for field, value in {
        "domain": "other.internal", "prefixHost": "api.models.internal", "tls": {"secret": "other"},
        "service": {"type": "ClusterIP"}}.items()),
    (GatewaySpec, "selector", TWO_ADOPTED, _ingress(internal={"selector": {"istio": "other"}})),
    (GatewaySpec, "namespace", TWO_ADOPTED, _ingress(internal={"namespace": "other"})),
    (IngressTlsSpec, "issuer", MANAGED, _ingress(tls={"issuer": "other"})),
    (IngressTlsSpec, "secret", TWO, _ingress(internal={"tls": {"secret": "other"}})),
    (GatewayServiceSpec, "type", MANAGED, _ingress(service={"type": "NodePort"})),
    (GatewayServiceSpec, "annotations", MANAGED, _ingress(service={"annotations": {"a": "b"}})),
    (GatewayReplicasSpec, "min", MANAGED, _ingress(replicas={"min": 3})),
    (GatewayReplicasSpec, "max", MANAGED, _ingress(replicas={"max": 9})),
    *((TokensSpec, field, ASKING, {"tokens": {field: value}}) for field, value in {
        "issuer": "other", "audience": "other", "claim": "scopes", "keys": SECOND,
        "consumers": {"more": {"models": ["m"]}}}.items()),
    (TokensSpec, "jwksUri", stack(), {"tokens": {"keys": None, "jwksUri": "https://a.b/jwks"}}),
    (TokenKeySpec, "id", stack(), {"tokens": {"keys": [TOKENS["keys"][0] | {"id": "k3"}]}}),
    (TokenKeySpec, "publicKey", stack(), {"tokens": {"keys": [TOKENS["keys"][0] | {"publicKey": public("k2")}]}}),
    (ConsumerSpec, "models", ASKING | {"tokens": TOKENS | {"consumers": {}}}, {"tokens": ASKING["tokens"]}),
    (ConsumerSpec, "expires", ASKING, {"tokens": {"consumers": {"team": {"expires": "2027-07-01"}}}}),
]  # fmt: skip
