"""`TiledCopy`: a copy atom repeated over threads and values. It defines the elements that each thread reads and writes.

A tiled copy is a copy atom, a layout (thread, value) -> element of a tile, and the tile. The tile divides a tensor, and
the layout divides each tile into pieces of one atom. If the atom's source (destination) layout differs from its
reference layout, the layout of each piece is composed with reference^-1 o source:

    tidfrg_S:  (Thr, (FrgV, FrgX), (RestM, RestN, ...))        a thread's part: ((FrgV,FrgX), RestM, RestN, ...)

`FrgV` counts the values of one instruction, `FrgX` the instructions within a tile, and `RestM`, `RestN` the tiles.
Source: cute/atom/copy_atom.hpp.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Final, Literal

from cute_py.argument_checks import expect, expect_choice, expect_integer, is_integer, wrong_type
from cute_py.arith_tuple import text
from cute_py.atom import pictures
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.pictures import Colour
from cute_py.errors import InvalidTypeError, InvalidValueError, StaticAssertError, given
from cute_py.layout import (
    ComposedLayout,
    Int,
    Layout,
    coalesce,
    composition,
    is_static,
    logical_divide,
    logical_product,
    make_layout,
    product_each,
    rank,
    right_inverse,
    size,
    static,
    upcast,
    zipped_divide,
)
from cute_py.layout.arguments import IntTuple, Tiler
from cute_py.layout.layout import Thing, domain_of
from cute_py.layout.trees import leaves, without_underscores
from cute_py.tensor import Tensor, make_identity_tensor

Side = Literal["S", "D"]
_SIDES: Final[tuple[Side, Side]] = ("S", "D")


@functools.lru_cache(maxsize=512)
def _reference_to(atom: CopyAtom, side: Side) -> Layout:
    """Return the layout (thread, value) of the source or destination -> index of the reference's (thread, value)."""
    target = atom.layout_src_TV if side == "S" else atom.layout_dst_TV
    return composition(right_inverse(atom.layout_ref_TV), target)


def tiler_shape(tiler: Tiler) -> IntTuple:
    """Return the shape of a by-mode tiler: the shape of each layout in it, and each extent.

    >>> tiler_shape((Int(2), Layout((Int(4), Int(2)))))
    (Int(2), (Int(4), Int(2)))
    """
    if isinstance(tiler, Layout):
        return tiler.shape
    return tuple(tiler_shape(t) for t in tiler) if isinstance(tiler, tuple) else tiler  # type: ignore[return-value]


def _zipped(layout: Layout) -> Layout:
    """Regroup a layout of modes ((a,b),(c,d)) as ((a,c),(b,d))."""
    pieces, rests = layout[0], layout[1]
    return make_layout(*(make_layout(pieces[i], rests[i]) for i in range(int(rank(pieces)))))


def _of(thing: Thing, domain: Any) -> Thing:
    """Return `domain`, the result for a layout; for a tensor, the tensor with this domain."""
    found: Any = thing.with_domain(domain) if isinstance(thing, Tensor) else domain
    made: Thing = found
    return made


def _unfold_first(thing: Thing) -> Thing:
    """Regroup a layout, or the domain of a composed layout, from ((a,b),c) to (a,b,c)."""
    whole: Any = thing
    found: Thing = (
        whole((None, None), None) if isinstance(thing, Layout) else whole.with_domain(_unfold_first(whole.domain))
    )
    return found


