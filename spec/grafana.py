"""Where the dashboards are shown: in a Grafana made by the stack, or in one that the cluster has (stack file)."""

import re
from typing import Annotated, Final, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from spec import names
from spec.fields import DnsLabel, DnsName, LabelKey, LabelValue, Spec, refuse, refuse_all
from spec.problems import Problem

# Name of the Service in front of a managed Grafana; the port is Grafana's own.
GRAFANA: Final = "grafana"
PORT: Final = 3000
# Key of the Secret with the password of the user "admin", as Grafana's chart calls it.
PASSWORD_KEY: Final = "admin-password"  # noqa: S105  # the name of a key
_URL: Final = re.compile(r"^https?://[^\s?#/@]+(/[^\s?#]*)?$")
_FOLDER: Final = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9 ._-]{0,58}[A-Za-z0-9])?$")
# What Grafana calls the place of dashboards without a folder; no folder can have the name.
_NO_FOLDER: Final = "general"
# What kiwigrid/k8s-sidecar, the sidecar of Grafana's chart, looks at unless FOLDER_ANNOTATION says otherwise.
_SIDECAR_ANNOTATION: Final = "k8s-sidecar-target-directory"
_OWN_LABELS: Final = ("app.kubernetes.io/", f"{names.LABEL_DOMAIN}/")
# Fields of one provider only, in Python's spelling.
_MANAGED: Final = ("admin_secret",)
_EXISTING: Final = ("labels", "folder_annotation", "namespace")


def _check_url(value: str) -> str:
    if not _URL.fullmatch(value) or not urlsplit(value).hostname:
        refuse(
            "not the address of a Grafana",
            allowed="http:// or https://, without user, ? and #",
            fix="write for example https://grafana.example.com",
        )
    return value.rstrip("/")


def _check_folder(value: object) -> str:
    if not isinstance(value, str) or not _FOLDER.fullmatch(value) or value.lower() == _NO_FOLDER:
        refuse(
            "not the name of a folder",
            allowed="1 to 60 letters, digits, spaces, ., _ and -, beginning and ending with a letter or digit; "
            "not General",
            fix="write for example Triton",
        )
    return value


GrafanaUrl = Annotated[
    str, AfterValidator(_check_url), WithJsonSchema({"type": "string", "format": "uri", "pattern": _URL.pattern})
]
FolderName = Annotated[
    str, BeforeValidator(_check_folder), WithJsonSchema({"type": "string", "pattern": _FOLDER.pattern})
]


class GrafanaSpec(Spec):
    """Where the dashboards are shown.

    Attributes:
        provider: ``managed`` makes a Grafana that holds nothing but the dashboards; ``existing`` hands them to the
            sidecar of one that is there, as ConfigMaps.
        url: address at which people open it, and to which the outputs point. Needed for an existing one; by default
            the Service of the managed one, which answers inside the cluster and to a port-forward.
        admin_secret: an existing Secret in the namespace ``monitoring`` whose key ``admin-password`` holds the password
            of the user ``admin``. A managed Grafana needs it, because the password it has by itself is known to all.
        folder: folder of the dashboards.
        labels: labels by which the sidecar finds dashboards; by default those that Grafana's chart looks for.
        folder_annotation: annotation in which the sidecar looks for the folder; by default its own default. Grafana
            makes a folder of it where the chart has ``foldersFromFilesStructure``.
        namespace: an existing namespace in which the sidecar looks; by default ``monitoring``, made by this stack.
    """

    provider: Literal["managed", "existing"] = "managed"
    url: GrafanaUrl | None = None
    admin_secret: DnsName | None = None
    folder: FolderName = "Triton"
    labels: dict[LabelKey, LabelValue] = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    folder_annotation: LabelKey = _SIDECAR_ANNOTATION
    namespace: DnsLabel | None = None

    @model_validator(mode="after")
    def _every_field_does_something(self) -> "GrafanaSpec":
        foreign, other = (_EXISTING, "existing") if self.provider == "managed" else (_MANAGED, "managed")
        problems = [Problem(alias, f"does nothing with provider: {self.provider}", allowed="absent",
                            fix=f"write provider: {other}, or leave {alias} out")
                    for alias in (_alias(name) for name in foreign if name in self.model_fields_set)]  # fmt: skip
        if self.provider == "managed" and self.admin_secret is None:
            problems.append(Problem("adminSecret", "without it everybody knows the administrator's password",
                                    allowed=f"the name of a Secret with the key {PASSWORD_KEY}",
                                    fix="write for example adminSecret: grafana-admin"))  # fmt: skip
        if self.provider == "existing" and self.url is None:
            problems.append(Problem("url", "an existing Grafana has an address that the stack cannot know",
                                    fix="write for example url: https://grafana.example.com"))  # fmt: skip
        if not self.labels:
            problems.append(Problem("labels", "a sidecar finds nothing without a label", allowed="at least one label",
                                    fix="leave labels out"))  # fmt: skip
        taken = [name for name in self.labels if name.startswith(_OWN_LABELS)]
        problems += [Problem(f"labels.{name}", "is decided by the stack", fix=f"leave {name} out") for name in taken]
        if problems:
            refuse_all(problems)
        return self

    @property
    def address(self) -> str:
        """URL of Grafana without a slash at its end, as people open it."""
        return self.url or f"http://{names.service_host(GRAFANA, names.MONITORING_NAMESPACE)}:{PORT}"

    @property
    def path(self) -> str:
        """Path under which Grafana is served, empty or beginning with a slash."""
        return urlsplit(self.address).path


def dashboard_uid(dashboard: str) -> str:
    """Identifier of a dashboard in every Grafana: it never changes, so that links stay good."""
    return f"{names.PROJECT}-{dashboard}"


def model_dashboard(grafana: GrafanaSpec, model: str, triton_name: str, namespace: str) -> str:
    """URL of the dashboard of a model.

    Args:
        grafana: where the dashboards are.
        model: name of the service.
        triton_name: name of the served model inside Triton.
        namespace: where the models run.
    """
    chosen = urlencode({"var-model": model, "var-triton_model": triton_name, "var-namespace": namespace})
    return f"{grafana.address}/d/{dashboard_uid('model')}/model?{chosen}"


def _alias(name: str) -> str:
    return GrafanaSpec.model_fields[name].alias or name
