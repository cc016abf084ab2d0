"""Numbers have bounds: inputs end at 2**128, results at 2**256, arrays at what memory holds; texts shorten them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, LayoutError
from tests.each import each_of
from tests.pace import within
from tests.refusals import Refusal, assert_refused, nested, refusals

HUGE = 10**5000
EDGE = 2**128
N = sympy.Symbol("N", integer=True, positive=True)
L = Layout((4, 8))

TAKEN = {
    "a size": lambda n: Layout(n),
    "a static size": lambda n: Layout(Int(n)),
    "a stride": lambda n: Layout(4, n),
    "a negative stride": lambda n: Layout(4, -n),
    "a nested size": lambda n: Layout((4, (2, n))),
    "a sympy integer": lambda n: Layout(sympy.Integer(n)),
    "a number beside a symbol": lambda n: Layout(N + n),
    "an offset of a composed layout": lambda n: ComposedLayout(Swizzle(1, 0, 1), n, L),
    "a coordinate": lambda n: L(n),
    "a coordinate in a tuple": lambda n: L((n, 0)),
    "an index": lambda n: cute.idx2crd(n, (4, 8)),
    "a tiler": lambda n: cute.logical_divide(L, n),
    "a swizzled offset": lambda n: Swizzle(3, 4, 3)(n),
}


@each_of("take", TAKEN.values(), ids=TAKEN)
def test_inputs_end_at_the_bound(take: Any) -> None:
    with contextlib.suppress(LayoutError):  # what the bound itself comes to may be no layout; it is taken as a number
        take(EDGE)
    for beyond in (EDGE + 1, HUGE):
        with pytest.raises(InvalidValueError, match=r"must be at most 2\*\*128 in magnitude") as error:
            take(beyond)
        assert len(str(error.value)) < 300
    assert "0x31e2080" in str(error.value)
    assert "(16610 bits)" in str(error.value)


GROWN = {
    "size": lambda: cute.size(Layout((EDGE, EDGE, 2))),
    "product of a shape": lambda: cute.product((Int(EDGE), Int(EDGE), Int(2))),
    "static arithmetic": lambda: Int(EDGE) * Int(EDGE) * Int(2),
    "call": lambda: Layout(4, (EDGE))(EDGE) + Layout((4, 4, 4), (1, EDGE, EDGE))((0, 0, 2 * EDGE)),
    "compact strides": lambda: Layout((EDGE, EDGE, EDGE, EDGE)).stride,
    "logical_product": lambda: cute.logical_product(Layout(Int(EDGE)), Layout((Int(EDGE), Int(4), Int(4)))),
    "blocked_product": lambda: cute.blocked_product(Layout((Int(EDGE), Int(2))), Layout((Int(EDGE), Int(EDGE)))),
    "downcast": lambda: cute.downcast(Layout((4, Int(EDGE)), (EDGE, Int(1))), EDGE),
    "composition": lambda: cute.composition(Layout((4, EDGE), (EDGE, EDGE)), Layout(2, EDGE)),
    "cosize": lambda: cute.cosize(Layout((EDGE, 4), (EDGE, EDGE))),
}


@each_of("grow", GROWN.values(), ids=GROWN)
def test_results_end_at_twice_the_bits(grow: Any) -> None:
    try:
        result = grow()
    except CuteError as refusal:
        assert isinstance(refusal, (LayoutError, InvalidValueError))
        assert len(str(refusal)) < 500
    else:
        numbers = [abs(int(n)) for n in np.ravel(cute.flatten(getattr(result, "shape", result)))]
        assert max(numbers) <= 2**256


def test_a_result_of_two_bounds_is_exact() -> None:
    assert cute.size(Layout((EDGE, EDGE))) == EDGE**2
    with pytest.raises(LayoutError, match=r"must be at most 2\*\*256 in magnitude"):
        cute.size(Layout((EDGE, EDGE, 2)))
    with pytest.raises(LayoutError, match=r"must be at most 2\*\*256 in magnitude"):
        cute.composition(Layout((2, 2), (EDGE, EDGE)), Layout(2, EDGE))(EDGE)


REFUSED: list[Refusal] = [
    (
        "subs of a number",
        lambda: Layout(N).subs(5),
        InvalidTypeError,
        "values must be a dict",
    ),
    ("subs of a text", lambda: Layout(N).subs({"N": 4}), InvalidTypeError, "subs replaces symbols only, got 'N'"),
    ("subs by a list", lambda: Layout(N).subs({N: []}), InvalidTypeError, "expected an integer, got list"),
    (
        "subs by a tuple",
        lambda: Layout(N).subs({N: cute.ArithTuple(1, 2)}),
        InvalidTypeError,
        "subs needs numbers or expressions as values, got",
    ),
    ("a huge mode", lambda: cute.replace(L, HUGE, L), InvalidValueError, "a mode is 0x31e2080103..."),
    ("a deep tree", lambda: cute.slice_(((None, 0),), nested(3000)), CuteError, "nested deeper than"),
    (
        "offsets of a coordinate of another profile",
        lambda: cute.offsets(cute.make_identity_layout((cute.Int(4),)), ((2**64, 2),)),
        CuteError,
        "Mismatched Ranks",
    ),
    ("a slice", lambda: L(slice(None)), InvalidTypeError, "None selects a whole mode"),
    ("a matrix", lambda: Layout(sympy.Matrix([[1]])), InvalidTypeError, "expected an integer, got Matrix([[1]])"),
    ("upcast by bytes", lambda: Swizzle(1, 2, 3).upcast(b""), InvalidTypeError, "the factor of a recast must be"),
    ("a shape of none", lambda: ComposedLayout(L, 0, Swizzle(1, 0, 1)).shape, LayoutError, "no shape"),
    (
        "offsets of a billion",
        lambda: cute.offsets(Layout(10**9)),
        InvalidValueError,
        "offsets() evaluates at most 268435456 at once",
    ),
    ("a warp of a billion", lambda: cute.bank_conflicts(Layout(2**31), "f16"), InvalidValueError, "at most 1048576"),
    ("sectors of a billion", lambda: cute.coalescing(Layout(2**31), "f16"), InvalidValueError, "at most 1048576"),
    ("an offset beyond 64 bits", lambda: cute.coordinates(L, 2**63), InvalidValueError, "must be below 2**63"),
    (
        "a stride beyond 64 bits",
        lambda: cute.coordinates(Layout(2, 2**63), 1),
        LayoutError,
        "computes in 64 bits, and offsets of this layout need more",
    ),
    ("a map after a number", lambda: cute.linear(Layout(8)).compose(4), InvalidTypeError, "must be a LinearLayout"),  # type: ignore[arg-type]
    ("a map beyond its domain", lambda: cute.linear(Layout(8))(8), LayoutError, "is outside the domain"),
    (
        "a map of threes",
        lambda: cute.LinearLayout((3,), ()),
        InvalidValueError,
        "the shape is (3,); its sizes must be powers of 2",
    ),
    ("a map of few columns", lambda: cute.LinearLayout((4,), (1,)), InvalidValueError, "has 1 entries; must have 2"),
    ("conflicts of no width", lambda: cute.BankConflicts(7, (1,)), InvalidValueError, "vector_bits = 7"),
    ("conflicts of no phase", lambda: cute.BankConflicts(32, ()), InvalidValueError, "wavefronts is empty"),
    ("sectors of a text", lambda: cute.Coalescing("4", 1, 1), InvalidTypeError, "sectors must be an integer"),  # type: ignore[arg-type]
    ("a footprint of None", lambda: cute.Footprint(None, 0, 0), InvalidTypeError, "lowest must be an int"),  # type: ignore[arg-type]
    ("a wide swizzle", lambda: Swizzle(HUGE, 0, HUGE), InvalidValueError, "must be -128 to 128"),
    (
        "an array as engine",
        lambda: cute.tensor.tensor.Tensor(np.zeros(4), L),
        InvalidTypeError,
        "an array is not an engine",
    ),
    (
        "strict over a million",
        lambda: cute.composition(Layout(2**20), Layout(2**20), strict=True),
        LayoutError,
        "65536",
    ),
    ("division by a static zero", lambda: Int(4) // Int(0), LayoutError, "division by zero"),
    ("division of a number", lambda: 4 % Int(0), LayoutError, "division by zero"),
    (
        "a tiler of coordinates",
        lambda: cute.composition(L, cute.ArithTuple(1, 2)),
        InvalidTypeError,
        "a tiler must be a size, a layout, `_` or a tuple of them, got",
    ),
]


@refusals(REFUSED)
def test_refused(call: Any, kind: Any, words: str) -> None:
    with within(200):
        assert_refused(call, kind, words)


@pytest.mark.parametrize("operation", [cute.coalesce, cute.filter], ids=["coalesce", "filter"])
@pytest.mark.parametrize("leaf", [cute._, None, Int(1), 7], ids=repr)
def test_any_leaf_of_a_profile_is_operated_on(operation: Any, leaf: Any) -> None:
    """As C++, which asks only whether a profile is a tuple."""
    layout = Layout(((Int(2), Int(3)), (Int(4), Int(5))), ((Int(1), Int(2)), (Int(6), Int(24))))
    assert operation(layout, (leaf, leaf)) == Layout((Int(6), Int(20)), (Int(1), Int(6)))
    assert operation(layout, leaf) == Layout(Int(120), Int(1))


def test_only_data_of_one_type_has_a_common_vector() -> None:
    """Values printed by CuTe C++ (CUTLASS 4.2) for the same tensors."""
    layout = Layout((Int(4), Int(8)))
    memory = {kind: cute.make_tensor(cute.make_gmem_ptr(0, kind), layout) for kind in ("float32", "float64", "int32")}
    array = cute.make_tensor(np.zeros(32, np.float32), layout)
    nibbles = cute.make_tensor(cute.make_smem_ptr(0, "int4"), layout)
    coords = cute.make_identity_tensor((Int(4), Int(8)))
    counted = cute.make_tensor(cute.counting_iterator(0), layout)
    tensor_memory = cute.make_tensor(cute.make_tmem_ptr(0, "float32"), layout)
    one = memory["float32"]
    for a, b, vector, common in (
        (one, one, "_32", "_32:_1"),
        (one, array, "_32", "_32:_1"),
        (nibbles, nibbles, "_32", "_32:_1"),
        (one, memory["float64"], "_0", "_1:_0"),
        (one, memory["int32"], "_0", "_1:_0"),
        (coords, coords, "_0", "_1:_0"),
        (counted, counted, "_0", "_1:_0"),
        (one, coords, "_0", "_1:_0"),
        (tensor_memory, tensor_memory, "_0", "_1:_0"),
    ):
        assert str(cute.max_common_vector(a, b)) == vector, (a, b)
        assert str(cute.max_common_layout(a, b)) == common, (a, b)
