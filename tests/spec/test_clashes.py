"""No two objects of an estate ever share a name, whatever models and revisions are called."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spec import names
from spec.catalog import Estate, load
from spec.problems import Problem, SpecError

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
# Few letters and many dashes: names that clash are common.
PARTS = st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map("-".join)
MODELS = st.dictionaries(PARTS, st.lists(PARTS, unique=True, max_size=3), min_size=1, max_size=4)


@pytest.fixture
def files(five_lines: str) -> Callable[..., dict[str, str]]:
    """Model files by model name, each with its revisions."""

    def _files(**models: str) -> dict[str, str]:
        named = {name.replace("_", "-"): revisions for name, revisions in models.items()}
        return {f"{name}.yaml": text(five_lines, name, revisions.split()) for name, revisions in named.items()}

    return _files


def text(five_lines: str, name: str, revisions: list[str]) -> str:
    found = five_lines.replace("name: resnet", f"name: {name}")
    if not revisions:
        return found
    written = ", ".join(f"{revision}: {{}}" for revision in revisions)
    return f"{found}revisions: {{{written}}}\ntraffic: {{split: {{{revisions[0]}: 100}}}}\n"


class TestClash:
    def test_a_revision_cannot_take_the_address_of_another_model(
        self, refusals: Refusals, files: Callable[..., dict[str, str]]
    ) -> None:
        (problem,) = refusals(files(bert="large", bert_large=""))
        assert (problem.file, problem.line, problem.field) == ("models/bert.yaml", 5, "revisions.large")
        assert "models/bert.yaml" in problem.message
        assert "models/bert-large.yaml" in problem.message
        assert problem.message.endswith("are both named bert-large")

    def test_two_revisions_cannot_make_the_same_deployment(
        self, refusals: Refusals, files: Callable[..., dict[str, str]]
    ) -> None:
        (problem,) = refusals(files(bert="large-v1", bert_large=""))
        assert (problem.file, problem.field) == ("models/bert.yaml", "revisions.large-v1")
        assert "revision v1 of bert-large in models/bert-large.yaml" in problem.message

    def test_the_default_revision_clashes_too(self, refusals: Refusals, files: Callable[..., dict[str, str]]) -> None:
        (problem,) = refusals(files(bert="", bert_v1="x"))
        assert (problem.file, problem.line, problem.field) == ("models/bert.yaml", 1, "name")

    def test_a_stack_is_told_about_the_revision_that_it_added(
        self, refusals: Refusals, files: Callable[..., dict[str, str]]
    ) -> None:
        override = {"bert": {"revisions": {"large": {}}}}
        (problem,) = refusals(files(bert="", bert_large=""), {"environment": "dev", "models": override})
        assert (problem.file, problem.field) == ("Pulumi.test.yaml", "models.bert.revisions.large")

    def test_a_stack_that_removes_the_revision_removes_the_clash(
        self, load_stack: Load, files: Callable[..., dict[str, str]]
    ) -> None:
        override = {"bert": {"revisions": {"large": None}}}
        found = load_stack(files(bert="v1 large", bert_large=""), {"environment": "dev", "models": override})
        assert len(found.models) == 2

    def test_it_is_told_together_with_the_mistakes_of_the_files(
        self, refusals: Refusals, files: Callable[..., dict[str, str]]
    ) -> None:
        found = files(bert="large", bert_large="")
        found["bert.yaml"] += "colour: red\n"
        assert {problem.field for problem in refusals(found)} == {"colour", "revisions.large"}

    def test_two_models_of_one_name_are_one_mistake(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals({"a.yaml": five_lines, "b.yaml": five_lines})
        assert problem.field == "name"

    def test_names_that_only_begin_alike_are_free(self, load_stack: Load, files: Callable[..., dict[str, str]]) -> None:
        assert len(load_stack(files(bert="v1 v2", bert_large="v1 v2", bert_l="v1")).models) == 3


def made(models: Mapping[str, list[str]]) -> list[str]:
    """Names of the Services that models with these revisions need, as often as they are needed."""
    workloads = [
        names.workload(model, revision)
        for model, revisions in models.items()
        for revision in revisions or [names.DEFAULT_REVISION]
    ]
    return [*models, *workloads]


class TestEveryName:
    @settings(max_examples=150)
    @given(MODELS)
    def test_an_estate_is_accepted_exactly_when_no_two_services_share_a_name(
        self, models: dict[str, list[str]]
    ) -> None:
        five_lines = "name: resnet\nowner: vision\nrepository: s3://acme/resnet\nresources: {cpu: 1, memory: 2Gi}\n"
        with TemporaryDirectory() as folder:
            for name, revisions in models.items():
                (Path(folder) / f"{name}.yaml").write_text(text(five_lines, name, revisions))
            try:
                load(Path(folder), {"environment": "dev"}, "Pulumi.test.yaml")
                accepted = True
            except SpecError as refused:
                assert all("are both named" in problem.message for problem in refused.problems)  # noqa: PT017
                accepted = False
        assert accepted == (len(set(made(models))) == len(made(models)))
