"""What the accesses of warps cost: bank conflicts in shared memory, sectors in global memory.

A layout says which element each thread touches: mode 0 is the thread, mode 1 (if any) the value within the thread. A
tile's layout needs `access` as well: who touches which of its elements.

Shared memory has 32 banks of 4 bytes. One request serves 32 threads of 4 bytes, 16 threads of 8 or 8 threads of 16:
a 64-bit access is done in 2 phases, a 128-bit access in 4. Within a phase, different words of one bank are served one
after another; the same word is served to everybody at once.

Global memory moves in sectors of 32 bytes, four of them in a line of 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_choice, expect_integer, expect_integers
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.layout.offsets import domain_size, offsets
from cute_py.layout.recast import bits_of

BANKS = 32
BANK_BYTES = 4
SECTOR_BYTES = 32
LINE_BYTES = 128
MAX_BITS = 1 << 16
"""Bits of one element: the largest power of two that a box can hold is far below."""
MAX_ACCESSES = 1 << 20
"""Elements of one access: 1024 threads with more values than registers hold are below."""
WARP = 32
"""Threads whose access is one request; more threads are several requests."""
VECTOR_BITS = (128, 64, 32)
"""Widths of one thread's access above which a request takes more than one phase."""


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Shared-memory cost of an access.

    `wavefronts`: per phase of each warp, how many rounds it takes; 1 is conflict-free. `vector_bits`: width of one
    thread's access.
    """

    vector_bits: int
    wavefronts: tuple[int, ...]

    def __post_init__(self) -> None:
        expect_choice(self.vector_bits, (8, 16, 32, 64, 128), "vector_bits")
        if not expect_integers(self.wavefronts, "wavefronts", 1, unit="rounds"):
            raise InvalidValueError("wavefronts is empty; an access has at least one phase")

    @property
    def total(self) -> int:
        """Rounds of all phases."""
        return sum(self.wavefronts)

    @property
    def conflicts(self) -> int:
        """Rounds beyond one per phase; 0 is conflict-free."""
        return self.total - len(self.wavefronts)

    @property
    def ways(self) -> int:
        """The worst phase: an n-way conflict."""
        return max(self.wavefronts)


@dataclass(frozen=True, slots=True)
class Coalescing:
    """Global-memory cost of an access: 32-byte sectors, 128-byte lines, the bytes asked for; the sum over warps."""

    sectors: int
    lines: int
    bytes_requested: int

    def __post_init__(self) -> None:
        for name in ("sectors", "lines", "bytes_requested"):
            expect_integer(getattr(self, name), name, 0)

    @property
    def efficiency(self) -> float:
        """Distinct bytes asked for / bytes moved; 1.0 is perfectly coalesced."""
        return self.bytes_requested / (self.sectors * SECTOR_BYTES) if self.sectors else 1.0


_ACCESSES = ("row", "column", "ldmatrix")


def accessed(layout: Any, access: Any, bits: int, vector_bits: int | None = None) -> Any:
    """(thread, value) -> offset, int64 array, of an access to a tile.

    Args:
        layout: (row, column) -> offset in elements.
        access: a TiledCopy (its source side), a thread-value layout into the tile's elements, first mode fastest, or
            'row', 'column': consecutive threads take consecutive elements along the rows, the columns, until the tile
            is done; 'ldmatrix': each thread gives the address of 16 bytes, eight threads those of an 8x8 matrix of 16
            bits.
        bits: of an element.
        vector_bits: elements that a thread takes at once in a row or column; default the widest that are contiguous.
    """
    import numpy as np

    if hasattr(access, "tidfrg_S"):
        parts = access.tidfrg_S(layout)
        table = offsets(parts)
        return table.reshape(table.shape[0], -1, order="F")
    table = offsets(layout)
    if not isinstance(access, str):
        places = offsets(access)
        if places.min() < 0 or places.max() >= table.size:
            raise InvalidValueError(
                "a thread-value layout leaves the tile", {"access": access, "elements of the tile": table.size}
            )
        return table.ravel(order="F")[places]
    expect_choice(access, _ACCESSES, "access")
    if table.ndim != 2:
        raise InvalidTypeError(f"a tile has a row and a column, got {table.ndim} modes", {"layout": layout})
    if access == "ldmatrix":
        per_row = max(128 // bits, 1)
        if (np.diff(table[:, :per_row], axis=1) != 1).any():
            table = table.T
        rows, columns = table.shape
        if rows % 8 or columns % per_row or 128 % bits:
            raise InvalidValueError(f"ldmatrix takes 8 rows of {per_row} contiguous elements", {"layout": layout})
        return table.reshape(rows, -1, per_row).swapaxes(0, 1).reshape(-1, per_row)
    flat = table.ravel(order="C" if access == "row" else "F")
    for width in VECTOR_BITS if vector_bits is None else (vector_bits,):
        if width % bits == 0 and flat.size % (width // bits) == 0:
            taken = flat.reshape(-1, width // bits)
            aligned = not (taken[:, 0] * bits % width).any()
            if vector_bits is not None or (aligned and not (np.diff(taken, axis=1) != 1).any()):
                return taken
    return flat[:, None]


def _element_offsets(layout: Any, base: Any, bits: int, access: Any = None, vector_bits: int | None = None) -> Any:
    """int64 array (threads, values) of element offsets, whose bits from byte `base` on are counted in 64 bits."""
    base = expect_integer(base, "base", unit="bytes")
    if not 1 <= bits <= MAX_BITS:
        raise InvalidValueError(f"an element of {bits} bits; must be 1 to {MAX_BITS}")
    count = domain_size(layout)
    if count > MAX_ACCESSES:
        raise InvalidValueError(
            f"a warp access of {count} elements; at most {MAX_ACCESSES} are counted", {"layout": layout}
        )
    table = offsets(layout) if access is None else accessed(layout, access, bits, vector_bits)
    if not table.size:
        raise InvalidValueError("a warp access has at least one thread and one value", {"layout": layout})
    reach = max(abs(int(table.min())), abs(int(table.max()))) * bits + abs(int(base)) * 8
    if reach >= 2**62:
        raise InvalidValueError(f"an access {reach} bits from address 0; must be less than 2**62", {"base": base})
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise InvalidTypeError(
            f"a warp access is a layout of (thread) or (thread, value), got {table.ndim} modes", {"layout": layout}
        )
    return table


def bank_conflicts(
    layout: Any, dtype: Any, *, access: Any = None, vector_bits: int | None = None, base: int = 0
) -> BankConflicts:
    """The shared-memory bank conflicts of one access; of more than 32 threads, one warp after another.

    Args:
        layout: (thread) or (thread, value) -> offset in elements; plain or swizzled. With `access`, that of a tile.
        access: who touches which element of the tile: a TiledCopy, a thread-value layout, 'row', 'column' or
            'ldmatrix'; see `accessed`.
        dtype: element type, or its bits (8 and more).
        vector_bits: width of one thread's access: 8, 16, 32, 64 or 128. Default: the widest that the values fill, at
            most 128. More values than one access holds are several accesses, whose phases are listed in order.
        base: byte address of offset 0.
    Raises:
        LayoutError: the values of one access are not contiguous, or not aligned to its width.
    Source:
        CUDA C++ Programming Guide, shared memory of compute capability 5.x and newer (32 banks of 32 bits); the phases
        of 64- and 128-bit accesses are documented by practice (profilers' wavefronts), not measured here.

    >>> bank_conflicts(Layout(32, 32), "float32").ways          # a column of a 32x32 tile
    32
    >>> bank_conflicts(Layout((8, 8), (64, 1)), "float16").wavefronts
    (8,)
    >>> bank_conflicts(composition(Swizzle(3, 3, 3), Layout((8, 8), (64, 1))), "float16").wavefronts
    (1,)
    >>> bank_conflicts(Layout((8, 64), (64, 1)), "float16", access="ldmatrix").ways
    8
    """
    import numpy as np

    bits = bits_of(dtype)
    if vector_bits is not None:
        expect_integer(vector_bits, "vector_bits")
    if vector_bits is None and hasattr(access, "tidfrg_S"):
        vector_bits = next((w for w in (*VECTOR_BITS, 16, 8) if access.atom.num_val_src * bits % w == 0), None)
    table = _element_offsets(layout, base, bits, access, vector_bits)
    if bits % 8:
        raise InvalidValueError(f"bank conflicts count bytes; an element has {bits} bits")
    threads, values = table.shape
    width = vector_bits
    if width is None:
        width = next((w for w in VECTOR_BITS if values * bits % w == 0 and w % bits == 0), bits)
    if width not in (8, 16, 32, 64, 128) or width % bits or values * bits % width:
        raise InvalidValueError(
            f"an access of {width} bits does not hold whole elements of {bits} bits, {values} to a thread"
        )
    per_access, size = width // bits, width // 8
    address = base + table * (bits // 8)
    groups = address.reshape(threads, -1, per_access)
    first = groups[:, :, 0]
    if (np.diff(groups, axis=2) != bits // 8).any():
        raise LayoutError("the values of one access are not contiguous", {"layout": layout, "access": f"{width} bits"})
    if (first % size).any():
        raise LayoutError(f"an access of {size} bytes is not aligned to its width", {"layout": layout, "base": base})
    together = WARP * BANK_BYTES // max(size, BANK_BYTES)
    rounds = []
    for access in range(first.shape[1]):
        for begin in range(0, threads, together):
            starts = first[begin : begin + together, access]
            words = np.unique((starts[:, None] + np.arange(0, size, min(size, BANK_BYTES))) // BANK_BYTES)
            rounds.append(int(np.bincount(words % BANKS, minlength=BANKS).max()))
    return BankConflicts(width, tuple(rounds))


def coalescing(
    layout: Any, dtype: Any, *, access: Any = None, vector_bits: int | None = None, base: int = 0
) -> Coalescing:
    """The sectors and lines of global memory that an access touches; of more than 32 threads, the sum of the warps.

    Args:
        layout: (thread) or (thread, value) -> offset in elements. With `access`, that of a tile.
        access: who touches which element of the tile: a TiledCopy, a thread-value layout, 'row' or 'column'; see
            `accessed`.
        vector_bits: what a thread takes at once in a row or column; default the widest that is contiguous.
        dtype: element type, or its bits.
        base: byte address of offset 0.

    >>> coalescing(Layout(32), "float32")
    Coalescing(sectors=4, lines=1, bytes_requested=128)
    >>> coalescing(Layout(32, 64), "float16").sectors
    32
    """
    import numpy as np

    bits = bits_of(dtype)
    table = _element_offsets(layout, base, bits, access, vector_bits)
    counts = [_touched(np.unique(table[begin : begin + WARP]), bits, base) for begin in range(0, table.shape[0], WARP)]
    return Coalescing(*map(sum, zip(*counts, strict=True)))


def _touched(elements: Any, bits: int, base: int) -> tuple[int, int, int]:
    """Sectors, lines and bytes of the elements of one request."""
    import numpy as np

    begin = base * 8 + elements * bits
    spread = np.arange(0, bits, 8) if bits % 8 == 0 else np.array([0, bits - 1])
    touched = np.unique((begin[:, None] + spread) // 8)
    return len(np.unique(touched // SECTOR_BYTES)), len(np.unique(touched // LINE_BYTES)), len(touched)
