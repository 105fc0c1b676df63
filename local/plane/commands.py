"""Command lines of the control plane's processes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.plane.credentials import FRONT_PROXY, FRONT_PROXY_AUTHORITY, Credentials
from local.toolchain import Toolchain

NAMES: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")

_SERVICE_ADDRESSES: Final = "10.96.0.0/16"
_POD_ADDRESSES: Final = "10.128.0.0/9"
# Nothing listens there. The API server wants an address of its own that is not loopback, also on a machine that has
# no network; the reconciler that would publish it is off.
_ADVERTISED_ADDRESS: Final = "10.255.255.1"
# Without leases the node controller declares every simulated node dead after 40 seconds.
_LEASE_SECONDS: Final = 40


@dataclass(frozen=True)
class Ports:
    """TCP ports on 127.0.0.1."""

    api: int
    etcd: int
    etcd_peer: int


@dataclass(frozen=True)
class Options:
    """What one plane does otherwise than another.

    Attributes:
        autoscaler_seconds: time between two looks of the autoscalers at their metrics, and from which age on a pod
            counts; None leaves Kubernetes' own, 15 and 30 seconds.
    """

    autoscaler_seconds: int | None = None


@dataclass(frozen=True)
class Commands:
    """Builds the command line of each process of one plane."""

    tools: Toolchain
    credentials: Credentials
    ports: Ports
    data: Path
    options: Options = Options()

    def command(self, name: str) -> list[str]:
        """The command line of a process of ``NAMES``."""
        return {
            "etcd": self._etcd,
            "kube-apiserver": self._api_server,
            "kube-controller-manager": self._controller_manager,
            "kube-scheduler": self._scheduler,
            "kwok": self._kwok,
        }[name]()

    def _etcd(self) -> list[str]:
        client, peer = (f"https://127.0.0.1:{port}" for port in (self.ports.etcd, self.ports.etcd_peer))
        files = self.credentials
        return [
            str(self.tools.etcd),
            f"--data-dir={self.data}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--client-cert-auth",
            f"--trusted-ca-file={files.cert('ca')}",
            f"--cert-file={files.cert('etcd')}",
            f"--key-file={files.key('etcd')}",
            "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={files.cert('ca')}",
            f"--peer-cert-file={files.cert('etcd')}",
            f"--peer-key-file={files.key('etcd')}",
            "--auto-compaction-retention=5m",
            "--log-level=warn",
        ]

    def _api_server(self) -> list[str]:
        files = self.credentials
        return [
            str(self.tools.kube_apiserver),
            f"--etcd-servers=https://127.0.0.1:{self.ports.etcd}",
            f"--etcd-cafile={files.cert('ca')}",
            f"--etcd-certfile={files.cert('etcd-client')}",
            f"--etcd-keyfile={files.key('etcd-client')}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.ports.api}",
            f"--advertise-address={_ADVERTISED_ADDRESS}",
            "--endpoint-reconciler-type=none",
            f"--tls-cert-file={files.cert('apiserver')}",
            f"--tls-private-key-file={files.key('apiserver')}",
            f"--client-ca-file={files.cert('ca')}",
            f"--service-account-key-file={files.cert('service-accounts')}",
            f"--service-account-signing-key-file={files.key('service-accounts')}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-cluster-ip-range={_SERVICE_ADDRESSES}",
            "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false",
            *self._aggregation(),
        ]

    def _aggregation(self) -> list[str]:
        """What lets another server, such as a metrics adapter, answer for a part of the API."""
        files = self.credentials
        return [
            f"--requestheader-client-ca-file={files.cert(FRONT_PROXY_AUTHORITY)}",
            f"--requestheader-allowed-names={FRONT_PROXY}",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-username-headers=X-Remote-User",
            f"--proxy-client-cert-file={files.cert(FRONT_PROXY)}",
            f"--proxy-client-key-file={files.key(FRONT_PROXY)}",
            # Nothing here forwards a Service's own address, so the API server goes to the endpoints itself.
            "--enable-aggregator-routing=true",
        ]

    def _controller_manager(self) -> list[str]:
        files = self.credentials
        seconds = self.options.autoscaler_seconds
        autoscaler = ("sync-period", "initial-readiness-delay") if seconds else ()
        return [
            str(self.tools.kube_controller_manager),
            f"--kubeconfig={files.kubeconfig('controller-manager')}",
            f"--service-account-private-key-file={files.key('service-accounts')}",
            f"--root-ca-file={files.cert('ca')}",
            "--use-service-account-credentials=false",
            "--leader-elect=false",
            "--secure-port=0",
            *(f"--horizontal-pod-autoscaler-{name}={seconds}s" for name in autoscaler),
        ]

    def _scheduler(self) -> list[str]:
        return [
            str(self.tools.kube_scheduler),
            f"--kubeconfig={self.credentials.kubeconfig('scheduler')}",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _kwok(self) -> list[str]:
        return [
            str(self.tools.kwok),
            f"--kubeconfig={self.credentials.kubeconfig('kwok')}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
            f"--cidr={_POD_ADDRESSES}",
            *(f"--config={stage}" for stage in sorted(self.tools.kwok_stages.glob("*.yaml"))),
        ]
