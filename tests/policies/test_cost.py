"""Policies about cost, and the table of prices."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from policies import cost
from policies.judging.judge import Judge, Outcome, Verdict
from policies.judging.levels import Level
from policies.judging.policy import Policy
from policies.judging.settings import StackPolicies
from policies.judging.unknown import SEALED, UNKNOWN
from policies.judging.view import Resource, View
from policies.reading import prices
from policies.reading.prices import PoolPrice, PriceTable, estate_price, load_prices
from spec import eks, names
from spec.estate import EstateSpec
from spec.problems import SpecError

TABLE = PriceTable(region="eu-west-1", date="2026-01-02", source="made up", hourly={"g5.xlarge": 1.0, "g5.12xlarge": 4})
GOOD = {"region": "eu-west-1", "date": "2026-01-02", "source": "made up", "hourly": {"g5.xlarge": 1}}
OWNED = {names.OWNER_LABEL: "vision"}
OURS = {names.PART_OF_LABEL: names.PROJECT}


def view(*resources: Resource, pools: tuple[dict[str, Any], ...] = (), prod: bool = True, **policies: Any) -> View:
    settings = {
        "environment": "prod" if prod else "dev",
        "cluster": {"provider": "existing"},
        "gpuPools": list(pools),
    }
    return View("test", EstateSpec.model_validate(settings), StackPolicies.model_validate(policies), resources)


def judged(policy: Policy, found: View) -> list[Verdict]:
    judge = Judge([policy], found)
    each = [verdict for one in found.resources for verdict in judge.judge_object(one)]
    return [*each, *judge.judge_estate(found.resources)]


def group(name: str = "g5", **inputs: Any) -> Resource:
    scaling = {"minSize": 1, "maxSize": 3}
    return Resource(
        prices.NODE_GROUP, name, {"instanceTypes": ["g5.xlarge"], "scalingConfig": scaling, "tags": OURS} | inputs
    )


# --- prices


def test_a_month_has_730_hours_of_the_fewest_and_of_the_most_nodes() -> None:
    found = estate_price(view(group(), group("big", instanceTypes=["g5.12xlarge"])), TABLE)
    assert (found.low, found.high, found.unpriced) == (730 + 2920, 3 * 730 + 3 * 2920, ())
    assert found.pools == (
        PoolPrice("g5", "g5.xlarge", (1, 3), (1, 3), 730, 2190),
        PoolPrice("big", "g5.12xlarge", (1, 3), (4, 12), 2920, 8760),
    )
    assert "eu-west-1" in found.note
    assert "2026-01-02" in found.note


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"scalingConfig": None}, PoolPrice("g5", "g5.xlarge", (1, 2), (1, 2), 730, 1460)),
        ({"capacityType": "SPOT"}, PoolPrice("g5", "g5.xlarge", (1, 3), (1, 3), 730, 2190, spot=True)),
        ({"nodeGroupName": "cards"}, PoolPrice("cards", "g5.xlarge", (1, 3), (1, 3), 730, 2190)),
        (
            {"instanceTypes": ["g5.12xlarge", "g5.xlarge"]},
            PoolPrice("g5", "g5.12xlarge, g5.xlarge", (1, 3), (1, 12), 730, 8760),
        ),
    ],
)
def test_what_a_node_group_leaves_out_or_to_chance(inputs: dict[str, Any], expected: PoolPrice) -> None:
    assert estate_price(view(group(**inputs)), TABLE).pools == (expected,)


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ({"instanceTypes": ["g9.xlarge"]}, "g5: no price for g9.xlarge"),
        ({"instanceTypes": ["g5.xlarge", "g9.xlarge"]}, "g5: no price for g9.xlarge"),
        ({"instanceTypes": None}, "g5: no price for an instance type that is not said"),
        ({"instanceTypes": UNKNOWN}, "g5: instanceTypes is unknown"),
        ({"instanceTypes": [UNKNOWN]}, "g5: a value is not known before the update"),
        ({"scalingConfig": {"minSize": 1, "maxSize": UNKNOWN}}, "g5: scalingConfig.maxSize is unknown"),
    ],
)
def test_what_has_no_price_is_named_and_does_not_pass_for_free(inputs: dict[str, Any], why: str) -> None:
    found = estate_price(view(group(**inputs), group("other")), TABLE)
    assert (found.unpriced, found.low, found.high) == ((why,), 730, 2190)
    (verdict,) = judged(cost.monthly_cost, view(group(**inputs), monthlyBudget=1e6))
    assert (verdict.outcome, verdict.level, verdict.message) == (
        Outcome.UNDECIDED,
        Level.ADVISORY,
        f"cannot decide: {why}",
    )


@pytest.mark.parametrize("provider", ["existing", "simulated"])
def test_nodes_of_others_are_named_and_simulated_ones_cost_nothing(provider: str) -> None:
    pool = {
        "name": "a100",
        "provider": "existing",
        "nodes": 2,
        "gpusPerNode": 8,
        "gpuModel": "A100",
        "gpuMemory": "80Gi",
    }
    settings = {"environment": "dev", "gpuPools": [pool | {"provider": provider}]}
    cluster = {"cluster": {"provider": "existing" if provider == "existing" else "embedded"}}
    found = estate_price(View("test", EstateSpec.model_validate(settings | cluster)), TABLE)
    named = ("a100: its nodes are not made by this stack",) if provider == "existing" else ()
    assert (found.low, found.high, found.unpriced) == (0, 0, named)


def test_the_table_has_every_instance_type_that_a_pool_may_name() -> None:
    """One is sold in capacity blocks only, at a price of the day."""
    known = load_prices().hourly
    assert set(eks._BY_TYPE) - set(known) == {"p5e.48xlarge"}
    families = {f"{family}.{size}" for family in eks._FAMILIES for size in ("xlarge", "2xlarge", "12xlarge")}
    assert families <= set(known)
    assert all(eks.EksSpec.model_construct(instance_type=kind).cards for kind in known)


def test_a_larger_instance_of_a_family_with_as_many_cards_costs_more() -> None:
    """Figures that were mixed up between two lines of the table would stand out here."""
    known = load_prices().hourly
    for family in eks._FAMILIES:
        for smaller, larger in (
            ("xlarge", "2xlarge"), ("2xlarge", "4xlarge"), ("4xlarge", "8xlarge"), ("8xlarge", "16xlarge"),
        ):  # fmt: skip
            assert known[f"{family}.{smaller}"] < known[f"{family}.{larger}"], family


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"date": None}, "date"),
        ({"date": "yesterday"}, "date"),
        ({"region": "Frankfurt"}, "region"),
        ({"source": " "}, "source"),
        ({"currency": "EUR"}, "currency"),
        ({"hourly": {"g5.xlarge": -1}}, "hourly.g5.xlarge"),
        ({"hourly": {"g5.xlarge": 0}}, "hourly.g5.xlarge"),
        ({"hourly": {"g5.xlarge": "1.006"}}, "hourly.g5.xlarge"),
        ({"hourly": {"G5 XLARGE": 1}}, "hourly.G5 XLARGE"),
    ],
)
def test_a_table_that_is_wrong_is_refused(tmp_path: Path, change: dict[str, Any], field: str) -> None:
    content = {key: value for key, value in (GOOD | change).items() if value is not None}
    (tmp_path / "policies").mkdir()
    (tmp_path / prices.PRICES_FILE).write_text(yaml.safe_dump(content))
    with pytest.raises(SpecError) as refused:
        load_prices(tmp_path)
    assert [(one.field, one.file) for one in refused.value.problems] == [(field, prices.PRICES_FILE)]


def test_a_table_names_every_mistake_at_once(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / prices.PRICES_FILE).write_text("region: us-east-1\nhourly: {g5.xlarge: -1, g6.xlarge: none}\n")
    with pytest.raises(SpecError) as refused:
        load_prices(tmp_path)
    assert {one.field for one in refused.value.problems} == {"date", "source", "hourly.g5.xlarge", "hourly.g6.xlarge"}


def test_a_folder_without_a_table_is_a_mistake_like_another(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"prices\.yaml"):
        load_prices(tmp_path)


# --- the budget


@pytest.mark.parametrize(("budget", "broken"), [(None, False), (2203.13, True), (2203.14, False), (1, True)])
def test_the_budget_is_broken_by_the_most_nodes_already(budget: float | None, broken: bool) -> None:
    """g5.xlarge at 1.006 USD an hour, three nodes: 2203.14 USD."""
    policies: dict[str, Any] = {} if budget is None else {"monthlyBudget": budget}
    verdicts = judged(cost.monthly_cost, view(group(), **policies))
    assert [one.outcome for one in verdicts] == [Outcome.VIOLATED] * broken
    assert all("734 to 2,203 USD a month" in one.message and "check yours" in one.message for one in verdicts)


def test_what_is_too_dear_already_is_said_though_something_has_no_price() -> None:
    found = view(group(), group("odd", instanceTypes=["g9.xlarge"]), monthlyBudget=100)
    assert [one.outcome for one in judged(cost.monthly_cost, found)] == [Outcome.VIOLATED]


# --- dev nodes


@pytest.mark.parametrize(
    ("inputs", "broken"),
    [
        ({}, True),
        ({"scalingConfig": {"minSize": 0, "maxSize": 3}}, False),
        ({"scalingConfig": None}, True),
        ({"instanceTypes": ["m7i.large"]}, False),
        ({"instanceTypes": ["m7i.large", "p5.4xlarge"]}, True),
        ({"instanceTypes": None, "amiType": "AL2023_x86_64_NVIDIA"}, True),
        ({"instanceTypes": None, "amiType": "AL2023_x86_64_STANDARD"}, False),
        ({"instanceTypes": None}, False),
    ],
)
def test_only_nodes_with_gpus_have_to_go_in_dev(inputs: dict[str, Any], broken: bool) -> None:
    assert bool(judged(cost.dev_nodes_never_zero, view(group(**inputs), prod=False))) == broken
    assert judged(cost.dev_nodes_never_zero, view(group(**inputs))) == []


def test_unknown_fewest_nodes_are_undecided() -> None:
    found = view(group(scalingConfig={"minSize": UNKNOWN}), prod=False)
    assert [(one.outcome, one.level) for one in judged(cost.dev_nodes_never_zero, found)] == [
        (Outcome.UNDECIDED, Level.ADVISORY)
    ]


# --- labels


def labelled(kind: str, namespace: str, labels: Any, pod_labels: Any = None) -> Resource:
    spec = {"template": {"metadata": {"labels": pod_labels}}} if kind == "Deployment" else {}
    metadata = {"name": "x", "namespace": namespace, "labels": labels}
    return Resource(f"kubernetes:apps/v1:{kind}", "x", {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("found", "wrong"),
    [
        (labelled("Deployment", "serving", OWNED, OWNED), []),
        (labelled("Deployment", "serving", OURS, OURS | OWNED), ["it"]),
        (labelled("Deployment", "serving", OWNED, OURS), ["its pods"]),
        (labelled("Deployment", "monitoring", OURS, OURS), []),
        (labelled("Deployment", "monitoring", None, None), ["it", "its pods"]),
        (labelled("Deployment", "monitoring", OWNED, OWNED), []),
        (labelled("Deployment", "monitoring", {names.OWNER_LABEL: ""}, OURS), ["it"]),
        (labelled("Service", "serving", OURS), ["it"]),
        (labelled("Service", "monitoring", OURS), []),
        (labelled("Pod", "serving", OWNED), []),
        (labelled("Pod", "serving", {}), ["it"]),
        (labelled("ConfigMap", "serving", {}), []),
        (group(), []),
        (group(tags=None), ["it"]),
        (group(tags=OWNED), []),
        (Resource("aws:s3/bucketV2:BucketV2", "models", {}), ["it"]),
        (Resource("aws:autoscaling/tag:Tag", "t", {}), []),
    ],
)
def test_who_has_to_say_whose_it_is(found: Resource, wrong: list[str]) -> None:
    messages = [one.message for one in judged(cost.owner_labels, view(found))]
    assert [message.partition(" of ")[2].partition(" is no ")[0] for message in messages] == wrong


@pytest.mark.parametrize("value", [UNKNOWN, SEALED])
def test_an_owner_that_nobody_can_read_is_undecided(value: object) -> None:
    found = labelled("Service", "serving", {names.OWNER_LABEL: value})
    assert [one.outcome for one in judged(cost.owner_labels, view(found))] == [Outcome.UNDECIDED]
