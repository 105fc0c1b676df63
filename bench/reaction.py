"""From more requests to more replicas, with the real Prometheus, KEDA and autoscaler of the data plane's tests."""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from bench.figure import Figure
from local import toolchain
from tests.dataplane.scaled import Scaled, stand_up
from tests.dataplane.world import AUTOSCALER_SECONDS, made

_SCRAPE_SECONDS: Final = 5
# The shortest that the stack takes.
_WINDOW_SECONDS: Final = 4 * _SCRAPE_SECONDS
_SCALING: Final = {"scaling": {"min": 1, "max": 4, "qps": 10}}
_BEFORE, _AFTER, _NEARLY = 5, 100, 0.5
_TARGET: Final = 1.5
# Of the only metric that counts here, as a Triton writes it.
_SAYS: Final = 'nv_inference_request_success{model="any",version="1"} 0\n'


def reaction(runs: int, report: Callable[[str], None]) -> Figure:
    """Measure on a plane in a network of its own, which is gone afterwards.

    The time is compared with what has to be waited for: the next scrape and the next look of the HPA. KEDA's polling
    interval is no part of it: KEDA asks Prometheus whenever it is asked itself.
    """
    tools = toolchain.ensure_for_tests(report)
    with tempfile.TemporaryDirectory() as root:
        folder, files = Path(root, "world"), Path(root, "files")
        folder.mkdir()
        files.mkdir()
        with made(folder, tools) as world:
            models = {f"model-{run}": _SCALING for run in range(runs)}
            scene = stand_up(world, files, _SAYS, models, f"{_SCRAPE_SECONDS}s", f"{_WINDOW_SECONDS}s")
            seconds = statistics.median([_seconds(scene.model(name)) for name in models])
    waits = _SCRAPE_SECONDS + AUTOSCALER_SECONDS
    note = f"{seconds:.1f} s, against {_SCRAPE_SECONDS} s scrape + {AUTOSCALER_SECONDS} s HPA sync; KEDA"
    return Figure("load to changed replicas", seconds / waits, _TARGET, "x", note)


def _seconds(model: Scaled) -> float:
    """From the load on, twenty times that of before and ten times what one replica takes, to the changed number."""
    model.traffic.set(_BEFORE)
    model.until(lambda: abs((model.measured or 0) - _BEFORE) < _NEARLY)
    began = model.traffic.set(_AFTER)
    model.keda.operator.until(lambda: model.replicas > 1)
    return time.time() - began
