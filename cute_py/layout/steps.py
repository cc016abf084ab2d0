"""The steps of an operation, as frozen records, each with a sentence and its values.

    for step in steps(composition, A, B): print(step)

The operations supply the values: an operation returns the decisions of its loop with its result (see
`composed_by_steps`). This module makes a sentence of each decision; `_SENTENCES` has a function for each rule. Divides
and products, and operations with tilers, are split into modes as the operations split them. The `result` of the last
step is the result of the operation.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeAlias

from cute_py.argument_checks import expect, record_text
from cute_py.errors import InvalidTypeError, counted, given, integer_text
from cute_py.layout.arguments import IntTuple, LayoutLike, Leaf, Shaped, Tiler, Value
from cute_py.layout.coalesce import coalesce, coalesced, coalesced_by_steps, filtered
from cute_py.layout.composition import composed_by_steps, composition, tiler_text
from cute_py.layout.int_tuple import size
from cute_py.layout.inverse import left_inverse, left_inverse_by_steps, right_inverse, right_inverse_by_steps
from cute_py.layout.layout import Layout, coprofile_of, cosize, make, make_layout
from cute_py.layout.leaf import STATIC_ONE, Int, as_leaves, leaf_of, leaf_text, mode_text, times, tree_text
from cute_py.layout.tiling import (
    blocked_product,
    complement,
    complement_by_steps,
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
from cute_py.layout.trees import is_underscore, modes


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an operation.

    `rule` is the name of the step ('merge', 'step over', 'walk', ...), `text` a sentence with its numbers, and `values`
    a mapping of names to these numbers. `result` is the layout or mode that the step produces, or None.

    >>> Step("merge", "modes 0 and 1 merge", {"stride": 4})
    Step(rule='merge', text='modes 0 and 1 merge', values={'stride': 4}, result=None)
    """

    rule: str
    text: str
    values: Mapping[str, int | str]
    result: LayoutLike | None = None

    __repr__ = record_text

    def __post_init__(self) -> None:
        expect(self.rule, str, "the rule of a step")
        expect(self.text, str, "the text of a step")
        expect(self.values, Mapping, "the values of a step")  # type: ignore[type-abstract]

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


def _step(rule: str, text: str, result: LayoutLike | None = None, /, **values: int | str) -> Step:
    return Step(rule, text, MappingProxyType(values), result)


def _named(**values: Leaf) -> Numbers:
    """Map names to the numbers of a step, with blanks instead of underscores in the names."""
    return {name.replace("_", " "): x for name, x in values.items()}  # type: ignore[misc]


Numbers: TypeAlias = dict[str, int | str]

Operation: TypeAlias = Callable[..., LayoutLike]

Sentence: TypeAlias = tuple[str, Numbers]
"""The text of a step, and its numbers by name."""


def _drop(s: Leaf, d: Leaf) -> Sentence:
    return f"{mode_text(s, d)} has one element, so it is dropped", {"mode": mode_text(s, d)}


def _merge(s: Leaf, d: Leaf, size: Leaf, step: Leaf) -> Sentence:
    front, back, merged = mode_text(s, d), mode_text(size, step), mode_text(times(s, size), d)
    text = f"{front} and {back} merge into {merged}: {leaf_text(s)} * {leaf_text(d)} = {leaf_text(step)}"
    return text, {"front": front, "back": back, "merged": merged}


def _keep_apart(s: Leaf, d: Leaf, size: Leaf, step: Leaf) -> Sentence:
    front, back, product = mode_text(s, d), mode_text(size, step), times(s, d)
    why = f"{leaf_text(s)} * {leaf_text(d)} = {leaf_text(product)} is not {leaf_text(step)}"
    if not type(s) is type(size) is type(product) is Int:
        why = (
            "sizes or strides known only at run time can't be proved contiguous; cute.static(layout) makes them static"
        )
    return f"{front} and {back}: {why}", {"front": front, "back": back}


def _scale(size: Leaf, step: Leaf, s: Leaf, d: Leaf) -> Sentence:
    product = f"{leaf_text(step)} * {leaf_text(d)} = {leaf_text(times(step, d))}"
    text = f"{mode_text(size, step)} steps along the only mode {mode_text(s, d)} with stride {product}"
    return text, _named(size=size, step=step)


def _passed(text: str) -> Callable[..., Sentence]:
    """Return a function that makes the sentence for a mode of the left side that contributes nothing."""

    def sentence(i: int, s: Leaf, d: Leaf, step: Leaf, left: Value, following: Value, static: bool) -> Sentence:
        next_step = leaf_of(following, static)
        shown = text.format(leaf_text(step), i, mode_text(s, d), leaf_text(next_step))
        return shown, {"mode": i, **_named(size=s, step=step, left=leaf_of(left, static), next_step=next_step)}

    return sentence


