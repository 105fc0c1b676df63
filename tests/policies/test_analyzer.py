"""The policies over the engine's own protocol: a real server, and the stub that the SDK generates."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.empty_pb2 import Empty  # ty: ignore[missing-module-member]  # made when it is imported
from pulumi.runtime import rpc
from pulumi.runtime.proto import analyzer_pb2 as proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from policies.catalog import POLICIES
from policies.judging.analyzer import started
from policies.judging.judge import WAIVERS
from policies.judging.pack import Pack
from policies.judging.policy import Finding, Policy
from policies.judging.view import Resource, View
from tests.components.conftest import ROOT
from tests.policies.project import policy, project

URN = "urn:pulumi:{stack}::triton-estate::{type}::{name}"
LEVELS = {"advisory": proto.ADVISORY, "mandatory": proto.MANDATORY, "disabled": proto.DISABLED}
Start = Callable[..., analyzer_pb2_grpc.AnalyzerStub]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start policies on a small project; returns what the engine has of them."""
    with ExitStack() as running:

        def _start(
            *policies: Policy, stack: str | None = "prod", folder: Path | None = None, **files: object
        ) -> analyzer_pb2_grpc.AnalyzerStub:
            pack = Pack.open(folder or project(tmp_path, **files), policies or POLICIES)  # ty: ignore[invalid-argument-type]
            server, port = started(pack)
            running.callback(server.stop, None)
            channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_send_message_length", -1)])
            running.callback(channel.close)
            stub = analyzer_pb2_grpc.AnalyzerStub(channel)
            if stack:
                stub.ConfigureStack(proto.AnalyzerStackConfigureRequest(stack=stack))
            return stub

        yield _start


def request(
    type_: str, name: str, inputs: dict[str, Any], *, stack: str = "prod", of: type[Any] = proto.AnalyzeRequest
) -> Any:
    """What the engine says of one resource."""
    made = of(type=type_, name=name, urn=URN.format(stack=stack, type=type_, name=name))
    made.properties.update(inputs)
    return made


def deployment(image: str) -> dict[str, Any]:
    """A Deployment of one container."""
    pod = {"containers": [{"name": "triton", "image": image}]}
    return {"metadata": {"name": "bert"}, "spec": {"template": {"spec": pod}}}


def said(response: Any) -> list[tuple[str, int, str]]:
    """Policy, level and last line of what was said, without the fix."""
    return [(one.policyName, one.enforcementLevel, one.message.splitlines()[1]) for one in response.diagnostics]


def refusal(call: Callable[..., Any], *arguments: Any) -> str:
    """How a call is refused."""
    with pytest.raises(grpc.RpcError) as refused:
        call(*arguments)
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT  # ty: ignore[missing-attribute]
    return refused.value.details()  # ty: ignore[missing-attribute]


def images(found: Resource, view: View) -> Iterable[str]:
    """Complains about one image."""
    del view
    image = found.at("spec", "template", "spec", "containers", 0, "image", default="")
    return ["is bad"] if image.startswith("bad") else []


IMAGES = policy("images", images)
COUNT = policy("count", estate=lambda view: [Finding(view.resources[-1], f"{len(view.resources)} resources")])
DEPLOYMENT = "kubernetes:apps/v1:Deployment"


class TestInfo:
    @pytest.mark.parametrize(("stack", "level"), [("dev", "dev"), ("prod", "prod")])
    def test_every_policy_with_its_level_on_the_stack(self, start: Start, stack: str, level: str) -> None:
        info = start(stack=stack).GetAnalyzerInfo(Empty())
        assert (info.name, info.supportsConfig) == ("triton-estate", True)
        found = {one.name: one for one in info.policies}
        assert list(found) == [one.name for one in (*POLICIES, WAIVERS)]
        for one in (*POLICIES, WAIVERS):
            assert found[one.name].enforcementLevel == LEVELS[getattr(one, level)]
            assert found[one.name].severity == proto.PolicySeverity.Value(f"POLICY_SEVERITY_{one.severity.upper()}")
            assert found[one.name].url == f"docs/policies.md#{one.name}"
            assert found[one.name].description == one.rule
            assert found[one.name].remediation_steps == one.fix

    def test_levels_of_the_settings(self, start: Start) -> None:
        stub = start(IMAGES, settings={"stacks": {"prod": {"levels": {"images": "disabled"}}}})
        assert [one.enforcementLevel for one in stub.GetAnalyzerInfo(Empty()).policies] == [
            proto.DISABLED,
            proto.MANDATORY,
        ]

    def test_without_a_stack_the_levels_are_those_of_prod(self, start: Start) -> None:
        info = start(IMAGES, stack=None).GetAnalyzerInfo(Empty())
        assert [one.enforcementLevel for one in info.policies] == [proto.MANDATORY, proto.MANDATORY]

    def test_whether_it_looks_at_one_resource_or_at_all(self, start: Start) -> None:
        info = start(IMAGES, COUNT).GetAnalyzerInfo(Empty())
        assert [one.policy_type for one in info.policies][:2] == [proto.POLICY_TYPE_RESOURCE, proto.POLICY_TYPE_STACK]

    def test_the_version(self, start: Start) -> None:
        stub = start(IMAGES, stack=None)
        assert stub.GetPluginInfo(Empty()).version == stub.GetAnalyzerInfo(Empty()).version == "1.0.0"
        assert stub.Handshake(proto.AnalyzerHandshakeRequest()) == proto.AnalyzerHandshakeResponse()


