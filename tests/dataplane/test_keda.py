"""KEDA's own operator and metrics adapter, and a real autoscaler, scaling real Deployments on what our triggers say."""

import datetime as dt
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest

from components.monitoring import adapter_rules
from local.toolchain import ToolchainForTests
from spec.signals import QPS, Windows
from tests.dataplane import scaled
from tests.dataplane.scaled import Scaled, Scene
from tests.dataplane.world import made

WINDOW_SECONDS: Final = 4
DOWN_SECONDS: Final = 10
# A mean over a few scrapes, of which one comes a little late or early.
NEARLY: Final = 0.1
STEADY: Final[dict[str, Any]] = {"min": 1, "max": 4, "qps": 10, "scaleDownStabilization": f"{DOWN_SECONDS}s"}


def schedule(start: int, end: int, replicas: int) -> list[dict[str, object]]:
    """Every day from and to the beginning of an hour, counted from the present one."""
    hour = dt.datetime.now(dt.UTC).hour
    at = [f"0 {(hour + one) % 24} * * *" for one in (start, end)]
    return [{"from": at[0], "to": at[1], "replicas": replicas}]


def night(start: int) -> dict[str, object]:
    return {"scaling": {"min": 0, "max": 2, "qps": 10, "schedule": schedule(start, start + 8, 1)}}


@pytest.fixture(scope="module")
def scene(
    template: str, tmp_path_factory: pytest.TempPathFactory, tools_for_tests: ToolchainForTests
) -> Iterator[Scene]:
    """A world of its own: KEDA scales whatever there is, and the ports are those of the pods."""
    with made(tmp_path_factory.mktemp("keda-world"), tools_for_tests) as world:
        models = {"steady": {"scaling": STEADY}}
        folder = tmp_path_factory.mktemp("keda")
        yield scaled.stand_up(world, folder, template, models, "1s", f"{WINDOW_SECONDS}s")


@pytest.fixture(scope="module")
def steady(scene: Scene) -> Scaled:
    """One replica with 2 requests a second, where each may have 10."""
    found = scene.model("steady")
    found.traffic.set(2)
    found.until(lambda: found.measured == pytest.approx(2, rel=NEARLY))
    return found


def resume(steady: Scaled) -> None:
    """Three replicas for 25 requests a second, after a time in which nothing was known.

    They come with more, of which a rate knows a part only until its range is full.
    """
    steady.traffic.set(35, 35)
    steady.until_replicas(4)
    steady.traffic.set(12, 13)
    steady.until_replicas(3)
    steady.until(lambda: steady.measured == pytest.approx(25 / 3, rel=NEARLY))


class TestRequests:
    def test_the_hpa_is_kedas_and_bears_the_name_of_the_workload(self, steady: Scaled) -> None:
        hpa = steady.hpa
        assert steady.owners == ["ScaledObject"]
        assert hpa["metadata"]["name"] == hpa["spec"]["scaleTargetRef"]["name"] == "steady-v1"
        assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"]) == (1, 4)
        assert steady.conditions["Ready"] == "True"
        assert steady.replicas == hpa["status"]["desiredReplicas"] == 1

    def test_more_requests_bring_replicas(self, steady: Scaled) -> None:
        # 35 a second, of which each replica takes 10: 3.5, so 4 with 8.75 each.
        steady.traffic.set(35)
        steady.until_replicas(4)
        steady.until(lambda: steady.measured == pytest.approx(8.75, rel=NEARLY))
        assert steady.replicas == 4

    def test_fewer_requests_take_them(self, steady: Scaled) -> None:
        # Of several pods together 12 + 13 = 25 a second: 2.5, so 3 with 8.33 each.
        steady.traffic.set(12, 13)
        began = time.monotonic()
        steady.until_replicas(3)
        assert time.monotonic() - began > DOWN_SECONDS
        steady.until(lambda: steady.measured == pytest.approx(25 / 3, rel=NEARLY))
        assert steady.replicas == 3

    def test_an_adapter_would_say_the_same(self, scene: Scene, steady: Scaled) -> None:
        windows = Windows(gpu="5m", rate=f"{WINDOW_SECONDS}s")
        (rule,) = [one for one in adapter_rules.rules(windows) if one.name.as_ == QPS.metric]
        pods = "|".join(pod.name for pod in steady.traffic.pods)
        asked = f'namespace="{scene.project.namespace}",pod=~"{pods}",model="steady"'
        query = rule.metrics_query.replace("<<.LabelMatchers>>", asked).replace("<<.GroupBy>>", "pod")
        assert sorted(scene.chain.values(query, "pod").values()) == pytest.approx([0, 12, 13], rel=NEARLY)
        (trigger,) = steady.get("scaledobject")["spec"]["triggers"]
        together = scene.chain.values(trigger["metadata"]["query"], "")
        assert list(together.values()) == pytest.approx([25], rel=NEARLY)

    def test_a_pod_that_says_nothing_takes_no_replica(self, steady: Scaled) -> None:
        steady.traffic.end()
        time.sleep(WINDOW_SECONDS + DOWN_SECONDS + 5)
        conditions = {one["type"]: one["status"] for one in steady.hpa["status"]["conditions"]}
        assert conditions["ScalingActive"] == "False"
        assert steady.replicas == 3
        resume(steady)


