"""The README's commands, typed by somebody who has just cloned the project."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.plane import plane
from local.plane.state import Folder
from tests.conftest import PROJECT

NOTHING_CHANGED = re.compile(r"Resources:\n +\d+ unchanged\n")
MODELS = ("fraud-score", "inception-graphdef", "mobilenet", "photo-tagger")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What git would clone, with this machine's virtual environment."""
    folder = tmp_path_factory.mktemp("clone") / "triton estate"  # a space, as on many a laptop
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in listed.stdout.splitlines():
        if (PROJECT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, folder / name)
    (folder / ".venv").symlink_to(PROJECT / ".venv")
    yield folder
    plane.down(Folder(folder / ".plane"), print)


def make(folder: Path, target: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["make", target], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.usefixtures("tools")
def test_up_shows_the_plan_and_ends_with_a_table_of_available_models(checkout: Path) -> None:
    text = make(checkout, "up").stdout
    assert text.index("CARDS ASKED") < text.index("Updating (dev)")
    table = text[text.index("READY") :]
    for model in MODELS:
        host = f"{model}.serving.svc.cluster.local"
        assert re.search(rf"{model} +v1 +1/1 +http://{host}:8000 +{host}:8001 +8002", table)


@pytest.mark.usefixtures("tools")
def test_a_second_up_changes_nothing_and_leaves_the_checkout_as_it_was(checkout: Path) -> None:
    make(checkout, "up")
    assert NOTHING_CHANGED.search(make(checkout, "up").stdout)
    assert (checkout / "Pulumi.dev.yaml").read_text() == (PROJECT / "Pulumi.dev.yaml").read_text()


@pytest.mark.usefixtures("tools")
def test_status_preview_and_logs_answer(checkout: Path) -> None:
    make(checkout, "up")
    status = make(checkout, "status").stdout
    assert status.count("running, pid") == 5
    assert status.count("1/1") == len(MODELS)
    assert NOTHING_CHANGED.search(make(checkout, "preview").stdout)
    assert "kube-apiserver.log" in make(checkout, "logs").stdout


@pytest.mark.usefixtures("tools")
def test_by_hand_after_eval(checkout: Path) -> None:
    make(checkout, "up")
    script = """
        eval "$(.venv/bin/python -m local env)"
        pulumi preview --suppress-outputs
        pulumi stack output --json
        kubectl get pods --namespace serving
        make preview
    """
    done = subprocess.run(["bash", "-euc", script], cwd=checkout, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in (done.stdout + done.stderr).lower()
    assert '"contract": "triton-estate/v1"' in done.stdout
    assert done.stdout.count(" Running ") == len(MODELS) + 1  # the heartbeat of one


@pytest.mark.usefixtures("tools")
def test_down_destroys_the_stack_and_ends_every_process(checkout: Path) -> None:
    make(checkout, "up")
    assert re.search(r"Resources:\n +- \d+ deleted\n", make(checkout, "down").stdout)
    assert not any(found.pid for found in plane.status(Folder(checkout / ".plane")))


def test_every_command_of_the_readme_exists() -> None:
    readme = (PROJECT / "README.md").read_text()
    targets = set(re.findall(r"(?:`|\$ )make ([a-z]+)", readme))
    known = set(re.findall(r"^([a-z]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))
    assert {"up", "test"} <= targets <= known
    commands = set(re.findall(r"python -m local ([a-z]+)", readme))
    assert commands
    for command in commands:
        done = subprocess.run(
            [".venv/bin/python", "-m", "local", command, "--help"], cwd=PROJECT, capture_output=True, check=False
        )
        assert done.returncode == 0, command
