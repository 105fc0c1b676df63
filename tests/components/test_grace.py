"""Whatever a request may take: drain, exit timeout and grace period add up."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.serving import runtime, workload
from spec.catalog import load
from spec.resolve import Revision
from tests.components.conftest import FIVE_LINES


@pytest.fixture(scope="module")
def revision(tmp_path_factory: pytest.TempPathFactory) -> Revision:
    folder: Path = tmp_path_factory.mktemp("models")
    (folder / "m.yaml").write_text(FIVE_LINES.format(name="m"))
    return load(folder, {"environment": "dev"}, "Pulumi.test.yaml").models[0].primary


@given(st.floats(min_value=1, max_value=86400))
def test_nothing_is_cut(revision: Revision, timeout: float) -> None:
    found = replace(revision, timeout=timeout)
    pod: Any = workload.pod(found)
    (triton,) = pod.containers
    (exit_timeout,) = [int(arg.split("=")[1]) for arg in triton.args if arg.startswith("--exit-timeout-secs=")]
    drain = triton.lifecycle.pre_stop.sleep.seconds
    assert exit_timeout == runtime.exit_timeout_seconds(found) >= timeout
    assert pod.termination_grace_period_seconds > drain + exit_timeout
