"""Ask the plane's API server through kubectl."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from local.plane.errors import PlaneError

_SECONDS: Final = 20


@dataclass(frozen=True)
class Kubectl:
    """kubectl with a kubeconfig."""

    program: Path
    kubeconfig: Path

    def run(self, *arguments: str, stdin: str | None = None) -> str:
        """What the command prints.

        Raises:
            PlaneError: it failed, in kubectl's own words.
        """
        done = self._run(arguments, stdin)
        if done.returncode:
            raise PlaneError(f"the cluster refused: {done.stderr.strip()}\n  fix: see `python -m local status`")
        return done.stdout

    def get(self, *arguments: str) -> Any:  # noqa: ANN401  # whatever the API server holds
        """The object or list as plain data; see :meth:`run`."""
        return json.loads(self.run("get", *arguments, "--output=json"))

    def raw(self, path: str) -> Any | None:  # noqa: ANN401
        """The object at an API path, None where there is none; needs no discovery, so it is cheap to repeat."""
        done = self._run(("get", f"--raw={path}"))
        return json.loads(done.stdout) if done.returncode == 0 else None

    def succeeds(self, *arguments: str) -> bool:
        """Whether the command ends without an error."""
        return self._run(arguments).returncode == 0

    def _run(self, arguments: tuple[str, ...], stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--request-timeout={_SECONDS}s", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
