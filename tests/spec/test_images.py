"""References to images, taken apart."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.images import Image, parse_image

DIGEST = f"sha256:{'0123456789abcdef' * 4}"
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@pytest.mark.parametrize(
    ("text", "image"),
    [
        ("triton", Image("triton")),
        ("triton:1", Image("triton", "1")),
        ("host:5000/a/b", Image("host:5000/a/b")),
        ("host:5000/a/b:tag", Image("host:5000/a/b", "tag")),
        (f"a/b@{DIGEST}", Image("a/b", None, DIGEST)),
        (f"host:5000/a@{DIGEST}", Image("host:5000/a", None, DIGEST)),
        (f"host:5000/a:v1@{DIGEST}", Image("host:5000/a", "v1", DIGEST)),
    ],
)
def test_every_form_is_taken_apart(text: str, image: Image) -> None:
    assert parse_image(text) == image


@pytest.mark.parametrize(
    ("text", "version"),
    [("a:v1", "v1"), (f"a:v1@{DIGEST}", "v1"), (f"a@{DIGEST}", "0123456789ab"), ("a", ""), ("a:_x-", "x")],
)
def test_the_version_is_the_tag_or_the_beginning_of_the_digest(text: str, version: str) -> None:
    assert parse_image(text).version == version


@given(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", fullmatch=True), st.booleans())
def test_the_version_is_always_the_value_of_a_label(tag: str, pinned: bool) -> None:
    image = parse_image(f"host:5000/a:{tag}" + (f"@{DIGEST}" if pinned else ""))
    assert image.tag == tag
    assert LABEL_VALUE.fullmatch(image.version)
