"""A control plane for the engine tests, and copies of the project to change at will."""

from collections.abc import Callable, Iterator

import pytest

from local.plane import plane, workspace
from local.plane.state import Folder
from local.toolchain import Toolchain
from tests.engine.project import Project


@pytest.fixture(scope="session")
def running_plane(tmp_path_factory: pytest.TempPathFactory, tools: Toolchain) -> Iterator[Folder]:
    """A plane of these tests' own."""
    folder = Folder(tmp_path_factory.mktemp("engine") / "plane")
    plane.up(folder, tools, print)
    workspace.prepare(folder, tools)
    yield folder
    plane.down(folder, print)


@pytest.fixture(scope="session")
def new_project(running_plane: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Project]]:
    """Makes copies of the project, each with a stack, a namespace and node names of its own."""
    made: list[Project] = []

    def make(stack: str) -> Project:
        project = Project.copy(tmp_path_factory.mktemp(stack), running_plane, stack)
        made.append(project)
        return project

    yield make
    for project in made:
        project.pulumi("destroy", "--yes", "--skip-preview")


@pytest.fixture(scope="session")
def deployed(new_project: Callable[[str], Project]) -> Project:
    """A deployed stack that its tests leave as they found it."""
    project = new_project("main")
    project.up().must_succeed()
    return project
