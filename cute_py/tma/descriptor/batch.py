"""Many maps at once, vectorised: grouped GEMMs, ragged batches.

The requests are columns: one array a field, with one row for all maps or one row a map. `violations` is the judge of
each rule; over columns only the answer yes or no is computed, and the reasons come from `violations`, map by map. A
test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import items_of, refuse_mask
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError, given
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.encode import encode, map_bytes
from cute_py.tma.descriptor.limits import (
    BY_NAME,
    CORNER_BOUNDS,
    RANGES,
    SWIZZLE_SPAN,
    Architecture,
    architecture,
    bounds,
    refuse_unknown,
    unknown_addition,
)
from cute_py.tma.descriptor.plain_data import expected_kind
from cute_py.tma.descriptor.request import (
    ENUM_OF,
    KINDS,
    TensorMap,
    TensorMapIm2col,
    TensorMapTiled,
    as_member,
    normal_request,
)
from cute_py.tma.descriptor.violations import breaks_none, violations

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Columns:
    """`values[name]`: (1 or n,) int64 for a number, (1 or n, R) for a tuple."""

    kind: type[TensorMap]
    count: int
    rank: int
    values: Mapping[str, Any]

    def request(self, index: int) -> TensorMap:
        """Map `index` as a single request."""
        picked: dict[str, Any] = {}
        for name, column in self.values.items():
            row = column[index if len(column) > 1 else 0]
            row = row.tolist() if hasattr(type(row), "tolist") else row  # an array of objects has plain numbers
            picked[name] = tuple(row) if name in self.kind.TUPLES else row
        return self.kind(**picked)


def columns(arrays: Mapping[str, Any]) -> Columns | tuple[TensorMap, ...]:
    """Columns from a mapping of field names to numbers, sequences or integer arrays.

    A number field is a number or (n,); a tuple field is (R,) or (n, R), strides and corners with their own lengths.
    Fields that have one row serve for all maps. The kind is inferred from the names, or given as `kind`. Numbers beyond
    int64 do not fit a column: then it is the requests themselves.

    Raises:
        InvalidValueError: unknown or missing names, or lengths that do not agree.
        InvalidTypeError: something else than integers.
    """
    import numpy

    kind = expected_kind(arrays, "names of fields", {name for name in arrays if arrays[name] is not None})
    shaped: dict[str, Any] = {}
    for name in kind.FIELDS:
        if arrays.get(name) is not None:
            value = arrays[name]
            if name in ENUM_OF and isinstance(value, str):
                value = as_member(ENUM_OF[name], value, name)
            array, depth = _array(name, value), 2 if name in kind.TUPLES else 1
            if not depth - 1 <= array.ndim <= depth:
                raise InvalidValueError(f"{name} has {array.ndim} axes; must have {depth - 1} or {depth}")
            shaped[name] = array.reshape(1, *array.shape) if array.ndim == depth - 1 else array
    lengths = {name: len(array) for name, array in shaped.items() if len(array) != 1}
    if len(set(lengths.values())) > 1:
        facts = {name: f"{length} maps" for name, length in lengths.items()}
        raise InvalidValueError("fields have different numbers of maps", facts)
    rank = shaped["global_dim"].shape[1]
    shaped.setdefault("element_strides", numpy.ones((1, rank), numpy.int64))
    for name in kind.ENUMS:
        shaped.setdefault(name, numpy.zeros(1, numpy.int64))
    table = Columns(kind, next(iter(lengths.values()), 1), rank, shaped)
    if not all(map(_fits, shaped.values())):
        return tuple([table.request(index) for index in range(table.count)])
    shaped.update({name: array.astype(numpy.int64, copy=False) for name, array in shaped.items()})
    return table


def _array(name: str, value: ArrayLike) -> NDArray[numpy.int64]:
    import numpy

    if isinstance(value, (str, bytes)):
        raise InvalidTypeError(f"{name} = {given(value)}; must be integers")
    refuse_mask(value, name)
    try:
        array = numpy.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValueError(f"{name} has rows of different lengths") from None
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(numpy.int64)
    if array.dtype.kind not in "iuO":
        raise InvalidTypeError(f"{name} has elements of type {array.dtype}; must be integers")
    return array


def _fits(array: NDArray[numpy.int64]) -> bool:
    kind, width = array.dtype.kind, array.dtype.itemsize
    return bool(kind == "i" or (kind == "u" and (width < 8 or array.size == 0 or int(array.max()) < 1 << 63)))


def columns_of(requests: tuple[TensorMap, ...]) -> Columns | None:
    """Columns of requests of one kind, rank and set of lengths; None if they differ, or if one has a residue."""
    import numpy

    first = requests[0]
    kind = type(first)
    if not isinstance(first, TensorMap):
        raise InvalidTypeError(f"not a tensor map request: {type(first).__name__}")
    if any(type(r) is not kind or r.residue is not None or r.data_type is None for r in requests):
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

    if not _form_fits(table):
        return numpy.ones(table.count, numpy.bool_)
    broken = numpy.zeros(table.count, numpy.bool_)
    for mask in _masks(table, gpu):
        if mask.any():
            broken |= mask.any(axis=1) if mask.ndim == 2 else mask
    return broken


def _form_fits(table: Columns) -> bool:
    """Rank and lengths, which all maps share."""
    rank = table.rank
    least, most = bounds("rank" if table.kind is TensorMapTiled else "rank_im2col")
    wanted = {"global_strides": rank - 1, "element_strides": rank, "box_dim": rank}
    wanted |= {"pixel_box_lower_corner": rank - 2, "pixel_box_upper_corner": rank - 2}
    fits = (table.values[name].shape[1] == length for name, length in wanted.items() if name in table.kind.TUPLES)
    return least <= rank <= most and all(fits)


def _outside(values: NDArray[numpy.int64], range_: tuple[int, int]) -> NDArray[numpy.bool_]:
    return (values < range_[0]) | (values > range_[1])


def _masks(table: Columns, gpu: Architecture) -> Iterator[NDArray[numpy.bool_]]:
    """Masks of (1 or n,) or (1 or n, R) bool, true where a rule is broken."""
    import numpy

    v, tiled = table.values, table.kind is TensorMapTiled
    for name, rule in RANGES.items():
        if name in v:
            yield _outside(v[name], bounds(rule))
    data_type = numpy.clip(v["data_type"], 0, len(FORMATS) - 1)
    size = numpy.array([row.bits >> 3 for row in FORMATS], numpy.int64)[data_type]
    yield (v["oob_fill"] == 1) & ~numpy.array([row.is_float for row in FORMATS])[data_type]
    sliced = (v["interleave"] == 1) | (v["interleave"] == 2)
    if table.rank < bounds("rank_interleave")[0]:
        yield sliced
    grains = [BY_NAME["stride_alignment" + name].multiple for name in ("", "_interleave_32b")]
    remainder = numpy.where(v["interleave"] == 2, grains[1], grains[0]) - 1
    yield v["global_address"] & remainder != 0
    yield v["global_strides"] & remainder[:, None] != 0
    # Clipped, so that no product of numbers that are refused anyway overflows.
    row = numpy.clip(v["box_dim"][:, 0] if tiled else v["channels_per_pixel"], 0, 1 << 16) * size
    yield row % BY_NAME["inner_bytes"].multiple != 0
    spans = numpy.array([SWIZZLE_SPAN[i] or 1 << 62 for i in range(4)])
    yield (v["interleave"] == 0) & (row > spans[numpy.clip(v["swizzle"], 0, 3)])
    if tiled:
        steps = numpy.clip(v["element_strides"], *bounds("element_stride"))
        visits = numpy.clip(v["box_dim"], 0, bounds("box")[1]) // steps
        yield size * visits.prod(axis=1) > gpu.shared_memory_bytes
        return
    yield row * numpy.clip(v["pixels_per_column"], 0, bounds("pixels")[1]) > gpu.shared_memory_bytes
    lower, upper = _corners(table, v)
    yield _outside(lower, CORNER_BOUNDS[table.rank])
    yield _outside(upper, CORNER_BOUNDS[table.rank])
    bounded, spatial, sizes = lower.shape[1], table.rank - 2, v["global_dim"]
    last = numpy.where(sliced[:, None], sizes[:, :spatial], sizes[:, 1 : spatial + 1]) - 1
    last = last.astype(numpy.int32).astype(numpy.int64)  # the driver computes in 32 bits
    yield (last[:, :bounded] + upper - lower).astype(numpy.int32) < 0
    yield last[:, bounded:] < 0


def _corners(
    table: Columns, values: Mapping[str, NDArray[numpy.int64]]
) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
    """(1 or n, corners) of the lower and the upper corner; of wide maps one corner, W."""
    if table.kind is TensorMapIm2col:
        return values["pixel_box_lower_corner"], values["pixel_box_upper_corner"]
    return values["pixel_box_lower_corner_width"][:, None], values["pixel_box_upper_corner_width"][:, None]


CHUNK: Final = 2048
"""Maps that are assembled together: 256 KiB of bytes, so that they stay in cache."""
FEW: Final = 48
"""Maps up to which one by one is faster: columns take the time of so many before the first map."""
LISTED: Final = 8
"""Illegal maps that an error lists."""


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
        TmaLimitError: maps break rules; `.violations` has those of the first illegal maps, which the text numbers.
        UnknownFactError: as `encode`.
        InvalidTypeError, InvalidValueError: values that are not integers, names or lengths that do not fit.

    >>> addresses = [4096, 8192, 16384]
    >>> encode_many({"data_type": 6, "global_address": addresses, "global_dim": (64, 8), "global_strides": (128,),
    ...              "box_dim": (64, 8)}).shape
    (3, 128)
    """
    import numpy

    gpu = architecture(arch)
    few: Sequence[TensorMap] | None
    requests: tuple[TensorMap, ...] = ()
    if isinstance(arrays, Mapping):
        few = _few(arrays)
    elif isinstance(arrays, Iterable) and getattr(arrays, "ndim", 1) != 0:
        requests = items_of(arrays, "the requests")
        few = requests if len(requests) <= FEW and all(isinstance(one, TensorMap) for one in requests) else None
    else:
        raise InvalidTypeError(f"fields of tensor maps must be a mapping, not {type(arrays).__name__}")
    maps: list[bytes] | None = None
    if few is not None:
        try:
            maps = [map_bytes(one) if breaks_none(one, gpu) else encode(one, arch=arch) for one in few]
        except CuteError:  # the text of a refusal numbers the maps
            maps = None
    if maps is None:
        table = columns(arrays) if isinstance(arrays, Mapping) else columns_of(requests) or requests
        if isinstance(table, Columns):
            return _assembled(table, arch)
        maps = [encode(one, arch=arch) for one in table]
    return numpy.ndarray((len(maps), f.MAP_BYTES), numpy.uint8, bytearray().join(maps))


