"""KEDA on the plane: its real operator and metrics adapter, as processes of this machine.

They run with the flags of their chart, with their account's token, and with certificates that the operator makes; the
kubelet's part, mounting those and starting the operator again, is done here. Both know names of Services from
/etc/hosts, which is the part of a cluster's DNS.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.dataplane.world import Running, World

NAMESPACE: Final = "keda"
API: Final = "/apis/external.metrics.k8s.io/v1beta1"
_ACCOUNT: Final = f"{NAMESPACE}/keda-operator"
_OPERATOR, _ADAPTER = "10.255.0.2", "10.255.0.3"
_ADAPTER_SERVICE: Final = "keda-metrics-apiserver"
_API_SERVICE: Final = "v1beta1.external.metrics.k8s.io"
_SECRET: Final = "kedaorg-certs"  # noqa: S105  # its name
_GRPC_PORT, _API_PORT = 9666, 6443
_WITH_HOSTS: Final = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
_ENVIRONMENT: Final = {"KUBECONFIG": "", "POD_NAMESPACE": NAMESPACE, "WATCH_NAMESPACE": ""}


@dataclass(frozen=True)
class Keda:
    """Running KEDA."""

    world: World
    operator: Running
    adapter: Running


def start(world: World, folder: Path, names: Mapping[str, str]) -> Keda:
    """Install and start KEDA.

    Args:
        world: where.
        folder: an empty one for its files.
        names: address by name, of the Services that triggers ask.
    """
    _install(world)
    hosts, certificates = folder / "hosts", folder / "certs"
    grpc = f"keda-operator.{NAMESPACE}.svc.cluster.local"
    known = {"localhost": "127.0.0.1", grpc: _OPERATOR, **names}
    hosts.write_text("".join(f"{address} {name}\n" for name, address in known.items()))
    certificates.mkdir()

    def run(name: str, *command: str | Path) -> Running:
        return world.start(
            name, "sh", "-c", _WITH_HOSTS, "sh", hosts, *command, account=_ACCOUNT, environment=_ENVIRONMENT
        )

    operator = (
        world.tools.keda_operator,
        "--enable-cert-rotation",
        "--enable-webhook-patching=false",
        f"--cert-dir={certificates}",
        f"--metrics-bind-address={_OPERATOR}:8080",
        f"--health-probe-bind-address={_OPERATOR}:8081",
        f"--metrics-service-bind-address={_OPERATOR}:{_GRPC_PORT}",
        "--zap-encoder=console",
        "--zap-log-level=info",
    )
    # The first run makes the certificates and ends, to be started again with them.
    first = run("keda-operator-first", *operator)
    assert first.process.wait(60) == 0, first.log.read_text()
    secret = world.kubectl.get("secret", _SECRET, f"--namespace={NAMESPACE}")
    for name, content in secret["data"].items():
        (certificates / name).write_bytes(base64.b64decode(content))
    running = run("keda-operator", *operator)
    running.until(lambda: world.fetch(f"http://{_OPERATOR}:8081/readyz")[0] == 200)
    adapter = run(
        "keda-metrics-adapter",
        world.tools.keda_metrics_adapter,
        f"--bind-address={_ADAPTER}",
        f"--secure-port={_API_PORT}",
        "--port=8083",
        f"--client-ca-file={certificates}/ca.crt",
        f"--tls-cert-file={certificates}/tls.crt",
        f"--tls-private-key-file={certificates}/tls.key",
        f"--cert-dir={certificates}",
        f"--metrics-service-address={grpc}:{_GRPC_PORT}",
        "--zap-encoder=console",
    )
    adapter.until(lambda: world.kubectl.raw(API))
    return Keda(world, running, adapter)


def _install(world: World) -> None:
    """KEDA's kinds, and what its chart makes beside the pods."""
    kinds = f"--filename={world.tools.keda_crds}"
    world.kubectl.run("apply", "--server-side", kinds)
    world.kubectl.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    here = {"namespace": NAMESPACE}
    account = _ACCOUNT.partition("/")[2]
    version, _, group = _API_SERVICE.partition(".")
    objects: Sequence[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, **here}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": account},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account, **here}],
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": _ADAPTER_SERVICE, **here},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": _API_PORT}]},
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": _ADAPTER_SERVICE,
                "labels": {"kubernetes.io/service-name": _ADAPTER_SERVICE},
                **here,
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [_ADAPTER], "conditions": {"ready": True}}],
            "ports": [{"name": "https", "port": _API_PORT}],
        },
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": _API_SERVICE},
            "spec": {
                "service": {"name": _ADAPTER_SERVICE, **here},
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        },
    ]
    items = {"apiVersion": "v1", "kind": "List", "items": objects}
    world.kubectl.run("apply", "--server-side", "--filename=-", stdin=json.dumps(items))
