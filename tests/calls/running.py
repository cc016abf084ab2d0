"""Calls of the emulator, memories, barriers, programs and copies. What needs a GPU says so (`device=True`)."""

from __future__ import annotations

from typing import Any

from cute_py.machine.cuda_source import compiler_available
from tests.calls.call import add, calls_of, method, methods_of, operation
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

SMALL = "tma.encode(small_request(0))"
GMEM = "gmem_bytes(512)"
SMEM = "numpy.zeros(256, numpy.uint8)"

INSTANCES.update(
    {
        "tma.Agent": "tma.Agent(1, 2, 3)",
        "tma.Cluster": "cluster()",
        "tma.CopyReport": "tma.CopyReport(1.0, 64, 2.0, 3.0, 50.0, ())",
        "tma.CopyResult": "copied()",
        "tma.Emulator": lambda m: m.one_of("tma.Emulator()", "tma.Emulator('sm_100a')"),
        "tma.GlobalMemory": "global_memory()",
        "tma.Mbarrier": "tma.Mbarrier(2)",
        "tma.SharedMemory": "tma.SharedMemory(1024)",
        "tma.TensormapProxy": "proxy()",
        "tma.TileResult": "one_tile()",
        "tma.Trace": "tile_trace()",
    }
)

# ---- the emulator

add("tma.Emulator", Maker.arch, named={"strict": "True"})


def load_case(m: Maker) -> tuple[str, str, str, str]:
    """Descriptor, global memory, coordinates, shared memory of one legal load."""
    return m.choice(
        (
            (SMALL, GMEM, f"({m.choice((0, 16, 48, -16))}, {m.integer(-1, 7)})", SMEM),
            ("small_request(0)", GMEM, f"({m.choice((0, 32))}, {m.integer(0, 4)})", SMEM),
            ("small_request()", "global_memory()", "(0, 0)", "tma.SharedMemory(1024)"),
            (
                "tma.TensorMapTiled(6, 0, (64, 16), (128,), (64, 8), swizzle=3)",
                "gmem_bytes(2048)",
                f"(0, {m.integer(0, 15)})",
                "numpy.zeros(2048, numpy.uint8)",
            ),
            ("tma.TensorMapTiled(2, 0, (64,), (), (16,))", GMEM, f"({m.integer(0, 60)},)", SMEM),
        )
    )


@methods_of("tma.Emulator.load", weight=3)
def _load(m: Maker) -> Any:
    options = {
        "mode": m.one_of("'tile'", "None"),
        "smem_offset": m.one_of("0", "128"),
        "gmem_base": "0",
        "cta_group": "1",
        "im2col_offsets": "()",
    }
    kwargs = {k: v for k, v in options.items() if m.chance(0.15)}
    if m.chance(0.2):
        return (
            "tma.Emulator()",
            ["small_request()", "global_memory()", "(0, 0)", "cluster()[0]"],
            {**kwargs, "barrier": "1024", "multicast_mask": "3"},
        )
    if m.chance(0.2):
        return "tma.Emulator()", [*load_case(m)], {**kwargs, "barrier": "tma.Mbarrier(1)"}
    return "tma.Emulator()", list(load_case(m)), kwargs


@methods_of("tma.Emulator.load")
def _load_im2col(m: Maker) -> Any:
    return (
        "tma.Emulator()",
        ["im2col_request()", "gmem_bytes(8192)", "(0, -1, -1, 0)", "numpy.zeros(256, numpy.uint8)"],
        {"im2col_offsets": "(1, 0)", "gmem_base": "4096"},
    )


@methods_of("tma.Emulator.store", weight=2)
def _store(m: Maker) -> Any:
    descriptor, gmem, coords, smem = load_case(m)
    return "tma.Emulator()", [descriptor, gmem, coords, smem], {"smem_offset": "0"} if m.chance(0.2) else {}


@methods_of("tma.Emulator.reduce", weight=2)
def _reduce(m: Maker) -> Any:
    op = m.one_of("'add'", "'min'", "'max'", "tma.TmaReduceKind.ADD", "'xor'")
    return (
        "tma.Emulator()",
        [op, "tma.TensorMapTiled(2, 0, (64,), (), (16,))", GMEM, f"({4 * m.integer(0, 12)},)", SMEM],
        {},
    )


