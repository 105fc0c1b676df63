"""The contract: what other teams read, in exactly this shape."""

from typing import Any

import pytest

from tests.components.conftest import POOLS, PROD_MODELS, Render

MODEL_KEYS = {
    "owner", "tritonModel", "revisions", "httpUrl", "httpTarget", "grpcTarget", "metricsPort", "metricsUrl",
    "readyUrl", "inferUrl", "snippets",
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
            "revisions": {"v1": {"deployment": "inception-graphdef-v1"}},
            "httpUrl": f"http://{host}:8000",
            "httpTarget": f"{host}:8000",
            "grpcTarget": f"{host}:8001",
            "metricsPort": 8002,
            "metricsUrl": f"http://{host}:8002/metrics",
            "readyUrl": f"http://{host}:8000/v2/models/inception_graphdef/ready",
            "inferUrl": f"http://{host}:8000/v2/models/inception_graphdef/infer",
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
        assert set(prod.outputs["models"]) == {found["metadata"]["name"] for found in prod.objects("Service")}

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
