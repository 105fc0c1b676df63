"""``python -m local layout``: the command of a model owner before an upload."""

import subprocess
import sys
from pathlib import Path

from tests.conftest import PROJECT


def layout(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "local", "layout", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)


def test_an_ensemble_and_its_steps_are_checked(tmp_path: Path) -> None:
    for file in ("photo-tagger/1/.keep", "decode/1/model.py", "classify/1/model.onnx"):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    done = layout("photo-tagger", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "photo-tagger, decode, classify" in done.stdout
    (tmp_path / "classify/1/model.onnx").rename(tmp_path / "classify/1/resnet.onnx")
    done = layout("photo-tagger", str(tmp_path))
    assert done.returncode == 1
    assert f"{tmp_path}/classify/1/model.onnx: the file is missing" in done.stderr


def test_mistakes_end_in_a_message(tmp_path: Path) -> None:
    for arguments, words in (
        (("mobilnet", str(tmp_path)), "did you mean mobilenet?"),
        (("mobilenet", "/nowhere"), "not a folder"),
    ):
        done = layout(*arguments)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr
