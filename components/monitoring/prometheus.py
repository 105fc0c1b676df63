"""The managed Prometheus and its Alertmanager, run by the Prometheus operator."""

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components import crds, versions
from components.args import Args
from components.crds import custom_resource
from components.monitoring import scraping
from spec import names, prometheus
from spec.estate import EstateSpec
from spec.images import parse_image
from spec.monitoring import MonitoringSpec
from spec.prometheus import AlertmanagerSpec, PrometheusSpec, StorageSpec

NAMESPACE: Final = names.MONITORING_NAMESPACE
ALERTMANAGER: Final = "alertmanager"
# Name of a port, of the operator's own choosing.
_WEB: Final = "web"
_ALERTMANAGER_PORT: Final = 9093
# Cluster-wide, so it carries the project's name.
_ROLE: Final = f"{names.PROJECT}-{prometheus.PROMETHEUS}"
_JOBS: Final = "prometheus-scrape-jobs"
_JOBS_FILE: Final = "jobs.yaml"
# Of an emptyDir; some sixty thousand series of 15 days at 15 s fit.
_SCRATCH: Final = "10Gi"
# Silences and the log of notifications take a few MiB.
_ALERTMANAGER_RESOURCES: Final = crds.Resources(requests={"cpu": "10m", "memory": "128Mi"}, limits={"memory": "128Mi"})
_NOBODY: Final = 65534


class PrometheusArgs(Args):
    """Arguments of :class:`Prometheus`.

    Attributes:
        prometheus: what to make, provider managed.
        monitoring: by which labels monitors and rules are selected, and how often is scraped.
        namespaces: where monitors and rules are looked for.
    """

    prometheus: PrometheusSpec
    monitoring: MonitoringSpec
    namespaces: Sequence[str]


class Prometheus(pulumi.ComponentResource):
    """Prometheus with its account, its scrape jobs and a Service; Alertmanager where it is asked for.

    The namespace ``monitoring`` has to be there, and the Prometheus operator with its kinds.

    Attributes:
        service: answers at :func:`spec.prometheus.prometheus_url`; for others to depend on.
    """

    service: k8s.core.v1.Service

    def __init__(self, name: str, args: PrometheusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:monitoring:Prometheus", name, None, opts)
        spec = args.prometheus
        account = k8s.core.v1.ServiceAccount(name, service_account(), self._child())
        role = k8s.rbac.v1.ClusterRole(_ROLE, cluster_role(), self._child())
        binding = k8s.rbac.v1.ClusterRoleBinding(_ROLE, cluster_role_binding(), self._child([role, account]))
        jobs = k8s.core.v1.Secret(_JOBS, scrape_secret(args.monitoring), self._child())
        if spec.alertmanager:
            manager = custom_resource(ALERTMANAGER, metadata(ALERTMANAGER), alertmanager(spec.alertmanager),
                                      self._child())  # fmt: skip
            k8s.core.v1.Service(ALERTMANAGER, service(ALERTMANAGER, _ALERTMANAGER_PORT), self._child([manager]))
        custom = custom_resource(
            name,
            metadata(prometheus.PROMETHEUS),
            prometheus_resource(spec, args.monitoring, args.namespaces),
            self._child([binding, jobs]),
        )
        self.service = k8s.core.v1.Service(name, service(prometheus.PROMETHEUS, prometheus.PORT), self._child([custom]))
        self.register_outputs({})

    def _child(self, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(depends_on))


def watched_namespaces(spec: EstateSpec) -> list[str]:
    """Where the estate's own monitors and rules are, and those of what it installs."""
    return sorted({spec.namespace, names.MONITORING_NAMESPACE, names.GPU_NAMESPACE})


def metadata(name: str, component: str = "") -> k8s.meta.v1.ObjectMetaArgs:
    """Name, namespace and labels of an object in the namespace ``monitoring``."""
    return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=NAMESPACE, labels=names.estate_labels(component or name))


def service_account() -> k8s.core.v1.ServiceAccountInitArgs:
    """Whom Prometheus is to the API server."""
    return k8s.core.v1.ServiceAccountInitArgs(metadata=metadata(prometheus.PROMETHEUS))


def cluster_role() -> k8s.rbac.v1.ClusterRoleInitArgs:
    """What discovery reads, and the metrics of the API server itself. Services are annotated in any namespace."""
    rule, read = k8s.rbac.v1.PolicyRuleArgs, ["get", "list", "watch"]
    return k8s.rbac.v1.ClusterRoleInitArgs(
        metadata=_cluster_metadata(),
        rules=[
            rule(api_groups=[""], resources=["services", "pods"], verbs=read),
            rule(api_groups=["discovery.k8s.io"], resources=["endpointslices"], verbs=read),
            rule(non_resource_urls=["/metrics"], verbs=["get"]),
        ],
    )


def cluster_role_binding() -> k8s.rbac.v1.ClusterRoleBindingInitArgs:
    """Gives the role to the account."""
    return k8s.rbac.v1.ClusterRoleBindingInitArgs(
        metadata=_cluster_metadata(),
        role_ref=k8s.rbac.v1.RoleRefArgs(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=_ROLE),
        subjects=[k8s.rbac.v1.SubjectArgs(kind="ServiceAccount", name=prometheus.PROMETHEUS, namespace=NAMESPACE)],
    )


def scrape_secret(monitoring: MonitoringSpec) -> k8s.core.v1.SecretInitArgs:
    """The scrape jobs beside the monitors. The operator reads them from a Secret; nothing in them is secret."""
    return k8s.core.v1.SecretInitArgs(
        metadata=metadata(_JOBS), string_data={_JOBS_FILE: scraping.scrape_configs(monitoring)}
    )


