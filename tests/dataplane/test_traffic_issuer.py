"""Tokens of an issuer outside the stack, whose keys istiod fetches from where it publishes them."""

from collections.abc import Callable
from typing import Final

import pytest

from tests.dataplane.gateway_calls import Answer, ask, load
from tests.dataplane.gateway_sealed import CLAIMS, Sealed, bearer, host

Infer = Callable[[dict[str, str]], Answer]
GOOD: Final[dict[str, dict[str, str]]] = {
    "a list": bearer("other", "held"),
    "a text": bearer(scopes="held"),
    "without the word": {"authorization": bearer("held")["authorization"].removeprefix("Bearer ")},
    "several audiences": bearer("held", aud=["other", CLAIMS["aud"]]),
}
# HTTP status and gRPC code by what is wrong.
REFUSED: Final[dict[str, tuple[dict[str, str], int, int]]] = {
    "no token": ({}, 403, 7),
    "a foreign key": (bearer("held", key="k9"), 401, 16),
    "another issuer": (bearer("held", iss="https://else.example.com"), 401, 16),
    "expired": (bearer("held", exp=1_700_000_000), 401, 16),
    "not yet valid": (bearer("held", nbf=4_070_000_000), 401, 16),
    "another audience": (bearer("held", aud="else"), 403, 7),
    "another model": (bearer("other"), 403, 7),
    "another claim": (bearer(models=["held"]), 403, 7),
    "no audience": (bearer("held", aud=None), 403, 7),
    # Who calls is, for Istio, the issuer and the subject.
    "no subject": (bearer("held", sub=None), 403, 7),
}


@pytest.fixture(params=["http", "grpc"])
def infer(request: pytest.FixtureRequest, sealed: Sealed) -> Infer:
    """Asks the model ``held``."""
    caller = sealed.public.caller

    def over_grpc(headers: dict[str, str]) -> Answer:
        with caller.channel(host("held")) as channel:
            return ask(channel, "held", list(headers.items()))

    if request.param == "grpc":
        return over_grpc
    return lambda headers: caller.infer(host("held"), "held", headers=headers)


@pytest.mark.parametrize("headers", GOOD.values(), ids=GOOD)
def test_good(headers: dict[str, str], infer: Infer, sealed: Sealed) -> None:
    answer = infer(headers)
    assert answer.status in {0, 200}, answer
    assert answer.pod in sealed.public.addresses("held-v1")


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, infer: Infer, sealed: Sealed) -> None:
    headers, status, code = REFUSED[what]
    sealed.public.gate.backends.take()
    answer = infer(headers)
    assert answer.status in {status, code}, answer
    assert not sealed.public.gate.backends.take()


def test_keys_come_and_go_where_the_issuer_publishes_them(infer: Infer, sealed: Sealed) -> None:
    old, new = bearer("held"), bearer("held", key="k2")

    def accepted(headers: dict[str, str]) -> bool:
        return infer(headers).status in {0, 200}

    until = sealed.public.gate.istiod.until
    assert not accepted(new)
    try:
        with load(lambda: infer(old), threads=2) as answers:
            sealed.issuer.publish("k1", "k2")
            until(lambda: accepted(new))
            before = len(answers)
            until(lambda: len(answers) > before + 20)
        assert set(sealed.public.by_revision("held", answers)) == {"v1"}
        sealed.issuer.publish("k2")
        until(lambda: not accepted(old))
        assert accepted(new)
    finally:
        sealed.issuer.publish("k1")
        until(lambda: accepted(old) and not accepted(new))
