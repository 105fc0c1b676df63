"""A whole stack: every file is read, every mistake of every file is told at once, nothing is passed over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from spec.catalog import Estate, load
from spec.problems import Problem, SpecError

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
DEV = {"environment": "dev"}


class TestFolder:
    def test_models_come_in_the_order_of_their_files(self, load_stack: Load, five_lines: str) -> None:
        files = {f"{name}.yaml": five_lines.replace("resnet", name) for name in ("b", "a", "c")}
        assert [model.spec.name for model in load_stack(files).models] == ["a", "b", "c"]

    def test_a_file_may_be_called_otherwise_than_its_model(self, load_stack: Load, five_lines: str) -> None:
        assert load_stack({"other_name.yaml": five_lines}).models[0].spec.name == "resnet"

    def test_no_model_is_an_empty_estate(self, load_stack: Load) -> None:
        assert load_stack({}).models == ()

    def test_notes_and_configurations_beside_the_models_are_no_models(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines, "README.md": "# Models", "a.pbtxt": "", "labels.txt": "cat"}
        assert len(load_stack(files).models) == 1

    @pytest.mark.parametrize("name", ["a.yml", "a.YAML", "a.YML", "a.json"])
    def test_a_model_file_with_another_ending_is_not_passed_over(
        self, name: str, refusals: Refusals, five_lines: str
    ) -> None:
        (problem,) = refusals({name: five_lines})
        assert problem.file == f"models/{name}"
        assert problem.fix == "rename it to a.yaml"

    def test_a_folder_of_model_files_below_is_not_passed_over(
        self, tmp_path: Path, refusals: Refusals, five_lines: str
    ) -> None:
        (tmp_path / "models" / "vision").mkdir(parents=True)
        (tmp_path / "models" / "vision" / "resnet.yaml").write_text(five_lines)
        (problem,) = refusals({})
        assert problem.file == "models/vision"

    def test_a_missing_folder_says_where_it_was_looked_for(self, tmp_path: Path) -> None:
        with pytest.raises(SpecError) as refused:
            load(tmp_path / "models", DEV, "Pulumi.dev.yaml")
        (problem,) = refused.value.problems
        assert (problem.file, problem.fix) == ("models", f"create {tmp_path / 'models'}")


class TestMistakes:
    def test_those_of_all_files_are_told_at_once(self, refusals: Refusals, five_lines: str) -> None:
        files = {
            "a.yaml": five_lines.replace("resnet\n", "triton_test\n", 1),
            "b.yaml": "name: b\nowner: [",
            "c.yaml": five_lines + "colour: red\n",
            "d.yaml": "",
            "e.yaml": five_lines + "config: {backend: python, max_batch: 1}\n",
            "f.yaml": "name: f\nname: g\nowner: o\n",
        }
        problems = refusals(files, {"environment": "test", "colour": "red"})
        found = {(problem.file, problem.field) for problem in problems}
        assert found == {
            ("Pulumi.test.yaml", "environment"),
            ("Pulumi.test.yaml", "colour"),
            ("models/a.yaml", "name"),
            ("models/b.yaml", ""),
            ("models/c.yaml", "colour"),
            ("models/d.yaml", ""),
            ("models/f.yaml", "name"),
            ("models/f.yaml", "repository"),
            ("models/f.yaml", "resources"),
            ("models/e.yaml", "name"),
        }

    def test_a_good_stack_file_lets_the_configurations_be_checked_too(
        self, refusals: Refusals, five_lines: str
    ) -> None:
        files = {"a.yaml": five_lines + "colour: red\n", "b.yaml": five_lines.replace("resnet", "b") + "config: {a: 1}"}
        found = [(problem.file, problem.field, problem.line) for problem in refusals(files)]
        assert found == [("models/a.yaml", "colour", 5), ("models/b.yaml", "config.a", 5)]

    def test_two_models_of_one_name_are_refused_at_the_second(self, refusals: Refusals, five_lines: str) -> None:
        (problem,) = refusals({"a.yaml": five_lines, "b.yaml": "# twin\n" + five_lines})
        assert (problem.file, problem.line, problem.field) == ("models/b.yaml", 2, "name")
        assert problem.message == "models/a.yaml has the same name"
        assert problem.value == "resnet"

    def test_one_bad_model_lets_no_other_through(self, load_stack: Load, five_lines: str) -> None:
        with pytest.raises(SpecError):
            load_stack({"a.yaml": five_lines, "b.yaml": "name: b\n"})

    def test_the_message_lists_each_with_its_file_and_line(self, load_stack: Load, five_lines: str) -> None:
        with pytest.raises(SpecError) as refused:
            load_stack({"a.yaml": five_lines + "colour: red\n", "b.yaml": "owner: [\n"})
        text = str(refused.value)
        assert text.startswith("2 mistakes in the input, nothing was applied")
        assert "models/a.yaml:5: colour: unknown field" in text
        assert "models/b.yaml:2: not valid YAML" in text
