"""Images and charts that the estate runs, pinned."""

from typing import Final

from components.charts import Chart

# renovate: datasource=docker depName=rclone/rclone
MODEL_SYNC_IMAGE: Final = "docker.io/rclone/rclone:1.71.0"

# renovate: datasource=docker depName=python
PYTHON_IMAGE: Final = "docker.io/library/python:3.13.5-slim"

# renovate: datasource=docker depName=nvcr.io/nvidia/k8s-device-plugin
DEVICE_PLUGIN_IMAGE: Final = "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"

# 4.8.3 renames the label Hostname, 4.9 renames fields and changes units: signals, alerts and dashboards go first.
# renovate: datasource=docker depName=nvcr.io/nvidia/k8s/dcgm-exporter
DCGM_EXPORTER_IMAGE: Final = "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless"

# renovate: datasource=helm depName=hami registryUrl=https://project-hami.github.io/HAMi
HAMI_CHART: Final = Chart("hami", "https://project-hami.github.io/HAMi/", "2.10.0")

# The Prometheus operator makes what these say; both are the versions that its own release names.
# renovate: datasource=docker depName=quay.io/prometheus/prometheus
PROMETHEUS_IMAGE: Final = "quay.io/prometheus/prometheus:v3.5.0"
# renovate: datasource=docker depName=quay.io/prometheus/alertmanager
ALERTMANAGER_IMAGE: Final = "quay.io/prometheus/alertmanager:v0.28.1"
# Operator v0.85.0.
# renovate: datasource=helm registryUrl=https://prometheus-community.github.io/helm-charts depName=kube-prometheus-stack
PROMETHEUS_STACK: Final = Chart(
    "kube-prometheus-stack", "https://prometheus-community.github.io/helm-charts", "77.11.1"
)

# renovate: datasource=docker depName=registry.k8s.io/prometheus-adapter/prometheus-adapter
METRICS_ADAPTER_IMAGE: Final = "registry.k8s.io/prometheus-adapter/prometheus-adapter:v0.12.0"

# renovate: datasource=helm depName=keda registryUrl=https://kedacore.github.io/charts
KEDA_CHART: Final = Chart("keda", "https://kedacore.github.io/charts", "2.21.1")

# From 13.2 on the Prometheus data source is a plugin, which a start without internet or with a read-only root file
# system may lose (grafana/grafana#129166, #131490).
# renovate: datasource=docker depName=grafana/grafana
GRAFANA_IMAGE: Final = "docker.io/grafana/grafana:12.4.5"

# An existing Istio has to be 1.28 or newer: limits and large copies need its Envoy.
# renovate: datasource=helm registryUrl=https://istio-release.storage.googleapis.com/charts depName=istiod
ISTIO_VERSION: Final = "1.31.4"
_ISTIO: Final = "https://istio-release.storage.googleapis.com/charts"
ISTIO_BASE: Final = Chart("base", _ISTIO, ISTIO_VERSION)
ISTIO_CNI: Final = Chart("cni", _ISTIO, ISTIO_VERSION)
ISTIOD: Final = Chart("istiod", _ISTIO, ISTIO_VERSION)
ISTIO_GATEWAY: Final = Chart("gateway", _ISTIO, ISTIO_VERSION)
