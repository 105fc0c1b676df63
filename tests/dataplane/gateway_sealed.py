"""A second estate in the world of the first: two gateways, one of them with TLS, and tokens of an issuer outside."""

from dataclasses import dataclass
from typing import Any, Final

import pytest

from tests.dataplane import gateway, gateway_issuer
from tests.dataplane.gateway_calls import Caller
from tests.dataplane.gateway_certificates import Authority
from tests.dataplane.gateway_front import INTERNAL, PUBLIC, Front
from tests.dataplane.gateway_issuer import Issuer, sign
from tests.dataplane.gateway_scene import Scene, write

DOMAIN: Final = "secure.example.com"
API: Final = f"api.{DOMAIN}"
INSIDE: Final = "models.inside.example.com"
ISSUER: Final = "https://id.example.com"
AUDIENCE: Final = "models"
CERTIFICATE: Final = "wildcard"
MODELS: Final[dict[str, dict[str, Any]]] = {
    "plain": {"scaling": {"min": 2, "max": 2}},
    "other": {},
    "held": {"auth": {"token": True}},
    "outer": {"traffic": {"gateways": ["public"]}},
    "inner": {"traffic": {"gateways": ["internal"]}},
}
# What whoever has no token is answered at each gateway.
PUBLICLY: Final = {"plain": 200, "other": 200, "held": 403, "outer": 200, "inner": 404}
INTERNALLY: Final = PUBLICLY | {"outer": 404, "inner": 200}


def _existing(front: Front) -> dict[str, Any]:
    return {"namespace": front.namespace, "selector": dict(front.selector)}


INGRESS: Final[dict[str, Any]] = {
    "provider": "existing",
    "domain": DOMAIN,
    "prefixHost": API,
    "tls": {"secret": CERTIFICATE},
    **_existing(PUBLIC),
    "internal": {"domain": INSIDE, **_existing(INTERNAL)},
}
TOKENS: Final = {"issuer": ISSUER, "jwksUri": gateway_issuer.ADDRESS, "audience": AUDIENCE, "claim": "scopes"}
CLAIMS: Final[dict[str, Any]] = {"iss": ISSUER, "sub": "somebody", "aud": AUDIENCE, "exp": 4_070_908_800}


@dataclass(frozen=True)
class Sealed:
    """The estate behind its gateways.

    Attributes:
        public: the one with TLS, whose caller trusts its certificate.
        internal: the one without.
        authority: that has signed the certificate.
        issuer: of the tokens.
    """

    public: Scene
    internal: Scene
    authority: Authority
    issuer: Issuer

    @property
    def plain(self) -> Caller:
        """Somebody who does without TLS at the public gateway."""
        return Caller(self.public.gate.backends.door(PUBLIC.ports[80]))


def host(model: str) -> str:
    return f"{model}.{DOMAIN}"


def inside(model: str) -> str:
    return f"{model}.{INSIDE}"


def bearer(*models: str, key: str = "k1", **claims: Any) -> dict[str, str]:
    """The header of a token for these models, good unless said otherwise; a claim that is None is left out."""
    said = CLAIMS | {"scopes": list(models)} | claims
    token = sign({name: value for name, value in said.items() if value is not None}, key)
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="session")
def sealed(routed: Scene, authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Sealed:
    world = routed.gate.world
    issuer = gateway_issuer.start(world, tmp_path_factory.mktemp("issuer"), authority)
    authority.issue(f"*.{DOMAIN}").keep(world, PUBLIC.namespace, CERTIFICATE)
    project = world.project("sealed")
    write(project, MODELS)
    project.set(models={}, gpuPools=[], ingress=INGRESS, tokens=TOKENS)
    project.up().must_succeed()
    public, internal = (gateway.join(routed.gate, front) for front in (PUBLIC, INTERNAL))
    doors = routed.gate.backends.door
    found = Sealed(
        Scene(public, project, Caller(doors(PUBLIC.ports[443]), authority.root)),
        Scene(internal, project, Caller(doors(INTERNAL.ports[80]))),
        authority,
        issuer,
    )
    public.envoy.until(
        lambda: {name: found.public.caller.infer(host(name), name).status for name in MODELS} == PUBLICLY
    )
    internal.envoy.until(
        lambda: {name: found.internal.caller.infer(inside(name), name).status for name in MODELS} == INTERNALLY
    )
    routed.gate.backends.take()
    return found
