"""A model file: what a model owner writes."""

from typing import Annotated, Final

from pydantic import Field, model_validator

from spec.fields import (
    Cpu,
    DnsLabel,
    Duration,
    Image,
    LabelValue,
    Memory,
    ModelName,
    Spec,
    TritonName,
    duration_seconds,
    refuse,
)
from spec.gpu import Gpu
from spec.repository import Repository
from spec.server import ServerOptions

Percent = Annotated[int, Field(ge=1, le=100)]
# A Kubernetes quantity has no finer steps than thousandths.
Target = Annotated[float, Field(ge=0.001, le=1_000_000)]
_LONGEST_LOAD: Final = 24 * 3600
SIGNALS: Final = ("gpu", "qps", "queue_ms", "cpu", "memory")


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
        min: fewest replicas; by default 1 in dev and 3 in prod.
        max: most replicas; by default twice (dev) or three times (prod) the fewest. ``min == max`` fixes the number
            and makes no HPA.
        gpu: wanted GPU utilisation in percent.
        qps: wanted successful requests per second and replica.
        queue_ms: wanted queue time per request in milliseconds.
        cpu: wanted CPU use in percent of the request.
        memory: wanted memory use in percent of the request.
        scale_up_stabilization: how long a higher demand must last before replicas are added.
        scale_down_stabilization: how long a lower demand must last before replicas are removed.
    """

    min: Annotated[int, Field(ge=1, le=1000)] | None = None
    max: Annotated[int, Field(ge=1, le=1000)] | None = None
    gpu: Percent | None = None
    qps: Target | None = None
    queue_ms: Target | None = None
    cpu: Percent | None = None
    memory: Percent | None = None
    scale_up_stabilization: Duration | None = None
    scale_down_stabilization: Duration | None = None

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


class ModelSpec(Spec):
    """One model file.

    Attributes:
        name: name of the service.
        owner: team that answers for the model.
        repository: folder in an object store that holds ``<model>/<version>/``.
        resources: what one replica gets.
        pool: GPU pool to run on; by default the first one that can serve the GPU request.
        image: Triton image; by default the estate's.
        config: Triton ModelConfig in Triton's own field names, ``{file: <name>.pbtxt}`` beside this file, or absent to
            take the repository's own.
        members: further models that the same server loads from the repository, by their Triton name.
        server: options of tritonserver in its own names.
        load_time: how long loading may take after the container started.
        scaling: how many replicas.
    """

    name: ModelName
    owner: LabelValue
    repository: Repository
    resources: ResourcesSpec
    pool: DnsLabel | None = None
    image: Image | None = None
    config: dict[str, object] | None = None
    members: dict[TritonName, MemberSpec] = Field(default_factory=dict)
    server: ServerOptions = Field(default_factory=dict)
    load_time: Duration = "300s"
    scaling: ScalingSpec = ScalingSpec()

    @model_validator(mode="after")
    def _pool_needs_gpu(self) -> "ModelSpec":
        if self.pool and not self.resources.gpu:
            refuse(
                "pool names a GPU pool, but resources.gpu is absent",
                fix="add resources.gpu, or leave pool out",
                field="pool",
            )
        return self

    @model_validator(mode="after")
    def _load_time_has_an_end(self) -> "ModelSpec":
        if not 1 <= duration_seconds(self.load_time) <= _LONGEST_LOAD:
            refuse("not a load time", allowed="1s to 24h", fix="write for example 300s", field="loadTime")
        return self
