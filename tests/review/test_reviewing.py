"""Reviews of programs: of this folder, and against another checkout."""

import datetime as dt
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.judging.judge import Outcome
from review import __main__, comment, judging, programs, reviewing
from review.changes import Op
from review.programs import ProgramError
from spec.problems import SpecError
from tests.conftest import PROJECT
from tests.review.conftest import copied
from tests.review.making import result, verdict

Run = Callable[..., tuple[int, str, str]]
TODAY = dt.date(2026, 12, 1)
BAD_MODEL = "name: mobilenet\n"


class TestPolicies:
    def test_the_stacks_of_this_project_pass(self) -> None:
        found = reviewing.policies(PROJECT, ["dev", "prod"], TODAY)
        assert [(one.stack, one.headline) for one in found] == [("dev", "passes"), ("prod", "passes")]
        assert all(one.resources > 70 and one.policies > 40 for one in found)

    def test_a_bad_estate_is_refused_with_policy_resource_and_fix(self, project: Path) -> None:
        file = project / "models" / "fraud_score.yaml"
        file.write_text(f"{file.read_text()}control: poll\n")
        (project / "policies" / "settings.yaml").write_text(
            "stacks: {prod: {levels: {model-control-poll: mandatory}}}\n"
        )
        (found,) = reviewing.policies(project, ["prod"], TODAY)
        assert not found.passes
        text = judging.report([found])
        assert text.startswith("Stack prod: refused (")
        assert "Deployment/fraud-score-v1" in text
        assert "\n  fix:  " in text
        assert "\n  docs: docs/policies.md#" in text

    def test_a_stack_that_its_program_refuses_does_not_hide_the_others(self, project: Path) -> None:
        (project / "models" / "mobilenet.yaml").write_text(BAD_MODEL)
        file = project / "Pulumi.prod.yaml"
        file.write_text(file.read_text().replace("prod\n", "nonsense\n", 1))
        dev, prod = reviewing.policies(project, ["dev", "prod"], TODAY)
        assert "models/mobilenet.yaml" in dev.refused
        assert "environment" in prod.refused
        text = judging.report([dev, prod])
        assert "Stack dev: refused by its own program\n\n3 mistakes in the input" in text
        assert text.endswith("2 stacks: 2 refused; 0 violated, 0 failed, 0 undecided, 0 waived")

    def test_a_mistake_of_the_program_itself_is_one_line(self, project: Path) -> None:
        (project / "__main__.py").write_text("1 / 0\n")
        (found,) = reviewing.policies(project, ["dev"], TODAY)
        assert found.refused == "the program failed: ZeroDivisionError: division by zero (__main__.py, line 1)"

    def test_a_stack_that_is_not_there(self, project: Path) -> None:
        with pytest.raises(SpecError, match="--stack: no such stack") as refused:
            reviewing.policies(project, ["nowhere", "dev"], TODAY)
        assert "allowed: dev, prod" in str(refused.value)

    def test_a_mistake_in_the_waivers(self, project: Path) -> None:
        (project / "policies" / "waivers.yaml").write_text("waivers: [{policy: none}]\n")
        with pytest.raises(SpecError, match=r"policies/waivers\.yaml:1"):
            reviewing.policies(project, ["dev"], TODAY)

    @pytest.mark.parametrize(
        ("outcome", "said"), [(Outcome.UNDECIDED, "cannot be decided"), (Outcome.FAILED, "refused")]
    )
    def test_what_cannot_be_decided_is_not_called_refused(self, outcome: Outcome, said: str) -> None:
        assert result(verdict(outcome)).headline == said


