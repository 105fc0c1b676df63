"""The README's model files are taken as they stand."""

import re
from collections.abc import Callable

import yaml

from spec.catalog import Estate
from spec.model import ModelSpec
from tests.components.exposed import stack
from tests.conftest import PROJECT

SMALLEST, FULL = re.findall(r"```yaml\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)[:2]
SETTINGS = yaml.safe_load((PROJECT / "Pulumi.dev.yaml").read_text())["config"]
STACK = {key.removeprefix("triton-estate:"): value for key, value in SETTINGS.items()} | {"models": {}}
# A gateway, without which nobody would check a token.
GATEWAY = stack() | {key: value for key, value in STACK.items() if key != "cluster"}


def test_the_smallest_has_five_lines_at_most_and_is_enough(load_stack: Callable[..., Estate]) -> None:
    assert len(SMALLEST.strip().splitlines()) <= 5
    (model,) = load_stack({"a.yaml": SMALLEST}, STACK).models
    assert model.name == "fraud-score"


def test_the_full_one_is_accepted_and_shows_every_field(load_stack: Callable[..., Estate]) -> None:
    text = "".join(line for line in SMALLEST.splitlines(keepends=True) if not line.startswith("resources")) + FULL
    (model,) = load_stack({"a.yaml": text}, GATEWAY).models
    assert model.spec.model_fields_set == set(ModelSpec.model_fields)
