"""Options of tritonserver: each kind, what the component keeps for itself, and the arguments that come out."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from spec.fields import Spec
from spec.problems import ABSENT, Problem
from spec.server import ServerOptions, arguments
from spec.source import Source
from spec.validation import validate


class Holder(Spec):
    server: ServerOptions


def refusals(**options: object) -> list[Problem]:
    options = {name.replace("_", "-"): value for name, value in options.items()}
    spec, problems = validate(Holder, {"server": options}, Source("m.yaml", {}))
    assert spec is None
    assert all(problem.allowed and problem.fix for problem in problems)
    return problems


GOOD: list[tuple[dict[str, object], list[str]]] = [
    ({}, []),
    ({"log-info": False}, ["--log-info=false"]),
    ({"strict-readiness": True}, ["--strict-readiness=true"]),
    ({"disable-auto-complete-config": True}, ["--disable-auto-complete-config"]),
    ({"disable-auto-complete-config": False}, []),
    ({"log-verbose": 2}, ["--log-verbose=2"]),
    ({"http-thread-count": 0}, ["--http-thread-count=0"]),
    ({"metrics-interval-ms": 500}, ["--metrics-interval-ms=500"]),
    ({"min-supported-compute-capability": 7.5}, ["--min-supported-compute-capability=7.5"]),
    ({"log-format": "ISO8601"}, ["--log-format=ISO8601"]),
    ({"rate-limit": "off"}, ["--rate-limit=off"]),
    ({"backend-directory": "/opt/my backends"}, ["--backend-directory=/opt/my backends"]),
    ({"metrics-config": ["a=1", "b=2"]}, ["--metrics-config=a=1", "--metrics-config=b=2"]),
    ({"backend-config": []}, []),
    ({"log-verbose": 1, "cache-config": ["local,size=1"]}, ["--cache-config=local,size=1", "--log-verbose=1"]),
]
WRONG_KIND: dict[str, list[object]] = {
    "log-info": ["true", 1, None, [True], {}],
    "disable-auto-complete-config": ["yes", 0],
    "log-verbose": [-1, 1.5, "1", True, None, [1], {"a": 1}],
    "metrics-interval-ms": [-0.5, "fast", False, None, float("inf"), float("nan")],
    "backend-directory": [1, True, None, ["/x"]],
    "metrics-config": ["a=1", [1], [None], None, {}, [["a"]]],
}
CASES = [(name, value) for name, values in WRONG_KIND.items() for value in values]


class TestArguments:
    @pytest.mark.parametrize(("options", "expected"), GOOD)
    def test_each_kind_is_written_as_tritonserver_reads_it(
        self, options: dict[str, object], expected: list[str]
    ) -> None:
        assert arguments(Holder.model_validate({"server": options}).server) == expected

    @pytest.mark.parametrize("options", [options for options, _ in GOOD])
    def test_the_schema_takes_them_too(self, options: dict[str, object]) -> None:
        jsonschema.validate(options, TypeAdapter(ServerOptions).json_schema())

    @given(st.permutations(["log-verbose", "http-thread-count", "model-load-thread-count", "grpc-keepalive-time"]))
    def test_their_order_does_not_depend_on_that_of_the_file(self, names: list[str]) -> None:
        found = arguments(dict.fromkeys(names, 1))
        assert found == sorted(found)


class TestRefused:
    @pytest.mark.parametrize(("name", "value"), CASES)
    def test_a_wrong_kind_of_value_says_which_kind_is_right(self, name: str, value: object) -> None:
        (problem,) = refusals(**{name: value})
        assert problem.field == f"server.{name}"
        assert problem.value is value
        assert problem.fix == f"write {problem.allowed}"

    @pytest.mark.parametrize(("name", "value"), [case for case in CASES if str(case[1]) not in {"inf", "nan"}])
    def test_the_schema_refuses_a_wrong_kind_too(self, name: str, value: object) -> None:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: value}, TypeAdapter(ServerOptions).json_schema())

    @pytest.mark.parametrize(
        ("name", "value", "fix"),
        [("log-format", "iso8601", "did you mean ISO8601?"), ("rate-limit", "on", "write one of the allowed values"),
         ("grpc-infer-response-compression-level", "hihg", "did you mean high?")],
    )  # fmt: skip
    def test_an_option_with_few_values_names_them(self, name: str, value: str, fix: str) -> None:
        (problem,) = refusals(**{name: value})
        assert (problem.field, problem.value, problem.fix) == (f"server.{name}", value, fix)

    @pytest.mark.parametrize(
        "name",
        ["id", "model-repository", "model-store", "model-control-mode", "load-model", "exit-timeout-secs", "http-port",
         "grpc-port", "metrics-port", "allow-http", "allow-grpc", "allow-metrics", "http-address", "grpc-address",
         "metrics-address", "log-file", "grpc-use-ssl", "grpc-server-key"],
    )  # fmt: skip
    def test_what_must_agree_with_the_objects_is_not_for_the_model_file(self, name: str) -> None:
        (problem,) = refusals(**{name: "x"})
        assert problem.message.startswith("is decided by")
        assert problem.fix == f"leave {name} out"

    @pytest.mark.parametrize(
        ("name", "replacement"),
        [("strict-model-config", "disable-auto-complete-config"), ("response-cache-byte-size", "cache-config"),
         ("trace-file", "trace-config"), ("trace-rate", "trace-config")],
    )  # fmt: skip
    def test_a_deprecated_option_names_its_successor(self, name: str, replacement: str) -> None:
        (problem,) = refusals(**{name: True})
        assert replacement in problem.fix

    @pytest.mark.parametrize(
        ("name", "fix"),
        [("log-verbos", "did you mean log-verbose?"), ("log_verbose", "did you mean log-verbose?"),
         ("--log-verbose", "did you mean log-verbose?"), ("banana", "see `tritonserver --help`")],
    )  # fmt: skip
    def test_an_unknown_option_suggests_a_known_one(self, name: str, fix: str) -> None:
        spec, (problem,) = validate(Holder, {"server": {name: 1}}, Source("m.yaml", {}))
        assert spec is None
        assert (problem.field, problem.value, problem.fix) == (f"server.{name}", 1, fix)
        assert "log-verbose" in problem.allowed

    def test_all_of_them_are_told_at_once(self) -> None:
        problems = refusals(http_port=1, log_verbos=1, log_info="x", strict_model_config=True, rate_limit="on")
        assert len(problems) == 5
        assert all(problem.value is not ABSENT for problem in problems)
