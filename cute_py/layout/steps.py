"""What an operation did, step by step: frozen records with the values, and each a sentence.

    for step in steps(composition, A, B): print(step)

The steps are made by the same rules as the operation, beside it: the last one's `result` is the operation's own
result, and a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cute_py.argument_checks import expect
from cute_py.errors import InvalidTypeError, given
from cute_py.layout.coalesce import coalesce, coalesced, coalesced_beyond, coalesced_shape, without_zeros
from cute_py.layout.complement import complement
from cute_py.layout.composition import composition, tiler_text
from cute_py.layout.coprofile import cosize
from cute_py.layout.int_tuple import ceil_div_leaf, ceil_div_of, compact_left, size
from cute_py.layout.inverse import left_inverse, right_inverse
from cute_py.layout.layout import Layout, make, make_layout
from cute_py.layout.leaf import (
    Tree,
    internal,
    leaf_text,
    magnitude,
    minimum,
    public,
    same,
    sign,
    times,
    tree_text,
    trunc_div,
    value_of,
)
from cute_py.layout.tiling import (
    blocked_product,
    flat_divide,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from cute_py.layout.trees import is_underscore, leaves, modes


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an operation.

    `rule` names it ('merge', 'step over', 'walk', ...), `text` says it with its numbers, `values` holds the numbers,
    `result` is the layout or mode that it gives, if any.
    """

    rule: str
    text: str
    values: Mapping[str, Any]
    result: Any = None

    def __post_init__(self) -> None:
        expect(self.rule, str, "the rule of a step")
        expect(self.text, str, "the text of a step")

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def _step(rule: str, text: str, result: Any = None, /, **values: Any) -> Step:
    return Step(rule, text, MappingProxyType(values), result)


def _mode(shape: Tree, stride: Tree) -> str:
    return f"{tree_text(shape)}:{tree_text(stride)}"


def _coalesce_steps(layout: Layout) -> list[Step]:
    shapes, strides = leaves(layout._shape), leaves(layout._stride)
    out: list[Step] = []
    if not shapes:
        return [_step("result", "no modes: 1:0", coalesce(layout))]
    size_, step = shapes[-1], strides[-1]
    kept = 0
    for s, d in zip(reversed(shapes[:-1]), reversed(strides[:-1]), strict=True):
        here, there = _mode(s, d), _mode(size_, step)
        if s == 1:
            out.append(_step("drop", f"{here} has one element and moves nothing", mode=here))
        elif size_ == 1 and not kept:
            out.append(_step("drop", f"{there} has one element and moves nothing", mode=there))
            size_, step = s, d
        elif type(size_) is int and type(s) is int and same(times(s, d), step):
            merged = _mode(s * size_, d)
            text = f"{here} and {there} are one mode {merged}: {leaf_text(s)} * {leaf_text(d)} = {leaf_text(step)}"
            out.append(_step("merge", text, front=here, back=there, merged=merged))
            size_, step = s * size_, d
        else:
            product = times(s, d)
            known = type(s) is int and type(size_) is int and type(product) is int
            why = f"{leaf_text(s)} * {leaf_text(d)} = {leaf_text(product)} is not {leaf_text(step)}"
            if not known:
                why = "run-time numbers are not known to be contiguous"
            out.append(_step("keep apart", f"{here} and {there}: {why}", front=here, back=there))
            size_, step, kept = s, d, kept + 1
    result = coalesce(layout)
    return [*out, _step("result", f"{layout} is {result}", result, layout=str(layout))]


