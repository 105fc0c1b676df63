"""The dashboards: every query is PromQL over series that exist, and Grafana can show every panel."""

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import promql_parser as promql
import pytest

from components.monitoring import dashboards
from spec import names
from spec.pool import GpuPoolSpec
from spec.signals import GPU, PENDING, QPS, QUEUE_TIME, Windows
from tests.components.alerting import nodes
from tests.components.conftest import POOLS, ROOT
from tests.components.dashboarding import (
    CHOSEN,
    EXPORTED,
    WINDOWS,
    PanelQuery,
    boards,
    column,
    panels,
    queries,
    variables,
)
from tests.dataplane.metrics import COUNTERS

BOARDS: Final = boards()
QUERIES: Final = queries()
PANELS: Final = [
    pytest.param(one, id=f"{name}-{one['title']}") for name, board in BOARDS.items() for one in panels(board)
]
MODEL: Final = names.series_label(names.MODEL_LABEL)
REVISION: Final = names.series_label(names.REVISION_LABEL)
SHADOW: Final = ("Shadow's latency", "Shadow's compute", "Shadow's additional failures")


def panel(board: str, name: str) -> dict[str, Any]:
    (found,) = [one for one in panels(BOARDS[board]) if one["title"] == name]
    return found


def expressions(board: str, name: str) -> list[str]:
    return [target["expr"] for target in panel(board, name)["targets"]]


class TestDashboards:
    def test_each_has_an_identifier_that_never_changes(self) -> None:
        assert {name: board["uid"] for name, board in BOARDS.items()} == {
            "estate": "triton-estate-estate",
            "model": "triton-estate-model",
            "gpu-nodes": "triton-estate-gpu-nodes",
            "traffic": "triton-estate-traffic",
        }

    @pytest.mark.parametrize("name", BOARDS)
    def test_grafana_takes_the_identifier(self, name: str) -> None:
        assert re.fullmatch(r"[a-zA-Z0-9_-]{8,40}", BOARDS[name]["uid"])

    def test_two_runs_give_the_same_text(self) -> None:
        code = (
            "from components.monitoring import dashboards; from spec.signals import Windows;"
            "print(dashboards.render(Windows('5m', '2m'), []))"
        )
        texts = {
            subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
            ).stdout
            for seed in ("1", "2")
        }
        assert len(texts) == 1

    @pytest.mark.parametrize("name", BOARDS)
    def test_each_says_what_it_is_about(self, name: str) -> None:
        board = BOARDS[name]
        assert board["title"]
        assert board["description"]
        assert board["tags"] == ["triton-estate"]
        assert board["schemaVersion"] >= 39
        assert not board["editable"]

    @pytest.mark.parametrize("name", BOARDS)
    def test_all_fit_into_a_config_map(self, name: str) -> None:
        # A ConfigMap holds 1 MiB; half of it leaves room.
        assert len(dashboards.render(WINDOWS, [])[name].encode()) < 2**19


