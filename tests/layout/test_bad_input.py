"""What is no layout, no number, too deep or too large ends in a typed error that names it."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
import sympy

import cute_py as cute
from cute_py import E, Int, Layout, Swizzle
from cute_py.argument_checks import expect, expect_having, expect_integer, is_integer
from cute_py.dtypes import is_dtype
from cute_py.errors import (
    CompositionMismatchError,
    CoordinateError,
    CuteError,
    InvalidTypeError,
    InvalidValueError,
    LayoutError,
    StaticAssertError,
    given,
)
from tests.calls.hostile import Itself
from tests.each import each_of
from tests.pace import within
from tests.refusals import Refusal, assert_refused, nested, refusals

N = sympy.Symbol("N", integer=True, positive=True)


NO_INTEGERS = (
    None, True, 1.5, float("nan"), "4", b"4", bytearray(4), [1], {}, int, np.float32(2), np.datetime64("2020"), 1j,
    Fraction(1, 2), np.array([1, 2]), sympy.true, sympy.oo, sympy.nan, sympy.zoo, sympy.I, sympy.Rational(1, 2),
    range(3), np.timedelta64(4, "s"), N > 3, sympy.FiniteSet(1), sympy.Tuple(1, 2), sympy.Interval(0, 1),
)  # fmt: skip


@each_of("value", NO_INTEGERS, ids=lambda v: type(v).__name__)
def test_no_size_and_no_stride(value: Any) -> None:
    for make in (Layout, lambda v: Layout(4, v), lambda v: Layout((4, v)), lambda v: cute.round_up(v, 4)):
        if value is None and make is not Layout:
            continue  # as a stride, None is the default
        with pytest.raises(InvalidTypeError):
            make(value)


def test_a_named_tuple_is_no_other_tiler() -> None:
    """Its sizes would be the modes of one layout, where those of a plain tuple tile mode by mode."""
    layout, tiler = cute.static(Layout((4, 9, 8))), Extents(Int(2), Int(3), Int(4))
    for operation in (cute.logical_divide, cute.zipped_divide, cute.tiled_divide, cute.logical_product):
        operation(layout, tuple(tiler))
        with pytest.raises(
            InvalidTypeError, match="a tiler must be a plain tuple, a size, a layout or `_`, got Extents"
        ):
            operation(layout, tiler)
    assert cute.offsets(layout, Extents(1, 2, 3)) == cute.offsets(layout, (1, 2, 3)) == layout(1, 2, 3)
    with pytest.raises(InvalidTypeError, match="a descriptor must be bytes"):
        cute.tma.Emulator().load(
            np.array(["2020"], "datetime64[s]"), np.zeros(9, np.uint8), (0,), np.zeros(9, np.uint8)
        )


def test_no_coordinate() -> None:
    for value in NO_INTEGERS:
        for coordinate in ((0, value), value):
            if value is not None and type(value) not in (list, range, sympy.Tuple):
                with pytest.raises(CuteError):
                    Layout((2, 8))(coordinate)


def test_an_unknown_function_is_a_symbol() -> None:
    """Its class has no module by which to know that it is sympy's."""
    size = sympy.Function("f")(1)
    assert str(Layout((4, size))) == "(4,f(1)):(_1,4)"
    with pytest.raises(InvalidTypeError):
        cute.tma.read_map(size)
    assert not is_dtype(size)


def test_arrays_of_many_modes_are_not_printed_whole() -> None:
    deep = np.zeros((2,) * 24, np.uint8)
    with within(200):
        assert given(deep) == f"<ndarray of shape {deep.shape}>" and given((4, deep)).startswith("(4, <ndarray")
        with pytest.raises(InvalidTypeError, match="ndarray"):
            cute.tiled_divide(Layout((4, 8)), deep)


@pytest.mark.parametrize("value", [True, 1.5, "4", int, np.array([1, 2]), np.array([3, 4], object), N])
def test_static_integers_are_made_of_integers(value: Any) -> None:
    assert not is_integer(value)
    with pytest.raises(InvalidTypeError, match=r"Int\(value\) takes an integer, got"):
        Int(value)


