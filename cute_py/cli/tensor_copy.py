"""From an array and a tile to an atom, as the commands do it: layouts, swizzle, atom, and the ways out when refused."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import cute_py as cute
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, GBasisError, InvalidValueError, TmaLimitError, shortened
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight
from cute_py.layout.leaf import Int
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.op import movable_type
from cute_py.tma.atom.tile_atom import expect_fits
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import architecture

SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
"""Name -> B of Sw<B,4,3> on bytes."""
SHARED_MEMORY = architecture("sm_90a").block_shared_memory_bytes
BASE_ADDRESS = 0x10_0000_0000
"""Where the emulated global tensor lies."""


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """An array laid out in emulated memory, and the atom that copies it."""

    bits: Any
    """The array's elements as unsigned integers, in the memory order of the copy."""
    dtype: DType
    atom: TmaAtom
    order: str


def parse_tile(text: str) -> tuple[int, ...]:
    """`128x64` -> (128, 64); rows first, as the array's shape.

    Raises:
        InvalidValueError: no positive integers, or more than five.

    >>> parse_tile("128x64")
    (128, 64)
    """
    parts = text.lower().replace(",", "x").split("x")
    if not all(re.fullmatch(r"\s*-?[0-9]{1,40}\s*", part) for part in parts):
        raise InvalidValueError(f"tile {shortened(repr(text), 80)}; must be sizes joined by x, such as 128x64")
    tile = tuple(int(p) for p in parts)
    if any(n < 1 for n in tile):
        raise InvalidValueError(f"tile {text!r}; every size must be at least 1")
    if len(tile) > MAX_RANK:
        raise InvalidValueError(f"tile {text!r} has {len(tile)} modes; a TMA box has at most 5")
    return tile


