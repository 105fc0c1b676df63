"""The job for annotated Services: which pods it scrapes, where, and whose pod a series speaks of."""

from collections.abc import Callable
from typing import Any

import pytest

from components.monitoring import scraping
from spec.monitoring import MonitoringSpec
from tests.components.conftest import Render
from tests.components.monitored import MANAGED, POOL, SOFTWARE, jobs, relabelled, stored

Renderer = Callable[..., Render]
JOB = "kubernetes-service-endpoints"
META = "__meta_kubernetes"


def target(address: str = "10.0.0.7:80", labels: dict[str, str] | None = None, **annotations: str) -> dict[str, str]:
    """A pod behind a Service, as Prometheus discovers it."""
    return {
        "__address__": address,
        "__scheme__": "http",
        "__metrics_path__": "/metrics",
        "job": JOB,
        f"{META}_namespace": "shop",
        f"{META}_service_name": "cart",
        f"{META}_pod_name": "cart-5d9c-x2x",
        **{f"{META}_service_annotation_prometheus_io_{name}": value for name, value in annotations.items()},
        **{f"{META}_service_label_{name}": value for name, value in (labels or {}).items()},
    }


@pytest.fixture(scope="module")
def job(render: Renderer) -> dict[str, Any]:
    return jobs(render({"a": ""}, monitoring=MANAGED))[JOB]


@pytest.fixture(scope="module")
def apiserver(render: Renderer) -> dict[str, Any]:
    return jobs(render({"a": ""}, monitoring=MANAGED))["kubernetes-apiservers"]


@pytest.fixture(scope="module")
def estate(render: Renderer) -> Render:
    """Models and exporters of this project, which have monitors."""
    return render({"a": "", "b": "heartbeat: {}\n"}, monitoring=MANAGED, gpuPools=[POOL], gpuSoftware=SOFTWARE)


def scraped(job: dict[str, Any], found: dict[str, str]) -> dict[str, str]:
    labels = relabelled(job["relabel_configs"], found)
    assert labels is not None
    return labels


class TestTargets:
    def test_slices_are_read_and_all_namespaces(self, job: dict[str, Any]) -> None:
        assert job["kubernetes_sd_configs"] == [{"role": "endpointslice"}]

    @pytest.mark.parametrize("scrape", ["", "false", "yes", "true "])
    def test_only_what_is_annotated_so_is_kept(self, scrape: str, job: dict[str, Any]) -> None:
        assert relabelled(job["relabel_configs"], target()) is None
        assert relabelled(job["relabel_configs"], target(scrape=scrape)) is None
        assert relabelled(job["relabel_configs"], target(scrape="true")) is not None

    def test_an_annotation_alone_leaves_the_defaults(self, job: dict[str, Any]) -> None:
        found = scraped(job, target(scrape="true"))
        assert (found["__scheme__"], found["__address__"], found["__metrics_path__"]) == (
            "http",
            "10.0.0.7:80",
            "/metrics",
        )

    @pytest.mark.parametrize(("written", "used"), [("http", "http"), ("https", "https"), ("ftp", "http")])
    def test_the_scheme_is_one_of_two(self, written: str, used: str, job: dict[str, Any]) -> None:
        assert scraped(job, target(scrape="true", scheme=written))["__scheme__"] == used

    @pytest.mark.parametrize(("written", "used"), [("/stats/prom", "/stats/prom"), ("", "/metrics")])
    def test_the_path_is_taken_where_there_is_one(self, written: str, used: str, job: dict[str, Any]) -> None:
        assert scraped(job, target(scrape="true", path=written))["__metrics_path__"] == used

    @pytest.mark.parametrize(
        ("address", "port", "used"),
        [
            ("10.0.0.7:80", "9400", "10.0.0.7:9400"),
            ("10.0.0.7", "9400", "10.0.0.7:9400"),
            ("10.0.0.7:80", "metrics", "10.0.0.7:80"),
            ("10.0.0.7:80", "", "10.0.0.7:80"),
            ("[fd00::7]:80", "9400", "[fd00::7]:9400"),
            ("[fd00::7]", "9400", "[fd00::7]:9400"),
            ("[fd00::7]:80", "", "[fd00::7]:80"),
        ],
    )
    def test_the_port_replaces_that_of_the_endpoint(
        self, address: str, port: str, used: str, job: dict[str, Any]
    ) -> None:
        assert scraped(job, target(address, scrape="true", port=port))["__address__"] == used

    def test_the_rules_that_users_know_are_there_as_they_know_them(self, job: dict[str, Any]) -> None:
        known = [
            ("keep", [f"{META}_service_annotation_prometheus_io_scrape"], "true", None, None),
            ("replace", [f"{META}_service_annotation_prometheus_io_scheme"], "(https?)", None, "__scheme__"),
            ("replace", [f"{META}_service_annotation_prometheus_io_path"], "(.+)", None, "__metrics_path__"),
            ("replace", ["__address__", f"{META}_service_annotation_prometheus_io_port"],
             r"([^:]+)(?::\d+)?;(\d+)", "$1:$2", "__address__"),
            ("labelmap", None, f"{META}_service_label_(.+)", None, None),
            ("replace", [f"{META}_namespace"], None, None, "kubernetes_namespace"),
            ("replace", [f"{META}_service_name"], None, None, "kubernetes_name"),
        ]  # fmt: skip
        fields = ("action", "source_labels", "regex", "replacement", "target_label")
        rules = [tuple(step.get(field) for field in fields) for step in job["relabel_configs"]]
        positions = [rules.index(rule) for rule in known]
        assert positions == sorted(positions)


