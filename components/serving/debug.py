"""The debug twin of a model: a replica in which nothing runs, to look into."""

from collections.abc import Mapping

import pulumi_kubernetes as k8s

from components.serving import network, workload
from spec import names
from spec.model import DebugSpec
from spec.resolve import Model


def pod(
    model: Model, debug: DebugSpec, namespace: str, labels: Mapping[str, str] | None = None
) -> k8s.core.v1.PodInitArgs:
    """A pod like those of the primary revision, with its image, files, resources and node, that does nothing.

    Neither a Service nor a monitor nor a disruption budget selects it; further labels may be given.
    """
    metadata = _metadata(model, namespace)
    metadata.labels = _labels(model) | dict(model.primary.pod_labels) | dict(labels or {})
    return k8s.core.v1.PodInitArgs(metadata=metadata, spec=workload.pod(model.primary, debug))


def network_policy(model: Model, namespace: str) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """In: nothing but what ``kubectl`` forwards. Out: what a replica may reach."""
    return network.policy(
        _metadata(model, namespace),
        names.companion_selector(names.DEBUG, model.name),
        ingress=[],
        egress=network.store_egress(model.primary),
    )


def _metadata(model: Model, namespace: str) -> k8s.meta.v1.ObjectMetaArgs:
    return k8s.meta.v1.ObjectMetaArgs(
        name=names.debug(model.name),
        namespace=namespace,
        labels=_labels(model),
    )


def _labels(model: Model) -> dict[str, str]:
    return names.companion_labels(names.DEBUG, model.name, model.spec.owner)
