"""Ensembles: their settings, their graph and their members."""

from collections.abc import Callable

import pytest

from spec.problems import Problem

Judge = Callable[..., list[Problem]]

STEP = "ensemble_scheduling.step"
HEAD = """
name: pipeline
platform: ensemble
max_batch_size: 8
input: [{name: RAW, data_type: TYPE_STRING, dims: [1]}]
output: [{name: CLASS, data_type: TYPE_FP32, dims: [1000]}, {name: MASK, data_type: TYPE_FP32, dims: [-1, 9]}]
ensemble_scheduling:
  step:
"""
PREPARE = "{model_name: prepare, model_version: -1, input_map: {BYTES: RAW}, output_map: {IMAGE: image}}"
CLASSIFY = "{model_name: classify, model_version: 2, input_map: {IN: image}, output_map: {OUT: CLASS}}"
SEGMENT = "{model_name: segment, model_version: -1, input_map: {IN: image}, output_map: {OUT: MASK}}"

MEMBERS: dict[str, str | None] = {
    "prepare": """
        max_batch_size: 8
        input: [{name: BYTES, data_type: TYPE_STRING, dims: [1]}]
        output: [{name: IMAGE, data_type: TYPE_FP32, dims: [3, 224, 224]}]
        """,
    "classify": """
        max_batch_size: 64
        input:
          - {name: IN, data_type: TYPE_FP32, dims: [3, -1, -1]}
          - {name: K, data_type: TYPE_INT32, dims: [1], optional: true}
        output: [{name: OUT, data_type: TYPE_FP32, dims: [1000]}]
        """,
    "segment": None,
}


def pipeline(*steps: str, head: str = HEAD) -> str:
    return head + "".join(f"    - {step}\n" for step in steps)


def changed(name: str, old: str, new: str) -> dict[str, str | None]:
    """The members, one of them changed in one place."""
    text = MEMBERS[name]
    assert text is not None
    assert text.count(old) == 1, (name, old)
    return MEMBERS | {name: text.replace(old, new)}


def test_a_fan_out_is_clean(judge: Judge, judge_ensemble: Judge) -> None:
    text = pipeline(PREPARE, CLASSIFY, SEGMENT)
    assert judge(text) == []
    assert judge_ensemble(text, MEMBERS) == []
    assert judge_ensemble(pipeline(SEGMENT, CLASSIFY, PREPARE), MEMBERS) == []  # the order does not matter


def test_an_ordinary_model_has_no_graph(judge_ensemble: Judge) -> None:
    assert judge_ensemble("backend: python", {}) == []


SETTINGS = {
    "instance_group: [{count: 1}]": ["instance_group"],
    "model_warmup: [{name: s}]": ["model_warmup"],
    "optimization: {}": ["optimization"],
    "backend: python": ["backend"],
}


@pytest.mark.parametrize(("line", "fields"), SETTINGS.items(), ids=SETTINGS)
def test_what_an_ensemble_must_not_have(judge: Judge, line: str, fields: list[str]) -> None:
    text = pipeline(PREPARE, CLASSIFY, SEGMENT)
    assert [problem.field for problem in judge(f"{line}\n{text}")] == fields


def test_platform_and_steps_come_together(judge: Judge, judge_ensemble: Judge) -> None:
    text = pipeline(PREPARE, CLASSIFY, SEGMENT)
    assert [problem.field for problem in judge(text.replace("platform: ensemble", ""))] == ["platform"]
    assert [problem.field for problem in judge("platform: ensemble")] == ["ensemble_scheduling"]
    empty = HEAD.replace("ensemble_scheduling:\n  step:\n", "ensemble_scheduling: {}\n")
    assert [problem.field for problem in judge_ensemble(empty, MEMBERS)] == [STEP]


