"""Revisions: each has objects of its own, and adding, promoting or dropping one touches nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import POOLS, TENSORS, Render

Renderer = Callable[..., Render]
WHOLE = POOLS[:1]
OF_A_REVISION = {
    "ConfigMap", "Deployment", "HorizontalPodAutoscaler", "NetworkPolicy", "PodDisruptionBudget", "Service",
}  # fmt: skip
CONFIG = f"config: {{backend: onnxruntime, {TENSORS}}}\n"
ONE = CONFIG + "revisions: {v1: {}}\n"
TWO = CONFIG + "revisions: {v1: {}, v2: {image: 'triton:2'}}\n"
Key = tuple[str, str]


def with_weights(v1: int, v2: int) -> str:
    return f"{TWO}traffic: {{split: {{v1: {v1}, v2: {v2}}}}}\n"


def rendered(render: Renderer, more: str) -> Render:
    return render({"m": more, "neighbour": CONFIG}, gpuPools=WHOLE)


def objects(found: Render) -> dict[Key, dict[str, Any]]:
    """The objects of Kubernetes' own kinds."""
    kinds = OF_A_REVISION | {"Namespace", "Node"}
    return {(item["kind"], item["metadata"]["name"]): item for item in found.objects() if item["kind"] in kinds}


def changed(before: Render, after: Render) -> set[Key]:
    old, new = objects(before), objects(after)
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}


def own(revision: str) -> set[Key]:
    """What belongs to one revision of model m."""
    name = f"m-{revision}"
    return {(kind, f"{name}-config" if kind == "ConfigMap" else name) for kind in OF_A_REVISION}


class TestObjects:
    def test_each_has_one_of_everything(self, render: Renderer) -> None:
        found = objects(rendered(render, with_weights(90, 10)))
        assert own("v1") | own("v2") | {("Service", "m")} == {key for key in found if key[1].split("-")[0] == "m"}

    @pytest.mark.parametrize("revision", ["v1", "v2"])
    def test_each_scales_and_guards_its_own_pods(self, revision: str, render: Renderer) -> None:
        found = rendered(render, with_weights(90, 10))
        selector = found.one("Deployment", f"m-{revision}")["spec"]["selector"]
        target = found.one("HorizontalPodAutoscaler", f"m-{revision}")["spec"]["scaleTargetRef"]
        assert target["name"] == f"m-{revision}"
        assert found.one("PodDisruptionBudget", f"m-{revision}")["spec"]["selector"] == selector
        assert found.one("NetworkPolicy", f"m-{revision}")["spec"]["podSelector"] == selector
        assert found.one("Service", f"m-{revision}")["spec"]["selector"] == selector["matchLabels"]

    def test_each_mounts_its_own_configuration(self, render: Renderer) -> None:
        found = rendered(render, with_weights(90, 10))
        for revision in ("v1", "v2"):
            volumes = found.pod(f"m-{revision}")["volumes"]
            (name,) = [volume["configMap"]["name"] for volume in volumes if "configMap" in volume]
            assert name == f"m-{revision}-config"

    def test_no_two_select_the_same_pods(self, render: Renderer) -> None:
        found = rendered(render, with_weights(90, 10)).objects("Deployment", "m")
        for deployment in found:
            selector = deployment["spec"]["selector"]["matchLabels"]
            labels = [other["spec"]["template"]["metadata"]["labels"] for other in found]
            assert sum(selector.items() <= pod.items() for pod in labels) == 1

    def test_a_difference_reaches_its_revision_only(self, render: Renderer) -> None:
        found = rendered(render, with_weights(90, 10))
        assert found.triton("m-v2")["image"] == "triton:2"
        assert found.triton("m-v1")["image"] != "triton:2"

    def test_one_without_requests_runs_all_the_same(self, render: Renderer) -> None:
        assert rendered(render, with_weights(100, 0)).one("Deployment", "m-v2")

    def test_triton_reports_the_name_of_the_model_in_every_revision(self, render: Renderer) -> None:
        found = rendered(render, with_weights(90, 10))
        for revision in ("v1", "v2"):
            assert "--id=m" in found.triton(f"m-{revision}")["args"]


class TestLife:
    def test_writing_the_default_revision_out_changes_nothing(self, render: Renderer) -> None:
        assert changed(rendered(render, CONFIG), rendered(render, ONE)) == set()

    def test_adding_one_adds_its_objects_and_changes_none(self, render: Renderer) -> None:
        before, after = rendered(render, ONE), rendered(render, with_weights(100, 0))
        assert changed(before, after) == own("v2") == objects(after).keys() - objects(before).keys()

    @pytest.mark.parametrize(("v1", "v2"), [(0, 100), (10, 90), (49, 51)])
    def test_promoting_one_changes_the_selector_of_the_front_service_only(
        self, v1: int, v2: int, render: Renderer
    ) -> None:
        before, after = rendered(render, with_weights(100, 0)), rendered(render, with_weights(v1, v2))
        assert changed(before, after) == {("Service", "m")}
        old, new = (found.one("Service", "m") for found in (before, after))
        assert new["spec"]["selector"] == old["spec"]["selector"] | {"app.kubernetes.io/version": "v2"}
        assert old["metadata"] == new["metadata"]
        assert old["spec"]["ports"] == new["spec"]["ports"]

    def test_a_share_that_keeps_the_primary_changes_no_object(self, render: Renderer) -> None:
        assert changed(rendered(render, with_weights(100, 0)), rendered(render, with_weights(60, 40))) == set()

    def test_copies_change_no_object(self, render: Renderer) -> None:
        mirrored = TWO + "traffic: {split: {v1: 100, v2: 0}, mirror: {to: v2, percent: 10}}\n"
        assert changed(rendered(render, with_weights(100, 0)), rendered(render, mirrored)) == set()

    def test_promotion_shows_in_the_outputs_of_this_model_only(self, render: Renderer) -> None:
        before, after = (rendered(render, with_weights(*found)).outputs for found in ((100, 0), (0, 100)))
        old, new = before["models"]["m"], after["models"]["m"]
        assert {key for key in old if old[key] != new[key]} == {"revisions"}
        assert before["models"]["neighbour"] == after["models"]["neighbour"]
        assert before["gpuPools"] == after["gpuPools"]

    def test_dropping_one_removes_its_objects_and_changes_none(self, render: Renderer) -> None:
        before = rendered(render, with_weights(0, 100))
        after = rendered(render, CONFIG + "revisions: {v2: {image: 'triton:2'}}\n")
        assert changed(before, after) == own("v1") == objects(before).keys() - objects(after).keys()

    @pytest.mark.parametrize(
        ("differences", "kinds"),
        [
            ("{image: 'triton:3'}", {"Deployment"}),
            ("{image: 'triton:2', scaling: {max: 9}}", {"HorizontalPodAutoscaler"}),
            ("{image: 'triton:2', config: {max_batch_size: 4}}", {"ConfigMap", "Deployment"}),
            ("{image: 'triton:2', credentials: {secret: keys}}", {"Deployment"}),
        ],
    )
    def test_changing_one_touches_its_own_objects_only(
        self, differences: str, kinds: set[str], render: Renderer
    ) -> None:
        before = with_weights(100, 0)
        after = before.replace("{image: 'triton:2'}", differences)
        found = changed(rendered(render, before), rendered(render, after))
        assert found <= own("v2")
        assert {kind for kind, _ in found} == kinds
