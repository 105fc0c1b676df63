"""Policies about scaling: who sets the number of replicas, between which numbers, and by what."""

from collections.abc import Iterator
from typing import Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading import adapter_rules, metric_units, promql, triton
from policies.reading.adapters import AdapterRule, adapter_config, adapter_configs
from policies.reading.autoscalers import HPA, KEDA, Autoscaler, autoscaler, wakes
from policies.reading.callers import Callers
from policies.reading.each import each
from policies.reading.exporters import is_counter
from policies.reading.mesh import Services
from policies.reading.replicas import Workload, workloads

# What has replicas to set, with its API.
_SCALABLE: Final = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "ReplicaSet": "apps/v1",
    "ReplicationController": "v1",
}
_NEVER: Final = ("CronJob", "DaemonSet", "Job", "Pod", "Service")
_FEWEST: Final = 3
# Where an HPA keeps metrics that no API of Kubernetes' own knows.
_CUSTOM: Final = ("pods", "object", "external")


@estate_policy(
    "replicas-beside-autoscaler",
    "A workload that an autoscaler scales does not set its own number of replicas",
    why="Both own spec.replicas: the next update takes a service under load down to the number in the program, or is"
    " refused for the conflict.",
    fix="leave spec.replicas out of the workload, or take the autoscaler away (scaling.min equal to scaling.max)",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def replicas_beside_autoscaler(view: View) -> Iterator[Finding]:
    """Workloads with both."""
    scaled = {one.key: found for found in view.of_kind(HPA, KEDA) if (one := autoscaler(found))}

    def check(found: Resource) -> Iterator[str]:
        by = scaled.get((found.kind, found.namespace, found.object_name))
        if by and (replicas := found.at("spec", "replicas")) is not None:
            yield f"spec.replicas is {replicas}, and {by.key} scales it"

    return each(view.of_kind(*_SCALABLE), check, lambda found: found)


@estate_policy(
    "autoscaler-target",
    "Every autoscaler has a workload of its own that it can scale",
    why="An autoscaler without its target does nothing and says so only in its events; two at one target undo each"
    " other's work.",
    fix="name kind, apiVersion apps/v1 and name of a Deployment of the same namespace in scaleTargetRef, once",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def autoscaler_target(view: View) -> Iterator[Finding]:
    """Targets of autoscalers."""
    there = {(one.kind, one.namespace, one.object_name) for one in view.of_kind(*_SCALABLE)}
    charted = Services(view).charted
    first: dict[tuple[str, str, str], Autoscaler] = {}

    def check(found: Resource) -> Iterator[str]:
        one = autoscaler(found)
        if one is None:
            return
        kind, _, target = one.key
        name, api = f"{kind}/{target}", _SCALABLE.get(kind)
        if kind in _NEVER or not kind or not target:
            yield f"scaleTargetRef names {name}, which has no replicas to scale"
        elif api and one.api != api:
            yield f"scaleTargetRef has apiVersion {one.api!r} for {name}, which is in {api}"
        elif api and one.key not in there and found.namespace not in charted:
            yield f"there is no {name} in namespace {found.namespace}"
        if (other := first.setdefault(one.key, one)) is not one:
            yield f"{name} is scaled by {other.resource.key} as well"

    return each(view.of_kind(HPA, KEDA), check, lambda found: found)


@object_policy(
    "autoscaler-metric-unit",
    "Every metric of an autoscaler is asked for in a form that the API takes, and in its own unit",
    why="A target of 60 for a ratio is never reached, so the model never scales; a form that the API does not know is"
    " dropped or refused; an external metric without a selector counts the load of everybody.",
    fix="write percents in the model file (scaling.gpu: 60), which become 600m of the ratio; elsewhere use"
    " autoscaling/v2 with target {type: AverageValue, averageValue: 600m}, and a selector for external metrics",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def autoscaler_metric_unit(found: Resource, view: View) -> Iterator[str]:
    """Targets of metrics."""
    del view
    one = autoscaler(found)
    if one:
        yield from metric_units.keda(one) if one.keda else metric_units.hpa(found)


@object_policy(
    "autoscaler-bounds",
    "An autoscaler has room between its bounds, and whatever may have no replica is woken by something",
    why="With max below min the object is refused or useless; a model at zero that nothing wakes stays away until"
    " somebody calls.",
    fix="write scaling.max above scaling.min; scaling.min: 0 wants autoscaler: {backend: keda} and a scaling.schedule",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def autoscaler_bounds(found: Resource, view: View) -> Iterator[str]:
    """Fewest and most replicas."""
    del view
    one = autoscaler(found)
    if one is None:
        return
    least, most = one.bounds
    if one.max is None:
        yield f"{most} is missing"
    elif one.max < max(one.min, 1):
        yield f"{most} is {one.max}, below {least}, which is {one.min}" if one.min else f"{most} is {one.max}"
    if one.min == 0 and not one.keda:
        yield f"{least} is 0, and an HPA keeps at least one replica"
    elif one.min == 0 and not any(wakes(trigger) for trigger in one.triggers):
        kinds = ", ".join(dig(trigger, "type", default="?") for trigger in one.triggers) or "none"
        yield f"{least} is 0, and no trigger ({kinds}) sees any load while there is no replica"


@estate_policy(
    "replicas-for-production",
    f"A model that serves in production has at least {_FEWEST} replicas",
    why="With one replica every node drain is an outage; with two, one lost node leaves a single replica with all the"
    " load.",
    fix=f"write scaling: {{min: {_FEWEST}}} in the model file, or ask for a waiver in policies/waivers.yaml",
    severity=Severity.HIGH,
    dev=Level.DISABLED,
)
def replicas_for_production(view: View) -> Iterator[Finding]:
    """Fewest replicas of what serves."""
    scaled = {one.key: found for found in view.of_kind(HPA, KEDA) if (one := autoscaler(found))}
    callers = Callers(view)

    def check(one: Workload) -> Iterator[str]:
        if one.fewest < _FEWEST and triton.runs_triton(one.pods) and callers.wait_for(one.pods):
            yield f"{one.made_by.key} may come down to {one.fewest} of the {_FEWEST} replicas"

    def place(one: Workload) -> Resource:
        made = one.made_by
        return scaled.get((made.kind, made.namespace, made.object_name), made)

    return each(workloads(view), check, place)


@estate_policy(
    "autoscaler-metric-served",
    "Every custom metric of an autoscaler is served by a rule of the estate's metrics adapter",
    why="An HPA whose metric nobody serves shows <unknown> and keeps the replicas it has, whatever the load is.",
    fix="scale on a field of scaling in the model file, which the managed adapter serves, or add a rule of this name",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def autoscaler_metric_served(view: View) -> Iterator[Finding]:
    """Metrics of HPAs, where the adapter and all its rules are known."""
    configs = [one for one in adapter_configs(view) if not one.broken]
    if not configs or not all(one.complete for one in configs):
        return iter(())
    rules = [rule for one in configs for rule in one.rules]
    where = ", ".join(one.resource.key for one in configs)

    def check(found: Resource) -> Iterator[str]:
        for metric in found.at("spec", "metrics", default=[]):
            external = dig(metric, "type") == "External"
            name = next((one for kind in _CUSTOM if (one := dig(metric, kind, "metric", "name"))), None)
            # Another server may answer for external metrics; an adapter with rules for them is the one that does.
            able = [rule for rule in rules if rule.external == external]
            if name and (able or not external) and not any(_serves(rule, name) for rule in able):
                yield f"no rule of {where} serves {name}"

    return each(view.of_kind(HPA), check, lambda found: found)


def _serves(rule: AdapterRule, name: str) -> bool:
    try:
        return rule.serves(name)
    except ValueError:
        return False  # said elsewhere


@object_policy(
    "adapter-rule-raw-counter",
    "What scales on a counter asks for its rate",
    why="A counter never falls: the autoscaler goes to its maximum and stays there.",
    fix="put rate(…[2m]) or increase around the counter; the signals of scaling in the model file have it",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def adapter_rule_raw_counter(found: Resource, view: View) -> Iterator[str]:
    """Queries of adapter rules and of KEDA's triggers."""
    del view
    for where, asked in _queries(found):
        for metric in dict.fromkeys(promql.metric(one) for one in promql.raw(asked)):
            if is_counter(metric):
                yield f"{where} uses the counter {metric} as it is"


def _queries(found: Resource) -> Iterator[tuple[str, object]]:
    """Expressions that somebody scales on; one that is no PromQL is told of elsewhere."""
    texts = []
    if found.kind == KEDA:
        for index, trigger in enumerate(found.at("spec", "triggers", default=[])):
            if dig(trigger, "type") == "prometheus":
                texts.append((f"triggers[{index}]", lambda one=trigger: promql.parse(dig(one, "metadata", "query"))))
    elif config := adapter_config(found):
        texts += [(rule.where, lambda one=rule: one.asked) for rule in config.rules]
    for where, parsed in texts:
        try:
            yield where, parsed()
        except (TypeError, ValueError):
            continue


@object_policy(
    "adapter-rule-placeholders",
    "Every rule of the metrics adapter works for each namespace and pod that it is asked about",
    why="A query without its placeholders gives one value for all, or none; a fixed namespace gives nothing to the"
    " others. The custom metrics API then answers that there is no such metric.",
    fix="write <<.LabelMatchers>> and <<.GroupBy>> in metricsQuery, overrides for both namespace and pod, no namespace"
    " in seriesQuery",
    severity=Severity.HIGH,
    dev=Level.MANDATORY,
)
def adapter_rule_placeholders(found: Resource, view: View) -> Iterator[str]:
    """Rules of adapters."""
    del view
    config = adapter_config(found)
    if config is None:
        return
    if config.broken:
        yield f"the rules cannot be read: {config.broken}"
    for rule in config.rules:
        for message in adapter_rules.problems(rule):
            yield f"{rule.where} {message}"
