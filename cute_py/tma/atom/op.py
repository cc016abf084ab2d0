"""The copy operations that an atom can be made for, one row each.

Names are CuTe's. `mode` is the load mode of the instruction, `arch` the first architecture that has it.
Source: cute/arch/copy_sm90_tma.hpp, copy_sm100_tma.hpp; PTX ISA, cp.async.bulk.tensor.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from cute_py.errors import InvalidValueError, given
from cute_py.tma.descriptor.request import REDUCTIONS, OpRow


class Op(Enum):
    """A TMA operation; `Op.SM90_TMA_LOAD.row` says what it is.

    >>> Op.SM90_TMA_LOAD_MULTICAST.row.multicast, str(Op.SM90_TMA_LOAD)
    (True, 'SM90_TMA_LOAD')
    """

    SM90_TMA_LOAD = "SM90_TMA_LOAD"
    SM90_TMA_LOAD_MULTICAST = "SM90_TMA_LOAD_MULTICAST"
    SM90_TMA_LOAD_IM2COL = "SM90_TMA_LOAD_IM2COL"
    SM90_TMA_LOAD_IM2COL_MULTICAST = "SM90_TMA_LOAD_IM2COL_MULTICAST"
    SM90_TMA_STORE = "SM90_TMA_STORE"
    SM90_TMA_STORE_IM2COL = "SM90_TMA_STORE_IM2COL"
    SM90_TMA_REDUCE_ADD = "SM90_TMA_REDUCE_ADD"
    SM90_TMA_REDUCE_MIN = "SM90_TMA_REDUCE_MIN"
    SM90_TMA_REDUCE_MAX = "SM90_TMA_REDUCE_MAX"
    SM90_TMA_REDUCE_INC = "SM90_TMA_REDUCE_INC"
    SM90_TMA_REDUCE_DEC = "SM90_TMA_REDUCE_DEC"
    SM90_TMA_REDUCE_AND = "SM90_TMA_REDUCE_AND"
    SM90_TMA_REDUCE_OR = "SM90_TMA_REDUCE_OR"
    SM90_TMA_REDUCE_XOR = "SM90_TMA_REDUCE_XOR"
    SM90_TMA_PREFETCH = "SM90_TMA_PREFETCH"
    SM100_TMA_2SM_LOAD = "SM100_TMA_2SM_LOAD"
    SM100_TMA_2SM_LOAD_MULTICAST = "SM100_TMA_2SM_LOAD_MULTICAST"
    SM100_TMA_2SM_LOAD_IM2COL = "SM100_TMA_2SM_LOAD_IM2COL"
    SM100_TMA_2SM_LOAD_IM2COL_MULTICAST = "SM100_TMA_2SM_LOAD_IM2COL_MULTICAST"
    SM100_TMA_LOAD_2D_GATHER4 = "SM100_TMA_LOAD_2D_GATHER4"
    SM100_TMA_LOAD_MULTICAST_2D_GATHER4 = "SM100_TMA_LOAD_MULTICAST_2D_GATHER4"
    SM100_TMA_2SM_LOAD_2D_GATHER4 = "SM100_TMA_2SM_LOAD_2D_GATHER4"
    SM100_TMA_2SM_LOAD_MULTICAST_2D_GATHER4 = "SM100_TMA_2SM_LOAD_MULTICAST_2D_GATHER4"
    SM100_TMA_STORE_2D_SCATTER4 = "SM100_TMA_STORE_2D_SCATTER4"

    def __str__(self) -> str:
        return self.value

    @property
    def row(self) -> OpRow:
        return OPS[self]


OPS: dict[Op, OpRow] = {
    Op.SM90_TMA_LOAD: OpRow("load"),
    Op.SM90_TMA_LOAD_MULTICAST: OpRow("load", multicast=True),
    Op.SM90_TMA_LOAD_IM2COL: OpRow("load", "im2col"),
    Op.SM90_TMA_LOAD_IM2COL_MULTICAST: OpRow("load", "im2col", True),
    Op.SM90_TMA_STORE: OpRow("store"),
    Op.SM90_TMA_STORE_IM2COL: OpRow("store", "im2col"),
    **{Op[f"SM90_TMA_REDUCE_{kind.upper()}"]: OpRow("reduce", reduction=kind) for kind in REDUCTIONS},
    Op.SM90_TMA_PREFETCH: OpRow("prefetch"),
    Op.SM100_TMA_2SM_LOAD: OpRow("load", ctas=2, arch=100),
    Op.SM100_TMA_2SM_LOAD_MULTICAST: OpRow("load", multicast=True, ctas=2, arch=100),
    Op.SM100_TMA_2SM_LOAD_IM2COL: OpRow("load", "im2col", ctas=2, arch=100),
    Op.SM100_TMA_2SM_LOAD_IM2COL_MULTICAST: OpRow("load", "im2col", True, 2, arch=100),
    Op.SM100_TMA_LOAD_2D_GATHER4: OpRow("load", "gather4", arch=100),
    Op.SM100_TMA_LOAD_MULTICAST_2D_GATHER4: OpRow("load", "gather4", True, arch=100),
    Op.SM100_TMA_2SM_LOAD_2D_GATHER4: OpRow("load", "gather4", ctas=2, arch=100),
    Op.SM100_TMA_2SM_LOAD_MULTICAST_2D_GATHER4: OpRow("load", "gather4", True, 2, arch=100),
    Op.SM100_TMA_STORE_2D_SCATTER4: OpRow("store", "scatter4", arch=100),
}


def as_op(op: object) -> Op:
    """An `Op`, or the one with this name.

    >>> as_op("SM90_TMA_STORE")
    <Op.SM90_TMA_STORE: 'SM90_TMA_STORE'>
    """
    if isinstance(op, Op):
        return op
    if isinstance(op, str) and op in Op.__members__:
        return Op[op]
    raise InvalidValueError(f"unknown TMA operation {given(op)}", {"known": ", ".join(Op.__members__)})


_ARCHITECTURE: Final = re.compile(r"(?:sm_|compute_)?([0-9]{1,4})[af]?")


def architecture_number(arch: object) -> int:
    """90 of 'sm_90a', 103 of 'sm_103f'.

    >>> architecture_number("sm_90a")
    90
    """
    found = _ARCHITECTURE.fullmatch(arch) if isinstance(arch, str) else None
    if found is None:
        raise InvalidValueError(
            f"unknown architecture {given(arch)}", {"examples": "sm_90a, sm_100a, sm_103a, sm_120a"}
        )
    return int(found[1])


def why_not_on(op: Op, arch: object, num_multicast: int = 1) -> str | None:
    """Why an operation can't be used, or None: architecture, and the multicast count against the operation."""
    row = op.row
    number = architecture_number(arch)
    if number < row.arch:
        return f"{op} needs sm_{row.arch} or newer, not {arch}"
    if row.ctas == 2 and number >= 120:
        return f"{op} pairs two CTAs, which {arch} has not"
    if num_multicast < 1:
        return f"num_multicast = {num_multicast} CTAs; must be at least 1"
    if num_multicast > 16:
        return f"num_multicast = {num_multicast} CTAs; must be at most 16, the largest cluster"
    return None


def receives_slices(op: Op, num_multicast: int) -> bool:
    """Whether CTAs divide a tile and each keeps its slice alone: a load without multicast, made for several CTAs."""
    row = op.row
    return row.direction == "load" and not row.multicast and row.ctas == 1 and num_multicast > 1


def why_not_shared(op: Op, num_multicast: int) -> str | None:
    """Why the CTAs that a tile was divided among do not get all of it, or None.

    >>> why_not_shared(Op.SM90_TMA_LOAD, 4)
    'SM90_TMA_LOAD sends nothing to other CTAs: each of the 4 receives its slice of the tile alone'
    >>> why_not_shared(Op.SM90_TMA_LOAD_MULTICAST, 4)
    """
    if not receives_slices(op, num_multicast):
        return None
    return f"{op} sends nothing to other CTAs: each of the {num_multicast} receives its slice of the tile alone"
