"""The Prometheus operator's kinds on the plane, which has no operator: objects are checked and kept, nobody acts."""

from pathlib import Path
from typing import Final

from local.plane.kubectl import Kubectl

_API: Final = "/apis/monitoring.coreos.com/v1"
_FIELD_MANAGER: Final = "triton-estate-local"


def install(kubectl: Kubectl, folder: Path) -> None:
    """Create or update every kind of the folder.

    Raises:
        PlaneError: the API server refused.
    """
    # Server-side: the kinds are larger than the annotation in which a client-side apply keeps its last state. They come
    # checked against go.sum, so the API's whole schema need not be fetched to check them again.
    how = ("--server-side", "--force-conflicts", f"--field-manager={_FIELD_MANAGER}", "--validate=false")
    kubectl.run("apply", *how, f"--filename={folder}")


def are_served(kubectl: Kubectl, folder: Path) -> bool:
    """Whether objects of every kind of the folder can be created."""
    found = kubectl.raw(_API)
    served = {resource["name"] for resource in found["resources"]} if found else set()
    return served >= {path.stem for path in folder.glob("*.yaml")}
