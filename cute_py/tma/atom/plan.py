"""From a G-basis to the numbers of a tensor map: sizes, strides, box, and the strides of the TMA tensor.

One basis element per mode: size and stride of that global mode. Several (merged or collapsed modes): the stride is
their greatest common divisor, the size what it takes to reach the last element in such steps. A multicast count cuts
the box from its last mode on; every CTA issues its part.
Source: cute/atom/copy_traits_sm90_tma.hpp, fill_tma_gmem_shape_stride and make_tma_copy_desc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from cute_py.argument_checks import expect, expect_fields, expect_integer
from cute_py.arith_tuple.ratio import ratio
from cute_py.arith_tuple.scaled_basis import E
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import GBasisError
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, Tree, public, value_of
from cute_py.layout.recast import recast_layout
from cute_py.layout.trees import at, leaves, modes


@dataclass(frozen=True, slots=True)
class BrokenCondition:
    """A condition that CuTe asserts and that does not hold: its text, our words for it, the TMA mode, if one."""

    condition: str
    message: str
    mode: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class TmaPlan:
    """The numbers of a tiled tensor map, modes innermost first.

    `dims` in elements of the internal type, `strides` in bytes for modes 1.., `box` and `element_strides` in elements;
    `g_stride` are the strides of the TMA tensor, congruent with the global shape. `broken` lists what CuTe would
    assert.
    """

    gbasis: Layout
    internal_dtype: DType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    g_stride: Tree
    num_bits_per_tma: int
    num_multicast: int
    broken: tuple[BrokenCondition, ...] = field(default=())

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def rank(self) -> int:
        return len(self.dims)


def _number(leaf: Any, what: str) -> int:
    return expect_integer(value_of(leaf), f"{what} of a tensor map", hint="use .subs() first")


def _paths(stride: Tree) -> list[tuple[int, ...]]:
    """The global modes of one TMA mode; the basis of an integer shape is a plain 1 at the empty path."""
    return [tuple(getattr(d, "modes", ())) for d in leaves(stride)]


def shape_and_stride(gmem: Layout, gbasis: Layout) -> tuple[list[int], list[int]]:
    """(sizes, strides) of each TMA mode in elements of the internal type; `gmem` is in those elements."""
    sizes, strides = [], []
    for mode in modes(gbasis._stride):
        paths = _paths(mode)
        if any(type(at(gmem._shape, p)) is tuple for p in paths):
            raise GBasisError(
                "the tile is a single element of the type that TMA counts in: its box walks no mode of the tensor",
                {"global layout in that type": gmem, "G-basis": gbasis},
            )
        size, stride = 1, 0
        pairs = [(_number(at(gmem._shape, p), "a size"), _number(at(gmem._stride, p), "a stride")) for p in paths]
        if len(pairs) == 1:
            size, stride = pairs[0]
        else:
            for s, d in pairs:
                old, stride = stride, math.gcd(stride, d)
                size = (size - 1) * (old // stride) + (s - 1) * (d // stride) + 1 if stride else s
        sizes.append(size)
        strides.append(stride)
    return sizes, strides


def multicast_box(box: list[int], num_multicast: int) -> tuple[list[int], BrokenCondition | None]:
    """The box that one of `num_multicast` CTAs issues: cut from the last mode on."""
    box = list(box)
    left, i = num_multicast, len(box) - 1
    while left > 1:
        if i < 0:
            return box, BrokenCondition(
                "smem_box_shape[i] % multicast == 0 || multicast % smem_box_shape[i] == 0",
                f"num_multicast = {num_multicast} CTAs; must be at most the {math.prod(box) * num_multicast // left}"
                " elements of the box, so that every CTA gets a part",
            )
        if box[i] % left and left % box[i]:
            return box, BrokenCondition(
                "smem_box_shape[i] % multicast == 0 || multicast % smem_box_shape[i] == 0",
                f"num_multicast = {num_multicast} CTAs; must divide or be divided by boxDim[{i}] = {box[i]} elements",
                i,
            )
        rest = -(-left // box[i])
        box[i] = -(-box[i] // left)
        left, i = rest, i - 1
    return box, None


def tma_strides(gmem: Layout, gmem_t: Layout, gbasis: Layout, byte_strides: list[int], bits: tuple[int, int]) -> Tree:
    """The strides of the TMA tensor, one basis element per global mode (static 0 for what does not move)."""
    owners = [_paths(mode) for mode in modes(gbasis._stride)]
    old, new = bits

    def leaf(path: tuple[int, ...]) -> Any:
        size, stride = at(gmem_t._shape, path), at(gmem_t._stride, path)
        if (type(size) is int and size == 1) or (type(stride) is int and stride == 0):
            return Int(0)
        found = [j for j, paths in enumerate(owners) if path in paths]
        if not found:
            return Int(0)
        j = found[0]
        if j == 0:
            scale = ratio(old, new) * public(at(gmem._stride, path))
            return E(0) * scale
        if len(owners[j]) == 1:
            return E(j)
        step = _number(stride, "a stride") * new // max(byte_strides[j], 16)
        return E(j) * (-(-step // 8))

    def walk(tree: Tree, path: tuple[int, ...]) -> Tree:
        if type(tree) is tuple:
            return tuple([walk(t, (*path, i)) for i, t in enumerate(tree)])
        return leaf(path)

    return walk(gmem._shape, ())


def plan_tiled(
    gmem: Layout, gbasis: Layout, dtype: DType, internal_dtype: DType, num_multicast: int = 1, nval: int = 1
) -> TmaPlan:
    """The numbers of the tensor map of a G-basis.

    Args:
        gmem: layout of the global tensor in elements of `dtype`.
        nval: factor of the elements that one instruction moves beyond the box (4 for gather4 and scatter4).
    """
    expect(gmem, Layout, "the global layout")
    expect(gbasis, Layout, "the G-basis")
    dtype, internal_dtype = as_dtype(dtype), as_dtype(internal_dtype)
    num_multicast, nval = expect_integer(num_multicast, "num_multicast", 1), expect_integer(nval, "nval", 1)
    gmem_t = recast_layout(gmem, dtype, internal_dtype)
    sizes, strides = shape_and_stride(gmem_t, gbasis)
    bits = internal_dtype.bits
    broken: list[BrokenCondition] = []
    if strides and strides[0] != 1:
        broken.append(
            BrokenCondition(
                'gmem_prob_stride[0] == 1 && "Majorness of smem doesn\'t match majorness of gmem"',
                f"Majorness of smem doesn't match majorness of gmem: TMA mode 0 has stride {strides[0]} elements;"
                " must be 1",
                0,
            )
        )
    byte_strides = [d * bits // 8 for d in strides]
    for i, d in enumerate(strides[1:], 1):
        if d * bits % 128:
            broken.append(
                BrokenCondition(
                    f"(gmem_prob_stride[{i}] & 0b1111) == 0",
                    f"globalStrides[{i - 1}] = {d * bits / 8:g} bytes; must be a multiple of 16",
                    i,
                )
            )
        if not 0 <= byte_strides[i] < 1 << 40:
            broken.append(
                BrokenCondition(
                    f"(gmem_prob_stride[{i}]) < (uint64_t(1) << 40)",
                    f"globalStrides[{i - 1}] = {byte_strides[i]} bytes; must be below 2**40",
                    i,
                )
            )
    for i, n in enumerate(sizes):
        if not 1 <= n <= 1 << 32:
            condition = f"gmem_prob_shape[{i}] {'>= (uint64_t(1))' if n < 1 else '<= (uint64_t(1) << 32)'}"
            broken.append(BrokenCondition(condition, f"globalDim[{i}] = {n} elements; must be 1 to 2**32", i))
    full_box = [math.prod(_number(s, "a box size") for s in leaves(mode)) for mode in modes(gbasis._shape)]
    box, problem = multicast_box(full_box, num_multicast)
    if problem is not None:
        broken.append(problem)
    for i, n in enumerate(box):
        if not 1 <= n <= 256:
            broken.append(
                BrokenCondition(
                    f"smem_box_shape[{i}] {'>= (uint32_t(1))' if n < 1 else '<= (uint32_t(1) << 8)'}",
                    f"boxDim[{i}] = {n} elements; must be {'at least 1' if n < 1 else 'at most 256'}",
                    i,
                )
            )
    g_stride = tma_strides(gmem, gmem_t, gbasis, byte_strides, (dtype.bits, bits))
    return TmaPlan(
        gbasis,
        internal_dtype,
        tuple(sizes),
        tuple(byte_strides[1:]),
        tuple(box),
        (1,) * len(sizes),
        g_stride,
        math.prod(full_box) * nval * bits,
        num_multicast,
        tuple(broken),
    )
