"""What `make plan` shows, and what it says about mistakes."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from local import plan
from local.recorder import record_stack
from local.table import table
from spec.problems import SpecError
from spec.stack_file import stack_settings
from tests.conftest import PROJECT

Edit = Callable[[Path], None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the program and its files."""
    for name in ("__main__.py", "Pulumi.dev.yaml", "Pulumi.prod.yaml", "models"):
        source = PROJECT / name
        (shutil.copytree if source.is_dir() else shutil.copy2)(source, tmp_path / name)
    return tmp_path


def registered(project: Path, stack: str) -> int:
    """Kubernetes objects that the program registers."""
    return len(record_stack(project, stack, stack_settings(project, stack)).objects())


class TestPlan:
    def test_shows_models_objects_gpus_and_addresses(self, project: Path) -> None:
        text = plan.plan(project, "dev")
        assert text.startswith(f"Stack dev (dev): 4 models, {registered(project, 'dev')} Kubernetes objects")
        rows = [line.split() for line in text.splitlines()]
        assert ["a100", "whole", "NVIDIA-A100-SXM4-80GB", "4", "2", "to", "4"] in rows
        assert ["t4", "hami", "Tesla-T4", "2", "0.5", "to", "1"] in rows
        flat = [" ".join(row) for row in rows]
        host = "fraud-score.serving.svc.cluster.local"
        assert ["fraud-score", f"http://{host}:8000", f"{host}:8001"] in rows
        assert "fraud-score v1 100 % payments 1 to 2 6 -" in flat
        assert "inception-graphdef v1 100 % vision 1 to 2 7 nvidia.com/gpu=1" in flat

    def test_says_when_the_fewest_replicas_do_not_fit_the_cards(self, project: Path) -> None:
        file = project / "Pulumi.dev.yaml"
        file.write_text(file.read_text().replace("gpusPerNode: 4", "gpusPerNode: 1"))
        assert "2 to 4  NOT ENOUGH: some pods will stay Pending" in plan.plan(project, "dev")

    def test_follows_the_stack_file(self, project: Path) -> None:
        text = plan.plan(project, "prod")
        assert f"Stack prod (prod): 4 models, {registered(project, 'prod')} Kubernetes objects" in text
        assert "3 to 12" in text

    def test_a_fixed_number_of_replicas_is_shown_as_one(self, project: Path) -> None:
        file = project / "models" / "fraud_score.yaml"
        file.write_text(f"{file.read_text()}scaling: {{min: 2, max: 2}}\n")
        line = next(line for line in plan.plan(project, "dev").splitlines() if line.startswith("fraud-score"))
        assert " ".join(line.split()) == "fraud-score v1 100 % payments 2 5 -"


class TestMistakes:
    def test_a_stack_without_a_file_is_named(self, project: Path) -> None:
        with pytest.raises(SpecError, match=r"Pulumi\.nowhere\.yaml: the file does not exist"):
            plan.plan(project, "nowhere")

    def test_a_syntax_error_in_the_stack_file_has_a_line(self, project: Path) -> None:
        (project / "Pulumi.dev.yaml").write_text("config:\n  a: [1,\n  b: 2\n")
        with pytest.raises(SpecError, match=r"Pulumi\.dev\.yaml:[34]: not valid YAML"):
            plan.plan(project, "dev")

    def test_settings_that_are_no_mapping_are_refused(self, project: Path) -> None:
        (project / "Pulumi.dev.yaml").write_text("config: [1]\n")
        with pytest.raises(SpecError, match=r"Pulumi\.dev\.yaml:1: config: must hold a mapping"):
            plan.plan(project, "dev")

    def test_the_programs_refusal_is_passed_on_in_its_own_words(self, project: Path) -> None:
        (project / "models" / "mobilenet.yaml").write_text("name: mobilenet\n")
        with pytest.raises(plan.PlanError, match=r"3 mistakes in the input, nothing was applied"):
            plan.plan(project, "dev")

    def test_the_command_ends_in_words_and_with_exit_code_1(self) -> None:
        command = [sys.executable, "-m", "local", "plan", "--stack", "nowhere"]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith("error: 1 mistake in the input")
        assert "Traceback" not in done.stderr


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table(["A", "LONG"], [["wide", "x"], ["y", "z"]]) == "A     LONG\nwide  x\ny     z"
