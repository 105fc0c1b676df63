"""What a GPU request means on a pool: resource names, quantities, and which metric is right.

Sources: NVIDIA k8s-device-plugin (sharing, MIG strategies), HAMi (resource names and units), TKE gpu-manager
(vcuda-core in hundredths of a card, vcuda-memory in blocks of 256 MiB).
"""

import math
import re
from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from spec.fields import MEMORY_PATTERN, Memory, Spec, mebibytes, refuse

SharingMode = Literal["whole", "mig", "timeSlicing", "hami", "qgpu"]
GPU: Final = "nvidia.com/gpu"
# HAMi's names for a share of a card: percent of its compute, MiB of its memory, percent of its memory.
GPU_CORES: Final = "nvidia.com/gpucores"
GPU_MEMORY: Final = "nvidia.com/gpumem"
GPU_MEMORY_PERCENT: Final = "nvidia.com/gpumem-percentage"
# Of TKE's gpu-manager: hundredths of a card, blocks of 256 MiB. TKE's qGPU proper (tke.cloud.tencent.com/qgpu-core and
# qgpu-memory) counts in other units and is not what mode qgpu asks for.
VCUDA_CORE: Final = "tencent.com/vcuda-core"
VCUDA_MEMORY: Final = "tencent.com/vcuda-memory"
_VCUDA_BLOCK_MIB: Final = 256
_MIG_PROFILE: Final = re.compile(r"^([1-7])g\.([1-9][0-9]{0,2})gb$")
# An A100, H100, H200 or B200 has seven slices of compute.
_MIG_SLICES: Final = 7

# Device-level utilisation exists per pod only where a pod owns the device or the slice; where several pods share one
# device every sharer would see the device's value.
_GPU_METRIC_PER_POD: Final = frozenset({"whole", "mig"})


def _check_mig_profile(value: object) -> str:
    if not isinstance(value, str) or not _MIG_PROFILE.fullmatch(value):
        refuse("not a MIG profile", allowed="<slices>g.<memory>gb", fix="write for example 1g.10gb")
    return value


MigProfile = Annotated[
    str, BeforeValidator(_check_mig_profile), WithJsonSchema({"type": "string", "pattern": _MIG_PROFILE.pattern})
]


def mig_slices_per_card(profile: str, card_memory: str) -> int:
    """Slices of one profile that a card is cut into: its compute and its memory both have to suffice."""
    match = _MIG_PROFILE.fullmatch(profile)
    if not match:
        raise ValueError(profile)
    # A profile is named after its share of the memory in rounded gigabytes.
    return min(_MIG_SLICES // int(match[1]), round(mebibytes(card_memory) / 1024 / int(match[2])))


class GpuRequest(Spec):
    """A model's GPU need in one of four forms: whole cards, a fraction, memory and cores, or a MIG slice.

    Attributes:
        count: cards (or MIG slices, or virtual GPUs).
        fraction: share of one card, between 0 and 1.
        memory: GPU memory on each card.
        cores: percent of each card's compute.
        mig: MIG profile, e.g. ``1g.10gb``.
    """

    count: Annotated[int, Field(ge=1, le=16)] = 1
    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    memory: Memory | None = None
    cores: Annotated[int, Field(ge=1, le=100)] | None = None
    mig: MigProfile | None = None

    @model_validator(mode="after")
    def _one_form(self) -> "GpuRequest":
        if self.mig is not None and (self.memory or self.cores or self.fraction):
            refuse("a MIG slice has its memory and cores in its profile", fix="leave memory and cores out")
        if self.fraction is not None and (self.cores or self.count != 1):
            refuse("a fraction is a share of one card", fix="write {count, memory, cores} for several cards")
        return self

    @property
    def shared(self) -> bool:
        """Whether less than a whole card is asked for."""
        return self.fraction is not None or self.memory is not None or self.cores is not None or self.mig is not None

    @property
    def cards(self) -> float:
        """Cards asked for, as a number to add up; a MIG slice counts its compute sevenths."""
        if self.mig:
            return self.count * int(self.mig[0]) / 7
        if self.fraction:
            return self.fraction
        return self.count * (self.cores or 100) / 100

    def __str__(self) -> str:
        if self.mig:
            return f"{self.count} x {self.mig}"
        if self.fraction:
            return f"{self.fraction:g}"
        parts = [f"{self.memory}" if self.memory else "", f"{self.cores} % cores" if self.cores else ""]
        detail = ", ".join(part for part in parts if part)
        return f"{self.count} ({detail})" if detail else str(self.count)


def _read_request(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        refuse("not a GPU request", allowed=REQUEST_FORMS, fix="write for example gpu: 1")
    if isinstance(value, int):
        if value < 1:
            refuse("fewer than one GPU", allowed=REQUEST_FORMS, fix="leave gpu out for a CPU model")
        return {"count": value}
    if isinstance(value, float):
        if value > 1 and not value.is_integer():
            refuse("more than one card in fractions", allowed=REQUEST_FORMS, fix="write {count: 2, cores: 75}")
        return {"fraction": value} if value < 1 else {"count": int(value)}
    if isinstance(value, str):
        refuse("must be a number or a mapping", allowed=REQUEST_FORMS, fix="write for example gpu: 1")
    return value


REQUEST_FORMS: Final = "1, 0.5, {count: 1, memory: 8Gi, cores: 50} or {mig: 1g.10gb}"
Gpu = Annotated[
    GpuRequest,
    BeforeValidator(_read_request),
    WithJsonSchema(
        {
            "description": f"GPUs: {REQUEST_FORMS}",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "maximum": 16},
                {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "count": {"type": "integer", "minimum": 1, "maximum": 16},
                        "fraction": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                        "memory": {"type": "string", "pattern": MEMORY_PATTERN},
                        "cores": {"type": "integer", "minimum": 1, "maximum": 100},
                        "mig": {"type": "string", "pattern": _MIG_PROFILE.pattern},
                    },
                },
            ],
        }
    ),
]


