"""The JSON Schemas that editors use: up to date, true of every file here, and as strict as the parser."""

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from spec import schema, source
from spec.autoscaler import AutoscalerSpec, TlsSpec
from spec.eks import EksSpec
from spec.estate import ClusterSpec, EstateSpec
from spec.fields import Spec
from spec.gpu import GpuRequest
from spec.gpu_software import GpuSoftwareSpec
from spec.grafana import GrafanaSpec
from spec.heartbeat import HeartbeatSpec
from spec.ingress import GatewayReplicasSpec, GatewayServiceSpec, GatewaySpec, IngressSpec, IngressTlsSpec
from spec.model import (
    CredentialsSpec,
    DebugSpec,
    MemberSpec,
    ModelSpec,
    ResourcesSpec,
    RevisionSpec,
    ScalingSpec,
)
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec
from spec.prometheus import AlertmanagerSpec, PrometheusSpec, StorageSpec
from spec.schedule import ScheduleSpec
from spec.tokens import ConsumerSpec, TokenKeySpec, TokensSpec
from spec.traffic import AuthSpec, CookieMatchSpec, ForTestersSpec, HeaderMatchSpec, LimitsSpec, MirrorSpec, TrafficSpec

ROOT = Path(__file__).parents[2]
MODEL = schema.model_schema()
STACK = schema.stack_schema()
CONTRACT = schema.contract_schema()
MODEL_FILES = sorted((ROOT / "models").glob("*.yaml"))
STACK_FILES = sorted(ROOT.glob("Pulumi.*.yaml"))
FIVE_LINES: dict[str, Any] = {
    "name": "m", "owner": "o", "repository": "s3://acme/m", "resources": {"cpu": 1, "memory": "2Gi"},
}  # fmt: skip


def data(path: Path) -> dict[str, Any]:
    found = source.read(path, path.name)
    assert found.problems == ()
    return dict(found.data)


