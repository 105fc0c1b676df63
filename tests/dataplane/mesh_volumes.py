"""What a kubelet puts into the containers of a pod: volumes and variables."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.dataplane.world import World

# Where requests from the node of a pod come from: probes, and everything that the world itself asks.
NODE: Final = "10.255.255.2"
_UNITS: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "k": 10**3, "M": 10**6, "G": 10**9, "": 1}
_REFERENCE: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


@dataclass(frozen=True)
class Volumes:
    """The volumes of one pod, each a folder of this machine that is filled when a container first asks for it."""

    world: World
    pod: Mapping[str, Any]
    folder: Path
    _made: dict[str, Path] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """The folder of a volume."""
        if name not in self._made:
            (volume,) = [one for one in self.pod["spec"]["volumes"] if one["name"] == name]
            folder = self.folder / name
            folder.mkdir(parents=True)
            # Of any user; other pods do not see it.
            folder.chmod(0o777)
            for file, content in self._files(volume):
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                (folder / file).write_text(content)
            self._made[name] = folder
        return self._made[name]

    def mounts(self, container: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
        """What is mounted where in a container, a folder before what lies in it."""
        for mount in sorted(container.get("volumeMounts", []), key=lambda one: one["mountPath"]):
            yield self.path(mount["name"]) / mount.get("subPath", ""), mount["mountPath"]

    def variables(self, container: Mapping[str, Any]) -> dict[str, str]:
        """The container's own variables."""
        found: dict[str, str] = {}
        for one in container.get("env", []):
            value = self._value(one["valueFrom"], container) if "valueFrom" in one else one.get("value", "")
            found[one["name"]] = expanded(value, found)
        return found

    def _value(self, source: Mapping[str, Any], container: Mapping[str, Any]) -> str:
        if "fieldRef" in source:
            # Its status says nothing of a node that is simulated.
            found: Any = {**self.pod, "status": {"hostIP": NODE, **self.pod["status"]}}
            for key in source["fieldRef"]["fieldPath"].split("."):
                found = found[key]
            return str(found)
        kind, _, resource = source["resourceFieldRef"]["resource"].partition(".")
        return str(_whole(container["resources"][kind][resource]))

    def _files(self, volume: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Files of a volume that is not empty at first."""
        if "projected" in volume:
            for source in volume["projected"]["sources"]:
                yield from self._source(source)
        elif "downwardAPI" in volume or "configMap" in volume:
            yield from self._source(volume)
        elif "emptyDir" not in volume:
            raise ValueError(f"unknown kind of volume: {json.dumps(volume)}")

    def _source(self, source: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        metadata = self.pod["metadata"]
        if "downwardAPI" in source:
            for item in source["downwardAPI"]["items"]:
                found = metadata[item["fieldRef"]["fieldPath"].removeprefix("metadata.")]
                lines = (
                    [f"{key}={json.dumps(value)}" for key, value in found.items()]
                    if isinstance(found, dict)
                    else [found]
                )
                yield item["path"], "\n".join(lines)
        elif "serviceAccountToken" in source:
            asked = source["serviceAccountToken"]
            audience = [f"--audience={asked['audience']}"] if "audience" in asked else []
            command = (
                *("create", "token", self.pod["spec"]["serviceAccountName"], f"--namespace={metadata['namespace']}"),
                *("--bound-object-kind=Pod", f"--bound-object-name={metadata['name']}"),
                *(f"--bound-object-uid={metadata['uid']}", f"--duration={asked['expirationSeconds']}s", *audience),
            )
            yield asked["path"], self.world.kubectl.run(*command).strip()
        else:
            yield from self._config_map(source["configMap"])

    def _config_map(self, asked: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        path = f"/api/v1/namespaces/{self.pod['metadata']['namespace']}/configmaps/{asked['name']}"
        found = self.world.kubectl.raw(path)
        if found is None:
            assert asked.get("optional"), f"no ConfigMap {asked['name']}"
            return
        yield from found.get("data", {}).items()
        for name, content in found.get("binaryData", {}).items():
            yield name, base64.b64decode(content).decode()


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A text with ``$(NAME)`` replaced where there is such a variable."""
    return _REFERENCE.sub(lambda match: variables.get(match[1], match[0]), text)


def _whole(quantity: str) -> int:
    """A quantity in whole units."""
    match = re.fullmatch(r"(\d+)(m|[KMG]i|[kMG]|)", quantity)
    assert match, quantity
    number = int(match[1])
    return -(-number // 1000) if match[2] == "m" else number * _UNITS[match[2]]
