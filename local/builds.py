"""Builds families of tools from their pinned Go modules into the cache."""

import json
import re
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from local import cache
from local.children import Children
from local.failures import ToolchainError, failed
from local.golang import Go
from local.progress import Progress
from local.tools import Family, Patch
from local.versions import version_of

_PACKAGE: Final = "{{.ImportPath}}@{{with .Module}}{{.Version}}{{end}}"
_EMBEDDED_SCHEMA: Final = "cmd/pulumi-resource-kubernetes"


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


def build(family: Family, shop: Workshop) -> Path:
    """Builds one family and puts it into the cache.

    Raises:
        ToolchainError: it cannot be built.
        Stopped: the build was told to stop.
    """
    shop.log(family).unlink(missing_ok=True)
    shop.progress.start(family, "downloading")
    into = cache.temporary(cache.tools_folder(), cache.folder_of(family).name)
    try:
        _prepare(family, shop)
        _copy_files(family, shop, into)
        if family.tools:
            _compile(family, shop, into)
            _check(family, into)
        folder = cache.publish(family, into, {"go": shop.go.version})
    except OSError as error:
        raise failed(f"building {family.name} {family.version}", str(error), log=shop.log(family)) from error
    finally:
        cache.remove(into)
    shop.progress.done(family)
    return folder


def _prepare(family: Family, shop: Workshop) -> None:
    """The family's go.mod and go.sum in a working folder, where they may be changed."""
    work = shop.folder / family.name
    work.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(cache.GO_MODULES / family.go / name, work / name)
    if not family.patched_module:
        return
    shutil.copytree(_module(family.patched_module, family, shop), work / "src", copy_function=shutil.copyfile)
    for folder in (work / "src", *(path for path in (work / "src").rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    for patch in family.patches:
        apply(patch, work / "src")
    embed_schema(work / "src" / _EMBEDDED_SCHEMA, family.version)
    with (work / "go.mod").open("a") as file:
        file.write(f"\nreplace {family.patched_module} => ./src\n")


def apply(patch: Patch, source: Path) -> None:
    """Changes one source file.

    Raises:
        ToolchainError: the file is not as the patch expects it.
    """
    file = source / patch.file
    text = file.read_text()
    if text.count(patch.before) != 1:
        msg = (
            f"{patch.file} is not as the pinned version has it\n"
            "  fix: this is a mistake of local/tools.py; install the official tool on PATH meanwhile"
        )
        raise ToolchainError(msg)
    file.write_text(text.replace(patch.before, patch.after))


def embed_schema(folder: Path, version: str) -> None:
    """Makes the two files that the provider embeds, as ``go generate`` does in its repository.

    Its generator reads the schema into Go types, sets the version and writes it again without white space.
    For this schema that keeps every field and value (compared value by value with the generator's output), so
    the minute of compiling the generator, and half of Pulumi with it, is saved.
    """
    for name, update in (("schema", {"version": version}), ("terraform-mapping", {})):
        content = json.loads((folder / f"{name}.json").read_bytes()) | update
        (folder / f"{name}-embed.json").write_text(json.dumps(content, separators=(",", ":")))


def _module(module: str, family: Family, shop: Workshop) -> Path:
    """The folder of a downloaded module, its content checked against go.sum."""
    output = shop.run(family, "downloading", "mod", "download", "-json", module)
    match = re.search(r'^\t"Dir": (".*"),?$', output, re.MULTILINE)
    if not match:
        raise failed(f"downloading {module}", output, log=shop.log(family))
    return Path(json.loads(match[1]))


def _copy_files(family: Family, shop: Workshop, into: Path) -> None:
    for module in dict.fromkeys(file.module for file in family.files):
        source = _module(module, family, shop)
        for file in family.files:
            if file.module == module:
                target = into / file.target
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / file.source, target)
                target.chmod(0o755 if file.executable else 0o644)


def _compile(family: Family, shop: Workshop, into: Path) -> None:
    packages = [tool.package for tool in family.tools]
    listed = shop.run(family, "downloading the modules of", "list", "-deps", "-f", _PACKAGE, *packages)
    # Lines such as "go: downloading …@v1" are not packages; unsafe has no code.
    names = {
        line.partition("@")[0]: line
        for line in listed.splitlines()
        if "@" in line and " " not in line and not line.startswith("unsafe@")
    }
    shop.progress.expect(family, names.values())
    shop.progress.doing(family, "compiling")

    def on_line(line: str) -> None:
        if line in names:
            shop.progress.compiled(names[line])

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
    return [*compiler, f"-ldflags={' '.join([cache.LINKER_FLAGS, *stamps])}"]


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

    The provider comes first and keeps little more than one core busy; the second lane fills the other. More
    lanes than two would compile shared packages twice and need memory: each Go build uses all cores anyway.
    """

    def __init__(self, families: Sequence[Family], shop: Workshop, cores: int) -> None:
        self._waiting = list(families)
        self._shop = shop
        self._guard = threading.Lock()
        self.errors: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self._work, name=f"build-{number}", daemon=True)
            for number in range(min(lanes(cores), len(families)))
        ]

    def _work(self) -> None:
        while True:
            with self._guard:
                if self.errors or not self._waiting:
                    return
                family = self._waiting.pop(0)
            try:
                build(family, self._shop)
            except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
                self.errors.append(error)


def lanes(cores: int) -> int:
    """How many families are built at once."""
    return min(cores, 2)
