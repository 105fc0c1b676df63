"""The tools that only tests need: what measures, scales and routes in a cluster, as processes of this machine."""

from typing import Final

from local.toolchain.sources import ModuleFile
from local.toolchain.tools import FAMILIES, OPERATOR_VERSION, Family, Tool, operator_kinds

OPERATOR_CRDS: Final = "prometheus-operator-crds"
KEDA_CRDS: Final = "keda-crds"
ISTIO_CRDS: Final = "istio-crds"
ISTIO_CHARTS: Final = "istio-charts"
CERT_MANAGER_CRDS: Final = "cert-manager-crds"
# Prometheus' programs keep their version here.
_VERSION: Final = "github.com/prometheus/common/version.Version"
_PROMETHEUS: Final = "3.16.0"
_KEDA: Final = "2.21.0"
_KEDA_MODULE: Final = "github.com/kedacore/keda/v2"
_ISTIO: Final = "1.31.0"
_ISTIO_MODULE: Final = "istio.io/istio"
# Its releases are no versions of the Go module.
_ISTIO_COMMIT: Final = "0.0.0-20260827124520-eed52ebb66ad"

PROMETHEUS: Final = Family(
    name="prometheus",
    go="prometheus",
    version=_PROMETHEUS,
    module_version="0.316.0",
    tools=tuple(
        Tool(name, f"github.com/prometheus/prometheus/cmd/{name}", "3.5.0") for name in ("prometheus", "promtool")
    ),
    stamps={_VERSION: _PROMETHEUS},
    # Discovery in clouds, of which nothing is used here, would take 440 of 730 seconds of processor time.
    tags=("remove_all_sd", "enable_kubernetes_sd"),
    seconds=250,
    disk_building=1800,
    disk_after=125,
)
PROMETHEUS_OPERATOR: Final = Family(
    name="prometheus-operator",
    go="prometheus-operator",
    version=OPERATOR_VERSION,
    tools=(Tool("prometheus-operator", "github.com/prometheus-operator/prometheus-operator/cmd/operator", "0.83.0"),),
    stamps={_VERSION: OPERATOR_VERSION},
    seconds=190,
    disk_building=1000,
    disk_after=62,
)
PROMETHEUS_OPERATOR_CRDS: Final = Family(
    name=OPERATOR_CRDS,
    go="prometheus-operator",
    version=OPERATOR_VERSION,
    files=operator_kinds(
        OPERATOR_CRDS, "alertmanagerconfigs", "probes", "prometheusagents", "scrapeconfigs", "thanosrulers"
    ),
    disk_after=3,
)
KEDA: Final = Family(
    name="keda",
    go="keda",
    version=_KEDA,
    tools=tuple(
        Tool(name, f"{_KEDA_MODULE}/cmd/{package}", "2.17.0", version_module=_KEDA_MODULE)
        for name, package in (("keda-operator", "operator"), ("keda-metrics-adapter", "adapter"))
    ),
    stamps={f"{_KEDA_MODULE}/version.Version": _KEDA},
    # It speaks to every cloud's queues and databases, of which nothing is called here.
    gcflags=tuple(
        f"{path}/...=-l -dwarf=false"
        for path in ("github.com/aws", "github.com/Azure", "cloud.google.com/go", "google.golang.org/api")
    ),
    seconds=730,
    disk_building=6500,
    disk_after=285,
)
KEDA_KINDS: Final = Family(
    name=KEDA_CRDS,
    go="keda",
    version=_KEDA,
    files=tuple(
        ModuleFile(_KEDA_MODULE, f"config/crd/bases/{group}_{kind}.yaml", f"{KEDA_CRDS}/{kind}.yaml")
        for group, kinds in {
            "keda.sh": ("scaledobjects", "scaledjobs", "triggerauthentications", "clustertriggerauthentications"),
            "eventing.keda.sh": ("cloudeventsources", "clustercloudeventsources"),
        }.items()
        for kind in kinds
    ),
)
ISTIO: Final = Family(
    name="istio",
    go="istio",
    version=_ISTIO,
    module_version=_ISTIO_COMMIT,
    tools=(
        Tool("pilot-discovery", f"{_ISTIO_MODULE}/pilot/cmd/pilot-discovery", "1.28.0", ("version", "--short")),
        Tool("istioctl", f"{_ISTIO_MODULE}/istioctl/cmd/istioctl", "1.28.0", ("version", "--short", "--remote=false")),
    ),
    stamps={f"{_ISTIO_MODULE}/pkg/version.buildVersion": _ISTIO},
    seconds=525,
    disk_building=2200,
    disk_after=231,
)
ISTIO_KINDS: Final = Family(
    name=ISTIO_CRDS,
    go="istio",
    version=_ISTIO,
    module_version=_ISTIO_COMMIT,
    files=(ModuleFile(_ISTIO_MODULE, "manifests/charts/base/files/crd-all.gen.yaml", f"{ISTIO_CRDS}/all.yaml"),),
)
# What runs beside a pod. With a go.mod of its own, it is no reason to build the other programs again; most of it is
# compiled with them where both lack.
ISTIO_AGENT: Final = Family(
    name="istio-agent",
    go="istio-agent",
    version=_ISTIO,
    module_version=_ISTIO_COMMIT,
    tools=(Tool("pilot-agent", f"{_ISTIO_MODULE}/pilot/cmd/pilot-agent", "1.28.0", ("version", "--short")),),
    stamps={f"{_ISTIO_MODULE}/pkg/version.buildVersion": _ISTIO},
    seconds=110,
    disk_building=600,
    disk_after=31,
)
# Istio's own charts, and what its agent makes Envoy's configuration of.
ISTIO_FILES: Final = Family(
    name=ISTIO_CHARTS,
    go="istio",
    version=_ISTIO,
    module_version=_ISTIO_COMMIT,
    files=(
        *(
            ModuleFile(_ISTIO_MODULE, f"manifests/charts/{source}", f"{ISTIO_CHARTS}/{name}")
            for name, source in {
                "base": "base",
                "istiod": "istio-control/istio-discovery",
                "cni": "istio-cni",
                "gateway": "gateway",
            }.items()
        ),
        ModuleFile(
            _ISTIO_MODULE, "tools/packaging/common/envoy_bootstrap.json", f"{ISTIO_CHARTS}/envoy_bootstrap.json"
        ),
    ),
    disk_after=2,
)
# The only kind of it that this project makes objects of.
CERT_MANAGER_KINDS: Final = Family(
    name=CERT_MANAGER_CRDS,
    go="cert-manager",
    version="1.21.2",
    files=(
        ModuleFile(
            "github.com/cert-manager/cert-manager",
            "deploy/crds/cert-manager.io_certificates.yaml",
            f"{CERT_MANAGER_CRDS}/certificates.yaml",
        ),
    ),
)
# Nothing of a cluster: it checks the workflow files of this project.
ACTIONLINT: Final = Family(
    name="actionlint",
    go="actionlint",
    version="1.7.12",
    tools=(Tool("actionlint", "github.com/rhysd/actionlint/cmd/actionlint", "1.7.7", ("-version",)),),
    stamps={"github.com/rhysd/actionlint.version": "1.7.12"},
    seconds=27,
    disk_building=200,
    disk_after=7,
)

# KEDA first: it takes longest.
TEST_FAMILIES: Final = (
    *(KEDA, ISTIO, PROMETHEUS, PROMETHEUS_OPERATOR, ISTIO_AGENT, ACTIONLINT),
    *(PROMETHEUS_OPERATOR_CRDS, KEDA_KINDS, ISTIO_KINDS, ISTIO_FILES, CERT_MANAGER_KINDS),
)
WITH_TESTS: Final = (*FAMILIES, *TEST_FAMILIES)
