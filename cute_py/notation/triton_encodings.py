"""Triton's encodings. Their parameters define which thread holds each element, or where the element is in memory.

    #ttg.blocked          a block per thread, then the threads of a warp, then the warps; repeated over the tile
    #ttg.nvidia_mma       the accumulator of mma.sync (version 2) and wgmma (version 3)
    #ttg.dot_op           A or B in registers, of an MMA or of blocked FMAs
    #ttg.slice            a layout without one of its dimensions, such as after a reduction
    #ttg.swizzled_shared  rows XORed by vectors of `vec` elements
    #ttg.nvmma_shared     the layouts of wgmma, tcgen05 and TMA: tiles of 8 rows, swizzled by 32, 64 or 128 bytes

An encoding defines the layout of a tile of any shape: `encoding.linear(shape)` is the linear layout, with the bases
that Triton computes. If a tile is smaller than the encoding's own tile, several threads hold copies of its elements; a
larger tile takes more registers (in memory, more offsets).
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from math import prod
from typing import Any, ClassVar, Final

from cute_py.argument_checks import expect_fields, expect_integers
from cute_py.errors import InvalidValueError, LayoutError, counted, given
from cute_py.notation.triton import LANES, TritonLayout

Numbers = tuple[int, ...]
Ctas = tuple[tuple[int, ...], ...]

_MOST_RANK: Final = 8
LEFT_OUT: Final = ("cga_layout", "fp4_padded", "k_width", "rank")
"""Parameters that are printed only if they differ from their defaults."""


class _Bases:
    """A builder of bases; each new basis steps to the current end of the tile."""

    def __init__(self, rank: int, names: Sequence[str]) -> None:
        self.sizes = [1] * rank
        self.of: dict[str, list[list[int]]] = {name: [] for name in names}

    def add(self, name: str, dim: int | None, size: int) -> None:
        """Add the bases of `size` steps of an in dim along a dimension of the tile; with None, zero bases."""
        for _ in range(size.bit_length() - 1):
            basis = [0] * len(self.sizes)
            if dim is not None:
                basis[dim] = self.sizes[dim]
                self.sizes[dim] *= 2
            self.of[name].append(basis)

    def grow(self, name: str, shape: Sequence[int], order: Sequence[int]) -> None:
        """Add steps of an in dim along each dimension, in this order, until the tile has this shape."""
        for dim in order:
            self.add(name, dim, shape[dim] // self.sizes[dim])

    def shrink(self, shape: Sequence[int]) -> None:
        """Reduce the tile to this shape: bases that reach beyond it become 0, so that elements repeat."""
        for dim, wanted in enumerate(shape):
            reach = [basis for own in self.of.values() for basis in own if basis[dim]]
            for basis in sorted(reach, key=lambda basis: -basis[dim]):
                if self.sizes[dim] <= wanted:
                    break
                basis[dim] = 0
                self.sizes[dim] //= 2


def _row_major(rank: int) -> list[int]:
    return list(range(rank - 1, -1, -1))


class _Encoding(abc.ABC):
    """Base class of the encodings: a name, parameters in Triton's notation, and a linear layout for each shape."""

    NAME: ClassVar[str]

    @property
    @abc.abstractmethod
    def rank(self) -> int:
        """The number of dimensions of the tile."""

    @abc.abstractmethod
    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        """Return the bases of one CTA's part, before it is fitted to the shape, and the order of its repetition."""

    @abc.abstractmethod
    def facts(self) -> list[str]:
        """Return lines of text that describe the properties of the parameters for any tile."""

    @property
    def _ctas(self) -> Ctas:
        """The basis of each bit of the CTA within its cluster."""
        return getattr(self, "cga_layout", ())

    def linear(self, shape: Sequence[int]) -> TritonLayout:
        """Return the linear layout of a tile of this shape.

        Args:
            shape: powers of two, one for each dimension of the encoding.
        Raises:
            LayoutError: the rank differs, a size is not a power of two, or the tile is too small for the encoding.
        """
        sizes = list(expect_integers(shape, "the shape", 1, 1 << 62))
        if len(sizes) != self.rank:
            raise LayoutError(
                f"the tile has {len(sizes)} dimensions and the encoding {self.rank}; they must be equal",
                {"encoding": self},
            )
        if wrong := [n for n in sizes if n & (n - 1)]:
            raise LayoutError(f"the sizes of a Triton tile must be powers of two, got {wrong[0]}", {"shape": sizes})
        return self._fitted(sizes)

    def _fitted(self, sizes: list[int]) -> TritonLayout:
        across = _Bases(self.rank, ["block"])
        across.of["block"] = [list(basis) for basis in self._ctas]
        across.sizes = [max([2 * b[i] for b in self._ctas] + [1]) for i in range(self.rank)]
        across.shrink(sizes)
        own = [n // c for n, c in zip(sizes, across.sizes, strict=True)]
        cta, order = self._cta(own)
        first = next(iter(cta.of))
        cta.grow(first, own, order)
        cta.shrink(own)
        if isinstance(self, BlockedEncoding):  # its registers hold every element once
            cta.of["register"] = [basis for basis in cta.of["register"] if any(basis)]
        blocks = [tuple(b * n for b, n in zip(basis, own, strict=True)) for basis in across.of["block"]]
        bases = [(name, tuple([tuple(basis) for basis in rows])) for name, rows in cta.of.items()]
        return TritonLayout(
            (*bases, ("block", tuple(blocks))), tuple([(f"dim{i}", size) for i, size in enumerate(sizes)])
        )

    @classmethod
    def parameter_keys(cls) -> dict[str, str]:
        """Map the name of each field to its key in Triton, in the order that Triton writes them."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return {name: _key(name) for name in sorted(names, key=lambda name: name in ("instr_shape", "rank"))}

    def _parameters(self) -> dict[str, str]:
        """Map each key to the text of its value, without the keys that Triton omits."""
        rows = {}
        for name, key in self.parameter_keys().items():
            value = getattr(self, name)
            if name in LEFT_OUT and (not value or (name == "rank" and (value == 2 or self._ctas))):
                continue
            rows[key] = _written(value)
        return rows

    def __str__(self) -> str:
        return f"#ttg.{self.NAME}<{{{', '.join(f'{key} = {value}' for key, value in self._parameters().items())}}}>"

    def explain(self) -> str:
        """Describe the encoding and its parameters."""
        what = " ".join((type(self).__doc__ or "").partition("\n\n")[0].split())
        lines = [f"  {key:<18} {value}" for key, value in self._parameters().items()]
        lines += ["", *[f"  {line}" for line in self.facts()]]
        end = "For a tile, use encoding.linear(shape), and .to_layout() of the result for CuTe's layout."
        return "\n".join([str(self), "", what, "", *lines, "", end])

    def _powers(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if any(n < 1 or n & (n - 1) or n > 1 << 30 for n in (value if isinstance(value, tuple) else (value,))):
                raise InvalidValueError(f"{name} = {given(value)}; must be powers of two, at most 2**30")

    def _one_rank(self, *names: str) -> None:
        ranks = {name: len(getattr(self, name)) for name in names}
        if len(set(ranks.values())) > 1 or not 1 <= next(iter(ranks.values())) <= _MOST_RANK:
            raise InvalidValueError("the parameters of an encoding must have the same rank, 1 to 8", ranks)
        self._check_ctas()

    def _check_ctas(self) -> None:
        if wrong := [basis for basis in self._ctas if len(basis) != self.rank]:
            raise InvalidValueError(f"a basis of cga_layout is {wrong[0]}; must have {self.rank} entries")
        if len(self._ctas) > 4:
            raise InvalidValueError(f"cga_layout has {len(self._ctas)} bases, but a cluster has at most 16 CTAs")
        if any(x < 0 or x & (x - 1) or x > 8 for basis in self._ctas for x in basis):
            raise InvalidValueError("the entries of cga_layout must be 0, or powers of two up to 8", {"is": self._ctas})

    def _check_order(self) -> None:
        order = getattr(self, "order", ())
        if sorted(order) != list(range(len(order))):
            raise InvalidValueError(f"order = {given(order)}; must name every dimension once, the fastest first")


def _key(name: str) -> str:
    """Convert the name of a field to its key in Triton, such as sizePerThread, warpsPerCTA or CGALayout."""
    first, *rest = name.split("_")
    key = first + "".join(part.upper() if part == "cta" else part.capitalize() for part in rest)
    return "CGALayout" if name == "cga_layout" else key


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str([list(x) if isinstance(x, tuple) else x for x in value]) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True)
class BlockedEncoding(_Encoding):
    """Each thread has a block; the blocks of a warp's threads are side by side, then the blocks of the warps, in one
    order of dimensions.

    >>> encoding = BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0))
    >>> print(encoding.linear((8, 32)).to_layout())
    ((_8,_8),_4):((_32,_1),_8)
    """

    NAME = "blocked"
    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]
    cga_layout: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)
        self._one_rank("size_per_thread", "threads_per_warp", "warps_per_cta", "order")
        self._powers("size_per_thread", "threads_per_warp", "warps_per_cta")
        self._check_order()

    @property
    def rank(self) -> int:
        return len(self.order)

    def facts(self) -> list[str]:
        parts = (self.size_per_thread, self.threads_per_warp, self.warps_per_cta)
        own, lanes, warps = [_by(part) for part in parts]
        tile = _by([prod(sizes) for sizes in zip(*parts, strict=True)])
        threads, fast = prod(self.threads_per_warp), self.order[0]
        lines = [
            f"{own} registers, {lanes} lanes, {warps} warps: a tile of {tile}",
            f"{threads * prod(self.warps_per_cta)} threads, {counted(prod(self.size_per_thread), 'element')} each",
            f"dimension {fast} is contiguous: {counted(self.size_per_thread[fast], 'neighbouring element')} per thread",
        ]
        return (
            lines
            if threads == LANES
            else [*lines, (f"{threads} threads per warp; a warp of an NVIDIA GPU has 32 lanes")]
        )

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        made = _Bases(self.rank, ("register", "lane", "warp"))
        for name, sizes in zip(made.of, (self.size_per_thread, self.threads_per_warp, self.warps_per_cta), strict=True):
            for dim in self.order:
                made.add(name, dim, sizes[dim])
        return made, list(self.order)


def _mma_tile(made: _Bases, rows: int, columns: int, k_width: int, inner: int, outer: int) -> None:
    """Add a tile of mma.sync: `k_width` registers and 4 lanes along `inner`, 8 lanes along `outer`, more registers."""
    made.add("register", inner, k_width)
    made.add("lane", inner, 4)
    made.add("lane", outer, 8)
    made.add("register", outer, rows // 8)
    made.add("register", inner, columns // (4 * k_width))


@dataclass(frozen=True, slots=True)
class NvidiaMmaEncoding(_Encoding):
    """The accumulator of mma.sync (version 2) or wgmma (version 3), with warps side by side.

    `instr_shape` is (16, 8), the (M, N) of mma.sync, or (16, N, K) of wgmma: 16 rows for each of the four warps.

    >>> print(NvidiaMmaEncoding(2, 0, (1, 1), (16, 8)).linear((16, 8)).to_layout())
    ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
    """

    NAME = "nvidia_mma"
    version_major: int
    version_minor: int
    warps_per_cta: tuple[int, ...]
    instr_shape: tuple[int, ...]
    cga_layout: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)
        self._one_rank("warps_per_cta")
        self._powers("warps_per_cta")
        if self.version_major not in (2, 3):
            raise InvalidValueError(f"version {self.version_major}; must be 2 (mma.sync) or 3 (wgmma)")
        wanted = 3 if self.version_major == 3 else self.rank
        if self.rank < 2 or len(self.instr_shape) != wanted or (self.version_major == 3 and self.rank != 2):
            raise InvalidValueError(
                f"instr_shape = {given(self.instr_shape)} for {self.rank} dimensions; must be (M, N) for "
                "mma.sync, preceded by a 1 for each batch dimension, or (16, N, K) for wgmma in two dimensions"
            )
        self._powers("instr_shape")
        if min(self._tile) < 8:
            raise InvalidValueError(f"instr_shape = {given(self.instr_shape)}; M and N must be 8 or more")

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    def facts(self) -> list[str]:
        wgmma, count = self.version_major == 3, prod(self.warps_per_cta)
        group = f", {counted(count // 4, 'warpgroup')}" if wgmma and count % 4 == 0 else ""
        step = _by([a * b for a, b in zip(self._tile, self.warps_per_cta[-2:], strict=True)])
        of_one = ": M is for one warp, so 4 warps compute 64 rows" if wgmma else ""
        return [
            f"version {self.version_major}: {'wgmma (sm_90)' if wgmma else 'mma.sync (sm_80)'}",
            f"{_by(self.warps_per_cta)} warps{group}: {LANES * count} threads",
            f"instruction {_by(self.instr_shape)} ({'M x N x K' if wgmma else 'M x N'}{of_one})",
            f"one step of all warps covers {step} of the accumulator",
        ]

    @property
    def _tile(self) -> Numbers:
        """The (M, N) extents of one warp's tile."""
        return self.instr_shape[:2] if self.version_major == 3 else self.instr_shape[-2:]

    @property
    def _warp_order(self) -> list[int]:
        order = _row_major(self.rank)
        return order if self.version_major == 2 else [order[1], order[0], *order[2:]]

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        made = _Bases(self.rank, ("register", "lane", "warp"))
        m, n = self._tile
        _mma_tile(made, m, n, 2, self.rank - 1, self.rank - 2)
        for dim in self._warp_order:
            made.add("warp", dim, self.warps_per_cta[dim])
        return made, _row_major(self.rank)


