"""Composition of layouts: R = A o B, so that R(i) = A(B(i)).

One integer mode s:d of B at a time. A is made flat first. Then d is divided through A's shape from the left (the part
of A that B steps over), and s is counted through what is left of it (the part of A that B walks along):

    (6,2):(8,2) o 4:3      step over 3 of the 6, walk 2 of the remaining 2, then 2 of the next 2
                        -> (2,2):(24,2)

Each division has a condition, which C++ asserts where both numbers are static: the stride must divide or be divided
by the mode that it steps over ('Stride Divisibility Condition'), the size must be divided by what it takes of a mode
('Shape Divisibility Condition'). They are not sufficient: composition((4,6,8):(2,3,5), 6:3) passes both and is not
A(B(i)) everywhere. `strict=True` checks the function itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, overload

from cute_py.argument_checks import expect
from cute_py.errors import CompositionMismatchError, InvalidTypeError, LayoutError, StaticAssertError, given
from cute_py.layout.arguments import LayoutLike, Leaf, Tiler, Tree, Value
from cute_py.layout.coalesce import coalesce_x_by, coalesced
from cute_py.layout.int_tuple import product_of
from cute_py.layout.known import tiled_numbers
from cute_py.layout.layout import (
    Layout,
    Thing,
    apply_to_inner,
    coprofile_of,
    in_numbers,
    joined,
    make,
    modes_of,
    shape_of,
)
from cute_py.layout.leaf import (
    Dynamic,
    Int,
    Integer,
    Recorder,
    as_python_int,
    divides,
    divides_or_exceeds,
    internal_leaf,
    is_short,
    leaf_text,
    least,
    mode_text,
    quotient,
    sign,
    times,
    tree_text,
    value_of,
)
from cute_py.layout.trees import at, check_depth, is_underscore, modes, unwrap

if TYPE_CHECKING:
    import sympy

Notes: TypeAlias = "dict[sympy.Basic, None]"
"""Conditions on symbols, each once, in the order in which they came up."""


def compose_trees(
    lhs_shape: Tree, lhs_stride: Tree, shape: Tree, stride: Tree, notes: Notes, record: Recorder | None = None
) -> tuple[Tree, Tree]:
    """The composition of a flattened left side with shape:stride; conditions on symbols are appended to `notes`."""
    if type(shape) is tuple:  # C++: a tuple on the right; composition distributes over its modes
        steps = modes(stride)
        pairs = [compose_trees(lhs_shape, lhs_stride, s, steps[i], notes, record) for i, s in enumerate(shape)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    path = getattr(stride, "modes", None)
    if path is not None:  # C++: is_scaled_basis; compose with the mode of A that it points at
        value = internal_leaf(stride.value)  # type: ignore[union-attr]
        return compose_trees(at(lhs_shape, path), at(lhs_stride, path), shape, value, notes)
    if record:
        record("mode", shape, stride)
    if type(stride) is int and stride == 0:  # C++: is_constant<0, RStride>; nothing moves
        if record:
            record("stay", shape, stride)
        return shape, 0
    if type(lhs_shape) is not tuple:  # C++: is_integral<LShape>; along a single mode only the stride is scaled
        if record:
            record("scale", shape, stride, lhs_shape, lhs_stride)
        return shape, times(stride, lhs_stride)
    if not isinstance(stride, (int, Dynamic)):
        raise InvalidTypeError(f"can't compose with the stride {stride}; must be an integer or a basis element")
    return _walk(lhs_shape, modes(lhs_stride), shape, stride, notes, record)  # type: ignore[arg-type]


def _walk(
    lhs_shape: tuple[Tree, ...],
    lhs_stride: tuple[Tree, ...],
    size: Integer,
    step: Integer,
    notes: Notes,
    record: Recorder | None,
) -> tuple[Tree, Tree]:
    """C++'s last branch: a flat left side of rank > 1, an integer mode size:step.

    Numbers and symbols are held without wrapper, each beside a flag for static. A condition on static numbers
    is refused like C++'s static_assert; on symbols it becomes an assumption, unless it is known to fail; on run-time
    numbers C++ has none.
    """
    out_shape: list[Tree] = []
    out_stride: list[Tree] = []
    n_static, d_static = type(size) is int, type(step) is int
    n: Any = size.value if isinstance(size, Dynamic) else size
    d: Any = step.value if isinstance(step, Dynamic) else step
    leaf: Any
    have: Any
    left: Any
    rest: Any
    over, direction = (d, 1) if type(d) is int and d > 0 else (abs(d), value_of(sign(step)))
    whole, taken = n, 1
    last = len(lhs_shape) - 1
    for i in range(last):
        leaf = lhs_shape[i]
        static = type(leaf) is int
        have = leaf if static else leaf.value
        static = static and d_static
        if static and d >= have != 0 and d % have:  # C++: static_assert
            _refuse_stride(d, have, i, lhs_shape, lhs_stride)
        # C++'s next_shape and next_stride: what steps of d leave of this mode, and the step in units of the mode.
        if type(have) is int and type(over) is int and have > 0 and over > 0:
            left, over = -(-have // over), -(-over // have)
            following = over * direction
        else:
            if type(have) is type(n) is int and have == 0:
                raise LayoutError("can't compose over a mode of size 0", {"left": tree_text(lhs_shape)})
            if not isinstance(have, int) or not isinstance(d, int):
                if have == 0:
                    raise LayoutError("division by zero", {"dividend": d})
                _note(divides_or_exceeds(have, d), notes, "Stride Divisibility Condition")
            left, over = quotient(have + over - 1, over), quotient(over + have - 1, have)
            following = over * direction
            over = abs(following) if is_short(following) else over
        if (static and left == 1) or (n_static and n == 1):  # C++: is_constant<1> of either; the mode is passed
            if record:
                rule = "step over" if static and left == 1 else "done"
                record(rule, i, leaf, lhs_stride[i], _held(d, d_static), _held(left, static), _held(following, static))
            d, d_static = following, static
            continue
        # C++'s new_shape: min(next_shape, rest_shape) elements lie in this mode, the rest beyond it.
        taken = taken * left
        take_static = static and n_static
        if type(left) is int and type(n) is int:
            take = left if left <= n else n
            if n_static and n == 0 and not take_static:
                rest = 0  # C++: a static 0 divided by a run-time number
            else:
                if take == 0 or (take_static and n % take):  # C++: static_assert
                    _refuse_size(n, take, i, lhs_shape, lhs_stride)
                rest = n // take if take > 0 else quotient(n, take)
        else:
            take = least(left, n)
            if take == 0:
                raise LayoutError("division by zero", {"dividend": n})
            _note(divides(take, n), notes, "Shape Divisibility Condition")
            # Long expressions: the same number, 1 where `taken` exceeds it, without what every mode before left.
            rest = quotient(n, take) if is_short(n, take) else quotient(whole, least(taken, whole))
            rest = 0 if n_static and n == 0 else rest
        step_here = d if d_static else Dynamic(d)
        out_shape.append(take if take_static else Dynamic(take))
        out_stride.append(times(step_here, lhs_stride[i]))
        rest_static = take_static or (n_static and n == 0)
        if record:
            numbers = (step_here, _held(left, static), _held(following, static))
            remaining = (_held(n, n_static), out_shape[-1], _held(rest, rest_static))
            record("walk", i, leaf, lhs_stride[i], *numbers, *remaining)
        n, n_static, d, d_static = rest, rest_static, following, static
    if out_shape and n_static and n == 1:  # C++: is_constant<1, rest_shape>; the last mode is not reached
        return unwrap(out_shape), unwrap(out_stride)
    size, step = _held(n, n_static), _held(d, d_static)
    if record:
        record("rest", last, lhs_shape[last], lhs_stride[last], step, size)
    tail = times(step, lhs_stride[last])
    return ((*out_shape, size), (*out_stride, tail)) if out_shape else (size, tail)


def _held(number: Value, static: bool) -> Integer:
    """A bare number or symbol as an internal leaf."""
    return number if static else Dynamic(number)


def _refuse_stride(step: int, have: int, mode: int, shape: Tree, stride: Tree) -> None:
    where = f"{leaf_text(have)} (mode {mode}) of the left side {mode_text(shape, stride)}"
    facts = {"stride": f"{leaf_text(step)} of the right side", "mode": where}
    raise StaticAssertError("Stride Divisibility Condition", facts)


def _refuse_size(size: int, take: int, mode: int, shape: Tree, stride: Tree) -> None:
    where = f"{leaf_text(take)} of mode {mode} of the left side {mode_text(shape, stride)}"
    facts = {"size": f"{leaf_text(size)} left of the right side", "takes": where}
    raise StaticAssertError("Shape Divisibility Condition", facts)


def _note(condition: sympy.Basic, notes: Notes, name: str) -> None:
    if condition == False:  # noqa: E712  (sympy's own, which is no Python False)
        raise StaticAssertError(name, {"condition": "never holds for these symbols"})
    if condition != True:  # noqa: E712
        notes[condition] = None


def compose_layouts(lhs: Layout, rhs: Layout, record: Recorder | None = None) -> Layout:
    """A o B for two plain layouts, as C++ computes it."""
    if rhs._assumptions is None and not record and (found := in_numbers(lhs, tiled_numbers, rhs)) is not None:
        return found
    shape, stride = rhs._inner or rhs._trees()
    flat = coalesce_x_by(coprofile_of(stride), *(lhs._inner or lhs._trees()))
    notes: Notes = {}
    if lhs._assumptions or rhs._assumptions:
        notes = dict.fromkeys((*lhs.assumptions, *rhs.assumptions))
    shape, stride = compose_trees(*flat, shape, stride, notes, record)
    return make(shape, stride, tuple(notes))


MAX_STRICT = 1 << 16
"""Elements that `strict=True` compares, one by one."""


def tiler_text(tiler: Tiler) -> str:
    """A tiler as it prints: tuples of sizes, layouts and `_`."""
    if type(tiler) is tuple:
        return "(" + ",".join([tiler_text(t) for t in tiler]) + ")"
    return "_" if is_underscore(tiler) else str(tiler)


def compose_tiler(lhs: Layout, tiler: Tiler) -> Layout:
    """A layout composed by mode with a tiler: a tuple of tilers (shorter tilers drop the other modes), a size, a
    layout, or `_` for the mode as it is."""
    if (found := in_numbers(lhs, tiled_numbers, tiler)) is not None:
        return found
    if isinstance(tiler, Layout):
        return compose_layouts(lhs, tiler)
    if type(tiler) is tuple:
        parts = modes_of(lhs)
        if len(tiler) > len(parts):
            raise StaticAssertError("tuple_size<Tiler>::value <= rank", {"tiler": tiler_text(tiler), "layout": lhs})
        return joined([compose_tiler(part, t) for part, t in zip(parts, tiler, strict=False)])
    if is_underscore(tiler):
        return lhs
    size = internal_leaf(tiler)
    if type(size) not in (int, Dynamic):
        raise InvalidTypeError(f"a tiler holds sizes, layouts and `_`, got {given(tiler)}", {"layout": lhs})
    notes = dict.fromkeys(lhs.assumptions)
    shape, stride = compose_trees(*coalesced(*(lhs._inner or lhs._trees()), True), size, 1, notes)
    return make(shape, stride, tuple(notes))


Composed = TypeVar("Composed", bound=LayoutLike, covariant=True)


class Merges(Protocol):
    """A swizzle: two of them are one."""

    def _merged(self: Merged, other: Merged, /) -> Merged: ...


Merged = TypeVar("Merged", bound=Merges)


class ComposesWith(Protocol[Composed]):
    """A swizzle or a composed layout: what knows its own composition."""

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
    """`lhs o rhs`: a layout, a swizzle, a composed layout or a tensor, composed with a layout or with a tiler.

    With three arguments, the composed layout `composition(outer, offset, inner)` as in C++.

    Args:
        lhs: what is read through.
        rhs: what selects from it, a layout or a by-mode tiler (tuple of sizes, layouts, `_`).
        strict: also check R(i) == lhs(rhs(i)) for every i, which C++ does not.
    Raises:
        StaticAssertError: with C++'s condition, the modes and the values.
        CompositionMismatchError: strict, and the result is another function.

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
        if len(inner) != 1 or not hasattr(lhs, "_compose_with"):
            raise InvalidTypeError(
                "composition takes two operands, or (outer, offset, inner) whose outer is a layout or a swizzle"
            )
        return lhs._compose_with(inner[0], rhs)  # type: ignore[arg-type]
    result: LayoutLike | Merges
    if type(lhs) is Layout and type(rhs) is Layout:
        result = compose_layouts(lhs, rhs)
    elif type(lhs) is Layout:
        after = hasattr(rhs, "_composed_after")
        result = rhs._composed_after(lhs) if after else compose_tiler(lhs, rhs)  # type: ignore[union-attr]
    elif hasattr(lhs, "_compose_with"):
        result = lhs._compose_with(rhs, None)
    else:
        return apply_to_inner(composition, lhs, rhs, strict=strict)
    if strict:
        _check(result, lhs, rhs)  # type: ignore[arg-type]
    return result