@dataclass(frozen=True, slots=True)
class TiledCopy:
    """A copy atom that is repeated over threads and values. `str(tiled_copy)` is the text that CuTe C++ prints.

    Args:
        atom: the instruction, with its type.
        layout_TV: (thread, value) -> index in the tile, first mode fastest; static.
        tiler_mn: the tile: extents, or layouts that pick elements of each mode.
    Raises:
        StaticAssertError: the number of threads or values is not a multiple of the atom's.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> copy = TiledCopy(copy_atom("UniversalCopy<uint32_t>", "half"), static(Layout((4, (2, 2)), (2, (1, 8)))), (8, 2))
    >>> print(copy.get_layoutS_TV())
    (_4,(_2,_2)):(_2,(_1,_8))
    """

    atom: CopyAtom
    layout_TV: Layout
    tiler_mn: tuple[Tiler, ...]

    def __post_init__(self) -> None:
        expect(self.atom, CopyAtom, "the atom of a tiled copy")
        layout = expect(self.layout_TV, Layout, "the thread-value layout of a tiled copy")
        if int(rank(layout)) != 2:
            raise InvalidTypeError(f"layout_TV must be a layout of (thread, value), got {given(layout)}")
        tiler = tuple(map(without_underscores, self.tiler_mn if isinstance(self.tiler_mn, tuple) else (self.tiler_mn,)))
        for part in leaves(tiler):
            if part is not None and not isinstance(part, Layout) and not is_integer(part):
                raise wrong_type("tiler_mn must consist of extents and layouts", part)
        object.__setattr__(self, "tiler_mn", tuple(static(t) for t in tiler))
        if not is_static(layout):
            object.__setattr__(self, "layout_TV", static(layout))
        for mode, word in ((0, "thrs"), (1, "vals")):
            have, need = size(self.layout_TV[mode]), size(self.atom.layout_ref_TV[mode])
            if have % need:
                raise StaticAssertError(
                    f"TiledCopy uses too few {word} for selected CopyAtom",
                    {
                        "operation": self.atom.name,
                        f"{'threads' if mode == 0 else 'values'} of the tiled copy": have,
                        "of the atom": need,
                    },
                )

    @property
    def thr_id(self) -> Layout:
        return self.atom.thr_id

    @property
    def threads_of_size(self) -> IntTuple:
        """The shape of the threads; `cute.size(tiled_copy)`, its product, is the number of threads."""
        return self.layout_TV[0].shape

    def size(self) -> int:
        """Return the number of threads."""
        return size(self.layout_TV[0])

    def tile_shape(self) -> tuple[IntTuple, ...]:
        """Return the shape of the tile."""
        return tuple(tiler_shape(t) for t in self.tiler_mn)

    def tile_size(self, mode: int | None = None) -> int:
        """Return the number of elements of the tile, or its extent along one mode."""
        shape = self.tile_shape()
        return size(shape if mode is None else shape[expect_integer(mode, "a mode of a tile", 0, len(shape) - 1)])

    def _unfolded(self, tile: Thing, side: Side) -> Thing:
        """Rearrange ((TileM,TileN,...),(RestM,RestN,...)) to (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        atom = self.atom
        shape = (size(atom.layout_ref_TV[0]), size(atom.layout_ref_TV[1]))
        pieces = zipped_divide(self.layout_TV, shape)
        target = composition(pieces, (_reference_to(atom, side), None))
        places = coalesce(_zipped(target), (Int(1), (Int(1), Int(1))))
        return _unfold_first(composition(tile, (places, None)))

    def tidfrg(self, side: Side, thing: Thing) -> Thing:
        """Rearrange a source or destination (M,N,...) to (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        expect_choice(side, _SIDES, "a side of a copy")
        layout: Any = thing.layout if isinstance(thing, Tensor) else thing
        if int(rank(layout)) < len(self.tiler_mn):
            facts = {"tensor": thing, "tiler": text(self.tiler_mn)}
            raise StaticAssertError("Rank of tensor to be partitioned too small.", facts)
        found: Any = self._unfolded(zipped_divide(layout, self.tiler_mn), side)
        return _of(thing, found)

    def tidfrg_S(self, thing: Thing) -> Thing:
        """Rearrange a source (M,N,...) to (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        return self.tidfrg("S", thing)

    def tidfrg_D(self, thing: Thing) -> Thing:
        """Rearrange a destination (M,N,...) to (Thr,(FrgV,FrgX),(RestM,RestN,...))."""
        return self.tidfrg("D", thing)

    def get_layout_TV(self, side: Side) -> Layout:
        """Return the layout (thread, value) -> index in the tile, for the source or the destination."""
        expect_choice(side, _SIDES, "a side of a copy")
        reference = Layout((self.tile_shape(), Int(1)))
        return self._unfolded(reference, side)(None, None, Int(0))

    def get_layoutS_TV(self) -> Layout:
        """Return the layout (thread, value) -> index in the tile, for the source."""
        return self.get_layout_TV("S")

    def get_layoutD_TV(self) -> Layout:
        """Return the layout (thread, value) -> index in the tile, for the destination."""
        return self.get_layout_TV("D")

    def retile(self, thing: Thing) -> Thing:
        """Arrange a thread's fragment (V,M,N,...) of another partition in the shape of this copy's partitions.

        The fragment must contain the values of this copy's tile in the same order. It does if this copy was made from
        the tiled MMA that partitioned the fragment.
        """
        layout: Any = thing.layout if isinstance(thing, Tensor) else thing
        if not isinstance(layout, (Layout, ComposedLayout)):
            raise InvalidTypeError(f"retile takes a fragment, got {type(thing).__name__} {given(thing)}")
        modes = int(rank(layout))
        extent = size(domain_of(layout)[0])
        values = expect_integer(extent, "the values of a fragment", 1)
        inverse = composition(right_inverse(self.layout_TV), Layout(self.tile_shape()))
        order = upcast(inverse, int(size(self.layout_TV[0])) * values)
        places = logical_product(Layout(extent), right_inverse(order))
        pieces = zipped_divide(places, Layout(size(self.atom.layout_ref_TV[1])))
        tiled = zipped_divide(layout, (extent, *product_each(order.shape)))
        rest = (Int(0), *(None,) * (modes - 1)) if modes > 1 else Int(0)
        found: Any = composition(tiled, (pieces, None))(None, rest)
        return _of(thing, found)

    def get_slice(self, thread: int) -> ThrCopy:
        """Return the part of one thread, as a `ThrCopy`.

        Raises:
            InvalidTypeError: the index is not an integer. InvalidValueError: the thread does not exist.
        """
        index = thread if isinstance(thread, Int) else expect_integer(thread, "a thread index", 0)
        last = int(self.size()) - 1
        if not 0 <= int(index) <= last:
            raise InvalidValueError(f"thread {int(index)} does not exist; this tiled copy has threads 0 to {last}")
        return ThrCopy(self, index)

    get_thread_slice = get_slice

    def latex(self, color: Colour | None = None) -> str:
        """Return the text of C++'s print_latex: the source, and the destination to its right; each cell shows thread
        and value.

        Args:
            color: (thread, value) -> TikZ colour; default: one of eight colours by thread.
        Raises:
            InvalidTypeError: the tile does not have two modes.
        """
        if len(self.tiler_mn) != 2:
            raise InvalidTypeError(f"the tile has {len(self.tiler_mn)} modes; must have 2 for a picture")
        tile = product_each(logical_divide(Layout((Int(1), Int(1))), self.tiler_mn))
        coordinates = make_identity_tensor(tile)
        shown = [self.tidfrg(side, coordinates)(None, None, Int(0)) for side in _SIDES]
        places = [self.tidfrg(side, Layout(tile))(None, None, Int(0)) for side in _SIDES]
        return pictures.copy_latex(shown[0], shown[1], (places[0], places[1]), tile, color)

    def __str__(self) -> str:
        return f"TiledCopy\n  Tiler_MN:       {text(self.tiler_mn)}\n  TiledLayout_TV: {self.layout_TV}\n{self.atom}"

    def __repr__(self) -> str:
        return f"TiledCopy({self.atom!r}, {self.layout_TV!r}, {self.tiler_mn!r})"


@dataclass(frozen=True, slots=True)
class ThrCopy:
    """One thread of a tiled copy: `partition_S(tensor)` is the part that it reads. `str(...)` is the text of CuTe C++.

    >>> import cute_py as cute
    >>> one = cute.copy_atom("UniversalCopy<float>", "float")
    >>> copy = cute.make_tiled_copy(one, cute.Layout((cute.Int(4), cute.Int(8)), cute.LayoutRight))
    >>> print(copy.get_slice(9).partition_S(cute.make_identity_tensor((8, 16))))
    ArithTuple(1,1) o ((_1,_1),2,2):((_0,_0),_4@0,_8@1)
    """

    tiled_copy: TiledCopy
    thr_idx: int

    def __post_init__(self) -> None:
        expect(self.tiled_copy, TiledCopy, "the tiled copy of a thread")
        number = expect_integer(self.thr_idx, "the index of a thread", 0)
        if not isinstance(self.thr_idx, Int):  # a static number stays static
            object.__setattr__(self, "thr_idx", number)

    def partition(self, side: Side, thing: Thing) -> Thing:
        """Return the thread's part of a source or destination: ((FrgV,FrgX),RestM,RestN,...)."""
        whole: Any = self.tiled_copy.tidfrg(side, thing)
        modes = int(rank(thing))
        found: Thing = whole(self.thr_idx, None, (None,) * modes if modes > 1 else None)
        return found

    def partition_S(self, thing: Thing) -> Thing:
        """Return the part of a source (M,N,...) that the thread reads."""
        return self.partition("S", thing)

    def partition_D(self, thing: Thing) -> Thing:
        """Return the part of a destination (M,N,...) that the thread writes."""
        return self.partition("D", thing)

    def retile_S(self, thing: Thing) -> Thing:
        """Arrange a thread's fragment of another partition in the shape of this copy's source."""
        return self.tiled_copy.retile(thing)

    def retile_D(self, thing: Thing) -> Thing:
        """Arrange a thread's fragment of another partition in the shape of this copy's destination."""
        return self.tiled_copy.retile(thing)

    def __str__(self) -> str:
        return f"ThrCopy\n  ThrIdx: {self.thr_idx}\n{self.tiled_copy}"
