"""One model as a service: everything that an expert would have written around one Triton."""

from typing import Final

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from components.crds import custom_resource
from components.ingress import access
from components.ingress.access import Access
from components.serving import (
    autoscaling,
    debug,
    heartbeat,
    model_config,
    network,
    observability,
    runtime,
    scaled_object,
    workload,
)
from components.serving.scaled_object import ScaledObject
from spec import names
from spec.autoscaler import AutoscalerSpec, windows
from spec.heartbeat import Heartbeat
from spec.model import DebugSpec
from spec.monitoring import MonitoringSpec
from spec.prometheus import prometheus_url
from spec.resolve import Model, Revision

# With another backend the ScaledObject, and with it KEDA's HPA, goes before our HPA comes, or the other way round. Both
# HPAs have one name: made over KEDA's, ours would be refused, or go with the ScaledObject that owns it.
_ONE_AUTOSCALER: Final = pulumi.ResourceOptions(
    aliases=[
        pulumi.Alias(type_=f"kubernetes:{kind}")
        for kind in ("autoscaling/v2:HorizontalPodAutoscaler", f"{ScaledObject.API_VERSION}:{ScaledObject.KIND}")
    ],
    replace_on_changes=["kind"],
    delete_before_replace=True,
)


class TritonServiceArgs(Args):
    """Arguments of :class:`TritonService`.

    Attributes:
        model: the resolved model.
        namespace: an existing namespace.
        monitoring: how Prometheus finds the pods.
        autoscaler: who tells the autoscalers their metrics.
        access: who comes in, None where the stack has no gateway.
    """

    model: Model
    namespace: str
    monitoring: MonitoringSpec
    autoscaler: AutoscalerSpec
    access: Access | None = None


class TritonService(pulumi.ComponentResource):
    """The Service of a model, and for each revision all that its Deployment needs.

    A revision has objects of its own only, so that adding, promoting or dropping one leaves the others alone.

    Attributes:
        serving: Deployments and Services of the revisions; routes to them wait for these.
    """

    serving: list[pulumi.Resource]

    def __init__(self, name: str, args: TritonServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:serving:TritonService", name, None, opts)
        self._namespace, self._monitoring = args.namespace, args.monitoring
        self._backend = args.autoscaler
        self._access, self._needs_token = args.access, args.model.needs_token
        self.serving = []
        for revision in args.model.revisions:
            self._revision(revision)
        k8s.core.v1.Service(name, network.model_service(args.model, args.namespace), self._child())
        if args.model.spec.debug:
            self._debug(args.model, args.model.spec.debug)
        if args.monitoring.operator:
            metadata = observability.monitor_metadata(args.model, args.namespace, args.monitoring)
            monitor = observability.service_monitor(args.model, args.namespace, args.monitoring)
            custom_resource(name, metadata, monitor, self._child())
        self.register_outputs({})

    def _revision(self, revision: Revision) -> None:
        name, namespace = names.workload(revision.model, revision.name), self._namespace
        deployment = self._deployment(name, revision)
        annotations = observability.scrape_annotations(self._monitoring, runtime.METRICS_PORT)
        service = k8s.core.v1.Service(name, network.revision_service(revision, namespace, annotations), self._child())
        self.serving += [deployment, service]
        k8s.policy.v1.PodDisruptionBudget(name, network.disruption_budget(revision, namespace), self._child())
        policy = access.network_policy(revision, namespace, self._access, needs_token=self._needs_token)
        k8s.networking.v1.NetworkPolicy(name, policy, self._child())
        if not revision.scaling.fixed:
            self._autoscaler(name, revision, deployment)
        if self._monitoring.operator:
            metadata = observability.rule_metadata(revision, namespace, self._monitoring)
            rule = observability.prometheus_rule(revision, namespace, self._monitoring)
            custom_resource(name, metadata, rule, self._child())
        if revision.heartbeat:
            self._heartbeat(revision, revision.heartbeat)

    def _autoscaler(self, name: str, revision: Revision, deployment: k8s.apps.v1.Deployment) -> None:
        namespace = self._namespace
        options = pulumi.ResourceOptions.merge(self._child(depends_on=[deployment]), _ONE_AUTOSCALER)
        if self._backend.backend == "adapter":
            k8s.autoscaling.v2.HorizontalPodAutoscaler(name, autoscaling.autoscaler(revision, namespace), options)
            return
        ranges, prometheus = windows(self._backend, self._monitoring), prometheus_url(self._monitoring)
        spec = scaled_object.scaled_object(revision, namespace, ranges, prometheus)
        custom_resource(name, scaled_object.metadata(revision, namespace), spec, options)

    def _heartbeat(self, revision: Revision, beat: Heartbeat) -> None:
        name, namespace = names.heartbeat(revision.model, revision.name), self._namespace
        settings = k8s.core.v1.ConfigMap(name, heartbeat.settings_config_map(revision, beat, namespace), self._child())
        annotations = observability.scrape_annotations(self._monitoring, heartbeat.METRICS_PORT)
        k8s.core.v1.Service(name, heartbeat.service(revision, namespace, annotations), self._child())
        k8s.core.v1.Service(
            names.replicas(revision.model, revision.name),
            heartbeat.replicas_service(revision, namespace),
            self._child(),
        )
        k8s.networking.v1.NetworkPolicy(name, heartbeat.network_policy(revision, namespace), self._child())
        labels = access.companion_labels(self._access)
        k8s.apps.v1.Deployment(
            name, heartbeat.deployment(revision, beat, namespace, labels), self._child(depends_on=[settings])
        )

    def _debug(self, model: Model, twin: DebugSpec) -> None:
        name = names.debug(model.name)
        labels = access.companion_labels(self._access)
        k8s.core.v1.Pod(name, debug.pod(model, twin, self._namespace, labels), self._child())
        k8s.networking.v1.NetworkPolicy(name, debug.network_policy(model, self._namespace), self._child())

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
        labels = access.pod_labels(self._access) if self._access else {}
        annotations = access.pod_annotations(self._access) if self._access else {}
        return k8s.apps.v1.Deployment(
            name,
            workload.deployment(revision, self._namespace, labels, annotations),
            pulumi.ResourceOptions.merge(self._child(), options),
        )

    def _child(self, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=depends_on)
