"""Golden renders: every object of the smallest and of the fullest model, as text that a review can read.

After a wanted change: ``GOLDEN=write .venv/bin/pytest tests/components/test_golden.py``, then look at the difference.
"""

import difflib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from spec.fields import Spec
from spec.model import ModelSpec
from spec.source import parse
from tests.components.conftest import POOLS, Render
from tests.components.exposed import stack

FOLDER = Path(__file__).with_name("golden")
POOL = POOLS[0] | {"spareGpus": 2}
FULLEST = """\
owner: search
repository: s3://https://minio.example.com:9000/models/ranker
credentials: {secret: minio-keys}
load: sync
control: explicit
resources: {cpu: 4, memory: 8Gi, gpu: 2}
pool: whole
nodeSelector: {topology.kubernetes.io/region: eu}
priority: interactive
image: registry.example.com/triton:1
environment: {OMP_NUM_THREADS: '4'}
config:
  name: ranker_ensemble
  platform: ensemble
  max_batch_size: 16
  input: [{name: QUERY, data_type: TYPE_STRING, dims: [1]}]
  output: [{name: SCORE, data_type: TYPE_FP32, dims: [-1]}]
  ensemble_scheduling:
    step:
      - {model_name: encode, model_version: -1, input_map: {text: QUERY}, output_map: {ids: ids}}
      - {model_name: score, model_version: -1, input_map: {ids: ids}, output_map: {score: SCORE}}
members:
  encode:
    config:
      backend: python
      max_batch_size: 16
      input: [{name: text, data_type: TYPE_STRING, dims: [1]}]
      output: [{name: ids, data_type: TYPE_INT32, dims: [-1]}]
      instance_group: [{count: 2, kind: KIND_CPU}]
  score: {}
server: {log-verbose: 1, metrics-config: [summary_latencies=true]}
loadTime: 12m
scaling: {min: 2, max: 6, gpu: 70, qps: 300, queueMs: 5, pending: 4, cpu: 60, memory: 80, scaleUpStabilization: 10s,
  scaleDownStabilization: 10m}
alerts: {owner: search-oncall, errorRatioPercent: 1, queueToComputePercent: 100, p99Ms: 50}
revisions:
  v1: {}
  v2: {image: 'registry.example.com/triton:2', scaling: {min: 1, max: 3}}
  twin: {credentials: {secret: null, serviceAccount: ranker}, control: null, environment: null, scaling: null}
heartbeat: {every: 30s, timeout: 5s}
debug: {lifetime: 2h, image: 'registry.example.com/triton:1-notebook'}
traffic:
  split: {v1: 90, v2: 10}
  testers: {header: {name: x-ranker, value: v2}, to: v2}
  mirror: {to: twin, percent: 5}
  timeout: 60s
  limits: {requestsPerSecond: 100, maxRequestSize: 16Mi}
  gateways: [public]
  host: rank
  prefix: /search/ranker
auth: {token: true, openPaths: [/v2/health/live]}
"""


def compared(name: str, found: Render) -> str:
    """The difference between what a model renders to and its golden file."""
    items = sorted(found.objects(model=name), key=lambda item: (item["kind"], item["metadata"]["name"]))
    text = yaml.safe_dump_all([*items, {"outputs": found.outputs["models"][name]}], width=120, sort_keys=True)
    path = FOLDER / f"{name}.yaml"
    if os.environ.get("GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8")
    return "\n".join(difflib.unified_diff(golden.splitlines(), text.splitlines(), "golden", "rendered", lineterm=""))


@pytest.fixture(scope="module")
def fullest(render: Callable[..., Render]) -> Render:
    return render({"ranker": FULLEST}, gpuPools=[POOL], **stack())


class TestGolden:
    def test_five_lines_render_to_exactly_this(self, render: Callable[..., Render]) -> None:
        difference = compared("fraud-score", render({"fraud-score": ""}, environment="prod"))
        assert not difference, difference

    def test_the_fullest_model_renders_to_exactly_this(self, fullest: Render) -> None:
        difference = compared("ranker", fullest)
        assert not difference, difference


class TestFullest:
    """The fullest model leaves nothing out: a new field has to appear in it."""

    DATA = parse("name: ranker\n" + FULLEST, "ranker.yaml").data

    def test_it_has_every_field_of_a_model_file(self) -> None:
        assert set(self.DATA) == {field.alias for field in ModelSpec.model_fields.values()}

    @pytest.mark.parametrize("field", ["traffic", "scaling", "alerts"])
    def test_it_has_every_field_inside(self, field: str) -> None:
        spec, found = ModelSpec.model_fields[field].annotation, self.DATA[field]
        assert isinstance(spec, type)
        assert issubclass(spec, Spec)
        assert isinstance(found, dict)
        # A schedule takes KEDA, whose kinds are not on every plane; tests/components/test_keda.py renders it.
        assert set(found) == {inner.alias for inner in spec.model_fields.values()} - {"schedule"}
