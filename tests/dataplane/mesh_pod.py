"""Runs a pod of the plane as a kubelet does: its network, its volumes, and its containers in their order.

What the API server holds is what runs: commands, variables, users, mounts, read-only file systems, probes. Not there is
what an image would bring; a container's files are those of this machine, and what it starts is named in an
:class:`Image`. The network is a namespace with the pod's address, joined to that of the world; Istio's CNI plugin is
:func:`capture`.
"""

import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.dataplane.mesh_network import fetch, sandboxed
from tests.dataplane.mesh_volumes import Volumes, expanded
from tests.dataplane.world import Running, World

_PROBE_SECONDS: Final = 60.0
_ADMIN_PORT: Final = 15000


@dataclass(frozen=True)
class Image:
    """What stands for a container's image.

    Attributes:
        start: the command for the container's arguments.
        environment: variables of the image.
        files: what lies elsewhere on this machine, by its path in the container.
        needs: folders of this machine that the container's user has to reach.
    """

    start: Callable[[Sequence[str]], Sequence[str | Path]]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    needs: Sequence[Path] = ()


@dataclass
class PodProcess:
    """A pod that runs.

    Attributes:
        pod: what the API server holds.
        images: what stands for the images, by container.
        order: what happened, in its order.
    """

    world: World
    pod: Mapping[str, Any]
    images: Mapping[str, Image]
    folder: Path
    hosts: Path
    sandbox: Running
    volumes: Volumes
    order: list[str] = field(default_factory=list)
    running: dict[str, Running] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.pod["metadata"]["name"]

    @property
    def address(self) -> str:
        return self.pod["status"]["podIP"]

    def container(self, name: str) -> Mapping[str, Any]:
        spec = self.pod["spec"]
        (found,) = [one for one in [*spec.get("initContainers", []), *spec["containers"]] if one["name"] == name]
        return found

    def inside(self, *command: str | Path) -> list[str | Path]:
        """A command in the pod's network."""
        return ["nsenter", "--net", f"--target={self.sandbox.process.pid}", *command]

    def run_init(self, name: str, seconds: float = 60) -> int:
        """Run an init container to its end."""
        code = self.begin(name).process.wait(seconds)
        self.order.append(f"{name} ended with {code}")
        return code

    def begin(self, name: str) -> Running:
        """Start a container."""
        container, image = self.container(name), self.images[name]
        script = self.folder / f"{name}.sh"
        script.write_text(self._script(container, image))
        self.order.append(f"{name} started")
        command = self.inside("unshare", "--mount", "sh", script)
        self.running[name] = self.world.start(f"{self.name}-{name}", *command)
        return self.running[name]

    def start(self) -> None:
        """All containers: an init container that is restarted has to have started, any other to have succeeded."""
        for container in self.pod["spec"].get("initContainers", []):
            name = container["name"]
            if container.get("restartPolicy") == "Always":
                self.begin(name)
                self.until(name, "startupProbe")
            else:
                assert self.run_init(name) == 0, self.log(name)
        names = [container["name"] for container in self.pod["spec"]["containers"]]
        for name in names:
            self.begin(name)
        for name in names:
            for probe in ("startupProbe", "readinessProbe"):
                self.until(name, probe)

    def until(self, name: str, probe: str) -> None:
        """Wait for a probe of a container, which need not have it."""
        if probe not in self.container(name):
            return
        self.running[name].until(lambda: self.probe(name, probe), _PROBE_SECONDS)
        self.order.append(f"{name} passed {probe}")

    def probe(self, name: str, probe: str) -> bool:
        """Whether a probe passes now."""
        asked = self.container(name)[probe]["httpGet"]
        status, _ = self.fetch(asked["port"], asked["path"])
        return 200 <= status < 400

    def fetch(self, port: int, path: str) -> tuple[int, str]:
        """What the pod answers to its node, by plain HTTP."""
        return self.world.fetch(f"http://{self.address}:{port}{path}")

    def admin(self, path: str) -> str:
        """What the sidecar's Envoy says about itself."""
        status, text = fetch(self.world, self.inside(), f"http://127.0.0.1:{_ADMIN_PORT}/{path}")
        assert status == 200, text
        return text

    def log(self, name: str) -> str:
        return self.running[name].log.read_text(errors="replace")

    def kill(self) -> None:
        """End everything at once."""
        for one in (*self.running.values(), self.sandbox):
            if one.process.poll() is None:
                os.killpg(one.process.pid, 9)
                one.process.wait()

    def _script(self, container: Mapping[str, Any], image: Image) -> str:
        """What mounts a container's file system and becomes its program."""
        root = self.folder / f"root-{container['name']}"
        root.mkdir(exist_ok=True)
        files = {**image.files, "/etc/hosts": self.hosts}
        lines = [
            "set -eu",
            # A container's output is open to its user.
            "chmod a+w /proc/self/fd/1",
            f"mount -t tmpfs tmpfs {root}",
            f"cd {root}",
            "mkdir above work all",
            "mount -t overlay overlay -o lowerdir=/,upperdir=above,workdir=work all",
            "cd all",
            *(f"mount --rbind /{name} {name}" for name in ("proc", "dev")),
            "mount -t tmpfs tmpfs run",
            *(f"chmod a+x .{parent}" for parent in _parents(image.needs)),
            *(line for path, file in files.items() for line in _mount(file, path)),
            *(line for source, path in self.volumes.mounts(container) for line in _mount(source, path)),
        ]
        user = {**self.pod["spec"].get("securityContext", {}), **container.get("securityContext", {})}
        if user.get("readOnlyRootFilesystem"):
            lines.append("mount -o remount,ro .")
        variables = {"PATH": os.environ["PATH"], **image.environment, **self.volumes.variables(container)}
        arguments = [expanded(one, variables) for one in container.get("args", [])]
        number, group = user.get("runAsUser", 0), user.get("runAsGroup", 0)
        groups = user.get("fsGroup", group)
        command = [
            *("chroot", ".", "setpriv", f"--reuid={number}", f"--regid={group}", f"--groups={groups}"),
            *("env", "--ignore-environment", *(f"{name}={value}" for name, value in variables.items())),
            *map(str, image.start(arguments)),
        ]
        return "\n".join([*lines, f"exec {shlex.join(command)}", ""])


