"""The workflow files: checked by actionlint, and for what it does not look at."""

import re
import subprocess
from typing import Any

import pytest
import yaml

from local import toolchain
from local.toolchain import metric_chain
from tests.conftest import PROJECT

FILES = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))


def workflow(name: str) -> dict[Any, Any]:
    """One workflow; YAML 1.1 reads its key ``on`` as a boolean."""
    return yaml.safe_load((PROJECT / ".github" / "workflows" / name).read_text())


def test_actionlint_finds_nothing() -> None:
    assert [path.name for path in FILES] == ["review-comment.yml", "review.yml"]
    # The programs for shell and Python that it would call are not everywhere.
    command = [toolchain.ensure_kinds(metric_chain.ACTIONLINT), "-shellcheck=", "-pyflakes=", *FILES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint_would_find_something(tmp_path) -> None:  # noqa: ANN001
    (tmp_path / "bad.yml").write_text(FILES[1].read_text().replace("runs-on", "runs"))
    command = [toolchain.ensure_kinds(metric_chain.ACTIONLINT), "-shellcheck=", "-pyflakes=", tmp_path / "bad.yml"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
class TestEveryWorkflow:
    def test_actions_are_pinned_by_their_commit(self, path) -> None:  # noqa: ANN001
        for line in path.read_text().splitlines():
            if "uses:" in line:
                assert re.search(r"uses: actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line

    def test_no_value_of_others_is_pasted_into_a_script(self, path) -> None:  # noqa: ANN001
        for job in workflow(path.name)["jobs"].values():
            assert not any("${{" in step.get("run", "") for step in job["steps"])


class TestReview:
    def test_code_of_a_fork_runs_with_nothing_to_steal(self) -> None:
        found = workflow("review.yml")
        assert list(found[True]) == ["pull_request"]
        assert found["permissions"] == {"contents": "read"}
        assert "secrets." not in (PROJECT / ".github" / "workflows" / "review.yml").read_text()
        assert all("permissions" not in job for job in found["jobs"].values())

    def test_who_may_write_runs_nothing_of_a_fork(self) -> None:
        found = workflow("review-comment.yml")
        assert found[True] == {"workflow_run": {"workflows": [workflow("review.yml")["name"]], "types": ["completed"]}}
        assert found["permissions"] == {"actions": "read", "pull-requests": "write"}
        assert not any("uses" in step for job in found["jobs"].values() for step in job["steps"])

    def test_both_know_the_comment_by_the_same_names(self) -> None:
        writes, posts = (path.read_text() for path in reversed(FILES))
        assert "name: review-comment\n" in writes
        assert "--name review-comment " in posts
        assert "comment/comment.md" in writes
        assert "comment/comment.md" in posts
