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
from tests.components.test_golden import FOLDER

GOLDEN = sorted(FOLDER.glob("*.yaml"))


def objects(golden: Path) -> list[dict[str, Any]]:
    """The Kubernetes objects of a golden render, which also holds the model's outputs."""
    return [one for one in yaml.safe_load_all(golden.read_text()) if one and "kind" in one]


@pytest.fixture(scope="module")
def kubectl(running_plane: Folder) -> Kubectl:
    """The server, with the kinds and namespaces that the objects are of."""
    client = Kubectl(running_plane.bin / "kubectl", running_plane.kubeconfig)
    kinds = f"--filename={toolchain.ensure_kinds(metric_chain.ISTIO_KINDS)}"
    client.run("apply", "--server-side", kinds)
    client.run("wait", "--for=condition=Established", kinds, "--timeout=60s")
    found = [one for golden in GOLDEN for one in objects(golden)]
    for name in sorted({one["metadata"]["namespace"] for one in found if "namespace" in one["metadata"]}):
        client.run("create", "namespace", name)
        client.run("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=60s")
    # Those of a pod have to be there before it.
    for name in sorted({one["spec"]["priorityClassName"] for one in found if one["kind"] == "Pod"}):
        client.run("create", "priorityclass", name, "--value=1")
    return client


def accepts(kubectl: Kubectl, found: list[dict[str, Any]], file: Path) -> str:
    """What the server says to a dry run that takes no unknown field."""
    file.write_text(yaml.safe_dump_all(found))
    return kubectl.run("apply", "--dry-run=server", "--validate=strict", f"--filename={file}")


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_every_object_of_a_golden_render_passes_a_strict_dry_run_on_the_server(
    kubectl: Kubectl, golden: Path, tmp_path: Path
) -> None:
    found = objects(golden)
    assert accepts(kubectl, found, tmp_path / "objects.yaml").count("(server dry run)") == len(found) > 5


def test_a_misspelt_field_does_not_pass(kubectl: Kubectl, tmp_path: Path) -> None:
    (deployment, *_) = [one for one in objects(GOLDEN[0]) if one["kind"] == "Deployment"]
    deployment["spec"]["template"]["spec"]["conatiners"] = []
    with pytest.raises(PlaneError, match="conatiners"):
        accepts(kubectl, [deployment], tmp_path / "wrong.yaml")