class TestLabels:
    def test_a_target_says_where_it_comes_from(self, job: dict[str, Any]) -> None:
        found = scraped(job, target(scrape="true", labels={"team": "checkout", "app_kubernetes_io_name": "cart"}))
        assert {name: value for name, value in found.items() if not name.startswith("__")} == {
            "job": JOB,
            "team": "checkout",
            "app_kubernetes_io_name": "cart",
            "kubernetes_namespace": "shop",
            "kubernetes_name": "cart",
            "namespace": "shop",
            "pod": "cart-5d9c-x2x",
        }

    def test_a_label_of_a_service_cannot_pass_for_a_namespace_or_a_pod(self, job: dict[str, Any]) -> None:
        found = scraped(
            job, target(scrape="true", labels={"namespace": "bank", "pod": "vault", "kubernetes_name": "v"})
        )
        assert (found["namespace"], found["pod"], found["kubernetes_name"]) == ("shop", "cart-5d9c-x2x", "cart")

    def test_a_service_without_pods_has_no_pod(self, job: dict[str, Any]) -> None:
        assert "pod" not in scraped(job, target(scrape="true") | {f"{META}_pod_name": ""})

    @pytest.mark.parametrize(
        ("sample", "series"),
        [
            # Whose pod a sample is about is the exporter's word; where it says nothing, the target's.
            ({"gpu": "0", "pod": "triton-a", "namespace": "serving"}, {"pod": "triton-a", "namespace": "serving"}),
            ({"gpu": "0"}, {"pod": "cart-5d9c-x2x", "namespace": "shop"}),
        ],
    )
    def test_labels_of_a_sample_win(self, sample: dict[str, str], series: dict[str, str], job: dict[str, Any]) -> None:
        labels = stored(sample, scraped(job, target(scrape="true")), honor=job["honor_labels"])
        assert series.items() <= labels.items()
        assert not [name for name in labels if name.startswith("exported_")]

    @pytest.mark.parametrize(
        "labels", [{"app_kubernetes_io_name": "dcgm-exporter"}, {"app": "nvidia-dcgm-exporter"}], ids=str
    )
    @pytest.mark.parametrize(
        ("sample", "pod"),
        [
            ({"gpu": "0", "pod": "triton-a", "namespace": "serving"}, "triton-a"),
            ({"gpu": "1", "pod": "", "namespace": ""}, None),
            ({"gpu": "2"}, None),
        ],
        ids=str,
    )
    def test_a_gpu_that_nobody_holds_is_not_the_exporters(
        self, sample: dict[str, str], pod: str | None, labels: dict[str, str], job: dict[str, Any]
    ) -> None:
        found = stored(sample, scraped(job, target(scrape="true", labels=labels)), honor=job["honor_labels"])
        assert found.get("pod") == pod
        assert found.get("namespace") == ("serving" if pod else None)
        assert found["kubernetes_namespace"] == "shop"

    def test_another_service_keeps_its_pod(self, job: dict[str, Any]) -> None:
        labels = {"app_kubernetes_io_name": "my-dcgm-exporter-proxy", "app": "cart"}
        assert scraped(job, target(scrape="true", labels=labels))["pod"] == "cart-5d9c-x2x"


