"""Requests through a gateway: our own objects on a real API server, a real istiod and a real Envoy, counted."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

import grpc
import pytest

from tests.dataplane.gateway_calls import Answer, ask, fits, many, stream
from tests.dataplane.gateway_scene import PERCENT, Scene, host


def test_envoy_takes_all_that_istiod_makes_of_our_objects(routed: Scene) -> None:
    found = routed.gate.rejected()
    assert {"cluster_manager.cds.update_rejected", "listener_manager.lds.update_rejected"} <= set(found)
    assert set(found.values()) == {0}, found


# Bytes of a picture as a camera has it.
FRAME: Final = 6_220_800
# istioctl says so of every EnvoyFilter, and of every rule that denies by path and names no port. A stack does not know
# on which port the pods of an existing gateway listen, and a rule for a wrong one would leave the model open.
CAREFUL: Final = {
    "EnvoyFilter": "Schema validation warning: EnvoyFilter exposes internal implementation details",
    "AuthorizationPolicy": "Schema validation warning: configured AuthorizationPolicy will deny all traffic to TCP",
}


def test_istioctl_finds_nothing_wrong(routed: Scene) -> None:
    world = routed.gate.world
    istioctl = (world.tools.istioctl, "analyze", f"--kubeconfig={world.plane.kubeconfig}", "--all-namespaces")
    found = json.loads(world.run(*istioctl, "--output=json", "--failure-threshold=Error") or "[]")
    serious = [(one["origin"].partition(" ")[0], one["message"]) for one in found if one["level"] != "Info"]
    assert {kind for kind, _ in serious} == set(CAREFUL), serious
    assert [one for one in serious if not one[1].startswith(CAREFUL[one[0]])] == []


class TestSplit:
    def test_http(self, routed: Scene) -> None:
        answers = many(500, lambda: routed.caller.infer(host("divided"), "divided"))
        found = routed.by_revision("divided", answers)
        assert fits(found["v2"], 500, 0.2), found

    def test_grpc(self, routed: Scene) -> None:
        with routed.caller.channel(host("divided")) as channel:
            found = routed.by_revision("divided", many(500, lambda: ask(channel, "divided")))
        assert fits(found["v2"], 500, 0.2), found


class TestMirror:
    @pytest.fixture
    def shadow(self, routed: Scene) -> Iterator[set[str]]:
        found = routed.addresses("copied-v2")
        routed.gate.backends.take()
        yield found
        routed.gate.backends.behave(*found)

    def ask(self, routed: Scene, infer: Callable[..., Answer], number: int) -> float:
        """The longest time that an answer took; all came from the revision that is no shadow."""
        answers = many(number, lambda: infer("copied"))
        assert routed.by_revision("copied", answers) == {"v1": number}
        return max(one.seconds for one in answers)

    def test_its_share(self, routed: Scene, infer: Callable[..., Answer], shadow: set[str]) -> None:
        assert len(shadow) == 1
        self.ask(routed, infer, 500)
        found = routed.copies()
        assert fits(found, 500, PERCENT / 100), found

    def test_nobody_waits_for_it(self, routed: Scene, infer: Callable[..., Answer], shadow: set[str]) -> None:
        routed.gate.backends.behave(*shadow, delay=8)
        assert self.ask(routed, infer, 60) < 4
        assert routed.copies() > 0

    def test_nobody_sees_it_fail(self, routed: Scene, infer: Callable[..., Answer], shadow: set[str]) -> None:
        routed.gate.backends.behave(*shadow, status=500)
        self.ask(routed, infer, 60)
        assert routed.copies() > 0

    def test_it_may_be_absent(self, routed: Scene, infer: Callable[..., Answer]) -> None:
        kubectl, namespace = routed.gate.world.kubectl, f"--namespace={routed.project.namespace}"
        kubectl.run("scale", "deployment/copied-v2", "--replicas=0", namespace)
        try:
            routed.gate.envoy.until(lambda: not routed.addresses("copied-v2"))
            time.sleep(1)
            self.ask(routed, infer, 60)
        finally:
            kubectl.run("scale", "deployment/copied-v2", "--replicas=1", namespace)
            routed.gate.envoy.until(lambda: routed.addresses("copied-v2"))


def test_testers_get_their_revision(routed: Scene, infer: Callable[..., Answer]) -> None:
    assert routed.by_revision("tested", many(40, lambda: infer("tested"))) == {"v1": 40}
    assert routed.by_revision("tested", many(40, lambda: infer("tested", **{"x-revision": "v2"}))) == {"v2": 40}
    assert routed.by_revision("tested", many(40, lambda: infer("tested", **{"x-revision": "v3"}))) == {"v1": 40}


COOKIES: Final = {"ring=v.2": "v2", "a=b; ring=v.2": "v2", "ring=v.2; a=b": "v2", "ring=vx2": "v1", "string=v.2": "v1"}


@pytest.mark.parametrize("cookie", COOKIES)
def test_testers_are_known_by_a_cookie(cookie: str, routed: Scene, infer: Callable[..., Answer]) -> None:
    answers = many(20, lambda: infer("baked", cookie=cookie))
    assert routed.by_revision("baked", answers) == {COOKIES[cookie]: 20}


def test_another_model_gets_copies(routed: Scene, infer: Callable[..., Answer]) -> None:
    routed.gate.backends.take()
    answers = many(40, lambda: infer("lent"))
    assert routed.by_revision("lent", answers) == {"v1": 40}
    time.sleep(1)
    found = routed.gate.backends.take()
    for model in ("lent", "model-7"):
        (pod,) = routed.addresses(f"{model}-v1")
        assert sum(number for (asked, _, _), number in found.items() if asked == pod) == 40, model


def test_large_requests_are_copied_too(routed: Scene) -> None:
    def one() -> Answer:
        return routed.caller.infer(host("lent"), "lent", body=b"x" * FRAME)

    routed.gate.backends.take()
    answers = many(20, one, threads=2)
    assert routed.by_revision("lent", answers) == {"v1": 20}
    assert {answer.body["length"] for answer in answers} == {FRAME}
    time.sleep(2)
    (shadow,) = routed.addresses("model-7-v1")
    found = routed.gate.backends.take()
    # A pod counts a request when it has all of it.
    assert sum(number for (pod, _, _), number in found.items() if pod == shadow) == 20, found


def test_an_answered_request_is_not_sent_again(routed: Scene, infer: Callable[..., Answer]) -> None:
    backends, (pod,) = routed.gate.backends, routed.addresses("model-3-v1")
    backends.behave(pod, status=503)
    backends.take()
    answer = infer("model-3")
    backends.behave(pod)
    assert answer.status in {503, grpc.StatusCode.UNAVAILABLE.value[0]}
    assert sum(backends.take().values()) == 1


def test_a_stream_of_requests_goes_to_one_pod(routed: Scene) -> None:
    with routed.caller.channel(host("wide")) as channel:
        pods = stream(channel, "wide", 20)
    assert len(pods) == 20
    assert len(set(pods)) == 1
    assert set(pods) <= routed.addresses("wide-v1")


def test_a_request_may_take_its_time_and_no_longer(routed: Scene, infer: Callable[..., Answer]) -> None:
    backends, (pod,) = routed.gate.backends, routed.addresses("hasty-v1")
    backends.behave(pod, delay=6)
    backends.take()
    answer = infer("hasty")
    backends.behave(pod)
    assert answer.status in {504, grpc.StatusCode.UNAVAILABLE.value[0]}
    assert 0.9 < answer.seconds < 4
    # It is not asked again: it may be at work.
    assert sum(backends.take().values()) == 1


def test_one_grpc_connection_reaches_all_pods(routed: Scene) -> None:
    with routed.caller.channel(host("wide")) as channel:
        answers = many(400, lambda: ask(channel, "wide"))
    assert {one.status for one in answers} == {0}
    found = Counter(one.pod for one in answers)
    assert set(found) == routed.addresses("wide-v1")
    assert len(found) == 4
    assert min(found.values()) > 400 / 4 / 2, found
