"""What the plane's own cluster needs before anybody uses it, and whether it is there."""

import json
from typing import Final

from local.plane.kubectl import Kubectl

# Where everything without a GPU runs; GPU nodes are the stack's business. KWOK stands in for its kubelet, so pods on it
# become ready and run nothing.
GENERAL_NODE: Final = "general-0"
_NODES: Final = "/api/v1/nodes"
_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def ensure_general_node(kubectl: Kubectl) -> None:
    """Create the ordinary node if it is not there."""
    if kubectl.raw(f"{_NODES}/{GENERAL_NODE}") is not None:
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
    node = kubectl.raw(f"{_NODES}/{GENERAL_NODE}")
    conditions = node["status"].get("conditions", []) if node else []
    ready = any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
    return ready and kubectl.raw("/api/v1/namespaces/default/serviceaccounts/default") is not None
