"""The device behind the calls of the emulator: one instruction a call, on numpy memories.

    GpuEngine().load(descriptor, gmem, coords, smem, transaction_bytes=4096)
    GpuEngine().store(descriptor, gmem, coords, smem)

Each call moves both memories to the device, launches one instruction and brings back what it changed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.kernels.jobs import Job, Outcome, run_isolated, run_jobs
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.barrier_timeout import emulated_arrival
from cute_py.gpu.device import Device, open_device
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.ptx.forms_copy import REDUCE_KINDS

Memory = NDArray[np.uint8]


class GpuEngine:
    """One device as a TMA engine.

    Args:
        device: by default the current one. isolate: run every instruction in a process of its own, so that a trap
            does not end this one's context; an instruction then takes about half a second.
        hint: name of a cache policy, or None.
    Raises:
        DeviceError, MissingPackageError: no device (unless isolated: then at the first instruction).
    """

    def __init__(self, device: Device | None = None, *, isolate: bool = False, hint: str | None = None) -> None:
        self.device = device if device is not None or isolate else open_device()
        self.isolate = isolate
        self.hint = hint

    def load(
        self,
        descriptor: bytes,
        gmem: Memory,
        coords: Sequence[int],
        smem: Memory,
        *,
        transaction_bytes: int,
        mode: str = "tile",
        smem_offset: int = 0,
        im2col_offsets: Sequence[int] = (),
        gmem_base: int = 0,
    ) -> int:
        """One load into `smem`; returns the bytes that its barrier counted.

        Args:
            descriptor: 128 bytes. gmem, smem: contiguous uint8 arrays; gmem[0] is at address `gmem_base`, smem[0] at
                shared-memory address 0; whole multiples of 16 bytes of smem are moved.
            transaction_bytes: what the barrier expects.
            mode: "tile" or "im2col".
        Raises:
            DeviceError: a trap, or the barrier did not complete (fewer bytes came; `smem` has what came).
            InvalidValueError: an operand that no instruction can have.
        """
        op = CopyOp("load", len(coords), mode, hint=self.hint)
        outcome = self._run(
            op, descriptor, coords, gmem, gmem_base, smem, smem_offset, im2col_offsets, transaction_bytes
        )
        _put(smem, outcome.windows[0])
        if not outcome.completed:
            raise DeviceError(
                f"the barrier was not complete after {outcome.cycles} clock cycles",
                {
                    "barrier": "the instruction's own, phase 0",
                    "expected": f"{transaction_bytes} bytes",
                    "emulator": emulated_arrival([(bytes(descriptor), 1)]),
                    "instruction": f"load {mode}, coordinates {tuple(coords)}",
                },
            )
        return transaction_bytes

    def store(
        self,
        descriptor: bytes,
        gmem: Memory,
        coords: Sequence[int],
        smem: Memory,
        *,
        mode: str = "tile",
        smem_offset: int = 0,
        gmem_base: int = 0,
    ) -> None:
        """One store from `smem` into `gmem`. Arguments and errors as `load`."""
        op = CopyOp("store", len(coords), mode, hint=self.hint)
        _put(gmem, self._run(op, descriptor, coords, gmem, gmem_base, smem, smem_offset).gmem or b"")

    def reduce(
        self,
        op: str,
        descriptor: bytes,
        gmem: Memory,
        coords: Sequence[int],
        smem: Memory,
        *,
        mode: str = "tile",
        smem_offset: int = 0,
        gmem_base: int = 0,
    ) -> None:
        """One reduction of `smem` into `gmem` by one of `REDUCE_KINDS`. Arguments and errors as `load`."""
        if op not in REDUCE_KINDS:
            raise InvalidValueError(f"reduction {op!r}; must be one of {', '.join(REDUCE_KINDS)}")
        form = CopyOp("reduce", len(coords), mode, op, self.hint)
        _put(gmem, self._run(form, descriptor, coords, gmem, gmem_base, smem, smem_offset).gmem or b"")

    def prefetch(
        self,
        descriptor: bytes,
        gmem: Memory,
        coords: Sequence[int],
        *,
        mode: str = "tile",
        im2col_offsets: Sequence[int] = (),
        gmem_base: int = 0,
    ) -> None:
        """One prefetch into L2, which changes nothing. Arguments and errors as `load`."""
        op = CopyOp("prefetch", len(coords), mode, hint=self.hint)
        self._run(op, descriptor, coords, gmem, gmem_base, im2col_offsets=im2col_offsets)

    def _run(
        self,
        op: CopyOp,
        descriptor: bytes,
        coords: Sequence[int],
        gmem: Memory,
        gmem_base: int,
        smem: Memory | None = None,
        smem_offset: int = 0,
        im2col_offsets: Sequence[int] = (),
        expected: int = 0,
    ) -> Outcome:
        window = b"" if smem is None else smem.tobytes()
        offsets = tuple(im2col_offsets) or (0,) * op.offsets
        window += bytes(-len(window) % 16)
        content = gmem.tobytes()
        job = Job(op, bytes(descriptor), tuple(coords), window, expected, content, gmem_base, smem_offset, offsets)
        return (run_isolated([job]) if self.isolate else run_jobs([job], device=self.device))[0]


def _put(memory: Memory, content: bytes) -> None:
    memory[...] = np.frombuffer(content[: memory.size], np.uint8).reshape(memory.shape)
