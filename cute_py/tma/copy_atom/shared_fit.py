"""Whether a tile fits into the shared memory of one block, with the barrier that counts its bytes.

A tensor map holds a box and knows nothing of a tile of several boxes: it can be legal, and its copy can never run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cute_py.errors import TmaLimitError
from cute_py.layout.coprofile import cosize
from cute_py.tma.descriptor.arch import architecture

if TYPE_CHECKING:
    from cute_py.tma.copy_atom.tile_atom import TileAtom

BARRIER_BYTES: Final = 8
"""Bytes of an mbarrier, which lies in shared memory beside the tile of a load."""


def why_not_fits(atom: TileAtom) -> str | None:
    """Why the tile of this atom can't lie in the shared memory of one block, or None.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 1024), (1024, Int(1))))
    >>> tile = Layout((Int(256), Int(512)), LayoutRight)
    >>> why_not_fits(cute.tma.make_tma_atom("SM90_TMA_LOAD", x, tile, split_oversize=True))
    'a tile of 262144 bytes and a barrier of 8; a block has at most 232448 bytes of shared memory on sm_90'
    """
    direction = atom.op.row.direction
    if direction == "prefetch":
        return None
    gpu = architecture(atom.arch)
    taken = -(-int(cosize(atom.tile)) * atom.dtype.bits // 8)
    barrier = BARRIER_BYTES if direction == "load" else 0
    if taken + barrier <= gpu.block_shared_memory_bytes:
        return None
    beside = f" and a barrier of {barrier}" if barrier else ""
    limit = f"a block has at most {gpu.block_shared_memory_bytes} bytes of shared memory on {gpu.name}"
    return f"a tile of {taken} bytes{beside}; {limit}"


def expect_fits(atom: TileAtom) -> None:
    """Refuse an atom whose copy can never run.

    Raises:
        TmaLimitError: its tile does not fit, see `why_not_fits`.
    """
    reason = why_not_fits(atom)
    if reason is not None:
        raise TmaLimitError(reason, {"shared tile": atom.smem_layout})
