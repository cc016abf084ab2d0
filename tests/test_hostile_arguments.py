"""Arguments that never end, nest without bound or answer every attribute; and enums by names that they do not have."""

from __future__ import annotations

import copy
import enum
import itertools
import pickle
import types
import weakref
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sympy import Symbol

import cute_py as cute
from cute_py import ArithTuple, ComposedLayout, E, Int, Layout, Swizzle, tma, tmem, watch
from cute_py.argument_checks import MOST_ELEMENTS, MOST_ITEMS, MOST_ITERATED, check_elements, has, items_of, record
from cute_py.errors import (
    CuteError,
    FileFormatError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    UnknownNameError,
)
from cute_py.targets import version_text
from tests.calls.hostile import Agreeable, Answering, Itself, broad, deep_list, endless, endless_tuples
from tests.calls.objects import KERNEL_TEXT
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
    assert len(items_of(itertools.repeat(0, MOST_ITERATED), "items")) == MOST_ITERATED
    assert len(items_of(broad(MOST_ITEMS), "items")) == MOST_ITEMS
    for many in (itertools.repeat(0, MOST_ITERATED + 1), endless(), Itself(), broad(1 << 40), broad(MOST_ITEMS + 1)):
        with pytest.raises(InvalidValueError, match=r"items must have at most (1048576|4194304) items"):
            items_of(many, "items")
    for none in (4, weakref.proxy(Layout), Failing()):
        with pytest.raises(InvalidTypeError, match="items must be a sequence, got "):
            items_of(none, "items")  # type: ignore[arg-type]


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


def test_a_record_of_what_has_no_repr_has_one() -> None:
    class Unprintable:
        def __repr__(self) -> str:
            raise RuntimeError("no repr")

    assert repr(tma.Fix("change", {"tile": Unprintable()})).count("that can't be printed") == 1


class Failing:
    """An integer, and a sequence, that can't be read."""

    def __index__(self) -> int:
        raise KeyError("index")

    def __len__(self) -> int:
        raise KeyError("len")


class Huge:
    def __index__(self) -> int:
        return 10**400


