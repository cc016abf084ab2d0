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

from typing import Any, TypeAlias

from cute_py.argument_checks import expect
from cute_py.errors import CompositionMismatchError, InvalidTypeError, LayoutError, StaticAssertError, given
from cute_py.layout.coalesce import coalesced_beyond, coalesced_beyond_by
from cute_py.layout.coprofile import coprofile_of
from cute_py.layout.int_tuple import as_python_int, ceil_div_leaf, crd2idx_of, product_of
from cute_py.layout.layout import Layout, joined, make, on_domain
from cute_py.layout.leaf import (
    Dynamic,
    Int,
    Tree,
    divides,
    divides_or_exceeds,
    internal_leaf,
    is_short,
    leaf_text,
    magnitude,
    minimum,
    public,
    sign,
    times,
    tree_text,
    trunc_div,
    value_of,
)
from cute_py.layout.trees import at, check_depth, is_underscore, modes, unwrap

Notes: TypeAlias = dict[Any, None]
"""Conditions on symbols, each once, in the order in which they came up."""


def compose_trees(lhs_shape: Tree, lhs_stride: Tree, shape: Tree, stride: Tree, notes: Notes) -> tuple[Tree, Tree]:
    """The composition of a flattened left side with shape:stride; conditions on symbols are appended to `notes`."""
    if type(shape) is tuple:
        pairs = [compose_trees(lhs_shape, lhs_stride, s, d, notes) for s, d in zip(shape, stride, strict=True)]
        return tuple([p[0] for p in pairs]), tuple([p[1] for p in pairs])
    path = getattr(stride, "modes", None)
    if path is not None:  # a basis element: compose with the mode of A that it points at
        value = internal_leaf(stride.value)
        return compose_trees(at(lhs_shape, path), at(lhs_stride, path), shape, value, notes)
    if type(stride) is int and stride == 0:
        return shape, 0
    if type(lhs_shape) is not tuple:
        return shape, times(stride, lhs_stride)
    if type(stride) not in (int, Dynamic):
        raise InvalidTypeError(f"can't compose with a stride that is no integer and no basis element: {stride}")
    return _walk(lhs_shape, lhs_stride, shape, stride, notes)


