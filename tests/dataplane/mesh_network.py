"""Networks of pods: a namespace for each, with the pod's address, joined to the network of the world."""

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from tests.dataplane.mesh_volumes import NODE
from tests.dataplane.world import Running, World

# The other end of every pod's cable, as in networks without a bridge.
_ROUTER: Final = "169.254.1.1"
_FORWARDING: Final = """
set -eu
echo 1 > /proc/sys/net/ipv4/ip_forward
ip rule add pref 2 lookup local
ip rule delete pref 0
"""
_SANDBOX: Final = 'set -eu; ip link set lo up; for one in "$@"; do echo "${one#*=}" > "/proc/sys/${one%%=*}"; done; \
touch "$READY"; exec sleep infinity'
# Arguments: a process in the pod's network, a number of its own, the pod's address, the router's, the node's.
_CABLE: Final = """
set -eu
ip link add "cable$2" type veth peer name eth0 netns "$1"
ip address add $4/32 dev "cable$2"
ip link set "cable$2" up
ip route add "$3" dev "cable$2" src $5 table "$2"
ip rule add pref 1 to "$3" lookup "$2"
nsenter --net --target="$1" sh -euc '
ip address add "$0/32" dev eth0; ip link set eth0 up
ip route add "$1" dev eth0; ip route add default via "$1"' "$3" "$4"
"""
_ASK: Final = """
import json, sys, urllib.error, urllib.request
asked = urllib.request.Request(sys.argv[1], headers=json.loads(sys.argv[2]))
try:
    answer = urllib.request.urlopen(asked, timeout=20)
except urllib.error.HTTPError as error:
    answer = error
except OSError as error:
    print(f"0\\n{error}")
    sys.exit()
print(answer.status)
sys.stdout.write(answer.read().decode())
"""
_NUMBERS: Final = count(100)


def connect(world: World) -> None:
    """Make the world's network one that pods can be joined to.

    It takes root: a sidecar is told from what it stands beside by its user, and a namespace of users made by anybody
    else has one user only.
    """
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.fail("pods whose containers are of several users need root, and setpriv (util-linux)", pytrace=False)
    world.run("sh", "-c", _FORWARDING)


def sandboxed(world: World, pod: Mapping[str, Any], folder: Path) -> Running:
    """The network of a pod, held by a process that does nothing.

    Args:
        world: where, see :func:`connect`.
        pod: what the API server holds, with an address.
        folder: for a file that says that it is there.
    """
    ready = folder / "ready"
    settings = pod["spec"].get("securityContext", {}).get("sysctls", [])
    told = [f"{one['name'].replace('.', '/')}={one['value']}" for one in settings]
    command = ("unshare", "--net", "sh", "-c", _SANDBOX, "sh", *told)
    sandbox = world.start(f"{pod['metadata']['name']}-network", *command, environment={"READY": str(ready)})
    sandbox.until(ready.exists)
    cable = (str(sandbox.process.pid), str(next(_NUMBERS)), pod["status"]["podIP"], _ROUTER, NODE)
    world.run("sh", "-c", _CABLE, "sh", *cable)
    return sandbox


def fetch(
    world: World, where: Sequence[str | Path], url: str, headers: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Status and text of a request; ``where`` is what enters the network that it comes from, in the world."""
    said = world.run(*where, sys.executable, "-ISc", _ASK, url, json.dumps(dict(headers or {})), seconds=60)
    status, _, text = said.partition("\n")
    return int(status), text