class TestUp:
    def test_nothing_changes_where_nothing_has_changed(self, scene: Scene, steady: Scaled) -> None:
        done, replicas = scene.up(steady)
        assert done.changes == {}
        assert replicas == {3}

    def test_a_changed_pod_leaves_the_number_to_the_autoscaler(self, scene: Scene, steady: Scaled) -> None:
        memory = {"resources": {"cpu": 1, "memory": "1100Mi"}}
        scaled.write(scene.project, {"steady": {"scaling": STEADY, **memory}})
        done, replicas = scene.up(steady)
        assert done.changes == {"Deployment steady-v1": "update"}
        assert replicas == {3}
        resume(steady)


class TestBackend:
    """Keda, adapter and keda again, with a replica for each third of the requests all the time."""

    def test_keda_gives_the_workload_back(self, scene: Scene, steady: Scaled) -> None:
        scene.project.set(autoscaler={"backend": "adapter"})
        done, replicas = scene.up(steady)
        assert done.changes["ScaledObject steady-v1"] == "delete-replaced"
        assert done.changes["HorizontalPodAutoscaler steady-v1"] == "create-replacement"
        assert replicas == {3}

    def test_the_hpa_outlives_the_scaled_object(self, scene: Scene, steady: Scaled) -> None:
        before = steady.hpa["metadata"]["uid"]
        time.sleep(5)
        assert steady.hpa["metadata"]["uid"] == before
        assert steady.owners == []
        assert [one["type"] for one in steady.hpa["spec"]["metrics"]] == ["Pods"]
        assert scene.up(steady)[0].changes == {}

    def test_keda_takes_it_over_again(self, scene: Scene, steady: Scaled) -> None:
        scene.project.set(autoscaler={"backend": "keda", "rateWindow": f"{WINDOW_SECONDS}s"})
        done, replicas = scene.up(steady)
        assert done.changes["HorizontalPodAutoscaler steady-v1"] == "delete-replaced"
        assert done.changes["ScaledObject steady-v1"] == "create-replacement"
        assert replicas == {3}
        steady.until(lambda: steady.get("scaledobject").get("status", {}).get("hpaName") == "steady-v1")
        assert steady.owners == ["ScaledObject"]
        assert scene.up(steady)[0].changes == {}

    def test_and_scales_it(self, steady: Scaled) -> None:
        steady.traffic.set(35)
        steady.until_replicas(4)


@pytest.fixture(scope="module")
def scheduled(scene: Scene, steady: Scaled) -> dict[str, Scaled]:
    """Other models: one in the time of its schedule, one out of it."""
    day = {"min": 1, "max": 4, "qps": 100, "schedule": schedule(-1, 7, 3)}
    scaled.write(scene.project, {"day": {"scaling": day}, "night": night(7)})
    scene.project.up().must_succeed()
    assert steady.traffic.pods == []
    return {name: scene.model(name) for name in ("day", "night")}


class TestSchedule:
    def test_its_time_has_more_replicas(self, scheduled: dict[str, Scaled]) -> None:
        day = scheduled["day"]
        day.until_replicas(3)
        # Ready is also who has an answer from Prometheus.
        day.until(lambda: day.conditions["Ready"] == "True")

    def test_outside_of_it_there_is_none(self, scheduled: dict[str, Scaled]) -> None:
        found = scheduled["night"]
        found.until(lambda: found.replicas == 0 and not found.traffic.pods)
        assert found.conditions["Ready"] == "True"

    def test_its_begin_wakes_the_model_up(self, scene: Scene, scheduled: dict[str, Scaled]) -> None:
        scaled.write(scene.project, {"day": {"scaling": {"min": 1, "max": 4, "qps": 100}}, "night": night(-1)})
        scene.project.up().must_succeed()
        found = scheduled["night"]
        found.until_replicas(1)
        found.until(lambda: found.conditions["Active"] == "True")
        done, replicas = scene.up(found)
        assert done.changes == {}
        assert replicas == {1}
