"""Custom resources, typed: the Kubernetes SDK knows only its own kinds."""

from typing import ClassVar, Literal

import pulumi
import pulumi_kubernetes as k8s
from pydantic import AliasGenerator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class Part(BaseModel):
    """Base of everything inside a custom resource."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=AliasGenerator(serialization_alias=to_camel))


class CustomSpec(Part):
    """Base of what stands under ``spec``; each kind is a subclass."""

    API_VERSION: ClassVar[str]
    KIND: ClassVar[str]


class Requirement(Part):
    """Asks for a label to be there or not."""

    key: str
    operator: Literal["Exists", "DoesNotExist"]


class LabelSelector(Part):
    """Selects objects by their labels."""

    match_labels: dict[str, str]
    match_expressions: list[Requirement] = Field(default_factory=list)


class NamespaceSelector(Part):
    """Namespaces by name."""

    match_names: list[str]


class Relabeling(Part):
    """Gives a label of the target this value; an empty one takes the label away."""

    target_label: str
    replacement: str
    action: Literal["replace"] = "replace"


class Endpoint(Part):
    """What is scraped of each pod; ``port`` is the name of the Service's port."""

    port: str
    path: str
    scheme: Literal["http", "https"]
    interval: str
    scrape_timeout: str
    honor_labels: bool
    relabelings: list[Relabeling] | None = None


class ServiceMonitor(CustomSpec):
    """Tells the Prometheus operator which Services to scrape."""

    API_VERSION = "monitoring.coreos.com/v1"
    KIND = "ServiceMonitor"

    selector: LabelSelector
    namespace_selector: NamespaceSelector
    endpoints: list[Endpoint]
    target_labels: list[str]


class Rule(Part):
    """One alert."""

    alert: str
    expr: str
    for_: str = Field(serialization_alias="for")
    labels: dict[str, str]
    annotations: dict[str, str]


class RuleGroup(Part):
    """Rules that are evaluated together."""

    name: str
    rules: list[Rule]


class PrometheusRule(CustomSpec):
    """Rules of Prometheus."""

    API_VERSION = "monitoring.coreos.com/v1"
    KIND = "PrometheusRule"

    groups: list[RuleGroup]


class NamespaceRequirement(Part):
    """Asks for a label of a namespace to have one of these values."""

    key: str
    operator: Literal["In"]
    values: list[str]


class NamespaceLabels(Part):
    """Namespaces by their labels."""

    match_expressions: list[NamespaceRequirement]


class SecretKey(Part):
    """One file of a Secret in the same namespace."""

    name: str
    key: str


class Resources(Part):
    """What a container asks for, and what it may take."""

    requests: dict[str, str]
    limits: dict[str, str]


class SeccompProfile(Part):
    """System calls that a container may make."""

    type: Literal["RuntimeDefault"]


class PodSecurity(Part):
    """Whom the processes of a pod run as."""

    run_as_non_root: bool
    run_as_user: int
    run_as_group: int
    fs_group: int
    seccomp_profile: SeccompProfile


class TopologySpread(Part):
    """Keeps replicas apart."""

    max_skew: int
    topology_key: str
    when_unsatisfiable: Literal["ScheduleAnyway"]
    label_selector: LabelSelector


class EmptyDir(Part):
    """Room on the node, lost with the pod."""

    size_limit: str


class ClaimRequests(Part):
    """What a claim asks for."""

    requests: dict[str, str]


class ClaimSpec(Part):
    """A claim of one volume."""

    access_modes: list[Literal["ReadWriteOnce"]]
    storage_class_name: str | None
    resources: ClaimRequests


class ClaimTemplate(Part):
    """A claim for each replica."""

    spec: ClaimSpec


class Storage(Part):
    """Where a replica keeps its data: one of the two."""

    empty_dir: EmptyDir | None = None
    volume_claim_template: ClaimTemplate | None = None


class AlertmanagerEndpoints(Part):
    """The Service whose pods all get every alert."""

    namespace: str
    name: str
    port: str
    api_version: Literal["v2"]


class Alerting(Part):
    """Who gets the alerts."""

    alertmanagers: list[AlertmanagerEndpoints]


class Prometheus(CustomSpec):
    """A Prometheus, which the Prometheus operator runs. A selector that is absent selects nothing."""

    API_VERSION = "monitoring.coreos.com/v1"
    KIND = "Prometheus"

    image: str
    version: str | None
    replicas: int
    retention: str
    retention_size: str
    scrape_interval: str
    evaluation_interval: str
    external_labels: dict[str, str]
    service_account_name: str
    service_discovery_role: Literal["EndpointSlice"]
    service_monitor_selector: LabelSelector
    service_monitor_namespace_selector: NamespaceLabels
    pod_monitor_selector: LabelSelector
    pod_monitor_namespace_selector: NamespaceLabels
    rule_selector: LabelSelector
    rule_namespace_selector: NamespaceLabels
    additional_scrape_configs: SecretKey
    alerting: Alerting | None
    resources: Resources
    storage: Storage
    security_context: PodSecurity
    topology_spread_constraints: list[TopologySpread]


class Alertmanager(CustomSpec):
    """An Alertmanager, which the Prometheus operator runs."""

    API_VERSION = "monitoring.coreos.com/v1"
    KIND = "Alertmanager"

    image: str
    version: str | None
    replicas: int
    config_secret: str
    automount_service_account_token: bool
    resources: Resources
    storage: Storage | None
    security_context: PodSecurity
    topology_spread_constraints: list[TopologySpread]


def custom_resource(
    name: str, metadata: k8s.meta.v1.ObjectMetaArgs, spec: CustomSpec, opts: pulumi.ResourceOptions
) -> k8s.apiextensions.CustomResource:
    """Register a custom resource; a field that is None is left out."""
    plain = spec.model_dump(by_alias=True, exclude_none=True)
    return k8s.apiextensions.CustomResource(name, spec.API_VERSION, spec.KIND, plain, metadata, opts)
