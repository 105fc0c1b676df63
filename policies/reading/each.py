"""Checks of one thing after the other, for policies that look at the estate as a whole."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from policies.judging.policy import Finding
from policies.judging.unknown import CannotDecide
from policies.judging.view import Resource, View
from policies.reading.pods import POD_KINDS, Pods, pods_of

T = TypeVar("T")


def each(
    things: Iterable[T], check: Callable[[T], Iterable[str]], resource: Callable[[T], Resource]
) -> Iterator[Finding]:
    """What a check says of each thing. What is unknown about one does not hide what is wrong with the others.

    Args:
        things: what is checked, e.g. the pods of the estate.
        check: says what is wrong with one.
        resource: where that is.

    Raises:
        CannotDecide: after everything was looked at, with those that could not be decided.
    """
    undecided: list[str] = []
    for thing in things:
        try:
            for message in check(thing):
                yield Finding(resource(thing), message)
        except CannotDecide as unknown:
            undecided.append(f"{resource(thing).key}: {unknown}")
    if undecided:
        raise CannotDecide("; ".join(undecided))


def each_pods(view: View, check: Callable[[Pods], Iterable[str]]) -> Iterator[Finding]:
    """What a check says of the pods of each object that makes some, see :func:`each`."""

    def check_made(found: Resource) -> Iterable[str]:
        pods = pods_of(found)
        return check(pods) if pods else ()

    yield from each(view.of_kind(*POD_KINDS), check_made, lambda found: found)
