"""`check`: find errors in buffers of data and scales before a kernel reads them.

type         elements or scales have another type than the format
size         there are too few scales for the order (the kernel reads beyond them), too many, or they have another shape
strides      the elements of an array are in another order in memory than their indices
scales       a scale in use is NaN, infinite or negative, or is 0 although its elements are not; or the padding has NaN
             or stale bytes, although a product multiplies it by zero: 0 x NaN is NaN
data         an element is NaN, or padding along K is not zero
orientation  the blocks run along another axis than the format's: the largest element of a block, once scaled, should
             use the top of the range of the element type
alignment    TMA or the GEMM can't use an address or a pitch
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_integers
from cute_py.diagnostics import Diagnostic, Findings, Scope
from cute_py.errors import InvalidValueError, counted, given
from cute_py.formats.format import Format
from cute_py.formats.numbers import codes, expect_array, number, to_float32
from cute_py.formats.packing import unpack_elements
from cute_py.formats.scaled_tensor import (
    ScaledTensor,
    extents,
    scale_indices,
    stored_scales,
    stored_shape,
    wrong_data_type,
    wrong_scale_type,
)
from cute_py.tma.descriptor.limits import BY_NAME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

ALIGNMENT: Final = BY_NAME["address_alignment"].multiple
"""Alignment in bytes of the addresses and pitches of a tensor map, and of cuBLAS's fp8 and fp4 matrices (cuBLAS 13.0,
2.1.5.4)."""
SURE: Final = 0.999
"""Smallest share of blocks along one axis that must use the top of the element type before `check` calls it the axis of
the blocks. With random numbers, 85 to 99 % of the blocks along the other axis use it too (measured)."""
PIECE: Final = 1 << 22
"""Elements that are examined at a time to infer the axis of the blocks; this bounds the memory."""
FEW: Final = 8
"""The axis is inferred only from at least this many blocks."""
OTHER_BLOCKS: Final = (16, 32, 128)
"""Block sizes of other formats, in elements. `check` tries them if the number of scales is wrong."""
SIZED_ORDERS: Final = ("32_4_4", "8x4", "triton_blackwell", "rocm_32_8")
"""Orders that `check` tries if the number of scales is wrong."""


def check(data: Any, scales: Any, format: Format, shape: tuple[int, ...]) -> Findings:
    """Find all errors in the data and scales of a tensor in a format.

    Args:
        data: numpy array of the elements, row-major, in the packing of the format. scales: numpy array, in the format's
            order. shape: the logical (M, K) or (L, M, K).
    Returns:
        the broken rules, errors first. An empty list means that no rule is broken within `.scope`.

    >>> x = np.float32([[1.0] * 64] * 100)
    >>> made = cute.copy(x, cute.formats.mxfp8())
    >>> cute.formats.check(made.data, made.scales, made.format, (100, 64))
    []
    >>> found = cute.formats.check(made.data, made.scales[:200], made.format, (100, 64))
    >>> print(found[0])
    scales = 200 scales; must be 512
    """
    expect(format, Format, "format")
    sizes = expect_integers(expect(shape, tuple, "shape"), "shape", 1)
    if len(sizes) not in (2, 3):
        raise InvalidValueError(f"shape = {given(shape)}; must be (M, K) or (L, M, K)")
    for name, one in (("data", data), ("scales", scales)):
        expect_array(one, name)
    found, judged, left = [], ["types", "sizes", "strides", "alignment"], []
    found += _check_types(data, scales, format) + _check_data_size(data, format, sizes)
    if not any(d.rule == "scale_type" for d in found):
        found += _check_scale_size(scales, format, sizes)
    found += _check_strides(data, scales, format)
    unread = bool(found)
    found += _check_alignment(data, scales, format, sizes)
    if unread:
        left.append("contents, because a type, a size or an order of memory is wrong")
    else:
        whole = ScaledTensor(data, scales, format, None, sizes)
        judged += ["scales", "padding"]
        found += _check_scales(whole)
        if not any(one.rule == "nan_scale" for one in found):  # elements under such a scale are NaN too
            found += _check_elements(whole) + _check_zero_scales(whole)
        found += _check_data_padding(whole)
        turned = _check_orientation(whole)
        (left if turned is None else judged).append(
            "axis of the blocks" + (", because there are too few blocks" if turned is None else "")
        )
        found += turned or []
    left.append("order of the scales in memory: formats.identify compares it with a plain grid")
    found.sort(key=lambda d: d.severity != "error")
    return Findings(found, scope=Scope(tuple(judged), tuple(left)))


def _check_types(data: NDArray[np.generic], scales: NDArray[np.generic], form: Format) -> list[Diagnostic]:
    texts = ("data_type", wrong_data_type(data, form)), ("scale_type", wrong_scale_type(scales, form))
    return [Diagnostic(rule, text=text) for rule, text in texts if text]


def _check_strides(data: NDArray[np.generic], scales: NDArray[np.generic], form: Format) -> list[Diagnostic]:
    """Find arrays whose elements are in another order in memory than their indices. This matters because a kernel reads
    the memory."""
    found = []
    if data.ndim > 1 and data.shape[-1] > 1 and data.strides[-1] != data.dtype.itemsize:
        text = f"the bytes of a row of the data are {data.strides[-1]} bytes apart; must be adjacent"
        if data.strides[-2] == data.dtype.itemsize:
            text += ": the memory holds the data column by column, which is the data of its transpose"
        found.append(Diagnostic("data_strides", text=text, facts={"strides": data.strides}))
    if not scales.flags.c_contiguous:
        text = "the scales are not contiguous, so their memory is in another order than their indices"
        facts: dict[str, object] = {"shape": scales.shape, "strides": scales.strides}
        if scales.flags.f_contiguous and form.order.name == "linear" and scales.ndim == 2:
            facts["why"] = "the memory holds the scales column by column: the order mn_major"
        found.append(Diagnostic("scale_strides", text=text, facts=facts))
    return found


def _check_data_size(data: NDArray[Any], form: Format, shape: tuple[int, ...]) -> list[Diagnostic]:
    wanted = stored_shape(form, shape)
    if data.shape == wanted:
        return []
    facts: dict[str, object] = {"required shape": wanted, "logical shape": shape}
    plain = stored_shape(form.with_(padding=(1, 1)), shape)
    turned = stored_shape(form.with_(transposed=not form.transposed), shape)
    why = ""
    if data.shape == turned:
        why = "; the data is stored as (K, M)" if not form.transposed else "; the data is stored as (M, K)"
    elif data.shape == plain:
        why = f"; the data is not padded to blocks of {form.block}"
    elif form.packing != "bytes" and data.shape == (*wanted[:-1], form.data_shape(*shape[-2:])[1]):
        why = f"; each element has a byte: either they are not packed ({form.packing}), or the shape counts bytes"
    return [Diagnostic("data_size", text=f"data has the shape {data.shape}; must be {wanted}{why}", facts=facts)]


def _check_scale_size(scales: NDArray[Any], form: Format, shape: tuple[int, ...]) -> list[Diagnostic]:
    kind = form.scale_dtype.numpy
    M, K, L = extents(shape)
    need, have = int(form.scale_size(M, K, L)), scales.size * scales.dtype.itemsize // kind.itemsize
    if scales.size * scales.dtype.itemsize % kind.itemsize:
        text = (
            f"the scales have {scales.nbytes} bytes; must be a multiple of {kind.itemsize}, the size of one "
            f"{form.scale}"
        )
        return [Diagnostic("scale_size", text=text)]
    rows, columns = form.blocks(M, K)
    grid = -(-M // rows), -(-K // columns)
    facts: dict[str, object] = {"order": form.order, "blocks": grid}
    found = []
    if have != need:
        if why := _why_other_size(have, form, grid, shape):
            facts["why"] = why
        severity = "error" if have < need else "warning"
        row = Diagnostic(
            "scale_size", "scales", have, "scales", f"be {need}", form.order.row.source if form.order.row else "",
            severity=severity, facts=facts,
        )  # fmt: skip
        found.append(row)
    if scales.ndim == 2 and grid[0] != grid[1] and scales.shape == grid[::-1]:
        text = (
            f"the scales have the shape {scales.shape}, blocks x rows; must be {grid}, rows x blocks, so transpose them"
        )
        found.append(Diagnostic("orientation", text=text, facts=dict(facts)))
    return found


def _why_other_size(have: int, form: Format, grid: tuple[int, int], shape: tuple[int, ...]) -> str:
    """The cause of a wrong number of scales; an empty string if it is not known."""
    M, K, L = extents(shape)
    batch, order, tile = L or 1, form.order, form.order.tile
    turned = form.axis == 0 if order.each_row else form.transposed
    down, across = grid[::-1] if turned else grid
    if order.each_row:
        down = K if turned else M
    whole = [-(-n // p) * p for n, p in zip((down, across), tile, strict=True)]
    causes = [
        (down * across, f"one scale per block, not padded to {tile[0]} x {tile[1]}"),
        (grid[0] * grid[1], f"one scale per block, not padded to {tile[0]} x {tile[1]}"),
        (whole[0] * across, f"padded to {tile[0]} rows, but not to {tile[1]} scales of a row"),
        (down * whole[1], f"padded to {tile[1]} scales of a row, but not to {tile[0]} rows"),
    ]
    for count, cause in causes:
        if have == count * batch:
            return cause
    if L is not None and have * L == int(form.scale_size(M, K, L)):
        return "the scales of one matrix of the batch"
    if have == int(form.scale_size(K, M, L)):
        return f"the scales of a tensor of {K} x {M} elements"
    if order.is_layout and order.given_layout is None:
        for name in SIZED_ORDERS:
            if name != order.name and have == int(form.with_(scales=name).scale_size(M, K, L)):
                return f"the size of the order {name}"
    if 1 in form.block:
        for width in OTHER_BLOCKS:
            block = (1, width) if form.block[0] == 1 else (width, 1)
            if block != form.block and have == int(replace(form, block=block).scale_size(M, K, L)):
                return f"the scales of blocks of {block[0]} x {block[1]} elements"
    return ""


def _check_alignment(
    data: NDArray[Any], scales: NDArray[Any], form: Format, shape: tuple[int, ...]
) -> list[Diagnostic]:
    must, source = f"be a multiple of {ALIGNMENT}", "CUDA driver API, cuTensorMapEncodeTiled; cuBLAS 13.0, 2.1.5.4"
    found = []
    for name, one in (("data", data), ("scales", scales)):
        address = int(one.ctypes.data)
        if address % ALIGNMENT and form.scale_size(*extents(shape)) > 1:
            text = f"the address of the {name} is {address % ALIGNMENT} bytes past a multiple of {ALIGNMENT}"
            found.append(Diagnostic("address", text=text, requirement=must, source=source, severity="warning"))
    wanted = stored_shape(form, shape)
    pitch = data.strides[-2] if data.shape == wanted and data.strides[-1] == 1 else wanted[-1]
    if pitch % ALIGNMENT and wanted[-2] > 1:
        detail = "tensor maps and cuBLAS matrices can't have rows of this size"
        found.append(
            Diagnostic("row_pitch", "bytes of a row", pitch, "bytes", must, source, detail=detail, severity="warning")
        )
    return found


def are_nan(count: int, what: str) -> str:
    """The statement that some scales or elements are NaN.

    >>> are_nan(1, "scale"), are_nan(3, "element")
    ('1 scale is NaN', '3 elements are NaN')
    """
    return f"{counted(count, what)} {'is' if count == 1 else 'are'} NaN"


def _check_scales(whole: ScaledTensor) -> list[Diagnostic]:
    form, shape = whole.format, whole.shape
    raw = codes(stored_scales(whole.scales, form))
    used = np.zeros(raw.size, bool)
    places = scale_indices(form, shape)
    used[places] = True
    found = []
    nan = number(form.scale).is_nan(raw)
    if (nan & used).any():
        text = f"{are_nan(int((nan & used).sum()), 'scale')}; the first belongs to {_first(nan[places])}"
        found.append(Diagnostic("nan_scale", text=text, severity="warning", facts={"scales in use": int(used.sum())}))
    if (nan & ~used).any():
        first = int(np.flatnonzero(nan & ~used)[0])
        text = (
            f"the padding of the scales has a NaN, first at index {first}; a product multiplies it by 0, which "
            "gives NaN"
        )
        found.append(
            Diagnostic("nan_padding", text=text, source="OCP MX 1.0, 5.4.1; quack, varlen_blockscaled_sf_layout")
        )
    stale = ~nan & ~used & (raw != 0)
    if stale.any():
        text = f"{int(stale.sum())} padding scales are not 0, first at index {int(np.flatnonzero(stale)[0])}"
        found.append(Diagnostic("stale_padding", text=text, severity="warning", requirement="be 0"))
    if form.scale == "ue4m3" and ((raw & 0x80) != 0)[used].any():
        found.append(Diagnostic("negative_scale", text="the sign bit of a scale is set, but ue4m3 has no sign"))
    if form.scale == "float32":
        found += _check_signs(raw.view(np.float32), places)
    return found


def _first(wrong: NDArray[np.bool_]) -> str:
    """The first place in a grid of scales, or in a stack of grids."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"(row, block) {at[-2:]}" + (f" of matrix {at[0]}" if len(at) > 2 else "")


