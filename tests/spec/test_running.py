"""How a server runs: its credentials, its way of loading, its environment and the nodes that it asks for."""

from collections.abc import Callable

import pytest

from spec.catalog import Estate
from spec.model import RevisionSpec
from spec.problems import Problem

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
CONFIG = "config: {backend: python}\n"


@pytest.fixture
def running(load_stack: Load, five_lines: str) -> Callable[[str], RevisionSpec]:
    """The spec of the only revision of the five lines with more lines; a repository among them is the repository."""

    def _running(more: str) -> RevisionSpec:
        return load_stack({"a.yaml": with_lines(five_lines, more)}).models[0].primary.spec

    return _running


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[[str], Problem]:
    """The only problem of the five lines with more lines."""

    def _refused(more: str) -> Problem:
        (problem,) = refusals({"a.yaml": with_lines(five_lines, more)})
        return problem

    return _refused


def with_lines(text: str, more: str) -> str:
    kept = [line for line in text.splitlines() if not ("repository:" in more and line.startswith("repository:"))]
    return "\n".join([*kept, more])


class TestCredentials:
    def test_without_them_the_node_gives_the_right_to_read(self, running: Callable[[str], RevisionSpec]) -> None:
        assert running("").credentials is None

    @pytest.mark.parametrize("name", ["reader", "reader.eu", "2nd"])
    @pytest.mark.parametrize("kind", ["serviceAccount", "secret"])
    def test_one_that_exists_is_named(self, kind: str, name: str, running: Callable[[str], RevisionSpec]) -> None:
        credentials = running(f"credentials: {{{kind}: {name}}}\n").credentials
        assert credentials is not None
        assert {credentials.service_account, credentials.secret} == {name, None}

    @pytest.mark.parametrize("written", ["{}", "{secret: a, serviceAccount: b}", "{secret: null}"])
    def test_none_and_two_are_refused(self, written: str, refused: Callable[[str], Problem]) -> None:
        problem = refused(f"credentials: {written}\n")
        assert (problem.field, problem.line) == ("credentials", 5)
        assert problem.message == "needs exactly one of serviceAccount and secret"


class TestLoad:
    @pytest.mark.parametrize(
        ("more", "synced"),
        [
            ("", False),
            (CONFIG, True),
            ("members: {helper: {}}\n", False),
            ("members: {helper: {config: {backend: python}}}\n", True),
            ("repository: pvc://claim/resnet\n", True),
            ("load: sync\n", True),
            ("load: sync\n" + CONFIG, True),
            ("load: sync\nrepository: pvc://claim/resnet\n", True),
            ("load: direct\n", False),
            ("load: direct\nmembers: {helper: {}}\n", False),
        ],
    )
    def test_a_copy_is_made_where_one_is_needed_or_wanted(
        self, more: str, synced: bool, running: Callable[[str], RevisionSpec]
    ) -> None:
        assert running(more).is_synced is synced

    def test_a_configuration_that_triton_would_never_see_is_refused(self, refused: Callable[[str], Problem]) -> None:
        problem = refused("load: direct\n" + CONFIG)
        assert (problem.field, problem.line, problem.value, problem.allowed) == ("load", 5, "direct", "sync")

    def test_that_of_a_member_too(self, refused: Callable[[str], Problem]) -> None:
        assert refused("load: direct\nmembers: {helper: {config: {backend: python}}}\n").field == "load"

    def test_a_claim_is_never_read_by_triton_itself(self, refused: Callable[[str], Problem]) -> None:
        assert "claim" in refused("load: direct\nrepository: pvc://claim/resnet\n").message


