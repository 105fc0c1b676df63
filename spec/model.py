"""A model file: what a model owner writes."""

from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from spec.fields import (
    Cpu,
    DnsLabel,
    DnsName,
    Duration,
    Environment,
    Image,
    LabelKey,
    LabelValue,
    Memory,
    ModelName,
    RevisionName,
    Spec,
    TritonName,
    duration_seconds,
    refuse,
)
from spec.gpu import Gpu
from spec.heartbeat import HeartbeatSpec
from spec.monitoring import AlertsSpec
from spec.names import POOL_LABEL
from spec.repository import Repository
from spec.schedule import ScheduleSpec
from spec.server import ServerOptions
from spec.traffic import AuthSpec, TrafficSpec

Percent = Annotated[int, Field(ge=1, le=100)]
# A Kubernetes quantity has no finer steps than thousandths.
Target = Annotated[float, Field(ge=0.001, le=1_000_000)]
_LONGEST_LOAD: Final = 24 * 3600
_LONGEST_DEBUG: Final = 7 * 24 * 3600
SIGNALS: Final = ("gpu", "qps", "queue_ms", "pending", "cpu", "memory")


class ResourcesSpec(Spec):
    """What one replica gets.

    Attributes:
        cpu: CPUs requested.
        memory: memory requested and allowed.
        gpu: GPUs, see ``spec.gpu``; absent for a CPU model.
    """

    cpu: Cpu
    memory: Memory
    gpu: Gpu | None = None


class ScalingSpec(Spec):
    """How many replicas, and which signals decide.

    Attributes:
        min: fewest replicas; by default 1 in dev and 3 in prod. 0 needs a ``schedule``, which starts the model again.
        max: most replicas; by default twice (dev) or three times (prod) the fewest. ``min == max`` fixes the number
            and makes no HPA.
        gpu: wanted GPU utilisation in percent; on a hami pool of the model's own share of the card.
        qps: wanted successful requests per second and replica.
        queue_ms: wanted queue time per request in milliseconds; of an ensemble that of each step.
        pending: wanted requests that wait in a replica.
        cpu: wanted CPU use in percent of the request.
        memory: wanted memory use in percent of the request.
        scale_up_stabilization: how long a higher demand must last before replicas are added.
        scale_down_stabilization: how long a lower demand must last before replicas are removed.
        schedule: times with more replicas; needs ``autoscaler: {backend: keda}`` in the stack.
    """

    min: Annotated[int, Field(ge=0, le=1000)] | None = None
    max: Annotated[int, Field(ge=1, le=1000)] | None = None
    gpu: Percent | None = None
    qps: Target | None = None
    queue_ms: Target | None = None
    pending: Target | None = None
    cpu: Percent | None = None
    memory: Percent | None = None
    scale_up_stabilization: Duration | None = None
    scale_down_stabilization: Duration | None = None
    schedule: list[ScheduleSpec] = Field(default_factory=list)

    @model_validator(mode="after")
    def _max_is_not_below_min(self) -> "ScalingSpec":
        if self.min is not None and self.max is not None and self.max < self.min:
            refuse(
                f"max {self.max} is below min {self.min}",
                fix="swap them, or write the same number for no autoscaling",
                field="max",
            )
        return self


class MemberSpec(Spec):
    """Another model in the same repository and the same server: a step of an ensemble, a model called by BLS.

    Attributes:
        config: as in ``ModelSpec``.
    """

    config: dict[str, object] | None = None


class CredentialsSpec(Spec):
    """Where a server gets the right to read its store; never the secret itself.

    Attributes:
        service_account: an existing ServiceAccount that the cloud trusts (workload identity).
        secret: an existing Secret whose keys become environment variables, e.g. ``AWS_ACCESS_KEY_ID``.
    """

    service_account: DnsName | None = None
    secret: DnsName | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> "CredentialsSpec":
        if (self.service_account is None) == (self.secret is None):
            refuse("needs exactly one of serviceAccount and secret", fix="name the one that exists in the namespace")
        return self