def _check(result: Layout, lhs: Layout, rhs: Tiler) -> None:
    """That the result is the function, element by element: of plain layouts, swizzles and composed ones."""
    if isinstance(rhs, Layout) or hasattr(rhs, "_composed_after"):
        domain = lhs if hasattr(rhs, "yyy_mask") else rhs  # a swizzle has none of its own
        if hasattr(domain, "yyy_mask"):
            return  # two swizzles: their masks merge to the function, or make_swizzle refuses them
        facts = {"A": lhs, "B": rhs, "R (as C++ computes it)": result}
        count, have = (as_python_int(product_of(shape_of(x))) for x in (domain, result))
        if have != count:  # run-time sizes that do not divide: C++ drops the rest
            raise CompositionMismatchError(
                f"composition has {have} elements; must have the {count} of the right side", facts
            )
        if count > MAX_STRICT:
            raise LayoutError(
                f"strict=True compares {count} elements; must be at most {MAX_STRICT}", {"A": lhs, "B": rhs}
            )
        for i in range(count):
            want, got = lhs(rhs(i)), result(i)  # type: ignore[operator, misc]
            if want != got:
                raise CompositionMismatchError(f"composition is not A(B(i)): R({i}) = {got}, A(B({i})) = {want}", facts)
    elif type(rhs) is tuple:
        for i, t in enumerate(rhs):
            _check(result[i], lhs[i], t)
    elif not is_underscore(rhs):
        _check(result, lhs, Layout(rhs, Int(1)))
