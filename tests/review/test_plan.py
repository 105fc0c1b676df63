"""What a change does, in words: models, restarts, routes, versions, losses, GPUs."""

from collections.abc import Iterator
from typing import Any

import pytest

from policies.judging.unknown import SEALED, UNKNOWN
from policies.judging.view import Resource
from review import effects, plan_text
from review.changes import Op
from review.models import model_changes
from tests.review import making
from tests.review.making import daemons, deployment, plan, release, routes, scaler, thing


def text(old: list[Resource], new: list[Resource]) -> str:
    """The sections of a plan."""
    return "\n".join(plan_text.lines(plan(old, new), 100))


class TestModels:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ([deployment(image="a:1")], [deployment(image="a:2")], "v1: image: `a:1` -> `a:2`"),
            ([deployment()], [deployment(replicas=5)], "v1: replicas: `3` -> `5`"),
            (
                [deployment(), scaler("ranker", 3, 6)],
                [deployment(), scaler("ranker", 3, 9)],
                "v1: replicas: `3 to 6` -> `3 to 9`",
            ),
            (
                [deployment()],
                [deployment(resources={"limits": {"nvidia.com/gpu": "2"}})],
                "v1: resources: `cpu 1, nvidia.com/gpu 1` -> `nvidia.com/gpu 2`",
            ),
            (
                [deployment(), routes("ranker", {"v1": 90, "v2": 10})],
                [deployment(), routes("ranker", {"v1": 50, "v2": 50})],
                "weight of v2: `10 %` -> `50 %`",
            ),
            (
                [deployment(), routes("ranker", {"v1": 100})],
                [
                    deployment(),
                    routes("ranker", {"v1": 100}, mirror={"host": "ranker-v2.x"}, mirrorPercentage={"value": 5}),
                ],
                "copies go to: `v2, 5 %`, new",
            ),
            (
                [deployment(args=["tritonserver", "--log-verbose=0"])],
                [deployment(args=["tritonserver", "--log-verbose=1"])],
                "v1: option --log-verbose: `0` -> `1`",
            ),
            (
                [deployment(env=[{"name": "A", "value": "1"}])],
                [deployment(env=[{"name": "A", "valueFrom": {"secretKeyRef": {}}}])],
                "v1: variable A: `1` -> `from elsewhere`",
            ),
            ([deployment()], [deployment(), deployment(revision="v2")], "revision v2: `image "),
            ([deployment(), deployment(revision="v2")], [deployment()], ", pool a100`, gone"),
            (
                [deployment()],
                [deployment(terminationGracePeriodSeconds=5)],
                "`Deployment/ranker-v1` changed: `spec.template.spec.terminationGracePeriodSeconds`",
            ),
        ],
    )
    def test_changes_are_told_in_words(self, old: list[Resource], new: list[Resource], said: str) -> None:
        assert said in text(old, new)
        assert "1 model changed" in text(old, new)

    def test_of_a_file_only_the_lines_that_differ_are_told(self) -> None:
        files = [
            thing("ConfigMap", "ranker-v1-config", "core/v1", metadata={"labels": making.labels("ranker")}, data=data)
            for data in ({"m.pbtxt": "name: 'm'\nmax: 8\n"}, {"m.pbtxt": "name: 'm'\nmax: 16\n"})
        ]
        assert "v1: file m.pbtxt: `max: 8` -> `max: 16`" in text([deployment(), files[0]], [deployment(), files[1]])

    @pytest.mark.parametrize(
        ("old", "new", "op", "said"),
        [
            ([], [deployment()], Op.CREATE, "1 model added"),
            ([deployment()], [], Op.DELETE, "1 model removed"),
        ],
    )
    def test_models_come_and_go(self, old: list[Resource], new: list[Resource], op: Op, said: str) -> None:
        assert [(one.name, one.owner, one.op) for one in model_changes(plan(old, new))] == [("ranker", "vision", op)]
        assert said in text(old, new)

    def test_what_is_unknown_or_secret_is_called_that(self) -> None:
        found = text([deployment(image="a:1")], [deployment(image=UNKNOWN, env=[{"name": "A", "value": SEALED}])])
        assert "v1: image: `a:1` -> `(known after the update)`" in found
        assert "v1: variable A: `(secret)`, new" in found

    def test_a_model_that_stays_is_not_told(self) -> None:
        assert model_changes(plan([deployment()], [deployment()])) == []
        assert "Nothing changes." in text([deployment()], [deployment()])


