"""GPU pools of a stack file: nodes of one kind, and how pods share their cards."""

import re
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from spec.eks import EksSpec
from spec.fields import Cpu, LabelValue, Memory, PoolName, Spec, mebibytes, refuse, refuse_all
from spec.gpu import (
    GPU,
    GPU_CORES,
    GPU_MEMORY,
    GPU_MEMORY_PERCENT,
    VCUDA_CORE,
    VCUDA_MEMORY,
    MigProfile,
    SharingMode,
    mig_slices_per_card,
)
from spec.problems import Problem

# HAMi registers ten virtual GPUs for each card unless told otherwise (chart value deviceSplitCount).
HAMI_SPLIT: Final = 10
# Modes that whoever makes nodes can provide: cutting cards into slices takes somebody on the node, and gpu-manager is
# a part of TKE.
_EKS_MODES: Final = ("whole", "timeSlicing", "hami")
# Only the two effects that keep pods off; a preference would let CPU pods in.
_TAINT: Final = re.compile(
    r"^((?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
    r"=([A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?):(NoSchedule|NoExecute)$"
)
DEFAULT_TAINT: Final = f"{GPU}=present:NoSchedule"


class TaintParts(NamedTuple):
    """A taint in its parts."""

    key: str
    value: str
    effect: str


def _check_taint(value: str) -> str:
    if not _TAINT.fullmatch(value):
        fix = f"write for example {DEFAULT_TAINT}"
        refuse("not a taint that keeps pods off", allowed="<key>=<value>:NoSchedule or :NoExecute", fix=fix)
    return value


Taint = Annotated[str, AfterValidator(_check_taint), WithJsonSchema({"type": "string", "pattern": _TAINT.pattern})]


class GpuPoolSpec(Spec):
    """GPU nodes of one kind.

    Attributes:
        name: pool name, also the value of the node label.
        provider: ``simulated`` (KWOK nodes that run nothing), ``existing`` (nodes that carry the label already) or
            ``eks`` (a managed node group).
        nodes: number of nodes; absent for ``eks``, which has its own bounds.
        gpus_per_node: cards in each node.
        gpu_model: product name as GPU feature discovery writes it, e.g. ``NVIDIA-A100-SXM4-80GB``.
        gpu_memory: memory of one card.
        sharing: how pods share a card.
        slices: equal parts of a time-sliced card.
        mig_profile: the one profile that every card of a MIG pool is cut into.
        split: virtual GPUs of one card of a HAMi pool, which is how many pods may share it; by default 10.
        memory_scaling: GPU memory that HAMi hands out of one card, as a multiple of what the card has; by default 1.
            Above 1 the host's memory stands in for what is missing, which is slow and which HAMi calls experimental.
        taint: taint of every node, which all that runs there tolerates.
        cpu: CPUs of one simulated node.
        memory: memory of one simulated node.
        spare_gpus: cards that stay free for rollouts: a model that needs no more than these starts a new replica
            before an old one ends.
        eks: the node group of ``provider: eks``.
    """

    name: PoolName
    provider: Literal["simulated", "existing", "eks"] = "simulated"
    nodes: Annotated[int, Field(ge=1, le=1000)] = 1
    gpus_per_node: Annotated[int, Field(ge=1, le=16)] = 1
    gpu_model: LabelValue
    gpu_memory: Memory
    sharing: SharingMode = "whole"
    slices: Annotated[int, Field(ge=2, le=64)] | None = None
    mig_profile: MigProfile | None = None
    split: Annotated[int, Field(ge=1, le=100)] = HAMI_SPLIT
    memory_scaling: Annotated[float, Field(ge=1, le=10)] = 1.0
    taint: Taint = DEFAULT_TAINT
    cpu: Cpu = "32"
    memory: Memory = "256Gi"
    spare_gpus: Annotated[int, Field(ge=0, le=16)] = 0
    eks: EksSpec | None = None

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
        if self.sharing != "hami":
            self._refuse_written("only HAMi splits cards in this way", "split", "memory_scaling")
        return self

    @model_validator(mode="after")
    def _provider_is_complete(self) -> "GpuPoolSpec":
        if (self.provider == "eks") != (self.eks is not None):
            refuse("eks and provider: eks belong together", fix="give both or neither", field="eks")
        if self.provider != "simulated":
            owner = "nodes of EKS" if self.eks else "existing nodes"
            self._refuse_written(f"{owner} have their own size, which this would not change", "cpu", "memory")
        if self.eks is None:
            return self
        self._refuse_written("eks.max says how many there are", "nodes")
        if self.sharing not in _EKS_MODES:
            refuse(
                "nothing on the nodes of EKS would share their cards in this way",
                allowed=", ".join(_EKS_MODES),
                fix="choose another mode, or prepare nodes of your own and write provider: existing",
                field="sharing",
            )
        if self.eks.cards not in (None, self.gpus_per_node):
            refuse(
                f"{self.eks.instance_type} has {self.eks.cards} cards",
                allowed=str(self.eks.cards),
                fix=f"write {self.eks.cards}, or choose another instanceType",
                field="gpusPerNode",
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

    def _refuse_written(self, message: str, *fields: str) -> None:
        names = [GpuPoolSpec.model_fields[name].alias or name for name in fields if name in self.model_fields_set]
        if names:
            refuse_all([Problem(name, message, allowed="absent", fix=f"leave {name} out") for name in names])

    @property
    def most_nodes(self) -> int:
        """Nodes of the pool when it is largest."""
        return self.eks.max if self.eks else self.nodes

    @property
    def cards(self) -> int:
        """Cards in the whole pool when it is largest."""
        return self.most_nodes * self.gpus_per_node

    @property
    def card_mebibytes(self) -> int:
        """GPU memory that one card hands out, MiB."""
        return int(mebibytes(self.gpu_memory) * self.memory_scaling)

    @property
    def taint_parts(self) -> TaintParts:
        """The taint, taken apart."""
        match = _TAINT.fullmatch(self.taint)
        if not match:
            raise ValueError(self.taint)
        return TaintParts(match[1], match[2], match[3])

    def node_capacity(self) -> dict[str, str]:
        """Extended resources that one node of the pool offers."""
        cards, memory = self.gpus_per_node, self.card_mebibytes
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
                    GPU: str(cards * self.split),
                    GPU_CORES: str(cards * 100),
                    GPU_MEMORY: str(cards * memory),
                    GPU_MEMORY_PERCENT: str(cards * 100),
                }
            case "qgpu":
                return {
                    VCUDA_CORE: str(cards * 100),
                    VCUDA_MEMORY: str(cards * memory // 256),
                }
