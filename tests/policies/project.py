"""Small projects on disk, and policies made for a test."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import yaml

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, Policy
from policies.judging.view import Resource, View
from spec.estate import EstateSpec
from spec.source import Source
from spec.validation import validate

Check = Callable[[Resource, View], Iterable[str]]


def spec_of(environment: str) -> EstateSpec:
    """The settings of a stack that holds nothing."""
    settings = {"environment": environment, "cluster": {"provider": "existing"}}
    spec, problems = validate(EstateSpec, settings, Source("settings", settings))
    assert spec, problems
    return spec


def policy(
    name: str,
    check: Check | None = None,
    *,
    estate: Callable[[View], Iterable[Finding]] | None = None,
    dev: Level = Level.ADVISORY,
    prod: Level = Level.MANDATORY,
) -> Policy:
    """A policy of a function."""
    return Policy(name, f"The rule of {name}", f"The why of {name}.", f"the fix of {name}", Severity.HIGH, dev, prod,
                  check, estate)  # fmt: skip


def thing(name: str = "a", inputs: dict[str, Any] | None = None, kind: str = "ConfigMap") -> Resource:
    """A Kubernetes object."""
    return Resource(f"kubernetes:core/v1:{kind}", name, {"metadata": {"name": name}} | (inputs or {}))


def project(
    folder: Path, *, settings: object = None, waivers: object = None, environments: tuple[str, ...] = ("dev", "prod")
) -> Path:
    """A project with a stack for each environment and the files of the policies, texts or what is in them."""
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    for environment in environments:
        config = {"triton-estate:environment": environment, "triton-estate:cluster": {"provider": "existing"}}
        (folder / f"Pulumi.{environment}.yaml").write_text(yaml.safe_dump({"config": config}), encoding="utf-8")
    for name, content in (("settings", settings or {"stacks": {}}), ("waivers", waivers or {"waivers": []})):
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        (folder / "policies" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder
