"""Many maps at once, vectorised: grouped GEMMs, ragged batches.

Many requests of one kind and rank as arrays: one column a field, each with one row for all or one row a map.

The rules of `violations` over columns: which maps break any of them.

Only the answer yes or no is computed here; the reasons come from `violations`, map by map, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError, given
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.limits import (
    CORNER_BOUNDS,
    SWIZZLE_SPAN,
    Architecture,
    architecture,
    bounds,
    refuse_unknown,
    unknown_addition,
)
from cute_py.tma.descriptor.plain_data import infer_kind
from cute_py.tma.descriptor.request import KINDS, TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Array = NDArray[numpy.int64]

_OPTIONAL: Final = ("interleave", "swizzle", "l2_promotion", "oob_fill", "mode")


@dataclass(frozen=True, slots=True)
class Columns:
    """`values[name]`: (1 or n,) int64 for a number, (1 or n, R) for a tuple.

    Numbers beyond int64 do not fit a column; `exact` then holds the requests themselves, and `values` is empty.
    """

    kind: type[TensorMap]
    count: int
    rank: int
    values: Mapping[str, Array]
    exact: tuple[TensorMap, ...] = ()

    def request(self, index: int) -> TensorMap:
        """Map `index` as a single request."""
        if self.exact:
            return self.exact[index]
        picked: dict[str, Any] = {}
        for name, column in self.values.items():
            row = column[index if len(column) > 1 else 0]
            picked[name] = tuple(row.tolist()) if column.ndim == 2 else int(row)
        return self.kind(**picked)


def columns(arrays: Mapping[str, Any]) -> Columns:
    """Columns from a mapping of field names to numbers, sequences or integer arrays.

    A number field is a number or (n,); a tuple field is (R,) or (n, R), strides and corners with their own lengths.
    Fields that have one row serve for all maps. The kind is inferred from the names, or given as `kind`.

    Raises:
        InvalidTypeError: not a mapping, or values that are no integers.
        InvalidValueError: unknown or missing names, or lengths that do not agree.
    """
    if not isinstance(arrays, Mapping):
        raise InvalidTypeError(f"fields of tensor maps must be a mapping, not {type(arrays).__name__}")
    kind = KINDS.get(infer_kind(arrays))
    if kind is None:
        raise InvalidValueError(f"unknown kind {given(arrays.get('kind'))}", {"known": ", ".join(KINDS)})
    unknown = sorted(set(map(str, arrays)) - {*kind.FIELDS, "kind"})
    missing = [name for name in kind.FIELDS if arrays.get(name) is None and name not in (*_OPTIONAL, "element_strides")]
    if unknown or missing:
        facts = {"unknown": ", ".join(unknown) or "none", "missing": ", ".join(missing) or "none"}
        raise InvalidValueError(f"names of fields of kind {kind.KIND!r} do not match", facts)
    raw = {name: _array(name, arrays[name]) for name in kind.FIELDS if arrays.get(name) is not None}
    return _assembled(kind, raw)


def _array(name: str, value: Any) -> Any:
    import numpy

    if value is None or isinstance(value, (str, bytes)):
        raise InvalidTypeError(f"{name} = {given(value)}; must be integers")
    try:
        array = numpy.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValueError(f"{name} has rows of different lengths") from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(numpy.int64)
    if array.dtype.kind not in "iuO":
        raise InvalidTypeError(f"{name} has elements of type {array.dtype}; must be integers")
    return array


def _assembled(kind: Any, raw: dict[str, Any]) -> Columns:
    import numpy

    shaped: dict[str, Any] = {}
    for name, array in raw.items():
        depth = 2 if name in kind.TUPLES else 1
        if array.ndim > depth or array.ndim < depth - 1:
            raise InvalidValueError(f"{name} has {array.ndim} axes; must have {depth - 1} or {depth}")
        shaped[name] = array.reshape(1, *array.shape) if array.ndim == depth - 1 else array
    lengths = {name: len(array) for name, array in shaped.items() if len(array) != 1}
    if len(set(lengths.values())) > 1:
        raise InvalidValueError(
            "fields have different numbers of maps", {name: f"{length} maps" for name, length in lengths.items()}
        )
    count = next(iter(lengths.values()), 1)
    rank = shaped["global_dim"].shape[1]
    if "element_strides" not in shaped:
        shaped["element_strides"] = numpy.ones((1, rank), numpy.int64)
    for name in kind.ENUMS:
        shaped.setdefault(name, numpy.zeros(1, numpy.int64))
    if all(_fits(array) for array in shaped.values()):
        return Columns(
            kind, count, rank, {name: array.astype(numpy.int64, copy=False) for name, array in shaped.items()}
        )
    exact = []
    for index in range(count):
        picked = {name: array[index if len(array) > 1 else 0] for name, array in shaped.items()}
        exact.append(kind(**{name: row.tolist() if name in kind.TUPLES else row for name, row in picked.items()}))
    return Columns(kind, count, rank, {}, tuple(exact))


def _fits(array: Any) -> bool:
    if array.dtype.kind == "O":
        return False
    return bool(array.dtype.kind == "i" or array.dtype.itemsize < 8 or array.size == 0 or int(array.max()) < 1 << 63)


def columns_of(requests: tuple[TensorMap, ...]) -> Columns | None:
    """Columns of requests of one kind, rank and set of lengths; None if they differ, or if one has a residue."""
    import numpy

    first = requests[0]
    kind = type(first)
    if not isinstance(first, (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)):
        raise InvalidTypeError(f"not a tensor map request: {type(first).__name__}")
    for request in requests:
        if type(request) is not kind or request.residue is not None or request.data_type is None:
            return None
    values: dict[str, Any] = {}
    for name, column in zip(kind.FIELDS, zip(*(r.field_values() for r in requests), strict=True), strict=True):
        if name in kind.TUPLES and len(set(map(len, column))) != 1:
            return None
        try:
            values[name] = numpy.array(column, numpy.int64)
        except OverflowError:
            return None
        if name in kind.TUPLES:
            values[name] = values[name].reshape(len(requests), len(column[0]))
    return Columns(kind, len(requests), first.rank, values)


def broken_rows(table: Columns, gpu: Architecture) -> NDArray[numpy.bool_]:
    """(n,) bool: the maps that break a rule, or that need bits that are not known."""
    import numpy

    broken = numpy.zeros(table.count, numpy.bool_)
    if not _form_fits(table):
        broken[:] = True
        return broken
    for mask in _masks(table, gpu):
        if mask.any():
            broken |= mask
    return broken


def _form_fits(table: Columns) -> bool:
    """Rank and lengths, which all maps share."""
    tiled = table.kind is TensorMapTiled
    if not (1 if tiled else 3) <= table.rank <= 5:
        return False
    wanted = {"global_strides": table.rank - 1, "element_strides": table.rank, "box_dim": table.rank}
    wanted |= {"pixel_box_lower_corner": table.rank - 2, "pixel_box_upper_corner": table.rank - 2}
    return all(table.values[name].shape[1] == length for name, length in wanted.items() if name in table.kind.TUPLES)


def _outside(values: Any, name: str) -> Any:
    least, most = bounds(name)
    return (values < least) | (values > most)


def _any_mode(mask: Any) -> Any:
    return mask.any(axis=1)


def _masks(table: Columns, gpu: Architecture) -> list[Any]:
    """Masks of (1 or n,) bool, true where a rule is broken."""
    import numpy

    v = table.values
    tiled = table.kind is TensorMapTiled
    masks = [_outside(v[name], name) for name in ("data_type", "interleave", "swizzle", "l2_promotion", "oob_fill")]
    data_type = numpy.clip(v["data_type"], 0, len(FORMATS) - 1)
    swizzle = numpy.clip(v["swizzle"], 0, 3)
    floats = numpy.array([row.is_float for row in FORMATS])
    size = numpy.array([row.bits >> 3 for row in FORMATS], numpy.int64)[data_type]
    masks.append((v["oob_fill"] == 1) & ~floats[data_type])
    if table.rank < 3:
        masks.append((v["interleave"] == 1) | (v["interleave"] == 2))
    grain = numpy.where(v["interleave"] == 2, 31, 15)
    masks.append(v["global_address"] & grain != 0)
    masks.append(_outside(v["global_address"], "address_range"))
    masks.append(_any_mode(_outside(v["global_dim"], "size")))
    masks.append(_any_mode(_outside(v["element_strides"], "element_stride")))
    if table.rank > 1:
        masks.append(_any_mode(v["global_strides"] & grain[:, None] != 0))
        masks.append(_any_mode(_outside(v["global_strides"], "stride_range")))
    inner = v["box_dim"][:, 0] if tiled else v["channels_per_pixel"]
    span = numpy.array([SWIZZLE_SPAN[i] or 1 << 62 for i in range(4)])[swizzle]
    row = numpy.clip(inner, 0, 1 << 16) * size
    masks.append(row & 15 != 0)
    masks.append((v["interleave"] == 0) & (row > span))
    if tiled:
        masks.append(_any_mode(_outside(v["box_dim"], "box")))
        visits = numpy.clip(v["box_dim"], 0, 256) // numpy.clip(v["element_strides"], 1, 8)
        masks.append(size * visits.prod(axis=1) > gpu.shared_memory_bytes)
        return masks
    masks.append(_outside(v["channels_per_pixel"], "channels"))
    masks.append(_outside(v["pixels_per_column"], "pixels"))
    pixels = numpy.clip(v["pixels_per_column"], 0, 1024)
    masks.append(row * pixels > gpu.shared_memory_bytes)
    if table.kind is not TensorMapIm2col:
        masks.append(_outside(v["mode"], "wide_mode"))
    return masks + _corner_masks(table)


def _corner_masks(table: Columns) -> list[Any]:
    import numpy

    v = table.values
    if table.kind is TensorMapIm2col:
        lower, upper = v["pixel_box_lower_corner"], v["pixel_box_upper_corner"]
    else:
        lower, upper = v["pixel_box_lower_corner_width"][:, None], v["pixel_box_upper_corner_width"][:, None]
    least, most = CORNER_BOUNDS[table.rank]
    masks = [_any_mode((corner < least) | (corner > most)) for corner in (lower, upper)]
    bounded = lower.shape[1]
    spatial = table.rank - 2
    interleaved = (v["interleave"] == 1) | (v["interleave"] == 2)
    sizes = v["global_dim"]
    last = numpy.where(interleaved[:, None], sizes[:, :spatial], sizes[:, 1 : spatial + 1]) - 1
    last = last.astype(numpy.int32).astype(numpy.int64)
    room = (last[:, :bounded] + upper - lower).astype(numpy.int32)
    masks.append(_any_mode(room < 0))
    if spatial > bounded:
        masks.append(_any_mode(last[:, bounded:] < 0))
    return masks


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
