"""Check that the descriptor of a wgmma or tcgen05.mma operand reads a tile in the layout that it was written in.

If a tensor copy wrote the tile, the tile has the swizzle of the tensor map, and the descriptor must name the same
swizzle. If threads wrote the tile with cp.async, no instruction names a swizzle, but the global-memory address of each
16-byte unit is known. The descriptor is then wrong if its rows are not rows of global memory, but the rows of a
descriptor with another swizzle would be.

With a swizzle of W bytes, the pattern repeats every 8 W bytes, counted from the start of the tile. A start address in
any row of the pattern except the first needs a base offset. If products never read some units of a tile, the start
address of a descriptor is too high or too low. The units that one cp.async of 16 bytes copies in a CTA count as a tile;
a unit that threads or other copies read counts as read.

Source: PTX ISA 9.0, wgmma: shared memory matrix layout, matrix descriptor.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.atom.smem_descriptor import UNIT_BYTES, DescriptorKind, Major, SmemDescriptor, SmemSwizzle
from cute_py.errors import CuteError, counted
from cute_py.machine.judgement.observer import AccessOrder, AsyncWork, Observer, OperandRead, Touched
from cute_py.machine.judgement.once import OncePerInstruction
from cute_py.machine.judgement.races.shadow import distinct
from cute_py.machine.judgement.scale_factors import ReadTile, ScaleFactors, WrittenTile
from cute_py.machine.operands import operand_units, row_units
from cute_py.machine.threads import Array, Frame, Host

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.machine.sites import Site

_ISA: Final = "wgmma: matrix descriptor"
_WIDEST_FIRST: Final = (SmemSwizzle.B128, SmemSwizzle.B64, SmemSwizzle.B32, SmemSwizzle.NONE)
NO_ORIGIN: Final = -1
_NARROW: Final = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "u8", "s8")
_OTHER_TYPES: Final = {
    "FLOAT16": ("bf16", "tf32", *_NARROW),
    "BFLOAT16": ("f16", "tf32", *_NARROW),
    "FLOAT32": ("f16", "bf16", *_NARROW),
    "TFLOAT32": ("f16", "bf16", *_NARROW),
    "PACKED_16U4_ALIGN16B": ("f16", "bf16", "tf32", "e4m3", "e5m2", "e2m3", "e3m2", "u8", "s8"),
    "PACKED_16U6_ALIGN16B": ("f16", "bf16", "tf32", "e4m3", "e5m2", "e2m1", "u8", "s8"),
}
"""Float type of a tensor map -> operand types that do not match it. Integer types match every operand."""


def operand_tiles(code: Code) -> Observer:
    """Return the judge of descriptors, or an idle observer if the kernel has no products."""
    return (
        OperandTiles(code)
        if any(one.opcode.startswith(("wgmma.mma", "tcgen05.mma")) for one in code.instructions)
        else Observer()
    )


class OperandTiles(OncePerInstruction):
    """Judges operand descriptors, and records the writer and the source of each 16-byte unit of shared memory, and
    whether a product has read the unit.
    """

    source = _ISA

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.scales = ScaleFactors(self._say, self._where)

    def began(self, m: Host) -> None:
        """Reset the state when CTAs begin to run together."""
        self.m = m
        count = len(m.shared) // UNIT_BYTES
        self.tiles: list[WrittenTile | None] = [None]
        self.owner = np.zeros(count, np.int32)
        self.origin = np.full(count, NO_ORIGIN, np.int64)
        self.seen = np.zeros(count, np.bool_)
        self.copied = _CopiedUnits(count, m.shared_stride // UNIT_BYTES, m.ctas)
        self.scales.began(m)

    def ended(self, m: Host, failed: bool) -> None:
        """Judge the tiles that have not been overwritten when the run ends."""
        if not failed:
            for number in distinct(self.owner).tolist():
                self._covered(number)
            for at, read, total in self.copied.in_part():
                self._read_in_part(at, f"{read} of the {total} bytes that cp.async copied", total - read)

    # ---- who wrote ---------------------------------------------------------------------------------------------------

    def wrote(
        self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder, values: Any = None
    ) -> None:
        """Forget the tiles and sources of the units that threads write."""
        if array is self.m.shared:
            units = offsets // UNIT_BYTES
            self.copied.end(units)
            self.owner[units] = 0
            self.origin[units] = NO_ORIGIN

    def read(self, f: Frame, site: Site, array: Array, offsets: Array, nbytes: int, order: AccessOrder) -> None:
        """Threads read."""
        if array is self.m.shared:
            self.copied.use(offsets // UNIT_BYTES)

    def issued(self, f: Frame, site: Site, work: AsyncWork) -> None:
        """Record the tile that a copy writes, or judge the operands that a product reads."""
        if work.kind in ("wgmma", "tcgen05.mma"):
            read = [ReadTile(operand, self._operand(f, site, operand)) for operand in work.operands]
            self.scales.multiplied(f, site, work, read)
        elif work.kind == "tcgen05.cp":
            for span, cells in zip(work.reads, work.cells, strict=True):
                self.scales.copied(cells, self._tiles_of(span))
        elif work.kind == "tensor load":
            for span in work.writes:
                self._tile(site, span.start, span.nbytes, work)
        elif work.kind == "bulk load":
            for span in work.writes:
                if span.array is self.m.shared:
                    self.owner[span.start // UNIT_BYTES : -(-(span.start + span.nbytes) // UNIT_BYTES)] = 0
        elif work.kind == "cp.async":
            self._copied(site, work)
        for span in work.reads if self.copied.sites else ():
            if span.array is self.m.shared and work.kind not in ("wgmma", "tcgen05.mma"):
                whole = np.arange(span.start // UNIT_BYTES, -(-(span.start + span.nbytes) // UNIT_BYTES))
                self.copied.use(whole if span.offsets is None else span.offsets // UNIT_BYTES)

    def tensor_used(
        self, f: Frame, site: Site, cta: int, region: tuple[int, int, int], writes: bool, committed: bool
    ) -> None:
        """Forget the tiles of the tensor-memory columns that a store writes; `issued` handles copies and products."""
        if writes and not committed:
            self.scales.forget(cta, region[1], region[2])

    def _tiles_of(self, span: Touched) -> list[WrittenTile | None]:
        """The tiles that contain the 16-byte units of a span; None represents units that no tensor copy wrote."""
        units = np.asarray(span.offsets) // UNIT_BYTES
        return [self.tiles[number] for number in distinct(self.owner[units]).tolist()]

    def _tile(self, site: Site, place: int, nbytes: int, work: AsyncWork) -> None:
        units = slice(place // UNIT_BYTES, (place + nbytes) // UNIT_BYTES)
        for number in distinct(self.owner[units]).tolist():
            self._covered(number)
        self.copied.end(np.arange(units.start, units.stop))
        self.owner[units] = len(self.tiles)
        self.origin[units] = NO_ORIGIN
        self.seen[units] = False
        self.tiles.append(
            WrittenTile(
                place, nbytes, work.swizzle, site.number, work.map_key, work.data_type, dims=work.dims, bits=work.bits
            )
        )

    def _copied(self, site: Site, work: AsyncWork) -> None:
        """Record the global-memory source of each 16-byte unit that a cp.async writes."""
        target = work.writes[0]
        if target.offsets is None or target.array is not self.m.shared:
            return
        units = target.offsets // UNIT_BYTES
        self.copied.end(units)
        self.owner[units] = 0
        self.origin[units] = NO_ORIGIN
        if target.nbytes == UNIT_BYTES:
            self.copied.begin(units, site.number)
        source = work.reads[0] if len(work.reads) == 1 else None
        if source is None or source.offsets is None or target.nbytes != UNIT_BYTES or len(source.offsets) != len(units):
            return
        for found in self.m.memory.ranges.ranges:
            if found.array is source.array:
                self.origin[units] = found.address + source.offsets
                return

    # ---- who reads ---------------------------------------------------------------------------------------------------

    def _operand(self, f: Frame, site: Site, operand: OperandRead) -> list[WrittenTile]:
        """Judge the descriptor of an operand, and return the tiles that it reads."""
        m = self.m
        try:
            fields, units = _decoded(
                operand.words, operand.major, operand.extent, operand.depth, operand.bits, operand.kind
            )
        except CuteError:
            return []  # the product itself reports this
        width = fields.swizzle.row_bytes
        units = units + (operand.start - m.shared_base) // UNIT_BYTES
        limit = (operand.start + m.shared_bytes) // UNIT_BYTES
        if int(units[0]) < operand.start // UNIT_BYTES or int(units[-1]) >= limit:
            return []
        address = fields.start * UNIT_BYTES
        row = self._row(address, width, operand.start)
        if width > UNIT_BYTES and row and not fields.base_offset:
            text = (
                f"{f.text()}: the descriptor of {operand.name} starts at {address:#x}, in row {row} of a swizzle "
                f"pattern (8 rows of {width} bytes), with no base offset"
            )
            self._say(
                site.number, "descriptor address", text, {"threads": f.text(), "start": address, "swizzle": width}
            )
        owners = distinct(self.owner[units]).tolist()
        tiles = [tile for number in owners if (tile := self.tiles[number]) is not None]
        for tile in tiles:
            tile.read = True
            if tile.width != width:
                text = (
                    (
                        f"{f.text()}: the descriptor of {operand.name} has a swizzle of {width} bytes; "
                        f"{self._where(tile.at)} wrote the tile with one of {tile.width} bytes"
                    )
                    .replace("a swizzle of 16 bytes", "no swizzle")
                    .replace("one of 16 bytes", "none")
                )
                facts = {
                    "threads": f.text(),
                    "swizzle": width,
                    "written with": tile.width,
                    "written at": self._line(tile.at),
                }
                self._say(site.number, "descriptor swizzle", text, facts)
        if len({tile.map_key for tile in tiles}) > 1:
            first, second = tiles[0], next(tile for tile in tiles if tile.map_key != tiles[0].map_key)
            text = (
                f"{f.text()}: the operand {operand.name} at {address:#x} spans two tiles, which "
                f"{self._where(first.at)} and {self._where(second.at)} wrote through different tensor maps"
            )
            facts = {"threads": f.text(), "start": address, "written at": self._line(first.at)}
            self._say(site.number, "descriptor address", text, facts)
        self._types(f, site, operand, tiles)
        if owners == [0] and operand.kind is DescriptorKind.WGMMA:
            self._rows(f, site, operand, fields)
        self.seen[units] = True
        self.copied.use(units, by_product=True)
        return tiles

    def _types(self, f: Frame, site: Site, operand: OperandRead, tiles: list[WrittenTile]) -> None:
        """Check that the instruction descriptor of a tcgen05.mma names the element type of the tensor maps."""
        for tile in tiles:
            if operand.element in _OTHER_TYPES.get(tile.data_type, ()):
                text = (
                    f"{f.text()}: the instruction descriptor states that {operand.name} is {operand.element}; "
                    f"{self._where(tile.at)} wrote the tile through a tensor map of {tile.data_type}"
                )
                facts = {"element": operand.element, "written with": tile.data_type, "written at": self._line(tile.at)}
                self._say(site.number, "instruction descriptor", text, facts)
                return

    def _row(self, address: int, width: int, start: int) -> int:
        """The row of the swizzle pattern that contains an address.

        A tensor copy may put a tile at any multiple of 128 bytes. Copy and product swizzle the same address bits, so
        rows count from the start of the tile. The tiles of CUTLASS's example 48 begin in row 3, and an H200 computes
        the right product.
        """
        place = address - self.m.shared_base + start
        tile = self.tiles[int(self.owner[place // UNIT_BYTES])]
        return (address if tile is None else place - tile.place) % (8 * width) // width

    def _rows(self, f: Frame, site: Site, operand: OperandRead, fields: SmemDescriptor) -> None:
        """Check, for a tile that cp.async wrote, that the rows of the descriptor are rows of global memory."""
        if self._is_picture(operand, operand.words) is not False:
            return
        for other, words in _with_other_swizzles(fields):
            if self._is_picture(operand, words):
                text = (
                    f"{f.text()}: the descriptor of {operand.name} has a swizzle of {fields.swizzle.row_bytes} bytes; "
                    f"cp.async wrote the tile in the pattern of a swizzle of {other.row_bytes} bytes"
                ).replace("a swizzle of 16 bytes", "no swizzle")
                facts = {"threads": f.text(), "swizzle": fields.swizzle.row_bytes, "written with": other.row_bytes}
                self._say(site.number, "descriptor swizzle", text, facts)
                return

    def _is_picture(self, operand: OperandRead, words: int) -> bool | None:
        """Whether an operand's lines are contiguous pieces of global memory at a constant pitch; None if unknown."""
        try:
            units = _lines(words, operand.major, operand.extent, operand.depth, operand.bits) - self.m.shared_base
        except CuteError:
            return None
        if int(units.min()) < 0 or int(units.max()) >= self.m.shared_bytes:
            return None
        held = self.origin[(units + operand.start) // UNIT_BYTES]
        if (held == NO_ORIGIN).any():
            return None
        runs = bool((np.diff(held, axis=2) == UNIT_BYTES).all())
        pitch = np.diff(held[:, :, 0], axis=1)
        return runs and bool((pitch == pitch.flat[0]).all()) and abs(int(pitch.flat[0])) >= UNIT_BYTES * held.shape[2]

    # ---- the end of a tile -------------------------------------------------------------------------------------------

    def _covered(self, number: int) -> None:
        """Check that products have read a whole tile; called when the tile is overwritten or the run ends."""
        tile = self.tiles[number]
        if tile is None or not tile.read:
            return
        tile.read = False
        units = slice(tile.place // UNIT_BYTES, (tile.place + tile.nbytes) // UNIT_BYTES)
        mine = self.owner[units] == number
        left = int(np.count_nonzero(mine & ~self.seen[units]))
        if not left or not mine.all():
            return
        first = int(np.flatnonzero(~self.seen[units])[0]) * UNIT_BYTES
        part = (
            f"{tile.nbytes - UNIT_BYTES * left} of the {tile.nbytes} bytes that the copy wrote to "
            f"{self.m.shared_base + tile.place % self.m.shared_stride:#x}"
        )
        self._read_in_part(tile.at, part, UNIT_BYTES * left, f" from byte {first} on")

    def _read_in_part(self, at: int, part: str, left: int, where: str = "") -> None:
        text = (
            f"products read {part}; {counted(left, 'byte')}{where} are never read, "
            "so a descriptor does not start where the tile starts"
        )
        self._say(at, "tile read in part", text, {"cause": "descriptor address", "bytes": left}, "warning")

    # ---- texts -------------------------------------------------------------------------------------------------------

    def _line(self, at: int) -> int:
        found: int = self.code.instructions[at].line
        return found


_BY_THREADS: Final = 1
_BY_PRODUCT: Final = 2


class _CopiedUnits:
    """The units that cp.async copied, and which of them are read.

    A tile is what one execution of an instruction copies in one CTA. A unit counts when it is overwritten, or when the
    run ends.
    """

    def __init__(self, count: int, per_cta: int, ctas: int) -> None:
        self.per_cta, self.ctas = per_cta, ctas
        self.tile = np.zeros(count, np.int32)
        """Number of the tile of each unit; 0: none."""
        self.used = np.zeros(count, np.int8)
        """Who reads each unit."""
        self.sites: list[int] = []
        self.ended: list[tuple[Array, Array]] = []

    def begin(self, units: Array, at: int) -> None:
        """Instruction number `at` copies these units."""
        self.tile[units] = 1 + len(self.sites) * self.ctas + units // self.per_cta
        self.used[units] = 0
        self.sites.append(at)

    def use(self, units: Array, *, by_product: bool = False) -> None:
        """Threads or a product read these units."""
        if self.sites:
            self.used[units] = _BY_PRODUCT if by_product else self.used[units] | _BY_THREADS

    def end(self, units: Array) -> None:
        """These units are overwritten."""
        if self.sites and (tiles := self.tile[units]).any():
            self.ended.append((tiles, self.used[units]))
            self.tile[units] = 0

    def in_part(self) -> list[tuple[int, int, int]]:
        """The instruction, the bytes read and all bytes of each tile that products read only in part and nothing else
        reads."""
        self.end(np.arange(len(self.tile)))
        if not self.ended:
            return []
        tiles, used = (np.concatenate([pair[part] for pair in self.ended]) for part in (0, 1))
        total, read, products = (np.bincount(tiles, weight) for weight in (None, used > 0, used & _BY_PRODUCT > 0))
        total[0] = 0
        found = np.flatnonzero((products > 0) & (read < total))
        return [
            (self.sites[(one - 1) // self.ctas], int(read[one]) * UNIT_BYTES, int(total[one]) * UNIT_BYTES)
            for one in found.tolist()
        ]


@functools.lru_cache(maxsize=4096)
def _decoded(
    words: int, major: Major, extent: int, depth: int, bits: int, kind: DescriptorKind
) -> tuple[SmemDescriptor, Array]:
    """The fields of a descriptor, and the sorted indices of the 16-byte units that it reads."""
    units = operand_units(words, major, extent, depth, bits, kind)
    return SmemDescriptor.decode(words, kind), units // UNIT_BYTES


@functools.lru_cache(maxsize=4096)
def _with_other_swizzles(fields: SmemDescriptor) -> list[tuple[SmemSwizzle, int]]:
    """Return (swizzle, descriptor bits) for each other swizzle that the descriptor could have."""
    found = []
    for other in _WIDEST_FIRST:
        if other is not fields.swizzle:
            with contextlib.suppress(CuteError):
                found.append((other, replace(fields, swizzle=other).encode()))
    return found


@functools.lru_cache(maxsize=4096)
def _lines(words: int, major: Major, extent: int, depth: int, bits: int) -> Array:
    return row_units(words, major, extent, depth, bits)
