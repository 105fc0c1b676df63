"""The tools the embedded plane needs: where each comes from, which version, and what fits on PATH."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from local.toolchain.sources import ModuleFile, Patch

GO_VERSION: Final = "1.27.3"
Version = tuple[int, ...]


def parse_version(text: str) -> Version:
    """``1.36.3`` as numbers that compare."""
    return tuple(int(part) for part in text.split("."))


@dataclass(frozen=True)
class Tool:
    """One executable.

    Attributes:
        name: file name, on PATH and in the cache.
        package: the Go package it is built from.
        minimum: oldest version on PATH that is used; the major version must be the same.
        version_command: arguments that print the version; empty where the program has none.
        version_pattern: regular expression whose first group is the version.
        version_module: the Go module whose version is the program's; for a program that tells its own only while it
            serves, the list of modules that Go writes into every program is read instead.
    """

    name: str
    package: str
    minimum: str
    version_command: tuple[str, ...] = ("--version",)
    version_pattern: str = r"v?(\d+\.\d+\.\d+)"
    version_module: str = ""

    @property
    def fits(self) -> str:
        """The accepted range in words."""
        return f"{self.minimum} or newer, below {parse_version(self.minimum)[0] + 1}.0"


@dataclass(frozen=True)
class Family:
    """Tools of one Go module, built together into one folder of the cache.

    Attributes:
        name: name of the folder in the cache.
        go: folder below ``go`` beside this module that holds go.mod and go.sum.
        version: the version built, without ``v``.
        module_version: the Go module's version where it is not the program's own.
        tools: the executables.
        files: files copied out of modules.
        stamps: linker variables and their values.
        gcflags: additional compiler flags, each ``pattern=flags``.
        tags: build tags.
        patched_module: a module that lacks generated files and is therefore built from a copy.
        patches: changes of that copy.
        seconds: measured processor time of a cold build; a download counts as well.
        disk_building: measured MB in the Go caches while building.
        disk_after: measured MB left behind.
    """

    name: str
    go: str
    version: str
    tools: tuple[Tool, ...] = ()
    files: tuple[ModuleFile, ...] = ()
    stamps: Mapping[str, str] = field(default_factory=dict)
    gcflags: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    patched_module: str = ""
    patches: tuple[Patch, ...] = ()
    module_version: str = ""
    seconds: int = 5
    disk_building: int = 100
    disk_after: int = 1


_KUBERNETES: Final = "1.36.3"
_PULUMI: Final = "3.274.1"
_PROVIDER: Final = "4.25.0"
_PROVIDER_MODULE: Final = "github.com/pulumi/pulumi-kubernetes/provider/v4"
_KWOK: Final = "0.8.0"
_KWOK_STAGES: Final = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


def _kubernetes_tool(name: str, *, command: tuple[str, ...] = ("--version",)) -> Tool:
    return Tool(name, f"k8s.io/kubernetes/cmd/{name}", "1.34.0", command)


def _kubernetes_stamps() -> dict[str, str]:
    major, minor, _ = _KUBERNETES.split(".")
    values = {
        "gitVersion": f"v{_KUBERNETES}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "archive",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}


LANGUAGE_EXEC: Final = "pulumi-language-python-exec"
STAGES: Final = "kwok-stages"
CRDS: Final = "prometheus-crds"

# The provider registers an object of a YAML file or Helm chart with the Go type of its kind, but never looks at the
# typed fields. For that alone it compiles the generated SDK of every Kubernetes API: more than half of its build.
# The type for kinds without one of their own, which the SDK has for custom resources, does the same: all 157 kinds
# of the SDK's table have the type token put together here.
_YAML_OBJECTS: Final = "pkg/provider/yaml/v2/yaml.go"
_UNTYPED_OBJECTS: Final = (
    Patch(
        _YAML_OBJECTS,
        '\tyamlv2 "github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/yaml/v2"\n',
        '\t"github.com/pulumi/pulumi-kubernetes/sdk/v4/go/kubernetes/apiextensions"\n',
    ),
    Patch(
        _YAML_OBJECTS,
        "\tres, err := yamlv2.RegisterResource(ctx, apiVersion, kind, resourceName, "
        "kubernetes.UntypedArgs(obj.Object), resourceOpts...)\n",
        "\ttokenVersion := apiVersion\n"
        '\tif tokenVersion == "v1" {\n\t\ttokenVersion = "core/v1"\n\t}\n'
        "\tres := &apiextensions.CustomResource{}\n"
        '\terr := ctx.RegisterResource(fmt.Sprintf("kubernetes:%s:%s", tokenVersion, kind), resourceName, '
        "kubernetes.UntypedArgs(obj.Object), res, resourceOpts...)\n",
    ),
)

PROVIDER: Final = Family(
    name="provider",
    go="provider",
    version=_PROVIDER,
    # The program prints no version: it is asked over its own protocol (local.versions).
    tools=(Tool("pulumi-resource-kubernetes", f"{_PROVIDER_MODULE}/cmd/pulumi-resource-kubernetes", "4.25.0", ()),),
    stamps={f"{_PROVIDER_MODULE}/pkg/version.Version": _PROVIDER},
    patched_module=_PROVIDER_MODULE,
    patches=_UNTYPED_OBJECTS,
    seconds=350,
    disk_building=3000,
    disk_after=90,
)
ETCD: Final = Family(
    name="etcd",
    go="etcd",
    version="3.6.16",
    tools=(Tool("etcd", "go.etcd.io/etcd/server/v3", "3.5.13"),),
    seconds=60,
    disk_building=600,
    disk_after=30,
)
KUBERNETES: Final = Family(
    name="kubernetes",
    go="kubernetes",
    version=_KUBERNETES,
    tools=(
        _kubernetes_tool("kube-apiserver"),
        _kubernetes_tool("kube-controller-manager"),
        _kubernetes_tool("kube-scheduler"),
        _kubernetes_tool("kubectl", command=("version", "--client")),
    ),
    stamps=_kubernetes_stamps(),
    seconds=560,
    disk_building=3500,
    disk_after=320,
)
KWOK: Final = Family(
    name="kwok",
    go="kwok",
    version=_KWOK,
    tools=(Tool("kwok", "sigs.k8s.io/kwok/cmd/kwok", "0.7.0"),),
    stamps={"sigs.k8s.io/kwok/pkg/consts.Version": _KWOK},
    seconds=80,
    disk_building=500,
    disk_after=65,
)
KWOK_STAGES: Final = Family(
    name=STAGES,
    go="kwok",
    version=_KWOK,
    files=tuple(
        ModuleFile("sigs.k8s.io/kwok", f"kustomize/stage/{path}", f"{STAGES}/{path.rpartition('/')[2]}")
        for path in _KWOK_STAGES
    ),
)
PULUMI: Final = Family(
    name="pulumi",
    go="pulumi",
    version=_PULUMI,
    tools=(Tool("pulumi", "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi", "3.272.0", ("version",)),),
    stamps={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{_PULUMI}"},
    # Inlining doubles what the generated SDKs of the clouds cost to compile; state and secrets may be kept there.
    gcflags=tuple(
        f"{path}/...=-l -dwarf=false"
        for path in ("github.com/aws", "github.com/Azure", "cloud.google.com/go", "google.golang.org/api")
    ),
    seconds=420,
    disk_building=4000,
    disk_after=110,
)
LANGUAGE: Final = Family(
    name="pulumi-language-python",
    go="pulumi",
    version=_PULUMI,
    files=(
        ModuleFile(
            "github.com/pulumi/pulumi/sdk/v3",
            f"python/cmd/{LANGUAGE_EXEC}",
            LANGUAGE_EXEC,
            executable=True,
        ),
    ),
)


def operator_kinds(folder: str, *kinds: str) -> tuple[ModuleFile, ...]:
    """Kinds of the Prometheus operator as files of a folder in the cache."""
    return tuple(
        ModuleFile(
            "github.com/prometheus-operator/prometheus-operator",
            f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml",
            f"{folder}/{kind}.yaml",
        )
        for kind in kinds
    )


OPERATOR_VERSION: Final = "0.85.0"
# The kinds that this project makes objects of; what else the operator has is needed where it runs.
PROMETHEUS_CRDS: Final = Family(
    name=CRDS,
    go="prometheus-operator",
    version=OPERATOR_VERSION,
    files=operator_kinds(CRDS, "servicemonitors", "podmonitors", "prometheusrules", "prometheuses", "alertmanagers"),
    disk_after=2,
)

# In the order they are built. kwok comes after kubernetes, whose packages it uses; the longest come early.
FAMILIES: Final = (PROVIDER, ETCD, KUBERNETES, PULUMI, KWOK, KWOK_STAGES, PROMETHEUS_CRDS, LANGUAGE)
SERVERS: Final = tuple(tool.name for tool in KUBERNETES.tools if tool.name != "kubectl")
