"""Revisions: the file with each one's differences laid over it, and whose mistake a mistake is."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.catalog import Estate
from spec.merge import merge, removed_in_vain
from spec.model import RevisionSpec
from spec.problems import Problem
from spec.resolve import Revision
from spec.revisions import revision_specs
from spec.source import Source
from spec.validation import validate

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
TENSORS = "input: [{name: a, data_type: TYPE_FP32, dims: [3]}], output: [{name: b, data_type: TYPE_FP32, dims: [3]}]"
CONFIG = f"config: {{backend: python, max_batch_size: 4, dynamic_batching: {{}}, {TENSORS}}}\n"
ALL_TO_V1 = "traffic: {split: {v1: 100}}\n"
WHOLE = {"name": "a100", "gpuModel": "A100", "gpuMemory": "80Gi", "gpusPerNode": 2}
MIG = {"name": "slices", "sharing": "mig", "migProfile": "1g.10gb"}


@pytest.fixture
def second(load_stack: Load, five_lines: str) -> Callable[..., Revision]:
    """Revision v2 with differences (YAML) of the five lines with more lines; v1 differs in nothing."""

    def _second(differences: str, more: str = "") -> Revision:
        text = f"{five_lines}{more}revisions: {{v1: {{}}, v2: {differences}}}\n{ALL_TO_V1}"
        return load_stack({"a.yaml": text}).models[0].revisions[1]

    return _second


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[..., list[tuple[str, int | None]]]:
    """Field and line of each problem of v2's differences (YAML), which stand on line 7, and of more lines above."""

    def _refused(differences: str, more: str = "scaling: {}\n", **settings: object) -> list[tuple[str, int | None]]:
        assert more.count("\n") == 1
        text = f"{five_lines}{more}revisions:\n  v2: {differences}\n  v1: {{}}\n{ALL_TO_V1}"
        problems = refusals({"a.yaml": text}, {"environment": "dev"} | settings)
        return [(problem.field, problem.line) for problem in problems]

    return _refused


class TestConfigFile:
    def test_a_file_takes_the_place_of_the_fields_of_the_base(self, load_stack: Load, five_lines: str) -> None:
        text = f"{five_lines}{CONFIG}revisions: {{v1: {{}}, v2: {{config: {{file: small.pbtxt}}}}}}\n{ALL_TO_V1}"
        model = load_stack({"a.yaml": text, "small.pbtxt": 'backend: "python"\nmax_batch_size: 2\n'}).models[0]
        assert [one.configs["resnet"].max_batch_size for one in model.revisions] == [4, 2]

    def test_fields_take_the_place_of_the_file_of_the_base(
        self, second: Callable[..., Revision], tmp_path: Path
    ) -> None:
        (tmp_path / "models").mkdir(exist_ok=True)
        (tmp_path / "models" / "base.pbtxt").write_text('backend: "python"\nmax_batch_size: 2\n')
        fields = f"{{backend: python, max_batch_size: 8, {TENSORS}}}"
        found = second(f"{{config: {fields}}}", "config: {file: base.pbtxt}\n")
        assert found.configs["resnet"].max_batch_size == 8


