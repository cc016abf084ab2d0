"""Arguments that never end, nest without bound or answer every attribute; and enums by names that they do not have."""

from __future__ import annotations

import copy
import enum
import itertools
import pickle
import types
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import ArithTuple, ComposedLayout, E, Int, Layout, Swizzle, tma, tmem
from cute_py.argument_checks import MOST_ELEMENTS, MOST_ITEMS, check_elements, has, items_of, record
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError, UnknownNameError
from tests.calls.hostile import Agreeable, Answering, Itself, broad, deep_list, endless, endless_tuples
from tests.calls.surface import exported
from tests.each import each_of
from tests.refusals import Refusal, assert_refused, nested, refusals

ENUMS = {name: kind for name, kind in exported().items() if isinstance(kind, type) and issubclass(kind, enum.Enum)}

INVERSE = ComposedLayout(Swizzle(2, 0, 3), 0, Swizzle(2, 0, 3))
"""Its inner function has no modes."""


def test_there_are_public_enums() -> None:
    assert {"tma.Op", "tma.CacheMode", "tma.TensorMapSwizzle"} <= set(ENUMS)


@each_of("name", sorted(ENUMS))
def test_an_enum_refuses_a_name_with_the_nearest(name: str) -> None:
    kind: Any = ENUMS[name]
    first = next(iter(kind.__members__))
    assert kind[first] is getattr(kind, first)
    for wrong in (first + "X", "", deep_list(3000), [first], None, 10**5000):
        with pytest.raises(UnknownNameError) as caught:
            kind[wrong]
        assert isinstance(caught.value, KeyError | CuteError)
    with pytest.raises(KeyError) as missing:
        kind[first.lower() + "X"]
    assert first in missing.value.facts["nearest"]  # type: ignore[attr-defined]
    assert str(missing.value).startswith(f"'{first.lower()}X' is not a valid {kind.__name__}\n")


@each_of("name", sorted(ENUMS))
def test_an_enum_takes_its_values_and_refuses_others(name: str) -> None:
    kind: Any = ENUMS[name]
    for member in kind:
        assert kind(member) is kind(member.value) is member
        assert pickle.loads(pickle.dumps(member)) is copy.deepcopy(member) is member
    for wrong in ("no such value", deep_list(3000), object(), Answering()):
        with pytest.raises(InvalidValueError):
            kind(wrong)


def test_what_getattr_makes_up_is_no_attribute() -> None:
    assert has(types.SimpleNamespace(a=1), "a") and has(Layout(4), "shape", "stride")
    assert not has(Answering(), "shape") and not has(Agreeable(), "shape")
    assert not has(cute, "Layout") and not has(Layout(4), "shape", "no_such")


def test_items_end() -> None:
    assert items_of(iter([1, 2]), "items") == items_of(np.array([1, 2]), "items") == (1, 2)
    assert len(items_of(itertools.repeat(0, MOST_ITEMS), "items")) == MOST_ITEMS
    for many in (itertools.repeat(0, MOST_ITEMS + 1), endless(), Itself(), broad(1 << 40)):
        with pytest.raises(InvalidValueError, match="items must have at most 4194304 items"):
            items_of(many, "items")


def test_arrays_are_bounded() -> None:
    check_elements(MOST_ELEMENTS, "the offsets")
    with pytest.raises(InvalidValueError, match="the offsets must have at most 2147483648 elements, got 2147483649"):
        check_elements(MOST_ELEMENTS + 1, "the offsets")


def test_a_record_of_deep_lists_has_a_repr() -> None:
    @record
    class Row:
        size: int
        note: object

    assert repr(Row(4, [1])).endswith("Row(size=4, note=[1])")
    assert repr(Row(4, deep_list(5000))).endswith("Row(size=4, note=<list nested too deep to print>)")
    assert repr(tma.Fix("change", {"tile": deep_list(5000)})).count("nested too deep") == 1


