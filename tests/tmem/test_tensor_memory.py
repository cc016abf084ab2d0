"""The emulator of tensor memory: allocation, copies, transfers, and what it refuses."""

from __future__ import annotations

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.atom import SmemDescriptor
from cute_py.errors import RaceError, TmemError, UnknownFactError, WouldHangError
from cute_py.machine.tensor_memory.memory import STATUS
from cute_py.ptx.forms_tcgen05 import COUNTS, MAX_REGISTERS, SHAPE_REGISTERS
from cute_py.tma.emulator.mbarrier import Mbarrier
from cute_py.tmem import (
    FORMS,
    SmemSwizzle,
    TensorMemory,
    decompress,
    demonstration_copy,
    encode_matrix_descriptor,
    image,
    run_pair,
    source_addresses,
)
from cute_py.tmem.cp_forms import WARPX4
from tests.each import each_of

SMEM = (numpy.arange(1 << 16) * 2654435761 >> 7).astype(numpy.uint8)

LANES = {
    "128x256b": [list(range(128))],
    "4x256b": [[0, 32, 64, 96]],
    "128x128b": [list(range(128))],
    "64x128b.warpx2::02_13": [list(range(64)), list(range(64, 128))],
    "64x128b.warpx2::01_23": [[*range(32), *range(64, 96)], [*range(32, 64), *range(96, 128)]],
    "32x128b.warpx4": [list(range(32 * w, 32 * w + 32)) for w in range(4)],
}