class TestPanels:
    @pytest.mark.parametrize("one", PANELS)
    def test_each_has_title_words_and_unit(self, one: dict[str, Any]) -> None:
        assert one["title"]
        assert one["description"].endswith(".")
        assert one["fieldConfig"]["defaults"]["unit"]
        if one["type"] == "table":
            assert all(column(one, target["refId"])["unit"] for target in one["targets"])

    @pytest.mark.parametrize("one", PANELS)
    def test_each_asks_the_chosen_prometheus(self, one: dict[str, Any]) -> None:
        assert one["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert one["targets"]

    @pytest.mark.parametrize("one", PANELS)
    def test_no_two_queries_of_one_share_a_name(self, one: dict[str, Any]) -> None:
        ids = [target["refId"] for target in one["targets"]]
        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("name", BOARDS)
    def test_titles_tell_those_of_a_dashboard_apart(self, name: str) -> None:
        titles = [one["title"] for one in panels(BOARDS[name])]
        assert len(titles) == len(set(titles))

    @pytest.mark.parametrize("name", BOARDS)
    def test_identifiers_differ(self, name: str) -> None:
        ids = [one["id"] for one in BOARDS[name]["panels"]]
        assert len(ids) == len(set(ids))

    @pytest.mark.parametrize("name", BOARDS)
    def test_none_lies_on_another_or_off_the_screen(self, name: str) -> None:
        taken: set[tuple[int, int]] = set()
        for one in BOARDS[name]["panels"]:
            place = one["gridPos"]
            assert 0 <= place["x"] <= place["x"] + place["w"] <= 24
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert cells
            assert not cells & taken
            taken |= cells

    @pytest.mark.parametrize("name", BOARDS)
    def test_rows_come_in_reading_order(self, name: str) -> None:
        places = [(one["gridPos"]["y"], one["gridPos"]["x"]) for one in BOARDS[name]["panels"]]
        assert all(one < two for one, two in pairwise(places))


class TestVariables:
    @pytest.mark.parametrize("name", BOARDS)
    def test_those_that_are_used_are_defined_and_the_other_way_round(self, name: str) -> None:
        board = BOARDS[name]
        defined = [variable["name"] for variable in board["templating"]["list"]]
        used = [variables(str(one)) for one in board["panels"]]
        used += [variables(str(variable["query"])) for variable in board["templating"]["list"]]
        assert sorted(set().union(*used)) == sorted(defined)

    @pytest.mark.parametrize("name", BOARDS)
    def test_one_needs_only_those_before_it(self, name: str) -> None:
        known: set[str] = set()
        for variable in BOARDS[name]["templating"]["list"]:
            assert variables(str(variable["query"])) <= known
            known.add(variable["name"])

    @pytest.mark.parametrize("name", BOARDS)
    def test_several_values_are_matched_as_an_expression(self, name: str) -> None:
        several = [variable["name"] for variable in BOARDS[name]["templating"]["list"] if variable["multi"]]
        for one in panels(BOARDS[name]):
            for target in one["targets"]:
                for variable in several:
                    assert not re.search(rf'="[^"]*\${variable}\b', target["expr"].replace("=~", "~"))

    def test_one_dashboard_serves_every_model(self) -> None:
        (choice,) = [one for one in BOARDS["model"]["templating"]["list"] if one["name"] == "model"]
        assert choice["query"] == f'label_values(nv_inference_request_success{{namespace="$namespace"}}, {MODEL})'


class TestQueries:
    @pytest.mark.parametrize("query", QUERIES, ids=str)
    def test_each_is_promql(self, query: PanelQuery) -> None:
        assert not variables(query.expr)
        promql.parse(query.expr)

    @pytest.mark.parametrize("query", QUERIES, ids=str)
    def test_each_reads_metrics_that_somebody_exports(self, query: PanelQuery) -> None:
        read = {node.name for node in nodes(query.expr) if isinstance(node, promql.VectorSelector)}
        assert read
        assert read <= EXPORTED

    @pytest.mark.parametrize("query", QUERIES, ids=str)
    def test_a_counter_is_never_shown_raw(self, query: PanelQuery) -> None:
        for metric in raw(promql.parse(query.expr)):
            assert metric not in COUNTERS

    def test_a_raw_counter_would_be_noticed(self) -> None:
        assert list(raw(promql.parse("sum(nv_inference_count) / 2"))) == ["nv_inference_count"]

    def test_other_ranges_reach_every_query(self) -> None:
        for before, after in zip(QUERIES, queries(Windows(gpu="7m", rate="3m")), strict=True):
            assert after.expr == before.expr.replace("[5m]", "[7m]").replace("[2m]", "[3m]")

    def test_a_time_slice_is_the_part_of_a_card_that_the_pools_make_it(self) -> None:
        pools = [GpuPoolSpec.model_validate(pool) for pool in POOLS]
        (four,) = [one.expr for one in queries(pools=pools) if (one.dashboard, one.panel) == ("estate", "Asked for")]
        assert f'resource="{names.series_label("nvidia.com/gpu.shared")}"}})) / 4' in four


def raw(node: Any) -> Iterator[str]:
    """Metrics whose values are used as they are: in no range, and not only for their labels."""
    if isinstance(node, promql.VectorSelector):
        yield node.name or ""
    elif isinstance(node, promql.AggregateExpr) and str(node.op) == "group":
        return
    else:
        children = [getattr(node, name, None) for name in ("lhs", "rhs", "expr")]
        for child in [*children, *getattr(node, "args", [])]:
            if child is not None:
                yield from raw(child)


class TestSignals:
    """What scales is shown as the autoscaler sees it."""

    SERVICE: Final = ('namespace="$namespace"', f'{MODEL}="$model"', f'{REVISION}=~"$revision"')
    TRITON: Final = (*SERVICE, 'model=~"$triton_model"')
    POD: Final = ('namespace="$namespace",pod=~"$pod"',)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("Requests", QPS.query(TRITON, ["model"], WINDOWS)),
            ("Pending requests", PENDING.query(TRITON, ["pod"], WINDOWS)),
            ("Where the time of a request goes", QUEUE_TIME.query(TRITON, [], WINDOWS)),
            ("GPU use by pod", GPU["whole"].query(POD, ["namespace", "pod"], WINDOWS)),
            ("GPU use by pod", GPU["mig"].query(POD, ["namespace", "pod"], WINDOWS)),
            ("GPU use by pod", GPU["hami"].query(POD, ["namespace", "pod"], WINDOWS)),
        ],
    )  # fmt: skip
    def test_of_a_model(self, name: str, expected: str) -> None:
        assert any(expected in found for found in expressions("model", name))


