"""Two gateways: TLS with a certificate that istiod hands out, plain HTTP that leads there, and an internal one."""

import dataclasses
import ssl
import warnings
from typing import Final

import grpc
import pytest

from tests.dataplane.gateway_calls import Answer, Caller, ask, load, many
from tests.dataplane.gateway_certificates import Authority, context, shake
from tests.dataplane.gateway_front import PUBLIC
from tests.dataplane.gateway_sealed import (
    API,
    CERTIFICATE,
    DOMAIN,
    INSIDE,
    INTERNALLY,
    PUBLICLY,
    Sealed,
    bearer,
    host,
    inside,
)

INFER: Final = "/v2/models/plain/infer"
OPEN: Final = [name for name in PUBLICLY if PUBLICLY[name] == INTERNALLY[name] == 200]
UNIMPLEMENTED: Final = grpc.StatusCode.UNIMPLEMENTED.value[0]
UNAVAILABLE: Final = grpc.StatusCode.UNAVAILABLE.value[0]


def only(version: ssl.TLSVersion, trust: str) -> ssl.SSLContext:
    """A client that knows one version of TLS."""
    client = context(trust)
    # Or it would refuse by itself.
    client.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client.minimum_version = client.maximum_version = version
    return client


@pytest.fixture(autouse=True)
def nothing_else(sealed: Sealed) -> None:
    """What pods have been asked is what a test has asked."""
    sealed.public.gate.backends.take()


def test_envoys_take_all_that_istiod_makes_of_our_objects(sealed: Sealed) -> None:
    for scene in (sealed.public, sealed.internal):
        assert set(scene.gate.rejected().values()) == {0}, scene.gate.rejected()


class TestTls:
    @pytest.mark.parametrize("name", OPEN)
    def test_http_and_grpc_share_listener_and_host(self, name: str, sealed: Sealed) -> None:
        pods, caller = sealed.public.addresses(f"{name}-v1"), sealed.public.caller
        for asked in (host(name), f"{host(name)}:443"):
            answer = caller.infer(asked, name)
            assert (answer.status, answer.pod in pods) == (200, True), answer
        with caller.channel(host(name)) as channel:
            assert ask(channel, name).pod in pods
        assert caller.http(API, f"/{name}/v2/models/{name}/infer").pod in pods

    @pytest.mark.parametrize("protocol", ["h2", "http/1.1"])
    def test_the_client_chooses_the_protocol(self, protocol: str, sealed: Sealed) -> None:
        found = shake(sealed.public.caller.door, host("plain"), context(sealed.authority.root, protocol))
        assert (found.protocol, found.version) == (protocol, "TLSv1.3")

    def test_who_does_not_trust_the_authority_sends_nothing(self, sealed: Sealed) -> None:
        stranger = Caller(sealed.public.caller.door, Authority("somebody else").root)
        answer = stranger.infer(host("plain"), "plain")
        assert answer.status == -1
        assert "CERTIFICATE_VERIFY_FAILED" in answer.text
        with stranger.channel(host("plain")) as channel:
            assert ask(channel, "plain").status == UNAVAILABLE
        assert not sealed.public.gate.backends.take()

    def test_the_certificate_holds_for_hosts_of_the_domain_only(self, sealed: Sealed) -> None:
        # Two labels, for which a certificate of *.<domain> is not good.
        answer = sealed.public.caller.infer(f"a.{host('plain')}", "plain")
        assert "Hostname mismatch" in answer.text
        for asked in (DOMAIN, inside("plain"), "plain.example.com"):
            # Nobody answers for such a name.
            assert sealed.public.caller.infer(asked, "plain").status == -1

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
    def test_old_versions_are_refused(self, version: ssl.TLSVersion, sealed: Sealed) -> None:
        with pytest.raises(ssl.SSLError, match="alert protocol version"):
            shake(sealed.public.caller.door, host("plain"), only(version, sealed.authority.root))

    def test_the_oldest_that_is_not(self, sealed: Sealed) -> None:
        client = only(ssl.TLSVersion.TLSv1_2, sealed.authority.root)
        assert shake(sealed.public.caller.door, host("plain"), client).version == "TLSv1.2"

    def test_a_renewed_certificate_is_served_at_once_and_nobody_notices(self, sealed: Sealed) -> None:
        caller, world = sealed.public.caller, sealed.public.gate.world
        client = context(sealed.authority.root)
        renewed = sealed.authority.issue(f"*.{DOMAIN}")

        def new_connection() -> Answer:
            return caller.infer(host("plain"), "plain", headers={"connection": "close"})

        def served() -> int:
            return shake(caller.door, host("plain"), client).serial

        assert served() != renewed.serial
        until = sealed.public.gate.envoy.until
        with load(new_connection, threads=2) as fresh, load(lambda: caller.infer(host("other"), "other"), 2) as kept:
            until(lambda: min(len(fresh), len(kept)) > 20)
            renewed.keep(world, PUBLIC.namespace, CERTIFICATE)
            until(lambda: served() == renewed.serial)
            before = len(fresh), len(kept)
            until(lambda: len(fresh) > before[0] + 20 and len(kept) > before[1] + 20)
        assert {one.status for one in fresh + kept} == {200}
        assert {served() for _ in range(10)} == {renewed.serial}


