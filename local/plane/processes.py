"""Processes that outlive the command that started them, known by pid and start time."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

_TERM_SECONDS: Final = 15.0
_KILL_SECONDS: Final = 5.0
# psutil's start times of one process differ by less than a clock tick between calls.
_SAME_START: Final = 0.05
_TAIL_LINES: Final = 15


@dataclass(frozen=True)
class Process:
    """A started process.

    Attributes:
        name: what it is, e.g. ``etcd``.
        pid: its process id.
        started: its start time in seconds since the epoch, so that a reused pid is not mistaken for it.
    """

    name: str
    pid: int
    started: float

    def find(self) -> psutil.Process | None:
        """The running process, or None if it ended (also when another one has its pid now)."""
        try:
            process = psutil.Process(self.pid)
            if abs(process.create_time() - self.started) > _SAME_START or process.status() == psutil.STATUS_ZOMBIE:
                return None
        except psutil.NoSuchProcess:
            return None
        return process


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hold Ctrl-C back until the block is done.

    Raises:
        KeyboardInterrupt: afterwards, if Ctrl-C came meanwhile.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def start(name: str, command: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> Process:
    """Start a process in a session of its own, so that Ctrl-C in this terminal does not reach it."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=os.environ | (environment or {}),
            cwd=log.parent,
        )
    # Popen complains when it is collected while its child lives; these children are meant to.
    child.returncode = 0
    return Process(name, child.pid, psutil.Process(child.pid).create_time())


def stop(processes: Iterable[Process]) -> list[str]:
    """End processes, gently first.

    Returns:
        Names of those that had to be killed.
    """
    running = {found: process.name for process in processes if (found := process.find()) is not None}
    for found in running:
        _signal(found.terminate)
    _, left = psutil.wait_procs(running, timeout=_TERM_SECONDS)
    for found in left:
        _signal(found.kill)
    psutil.wait_procs(left, timeout=_KILL_SECONDS)
    return [running[found] for found in left]


def tail(log: Path, lines: int = _TAIL_LINES) -> str:
    """The last lines of a log."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:]) or "(the log is empty)"


def _signal(send: Callable[[], None]) -> None:
    try:
        send()
    except psutil.NoSuchProcess:
        return
