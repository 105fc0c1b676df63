"""What of a model file only works with a gateway, and where the models of an estate get in each other's way."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from spec import triton
from spec.estate import EstateSpec
from spec.fields import memory_bytes
from spec.ingress import PUBLIC, IngressSpec, gateways, gateways_of, host_label, label_in, prefix
from spec.model import ModelSpec
from spec.problems import Problem
from spec.revisions import check_interfaces
from spec.traffic import TrafficSpec
from spec.triton import ModelConfig
from spec.validation import closest

if TYPE_CHECKING:
    from spec.resolve import Model

# Bytes of one element; BYTES has no size of its own.
_BYTES: Final = {
    "BOOL": 1, "UINT8": 1, "INT8": 1, "UINT16": 2, "INT16": 2, "FP16": 2, "BF16": 2, "UINT32": 4, "INT32": 4, "FP32": 4,
    "UINT64": 8, "INT64": 8, "FP64": 8,
}  # fmt: skip
_NO_GATEWAY: Final = "nothing stands before the model that would do this"
# Fields of ``traffic`` that a gateway gives a meaning to, in Python's spelling.
_AT_THE_GATEWAY: Final = ("testers", "limits", "gateways", "host", "prefix")


def check_exposure(spec: ModelSpec, configs: Sequence[ModelConfig | None], estate: EstateSpec) -> Iterator[Problem]:
    """What a model asks of a gateway that the stack does not have, fields relative to the model file.

    Args:
        spec: the model file.
        configs: configuration of the served model in each revision, None where only the repository has it.
        estate: the stack's settings.
    """
    needs_token, ingress = spec.auth is not None and spec.auth.token, estate.ingress
    if ingress is None:
        for name in _AT_THE_GATEWAY:
            if getattr(spec.traffic, name) is not None:
                fix = f"add ingress: {{domain: …}} to the stack, or traffic: {{{name}: null}} for this model in it"
                yield Problem(f"traffic.{name}", _NO_GATEWAY, allowed="absent without ingress", fix=fix)
        if needs_token:
            fix = "add ingress: {domain: …} and tokens to the stack, or auth: null for this model in it"
            yield Problem("auth.token", "nobody would check the token", allowed="absent without ingress", fix=fix)
        return
    if needs_token and estate.tokens is None:
        fix = "add tokens: {issuer: …, keys: […]} to the stack, or auth: null for this model in it"
        yield Problem("auth.token", "nobody would know a good token", allowed="absent without tokens", fix=fix)
    yield from (problem.under("traffic") for problem in _address(spec, ingress))
    limits = spec.traffic.limits
    if limits and limits.max_request_size:
        smallest = max((_request_bytes(config) for config in configs if config), default=0)
        if memory_bytes(limits.max_request_size) < smallest:
            message = f"the tensors of one request take {smallest} bytes"
            yield Problem("traffic.limits.maxRequestSize", message, limits.max_request_size, "more than that",
                          f"write for example {math.ceil(smallest * 2 / 2**20)}Mi")  # fmt: skip


def _address(spec: ModelSpec, ingress: IngressSpec) -> Iterator[Problem]:
    traffic, known = spec.traffic, [gateway.name for gateway in gateways(ingress)]
    missing = [name for name in traffic.gateways or () if name not in known]
    for name in missing:
        fix = f"add ingress: {{{name}: {{domain: …}}}} to the stack, or leave {name} out"
        yield Problem("gateways", "the stack has no such gateway", name, ", ".join(known), fix)
    if missing:
        return
    leading = gateways_of(ingress, traffic)
    if traffic.prefix and not any(gateway.spec.prefix_host for gateway in leading):
        setting = "prefixHost: …" if leading[0].name == PUBLIC else f"{leading[0].name}: {{prefixHost: …}}"
        fix = f"add ingress: {{{setting}}} to the stack, or leave prefix out"
        yield Problem("prefix", "no gateway of the model has a host that models share", traffic.prefix,
                      "absent without prefixHost", fix)  # fmt: skip
    host, domain = traffic.host, leading[0].spec.domain
    if host and "." in host and label_in(host, domain) is None:
        label = host.partition(".")[0]
        yield Problem("host", "outside the gateway's domain", host, f"one label and .{domain}",
                      f"write {label}, which is {label}.{domain}")  # fmt: skip


def _request_bytes(config: ModelConfig) -> int:
    """Bytes that the tensors of a request with one element have at least."""
    found = 0
    for tensor in config.input:
        if not tensor.optional:
            elements = math.prod(max(size, 1) for size in tensor.dims)
            found += elements * _BYTES.get(triton.protocol_type(tensor), 0)
    return found


def check_addresses(traffic: Mapping[str, TrafficSpec], ingress: IngressSpec | None) -> Iterator[tuple[str, Problem]]:
    """Models that would have the same address.

    Args:
        traffic: of each model, by name.
        ingress: of the stack.

    Returns:
        The model whose file is to blame, and the problem, fields relative to that file.
    """
    if ingress is None:
        return
    seen: dict[tuple[str, str], str] = {}
    for gateway in gateways(ingress):
        shared = gateway.spec.prefix_host
        for model, spec in traffic.items():
            if not gateway.leads_to(spec):
                continue
            host = gateway.host(model, spec)
            field = "traffic.host" if spec.host else "name"
            if host == shared:
                yield model, Problem(field, "the host is the one that models share", host, "another host",
                                     f"write traffic: {{host: {model}-api}}")  # fmt: skip
            addresses = [(field, (host, ""))]
            addresses += (
                [("traffic.prefix" if spec.prefix else "name", (shared, prefix(model, spec)))] if shared else []
            )
            for at, address in addresses:
                other = seen.setdefault(address, model)
                if other != model:
                    message = f"{other} has the same address, {''.join(address)}"
                    value = host_label(model, spec) if at == field else prefix(model, spec)
                    yield model, Problem(at, message, value, "an address of its own", "choose another one")


def check_mirrors(models: Sequence["Model"]) -> Iterator[tuple[str, Problem]]:
    """Copies to other models that could not take them; as :func:`check_addresses`."""
    known = {model.name: model for model in models}
    for model in models:
        name = model.spec.traffic.mirror.model if model.spec.traffic.mirror else None
        if name is None:
            continue
        field = "traffic.mirror.model"
        if name == model.name:
            fix = "name a revision with to, or another model"
            yield model.name, Problem(field, "a model cannot mirror to itself", name, "another model", fix)
        elif name not in known:
            hint = closest(name, list(known)) or "name one of them"
            yield model.name, Problem(field, "no model file has this name", name, ", ".join(known), hint)
        else:
            serving, shadow = model.primary, known[name].primary
            loaded = serving.triton_name if serving.triton_name in shadow.spec.members else shadow.triton_name
            pair = {
                model.name: (serving.triton_name, serving.configs.get(serving.triton_name)),
                name: (loaded, shadow.configs.get(loaded)),
            }
            for found in check_interfaces(pair):
                message = f"{name} cannot take the copies: {found.message}"
                fix = f"mirror to a model that Triton calls {serving.triton_name}, with the same tensors"
                yield model.name, Problem(field, message, name, fix=fix)
