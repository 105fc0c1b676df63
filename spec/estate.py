"""The stack file: what one environment looks like."""

from typing import Annotated, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from spec.autoscaler import AutoscalerSpec, check_autoscaler
from spec.charts import ChartName, ChartPath, check_charts
from spec.fields import DnsLabel, Image, Spec, refuse, refuse_all
from spec.gpu_software import GpuSoftwareSpec, check_software
from spec.ingress import IngressSpec, check_tls, installed_charts
from spec.monitoring import MonitoringSpec
from spec.pool import GpuPoolSpec
from spec.problems import Problem
from spec.prometheus import prometheus_url
from spec.tokens import TokensSpec, check_expiry

Environment = Literal["dev", "prod"]
# The engine fills in a default for what a stack leaves out, and it knows no null.
_OR_EMPTY: Final = BeforeValidator(lambda value: None if value == {} else value)


class ClusterSpec(Spec):
    """Which cluster the stack talks to.

    Attributes:
        provider: ``embedded`` (the plane of ``python -m local``) or ``existing``.
        kubeconfig: file of an existing cluster; by default what kubectl would use.
        context: context in it; by default the current one.
    """

    provider: Literal["embedded", "existing"] = "embedded"
    kubeconfig: str | None = None
    context: str | None = None

    @model_validator(mode="after")
    def _kubeconfig_belongs_to_existing(self) -> "ClusterSpec":
        if self.provider == "embedded" and (self.kubeconfig or self.context):
            refuse(
                "kubeconfig and context are for a cluster of your own",
                fix="write provider: existing, or leave kubeconfig and context out",
                field="kubeconfig" if self.kubeconfig else "context",
            )
        return self


class EstateSpec(Spec):
    """All settings of a stack, under the project's namespace in ``Pulumi.<stack>.yaml``.

    Attributes:
        environment: ``dev`` or ``prod``: decides defaults such as the number of replicas.
        cluster: the cluster to talk to.
        namespace: where the models run.
        image: Triton image of every model that names none.
        gpu_pools: GPU nodes.
        gpu_software: what of the software on GPU nodes this stack installs.
        monitoring: how Prometheus finds the models.
        autoscaler: who tells the autoscalers their metrics.
        ingress: how requests come in; by default no gateway, and models are reached by their Services.
        tokens: whose tokens the gateways take, for models that ask for one.
        charts: folders or archives that Helm charts are taken from, by name; by default their own repositories.
        models: per model name, fields that replace those of the model file.
    """

    environment: Environment
    cluster: ClusterSpec = ClusterSpec()
    namespace: DnsLabel = "serving"
    image: Image = "nvcr.io/nvidia/tritonserver:25.08-py3"
    gpu_pools: list[GpuPoolSpec] = Field(default_factory=list)
    gpu_software: GpuSoftwareSpec = GpuSoftwareSpec()
    monitoring: MonitoringSpec = MonitoringSpec()
    autoscaler: AutoscalerSpec = AutoscalerSpec()
    ingress: Annotated[IngressSpec | None, _OR_EMPTY] = None
    tokens: Annotated[TokensSpec | None, _OR_EMPTY] = None
    charts: dict[ChartName, ChartPath] = Field(default_factory=dict)
    models: dict[str, dict[str, object]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _pool_names_differ(self) -> "EstateSpec":
        names = [pool.name for pool in self.gpu_pools]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            refuse(
                f"two GPU pools are named {', '.join(twice)}",
                fix="give each pool a name of its own",
                field="gpuPools",
            )
        return self

    @model_validator(mode="after")
    def _node_groups_have_their_cluster(self) -> "EstateSpec":
        lost = [index for index, pool in enumerate(self.gpu_pools) if pool.provider == "eks"]
        if lost and self.cluster.provider == "embedded":
            message, fix = (
                "its nodes would join another cluster than this stack's",
                "write cluster: {provider: existing}",
            )
            refuse_all([Problem(f"gpuPools[{index}].provider", message, "eks", "simulated", fix) for index in lost])
        return self

    @model_validator(mode="after")
    def _software_serves_something(self) -> "EstateSpec":
        installed: dict[ChartName, tuple[bool, str]] = {
            "hami": (self.gpu_software.hami == "managed", "gpuSoftware: {hami: managed}"),
            "kube-prometheus-stack": (self.monitoring.install_operator, "monitoring: {installOperator: true}"),
            "keda": (self.autoscaler.installs_keda, "autoscaler: {backend: keda, provider: managed}"),
            **installed_charts(self.ingress),
        }
        embedded = self.cluster.provider == "embedded"
        problems = [
            *check_software(self.gpu_software, self.gpu_pools, self.namespace, embedded=embedded),
            *check_charts(self.charts, installed),
        ]
        if problems:
            refuse_all(problems)
        return self

    @model_validator(mode="after")
    def _autoscaler_fits_the_monitoring(self) -> "EstateSpec":
        if problems := list(check_autoscaler(self.autoscaler, self.monitoring)):
            refuse_all(problems)
        return self

    @model_validator(mode="after")
    def _requests_come_in_safely(self) -> "EstateSpec":
        problems = []
        if self.tokens and self.ingress is None:
            fix = "add ingress: {domain: …}, or leave tokens out"
            problems.append(Problem("tokens", "no gateway would check them", allowed="absent without ingress", fix=fix))
        if self.ingress and self.ingress.provider == "managed" and self.cluster.provider == "embedded":
            message = "the API server would ask Istio's webhooks about each pod, and no pod of the plane answers"
            fix = "write cluster: {provider: existing}, or ingress: {provider: existing, namespace: …, selector: …}"
            problems.append(Problem("ingress.provider", message, "managed", "existing", fix))
        if self.environment == "prod":
            problems += [problem.under("ingress") for problem in (check_tls(self.ingress) if self.ingress else [])]
            problems += [problem.under("tokens") for problem in (check_expiry(self.tokens) if self.tokens else [])]
        if problems:
            refuse_all(problems)
        return self

    @property
    def prometheus_url(self) -> str | None:
        """Address of the Prometheus that holds the estate's series, None where the stack has none."""
        return prometheus_url(self.monitoring)
