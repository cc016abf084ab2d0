"""Who touched which bytes last: shadow memory in numpy.

Memory is divided into granules of as many bytes as the smallest access of the kernel has. A granule keeps a key of its
last write, and keys of its last reads in a few slots. A key is 63 bits:

    62       careful: the agent is asynchronous, or a warp of another CTA than the granule's; or an mbarrier lies here
    38..61   time of the agent
    25..37   cluster, counted over all waves of the launch
    14..24   column of the agent in its cluster (see `clocks`)
    1..13    number of the instruction among those that touch memory
    0        strong: an atomic operation, or an access that others may synchronise by

0 is a granule that nothing has touched. Keys order by time, so that one comparison with the floor of a CTA's clocks
shows that all of many accesses are in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from cute_py.ptx.parse import OperandKind

if TYPE_CHECKING:
    from cute_py.machine.code import Code
    from cute_py.machine.threads import Array
    from cute_py.ptx.source import SourceInstruction

CAREFUL: Final = 1 << 62
TIME: Final = 38
CLUSTER: Final = 25
COLUMN: Final = 14
SITE: Final = 1
TIME_BITS: Final = (1 << 24) - 1
CLUSTER_BITS: Final = (1 << 13) - 1
COLUMN_BITS: Final = (1 << 11) - 1
SITE_BITS: Final = (1 << 13) - 1
AGENT: Final = CLUSTER_BITS << CLUSTER | COLUMN_BITS << COLUMN
"""The bits of a key that say whose it is."""

MAX_SHADOW: Final = 1 << 26
"""Keys of one array of memory; a greater one is not judged."""

MAX_SLOTS: Final = 1 << 23
"""Keys of reads that shared memory keeps in all."""


@dataclass(slots=True)
class Shadow:
    """The keys of one array of bytes.

    Attributes:
        shift: a granule has 1 << shift bytes. writes: (granules,). reads: (granules * slots,). slots: warps that share
            none of them where there are enough.
    """

    shift: int
    writes: Array
    reads: Array
    slots: int

    @staticmethod
    def of(nbytes: int, shift: int, slots: int) -> Shadow:
        """Of an array that nothing has touched."""
        count = (nbytes >> shift) + 1
        return Shadow(shift, np.zeros(count, np.int64), np.zeros(count * slots, np.int64), slots)

    def granules(self, offsets: Array, nbytes: int) -> tuple[Array, int]:
        """The granules of accesses, (n * k,), and k: those of one access follow each other."""
        first = offsets >> self.shift
        if nbytes <= 1 << self.shift:
            return first, 1
        count = nbytes >> self.shift
        return (first[:, None] + np.arange(count)).reshape(-1), count


def least_access(code: Code, *, shared: bool) -> int:
    """log2 of the bytes of the smallest access of a kernel to shared, or to global memory; at most 16 bytes."""
    least = 8 if shared else 16
    for one in code.instructions:
        words = one.opcode.split(".")
        nbytes = _access_bytes(one, words)
        if nbytes and (_touches_shared(words) if shared else _touches_global(words)):
            least = min(least, nbytes)
    return least.bit_length() - 1


def _touches_shared(words: list[str]) -> bool:
    if words[0] == "cp" or any(word.startswith("shared") for word in words):
        return True
    return not any(word in ("global", "local", "const", "param") or word.startswith("param") for word in words)


def _touches_global(words: list[str]) -> bool:
    if words[0] == "cp" or "global" in words:
        return True
    return not any(word in ("local", "const") or word.startswith(("param", "shared")) for word in words)


def _access_bytes(one: SourceInstruction, words: list[str]) -> int:
    """Bytes of one access of an instruction; 0: it has none that counts here."""
    if words[0] in ("ld", "st", "ldu", "atom", "red"):
        vector = next((int(word[1:]) for word in words if word in ("v2", "v4", "v8")), 1)
        return _type_bytes(words[-1]) * vector
    if words[0] == "cp" and "bulk" not in words and len(one.operands) >= 3:
        value = one.operands[2]
        if value.kind is OperandKind.IMMEDIATE and value.value in (4, 8, 16):
            return int(value.value)
    return 0


def _type_bytes(word: str) -> int:
    packed = 2 if word.endswith("x2") else 1
    digits = "".join(c for c in word.removesuffix("x2") if c.isdigit())
    return max(int(digits or 0) // 8, 1) * packed
