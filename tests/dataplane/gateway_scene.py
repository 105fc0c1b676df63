"""An estate behind a gateway, and somebody who calls it."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import grpc
import pytest
import yaml

from local.toolchain import ToolchainForTests
from spec.signing import KEYS_SETTING, mint
from spec.tokens import TokensSpec
from tests.dataplane import gateway, gateway_triton
from tests.dataplane.chain import pods
from tests.dataplane.gateway import Gate
from tests.dataplane.gateway_calls import Answer, Caller, ask
from tests.dataplane.gateway_certificates import Authority
from tests.dataplane.gateway_front import INTERNAL, PUBLIC
from tests.dataplane.world import InWorld, made
from tests.keys import private, public

DOMAIN: Final = "models.example.com"
API: Final = f"api.{DOMAIN}"
ISSUER: Final = "https://issuer.example.com"
KEYS: Final = [{"id": name, "publicKey": public(name)} for name in ("k1", "k2")]
CONSUMERS: Final = {
    "team-a": {"models": ["metered", "metered-too"], "expires": "2099-01-01"},
    "team-b": {"models": ["metered"], "expires": "2099-01-01"},
}
TOKENS: Final[dict[str, Any]] = {"issuer": ISSUER, "keys": KEYS, "consumers": CONSUMERS}
TWO: Final[dict[str, Any]] = {"revisions": {"v1": {}, "v2": {}}}
ALL_V1: Final = {"v1": 100, "v2": 0}
INGRESS: Final = {
    "provider": "existing",
    "namespace": gateway.NAMESPACE,
    "selector": gateway.SELECTOR,
    "domain": DOMAIN,
    "prefixHost": API,
}
FRONTS: Final = (gateway.FRONT, PUBLIC, INTERNAL)
PERCENT: Final = 30
RATE: Final = 5
METERED: Final = {"auth": {"token": True}, "traffic": {"limits": {"requestsPerSecond": RATE}}}
LIMIT: Final = 65_536
PLAIN: Final = {
    "backend": "python",
    "input": [{"name": "a", "data_type": "TYPE_FP32", "dims": [1]}],
    "output": [{"name": "b", "data_type": "TYPE_FP32", "dims": [1]}],
}
MODELS: Final[dict[str, dict[str, Any]]] = {
    "divided": TWO | {"traffic": {"split": {"v1": 80, "v2": 20}}},
    "copied": TWO | {"traffic": {"split": ALL_V1, "mirror": {"to": "v2", "percent": PERCENT}}},
    "tested": TWO
    | {"traffic": {"split": ALL_V1, "testers": {"header": {"name": "x-revision", "value": "v2"}, "to": "v2"}}},
    "baked": TWO | {"traffic": {"split": ALL_V1, "testers": {"cookie": {"name": "ring", "value": "v.2"}, "to": "v2"}}},
    "lent": {"traffic": {"mirror": {"model": "model-7"}}, "config": {"name": "same", **PLAIN}},
    "promoted": TWO | {"traffic": {"split": ALL_V1}},
    "guarded": {"auth": {"token": True}},
    "guarded-too": {"auth": {"token": True}},
    "limited": {"traffic": {"limits": {"requestsPerSecond": RATE}}},
    "metered": METERED,
    "metered-too": METERED,
    "small": {"traffic": {"limits": {"maxRequestSize": f"{LIMIT // 1024}Ki"}}},
    "hasty": {"traffic": {"timeout": "1s"}},
    "wide": {"scaling": {"min": 4, "max": 4}},
    "picture": {"auth": {"token": True}, "config": gateway_triton.CONFIG},
    **{f"model-{number}": {} for number in range(1, 12)},
    "model-7": {"config": {"name": "same", **PLAIN}},
}


@dataclass(frozen=True)
class Scene:
    """The stack behind its gateway."""

    gate: Gate
    project: InWorld
    caller: Caller

    def addresses(self, workload: str) -> set[str]:
        """Of the pods of a revision, ``<model>-<revision>``."""
        found = pods(self.gate.world, self.project.namespace, f"{workload}-")
        return {pod.address for pod in found if pod.name.startswith(f"{workload}-")}

    def copies(self) -> int:
        """Requests to the shadow since somebody last asked."""
        time.sleep(1)
        found, shadow = self.gate.backends.take(), self.addresses("copied-v2")
        return sum(number for (pod, _, _), number in found.items() if pod in shadow)

    def by_revision(self, model: str, answers: list[Answer]) -> dict[str, int]:
        """How many good answers each revision gave; there may be no other ones."""
        bad = [one for one in answers if one.status not in {0, 200}]
        assert bad == [], bad[:3]
        of = {address: name for name in ("v1", "v2") for address in self.addresses(f"{model}-{name}")}
        return dict(Counter(of[one.pod] for one in answers))


def write(project: InWorld, models: Mapping[str, Mapping[str, object]]) -> None:
    for file in (project.folder / "models").iterdir():
        file.unlink()
    for name, more in models.items():
        content: dict[str, object] = {"name": name, "owner": "tests", "repository": f"s3://acme/{name}"}
        content |= {"resources": {"cpu": 1, "memory": "1Gi"}} | dict(more)
        (project.folder / "models" / f"{name}.yaml").write_text(yaml.safe_dump(content))


def token(
    *models: str, key: str = "k1", audience: str = DOMAIN, issuer: str = ISSUER, expires: str = "2099-01-01"
) -> str:
    """One for these models, good unless said otherwise."""
    spec = {
        "issuer": issuer,
        "keys": [{"id": key, "publicKey": public(key)}],
        "consumers": {"team": {"models": list(models), "expires": expires}},
    }
    return mint(TokensSpec.model_validate(spec), audience, {key: private(key)})["team"]


def host(model: str) -> str:
    return f"{model}.{DOMAIN}"


def give_key(project: InWorld) -> None:
    """Put the key that signs into the stack's settings, as docs/tokens.md says."""
    command = project.command("config", "set", "--secret", "--path", f"triton-estate:{KEYS_SETTING}.k1")
    subprocess.run(command, cwd=project.folder, env=project.environment, input=private(), text=True, check=True)


