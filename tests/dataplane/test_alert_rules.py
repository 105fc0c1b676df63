"""Every alert that the program renders, evaluated by Prometheus itself: when it fires, when not, and what it says."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from local.toolchain import ToolchainForTests
from tests.components.alerting import seconds
from tests.components.conftest import FIVE_LINES, Render, run
from tests.dataplane.alert_cases import MODEL_CASES, MODELS, SETTINGS, Case, Series
from tests.dataplane.platform_alert_cases import PLATFORM_CASES

CASES: Final = (*MODEL_CASES, *PLATFORM_CASES)
_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")

Rule = Mapping[str, Any]


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """The program's objects, as it would create them."""
    folder = tmp_path_factory.mktemp("alerts")
    (folder / "models").mkdir()
    for name, more in MODELS.items():
        (folder / "models" / f"{name}.yaml").write_text(FIVE_LINES.format(name=name) + more)
    return run(folder, {"environment": "dev", **SETTINGS})


@pytest.fixture(scope="module")
def groups(rendered: Render) -> list[dict[str, Any]]:
    return [group for one in rendered.objects("PrometheusRule") for group in one["spec"]["groups"]]


def promtool(tools: ToolchainForTests, *arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run(
        [tools.promtool, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    return done.returncode, done.stdout


def found(groups: Sequence[Rule], case: Case) -> Rule:
    """The rule of a case."""
    about = [
        rule
        for group in groups
        for rule in group["rules"]
        if (rule["alert"], rule["labels"]["severity"]) == (case.alert, case.severity)
        and case.revision in {"", f"{rule['labels'].get('service')}-{rule['labels'].get('revision')}"}
    ]
    assert len(about) == 1, f"{len(about)} rules"
    return about[0]


def expected(rule: Rule, case: Case) -> dict[str, Any]:
    """What an Alertmanager gets."""
    labels = {**case.labels, **rule["labels"]}
    annotations = dict(rule["annotations"])
    summary = _LABEL.sub(lambda match: labels[match[1]], annotations["summary"])
    annotations["summary"] = summary.replace("{{ $value }}", case.value)
    assert ("{{" in annotations["description"]) == bool(case.says)
    return {"exp_labels": labels, "exp_annotations": annotations | ({"description": case.says} if case.says else {})}


def evaluate(
    tools: ToolchainForTests, folder: Path, rule: Rule, series: Series, minute: float, alerts: list[dict[str, Any]]
) -> tuple[int, str]:
    """Whether Prometheus, given these series, has exactly these alerts firing at this minute."""
    (folder / "rules.yaml").write_text(json.dumps({"groups": [{"name": "one", "rules": [rule]}]}))
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "30s",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minute * 60:.0f}s", "alertname": rule["alert"], "exp_alerts": alerts}
                ],
            }
        ],
    }
    (folder / "tests.yaml").write_text(json.dumps(tests))
    return promtool(tools, "test", "rules", folder / "tests.yaml")


def name(case: Case) -> str:
    return f"{case.alert}-{case.severity}-{case.revision}".rstrip("-")


def test_every_alert_has_a_case(groups: list[dict[str, Any]]) -> None:
    made = {(rule["alert"], rule["labels"]["severity"]) for group in groups for rule in group["rules"]}
    assert made == {(case.alert, case.severity) for case in CASES}


def test_prometheus_takes_every_rule(
    groups: list[dict[str, Any]], tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text(json.dumps({"groups": groups}))
    code, text = promtool(tools_for_tests, "check", "rules", "--lint=all", "--lint-fatal", tmp_path / "rules.yaml")
    assert code == 0, text
    assert f"SUCCESS: {sum(len(group['rules']) for group in groups)} rules found" in text


@pytest.mark.parametrize("case", CASES, ids=name)
def test_it_fires_and_says_what_is_wrong(
    case: Case, groups: list[dict[str, Any]], tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    rule = found(groups, case)
    code, text = evaluate(tools_for_tests, tmp_path, rule, case.fires, case.minute, [expected(rule, case)])
    assert code == 0, text


@pytest.mark.parametrize("case", [case for case in CASES if case.fires], ids=name)
def test_it_waits_for_as_long_as_it_says(
    case: Case, groups: list[dict[str, Any]], tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    rule = found(groups, case)
    waits = 0 if rule["for"] == "0m" else seconds(rule["for"]) / 60
    minute = case.since + waits - 0.5
    assert 0 <= minute < case.minute
    code, text = evaluate(tools_for_tests, tmp_path, rule, case.fires, minute, [])
    assert code == 0, text


@pytest.mark.parametrize(
    ("case", "near"),
    [(case, near) for case in CASES for near in case.quiet],
    ids=lambda one: one if isinstance(one, str) else name(one),
)
def test_it_is_silent_near_the_line(
    case: Case, near: str, groups: list[dict[str, Any]], tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    code, text = evaluate(tools_for_tests, tmp_path, found(groups, case), case.quiet[near], case.minute, [])
    assert code == 0, text


def test_prometheus_notices_a_wrong_expectation(
    groups: list[dict[str, Any]], tools_for_tests: ToolchainForTests, tmp_path: Path
) -> None:
    case = CASES[0]
    rule = found(groups, case)
    code, text = evaluate(tools_for_tests, tmp_path, rule, case.fires, case.minute, [])
    assert code == 1
    assert "6% of the requests" in text
