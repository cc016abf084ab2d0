"""Copies in the operations of the reference pages, on a device: descriptor -> atom -> make_exec_tma -> tma_load.

The text of the operation is what the kernel runs, through the tensor map of its descriptor; the emulator runs the same
operation. Shared and global memory must be equal in every byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from benchmarks.kernels.operation import run_operation
from cute_py import ComposedLayout, Int, Layout, LayoutRight, Swizzle
from cute_py.dtypes import as_dtype
from cute_py.errors import DeviceError, TmaVerifyError
from cute_py.gpu.device import Device, DeviceBuffer
from cute_py.gpu.kernels.source import KernelSource
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.tma import (
    build_tma_descriptor,
    build_tma_descriptor_im2col,
    encode,
    make_exec_tma,
    non_exec_tiled_tma_load,
    non_exec_tiled_tma_reduce,
    non_exec_tiled_tma_store,
    tma_load,
    tma_reduce,
    tma_store,
)
from cute_py.tma.dialect.exec_atom import TmaOperation
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.mbarrier import init_barrier
from cute_py.tma.emulator.memory import SharedMemory

BYTES = 1 << 16
FILL = 0xA5
Operations = Callable[[int], list[TmaOperation]]


def tensor(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: str) -> Any:
    """A tensor at an address; stride 1 is static."""
    static = tuple([Int(1) if d == 1 else d for d in strides])
    return cute.make_tensor(cute.make_gmem_ptr(address, dtype), Layout(shape, static))


def swizzled(plain: Layout, bits: int, dtype: str) -> ComposedLayout:
    return ComposedLayout(Swizzle(bits, 4, 3), cute.smem_ptr_flag(as_dtype(dtype).bits), plain)


def tile(*extents: int) -> Layout:
    return Layout(cute.static(extents), LayoutRight)


WIDE = Layout(cute.static((64, (64, 2))), cute.static((64, (1, 4096))))
"""64 x 128: two boxes of 64 columns, one behind the other."""


def bound(atom: Any, mask: int | None = None, cache_mode: str = "cg") -> Any:
    """The atom bound to the barrier behind its tile in the emulator's shared memory."""
    return make_exec_tma(atom, cute.make_smem_ptr(BYTES, "uint64"), cache_mode, mask)


def two_boxes(address: int) -> list[TmaOperation]:
    descriptor = build_tma_descriptor(tensor(address, (192, 160), (160, 1), "float16"), WIDE, swizzle=Swizzle(3, 4, 3))
    atom = non_exec_tiled_tma_load(descriptor, swizzled(WIDE, 3, "float16"), (64, 128))
    assert atom.instructions == 2
    return [tma_load(bound(atom, cache_mode="evict_first"), cute.make_smem_ptr(0, "float16"), (64, 100), prefetch=True)]


def outside(address: int) -> list[TmaOperation]:
    """A tile of rank 3 that begins before the tensor and ends behind it."""
    plain = tile(4, 8, 16)
    descriptor = build_tma_descriptor(
        tensor(address, (5, 9, 24), (384, 40, 1), "float32"), plain, swizzle=Swizzle(2, 4, 3)
    )
    atom = non_exec_tiled_tma_load(descriptor, swizzled(plain, 2, "float32"), (4, 8, 16))
    return [tma_load(bound(atom), cute.make_smem_ptr(0, "float32"), (-4, 5, 3))]


def multicast(count: int) -> Operations:
    def made(address: int) -> list[TmaOperation]:
        plain = tile(64, 64)
        source = tensor(address, (192, 160), (160, 1), "uint16")
        descriptor = build_tma_descriptor(source, plain, swizzle=Swizzle(3, 4, 3), num_multicast=count)
        atom = non_exec_tiled_tma_load(descriptor, swizzled(plain, 3, "uint16"), (64, 64), num_multicast=count)
        exec_atom, place = bound(atom, (1 << count) - 1), cute.make_smem_ptr(0, "uint16")
        return [tma_load(exec_atom, place, (64, 32), cta=cta) for cta in range(count)]

    return made


def window(address: int) -> list[TmaOperation]:
    images = tensor(address, (64, 16, 8, 4), (1, 64, 1024, 8192), "uint16")
    plain = tile(128, 64)
    descriptor = build_tma_descriptor_im2col(images, (-1, -1), (-1, -1), 64, 128, swizzle=Swizzle(3, 4, 3))
    atom = non_exec_tiled_tma_load(descriptor, swizzled(plain, 3, "uint16"), (128, 64))
    return [tma_load(bound(atom), cute.make_smem_ptr(0, "uint16"), (0, 3, -1, 2), im2col_offsets=(2, 1))]


def rows_stored(address: int) -> list[TmaOperation]:
    descriptor = build_tma_descriptor(
        tensor(address, (192, 160), (160, 1), "float16"), WIDE, store_mode="TILED", swizzle=Swizzle(3, 4, 3)
    )
    atom = non_exec_tiled_tma_store(descriptor, swizzled(WIDE, 3, "float16"), (64, 128))
    return [tma_store(bound(atom), cute.make_smem_ptr(0, "float16"), (64, 150))]


