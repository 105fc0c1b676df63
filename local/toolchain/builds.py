"""Builds families of tools from their pinned Go modules into the cache."""

import json
import re
import shutil
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local.toolchain import cache
from local.toolchain.children import Children
from local.toolchain.failures import ToolchainError, failed
from local.toolchain.golang import Go
from local.toolchain.patching import patched_copy
from local.toolchain.progress import Progress
from local.toolchain.tools import Family
from local.toolchain.versions import version_of

_PACKAGE: Final = "{{.ImportPath}}@{{with .Module}}{{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}"


@dataclass(frozen=True)
class Workshop:
    """What all families of one run share.

    Attributes:
        folder: holds Go's caches and the working folders; removed at the end.
        logs: one file per family; kept.
        go: the compiler.
        env: environment of every Go command.
        children: the programs running.
        progress: told how far it is.
    """

    folder: Path
    logs: Path
    go: Go
    env: Mapping[str, str]
    children: Children
    progress: Progress

    def log(self, family: Family) -> Path:
        """The family's log."""
        return self.logs / f"{family.name}.log"

    def run(
        self, family: Family, what: str, *command: str | Path, on_line: Callable[[str], None] = lambda _: None
    ) -> str:
        """Runs a Go command in the family's working folder and gives back what it printed.

        Raises:
            ToolchainError: it failed.
        """
        status, output = self.children.run(
            (self.go.binary, *command),
            cwd=self.folder / family.name,
            env=self.env,
            log=self.log(family),
            on_line=on_line,
        )
        if status:
            raise failed(f"{what} {family.name} {family.version}", output, log=self.log(family))
        return output


@contextmanager
def _plainly(family: Family, shop: Workshop) -> Generator[None]:
    """What the system refuses, such as a full disk, as the family's failure."""
    try:
        yield
    except OSError as error:
        raise failed(f"building {family.name} {family.version}", str(error), log=shop.log(family)) from error


def prepare(family: Family, shop: Workshop) -> dict[str, str]:
    """Downloads what a family is made of.

    Returns:
        Its packages by import path, each with its version.

    Raises:
        ToolchainError: it cannot be had.
        Stopped: the build was told to stop.
    """
    shop.log(family).unlink(missing_ok=True)
    shop.progress.start(family, "downloading")
    with _plainly(family, shop):
        _set_up(family, shop)
        for module in _file_modules(family):
            _module(module, family, shop)
    packages = _packages(family, shop) if family.tools else {}
    shop.progress.pause(family, packages.values())
    return packages


def build(family: Family, shop: Workshop, packages: Mapping[str, str]) -> Path:
    """Builds a prepared family and puts it into the cache.

    Raises:
        ToolchainError: it cannot be built.
        Stopped: the build was told to stop.
    """
    shop.progress.start(family, "building" if family.tools else "copying")
    into = cache.temporary(cache.tools_folder(), cache.folder_of(family).name)
    try:
        with _plainly(family, shop):
            _copy_files(family, shop, into)
            _compile(family, shop, into, packages)
            _check(family, into)
            folder = cache.publish(family, into, {"go": shop.go.version})
    finally:
        cache.remove(into)
    shop.progress.done(family)
    return folder


def _set_up(family: Family, shop: Workshop) -> None:
    """The family's go.mod and go.sum in a working folder, where they may be changed."""
    work = shop.folder / family.name
    work.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(cache.GO_MODULES / family.go / name, work / name)
    if not family.patched_module:
        return
    patched_copy(family, _module(family.patched_module, family, shop), work / "src")
    with (work / "go.mod").open("a") as file:
        file.write(f"\nreplace {family.patched_module} => ./src\n")


def _module(module: str, family: Family, shop: Workshop) -> Path:
    """The folder of a downloaded module, its content checked against go.sum."""
    output = shop.run(family, "downloading", "mod", "download", "-json", module)
    match = re.search(r'^\t"Dir": (".*"),?$', output, re.MULTILINE)
    if not match:
        raise failed(f"downloading {module}", output, log=shop.log(family))
    return Path(json.loads(match[1]))


def _file_modules(family: Family) -> list[str]:
    return list(dict.fromkeys(file.module for file in family.files))


