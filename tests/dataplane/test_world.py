"""The world itself: a network of its own, in which something answers for pods."""

import json
import sys
from pathlib import Path

import psutil

from local.plane import plane
from local.toolchain import ToolchainForTests
from tests.dataplane.exporters import Exporters, at, growing
from tests.dataplane.world import World, made

PORT = 8123
ACCOUNT = "default/somebody"


def test_what_answers_for_a_pod_knows_which_one_was_asked(world: World, tmp_path: Path) -> None:
    exporters = Exporters(tmp_path)
    exporters.say(PORT, "10.130.0.1", "one\n")
    exporters.say(PORT, "10.130.0.2", "two\n")
    program = Path(__file__).with_name("exporters.py")
    running = world.start("answers", sys.executable, program, tmp_path, str(PORT))
    running.until(lambda: world.fetch(f"http://10.130.0.1:{PORT}/metrics")[0])
    assert world.fetch(f"http://10.130.0.1:{PORT}/metrics") == (200, "one\n")
    assert world.fetch(f"http://10.130.0.2:{PORT}/metrics") == (200, "two\n")
    assert world.fetch(f"http://10.130.0.3:{PORT}/metrics")[0] == 404
    assert world.fetch(f"http://10.130.0.1:{PORT + 1}/metrics") == (0, "")


def test_a_growing_series_grows_with_the_time_that_passed() -> None:
    text = f'a{{x="y"}} {growing(5, 0.5, since=100)}\nb 1\n'
    assert at(100, text) == 'a{x="y"} 5.0\nb 1\n'
    assert at(110, text) == 'a{x="y"} 10.0\nb 1\n'
    assert at(90, text) == at(100, text)


def test_a_process_may_do_what_its_account_may(world: World) -> None:
    world.kubectl.run("create", "serviceaccount", ACCOUNT.partition("/")[2], "--namespace=default")
    # Without a kubeconfig, kubectl is whoever the pod's token says.
    command = ("env", "KUBECONFIG=", "HOME=/", world.tools.kubectl, "auth", "whoami", "--output=json")
    said = json.loads(world.run(*command, account=ACCOUNT))
    assert said["status"]["userInfo"]["username"] == "system:serviceaccount:default:somebody"


def test_the_api_server_takes_other_servers_for_parts_of_its_api(world: World) -> None:
    found = world.kubectl.get("configmap", "extension-apiserver-authentication", "--namespace=kube-system")["data"]
    assert json.loads(found["requestheader-allowed-names"]) == ["front-proxy"]
    assert found["requestheader-client-ca-file"] != found["client-ca-file"]


def test_autoscalers_look_more_often_than_usual(world: World) -> None:
    (pid,) = [one.pid for one in plane.status(world.plane) if one.name == "kube-controller-manager"]
    assert "--horizontal-pod-autoscaler-sync-period=2s" in psutil.Process(pid).cmdline()


def test_nothing_is_left_of_it(tmp_path: Path, tools_for_tests: ToolchainForTests) -> None:
    with made(tmp_path, tools_for_tests) as world:
        sleeping = world.start("sleeping", "sleep", "600")
        parts = [psutil.Process(one.pid) for one in plane.status(world.plane)]
    assert sleeping.process.poll() is not None
    assert not any(part.is_running() and part.status() != psutil.STATUS_ZOMBIE for part in parts)
    assert not world.plane.root.exists()
