"""What the DaemonSets on GPU nodes have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pulumi_kubernetes as k8s

from components.gpu import node_pool
from components.rolling import rolled_by
from spec import names
from spec.images import parse_image
from spec.pool import GpuPoolSpec

_CONFIG_VOLUME: Final = "config"


@dataclass(frozen=True)
class Daemon:
    """A DaemonSet of one container and the ConfigMap that it reads.

    Attributes:
        component: what it is.
        instance: which of several; the component itself where there is one.
        image: with a tag, a digest or both.
        config: files of the ConfigMap by name.
        pools: whose nodes it runs on.
    """

    component: str
    instance: str
    image: str
    config: Mapping[str, str]
    pools: Sequence[GpuPoolSpec]

    @property
    def name(self) -> str:
        """Name of the DaemonSet and of the ConfigMap."""
        return self.component if self.instance == self.component else f"{self.component}-{self.instance}"

    @property
    def selector(self) -> dict[str, str]:
        """Labels of the pods that never change."""
        return {"app.kubernetes.io/name": self.component, "app.kubernetes.io/instance": self.instance}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of every object; the version makes an upgrade stand out in a preview."""
        version = {"app.kubernetes.io/version": parse_image(self.image).version}
        return names.estate_labels(self.component) | self.selector | version

    @property
    def metadata(self) -> k8s.meta.v1.ObjectMetaArgs:
        """Metadata of every object."""
        return k8s.meta.v1.ObjectMetaArgs(name=self.name, namespace=names.GPU_NAMESPACE, labels=self.labels)

    def config_map(self) -> k8s.core.v1.ConfigMapInitArgs:
        """Build the ConfigMap."""
        return k8s.core.v1.ConfigMapInitArgs(metadata=self.metadata, data=dict(self.config))

    def config_mount(self, path: str) -> k8s.core.v1.VolumeMountArgs:
        """The files of the ConfigMap in a folder of the container."""
        return k8s.core.v1.VolumeMountArgs(name=_CONFIG_VOLUME, mount_path=path, read_only=True)

    def daemon_set(
        self,
        container: k8s.core.v1.ContainerArgs,
        affinity: k8s.core.v1.AffinityArgs,
        volumes: Sequence[k8s.core.v1.VolumeArgs],
    ) -> k8s.apps.v1.DaemonSetInitArgs:
        """Build the DaemonSet.

        Args:
            container: the container, with ``config_mount``.
            affinity: the nodes, see ``components.gpu.node_pool.node_affinity``.
            volumes: of the container, beside the ConfigMap.
        """
        return k8s.apps.v1.DaemonSetInitArgs(
            metadata=self.metadata,
            spec=k8s.apps.v1.DaemonSetSpecArgs(
                selector=k8s.meta.v1.LabelSelectorArgs(match_labels=self.selector),
                # One node at a time, so that an upgrade that does harm does it on one.
                update_strategy=k8s.apps.v1.DaemonSetUpdateStrategyArgs(
                    type="RollingUpdate", rolling_update=k8s.apps.v1.RollingUpdateDaemonSetArgs(max_unavailable=1)
                ),
                template=k8s.core.v1.PodTemplateSpecArgs(
                    metadata=k8s.meta.v1.ObjectMetaArgs(labels=self.labels, annotations=rolled_by(self.config)),
                    spec=k8s.core.v1.PodSpecArgs(
                        priority_class_name="system-node-critical",
                        # None of them talks to the API server.
                        automount_service_account_token=False,
                        enable_service_links=False,
                        affinity=affinity,
                        tolerations=node_pool.tolerations(self.pools),
                        containers=[container],
                        volumes=[self._config_volume(), *volumes],
                    ),
                ),
            ),
        )

    def _config_volume(self) -> k8s.core.v1.VolumeArgs:
        source = k8s.core.v1.ConfigMapVolumeSourceArgs(name=self.name)
        return k8s.core.v1.VolumeArgs(name=_CONFIG_VOLUME, config_map=source)


def host_folder(name: str, path: str) -> k8s.core.v1.VolumeArgs:
    """A folder that the node has."""
    source = k8s.core.v1.HostPathVolumeSourceArgs(path=path, type="Directory")
    return k8s.core.v1.VolumeArgs(name=name, host_path=source)


def variables(values: Mapping[str, str]) -> list[k8s.core.v1.EnvVarArgs]:
    """Environment variables."""
    return [k8s.core.v1.EnvVarArgs(name=name, value=value) for name, value in values.items()]


def security(*capabilities: str) -> k8s.core.v1.SecurityContextArgs:
    """No privilege but these Linux capabilities."""
    return k8s.core.v1.SecurityContextArgs(
        allow_privilege_escalation=False,
        capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"], add=list(capabilities) or None),
    )
