"""Measure a copy: its time, its rate, the percentage of the memcpy rate, and instructions and registers of its kernels.

Times are medians of CUDA events around several launches; the copy and the memcpy take turns. The memcpy copies the same
number of bytes between two buffers of its own, which are freed afterwards.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.copies.prepared_copy import PreparedCopy
from cute_py.errors import DeviceError
from cute_py.gpu.bindings import call, driver
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.launch import LoadedKernel
from cute_py.gpu.nvrtc import kernel_ptx, kernel_sass
from cute_py.tensor.array_views import StreamLike, stream_handle

MANY = 1 << 20
"""Maximum number of rounds in a measurement, and of launches in a round."""


@record
class KernelReport:
    """One kernel of a copy.

    `bytes_per_barrier` is the number of bytes that complete one barrier phase, 0 if threads move the bytes. Sizes are
    in bytes. The occupancy is the number of blocks per SM.
    """

    name: str
    form: str
    blocks: int
    threads: int
    registers: int
    local_bytes: int
    shared_bytes: int
    blocks_per_multiprocessor: int
    loads: int
    bytes_per_barrier: int
    origin: str
    compile_seconds: float


@record
class CopyReport:
    """The measurement of a copy. `gigabytes_per_second` counts the bytes read plus the bytes written;
    `percent_of_memcpy` compares the rate with the rate of a memcpy.

    >>> CopyReport(10.0, 8, 1.6, 9.0, 90.0, ()).percent_of_memcpy
    90.0
    """

    microseconds: float
    bytes: int
    gigabytes_per_second: float
    memcpy_microseconds: float
    percent_of_memcpy: float
    kernels: tuple[KernelReport, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.bytes} bytes in {self.microseconds:.2f} us: {self.gigabytes_per_second:.0f} GB/s read + written, "
            f"{self.percent_of_memcpy:.1f} % of a memcpy ({self.memcpy_microseconds:.2f} us)"
        ]
        lines += [
            f"  {k.name} ({k.form}): {k.blocks} blocks of {k.threads} threads, {_work(k)}, {k.registers} "
            f"registers, {k.shared_bytes} B shared, {k.blocks_per_multiprocessor} blocks per SM, {k.origin}"
            for k in self.kernels
        ]
        return "\n".join(lines)


def _work(kernel: KernelReport) -> str:
    if not kernel.bytes_per_barrier:
        return "no loads: threads move the bytes"
    return f"{kernel.loads} loads, {kernel.bytes_per_barrier} bytes per barrier"


def kernel_report(kernel: LoadedKernel, form: str, blocks: int) -> KernelReport:
    """Return the properties of a kernel that the driver and the compiler report."""
    facts = kernel.source.facts

    def number(*names: str) -> int:
        return next((int(str(facts[name])) for name in names if name in facts), 0)

    return KernelReport(
        kernel.source.name,
        form,
        blocks,
        kernel.source.threads,
        kernel.registers,
        kernel.local_bytes,
        kernel.source.shared_bytes + kernel.static_shared_bytes,
        kernel.blocks_per_multiprocessor(),
        (number("TILES") or blocks) * kernel.source.loads,
        number("TILE_BYTES", "LOAD_BYTES") or number("BOX_BYTES") * kernel.source.loads,
        kernel.compiled.origin,
        kernel.compiled.seconds,
    )


def median_times(
    device: Device, works: Sequence[Callable[[], object]], rounds: int, launches: int, stream: int = 0
) -> list[float]:
    """Return, for each of `works`, the median time of one launch in microseconds, over `rounds` rounds. In each round,
    the works take turns, with `launches` launches each."""
    api = driver()
    samples: list[list[float]] = [[] for _ in works]
    with device.current():
        start, end = (call("creating an event", api.cuEventCreate, 0) for _ in range(2))
        for work in works:
            work()
        for _ in range(rounds):
            for work, times in zip(works, samples, strict=True):
                call("recording an event", api.cuEventRecord, start, stream)
                for _ in range(launches):
                    work()
                call("recording an event", api.cuEventRecord, end, stream)
                call("waiting for an event", api.cuEventSynchronize, end)
                times.append(1000 * float(call("reading events", api.cuEventElapsedTime, start, end)) / launches)
        for event in (start, end):
            api.cuEventDestroy(event)
    return [statistics.median(times) for times in samples]


def measure_copy(
    prepared: PreparedCopy, *, rounds: int = 11, launches: int = 4, stream: StreamLike = None
) -> CopyReport:
    """Time `rounds` x `launches` launches of a copy, alternating with a memcpy of the same number of bytes.

    Raises:
        DeviceError: a launch failed, or there is no memory for the two buffers of the memcpy.
    """
    expect(prepared, PreparedCopy, "a prepared copy")
    rounds, launches = expect_integer(rounds, "rounds", 1, MANY), expect_integer(launches, "launches", 1, MANY)
    handle = stream_handle(stream)
    device, size = prepared.device, prepared.bytes
    api = driver()
    with DeviceBuffer(device, size) as a, DeviceBuffer(device, size) as b:
        a.fill(0x5A, handle)

        def memcpy() -> None:
            call("memcpy", api.cuMemcpyDtoDAsync, b.address, a.address, max(size, 1), handle)

        works = (lambda: prepared.launch(handle)), memcpy
        time, other = median_times(device, works, rounds, launches, handle)
    prepared.check(handle)
    forms = [plan.form for plan in prepared.plans] or ["tiles"] * len(prepared.kernels)
    kernels = tuple(
        kernel_report(kernel, form, blocks)
        for kernel, form, blocks in zip(prepared.kernels, forms, prepared.blocks, strict=True)
    )
    return CopyReport(time, size, 2 * size / time / 1000, other, 100 * other / time, kernels)


def kernel_texts(kernel: LoadedKernel) -> dict[str, str]:
    """Return the source text of a kernel by suffix: ".cu", ".ptx" and ".sass"; SASS is omitted if nvdisasm is not
    found.

    Raises:
        DeviceError: NVRTC can't compile the source.
    """
    expect(kernel, LoadedKernel, "a kernel")
    texts = {".cu": kernel.source.text, ".ptx": kernel_ptx(kernel.source, kernel.compiled.arch)}
    with contextlib.suppress(DeviceError):
        texts[".sass"] = kernel_sass(kernel.compiled)
    return texts
