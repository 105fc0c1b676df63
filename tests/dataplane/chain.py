"""The chain from a pod's exporter to the value that an autoscaler sees, made of the real parts.

``pulumi up`` makes the objects of an estate, the Prometheus operator makes a configuration of them, and a Prometheus
runs that configuration with the command line, the account and the token that its pod would have. Adapted are only
paths, since rules and data lie in folders of the test instead of the pod's volumes; and the variables of the pod are
put in, which is the work of the reloader beside Prometheus.
"""

import base64
import gzip
import json
import sys
import time
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.dataplane.exporters import Exporters
from tests.dataplane.world import Running, World
from tests.engine.project import Project

MONITORING: Final = "monitoring"
ACCOUNT: Final = f"{MONITORING}/prometheus"
TRITON, DCGM, HAMI = 8002, 9400, 9394
_WEB_PORT: Final = 9090
_OBJECT: Final = "prometheus"
_RULES_LABEL: Final = "prometheus-name"
# Where the operator mounts into the pod what this machine has elsewhere.
_CONFIG: Final = "/etc/prometheus/config_out/prometheus.env.yaml"
_WEB_CONFIG: Final = "/etc/prometheus/web_config/web-config.yaml"
_RULES: Final = "/etc/prometheus/rules/"


@dataclass(frozen=True)
class Pod:
    """One pod."""

    namespace: str
    name: str
    address: str
    node: str


@dataclass(frozen=True)
class Chain:
    """A running chain."""

    world: World
    project: Project
    exporters: Exporters
    prometheus: Running
    config: Path

    def pods(self, namespace: str, prefix: str = "") -> list[Pod]:
        return pods(self.world, namespace, prefix)

    def ask(self, path: str, **parameters: str) -> Any:
        """What Prometheus's HTTP API answers."""
        query = urllib.parse.urlencode(parameters)
        status, text = self.world.fetch(f"http://127.0.0.1:{_WEB_PORT}/api/v1/{path}?{query}")
        assert status == 200, f"{parameters}: {status} {text}"
        return json.loads(text)["data"]

    def values(self, query: str, label: str) -> dict[str, float]:
        """An instant query's samples by the value of a label, one for each."""
        found = self.ask("query", query=query)["result"]
        result = {one["metric"].get(label, ""): float(one["value"][1]) for one in found}
        assert len(result) == len(found), f"several samples of one {label}: {found}"
        return result

    def targets(self) -> list[dict[str, Any]]:
        return self.ask("targets", state="active")["activeTargets"]


def pods(world: World, namespace: str, prefix: str = "") -> list[Pod]:
    """The running pods of a namespace whose names begin so, by name."""
    found = world.kubectl.get("pods", f"--namespace={namespace}")["items"]
    return sorted(
        (
            Pod(namespace, one["metadata"]["name"], one["status"]["podIP"], one["spec"]["nodeName"])
            for one in found
            if one["metadata"]["name"].startswith(prefix)
            and one["status"].get("podIP")
            and not one["metadata"].get("deletionTimestamp")
        ),
        key=lambda pod: pod.name,
    )


def start_operator(world: World) -> Running:
    """The Prometheus operator, with all the kinds that it asks for."""
    kinds = f"--filename={world.tools.operator_crds}"
    world.kubectl.run("apply", "--server-side", "--validate=false", kinds)
    world.kubectl.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    return world.start(
        "prometheus-operator",
        world.tools.prometheus_operator,
        "--web.listen-address=127.0.0.1:8081",
    )


def start_exporters(world: World, folder: Path) -> Exporters:
    """What answers for every pod."""
    program = Path(__file__).with_name("exporters.py")
    running = world.start("exporters", sys.executable, program, folder, *map(str, (TRITON, DCGM, HAMI)))
    running.until(lambda: all(world.fetch(f"http://127.0.0.1:{port}/")[0] for port in (TRITON, DCGM, HAMI)))
    return Exporters(folder)


