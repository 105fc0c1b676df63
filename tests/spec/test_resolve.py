"""What follows from a model file in an estate: its configurations, its pool and its GPU resources."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spec.catalog import Estate
from spec.problems import Problem
from spec.resolve import Revision

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
POOLS: list[dict[str, Any]] = [
    {"name": "slices", "gpuModel": "A100", "gpuMemory": "80Gi", "sharing": "mig", "migProfile": "1g.10gb"},
    {"name": "a100", "gpuModel": "A100", "gpuMemory": "80Gi", "gpusPerNode": 4},
    {"name": "a100-large", "gpuModel": "A100", "gpuMemory": "80Gi", "gpusPerNode": 8},
    {"name": "t4", "gpuModel": "T4", "gpuMemory": "16Gi", "gpusPerNode": 2, "sharing": "hami"},
]
SETTINGS = {"environment": "dev", "gpuPools": POOLS}
TENSORS = "input: [{name: a, data_type: TYPE_FP32, dims: [3]}], output: [{name: b, data_type: TYPE_FP32, dims: [3]}]"
PBTXT = """\
backend: "python"
max_batch_size: 8
input [{ name: "a" data_type: TYPE_FP32 dims: [3] }]
output [{ name: "b" data_type: TYPE_FP32 dims: [3] }]
"""


@pytest.fixture
def on_gpu(load_stack: Load, five_lines: str) -> Callable[..., Revision]:
    def _load(gpu: str, more: str = "") -> Revision:
        files = {"a.yaml": five_lines.replace("2Gi}", f"2Gi, gpu: {gpu}}}") + more}
        return load_stack(files, SETTINGS).models[0].primary

    return _load


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[..., Problem]:
    """The only problem of the five lines with more lines."""

    def _refused(more: str, gpu: str = "", files: dict[str, str] | None = None) -> Problem:
        text = five_lines.replace("2Gi}", f"2Gi, gpu: {gpu}}}") if gpu else five_lines
        (problem,) = refusals({"a.yaml": text + more} | (files or {}), SETTINGS)
        return problem

    return _refused


class TestPlacement:
    @pytest.mark.parametrize(
        ("gpu", "pool", "limits"),
        [
            ("1", "a100", {"nvidia.com/gpu": "1"}),
            ("8", "a100-large", {"nvidia.com/gpu": "8"}),
            ("0.5", "t4", {"nvidia.com/gpu": "1", "nvidia.com/gpucores": "50", "nvidia.com/gpumem-percentage": "50"}),
            ("{memory: 8Gi}", "t4", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "8192"}),
            ("{mig: 1g.10gb, count: 2}", "slices", {"nvidia.com/mig-1g.10gb": "2"}),
        ],
    )
    def test_the_first_pool_that_can_serve_it_is_taken(
        self, gpu: str, pool: str, limits: dict[str, str], on_gpu: Callable[..., Revision]
    ) -> None:
        revision = on_gpu(gpu)
        assert revision.pool is not None
        assert (revision.pool.name, revision.gpu_limits) == (pool, limits)

    def test_a_named_pool_is_taken(self, on_gpu: Callable[..., Revision]) -> None:
        pool = on_gpu("1", "pool: a100-large\n").pool
        assert pool is not None
        assert pool.name == "a100-large"

    def test_a_cpu_model_has_no_pool(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines}, SETTINGS).models
        assert (model.primary.pool, model.primary.gpu_limits) == (None, {})

    @pytest.mark.parametrize(
        ("gpu", "more", "field", "message"),
        [
            ("9", "", "resources.gpu", "a node of pool a100 has 4 nvidia.com/gpu, the model asks for 9"),
            ("1", "pool: a10\n", "pool", "the stack has no such GPU pool"),
            ("0.5", "pool: a100\n", "resources.gpu", "a pool in mode whole cannot serve gpu 0.5"),
            ("1", "pool: slices\n", "resources.gpu", "a pool in mode mig cannot serve gpu 1"),
            ("{mig: 2g.20gb}", "", "resources.gpu", "pool slices offers no nvidia.com/mig-2g.20gb"),
            ("{mig: 1g.10gb, count: 8}", "", "resources.gpu", "has 7 nvidia.com/mig-1g.10gb, the model asks for 8"),
            ("{memory: 30Gi}", "", "resources.gpu", "a node of pool t4 has cards of 16Gi, the model asks for 30Gi"),
            ("{memory: 1Gi, count: 3}", "", "resources.gpu", "a node of pool t4 has 2 cards, the model asks for 3"),
        ],
    )
    def test_a_request_that_no_node_can_serve_is_refused(
        self, gpu: str, more: str, field: str, message: str, refused: Callable[..., Problem]
    ) -> None:
        problem = refused(more, gpu)
        assert problem.field == field
        assert message in problem.message
        assert problem.allowed

    def test_an_unknown_pool_suggests_a_known_one(self, refused: Callable[..., Problem]) -> None:
        problem = refused("pool: a10\n", "1")
        assert (problem.line, problem.fix) == (5, "did you mean a100?")
        assert problem.allowed == "slices, a100, a100-large, t4"

    def test_without_a_fitting_pool_the_modes_and_the_pools_are_named(
        self, refusals: Refusals, five_lines: str
    ) -> None:
        settings = {"environment": "dev", "gpuPools": [POOLS[1]]}
        (problem,) = refusals({"a.yaml": five_lines.replace("2Gi}", "2Gi, gpu: 0.5}")}, settings)
        assert problem.field == "resources.gpu"
        assert "timeSlicing or hami or qgpu" in problem.message
        assert "a100 (whole)" in problem.message

    def test_a_gpu_signal_is_no_second_mistake_where_there_is_no_pool(self, refused: Callable[..., Problem]) -> None:
        assert refused("pool: a10\nscaling: {gpu: 70}\n", "1").field == "pool"

    def test_gpu_use_of_a_shared_card_is_refused_with_the_alternative(self, refused: Callable[..., Problem]) -> None:
        problem = refused("scaling: {gpu: 60}\n", "{memory: 8Gi}")
        assert problem.field == "scaling.gpu"
        assert "queueMs" in problem.fix


class TestConfig:
    def test_without_one_the_service_serves_the_model_of_its_name(self, load_stack: Load, five_lines: str) -> None:
        (model,) = load_stack({"a.yaml": five_lines}).models
        assert (model.primary.triton_name, model.primary.configs) == ("resnet", {})

    def test_its_name_is_that_of_the_model_unless_it_has_its_own(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + f"config: {{backend: python, {TENSORS}}}\n"}
        assert load_stack(files).models[0].primary.configs["resnet"].name == "resnet"
        files = {"a.yaml": five_lines + f"config: {{name: res_net, backend: python, {TENSORS}}}\n"}
        (model,) = load_stack(files).models
        assert (model.primary.triton_name, list(model.primary.configs)) == ("res_net", ["res_net"])

    @pytest.mark.parametrize("name", ["a b", "../a", "a/b", ".", "-a"])
    def test_a_name_that_is_no_folder_and_no_url_is_refused(self, name: str, refused: Callable[..., Problem]) -> None:
        problem = refused(f'config: {{name: "{name}", backend: python, {TENSORS}}}\n')
        assert (problem.field, problem.value) == ("config.name", name)

    def test_a_mistake_has_its_path_and_line(self, refused: Callable[..., Problem]) -> None:
        problem = refused("config:\n  backend: python\n  input:\n    - name: a\n      dim: [1]\n")
        assert (problem.field, problem.line, problem.fix) == ("config.input[0].dim", 9, "write 'dims'")

    def test_a_gpu_instance_of_a_cpu_model_is_refused(self, refused: Callable[..., Problem]) -> None:
        more = f"config: {{backend: python, {TENSORS}, instance_group: [{{kind: KIND_GPU}}]}}\n"
        assert refused(more).field == "config.instance_group[0].kind"


class TestConfigFile:
    def test_it_is_read_from_beside_the_model_file(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + "config: {file: a.pbtxt}\n", "a.pbtxt": PBTXT}
        config = load_stack(files).models[0].primary.configs["resnet"]
        assert (config.name, config.backend, config.max_batch_size) == ("resnet", "python", 8)

    def test_a_missing_one_says_where_to_put_it(self, refused: Callable[..., Problem]) -> None:
        problem = refused("config: {file: a.pbtxt}\n")
        assert (problem.field, problem.line, problem.fix) == ("config.file", 5, "put a.pbtxt into models/")

    @pytest.mark.parametrize("file", ["../a.pbtxt", "/etc/passwd", "sub/a.pbtxt", ".", "..", "''", "5", "[a]", "null"])
    def test_only_a_bare_file_name_is_taken(self, file: str, refused: Callable[..., Problem]) -> None:
        problem = refused(f"config: {{file: {file}}}\n", files={"a.pbtxt": PBTXT})
        assert problem.field == "config.file"
        assert problem.message == "must be the name of a file beside the model file"

    def test_it_excludes_other_keys(self, refused: Callable[..., Problem]) -> None:
        problem = refused("config: {file: a.pbtxt, backend: python}\n", files={"a.pbtxt": PBTXT})
        assert (problem.field, problem.message) == ("config", "file stands beside backend")

    def test_one_that_is_no_text_cannot_be_read(self, tmp_path: Path, refused: Callable[..., Problem]) -> None:
        (tmp_path / "models").mkdir()
        (tmp_path / "models" / "a.pbtxt").write_bytes(b"\xff\xfe\x00")
        problem = refused("config: {file: a.pbtxt}\n")
        assert (problem.field, problem.message) == ("config.file", "cannot be read: not UTF-8 text")

    def test_a_name_that_no_file_can_have_cannot_be_read(self, refused: Callable[..., Problem]) -> None:
        assert refused('config: {file: "a\\0b"}\n').field == "config.file"

    @pytest.mark.parametrize(
        ("text", "field", "line"),
        [("bakend: 'python'\n", "", 1), (PBTXT + "dynamic_batching {", "", None),
         (PBTXT.replace("8", "0") + "dynamic_batching {}", "dynamic_batching", None)],
    )  # fmt: skip
    def test_its_mistakes_are_told_under_its_own_name(
        self, text: str, field: str, line: int | None, refused: Callable[..., Problem]
    ) -> None:
        problem = refused("config: {file: a.pbtxt}\n", files={"a.pbtxt": text})
        assert (problem.file, problem.field) == ("models/a.pbtxt", field)
        assert line is None or problem.line == line


ENSEMBLE = """\
config:
  platform: ensemble
  max_batch_size: 4
  input: [{name: IN, data_type: TYPE_FP32, dims: [3]}]
  output: [{name: OUT, data_type: TYPE_FP32, dims: [3]}]
  ensemble_scheduling:
    step:
      - {model_name: first, model_version: -1, input_map: {a: IN}, output_map: {b: MID}}
      - {model_name: second, model_version: -1, input_map: {a: MID}, output_map: {b: OUT}}
