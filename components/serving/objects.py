"""What every object of a revision has in common."""

import pulumi_kubernetes as k8s

from spec import names
from spec.resolve import Revision


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
