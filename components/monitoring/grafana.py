"""Grafana with the dashboards, or the dashboards for a Grafana that is there."""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi
import pulumi_kubernetes as k8s
import yaml

from components import versions
from components.args import Args
from components.rolling import rolled_by
from components.serving import objects
from spec import names
from spec.grafana import GRAFANA, PASSWORD_KEY, PORT, GrafanaSpec, dashboard_uid
from spec.pool import GpuPoolSpec
from spec.signals import Windows

_PROVISIONING: Final = "grafana-provisioning"
_SOURCES_FILE: Final = "datasources.yaml"
_DASHBOARDS_FILE: Final = "dashboards.yaml"
_PROVISIONING_PATH: Final = "/etc/grafana/provisioning"
_DASHBOARDS_PATH: Final = "/etc/grafana/dashboards"
_BOARDS: Final = "boards"
# Volume and folder below the provisioning path -> the file in it.
_SETTINGS: Final = {"datasources": _SOURCES_FILE, "dashboards": _DASHBOARDS_FILE}
# Where Grafana writes: users, stars and sessions, which go with the pod; all else is in this project.
_SCRATCH: Final = {"data": "/var/lib/grafana", "tmp": "/tmp"}  # noqa: S108  # volumes
_RESCAN_SECONDS: Final = 30
_PORT_NAME: Final = "http"
# User of the official image.
_USER: Final = 472


class GrafanaArgs(Args):
    """Arguments of :class:`Grafana`.

    Attributes:
        grafana: where the dashboards are shown.
        namespace: an existing namespace: ``monitoring`` for a managed one, that of the sidecar otherwise.
        prometheus_url: where the series are; a managed Grafana needs it.
        scrape_interval: time between two samples.
        windows: ranges of the queries, those of the autoscaler.
        pools: GPU pools of the stack.
    """

    grafana: GrafanaSpec
    namespace: str
    prometheus_url: str | None
    scrape_interval: str
    windows: Windows
    pools: Sequence[GpuPoolSpec]


class Grafana(pulumi.ComponentResource):
    """The dashboards as ConfigMaps, and for a managed Grafana its Deployment and Service."""

    def __init__(self, name: str, args: GrafanaArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        # Loads an SDK that no stack without Grafana needs.
        from components.monitoring import dashboards  # noqa: PLC0415

        super().__init__("triton-estate:monitoring:Grafana", name, None, opts)
        boards = {
            dashboard_config_map(board): {f"{board}.json": text}
            for board, text in dashboards.render(args.windows, args.pools).items()
        }
        config_maps: list[pulumi.Resource] = [
            k8s.core.v1.ConfigMap(board, config_map(board, file, args.namespace, args.grafana), self._child())
            for board, file in boards.items()
        ]
        if args.grafana.provider == "managed":
            files = provisioning(args.grafana, args.prometheus_url or "", args.scrape_interval)
            settings = config_map(_PROVISIONING, files, args.namespace)
            config_maps.append(k8s.core.v1.ConfigMap(_PROVISIONING, settings, self._child()))
            grafana = deployment(args.grafana, args.namespace, files, list(boards))
            k8s.apps.v1.Deployment(name, grafana, self._child(config_maps))
            k8s.core.v1.Service(name, service(args.namespace), self._child())
        self.register_outputs({})

    def _child(self, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(depends_on))


def dashboard_config_map(dashboard: str) -> str:
    """Name of the ConfigMap of a dashboard; carries the project's name, for it may lie among those of others."""
    return dashboard_uid(dashboard)


def config_map(
    name: str, files: Mapping[str, str], namespace: str, grafana: GrafanaSpec | None = None
) -> k8s.core.v1.ConfigMapInitArgs:
    """Files, marked for the sidecar of an existing Grafana."""
    metadata = _metadata(name, namespace)
    if grafana and grafana.provider == "existing":
        metadata.labels = names.estate_labels(GRAFANA) | grafana.labels
        metadata.annotations = {grafana.folder_annotation: grafana.folder}
    return k8s.core.v1.ConfigMapInitArgs(metadata=metadata, data=dict(files))


def provisioning(grafana: GrafanaSpec, prometheus_url: str, scrape_interval: str) -> dict[str, str]:
    """What Grafana reads when it starts, by file name: the Prometheus, and where the dashboards lie."""
    source = {
        "name": "Prometheus",
        "uid": "prometheus",
        "type": "prometheus",
        "access": "proxy",
        "url": prometheus_url,
        "isDefault": True,
        "editable": False,
        # Queries that join by pod are longer than some proxies let a URL be.
        "jsonData": {"httpMethod": "POST", "timeInterval": scrape_interval},
    }
    provider = {
        "name": names.PROJECT,
        "folder": grafana.folder,
        "type": "file",
        "updateIntervalSeconds": _RESCAN_SECONDS,
        "allowUiUpdates": False,
        "options": {"path": _DASHBOARDS_PATH},
    }
    return {
        _SOURCES_FILE: yaml.safe_dump({"apiVersion": 1, "prune": True, "datasources": [source]}, sort_keys=False),
        _DASHBOARDS_FILE: yaml.safe_dump({"apiVersion": 1, "providers": [provider]}, sort_keys=False),
    }


def service(namespace: str) -> k8s.core.v1.ServiceInitArgs:
    """Grafana's address inside the cluster."""
    port = k8s.core.v1.ServicePortArgs(name=_PORT_NAME, port=PORT, target_port=_PORT_NAME, app_protocol="http")
    return k8s.core.v1.ServiceInitArgs(
        metadata=_metadata(GRAFANA, namespace),
        spec=k8s.core.v1.ServiceSpecArgs(selector=_selector(), ports=[port]),
    )


def deployment(
    grafana: GrafanaSpec, namespace: str, files: Mapping[str, str], boards: Sequence[str]
) -> k8s.apps.v1.DeploymentInitArgs:
    """Build the Deployment.

    Args:
        grafana: provider managed.
        namespace: where it runs.
        files: what it reads when it starts, see :func:`provisioning`. Dashboards it reads again by itself.
        boards: names of the ConfigMaps with the dashboards.
    """
    return k8s.apps.v1.DeploymentInitArgs(
        metadata=_metadata(GRAFANA, namespace),
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=1,
            selector=k8s.meta.v1.LabelSelectorArgs(match_labels=_selector()),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    labels=names.estate_labels(GRAFANA),
                    annotations=rolled_by(files),
                ),
                spec=k8s.core.v1.PodSpecArgs(
                    automount_service_account_token=False,
                    enable_service_links=False,
                    security_context=k8s.core.v1.PodSecurityContextArgs(
                        run_as_non_root=True,
                        run_as_user=_USER,
                        run_as_group=_USER,
                        fs_group=_USER,
                        seccomp_profile=k8s.core.v1.SeccompProfileArgs(type="RuntimeDefault"),
                    ),
                    containers=[_container(grafana)],
                    volumes=_volumes(boards),
                ),
            ),
        ),
    )


