"""Single instructions on a device: what arrives in shared memory, what is left in global memory.

An `Instruction` carries its tensor map as bytes, and plain numbers for everything else; nothing here reads a map,
except that the first 64 bits of one are its address. Where `gmem` is given as bytes, the map's address counts from
`gmem_base`, and the map is moved to where the bytes lie on the device.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device, DeviceBuffer, as_device
from cute_py.gpu.kernels.single import JOB, JOB_STATUS_OFFSET, STATUS, single_instructions
from cute_py.gpu.kernels.wrappers import Wrapper
from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel
from cute_py.tma.descriptor.limits import MAX_TRANSACTION_BYTES

PAGE = 4096
"""Where each global buffer starts: a multiple of this, in bytes."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What must be known to say, before a launch, that an instruction would trap.

    element_bytes: of the format. interleaved: mode 0 counts slices. base_box: (lowest, highest) base coordinate of
    each spatial mode of an im2col load, in elements. bad_corner: a lower corner of an im2col store is below 0 or an
    upper one above 0.
    """

    element_bytes: int
    interleaved: bool = False
    base_box: tuple[tuple[int, int], ...] = ()
    bad_corner: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One TMA tensor instruction with everything that it acts on.

    wrapper: kind, rank, mode, reduction, cache hint, multicast. descriptor: 128 bytes. coords: innermost mode first.
    window: shared memory before, its length is the window's. expected: bytes that the barrier of a load counts. gmem:
    global memory before, at address `gmem_base` in the map's counting; None if the map points to device memory.
    """

    wrapper: Wrapper
    descriptor: bytes
    coords: tuple[int, ...]
    window: bytes = b""
    expected: int = 0
    gmem: bytes | None = None
    gmem_base: int = 0
    window_offset: int = 0
    im2col_offsets: tuple[int, ...] = ()
    mask: int = 0
    issuer: int = 0
    facts: Facts | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an instruction left: the windows of all CTAs and global memory after it, whether the barrier completed.

    `gmem` is None for loads and prefetches, and where the map pointed to device memory. `cycles` from issue to
    completion, of the slowest CTA.
    """

    windows: tuple[bytes, ...]
    gmem: bytes | None
    completed: bool
    cycles: int = field(compare=False, default=0)


def why_not_run(instruction: Instruction) -> list[str]:
    """Every reason not to launch this instruction; empty if there is none.

    The rules of traps are those measured on NVIDIA H200, driver 580.159.04: an inner coordinate that is no multiple
    of 16 bytes, negative coordinates of stores and reductions, im2col bases outside their box.
    """
    wrapper, coords = instruction.wrapper, instruction.coords
    reasons = []
    if len(instruction.descriptor) != 128:
        reasons.append(f"descriptor = {len(instruction.descriptor)} bytes; must be 128")
    if len(coords) != wrapper.coordinates:
        reasons.append(f"{len(coords)} coordinates; {wrapper.instruction} takes {wrapper.coordinates}")
    if len(instruction.im2col_offsets) != wrapper.offsets:
        reasons.append(
            f"{len(instruction.im2col_offsets)} im2col offsets; {wrapper.instruction} takes {wrapper.offsets}"
        )
    reasons += [f"coordinate {c} does not fit in 32 bits" for c in coords if not -(2**31) <= c < 2**31]
    reasons += [f"im2col offset {o} is not in 0 to 65535" for o in instruction.im2col_offsets if not 0 <= o < 65536]
    if len(instruction.window) % 16:
        reasons.append(f"window = {len(instruction.window)} bytes; must be a multiple of 16")
    if not 0 <= instruction.expected <= MAX_TRANSACTION_BYTES:
        reasons.append(f"expected = {instruction.expected} bytes; a barrier counts at most {MAX_TRANSACTION_BYTES}")
    facts = instruction.facts
    if facts is None:
        return reasons
    if not facts.interleaved and coords and coords[0] * facts.element_bytes % 16:
        reasons.append(
            f"inner coordinate {coords[0]} x {facts.element_bytes} bytes = {coords[0] * facts.element_bytes} bytes; "
            "must be a multiple of 16"
        )
    if wrapper.kind in ("store", "reduce"):
        reasons += [
            f"coordinate[{i}] = {c}; must not be negative in a {wrapper.kind}" for i, c in enumerate(coords) if c < 0
        ]
        if facts.bad_corner:
            reasons.append("im2col store with a lower corner below 0 or an upper corner above 0")
    if wrapper.kind == "load" and wrapper.mode == "im2col":
        first = 0 if facts.interleaved else 1
        for i, (low, high) in enumerate(facts.base_box):
            if not low <= coords[first + i] <= high:
                reasons.append(
                    f"coordinate[{first + i}] = {coords[first + i]}; must be in the bounding box, {low} to {high}"
                )
    return reasons


def _require(instructions: Sequence[Instruction]) -> None:
    reasons = [
        f"instruction {number}: {reason}" for number, one in enumerate(instructions) for reason in why_not_run(one)
    ]
    if reasons:
        more = {f"and {number}": reason for number, reason in enumerate(reasons[1:9], 1)}
        raise InvalidValueError(f"{reasons[0]}; nothing was launched", more)


def _moved(descriptor: bytes, offset: int) -> bytes:
    """The map with `offset` added to its address, the first 64 bits."""
    (address,) = struct.unpack_from("<Q", descriptor)
    return struct.pack("<Q", (address + offset) & (2**64 - 1)) + descriptor[8:]


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def run_instructions(
    instructions: Sequence[Instruction],
    *,
    cluster: int = 1,
    device: Device | None = None,
    stream: int = 0,
    validate: bool = True,
) -> list[Outcome]:
    """Run instructions side by side in one launch, each with shared and global memory of its own.

    Args:
        cluster: CTAs in the cluster of each instruction; every CTA has a window of the same content.
        validate: refuse what is known to trap (`why_not_run`); False is for tests of traps, in a process of their own.
    Raises:
        InvalidValueError: an instruction is refused; nothing was launched.
        DeviceError: the launch failed.
    """
    if validate:
        _require(instructions)
    if not instructions:
        return []
    device = as_device(device)
    forms = tuple(dict.fromkeys(one.wrapper for one in instructions))
    number = {form: index for index, form in enumerate(forms)}
    largest = _up(max(len(one.window) for one in instructions), 1024)
    kernel = load_kernel(single_instructions(forms, window_bytes=largest, cluster=cluster), device)

    jobs_at, maps_at = 0, _up(JOB.size * len(instructions), PAGE)
    place = _up(maps_at + 128 * len(instructions), PAGE)
    windows: list[tuple[int, int]] = []
    globals_at: list[int] = []
    for one in instructions:
        before = place
        after = before + _up(len(one.window), 128)
        place = after + _up(cluster * len(one.window), 128)
        windows.append((before, after))
    for one in instructions:
        place = _up(place, PAGE)
        globals_at.append(place)
        place += len(one.gmem or b"")
    arena = DeviceBuffer(device, place + PAGE)
    base = _up(arena.address, PAGE)
    image = bytearray(place)
    for index, one in enumerate(instructions):
        before, after = windows[index]
        # Every CTA of a cluster reads its window at `before` + rank x size: the images lie one after the other.
        coords = (*one.coords, 0, 0, 0, 0, 0)[:5]
        offsets = (*one.im2col_offsets, 0, 0, 0)[:3]
        JOB.pack_into(
            image,
            jobs_at + JOB.size * index,
            *coords,
            number[one.wrapper],
            len(one.window),
            one.window_offset,
            one.expected,
            one.issuer,
            base + maps_at + 128 * index,
            base + (after if cluster > 1 else before),
            base + after,
            *offsets,
            one.mask,
            0,
            0,
            0,
        )
        shift = 0 if one.gmem is None else base + globals_at[index] - one.gmem_base
        image[maps_at + 128 * index : maps_at + 128 * index + 128] = _moved(one.descriptor, shift)
        image[before : before + len(one.window)] = one.window
        if cluster > 1:
            image[after : after + cluster * len(one.window)] = one.window * cluster
        if one.gmem:
            image[globals_at[index] : globals_at[index] + len(one.gmem)] = one.gmem
    delta = base - arena.address
    arena.write(image, delta, stream)
    trailer = ctypes.c_uint32(largest)
    PreparedLaunch(kernel, cluster * len(instructions), Parameters((base, trailer)), stream).launch()
    result = arena.read(place, delta, stream)
    arena.close()
    return [
        _outcome(one, result, JOB.size * index + JOB_STATUS_OFFSET, windows[index][1], globals_at[index], cluster)
        for index, one in enumerate(instructions)
    ]


def _outcome(one: Instruction, result: bytearray, status: int, after: int, at: int, cluster: int) -> Outcome:
    completed, issued, cycles = STATUS.unpack_from(result, status)
    if not issued:
        raise DeviceError(f"{one.wrapper.instruction} was not issued", {"issuer": one.issuer, "cluster": cluster})
    size = len(one.window)
    shown = tuple(bytes(result[after + rank * size : after + (rank + 1) * size]) for rank in range(cluster))
    keep = one.gmem is not None and one.wrapper.kind in ("store", "reduce")
    gmem = bytes(result[at : at + len(one.gmem or b"")]) if keep else None
    return Outcome(shown, gmem, completed == cluster, cycles)


def run_instruction(instruction: Instruction, *, device: Device | None = None, stream: int = 0) -> Outcome:
    """Run one instruction; arguments and errors as `run_instructions`."""
    return run_instructions([instruction], device=device, stream=stream)[0]
