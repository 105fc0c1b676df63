"""What the components render is accepted by the API server, field for field."""

from pathlib import Path

import pytest
import yaml

from local.plane.kubectl import Kubectl
from local.plane.state import Folder
from tests.components.test_golden import FOLDER

GOLDEN = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(scope="module")
def kubectl(running_plane: Folder) -> Kubectl:
    client = Kubectl(running_plane.bin / "kubectl", running_plane.kubeconfig)
    client.run("create", "namespace", "serving")
    return client


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_every_object_of_a_golden_render_passes_a_strict_dry_run_on_the_server(kubectl: Kubectl, golden: Path) -> None:
    objects = [found for found in yaml.safe_load_all(golden.read_text()) if found]
    done = kubectl.run("apply", "--dry-run=server", "--validate=strict", f"--filename={golden}")
    assert done.count("(server dry run)") == len(objects) > 5


def test_a_misspelt_field_would_not_pass(kubectl: Kubectl, tmp_path: Path) -> None:
    (deployment, *_) = [one for one in yaml.safe_load_all(GOLDEN[0].read_text()) if one["kind"] == "Deployment"]
    deployment["spec"]["template"]["spec"]["conatiners"] = []
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(deployment))
    assert not kubectl.succeeds("apply", "--dry-run=server", "--validate=strict", f"--filename={wrong}")