REFUSED: list[Refusal] = [
    *[
        (f"{name} of {type(thing).__name__}", lambda f=f, thing=thing: f(thing), InvalidTypeError, "got")
        for name, f in {
            "cosize": cute.cosize,
            "coalesce": cute.coalesce,
            "print_layout": cute.print_layout,
            "right_inverse": cute.right_inverse,
            "same_function": lambda thing: cute.same_function(Layout(4), thing),
            "max_common_layout": lambda thing: cute.max_common_layout(thing, Layout(4)),
            "flat_product": lambda thing: cute.flat_product(thing, Layout(4)),
            "slice_": lambda thing: cute.slice_((None,), thing),
            "gbasis": lambda thing: tma.construct_tma_gbasis(thing, thing, thing),
            "request": tma.note_box_bytes,
            "to_json": tma.to_json,
        }.items()
        for thing in (Answering(), Agreeable(), Itself())
    ],
    ("coordinate", lambda: Layout((4, 8))(Answering(), 1), InvalidTypeError, "Answering can't be a stride, because a"),
    ("module", lambda: cute.max_common_layout(cute, Layout(4)), InvalidTypeError, "got module"),
    ("endless dims", lambda: tma.TensorMapTiled(7, 0, (64, 64), endless(), (4, 4)), InvalidValueError,
     "at most 4194304 items"),
    ("endless tile", lambda: tmem.S[(2, 2):(2, 1)].apply(endless()), InvalidValueError, "most 4194304 items, so an"),
    ("endless maps", lambda: tma.encode_many(endless_tuples()), InvalidValueError, "most 4194304 items, so an"),
    ("view", lambda: Swizzle(2, 0, 3)(broad(1 << 40)), InvalidValueError, "elements, got 1099511627776"),
    ("view of a map", lambda: tma.read_map(broad(1 << 40)), InvalidValueError, "the tensor map has 1099511627776"),
    ("start", lambda: cute.prefix_product((2, 3), slice(1)), InvalidTypeError, "slice can't be a stride, because a"),
    ("fraction", lambda: E(0) + Fraction(1, 2), InvalidTypeError, "only integers, tuples and basis elements can be"),
    ("difference", lambda: Fraction(1, 2) - E(0), InvalidTypeError, "only integers, tuples and basis elements can be"),
    ("format", lambda: format(Int(4), "..."), InvalidValueError, "'...' is not a valid format for an integer"),
    ("tensor", lambda: cute.format_layout(cute.make_tensor(cute.make_gmem_ptr(0, "float16"), (4, 5))), InvalidTypeError,
     "print_layout takes a layout, got Tensor"),
    ("extent", lambda: cute.make_coord_iterator(2**63), InvalidValueError, "an extent is 9223372036854775808"),
    ("no modes", lambda: INVERSE[0], LayoutError, "no mode 0, because its inner function"),
    ("no slice", lambda: INVERSE.slice_and_offset((1, None)), LayoutError, "no slice, because"),
    ("class", lambda: ComposedLayout(int, 0, Layout(4)), InvalidTypeError, "must be functions of an offset"),
    ("deep tiler", lambda: cute.tile_unzip(Layout((4, 4)), nested(3000)), InvalidValueError, "nested deeper than"),
    ("places", lambda: cute.expand("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS", [[7.0, 5.0]], [[1, float("nan")]]),
     InvalidTypeError, "metadata must be integers"),
    ("headline", lambda: CuteError(4), InvalidTypeError, "takes a text, a mapping of facts and a hint"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_the_largest_extent_is_counted() -> None:
    """One coordinate after another, without the whole range in memory."""
    far = cute.make_coord_iterator((2, 2**63 - 1))
    assert list(itertools.islice(far, 3)) == [(0, 0), (1, 0), (0, 1)]
    assert list(cute.make_coord_iterator((2, 0))) == []


def test_arithmetic_tuples_leave_other_classes_to_python() -> None:
    with pytest.raises(TypeError):
        ArithTuple(1, 2) + Fraction(1, 2)