class TestAgainstAnotherCheckout:
    def test_the_models_that_differ(self, project: Path, tmp_path: Path) -> None:
        base = copied(tmp_path / "base")
        (project / "models" / "photo_tagger.yaml").unlink()
        file = project / "models" / "mobilenet.yaml"
        file.write_text(file.read_text().replace("max_batch_size: 32", "max_batch_size: 64"))
        review = reviewing.of_programs(project, "prod", base, TODAY)
        text = comment.render([review])
        assert "**1 model removed**\n\n- `photo-tagger` of `search`" in text
        assert "v1: file mobilenet.pbtxt: `max_batch_size: 32` -> `max_batch_size: 64`" in text
        assert "- `Deployment/mobilenet-v1`: 3 to 6 replicas, 1 at a time" in text
        assert "| `a100` | 32 | 32 | 6 to 21 | 3 to 12 |" in text
        assert "Note: made from two runs of the program" in text

    def test_nothing_changes(self, project: Path, tmp_path: Path) -> None:
        review = reviewing.of_programs(project, "dev", copied(tmp_path / "base"), TODAY)
        assert review.plan
        assert {change.op for change in review.plan.changes} == {Op.SAME}
        assert "Nothing changes." in comment.render([review])

    def test_a_base_that_is_broken_does_not_keep_its_repair_from_review(self, project: Path, tmp_path: Path) -> None:
        base = copied(tmp_path / "base")
        (base / "models" / "mobilenet.yaml").write_text(BAD_MODEL)
        review = reviewing.of_programs(project, "prod", base, TODAY)
        text = comment.render([review])
        assert "the base cannot be compared with, so that everything looks new" in text
        assert "models/mobilenet.yaml" in text
        assert "**4 models added**" in text

    def test_a_new_stack_is_new(self, project: Path, tmp_path: Path) -> None:
        base = copied(tmp_path / "base")
        (base / "Pulumi.prod.yaml").unlink()
        assert "**4 models added**" in comment.render([reviewing.of_programs(project, "prod", base, TODAY)])

    def test_a_change_of_what_judges_is_named(self, project: Path, tmp_path: Path) -> None:
        base = copied(tmp_path / "base")
        (base / "policies" / "waivers.yaml").unlink()
        (project / "policies" / "gpus.py").write_text("")
        (base / "policies" / "gpus.py").write_text("# judged")
        assert reviewing.judges_changed(base, project) == ["policies/gpus.py", "policies/waivers.yaml"]

    def test_a_program_that_is_refused_has_a_comment(self, project: Path, tmp_path: Path) -> None:
        (project / "models" / "mobilenet.yaml").write_text(BAD_MODEL)
        text = comment.render([reviewing.of_programs(project, "prod", copied(tmp_path / "base"), TODAY)])
        assert "## Stack `prod`: refused\n\nThe program refuses its own input" in text
        assert "models/mobilenet.yaml" in text

    def test_a_folder_that_is_no_checkout(self, project: Path, tmp_path: Path) -> None:
        with pytest.raises(SpecError, match="--before: no checkout of this project"):
            reviewing.of_programs(project, "prod", tmp_path, TODAY)

    def test_code_of_the_other_checkout_makes_its_resources(self, project: Path) -> None:
        (project / "components").mkdir()
        (project / "components" / "__init__.py").write_text("raise ImportError('the other code')\n")
        with pytest.raises(ProgramError, match="the other code"):
            programs.resources_elsewhere(project, "dev")

    def test_what_a_program_prints_does_not_disturb(self, project: Path) -> None:
        main = project / "__main__.py"
        main.write_text(f"print('hello')\n{main.read_text()}")
        assert len(programs.resources_elsewhere(project, "dev")) > 70

    def test_secrets_do_not_leave_the_other_process(self, project: Path) -> None:
        program = "import pulumi, pulumi_kubernetes as k8s\n"
        program += "k8s.core.v1.Secret('a', string_data={'key': pulumi.Output.secret('hidden')})\n"
        (project / "__main__.py").write_text(program)
        assert "hidden" not in programs.as_json(programs.resources(project, "dev"))
        (found,) = (one for one in programs.resources_elsewhere(project, "dev") if one.kind == "Secret")
        assert repr(found.inputs["stringData"]) in {"<secret>", "{'key': <secret>}"}


@pytest.mark.parametrize("name", ["first-up", "weights-changed", "pool-resized"])
def test_the_real_policies_read_what_the_engine_prints(name: str, project: Path) -> None:
    file = Path(__file__).with_name("recorded") / f"{name}.json"
    review = reviewing.of_preview(project, "dev", file, TODAY)
    assert review.result.resources > 50
    assert review.result.count(Outcome.FAILED) == 0
    assert comment.render([review]).startswith("<!-- triton-estate review: dev -->")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of the reviewer in this process: exit code, what it printed, what it complained of."""

    def _run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["review", *arguments])
        try:
            code = __main__.main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        return code, *capsys.readouterr()

    return _run


class TestCommands:
    def test_policies_passes_and_writes_json(self, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "review", "policies", "--json", str(tmp_path / "results.json")]
        done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "2 stacks: 2 passes; " in done.stdout
        assert set(json.loads((tmp_path / "results.json").read_text())["stacks"]) == {"dev", "prod"}

    def test_comment_writes_a_file(self, tmp_path: Path, run: Run) -> None:
        out = tmp_path / "comment.md"
        arguments = ("comment", "--stack", "prod", "--before", str(PROJECT), "--out", str(out))
        assert run(*arguments, "--link", "https://a.b/c") == (0, "", "")
        assert out.read_text().startswith("<!-- triton-estate review: prod -->\n## Stack `prod`: can be merged\n")
        assert out.read_text().endswith("[`docs/review.md`](https://a.b/c/docs/review.md).\n")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("policies", "--stack", "nowhere"), "--stack: no such stack"),
            (("comment", "--stack", "prod", "--preview", "nowhere.json"), "nowhere.json: cannot be read"),
            (("comment", "--stack", "prod", "--before", "nowhere"), "--before: no checkout"),
            (("comment", "--preview", "nowhere.json"), "--preview: a preview is of one stack"),
            (("comment", "--stack", "prod"), "one of the arguments --preview --before is required"),
            (("comment", "--preview", "a", "--link", "javascript:x"), "is not an address"),
            (("policies", "--stack", "dev", "--json", "nowhere/x.json"), "nowhere/x.json: cannot be written"),
            ((), "COMMAND"),
        ],
    )
    def test_bad_input_ends_in_words_and_with_exit_code_2(
        self, arguments: tuple[str, ...], said: str, run: Run
    ) -> None:
        code, _, errors = run(*arguments)
        assert code == 2
        assert said in errors

    @pytest.mark.parametrize("command", ["policies", "comment", "record"])
    def test_help_tells_the_exit_codes(self, command: str, run: Run) -> None:
        code, text, _ = run(command, "--help")
        assert code == 0
        assert "Exit codes: 0 done" in " ".join(text.split())