class TestEffects:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            (deployment(), deployment(image="other"), "3 replicas, up to 1 new at a time"),
            (
                deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
                deployment(image="other", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
                "3 replicas, 1 at a time: an old one ends before a new one starts",
            ),
            (
                deployment(strategy={"type": "Recreate"}),
                deployment(image="other", strategy={"type": "Recreate"}),
                "3 replicas, all at once: nothing serves in between",
            ),
            (
                deployment(annotations={"triton-estate.io/config-sha256": "a"}),
                deployment(annotations={"triton-estate.io/config-sha256": "b"}),
                "3 replicas, up to 1 new at a time",
            ),
            (deployment(), deployment(selector={"a": "b"}), "is deleted and made anew: all of its pods go at once"),
            (daemons("x", "x:1"), daemons("x", "x:2"), "on every node that it runs on, 1 at a time"),
            (
                daemons("x", "x:1", type="OnDelete"),
                daemons("x", "x:2", type="OnDelete"),
                "on every node that it runs on, when somebody deletes its pods",
            ),
            (release("hami", "1", a=1), release("hami", "1", a=2), "Helm restarts those of its pods that differ"),
        ],
    )
    def test_restarts(self, old: Resource, new: Resource, said: str) -> None:
        assert [one.how for one in effects.effects(plan([old], [new])).restarts] == [said]

    def test_other_fields_restart_nothing(self) -> None:
        found = effects.effects(plan([deployment(replicas=3)], [deployment(replicas=4)]))
        assert found.restarts == ()
        assert "**What restarts**\n\n- nothing" in text([deployment(replicas=3)], [deployment(replicas=4)])

    def test_weights_change_routes_only(self) -> None:
        old, new = routes("ranker", {"v1": 90, "v2": 10}), routes("ranker", {"v1": 50, "v2": 50})
        assert effects.effects(plan([deployment(), old], [deployment(), new])).routes == ("ranker",)

    def test_weights_and_an_image_are_more_than_routes(self) -> None:
        old, new = routes("ranker", {"v1": 90, "v2": 10}), routes("ranker", {"v1": 50, "v2": 50})
        assert effects.effects(plan([deployment(), old], [deployment(image="other"), new])).routes == ()

    @pytest.mark.parametrize(
        ("old", "new", "part", "warning"),
        [
            (
                daemons("plugin", "nvcr.io/nvidia/k8s-device-plugin:v1"),
                daemons("plugin", "nvcr.io/nvidia/k8s-device-plugin:v2"),
                "NVIDIA device plugin",
                "rolls over all GPU nodes: running pods may be killed",
            ),
            (
                daemons("exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:1"),
                daemons("exporter", "nvcr.io/nvidia/k8s/dcgm-exporter:2"),
                "dcgm-exporter",
                "rolls over all GPU nodes",
            ),
            (release("hami", "1"), release("hami", "2"), "HAMi", "running pods may be killed"),
            (release("./charts/istiod", "1"), release("./charts/istiod", "2"), "Istio", "gateways restart"),
            (
                release("kube-prometheus-stack", "1"),
                release("kube-prometheus-stack", "2"),
                "Prometheus operator",
                "Prometheus may restart",
            ),
        ],
    )
    def test_a_new_version_of_a_part_is_a_warning(self, old: Resource, new: Resource, part: str, warning: str) -> None:
        (found,) = effects.effects(plan([old], [new])).versions
        assert found.part == part
        assert warning in found.warning
        assert f"- **{part}** changes from" in text([old], [new])

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            (release("hami", "1"), release("hami", "1", a=1)),
            (daemons("x", "my/thing:1"), daemons("x", "my/thing:2")),
            (deployment(image="a:1"), deployment(image="a:2")),
        ],
    )
    def test_everything_else_is_none(self, old: Resource, new: Resource) -> None:
        assert effects.effects(plan([old], [new])).versions == ()

    @pytest.mark.parametrize(
        ("gone", "said"),
        [
            (thing("Namespace", "serving", "core/v1"), "everything in it goes with it"),
            (thing("PersistentVolumeClaim", "data", "core/v1"), "its data may go with it"),
            (Resource("aws:s3/bucketV2:BucketV2", "models", {}), "what is stored in it is lost"),
            (Resource("aws:eks/nodeGroup:NodeGroup", "a100", {}), "all of its nodes and their pods go"),
        ],
    )
    def test_losses(self, gone: Resource, said: str) -> None:
        assert said in effects.effects(plan([gone, deployment()], [deployment()])).losses[0].how
        assert "### Take care" in text([gone, deployment()], [deployment()])

    def test_what_is_made_anew_says_why(self) -> None:
        (found,) = effects.effects(plan([deployment()], [deployment(selector={"a": "b"})])).losses
        assert found.how.startswith("is deleted and made anew (spec.selector.matchLabels.")

    def test_a_deleted_rule_is_no_loss(self) -> None:
        assert effects.effects(plan([thing("NetworkPolicy", "a", "networking.k8s.io/v1")], [])).losses == ()


