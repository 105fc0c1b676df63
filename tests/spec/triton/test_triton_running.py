"""Platforms, instances, warm-up and the other policies of a running model."""

from collections.abc import Callable

import pytest

from spec.problems import Problem
from spec.triton import ModelConfig, instance_count

Judge = Callable[..., list[Problem]]
Configure = Callable[[str], ModelConfig]

X = "{name: x, data_type: TYPE_FP32, dims: [-1, 3]}"
SAMPLE = "name: s, batch_size: 1"
CACHED = "response_cache: {enable: true}"

PLATFORMS = {
    "a platform of another backend": (
        "{platform: onnxruntime_onnx, backend: onnxruntime}",
        "{platform: tensorflow_graphdef, backend: onnxruntime, input: [I], output: [I]}".replace("I", X),
        ["platform"],
    ),
    "an unknown platform": ("platform: pytorch_libtorch", "platform: pytorch_libtorhc", ["platform"]),
    "a platform of a known backend": (
        "{platform: x, backend: mine}",
        "{platform: x, backend: pytorch}",
        ["platform"],
    ),
    "a platform as backend": ("backend: onnxruntime", "backend: onnxruntime_onnx", ["backend"]),
    "ensemble as backend": ("backend: python", "backend: ensemble", ["backend"]),
    "a graph without tensors": (
        f"{{platform: tensorflow_graphdef, input: [{X}], output: [{X}]}}",
        "platform: tensorflow_graphdef",
        ["input", "output"],
    ),
    "model files elsewhere": (
        "{default_model_filename: model.onnx, cc_model_filenames: {'8.0': a100.plan}}",
        "{default_model_filename: ../model.onnx, cc_model_filenames: {'8.0': /a100.plan, sm80: b.plan}}",
        ["default_model_filename", "cc_model_filenames.8.0", "cc_model_filenames.sm80"],
    ),
    "operations outside ONNX": (
        "{backend: onnxruntime, model_operations: {op_library_filename: [libops.so]}}",
        "{backend: pytorch, model_operations: {op_library_filename: [libops.so]}}",
        ["model_operations.op_library_filename"],
    ),
    "an agent without a name": (
        "model_repository_agents: {agents: [{name: checksum}]}",
        "model_repository_agents: {agents: [{parameters: {a: b}}]}",
        ["model_repository_agents.agents[0].name"],
    ),
}

INSTANCES = {
    "a GPU that nobody asks for": (
        "instance_group: [{kind: KIND_CPU}, {kind: KIND_AUTO}, {kind: KIND_MODEL}]",
        "instance_group: [{kind: KIND_CPU}, {kind: KIND_GPU}]",
        ["instance_group[1].kind"],
    ),
    "GPUs of a CPU": (
        "instance_group: [{kind: KIND_CPU, count: 2}]",
        "instance_group: [{kind: KIND_CPU, gpus: [0]}, {kind: KIND_MODEL, gpus: [0]}, {gpus: [0]}]",
        ["instance_group[0].gpus", "instance_group[1].gpus", "instance_group[2].gpus"],
    ),
    "a negative count": (
        "instance_group: [{count: 1}]",
        "instance_group: [{count: -1}]",
        ["instance_group[0].count"],
    ),
    "profiles outside TensorRT": (
        "{backend: tensorrt, instance_group: [{profile: ['0', '1']}]}",
        "{backend: python, instance_group: [{profile: ['1'], secondary_devices: [{}]}]}",
        ["instance_group[0].profile", "instance_group[0].secondary_devices"],
    ),
    "a profile that is no number": (
        "{backend: tensorrt, instance_group: [{profile: ['0']}]}",
        "{backend: tensorrt, instance_group: [{profile: ['-1', a]}]}",
        ["instance_group[0].profile[0]", "instance_group[0].profile[1]"],
    ),
    "resources": (
        """
        instance_group: [{rate_limiter: {resources: [{name: R1, count: 4},
          {name: R2, count: 2, global: true}]}}]
        """,
        "instance_group: [{rate_limiter: {resources: [{count: 4}, {name: R1}, {name: R1, count: 1}]}}]",
        [f"instance_group[0].rate_limiter.resources[{end}" for end in ("0].name", "1].count", "2].name")],
    ),
    "a resource both global and not": (
        """
        instance_group:
          - {rate_limiter: {resources: [{name: R1, count: 4, global: true}]}}
          - {rate_limiter: {resources: [{name: R1, count: 2, global: true}]}}
        """,
        """
        instance_group:
          - {rate_limiter: {resources: [{name: R1, count: 4, global: true}]}}
          - {rate_limiter: {resources: [{name: R1, count: 2}]}}
        """,
        ["instance_group[1].rate_limiter.resources[0].global"],
    ),
}

