"""A stack overrides fields of a model: what it changes, and who is told about a mistake."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.catalog import Estate
from spec.merge import merge
from spec.problems import Problem

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(st.sampled_from("abc"), JSON, max_size=3)
POOLS = [{"name": "a100", "gpuModel": "A100", "gpuMemory": "80Gi"}]
PYTHON = (
    "config:\n  backend: python\n  max_batch_size: 8\n"
    "  input: [{name: a, data_type: TYPE_FP32, dims: [1]}]\n  output: [{name: b, data_type: TYPE_FP32, dims: [1]}]\n"
)


def stack(**override: object) -> dict[str, object]:
    return {"environment": "dev", "gpuPools": POOLS, "models": {"resnet": override}}


class TestMerge:
    @pytest.mark.parametrize(
        ("base", "patch", "merged"),
        [
            ({"a": 1, "b": 2}, {"a": 3}, {"a": 3, "b": 2}),
            ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
            ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
            ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
            ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
            ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
            ({"a": {"b": 1}}, {"a": 2}, {"a": 2}),
            ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
            ({"a": 1}, {"z": None}, {"a": 1}),
        ],
    )
    def test_mappings_merge_null_removes_and_everything_else_replaces(
        self, base: dict[str, object], patch: dict[str, object], merged: dict[str, object]
    ) -> None:
        assert merge(base, patch) == merged

    @given(OBJECT, OBJECT)
    def test_merging_twice_changes_nothing_more(self, base: dict[str, object], patch: dict[str, object]) -> None:
        once = merge(base, patch)
        assert merge(once, patch) == once

    @given(OBJECT)
    def test_an_empty_patch_changes_nothing(self, base: dict[str, object]) -> None:
        assert merge(base, {}) == base

    def test_the_base_stays_as_it_was(self) -> None:
        base = {"a": {"b": 1}}
        merge(base, {"a": {"b": 2}})
        assert base == {"a": {"b": 1}}


class TestEffect:
    def test_a_field_is_replaced_and_its_neighbours_stay(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + "scaling: {min: 2, max: 8}\n"}
        (model,) = load_stack(files, stack(scaling={"max": 4})).models
        scaling = model.primary.scaling
        assert (scaling.min, scaling.max) == (2, 4)

    def test_null_brings_the_default_back(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines + "scaling: {max: 8}\n"}, stack(scaling=None)).models
        assert model.primary.scaling.max == 2

    def test_a_field_inside_the_configuration_can_be_changed(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines + PYTHON}, stack(config={"max_batch_size": 4})).models
        assert model.primary.configs["resnet"].max_batch_size == 4

    def test_other_models_stay_as_they_are(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines, "b.yaml": five_lines.replace("name: resnet", "name: other")}
        first, second = load_stack(files, stack(owner="search")).models
        assert (first.spec.owner, second.spec.owner) == ("search", "vision")

    def test_what_the_model_file_lacks_may_come_from_the_stack(self, load_stack: Load, five_lines: str) -> None:
        text = five_lines.replace("owner: vision\n", "")
        assert load_stack({"a.yaml": text}, stack(owner="search")).models[0].spec.owner == "search"


class TestBlame:
    """A mistake is told under the file of whoever made it."""

    @pytest.mark.parametrize(
        ("override", "field"),
        [
            ({"scaling": {"max": 0}}, "scaling.max"),
            ({"scaling": {"maximum": 3}}, "scaling.maximum"),
            ({"scaling": 3}, "scaling"),
            ({"scaling": {"min": 5, "max": 2}}, "scaling.max"),
            ({"colour": "red"}, "colour"),
            ({"resources": None}, "resources"),
            ({"resources": {"memory": None}}, "resources.memory"),
            ({"resources": {"gpu": 1.5}}, "resources.gpu"),
            ({"resources": {"gpu": {"core": 5}}}, "resources.gpu.core"),
            ({"pool": "a100"}, "pool"),
            ({"resources": {"gpu": 1}, "pool": "nowhere"}, "pool"),
            ({"repository": "s3://bucket"}, "repository"),
            ({"scaling": {"gpu": 70}}, "scaling.gpu"),
            ({"server": {"http-port": 80}}, "server.http-port"),
            ({"config": {"max_batch": 1}}, "config.max_batch"),
            ({"config": {"input": [{"name": "a", "dims": [1]}]}}, "config.input[0].data_type"),
            ({"config": {"max_batch_size": 0, "dynamic_batching": {}}}, "config.dynamic_batching"),
            ({"members": {"a.b": {"config": {"max_batch": 1}}}}, "members.a.b.config.max_batch"),
        ],
    )
    def test_the_stack_is_told_about_its_override(
        self, override: dict[str, object], field: str, refusals: Refusals, five_lines: str
    ) -> None:
        (problem,) = refusals({"a.yaml": five_lines + PYTHON}, stack(**override))
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", f"models.resnet.{field}")

    def test_it_is_to_blame_for_a_setting_that_it_made_impossible(self, refusals: Refusals, five_lines: str) -> None:
        text = five_lines + PYTHON + "  dynamic_batching: {}\n"
        (problem,) = refusals({"a.yaml": text}, stack(config={"max_batch_size": 0}))
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.resnet.config.dynamic_batching")

    def test_the_model_file_is_told_about_its_own(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals({"a.yaml": five_lines + "scaling: {min: -1}\n"}, stack(scaling={"max": 4}))
        assert (problem.file, problem.line, problem.field) == ("models/a.yaml", 5, "scaling.min")

    def test_both_are_told_when_both_are_wrong(self, refusals: Refusals, five_lines: str) -> None:
        problems = refusals({"a.yaml": five_lines + "scaling: {min: -1}\n"}, stack(scaling={"max": 0}))
        assert {(problem.file, problem.field) for problem in problems} == {
            ("models/a.yaml", "scaling.min"),
            ("Pulumi.test.yaml", "models.resnet.scaling.max"),
        }

    def test_a_broken_model_file_is_not_blamed_on_an_override_elsewhere(
        self, refusals: Refusals, five_lines: str
    ) -> None:
        text = five_lines.replace("owner: vision\n", "") + "config: {max_batch: 1}\n"
        (problem,) = refusals({"a.yaml": text}, stack(owner="search"))
        assert (problem.file, problem.field) == ("models/a.yaml", "config.max_batch")

    def test_an_override_of_no_model_is_refused_with_the_closest_name(
        self, refusals: Refusals, five_lines: str
    ) -> None:
        settings = {"environment": "dev", "models": {"resnt": {}}}
        (problem,) = refusals({"a.yaml": five_lines}, settings)
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.resnt")
        assert problem.fix == "did you mean resnet?"

    def test_a_stack_cannot_rename_a_model(self, refusals: Refusals, five_lines: str) -> None:
        files = {"a.yaml": five_lines, "b.yaml": five_lines.replace("name: resnet", "name: other")}
        (problem,) = refusals(files, stack(name="other"))
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.resnet.name")