def full_tile(tile: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """A tile for every dimension: a shorter tile stands for the last dimensions."""
    if len(tile) > len(shape):
        raise InvalidValueError(f"a tile of {len(tile)} modes for an array of shape {shape}")
    return (1,) * (len(shape) - len(tile)) + tile


def swizzle_layout(tile: tuple[int, ...], swizzle: str, bits: int, order: str) -> Any:
    """The shared-memory layout of a tile: compact in the tensor's order, under a swizzle on bytes."""
    plain = Layout(tuple([Int(n) for n in tile]), LayoutRight if order == "row" else LayoutLeft)
    if SWIZZLES[swizzle] == 0:
        return plain
    return cute.ComposedLayout(cute.Swizzle(SWIZZLES[swizzle], 4, 3), cute.smem_ptr_flag(bits), plain)


def make_copy(array: Any, tile: tuple[int, ...], swizzle: str = "none", order: str | None = None) -> TensorCopy:
    """Lay an array out in memory and make the atom for a tile.

    Args:
        array: numpy array of rank 1 to 5; tile: one size per dimension, or for the last ones.
        order: 'row' (last dimension contiguous) or 'col'; default: as the array lies.
    Raises:
        TmaLimitError, GBasisError: with what would work, where the tile or the swizzle is at fault.
    """
    import numpy as np

    order = order or ("row" if array.flags.c_contiguous else "col")
    tile = full_tile(tile, array.shape)
    dtype = as_dtype(array.dtype)
    width = array.dtype.itemsize
    if width not in (1, 2, 4, 8):
        raise InvalidValueError(
            f"elements of {width} bytes ({dtype}); TMA moves 1, 2, 4 or 8", hint="view the array as float64 pairs"
        )
    bits = np.asarray(array.view(f"u{width}"), order="C" if order == "row" else "F")
    size = width * math.prod(tile)
    if size > SHARED_MEMORY:
        raise InvalidValueError(
            f"a tile of {'x'.join(map(str, tile))} takes {size} bytes; shared memory has {SHARED_MEMORY}"
        )
    try:
        atom = _atom(bits, dtype, tile, swizzle, order)
    except TmaLimitError as error:
        hint = _fixes(bits, dtype, tile, swizzle, order)
        raise TmaLimitError(error.headline, error.facts, hint, error.violations) from None
    except GBasisError as error:
        raise GBasisError(error.condition, error.facts, _fixes(bits, dtype, tile, swizzle, order)) from None
    return TensorCopy(bits, dtype, atom, order)


def _atom(bits: Any, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str, suggest: bool = False) -> TmaAtom:
    moved = dtype if dtype.bits == bits.dtype.itemsize * 8 else as_dtype(f"uint{bits.dtype.itemsize * 8}")
    strides = tuple([Int(1) if s == bits.itemsize else s // bits.itemsize for s in bits.strides])
    gmem = cute.make_tensor(cute.make_gmem_ptr(BASE_ADDRESS, moved), Layout(bits.shape, _unit(strides, bits, order)))
    internal = movable_type(moved)
    return make_tma_copy(
        "SM90_TMA_LOAD",
        gmem,
        swizzle_layout(tile, swizzle, moved.bits, order),
        tile,
        internal_dtype=None if internal == moved.name else internal,
        suggest=suggest,
    )


def _unit(strides: tuple[Any, ...], bits: Any, order: str) -> tuple[Any, ...]:
    """Exactly one static stride 1: that of the contiguous dimension. The stride of a dimension of size 1 is never
    taken, and is rounded up to 16 bytes, as TMA asks of all strides but the first."""
    grain = max(1, 16 // bits.itemsize)
    contiguous = len(strides) - 1 if order == "row" else 0
    n = 1
    out: list[Any] = [0] * len(strides)
    for i in range(len(strides)) if order == "col" else reversed(range(len(strides))):
        out[i] = Int(1) if i == contiguous else n if bits.shape[i] > 1 else -(-n // grain) * grain
        n *= int(bits.shape[i])
    return tuple(out)


def _fixes(bits: Any, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str) -> str | None:
    """Tiles and swizzles that were tried and work, in the other order if none does in this one, or what has to change
    in the tensor."""
    works = _working(bits, dtype, tile, swizzle, order)
    if not works:
        import numpy as np

        other = "col" if order == "row" else "row"
        turned = np.asarray(bits, order="C" if other == "row" else "F")
        works = [f"{label} --order {other}" for label in _working(turned, dtype, tile, swizzle, other)]
    hint = f"these work: {', '.join(works[:4])}" if works else _thinner(bits, dtype, swizzle)
    if hint is None:  # no tile helps; the tensor itself has to change
        try:
            _atom(bits, dtype, tile, swizzle, order, suggest=True)
        except TmaLimitError as again:
            hint = again.hint
        except CuteError:
            pass
    return hint


def _thinner(bits: Any, dtype: DType, swizzle: str) -> str | None:
    """How the array without its dimensions of size 1 is copied, if that works."""
    shape = tuple([n for n in bits.shape if n > 1]) or (1,)
    if len(shape) == bits.ndim:
        return None
    works = _working(bits.reshape(shape), dtype, (1,) * len(shape), swizzle, "row")
    return f"save it without its dimensions of size 1, as {shape}; then {works[0]} works" if works else None


def _working(bits: Any, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str) -> list[str]:
    """Arguments that make an atom."""
    works: list[str] = []
    inner = len(tile) - 1 if order == "row" else 0
    width = int(bits.dtype.itemsize)
    spans = {"none": 256 * width, "32B": 32, "64B": 64, "128B": 128}
    grain = max(1, 16 // width)  # the inner side of a box is a multiple of 16 bytes
    near = tuple([min(-(-n // grain) * grain if i == inner else n, 256) for i, n in enumerate(tile)])
    others = ("128B", "64B", "32B") if swizzle != "none" else ()
    tries = [(near, name) for name in (swizzle, *others, "none")]
    for name in (swizzle, "128B", "64B", "32B", "none"):
        for size in (spans[name] // width, 16 // width if width <= 16 else 1):
            box = tuple([size if i == inner else min(n, 256) for i, n in enumerate(tile)])
            tries.append((box, name))
    for box, name in tries:
        label = f"--tile {'x'.join(map(str, box))} --swizzle {name}"
        if label in works or (box == tile and name == swizzle) or width * math.prod(box) > SHARED_MEMORY:
            continue
        try:
            expect_fits(_atom(bits, dtype, box, name, order))
        except CuteError:
            continue
        works.append(label)
    return works