OF_MODES: dict[str, Callable[[Any], Any]] = {
    "take": lambda tree: cute.take(tree, 0, 2),
    "select": lambda tree: cute.select(tree, 1, 0),
    "group_modes": lambda tree: cute.group_modes(tree, 0, 2),
    "flatten": cute.flatten,
    "unflatten": lambda tree: cute.unflatten(tree, ((0, 0), 0)),
    "append": lambda tree: cute.append(tree, 4),
    "prepend": lambda tree: cute.prepend(tree, 4),
    "what is appended": lambda tree: cute.append((1, 2), tree),
    "replace": lambda tree: cute.replace(tree, 0, 4),
    "what replaces": lambda tree: cute.replace((1, 2), 0, tree),
    "zip_": cute.zip_,
    "zip_ of two": lambda tree: cute.zip_(tree, tree),
    "fold": lambda tree: cute.fold(tree, 0, lambda sum_, _: sum_),
    "basis_get": lambda tree: cute.basis_get(E(0), tree),
    "slice_": lambda tree: cute.slice_((None, 0, None), tree),
    "dice": lambda tree: cute.dice((None, 0, None), tree),
    "static": cute.static,
    "coalesce": lambda tree: cute.coalesce(Layout((2, 3, 4)), tree),
    "filter": lambda tree: cute.filter(Layout((2, 3, 4)), tree),
}
"""Functions that take a tuple apart or put it together, whatever its leaves are."""


class Extents(NamedTuple):
    first: Any
    second: Any
    third: Any


class Size(tuple[int, ...]):
    """As PyTorch's shapes are."""


def test_shapes_of_other_libraries_are_tuples() -> None:
    shape = Size((4, 8))
    assert Layout(shape, Size((8, 1))) == Layout((4, 8), (8, 1))
    assert type(Layout(shape).shape) is tuple
    assert cute.make_identity_tensor(shape).layout == cute.make_identity_tensor((4, 8)).layout
    assert cute.size(shape) == 32 and cute.flatten(((2, shape), 3)) == (2, 4, 8, 3)


@each_of("name", OF_MODES)
def test_what_ends_a_tree(name: str) -> None:
    """Integers, strides, `_`, layouts, and large results of the algebra; named tuples are tuples."""
    call = OF_MODES[name]
    for value in NO_INTEGERS:
        if value is not None:
            with pytest.raises(InvalidTypeError):
                call((1, value, 3))
    for taken in (np.uint8(4), N, E(1), None, Layout(4), 1 << 200):
        if name != "static" or taken != 1 << 200:  # which no static integer is
            call((1, taken, 3))
    assert call(Extents(2, 3, 4)) == call((2, 3, 4))


def nested_list(depth: int) -> list[Any]:
    """A list that is nested this deeply."""
    made: list[Any] = []
    for _ in range(depth):
        made = [made]
    return made


def nested_dict(depth: int) -> dict[int, Any]:
    """A dictionary that is nested this deeply."""
    made: dict[int, Any] = {}
    for _ in range(depth):
        made = {0: made}
    return made


L = Layout((4, 8), (8, Int(1)))
DEEP = nested(2000)

