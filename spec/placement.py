"""Find the GPU pool that can serve a request."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic_core import PydanticCustomError

from spec import gpu
from spec.estate import EstateSpec
from spec.fields import mebibytes, refuse
from spec.model import RevisionSpec
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.validation import closest


def place(spec: RevisionSpec, estate: EstateSpec, problems: list[Problem]) -> tuple[GpuPoolSpec | None, dict[str, str]]:
    """The pool that a revision runs on and the extended resources of one replica; mistakes go to ``problems``."""
    request = spec.resources.gpu
    if request is None:
        return None, {}
    if spec.pool is not None:
        pool = next((pool for pool in estate.gpu_pools if pool.name == spec.pool), None)
        if pool is None:
            known = ", ".join(pool.name for pool in estate.gpu_pools) or "none: the stack has no GPU pools"
            fix = closest(spec.pool, [pool.name for pool in estate.gpu_pools]) or "name one of them, or leave pool out"
            problems.append(Problem("pool", "the stack has no such GPU pool", spec.pool, known, fix))
            return None, {}
        candidates = [pool]
    else:
        candidates = list(_pools_for(request, estate))
    refusals: list[PydanticCustomError] = []
    for pool in candidates:
        try:
            limits = gpu.limits(request, pool.sharing, pool.slices or 1)
            _fits_on_a_node(request, limits, pool)
        except PydanticCustomError as refusal:
            refusals.append(refusal)
        else:
            return pool, limits
    problems.append(_no_pool(request, estate, refusals))
    return None, {}


def _pools_for(request: gpu.GpuRequest, estate: EstateSpec) -> Iterator[GpuPoolSpec]:
    for mode in gpu.modes_for(request):
        yield from (pool for pool in estate.gpu_pools if pool.sharing == mode)


def _fits_on_a_node(request: gpu.GpuRequest, limits: Mapping[str, str], pool: GpuPoolSpec) -> None:
    capacity = pool.node_capacity()
    for resource, wanted in limits.items():
        if resource not in capacity:
            fix = "write what the pool offers, or choose another pool"
            refuse(f"pool {pool.name} offers no {resource}", allowed=", ".join(capacity), fix=fix)
        if int(wanted) > int(capacity[resource]):
            _refuse_size(pool, f"{capacity[resource]} {resource}", wanted)
    if request.mig is None and request.count > pool.gpus_per_node:
        _refuse_size(pool, f"{pool.gpus_per_node} cards", str(request.count))
    if request.memory and mebibytes(request.memory) > pool.card_mebibytes:
        _refuse_size(pool, f"cards of {_offered_memory(pool)}", request.memory)


def _offered_memory(pool: GpuPoolSpec) -> str:
    return pool.gpu_memory if pool.memory_scaling == 1 else f"{pool.card_mebibytes}Mi"


def _refuse_size(pool: GpuPoolSpec, offered: str, wanted: str) -> None:
    message = f"a node of pool {pool.name} has {offered}, the model asks for {wanted}"
    refuse(message, allowed=f"at most {offered}", fix="ask for less, or add a larger pool to the stack file")


def _no_pool(request: gpu.GpuRequest, estate: EstateSpec, refusals: list[PydanticCustomError]) -> Problem:
    if refusals:
        refused: Problem = (refusals[0].context or {})["problems"][0]
        return replace(refused, field="resources.gpu", value=str(request))
    modes = " or ".join(gpu.modes_for(request))
    pools = ", ".join(f"{pool.name} ({pool.sharing})" for pool in estate.gpu_pools) or "none"
    message = f"no GPU pool of this stack can serve it: it takes a pool in mode {modes}; pools: {pools}"
    return Problem("resources.gpu", message, str(request), fix="change the request, or add a pool to the stack file")