def _walk(
    i: int,
    s: Leaf,
    d: Leaf,
    step: Leaf,
    left_here: Value,
    following: Value,
    static: bool,
    to_take: Value,
    to_take_static: bool,
    taken: Value,
    remaining: Value,
    remaining_static: bool,
) -> Sentence:
    left, next_step = leaf_of(left_here, static), leaf_of(following, static)
    size, take = leaf_of(to_take, to_take_static), leaf_of(taken, static and to_take_static)
    rest = leaf_of(remaining, remaining_static)
    left_over = to_take % taken if isinstance(to_take, int) and isinstance(taken, int) and taken else 0
    condition = f"= {left_over}; must be 0" if left_over else "= 0"
    text = (
        f"step {leaf_text(step)} leaves {leaf_text(left)} of mode {i} ({mode_text(s, d)}); take "
        f"{leaf_text(take)} with stride {leaf_text(times(step, d))}, so {leaf_text(rest)} remain; "
        f"{leaf_text(size)} % {leaf_text(take)} {condition} (Shape Divisibility Condition)"
    )
    numbers = _named(size=s, step=step, left=left, next_step=next_step, taken=take, remain=rest)
    return text, {"mode": i, **numbers}


def _rest(i: int, s: Leaf, d: Leaf, step: Leaf, size: Leaf) -> Sentence:
    product = leaf_text(times(step, d))
    text = f"mode {i} ({mode_text(s, d)}) takes the remaining {leaf_text(size)} elements, with stride {product}"
    return text, {"mode": i, **_named(size=size, step=step)}


def _gap(s: Leaf, d: Leaf, gap: Leaf, end: Leaf) -> Sentence:
    text = f"{leaf_text(gap)} copies at stride {leaf_text(end)} fit below stride {leaf_text(d)}"
    return text, {**_named(size=gap, step=end), "mode": mode_text(s, d)}


def _follow_left(i: int, s: Leaf, d: Leaf, reached: Leaf, start: Leaf, gap: Leaf) -> Sentence:
    text = (
        f"mode {mode_text(s, d)}: {leaf_text(gap)} offsets are below stride {leaf_text(d)}; the mode starts at "
        f"index {leaf_text(start)} (Left inverse divisibility condition holds)"
    )
    return text, {"mode": i, **_named(stride=d, reached=reached, index=start, gap=gap)}


def _of_mode(text: str) -> Callable[..., Sentence]:
    """Return a function that makes a sentence of an inverse: the mode, its stride, the offsets reached, its start."""

    def sentence(i: int, s: Leaf, d: Leaf, reached: Leaf, start: Leaf) -> Sentence:
        shown = text.format(mode_text(s, d), leaf_text(d), leaf_text(reached), leaf_text(start))
        return shown, {"mode": i, **_named(stride=d, reached=reached, index=start)}

    return sentence


_SENTENCES: Mapping[str, Callable[..., Sentence]] = MappingProxyType(
    {
        "drop": _drop,
        "merge": _merge,
        "keep apart": _keep_apart,
        "mode": lambda s, d: (f"{mode_text(s, d)} of the right layout", _named(size=s, step=d)),
        "stay": lambda s, d: (f"{mode_text(s, d)} does not move, so stride _0 stays", _named(size=s, step=d)),
        "scale": _scale,
        "step over": _passed("step {0} passes over all of mode {1} ({2}); step {3} remains"),
        "done": _passed("one element remains to be taken, so mode {1} ({2}) is passed over"),
        "walk": _walk,
        "rest": _rest,
        "gap": _gap,
        "tail": lambda s, d, end, whole: (
            f"from {leaf_text(end)} up to {tree_text(whole)}: {mode_text(s, d)}",
            _named(size=s, step=d),
        ),
        "follow right": _of_mode("mode {0} continues at offset {1}; it starts at index {3}"),
        "skip right": _of_mode("mode {0} has stride {1}, but the offsets so far end at {2}, so it is skipped"),
        "follow left": _follow_left,
        "skip left": _of_mode("mode {0} does not move, so it is skipped"),
    }
)


def _sentences(done: Iterable[tuple[str, tuple[Any, ...]]]) -> list[Step]:
    """Convert the decisions that an operation returned to steps with sentences."""
    out = []
    for rule, numbers in done:
        text, values = _SENTENCES[rule](*numbers)
        out.append(_step(rule.removesuffix(" right").removesuffix(" left"), text, **values))
    return out


