"""The Deployment of one revision of a model."""

import math
from collections.abc import Mapping
from typing import Final

import pulumi_kubernetes as k8s

from components.gpu import node_pool
from components.rolling import rolled_by
from components.serving import model_config, objects, repository, runtime
from spec import names
from spec.fields import duration_seconds, mebibytes
from spec.gpu import GpuRequest, mig_slices_per_card
from spec.model import DebugSpec
from spec.pool import GpuPoolSpec
from spec.resolve import Revision

# Until a node has booted and pulled the image.
_BOOT_SECONDS: Final = 600
_NOTHING_TO_FINISH: Final = 5


def deployment(
    revision: Revision,
    namespace: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> k8s.apps.v1.DeploymentInitArgs:
    """Build the Deployment; ``replicas`` is absent where an autoscaler owns it.

    Args:
        revision: what runs.
        namespace: of the revision.
        labels: further labels of the pods; no selector asks for them.
        annotations: further annotations of the pods.
    """
    pod_labels = names.labels(revision.model, revision.owner, revision.name) | dict(revision.pod_labels)
    return k8s.apps.v1.DeploymentInitArgs(
        metadata=objects.metadata(revision, namespace),
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=revision.scaling.min if revision.scaling.fixed else None,
            selector=objects.selector(revision),
            strategy=_strategy(revision),
            progress_deadline_seconds=progress_seconds(revision),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    labels=pod_labels | dict(labels or {}),
                    annotations={**rolled_by(model_config.data(revision)), **(annotations or {})},
                ),
                spec=pod(revision),
            ),
        ),
    )


def progress_seconds(revision: Revision) -> int:
    """How long a rollout may make no progress: node boot and image pull, and the load time."""
    return _BOOT_SECONDS + math.ceil(duration_seconds(revision.spec.load_time))


def rollout_seconds(revision: Revision) -> int:
    """How long an update may take: one replica after the other, see ``_strategy``, each with its load time."""
    return _BOOT_SECONDS + revision.scaling.max * math.ceil(duration_seconds(revision.spec.load_time))


def _strategy(revision: Revision) -> k8s.apps.v1.DeploymentStrategyArgs:
    # A surge pod of a GPU model would wait for the GPU that the pod it replaces holds, unless the pool keeps one free.
    request, pool = revision.spec.resources.gpu, revision.pool
    spare = request is None or pool is None or _cards_of_a_replica(request, pool) <= pool.spare_gpus
    surge, unavailable = (1, 0) if spare else (0, 1)
    return k8s.apps.v1.DeploymentStrategyArgs(
        type="RollingUpdate",
        rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=surge, max_unavailable=unavailable),
    )


def _cards_of_a_replica(request: GpuRequest, pool: GpuPoolSpec) -> int:
    """Free cards that are enough for one replica; shares of several cards need as many cards."""
    if request.mig:
        return math.ceil(request.count / mig_slices_per_card(request.mig, pool.gpu_memory))
    return request.count


def pod(revision: Revision, debug: DebugSpec | None = None) -> k8s.core.v1.PodSpecArgs:
    """One replica; with ``debug`` one in which nothing runs, and which ends by itself."""
    spec, pool = revision.spec, revision.pool
    node_labels = (node_pool.node_selector(pool) if pool else {}) | spec.node_selector
    return k8s.core.v1.PodSpecArgs(
        # Workload identity works through a token of its own; nothing here talks to the API server.
        automount_service_account_token=False,
        service_account_name=spec.credentials.service_account if spec.credentials else None,
        enable_service_links=False,
        termination_grace_period_seconds=_NOTHING_TO_FINISH if debug else runtime.grace_seconds(revision),
        restart_policy="Never" if debug else None,
        active_deadline_seconds=int(duration_seconds(debug.lifetime)) if debug else None,
        priority_class_name=spec.priority,
        node_selector=node_labels or None,
        tolerations=[node_pool.toleration(pool)] if pool else None,
        topology_spread_constraints=[
            _spread(revision, key) for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        security_context=objects.pod_security(),
        init_containers=[repository.sync_container(revision)] if spec.is_synced else None,
        containers=[_triton(revision, debug)],
        volumes=_volumes(revision),
    )


def _spread(revision: Revision, topology_key: str) -> k8s.core.v1.TopologySpreadConstraintArgs:
    return k8s.core.v1.TopologySpreadConstraintArgs(
        max_skew=1,
        topology_key=topology_key,
        when_unsatisfiable="ScheduleAnyway",
        label_selector=objects.selector(revision),
    )


def _volumes(revision: Revision) -> list[k8s.core.v1.VolumeArgs]:
    volumes = [
        _memory_volume("shm", runtime.shared_memory_mib(revision)),
        k8s.core.v1.VolumeArgs(name="tmp", empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs()),
    ]
    if revision.spec.is_synced:
        volumes += repository.volumes(revision)
    if revision.configs:
        volumes.append(objects.config_map_volume(model_config.VOLUME, names.config_map(revision.model, revision.name)))
    return volumes


def _triton(revision: Revision, debug: DebugSpec | None) -> k8s.core.v1.ContainerArgs:
    spec = revision.spec
    mounts = [
        k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),  # noqa: S108  # a volume, not a shared folder
        k8s.core.v1.VolumeMountArgs(name="tmp", mount_path="/tmp"),  # noqa: S108
    ]
    if spec.is_synced:
        mounts.append(k8s.core.v1.VolumeMountArgs(name=repository.VOLUME, mount_path=runtime.MODELS_PATH))
        mounts += model_config.mounts(revision)
    memory = _memory(revision)
    drain = k8s.core.v1.LifecycleArgs(
        pre_stop=k8s.core.v1.LifecycleHandlerArgs(sleep=k8s.core.v1.SleepActionArgs(seconds=runtime.DRAIN_SECONDS))
    )
    return k8s.core.v1.ContainerArgs(
        name="triton",
        image=(debug.image if debug else None) or revision.image,
        command=["sleep", "infinity"] if debug else None,
        args=None if debug else runtime.server_arguments(revision, repository.location(revision)),
        # Backends write caches to the home folder, and the root file system is read-only.
        env=[k8s.core.v1.EnvVarArgs(name="HOME", value="/tmp"), *_environment(revision)],  # noqa: S108
        env_from=None if spec.is_synced else repository.credentials(revision),
        ports=runtime.container_ports(),
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": spec.resources.cpu, "memory": memory, **revision.gpu_limits},
            limits={"memory": memory, **revision.gpu_limits},
        ),
        startup_probe=None if debug else runtime.startup_probe(revision),
        readiness_probe=None if debug else runtime.readiness_probe(revision),
        liveness_probe=None if debug else runtime.liveness_probe(),
        lifecycle=None if debug else drain,
        security_context=objects.container_security(),
        volume_mounts=mounts,
    )


def _environment(revision: Revision) -> list[k8s.core.v1.EnvVarArgs]:
    variables = sorted(revision.spec.environment.items())
    return [k8s.core.v1.EnvVarArgs(name=name, value=value) for name, value in variables]


def _memory(revision: Revision) -> str:
    """Memory of the container: what the model asks for and /dev/shm, which is charged to the pod."""
    return f"{mebibytes(revision.spec.resources.memory) + runtime.shared_memory_mib(revision)}Mi"


def _memory_volume(name: str, mebibytes: int) -> k8s.core.v1.VolumeArgs:
    source = k8s.core.v1.EmptyDirVolumeSourceArgs(medium="Memory", size_limit=f"{mebibytes}Mi")
    return k8s.core.v1.VolumeArgs(name=name, empty_dir=source)
