"""Every bad estate is caught by its own policy and by no other, and good estates by none."""

from pathlib import Path

import pytest
import yaml

from policies.catalog import POLICIES
from policies.judging.judge import WAIVERS
from tests.policies.conftest import CORPUS, case

BAD = sorted((CORPUS / "bad").glob("*.yaml"))
GOOD = sorted((CORPUS / "good").glob("*.yaml"))


def own_policy(path: Path) -> str:
    """The policy that a bad estate breaks: its name, before a plus sign if there are several."""
    return path.stem.partition("+")[0]


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_a_bad_estate_is_caught_by_its_own_policy_and_by_no_other(path: Path) -> None:
    said = case(yaml.safe_load(path.read_text())).verdicts()
    assert {one.policy.name for one in said} == {own_policy(path)}, [
        f"{one.policy.name}: {one.message}" for one in said
    ]


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_good_estate_breaks_nothing(path: Path) -> None:
    said = case(yaml.safe_load(path.read_text())).verdicts()
    assert [f"{one.policy.name}: {one.where}: {one.message}" for one in said] == []


@pytest.mark.parametrize("base", ["prod", "dev", "bare"])
def test_the_estates_that_the_others_start_from_break_nothing(base: str) -> None:
    said = case({"base": base}).verdicts()
    assert [f"{one.policy.name}: {one.where}: {one.message}" for one in said] == []


@pytest.mark.parametrize("policy", [*POLICIES, WAIVERS], ids=lambda policy: policy.name)
def test_every_policy_has_a_bad_estate(policy) -> None:  # noqa: ANN001
    assert policy.name in {own_policy(path) for path in BAD}


def test_every_bad_estate_belongs_to_a_policy() -> None:
    assert {own_policy(path) for path in BAD} <= {policy.name for policy in (*POLICIES, WAIVERS)}
