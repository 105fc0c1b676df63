"""The setting monitoring.grafana: what is taken, what is refused, and where the links lead."""

from typing import Any

import pytest

from spec.estate import EstateSpec
from spec.grafana import GrafanaSpec, dashboard_uid, model_dashboard
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

ATTACHED = {"provider": "existing", "url": "http://prometheus.example.com"}
URL = "https://grafana.example.com"
MANAGED: dict[str, Any] = {"adminSecret": "grafana-admin"}
EXISTING: dict[str, Any] = {"provider": "existing", "url": URL}


def check(grafana: dict[str, Any] | None, **monitoring: object) -> list[Problem]:
    settings = {"prometheus": ATTACHED, "grafana": grafana} | monitoring
    stack = {"environment": "dev", "monitoring": {key: value for key, value in settings.items() if value is not None}}
    return validate(EstateSpec, stack, Source("Pulumi.test.yaml", stack))[1]


class TestAccepted:
    @pytest.mark.parametrize(
        "grafana",
        [
            None,
            MANAGED,
            MANAGED | {"url": f"{URL}/dashboards/", "folder": "GPU serving"},
            EXISTING,
            EXISTING | {"labels": {"dashboards": "yes"}, "folderAnnotation": "grafana_folder", "namespace": "observe"},
        ],
        ids=str,
    )
    def test_it_is(self, grafana: dict[str, Any] | None) -> None:
        assert check(grafana) == []

    @pytest.mark.parametrize("grafana", [EXISTING, MANAGED])
    def test_the_operator_is_not_needed(self, grafana: dict[str, Any]) -> None:
        assert check(grafana, operator=False) == []

    def test_an_existing_one_knows_its_prometheus(self) -> None:
        assert check(EXISTING, prometheus=None) == []


class TestRefused:
    @pytest.mark.parametrize(
        ("grafana", "field", "says"),
        [
            ({}, "adminSecret", "everybody knows"),
            (MANAGED | {"labels": {"a": "1"}}, "labels", "does nothing with provider: managed"),
            (MANAGED | {"folderAnnotation": "a"}, "folderAnnotation", "does nothing with provider: managed"),
            (MANAGED | {"namespace": "a"}, "namespace", "does nothing with provider: managed"),
            (EXISTING | {"adminSecret": "a"}, "adminSecret", "does nothing with provider: existing"),
            ({"provider": "existing"}, "url", "the stack cannot know"),
            (MANAGED | {"url": "grafana.example.com"}, "url", "not the address of a Grafana"),
            (MANAGED | {"url": "https://admin:secret@grafana.example.com"}, "url", "not the address of a Grafana"),
            (MANAGED | {"url": f"{URL}?orgId=1"}, "url", "not the address of a Grafana"),
            (MANAGED | {"folder": "a/b"}, "folder", "not the name of a folder"),
            (MANAGED | {"folder": "General"}, "folder", "not the name of a folder"),
            (MANAGED | {"folder": " "}, "folder", "not the name of a folder"),
            (MANAGED | {"adminSecret": "My_Secret"}, "adminSecret", "not a Kubernetes object name"),
            (EXISTING | {"labels": {}}, "labels", "finds nothing"),
            (EXISTING | {"labels": {"app.kubernetes.io/name": "a"}}, "labels.app.kubernetes.io/name", "is decided by"),
            (MANAGED | {"provider": "cloud"}, "provider", ""),
            (MANAGED | {"password": "hunter2"}, "password", ""),
        ],
        ids=str,
    )
    def test_it_is(self, grafana: dict[str, Any], field: str, says: str) -> None:
        (problem,) = check(grafana)
        assert problem.field == f"monitoring.grafana.{field}"
        assert says in problem.message
        assert problem.fix

    def test_all_that_is_foreign_is_told_at_once(self) -> None:
        found = check({"labels": {"a": "1"}, "namespace": "a"})
        assert [problem.field.rpartition(".")[2] for problem in found] == ["labels", "namespace", "adminSecret"]

    def test_a_managed_one_without_a_prometheus(self) -> None:
        (problem,) = check(MANAGED, prometheus=None)
        assert problem.field == "monitoring.grafana"
        assert "prometheus" in problem.fix


class TestLinks:
    @pytest.mark.parametrize(
        ("grafana", "base"),
        [
            (MANAGED, "http://grafana.monitoring.svc.cluster.local:3000"),
            (MANAGED | {"url": f"{URL}/"}, URL),
            (EXISTING | {"url": f"{URL}/team/"}, f"{URL}/team"),
        ],
    )
    def test_a_model_has_its_own(self, grafana: dict[str, Any], base: str) -> None:
        found = model_dashboard(GrafanaSpec.model_validate(grafana), "photo-tagger", "photo_tagger", "serving")
        chosen = "var-model=photo-tagger&var-triton_model=photo_tagger&var-namespace=serving"
        assert found == f"{base}/d/triton-estate-model/model?{chosen}"

    def test_what_a_url_cannot_hold_is_written_as_it_must(self) -> None:
        found = model_dashboard(GrafanaSpec.model_validate(EXISTING), "m", "a+b", "serving")
        assert "var-triton_model=a%2Bb" in found

    def test_an_identifier_carries_the_projects_name(self) -> None:
        assert dashboard_uid("traffic") == "triton-estate-traffic"

    @pytest.mark.parametrize(("url", "path"), [(URL, ""), (f"{URL}/", ""), (f"{URL}/a/b", "/a/b")])
    def test_the_path_of_a_proxy_is_known(self, url: str, path: str) -> None:
        assert GrafanaSpec.model_validate(MANAGED | {"url": url}).path == path
