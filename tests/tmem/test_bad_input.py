"""Objects of another kind and numbers that are none end in a typed error; large layouts are refused before a walk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy

import cute_py.tmem as tmem
from cute_py import ComposedLayout, Int, Layout, Swizzle
from cute_py.atom import find_smem_operand
from cute_py.errors import CoordinateError, CuteError, InvalidTypeError, InvalidValueError, LayoutError, TmemError
from tests.refusals import Refusal, assert_refused, refusals

DONE = tmem.demonstrate()
PLAN = DONE.copy.plan
SMEM = np.zeros(9, np.uint8)
N = sympy.Symbol("N", integer=True, positive=True)
ONE = Layout((Int(8),), (Int(1),))
TILE = tmem.S[(32, 16) : (16, 1)]
LANES = tmem.S[(4, 8) : (1 @ tmem.TLane, 1 @ tmem.TCol)]
MEMORY = tmem.TensorMemory()
MEMORY.alloc(32)
DESCRIPTOR = tmem.encode_matrix_descriptor(0, 16, 8, 0)
VIEW = tmem.get_copy_s2t_smem_desc(PLAN)
SIDE = tmem.Side(TILE, (32, 16), ((0, 32), (0, 16)))
OPERAND = find_smem_operand(ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1))), "bfloat16")


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def loops(*extents: int) -> tmem.CpPlan:
    """A plan with these loops, made by hand."""
    middle = tuple(tmem.MiddleLoop(extent, 1, 1) for extent in extents)
    return tmem.CpPlan(PLAN.form, 8, 0, 8, PLAN.swizzle, 16, middle, 0, 0)


HUGE = Layout((Int(2**40), Int(2**30)))

REFUSED: list[Refusal] = [
    ("plan", lambda: tmem.run(4, DONE.tmem, 0, np.zeros(4096, np.uint8), 0), InvalidTypeError, "the plan of a copy"),
    ("address", lambda: tmem.run(PLAN, tmem.TensorMemory(), 0, SMEM, "0"), InvalidTypeError, "address"),
    ("memory", lambda: tmem.read_back(2, 0, 4), InvalidTypeError, "tensor memory must be a TensorMemory"),
    ("columns", lambda: tmem.read_back(tmem.TensorMemory(), 0, 2**40), TmemError,
     "within 0..512, the columns of tensor memory"),
    ("no columns", lambda: tmem.alloc_columns(0), TmemError, "0 columns are needed; must be 1 to 512, the columns"),
    ("negative columns", lambda: tmem.read_back(tmem.TensorMemory(), 0, -1), TmemError,
     "within 0..512, the columns of tensor memory"),
    ("pair", lambda: tmem.run_pair(1, (), 0, (), 0), InvalidTypeError, "a copy must be a CopyAsync"),
    ("side", lambda: tmem.expected_tmem(5, 5, 8, 0), InvalidTypeError, "the shared side must be a Side"),
    ("to CuTe", lambda: tmem.to_cute(2), InvalidTypeError, "a TileLayout or a ComposeLayout, got int 2"),
    ("from CuTe", lambda: tmem.from_cute_tmem((4, 8), "int8"), InvalidTypeError, "must be a Layout"),
    ("operand", lambda: find_smem_operand("", 5), InvalidTypeError, "a Layout or a ComposedLayout"),
    ("huge operand", lambda: find_smem_operand(HUGE, "float16"), TmemError, "(32 bytes), and the operand must have"),
    ("request", lambda: tmem.why_not(7), InvalidTypeError, "a request of a copy must be a CopyRequest"),
    ("symbol", lambda: tmem.alloc_columns(N), InvalidTypeError, "the number of columns must be an integer"),
    ("tile", lambda: tmem.demonstrate(5), InvalidTypeError, "tile must be a ndarray"),
    ("descriptor", lambda: tmem.encode_matrix_descriptor("0", 1, 1, 0), InvalidTypeError, "the address of shared"),
    ("offset", lambda: tmem.smem_desc_add_16B_offset(0, 1.5), InvalidTypeError, "an offset must be an integer"),
    ("start", lambda: tmem.replace_start_address(0, N), InvalidTypeError, "an address must be an integer"),
    ("picture", lambda: tmem.picture(np.zeros(4)), TmemError, "must be (lanes, columns, bytes)"),
    ("sources", lambda: tmem.source_addresses(3, 3), InvalidTypeError, "a form of tcgen05.cp"),
    ("text", lambda: tmem.examine(6), InvalidTypeError, "the text of an instruction"),
    ("emission", lambda: tmem.emit_cuda(8), InvalidTypeError, "a copy must be a CopyAsync"),
    ("kernel", lambda: tmem.emit_kernel(8), InvalidTypeError, "a copy must be a CopyAsync"),
    ("form", lambda: tmem.plan_form(1, 2, 3, 8), InvalidTypeError, "a form of tcgen05.cp"),
    ("format", lambda: tmem.decompress(np.zeros(16, np.uint8), []), InvalidTypeError, "source_format must be a str"),
    ("shape", lambda: tmem.Buffer("A", 4, "int8", "shared"), InvalidTypeError, "the shape of a buffer"),
    ("name", lambda: tmem.Buffer(5, (4,), "int8", "shared"), InvalidTypeError, "the name of a buffer"),
    ("wide elements", lambda: tmem.from_cute_tmem(ONE, "float64"), TmemError, "float64 has 64 bits; a column"),
    ("wide to CuTe", lambda: tmem.to_cute(LANES, (4, 8), dtype="float64"), TmemError, "must hold a whole number of"),
    ("shards", lambda: tmem.TileLayout(7), InvalidTypeError, "the shards must be a sequence of Iter, got int 7"),
    ("replicas", lambda: tmem.TileLayout((), 7), InvalidTypeError, "the replicas must be a sequence of Iter"),
    ("size", lambda: tmem.S[2**100, 2**100], InvalidValueError, "must be at most 2**128"),
    ("operand shape", lambda: tmem.mma_shared_layout("f16", 0, 3), InvalidTypeError, "shape must be a sequence"),
    ("data path", lambda: tmem.tmem_datapath_layout("D", 128, 32, []), InvalidTypeError, "sub_slab must be an integer"),
    ("load", lambda: tmem.TensorMemory().ld("a", "32x32b", 4), InvalidTypeError, "the tensor-memory address"),
    ("load shape", lambda: tmem.TensorMemory().ld(0, [], 4), InvalidTypeError, "shape must be a str"),
    ("load count", lambda: tmem.TensorMemory().ld(0, "32x32b", 10**5000), InvalidValueError, "must be at most 2**128"),
    ("load warp", lambda: MEMORY.ld(0, "32x32b", 4, "w"), InvalidTypeError, "warp must be an integer"),
    ("load pack", lambda: MEMORY.ld(0, "32x32b", 4, pack=N), InvalidTypeError, "pack or unpack must be a bool"),
    ("store", lambda: MEMORY.st(0, [1], "32x32b", 4), InvalidTypeError, "registers must be a ndarray"),
    ("store floats", lambda: MEMORY.st(0, np.zeros((32, 4)), "32x32b", 4), TmemError, "must be integers"),
    ("copy", lambda: MEMORY.cp(0, DESCRIPTOR, None), InvalidTypeError, "smem must be a ndarray"),
    ("copy from", lambda: MEMORY.cp(0, DESCRIPTOR, SMEM, smem_base="x"), InvalidTypeError, "smem_base must be"),
    ("commit", lambda: MEMORY.commit(True), InvalidTypeError, "expected a barrier"),
    ("group", lambda: MEMORY.alloc(32, []), InvalidTypeError, "cta_group must be an integer"),
    ("free", lambda: MEMORY.dealloc(None, 32), InvalidTypeError, "the tensor-memory address"),
    ("image", lambda: tmem.image([], 4), InvalidTypeError, "shape must be a str"),
    ("image count", lambda: tmem.image("32x32b", 100), TmemError, "count x100; must be one of"),
    ("view", lambda: tmem.S2TDescriptorView(8), InvalidTypeError, "S2TDescriptorView.plan must be a CpPlan"),
    ("view address", lambda: tmem.S2TDescriptorView(PLAN, 8), TmemError, "must be a multiple of 16"),
    ("view of none", lambda: tmem.get_copy_s2t_smem_desc(None), InvalidTypeError, "must be a CpPlan"),
    ("instruction", lambda: VIEW[5], CoordinateError, "instruction 5 does not exist; the copy has 1"),
    ("no instruction", lambda: VIEW["0"], InvalidTypeError, "the index of an instruction"),
    ("operand block", lambda: OPERAND.descriptor(0, 99), InvalidValueError, "block = 99; must be 0 to 3"),
    ("kind", lambda: find_smem_operand(ONE, "int8", kind=Unprintable()), InvalidTypeError, "kind must be a"),
    ("major", lambda: find_smem_operand(ONE, "int8", major=0), InvalidTypeError, "major must be a Major"),
    ("swizzle", lambda: find_smem_operand(ONE, "int8", swizzle=[]), TmemError, "swizzle = []; must be 0"),
    ("plan record", lambda: tmem.CpPlan(*[None] * 9), InvalidTypeError, "CpPlan.form must be a CpForm"),
    ("loops", lambda: loops(2**30, 2**30), TmemError, "instructions; must have 1..2048"),
    ("no loop", lambda: loops(0), TmemError, "the copy has 0 instructions"),
    ("form record", lambda: tmem.CpForm("a", "", 4, 128, (), ()), TmemError, "must have rows of 128 or 256 bits"),
    ("iter", lambda: tmem.Iter("4", 1, "m"), InvalidTypeError, "Iter.extent must be an int"),
    ("request record", lambda: tmem.CopyRequest(1, 2), InvalidTypeError, "CopyRequest.dst must be a BufferRegion"),
    ("setting", lambda: tmem.copy_async(DONE.copy.dst, DONE.copy.src, way=1), InvalidTypeError, "has no setting way"),
    ("kernel name", lambda: tmem.emit_kernel(DONE.copy, "a b"), InvalidValueError, "must be an identifier"),
    ("allocation name", lambda: tmem.TmemAllocation(32, "a;"), InvalidValueError, "must be an identifier"),
    ("unicode name", lambda: tmem.Buffer("\u00e9", (4,), "int8", "shared"), InvalidValueError, "an identifier"),
    ("taddr", lambda: tmem.emit_cuda(DONE.copy, taddr="a; b"), InvalidValueError, "must be an expression on one"),
    ("indent", lambda: tmem.emit_cuda(DONE.copy, indent="x"), InvalidValueError, "must be blanks"),
    ("columns shown", lambda: tmem.picture(DONE.tmem.sources, range(10**9)), TmemError, "a range within 0..512"),
    ("lanes shown", lambda: tmem.picture(DONE.tmem.sources, lanes_shown=-1), InvalidValueError, "must be 1 to 32"),
    ("modifier", lambda: tmem.mnemonic("tcgen05.cp", cta_group=SMEM), InvalidTypeError, "cta_group must be a str"),
    ("architecture", lambda: tmem.why_not_instruction("tcgen05.wait::ld;", "sm_1"), InvalidValueError, "not a known"),
    ("version", lambda: tmem.why_not_instruction("tcgen05.wait::ld;", "sm_100a", 8), InvalidTypeError, "two integers"),
    ("axes", lambda: TILE.places("m"), InvalidTypeError, "axes must be a sequence of names"),
    ("pack", lambda: TILE.pack(0), InvalidValueError, "count = 0; must be at least 1"),
    ("runs", lambda: TILE.permute_by_groups((0, 5), (0,)), LayoutError, "must ascend from 0 to 2"),
    ("tile", lambda: TILE.tile(None, (1,), (1,)), InvalidTypeError, "the outer layout must be a TileLayout"),
    ("region", lambda: TILE.slice((32, 16), (0, 1)), InvalidTypeError, "region[0] must be a sequence"),
    ("coordinate", lambda: TILE.apply(None), InvalidTypeError, "the coordinate must be a sequence of integers"),
    ("far", lambda: tmem.S[2**20 : 2**110].positions("m"), TmemError, "must be below 2**62"),
    ("swizzle bits", lambda: tmem.ComposeLayout(99, 1, 3, TILE), LayoutError, "per_element = 99; must be within 0..20"),
    ("expected_tmem", lambda: tmem.expected_tmem(SIDE, SIDE, 2**40, 0), InvalidValueError, "must be 1 to 128"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


def test_a_copy_of_more_instructions_than_cells_is_refused_at_once() -> None:
    smem = tmem.Buffer("A", (32, 2**30), "uint8", "shared", tmem.S[(32, 2**26, 16) : (16, 512, 1)])
    lanes = tmem.S[(32, 2**30) : (1 @ tmem.TLane, 1 @ tmem.TCol)] + tmem.R[4 : 32 @ tmem.TLane]
    target = tmem.Buffer("B", (32, 2**30), "uint8", "tmem", lanes, tmem.TmemAllocation(32))
    assert_refused(lambda: tmem.copy_async(target, smem), TmemError, "must have at most 2048, which fill tensor memory")


def test_numbers_of_numpy_are_plain_numbers() -> None:
    """A numpy integer of 32 bits overflowed where the mask of 64 bits was applied to it."""
    assert tmem.smem_desc_add_16B_offset(np.int32(4), np.uint8(200)) == 204
    assert tmem.replace_start_address(np.uint8(200), np.int32(1024)) == tmem.replace_start_address(200, 1024)
    assert tmem.alloc_columns(np.int64(33)) == 64


@pytest.mark.parametrize("count", [0, 1, 3, 12, 33, 61])
def test_any_number_of_columns_is_read_back(count: int) -> None:
    memory = tmem.TensorMemory()
    memory.alloc(64)
    memory.cells[:, :64] = np.arange(64, dtype=np.uint32)
    found = tmem.read_back(memory, 0, count)
    assert found.shape == (128, count) and (found == np.arange(count)).all()
