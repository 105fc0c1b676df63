"""prometheus-adapter: answers the custom metrics API from Prometheus."""

from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.args import Args
from components.certificates import Certificate, IssuerRef
from components.crds import custom_resource
from components.monitoring import adapter_access, adapter_rules
from components.monitoring.adapter_access import NAME, labels, metadata
from components.rolling import rolled_by
from components.serving import objects
from spec import names
from spec.signals import Windows

_GROUP: Final = "custom.metrics.k8s.io"
# The adapter serves both; of the two the API server prefers the one with the higher priority.
_VERSIONS: Final = {"v1beta1": 100, "v1beta2": 200}
_REPLICAS: Final = 2
_PORT: Final = 6443
_PORT_NAME: Final = "https"
_CONFIG_PATH: Final = "/etc/adapter"
_CONFIG_FILE: Final = "config.yaml"
_CERTIFICATE_PATH: Final = "/var/run/serving-cert"
# What the project's own manifests ask for; it keeps the names of all series of the rules in memory.
_CPU: Final = "100m"
_MEMORY: Final = "256Mi"


class MetricsAdapterArgs(Args):
    """Arguments of :class:`MetricsAdapter`.

    Attributes:
        namespace: an existing namespace.
        prometheus: URL of the Prometheus that is asked.
        windows: ranges of the queries.
        relist_interval: how often it looks for metrics.
        metrics_age: how old the last sample of a metric may be.
        issuer: ClusterIssuer of its certificate, None for one that it makes itself and nobody checks.
    """

    namespace: str
    prometheus: str
    windows: Windows
    relist_interval: str
    metrics_age: str
    issuer: str | None = None


