"""Objects that the texts of calls name: arrays, memories, atoms, descriptors. Each call makes its own."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import cute_py as cute
from cute_py import Int, Layout, LayoutRight, tma, tmem
from cute_py.cli import main
from cute_py.ptx.module import ptx_module
from tests.calls.arena import placed
from tests.tma.dialect.atoms import tile_atom, window_operation

__all__ = [
    "ROW_MAJOR_TILE",
    "array",
    "atom_arguments",
    "barrier_in",
    "cluster",
    "command",
    "copied",
    "copy_of",
    "cta",
    "copy_request",
    "dtensor",
    "exec_load",
    "exec_store",
    "gemm_arrays",
    "gemm_atom",
    "gemm_kernel",
    "gemm_mma",
    "global_memory",
    "gmem_bytes",
    "ldmatrix",
    "tiled_mma",
    "gtensor",
    "im2col_atom",
    "im2col_descriptor",
    "im2col_request",
    "load_atom",
    "loaded_tmem",
    "nested",
    "non_exec",
    "one_tile",
    "operand_load",
    "proxy",
    "ptx_text",
    "request",
    "saved",
    "saved_ptx",
    "saved_shards",
    "saved_weights",
    "small_request",
    "stile",
    "tile_atom",
    "tmem_copy",
    "tile_trace",
    "window_operation",
    "warps_that_ran",
    "KERNEL_TEXT",
    "kernel_run",
    "product_run",
    "tensor_run",
    "saved_kernel",
]

ROW_MAJOR_TILE = Layout((Int(128), Int(64)), LayoutRight)


def nested(depth: int) -> Any:
    """A tuple in a tuple in a tuple ..."""
    tree: Any = 1
    for _ in range(depth):
        tree = (tree,)
    return tree


def array(shape: Any, dtype: str = "float32") -> Any:
    """0, 1, 2, ... in C order, as numpy or ml_dtypes holds them."""
    made = cute.make_gmem_ptr(0, dtype).dtype.numpy
    return placed((np.arange(int(np.prod(shape))) % 100).reshape(shape).astype(made))


def saved(shape: Any, dtype: str = "float32", name: str = "input.npy") -> str:
    """The name of a file of an array in the current folder, which is a folder of its own."""
    np.save(name, array(shape, dtype))
    return name


def ptx_text(*body: str) -> str:
    """A PTX module of one kernel that stores 32 bytes of shared memory in bulk."""
    lines = [".reg .b64 %rd<4>;", "ld.param.u64 %rd1, [p];", *body, "ret;"]
    symbols = [".extern .shared .align 128 .b8 smem[];"]
    return ptx_module("k", lines, "sm_90a", parameters=[".u64 p"], symbols=symbols)


def saved_ptx() -> str:
    """The name of a file of such a module."""
    Path("kernel.ptx").write_text(ptx_text("cp.async.bulk.global.shared::cta.bulk_group [%rd1], [smem], 32;"))
    return "kernel.ptx"


def dtensor() -> Any:
    """What `from_dtensor` reads of PyTorch's."""
    placements = (cute.mesh.Shard(0), cute.mesh.Replicate())
    return SimpleNamespace(shape=(8, 6), placements=placements, device_mesh=SimpleNamespace(shape=(2, 2)))


def saved_shards() -> str:
    """The name of a plan, beside the two files that it reads."""
    head = b'{"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}'
    for device in range(2):
        Path(f"in-{device}.safetensors").write_bytes(
            len(head).to_bytes(8, "little") + head + bytes(range(device, device + 24))
        )
    sides = [f'[{name}]\nmesh = [{n}]\nfiles = "{file}"\n' for name, n, file in SIDES]
    Path("plan.toml").write_text("".join(sides) + '[placements]\n"*" = "Shard(0)"\n')
    return "plan.toml"


def saved_weights() -> str:
    """The name of a checkpoint with one weight and one tensor of another kind."""
    kind = {"dtype": "F32", "shape": [4, 32], "data_offsets": [0, 512]}
    head = json.dumps({"l.weight": kind, "l.bias": {"dtype": "F32", "shape": [1], "data_offsets": [512, 516]}}).encode()
    numbers = np.linspace(-4, 4, 129, dtype=np.float32).tobytes()
    Path("w.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + numbers)
    return "w.safetensors"


SIDES = (("source", 2, "in-{device}.safetensors"), ("destination", 4, "out-{device}.safetensors"))


def operand_load() -> Any:
    """A TMA load of float16 tiles of 128 x 64, K-major with a swizzle of 128 bytes."""
    whole = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((256, 128), (128, Int(1))))
    return tma.make_tma_copy("SM90_TMA_LOAD", whole, tma.make_smem_layout("K", "128B", "float16", (128, 64)))


def gmem_bytes(count: int) -> Any:
    return placed((np.arange(count) * 7 % 251).astype(np.uint8))