class TestConfigure:
    @staticmethod
    def config(level: int, **properties: object) -> proto.ConfigureAnalyzerRequest:
        made = proto.PolicyConfig(enforcementLevel=level)
        made.properties.update(properties)
        return proto.ConfigureAnalyzerRequest(policyConfig={"images": made})

    @pytest.mark.parametrize("level", [proto.ADVISORY, proto.MANDATORY])
    def test_it_goes_before_the_settings(self, start: Start, level: int) -> None:
        stub = start(IMAGES, settings={"stacks": {"prod": {"levels": {"images": "disabled"}}}})
        stub.Configure(self.config(level))
        assert said(stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad")))) == [
            ("images", level, "Deployment/bert: is bad")
        ]

    def test_it_can_disable(self, start: Start) -> None:
        stub = start(IMAGES)
        stub.Configure(self.config(proto.DISABLED))
        assert not stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad"))).diagnostics

    def test_what_the_engine_repeats_changes_nothing(self, start: Start) -> None:
        stub = start(IMAGES, stack=None)
        repeated = {
            one.name: proto.PolicyConfig(enforcementLevel=one.enforcementLevel)
            for one in stub.GetAnalyzerInfo(Empty()).policies
        }
        stub.Configure(proto.ConfigureAnalyzerRequest(policyConfig=repeated))
        found = stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad"), stack="dev"))
        assert [level for _, level, _ in said(found)] == [proto.ADVISORY]

    def test_other_settings_are_refused(self, start: Start) -> None:
        assert "images: most is not a setting of this policy" in refusal(
            start(IMAGES).Configure, self.config(proto.ADVISORY, most=3)
        )

    def test_nothing_is_remediated(self, start: Start) -> None:
        stub = start(IMAGES)
        assert "remediate is not a setting" in refusal(stub.Configure, self.config(proto.REMEDIATE))
        assert not stub.Remediate(request(DEPLOYMENT, "bert", deployment("bad"))).remediations

    @pytest.mark.parametrize(("name", "text"), [("imagse", "there are images"), ("waivers-hold", "its level is fixed")])
    def test_what_cannot_be_set_is_refused(self, start: Start, name: str, text: str) -> None:
        config = {name: proto.PolicyConfig(enforcementLevel=proto.ADVISORY)}
        message = refusal(start(IMAGES).Configure, proto.ConfigureAnalyzerRequest(policyConfig=config))
        assert message.startswith(f"{name}: ")
        assert text in message


