"""A change of one model touches that model and nothing else; the same input gives the same objects."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.components.conftest import POOLS, TENSORS, Render

WHOLE = POOLS[:1]
Renderer = Callable[..., Render]
GPU = "resources: {cpu: 1, memory: 2Gi, gpu: 1}\n"
CONFIG = f"config: {{backend: onnxruntime, {TENSORS}}}\n"
MODELS = {"a": GPU, "b": CONFIG, "c": ""}


def by_name(found: Render) -> dict[tuple[str, str], dict[str, Any]]:
    return {(item["kind"], item["metadata"]["name"]): item for item in found.objects()}


def touched(before: Render, after: Render) -> set[str | None]:
    """The models (None: the estate itself) whose objects differ."""
    old, new = by_name(before), by_name(after)
    changed = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    labels = [(new.get(key) or old[key])["metadata"]["labels"] for key in changed]
    return {found.get("app.kubernetes.io/instance") for found in labels}


@pytest.fixture(scope="session")
def before(render: Renderer) -> Render:
    return render(MODELS, gpuPools=WHOLE)


class TestOneModel:
    def test_adding_one_changes_no_other(self, before: Render, render: Renderer) -> None:
        after = render(MODELS | {"d": GPU + CONFIG}, gpuPools=WHOLE)
        assert touched(before, after) == {"d"}
        assert before.outputs["models"].items() < after.outputs["models"].items()

    def test_removing_one_changes_no_other(self, before: Render, render: Renderer) -> None:
        after = render({name: MODELS[name] for name in ("a", "b")}, gpuPools=WHOLE)
        assert touched(before, after) == {"c"}

    @pytest.mark.parametrize(
        "more",
        [
            CONFIG.replace("dims: [3]", "dims: [4]"),
            CONFIG + "owner: search\n",
            CONFIG + "image: triton:2\n",
            CONFIG + "scaling: {max: 7}\n",
            CONFIG + "server: {log-verbose: 1}\n",
            CONFIG + GPU,
        ],
    )
    def test_changing_one_changes_no_other(self, more: str, before: Render, render: Renderer) -> None:
        after = render(MODELS | {"b": more}, gpuPools=WHOLE)
        assert touched(before, after) == {"b"}

    def test_a_changed_configuration_changes_the_map_and_the_pods_only(self, before: Render, render: Renderer) -> None:
        after = render(MODELS | {"b": CONFIG.replace("dims: [3]", "dims: [4]")}, gpuPools=WHOLE)
        old, new = by_name(before), by_name(after)
        assert {key for key in old if old[key] != new[key]} == {("ConfigMap", "b-v1-config"), ("Deployment", "b-v1")}

    def test_an_override_changes_its_model_only(self, before: Render, render: Renderer) -> None:
        after = render(MODELS, gpuPools=WHOLE, models={"c": {"scaling": {"max": 5}}})
        assert touched(before, after) == {"c"}


class TestAnotherPool:
    def test_adding_one_changes_no_model(self, before: Render, render: Renderer) -> None:
        pool = {"name": "more", "gpuModel": "H100", "gpuMemory": "80Gi"}
        after = render(MODELS, gpuPools=[*WHOLE, pool])
        assert touched(before, after) == {None}
        assert by_name(after).keys() - by_name(before).keys() == {("Node", "more-0")}


class TestSameInput:
    def test_two_runs_register_the_same(self, before: Render, render: Renderer) -> None:
        # A setting that says what the default says anyway makes it another run.
        again = render(MODELS, gpuPools=WHOLE, namespace="serving")
        assert again is not before
        assert by_name(again) == by_name(before)
        assert json.dumps(again.outputs, sort_keys=True) == json.dumps(before.outputs, sort_keys=True)
