"""The stack file: what one environment looks like."""

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from spec.fields import Cpu, DnsLabel, Image, LabelValue, Memory, PoolName, Spec, mebibytes, refuse
from spec.gpu import GPU, MigProfile, SharingMode, mig_slices_per_card
from spec.monitoring import MonitoringSpec

Environment = Literal["dev", "prod"]

# HAMi registers ten virtual GPUs for each card unless told otherwise (chart value deviceSplitCount).
_HAMI_SPLIT: Final = 10


class ClusterSpec(Spec):
    """Which cluster the stack talks to.

    Attributes:
        provider: ``embedded`` (the plane of ``python -m local``) or ``existing``.
        kubeconfig: file of an existing cluster; by default what kubectl would use.
        context: context in it; by default the current one.
    """

    provider: Literal["embedded", "existing"] = "embedded"
    kubeconfig: str | None = None
    context: str | None = None

    @model_validator(mode="after")
    def _kubeconfig_belongs_to_existing(self) -> "ClusterSpec":
        if self.provider == "embedded" and (self.kubeconfig or self.context):
            refuse(
                "kubeconfig and context are for a cluster of your own",
                fix="write provider: existing, or leave kubeconfig and context out",
                field="kubeconfig" if self.kubeconfig else "context",
            )
        return self


class GpuPoolSpec(Spec):
    """GPU nodes of one kind.

    Attributes:
        name: pool name, also the value of the node label.
        provider: ``simulated`` (KWOK nodes that run nothing) or ``existing`` (nodes that carry the label already).
        nodes: number of nodes.
        gpus_per_node: cards in each node.
        gpu_model: product name as GPU feature discovery writes it, e.g. ``NVIDIA-A100-SXM4-80GB``.
        gpu_memory: memory of one card.
        sharing: how pods share a card.
        slices: equal parts of a time-sliced card.
        mig_profile: the one profile that every card of a MIG pool is cut into.
        cpu: CPUs of one simulated node.
        memory: memory of one simulated node.
        spare_gpus: cards that stay free for rollouts: a model that needs no more than these starts a new replica
            before an old one ends.
    """

    name: PoolName
    provider: Literal["simulated", "existing"] = "simulated"
    nodes: Annotated[int, Field(ge=1, le=1000)] = 1
    gpus_per_node: Annotated[int, Field(ge=1, le=16)] = 1
    gpu_model: LabelValue
    gpu_memory: Memory
    sharing: SharingMode = "whole"
    slices: Annotated[int, Field(ge=2, le=64)] | None = None
    mig_profile: MigProfile | None = None
    cpu: Cpu = "32"
    memory: Memory = "256Gi"
    spare_gpus: Annotated[int, Field(ge=0, le=16)] = 0

    @model_validator(mode="after")
    def _sharing_is_complete(self) -> "GpuPoolSpec":
        if (self.sharing == "timeSlicing") != (self.slices is not None):
            refuse("slices and sharing: timeSlicing belong together", fix="give both or neither", field="slices")
        if (self.sharing == "mig") != (self.mig_profile is not None):
            refuse("migProfile and sharing: mig belong together", fix="give both or neither", field="migProfile")
        if self.mig_profile and mig_slices_per_card(self.mig_profile, self.gpu_memory) == 0:
            refuse(
                f"a card of {self.gpu_memory} holds no such slice",
                allowed="a profile within gpuMemory",
                fix="write a smaller profile, or correct gpuMemory",
                field="migProfile",
            )
        return self

    @model_validator(mode="after")
    def _existing_nodes_have_their_size(self) -> "GpuPoolSpec":
        for name in ("cpu", "memory"):
            if self.provider == "existing" and name in self.model_fields_set:
                refuse(
                    "existing nodes have their own size, which this would not change",
                    allowed="absent",
                    fix=f"leave {name} out",
                    field=name,
                )
        return self

    @model_validator(mode="after")
    def _spare_leaves_cards_for_models(self) -> "GpuPoolSpec":
        if self.spare_gpus >= self.cards:
            refuse(
                f"the pool has {self.cards} cards, and none would be left for a model",
                allowed=f"0 to {self.cards - 1}",
                fix="keep fewer cards free, or add nodes",
                field="spareGpus",
            )
        return self

    @property
    def cards(self) -> int:
        """Cards in the whole pool."""
        return self.nodes * self.gpus_per_node

    def node_capacity(self) -> dict[str, str]:
        """Extended resources that one node of the pool offers."""
        cards, memory = self.gpus_per_node, mebibytes(self.gpu_memory)
        match self.sharing:
            case "whole":
                return {GPU: str(cards)}
            case "mig":
                slices = mig_slices_per_card(self.mig_profile or "", self.gpu_memory)
                return {f"nvidia.com/mig-{self.mig_profile}": str(cards * slices)}
            case "timeSlicing":
                return {f"{GPU}.shared": str(cards * (self.slices or 1))}
            case "hami":
                return {
                    GPU: str(cards * _HAMI_SPLIT),
                    "nvidia.com/gpucores": str(cards * 100),
                    "nvidia.com/gpumem": str(cards * memory),
                    "nvidia.com/gpumem-percentage": str(cards * 100),
                }
            case "qgpu":
                return {
                    "tencent.com/vcuda-core": str(cards * 100),
                    "tencent.com/vcuda-memory": str(cards * memory // 256),
                }


class EstateSpec(Spec):
    """All settings of a stack, under the project's namespace in ``Pulumi.<stack>.yaml``.

    Attributes:
        environment: ``dev`` or ``prod``: decides defaults such as the number of replicas.
        cluster: the cluster to talk to.
        namespace: where the models run.
        image: Triton image of every model that names none.
        gpu_pools: GPU nodes.
        monitoring: how Prometheus finds the models.
        models: per model name, fields that replace those of the model file.
    """

    environment: Environment
    cluster: ClusterSpec = ClusterSpec()
    namespace: DnsLabel = "serving"
    image: Image = "nvcr.io/nvidia/tritonserver:25.08-py3"
    gpu_pools: list[GpuPoolSpec] = Field(default_factory=list)
    monitoring: MonitoringSpec = MonitoringSpec()
    models: dict[str, dict[str, object]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _pool_names_differ(self) -> "EstateSpec":
        names = [pool.name for pool in self.gpu_pools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            refuse(
                f"two GPU pools are named {', '.join(twice)}",
                fix="give each pool a name of its own",
                field="gpuPools",
            )
        return self
