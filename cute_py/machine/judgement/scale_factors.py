"""Check from the copies that a block-scaled tcgen05.mma uses the scale factors of its own operands.

Tensor copies load A, B and their scale factors into shared memory through separate tensor maps, and tcgen05.cp copies
the factors to tensor memory. The judge therefore knows the tensor map of the factors in each column. A product is wrong
if it uses accumulators of another product as factors, or factors from two maps for one operand. The judge reports that
the factors of A and B are swapped in two cases: two products pair the same maps in opposite ways, or the number of
factors of each map fits only the other operand. An operand needs one factor for every `block` elements of K in each
row. The rows are rounded up to a multiple of 128, and the factors of a row to a multiple of 4.

Three cases can't be judged: factors that ordinary stores wrote, a kernel that swaps all factors of matrices of one
shape, and whether a factor belongs to the right block of K, because several products may share a factor.
Source: PTX ISA 9.0, tcgen05: block scaling, layouts of scale factors; cutlass/detail/sm100_blockscaled_layout.hpp for
the multiples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.atom.smem_descriptor import Major
from cute_py.formats.scale_orders import Grid, scale_order
from cute_py.machine.judgement.observer import AsyncWork, OperandRead, TensorColumns
from cute_py.machine.sites import Site
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS
from cute_py.machine.threads import Frame, Host

_ISA: Final = "tcgen05.mma, block scaling; layouts of scale factors"
RULE: Final = "scale factors"
ORDER: Final = scale_order("32_4_4")
"""Blocks of scale factors that tcgen05.cp copies: 128 rows by 4 factors."""


@dataclass(slots=True)
class WrittenTile:
    """A tile that a tensor copy wrote: its offset and size in bytes, the width of its swizzle, the index of the
    instruction, the key, type and extents of the tensor map, and the width of an element in bits.
    """

    place: int
    nbytes: int
    width: int
    at: int
    map_key: Any
    data_type: str
    read: bool = False
    dims: tuple[int, ...] = ()
    bits: int = 0


@dataclass(frozen=True, slots=True)
class ReadTile:
    """An operand in shared memory, and the tiles that it is read from."""

    operand: OperandRead
    tiles: list[WrittenTile]


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A product: the tiles of A and B, and the tiles of their scale factors."""

    a: WrittenTile
    sfa: WrittenTile
    b: WrittenTile
    sfb: WrittenTile