def _compose_mode_steps(left: tuple[Tree, Tree], shape: Any, stride: Any) -> list[Step]:
    """One integer mode shape:stride through the flat left side."""
    mode = _mode(shape, stride)
    shapes, strides = modes(left[0]), modes(left[1])
    if type(stride) is int and stride == 0:
        return [_step("stay", f"{mode} does not move: stride _0 stays", size=public(shape), step=public(stride))]
    if len(shapes) == 1:
        return [
            _step(
                "scale",
                f"{mode} walks along the only mode {_mode(shapes[0], strides[0])}: "
                f"stride {leaf_text(stride)} * {leaf_text(strides[0])} = {leaf_text(times(stride, strides[0]))}",
                size=public(shape),
                step=public(stride),
            )
        ]
    out: list[Step] = []
    for i, (have, d) in enumerate(zip(shapes[:-1], strides[:-1], strict=True)):
        here = _mode(have, d)
        over = magnitude(stride)
        left_here = ceil_div_leaf(have, over)
        following = times(sign(stride), ceil_div_leaf(over, have))
        values = {
            "mode": i,
            "size": public(have),
            "step": public(stride),
            "left": public(left_here),
            "next step": public(following),
        }
        if value_of(left_here) == 1 and type(left_here) is int:
            text = f"step {leaf_text(stride)} passes mode {i} ({here}) whole; step {leaf_text(following)} remains"
            out.append(_step("step over", text, **values))
        elif shape == 1:
            out.append(_step("done", f"one element is left to take; mode {i} ({here}) is passed", **values))
        else:
            take = minimum(left_here, shape)
            rest = trunc_div(shape, take)
            condition = f"{leaf_text(shape)} % {leaf_text(take)} = 0 (Shape Divisibility Condition)"
            text = (
                f"step {leaf_text(stride)} leaves {leaf_text(left_here)} of mode {i} ({here}); take {leaf_text(take)} "
                f"with stride {leaf_text(times(stride, d))}, {leaf_text(rest)} remain; {condition}"
            )
            out.append(_step("walk", text, **values, taken=public(take), remain=public(rest)))
            shape = rest
        stride = following
    if not (type(shape) is int and shape == 1 and out and any(s.rule == "walk" for s in out)):
        last = len(shapes) - 1
        text = (
            f"mode {last} ({_mode(shapes[-1], strides[-1])}) takes the rest: "
            f"{leaf_text(shape)} with stride {leaf_text(times(stride, strides[-1]))}"
        )
        out.append(_step("rest", text, mode=last, size=public(shape), step=public(stride)))
    return out


def _composition_steps(left: Any, right: Any) -> list[Step]:
    if not isinstance(left, Layout):
        inner = getattr(left, "domain", None)
        if inner is None:
            result = composition(left, right)
            return [_step("result", f"{left} o {right} is kept as it is: {result}", result)]
        below = _composition_steps(inner, right)[:-1]
        result = composition(left, right)
        text = f"only the layout that has the domain, {inner}, is composed"
        return [_step("domain", text), *below, _step("result", f"{result}", result)]
    result = composition(left, right)
    if type(right) is tuple:
        out: list[Step] = []
        for i, t in enumerate(right):
            out.append(_step("by mode", f"mode {i} ({left[i]}) is composed with {tiler_text(t)}", mode=i))
            out += _composition_steps(left[i], t)[:-1]
        dropped = len(modes(left._shape)) - len(right)
        if dropped:
            out.append(_step("truncate", f"the tiler has {len(right)} modes; {dropped} more of the layout are dropped"))
        return [*out, _step("result", f"{left} o {tiler_text(right)} = {result}", result)]
    if is_underscore(right):
        return [_step("result", f"_ keeps {left} whole", result)]
    rhs = right if isinstance(right, Layout) else Layout(right, public(1))
    flat = coalesced_beyond(left._shape, left._stride)
    out = [_step("coalesce", f"the left side is {_mode(*flat)} when made flat", make(*flat))]
    if any(getattr(d, "modes", None) for d in leaves(rhs._stride)):
        text = "each basis stride v@i of the right side walks with step v along mode i of the left side"
        return [_step("basis", text), _step("result", f"{left} o {rhs} = {result}", result)]
    for s, d in zip(leaves(rhs._shape), leaves(rhs._stride), strict=True):
        out.append(_step("mode", f"{_mode(s, d)} of the right side", size=public(s), step=public(d)))
        out += _compose_mode_steps(flat, s, d)
    return [*out, _step("result", f"{left} o {rhs} = {result}", result)]


