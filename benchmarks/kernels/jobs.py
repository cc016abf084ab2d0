"""The device's TMA engine, one instruction at a time: what arrives in shared memory, what is left in global memory.

    run_jobs([Job(CopyOp("load", 2), descriptor, (0, 0), window=..., gmem=...)])

A `Job` is one instruction with everything that it acts on: its tensor map as bytes, and plain numbers for everything
else. Nothing here reads a map, except that the first 64 bits of one are its address. Where `gmem` is given as bytes,
the map's address counts from `gmem_base`, and the map is moved to where the bytes lie on the device.
Many of them run in one launch. The bytes that a load's barrier expects are not read from the map: the caller gives
them, since that count is one of the things to compare with the emulator.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.kernels.single import JOB, JOB_STATUS_OFFSET, STATUS, single_instructions
from cute_py.diagnostics import Diagnostic
from cute_py.errors import DeviceError, InvalidValueError
from cute_py.gpu.device import Device, DeviceBuffer, as_device
from cute_py.gpu.isolate import call_isolated
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.gpu.launch import Parameters, PreparedLaunch, load_kernel
from cute_py.tma.descriptor.limits import MAX_TRANSACTION_BYTES

PAGE = 4096
"""Where each global buffer starts: a multiple of this, in bytes."""


@dataclass(frozen=True, slots=True)
class Job:
    """One TMA tensor instruction with everything that it acts on.

    op: kind, rank, mode, reduction, cache hint, multicast. descriptor: 128 bytes. coords: innermost mode first.
    window: shared memory before, its length is the window's. expected: bytes that the barrier of a load counts. gmem:
    global memory before, at address `gmem_base` in the map's counting; None if the map points to device memory.
    """

    op: CopyOp
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


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a job left: the windows of all CTAs and global memory after it, whether the barrier completed.

    `gmem` is None for loads and prefetches, and where the map pointed to device memory. `cycles` from issue to
    completion, of the slowest CTA.
    """

    windows: tuple[bytes, ...]
    gmem: bytes | None
    completed: bool
    cycles: int = field(compare=False, default=0)


def check_job(job: Job) -> list[Diagnostic]:
    """Operands that the instruction can't have. Which legal ones would trap, the emulator knows."""
    op, found = job.op, []
    if len(job.descriptor) != 128:
        found.append(Diagnostic("descriptor", "descriptor", len(job.descriptor), "bytes", "be 128"))
    if len(job.coords) != op.coordinates:
        text = f"{len(job.coords)} coordinates; {op.instruction} takes {op.coordinates}"
        found.append(Diagnostic("coordinates", text=text))
    if len(job.im2col_offsets) != op.offsets:
        text = f"{len(job.im2col_offsets)} im2col offsets; {op.instruction} takes {op.offsets}"
        found.append(Diagnostic("im2col_offsets", text=text))
    outside = [f"coordinate {c} does not fit in 32 bits" for c in job.coords if not -(2**31) <= c < 2**31]
    outside += [f"im2col offset {o} is not in 0 to 65535" for o in job.im2col_offsets if not 0 <= o < 65536]
    found += [Diagnostic("operand_range", text=text) for text in outside]
    if len(job.window) % 16:
        found.append(Diagnostic("window", "window", len(job.window), "bytes", "be a multiple of 16"))
    if not 0 <= job.expected <= MAX_TRANSACTION_BYTES:
        text = f"expected = {job.expected} bytes; a barrier counts at most {MAX_TRANSACTION_BYTES}"
        found.append(Diagnostic("expected", text=text))
    return found


def _require(jobs: Sequence[Job]) -> None:
    reasons = [f"instruction {number}: {d.message}" for number, job in enumerate(jobs) for d in check_job(job)]
    if reasons:
        more = {f"and {number}": reason for number, reason in enumerate(reasons[1:9], 1)}
        raise InvalidValueError(f"{reasons[0]}; nothing was launched", more)


