"""The project's settings as they stand in ``Pulumi.<stack>.yaml``, for whoever runs without the engine."""

from pathlib import Path

from spec import names, source
from spec.problems import Problem, SpecError


def stack_settings(project: Path, stack: str) -> dict[str, object]:
    """The project's own settings, keys as in ``EstateSpec``.

    Raises:
        SpecError: the file is missing or not valid YAML.
    """
    name = f"Pulumi.{stack}.yaml"
    found = source.read(project / name, name)
    config = found.data.get("config", {})
    problems = list(found.problems)
    if not isinstance(config, dict):
        line = found.line(("config",))
        problems.append(Problem("config", "must hold a mapping of settings", config, file=name, line=line))
    if problems or not isinstance(config, dict):
        raise SpecError(problems)
    prefix = f"{names.PROJECT}:"
    return {str(k).removeprefix(prefix): v for k, v in config.items() if str(k).startswith(prefix)}
