"""Model files: every field, what it may hold, and what is said when it holds something else."""

from typing import Any

import pytest

from spec.model import ModelSpec
from spec.problems import ABSENT, Problem
from spec.source import parse
from spec.validation import validate

FIVE_LINES = """\
name: resnet
owner: vision
repository: s3://acme/resnet
resources: {cpu: 1, memory: 2Gi}
"""


def model(more: str = "") -> ModelSpec:
    source = parse(FIVE_LINES + more, "models/resnet.yaml")
    spec, problems = validate(ModelSpec, source.data, source)
    assert spec is not None, problems
    return spec


def refusals(text: str) -> list[Problem]:
    source = parse(text, "models/resnet.yaml")
    assert source.problems == ()
    spec, problems = validate(ModelSpec, source.data, source)
    assert spec is None
    assert all(problem.fix and problem.file == "models/resnet.yaml" and problem.line for problem in problems)
    return problems


def refusal(line: str) -> Problem:
    """The only problem of the five lines with one line more, or with one in place of the line of the same field."""
    field = line.partition(":")[0]
    kept = [old for old in FIVE_LINES.splitlines() if not old.startswith(f"{field}:")]
    (problem,) = refusals("\n".join([*kept, line, ""]))
    return problem


class TestFiveLines:
    def test_they_are_enough(self) -> None:
        assert model().name == "resnet"

    @pytest.mark.parametrize("field", ["name", "owner", "repository", "resources"])
    def test_each_of_the_four_fields_is_needed(self, field: str) -> None:
        kept = [line for line in FIVE_LINES.splitlines() if not line.startswith(f"{field}:")]
        (problem,) = refusals("\n".join(kept))
        assert (problem.field, problem.message, problem.value) == (field, "is missing", ABSENT)
        assert problem.fix == f"add `{field}:`"

    @pytest.mark.parametrize("field", ["cpu", "memory"])
    def test_a_replica_needs_cpu_and_memory(self, field: str) -> None:
        fields = {"cpu": "1", "memory": "2Gi"}
        del fields[field]
        assert refusal(f"resources: {fields}".replace("'", "")).field == f"resources.{field}"

    def test_everything_else_has_a_default(self) -> None:
        spec = model()
        assert (spec.config, spec.members, spec.server, spec.pool, spec.image) == (None, {}, {}, None, None)
        assert spec.load_time == "300s"
        assert spec.resources.gpu is None


