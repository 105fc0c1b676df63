"""Probes of containers, and how long a model may load."""

from collections.abc import Mapping
from typing import Any, Final

from policies.judging.view import Resource, dig
from spec import names

_HANDLERS: Final = ("httpGet", "tcpSocket", "exec", "grpc")
# Kubernetes' own defaults.
_PERIOD: Final = 10
_FAILURES: Final = 3
# How much longer than its load time a Deployment of ours may make no progress, see components.serving.workload.
BOOT_SECONDS: Final = 600


def handler(container: Mapping[str, Any], probe: str) -> Mapping[str, Any]:
    """What a probe asks, without how often."""
    found = dig(container, probe, default={})
    return {kind: found[kind] for kind in _HANDLERS if dig(found, kind) is not None}


def asked(handler: Mapping[str, Any]) -> str:
    """A handler in words: the path, the command, or which of Kubernetes' kinds it is."""
    words = [dig(handler, "httpGet", "path", default=""), *dig(handler, "exec", "command", default=[])]
    return " ".join(str(word) for word in words if word) or " ".join(handler)


def budget(probe: Mapping[str, Any]) -> int:
    """Seconds until a probe that always fails has an effect."""
    delay = dig(probe, "initialDelaySeconds", default=0)
    return delay + dig(probe, "periodSeconds", default=_PERIOD) * dig(probe, "failureThreshold", default=_FAILURES)


def declared_load(found: Resource) -> int | None:
    """The load time of a model file, which only the deadline of our own Deployments holds as well."""
    deadline = found.at("spec", "progressDeadlineSeconds")
    ours = found.kind == "Deployment" and found.labels.get(names.PART_OF_LABEL) == names.PROJECT
    return deadline - BOOT_SECONDS if ours and deadline is not None and deadline > BOOT_SECONDS else None
