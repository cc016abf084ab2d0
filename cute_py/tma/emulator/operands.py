"""The operands of an instruction, checked as an assembler and the registers would: what is no TMA operand at all.

What the hardware itself refuses is in `emulator_traps`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cute_py.argument_checks import expect_integer, expect_integer_array
from cute_py.errors import InvalidValueError, TmaTrap, given
from cute_py.tma.emulator.memory import SHARED_LIMIT, SharedMemory
from cute_py.tma.emulator.reduce import OPS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cute_py.tma.emulator.geometry import Geometry

SMEM_ALIGNMENT: Final = 128
"""Bytes; other addresses trap. Source: measured on NVIDIA H200, driver 580.159.04; PTX ISA 9.0 says so too."""

OFFSET_BITS: Final = {3: 16, 4: 8, 5: 5}
"""Rank -> bits of an im2col offset. Source: PTX ISA 9.0, im2col mode."""

HALO_LIMITS: Final = {"im2col::w": 512, "im2col::w::128": 32}
"""Mode -> wHalo must be below this. Source: PTX ISA 9.0, cp.async.bulk.tensor."""

W_OFFSET_LIMIT: Final = 32


BOX_LIMIT: Final = 1 << 22
"""Bytes: far above the boxes that the driver accepts, below what would take long to walk here."""


def require_box(geometry: Geometry, rows: int | None = None) -> None:
    """Refuse to walk a box that no shared memory holds, where no shared memory is there that would.

    Raises:
        InvalidValueError: the rows of one instruction are beyond `BOX_LIMIT` bytes.
    """
    nbytes = (geometry.rows if rows is None else rows) * geometry.row_bytes
    if nbytes > BOX_LIMIT:
        raise InvalidValueError(f"box of {nbytes} bytes; more than any shared memory holds")


def _matrix(values: Any, width: int, what: str) -> NDArray[np.int64]:
    array = expect_integer_array(values, what)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidValueError(f"{what}: {array.shape[-1] if array.ndim else 0} given; must be {width}")
    return array


def coordinates(geometry: Geometry, coords: Any) -> NDArray[np.int64]:
    """(n, k) coordinates of n instructions; k is the rank, or 5 for gather4 and scatter4.

    Raises:
        InvalidValueError: the wrong number of them, or one that is no 32-bit signed integer.
        InvalidTypeError: not integers.
    """
    width = 5 if geometry.mode in ("tile::gather4", "tile::scatter4") else geometry.rank
    array = _matrix(coords, width, "coordinates")
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        bad = array[((array < -(2**31)) | (array >= 2**31)).any(axis=1)][0]
        raise InvalidValueError(f"coordinates = {tuple(bad.tolist())}; each must fit a 32-bit signed integer")
    return array


def _present(values: Any, what: str) -> bool:
    """Whether there is any number in `values`."""
    return (
        values is not None
        and (not isinstance(values, (tuple, list)) or bool(values))
        and (expect_integer_array(values, what).size > 0)
    )


def im2col_offsets(geometry: Geometry, offsets: Any, n: int) -> NDArray[np.int64]:
    """(n, R-2) offsets of im2col, or (n, 2) wHalo and wOffset of the w modes; zeros if none are given.

    Raises:
        InvalidValueError: given for another mode, the wrong number of them, or out of range.
    """
    given = _present(offsets, "im2col offsets")
    if not geometry.mode.startswith("im2col"):
        if given:
            raise InvalidValueError(f"im2col offsets with mode {geometry.mode!r}; only the im2col modes take them")
        return np.zeros((n, 0), np.int64)
    wide = geometry.mode != "im2col"
    width = 2 if wide else geometry.rank - 2
    if not given:
        return np.zeros((n, width), np.int64)
    array = np.broadcast_to(_matrix(offsets, width, "im2col offsets"), (n, width))
    limits = (HALO_LIMITS[geometry.mode], W_OFFSET_LIMIT) if wide else (1 << OFFSET_BITS[geometry.rank],) * width
    if (array < 0).any() or (array >= np.asarray(limits)).any():
        bad = array[((array < 0) | (array >= np.asarray(limits))).any(axis=1)][0]
        raise InvalidValueError(f"im2col offsets = {tuple(bad.tolist())}; each must be 0 to {[x - 1 for x in limits]}")
    if wide and len(array) > 1 and (array != array[0]).any():
        raise InvalidValueError("instructions that run at once must have one wHalo and one wOffset")
    return array


def reduction(op: Any) -> str:
    """The lower-case name of a reduction, from its name or an enum member of that name.

    Raises:
        InvalidValueError: no such reduction.
    """
    name = getattr(op, "name", op)
    if not isinstance(name, str) or name.lower() not in OPS:
        raise InvalidValueError(f"reduction {given(op)}; must be one of {', '.join(OPS)}")
    return name.lower()


def refuse_load_operands(instruction: str, offsets: Any, barrier: Any, multicast_mask: Any) -> None:
    """Stores and reductions have the arguments of a load, so that one call fits all; three of them must be absent.

    Raises:
        InvalidValueError: im2col offsets, a barrier, or a multicast mask.
    """
    there_is = {
        "im2col offsets": _present(offsets, "im2col offsets"),
        "a barrier": barrier is not None,
        "a multicast mask": multicast_mask is not None,
    }
    wrong = [name for name, there in there_is.items() if there]
    if wrong:
        raise InvalidValueError(f"{instruction} has no operand for {' and '.join(wrong)}; only loads have")


def offsets_of_windows(offsets: Any, n: int) -> NDArray[np.int64]:
    """(n,) int64 of one offset for all windows, or one for each.

    Raises:
        InvalidTypeError: not integers. InvalidValueError: another number of them.
    """
    array = expect_integer_array(offsets, "shared-memory offsets")
    if array.shape not in ((), (1,), (n,)):
        raise InvalidValueError(f"shared-memory offsets of shape {array.shape}; must be one, or {n}")
    return np.broadcast_to(array, (n,)).astype(np.int64)  # a copy: one offset for all is a view without strides


def window_offsets(smem: SharedMemory, offsets: Any, n: int) -> NDArray[np.int64]:
    """(n,) offsets of the windows in shared memory.

    Raises:
        InvalidValueError: negative.
        TmaTrap: CUDA_ERROR_MISALIGNED_ADDRESS: the address is not a multiple of 128.
    """
    if type(offsets) is int and 0 <= offsets < SHARED_LIMIT and (offsets + smem.base) % SMEM_ALIGNMENT == 0:
        return np.full(n, offsets, np.int64)
    array = offsets_of_windows(offsets, n)
    if len(array) and array.min() < 0:
        raise InvalidValueError(f"shared-memory offset = {int(array.min())} bytes; must be 0 or more")
    if len(array) and array.max() >= SHARED_LIMIT:
        raise InvalidValueError(f"shared-memory offset = {int(array.max())} bytes; must fit in 32 bits")
    bad = np.flatnonzero((array + smem.base) % SMEM_ALIGNMENT)
    if len(bad):
        offset = int(array[bad[0]])
        raise TmaTrap(
            "CUDA_ERROR_MISALIGNED_ADDRESS",
            f"shared-memory address = {offset + smem.base} bytes; must be a multiple of {SMEM_ALIGNMENT}",
            {"offset": offset, "base": smem.base},
        ).of_rule("shared-memory address")
    return array


def destinations(smem: SharedMemory, multicast_mask: int | None) -> list[SharedMemory]:
    """The shared memories that a load writes: the one given, or those of the CTAs in the mask.

    Raises:
        InvalidValueError: a mask of 0 or beyond 16 bits, or a bit without a CTA.
    """
    if multicast_mask is None:
        return [smem]
    multicast_mask = expect_integer(multicast_mask, "the multicast mask")
    if not 1 <= multicast_mask <= 0xFFFF:
        raise InvalidValueError(f"multicast mask = 0x{multicast_mask:x}; must be 1 to 0xffff")
    ranks = [i for i in range(16) if multicast_mask >> i & 1]
    if ranks[-1] >= len(smem.peers):
        raise InvalidValueError(f"multicast mask names CTA {ranks[-1]}; the cluster has {len(smem.peers)}")
    return [smem.peers[i] for i in ranks]