def modes_for(request: GpuRequest) -> tuple[SharingMode, ...]:
    """Sharing modes that can serve a request."""
    if request.mig:
        return ("mig",)
    if request.memory or request.cores:
        return ("hami", "qgpu")
    if request.fraction:
        return ("timeSlicing", "hami", "qgpu")
    return ("whole", "hami", "qgpu")


def limits(request: GpuRequest, mode: SharingMode, slices: int) -> dict[str, str]:
    """Extended resources for a container's ``resources.limits``.

    Args:
        request: what the model asks for.
        mode: how the pool shares its cards; must be one of ``modes_for(request)``.
        slices: parts that a time-sliced card is cut into.

    Raises:
        PydanticCustomError: the pool's mode cannot serve the request; names the modes that can.
    """
    if mode not in modes_for(request):
        refuse(
            f"a pool in mode {mode} cannot serve gpu {request}",
            allowed=f"pools in mode {' or '.join(modes_for(request))}",
            fix="ask for another share, or choose another pool",
        )
    match mode:
        case "whole":
            return {GPU: str(request.count)}
        case "mig":
            return {f"nvidia.com/mig-{request.mig}": str(request.count)}
        case "timeSlicing":
            return _time_slice(request, slices)
        case "hami":
            return _hami(request)
        case "qgpu":
            return _qgpu(request)


def _time_slice(request: GpuRequest, slices: int) -> dict[str, str]:
    # More than one slice buys no more of the card (k8s-device-plugin README, failRequestsGreaterThanOne).
    # A third has no exact decimal form: 0.333 is meant as one.
    if request.fraction is None or abs(request.fraction * slices - 1) > 0.002:
        refuse(
            f"this pool cuts a card into {slices} equal slices",
            allowed=f"gpu: {1 / slices:g}",
            fix="ask for one slice, or choose a hami pool for other shares",
        )
    return {f"{GPU}.shared": "1"}


def _hami(request: GpuRequest) -> dict[str, str]:
    percent = _percent(request.fraction) if request.fraction else request.cores
    result = {GPU: str(request.count)}
    if percent is not None:
        result[GPU_CORES] = str(percent)
    if request.memory:
        result[GPU_MEMORY] = str(mebibytes(request.memory))
    elif request.fraction:
        result[GPU_MEMORY_PERCENT] = str(percent)
    return result


def _percent(fraction: float) -> int:
    percent = round(fraction * 100)
    if not 1 <= percent <= 99:
        refuse("a card is shared in whole percents", allowed="0.01 to 0.99", fix="write 1 for the whole card")
    return percent


def _qgpu(request: GpuRequest) -> dict[str, str]:
    cores = _percent(request.fraction) if request.fraction else request.count * (request.cores or 100)
    if request.count > 1 and cores != request.count * 100:
        refuse(
            "gpu-manager gives a pod a part of one card, or whole cards",
            allowed="vcuda-core below 100 or a multiple of it",
            fix="leave cores out, or write count: 1",
        )
    result = {VCUDA_CORE: str(cores)}
    if request.memory:
        blocks, rest = divmod(mebibytes(request.memory), _VCUDA_BLOCK_MIB)
        if rest:
            refuse(
                "GPU memory comes in blocks of 256 MiB here",
                allowed="a multiple of 256Mi",
                fix=f"write memory: {(blocks + 1) * _VCUDA_BLOCK_MIB}Mi",
            )
        result[VCUDA_MEMORY] = str(blocks * request.count)
    return result


def utilisation_is_per_pod(mode: SharingMode) -> bool:
    """Whether GPU utilisation can be told apart between the pods of a pool in this mode."""
    return mode in _GPU_METRIC_PER_POD
