"""Policies about who may do what in the cluster."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from policies.judging.levels import Level, Severity
from policies.judging.policy import Finding, estate_policy, object_policy
from policies.judging.view import Resource, View, dig
from policies.reading.each import each_pods
from policies.reading.pods import Pods

_DEFAULT_ACCOUNT: Final = "default"
_READING: Final = frozenset({"get", "list", "watch"})
_RISING: Final = frozenset({"escalate", "bind", "impersonate"})
# Their resources are the names of metrics, of which nobody has a list.
_METRICS: Final = frozenset({"metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io"})
_EVERYBODY: Final = frozenset(
    {"system:authenticated", "system:unauthenticated", "system:anonymous", "system:serviceaccounts"}
)


@object_policy(
    "wide-rbac",
    "No role allows more than its holder needs",
    why="Whoever gets into a pod of that account reads every secret of the cluster, or makes itself its administrator.",
    fix="name the API groups, resources and verbs; give secrets by resourceNames in a Role of one namespace; bind to a "
    "service account",
    severity=Severity.HIGH,
    dev=Level.ADVISORY,
)
def wide_rbac(found: Resource, view: View) -> Iterator[str]:
    """Roles and bindings."""
    del view
    if found.kind in {"ClusterRole", "Role"}:
        for index, rule in enumerate(found.at("rules", default=[])):
            for what in _wide(rule, cluster=found.kind == "ClusterRole"):
                yield f"rule {index} {what}"
    elif found.kind in {"ClusterRoleBinding", "RoleBinding"}:
        if found.at("roleRef", "name") == "cluster-admin":
            yield f"binds {_subjects(found)} to cluster-admin"
        for subject in found.at("subjects", default=[]):
            name = dig(subject, "name", default="")
            if name in _EVERYBODY:
                yield f"binds {name}, which is everybody, to {found.at('roleRef', 'name')}"


def _wide(rule: Mapping[str, Any], *, cluster: bool) -> Iterator[str]:
    """What one rule allows that nobody needs."""
    groups, resources, verbs = (set(dig(rule, part, default=[])) for part in ("apiGroups", "resources", "verbs"))
    named = bool(dig(rule, "resourceNames", default=[]))
    if "*" in verbs:
        yield "allows every verb (*)"
    if "*" in groups:
        yield "allows every API group (*)"
    if "*" in resources and not (groups and groups <= _METRICS):
        yield f"allows every resource (*) of {', '.join(sorted(groups)) or 'no group'}"
    if rising := sorted(verbs & _RISING):
        yield f"allows {', '.join(rising)}, with which its holder gets any other right"
    if cluster and not named and "secrets" in resources and (reading := sorted(verbs & _READING)):
        yield f"allows to {', '.join(reading)} the secrets of all namespaces"


def _subjects(found: Resource) -> str:
    return ", ".join(dig(subject, "name", default="?") for subject in found.at("subjects", default=[])) or "nobody"


@estate_policy(
    "service-account-token",
    "No pod holds a token of the API server that it does not need",
    why="A model runs code that came with it. Whoever gets into the pod finds the token, and goes on from there.",
    fix="set automountServiceAccountToken: false in the pod, or bind a role to its service account",
    severity=Severity.MEDIUM,
    dev=Level.ADVISORY,
)
def service_account_token(view: View) -> Iterator[Finding]:
    """Pods whose account is bound to nothing. Bindings outside the estate are not seen, so other accounts pass."""
    bound = set(_bound(view.of_kind("RoleBinding", "ClusterRoleBinding")))
    accounts = {(one.namespace, one.object_name): one for one in view.of_kind("ServiceAccount")}

    def check(pods: Pods) -> Iterator[str]:
        namespace = pods.made_by.namespace
        name = pods.field("serviceAccountName", default=pods.field("serviceAccount", default=_DEFAULT_ACCOUNT))
        account = accounts.get((namespace, name))
        of_account = account.at("automountServiceAccountToken", default=True) if account else True
        if not pods.field("automountServiceAccountToken", default=of_account):
            return
        if not bound & {(namespace, name), (namespace, "")} and (name == _DEFAULT_ACCOUNT or account or pods.serves):
            yield f"its pods mount the token of {name}, which no role of the estate is bound to"

    yield from each_pods(view, check)


def _bound(bindings: Iterable[Resource]) -> Iterator[tuple[str, str]]:
    """Namespace and name of each bound account; no name where all of a namespace are."""
    for binding in bindings:
        for subject in binding.at("subjects", default=[]):
            kind, name = dig(subject, "kind"), dig(subject, "name", default="")
            if kind == "ServiceAccount":
                yield dig(subject, "namespace", default=binding.namespace), name
            elif name.startswith("system:serviceaccounts:"):
                yield name.rpartition(":")[2], ""
