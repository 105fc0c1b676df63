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


class Endpoint(Part):
    """What is scraped of each pod; ``port`` is the name of the Service's port."""

    port: str
    path: str
    scheme: Literal["http", "https"]
    interval: str
    scrape_timeout: str
    honor_labels: bool


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


def custom_resource(
    name: str, metadata: k8s.meta.v1.ObjectMetaArgs, spec: CustomSpec, opts: pulumi.ResourceOptions
) -> k8s.apiextensions.CustomResource:
    """Register a custom resource."""
    plain = spec.model_dump(by_alias=True)
    return k8s.apiextensions.CustomResource(name, spec.API_VERSION, spec.KIND, plain, metadata, opts)
