"""Stages 4 and 5 of a TMA copy: the intrinsic calls and the machine instructions.

Here the coordinates are reversed, once: inner axis first, as the instruction takes them. The im2col offsets stand at
the head of the operand list in stage 4; in PTX they come after the barrier. The token becomes the constant i32 0.
"""

from __future__ import annotations

from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.stages_tile import Names, names_of


def _position(index: int, rank: int) -> str:
    if index == 0:
        return "inner-axis"
    return "outer-axis" if index == rank - 1 else f"axis {index} from the inside"


def _coord_names(shape: CopyShape, names: Names) -> list[str]:
    """`%bk_coord`, ... inner first."""
    return [f"{coord}_coord" for coord in names.inner_first(shape)]


def box_registers(shape: CopyShape, box: int, names: list[str], base: str) -> tuple[list[str], str, list[str]]:
    """For box number `box`: coordinate names inner first, the shared address, and the lines that compute them."""
    origin = shape.instruction_origin(box)
    lines, coords = [], []
    for name, start in zip(names, origin, strict=True):
        if start == 0:
            coords.append(name)
            continue
        coords.append(f"{name}_{box}")
        lines.append(f"{name}_{box} = add i32 {name}, {start}")
    offset = shape.box_offset(box)
    if offset == 0:
        return coords, base, lines
    lines.append(f"{base}_{box} = getelementptr i8, ptr addrspace(3) {base}, i32 {offset}")
    return coords, f"{base}_{box}", lines


def intrinsic_name(shape: CopyShape) -> str:
    """The intrinsic of stage 4: space pair and rank; im2col and the reduction in its name.

    >>> from cute_py.tma.lower.copy_shape import copy_shape
    >>> intrinsic_name(copy_shape("load", (128, 128), "bf16"))
    'llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.2d'
    """
    mode = "" if shape.mode == "tile" else "." + shape.mode.replace("::", ".")
    if shape.direction == "load":
        return f"llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global{mode}.{shape.rank}d"
    kind = f".reduce.{shape.reduce_kind}" if shape.direction == "reduce" else ""
    return f"llvm.nvvm.cp.async.bulk.tensor{kind}.global.shared.cta{mode}.{shape.rank}d"


def opcode_name(shape: CopyShape) -> str:
    """The machine opcode of stage 5: one per rank, mode, direction and options.

    >>> from cute_py.tma.lower.copy_shape import copy_shape
    >>> opcode_name(copy_shape("load", (128, 128), "bf16"))
    'CP_ASYNC_BULK_TENSOR_2D_SHARED_CLUSTER_GLOBAL_MBARRIER'
    """
    mode = "" if shape.mode == "tile" else "_" + shape.mode.upper().replace("::", "_")
    options = ("_MULTICAST" if shape.multicast > 1 else "") + ("_CACHE_HINT" if shape.cache_hint else "")
    if shape.direction == "load":
        return f"CP_ASYNC_BULK_TENSOR_{shape.rank}D{mode}{options}_SHARED_CLUSTER_GLOBAL_MBARRIER"
    kind = f"_REDUCE_{shape.reduce_kind.upper()}" if shape.direction == "reduce" else ""
    return f"CP_ASYNC_BULK_TENSOR{kind}_{shape.rank}D{mode}{options}_GLOBAL_SHARED_CTA_BULK_GROUP"


def _tail(shape: CopyShape) -> list[tuple[str, str]]:
    """Operands behind the barrier: (text, comment)."""
    tail = []
    if shape.multicast > 1:
        tail.append(("i16 %mask", "multicast mask: bit i is CTA i"))
    if shape.cache_hint:
        tail.append(("i64 %policy", "L2 cache policy"))
    return tail


def _call(name: str, operands: list[tuple[str, str]]) -> str:
    lines = [f"call void @{name}("]
    for index, (operand, comment) in enumerate(operands):
        end = ")" if index == len(operands) - 1 else ","
        lines.append(f"{operand}{end} ; {comment}")
    return "\n".join(lines)


