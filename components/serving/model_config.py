"""The config.pbtxt files of a service: ConfigMap, mounts and the hash that rolls the pods."""

import hashlib
from typing import Final

import pulumi_kubernetes as k8s

from components.serving import objects
from components.serving.runtime import MODELS_PATH
from spec import names, triton
from spec.resolve import Revision

HASH_ANNOTATION: Final = f"{names.LABEL_DOMAIN}/config-sha256"
VOLUME: Final = "model-config"


def data(revision: Revision) -> dict[str, str]:
    """File name in the ConfigMap -> config.pbtxt text, for each model that has a config in the model file."""
    return {f"{name}.pbtxt": triton.render(config) for name, config in sorted(revision.configs.items())}


def sha256(revision: Revision) -> str:
    """Hash of all that ``data`` holds."""
    digest = hashlib.sha256()
    for name, text in data(revision).items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


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
