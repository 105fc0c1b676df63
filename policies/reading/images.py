"""References to images, for the policies that look at them."""

import re
from collections.abc import Iterator
from typing import Final

from policies.judging.view import Resource, dig
from policies.reading.pods import pods_of

# What registries call the newest of something.
_BRANCHES: Final = frozenset(
    {"latest", "main", "master", "trunk", "head", "tip", "develop", "dev", "devel", "development", "nightly", "daily",
     "edge", "next", "canary", "alpha", "beta", "rc", "preview", "experimental", "snapshot", "unstable", "test",
     "testing", "staging", "stable", "lts", "release", "prod", "production", "current", "newest", "rolling"}
)  # fmt: skip
_ALWAYS: Final = "latest"
_WORDS: Final = re.compile(r"[-._]")
# A number (`nightly-2026-03-01`, `v1.2-dev`), a date without dashes or a commit. The numbers of `py3`, `cuda12.4` are
# none: they say what is inside.
_RELEASE: Final = re.compile(r"(?:^|[-_])[vr]?[0-9]|[0-9]{6,}|(?:^|[-._])[0-9a-f]{7,40}(?=$|[-._])")


def branch_of(tag: str) -> str | None:
    """The word of a tag that says "the newest of something", or None where the tag names a release."""
    words = _WORDS.split(tag.lower())
    if _ALWAYS in words:
        return _ALWAYS
    if _RELEASE.search(tag.lower()):
        return None
    return next((word for word in words if word in _BRANCHES), None)


def references(found: Resource) -> Iterator[tuple[str, str]]:
    """The images that an object runs, each with who runs it.

    Raises:
        CannotDecide: an image is not known yet.
    """
    if pods := pods_of(found):
        for container in pods.all_containers:
            if image := dig(container, "image"):
                yield f"container {dig(container, 'name', default='without a name')}", image
    elif found.is_object and isinstance(image := found.at("spec", "image"), str):
        yield "spec.image", image  # of an operator's kind, e.g. Prometheus
