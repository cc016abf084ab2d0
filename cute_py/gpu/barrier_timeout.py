"""The bytes that a barrier of the GPU should have received, where a wait for it timed out.

The executor never reads a tensor map. Only after a failure, and only for the text of the error, the emulator counts the
bytes that one load of this map brings to its barrier.
"""

from __future__ import annotations

from cute_py.errors import CuteError
from cute_py.tma.emulator.geometry import geometry


def emulated_arrival(load_map: bytes, loads: int = 1) -> str:
    """The bytes that `loads` loads of a map, of 128 bytes, bring to the barrier; or why the emulator can't count them.

    >>> import cute_py as cute
    >>> request = cute.tma.TensorMapTiled(cute.tma.TensorMapDataType.FLOAT16, 4096, (128, 256), (256,), (64, 16))
    >>> emulated_arrival(cute.tma.encode(request))
    '2048 bytes'
    >>> emulated_arrival(cute.tma.encode(request), 4)
    '8192 bytes, 4 loads of 2048'
    """
    try:
        one = geometry(load_map).transaction_bytes
    except CuteError as reason:
        return f"unknown: {reason.headline}"
    return f"{one} bytes" if loads == 1 else f"{loads * one} bytes, {loads} loads of {one}"