def _complement_steps(layout: Layout, cotarget: Any = None) -> list[Step]:
    result = complement(layout, cotarget)
    shape, stride = coalesced(without_zeros(layout._shape, layout._stride), layout._stride)
    target = cosize(layout) if cotarget is None else size(cotarget)
    out = [_step("filter", f"{layout} moves like {_mode(shape, stride)}", make(shape, stride))]
    if any(getattr(d, "modes", None) for d in leaves(stride)):
        return [*out, _step("result", f"axis by axis, up to {target}: {result}", result)]
    pairs = list(zip(modes(shape), modes(stride), strict=True))
    if pairs == [(1, 0)]:
        return [*out, _step("result", f"nothing moves: all of {target} is left, {result}", result)]
    end: Any = 1
    while pairs:
        i = min(range(len(pairs)), key=lambda k: value_of(pairs[k][1]))
        s, d = pairs.pop(i)
        gap = trunc_div(d, end)
        text = f"before stride {leaf_text(d)}, {leaf_text(gap)} copies fit at stride {leaf_text(end)}"
        out.append(_step("gap", text, size=public(gap), step=public(end), mode=_mode(s, d)))
        end = d * s
    whole = internal(target)
    rest = coalesced_shape(ceil_div_of(whole, end))
    tail = compact_left(rest, end)[0]
    text = f"from {leaf_text(end)} up to {tree_text(whole)}: {_mode(rest, tail)}"
    out.append(_step("tail", text, size=public(rest), step=public(tail)))
    return [*out, _step("result", f"complement({layout}, {target}) = {result}", result)]


def _inverse_steps(layout: Layout, name: str, result: Layout) -> list[Step]:
    shape, stride = coalesced(layout._shape, layout._stride)
    out = [_step("coalesce", f"{layout} is {_mode(shape, stride)} when made flat", make(shape, stride))]
    shapes, strides = modes(shape), modes(stride)
    starts, n = [], 1
    for s in shapes:
        starts.append(n)
        n = n * s
    reached: Any = 1
    for i in sorted([i for i, d in enumerate(strides) if type(d) is int], key=lambda k: strides[k]):
        here, d = _mode(shapes[i], strides[i]), strides[i]
        values = {"mode": i, "stride": public(d), "reached": public(reached), "index": public(starts[i])}
        if name == "right_inverse":
            if type(reached) is int and d == reached:
                text = f"mode {here} goes on at offset {leaf_text(d)}; it starts at index {leaf_text(starts[i])}"
                out.append(_step("follow", text, **values))
                reached = shapes[i] * reached
            else:
                text = f"mode {here} has stride {leaf_text(d)}, the offsets so far end at {leaf_text(reached)}"
                out.append(_step("skip", text, **values))
        elif d == 0:
            out.append(_step("skip", f"mode {here} does not move", **values))
        else:
            gap = trunc_div(d, reached)
            text = (
                f"mode {here}: {leaf_text(gap)} offsets lie below stride {leaf_text(d)}; "
                f"it starts at index {leaf_text(starts[i])} (Left inverse divisibility condition holds)"
            )
            out.append(_step("follow", text, **values, gap=public(gap)))
            reached = reached * gap
    return [*out, _step("result", f"{name}({layout}) = {result}", result)]


def _divide_steps(operation: Any, layout: Any, tiler: Any) -> list[Step]:
    result = operation(layout, tiler)
    out: list[Step] = []
    if isinstance(layout, Layout):
        out = _logical_divide_steps(layout, tiler)
        logical = logical_divide(layout, tiler)
        if operation is not logical_divide:
            out.append(_step("gather", f"the tile modes and the rest modes of {logical} are gathered", logical))
    return [*out, _step("result", f"{operation.__name__}({layout}, {tiler_text(tiler)}) = {result}", result)]


