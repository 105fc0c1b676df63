"""Stacks with a Prometheus, and what Prometheus would make of its scrape jobs."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import yaml

from local.toolchain import Toolchain
from tests.components.conftest import A100, POOLS, Render, unsealed

MANAGED: dict[str, Any] = {"prometheus": {"provider": "managed"}}
EXISTING: dict[str, Any] = {"prometheus": {"provider": "existing", "release": "mon", "namespace": "obs"}}
FULL: dict[str, Any] = {
    "installOperator": True,
    "labels": {"prometheus": "estate", "team": "infra"},
    "scrapeInterval": "30s",
    "owner": "infra",
    "prometheus": {
        "retention": "30d",
        "storage": {"size": "100Gi", "storageClass": "fast"},
        "cpu": 2,
        "memory": "8Gi",
        "replicas": 2,
        "externalLabels": {"cluster": "eu"},
        "alertmanager": {"configSecret": "receivers", "replicas": 3, "storage": {"size": "1Gi"}},
    },
}
SOFTWARE = {"devicePlugin": "managed", "dcgmExporter": "managed"}
POOL = POOLS[0] | A100

PLURALS = {
    "Alertmanager": "alertmanagers",
    "Prometheus": "prometheuses",
    "PrometheusRule": "prometheusrules",
    "ServiceMonitor": "servicemonitors",
}


def jobs(found: Render) -> dict[str, dict[str, Any]]:
    """The scrape jobs of a rendered stack, by name, as Prometheus reads them."""
    files = unsealed(found.one("Secret", "prometheus-scrape-jobs"))["stringData"]
    reference = found.one("Prometheus")["spec"]["additionalScrapeConfigs"]
    assert reference["name"] == "prometheus-scrape-jobs"
    return {job["job_name"]: job for job in yaml.safe_load(files[reference["key"]])}


def relabelled(steps: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> dict[str, str] | None:
    """The labels of a target after relabelling, None where it is dropped: Prometheus's rules, defaults included."""
    found = dict(labels)
    for step in steps:
        regex = re.compile(step.get("regex", "(.*)"))
        source = ";".join(found.get(name, "") for name in step.get("source_labels", []))
        match = regex.fullmatch(source)
        replacement = re.sub(r"\$(\d+)", r"\\\1", step.get("replacement", "$1"))
        if step["action"] == "keep" and not match:
            return None
        if step["action"] == "drop" and match:
            return None
        if step["action"] == "labelmap":
            mapped = {name: regex.fullmatch(name) for name in found}
            found |= {hit.expand(replacement): found[name] for name, hit in mapped.items() if hit}
        if step["action"] == "replace" and match:
            found[step["target_label"]] = match.expand(replacement)
            found = {name: value for name, value in found.items() if value or name.startswith("__")}
    return found


def stored(sample: Mapping[str, str], target: Mapping[str, str], *, honor: bool) -> dict[str, str]:
    """The labels of a series: those that the exporter wrote and those of its target, which one of them wins."""
    visible = {name: value for name, value in target.items() if not name.startswith("__")}
    if honor:
        both = {**visible, **sample}
    else:
        both = {(f"exported_{name}" if name in visible else name): value for name, value in sample.items()} | visible
    # An empty label is no label.
    return {name: value for name, value in both.items() if value}


def closure(found: Render, kind: str, name: str) -> set[str]:
    """URNs of all that is registered before an object: what it and its parents depend on, and so on."""
    by_urn = {f"{token}::{one}": request for (token, one), request in found.requests.items()}
    waiting = [request for (token, one), request in found.requests.items()
               if token.startswith("kubernetes:") and token.endswith(f":{kind}") and one == name]  # fmt: skip
    seen: set[str] = set()
    while waiting:
        request = waiting.pop()
        for urn in [*request.dependencies, *([request.parent] if request.parent else [])]:
            if urn not in seen:
                seen.add(urn)
                waiting += [one for known, one in by_urn.items() if urn.endswith((f"${known}", f"::{known}"))]
    return seen


def validator(tools: Toolchain, kind: str) -> Any:
    """Checks objects against the operator's own definition of their kind."""
    text = (tools.prometheus_crds / f"{PLURALS[kind]}.yaml").read_text(encoding="utf-8")
    (version,) = yaml.load(text, yaml.CSafeLoader)["spec"]["versions"]
    return jsonschema.Draft202012Validator(closed(version["schema"]["openAPIV3Schema"]) | {"type": "object"})


def closed(schema: Any) -> Any:
    """The same schema without unknown fields, which the API server would drop without a word."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        whole = "kind" in schema["properties"] and "spec" in schema["properties"]
        result["additionalProperties"] = whole
    return result
