"""Nothing is accepted and ignored: each field, changed alone, changes an object, the provider or the outputs."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from spec.autoscaler import AutoscalerSpec, TlsSpec
from spec.eks import EksSpec
from spec.estate import ClusterSpec, EstateSpec
from spec.fields import Spec
from spec.gpu import GpuRequest
from spec.gpu_software import GpuSoftwareSpec
from spec.grafana import GrafanaSpec
from spec.heartbeat import HeartbeatSpec
from spec.merge import merge
from spec.model import (
    CredentialsSpec,
    DebugSpec,
    MemberSpec,
    ModelSpec,
    ResourcesSpec,
    RevisionSpec,
    ScalingSpec,
)
from spec.monitoring import AlertsSpec, MonitoringSpec
from spec.pool import GpuPoolSpec
from spec.prometheus import AlertmanagerSpec, PrometheusSpec, StorageSpec
from spec.schedule import ScheduleSpec
from spec.server import ServerOptions
from spec.traffic import AuthSpec, CookieMatchSpec, ForTestersSpec, HeaderMatchSpec, LimitsSpec, MirrorSpec, TrafficSpec
from tests.components import exposed
from tests.components.conftest import REQUEST_FILE, Render

Renderer = Callable[..., Render]
CONFIG = {
    "backend": "python",
    "max_batch_size": 4,
    "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [3]}],
    "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [3]}],
}
CARDS: dict[str, Any] = {"gpuModel": "A100", "gpuMemory": "80Gi", "gpusPerNode": 4}
GROUP: dict[str, Any] = {
    "cluster": "a", "nodeRoleArn": "arn:aws:iam::123456789012:role/a", "subnets": ["subnet-00000000"],
    "instanceType": "g99.xlarge", "min": 1, "max": 3,
}  # fmt: skip
POOLS: dict[str, dict[str, Any]] = {
    "whole": {"name": "whole"} | CARDS,
    "spare": {"name": "spare"} | CARDS,
    "mig": {"name": "mig", "sharing": "mig", "migProfile": "1g.10gb"} | CARDS,
    "timeSlicing": {"name": "timeSlicing".lower(), "sharing": "timeSlicing", "slices": 4} | CARDS,
    "hami": {"name": "hami", "sharing": "hami"} | CARDS,
    "qgpu": {"name": "qgpu", "sharing": "qgpu"} | CARDS,
    "existing": {"name": "existing", "provider": "existing"} | CARDS,
    "eks": {"name": "eks", "provider": "eks", "eks": GROUP} | CARDS,
}
ON_HAMI = {"resources": {"gpu": {"count": 1, "memory": "8Gi", "cores": 50}}}
ON_MIG = {"resources": {"gpu": {"mig": "1g.10gb"}}}
SCALED = {"scaling": {"min": 2, "max": 8, "gpu": 70, "qps": 10, "queueMs": 5, "pending": 4, "cpu": 50, "memory": 50,
                      "scaleUpStabilization": "10s", "scaleDownStabilization": "60s"}}  # fmt: skip
DAY = {"from": "0 9 * * *", "to": "0 21 * * *", "timezone": "UTC", "replicas": 3}
SCHEDULED = {"scaling": {"min": 2, "max": 8, "cpu": 50, "schedule": [DAY]}}
HELPER = {"members": {"helper": {"config": CONFIG}}}
SUMMARIES = {"server": {"metrics-config": ["summary_latencies=true"]}}
SPLIT = {
    "revisions": {"v1": {}, "v2": {}, "v3": {}, "v4": {}},
    "traffic": {"split": {"v1": 90, "v2": 10}, "mirror": {"to": "v3", "percent": 5}},
}
REVISED = {"revisions": {"v1": {}, "v2": {}}, "traffic": {"split": {"v1": 100}}}
BEATING = {"heartbeat": {"every": "30s", "timeout": "2s"}}
DEBUGGED = {"debug": {"lifetime": "1h"}}
MODEL: dict[str, Any] = {"resources": {"cpu": 1, "memory": "2Gi", "gpu": 1}, "config": CONFIG}
MODEL_CASES: list[tuple[type[Spec], str, dict[str, Any], dict[str, Any]]] = [
    # The spec, its field, the model before (a patch of a whole-GPU model), and the patch that changes the field.
    (ModelSpec, "name", {}, {"name": "other"}),
    (ModelSpec, "owner", {}, {"owner": "search"}),
    (ModelSpec, "repository", {}, {"repository": "s3://acme/other"}),
    (ModelSpec, "repository", {"config": None}, {"repository": "s3://acme/other"}),
    (ModelSpec, "resources", {}, {"resources": {"cpu": 2}}),
    (ModelSpec, "pool", {}, {"pool": "spare"}),
    (ModelSpec, "image", {}, {"image": "triton:2"}),
    (ModelSpec, "config", {}, {"config": {"max_batch_size": 8}}),
    (ModelSpec, "config", {}, {"config": None}),
    (ModelSpec, "members", {}, {"members": {"helper": {}}}),
    (ModelSpec, "server", {}, {"server": {"log-verbose": 1}}),
    (ModelSpec, "loadTime", {}, {"loadTime": "301s"}),
    (ModelSpec, "scaling", {}, {"scaling": {"max": 7}}),
    (ModelSpec, "credentials", {}, {"credentials": {"secret": "keys"}}),
    (ModelSpec, "load", {"config": None}, {"load": "sync"}),
    (ModelSpec, "control", {}, {"control": "explicit"}),
    (ModelSpec, "control", {"config": None}, {"control": "poll"}),
    (ModelSpec, "nodeSelector", {}, {"nodeSelector": {"zone": "a"}}),
    (ModelSpec, "priority", {}, {"priority": "high"}),
    (ModelSpec, "environment", {}, {"environment": {"A": "b"}}),
    (ModelSpec, "revisions", {}, {"revisions": {"v2": {}}}),
    (ModelSpec, "traffic", {}, {"traffic": {"timeout": "60s"}}),
    (ModelSpec, "alerts", {}, {"alerts": {"owner": "search"}}),
    (ModelSpec, "heartbeat", {}, {"heartbeat": {}}),
    (ModelSpec, "debug", {}, {"debug": {}}),
    (HeartbeatSpec, "every", BEATING, {"heartbeat": {"every": "31s"}}),
    (HeartbeatSpec, "timeout", BEATING, {"heartbeat": {"timeout": "3s"}}),
    (HeartbeatSpec, "request", BEATING, {"heartbeat": {"request": REQUEST_FILE}}),
    (DebugSpec, "lifetime", DEBUGGED, {"debug": {"lifetime": "2h"}}),
    (DebugSpec, "image", DEBUGGED, {"debug": {"image": "triton:2"}}),
    (AlertsSpec, "owner", {}, {"alerts": {"owner": "search"}}),
    (AlertsSpec, "errorRatioPercent", {}, {"alerts": {"errorRatioPercent": 1}}),
    (AlertsSpec, "queueToComputePercent", {}, {"alerts": {"queueToComputePercent": 50}}),
    (AlertsSpec, "p99Ms", SUMMARIES, {"alerts": {"p99Ms": 50}}),
    (CredentialsSpec, "serviceAccount", {}, {"credentials": {"serviceAccount": "reader"}}),
    (CredentialsSpec, "secret", {"credentials": {"secret": "a"}}, {"credentials": {"secret": "b"}}),
    (TrafficSpec, "split", SPLIT, {"traffic": {"split": {"v1": 80, "v2": 20}}}),
    (TrafficSpec, "mirror", SPLIT, {"traffic": {"mirror": None}}),
    (TrafficSpec, "timeout", SPLIT, {"traffic": {"timeout": "60s"}}),
    (MirrorSpec, "to", SPLIT, {"traffic": {"mirror": {"to": "v4"}}}),
    (MirrorSpec, "percent", SPLIT, {"traffic": {"mirror": {"percent": 6}}}),
    *exposed.MODEL_CASES,
    (MemberSpec, "config", HELPER, {"members": {"helper": {"config": {"max_batch_size": 8}}}}),
    (ResourcesSpec, "cpu", {}, {"resources": {"cpu": 2}}),
    (ResourcesSpec, "memory", {}, {"resources": {"memory": "3Gi"}}),
    (ResourcesSpec, "gpu", {}, {"resources": {"gpu": 2}}),
    (ResourcesSpec, "gpu", {}, {"resources": {"gpu": None}}),
    (GpuRequest, "count", ON_HAMI, {"resources": {"gpu": {"count": 2}}}),
    (GpuRequest, "memory", ON_HAMI, {"resources": {"gpu": {"memory": "4Gi"}}}),
    (GpuRequest, "cores", ON_HAMI, {"resources": {"gpu": {"cores": 40}}}),
    (GpuRequest, "fraction", {"resources": {"gpu": {"fraction": 0.5}}}, {"resources": {"gpu": {"fraction": 0.6}}}),
    (GpuRequest, "mig", ON_MIG, {"resources": {"gpu": {"count": 2}}}),
    (ScalingSpec, "min", SCALED, {"scaling": {"min": 3}}),
    (ScalingSpec, "max", SCALED, {"scaling": {"max": 9}}),
    (ScalingSpec, "gpu", SCALED, {"scaling": {"gpu": 71}}),
    (ScalingSpec, "qps", SCALED, {"scaling": {"qps": 10.001}}),
    (ScalingSpec, "queueMs", SCALED, {"scaling": {"queueMs": 5.001}}),
    (ScalingSpec, "pending", SCALED, {"scaling": {"pending": 4.001}}),
    (ScalingSpec, "schedule", SCHEDULED, {"scaling": {"schedule": [DAY, DAY | {"replicas": 4}]}}),
    *((ScheduleSpec, field, SCHEDULED, {"scaling": {"schedule": [DAY | {field: value}]}})
      for field, value in {"from": "0 8 * * *", "to": "0 22 * * *", "timezone": "Asia/Shanghai",
                           "replicas": 4}.items()),
    (ScalingSpec, "cpu", SCALED, {"scaling": {"cpu": 51}}),
    (ScalingSpec, "memory", SCALED, {"scaling": {"memory": 51}}),
    (ScalingSpec, "scaleUpStabilization", SCALED, {"scaling": {"scaleUpStabilization": "11s"}}),
    (ScalingSpec, "scaleDownStabilization", SCALED, {"scaling": {"scaleDownStabilization": "61s"}}),
]  # fmt: skip
POOL_CASES: list[tuple[str, str, dict[str, Any]]] = [
    # The field, the pool, and the patch that changes the field.
    ("name", "spare", {"name": "other"}),
    ("provider", "spare", {"provider": "existing"}),
    ("nodes", "whole", {"nodes": 2}),
    ("nodes", "existing", {"nodes": 2}),
    *(("gpusPerNode", name, {"gpusPerNode": 8}) for name in POOLS),
    *(("gpuModel", name, {"gpuModel": "H100"}) for name in POOLS),
    *(("gpuMemory", name, {"gpuMemory": "96Gi"}) for name in POOLS),
    ("sharing", "spare", {"sharing": "hami"}),
    ("slices", "timeSlicing", {"slices": 5}),
    ("migProfile", "mig", {"migProfile": "2g.20gb"}),
    ("cpu", "whole", {"cpu": 64}),
    ("memory", "whole", {"memory": "512Gi"}),
    ("spareGpus", "whole", {"spareGpus": 1}),
    ("split", "hami", {"split": 5}),
    ("memoryScaling", "hami", {"memoryScaling": 1.5}),
    ("taint", "whole", {"taint": "dedicated=gpu:NoSchedule"}),
    ("taint", "eks", {"taint": "dedicated=gpu:NoSchedule"}),
    ("eks", "eks", {"eks": GROUP | {"max": 4}}),
]
EXISTING = {"cluster": {"provider": "existing", "kubeconfig": "/a", "context": "a"}}
MANAGED = {"cluster": {"provider": "existing"}, "gpuPools": [POOLS["whole"], POOLS["hami"]]}
ON_EKS = {"cluster": {"provider": "existing"}, "gpuPools": [POOLS["whole"], POOLS["eks"]]}
EKS_FIELDS: dict[str, Any] = {
    "cluster": "b", "nodeRoleArn": "arn:aws:iam::123456789012:role/b", "subnets": ["subnet-11111111"],
    "instanceType": "g98.xlarge", "min": 2, "max": 4, "ami": "AL2023_ARM_64_NVIDIA", "diskGib": 300, "spot": True,
    "region": "eu-central-1",
}  # fmt: skip
WATCHED: dict[str, Any] = {"monitoring": {"prometheus": {"provider": "managed"}}}
BY_TWO = {"models": {"m": {"scaling": {"gpu": 70, "qps": 5}}}}
STORED = {"monitoring": {"prometheus": {"storage": {"size": "20Gi"}}}}
ALERTED = {"monitoring": {"prometheus": {"alertmanager": {"configSecret": "a"}}}}
PROMETHEUS_FIELDS: dict[str, Any] = {
    "retention": "16d", "storage": {"size": "20Gi"}, "cpu": 2, "memory": "3Gi", "replicas": 2,
    "alertmanager": {"configSecret": "a"}, "externalLabels": {"cluster": "eu"},
}  # fmt: skip


def attached(**address: str) -> dict[str, Any]:
    """A stack with a Prometheus of somebody else."""
    return {"monitoring": {"prometheus": {"provider": "existing", **address}}}


GRAFANA_PROMETHEUS = {"prometheus": {"provider": "existing", "url": "http://prometheus.example.com"}}
SHOWN = {"monitoring": GRAFANA_PROMETHEUS | {"grafana": {"adminSecret": "a"}}}
HANDED = {"monitoring": GRAFANA_PROMETHEUS | {"grafana": {"provider": "existing", "url": "https://a.example.com"}}}
GRAFANA_FIELDS: dict[str, Any] = {
    "url": "https://b.example.com", "folder": "Other", "labels": {"dashboards": "yes"}, "folderAnnotation": "folder",
    "namespace": "observe",
}  # fmt: skip
ESTATE_CASES: list[tuple[type[Spec], str, dict[str, Any], dict[str, Any]]] = [
    (EstateSpec, "environment", {}, {"environment": "prod"}),
    (EstateSpec, "cluster", {}, {"cluster": {"provider": "existing"}}),
    (EstateSpec, "namespace", {}, {"namespace": "models"}),
    (EstateSpec, "image", {}, {"image": "triton:2"}),
    (EstateSpec, "gpuPools", {}, {"gpuPools": [POOLS["whole"]]}),
    (EstateSpec, "models", {}, {"models": {"m": {"owner": "search"}}}),
    (EstateSpec, "monitoring", {}, {"monitoring": {"operator": False}}),
    (MonitoringSpec, "operator", {}, {"monitoring": {"operator": False}}),
    (MonitoringSpec, "labels", {}, {"monitoring": {"labels": {"release": "other"}}}),
    (MonitoringSpec, "scrapeInterval", {}, {"monitoring": {"scrapeInterval": "30s"}}),
    (MonitoringSpec, "runbooks", {}, {"monitoring": {"runbooks": "https://example.com/runbooks"}}),
    (MonitoringSpec, "installOperator", {}, {"monitoring": {"installOperator": True}}),
    (MonitoringSpec, "prometheus", {}, WATCHED),
    (MonitoringSpec, "owner", WATCHED, {"monitoring": {"owner": "infra"}}),
    (PrometheusSpec, "provider", WATCHED, {"monitoring": {"prometheus": {"provider": "existing", "url": "http://a"}}}),
    *((PrometheusSpec, field, WATCHED, {"monitoring": {"prometheus": {field: value}}})
      for field, value in PROMETHEUS_FIELDS.items()),
    (PrometheusSpec, "url", attached(url="http://a"), attached(url="http://b")),
    (PrometheusSpec, "release", attached(release="a", namespace="a"), attached(release="b")),
    (PrometheusSpec, "namespace", attached(release="a", namespace="a"), attached(namespace="b")),
    (StorageSpec, "size", STORED, {"monitoring": {"prometheus": {"storage": {"size": "21Gi"}}}}),
    (StorageSpec, "storageClass", STORED, {"monitoring": {"prometheus": {"storage": {"storageClass": "fast"}}}}),
    *((AlertmanagerSpec, field, ALERTED, {"monitoring": {"prometheus": {"alertmanager": {field: value}}}})
      for field, value in {"configSecret": "b", "replicas": 3, "storage": {"size": "1Gi"}}.items()),
    (EstateSpec, "autoscaler", WATCHED, {"autoscaler": {"provider": "managed"}}),
    (AutoscalerSpec, "backend", WATCHED, {"autoscaler": {"backend": "keda"}}),
    *((AutoscalerSpec, "provider", WATCHED | {"autoscaler": {"backend": backend}},
       {"autoscaler": {"provider": "managed"}}) for backend in ("adapter", "keda")),
    *((AutoscalerSpec, field, WATCHED | {"autoscaler": written} | BY_TWO, {"autoscaler": {field: value}})
      for written in ({"provider": "managed"}, {"backend": "keda"})
      for field, value in {"gpuWindow": "6m", "rateWindow": "3m"}.items()),
    *((AutoscalerSpec, field, WATCHED | {"autoscaler": {"provider": "managed"}}, {"autoscaler": {field: value}})
      for field, value in {"relistInterval": "31s", "tls": {"issuer": "a"}}.items()),
    (TlsSpec, "issuer", WATCHED | {"autoscaler": {"provider": "managed", "tls": {"issuer": "a"}}},
     {"autoscaler": {"tls": {"issuer": "b"}}}),
    (EstateSpec, "gpuSoftware", {}, {"gpuSoftware": {"devicePlugin": "managed"}}),
    (EstateSpec, "charts", MANAGED | {"gpuSoftware": {"hami": "managed"}}, {"charts": {"hami": "./hami"}}),
    *((GpuSoftwareSpec, part, MANAGED, {"gpuSoftware": {part: "managed"}})
      for part in ("devicePlugin", "dcgmExporter", "hami")),
    *((EksSpec, field, ON_EKS, {"gpuPools": [POOLS["whole"], POOLS["eks"] | {"eks": GROUP | {field: value}}]})
      for field, value in EKS_FIELDS.items()),
    (MonitoringSpec, "grafana", {}, HANDED),
    (GrafanaSpec, "provider", HANDED, {"monitoring": {"grafana": {"provider": "managed", "adminSecret": "a"}}}),
    (GrafanaSpec, "adminSecret", SHOWN, {"monitoring": {"grafana": {"adminSecret": "b"}}}),
    (GrafanaSpec, "folder", SHOWN, {"monitoring": {"grafana": {"folder": "Other"}}}),
    *((GrafanaSpec, field, HANDED, {"monitoring": {"grafana": {field: value}}})
      for field, value in GRAFANA_FIELDS.items()),
    *exposed.STACK_CASES,
    (ClusterSpec, "provider", {}, {"cluster": {"provider": "existing"}}),
    (ClusterSpec, "kubeconfig", EXISTING, {"cluster": {"kubeconfig": "/b"}}),
    (ClusterSpec, "context", EXISTING, {"cluster": {"context": "b"}}),
]  # fmt: skip


def state(found: Render) -> str:
    """All that anybody can see of an estate."""
    return json.dumps([sorted(found.resources.items()), found.outputs], sort_keys=True)


def pools_of(spec: type[Spec], field: str, before: dict[str, Any]) -> dict[str, Any]:
    """A stack in which a case of ``MODEL_CASES`` is possible."""
    pools = ["whole", "spare"] if field == "pool" else ["mig"] if before is ON_MIG else ["whole"]
    pools = ["hami"] if spec is GpuRequest and before is not ON_MIG else pools
    keda = {"autoscaler": {"backend": "keda"}} if before is SCHEDULED else {}
    gateway = exposed.TWO if (spec, field) in exposed.AT_THE_GATEWAY else {}
    return {"environment": "dev", "gpuPools": [POOLS[name] for name in pools]} | keda | gateway


def files(spec: type[Spec], field: str, model: dict[str, Any]) -> dict[str, str]:
    """The model files with which a case of ``MODEL_CASES`` is possible."""
    others = ("one", "two") if (spec, field) == (MirrorSpec, "model") else ()
    same = lines(merge(MODEL, {"config": {"name": "m"}}))
    return {"m": lines(model)} | dict.fromkeys(others, same)


def differ(render: Renderer, one: dict[str, str], two: dict[str, str], settings: dict[str, Any]) -> bool:
    """Whether two versions of model files give different estates."""
    return state(render(one, **settings)) != state(render(two, **settings))


def lines(model: dict[str, Any]) -> str:
    # JSON is YAML.
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in model.items())


OWN = {field.alias for field in RevisionSpec.model_fields.values()}


class TestModelFile:
    @pytest.mark.parametrize(("spec", "field", "before", "patch"), MODEL_CASES)
    def test_a_changed_field_changes_something(
        self, spec: type[Spec], field: str, before: dict[str, Any], patch: dict[str, Any], render: Renderer
    ) -> None:
        model = merge(MODEL, before)
        one, two = (files(spec, field, found) for found in (model, merge(model, patch)))
        assert differ(render, one, two, pools_of(spec, field, before))

    def test_the_comparison_sees_no_change_where_there_is_none(self, render: Renderer) -> None:
        one, two = (files(ModelSpec, "loadTime", found) for found in (MODEL, MODEL | {"loadTime": "300s"}))
        assert not differ(render, one, two, pools_of(ModelSpec, "loadTime", {}))

    @pytest.mark.parametrize(
        ("field", "before", "patch"),
        [(field, before, patch) for spec, field, before, patch in MODEL_CASES if spec is ModelSpec and field in OWN],
    )
    def test_a_field_changed_in_a_revision_changes_something_too(
        self, field: str, before: dict[str, Any], patch: dict[str, Any], render: Renderer
    ) -> None:
        model = merge(MODEL, before) | REVISED
        # The patch of the revision, nulls and all.
        revised = model | {"revisions": {"v1": {}, "v2": patch}}
        one, two = (files(ModelSpec, field, found) for found in (model, revised))
        assert differ(render, one, two, pools_of(ModelSpec, field, before))

    @pytest.mark.parametrize(
        "spec",
        [
            ModelSpec,
            MemberSpec,
            ResourcesSpec,
            GpuRequest,
            ScalingSpec,
            ScheduleSpec,
            CredentialsSpec,
            TrafficSpec,
            MirrorSpec,
            ForTestersSpec,
            HeaderMatchSpec,
            CookieMatchSpec,
            LimitsSpec,
            AuthSpec,
            AlertsSpec,
            HeartbeatSpec,
            DebugSpec,
        ],
    )
    def test_no_field_is_left_out(self, spec: type[Spec]) -> None:
        tried = {field for found, field, _, _ in MODEL_CASES if found is spec}
        assert tried == {field.alias for field in spec.model_fields.values()}


class TestServerOptions:
    OPTIONS: dict[str, dict[str, Any]] = TypeAdapter(ServerOptions).json_schema()["properties"]

    def test_each_becomes_an_argument(self, render: Renderer) -> None:
        values = {"boolean": True, "integer": 7, "number": 7, "string": "text", "array": ["text"]}
        options = {
            name: kind["enum"][-1] if "enum" in kind else values[kind["type"]] for name, kind in self.OPTIONS.items()
        }
        args = render({"m": lines({"control": "poll", "server": options})}).triton()["args"]
        flags = {arg.removeprefix("--").partition("=")[0] for arg in args}
        assert set(options) <= flags
        assert len(options) > 40


class TestStackFile:
    @pytest.mark.parametrize(("spec", "field", "before", "patch"), ESTATE_CASES)
    def test_a_changed_setting_changes_something(
        self, spec: type[Spec], field: str, before: dict[str, Any], patch: dict[str, Any], render: Renderer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:  # fmt: skip
        del spec, field
        monkeypatch.setattr("pulumi.runtime.is_config_secret", lambda _: True)
        settings = merge({"environment": "dev", "gpuPools": [POOLS["whole"], POOLS["spare"]]}, before)
        one, two = (render({"m": lines(MODEL)}, **found) for found in (settings, merge(settings, patch)))
        assert state(one) != state(two)

    @pytest.mark.parametrize(("field", "pool", "patch"), POOL_CASES)
    def test_a_changed_pool_changes_something(
        self, field: str, pool: str, patch: dict[str, Any], render: Renderer
    ) -> None:
        del field
        cluster = {"provider": "existing"}
        one, two = (render({}, gpuPools=[found], cluster=cluster) for found in (POOLS[pool], POOLS[pool] | patch))
        assert state(one) != state(two)

    @pytest.mark.parametrize(
        "spec",
        [
            EstateSpec,
            ClusterSpec,
            AutoscalerSpec,
            TlsSpec,
            GpuSoftwareSpec,
            EksSpec,
            MonitoringSpec,
            GrafanaSpec,
            PrometheusSpec,
            StorageSpec,
            AlertmanagerSpec,
            *dict.fromkeys(spec for spec, _, _, _ in exposed.STACK_CASES if spec is not EstateSpec),
        ],
    )
    def test_no_setting_is_left_out(self, spec: type[Spec]) -> None:
        tried = {field for found, field, _, _ in ESTATE_CASES if found is spec}
        assert tried == {field.alias for field in spec.model_fields.values()}

    def test_no_field_of_a_pool_is_left_out(self) -> None:
        assert {field for field, _, _ in POOL_CASES} == {field.alias for field in GpuPoolSpec.model_fields.values()}