def begin(world: World, pod: Mapping[str, Any], images: Mapping[str, Image], folder: Path, hosts: Path) -> PodProcess:
    """Make the network of a pod; nothing runs in it yet.

    Args:
        world: where, see ``mesh_network.connect``.
        pod: what the API server holds, with an address.
        images: what stands for the images, by container.
        folder: an empty one for its files.
        hosts: names and addresses, the part of a cluster's DNS.
    """
    sandbox = sandboxed(world, pod, folder)
    return PodProcess(world, pod, images, folder, hosts, sandbox, Volumes(world, pod, folder / "volumes"))


def capture(pod: PodProcess, agent: Path) -> list[str]:
    """What Istio's CNI plugin does to an injected pod: traffic in and out goes through the sidecar.

    The rules are those that Istio makes of the arguments that injection wrote; see ``mesh_redirect``.

    Returns:
        The rules.
    """
    rules = pod.folder / "rules"
    arguments = [one for one in pod.container("istio-validation")["args"] if not one.startswith("--")]
    making = pod.inside("env", f"DRY_RUN_FILE_PATH={rules}", agent, *arguments, "--dry-run")
    pod.world.run(*making)
    program = Path(__file__).with_name("mesh_redirect.py")
    pod.world.run(*pod.inside(sys.executable, program), stdin=rules.read_text())
    return rules.read_text().splitlines()


def wait_for_pods(
    world: World, namespace: str, selector: str, number: int, seconds: float = 60
) -> list[dict[str, Any]]:
    """Pods with an address, by name; as many as are wanted."""
    limit = time.monotonic() + seconds
    while True:
        found = world.kubectl.get("pods", f"--namespace={namespace}", f"--selector={selector}")["items"]
        found = [one for one in found if one["status"].get("podIP") and "deletionTimestamp" not in one["metadata"]]
        if len(found) == number:
            return sorted(found, key=lambda one: one["metadata"]["name"])
        assert time.monotonic() < limit, f"{len(found)} instead of {number} pods: {json.dumps(found)[:2000]}"
        time.sleep(0.2)


def _mount(source: Path, path: str) -> Iterator[str]:
    """Lines that lay a file or folder over a path of the container's file system, the current folder."""
    # A link such as /var/run would lead out of it.
    inside = f".{os.path.realpath(path)}"
    if source.is_dir():
        yield f"mkdir -p {inside}"
    else:
        yield f"mkdir -p {Path(inside).parent} && touch {inside}"
    yield f"mount --bind {source} {inside}"


def _parents(folders: Sequence[Path]) -> list[str]:
    """All folders above some, from the top down: on a machine they may be their owner's alone."""
    return sorted({str(parent) for folder in folders for parent in folder.parents} - {"/"})
