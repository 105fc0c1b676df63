"""NVIDIA's device plugin: the right configuration on the right nodes, and never where HAMi is."""

from functools import partial
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from components import versions
from components.gpu import device_plugin, hami, node_pool
from components.gpu.device_plugin import NvidiaDevicePlugin, NvidiaDevicePluginArgs
from components.rolling import CONFIG_HASH
from spec.gpu_software import PLUGIN_MODES
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec
from tests.components.conftest import Render
from tests.components.gpu_nodes import MODES, check, pool, rendered, selects, tolerates

ALL = [pool(mode) for mode in MODES]


def plugins(*pools: GpuPoolSpec) -> Render:
    return rendered(partial(NvidiaDevicePlugin, "plugin", NvidiaDevicePluginArgs(pools=pools)))


def daemon_pod(found: Render, name: str) -> dict[str, Any]:
    return found.one("DaemonSet", f"nvidia-device-plugin-{name}")["spec"]["template"]


def config(found: Render, name: str) -> dict[str, Any]:
    return yaml.safe_load(found.one("ConfigMap", f"nvidia-device-plugin-{name}")["data"]["config.yaml"])


@pytest.fixture(scope="module")
def estate() -> Render:
    return plugins(*ALL)


@pytest.mark.parametrize(("pin", "version"), [(":v1@", "v1"), ("@", "0" * 12)])
def test_a_digest_does_not_become_a_label(pin: str, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "DEVICE_PLUGIN_IMAGE", f"nvcr.io/nvidia/k8s-device-plugin{pin}sha256:{'0' * 64}")
    pod = daemon_pod(plugins(pool("whole")), "whole")
    assert pod["metadata"]["labels"]["app.kubernetes.io/version"] == version


class TestConfiguration:
    def test_whole_cards_need_none(self, estate: Render) -> None:
        assert config(estate, "whole") == {"version": "v1", "flags": {"migStrategy": "none"}}

    def test_a_slice_is_called_after_its_profile(self, estate: Render) -> None:
        assert config(estate, "mig") == {"version": "v1", "flags": {"migStrategy": "mixed"}}

    def test_a_share_of_a_card_is_called_so_and_asked_for_once(self, estate: Render) -> None:
        assert config(estate, "timeslicing")["sharing"]["timeSlicing"] == {
            "renameByDefault": True,
            "failRequestsGreaterThanOne": True,
            "resources": [{"name": "nvidia.com/gpu", "replicas": 4}],
        }

    @settings(max_examples=30, deadline=None)
    @given(st.integers(2, 64), st.integers(1, 16))
    def test_a_node_offers_what_the_pool_promises(self, slices: int, cards: int) -> None:
        sliced = pool("timeSlicing", slices=slices, gpusPerNode=cards)
        (resource,) = device_plugin.plugin_config(sliced)["sharing"]["timeSlicing"]["resources"]
        assert sliced.node_capacity() == {f"{resource['name']}.shared": str(cards * resource["replicas"])}

    def test_the_container_reads_it(self, estate: Render) -> None:
        for name in ("whole", "mig", "timeslicing"):
            spec = daemon_pod(estate, name)["spec"]
            (container,) = spec["containers"]
            file = {variable["name"]: variable["value"] for variable in container["env"]}["CONFIG_FILE"]
            (mount,) = [one for one in container["volumeMounts"] if file == f"{one['mountPath']}/config.yaml"]
            (volume,) = [one for one in spec["volumes"] if one["name"] == mount["name"]]
            assert volume["configMap"]["name"] == f"nvidia-device-plugin-{name}"

    def test_a_changed_one_replaces_the_pods_of_its_pool_only(self, estate: Render) -> None:
        changed = plugins(*(one if one.name != "timeslicing" else pool("timeSlicing", slices=5) for one in ALL))
        for name in ("whole", "mig", "timeslicing"):
            same = daemon_pod(changed, name) == daemon_pod(estate, name)
            assert same == (name != "timeslicing")
        before, after = (daemon_pod(found, "timeslicing")["metadata"] for found in (estate, changed))
        assert before["annotations"][CONFIG_HASH] != after["annotations"][CONFIG_HASH]

    def test_another_pool_leaves_those_that_are_there_alone(self, estate: Render) -> None:
        more = plugins(*ALL, pool("whole", "new"))
        assert daemon_pod(more, "whole") == daemon_pod(estate, "whole")


