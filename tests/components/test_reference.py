"""The reference of the model file: each field, its default, and what it changes, as the program really does.

After a wanted change: ``GOLDEN=write .venv/bin/pytest tests/components/test_reference.py``.
"""

import os
from typing import Any

from pydantic_core import PydanticUndefined

from spec.fields import Spec
from spec.heartbeat import HeartbeatSpec
from spec.merge import merge
from spec.model import CredentialsSpec, DebugSpec, ModelSpec, ResourcesSpec, ScalingSpec
from spec.monitoring import AlertsSpec
from spec.schedule import ScheduleSpec
from spec.schema import field_texts
from spec.traffic import AuthSpec, CookieMatchSpec, ForTestersSpec, HeaderMatchSpec, LimitsSpec, MirrorSpec, TrafficSpec
from tests.components.conftest import ROOT, Render
from tests.components.test_every_input import MODEL, MODEL_CASES, Renderer, files, pools_of

PAGE = ROOT / "docs" / "model-file.md"
# Each part of the file, and what its fields are called in it.
PARTS: list[tuple[type[Spec], str]] = [
    (ModelSpec, ""),
    (ResourcesSpec, "resources."),
    (CredentialsSpec, "credentials."),
    (ScalingSpec, "scaling."),
    (ScheduleSpec, "scaling.schedule[]."),
    (TrafficSpec, "traffic."),
    (ForTestersSpec, "traffic.testers."),
    (HeaderMatchSpec, "traffic.testers.header."),
    (CookieMatchSpec, "traffic.testers.cookie."),
    (MirrorSpec, "traffic.mirror."),
    (LimitsSpec, "traffic.limits."),
    (AuthSpec, "auth."),
    (AlertsSpec, "alerts."),
    (HeartbeatSpec, "heartbeat."),
    (DebugSpec, "debug."),
]
HEAD = """\
# The model file

Every field, its default, and what a change of it changes in the cluster: the last column is measured by changing the
field in a model file and comparing what the program registers (tests/components/test_reference.py writes this page).

| field | meaning | default | changes |
|---|---|---|---|
"""


def objects(found: Render) -> dict[str, Any]:
    """Everything registered, by kind and name, and the outputs."""
    registered = {f"{token.rsplit(':', 1)[1]} {name}": inputs for (token, name), inputs in found.resources.items()}
    return registered | {"outputs": found.outputs}


def changed(render: Renderer, spec: type[Spec], field: str) -> set[str]:
    """Kinds of which an object comes, goes or differs when the field changes."""
    kinds: set[str] = set()
    for case in MODEL_CASES:
        if case[:2] != (spec, field):
            continue
        model = merge(MODEL, case[2])
        pools = pools_of(*case[:3])
        one, two = (objects(render(files(spec, field, each), **pools)) for each in (model, merge(model, case[3])))
        differing = {key for key in one.keys() | two.keys() if one.get(key) != two.get(key)}
        kinds |= {key.split()[0] for key in differing}
    return kinds - {"TritonService", "ModelRoutes"}


def default(spec: type[Spec], name: str) -> str:
    """The default as one writes it."""
    value = spec.model_fields[name].get_default(call_default_factory=True)
    if value is PydanticUndefined:
        return "required"
    return "" if value is None or isinstance(value, Spec) or value == {} else f"`{value}`"


def page(render: Renderer) -> str:
    """The whole page."""
    rows = []
    for spec, prefix in PARTS:
        texts = field_texts(spec)
        for name, field in spec.model_fields.items():
            effect = ", ".join(sorted(changed(render, spec, str(field.alias))))
            meaning = texts[str(field.alias)].replace("``", "`").rstrip(".").replace("|", "\\|")
            rows.append(f"| `{prefix}{field.alias}` | {meaning} | {default(spec, name)} | {effect} |\n")
    return HEAD + "".join(rows)


def test_the_page_is_what_the_program_does(render: Renderer) -> None:
    text = page(render)
    if os.environ.get("GOLDEN") == "write":
        PAGE.write_text(text)
    assert PAGE.read_text() == text, "GOLDEN=write .venv/bin/pytest tests/components/test_reference.py"


def test_every_field_has_a_row_and_changes_something() -> None:
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    fields = [f"{prefix}{field.alias}" for spec, prefix in PARTS for field in spec.model_fields.values()]
    assert [row[0].strip("| `") for row in rows] == fields
    assert all(row[-1].strip("| ") for row in rows)
