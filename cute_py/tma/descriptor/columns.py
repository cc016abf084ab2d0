"""Many requests of one kind and rank as arrays: one column a field, each with one row for all or one row a map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor.json_form import KINDS, infer_kind
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled

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
