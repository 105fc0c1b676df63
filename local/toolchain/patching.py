"""The copy of a Go module that a family is built from where the module alone is not enough."""

import json
import shutil
from pathlib import Path
from typing import Final

from local.toolchain.failures import ToolchainError
from local.toolchain.tools import Family, Patch

_EMBEDDED_SCHEMA: Final = "cmd/pulumi-resource-kubernetes"


def patched_copy(family: Family, module: Path, into: Path) -> None:
    """Copies the family's patched module, changes the copy and adds the files that are generated.

    Raises:
        ToolchainError: a file is not as a patch expects it.
    """
    shutil.copytree(module, into, copy_function=shutil.copyfile)
    for folder in (into, *(path for path in into.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    for patch in family.patches:
        apply(patch, into)
    embed_schema(into / _EMBEDDED_SCHEMA, family.version)


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
            "  fix: this is a mistake of local/toolchain/tools.py; install the official tool on PATH meanwhile"
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
