"""One model as a service: everything that an expert would have written around one Triton."""

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from components.serving import autoscaling, model_config, workload
from spec import names
from spec.resolve import Model


class TritonServiceArgs(Args):
    """Arguments of :class:`TritonService`.

    Attributes:
        model: the resolved model.
        namespace: an existing namespace.
    """

    model: Model
    namespace: str


class TritonService(pulumi.ComponentResource):
    """ConfigMap, Deployment, HorizontalPodAutoscaler and Service of one model."""

    def __init__(self, name: str, args: TritonServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:serving:TritonService", name, None, opts)
        self._revision(args.model, names.DEFAULT_REVISION, args.namespace)
        k8s.core.v1.Service(name, workload.service(args.model, args.namespace), pulumi.ResourceOptions(parent=self))
        self.register_outputs({})

    def _revision(self, model: Model, revision: str, namespace: str) -> None:
        name = names.workload(model.spec.name, revision)
        config: list[pulumi.Resource] = []
        if model.configs:
            config.append(
                k8s.core.v1.ConfigMap(
                    names.config_map(model.spec.name, revision),
                    model_config.config_map(model, revision, namespace),
                    pulumi.ResourceOptions(parent=self),
                )
            )
        timeouts = pulumi.CustomTimeouts(
            create=f"{workload.progress_seconds(model)}s", update=f"{workload.rollout_seconds(model)}s"
        )
        deployment = k8s.apps.v1.Deployment(
            name,
            workload.deployment(model, revision, namespace),
            pulumi.ResourceOptions(
                parent=self,
                depends_on=config,
                custom_timeouts=timeouts,
            ),
        )
        if not model.scaling.fixed:
            k8s.autoscaling.v2.HorizontalPodAutoscaler(
                name,
                autoscaling.autoscaler(model, revision, namespace),
                pulumi.ResourceOptions(parent=self, depends_on=[deployment]),
            )
