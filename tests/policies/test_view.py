"""What policies look at."""

from typing import Any

import pytest

from policies.judging.unknown import SEALED, UNKNOWN, CannotDecide
from policies.judging.view import Resource, View, dig
from tests.policies.project import spec_of, thing

DATA: dict[str, Any] = {"a": {"b": [{"c": 1}, None]}, "empty": [], "zero": 0, "none": None, "no": False}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ((), DATA),
        (("a", "b", 0, "c"), 1),
        (("a", "b", 1), "default"),
        (("a", "b", 7), "default"),
        (("a", "x", "y"), "default"),
        (("a", 0), "default"),
        (("a", "b", "c"), "default"),
        (("none",), "default"),
        (("none", "x"), "default"),
        (("zero",), 0),
        (("no",), False),
        (("empty",), []),
    ],
)
def test_a_path_that_ends_early_gives_the_default(path: tuple[str | int, ...], expected: object) -> None:
    assert dig(DATA, *path, default="default") == expected


@pytest.mark.parametrize(
    ("value", "path", "text"),
    [
        ({"a": UNKNOWN}, ("a",), "a is unknown"),
        ({"a": UNKNOWN}, ("a", "b", 0), "a.b[0] is unknown"),
        ({"a": [{"b": SEALED}]}, ("a", 0, "b"), "a[0].b is secret"),
    ],
)
def test_a_path_through_something_unknown_cannot_be_decided(
    value: object, path: tuple[str | int, ...], text: str
) -> None:
    with pytest.raises(CannotDecide) as raised:
        dig(value, *path, default="default")
    assert str(raised.value) == text


def test_what_is_unknown_beside_the_path_does_not_matter() -> None:
    assert dig({"a": UNKNOWN, "b": [UNKNOWN, 2]}, "b", 1) == 2


@pytest.mark.parametrize(
    ("type_", "kind", "api", "is_object", "key"),
    [
        ("kubernetes:apps/v1:Deployment", "Deployment", "apps/v1", True, "Deployment/object"),
        ("kubernetes:core/v1:Secret", "Secret", "core/v1", True, "Secret/object"),
        ("kubernetes:helm.sh/v3:Release", "Release", "", False, "kubernetes:helm.sh/v3:Release/pulumi"),
        ("aws:s3/bucket:Bucket", "Bucket", "", False, "aws:s3/bucket:Bucket/pulumi"),
        ("pulumi:providers:kubernetes", "kubernetes", "", False, "pulumi:providers:kubernetes/pulumi"),
        ("no colon at all", "no colon at all", "", False, "no colon at all/pulumi"),
    ],
)  # fmt: skip
def test_names(type_: str, kind: str, api: str, is_object: bool, key: str) -> None:
    found = Resource(type_, "pulumi", {"metadata": {"name": "object"}})
    assert (found.kind, found.api, found.is_object, found.key) == (kind, api, is_object, key)


def test_absent_metadata() -> None:
    found = Resource("kubernetes:core/v1:ConfigMap", "pulumi", {})
    assert (found.object_name, found.namespace, found.labels, found.annotations) == ("pulumi", "default", {}, {})
    assert (found.model, found.owner) == (None, None)


def test_labels_of_the_estate() -> None:
    labels = {"app.kubernetes.io/instance": "mobilenet", "triton-estate.io/owner": "vision"}
    found = thing(inputs={"metadata": {"name": "a", "namespace": "serving", "labels": labels}})
    assert (found.model, found.owner, found.namespace) == ("mobilenet", "vision", "serving")


class TestView:
    ONE = thing("one", {"metadata": {"name": "one", "namespace": "serving"}})
    TWO = thing("two")
    CLOUD = Resource("aws:s3/bucket:Bucket", "models", {})

    def view(self, environment: str = "prod") -> View:
        return View("test", spec_of(environment), resources=(self.ONE, self.CLOUD, self.TWO))

    def test_objects_are_those_of_kubernetes(self) -> None:
        assert self.view().objects == (self.ONE, self.TWO)

    def test_by_kind(self) -> None:
        view = self.view()
        assert list(view.of_kind("ConfigMap")) == [self.ONE, self.TWO]
        assert list(view.of_kind("Bucket", "ConfigMap")) == [self.CLOUD, self.ONE, self.TWO]
        assert list(view.of_kind("Secret")) == []

    def test_by_name(self) -> None:
        view = self.view()
        assert view.find("ConfigMap", "serving", "one") is self.ONE
        assert view.find("ConfigMap", "default", "two") is self.TWO
        assert view.find("ConfigMap", "default", "one") is None
        assert view.find("Secret", "serving", "one") is None

    @pytest.mark.parametrize(("environment", "prod"), [("dev", False), ("prod", True)])
    def test_the_environment(self, environment: str, prod: bool) -> None:
        assert self.view(environment).prod is prod
