"""A stack whose models KEDA scales: deployed, measured and asked for by real parts."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.dataplane import chain as parts
from tests.dataplane import expositions
from tests.dataplane import keda as scaling
from tests.dataplane.chain import MONITORING, TRITON, Chain, Pod
from tests.dataplane.exporters import Exporters, growing
from tests.dataplane.keda import Keda
from tests.dataplane.world import World
from tests.engine.project import Outcome, Project

_PROMETHEUS: Final = "prometheus.monitoring.svc"
_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"


@dataclass
class Traffic:
    """Requests to the pods of a model's revision: counters that only grow, however often their speed changes."""

    world: World
    exporters: Exporters
    template: str
    namespace: str
    model: str
    _counts: dict[Pod, tuple[float, float, float]] = field(default_factory=dict)

    @property
    def pods(self) -> list[Pod]:
        return parts.pods(self.world, self.namespace, f"{self.model}-v1-")

    def set(self, *per_second: float) -> float:
        """So many requests a second to each of some pods, which stay where others go, and none to these.

        Returns:
            the time from which on they come.
        """
        pods = sorted(self.pods, key=lambda pod: (pod not in self._counts, pod.name))
        assert len(pods) >= len(per_second)
        speeds = dict(zip(pods, per_second, strict=False))
        for pod in pods:
            cost = f"{_DELETION_COST}={1 if pod in speeds else 0}"
            self.world.kubectl.run("annotate", "--overwrite", f"--namespace={self.namespace}", "pod", pod.name, cost)
        now = time.time()
        for pod in pods:
            self._say(pod, speeds.get(pod, 0), now)
        return now

    def greet(self) -> None:
        """Pods that have come since answer, too."""
        for pod in self.pods:
            if pod not in self._counts:
                self._say(pod, 0, time.time())

    def end(self) -> None:
        """No pod answers any more."""
        for pod in self._counts:
            self.exporters.silence(TRITON, pod.address)
        self._counts.clear()

    def _say(self, pod: Pod, speed: float, now: float) -> None:
        count, before, since = self._counts.get(pod, (1_000, 0, now))
        count += before * (now - since)
        self._counts[pod] = (count, speed, now)
        values = {"nv_inference_request_success": growing(count, speed, now)}
        self.exporters.say(TRITON, pod.address, expositions.triton(self.template, {self.model: values}))


@dataclass(frozen=True)
class Scaled:
    """A Deployment with its autoscaler, and the requests to it."""

    keda: Keda
    traffic: Traffic

    @property
    def name(self) -> str:
        return f"{self.traffic.model}-v1"

    def get(self, kind: str) -> Any:
        return self.keda.world.kubectl.get(kind, self.name, f"--namespace={self.traffic.namespace}")

    @property
    def replicas(self) -> int:
        """How many there shall be."""
        return self.get("deployment")["spec"]["replicas"]

    @property
    def hpa(self) -> Any:
        return self.get("hpa")

    @property
    def owners(self) -> list[str]:
        """Whose the HPA is."""
        return [one["kind"] for one in self.hpa["metadata"].get("ownerReferences", [])]

    @property
    def measured(self) -> float | None:
        """What the HPA has read last, for each replica."""
        (metric,) = self.hpa["status"].get("currentMetrics") or [{}]
        value = metric.get("external", {}).get("current", {}).get("averageValue")
        return None if value is None else float(value.removesuffix("m")) / (1000 if value.endswith("m") else 1)

    @property
    def conditions(self) -> dict[str, str]:
        """Of the ScaledObject."""
        found = self.get("scaledobject").get("status", {}).get("conditions", [])
        return {one["type"]: one["status"] for one in found}

    def until(self, reached: Callable[[], object], seconds: float = 60) -> None:
        """Wait for something that KEDA brings about, while every pod answers."""

        def look() -> object:
            self.traffic.greet()
            return reached()

        try:
            self.keda.operator.until(look, seconds)
        except AssertionError as error:
            kubectl, namespace = self.keda.world.kubectl, f"--namespace={self.traffic.namespace}"
            error.add_note(kubectl.run("describe", namespace, f"hpa/{self.name}"))
            raise

    def until_replicas(self, number: int, seconds: float = 60) -> None:
        """Wait until the HPA wants so many and the Deployment has as many pods."""
        self.until(lambda: number == self.replicas == self.hpa["status"]["desiredReplicas"], seconds)
        self.until(lambda: len(self.traffic.pods) == number, seconds)


@dataclass(frozen=True)
class Scene:
    """The stack, its Prometheus and KEDA."""

    chain: Chain
    keda: Keda
    template: str

    @property
    def project(self) -> Project:
        return self.chain.project

    def model(self, name: str) -> Scaled:
        chain = self.chain
        return Scaled(self.keda, Traffic(chain.world, chain.exporters, self.template, chain.project.namespace, name))

    def up(self, scaled: Scaled) -> tuple[Outcome, set[int]]:
        """Run ``pulumi up``; also each number of replicas that a model had meanwhile."""
        seen = {scaled.replicas}
        with ThreadPoolExecutor(1) as thread:
            future = thread.submit(self.project.up)
            while not future.done():
                seen.add(scaled.replicas)
                time.sleep(0.2)
        return future.result().must_succeed(), seen | {scaled.replicas}


def write(project: Project, models: Mapping[str, Mapping[str, object]]) -> None:
    """Replace the models of a copy of the project by these, given by what scales them and all else by name."""
    for file in (project.folder / "models").iterdir():
        file.unlink()
    for name, more in models.items():
        content = {"name": name, "owner": "tests", "repository": f"s3://acme/{name}", **more}
        content = {"resources": {"cpu": 1, "memory": "1Gi"}} | content
        (project.folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(content))


def stand_up(
    world: World, folder: Path, template: str, models: Mapping[str, Mapping[str, object]], scrape: str, window: str
) -> Scene:
    """Deploy a stack, and start its Prometheus, KEDA and what answers for the pods.

    Args:
        world: where.
        folder: an empty one.
        template: what a server says about itself.
        models: as :func:`write` takes them.
        scrape: time between two scrapes.
        window: over which requests are averaged.
    """
    project = world.project("keda")
    write(project, models)
    project.set(
        models={},
        gpuPools=[],
        gpuSoftware={},
        autoscaler={"backend": "keda", "rateWindow": window},
        monitoring={"prometheus": {"provider": "managed"}, "scrapeInterval": scrape},
    )
    world.kubectl.run("apply", "--server-side", f"--filename={world.tools.keda_crds}")
    project.up().must_succeed()
    (prometheus_folder, keda_folder) = (folder / name for name in ("prometheus", "keda"))
    prometheus_folder.mkdir()
    keda_folder.mkdir()
    exporters = parts.start_exporters(world, prometheus_folder / "pods")
    prometheus, config = parts.start_prometheus(world, parts.start_operator(world), prometheus_folder)
    # KEDA asks the address that the stack computes.
    (pod,) = parts.pods(world, MONITORING, "prometheus-prometheus-")
    keda = scaling.start(world, keda_folder, {_PROMETHEUS: pod.address})
    return Scene(Chain(world, project, exporters, prometheus, config), keda, template)
