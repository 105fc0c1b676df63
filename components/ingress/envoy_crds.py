"""Istio's EnvoyFilter, typed down to where Envoy's own configuration begins."""

from typing import Any, ClassVar, Literal

from components.crds import CustomSpec, Part


class EnvoyFilterSelector(Part):
    """Pods by their labels; this kind spells it differently."""

    labels: dict[str, str]


class RouteName(Part):
    """A route by the name of its rule."""

    name: str


class VirtualHostMatch(Part):
    """A route in any host."""

    route: RouteName


class RouteConfigurationMatch(Part):
    """Routes."""

    vhost: VirtualHostMatch


class SubFilter(Part):
    """An HTTP filter by its name."""

    name: str


class FilterMatch(Part):
    """The filter that speaks HTTP, or an HTTP filter in it."""

    name: Literal["envoy.filters.network.http_connection_manager"] = "envoy.filters.network.http_connection_manager"
    sub_filter: SubFilter | None = None


class FilterChainMatch(Part):
    """Filters of a listener."""

    filter: FilterMatch


class ListenerMatch(Part):
    """Listeners."""

    filter_chain: FilterChainMatch


class PatchMatch(Part):
    """What of the proxy's configuration is changed."""

    context: Literal["GATEWAY"] = "GATEWAY"
    listener: ListenerMatch | None = None
    route_configuration: RouteConfigurationMatch | None = None


class Patch(Part):
    """The change; ``value`` is Envoy's own configuration, in Envoy's own names."""

    operation: Literal["MERGE", "INSERT_FIRST", "INSERT_BEFORE"]
    value: dict[str, Any]


class ConfigPatch(Part):
    """One change of the proxy's configuration."""

    apply_to: Literal["NETWORK_FILTER", "HTTP_FILTER", "HTTP_ROUTE"]
    match: PatchMatch
    patch: Patch


class EnvoyFilter(CustomSpec):
    """Changes the configuration of proxies where Istio has no words of its own; the lowest priority comes first."""

    API_VERSION: ClassVar[str] = "networking.istio.io/v1alpha3"
    KIND: ClassVar[str] = "EnvoyFilter"

    workload_selector: EnvoyFilterSelector
    priority: int
    config_patches: list[ConfigPatch]