def pixels_stored(mode: str) -> Operations:
    def made(address: int) -> list[TmaOperation]:
        images = tensor(address, (64, 16, 8, 4), (1, 64, 1024, 8192), "uint16")
        descriptor = build_tma_descriptor_im2col(images, (0, 0), (0, 0), 64, 96, store_mode=mode)
        atom = non_exec_tiled_tma_store(descriptor, tile(96, 64), (96, 64), store_mode=mode)
        return [tma_store(bound(atom), cute.make_smem_ptr(0, "uint16"), (0, 2, 3, 1))]

    return made


def reduced(kind: str) -> Operations:
    def made(address: int) -> list[TmaOperation]:
        plain, numbers = tile(16, 32), tensor(address, (60, 128), (128, 1), "uint32")
        descriptor = build_tma_descriptor(numbers, plain, store_mode="TILED")
        atom = non_exec_tiled_tma_reduce(descriptor, plain, (16, 32), kind=kind)
        return [tma_reduce(bound(atom), cute.make_smem_ptr(0, "uint32"), (96, 50))]

    return made


CASES: dict[str, Operations] = {
    "load of two swizzled boxes": two_boxes,
    "load that reaches outside": outside,
    "multicast to 2": multicast(2),
    "multicast to 4": multicast(4),
    "im2col load": window,
    "store of two swizzled boxes": rows_stored,
    "im2col store": pixels_stored("IM2COL"),
    **{f"reduction {kind}": reduced(kind) for kind in ("ADD", "MIN", "XOR")},
}


def emulated(operations: list[TmaOperation], gmem: np.ndarray[Any, Any], base: int, image: bytes) -> list[bytes]:
    """The same operations in the emulator, on `gmem` itself; what each CTA has in shared memory afterwards."""
    cluster = []
    for rank in range(len(operations)):
        content = np.full(BYTES + 1024, FILL, np.uint8)
        content[: len(image)] = np.frombuffer(image, np.uint8)
        cluster.append(SharedMemory(content, rank=rank))
        init_barrier(cluster[-1], BYTES, 1)  # a load arrives there itself, and expects its bytes
    for smem in cluster:
        smem.peers = tuple(cluster)
    for smem, operation in zip(cluster, operations, strict=True):
        operation.run(Emulator(), gmem, smem, gmem_base=base)
    if operations[0].exec_atom.atom.kind == "load":
        assert all(smem.barriers[BYTES].try_wait(0) for smem in cluster)  # type: ignore[attr-defined]
    return [smem.array[: len(image)].tobytes() for smem in cluster]


def launched(source: KernelSource, device: Device, raw: bytes, images: DeviceBuffer, record: WaitRecord) -> None:
    kernel = load_kernel(source, device)
    PreparedLaunch(kernel, source.cluster, Parameters((raw, images.address, record.address))).launch()
    record.check(source.name, loads=[(raw, 1)])


@pytest.mark.parametrize("name", CASES)
def test_the_operation_moves_what_the_emulator_moves(device: Device, name: str) -> None:
    before = np.random.default_rng(5).integers(0, 256, BYTES, dtype=np.uint8)
    with DeviceBuffer(device, BYTES) as gmem:
        gmem.write(before.tobytes())
        operations = CASES[name](gmem.address)
        source = run_operation(operations)
        size = int(source.facts["TILE_BYTES"])  # type: ignore[call-overload]
        image = np.random.default_rng(6).integers(0, 256, size, dtype=np.uint8).tobytes()
        after = before.copy()
        wanted = emulated(operations, after, gmem.address, image)
        with DeviceBuffer(device, size * source.cluster) as images:
            images.write(image * source.cluster)
            launched(source, device, encode(operations[0]), images, WaitRecord(device))
            found = bytes(images.read())
        assert [found[size * i : size * (i + 1)] for i in range(source.cluster)] == wanted
        assert bytes(gmem.read()) == after.tobytes()
    assert wanted[0] != image or (after != before).any()


def test_a_descriptor_of_another_box_hangs_and_is_refused_before_it_is_launched(device: Device) -> None:
    """Its map brings half of the bytes that the barrier of the tile expects."""
    with DeviceBuffer(device, BYTES) as gmem:
        source = tensor(gmem.address, (128, 64), (64, 1), "float16")
        small = build_tma_descriptor(source, tile(64, 64), swizzle=Swizzle(3, 4, 3))
        with pytest.raises(TmaVerifyError) as refused:
            non_exec_tiled_tma_load(small, tile(128, 64), (128, 64))
        assert refused.value.step == 9
        assert "the descriptor's box_dim = (64, 64); the tile makes (64, 128)" in refused.value.facts.values()
        operation = tma_load(
            bound(non_exec_tiled_tma_load(source, tile(128, 64))), cute.make_smem_ptr(0, "float16"), (0, 0)
        )
        kernel = run_operation([operation], wait_cycles=20_000_000)
        with DeviceBuffer(device, int(kernel.facts["TILE_BYTES"])) as images:  # type: ignore[call-overload]
            with pytest.raises(DeviceError, match="was not complete") as hung:
                launched(kernel, device, encode(small), images, WaitRecord(device))
            assert (hung.value.facts["expected"], hung.value.facts["emulator"]) == ("16384 bytes", "8192 bytes")
            launched(kernel, device, encode(operation), images, WaitRecord(device))