class MetricsAdapter(pulumi.ComponentResource):
    """The adapter, its rules, and the API that it serves. A cluster has one provider of that API."""

    def __init__(self, name: str, args: MetricsAdapterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:monitoring:MetricsAdapter", name, None, opts)
        account = k8s.core.v1.ServiceAccount(NAME, adapter_access.service_account(args.namespace), self._child())
        access = self._access(args.namespace)
        config = k8s.core.v1.ConfigMap(NAME, config_map(args), self._child())
        certificate: list[pulumi.Resource] = []
        if args.issuer:
            spec = serving_certificate(args.namespace, args.issuer)
            certificate = [custom_resource(NAME, metadata(NAME, args.namespace), spec, self._child())]
        service = k8s.core.v1.Service(NAME, api_service(args.namespace), self._child())
        k8s.policy.v1.PodDisruptionBudget(NAME, disruption_budget(args.namespace), self._child())
        adapter = k8s.apps.v1.Deployment(NAME, deployment(args), self._child([account, *access, config, *certificate]))
        for version in _VERSIONS:
            k8s.apiregistration.v1.APIService(
                f"{version}.{_GROUP}", registration(version, args), self._child([service, adapter])
            )
        self.register_outputs({})

    def _access(self, namespace: str) -> list[pulumi.Resource]:
        """Rights, named as the objects that hold them."""
        roles = adapter_access.cluster_roles()
        bindings = adapter_access.cluster_role_bindings(namespace)
        reader = adapter_access.authentication_reader(namespace)
        return [
            *(k8s.rbac.v1.ClusterRole(_name(role.metadata), role, self._child()) for role in roles),
            *(k8s.rbac.v1.ClusterRoleBinding(_name(one.metadata), one, self._child()) for one in bindings),
            k8s.rbac.v1.RoleBinding(_name(reader.metadata), reader, self._child()),
        ]

    def _child(self, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on)


def _name(found: object) -> str:
    if not isinstance(found, k8s.meta.v1.ObjectMetaArgs) or not isinstance(found.name, str):
        raise TypeError(found)
    return found.name


def config_map(args: MetricsAdapterArgs) -> k8s.core.v1.ConfigMapInitArgs:
    """The rules."""
    data = {_CONFIG_FILE: adapter_rules.config(args.windows)}
    return k8s.core.v1.ConfigMapInitArgs(metadata=metadata(NAME, args.namespace), data=data)


def api_service(namespace: str) -> k8s.core.v1.ServiceInitArgs:
    """What the API server talks to."""
    return k8s.core.v1.ServiceInitArgs(
        metadata=metadata(NAME, namespace),
        spec=k8s.core.v1.ServiceSpecArgs(
            selector=_selector(),
            ports=[k8s.core.v1.ServicePortArgs(name=_PORT_NAME, port=443, target_port=_PORT_NAME)],
        ),
    )


def disruption_budget(namespace: str) -> k8s.policy.v1.PodDisruptionBudgetInitArgs:
    """One replica stays while nodes are drained: without an answer no HPA moves."""
    return k8s.policy.v1.PodDisruptionBudgetInitArgs(
        metadata=metadata(NAME, namespace),
        spec=k8s.policy.v1.PodDisruptionBudgetSpecArgs(max_unavailable=1, selector=_label_selector()),
    )


def serving_certificate(namespace: str, issuer: str) -> Certificate:
    """The certificate for the name by which the API server calls the adapter."""
    return Certificate(
        secret_name=f"{NAME}-tls",
        dns_names=[f"{NAME}.{namespace}.svc"],
        issuer_ref=IssuerRef(name=issuer),
    )


def registration(version: str, args: MetricsAdapterArgs) -> k8s.apiregistration.v1.APIServiceInitArgs:
    """Makes the API server hand one version of the API on to the adapter."""
    found = metadata(f"{version}.{_GROUP}")
    if args.issuer:
        found.annotations = {"cert-manager.io/inject-ca-from": f"{args.namespace}/{NAME}"}
    return k8s.apiregistration.v1.APIServiceInitArgs(
        metadata=found,
        spec=k8s.apiregistration.v1.APIServiceSpecArgs(
            group=_GROUP,
            version=version,
            group_priority_minimum=100,
            version_priority=_VERSIONS[version],
            # Nobody can check a certificate that the adapter signs itself.
            insecure_skip_tls_verify=None if args.issuer else True,
            service=k8s.apiregistration.v1.ServiceReferenceArgs(name=NAME, namespace=args.namespace, port=443),
        ),
    )


def deployment(args: MetricsAdapterArgs) -> k8s.apps.v1.DeploymentInitArgs:
    """Two replicas on two nodes; a changed rule rolls them."""
    read = {"config": adapter_rules.config(args.windows)}
    return k8s.apps.v1.DeploymentInitArgs(
        metadata=metadata(NAME, args.namespace),
        spec=k8s.apps.v1.DeploymentSpecArgs(
            replicas=_REPLICAS,
            selector=_label_selector(),
            strategy=k8s.apps.v1.DeploymentStrategyArgs(
                type="RollingUpdate",
                rolling_update=k8s.apps.v1.RollingUpdateDeploymentArgs(max_surge=1, max_unavailable=0),
            ),
            template=k8s.core.v1.PodTemplateSpecArgs(
                metadata=k8s.meta.v1.ObjectMetaArgs(labels=labels(), annotations=rolled_by(read)),
                spec=_pod(args),
            ),
        ),
    )


def _pod(args: MetricsAdapterArgs) -> k8s.core.v1.PodSpecArgs:
    secret = k8s.core.v1.SecretVolumeSourceArgs(secret_name=f"{NAME}-tls") if args.issuer else None
    own = None if args.issuer else k8s.core.v1.EmptyDirVolumeSourceArgs()
    return k8s.core.v1.PodSpecArgs(
        service_account_name=NAME,
        automount_service_account_token=True,
        enable_service_links=False,
        security_context=objects.pod_security(),
        topology_spread_constraints=[
            k8s.core.v1.TopologySpreadConstraintArgs(
                max_skew=1,
                topology_key="kubernetes.io/hostname",
                when_unsatisfiable="ScheduleAnyway",
                label_selector=_label_selector(),
            )
        ],
        containers=[_container(args)],
        volumes=[
            objects.config_map_volume("config", NAME),
            k8s.core.v1.VolumeArgs(name="serving-cert", secret=secret, empty_dir=own),
            k8s.core.v1.VolumeArgs(name="tmp", empty_dir=k8s.core.v1.EmptyDirVolumeSourceArgs()),
        ],
    )


def _container(args: MetricsAdapterArgs) -> k8s.core.v1.ContainerArgs:
    own = [f"--cert-dir={_CERTIFICATE_PATH}"]
    issued = [
        f"--tls-cert-file={_CERTIFICATE_PATH}/tls.crt",
        f"--tls-private-key-file={_CERTIFICATE_PATH}/tls.key",
    ]
    return k8s.core.v1.ContainerArgs(
        name=NAME,
        image=versions.METRICS_ADAPTER_IMAGE,
        args=[
            f"--prometheus-url={args.prometheus}",
            f"--config={_CONFIG_PATH}/{_CONFIG_FILE}",
            f"--metrics-relist-interval={args.relist_interval}",
            f"--metrics-max-age={args.metrics_age}",
            f"--secure-port={_PORT}",
            *(issued if args.issuer else own),
        ],
        ports=[k8s.core.v1.ContainerPortArgs(name=_PORT_NAME, container_port=_PORT)],
        startup_probe=_probe("/readyz", failures=30),
        readiness_probe=_probe("/readyz", failures=3),
        liveness_probe=_probe("/livez", failures=5),
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": _CPU, "memory": _MEMORY}, limits={"memory": _MEMORY}
        ),
        security_context=objects.container_security(),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="config", mount_path=_CONFIG_PATH, read_only=True),
            k8s.core.v1.VolumeMountArgs(
                name="serving-cert", mount_path=_CERTIFICATE_PATH, read_only=args.issuer is not None
            ),
            k8s.core.v1.VolumeMountArgs(name="tmp", mount_path="/tmp"),  # noqa: S108  # a volume
        ],
    )


def _probe(path: str, failures: int) -> k8s.core.v1.ProbeArgs:
    return k8s.core.v1.ProbeArgs(
        http_get=k8s.core.v1.HTTPGetActionArgs(path=path, port=_PORT_NAME, scheme="HTTPS"),
        period_seconds=5,
        failure_threshold=failures,
    )


def _selector() -> dict[str, str]:
    return {key: labels()[key] for key in ("app.kubernetes.io/name", names.PART_OF_LABEL)}


def _label_selector() -> k8s.meta.v1.LabelSelectorArgs:
    return k8s.meta.v1.LabelSelectorArgs(match_labels=_selector())