def _coalesce_steps(operation: Operation, layout: Layout, target_profile: IntTuple | None = None) -> list[Step]:
    if isinstance(target_profile, tuple):
        result = coalesce(layout, target_profile)
        done: list[Step] = []
        for i, profile in enumerate(target_profile):
            done.append(_step("by mode", f"mode {i} ({layout[i]}) is coalesced", mode=i))
            done += _coalesce_steps(operation, layout[i], profile)[:-1]
        return [*done, _step("result", f"{layout} coalesces by mode to {result}", result, layout=str(layout))]
    result = coalesce(layout)
    if layout.shape == ():
        return [_step("result", "a layout without modes becomes 1:0", result)]
    out = _sentences(coalesced_by_steps(layout.shape, layout.stride)[2])
    return [*out, _step("result", f"{layout} coalesces to {result}", result, layout=str(layout))]


def _composition_steps(_: Operation, left: LayoutLike, right: Tiler) -> list[Step]:
    result = composition(left, right)
    out: list[Step] = []
    if not isinstance(left, Layout):
        inner: Layout | None = getattr(left, "domain", None)
        if inner is None:
            return [_step("result", f"{left} o {right} = {result}", result)]
        out = [_step("domain", f"the composition changes only the inner layout, {inner}")]
        return [*out, *_composition_steps(composition, inner, right)[:-1], _step("result", f"{result}", result)]
    if type(right) is tuple:
        for i, t in enumerate(right):
            out.append(_step("by mode", f"mode {i} ({left[i]}) is composed with {tiler_text(t)}", mode=i))
            out += _composition_steps(composition, left[i], t)[:-1]
        dropped = len(modes(left.shape)) - len(right)
        if dropped:
            out.append(
                _step("truncate", f"the tiler has {len(right)} modes; the layout's other {dropped} modes are dropped")
            )
        return [*out, _step("result", f"{left} o {tiler_text(right)} = {result}", result)]
    if is_underscore(right):
        return [_step("result", f"_ keeps all of {left}", result)]
    rhs = right if isinstance(right, Layout) else Layout(right, STATIC_ONE)
    if coprofile_of(rhs.stride) == 0:
        flat = coalesced(left.shape, left.stride, True)
        out = [_step("coalesce", f"the left layout is {mode_text(*flat)} when flattened and coalesced", make(*flat))]
        out += _sentences(composed_by_steps(left, rhs)[1])
    else:
        text = "each basis stride v@i of the right layout steps by v along mode i of the left layout"
        out = [_step("basis", text)]
    return [*out, _step("result", f"{left} o {rhs} = {result}", result)]


def _complement_steps(_: Operation, layout: Layout, cotarget: Shaped | None = None) -> list[Step]:
    result = complement(layout, cotarget)
    flat = filtered(layout.shape, layout.stride)
    target = cosize(layout) if cotarget is None else size(cotarget)
    out = [_step("filter", f"{layout} has the same offsets as {mode_text(*flat)}", make(*flat))]
    if coprofile_of(flat[1]) != 0:
        return [*out, _step("result", f"each axis is complemented up to {target}: {result}", result)]
    if flat == (1, 0):
        return [
            *out,
            _step("result", f"the layout does not move, so the complement is all of {target}: {result}", result),
        ]
    out += _sentences(complement_by_steps(make(*flat), as_leaves(target))[1])
    return [*out, _step("result", f"complement({layout}, {target}) = {result}", result)]


def _inverse_steps(operation: Operation, layout: Layout) -> list[Step]:
    result = operation(layout)
    flat = coalesced(layout.shape, layout.stride)
    out = [_step("coalesce", f"{layout} is {mode_text(*flat)} when flattened and coalesced", make(*flat))]
    if operation is right_inverse:
        out += _sentences(right_inverse_by_steps(*flat)[2])
    elif coprofile_of(flat[1]) == 0:
        out += _sentences(left_inverse_by_steps(*flat)[2])
    return [*out, _step("result", f"{operation.__name__}({layout}) = {result}", result)]


def _divide_steps(operation: Operation, layout: LayoutLike, tiler: Tiler) -> list[Step]:
    result = operation(layout, tiler)
    out: list[Step] = []
    if isinstance(layout, Layout):
        out = _logical_divide_steps(layout, tiler)
        logical = logical_divide(layout, tiler)
        if operation is not logical_divide:
            out.append(
                _step("gather", f"{operation.__name__} gathers the tile modes and the rest modes of {logical}", logical)
            )
    return [*out, _step("result", f"{operation.__name__}({layout}, {tiler_text(tiler)}) = {result}", result)]


