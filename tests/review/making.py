"""Small plans and reviews, made by hand."""

from collections.abc import Sequence
from typing import Any

from policies.judging.judge import Outcome, Verdict
from policies.judging.levels import Level, Severity
from policies.judging.policy import Policy
from policies.judging.view import Resource
from review.changes import Plan, Side, between
from review.judging import Result
from spec import names
from spec.estate import EstateSpec
from spec.source import Source
from spec.validation import validate

POOLS = [
    {"name": "a100", "gpuModel": "A100", "gpuMemory": "80Gi", "nodes": 1, "gpusPerNode": 4, "provider": "existing"}
]
IMAGE = "nvcr.io/nvidia/tritonserver:25.08-py3"


def spec(**settings: Any) -> EstateSpec:
    """Settings of a stack."""
    found = {"environment": "prod", "cluster": {"provider": "existing"}, "gpuPools": POOLS} | settings
    made, problems = validate(EstateSpec, found, Source("settings", found))
    assert made, problems
    return made


def policy(name: str = "some-policy") -> Policy:
    """A policy that checks nothing."""
    return Policy(
        name, "Something holds", "Or else", "do something", Severity.HIGH, dev=Level.ADVISORY, prod=Level.MANDATORY
    )


def thing(kind: str, name: str, api: str = "apps/v1", **inputs: Any) -> Resource:
    """A Kubernetes object."""
    metadata = {"name": name, "namespace": "serving"} | inputs.pop("metadata", {})
    return Resource(f"kubernetes:{api}:{kind}", name, {"metadata": metadata, **inputs})


def labels(model: str, revision: str | None = "v1") -> dict[str, str]:
    """Labels of the objects of a model."""
    return names.labels(model, "vision", revision)


def deployment(model: str = "ranker", revision: str = "v1", **changed: Any) -> Resource:
    """The Deployment of a revision; ``changed`` replaces parts of its container or of its pods' specification."""
    container = {
        "name": "triton",
        "image": changed.pop("image", IMAGE),
        "args": changed.pop("args", ["tritonserver", "--http-port=8000"]),
        "resources": changed.pop("resources", {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}),
        "env": changed.pop("env", []),
    }
    annotations = changed.pop("annotations", {})
    spec = {
        "replicas": changed.pop("replicas", 3),
        "strategy": changed.pop("strategy", {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        "selector": {"matchLabels": changed.pop("selector", names.selector(model, revision))},
        "template": {
            "metadata": {"labels": labels(model, revision), "annotations": annotations},
            "spec": {"nodeSelector": {names.POOL_LABEL: "a100"}, "containers": [container]} | changed,
        },
    }
    return thing("Deployment", f"{model}-{revision}", metadata={"labels": labels(model, revision)}, spec=spec)


def scaler(model: str, low: object, high: object, revision: str = "v1") -> Resource:
    """The autoscaler of a revision."""
    name = f"{model}-{revision}"
    bounds = {
        "minReplicas": low,
        "maxReplicas": high,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
    }
    metadata = {"labels": labels(model, revision)}
    return thing("HorizontalPodAutoscaler", name, "autoscaling/v2", metadata=metadata, spec=bounds)


def routes(model: str, weights: dict[str, int], **route: Any) -> Resource:
    """The routes of a model inside the mesh."""
    to = [{"destination": {"host": f"{model}-{name}.serving.svc"}, "weight": share} for name, share in weights.items()]
    http = [{"name": f"{model}.http", "route": to, **route}]
    metadata = {"labels": labels(model, None)}
    return thing("VirtualService", f"{model}.mesh", "networking.istio.io/v1", metadata=metadata, spec={"http": http})


def daemons(name: str, image: str, **update: Any) -> Resource:
    """A DaemonSet on every GPU node."""
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    return thing("DaemonSet", name, spec={"template": template, "updateStrategy": update})


def release(chart: str, version: str, **values: Any) -> Resource:
    """A Helm release."""
    inputs = {"chart": chart, "version": version, "values": values}
    return Resource("kubernetes:helm.sh/v3:Release", chart, inputs)


def plan(old: Sequence[Resource], new: Sequence[Resource], before: EstateSpec | None = None) -> Plan:
    """What the program would do."""
    return between("prod", Side(before or spec(), tuple(old)), Side(spec(), tuple(new)))


def result(*verdicts: Verdict, refused: str = "") -> Result:
    """What policies say."""
    return Result("prod", verdicts, refused, 12, 3)


def verdict(outcome: Outcome = Outcome.VIOLATED, level: Level = Level.MANDATORY, **fields: Any) -> Verdict:
    """One thing that a policy says."""
    where = fields.pop("resource", deployment())
    return Verdict(fields.pop("policy", policy()), outcome, level, where, fields.pop("message", "it does not"))
