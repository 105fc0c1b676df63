"""GPU requests: what each form means in each sharing mode, in exact resource names and quantities."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError

from spec.fields import Spec
from spec.gpu import Gpu, GpuRequest, SharingMode, limits, mig_slices_per_card, modes_for, utilisation_is_per_pod
from spec.problems import Problem
from spec.source import Source
from spec.validation import validate

MODES: tuple[SharingMode, ...] = get_args(SharingMode)
SLICES = 4


class Holder(Spec):
    gpu: Gpu


def request(written: object) -> GpuRequest:
    return TypeAdapter(Gpu).validate_python(written)


def refusal(written: object, mode: SharingMode, slices: int = SLICES) -> Problem:
    with pytest.raises(PydanticCustomError) as refused:
        limits(request(written), mode, slices)
    (problem,) = (refused.value.context or {})["problems"]
    return problem


FORMS: dict[str, object] = {
    "one card": 1,
    "two cards": 2,
    "a quarter": 0.25,
    "a share of 30 %": 0.3,
    "memory": {"memory": "8Gi"},
    "cores": {"cores": 50},
    "memory and cores": {"count": 1, "memory": "8Gi", "cores": 10},
    "memory on two cards": {"count": 2, "memory": "7680Mi"},
    "a fraction and memory": {"fraction": 0.5, "memory": "8Gi"},
    "a slice": {"mig": "1g.10gb"},
    "two slices": {"count": 2, "mig": "3g.40gb"},
}
CARD, CORES, MEMORY, PERCENTAGE = (
    "nvidia.com/gpu", "nvidia.com/gpucores", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage"
)  # fmt: skip
VCORE, VMEMORY = "tencent.com/vcuda-core", "tencent.com/vcuda-memory"
# Refused pairs are absent.
TABLE: dict[tuple[str, SharingMode], dict[str, str]] = {
    ("one card", "whole"): {CARD: "1"},
    ("one card", "hami"): {CARD: "1"},
    ("one card", "qgpu"): {VCORE: "100"},
    ("two cards", "whole"): {CARD: "2"},
    ("two cards", "hami"): {CARD: "2"},
    ("two cards", "qgpu"): {VCORE: "200"},
    ("a quarter", "timeSlicing"): {"nvidia.com/gpu.shared": "1"},
    ("a quarter", "hami"): {CARD: "1", CORES: "25", PERCENTAGE: "25"},
    ("a quarter", "qgpu"): {VCORE: "25"},
    ("a share of 30 %", "hami"): {CARD: "1", CORES: "30", PERCENTAGE: "30"},
    ("a share of 30 %", "qgpu"): {VCORE: "30"},
    ("memory", "hami"): {CARD: "1", MEMORY: "8192"},
    ("memory", "qgpu"): {VCORE: "100", VMEMORY: "32"},
    ("cores", "hami"): {CARD: "1", CORES: "50"},
    ("cores", "qgpu"): {VCORE: "50"},
    ("memory and cores", "hami"): {CARD: "1", CORES: "10", MEMORY: "8192"},
    ("memory and cores", "qgpu"): {VCORE: "10", VMEMORY: "32"},
    ("memory on two cards", "hami"): {CARD: "2", MEMORY: "7680"},
    # TKE's own example: 200 cores and 60 blocks of 256 MiB.
    ("memory on two cards", "qgpu"): {VCORE: "200", VMEMORY: "60"},
    ("a fraction and memory", "hami"): {CARD: "1", CORES: "50", MEMORY: "8192"},
    ("a fraction and memory", "qgpu"): {VCORE: "50", VMEMORY: "32"},
    ("a slice", "mig"): {"nvidia.com/mig-1g.10gb": "1"},
    ("two slices", "mig"): {"nvidia.com/mig-3g.40gb": "2"},
}
PAIRS = [(form, mode) for form in FORMS for mode in MODES]


class TestLimits:
    @pytest.mark.parametrize(("form", "mode"), [pair for pair in PAIRS if pair in TABLE])
    def test_a_form_that_a_mode_serves_becomes_exactly_these_resources(self, form: str, mode: SharingMode) -> None:
        assert limits(request(FORMS[form]), mode, SLICES) == TABLE[form, mode]

    @pytest.mark.parametrize(("form", "mode"), [pair for pair in PAIRS if pair not in TABLE])
    def test_any_other_pair_is_refused_with_the_ways_that_work(self, form: str, mode: SharingMode) -> None:
        problem = refusal(FORMS[form], mode)
        if (form, mode) == ("a share of 30 %", "timeSlicing"):
            assert problem.allowed == "gpu: 0.25"
        else:
            assert problem.allowed == f"pools in mode {' or '.join(modes_for(request(FORMS[form])))}"
            assert mode in problem.message
        assert problem.fix

    @pytest.mark.parametrize("form", FORMS)
    def test_the_modes_that_are_named_do_serve_it(self, form: str) -> None:
        named = set(modes_for(request(FORMS[form])))
        assert named >= {mode for found, mode in TABLE if found == form}

    def test_half_a_card_needs_a_shared_pool(self) -> None:
        problem = refusal(0.5, "whole")
        assert problem.message == "a pool in mode whole cannot serve gpu 0.5"
        assert problem.allowed == "pools in mode timeSlicing or hami or qgpu"

    @given(st.integers(min_value=1, max_value=99))
    def test_quantities_are_whole_numbers_in_every_mode(self, percent: int) -> None:
        for mode in ("hami", "qgpu"):
            found = limits(request(percent / 100), mode, SLICES)
            assert all(quantity.isdigit() and int(quantity) > 0 for quantity in found.values())
            assert str(percent) in found.values()

    @pytest.mark.parametrize("mode", ["hami", "qgpu"])
    @pytest.mark.parametrize("fraction", [0.001, 0.004, 0.996, 0.999])
    def test_a_share_that_rounds_to_nothing_or_to_a_card_is_refused(self, fraction: float, mode: SharingMode) -> None:
        assert refusal(fraction, mode).allowed == "0.01 to 0.99"

    @given(st.integers(min_value=2, max_value=64))
    def test_the_one_share_that_a_time_sliced_pool_offers_is_accepted(self, slices: int) -> None:
        offered = refusal(0.999, "timeSlicing", slices).allowed.removeprefix("gpu: ")
        assert limits(request(float(offered)), "timeSlicing", slices) == {"nvidia.com/gpu.shared": "1"}

    @pytest.mark.parametrize("fraction", [0.33, 0.34, 0.5])
    def test_another_share_than_the_slice_is_refused(self, fraction: float) -> None:
        assert refusal(fraction, "timeSlicing", 3).allowed == "gpu: 0.333333"

    def test_gpu_manager_takes_no_parts_of_several_cards(self) -> None:
        assert refusal({"count": 2, "cores": 50}, "qgpu").fix == "leave cores out, or write count: 1"
        assert refusal({"count": 3, "cores": 50}, "qgpu").allowed == "vcuda-core below 100 or a multiple of it"

    def test_gpu_manager_takes_memory_in_blocks(self) -> None:
        assert refusal({"memory": "300Mi"}, "qgpu").fix == "write memory: 512Mi"


REFUSED: dict[str, object] = {
    "none": 0, "below none": -1, "a half too many": 1.5, "a share of nothing": 0.0, "true": True, "text": "1",
    "a card model": "1(V100)", "vendor and model": "1(nvidia,V100)", "memory and share": "8G,0.1", "a list": [1],
    "too many": 17, "infinity": float("inf"), "no number": float("nan"), "unknown field": {"cont": 1},
    "count none": {"count": 0}, "cores above a card": {"cores": 101}, "bare memory": {"memory": 8},
    "fraction one": {"fraction": 1.0}, "an unknown profile": {"mig": "banana"}, "an empty profile": {"mig": ""},
    "eight slices": {"mig": "8g.80gb"}, "a profile and its line end": {"mig": "1g.10gb\n"},
    "slice and memory": {"mig": "1g.10gb", "memory": "8Gi"}, "slice and cores": {"mig": "1g.10gb", "cores": 50},
    "slice and fraction": {"mig": "1g.10gb", "fraction": 0.5}, "fraction and cores": {"fraction": 0.5, "cores": 50},
    "fraction of two": {"fraction": 0.5, "count": 2},
}  # fmt: skip


class TestForms:
    @pytest.mark.parametrize("case", REFUSED)
    def test_any_other_form_is_refused_with_a_way_out(self, case: str) -> None:
        spec, problems = validate(Holder, {"gpu": REFUSED[case]}, Source("m.yaml", {}))
        assert spec is None
        assert all(problem.field.startswith("gpu") and problem.fix for problem in problems)

    @pytest.mark.parametrize(("written", "count"), [(1, 1), (1.0, 1), (2.0, 2), (16, 16), ({}, 1)])
    def test_whole_cards_may_be_written_as_any_number(self, written: object, count: int) -> None:
        assert request(written) == GpuRequest(count=count)

    @pytest.mark.parametrize(
        ("written", "shown"),
        [(2, "2"), (0.5, "0.5"), ({"mig": "1g.10gb"}, "1 x 1g.10gb"), ({"memory": "8Gi"}, "1 (8Gi)"),
         ({"count": 2, "memory": "8Gi", "cores": 50}, "2 (8Gi, 50 % cores)")],
    )  # fmt: skip
    def test_messages_show_it_as_a_person_would(self, written: object, shown: str) -> None:
        assert str(request(written)) == shown

    @pytest.mark.parametrize(
        ("written", "cards"),
        [(2, 2), (0.5, 0.5), ({"cores": 50}, 0.5), ({"count": 2, "cores": 25}, 0.5), ({"memory": "8Gi"}, 1),
         ({"mig": "1g.10gb"}, 1 / 7), ({"count": 2, "mig": "3g.40gb"}, 6 / 7)],
    )  # fmt: skip
    def test_it_counts_as_so_many_cards(self, written: object, cards: float) -> None:
        assert request(written).cards == pytest.approx(cards)

    @pytest.mark.parametrize("form", FORMS)
    def test_only_whole_cards_are_not_shared(self, form: str) -> None:
        assert request(FORMS[form]).shared == (form not in {"one card", "two cards"})


class TestMig:
    @pytest.mark.parametrize(
        ("profile", "memory", "slices"),
        [("1g.5gb", "40Gi", 7), ("2g.10gb", "40Gi", 3), ("3g.20gb", "40Gi", 2), ("7g.40gb", "40Gi", 1),
         ("1g.10gb", "40Gi", 4), ("1g.10gb", "80Gi", 7), ("1g.20gb", "80Gi", 4), ("2g.20gb", "80Gi", 3),
         ("3g.40gb", "80Gi", 2), ("4g.40gb", "80Gi", 1), ("1g.18gb", "141Gi", 7), ("3g.71gb", "141Gi", 2),
         ("1g.6gb", "24Gi", 4), ("7g.80gb", "24Gi", 0)],
    )  # fmt: skip
    def test_a_card_is_cut_as_nvidia_documents(self, profile: str, memory: str, slices: int) -> None:
        assert mig_slices_per_card(profile, memory) == slices

    def test_what_is_no_profile_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="banana"):
            mig_slices_per_card("banana", "80Gi")


class TestMetric:
    @pytest.mark.parametrize("mode", MODES)
    def test_only_an_own_device_or_slice_has_a_utilisation_of_its_own(self, mode: SharingMode) -> None:
        assert utilisation_is_per_pod(mode) == (mode in {"whole", "mig"})
