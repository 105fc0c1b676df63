"""GPU pools of every mode and provider, and components of GPU nodes rendered by themselves."""

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import kubernetes_validate

from local.recorder import plain, record
from spec.pool import GpuPoolSpec
from tests.components.conftest import Render, kept_requests

CARDS: dict[str, Any] = {"gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi", "gpusPerNode": 4}
MODES: dict[str, dict[str, Any]] = {
    "whole": {},
    "mig": {"sharing": "mig", "migProfile": "1g.10gb"},
    "timeSlicing": {"sharing": "timeSlicing", "slices": 4},
    "hami": {"sharing": "hami"},
    "qgpu": {"sharing": "qgpu"},
}


def pool(mode: str = "whole", name: str = "", **fields: object) -> GpuPoolSpec:
    """A pool of a mode, by default named after it."""
    return GpuPoolSpec.model_validate(CARDS | MODES[mode] | {"name": name or mode.lower()} | fields)


def rendered(program: Callable[[], object]) -> Render:
    """What a program without stack file registers."""

    def run() -> None:
        program()

    with kept_requests() as requests, ThreadPoolExecutor(1) as thread:
        recording = thread.submit(record, run, stack="test").result()
    found = {(resource.type, resource.name): plain(dict(resource.inputs)) for resource in recording.resources}
    return Render(found, {(r.type, r.name): r for r in requests})


def check(obj: dict[str, Any]) -> None:
    """Refuse what the newest Kubernetes would refuse."""
    kubernetes_validate.validate(obj, kubernetes_validate.latest_version(), strict=True)


def tolerates(pod: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    """Whether a pod is let in by a taint, as the scheduler decides it."""
    return any(
        found.get("key") in (None, taint["key"])
        and found.get("effect") in (None, taint["effect"])
        and (found.get("operator") == "Exists" or found.get("value", "") == taint["value"])
        for found in pod.get("tolerations", [])
    )


def selects(pod: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Whether a pod may run on a node with these labels, as the scheduler decides it."""
    if not pod.get("nodeSelector", {}).items() <= labels.items():
        return False
    affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms")
    return terms is None or any(
        all(_matches(one, labels) for one in term.get("matchExpressions", [])) for term in terms
    )


def _matches(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    found = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return found in expression["values"]
        case "NotIn":
            return found not in expression["values"]
    raise ValueError(json.dumps(expression))
