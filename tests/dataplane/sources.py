"""The models of these tests: the project's samples as they run without a GPU, and more for what the samples lack."""

from typing import Final

# Sample models with the differences that a stack may name: Python stands in for backends that need more than the wheel.
OVERRIDES: Final[dict[str, dict[str, object]]] = {
    "mobilenet": {"resources": {"gpu": None}, "config": {"backend": "python"}, "scaling": {"queueMs": None}},
    "inception-graphdef": {"resources": {"gpu": None}, "config": {"platform": None, "backend": "python"}},
    "photo-tagger": {"resources": {"gpu": None}, "members": {"classify": {"config": {"backend": "python"}}}},
}
SAMPLES: Final = ("fraud-score", "inception-graphdef", "mobilenet", "photo-tagger")

_HEAD: Final = "owner: tests\nrepository: s3://acme/models\nresources: {cpu: 1, memory: 1Gi}\n"
MORE: Final = {
    # Optional input, warm-up, reshape, a variable dimension, parameters, versions, summaries.
    "corners": _HEAD
    + """
config:
  backend: python
  max_batch_size: 8
  version_policy: {specific: {versions: [1, 3]}}
  input:
    - {name: needed, data_type: TYPE_INT32, dims: [2]}
    - {name: extra, data_type: TYPE_INT32, dims: [2], optional: true}
  output:
    - {name: sum, data_type: TYPE_INT32, dims: [2]}
    - {name: said, data_type: TYPE_STRING, dims: [-1]}
  model_warmup:
    - name: first
      batch_size: 4
      inputs: {needed: {data_type: TYPE_INT32, dims: [2], zero_data: true}}
  parameters: {threshold: {string_value: "0.5"}}
  dynamic_batching: {max_queue_delay_microseconds: 100, default_queue_policy: {max_queue_size: 64}}
server: {metrics-config: [summary_latencies=true]}
""",
    # Waits in initialize until the file GATE exists, and in execute for as long as a request says.
    "gated": _HEAD
    + """
environment: {GATE: "%(folder)s/gate", STARTED: "%(folder)s/started"}
config:
  backend: python
  input: [{name: seconds, data_type: TYPE_FP32, dims: [1]}]
  output: [{name: done, data_type: TYPE_BOOL, dims: [1]}]
""",
    "explicit": _HEAD
    + """
control: explicit
config:
  backend: python
  input: [{name: a, data_type: TYPE_FP32, dims: [1]}]
  output: [{name: b, data_type: TYPE_FP32, dims: [1]}]
members: {helper: {}}
""",
    "polled": _HEAD + "control: poll\nserver: {repository-poll-secs: 1}\n",
    # Types that JSON has no form for, in a sequence.
    "halves": _HEAD
    + """
config:
  backend: python
  max_batch_size: 2
  input:
    - {name: half, data_type: TYPE_FP16, dims: [2, -1]}
    - {name: flag, data_type: TYPE_BOOL, dims: [1]}
    - {name: word, data_type: TYPE_STRING, dims: [2]}
  output: [{name: out, data_type: TYPE_FP16, dims: [3]}]
  sequence_batching: {max_sequence_idle_microseconds: 5000000}
""",
    "rejected": _HEAD
    + """
config:
  backend: python
  input: [{name: a, data_type: TYPE_FP32, dims: [1]}]
  output: [{name: b, data_type: TYPE_FP32, dims: [1]}]
""",
}

# A config.pbtxt of the repository, for models that have none in their model file.
OWN_CONFIG: Final = """
backend: "python"
max_batch_size: 4
input { name: "amounts" data_type: TYPE_FP64 dims: 3 }
output { name: "score" data_type: TYPE_FP64 dims: 1 }
"""

# Answers zeros in the declared shape; also what these tests want to see from inside.
PYTHON_MODEL: Final = """
import json, os, pathlib, time
import numpy
import triton_python_backend_utils as pb

class TritonPythonModel:
    def initialize(self, args):
        self.config = json.loads(args["model_config"])
        while "GATE" in os.environ and not pathlib.Path(os.environ["GATE"]).exists():
            time.sleep(0.02)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        given = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
        print("executes", flush=True)
        if "seconds" in given:
            pathlib.Path(os.environ["STARTED"]).touch()
            time.sleep(float(given["seconds"][0]))
        if "needed" in given and given["needed"].min() == -1:
            return pb.InferenceResponse(error=pb.TritonError("refused by the model"))
        if "needed" in given and given["needed"].min() == -2:
            raise ValueError("an exception of the model")
        return pb.InferenceResponse([self.output(tensor, given) for tensor in self.config["output"]])

    def output(self, tensor, given):
        kind = pb.triton_string_to_numpy(tensor["data_type"])
        batch = [len(next(iter(given.values())))] if self.config["max_batch_size"] else []
        values = numpy.zeros([*batch, *(max(size, 1) for size in tensor["dims"])], dtype=kind)
        if tensor["name"] == "sum":
            values = given["needed"] + given.get("extra", 0)
        if tensor["name"] == "said":
            values[:] = f"{len(given)} inputs".encode()
        return pb.Tensor(tensor["name"], values)
"""