# ---- atoms


def gtensor(rows: int = 256, columns: int = 128, dtype: str = "float16") -> Any:
    """A row-major matrix in global memory."""
    return cute.make_tensor(cute.make_gmem_ptr(4096, dtype), Layout((rows, columns), (columns, Int(1))))


def load_atom(op: str = "SM90_TMA_LOAD", rows: int = 64, columns: int = 32, swizzle: str = "64B", ctas: int = 1) -> Any:
    """An atom over `gtensor()`."""
    smem = tma.make_smem_layout("K", swizzle, "float16", (rows, columns))
    return tma.make_tma_copy(op, gtensor(), smem, num_multicast=ctas)


def im2col_atom() -> Any:
    images = Layout(((16, 16, 2), 64), ((64, 1024, 16384), Int(1)))
    gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), images)
    smem = tma.make_smem_layout("K", "128B", "float16", (128, 64))
    corners = ((-1, -1), (-1, -1), (1, 1), (1, 1))
    return tma.make_im2col_tma_copy("SM90_TMA_LOAD_IM2COL", gmem, smem, (Int(128), Int(64)), 1, *corners)


def im2col_descriptor() -> Any:
    """A descriptor of the dialect, for images with their channels innermost."""
    images = Layout((64, 16, 16, 2), (Int(1), 64, 1024, 16384))
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), images)
    return tma.tma_descriptor_im2col(tensor, (-1, -1), (-1, -1), 64, 128)


def atom_arguments() -> dict[str, Any]:
    """Arguments of `make_tma_atom` that it refuses: rows of 128 bytes with a swizzle of 64."""
    square = Layout((Int(64), Int(64)), LayoutRight)
    wide = cute.ComposedLayout(cute.Swizzle(2, 4, 3), cute.smem_ptr_flag(16), square)
    return {"op": "SM90_TMA_LOAD", "gtensor": gtensor(), "smem_layout": wide, "num_multicast": 1, "suggest": False}


def _square_atom(source: Any) -> Any:
    return tma.make_tma_copy("SM90_TMA_LOAD", source, Layout((Int(32), Int(32)), LayoutRight))


def copied() -> Any:
    """The result of a copy of 4 tiles."""
    source = array((64, 64), "float16")
    return tma.copy(_square_atom(source), source)


def one_tile() -> Any:
    """The result of one tile."""
    source = array((64, 64), "uint8")
    return tma.execute(_square_atom(source), source, (0, 1))


def stile(atom: Any) -> Any:
    """The tile of an atom in shared memory."""
    return cute.make_tensor(cute.make_smem_ptr(0, "float16"), ROW_MAJOR_TILE if atom is None else atom.tile)


def non_exec(**options: Any) -> Any:
    """A non-exec atom that the partition verifier accepted."""
    return tma.partition(ROW_MAJOR_TILE, gtensor(1024, 512), (128, 64), **options)[0].body


def exec_load() -> Any:
    return tma.make_exec_tma(non_exec(), tma.Mbarrier(1))


def exec_store(**options: Any) -> Any:
    return tma.make_exec_tma(non_exec(**(options or {"store_mode": 0})), tma.Mbarrier(1))


# ---- tensor maps


def request(swizzle: int = 3) -> Any:
    return tma.TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=swizzle)


def small_request(address: int = 4096) -> Any:
    """A map of 64 x 8 bytes, boxes of 32 x 4."""
    return tma.TensorMapTiled(0, address, (64, 8), (64,), (32, 4))


KERNEL_TEXT = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry twice(.param .u64 x, .param .u32 n) .reqntid 32
{
  .reg .pred %p; .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [x]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;
  setp.ge.u32 %p, %r2, %r1; @%p bra DONE;
  mad.wide.u32 %rd2, %r2, 4, %rd1; ld.global.u32 %r3, [%rd2]; shl.b32 %r3, %r3, 1; st.global.u32 [%rd2], %r3;
DONE: ret;
}
"""


def kernel_run(count: int) -> Any:
    """A run of a kernel on 32 elements; with a count above 32 it ends out of bounds."""
    return cute.run_ptx(KERNEL_TEXT, args=[np.zeros(32, np.uint32), count], schedule="eager")


TENSOR_TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry fill() .reqntid 128
{
  .reg .b32 %r<4>; .reg .pred %p; .shared .align 4 .b32 base;
  mov.u32 %r1, %tid.x; setp.ge.u32 %p, %r1, 32; @%p bra END;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.b32 %r2, [base];
  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%r1};
  tcgen05.wait::st.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32;
END: ret;
}
"""


def tensor_run() -> Any:
    """A run of a kernel whose first warp writes a column of tensor memory."""
    return cute.run_ptx(TENSOR_TEXT, schedule="eager")


