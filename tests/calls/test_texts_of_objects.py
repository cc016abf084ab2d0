"""Objects as text: one line from str(), where C++ prints no more; and a repr that is short, or that evaluates back."""

from __future__ import annotations

import random

import pytest

from tests.calls.instances import INSTANCES
from tests.calls.namespace import names
from tests.calls.registry import registry
from tests.calls.text import Maker
from tests.each import each_of

ROOMS = ("cute_py.layout.", "cute_py.arith_tuple.", "cute_py.tensor.", "cute_py.diagnostics", "cute_py.dtypes")
LONGEST_REPR = 300

registry()  # fills the table of instances


def made(name: str, seed: int) -> object:
    source = INSTANCES[name]
    return eval(source if isinstance(source, str) else source(Maker(random.Random(seed))), names())


OF_ROOMS = [name for name in sorted(INSTANCES) if type(made(name, 0)).__module__.startswith(ROOMS)]


def evaluates_back(thing: object) -> bool:
    try:
        return bool(eval(repr(thing), names()) == thing)
    except Exception:
        return False


def test_the_rooms_are_covered() -> None:
    assert {"Layout", "ComposedLayout", "Swizzle", "Tensor", "ScaledBasis", "Ratio", "Pointer"} <= set(OF_ROOMS)


@each_of("name", OF_ROOMS)
def test_text_of_an_object(name: str) -> None:
    for seed in range(40):
        thing = made(name, seed)
        assert "\n" not in str(thing)
        assert "object at 0x" not in repr(thing) + str(thing)
        assert len(repr(thing)) <= LONGEST_REPR or evaluates_back(thing), repr(thing)


@pytest.mark.parametrize(
    "name", ["Layout", "ComposedLayout", "Swizzle", "ArithTuple", "ScaledBasis", "Ratio", "Pointer"]
)
def test_repr_evaluates_back(name: str) -> None:
    for seed in range(40):
        assert evaluates_back(made(name, seed)), repr(made(name, seed))
