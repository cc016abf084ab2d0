"""Convert requests to and from plain data: dicts for JSON, numpy arrays and .npy files.

A dict has the fields of the request, with enums as numbers or names. The shape and strides of an array are outermost
first, as in numpy; the modes of the request are innermost first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import expect_having, expect_integer, expect_integers, expect_path
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import FileFormatError, InvalidTypeError, InvalidValueError, given, system_reason
from cute_py.tma.descriptor.data_types import format_of
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import pack
from cute_py.tma.descriptor.fields import MAP_BYTES
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.request import KINDS, TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy

__all__ = ["from_json", "request_of_array", "request_of_npy", "to_json"]

_OPTIONAL: Final = frozenset(("element_strides", "interleave", "swizzle", "l2_promotion", "oob_fill", "mode"))


_KEYS: Final = {kind: frozenset((*kind.FIELDS, "kind")) for kind in KINDS.values()}
_REQUIRED: Final = {kind: frozenset(kind.FIELDS) - _OPTIONAL for kind in KINDS.values()}


def to_json(request: TensorMap) -> dict[str, Any]:
    """Convert a request to a dict for json.dumps, with names of enum members and lists of integers.

    For a request with a residue, the dict also has `map`: the 128 bytes that it was decoded from, in hexadecimal.

    >>> to_json(TensorMapTiled(6, 4096, (64,), (), (64,)))["data_type"]
    'FLOAT16'
    """
    expect_having(request, ("KIND", "FIELDS", "field_values"), "a request of a tensor map")
    data: dict[str, Any] = {"kind": request.KIND}
    for name, value in zip(request.FIELDS, request.field_values(), strict=True):
        if isinstance(value, IntEnum):
            data[name] = value.name
        else:
            data[name] = list(value) if isinstance(value, tuple) else value
    if request.residue is not None:
        original = type(request).restore(request.residue.fields, None)
        data["map"] = (pack(original) ^ request.residue.bits).to_bytes(MAP_BYTES, "little").hex()
    return data


def from_json(data: Mapping[str, Any]) -> TensorMap:
    """Convert a dict as `to_json` returns it to a request.

    Enums may be numbers or names. If the kind is omitted, it is inferred from the other keys.

    Raises:
        InvalidTypeError: the data is not a mapping, or a value has the wrong type.
        InvalidValueError: a kind, key or name is unknown, or a key is missing.

    >>> from_json({"data_type": "bfloat16", "global_address": 0, "global_dim": [64], "global_strides": [],
    ...            "box_dim": [64]}).data_type
    TensorMapDataType.BFLOAT16
    """
    if not isinstance(data, Mapping):
        raise InvalidTypeError(f"a tensor map request must be a mapping, got {type(data).__name__}")
    kind = expected_kind(data, "keys of a request", set(data), "map")
    values: dict[str, Any] = {name: data[name] for name in kind.FIELDS if name in data}
    request: TensorMap = kind(**values)
    if data.get("map") is not None:
        found: TensorMap = decode(read_map(data["map"]))
        if isinstance(request, TensorMapIm2colWide) and isinstance(found, TensorMapIm2col):
            found = found.as_wide(request.mode)
        if type(found) is type(request):
            request = kind(**values, residue=found.residue)
    return request


def expected_kind(data: Mapping[str, Any], what: str, present: Set[Any], *more: str) -> type[TensorMap]:
    """Return the kind of request that a mapping names or its keys imply, and check that its keys fit that kind.

    Args:
        what: a noun for the keys in error messages; present: keys that count as given; more: other keys that are
            allowed.
    """
    if "kind" in data:
        name = data["kind"] if isinstance(data["kind"], str) else given(data["kind"])
    elif "pixel_box_lower_corner_width" in data or "pixel_box_upper_corner_width" in data:
        name = "im2col_wide"
    else:
        name = "im2col" if "pixel_box_lower_corner" in data or "channels_per_pixel" in data else "tiled"
    kind = KINDS.get(name)
    if kind is None:
        raise InvalidValueError(f"unknown kind {given(data.get('kind'))}", {"known": ", ".join(KINDS)})
    known, required = _KEYS[kind], _REQUIRED[kind]
    if known.issuperset(data) and present >= required:  # nearly always true, and faster than the lists
        return kind
    unknown = sorted([str(name) for name in data if name not in known and name not in more])
    missing = sorted(required.difference(present), key=kind.FIELDS.index)
    if unknown or missing:
        facts = {"unknown": ", ".join(unknown) or "none", "missing": ", ".join(missing) or "none"}
        raise InvalidValueError(f"the {what} of kind {kind.KIND!r} do not match", facts)
    return kind


MAX_AXES: Final = 64
"""Largest number of axes of an array in numpy 2. A tensor map of more than 5 modes is a request that breaks a rule."""


def request_of_array(
    shape: Sequence[int],
    dtype: DTypeLike,
    box: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    address: int = 0,
    **options: int | str | Sequence[int],
) -> TensorMapTiled:
    """Make the request for tiles of an array, from its shape, strides and element type.

    Args:
        shape: elements, outermost first, as in numpy.
        dtype: see `format_of`.
        box: elements, in the order of `shape`.
        strides: bytes, in the order of `shape`; row-major and dense if omitted.
        address: address of the first element, bytes.
        options: other fields of `TensorMapTiled` (swizzle, interleave, ...); element_strides are innermost first.
    Returns:
        a request with modes ordered by stride, the smallest first. It may be illegal (`violations` lists why). The
        stride of a mode of size 1 is rounded up to a multiple of 16 bytes, because the hardware never uses it.
    Raises:
        InvalidValueError: lengths differ, no axis has the stride of one element, or a stride is negative.
        InvalidTypeError: a value is not an integer.

    >>> request_of_array((1024, 512), "float16", (128, 64), swizzle=3).global_strides
    (1024,)
    """
    sizes, edges = expect_integers(shape, "shape"), expect_integers(box, "box")
    given_steps = None if strides is None else expect_integers(strides, "strides")
    axes = len(sizes) if given_steps is None else len(given_steps)
    if not len(sizes) == len(edges) == axes or not 1 <= axes <= MAX_AXES:
        raise InvalidValueError(
            f"shape has {len(sizes)} axes, box {len(edges)}, strides {axes}; must be equal, and 1 to {MAX_AXES}"
        )
    unknown = [name for name in options if name not in TensorMapTiled.FIELDS]
    if unknown:
        raise InvalidValueError(f"{unknown[0]!r} is not a field of a tiled tensor map")
    row = as_dtype(dtype)
    width = row.numpy.itemsize
    if given_steps is None:
        dense = [width]
        for size in sizes[:0:-1]:
            dense.insert(0, dense[0] * size)
        steps = expect_integers(dense, "strides of a dense array")
    else:
        steps = given_steps
    if min(steps) < 0:
        raise InvalidValueError(f"strides = {steps} bytes; must not be negative")
    # An axis of size 1 has no meaningful stride; it goes outermost unless it is the contiguous axis.
    order = sorted(range(len(sizes)), key=lambda axis: (steps[axis] != width, sizes[axis] == 1, steps[axis], -axis))
    if steps[order[0]] != width:
        raise InvalidValueError(
            f"no axis is contiguous: the strides are {steps} bytes, and an element has {width} bytes",
            hint="copy the array: numpy.ascontiguousarray(array)",
        )
    return TensorMapTiled(
        format_of(row),
        expect_integer(address, "address"),
        tuple(sizes[axis] for axis in order),
        tuple(steps[axis] if sizes[axis] != 1 else -(-steps[axis] // 16) * 16 for axis in order[1:]),
        tuple(edges[axis] for axis in order),
        **options,  # type: ignore[arg-type]
    )


def request_of_npy(
    path: str | Path, box: Sequence[int], *, address: int = 0, **options: int | str | Sequence[int]
) -> TensorMapTiled:
    """Make the request for tiles of the array in a .npy file; only its header is read.

    Args:
        path: the file.
        box, address, options: see `request_of_array`.
    Raises:
        FileFormatError: the file is not a .npy file, or it contains Python objects.
        See `request_of_array`.

    >>> import tempfile
    >>> import numpy
    >>> with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    ...     numpy.save(file.name, numpy.zeros((256, 128), numpy.float16))
    ...     print(request_of_npy(file.name, (64, 32), address=4096).global_strides)
    (256,)
    """
    shape, dtype, strides = _npy_header(expect_path(path, "path"))
    return request_of_array(shape, dtype, box, strides=strides, address=address, **options)


def _npy_header(path: Path) -> tuple[tuple[int, ...], Any, tuple[int, ...]]:
    """Read shape, dtype and byte strides from the header of a .npy file."""
    try:
        array = numpy.lib.format.open_memmap(path, mode="r")
    except OSError as problem:
        raise FileFormatError(f"can't read {path}: {system_reason(problem)}") from None
    except Exception as problem:  # a broken header may raise any error of the parser of Python literals
        raise FileFormatError(f"{path} is not a .npy file of numbers", {"numpy": str(problem)}) from None
    return array.shape, array.dtype, array.strides
