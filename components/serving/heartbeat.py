"""The heartbeat of one revision: a small program beside it that sends a real request to every replica."""

import inspect
import json
from collections.abc import Mapping
from typing import Final

import pulumi_kubernetes as k8s

import probes.heartbeat
from components import versions
from components.rolling import rolled_by
from components.serving import network, objects, runtime
from spec import names
from spec.heartbeat import Heartbeat
from spec.resolve import Revision

METRICS_PORT: Final = 8003
# The same in every revision, so it stands in the namespace once.
CODE_CONFIG_MAP: Final = "triton-heartbeat"
_CODE_FILE: Final = "heartbeat.py"
_CODE_PATH: Final = "/heartbeat/code"
_SETTINGS_FILE: Final = "settings.json"
_SETTINGS_PATH: Final = "/heartbeat/settings"


def code() -> str:
    """The program that runs in the pod."""
    return inspect.getsource(probes.heartbeat)


def code_config_map(namespace: str) -> k8s.core.v1.ConfigMapInitArgs:
    """The program, for all heartbeats of the namespace."""
    metadata = k8s.meta.v1.ObjectMetaArgs(
        name=CODE_CONFIG_MAP, namespace=namespace, labels=names.estate_labels(CODE_CONFIG_MAP)
    )
    return k8s.core.v1.ConfigMapInitArgs(metadata=metadata, data={_CODE_FILE: code()})


def settings(revision: Revision, heartbeat: Heartbeat, namespace: str) -> str:
    """What the program is told, see ``probes.heartbeat.Settings``."""
    told = {
        "host": names.service_host(names.replicas(revision.model, revision.name), namespace),
        "port": runtime.HTTP_PORT,
        "model": revision.triton_name,
        "every": heartbeat.every,
        "timeout": heartbeat.timeout,
        "metrics_port": METRICS_PORT,
        "request": heartbeat.request,
    }
    return json.dumps(told, indent=1)


def settings_config_map(revision: Revision, heartbeat: Heartbeat, namespace: str) -> k8s.core.v1.ConfigMapInitArgs:
    """The settings of one heartbeat."""
    return k8s.core.v1.ConfigMapInitArgs(
        metadata=_metadata(revision, namespace), data={_SETTINGS_FILE: settings(revision, heartbeat, namespace)}
    )


def deployment(
    revision: Revision, heartbeat: Heartbeat, namespace: str, labels: Mapping[str, str] | None = None
) -> k8s.apps.v1.DeploymentInitArgs:
    """One pod; a second one would only double the requests.

    Args:
        revision: to which the requests go.
        heartbeat: the requests.
        namespace: of the revision.
        labels: further labels of the pod; no selector asks for them.
    """
    own = names.companion_labels(names.HEARTBEAT, revision.model, revision.owner, revision.name)
    selector = names.companion_selector(names.HEARTBEAT, revision.model, revision.name)
    told = {"code": code(), "settings": settings(revision, heartbeat, namespace)}
    return k8s.apps.v1.DeploymentInitArgs(
        metadata=_metadata(revision, namespace),
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=1,
            selector=k8s.meta.v1.LabelSelectorArgs(match_labels=selector),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(
                    labels=own | dict(labels or {}),
                    annotations=rolled_by(told),
                ),
                spec=_pod(revision),
            ),
        ),
    )


def service(
    revision: Revision, namespace: str, annotations: dict[str, str] | None = None
) -> k8s.core.v1.ServiceInitArgs:
    """Where Prometheus finds the metrics of the heartbeat."""
    metadata = _metadata(revision, namespace)
    metadata.annotations = annotations
    port = k8s.core.v1.ServicePortArgs(
        name=runtime.METRICS_PORT_NAME, port=METRICS_PORT, target_port=METRICS_PORT, app_protocol="http"
    )
    return k8s.core.v1.ServiceInitArgs(
        metadata=metadata,
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=names.companion_selector(names.HEARTBEAT, revision.model, revision.name), ports=[port]
        ),
    )


def replicas_service(revision: Revision, namespace: str) -> k8s.core.v1.ServiceInitArgs:
    """Headless: its addresses are the replicas that take requests. Not for callers, who would get one of them."""
    metadata = _metadata(revision, namespace, names.replicas(revision.model, revision.name))
    port = k8s.core.v1.ServicePortArgs(
        name="http", port=runtime.HTTP_PORT, target_port=runtime.HTTP_PORT, app_protocol="http"
    )
    return k8s.core.v1.ServiceInitArgs(
        metadata=metadata,
        spec=k8s.core.v1.ServiceSpecArgs(
            cluster_ip="None", selector=names.selector(revision.model, revision.name), ports=[port]
        ),
    )


def network_policy(revision: Revision, namespace: str) -> k8s.networking.v1.NetworkPolicyInitArgs:
    """In: its metrics. Out: DNS and the replicas of this revision."""
    replicas = k8s.networking.v1.NetworkPolicyPeerArgs(pod_selector=objects.selector(revision))
    return network.policy(
        _metadata(revision, namespace),
        names.companion_selector(names.HEARTBEAT, revision.model, revision.name),
        ingress=[METRICS_PORT],
        egress=[k8s.networking.v1.NetworkPolicyEgressRuleArgs(to=[replicas], ports=[network.port(runtime.HTTP_PORT)])],
    )


def _metadata(revision: Revision, namespace: str, name: str | None = None) -> k8s.meta.v1.ObjectMetaArgs:
    return k8s.meta.v1.ObjectMetaArgs(
        name=name or names.heartbeat(revision.model, revision.name),
        namespace=namespace,
        labels=names.companion_labels(names.HEARTBEAT, revision.model, revision.owner, revision.name),
    )


def _pod(revision: Revision) -> k8s.core.v1.PodSpecArgs:
    config_map = names.heartbeat(revision.model, revision.name)
    answers = k8s.core.v1.ProbeArgs(http_get=k8s.core.v1.HTTPGetActionArgs(path="/metrics", port=METRICS_PORT))
    return k8s.core.v1.PodSpecArgs(
        automount_service_account_token=False,
        enable_service_links=False,
        security_context=objects.pod_security(),
        containers=[
            k8s.core.v1.ContainerArgs(
                name=names.HEARTBEAT,
                image=versions.PYTHON_IMAGE,
                command=["python", "-B", f"{_CODE_PATH}/{_CODE_FILE}", f"{_SETTINGS_PATH}/{_SETTINGS_FILE}"],
                ports=[k8s.core.v1.ContainerPortArgs(name=runtime.METRICS_PORT_NAME, container_port=METRICS_PORT)],
                resources=k8s.core.v1.ResourceRequirementsArgs(
                    requests={"cpu": "10m", "memory": "64Mi"}, limits={"memory": "64Mi"}
                ),
                readiness_probe=answers,
                liveness_probe=answers,
                security_context=objects.container_security(),
                volume_mounts=[
                    k8s.core.v1.VolumeMountArgs(name="code", mount_path=_CODE_PATH, read_only=True),
                    k8s.core.v1.VolumeMountArgs(name="settings", mount_path=_SETTINGS_PATH, read_only=True),
                ],
            )
        ],
        volumes=[
            objects.config_map_volume("code", CODE_CONFIG_MAP),
            objects.config_map_volume("settings", config_map),
        ],
    )
