"""Write tile copies for GPUs without TMA: PTX modules with cp.async (sm_80..89) or ld.global.nc (sm_70/75).

Shared memory receives the same bytes as from the TMA copy: one box after the other, each row by row, swizzled, with
zeros outside the tensor. Threads compute the addresses. Thread t moves granules t, t + 128, ..., of 4 bytes each
(cp.async) or 16 bytes each (loads through registers).

Parameters of the kernel, innermost mode first: p_base u64 (address of element 0), p_stride1.. u64 (bytes), p_size0..
u32 (elements), p_coord0.. s32 (elements; the innermost is a multiple of the granule), p_image u64. If p_image is not 0,
a load copies shared memory to this address, and a store reads its tile from it.
"""

from __future__ import annotations

import math

from cute_py.argument_checks import expect_choice
from cute_py.diagnostics import Diagnostic
from cute_py.errors import EmissionError
from cute_py.ptx.module import ptx_module
from cute_py.targets import Version, architecture
from cute_py.tma.descriptor.data_types import TensorMapSwizzle
from cute_py.tma.dialect.traced_copy import Copyable, TracedCopy, trace_copy

__all__ = ["legacy_ptx"]

THREADS = 128
ENTRY = "copy_tile"
_SWIZZLE_MASK = {TensorMapSwizzle.NONE: 0, TensorMapSwizzle.B32: 1, TensorMapSwizzle.B64: 3, TensorMapSwizzle.B128: 7}


def granule_bytes(copy: TracedCopy, kind: str) -> int:
    """Return the bytes that one thread instruction moves.

    These are 4 with cp.async. Otherwise they are 16, or 4 if rows are not multiples of 16 bytes.
    """
    return 4 if kind == "cp.async" or copy.row_bytes % 16 else 16


