"""Fixtures of the tests on model files and stack files."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import settings

from spec.catalog import Estate, load
from spec.problems import Problem, SpecError

# How long one example takes says nothing on a busy machine.
settings.register_profile("project", deadline=None, max_examples=60)
settings.load_profile("project")

STACK_FILE = "Pulumi.test.yaml"


@pytest.fixture
def load_stack(tmp_path: Path) -> Callable[..., Estate]:
    """Load model files (name of the file -> text) with settings, by default those of an empty dev stack."""

    def _load(files: Mapping[str, str], settings: Mapping[str, object] | None = None) -> Estate:
        models = tmp_path / "models"
        models.mkdir(exist_ok=True)
        for name, text in files.items():
            (models / name).write_text(text, encoding="utf-8")
        return load(models, settings or {"environment": "dev"}, STACK_FILE)

    return _load


@pytest.fixture
def refusals(load_stack: Callable[..., Estate]) -> Callable[..., list[Problem]]:
    """Every problem of a stack that must be refused; each must name its file and a way out."""

    def _refusals(files: Mapping[str, str], settings: Mapping[str, object] | None = None) -> list[Problem]:
        with pytest.raises(SpecError) as refused:
            load_stack(files, settings)
        for problem in refused.value.problems:
            assert problem.file, problem
            assert problem.message, problem
            assert problem.fix, problem
        return list(refused.value.problems)

    return _refusals


@pytest.fixture
def five_lines() -> str:
    """The smallest model file, ready for more lines."""
    return "name: resnet\nowner: vision\nrepository: s3://acme/resnet\nresources: {cpu: 1, memory: 2Gi}\n"
