"""A model repository on disk: what Triton would skip or not find."""

from pathlib import Path

import pytest

from spec.triton import check_layout
from tests.spec.triton.conftest import config_of

CONFIG = """
backend: onnxruntime
max_batch_size: 4
input: [{name: a, data_type: TYPE_FP32, dims: [3]}]
output: [{name: b, data_type: TYPE_FP32, dims: [3], label_filename: labels.txt}]
model_warmup: [{name: w, batch_size: 1, inputs: {a: {data_type: TYPE_FP32, dims: [3], input_data_file: raw}}}]
version_policy: {specific: {versions: [1, 2]}}
"""
FILES = ("m/1/model.onnx", "m/2/model.onnx", "m/labels.txt", "m/warmup/raw")


def repository(folder: Path, *files: str) -> Path:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("")
    return folder


def found(folder: Path, config: str | None = CONFIG) -> list[tuple[str, str]]:
    problems = check_layout(folder, "m", None if config is None else config_of(config))
    assert all(problem.fix for problem in problems)
    return [(problem.file, problem.message) for problem in problems]


def test_a_complete_one_is_fine(tmp_path: Path) -> None:
    assert found(repository(tmp_path, *FILES)) == []


@pytest.mark.parametrize("file", FILES)
def test_each_missing_file_is_named(file: str, tmp_path: Path) -> None:
    others = (one for one in FILES if one != file)
    ((where, message),) = found(repository(tmp_path, *others, "m/1/x", "m/2/x"))
    assert where == file
    assert message.startswith("the file is missing")


def test_a_version_that_the_policy_asks_for(tmp_path: Path) -> None:
    files = [one for one in FILES if "/2/" not in one]
    assert found(repository(tmp_path, *files)) == [("m/", "version_policy asks for a version that is not there")]


@pytest.mark.parametrize("name", ["v1", "01"])
def test_a_folder_that_triton_skips(name: str, tmp_path: Path) -> None:
    problems = found(repository(tmp_path, *FILES, f"m/{name}/model.onnx"))
    assert problems == [("m/", f"Triton skips the version folder {name!r} without an error")]


def test_a_model_without_folder_is_told_what_is_there(tmp_path: Path) -> None:
    (problem,) = check_layout(repository(tmp_path, "other/1/model.onnx"), "m", None)
    assert (problem.file, problem.allowed) == ("m", "other")


def test_files_straight_in_the_model_folder_are_no_version(tmp_path: Path) -> None:
    assert found(repository(tmp_path, "m/model.onnx"), None) == [
        ("m/", "the model folder has no version folder, nothing would load")
    ]


class TestOwnConfiguration:
    def test_it_counts_where_the_model_file_has_none(self, tmp_path: Path) -> None:
        repository(tmp_path, "m/1/other.py")
        (tmp_path / "m" / "config.pbtxt").write_text('backend: "python"')
        assert found(tmp_path, None) == [("m/1/model.py", "the file is missing: it is what the backend loads")]

    def test_its_mistakes_are_those_of_its_file(self, tmp_path: Path) -> None:
        repository(tmp_path, "m/1/model.py")
        (tmp_path / "m" / "config.pbtxt").write_text("backends: 1")
        (problem,) = check_layout(tmp_path, "m", None)
        assert problem.file == "m/config.pbtxt"

    def test_it_has_the_name_of_its_folder(self, tmp_path: Path) -> None:
        repository(tmp_path, "m/1/model.py")
        (tmp_path / "m" / "config.pbtxt").write_text('name: "n" backend: "python"')
        (problem,) = check_layout(tmp_path, "m", None)
        assert (problem.field, problem.value, problem.allowed) == ("name", "n", "m")
