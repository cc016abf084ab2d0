"""Composition of layouts: R = A o B, so that R(i) = A(B(i)).

Each integer mode s:d of B is composed separately. First, A is flattened. Then d is divided by the sizes of A from the
left, which removes the elements of A that each step of B skips. Then s is taken from the left of the remaining sizes,
which leaves the elements that B visits:

    (6,2):(8,2) o 4:3      step over 3 of the 6, take 2 of the remaining 2, then 2 of the next 2
                        -> (2,2):(24,2)

Each division has a condition, which C++ asserts if both numbers are static. The stride and the size of a mode that it
steps over must divide one another, in one direction or the other ('Stride Divisibility Condition'). The number of
elements taken from a mode must divide the remaining s ('Shape Divisibility Condition'). The conditions are not
sufficient: composition((4,6,8):(2,3,5), 6:3) meets both, and differs from A(B(i)) at some i. `strict=True` compares the
functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from cute_py.argument_checks import expect
from cute_py.errors import (
    CompositionMismatchError,
    InvalidTypeError,
    LayoutError,
    StaticAssertError,
    given,
    integer_text,
)
from cute_py.layout.arguments import LayoutLike, Leaf, Shape, Tiler, Tree, Value
from cute_py.layout.coalesce import coalesce_x_by, coalesced
from cute_py.layout.int_tuple import product_of
from cute_py.layout.layout import (
    Layout,
    Thing,
    apply_to_inner,
    coprofile_of,
    joined,
    make,
    modes_of,
    of_layouts,
    shape_of,
)
from cute_py.layout.leaf import (
    STATIC,
    STATIC_ONE,
    STATIC_ZERO,
    Int,
    as_leaf,
    as_python_int,
    divides,
    divides_or_exceeds,
    is_short,
    is_symbolic,
    leaf_text,
    mode_text,
    quotient,
    smaller,
    times,
    tree_text,
    value_of,
)
from cute_py.layout.trees import at, check_depth, is_underscore, modes, unwrap

if TYPE_CHECKING:
    import sympy

STRIDE_RULE = "Stride Divisibility Condition"
SHAPE_RULE = "Shape Divisibility Condition"

Step: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""A rule's name and its numbers: leaves, or bare numbers, each followed by a flag for static."""


Notes: TypeAlias = "dict[sympy.Basic, None]"
"""Conditions on symbols that a result assumes, in order of appearance, without repetition."""


def compose_trees(
    lhs_shape: Tree, lhs_stride: Tree, shape: Tree, stride: Tree, notes: Notes, steps: list[Step]
) -> tuple[Tree, Tree]:
    """Compose a flattened left side with shape:stride. Append conditions on symbols to `notes`, steps to `steps`."""
    if type(shape) is tuple:  # C++: a tuple on the right; composition distributes over its modes
        sizes, strides = [], []
        for s, d in zip(shape, modes(stride), strict=True):
            size, step = compose_trees(lhs_shape, lhs_stride, s, d, notes, steps)
            sizes.append(size)
            strides.append(step)
        return tuple(sizes), tuple(strides)
    known = type(stride) is Int or type(stride) is int
    path = None if known else getattr(stride, "modes", None)
    if path is not None:  # C++: is_scaled_basis; compose with the mode of A that it points at
        value = as_leaf(stride.value)  # type: ignore[union-attr]
        return compose_trees(at(lhs_shape, path), at(lhs_stride, path), shape, value, notes, steps)
    steps.append(("mode", (shape, stride)))
    if type(stride) is Int and stride == 0:  # C++: is_constant<0, RStride>; nothing moves
        steps.append(("stay", (shape, stride)))
        return shape, STATIC_ZERO
    if type(lhs_shape) is not tuple:  # C++: is_integral<LShape>; along a single mode only the stride is scaled
        steps.append(("scale", (shape, stride, lhs_shape, lhs_stride)))
        return shape, times(stride, lhs_stride)
    if not known and not is_symbolic(stride):
        raise InvalidTypeError(f"composition needs integer strides or basis strides in the right layout, got {stride}")
    return _walk(lhs_shape, modes(lhs_stride), shape, stride, notes, steps)


