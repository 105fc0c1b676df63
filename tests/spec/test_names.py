"""Names, labels and addresses: valid in Kubernetes for every model and revision that may exist."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec import names

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


def dns_labels(longest: int) -> st.SearchStrategy[str]:
    middle = f"[-a-z0-9]{{0,{longest - 2}}}"
    return st.from_regex(rf"[a-z]({middle}[a-z0-9])?", fullmatch=True)


MODELS = dns_labels(names.MODEL_NAME_MAX) | st.just("m" * names.MODEL_NAME_MAX)
REVISIONS = dns_labels(names.REVISION_NAME_MAX) | st.just("r" * names.REVISION_NAME_MAX)
OWNERS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", fullmatch=True)


class TestComputedNames:
    @given(MODELS, REVISIONS)
    def test_workload_and_config_map_are_dns_labels_of_63_characters(self, model: str, revision: str) -> None:
        for name in (names.workload(model, revision), names.config_map(model, revision)):
            assert LABEL.fullmatch(name)
            assert len(name) <= 63

    @given(MODELS, REVISIONS)
    def test_the_name_of_a_pod_fits_into_a_host_name(self, model: str, revision: str) -> None:
        # A Deployment appends -<10 characters of hash> and its ReplicaSet -<5 characters>.
        pod = f"{names.workload(model, revision)}-{'x' * 10}-{'y' * 5}"
        assert len(pod) <= 63

    @given(MODELS, dns_labels(63))
    def test_the_host_of_a_service_is_a_dns_name(self, model: str, namespace: str) -> None:
        host = names.service_host(model, namespace)
        assert host == f"{model}.{namespace}.svc.cluster.local"
        assert len(host) <= 253

    def test_a_node_of_the_largest_pool_fits_its_hostname_label(self) -> None:
        assert len(f"{'p' * names.POOL_NAME_MAX}-999") <= 63


class TestLabels:
    @given(MODELS, OWNERS, REVISIONS | st.none())
    def test_keys_and_values_are_valid(self, model: str, owner: str, revision: str | None) -> None:
        for key, value in (names.labels(model, owner, revision) | names.estate_labels("serving")).items():
            assert LABEL_KEY.fullmatch(key)
            assert LABEL_VALUE.fullmatch(value)
            assert len(value) <= 63

    @given(MODELS, OWNERS, REVISIONS)
    def test_a_selector_is_a_subset_of_the_labels(self, model: str, owner: str, revision: str) -> None:
        labels = names.labels(model, owner, revision).items()
        assert names.selector(model).items() <= names.selector(model, revision).items() <= labels

    @given(MODELS, REVISIONS, REVISIONS)
    def test_selectors_of_two_revisions_never_match_the_same_pod(self, model: str, one: str, two: str) -> None:
        selected = names.selector(model, one).items() <= names.labels(model, "o", two).items()
        assert selected == (one == two)

    def test_a_selector_knows_no_owner_because_owners_change(self) -> None:
        assert names.OWNER_LABEL not in names.selector("m", "v1")

    def test_those_of_a_model_select_all_its_revisions(self) -> None:
        assert names.selector("m") == {"app.kubernetes.io/name": "triton", "app.kubernetes.io/instance": "m"}


class TestSuggestions:
    @pytest.mark.parametrize(
        ("written", "suggested"),
        [("triton_test", "triton-test"), ("ResNet50", "resnet50"), ("3d_detector", "d-detector"), ("a.b c", "a-b-c"),
         ("-x-", "x"), ("_", ""), ("42", ""), ("modèle", "mod-le")],
    )  # fmt: skip
    def test_the_closest_label_is_offered(self, written: str, suggested: str) -> None:
        assert names.suggest_dns_label(written, 63) == suggested

    @given(st.text(), st.integers(min_value=1, max_value=63))
    def test_a_suggestion_is_always_accepted(self, written: str, longest: int) -> None:
        suggested = names.suggest_dns_label(written, longest)
        assert suggested == "" or (names.DNS_LABEL.fullmatch(suggested) and len(suggested) <= longest)