class TestRows:
    """What the dashboards have to show, panel by panel."""

    @pytest.mark.parametrize(
        ("board", "name", "metrics"),
        [
            ("model", "Requests", {"nv_inference_request_success"}),
            ("model", "Failed requests", {"nv_inference_request_success", "nv_inference_request_failure"}),
            (
                "model",
                "Where the time of a request goes",
                {
                    "nv_inference_request_success",
                    "nv_inference_queue_duration_us",
                    "nv_inference_compute_input_duration_us",
                    "nv_inference_compute_infer_duration_us",
                    "nv_inference_compute_output_duration_us",
                },
            ),
            ("model", "Mean batch", {"nv_inference_count", "nv_inference_exec_count"}),
            (
                "model",
                "Replicas",
                {
                    "kube_deployment_status_replicas_available",
                    "kube_horizontalpodautoscaler_spec_min_replicas",
                    "kube_horizontalpodautoscaler_spec_max_replicas",
                    "kube_horizontalpodautoscaler_status_desired_replicas",
                },
            ),
            ("model", "Replicas that answer", {"triton_heartbeat_up"}),
            ("model", "Answer to the heartbeat", {"triton_heartbeat_duration_seconds"}),
            ("gpu-nodes", "Utilisation", {"DCGM_FI_DEV_GPU_UTIL"}),
            ("gpu-nodes", "Memory", {"DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"}),
            ("gpu-nodes", "Temperature", {"DCGM_FI_DEV_GPU_TEMP"}),
            ("gpu-nodes", "Last XID error", {"DCGM_FI_DEV_XID_ERRORS"}),
            ("gpu-nodes", "Tensor cores", {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"}),
            ("traffic", "Share of the requests", {"nv_inference_request_success"}),
            ("traffic", "Latency of both", {"nv_inference_request_duration_us", "nv_inference_request_success"}),
        ],
    )
    def test_a_panel_shows(self, board: str, name: str, metrics: set[str]) -> None:
        found = [node for text in expressions(board, name) for node in nodes(filled_text(text))]
        assert {node.name for node in found if isinstance(node, promql.VectorSelector)} == metrics

    @pytest.mark.parametrize("name", [*SHADOW, "Latency of both", "Failed requests of both"])
    def test_a_shadow_is_measured_as_the_primary_is(self, name: str) -> None:
        asked = " ".join(expressions("traffic", name))
        primary, shadow = (f'{REVISION}="${one}"' for one in ("primary", "shadow"))
        assert asked.count(primary) == asked.count(shadow) > 0

    def test_models_are_ranked_by_traffic(self) -> None:
        table = panel("estate", "Models by traffic")
        (first, *_) = table["targets"]
        assert table["options"]["sortBy"] == [
            {"desc": True, "displayName": column(table, first["refId"])["displayName"]}
        ]
        assert QPS.series in first["expr"]

    def test_a_model_of_the_ranking_leads_to_its_dashboard(self) -> None:
        assert BOARDS["model"]["uid"] in str(panel("estate", "Models by traffic")["fieldConfig"])


def filled_text(text: str) -> str:
    return re.sub(r"\$(\w+)", lambda match: match[0] if match[1].isdigit() else "x", text)


def test_every_variable_has_a_value_to_try() -> None:
    defined = {variable["name"] for board in BOARDS.values() for variable in board["templating"]["list"]}
    assert set(CHOSEN) == defined
