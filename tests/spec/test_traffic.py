"""Traffic: weights that add up, copies that reach somebody once, revisions that take the same requests."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spec.catalog import Estate
from spec.problems import Problem
from spec.resolve import Model
from spec.revisions import check_traffic, weights
from spec.traffic import TrafficSpec

Load = Callable[..., Estate]
Refusals = Callable[..., list[Problem]]
TENSORS = "input: [{name: a, data_type: TYPE_FP32, dims: [3]}], output: [{name: b, data_type: TYPE_FP32, dims: [3]}]"
CONFIG = f"config: {{backend: python, {TENSORS}}}\n"
OTHER_INPUT = "{config: {input: [{name: a, data_type: TYPE_FP32, dims: [4]}]}}"
TWO = "revisions: {v1: {}, v2: {}}\n"
NAMES = ["v1", "v2", "v3", "v4"]


@pytest.fixture
def model(load_stack: Load, five_lines: str) -> Callable[[str], Model]:
    return lambda more: load_stack({"a.yaml": five_lines + more}).models[0]


@pytest.fixture
def refused(refusals: Refusals, five_lines: str) -> Callable[[str], Problem]:
    """The only problem of the five lines with more lines."""

    def _refused(more: str) -> Problem:
        (problem,) = refusals({"a.yaml": five_lines + more})
        return problem

    return _refused


class TestSplit:
    def test_requests_are_shared_out_by_weight(self, model: Callable[[str], Model]) -> None:
        assert model(TWO + "traffic: {split: {v1: 90, v2: 10}}\n").weights == {"v1": 90, "v2": 10}

    def test_a_revision_that_is_not_named_gets_none(self, model: Callable[[str], Model]) -> None:
        assert model(TWO + "traffic: {split: {v2: 100}}\n").weights == {"v1": 0, "v2": 100}

    def test_the_default_revision_may_be_named(self, model: Callable[[str], Model]) -> None:
        assert model("traffic: {split: {v1: 100}}\n").weights == {"v1": 100}

    @pytest.mark.parametrize(
        ("split", "primary"),
        [("{v1: 90, v2: 10}", "v1"), ("{v1: 10, v2: 90}", "v2"), ("{v1: 50, v2: 50}", "v1"), ("{v2: 100}", "v2")],
    )
    def test_the_primary_has_the_largest_weight_and_of_equal_ones_is_the_first(
        self, split: str, primary: str, model: Callable[[str], Model]
    ) -> None:
        assert model(TWO + f"traffic: {{split: {split}}}\n").primary.name == primary

    @pytest.mark.parametrize(
        ("split", "total"),
        [("{v1: 90, v2: 5}", 95), ("{v1: 100, v2: 1}", 101), ("{v1: 0, v2: 0}", 0), ("{v1: 99}", 99)],
    )
    def test_weights_that_do_not_add_up_to_100_are_refused(
        self, split: str, total: int, refused: Callable[[str], Problem]
    ) -> None:
        problem = refused(TWO + f"traffic: {{split: {split}}}\n")
        assert (problem.field, problem.line) == ("traffic.split", 6)
        assert problem.message == f"the weights add up to {total}"
        assert problem.allowed.startswith("100 (")

    def test_an_unknown_revision_suggests_a_known_one(self, refused: Callable[[str], Problem]) -> None:
        problem = refused("revisions: {blue: {}, green: {}}\ntraffic: {split: {blue: 90, gren: 10}}\n")
        assert (problem.field, problem.line, problem.fix) == ("traffic.split.gren", 6, "did you mean green?")
        assert problem.allowed == "blue, green"

    def test_several_revisions_need_weights(self, refused: Callable[[str], Problem]) -> None:
        problem = refused(TWO)
        assert problem.field == "traffic.split"
        assert problem.fix == "write traffic: {split: {v1: 100, v2: 0}}"

    def test_weights_that_are_missing_are_the_only_mistake(self, refused: Callable[[str], Problem]) -> None:
        assert refused(TWO + "traffic: {mirror: {to: v2}}\n").field == "traffic.split"

    def test_the_fix_that_is_offered_is_accepted(self, model: Callable[[str], Model]) -> None:
        assert model(TWO + "traffic: {split: {v1: 100, v2: 0}}\n").weights == {"v1": 100, "v2": 0}

    @given(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 100), min_size=1))
    def test_a_split_is_accepted_exactly_when_it_adds_up(self, split: dict[str, int]) -> None:
        if sum(split.values()) == 100:
            traffic = TrafficSpec.model_validate({"split": split})
            assert sum(weights(traffic, NAMES).values()) == 100
            assert list(check_traffic(traffic, NAMES)) == []
        else:
            with pytest.raises(ValueError, match="add up"):
                TrafficSpec.model_validate({"split": split})


class TestMirror:
    def test_copies_go_to_a_revision_without_requests_of_its_own(self, model: Callable[[str], Model]) -> None:
        mirror = model(TWO + "traffic: {split: {v1: 100}, mirror: {to: v2, percent: 5}}\n").spec.traffic.mirror
        assert mirror is not None
        assert (mirror.to, mirror.percent) == ("v2", 5)

    def test_every_request_is_copied_unless_told_otherwise(self, model: Callable[[str], Model]) -> None:
        mirror = model(TWO + "traffic: {split: {v1: 100}, mirror: {to: v2}}\n").spec.traffic.mirror
        assert mirror is not None
        assert mirror.percent == 100

    def test_one_to_an_unknown_revision_suggests_a_known_one(self, refused: Callable[[str], Problem]) -> None:
        problem = refused("revisions: {blue: {}, green: {}}\ntraffic: {split: {blue: 100}, mirror: {to: gren}}\n")
        assert (problem.field, problem.line, problem.fix) == ("traffic.mirror.to", 6, "did you mean green?")

    @pytest.mark.parametrize("to", ["v1", "v2"])
    def test_one_to_a_revision_with_requests_of_its_own_is_refused(
        self, to: str, refused: Callable[[str], Problem]
    ) -> None:
        problem = refused(TWO + f"traffic: {{split: {{v1: 90, v2: 10}}, mirror: {{to: {to}}}}}\n")
        assert (problem.field, problem.fix) == ("traffic.mirror.to", f"set traffic.split.{to} to 0")

    def test_one_to_the_only_revision_is_refused(self, refused: Callable[[str], Problem]) -> None:
        assert refused("traffic: {mirror: {to: v1}}\n").field == "traffic.mirror.to"


class TestTimeout:
    def test_a_request_may_take_five_minutes_unless_told_otherwise(self, model: Callable[[str], Model]) -> None:
        assert model("").spec.traffic.timeout == "300s"

    @pytest.mark.parametrize("timeout", ["1s", "1000ms", "90s", "24h", "1440m"])
    def test_it_may_be_1_second_to_24_hours(self, timeout: str, model: Callable[[str], Model]) -> None:
        assert model(f"traffic: {{timeout: {timeout}}}\n").spec.traffic.timeout == timeout

    @pytest.mark.parametrize("timeout", ["0s", "999ms", "86401s", "25h"])
    def test_outside_of_that_it_is_refused(self, timeout: str, refused: Callable[[str], Problem]) -> None:
        problem = refused(f"traffic: {{timeout: {timeout}}}\n")
        assert (problem.field, problem.line, problem.allowed) == ("traffic.timeout", 5, "1s to 24h")


class TestSameRequests:
    """Revisions that get the same requests must take them."""

    @pytest.mark.parametrize(
        "traffic", ["{split: {v1: 90, v2: 10}}", "{split: {v1: 100}, mirror: {to: v2}}"], ids=["split", "mirror"]
    )
    def test_other_tensors_are_refused_where_requests_are_shared(
        self, traffic: str, refused: Callable[[str], Problem]
    ) -> None:
        problem = refused(CONFIG + f"revisions:\n  v1: {{}}\n  v2: {OTHER_INPUT}\ntraffic: {traffic}\n")
        assert (problem.field, problem.line) == ("revisions.v2.config.input[0].dims", 8)

    @pytest.mark.parametrize("traffic", ["{split: {v1: 100}}", "{split: {v1: 100, v2: 0}}", "{split: {v2: 100}}"])
    def test_a_revision_without_requests_may_have_other_tensors(
        self, traffic: str, model: Callable[[str], Model]
    ) -> None:
        found = model(CONFIG + f"revisions: {{v1: {{}}, v2: {OTHER_INPUT}}}\ntraffic: {traffic}\n")
        assert len(found.revisions) == 2

    def test_another_name_inside_triton_is_refused(self, refused: Callable[[str], Problem]) -> None:
        text = "revisions: {v1: {}, v2: {config: {name: res_net}}}\ntraffic: {split: {v1: 50, v2: 50}}\n"
        problem = refused(CONFIG + text)
        assert (problem.field, problem.value, problem.fix) == (
            "revisions.v2.config.name",
            "res_net",
            "write resnet",
        )

    def test_a_revision_without_requests_may_have_another_name(self, model: Callable[[str], Model]) -> None:
        text = "revisions: {v1: {}, v2: {config: {name: res_net}}}\ntraffic: {split: {v1: 100}}\n"
        assert model(CONFIG + text).revisions[1].triton_name == "res_net"

    def test_what_only_the_repository_knows_is_not_compared(self, model: Callable[[str], Model]) -> None:
        text = "revisions: {v1: {config: null}, v2: {}}\ntraffic: {split: {v1: 50, v2: 50}}\n"
        assert len(model(CONFIG + text).revisions) == 2

    def test_one_of_the_repository_hides_no_difference_between_the_others(
        self, refused: Callable[[str], Problem]
    ) -> None:
        text = f"revisions: {{v1: {{config: null}}, v2: {{}}, v3: {OTHER_INPUT}}}\n"
        problem = refused(CONFIG + text + "traffic: {split: {v1: 10, v2: 40, v3: 50}}\n")
        assert problem.field == "revisions.v3.config.input[0].dims"

    def test_further_differences_are_free(self, model: Callable[[str], Model]) -> None:
        text = "revisions: {v1: {}, v2: {image: triton:2, config: {version_policy: {latest: {num_versions: 2}}}}}\n"
        assert len(model(CONFIG + text + "traffic: {split: {v1: 50, v2: 50}}\n").revisions) == 2
