"""`plan_copy` for copies that compute: sides from layouts and formats, without memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.copies.scaled.operands import expect_device_format, expect_same_lines, matrix
from cute_py.copies.scaled.plan import MatrixSide, RowIndex, ScaledLaunch, kind_of, plan_scaled, refused
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.formats.format import Format
from cute_py.gpu.kernels.numbers import KIND_BITS
from cute_py.gpu.kernels.scaled_output import PIECE, ROW_ELEMENTS
from cute_py.layout.layout import Layout
from cute_py.tensor.array_views import ArrayView


def format_side(form: Format, shape: tuple[int, int]) -> MatrixSide:
    """The side of a newly allocated (M, K) tensor in a format."""
    expect_device_format(form)
    lines, along = form.data_shape(*shape)
    pitch = along * KIND_BITS[form.element] // 8
    total = 1.0 if form.tensor_scale else None
    return MatrixSide(form.element, lines, along, pitch, form.transposed, format=form, shape=shape, total=total)


def layout_side(layout: Any, dtype: DType, kind: str, role: str) -> tuple[MatrixSide, tuple[int, int]]:
    """The side of a layout of two modes, and its shape."""
    if not isinstance(layout, Layout):
        raise InvalidTypeError(f"the {role} must be a Layout or a Format, got {given(layout)}")
    shape, stride = layout.shape, layout.stride
    if not isinstance(shape, tuple) or len(shape) != 2 or any(isinstance(n, tuple) for n in shape):
        raise refused(f"a {role} of shape {shape}", "a layout (M, K) of two modes")
    sizes, steps = tuple(map(int, shape)), tuple(map(int, stride))  # type: ignore[arg-type]
    view = ArrayView(1 << 20, sizes, steps, dtype, None)
    side = matrix(view, role, kind, dtype.bits // 8 if kind == "raw" else 1)
    return side, (sizes[0], sizes[1])


def plan_formats(
    source: Any,
    destination: Any,
    dtype: DTypeLike,
    cast_to: DTypeLike | None,
    rows: int | None,
    into_rows: int | None,
) -> tuple[ScaledLaunch, Layout, Layout, tuple[int, int]]:
    """The launch, both layouts, and the bytes that one access reads and writes, for the arguments of `plan_copy`."""
    kind = as_dtype(dtype)
    outputs: Sequence[Any] = destination if isinstance(destination, tuple) else (destination,)
    if cast_to is not None and any(isinstance(one, Format) for one in (source, *outputs)):
        raise InvalidValueError("cast_to applies to two layouts; a format defines its own element type")
    kept = cast_to is None or as_dtype(cast_to) == kind
    raw = kept and not any(isinstance(one, Format) for one in (source, *outputs))
    if isinstance(source, Format):
        if len(outputs) != 1 or isinstance(outputs[0], Format):
            raise InvalidTypeError(f"a Format can be copied into one Layout only, got {given(destination)}")
        second, shape = layout_side(outputs[0], kind, kind_of(kind), "destination")
        first, sides = format_side(source, shape), [second]
        layouts = source.data_layout(*shape), outputs[0]
    else:
        name = "raw" if raw else kind_of(kind)
        first, shape = layout_side(source, kind, name, "source")
        count = shape[0] if rows is None else expect_integer(rows, "rows", 1)
        into = count if into_rows is None else expect_integer(into_rows, "into_rows", 1)
        if into_rows is not None:
            count = into
        shape, sides = (count, shape[1]), []
        layouts = source, source
        for one in outputs:
            if isinstance(one, Format):
                sides.append(format_side(one, shape))
                layouts = source, one.data_layout(*shape)
            else:
                other = kind if cast_to is None else as_dtype(cast_to)
                sides.append(layout_side(one, other, "raw" if raw else kind_of(other), "destination")[0])
                layouts = source, one
    index = RowIndex(rows is not None, into_rows is not None)
    if first.by_columns and (index.rows or index.into):
        raise refused("rows of a source stored by columns", "a source whose rows are contiguous")
    counted = shape
    if raw:
        for side in sides:
            expect_same_lines(first, side)
        counted = (first.along, first.lines) if first.by_columns else (shape[0], first.along)
    launch = plan_scaled(first, sides, counted, index)
    per = ROW_ELEMENTS if launch.name == "rows" and not isinstance(source, Format) else PIECE
    return launch, layouts[0], layouts[1], (per * KIND_BITS[first.kind] // 8, per * KIND_BITS[sides[0].kind] // 8)
