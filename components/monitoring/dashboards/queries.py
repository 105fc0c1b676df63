"""What the panels ask Prometheus: series of Triton, of the GPU exporters and of kube-state-metrics, joined by pod.

A share of a card is counted as ``spec.gpu`` counts it: a MIG slice by its sevenths of the compute, a virtual GPU by
its percent of the cores.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from spec import names
from spec.gpu import GPU as GPU_RESOURCE
from spec.gpu import GPU_CORES, GPU_MEMORY, GPU_MEMORY_PERCENT, VCUDA_CORE
from spec.signals import GPU, QPS, Signal, Windows

MODEL: Final = names.series_label(names.MODEL_LABEL)
REVISION: Final = names.series_label(names.REVISION_LABEL)
OWNER: Final = names.series_label(names.OWNER_LABEL)
_POD: Final = ("namespace", "pod")
_ON_POD: Final = "on (namespace, pod)"
# Compute slices of the MIG profiles that exist, of the seven that a card has.
_MIG_SLICES: Final = (1, 2, 3, 4, 7)
_SEVENTHS: Final = 7
# kube-state-metrics writes the name of a resource as Prometheus writes that of a label.
_WHOLE: Final = names.series_label(GPU_RESOURCE)
_SLICED: Final = names.series_label(f"{GPU_RESOURCE}.shared")
_CORES: Final = names.series_label(GPU_CORES)
_VCUDA: Final = names.series_label(VCUDA_CORE)
_MEMORY: Final = (names.series_label(GPU_MEMORY), names.series_label(GPU_MEMORY_PERCENT))
# Whoever holds one of these has the card together with others, and its utilisation is theirs too.
_SHARED: Final = "|".join((_SLICED, _CORES, *_MEMORY, _VCUDA))


def by(labels: Sequence[str]) -> str:
    """The clause of an aggregation that keeps these labels."""
    return f" by ({', '.join(labels)})" if labels else ""


@dataclass(frozen=True)
class Triton:
    """Series of Triton.

    Attributes:
        matchers: which.
        windows: ranges of the rates.
    """

    matchers: tuple[str, ...]
    windows: Windows

    def only(self, *matchers: str) -> "Triton":
        """Fewer of them."""
        return Triton((*self.matchers, *matchers), self.windows)

    def rate(self, metric: str, labels: Sequence[str], *more: str) -> str:
        """Growth of a counter in a second."""
        return f"sum{by(labels)} (rate({metric}{{{','.join([*self.matchers, *more])}}}[{self.windows.rate}]))"

    def requests(self, labels: Sequence[str]) -> str:
        """Answered requests a second."""
        return QPS.query(self.matchers, labels, self.windows)

    def milliseconds(self, part: str, labels: Sequence[str]) -> str:
        """Mean time of a request: ``request``, ``queue``, ``compute_input``, ``compute_infer``, ``compute_output``."""
        return f"{self.rate(f'nv_inference_{part}_duration_us', labels)} / ({self.requests(labels)} > 0) / 1000"

    def failures(self, labels: Sequence[str]) -> str:
        """Failed requests of all, 0 to 1; a caller that hung up is no failure, as in the alerts."""
        failed = self.rate("nv_inference_request_failure", labels, 'reason!="CANCELED"')
        return f"{failed} / ({self.requests(labels)} + {failed} > 0)"

    def batch(self, labels: Sequence[str]) -> str:
        """Mean number of inferences in an execution."""
        executions = self.rate("nv_inference_exec_count", labels)
        return f"{self.rate('nv_inference_count', labels)} / ({executions} > 0)"

    def pods(self, *labels: str) -> str:
        """The pods that serve, each once, with these labels: to be joined with what knows only pods."""
        selector = f"nv_inference_request_success{{{','.join(self.matchers)}}}"
        return f"group by ({', '.join([*_POD, *labels])}) ({selector})"


@dataclass(frozen=True)
class Cards:
    """GPUs as pods use them.

    Attributes:
        namespace: matcher of the pods' namespace.
        windows: over which use is averaged.
        pod: matcher of the pods' names, empty for all.
        slices: parts that a time-sliced card is cut into; where pools differ in it, the fewest.
    """

    namespace: str
    windows: Windows
    pod: str = ""
    slices: int = 1

    def whole(self) -> str:
        """Use of whole cards for each pod, 0 to 1."""
        limits = f'kube_pod_container_resource_limits{{{self._pods()},resource=~"{_SHARED}"}}'
        return f"({GPU['whole'].query([self._pods()], _POD, self.windows)} unless {_ON_POD} {limits})"

    def mig(self) -> str:
        """Use of MIG slices for each pod, 0 to 1."""
        return GPU["mig"].query([self._pods()], _POD, self.windows)

    def hami(self) -> str:
        """Use of the cards that a pod has a part of, in shares of a whole card."""
        forms = [self._hami(signal) for signal in (GPU["hami"], GPU["hami"].older) if signal]
        return f"({f' or {_ON_POD} '.join(forms)})"

    def use(self) -> str:
        """Use of what a pod has, in whichever form it has it."""
        return f"({self.whole()} or {_ON_POD} {self.mig()} or {_ON_POD} {self.hami()})"

    def asked(self) -> str:
        """Cards that each pod asks for."""
        count, cores = self._limit(_WHOLE), self._limit(_CORES)
        forms = [f"{count} * {_ON_POD} {cores} / 100", count, self._slices()]
        forms += [f"{self._limit(_SLICED)} / {self.slices}", f"{self._limit(_VCUDA)} / 100"]
        alive = f'(max{by(_POD)} (kube_pod_status_phase{{{self._pods()},phase=~"Pending|Running"}}) > 0)'
        return f"(({f' or {_ON_POD} '.join(forms)}) and {_ON_POD} {alive})"

    def at_work(self) -> str:
        """The part of it that works, in cards; without the modes in which it cannot be told apart by pod."""
        count = self._limit(_WHOLE)
        forms = [
            f"{self.whole()} * {_ON_POD} {count}",
            f"{self.mig()} * {_ON_POD} {self._slices()}",
            f"{self.hami()} * {_ON_POD} {count}",
        ]
        return f"({f' or {_ON_POD} '.join(forms)})"

    def memory(self) -> str:
        """Memory that each pod uses on its own cards and slices, in MiB."""
        limits = f'kube_pod_container_resource_limits{{{self._pods()},resource=~"{_SHARED}"}}'
        return f"sum{by(_POD)} (DCGM_FI_DEV_FB_USED{{{self._pods()}}}) unless {_ON_POD} {limits}"

    def _hami(self, signal: Signal) -> str:
        labels = (signal.namespace_label, signal.pod_label)
        query = signal.query([self._pods(*labels)], labels, self.windows)
        if labels == _POD:
            return query
        for target, source in zip(_POD, labels, strict=True):
            query = f'label_replace({query}, "{target}", "$1", "{source}", "(.*)")'
        return f"max{by(_POD)} ({query})"

    def _slices(self) -> str:
        """MIG slices in cards: a pod has those of one profile."""
        profiles = [
            f"{self._limit(f'nvidia_com_mig_{count}g_.+', '=~')} * {count} / {_SEVENTHS}" for count in _MIG_SLICES
        ]
        return f"({f' or {_ON_POD} '.join(profiles)})"

    def _limit(self, resource: str, match: str = "=") -> str:
        # Several kube-state-metrics would report the same container.
        once = f"max{by([*_POD, 'container', 'resource'])}"
        limits = f'kube_pod_container_resource_limits{{{self._pods()},resource{match}"{resource}"}}'
        return f"sum{by(_POD)} ({once} ({limits}))"

    def _pods(self, namespace: str = "namespace", pod: str = "pod") -> str:
        return f"{namespace}{self.namespace}" + (f",{pod}{self.pod}" if self.pod else "")


# Every card says how warm it is, whatever it is cut into and whether anybody uses it.
CARDS: Final = "count(count by (UUID) (DCGM_FI_DEV_GPU_TEMP))"


def cards_at_work(windows: Windows) -> str:
    """Use of all cards, in cards; one that is cut by MIG counts what its slices do."""
    whole, mig = GPU["whole"].series, GPU["mig"].series
    slices = [
        f'avg by (UUID, GPU_I_ID) (avg_over_time({mig}{{GPU_I_PROFILE=~"{count}g[.].+"}}[{windows.gpu}]))'
        f" * {count} / {_SEVENTHS}"
        for count in _MIG_SLICES
    ]
    cards = f"avg by (UUID) (avg_over_time({whole}[{windows.gpu}])) / 100"
    return f"sum({cards} or sum by (UUID) ({' or '.join(slices)}))"
