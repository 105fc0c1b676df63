"""What hands out the cards of a node: two of them on one node would hand out one card twice."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from policies.judging.view import Resource, View, dig
from policies.reading.nodes import Terms, node_terms, pool_labels, rules
from policies.reading.pods import Pods, pods_of

_CHARTS: Final = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")
_NVIDIA_IMAGE: Final = re.compile(r"(?:^|/)(?:nvidia/)?k8s-device-plugin(?:[:@]|$)")
_HAMI_IMAGE: Final = re.compile(r"(?:^|/)(?:projecthami/hami|hami)(?:[:@]|$)")
# HAMi's image holds its scheduler as well; what starts says which of them it is.
_PLUGIN_COMMAND: Final = "device-plugin"
_CHART_NAME: Final = re.compile(r"^(hami|nvidia-device-plugin)(?:-[0-9][^/]*)?(?:\.tgz)?$")
_HAMI_NODES: Final = {"gpu": "on"}  # by default of the chart
_HAMI_SCHEDULERS: Final = ("default-scheduler", "hami-scheduler")
# By default of the chart, and of Kubernetes where no chart is asked.
_CHART_FAILURE_POLICY: Final = "Ignore"
_FAILURE_POLICY: Final = "Fail"


@dataclass(frozen=True)
class Plugin:
    """A device plugin.

    Attributes:
        made_by: what installs it; None for that of a pool which others look after.
        name: who it is to a reader.
        nodes: which nodes it runs on.
    """

    made_by: Resource | None
    name: str
    nodes: Terms


def nvidia_plugins(view: View) -> Iterator[Plugin]:
    """NVIDIA's device plugin, as a DaemonSet and as a chart."""
    for found, pods in _daemons(view):
        if any(_NVIDIA_IMAGE.search(_image(container)) for container in pods.containers):
            yield Plugin(found, "NVIDIA's device plugin", node_terms(pods.spec))
    for found, values in _charts(view, "nvidia-device-plugin"):
        if dig(values, "devicePlugin", "enabled", default=True):
            yield Plugin(found, "NVIDIA's device plugin", node_terms(values))


def hami_plugins(view: View) -> Iterator[Plugin]:
    """HAMi's device plugin, as a DaemonSet, as a chart, and on the pools of the stack that HAMi shares."""
    for found, pods in _daemons(view):
        if any(_is_hami(container) for container in pods.containers):
            yield Plugin(found, "HAMi", node_terms(pods.spec))
    for found, values in _charts(view, "hami"):
        if dig(values, "devicePlugin", "enabled", default=True):
            chosen = _HAMI_NODES | dig(values, "devicePlugin", "nvidiaNodeSelector", default={})
            # Helm takes a null for leave to drop a default.
            yield Plugin(found, "HAMi", [rules({key: value for key, value in chosen.items() if value is not None})])
    for pool in view.spec.gpu_pools:
        if pool.sharing == "hami":
            yield Plugin(None, f"HAMi on pool {pool.name}", [rules(pool_labels(pool))])


def failure_policies(view: View) -> Iterator[tuple[Resource, str]]:
    """What the API server does with a pod while HAMi's webhook does not answer."""
    for found, values in _charts(view, "hami"):
        webhook = dig(values, "scheduler", "admissionWebhook", default={})
        if dig(webhook, "enabled", default=True):
            yield found, dig(webhook, "failurePolicy", default=_CHART_FAILURE_POLICY)
    for found in view.of_kind("MutatingWebhookConfiguration"):
        for webhook in found.at("webhooks", default=[]):
            if "hami" in f"{found.object_name} {dig(webhook, 'name', default='')}":
                yield found, dig(webhook, "failurePolicy", default=_FAILURE_POLICY)


def other_scheduler(pods: Pods) -> str | None:
    """The scheduler that pods ask for, if it is one to which HAMi leaves them."""
    name = pods.field("schedulerName", default=_HAMI_SCHEDULERS[0])
    return None if name in _HAMI_SCHEDULERS else name


def _daemons(view: View) -> Iterator[tuple[Resource, Pods]]:
    for found in view.of_kind("DaemonSet"):
        if pods := pods_of(found):
            yield found, pods


def _charts(view: View, name: str) -> Iterator[tuple[Resource, Mapping[str, Any]]]:
    for found in view.resources:
        if found.type in _CHARTS:
            match = _CHART_NAME.match(found.at("chart", default="").rstrip("/").rpartition("/")[2])
            if match and match[1] == name:
                yield found, found.at("values", default={})


def _image(container: Mapping[str, Any]) -> str:
    return dig(container, "image", default="")


def _is_hami(container: Mapping[str, Any]) -> bool:
    started = " ".join([*dig(container, "command", default=[]), *dig(container, "args", default=[])])
    return bool(_HAMI_IMAGE.search(_image(container))) and _PLUGIN_COMMAND in started
