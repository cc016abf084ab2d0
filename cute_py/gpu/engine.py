"""The device's TMA engine behind the calls of the emulator: one instruction a call, on numpy memories.

    GpuEngine().load(descriptor, gmem, coords, smem, transaction_bytes=4096)
    GpuEngine().store(descriptor, gmem, coords, smem)

Each call moves both memories to the device, launches one instruction and brings back what it changed. It is for
comparing and for learning, not for speed. The bytes that a load's barrier counts are not read from the map: they are
told, since that count is one of the things to compare.

Looking for trouble on a device: bytes that an instruction leaves unwritten, and instructions that may trap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device, open_device
from cute_py.gpu.isolate import call_isolated
from cute_py.gpu.kernels.wrappers import Wrapper
from cute_py.gpu.single import Instruction, Outcome, run_instructions
from cute_py.tma.descriptor.request import REDUCTIONS

POISONS = (0xCD, 0x32)
"""Two fills without a bit in common: a byte that keeps both was not written."""


def unwritten_bytes(instruction: Instruction, *, device: Device | None = None) -> list[tuple[int, int]]:
    """Ranges (first, one past the last) of the window that a load leaves as they were.

    The load runs twice on poisoned windows.

    Raises:
        InvalidValueError: the instruction is no load.
        DeviceError: as `run_instructions`.
    """
    if instruction.wrapper.kind != "load":
        raise InvalidValueError(f"a {instruction.wrapper.kind} writes no shared memory")
    size = len(instruction.window)
    runs = [replace(instruction, window=bytes([poison]) * size) for poison in POISONS]
    windows = [outcome.windows[0] for outcome in run_instructions(runs, device=device)]
    kept = [a == POISONS[0] and b == POISONS[1] for a, b in zip(*windows, strict=True)]
    ranges: list[tuple[int, int]] = []
    for at, untouched in enumerate(kept):
        if untouched and ranges and ranges[-1][1] == at:
            ranges[-1] = (ranges[-1][0], at + 1)
        elif untouched:
            ranges.append((at, at + 1))
    return ranges


def run_isolated(
    instructions: Sequence[Instruction], *, cluster: int = 1, validate: bool = True, seconds: float = 60.0
) -> list[Outcome]:
    """`run_instructions` in a process of its own: a trap there leaves this process's context as it is.

    Maps must come with their global memory (`gmem`): another process sees none of this one's device memory.

    Raises:
        DeviceError: the launch failed or trapped, or took longer than `seconds`.
        InvalidValueError: an instruction without `gmem`, or as `run_instructions`.
    """
    for number, one in enumerate(instructions):
        if one.gmem is None:
            raise InvalidValueError(f"instruction {number} points to memory of this process; pass its bytes as gmem")
    return call_isolated(run_instructions, list(instructions), cluster=cluster, validate=validate, seconds=seconds)


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        offsets = tuple(im2col_offsets) or ((0,) * (len(coords) - 2) if mode == "im2col" else ())
        outcome = self._run(
            Instruction(
                Wrapper("load", len(coords), mode, hint=self.hint),
                bytes(descriptor),
                tuple(coords),
                window=_window(smem),
                expected=transaction_bytes,
                gmem=gmem.tobytes(),
                gmem_base=gmem_base,
                window_offset=smem_offset,
                im2col_offsets=offsets,
            )
        )
        _put(smem, outcome.windows[0])
        if not outcome.completed:
            from cute_py.gpu.barrier_timeout import emulated_arrival  # Nothing but a failure needs it.

            raise DeviceError(
                f"the barrier was not complete after {outcome.cycles} clock cycles",
                {
                    "barrier": "the instruction's own, phase 0",
                    "expected": f"{transaction_bytes} bytes",
                    "emulator": emulated_arrival(bytes(descriptor)),
                    "instruction": f"load {mode}, coordinates {tuple(coords)}",
                },
            ).of_rule("never completes phase")
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
        self._write(
            Wrapper("store", len(coords), mode, hint=self.hint), descriptor, smem, coords, gmem, smem_offset, gmem_base
        )

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
        """One reduction of `smem` into `gmem` by one of `REDUCTIONS`. Arguments and errors as `load`."""
        if op not in REDUCTIONS:
            raise InvalidValueError(f"reduction {op!r}; must be one of {', '.join(REDUCTIONS)}")
        wrapper = Wrapper("reduce", len(coords), mode, op, self.hint)
        self._write(wrapper, descriptor, smem, coords, gmem, smem_offset, gmem_base)

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
        offsets = tuple(im2col_offsets) or ((0,) * (len(coords) - 2) if mode == "im2col" else ())
        wrapper = Wrapper("prefetch", len(coords), mode, hint=self.hint)
        content = gmem.tobytes()
        self._run(
            Instruction(
                wrapper, bytes(descriptor), tuple(coords), gmem=content, gmem_base=gmem_base, im2col_offsets=offsets
            )
        )

    def _write(
        self,
        wrapper: Wrapper,
        descriptor: bytes,
        smem: Memory,
        coords: Sequence[int],
        gmem: Memory,
        smem_offset: int,
        gmem_base: int,
    ) -> None:
        outcome = self._run(
            Instruction(
                wrapper,
                bytes(descriptor),
                tuple(coords),
                window=_window(smem),
                gmem=gmem.tobytes(),
                gmem_base=gmem_base,
                window_offset=smem_offset,
            )
        )
        _put(gmem, outcome.gmem or b"")

    def _run(self, instruction: Instruction) -> Outcome:
        if self.isolate:
            return run_isolated([instruction])[0]
        return run_instructions([instruction], device=self.device)[0]


def _window(smem: Memory) -> bytes:
    content = smem.tobytes()
    return content + bytes(-len(content) % 16)


def _put(memory: Memory, content: bytes) -> None:
    import numpy as np

    memory[...] = np.frombuffer(content[: memory.size], np.uint8).reshape(memory.shape)