@methods_of("tma.Emulator.prefetch")
def _prefetch(m: Maker) -> Any:
    descriptor, gmem, coords, _ = load_case(m)
    return "tma.Emulator()", [descriptor, gmem, coords], {}


COORDS = "numpy.array([[0, 0], [32, 4]])"
OFFSETS = "numpy.array([0, 128])"
method(
    "tma.Emulator.load_many",
    "tma.Emulator()",
    SMALL,
    GMEM,
    COORDS,
    SMEM,
    named={"smem_offsets": OFFSETS, "mode": "'tile'", "gmem_base": "0"},
)


@methods_of("tma.Emulator.load_many")
def _load_many(m: Maker) -> Any:
    return (
        "tma.Emulator()",
        [SMALL, GMEM, COORDS, SMEM],
        {"smem_offsets": m.one_of(OFFSETS, "[0, 128]", "0"), "im2col_offsets": "()"},
    )


@methods_of("tma.Emulator.store_many")
def _store_many(m: Maker) -> Any:
    more = {"op": "'add'"} if m.chance(0.3) else {}
    return (
        "tma.Emulator()",
        [SMALL, GMEM, m.one_of(COORDS, "[(0, 0), (32, 4)]"), SMEM],
        {"smem_offsets": OFFSETS, **more},
    )


@methods_of("tma.Emulator.copy_many")
def _copy_many(m: Maker) -> Any:
    return (
        "tma.Emulator()",
        [SMALL, GMEM, COORDS, "tma.encode(small_request(8192))", "numpy.zeros(512, numpy.uint8)", COORDS, SMEM],
        {
            "smem_offsets": "[0]",
            "destination_base": "8192",
        },
    )


method("tma.Emulator.geometry", "tma.Emulator()", lambda m: m.one_of(SMALL, "im2col_request()"), named={"mode": "None"})

# ---- plain bulk copies

add(
    "tma.bulk_load",
    GMEM,
    lambda m: str(16 * m.integer(0, 8)),
    SMEM,
    lambda m: str(16 * m.integer(0, 8)),
    lambda m: m.one_of("16", "64"),
    named={"barrier": "tma.Mbarrier(1)", "gmem_base": "0"},
)
add("tma.bulk_store", SMEM, "32", GMEM, "64", lambda m: m.one_of("16", "64"), named={"gmem_base": "0"})
add("tma.bulk_store", SMEM, "0", GMEM, "0", "64", named={"op": "'add'", "data_type": "tma.TensorMapDataType.UINT32"})


@calls_of("tma.bulk_to_cta")
def _to_cta(m: Maker) -> Any:
    return ("cta(0)", "0", "cta(1)", "128", m.one_of("64", "16")), {"barrier": m.one_of("1024", "tma.Mbarrier(1)")}


# ---- memories and barriers

add("tma.GlobalMemory", weight=0.1)
method("tma.GlobalMemory.add", "global_memory()", "'C'", "gmem_bytes(64)", lambda m: m.one_of("65536", "0"))
method(
    "tma.GlobalMemory.allocate",
    "global_memory()",
    "'C'",
    lambda m: str(m.choice((0, 16, 4096))),
    named={"alignment": "1024"},
)
method("tma.GlobalMemory.find", "global_memory()", lambda m: m.one_of("4096", "0", "4600"))
method("tma.GlobalMemory.name_of", "global_memory()", lambda m: m.one_of("4100", "0"))
method("tma.GlobalMemory.index_of", "global_memory()", "numpy.array([4096, 5000])")
operation("tma.GlobalMemory.__getitem__", "getitem", "global_memory()", lambda m: m.one_of("'A'", "'B'"))
add(
    "tma.SharedMemory",
    lambda m: m.one_of("1024", "numpy.zeros(64, numpy.uint8)", "0"),
    named={"base": "1024", "poison": "0", "rank": "1"},
)
add("tma.Cluster", lambda m: str(m.choice((1, 2, 4, 16))), "2048", named={"base": "1024", "poison": "7"})
operation("tma.Cluster.__getitem__", "getitem", "cluster()", lambda m: m.one_of("0", "1"))
method("tma.Cluster.init_barriers", "cluster()", "512", "1")
method("tma.Cluster.mapa", "cluster()", lambda m: m.one_of("0", "1"))
add("tma.Mbarrier", lambda m: str(m.integer(1, 9)), named={"name": "'full'"})
add("tma.init_barrier", "tma.SharedMemory(1024)", lambda m: str(8 * m.integer(0, 100)), "1", named={"name": "'full'"})
for name in ("arrive", "arrive_drop"):
    method(f"tma.Mbarrier.{name}", "tma.Mbarrier(2)", lambda m: m.one_of("1", "2"))