class TestNames:
    def test_without_revisions_there_is_one_that_gets_everything(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines}).models
        assert [revision.name for revision in model.revisions] == ["v1"]
        assert model.weights == {"v1": 100}

    def test_the_only_one_may_have_any_name(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines + "revisions: {blue: {}}\n"}).models
        assert (model.primary.name, model.weights) == ("blue", {"blue": 100})

    def test_they_come_in_the_order_of_the_file(self, load_stack: Load, five_lines: str) -> None:
        text = five_lines + "revisions: {v3: {}, v1: {}, v2: {}}\ntraffic: {split: {v1: 100}}\n"
        (model,) = load_stack({"a.yaml": text}).models
        assert [revision.name for revision in model.revisions] == ["v3", "v1", "v2"]

    def test_each_knows_its_model_and_owner(self, second: Callable[..., Revision]) -> None:
        revision = second("{}")
        assert (revision.model, revision.owner, revision.name) == ("resnet", "vision", "v2")

    def test_a_name_in_another_form_is_refused_with_the_right_one(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals({"a.yaml": five_lines + "revisions:\n  V_2: {}\n"})
        assert (problem.field, problem.line, problem.fix) == ("revisions.V_2", 6, "write v-2")


class TestMerge:
    def test_one_that_differs_in_nothing_is_the_file(self, second: Callable[..., Revision]) -> None:
        revision = second("{}", "image: triton:1\nloadTime: 10s\nenvironment: {A: b}\n")
        assert (revision.image, revision.spec.load_time) == ("triton:1", "10s")
        assert revision.spec.environment == {"A": "b"}

    @pytest.mark.parametrize(
        ("differences", "field", "value"),
        [
            ("{image: triton:2}", "image", "triton:2"),
            ("{loadTime: 20s}", "load_time", "20s"),
            ("{control: explicit}", "control", "explicit"),
            ("{load: sync}", "load", "sync"),
            ("{priority: low}", "priority", "low"),
            ("{environment: {C: d}}", "environment", {"A": "b", "C": "d"}),
            ("{environment: {A: e}}", "environment", {"A": "e"}),
            ("{nodeSelector: {zone: b}}", "node_selector", {"zone": "b"}),
            ("{server: {log-info: false}}", "server", {"log-verbose": 1, "log-info": False}),
        ],
    )
    def test_a_field_is_replaced_and_its_neighbours_stay(
        self, differences: str, field: str, value: object, second: Callable[..., Revision]
    ) -> None:
        base = "image: triton:1\nenvironment: {A: b}\nserver: {log-verbose: 1}\nnodeSelector: {zone: a}\n"
        spec = second(differences, base).spec
        assert getattr(spec, field) == value
        assert (spec.resources.cpu, spec.repository.bucket) == ("1", "acme")

    def test_a_field_deep_inside_is_replaced(self, second: Callable[..., Revision]) -> None:
        config = second("{config: {max_batch_size: 8}}", CONFIG).configs["resnet"]
        assert (config.max_batch_size, config.backend) == (8, "python")

    @pytest.mark.parametrize(
        ("differences", "more", "field", "value"),
        [
            ("{image: null}", "image: triton:1\n", "image", None),
            ("{config: null}", CONFIG, "config", None),
            ("{loadTime: null}", "loadTime: 10s\n", "load_time", "300s"),
            ("{environment: {A: null}}", "environment: {A: b, C: d}\n", "environment", {"C": "d"}),
            ("{members: {helper: null}}", "members: {helper: {}}\n", "members", {}),
        ],
    )
    def test_null_removes_a_field(
        self, differences: str, more: str, field: str, value: object, second: Callable[..., Revision]
    ) -> None:
        assert getattr(second(differences, more).spec, field) == value

    def test_a_list_is_replaced_as_a_whole(self, second: Callable[..., Revision]) -> None:
        revision = second("{server: {metrics-config: [c=3]}}", "server: {metrics-config: [a=1, b=2]}\n")
        assert revision.spec.server == {"metrics-config": ["c=3"]}

    def test_one_kind_of_credentials_gives_way_to_the_other(self, second: Callable[..., Revision]) -> None:
        revision = second("{credentials: {secret: null, serviceAccount: b}}", "credentials: {secret: a}\n")
        assert revision.spec.credentials is not None
        assert revision.spec.credentials.service_account == "b"

    def test_no_other_revision_changes(self, load_stack: Load, five_lines: str) -> None:
        text = f"{five_lines}image: triton:1\nrevisions: {{v1: {{}}, v2: {{image: triton:2}}}}\n{ALL_TO_V1}"
        assert load_stack({"a.yaml": text}).models[0].revisions[0].image == "triton:1"

    def test_the_numbers_of_replicas_are_merged_one_by_one(self, second: Callable[..., Revision]) -> None:
        scaling = second("{scaling: {max: 7}}", "scaling: {min: 2, max: 4}\n").scaling
        assert (scaling.min, scaling.max) == (2, 7)


DIFFERENCES: list[dict[str, object]] = [
    {"image": "triton:2"}, {"image": None}, {"scaling": {"max": 7}}, {"scaling": None}, {"environment": {"A": None}},
    {"environment": {"C": "d"}}, {"server": {"log-verbose": 2}}, {"loadTime": "7s"}, {"control": "explicit"},
    {"members": {"helper": {}}}, {"credentials": {"secret": "b"}}, {"repository": "gs://acme/other"}, {"priority": "p"},
    {"config": {"max_batch_size": 8}}, {"config": {"dynamic_batching": None, "max_batch_size": None}}, {"config": None},
]  # fmt: skip


BASE: dict[str, object] = {
    "name": "resnet", "owner": "vision", "repository": "s3://acme/resnet", "image": "triton:1",
    "resources": {"cpu": 1, "memory": "2Gi"}, "scaling": {"min": 1, "max": 3}, "environment": {"A": "b"},
    "server": {"log-verbose": 1}, "credentials": {"secret": "a"},
    "config": {"backend": "python", "max_batch_size": 4, "dynamic_batching": {}},
}  # fmt: skip


class TestSameAsAFile:
    @given(st.lists(st.sampled_from(DIFFERENCES), max_size=4))
    def test_a_revision_is_what_a_file_with_its_differences_would_be(self, found: list[dict[str, object]]) -> None:
        differences = {key: value for difference in found for key, value in difference.items()}
        two = BASE | {"revisions": {"v1": {}, "v2": differences}, "traffic": {"split": {"v1": 100}}}
        source = Source("a.yaml", two)
        revisions, problems = revision_specs(two, source, [])
        alone, more = validate(RevisionSpec, without_model(merge(BASE, differences)), source)
        assert problems == more == []
        assert revisions["v2"] == alone
        assert revisions["v1"] == validate(RevisionSpec, without_model(BASE), source)[0]


def without_model(data: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key not in {"name", "owner"}}


class TestBlame:
    """A mistake of a revision is told under the revision, with its line."""

    @pytest.mark.parametrize(
        ("differences", "field"),
        [
            ("{image: latest}", "image"),
            ("{scaling: {max: 0}}", "scaling.max"),
            ("{scaling: {maxx: 3}}", "scaling.maxx"),
            ("{resources: {memory: 5}}", "resources.memory"),
            ("{resources: null}", "resources"),
            ("{pool: a100}", "pool"),
            ("{resources: {gpu: 1}}", "resources.gpu"),
            ("{loadTime: 25h}", "loadTime"),
            ("{environment: {HOME: /}}", "environment.HOME"),
            ("{credentials: {}}", "credentials"),
            ("{control: poll, load: sync}", "control"),
            ("{config: {max_batch: 1}}", "config.max_batch"),
            ("{config: {backend: python, dynamic_batching: {}}}", "config.dynamic_batching"),
            ("{members: {resnet: {}}}", "members.resnet"),
            ("{config: {file: nowhere.pbtxt}}", "config.file"),
            ("{colour: red}", "colour"),
        ],
    )
    def test_it_is_told_under_the_revision_with_the_line_in_the_file(
        self, differences: str, field: str, refused: Callable[..., Any]
    ) -> None:
        assert refused(differences) == [(f"revisions.v2.{field}", 7)]

    def test_a_field_of_the_file_that_a_difference_makes_impossible_is_the_revisions(
        self, refused: Callable[..., Any]
    ) -> None:
        found = refused("{config: {max_batch_size: 0}}", CONFIG)
        assert found == [("revisions.v2.config.dynamic_batching", 7)]

    def test_a_request_that_its_own_pool_cannot_serve_is_the_revisions(
        self, refusals: Refusals, five_lines: str
    ) -> None:
        revisions = "revisions: {v1: {}, v2: {pool: slices}}\n"
        text = five_lines.replace("2Gi}", "2Gi, gpu: 1}") + revisions + ALL_TO_V1
        settings = {"environment": "dev", "gpuPools": [WHOLE, WHOLE | MIG]}
        (problem,) = refusals({"a.yaml": text}, settings)
        assert (problem.field, problem.file) == ("revisions.v2.resources.gpu", "models/a.yaml")

    @pytest.mark.parametrize(
        ("more", "field"),
        [
            ("config: {max_batch: 1}\n", "config.max_batch"),
            ("config: {backend: python, dynamic_batching: {}}\n", "config.dynamic_batching"),
            ("config: {file: nowhere.pbtxt}\n", "config.file"),
            ("scaling: {gpu: 70}\n", "scaling.gpu"),
            ("scaling: {max: 0}\n", "scaling.max"),
            ("colour: red\n", "colour"),
        ],
    )
    @pytest.mark.parametrize("differences", ["{}", "{image: triton:2}"])
    def test_one_of_the_file_is_told_once_and_without_a_revision(
        self, differences: str, more: str, field: str, refused: Callable[..., Any]
    ) -> None:
        assert refused(differences, more) == [(field, 5)]

    def test_those_of_the_file_and_of_its_revisions_are_told_at_once(self, refused: Callable[..., Any]) -> None:
        found = refused("{loadTime: 25, colour: red}", "scaling: {max: 0}\n")
        assert found == [("scaling.max", 5), ("revisions.v2.loadTime", 7), ("revisions.v2.colour", 7)]

    def test_one_in_a_configuration_file_is_told_under_that_file(self, refusals: Refusals, five_lines: str) -> None:
        text = f"{five_lines}revisions: {{v1: {{}}, v2: {{config: {{file: two.pbtxt}}}}}}\n{ALL_TO_V1}"
        (problem,) = refusals({"a.yaml": text, "two.pbtxt": 'backend: "python"\ndynamic_batching {}\n'})
        assert (problem.file, problem.field) == ("models/two.pbtxt", "dynamic_batching")

    def test_a_stack_is_told_about_the_revision_that_it_changed(self, refusals: Refusals, five_lines: str) -> None:
        text = f"{five_lines}revisions: {{v1: {{}}, v2: {{}}}}\n{ALL_TO_V1}"
        override = {"revisions": {"v2": {"scaling": {"max": 0}}}}
        (problem,) = refusals({"a.yaml": text}, {"environment": "dev", "models": {"resnet": override}})
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.resnet.revisions.v2.scaling.max")


class TestNotARevisions:
    @pytest.mark.parametrize("value", ["other", "null"])
    @pytest.mark.parametrize("field", ["name", "owner", "traffic", "revisions"])
    def test_what_belongs_to_the_model_is_refused(self, field: str, value: str, refused: Callable[..., Any]) -> None:
        assert refused(f"{{{field}: {value}}}") == [(f"revisions.v2.{field}", 7)]

    @pytest.mark.parametrize("field", ["colour", "pool", "scaling.max", "config"])
    def test_null_for_what_is_not_there_is_refused(self, field: str, refused: Callable[..., Any]) -> None:
        outer, _, inner = field.partition(".")
        written = f"{{{outer}: {{{inner}: null}}}}" if inner else f"{{{outer}: null}}"
        assert refused(written) == [(f"revisions.v2.{field}", 7)]

    def test_a_misspelt_null_suggests_what_is_there(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals({"a.yaml": five_lines + "image: triton:1\nrevisions: {v1: {imge: null}}\n"})
        assert problem.fix == "did you mean image?"

    @pytest.mark.parametrize(
        ("base", "patch", "paths"),
        [
            ({"a": 1}, {"a": None}, []),
            ({"a": 1}, {"b": None}, ["b"]),
            ({"a": {"b": 1}}, {"a": {"b": None, "c": None}}, ["a.c"]),
            ({"a": 1}, {"a": {"b": None}}, ["a.b"]),
            ({}, {"a": {"b": {"c": None}}}, ["a.b.c"]),
            ({"a": None}, {"a": None}, []),
            ({"a": 1}, {"a": 2}, []),
        ],
    )
    def test_a_null_removes_what_is_there_or_nothing(
        self, base: dict[str, object], patch: dict[str, object], paths: list[str]
    ) -> None:
        assert list(removed_in_vain(base, patch)) == paths
