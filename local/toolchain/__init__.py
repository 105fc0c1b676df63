"""Find the tools of the embedded plane on PATH or in the cache, and build what lacks."""

from local.toolchain.assemble import Toolchain, ensure
from local.toolchain.cache import cache_root
from local.toolchain.failures import ToolchainError
from local.toolchain.finding import Found, Missing, find

__all__ = ["Found", "Missing", "Toolchain", "ToolchainError", "cache_root", "ensure", "find"]
