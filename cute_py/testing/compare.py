"""Comparisons of layouts as functions, and of memories byte by byte."""

from __future__ import annotations

from typing import Any

from cute_py.argument_checks import expect_integer
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.analysis import MAX_COUNTED
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.offsets import offsets
from cute_py.tma.simulate.trace import Trace


def assert_same_function(found: Any, expected: Any) -> None:
    """Two layouts of the same size give the same offset for every index, whatever their profiles.

    Raises:
        AssertionError: the sizes differ, or an offset; the text names the first index.
        CuteError: no layouts, symbols, or more than 2**26 elements.

    >>> assert_same_function(Layout((2, 3), (1, 2)), Layout(6))
    >>> assert_same_function(Layout(6, 2), Layout(6))
    Traceback (most recent call last):
    ...
    AssertionError: index 1: 6:2 gives 2, 6:_1 gives 1 (5 of 6 differ)
    """
    import numpy as np

    counts = [_count(layout) for layout in (found, expected)]
    if counts[0] != counts[1]:
        raise AssertionError(f"{found} has {counts[0]} elements, {expected} has {counts[1]}")
    if counts[0] == 0:
        return
    indices = np.arange(counts[0])
    a, b = (np.asarray(offsets(layout, indices, of="call")).reshape(len(indices), -1) for layout in (found, expected))
    differ = np.flatnonzero((a != b).any(axis=1)) if a.shape == b.shape else indices
    if len(differ):
        i = int(differ[0])
        one, other = (_value(table[i]) for table in (a, b))
        raise AssertionError(
            f"index {i}: {found} gives {one}, {expected} gives {other} ({len(differ)} of {len(indices)} differ)"
        )


def _count(layout: Any) -> int:
    """Elements of a layout, or of a tensor."""
    if isinstance(layout, type) or not (isinstance(layout, Layout) or hasattr(layout, "domain")):
        raise InvalidTypeError(f"functions are compared of layouts, got {type(layout).__name__} {given(layout)}")
    return expect_integer(size(layout), f"the elements of {layout}", 0, MAX_COUNTED)


def _value(row: Any) -> Any:
    return row.tolist() if len(row) > 1 else int(row[0])


def assert_same_bytes(
    found: Any, expected: Any, descriptor: Any = None, coords: Any = (), smem_offsets: Any = (0,)
) -> None:
    """Two uint8 memories are equal; with a tensor map, the text says which element the first wrong byte belongs to.

    Args:
        found, expected: uint8 arrays of the same length.
        descriptor, coords, smem_offsets: the loads that filled shared memory, as `Trace` takes them.
    Raises:
        AssertionError: a byte differs.
        InvalidTypeError, InvalidValueError: something else than bytes.

    >>> cute.testing.assert_same_bytes([1, 2, 3], [1, 2, 3])
    """
    import numpy as np

    a, b = _memory(found, "found"), _memory(expected, "expected")
    if len(a) != len(b):
        raise AssertionError(f"{len(a)} bytes, expected {len(b)}")
    differ = np.flatnonzero(a != b)
    if not len(differ):
        return
    if descriptor is not None:
        raise AssertionError(str(Trace(descriptor, coords, smem_offsets).first_difference(a, b)))
    at = int(differ[0])
    raise AssertionError(f"byte {at}: 0x{a[at]:02x}, expected 0x{b[at]:02x} ({len(differ)} differ)")


def _memory(values: Any, what: str) -> Any:
    """A flat uint8 array of what was given; of integers that are no bytes none is cut off."""
    import numpy as np

    if isinstance(values, (bytes, bytearray, memoryview)):
        return np.frombuffer(values, np.uint8)
    try:
        array = np.asarray(values)
    except Exception:  # ragged lists, or whatever a foreign object raises
        raise InvalidTypeError(f"{what} must be an array of bytes, got {given(values)}") from None
    if array.dtype.kind not in "iu" and array.size:
        raise InvalidTypeError(f"{what} must be an array of bytes, got {type(values).__name__} {given(values)}")
    if array.size and not (array.min() >= 0 and array.max() <= 255):
        raise InvalidValueError(f"{what} holds {array.min()} to {array.max()}; must be bytes, 0 to 255")
    return array.astype(np.uint8).reshape(-1)