_DEFAULTS: Final[dict[type[TensorMap], list[Any]]] = {
    kind: [0 if name in kind.ENUMS and name != "data_type" else None for name in kind.FIELDS] for kind in KINDS.values()
}
_PLACES: Final = {
    kind: {name: (place, int(name in kind.TUPLES)) for place, name in enumerate(kind.FIELDS)} for kind in KINDS.values()
}
"""Name of a field -> its index, and the axes of its value."""
_INT: Final = frozenset((int,))


def _few(arrays: Mapping[str, Any]) -> list[TensorMap] | None:
    """The requests of at most `FEW` maps whose fields are plain integers, tuples of them, and arrays of integers, with
    numbers in place of members of enums; None of more maps, and of anything else: `columns` takes or refuses it."""
    import numpy

    try:
        kind = expected_kind(arrays, "names of fields", arrays.keys())
    except CuteError:  # `columns` says why
        return None
    if "kind" in arrays:
        arrays = {name: value for name, value in arrays.items() if name != "kind"}
    places, first = _PLACES[kind], _DEFAULTS[kind].copy()
    varying: list[tuple[int, list[Any]]] = []
    plain: list[object] = []
    for name, value in arrays.items():
        place, axes = places[name]
        sort = type(value)
        if sort is int:
            if axes:
                return None
        elif sort is tuple:
            if not axes:
                return None
            plain += value
        else:
            if sort is not numpy.ndarray or value.dtype.kind not in "iu" or value.size > FEW * f.MAX_RANK:
                return None
            more, rows = value.ndim - axes, value.tolist()
            if more == 1 and 1 <= len(rows) <= FEW:
                if len(rows) > 1:
                    varying.append((place, list(map(tuple, rows)) if axes else rows))
                rows = rows[0]
            elif more:
                return None
            value = tuple(rows) if axes else rows
        first[place] = value
    if not _INT.issuperset(map(type, plain)):
        return None
    if "element_strides" not in arrays:
        first[places["element_strides"][0]] = (1,) * len(first[places["global_dim"][0]])
    if not varying:
        return [normal_request(kind, *first)]
    if len({len(rows) for _, rows in varying}) > 1:
        return None
    requests = []
    for index in range(len(varying[0][1])):
        for place, rows in varying:
            first[place] = rows[index]
        requests.append(normal_request(kind, *first))
    return requests