@pytest.fixture(scope="session")
def authority() -> Authority:
    """Signs the certificates of this world."""
    return Authority("tests")


@pytest.fixture(scope="session")
def routed(
    tmp_path_factory: pytest.TempPathFactory, tools_for_tests: ToolchainForTests, authority: Authority
) -> Iterator[Scene]:
    """A world of its own, in which pods die and ports are those of the pods."""
    with made(tmp_path_factory.mktemp("gate-world"), tools_for_tests) as world:
        gateway.install(world, FRONTS)
        project = world.project("traffic")
        write(project, MODELS)
        project.set(models={}, gpuPools=[], ingress=INGRESS, tokens=TOKENS)
        give_key(project)
        project.up().must_succeed()
        folder = tmp_path_factory.mktemp("gate")
        (folder / "roots.pem").write_text(authority.root)
        # istiod fetches the keys of issuers itself, by default every 20 minutes.
        environment = {"SSL_CERT_FILE": str(folder / "roots.pem"), "PILOT_JWT_PUB_KEY_REFRESH_INTERVAL": "1s"}
        gate = gateway.start(world, folder, FRONTS, environment)
        wanted = {f"{name}.{protocol}" for name in MODELS for protocol in ("http", "grpc", "grpc-stream")}
        gate.envoy.until(lambda: wanted <= set(gate.routes()))
        found = Scene(gate, project, Caller(gate.backends.door(gateway.PORT)))
        gate.envoy.until(lambda: all(found.caller.infer(host(name), name).status in {200, 403} for name in MODELS))
        gate.backends.take()
        yield found


@pytest.fixture(params=["http", "grpc"])
def infer(request: pytest.FixtureRequest, routed: Scene) -> Iterator[Callable[..., Answer]]:
    """Asks a model on its own host; ``name`` is the model's."""
    if request.param == "http":
        yield lambda name, **headers: routed.caller.infer(host(name), name, headers=headers)
        return
    with ExitStack() as stack:
        channels: dict[str, grpc.Channel] = {}

        def one(name: str, **headers: str) -> Answer:
            if name not in channels:
                channels[name] = stack.enter_context(routed.caller.channel(host(name)))
            return ask(channels[name], name, list(headers.items()))

        yield one
