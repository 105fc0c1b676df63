"""The models by name, for clients that look names up in the cluster and not hosts."""

import json
from collections.abc import Mapping
from typing import Any, Final

import pulumi_kubernetes as k8s

from spec import names

NAME: Final = "triton-models"
_FILE: Final = "models.json"
# What a client needs of a model's entry in the stack's outputs, under the same names.
_FIELDS: Final = (
    "owner", "tritonModel", "httpUrl", "httpTarget", "grpcTarget", "tls", "gateways", "requestHeaders", "shared",
    "internal", "service", "timeout", "inputs", "outputs",
)  # fmt: skip


def config_map(outputs: Mapping[str, Any], namespace: str) -> k8s.core.v1.ConfigMapInitArgs:
    """Model -> addresses, and the revisions that can take requests with their weights.

    It is written when all Deployments are there, so that a revision in it is one that was ready. Nothing of it is
    secret.

    Args:
        outputs: what the stack exports, see ``spec.contract``.
        namespace: of the models.
    """
    models = {
        name: {field: entry[field] for field in _FIELDS if field in entry} | {"revisions": _weights(entry)}
        for name, entry in outputs["models"].items()
    }
    document = {"contract": outputs["contract"], "models": models}
    return k8s.core.v1.ConfigMapInitArgs(
        metadata=k8s.meta.v1.ObjectMetaArgs(name=NAME, namespace=namespace, labels=names.estate_labels(NAME)),
        data={_FILE: json.dumps(document, indent=1, sort_keys=True)},
    )


def _weights(entry: Mapping[str, Any]) -> dict[str, int]:
    return {name: revision["weight"] for name, revision in entry["revisions"].items()}
