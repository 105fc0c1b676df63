"""What a family of tools takes out of a Go module, and what it changes in one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ModuleFile:
    """A file, or a folder of files, that is used as it lies in a Go module.

    Attributes:
        module: the Go module, required by the family's go.mod.
        source: path in the module.
        target: path in the family's folder of the cache.
        executable: whether it is a program.
    """

    module: str
    source: str
    target: str
    executable: bool = False


@dataclass(frozen=True)
class Patch:
    """A change of a source file before it is built.

    Attributes:
        file: path in the patched module.
        before: text that is there exactly once.
        after: text it is replaced with.
    """

    file: str
    before: str
    after: str
