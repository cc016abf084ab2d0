"""The generated PTX modules on a GPU: the image in shared memory, and what a store leaves in global memory.

The driver is called through ctypes, so that nothing but a driver is needed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import Any

import numpy
import pytest

from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.dialect.legacy_copy import ENTRY as LEGACY_ENTRY
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.dialect.rebind import init_sequence, rebind_ptx
from cute_py.tma.dialect.traced_copy import trace_copy
from cute_py.tma.exports.single_tile import ENTRY, shared_bytes, single_tile_ptx
from tests.tma.dialect.atoms import tile_atom
from tests.tma.dialect.images import tile_image

pytestmark = pytest.mark.gpu
SHARED_ATTRIBUTE = 8


class Device:
    """The first GPU, its context, and the few driver calls that a launch needs."""

    def __init__(self) -> None:
        name = ctypes.util.find_library("cuda") or "libcuda.so.1"
        try:
            self.cuda = ctypes.CDLL(name)
        except OSError:
            pytest.skip("no CUDA driver")
        if self.cuda.cuInit(0) != 0:
            pytest.skip("no usable GPU")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.check(self.cuda.cuDeviceGet(ctypes.byref(device), 0))
        major = ctypes.c_int()
        self.check(self.cuda.cuDeviceGetAttribute(ctypes.byref(major), 75, device))
        if major.value < 9:
            pytest.skip("needs compute capability 9.0 or newer")
        self.major = major.value
        self.check(self.cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        self.check(self.cuda.cuCtxSetCurrent(context))

    @staticmethod
    def check(result: int) -> None:
        assert result == 0, f"CUresult {result}"

    def upload(self, data: bytes) -> int:
        pointer = ctypes.c_uint64()
        self.check(self.cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(len(data))))
        self.check(self.cuda.cuMemcpyHtoD_v2(pointer, data, ctypes.c_size_t(len(data))))
        return pointer.value

    def download(self, address: int, count: int) -> bytes:
        buffer = ctypes.create_string_buffer(count)
        self.check(self.cuda.cuMemcpyDtoH_v2(buffer, ctypes.c_uint64(address), ctypes.c_size_t(count)))
        return buffer.raw

    def launch(self, source: str, entry: str, arguments: list[Any], shared: int) -> None:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), source.encode() + b"\0"))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module, entry.encode()))
        self.check(self.cuda.cuFuncSetAttribute(function, SHARED_ATTRIBUTE, shared))
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(a) for a in arguments))
        self.check(self.cuda.cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, shared, None, pointers, None))
        self.check(self.cuda.cuCtxSynchronize())
        self.check(self.cuda.cuModuleUnload(module))


@pytest.fixture(scope="module")
def device() -> Device:
    return Device()


class Map(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_uint8 * 128),)


def tensor_of(sizes: tuple[int, ...], bits: int) -> numpy.ndarray[Any, Any]:
    count = int(numpy.prod(sizes))
    return (numpy.arange(1, count + 1, dtype=numpy.uint64) * 2654435761).astype(f"u{bits // 8}").reshape(sizes)


DATA_TYPES = {8: 0, 16: 1, 32: 2}
# The innermost coordinate times the element size is a multiple of 16 bytes: another one traps.
CASES = (
    (tile_atom("load", (128, 128), "uint16", swizzle=3), (256, 256), (64, 64)),
    (tile_atom("load", (128, 128), "uint16", swizzle=3), (200, 200), (128, 128)),
    (tile_atom("load", (64, 64), "uint32"), (100, 128), (-8, 96)),
    (tile_atom("load", (4, 8, 32), "uint16", swizzle=2), (7, 9, 64), (5, 3, 16)),
    (tile_atom("load", (2, 2, 2, 4, 32), "uint8", swizzle=1), (3, 3, 3, 5, 64), (1, 2, 2, 3, 32)),
    (tile_atom("load", (256,), "uint8"), (1000,), (896,)),
    (tile_atom("load", (8, 16), "uint16", swizzle=3), (20, 64), (4, 16)),
)


def module_map(atom: Any, tensor: numpy.ndarray[Any, Any], address: int) -> Map:
    shape, strides = trace_copy(atom), tuple(reversed(tensor.strides[:-1]))
    request = TensorMapTiled(
        DATA_TYPES[shape.dtype.bits],
        address,
        tuple(reversed(tensor.shape)),
        strides,
        tuple(reversed(shape.box)),
        swizzle=shape.swizzle,
    )
    return Map((ctypes.c_uint8 * 128)(*encode(request)))


def coords_of(origin: tuple[int, ...]) -> list[Any]:
    return [ctypes.c_int32(coord) for coord in reversed(origin)]


def legacy_arguments(tensor: numpy.ndarray[Any, Any], address: int, origin: tuple[int, ...], image: int) -> list[Any]:
    strides = [ctypes.c_uint64(stride) for stride in reversed(tensor.strides[:-1])]
    sizes = [ctypes.c_uint32(size) for size in reversed(tensor.shape)]
    return [ctypes.c_uint64(address), *strides, *sizes, *coords_of(origin), ctypes.c_uint64(image)]


@pytest.mark.parametrize(("atom", "sizes", "origin"), CASES)
@pytest.mark.parametrize("arch", ("sm_90a", "sm_75", "sm_80"))
def test_the_image_of_a_load(
    device: Device, atom: Any, sizes: tuple[int, ...], origin: tuple[int, ...], arch: str
) -> None:
    if arch == "sm_90a" and device.major != 9:
        pytest.skip("sm_90a code runs on compute capability 9.0 only")
    shape = trace_copy(atom)
    tensor = tensor_of(sizes, shape.dtype.bits)
    address = device.upload(tensor.tobytes())
    image = device.upload(bytes(shape.smem_bytes))
    if arch == "sm_90a":
        arguments = [module_map(atom, tensor, address), *coords_of(origin), ctypes.c_uint64(image)]
        device.launch(single_tile_ptx(atom, arch), ENTRY, arguments, shared_bytes(atom))
    else:
        arguments = legacy_arguments(tensor, address, origin, image)
        device.launch(legacy_ptx(atom, arch), LEGACY_ENTRY, arguments, shape.smem_bytes)
    # Short rows of a swizzled box leave gaps, which hold what was there before.
    written = tile_image(atom, numpy.full(shape.tile, -1, tensor.dtype.str.replace("u", "i")), (0,) * shape.rank)
    found = bytes(a & b for a, b in zip(device.download(image, shape.smem_bytes), written, strict=True))
    assert found == tile_image(atom, tensor, origin)


@pytest.mark.parametrize(("load", "sizes", "origin"), CASES)
@pytest.mark.parametrize("arch", ("sm_90a", "sm_75", "sm_80"))
@pytest.mark.parametrize("direction", ("store", "reduce"))
def test_what_a_store_leaves(
    device: Device, load: Any, sizes: tuple[int, ...], origin: tuple[int, ...], arch: str, direction: str
) -> None:
    if arch == "sm_90a" and device.major != 9:
        pytest.skip("sm_90a code runs on compute capability 9.0 only")
    if min(origin) < 0:
        pytest.skip("a store with a negative coordinate traps")
    if direction == "reduce" and (arch != "sm_90a" or trace_copy(load).dtype.bits != 32):
        pytest.skip("reductions are for TMA, and of 32-bit integers here")
    loaded = trace_copy(load)
    atom = tile_atom(direction, loaded.tile, loaded.dtype.name, swizzle=int(loaded.swizzle))
    shape = trace_copy(atom)
    tensor = tensor_of(sizes, shape.dtype.bits)
    address = device.upload(tensor.tobytes())
    picture = bytes((7 * i + i // 251) & 0xFF for i in range(shape.smem_bytes))
    image = device.upload(picture)
    if arch == "sm_90a":
        arguments = [module_map(atom, tensor, address), *coords_of(origin), ctypes.c_uint64(image)]
        device.launch(single_tile_ptx(atom, arch), ENTRY, arguments, shared_bytes(atom))
    else:
        arguments = legacy_arguments(tensor, address, origin, image)
        device.launch(legacy_ptx(atom, arch), LEGACY_ENTRY, arguments, shape.smem_bytes)
    left = numpy.frombuffer(device.download(address, tensor.nbytes), tensor.dtype).reshape(sizes)
    inside = numpy.frombuffer(tile_image(atom, numpy.full(sizes, 255, tensor.dtype), origin), tensor.dtype) != 0
    stored = numpy.frombuffer(picture, tensor.dtype)
    back = numpy.frombuffer(tile_image(atom, left, origin), tensor.dtype)
    before = numpy.frombuffer(tile_image(atom, tensor, origin), tensor.dtype)
    expected = stored if direction == "store" else stored + before
    assert (back[inside] == expected[inside]).all()
    untouched = numpy.ones(sizes, bool)
    box = tuple(slice(max(0, o), max(0, o + t)) for o, t in zip(origin, shape.tile, strict=True))
    untouched[box] = False
    assert (left[untouched] == tensor[untouched]).all()


@pytest.mark.parametrize("rank", range(1, 6))
def test_a_rebound_map_is_the_new_encoding(device: Device, rank: int) -> None:
    """The rebind kernel on a map in global memory leaves the 64 live bytes of a fresh encoding."""
    if device.major != 9:
        pytest.skip("sm_90a code runs on compute capability 9.0 only")
    box = (64, 8, 1, 1, 1)[:rank]
    strides = (1024, 65536, 1 << 19, 1 << 21), (512, 40960, 1 << 18, 1 << 22)
    old = TensorMapTiled(9, 1 << 20, (512, 64, 8, 4, 2)[:rank], strides[0][: rank - 1], box, swizzle=3)
    new = TensorMapTiled(9, 1 << 30, (256, 77, 3, 5, 6)[:rank], strides[1][: rank - 1], box, swizzle=3)
    address = device.upload(encode(old))
    arguments = [
        ctypes.c_uint64(address),
        ctypes.c_uint64(new.global_address),
        *(ctypes.c_uint32(extent) for extent in new.global_dim),
        *(ctypes.c_uint64(stride) for stride in new.global_strides),
    ]
    device.launch(rebind_ptx(rank, "sm_90a", scope="gpu"), "rebind", arguments, 0)
    assert device.download(address, 64) == encode(new)[:64]


def test_a_zeroed_slot_becomes_a_map(device: Device) -> None:
    """All ten fields into 128 zero bytes leave the 64 live bytes of the driver's encoding."""
    if device.major != 9:
        pytest.skip("sm_90a code runs on compute capability 9.0 only")
    request = TensorMapTiled(9, 1 << 30, (256, 77, 3), (512, 40960), (64, 8, 1), swizzle=3)
    address = device.upload(bytes(128))
    body = "\n".join(step.text for step in init_sequence(request))
    source = (
        ".version 8.3\n.target sm_90a\n.address_size 64\n.visible .entry init(.param .u64 p_map)\n{\n"
        ".reg .b64 %rd_map;\n.reg .b32 %r_tid;\n.reg .pred %p;\nmov.u32 %r_tid, %tid.x;\nsetp.ne.u32 %p, %r_tid, 0;\n"
        f"@%p ret;\nld.param.u64 %rd_map, [p_map];\n{body}\nret;\n}}\n"
    )
    device.launch(source, "init", [ctypes.c_uint64(address)], 0)
    assert device.download(address, 64) == encode(request)[:64]
