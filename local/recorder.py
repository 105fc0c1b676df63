"""Run the Pulumi program with neither engine nor cluster, and keep what it registered."""

import asyncio
import contextvars
import gc
import json
import os
import runpy
from collections.abc import Callable, Mapping
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pulumi
from pulumi.runtime import mocks, rpc
from pulumi.runtime.settings import set_root_resource
from pulumi.runtime.stack import run_in_stack

from spec import names

_CONFIG: Final = "PULUMI_CONFIG"


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON
    """The same data with whole numbers as integers: protobuf knows doubles only."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class Recorded:
    """One registered resource.

    Attributes:
        type: Pulumi type token, e.g. ``kubernetes:apps/v1:Deployment``.
        name: Pulumi name.
        inputs: its properties as the provider would get them.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]

    @property
    def is_object(self) -> bool:
        """Whether it is a Kubernetes object rather than a component or a provider."""
        return self.type.startswith("kubernetes:")

    @property
    def model(self) -> str | None:
        """The model that a Kubernetes object belongs to."""
        return self._label("instance")

    @property
    def revision(self) -> str | None:
        """The revision that a Kubernetes object belongs to."""
        return self._label("version")

    def _label(self, name: str) -> str | None:
        return self.inputs.get("metadata", {}).get("labels", {}).get(f"app.kubernetes.io/{name}")


@dataclass
class Recording(mocks.Mocks):
    """What a run registered, in order, and what it exported."""

    resources: list[Recorded] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)

    def new_resource(self, args: pulumi.runtime.MockResourceArgs) -> tuple[str | None, dict[Any, Any]]:
        """Keep the resource; its outputs are its inputs."""
        self.resources.append(Recorded(args.typ, args.name, args.inputs))
        return f"{args.name}-id", dict(args.inputs)

    def call(self, args: pulumi.runtime.MockCallArgs) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        """The program calls no provider function; one that does must say so here."""
        raise NotImplementedError(args.token)

    def objects(self) -> list[Recorded]:
        """The Kubernetes objects."""
        return [found for found in self.resources if found.is_object]


class _Monitor(mocks.MockMonitor):
    """Also keeps what the stack exports."""

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: ANN401, N802  # the protocol's name and types
        if "pulumi:pulumi:Stack" in request.urn and isinstance(self.mocks, Recording):
            self.mocks.outputs.update(rpc.deserialize_properties(request.outputs))
        return super().RegisterResourceOutputs(request)


def record(program: Callable[[], None], *, stack: str, settings: Mapping[str, object] | None = None) -> Recording:
    """Run a program against a recording instead of an engine.

    Args:
        program: registers resources.
        stack: name of the stack.
        settings: the stack's settings under the project's namespace.

    Raises:
        pulumi.RunError: raised by the program.
    """
    # A context of its own, because the SDK keeps the stack under construction in context variables.
    return contextvars.copy_context().run(_record, program, stack, settings or {})


def record_stack(folder: Path, stack: str, settings: Mapping[str, object]) -> Recording:
    """Run the project's own ``__main__.py`` for a stack; see :func:`record`."""
    with chdir(folder):
        return record(lambda: _run_file(folder / "__main__.py"), stack=stack, settings=settings)


def _run_file(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def _record(program: Callable[[], None], stack: str, settings: Mapping[str, object]) -> Recording:
    recording = Recording()
    config = {f"{names.PROJECT}:{k}": v if isinstance(v, str) else json.dumps(v) for k, v in settings.items()}
    before = os.environ.get(_CONFIG)
    os.environ[_CONFIG] = json.dumps(config)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    collecting = gc.isenabled()
    gc.disable()  # nothing becomes garbage before the end, and looking for it takes a quarter of the time
    try:
        pulumi.runtime.set_mocks(recording, names.PROJECT, stack, preview=False, monitor=_Monitor(recording))
        # set_mocks makes an anonymous root, where run_in_stack wants none yet.
        set_root_resource(cast("pulumi.Resource", None))
        loop.run_until_complete(run_in_stack(program))
        return recording
    finally:
        if collecting:
            gc.enable()
        if before is None:
            del os.environ[_CONFIG]
        else:
            os.environ[_CONFIG] = before
        asyncio.set_event_loop(None)
        loop.close()
