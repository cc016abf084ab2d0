"""The tiled request of an array: numpy's shape and strides, outermost first, turned to modes innermost first."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final

from cute_py.argument_checks import expect_integer, expect_integers
from cute_py.dtypes import as_dtype
from cute_py.errors import FileFormatError, InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor.formats import FORMATS, TensorMapDataType
from cute_py.tma.descriptor.request import TensorMapTiled

_FORMAT_OF: Final = {name: row.data_type for row in reversed(FORMATS) if row.code is not None for name in row.dtypes}
MAX_AXES: Final = 64
"""Axes of a numpy array, numpy 2; a tensor map of more than 5 is a request that breaks a rule."""

# float32 is moved as float32 unless something else is asked; the variants list it as well
_NATURAL: Final = {**_FORMAT_OF, "float32": TensorMapDataType.FLOAT32, "tfloat32": TensorMapDataType.TFLOAT32}


def format_of(dtype: object) -> TensorMapDataType:
    """The format that moves elements of a type unchanged (tfloat32 excepted, which rounds).

    Args:
        dtype: a numpy or ml_dtypes type, a `DType`, or a name.
    Raises:
        InvalidValueError: no format whose bits are known moves this type.
        InvalidTypeError: not a type.

    >>> format_of("float32"), format_of("float8_e4m3fn"), format_of("int16")
    (TensorMapDataType.FLOAT32, TensorMapDataType.UINT8, TensorMapDataType.UINT16)
    """
    row = as_dtype(dtype)
    found = _NATURAL.get(row.name)
    if found is None:
        raise InvalidValueError(
            f"no tensor map format for elements of type {row.name}", {"known": ", ".join(sorted(_NATURAL))}
        )
    return found


def request_of_array(
    shape: Sequence[int],
    dtype: object,
    box: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    address: int = 0,
    **options: Any,
) -> TensorMapTiled:
    """The request for tiles of an array.

    Args:
        shape: elements, outermost first, as numpy has it.
        dtype: as `format_of`.
        box: elements, in the order of `shape`.
        strides: bytes, in the order of `shape`; row-major and dense if left out.
        address: bytes, of the first element.
        options: further fields of `TensorMapTiled` (swizzle, interleave, ...), element_strides in its own order.
    Returns:
        modes ordered by stride, the smallest first; legal or not (`violations` tells). The stride of a mode of size 1
        is never used, and is rounded up to 16 bytes.
    Raises:
        InvalidValueError: lengths differ, no axis has the stride of one element, a stride is negative.
        InvalidTypeError: no integers.

    >>> request_of_array((1024, 512), "float16", (128, 64), swizzle=3).global_strides
    (1024,)
    """
    sizes, edges = expect_integers(shape, "shape"), expect_integers(box, "box")
    given_steps = None if strides is None else expect_integers(strides, "strides")
    axes = len(sizes) if given_steps is None else len(given_steps)
    if not len(sizes) == len(edges) == axes or not 1 <= axes <= MAX_AXES:
        raise InvalidValueError(
            f"shape has {len(sizes)} axes, box {len(edges)}, strides {axes}; must be the same, and 1 to {MAX_AXES}"
        )
    unknown = [name for name in options if name not in TensorMapTiled.FIELDS]
    if unknown:
        raise InvalidValueError(f"a tiled tensor map has no field {unknown[0]!r}")
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
    # An axis of size 1 has no meaningful stride; it goes outermost unless it is the one that is contiguous.
    order = sorted(range(len(sizes)), key=lambda axis: (steps[axis] != width, sizes[axis] == 1, steps[axis], -axis))
    if steps[order[0]] != width:
        raise InvalidValueError(
            f"no axis is contiguous: strides {steps} bytes, elements of {width} bytes",
            hint="copy the array: numpy.ascontiguousarray(array)",
        )
    return TensorMapTiled(
        format_of(row),
        expect_integer(address, "address"),
        tuple(sizes[axis] for axis in order),
        tuple(steps[axis] if sizes[axis] != 1 else -(-steps[axis] // 16) * 16 for axis in order[1:]),
        tuple(edges[axis] for axis in order),
        **options,
    )


def request_of_npy(path: str | Path, box: Sequence[int], *, address: int = 0, **options: Any) -> TensorMapTiled:
    """The request for tiles of the array in a .npy file; only its header is read.

    Args:
        path: the file.
        box, address, options: as `request_of_array`.
    Raises:
        FileFormatError: not a .npy file, or one of Python objects.
        As `request_of_array`.
    """
    if not isinstance(path, (str, PathLike)):
        raise InvalidTypeError(f"a path of a .npy file must be a text or a path, got {given(path)}")
    shape, dtype, strides = _npy_header(Path(path))
    return request_of_array(shape, dtype, box, strides=strides, address=address, **options)


def _npy_header(path: Path) -> tuple[tuple[int, ...], Any, tuple[int, ...]]:
    """Shape, dtype and byte strides, from the header of a .npy file."""
    import numpy

    try:
        array = numpy.lib.format.open_memmap(path, mode="r")
    except OSError as problem:
        raise FileFormatError(f"can't read {path}: {problem.strerror or problem}") from None
    except Exception as problem:  # a broken header raises whatever the parser of Python literals does
        raise FileFormatError(f"{path} is no .npy file of numbers", {"numpy": str(problem)}) from None
    return array.shape, array.dtype, array.strides
