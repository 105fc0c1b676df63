"""What the components render is accepted by the API server, field for field."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from local import toolchain
from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from local.toolchain import metric_chain
from tests.components.conftest import FIVE_LINES, run
from tests.components.exposed import AUTH, CLUSTER, INTERNAL, stack
from tests.components.test_golden import FOLDER

GOLDEN = sorted(FOLDER.glob("*.yaml"))
# Stacks whose certificates cert-manager makes, of which a golden render of a model holds nothing.
CERTIFIED: dict[str, dict[str, Any]] = {
    "gateways": stack(internal=INTERNAL | {"tls": {"issuer": "inside"}}, sidecars=True),
    "adapter": CLUSTER
    | {
        "monitoring": {"prometheus": {"provider": "existing", "url": "http://prometheus.example.com"}},
        "autoscaler": {"provider": "managed", "tls": {"issuer": "inside"}},
    },
}
MODELS = {"gateways": {"a": AUTH, "b": "traffic: {gateways: [internal]}\n"}, "adapter": {"a": ""}}
CERTIFICATES = {"gateways": 2, "adapter": 1}
Objects = list[dict[str, Any]]


def objects(golden: Path) -> Objects:
    """The Kubernetes objects of a golden render, which also holds the model's outputs."""
    return [one for one in yaml.safe_load_all(golden.read_text()) if one and "kind" in one]


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Objects]:
    """All objects of the stacks with certificates."""
    found = {}
    for name, settings in CERTIFIED.items():
        folder = tmp_path_factory.mktemp(name)
        (folder / "models").mkdir()
        for model, more in MODELS[name].items():
            (folder / "models" / f"{model}.yaml").write_text(FIVE_LINES.format(name=model) + more)
        found[name] = run(folder, {"environment": "dev"} | settings).objects()
    return found


@pytest.fixture(scope="module")
def kubectl(running_plane: Folder, certified: dict[str, Objects]) -> Kubectl:
    """The server, with the kinds and namespaces that the objects are of."""
    client = Kubectl(running_plane.bin / "kubectl", running_plane.kubeconfig)
    for family in (metric_chain.ISTIO_KINDS, metric_chain.CERT_MANAGER_KINDS):
        kinds = f"--filename={toolchain.ensure_kinds(family)}"
        client.run("apply", "--server-side", kinds)
        client.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    found = [one for golden in GOLDEN for one in objects(golden)]
    found += [one for several in certified.values() for one in several]
    there = {"kube-system"}
    for name in sorted({one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]} - there):
        client.run("create", "namespace", name)
        client.run("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=60s")
    # Those of a pod have to be there before it.
    for name in sorted({one["spec"]["priorityClassName"] for one in found if one["kind"] == "Pod"}):
        client.run("create", "priorityclass", name, "--value=1")
    return client


def accepts(kubectl: Kubectl, found: Objects, file: Path) -> str:
    """What the server says to a dry run that takes no unknown field."""
    file.write_text(yaml.safe_dump_all(found))
    return kubectl.run("apply", "--dry-run=server", "--validate=strict", f"--filename={file}")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_every_object_of_a_golden_render_passes_a_strict_dry_run_on_the_server(
    kubectl: Kubectl, golden: Path, tmp_path: Path
) -> None:
    found = objects(golden)
    assert accepts(kubectl, found, tmp_path / "objects.yaml").count("(server dry run)") == len(found) > 5


@pytest.mark.parametrize("name", CERTIFIED)
def test_every_object_of_a_stack_with_certificates_does_too(
    name: str, kubectl: Kubectl, certified: dict[str, Objects], tmp_path: Path
) -> None:
    found = certified[name]
    assert [one["kind"] for one in found].count("Certificate") == CERTIFICATES[name]
    assert accepts(kubectl, found, tmp_path / "objects.yaml").count("(server dry run)") == len(found) > 5


def test_a_misspelt_field_does_not_pass(kubectl: Kubectl, tmp_path: Path) -> None:
    (deployment, *_) = [one for one in objects(GOLDEN[0]) if one["kind"] == "Deployment"]
    deployment["spec"]["template"]["spec"]["conatiners"] = []
    with pytest.raises(PlaneError, match="conatiners"):
        accepts(kubectl, [deployment], tmp_path / "wrong.yaml")


@pytest.mark.parametrize(("field", "value"), [("dnsName", ["a.example.com"]), ("dnsNames", "a.example.com")])
def test_nor_does_a_certificate_with_a_wrong_field(
    field: str, value: object, kubectl: Kubectl, certified: dict[str, Objects], tmp_path: Path
) -> None:
    (certificate,) = [one for one in certified["adapter"] if one["kind"] == "Certificate"]
    wrong = certificate | {"spec": certificate["spec"] | {field: value}}
    with pytest.raises(PlaneError, match=field):
        accepts(kubectl, [wrong], tmp_path / "wrong.yaml")