for name in ("arrive_expect_tx", "expect_tx"):
    method(f"tma.Mbarrier.{name}", "tma.Mbarrier(2)", lambda m: m.one_of("0", "128", "32768"))
method("tma.Mbarrier.complete_tx", "tma.Mbarrier(2)", "128", named={"source": "'a load'"})
for name in ("test_wait", "try_wait"):
    method(f"tma.Mbarrier.{name}", "tma.Mbarrier(2)", lambda m: m.one_of("0", "1"))

# ---- maps in memory, and the path of a byte

add("tma.Agent", "1", "2", "0")
add("tma.TensormapProxy", weight=0.1)
method("tma.TensormapProxy.place", "proxy()", "0x2000", "bytes(128)")
method("tma.TensormapProxy.write", "proxy()", "0x1000", "bytes(range(128))", named={"agent": "tma.Agent(1)"})
method("tma.TensormapProxy.replace", "proxy()", "0x1000", "'global_dim'", "9", "0", named={"agent": "tma.Agent(1)"})
method(
    "tma.TensormapProxy.release",
    "proxy()",
    lambda m: m.one_of("'cta'", "'gpu'", "'sys'"),
    named={"agent": "tma.Agent(1)"},
)
method("tma.TensormapProxy.acquire", "proxy()", "0x1000", "'cluster'", named={"agent": "tma.Agent(1)"})
method("tma.TensormapProxy.cp_fenceproxy", "proxy()", "0x2000", "bytes(128)", "'gpu'", named={"agent": "tma.Agent(1)"})
method("tma.TensormapProxy.read", "proxy()", "0x1000", named={"agent": "tma.Agent(1)"})
add(
    "tma.Trace",
    "small_request()",
    "[(0, 0), (32, 4)]",
    "[0, 128]",
    named={"mode": "'tile'", "smem": "tma.SharedMemory(1024)", "gmem": "global_memory()", "im2col_offsets": "()"},
)
method("tma.Trace.forward", "tile_trace()", lambda m: f"({m.integer(0, 63)}, {m.integer(0, 15)})")
method("tma.Trace.backward", "tile_trace()", lambda m: str(m.integer(0, 2047)))
method("tma.Trace.from_global", "tile_trace()", lambda m: str(4096 + m.integer(0, 2047)))
method(
    "tma.Trace.first_difference",
    "tile_trace()",
    "numpy.zeros(2048, numpy.uint8)",
    "gmem_bytes(2048)",
    named={"base": "0", "space": "'shared'"},
)
method("tma.Trace.steps", "tile_trace()", lambda m: m.one_of("0", "1"))

# ---- records

add("tma.CopyResult", "array(4)", "True", "4", "4", "2048", "8192", "0.1", "'emulator'")
add("tma.CopyReport", "1.0", "64", "2.0", "3.0", "50.0", "()")
add("tma.TileResult", "array(4, 'uint8')", "array(4, 'int64')", "array(4, 'int64')", "128", "'emulator'")

# ---- copies

COPY_TILE = "Layout((Int(32), Int(32)), LayoutRight)"


@calls_of("tma.copy", weight=0.7)
def _copy(m: Maker) -> Any:
    dtype = m.one_of("'float16'", "'uint8'", "'float32'")
    source = f"array((64, 64), {dtype})"
    options = {
        "destination": f"array((64, 64), {dtype})",
        "backend": "'emulator'",
        "progress": "lambda done, all: None",
    }
    return (f"tma.make_tma_copy('SM90_TMA_LOAD', {source}, {COPY_TILE})", source), {
        k: v for k, v in options.items() if m.chance(0.3)
    }


