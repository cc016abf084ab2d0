"""Write a kernel that moves one tile by TMA, as a PTX module or in CUDA C++: a load, a store or a reduction.

The kernel has one CTA of 128 threads. Its parameters are the 128-byte tensor map by value (a grid constant, 64-byte
aligned like CUtensorMap), one coordinate per mode (s32, elements, innermost first), and the address of the image, a
buffer in global memory for the bytes of the tile. A load writes the bytes of shared memory to the image; a store or
reduction reads its tile from the image. Shared memory contains the tile, then the barrier.

A load announces its bytes to the barrier, issues one instruction per box, and waits. A store makes its writes visible
to the asynchronous proxy by a fence, issues and commits its instructions, and waits until the group is complete,
because the kernel then ends.

The CUDA C++ kernel includes only <cuda.h>, for the type of its parameter. With NVRTC it needs no header, because a
128-byte struct replaces that type.
"""

from __future__ import annotations

from cute_py.argument_checks import expect_name
from cute_py.errors import EmissionError, counted
from cute_py.ptx.inline_asm import inline_asm
from cute_py.ptx.render import Value, ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture, expect_version
from cute_py.tma.atom.tile_atom import expect_block
from cute_py.tma.dialect.legacy_copy import THREADS, image_lines, tile_module
from cute_py.tma.dialect.traced_copy import Copyable, TracedCopy, trace_copy

ENTRY = "move_tile"


def barrier_offset(atom: Copyable | TracedCopy) -> int:
    """Return the byte offset of the barrier in dynamic shared memory: the bytes of the tile, rounded up to 128."""
    return -(-trace_copy(atom).smem_bytes // 128) * 128


def shared_bytes(atom: Copyable | TracedCopy) -> int:
    """Return the dynamic shared memory of a launch in bytes: the tile, and a barrier of 8 bytes."""
    return barrier_offset(atom) + 8


def _expect_alone(copy: TracedCopy, what: str) -> None:
    """Refuse a copy that this kernel of one CTA can't make.

    Multicast needs a cluster, a cache hint needs a policy, and the kernel's parameters have room for four row indices.

    Raises:
        EmissionError: the copy has multicast or a cache hint, or has more than four row indices.
    """
    if copy.multicast > 1 or copy.cache_hint:
        text = f"a single-tile {what} has no cluster and no policy"
        raise EmissionError(f"{text}, so it can't have multicast or a cache hint")
    if copy.rows_by_index and copy.tile[0] > 4:
        raise EmissionError(f"a single-tile {what} has {copy.tile[0]} rows by index; must have 4")


def single_tile_ptx(atom: Copyable | TracedCopy, arch: str = "sm_90a", version: Version = NEWEST_VERSION) -> str:
    """Write the PTX module of a kernel that moves one tile.

    Args:
        atom: any object that `lower` accepts.
    Raises:
        EmissionError: the copy has multicast or a cache hint (they need a cluster or a policy, which this kernel
            lacks), `arch` does not have an instruction, or the bytes of the tile are not a multiple of 4.
        TmaLimitError: the tile does not fit in the shared memory of a block of `arch`.
        InvalidValueError: the architecture does not exist.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(single_tile_ptx(atom).splitlines()[0])
    // load of one 128 x 64 tile of float16 by TMA,
    """
    copy = trace_copy(atom)
    if architecture(arch).number >= 90:
        expect_block(copy.smem_bytes, copy.direction, arch)
    version = expect_version(version)
    _expect_alone(copy, "module")
    if copy.smem_bytes % 4:
        raise EmissionError(f"the tile has {copy.smem_bytes} bytes; must be a multiple of 4")
    issue = []
    for box in range(copy.num_boxes):
        starts = list(enumerate(copy.instruction_origin(box)))
        issue += [f"add.s32 %r_d{index}, %r_c{index}, {start};" for index, start in starts if start]
        issue.append(f"add.u32 %r_at, %r_tile, {copy.offsets[box]};")
        operands: dict[str, Value] = {"tensor": "%rd_map", "coords": [f"%r_{'d' if n else 'c'}{i}" for i, n in starts]}
        if copy.direction == "load":
            operands |= {"destination": "%r_at", "barrier": "%r_bar"}
            operands |= {"offsets": copy.im2col_offsets} if copy.im2col_offsets else {}
        else:
            operands["source"] = "%r_at"
        issue.append(ptx(copy.direction, operands=operands, arch=arch, version=version, **copy.modifiers))
    image = image_lines(copy, "%r_v", "%p_end")
    if copy.direction == "load":
        moved = [
            f"add.u32 %r_bar, %r_tile, {barrier_offset(copy)};",
            "@%p_idle bra $armed;",
            "mbarrier.init.shared.b64 [%r_bar], 1;",
            "fence.mbarrier_init.release.cluster;",
            "$armed:",
            "bar.sync 0;",
            "@%p_idle bra $issued;",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%r_bar], {copy.transaction_bytes};",
            *issue,
            "$issued:",
            "$wait:",
            "mbarrier.try_wait.parity.shared.b64 %p_done, [%r_bar], 0;",
            "@!%p_done bra $wait;",
            *image,
        ]
    else:
        moved = [
            *image,
            "// every writer fences its own writes, then all meet",
            "fence.proxy.async.shared::cta;",
            "bar.sync 0;",
            "@%p_idle bra $issued;",
            *issue,
            "cp.async.bulk.commit_group;",
            "cp.async.bulk.wait_group 0;",
            "$issued:",
        ]
    coords = range(5 if copy.rows_by_index else copy.rank)
    names = ["tid", "tile", "bar", "at", "i", "k", "ak", "v"]
    registers = {
        "b32": [f"%r_{name}" for name in (*names, *(f"{letter}{index}" for letter in "cd" for index in coords))],
        "b64": ["%rd_map", "%rd_image", "%rd_k"],
        "pred": ["%p_idle", "%p_end", "%p_done"],
    }
    body = [
        "// the map is used in place, through its generic address",
        "mov.b64 %rd_map, p_map;",
        "cvta.param.u64 %rd_map, %rd_map;",
        "ld.param.u64 %rd_image, [p_image];",
        *(f"ld.param.s32 %r_c{index}, [p_coord{index}];" for index in coords),
        "mov.u32 %r_tile, tile;",
        "mov.u32 %r_tid, %tid.x;",
        "setp.ne.u32 %p_idle, %r_tid, 0;",
        *moved,
        "ret;",
    ]
    parameters = [".align 64 .b8 p_map[128]", *(f".s32 p_coord{index}" for index in coords), ".u64 p_image"]
    return "\n".join(
        [
            f"// {copy.direction} of one {' x '.join(map(str, copy.tile))} tile of {copy.dtype.name} by TMA,",
            f"// {counted(copy.num_boxes, 'instruction')}, {copy.transaction_bytes} bytes;",
            f"// {THREADS} threads, {shared_bytes(copy)} bytes of dynamic shared memory",
            tile_module(version, arch, ENTRY, parameters, registers, body),
        ]
    )