def errors(document: object, against: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft202012Validator(against)
    return [error.json_path for error in validator.iter_errors(document)]


class TestCheckedIn:
    @pytest.mark.parametrize(("name", "generated"), [("model", MODEL), ("stack", STACK), ("contract", CONTRACT)])
    def test_the_files_are_those_that_the_specs_give(self, name: str, generated: dict[str, Any]) -> None:
        text = (schema.FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")
        assert json.loads(text) == generated, "run `make schemas`"

    @pytest.mark.parametrize("generated", [MODEL, STACK, CONTRACT])
    def test_they_are_valid_schemas(self, generated: dict[str, Any]) -> None:
        jsonschema.Draft202012Validator.check_schema(generated)

    def test_a_stale_one_fails_the_check_and_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(schema, "FOLDER", tmp_path)
        monkeypatch.setattr(sys, "argv", ["spec.schema", "--check"])
        assert schema.main() == 1
        assert "model.schema.json, stack.schema.json, contract.schema.json" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_one_that_was_written_passes_the_check(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(schema, "FOLDER", tmp_path)
        for argv in ([], ["--check"]):
            monkeypatch.setattr(sys, "argv", ["spec.schema", *argv])
            assert schema.main() == 0


class TestFilesOfThisProject:
    @pytest.mark.parametrize("path", MODEL_FILES, ids=lambda path: path.name)
    def test_every_model_file_is_valid(self, path: Path) -> None:
        assert errors(data(path), MODEL) == []

    @pytest.mark.parametrize("path", STACK_FILES, ids=lambda path: path.name)
    def test_every_stack_file_is_valid(self, path: Path) -> None:
        assert errors(data(path), STACK) == []

    @pytest.mark.parametrize("path", [*MODEL_FILES, *STACK_FILES], ids=lambda path: path.name)
    def test_each_points_its_editor_to_its_schema(self, path: Path) -> None:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        pointer = first.removeprefix("# yaml-language-server: $schema=")
        name = "model" if path.parent.name == "models" else "stack"
        assert (path.parent / pointer).resolve() == schema.FOLDER / f"{name}.schema.json"

    def test_there_are_files_to_look_at(self) -> None:
        assert len(MODEL_FILES) >= 4
        assert STACK_FILES


class TestModels:
    def test_five_lines_are_valid(self) -> None:
        assert errors(FIVE_LINES, MODEL) == []

    @pytest.mark.parametrize(
        "more",
        [
            {"config": {"max_batch_sise": 8}},
            {"config": {"input": [{"name": "a", "data_typ": "TYPE_FP32"}]}},
            {"config": {"input": [{"name": "a", "data_type": "TYPE_FP31"}]}},
            {"config": {"dynamic_batching": {"preferred_batch_sizes": [8]}}},
            {"config": {"max_batch_size": "8"}},
            {"members": {"a": {"config": {"instance_group": [{"kind": "KIND_TPU"}]}}}},
            {"config": {"file": "a.pbtxt", "backend": "python"}},
            {"config": 5},
            {"scaling": {"queue_ms": 5}},
            {"scaling": {"min": -1}},
            {"scaling": {"schedule": [{"from": "9:00", "to": "0 21 * * *", "replicas": 3}]}},
            {"scaling": {"schedule": [{"from": "0 9 * * *", "to": "0 21 * * *"}]}},
            {"server": {"http-port": 80}},
            {"server": {"log-verbose": "1"}},
            {"resources": {"cpu": 1, "memory": 10000}},
            {"resources": {"cpu": 1, "memory": "2Gi", "gpu": {"mig": "banana"}}},
            {"resources": {"cpu": 1, "memory": "2Gi", "gpu": "1"}},
            {"name": "triton_test"},
            {"image": "tritonserver"},
            {"repository": "oss://bucket/x"},
            {"loadTime": 300},
            {"colour": "red"},
            {"revisions": {"V2": {}}},
            {"revisions": {"more-than-nine": {}}},
            {"revisions": {"v2": None}},
            {"revisions": {"v2": {"owner": "o"}}},
            {"revisions": {"v2": {"scaling": {"maximum": 3}}}},
            {"revisions": {"v2": {"config": {"max_batch_size": "8"}}}},
            {"traffic": {"split": {"V1": 100}}},
            {"traffic": {"split": {"v1": 101}}},
            {"traffic": {"mirror": {"percent": 5}}},
            {"traffic": {"mirror": {"to": "v2", "percent": 0}}},
            {"traffic": {"timeout": 300}},
            {"credentials": {"key": "abc"}},
            {"credentials": {"secret": "My_Secret"}},
            {"load": "lazy"},
            {"control": "manual"},
            {"nodeSelector": {"a b": "c"}},
            {"nodeSelector": {"a": 5}},
            {"priority": "High"},
            {"environment": {"A": 1}},
            {"members": {"a b": {}}},
        ],
        ids=str,
    )
    def test_a_mistake_fails_in_the_editor(self, more: dict[str, Any]) -> None:
        assert errors(FIVE_LINES | more, MODEL)

    @pytest.mark.parametrize(
        "more",
        [
            {"config": {"max_batch_size": 8, "parameters": {"K": {"string_value": "v"}}}},
            {"config": {"file": "a.pbtxt"}},
            {"members": {"a": {}, "b": {"config": {"backend": "python"}}}},
            {"server": {"log-verbose": 1, "metrics-config": ["a=1"]}},
            {"resources": {"cpu": "500m", "memory": "2Gi", "gpu": 0.5}},
            {"resources": {"cpu": 0.5, "memory": "2Gi", "gpu": {"count": 2, "memory": "8Gi", "cores": 50}}},
            {"resources": {"cpu": 1, "memory": "2Gi", "gpu": {"mig": "1g.10gb"}}},
            {"resources": {"cpu": 1, "memory": "2Gi", "gpu": {"fraction": 0.5, "memory": "8Gi"}}},
            {"scaling": {"min": 1, "max": 3, "gpu": 70, "qps": 300, "queueMs": 0.5, "scaleUpStabilization": "10s"}},
            {"scaling": {"min": 0, "pending": 4}},
            {"scaling": {"schedule": [{"from": "0 9 * * 1-5", "to": "0 21 * * *", "timezone": "UTC", "replicas": 1}]}},
            {"revisions": {"v1": {}, "v2": {"resources": {"gpu": 1}, "scaling": None, "pool": None}}},
            {"revisions": {"v2": {"config": {"dynamic_batching": None, "max_batch_size": 0}}}},
            {"revisions": {"v2": {"members": {"a": {"config": None}, "b": None}, "environment": {"A": None}}}},
            {"revisions": {"v2": {"credentials": {"secret": "keys", "serviceAccount": None}}}},
            {"traffic": {"split": {"v1": 90, "v2": 10}, "mirror": {"to": "v3"}, "timeout": "60s"}},
            {"credentials": {"secret": "keys.eu"}, "load": "sync", "control": "explicit", "priority": "high"},
            {"nodeSelector": {"topology.kubernetes.io/zone": "a"}, "environment": {"OMP_NUM_THREADS": "4"}},
        ],
        ids=str,
    )
    def test_what_the_parser_takes_passes_in_the_editor(self, more: dict[str, Any]) -> None:
        document = FIVE_LINES | more
        assert ModelSpec.model_validate(document)
        assert errors(document, MODEL) == []


class TestStacks:
    def test_keys_of_the_project_are_closed(self) -> None:
        assert errors({"config": {"triton-estate:environment": "dev", "triton-estate:namespce": "x"}}, STACK)

    def test_keys_of_the_engine_and_of_others_are_left_alone(self) -> None:
        document = {"config": {"triton-estate:environment": "dev", "pulumi:tags": {}}, "encryptionsalt": "v1:x"}
        assert errors(document, STACK) == []

    @pytest.mark.parametrize(
        "settings",
        [{}, {"environment": "production"}, {"environment": "dev", "gpuPools": [{"name": "a"}]},
         {"environment": "dev", "cluster": {"provider": "eks"}}, {"environment": "dev", "image": "triton"}],
        ids=str,
    )  # fmt: skip
    def test_a_mistake_fails_in_the_editor(self, settings: dict[str, Any]) -> None:
        assert errors({"config": {f"triton-estate:{key}": value for key, value in settings.items()}}, STACK)


def described(found: dict[str, Any], name: str) -> dict[str, Any]:
    return found if name == "ModelSpec" else found["$defs"]["Revision" if name == "RevisionSpec" else name]


class TestWords:
    """Editors show what a field means; the words are those of the docstrings."""

    @pytest.mark.parametrize(
        ("spec", "against"),
        [(ModelSpec, MODEL), (ResourcesSpec, MODEL), (ScalingSpec, MODEL), (MemberSpec, MODEL),
         (RevisionSpec, MODEL), (CredentialsSpec, MODEL), (TrafficSpec, MODEL), (MirrorSpec, MODEL),
         (ForTestersSpec, MODEL), (HeaderMatchSpec, MODEL), (CookieMatchSpec, MODEL), (LimitsSpec, MODEL),
         (AuthSpec, MODEL), (IngressSpec, STACK), (GatewaySpec, STACK), (IngressTlsSpec, STACK),
         (GatewayServiceSpec, STACK), (GatewayReplicasSpec, STACK), (TokensSpec, STACK), (TokenKeySpec, STACK),
         (ConsumerSpec, STACK),
         (ScheduleSpec, MODEL), (HeartbeatSpec, MODEL), (DebugSpec, MODEL),
         (ClusterSpec, STACK), (GpuPoolSpec, STACK), (GpuSoftwareSpec, STACK), (EksSpec, STACK), (GrafanaSpec, STACK),
         (AutoscalerSpec, STACK), (TlsSpec, STACK),
         (MonitoringSpec, STACK), (PrometheusSpec, STACK), (StorageSpec, STACK), (AlertmanagerSpec, STACK)],
        ids=lambda case: getattr(case, "__name__", ""),
    )  # fmt: skip
    def test_every_field_is_there_and_described(self, spec: type[Spec], against: dict[str, Any]) -> None:
        properties = described(against, spec.__name__)["properties"]
        assert set(properties) == {field.alias for field in spec.model_fields.values()}
        assert all(value.get("description") for value in properties.values())

    def test_every_setting_of_a_stack_is_there_and_described(self) -> None:
        properties = STACK["properties"]["config"]["properties"]
        assert set(properties) == {f"triton-estate:{field.alias}" for field in EstateSpec.model_fields.values()}
        assert all(value.get("description") for value in properties.values())

    def test_a_gpu_request_has_all_its_fields(self) -> None:
        gpu = MODEL["$defs"]["ResourcesSpec"]["properties"]["gpu"]
        (form,) = [form for form in gpu["anyOf"][0]["anyOf"] if form["type"] == "object"]
        assert set(form["properties"]) == set(GpuRequest.model_fields)

    def test_a_default_is_shown(self) -> None:
        assert MODEL["properties"]["loadTime"]["default"] == "300s"
        assert STACK["$defs"]["GpuPoolSpec"]["properties"]["sharing"]["default"] == "whole"