class TestPlainHttp:
    """Where there is TLS, plain HTTP leads there and to no model."""

    @pytest.mark.parametrize("more", [{}, {"x-forwarded-proto": "https"}], ids=["none", "pretending"])
    @pytest.mark.parametrize("body", [None, b"{}"], ids=["get", "post"])
    @pytest.mark.parametrize(
        ("asked", "path"),
        [
            (host("plain"), f"{INFER}?a=b"),
            (host("held"), "/v2/models/held/infer"),
            (host("plain"), "/v2/health/live"),
            (API, f"/plain{INFER}"),
        ],
    )
    def test_it_leads_to_https(
        self, asked: str, path: str, body: bytes | None, more: dict[str, str], sealed: Sealed
    ) -> None:
        # Who has none for a model that asks for one is refused before being led anywhere.
        headers = bearer("held") | more
        answer = sealed.plain.http(asked, path, body, headers)
        assert (answer.status, answer.headers.get("location")) == (301, f"https://{asked}{path}"), answer
        # No client says a port that goes without saying; one that does is not led past the certificate either.
        assert sealed.plain.http(f"{asked}:80", path, body, headers).status == 301
        assert not sealed.public.gate.backends.take()

    def test_who_has_no_token_is_not_even_led_there(self, sealed: Sealed) -> None:
        assert sealed.plain.infer(host("held"), "held").status == 403
        assert not sealed.public.gate.backends.take()

    @pytest.mark.parametrize("asked", [host("nobody"), inside("plain"), "example.com", DOMAIN])
    def test_other_hosts_lead_to_no_model(self, asked: str, sealed: Sealed) -> None:
        assert sealed.plain.infer(asked, "plain").status in {301, 404}
        assert not sealed.public.gate.backends.take()

    def test_grpc_gets_no_answer(self, sealed: Sealed) -> None:
        with sealed.plain.channel(host("plain")) as channel:
            assert ask(channel, "plain").status not in {0, UNAVAILABLE}
        assert not sealed.public.gate.backends.take()


class TestInternal:
    """A model is at both gateways, at each under the domain of that gateway and under no other name."""

    @pytest.mark.parametrize("name", OPEN)
    def test_the_internal_gateway_has_a_domain_of_its_own(self, name: str, sealed: Sealed) -> None:
        caller, pods = sealed.internal.caller, sealed.internal.addresses(f"{name}-v1")
        answers = many(20, lambda: caller.infer(inside(name), name))
        assert {(one.status, one.pod) for one in answers} == {(200, pod) for pod in pods}
        with caller.channel(inside(name)) as channel:
            assert ask(channel, name).pod in pods

    @pytest.mark.parametrize(
        ("asked", "path"), [(host("plain"), INFER), (API, f"/plain{INFER}"), (INSIDE, f"/plain{INFER}")]
    )
    def test_what_is_public_is_not_there(self, asked: str, path: str, sealed: Sealed) -> None:
        assert sealed.internal.caller.http(asked, path).status == 404
        assert not sealed.public.gate.backends.take()

    @pytest.mark.parametrize("name", ["", "plain"])
    def test_what_is_internal_is_not_public(self, name: str, sealed: Sealed) -> None:
        # A client may ask for one name over TLS, and for another one inside.
        known = dataclasses.replace(sealed.public.caller, name=host("plain"))
        asked = inside(name) if name else INSIDE
        assert known.http(asked, INFER).status == 404
        assert not sealed.public.gate.backends.take()
        # Else nothing would be shown.
        assert known.http(host("plain"), INFER).status == 200

    @pytest.mark.parametrize(("headers", "status"), [({}, 403), (bearer("other"), 403), (bearer("held"), 200)])
    def test_both_check_tokens(self, headers: dict[str, str], status: int, sealed: Sealed) -> None:
        for scene, asked in ((sealed.public, host("held")), (sealed.internal, inside("held"))):
            assert scene.caller.infer(asked, "held", headers=headers).status == status


class TestAtOneGateway:
    """A model whose file names one gateway is not at the other one, under no name and on no path."""

    @pytest.mark.parametrize("name", ["inner", "outer"])
    def test_it_is_where_its_file_says_only(self, name: str, sealed: Sealed) -> None:
        wanted, pods = (PUBLICLY[name], INTERNALLY[name]), sealed.public.addresses(f"{name}-v1")
        scenes = (sealed.public, host(name)), (sealed.internal, inside(name))
        answers = [scene.caller.infer(asked, name) for scene, asked in scenes]
        assert tuple(one.status for one in answers) == wanted
        assert {one.pod for one in answers if one.status == 200} == pods
        for (scene, asked), status in zip(scenes, wanted, strict=True):
            with scene.caller.channel(asked) as channel:
                assert ask(channel, name).status == (0 if status == 200 else UNIMPLEMENTED)

    def test_nothing_else_at_the_public_gateway_leads_inside(self, sealed: Sealed) -> None:
        known, path = dataclasses.replace(sealed.public.caller, name=host("inner")), "/v2/models/inner/infer"
        for asked, at in ((host("inner"), path), (inside("inner"), path), (API, f"/inner{path}"), (API, path)):
            assert known.http(asked, at).status == 404, (asked, at)
        # Plain HTTP leads to HTTPS, whatever the host.
        assert sealed.plain.http(host("inner"), path).status in {301, 404}
        assert not sealed.public.gate.backends.take()
        # Else nothing would be shown.
        assert known.http(API, "/outer/v2/models/outer/infer").status == 200

    @pytest.mark.parametrize("asked", [host("outer"), inside("outer"), API, INSIDE])
    def test_nothing_at_the_internal_gateway_leads_to_a_model_outside(self, asked: str, sealed: Sealed) -> None:
        for path in ("/v2/models/outer/infer", "/outer/v2/models/outer/infer"):
            assert sealed.internal.caller.http(asked, path).status == 404
        assert not sealed.public.gate.backends.take()
