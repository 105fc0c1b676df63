"""Helm charts of others: where they come from, and how they are installed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pulumi
import pulumi_kubernetes as k8s

# Until the pods of a chart are ready, image pull included; the provider's own default is half of it.
_TIMEOUT_SECONDS: Final = 600


@dataclass(frozen=True)
class Chart:
    """A chart, pinned; all of them stand in ``components.versions``.

    Attributes:
        name: in its repository, and in the stack setting ``charts``.
        repository: URL of the repository.
        version: the exact version.
    """

    name: str
    repository: str
    version: str


def chart_release(
    name: str,
    chart: Chart,
    namespace: str,
    values: Mapping[str, object],
    sources: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> k8s.helm.v3.Release:
    """Install a chart as a Helm release, expanded by the provider and not in this program.

    Args:
        name: of the resource and of the release; a chart makes the names of its objects of it.
        chart: the pinned chart.
        namespace: an existing namespace.
        values: for the chart; no secrets, they would be readable in the state.
        sources: the stack setting ``charts``: a chart found here comes from that folder or archive instead.
        opts: options of the resource.
    """
    path = sources.get(chart.name)
    return k8s.helm.v3.Release(
        name,
        name=name,
        chart=_expanded(path) if path else chart.name,
        # What lies in a folder is of the version that it is.
        version=None if path else chart.version,
        repository_opts=None if path else k8s.helm.v3.RepositoryOptsArgs(repo=chart.repository),
        namespace=namespace,
        values=dict(values),
        timeout=_TIMEOUT_SECONDS,
        opts=opts,
    )


def _expanded(path: str) -> str:
    """The path without ``~``; a leading ``./`` stays, because without it Helm would look for a chart of that name."""
    return str(Path(path).expanduser()) if path.startswith("~") else path