@dataclass(frozen=True, slots=True)
class DotOperandEncoding(_Encoding):
    """A (`op_idx` 0) or B (`op_idx` 1) of a dot product, in registers; `parent` is the encoding of the accumulator.

    `k_width` is the number of adjacent elements along K that a thread has in one or more 32-bit registers (0 for
    blocked FMAs).

    >>> mma = NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))
    >>> print(DotOperandEncoding(1, mma, 2).linear((16, 8)).to_layout())
    ((_4,_8),(_2,_2)):((_2,_16),(_1,_8))
    """

    NAME = "dot_op"
    op_idx: int
    parent: BlockedEncoding | NvidiaMmaEncoding
    k_width: int = 0

    def __post_init__(self) -> None:
        expect_fields(self)
        if self.op_idx not in (0, 1):
            raise InvalidValueError.of_value("opIdx", self.op_idx, "be 0 (A) or 1 (B)")
        if self.parent.rank < 2:
            raise InvalidValueError(
                "the parent of a dot operand must have at least two dimensions", {"parent": self.parent}
            )
        if isinstance(self.parent, BlockedEncoding):
            if self.k_width:
                raise InvalidValueError.of_value("kWidth", self.k_width, "be 0 for a blocked parent")
            return
        self._powers("k_width")
        if self.k_width > 64:
            raise InvalidValueError.of_value("kWidth", self.k_width, "be at most 64")
        if self.parent.version_major == 3 and self.op_idx == 1:
            raise InvalidValueError("B of wgmma is read from shared memory; it has no dot operand encoding")

    @property
    def rank(self) -> int:
        return self.parent.rank

    def facts(self) -> list[str]:
        name, other = ("A", "M x K") if self.op_idx == 0 else ("B", "K x N")
        width = f", {counted(self.k_width, 'element')} along K side by side in a thread" if self.k_width else ""
        return [f"operand {name} ({other}) in registers{width}. Its accumulator:", *self.parent.facts()]

    @property
    def _k(self) -> int:
        return self.rank - 1 if self.op_idx == 0 else self.rank - 2

    @property
    def _ctas(self) -> Ctas:
        return tuple([tuple([0 if i == self._k else x for i, x in enumerate(b)]) for b in self.parent.cga_layout])

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        made = _Bases(self.rank, ("register", "lane", "warp"))
        k, parent = self._k, self.parent
        if isinstance(parent, BlockedEncoding):
            for dim in parent.order:
                made.add("register", dim, shape[k] if dim == k else parent.size_per_thread[dim])
            for name, sizes in (("lane", parent.threads_per_warp), ("warp", parent.warps_per_cta)):
                for dim in parent.order:
                    made.add(name, None if dim == k else dim, sizes[dim])
            return made, list(parent.order)
        other = 2 * self.rank - 3 - k
        rows = 16 if self.op_idx == 0 else 8
        _mma_tile(made, rows, 8 * self.k_width, self.k_width, k, other)
        for dim in parent._warp_order:
            made.add("warp", None if dim == k else dim, parent.warps_per_cta[dim])
        return made, [k, other, *_row_major(self.rank - 2)]


