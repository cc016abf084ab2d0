"""Check the operands of an instruction, as assembler, registers and hardware do, before any byte moves.

An instruction form that the architecture lacks raises EmissionError. Operands that no instruction can have raise
InvalidValueError. If the hardware itself refuses an instruction, it traps: `check_traps` lists the reasons for
CUDA_ERROR_ILLEGAL_INSTRUCTION, which leaves memory unchanged. `unmeasured` names the documented behaviour of an
instruction that was not measured; `Emulator(strict=True)` refuses such instructions.
"""

from __future__ import annotations

import functools
import re
from enum import Enum
from typing import TYPE_CHECKING, Final

from cute_py.argument_checks import expect_integer, expect_integer_array
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import EmissionError, InvalidValueError, TmaTrap, given
from cute_py.tma.emulator.geometry import MEASURED, SWIZZLES, W128_GROUP, Geometry
from cute_py.tma.emulator.memory import MAX_CTAS, SHARED_LIMIT, Flags, Integers, IntegersLike, SharedMemory
from cute_py.tma.emulator.values import REDUCTIONS
from cute_py.tma.emulator.walk import bounding_box

if TYPE_CHECKING:
    import numpy as np
else:
    from cute_py.optional_packages import numpy as np

ILLEGAL_INSTRUCTION: Final = "CUDA_ERROR_ILLEGAL_INSTRUCTION"

SMEM_ALIGNMENT: Final = 128
"""Alignment in bytes; other addresses trap. Source: measured on NVIDIA H200, driver 580.159.04; PTX ISA 9.0."""

OFFSET_BITS: Final = {3: 16, 4: 8, 5: 5}
"""Rank -> bits of an im2col offset. Source: PTX ISA 9.0, im2col mode."""

HALO_LIMITS: Final = {"im2col::w": 512, "im2col::w::128": W128_GROUP}
"""Mode -> wHalo must be below this. Source: PTX ISA 9.0, cp.async.bulk.tensor."""

W_OFFSET_LIMIT: Final = 32

BOX_LIMIT: Final = 1 << 22
"""Largest number of bytes of a box: far above the boxes that the driver accepts, and small enough for a fast walk."""


# ---- forms -----------------------------------------------------------------------------------------------------------

_LOADS: Final = ("tile", "tile::gather4", "im2col", "im2col::w", "im2col::w::128")

MODES_OF: Final[dict[str, tuple[str, ...]]] = {
    "load": _LOADS,
    "prefetch": _LOADS,
    "store": ("tile", "tile::scatter4", "im2col"),
    "reduce": ("tile", "im2col"),
}
"""Instruction -> its modes; the im2col of stores and reductions is PTX's im2col_no_offs. Source: ptxas 13.0.88."""

NEWER_FORMS: Final[dict[tuple[str, str], bool]] = {
    ("tile::gather4", "load"): False,
    ("tile::gather4", "prefetch"): True,
    ("im2col::w", "load"): False,
    ("im2col::w", "prefetch"): True,
    ("im2col::w::128", "load"): False,
    ("im2col::w::128", "prefetch"): True,
    ("tile::scatter4", "store"): True,
    ("cta_group::2", "load"): True,
}
"""(mode or modifier, instruction) -> whether it exists only in the architecture-specific targets (suffix a or f) of the
datacenter chips. The listed forms exist on sm_100 and newer, all others on sm_90 and newer. Source: ptxas 13.0.88."""

_DATACENTER: Final = (100, 101, 103, 110)


def check_form(arch: str, form: str, instruction: str) -> list[Diagnostic]:
    """List the reasons why `instruction` does not have the form `form` on `arch`.

    Raises:
        InvalidValueError: `arch` is not the name of an architecture.

    >>> check_form("sm_90a", "tile::gather4", "load")[0].message
    'load: .tile::gather4 needs sm_100 or newer'
    >>> check_form("sm_100a", "tile::gather4", "load")
    []
    """
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    if match is None:
        raise InvalidValueError(f"architecture {arch!r}; must look like 'sm_90a'")
    number, family = int(match[1]), NEWER_FORMS.get((form, instruction))
    if number < 90:
        why = "bulk tensor copies need sm_90 or newer"
    elif family is None:
        return []
    elif number < 100:
        why = f".{form} needs sm_100 or newer"
    elif family and (number not in _DATACENTER or not match[2]):
        why = f".{form} needs sm_100a, sm_100f or another of that family"
    else:
        return []
    return [Diagnostic("form", text=f"{instruction}: {why}", facts={"architecture": arch})]


