"""Check the changes that `explain` offers: each must pass the strictest check for its kind of object.

    a composition              gives A(B(i)) for every i: `strict=True`
    a divide                   the same, for the composition with the tiles and the rest
    a tensor map               breaks no rule, and has no new hazard
    an atom                    makes and checks without a finding
    PTX                        is assembled by ptxas, where ptxas is installed

`passes_check` makes this check. Its argument is a function that makes the changed object.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias, TypeVar

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, unless_refused
from cute_py.layout.arguments import LayoutLike, Tiler
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.layout import Layout, domain_of, has_numbers, make_layout, modes_of
from cute_py.layout.tiling import complement, zipped_divide
from cute_py.layout.trees import is_underscore
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

Made = TypeVar("Made")

Change: TypeAlias = Callable[[], object]


def passes_check(change: Change, before: object = None) -> bool:
    """Whether a change makes an object that passes every check of its kind.

    Args:
        change: a function that makes the changed object, or raises an error of this library.
        before: the object before the change, if it exists; hazards that it already has do not count against the change.

    >>> passes_check(lambda: TensorMapTiled(6, 4096, (64, 8), (128,), (64, 8)))
    True
    >>> passes_check(lambda: TensorMapTiled(6, 4096, (64, 8), (120,), (64, 8)))
    False
    """
    try:
        made = change()
        if isinstance(made, (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)):
            return _is_sound_map(made, before)
        atoms = sys.modules.get("cute_py.tma.atom.atom")  # imported only for atoms
        if atoms is not None and isinstance(made, atoms.TmaAtom):
            return not made.check()
    except CuteError:
        return False
    return made is not None


def _is_sound_map(changed: TensorMap, before: object) -> bool:
    known = {found.rule for found in hazards(before)} if isinstance(before, type(changed)) else set()
    return not violations(changed) and all(found.rule in known for found in hazards(changed))


def composes(left: LayoutLike, right: Tiler) -> bool:
    """Whether composition(left, right) is the function left(right(i)).

    >>> from cute_py import Int, Layout
    >>> a = Layout((Int(6), Int(4)), (Int(4), Int(1)))
    >>> composes(a, Layout(Int(2), Int(3))), composes(a, Layout(Int(4), Int(4)))
    (True, False)
    """
    return passes_check(lambda: composition(left, right, strict=True))


def divides_whole(layout: Layout | ComposedLayout, tiler: Tiler) -> bool:
    """Whether a divide by the tiler visits the elements of the layout tile by tile, and no tile extends past the end.

    With symbolic sizes this can't be decided; then it is enough that the divide succeeds.
    """
    if not passes_check(lambda: zipped_divide(layout, tiler)):
        return False
    plain = domain_of(layout)
    return not has_numbers(plain) or _splits(plain, tiler)


def _splits(layout: Layout, tiler: Tiler) -> bool:
    if type(tiler) is tuple:
        return all(map(_splits, modes_of(layout), tiler))
    if is_underscore(tiler):
        return True
    if not isinstance(tiler, Layout) and not isinstance(layout.shape, tuple):
        return int(layout.shape) % int(tiler) == 0  # type: ignore[arg-type]
    tile = tiler if isinstance(tiler, Layout) else Layout(tiler)
    return passes_check(lambda: composition(layout, make_layout(tile, complement(tile, layout.shape)), strict=True))


def _array_map(sizes: Sequence[int], steps: Iterable[int], bits: int) -> TensorMapTiled | None:
    """Return the map of an array with a box of one unit, or None if no element type has this width. sizes: innermost
    first; steps: in bytes."""
    kind = {8: 0, 16: 1, 32: 2, 64: 4}.get(bits)
    box = (max(128 // bits, 1), *[1] * (len(sizes) - 1))
    return None if kind is None else TensorMapTiled(kind, 4096, tuple(sizes), tuple(steps), box)


def copies_padded(sizes: Sequence[int], strides: Sequence[int], bits: int) -> bool:
    """Whether a tensor map takes an array of these sizes, innermost first, with its strides padded to 16 bytes."""
    # rows that end between two units are not padded
    before = unless_refused(_array_map, sizes, [n * bits // 8 for n in strides], bits)
    return passes_check(lambda: _array_map(sizes, [-(-n * bits // 128) * 16 for n in strides], bits), before)


def copies_dense(shape: Sequence[int], bits: int) -> bool:
    """Whether a tensor map takes a dense row-major array of this shape, outermost first.

    >>> copies_dense((64, 32), 16), copies_dense((64, 33), 16)
    (True, False)
    """
    sizes = [n for n in shape[::-1] if n != 1]
    strides = [math.prod(sizes[:i]) for i in range(1, len(sizes))]
    aligned = bits > 0 and not any(n * bits % 128 for n in strides)
    return aligned and array_rules(sizes, strides, bits) == []


def array_rules(sizes: Sequence[int], strides: Sequence[int], bits: int) -> list[Diagnostic] | None:
    """Return the rules of tensor maps that an array breaks, except the alignment of its strides; None if they can't be
    judged. If the array has more than five modes, contiguous modes are merged.

    Args:
        sizes: innermost first, in elements. strides: of all modes but the first, in elements.

    >>> [one.rule for one in array_rules((64, 0), (64,), 16)], array_rules((2,) * 7, (2, 4, 8, 16, 32, 64), 16)
    (['size'], [])
    """
    merged: list[int] = list(sizes[:1]) or [1]
    steps: list[int] = []
    for size, stride in zip(sizes[1:], strides, strict=True):
        if len(sizes) > MAX_RANK and stride == (steps[-1] if steps else 1) * merged[-1]:
            merged[-1] *= size
        else:
            merged.append(size)
            steps.append(stride)
    request = unless_refused(_array_map, merged, [n * bits // 8 for n in steps], bits)
    if request is None:
        return None
    return [one for one in violations(request) if one.rule != "stride_alignment"]
