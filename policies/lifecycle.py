"""Policies about the life of a pod: starting, answering, being drained and ending, and which image it runs."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading import probes, triton
from policies.reading.images import branch_of, references
from policies.reading.pods import matches, pods_of
from policies.reading.replicas import Workload, share, workloads
from policies.reading.shutdown import broken_hook, wait_seconds
from spec import names
from spec.fields import duration_seconds
from spec.images import parse_image
from spec.model import ModelSpec

_READY: Final = re.compile(r"/ready(z|iness)?(?![\w-])")
_GRACE: Final = 30  # Kubernetes' own default
_USUAL_LOAD: Final = int(duration_seconds(ModelSpec.model_fields["load_time"].default))


@object_policy(
    "liveness-on-readiness",
    "Liveness asks whether the process answers, not whether it is ready",
    why="Not ready is a normal state: while a model loads or is unloaded the kubelet would kill the server again and "
    "again, and all replicas at once where they share the cause.",
    fix="livenessProbe: {httpGet: {path: /v2/health/live, port: 8000}}, and the ready path in readinessProbe only",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def liveness_on_readiness(found: Resource, view: View) -> Iterator[str]:
    """Probes of containers."""
    del view
    pods = pods_of(found)
    if pods is None:
        return
    for container in pods.containers:
        name, liveness = dig(container, "name", default=""), probes.handler(container, "livenessProbe")
        asked = probes.asked(liveness)
        if _READY.search(asked):
            yield f"liveness of container {name} asks for {asked}"
        elif "grpc" in liveness and triton.is_server(container):
            yield f"liveness of container {name} asks Triton's gRPC health service, which says whether it is ready"
        elif liveness and liveness == probes.handler(container, "readinessProbe") and triton.is_server(container):
            yield f"liveness and readiness of container {name} ask the same: {asked}"


@object_policy(
    "startup-budget",
    "No probe kills Triton while it loads its models",
    why="Triton answers nothing before all models are loaded: with a smaller budget the pod is killed, loads again, "
    "and never becomes ready.",
    fix="loadTime of the model file, or a startupProbe with periodSeconds x failureThreshold above the load time",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def startup_budget(found: Resource, view: View) -> Iterator[str]:
    """Startup probes, and liveness where there is none."""
    del view
    for container in triton.servers(pods_of(found)):
        startup, liveness = dig(container, "startupProbe"), dig(container, "livenessProbe")
        declared = probes.declared_load(found)
        name = dig(container, "name", default="")
        if startup is not None and declared is not None and (budget := probes.budget(startup)) < declared:
            yield f"the startup probe of container {name} allows {budget} s, the models may take {declared} s to load"
        load = declared or _USUAL_LOAD
        if startup is None and liveness is not None and (budget := probes.budget(liveness)) < load:
            usual = "" if declared else ", the usual load time"
            yield f"container {name} has no startup probe, and liveness kills it after {budget} s of {load} s{usual}"


@object_policy(
    "grace-period",
    "A pod has time to finish what it was asked before it is killed",
    why="Every rollout, scale-down and drain would cut requests that are being computed.",
    fix="terminationGracePeriodSeconds above the preStop wait and --exit-timeout-secs together (30 s each where they "
    "are not given), and a preStop hook that waits: preStop: {sleep: {seconds: 15}}",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def grace_period(found: Resource, view: View) -> Iterator[str]:
    """Grace periods against hooks and Triton's own exit timeout."""
    del view
    pods = pods_of(found)
    if pods is None:
        return
    grace = pods.field("terminationGracePeriodSeconds", default=_GRACE)
    for container in pods.containers:
        name = dig(container, "name", default="")
        for reason in broken_hook(container):
            yield f"the preStop hook of container {name} cannot work: {reason}"
        wait = wait_seconds(container)
        own = triton.exit_timeout(container) if triton.is_server(container) else 0
        if grace < wait + own:
            parts = f"preStop waits {wait:g} s" + (f" and Triton's exit timeout is {own} s" if own else "")
            yield f"container {name} is killed after {grace} s, but {parts}"


