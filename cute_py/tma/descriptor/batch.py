"""Many maps at once, vectorised: grouped GEMMs, ragged batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from cute_py.errors import InvalidTypeError, TmaLimitError
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.arch import architecture, refuse_unknown, unknown_addition
from cute_py.tma.descriptor.batch_rules import broken_rows
from cute_py.tma.descriptor.columns import Columns, columns, columns_of
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

CHUNK: Final = 2048
"""Maps that are assembled together: 256 KiB of bytes, so that they stay in cache."""
TOLD: Final = 8
"""Illegal maps that an error tells of."""


def encode_many(arrays: Mapping[str, Any] | Iterable[TensorMap], *, arch: str = "sm_90a") -> NDArray[numpy.uint8]:
    """The bytes of many maps: row i is what `encode` gives for map i.

    Args:
        arrays: field names to values, one kind and rank: a number field is a number or (n,), a tuple field (R,) or
            (n, R), as numpy arrays or sequences of integers, in the units of the requests; optional fields may be left
            out. Or requests of any kind, one a map.
        arch: the GPU whose limits hold.
    Returns:
        (n, 128) uint8.
    Raises:
        TmaLimitError: maps break rules; `.violations` has those of the first illegal maps, the text says which.
        UnknownFactError: as `encode`.
        InvalidTypeError, InvalidValueError: values that are no integers, names or lengths that do not fit.

    >>> addresses = [4096, 8192, 16384]
    >>> encode_many({"data_type": 6, "global_address": addresses, "global_dim": (64, 8), "global_strides": (128,),
    ...              "box_dim": (64, 8)}).shape
    (3, 128)
    """
    import numpy

    architecture(arch)
    if isinstance(arrays, Mapping):
        table = columns(arrays)
    elif isinstance(arrays, Iterable) and getattr(arrays, "ndim", 1) != 0:
        requests = tuple(arrays)
        if not requests:
            return numpy.empty((0, f.MAP_BYTES), numpy.uint8)
        shared = columns_of(requests)
        if shared is None:
            return _stacked(requests, arch)
        table = shared
    else:
        raise InvalidTypeError(f"fields of tensor maps must be a mapping, not {type(arrays).__name__}")
    if table.exact:
        return _stacked(table.exact, arch)
    _refuse_illegal(table, arch)
    words = numpy.empty((table.count, 16), numpy.uint64)
    for start in range(0, table.count, CHUNK):
        stop = min(start + CHUNK, table.count)
        _fill(words[start:stop], table, slice(start, stop))
    if not numpy.little_endian:
        words = words.byteswap()
    return words.view(numpy.uint8)


def _stacked(requests: tuple[TensorMap, ...], arch: str) -> NDArray[numpy.uint8]:
    import numpy

    joined = b"".join([encode(request, arch=arch) for request in requests])
    return numpy.frombuffer(bytearray(joined), numpy.uint8).reshape(len(requests), f.MAP_BYTES)


def _refuse_illegal(table: Columns, arch: str) -> None:
    """Raise for the maps that `broken_rows` finds, in the words of `violations`."""
    import numpy

    broken = broken_rows(table, architecture(arch))
    bad = numpy.flatnonzero(broken)
    if len(bad) == 0:
        return
    facts: dict[str, object] = {}
    found = []
    for index in bad[:TOLD].tolist():
        request = table.request(index)
        own = violations(request, arch=arch)
        if not own:
            row = unknown_addition(request)
            if row is not None:
                raise refuse_unknown(row)
            continue
        found += own
        facts[f"map {index}"] = "; ".join(violation.message for violation in own)
    if len(bad) > TOLD:
        facts["more"] = f"{len(bad) - TOLD} maps"
    raise TmaLimitError(f"{len(bad)} of {table.count} maps break rules of {arch}", facts, violations=found)


def _fill(words: NDArray[numpy.uint64], table: Columns, rows: slice) -> None:
    """Write the words of some maps; every rule holds for them."""
    import numpy

    def column(name: str, mode: int | None = None) -> Any:
        values = table.values[name]
        picked = values[rows] if len(values) > 1 else values
        return picked if mode is None else picked[:, mode]

    into: dict[int, Any] = {}

    def put(position: int, value: Any) -> None:
        word, shift = divmod(position, 64)
        shifted = value << shift if shift else value
        into[word] = shifted if word not in into else into[word] | shifted

    codes = numpy.array([row.code or 0 for row in FORMATS], numpy.int64)
    rounds = numpy.array([row.tf32_round for row in FORMATS], numpy.int64)
    widths = numpy.array([row.bits >> 3 for row in FORMATS], numpy.int64)
    data_type = column("data_type")
    put(0, column("global_address"))
    put(f.P_RANK, numpy.int64(table.rank - 1))
    put(f.P_FORMAT, codes[data_type])
    put(f.P_TF32, rounds[data_type])
    for name, position in (("interleave", f.P_INTERLEAVE), ("swizzle", f.P_SWIZZLE), ("oob_fill", f.P_OOB)):
        put(position, column(name))
    put(f.P_L2, column("l2_promotion"))
    for mode in range(table.rank - 1):
        units = column("global_strides", mode) >> 4
        put(f.P_STRIDE_LOW[mode], units & 0xFFFFFFFF)
        put(f.P_STRIDE_HIGH[mode], units >> 32)
    for mode in range(table.rank):
        put(f.P_DIM[mode], column("global_dim", mode) - 1)
        put(f.P_ELEMENT_STRIDE[mode], column("element_strides", mode) - 1)
    note = widths[data_type]
    if table.kind is TensorMapTiled:
        for mode in range(table.rank):
            put(f.P_BOX[mode], column("box_dim", mode) - 1)
            note = note * (column("box_dim", mode) // column("element_strides", mode))
    else:
        put(f.P_LOAD_MODE, numpy.int64(1))
        put(f.P_CHANNELS, column("channels_per_pixel") - 1)
        put(f.P_PIXELS, column("pixels_per_column") - 1)
        note = note * column("channels_per_pixel") * column("pixels_per_column")
        _put_corners(table, column, put)
    put(512, note)
    put(576, numpy.array([f.SMEM_ALIGNMENT[i] for i in range(4)], numpy.int64)[column("swizzle")])
    for word in range(16):
        if word in into:
            words[:, word] = numpy.asarray(into[word]).view(numpy.uint64)
        else:
            words[:, word] = 0


def _put_corners(table: Columns, column: Any, put: Any) -> None:
    width = f.CORNER_WIDTH[table.rank]
    mask = (1 << width) - 1
    if table.kind is TensorMapIm2col:
        for i in range(table.rank - 2):
            put(f.P_LOWER + i * width, column("pixel_box_lower_corner", i) & mask)
            put(f.P_UPPER + i * width, column("pixel_box_upper_corner", i) & mask)
    else:
        put(f.P_LOWER, column("pixel_box_lower_corner_width") & mask)
        put(f.P_UPPER, column("pixel_box_upper_corner_width") & mask)
