"""Options of ``tritonserver`` that a model file may set, with the server's own names and types.

Source: ``tritonserver --help`` of Triton 2.51, which a test asks (tests/dataplane).
"""

import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, WithJsonSchema

from spec.fields import refuse_all
from spec.problems import ABSENT, Problem
from spec.validation import closest

_BOOLEAN: Final = [
    "log-info",
    "log-warning",
    "log-error",
    "exit-on-error",
    "strict-readiness",
    "model-namespacing",
    "enable-peer-access",
    "allow-gpu-metrics",
    "allow-cpu-metrics",
    "grpc-keepalive-permit-without-calls",
    "disable-auto-complete-config",
]
_INTEGER: Final = [
    "log-verbose",
    "repository-poll-secs",
    "model-load-thread-count",
    "model-load-retry-count",
    "http-thread-count",
    "grpc-infer-allocation-pool-size",
    "grpc-keepalive-time",
    "grpc-keepalive-timeout",
    "grpc-http2-max-pings-without-data",
    "grpc-http2-min-recv-ping-interval-without-data",
    "grpc-http2-max-ping-strikes",
    "grpc-max-connection-age",
    "grpc-max-connection-age-grace",
    "pinned-memory-pool-byte-size",
    "buffer-manager-thread-count",
]
_NUMBER: Final = ["metrics-interval-ms", "min-supported-compute-capability"]
_TEXT: Final = [
    "log-format",
    "model-config-name",
    "http-header-forward-pattern",
    "grpc-header-forward-pattern",
    "grpc-infer-response-compression-level",
    "backend-directory",
    "repoagent-directory",
    "cache-directory",
    "rate-limit",
]
_REPEATED: Final = [
    "http-restricted-api",
    "grpc-restricted-protocol",
    "metrics-config",
    "trace-config",
    "backend-config",
    "cache-config",
    "rate-limit-resource",
    "cuda-memory-pool-byte-size",
    "cuda-virtual-address-size",
    "host-policy",
    "model-load-gpu-limit",
]
_KINDS: Final[dict[str, str]] = (
    dict.fromkeys(_BOOLEAN, "true or false")
    | dict.fromkeys(_INTEGER, "a whole number, 0 or more")
    | dict.fromkeys(_NUMBER, "a number, 0 or more")
    | dict.fromkeys(_TEXT, "text")
    | dict.fromkeys(_REPEATED, "a list of texts")
)
_CHOICES: Final = {
    "log-format": ("default", "ISO8601"),
    "grpc-infer-response-compression-level": ("none", "low", "medium", "high"),
    "rate-limit": ("off", "execution_count"),
}
_FLAGS: Final = frozenset({"disable-auto-complete-config"})

# What the component decides: ports, repository, shutdown and identity have to agree with the Kubernetes objects.
_V2: Final = "the component: clients speak KServe's v2 protocol"
_OWNED: Final = {
    "id": "the name of the model",
    "exit-timeout-secs": "the shutdown settings of the component",
    "model-repository": "`repository:`",
    "model-store": "`repository:`",
    "model-control-mode": "`control:`",
    "load-model": "`control: explicit`, which loads the models of the file",
    "log-file": "the component: logs go to standard error for the cluster's log collector",
    "allow-http": "the component", "http-address": "the component", "http-port": "the component",
    "reuse-http-port": "the component", "allow-grpc": "the component", "grpc-address": "the component",
    "grpc-port": "the component", "reuse-grpc-port": "the component", "allow-metrics": "the component",
    "metrics-address": "the component", "metrics-port": "the component",
    "grpc-use-ssl": "the gateway, which ends TLS", "grpc-use-ssl-mutual": "the gateway, which ends TLS",
    "grpc-server-cert": "the gateway, which ends TLS", "grpc-server-key": "the gateway, which ends TLS",
    "grpc-root-cert": "the gateway, which ends TLS",
    "allow-sagemaker": _V2, "sagemaker-port": _V2, "sagemaker-safe-port-range": _V2, "sagemaker-thread-count": _V2,
    "allow-vertex-ai": _V2, "vertex-ai-port": _V2, "vertex-ai-thread-count": _V2, "vertex-ai-default-model": _V2,
}  # fmt: skip
_REPLACED: Final = {
    "strict-model-config": "disable-auto-complete-config: true",
    "response-cache-byte-size": "cache-config: [local,size=<bytes>]",
    "trace-file": "trace-config: [triton,file=<path>]",
    "trace-level": "trace-config: [level=<level>]",
    "trace-rate": "trace-config: [rate=<rate>]",
    "trace-count": "trace-config: [count=<count>]",
    "trace-log-frequency": "trace-config: [triton,log-frequency=<value>]",
}


def _check(options: dict[str, object]) -> dict[str, object]:
    if problems := list(_mistakes(options)):
        refuse_all(problems)
    return options


def _mistakes(options: Mapping[str, object]) -> Iterator[Problem]:
    for name, value in options.items():
        if name in _OWNED:
            yield Problem(name, f"is decided by {_OWNED[name]}", value, "absent", f"leave {name} out")
        elif name in _REPLACED:
            yield Problem(name, "is deprecated in Triton", value, "absent", f"write {_REPLACED[name]}")
        elif name not in _KINDS:
            hint = closest(name.replace("_", "-"), list(_KINDS)) or "see `tritonserver --help`"
            yield Problem(name, "tritonserver has no such option", ABSENT, ", ".join(sorted(_KINDS)), hint)
        elif not _has_kind(name, value):
            yield Problem(name, "holds the wrong kind of value", value, _KINDS[name], f"write {_KINDS[name]}")
        elif name in _CHOICES and value not in _CHOICES[name]:
            allowed = ", ".join(_CHOICES[name])
            hint = closest(str(value), list(_CHOICES[name])) or "write one of the allowed values"
            yield Problem(name, "not one of the allowed values", value, allowed, hint)


def _has_kind(name: str, value: object) -> bool:
    if name in _BOOLEAN or isinstance(value, bool):
        return name in _BOOLEAN and isinstance(value, bool)
    if name in _INTEGER:
        return isinstance(value, int) and value >= 0
    if name in _NUMBER:
        return isinstance(value, int | float) and math.isfinite(value) and value >= 0
    if name in _REPEATED:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str)


def arguments(options: Mapping[str, object]) -> list[str]:
    """Command-line arguments for checked options, in a fixed order."""
    result: list[str] = []
    for name in sorted(options):
        value = options[name]
        if name in _FLAGS:
            result += [f"--{name}"] if value else []
        elif isinstance(value, list):
            result += [f"--{name}={item}" for item in value]
        else:
            result.append(f"--{name}={str(value).lower() if isinstance(value, bool) else value}")
    return result


def _json_schema() -> dict[str, object]:
    kinds: dict[str, dict[str, object]] = (
        {name: {"type": "boolean"} for name in _BOOLEAN}
        | {name: {"type": "integer", "minimum": 0} for name in _INTEGER}
        | {name: {"type": "number", "minimum": 0} for name in _NUMBER}
        | {name: {"enum": list(_CHOICES[name])} if name in _CHOICES else {"type": "string"} for name in _TEXT}
        | {name: {"type": "array", "items": {"type": "string"}} for name in _REPEATED}
    )
    return {"type": "object", "additionalProperties": False, "properties": kinds}


ServerOptions = Annotated[dict[str, object], AfterValidator(_check), WithJsonSchema(_json_schema())]
