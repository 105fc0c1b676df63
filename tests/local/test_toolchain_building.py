"""Building what lacks: what is run, what is kept, and how it fails and ends."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from local.toolchain import assemble as toolchain
from local.toolchain import builds, cache, failures, metric_chain, patching, tools
from tests.conftest import PROJECT
from tests.local.machine import Machine, fakes, provider, shell, wait_for


class TestBuilding:
    def test_everything_is_built_and_nothing_else_is_left(self, machine: Machine) -> None:
        made = machine.ensure()
        assert made.kube_apiserver == cache.folder_of(tools.KUBERNETES) / "kube-apiserver"
        assert made.kwok_stages == cache.folder_of(tools.KWOK_STAGES) / "kwok-stages"
        assert sorted(path.name for path in made.kwok_stages.iterdir()) == [
            "node-heartbeat-with-lease.yaml",
            "node-initialize.yaml",
            "pod-complete.yaml",
            "pod-delete.yaml",
            "pod-ready.yaml",
        ]
        assert made.language_exec is not None
        assert os.access(made.language_exec, os.X_OK)
        assert all(os.access(path, os.X_OK) for path in (made.pulumi, made.kubernetes_provider, made.etcd))
        assert {path.name for path in machine.cache.iterdir()} == {"tools", "logs", "lock"}
        assert machine.leftovers() == []

    def test_the_second_time_nothing_is_run(self, machine: Machine) -> None:
        first = machine.ensure()
        machine.said.clear()
        (machine.bin / "go").unlink()
        assert machine.ensure() == first
        assert machine.said == []

    def test_the_plane_needs_nothing_that_measures_on_it(self, machine: Machine) -> None:
        machine.ensure()
        assert not re.search(
            r"keda|istio|prometheus/|cmd/operator", json.dumps([c for c in machine.calls if c[0] == "build"])
        )
        assert not any(cache.folder_of(family).exists() for family in metric_chain.TEST_FAMILIES)

    def test_tests_have_more_tools_beside_those_of_the_plane(self, machine: Machine) -> None:
        plane = machine.ensure()
        Path(f"{machine.config}.calls").unlink()
        made = machine.ensure_for_tests()
        assert vars(plane).items() <= vars(made).items()
        assert made.keda_metrics_adapter == cache.folder_of(metric_chain.KEDA) / "keda-metrics-adapter"
        assert made.prometheus_operator.name == "prometheus-operator"
        assert made.pilot_discovery == cache.folder_of(metric_chain.ISTIO) / "pilot-discovery"
        assert [path.name for path in made.istio_crds.iterdir()] == ["all.yaml"]
        assert made.pilot_agent == cache.folder_of(metric_chain.ISTIO_AGENT) / "pilot-agent"
        assert {path.stem for path in made.keda_crds.iterdir()} >= {"scaledobjects", "triggerauthentications"}
        kinds = {path.stem for folder in (made.prometheus_crds, made.operator_crds) for path in folder.iterdir()}
        assert len(kinds) == 10
        built = [call[call.index("-o") + 2 :] for call in machine.calls if call[0] == "build"]
        assert ["github.com/kedacore/keda/v2/cmd/adapter"] in built
        assert not any("k8s.io/kubernetes" in package for packages in built for package in packages)

    def test_a_folder_of_a_module_is_taken_whole(self, machine: Machine) -> None:
        charts = "manifests/charts"
        sources = {f"{charts}/base/templates/deep/a.yaml": "a: 1\n", f"{charts}/base/values.yaml": "b: 2\n"}
        machine.change(files=machine.settings["files"] | sources)
        made = machine.ensure_for_tests().istio_charts
        assert {path.name for path in made.iterdir()} == {"base", "istiod", "cni", "gateway", "envoy_bootstrap.json"}
        assert (made / "base" / "templates" / "deep" / "a.yaml").read_text() == "a: 1\n"
        assert (made / "base" / "values.yaml").read_text() == "b: 2\n"
        # Written once, and never run.
        assert not os.access(made / "base" / "values.yaml", os.X_OK)

    def test_build_tags_decide_what_is_downloaded_and_built(self, machine: Machine) -> None:
        machine.ensure_for_tests()
        calls = [call for call in machine.calls if call[-1] == "github.com/prometheus/prometheus/cmd/promtool"]
        assert [call[0] for call in calls] == ["list", "build"]
        assert all("-tags=remove_all_sd,enable_kubernetes_sd" in call for call in calls)
        assert len([call for call in machine.calls if any(part.startswith("-tags") for part in call)]) == 2

    def test_only_what_lacks_is_built(self, machine: Machine) -> None:
        machine.ensure()
        cache.remove(cache.folder_of(tools.ETCD))
        Path(f"{machine.config}.calls").unlink()
        machine.ensure()
        assert [call[0] for call in machine.calls] == ["list", "build"]
        assert machine.calls[1][-1] == "go.etcd.io/etcd/server/v3"

    def test_it_says_first_what_lacks_how_long_and_the_way_around(self, machine: Machine) -> None:
        machine.install("etcd", shell("etcd Version: 3.4.0"))
        machine.ensure()
        before = machine.text.partition("downloading")[0]
        assert re.search(r"etcd +/.*/etcd is 3\.4\.0, needed: 3\.5\.13", before)
        assert re.search(r"kwok +not on PATH", before)
        assert re.search(r"about .*minute.* on \d+ core", before)
        assert re.search(rf"Disk in {machine.cache}: [\d.]+ GB while building, [\d.]+ GB afterwards", before)
        assert "An official tool installed on PATH is used instead" in before

    def test_versions_are_stamped_and_binaries_stripped(self, machine: Machine) -> None:
        machine.ensure()
        builds_of = {call[-1]: " ".join(call) for call in machine.calls if call[0] == "build"}
        pulumi = builds_of["github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"]
        assert "-ldflags=-s -w -X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=v" in pulumi
        kubernetes = builds_of["k8s.io/kubernetes/cmd/kubectl"]
        assert f"k8s.io/component-base/version.gitVersion=v{tools.KUBERNETES.version}" in kubernetes
        assert "kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager" in kubernetes
        provider_build = next(line for package, line in builds_of.items() if "resource-kubernetes" in package)
        assert " -gcflags=all=-dwarf=false " in provider_build
        assert "provider/v4/pkg/version.Version=4" in provider_build

    def test_a_tool_that_says_another_version_is_not_kept(self, machine: Machine) -> None:
        machine.change(programs=machine.settings["programs"] | {"kwok": shell("kwok version v0.1.0")})
        with pytest.raises(toolchain.ToolchainError, match=r"kwok was built but says version 0\.1\.0"):
            machine.ensure()
        assert not cache.folder_of(tools.KWOK).exists()
        assert machine.leftovers() == []

    def test_a_failed_build_tells_what_and_where(self, machine: Machine) -> None:
        output = "\n".join(f"line {number}" for number in range(40)) + "\nx.go:1: undefined: y"
        machine.change(fail={"build kwok": output})
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        text = str(caught.value)
        log = machine.cache / "logs" / "kwok.log"
        assert text.startswith(f"building kwok {tools.KWOK.version} failed: ")
        assert "  | x.go:1: undefined: y" in text
        assert "line 20" not in text
        assert f"  log: {log}\n  fix: " in text
        assert "line 20" in log.read_text()
        assert not cache.folder_of(tools.KWOK).exists()
        assert machine.leftovers() == []
        machine.change(fail={})
        assert machine.ensure().kwok.exists()

    def test_without_network(self, machine: Machine) -> None:
        machine.install("etcd", shell("etcd Version: 3.6.20"))
        machine.change(fail={"list kwok": "go: example.test/x: dial tcp: lookup example.test: no such host"})
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        text = str(caught.value)
        lacking = text.splitlines()[0]
        assert lacking.startswith("there is no network to fetch what lacks: ")
        assert "kwok" in lacking
        assert "etcd" not in lacking
        assert "connect once" in text
        assert "install the official tools on PATH" in text

    def test_a_disk_that_is_too_small(self, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
        free = namedtuple_usage(free=3 * 10**9)
        monkeypatch.setattr(toolchain.shutil, "disk_usage", lambda _: free)
        with pytest.raises(toolchain.ToolchainError) as caught:
            machine.ensure()
        assert re.search(rf"{machine.cache} has 3\.0 GB free, needed while building: \d+\.\d GB", str(caught.value))
        assert machine.calls == []

    def test_set_stop_ends_everything(self, machine: Machine) -> None:
        machine.change(hang="kubernetes")
        stop = threading.Event()
        hanging = Path(f"{machine.config}.hanging")
        threading.Thread(target=lambda: (wait_for(hanging.exists), stop.set())).start()
        with pytest.raises(KeyboardInterrupt):
            machine.ensure(stop=stop)
        assert fakes(machine) == []
        assert machine.leftovers() == []
        assert not cache.folder_of(tools.KUBERNETES).exists()

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_ends_everything(self, machine: Machine, number: signal.Signals) -> None:
        name = "pulumi-resource-kubernetes"
        programs = machine.settings["programs"] | {name: provider(tools.PROVIDER.version)}
        machine.change(hang="kubernetes", programs=programs)
        code = "from local import toolchain\ntry:\n  toolchain.ensure()\nexcept KeyboardInterrupt:\n  exit(130)"
        command = (sys.executable, "-c", code)
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as program:
            wait_for(Path(f"{machine.config}.hanging").exists)
            program.send_signal(number)
            said, _ = program.communicate(timeout=20)
        assert program.returncode == 130
        assert "removing the build caches" in said
        assert fakes(machine) == []
        assert machine.leftovers() == []

    def test_the_first_failure_ends_the_others(self, machine: Machine) -> None:
        machine.change(hang="provider", fail={"build etcd": "x.go:1: broken"})
        with pytest.raises(toolchain.ToolchainError, match=r"building etcd .* failed"):
            machine.ensure()
        assert fakes(machine) == []

    def test_the_schema_is_embedded_with_its_version(self, tmp_path: Path) -> None:
        (tmp_path / "schema.json").write_text('{"name": "k", "types": {"a": [1, true, null, 0.5]}}')
        (tmp_path / "terraform-mapping.json").write_text('{"b": "é"}')
        patching.embed_schema(tmp_path, "4.25.0")
        schema = (tmp_path / "schema-embed.json").read_text()
        assert json.loads(schema) == {"name": "k", "types": {"a": [1, True, None, 0.5]}, "version": "4.25.0"}
        assert " " not in schema
        assert json.loads((tmp_path / "terraform-mapping-embed.json").read_text()) == {"b": "é"}

    def test_a_patch_expects_the_pinned_source(self, tmp_path: Path) -> None:
        patch = tools.Patch("x.go", "old()\n", "new()\n")
        (tmp_path / "x.go").write_text("a\nold()\nb\n")
        patching.apply(patch, tmp_path)
        assert (tmp_path / "x.go").read_text() == "a\nnew()\nb\n"
        with pytest.raises(toolchain.ToolchainError, match=r"x\.go is not as the pinned version has it"):
            patching.apply(patch, tmp_path)


@pytest.mark.parametrize(
    ("output", "cause", "says"),
    [
        ("write /x: no space left on device", "disk", "the disk is full"),
        ("Get: dial tcp 1.2.3.4:443: connect: network is unreachable", "network", "network cannot be reached"),
        ("compile: signal: killed", "memory", "ran out of memory"),
        ("verifying x@v1: checksum mismatch", "checksum", "not what local/toolchain/go says"),
        ("fork/exec /x/compile: permission denied", "permission", "may not be written or run"),
        ("x.go:3:2: undefined: y", "", "the last lines of its log tell why"),
    ],
)
def test_causes_in_plain_words(output: str, cause: str, says: str) -> None:
    error = failures.failed("building x", output)
    assert error.cause == cause
    assert says in str(error).splitlines()[0]
    assert f"  | {output}" in str(error)
    assert "\n  fix: " in str(error)


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (2, 2), (64, 2)])
def test_lanes(cores: int, count: int) -> None:
    assert builds.lanes(cores) == count


def test_more_cores_take_less_time() -> None:
    times = [toolchain.estimate(tools.FAMILIES, cores) for cores in (1, 2, 4, 8)]
    assert times == sorted(times, reverse=True)
    assert times[0] == sum(family.seconds for family in tools.FAMILIES)
    assert toolchain.estimate(tools.FAMILIES, 1000) == toolchain.estimate(tools.FAMILIES, 8)


def test_at_most_two_gigabytes_are_left() -> None:
    building, after = toolchain.disk_needed(tools.FAMILIES)
    assert after <= 2000 < building
    assert toolchain.disk_needed(metric_chain.WITH_TESTS)[1] <= 2500


def namedtuple_usage(free: int) -> Any:
    return type("Usage", (), {"free": free})()