class ScaleFactors:
    """Judges scale factors, and records the tile or the product that wrote each column of tensor memory last."""

    def __init__(self, say: Callable[..., None], where: Callable[[int], str]) -> None:
        self._say, self._where = say, where
        self._scaled: dict[tuple[Any, Any], tuple[Any, Any, int]] = {}
        """Maps of A and B -> maps of their scale factors in the first product of these maps, and its instruction."""

        self._found: set[tuple[Any, Any]] = set()
        """Maps of A and B whose exchange was found."""

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self._stride = m.shared_stride
        self._unjudged: dict[str, None] = m.totals.unjudged
        self._tiles: list[WrittenTile] = []
        self._columns = np.zeros((m.ctas, COLUMNS), np.int64)
        """1 + the number of the tile, or -1 - the number of the instruction of the product; 0 if unknown."""

    def copied(self, cells: TensorColumns, tiles: Sequence[WrittenTile | None]) -> None:
        """Record the tile that a tcgen05.cp writes to columns."""
        number = 0
        known = [tile for tile in tiles if tile is not None]
        if known and len(known) == len(tiles) and all(tile.map_key == known[0].map_key for tile in known):
            self._tiles.append(known[0])
            number = len(self._tiles)
        self._columns[cells.cta, cells.first : cells.last] = number

    def forget(self, cta: int, first: int, last: int) -> None:
        """Forget the tiles of columns that a store writes."""
        self._columns[cta, first:last] = 0

    def multiplied(self, f: Frame, site: Site, work: AsyncWork, read: Sequence[ReadTile]) -> None:
        """Judge the scale factors of a product that is issued, and record the columns of its accumulators."""
        ctas = sorted({cells.cta for cells in work.cells})
        for cta in ctas if work.block else ():
            found = {
                cells.what: self._source(f, site, cells)
                for cells in work.cells
                if cells.cta == cta and cells.what != "D"
            }
            sfa, sfb = found.get("SFA"), found.get("SFB")
            mine = {one.operand.name: one for one in read if one.operand.start // self._stride == cta}
            if sfa is None or sfb is None:
                continue
            if len(mine) < 2 or any(len(one.tiles) == 0 for one in mine.values()):
                self._leave_out(site, "an operand that no tensor copy wrote")
                continue
            one = _Scaled(mine["A"].tiles[0], sfa, mine["B"].tiles[0], sfb)
            majors = (mine["A"].operand.major, mine["B"].operand.major)
            self._exchanged(f, site, one, work.block, majors)
        for cells in work.cells:
            if cells.what == "D":
                self._columns[cells.cta, cells.first : min(cells.last, COLUMNS)] = -1 - site.number

    def _leave_out(self, site: Site, what: str) -> None:
        """Record that the scale factors of a product are not judged."""
        self._unjudged[f"scale factors of {self._where(site.number)}: {what}"] = None

    def _source(self, f: Frame, site: Site, cells: TensorColumns) -> WrittenTile | None:
        """Return the tile that scale factors come from; None if it is unknown, or if the factors are wrong and were
        reported.
        """
        held = self._columns[cells.cta, cells.first : cells.last]
        operand = cells.what[2]
        sums = held[held < 0]
        if len(sums):
            column = cells.first + int(np.flatnonzero(held < 0)[0])
            text = (
                f"{f.text()}: the scale factors of {operand} are in column {column}, which the product at "
                f"{self._where(-1 - int(sums[0]))} overwrote with its accumulators"
            )
            self._say(site.number, RULE, text, {"cause": "sums", "column": column, "threads": f.text()}, source=_ISA)
            return None
        if (held == 0).any():
            self._leave_out(site, f"scale factors of {operand} that no tcgen05.cp from one tensor map wrote")
            return None
        tiles: list[WrittenTile] = [self._tiles[number - 1] for number in np.unique(held).tolist()]
        other = next((tile for tile in tiles if tile.map_key != tiles[0].map_key), None)
        if other is not None:
            text = (
                f"{f.text()}: the scale factors of {operand}, in columns {cells.first} to {cells.last - 1}, come from "
                f"two tensor maps; {self._where(tiles[0].at)} and {self._where(other.at)} copied them"
            )
            facts = {"cause": "two tensor maps", "columns": f"{cells.first}..{cells.last - 1}", "threads": f.text()}
            self._say(site.number, RULE, text, facts, source=_ISA)
            return None
        return tiles[0]

    def _exchanged(self, f: Frame, site: Site, one: _Scaled, block: int, majors: tuple[Major, Major]) -> None:
        """Report swapped scale factors: compare a product with earlier products of its maps, and the numbers of factors
        with the extents.
        """
        a, b, sfa, sfb = (tile.map_key for tile in (one.a, one.b, one.sfa, one.sfb))
        if a == b:
            return
        before = self._scaled.setdefault((a, b), (sfa, sfb, site.number))
        text = ""
        if before[:2] != (sfa, sfb):
            wrong = [name for name, mine, others in (("A", sfa, before[1]), ("B", sfb, before[0])) if mine == others]
            if wrong:
                text = (
                    f"{f.text()}: the scale factors of {' and '.join(wrong)} come from the tensor map that the product "
                    f"at {self._where(before[2])} uses for the other operand; one of the two uses is wrong"
                )
        elif sfa != sfb:
            needed = factors_of(one.a.dims, majors[0], block), factors_of(one.b.dims, majors[1], block)
            held = _numbers(one.sfa), _numbers(one.sfb)
            if held == (needed[1], needed[0]) and held != needed:
                text = (
                    f"{f.text()}: A needs {needed[0]} scale factors and B {needed[1]}; the tensor map of A's factors "
                    f"has {held[0]} and that of B's {held[1]}, so they are swapped"
                )
        if text and (a, b) not in self._found:
            self._found.add((a, b))
            self._say(site.number, RULE, text, {"cause": "exchanged", "threads": f.text()}, source=_ISA)


def factors_of(dims: Sequence[int], major: Major, block: int) -> int:
    """Number of scale factors of a matrix, padded to blocks of 128 rows by 4 factors.

    Args:
        dims: extents of the matrix's tensor map, innermost first. block: elements of K for each factor.

    >>> factors_of((256, 100, 2), Major.K, 16), factors_of((100, 48), Major.MN, 32)
    (4096, 512)
    """
    rows, depth = (dims[1], dims[0]) if major is Major.K else (dims[0], dims[1])
    return int(ORDER.count(Grid(rows, depth, 1, block))) * math.prod(dims[2:])


def _numbers(tile: WrittenTile) -> int:
    """Number of scale factors in the tensor that a tile's map describes; each factor is one byte."""
    return math.prod(tile.dims) * tile.bits // 8
