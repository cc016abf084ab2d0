"""Calls of G-bases, atoms, partitions and the dialect's operations."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

OPS = ("SM90_TMA_LOAD", "SM90_TMA_STORE", "SM90_TMA_REDUCE_ADD", "SM90_TMA_PREFETCH")
SWIZZLES = {"none": 8, "32B": 16, "64B": 32, "128B": 64}


def gtensor(m: Maker) -> str:
    if m.chance(0.5):
        return f"gtensor({m.choice((128, 256, 1024))}, {m.choice((128, 256))})"
    return m.one_of(
        "make_tensor(make_gmem_ptr(4096, 'float16'), Layout((128, 128, 4), (Int(1), 128, 16384)))",
        "make_tensor(make_gmem_ptr(0, 'float16'), Layout((256, (128, 2)), (256, (Int(1), 65536))))",
        "array((256, 128), 'float16')",
    )


def smem(m: Maker) -> str:
    swizzle = m.choice(list(SWIZZLES))
    rows = m.choice((8, 64, 128))
    return m.one_of(
        f"tma.make_smem_layout('K', '{swizzle}', 'float16', ({rows}, {m.choice((1, 2)) * SWIZZLES[swizzle]}))",
        f"Layout((Int({rows}), Int(64)), LayoutRight)",
        "Layout((Int(64), Int(8)), LayoutRight)",
    )


def atom(m: Maker) -> str:
    op = m.choice(OPS)
    swizzle = m.choice(list(SWIZZLES))
    return m.one_of(
        f"load_atom('{op}', {m.choice((8, 64, 128))}, {SWIZZLES[swizzle]}, '{swizzle}')",
        f"load_atom('SM90_TMA_LOAD_MULTICAST', 64, 64, '128B', {m.choice((2, 4))})",
        "load_atom()",
    )


for kind in ("TmaAtom", "Im2colAtom"):
    INSTANCES[f"tma.{kind}"] = atom if kind == "TmaAtom" else "im2col_atom()"
INSTANCES.update(
    {
        "tma.BulkTensorCopy": "tma.tma_load(exec_load(), stile(None), (0, 0)).operations[1]",
        "tma.ExecTmaAtom": lambda m: m.one_of("exec_load()", "exec_store()"),
        "tma.ExecutableCopy": "load_atom().with_(0)",
        "tma.ExpectTx": "tma.ExpectTx(128)",
        "tma.Fix": "tma.Fix('use a smaller tile', {'cta_tiler': (64, 64)})",
        "tma.GBasis": lambda m: f"{atom(m)}.gbasis",
        "tma.GBasisTrace": lambda m: f"{atom(m)}.gbasis.trace",
        "tma.Im2colPlan": "im2col_atom().plan",
        "tma.Im2colWindow": "im2col_atom().plan.window",
        "tma.Instructions": "tma.instructions(load_atom())",
        "tma.L2Policy": "tma.CacheMode.CS.policy",
        "tma.NonExecTmaAtom": lambda m: m.one_of("non_exec()", "non_exec(store_mode=0)", "non_exec(reduce_kind='MAX')"),
        "tma.OpRow": lambda m: f"tma.OPS[tma.Op.{m.choice(OPS)}]",
        "tma.PartitionWalk": "tma.verify_partition(ROW_MAJOR_TILE, gtensor(1024, 512), (128, 64))",
        "tma.PrefetchDescriptor": "tma.PrefetchDescriptor(request())",
        "tma.SmemChoice": "tma.smem_choices('K', 'float16', (128, 32))[0]",
        "tma.SwizzleRow": "tma.swizzle_row(Swizzle(3, 4, 3))",
        "tma.TmaDescriptorIm2col": "im2col_descriptor()",
        "tma.TmaDescriptorTiled": "tma.tma_descriptor_tiled(gtensor(1024, 512), ROW_MAJOR_TILE)",
        "tma.TmaOperation": "tma.tma_load(exec_load(), stile(None), (0, 0))",
        "tma.TmaPartitionResult": "tma.partition(ROW_MAJOR_TILE, gtensor(1024, 512), (128, 64))[0]",
        "tma.TmaPlan": lambda m: f"{atom(m)}.plan",
        "tma.TmaTensorType": "non_exec().tensor_type",
        "tma.TmaUpdate": "tma.TmaUpdate('UPDATE_DIM', 0, 77)",
        "tma.BrokenCondition": "tma.BrokenCondition('a condition')",
    }
)

# ---- G-basis

GMEM_LAYOUT = "Layout((1024, 512), (512, Int(1)))"
V_MAP = "tma.make_cta_v_map((1024, 512), (Int(128), Int(64)))"
add(
    "tma.make_cta_v_map",
    lambda m: m.one_of("(1024, 256, 8)", "(1024, 512)"),
    lambda m: m.one_of("(Int(128), Int(64))", "(Layout(Int(128)), Int(64))", "Int(64)"),
)
add(
    "tma.construct_tma_gbasis",
    GMEM_LAYOUT,
    lambda m: m.one_of("ROW_MAJOR_TILE", "Layout((Int(128), Int(64)))"),
    V_MAP,
    named={"internal_dtype": "'uint16'", "dtype": "'float16'", "split_oversize": "True"},
)
add("tma.coalesce_256", Maker.layout)
add("tma.split_basis", "load_atom().gbasis.layout", GMEM_LAYOUT)
add(
    "tma.plan_tiled",
    GMEM_LAYOUT,
    "load_atom().gbasis.layout",
    "load_atom().dtype",
    "load_atom().dtype",
    named={"num_multicast": "1", "nval": "1"},
)
add("tma.tma_tensor", "(1024, 512)", "(E(1), E(0))", "2")
add("tma.GBasis", "load_atom().gbasis.layout", "load_atom().gbasis.trace")
add(
    "tma.GBasisTrace",
    *(
        f"load_atom().gbasis.trace.{f}"
        for f in (
            "cta_v_map",
            "inv_smem_layout",
            "sidx2gmode_full",
            "smem_rank",
            "sidx2gmode",
            "tile_gstride",
            "tma_gstride",
            "tile_gbasis",
            "tma_gbasis_tile",
            "tma_gbasis",
        )
    ),
)
add(
    "tma.TmaPlan",
    *(
        f"load_atom().plan.{f}"
        for f in (
            "gbasis",
            "internal_dtype",
            "dims",
            "strides",
            "box",
            "element_strides",
            "g_stride",
            "num_bits_per_tma",
            "num_multicast",
        )
    ),
)
add("tma.BrokenCondition", "'a condition'", named={"mode": "1"})

# ---- atoms

OPTIONS = {
    "num_multicast": "1",
    "internal_dtype": lambda m: m.one_of("'uint16'", "'float16'", "'uint32'"),
    "arch": lambda m: m.one_of("'sm_90a'", "'sm_100a'"),
    "split_oversize": "True",
    "suggest": "False",
    "check": "False",
    "l2_promotion": lambda m: str(m.integer(0, 3)),
    "oob_fill": lambda m: str(m.integer(0, 1)),
}
for name in ("make_tma_atom", "make_tma_copy"):

    @calls_of(f"tma.{name}", weight=2)
    def _made(m: Maker) -> Any:
        kwargs = {key: (v if isinstance(v, str) else v(m)) for key, v in OPTIONS.items() if m.chance(0.12)}
        op = m.one_of(*(f"'{o}'" for o in OPS), "tma.Op.SM90_TMA_LOAD")
        return (op, gtensor(m), smem(m)), kwargs

    add(
        f"tma.{name}",
        "'SM90_TMA_LOAD_MULTICAST'",
        "gtensor()",
        "Layout((Int(64), Int(64)), LayoutRight)",
        "(Int(64), Int(64))",
        lambda m: m.one_of("2", "4", "Int(2)"),
    )

    @calls_of(f"tma.{name}")
    def _newer(m: Maker) -> Any:
        op, rows = m.choice((("SM100_TMA_LOAD_2D_GATHER4", 4), ("SM100_TMA_2SM_LOAD", 64)))
        return (f"'{op}'", "gtensor()", f"Layout((Int({rows}), Int(64)), LayoutRight)"), {"arch": "'sm_100a'"}


IMAGES = "make_tensor(make_gmem_ptr(4096, 'float16'), Layout(((16, 16, 2), 64), ((64, 1024, 16384), Int(1))))"
add(
    "tma.make_im2col_tma_copy",
    "'SM90_TMA_LOAD_IM2COL'",
    IMAGES,
    "tma.make_smem_layout('K', '128B', 'float16', (128, 64))",
    "(Int(128), Int(64))",
    "1",
    "(-1, -1)",
    "(-1, -1)",
    "(1, 1)",
    "(1, 1)",
    named={
        "stride_whd": lambda m: m.one_of("(1, 1)", "(2, 2)"),
        "check": "False",
        "oob_fill": "1",
        "lower_srt": "(0, 0)",
        "stride_srt": "(1, 1)",
    },
    weight=2,
)
add("tma.Coverage", "4", "0", "0", "None", "(0, 1)", "(2,)")
add("tma.coverage", atom, lambda m: m.one_of("None", "[0, 1, 1]", "[(0, 1), 7]"))
add("tma.check_smem_address", atom, lambda m: m.one_of("0", "1024", "100"))
for name in ("explain_atom", "instructions"):
    add(f"tma.{name}", atom)
add("tma.instructions", "im2col_atom()")
add(
    "tma.find_fixes",
    "tma.make_tma_atom",
    "atom_arguments()",
    named={"most": "1"},
    weight=0.3,
)
for kind, instance in (("TmaAtom", atom), ("Im2colAtom", lambda m: "im2col_atom()")):
    method(
        f"tma.{kind}.get_tma_tensor",
        instance,
        lambda m, kind=kind: m.one_of("None", "(256, 128)", "(256, (64, 2))") if kind == "TmaAtom" else "None",
    )
    method(f"tma.{kind}.with_", instance, lambda m: m.one_of("0", "tma.Mbarrier(1)"), named={"cache_hint": "5"})
method("tma.TmaAtom.with_", "load_atom('SM90_TMA_LOAD_MULTICAST', 64, 64, '128B', 2)", "0", "3")
add("tma.ExecutableCopy", "load_atom()", "0", named={"multicast_mask": "0", "cache_hint": "None"})
add("tma.Fix", "'use a smaller tile'", "{'cta_tiler': (64, 64)}")
add(
    "tma.Instructions",
    *(
        f"tma.instructions(load_atom()).{f}"
        for f in (
            "coords",
            "smem_offsets",
            "tiles",
            "per_tile",
            "tile_shape",
            "smem_bytes",
            "gmem_partition",
            "smem_partition",
        )
    ),
)
add(
    "tma.Im2colPlan",
    *(
        f"im2col_atom().plan.{f}"
        for f in (
            "dims",
            "strides",
            "element_strides",
            "range_c",
            "range_whdn",
            "num_val_src",
            "num_multicast",
            "tma_layout",
            "tma_tensor",
            "window",
        )
    ),
)
add("tma.Im2colWindow", "(-1, -1)", "(-1, -1)", "(1, 1)", "(1, 1)", "(1, 1)", "(0, 0)", "(1, 1)")
for kind, fields in {
    "TmaAtom": (
        "op",
        "gtensor",
        "smem_layout",
        "cta_tiler",
        "gbasis",
        "plan",
        "request",
        "swizzle",
        "dtype",
        "internal_dtype",
    ),
    "Im2colAtom": ("op", "gtensor", "smem_layout", "cta_tiler", "plan", "request", "swizzle", "dtype"),
}.items():
    made = "load_atom()" if kind == "TmaAtom" else "im2col_atom()"
    add(f"tma.{kind}", *(f"{made}.{f}" for f in fields), weight=0.6)

# ---- shared memory, multicast, partition

add(
    "tma.make_smem_layout",
    lambda m: m.one_of("'K'", "'MN'"),
    lambda m: repr(m.choice(list(SWIZZLES))),
    Maker.dtype,
    lambda m: m.one_of("(128, 64)", "(64, 128)", "(Int(128), Int(64), Int(2))"),
    named={"order": "LayoutRight"},
)
add(
    "tma.smem_atom",
    lambda m: m.one_of("'K'", "'MN'"),
    lambda m: m.one_of(*(repr(s) for s in SWIZZLES), "3", "Swizzle(3, 4, 3)"),
    Maker.dtype,
)
add(
    "tma.smem_choices",
    lambda m: m.one_of("'K'", "'MN'"),
    Maker.dtype,
    lambda m: m.one_of("(128, 32)", "(64, 64)", "(8, 8)"),
)
add(
    "tma.swizzle_row",
    lambda m: m.one_of("Swizzle(3, 4, 3)", "Swizzle(2, 4, 3)", "Swizzle(0, 4, 3)", "Swizzle(2, 5, 2)"),
)
add("tma.why_not_swizzle", Maker.swizzle)
add("tma.why_not_reduction", lambda m: f"tma.TmaReduceKind.{m.choice(('ADD', 'INC', 'XOR', 'MIN'))}", Maker.dtype)
VMNK = "Layout((Int(2), Int(2), Int(4), Int(1)), (Int(1), Int(2), Int(4), Int(0)))"
add(
    "tma.create_tma_multicast_mask",
    VMNK,
    lambda m: f"({m.integer(0, 1)}, {m.integer(0, 1)}, {m.integer(0, 3)}, 0)",
    lambda m: str(m.integer(0, 3)),
)
add("tma.create_tma_multicast_mask", VMNK, "(0, 0, 1, 0)", "1", "2")
add(
    "tma.make_tma_copy_tiled",
    "ROW_MAJOR_TILE",
    "tma.make_cta_v_map((1024, 512), (Int(128), Int(64)))",
    "4096",
    named={"num_multicast": "1", "ctas": "1"},
)
add(
    "tma.tma_partition",
    "load_atom()",
    "Int(0)",
    "Layout(Int(1))",
    "group_modes(stile(load_atom()), 0, 2)",
    "zipped_divide(load_atom().get_tma_tensor(), (Int(64), Int(32)))",
)
for name in ("as_cache_mode", "as_load_mode", "as_reduce_kind", "as_store_mode", "as_op"):
    values = {
        "as_cache_mode": ("'cg'", "'#cute_nvgpu.load_cache_mode<cg>'", "tma.CacheMode.CS"),
        "as_load_mode": ("'tiled'", "0", "'#cute_nvgpu.tma_load_mode<tiled>'", "'TWO_CTA'"),
        "as_reduce_kind": ("'xor'", "'ADD'", "3", "tma.TmaReduceKind.MIN"),
        "as_store_mode": ("1", "'TILED'", "tma.TmaStoreMode.IM2COL"),
        "as_op": ("'SM90_TMA_STORE'", "tma.Op.SM90_TMA_LOAD"),
    }[name]
    add(f"tma.{name}", lambda m, values=values: m.choice(values))
for kind in (
    "CacheMode",
    "Op",
    "TmaLoadMode",
    "TmaReduceKind",
    "TmaStoreMode",
    "TmaUpdateKind",
    "TmaFlags",
    "Interleave",
    "L2Promotion",
    "OobFill",
    "TensorMapDataType",
    "TensorMapSwizzle",
    "Im2ColWideMode",
):
    add(
        f"tma.{kind}",
        {"CacheMode": "'cg'", "Op": "'SM90_TMA_LOAD'", "TmaUpdateKind": "'global_dim'"}.get(kind, "1"),
        weight=0.1,
        mutable=False,
    )

# ---- the dialect

PARTITION = {
    "load_mode": lambda m: m.one_of("'NO_MULTICAST'", "0", "None"),
    "metadata": "None",
    "arch": lambda m: m.one_of("'sm_90a'", "'sm_100a'"),
    "dialect": lambda m: m.one_of("'seed'", "'cute'"),
}
for name in ("partition", "verify_partition"):

    @calls_of(f"tma.{name}", weight=1.5)
    def _partition(m: Maker) -> Any:
        kwargs = {key: (v if isinstance(v, str) else v(m)) for key, v in PARTITION.items() if m.chance(0.2)}
        more = m.choice(
            (
                {},
                {},
                {"load_mode": "'W_MULTICAST'", "num_multicast": m.one_of("2", "4")},
                {"store_mode": "0"},
                {"reduce_kind": "'MAX'"},
            )
        )
        tile = m.one_of(
            "ROW_MAJOR_TILE",
            "ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), ROW_MAJOR_TILE)",
            "Layout((Int(128), Int(64)), (Int(128), Int(2)))",
        )
        return (tile, "gtensor(1024, 512)", "(128, 64)"), {**kwargs, **more}


add(
    "tma.partition",
    "ROW_MAJOR_TILE",
    "gtensor(1024, 512)",
    "None",
    "tma.make_cta_v_map((1024, 512), (Int(128), Int(64)))",
)
add(
    "tma.type_text",
    lambda m: m.choice(
        (m.layout, m.composed, m.shape, m.identity, lambda: "gtensor()", lambda: "make_identity_tensor((4, 5))")
    )(),
    named={"known": "False"},
)
for name in ("tma_descriptor_tiled", "build_tma_descriptor"):
    add(
        f"tma.{name}",
        "gtensor(1024, 512)",
        lambda m: m.one_of("ROW_MAJOR_TILE", "Layout((Int(64), Int(128)), (E(1), E(0)))"),
        named={"mode": "'NO_MULTICAST'", "elementBitWidth": "16", "swizzle": "Swizzle(3, 4, 3)", "alignment": "128"},
    )
    add(f"tma.{name}", "gtensor(1024, 512)", "ROW_MAJOR_TILE", "(512, 1024)", "(1024,)", "(0, 0)")
for name in ("tma_descriptor_im2col", "build_tma_descriptor_im2col"):
    add(
        f"tma.{name}",
        "make_tensor(make_gmem_ptr(4096, 'float16'), Layout((64, 16, 16, 2), (Int(1), 64, 1024, 16384)))",
        "(-1, -1)",
        "(-1, -1)",
        "64",
        "128",
        named={"element_strides": "(1, 1, 1, 1)", "swizzle": "Swizzle(3, 4, 3)"},
    )
TILED_DESCRIPTOR = "tma.tma_descriptor_tiled(gtensor(1024, 512), ROW_MAJOR_TILE)"
for name in ("non_exec_tiled_tma_load", "non_exec_tiled_tma_reduce", "non_exec_tiled_tma_store"):
    more = {
        "load": {"num_multicast": "1", "load_mode": "'NO_MULTICAST'"},
        "reduce": {"kind": "'MAX'"},
        "store": {"store_mode": "0"},
    }[name.rsplit("_", 1)[1]]
    add(
        f"tma.{name}",
        TILED_DESCRIPTOR if "load" in name else TILED_DESCRIPTOR.replace("_TILE)", "_TILE, store_mode=0)"),
        lambda m: m.one_of("ROW_MAJOR_TILE", "stile(None)"),
        named={**more, "arch": "'sm_90a'"},
    )
add("tma.make_exec_tma", "non_exec()", "tma.Mbarrier(1)", named={"cache_mode": "'cg'", "multicast": "None"})
add("tma.prefetch_tma_desc", lambda m: m.one_of(TILED_DESCRIPTOR, "non_exec().descriptor"))
add(
    "tma.apply_update",
    TILED_DESCRIPTOR,
    lambda m: m.one_of("tma.TmaUpdate('UPDATE_BASE_POINTER', 0, 8192)", "tma.TmaUpdate('UPDATE_DIM', 0, 77)"),
)
add(
    "tma.TmaUpdate",
    lambda m: m.one_of("'UPDATE_DIM'", "'UPDATE_BASE_POINTER'", "tma.TmaUpdateKind.UPDATE_STRIDE"),
    "0",
    "4096",
)
STILE = "stile(None)"
add(
    "tma.tma_load",
    "exec_load()",
    STILE,
    lambda m: m.one_of("(0, 0)", "(64, 128)"),
    named={"prefetch": "True", "allow_tma": "True", "inBounds": "True"},
)
add("tma.tma_store", "exec_store()", STILE, "(0, 0)", named={"prefetch": "True", "inBounds": "True"})
add("tma.tma_reduce", "exec_store(reduce_kind='MAX')", STILE, "(0, 0)", named={"prefetch": "True"})
add("tma.lower_tma_load", "exec_load()", STILE, "(0, 0)", named={"prefetch": "True", "cta": "0"})
add("tma.lower_tma_store", "exec_store()", STILE, "(0, 0)", named={"prefetch": "True"})
method("tma.NonExecTmaAtom.instruction", "non_exec()", "0", named={"cta": "0"})
method("tma.NonExecTmaAtom.place", "non_exec()", "(64, 128)", "0", named={"cta": "0"})
for name, made in (
    ("TmaOperation", "tma.tma_load(exec_load(), stile(None), (0, 0))"),
    ("BulkTensorCopy", "tma.tma_load(exec_load(), stile(None), (0, 0)).copies[0]"),
):
    memory = ("tma.Emulator()", "numpy.zeros(1 << 20, numpy.uint8)", "numpy.zeros(1 << 14, numpy.uint8)")
    method(f"tma.{name}.run", made, *memory, named={"gmem_base": "4096"})
method("tma.NonExecTmaAtom.tma_coord", "non_exec()", lambda m: m.one_of("(0, 0)", "(64, 128)"))
add(
    "tma.NonExecTmaAtom",
    *(
        f"non_exec().{f}"
        for f in (
            "kind",
            "load_mode",
            "store_mode",
            "reduce_kind",
            "dtype",
            "element_bits",
            "smem_layout",
            "gmem_layout",
            "cta_v_map",
            "gbasis",
            "box",
            "num_multicast",
            "cu_swizzle",
            "tensor_type",
        )
    ),
)
add("tma.ExecTmaAtom", "non_exec()", "tma.Mbarrier(1)", "tma.CacheMode.CG")
add("tma.BulkTensorCopy", "exec_load()", "(0, 0)", "0", "1024")
add("tma.ExpectTx", "128")
add("tma.PrefetchDescriptor", "request()")
add("tma.TmaOperation", "'tma_load'", "exec_load()", STILE, "(0, 0)", "()")
add("tma.TmaPartitionResult", "0x1000", "8192", "tma.TmaFlags.STATIC_SMEM", "2", "2", "0x2000")
method(
    "tma.TmaPartitionResult.unpack",
    "tma.TmaPartitionResult",
    "tma.TmaPartitionResult(0x1000, 8192, tma.TmaFlags.STATIC_SMEM, 2, 2, 0x2000).pack()",
)
add("tma.TmaTensorType", "'gmem'", "'float16'", GMEM_LAYOUT, "2")
add("tma.PartitionWalk", "None", "''", "tma.TmaFlags.STATIC_SMEM")
add("tma.L2Policy", "'evict_first'", "5")
add("tma.OpRow", "'load'", named={"mode": "'tile'", "multicast": "True", "arch": "90"})
add("tma.SmemChoice", "'128B'", "ROW_MAJOR_TILE", "1024", "8", "128", "1")
add("tma.SwizzleRow", "'128B'", "3", "4", "3", "3", "128", "1024")
for kind, fields in {
    "TmaDescriptorTiled": (
        "tensor",
        "layout",
        "request",
        "mode",
        "store_mode",
    ),
    "TmaDescriptorIm2col": (
        "tensor",
        "request",
    ),
}.items():
    add(f"tma.{kind}", *(f"{INSTANCES[f'tma.{kind}']}.{f}" for f in fields), weight=0.6)
