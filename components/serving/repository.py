"""How the model files reach Triton: read from the store directly, or synced to a volume first."""

from typing import Final

import pulumi_kubernetes as k8s

from components import versions
from components.serving import objects
from components.serving.runtime import MODELS_PATH
from spec.repository import Repository
from spec.resolve import Revision

VOLUME: Final = "models"
_CLAIM_VOLUME: Final = "repository"
_CLAIM_PATH: Final = "/repository"


def location(revision: Revision) -> str:
    """What ``--model-repository`` says."""
    return MODELS_PATH if revision.spec.is_synced else revision.spec.repository.uri


def sync_source(repository: Repository) -> str:
    """The repository as an rclone path with an on-the-fly remote, credentials from the environment."""
    match repository.scheme:
        case "s3" if repository.endpoint:
            remote = f':s3,provider=Other,env_auth=true,endpoint="{repository.endpoint}"'
            return f"{remote}:{repository.bucket}/{repository.path}"
        case "s3":
            return f":s3,provider=AWS,env_auth=true:{repository.bucket}/{repository.path}"
        case "gs":
            return f":gcs,env_auth=true:{repository.bucket}/{repository.path}"
        case "as":
            return f":azureblob,account={repository.bucket},env_auth=true:{repository.path}"
    return f"{_CLAIM_PATH}/{repository.path}"


def sync_container(revision: Revision) -> k8s.core.v1.ContainerArgs:
    """The init container that fills the models volume."""
    mounts = [k8s.core.v1.VolumeMountArgs(name=VOLUME, mount_path=MODELS_PATH)]
    if revision.spec.repository.scheme == "pvc":
        mounts.append(k8s.core.v1.VolumeMountArgs(name=_CLAIM_VOLUME, mount_path=_CLAIM_PATH, read_only=True))
    return k8s.core.v1.ContainerArgs(
        name="model-sync",
        image=versions.MODEL_SYNC_IMAGE,
        args=[
            "sync",
            "--config=",
            "--stats=10s",
            "--stats-one-line",
            sync_source(revision.spec.repository),
            MODELS_PATH,
        ],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "500m", "memory": "256Mi"}, limits={"memory": "1Gi"}
        ),
        env_from=credentials(revision),
        security_context=objects.container_security(),
        volume_mounts=mounts,
    )


def credentials(revision: Revision) -> list[k8s.core.v1.EnvFromSourceArgs] | None:
    """The existing Secret with the store's keys, for whichever container reads the store."""
    if revision.spec.credentials is None or revision.spec.credentials.secret is None:
        return None
    return [
        k8s.core.v1.EnvFromSourceArgs(secret_ref=k8s.core.v1.SecretEnvSourceArgs(name=revision.spec.credentials.secret))
    ]


def volumes(revision: Revision) -> list[k8s.core.v1.VolumeArgs]:
    """Volumes that the sync needs."""
    result = [k8s.core.v1.VolumeArgs(name=VOLUME, empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs())]
    if revision.spec.repository.scheme == "pvc":
        claim = k8s.core.v1.PersistentVolumeClaimVolumeSourceArgs(
            claim_name=revision.spec.repository.bucket, read_only=True
        )
        result.append(k8s.core.v1.VolumeArgs(name=_CLAIM_VOLUME, persistent_volume_claim=claim))
    return result
