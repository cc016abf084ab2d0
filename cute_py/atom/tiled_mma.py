"""`TiledMma`: an MMA atom repeated over threads. It defines each thread's part of A, B and C.

    make_tiled_mma(atom, atom_layout_mnk=(2,2,1))      2x2 atoms side by side: 4 warps of SM80_16x8x16 make 32x16x16
    permutation_mnk=(32, 32, 16)                       the tile that the threads compute; in a larger tile, each
                                                       thread has more values

`thrfrg_C` divides a tensor (M,N,...) by the permutation and by the atom's shape, applies the atom's thread-value layout
to each piece, and divides the pieces among the threads:

    thrfrg_C:  ((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN,...)))

`ThrV` is the thread within the atom, and `ThrM`, `ThrN` select the atom. `FrgV` counts the atom's values, and `RestM`,
`RestN` the remaining tiles. A thread's part is a slice of this tensor: (FrgV,RestM,RestN,...).
Source: cute/atom/mma_atom.hpp.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from cute_py.argument_checks import expect, expect_choice, expect_integer, is_integer
from cute_py.arith_tuple import text
from cute_py.atom import fragments, pictures
from cute_py.atom.mma_atom import MmaAtom, expect_registers
from cute_py.atom.mma_atoms import mma_atom
from cute_py.atom.pictures import Colour
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout import (
    Int,
    Layout,
    complement,
    composition,
    cosize,
    is_static,
    logical_divide,
    make_layout,
    rank,
    right_inverse,
    size,
    static,
    tiled_product,
    zipped_divide,
)
from cute_py.layout.arguments import Coordinate, IntTuple, LayoutLike, Leaf, Shape, Tiler, Tree
from cute_py.layout.composition import compose_layouts
from cute_py.layout.coordinate import get_flat_coord
from cute_py.layout.layout import Thing, joined, make
from cute_py.layout.leaf import STATIC, STATIC_ZERO, as_leaf, times
from cute_py.layout.leaf import is_static as leaf_is_static
from cute_py.layout.offsets import offsets
from cute_py.layout.trees import leaves, without_underscores
from cute_py.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

Operand = Literal["A", "B", "C"]
Permutations: TypeAlias = tuple[Tiler, Tiler, Tiler]
Mode: TypeAlias = tuple[Tree, Tree]
"""(size, stride) within a layout."""

MODES: Final[dict[str, tuple[int, int]]] = {"A": (0, 2), "B": (1, 2), "C": (0, 1)}
"""Operand -> its modes, of M, N and K."""
_ONE: Final = Layout(Int(1), Int(0))
_WORDS: Final = re.compile("[A-Za-z]")
_MOST_KEPT: Final = 64
_ONE_ATOM: Final = Layout((Int(1), Int(1), Int(1)))


def _modes_of(operand: Operand) -> tuple[int, int]:
    return MODES[expect_choice(operand, ("A", "B", "C"), "operand")]


@functools.lru_cache(maxsize=256)
def _single(extent: Int) -> Layout:
    return Layout(extent)


def _size_mode(extent: int) -> Layout:
    return _single(extent) if type(extent) is Int else Layout(extent)


@dataclass(frozen=True, slots=True)
class TiledMma:
    """An MMA atom that is repeated over threads. `str(tiled_mma)` is the text that CuTe C++ prints.

    Args:
        atom: the instruction.
        atom_layout_mnk: the layout of the atoms, (m, n, k) -> atom number; its rank is 3.
        permutation_mnk: for each of M, N and K: None (the extent that the threads cover), an extent, or a layout.
    Raises:
        StaticAssertError: the layout does not have rank 3, or a permutation is not static.

    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (Int(2), Int(1), Int(1)))
    >>> print(mma.thr_layout_vmnk, text(mma.tile_shape()), mma.get_layoutC_TV())
    (_32,_2,_1,_1):(_1,_32,_0,_0) (_32,_8,_16) ((_4,_8,_2),((_2,_2),(_1,_1))):((_64,_1,_16),((_32,_8),(_0,_0)))
    """

    atom: MmaAtom
    atom_layout_mnk: Layout
    permutation_mnk: Permutations
    thr_layout_vmnk: Layout
    """(thread of the atom, atom along M, N, K) -> thread index."""
    _kept: dict[tuple[str, str], Layout] = field(default_factory=dict, init=False, repr=False, compare=False)
    """(operand, layout) -> its thrfrg, which all threads share."""

    def __post_init__(self) -> None:
        expect(self.atom, MmaAtom, "the atom of a tiled MMA")
        expect(self.atom_layout_mnk, Layout, "the layout of the atoms")
        expect(self.thr_layout_vmnk, Layout, "the layout of the threads")
        if len(expect(self.permutation_mnk, tuple, "the permutations")) != 3:
            facts = {"permutation": given(self.permutation_mnk)}
            raise StaticAssertError("TiledMMA requires rank-3 PermutationMNK", facts)

    @property
    def thr_id(self) -> Layout:
        return self.atom.thr_id

    @property
    def shape_mnk(self) -> tuple[Int, Int, Int]:
        return self.atom.shape_mnk

    def permutation(self, mode: int) -> Tiler:
        """Return the permutation of M (0), N (1) or K (2); by default, the atom's extent times the number of atoms."""
        given_one = self.permutation_mnk[expect_integer(mode, "a mode of an MMA", 0, 2)]
        if given_one is None:
            return self.atom.shape_mnk[mode] * size(self.thr_layout_vmnk[mode + 1])
        return given_one

    def tile_size(self, mode: int) -> int:
        """Return the extent of the tile along M (0), N (1) or K (2)."""
        found: int = size(self.permutation(mode))
        return found

    def tile_size_mnk(self, mode: int | None = None) -> int | tuple[int, int, int]:
        """Return the extent of the tile along M, N or K, or the three extents."""
        return self.tile_shape() if mode is None else self.tile_size(mode)

    def tile_shape(self) -> tuple[int, int, int]:
        """Return the (M, N, K) extents of the tile that all threads together compute."""
        return self.tile_size(0), self.tile_size(1), self.tile_size(2)

    @property
    def threads_of_size(self) -> IntTuple:
        """The shape (V, M, N, K) of the threads. Its product is `cute.size(tiled_mma)`, the number of threads."""
        return self.thr_layout_vmnk.shape

    def size(self) -> int:
        """Return the number of threads."""
        return size(self.thr_layout_vmnk)

    def thrfrg(self, operand: Operand, thing: Thing) -> Thing:
        """Rearrange A (M,K,...), B (N,K,...) or C (M,N,...) to ((ThrV,(Thr,Thr)),(FrgV,(Rest,Rest,...)))."""
        _modes_of(operand)
        direct: Any = self._thrfrg_of_even(operand, thing) if isinstance(thing, Layout) else None
        return self._thrfrg_of_any(operand, thing) if direct is None else direct

    def _thrfrg_of_any(self, operand: Operand, thing: Thing) -> Thing:
        """Compute `thrfrg` in the steps of CuTe C++."""
        first, second = MODES[operand]
        if int(rank(thing)) < 2:
            raise StaticAssertError("rank(tensor) >= Int<2>", {"operand": operand, "tensor": thing})
        permuted = logical_divide(thing, (self.permutation(first), self.permutation(second)))
        shape = self.atom.shape_mnk
        tiles = zipped_divide(permuted, (_size_mode(shape[first]), _size_mode(shape[second])))
        values = composition(tiles, (self.atom.layouts[operand], None))
        threads = self.thr_layout_vmnk
        across = (_size_mode(size(threads[first + 1])), _size_mode(size(threads[second + 1])))
        return zipped_divide(values, (None, across))

    def _thrfrg_of_even(self, operand: Operand, layout: Layout) -> Layout | None:
        """Compute `thrfrg` in fewer steps if both modes are single static extents that the tile divides. Then the
        permutation changes nothing, each mode is split twice, and only the atom's values are composed. Return None
        otherwise."""
        shape, stride, shape_mnk = layout.shape, layout.stride, self.atom.shape_mnk
        if type(shape) is not tuple or type(stride) is not tuple or len(shape) < 2:
            return None
        tiles, across, rests = [], [], []
        for mode, extent, step in zip(MODES[operand], shape, stride, strict=False):
            tile, threads = shape_mnk[mode], size(self.thr_layout_vmnk[mode + 1])
            given_one = self.permutation_mnk[mode]
            whole = tile * threads if given_one is None else given_one
            if type(whole) is not Int or type(threads) is not Int or type(extent) is not Int or type(step) is tuple:
                return None
            if extent < 1 or extent % whole or extent % (tile * threads) or not leaf_is_static(step):
                return None
            inner, outer = _split(int(extent), step, int(tile))
            tiles.append(inner)
            inner, outer = _split(int(extent) // int(tile), outer[1], int(threads))
            across.append(inner)
            rests.append(outer)
        values = compose_layouts(_modes(tiles), self.atom.layouts[operand])
        rests.extend(zip(shape[2:], stride[2:], strict=True))
        held, others = joined([values[0], _modes(across)]), joined([values[1], _modes(rests)])
        return joined([held, others])

    def _thrfrg_of_layout(self, operand: Operand, layout: Thing) -> Thing | Layout:
        """Compute `thrfrg` of a layout, and cache the result if the layout has no symbols."""
        if not isinstance(layout, Layout):
            return self.thrfrg(operand, layout)
        key = (operand, str(layout))
        if _WORDS.search(key[1]):
            return self.thrfrg(operand, layout)
        found = self._kept.get(key)
        if found is None:
            found = self.thrfrg(operand, layout)
            if len(self._kept) < _MOST_KEPT:
                self._kept[key] = found
        return found

    def thrfrg_A(self, thing: Thing) -> Thing:
        """Rearrange A (M,K,...) to ((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK,...)))."""
        return self.thrfrg("A", thing)

    def thrfrg_B(self, thing: Thing) -> Thing:
        """Rearrange B (N,K,...) to ((ThrV,(ThrN,ThrK)),(FrgV,(RestN,RestK,...)))."""
        return self.thrfrg("B", thing)

    def thrfrg_C(self, thing: Thing) -> Thing:
        """Rearrange C (M,N,...) to ((ThrV,(ThrM,ThrN)),(FrgV,(RestM,RestN,...)))."""
        return self.thrfrg("C", thing)

    def get_slice(self, thread: int) -> ThrMma:
        """Return the part of one thread, as a `ThrMma`.

        Args:
            thread: the index of the thread, an int (or an `Int` for a static index).
        Raises:
            InvalidTypeError: the index is not an integer. InvalidValueError: the thread does not exist.
        """
        index = thread if isinstance(thread, Int) else expect_integer(thread, "a thread index", 0)
        if not 0 <= int(index) <= _last_thread(self.thr_layout_vmnk):
            why = (
                f"thread {int(index)} does not exist; this tiled MMA has threads 0 to "
                f"{_last_thread(self.thr_layout_vmnk)}"
            )
            raise InvalidValueError(why, {"threads": self.thr_layout_vmnk})
        return ThrMma(self, get_flat_coord(self.thr_layout_vmnk, index))  # type: ignore[arg-type]

    get_thread_slice = get_slice

    def _thread_coordinates(self) -> Layout:
        """Return the layout thread index -> index of (ThrV,ThrM,ThrN,ThrK)."""
        threads = self.thr_layout_vmnk
        inverse = right_inverse(make_layout(threads, complement(threads)))
        found: Layout = composition(Layout((size(threads), Int(1)), (Int(1), Int(0))), inverse)
        return found

    def get_layout_TV(self, operand: Operand) -> Layout:
        """Return the layout (thread index, value) -> index in the tile of an operand, first mode fastest."""
        first, second = _modes_of(operand)
        reference = Layout((self.tile_size(first), self.tile_size(second)))
        found = self.thrfrg(operand, reference)
        if operand != "C":
            m, n = size(self.thr_layout_vmnk[1]), size(self.thr_layout_vmnk[2])
            strides = (Int(1), Int(0)) if operand == "A" else (Int(0), Int(1))
            found = composition(found, ((None, (Layout((m, n), strides), None)), None))
        layout: Layout = composition(found, (self._thread_coordinates(), None))
        return layout

    def get_layoutA_TV(self) -> Layout:
        """Return the layout (thread index, value) -> m + M*k, with M of the tile."""
        return self.get_layout_TV("A")

    def get_layoutB_TV(self) -> Layout:
        """Return the layout (thread index, value) -> n + N*k, with N of the tile."""
        return self.get_layout_TV("B")

    def get_layoutC_TV(self) -> Layout:
        """Return the layout (thread index, value) -> m + M*n, with M of the tile."""
        return self.get_layout_TV("C")

    def holders(self, operand: Operand, row: int, column: int) -> tuple[tuple[int, int], ...]:
        """List (thread, value) for each thread with an element of the tile in its registers, in the order of the
        threads. The value is the index in the fragment of the thread.

        Args:
            row, column: the element's indices in the tile: (m, k) of A, (n, k) of B, (m, n) of C.
        Raises:
            InvalidValueError: the tile has no such element; a permutation is not a multiple of the atoms; or no thread
                holds the element, because the operand is in shared or tensor memory.

        >>> from cute_py.atom.tiled_mma import make_tiled_mma
        >>> make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (Int(2), Int(2), Int(1))).holders("A", 17, 4)
        ((38, 0), (102, 0))
        """
        first, second = _modes_of(operand)
        expect_registers(self.atom, operand)
        for mode in (first, second):
            whole = int(self.tile_size(mode))
            step = int(self.atom.shape_mnk[mode]) * int(size(self.thr_layout_vmnk[mode + 1]))
            if whole % step:
                text = f"the permutation of {'MNK'[mode]} has {whole} elements; must be a multiple of {step}"
                raise InvalidValueError(f"{text}, the elements of all atoms along {'MNK'[mode]}")
        rows, columns = int(self.tile_size(first)), int(self.tile_size(second))
        row = expect_integer(row, "row", 0, rows - 1)
        place = row + rows * expect_integer(column, "column", 0, columns - 1)
        known = replace(self, thr_layout_vmnk=static(self.thr_layout_vmnk))  # the inverse needs static threads
        layout = known.get_layout_TV(operand)
        table = np.asarray(offsets(layout)).reshape(int(size(layout[0])), -1, order="F")
        return tuple([(int(thread), int(value)) for thread, value in np.argwhere(table == place)])

    def partition_shape(self, operand: Operand, shape: Shape) -> IntTuple:
        """Return the shape of a thread's part of an operand of this shape."""
        whole = Layout(shape)
        return self.thrfrg(operand, whole)(Int(0), (None, (None,) * int(rank(whole)))).shape

    def partition_shape_A(self, shape: Shape) -> IntTuple:
        """Return the shape of a thread's part of A, which has the shape (M,K,...)."""
        return self.partition_shape("A", shape)

    def partition_shape_B(self, shape: Shape) -> IntTuple:
        """Return the shape of a thread's part of B, which has the shape (N,K,...)."""
        return self.partition_shape("B", shape)

    def partition_shape_C(self, shape: Shape) -> IntTuple:
        """Return the shape of a thread's part of C, which has the shape (M,N,...)."""
        return self.partition_shape("C", shape)

    def partition_fragment_C(self, shape: Shape | Tensor) -> Tensor:
        """Make the accumulator of one thread for a C of this shape: registers, or tensor memory."""
        shape = shape.shape if isinstance(shape, Tensor) else shape
        return fragments.make_fragment_C(self.atom, Layout(self.partition_shape_C(shape)))

    def make_fragment_A(self, part: LayoutLike) -> Tensor:
        """Make the fragment for a partition of A."""
        return fragments.make_fragment_A(self.atom, part)

    def make_fragment_B(self, part: LayoutLike) -> Tensor:
        """Make the fragment for a partition of B."""
        return fragments.make_fragment_B(self.atom, part)

    def make_fragment_C(self, part: LayoutLike) -> Tensor:
        """Make the fragment for a partition of C."""
        return fragments.make_fragment_C(self.atom, part)

    def latex(self, color: Colour | None = None) -> str:
        """Return the text of C++'s print_latex: a picture of A, B and C, with the thread and the value in each cell.

        Args:
            color: (thread, value) -> TikZ colour; default: one of eight colours by thread.
        """
        return pictures.mma_latex({x: self.get_layout_TV(x) for x in ("A", "B", "C")}, self.tile_shape(), color)

    def svg(self, color: Colour | None = None) -> str:
        """Return the text of C++'s print_svg.

        Args:
            color: (thread, value) -> `red,green,blue`; default: one of eight colours by thread.
        """
        return pictures.mma_svg({x: self.get_layout_TV(x) for x in ("A", "B", "C")}, self.tile_shape(), color)

    def __str__(self) -> str:
        threads, permutation = self.thr_layout_vmnk, text(self.permutation_mnk)
        return f"TiledMMA\n  ThrLayoutVMNK:  {threads}\n  PermutationMNK: {permutation}\n{self.atom}"

    def __repr__(self) -> str:
        return f"make_tiled_mma({self.atom.name!r}, {self.atom_layout_mnk!r}, {self.permutation_mnk!r})"

    def __reduce__(self) -> tuple[Callable[..., TiledMma], tuple[MmaAtom, Layout, Permutations]]:
        return (make_tiled_mma, (self.atom, self.atom_layout_mnk, self.permutation_mnk))


def _split(extent: int, step: Leaf, tile: int) -> tuple[Mode, Mode]:
    """Split the mode extent:step into a tile and the rest; a part of one element has stride 0, as in C++."""
    rest = extent // tile
    first, second = STATIC[tile], STATIC[rest]
    return (first, STATIC_ZERO if tile == 1 else step), (second, STATIC_ZERO if rest == 1 else times(first, step))


def _modes(modes: Sequence[Mode]) -> Layout:
    """Make a layout of modes size:stride."""
    return make(tuple([mode[0] for mode in modes]), tuple([mode[1] for mode in modes]))


@functools.lru_cache(maxsize=256)
def _last_thread(threads: Layout) -> int:
    extent = cosize(threads)
    if not isinstance(extent, int):
        raise InvalidTypeError(f"the layout of the threads must have known numbers, got {threads}")
    return int(extent) - 1


@dataclass(frozen=True, slots=True)
class ThrMma:
    """One thread of a tiled MMA: `partition_A(tensor)` is its part of A. `str(...)` is the text of CuTe C++.

    >>> from cute_py.tensor import make_identity_tensor
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(mma.get_slice(5).partition_C(make_identity_tensor((Int(16), Int(8)))))
    ArithTuple(1,2) o ((_2,_2),_1,_1):((_1@1,_8@0),_0,_0)
    """

    tiled_mma: TiledMma
    thr_vmnk: tuple[int, int, int, int]
    """(ThrV, ThrM, ThrN, ThrK) of the thread."""

    def __post_init__(self) -> None:
        expect(self.tiled_mma, TiledMma, "the tiled MMA of a thread")
        if len(expect(self.thr_vmnk, tuple, "the coordinate of a thread")) != 4:
            raise InvalidValueError("the coordinate of a thread must be (V, M, N, K)", {"got": given(self.thr_vmnk)})
        for index in self.thr_vmnk:
            as_leaf(index)

    def partition(self, operand: Operand, thing: Thing) -> Thing:
        """Return the thread's part of an operand: (FrgV,Rest,Rest,...)."""
        first, second = _modes_of(operand)
        divided: Any = self.tiled_mma._thrfrg_of_layout(operand, thing.layout if isinstance(thing, Tensor) else thing)
        rest = int(rank(divided[1][1].shape))
        v = self.thr_vmnk
        coordinate: Coordinate = ((v[0], (v[first + 1], v[second + 1])), (None, (None,) * rest))
        whole: Any = thing.with_domain(divided) if isinstance(thing, Tensor) else divided
        found: Thing = whole(coordinate)
        return found

    def partition_A(self, thing: Thing) -> Thing:
        """Return the thread's part of A (M,K,...)."""
        return self.partition("A", thing)

    def partition_B(self, thing: Thing) -> Thing:
        """Return the thread's part of B (N,K,...)."""
        return self.partition("B", thing)

    def partition_C(self, thing: Thing) -> Thing:
        """Return the thread's part of C (M,N,...)."""
        return self.partition("C", thing)

    def partition_shape_A(self, shape: Shape) -> IntTuple:
        """Return the shape of the thread's part of an operand A of this shape."""
        return self.tiled_mma.partition_shape("A", shape)

    def partition_shape_B(self, shape: Shape) -> IntTuple:
        """Return the shape of the thread's part of an operand B of this shape."""
        return self.tiled_mma.partition_shape("B", shape)

    def partition_shape_C(self, shape: Shape) -> IntTuple:
        """Return the shape of the thread's part of an operand C of this shape."""
        return self.tiled_mma.partition_shape("C", shape)

    def partition_fragment_A(self, thing: LayoutLike) -> Tensor:
        """Make the fragment for the thread's part of A."""
        return fragments.make_fragment_A(self.tiled_mma.atom, self.partition_A(thing))

    def partition_fragment_B(self, thing: LayoutLike) -> Tensor:
        """Make the fragment for the thread's part of B."""
        return fragments.make_fragment_B(self.tiled_mma.atom, self.partition_B(thing))

    def partition_fragment_C(self, thing: LayoutLike) -> Tensor:
        """Make the fragment for the thread's part of C."""
        return fragments.make_fragment_C(self.tiled_mma.atom, self.partition_C(thing))

    def __str__(self) -> str:
        return f"ThrMMA\n  Thr VMNK: {text(self.thr_vmnk)}\n{self.tiled_mma}"


def _three(atom_layout: Layout | Shape) -> Layout:
    """Return the atom layout with three modes. A shape becomes a static column-major layout; missing modes are 1:0."""
    layout = atom_layout if isinstance(atom_layout, Layout) else Layout(static(atom_layout))
    for count in leaves(layout.shape):
        if is_integer(count):
            expect_integer(count, "the number of atoms along a mode", 1)
    modes = int(rank(layout))
    if modes > 3:
        raise StaticAssertError("TiledMMA requires rank-3 AtomLayoutMNK", {"atom layout": layout})
    if modes == 3:
        return layout
    parts = [layout[i] for i in range(modes)] + [_ONE] * (3 - modes)
    return make_layout(*parts)


def _permutations(permutation: tuple[Tiler, ...]) -> Permutations:
    if not isinstance(permutation, tuple):
        raise StaticAssertError(
            "TiledMMA requires independent permutations of MNK.", {"permutation": given(permutation)}
        )
    if len(permutation) > 3:
        raise StaticAssertError("TiledMMA requires rank-3 PermutationMNK", {"permutation": given(permutation)})
    found = [without_underscores(p) for p in permutation] + [None] * (3 - len(permutation))
    for part in found:
        if part is not None and not isinstance(part, (int, Layout, tuple)):
            raise InvalidTypeError(f"a permutation must be None, an extent or a layout, got {given(part)}")
        for extent in leaves(part) if isinstance(part, (int, tuple)) else ():
            if is_integer(extent):
                expect_integer(extent, "an extent of a permutation", 1, unit="elements")
    found = [static(p) if isinstance(p, (int, tuple)) else p for p in found]
    if not all(part is None or is_static(part) for part in leaves(tuple(found))):
        raise StaticAssertError("TiledMMA requires static permutations of MNK.", {"permutation": given(permutation)})
    return found[0], found[1], found[2]


def make_tiled_mma(
    atom: str | MmaAtom, atom_layout_mnk: Layout | Shape | None = None, permutation_mnk: tuple[Tiler, ...] | None = None
) -> TiledMma:
    """Repeat an MMA atom over threads.

    Args:
        atom: an atom, or its name in C++.
        atom_layout_mnk: the layout of the atoms along M, N and K, or its shape (then it is static and column-major).
            Missing modes are 1. Default: one atom.
        permutation_mnk: for each of M, N and K: None, an extent, or a layout. Missing entries are None, and a single
            None applies to all three.
    Raises:
        InvalidValueError: the atom does not exist, or a number of atoms or an extent is less than 1.
        StaticAssertError: C++ refuses the layout or the permutation.

    >>> print(make_tiled_mma("SM80_16x8x8_F16F16F16F16_TN", (Int(1), Int(2))).thr_layout_vmnk)
    (_32,_1,_2,_1):(_1,_0,_32,_0)
    """
    layout = _ONE_ATOM if atom_layout_mnk is None else _three(atom_layout_mnk)
    permutation = _permutations(() if permutation_mnk is None else permutation_mnk)
    return (_shared if is_static(layout) else _shared.__wrapped__)(mma_atom(atom), layout, permutation)


@functools.lru_cache(maxsize=64)
def _shared(atom: MmaAtom, layout: Layout, permutation: Permutations) -> TiledMma:
    """Make the tiled MMA, and cache it for static arguments. Run-time numbers compare equal to static ones, so
    arguments with run-time numbers are not cached."""
    return TiledMma(atom, layout, permutation, tiled_product(atom.thr_id, layout))
