"""What the plane's own cluster needs before anybody uses it, and whether it is there."""

import json
from typing import Final

from local.plane.kubectl import Kubectl

# Where everything without a GPU runs; GPU nodes are the stack's business. KWOK stands in for its kubelet, so pods on it
# become ready and run nothing.
GENERAL_NODE: Final = "general-0"
_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def ensure_general_node(kubectl: Kubectl) -> None:
    """Create the ordinary node if it is not there."""
    if kubectl.succeeds("get", f"node/{GENERAL_NODE}"):
        return
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": GENERAL_NODE,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": GENERAL_NODE, "kubernetes.io/os": "linux", "type": "kwok"},
        },
        "status": {"capacity": _CAPACITY, "allocatable": _CAPACITY},
    }
    kubectl.run("create", "--filename=-", stdin=json.dumps(node))


def is_ready(kubectl: Kubectl) -> bool:
    """Whether the ordinary node is ready and pods can be created (they need the default service account)."""
    return kubectl.succeeds(
        "wait", "--for=condition=Ready", "--timeout=1s", f"node/{GENERAL_NODE}"
    ) and kubectl.succeeds("get", "serviceaccount/default", "--namespace=default")
