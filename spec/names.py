"""Every name, label and address of the estate, computed in one place so that nothing has to guess them."""

import re
from typing import Final

PROJECT: Final = "triton-estate"
LABEL_DOMAIN: Final = "triton-estate.io"
OWNER_LABEL: Final = f"{LABEL_DOMAIN}/owner"
POOL_LABEL: Final = f"{LABEL_DOMAIN}/node-pool"

# A label of a Service is a label of its series in Prometheus, see `series_label`.
MODEL_LABEL: Final = "app.kubernetes.io/instance"
REVISION_LABEL: Final = "app.kubernetes.io/version"
PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
RUNBOOKS: Final = "docs/runbooks"

# Where the estate's own parts run: those that need the node's devices, and those that watch.
GPU_NAMESPACE: Final = "gpu-system"
MONITORING_NAMESPACE: Final = "monitoring"

# What stands beside the replicas of a model, and ends the names of its objects.
HEARTBEAT: Final = "heartbeat"
REPLICAS: Final = "replicas"
DEBUG: Final = "debug"
COMPANIONS: Final = (HEARTBEAT, REPLICAS, DEBUG)

DEFAULT_REVISION: Final = "v1"

# The kubeconfig context of the embedded control plane. An embedded stack asks for it by name, which keeps it off
# whatever cluster the user's own kubeconfig points at.
EMBEDDED_CONTEXT: Final = PROJECT

# A pod is named <model>-<revision>-<10 characters>-<5 characters> and its name becomes a host name of at most 63
# characters (RFC 1123), so model, revision and the two dashes have 46 between them.
MODEL_NAME_MAX: Final = 36
REVISION_NAME_MAX: Final = 9
# A simulated node is named <pool>-<0 to 999>, and its name is also the value of its hostname label.
POOL_NAME_MAX: Final = 59
DNS_LABEL: Final = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")


def suggest_dns_label(text: str, longest: int) -> str:
    """The closest DNS label to what somebody wrote, or ``""`` if nothing is left of it."""
    label = re.sub(r"[^a-z0-9]+", "-", text.lower()).lstrip("0123456789-").strip("-")
    return label[:longest].rstrip("-")


def workload(model: str, revision: str) -> str:
    """Name of the Deployment of one revision, and of the HPA and the PodDisruptionBudget that follow it."""
    return f"{model}-{revision}"


def config_map(model: str, revision: str) -> str:
    """Name of the ConfigMap that holds the config.pbtxt files of one revision."""
    return f"{workload(model, revision)}-config"


def heartbeat(model: str, revision: str) -> str:
    """Name of the heartbeat of one revision: its Deployment, Service, ConfigMap and NetworkPolicy."""
    return f"{workload(model, revision)}-{HEARTBEAT}"


def replicas(model: str, revision: str) -> str:
    """Name of the headless Service whose addresses are the replicas of one revision that take requests."""
    return f"{workload(model, revision)}-{REPLICAS}"


def debug(model: str) -> str:
    """Name of the debug twin of a model: its Pod and NetworkPolicy."""
    return f"{model}-{DEBUG}"


def selector(model: str, revision: str | None = None) -> dict[str, str]:
    """Labels that never change in the life of a model (or of one revision): all that a selector may hold."""
    labels = {"app.kubernetes.io/name": "triton", MODEL_LABEL: model}
    return labels if revision is None else labels | {REVISION_LABEL: revision}


def labels(model: str, owner: str, revision: str | None = None) -> dict[str, str]:
    """Labels of everything that belongs to a model."""
    return selector(model, revision) | {
        "app.kubernetes.io/component": "inference",
        PART_OF_LABEL: PROJECT,
        "app.kubernetes.io/managed-by": "pulumi",
        OWNER_LABEL: owner,
    }


def companion_labels(role: str, model: str, owner: str, revision: str | None = None) -> dict[str, str]:
    """Labels of what stands beside the replicas of a model; no selector of replicas matches them."""
    return (
        labels(model, owner, revision)
        | companion_selector(role, model, revision)
        | {"app.kubernetes.io/component": role}
    )


def companion_selector(role: str, model: str, revision: str | None = None) -> dict[str, str]:
    """Selects the pods of what stands beside the replicas."""
    return selector(model, revision) | {"app.kubernetes.io/name": f"triton-{role}"}


def series_label(label: str) -> str:
    """What Prometheus calls a Kubernetes label."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def estate_labels(component: str) -> dict[str, str]:
    """Labels of what belongs to the estate as a whole."""
    return {
        "app.kubernetes.io/name": component,
        PART_OF_LABEL: PROJECT,
        "app.kubernetes.io/managed-by": "pulumi",
    }


def service_host(service: str, namespace: str) -> str:
    """DNS name of a Service inside the cluster; a model's Service is named as the model."""
    return f"{service}.{namespace}.svc.cluster.local"