@dataclass(frozen=True, slots=True)
class SliceEncoding(_Encoding):
    """The layout after a reduction over one dimension; threads along that dimension hold the same elements.

    >>> parent = BlockedEncoding((1, 4), (8, 4), (4, 1), (1, 0))
    >>> SliceEncoding(0, parent).dim
    0
    """

    NAME = "slice"
    dim: int
    parent: BlockedEncoding | NvidiaMmaEncoding | DotOperandEncoding | SliceEncoding

    def __post_init__(self) -> None:
        expect_fields(self)
        if not 0 <= self.dim < self.parent.rank or self.parent.rank < 2:
            facts = {"parent": self.parent}
            raise InvalidValueError.of_value(
                "dim", self.dim, "be a dimension of the parent, which must have at least two", "", facts
            )

    @property
    def rank(self) -> int:
        return self.parent.rank - 1

    def facts(self) -> list[str]:
        what = f"dimension {self.dim} of its parent is removed, as after a reduction along it"
        return [f"{what}: threads that differ along this dimension hold copies. The parent:", *self.parent.facts()]

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        raise LayoutError("a slice uses the layout of its parent")

    def _fitted(self, sizes: list[int]) -> TritonLayout:
        whole = self.parent._fitted([*sizes[: self.dim], 1, *sizes[self.dim :]])
        bases = []
        for name, own in whole.bases:
            rows = tuple([(*b[: self.dim], *b[self.dim + 1 :]) for b in own])
            bases.append((name, tuple([b for b in rows if any(b)]) if name == "register" else rows))
        return TritonLayout(tuple(bases), tuple([(f"dim{i}", size) for i, size in enumerate(sizes)]))


