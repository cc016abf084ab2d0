"""Operands of `copy`: an array, a tensor over memory, or a pair (memory, layout).

Offset 0 of a pair's layout is the first element of its memory. The layout must stay within the memory.
"""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, replace
from typing import TypeAlias

from cute_py.copies.modes import NIBBLES, Pairing, byte_span, pair_elements, side_bounds
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given
from cute_py.layout.arguments import LayoutLike
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.tensor.array_views import ArrayLike, ArrayView, host_view
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.tensor import Tensor

Operand: TypeAlias = "ArrayLike | Tensor | tuple[ArrayLike, LayoutLike]"
"""One side of a copy."""


@dataclass(frozen=True, slots=True)
class OperandSide:
    """One side of a copy: memory, and the layout of its elements.

    view: the memory; its address is the address of the layout's offset 0. room: the range (first offset, one past the
    last) of the memory, in elements; None if unknown.
    """

    role: str
    view: ArrayView
    layout: LayoutLike
    room: tuple[int, int] | None

    @property
    def alignment(self) -> int:
        """Alignment of the address in bytes, at most 16."""
        return min(16, self.view.address & -self.view.address) if self.view.address else 16


def view_of_memory(array: ArrayLike) -> ArrayView:
    """Return a view of an array in host memory or on a device."""
    view = host_view(array)
    if view is None:
        from cute_py.gpu.arrays import array_view

        view = array_view(array)
    return view


def _device_at(address: int) -> int:
    from cute_py.gpu.arrays import device_at

    return device_at(address)


def _name_of_format(thing: object, role: str) -> InvalidTypeError:
    """The error for a string or a function in place of an operand; the hint writes the format that it names."""
    from cute_py import formats

    text, hint = thing if isinstance(thing, str) else getattr(thing, "__name__", ""), None
    with contextlib.suppress(CuteError):
        hint = f"the format is an object: formats.{formats.parse_format(text)}"
    if hint is None and isinstance(thing, str):
        with contextlib.suppress(CuteError):
            hint = f"formats.cast(source, {formats.number(text).name!r}) casts numbers"
    return InvalidTypeError(f"the {role} must be an array, a tensor, a pair or a Format, got {given(thing)}", hint=hint)


def side(thing: Operand, role: str, dtype: DTypeLike | None = None) -> OperandSide:
    """Return the memory and the layout of one side of a copy.

    Args:
        dtype: the element type of the layout of a pair, if it is not the type of the memory.
    Raises:
        InvalidTypeError: the operand is not an array, tensor or pair, a tensor has no memory, or a dtype is given
            without a pair.
        InvalidValueError: the array of a pair is not dense, or its size is not a multiple of the element size; or an
            array uses one byte for each element narrower than a byte. For other errors, see `host_view`.
    """
    if isinstance(thing, str) or inspect.isroutine(thing):
        raise _name_of_format(thing, role)
    if dtype is not None and not isinstance(thing, tuple):
        raise InvalidTypeError(f"dtype needs a pair (memory, layout), but the {role} is {given(thing)}")
    if isinstance(thing, tuple):
        if len(thing) != 2 or not isinstance(thing[1], (Layout, ComposedLayout)):
            raise InvalidTypeError(f"the {role} is a tuple; must be (array, layout), got {given(thing)}")
        view = view_of_memory(thing[0])
        step = 1
        for size, stride in sorted(zip(view.shape, view.strides, strict=True), key=lambda mode: abs(mode[1])):
            if size > 1 and stride != step:
                raise InvalidValueError(
                    f"the memory of the {role} is not dense", {"shape": view.shape, "strides": view.strides}
                )
            step *= size
        if dtype is None:
            _ = view.element_bytes
            return OperandSide(role, view, thing[1], (0, view.count))
        kind, bits = as_dtype(dtype), view.count * view.element_bytes * 8
        if bits % kind.bits:
            raise InvalidValueError.of_value(
                f"the memory of the {role}", bits // 8, f"be a multiple of {kind.bits} bits, one {kind}", "bytes"
            )
        return OperandSide(role, replace(view, dtype=kind), thing[1], (0, bits // kind.bits))
    if isinstance(thing, Tensor):
        engine = thing.engine
        if not hasattr(engine, "address") or not isinstance(thing.layout, (Layout, ComposedLayout)):
            raise InvalidTypeError(f"the {role} is a tensor, but its engine has no memory", {"engine": given(engine)})
        address = int(engine.address)
        if isinstance(engine, ArrayEngine):
            view = view_of_memory(engine.flat)
            _ = view.element_bytes
            room = -engine.origin, len(engine.flat) - engine.origin
            view = ArrayView(address, view.shape, view.strides, engine.dtype, None, view.readonly, engine.flat)
            return OperandSide(role, view, thing.layout, room)
        return OperandSide(
            role, ArrayView(address, (), (), engine.dtype, _device_at(address), False, engine), thing.layout, None
        )
    view = view_of_memory(thing)
    _ = view.element_bytes
    return OperandSide(role, view, Layout(view.shape, view.strides), None)


def paired(source: OperandSide, destination: OperandSide, nibbles: tuple[str, str] = NIBBLES) -> Pairing:
    """Pair the elements of two sides, after all checks that do not need a device. nibbles: as in `plan_copy`.

    Raises:
        InvalidValueError: sizes or element types differ, a layout leaves its memory, the destination is read-only or
            overlaps itself or the source. For other errors, see `pair_elements`.
    """
    a, b = source.view, destination.view
    found = []
    if a.dtype != b.dtype:
        text = f"source dtype {a.dtype} differs from destination dtype {b.dtype}, and this copy does not convert"
        found.append(Diagnostic("dtype", "dtype", text=text))
    if b.readonly:
        found.append(Diagnostic("read_only", "destination", text="the destination is read-only"))
    refuse(InvalidValueError, found)
    pairing = pair_elements(source.layout, destination.layout, a.dtype, nibbles)
    if pairing.refinement is None:
        return pairing
    reach = []
    for which, one in enumerate((source, destination)):
        first, size = byte_span(pairing.refinement, which, pairing.bits)
        reach.append((one.view.address + first, one.view.address + first + size))
        low, high = (end * pairing.bits // a.dtype.bits for end in side_bounds(pairing.refinement, which))
        high += pairing.bits // a.dtype.bits - 1
        if one.room is not None and (low < one.room[0] or high >= one.room[1]):
            width = f"{a.dtype.bits // 8} bytes" if a.dtype.bits % 8 == 0 else f"{a.dtype.bits} bits"
            text = (
                f"the {one.role} layout has the offsets {low} to {high}, but its memory at {one.view.address:#x} "
                f"has only {one.room[0]} to {one.room[1] - 1}, in elements of {width}"
            )
            found.append(Diagnostic("extent", one.role, text=text))
    if reach[0][0] < reach[1][1] and reach[1][0] < reach[0][1]:
        text = "the source and the destination overlap, but a copy has no defined order of elements"
        ranges: dict[str, object] = {
            one.role: f"{low:#x} to {high:#x}" for one, (low, high) in zip((source, destination), reach, strict=True)
        }
        found.append(Diagnostic("overlap", "destination", text=text, facts=ranges))
    refuse(InvalidValueError, found)
    return pairing