@functools.cache
def require_form(arch: str, form: str, instruction: str) -> None:
    """Raise an error if the assembler would refuse the instruction form.

    Raises:
        EmissionError: the form does not exist on this architecture.
    """
    refuse(EmissionError, check_form(arch, form, instruction))


@functools.lru_cache(maxsize=256)
def unmeasured(geometry: Geometry, instruction: str, *, pair: bool = False) -> str:
    """Name the documented behaviour of an instruction that was not measured; '' if all of it was.

    Args:
        instruction: 'load', 'store', 'reduce' or 'prefetch'.
        pair: whether the instruction has .cta_group::2.
    """
    row = SWIZZLES[geometry.swizzle]
    # Interleaved im2col stores agreed with a device on random instructions, but no recorded row has one.
    reasons = {
        f"mode {geometry.mode}": geometry.mode not in ("tile", "im2col"),
        f"swizzle {row.kind.name}": row.evidence != MEASURED,
        "rows that are not a multiple of 16 bytes": geometry.row_bytes % 16 != 0,
        "rows wider than the swizzle": bool(geometry.swizzle) and geometry.row_bytes > row.span,
        f"element format {geometry.data_type.name}": geometry.packing is not None,
        "im2col store with interleave": instruction == "store" and geometry.im2col and geometry.interleaved,
        "cta_group::2": pair,
    }
    return "; ".join(reason for reason, holds in reasons.items() if holds)


# ---- operands that no instruction can have ---------------------------------------------------------------------------


def require_box(geometry: Geometry, rows: int) -> None:
    """Refuse a box that no shared memory can hold, for instructions without a shared memory to check against.

    Raises:
        InvalidValueError: the rows of one instruction exceed `BOX_LIMIT` bytes.
    """
    nbytes = rows * geometry.row_bytes
    if nbytes > BOX_LIMIT:
        raise InvalidValueError(f"the box has {nbytes} bytes; must have at most {BOX_LIMIT}")


def _matrix(values: IntegersLike, width: int, what: str) -> Integers:
    array = expect_integer_array(values, what)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2 or array.shape[1] != width:
        raise InvalidValueError(f"{what}: {array.shape[-1] if array.ndim else 0} given; must be {width}")
    return array


def expect_coordinates(geometry: Geometry, coords: IntegersLike) -> Integers:
    """Return the (n, k) coordinates of n instructions; k is the rank, or 5 for gather4 and scatter4.

    Raises:
        InvalidValueError: the number of coordinates is wrong, or one does not fit in a signed 32-bit integer.
        InvalidTypeError: the coordinates are not integers.
    """
    array = _matrix(coords, 5 if geometry.four_rows else geometry.rank, "coordinates")
    if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
        bad = array[((array < -(2**31)) | (array >= 2**31)).any(axis=1)][0]
        raise InvalidValueError(f"coordinates = {tuple(bad.tolist())}; each must fit a 32-bit signed integer")
    return array


def _present(offsets: IntegersLike | None) -> bool:
    """Whether any im2col offset is given."""
    if offsets is None or (isinstance(offsets, (tuple, list)) and not offsets):
        return False
    return expect_integer_array(offsets, "im2col offsets").size > 0


