"""The policy pack as the real engine runs it: a good stack passes, a bad one stops before anything is made of it."""

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from tests.engine.project import Outcome, Project

PACK = ("--policy-pack", "policies")
# A Deployment beside the estate, and what is wrong with it.
STRAY = """
import pulumi_kubernetes as k8s

where = k8s.core.v1.Namespace("{name}", metadata={{"name": "{namespace}-{name}", "labels": {{
    "pod-security.kubernetes.io/enforce": "restricted"}}}})
container = {{"name": "a", "image": {image}, "env": {env}}}
k8s.apps.v1.Deployment("{name}", metadata={{"name": "{name}", "namespace": where.metadata["name"]}}, spec={{
    "selector": {{"matchLabels": {{"app": "a"}}}},
    "template": {{"metadata": {{"labels": {{"app": "a"}}}}, "spec": {{"containers": [container]}}}},
}})
"""
VARIABLE = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "0"}]


@pytest.fixture(scope="module")
def judged(new_project: Callable[[str], Project]) -> Project:
    """A stack that no test brings up."""
    return new_project("judged")


@contextmanager
def stray(
    project: Project, name: str = "stray", *, image: str = '"registry.example.com/a:1"', env: object = ()
) -> Generator[None]:
    """The program also makes a Deployment of this kind."""
    program = project.folder / "__main__.py"
    text = program.read_text()
    program.write_text(text + STRAY.format(name=name, namespace=project.namespace, image=image, env=list(env)))  # ty: ignore[invalid-argument-type]
    try:
        yield
    finally:
        program.write_text(text)


def refusals(outcome: Outcome) -> list[str]:
    """Names of the policies that refuse, as the engine shows them."""
    return sorted(set(re.findall(r"\[mandatory\] \[severity: \w+\]\s+(\S+)", outcome.text)))


def test_the_dev_stack_passes(deployed: Project) -> None:
    found = deployed.pulumi("preview", *PACK).must_succeed()
    assert "triton-estate@v1.0.0" in found.text
    assert "[mandatory" not in found.text
    assert "[advisory" not in found.text


def test_a_prod_stack_passes_where_its_pools_are_large_enough(new_project: Callable[[str], Project]) -> None:
    project = new_project("prodlike")
    pools = [pool | {"nodes": 3, "gpusPerNode": 8} for pool in project.settings()["gpuPools"]]
    project.set(environment="prod", gpuPools=pools, models={})
    no_digests = "stacks: {prodlike: {levels: {image-without-digest: disabled}}}\n"
    (project.folder / "policies" / "settings.yaml").write_text(no_digests)
    found = project.pulumi("preview", *PACK).must_succeed()
    assert "[mandatory" not in found.text
    project.set(gpuPools=[pool | {"gpusPerNode": 1} for pool in pools])
    found = project.pulumi("preview", *PACK)
    assert found.code != 0
    assert refusals(found) == ["gpu-pool-budget"]


def test_a_bad_object_is_refused_with_reason_and_fix(judged: Project) -> None:
    with stray(judged, env=VARIABLE):
        found = judged.pulumi("preview", *PACK)
    assert found.code != 0
    assert "gpu-by-environment" in found.text
    assert "Deployment/stray: container a sets NVIDIA_VISIBLE_DEVICES to '0'" in found.text
    assert "docs/policies.md#gpu-by-environment" in found.text
    assert "Traceback" not in found.text


def test_an_update_that_skips_its_preview_makes_nothing_of_it(judged: Project) -> None:
    with stray(judged, env=VARIABLE):
        found = judged.pulumi("up", "--yes", "--skip-preview", *PACK)
    assert found.code != 0
    assert judged.kubectl.get("deployments", f"--namespace={judged.namespace}-stray")["items"] == []


def test_what_only_the_update_knows_is_not_passed(judged: Project) -> None:
    judged.set(environment="prod", models={})
    # Of a namespace that no other test has made, so that its id is not known.
    with stray(judged, "unmade", image='where.id.apply(lambda made: f"registry.example.com/a:{made}")'):
        found = judged.pulumi("preview", *PACK)
    judged.set(environment="dev")
    assert found.code != 0
    assert "image-tag-floats" in refusals(found)
    assert "Deployment/unmade: cannot decide: " in found.text


def test_a_state_is_judged_without_the_program(deployed: Project) -> None:
    found = deployed.pulumi("policy", "analyze", *PACK).must_succeed()
    assert "[mandatory" not in found.text


def test_a_mistake_in_the_settings_is_told_plainly(judged: Project) -> None:
    settings = judged.folder / "policies" / "settings.yaml"
    text = settings.read_text()
    settings.write_text("stacks: {nowhere: {levels: {gpu-by-enviroment: mandatory}}}\n")
    try:
        found = judged.pulumi("preview", *PACK)
    finally:
        settings.write_text(text)
    assert found.code != 0
    assert "did you mean gpu-by-environment?" in found.text
    assert "Traceback" not in found.text
