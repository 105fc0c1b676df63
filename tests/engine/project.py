"""A copy of the project with a stack of its own, driven by the real pulumi."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from local.plane import workspace
from local.plane.kubectl import Kubectl
from local.plane.state import Folder

SOURCE = Path(__file__).resolve().parents[2]
PARTS = ("Pulumi.yaml", "__main__.py", "spec", "components", "probes", "models", "policies")


@dataclass(frozen=True)
class Outcome:
    """What one pulumi command did.

    Attributes:
        code: exit code.
        text: everything that it printed.
        changes: operation by resource name, for resources that were not left alone.
    """

    code: int
    text: str
    changes: Mapping[str, str] = field(default_factory=dict)

    def must_succeed(self) -> "Outcome":
        assert self.code == 0, self.text
        return self


@dataclass(frozen=True)
class Project:
    """One copy."""

    folder: Path
    plane: Folder
    stack: str

    @classmethod
    def copy(cls, folder: Path, plane: Folder, stack: str) -> "Project":
        for part in PARTS:
            source = SOURCE / part
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, folder / part)
        (folder / ".venv").symlink_to(SOURCE / ".venv")
        (folder / "policies" / "settings.yaml").write_text("stacks: {}\n")  # it names stacks, which a copy has not
        project = cls(folder, plane, stack)
        shutil.copy2(SOURCE / "Pulumi.dev.yaml", project.stack_file)
        pools = project.settings()["gpuPools"]
        own_names = [pool | {"name": f"{stack}-{pool['name']}"} for pool in pools]
        # What a cluster has once belongs to no copy: several stacks share this one.
        project.set(gpuPools=own_names, namespace=project.namespace, gpuSoftware={}, monitoring={})
        workspace.select_stack(plane, folder, stack)
        return project

    @property
    def namespace(self) -> str:
        return f"serving-{self.stack}"

    @property
    def stack_file(self) -> Path:
        return self.folder / f"Pulumi.{self.stack}.yaml"

    def settings(self) -> dict[str, Any]:
        """The project's settings in the stack file."""
        config = yaml.safe_load(self.stack_file.read_text())["config"]
        return {key.removeprefix("triton-estate:"): value for key, value in config.items()}

    def set(self, **settings: object) -> None:
        """Replace settings in the stack file."""
        content = yaml.safe_load(self.stack_file.read_text())
        content["config"] |= {f"triton-estate:{key}": value for key, value in settings.items()}
        self.stack_file.write_text(yaml.safe_dump(content))

    @property
    def environment(self) -> dict[str, str]:
        # The event log is a flag of the debug commands.
        return os.environ | workspace.environment(self.plane) | {"PULUMI_DEBUG_COMMANDS": "true"}

    @property
    def kubectl(self) -> Kubectl:
        return Kubectl(self.plane.bin / "kubectl", self.plane.kubeconfig)

    def command(self, *arguments: str) -> list[str]:
        return [str(self.plane.bin / "pulumi"), *arguments, "--stack", self.stack, "--non-interactive"]

    def pulumi(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Outcome:
        log = self.folder / "events.json"
        log.unlink(missing_ok=True)
        events = ["--event-log", str(log)] if arguments[0] in {"up", "preview", "destroy", "refresh"} else []
        done = subprocess.run(
            self.command(*arguments, *events),
            cwd=self.folder,
            env=self.environment | dict(environment or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, changes(log))

    def up(self, **environment: str) -> Outcome:
        return self.pulumi("up", "--yes", "--skip-preview", environment=environment)

    def outputs(self) -> dict[str, Any]:
        return json.loads(self.pulumi("stack", "output", "--json").must_succeed().text)

    def objects(self, kinds: str) -> list[str]:
        found = self.kubectl.get(kinds, f"--namespace={self.namespace}")["items"]
        return sorted(f"{one['kind']}/{one['metadata']['name']}" for one in found)

    def deployments(self) -> dict[str, int]:
        """Ready replicas of each Deployment of a Triton."""
        chosen = "--selector=app.kubernetes.io/name=triton"
        found = self.kubectl.get("deployments", f"--namespace={self.namespace}", chosen)["items"]
        return {one["metadata"]["name"]: one["status"].get("readyReplicas", 0) for one in found}


def changes(log: Path) -> dict[str, str]:
    """Operations of an event log, by ``type name`` of the resource."""
    result: dict[str, str] = {}
    if not log.exists():
        return result
    for line in log.read_text().splitlines():
        metadata = json.loads(line).get("resourcePreEvent", {}).get("metadata")
        if metadata and metadata["op"] not in {"same", "read"}:
            kind, name = metadata["type"].rsplit(":", 1)[1], metadata["urn"].rsplit("::", 1)[1]
            result[f"{kind} {name}"] = metadata["op"]
    return result
