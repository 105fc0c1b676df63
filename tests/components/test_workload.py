"""The Deployment: who owns its replicas, how it rolls out, what it selects and how long it is waited for."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import POOLS, PROD_MODELS, TENSORS, Render

Renderer = Callable[..., Render]
CONFIG = f"config: {{backend: python, max_batch_size: 4, {TENSORS}}}\n"
HASH = "triton-estate.io/config-sha256"


def template(render: Renderer, more: str, **settings: object) -> dict[str, Any]:
    return render({"m": more}, **settings).one("Deployment")["spec"]["template"]


def config_hash(render: Renderer, more: str) -> str:
    return template(render, more)["metadata"]["annotations"][HASH]


class TestReplicas:
    @pytest.mark.parametrize("name", [name for name in PROD_MODELS if name != "fixed"])
    def test_they_are_never_sent_where_an_autoscaler_owns_them(self, name: str, prod: Render) -> None:
        assert "replicas" not in prod.one("Deployment", f"{name}-v1")["spec"]

    def test_a_fixed_number_is_sent(self, prod: Render) -> None:
        assert prod.one("Deployment", "fixed-v1")["spec"]["replicas"] == 2

    def test_a_new_image_changes_the_image_only(self, render: Renderer) -> None:
        before, after = (
            json.dumps(sorted(render({"m": f"image: triton:{tag}\n"}).resources.items()), sort_keys=True)
            for tag in "12"
        )
        assert before != after
        assert before.replace("triton:1", "triton:2") == after


class TestStrategy:
    @pytest.mark.parametrize("name", ["whole", "mig", "sliced", "hami", "qgpu"])
    def test_a_gpu_model_never_waits_for_the_gpu_of_the_pod_it_replaces(self, name: str, prod: Render) -> None:
        strategy = prod.one("Deployment", f"{name}-v1")["spec"]["strategy"]
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}

    def test_a_cpu_model_keeps_its_full_capacity(self, prod: Render) -> None:
        strategy = prod.one("Deployment", "five-lines-v1")["spec"]["strategy"]
        assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


class TestSpareCards:
    """A replacement may start first only where the pool keeps the cards for it free."""

    @pytest.mark.parametrize(
        ("pool", "gpu", "spare", "first"),
        [
            ("whole", "1", 0, False),
            ("whole", "1", 1, True),
            ("whole", "2", 1, False),
            ("whole", "2", 2, True),
            ("whole", "4", 3, False),
            ("mig", "{mig: 1g.10gb}", 0, False),
            ("mig", "{mig: 1g.10gb}", 1, True),
            ("sliced", "0.25", 1, True),
            ("mig", "{mig: 1g.10gb, count: 8}", 1, False),
            ("mig", "{mig: 1g.10gb, count: 8}", 2, True),
            ("hami", "{memory: 8Gi, cores: 50, count: 2}", 1, False),
            ("hami", "{memory: 8Gi, cores: 50, count: 2}", 2, True),
            ("hami", "0.5", 1, True),
            ("qgpu", "0.5", 0, False),
        ],
    )
    def test_a_new_replica_starts_first_where_its_cards_are_spare(
        self, pool: str, gpu: str, spare: int, first: bool, render: Renderer
    ) -> None:
        (found,) = [found for found in POOLS if found["name"] == pool]
        more = f"resources: {{cpu: 1, memory: 2Gi, gpu: {gpu}}}\n"
        spec = render({"m": more}, gpuPools=[found | {"spareGpus": spare}]).one("Deployment")["spec"]
        surge, unavailable = (1, 0) if first else (0, 1)
        assert spec["strategy"]["rollingUpdate"] == {"maxSurge": surge, "maxUnavailable": unavailable}

    def test_another_pools_cards_do_not_help(self, render: Renderer) -> None:
        more = "resources: {cpu: 1, memory: 2Gi, gpu: 1}\npool: whole\n"
        other = POOLS[0] | {"name": "other", "spareGpus": 3}
        strategy = render({"m": more}, gpuPools=[other, POOLS[0]]).one("Deployment")["spec"]["strategy"]
        assert strategy["rollingUpdate"]["maxSurge"] == 0


class TestSelector:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_it_is_a_subset_of_the_labels_of_the_pods(self, name: str, prod: Render) -> None:
        spec = prod.one("Deployment", f"{name}-v1")["spec"]
        assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()

    def test_it_holds_only_what_never_changes(self, prod: Render) -> None:
        assert prod.one("Deployment", "python-v1")["spec"]["selector"]["matchLabels"] == {
            "app.kubernetes.io/name": "triton",
            "app.kubernetes.io/instance": "python",
            "app.kubernetes.io/version": "v1",
        }

    @pytest.mark.parametrize(
        "more", ["image: triton:9\n", CONFIG, "owner: search\n", "server: {log-verbose: 1}\n", "scaling: {max: 7}\n"]
    )
    def test_no_change_of_the_model_changes_it(self, more: str, render: Renderer) -> None:
        plain, changed = (render({"m": text}).one("Deployment")["spec"]["selector"] for text in ("", more))
        assert plain == changed

    def test_no_two_models_select_the_same_pods(self, prod: Render) -> None:
        selectors = [found["spec"]["selector"]["matchLabels"] for found in prod.objects("Deployment")]
        pods = [found["spec"]["template"]["metadata"]["labels"] for found in prod.objects("Deployment")]
        for selector in selectors:
            assert sum(selector.items() <= pod.items() for pod in pods) == 1


class TestConfigHash:
    def test_a_changed_configuration_rolls_the_pods(self, render: Renderer) -> None:
        assert config_hash(render, CONFIG) != config_hash(render, CONFIG.replace("dims: [3]", "dims: [4]"))

    def test_a_changed_member_rolls_the_pods(self, render: Renderer) -> None:
        member = f"members: {{other: {{config: {{backend: python, max_batch_size: 4, {TENSORS}}}}}}}\n"
        assert config_hash(render, CONFIG + member) != config_hash(
            render, CONFIG + member.replace("max_batch_size: 4", "max_batch_size: 8")
        )

    def test_a_configuration_in_another_order_rolls_nothing(self, render: Renderer) -> None:
        other = f"config: {{max_batch_size: 4, {TENSORS}, backend: python}}\n"
        assert template(render, CONFIG) == template(render, other)

    @pytest.mark.parametrize(
        "more",
        ["image: triton:9\n", "server: {log-verbose: 1}\n", "scaling: {max: 7}\n", "loadTime: 600s\n",
         "resources: {cpu: 2, memory: 4Gi}\n", "repository: gs://acme/m\n"],
    )  # fmt: skip
    def test_nothing_else_changes_it(self, more: str, render: Renderer) -> None:
        assert config_hash(render, CONFIG) == config_hash(render, CONFIG + more)

    @pytest.mark.parametrize("scaling", ["{max: 7}", "{max: 5, cpu: 30}", "{max: 5, qps: 100}"])
    def test_other_scaling_rolls_no_pod(self, scaling: str, render: Renderer) -> None:
        assert template(render, CONFIG) == template(render, CONFIG + f"scaling: {scaling}\n")


class TestPatience:
    @pytest.mark.parametrize(("load", "seconds"), [("720s", 720), ("12m", 720), ("1500ms", 2), ("2h", 7200)])
    def test_creation_is_waited_for_longer_than_boot_and_load(self, load: str, seconds: int, render: Renderer) -> None:
        found = render({"m": f"loadTime: {load}\n"})
        timeout = int(found.request("Deployment", "m-v1").customTimeouts.create.removesuffix("s"))
        assert timeout >= seconds + 300
        assert found.one("Deployment")["spec"]["progressDeadlineSeconds"] >= seconds + 300

    def test_an_update_is_waited_for_until_the_last_replica_has_loaded(self, render: Renderer) -> None:
        found = render({"m": "loadTime: 720s\nscaling: {max: 6}\n"})
        timeout = int(found.request("Deployment", "m-v1").customTimeouts.update.removesuffix("s"))
        assert timeout >= 6 * 720 + 300


class TestNodes:
    @pytest.mark.parametrize("name", ["whole", "mig", "sliced", "hami", "qgpu"])
    def test_a_gpu_model_goes_to_its_pool_and_to_no_other(self, name: str, prod: Render) -> None:
        assert prod.pod(f"{name}-v1")["nodeSelector"] == {"triton-estate.io/node-pool": name}

    @pytest.mark.parametrize("name", ["whole", "mig", "sliced", "hami"])
    def test_its_selector_and_toleration_fit_the_nodes(self, name: str, prod: Render) -> None:
        pod, nodes = prod.pod(f"{name}-v1"), prod.objects("Node")
        chosen = [node for node in nodes if pod["nodeSelector"].items() <= node["metadata"]["labels"].items()]
        assert {node["metadata"]["name"].rpartition("-")[0] for node in chosen} == {name}
        for node in chosen:
            for taint in node["spec"]["taints"]:
                assert {"operator": "Equal"} | taint in pod["tolerations"]

    @pytest.mark.parametrize("name", ["whole", "mig", "sliced", "hami"])
    def test_a_node_of_the_pool_can_hold_it(self, name: str, prod: Render) -> None:
        capacity = prod.one("Node", f"{name}-0")["status"]["allocatable"]
        limits = prod.triton(f"{name}-v1")["resources"]["limits"]
        gpus = {resource: count for resource, count in limits.items() if resource != "memory"}
        assert gpus
        assert all(int(count) <= int(capacity[resource]) for resource, count in gpus.items())

    def test_a_cpu_model_stays_off_gpu_nodes(self, prod: Render) -> None:
        assert prod.pod("five-lines-v1").keys().isdisjoint({"nodeSelector", "tolerations"})

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_replicas_spread_over_zones_and_over_nodes_by_their_own_selector(self, name: str, prod: Render) -> None:
        zones, nodes = prod.pod(f"{name}-v1")["topologySpreadConstraints"]
        assert (zones["topologyKey"], nodes["topologyKey"]) == ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        selector = prod.one("Deployment", f"{name}-v1")["spec"]["selector"]
        assert zones["labelSelector"] == nodes["labelSelector"] == selector

    def test_a_replica_that_cannot_be_spread_runs_all_the_same(self, prod: Render) -> None:
        for spread in prod.pod("whole-v1")["topologySpreadConstraints"]:
            assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "ScheduleAnyway")

    def test_a_cpu_model_may_ask_for_nodes_of_its_own(self, render: Renderer) -> None:
        pod = render({"m": "nodeSelector: {topology.kubernetes.io/zone: eu-1, disk: ssd}\n"}).pod()
        assert pod["nodeSelector"] == {"topology.kubernetes.io/zone": "eu-1", "disk": "ssd"}

    def test_further_labels_stand_beside_that_of_the_pool(self, render: Renderer) -> None:
        more = "resources: {cpu: 1, memory: 2Gi, gpu: 1}\nnodeSelector: {zone: a}\n"
        pod = render({"m": more}, gpuPools=POOLS[:1]).pod()
        assert pod["nodeSelector"] == {"triton-estate.io/node-pool": "whole", "zone": "a"}

    def test_a_priority_class_reaches_the_pod(self, render: Renderer) -> None:
        assert render({"m": "priority: high\n"}).pod()["priorityClassName"] == "high"

    def test_without_one_the_cluster_decides(self, prod: Render) -> None:
        assert "priorityClassName" not in prod.pod("five-lines-v1")

    def test_the_pool_that_is_named_is_the_pool_that_is_used(self, render: Renderer) -> None:
        more = "resources: {cpu: 1, memory: 2Gi, gpu: 1}\npool: hami\n"
        pod = render({"m": more}, gpuPools=[POOLS[0], POOLS[3]]).pod()
        assert pod["nodeSelector"] == {"triton-estate.io/node-pool": "hami"}