def service(name: str, port: int) -> k8s.core.v1.ServiceInitArgs:
    """A stable address for pods that the operator makes."""
    found = metadata(name)
    # In its own time, which nothing else waits for either: the engine sees the custom resource, not its pods.
    found.annotations = {"pulumi.com/skipAwait": "true"}
    return k8s.core.v1.ServiceInitArgs(
        metadata=found,
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=_pod_labels(name),
            ports=[k8s.core.v1.ServicePortArgs(name=_WEB, port=port, target_port=_WEB)],
            # Replicas scrape at different moments: a reader that changes between them sees counters fall.
            session_affinity="ClientIP",
        ),
    )


def prometheus_resource(spec: PrometheusSpec, monitoring: MonitoringSpec, namespaces: Sequence[str]) -> crds.Prometheus:
    """The custom resource of which the operator makes the pods.

    Args:
        spec: provider managed.
        monitoring: labels of monitors and rules, scrape interval.
        namespaces: where monitors and rules are looked for.
    """
    selected, within = crds.LabelSelector(match_labels=monitoring.labels), _by_name(namespaces)
    disk = spec.storage.size if spec.storage else _SCRATCH
    notified = crds.AlertmanagerEndpoints(namespace=NAMESPACE, name=ALERTMANAGER, port=_WEB, api_version="v2")
    return crds.Prometheus(
        image=versions.PROMETHEUS_IMAGE,
        version=_version(versions.PROMETHEUS_IMAGE),
        replicas=spec.replicas,
        retention=spec.retention,
        # Whichever comes first: a full disk ends a Prometheus.
        retention_size=f"{prometheus.retention_mebibytes(disk)}MiB",
        scrape_interval=monitoring.scrape_interval,
        evaluation_interval=monitoring.scrape_interval,
        external_labels=spec.external_labels,
        service_account_name=prometheus.PROMETHEUS,
        service_discovery_role="EndpointSlice",
        service_monitor_selector=selected,
        service_monitor_namespace_selector=within,
        # Charts of others, such as KEDA's, come with PodMonitors.
        pod_monitor_selector=selected,
        pod_monitor_namespace_selector=within,
        rule_selector=selected,
        rule_namespace_selector=within,
        additional_scrape_configs=crds.SecretKey(name=_JOBS, key=_JOBS_FILE),
        alerting=crds.Alerting(alertmanagers=[notified]) if spec.alertmanager else None,
        resources=crds.Resources(requests={"cpu": spec.cpu, "memory": spec.memory}, limits={"memory": spec.memory}),
        storage=_storage(spec.storage),
        security_context=_security(),
        topology_spread_constraints=_spread(prometheus.PROMETHEUS),
    )


def alertmanager(spec: AlertmanagerSpec) -> crds.Alertmanager:
    """The custom resource of the Alertmanager; routes and receivers come from a Secret that is there."""
    return crds.Alertmanager(
        image=versions.ALERTMANAGER_IMAGE,
        version=_version(versions.ALERTMANAGER_IMAGE),
        replicas=spec.replicas,
        config_secret=spec.config_secret,
        automount_service_account_token=False,
        resources=_ALERTMANAGER_RESOURCES,
        storage=_storage(spec.storage) if spec.storage else None,
        security_context=_security(),
        topology_spread_constraints=_spread(ALERTMANAGER),
    )


def _cluster_metadata() -> k8s.meta.v1.ObjectMetaArgs:
    return k8s.meta.v1.ObjectMetaArgs(name=_ROLE, labels=names.estate_labels(prometheus.PROMETHEUS))


def _pod_labels(name: str) -> dict[str, str]:
    """Labels that the operator gives to the pods of a custom resource."""
    key = "operator.prometheus.io/name" if name == prometheus.PROMETHEUS else "alertmanager"
    return {"app.kubernetes.io/name": name, key: name}


def _by_name(namespaces: Sequence[str]) -> crds.NamespaceLabels:
    # The API server writes this label on every namespace.
    values = sorted(set(namespaces))
    wanted = crds.NamespaceRequirement(key="kubernetes.io/metadata.name", operator="In", values=values)
    return crds.NamespaceLabels(match_expressions=[wanted])


def _storage(spec: StorageSpec | None) -> crds.Storage:
    if spec is None:
        return crds.Storage(empty_dir=crds.EmptyDir(size_limit=_SCRATCH))
    claim = crds.ClaimSpec(
        access_modes=["ReadWriteOnce"],
        storage_class_name=spec.storage_class,
        resources=crds.ClaimRequests(requests={"storage": spec.size}),
    )
    return crds.Storage(volume_claim_template=crds.ClaimTemplate(spec=claim))


def _security() -> crds.PodSecurity:
    """What the Pod Security level ``restricted`` asks of a pod; the operator sees to the containers."""
    return crds.PodSecurity(
        run_as_non_root=True,
        run_as_user=_NOBODY,
        run_as_group=_NOBODY,
        fs_group=_NOBODY,
        seccomp_profile=crds.SeccompProfile(type="RuntimeDefault"),
    )


def _spread(name: str) -> list[crds.TopologySpread]:
    """Replicas on different nodes, where there are several."""
    pods = crds.LabelSelector(match_labels=_pod_labels(name))
    return [
        crds.TopologySpread(
            max_skew=1,
            topology_key="kubernetes.io/hostname",
            when_unsatisfiable="ScheduleAnyway",
            label_selector=pods,
        )
    ]


def _version(image: str) -> str | None:
    # The operator reads it as a number of a release, which no digest is; without one it takes its own.
    return parse_image(image).tag