def im2col_offsets(geometry: Geometry, offsets: IntegersLike, n: int) -> Integers:
    """Return the (n, R-2) offsets of im2col, or (n, 2) wHalo and wOffset in the w modes; zeros by default.

    Raises:
        InvalidValueError: offsets are given for another mode, their number is wrong, or one is out of range.
    """
    present = _present(offsets)
    if not geometry.im2col:
        if present:
            raise InvalidValueError(f"im2col offsets with mode {geometry.mode!r}; only the im2col modes take them")
        return np.zeros((n, 0), np.int64)
    wide = geometry.wide
    width = 2 if wide else geometry.rank - 2
    if not present:
        return np.zeros((n, width), np.int64)
    array = np.broadcast_to(_matrix(offsets, width, "im2col offsets"), (n, width))
    limits = (HALO_LIMITS[geometry.mode], W_OFFSET_LIMIT) if wide else (1 << OFFSET_BITS[geometry.rank],) * width
    outside = ((array < 0) | (array >= np.asarray(limits))).any(axis=1)
    if outside.any():
        bad = tuple(array[outside][0].tolist())
        raise InvalidValueError(f"im2col offsets = {bad}; each must be 0 to {[x - 1 for x in limits]}")
    if wide and len(array) > 1 and (array != array[0]).any():
        raise InvalidValueError("instructions that run together must have the same wHalo and wOffset")
    return array


def checked(geometry: Geometry, coords: IntegersLike, offsets: IntegersLike) -> tuple[Integers, Integers, int]:
    """Check n instructions without shared memory; return coordinates, im2col offsets, and the row count of one."""
    where = expect_coordinates(geometry, coords)
    more = im2col_offsets(geometry, offsets, len(where))
    rows = geometry.row_count(more[0] if len(more) else ())
    require_box(geometry, rows)
    return where, more, rows


def reduction(op: str | Enum) -> str:
    """Return the lower-case name of a reduction, from its name or an enum member of that name.

    Raises:
        InvalidValueError: the reduction does not exist.
    """
    name = getattr(op, "name", op)
    if not isinstance(name, str) or name.lower() not in REDUCTIONS:
        raise InvalidValueError(f"reduction {given(op)}; must be one of {', '.join(REDUCTIONS)}")
    return name.lower()


def refuse_load_operands(instruction: str, offsets: IntegersLike, barrier: None, multicast_mask: None) -> None:
    """Refuse the operands that only loads have, because the methods for stores and reductions have the same arguments.

    Raises:
        InvalidValueError: im2col offsets, a barrier, or a multicast mask is given.
    """
    there_is = {
        "im2col offsets": _present(offsets),
        "a barrier": barrier is not None,
        "a multicast mask": multicast_mask is not None,
    }
    wrong = [name for name, there in there_is.items() if there]
    if wrong:
        raise InvalidValueError(f"{instruction} has no operand for {' and '.join(wrong)}; only loads have one")


def offsets_of_windows(offsets: IntegersLike, n: int) -> Integers:
    """Return the (n,) int64 offsets of n windows, from one offset for all or one per window.

    Raises:
        InvalidTypeError: the offsets are not integers.
        InvalidValueError: their number is wrong.
    """
    array = expect_integer_array(offsets, "shared-memory offsets")
    if array.shape not in ((), (1,), (n,)):
        raise InvalidValueError(f"the shared-memory offsets have the shape {array.shape}; must be one offset, or {n}")
    return np.broadcast_to(array, (n,)).astype(np.int64)  # copied, because a broadcast offset is a view without strides


def window_offsets(smem: SharedMemory, offsets: IntegersLike, n: int) -> Integers:
    """Check the (n,) offsets of windows in shared memory, and return them.

    Raises:
        InvalidValueError: an offset is negative or does not fit in 32 bits.
        TmaTrap: CUDA_ERROR_MISALIGNED_ADDRESS, if an address is not a multiple of 128.
    """
    if type(offsets) is int and 0 <= offsets < SHARED_LIMIT and (offsets + smem.base) % SMEM_ALIGNMENT == 0:
        return np.full(n, offsets, np.int64)  # the common case, and ten times as fast
    array = offsets_of_windows(offsets, n)
    if len(array) and array.min() < 0:
        raise InvalidValueError.of_value("shared-memory offset", int(array.min()), "be 0 or more", "bytes")
    if len(array) and array.max() >= SHARED_LIMIT:
        raise InvalidValueError.of_value("shared-memory offset", int(array.max()), "fit in 32 bits", "bytes")
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
    """Return the shared memories that a load writes: `smem`, or the shared memories of the CTAs in the mask.

    Raises:
        InvalidValueError: the mask is 0, has more than 16 bits, or has the bit of a CTA that the cluster lacks.
    """
    if multicast_mask is None:
        return [smem]
    mask, every = expect_integer(multicast_mask, "the multicast mask"), (1 << MAX_CTAS) - 1
    if not 1 <= mask <= every:
        raise InvalidValueError(f"multicast mask = 0x{mask:x}; must be 1 to 0x{every:x}")
    ranks = [i for i in range(MAX_CTAS) if mask >> i & 1]
    if ranks[-1] >= len(smem.peers):
        raise InvalidValueError(f"multicast mask names CTA {ranks[-1]}; the cluster has {len(smem.peers)}")
    return [smem.peers[i] for i in ranks]