GRAPH = {
    "an output that no step writes": (
        (PREPARE, CLASSIFY),
        ["output[1].name"],
        "'MASK' is not written",
    ),
    "an input that nothing writes": (
        (PREPARE, CLASSIFY.replace("image", "imgae"), SEGMENT),
        [f"{STEP}[1].input_map.IN"],
        "step 1 (classify) reads 'imgae'",
    ),
    "a tensor that two steps write": (
        (PREPARE, CLASSIFY, SEGMENT, SEGMENT),
        [f"{STEP}[3].output_map.OUT"],
        "'MASK' is written twice: step 2 (segment)",
    ),
    "a tensor that two outputs of one step write": (
        (PREPARE, CLASSIFY, SEGMENT.replace("OUT: MASK", "OUT: MASK, ALSO: MASK")),
        [f"{STEP}[2].output_map.OUT"],
        "written twice",
    ),
    "an ensemble input that a step writes": (
        (PREPARE, CLASSIFY.replace("OUT: CLASS", "OUT: CLASS, ALSO: RAW"), SEGMENT),
        [f"{STEP}[1].output_map.ALSO"],
        "the request writes it already",
    ),
    "a tensor that nothing reads": (
        (PREPARE, CLASSIFY, SEGMENT.replace("OUT: MASK", "OUT: MASK, ALSO: spare")),
        [f"{STEP}[2].output_map.ALSO"],
        "'spare' is not used",
    ),
    "a circle": (
        (
            PREPARE.replace("BYTES: RAW", "BYTES: RAW, AGAIN: back"),
            CLASSIFY.replace("OUT: CLASS", "OUT: CLASS, ALSO: back"),
            SEGMENT,
        ),
        [f"{STEP}[0].input_map"],
        "step 0 (prepare) -> step 1 (classify) -> step 0 (prepare)",
    ),
    "a step that reads itself": (
        (PREPARE, CLASSIFY.replace("IN: image", "IN: image, K: CLASS"), SEGMENT),
        [f"{STEP}[1].input_map"],
        "step 1 (classify) -> step 1 (classify)",
    ),
    "a version that Triton reads as 0": (
        (PREPARE.replace("model_version: -1, ", ""), CLASSIFY, SEGMENT.replace("-1", "-2")),
        [f"{STEP}[0].model_version", f"{STEP}[2].model_version"],
        "version 0",
    ),
    "a reserved field": (
        (PREPARE.replace("model_name", "model_namespace: x, model_name"), CLASSIFY, SEGMENT),
        [f"{STEP}[0].model_namespace"],
        "reserved",
    ),
    "an empty name": (
        (PREPARE, CLASSIFY.replace("IN: image", "IN: image, K: ''"), SEGMENT),
        [f"{STEP}[1].input_map.K"],
        "an entry maps",
    ),
}


@pytest.mark.parametrize(("steps", "fields", "words"), GRAPH.values(), ids=GRAPH)
def test_graph(judge_ensemble: Judge, steps: tuple[str, ...], fields: list[str], words: str) -> None:
    problems = judge_ensemble(pipeline(*steps), dict.fromkeys(MEMBERS))
    assert [problem.field for problem in problems] == fields
    assert words in problems[0].message


def test_an_input_that_no_step_reads(judge_ensemble: Judge) -> None:
    head = HEAD.replace("input: [", "input: [{name: UNUSED, data_type: TYPE_INT8, dims: [1]}, ")
    (problem,) = judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT, head=head), MEMBERS)
    assert problem.field == "input[0].name"
    assert "no step reads the input 'UNUSED'" in problem.message


def test_a_step_without_parts_and_an_ensemble_without_tensors(judge_ensemble: Judge) -> None:
    problems = judge_ensemble("{platform: ensemble, ensemble_scheduling: {step: [{}]}}", {})
    names = ("model_name", "model_version", "input_map", "output_map")
    assert [problem.field for problem in problems] == [
        "input",
        "output",
        *(f"{STEP}[0].{name}" for name in names),
    ]


def test_all_mistakes_of_a_graph_at_once(judge_ensemble: Judge) -> None:
    text = pipeline(PREPARE.replace("RAW", "RAWW"), CLASSIFY.replace("CLASS}", "MASK}"), SEGMENT)
    assert {problem.field for problem in judge_ensemble(text, dict.fromkeys(MEMBERS))} == {
        f"{STEP}[0].input_map.BYTES",
        f"{STEP}[2].output_map.OUT",
        "input[0].name",
        "output[0].name",
    }


def test_a_long_chain_has_no_limit(judge_ensemble: Judge) -> None:
    steps = [
        f"{{model_name: m{at}, model_version: -1, input_map: {{i: t{at}}}, output_map: {{o: t{at + 1}}}}}"
        for at in range(300)
    ]
    head = """
platform: ensemble
input: [{name: t0, data_type: TYPE_FP32, dims: [1]}]
output: [{name: t300, data_type: TYPE_FP32, dims: [1]}]
ensemble_scheduling:
  step:
"""
    assert judge_ensemble(pipeline(*steps, head=head), {f"m{at}": None for at in range(300)}) == []