class TestControl:
    def test_a_server_loads_once_unless_told_otherwise(self, running: Callable[[str], RevisionSpec]) -> None:
        assert running("").control == "none"

    @pytest.mark.parametrize("more", ["", "load: sync\n", "load: direct\n", CONFIG])
    def test_explicit_goes_with_every_way_of_loading(self, more: str, running: Callable[[str], RevisionSpec]) -> None:
        assert running("control: explicit\n" + more).control == "explicit"

    @pytest.mark.parametrize("more", ["", "load: direct\n", "server: {repository-poll-secs: 30}\n"])
    def test_poll_goes_with_a_store_that_triton_reads(self, more: str, running: Callable[[str], RevisionSpec]) -> None:
        assert running("control: poll\n" + more).control == "poll"

    @pytest.mark.parametrize("more", ["load: sync\n", CONFIG, "repository: pvc://claim/resnet\n"])
    def test_poll_of_a_copy_is_refused(self, more: str, refused: Callable[[str], Problem]) -> None:
        problem = refused("control: poll\n" + more)
        assert (problem.field, problem.value, problem.allowed) == ("control", "poll", "none or explicit")

    @pytest.mark.parametrize("control", ["none", "explicit"])
    def test_the_seconds_between_polls_need_polls(self, control: str, refused: Callable[[str], Problem]) -> None:
        problem = refused(f"control: {control}\nserver: {{repository-poll-secs: 30}}\n")
        assert (problem.field, problem.line) == ("server.repository-poll-secs", 6)
        assert "control: poll" in problem.fix

    @pytest.mark.parametrize("option", ["model-control-mode: poll", "load-model: resnet"])
    def test_options_of_the_server_do_not_go_around_it(self, option: str, refused: Callable[[str], Problem]) -> None:
        assert "`control:" in refused(f"server: {{{option}}}\n").message


class TestEnvironment:
    @pytest.mark.parametrize(
        "name",
        ["OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM", "MAX_TOKENS", "_x", "KEY", "AWS_REGION", "CUDA_CACHE_PATH"],
    )
    def test_a_setting_is_taken(self, name: str, running: Callable[[str], RevisionSpec]) -> None:
        assert running(f"environment: {{{name}: 'on'}}\n").environment == {name: "on"}

    @pytest.mark.parametrize(
        "name",
        ["HF_TOKEN", "token", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "OPENAI_API_KEY", "ApiKey",
         "GOOGLE_APPLICATION_CREDENTIALS", "SSH_PRIVATE_KEY", "CLIENT_SECRET", "MYSQL_PASSWD"],
    )  # fmt: skip
    def test_what_looks_like_a_secret_is_sent_to_a_secret(self, name: str, refused: Callable[[str], Problem]) -> None:
        problem = refused(f"environment: {{{name}: hunter2}}\n")
        assert problem.field == f"environment.{name}"
        assert "credentials: {secret: <name>}" in problem.fix

    def test_a_secret_is_not_repeated_in_the_message(self, refused: Callable[[str], Problem]) -> None:
        assert "hunter2" not in str(refused("environment: {HF_TOKEN: hunter2}\n"))

    @pytest.mark.parametrize("name", ["HOME", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
    def test_what_others_decide_is_refused(self, name: str, refused: Callable[[str], Problem]) -> None:
        problem = refused(f"environment: {{{name}: all}}\n")
        assert "is decided by" in problem.message
        assert problem.fix == f"leave {name} out"

    def test_all_mistakes_are_told_at_once(self, refusals: Refusals, five_lines: str) -> None:
        problems = refusals({"a.yaml": five_lines + "environment:\n  HOME: /\n  1A: x\n  HF_TOKEN: x\n"})
        assert [(problem.field, problem.line) for problem in problems] == [
            ("environment.HOME", 6),
            ("environment.1A", 7),
            ("environment.HF_TOKEN", 8),
        ]


class TestNodes:
    @pytest.mark.parametrize("key", ["zone", "topology.kubernetes.io/zone", "a.b/C_d.e"])
    def test_further_labels_may_be_asked_for(self, key: str, running: Callable[[str], RevisionSpec]) -> None:
        assert running(f"nodeSelector: {{{key}: eu-1}}\n").node_selector == {key: "eu-1"}

    def test_the_label_of_the_pools_is_refused_with_the_field_that_decides_it(
        self, refused: Callable[[str], Problem]
    ) -> None:
        problem = refused("nodeSelector: {triton-estate.io/node-pool: a100}\n")
        assert (problem.field, problem.line) == ("nodeSelector.triton-estate.io/node-pool", 5)
        assert problem.fix == "name the pool instead: pool: <name>"

    @pytest.mark.parametrize("name", ["high", "system-cluster-critical", "a.b"])
    def test_a_priority_class_is_named(self, name: str, running: Callable[[str], RevisionSpec]) -> None:
        assert running(f"priority: {name}\n").priority == name
