"""What the text of a call may name: the public names, numpy, sympy, and the objects that calls are made on."""

from __future__ import annotations

import copy
import functools
import io
import itertools
import operator
import pickle
from typing import Any

import cute_py
from cute_py import targets
from tests.calls import hostile, objects
from tests.calls.surface import ON_FIRST_USE


def reflected(operation: Any) -> Any:
    """The operator with its two operands exchanged, so that the second one is asked first to deal with it."""
    return lambda a, b: operation(b, a)


def call(function: Any, *args: Any, **options: Any) -> Any:
    """A call as a function, where a text needs its callable among the arguments."""
    return function(*args, **options)


def list_of(values: Any) -> list[Any]:
    """The items of an iterable, at most a thousand."""
    return list(itertools.islice(values, 1000))


def round_trip(value: Any) -> Any:
    """The value out of a pickle."""
    return pickle.loads(pickle.dumps(value))


def names() -> dict[str, Any]:
    """A fresh namespace; every name of `cute_py` by itself, the other packages by theirs."""
    return dict(_looked_up())


@functools.cache
def _looked_up() -> dict[str, Any]:
    import numpy
    import sympy

    return {
        **{name: getattr(cute_py, name) for name in cute_py.__all__},
        **{name: getattr(objects, name) for name in objects.__all__},
        **{name: getattr(hostile, name) for name in hostile.__all__},
        **{name: getattr(cute_py, name) for name in ON_FIRST_USE},
        "cute_py": cute_py,
        "tma": cute_py.tma,
        "tmem": cute_py.tmem,
        "targets": targets,
        "draw": cute_py.draw,
        "mesh": cute_py.mesh,
        "formats": cute_py.formats,
        "testing": cute_py.testing,
        "numpy": numpy,
        "sympy": sympy,
        "operator": operator,
        "reflected": reflected,
        "io": io,
        "copies": copy,
        "call": call,
        "list_of": list_of,
        "round_trip": round_trip,
    }