def cuda_kernel(atom: Copyable | TracedCopy, name: str = "move_tile") -> str:
    """Write a self-contained CUDA C++ kernel of 128 threads that moves one tile, for NVRTC or nvcc.

    A launch needs `single_tile.shared_bytes(atom)` bytes of dynamic shared memory. The parameter `image` receives the
    bytes of shared memory after a load, and provides them for a store or reduction.

    Args:
        atom: any object that `lower` accepts.
    Raises:
        EmissionError: the copy has multicast or a cache hint, which need a cluster or a policy.
        InvalidValueError: the name is not an identifier.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> "move_tile" in cuda_kernel(atom)
    True
    """
    copy = trace_copy(atom)
    expect_name(name, "the kernel's name")
    _expect_alone(copy, "kernel")
    statement = inline_asm(copy.direction, **copy.modifiers)
    is_load = copy.direction == "load"
    issue = []
    for box in range(copy.num_boxes):
        coords = [f"c{i} + {start}" if start else f"c{i}" for i, start in enumerate(copy.instruction_origin(box))]
        at = f"base + {copy.offsets[box]}" if copy.offsets[box] else "base"
        fixed = [*([at, "desc", "barrier"] if is_load else ["desc", at]), *coords]
        # If the filter position of an im2col load is not given, it is the first one.
        offsets = copy.im2col_offsets or (0,) * (len(statement.constraints) - len(fixed))
        values = zip(statement.constraints, [*fixed, *map(str, offsets)], strict=True)
        inputs = ", ".join(f'"{letter}"({"(short)" if letter == "h" else ""}{value})' for letter, value in values)
        issue += [f'    asm volatile("{statement.template}"', f'                 :: {inputs} : "memory");']
    move = "image[i] = ((const unsigned*)tile)[i]" if is_load else "((unsigned*)tile)[i] = image[i]"
    image = f"  for (unsigned i = threadIdx.x; i < {copy.smem_bytes // 4}; i += blockDim.x) {move};"
    if is_load:
        body = [
            f"  const unsigned barrier = base + {barrier_offset(copy)};",
            "  if (threadIdx.x == 0) {",
            '    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");',
            '    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
            "  }",
            "  __syncthreads();",
            "  if (threadIdx.x == 0) {",
            f'    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], {copy.transaction_bytes};"',
            '                 :: "r"(barrier) : "memory");',
            *issue,
            "  }",
            "  unsigned done = 0;",
            "  while (!done)",
            '    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"',
            '                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier) : "memory");',
            image,
        ]
    else:
        body = [
            image,
            "  // every writer fences its own writes, then all meet",
            '  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
            "  __syncthreads();",
            "  if (threadIdx.x == 0) {",
            *issue,
            '    asm volatile("cp.async.bulk.commit_group;" ::: "memory");',
            '    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");',
            "  }",
        ]
    moved = counted(copy.num_boxes, "instruction")
    coordinates = ", ".join(f"int c{index}" for index in range(5 if copy.rows_by_index else copy.rank))
    return "\n".join(
        [
            f"// {copy.direction} of one tile by TMA: {moved}, {copy.transaction_bytes} bytes",
            "struct __align__(64) TensorMap { unsigned long long word[16]; };",
            f'extern "C" __global__ void __launch_bounds__(128) {name}(',
            f"    const __grid_constant__ TensorMap map, {coordinates}, unsigned* image) {{",
            "  extern __shared__ __align__(1024) unsigned char tile[];",
            "  const unsigned base = (unsigned)__cvta_generic_to_shared(tile);",
            "  const unsigned long long desc = (unsigned long long)&map;",
            *body,
            "}",
            "",
        ]
    )
