"""What follows from a model file in one estate: Triton configuration, pool, GPU resources, replicas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_core import PydanticCustomError

from spec import gpu, triton
from spec.estate import EstateSpec, GpuPoolSpec
from spec.fields import refuse
from spec.model import ModelSpec
from spec.problems import Problem
from spec.scaling import Scaling, resolve_scaling
from spec.triton import ModelConfig


@dataclass(frozen=True)
class Model:
    """A model file and what follows from it in this estate.

    Attributes:
        spec: the file, with the stack's overrides applied.
        triton_name: name of the served model inside Triton.
        configs: ModelConfig of each model that the server loads and that has one here, by Triton name.
        pool: the GPU pool that it runs on, None for a CPU model.
        gpu_limits: extended resources of one replica.
        scaling: replicas and signals with the environment's defaults filled in.
        image: the Triton image.
    """

    spec: ModelSpec
    triton_name: str
    configs: Mapping[str, ModelConfig]
    pool: GpuPoolSpec | None
    gpu_limits: Mapping[str, str]
    scaling: Scaling
    image: str


def resolve(spec: ModelSpec, estate: EstateSpec, folder: Path) -> tuple[Model | None, list[Problem]]:
    """Resolve one model.

    Args:
        spec: the model file.
        estate: the stack's settings.
        folder: folder of the model files, for ``config: {file: …}``.

    Returns:
        The model and no problems, or None and every problem, fields relative to the model file.
    """
    problems: list[Problem] = []
    triton_name, configs = _configs(spec, folder, problems)
    pool, gpu_limits = _placement(spec, estate, problems)
    scaling, more = resolve_scaling(spec.scaling, estate.environment, pool)
    problems += [problem.under("scaling") for problem in more]
    if problems or scaling is None:
        return None, problems
    return Model(spec, triton_name, configs, pool, gpu_limits, scaling, spec.image or estate.image), []


def _configs(spec: ModelSpec, folder: Path, problems: list[Problem]) -> tuple[str, dict[str, ModelConfig]]:
    served = _config(spec.config, spec.name, "config", folder, problems)
    triton_name = served.name if served is not None and served.name else spec.name
    configs = {} if served is None else {triton_name: served}
    for name, member in spec.members.items():
        field = f"members.{name}.config"
        config = _config(member.config, name, field, folder, problems)
        if name == triton_name:
            problems.append(
                Problem(f"members.{name}", "the served model itself has this name", name, fix="rename one of them")
            )
        if config is not None:
            if config.name != name:
                problems.append(
                    Problem(f"{field}.name", "is not the member's name", config.name, name, f"write {name}")
                )
            configs[name] = config
    for name, config in configs.items():
        field = "config" if name == triton_name else f"members.{name}.config"
        found = triton.check(config, gpu=spec.resources.gpu is not None)
        if config.HasField("ensemble_scheduling"):
            others = {member: configs.get(member) for member in (*spec.members, triton_name) if member != name}
            found += triton.check_ensemble(config, others)
        problems += [problem.under(field) for problem in found]
    return triton_name, configs


def _config(
    written: Mapping[str, object] | None, name: str, field: str, folder: Path, problems: list[Problem]
) -> ModelConfig | None:
    if written is None:
        return None
    if "file" in written:
        return _config_file(written, field, name, folder, problems)
    config, found = triton.parse(written)
    problems += [problem.under(field) for problem in found]
    if found:
        return None
    if not config.name:
        config.name = name
    return config


def _config_file(
    written: Mapping[str, object], field: str, name: str, folder: Path, problems: list[Problem]
) -> ModelConfig | None:
    file = written["file"]
    if len(written) > 1:
        others = ", ".join(sorted(key for key in written if key != "file"))
        problems.append(Problem(field, f"file stands beside {others}", fix="keep the file, or the fields"))
        return None
    if not isinstance(file, str) or Path(file).name != file:
        problems.append(Problem(f"{field}.file", "must be the name of a file beside the model file", file))
        return None
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(
            Problem(f"{field}.file", f"cannot be read: {error}", file, fix=f"put {file} into {folder.name}/")
        )
        return None
    config, found = triton.parse_text(text)
    problems += [replace(problem, file=f"{folder.name}/{file}") for problem in found]
    if found:
        return None
    if not config.name:
        config.name = name
    return config


def _placement(
    spec: ModelSpec, estate: EstateSpec, problems: list[Problem]
) -> tuple[GpuPoolSpec | None, dict[str, str]]:
    request = spec.resources.gpu
    if request is None:
        return None, {}
    if spec.pool is not None:
        pool = next((pool for pool in estate.gpu_pools if pool.name == spec.pool), None)
        if pool is None:
            known = ", ".join(pool.name for pool in estate.gpu_pools) or "none: the stack has no GPU pools"
            problems.append(Problem("pool", "the stack has no such GPU pool", spec.pool, known))
            return None, {}
        candidates = [pool]
    else:
        candidates = list(_pools_for(request, estate))
    refusals: list[PydanticCustomError] = []
    for pool in candidates:
        try:
            limits = gpu.limits(request, pool.sharing, pool.slices or 1)
            _fits_on_a_node(limits, pool)
        except PydanticCustomError as refusal:
            refusals.append(refusal)
        else:
            return pool, limits
    problems.append(_no_pool(request, estate, refusals))
    return None, {}


def _pools_for(request: gpu.GpuRequest, estate: EstateSpec) -> Iterator[GpuPoolSpec]:
    for mode in gpu.modes_for(request):
        yield from (pool for pool in estate.gpu_pools if pool.sharing == mode)


def _fits_on_a_node(limits: Mapping[str, str], pool: GpuPoolSpec) -> None:
    capacity = pool.node_capacity()
    for resource, wanted in limits.items():
        if resource not in capacity:
            refuse(f"pool {pool.name} offers {', '.join(capacity)}, not {resource}", allowed=", ".join(capacity))
        if int(wanted) > int(capacity[resource]):
            refuse(f"a node of pool {pool.name} has {capacity[resource]} {resource}, the model asks for {wanted}")


def _no_pool(request: gpu.GpuRequest, estate: EstateSpec, refusals: list[PydanticCustomError]) -> Problem:
    if refusals:
        context = refusals[0].context or {}
        allowed, fix = str(context.get("allowed", "")), str(context.get("fix", ""))
        return Problem("resources.gpu", refusals[0].message(), str(request), allowed, fix)
    modes = " or ".join(gpu.modes_for(request))
    pools = ", ".join(f"{pool.name} ({pool.sharing})" for pool in estate.gpu_pools) or "none"
    message = f"no GPU pool of this stack can serve it: it takes a pool in mode {modes}; pools: {pools}"
    return Problem("resources.gpu", message, str(request), fix="change the request, or add a pool to the stack file")