WARMUP = {
    "a batch that the model does not take": (
        "{max_batch_size: 4, model_warmup: [{name: s, batch_size: 4}]}",
        "{max_batch_size: 4, model_warmup: [{name: s, batch_size: 5}, {name: t}]}",
        ["model_warmup[0].batch_size", "model_warmup[1].batch_size"],
    ),
    "a batch without batching": (
        f"model_warmup: [{{{SAMPLE}}}]",
        "model_warmup: [{name: s, batch_size: 2}]",
        ["model_warmup[0].batch_size"],
    ),
    "inputs that are not there": (
        f"""
        input: [{X}, {{name: o, data_type: TYPE_INT8, dims: [1], optional: true}}]
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_FP32, dims: [4, 3], zero_data: true}}}}}}]
        """,
        f"""
        input: [{X}]
        model_warmup: [{{{SAMPLE}, inputs: {{y: {{data_type: TYPE_FP32, dims: [4, 3], zero_data: true}}}}}}]
        """,
        ["model_warmup[0].inputs.y", "model_warmup[0].inputs"],
    ),
    "data that does not fit": (
        f"""
        input: [{X}]
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_FP32, dims: [1, 3], random_data: true}}}}}}]
        """,
        f"""
        input: [{X}]
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_INT8, dims: [1, 4], random_data: true}}}}}}]
        """,
        ["model_warmup[0].inputs.x.data_type", "model_warmup[0].inputs.x.dims"],
    ),
    "data without a size, a type or a source": (
        f"model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_FP32, dims: [1], zero_data: true}}}}}}]",
        f"model_warmup: [{{{SAMPLE}, inputs: {{x: {{dims: [-1]}}}}}}]",
        [f"model_warmup[0].inputs.x{end}" for end in (".data_type", ".dims[0]", "")],
    ),
    "texts": (
        f"""
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_STRING,
          dims: [1], input_data_file: raw}}}}}}]
        """,
        f"""
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_STRING,
          dims: [1], random_data: true}}}}}}]
        """,
        ["model_warmup[0].inputs.x.random_data"],
    ),
    "a source that is false, a file elsewhere": (
        f"""
        model_warmup: [{{{SAMPLE}, inputs: {{x: {{data_type: TYPE_INT8,
          dims: [1], input_data_file: raw}}}}}}]
        """,
        """
        model_warmup:
          - name: s
            batch_size: 1
            inputs:
              x: {data_type: TYPE_INT8, dims: [1], zero_data: false}
              y: {data_type: TYPE_INT8, dims: [1], input_data_file: ../raw}
        """,
        ["model_warmup[0].inputs.x.zero_data", "model_warmup[0].inputs.y.input_data_file"],
    ),
    "controls and states": (
        f"""
        input: [{X}]
        sequence_batching:
          control_input: [{{name: s, control: [{{kind: CONTROL_SEQUENCE_START, fp32_false_true: [0, 1]}}]}}]
        model_warmup:
          - name: s
            batch_size: 1
            inputs:
              s: {{data_type: TYPE_FP32, dims: [1], zero_data: true}}
              x: {{data_type: TYPE_FP32, dims: [1, 3], zero_data: true}}
        """,
        f"""
        input: [{X}]
        model_warmup:
          - name: s
            batch_size: 1
            inputs:
              s: {{data_type: TYPE_FP32, dims: [1], zero_data: true}}
              x: {{data_type: TYPE_FP32, dims: [1, 3], zero_data: true}}
        """,
        ["model_warmup[0].inputs.s"],
    ),
}

POLICIES = {
    "no version": (
        "version_policy: {latest: {num_versions: 2}}",
        "version_policy: {latest: {}}",
        ["version_policy.latest.num_versions"],
    ),
    "no policy": ("version_policy: {all: {}}", "version_policy: {}", ["version_policy"]),
    "no listed version": (
        "version_policy: {specific: {versions: [1, 3]}}",
        "version_policy: {specific: {}}",
        ["version_policy.specific.versions"],
    ),
    "versions that cannot be": (
        "version_policy: {specific: {versions: [1]}}",
        "version_policy: {specific: {versions: [0, 3, 3]}}",
        ["version_policy.specific.versions[0]", "version_policy.specific.versions[2]"],
    ),
    "a cache of a decoupled model": (
        f"{{model_transaction_policy: {{decoupled: false}}, {CACHED}}}",
        f"{{model_transaction_policy: {{decoupled: true}}, {CACHED}}}",
        ["response_cache.enable"],
    ),
    "metrics": (
        """
        model_metrics: {metric_control: [{metric_identifier: {family: f},
          histogram_options: {buckets: [1, 2.5]}}]}
        """,
        """
        model_metrics: {metric_control: [{histogram_options: {buckets: [2, 1]}},
          {metric_identifier: {family: f}}]}
        """,
        [
            "model_metrics.metric_control[0].metric_identifier.family",
            "model_metrics.metric_control[0].histogram_options.buckets",
            "model_metrics.metric_control[1].histogram_options.buckets",
        ],
    ),
    "TensorRT's own settings": (
        "{backend: tensorrt, optimization: {priority: PRIORITY_MAX, eager_batching: true}}",
        "{backend: onnxruntime, optimization: {priority: PRIORITY_MAX, eager_batching: true}}",
        ["optimization.eager_batching", "optimization.priority"],
    ),
    "CUDA without a GPU": (
        "optimization: {graph: {level: 1}, input_pinned_memory: {enable: false}}",
        "optimization: {cuda: {graphs: true, graph_spec: [{}]}}",
        ["optimization.cuda.graphs", "optimization.cuda.graph_spec"],
    ),
    "accelerators": (
        "optimization: {execution_accelerators: {cpu_execution_accelerator: [{name: openvino}]}}",
        """
        optimization:
          execution_accelerators:
            gpu_execution_accelerator: [{name: tensorrt}]
            cpu_execution_accelerator: [{parameters: {a: b}}]
        """,
        [
            "optimization.execution_accelerators.gpu_execution_accelerator",
            "optimization.execution_accelerators.cpu_execution_accelerator[0].name",
        ],
    ),
}

