"""The models of a running stack: what the contract promises beside what the cluster says."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from local.plane import workspace
from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from local.table import table


def models(kubectl: Kubectl, folder: Folder, project: Path, stack: str) -> str:
    """A table of models: revision, ready replicas, addresses.

    Raises:
        PlaneError: the stack has no outputs yet, or the cluster does not answer.
    """
    outputs = _outputs(folder, project, stack)
    deployments = kubectl.get("deployments", f"--namespace={outputs['namespace']}")["items"]
    ready = dict(map(_replicas, deployments))
    rows = []
    for name, model in sorted(outputs["models"].items()):
        for revision, found in sorted(model["revisions"].items()):
            replicas = ready.get(found["deployment"], "0/0")
            addresses = [model["httpUrl"], model["grpcTarget"], str(model["metricsPort"])]
            rows.append([name, revision, replicas, *addresses])
    return table(["MODEL", "REVISION", "READY", "HTTP URL", "GRPC TARGET", "METRICS PORT"], rows)


def _replicas(deployment: Mapping[str, Any]) -> tuple[str, str]:
    """Name of a Deployment, and its ready replicas out of all."""
    status = deployment["status"]
    return deployment["metadata"]["name"], f"{status.get('readyReplicas', 0)}/{status.get('replicas', 0)}"


def _outputs(folder: Folder, project: Path, stack: str) -> dict[str, Any]:
    failure = f"pulumi cannot read the outputs of stack {stack}"
    arguments = ("stack", "output", "--json", "--stack", stack)
    outputs = json.loads(workspace.pulumi(folder, project, *arguments, failure=failure))
    if "models" not in outputs:
        raise PlaneError(f"stack {stack} is not deployed\n  fix: run `make up`")
    return outputs