def stage4_text(shape: CopyShape, tma_index: int = 0) -> str:
    """The LLVM IR trace: descriptor address, byte expectation, one call per box."""
    n = names_of(shape)
    desc = f"%desc_{n.small}_ptr"
    origin = (
        "; ---- descriptor pointer (made on the device, in global memory)"
        if shape.device_descriptor
        else "; ---- descriptor pointer (taken from the kernel's grid-constant .param slot)"
    )
    parts = [
        f"{origin}\n{desc} = call ptr addrspace(1) @llvm.nvvm.tma.get.descriptor.address(i32 {tma_index})",
    ]
    if shape.direction == "load":
        parts.append(
            "; ---- mbarrier publishes expected transaction-byte count\n"
            "call void @llvm.nvvm.mbarrier.arrive.expect_tx.shared(\n"
            f"ptr addrspace(3) %mbar_{n.small}, i32 {shape.transaction_bytes})"
        )
        parts.append(
            "; ---- TMA bulk-tensor load: shared <- global, through the descriptor,\n"
            "; coordinate order reversed to inner-axis-first (column-major)"
        )
    else:
        parts.append(
            f"; ---- TMA bulk-tensor {shape.direction}: global <- shared, through the descriptor,\n"
            "; coordinate order reversed to inner-axis-first (column-major)"
        )
    smem = f"%{n.small}_smem_{'dst' if shape.direction == 'load' else 'src'}"
    before = n.coords if not shape.rows_by_index else (*n.coords, *n.coords[-1:] * 3)
    for box in range(shape.num_boxes):
        coords, address, lines = box_registers(shape, box, _coord_names(shape, n), smem)
        parts.extend(lines)
        offsets = [(f"i16 {offset}", f"im2col offset[{i}]") for i, offset in enumerate(shape.im2col_offsets)]
        coordinates = [
            (f"i32 {coord}", f"coord[{i}]: {_position(i, len(coords))} (was {before[i]})")
            for i, coord in enumerate(coords)
        ]
        descriptor = (f"ptr addrspace(1) {desc}", "source: TMA descriptor in global")
        if shape.direction == "load":
            memory = [(f"ptr addrspace(3) {address}", "destination: shared base address"), descriptor]
            barrier = [(f"ptr addrspace(3) %mbar_{n.small}", "completion barrier")]
            operands = [*offsets, *memory, *coordinates, *barrier, *_tail(shape)]
        else:
            source = (f"ptr addrspace(3) {address}", "source: shared base address")
            target = (descriptor[0], "destination: TMA descriptor in global")
            operands = [source, target, *coordinates, *_tail(shape)]
        parts.append(_call(intrinsic_name(shape), operands))
    if shape.direction != "load":
        parts.append("call void @llvm.nvvm.cp.async.bulk.commit.group()")
    return "\n".join(parts)


def stage5_text(shape: CopyShape) -> str:
    """The machine-instruction trace; the token is gone, the byte count is an immediate."""
    n = names_of(shape)
    lines = ["bb.loop:"]
    smem = f"%{n.small}_smem_{'dst' if shape.direction == 'load' else 'src'}"
    inner = n.inner_first(shape)
    if shape.direction == "load":
        lines += [
            "; --- mbarrier arrives with expected transaction byte count",
            f"MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_{n.small}:b64, {shape.transaction_bytes}",
            "; --- TMA load: shared destination, global source via descriptor, mbarrier completion",
        ]
    else:
        lines.append(
            f"; --- TMA {shape.direction}: global destination via descriptor, shared source, bulk-group completion"
        )
    for box in range(shape.num_boxes):
        coords, address, _ = box_registers(shape, box, inner, smem)
        tail = ["%mask:b16"] * (shape.multicast > 1) + ["%policy:b64"] * shape.cache_hint
        offsets = [f"{offset}" for offset in shape.im2col_offsets]
        operands = [f"{coord}:b32" for coord in coords]
        lines.append(opcode_name(shape))
        where = "destination" if shape.direction == "load" else "source"
        lines.append(f"{address}:b64, ; {where} shared address (b64 SMEM ptr)")
        lines.append(f"%desc_{n.small}:b64, ; descriptor address (b64 global ptr)")
        rest = [*tail]
        if shape.direction == "load":
            rest = [f"%mbar_{n.small}", *offsets, *tail]
            lines.append(f"{', '.join(operands)}, ; coordinates, inner-axis first")
            lines.append(f"{', '.join(rest)} ; completion barrier (b64 SMEM ptr)")
        else:
            end = "," if rest else ""
            lines.append(f"{', '.join(operands)}{end} ; coordinates, inner-axis first")
            lines += [", ".join(rest)] if rest else []
    if shape.direction != "load":
        lines.append("CP_ASYNC_BULK_COMMIT_GROUP")
    return "\n".join(lines)
