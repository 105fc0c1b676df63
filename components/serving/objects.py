"""What every object of a revision has in common."""

from typing import Final

import pulumi_kubernetes as k8s

from spec import names
from spec.resolve import Revision

_USER: Final = 1000


def metadata(revision: Revision, namespace: str, name: str | None = None) -> k8s.meta.v1.ObjectMetaArgs:
    """Name (by default that of the Deployment), namespace and labels."""
    return k8s.meta.v1.ObjectMetaArgs(
        name=name or names.workload(revision.model, revision.name),
        namespace=namespace,
        labels=names.labels(revision.model, revision.owner, revision.name),
    )


def selector(revision: Revision) -> k8s.meta.v1.LabelSelectorArgs:
    """Selects the pods of one revision."""
    return k8s.meta.v1.LabelSelectorArgs(match_labels=names.selector(revision.model, revision.name))


def pod_security() -> k8s.core.v1.PodSecurityContextArgs:
    """What the Pod Security level ``restricted`` asks of a pod."""
    return k8s.core.v1.PodSecurityContextArgs(
        run_as_non_root=True,
        run_as_user=_USER,
        run_as_group=_USER,
        fs_group=_USER,
        seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
    )


def container_security() -> k8s.core.v1.SecurityContextArgs:
    """What the same level asks of a container, and a root file system that nobody writes to."""
    return k8s.core.v1.SecurityContextArgs(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
    )


def config_map_volume(name: str, config_map: str) -> k8s.core.v1.VolumeArgs:
    """A volume of the files of a ConfigMap."""
    return k8s.core.v1.VolumeArgs(name=name, config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(name=config_map))