class RevisionSpec(Spec):
    """What runs: everything of a model file that a revision may have otherwise.

    Attributes:
        repository: folder in an object store that holds ``<model>/<version>/``.
        credentials: where the server gets the right to read the repository; by default from the node.
        load: ``sync`` copies the repository to a volume first, ``direct`` lets Triton read the store itself; by
            default ``sync`` where a config of this file has to lie over it, else ``direct``.
        control: Triton's model control mode: ``none`` loads once, ``poll`` follows changes of the store, ``explicit``
            loads this file's models and takes load and unload requests.
        resources: what one replica gets.
        pool: GPU pool to run on; by default the first one that can serve the GPU request.
        node_selector: further node labels to ask for.
        priority: an existing PriorityClass.
        image: Triton image, ``name:tag``, ``name@sha256:digest`` or both, ``name:tag@sha256:digest``; by default the
            estate's.
        environment: environment variables of the server; secrets belong in ``credentials``.
        config: Triton ModelConfig in Triton's own field names, ``{file: <name>.pbtxt}`` beside this file, or absent to
            take the repository's own.
        members: further models that the same server loads from the repository, by their Triton name.
        server: options of tritonserver in its own names.
        load_time: how long loading may take after the container started.
        scaling: how many replicas.
        alerts: when somebody is told.
        heartbeat: real requests to every replica; absent for none.
    """

    repository: Repository
    credentials: CredentialsSpec | None = None
    load: Literal["sync", "direct"] | None = None
    control: Literal["none", "poll", "explicit"] = "none"
    resources: ResourcesSpec
    pool: DnsLabel | None = None
    node_selector: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    priority: DnsName | None = None
    image: Image | None = None
    environment: Environment = Field(default_factory=dict)
    config: dict[str, object] | None = None
    members: dict[TritonName, MemberSpec] = Field(default_factory=dict)
    server: ServerOptions = Field(default_factory=dict)
    load_time: Duration = "300s"
    scaling: ScalingSpec = ScalingSpec()
    alerts: AlertsSpec = AlertsSpec()
    heartbeat: HeartbeatSpec | None = None

    @model_validator(mode="after")
    def _pool_needs_gpu(self) -> Self:
        if self.pool and not self.resources.gpu:
            refuse(
                "pool names a GPU pool, but resources.gpu is absent",
                fix="add resources.gpu, or leave pool out",
                field="pool",
            )
        return self

    @model_validator(mode="after")
    def _pool_label_comes_from_the_pool(self) -> Self:
        if POOL_LABEL in self.node_selector:
            refuse(
                "is decided by the pool", fix="name the pool instead: pool: <name>", field=f"nodeSelector.{POOL_LABEL}"
            )
        return self

    @model_validator(mode="after")
    def _load_time_has_an_end(self) -> Self:
        if not 1 <= duration_seconds(self.load_time) <= _LONGEST_LOAD:
            refuse("not a load time", allowed="1s to 24h", fix="write for example 300s", field="loadTime")
        return self

    @model_validator(mode="after")
    def _control_fits_the_way_of_loading(self) -> Self:
        if self.load == "direct" and self.repository.scheme == "pvc":
            refuse("Triton cannot read a claim itself", allowed="sync", fix="leave load out", field="load")
        if self.load == "direct" and self.has_config:
            refuse(
                "Triton would read the store's config.pbtxt and never see this file's",
                allowed="sync",
                fix="leave load out, or leave config out",
                field="load",
            )
        if self.control == "poll" and self.is_synced:
            refuse(
                "a synced copy never changes, so there is nothing to poll",
                allowed="none or explicit",
                fix="change the model file to roll out a new version, or let Triton read the store (load: direct)",
                field="control",
            )
        if "repository-poll-secs" in self.server and self.control != "poll":
            fix = "add control: poll, or leave the option out"
            refuse("does nothing without control: poll", fix=fix, field="server.repository-poll-secs")
        return self

    @property
    def has_config(self) -> bool:
        """Whether a configuration of this file has to reach Triton."""
        return self.config is not None or any(member.config is not None for member in self.members.values())

    @property
    def is_synced(self) -> bool:
        """Whether an init container copies the repository to a volume."""
        return self.load == "sync" or (self.load is None and (self.has_config or self.repository.scheme == "pvc"))


class DebugSpec(Spec):
    """A twin of a replica to look into: same image, repository, configuration, resources and node, but nothing runs.

    It gets no requests and ends by itself. A model file cannot have one in ``prod``; the stack file can.

    Attributes:
        lifetime: time after which it ends and gives its GPU back.
        image: another image, such as one with a notebook, written as the model's; by default that of the model.
    """

    lifetime: Duration = "8h"
    image: Image | None = None

    @model_validator(mode="after")
    def _ends_some_day(self) -> "DebugSpec":
        seconds = duration_seconds(self.lifetime)
        if not (60 <= seconds <= _LONGEST_DEBUG and seconds % 1 == 0):
            refuse("not a lifetime", allowed="1m to 168h", fix="write for example 8h", field="lifetime")
        return self


class ModelSpec(RevisionSpec):
    """One model file.

    Attributes:
        name: name of the service.
        owner: team that answers for the model.
        revisions: Deployments of the model by name, each with the fields in which it differs from the file; by default
            one, ``v1``, that differs in nothing.
        traffic: how requests reach the model and are shared out between revisions.
        auth: who may send requests; absent for everybody who reaches the gateway.
        debug: a twin of a replica of the primary revision to look into; absent for none.
    """

    name: ModelName
    owner: LabelValue
    revisions: dict[RevisionName, dict[str, object]] = Field(default_factory=dict)
    traffic: TrafficSpec = TrafficSpec()
    auth: AuthSpec | None = None
    debug: DebugSpec | None = None
