"""Small estates to judge: what the program makes of settings and models, and what somebody did to it."""

import copy
import datetime as dt
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from policies.catalog import POLICIES
from policies.judging.judge import Judge, Verdict
from policies.judging.pack import judge_all
from policies.judging.settings import StackPolicies, Waiver
from policies.judging.unknown import plain
from policies.judging.view import Resource, View
from spec.estate import EstateSpec
from spec.merge import merge
from spec.source import Source
from spec.validation import validate
from tests.components.conftest import run

CORPUS: Final = Path(__file__).with_name("corpus")
TODAY: Final = dt.date(2026, 12, 1)
FIELDS: Final = {"about", "base", "settings", "models", "policies", "waivers", "set", "remove", "add"}
# Resources that live as long as the session, and what policies say of them under some settings.
_SHARED: Final[set[int]] = set()
_SAID: Final[dict[tuple[int, str], list[Verdict]]] = {}
MODEL: Final = {"owner": "vision", "resources": {"cpu": 1, "memory": "2Gi"}}


@dataclass(frozen=True)
class Case:
    """One estate of the corpus: its settings and resources."""

    judge: Judge
    resources: tuple[Resource, ...]
    told: str = ""

    def verdicts(self) -> list[Verdict]:
        """All that the policies say."""
        if self.judge.waivers:
            return judge_all(self.judge, self.resources)
        return [said for one in self.resources for said in self._of(one)] + list(
            self.judge.judge_estate(self.resources)
        )

    def _of(self, resource: Resource) -> list[Verdict]:
        """What is said of one resource; most estates share most of theirs, and nothing else is new of those."""
        key = (id(resource), self.told)
        if id(resource) not in _SHARED:
            return list(self.judge.judge_object(resource))
        if key not in _SAID:
            _SAID[key] = list(self.judge.judge_object(resource))
        return _SAID[key]

    def view(self) -> View:
        """What policies look at."""
        return View(self.judge.view.stack, self.judge.view.spec, self.judge.view.policies, self.resources)


def case(content: Mapping[str, Any]) -> Case:
    """An estate as a file of the corpus describes it.

    Fields:
        about: one line for readers.
        base: a file of ``corpus/base``: ``prod`` (default), ``dev`` or ``bare`` (no objects).
        settings, models: laid over those of the base; a model is null to take it out.
        policies: settings of the policies for this stack, see StackPolicies.
        waivers: waivers for this stack.
        remove: objects to take out, ``<kind>/<name>``.
        set: ``<kind>/<name>`` -> path with slashes -> value; null takes it out, ``-`` at the end of a path appends.
        add: more objects, as in a manifest, or ``{type, name, inputs}`` for what is not of Kubernetes.
    """
    assert set(content) <= FIELDS, set(content) - FIELDS
    base = _base(content.get("base", "prod"))
    settings = merge(base["settings"], content.get("settings", {}))
    models = {
        name: merge(base.get("models", {}).get(name, MODEL | {"repository": f"s3://acme/{name}"}), more)
        for name, more in ({name: {} for name in base.get("models", {})} | content.get("models", {})).items()
        if more is not None
    }
    recorded = () if base.get("objects") == "none" else _recorded(json.dumps([settings, models], sort_keys=True))
    resources = list(recorded)
    for key in content.get("remove", ()):
        resources.remove(_find(resources, key))
    for key, edits in content.get("set", {}).items():
        found = _find(resources, key)
        edited = Resource(found.type, found.name, copy.deepcopy(dict(found.inputs)))
        resources[resources.index(found)] = edited
        for path, value in edits.items():
            _set(edited.inputs, path, value)
    resources += [_added(one) for one in content.get("add", ())]
    spec, problems = validate(EstateSpec, settings, Source("settings", settings))
    assert spec, problems
    policies, problems = validate(
        StackPolicies, merge(base.get("policies", {}), content.get("policies", {})), Source("policies", {})
    )
    assert policies, problems
    waivers = tuple(Waiver.model_validate(waiver | {"stack": "test"}) for waiver in content.get("waivers", ()))
    told = json.dumps([settings, policies.model_dump()], sort_keys=True)
    return Case(Judge(POLICIES, View("test", spec, policies), waivers, TODAY), tuple(resources), told)


@lru_cache
def _base(name: str) -> dict[str, Any]:
    return yaml.safe_load((CORPUS / "base" / f"{name}.yaml").read_text())


@cache
def _recorded(key: str) -> tuple[Resource, ...]:
    """What the program registers; the same settings and models once only."""
    settings, models = json.loads(key)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "models").mkdir()
        for name, fields in models.items():
            text = yaml.safe_dump({"name": name, **MODEL, "repository": f"s3://acme/{name}", **fields})
            (Path(folder) / "models" / f"{name}.yaml").write_text(text)
        rendered = run(Path(folder), settings)
    found = tuple(Resource(kind, name, plain(inputs)) for (kind, name), inputs in rendered.resources.items())
    _SHARED.update(id(one) for one in found)
    return found


def _find(resources: list[Resource], key: str) -> Resource:
    found = [one for one in resources if one.key == key]
    assert len(found) == 1, f"{key}: {len(found)} of {sorted(one.key for one in resources)}"
    return found[0]


def _set(inputs: Any, path: str, value: Any) -> None:
    *steps, last = path.replace("~1", "\0").split("/")
    steps = [step.replace("\0", "/") for step in steps]
    last = last.replace("\0", "/")
    for step in steps:
        inputs = inputs[int(step)] if isinstance(inputs, list) else inputs.setdefault(step, {})
    if isinstance(inputs, list):
        if last == "-":
            inputs.append(value)
        elif value is None:
            del inputs[int(last)]
        else:
            inputs[int(last)] = value
    elif value is None:
        del inputs[last]
    else:
        inputs[last] = value


def _added(content: Mapping[str, Any]) -> Resource:
    if "type" in content and "apiVersion" not in content:
        return Resource(content["type"], content["name"], plain(content.get("inputs", {})))
    api, kind = content["apiVersion"], content["kind"]
    token = f"kubernetes:{api if '/' in api else f'core/{api}'}:{kind}"
    return Resource(token, content["metadata"]["name"], plain(dict(content)))


@pytest.fixture(scope="session")
def prod() -> Case:
    """The base estate ``prod``."""
    return case({})