@dataclass(frozen=True, slots=True)
class SwizzledSharedEncoding(_Encoding):
    """Shared memory, compact in `order`, with the vectors of a row XORed by (row / per_phase) % max_phase.

    >>> print(SwizzledSharedEncoding(8, 1, 8, (1, 0)).linear((64, 64)).to_layout())
    Sw<3,3,3> o _0 o (_64,_64):(_64,_1)
    """

    NAME = "swizzled_shared"
    vec: int
    per_phase: int
    max_phase: int
    order: tuple[int, ...]
    cga_layout: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        expect_fields(self)
        self._one_rank("order")
        self._powers("vec", "per_phase", "max_phase")
        self._check_order()

    @property
    def rank(self) -> int:
        return len(self.order)

    def facts(self) -> list[str]:
        vec, phase, most = self.vec, self.per_phase, self.max_phase
        if most == 1:
            return [f"max phase 1: no swizzle, dimension {self.order[0]} is contiguous"]
        step = f"every {phase} rows the unit is XORed with the next of {most} numbers"
        lines = [f"units of {vec} elements; {step}: the pattern repeats after {phase * most} rows"]
        bits = 128 // vec
        if bits in (8, 16, 32) and most in (2, 4, 8):
            span = 16 * most
            same = " as in TMA and wgmma" if phase * span == 128 else ""
            lines.append(
                f"for elements of {bits} bits the units are 16 bytes, and the XOR is that of the {span}B swizzle{same} "
                f"(rows of {128 // phase * 8 // bits} elements)"
            )
        return lines

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        made = _Bases(self.rank, ("offset",))
        for dim in self.order:
            made.add("offset", dim, shape[dim])
        if self.rank > 1:
            column, row = self.order[:2]
            for basis in made.of["offset"]:
                if basis[row]:
                    basis[column] = self.vec * (basis[row] // self.per_phase % self.max_phase) % shape[column]
        return made, list(self.order)


@dataclass(frozen=True, slots=True)
class NvmmaSharedEncoding(_Encoding):
    """Shared memory for wgmma, tcgen05 and TMA: tiles of 8 rows of the swizzle's width.

    With `fp4_padded`, elements are pairs of 4-bit numbers, and 8 of every 16 bytes are used. TMA instructions fill the
    tile box by box; a box has at most 256 elements in each dimension.

    >>> print(NvmmaSharedEncoding(128, False, 16).linear((64, 64)).to_layout())
    Sw<3,3,3> o _0 o (_64,_64):(_64,_1)
    """

    NAME = "nvmma_shared"
    swizzling_byte_width: int
    transposed: bool
    element_bit_width: int
    fp4_padded: bool = False
    cga_layout: tuple[tuple[int, ...], ...] = ()
    rank: int = 2

    def __post_init__(self) -> None:
        expect_fields(self)
        if self.swizzling_byte_width not in (0, 32, 64, 128):
            raise InvalidValueError.of_value(
                "swizzlingByteWidth", self.swizzling_byte_width, "be 0, 32, 64 or 128 bytes"
            )
        if self.element_bit_width not in (8, 16, 32, 64):
            raise InvalidValueError.of_value("elementBitWidth", self.element_bit_width, "be 8, 16, 32 or 64 bits")
        if self.fp4_padded and (self.element_bit_width != 8 or self.swizzling_byte_width != 128):
            raise InvalidValueError("fp4Padded needs 8-bit elements and a swizzle of 128 bytes")
        if self.cga_layout:
            object.__setattr__(self, "rank", len(self.cga_layout[0]))
        if not 1 <= self.rank <= _MOST_RANK:
            raise InvalidValueError.of_value("rank", self.rank, f"be 1 to {_MOST_RANK}")
        self._check_ctas()

    def facts(self) -> list[str]:
        span, bits = self.swizzling_byte_width, self.element_bit_width
        lines = ["shared memory without a swizzle"]
        if span:
            name = f"Sw<{(span // 16).bit_length() - 1},4,3> on bytes"
            lines = [
                f"shared memory with the {span}B swizzle of TMA and wgmma, {name}; align to {8 * span} bytes",
                f"a row of the atom has {span * 8 // bits} elements of {bits} bits; 8 rows are an atom",
            ]
        turned = "transposed: the first dimension is contiguous, so A (M, K) is MN-major and B (K, N) is K-major"
        straight = "not transposed: the last dimension is contiguous, so A (M, K) is K-major and B (K, N) is MN-major"
        return [*lines, turned if self.transposed else straight]

    def _box(self, shape: list[int]) -> list[int]:
        """Return the box of a TMA instruction: the swizzle's width in the contiguous dimension, else at most 256."""
        box = [min(n, 256) for n in shape]
        if self.swizzling_byte_width:
            contiguous = 0 if self.transposed else self.rank - 1
            width = 8 * self.swizzling_byte_width // self.element_bit_width // (2 if self.fp4_padded else 1)
            if box[contiguous] < width:
                text = (
                    f"the tile has {box[contiguous]} elements in its contiguous dimension, but the swizzle needs "
                    f"{width}"
                )
                raise LayoutError(text, {"shape": shape, "encoding": self})
            box[contiguous] = width
        return box

    def _cta(self, shape: list[int]) -> tuple[_Bases, list[int]]:
        made, upward, box = _Bases(self.rank, ("offset",)), list(range(self.rank)), self._box(shape)
        if not self.swizzling_byte_width:
            for old in upward[::-1]:
                # Triton rotates the sizes of a transposed tile once more than its dimensions; with two dimensions this
                # changes nothing.
                dim, size = (old - 1, (old + 1) % self.rank) if self.transposed else (old, old)
                made.add("offset", dim % self.rank, box[size])
            made.grow("offset", shape, upward[::-1])
            return made, upward
        # All outer dimensions count as one, so that the tile has rows and columns as wide as the swizzle; it is split
        # into the tensor's dimensions afterwards.
        turned = [*box[1:], box[0]] if self.transposed else box
        rows, columns = (box[-1], prod(box[:-1])) if self.transposed else (prod(box[:-1]), box[-1])
        if rows < 8:
            raise LayoutError(f"the tile has {rows} rows, but the swizzle needs 8", {"shape": shape, "encoding": self})
        flat = self._core(rows, columns)
        for row, column in flat:
            place = row * columns + column
            basis: list[int] = []
            for size in reversed(turned):
                place, index = divmod(place, size)
                basis.insert(0, index)
            made.of["offset"].append([basis[-1], *basis[:-1]] if self.transposed else basis)
        made.sizes = list(box)
        made.grow("offset", shape, upward)
        return made, upward

    def _core(self, rows: int, columns: int) -> list[tuple[int, int]]:
        """Return (row, column) of each offset bit: 8 rows of the swizzle's width, more rows, then more columns."""
        vector = 128 // self.element_bit_width
        per_phase, phases = 128 // self.swizzling_byte_width, self.swizzling_byte_width // 16
        wide = 8 * self.swizzling_byte_width // self.element_bit_width
        packed: Callable[[int], int] = (lambda c: c // 16 * 8 + c % 8) if self.fp4_padded else (lambda c: c)
        flat = [(0, packed(1 << i)) for i in range(wide.bit_length() - 1)]
        row = 1
        while row < rows:
            flat.append((row, packed(vector * (row // per_phase % phases)) if row < 8 else 0))
            row *= 2
        column = packed(wide)
        while column < columns:
            flat.append((0, column))
            column *= 2
        return flat


TritonEncoding = (
    BlockedEncoding
    | NvidiaMmaEncoding
    | DotOperandEncoding
    | SliceEncoding
    | SwizzledSharedEncoding
    | NvmmaSharedEncoding
)
"""An encoding of a tile."""