def _check_signs(scales: NDArray[np.float32], places: NDArray[np.int64]) -> list[Diagnostic]:
    """Find negative and infinite scales among the scales in use. No rule computes these from finite numbers."""
    used, found = scales[places], []
    for rule, wrong, name, severity in (
        ("negative_scale", used < 0, "negative", "error"),
        ("infinite_scale", np.isinf(used), "infinite", "warning"),
    ):
        if wrong.any():
            count = int(wrong.sum())
            are = "is" if count == 1 else "are"
            text = f"{counted(count, 'scale')} {are} {name}; the first belongs to {_first(wrong)}"
            found.append(Diagnostic(rule, text=text, severity=severity))
    return found


def _check_zero_scales(whole: ScaledTensor) -> list[Diagnostic]:
    """Find blocks whose scale is 0 although their elements are not 0. No rule makes such blocks."""
    if whole.format.scale == "ue8m0":
        return []
    zero = whole.scale_grid() == 0
    if not zero.any():
        return []
    M, K = whole.shape[-2:]
    rows, columns = whole.format.blocks(M, K)
    raw = codes(np.ascontiguousarray(whole.elements())) & ((1 << whole.format.number.bits - 1) - 1)
    lost = (raw != 0) & zero[..., np.arange(M) // rows, :][..., np.arange(K) // columns]
    if not lost.any():
        return []
    at = np.argwhere(lost)[0]
    place = int(at[-2]) // rows, int(at[-1]) // columns
    text = f"a block with a scale of 0 has elements that are not 0, first (row, block) {place}"
    return [Diagnostic("zero_scale", text=text)]


def _check_elements(whole: ScaledTensor) -> list[Diagnostic]:
    """Find NaN elements, including those in the padding."""
    nan = whole.format.number.is_nan(codes(whole.data))
    if not nan.any():
        return []
    text = f"{are_nan(int(nan.sum()), 'element')}, first at {tuple(int(i) for i in np.argwhere(nan)[0])}"
    return [Diagnostic("nan_element", text=text, severity="warning")]


def _check_data_padding(whole: ScaledTensor) -> list[Diagnostic]:
    form = whole.format
    M, K = whole.shape[-2:]
    rows, columns = form.data_shape(M, K)
    if (rows, columns) == ((K, M) if form.transposed else (M, K)):
        return []
    raw = codes(unpack_elements(whole.data, columns, form.packing, form.element)) & ((1 << form.number.bits - 1) - 1)
    outside = np.ones((rows, columns), bool)
    outside[(slice(None, K), slice(None, M)) if form.transposed else (slice(None, M), slice(None, K))] = False
    wrong = (raw != 0) & outside
    if not wrong.any():
        return []
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    text = f"the padding of the data is not 0, first at {at}; a product adds it to the result"
    return [Diagnostic("data_padding", text=text)]


def _top(form: Format) -> float:
    """The smallest magnitude that the largest element of a block can have after scaling, if the format's rule computed
    the scale."""
    largest = form.number.largest
    if form.scale_rule == "amax":
        return largest
    if form.scale_rule == "nvfp4":
        return 4.0  # the scale is rounded to e4m3, so 6 may become 5.6 and round to either neighbour
    return largest / 2 if form.scale_rule == "rceil" else 2.0 ** (form.number.max_power - 1)


def _reaching(magnitudes: NDArray[np.float32], rows: int, columns: int, top: float) -> NDArray[np.int64]:
    """The number of nonzero blocks whose largest element reaches `top`, and the number of nonzero blocks."""
    M, K = magnitudes.shape[-2:]
    padded = np.pad(magnitudes, [(0, 0)] * (magnitudes.ndim - 2) + [(0, -M % rows), (0, -K % columns)])
    shape = (*padded.shape[:-2], padded.shape[-2] // rows, rows, padded.shape[-1] // columns, columns)
    peak = padded.reshape(shape).max(axis=(-3, -1))
    return np.array([int((peak >= top).sum()), int((peak > 0).sum())])


def _check_orientation(whole: ScaledTensor) -> list[Diagnostic] | None:
    form = whole.format
    M, K = whole.shape[-2:]
    rows, columns = form.blocks(M, K)
    if rows == columns or (rows, columns) == (M, K):
        return None
    top, elements, turned = _top(form), whole.elements(), (min(columns, M), min(rows, K))
    height = math.lcm(rows, turned[0])
    step = max(1, PIECE // (height * K)) * height
    found = np.zeros((2, 2), np.int64)
    for first in range(0, M, step):
        with np.errstate(invalid="ignore"):
            part = to_float32(np.ascontiguousarray(elements[..., first : first + step, :]))
            magnitudes = np.nan_to_num(np.abs(part))
        found += [_reaching(magnitudes, *sides, top) for sides in ((rows, columns), turned)]
    count, others = (int(live) for live in found[:, 1])
    own, other = (float(reaching / live) if live else 1.0 for reaching, live in found)
    if min(count, others) < FEW:
        return None
    if own >= SURE or other < SURE or (1 - own) * count < 2:
        return []
    axis = "columns" if columns >= rows else "rows"
    text = (
        f"{own:.1%} of the blocks of {rows} x {columns} use the largest values of {form.element}, but "
        f"{other:.1%} of the blocks of {columns} x {rows} do: the data was quantised along the other axis"
    )
    return [Diagnostic("orientation", text=text, facts={"axis of the format": axis})]
