"""The routes of the models: at the gateways, on the hosts that they share, and in the mesh."""

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.args import Args
from components.crds import custom_resource
from components.ingress import access, destinations, routes, tokens
from components.ingress.access import Access
from spec import names
from spec.ingress import Gateway, IngressSpec, gateways, gateways_of
from spec.resolve import Model
from spec.tokens import TokensSpec


class ModelRoutesArgs(Args):
    """Arguments of :class:`ModelRoutes`.

    Attributes:
        model: whose routes.
        copies: the Service that gets copies of its requests.
        ingress: how requests come in.
        tokens: whose tokens are good.
        access: who comes in to the model.
        namespace: of the models.
    """

    model: Model
    copies: str | None
    ingress: IngressSpec
    tokens: TokensSpec | None
    access: Access | None
    namespace: str


class ModelRoutes(pulumi.ComponentResource):
    """One VirtualService a host of the model, a DestinationRule a revision, and who may come.

    It has to wait for the Deployments: a revision gets requests when it can take them.
    """

    def __init__(self, name: str, args: ModelRoutesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("triton-estate:ingress:ModelRoutes", name, None, opts)
        model, namespace = args.model, args.namespace
        rules = []
        for revision in model.revisions:
            found = names.workload(model.name, revision.name)
            rule = destinations.destination_rule(revision, namespace)
            metadata = _metadata(model, found, namespace)
            rules.append(custom_resource(found, metadata, rule, self._child()))
        for gateway in gateways_of(args.ingress, model.spec.traffic):
            self._gateway(gateway, args, rules)
        mesh = routes.mesh_routes(model, namespace, args.copies)
        service = routes.virtual_service([names.service_host(model.name, namespace)], [routes.MESH], mesh)
        called = f"{model.name}.{routes.MESH}"
        custom_resource(called, _metadata(model, called, namespace), service, self._child(rules))
        if args.access and args.access.sidecars:
            policy = access.policy(model, args.access)
            custom_resource(model.name, _metadata(model, model.name, namespace), policy, self._child())
        self.register_outputs({})

    def _gateway(self, gateway: Gateway, args: ModelRoutesArgs, rules: Sequence[pulumi.Resource]) -> None:
        model, namespace, name = args.model, args.namespace, gateway.object_name(args.model.name)
        before = list(rules)
        if args.tokens and model.needs_token:
            # Or the model would be open for as long as its routes are there and the check is not.
            policy, metadata = tokens.policy(model, args.tokens, gateway), tokens.policy_metadata(model, gateway)
            before.append(custom_resource(f"{names.PROJECT}.{name}", metadata, policy, self._child()))
        found = routes.virtual_service(
            [gateway.host(model.name, model.spec.traffic)],
            [f"{gateway.namespace}/{gateway.resource}"],
            routes.host_routes(model, namespace, args.copies),
        )
        custom_resource(name, _metadata(model, name, namespace), found, self._child(before))

    def _child(self, depends_on: Sequence[pulumi.Resource] = ()) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, depends_on=list(depends_on))


def shared_routes(
    ingress: IngressSpec, models: Sequence[Model], namespace: str, opts: pulumi.ResourceOptions
) -> list[k8s.apiextensions.CustomResource]:
    """The routes of each host that models share, one VirtualService for all of them."""
    found = []
    for gateway in gateways(ingress):
        there = [model for model in models if gateway.leads_to(model.spec.traffic)]
        if gateway.spec.prefix_host and there:
            service = routes.virtual_service(
                [gateway.spec.prefix_host],
                [f"{gateway.namespace}/{gateway.resource}"],
                routes.prefix_routes(there, namespace, copies(models)),
            )
            metadata = k8s.meta.v1.ObjectMetaArgs(
                name=gateway.shared_routes, namespace=namespace, labels=names.estate_labels("shared-host")
            )
            found.append(custom_resource(gateway.shared_routes, metadata, service, opts))
    return found


def copies(models: Sequence[Model]) -> Mapping[str, str | None]:
    """For each model the Service that gets copies of its requests."""
    known = {model.name: model for model in models}
    return {name: routes.shadow(model, known) for name, model in known.items()}


def _metadata(model: Model, name: str, namespace: str) -> k8s.meta.v1.ObjectMetaArgs:
    labels = names.labels(model.name, model.spec.owner)
    return k8s.meta.v1.ObjectMetaArgs(name=name, namespace=namespace, labels=labels)
