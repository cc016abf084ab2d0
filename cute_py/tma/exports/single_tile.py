"""A whole PTX module that moves one tile by TMA: load, store or reduction, self-contained.

One CTA of 128 threads. Parameters: `p_map` (the 128-byte tensor map by value, 64-byte aligned as CUtensorMap is; the
grid constant), `p_coord0..` s32 (elements, innermost first), `p_image` u64: a load writes the image of shared memory
there, a store or reduction takes its tile from there. Shared memory: the tile, then the barrier.

A load announces its bytes, issues one instruction per box and waits; a store fences its writes to the asynchronous
proxy, issues, commits, and waits for the whole group, since the kernel ends after it.
"""

from __future__ import annotations

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError
from cute_py.ptx.render import ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture, expect_version, version_text
from cute_py.tma.dialect.copy_shape import CopyShape

THREADS = 128
ENTRY = "move_tile"


def _coordinate_count(shape: CopyShape) -> int:
    return 5 if shape.rows_by_index else shape.rank


def barrier_offset(shape: CopyShape) -> int:
    """Byte offset of the barrier in dynamic shared memory: the tile's bytes, rounded up to 128."""
    return -(-shape.smem_bytes // 128) * 128


def shared_bytes(shape: CopyShape) -> int:
    """Dynamic shared memory of a launch: the tile and 8 bytes of barrier."""
    return barrier_offset(shape) + 8


def _boxes(shape: CopyShape, arch: str, version: Version) -> list[str]:
    """One instruction per box with its coordinates and its shared address."""
    lines = []
    modifiers: dict[str, object] = {"dim": shape.rank, "mode": shape.mode}
    if shape.direction == "reduce":
        modifiers["op"] = shape.reduce_kind
    if shape.cta_group:
        modifiers["cta_group"] = shape.cta_group
    for box in range(shape.num_boxes):
        coords = []
        for index, start in enumerate(shape.instruction_origin(box)):
            if start:
                lines.append(f"add.s32 %r_d{index}, %r_c{index}, {start};")
            coords.append(f"%r_d{index}" if start else f"%r_c{index}")
        lines.append(f"add.u32 %r_at, %r_tile, {shape.box_offset(box)};")
        operands: dict[str, object] = {"tensor": "%rd_map", "coords": coords}
        if shape.direction == "load":
            operands |= {"destination": "%r_at", "barrier": "%r_bar"}
            if shape.im2col_offsets:
                operands["offsets"] = shape.im2col_offsets
        else:
            operands["source"] = "%r_at"
        lines.append(
            ptx(shape.direction, operands=operands, arch=arch, version=version, **modifiers)  # type: ignore[arg-type]
        )
    return lines


def _image(shape: CopyShape, inwards: bool) -> list[str]:
    label = "$fill" if inwards else "$spill"
    move = (
        ["ld.global.b32 %r_v, [%rd_k];", "st.shared.b32 [%r_ak], %r_v;"]
        if inwards
        else ["ld.shared.b32 %r_v, [%r_ak];", "st.global.b32 [%rd_k], %r_v;"]
    )
    return [
        "mov.u32 %r_i, %tid.x;",
        f"{label}:",
        f"setp.ge.u32 %p_end, %r_i, {shape.smem_bytes // 4};",
        f"@%p_end bra {label}_done;",
        "shl.b32 %r_k, %r_i, 2;",
        "add.u32 %r_ak, %r_tile, %r_k;",
        "cvt.u64.u32 %rd_k, %r_k;",
        "add.s64 %rd_k, %rd_k, %rd_image;",
        *move,
        f"add.u32 %r_i, %r_i, {THREADS};",
        f"bra {label};",
        f"{label}_done:",
    ]


def _load_body(shape: CopyShape, issue: list[str]) -> list[str]:
    return [
        f"add.u32 %r_bar, %r_tile, {barrier_offset(shape)};",
        "@%p_idle bra $armed;",
        "mbarrier.init.shared.b64 [%r_bar], 1;",
        "fence.mbarrier_init.release.cluster;",
        "$armed:",
        "bar.sync 0;",
        "@%p_idle bra $issued;",
        f"mbarrier.arrive.expect_tx.shared.b64 _, [%r_bar], {shape.transaction_bytes};",
        *issue,
        "$issued:",
        "$wait:",
        "mbarrier.try_wait.parity.shared.b64 %p_done, [%r_bar], 0;",
        "@!%p_done bra $wait;",
        *_image(shape, inwards=False),
    ]


def _store_body(shape: CopyShape, issue: list[str]) -> list[str]:
    return [
        *_image(shape, inwards=True),
        "// every writer fences its own writes, then all meet",
        "fence.proxy.async.shared::cta;",
        "bar.sync 0;",
        "@%p_idle bra $issued;",
        *issue,
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group 0;",
        "$issued:",
    ]


def single_tile_ptx(shape: CopyShape, arch: str = "sm_90a", version: Version = NEWEST_VERSION) -> str:
    """The module.

    Raises:
        EmissionError: multicast or a cache hint (they need a cluster or a policy, which this kernel has not), an
            instruction that `arch` does not have, or a tile whose bytes are no multiple of 4.
        InvalidValueError: no such architecture.
    """
    expect(shape, CopyShape, "the shape of a copy")
    architecture(arch)
    version = expect_version(version)
    if shape.multicast > 1 or shape.cache_hint:
        raise EmissionError(
            "a single-tile module has no cluster and no policy: multicast and cache hints are not in it"
        )
    if shape.smem_bytes % 4:
        raise EmissionError(f"tile of {shape.smem_bytes} bytes; must be a multiple of 4")
    count = _coordinate_count(shape)
    issue = _boxes(shape, arch, version)
    parameters = [
        "  .param .align 64 .b8 p_map[128]",
        *(f"  .param .s32 p_coord{index}" for index in range(count)),
        "  .param .u64 p_image",
    ]
    names32 = ["tid", "tile", "bar", "at", "i", "k", "ak", "v"]
    names32 += [f"{letter}{index}" for letter in "cd" for index in range(count)]
    body = _load_body(shape, issue) if shape.direction == "load" else _store_body(shape, issue)
    extents = " x ".join(str(extent) for extent in shape.tile)
    return "\n".join(
        [
            f"// {shape.direction} of one {extents} tile of {shape.dtype.name} by TMA,",
            f"// {shape.num_boxes} instruction(s), {shape.transaction_bytes} bytes;",
            f"// {THREADS} threads, {shared_bytes(shape)} bytes of dynamic shared memory",
            f".version {version_text(version)}",
            f".target {arch}",
            ".address_size 64",
            ".extern .shared .align 1024 .b8 tile[];",
            f".visible .entry {ENTRY}(",
            ",\n".join(parameters) + ")",
            f".reqntid {THREADS}",
            "{",
            f".reg .b32 {', '.join(f'%r_{name}' for name in names32)};",
            ".reg .b64 %rd_map, %rd_image, %rd_k;",
            ".reg .pred %p_idle, %p_end, %p_done;",
            "// the map is read where it lies: its generic address, not a copy of it",
            "mov.b64 %rd_map, p_map;",
            "cvta.param.u64 %rd_map, %rd_map;",
            "ld.param.u64 %rd_image, [p_image];",
            *(f"ld.param.s32 %r_c{index}, [p_coord{index}];" for index in range(count)),
            "mov.u32 %r_tile, tile;",
            "mov.u32 %r_tid, %tid.x;",
            "setp.ne.u32 %p_idle, %r_tid, 0;",
            *body,
            "ret;",
            "}",
            "",
        ]
    )