add("tma.TileComparison", "False", "None", "'other major'", "''")


@calls_of("tma.compare_tile", weight=0.5)
def _compare_tile(m: Maker) -> Any:
    source = "array((64, 64), 'uint8')"
    atom = f"tma.make_tma_copy('SM90_TMA_LOAD', {source}, {COPY_TILE})"
    dump = m.one_of(f"tma.execute({atom}, {source}, (1, 1)).smem", "bytes(1024)", "array(2048, 'uint8')")
    return (atom, source, m.one_of("(0, 1)", "3"), dump), {"stages": "2"} if m.chance(0.3) else {}


@calls_of("tma.execute", weight=0.7)
def _execute(m: Maker) -> Any:
    source = "array((64, 64), 'uint8')"
    atom = f"tma.make_tma_copy('SM90_TMA_LOAD', {source}, {COPY_TILE})"
    return (atom, source, m.one_of("(0, 1)", "3", "(1, 1)")), {"poison": "7"} if m.chance(0.3) else {}


add(
    "tma.first_difference",
    "array((4, 8))",
    lambda m: m.one_of("array((4, 8))", "array((4, 8)) + 1", "numpy.zeros((4, 8), numpy.float32)"),
)

TURNED = "Layout((8, 4), (4, 1))"
add(
    "copy",
    "array((4, 8))",
    "array((4, 8)) * 2",
    named={"backend": "'host'", "stream": "None", "report": "False"},
)
add("plan_copy", TURNED, "Layout((8, 4))", "'float32'", named={"alignment": "(16, 4)", "arch": "'sm_90a'"})
add("find_smem_layout", "Layout((32, 2), (2, 1))", "Layout((32, 2), (1, 32))", "'float16'")
add(
    "convert_layout_tv",
    "Layout((32, 4), (4, 1))",
    lambda m: m.one_of("Layout((32, 4), (1, 32))", "Layout((32, 4), (4, 1))", "Layout((32, 2), (4, 1))"),
    lambda m: repr(m.choice(("float32", "half", "int8"))),
    named={"by": "'shared memory'"},
)

# ---- registers of warps

INSTANCES["Warps"] = "Warps(1, shared=64)"
add("Warps", "4", named={"shared": "256"})
RAN = "warps_that_ran()"
method("Warps.run", "Warps(1, shared=64)", "'mov.u32 %d0, %laneid; st.shared.u8 [%d0], %d0;'")
method("Warps.write", "Warps(1)", "'%s'", lambda m: m.one_of("numpy.arange(32)", "numpy.zeros((32, 2), numpy.uint32)"))
method("Warps.read", RAN, "'%d'", "1")

# ---- kernels without a GPU

INSTANCES["PtxRun"] = "kernel_run(32)"
INSTANCES["PtxError"] = "PtxError('headline')"
add(
    "run_ptx",
    "KERNEL_TEXT",
    named={
        "args": lambda m: m.one_of("[numpy.zeros(32, numpy.uint32), 32]", "[array((8, 4)), 20]", "[None, 0]"),
        "grid": lambda m: m.one_of("1", "(1, 1)"),
        "block": "32",
        "schedule": lambda m: m.one_of("'eager'", "'lazy'", "7"),
        "limit": "100000",
        "judge": "False",
        "traffic": "True",
    },
)
add("PtxError", "'headline'")
add("PtxRun", "'k'", "()", "('text',)", "()", "0", "()", "('eager',)")
method("PtxRun.trace", "kernel_run(32)", lambda m: m.one_of("0", "31"), named={"cta": "0"})
method("PtxRun.explain", "kernel_run(33)")
method("PtxRun.timeline", "kernel_run(32)", named={"cta": "0"})
method("PtxRun.tensor_memory", "tensor_run()", named={"cta": "0"})
method("PtxRun.umma_operands", "product_run()", "12", named={"cta": "0"})
add(
    "UmmaOperands",
    "0x08400010",
    lambda m: m.one_of("0x4000404000010040", "SmemDescriptor.decode(0x4000404000010040)"),
    "0x4000404000010440",
    named={
        "kind": "'f16'",
        "cta_group": "1",
        "d": lambda m: m.one_of("0", "64"),
        "scales": "(0, 0)",
        "scale_vec": "None",
        "a_in_tmem": "False",
        "weights": "False",
    },
)
method("UmmaOperands.explain", "UmmaOperands(0x08400010, 0x4000404000010040, 0x4000404000010440)")
method("PtxRun.raise_for_diagnostics", lambda m: m.one_of("kernel_run(32)", "kernel_run(33)"))
method(
    "tma.GemmKernel.machine_launches",
    "gemm_kernel()",
    "(gemm_arrays('A'), gemm_arrays('B'), gemm_arrays('C'))",
)