def _copy_files(family: Family, shop: Workshop, into: Path) -> None:
    for module in _file_modules(family):
        source = _module(module, family, shop)
        for file in family.files:
            if file.module == module:
                target = into / file.target
                target.parent.mkdir(parents=True, exist_ok=True)
                if (source / file.source).is_dir():
                    shutil.copytree(source / file.source, target, copy_function=shutil.copyfile)
                    continue
                shutil.copyfile(source / file.source, target)
                target.chmod(0o755 if file.executable else 0o644)


def _packages(family: Family, shop: Workshop) -> dict[str, str]:
    tools = [tool.package for tool in family.tools]
    how = ("list", *_tags(family), "-deps", "-f", _PACKAGE)
    listed = shop.run(family, "downloading the modules of", *how, *tools)
    # Lines such as "go: downloading …@v1" are not packages; unsafe has no code.
    return {
        line.partition("@")[0]: line
        for line in listed.splitlines()
        if "@" in line and " " not in line and not line.startswith("unsafe@")
    }


def _compile(family: Family, shop: Workshop, into: Path, packages: Mapping[str, str]) -> None:
    def on_line(line: str) -> None:
        if line in packages:
            shop.progress.compiled(packages[line])

    for batch, output in _commands(family, into):
        shop.run(family, "building", "build", "-v", *_flags(family), "-o", output, *batch, on_line=on_line)


def _commands(family: Family, into: Path) -> list[tuple[Sequence[str], str]]:
    """Which packages one command builds: all but those whose program has another name than the package."""
    usual = [tool.package for tool in family.tools if tool.package.rpartition("/")[2] == tool.name]
    others = [tool for tool in family.tools if tool.package not in usual]
    together: list[tuple[Sequence[str], str]] = [(usual, f"{into}/")] if usual else []
    return together + [([tool.package], str(into / tool.name)) for tool in others]


def _flags(family: Family) -> list[str]:
    stamps = [f"-X {name}={value}" for name, value in family.stamps.items()]
    compiler = [f"-gcflags={flags}" for flags in (*cache.COMPILER_FLAGS, *family.gcflags)]
    return [*_tags(family), *compiler, f"-ldflags={' '.join([cache.LINKER_FLAGS, *stamps])}"]


def _tags(family: Family) -> list[str]:
    return [f"-tags={','.join(family.tags)}"] if family.tags else []


def _check(family: Family, into: Path) -> None:
    """Runs every tool: one that does not say the version it was stamped with is not kept."""
    for tool in family.tools:
        version = version_of(into / tool.name, tool)
        if version != family.version:
            said = f"says version {version}" if version else "does not say its version"
            msg = (
                f"building {family.name} {family.version} failed: {tool.name} was built but {said}\n"
                "  fix: run the command again, or install the official tool on PATH"
            )
            raise ToolchainError(msg)


class Lanes:
    """Builds families side by side: lanes take the next family when they are free.

    While the first lane compiles the first family, and the standard library with it, the second downloads for
    all others: nothing common is compiled twice, and a network that is not there is noticed early. More lanes
    than two would need memory for nothing: each Go build uses all cores anyway.
    """

    def __init__(self, families: Sequence[Family], shop: Workshop, cores: int) -> None:
        self._families = tuple(families)
        self._waiting = list(families)
        self._shop = shop
        self._guard = threading.Lock()
        self._downloads = threading.Lock()
        self._packages: dict[str, dict[str, str]] = {}
        self.errors: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self._work, args=(number,), daemon=True)
            for number in range(min(lanes(cores), len(families)))
        ]

    def _work(self, number: int) -> None:
        try:
            if number:
                for family in self._families[1:]:
                    self._prepared(family)
            while not self.errors and (family := self._next()):
                build(family, self._shop, self._prepared(family))
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            self.errors.append(error)

    def _next(self) -> Family | None:
        with self._guard:
            return self._waiting.pop(0) if self._waiting else None

    def _prepared(self, family: Family) -> dict[str, str]:
        with self._downloads:
            if family.name not in self._packages:
                self._packages[family.name] = prepare(family, self._shop)
            return self._packages[family.name]


def lanes(cores: int) -> int:
    """How many families are built at once."""
    return min(cores, 2)
