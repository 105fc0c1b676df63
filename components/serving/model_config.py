"""The config.pbtxt files of a service: ConfigMap and mounts."""

from typing import Final

import pulumi_kubernetes as k8s

from components.serving import objects
from components.serving.runtime import MODELS_PATH
from spec import names, triton
from spec.resolve import Revision

VOLUME: Final = "model-config"


def data(revision: Revision) -> dict[str, str]:
    """File name in the ConfigMap -> config.pbtxt text, for each model that has a config in the model file."""
    return {f"{name}.pbtxt": triton.render(config) for name, config in sorted(revision.configs.items())}


def config_map(revision: Revision, namespace: str) -> k8s.core.v1.ConfigMapInitArgs:
    """The ConfigMap of one revision."""
    return k8s.core.v1.ConfigMapInitArgs(
        metadata=objects.metadata(revision, namespace, names.config_map(revision.model, revision.name)),
        data=data(revision),
    )


def mounts(revision: Revision) -> list[k8s.core.v1.VolumeMountArgs]:
    """Each file over the config.pbtxt of its model in the synced repository."""
    return [
        k8s.core.v1.VolumeMountArgs(
            name=VOLUME,
            mount_path=f"{MODELS_PATH}/{name}/config.pbtxt",
            sub_path=f"{name}.pbtxt",
            read_only=True,
        )
        for name in sorted(revision.configs)
    ]