@each_of("form", FORMS, ids=lambda form: form.name)
@each_of("swizzle", [0, 1, 2, 3])
def test_each_form_writes_its_rows_to_its_lanes(form: object, swizzle: int) -> None:
    """Row r of the address walk, done byte by byte here, is in the lanes that the table of the ISA gives it."""
    assert isinstance(form, type(WARPX4))
    width, leading, stride = (16, 32, 64, 128)[swizzle], 48, 160
    memory = TensorMemory()
    memory.alloc(32)
    start = 2048
    memory.cp(8, encode_matrix_descriptor(start, leading, stride, swizzle), SMEM, form.shape, form.multicast)
    for lanes in LANES[form.name]:
        for row, lane in enumerate(lanes):
            for unit in range(form.bits // 128):
                step = leading * 16 if swizzle == 0 else 16
                address = start + row // 8 * stride * 16 + row % 8 * width + unit * step
                address ^= (address >> 7 & (1 << swizzle) - 1) << 4
                words = memory.cells[lane, 8 + 4 * unit : 12 + 4 * unit]
                assert words.tobytes() == SMEM[address : address + 16].tobytes()
    touched = numpy.argwhere((memory.sources >= 0).any(axis=(1, 2))).reshape(-1).tolist()
    assert touched == sorted(lane for lanes in LANES[form.name] for lane in lanes)
    assert (memory.sources[:, [*range(8), *range(8 + form.columns, 512)]] == -1).all()


def test_sources_name_the_bytes() -> None:
    memory = TensorMemory()
    memory.alloc(32)
    memory.cp(0, encode_matrix_descriptor(512, 0, 8, 0), SMEM)
    at = memory.sources[:, :4]
    assert (SMEM[at].reshape(128, 16) == memory.cells[:, :4].copy().view(numpy.uint8).reshape(128, 16)).all()


def test_allocation() -> None:
    memory = TensorMemory()
    assert [memory.alloc(n) for n in (32, 64, 32, 256)] == [0, 64, 32, 256]
    memory.dealloc(64, 64)
    assert memory.alloc(128) == 128
    with pytest.raises(WouldHangError, match="blocks"):
        memory.alloc(128)
    with pytest.raises(TmemError, match="n_cols = 16"):
        memory.alloc(16)
    with pytest.raises(TmemError, match="dealloc of 64 columns at 0x0"):
        memory.dealloc(0, 64)
    memory.relinquish_alloc_permit()
    with pytest.raises(TmemError, match="relinquish"):
        memory.alloc(32)
    with pytest.raises(TmemError, match="still allocated"):
        memory.finish()


def test_what_cp_refuses() -> None:
    memory = TensorMemory()
    memory.alloc(32)
    descriptor = encode_matrix_descriptor(0, 0, 8, 0)
    with pytest.raises(TmemError, match=r"columns 29\.\.32 are not allocated"):
        memory.cp(29, descriptor, SMEM)
    with pytest.raises(TmemError, match=r"lanes 1\.\.128"):
        memory.cp(1 << 16, descriptor, SMEM)
    with pytest.raises(TmemError, match="reads shared bytes"):
        memory.cp(0, encode_matrix_descriptor(65536 - 256, 0, 8, 0), SMEM)
    with pytest.raises(UnknownFactError, match="base offset"):
        memory.cp(0, SmemDescriptor(0, 0, 8, SmemSwizzle.B128, base_offset=1).encode(), SMEM)
    with pytest.raises(TmemError, match="swizzle code is 3"):
        memory.cp(0, 3 << 61, SMEM)
    with pytest.raises(TmemError, match="version = 0; must be 1"):  # of wgmma: it has the same codes of swizzles
        memory.cp(0, SmemDescriptor(0, 0, 8, SmemSwizzle.B128, "wgmma").encode(), SMEM)
    with pytest.raises(TmemError, match="reserved bits must be 0"):
        memory.cp(0, descriptor | 1 << 53, SMEM)


def test_one_cta_group_throughout() -> None:
    memory = TensorMemory()
    memory.alloc(32, cta_group=1)
    with pytest.raises(TmemError, match="cta_group::2 after cta_group::1"):
        memory.commit(cta_group=2)
    with pytest.raises(TmemError, match="cta_group = 3"):
        memory.commit(cta_group=3)


def test_reading_before_the_commit_is_a_race() -> None:
    memory = TensorMemory()
    taddr = memory.alloc(32)
    memory.cp(taddr, encode_matrix_descriptor(0, 0, 8, 0), SMEM)
    with pytest.raises(RaceError, match=r"tcgen05\.ld"):
        memory.ld(taddr, "32x32b", 4)
    with pytest.raises(RaceError, match=r"tcgen05\.dealloc"):
        memory.dealloc(taddr, 32)
    barrier = Mbarrier(1)
    memory.commit(barrier)
    assert barrier.try_wait(0)
    assert memory.ld(taddr, "32x32b", 4).shape == (32, 4)


@pytest.mark.parametrize("shape", list(SHAPE_REGISTERS))
def test_an_image_covers_its_cells_once(shape: str) -> None:
    """Every cell of lanes x columns is in exactly one register of one thread."""
    for count in COUNTS[:4]:
        num = int(count[1:])
        lanes, columns = image(shape, num)
        if shape == "16x32bx2":
            columns = columns + numpy.arange(32)[:, None] // 16 * num
        cells = set(zip(lanes.reshape(-1).tolist(), columns.reshape(-1).tolist(), strict=True))
        height = 32 if shape == "32x32b" else 16
        assert cells == {(lane, column) for lane in range(height) for column in range(lanes.size // height)}


def bit_of(thread: int, value: int, shape: dict[str, tuple[tuple[int, int], ...]]) -> int:
    """A CuTe thread-value layout in bits, first mode fastest."""
    total = 0
    for modes, index in ((shape["thread"], thread), (shape["value"], value)):
        for extent, stride in modes:
            total += index % extent * stride
            index //= extent
    return total


@pytest.mark.parametrize(
    ("shape", "width", "modes"),
    [
        ("16x64b", 64, {"thread": ((2, 512), (2, 32), (8, 64)), "value": ((32, 1),)}),
        ("16x128b", 128, {"thread": ((4, 32), (8, 128)), "value": ((32, 1), (2, 1024))}),
        ("16x256b", 256, {"thread": ((4, 64), (8, 256)), "value": ((64, 1), (2, 2048))}),
        ("16x256b.x2", 512, {"thread": ((4, 64), (8, 512)), "value": ((64, 1), (2, 4096), (2, 256))}),
        ("16x128b.x2", 256, {"thread": ((4, 32), (8, 256)), "value": ((32, 1), (2, 2048), (2, 128))}),
    ],
)
def test_images_are_cutlass_layouts(shape: str, width: int, modes: dict[str, tuple[tuple[int, int], ...]]) -> None:
    """CUTLASS gives the bit of a 16-lane image, lane by lane, for each thread and bit of its registers."""
    name, _, count = shape.partition(".x")
    lanes, columns = image(name, int(count or 1))
    for thread in range(32):
        for register in range(lanes.shape[1]):
            lane, bit = divmod(bit_of(thread, 32 * register, modes), width)
            assert (lane, bit // 32) == (lanes[thread, register], columns[thread, register])


@given(st.sampled_from(list(SHAPE_REGISTERS)), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans())
def test_ld_gives_back_what_st_wrote(shape: str, power: int, warp: int, upper: bool, pack: bool) -> None:
    num = 1 << power
    if SHAPE_REGISTERS[shape] * num > MAX_REGISTERS:
        return
    memory = TensorMemory()
    memory.alloc(512)
    lane = 32 * warp + (16 if upper and shape != "32x32b" else 0)
    taddr = (lane << 16) + 7
    split = (1 + pack) * num if shape == "16x32bx2" else None
    values = (numpy.arange(32 * SHAPE_REGISTERS[shape] * num, dtype=numpy.uint32) * 40503 + 77).reshape(32, -1)
    memory.st(taddr, values, shape, num, warp, unpack=pack, half_split=split)
    assert (memory.ld(taddr, shape, num, warp, pack=pack, half_split=split) == values).all()
    if pack:
        assert (memory.cells >> 16 == 0).all()


def test_what_a_warp_reaches() -> None:
    memory = TensorMemory()
    memory.alloc(32)
    assert memory.ld(16 << 16, "16x64b", 1, 0).shape == (32, 1)
    for taddr, shape, warp in ((0, "32x32b", 1), (16 << 16, "32x32b", 0), (17 << 16, "16x64b", 0), (0, "16x64b", 3)):
        with pytest.raises(TmemError, match=f"warp {warp} reaches lanes"):
            memory.ld(taddr, shape, 1, warp)
    assert memory.ld(32 << 16, "32x32b", 1, 5).shape == (32, 1)
    with pytest.raises(TmemError, match="half_split"):
        memory.ld(0, "16x32bx2", 1)
    with pytest.raises(TmemError, match="half_split"):
        memory.ld(0, "32x32b", 1, half_split=1)
    with pytest.raises(TmemError, match=r"unknown tcgen05\.ld shape"):
        memory.ld(0, "8x32b", 1)
    with pytest.raises(TmemError, match="count x3"):
        memory.ld(0, "32x32b", 3)
    with pytest.raises(TmemError, match="256 registers"):
        memory.ld(0, "16x128b", 128)
    with pytest.raises(TmemError, match="registers have the shape"):
        memory.st(0, numpy.zeros((32, 2), numpy.uint32), "32x32b", 1)


@pytest.mark.parametrize("name", ["b4x16_p64", "b6x16_p32"])
def test_decompression_keeps_the_elements_and_says_that_it_is_unverified(name: str) -> None:
    width, shift = (4, 2) if name == "b4x16_p64" else (6, 0)
    elements = [(7 * i + 3) % (1 << width) for i in range(16)]
    packed = sum(element << width * i for i, element in enumerate(elements)).to_bytes(16, "little")
    unit = numpy.frombuffer(packed, numpy.uint8)
    assert [int(byte) >> shift for byte in decompress(unit, name)] == elements
    memory = TensorMemory()
    memory.alloc(32)
    smem = numpy.tile(unit, 32)
    memory.cp(0, encode_matrix_descriptor(0, 0, 8, 0), smem, decompress_from=name)
    assert memory.notes == [f"32x128b.warpx4.b8x16.{name}: {STATUS}"]
    assert memory.cells[0, :4].tobytes() == decompress(unit, name).tobytes()
    assert memory.sources[0, 0].tolist() == [i * width // 8 for i in range(4)]


def test_the_padding_is_not_read() -> None:
    unit = numpy.zeros(16, numpy.uint8)
    unit[8:] = 255
    assert not decompress(unit, "b4x16_p64").any()
    with pytest.raises(TmemError, match="source format"):
        decompress(unit, "b2x16")
    with pytest.raises(TmemError, match="16 bytes"):
        decompress(unit[:8], "b4x16_p64")


def test_a_pair_copies_each_its_own_memory() -> None:
    copy = demonstration_copy(cta_group=2)
    memories = (TensorMemory(), TensorMemory())
    for memory in memories:
        memory.alloc(32, cta_group=2)
    smems = (SMEM[:4096].copy(), SMEM[4096:8192].copy())
    run_pair(copy, memories, 0, smems, 1024)
    for memory, smem in zip(memories, smems, strict=True):
        assert memory.cells[32, :4].tobytes() == smem[1024:1040].tobytes()
    with pytest.raises(TmemError, match="cta_group::1"):
        run_pair(demonstration_copy(), memories, 0, smems, 1024)


def test_addresses_wrap_at_256_kib() -> None:
    addresses = source_addresses(WARPX4, SmemDescriptor(0x3FFF, 0, 8))
    assert addresses[0, 0, 0] == (1 << 18) - 16
    assert addresses[1, 0, 0] == 0
