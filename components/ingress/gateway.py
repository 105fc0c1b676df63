"""Istio and the gateways: what there is once for the whole estate."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
import pulumi_kubernetes as k8s

from components import versions
from components.args import Args
from components.certificates import Certificate, IssuerRef
from components.charts import chart_release
from components.crds import custom_resource
from components.ingress import limits, tokens
from components.ingress.crds import Gateway, Server, ServerPort, ServerTls
from components.ingress.policy_crds import AccessLogging, LogProvider, Telemetry, WorkloadSelector
from spec import ingress as settings
from spec import names
from spec.fields import duration_seconds
from spec.ingress import CONTROL_NAMESPACE, GATEWAY_NAMESPACE, HTTP_PORT, HTTPS_PORT, RELEASES, IngressSpec
from spec.resolve import Model
from spec.tokens import TokensSpec

_CPU_PERCENT: Final = 70
# Requests stream through; this is for connections, routes of a hundred models and copies of requests.
_RESOURCES: Final = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}
_DRAIN_SECONDS: Final = 15


class IstioIngressArgs(Args):
    """Arguments of :class:`IstioIngress`.

    Attributes:
        ingress: how requests come in.
        tokens: whose tokens are good, None where no model asks for one.
        models: of the estate.
        namespace: of the models.
        charts: folders or archives that charts are taken from, by name.
    """

    ingress: IngressSpec
    tokens: TokensSpec | None
    models: Sequence[Model]
    namespace: str
    charts: Mapping[str, str]


class IstioIngress(pulumi.ComponentResource):
    """Istio where it is managed, and each gateway with its certificate, log, token check and limits.

    The namespaces have to be there; a managed Istio brings its kinds.

    Attributes:
        ready: what routes and policies wait for.
        injects: what has to be there before a pod that asks for a sidecar; a pod that comes sooner runs without one.
    """

    ready: list[pulumi.Resource]
    injects: list[pulumi.Resource]

    def __init__(self, name: str, args: IstioIngressArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:ingress:IstioIngress", name, None, opts)
        self.injects = []
        self.ready = self._istio(args)
        for gateway in settings.gateways(args.ingress):
            self._gateway(gateway, args)
        self.register_outputs({})

    def _istio(self, args: IstioIngressArgs) -> list[pulumi.Resource]:
        ingress, charts = args.ingress, args.charts
        if ingress.provider == "existing":
            return []
        base = chart_release("istio-base", versions.ISTIO_BASE, CONTROL_NAMESPACE, {}, charts, self._child())
        below: list[pulumi.Resource] = [base]
        if ingress.sidecars:
            cni = chart_release("istio-cni", versions.ISTIO_CNI, CONTROL_NAMESPACE, {}, charts, self._child(below))
            below = [base, cni]
        values = istiod_values(ingress)
        istiod = chart_release("istiod", versions.ISTIOD, CONTROL_NAMESPACE, values, charts, self._child(below))
        self.injects = [istiod] if ingress.sidecars else []
        found: list[pulumi.Resource] = [base, istiod]
        for gateway in settings.gateways(ingress):
            release, values = RELEASES[gateway.name], gateway_values(ingress, gateway, args.models)
            options = self._child([istiod])
            chart = versions.ISTIO_GATEWAY
            found.append(chart_release(release, chart, GATEWAY_NAMESPACE, values, charts, options))
        return found

    def _gateway(self, gateway: settings.Gateway, args: IstioIngressArgs) -> None:
        name, shared = gateway.resource, metadata(gateway)
        options = self._child(self.ready)
        custom_resource(name, shared, gateway_resource(gateway, args.namespace), options)
        if issued := certificate(gateway):
            custom_resource(name, shared, issued, self._child())
        if args.ingress.access_logs:
            custom_resource(name, shared, telemetry(gateway), options)
        if args.tokens:
            custom_resource(name, shared, tokens.request_authentication(args.tokens, args.ingress, gateway), options)
        changes = limits.envoy_filter(gateway, args.models, checks_tokens=args.tokens is not None)
        if changes:
            custom_resource(name, shared, changes, options)

    def _child(self, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(depends_on))


def metadata(gateway: settings.Gateway) -> k8s.meta.v1.ObjectMetaArgs:
    """Beside the gateway's pods."""
    return k8s.meta.v1.ObjectMetaArgs(
        name=gateway.resource, namespace=gateway.namespace, labels=names.estate_labels(f"{gateway.name}-gateway")
    )


