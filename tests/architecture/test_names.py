"""One name means one thing: no two modules define a class or a public function of one name.

Where they do, `REASONS` has both meanings: the same thing of two kinds of object, a name that C++, PTX or the reference
pages give, or a helper that its module alone reads. Several definitions in one module (overloads) are one.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from pathlib import Path

import cute_py
from tests.architecture.sources import source

ROOT = Path(cute_py.__file__).parent

REASONS: dict[str, str] = {
    "Major": "of an operand of an MMA; the order of strides that are left out",
    "architecture": "the row of an architecture: of what an assembler takes; of what a tensor map may have",
    "compact_order": "C++'s, over shapes; over arithmetic tuples",
    "copy": "through an atom; between any two layouts",
    "is_static": "C++'s, of a tuple; of one leaf",
    "product_like": "C++'s, over shapes; over arithmetic tuples",
    "register": "of every command of the shell, and of the notebook",
    "replace": "C++'s, of a mode; PTX's tensormap.replace, of a field",
    "run": "every command of the shell; a plan of tcgen05.cp",
    "why_not": "the earlier form of two checks, for one release",
}
"""Name -> what it means in each of the modules that define it."""


def definitions(text: str) -> set[str]:
    """The classes and public functions that a module defines."""
    return {name for name in source(text).definitions if not name.startswith("_")}


FRAMEWORKS = ("jax", "torch")
"""Packages that give the same functions to the arrays of one framework each: users of both find one set of names."""


@functools.cache
def homes() -> dict[str, set[str]]:
    """Name -> the modules that define it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        for name in definitions(path.read_text()):
            place = path.relative_to(ROOT)
            found[name].add(" or ".join(FRAMEWORKS) if place.parts[0] in FRAMEWORKS else str(place))
    return found


def test_overloads_are_one_definition_and_private_names_are_none() -> None:
    assert definitions("class A: ...\ndef f(): ...\ndef f(): ...\ndef _g(): ...\nclass _B: ...\nx = 1") == {"A", "f"}


def test_a_name_has_one_home_or_a_reason() -> None:
    second = {name: sorted(places) for name, places in homes().items() if len(places) > 1 and name not in REASONS}
    assert not second


def test_every_reason_is_of_a_name_with_several_homes() -> None:
    assert set(REASONS) <= {name for name, places in homes().items() if len(places) > 1}


def test_reasons_stay_few() -> None:
    assert len(REASONS) <= 10
