"""Programs a build runs: each in a process group of its own, so that all of them can be ended together."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

_GRACE_SECONDS: Final = 5.0


class Stopped(Exception):  # noqa: N818 - not an error: somebody asked for it
    """The build was told to stop."""


class Children:
    """The programs running now; ``stop`` ends them and refuses new ones."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> tuple[int, str]:
        """Runs a program to its end.

        Args:
            command: program and arguments.
            cwd: its working folder.
            env: its whole environment.
            log: file that its output is appended to.
            on_line: called with each line of output as it comes.

        Returns:
            The exit status and the output.

        Raises:
            Stopped: ``stop`` was called before or meanwhile.
        """
        program = self._start(command, cwd, env)
        lines: list[str] = []
        try:
            assert program.stdout is not None  # noqa: S101 - PIPE in _start
            with log.open("a") as file, program.stdout:
                file.write(f"$ {' '.join(map(str, command))}\n")
                for line in program.stdout:
                    file.write(line)
                    lines.append(line)
                    on_line(line.rstrip("\n"))
            program.wait()
        except BaseException:
            # Ctrl-C, or the log cannot be written: nobody else is going to end the program.
            _end([program])
            raise
        finally:
            with self._guard:
                self._running.discard(program)
        if self._stopped:
            raise Stopped
        return program.returncode, "".join(lines)

    def _start(self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str]) -> subprocess.Popen[str]:
        with self._guard:
            if self._stopped:
                raise Stopped
            program = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
            self._running.add(program)
            return program

    def stop(self) -> None:
        """Ends every program with all it has started, and waits until they are gone."""
        with self._guard:
            self._stopped = True
            programs = list(self._running)
        _end(programs)


def _end(programs: Sequence[subprocess.Popen[str]]) -> None:
    for program in programs:
        _signal(program, signal.SIGTERM)
    for program in programs:
        with suppress(subprocess.TimeoutExpired):
            program.wait(_GRACE_SECONDS)
        # Also after a quiet end: a compiler may outlive the `go` that started it.
        _signal(program, signal.SIGKILL)
        program.wait()


def _signal(program: subprocess.Popen[str], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(program.pid, number)
