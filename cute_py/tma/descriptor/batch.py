"""Encode many tensor maps in one call with numpy, for grouped GEMMs and ragged batches.

The requests are columns: one array per field, with one row for all maps or one row per map. The functions that check
and pack one map (`violations.map_judge`, `encode.packer`) also accept columns. If maps break rules, `violations`
gives the reasons, map by map.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import items_of, refuse_mask
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError, given
from cute_py.tma.descriptor import fields as f
from cute_py.tma.descriptor.encode import encode, legal_map, packer
from cute_py.tma.descriptor.expressions import RequestForm, legal_form
from cute_py.tma.descriptor.limits import Architecture, architecture, refuse_unknown, unknown_addition
from cute_py.tma.descriptor.plain_data import expected_kind
from cute_py.tma.descriptor.request import (
    ENUM_OF,
    KINDS,
    TensorMap,
    as_member,
    normal_request,
)
from cute_py.tma.descriptor.violations import has_legal_rank, map_judge, violations

MOST_NUMBERS: Final = 1 << 26
"""Maximum number of values of a field: enough for 13 million maps of rank 5. A view may repeat a value more often."""

if TYPE_CHECKING:
    import numpy
    from numpy.typing import ArrayLike, NDArray
else:
    from cute_py.optional_packages import numpy


@dataclass(frozen=True, slots=True)
class Columns:
    """The fields of n requests as arrays.

    `values[name]` is int64, (1 or n,) for a field with one number and (1 or n, R) for a tuple field.
    """

    kind: type[TensorMap]
    count: int
    rank: int
    values: Mapping[str, Any]

    def request(self, index: int) -> TensorMap:
        """Return the request of map `index`."""
        picked: dict[str, Any] = {}
        for name, column in self.values.items():
            row = column[index if len(column) > 1 else 0]
            row = row.tolist() if hasattr(type(row), "tolist") else row  # an array of objects holds plain numbers
            picked[name] = tuple(row) if name in self.kind.TUPLES else row
        return self.kind(**picked)

    @property
    def form(self) -> RequestForm:
        """The kind of map and the lengths of the tuples, which all maps share."""
        return RequestForm(self.kind, tuple([self.values[name].shape[1] for name in self.kind.TUPLES]))

    def source(self, rows: slice = slice(None), *, plain: bool = True) -> SimpleNamespace:
        """Return the fields in the form that functions of `expressions` accept: (n,) for a number, R arrays of (n,) for
        a tuple.

        With `plain`, a field that has one row for all maps is an integer, or R integers.
        """
        fields: dict[str, Any] = {}
        for name, column in self.values.items():
            if len(column) == 1 and plain:
                fields[name] = column[0].tolist()
            else:
                fields[name] = (column if len(column) == 1 else column[rows]).T
        return SimpleNamespace(**fields)


def columns(arrays: Mapping[str, Any]) -> Columns | tuple[TensorMap, ...]:
    """Make columns from a mapping of field names to integers, sequences of integers, or integer arrays.

    A scalar field is an integer or (n,). A tuple field is (R,) or (n, R); strides and corners are shorter, as in a
    request. A field with one row applies to all maps. The kind of map is inferred from the names, or given as `kind`.
    If an integer does not fit in int64, the function returns the requests instead of columns.

    Raises:
        InvalidValueError: a name is unknown or missing, or the lengths do not agree.
        InvalidTypeError: a value is not an integer.
    """
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
        raise InvalidValueError("the fields have different numbers of maps", facts)
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
    if isinstance(value, (str, bytes)):
        raise InvalidTypeError(f"{name} must be integers, got {given(value)}")
    refuse_mask(value, name)
    try:
        array = numpy.asarray(value)
    except (ValueError, TypeError, OverflowError):
        raise InvalidValueError(f"{name} has rows of different lengths") from None
    except MemoryError:  # an array of many elements in a list
        raise InvalidValueError(f"{name} does not fit in memory; must have at most {MOST_NUMBERS} numbers") from None
    if array.size > MOST_NUMBERS:
        raise InvalidValueError(f"{name} has {array.size} numbers; must have at most {MOST_NUMBERS}")
    if array.size == 0 and array.dtype.kind == "f":
        array = array.astype(numpy.int64)
    if array.dtype.kind not in "iuO":
        raise InvalidTypeError(f"{name} has elements of type {array.dtype}; must be integers")
    return array


def _fits(array: NDArray[numpy.int64]) -> bool:
    kind, width = array.dtype.kind, array.dtype.itemsize
    return bool(kind == "i" or (kind == "u" and (width < 8 or array.size == 0 or int(array.max()) < 1 << 63)))


def columns_of(requests: tuple[TensorMap, ...]) -> Columns | None:
    """Make columns from requests with equal kind and lengths; None if these differ or a request has a residue."""
    first = requests[0]
    kind = type(first)
    if not isinstance(first, TensorMap):
        raise InvalidTypeError(f"expected a tensor map request, got {type(first).__name__}")
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
    """Return an (n,) bool array that marks the maps that break a rule or need unknown bits."""
    broken = numpy.ones(table.count, numpy.bool_)
    if table.form != legal_form(table.kind, table.rank) or not has_legal_rank(table.kind, table.rank):
        return broken
    judged = map_judge(table.form, strict=False)
    for plain in (True, False):
        source = table.source(plain=plain)
        try:
            broken[:] = numpy.asarray(judged(source, source.data_type, gpu.shared_memory_bytes)) != 0
        except OverflowError:  # a product of illegal integers overflows: arrays wrap, but break a range too
            continue
        break
    return broken


CHUNK: Final = 2048
"""Number of maps that are assembled together: 256 KiB of bytes, so that they stay in cache."""
FEW: Final = 48
"""Up to this many maps are encoded faster one by one, because columns have a fixed cost."""
LISTED: Final = 8
"""Largest number of illegal maps that an error lists."""


def encode_many(arrays: Mapping[str, Any] | Iterable[TensorMap], *, arch: str = "sm_90a") -> NDArray[numpy.uint8]:
    """Encode many maps in one call; row i is the result of `encode` for map i.

    Args:
        arrays: a mapping of field names to values, for maps of one kind and rank, or a sequence of requests of any
            kind, one per map. In a mapping, a scalar field is an integer or (n,), and a tuple field is (R,) or (n, R).
            Values are numpy arrays or sequences of integers, in the units of the requests. Optional fields may be
            omitted.
        arch: the GPU whose limits apply.
    Returns:
        (n, 128) uint8.
    Raises:
        TmaLimitError: some maps break rules; `.violations` lists the rules that the first illegal maps break, and the
            message gives the indices of these maps.
        UnknownFactError: see `encode`.
        InvalidTypeError, InvalidValueError: a value is not an integer, or names or lengths do not fit.

    >>> addresses = [4096, 8192, 16384]
    >>> encode_many({"data_type": 6, "global_address": addresses, "global_dim": (64, 8), "global_strides": (128,),
    ...              "box_dim": (64, 8)}).shape
    (3, 128)
    """
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
            maps = [legal_map(one, gpu) or encode(one, arch=arch) for one in few]
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


def _few(arrays: Mapping[str, Any]) -> list[TensorMap] | None:  # noqa: C901 - each kind of value is a case
    """Return the requests of at most `FEW` maps with plain fields; None for any other input, which `columns` handles.

    A plain field is an integer, a tuple of integers, or an integer array; enum fields are given by number.
    """
    try:
        kind = expected_kind(arrays, "names of fields", arrays.keys())
    except CuteError:  # `columns` reports why
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
    """Return the bytes of all maps, computed column by column."""
    _refuse_illegal(table, arch)
    numbers, positions, widths = packer(table.form, strict=False)
    maps = numpy.zeros((table.count, f.MAP_BYTES), numpy.uint8)
    places = [maps.view(f"<u{width // 8}")[:, at // width] for at, width in zip(positions, widths, strict=True)]
    for start in range(0, table.count, CHUNK):
        rows = slice(start, start + CHUNK)
        source = table.source(rows)
        for place, number in zip(places, numbers(source, source.data_type), strict=True):
            place[rows] = number
    return maps


def _refuse_illegal(table: Columns, arch: str) -> None:
    """Raise one error for the maps that `broken_rows` marks, with the messages of `violations`."""
    bad = numpy.flatnonzero(broken_rows(table, architecture(arch)))
    if len(bad) == 0:
        return
    facts: dict[str, object] = {}
    found: list[Diagnostic] = []
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
