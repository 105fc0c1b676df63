"""How models and their configurations reach Triton: read from the store, or synced with ours laid over it."""

from collections.abc import Callable
from typing import Any

import pytest

from spec.triton import parse_text
from tests.components.conftest import TENSORS, Render

Renderer = Callable[..., Render]
CONFIG = f"config: {{backend: onnxruntime, {TENSORS}}}\n"
SYNC = ["sync", "--config=", "--stats=10s", "--stats-one-line"]


def argument(found: Render, name: str = "") -> str:
    (value,) = [a for a in found.triton(name)["args"] if a.startswith("--model-repository=")]
    return value.removeprefix("--model-repository=")


def config_mounts(found: Render, name: str = "") -> list[dict[str, Any]]:
    return [mount for mount in found.triton(name)["volumeMounts"] if mount["name"] == "model-config"]


class TestDirectRead:
    @pytest.mark.parametrize(
        "uri",
        ["s3://acme/m", "s3://minio:9000/acme/m", "s3://https://minio:9000/acme/m", "gs://acme/m", "as://acme/c/m"],
    )
    def test_without_a_configuration_triton_reads_the_store_itself(self, uri: str, render: Renderer) -> None:
        found = render({"m": f"repository: {uri}\n"})
        assert argument(found) == uri

    def test_nothing_is_synced_then(self, prod: Render) -> None:
        assert "initContainers" not in prod.pod("five-lines-v1")
        assert {volume["name"] for volume in prod.pod("five-lines-v1")["volumes"]} == {"shm", "tmp"}


class TestSync:
    @pytest.mark.parametrize(
        ("uri", "source"),
        [
            ("s3://acme/a/b", ":s3,provider=AWS,env_auth=true:acme/a/b"),
            ("s3://minio:9000/acme/a", ':s3,provider=Other,env_auth=true,endpoint="http://minio:9000":acme/a'),
            ("s3://https://minio:9000/acme/a", ':s3,provider=Other,env_auth=true,endpoint="https://minio:9000":acme/a'),
            ("gs://acme/a/b", ":gcs,env_auth=true:acme/a/b"),
            ("as://account/container/a", ":azureblob,account=account,env_auth=true:container/a"),
            ("pvc://claim/a/b", "/repository/a/b"),
            ("pvc://claim", "/repository/"),
        ],
    )
    def test_the_store_is_copied_to_a_volume_first(self, uri: str, source: str, render: Renderer) -> None:
        (init,) = render({"m": f"repository: {uri}\n{CONFIG}"}).pod()["initContainers"]
        assert init["args"] == [*SYNC, source, "/models"]
        assert {"name": "models", "mountPath": "/models"} in init["volumeMounts"]

    @pytest.mark.parametrize("uri", ["s3://acme/m", "gs://acme/m", "as://acme/c/m", "pvc://claim/m"])
    def test_triton_then_reads_the_volume(self, uri: str, render: Renderer) -> None:
        found = render({"m": f"repository: {uri}\n{CONFIG}"})
        assert argument(found) == "/models"
        assert {"name": "models", "mountPath": "/models"} in found.triton()["volumeMounts"]

    def test_a_claim_is_synced_even_without_a_configuration(self, prod: Render) -> None:
        assert argument(prod, "claim-v1") == "/models"
        assert len(prod.pod("claim-v1")["initContainers"]) == 1

    def test_a_claim_is_never_written_to(self, prod: Render) -> None:
        pod = prod.pod("claim-v1")
        (volume,) = [volume for volume in pod["volumes"] if "persistentVolumeClaim" in volume]
        assert volume["persistentVolumeClaim"] == {"claimName": "claim", "readOnly": True}
        (mount,) = [mount for mount in pod["initContainers"][0]["volumeMounts"] if mount["name"] == volume["name"]]
        assert mount["readOnly"] is True

    @pytest.mark.parametrize("name", ["python-v1", "minio-v1", "gcs-v1", "azure-v1"])
    def test_no_credential_is_written_into_an_object(self, name: str, prod: Render) -> None:
        (init,) = prod.pod(name)["initContainers"]
        assert "env_auth=true" in init["args"][-2]
        assert "env" not in init


class TestConfigMap:
    def test_it_holds_the_canonical_text_of_each_model(self, dev: Render) -> None:
        data = dev.one("ConfigMap", "photo-tagger-v1-config")["data"]
        assert sorted(data) == ["classify.pbtxt", "decode.pbtxt", "photo-tagger.pbtxt"]
        for name, text in data.items():
            config, problems = parse_text(text)
            assert problems == []
            assert f"{config.name}.pbtxt" == name

    def test_every_field_of_the_model_file_is_in_it(self, dev: Render) -> None:
        data = dev.one("ConfigMap", "inception-graphdef-v1-config")["data"]
        assert data == {
            "inception_graphdef.pbtxt": 'name: "inception_graphdef"\n'
            'platform: "tensorflow_graphdef"\n'
            "max_batch_size: 128\n"
            "input {\n"
            '  name: "input"\n'
            "  data_type: TYPE_FP32\n"
            "  format: FORMAT_NHWC\n"
            "  dims: [299, 299, 3]\n"
            "}\n"
            "output {\n"
            '  name: "InceptionV3/Predictions/Softmax"\n'
            "  data_type: TYPE_FP32\n"
            "  dims: [1001]\n"
            '  label_filename: "inception_labels.txt"\n'
            "}\n"
        }

    def test_each_file_lies_over_that_of_its_model(self, dev: Render) -> None:
        assert config_mounts(dev, "photo-tagger-v1") == [
            {
                "name": "model-config",
                "mountPath": f"/models/{model}/config.pbtxt",
                "subPath": f"{model}.pbtxt",
                "readOnly": True,
            }
            for model in ("classify", "decode", "photo-tagger")
        ]

    def test_every_mounted_file_is_in_the_map_that_the_pod_names(self, dev: Render) -> None:
        for name in ("photo-tagger", "mobilenet", "inception-graphdef"):
            pod = dev.pod(f"{name}-v1")
            (volume,) = [volume for volume in pod["volumes"] if volume["name"] == "model-config"]
            data = dev.one("ConfigMap", volume["configMap"]["name"])["data"]
            assert {mount["subPath"] for mount in config_mounts(dev, f"{name}-v1")} == set(data)

    def test_a_model_with_the_configuration_of_its_repository_has_none(self, dev: Render) -> None:
        assert dev.objects("ConfigMap", "fraud-score") == []
        assert config_mounts(dev, "fraud-score-v1") == []

    def test_a_changed_one_is_changed_in_place(self, dev: Render) -> None:
        # Replacing it would pull it from under running pods.
        assert dev.resources["pulumi:providers:kubernetes", "cluster"]["enableConfigMapMutable"] == "true"