def _logical_divide_steps(layout: Layout, tiler: Tiler) -> list[Step]:
    if type(tiler) is tuple:
        out: list[Step] = []
        for i, t in enumerate(tiler):
            out.append(_step("by mode", f"mode {i} ({layout[i]}) is divided by {tiler_text(t)}", mode=i))
            out += _logical_divide_steps(layout[i], t)
        return out
    if is_underscore(tiler):
        return [_step("keep", f"_ keeps all of {layout}", layout)]
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    whole = coalesced(layout.shape, layout.stride)[0]
    rest = complement(tile, whole)
    return [
        _step("tile", f"the tile is {tile}", tile),
        _step(
            "complement", f"the tile leaves {rest} of {tree_text(whole)} elements: the steps from tile to tile", rest
        ),
        _step("compose", f"{layout} o ({tile}, {rest})", composition(layout, make_layout(tile, rest))),
    ]


def _product_steps(operation: Operation, block: LayoutLike, tiler: Tiler) -> list[Step]:
    result = operation(block, tiler)
    out: list[Step] = []
    if operation in (blocked_product, raked_product):
        first = "the block's" if operation is blocked_product else "the tiler's"
        text = (
            "take the logical product of both, padded to the same rank, then pair mode i of block and tiler, "
            f"{first} first"
        )
        out.append(_step("join", text))
    elif isinstance(block, Layout) and isinstance(tiler, Layout):
        target = size(block) * cosize(tiler)
        rest = complement(block, target)
        text = f"the copies of {block} start at {rest}, for {size(block)} * {cosize(tiler)} = {target} offsets"
        copies = composition(rest, tiler)
        out = [
            _step("complement", text, rest),
            _step("compose", f"the copies follow the order of the tiler: {rest} o {tiler} = {copies}", copies),
        ]
    return [*out, _step("result", f"{operation.__name__}({block}, {tiler_text(tiler)}) = {result}", result)]


_PRODUCTS = (logical_product, zipped_product, tiled_product, flat_product, blocked_product, raked_product)
_STEPS: Mapping[Operation, Callable[..., list[Step]]] = MappingProxyType(
    {
        coalesce: _coalesce_steps,
        composition: _composition_steps,
        complement: _complement_steps,
        **dict.fromkeys((right_inverse, left_inverse), _inverse_steps),
        **dict.fromkeys((logical_divide, zipped_divide, tiled_divide, flat_divide), _divide_steps),
        **dict.fromkeys(_PRODUCTS, _product_steps),
    }
)


def explained() -> tuple[Operation, ...]:
    """Return the operations that `steps` can explain.

    >>> [operation.__name__ for operation in explained()][:3]
    ['coalesce', 'composition', 'complement']
    """
    return tuple(_STEPS)


def steps(operation: Operation, *operands: Tiler | LayoutLike) -> tuple[Step, ...]:
    """Return the steps of `operation(*operands)`. The `result` of the last step is the result of the operation.

    Raises:
        InvalidTypeError: `steps` can't explain this operation. Errors of the operation itself are not changed.

    >>> for step in steps(coalesce, Layout((Int(2), (Int(1), Int(6))), (Int(1), (Int(6), Int(2))))):
    ...     print(step)
    drop: _1:_6 has one element, so it is dropped
    merge: _2:_1 and _6:_2 merge into _12:_1: _2 * _1 = _2
    result: (_2,(_1,_6)):(_1,(_6,_2)) coalesces to _12:_1
    """
    if not callable(operation) or operation not in explained():
        name = getattr(operation, "__name__", given(operation))
        raise InvalidTypeError(f"steps can't explain {name}", {"explained": ", ".join(o.__name__ for o in explained())})
    of = _STEPS[operation]
    try:
        inspect.signature(operation).bind(*operands)
        inspect.signature(of).bind(operation, *operands)  # composition takes `inner` and `strict`, which have no steps
    except TypeError as error:
        takes = ", ".join(inspect.signature(operation).parameters)
        text = f"{operation.__name__}({takes}) can't take {counted(len(operands), 'operand')}: {error}"
        raise InvalidTypeError(text, {"operands": given(operands)}) from None
    if of not in (_coalesce_steps, _complement_steps, _inverse_steps) or isinstance(operands[0], Layout):
        return tuple(of(operation, *operands))
    result = operation(*operands)
    shown = integer_text(result) if isinstance(result, int) else result
    return (_step("result", f"{operation.__name__} of {', '.join(map(given, operands))} = {shown}", result),)
