"""The debug twin: what a replica has, and nobody's requests."""

from collections.abc import Callable
from typing import Any

import pytest

from spec.problems import SpecError
from tests.components.conftest import ONNX, POOLS, Render

GPU = "resources: {cpu: 4, memory: 8Gi, gpu: 1}\n"
CONFIGURED = GPU + ONNX
Renderer = Callable[..., Render]


@pytest.fixture(scope="module")
def found(render: Renderer) -> Render:
    return render({"m": f"{CONFIGURED}debug: {{lifetime: 2h}}\n"}, gpuPools=POOLS)


def twin(found: Render) -> dict[str, Any]:
    return found.one("Pod", "m-debug")["spec"]


def container(found: Render) -> dict[str, Any]:
    (one,) = twin(found)["containers"]
    return one


def test_it_has_all_that_a_replica_has(found: Render) -> None:
    same = ("image", "resources", "env", "volumeMounts", "securityContext")
    assert {key: container(found)[key] for key in same} == {key: found.triton("m-v1")[key] for key in same}
    pod = ("nodeSelector", "tolerations", "volumes", "initContainers", "securityContext")
    assert {key: twin(found)[key] for key in pod} == {key: found.pod("m-v1")[key] for key in pod}


def test_nothing_runs_in_it_and_nothing_restarts_it(found: Render) -> None:
    assert container(found)["command"] == ["sleep", "infinity"]
    assert not container(found).keys() & {"args", "startupProbe", "readinessProbe", "livenessProbe", "lifecycle"}
    assert twin(found)["restartPolicy"] == "Never"


def test_it_ends_by_itself(found: Render) -> None:
    assert twin(found)["activeDeadlineSeconds"] == 7200


def test_nothing_sends_it_requests_or_counts_it_as_a_replica(found: Render) -> None:
    labels = found.one("Pod", "m-debug")["metadata"]["labels"]
    for kind in ("Service", "PodDisruptionBudget", "Deployment"):
        for one in found.objects(kind):
            selector = one["spec"]["selector"]
            assert not selector.get("matchLabels", selector).items() <= labels.items(), kind


def test_nobody_may_connect_to_it(found: Render) -> None:
    policy = found.one("NetworkPolicy", "m-debug")["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= found.one("Pod", "m-debug")["metadata"]["labels"].items()
    assert "Ingress" in policy["policyTypes"]
    assert "ingress" not in policy
    assert policy["egress"] == found.one("NetworkPolicy", "m-v1")["spec"]["egress"]


def test_it_may_have_an_image_of_its_own(render: Renderer) -> None:
    found = render({"m": f"{CONFIGURED}debug: {{image: 'acme/notebook:1'}}\n"}, gpuPools=POOLS)
    assert container(found)["image"] == "acme/notebook:1"
    assert twin(found)["activeDeadlineSeconds"] == 8 * 3600
    assert found.triton("m-v1")["image"] != "acme/notebook:1"


def test_it_is_one_of_the_primary_revision(render: Renderer) -> None:
    revisions = "revisions: {v1: {}, v2: {image: 'triton:2'}}\ntraffic: {split: {v1: 10, v2: 90}}\n"
    found = render({"m": f"{CONFIGURED}{revisions}debug: {{}}\n"}, gpuPools=POOLS)
    assert container(found)["image"] == "triton:2"


def test_its_card_is_counted_and_its_shell_is_named(found: Render, render: Renderer) -> None:
    without = render({"m": CONFIGURED}, gpuPools=POOLS).outputs
    pool, before = found.outputs["gpuPools"]["whole"], without["gpuPools"]["whole"]
    assert pool["gpusAskedAtLeast"] == before["gpusAskedAtLeast"] + 1
    assert pool["gpusAskedAtMost"] == before["gpusAskedAtMost"] + 1
    assert found.outputs["models"]["m"]["debug"] == "kubectl --namespace serving exec -it m-debug -- bash"
    assert "debug" not in without["models"]["m"]


class TestProd:
    def test_a_model_file_cannot_have_one(self, render: Renderer) -> None:
        with pytest.raises(Exception, match="would hold a GPU in prod") as refused:
            render({"m": f"{CONFIGURED}debug: {{}}\n"}, environment="prod", gpuPools=POOLS)
        assert "models: {m: {debug: …}} in Pulumi.test.yaml" in str(refused.value)
        assert not isinstance(refused.value, SpecError), "the program shows it as a plain message"

    def test_the_stack_file_can(self, render: Renderer) -> None:
        overrides = {"m": {"debug": {"lifetime": "1h"}}}
        found = render({"m": CONFIGURED}, environment="prod", gpuPools=POOLS, models=overrides)
        assert twin(found)["activeDeadlineSeconds"] == 3600


@pytest.mark.parametrize("lifetime", ["59s", "169h", "90500ms"])
def test_a_lifetime_without_sense_is_refused(lifetime: str, render: Renderer) -> None:
    with pytest.raises(Exception, match=r"debug\.lifetime: not a lifetime"):
        render({"m": f"{ONNX}debug: {{lifetime: {lifetime}}}\n"})


@pytest.mark.parametrize(("field", "name"), [("revisions.debug", "debug"), ("revisions.heartbeat", "heartbeat")])
def test_a_revision_cannot_have_the_name_of_what_stands_beside_it(field: str, name: str, render: Renderer) -> None:
    with pytest.raises(Exception, match=f"{field}: would be mistaken for the {name} of a model"):
        render({"m": f"{ONNX}revisions: {{{name}: {{}}}}\n"})
