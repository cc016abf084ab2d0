"""Looking for trouble on a device: bytes that an instruction leaves unwritten, and instructions that may trap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cute_py.errors import InvalidValueError
from cute_py.tma.run.gpu_device import Device
from cute_py.tma.run.gpu_isolate import call_isolated
from cute_py.tma.run.gpu_single import Instruction, Outcome, run_instructions

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