class TestFigures:
    def test_cards_there_and_cards_asked_for(self) -> None:
        found = text([deployment(), scaler("ranker", 1, 2)], [deployment(), scaler("ranker", 2, 4)])
        assert "| `a100` | 4 | 4 | 1 to 2 | 2 to 4 |  |" in found

    def test_a_number_that_is_not_known_yet(self) -> None:
        found = text([], [deployment(), scaler("ranker", 2, UNKNOWN)])
        assert "| `a100` | 4 | 4 | 0 | not known yet |  |" in found

    @pytest.mark.parametrize(
        ("replicas", "said"), [(5, "**not enough: pods stay Pending**"), (3, "not enough for the most replicas")]
    )
    def test_too_few_cards_are_named(self, replicas: int, said: str) -> None:
        assert f"| {replicas} to 6 | {said} |" in text([], [deployment(), scaler("ranker", replicas, 6)])

    def test_money_before_and_after(self) -> None:
        sizes: Any = [{"minSize": 0, "maxSize": most} for most in (1, 3)]
        old, new = (
            Resource(
                "aws:eks/nodeGroup:NodeGroup",
                "a100",
                {"nodeGroupName": "a100", "instanceTypes": ["p4d.24xlarge"], "scalingConfig": size},
            )
            for size in sizes
        )
        found = text([old], [new])
        before, after = (line for line in found.splitlines() if line.startswith(("- before:", "- after:")))
        assert before.startswith("- before: USD 0 to ")
        assert after.startswith("- after: USD 0 to ")
        assert "(+0 to +" in after


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place inside the properties of a resource."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from paths(item, (*path, key))


def replaced(value: Any, path: tuple[str | int, ...], by: object) -> Any:
    """The same with something else in one place."""
    if not path:
        return by
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    items = {key: replaced(item, path[1:], by) if key == path[0] else item for key, item in inside}
    return items if isinstance(value, dict) else list(items.values())


WHOLE = [
    deployment(env=[{"name": "A", "value": "1"}]),
    scaler("ranker", 1, 2),
    routes("ranker", {"v1": 90, "v2": 10}, mirror={"host": "ranker-twin.x"}),
    release("hami", "1", devicePlugin={"a": 1}),
    daemons("plugin", "nvcr.io/nvidia/k8s-device-plugin:v1", type="RollingUpdate"),
]


@pytest.mark.parametrize("by", [UNKNOWN, SEALED, None, 5, ["text"], {"a": 1}], ids=repr)
def test_no_object_is_too_strange_for_a_plan(by: object) -> None:
    for whole in WHOLE:
        for path in paths(whole.inputs):
            if path or isinstance(by, dict):
                strange = Resource(whole.type, whole.name, replaced(whole.inputs, path, by))
                assert text([whole], [strange])
