"""The models of a running stack: what the contract promises beside what the cluster says."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from kubernetes import client, config

from local.plan import table
from local.plane import workspace
from local.plane.plane import PlaneError
from local.plane.state import Folder


def models(folder: Folder, project: Path, stack: str) -> str:
    """A table of models: revision, ready replicas, addresses.

    Raises:
        PlaneError: the stack has no outputs yet, or the cluster does not answer.
    """
    outputs = _outputs(folder, project, stack)
    api = client.AppsV1Api(config.new_client_from_config(config_file=str(folder.kubeconfig)))
    deployments = api.list_namespaced_deployment(outputs["namespace"]).items
    ready = dict(map(_replicas, deployments))
    rows = []
    for name, model in sorted(outputs["models"].items()):
        for revision, found in sorted(model["revisions"].items()):
            replicas = ready.get(found["deployment"], "0/0")
            addresses = [model["httpUrl"], model["grpcTarget"], str(model["metricsPort"])]
            rows.append([name, revision, replicas, *addresses])
    return table(["MODEL", "REVISION", "READY", "HTTP URL", "GRPC TARGET", "METRICS PORT"], rows)


def _replicas(deployment: client.V1Deployment) -> tuple[str, str]:
    """Name of a Deployment, and its ready replicas out of all."""
    metadata, status = deployment.metadata, deployment.status
    ready, wanted = (status.ready_replicas, status.replicas) if status else (0, 0)
    return (metadata.name or "" if metadata else ""), f"{ready or 0}/{wanted or 0}"


def _outputs(folder: Folder, project: Path, stack: str) -> dict[str, Any]:
    done = subprocess.run(
        [str(folder.bin / "pulumi"), "stack", "output", "--json", "--stack", stack],
        cwd=project,
        env=os.environ | workspace.environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PlaneError(f"pulumi cannot read the outputs of stack {stack}\n\n{done.stderr}")
    outputs = json.loads(done.stdout)
    if "models" not in outputs:
        raise PlaneError(f"stack {stack} is not deployed\n  fix: run `make up`")
    return outputs
