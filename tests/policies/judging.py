"""One policy over resources that a test writes down."""

from typing import Any

from policies.judging.judge import Judge, Outcome, Verdict
from policies.judging.pack import judge_all
from policies.judging.policy import Policy
from policies.judging.view import Resource, View
from spec.estate import EstateSpec
from spec.source import Source
from spec.validation import validate


def judged(policy: Policy, *resources: Resource, environment: str = "prod") -> list[Verdict]:
    """What a policy says of some resources, in order."""
    settings = {"environment": environment, "cluster": {"provider": "existing"}}
    spec, problems = validate(EstateSpec, settings, Source("settings", settings))
    assert spec, problems
    return judge_all(Judge([policy], View("test", spec)), resources)


def messages(policy: Policy, *resources: Resource) -> list[str]:
    """What a policy finds wrong; it must be able to decide."""
    verdicts = judged(policy, *resources)
    assert {one.outcome for one in verdicts} <= {Outcome.VIOLATED}, verdicts
    return [one.message for one in verdicts]


def outcomes(policy: Policy, *resources: Resource) -> list[Outcome]:
    """What becomes of a policy."""
    return [one.outcome for one in judged(policy, *resources)]


def made(api: str, kind: str, name: str, spec: Any, namespace: str = "serving", **metadata: Any) -> Resource:
    """An object as its author wrote it."""
    content = {"metadata": {"name": name, "namespace": namespace, **metadata}, "spec": spec}
    return Resource(f"kubernetes:{api}:{kind}", name, content)


def deployment(container: dict[str, Any], name: str = "triton", **pod: Any) -> Resource:
    """A Deployment of one container that somebody else wrote: no label of ours, image and arguments of Triton."""
    server = {"name": "server", "image": "nvcr.io/nvidia/tritonserver:25.08-py3", **container}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [server], **pod}}
    return made("apps/v1", "Deployment", name, {"selector": {"matchLabels": {"app": name}}, "template": template})
