"""The dynamic batcher and the sequence batcher."""

from collections.abc import Callable

import pytest

from spec.problems import Problem
from spec.triton import ModelConfig, parse, parse_text

Judge = Callable[..., list[Problem]]

BATCHING = {
    "a negative batch": ("max_batch_size: 0", "max_batch_size: -1", ["max_batch_size"]),
    "without batches": (
        "{max_batch_size: 1, dynamic_batching: {}}",
        "{max_batch_size: 0, dynamic_batching: {}}",
        ["dynamic_batching"],
    ),
    "preferred sizes without batches": (
        "{max_batch_size: 8, dynamic_batching: {preferred_batch_size: [4, 8]}}",
        "dynamic_batching: {preferred_batch_size: [4]}",
        ["dynamic_batching", "dynamic_batching.preferred_batch_size[0]"],
    ),
    "preferred sizes out of range": (
        "{max_batch_size: 8, dynamic_batching: {preferred_batch_size: [1, 8]}}",
        "{max_batch_size: 8, dynamic_batching: {preferred_batch_size: [0, 8, 16]}}",
        ["dynamic_batching.preferred_batch_size[0]", "dynamic_batching.preferred_batch_size[2]"],
    ),
    "no default priority": (
        "{max_batch_size: 8, dynamic_batching: {priority_levels: 3, default_priority_level: 3}}",
        "{max_batch_size: 8, dynamic_batching: {priority_levels: 3}}",
        ["dynamic_batching.default_priority_level"],
    ),
    "a policy of no level": (
        """
        max_batch_size: 8
        dynamic_batching:
          priority_levels: 2
          default_priority_level: 2
          priority_queue_policy: {1: {max_queue_size: 9}}
        """,
        """
        max_batch_size: 8
        dynamic_batching:
          priority_levels: 2
          default_priority_level: 5
          priority_queue_policy: {0: {max_queue_size: 9}, 3: {max_queue_size: 9}}
        """,
        [
            "dynamic_batching.default_priority_level",
            "dynamic_batching.priority_queue_policy.0",
            "dynamic_batching.priority_queue_policy.3",
        ],
    ),
    "priorities without levels": (
        "{max_batch_size: 8, dynamic_batching: {default_queue_policy: {timeout_action: DELAY}}}",
        """
        max_batch_size: 8
        dynamic_batching: {default_priority_level: 1, priority_queue_policy: {1: {max_queue_size: 9}}}
        """,
        ["dynamic_batching.default_priority_level", "dynamic_batching.priority_queue_policy"],
    ),
    "ordering against priorities and delays": (
        """
        max_batch_size: 8
        dynamic_batching:
          preserve_ordering: true
          default_queue_policy: {timeout_action: REJECT, default_timeout_microseconds: 9}
        """,
        """
        max_batch_size: 8
        dynamic_batching:
          preserve_ordering: true
          priority_levels: 2
          default_priority_level: 1
          default_queue_policy: {timeout_action: DELAY, default_timeout_microseconds: 9}
          priority_queue_policy: {2: {timeout_action: DELAY, default_timeout_microseconds: 9}}
        """,
        [
            "dynamic_batching.priority_levels",
            "dynamic_batching.default_queue_policy.timeout_action",
            "dynamic_batching.priority_queue_policy.2.timeout_action",
        ],
    ),
}

START = "{name: s, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}]}"
STATE = "input_name: i, output_name: o, data_type: TYPE_FP32, dims: [-1]"
ROOT = "sequence_batching"

