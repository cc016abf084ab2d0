"""Compare layouts as functions, and memory contents byte by byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from cute_py.argument_checks import expect_integer, expect_integer_array
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout.analysis import MAX_COUNTED
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.offsets import offsets
from cute_py.tensor.tensor import Tensor
from cute_py.tma.emulator.geometry import Descriptor
from cute_py.tma.emulator.memory import Bytes, IntegersLike
from cute_py.tma.emulator.trace import Trace, byte_difference

Function: TypeAlias = Layout | ComposedLayout | Tensor
"""An object that maps an index to an offset."""
BytesLike: TypeAlias = bytes | bytearray | memoryview | Sequence[int] | NDArray[np.integer]
"""Bytes, or integers from 0 to 255."""


def assert_same_function(found: Function, expected: Function) -> None:
    """Assert that two layouts of the same size give the same offset for every index; profiles may differ.

    Raises:
        AssertionError: the sizes or an offset differ; the message has the first index that differs.
        CuteError: the operands are not layouts, contain symbols, or have more than 2**26 elements.

    >>> assert_same_function(Layout((2, 3), (1, 2)), Layout(6))
    >>> assert_same_function(Layout(6, 2), Layout(6))
    Traceback (most recent call last):
    ...
    AssertionError: index 1: 6:2 gives 2, 6:_1 gives 1 (5 of 6 differ)
    """
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
        text = f"index {i}: {found} gives {one}, {expected} gives {other} ({len(differ)} of {len(indices)} differ)"
        raise AssertionError(text)


def _count(layout: Function) -> int:
    """The number of elements of a layout or a tensor."""
    if not (isinstance(layout, Layout) or hasattr(type(layout), "domain")):
        raise InvalidTypeError(f"an operand must be a layout or a tensor, got {type(layout).__name__} {given(layout)}")
    return expect_integer(size(layout), f"the elements of {layout}", 0, MAX_COUNTED)


def _value(row: NDArray[np.generic]) -> str:
    return str(row.tolist() if len(row) > 1 else row[0])


def assert_same_bytes(
    found: BytesLike,
    expected: BytesLike,
    descriptor: Descriptor | None = None,
    coords: IntegersLike = (),
    smem_offsets: IntegersLike = (0,),
) -> None:
    """Assert that two byte arrays are equal. With a tensor map, the error names the tensor element of the first wrong
    byte.

    Args:
        found, expected: uint8 arrays of the same length.
        descriptor, coords, smem_offsets: the tensor map, coordinates and offsets of the loads that filled shared
            memory, as for `Trace`.
    Raises:
        AssertionError: a byte differs.
        InvalidTypeError, InvalidValueError: the arguments are not bytes.

    >>> cute.testing.assert_same_bytes([1, 2, 3], [1, 2, 3])
    """
    a, b = _memory(found, "found"), _memory(expected, "expected")
    if len(a) != len(b):
        raise AssertionError(f"found has {len(a)} bytes, but expected has {len(b)}")
    first = byte_difference(a, b)
    if first is not None and descriptor is not None:
        raise AssertionError(str(Trace(descriptor, coords, smem_offsets).first_difference(a, b)))
    if first is not None:
        raise AssertionError(first.headline)


def _memory(values: BytesLike, what: str) -> Bytes:
    """Convert the argument to a flat uint8 array. Integers outside 0 to 255 are refused, not truncated."""
    if isinstance(values, (bytes, bytearray, memoryview)):
        return np.frombuffer(values, np.uint8)
    array = expect_integer_array(values, what)
    if array.size and not (array.min() >= 0 and array.max() <= 255):
        raise InvalidValueError(f"{what} holds {array.min()} to {array.max()}; must be bytes, 0 to 255")
    return array.astype(np.uint8).reshape(-1)
