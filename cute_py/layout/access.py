"""What one warp's access costs: bank conflicts in shared memory, sectors in global memory.

A layout says which element each thread touches: mode 0 is the thread, mode 1 (if any) the value within the thread.

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
"""Elements of one access by a warp: 32 threads with more values than registers hold are far below."""
VECTOR_BITS = (128, 64, 32)
"""Widths of one thread's access above which a request takes more than one phase."""


@dataclass(frozen=True, slots=True)
class BankConflicts:
    """Shared-memory cost of one access by a warp.

    `wavefronts`: per phase, how many rounds it takes; 1 is conflict-free. `vector_bits`: width of one thread's access.
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
    """Global-memory cost of one access by a warp: 32-byte sectors and 128-byte lines, and the bytes asked for."""

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


def _element_offsets(layout: Any, base: Any, bits: int) -> Any:
    """int64 array (threads, values) of element offsets, whose bits from byte `base` on are counted in 64 bits."""
    base = expect_integer(base, "base", unit="bytes")
    if not 1 <= bits <= MAX_BITS:
        raise InvalidValueError(f"an element of {bits} bits; must be 1 to {MAX_BITS}")
    count = domain_size(layout)
    if count > MAX_ACCESSES:
        raise InvalidValueError(
            f"a warp access of {count} elements; at most {MAX_ACCESSES} are counted", {"layout": layout}
        )
    table = offsets(layout)
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


def bank_conflicts(layout: Any, dtype: Any, *, vector_bits: int | None = None, base: int = 0) -> BankConflicts:
    """The shared-memory bank conflicts of one access by up to 32 threads.

    Args:
        layout: (thread) or (thread, value) -> offset in elements; plain or swizzled.
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
    """
    import numpy as np

    bits = bits_of(dtype)
    if vector_bits is not None:
        expect_integer(vector_bits, "vector_bits")
    table = _element_offsets(layout, base, bits)
    if bits % 8:
        raise InvalidValueError(f"bank conflicts count bytes; an element has {bits} bits")
    threads, values = table.shape
    if threads > 32:
        raise InvalidValueError(f"one warp has 32 threads, the layout {threads}", {"layout": layout})
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
    together = 32 * BANK_BYTES // max(size, BANK_BYTES)
    rounds = []
    for access in range(first.shape[1]):
        for begin in range(0, threads, together):
            starts = first[begin : begin + together, access]
            words = np.unique((starts[:, None] + np.arange(0, size, min(size, BANK_BYTES))) // BANK_BYTES)
            rounds.append(int(np.bincount(words % BANKS, minlength=BANKS).max()))
    return BankConflicts(width, tuple(rounds))


def coalescing(layout: Any, dtype: Any, *, base: int = 0) -> Coalescing:
    """The sectors and lines of global memory that a warp's access touches.

    Args:
        layout: (thread) or (thread, value) -> offset in elements.
        dtype: element type, or its bits.
        base: byte address of offset 0.

    >>> coalescing(Layout(32), "float32")
    Coalescing(sectors=4, lines=1, bytes_requested=128)
    >>> coalescing(Layout(32, 64), "float16").sectors
    32
    """
    import numpy as np

    bits = bits_of(dtype)
    table = np.unique(_element_offsets(layout, base, bits))
    begin = base * 8 + table * bits
    if bits % 8 == 0:
        spread = np.arange(0, bits, 8)
    else:
        spread = np.array([0, bits - 1])
    touched = np.unique((begin[:, None] + spread) // 8)
    return Coalescing(len(np.unique(touched // SECTOR_BYTES)), len(np.unique(touched // LINE_BYTES)), len(touched))
