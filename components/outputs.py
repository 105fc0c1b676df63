"""The contract that other teams read: one versioned document, keyed by model name."""

from collections.abc import Iterable
from typing import Final

from components.serving import runtime
from spec import names
from spec.catalog import Estate
from spec.estate import GpuPoolSpec
from spec.resolve import Model

CONTRACT: Final = "triton-estate/v1"


def contract(estate: Estate) -> dict[str, object]:
    """Plain data, known before anything is created."""
    return {
        "contract": CONTRACT,
        "environment": estate.spec.environment,
        "namespace": estate.spec.namespace,
        "models": {model.spec.name: _model(model, estate.spec.namespace) for model in estate.models},
        "gpuPools": {pool.name: _pool(pool, estate.models) for pool in estate.spec.gpu_pools},
    }


def _model(model: Model, namespace: str) -> dict[str, object]:
    host = names.service_host(model.spec.name, namespace)
    http, grpc = f"{host}:{runtime.HTTP_PORT}", f"{host}:{runtime.GRPC_PORT}"
    return {
        "owner": model.spec.owner,
        "tritonModel": model.triton_name,
        "revisions": {names.DEFAULT_REVISION: {"deployment": names.workload(model.spec.name, names.DEFAULT_REVISION)}},
        "httpUrl": f"http://{http}",
        "httpTarget": http,
        "grpcTarget": grpc,
        "metricsPort": runtime.METRICS_PORT,
        "metricsUrl": f"http://{host}:{runtime.METRICS_PORT}/metrics",
        "readyUrl": f"http://{http}/v2/models/{model.triton_name}/ready",
        "inferUrl": f"http://{http}/v2/models/{model.triton_name}/infer",
        "snippets": {"curl": _curl(http, model.triton_name), "python": _python(http, model.triton_name)},
    }


def _curl(http: str, model: str) -> str:
    return f"curl http://{http}/v2/models/{model}"


def _python(http: str, model: str) -> str:
    # The client takes host:port without a scheme.
    return (
        "import tritonclient.http\n"
        f'client = tritonclient.http.InferenceServerClient(url="{http}")\n'
        f'print(client.get_model_metadata("{model}"))\n'
    )


def _pool(pool: GpuPoolSpec, models: Iterable[Model]) -> dict[str, object]:
    return {
        "sharing": pool.sharing,
        "gpuModel": pool.gpu_model,
        "gpuMemory": pool.gpu_memory,
        "nodeLabel": f"{names.POOL_LABEL}={pool.name}",
        "gpus": pool.cards,
        "gpusAskedAtLeast": gpus_asked(pool, models),
        "gpusAskedAtMost": gpus_asked(pool, models, at_most=True),
    }


def gpus_asked(pool: GpuPoolSpec, models: Iterable[Model], *, at_most: bool = False) -> float:
    """Cards that the models on a pool ask for with their fewest (or most) replicas."""
    total = 0.0
    for model in models:
        request = model.spec.resources.gpu
        if request is not None and model.pool is not None and model.pool.name == pool.name:
            total += request.cards * (model.scaling.max if at_most else model.scaling.min)
    return round(total, 3)
