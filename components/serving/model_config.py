"""The config.pbtxt files of a service: ConfigMap, mounts and the hash that rolls the pods."""

import hashlib
from typing import Final

import pulumi_kubernetes as k8s

from components.serving.runtime import MODELS_PATH
from spec import names, triton
from spec.resolve import Model

HASH_ANNOTATION: Final = f"{names.LABEL_DOMAIN}/config-sha256"
VOLUME: Final = "model-config"


def data(model: Model) -> dict[str, str]:
    """File name in the ConfigMap -> config.pbtxt text, for each model that has a config in the model file."""
    return {f"{name}.pbtxt": triton.render(config) for name, config in sorted(model.configs.items())}


def sha256(model: Model) -> str:
    """Hash of all that ``data`` holds."""
    digest = hashlib.sha256()
    for name, text in data(model).items():
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def config_map(model: Model, revision: str, namespace: str) -> k8s.core.v1.ConfigMapInitArgs:
    """The ConfigMap of one revision."""
    return k8s.core.v1.ConfigMapInitArgs(
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=names.config_map(model.spec.name, revision),
            namespace=namespace,
            labels=names.labels(model.spec.name, model.spec.owner, revision),
        ),
        data=data(model),
    )


def mounts(model: Model) -> list[k8s.core.v1.VolumeMountArgs]:
    """Each file over the config.pbtxt of its model in the synced repository."""
    return [
        k8s.core.v1.VolumeMountArgs(
            name=VOLUME,
            mount_path=f"{MODELS_PATH}/{name}/config.pbtxt",
            sub_path=f"{name}.pbtxt",
            read_only=True,
        )
        for name in sorted(model.configs)
    ]
