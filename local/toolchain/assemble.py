"""Finds the tools of the embedded plane on PATH or in the cache, and builds what lacks."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

from local.toolchain import cache
from local.toolchain.builds import Lanes, Workshop, lanes
from local.toolchain.cache import cache_root, tools_folder
from local.toolchain.children import Children, Stopped
from local.toolchain.failures import NETWORK, ToolchainError, failed, offline
from local.toolchain.finding import Found, Missing, find
from local.toolchain.golang import environment, find_go, install_go
from local.toolchain.metric_chain import ISTIO_CHARTS, ISTIO_CRDS, KEDA_CRDS, OPERATOR_CRDS, WITH_TESTS
from local.toolchain.progress import Progress
from local.toolchain.tools import CRDS, FAMILIES, LANGUAGE_EXEC, STAGES, Family

_TICK_SECONDS: Final = 0.5
_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_MEASURED_CORES: Final = 2


@dataclass(frozen=True)
class Toolchain:
    """Where every tool is.

    Attributes:
        kwok_stages: folder of KWOK's stage files.
        prometheus_crds: folder of the Prometheus operator's kinds.
        language_exec: the script that runs a Python program for the engine; None where an official language
            host lies beside an official ``pulumi`` and brings its own.
    """

    pulumi: Path
    kubernetes_provider: Path
    etcd: Path
    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    kwok: Path
    kwok_stages: Path
    prometheus_crds: Path
    language_exec: Path | None


@dataclass(frozen=True)
class ToolchainForTests(Toolchain):
    """Where the plane's tools are, and those that measure, scale and route on it in tests.

    Attributes:
        operator_crds: folder of the Prometheus operator's other kinds, without which it does not start.
        keda_crds: folder of KEDA's kinds.
        istio_crds: folder of Istio's kinds.
        istio_charts: folder of Istio's own charts by name, and of the file that its agent configures Envoy with.
    """

    prometheus: Path
    promtool: Path
    prometheus_operator: Path
    operator_crds: Path
    keda_operator: Path
    keda_metrics_adapter: Path
    keda_crds: Path
    pilot_discovery: Path
    istioctl: Path
    istio_crds: Path
    pilot_agent: Path
    istio_charts: Path
    actionlint: Path


def ensure(report: Callable[[str], None] = print, *, stop: threading.Event | None = None) -> Toolchain:
    """Finds the plane's tools and builds what lacks.

    Args:
        report: receives what is done, line by line.
        stop: set by the caller to end a build that runs outside the main thread.

    Raises:
        ToolchainError: a tool cannot be had.
        KeyboardInterrupt: Ctrl-C, SIGTERM, or ``stop`` was set; nothing half-built is left.
    """
    return _toolchain(_ensure(FAMILIES, report, stop))


def ensure_for_tests(
    report: Callable[[str], None] = print, *, stop: threading.Event | None = None
) -> ToolchainForTests:
    """As :func:`ensure`, with the tools that only tests need."""
    found = _ensure(WITH_TESTS, report, stop)
    return ToolchainForTests(
        **vars(_toolchain(found)),
        prometheus=found["prometheus"].path,
        promtool=found["promtool"].path,
        prometheus_operator=found["prometheus-operator"].path,
        operator_crds=found[OPERATOR_CRDS].path,
        keda_operator=found["keda-operator"].path,
        keda_metrics_adapter=found["keda-metrics-adapter"].path,
        keda_crds=found[KEDA_CRDS].path,
        pilot_discovery=found["pilot-discovery"].path,
        istioctl=found["istioctl"].path,
        istio_crds=found[ISTIO_CRDS].path,
        pilot_agent=found["pilot-agent"].path,
        istio_charts=found[ISTIO_CHARTS].path,
        actionlint=found["actionlint"].path,
    )


def ensure_kinds(family: Family, report: Callable[[str], None] = print) -> Path:
    """The folder of one family of files; as :func:`ensure` otherwise."""
    return _ensure((family,), report, None)[family.name].path


def _ensure(
    families: Sequence[Family], report: Callable[[str], None], stop: threading.Event | None
) -> Mapping[str, Found]:
    found, missing = find(families)
    if missing:
        stop = stop or threading.Event()
        with _interruptible(), cache.locked(report, stop):
            cache.remove_leftovers()
            # Another process may have built them while this one waited for the lock.
            found, missing = find(families)
            if missing:
                _build(missing, report, stop)
                found, missing = find(families)
    if missing:
        names = ", ".join(missing)
        raise ToolchainError(f"{names} cannot be found although built\n  fix: remove {tools_folder()} and run again")
    return found


def _toolchain(found: Mapping[str, Found]) -> Toolchain:
    language = found.get(LANGUAGE_EXEC)
    return Toolchain(
        pulumi=found["pulumi"].path,
        kubernetes_provider=found["pulumi-resource-kubernetes"].path,
        etcd=found["etcd"].path,
        kube_apiserver=found["kube-apiserver"].path,
        kube_controller_manager=found["kube-controller-manager"].path,
        kube_scheduler=found["kube-scheduler"].path,
        kubectl=found["kubectl"].path,
        kwok=found["kwok"].path,
        kwok_stages=found[STAGES].path,
        prometheus_crds=found[CRDS].path,
        language_exec=language.path if language else None,
    )


def _build(missing: Mapping[str, Missing], report: Callable[[str], None], stop: threading.Event) -> None:
    cores = os.cpu_count() or 1
    families = [family for family in WITH_TESTS if any(lack.family is family for lack in missing.values())]
    for line in announcement(missing, families, cores):
        report(line)
    _check_disk(families)
    children = Children()
    folder = cache.temporary(cache_root(), "build")
    logs = cache_root() / "logs"
    logs.mkdir(exist_ok=True)
    try:
        go = find_go() or install_go(folder, children, logs / "go.log", report)
        progress = Progress(report, _terminal(report))
        progress.plan(families)
        env = environment(folder, cores * lanes(cores))
        shop = Workshop(folder, logs, go, env, children, progress)
        _wait(Lanes(families, shop, cores), shop, stop)
    except ToolchainError as error:
        if error.cause == NETWORK:
            raise offline(error, missing) from error
        raise
    except OSError as error:
        raise failed("building the tools", str(error)) from error
    finally:
        children.stop()
        report("removing the build caches")
        cache.remove(folder)


def _wait(work: Lanes, shop: Workshop, stop: threading.Event) -> None:
    """Waits for all lanes, showing how far they are; the first failure, or ``stop``, ends them all."""
    for thread in work.threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in work.threads) and not work.errors and not stop.is_set():
            shop.progress.tick()
            stop.wait(_TICK_SECONDS)
    finally:
        shop.progress.clear()
        interrupted = any(thread.is_alive() for thread in work.threads)
        if interrupted:
            work.errors.append(Stopped())
            shop.children.stop()
        for thread in work.threads:
            thread.join()
    if stop.is_set():
        raise KeyboardInterrupt
    if errors := [error for error in work.errors if not isinstance(error, Stopped)]:
        raise errors[0]


def announcement(missing: Mapping[str, Missing], families: Sequence[Family], cores: int) -> list[str]:
    """What is said before a build: what lacks and why, how long it takes, its needs, and the way around."""
    width = max(map(len, missing))
    building, after = disk_needed(families)
    took = f"{_minutes(estimate(families, cores))} on {cores} {'core' if cores == 1 else 'cores'}"
    return [
        "These tools lack on PATH and in the cache, or do not fit:",
        *(f"  {name:<{width}}  {lack.reason}" for name, lack in missing.items()),
        f"Building them from pinned Go modules takes about {took}, once per version.",
        f"Disk in {cache_root()}: {_gigabytes(building)} while building, {_gigabytes(after)} afterwards.",
        "An official tool installed on PATH is used instead: Ctrl-C, install it, run the command again.",
    ]


def estimate(families: Sequence[Family], cores: int) -> float:
    """Seconds a build takes: measured processor time spread over the cores, the longest family at least."""
    seconds = [family.seconds for family in families]
    # A lone family does not keep many cores busy, so cores beyond four per lane count for nothing.
    return max(sum(seconds) / min(cores, 4 * lanes(cores)), max(seconds) / min(cores, _MEASURED_CORES))


def disk_needed(families: Sequence[Family]) -> tuple[int, int]:
    """MB needed while building, and left behind."""
    after = sum(family.disk_after for family in families)
    return sum(family.disk_building for family in families) + after, after


def _check_disk(families: Sequence[Family]) -> None:
    needed = disk_needed(families)[0]
    free = shutil.disk_usage(cache_root()).free // 10**6
    if free < needed:
        msg = (
            f"the disk is too full to build the tools: {cache_root()} has {_gigabytes(free)} free, "
            f"needed while building: {_gigabytes(needed)}\n"
            "  fix: free some space, set TRITON_ESTATE_CACHE to a folder on a larger disk, "
            "or install the official tools on PATH"
        )
        raise ToolchainError(msg, cause="disk")


def _terminal(report: Callable[[str], None]) -> TextIO | None:
    return sys.stdout if report is print and sys.stdout.isatty() else None


@contextmanager
def _interruptible() -> Generator[None]:
    """While a build runs, being asked to end is the same as Ctrl-C, so that everything is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _minutes(seconds: float) -> str:
    minutes = round(seconds / 60)
    return "a minute" if minutes <= 1 else f"{minutes} minutes"


def _gigabytes(megabytes: int) -> str:
    return f"{megabytes / 1000:.1f} GB"
