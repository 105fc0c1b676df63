"""The stack's own tokens, as its outputs have them, and what each consumer may do with them."""

import json
import time
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.dataplane.gateway_calls import Answer, ask, load
from tests.dataplane.gateway_issuer import sign
from tests.dataplane.gateway_scene import CONSUMERS, DOMAIN, ISSUER, RATE, Scene, host

SECONDS: Final = 4
# Well below the rate.
PAUSE: Final = 2 / RATE
Infer = Callable[..., Answer]


@pytest.fixture(scope="module")
def tokens(routed: Scene) -> Mapping[str, str]:
    """What the stack gives out."""
    told = routed.project.pulumi("stack", "output", "--show-secrets", "--json").must_succeed()
    return json.loads(told.text)["tokens"]


class TestOutputs:
    def test_they_are_secret(self, routed: Scene, tokens: Mapping[str, str]) -> None:
        assert routed.project.outputs()["tokens"] == "[secret]"
        everything = routed.project.pulumi("stack", "export").must_succeed().text
        for token in tokens.values():
            assert token not in everything

    @pytest.mark.parametrize("scheme", ["Bearer ", ""])
    @pytest.mark.parametrize("name", CONSUMERS)
    def test_they_open_the_models_of_the_consumer(
        self, name: str, scheme: str, infer: Infer, routed: Scene, tokens: Mapping[str, str]
    ) -> None:
        time.sleep(1 / RATE)
        for model in ("metered", "metered-too", "guarded"):
            answer = infer(model, authorization=scheme + tokens[name])
            allowed = model in CONSUMERS[name]["models"]
            assert answer.status in ({0, 200} if allowed else {7, 403}), answer
            assert (answer.pod in routed.addresses(f"{model}-v1")) == allowed

    def test_one_without_a_subject_opens_nothing(self, infer: Infer) -> None:
        claims = {"iss": ISSUER, "aud": DOMAIN, "models": ["guarded"], "exp": 4_070_908_800}
        assert infer("guarded", authorization=f"Bearer {sign(claims)}").status in {7, 403}
        assert infer("guarded", authorization=f"Bearer {sign(claims | {'sub': 'somebody'})}").status in {0, 200}


class TestRates:
    """Each consumer has a bucket of its own at each model."""

    def test_who_takes_too_much_takes_it_from_nobody(self, infer: Infer, tokens: Mapping[str, str]) -> None:
        greedy, modest = ({"authorization": f"Bearer {tokens[name]}"} for name in ("team-a", "team-b"))
        time.sleep(1.5)
        others, began = [], time.monotonic()
        with load(lambda: infer("metered", **greedy), threads=2) as flood:
            while time.monotonic() - began < SECONDS:
                others += [infer("metered", **modest), infer("metered-too", **greedy)]
                time.sleep(PAUSE)
        seconds = time.monotonic() - began
        assert {one.status for one in others} <= {0, 200}, others
        refused = [one for one in flood if one.status in {8, 429}]
        passed = [one for one in flood if one.status in {0, 200}]
        assert len(refused) + len(passed) == len(flood)
        assert len(refused) > len(passed)
        assert RATE <= len(passed) <= RATE * (seconds + 1.5)

    def test_what_is_too_much_is_told(self, routed: Scene, tokens: Mapping[str, str]) -> None:
        metadata = {"authorization": f"Bearer {tokens['team-a']}"}
        text = "too many requests: this model's limit per second is reached, try again in a second"

        def first_refused(one: Infer) -> Answer:
            return next(answer for answer in (one() for _ in range(RATE * 10)) if answer.status in {8, 429})

        found = first_refused(lambda: routed.caller.infer(host("metered"), "metered", headers=metadata))
        assert (found.status, found.body) == (429, {"error": text})
        assert (found.headers["content-type"], found.headers["retry-after"]) == ("application/json", "1")
        with routed.caller.channel(host("metered")) as channel:
            found = first_refused(lambda: ask(channel, "metered", list(metadata.items())))
        assert (found.status, found.text) == (8, text)
