"""A Pulumi workspace of the plane's own: tools on PATH, plugins, state backend, stacks."""

import os
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

from local.plane.errors import PlaneError
from local.plane.state import Folder
from local.toolchain import Toolchain
from local.toolchain.versions import PLANE_MARKER

_LANGUAGE_HOST: Final = "pulumi-language-python"


def prepare(folder: Folder, tools: Toolchain) -> None:
    """Lay out tools, plugins and backend; quick when it is done already."""
    for path in (folder.bin, folder.pulumi_home, folder.pulumi_state):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder.bin / PLANE_MARKER).touch()
    for tool in (tools.kubectl, tools.etcd, tools.kube_apiserver, tools.kwok):
        _symlink(tool, folder.bin / tool.name)
    if tools.language_exec is None:
        _symlink(tools.pulumi, folder.bin / "pulumi")
    else:
        # The engine takes a language host without a warning only from its own folder.
        _same_file(tools.pulumi, folder.bin / "pulumi")
        _same_file(tools.language_exec, folder.bin / f"{_LANGUAGE_HOST}-exec")
        _copy(Path(__file__).with_name("language_host.py"), folder.bin / _LANGUAGE_HOST)
    plugin = folder.pulumi_home / "plugins" / f"resource-kubernetes-v{_sdk_version()}"
    plugin.mkdir(parents=True, exist_ok=True)
    _symlink(tools.kubernetes_provider, plugin / "pulumi-resource-kubernetes")


def environment(folder: Folder) -> dict[str, str]:
    """Variables that make `pulumi` and `kubectl` work with this plane."""
    return {
        "PATH": os.pathsep.join([str(folder.bin), str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "KUBECONFIG": str(folder.kubeconfig),
        "PULUMI_HOME": str(folder.pulumi_home),
        "PULUMI_BACKEND_URL": f"file://{folder.pulumi_state}",
        # The stack file holds the matching salt. Nothing of an embedded stack is worth a secret, and its state lies in
        # a folder that only its user can read; a real environment sets a secrets provider of its own.
        "PULUMI_CONFIG_PASSPHRASE": "",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
    }


def shell(folder: Folder) -> str:
    """The same variables as commands for a shell's ``eval``."""
    bin_folders = os.pathsep.join(environment(folder)["PATH"].split(os.pathsep)[:2])
    values = {name: shlex.quote(value) for name, value in environment(folder).items() if name != "PATH"}
    lines = [f"export {name}={value}" for name, value in values.items()]
    return "\n".join([f'export PATH={shlex.quote(bin_folders)}:"$PATH"', *lines])


def select_stack(folder: Folder, project: Path, stack: str) -> None:
    """Create the stack in the plane's backend if need be, and select it.

    Raises:
        PlaneError: the engine refused, in its own words.
    """
    pulumi(folder, project, "stack", "select", "--create", stack, failure=f"pulumi cannot select stack {stack}")


def pulumi(folder: Folder, project: Path, *arguments: str, failure: str) -> str:
    """Run the plane's ``pulumi`` on a project and give back what it printed.

    Args:
        folder: the plane.
        project: folder of the project.
        arguments: of pulumi.
        failure: what is wrong where it refuses, for the user.

    Raises:
        PlaneError: the engine refused, in its own words.
    """
    done = subprocess.run(
        [str(folder.bin / "pulumi"), *arguments, "--non-interactive"],
        cwd=project,
        env=os.environ | environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PlaneError(f"{failure}\n\n{done.stderr or done.stdout}")
    return done.stdout


def _sdk_version() -> str:
    return metadata.version("pulumi-kubernetes")  # the SDK asks the engine for the plugin of its own version


def _symlink(target: Path, link: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def _same_file(source: Path, target: Path) -> None:
    """A hard link, or a copy where the two lie on different file systems."""
    if target.exists() and target.samefile(source):
        return
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        _copy(source, target)


def _copy(source: Path, target: Path) -> None:
    partial = target.with_name(f"{target.name}.partial")
    shutil.copyfile(source, partial)
    partial.chmod(0o755)
    partial.replace(target)
