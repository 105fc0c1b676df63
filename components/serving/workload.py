"""The Deployment of one revision of a model, and the Service in front of all of them."""

import math
from typing import Final

import pulumi_kubernetes as k8s

from components.gpu import node_pool
from components.serving import model_config, repository, runtime
from spec import names
from spec.fields import duration_seconds, mebibytes
from spec.resolve import Model

_USER: Final = 1000
# Until a node has booted and pulled the image.
_BOOT_SECONDS: Final = 600


def deployment(model: Model, revision: str, namespace: str) -> k8s.apps.v1.DeploymentInitArgs:
    """Build the Deployment; ``replicas`` is absent where an autoscaler owns it."""
    spec = model.spec
    return k8s.apps.v1.DeploymentInitArgs(
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=names.workload(spec.name, revision),
            namespace=namespace,
            labels=names.labels(spec.name, spec.owner, revision),
        ),
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=model.scaling.min if model.scaling.fixed else None,
            selector=k8s.meta.v1.LabelSelectorArgs(match_labels=names.selector(spec.name, revision)),
            strategy=_strategy(model),
            progress_deadline_seconds=progress_seconds(model),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    labels=names.labels(spec.name, spec.owner, revision),
                    annotations={model_config.HASH_ANNOTATION: model_config.sha256(model)},
                ),
                spec=_pod(model, revision),
            ),
        ),
    )


def progress_seconds(model: Model) -> int:
    """How long a rollout may make no progress: node boot and image pull, and the load time."""
    return _BOOT_SECONDS + math.ceil(duration_seconds(model.spec.load_time))


def rollout_seconds(model: Model) -> int:
    """How long an update may take: one replica after the other, see ``_strategy``, each with its load time."""
    return _BOOT_SECONDS + model.scaling.max * math.ceil(duration_seconds(model.spec.load_time))


def service(model: Model, namespace: str) -> k8s.core.v1.ServiceInitArgs:
    """Build the Service over all revisions."""
    return k8s.core.v1.ServiceInitArgs(
        metadata=k8s.meta.v1.ObjectMetaArgs(
            name=model.spec.name, namespace=namespace, labels=names.labels(model.spec.name, model.spec.owner)
        ),
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=names.selector(model.spec.name),
            ports=[
                k8s.core.v1.ServicePortArgs(name=name, port=port, target_port=name, app_protocol=protocol)
                for name, port, protocol in runtime.PORTS
            ],
        ),
    )


def _strategy(model: Model) -> k8s.apps.v1.DeploymentStrategyArgs:
    # A surge pod of a GPU model would wait for the GPU that the pod it replaces holds.
    surge, unavailable = (0, 1) if model.pool else (1, 0)
    return k8s.apps.v1.DeploymentStrategyArgs(
        type="RollingUpdate",
        rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=surge, max_unavailable=unavailable),
    )


def _pod(model: Model, revision: str) -> k8s.core.v1.PodSpecArgs:
    synced, configured = repository.is_synced(model), bool(model.configs)
    volumes = [
        _memory_volume("shm", runtime.shared_memory_mib(model)),
        k8s.core.v1.VolumeArgs(name="tmp", empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs()),
    ]
    if synced:
        volumes += repository.volumes(model)
    if configured:
        source = k8s.core.v1.ConfigMapVolumeSourceArgs(name=names.config_map(model.spec.name, revision))
        volumes.append(k8s.core.v1.VolumeArgs(name=model_config.VOLUME, config_map=source))
    return k8s.core.v1.PodSpecArgs(
        automount_service_account_token=False,
        enable_service_links=False,
        termination_grace_period_seconds=runtime.GRACE_SECONDS,
        node_selector=node_pool.node_selector(model.pool) if model.pool else None,
        tolerations=[node_pool.toleration()] if model.pool else None,
        topology_spread_constraints=[
            k8s.core.v1.TopologySpreadConstraintArgs(
                max_skew=1,
                topology_key="kubernetes.io/hostname",
                when_unsatisfiable="ScheduleAnyway",
                label_selector=k8s.meta.v1.LabelSelectorArgs(match_labels=names.selector(model.spec.name, revision)),
            )
        ],
        security_context=k8s.core.v1.PodSecurityContextArgs(
            run_as_non_root=True,
            run_as_user=_USER,
            run_as_group=_USER,
            fs_group=_USER,
            seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
        ),
        init_containers=[repository.sync_container(model, _locked_down())] if synced else None,
        containers=[_triton(model, synced=synced)],
        volumes=volumes,
    )


def _triton(model: Model, *, synced: bool) -> k8s.core.v1.ContainerArgs:
    mounts = [
        k8s.core.v1.VolumeMountArgs(name="shm", mount_path="/dev/shm"),  # noqa: S108  # a volume, not a shared folder
        k8s.core.v1.VolumeMountArgs(name="tmp", mount_path="/tmp"),  # noqa: S108
    ]
    if synced:
        mounts.append(k8s.core.v1.VolumeMountArgs(name=repository.VOLUME, mount_path=runtime.MODELS_PATH))
        mounts += model_config.mounts(model)
    resources = model.spec.resources
    return k8s.core.v1.ContainerArgs(
        name="triton",
        image=model.image,
        args=runtime.server_arguments(model, repository.location(model)),
        # Backends write caches to the home folder, and the root file system is read-only.
        env=[k8s.core.v1.EnvVarArgs(name="HOME", value="/tmp")],  # noqa: S108
        ports=runtime.container_ports(),
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": resources.cpu, "memory": _memory(model), **model.gpu_limits},
            limits={"memory": _memory(model), **model.gpu_limits},
        ),
        startup_probe=runtime.startup_probe(model),
        readiness_probe=runtime.readiness_probe(model),
        liveness_probe=runtime.liveness_probe(),
        lifecycle=k8s.core.v1.LifecycleArgs(
            pre_stop=k8s.core.v1.LifecycleHandlerArgs(sleep=k8s.core.v1.SleepActionArgs(seconds=runtime.DRAIN_SECONDS))
        ),
        security_context=_locked_down(),
        volume_mounts=mounts,
    )


def _memory(model: Model) -> str:
    """Memory of the container: what the model asks for and /dev/shm, which is charged to the pod."""
    return f"{mebibytes(model.spec.resources.memory) + runtime.shared_memory_mib(model)}Mi"


def _memory_volume(name: str, mebibytes: int) -> k8s.core.v1.VolumeArgs:
    source = k8s.core.v1.EmptyDirVolumeSourceArgs(medium="Memory", size_limit=f"{mebibytes}Mi")
    return k8s.core.v1.VolumeArgs(name=name, empty_dir=source)


def _locked_down() -> k8s.core.v1.SecurityContextArgs:
    return k8s.core.v1.SecurityContextArgs(
        allow_privilege_escalation=False,
        read_only_root_filesystem=True,
        capabilities=k8s.core.v1.CapabilitiesArgs(drop=["ALL"]),
    )
