"""Finds what a label selector selects without looking at everything."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from policies.judging.unknown import known
from policies.reading.pods import matches

T = TypeVar("T")


class Labelled(Generic[T]):
    """Things in namespaces, by their labels.

    Args:
        things: each with its namespace and labels.
    """

    def __init__(self, things: Iterable[tuple[T, str, Mapping[str, Any]]]) -> None:
        self._all: dict[str, list[tuple[T, Mapping[str, Any]]]] = {}
        self._by_label: dict[tuple[str, str, str], list[tuple[T, Mapping[str, Any]]]] = {}
        for thing, namespace, labels in things:
            self._all.setdefault(namespace, []).append((thing, labels))
            for key, value in labels.items():
                # One that is not known yet may be any; it is looked at by whoever asks for the label.
                place = (namespace, key, value if known(value) else "")
                self._by_label.setdefault(place, []).append((thing, labels))

    @property
    def namespaces(self) -> list[str]:
        """Where there are any."""
        return list(self._all)

    def select(self, selector: Mapping[str, Any] | None, namespaces: Iterable[str]) -> Iterator[T]:
        """What a selector selects in some namespaces; an empty one selects all, an absent one nothing."""
        if selector is None:
            return
        for namespace in namespaces:
            for thing, labels in self._candidates(selector, namespace):
                if matches(selector, labels):
                    yield thing

    def _candidates(self, selector: Mapping[str, Any], namespace: str) -> list[tuple[T, Mapping[str, Any]]]:
        structured = {"matchLabels", "matchExpressions"} & set(selector)
        wanted = (selector.get("matchLabels") or {}) if structured else selector
        found = [
            self._by_label.get((namespace, key, value), []) + self._by_label.get((namespace, key, ""), [])
            for key, value in wanted.items()
            if known(value)
        ]
        return min(found, key=len, default=self._all.get(namespace, []))