class TestNodes:
    def test_each_pool_of_its_modes_has_one_and_no_other_pool(self, estate: Render) -> None:
        found = {one["metadata"]["name"].removeprefix("nvidia-device-plugin-") for one in estate.objects("DaemonSet")}
        assert found == {one.name for one in ALL if one.sharing in PLUGIN_MODES} == {"whole", "mig", "timeslicing"}

    def test_it_runs_on_the_nodes_of_its_pool_only(self, estate: Render) -> None:
        for name in ("whole", "mig", "timeslicing"):
            chosen = [one.name for one in ALL if selects(daemon_pod(estate, name)["spec"], node_pool.node_labels(one))]
            assert chosen == [name]

    @pytest.mark.parametrize("taint", ["nvidia.com/gpu=present:NoSchedule", "dedicated=gpu:NoSchedule"])
    def test_it_tolerates_the_taint_of_its_pool(self, taint: str) -> None:
        tainted = pool("whole", taint=taint)
        spec = daemon_pod(plugins(tainted), "whole")["spec"]
        key, value, effect = tainted.taint_parts
        assert tolerates(spec, {"key": key, "value": value, "effect": effect})
        assert not tolerates(spec, {"key": "other", "value": value, "effect": effect})

    @settings(max_examples=15, deadline=None)
    @given(st.lists(st.sampled_from(list(MODES)), min_size=1, max_size=8))
    def test_no_node_ever_gets_both_plugins(self, modes: list[str]) -> None:
        pools = [pool(mode, f"pool-{index}") for index, mode in enumerate(modes)]
        ours = [one["spec"]["template"]["spec"] for one in plugins(*pools).objects("DaemonSet")]
        # Nodes that somebody else labelled may carry any of the two labels.
        others = [
            {"triton-estate.io/node-pool": one.name} | gpu
            for one in pools
            for gpu in ({}, {"gpu": "on"}, {"gpu": "off"})
        ]
        for node in ({"gpu": "on"}, *others, *(node_pool.node_labels(one) for one in pools)):
            assert not (any(selects(pod, node) for pod in ours) and selects(hami_pod(), node))
        hami_nodes = [one for one in pools if selects(hami_pod(), node_pool.node_labels(one))]
        assert [one.sharing for one in hami_nodes] == ["hami"] * modes.count("hami")


def hami_pod() -> dict[str, Any]:
    values = hami.chart_values([pool("hami")], "serving", MonitoringSpec())
    return {"nodeSelector": values["devicePlugin"]["nvidiaNodeSelector"]}


class TestPods:
    def test_the_version_is_pinned_and_stands_out(self, estate: Render) -> None:
        version = versions.DEVICE_PLUGIN_IMAGE.rpartition(":")[2]
        assert version not in {"", "latest"}
        for found in estate.objects("DaemonSet"):
            assert found["metadata"]["labels"]["app.kubernetes.io/version"] == version
            assert found["spec"]["template"]["spec"]["containers"][0]["image"].endswith(f":{version}")

    def test_no_version_is_in_a_selector(self, estate: Render) -> None:
        for found in estate.objects("DaemonSet"):
            assert set(found["spec"]["selector"]["matchLabels"]) == {
                "app.kubernetes.io/name",
                "app.kubernetes.io/instance",
            }

    def test_an_upgrade_goes_from_node_to_node(self, estate: Render) -> None:
        for found in estate.objects("DaemonSet"):
            assert found["spec"]["updateStrategy"] == {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1},
            }

    @pytest.mark.parametrize(("name", "added"), [("whole", None), ("timeslicing", None), ("mig", ["SYS_ADMIN"])])
    def test_only_slices_take_a_capability(self, name: str, added: list[str] | None, estate: Render) -> None:
        spec = daemon_pod(estate, name)["spec"]
        context = spec["containers"][0]["securityContext"]
        assert context["capabilities"].get("add") == added
        assert context["capabilities"]["drop"] == ["ALL"]
        assert "privileged" not in context
        assert "hostNetwork" not in spec

    def test_each_object_is_valid_and_in_the_namespace_for_gpu_software(self, estate: Render) -> None:
        assert len(estate.objects()) == 6
        for found in estate.objects():
            check(found)
            assert found["metadata"]["namespace"] == "gpu-system"

    def test_a_pool_of_the_longest_name_is_valid_too(self) -> None:
        for found in plugins(pool("whole", "p" * 59)).objects():
            check(found)
            assert all(len(value) <= 63 for value in found["metadata"]["labels"].values())

    def test_it_comes_after_its_configuration(self, estate: Render) -> None:
        request = estate.request("DaemonSet", "nvidia-device-plugin-whole")
        assert [urn.rpartition("::")[2] for urn in request.dependencies] == ["nvidia-device-plugin-whole"]
        assert "ConfigMap" in request.dependencies[0]
