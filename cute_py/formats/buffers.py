"""`check`: find errors in given buffers of data and scales before a kernel reads them.

size         too few scales for the order (the kernel reads beyond them), too many, another shape
scales       NaN in use; NaN or stale bytes in the padding, which a product multiplies by zero: 0 x NaN is NaN
data         NaN; padding along K that is not zero
orientation  the largest element of a block, once scaled, uses the top of the element type; blocks that run along the
             other axis do not
alignment    addresses and pitches that TMA or the GEMM can't use
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect, expect_integers
from cute_py.diagnostics import Diagnostic, Findings, Scope
from cute_py.errors import InvalidValueError, counted, given
from cute_py.formats.format import Format
from cute_py.formats.numbers import codes, expect_array, to_float32
from cute_py.formats.packing import unpack_elements
from cute_py.formats.scaled_tensor import (
    ScaledTensor,
    extents,
    scale_indices,
    stored_scales,
    stored_shape,
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
"""Smallest number of blocks from which the axis is inferred."""


def check(data: Any, scales: Any, format: Format, shape: tuple[int, ...]) -> Findings:
    """Find all errors in the buffers of a format.

    Args:
        data: numpy array of the elements, packed as the format says, row-major. scales: numpy array, in the format's
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
    found, judged, left = [], ["sizes", "alignment"], []
    found += _check_data_size(data, format, sizes)
    bad_scales = _check_scale_size(scales, format, sizes)
    found += bad_scales + _check_alignment(data, scales, format, sizes)
    if any(d.severity == "error" for d in found):
        left.append("contents, because a size is wrong")
    else:
        whole = ScaledTensor(data, scales, format, None, sizes)
        judged += ["scales", "padding"]
        found += _check_scales(whole)
        if not any(one.rule == "nan_scale" for one in found):  # elements under such a scale are NaN too
            found += _check_elements(whole)
        found += _check_data_padding(whole)
        turned = _check_orientation(whole)
        (left if turned is None else judged).append(
            "axis of the blocks" + (", because there are too few blocks" if turned is None else "")
        )
        found += turned or []
    left.append("order of the scales in memory: formats.identify compares it with a plain grid")
    found.sort(key=lambda d: d.severity != "error")
    return Findings(found, scope=Scope(tuple(judged), tuple(left)))


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
        tile = form.order.tile
        if have == grid[0] * grid[1] * (L or 1):
            facts["why"] = f"one scale per block, not padded to {tile[0]} x {tile[1]}"
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
    pitch = stored_shape(form, shape)[-1]
    if pitch % ALIGNMENT and stored_shape(form, shape)[-2] > 1:
        detail = "tensor maps and cuBLAS matrices can't have rows of this size"
        found.append(
            Diagnostic("row_pitch", "bytes of a row", pitch, "bytes", must, source, detail=detail, severity="warning")
        )
    return found


def _nan_codes(form: Format, raw: NDArray[Any]) -> NDArray[np.bool_]:
    if form.scale == "ue8m0":
        return np.asarray(raw == 0xFF)
    if form.scale == "ue4m3":
        return np.asarray((raw & 0x7F) == 0x7F)
    return np.isnan(raw.view(np.float32))


def _check_scales(whole: ScaledTensor) -> list[Diagnostic]:
    form, shape = whole.format, whole.shape
    raw = codes(stored_scales(whole.scales, form))
    used = np.zeros(raw.size, bool)
    places = scale_indices(form, shape)
    used[places] = True
    found = []
    nan = _nan_codes(form, raw)
    if (nan & used).any():
        count = int((nan & used).sum())
        at = tuple(int(i) for i in np.argwhere(nan[places])[0])
        are = "is" if count == 1 else "are"
        text = f"{counted(count, 'scale')} {are} NaN; the first belongs to (row, block) {at[-2:]}"
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
    return found


def _check_elements(whole: ScaledTensor) -> list[Diagnostic]:
    """Find NaN among the elements, and check their padding separately."""
    kind = whole.format.number
    if kind.nan is None:
        return []
    finite = kind.infinite if kind.infinite is not None else kind.nan - 1
    nan = (codes(whole.data) & kind.nan) > finite
    if not nan.any():
        return []
    count, at = int(nan.sum()), tuple(int(i) for i in np.argwhere(nan)[0])
    are = "is" if count == 1 else "are"
    text = f"{counted(count, 'element')} {are} NaN, first at {at}"
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
    """The smallest value that the largest element of a block can have, if the format's rule made the block's scale."""
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
