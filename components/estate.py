"""The whole estate of one stack."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import pulumi
import pulumi_kubernetes as k8s

from components import outputs
from components.args import Args
from components.gpu.node_pool import GpuNodePool, GpuNodePoolArgs
from components.serving.triton_service import TritonService, TritonServiceArgs
from spec import names
from spec.catalog import Estate
from spec.estate import ClusterSpec

SecurityLevel = Literal["privileged", "baseline", "restricted"]


class TritonEstateArgs(Args):
    """Arguments of :class:`TritonEstate`."""

    estate: Estate


class TritonEstate(pulumi.ComponentResource):
    """GPU pools, namespace and one TritonService a model.

    Attributes:
        outputs: what the stack exports, by output name.
    """

    outputs: Mapping[str, object]

    def __init__(self, name: str, args: TritonEstateArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:index:TritonEstate", name, None, opts)
        spec = args.estate.spec
        self._provider = _provider(spec.cluster, pulumi.ResourceOptions(parent=self))
        self._namespaces: dict[str, k8s.core.v1.Namespace] = {}
        namespace = self._namespace(spec.namespace, "serving", "restricted")
        pools = {
            pool.name: GpuNodePool(pool.name, GpuNodePoolArgs(pool=pool), self._child()) for pool in spec.gpu_pools
        }
        for model in args.estate.models:
            # On the nodes, not on the pool: a dependency on a component costs one edge for each of its children.
            used = {revision.pool.name for revision in model.revisions if revision.pool}
            nodes = [node for name in sorted(used) for node in pools[name].nodes]
            TritonService(
                model.name,
                TritonServiceArgs(model=model, namespace=spec.namespace, monitoring=spec.monitoring),
                self._child(depends_on=[namespace, *nodes]),
            )
        self.outputs = outputs.contract(args.estate)
        self.register_outputs({})

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
        # A changed config.pbtxt rolls the pods through its hash; replacing the ConfigMap would pull it from under
        # running ones.
        enable_config_map_mutable=True,
        opts=opts,
    )
