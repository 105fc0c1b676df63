"""The whole estate of one stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pulumi
import pulumi_kubernetes as k8s

from components import outputs
from components.args import Args
from components.crds import custom_resource
from components.gpu.dcgm_exporter import DcgmExporter, DcgmExporterArgs
from components.gpu.device_plugin import NvidiaDevicePlugin, NvidiaDevicePluginArgs
from components.gpu.hami import HamiVgpu, HamiVgpuArgs
from components.gpu.node_pool import GpuNodePool, GpuNodePoolArgs
from components.ingress import access, discovery, model_routes, tokens
from components.ingress.gateway import IstioIngress, IstioIngressArgs
from components.ingress.model_routes import ModelRoutes, ModelRoutesArgs
from components.monitoring import rules
from components.monitoring.grafana import Grafana, GrafanaArgs
from components.monitoring.keda import Keda, KedaArgs
from components.monitoring.metrics_adapter import MetricsAdapter, MetricsAdapterArgs
from components.monitoring.operator import operator_release
from components.monitoring.prometheus import Prometheus, PrometheusArgs, watched_namespaces
from components.serving import heartbeat
from components.serving.triton_service import TritonService, TritonServiceArgs
from spec import names
from spec.autoscaler import metrics_age, relist_interval, windows
from spec.catalog import Estate
from spec.estate import ClusterSpec, EstateSpec
from spec.gpu_software import HAMI_MODES, pools_in
from spec.ingress import CONTROL_NAMESPACE, GATEWAY_NAMESPACE

SecurityLevel = Literal["privileged", "baseline", "restricted"]


class TritonEstateArgs(Args):
    """Arguments of :class:`TritonEstate`.

    Attributes:
        estate: the stack.
        token_keys: private keys that sign tokens, a secret; see ``spec.signing.private_keys``.
    """

    estate: Estate
    token_keys: pulumi.Output[str] | None = None


class TritonEstate(pulumi.ComponentResource):
    """GPU pools, namespace and one TritonService a model.

    Attributes:
        outputs: what the stack exports, by output name.
    """

    outputs: dict[str, object]

    def __init__(self, name: str, args: TritonEstateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:index:TritonEstate", name, None, opts)
        spec = args.estate.spec
        self._provider = _provider(spec.cluster, pulumi.ResourceOptions(parent=self))
        self._namespaces: dict[str, k8s.core.v1.Namespace] = {}
        namespace = self._namespace(spec.namespace, "serving", "restricted")
        # What brings the kinds of monitors and rules, where this stack does.
        self._operator = self._install_operator(spec)
        pools = {
            pool.name: GpuNodePool(pool.name, GpuNodePoolArgs(pool=pool), self._child()) for pool in spec.gpu_pools
        }
        if any(revision.heartbeat for model in args.estate.models for revision in model.revisions):
            k8s.core.v1.ConfigMap(
                heartbeat.CODE_CONFIG_MAP,
                heartbeat.code_config_map(spec.namespace),
                self._child(depends_on=[namespace]),
            )
        hami, hami_pools = self._gpu_software(spec), {pool.name for pool in pools_in(spec.gpu_pools, HAMI_MODES)}
        keda = self._install_autoscaler(spec)
        ingress = self._install_ingress(args.estate)
        sidecars = ingress.injects if ingress else []
        serving: dict[str, list[pulumi.Resource]] = {}
        for model in args.estate.models:
            # On the nodes, not on the pool: a dependency on a component costs one edge for each of its children.
            used = {revision.pool.name for revision in model.revisions if revision.pool}
            nodes = [node for name in sorted(used) for node in pools[name].nodes]
            nodes += hami if used & hami_pools else []
            arguments = TritonServiceArgs(
                model=model,
                namespace=spec.namespace,
                monitoring=spec.monitoring,
                autoscaler=spec.autoscaler,
                access=access.access(spec, model.spec.traffic),
            )
            options = self._child(depends_on=[namespace, *self._operator, *keda, *sidecars, *nodes])
            serving[model.name] = TritonService(model.name, arguments, options).serving
        self._watch(args.estate)
        self._show(spec)
        self.outputs = outputs.contract(args.estate)
        if ingress:
            self._expose(args.estate, ingress, namespace, serving)
        if spec.tokens and spec.tokens.consumers and spec.ingress and args.token_keys is not None:
            self.outputs |= {"tokens": tokens.minted(spec.tokens, spec.ingress, args.token_keys)}
        self.register_outputs({})

    def _install_ingress(self, estate: Estate) -> IstioIngress | None:
        """The gateways, and Istio where this stack brings it."""
        spec = estate.spec
        if spec.ingress is None:
            return None
        below: list[pulumi.Resource] = []
        if spec.ingress.provider == "managed":
            # The CNI plugin sets up the network of pods from their nodes.
            level: SecurityLevel = "privileged" if spec.ingress.sidecars else "baseline"
            below = [
                self._namespace(CONTROL_NAMESPACE, "istio", level),
                self._namespace(GATEWAY_NAMESPACE, "gateways", "baseline"),
            ]
        arguments = IstioIngressArgs(
            ingress=spec.ingress,
            tokens=spec.tokens,
            models=estate.models,
            namespace=spec.namespace,
            charts=dict(spec.charts),
        )
        return IstioIngress("ingress", arguments, self._child(depends_on=below))

    def _expose(
        self,
        estate: Estate,
        ingress: IstioIngress,
        namespace: pulumi.Resource,
        serving: Mapping[str, list[pulumi.Resource]],
    ) -> None:
        """The routes to models, each of which waits for its own model only."""
        spec, models = estate.spec, estate.models
        if spec.ingress is None:
            return
        ready = ingress.ready
        copies = model_routes.copies(models)
        for model in models:
            routes = ModelRoutesArgs(
                model=model,
                copies=copies[model.name],
                ingress=spec.ingress,
                tokens=spec.tokens,
                access=access.access(spec, model.spec.traffic),
                namespace=spec.namespace,
            )
            ModelRoutes(model.name, routes, self._child(depends_on=[namespace, *ready, *serving[model.name]]))
        everything = [namespace, *ready, *(resource for name in serving for resource in serving[name])]
        options = self._child(depends_on=everything)
        model_routes.shared_routes(spec.ingress, models, spec.namespace, options)
        k8s.core.v1.ConfigMap(discovery.NAME, discovery.config_map(self.outputs, spec.namespace), options)

    def _install_operator(self, spec: EstateSpec) -> list[pulumi.Resource]:
        if not spec.monitoring.install_operator:
            return []
        options = self._child(depends_on=[self._namespace(names.MONITORING_NAMESPACE, "monitoring", "restricted")])
        return [operator_release(spec.monitoring, dict(spec.charts), options)]

    def _install_autoscaler(self, spec: EstateSpec) -> list[pulumi.Resource]:
        """Install what measures for the HPAs; returns what has to be there before a ScaledObject."""
        autoscaler, monitoring = spec.autoscaler, spec.monitoring
        if autoscaler.provider == "existing":
            return []
        namespace = self._namespace(names.MONITORING_NAMESPACE, "monitoring", "restricted")
        options = self._child(depends_on=[namespace, *self._operator])
        if autoscaler.installs_keda:
            settings = KedaArgs(namespace=names.MONITORING_NAMESPACE, charts=dict(spec.charts), monitoring=monitoring)
            return [Keda("keda", settings, options).release]
        arguments = MetricsAdapterArgs(
            namespace=names.MONITORING_NAMESPACE,
            prometheus=spec.prometheus_url or "",
            windows=windows(autoscaler, monitoring),
            relist_interval=relist_interval(autoscaler, monitoring),
            metrics_age=metrics_age(autoscaler, monitoring),
            issuer=autoscaler.tls.issuer if autoscaler.tls else None,
        )
        MetricsAdapter("metrics-adapter", arguments, options)
        return []

    def _watch(self, estate: Estate) -> None:
        """Prometheus, and the alerts about the platform."""
        spec, monitoring = estate.spec, estate.spec.monitoring
        if monitoring.prometheus is None:
            return
        namespaces = watched_namespaces(spec)
        if monitoring.operator:
            options = self._child(depends_on=[self._namespaces[spec.namespace], *self._operator])
            custom_resource(rules.NAME, rules.metadata(estate), rules.platform_rule(estate, namespaces), options)
        if monitoring.prometheus.provider == "managed":
            namespace = self._namespace(names.MONITORING_NAMESPACE, "monitoring", "restricted")
            arguments = PrometheusArgs(prometheus=monitoring.prometheus, monitoring=monitoring, namespaces=namespaces)
            Prometheus("prometheus", arguments, self._child(depends_on=[namespace, *self._operator]))

    def _show(self, spec: EstateSpec) -> None:
        """The dashboards, in a Grafana made here or in one that is there."""
        grafana = spec.monitoring.grafana
        if grafana is None:
            return
        if grafana.namespace is None:
            self._namespace(names.MONITORING_NAMESPACE, "monitoring", "restricted")
        namespace = grafana.namespace or names.MONITORING_NAMESPACE
        # A namespace that the stack file names is there already, unless another part of the stack makes it.
        made: list[pulumi.Resource] = [self._namespaces[namespace]] if namespace in self._namespaces else []
        arguments = GrafanaArgs(
            grafana=grafana,
            namespace=namespace,
            prometheus_url=spec.prometheus_url,
            scrape_interval=spec.monitoring.scrape_interval,
            windows=windows(spec.autoscaler, spec.monitoring),
            pools=spec.gpu_pools,
        )
        Grafana("grafana", arguments, self._child(depends_on=made))

    def _gpu_software(self, spec: EstateSpec) -> list[pulumi.Resource]:
        """Install what serves the GPUs; returns what has to be there before a pod of a HAMi pool."""
        software, pools = spec.gpu_software, spec.gpu_pools
        if "managed" not in dict(software).values():
            return []
        namespace = self._namespace(names.GPU_NAMESPACE, "gpu-software", "privileged")
        options = self._child(depends_on=[namespace, *self._operator])
        # Pods with whole cards, slices or shares wait for their plugin by themselves: until then no node has any.
        if software.device_plugin == "managed":
            NvidiaDevicePlugin("nvidia-device-plugin", NvidiaDevicePluginArgs(pools=pools), options)
        if software.dcgm_exporter == "managed":
            DcgmExporter("dcgm-exporter", DcgmExporterArgs(pools=pools, monitoring=spec.monitoring), options)
        if software.hami != "managed":
            return []
        args = HamiVgpuArgs(
            pools=pools_in(pools, HAMI_MODES),
            namespace=spec.namespace,
            monitoring=spec.monitoring,
            charts=dict(spec.charts),
        )
        return [HamiVgpu("hami", args, options).release]

    def _namespace(self, name: str, component: str, level: SecurityLevel) -> k8s.core.v1.Namespace:
        """A namespace that admits pods of this Pod Security level; the same one for whoever asks again."""
        if name not in self._namespaces:
            labels = names.estate_labels(component) | {"pod-security.kubernetes.io/enforce": level}
            metadata = k8s.meta.v1.ObjectMetaArgs(name=name, labels=labels)
            self._namespaces[name] = k8s.core.v1.Namespace(name, metadata=metadata, opts=self._child())
        return self._namespaces[name]

    def _child(self, depends_on: list[pulumi.Resource] | None = None) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, provider=self._provider, depends_on=depends_on)


def _provider(cluster: ClusterSpec, opts: pulumi.ResourceOptions) -> k8s.Provider:
    kubeconfig = str(Path(cluster.kubeconfig).expanduser()) if cluster.kubeconfig else None
    context = names.EMBEDDED_CONTEXT if cluster.provider == "embedded" else cluster.context
    return k8s.Provider(
        "cluster",
        kubeconfig=kubeconfig,
        context=context,
        # Another path or port of the same cluster must not replace everything on it.
        cluster_identifier=context or cluster.provider,
        # A changed config.pbtxt rolls the pods through its hash; replacing a ConfigMap or Secret would pull it from
        # under running ones.
        enable_config_map_mutable=True,
        enable_secret_mutable=True,
        opts=opts,
    )
