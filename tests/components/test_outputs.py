"""The contract: what other teams read, in exactly this shape."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from spec import schema
from spec.stack_file import stack_settings
from tests.components.conftest import POOLS, PROD_MODELS, ROOT, Render, run

Renderer = Callable[..., Render]
SCHEMA: dict[str, Any] = json.loads((schema.FOLDER / "contract.schema.json").read_text(encoding="utf-8"))
SPLIT = "revisions: {v1: {}, v2: {}, v3: {}}\ntraffic: {split: {v1: 90, v2: 10}, mirror: {to: v3, percent: 5}}\n"

MODEL_KEYS = {
    "owner", "tritonModel", "revisions", "httpUrl", "httpTarget", "grpcTarget", "metricsPort", "metricsUrl",
    "readyUrl", "inferUrl", "snippets", "timeout", "versions",
    "inputs", "outputs", "scalingMetrics",
}  # fmt: skip


class TestShape:
    def test_it_says_its_version_environment_and_namespace(self, prod: Render) -> None:
        assert set(prod.outputs) == {"contract", "environment", "namespace", "models", "gpuPools"}
        assert prod.outputs["contract"] == "triton-estate/v1"
        assert (prod.outputs["environment"], prod.outputs["namespace"]) == ("prod", "models")

    def test_a_model_is_described_by_exactly_this(self, dev: Render) -> None:
        host = "inception-graphdef.serving.svc.cluster.local"
        assert dev.outputs["models"]["inception-graphdef"] == {
            "owner": "vision",
            "tritonModel": "inception_graphdef",
            "revisions": {
                "v1": {
                    "deployment": "inception-graphdef-v1",
                    "weight": 100,
                    "image": "nvcr.io/nvidia/tritonserver:25.02-py3",
                }
            },
            "timeout": "300s",
            "versions": "latest 1",
            "inputs": [{"name": "input", "dataType": "FP32", "shape": [-1, 299, 299, 3]}],
            "outputs": [{"name": "InceptionV3/Predictions/Softmax", "dataType": "FP32", "shape": [-1, 1001]}],
            "scalingMetrics": {"gpu": "container_gpu_usage"},
            "httpUrl": f"http://{host}:8000",
            "httpTarget": f"{host}:8000",
            "grpcTarget": f"{host}:8001",
            "metricsPort": 8002,
            "metricsUrl": f"http://{host}:8002/metrics",
            "readyUrl": f"http://{host}:8000/v2/models/inception_graphdef/ready",
            "inferUrl": f"http://{host}:8000/v2/models/inception_graphdef/infer",
            "dashboard": "http://grafana.monitoring.svc.cluster.local:3000/d/triton-estate-model/model"
            "?var-model=inception-graphdef&var-triton_model=inception_graphdef&var-namespace=serving",
            "snippets": {
                "curl": f"curl http://{host}:8000/v2/models/inception_graphdef",
                "python": "import tritonclient.http\n"
                f'client = tritonclient.http.InferenceServerClient(url="{host}:8000")\n'
                'print(client.get_model_metadata("inception_graphdef"))\n',
            },
        }

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_every_model_has_the_same_keys(self, name: str, prod: Render) -> None:
        assert set(prod.outputs["models"][name]) == MODEL_KEYS

    def test_a_pool_is_described_by_exactly_this(self, prod: Render) -> None:
        assert prod.outputs["gpuPools"]["whole"] == {
            "sharing": "whole",
            "gpuModel": "NVIDIA-A100-SXM4-80GB",
            "gpuMemory": "80Gi",
            "nodeLabel": "triton-estate.io/node-pool=whole",
            "gpus": 8,
            "gpusAskedAtLeast": 6,
            "gpusAskedAtMost": 18,
            "gpusSpare": 0,
        }

    def test_every_pool_is_there(self, prod: Render) -> None:
        assert set(prod.outputs["gpuPools"]) == {pool["name"] for pool in POOLS}


class TestTruth:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_every_address_is_that_of_a_service_that_exists(self, name: str, prod: Render) -> None:
        service = prod.one("Service", name)
        host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.cluster.local"
        ports = {port["name"]: port["port"] for port in service["spec"]["ports"]}
        found: dict[str, Any] = prod.outputs["models"][name]
        assert found["httpTarget"] == f"{host}:{ports['http']}"
        assert found["grpcTarget"] == f"{host}:{ports['grpc']}"
        assert found["metricsPort"] == ports["http-metrics"]
        assert found["httpUrl"] == f"http://{found['httpTarget']}"

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_every_deployment_that_is_named_exists(self, name: str, prod: Render) -> None:
        for revision, found in prod.outputs["models"][name]["revisions"].items():
            deployment = prod.one("Deployment", found["deployment"])
            assert deployment["metadata"]["labels"]["app.kubernetes.io/version"] == revision

    def test_the_models_are_those_with_objects(self, prod: Render) -> None:
        assert set(prod.outputs["models"]) == set(PROD_MODELS)
        for name in PROD_MODELS:
            assert prod.one("Service", name)

    def test_readiness_outside_is_readiness_inside(self, dev: Render) -> None:
        probe = dev.triton("mobilenet-v1")["readinessProbe"]["httpGet"]["path"]
        assert dev.outputs["models"]["mobilenet"]["readyUrl"].endswith(probe)

    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_a_client_gets_a_target_without_a_scheme(self, name: str, prod: Render) -> None:
        # tritonclient refuses a URL with a scheme.
        found = prod.outputs["models"][name]
        assert "://" not in found["httpTarget"] + found["grpcTarget"]
        assert f'url="{found["httpTarget"]}"' in found["snippets"]["python"]

    @pytest.mark.parametrize(
        ("name", "low", "high"),
        [("whole", 6, 18), ("mig", 3 / 7, 9 / 7), ("sliced", 0.75, 2.25), ("hami", 1.5, 4.5), ("qgpu", 1.5, 4.5)],
    )
    def test_the_cards_asked_for_add_up(self, name: str, low: float, high: float, prod: Render) -> None:
        found = prod.outputs["gpuPools"][name]
        assert found["gpusAskedAtLeast"] == pytest.approx(low, abs=0.001)
        assert found["gpusAskedAtMost"] == pytest.approx(high, abs=0.001)


def mistakes(outputs: object) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(outputs)]


class TestSchema:
    """The schema in the repository is what other teams check against."""

    def test_the_outputs_of_dev_are_valid(self, dev: Render) -> None:
        assert mistakes(dev.outputs) == []

    def test_the_outputs_of_prod_are_valid(self) -> None:
        assert mistakes(run(ROOT, stack_settings(ROOT, "prod"), "prod").outputs) == []

    def test_those_of_a_model_and_a_pool_of_every_kind_are_valid(self, prod: Render) -> None:
        assert mistakes(prod.outputs) == []

    def test_those_of_a_split_and_mirrored_model_are_valid(self, render: Renderer) -> None:
        assert mistakes(render({"m": SPLIT}).outputs) == []

    @pytest.mark.parametrize("change", [{"contract": "triton-estate/v2"}, {"namespace": 5}, {"more": 1}])
    def test_it_would_notice_another_document(self, change: dict[str, object], dev: Render) -> None:
        assert mistakes(dev.outputs | change)

    @pytest.mark.parametrize("key", sorted(MODEL_KEYS))
    def test_it_would_notice_a_missing_field_of_a_model(self, key: str, dev: Render) -> None:
        models = {name: {k: v for k, v in found.items() if k != key} for name, found in dev.outputs["models"].items()}
        assert mistakes(dev.outputs | {"models": models})


class TestTensors:
    @staticmethod
    def tensors(render: Renderer, config: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        found = render({"m": f"config: {{backend: python, {config}}}\n"}).outputs["models"]["m"]
        return found["inputs"], found["outputs"]

    def test_the_batch_comes_first_where_the_model_batches(self, render: Renderer) -> None:
        inputs, outputs = self.tensors(
            render,
            "max_batch_size: 8, input: [{name: a, data_type: TYPE_FP16, dims: [3, 224, 224]}],"
            " output: [{name: b, data_type: TYPE_INT64, dims: [1000]}]",
        )
        assert inputs == [{"name": "a", "dataType": "FP16", "shape": [-1, 3, 224, 224]}]
        assert outputs == [{"name": "b", "dataType": "INT64", "shape": [-1, 1000]}]

    def test_no_batch_is_added_where_it_does_not(self, render: Renderer) -> None:
        inputs, _ = self.tensors(
            render,
            "max_batch_size: 0, input: [{name: a, data_type: TYPE_FP32, dims: [1, -1]}],"
            " output: [{name: b, data_type: TYPE_FP32, dims: [1]}]",
        )
        assert inputs[0]["shape"] == [1, -1]

    @pytest.mark.parametrize(
        ("triton", "protocol"), [("STRING", "BYTES"), ("BOOL", "BOOL"), ("UINT8", "UINT8"), ("BF16", "BF16")]
    )
    def test_types_are_those_of_the_protocol(self, triton: str, protocol: str, render: Renderer) -> None:
        inputs, _ = self.tensors(
            render,
            f"input: [{{name: a, data_type: TYPE_{triton}, dims: [1]}}],"
            " output: [{name: b, data_type: TYPE_FP32, dims: [1]}]",
        )
        assert inputs[0]["dataType"] == protocol

    def test_what_only_the_repository_knows_is_left_empty(self, prod: Render) -> None:
        found = prod.outputs["models"]["five-lines"]
        assert (found["inputs"], found["outputs"]) == ([], [])

    def test_they_come_in_the_order_of_the_file(self, render: Renderer) -> None:
        tensor = "{{name: {0}, data_type: TYPE_FP32, dims: [1]}}"
        inputs, _ = self.tensors(
            render, f"input: [{', '.join(tensor.format(name) for name in 'zay')}], output: [{tensor.format('b')}]"
        )
        assert [found["name"] for found in inputs] == ["z", "a", "y"]

    def test_those_of_an_ensemble_are_the_ensembles(self, dev: Render) -> None:
        found = dev.outputs["models"]["photo-tagger"]
        assert found["inputs"] == [{"name": "IMAGE", "dataType": "BYTES", "shape": [-1, 1]}]
        assert found["outputs"] == [{"name": "TAGS", "dataType": "FP32", "shape": [-1, 1000]}]


class TestTraffic:
    def test_every_revision_has_its_weight_and_image(self, render: Renderer) -> None:
        more = SPLIT.replace("v2: {}", "v2: {image: 'triton:2'}")
        found = render({"m": more}, image="triton:1").outputs["models"]["m"]["revisions"]
        assert {name: (entry["weight"], entry["image"]) for name, entry in found.items()} == {
            "v1": (90, "triton:1"),
            "v2": (10, "triton:2"),
            "v3": (0, "triton:1"),
        }

    def test_copies_are_told(self, render: Renderer) -> None:
        assert render({"m": SPLIT}).outputs["models"]["m"]["mirror"] == {"to": "v3", "percent": 5}

    def test_without_copies_there_is_no_such_key(self, prod: Render) -> None:
        assert "mirror" not in prod.outputs["models"]["five-lines"]

    def test_the_dashboard_is_told_where_there_is_one(self, render: Renderer) -> None:
        grafana = {"provider": "existing", "url": "https://grafana.example.com"}
        found = render({"m": SPLIT}, monitoring={"grafana": grafana}).outputs
        assert found["models"]["m"]["dashboard"].startswith("https://grafana.example.com/d/triton-estate-model/")
        assert mistakes(found) == []

    def test_the_longest_time_of_a_request_is_told(self, render: Renderer) -> None:
        assert render({"m": "traffic: {timeout: 60s}\n"}).outputs["models"]["m"]["timeout"] == "60s"

    def test_the_cards_of_every_revision_are_counted(self, render: Renderer) -> None:
        more = "resources: {cpu: 1, memory: 2Gi, gpu: 1}\nscaling: {min: 1, max: 2}\n"
        found = render({"m": more + SPLIT}, gpuPools=POOLS[:1]).outputs["gpuPools"]["whole"]
        assert (found["gpusAskedAtLeast"], found["gpusAskedAtMost"]) == (3, 6)

    def test_cards_that_stay_free_are_told(self, render: Renderer) -> None:
        found = render({}, gpuPools=[POOLS[0] | {"spareGpus": 2}]).outputs["gpuPools"]["whole"]
        assert found["gpusSpare"] == 2


class TestScalingMetrics:
    @pytest.mark.parametrize("name", PROD_MODELS)
    def test_each_is_one_that_the_autoscaler_asks_for(self, name: str, prod: Render) -> None:
        metrics = [
            metric["pods"]["metric"]["name"]
            for found in prod.objects("HorizontalPodAutoscaler", name)
            for metric in found["spec"]["metrics"]
            if metric["type"] == "Pods"
        ]
        assert sorted(prod.outputs["models"][name]["scalingMetrics"].values()) == sorted(metrics)
