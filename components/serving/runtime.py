"""All that is Triton's own: ports, health paths, start-up arguments, shutdown, shared memory."""

import math
from typing import Final

import pulumi_kubernetes as k8s

from spec import triton
from spec.fields import duration_seconds
from spec.resolve import Revision
from spec.server import arguments

HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
METRICS_PORT: Final = 8002
METRICS_PORT_NAME: Final = "http-metrics"
MODELS_PATH: Final = "/models"

# Endpoints keep sending for a while after a pod was told to stop: wait first, then let Triton finish what is in
# flight, and give the kubelet more than the sum of both before it kills.
DRAIN_SECONDS: Final = 15
_SHORTEST_EXIT_SECONDS: Final = 30
_SLACK_SECONDS: Final = 15

_PROBE_PERIOD: Final = 10
# A Python instance is a process with a region of its own, which begins small and grows with the tensors that pass
# through it; 64 MiB is what the whole of /dev/shm has in a container without this volume.
_SHM_PER_PYTHON_PROCESS_MIB: Final = 64
_SHM_BASE_MIB: Final = 64


def exit_timeout_seconds(revision: Revision) -> int:
    """How long Triton may finish what is in flight: the longest request. It ends at once when nothing is."""
    return max(_SHORTEST_EXIT_SECONDS, math.ceil(revision.timeout))


def grace_seconds(revision: Revision) -> int:
    """What a pod has between being told to stop and being killed."""
    return DRAIN_SECONDS + exit_timeout_seconds(revision) + _SLACK_SECONDS


def server_arguments(revision: Revision, repository: str) -> list[str]:
    """Arguments of the container; the image's own entry point starts ``tritonserver`` from them.

    Args:
        revision: what runs.
        repository: where Triton finds its models: a folder of the container or an object store.
    """
    spec = revision.spec
    loaded = [revision.triton_name, *spec.members] if spec.control == "explicit" else []
    return [
        "tritonserver",
        f"--id={revision.model}",
        f"--model-repository={repository}",
        f"--model-control-mode={spec.control}",
        *(f"--load-model={name}" for name in loaded),
        f"--http-port={HTTP_PORT}",
        f"--grpc-port={GRPC_PORT}",
        f"--metrics-port={METRICS_PORT}",
        f"--exit-timeout-secs={exit_timeout_seconds(revision)}",
        *arguments(spec.server),
    ]


def ready_path(revision: Revision) -> str:
    """Readiness of one model, or of the whole server where it holds several."""
    return "/v2/health/ready" if revision.spec.members else f"/v2/models/{revision.triton_name}/ready"


def startup_probe(revision: Revision) -> k8s.core.v1.ProbeArgs:
    """Allows the declared load time before liveness counts."""
    failures = math.ceil(duration_seconds(revision.spec.load_time) / _PROBE_PERIOD)
    return _probe(ready_path(revision), period=_PROBE_PERIOD, failures=max(failures, 1))


def readiness_probe(revision: Revision) -> k8s.core.v1.ProbeArgs:
    """Whether requests may be sent here."""
    return _probe(ready_path(revision), period=5, failures=3)


def liveness_probe() -> k8s.core.v1.ProbeArgs:
    """Whether the process answers at all; never the ready path, which a model under load may fail."""
    return _probe("/v2/health/live", period=_PROBE_PERIOD, failures=3)


def _probe(path: str, *, period: int, failures: int) -> k8s.core.v1.ProbeArgs:
    return k8s.core.v1.ProbeArgs(
        http_get=k8s.core.v1.HTTPGetActionArgs(path=path, port=HTTP_PORT),
        period_seconds=period,
        timeout_seconds=5,
        failure_threshold=failures,
    )


def shared_memory_mib(revision: Revision) -> int:
    """Size of /dev/shm: a base for the server and a budget for each Python instance of each loaded version."""
    gpus = revision.spec.resources.gpu.count if revision.spec.resources.gpu else 0
    processes = sum(
        triton.instance_count(config, gpus=gpus) * triton.version_count(config)
        for config in revision.configs.values()
        if config.backend == "python"
    )
    return _SHM_BASE_MIB + _SHM_PER_PYTHON_PROCESS_MIB * processes


def container_ports() -> list[k8s.core.v1.ContainerPortArgs]:
    """Ports of the container, named as those of the Service."""
    return [k8s.core.v1.ContainerPortArgs(name=name, container_port=port) for name, port, _ in PORTS]


# Istio reads the protocol from the name or from appProtocol; metrics are plain HTTP.
PORTS: Final = (
    ("http", HTTP_PORT, "http"),
    ("grpc", GRPC_PORT, "grpc"),
    (METRICS_PORT_NAME, METRICS_PORT, "http"),
)
