"""NVIDIA's images dropped the TensorFlow backend: the last that has it is named."""

import pytest

from spec.triton import check_image
from tests.spec.triton.conftest import config_of

STOCK = "nvcr.io/nvidia/tritonserver"
GRAPH = "platform: tensorflow_graphdef"


@pytest.mark.parametrize(
    "image",
    [f"{STOCK}:25.02-py3", f"{STOCK}:24.12-tf2-python-py3", "acme/triton-tf:25.08", f"{STOCK}@sha256:{'2508' * 16}",
     f"{STOCK}:25.02-py3@sha256:{'0' * 64}", f"acme/triton-tf:25.08-py3@sha256:{'0' * 64}"],
)  # fmt: skip
def test_one_that_has_it_or_may_have_it_is_taken(image: str) -> None:
    assert check_image(config_of(GRAPH), image) == []


@pytest.mark.parametrize(
    ("config", "field"),
    [(GRAPH, "platform"), ("platform: tensorflow_savedmodel", "platform"), ("backend: tensorflow", "backend")],
)
@pytest.mark.parametrize("tag", ["25.03-py3", "25.08-py3", "26.01-py3", f"25.08-py3@sha256:{'0' * 64}"])
def test_one_that_lacks_it_is_refused_with_the_last_that_has_it(config: str, field: str, tag: str) -> None:
    (problem,) = check_image(config_of(config), f"{STOCK}:{tag}")
    assert problem.field == field
    assert "25.02" in problem.message
    assert f"write image: {STOCK}:25.02-py3" in problem.fix


def test_other_backends_run_on_every_image() -> None:
    assert check_image(config_of("backend: onnxruntime"), f"{STOCK}:26.01-py3") == []
