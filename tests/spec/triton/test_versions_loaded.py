"""How many versions of a model a server loads at once."""

import pytest

from spec import triton


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        ({}, 1),
        ({"version_policy": {"latest": {}}}, 1),
        ({"version_policy": {"latest": {"num_versions": 3}}}, 3),
        ({"version_policy": {"specific": {"versions": [1, 3]}}}, 2),
        ({"version_policy": {"specific": {"versions": [2, 2]}}}, 1),
        ({"version_policy": {"all": {}}}, 1),  # only the repository knows
    ],
)
def test_it_is_what_the_policy_says(policy: dict[str, object], count: int) -> None:
    config, problems = triton.parse(policy)
    assert problems == []
    assert triton.version_count(config) == count


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({}, "latest 1"),
        ({"version_policy": {"latest": {"num_versions": 2}}}, "latest 2"),
        ({"version_policy": {"all": {}}}, "all"),
        ({"version_policy": {"specific": {"versions": [3, 1, 3]}}}, "1, 3"),
    ],
)
def test_callers_are_told_which(policy: dict[str, object], words: str) -> None:
    config, problems = triton.parse({"backend": "python"} | policy)
    assert not problems
    assert triton.served_versions(config) == words