def _walk(lhs_shape: tuple[Any, ...], lhs_stride: Any, size: Any, step: Any, notes: Notes) -> tuple[Tree, Tree]:
    """The general case: a flat left side of rank > 1, an integer mode size:step.

    Numbers are held bare, each with a flag that says whether it is static; symbols take `_walk_symbols`.
    """
    out_shape: list[Any] = []
    out_stride: list[Any] = []
    size_static, step_static = type(size) is int, type(step) is int
    n = size if size_static else size.value
    d = step if step_static else step.value
    last = len(lhs_shape) - 1
    for i in range(last):
        leaf = lhs_shape[i]
        static = type(leaf) is int
        have = leaf if static else leaf.value
        if type(have) is not int or type(n) is not int or type(d) is not int:
            return _walk_symbols(lhs_shape, lhs_stride, size, step, notes)
        static = static and step_static
        if d > 0 and have > 0:
            if static and d >= have and d % have:
                _refuse_stride(d, have, i, lhs_shape, lhs_stride)
            left, following = -(-have // d), -(-d // have)
        elif have == 0:
            raise LayoutError("can't compose over a mode of size 0", {"left": tree_text(lhs_shape)})
        else:
            if static and d >= have and d % have:
                _refuse_stride(d, have, i, lhs_shape, lhs_stride)
            over = abs(d)
            left, following = ceil_div_leaf(have, over), ceil_div_leaf(over, have) * sign(d)
        if (static and left == 1) or (size_static and n == 1):
            d, step_static = following, static
            continue
        take, taken_static = (left if left <= n else n), static and size_static
        if take == 0 or (taken_static and n % take):
            _refuse_size(n, take, i, lhs_shape, lhs_stride)
        out_shape.append(take if taken_static else Dynamic(take))
        out_stride.append(times(d if step_static else Dynamic(d), lhs_stride[i]))
        n, size_static = trunc_div(n, take), taken_static or (size_static and n == 0)
        d, step_static = following, static
    tail = times(d if step_static else Dynamic(d), lhs_stride[last])
    if not out_shape:
        return size, tail
    if size_static and n == 1:
        return unwrap(out_shape), unwrap(out_stride)
    return (*out_shape, n if size_static else Dynamic(n)), (*out_stride, tail)


def _refuse_stride(step: int, have: int, mode: int, shape: Tree, stride: Tree) -> None:
    raise StaticAssertError(
        "Stride Divisibility Condition",
        {
            "stride": f"{leaf_text(step)} of the right side",
            "mode": f"{leaf_text(have)} (mode {mode}) of the left side {_text(shape, stride)}",
        },
    )


def _refuse_size(size: int, take: int, mode: int, shape: Tree, stride: Tree) -> None:
    raise StaticAssertError(
        "Shape Divisibility Condition",
        {
            "size": f"{leaf_text(size)} left of the right side",
            "takes": f"{leaf_text(take)} of mode {mode} of the left side {_text(shape, stride)}",
        },
    )


def _walk_symbols(lhs_shape: tuple[Any, ...], lhs_stride: Any, size: Any, step: Any, notes: Notes) -> tuple[Tree, Tree]:
    """`_walk` where a number is a symbol: what C++ asserts becomes an assumption, unless it is known to fail."""
    out_shape: list[Any] = []
    out_stride: list[Any] = []
    last = len(lhs_shape) - 1
    whole, taken = size, 1
    over = magnitude(step)
    for i in range(last):
        have = lhs_shape[i]
        if type(have) is int and type(step) is int and have and step % have and step >= have:
            _refuse_stride(step, have, i, lhs_shape, lhs_stride)
        _note_stride(step, have, notes)
        left, rest_of_step = ceil_div_leaf(have, over), ceil_div_leaf(over, have)
        following = rest_of_step * sign(step)
        over = magnitude(following) if is_short(value_of(following)) else rest_of_step
        if left == 1 or size == 1:
            step = following
            continue
        take = minimum(left, size)
        if type(take) is int and type(size) is int and (take == 0 or size % take):
            _refuse_size(size, take, i, lhs_shape, lhs_stride)
        _note_shape(size, take, notes)
        out_shape.append(take)
        out_stride.append(times(step, lhs_stride[i]))
        taken = taken * left
        if is_short(value_of(size), value_of(take)):
            size = trunc_div(size, take)
        else:  # the same number, 1 where `taken` exceeds the whole, without what every mode before left
            size = trunc_div(whole, minimum(taken, whole))
        step = following
    if not out_shape:
        return size, times(step, lhs_stride[last])
    if size == 1:
        return unwrap(out_shape), unwrap(out_stride)
    return (*out_shape, size), (*out_stride, times(step, lhs_stride[last]))


def _text(shape: Tree, stride: Tree) -> str:
    return f"{tree_text(shape)}:{tree_text(stride)}"


def _symbolic(*numbers: Any) -> bool:
    return any(not isinstance(value_of(n), int) for n in numbers)


def _note_stride(step: Any, have: Any, notes: Notes) -> None:
    if _symbolic(step, have):
        d, s = value_of(step), value_of(have)
        if s == 0:
            raise LayoutError("division by zero", {"dividend": d})
        _note(divides_or_exceeds(s, d), notes, "Stride Divisibility Condition")


def _note_shape(size: Any, take: Any, notes: Notes) -> None:
    if _symbolic(size, take):
        if value_of(take) == 0:
            raise LayoutError("division by zero", {"dividend": value_of(size)})
        _note(divides(value_of(take), value_of(size)), notes, "Shape Divisibility Condition")


def _note(condition: Any, notes: Notes, name: str) -> None:
    if condition == False:  # noqa: E712  (sympy's own, which is no Python False)
        raise StaticAssertError(name, {"condition": "never holds for these symbols"})
    if condition != True:  # noqa: E712
        notes[condition] = None


def compose_layouts(lhs: Layout, rhs: Layout) -> Layout:
    """A o B for two plain layouts, as C++ computes it."""
    profile = coprofile_of(rhs._stride)
    if profile == 0:
        shape, stride = coalesced_beyond(lhs._shape, lhs._stride)
    else:
        shape, stride = coalesced_beyond_by(lhs._shape, lhs._stride, profile)
    notes = dict.fromkeys((*lhs._assumptions, *rhs._assumptions))
    shape, stride = compose_trees(shape, stride, rhs._shape, rhs._stride, notes)
    return make(shape, stride, tuple(notes))


MAX_STRICT = 1 << 16
"""Elements that `strict=True` compares, one by one."""


def tiler_text(tiler: Any) -> str:
    """A tiler as it prints: tuples of sizes, layouts and `_`."""
    if type(tiler) is tuple:
        return "(" + ",".join([tiler_text(t) for t in tiler]) + ")"
    return "_" if is_underscore(tiler) else str(tiler)


def compose_tiler(lhs: Layout, tiler: Any) -> Layout:
    """A layout composed by mode with a tiler: a tuple of tilers (shorter tilers drop the other modes), a size, a
    layout, or `_` for the whole mode."""
    if isinstance(tiler, Layout):
        return compose_layouts(lhs, tiler)
    if type(tiler) is tuple:
        rank = len(modes(lhs._shape))
        if len(tiler) > rank:
            raise StaticAssertError("tuple_size<Tiler>::value <= rank", {"tiler": tiler_text(tiler), "layout": lhs})
        return joined([compose_tiler(lhs[i], t) for i, t in enumerate(tiler)])
    if is_underscore(tiler):
        return lhs
    notes = dict.fromkeys(lhs._assumptions)
    size = internal_leaf(tiler)
    if type(size) not in (int, Dynamic):
        raise InvalidTypeError(f"a tiler holds sizes, layouts and `_`, got {given(tiler)}", {"layout": lhs})
    shape, stride = coalesced_beyond(lhs._shape, lhs._stride)
    shape, stride = compose_trees(shape, stride, size, 1, notes)
    return make(shape, stride, tuple(notes))


def composition(lhs: Any, rhs: Any, *rest: Any, strict: bool = False) -> Any:
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
    check_depth(rhs)
    expect(strict, bool, "strict")
    if rest:
        if len(rest) != 1 or not hasattr(lhs, "_compose_with"):
            raise InvalidTypeError(
                "composition takes two operands, or (outer, offset, inner) with a swizzle or a layout"
            )
        return lhs._compose_with(rest[0], rhs)
    if type(lhs) is Layout and type(rhs) is Layout:
        result = compose_layouts(lhs, rhs)
    elif type(lhs) is Layout:
        if hasattr(rhs, "_composed_after"):
            return rhs._composed_after(lhs)
        result = compose_tiler(lhs, rhs)
    elif hasattr(lhs, "_compose_with"):
        return lhs._compose_with(rhs, None)
    else:
        return on_domain(composition, lhs, rhs, strict=strict)
    if strict:
        _check(result, lhs, rhs)
    return result


def _check(result: Layout, lhs: Layout, rhs: Any) -> None:
    if isinstance(rhs, Layout):
        count, have = (as_python_int(product_of(x._shape)) for x in (rhs, result))
        if have != count:  # run-time sizes that do not divide: C++ drops the rest
            raise CompositionMismatchError(
                f"composition has {have} elements; must have the {count} of the right side",
                {"A": lhs, "B": rhs, "R (as C++ computes it)": result},
            )
        if count > MAX_STRICT:
            raise LayoutError(
                f"strict=True compares {count} elements; must be at most {MAX_STRICT}", {"A": lhs, "B": rhs}
            )
        for i in range(count):
            want = crd2idx_of(crd2idx_of(Dynamic(i), rhs._shape, rhs._stride), lhs._shape, lhs._stride)
            got = crd2idx_of(Dynamic(i), result._shape, result._stride)
            if str(public(want)).replace("_", "") != str(public(got)).replace("_", ""):  # static or not, one number
                raise CompositionMismatchError(
                    f"composition is not A(B(i)): R({i}) = {public(got)}, A(B({i})) = {public(want)}",
                    {"A": lhs, "B": rhs, "R (as C++ computes it)": result},
                )
    elif type(rhs) is tuple:
        for i, t in enumerate(rhs):
            _check(result[i], lhs[i], t)
    elif not is_underscore(rhs):
        _check(result, lhs, Layout(rhs, Int(1)))