def _container(grafana: GrafanaSpec) -> k8s.core.v1.ContainerArgs:
    def probe(failures: int, seconds: int) -> k8s.core.v1.ProbeArgs:
        health = k8s.core.v1.HTTPGetActionArgs(path=f"{grafana.path}/api/health", port=_PORT_NAME)
        return k8s.core.v1.ProbeArgs(http_get=health, period_seconds=seconds, failure_threshold=failures)

    readable = {_BOARDS: _DASHBOARDS_PATH} | {name: f"{_PROVISIONING_PATH}/{name}" for name in _SETTINGS}
    return k8s.core.v1.ContainerArgs(
        name=GRAFANA,
        image=versions.GRAFANA_IMAGE,
        env=_environment(grafana),
        ports=[k8s.core.v1.ContainerPortArgs(name=_PORT_NAME, container_port=PORT)],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "100m", "memory": "256Mi"}, limits={"memory": "512Mi"}
        ),
        # The first start makes the tables of its database.
        startup_probe=probe(failures=60, seconds=5),
        readiness_probe=probe(failures=3, seconds=10),
        liveness_probe=probe(failures=6, seconds=10),
        security_context=objects.container_security(),
        volume_mounts=[
            *(k8s.core.v1.VolumeMountArgs(name=name, mount_path=path) for name, path in _SCRATCH.items()),
            *(
                k8s.core.v1.VolumeMountArgs(name=name, mount_path=path, read_only=True)
                for name, path in readable.items()
            ),
        ],
    )


def _environment(grafana: GrafanaSpec) -> list[k8s.core.v1.EnvVarArgs]:
    settings = {
        # Neither reports nor asks anything outside: plugins that the image lacks are not downloaded either.
        "GF_ANALYTICS_CHECK_FOR_PLUGIN_UPDATES": "false",
        "GF_ANALYTICS_CHECK_FOR_UPDATES": "false",
        "GF_ANALYTICS_REPORTING_ENABLED": "false",
        "GF_PLUGINS_PREINSTALL_DISABLED": "true",
        "GF_LOG_MODE": "console",
        "GF_SERVER_ROOT_URL": f"{grafana.address}/",
    }
    if grafana.path:
        settings["GF_SERVER_SERVE_FROM_SUB_PATH"] = "true"
    password = k8s.core.v1.SecretKeySelectorArgs(name=grafana.admin_secret, key=PASSWORD_KEY)
    return [
        *(k8s.core.v1.EnvVarArgs(name=name, value=value) for name, value in settings.items()),
        k8s.core.v1.EnvVarArgs(
            name="GF_SECURITY_ADMIN_PASSWORD", value_from=k8s.core.v1.EnvVarSourceArgs(secret_key_ref=password)
        ),
    ]


def _volumes(boards: Sequence[str]) -> list[k8s.core.v1.VolumeArgs]:
    projections = [
        k8s.core.v1.VolumeProjectionArgs(config_map=k8s.core.v1.ConfigMapProjectionArgs(name=board)) for board in boards
    ]
    scratch = [k8s.core.v1.VolumeArgs(name=name, empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs()) for name in _SCRATCH]
    settings = [
        k8s.core.v1.VolumeArgs(
            name=name,
            config_map=k8s.core.v1.ConfigMapVolumeSourceArgs(
                name=_PROVISIONING, items=[k8s.core.v1.KeyToPathArgs(key=file, path=file)]
            ),
        )
        for name, file in _SETTINGS.items()
    ]
    projected = k8s.core.v1.ProjectedVolumeSourceArgs(sources=projections)
    return [*scratch, *settings, k8s.core.v1.VolumeArgs(name=_BOARDS, projected=projected)]


def _metadata(name: str, namespace: str) -> k8s.meta.v1.ObjectMetaArgs:
    return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=namespace, labels=names.estate_labels(GRAFANA))


def _selector() -> dict[str, str]:
    # With the project's name, so that the Grafana of somebody else in the namespace is not meant.
    return names.estate_labels(GRAFANA)
