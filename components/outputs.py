"""Build the contract that other teams read, see ``spec.contract``."""

from collections.abc import Iterable, Sequence
from typing import Any

from components.ingress import addresses, tokens
from components.serving import autoscaling, runtime
from spec import names, triton
from spec.catalog import Estate
from spec.contract import (
    AddressEntry,
    Contract,
    GpuPoolEntry,
    MirrorEntry,
    ModelEntry,
    RevisionEntry,
    Snippets,
    Tensor,
)
from spec.estate import EstateSpec
from spec.grafana import GrafanaSpec, model_dashboard
from spec.ingress import gateways_of
from spec.pool import GpuPoolSpec
from spec.resolve import Model


def contract(estate: Estate) -> dict[str, Any]:
    """The stack's outputs as plain data, known before anything is created."""
    spec = estate.spec
    document = Contract(
        environment=spec.environment,
        namespace=spec.namespace,
        prometheus_url=spec.prometheus_url,
        models={model.name: _model(model, spec) for model in estate.models},
        gpu_pools={pool.name: _pool(pool, estate.models) for pool in spec.gpu_pools},
    )
    return document.model_dump(by_alias=True, exclude_none=True)


def _model(model: Model, spec: EstateSpec) -> ModelEntry:
    namespace, ingress = spec.namespace, spec.ingress
    service = addresses.service(model, namespace)
    address = addresses.main(model, ingress) if ingress else service
    headers = [tokens.HEADER] if model.needs_token else []
    primary, mirror = model.primary, model.spec.traffic.mirror
    config = primary.configs.get(primary.triton_name)
    path = f"{address.http_url}/v2/models/{primary.triton_name}"
    return ModelEntry(
        owner=model.spec.owner,
        triton_model=primary.triton_name,
        http_url=address.http_url,
        http_target=address.http_target,
        grpc_target=address.grpc_target or "",
        tls=address.tls if ingress else None,
        gateways=[one.name for one in gateways_of(ingress, model.spec.traffic)] if ingress else None,
        request_headers=headers or None,
        shared=addresses.shared(model, ingress) if ingress else None,
        internal=addresses.internal(model, ingress) if ingress else None,
        service=service if ingress else None,
        ready_url=f"{path}/ready",
        infer_url=f"{path}/infer",
        metrics_port=runtime.METRICS_PORT,
        metrics_url=f"http://{names.service_host(model.name, namespace)}:{runtime.METRICS_PORT}/metrics",
        timeout=model.spec.traffic.timeout,
        versions=triton.served_versions(config) if config else "repository",
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
        mirror=MirrorEntry(to=mirror.to, model=mirror.model, percent=_number(mirror.percent)) if mirror else None,
        scaling_metrics=autoscaling.custom_metrics(primary),
        debug=_debug(model, namespace),
        dashboard=_dashboard(model, namespace, spec.monitoring.grafana),
        snippets=Snippets(curl=_curl(path, headers), python=_python(address, primary.triton_name, headers)),
    )


def _tensors(tensors: Sequence[Any], max_batch_size: int) -> list[Tensor]:
    batch = [-1] if max_batch_size > 0 else []
    return [
        Tensor(name=tensor.name, data_type=triton.protocol_type(tensor), shape=[*batch, *tensor.dims])
        for tensor in tensors
    ]


def _number(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _curl(path: str, headers: list[str]) -> str:
    # The shell puts the token in.
    return " ".join(["curl", *(f'-H "{header}: Bearer $TOKEN"' for header in headers), path])


def _python(address: AddressEntry, model: str, headers: list[str]) -> str:
    # The client takes an address without a scheme. Its own way to TLS checks no certificate, and names no host.
    imports = (["import os"] if headers else []) + (["import gevent.ssl"] if address.tls else [])
    secure = ", ssl=True, ssl_context_factory=gevent.ssl.create_default_context" if address.tls else ""
    values = ", ".join(f'"{header}": "Bearer " + os.environ["TOKEN"]' for header in headers)
    token = f", headers={{{values}}}" if headers else ""
    lines = [
        *imports,
        "import tritonclient.http",
        f'client = tritonclient.http.InferenceServerClient(url="{address.http_target}"{secure})',
        f'print(client.get_model_metadata("{model}"{token}))',
    ]
    return "\n".join(lines) + "\n"


def _debug(model: Model, namespace: str) -> str | None:
    if model.spec.debug is None:
        return None
    return f"kubectl --namespace {namespace} exec -it {names.debug(model.name)} -- bash"


def _dashboard(model: Model, namespace: str, grafana: GrafanaSpec | None) -> str | None:
    return model_dashboard(grafana, model.name, model.primary.triton_name, namespace) if grafana else None


def _pool(pool: GpuPoolSpec, models: Iterable[Model]) -> GpuPoolEntry:
    revisions = [revision for model in models for revision in model.revisions if revision.pool == pool]
    asked = [(one.spec.resources.gpu, one.scaling.min, one.scaling.max) for one in revisions]
    # A debug twin holds what a replica holds.
    twins = [model.primary for model in models if model.spec.debug and model.primary.pool == pool]
    asked += [(one.spec.resources.gpu, 1, 1) for one in twins]
    return GpuPoolEntry(
        sharing=pool.sharing,
        gpu_model=pool.gpu_model,
        gpu_memory=pool.gpu_memory,
        node_label=f"{names.POOL_LABEL}={pool.name}",
        gpus=pool.cards,
        gpus_asked_at_least=round(sum(request.cards * fewest for request, fewest, _ in asked if request), 3),
        gpus_asked_at_most=round(sum(request.cards * most for request, _, most in asked if request), 3),
        gpus_spare=pool.spare_gpus,
    )
