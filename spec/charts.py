"""Where the Helm charts of others come from (stack file)."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, WithJsonSchema

from spec.fields import refuse
from spec.problems import Problem

# Names of the charts in their own repositories.
ChartName = Literal["base", "cni", "gateway", "hami", "istiod", "keda", "kube-prometheus-stack"]

_PATH: Final = re.compile(r"^(/|\./|\.\./|~/).+$")


def _check_path(value: str) -> str:
    if not _PATH.fullmatch(value):
        refuse(
            "not the path of a chart",
            allowed="a folder or .tgz file that starts with /, ./, ../ or ~/",
            fix="write for example ./charts/hami-2.8.0.tgz",
        )
    return value


ChartPath = Annotated[str, AfterValidator(_check_path), WithJsonSchema({"type": "string", "pattern": _PATH.pattern})]


def check_charts(charts: Mapping[ChartName, str], installed: Mapping[ChartName, tuple[bool, str]]) -> Iterator[Problem]:
    """Sources of charts that this stack does not install, fields relative to the stack.

    Args:
        charts: the setting ``charts``.
        installed: for each chart whether the stack installs it, and the setting that would make it.
    """
    for name, path in charts.items():
        made, setting = installed.get(name, (False, ""))
        if not made:
            fix = f"set {setting}, or leave {name} out" if setting else f"leave {name} out"
            yield Problem(f"charts.{name}", "this stack does not install that chart", path, "absent", fix)
