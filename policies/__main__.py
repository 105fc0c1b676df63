"""The policy pack: `pulumi preview --policy-pack policies`. The reviewer's own commands are in `review/`."""

import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
# The engine starts this folder as a program of its own.
sys.path[:] = [str(PROJECT), *(path for path in sys.path if Path(path).resolve() != PROJECT / "policies")]

from policies.catalog import POLICIES  # noqa: E402
from policies.judging.analyzer import serve  # noqa: E402
from policies.judging.pack import Pack  # noqa: E402
from spec.problems import SpecError  # noqa: E402

try:
    pack = Pack.open(PROJECT, POLICIES)
except SpecError as error:
    sys.exit(str(error))
serve(pack)
