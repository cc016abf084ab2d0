"""Calls of MMA and copy atoms, tiled operations, fragments, layouts and descriptors of operands; of tuple functions."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, expression, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

WARP = ("SM80_16x8x16_F32F16F16F32_TN", "SM80_16x8x8_F16F16F16F16_TN", "SM75_8x8x16_S32S8S8S32_TN")
GROUP = ("SM90_64x64x16_F32F16F16_SS", "SM90_64x32x16_F32BF16BF16_SS<K,MN>", "SM90_64x16x16_F16F16F16_RS")
TENSOR_MEMORY = "SM100_MMA_F16BF16_SS<half_t,half_t,float,128,64,K,K>"
SPARSE = "SM90::GMMA::SPARSE::GMMA_64x8x32_F16F16F16_SS"
COPIES = (
    "UniversalCopy<uint32_t>",
    "UniversalCopy<uint128_t>",
    "SM75_U32x4_LDSM_N",
    "SM75_U16x2_LDSM_T",
    "SM90_U32x2_STSM_N",
)
MMA = "make_tiled_mma('SM80_16x8x16_F32F16F16F32_TN', (Int(2), Int(1), Int(1)))"
COPY = "make_tiled_copy(copy_atom('UniversalCopy<uint128_t>', 'half'), Layout((16, 8), (8, 1)), Layout((1, 8)))"
PART = "static(Layout(((2, 2), 2, 4)))"
SHARED = "make_tensor(make_smem_ptr(1024, 'half'), tile_to_shape(gmma_layout('K_SW128', 'half_t'), (Int(64), Int(64))))"
TILE = f"local_tile({SHARED}, (Int(64), Int(16)), (0, 1))"


def quoted(*names: str) -> Any:
    return lambda m: repr(m.choice(names))


def atom(m: Maker) -> str:
    return f"mma_atom({m.choice((*WARP, *GROUP, TENSOR_MEMORY, SPARSE))!r})"


def copy(m: Maker) -> str:
    return f"copy_atom({m.choice(COPIES)!r}, {m.one_of(repr('half'), repr('bfloat16'))})"


def mma(m: Maker) -> str:
    return f"make_tiled_mma({m.choice((*WARP, GROUP[0]))!r}, (Int({m.integer(1, 2)}), Int({m.integer(1, 2)}), Int(1)))"


def whole(m: Maker) -> str:
    extents = f"({m.one_of('Int(64)', '64', '60')}, {m.one_of('Int(64)', '64', '33')})"
    return m.one_of(f"Layout({extents})", f"make_identity_tensor({extents})", f"Layout({extents}, LayoutRight)")


INSTANCES.update(
    {
        "MmaAtom": atom,
        "CopyAtom": copy,
        "TiledMma": mma,
        "TiledCopy": COPY,
        "ThrMma": lambda m: f"{mma(m)}.get_slice({m.integer(0, 31)})",
        "ThrCopy": lambda m: f"{COPY}.get_slice({m.integer(0, 127)})",
    }
)

# ---- atoms

add(
    "mma_atom",
    quoted(*WARP, *GROUP, TENSOR_MEMORY, SPARSE),
    named={"arch": quoted("sm_90a", "sm100a", "sm90")},
    weight=2,
)
add("copy_atom", quoted(*COPIES), quoted("half", "bfloat16"), named={"arch": quoted("sm_90a", "sm90")}, weight=2)
add(
    "find_mma_atoms",
    named={
        "a": quoted("bfloat16", "half_t"),
        "b": quoted("bfloat16", "half_t"),
        "c": quoted("float", "half"),
        "arch": quoted("sm80", "sm_90a"),
        "m": "64",
        "n": lambda m: str(8 * m.integer(1, 8)),
        "k": "16",
        "sparse": lambda m: m.one_of("True", "False"),
    },
    weight=0.1,
)
add("find_mma_atoms", named={"family": quoted("sm80", "sm90_gmma")}, weight=0.1)
method("MmaAtom.layout_TV", atom, quoted("A", "B", "C"))
method("MmaAtom.fragment_type", atom, quoted("A", "B", "C"))
method("MmaAtom.holders", lambda m: f"mma_atom({m.one_of(*WARP)!r})", quoted("A", "B", "C"), "1", "2", weight=0.5)

# ---- tiled operations

add(
    "make_tiled_mma",
    quoted(*WARP, *GROUP),
    named={
        "atom_layout_mnk": lambda m: m.one_of("(Int(2), Int(1), Int(1))", "(2, 2)", "Layout((Int(1), Int(2), Int(1)))"),
        "permutation_mnk": lambda m: m.one_of("(None, Int(64), None)", "(64, 64)", "(Layout((Int(2), Int(64))),)"),
    },
    weight=2,
)
for name in ("TiledMma.get_slice", "TiledMma.get_thread_slice"):
    method(name, mma, lambda m: m.one_of(str(m.integer(0, 31)), "Int(3)"))
for name in ("permutation", "tile_size", "tile_size_mnk"):
    method(f"TiledMma.{name}", mma, lambda m: str(m.integer(0, 2)))
for operand in "ABC":
    for name in (f"TiledMma.thrfrg_{operand}", f"ThrMma.partition_{operand}"):
        method(name, INSTANCES[name.split(".")[0]], whole)
    for kind in ("TiledMma", "ThrMma"):
        method(
            f"{kind}.partition_shape_{operand}", INSTANCES[kind], lambda m: m.one_of("(Int(64), Int(64))", "(64, 33)")
        )
    add(
        f"make_fragment_{operand}",
        f"mma_atom({WARP[0]!r})",
        part := PART if operand != "A" else PART.replace("(2, 2)", "(2, 2, 2)"),
    )
    method(f"TiledMma.make_fragment_{operand}", MMA, part)
    memory = "make_tensor(make_gmem_ptr(4096, 'half'), Layout((Int(64), Int(64))))"
    method(f"ThrMma.partition_fragment_{operand}", f"{MMA}.get_slice(3)", memory)
method("TiledMma.partition_fragment_C", MMA, lambda m: m.one_of("(Int(64), Int(64))", "(64, 64)"))
for name in ("TiledMma.get_layout_TV",):
    method(name, mma, quoted("A", "B", "C"))
method("TiledMma.holders", MMA, quoted("A", "B", "C"), "1", "2", weight=0.5)
method("TiledMma.partition_shape", mma, quoted("A", "B", "C"), "(Int(64), Int(64))")
method("TiledMma.thrfrg", mma, quoted("A", "B", "C"), whole)
method("ThrMma.partition", f"{MMA}.get_slice(3)", quoted("A", "B", "C"), whole)
for name in ("latex", "svg"):
    method(f"TiledMma.{name}", MMA, named={"color": "lambda t, v: 'red'"}, weight=0.05)
method("TiledCopy.latex", COPY, named={"color": "lambda t, v: 'red'"}, weight=0.05)

add("make_tiled_copy", "copy_atom('UniversalCopy<uint32_t>', 'half')", "Layout((32, 4), (4, 1))", "Layout((1, 8))")
add("make_tiled_copy", "copy_atom('UniversalCopy<uint32_t>', 'float')", lambda m: f"({m.integer(1, 32)}, 4)")
for operand in ("A", "B", "C"):
    add(f"make_tiled_copy_{operand}", "copy_atom('UniversalCopy<uint32_t>', 'half')", mma)
    add(f"make_tiled_copy_{operand}", "copy_atom('SM75_U32x2_LDSM_N', 'half')", MMA)
add("make_tiled_copy_C_atom", "copy_atom('UniversalCopy<uint32_t>', 'half')", MMA)
for side in "SD":
    add(f"make_tiled_copy_{side}", "copy_atom('UniversalCopy<uint32_t>', 'half')", COPY)
    for name in ("TiledCopy.tidfrg_", "ThrCopy.partition_"):
        method(name + side, INSTANCES[name.split(".")[0]], whole)
    fragment = "make_fragment_like(" + f"{COPY}.get_slice(0).partition_S(Layout((Int(64), Int(64)))))"
    method(f"ThrCopy.retile_{side}", f"{COPY}.get_slice(0)", fragment)
method("TiledCopy.retile", COPY, fragment)
method("TiledCopy.tidfrg", COPY, quoted("S", "D"), whole)
method("TiledCopy.get_layout_TV", COPY, quoted("S", "D"))
method("ThrCopy.partition", f"{COPY}.get_slice(5)", quoted("S", "D"), whole)
for name in ("get_slice", "get_thread_slice"):
    method(f"TiledCopy.{name}", COPY, lambda m: str(m.integer(0, 127)))
add(
    "make_cotiled_copy",
    "copy_atom('UniversalCopy<uint32_t>', 'half')",
    "Layout((Int(32), Int(4)), (Int(4), Int(1)))",
    "Layout((Int(16), Int(8)))",
)
add(
    "make_tmem_copy",
    "copy_atom('SM100_TMEM_LOAD_32dp32b8x', 'float')",
    f"make_tiled_mma({TENSOR_MEMORY!r}).partition_fragment_C((Int(128), Int(64)))",
    weight=0.5,
)
add(
    "TiledCopy",
    "copy_atom('UniversalCopy<uint32_t>', 'half')",
    "static(Layout((4, (2, 2)), (2, (1, 8))))",
    lambda m: m.one_of("(8, 2)", "(Int(8), Int(2))"),
)

# ---- values

add(
    "gemm",
    MMA,
    "array((32, 16), 'float16')",
    "array((8, 16), 'float16')",
    named={"c": "array((32, 8), 'float32')"},
    weight=0.5,
)
add("gemm", MMA, "array((30, 20), 'float16')", "array((9, 20), 'float16')", weight=0.3)
add("copy_tiled", COPY, lambda m: f"array(({m.one_of('16, 64', '30, 70')}), 'float16')", weight=0.5)
add("copy_registers", "copy_atom('SM75_U32x1_LDSM_N', 'half')", "array((32, 8), 'float16')", weight=0.5)
add("compress", repr(SPARSE), "[[0, 7, 0, 5, 3, 0, 0, 0]]")
add("expand", repr(SPARSE), "[[7, 5]]", "[[1, 3]]")

# ---- fragments, operands in shared memory

add("make_fragment_like", lambda m: m.one_of(PART, "make_tensor(make_gmem_ptr(4096, 'float'), Layout((4, 8)))"))
add("make_fragment_like", PART, "'half'")
add("make_tensor_like", "make_tensor(make_gmem_ptr(4096, 'half'), static(Layout((8, 4), (16, 1))))")
add("make_tensor_like", PART, "'half'")
add("recast_ptr", "make_smem_ptr(1024, 'half')", quoted("uint128_t", "float", "int8"))
for name in ("gmma_layout", "umma_layout"):
    add(name, quoted("K_SW128", "MN_SW64", "K_INTER"), quoted("half_t", "float"), named={"sparsity": "2"})
add(
    "tile_to_mma_shape",
    "umma_layout('K_SW128', 'half_t')",
    lambda m: m.one_of("((Int(128), Int(16)), Int(1), Int(4))", "((Int(64), Int(32)), Int(2), Int(2), Int(3))"),
    lambda m: m.one_of("LayoutLeft", "(Int(1), Int(2), Int(3))"),
)
for name in ("ss_smem_selector", "rs_smem_selector", "sm100_smem_selector"):
    add(name, quoted("K", "MN"), quoted("half_t", "int8"), "128", lambda m: m.one_of("32", "64", "128"))
for name in ("make_gmma_desc", "make_umma_desc"):
    add(name, "'K'", TILE)
    add(name, "'K'", "make_tensor(make_smem_ptr(0, 'half'), static(Layout((64, (8, 2)), (8, (1, 512)))))")

# ---- functions of tuples, and analysis

for name in ("sum_", "tuple_max", "prefix_product", "suffix_product"):
    add(name, Maker.shape)
add("gcd", Maker.shape)
add("gcd", "12", "Int(18)")
for name in ("elem_geq", "elem_gtr", "elem_leq", "lex_less", "colex_less", "product_like"):

    @calls_of(name)
    def _compared(m: Maker) -> Any:
        tree = m.shape_tree()
        return m.tree(tree), m.tree(tree)


add("fold", Maker.shape, "0", "lambda a, b: a")
add("transform_leaf", "lambda x: x + 1", Maker.shape)
add("transform_leaf", "lambda x, y: x * y", "(1, (2, 3))", "(4, (5, 6))")
add("compact_order", "(Int(2), Int(3), Int(4))", "(Int(2), Int(0), Int(1))")
add("shape_mod", "(3, 6, 2, 8)", lambda m: m.one_of("9", "3", "1", "36"))
add("zip_", lambda m: m.one_of("((1, 2), (3, 4))", "Layout(((2, 4), (3, 5)))"))
add("zip_", "(1, 2)", "(3, 4)")
add("hier_unzip", "logical_divide", "Layout((Int(8), Int(6), Int(3)))", "(Int(2), Int(3))")
add("tile_unzip", "logical_divide(Layout((Int(8), Int(6))), (Int(2), Int(3)))", "(Int(2), Int(3))")
add("transform_layout", Maker.layout, "lambda mode: mode")
add("transform_layout", "Layout((2, 3))", "Layout((4, 5, 6))", "lambda a, b: make_layout(a, b)")
add("make_coord_iterator", Maker.shape)
add("make_coord_iterator", "(4, 6)", named={"start": "(1, 2)", "order": "(1, 0)"})
for name in ("contiguity", "is_contiguous"):
    add(name, Maker.any_layout)
add("is_surjective", Maker.layout, named={"codomain": "16"})
for name in ("cycles", "order"):
    add(name, lambda m: m.one_of("Layout((4, 4), (4, 1))", "Layout((2, (2, 3)), (6, (3, 1)))", "Layout(7)"))

for name in ("__int__", "__index__"):
    expression(f"SmemDescriptor.{name}", f"SmemDescriptor(start=0, leading=16, stride=8).{name}()")

# ---- the records themselves

FIELDS = ("name", "op", "arch", "family", "shape_mnk", "thr_id", "layouts", "types", "registers", "ptx", "source")
add("MmaAtom", *(f"mma_atom({WARP[0]!r}).{field}" for field in FIELDS), weight=0.3)
SIDES = ("traits", "dtype", "layout_src_TV", "layout_dst_TV", "layout_ref_TV")
add("CopyAtom", *(f"copy_atom('UniversalCopy<uint32_t>', 'half').{field}" for field in SIDES), weight=0.3)
MADE = ("atom", "atom_layout_mnk", "permutation_mnk", "thr_layout_vmnk")
add("TiledMma", *(f"{MMA}.{field}" for field in MADE), weight=0.3)
add("ThrMma", MMA, "(Int(3), Int(0), Int(0), Int(0))", weight=0.3)
add("ThrCopy", COPY, "5", weight=0.3)

# ---- from global memory to the instruction

WGMMA = "make_tiled_mma('SM90_64x64x16_F32F16F16_SS', (Int(2), Int(1), Int(1)))"
add("trace", "operand_load()", lambda m: f"({m.integer(0, 255)}, {m.integer(0, 127)})", WGMMA)
LDSM = f"make_tiled_copy_A(copy_atom('SM75_U32x4_LDSM_N', 'half'), {MMA})"
add("trace", "operand_load()", lambda m: f"({m.integer(0, 255)}, {m.integer(0, 127)})", MMA, named={"tiled_copy": LDSM})
INSTANCES["ElementTrace"] = f"trace(operand_load(), (133, 70), {MMA})"
STEPS = ("coord", "tile", "place", "step", "readers", "holders", "register", "bits", "descriptor", "instruction")
ENDS = ("element", "operand", "mma", "copy")
add("ElementTrace", *(f"trace(operand_load(), (133, 70), {MMA}).{field}" for field in (*STEPS, *ENDS)), weight=0.3)
