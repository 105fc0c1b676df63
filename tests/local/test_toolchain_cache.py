"""The cache: where it is, what makes it new, and who may use and clean it."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from local.toolchain import assemble as toolchain
from local.toolchain import cache, finding, tools
from tests.local.machine import Machine, wait_for


class TestCache:
    @pytest.mark.parametrize(
        ("environment", "expected"),
        [
            ({"TRITON_ESTATE_CACHE": "/x/y"}, "/x/y"),
            ({"XDG_CACHE_HOME": "/x"}, "/x/triton-estate"),
            ({"HOME": "/home/me"}, "/home/me/.cache/triton-estate"),
        ],
    )
    def test_root(self, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.delenv("TRITON_ESTATE_CACHE", raising=False)
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        assert str(cache.cache_root()) == expected

    def test_root_on_macos(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        monkeypatch.setenv("HOME", "/Users/me")
        for name in ("TRITON_ESTATE_CACHE", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        assert str(cache.cache_root()) == "/Users/me/Library/Caches/triton-estate"

    def test_another_input_is_another_folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folders = [cache.folder_of(tools.KWOK)]
        folders.append(cache.folder_of(replace(tools.KWOK, stamps={"a.B": "1"})))
        folders.append(cache.folder_of(replace(tools.KWOK, gcflags=("all=-l",))))
        folders.append(cache.folder_of(replace(tools.KWOK, tags=("remove_all_sd",))))
        with monkeypatch.context() as patch:
            patch.setattr(cache, "GO_VERSION", "1.99.0")
            folders.append(cache.folder_of(tools.KWOK))
        with monkeypatch.context() as patch:
            patch.setattr(cache, "host", lambda: ("plan9", "mips"))
            folders.append(cache.folder_of(tools.KWOK))
        (tmp_path / "kwok").mkdir()
        for name in ("go.mod", "go.sum"):
            (tmp_path / "kwok" / name).write_text((cache.GO_MODULES / "kwok" / name).read_text() + "\n")
        monkeypatch.setattr(cache, "GO_MODULES", tmp_path)
        folders.append(cache.folder_of(tools.KWOK))
        assert len(set(folders)) == len(folders)
        assert all(folder.name.startswith(f"kwok-{tools.KWOK.version}-") for folder in folders)

    def test_measurements_are_no_input(self, machine: Machine) -> None:
        assert cache.folder_of(replace(tools.KWOK, seconds=1, disk_after=1)) == cache.folder_of(tools.KWOK)
        assert machine.cache in cache.folder_of(tools.KWOK).parents

    @pytest.mark.parametrize("damage", ["truncated", "absent", "no manifest", "half a manifest"])
    def test_an_incomplete_folder_is_built_again(self, machine: Machine, damage: str) -> None:
        machine.ensure()
        folder = cache.folder_of(tools.KWOK)
        if damage == "truncated":
            (folder / "kwok").write_text("#!")
        if damage == "absent":
            (folder / "kwok").unlink()
        if damage == "no manifest":
            (folder / "manifest.json").unlink()
        if damage == "half a manifest":
            (folder / "manifest.json").write_text('{"files": ')
        assert list(toolchain.find()[1]) == ["kwok"]
        assert machine.ensure().kwok == folder / "kwok"
        assert not toolchain.find()[1]

    def test_what_killed_builds_left_is_removed(self, machine: Machine) -> None:
        gone = subprocess.Popen((sys.executable, "-c", ""))
        gone.wait()
        tools_folder = machine.cache / "tools"
        dead = tools_folder / f".kwok-1-x.{gone.pid}.tmp"
        running = tools_folder / f".kwok-1-x.{os.getpid()}.tmp"
        other = tools_folder / "kwok-1-x"
        build = machine.cache / f".build.{gone.pid}.tmp"
        for folder in (dead, running, other, build):
            folder.mkdir(parents=True)
        (build / "cache").mkdir(mode=0o500)
        orphan = subprocess.Popen(("/bin/sleep", "600"), cwd=build)
        assert cache.remove_leftovers() == 2
        assert orphan.poll() is not None
        assert not dead.exists()
        assert not build.exists()
        assert running.exists()
        assert other.exists()

    def test_a_process_that_only_has_the_number_is_no_builder(self, machine: Machine) -> None:
        folder = machine.cache / ".build.9.tmp"
        folder.mkdir(parents=True)
        with subprocess.Popen(("/bin/sleep", "600")) as younger:
            time.sleep(0.05)
            reused = machine.cache / f".build.{younger.pid}.tmp"
            folder.rename(reused)
            born = psutil.Process(younger.pid).create_time()
            os.utime(reused)
            assert reused.stat().st_ctime > born
            assert cache.remove_leftovers() == 0
            assert cache._running(younger.pid, Path(sys.executable)) is False
            younger.kill()

    def test_the_second_waits_and_uses_the_first_ones_result(self, machine: Machine) -> None:
        locked = threading.Event()
        release = threading.Event()

        def first() -> None:
            with cache.locked(lambda _: None, threading.Event()):
                locked.set()
                assert release.wait(10)
                for family in tools.FAMILIES:
                    into = cache.temporary(cache.tools_folder(), family.name)
                    for name in finding._names(family):
                        (into / name).touch()
                    cache.publish(family, into, {})

        holder = threading.Thread(target=first)
        holder.start()
        assert locked.wait(10)
        second = threading.Thread(target=machine.ensure)
        second.start()
        wait_for(lambda: machine.said)
        release.set()
        second.join(10)
        holder.join(10)
        assert machine.said == [f"waiting for another build of the tools (process {os.getpid()})"]
        assert machine.calls == []

    def test_waiting_can_be_ended(self, machine: Machine) -> None:
        stop = threading.Event()
        stop.set()
        with cache.locked(lambda _: None, threading.Event()), pytest.raises(KeyboardInterrupt):
            machine.ensure(stop=stop)

    def test_a_cache_that_cannot_be_written(self, machine: Machine) -> None:
        machine.cache.write_text("a file")
        with pytest.raises(toolchain.ToolchainError, match=r"cannot be written: .*cache.*\n  fix: .*CACHE"):
            machine.ensure()