def istiod_values(ingress: IngressSpec) -> dict[str, Any]:
    """Values of the chart istiod: two replicas, because new gateway pods start with what one of them says."""
    found: dict[str, Any] = {"autoscaleMin": 2}
    return found | ({"pilot": {"cni": {"enabled": True}}} if ingress.sidecars else {})


def gateway_values(ingress: IngressSpec, gateway: settings.Gateway, models: Sequence[Model]) -> dict[str, Any]:
    """Values of the chart gateway.

    A pod that has to go finishes what is in flight, so it may take as long as the longest request of any model.
    """
    longest = max((duration_seconds(model.spec.traffic.timeout) for model in models), default=0)
    labels = {"matchLabels": dict(gateway.selector)}
    spread = {"maxSkew": 1, "topologyKey": "", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": labels}
    return {
        "autoscaling": {
            "enabled": True,
            "minReplicas": ingress.replicas.min,
            "maxReplicas": ingress.replicas.max,
            "targetCPUUtilizationPercentage": _CPU_PERCENT,
        },
        # The chart leaves it out for a single replica, which could otherwise never be drained.
        "podDisruptionBudget": {"maxUnavailable": 1},
        "topologySpreadConstraints": [
            spread | {"topologyKey": key} for key in ("topology.kubernetes.io/zone", "kubernetes.io/hostname")
        ],
        "nodeSelector": dict(ingress.node_selector),
        "resources": _RESOURCES,
        "service": {"type": gateway.spec.service.type, "annotations": dict(gateway.spec.service.annotations)},
        "env": {
            "EXIT_ON_ZERO_ACTIVE_CONNECTIONS": "true",
            # Until load balancers have noticed that the pod is going.
            "MINIMUM_DRAIN_DURATION": f"{_DRAIN_SECONDS}s",
        },
        "terminationGracePeriodSeconds": int(longest) + 2 * _DRAIN_SECONDS,
        "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }


def gateway_resource(gateway: settings.Gateway, namespace: str) -> Gateway:
    """What a gateway listens to: HTTP/1.1 and HTTP/2, so gRPC too, on one port. Routes come from one namespace only."""
    domain, shared = gateway.spec.domain, gateway.spec.prefix_host
    hosts = [f"{namespace}/*.{domain}", *([f"{namespace}/{domain}"] if shared == domain else [])]
    plain = ServerPort(number=HTTP_PORT, name="http", protocol="HTTP")
    if gateway.spec.tls is None:
        return Gateway(selector=dict(gateway.selector), servers=[Server(port=plain, hosts=hosts)])
    tls = ServerTls(mode="SIMPLE", credential_name=certificate_secret(gateway), min_protocol_version="TLSV1_2")
    secure = ServerPort(number=HTTPS_PORT, name="https", protocol="HTTPS")
    return Gateway(
        selector=dict(gateway.selector),
        servers=[
            Server(port=secure, hosts=hosts, tls=tls),
            Server(port=plain, hosts=hosts, tls=ServerTls(https_redirect=True)),
        ],
    )


def certificate_secret(gateway: settings.Gateway) -> str:
    """The Secret with the certificate, in the namespace of the gateway's pods."""
    tls = gateway.spec.tls
    return tls.secret if tls and tls.secret else f"{names.PROJECT}-{gateway.name}-tls"


def certificate(gateway: settings.Gateway) -> Certificate | None:
    """The certificate for all hosts of a gateway, where cert-manager makes it."""
    tls, domain = gateway.spec.tls, gateway.spec.domain
    if tls is None or tls.issuer is None:
        return None
    hosts = [f"*.{domain}", *([domain] if gateway.spec.prefix_host == domain else [])]
    secret = certificate_secret(gateway)
    return Certificate(secret_name=secret, dns_names=hosts, issuer_ref=IssuerRef(name=tls.issuer))


def telemetry(gateway: settings.Gateway) -> Telemetry:
    """A line for each request on the standard output of the gateway's pods; no header of a request is in it."""
    selector = WorkloadSelector(match_labels=dict(gateway.selector))
    return Telemetry(selector=selector, access_logging=[AccessLogging(providers=[LogProvider()])])
