"""The table of server options against the real server's own help, and every option in the form that we write."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from local.triton import TritonServer
from spec import server
from spec.catalog import load
from tests.dataplane.serving import Service
from tests.dataplane.sources import MORE

# Where the server looks for its own parts; the tests have to say so themselves.
PLACES = {"backend-directory", "cache-directory", "repoagent-directory"}
# Options of newer servers that the table may hold already.
NEWER = {"grpc-infer-thread-count", "grpc-max-response-pool-size", "http-max-input-size"}
# One value for each option, such as a model file would hold.
VALUES: dict[str, object] = {
    "log-info": True,
    "log-warning": True,
    "log-error": True,
    "exit-on-error": False,
    "strict-readiness": False,
    "model-namespacing": False,
    "enable-peer-access": False,
    "allow-gpu-metrics": False,
    "allow-cpu-metrics": False,
    "grpc-keepalive-permit-without-calls": True,
    "disable-auto-complete-config": True,
    "log-verbose": 1,
    "model-load-thread-count": 2,
    "model-load-retry-count": 1,
    "http-thread-count": 4,
    "grpc-infer-allocation-pool-size": 4,
    "grpc-keepalive-time": 7200000,
    "grpc-keepalive-timeout": 20000,
    "grpc-http2-max-pings-without-data": 2,
    "grpc-http2-min-recv-ping-interval-without-data": 300000,
    "grpc-http2-max-ping-strikes": 2,
    "grpc-max-connection-age": 60000,
    "grpc-max-connection-age-grace": 1000,
    "pinned-memory-pool-byte-size": 1048576,
    "buffer-manager-thread-count": 1,
    "metrics-interval-ms": 500,
    "min-supported-compute-capability": 6.0,
    "log-format": "ISO8601",
    "model-config-name": "h100",
    "http-header-forward-pattern": "x-.*",
    "grpc-header-forward-pattern": "x-.*",
    "grpc-infer-response-compression-level": "low",
    "rate-limit": "execution_count",
    "http-restricted-api": ["model-repository,trace:x-admin=secret"],
    "grpc-restricted-protocol": ["model-repository,trace:x-admin=secret"],
    "metrics-config": ["summary_latencies=true", "summary_quantiles=0.5:0.05,0.99:0.001"],
    "trace-config": ["triton,file=trace.json", "level=TIMESTAMPS", "rate=1000"],
    "backend-config": ["python,shm-default-byte-size=1048576"],
    "cache-config": ["local,size=1048576"],
    "rate-limit-resource": ["R1:10"],
    "cuda-memory-pool-byte-size": ["0:1048576"],
    "cuda-virtual-address-size": ["0:1024"],
    "host-policy": ["cpu,numa-node=0"],
    "model-load-gpu-limit": ["0:0.5"],
    "repository-poll-secs": 5,
}


# What the server then shows of them when it has started; none is its default.
SHOWN = {
    "strict_model_config": "1",
    "strict_readiness": "0",
    "rate_limit": "EXEC_COUNT",
    "pinned_memory_pool_byte_size": "1048576",
    "model_config_name": "h100",
    "cache_enabled": "1",
    "exit_timeout": "300",
}


def test_the_table_holds_every_option_of_the_help_and_no_other(tritonserver: TritonServer) -> None:
    ours = {*server._KINDS, *server._OWNED, *server._REPLACED}
    theirs = tritonserver.options() - {"help"}
    assert sorted(ours - theirs - NEWER) == [], "tritonserver has no such options"
    assert sorted(theirs & NEWER) == [], "no longer newer than the server of these tests"
    assert sorted(theirs - ours) == [], "neither settable, owned nor replaced in spec/server.py"


def test_every_settable_option_is_tried() -> None:
    assert set(VALUES) == set(server._KINDS) - PLACES - NEWER


def test_every_settable_option_is_accepted_as_we_write_it(start: Callable[..., Service], tmp_path: Path) -> None:
    # A model file may hold it with control: poll only, which test_loading.py starts.
    options = {name: value for name, value in VALUES.items() if name != "repository-poll-secs"}
    (tmp_path / "every.yaml").write_text(f"name: every\n{MORE['rejected']}server: {json.dumps(options)}\n")
    (model,) = load(tmp_path, {"environment": "dev"}, "Pulumi.test.yaml").models
    service = start(model.primary).until_ready()
    assert service.end() == 0
    shown = dict(re.findall(r"^\| (\w+) +\| (.*?) +\|$", service.log.read_text(), re.MULTILINE))
    assert shown.items() >= SHOWN.items()


@pytest.mark.parametrize("argument", ["--no-such-option=1", "--repository-poll-secs=soon"])
def test_an_option_that_the_server_does_not_know_ends_it(
    argument: str, tritonserver: TritonServer, tmp_path: Path
) -> None:
    process = tritonserver.start(["tritonserver", f"--model-repository={tmp_path}", argument], tmp_path / "log")
    assert process.wait(30) == 1
    assert argument.strip("-").partition("=")[2 if "soon" in argument else 0] in (tmp_path / "log").read_text()
