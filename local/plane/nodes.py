"""What the plane's own cluster needs before anybody uses it, and whether it is there."""

from pathlib import Path
from typing import Final

import urllib3
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

# Where everything without a GPU runs; GPU nodes are the stack's business. KWOK stands in for its kubelet, so pods on
# it become ready and run nothing.
GENERAL_NODE: Final = "general-0"
_CAPACITY: Final = {"cpu": "64", "memory": "256Gi", "pods": "500"}


def core_api(kubeconfig: Path) -> client.CoreV1Api:
    """A client for the plane."""
    return client.CoreV1Api(config.new_client_from_config(config_file=str(kubeconfig)))


def ensure_general_node(kubeconfig: Path) -> None:
    """Create the ordinary node if it is not there."""
    node = client.V1Node(
        metadata=client.V1ObjectMeta(
            name=GENERAL_NODE,
            annotations={"kwok.x-k8s.io/node": "fake"},
            labels={"kubernetes.io/hostname": GENERAL_NODE, "kubernetes.io/os": "linux", "type": "kwok"},
        ),
        status=client.V1NodeStatus(capacity=_CAPACITY, allocatable=_CAPACITY),
    )
    try:
        core_api(kubeconfig).create_node(node)
    except ApiException as error:
        if error.status != 409:
            raise


def is_ready(kubeconfig: Path) -> bool:
    """Whether the ordinary node is ready and pods can be created (they need the default service account)."""
    api = core_api(kubeconfig)
    try:
        node = api.read_node(GENERAL_NODE)
        api.read_namespaced_service_account("default", "default")
    except (ApiException, urllib3.exceptions.HTTPError):
        return False
    conditions = (node.status.conditions if node.status else None) or []
    return any(found.type == "Ready" and found.status == "True" for found in conditions)