REFUSED: list[Refusal] = [
    ("tuple, rounded", lambda: cute.round_up(5, (2, 2)), InvalidTypeError, "round_up takes two integers or two"),
    ("tuple, rounded up", lambda: cute.round_up((10, 7), 2**62), InvalidTypeError, "round_up takes two integers or"),
    ("inner product", lambda: cute.inner_product((1, 2), 2**62), StaticAssertError, "Mismatched ranks"),
    ("stride deeper", lambda: cute.crd2idx(7, 5, ((1, 3),)), CoordinateError, "Mismatched Ranks"),
    ("stride flatter", lambda: cute.crd2idx(12, ((7, 5),), 3), CoordinateError, "Mismatched Ranks"),
    ("index of a stride", lambda: cute.idx2crd(8, Int(5), (0, 4)), CoordinateError, "Mismatched Ranks"),
    ("basis as a size", lambda: cute.crd2crd(5, 7, (E(0), E(1))), InvalidTypeError, "can't divide"),
    ("stride of a number", lambda: cute.stride(4), InvalidTypeError, "stride takes a layout or a tensor, got int 4"),
    ("alignment of a number", lambda: cute.max_alignment(4), InvalidTypeError, "expected a layout"),
    ("raked", lambda: cute.raked_product(L, 2), InvalidTypeError, "expected a layout"),
    ("threads", lambda: cute.local_partition(L, 0, 6), InvalidTypeError, "threads must be a Layout, got int 0"),
    ("sliced class", lambda: cute.slice_("4:1", int), InvalidTypeError, "slice_ takes a layout"),
    ("rank in full", lambda: cute.append(L, None, 2**40), InvalidValueError, "must be at most 65536"),
    ("rank of a tuple", lambda: cute.append((4,), 1, ()), InvalidTypeError, "a mode must be an integer, got tuple ()"),
    ("swizzle bits", lambda: cute.make_swizzle(7, sympy.I), InvalidTypeError, "Z bits of a swizzle must be an integer"),
    ("swizzle class", lambda: Swizzle(1, int), InvalidTypeError, "Swizzle base must be an integer"),
    ("factor", lambda: cute.upcast(L, np.array([1, 2])), InvalidTypeError, "the factor of a recast must be an integer"),
    ("profile", lambda: cute.filter_zeros(L, ((), ())), StaticAssertError, "Mismatched tuple_size"),
    ("steps of an array", lambda: cute.steps(np.array([1, 2])), InvalidTypeError, "steps can't explain array"),
    ("steps of nothing", lambda: cute.steps(cute.complement), InvalidTypeError, "can't take 0 operands"),
    ("a power without end", lambda: Int(3) ** Int(2**63), LayoutError, "must be at most 2**256 in magnitude"),
    ("its reflection", lambda: 3 ** Int(2**63), LayoutError, "must be at most 2**256 in magnitude"),
    ("a huge tiler", lambda: cute.flat_divide(Layout(2**62, 2**62), (10**5000, Int(2))), StaticAssertError, "bits)"),
    ("a deep dictionary", lambda: L(nested_dict(3000), (8, 8), None), CoordinateError, "nested too deep"),
    (
        "threads of a symbol",
        lambda: cute.make_tiled_mma("SM80_16x8x8_F16F16F16F16_TN", sympy.Symbol("n")).get_slice(0),
        InvalidTypeError,
        "must have known numbers",
    ),
    (
        "numbers that are objects",
        lambda: cute.formats.to_float32(np.array([None], object), "float32"),
        InvalidTypeError,
        "must be an array of numbers, got object",
    ),
    (
        "a grid of another kind",
        lambda: cute.formats.scale_order("ragged", cu_seqlens=(0, 8)).index("uint8"),
        InvalidTypeError,
        "the grid of scales must be a Grid",
    ),
    (
        "strides of a huge multiple of a symbol",
        lambda: Layout((sympy.Symbol("N", integer=True, positive=True), *range(1, 200), 4), cute.LayoutLeft),
        LayoutError,
        "must be at most 2**256",
    ),
    ("a deep list as a type", lambda: cute.offsets(L, dtype=nested_list(3000)), InvalidTypeError, "an integer type"),
    (
        "a deep list in a tiler",
        lambda: cute.zipped_divide(Layout(4, 1), ((2, (3,)), nested_list(3000))),
        CuteError,
        "nested too deep",
    ),
    ("sparse", lambda: cute.find_mma_atoms(a="half_t", sparse=np.zeros(2)), InvalidTypeError, "sparse must be a bool"),  # type: ignore[arg-type]
    ("zero to a negative power", lambda: Int(0) ** -2, LayoutError, "division by zero"),
    ("steps of one", lambda: cute.steps(cute.zipped_divide, L), InvalidTypeError, "can't take 1 operand: missing"),
    ("steps of four", lambda: cute.steps(cute.composition, L, 8, 0, 1), InvalidTypeError, "can't take 4 operands"),
    (
        "deep after `_`",
        lambda: cute.ComposedLayout(Swizzle(2, 0, 3), 0, L).slice_and_offset((None, DEEP)),
        InvalidValueError,
        "nested deeper than",
    ),
    ("type of offsets", lambda: cute.offsets(L, None, "4:1"), InvalidTypeError, "must be an integer type"),
    ("type of offsets, an old alias", lambda: cute.offsets(L, None, b"a"), InvalidTypeError, "must be an integer type"),
    ("a list of modes", lambda: cute.flatten([3, 8]), InvalidTypeError, "flatten takes a layout or a tensor, got list"),
    ("ragged", lambda: cute.offsets(Layout(8), [[1], [2, 3]]), InvalidTypeError, "coordinates must be integers, got"),
    ("ragged offsets", lambda: cute.coordinates(L, [[1], [2, 3]]), InvalidTypeError, "offsets must be integers, got"),
    ("a callable", lambda: cute.offsets(int, (1,)), InvalidTypeError, "expected a layout or a tensor"),
    ("shift of a layout", lambda: cute.overlaps(L, L, L), InvalidTypeError, "shift must be an integer, got Layout"),
    ("base", lambda: cute.coalescing(L, "float16", base=2**63), InvalidValueError, "must be less than 2**62 in"),
    ("base of a layout", lambda: cute.bank_conflicts(L, 16, base=L), InvalidTypeError, "base must be an integer"),
    ("wide element", lambda: cute.coalescing(Layout(4), 2**63), InvalidValueError, "must be 1 to 65536"),
    ("no thread", lambda: cute.coalescing(Layout(0), 16), InvalidValueError, "at least one thread"),
    ("relation", lambda: cute.elem_less(1, E(0)), InvalidTypeError, "elem_less compares only integers"),
    ("symbol and basis", lambda: cute.compatible(E(1, 0), (4, N)), InvalidTypeError, "sizes must be integers, got"),
    ("by nothing", lambda: cute.logical_divide(Layout((N, 4), (4, 1)), 0), LayoutError, "division by zero"),
    ("no bits", lambda: cute.composition(Layout((4, 8), (E(0), E(1))), Swizzle(1, 0, 1)), InvalidTypeError, "no bits"),
    ("searched", lambda: cute.coordinates(Layout((2**10, 2**20), (3, 2)), [5]), LayoutError,
     "coordinates() searches at most"),
    ("diced", lambda: cute.dice((0, 1), nested(2000)), InvalidValueError, "nested deeper than 64"),
    ("unknown size", lambda: cute.composition(Layout((N, 4)), Layout(N), strict=True), CoordinateError, "known number"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@each_of(
    "call",
    [
        lambda: Layout(DEEP),
        lambda: cute.complement(DEEP),
        lambda: cute.offsets(DEEP),
        lambda: cute.is_injective(DEEP),
        lambda: cute.make_layout_tv(L, DEEP),
        lambda: cute.make_composed_layout(DEEP, 0, L),
        lambda: cute.upcast(L, DEEP),
        lambda: cute.select(L, DEEP),
        lambda: cute.right_inverse(DEEP),
        lambda: cute.linear(DEEP),
        lambda: cute.steps(DEEP, L),
        lambda: cute.local_tile(L, (2, 4), DEEP),
        lambda: cute.Tensor(DEEP, L),
        lambda: Swizzle(DEEP, 0),
        lambda: Int(DEEP),
    ],
)
def test_too_deep(call: Callable[[], Any]) -> None:
    with pytest.raises(CuteError):
        call()


def test_what_has_no_text_is_named_by_its_class() -> None:
    assert "nested too deep" in str(CuteError.of_value("a", 1, "be b", unit=nested(3000)))  # type: ignore[arg-type]
    assert given(nested(10**5)) == "<tuple nested too deep to print>"
    assert given((4, "a")) == "(4, 'a')"


def test_one_check_for_arguments() -> None:
    assert expect("a", str, "a name") == "a" and expect_integer(np.int64(4), "n") == 4
    with pytest.raises(InvalidTypeError, match="op must be an Int, got int 4"):
        expect(4, Int, "op")
    with pytest.raises(InvalidTypeError, match="n must be an integer, got bool True"):
        expect_integer(True, "n")
    with pytest.raises(InvalidTypeError, match="expected a box, got int 4"):
        expect_having(4, ("box",), "a box")


def test_strict_composition_compares_numbers_and_not_their_staticness() -> None:
    """R(0) is a static 0 where A(B(0)) is a run-time one: the same number, and no mismatch."""
    a = Layout((Int(16), (Int(16), Int(3))), (Int(0), (Int(6), Int(12))))
    assert str(cute.composition(a, Layout(Int(8)), strict=True)) == "_8:_0"
    basis = Layout((Int(4), Int(8)), (E(0), E(1)))
    assert (
        str(cute.composition(basis, Layout((2, Int(8)), (Int(1), Int(4))), strict=True))
        == "((2,1),_8):((_1@0,_1@1),_1@1)"
    )


def test_strict_composition_misses_no_element() -> None:
    """Run-time sizes that do not divide: C++ drops the rest, here 12 elements are left of 16."""
    a = Layout((Int(2), 3, Int(4)), (0, 0, Int(0)))
    assert cute.size(cute.composition(a, Layout(Int(16)))) == 12
    with pytest.raises(
        CompositionMismatchError, match="the composition has 12 elements; must have 16, like the right layout"
    ):
        cute.composition(a, Layout(Int(16)), strict=True)


@pytest.mark.parametrize(
    ("lhs", "rhs", "words"),
    [
        ("Sw<1,0,3> o _0 o (_2,2):(_1,_2)", "(5):(_1)", "the composition has 4 elements; must have 5,"),
        ("Sw<1,0,3> o 5 o (4,6,8):(2,3,5)", "6:3", r"R\(2\) = 9, A\(B\(2\)\) = 13"),
        ("(4,8):(8,1)", "Sw<1,2,3>", r"R\(1\) = 9, A\(B\(1\)\) = 8"),
    ],
)
def test_strict_composition_checks_composed_layouts_and_swizzles(lhs: str, rhs: str, words: str) -> None:
    a, b = cute.parse(lhs), cute.parse(rhs)
    cute.composition(a, b)
    with pytest.raises(CompositionMismatchError, match=words):
        cute.composition(a, b, strict=True)


@pytest.mark.parametrize(
    ("lhs", "rhs", "text"),
    [
        ("Sw<2,0,3>", "Sw<1,2,3>", "Sw<3,0,3>"),
        ("Sw<1,0,3>", "Sw<1,1,3> o _0 o 16:1", "Sw<2,0,3> o _0 o 16:1"),
        ("(4,8):(8,1)", "Sw<1,0,2>", "Sw<1,0,-3> o _0 o (4,8):(8,1)"),
        ("Sw<1,0,3> o 5 o 6:1", "5:1", "Sw<1,0,3> o 5 o 5:1"),
    ],
)
def test_strict_composition_of_swizzles_that_are_the_function(lhs: str, rhs: str, text: str) -> None:
    assert str(cute.composition(cute.parse(lhs), cute.parse(rhs), strict=True)) == text


def test_coordinates_overlap_where_all_their_numbers_do() -> None:
    """{(0,0),(0,1),(0,2)} and {(1,1),(1,2),(1,3)} share numbers and no coordinate."""
    a = Layout((Int(1), 3), (E(0), E(1)))
    assert not cute.overlaps(a, a, shift=1)
    assert cute.overlaps(a, a)
    assert cute.overlaps(Layout((2, 3), (E(0), E(1))), Layout((2, 3), (E(0), E(1))), shift=1)
    with pytest.raises(InvalidTypeError, match="different codomains"):
        cute.overlaps(a, Layout(3))
    assert not cute.overlaps(a, Layout((0, 3), (E(0), E(1))))


def test_overlaps_counts_before_it_evaluates() -> None:
    """A layout too large to count is refused at once, without its offsets."""
    large = Layout((12, 8, 12, 4, 5, 12, 8, 8, 2, 9, 9), (5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41))
    with pytest.raises(LayoutError, match="at most 67108864 elements are counted"):
        cute.overlaps(large, Layout(16, 64))


@pytest.mark.parametrize("stride", [1, 3, 1 << 20])
def test_distinct_offsets_are_counted_alike_near_and_far(stride: int) -> None:
    layout = Layout((4, 5, 3), (stride, 3 * stride, 4 * stride))
    assert cute.footprint(layout).distinct == len(np.unique(cute.offsets(layout)))


@pytest.mark.parametrize("value", [1, 2, 8, 56, 784])
def test_many_run_time_modes_divided_by_a_symbol(value: int) -> None:
    """Long assumptions are noted as they stand: simplified, each took seconds. Numbers decide them."""
    layout = Layout((8, 7, 14, 4))
    symbolic = cute.tiled_divide(layout, Layout(N)).subs({N: value})
    assert cute.same_function(cute.coalesce(symbolic), cute.coalesce(cute.tiled_divide(layout, Layout(value))))


def test_a_long_assumption_is_held_against_the_values() -> None:
    symbolic = cute.logical_divide(Layout((8, 7, 14, 4)), Layout(N))
    with pytest.raises(LayoutError, match="these values break an assumption of the layout"):
        symbolic.subs({N: 10})


@pytest.mark.parametrize("size", [-N, -N - 1, sympy.Symbol("g", integer=True, negative=True)])
def test_sizes_known_to_be_below_zero_are_refused(size: sympy.Expr) -> None:
    with pytest.raises(InvalidValueError, match="which is negative; must be at least 0"):
        Layout((4, size))
    with pytest.raises(InvalidValueError, match="which is negative; must be at least 0"):
        Layout((4, size), (1, N))
    assert Layout(4, size).stride == size


def test_a_shape_that_is_no_tree_of_integers() -> None:
    """An object may have the names of a layout, and a shape that is none."""
    for tree in (Itself(), (Itself(), 3), (Itself(), (cute.Int(5),))):
        with pytest.raises(InvalidTypeError, match="Itself"):
            cute.product(tree)