@estate_policy(
    "disruption-budget-missing",
    "Replicas of a model have a PodDisruptionBudget",
    why="Node upgrades and the cluster autoscaler drain several nodes at once; without a budget all replicas may go "
    "together.",
    fix="a PodDisruptionBudget with maxUnavailable: 1 whose selector selects the pods",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def disruption_budget_missing(view: View) -> Iterator[Finding]:
    """Serving workloads without a budget."""
    budgets: dict[str, list[Mapping[str, Any] | None]] = {}
    for budget in view.of_kind("PodDisruptionBudget"):
        budgets.setdefault(budget.namespace, []).append(budget.at("spec", "selector"))
    for one in workloads(view):
        if one.most > 1 and triton.runs_triton(one.pods):
            labels = one.pods.labels
            if not any(matches(selector, labels) for selector in budgets.get(one.made_by.namespace, ())):
                count = f"{one.most} replicas" if one.most == one.fewest else f"{one.fewest} to {one.most} replicas"
                yield Finding(one.made_by, f"{count} and no budget selects them")


@estate_policy(
    "disruption-budget-blocks",
    "A PodDisruptionBudget lets one pod go at a time",
    why="A budget that no pod may leave stops every drain: nodes cannot be upgraded, and the autoscaler cannot remove "
    "them.",
    fix="maxUnavailable: 1, whatever the number of replicas",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def disruption_budget_blocks(view: View) -> Iterator[Finding]:
    """Budgets against the fewest replicas that they may find."""
    inside: dict[str, list[Workload]] = {}
    for one in workloads(view):
        inside.setdefault(one.made_by.namespace, []).append(one)
    for budget in view.of_kind("PodDisruptionBudget"):
        most, least = budget.at("spec", "maxUnavailable"), budget.at("spec", "minAvailable")
        if most is not None and share(most, 1) == 0:
            yield Finding(budget, f"maxUnavailable is {most}")
        if least is None:
            continue
        selector = budget.at("spec", "selector")
        selected = [one for one in inside.get(budget.namespace, ()) if matches(selector, one.pods.labels)]
        # A workload that stands at zero has no pod that would have to go; the first one is the fewest that can be.
        fewest = sum(max(one.fewest, 1) for one in selected)
        if least == "100%" or (selected and share(least, fewest) >= fewest):
            yield Finding(budget, f"minAvailable is {least}" + (f" of {fewest} replicas" if selected else ""))


@object_policy(
    "image-tag-floats",
    "An image is named by a tag of a release, or by its digest",
    why="Without a tag, with latest or with a branch, the next pod that starts runs something that nobody reviewed, "
    "and going back is not possible.",
    fix="name a release, e.g. image: nvcr.io/nvidia/tritonserver:25.08-py3, in the model file or the stack",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def image_tag_floats(found: Resource, view: View) -> Iterator[str]:
    """Tags of images that are not pinned by digest."""
    del view
    for where, text in references(found):
        image = parse_image(text)
        if image.digest is None and image.tag is None:
            yield f"{where} runs {text}, which has no tag and means latest"
        elif image.digest is None and (branch := branch_of(image.tag or "")):
            yield f"{where} runs {text}, and {branch} is another image after the next push"


@object_policy(
    "image-without-digest",
    "An image is named by its digest",
    why="A tag can be moved in the registry: two replicas of one Deployment may run different programs.",
    fix="image: <name>:<tag>@sha256:<digest>, as `docker buildx imagetools inspect <name>:<tag>` says it",
    severity=Severity.MEDIUM,
    dev=Level.DISABLED,
)
def image_without_digest(found: Resource, view: View) -> Iterator[str]:
    """Images that are named by tag only."""
    del view
    for where, text in references(found):
        if parse_image(text).digest is None:
            yield f"{where} runs {text}"


@object_policy(
    "model-control-poll",
    "Triton does not load whatever appears in the model store",
    why="With polling, whoever can write to the store changes what runs, with no review and no rollout, and half a "
    "copied model is loaded as it is.",
    fix="control: none in the model file; a new version is a new revision",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
    prod=Level.ADVISORY,
)
def model_control_poll(found: Resource, view: View) -> Iterator[str]:
    """Triton's model control mode."""
    del view
    for container in triton.servers(pods_of(found)):
        if triton.option(container, "model-control-mode") == "poll":
            yield f"container {dig(container, 'name', default='')} has --model-control-mode=poll"


@object_policy(
    "verbose-log-in-prod",
    "Triton does not log every request in production",
    why="Verbose logs cost time in every request and fill the node's disk.",
    fix="take log-verbose out of server in the model file; Triton's log extension turns it on for a while",
    severity=Severity.LOW,
    dev=Level.DISABLED,
    prod=Level.ADVISORY,
)
def verbose_log_in_prod(found: Resource, view: View) -> Iterator[str]:
    """Triton's log level."""
    del view
    for container in triton.servers(pods_of(found)):
        if (level := triton.number(container, "log-verbose", 0)) > 0:
            yield f"container {dig(container, 'name', default='')} has --log-verbose={level}"


@object_policy(
    "debug-in-prod",
    "No debug twin runs in production",
    why="A twin holds a replica's cards and its access to the store while it serves nobody.",
    fix="take debug out of the model file, or debug: null for this model in the stack file",
    severity=Severity.LOW,
    dev=Level.DISABLED,
    prod=Level.ADVISORY,
)
def debug_in_prod(found: Resource, view: View) -> Iterator[str]:
    """Pods of debug twins."""
    del view
    pods = pods_of(found)
    if pods and pods.labels.get("app.kubernetes.io/name") == f"triton-{names.DEBUG}":
        yield f"a debug twin of model {pods.labels.get(names.MODEL_LABEL)}"