class TestFields:
    @pytest.mark.parametrize(
        ("line", "field"),
        [
            ("name: triton_test", "name"), ("name: 5", "name"), ("name: ''", "name"), ("name: [a]", "name"),
            ("name: abcdefghijklmnopqrstuvwxyzabcdefghijk", "name"), ("name:", "name"), ("name: |\n  resnet", "name"),
            ("owner: team vision", "owner"), ("owner: 5", "owner"), ("owner:", "owner"), ("owner: {}", "owner"),
            ("repository: s3://acme", "repository"), ("repository: 5", "repository"), ("repository:", "repository"),
            ("resources: []", "resources"), ("resources: 4", "resources"), ("resources:", "resources"),
            ("resources: {cpu: 1, memory: 10000}", "resources.memory"),
            ("resources: {cpu: many, memory: 2Gi}", "resources.cpu"),
            ("resources: {cpu: 1, memory: 2Gi, gpu: yes}", "resources.gpu"),
            ("resources: {cpu: 1, memory: 2Gi, gpu: {count: 0}}", "resources.gpu.count"),
            ("resources: {cpu: 1, memory: 2Gi, disk: 1Gi}", "resources.disk"),
            ("pool: A100", "pool"), ("pool: 5", "pool"), ("pool: a100", "pool"),
            ("image: tritonserver", "image"), ("image: 5", "image"),
            ("config: text", "config"), ("config: []", "config"), ("config: 5", "config"),
            ("members: [decode]", "members"), ("members: {decode: 5}", "members.decode"),
            ("members: {decode: {config: 5}}", "members.decode.config"),
            ("members: {decode: {confg: {}}}", "members.decode.confg"),
            ("server: --log-verbose=1", "server"), ("server: [log-verbose]", "server"),
            ("server: {http-port: 80}", "server.http-port"),
            ("loadTime: 300", "loadTime"), ("loadTime: soon", "loadTime"), ("loadTime: 0s", "loadTime"),
            ("loadTime: 500ms", "loadTime"), ("loadTime: 25h", "loadTime"), ("loadTime: 99999999h", "loadTime"),
            ("scaling: 3", "scaling"), ("scaling: {min: -1}", "scaling.min"), ("scaling: {min: 1.5}", "scaling.min"),
            ("scaling: {min: '1'}", "scaling.min"), ("scaling: {min: true}", "scaling.min"),
            ("scaling: {max: 1001}", "scaling.max"), ("scaling: {min: 3, max: 2}", "scaling.max"),
            ("scaling: {gpu: 0}", "scaling.gpu"), ("scaling: {gpu: 101}", "scaling.gpu"),
            ("scaling: {cpu: 0.5}", "scaling.cpu"), ("scaling: {memory: 8Gi}", "scaling.memory"),
            ("scaling: {qps: 0}", "scaling.qps"), ("scaling: {qps: -1}", "scaling.qps"),
            ("scaling: {qps: 0.0001}", "scaling.qps"), ("scaling: {qps: fast}", "scaling.qps"),
            ("scaling: {queueMs: 0}", "scaling.queueMs"), ("scaling: {queue_ms: 5}", "scaling.queue_ms"),
            ("scaling: {scaleUpStabilization: 5}", "scaling.scaleUpStabilization"),
            ("scaling: {scaleDownStabilization: 5 s}", "scaling.scaleDownStabilization"),
            ("credentials: reader", "credentials"), ("credentials: {}", "credentials"),
            ("credentials: {secret: My_Secret}", "credentials.secret"),
            ("credentials: {serviceAccount: 5}", "credentials.serviceAccount"),
            ("credentials: {secret: a, serviceAccount: b}", "credentials"),
            ("credentials: {key: a}", "credentials.key"),
            ("load: lazy", "load"), ("load: true", "load"), ("control: manual", "control"), ("control:", "control"),
            ("nodeSelector: a", "nodeSelector"), ("nodeSelector: {zone: 5}", "nodeSelector.zone"),
            ("nodeSelector: {a b: c}", "nodeSelector.a b"), ("nodeSelector: {zone: a b}", "nodeSelector.zone"),
            ("priority: High", "priority"), ("priority: 5", "priority"),
            ("environment: [A]", "environment"), ("environment: {A: 5}", "environment.A"),
            ("environment: {1A: x}", "environment.1A"), ("environment: {A-B: x}", "environment.A-B"),
            ("revisions: [v1]", "revisions"), ("revisions: {v1: 5}", "revisions.v1"),
            ("revisions: {V1: {}}", "revisions.V1"), ("revisions: {abcdefghij: {}}", "revisions.abcdefghij"),
            ("traffic: 5", "traffic"), ("traffic: {split: 5}", "traffic.split"),
            ("traffic: {split: {v1: 101}}", "traffic.split.v1"), ("traffic: {split: {v1: -1}}", "traffic.split.v1"),
            ("traffic: {split: {v1: 99.5}}", "traffic.split.v1"), ("traffic: {split: {V1: 100}}", "traffic.split.V1"),
            ("traffic: {mirror: v2}", "traffic.mirror"), ("traffic: {mirror: {}}", "traffic.mirror.to"),
            ("traffic: {mirror: {to: v2, percent: 0}}", "traffic.mirror.percent"),
            ("traffic: {mirror: {to: v2, percent: 101}}", "traffic.mirror.percent"),
            ("traffic: {timeout: 300}", "traffic.timeout"), ("traffic: {timeout: soon}", "traffic.timeout"),
            ("colour: red", "colour"),
        ],
    )  # fmt: skip
    def test_what_a_field_cannot_hold_is_refused_at_that_field(self, line: str, field: str) -> None:
        assert refusal(line).field == field

    def test_an_underscore_in_the_name_is_refused_with_the_dash_form(self) -> None:
        problem = refusal("name: triton_test")
        assert problem.value == "triton_test"
        assert problem.fix == "write triton-test"

    @pytest.mark.parametrize(
        ("line", "meant"),
        [("scalling: {}", "scaling"), ("load_time: 5s", "loadTime"), ("ressources: {}", "resources"),
         ("scaling: {queue_ms: 5}", "queueMs"), ("scaling: {minimum: 5}", "min"),
         ("resources: {cpu: 1, memory: 2Gi, gpus: 1}", "gpu"),
         ("resources: {cpu: 1, memory: 2Gi, gpu: {core: 50}}", "cores"),
         ("members: {decode: {confg: {}}}", "config"),
         ("credential: {secret: a}", "credentials"), ("credentials: {service_account: a}", "serviceAccount"),
         ("node_selector: {}", "nodeSelector"), ("prority: high", "priority"), ("enviroment: {}", "environment"),
         ("controll: poll", "control"), ("revision: {}", "revisions"), ("trafic: {}", "traffic"),
         ("traffic: {splits: {v1: 100}}", "split"), ("traffic: {mirorr: {to: v2}}", "mirror"),
         ("traffic: {mirror: {to: v2, percentage: 5}}", "percent")],
    )  # fmt: skip
    def test_an_unknown_field_suggests_a_known_one_at_every_depth(self, line: str, meant: str) -> None:
        problem = refusal(line)
        assert problem.message == "unknown field"
        assert problem.fix == f"did you mean {meant}?"
        assert meant in problem.allowed.split(", ")

    @pytest.mark.parametrize(
        ("line", "meant"), [("control: polling", "poll"), ("control: explict", "explicit"), ("load: synced", "sync")]
    )
    def test_an_unknown_word_suggests_a_known_one(self, line: str, meant: str) -> None:
        assert refusal(line).fix == f"did you mean {meant}?"

    @pytest.mark.parametrize("field", ["scaling", "image", "pool", "config", "loadTime"])
    def test_every_optional_field_can_be_written(self, field: str) -> None:
        lines = {
            "scaling": "{min: 2, max: 5, gpu: 70, qps: 300, queueMs: 0.5, cpu: 50, memory: 80,"
            " scaleUpStabilization: 10s, scaleDownStabilization: 10m}",
            "image": "registry.example.com/triton:1",
            "pool": "a100\nresources: {cpu: 1, memory: 2Gi, gpu: 1}",
            "config": "{backend: python}",
            "loadTime": "24h",
        }
        text = FIVE_LINES.replace("resources: {cpu: 1, memory: 2Gi}\n", "") if field == "pool" else FIVE_LINES
        source = parse(f"{text}{field}: {lines[field]}\n", "m.yaml")
        spec, problems = validate(ModelSpec, source.data, source)
        assert problems == []
        assert spec is not None


class TestTogether:
    def test_a_gpu_pool_without_a_gpu_is_refused_at_the_pool(self) -> None:
        problem = refusal("pool: a100")
        assert (problem.field, problem.line, problem.value) == ("pool", 5, "a100")

    def test_all_mistakes_of_a_file_are_told_at_once_with_their_lines(self) -> None:
        text = (
            "name: triton_test\nowner: a b\nrepository: oss://triton-model-repo/models\n"
            "resources:\n  cpu: 0\n  memory: 10000\n  gpu: 1.5\nserver:\n  http-port: 80\n  log-info: maybe\n"
            "scaling: {max: 0, queue: 5}\nloadtime: 5s\n"
        )
        found = [(problem.field, problem.line) for problem in refusals(text)]
        assert sorted(found) == [
            ("loadtime", 12), ("name", 1), ("owner", 2), ("repository", 3), ("resources.cpu", 5),
            ("resources.gpu", 7), ("resources.memory", 6), ("scaling.max", 11), ("scaling.queue", 11),
            ("server.http-port", 9), ("server.log-info", 10),
        ]  # fmt: skip

    def test_a_spec_never_changes(self) -> None:
        spec: Any = model()
        with pytest.raises(ValueError, match="frozen"):
            spec.name = "other"
