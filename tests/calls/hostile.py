"""Values that no public name takes and that a careless check takes for something else: endless, deep, or answering
every attribute."""

from __future__ import annotations

import datetime
import fractions
import itertools
from collections.abc import Iterator
from typing import Any

__all__ = [
    "Agreeable",
    "Answering",
    "Itself",
    "broad",
    "datetime",
    "deep_dict",
    "deep_list",
    "endless",
    "endless_tuples",
    "fractions",
]


class Answering:
    """Every attribute of an object is another such object."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Answering()

    def __repr__(self) -> str:
        return "Answering()"


class Agreeable:
    """Every attribute is a function that returns another such object, dunder names included."""

    def __getattr__(self, name: str) -> Any:
        return Agreeable()

    def __call__(self, *args: object, **options: object) -> Any:
        return Agreeable()

    def __repr__(self) -> str:
        return "Agreeable()"


class Itself:
    """A layout of itself, as far as names go."""

    shape: Any = property(lambda self: self)
    stride: Any = property(lambda self: self)
    domain: Any = property(lambda self: self)
    layout: Any = property(lambda self: self)

    def with_domain(self, inner: Any) -> Any:
        return self

    def __getitem__(self, item: object) -> Any:
        return self

    def __repr__(self) -> str:
        return "Itself()"


def endless() -> Iterator[int]:
    return itertools.count(1)


def endless_tuples() -> Iterator[tuple[int, int]]:
    return itertools.repeat((2, 2))


def deep_list(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = [tree]
    return tree


def deep_dict(depth: int) -> Any:
    tree: Any = 1
    for _ in range(depth):
        tree = {"a": tree}
    return tree


def broad(*shape: int) -> Any:
    """An array of one element that all its indices share."""
    import numpy

    return numpy.broadcast_to(numpy.zeros((), numpy.uint8), shape)