def start_prometheus(world: World, operator: Running, folder: Path) -> tuple[Running, Path]:
    """A Prometheus in place of the pod that the operator has made; also its configuration."""
    operator.until(lambda: _configured(world) and pods(world, MONITORING, f"prometheus-{_OBJECT}-0"))
    selector = f"--selector=operator.prometheus.io/name={_OBJECT}"
    (pod,) = world.kubectl.get("pods", f"--namespace={MONITORING}", selector)["items"]
    (container,) = [one for one in pod["spec"]["containers"] if one["name"] == "prometheus"]
    assert pod["spec"]["serviceAccountName"] == ACCOUNT.partition("/")[2]
    rules, data, config = folder / "rules", folder / "data", folder / "prometheus.yaml"
    _write_rules(world, rules)
    text = _configured(world).replace(_RULES, f"{rules}/")
    for name, value in _variables(pod).items():
        text = text.replace(f"$({name})", value)
    config.write_text(text)
    (folder / "web.yaml").touch()
    here = {_CONFIG: config, _WEB_CONFIG: folder / "web.yaml", "/prometheus": data}
    arguments = [_placed(one, here) for one in container["args"]]
    prometheus = world.start("prometheus", world.tools.prometheus, *arguments, account=ACCOUNT)
    prometheus.until(lambda: world.fetch(f"http://127.0.0.1:{_WEB_PORT}/-/ready")[0] == 200)
    return prometheus, config


def _configured(world: World) -> str:
    """The configuration that the operator has made; empty until it is there."""
    secret = world.kubectl.raw(f"/api/v1/namespaces/{MONITORING}/secrets/prometheus-{_OBJECT}")
    packed = (secret or {}).get("data", {}).get("prometheus.yaml.gz", "")
    return gzip.decompress(base64.b64decode(packed)).decode() if packed else ""


def _variables(pod: Mapping[str, Any]) -> dict[str, str]:
    (reloader,) = [one for one in pod["spec"]["containers"] if one["name"] == "config-reloader"]
    return {"POD_NAME": pod["metadata"]["name"]} | {
        one["name"]: one["value"] for one in reloader["env"] if "value" in one
    }


def _write_rules(world: World, folder: Path) -> None:
    selector = f"--selector={_RULES_LABEL}={_OBJECT}"
    for one in world.kubectl.get("configmaps", f"--namespace={MONITORING}", selector)["items"]:
        (folder / one["metadata"]["name"]).mkdir(parents=True)
        for name, text in one["data"].items():
            (folder / one["metadata"]["name"] / name).write_text(text)


def _placed(argument: str, here: Mapping[str, Path]) -> str:
    name, equals, value = argument.partition("=")
    return f"{name}{equals}{here.get(value, value)}"


def deploy_annotated(world: World, namespace: str, name: str, port: int, labels: Mapping[str, str]) -> Pod:
    """An exporter that somebody else runs: a pod and an annotated Service, not of this project."""
    selected = {"app": name, **labels}
    container = {"name": "exporter", "image": "registry.example.com/exporter:1"}
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)}
    objects: Sequence[dict[str, Any]] = [
        {"kind": "Namespace", "metadata": {"name": namespace}},
        {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": selected},
            "spec": {"containers": [container]},
        },
        {
            "kind": "Service",
            "metadata": {"name": name, "namespace": namespace, "labels": selected, "annotations": annotations},
            "spec": {"selector": selected, "ports": [{"name": "metrics", "port": port}]},
        },
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", **one} for one in objects]}
    world.kubectl.run("apply", "--server-side", "--filename=-", stdin=json.dumps(items))
    world.kubectl.run("wait", "--for=condition=Ready", f"pod/{name}", f"--namespace={namespace}", "--timeout=60s")
    (pod,) = pods(world, namespace, name)
    return pod


def until_scraped(chain: Chain, seconds: float) -> None:
    """Wait until every target answers, and then as long as a range of the queries takes to fill."""
    limit = time.monotonic() + 60
    while bad := [one["lastError"] or one["scrapeUrl"] for one in chain.targets() if one["health"] != "up"]:
        assert time.monotonic() < limit, bad
        time.sleep(0.5)
    time.sleep(seconds)