def _assembled(table: Columns, arch: str) -> NDArray[numpy.uint8]:
    """The bytes of all maps of a table, column by column."""
    import numpy

    _refuse_illegal(table, arch)
    words = numpy.empty((table.count, 16), numpy.uint64)
    for start in range(0, table.count, CHUNK):
        stop = min(start + CHUNK, table.count)
        _fill(words[start:stop], table, slice(start, stop))
    if not numpy.little_endian:
        words = words.byteswap()
    return words.view(numpy.uint8)


def _refuse_illegal(table: Columns, arch: str) -> None:
    """Raise for the maps that `broken_rows` finds, with the messages of `violations`."""
    import numpy

    bad = numpy.flatnonzero(broken_rows(table, architecture(arch)))
    if len(bad) == 0:
        return
    facts: dict[str, object] = {}
    found = []
    for index in bad[:LISTED].tolist():
        request = table.request(index)
        own = violations(request, arch=arch)
        if not own and (row := unknown_addition(request)) is not None:
            raise refuse_unknown(row)
        if own:
            found += own
            facts[f"map {index}"] = "; ".join(violation.message for violation in own)
    if len(bad) > LISTED:
        facts["more"] = f"{len(bad) - LISTED} maps"
    raise TmaLimitError(f"{len(bad)} of {table.count} maps break rules of {arch}", facts, violations=found)


