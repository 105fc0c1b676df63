"""Find the tools of the embedded plane, and those of its tests, on PATH or in the cache, and build what lacks."""

from local.toolchain.assemble import Toolchain, ToolchainForTests, ensure, ensure_for_tests, ensure_kinds
from local.toolchain.cache import cache_root
from local.toolchain.failures import ToolchainError
from local.toolchain.finding import Found, Missing, find

__all__ = [
    "Found",
    "Missing",
    "Toolchain",
    "ToolchainError",
    "ToolchainForTests",
    "cache_root",
    "ensure",
    "ensure_for_tests",
    "ensure_kinds",
    "find",
]
