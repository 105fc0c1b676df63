"""What the components render is accepted by the API server, field for field."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from local.plane.errors import PlaneError
from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from tests.components.test_golden import FOLDER

GOLDEN = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(scope="module")
def kubectl(running_plane: Folder) -> Kubectl:
    client = Kubectl(running_plane.bin / "kubectl", running_plane.kubeconfig)
    client.run("create", "namespace", "serving")
    return client


def objects(golden: Path) -> list[dict[str, Any]]:
    """The Kubernetes objects of a golden render, which also holds the model's outputs."""
    return [one for one in yaml.safe_load_all(golden.read_text()) if one and "kind" in one]


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