SEQUENCES = {
    "preferred sizes above the batch": (
        """
        {max_batch_size: 4,
          sequence_batching: {oldest: {max_candidate_sequences: 9, preferred_batch_size: [4]}}}
        """,
        """
        {max_batch_size: 4,
          sequence_batching: {oldest: {max_candidate_sequences: -1, preferred_batch_size: [5]}}}
        """,
        [f"{ROOT}.oldest.preferred_batch_size[0]", f"{ROOT}.oldest.max_candidate_sequences"],
    ),
    "a share above one": (
        "sequence_batching: {direct: {minimum_slot_utilization: 0.5, max_queue_delay_microseconds: 5}}",
        "sequence_batching: {direct: {minimum_slot_utilization: 1.5}}",
        [f"{ROOT}.direct.minimum_slot_utilization"],
    ),
    "a delay without a share": (
        "sequence_batching: {direct: {}}",
        "sequence_batching: {direct: {max_queue_delay_microseconds: 5}}",
        [f"{ROOT}.direct.max_queue_delay_microseconds"],
    ),
    "a control kind twice": (
        f"sequence_batching: {{control_input: [{START}]}}",
        f"""
        sequence_batching:
          control_input: [{START}, {{name: t, control: [{{kind: CONTROL_SEQUENCE_START,
              int32_false_true: [0, 1]}}]}}]
        """,
        [f"{ROOT}.control_input[1].control[0].kind"],
    ),
    "a control tensor twice": (
        f"""
        sequence_batching:
          control_input: [{START}, {{name: e, control: [{{kind: CONTROL_SEQUENCE_END,
              bool_false_true: [false, true]}}]}}]
        """,
        f"""
        sequence_batching:
          control_input: [{START}, {{name: s, control: [{{kind: CONTROL_SEQUENCE_END,
              bool_false_true: [false, true]}}]}}]
        """,
        [f"{ROOT}.control_input[1].name"],
    ),
    "a control without a name, a kind or a pair": (
        f"sequence_batching: {{control_input: [{START}]}}",
        "sequence_batching: {control_input: [{}, {name: a, control: [{kind: CONTROL_SEQUENCE_READY}]}]}",
        [
            f"{ROOT}.control_input[0].name",
            f"{ROOT}.control_input[0].control",
            f"{ROOT}.control_input[1].control[0]",
        ],
    ),
    "a pair of three": (
        f"sequence_batching: {{control_input: [{START}]}}",
        """
        sequence_batching:
          control_input: [{name: s, control: [{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1, 2]}]}]
        """,
        [f"{ROOT}.control_input[0].control[0].fp32_false_true"],
    ),
    "a correlation id of a wrong type": (
        """
        sequence_batching: {control_input: [{name: c,
          control: [{kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_UINT64}]}]}
        """,
        """
        sequence_batching:
          control_input:
            - name: c
              control: [{kind: CONTROL_SEQUENCE_CORRID, data_type: TYPE_FP32, int32_false_true: [0, 1]}]
        """,
        [
            f"{ROOT}.control_input[0].control[0].data_type",
            f"{ROOT}.control_input[0].control[0].int32_false_true",
        ],
    ),
    "a state without its parts": (
        f"sequence_batching: {{state: [{{{STATE}}}]}}",
        "sequence_batching: {state: [{}]}",
        [f"{ROOT}.state[0].{name}" for name in ("input_name", "output_name", "data_type", "dims")],
    ),
    "a state tensor twice": (
        f"sequence_batching: {{state: [{{{STATE}}}]}}",
        f"sequence_batching: {{state: [{{{STATE}}}, {{{STATE}}}]}}",
        [f"{ROOT}.state[1].input_name", f"{ROOT}.state[1].output_name"],
    ),
    "an initial state that does not fit": (
        f"""
        sequence_batching:
          state: [{{{STATE}, initial_state: [{{name: n, data_type: TYPE_FP32, dims: [4], zero_data: true}}]}}]
        """,
        f"""
        sequence_batching: {{state: [{{{STATE},
          initial_state: [{{data_type: TYPE_INT32, dims: [4, 4]}}]}}]}}
        """,
        [f"{ROOT}.state[0].initial_state[0]{end}" for end in (".name", ".data_type", ".dims", "")],
    ),
    "an initial state of no size": (
        f"""
        sequence_batching:
          state: [{{{STATE}, initial_state: [{{name: n, data_type: TYPE_FP32, dims: [4],
              data_file: zeros.bin}}]}}]
        """,
        f"""
        sequence_batching:
          state: [{{{STATE}, initial_state: [{{name: n, data_type: TYPE_FP32, dims: [-1],
              data_file: ../zeros.bin}}]}}]
        """,
        [f"{ROOT}.state[0].initial_state[0].{end}" for end in ("dims[0]", "data_file")],
    ),
    "zero data that is false, and two initial states": (
        f"sequence_batching: {{state: [{{{STATE}}}]}}",
        f"""
        sequence_batching:
          state:
            - {STATE.replace(", ", chr(10) + "              ")}
              initial_state:
                - {{name: n, data_type: TYPE_FP32, dims: [4], zero_data: false}}
                - {{name: m, data_type: TYPE_FP32, dims: [4], zero_data: true}}
        """,
        [f"{ROOT}.state[0].initial_state", f"{ROOT}.state[0].initial_state[0].zero_data"],
    ),
    "growable memory without a GPU": (
        f"sequence_batching: {{state: [{{{STATE}, use_same_buffer_for_input_output: true}}]}}",
        f"sequence_batching: {{state: [{{{STATE}, use_growable_memory: true}}]}}",
        [f"{ROOT}.state[0].use_growable_memory"],
    ),
    "the response cache": (
        "{sequence_batching: {}, response_cache: {enable: false}}",
        "{sequence_batching: {}, response_cache: {enable: true}}",
        ["response_cache.enable"],
    ),
}


@pytest.mark.parametrize(("good", "bad", "fields"), BATCHING.values(), ids=BATCHING)
def test_batching(judge: Judge, good: str, bad: str, fields: list[str]) -> None:
    assert judge(good) == []
    assert [problem.field for problem in judge(bad)] == fields


@pytest.mark.parametrize(("good", "bad", "fields"), SEQUENCES.values(), ids=SEQUENCES)
def test_sequences(judge: Judge, good: str, bad: str, fields: list[str]) -> None:
    assert judge(good) == []
    assert [problem.field for problem in judge(bad)] == fields


def test_growable_memory_on_a_gpu(judge: Judge) -> None:
    state = f"{STATE}, use_growable_memory: true, use_same_buffer_for_input_output: true"
    assert judge(f"sequence_batching: {{state: [{{{state}}}]}}", gpu=True) == []


def test_only_one_scheduler() -> None:
    config, (problem,) = parse({"max_batch_size": 4, "dynamic_batching": {}, "sequence_batching": {}})
    assert problem.field == "sequence_batching"
    assert "dynamic_batching" in problem.message
    assert config.HasField("dynamic_batching")
    config, (problem,) = parse_text("dynamic_batching {}\nsequence_batching {}\n")
    assert config == ModelConfig()
    assert problem.line == 2
