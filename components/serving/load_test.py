"""A load test of one revision: a Job that runs Triton's perf_analyzer with what follows from the model's tensors.

Sources: perf_analyzer's command line and input data pages.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pulumi_kubernetes as k8s

from components.serving import objects, runtime
from spec import names, triton
from spec.fields import refuse
from spec.images import parse_image
from spec.resolve import Revision

_ROLE: Final = "load-test"
_STOCK_IMAGE: Final = re.compile(r"(nvcr\.io/nvidia/tritonserver:\d\d\.\d\d-py3)(-sdk)?")
_DATA_FILE: Final = "data.json"
_DATA_PATH: Final = "/load-test"
# Long enough for a text to cost something, short enough for any model.
_STRING_LENGTH: Final = 64
_ONE: Final = 1


def name(revision: Revision) -> str:
    """Name of the Job and of its ConfigMap."""
    return f"{names.workload(revision.model, revision.name)}-{_ROLE}"


def client_image(revision: Revision) -> str:
    """The SDK image of the same release as the server; a digest is the server's own, and is left out.

    Raises:
        PydanticCustomError: the server's image is not NVIDIA's, so nobody knows which client fits.
    """
    image = parse_image(revision.image)
    stock = _STOCK_IMAGE.fullmatch(f"{image.name}:{image.tag}")
    if not stock:
        refuse(f"{revision.image} has no SDK image that could be told from its name",
               allowed="NVIDIA's own images", fix="name one: --image <image with perf_analyzer>")  # fmt: skip
    return f"{stock[1]}-sdk"


def arguments(revision: Revision, namespace: str, concurrency: str) -> list[str]:
    """perf_analyzer and its options, over gRPC to all replicas of the revision.

    Args:
        revision: what is tested; its configuration must be in the model file.
        namespace: where it runs.
        concurrency: requests in flight, ``first:last:step``.

    Raises:
        PydanticCustomError: only the repository knows the tensors.
    """
    config = revision.configs.get(revision.triton_name)
    if config is None:
        refuse(f"the model file of {revision.model} has no config, so its tensors are not known here",
               fix="write config with input and output, or run perf_analyzer by hand")  # fmt: skip
    host = names.service_host(names.workload(revision.model, revision.name), namespace)
    result = ["perf_analyzer", "-m", revision.triton_name, "-u", f"{host}:{runtime.GRPC_PORT}", "-i", "grpc"]
    result += ["--concurrency-range", concurrency, "--percentile", "99", "--verbose"]
    if config.max_batch_size > 0:
        result += ["-b", str(_ONE)]
    if config.model_transaction_policy.decoupled:
        result.append("--streaming")
    if request_data(revision):
        return [*result, "--input-data", f"{_DATA_PATH}/{_DATA_FILE}"]
    needed = [tensor for tensor in config.input if not tensor.optional]
    for tensor in needed:
        if -1 in tensor.dims:
            # Without the batch dimension, which -b decides; a dimension that the model leaves open is one long.
            sizes = ",".join(str(_ONE if size == -1 else size) for size in tensor.dims)
            result += ["--shape", f"{tensor.name}:{sizes}"]
    if any(triton.protocol_type(tensor) == "BYTES" for tensor in needed):
        result += ["--input-data", "random", "--string-length", str(_STRING_LENGTH)]
    return result


def request_data(revision: Revision) -> str | None:
    """The heartbeat's own request as perf_analyzer reads it, None where the heartbeat has none of its own."""
    if revision.heartbeat is None or revision.heartbeat.request is None:
        return None
    config = revision.configs.get(revision.triton_name)
    batched = config is not None and config.max_batch_size > 0
    tensors = {
        tensor["name"]: {"content": _flat(tensor["data"]), "shape": tensor["shape"][1:] if batched else tensor["shape"]}
        for tensor in revision.heartbeat.request["inputs"]
    }
    return json.dumps({"data": [tensors]})


def config_map(revision: Revision, namespace: str, data: str) -> k8s.core.v1.ConfigMapInitArgs:
    """The requests."""
    return k8s.core.v1.ConfigMapInitArgs(metadata=_metadata(revision, namespace), data={_DATA_FILE: data})


def job(
    revision: Revision,
    namespace: str,
    *,
    image: str,
    concurrency: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> k8s.batch.v1.JobInitArgs:
    """One run. A failed measurement fails the Job, and nothing tries again: load must not come back by itself.

    Args:
        revision: what is tested.
        namespace: where it runs.
        image: with perf_analyzer.
        concurrency: requests in flight, ``first:last:step``.
        labels: further labels of the pod.
        annotations: of the pod.
    """
    has_data = request_data(revision) is not None
    mount = k8s.core.v1.VolumeMountArgs(name="data", mount_path=_DATA_PATH, read_only=True)
    container = k8s.core.v1.ContainerArgs(
        name=_ROLE,
        image=image,
        command=arguments(revision, namespace, concurrency),
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "2", "memory": "2Gi"}, limits={"memory": "2Gi"}
        ),
        security_context=objects.container_security(),
        volume_mounts=[mount] if has_data else None,
    )
    return k8s.batch.v1.JobInitArgs(
        metadata=_metadata(revision, namespace),
        spec=k8s.batch.v1.JobSpecArgs(
            backoff_limit=0,
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    labels=_labels(revision) | dict(labels or {}),
                    annotations=dict(annotations) if annotations else None,
                ),
                spec=k8s.core.v1.PodSpecArgs(
                    restart_policy="Never",
                    automount_service_account_token=False,
                    enable_service_links=False,
                    security_context=objects.pod_security(),
                    containers=[container],
                    volumes=[objects.config_map_volume("data", name(revision))] if has_data else None,
                ),
            ),
        ),
    )


def _labels(revision: Revision) -> dict[str, str]:
    return names.companion_labels(_ROLE, revision.model, revision.owner, revision.name)


def _metadata(revision: Revision, namespace: str) -> k8s.meta.v1.ObjectMetaArgs:
    return k8s.meta.v1.ObjectMetaArgs(name=name(revision), namespace=namespace, labels=_labels(revision))


def _flat(data: Any) -> list[Any]:  # noqa: ANN401  # JSON
    return [leaf for item in data for leaf in _flat(item)] if isinstance(data, list) else [data]
