"""A GPU pool on EKS: node group and autoscaler tags say the same about a node, from one declaration."""

import subprocess
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from components.gpu import eks_nodes, node_pool
from components.gpu.node_pool import GpuNodePool, GpuNodePoolArgs
from spec.pool import GpuPoolSpec
from tests.components.conftest import Render
from tests.components.gpu_nodes import CARDS, MODES, rendered

GROUP: dict[str, Any] = {
    "cluster": "serving-prod",
    "nodeRoleArn": "arn:aws:iam::123456789012:role/gpu-nodes",
    "subnets": ["subnet-0a1b2c3d4e5f67890", "subnet-1a1b2c3d4e5f67890"],
    "instanceType": "g6.24xlarge",
    "max": 3,
}
TEMPLATE = "k8s.io/cluster-autoscaler/node-template"


def eks_pool(mode: str = "whole", group: dict[str, Any] | None = None, **fields: object) -> GpuPoolSpec:
    written = CARDS | MODES[mode] | {"name": "a100", "provider": "eks", "eks": GROUP | (group or {})} | fields
    return GpuPoolSpec.model_validate(written)


def nodes(pool: GpuPoolSpec) -> Render:
    return rendered(partial(GpuNodePool, pool.name, GpuNodePoolArgs(pool=pool)))


def group(found: Render) -> dict[str, Any]:
    return found.resources["aws:eks/nodeGroup:NodeGroup", "a100"]


def tags(found: Render) -> dict[str, str]:
    inputs = [one for (kind, _), one in found.resources.items() if kind == "aws:autoscaling/tag:Tag"]
    assert not any(one["tag"]["propagateAtLaunch"] for one in inputs)
    result = {one["tag"]["key"]: one["tag"]["value"] for one in inputs}
    assert len(result) == len(inputs)
    return result


@pytest.fixture(scope="module")
def found() -> Render:
    return nodes(eks_pool())


class TestNodeGroup:
    def test_it_is_what_the_pool_says(self, found: Render) -> None:
        one = group(found)
        assert (one["clusterName"], one["nodeGroupName"]) == ("serving-prod", "a100")
        assert one["nodeRoleArn"] == GROUP["nodeRoleArn"]
        assert one["subnetIds"] == GROUP["subnets"]
        assert one["instanceTypes"] == ["g6.24xlarge"]
        assert one["scalingConfig"] == {"minSize": 0, "maxSize": 3, "desiredSize": 0}

    def test_its_ami_has_the_driver(self, found: Render) -> None:
        assert group(found)["amiType"] == "AL2023_x86_64_NVIDIA"

    def test_its_nodes_are_those_of_the_contract(self, found: Render) -> None:
        labels = group(found)["labels"]
        assert node_pool.node_labels(eks_pool()).items() <= labels.items()
        assert labels["triton-estate.io/node-pool"] == "a100"
        assert group(found)["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]

    def test_the_autoscaler_knows_that_they_have_gpus(self, found: Render) -> None:
        assert group(found)["labels"]["k8s.amazonaws.com/accelerator"] == "NVIDIA-A100-SXM4-80GB"

    def test_nodes_of_hami_say_so(self) -> None:
        assert group(nodes(eks_pool("hami")))["labels"]["gpu"] == "on"
        assert "gpu" not in group(nodes(eks_pool()))["labels"]

    @pytest.mark.parametrize(
        ("written", "field", "value"),
        [
            ({"spot": True}, "capacityType", "SPOT"),
            ({"spot": False}, "capacityType", "ON_DEMAND"),
            ({"diskGib": 500}, "diskSize", 500),
            ({"ami": "AL2023_ARM_64_NVIDIA"}, "amiType", "AL2023_ARM_64_NVIDIA"),
            ({"region": "eu-central-1"}, "region", "eu-central-1"),
            ({"min": 2}, "scalingConfig", {"minSize": 2, "maxSize": 3, "desiredSize": 2}),
        ],
    )
    def test_every_choice_reaches_it(self, written: dict[str, Any], field: str, value: object) -> None:
        assert group(nodes(eks_pool(group=written)))[field] == value

    def test_the_number_of_nodes_is_the_autoscalers(self, found: Render) -> None:
        assert list(found.request("NodeGroup", "a100").ignoreChanges) == ["scalingConfig.desiredSize"]

    def test_no_simulated_node_is_made(self, found: Render) -> None:
        assert not found.objects()


class TestAutoscalerTags:
    @pytest.mark.parametrize("mode", ["whole", "timeSlicing", "hami"])
    def test_they_tell_label_taint_and_resources_of_a_node_that_is_not_there_yet(self, mode: str) -> None:
        pool = eks_pool(mode)
        found = nodes(pool)
        expected = {f"{TEMPLATE}/label/{key}": value for key, value in group(found)["labels"].items()}
        expected |= {f"{TEMPLATE}/resources/{key}": value for key, value in pool.node_capacity().items()}
        expected[f"{TEMPLATE}/taint/nvidia.com/gpu"] = "present:NoSchedule"
        assert tags(found) == expected

    def test_whole_cards_are_counted(self, found: Render) -> None:
        assert tags(found)[f"{TEMPLATE}/resources/nvidia.com/gpu"] == "4"

    def test_another_taint_is_told_in_both_places(self) -> None:
        found = nodes(eks_pool(taint="dedicated=gpu:NoExecute"))
        assert group(found)["taints"] == [{"key": "dedicated", "value": "gpu", "effect": "NO_EXECUTE"}]
        assert tags(found)[f"{TEMPLATE}/taint/dedicated"] == "gpu:NoExecute"

    def test_they_are_those_of_the_group_that_eks_makes(self) -> None:
        made = [SimpleNamespace(autoscaling_groups=[SimpleNamespace(name="eks-a100-1b2c")])]
        assert eks_nodes.group_name(cast("Any", made)) == "eks-a100-1b2c"

    @pytest.mark.parametrize("made", [None, [], [SimpleNamespace(autoscaling_groups=[])]])
    def test_before_there_is_one_they_have_no_name(self, made: object) -> None:
        assert eks_nodes.group_name(cast("Any", made)) == ""

    def test_they_are_in_the_region_of_the_cluster(self) -> None:
        found = nodes(eks_pool(group={"region": "eu-central-1"}))
        regions = {one["region"] for (kind, _), one in found.resources.items() if kind.startswith("aws:")}
        assert regions == {"eu-central-1"}


def test_without_such_a_pool_the_sdk_of_aws_is_not_loaded() -> None:
    code = "import sys, components.estate; sys.exit('pulumi_aws' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
