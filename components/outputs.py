"""Build the contract that other teams read, see ``spec.contract``."""

from collections.abc import Iterable, Sequence
from typing import Any

from components.serving import autoscaling, runtime
from spec import names, triton
from spec.catalog import Estate
from spec.contract import Contract, GpuPoolEntry, MirrorEntry, ModelEntry, RevisionEntry, Snippets, Tensor
from spec.estate import GpuPoolSpec
from spec.resolve import Model


def contract(estate: Estate) -> dict[str, Any]:
    """The stack's outputs as plain data, known before anything is created."""
    spec = estate.spec
    document = Contract(
        environment=spec.environment,
        namespace=spec.namespace,
        models={model.name: _model(model, spec.namespace) for model in estate.models},
        gpu_pools={pool.name: _pool(pool, estate.models) for pool in spec.gpu_pools},
    )
    return document.model_dump(by_alias=True, exclude_none=True)


def _model(model: Model, namespace: str) -> ModelEntry:
    host = names.service_host(model.name, namespace)
    http, grpc = f"{host}:{runtime.HTTP_PORT}", f"{host}:{runtime.GRPC_PORT}"
    primary, mirror = model.primary, model.spec.traffic.mirror
    config = primary.configs.get(primary.triton_name)
    path = f"http://{http}/v2/models/{primary.triton_name}"
    return ModelEntry(
        owner=model.spec.owner,
        triton_model=primary.triton_name,
        http_url=f"http://{http}",
        http_target=http,
        grpc_target=grpc,
        ready_url=f"{path}/ready",
        infer_url=f"{path}/infer",
        metrics_port=runtime.METRICS_PORT,
        metrics_url=f"http://{host}:{runtime.METRICS_PORT}/metrics",
        timeout=model.spec.traffic.timeout,
        inputs=_tensors(config.input, config.max_batch_size) if config else [],
        outputs=_tensors(config.output, config.max_batch_size) if config else [],
        revisions={
            revision.name: RevisionEntry(
                deployment=names.workload(model.name, revision.name),
                weight=model.weights[revision.name],
                image=revision.image,
            )
            for revision in model.revisions
        },
        mirror=MirrorEntry(to=mirror.to, percent=mirror.percent) if mirror else None,
        scaling_metrics=autoscaling.custom_metrics(primary),
        snippets=Snippets(curl=f"curl {path}", python=_python(http, primary.triton_name)),
    )


def _tensors(tensors: Sequence[Any], max_batch_size: int) -> list[Tensor]:
    batch = [-1] if max_batch_size > 0 else []
    return [
        Tensor(name=tensor.name, data_type=triton.protocol_type(tensor), shape=[*batch, *tensor.dims])
        for tensor in tensors
    ]


def _python(http: str, model: str) -> str:
    # The client takes host:port without a scheme.
    return (
        "import tritonclient.http\n"
        f'client = tritonclient.http.InferenceServerClient(url="{http}")\n'
        f'print(client.get_model_metadata("{model}"))\n'
    )


def _pool(pool: GpuPoolSpec, models: Iterable[Model]) -> GpuPoolEntry:
    revisions = [revision for model in models for revision in model.revisions if revision.pool == pool]
    asked = [(one.spec.resources.gpu, one.scaling) for one in revisions]
    return GpuPoolEntry(
        sharing=pool.sharing,
        gpu_model=pool.gpu_model,
        gpu_memory=pool.gpu_memory,
        node_label=f"{names.POOL_LABEL}={pool.name}",
        gpus=pool.cards,
        gpus_asked_at_least=round(sum(request.cards * scaling.min for request, scaling in asked if request), 3),
        gpus_asked_at_most=round(sum(request.cards * scaling.max for request, scaling in asked if request), 3),
        gpus_spare=pool.spare_gpus,
    )
