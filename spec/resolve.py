"""What follows from a model file in one estate: Triton configuration, pool, GPU resources, replicas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic_core import PydanticCustomError

from spec import gpu, triton
from spec.estate import EstateSpec, GpuPoolSpec
from spec.fields import TRITON_NAME, TRITON_NAME_FORM, mebibytes, refuse
from spec.model import ModelSpec
from spec.problems import Problem
from spec.scaling import Scaling, resolve_scaling
from spec.triton import ModelConfig
from spec.validation import closest


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
    # Whether a GPU signal is right shows on the pool: without one there is another problem to solve first.
    undecided = spec.resources.gpu is not None and pool is None
    problems += [problem.under("scaling") for problem in more if not (undecided and problem.field == "gpu")]
    if problems or scaling is None:
        return None, problems
    return Model(spec, triton_name, configs, pool, gpu_limits, scaling, spec.image or estate.image), []


def _configs(spec: ModelSpec, folder: Path, problems: list[Problem]) -> tuple[str, dict[str, ModelConfig]]:
    served = _config(spec.config, spec.name, "config", folder, problems)
    triton_name = served.name if served is not None else spec.name
    if not TRITON_NAME.fullmatch(triton_name):
        problems.append(
            Problem(
                "config.name", "not a Triton model name", triton_name, TRITON_NAME_FORM, "rename the model's folder"
            )
        )
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
        written = spec.config if name == triton_name else spec.members[name].config
        problems += _in_its_file(found, written or {}, field, folder)
    return triton_name, configs


def _in_its_file(found: list[Problem], written: Mapping[str, object], field: str, folder: Path) -> Iterator[Problem]:
    """Problems of a configuration, where its author sees them: in the model file, or in the file that it names."""
    file = f"{folder.name}/{written['file']}" if "file" in written else ""
    yield from (replace(problem, file=file) if file else problem.under(field) for problem in found)


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
    if not isinstance(file, str) or Path(file).name != file or file in {"", ".."}:
        message = "must be the name of a file beside the model file"
        fix = "put the file beside the model file, and write its bare name"
        problems.append(Problem(f"{field}.file", message, file, "a file name without folders", fix))
        return None
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        problems.append(
            Problem(
                f"{field}.file", f"cannot be read: {reason}", file, "a text file", f"put {file} into {folder.name}/"
            )
        )
        return None
    config, found = triton.parse_text(text)
    problems += _in_its_file(found, written, field, folder)
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
    if request.memory and mebibytes(request.memory) > mebibytes(pool.gpu_memory):
        _refuse_size(pool, f"cards of {pool.gpu_memory}", request.memory)


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
