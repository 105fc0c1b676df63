"""What follows from a model file in one estate: Triton configuration, pool, GPU resources, replicas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from spec import triton
from spec.beside import read_beside
from spec.estate import EstateSpec
from spec.exposure import check_exposure
from spec.fields import TRITON_NAME, TRITON_NAME_FORM, duration_seconds
from spec.gpu_software import pod_labels
from spec.heartbeat import Heartbeat, resolve_heartbeat
from spec.model import ModelSpec, RevisionSpec
from spec.monitoring import check_alerts
from spec.placement import place
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.revisions import check_interfaces, check_traffic, weights
from spec.scaling import Scaling, resolve_scaling
from spec.triton import ModelConfig


@dataclass(frozen=True)
class Revision:
    """One Deployment of a model, and what follows from its spec in this estate.

    Attributes:
        model: name of the model.
        owner: its owner.
        name: name of the revision.
        spec: the model file with the stack's overrides and the revision's differences applied.
        triton_name: name of the served model inside Triton.
        configs: ModelConfig of each model that the server loads and that has one here, by Triton name.
        pool: the GPU pool that it runs on, None for a CPU model.
        gpu_limits: extended resources of one replica.
        scaling: replicas and signals with the environment's defaults filled in.
        image: the Triton image.
        timeout: seconds that a request may take at most.
        heartbeat: real requests to every replica, None for none.
        pod_labels: labels that the software on the pool's nodes wants of a pod.
    """

    model: str
    owner: str
    name: str
    spec: RevisionSpec
    triton_name: str
    configs: Mapping[str, ModelConfig]
    pool: GpuPoolSpec | None
    gpu_limits: Mapping[str, str]
    scaling: Scaling
    image: str
    timeout: float
    heartbeat: Heartbeat | None
    pod_labels: Mapping[str, str]


@dataclass(frozen=True)
class Model:
    """A model of the estate.

    Attributes:
        spec: the file, with the stack's overrides applied.
        revisions: its Deployments, in the order of the file.
        weights: share of the requests of each revision in percent, by name.
    """

    spec: ModelSpec
    revisions: tuple[Revision, ...]
    weights: Mapping[str, int]

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.spec.name

    @property
    def needs_token(self) -> bool:
        """Whether the gateway lets requests through with a token only."""
        return self.spec.auth is not None and self.spec.auth.token

    @property
    def primary(self) -> Revision:
        """The revision with the largest weight; of equal ones the first."""
        return max(self.revisions, key=lambda revision: self.weights[revision.name])


def resolve(
    spec: ModelSpec, revisions: Mapping[str, RevisionSpec], estate: EstateSpec, folder: Path
) -> tuple[Model | None, list[Problem]]:
    """Resolve one model.

    Args:
        spec: the model file.
        revisions: its revisions, see ``spec.revisions.revision_specs``.
        estate: the stack's settings.
        folder: folder of the model files, for ``config: {file: …}``.

    Returns:
        The model and no problems, or None and every problem, fields relative to the model file.
    """
    problems = [problem.under("traffic") for problem in check_traffic(spec.traffic, list(revisions))]
    resolved: list[Revision] = []
    for name, revision_spec in revisions.items():
        revision, found = _revision(spec, name, revision_spec, estate, folder)
        resolved += [revision] if revision else []
        # What is wrong without the differences too is told once, where it stands: in the file itself.
        own = _revision(spec, name, spec, estate, folder)[1] if found else []
        for problem in found:
            placed = problem if problem.file or problem in own else problem.under(f"revisions.{name}")
            problems += [] if placed in problems else [placed]
    problems += check_exposure(spec, [revision.configs.get(revision.triton_name) for revision in resolved], estate)
    if problems:
        return None, problems
    shares = weights(spec.traffic, list(revisions))
    asked = {found.to for found in (spec.traffic.mirror, spec.traffic.testers) if found}
    serving = {one.name: one for one in resolved if shares[one.name] > 0 or one.name in asked}
    problems += check_interfaces(
        {name: (one.triton_name, one.configs.get(one.triton_name)) for name, one in serving.items()}
    )
    return (None, problems) if problems else (Model(spec, tuple(resolved), shares), [])


def _revision(
    model: ModelSpec, name: str, spec: RevisionSpec, estate: EstateSpec, folder: Path
) -> tuple[Revision | None, list[Problem]]:
    problems: list[Problem] = []
    image = spec.image or estate.image
    triton_name, configs = _configs(model.name, spec, image, folder, problems)
    pool, gpu_limits = place(spec, estate, problems)
    served = configs.get(triton_name)
    found = check_alerts(spec.alerts, spec.server, served, estate.monitoring)
    problems += [problem.under("alerts") for problem in found]
    scaling, more = resolve_scaling(spec, estate, pool, triton_name, configs)
    # Whether a GPU signal is right shows on the pool: without one there is another problem to solve first.
    undecided = spec.resources.gpu is not None and pool is None
    problems += [problem.under("scaling") for problem in more if not (undecided and problem.field == "gpu")]
    heartbeat = resolve_heartbeat(spec.heartbeat, served, folder, problems)
    if problems or scaling is None:
        return None, problems
    return (
        Revision(
            model.name,
            model.owner,
            name,
            spec,
            triton_name,
            configs,
            pool,
            gpu_limits,
            scaling,
            image,
            float(duration_seconds(model.traffic.timeout)),
            heartbeat,
            pod_labels(estate.gpu_software, pool),
        ),
        [],
    )


def _configs(
    model: str, spec: RevisionSpec, image: str, folder: Path, problems: list[Problem]
) -> tuple[str, dict[str, ModelConfig]]:
    served = _config(spec.config, model, "config", folder, problems)
    triton_name = served.name if served is not None else model
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
        found = triton.check(config, gpu=spec.resources.gpu is not None) + triton.check_image(config, image)
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
    text, problem = read_beside(file, folder)
    if text is None:
        problems += [problem.under(f"{field}.file")] if problem else []
        return None
    config, found = triton.parse_text(text)
    problems += _in_its_file(found, written, field, folder)
    if found:
        return None
    if not config.name:
        config.name = name
    return config
