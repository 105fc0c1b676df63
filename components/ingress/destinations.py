"""How proxies call the Service of a revision: which pod, how many at a time, and which pods not for a while."""

from typing import Final

from components.ingress.crds import (
    ConnectionPool,
    DestinationRule,
    HttpPool,
    Keepalive,
    LoadBalancer,
    LocalityLoadBalancing,
    OutlierDetection,
    TcpPool,
    TrafficPolicy,
)
from spec import names
from spec.resolve import Revision

# What one proxy may have open to one revision at a time; above it the answer is 503 at once. Envoy's own defaults,
# which Istio lifts.
_CONNECTIONS: Final = 1024
_REQUESTS: Final = 1024
# A pod in the same cluster answers or is gone.
_CONNECT_TIMEOUT: Final = "2s"
_KEEPALIVE: Final = Keepalive(time="300s", interval="30s")
# A pod that cannot be reached is left out soon. A pod that answers 502, 503 or 504 may just be full: later. 500 is
# what Triton says of a request that it cannot compute, which is not the pod's fault: never.
_LOCAL_FAILURES: Final = 3
_GATEWAY_ERRORS: Final = 20
_INTERVAL: Final = "5s"
_EJECTION_TIME: Final = "15s"
# The others must not take on more than they can.
_LARGEST_EJECTION: Final = 50


def destination_rule(revision: Revision, namespace: str) -> DestinationRule:
    """The rule for one revision; every proxy of the mesh follows it."""
    return DestinationRule(
        host=names.service_host(names.workload(revision.model, revision.name), namespace),
        traffic_policy=TrafficPolicy(
            load_balancer=LoadBalancer(
                simple="LEAST_REQUEST",
                # With outlier detection Istio would send everything to the proxy's own zone, where a share of the
                # pods has all of the load.
                locality_lb_setting=LocalityLoadBalancing(enabled=False),
            ),
            connection_pool=ConnectionPool(
                tcp=TcpPool(max_connections=_CONNECTIONS, connect_timeout=_CONNECT_TIMEOUT, tcp_keepalive=_KEEPALIVE),
                http=HttpPool(
                    http1_max_pending_requests=_REQUESTS,
                    http2_max_requests=_REQUESTS,
                    # Triton's HTTP port speaks HTTP/1.1 only; its gRPC port is HTTP/2 by its name.
                    h2_upgrade_policy="DO_NOT_UPGRADE",
                ),
            ),
            outlier_detection=OutlierDetection(
                split_external_local_origin_errors=True,
                consecutive_local_origin_failures=_LOCAL_FAILURES,
                consecutive_gateway_errors=_GATEWAY_ERRORS,
                consecutive_5xx_errors=0,
                interval=_INTERVAL,
                base_ejection_time=_EJECTION_TIME,
                max_ejection_percent=_LARGEST_EJECTION,
            ),
        ),
    )