class Broad:
    """A sequence of more items than memory holds."""

    def __len__(self) -> int:
        return 1 << 62

    def __getitem__(self, item: int) -> int:
        return 1


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
            "as_arith_tuple": cute.as_arith_tuple,
            "unflagged": cute.as_position_independent_swizzle_layout,
            "prefetch": tma.PrefetchDescriptor,
            "descriptor": lambda thing: tma.verify_partition(Layout(4), None, (4,), descriptor=thing),
        }.items()
        for thing in (Answering(), Agreeable(), Itself())
    ],
    ("coordinate", lambda: Layout((4, 8))(Answering(), 1), InvalidTypeError, "a stride, got Answering; a"),
    ("module", lambda: cute.max_common_layout(cute, Layout(4)), InvalidTypeError, "got module"),
    ("endless dims", lambda: tma.TensorMapTiled(7, 0, (64, 64), endless(), (4, 4)), InvalidValueError,
     "at most 1048576 items"),
    ("endless tile", lambda: tmem.S[(2, 2):(2, 1)].apply(endless()), InvalidValueError, "most 1048576 items, so an"),
    ("endless maps", lambda: tma.encode_many(endless_tuples()), InvalidValueError, "most 1048576 items, so an"),
    ("view", lambda: Swizzle(2, 0, 3)(broad(1 << 40)), InvalidValueError, "elements, got 1099511627776"),
    ("view of a map", lambda: tma.read_map(broad(1 << 40)), InvalidValueError, "the tensor map has 1099511627776"),
    ("start", lambda: cute.prefix_product((2, 3), slice(1)), InvalidTypeError, "None selects a whole mode"),
    ("failing size", lambda: Layout(Failing()), InvalidTypeError, "expected an integer, got Failing"),
    ("failing matrix", lambda: cute.expand("SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS", [[Broad(), 5]], [[1, 2]]),
     InvalidTypeError, "the stored A must be a matrix"),
    ("iterator", lambda: cute.make_inttuple_iter(1, 2) + Decimal(4), InvalidTypeError, "must hold integers and tuples"),
    ("huge leaf", lambda: cute.sum_((2, Huge())), InvalidValueError, r"must be at most 2**128 in magnitude"),
    ("divisor", lambda: E(0).ceil_div(timedelta(1)), InvalidTypeError, "can be scaled only by integers"),
    ("divisor of", lambda: E(0).safe_div(timedelta(1)), InvalidTypeError, "can be scaled only by integers"),
    ("schedule", lambda: cute.run_ptx(KERNEL_TEXT, block=32, schedule=np.arange(3)), InvalidValueError,
     "must be 'both', 'eager', 'lazy'"),
    ("columns", lambda: tmem.TmemAllocation(Huge()), CuteError, "columns; must be within 32..512"),
    ("name of a copy", lambda: tma.make_tma_copy_tiled(Layout(4), Layout(4, E(0)), 4, name=[]), InvalidTypeError,
     "name must be a str"),
    ("type of a copy", lambda: tma.make_tma_copy_tiled(Layout(4), Layout(4, E(0)), 4, dtype=Layout(4)), CuteError,
     "not an element type"),
    ("hints", lambda: cute.prepare_copy(np.zeros(4), np.zeros(4), hints=np.arange(3), cast="float16"), InvalidTypeError,
     "hints must be a bool"),
    ("version", lambda: version_text(nested(3000)), InvalidTypeError, "a PTX version must be two integers"),
    ("long folder", lambda: watch.read_records("a" * 300), FileFormatError, "File name too long"),
    ("value", lambda: cute.basis_value(Answering()), InvalidTypeError, "a stride, got Answering; a"),  # type: ignore[arg-type]
    ("value of text", lambda: cute.basis_value("4"), InvalidTypeError, "expected an integer, got str"),  # type: ignore[arg-type]
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


def test_a_block_of_symbols_does_not_divide() -> None:
    """`cute.static` leaves a symbol as it is, so that no change is offered."""
    with pytest.raises(CuteError, match="block shape does not divide") as refused:
        cute.tile_to_shape(Layout(Symbol("M", integer=True, positive=True)), (Int(16), Int(16)))
    assert "static" not in str(refused.value).partition("block :")[0]


def test_more_numbers_than_a_batch_takes() -> None:
    with pytest.raises(InvalidValueError, match="global_strides has 1099511627776 numbers"):
        tma.encode_many({"data_type": 6, "global_address": 4096, "global_strides": broad(1 << 40),
                         "box_dim": (64, 8), "global_dim": [[64, 8], [32, 4]]})  # fmt: skip


def test_a_numpy_base_does_not_overflow() -> None:
    near, far = (cute.coalescing(Layout((2,), (9,)), "uint16", base=base) for base in (np.int8(-128), -128))
    assert near == far


def test_steps_show_a_huge_result() -> None:
    assert str(cute.steps(cute.right_inverse, 10**5000)[0])


def test_an_object_that_answers_every_attribute_is_no_array() -> None:
    with pytest.raises(InvalidTypeError, match="data must be an array"):
        cute.formats.ScaledTensor(Agreeable(), np.zeros((4, 2), np.uint8), cute.formats.mxfp8())


def test_a_bare_address_is_not_read_on_the_host() -> None:
    far = cute.make_tensor(cute.make_gmem_ptr(16, "float16"), (4, 5))
    with pytest.raises(InvalidValueError, match="whose memory is unknown"):
        cute.copy(far, cute.formats.mxfp8(), rows=(0, 0))


def test_scales_that_are_objects() -> None:
    held = cute.copy(np.ones((4, 64), np.float32), cute.formats.mxfp8(scales="linear"))
    with pytest.raises(InvalidTypeError, match="must be an array of numbers, got object"):
        cute.formats.identify(np.array([None, object()], dtype=object), held.scales, (4, 64))
