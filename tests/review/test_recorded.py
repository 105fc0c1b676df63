"""Previews that the real engine printed, and the comments that are made of them.

They were recorded with ``pulumi preview --json --show-sames`` on a stack of two models and an Istio gateway, and cut to
what the reader looks at. After a wanted change of the comment: ``GOLDEN=write .venv/bin/pytest
tests/review/test_recorded.py``, then look at the difference.
"""

import datetime as dt
import difflib
import functools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from policies.judging.judge import Judge
from policies.judging.levels import Level, Severity
from policies.judging.pack import judge_all
from policies.judging.policy import object_policy
from policies.judging.view import Resource, View
from policies.reading import prices
from policies.reading.pods import pods_of
from review import figures
from review.changes import Op, Plan
from review.comment import Review, render
from review.judging import Result
from review.preview import read_preview
from spec.estate import EstateSpec
from spec.problems import SpecError
from spec.source import Source
from spec.validation import validate

FOLDER = Path(__file__).with_name("recorded")
RECORDED = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "failed")
TODAY = dt.date(2026, 12, 1)


@object_policy(
    "digests",
    "Images have a digest",
    why="A tag moves.",
    fix="write image: <name>@sha256:<digest>",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def digests(found: Resource, view: View) -> Iterator[str]:
    """The real policies have comments of their own to change; these two stand for them."""
    del view
    for container in pods.containers if found.model and (pods := pods_of(found)) else ():
        if "@" not in container["image"]:
            yield f"image {container['image']} has no digest"


@object_policy(
    "no-half",
    "No model shares its requests in halves",
    why="Nobody knows which half was right.",
    fix="change traffic.split",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def no_half(found: Resource, view: View) -> Iterator[str]:
    """As above."""
    del view
    for route in found.at("spec", "http", default=[]) if found.kind == "VirtualService" else ():
        if any(one.get("weight") == 50 for one in route.get("route", [])):
            yield f"route {route['name']} has a weight of 50"


@object_policy(
    "no-latest",
    "No image is the latest",
    why="Nobody knows which that is.",
    fix="name a version",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def no_latest(found: Resource, view: View) -> Iterator[str]:
    """As above."""
    del view
    for container in pods.containers if (pods := pods_of(found)) else ():
        if container["image"].endswith(":latest"):
            yield f"image {container['image']}"


@pytest.fixture(autouse=True)
def fixed_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that nobody updates."""
    table = prices.PriceTable(region="us-east-1", date="2026-01-01", source="a test", hourly={"p4d.24xlarge": 10.0})
    monkeypatch.setattr(figures, "estate_price", functools.partial(prices.estate_price, table=table))


def settings(name: str) -> EstateSpec:
    """Settings of the stack when a preview was recorded."""
    listed = yaml.safe_load((FOLDER / "stacks.yaml").read_text())
    found = listed["all"] | listed.get(name, {})
    spec, problems = validate(EstateSpec, found, Source("stacks.yaml", found))
    assert spec, problems
    return spec


def plan(name: str) -> Plan:
    """The plan of a preview."""
    return read_preview(FOLDER / f"{name}.json", "dev", settings(name))


def comment(name: str) -> str:
    """The comment that is made of a preview."""
    found = plan(name)
    judge = Judge((digests, no_half), View("dev", settings(name)), (), TODAY)
    verdicts = judge_all(judge, found.after.resources)
    verdicts.sort(key=lambda one: not one.refuses)
    result = Result("dev", tuple(verdicts), "", len(found.after.resources), len(judge.policies))
    return render([Review(result, found)], "https://git.example.com/estate/blob/main")


@pytest.mark.parametrize("name", RECORDED)
def test_the_comment_is_exactly_this(name: str) -> None:
    text = comment(name)
    path = FOLDER / f"{name}.md"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    found = difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "written", lineterm="")
    assert text == golden, "\n".join(found)


def test_what_was_recorded() -> None:
    assert set(RECORDED) >= {"first-up", "image-changed", "weights-changed", "model-removed", "pool-resized"}
    assert all((FOLDER / f"{name}.json").stat().st_size < 100_000 for name in RECORDED)


@pytest.mark.parametrize(
    ("name", "ops"),
    [
        ("first-up", {Op.CREATE, Op.SAME}),
        ("nothing", {Op.SAME}),
        ("image-changed", {Op.UPDATE, Op.SAME}),
        ("weights-changed", {Op.UPDATE, Op.SAME}),
        ("model-removed", {Op.DELETE, Op.UPDATE, Op.SAME}),
    ],
)
def test_operations_are_the_engines(name: str, ops: set[Op]) -> None:
    assert {change.op for change in plan(name).changes} == ops


def test_a_preview_that_failed_is_refused_with_the_engines_words() -> None:
    with pytest.raises(SpecError, match="the preview failed") as refused:
        plan("failed")
    assert "models/ranker.yaml" in str(refused.value)


def test_a_preview_of_another_stack_is_refused() -> None:
    with pytest.raises(SpecError, match="of another stack"):
        read_preview(FOLDER / "nothing.json", "prod", settings("nothing"))


@pytest.mark.parametrize(
    ("environment", "said"),
    [("dev", "can be merged"), ("prod", "cannot be decided before the update, which refuses it")],
)
def test_an_image_that_is_not_known_yet(environment: str, said: str, tmp_path: Path) -> None:
    mark = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    changed = (FOLDER / "image-changed.json").read_text().replace("nvcr.io/nvidia/tritonserver:25.09-py3", mark)
    (tmp_path / "preview.json").write_text(changed)
    spec = settings("image-changed").model_copy(update={"environment": environment})
    found = read_preview(tmp_path / "preview.json", "dev", spec)
    verdicts = judge_all(Judge((no_latest,), View("dev", spec), (), TODAY), found.after.resources)
    text = render([Review(Result("dev", tuple(verdicts)), found)])
    assert f"## Stack `dev`: {said}\n" in text
    assert "v2: image: `nvcr.io/nvidia/tritonserver:25.08-py3` -> `(known after the update)`" in text
    assert "  - `Deployment/ranker-v2`: cannot decide: " in text
