"""Calls of tensor memory: tile layouts, matrix descriptors, planned copies, the emulator."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, entry, expression, method, methods_of, operation
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker, elements

AXES = ("tmem.TLane", "tmem.TCol", "tmem.m", "tmem.tx", "tmem.laneid")
DEMO = "tmem.S[(32, 16) : (1 @ tmem.TLane, 1 @ tmem.TCol)] + tmem.R[4 : 32 @ tmem.TLane]"
SHARED = "tmem.Buffer('A', (32, 16), 'uint8', 'shared', tmem.S[(32, 16) : (16, 1)])"
TMEM = f"tmem.Buffer('T', (32, 16), 'uint8', 'tmem', {DEMO}, tmem.TmemAllocation(32))"


def tile_layout(m: Maker) -> str:
    tree = m.shape_tree(m.integer(1, 3), depth=1, sizes=(2, 4, 8))
    return f"tmem.S[{tree} : {m.stride_tree(tree, 'compact')}]"


def any_tile_layout(m: Maker) -> str:
    return m.one_of(tile_layout(m), f"({DEMO})", "tmem.S[8, 64]", "(tmem.S[(8, 4) : (4, 1)] + 3)")


def shaped(m: Maker) -> tuple[str, tuple[int, ...]]:
    tree = m.shape_tree(2, depth=1, sizes=(2, 4, 8))
    return f"tmem.S[{tree} : {m.stride_tree(tree, 'compact')}]", tree


def axis(m: Maker) -> str:
    return m.choice(AXES)


def form(m: Maker) -> str:
    return f"tmem.FORMS[{m.integer(0, 5)}]"


SWIZZLED = "ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))"
COMPOSE = "tmem.ComposeLayout(3, 3, 3, tmem.S[8, 64])"
VIEW = "tmem.get_copy_s2t_smem_desc(tmem_copy())"
INSTANCES.update(
    {
        "tmem.Axis": axis,
        "tmem.AxisSum": "(3 @ tmem.TLane + 4 @ tmem.TCol)",
        "tmem.AxisTerm": "(4 @ tmem.TCol)",
        "tmem.Buffer": lambda m: m.one_of(SHARED, TMEM),
        "tmem.BufferRegion": f"{SHARED}[0:32, 0:16]",
        "SmemOperand": f"find_smem_operand({SWIZZLED}, 'bfloat16')",
        "tmem.ComposeLayout": COMPOSE,
        "tmem.CopyAsync": "tmem_copy()",
        "tmem.CpPlan": "tmem_copy().plan",
        "tmem.CopyRequest": "copy_request()",
        "tmem.CpForm": form,
        "tmem.Demonstration": "tmem.demonstrate()",
        "tmem.Dispatch": "tmem.DISPATCHES[0]",
        "tmem.InstructionForm": lambda m: f"tmem.FORMS_TABLE[{m.integer(0, 14)}]",
        "tmem.Iter": "tmem.Iter(4, 32, 'TLane')",
        "SmemDescriptor": "SmemDescriptor(start=0, leading=16, stride=8)",
        "tmem.MiddleLoop": "tmem.MiddleLoop(2, 1024, 4)",
        "tmem.Refusal": "tmem.Refusal('a rule', text='a text')",
        "tmem.S2TDescriptorView": VIEW,
        "tmem.Side": "tmem.Side(tmem.S[(32, 16) : (16, 1)], (32, 16), ((0, 32), (0, 16)))",
        "tmem.TensorMemory": "loaded_tmem()",
        "tmem.Tile": "tmem.Tile(65536, 16)",
        "tmem.TileLayout": any_tile_layout,
        "tmem.TmemAllocation": "tmem.TmemAllocation(32)",
    }
)

# ---- axes and iterations

add("tmem.Axis", lambda m: m.one_of("'TLane'", "'TCol'", "'m'", "'tx'"))
operation("tmem.Axis.__rmatmul__", "reflected_matmul", axis, lambda m: str(m.integer(0, 64)))
add("tmem.AxisTerm", "4", "'TCol'")
add("tmem.AxisSum", "((4 @ tmem.TCol),)")
for kind in ("AxisTerm", "AxisSum"):
    for symbol in ("add", "radd"):
        plain = symbol.removeprefix("r")
        operation(
            f"tmem.{kind}.__{symbol}__",
            ("" if plain == symbol else "reflected_") + plain,
            INSTANCES[f"tmem.{kind}"],
            lambda m: m.one_of("3", "2 @ tmem.TLane", "(1 @ tmem.TCol + 2)"),
        )
method("tmem.AxisSum.of", "tmem.AxisSum", lambda m: m.one_of("3", "2 @ tmem.TLane", "(1 @ tmem.TCol + 2)"))
add("tmem.Iter", lambda m: str(m.integer(1, 32)), lambda m: str(m.integer(0, 64)), lambda m: m.one_of("'TLane'", "'m'"))
expression("tmem.S", lambda m: any_tile_layout(m), weight=0.3)
expression("tmem.R", "tmem.R[4 : 32 @ tmem.TLane]", weight=0.1)
operation(
    "tmem.S",
    "getitem",
    "tmem.S",
    lambda m: m.one_of("(8, 64)", "slice((4, 8), (8, 1))", "slice((4, 8), (1 @ tmem.TLane, 1 @ tmem.TCol))", "8"),
)
operation(
    "tmem.R",
    "getitem",
    "tmem.R",
    lambda m: m.one_of("slice(4, 32 @ tmem.TLane)", "slice((4, 2), (32 @ tmem.TLane, 16 @ tmem.TCol))"),
)
for name in ("S", "R"):
    entry(f"tmem.{name}", mutable=True, weight=1.0)

# ---- tile layouts

add(
    "tmem.TileLayout",
    lambda m: m.one_of("[tmem.Iter(32, 16, 'm'), tmem.Iter(16, 1, 'm')]", f"({DEMO})"),
    named={"replica": "[tmem.Iter(2, 64, 'm')]", "offset": "3"},
)
operation(
    "tmem.TileLayout.__add__",
    "add",
    tile_layout,
    lambda m: m.one_of("3", "tmem.R[4 : 32 @ tmem.TLane]", "1 @ tmem.TLane"),
)
operation("tmem.TileLayout.__eq__", "eq", tile_layout, tile_layout, weight=0.3)


@methods_of("tmem.TileLayout.apply")
def _apply(m: Maker) -> Any:
    text, tree = shaped(m)
    if m.chance(0.5):
        return (
            text,
            [
                repr(m.coord_tree(tree)),
            ],
            {"shape": repr(tree)},
        )
    return text, [str(m.integer(0, elements(tree) - 1))]


@methods_of("tmem.TileLayout.group")
def _group(m: Maker) -> Any:
    text, tree = shaped(m)
    return text, [m.one_of(repr(tree), f"({elements(tree)},)")]


@methods_of("tmem.TileLayout.group_many")
def _group_many(m: Maker) -> Any:
    text, tree = shaped(m)
    return text, [f"[{tree}, ({elements(tree)},)]"]


@methods_of("tmem.TileLayout.slice")
def _slice(m: Maker) -> Any:
    text, tree = shaped(m)
    return text, [repr(tree), f"(({m.choice((0, 1))}, {tree[0]}), (0, {tree[1] // 2}))"]


method("tmem.TileLayout.direct_sum", "tmem.S[(2, 4) : (4, 1)]", "tmem.S[(2, 2) : (64, 32)]", "(2, 2)", "(2, 4)")
method(
    "tmem.TileLayout.outer_of",
    "tmem.S[(4, 4) : (4, 1)]",
    "tmem.S[(2, 2) : (2, 1)].tile(tmem.S[(4, 4) : (4, 1)], (4, 4), (2, 2))",
    "(8, 8)",
    "(2, 2)",
)
method("tmem.TileLayout.tile", "tmem.S[(2, 2) : (2, 1)]", "tmem.S[(4, 4) : (4, 1)]", "(4, 4)", "(2, 2)")
for name in ("pack", "unpack"):
    method(f"tmem.TileLayout.{name}", "tmem.S[(4, 8) : (8, 1)]", lambda m: m.one_of("2", "4"))
for name in ("permute", "permute_dims"):
    method(f"tmem.TileLayout.{name}", "tmem.S[(4, 8) : (8, 1)]", lambda m: m.one_of("(1, 0)", "[0, 1]"))
method("tmem.TileLayout.permute_by_groups", "tmem.S[(4, 8) : (8, 1)]", "(0, 1, 2)", "(1, 0)")
for name in ("positions", "replica_positions", "span"):
    method(f"tmem.TileLayout.{name}", f"({DEMO})", lambda m: m.one_of("tmem.TLane", "'TCol'"))
method("tmem.TileLayout.places", f"({DEMO})", "('TLane', 'TCol')")
add(
    "tmem.ComposeLayout",
    "3",
    "3",
    "3",
    lambda m: m.one_of("tmem.S[8, 64]", "tmem.S[512 : 1]"),
    named={"swizzle_inner": "False"},
)
method("tmem.ComposeLayout.apply", COMPOSE, lambda m: f"({m.integer(0, 7)}, {m.integer(0, 63)})", "(8, 64)")


@methods_of("tmem.ComposeLayout.apply")
def _compose_apply(m: Maker) -> Any:
    return COMPOSE, [f"({m.integer(0, 7)}, {m.integer(0, 63)})"], {"shape": "(8, 64)"}


method("tmem.ComposeLayout.positions", COMPOSE, "'m'")
method("tmem.ComposeLayout.span", COMPOSE, "'m'")
method("tmem.ComposeLayout.slice", COMPOSE, "(8, 64)", "((0, 8), (0, 64))")
method("tmem.ComposeLayout.swizzle", COMPOSE, lambda m: m.one_of("72", "numpy.arange(8)"))
method("tmem.ComposeLayout.tiled_by", COMPOSE, "tmem.S[(2, 2) : (2, 1)]", "(2, 2)", "(8, 64)")

# ---- buffers and copies

add("tmem.TmemAllocation", lambda m: m.one_of("32", "64"), named={"name": "'taddr'"})
add(
    "tmem.Buffer",
    "'A'",
    "(32, 16)",
    lambda m: m.one_of("'uint8'", "'float16'"),
    "'shared'",
    lambda m: m.one_of("tmem.S[(32, 16) : (16, 1)]", "None"),
    named={"align": "128"},
)
add("tmem.Buffer", "'T'", "(32, 16)", "'uint8'", "'tmem'", f"({DEMO})", "tmem.TmemAllocation(32)")
operation(
    "tmem.Buffer.__getitem__",
    "getitem",
    SHARED,
    lambda m: m.one_of("(slice(0, 32), slice(0, 16))", "(slice(0, 16), slice(None))", "slice(0, 8)"),
)
add("tmem.BufferRegion", SHARED, "((0, 32), (0, 16))")
add(
    "tmem.CopyRequest",
    f"{TMEM}[0:32, 0:16]",
    f"{SHARED}[0:32, 0:16]",
    named={
        "scope": "'warp'",
        "cta_group": "2",
        "shape": "'32x128b'",
        "multicast": "'warpx4'",
        "compat": "'reference'",
        "ldo": "16",
    },
)
add(
    "tmem.copy_async",
    f"{TMEM}[0:32, 0:16]",
    f"{SHARED}[0:32, 0:16]",
    named={"cta_group": "1", "shape": "'32x128b'", "compat": "'tvm-0.27'", "ldo": "16", "scope": "'thread'"},
    weight=2,
)
add("tmem.why_not", "copy_request()")
add("tmem.check_copy", "copy_request()")
add("tmem.Side", "tmem.S[(32, 16) : (16, 1)]", "(32, 16)", "((0, 32), (0, 16))")
SIDES = (
    "tmem.Side(tmem.S[(32, 16) : (16, 1)], (32, 16), ((0, 32), (0, 16)))",
    f"tmem.Side({DEMO}, (32, 16), ((0, 32), (0, 16)))",
)
add(
    "tmem.plan_form",
    lambda m: m.one_of("tmem.cp_form('32x128b')", form(m)),
    *SIDES,
    "8",
    named={"compat": lambda m: m.one_of("'reference'", "'tvm-0.27'"), "cta_group": "2", "ldo": "16"},
)
add("tmem.expected_tmem", *SIDES, "8", "0", weight=0.5)
add("tmem.run", "tmem_copy().plan", "loaded_tmem()", "0", "gmem_bytes(2048)", "0", named={"smem_base": "0"})
add(
    "tmem.run_pair",
    "tmem.demonstration_copy(32, 2)",
    "(loaded_tmem(2), loaded_tmem(2))",
    "0",
    "(gmem_bytes(2048), gmem_bytes(2048))",
    "0",
    weight=0.5,
)
add("tmem.read_back", "loaded_tmem()", "0", "32", weight=0.5)
for name in ("device_functions", "emit_cuda", "emit_tirx", "ptx_line", "dynamic_shared_bytes"):
    add(f"tmem.{name}", "tmem_copy()", weight=0.6)
add("tmem.emit_cuda", "tmem_copy()", named={"taddr": "'taddr'", "indent": "'  '"}, weight=0.6)
add("tmem.emit_kernel", "tmem_copy()", named={"name": "'kernel'"}, weight=0.6)
add(
    "tmem.get_copy_s2t_smem_desc", lambda m: m.one_of("tmem_copy()", "tmem_copy().plan"), named={"smem_address": "1024"}
)
operation("tmem.S2TDescriptorView.__getitem__", "getitem", VIEW, "0")
add("tmem.S2TDescriptorView", "tmem_copy().plan", named={"smem_address": "1024"})
add("tmem.CopyAsync", "copy_request()", "tmem_copy().plan")
add(
    "tmem.CpPlan",
    *(
        f"tmem_copy().plan.{f}"
        for f in ("form", "bits", "ldo", "sdo", "swizzle", "row_bytes", "middle", "smem_offset", "taddr_offset")
    ),
    named={"cta_group": "2", "notes": "()"},
)
for name in ("capacity_violations", "check_capacity"):
    method(f"tmem.CpPlan.{name}", "tmem_copy().plan", lambda m: m.one_of("512", "1"))
method("tmem.CpPlan.descriptor", "tmem_copy().plan", lambda m: m.one_of("0", "1024"))
add("tmem.MiddleLoop", "2", "1024", "4")
add("tmem.Tile", "65536", "16")
add("tmem.Refusal", "'a rule'", "'a text'")
add("tmem.CpForm", "'32x128b'", "'warpx4'", "32", "128", "tmem.FORMS[5].lanes", "tmem.FORMS[5].copies")
add("tmem.cp_form", lambda m: m.one_of("'32x128b'", "'128x256b'", "'4x256b'"))
add("tmem.cp_form", "'64x128b'", lambda m: m.one_of("'warpx2::02_13'", "'warpx2::01_23'"))
for name in ("alloc_columns", "check_columns", "why_not_columns"):
    add(f"tmem.{name}", lambda m: m.one_of("32", "64", "512", "33", "4"))
add("tmem.demonstrate", "None", named={"n_cols": "64", "through": lambda m: m.one_of("'plain'", "'cute'")}, weight=0.3)
add("tmem.demonstrate", "gmem_bytes(512).reshape(32, 16)", weight=0.3)
add("tmem.demonstration_copy", lambda m: m.one_of("32", "64"), lambda m: m.one_of("1", "2"), weight=0.5)
add("tmem.Demonstration", "tmem_copy()", "loaded_tmem()", "numpy.zeros((128, 32), numpy.uint32)", weight=0.3)
add("tmem.Dispatch", "'copy_async'", "'cuda'", "'smem->tmem'", "10", "()", weight=0.3)
add(
    "tmem.InstructionForm",
    *(f"tmem.FORMS_TABLE[3].{f}" for f in ("name", "family", "opcode", "slots", "operands", "section", "targets")),
    weight=0.3,
)
method("tmem.InstructionForm.slot", "tmem.FORMS_TABLE[3]", "'shape'", weight=0.3)
method("tmem.InstructionForm.expected", "tmem.FORMS_TABLE[6]", "{'shape': '16x32bx2', 'num': 'x1'}", weight=0.3)

# ---- descriptors and operands

add(
    "SmemDescriptor",
    "0",
    "16",
    "8",
    named={
        "swizzle": "tmem.SmemSwizzle.B128",
        "kind": "tmem.DescriptorKind.WGMMA",
        "base_offset": "1",
        "version": "1",
        "leading_is_address": "True",
        "residue": "0",
    },
    weight=2,
)
method(
    "SmemDescriptor.decode",
    "SmemDescriptor",
    lambda m: m.one_of("0x400800100000", "0", str(m.random.getrandbits(64))),
    named={"kind": "tmem.DescriptorKind.WGMMA"},
)
for name in ("restrictions", "check"):
    method(f"SmemDescriptor.{name}", INSTANCES["SmemDescriptor"], "'sm_100a'")
method(
    "SmemDescriptor.diff",
    INSTANCES["SmemDescriptor"],
    lambda m: m.one_of("SmemDescriptor(start=0, leading=1, stride=8)", "0x400000100000"),
    named={"major": "'MN'"},
)
add("tmem.encode_matrix_descriptor", "1024", "16", "8", lambda m: str(m.integer(0, 3)))
add("tmem.replace_start_address", "0x400800100000", "2048")
add("tmem.smem_desc_add_16B_offset", "0x400800100000", "32")
add("tmem.source_addresses", form, "SmemDescriptor(start=0, leading=16, stride=8)", weight=0.6)
add(
    "find_smem_operand",
    lambda m: m.one_of(
        "ComposedLayout(Swizzle(3, 3, 3), 0, Layout((128, 64), (64, 1)))",
        "tma.make_smem_layout('K', '128B', 'bfloat16', (128, 64))",
        "tma.make_smem_layout('MN', '64B', 'bfloat16', (64, 64))",
        "Layout(((8, 16), (8, 8)), ((8, 64), (1, 1024)))",
    ),
    "'bfloat16'",
    named={"kind": "tmem.DescriptorKind.WGMMA", "major": "tmem.Major.K", "swizzle": "tmem.SmemSwizzle.B128"},
)
add("SmemOperand", "tmem.Major.K", "tmem.SmemSwizzle.B128", "tmem.DescriptorKind.TCGEN05", "1", "64", "(0, 2)")
method("SmemOperand.descriptor", INSTANCES["SmemOperand"], named={"address": "1024", "block": "1"})
add(
    "tmem.from_cute",
    lambda m: m.one_of(
        "Layout(((4, 8), 16), ((1, 64), 4))",
        m.layout(2, "compact", "dynamic"),
        "ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))",
    ),
)
add(
    "tmem.from_cute_tmem",
    "Layout((Int(128), Int(32)), (Int(65536), Int(1)))",
    lambda m: m.one_of("'float32'", "'float16'"),
)
add("tmem.to_cute", "tmem.S[(8, 4, 16) : (64, 1, 4)]", "(32, 16)")
add("tmem.to_cute", "tmem.S[(128, 32) : (1 @ tmem.TLane, 1 @ tmem.TCol)]", named={"dtype": "'float32'"})
add("tmem.mma_atom_layout", Maker.dtype, lambda m: str(m.integer(0, 3)))
add(
    "tmem.mma_shared_layout",
    lambda m: m.one_of("'bfloat16'", "'float32'"),
    lambda m: str(m.integer(0, 3)),
    lambda m: m.one_of("(32, 256)", "(128, 64)"),
)
add("tmem.tmem_datapath_layout", "'F'", "64", "32", named={"sub_slab": "1"})
add("tmem.tmem_datapath_layout", lambda m: repr(m.choice("AD")), "128", "32")
for kind in ("SmemSwizzle", "DescriptorKind", "Major"):
    add(
        f"tmem.{kind}",
        {"SmemSwizzle": "3", "DescriptorKind": "'wgmma'", "Major": "'K'"}[kind],
        weight=0.1,
        mutable=False,
    )
method(
    "tmem.SmemSwizzle.of",
    lambda m: f"tmem.SmemSwizzle.{m.choice(('B32', 'B128', 'NONE'))}",
    lambda m: m.one_of("72", "1024", "numpy.arange(8)"),
)

# ---- instructions

INSTRUCTIONS = (
    "'tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd2;'",
    "'tcgen05.cp.cta_group::1.32x128b [%r1], %rd2;'",
    "'tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;'",
    "'tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;'",
    "'tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];'",
)
add("tmem.examine", lambda m: m.choice(INSTRUCTIONS))
add(
    "tmem.why_not_instruction",
    lambda m: m.choice(INSTRUCTIONS),
    lambda m: m.one_of("'sm_100a'", "'sm_90a'"),
    named={"version": "(8, 6)"},
)


@calls_of("tmem.mnemonic")
def _mnemonic(m: Maker) -> Any:
    return ("'tcgen05.cp'",), {"cta_group": "'cta_group::1'", "shape": "'32x128b'", "multicast": "'warpx4'"}


# ---- the emulator

add("tmem.TensorMemory", weight=0.2, named={"cells": "numpy.zeros((128, 512), numpy.uint32)"})
method("tmem.TensorMemory.alloc", "loaded_tmem()", lambda m: m.one_of("32", "64"), named={"cta_group": "1"})
expression("tmem.TensorMemory.finish", "tmem.TensorMemory().finish()", weight=0.2)
method("tmem.TensorMemory.dealloc", "loaded_tmem()", "0", "64")
method("tmem.TensorMemory.commit", "loaded_tmem()", named={"barrier": "tma.Mbarrier(1)", "cta_group": "1"})
method(
    "tmem.TensorMemory.cp",
    "loaded_tmem()",
    "0",
    "tmem.encode_matrix_descriptor(0, 16, 8, 0)",
    "gmem_bytes(65536)",
    lambda m: m.one_of("'32x128b'", "'128x256b'", "'4x256b'"),
    named={"cta_group": "1", "smem_base": "0"},
)
method(
    "tmem.TensorMemory.cp",
    "loaded_tmem()",
    "0",
    "tmem.encode_matrix_descriptor(0, 16, 8, 0)",
    "gmem_bytes(65536)",
    "'64x128b'",
    "'warpx2::02_13'",
)
method(
    "tmem.TensorMemory.ld",
    "loaded_tmem()",
    "0",
    lambda m: m.one_of("'32x32b'", "'16x256b'", "'16x64b'"),
    lambda m: m.one_of("1", "2", "4"),
    named={"warp": "0", "pack": "True"},
)
method(
    "tmem.TensorMemory.st",
    "loaded_tmem()",
    "0",
    "numpy.ones((32, 2), numpy.uint32)",
    "'32x32b'",
    "2",
    named={"warp": "0"},
)
method("tmem.TensorMemory.expect_allocated", "loaded_tmem()", "0", lambda m: m.one_of("1", "64"))
method(
    "tmem.TensorMemory.places",
    "loaded_tmem()",
    "0",
    lambda m: m.one_of("'32x32b'", "'16x256b'", "'16x64b'"),
    lambda m: m.one_of("1", "2", "4"),
    named={"warp": "0", "halves": "True"},
)
method("tmem.TensorMemory.use_group", "loaded_tmem()", "1")
add("tmem.decompress", "numpy.zeros(16, numpy.uint8)", lambda m: m.one_of("'b4x16_p64'", "'b6x16_p32'"))
add("tmem.image", lambda m: m.one_of("'32x32b'", "'16x256b'", "'16x64b'"), lambda m: m.one_of("1", "2", "4"))
add("tmem.picture", "loaded_tmem().sources", named={"columns": "range(4)", "base": "0", "lanes_shown": "2"}, weight=0.5)
