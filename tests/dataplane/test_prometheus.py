"""What an autoscaler sees of each pod, from its exporter through a real Prometheus, against what it is by hand."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from spec.names import GPU_NAMESPACE
from spec.signals import GPU, PENDING, QPS, QUEUE_TIME, Signal, Windows
from tests.dataplane import chain as parts
from tests.dataplane import expositions, scene
from tests.dataplane.chain import ACCOUNT, TRITON, Chain, Pod
from tests.dataplane.exporters import Exporters
from tests.dataplane.scene import ELSEWHERE, FOREIGN_GPUS, Models
from tests.dataplane.world import World

STACK: Final = "chain"
WINDOW_SECONDS: Final = 10
WINDOWS: Final = Windows(gpu=f"{WINDOW_SECONDS}s", rate=f"{WINDOW_SECONDS}s")
# A scrape comes a little late or early.
NEARLY: Final = 0.05


@pytest.fixture(scope="module")
def chain(world: World, exporters: Exporters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chain]:
    """The estate, deployed; the operator, Prometheus and what answers for the pods, running."""
    project = world.project(STACK)
    scene.write(project)
    project.up().must_succeed()
    folder = tmp_path_factory.mktemp("prometheus")
    operator = parts.start_operator(world)
    prometheus, config = parts.start_prometheus(world, operator, folder)
    yield Chain(world, project, exporters, prometheus, config)
    prometheus.end()
    operator.end()
    project.pulumi("destroy", "--yes", "--skip-preview").must_succeed()


@pytest.fixture(scope="module")
def twin(chain: Chain) -> Pod:
    """A pod of somebody else with the name of one of ours, in another namespace; it is scraped by annotation."""
    return parts.deploy_annotated(chain.world, ELSEWHERE, scene.pods_of(chain)["steady"][0].name, TRITON, {})


@pytest.fixture(scope="module")
def models(chain: Chain, twin: Pod, template: str) -> Models:
    """The pods of each model, their exporters at work for long enough that each range is full."""
    found = scene.pods_of(chain)
    scene.say_triton(chain, template, found, twin)
    scene.say_gpus(chain, found, twin)
    parts.until_scraped(chain, WINDOW_SECONDS + 3)
    return found


def seen(chain: Chain, signal: Signal, pods: list[Pod]) -> list[float | None]:
    """What an adapter answers about each of these pods of one namespace; None for no value."""
    wanted = "|".join(pod.name for pod in pods)
    matchers = [f'{signal.namespace_label}="{pods[0].namespace}"', f'{signal.pod_label}=~"{wanted}"']
    found = chain.values(signal.query(matchers, [signal.pod_label], WINDOWS), signal.pod_label)
    assert found.keys() <= {pod.name for pod in pods}
    return [found.get(pod.name) for pod in pods]


def nearly(*values: float | None) -> object:
    return [value if value is None else pytest.approx(value, rel=NEARLY, abs=1e-9) for value in values]


class TestRequests:
    @pytest.mark.parametrize(
        ("which", "qps"),
        [("steady", (2, 0)), ("pair", (1, 1.5)), ("rare", (0.1,)), ("restarted", (2,)), ("gone", (0,))],
    )
    def test_requests_of_a_pod_are_those_of_all_its_models(
        self, which: str, qps: tuple[float, ...], chain: Chain, models: Models
    ) -> None:
        assert seen(chain, QPS, models[which]) == nearly(*qps)

    @pytest.mark.parametrize(
        ("which", "milliseconds"),
        [
            # Two requests a second that wait 5 ms each wait 5 ms, not the 10 ms of waiting in each second.
            ("steady", (5, 0)),
            # An idle model beside it takes nothing from the mean; of two busy ones each counts by its requests.
            ("pair", (1, 1.5)),
            # One request in ten seconds counts as what it is.
            ("rare", (50,)),
        ],
    )
    def test_queue_time_is_that_of_a_request(
        self, which: str, milliseconds: tuple[float, ...], chain: Chain, models: Models
    ) -> None:
        assert seen(chain, QUEUE_TIME, models[which]) == nearly(*milliseconds)

    def test_what_waits_is_counted_as_it_is(self, chain: Chain, models: Models) -> None:
        assert seen(chain, PENDING, models["steady"]) == [3, 0]
        assert seen(chain, PENDING, models["pair"]) == [3, 0]

    def test_a_pod_of_that_name_in_another_namespace_is_another(self, chain: Chain, models: Models, twin: Pod) -> None:
        busy = models["steady"][0]
        assert twin.name == busy.name
        assert seen(chain, QPS, [twin]) == nearly(7)
        assert seen(chain, QPS, [busy]) == nearly(2)

    def test_a_model_cannot_speak_for_another_pod(self, chain: Chain, models: Models) -> None:
        assert seen(chain, QPS, models["liar"]) == nearly(1, 50)

    def test_a_restart_is_no_drop(self, chain: Chain, models: Models, template: str) -> None:
        (pod,) = models["restarted"]
        again = expositions.load(2, queue_us=5_000, start=0)
        chain.exporters.say(TRITON, pod.address, expositions.triton(template, {"restarted": again}))
        for _ in range(WINDOW_SECONDS):
            time.sleep(1)
            # Lost is what came between the last scrape and the restart.
            assert 1.5 < (seen(chain, QPS, [pod])[0] or 0) < 2.2
            assert seen(chain, QUEUE_TIME, [pod]) == nearly(5)

    def test_a_pod_that_says_nothing_has_no_value(self, chain: Chain, models: Models) -> None:
        (pod,) = models["gone"]
        chain.exporters.silence(TRITON, pod.address)
        time.sleep(WINDOW_SECONDS + 2)
        assert seen(chain, QPS, [pod]) == [None]
        assert seen(chain, QUEUE_TIME, [pod]) == [None]


class TestGpus:
    def test_percent_of_a_whole_card_is_a_ratio_of_the_pod_that_holds_it(self, chain: Chain, models: Models) -> None:
        assert seen(chain, GPU["whole"], models["whole"]) == nearly(0.8, 0)

    def test_several_cards_are_averaged(self, chain: Chain, models: Models) -> None:
        assert seen(chain, GPU["whole"], models["double"]) == nearly(0.6)

    def test_a_slice_is_a_ratio_already(self, chain: Chain, models: Models) -> None:
        assert seen(chain, GPU["mig"], models["slice"]) == nearly(0.714)

    def test_a_share_is_what_its_own_monitor_says(self, chain: Chain, models: Models) -> None:
        signal = GPU["hami"]
        assert signal.older
        assert seen(chain, signal, models["share"]) == nearly(0.35, 0.05)
        assert seen(chain, signal.older, models["share"]) == nearly(0.6, 0.1)
        assert seen(chain, GPU["whole"], models["share"]) == [None, None]

    @pytest.mark.usefixtures("models")
    def test_no_exporter_passes_for_a_pod_that_uses_a_gpu(self, chain: Chain, twin: Pod) -> None:
        # Both ways of scraping: through a ServiceMonitor and by annotation.
        for namespace in (GPU_NAMESPACE, FOREIGN_GPUS):
            exporters = chain.pods(namespace)
            assert exporters
            for signal in GPU.values():
                assert seen(chain, signal, exporters) == [None] * len(exporters)
        assert seen(chain, GPU["whole"], [twin]) == nearly(0.6)

    @pytest.mark.usefixtures("models")
    def test_a_card_that_nobody_holds_counts_for_nobody(self, chain: Chain, twin: Pod) -> None:
        query = GPU["whole"].query([], ["pod"], WINDOWS)
        known = {*chain.pods(chain.project.namespace), twin}
        assert chain.values(query, "pod").keys() <= {pod.name for pod in known}


class TestScraping:
    def test_every_pod_is_scraped_once(self, chain: Chain, models: Models) -> None:
        targets = [(one["labels"].get("namespace"), one["labels"].get("pod")) for one in chain.targets()]
        for pods in models.values():
            assert [targets.count((pod.namespace, pod.name)) for pod in pods] == [1] * len(pods)

    def test_the_configuration_is_what_prometheus_takes(self, chain: Chain) -> None:
        said = chain.world.run(chain.world.tools.promtool, "check", "config", chain.config, account=ACCOUNT)
        assert "SUCCESS" in said

    def test_every_rule_is_evaluated(self, chain: Chain, models: Models) -> None:
        groups = chain.ask("rules")["groups"]
        rules = chain.world.kubectl.get("prometheusrules", "--all-namespaces")["items"]
        assert len(groups) == sum(len(one["spec"]["groups"]) for one in rules) >= len(models)
        problems = {one["name"]: one["lastError"] for group in groups for one in group["rules"] if one.get("lastError")}
        assert problems == {}
        assert {one["health"] for group in groups for one in group["rules"]} == {"ok"}


def test_the_operator_made_what_a_reader_of_the_outputs_finds(chain: Chain) -> None:
    """The Service of Prometheus leads to the pod that the operator made."""
    (pod,) = chain.pods("monitoring", "prometheus-prometheus-")
    slices = chain.world.kubectl.get("endpointslices", "--namespace=monitoring")["items"]
    addresses = [one["addresses"] for found in slices for one in found["endpoints"] or []]
    assert [pod.address] in addresses
    status, text = chain.world.fetch(f"http://{pod.address}:9090/api/v1/status/flags")
    assert status == 200
    assert json.loads(text)["data"]["storage.tsdb.retention.time"] == "15d"


def test_its_log_has_no_error(chain: Chain, models: Models) -> None:
    assert models
    lines = Path(chain.prometheus.log).read_text().splitlines()
    assert [line for line in lines if "level=ERROR" in line] == []
