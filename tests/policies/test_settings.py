"""The files of the policies: settings by stack, and waivers."""

from pathlib import Path

import pytest

from policies.judging.settings import StackPolicies, load_settings
from spec.problems import Problem, SpecError
from tests.policies.project import project

NAMES = ["gpu-by-environment", "wide-rbac"]
WAIVER = {"policy": "wide-rbac", "stack": "prod", "resource": "ClusterRole/a", "reason": "the operator needs it",
          "owner": "platform", "expires": "2027-03-31"}  # fmt: skip


def problems(folder: Path) -> list[Problem]:
    """The mistakes in the files of a project."""
    with pytest.raises(SpecError) as refused:
        load_settings(folder, NAMES)
    return list(refused.value.problems)


def test_both_files_are_read(tmp_path: Path) -> None:
    settings = {"levels": {"wide-rbac": "advisory"}, "undecided": "advisory", "gpuBudgets": {"vision": 8},
                "registries": ["nvcr.io/nvidia/"]}  # fmt: skip
    found = load_settings(
        project(tmp_path, settings={"stacks": {"prod": settings}}, waivers={"waivers": [WAIVER]}), NAMES
    )
    assert found.of("prod").levels == {"wide-rbac": "advisory"}
    assert found.of("prod").gpu_budgets == {"vision": 8}
    assert found.of("prod").registries == ["nvcr.io/nvidia/"]
    assert found.of("dev") == StackPolicies()
    assert [one.owner for one in found.waivers_of("prod")] == ["platform"]
    assert found.waivers_of("dev") == ()


def test_a_date_may_stand_without_quotes(tmp_path: Path) -> None:
    text = "waivers:\n- {policy: wide-rbac, stack: prod, resource: A/b, reason: r, owner: a, expires: 2027-03-31}\n"
    assert load_settings(project(tmp_path, waivers=text), NAMES).waivers[0].expires == "2027-03-31"


def test_a_policy_that_there_is_not(tmp_path: Path) -> None:
    text = "stacks:\n  prod:\n    levels:\n      wide-rback: advisory\n"
    (found,) = problems(project(tmp_path, settings=text))
    assert (found.file, found.line, found.value) == ("policies/settings.yaml", 4, "wide-rback")
    assert found.message == "there is no such policy"
    assert "wide-rbac" in found.fix
    assert found.allowed == "gpu-by-environment, wide-rbac"


def test_a_stack_that_there_is_not(tmp_path: Path) -> None:
    (found,) = problems(project(tmp_path, settings="stacks:\n  dev: {}\n  pord: {}\n"))
    assert (found.file, found.line, found.message) == ("policies/settings.yaml", 3, "there is no such stack")
    assert "prod" in found.fix


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("policy", "wide", "there is no such policy"),
        ("stack", "production", "there is no such stack"),
        ("expires", "soon", "not a date"),
        ("expires", "2027-02-30", "not a date"),
        ("reason", "  ", "says nothing"),
        ("owner", "Platform Team", ""),
        ("resource", None, ""),
    ],
)
def test_a_waiver_with_a_mistake(tmp_path: Path, field: str, value: str | None, text: str) -> None:
    waiver = {key: one for key, one in (WAIVER | {field: value}).items() if one is not None}
    (found,) = problems(project(tmp_path, waivers={"waivers": [WAIVER, waiver]}))
    assert found.field == f"waivers[1].{field}"
    assert found.file == "policies/waivers.yaml"
    assert found.line is not None
    assert text in found.message
    assert found.fix


def test_a_field_that_there_is_not(tmp_path: Path) -> None:
    (found,) = problems(project(tmp_path, settings={"stacks": {"prod": {"level": {"wide-rbac": "advisory"}}}}))
    assert found.field == "stacks.prod.level"
    assert "levels" in found.fix


@pytest.mark.parametrize("level", ["warning", "remediate", "Mandatory"])
def test_a_level_that_there_is_not(tmp_path: Path, level: str) -> None:
    (found,) = problems(project(tmp_path, settings={"stacks": {"prod": {"levels": {"wide-rbac": level}}}}))
    assert found.field == "stacks.prod.levels.wide-rbac"
    assert "mandatory" in f"{found.allowed} {found.message}"


def test_all_mistakes_of_both_files_at_once(tmp_path: Path) -> None:
    settings = {"stacks": {"prod": {"levels": {"wide": "advisory"}}, "test": {}}}
    waivers = {"waivers": [WAIVER | {"policy": "x"}, WAIVER | {"stack": "y"}]}
    found = problems(project(tmp_path, settings=settings, waivers=waivers))
    assert {one.value for one in found} == {"wide", "test", "x", "y"}
    assert {one.file for one in found} == {"policies/settings.yaml", "policies/waivers.yaml"}


def test_a_file_that_is_no_yaml(tmp_path: Path) -> None:
    found = problems(project(tmp_path, settings="stacks: [", waivers="waivers: }"))
    assert {one.file for one in found} == {"policies/settings.yaml", "policies/waivers.yaml"}
    assert all(one.line for one in found)


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "policies" / "waivers.yaml").unlink()
    (found,) = problems(folder)
    assert found.file == "policies/waivers.yaml"
