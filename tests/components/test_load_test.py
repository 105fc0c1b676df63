"""The load test's options follow from the model's tensors, as perf_analyzer wants them."""

import json
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic_core import PydanticCustomError

from components.serving import load_test
from local.load_test import manifest
from spec.catalog import load
from spec.problems import SpecError
from spec.resolve import Revision
from tests.components.conftest import FIVE_LINES, ROOT
from tests.components.exposed import existing

OUTPUT = "output: [{{name: o, data_type: TYPE_FP32, dims: [1]}}]"
CONFIG = f"config: {{{{backend: python, max_batch_size: {{batch}}, input: [{{inputs}}], {OUTPUT}}}}}\n"
FIXED = "{name: IN, data_type: TYPE_FP32, dims: [3, 224]}"
VARIABLE = "{name: IN, data_type: TYPE_FP32, dims: [-1, 224]}"
TEXT = "{name: WORDS, data_type: TYPE_STRING, dims: [2]}"
OPTIONAL = "{name: MAYBE, data_type: TYPE_STRING, dims: [-1], optional: true}"


def revision(folder: Path, more: str) -> Revision:
    (folder / "models").mkdir()
    (folder / "models" / "m.yaml").write_text(FIVE_LINES.format(name="m") + more)
    return load(folder / "models", {"environment": "dev"}, "Pulumi.test.yaml").models[0].primary


def options(folder: Path, inputs: str, *, batch: int = 8, more: str = "") -> list[str]:
    found = revision(folder, CONFIG.format(batch=batch, inputs=inputs) + more)
    return load_test.arguments(found, "serving", "1:4:1")


def value(found: list[str], option: str) -> str:
    return found[found.index(option) + 1]


class TestOptions:
    def test_the_model_and_its_address(self, tmp_path: Path) -> None:
        found = options(tmp_path, FIXED)
        assert found[:7] == ["perf_analyzer", "-m", "m", "-u", "m-v1.serving.svc.cluster.local:8001", "-i", "grpc"]
        assert value(found, "--concurrency-range") == "1:4:1"
        assert value(found, "-b") == "1"
        assert not {"--shape", "--input-data", "--streaming"} & set(found)

    def test_a_variable_dimension_gets_a_size_and_no_batch(self, tmp_path: Path) -> None:
        assert value(options(tmp_path, VARIABLE), "--shape") == "IN:1,224"

    def test_without_batching_there_is_no_batch(self, tmp_path: Path) -> None:
        assert "-b" not in options(tmp_path, VARIABLE, batch=0)

    def test_texts_get_data(self, tmp_path: Path) -> None:
        found = options(tmp_path, TEXT)
        assert value(found, "--input-data") == "random"
        assert int(value(found, "--string-length")) > 0

    def test_an_optional_input_is_left_out(self, tmp_path: Path) -> None:
        assert not {"--shape", "--input-data"} & set(options(tmp_path, f"{FIXED}, {OPTIONAL}"))

    def test_a_decoupled_model_is_streamed(self, tmp_path: Path) -> None:
        more = "revisions: {v1: {config: {model_transaction_policy: {decoupled: true}}}}\n"
        assert "--streaming" in options(tmp_path, FIXED, more=more)

    def test_the_request_of_the_heartbeat_is_sent(self, tmp_path: Path) -> None:
        request = {"inputs": [{"name": "WORDS", "datatype": "BYTES", "shape": [1, 2], "data": [["a", "b"]]}]}
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "m.request.json").write_text(json.dumps(request))
        text = FIVE_LINES.format(name="m") + CONFIG.format(batch=8, inputs=TEXT)
        (tmp_path / "models" / "m.yaml").write_text(f"{text}heartbeat: {{request: m.request.json}}\n")
        found = load(tmp_path / "models", {"environment": "dev"}, "Pulumi.test.yaml").models[0].primary
        arguments = load_test.arguments(found, "serving", "1:4:1")
        assert value(arguments, "--input-data") == "/load-test/data.json"
        assert "--string-length" not in arguments
        data = json.loads(load_test.request_data(found) or "")
        # perf_analyzer adds the batch dimension itself.
        assert data == {"data": [{"WORDS": {"content": ["a", "b"], "shape": [2]}}]}

    def test_unknown_tensors_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(PydanticCustomError, match="its tensors are not known here"):
            load_test.arguments(revision(tmp_path, ""), "serving", "1:4:1")


class TestImage:
    @pytest.mark.parametrize("digest", ["", f"@sha256:{'0' * 64}"])
    def test_the_client_is_of_the_servers_release(self, tmp_path: Path, digest: str) -> None:
        found = revision(tmp_path, f"image: nvcr.io/nvidia/tritonserver:25.02-py3{digest}\n")
        assert load_test.client_image(found) == "nvcr.io/nvidia/tritonserver:25.02-py3-sdk"

    @pytest.mark.parametrize(
        "image", ["registry.example.com/triton:2", f"nvcr.io/nvidia/tritonserver@sha256:{'0' * 64}"]
    )
    def test_that_of_another_image_is_not_guessed(self, tmp_path: Path, image: str) -> None:
        with pytest.raises(PydanticCustomError, match="no SDK image"):
            load_test.client_image(revision(tmp_path, f"image: {image}\n"))


def printed(model: str, **options: Any) -> list[dict[str, Any]]:
    given: dict[str, Any] = {"revision": None, "image": None, "concurrency": "1:4:1"} | options
    return list(yaml.safe_load_all(manifest(ROOT, "dev", model, **given)))


class TestManifest:
    def test_it_is_a_valid_job_that_fails_when_the_measurement_fails(self) -> None:
        (job,) = printed("mobilenet")
        kubernetes_validate.validate(job, kubernetes_validate.latest_version(), strict=True)
        assert job["spec"]["backoffLimit"] == 0
        assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
        # The program itself, without a shell that could swallow its exit code.
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["command"][0] == "perf_analyzer"
        assert container["image"].endswith("-sdk")

    def test_nothing_takes_it_for_a_replica(self) -> None:
        (job,) = printed("mobilenet")
        assert job["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == "triton-load-test"

    @pytest.mark.parametrize(("sidecars", "label"), [(True, "true"), (False, "false")])
    def test_it_has_a_sidecar_where_the_models_have_one(self, sidecars: bool, label: str, tmp_path: Path) -> None:
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "m.yaml").write_text(FIVE_LINES.format(name="m") + CONFIG.format(batch=8, inputs=FIXED))
        settings = {"environment": "dev", **existing(sidecars=sidecars)}
        config = {f"triton-estate:{name}": value for name, value in settings.items()}
        (tmp_path / "Pulumi.test.yaml").write_text(yaml.safe_dump({"config": config}))
        (job,) = yaml.safe_load_all(manifest(tmp_path, "test", "m", revision=None, image=None, concurrency="1:4:1"))
        found = job["spec"]["template"]["metadata"]
        assert found["labels"]["sidecar.istio.io/inject"] == label
        # One that ends with the Job.
        assert (found.get("annotations", {}).get("sidecar.istio.io/nativeSidecar") == "true") is sidecars

    @pytest.mark.parametrize(
        ("model", "options", "words"),
        [
            ("mobilnet", {}, "did you mean mobilenet"),
            ("mobilenet", {"revision": "v2"}, "no such revision"),
            ("fraud-score", {}, "tensors are not known"),
        ],
    )
    def test_mistakes_are_told_with_the_way_out(self, model: str, options: dict[str, str], words: str) -> None:
        with pytest.raises(SpecError, match=words) as refused:
            printed(model, **options)
        assert "fix:" in str(refused.value)
