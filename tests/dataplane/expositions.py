"""What exporters say: a real Triton's text with other numbers, and the text of exporters that need a GPU."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.dataplane.chain import Pod
from tests.dataplane.exporters import growing

_SAMPLE: Final = re.compile(r'^(\w+)\{(.*?)model="([^"]*)"(.*)\} \S+$')

Values = Mapping[str, str]
Holder = Pod | str | None


def triton(template: str, models: Mapping[str, Values]) -> str:
    """A server's metrics: each series of a model in the template once for each of these models.

    Args:
        template: what a real server with one model says.
        models: by the name inside Triton, the values of its metrics; the others are 0.
    """
    lines = []
    for line in template.splitlines():
        match = _SAMPLE.fullmatch(line)
        if not match:
            lines.append(line)
            continue
        metric, before, _, after = match.groups()
        lines += [
            f'{metric}{{{before}model="{model}"{after}}} {values.get(metric, "0")}' for model, values in models.items()
        ]
    return "\n".join(lines) + "\n"


def load(per_second: float, queue_us: float = 0, *, pending: int = 0, start: float = 1_000) -> Values:
    """Values of a model that answers so many requests a second, each of which has waited so long."""
    return {
        "nv_inference_request_success": growing(start, per_second),
        "nv_inference_queue_duration_us": growing(start * queue_us, per_second * queue_us),
        "nv_inference_pending_request_count": str(pending),
    }


def dcgm(metric: str, node: str, cards: Sequence[tuple[Holder, float]], profile: str = "") -> str:
    """A node's GPUs as dcgm-exporter writes them.

    Args:
        metric: name of the field.
        node: of the GPUs.
        cards: who holds each GPU or slice, and the value. The labels of nobody are absent, or empty with older
            exporters: those of None and those of ``""``.
        profile: of the slices, where there are some.
    """
    samples = []
    for number, (holder, value) in enumerate(cards):
        card = 0 if profile else number
        labels: dict[str, object] = {"gpu": card, "UUID": f"GPU-{node}-{card}", "pci_bus_id": f"00000000:0{card}:00.0"}
        labels |= {"device": f"nvidia{card}", "modelName": "NVIDIA A100-SXM4-80GB", "Hostname": node}
        labels |= {"GPU_I_PROFILE": profile, "GPU_I_ID": number + 1} if profile else {}
        labels |= _held(holder)
        samples.append(_sample(metric, labels, value))
    return f"# HELP {metric} A field of DCGM.\n# TYPE {metric} gauge\n{''.join(samples)}"


def hami(pods: Mapping[Pod, float]) -> str:
    """What HAMi's monitor says about containers on its node, in percent of the card."""
    return _hami("hami_container_device_utilization_ratio", "container", "pod", "namespace", pods)


def hami_older(pods: Mapping[Pod, float]) -> str:
    """The same as it was said until HAMi 2.8."""
    return _hami("Device_utilization_desc_of_container", "ctrname", "podname", "podnamespace", pods)


def _hami(metric: str, container: str, pod: str, namespace: str, pods: Mapping[Pod, float]) -> str:
    always = {container: "triton", "zone": "vGPU", "vdeviceid": 0}
    samples = [
        _sample(metric, {**always, pod: one.name, namespace: one.namespace}, value) for one, value in pods.items()
    ]
    return f"# HELP {metric} Container device utilization description\n# TYPE {metric} gauge\n{''.join(samples)}"


def _held(holder: Holder) -> dict[str, object]:
    if holder is None:
        return {}
    if isinstance(holder, str):
        return dict.fromkeys(("container", "namespace", "pod"), holder)
    return {"container": "triton", "namespace": holder.namespace, "pod": holder.name}


def _sample(metric: str, labels: Mapping[str, object], value: float) -> str:
    written = ",".join(f'{key}="{one}"' for key, one in labels.items())
    return f"{metric}{{{written}}} {value}\n"
