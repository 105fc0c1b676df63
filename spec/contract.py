"""The document that other teams read from the stack's outputs, versioned by ``contract``.

A field may be added within a version; one that changes its meaning or goes away makes a new version.
"""

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from spec.traffic import GatewayName

VERSION: Final = "triton-estate/v1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class Tensor(_Part):
    """An input or output of a model.

    Attributes:
        name: its name in requests.
        data_type: type as KServe's v2 protocol writes it, e.g. ``FP32`` or ``BYTES``.
        shape: dimensions, -1 for a variable one; the first is the batch where the model batches.
    """

    name: str
    data_type: str
    shape: list[int]


class RevisionEntry(_Part):
    """One revision of a model.

    Attributes:
        deployment: its Deployment, and its Service of the same name.
        weight: share of the model's requests in percent.
        image: its Triton image.
    """

    deployment: str
    weight: int
    image: str


class MirrorEntry(_Part):
    """Copies of requests.

    Attributes:
        to: revision that gets them, where it is one of the model.
        model: model that gets them, where it is another one.
        percent: share of the requests that is copied.
    """

    to: str | None = None
    model: str | None = None
    percent: int | float


class AddressEntry(_Part):
    """Another way to a model.

    Attributes:
        http_url: base address of KServe's v2 protocol.
        http_target: the same as Triton's HTTP client takes it.
        grpc_target: ``host:port`` for Triton's gRPC client, where it leads to gRPC too.
        tls: whether these addresses speak TLS.
    """

    http_url: str
    http_target: str
    grpc_target: str | None = None
    tls: bool


class Snippets(_Part):
    """Ready-made calls, to run where the addresses lead to: without a gateway inside the cluster.

    Attributes:
        curl: asks for the model's metadata.
        python: the same with the package ``tritonclient[http]``.
    """

    curl: str
    python: str


class ModelEntry(_Part):
    """One model.

    Attributes:
        owner: team that answers for it.
        triton_model: its name inside Triton, as requests name it.
        http_url: base address of KServe's v2 protocol: at the first of the model's gateways, else of its Service.
        http_target: the same as ``host[:port][/path]``, as Triton's HTTP client takes it.
        grpc_target: ``host:port`` for Triton's gRPC client.
        tls: whether these two speak TLS (the clients' ``ssl=True``); absent without a gateway, where they do not.
        gateways: the gateways that lead to the model, ``public`` before ``internal``; absent without a gateway.
        request_headers: names of the headers that a request has to have, over gRPC of the metadata; absent for none.
            ``authorization`` takes a token with and without ``Bearer `` before it.
        shared: the model on the host that models share at the first of its gateways, HTTP only, where there is one.
        internal: the model at the internal gateway, where that leads to it; for a model that is not public the same as
            the addresses above.
        service: the model's Service, past the gateways: for the models' namespace and the callers that the stack
            names. Absent without a gateway, where the addresses above are those of the Service.
        ready_url: answers 200 when the model can take requests.
        infer_url: takes inference requests.
        metrics_port: port of Triton's metrics on every pod.
        metrics_url: the metrics of one pod behind the model's address.
        timeout: longest time that a request may take.
        versions: which versions of the repository are served: ``all``, ``latest 1`` or ``1, 3``;
            ``repository`` where only the repository's own configuration says.
        inputs: tensors of a request; empty where only the repository knows them.
        outputs: tensors of an answer; empty where only the repository knows them.
        revisions: its revisions by name.
        mirror: copies of requests to a further revision.
        scaling_metrics: name of the custom metric behind each signal that scales the primary revision.
        debug: command that opens a shell in the debug twin, where the model has one.
        dashboard: its dashboard, where the stack names a Grafana.
        snippets: ready-made calls.
    """

    owner: str
    triton_model: str
    http_url: str
    http_target: str
    grpc_target: str
    tls: bool | None = None
    gateways: list[GatewayName] | None = None
    request_headers: list[str] | None = None
    shared: AddressEntry | None = None
    internal: AddressEntry | None = None
    service: AddressEntry | None = None
    ready_url: str
    infer_url: str
    metrics_port: int
    metrics_url: str
    timeout: str
    versions: str
    inputs: list[Tensor]
    outputs: list[Tensor]
    revisions: dict[str, RevisionEntry]
    mirror: MirrorEntry | None = None
    scaling_metrics: dict[str, str]
    debug: str | None = None
    dashboard: str | None = None
    snippets: Snippets


class GpuPoolEntry(_Part):
    """One GPU pool.

    Attributes:
        sharing: how pods share a card.
        gpu_model: the card.
        gpu_memory: memory of one card.
        node_label: label of its nodes.
        gpus: cards in the pool.
        gpus_asked_at_least: cards that the models ask for with their fewest replicas.
        gpus_asked_at_most: cards that the models ask for with their most replicas.
        gpus_spare: cards that stay free for rollouts.
    """

    sharing: str
    gpu_model: str
    gpu_memory: str
    node_label: str
    gpus: int
    gpus_asked_at_least: float
    gpus_asked_at_most: float
    gpus_spare: int


class Contract(_Part):
    """Everything that a stack exports.

    Attributes:
        contract: version of this document.
        environment: ``dev`` or ``prod``.
        namespace: where the models run.
        prometheus_url: address of the Prometheus that holds the series of the estate, inside the cluster, where the
            stack names one.
        models: the models by name.
        gpu_pools: the GPU pools by name.
        tokens: the token of each consumer by its name, a secret; absent where the stack makes none.
    """

    contract: Literal["triton-estate/v1"] = VERSION
    environment: str
    namespace: str
    prometheus_url: str | None = None
    models: dict[str, ModelEntry]
    gpu_pools: dict[str, GpuPoolEntry]
    tokens: dict[str, str] | None = None
