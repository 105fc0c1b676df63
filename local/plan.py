"""What a stack would create, from its own program under mocks: neither engine nor cluster is needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pulumi

from local.recorder import Recorded, Recording, record_stack
from local.table import table
from spec.stack_file import stack_settings


class PlanError(Exception):
    """The program refused its input; the message is for the user."""


def plan(project: Path, stack: str) -> str:
    """The plan as text: models, objects, GPUs asked against GPUs there, addresses.

    Raises:
        SpecError: a mistake in the stack file or in a model file.
        PlanError: the program refused, for the same reasons.
    """
    try:
        recording = record_stack(project, stack, stack_settings(project, stack))
    except pulumi.RunError as error:
        raise PlanError(str(error)) from None
    return "\n\n".join([_headline(recording, stack), _models(recording), _pools(recording), _addresses(recording)])


def _headline(recording: Recording, stack: str) -> str:
    count = len(recording.objects())
    models = recording.outputs["models"]
    return f"Stack {stack} ({recording.outputs['environment']}): {len(models)} models, {count} Kubernetes objects"


def _models(recording: Recording) -> str:
    rows = []
    for name, model in sorted(recording.outputs["models"].items()):
        for revision, entry in sorted(model["revisions"].items()):
            objects = [found for found in recording.objects() if (found.model, found.revision) == (name, revision)]
            share = f"{entry['weight']:g} %"
            serving = [found for found in objects if found.inputs["metadata"]["name"] == entry["deployment"]]
            rows.append([name, revision, share, model["owner"], _replicas(serving), str(len(objects)), _gpu(serving)])
    header = ["MODEL", "REVISION", "TRAFFIC", "OWNER", "REPLICAS", "OBJECTS", "GPU RESOURCES EACH"]
    return table(header, rows)


def _replicas(objects: Sequence[Recorded]) -> str:
    for found in objects:
        if found.type.endswith(":HorizontalPodAutoscaler"):
            return f"{found.inputs['spec']['minReplicas']:g} to {found.inputs['spec']['maxReplicas']:g}"
        if found.type.endswith(":ScaledObject"):
            return f"{found.inputs['spec']['minReplicaCount']:g} to {found.inputs['spec']['maxReplicaCount']:g}"
    return ", ".join(f"{f.inputs['spec']['replicas']:g}" for f in objects if f.type.endswith(":Deployment"))


def _gpu(objects: Sequence[Recorded]) -> str:
    limits: dict[str, str] = {}
    for found in objects:
        if found.type.endswith(":Deployment"):
            for container in found.inputs["spec"]["template"]["spec"]["containers"]:
                limits |= container["resources"]["limits"]
    return ", ".join(f"{key}={value}" for key, value in sorted(limits.items()) if "/" in key) or "-"


def _pools(recording: Recording) -> str:
    rows = []
    for name, pool in recording.outputs["gpuPools"].items():
        verdict = "" if pool["gpusAskedAtLeast"] <= pool["gpus"] else "  NOT ENOUGH: some pods will stay Pending"
        asked = f"{pool['gpusAskedAtLeast']:g} to {pool['gpusAskedAtMost']:g}"
        rows.append([name, pool["sharing"], pool["gpuModel"], f"{pool['gpus']:g}", asked + verdict])
    return table(["GPU POOL", "SHARING", "CARD", "CARDS", "CARDS ASKED"], rows)


def _addresses(recording: Recording) -> str:
    models: Mapping[str, Any] = recording.outputs["models"]
    rows = [[name, models[name]["httpUrl"], models[name]["grpcTarget"]] for name in sorted(models)]
    return table(["MODEL", "HTTP", "GRPC"], rows)