def _moved(descriptor: bytes, offset: int) -> bytes:
    """The map with `offset` added to its address, the first 64 bits."""
    (address,) = struct.unpack_from("<Q", descriptor)
    return struct.pack("<Q", (address + offset) & (2**64 - 1)) + descriptor[8:]


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def run_jobs(
    jobs: Sequence[Job], *, cluster: int = 1, device: Device | None = None, stream: int = 0, validate: bool = True
) -> list[Outcome]:
    """Run instructions side by side in one launch, each with shared and global memory of its own.

    Args:
        cluster: CTAs in the cluster of each instruction; every CTA has a window of the same content.
        validate: refuse what `check_job` finds; False is for tests of traps, in a process of their own.
    Raises:
        InvalidValueError: an instruction is refused; nothing was launched.
        DeviceError: the launch failed.
    """
    if validate:
        _require(jobs)
    if not jobs:
        return []
    device = as_device(device)
    forms = tuple(dict.fromkeys(job.op for job in jobs))
    number = {form: index for index, form in enumerate(forms)}
    largest = _up(max(len(job.window) for job in jobs), 1024)
    kernel = load_kernel(single_instructions(forms, window_bytes=largest, cluster=cluster), device)

    # One arena: the job records, the maps, then each job's window before and its windows after, then global memories.
    maps_at = _up(JOB.size * len(jobs), PAGE)
    place = _up(maps_at + 128 * len(jobs), PAGE)
    windows: list[tuple[int, int]] = []
    globals_at: list[int] = []
    for job in jobs:
        before, after = place, place + _up(len(job.window), 128)
        place = after + _up(cluster * len(job.window), 128)
        windows.append((before, after))
    for job in jobs:
        globals_at.append(_up(place, PAGE))
        place = globals_at[-1] + len(job.gmem or b"")
    arena = DeviceBuffer(device, place + PAGE)
    base = _up(arena.address, PAGE)
    image = bytearray(place)

    def put(at: int, content: bytes) -> None:
        image[at : at + len(content)] = content

    for index, job in enumerate(jobs):
        before, after = windows[index]
        JOB.pack_into(
            image,
            JOB.size * index,
            *(*job.coords, 0, 0, 0, 0, 0)[:5],
            number[job.op],
            len(job.window),
            job.window_offset,
            job.expected,
            job.issuer,
            base + maps_at + 128 * index,
            base + (after if cluster > 1 else before),
            base + after,
            *(*job.im2col_offsets, 0, 0, 0)[:3],
            job.mask,
            0,
            0,
            0,
        )
        shift = 0 if job.gmem is None else base + globals_at[index] - job.gmem_base
        put(maps_at + 128 * index, _moved(job.descriptor, shift))
        put(before, job.window)
        if cluster > 1:  # Every CTA reads its window at `after` + rank x size: the images lie one after the other.
            put(after, job.window * cluster)
        put(globals_at[index], job.gmem or b"")
    delta = base - arena.address
    arena.write(image, delta, stream)
    trailer = ctypes.c_uint32(largest)
    PreparedLaunch(kernel, cluster * len(jobs), Parameters((base, trailer)), stream).launch()
    result = arena.read(place, delta, stream)
    arena.close()
    return [
        _outcome(job, result, JOB.size * index + JOB_STATUS_OFFSET, windows[index][1], globals_at[index], cluster)
        for index, job in enumerate(jobs)
    ]


def _outcome(job: Job, result: bytearray, status: int, after: int, at: int, cluster: int) -> Outcome:
    completed, issued, cycles = STATUS.unpack_from(result, status)
    if not issued:
        raise DeviceError(f"{job.op.instruction} was not issued", {"issuer": job.issuer, "cluster": cluster})
    size = len(job.window)
    shown = tuple(bytes(result[after + rank * size : after + (rank + 1) * size]) for rank in range(cluster))
    keep = job.gmem is not None and job.op.kind in ("store", "reduce")
    gmem = bytes(result[at : at + len(job.gmem or b"")]) if keep else None
    return Outcome(shown, gmem, completed == cluster, cycles)


def run_isolated(
    jobs: Sequence[Job], *, cluster: int = 1, validate: bool = True, seconds: float = 60.0
) -> list[Outcome]:
    """`run_jobs` in a process of its own: a trap there leaves this process's context as it is.

    Maps must come with their global memory (`gmem`): another process sees none of this one's device memory.

    Raises:
        DeviceError: the launch failed or trapped, or took longer than `seconds`.
        InvalidValueError: an instruction without `gmem`, or as `run_jobs`.
    """
    for number, job in enumerate(jobs):
        if job.gmem is None:
            raise InvalidValueError(f"instruction {number} points to memory of this process; pass its bytes as gmem")
    return call_isolated(run_jobs, list(jobs), cluster=cluster, validate=validate, seconds=seconds)
