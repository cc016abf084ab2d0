"""S and R: tile layouts as they are written on the reference pages.

S[shape : strides]   places the elements of a tile; S[8, 4] is row-major on the axis `m`
R[shape : strides]   repeats a tile; it is added to an S[...]
+ 4 @ TCol           moves it

S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
"""

from __future__ import annotations

import math

from cute_py.argument_checks import expect_integer
from cute_py.errors import InvalidTypeError, LayoutError
from cute_py.tmem.axes import AxisTerm, as_term
from cute_py.tmem.iters import Iter, Row
from cute_py.tmem.tile_layout import TileLayout


def _build(spec: object) -> Row:
    extents: object = spec
    strides: object = None
    if isinstance(spec, slice):
        extents, strides = spec.start, spec.stop
        if spec.step is not None:
            raise InvalidTypeError("a layout is written shape : strides; a second colon has no meaning")
    shape = [expect_integer(e, "an extent") for e in (extents if isinstance(extents, tuple | list) else (extents,))]
    if strides is None:
        steps = [AxisTerm(math.prod(shape[d + 1 :]), "m") for d in range(len(shape))]
    else:
        steps = [as_term(s) for s in (strides if isinstance(strides, tuple | list) else (strides,))]
    if len(steps) != len(shape):
        raise LayoutError(f"{len(shape)} extents and {len(steps)} strides; one stride for each extent")
    return tuple(Iter(extent, term.value, term.axis) for extent, term in zip(shape, steps, strict=True))


class _ShardSpec:
    """`S[shape : strides]` places elements; `S[8, 4]` is row-major on the axis `m`."""

    def __getitem__(self, spec: object) -> TileLayout:
        return TileLayout(_build(spec))


class _ReplicaSpec:
    """`R[shape : strides]` repeats a tile; add it to an `S[...]`."""

    def __getitem__(self, spec: object) -> TileLayout:
        return TileLayout((), _build(spec))


S = _ShardSpec()
R = _ReplicaSpec()
