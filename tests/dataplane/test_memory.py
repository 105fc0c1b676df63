"""The shared memory that real Python models take, against the /dev/shm that is rendered."""

from collections.abc import Mapping

import pytest

from components.serving import runtime
from local.triton import regions
from tests.dataplane.serving import Service

MEBIBYTE = 2**20


@pytest.mark.parametrize(
    ("name", "count"),
    [("mobilenet", 1), ("photo-tagger", 4 + 1), pytest.param("corners", 2, id="corners-two-versions")],
)
def test_each_instance_of_each_version_takes_a_region(name: str, count: int, services: Mapping[str, Service]) -> None:
    assert len(regions(services[name].process)) == count


@pytest.mark.parametrize("name", ["mobilenet", "photo-tagger", "corners"])
def test_the_rendered_shared_memory_holds_them(name: str, services: Mapping[str, Service]) -> None:
    service = services[name]
    taken = sum(region.stat().st_size for region in regions(service.process))
    assert 0 < taken < runtime.shared_memory_mib(service.revision) * MEBIBYTE