ALL = PLATFORMS | INSTANCES | WARMUP | POLICIES


@pytest.mark.parametrize(("good", "bad", "fields"), ALL.values(), ids=ALL)
def test_rule(judge: Judge, good: str, bad: str, fields: list[str]) -> None:
    assert judge(good) == []
    assert [problem.field for problem in judge(bad)] == fields


def test_gpu_settings_on_a_gpu(judge: Judge) -> None:
    good = f"""
    backend: tensorrt
    max_batch_size: 8
    input: [{X}]
    instance_group: [{{kind: KIND_GPU, count: 2, gpus: [0, 1]}}]
    optimization:
      cuda:
        graphs: true
        graph_spec: [{{batch_size: 8, input: {{x: {{dim: [4, 3]}}}}}}]
      execution_accelerators: {{gpu_execution_accelerator: [{{name: tensorrt}}]}}
    """
    assert judge(good, gpu=True) == []


def test_a_graph_must_fit_the_model(judge: Judge) -> None:
    bad = f"""
    backend: tensorrt
    max_batch_size: 8
    input: [{X}]
    instance_group: [{{kind: KIND_GPU, gpus: [0, -1, 0]}}]
    optimization:
      cuda:
        graph_spec:
          - batch_size: 9
            input: {{x: {{dim: [4, 4]}}, y: {{dim: [1]}}}}
            graph_lower_bound: {{batch_size: 0, input: {{x: {{dim: [-1, 3]}}}}}}
    """
    at = "optimization.cuda.graph_spec[0]"
    assert [problem.field for problem in judge(bad, gpu=True)] == [
        "instance_group[0].gpus[1]",
        "instance_group[0].gpus[2]",
        f"{at}.batch_size",
        f"{at}.input.x.dim",
        f"{at}.input.y",
        f"{at}.graph_lower_bound.batch_size",
        f"{at}.graph_lower_bound.input.x.dim[0]",
    ]


def test_cuda_of_another_backend(judge: Judge) -> None:
    (problem,) = judge("{backend: onnxruntime, optimization: {cuda: {graphs: true}}}", gpu=True)
    assert problem.field == "optimization.cuda.graphs"


@pytest.mark.parametrize("backend", ["python", "dali", "openvino", "vllm", "fil", "our_own_backend", "tensorflow"])
def test_backends_are_an_open_set(judge: Judge, backend: str) -> None:
    assert judge(f"backend: {backend}") == []


@pytest.mark.parametrize(
    ("text", "gpus", "count"),
    [
        ("{}", 1, 1),
        ("backend: python", 4, 1),
        ("instance_group: [{kind: KIND_AUTO}]", 1, 1),
        ("instance_group: [{kind: KIND_CPU, count: 4}]", 1, 4),
        ("{backend: python, instance_group: [{kind: KIND_CPU}]}", 1, 1),
        ("{backend: onnxruntime, instance_group: [{kind: KIND_CPU}]}", 1, 2),
        ("{platform: tensorflow_savedmodel, instance_group: [{kind: KIND_CPU}]}", 1, 2),
        ("instance_group: [{kind: KIND_GPU, count: 2}, {kind: KIND_CPU, count: 3}]", 1, 5),
        ("instance_group: [{kind: KIND_GPU, count: 2}]", 4, 8),
        ("instance_group: [{kind: KIND_GPU, count: 2, gpus: [0, 1]}]", 4, 4),
        ("instance_group: [{count: 2, gpus: [0, 1]}]", 1, 4),
        ("{platform: ensemble, ensemble_scheduling: {}}", 1, 0),
    ],
)
def test_instance_count(configure: Configure, text: str, gpus: int, count: int) -> None:
    assert instance_count(configure(text), gpus=gpus) == count
