"""The instructions of a tile cover each of its elements once, and put it where the shared layout says."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import CuteError


@dataclass(frozen=True)
class Copy:
    """A tensor (sizes and strides in elements), a tile of it, and the tile's layout in shared memory."""

    itemsize: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    static: tuple[bool, ...]
    tile: tuple[int, ...]
    shared: Layout
    multicast: int

    @property
    def gmem(self) -> Layout:
        shape = tuple(Int(n) if s else n for n, s in zip(self.sizes, self.static, strict=True))
        stride = tuple(Int(d) if s or d == 1 else d for d, s in zip(self.strides, reversed(self.static), strict=True))
        return Layout(shape, stride)

    def atom(self) -> Any:
        tensor = cute.make_tensor(cute.make_gmem_ptr(1 << 20, f"uint{self.itemsize * 8}"), self.gmem)
        op = "SM90_TMA_LOAD_MULTICAST" if self.multicast > 1 else "SM90_TMA_LOAD"
        return cute.tma.make_tma_copy(op, tensor, self.shared, self.tile, self.multicast)


@st.composite
def copies(draw: st.DrawFn) -> Copy:
    itemsize = draw(st.sampled_from([1, 2, 4, 8]))
    unit = 16 // itemsize
    rank = draw(st.integers(1, 4))
    order = draw(st.permutations(range(rank)))  # of global memory, innermost first
    inner = order[0]
    tile = [draw(st.sampled_from([1, 2, 3, 4, 8])) for _ in range(rank)]
    tile[inner] = unit * draw(st.sampled_from([1, 2, 4, 8]))
    sizes = [t * draw(st.integers(1, 3)) for t in tile]
    strides, step = [0] * rank, 1
    for mode in order:
        strides[mode] = step
        step *= sizes[mode]
        if mode == inner or draw(st.booleans()):
            step += unit * draw(st.integers(0, 2))  # rows further apart than they are long
        step = -(-step // unit) * unit
    static = tuple(draw(st.booleans()) for _ in range(rank))
    return Copy(
        itemsize,
        tuple(sizes),
        tuple(strides),
        static,
        tuple(tile),
        draw(shared_layouts(tile, inner, unit)),
        draw(st.sampled_from([1, 1, 2, 4])),
    )


@st.composite
def shared_layouts(draw: st.DrawFn, tile: list[int], inner: int, unit: int) -> Layout:
    """A compact layout of the tile with any order of its modes, the contiguous one first; that one may be cut in two
    with the outer half last, as the core matrices of an unswizzled operand are, and the next may be padded."""
    rest = [mode for mode in draw(st.permutations(range(len(tile)))) if mode != inner]
    cut = draw(st.sampled_from([n for n in (1, 2, 4) if tile[inner] % (n * unit) == 0]))
    strides: list[Any] = [0] * len(tile)
    strides[inner], step = 1, tile[inner] // cut
    if draw(st.integers(0, 4)) == 0:
        step = -(-step // (8 * unit)) * 8 * unit  # rows start 128 bytes apart
    for mode in rest:
        strides[mode] = step
        step *= tile[mode]
    shape: list[Any] = [Int(n) for n in tile]
    stride: list[Any] = [Int(d) for d in strides]
    if cut > 1:
        shape[inner], stride[inner] = (Int(tile[inner] // cut), Int(cut)), (Int(1), Int(step))
    return Layout(tuple(shape), tuple(stride))


def atom_of(copy: Copy) -> Any:
    """The atom; cases that TMA has no box for, or no multicast, are no cases of this law."""
    try:
        return copy.atom()
    except CuteError as error:
        assume("num_multicast" not in str(error) and "boxDim" not in str(error))
        raise


def instructions_of(atom: Any) -> Any:
    try:
        return cute.tma.instructions(atom)
    except CuteError as error:  # an instruction needs a shared address that is a multiple of 128
        assume("must be a multiple of 128" not in str(error))
        raise


def colexicographic(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """(size, rank): the coordinates, the first mode fastest."""
    return np.stack(np.unravel_index(np.arange(math.prod(shape)), shape, order="F"), axis=-1)


def places(layout: Layout) -> np.ndarray[Any, Any]:
    """(size,): the offset of each coordinate, in the same order."""
    return cute.offsets(layout).ravel(order="F")


@given(copies())
def test_boxes_cover_each_element_once(copy: Copy) -> None:
    """From the request alone: coordinates times strides are the addresses, box order is the order of shared memory."""
    atom = atom_of(copy)
    assert atom.why_not() is None
    work = instructions_of(atom)
    request = atom.request
    byte_strides = np.array([copy.itemsize, *request.global_strides], np.int64)
    box = colexicographic(request.box_dim)
    counts = tuple(n // t for n, t in zip(copy.sizes, copy.tile, strict=True))
    assert work.tiles == math.prod(counts)
    to = places(copy.shared) * copy.itemsize
    within = colexicographic(copy.tile)
    count = math.prod(copy.tile)
    for number, corner in enumerate(colexicographic(counts)):
        want = np.stack([(corner * copy.tile + within) @ np.array(copy.strides) * copy.itemsize, to])
        mine = slice(number * work.per_tile, (number + 1) * work.per_tile)
        addresses = (work.coords[mine, None, :] + box) @ byte_strides
        arrived = work.smem_offsets[: work.per_tile, None] + np.arange(len(box)) * copy.itemsize
        got = np.stack([addresses.ravel(), arrived.ravel()])
        assert got.shape == want.shape == (2, count)
        assert len(np.unique(got[0])) == count
        np.testing.assert_array_equal(got[:, np.argsort(got[0])], want[:, np.argsort(want[0])])


@given(copies(), st.integers(0, 10**6), st.booleans())
def test_each_element_lands_where_the_layout_says(copy: Copy, pick: int, overhang: bool) -> None:
    """Through the emulator, which reads the descriptor's bytes; a tensor that ends within a tile is filled with zeros.

    Tiles that hang over a mode where nothing is filled are told by `why_not`, and are no cases of this law.
    """
    if overhang:
        sizes = tuple(
            n if d == 1 else max(1, n - t // 2) for n, t, d in zip(copy.sizes, copy.tile, copy.strides, strict=True)
        )
        copy = Copy(copy.itemsize, sizes, copy.strides, copy.static, copy.tile, copy.shared, copy.multicast)
    atom = atom_of(copy)
    assume(atom.why_not() is None)
    instructions_of(atom)
    length = 1 + sum((n - 1) * d for n, d in zip(copy.sizes, copy.strides, strict=True))
    memory = np.random.default_rng(pick).integers(1, 256, length * copy.itemsize, np.uint8)
    array = np.lib.stride_tricks.as_strided(
        memory.view(f"u{copy.itemsize}"), copy.sizes, [d * copy.itemsize for d in copy.strides]
    )
    counts = tuple(-(-n // t) for n, t in zip(copy.sizes, copy.tile, strict=True))
    corners = colexicographic(counts)
    number = pick % len(corners)
    image = cute.tma.execute(atom, array, number, poison=0xCD).smem
    sources = corners[number] * copy.tile + colexicographic(copy.tile)
    inside = (sources < copy.sizes).all(axis=1)
    want = np.where(inside, array[tuple(np.minimum(sources, np.array(copy.sizes) - 1).T)], 0)
    np.testing.assert_array_equal(image.view(f"u{copy.itemsize}")[places(copy.shared)], want)
