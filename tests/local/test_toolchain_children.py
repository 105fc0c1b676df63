"""The programs that a build runs end with it."""

import sys
from pathlib import Path

import psutil
import pytest

from local.toolchain.children import Children, Stopped


def test_children_refuse_to_start_once_stopped(tmp_path: Path) -> None:
    children = Children()
    children.stop()
    with pytest.raises(Stopped):
        children.run((sys.executable,), cwd=tmp_path, env={}, log=tmp_path / "log")
    assert not (tmp_path / "log").exists()


def test_an_interrupted_program_is_ended(tmp_path: Path) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    code = (
        f"import os, time; print(os.getpid(), file=open('{tmp_path}/pid', 'w')); print(1, flush=True); time.sleep(60)"
    )
    with pytest.raises(KeyboardInterrupt):
        Children().run((sys.executable, "-c", code), cwd=tmp_path, env={}, log=tmp_path / "log", on_line=interrupt)
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))
