"""One model as a service: everything that an expert would have written around one Triton."""

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from components.crds import custom_resource
from components.serving import autoscaling, model_config, network, observability, workload
from spec import names
from spec.monitoring import MonitoringSpec
from spec.resolve import Model, Revision


class TritonServiceArgs(Args):
    """Arguments of :class:`TritonService`.

    Attributes:
        model: the resolved model.
        namespace: an existing namespace.
        monitoring: how Prometheus finds the pods.
    """

    model: Model
    namespace: str
    monitoring: MonitoringSpec


class TritonService(pulumi.ComponentResource):
    """The Service of a model, and for each revision all that its Deployment needs.

    A revision has objects of its own only, so that adding, promoting or dropping one leaves the others alone.
    """

    def __init__(self, name: str, args: TritonServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:serving:TritonService", name, None, opts)
        self._namespace, self._monitoring = args.namespace, args.monitoring
        for revision in args.model.revisions:
            self._revision(revision)
        k8s.core.v1.Service(name, network.model_service(args.model, args.namespace), self._child())
        if args.monitoring.operator:
            metadata = observability.monitor_metadata(args.model, args.namespace, args.monitoring)
            monitor = observability.service_monitor(args.model, args.namespace, args.monitoring)
            custom_resource(name, metadata, monitor, self._child())
        self.register_outputs({})

    def _revision(self, revision: Revision) -> None:
        name, namespace = names.workload(revision.model, revision.name), self._namespace
        deployment = self._deployment(name, revision)
        annotations = observability.scrape_annotations(self._monitoring)
        k8s.core.v1.Service(name, network.revision_service(revision, namespace, annotations), self._child())
        k8s.policy.v1.PodDisruptionBudget(name, network.disruption_budget(revision, namespace), self._child())
        k8s.networking.v1.NetworkPolicy(name, network.network_policy(revision, namespace), self._child())
        if not revision.scaling.fixed:
            k8s.autoscaling.v2.HorizontalPodAutoscaler(
                name, autoscaling.autoscaler(revision, namespace), self._child(depends_on=[deployment])
            )
        if self._monitoring.operator:
            metadata = observability.rule_metadata(revision, namespace, self._monitoring)
            rule = observability.prometheus_rule(revision, namespace, self._monitoring)
            custom_resource(name, metadata, rule, self._child())

    def _deployment(self, name: str, revision: Revision) -> k8s.apps.v1.Deployment:
        config: list[pulumi.Resource] = []
        if revision.configs:
            config_name = names.config_map(revision.model, revision.name)
            config_map = model_config.config_map(revision, self._namespace)
            config.append(k8s.core.v1.ConfigMap(config_name, config_map, self._child()))
        options = pulumi.ResourceOptions(
            depends_on=config,
            custom_timeouts=pulumi.CustomTimeouts(
                create=f"{workload.progress_seconds(revision)}s", update=f"{workload.rollout_seconds(revision)}s"
            ),
        )
        return k8s.apps.v1.Deployment(
            name, workload.deployment(revision, self._namespace), pulumi.ResourceOptions.merge(self._child(), options)
        )

    def _child(self, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on)
