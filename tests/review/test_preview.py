"""Reading previews, the real ones and those that are none."""

import json
from pathlib import Path
from typing import Any

import pytest

from policies.judging.unknown import SEALED, UNKNOWN
from review.changes import Op
from review.preview import read_preview
from spec.problems import SpecError
from tests.review.making import spec

URN = "urn:pulumi:prod::triton-estate::triton-estate:index:TritonEstate$kubernetes:apps/v1:Deployment::ranker-v1"
NOT_YET = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def step(op: str, old: dict[str, Any] | None = None, new: dict[str, Any] | None = None, urn: str = URN) -> Any:
    """A step as the engine prints it."""
    states = {"oldState": old, "newState": new}
    return {"op": op, "urn": urn, **{name: {"urn": urn, "inputs": one} for name, one in states.items() if one}}


def written(folder: Path, *steps: Any, **more: Any) -> Path:
    """A preview in a file."""
    path = folder / "preview.json"
    path.write_text(json.dumps({"steps": steps, **more}))
    return path


class TestSteps:
    @pytest.mark.parametrize(
        ("steps", "op"),
        [
            ([step("same", {"a": 1}, {"a": 1})], Op.SAME),
            ([step("create", None, {"a": 1})], Op.CREATE),
            ([step("import", None, {"a": 1})], Op.CREATE),
            ([step("update", {"a": 1}, {"a": 2})], Op.UPDATE),
            (
                [
                    step("create-replacement", {"a": 1}, {"a": 2}),
                    step("replace", {"a": 1}, {"a": 2}),
                    step("delete-replaced", {"a": 1}),
                ],
                Op.REPLACE,
            ),
        ],
    )
    def test_several_steps_of_a_resource_are_one_change(self, tmp_path: Path, steps: list[Any], op: Op) -> None:
        (change,) = read_preview(written(tmp_path, *steps), "prod", spec()).changes
        assert change.op is op
        assert change.new
        assert (change.new.type, change.new.name, change.new.urn) == ("kubernetes:apps/v1:Deployment", "ranker-v1", URN)

    def test_what_goes_is_not_there_afterwards(self, tmp_path: Path) -> None:
        gone = step("delete", {"a": 1}, urn=URN.replace("ranker", "other"))
        plan = read_preview(written(tmp_path, step("same", {}, {"a": 1}), gone), "prod", spec())
        assert [one.name for one in plan.after.resources] == ["ranker-v1"]
        assert plan.before
        assert len(plan.before.resources) == 2

    def test_marks_of_what_is_unknown_or_secret_are_read(self, tmp_path: Path) -> None:
        new = {"a": NOT_YET, "b": [{"c": "[secret]"}], "d": 1.0}
        plan = read_preview(written(tmp_path, step("create", None, new)), "prod", spec())
        found = plan.after.resources[0].inputs
        assert found["a"] is UNKNOWN
        assert found["b"][0]["c"] is SEALED
        assert found["d"] == 1

    @pytest.mark.parametrize(
        ("exported", "cards"),
        [
            ({}, {"a100": 4}),
            ({"a100": {"gpus": 8}}, {"a100": 8}),
            ({"a100": {"gpus": 4}, "old": {"gpus": 2, "gpuModel": "T4", "gpuMemory": "16Gi"}}, {"a100": 4, "old": 2}),
        ],
    )
    def test_pools_before_are_those_of_the_last_outputs(
        self, tmp_path: Path, exported: dict[str, Any], cards: dict[str, int]
    ) -> None:
        root = "urn:pulumi:prod::triton-estate::pulumi:pulumi:Stack::triton-estate-prod"
        stack = {"op": "same", "urn": root, "oldState": {"outputs": {"gpuPools": exported}}, "newState": {}}
        plan = read_preview(written(tmp_path, stack, step("same", {}, {"a": 1})), "prod", spec())
        assert plan.before
        assert {pool.name: pool.cards for pool in plan.before.spec.gpu_pools} == cards
        assert {pool.name: pool.cards for pool in plan.after.spec.gpu_pools} == {"a100": 4}

    def test_of_a_new_stack_there_were_none(self, tmp_path: Path) -> None:
        plan = read_preview(written(tmp_path, step("create", None, {"a": 1})), "prod", spec())
        assert plan.before
        assert plan.before.spec.gpu_pools == []


class TestBadInput:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "not JSON"),
            ("no json", r"not JSON \(line 1\)"),
            ("[" * 100_000, "not JSON"),
            ("[]", "not a preview"),
            ('{"a": 1}', "not a preview"),
            ('{"steps": 1}', "not a list of steps"),
            ('{"steps": [1]}', "not a list of steps"),
            ('{"steps": []}', "no resource is left"),
            ('{"diagnostics": []}', "not a list of steps"),
        ],
    )
    def test_a_file_that_is_no_preview(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "preview.json").write_text(text)
        with pytest.raises(SpecError, match=said) as refused:
            read_preview(tmp_path / "preview.json", "prod", spec())
        assert f"{tmp_path / 'preview.json'}: " in str(refused.value)
        assert "write the file with `pulumi preview --json --show-sames`" in str(refused.value)

    @pytest.mark.parametrize("content", [None, b"\xff\xfe"])
    def test_a_file_that_cannot_be_read(self, tmp_path: Path, content: bytes | None) -> None:
        if content:
            (tmp_path / "preview.json").write_bytes(content)
        with pytest.raises(SpecError, match=r"cannot be read: (No such file|it is no text)"):
            read_preview(tmp_path / "preview.json", "prod", spec())

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"urn": "ranker"}, r"steps\[0\].urn: not the name of a resource"),
            ({"urn": None}, r"steps\[0\].urn: not the name of a resource"),
            ({"urn": URN.replace(":prod:", ":dev:")}, r"steps\[0\].urn: of another stack\n  value:   'dev'"),
            ({"urn": URN.replace("::triton-estate::", "::other::")}, "of another project"),
            ({"op": "explode"}, r"steps\[0\].op: not a step of a preview"),
            ({"newState": 1}, r"steps\[0\].newState: not the state of a resource"),
            ({"newState": {"inputs": 1}}, r"steps\[0\].newState: not the state of a resource"),
            ({"newState": None}, r"steps\[0\]: neither an old state nor a new one"),
        ],
    )
    def test_a_step_that_is_none(self, tmp_path: Path, change: dict[str, Any], said: str) -> None:
        with pytest.raises(SpecError, match=said):
            read_preview(written(tmp_path, step("create", None, {"a": 1}) | change), "prod", spec())

    def test_a_preview_that_failed_says_why(self, tmp_path: Path) -> None:
        said = [{"severity": "error", "message": "no such host"}, {"severity": "warning", "message": "old"}]
        path = written(tmp_path, step("create", None, {"a": 1}), diagnostics=said)
        with pytest.raises(SpecError, match="the preview failed") as refused:
            read_preview(path, "prod", spec())
        assert "no such host" in str(refused.value)
        assert "old" not in str(refused.value)

    def test_a_preview_without_what_stays_is_refused(self, tmp_path: Path) -> None:
        path = written(tmp_path, step("create", None, {"a": 1}), changeSummary={"same": 3, "create": 1})
        with pytest.raises(SpecError, match="3 resources that stay as they are were left out"):
            read_preview(path, "prod", spec())
