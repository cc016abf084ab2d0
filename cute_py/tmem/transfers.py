"""tcgen05.ld and tcgen05.st: which cell of tensor memory is in which register of which thread of a warp.

Thread l, register r of one instruction `.shape.xN`, in steps from the address operand:

    32x32b     lane l                        column r
    16x64b     lane l//4 + 8 (l % 2)         column l//2 % 2 + 2 r
    16x128b    lane l//4 + 8 (r % 2)         column l % 4 + 4 (r//2)
    16x256b    lane l//4 + 8 (r//2 % 2)      column r % 2 + 2 (l % 4) + 8 (r//4)
    16x32bx2   lane l % 16                   column r + (l//16) * half split

With `.pack::16b` (ld) or `.unpack::16b` (st) every column above stands for two neighbouring columns whose lower halves
are the two halves of the register.

Sources: PTX ISA, data movement shapes; TVM's documentation of tcgen05.ld and st; CUTLASS 7107b055, TMEM_LOAD value
layouts. They agree. Not run on hardware here.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect, expect_integer
from cute_py.errors import TmemError, given
from cute_py.ptx.forms_tcgen05 import COUNTS, MAX_REGISTERS, SHAPE_REGISTERS

THREADS = 32
SLAB = 32
"""Lanes that one warp reaches: warp w of a warpgroup has lanes 32 w to 32 w + 31."""


def check_transfer(shape: str, num: int) -> int:
    """Registers of each thread.

    Raises:
        TmemError: no such shape or count, or more than 128 registers.

    >>> check_transfer("16x256b", 8)
    32
    """
    expect(shape, str, "shape")
    num = expect_integer(num, "num")
    if shape not in SHAPE_REGISTERS:
        raise TmemError(f"unknown tcgen05.ld shape {given(shape)}; must be one of {', '.join(SHAPE_REGISTERS)}")
    if f"x{num}" not in COUNTS:
        raise TmemError(f"count x{num}; must be one of {', '.join(COUNTS)}")
    count = SHAPE_REGISTERS[shape] * num
    if count > MAX_REGISTERS:
        raise TmemError(f"{shape}.x{num} moves {count} registers; must be at most {MAX_REGISTERS}")
    return count


def image(shape: str, num: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Lane and column, in steps from the address, of every register.

    Returns:
        two int64 arrays of shape (32 threads, registers); the half split of 16x32bx2 is not added, and where the
        transfer packs, a column stands for two.
    """
    return _image(shape, check_transfer(shape, num))


@functools.cache
def _image(shape: str, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    thread = numpy.arange(THREADS)[:, None]
    register = numpy.arange(count)[None, :]
    zero = 0 * (thread + register)
    if shape == "32x32b":
        lane, column = thread, register
    elif shape == "16x64b":
        lane, column = thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * register
    elif shape == "16x128b":
        lane, column = thread // 4 + 8 * (register % 2), thread % 4 + 4 * (register // 2)
    elif shape == "16x256b":
        lane = thread // 4 + 8 * (register // 2 % 2)
        column = register % 2 + 2 * (thread % 4) + 8 * (register // 4)
    else:
        lane, column = thread % 16, register
    both = lane + zero, column + zero
    for array in both:
        array.flags.writeable = False
    return both


def lanes_of(shape: str) -> int:
    """Lanes that one instruction reaches: 32 or 16."""
    return 32 if shape == "32x32b" else 16


def why_not_warp(shape: str, lane: int, warp: int) -> str | None:
    """Why `warp` can't reach the lanes from `lane` on; None if it can.

    Source: PTX ISA, tcgen05.ld access restrictions: a warp reaches the 32 lanes of its rank in the warpgroup.
    """
    first = SLAB * (warp % 4)
    if first <= lane and lane + lanes_of(shape) <= first + SLAB:
        return None
    last = lane + lanes_of(shape) - 1
    return f"warp {warp} reaches lanes {first}..{first + SLAB - 1}; the transfer is on lanes {lane}..{last}"
