"""The estate whose pods are measured, and what each of them says."""

from collections.abc import Mapping
from typing import Final

import yaml

from spec.names import GPU_NAMESPACE
from tests.dataplane import chain as parts
from tests.dataplane import expositions
from tests.dataplane.chain import DCGM, HAMI, TRITON, Chain, Pod
from tests.dataplane.exporters import growing
from tests.dataplane.expositions import Holder, load
from tests.engine.project import Project

ELSEWHERE: Final = "elsewhere"
FOREIGN_GPUS: Final = "gpu-operator"

_CARDS: Final = {"gpuModel": "NVIDIA-A100-SXM4-80GB", "gpuMemory": "80Gi", "gpusPerNode": 4}
_SETTINGS: Final[dict[str, object]] = {
    "gpuPools": [
        {"name": "chain-whole", **_CARDS},
        {"name": "chain-mig", "sharing": "mig", "migProfile": "1g.10gb", **_CARDS},
        {"name": "chain-hami", "sharing": "hami", **_CARDS},
    ],
    "models": {},
    "gpuSoftware": {"dcgmExporter": "managed"},
    "monitoring": {"prometheus": {"provider": "managed"}, "scrapeInterval": "1s"},
}
_SMALL: Final[dict[str, object]] = {"cpu": 1, "memory": "1Gi"}
_TWO: Final = {"min": 2, "max": 2}
_MODELS: Final[dict[str, dict[str, object]]] = {
    "steady": {"scaling": {"min": 2, "max": 4, "qps": 100}},
    "pair": {"scaling": {"min": 2, "max": 4, "queueMs": 5}},
    "rare": {},
    "liar": {"scaling": _TWO},
    "restarted": {},
    "gone": {},
    "whole": {"resources": {**_SMALL, "gpu": 1}, "pool": "chain-whole", "scaling": {"min": 2, "max": 4}},
    "double": {"resources": {**_SMALL, "gpu": 2}, "pool": "chain-whole"},
    "slice": {"resources": {**_SMALL, "gpu": {"mig": "1g.10gb"}}},
    "share": {"resources": {**_SMALL, "gpu": 0.5}, "scaling": _TWO},
}

Models = Mapping[str, list[Pod]]


def write(project: Project) -> None:
    """Replace the models and settings of a copy of the project by those of the scene."""
    for file in (project.folder / "models").iterdir():
        file.unlink()
    for name, more in _MODELS.items():
        always = {"name": name, "owner": "tests", "repository": f"s3://acme/{name}"}
        content: dict[str, object] = {"resources": _SMALL, **always, **more}
        (project.folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(content))
    project.set(**_SETTINGS)


def pods_of(chain: Chain) -> Models:
    """The pods of each model."""
    return {name: chain.pods(chain.project.namespace, f"{name}-v1-") for name in _MODELS}


def say_triton(chain: Chain, template: str, models: Models, twin: Pod) -> None:
    """Every Triton says something: most that nothing is asked of them."""

    def say(pod: Pod, /, **loads: expositions.Values) -> None:
        chain.exporters.say(TRITON, pod.address, expositions.triton(template, loads))

    for name, pods in models.items():
        for pod in pods:
            say(pod, **{name: load(0)})
    busy, _ = models["steady"]
    say(busy, steady=load(2, queue_us=5_000, pending=3))
    say(twin, steady=load(7, queue_us=1_000))
    first, second = models["pair"]
    say(first, a=load(1, queue_us=1_000, pending=1), b=load(0, pending=2))
    say(second, a=load(1, queue_us=1_000), b=load(0.5, queue_us=2_500))
    say(models["rare"][0], rare=load(0.1, queue_us=50_000))
    say(models["restarted"][0], restarted=load(2, queue_us=5_000))
    honest, liar = models["liar"]
    say(honest, liar=load(1))
    lie = f'nv_inference_request_success{{model="liar",version="9",pod="{honest.name}"}} {growing(0, 50)}\n'
    chain.exporters.say(TRITON, liar.address, expositions.triton(template, {"liar": load(0)}) + lie)


def say_gpus(chain: Chain, models: Models, twin: Pod) -> None:
    """The exporters on the nodes: ours through a ServiceMonitor, those of others by annotation."""
    exporters = {pod.node: pod for pod in chain.pods(GPU_NAMESPACE)}

    def say(metric: str, exporter: Pod, cards: list[tuple[Holder, float]], profile: str = "") -> None:
        chain.exporters.say(DCGM, exporter.address, expositions.dcgm(metric, exporter.node, cards, profile))

    utilisation, engine = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
    (one, two), (double,), (sliced,), shared = (models[name] for name in ("whole", "double", "slice", "share"))
    idle: list[tuple[Holder, float]] = [("", 90), (None, 70)]
    say(utilisation, exporters[one.node], [(one, 80), (two, 0), (double, 90), (double, 30), *idle])
    say(engine, exporters[sliced.node], [(sliced, 0.714), ("", 0.9)], "1g.10gb")
    # On a shared card the number is the card's, and nobody holds it.
    say(utilisation, exporters[shared[0].node], [("", 99)])
    labels = {"app.kubernetes.io/name": "dcgm-exporter"}
    say(utilisation, parts.deploy_annotated(chain.world, FOREIGN_GPUS, "exporter", DCGM, labels), [(twin, 60), *idle])
    monitor, older = (
        parts.deploy_annotated(chain.world, "hami-system", name, HAMI, {}) for name in ("monitor", "older-monitor")
    )
    chain.exporters.say(HAMI, monitor.address, expositions.hami(dict(zip(shared, (35, 5), strict=True))))
    chain.exporters.say(HAMI, older.address, expositions.hami_older(dict(zip(shared, (60, 10), strict=True))))