def check_legacy(copy: TracedCopy) -> list[Diagnostic]:
    """Check that code can be emitted for this copy.

    No code is emitted for a reduction, a mode other than tile, sub-byte elements, or rows that are not multiples of 4
    bytes.
    """
    box, bits = copy.box, copy.dtype.bits
    no_bulk = "a reduction in global memory has no bulk form before sm_90, so no code is emitted"
    beside = "not emitted for architectures without TMA"
    rows = (
        ("legacy_direction", copy.direction == "reduce", no_bulk),
        ("legacy_mode", copy.mode != "tile", f"mode {copy.mode} is {beside}"),
        ("legacy_type", bits % 8, f"{copy.dtype}: elements of less than a byte are {beside}"),
        ("legacy_swizzle", copy.swizzle not in _SWIZZLE_MASK, f"swizzle {copy.swizzle.name} is {beside}"),
        ("legacy_row", box[-1] * bits // 8 % 4, "rows of the box must be a multiple of 4 bytes"),
        ("legacy_places", not copy.is_regular, "the boxes of this atom have a special order in shared memory"),
    )
    return [Diagnostic(rule, text=text) for rule, is_broken, text in rows if is_broken]


def _locate(copy: TracedCopy, granule: int) -> list[str]:
    """Write the instructions that compute the position of a granule from its number.

    The results are its element coordinates, its offset in shared memory (%r_at), its valid bytes (%r_n, 0 outside the
    tensor) and its global address (%rd_g).
    """
    box = tuple(reversed(copy.box))
    counts = tuple(t // b for t, b in zip(reversed(copy.tile), box, strict=True))
    element = copy.dtype.bits // 8
    per_row, per_box = copy.row_bytes // granule, copy.box_bytes // granule
    lines = [
        f"div.u32 %r_box, %r_i, {per_box};",
        f"rem.u32 %r_in, %r_i, {per_box};",
        f"rem.u32 %r_col, %r_in, {per_row};",
        f"div.u32 %r_row, %r_in, {per_row};",
        f"mul.lo.u32 %r_at, %r_box, {copy.box_smem_bytes};",
        f"mad.lo.u32 %r_at, %r_row, {copy.row_pitch}, %r_at;",
        f"mad.lo.u32 %r_at, %r_col, {granule}, %r_at;",
    ]
    if mask := _SWIZZLE_MASK[copy.swizzle]:
        lines += [
            "// swizzle: 16-byte chunk ^= 128-byte row, as the copy engine does",
            "shr.u32 %r_x, %r_at, 7;",
            f"and.b32 %r_x, %r_x, {mask};",
            "shl.b32 %r_x, %r_x, 4;",
            "xor.b32 %r_at, %r_at, %r_x;",
        ]
    lines += ["mov.u32 %r_b, %r_box;"]
    # The boxes are numbered with the innermost mode slowest.
    for mode in range(copy.rank - 1, -1, -1):
        lines += [
            f"rem.u32 %r_o, %r_b, {counts[mode]};",
            f"div.u32 %r_b, %r_b, {counts[mode]};",
            f"mad.lo.s32 %r_e{mode}, %r_o, {box[mode]}, %r_c{mode};",
        ]
    lines.append(f"mad.lo.s32 %r_e0, %r_col, {granule // element}, %r_e0;")
    for mode in range(1, copy.rank):
        lines += [
            f"rem.u32 %r_o, %r_row, {box[mode]};",
            f"div.u32 %r_row, %r_row, {box[mode]};",
            f"add.s32 %r_e{mode}, %r_e{mode}, %r_o;",
        ]
    lines += [
        "sub.s32 %r_n, %r_s0, %r_e0;",
        f"min.s32 %r_n, %r_n, {granule // element};",
        "max.s32 %r_n, %r_n, 0;",
        f"mul.lo.s32 %r_n, %r_n, {element};",
        "setp.lt.s32 %p_out, %r_e0, 0;",
        "@%p_out mov.u32 %r_n, 0;",
    ]
    for mode in range(1, copy.rank):
        # The comparison is unsigned, so a negative coordinate is beyond every size.
        lines += [f"setp.ge.u32 %p_out, %r_e{mode}, %r_s{mode};", "@%p_out mov.u32 %r_n, 0;"]
    lines += [f"mul.wide.s32 %rd_g, %r_e0, {element};", "add.s64 %rd_g, %rd_g, %rd_base;"]
    for mode in range(1, copy.rank):
        lines += [f"cvt.s64.s32 %rd_e, %r_e{mode};", f"mad.lo.s64 %rd_g, %rd_e, %rd_s{mode}, %rd_g;"]
    lines += ["setp.eq.s32 %p_out, %r_n, 0;", "@%p_out mov.u64 %rd_g, %rd_base;", "add.u32 %r_at, %r_at, %r_tile;"]
    return lines


def _move(copy: TracedCopy, kind: str, granule: int) -> list[str]:
    """Write the instructions that move one granule."""
    vector = ".v4" if granule == 16 else ""
    registers = "{%r_v0, %r_v1, %r_v2, %r_v3}" if granule == 16 else "%r_v0"
    zeros = [f"mov.u32 %r_v{n}, 0;" for n in range(granule // 4)]
    if kind == "cp.async":
        return [f"cp.async.ca.shared.global [%r_at], [%rd_g], {granule}, %r_n;"]
    is_load = copy.direction == "load"
    if is_load:
        load, store = f"ld.global.nc{vector}.b32 {registers}, [%rd_g];", f"st.shared{vector}.b32 [%r_at], {registers};"
        byte = ("ld.global.nc.u8 %r_v0, [%rd_k];", "st.shared.u8 [%r_ak], %r_v0;")
    else:
        load = f"ld.shared{vector}.b32 {registers}, [%r_at];"
        store = f"@%p_all st.global{vector}.b32 [%rd_g], {registers};"
        byte = ("ld.shared.u8 %r_v0, [%r_ak];", "st.global.u8 [%rd_k], %r_v0;")
    return [
        # A granule outside the tensor leaves zeros in shared memory, and nothing in global memory.
        *(zeros if is_load else []),
        f"setp.eq.s32 %p_all, %r_n, {granule};",
        f"@%p_all {load}",
        store,
        "@%p_all bra $next;",
        # If fewer bytes than a granule are valid, they are moved one by one between %rd_g and %r_at.
        "mov.u32 %r_k, 0;",
        "$byte:",
        "setp.ge.u32 %p_k, %r_k, %r_n;",
        "@%p_k bra $next;",
        "cvt.u64.u32 %rd_k, %r_k;",
        "add.s64 %rd_k, %rd_k, %rd_g;",
        "add.u32 %r_ak, %r_at, %r_k;",
        *byte,
        "add.u32 %r_k, %r_k, 1;",
        "bra $byte;",
    ]


def image_lines(copy: TracedCopy, value: str, end: str) -> list[str]:
    """Write the copy of shared memory to p_image, or of p_image to shared memory for a store, in 4-byte words."""
    spaces = ("shared", "global") if copy.direction == "load" else ("global", "shared")
    at = {"shared": "[%r_ak]", "global": "[%rd_k]"}
    label = "$spill" if copy.direction == "load" else "$fill"
    return [
        "mov.u32 %r_i, %tid.x;",
        f"{label}:",
        f"setp.ge.u32 {end}, %r_i, {copy.smem_bytes // 4};",
        f"@{end} bra {label}_done;",
        "shl.b32 %r_k, %r_i, 2;",
        "add.u32 %r_ak, %r_tile, %r_k;",
        "cvt.u64.u32 %rd_k, %r_k;",
        "add.s64 %rd_k, %rd_k, %rd_image;",
        f"ld.{spaces[0]}.b32 {value}, {at[spaces[0]]};",
        f"st.{spaces[1]}.b32 {at[spaces[1]]}, {value};",
        f"add.u32 %r_i, %r_i, {THREADS};",
        f"bra {label};",
        f"{label}_done:",
    ]


def tile_module(
    version: Version, arch: str, entry: str, parameters: list[str], registers: dict[str, list[str]], body: list[str]
) -> str:
    """Write a PTX module with one kernel that moves a tile: 128 threads, the tile in dynamic shared memory.

    Args:
        parameters: declarations such as `.u64 p_base`. registers: the names of registers, by type ('b32').
    """
    declared = (f".reg .{kind} {', '.join(names)};" for kind, names in registers.items())
    options = {"symbols": [".extern .shared .align 1024 .b8 tile[];"], "directives": [f".reqntid {THREADS}"]}
    return ptx_module(entry, [*declared, *body], arch, version, parameters=parameters, **options)


def legacy_ptx(atom: Copyable | TracedCopy, arch: str, kind: str = "") -> str:
    """Write a complete PTX module that copies one tile without TMA.

    Args:
        atom: any object that `lower` accepts.
        arch: any architecture; the assembler of CUDA 13 does not support sm_70.
        kind: "cp.async" or "ldg"; '' selects cp.async for loads on sm_80 and newer, otherwise "ldg".
    Raises:
        EmissionError: no code exists for this copy (`check_legacy`), or cp.async is used below sm_80 or for a store.
        InvalidValueError: the architecture does not exist.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> "cp.async" in legacy_ptx(atom, "sm_80")
    True
    """
    copy, target = trace_copy(atom), architecture(arch)
    if found := check_legacy(copy):
        raise EmissionError(found[0].text)
    kind = expect_choice(kind, ("", "cp.async", "ldg"), "kind") or (
        "cp.async" if target.number >= 80 and copy.direction == "load" else "ldg"
    )
    if kind == "cp.async" and (target.number < 80 or copy.direction != "load"):
        raise EmissionError(f"cp.async loads on sm_80 and newer; got a {copy.direction} for {arch}")
    granule = granule_bytes(copy, kind)
    chunks = math.prod(copy.tile) * copy.dtype.bits // 8 // granule
    modes = range(copy.rank)
    state = [
        *(("u64", f"stride{mode}", f"%rd_s{mode}") for mode in modes[1:]),
        *(("u32", f"size{mode}", f"%r_s{mode}") for mode in modes),
        *(("s32", f"coord{mode}", f"%r_c{mode}") for mode in modes),
    ]
    base, image = ("u64", "base", "%rd_base"), ("u64", "image", "%rd_image")
    names = ["box", "in", "col", "row", "at", "x", "b", "o", "n", "k", "ak", "i", "tile", "v0", "v1", "v2", "v3"]
    registers = {
        "b32": [f"%r_{name}" for name in (*names, *(f"{letter}{mode}" for letter in "sce" for mode in modes))],
        "b64": [f"%rd_{name}" for name in ("base", "image", "g", "e", "k", *(f"s{mode}" for mode in modes[1:]))],
        "pred": ["%p_out", "%p_k", "%p_all"],
    }
    is_load = copy.direction == "load"
    label = "$spill" if is_load else "$fill"
    moved = ["setp.eq.s64 %p_out, %rd_image, 0;", f"@%p_out bra {label}_done;", *image_lines(copy, "%r_v0", "%p_k")]
    body = [
        *(f"ld.param.{type_} {register}, [p_{name}];" for type_, name, register in (base, image, *state)),
        "mov.u32 %r_tile, tile;",
        *([] if is_load else [*moved, "bar.sync 0;"]),
        "mov.u32 %r_i, %tid.x;",
        "$granule:",
        f"setp.ge.u32 %p_k, %r_i, {chunks};",
        "@%p_k bra $done;",
        *_locate(copy, granule),
        *_move(copy, kind, granule),
        "$next:",
        f"add.u32 %r_i, %r_i, {THREADS};",
        "bra $granule;",
        "$done:",
        *(["cp.async.commit_group;", "cp.async.wait_group 0;"] if kind == "cp.async" else []),
        *(["bar.sync 0;", *moved] if is_load else []),
        "ret;",
    ]
    parameters = [f".{type_} p_{name}" for type_, name, _ in (base, *state, image)]
    version = target.floor or (6, 0)  # 6.0 is for sm_70, which the newest assembler lacks
    extents = " x ".join(map(str, copy.tile))
    return "\n".join(
        [
            f"// one {extents} tile of {copy.dtype.name} by {kind}, {granule} bytes per thread and instruction;",
            f"// {THREADS} threads, {copy.smem_bytes} bytes of dynamic shared memory",
            tile_module(version, arch, ENTRY, parameters, registers, body),
        ]
    )
