"""The Pulumi program: load the stack, build the estate, export its contract."""

import json
from pathlib import Path

import pulumi
from pulumi.runtime import get_config_env, is_config_secret

from components.estate import TritonEstate, TritonEstateArgs
from spec.catalog import load
from spec.problems import SpecError
from spec.signing import KEYS_SETTING, check_keys


def settings() -> dict[str, object]:
    """The stack's own settings: objects and lists arrive as JSON, text as it is."""
    prefix = f"{pulumi.get_project()}:"
    values = {k.removeprefix(prefix): v for k, v in get_config_env().items() if k.startswith(prefix)}
    values.pop(KEYS_SETTING, None)  # a secret, and as such it is handed on
    return {key: json.loads(value) if value.startswith(("{", "[")) else value for key, value in values.items()}


try:
    estate = load(Path("models"), settings(), f"Pulumi.{pulumi.get_stack()}.yaml")
    keys, config = f"{pulumi.get_project()}:{KEYS_SETTING}", pulumi.Config()
    check_keys(estate.spec.tokens, config.get(KEYS_SETTING), secret=is_config_secret(keys))
except SpecError as error:
    raise pulumi.RunError(str(error)) from None
arguments = TritonEstateArgs(estate=estate, token_keys=config.get_secret(KEYS_SETTING))
for name, value in TritonEstate("estate", arguments).outputs.items():
    pulumi.export(name, value)