class TestOneScrapePath:
    def discovered(self, service: dict[str, Any], **annotations: str) -> dict[str, str]:
        labels = {name.replace(".", "_").replace("/", "_").replace("-", "_"): value
                  for name, value in service["metadata"]["labels"].items()}  # fmt: skip
        return target(labels=labels, **annotations)

    def test_no_service_of_ours_is_annotated_where_monitors_find_it(self, estate: Render) -> None:
        assert len(estate.objects("ServiceMonitor")) == 3
        for service in estate.objects("Service"):
            assert not [key for key in service["metadata"].get("annotations", {}) if key.startswith("prometheus.io/")]

    def test_a_model_stays_out_even_if_somebody_annotates_it(self, estate: Render, job: dict[str, Any]) -> None:
        models = [one for one in estate.objects("Service") if one["metadata"]["namespace"] == "serving"]
        assert len(models) > 4
        for service in models:
            assert relabelled(job["relabel_configs"], self.discovered(service, scrape="true")) is None

    def test_a_service_of_somebody_elses_triton_is_scraped(self, job: dict[str, Any]) -> None:
        assert relabelled(job["relabel_configs"], target(scrape="true", labels={"app_kubernetes_io_name": "triton"}))

    def test_a_model_cannot_write_about_another_pod(self, estate: Render) -> None:
        (endpoint,) = estate.one("ServiceMonitor", "a")["spec"]["endpoints"]
        sample, pod = {"pod": "victim", "namespace": "bank"}, {"pod": "a-v1-x", "namespace": "serving"}
        found = stored(sample, pod, honor=endpoint["honorLabels"])
        assert found == pod | {"exported_pod": "victim", "exported_namespace": "bank"}


class TestApiServer:
    @pytest.mark.parametrize(
        ("namespace", "service", "port", "kept"),
        [
            ("default", "kubernetes", "https", True),
            ("default", "web", "https", False),
            ("shop", "kubernetes", "https", False),
        ],
    )
    def test_it_is_the_only_target(
        self, namespace: str, service: str, port: str, *, kept: bool, apiserver: dict[str, Any]
    ) -> None:
        found = {
            f"{META}_namespace": namespace,
            f"{META}_service_name": service,
            f"{META}_endpointslice_port_name": port,
        }
        assert (relabelled(apiserver["relabel_configs"], found) is not None) == kept

    @pytest.mark.parametrize(
        ("metric", "kept"),
        [
            ("aggregator_unavailable_apiservice", True),
            ("aggregator_unavailable_apiservice_total", False),
            ("apiserver_request_total", False),
        ],
    )
    def test_one_series_of_its_many_is_kept(self, metric: str, *, kept: bool, apiserver: dict[str, Any]) -> None:
        assert (relabelled(apiserver["metric_relabel_configs"], {"__name__": metric}) is not None) == kept

    def test_it_is_asked_as_itself_and_who_it_is_is_checked(self, apiserver: dict[str, Any]) -> None:
        assert apiserver["scheme"] == "https"
        assert apiserver["tls_config"].keys() == {"ca_file", "server_name"}
        assert apiserver["authorization"]["credentials_file"].endswith("/token")

    @pytest.mark.parametrize(("interval", "used"), [("15s", "60s"), ("2m", "2m")])
    def test_it_is_asked_once_a_minute_at_most(self, interval: str, used: str) -> None:
        monitoring = MonitoringSpec.model_validate({"scrapeInterval": interval})
        assert scraping.apiserver_job(monitoring).scrape_interval == used


class TestText:
    def test_it_is_the_same_every_time(self) -> None:
        one, two = (scraping.scrape_configs(MonitoringSpec()) for _ in range(2))
        assert one == two

    def test_dollars_survive(self) -> None:
        assert scraping.scrape_configs(MonitoringSpec()).count("$1:$2") == 2
