"""Count the bytes that a barrier on the GPU should have received, for the error message after a wait timed out.

The executor does not interpret tensor maps. After a failure, the emulator counts the bytes that one load with the map
delivers to its barrier, and the error message contains this number.
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.errors import CuteError, counted
from cute_py.tma.emulator.geometry import geometry


def emulated_arrival(loads: Sequence[tuple[bytes, int]]) -> str:
    """Describe the number of bytes that loads deliver to one barrier, or the reason why the emulator can't count them.

    Args:
        loads: pairs (tensor map of 128 bytes, number of loads with it).

    >>> import cute_py as cute
    >>> request = cute.tma.TensorMapTiled(cute.tma.TensorMapDataType.FLOAT16, 4096, (128, 256), (256,), (64, 16))
    >>> emulated_arrival([(cute.tma.encode(request), 1)])
    '2048 bytes'
    >>> emulated_arrival([(cute.tma.encode(request), 4), (cute.tma.encode(request), 1)])
    '10240 bytes, 4 loads of 2048 and 1 load of 2048'
    """
    try:
        sizes = [(geometry(one).transaction_bytes, count) for one, count in loads]
    except CuteError as reason:
        return f"unknown: {reason.headline}"
    total = sum(one * count for one, count in sizes)
    if [count for _, count in sizes] == [1]:
        return f"{total} bytes"
    return f"{total} bytes, " + " and ".join(f"{counted(count, 'load')} of {one}" for one, count in sizes)