def _fill(words: NDArray[numpy.uint64], table: Columns, rows: slice) -> None:
    """Write some maps, word by word; they break no rule."""
    import numpy

    v = {name: values[rows] if len(values) > 1 else values for name, values in table.values.items()}
    into: dict[int, Any] = {}

    def put(position: int, value: NDArray[numpy.int64] | numpy.int64) -> None:
        word, shift = divmod(position, 64)
        shifted = value << shift if shift else value
        into[word] = shifted if word not in into else into[word] | shifted

    codes = numpy.array([row.code or 0 for row in FORMATS], numpy.int64)
    rounds = numpy.array([row.tf32_round for row in FORMATS], numpy.int64)
    put(0, v["global_address"])
    put(f.P_RANK, numpy.int64(table.rank - 1))
    put(f.P_FORMAT, codes[v["data_type"]])
    put(f.P_TF32, rounds[v["data_type"]])
    for name, position in (
        *(("interleave", f.P_INTERLEAVE), ("swizzle", f.P_SWIZZLE)),
        *(("oob_fill", f.P_OOB), ("l2_promotion", f.P_L2)),
    ):
        put(position, v[name])
    for mode in range(table.rank - 1):
        units = v["global_strides"][:, mode] >> 4
        put(f.P_STRIDE_LOW[mode], units & 0xFFFFFFFF)
        put(f.P_STRIDE_HIGH[mode], units >> 32)
    for mode in range(table.rank):
        put(f.P_DIM[mode], v["global_dim"][:, mode] - 1)
        put(f.P_ELEMENT_STRIDE[mode], v["element_strides"][:, mode] - 1)
    note = numpy.array([row.bits >> 3 for row in FORMATS], numpy.int64)[v["data_type"]]
    if table.kind is TensorMapTiled:
        for mode in range(table.rank):
            put(f.P_BOX[mode], v["box_dim"][:, mode] - 1)
            note = note * (v["box_dim"][:, mode] // v["element_strides"][:, mode])
    else:
        put(f.P_LOAD_MODE, numpy.int64(1))
        put(f.P_CHANNELS, v["channels_per_pixel"] - 1)
        put(f.P_PIXELS, v["pixels_per_column"] - 1)
        note = note * v["channels_per_pixel"] * v["pixels_per_column"]
        width = f.CORNER_WIDTH[table.rank]
        for corner, position in zip(_corners(table, v), (f.P_LOWER, f.P_UPPER), strict=True):
            for i in range(corner.shape[1]):  # two's complement, W lowest
                put(position + i * width, corner[:, i] & ((1 << width) - 1))
    put(f.P_NOTE_BYTES, note)
    put(f.P_NOTE_ALIGNMENT, numpy.array([f.SMEM_ALIGNMENT[i] for i in range(4)], numpy.int64)[v["swizzle"]])
    for word in range(16):
        words[:, word] = numpy.asarray(into[word]).view(numpy.uint64) if word in into else 0