# ---- instructions that the hardware refuses --------------------------------------------------------------------------


def check_traps(geometry: Geometry, instruction: str, coords: Integers, op: str | None = None) -> list[Diagnostic]:
    """List the reasons why the hardware refuses n instructions.

    Each broken rule has one reason, for the first instruction that breaks it.

    Args:
        coords: (n, k), as `expect_coordinates` returns them.
        op: the reduction, if it is one.
    Source:
        measured on NVIDIA H200, driver 580.159.04; packed formats, im2col::w: PTX ISA 9.0.
    """
    found: list[Diagnostic] = []

    def where(i: int) -> dict[str, object]:
        return {"coordinates": tuple(coords[i].tolist()), **({"instruction": i} if len(coords) > 1 else {})}

    def judge(
        rule: str, bad: Flags, values: Integers, argument: str, requirement: str, unit: str = "", per: int = 1
    ) -> None:
        if bad.any():
            i = int(bad.argmax())
            found.append(Diagnostic(rule, argument, int(values[i]) // per, unit, requirement, facts=where(i)))

    if not geometry.address and geometry.dims == (1,) and geometry.row_bytes == 1:  # no driver makes such a map
        found.append(Diagnostic("map of zeros", text="the descriptor contains zeros, not a tensor map"))
    if op is not None and geometry.data_type not in REDUCTIONS[op]:
        text = f"reduction {op!r} does not exist for element format {geometry.data_type.name}"
        found.append(Diagnostic("reduction", text=text))
    if instruction in ("store", "reduce"):
        if (coords < 0).any():
            i, mode = divmod(int((coords < 0).argmax()), coords.shape[1])
            text = f"coordinate[{mode}] = {coords[i, mode]}; a store needs coordinates of at least 0"
            found.append(Diagnostic("negative coordinate", text=text, facts=where(i)))
        if any(c < 0 for c in geometry.lower) or any(c > 0 for c in geometry.upper):
            text = "an im2col store needs lower corners of at least 0 and upper corners of at most 0"
            corners: dict[str, object] = {"lower corner": geometry.lower, "upper corner": geometry.upper}
            found.append(Diagnostic("im2col store", text=text, facts=corners))
    if not geometry.interleaved:
        inner, name = coords[:, 0], "inner coordinate"
        if geometry.packing is not None and geometry.packing.packed != geometry.packing.spread:
            judge(name, inner % 128 != 0, inner, name, "be a multiple of 128", "elements")
        bits = inner * geometry.bits
        judge(name, bits % 128 != 0, bits, name, "be a multiple of 16", "bytes", 8)
    # The base of an im2col load lies in the bounding box. For im2col::w the box is one point in H and D. Along W the
    # base may start to the left of the box, so only the right end is checked.
    spatial = geometry.spatial if geometry.im2col else ()
    for index, mode in enumerate(spatial[:1] if geometry.wide else spatial):
        place, (low, high) = coords[:, mode], bounding_box(geometry, index)
        outside = (place > high) if geometry.wide else ((place < low) | (place > high))
        name, rule = f"base coordinate of mode {mode}", f"be in the bounding box {low} to {high}"
        judge("base coordinate", outside, place, name, rule)
    return found
