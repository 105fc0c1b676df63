"""The policies as an analyzer of Pulumi's engine, see docs/adr/0008-policies.md."""

import datetime as dt
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, Final

import grpc
from google.protobuf.empty_pb2 import Empty  # ty: ignore[missing-module-member]  # made when it is imported
from pulumi.runtime.proto import analyzer_pb2, analyzer_pb2_grpc, plugin_pb2

from policies.judging.judge import WAIVERS, Judge, Outcome, Verdict
from policies.judging.levels import Level, Severity
from policies.judging.pack import Pack
from policies.judging.policy import Policy
from policies.judging.unknown import from_struct
from policies.judging.view import Resource
from spec.problems import SpecError

NAME: Final = "triton-estate"
VERSION: Final = "1.0.0"
# Larger than any object that an API server takes: what is too large is refused by a policy, and not by the transport.
_MOST_BYTES: Final = 400 * 2**20
_LEVELS: Final[dict[Level, Any]] = {
    Level.DISABLED: analyzer_pb2.DISABLED,
    Level.ADVISORY: analyzer_pb2.ADVISORY,
    Level.MANDATORY: analyzer_pb2.MANDATORY,
}
_SEVERITIES: Final[dict[Severity, Any]] = {
    Severity.LOW: analyzer_pb2.POLICY_SEVERITY_LOW,
    Severity.MEDIUM: analyzer_pb2.POLICY_SEVERITY_MEDIUM,
    Severity.HIGH: analyzer_pb2.POLICY_SEVERITY_HIGH,
    Severity.CRITICAL: analyzer_pb2.POLICY_SEVERITY_CRITICAL,
}


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """Answers the engine during one preview or update of one stack."""

    def __init__(self, pack: Pack) -> None:
        self._pack = pack
        self._stack = ""
        self._overrides: dict[str, Level] = {}
        self._resources: dict[str, Resource] = {}
        self._verdicts: list[Verdict] = []

    @cached_property
    def _judge(self) -> Judge:
        return self._pack.judge(self._stack, dt.datetime.now(dt.UTC).date(), tuple(self._overrides.items()))

    def Handshake(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802  # the names are the protocol's
        """Nothing of the engine is needed."""
        return analyzer_pb2.AnalyzerHandshakeResponse()

    def GetPluginInfo(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """The version of the policies."""
        return plugin_pb2.PluginInfo(version=VERSION)

    def ConfigureStack(self, request, context):  # noqa: ANN001, ANN201, N802
        """Take the name of the stack, and read its file."""
        self._stack = request.stack
        self._checked(context)
        return analyzer_pb2.AnalyzerStackConfigureResponse()

    def GetAnalyzerInfo(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """All policies, with the levels that they have on this stack."""
        policies = [self._info(policy, context) for policy in (*self._pack.policies, WAIVERS)]
        return analyzer_pb2.AnalyzerInfo(name=NAME, version=VERSION, supportsConfig=True, policies=policies)

    def Configure(self, request, context):  # noqa: ANN001, ANN201, N802
        """Take levels from a ``--policy-pack-config``. The engine names those that it leaves alone as well."""
        announced = {policy.name: _LEVELS[self._level(policy, context)] for policy in (*self._pack.policies, WAIVERS)}
        names = {number: level for level, number in _LEVELS.items()}
        for name, config in request.policyConfig.items():
            if config.properties.fields or config.enforcementLevel not in names:
                what = ", ".join(config.properties.fields) or "remediate"
                message = f"{name}: {what} is not a setting of this policy; it has enforcementLevel only"
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{message}: advisory, mandatory or disabled")
            if config.enforcementLevel == announced.get(name):
                continue
            if name == WAIVERS.name or name not in announced:
                why = "its level is fixed" if name == WAIVERS.name else f"there are {', '.join(announced)}"
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{name}: not a policy that can be set; {why}")
            self._overrides[name] = names[config.enforcementLevel]
        self.__dict__.pop("_judge", None)
        return Empty()

    def Analyze(self, request, context):  # noqa: ANN001, ANN201, N802
        """Judge one resource before anything is done about it."""
        resource = Resource(request.type, request.name, from_struct(request.properties), request.urn)
        self._resources[request.urn] = resource
        self._learn(request.urn)
        verdicts = list(self._checked(context).judge_object(resource))
        self._verdicts += verdicts
        return _response(verdicts)

    def AnalyzeStack(self, request, context):  # noqa: ANN001, ANN201, N802
        """Judge all resources together.

        The engine hands over outputs, in which an API server has filled in defaults; what the program said is what it
        is judged by.
        """
        resources = [self._resources.get(one.urn) or _resource(one) for one in request.resources]
        self._learn(next((one.urn for one in resources), ""))
        judge = self._checked(context)
        verdicts = list(judge.judge_estate(resources))
        verdicts += judge.judge_waivers([*self._verdicts, *verdicts])
        return _response(verdicts)

    def Remediate(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """Policies say what is wrong; they change nothing."""
        return analyzer_pb2.RemediateResponse()

    def Cancel(self, request, context):  # noqa: ANN001, ANN201, ARG002, N802
        """Nothing goes on for long."""
        return Empty()

    def _learn(self, urn: str) -> None:
        """Take the name of the stack from a URN: ``pulumi policy analyze`` does not say it."""
        if not self._stack and urn.count(":") > 2:  # urn:pulumi:<stack>::...
            self._stack = urn.split(":")[2]

    def _checked(self, context: grpc.ServicerContext) -> Judge:
        try:
            return self._judge
        except SpecError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    def _level(self, policy: Policy, context: grpc.ServicerContext) -> Level:
        # Before the stack is known, its levels are not either.
        return self._checked(context).level(policy) if self._stack else policy.prod

    def _info(self, policy: Policy, context: grpc.ServicerContext) -> analyzer_pb2.PolicyInfo:
        return analyzer_pb2.PolicyInfo(
            name=policy.name,
            displayName=policy.name,
            description=policy.rule,
            message=policy.why,
            enforcementLevel=_LEVELS[self._level(policy, context)],
            severity=_SEVERITIES[policy.severity],
            remediation_steps=policy.fix,
            url=policy.url,
            policy_type=analyzer_pb2.POLICY_TYPE_RESOURCE if policy.check_object else analyzer_pb2.POLICY_TYPE_STACK,
        )


def _resource(found: Any) -> Resource:  # noqa: ANN401  # the protocol's
    return Resource(found.type, found.name, from_struct(found.properties), found.urn)


def _response(verdicts: Iterable[Verdict]) -> Any:  # noqa: ANN401  # the protocol's
    return analyzer_pb2.AnalyzeResponse(diagnostics=[_diagnostic(verdict) for verdict in verdicts])


def _diagnostic(verdict: Verdict) -> Any:  # noqa: ANN401  # the protocol's
    policy = verdict.policy
    lines = [f"{policy.rule}.", f"{verdict.where}: {verdict.message}"]
    if verdict.outcome is Outcome.VIOLATED:
        lines.append(f"Fix: {policy.fix} ({policy.url})")
    return analyzer_pb2.AnalyzeDiagnostic(
        policyName=policy.name,
        policyPackName=NAME,
        policyPackVersion=VERSION,
        description=policy.rule,
        message="\n".join(lines),
        enforcementLevel=_LEVELS[verdict.level],
        severity=_SEVERITIES[policy.severity],
        urn=verdict.resource.urn if verdict.resource else "",
    )


def started(pack: Pack) -> tuple[grpc.Server, int]:
    """A server that answers the engine, and its port on this machine."""
    server = grpc.server(
        ThreadPoolExecutor(max_workers=4),
        options=[("grpc.max_receive_message_length", _MOST_BYTES), ("grpc.max_send_message_length", _MOST_BYTES)],
    )
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(pack), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, port


def serve(pack: Pack) -> None:
    """Answer the engine until it goes away; the port is the first line on standard output."""
    server, port = started(pack)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop(grace=None))
    print(port, flush=True)
    server.wait_for_termination()