def _walk(
    lhs_shape: tuple[Leaf, ...],
    lhs_stride: tuple[Leaf, ...],
    size: Leaf,
    stride: Leaf,
    notes: Notes,
    steps: list[Step],
) -> tuple[Tree, Tree]:
    """Compose a flat left side of rank > 1 with an integer mode size:stride, as the last branch of C++ does.

    `n` elements remain, in steps of `d` elements of the current mode. Both are bare numbers or symbols, each with a
    flag that states whether it is static. Neither increases, so both stay in the range of leaves. C++ checks its
    conditions only for static numbers.
    """
    n, n_static = value_of(size), type(size) is Int
    d, d_static = value_of(stride), type(stride) is Int
    over, direction = (d, 1) if type(d) is int and d > 0 else _magnitude(d)
    whole, taken = n, 1
    sizes: list[Leaf] = []
    strides: list[Leaf] = []
    last = len(lhs_shape) - 1
    for i in range(last):
        have: Any = lhs_shape[i]
        static = False
        if type(have) is Int:
            have, static = have | 0, d_static
        if static and d >= have != 0 and d % have:  # C++: static_assert
            _refuse_stride(d, have, i, lhs_shape, lhs_stride)
        # C++'s next_shape and next_stride: what steps of d leave of this mode, and the step in units of the mode.
        if type(have) is type(n) is int and have == 0:
            raise LayoutError(
                "composition divides by the size of a left mode, and this size is 0", {"left": tree_text(lhs_shape)}
            )
        if type(have) is type(over) is int and have > 0 and over > 0:
            left, over = -(-have // over), -(-over // have)
        else:
            left, over = _stepped_over(have, d, over, notes)
        following = over * direction
        step = STATIC[d] if d_static else d
        numbers = (i, lhs_shape[i], lhs_stride[i], step, left, following, static)
        if (static and left == 1) or (n_static and n == 1):  # C++: is_constant<1> of either; the mode is passed
            steps.append(("step over" if static and left == 1 else "done", numbers))
            d, d_static = following, static
            continue
        # C++'s new_shape: min(next_shape, rest_shape) elements lie in this mode, the rest beyond it.
        take_static = static and n_static
        taken = taken * left
        if n_static and n == 0 and not take_static:  # C++: a static 0 divided by a run-time number is a static 0
            take, rest, rest_static = smaller(left, n), 0, True
        else:
            rest_static = take_static
            if type(left) is type(n) is int and left > 0 <= n:
                take = left if left < n else n
                rest = n // take if take else 0
            else:
                take, rest = _walked(left, n, whole, taken, notes)
            if take == 0 or (take_static and n % take):  # C++: static_assert
                _refuse_size(n, take, i, lhs_shape, lhs_stride)
        sizes.append(STATIC[take] if take_static else take)
        strides.append(times(step, lhs_stride[i]))
        steps.append(("walk", (*numbers, n, n_static, take, rest, rest_static)))
        n, n_static, d, d_static = rest, rest_static, following, static
    if not sizes or not n_static or n != 1:  # C++: else is_constant<1, rest_shape>; the last mode is not reached
        size, stride = STATIC[n] if n_static else n, STATIC[d] if d_static else d
        steps.append(("rest", (last, lhs_shape[last], lhs_stride[last], stride, size)))
        sizes.append(size)
        strides.append(times(stride, lhs_stride[last]))
    return unwrap(sizes), unwrap(strides)


def _stepped_over(have: Value, d: Value, over: Value, notes: Notes) -> tuple[Value, Value]:
    """Return how many of a mode's `have` elements remain for steps of d, and the step in units of the whole mode. Used
    for symbols and 0; `over` is |d|."""
    if not isinstance(have, int) or not isinstance(d, int):
        if have == 0:
            raise LayoutError("division by zero", {"dividend": d})
        _require(divides_or_exceeds(have, d), STRIDE_RULE, notes)
    left, step = quotient(have + over - 1, over), quotient(over + have - 1, have)
    return left, step if isinstance(step, int) or not is_short(step) else abs(step)


def _walked(left: Value, n: Value, whole: Value, taken: Value, notes: Notes) -> tuple[Value, Value]:
    """Return how many of the n elements are taken from a mode with `left` elements, and how many remain to be taken.

    `whole` is the total number of elements to take, and `taken` the number of elements of all modes up to this one.
    """
    take = smaller(left, n)
    if type(take) is type(n) is int:
        return take, quotient(n, take) if take else 0
    if take == 0:
        raise LayoutError("division by zero", {"dividend": n})
    _require(divides(take, n), SHAPE_RULE, notes)
    # Long expressions: the same number, or 1 if `taken` exceeds it, without the remainders of the modes before.
    return take, quotient(n, take) if is_short(n, take) else quotient(whole, smaller(taken, whole))


def _magnitude(d: Value) -> tuple[Value, int]:
    """Return |d| and the sign of d. A symbol without a minus sign is treated as positive; C++ has no layouts with
    strides of unknown sign either."""
    if isinstance(d, int):
        return abs(d), (d > 0) - (d < 0)
    return abs(d), -1 if d.could_extract_minus_sign() and not d.is_positive else 1


def _require(condition: sympy.Basic, rule: str, notes: Notes) -> None:
    """Apply one of C++'s conditions to symbols: raise if it never holds, and note it if it depends on their values."""
    if condition == False:  # noqa: E712  (sympy's own, which is no Python False)
        raise StaticAssertError(rule, {"condition": "never holds for these symbols"})
    if condition != True:  # noqa: E712
        notes[condition] = None


def _refuse_stride(step: int, have: int, mode: int, shape: Tree, stride: Tree) -> None:
    where = f"_{have} of mode {mode} of the left layout {mode_text(shape, stride)}"
    facts = {"stride": f"_{integer_text(step)} of the right layout", "mode": where}
    raise StaticAssertError(STRIDE_RULE, facts)


def _refuse_size(size: int, take: int, mode: int, shape: Tree, stride: Tree) -> None:
    where = f"_{take} of mode {mode} of the left layout {mode_text(shape, stride)}"
    facts = {"size": f"_{integer_text(size)} remaining of the right layout", "takes": where}
    raise StaticAssertError(SHAPE_RULE, facts)


def composed_by_steps(lhs: Layout, rhs: Layout) -> tuple[Layout, list[Step]]:
    """Compute A o B for two plain layouts as C++ does, and return the steps too."""
    notes: Notes = dict.fromkeys(lhs.assumptions + rhs.assumptions)
    steps: list[Step] = []
    flat = coalesce_x_by(coprofile_of(rhs.stride), lhs.shape, lhs.stride)
    shape, stride = compose_trees(*flat, rhs.shape, rhs.stride, notes, steps)
    return make(shape, stride, tuple(notes)), steps


def compose_layouts(lhs: Layout, rhs: Layout) -> Layout:
    """Compute A o B for two plain layouts as C++ does."""
    return composed_by_steps(lhs, rhs)[0]


MAX_STRICT = 1 << 16
"""Elements that `strict=True` compares, one by one."""


def tiler_text(tiler: Tiler) -> str:
    """Return the printed text of a tiler: a size, a layout, `_`, or a tuple of tilers."""
    if type(tiler) is tuple:
        return "(" + ",".join([tiler_text(t) for t in tiler]) + ")"
    if isinstance(tiler, (list, dict, set, str)):  # no tiler; an error states it
        return given(tiler)
    return "_" if is_underscore(tiler) else leaf_text(tiler)  # type: ignore[arg-type]


def compose_tiler(lhs: Layout, tiler: Tiler) -> Layout:
    """Compose a layout by mode with a tiler: a tuple of tilers (a shorter tuple drops the other modes), a size, a
    layout, or `_`, which keeps the mode."""
    if isinstance(tiler, Layout):
        return compose_layouts(lhs, tiler)
    if type(tiler) is tuple:
        parts = modes_of(lhs)
        if len(tiler) > len(parts):
            raise StaticAssertError("tuple_size<Tiler>::value <= rank", {"tiler": tiler_text(tiler), "layout": lhs})
        return joined([compose_tiler(part, t) for part, t in zip(parts, tiler, strict=False)])
    if is_underscore(tiler):
        return lhs
    size = as_leaf(tiler)
    if not isinstance(size, int) and not is_symbolic(size):
        raise InvalidTypeError(
            f"a tiler must be a size, a layout, `_` or a tuple of them, got {given(tiler)}", {"layout": lhs}
        )
    notes: Notes = dict.fromkeys(lhs.assumptions)
    shape, stride = compose_trees(*coalesced(lhs.shape, lhs.stride, True), size, STATIC_ONE, notes, [])
    return make(shape, stride, tuple(notes))


Composed = TypeVar("Composed", bound=LayoutLike, covariant=True)


class Merges(Protocol):
    """An object that can merge with another one under composition: a swizzle."""

    def _merged(self: Merged, other: Merged, /) -> Merged: ...


Merged = TypeVar("Merged", bound=Merges)


class ComposesWith(Protocol[Composed]):
    """An object with a composition of its own: a swizzle or a composed layout."""

    def _compose_with(self, other: Tiler, offset: Leaf | None) -> Composed: ...


@overload
def composition(lhs: Thing, rhs: Tiler, *, strict: bool = False) -> Thing: ...
@overload
def composition(lhs: Merged, rhs: Merged) -> Merged: ...
@overload
def composition(lhs: ComposesWith[Composed], rhs: Tiler, *inner: Tiler) -> Composed: ...
@overload
def composition(lhs: Layout, rhs: Leaf, inner: LayoutLike, /) -> LayoutLike: ...
def composition(
    lhs: LayoutLike | Merges | ComposesWith[LayoutLike], rhs: Tiler | Merges, *inner: Tiler, strict: bool = False
) -> LayoutLike | Merges:
    """Return `lhs o rhs`: a layout, swizzle, composed layout or tensor, composed with a layout or a tiler.

    With three arguments, `composition(outer, offset, inner)` returns a composed layout, as in C++.

    Args:
        lhs: the function that is applied last: A in A(B(i)).
        rhs: the function that is applied first: a layout, or a by-mode tiler (a tuple of sizes, layouts and `_`).
        strict: also check that R(i) == lhs(rhs(i)) for every i; C++ does not check this.
    Raises:
        StaticAssertError: a condition of C++ fails; the message has the condition, the modes and the values.
        CompositionMismatchError: `strict` is set and the result is another function.

    >>> print(composition(Layout((Int(4), Int(8)), (Int(8), Int(1))), Layout(Int(8), Int(2))))
    (_2,_4):(_16,_1)
    >>> print(composition(Layout((Int(4), Int(8))), (Int(2), None)))
    (_2,_8):(_1,_4)
    """
    if type(rhs) is tuple:
        check_depth(rhs)
    if strict is not False:
        expect(strict, bool, "strict")
    if inner:
        if len(inner) != 1 or not hasattr(type(lhs), "_compose_with"):
            raise InvalidTypeError(
                "composition takes two operands, or (outer, offset, inner) with a layout or a swizzle as outer"
            )
        return lhs._compose_with(inner[0], rhs)  # type: ignore[arg-type, union-attr]
    result: LayoutLike | Merges
    if type(lhs) is Layout and type(rhs) is Layout:
        result = compose_layouts(lhs, rhs)
    elif type(lhs) is Layout:
        after = hasattr(type(rhs), "_composed_after")
        result = rhs._composed_after(lhs) if after else compose_tiler(lhs, rhs)  # type: ignore[union-attr]
    elif hasattr(type(lhs), "_compose_with"):
        result = lhs._compose_with(rhs, None)  # type: ignore[union-attr]
    else:
        return apply_to_inner(composition, lhs, rhs, strict=strict)
    if strict:
        _check(result, lhs, rhs)  # type: ignore[arg-type]
    return result


@of_layouts
def with_shape(layout: Layout, *shape: Shape) -> Layout:
    """Return the same elements with another shape: the layout, composed with a compact layout of that shape.

    C++'s `layout.with_shape(shape)`.

    Args:
        shape: one shape, or one size or shape for each mode.
    Raises:
        StaticAssertError: `composition` refuses the shape.

    >>> print(with_shape(Layout((Int(4), (Int(2), Int(3))), (Int(6), (Int(1), Int(2)))), Int(8), Int(3)))
    ((_4,_2),_3):((_6,_1),_2)
    """
    return composition(layout, Layout(shape[0] if len(shape) == 1 else shape))


def _check(result: Layout, lhs: Layout, rhs: Tiler) -> None:
    """Check element by element that the result of a composition equals lhs(rhs(i))."""
    if isinstance(rhs, Layout) or hasattr(type(rhs), "_composed_after"):
        domain = lhs if hasattr(type(rhs), "yyy_mask") else rhs  # a swizzle has no domain
        if hasattr(type(domain), "yyy_mask"):
            return  # two swizzles: their masks merge to the function, or make_swizzle refuses them
        facts = {"A": lhs, "B": rhs, "R (as C++ computes it)": result}
        count, have = (as_python_int(product_of(shape_of(x))) for x in (domain, result))
        if have != count:  # run-time sizes that do not divide: C++ drops the rest
            raise CompositionMismatchError(
                f"the composition has {have} elements; must have {count}, like the right layout", facts
            )
        if count > MAX_STRICT:
            raise LayoutError(
                f"the composition has {count} elements; strict=True compares at most {MAX_STRICT}", {"A": lhs, "B": rhs}
            )
        for i in range(count):
            want, got = lhs(rhs(i)), result(i)  # type: ignore[operator, misc]
            if want != got:
                first = f"R({i}) = {got}, A(B({i})) = {want}"
                raise CompositionMismatchError(f"composition is not A(B(i)): {first}", facts, difference=first)
    elif type(rhs) is tuple:
        for i, t in enumerate(rhs):
            _check(result[i], lhs[i], t)
    elif not is_underscore(rhs):
        _check(result, lhs, Layout(rhs, Int(1)))
