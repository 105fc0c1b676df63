"""Fixtures of the tests on Triton's model configuration."""

from collections.abc import Callable

import pytest
import yaml

from spec.problems import Problem
from spec.triton import ModelConfig, check, check_ensemble, parse

Judge = Callable[..., list[Problem]]


def config_of(text: str) -> ModelConfig:
    """The message that a YAML text describes; the text must be free of mistakes."""
    config, problems = parse(yaml.safe_load(text))
    assert problems == []
    return config


@pytest.fixture
def configure() -> Callable[[str], ModelConfig]:
    return config_of


@pytest.fixture
def judge() -> Judge:
    """What ``check`` says of a configuration; each problem must help."""

    def _judge(text: str, *, gpu: bool = False) -> list[Problem]:
        return helpful(check(config_of(text), gpu=gpu))

    return _judge


@pytest.fixture
def judge_ensemble() -> Judge:
    """What ``check_ensemble`` says of an ensemble and its members; each problem must help."""

    def _judge(text: str, members: dict[str, str | None]) -> list[Problem]:
        known = {name: config_of(member) if member else None for name, member in members.items()}
        return helpful(check_ensemble(config_of(text), known))

    return _judge


def helpful(problems: list[Problem]) -> list[Problem]:
    for problem in problems:
        assert problem.message
        assert problem.fix, problem
        assert problem.allowed, problem
        assert problem.field, problem
    return problems
