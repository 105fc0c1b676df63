"""Which nodes pods may run on, and which GPU pools these are."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Final

from policies.judging.view import View, dig
from policies.reading.pods import Pods, matches
from spec import names
from spec.fields import mebibytes
from spec.pool import GpuPoolSpec

Rule = Mapping[str, Any]  # as a label selector has it: key, operator, values
Terms = Sequence[Sequence[Rule]]  # any of these terms, and all rules of it

_ANOTHER_VALUE: Final = "\0"
# Gt and Lt compare numbers, which no label of ours holds.
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")


def rules(labels: Mapping[str, Any]) -> list[Rule]:
    """What a node selector asks of a node."""
    return [{"key": key, "operator": "In", "values": [value]} for key, value in labels.items()]


def node_terms(pod_spec: Mapping[str, Any]) -> Terms:
    """What the node selector and the required node affinity of a pod ask of a node."""
    chosen = rules(dig(pod_spec, "nodeSelector", default={}))
    affinity = dig(pod_spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", default={})
    terms = [dig(term, "matchExpressions", default=[]) for term in dig(affinity, "nodeSelectorTerms", default=[])]
    return [[*chosen, *(rule for rule in term if rule["operator"] in _OPERATORS)] for term in terms] or [chosen]


def may_share_a_node(one: Terms, other: Terms) -> bool:
    """Whether there could be a node that both of two sets of terms take."""
    return any(_could_hold([*first, *second]) for first, second in product(one, other))


def _could_hold(wanted: Sequence[Rule]) -> bool:
    by_key: dict[str, list[Rule]] = {}
    for rule in wanted:
        by_key.setdefault(rule["key"], []).append(rule)
    return all(_has_a_value(key, same) for key, same in by_key.items())


def _has_a_value(key: str, wanted: Sequence[Rule]) -> bool:
    values = [value for rule in wanted for value in rule.get("values") or []]
    labels = [{key: value} for value in (*values, _ANOTHER_VALUE)]
    return any(matches({"matchExpressions": wanted}, found) for found in (*labels, {}))


def pool_labels(pool: GpuPoolSpec) -> dict[str, str]:
    """Labels by which the nodes of a pool differ from others, see ``components.gpu.node_pool.node_labels``."""
    hami = {"gpu": "on"} if pool.sharing == "hami" else {}
    product_labels = {
        "nvidia.com/gpu.product": pool.gpu_model,
        "nvidia.com/gpu.memory": str(mebibytes(pool.gpu_memory)),
    }
    return {names.POOL_LABEL: pool.name} | product_labels | hami


def pools_of(pods: Pods, view: View) -> list[GpuPoolSpec]:
    """The pools of the stack that pods choose by labels of their nodes; none if they choose nothing."""
    terms = node_terms(pods.spec)
    return [pool for pool in view.spec.gpu_pools if any(_chooses(term, pool_labels(pool)) for term in terms)]


def _chooses(term: Sequence[Rule], labels: Mapping[str, str]) -> bool:
    about_it = [rule for rule in term if rule["key"] in labels]
    return bool(about_it) and matches({"matchExpressions": about_it}, labels)


def tolerates(pods: Pods, pool: GpuPoolSpec) -> bool:
    """Whether pods are let in by the taint of a pool."""
    key, value, effect = pool.taint_parts
    return any(
        dig(one, "key", default=key) == key
        and (dig(one, "operator", default="Equal") == "Exists" or dig(one, "value", default="") == value)
        and dig(one, "effect", default=effect) == effect
        for one in pods.field("tolerations", default=[])
    )
