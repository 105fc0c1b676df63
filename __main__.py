"""The Pulumi program: load the stack, build the estate, export its contract."""

import json
from pathlib import Path

import pulumi
from pulumi.runtime import get_config_env

from components.estate import TritonEstate, TritonEstateArgs
from spec.catalog import load
from spec.problems import SpecError


def settings() -> dict[str, object]:
    """The stack's own settings: objects and lists arrive as JSON, text as it is."""
    prefix = f"{pulumi.get_project()}:"
    values = {k.removeprefix(prefix): v for k, v in get_config_env().items() if k.startswith(prefix)}
    return {key: json.loads(value) if value.startswith(("{", "[")) else value for key, value in values.items()}


try:
    estate = load(Path("models"), settings(), f"Pulumi.{pulumi.get_stack()}.yaml")
except SpecError as error:
    raise pulumi.RunError(str(error)) from None
for name, value in TritonEstate("estate", TritonEstateArgs(estate=estate)).outputs.items():
    pulumi.export(name, value)
