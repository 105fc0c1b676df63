"""The Prometheus operator's kinds on the plane: which are put there, and when they count as served."""

import json
from pathlib import Path

import pytest

from local import crds
from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.toolchain import Toolchain

KINDS = ("servicemonitors", "podmonitors", "prometheusrules", "prometheuses", "alertmanagers")


def kubectl(folder: Path, says: str, status: int = 0) -> Kubectl:
    """A kubectl that keeps how it was called."""
    program = folder / "kubectl"
    program.write_text(f"#!/bin/sh\necho \"$@\" > {folder}/called\ncat <<'EOF'\n{says}\nEOF\nexit {status}\n")
    program.chmod(0o755)
    return Kubectl(program, folder / "kubeconfig")


def test_the_kinds_are_those_that_models_use(tools: Toolchain) -> None:
    assert {path.stem for path in tools.prometheus_crds.iterdir()} == set(KINDS)


def test_they_are_applied_on_the_server(tmp_path: Path, tools: Toolchain) -> None:
    crds.install(kubectl(tmp_path, ""), tools.prometheus_crds)
    called = (tmp_path / "called").read_text().split()
    assert {"apply", "--server-side", f"--filename={tools.prometheus_crds}"} <= set(called)


def test_a_refusal_is_told(tmp_path: Path, tools: Toolchain) -> None:
    with pytest.raises(PlaneError, match="the cluster refused"):
        crds.install(kubectl(tmp_path, "", status=1), tools.prometheus_crds)


@pytest.mark.parametrize(
    ("kinds", "status", "served"),
    [(KINDS, 0, True), ((*KINDS, "servicemonitors/status"), 0, True), (KINDS[1:], 0, False), ((), 1, False)],
)
def test_they_are_served_once_all_are(
    tmp_path: Path, tools: Toolchain, kinds: tuple[str, ...], status: int, *, served: bool
) -> None:
    says = json.dumps({"resources": [{"name": kind} for kind in kinds]})
    assert crds.are_served(kubectl(tmp_path, says, status), tools.prometheus_crds) == served
