"""Memory at the same addresses in every process, so that texts and tensor maps that hold an array's address are the
same in every run. Arrays of one call follow each other; the next call starts anew."""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from typing import Any

import numpy as np

BASE = 0x6000_0000_0000
BYTES = 1 << 26
ALIGNMENT = 4096

_FIXED_NOREPLACE = 0x100000

_used = 0


@functools.cache
def _start() -> int | None:
    """Where the memory is; None where the system does not give it there."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _FIXED_NOREPLACE
    got = libc.mmap(BASE, BYTES, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    return BASE if got == BASE else None


def reset() -> None:
    """What was placed is forgotten."""
    global _used
    _used = 0


def placed(values: Any) -> Any:
    """A contiguous copy of an array, in this memory if it has room."""
    global _used
    source = np.ascontiguousarray(values)
    start = _start()
    if start is None or _used + source.nbytes + ALIGNMENT > BYTES:
        return source.copy()
    address = start + _used
    _used += -(-max(source.nbytes, 1) // ALIGNMENT) * ALIGNMENT
    buffer = (ctypes.c_char * max(source.nbytes, 1)).from_address(address)
    made = np.ndarray(source.shape, source.dtype, buffer)
    made[...] = source
    return made
