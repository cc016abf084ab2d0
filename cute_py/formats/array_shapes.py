"""Shapes of the arrays of a format, for sizes that may be symbols of another library, as in a compiled graph.

`Format.scale_size` and `data_shape` accept numbers and sympy expressions; this module needs only +, * and //.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cute_py.errors import InvalidValueError
from cute_py.formats.format import Format


def _up(count: Any, multiple: int) -> Any:
    return (count + multiple - 1) // multiple * multiple if multiple > 1 else count


def _blocks(count: Any, block: int | None) -> Any:
    return 1 if block is None else (count + block - 1) // block


def array_shapes(form: Format, shape: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The shapes of the data and scales that `cute.copy` makes for a logical shape (M, K) or (L, M, K).

    >>> array_shapes(cute.formats.nvfp4(), (100, 64))
    ((100, 32), (512,))
    """
    if len(shape) not in (2, 3):
        raise InvalidValueError(f"the tensor has {len(shape)} modes; must be (M, K) or (L, M, K)")
    *lead, M, K = shape
    rows, columns = (_up(n, p) for n, p in zip((M, K), form.padding, strict=True))
    if form.transposed:
        rows, columns = columns, rows
    width = {"pairs": (columns + 1) // 2, "dense": (columns * 3 + 3) // 4}.get(form.packing, columns)
    down, across = _blocks(M, form.block[0]), _blocks(K, form.block[1])
    order = form.order
    if order.name == "linear":
        grid = (across, down) if form.transposed else (down, across)
        return (*lead, rows, width), (*lead, *grid)
    if order.given_layout is not None or not order.is_layout:
        count = form.scale_size(int(M), int(K), int(lead[0]) if lead else None)
        return (*lead, rows, width), (int(count),)
    if form.axis == 0 if order.each_row else form.transposed:
        M, K, down, across = K, M, across, down
    tile = order.tile
    count = _up(M if order.each_row else down, tile[0]) * _up(across, tile[1])
    return (*lead, rows, width), (count * lead[0] if lead else count,)