def _logical_divide_steps(layout: Layout, tiler: Any) -> list[Step]:
    if type(tiler) is tuple:
        out: list[Step] = []
        for i, t in enumerate(tiler):
            out.append(_step("by mode", f"mode {i} ({layout[i]}) is divided by {tiler_text(t)}", mode=i))
            out += _logical_divide_steps(layout[i], t)
        return out
    if is_underscore(tiler):
        return [_step("keep", f"_ keeps {layout} whole", layout)]
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    whole = coalesced(layout._shape, layout._stride)[0]
    rest = complement(tile, public(whole))
    return [
        _step("tile", f"the tile is {tile}", tile),
        _step("complement", f"of {tree_text(whole)} elements the tile leaves {rest}: from tile to tile", rest),
        _step(
            "compose",
            f"{layout} o ({tile}, {rest})",
            composition(layout, make_layout(tile, rest)),
        ),
    ]


def _product_steps(operation: Any, block: Any, tiler: Any) -> list[Step]:
    result = operation(block, tiler)
    out: list[Step] = []
    if isinstance(block, Layout) and isinstance(tiler, Layout) and operation not in (blocked_product, raked_product):
        target = size(block) * cosize(tiler)
        rest = complement(block, target)
        text = f"copies of {block} start at {rest}, for {size(block)} * {cosize(tiler)} = {target} offsets"
        out.append(_step("complement", text, rest))
        copies = composition(rest, tiler)
        out.append(_step("compose", f"in the order of the tiler: {rest} o {tiler} = {copies}", copies))
    elif operation in (blocked_product, raked_product):
        first = "the block's" if operation is blocked_product else "the tiler's"
        text = f"logical product of both at one rank, then mode i joins mode i of block and tiler, {first} first"
        out.append(_step("join", text))
    return [*out, _step("result", f"{operation.__name__}({block}, {tiler_text(tiler)}) = {result}", result)]


_DIVIDES = (logical_divide, zipped_divide, tiled_divide, flat_divide)
_PRODUCTS = (logical_product, zipped_product, tiled_product, flat_product, blocked_product, raked_product)


def explained() -> tuple[Callable[..., Any], ...]:
    """The operations that `steps` can tell about.

    >>> [operation.__name__ for operation in explained()][:3]
    ['coalesce', 'composition', 'complement']
    """
    return (coalesce, composition, complement, right_inverse, left_inverse, *_DIVIDES, *_PRODUCTS)


def steps(operation: Callable[..., Any], *operands: Any) -> tuple[Step, ...]:
    """The steps of `operation(*operands)`; the last one's `result` is its result.

    Raises:
        InvalidTypeError: an operation without steps. What the operation itself refuses, it refuses here too.

    >>> for step in steps(coalesce, Layout((Int(2), (Int(1), Int(6))), (Int(1), (Int(6), Int(2))))):
    ...     print(step)
    drop: _1:_6 has one element and moves nothing
    merge: _2:_1 and _6:_2 are one mode _12:_1: _2 * _1 = _2
    result: (_2,(_1,_6)):(_1,(_6,_2)) is _12:_1
    """
    if not callable(operation) or operation not in explained():
        name = getattr(operation, "__name__", given(operation))
        raise InvalidTypeError(
            f"no steps are known of {name}", {"explained": ", ".join(o.__name__ for o in explained())}
        )
    if not operands:
        raise InvalidTypeError(f"{operation.__name__} needs operands")
    if operation is coalesce and len(operands) == 1 and isinstance(operands[0], Layout):
        return tuple(_coalesce_steps(*operands))
    if operation is composition:
        return tuple(_composition_steps(*operands))
    if operation is complement and isinstance(operands[0], Layout):
        return tuple(_complement_steps(*operands))
    if operation in (right_inverse, left_inverse) and isinstance(operands[0], Layout):
        return tuple(_inverse_steps(operands[0], operation.__name__, operation(operands[0])))
    if operation in _DIVIDES:
        return tuple(_divide_steps(operation, *operands))
    if operation in _PRODUCTS:
        return tuple(_product_steps(operation, *operands))
    result = operation(*operands)
    return (_step("result", f"{operation.__name__} of {', '.join(map(given, operands))} = {result}", result),)