MEMBER = {
    "a smaller batch": (
        changed("classify", "max_batch_size: 64", "max_batch_size: 4"),
        [f"{STEP}[1].model_name"],
        "batches of 8, its member 'classify' of 4",
    ),
    "no batching where the ensemble batches": (
        changed("prepare", "max_batch_size: 8", "max_batch_size: 0"),
        [f"{STEP}[0].input_map.BYTES", f"{STEP}[1].input_map.IN"],
        "full shape",
    ),
    "another type": (
        changed("classify", "{name: IN, data_type: TYPE_FP32", "{name: IN, data_type: TYPE_FP16"),
        [f"{STEP}[1].input_map.IN"],
        "TYPE_FP32 as prepare's output 'IMAGE' and TYPE_FP16",
    ),
    "other dims": (
        changed("prepare", "[3, 224, 224]", "[224, 224, 3]"),
        [f"{STEP}[1].input_map.IN"],
        "full shape [-1, 224, 224, 3]",
    ),
    "another output": (
        changed("classify", "dims: [1000]", "dims: [1001]"),
        ["output[0]"],
        "[-1, 1001]",
    ),
    "another type of the request": (
        changed("prepare", "{name: BYTES, data_type: TYPE_STRING", "{name: BYTES, data_type: TYPE_UINT8"),
        [f"{STEP}[0].input_map.BYTES"],
        "TYPE_STRING as the ensemble's input",
    ),
    "keys that the member does not have": (
        changed("classify", "name: OUT", "name: OUTPUT"),
        [f"{STEP}[1].output_map.OUT"],
        "has no output 'OUT'",
    ),
    "an input that is not mapped": (
        changed("classify", ", optional: true", ""),
        [f"{STEP}[1].input_map"],
        "'K' of 'classify' is not mapped",
    ),
    "an unknown model": (
        {"prepare": None, "classfy": None, "segment": None},
        [f"{STEP}[1].model_name"],
        "no model 'classify'",
    ),
    "an ensemble that comes back": (
        MEMBERS
        | {"segment": "ensemble_scheduling: {step: [{model_name: other}]}"}
        | {"other": "ensemble_scheduling: {step: [{model_name: pipeline}]}"},
        [f"{STEP}[2].model_name"],
        "would run itself",
    ),
}


@pytest.mark.parametrize(("members", "fields", "words"), MEMBER.values(), ids=MEMBER)
def test_members(judge_ensemble: Judge, members: dict[str, str | None], fields: list[str], words: str) -> None:
    problems = judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT), members)
    assert [problem.field for problem in problems] == fields
    assert words in problems[0].message


def test_an_unknown_model_is_suggested(judge_ensemble: Judge) -> None:
    members = {"prepare": None, "clasify": None, "segment": None}
    (problem,) = judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT), members)
    assert problem.fix == "write 'clasify'"


def test_an_ensemble_cannot_run_itself(judge_ensemble: Judge) -> None:
    text = pipeline(PREPARE, CLASSIFY, SEGMENT.replace("segment", "pipeline"))
    (problem,) = judge_ensemble(text, MEMBERS | {"pipeline": None})
    assert problem.field == f"{STEP}[2].model_name"


def test_a_member_without_batching_takes_the_batch_as_a_dimension(judge_ensemble: Judge) -> None:
    members = MEMBERS | {
        "classify": """
            input: [{name: IN, data_type: TYPE_FP32, dims: [-1, 3, 224, 224]}]
            output: [{name: OUT, data_type: TYPE_FP32, dims: [-1, 1000]}]
            """
    }
    assert judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT), members) == []


@pytest.mark.parametrize("most", [0, 1])
def test_a_batch_of_one_is_added_or_removed(judge_ensemble: Judge, most: int) -> None:
    head = HEAD.replace("max_batch_size: 8", f"max_batch_size: {most}")
    members = changed("prepare", "max_batch_size: 8", "max_batch_size: 0")
    assert judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT, head=head), members) == []


DECOUPLED = "model_transaction_policy: {decoupled: true}\n"


def test_a_decoupled_policy_comes_from_a_member(judge_ensemble: Judge) -> None:
    members = MEMBERS | {"segment": "backend: python"}
    text = DECOUPLED + pipeline(PREPARE, CLASSIFY, SEGMENT)
    assert [problem.field for problem in judge_ensemble(text, members)] == ["model_transaction_policy.decoupled"]
    members = MEMBERS | {"segment": "backend: python", "prepare": DECOUPLED}
    assert judge_ensemble(text, members) == []


def test_streams_of_different_decoupled_models_are_not_joined(judge_ensemble: Judge) -> None:
    members = MEMBERS | {"segment": DECOUPLED}
    (problem,) = judge_ensemble(pipeline(PREPARE, CLASSIFY, SEGMENT), members)
    assert problem.field == "output"
    joined = CLASSIFY.replace("IN: image", "IN: image, K: MASK")
    problems = judge_ensemble(pipeline(PREPARE, joined, SEGMENT), members | {"classify": "backend: python"})
    assert problems[0].field == f"{STEP}[1].input_map"