"""
MEMBER = f"{{config: {{backend: python, max_batch_size: 4, {TENSORS}}}}}"


class TestMembers:
    def test_all_configurations_of_the_server_are_kept_by_name(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + ENSEMBLE + f"members:\n  first: {MEMBER}\n  second: {MEMBER}\n"}
        (model,) = load_stack(files).models
        assert sorted(model.primary.configs) == ["first", "resnet", "second"]
        assert model.primary.triton_name == "resnet"

    def test_a_member_may_keep_the_configuration_of_the_repository(self, load_stack: Load, five_lines: str) -> None:
        files = {"a.yaml": five_lines + ENSEMBLE + "members: {first: {}, second: {}}\n"}
        assert list(load_stack(files).models[0].primary.configs) == ["resnet"]

    def test_a_step_of_an_unknown_member_is_refused(self, refused: Callable[..., Problem]) -> None:
        problem = refused(ENSEMBLE + f"members: {{first: {MEMBER}, secnd: {{}}}}\n")
        assert problem.field == "config.ensemble_scheduling.step[1].model_name"
        assert "second" in str(problem.value)

    def test_a_member_with_a_smaller_batch_is_refused(self, refused: Callable[..., Problem]) -> None:
        small = MEMBER.replace("max_batch_size: 4", "max_batch_size: 2")
        problem = refused(ENSEMBLE + f"members: {{first: {MEMBER}, second: {small}}}\n")
        assert "batch" in problem.message

    def test_a_mistake_in_a_member_has_its_path(self, refused: Callable[..., Problem]) -> None:
        problem = refused("members: {first: {config: {max_batch: 1}}}\n")
        assert (problem.field, problem.fix) == ("members.first.config.max_batch", "write 'max_batch_size'")

    def test_the_name_inside_is_that_of_the_member(self, refused: Callable[..., Problem]) -> None:
        problem = refused(f"members: {{first: {{config: {{name: other, backend: python, {TENSORS}}}}}}}\n")
        assert (problem.field, problem.fix) == ("members.first.config.name", "write first")

    def test_a_member_cannot_have_the_name_of_the_served_model(self, refused: Callable[..., Problem]) -> None:
        assert refused("members: {resnet: {}}\n").field == "members.resnet"

    @pytest.mark.parametrize("name", ["a/b", "..", "a b", "-x"])
    def test_a_member_is_named_like_a_folder(self, name: str, refused: Callable[..., Problem]) -> None:
        assert "Triton model name" in refused(f"members: {{'{name}': {{}}}}\n").message


class TestImage:
    def test_it_is_the_estates_unless_the_model_names_one(self, load_stack: Load, five_lines: str) -> None:
        settings = SETTINGS | {"image": "triton:1"}
        assert load_stack({"a.yaml": five_lines}, settings).models[0].primary.image == "triton:1"
        assert load_stack({"a.yaml": five_lines + "image: own:2\n"}, settings).models[0].primary.image == "own:2"