class TestAnalyze:
    @pytest.mark.parametrize(("stack", "level"), [("dev", proto.ADVISORY), ("prod", proto.MANDATORY)])
    def test_one_resource(self, start: Start, stack: str, level: int) -> None:
        found = start(IMAGES, stack=stack).Analyze(request(DEPLOYMENT, "bert", deployment("bad"), stack=stack))
        (one,) = found.diagnostics
        assert (one.policyName, one.enforcementLevel, one.severity) == ("images", level, proto.POLICY_SEVERITY_HIGH)
        assert one.urn == URN.format(stack=stack, type=DEPLOYMENT, name="bert")
        assert (one.policyPackName, one.policyPackVersion) == ("triton-estate", "1.0.0")
        assert one.message == (
            "The rule of images.\nDeployment/bert: is bad\nFix: the fix of images (docs/policies.md#images)"
        )

    def test_nothing_to_say(self, start: Start) -> None:
        assert not start(IMAGES).Analyze(request(DEPLOYMENT, "bert", deployment("good"))).diagnostics

    @pytest.mark.parametrize(("stack", "level"), [("dev", proto.ADVISORY), ("prod", proto.MANDATORY)])
    def test_an_image_that_is_not_known_yet_is_no_good_one(self, start: Start, stack: str, level: int) -> None:
        stub = start(IMAGES, stack=stack)
        text = "Deployment/bert: cannot decide: spec.template.spec.containers[0].image is unknown"
        assert said(stub.Analyze(request(DEPLOYMENT, "bert", deployment(rpc.UNKNOWN)))) == [("images", level, text)]

    def test_an_unknown_image_and_our_own_policies(self, start: Start) -> None:
        stub = start(settings={"stacks": {"prod": {"registries": ["nvcr.io"]}}})
        found = said(stub.Analyze(request(DEPLOYMENT, "bert", deployment(rpc.UNKNOWN))))
        undecided = {name: level for name, level, text in found if "cannot decide" in text}
        assert undecided["image-registry"] == proto.MANDATORY

    def test_the_name_of_the_stack_comes_from_the_urn_where_nobody_says_it(self, start: Start) -> None:
        stub = start(IMAGES, stack=None)
        found = stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad"), stack="dev"))
        assert [level for _, level, _ in said(found)] == [proto.ADVISORY]

    def test_an_object_of_ten_megabytes(self, start: Start) -> None:
        inputs = {"metadata": {"name": "large"}, "data": {"model": "x" * 10_000_000}}
        found = said(start().Analyze(request("kubernetes:core/v1:ConfigMap", "large", inputs)))
        assert [(name, level) for name, level, _ in found] == [("object-too-large", proto.MANDATORY)]

    @pytest.mark.parametrize("type_", ["kubernetes:example.com/v1:Server", "example:index:Server", "nothing"])
    def test_a_kind_never_seen(self, start: Start, type_: str) -> None:
        found = said(start().Analyze(request(type_, "a", {"spec": None})))
        assert [(name, level) for name, level, _ in found] == [("kind-nobody-judges", proto.MANDATORY)]

    def test_a_policy_that_crashes_fails_by_its_name_in_one_line(
        self, start: Start, capfd: pytest.CaptureFixture[str]
    ) -> None:
        def check(found: Resource, view: View) -> Iterable[str]:
            raise RuntimeError(f"{view.stack}\n{found.name}")

        stub = start(policy("crashing", check), IMAGES, stack="dev")
        crashed, other = said(stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad"))))
        assert crashed[:2] == ("crashing", proto.MANDATORY)
        assert "the policy itself failed: RuntimeError: dev bert (test_analyzer.py, line" in crashed[2]
        assert other[0] == "images"
        assert capfd.readouterr() == ("", "")


class TestAnalyzeStack:
    def test_all_resources_together(self, start: Start) -> None:
        stub = start(COUNT)
        resources = [
            request(DEPLOYMENT, name, deployment("good"), of=proto.AnalyzerResource) for name in ("bert", "gpt")
        ]
        found = stub.AnalyzeStack(proto.AnalyzeStackRequest(resources=resources))
        assert said(found) == [("count", proto.MANDATORY, "Deployment/bert: 2 resources")]
        assert found.diagnostics[0].urn == resources[-1].urn

    def test_inputs_go_before_outputs(self, start: Start) -> None:
        def replicas(view: View) -> Iterable[Finding]:
            return [Finding(None, str(view.resources[0].at("spec", "replicas", default="absent")))]

        stub = start(policy("replicas", estate=replicas))
        filled = request(DEPLOYMENT, "bert", {"spec": {"replicas": 1}}, of=proto.AnalyzerResource)
        sent = proto.AnalyzeStackRequest(resources=[filled])
        assert said(stub.AnalyzeStack(sent)) == [("replicas", proto.MANDATORY, "stack: 1")]
        stub.Analyze(request(DEPLOYMENT, "bert", {"spec": {}}))
        assert said(stub.AnalyzeStack(sent)) == [("replicas", proto.MANDATORY, "stack: absent")]

    def test_the_name_of_the_stack_comes_from_the_urn_where_nobody_says_it(self, start: Start) -> None:
        resource = request(DEPLOYMENT, "bert", deployment("good"), stack="dev", of=proto.AnalyzerResource)
        found = start(COUNT, stack=None).AnalyzeStack(proto.AnalyzeStackRequest(resources=[resource]))
        assert [level for _, level, _ in said(found)] == [proto.ADVISORY]

    def test_waivers(self, start: Start) -> None:
        waiver = {"policy": "images", "stack": "prod", "resource": "Deployment/bert", "reason": "trial",
                  "owner": "vision"}  # fmt: skip
        waivers = [waiver | {"expires": "2999-12-31"}, waiver | {"resource": "Deployment/gpt", "expires": "2020-01-01"}]
        stub = start(IMAGES, waivers={"waivers": waivers})
        (waived,) = said(stub.Analyze(request(DEPLOYMENT, "bert", deployment("bad"))))
        (back,) = said(stub.Analyze(request(DEPLOYMENT, "gpt", deployment("bad") | {"metadata": {"name": "gpt"}})))
        assert waived[1] == proto.ADVISORY
        assert waived[2] == "Deployment/bert: is bad; waived by vision until 2999-12-31: trial"
        assert back[1] == proto.MANDATORY
        (expired,) = said(stub.AnalyzeStack(proto.AnalyzeStackRequest()))
        assert expired[:2] == ("waivers-hold", proto.MANDATORY)
        assert "expired on 2020-01-01" in expired[2]


class TestMistakes:
    def test_a_stack_file_with_mistakes(self, start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        stub = start(IMAGES, stack=None)
        text = "config: {triton-estate:environment: prd, triton-estate:gpuPool: []}\n"
        (tmp_path / "Pulumi.prod.yaml").write_text(text, encoding="utf-8")
        calls: list[tuple[Callable[..., Any], Any]] = [
            (stub.ConfigureStack, proto.AnalyzerStackConfigureRequest(stack="prod")),
            (stub.GetAnalyzerInfo, Empty()),
            (stub.Configure, proto.ConfigureAnalyzerRequest()),
            (stub.Analyze, request(DEPLOYMENT, "bert", deployment("good"))),
            (stub.AnalyzeStack, proto.AnalyzeStackRequest()),
        ]
        for call, sent in calls:
            message = refusal(call, sent)
            assert message.startswith("2 mistakes in the input")
            assert "Pulumi.prod.yaml: environment: " in message
            assert "'prd'" in message
            assert "gpuPool" in message
        assert "Traceback" not in "".join(capfd.readouterr())

    def test_a_stack_without_a_file(self, start: Start) -> None:
        stub = start(IMAGES, stack=None)
        assert "Pulumi.qa.yaml" in refusal(stub.ConfigureStack, proto.AnalyzerStackConfigureRequest(stack="qa"))


class TestProgram:
    @staticmethod
    @contextmanager
    def run(folder: Path, **files: object) -> Generator[subprocess.Popen[str]]:
        """The folder of the policies as the engine starts it, inside another project."""
        shutil.copytree(ROOT / "policies", folder / "policies", ignore=shutil.ignore_patterns("__pycache__", "*.yaml"))
        for package in {path.parent for path in ROOT.glob("*/__init__.py")} - {ROOT / "policies"}:
            (folder / package.name).symlink_to(package)
        command = [sys.executable, "-B", str(project(folder, **files) / "policies")]  # ty: ignore[invalid-argument-type]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True) as program:
            try:
                yield program
            finally:
                program.kill()

    def test_its_first_line_is_the_port_and_it_ends_when_told(self, tmp_path: Path) -> None:
        with self.run(tmp_path) as program:
            assert program.stdout
            with grpc.insecure_channel(f"127.0.0.1:{program.stdout.readline().strip()}") as channel:
                info = analyzer_pb2_grpc.AnalyzerStub(channel).GetAnalyzerInfo(Empty())
            assert len(info.policies) == len(POLICIES) + 1
            program.terminate()
            assert program.communicate(timeout=20) == ("", "")
            assert program.returncode == 0

    def test_mistakes_in_its_files_are_its_last_words(self, tmp_path: Path) -> None:
        settings = {"stacks": {"prod": {"levels": {"wide-rback": "advisory"}}}}
        with self.run(tmp_path, settings=settings, waivers={"waivers": [{}]}) as program:
            out, said_ = program.communicate(timeout=20)
            assert program.returncode == 1
        assert out == ""
        assert "policies/settings.yaml:4: stacks.prod.levels.wide-rback: there is no such policy" in said_
        assert "policies/waivers.yaml" in said_
        assert "Traceback" not in said_