# ---- a GPU, or its absence

ARRAYS = ("array((64, 64))", "array((64, 64))")
GEMM = ("gemm_mma()", "gemm_atom('A')", "gemm_atom('B')", "gemm_atom('C')")
INSTANCES.update({"tma.GemmKernel": "gemm_kernel()", "tma.GemmPlan": "gemm_kernel().plan"})
add(
    "tma.gemm_kernel",
    *GEMM,
    named={"stages": "2", "epilogue": "'x * 2.f'", "staging": "1", "group": "4", "wait_cycles": "1000"},
)
add("tma.check_gemm", *GEMM, named={"stages": lambda m: m.one_of("2", "16", "None"), "staging": "1"})
add("tma.GemmKernel", "gemm_kernel().plan", "gemm_kernel().kernel")
add(
    "tma.GemmPlan",
    "gemm_mma()",
    "gemm_kernel().plan.atoms",
    "(256, 128, 128)",
    "(128, 64, 64)",
    *("2", "3", "2", "8"),
    "gemm_kernel().plan.operands",
    "gemm_kernel().plan.walks",
)
GEMM_ARRAYS = ("gemm_arrays('A')", "gemm_arrays('B')")
method("tma.GemmKernel.edited", "gemm_kernel()", "'GROUP = 8u'", "'GROUP = 4u'")
method("tma.GemmKernel.stage", "gemm_kernel()", *GEMM_ARRAYS, "(1, 0)", "1", named={"backend": "'emulator'"})
method("tma.GemmKernel.compile", "gemm_kernel()", named={"arch": "'sm_90a'"}, device=True)
method(
    "tma.GemmKernel.prepare", "gemm_kernel()", *GEMM_ARRAYS, "gemm_arrays('C')", named={"device": "None"}, device=True
)
method("tma.GemmKernel.run", "gemm_kernel()", *GEMM_ARRAYS, "gemm_arrays('C')", named={"stream": "None"}, device=True)
add("tma.PreparedGemm", "gemm_kernel()", "{}", "None", named={"others": "()", "keep": "()"}, device=True)

add("tma.device_available", device=True, weight=0.1)
add("tma.open_device", "None", device=True, weight=0.3)
add("tma.prepare_copy", *ARRAYS, named={"hints": "True", "tuning": "None", "device": "None"}, device=True)
add("prepare_copy", *ARRAYS, named={"hints": "True", "tuning": "None", "device": "None"}, device=True)
add("tma.tuned_copy", *ARRAYS, named={"hints": "True", "rounds": "3", "device": "None"}, device=True)
add(
    "tma.run_on_machine",
    *ARRAYS,
    named={"tuning": "None", "dtype": "None", "schedule": "'eager'"},
    device=not compiler_available(),
    weight=0.1,
)
add("tma.copy_array", *ARRAYS, named={"stream": "None", "hints": "True"}, device=True)
add("tma.measure_copy", "None", named={"rounds": "3", "launches": "2", "stream": "None"}, device=True)
add("tma.kernel_texts", "None", device=True)
add("tma.PreparedCopy", "None", "()", "0", device=True)
add("tma.Device", "0", "'NVIDIA H200'", "(9, 0)", "'sm_90a'", "132", "52428800", "233472", "13000", "None", device=True)
