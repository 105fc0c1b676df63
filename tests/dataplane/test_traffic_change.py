"""What callers notice of a promotion, and of a pod that dies."""

import time
from collections.abc import Callable

from tests.dataplane.chain import pods
from tests.dataplane.gateway_calls import Answer, load, many
from tests.dataplane.gateway_scene import MODELS, TOKENS, TWO, Scene, host, token, write
from tests.keys import public


class TestChange:
    def test_a_promotion_loses_nothing(self, routed: Scene, infer: Callable[..., Answer]) -> None:
        before, after = (
            ("v1", "v2") if routed.by_revision("promoted", [infer("promoted")]) == {"v1": 1} else ("v2", "v1")
        )
        promoted = TWO | {"traffic": {"split": {before: 0, after: 100}}}
        with load(lambda: infer("promoted")) as answers:
            time.sleep(1)
            write(routed.project, MODELS | {"promoted": promoted})
            done = routed.project.up().must_succeed()
            routed.gate.envoy.until(lambda: routed.by_revision("promoted", [infer("promoted")]) == {after: 1})
            time.sleep(1)
        assert {kind.partition(" ")[0] for kind in done.changes} <= {"VirtualService", "Service", "ConfigMap", "Stack"}
        assert set(routed.by_revision("promoted", answers)) == {before, after}
        assert routed.by_revision("promoted", many(60, lambda: infer("promoted"))) == {after: 60}

    def test_keys_come_and_go_without_an_outage(self, routed: Scene) -> None:
        def one(key: str) -> Answer:
            headers = {"authorization": f"Bearer {token('guarded', key=key)}"}
            return routed.caller.infer(host("guarded"), "guarded", headers=headers)

        assert one("k3").status == 401
        with load(lambda: one("k1"), threads=3) as answers:
            for names, status in (("k1", "k2", "k3"), 200), (("k1", "k2"), 401):
                keys = [{"id": name, "publicKey": public(name)} for name in names]
                routed.project.set(tokens=TOKENS | {"keys": keys})
                done = routed.project.up().must_succeed()
                assert [kind.partition(" ")[0] for kind in done.changes] == ["RequestAuthentication"]
                routed.gate.envoy.until(lambda wanted=status: one("k3").status == wanted)
        assert len(answers) > 100
        assert routed.by_revision("guarded", answers) == {"v1": len(answers)}

    def test_a_dying_pod_takes_what_it_was_at_and_no_more(self, routed: Scene, infer: Callable[..., Answer]) -> None:
        backends, found = routed.gate.backends, pods(routed.gate.world, routed.project.namespace, "wide-v1-")
        backends.behave(*(pod.address for pod in found), delay=0.1)
        victim = found[0]
        backends.take()
        with load(lambda: infer("wide")) as answers:
            time.sleep(2)
            backends.kill(victim.address)
            routed.gate.world.kubectl.run(
                "delete", "pod", victim.name, "--grace-period=0", "--force", f"--namespace={victim.namespace}"
            )
            time.sleep(2)
            # The next pod may get the same address.
            backends.revive(victim.address)
            time.sleep(2)
        lost = [one for one in answers if one.status not in {0, 200}]
        at_it = sum(number for (pod, _, _), number in backends.take().items() if pod == victim.address)
        answered = sum(one.pod == victim.address for one in answers)
        backends.behave(*(pod.address for pod in found))
        assert answered > 0
        assert len(lost) <= at_it - answered, lost
        assert len(answers) > 100
        routed.gate.envoy.until(lambda: len(routed.addresses("wide-v1")) == 4)