PRODUCT_TEXT = """.version 8.8
.target sm_100a
.address_size 64
.visible .entry multiply() .reqntid 32
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .pred %p<3>; .shared .align 4 .b32 base; .shared .align 1024 .b8 tile[16384];
  .shared .align 8 .b64 bar;
  mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p2, 0, 0;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.b32 %r2, [base];
  @%p1 bra DONE; mbarrier.init.shared.b64 [bar], 1; cvta.shared.u64 %rd3, tile; mov.u32 %r3, tile; shr.u32 %r3, %r3, 4;
  cvt.u64.u32 %rd1, %r3; mov.b64 %rd2, 0x4000404000010000; or.b64 %rd1, %rd1, %rd2;
  tcgen05.mma.cta_group::1.kind::f16 [%r2], %rd1, %rd1, 0x08080010, %p2;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar];
WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;
DONE: bar.warp.sync -1; tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 32; ret;
}
"""


def product_run() -> Any:
    """A run of a kernel with one product, at line 12."""
    return cute.run_ptx(PRODUCT_TEXT, schedule="eager", judge=False)


def saved_kernel() -> str:
    """The name of a file of PTX."""
    Path("twice.ptx").write_text(KERNEL_TEXT)
    return "twice.ptx"


def warps_that_ran() -> Any:
    """A warp whose register %d0 is its lane."""
    warps = cute.Warps(1)
    warps.run("mov.u32 %d0, %laneid;")
    return warps


def im2col_request() -> Any:
    return tma.TensorMapIm2col(0, 4096, (16, 4, 3, 1), (16, 64, 192), (-1, -1), (-1, -1), 16, 6)


def copy_of(direction: str = "load") -> Any:
    return tile_atom(direction, (128, 64), "bf16", swizzle=3)


# ---- memories and programs


def global_memory() -> Any:
    memory = tma.GlobalMemory()
    memory.add("A", gmem_bytes(512), 4096)
    memory.allocate("B", 256)
    return memory


def cluster() -> Any:
    made = tma.Cluster(2, 2048)
    made.init_barriers(1024, 1)
    return made


def cta(rank: int, latest: list[Any] = []) -> Any:  # noqa: B006
    """A CTA of a cluster. Rank 0 makes the cluster; other ranks are of the latest one, or of a new one if there is
    none."""
    if rank == 0 or not latest:
        latest[:] = [cluster()]
    return latest[0][rank]


def barrier_in(smem: Any, offset: int = 1024) -> Any:
    """Shared memory with a barrier."""
    tma.init_barrier(smem, offset, 1)
    return smem


def proxy() -> Any:
    made = tma.TensormapProxy()
    made.place(0x1000, bytes(128))
    return made


def tile_trace() -> Any:
    tile = tma.TensorMapTiled(6, 4096, (64, 16), (128,), (64, 8), swizzle=3)
    return tma.Trace(tile, [(0, 0), (0, 8)], [0, 1024])


# ---- tensor memory


def tmem_copy() -> Any:
    return tmem.demonstration_copy()


def copy_request() -> Any:
    return tmem_copy().request


def loaded_tmem(cta_group: int = 1) -> Any:
    made = tmem.TensorMemory()
    made.alloc(64, cta_group)
    return made


# ---- threads and values


def tiled_mma() -> cute.atom.TiledMma:
    return cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")


def ldmatrix() -> cute.atom.TiledCopy:
    return cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "half"), tiled_mma())


def gemm_mma() -> cute.atom.TiledMma:
    return cute.make_tiled_mma("SM90_64x64x16_F32BF16BF16_SS", (2, 1, 1))


def gemm_atom(name: str) -> Any:
    """The load of A (256,128) or B (128,128), or the store of C (256,128), in tiles of 128 x 64 x 64."""
    rows, columns, tile = {"A": (256, 128, 128), "B": (128, 128, 64), "C": (256, 128, 64)}[name]
    memory = cute.make_gmem_ptr(1 << 40, "bfloat16")
    matrix = cute.make_tensor(memory, Layout((rows, columns), (columns, Int(1))))
    op = "SM90_TMA_STORE" if name == "C" else "SM90_TMA_LOAD"
    return tma.make_tma_copy(op, matrix, tma.make_smem_layout("K", "128B", "bfloat16", (tile, 64)))


def gemm_kernel() -> Any:
    return tma.gemm_kernel(gemm_mma(), *(gemm_atom(name) for name in "ABC"), stages=3)


def gemm_arrays(name: str) -> Any:
    return array({"A": (256, 128), "B": (128, 128), "C": (256, 128)}[name], "bfloat16")


# ---- the command line


def command(*arguments: str, stdin: str = "") -> tuple[object, str, str]:
    """Exit status, standard output and standard error of `cute-py` with these arguments, in this process."""
    out, err = io.StringIO(), io.StringIO()
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status: object = main(list(arguments))
            except SystemExit as end:
                status = end.code
    finally:
        sys.stdin = before
    return status, out.getvalue(), err.getvalue()
