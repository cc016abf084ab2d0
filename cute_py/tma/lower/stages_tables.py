"""Three tables of one lowering: where the byte count is, in which order the coordinates are, in which space all is."""

from __future__ import annotations

from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.stages import INNER_FIRST, OUTER_FIRST, FlowRow, OrderRow, SpaceRow
from cute_py.tma.lower.stages_llvm import intrinsic_name, opcode_name
from cute_py.tma.lower.stages_tile import extents_text, names_of


def transaction_flow(shape: CopyShape) -> tuple[FlowRow, ...]:
    """The byte count through the stages: implicit up to 2, an attribute at 3, then an operand.

    Source: TMA load walkthrough, transaction-byte count. A store has none: its completion is a bulk group.
    """
    if shape.direction != "load":
        return ()
    tile, count = extents_text(shape), shape.transaction_bytes
    return (
        FlowRow("1 — cuda_tile", "implicit", f"tile shape <{tile}>", "derived at lower time"),
        FlowRow("2 — nv_tileaa", "implicit", f"tensor shape <{tile}> plus CopyAtom witness", "derived at lower time"),
        FlowRow(
            "3 — nv_tileas",
            "explicit attr",
            f"tx_count = {count} : i32 on async.tiled_tma_load",
            "computed by LowerTMALoadStoreToAsync phase 5",
        ),
        FlowRow(
            "4 — LLVM IR",
            "explicit i32 operand",
            "argument to llvm.nvvm.mbarrier.arrive.expect_tx.shared",
            "folded from tx_count attribute",
        ),
        FlowRow(
            "5 — NVPTX MIR",
            "explicit immediate",
            "operand to MBARRIER_ARRIVE_EXPECT_TX_SHARED",
            "selected through ISelDAG",
        ),
        FlowRow(
            "6 — PTX text",
            "explicit literal",
            "last operand to mbarrier.arrive.expect_tx.shared.b64",
            "rendered by AsmPrinter",
        ),
    )


def coordinate_orders(shape: CopyShape) -> tuple[OrderRow, ...]:
    """The coordinate order at each stage; it turns round once, between 3 and 4."""
    n = names_of(shape)
    outer, inner = n.coord_list(), f"[{', '.join(n.inner_first(shape))}]"
    verb = {"load": "load", "store": "store", "reduce": "reduce"}[shape.direction]
    view = "load_view_tko" if shape.direction == "load" else "store_view_tko"
    tiled = "tiled_load" if shape.direction == "load" else "tiled_store"
    return (
        OrderRow(
            f"1 — cuda_tile.{view}",
            f"{OUTER_FIRST} {outer}",
            "matches Python-style tile indexing in the frontend bytecode",
        ),
        OrderRow(
            f"2 — nv_tileaa.{tiled}",
            f"{OUTER_FIRST} {outer}",
            "preserved verbatim through Part-B rewrite for SSA-edge stability",
        ),
        OrderRow(
            f"3 — nv_tileas.async.tiled_tma_{verb}",
            f"{OUTER_FIRST} {outer}",
            "layout-assignment writes coordinates in row-major order",
        ),
        OrderRow(
            f"4 — {intrinsic_name(shape).removeprefix('llvm.')}",
            f"{INNER_FIRST} {inner}",
            "matches the PTX instruction operand order",
        ),
        OrderRow(f"5 — {opcode_name(shape)}", f"{INNER_FIRST} {inner}", "survives ISel verbatim"),
        OrderRow(
            "6 — " + ("cp.reduce.async.bulk.tensor" if shape.direction == "reduce" else "cp.async.bulk.tensor"),
            f"{INNER_FIRST} {inner}",
            "PTX consumes inner-axis-first",
        ),
    )


def address_spaces(shape: CopyShape) -> tuple[SpaceRow, ...]:
    """The address space of each operand at each stage."""
    n = names_of(shape)
    mark = (
        "space-1 (global), made on the device"
        if shape.device_descriptor
        else "space-1 (global), with grid_constant mark routing it to .param"
    )
    role = "Source" if shape.direction == "load" else "Destination"
    other = "Destination" if shape.direction == "load" else "Source"
    rows = [
        SpaceRow(f"{role} tensor %{n.tensor}", "space-1 (global) at every stage"),
        SpaceRow(f"TMA descriptor %desc_{n.small}", mark),
        SpaceRow(f"{other} tile (SMEM)", "space-3 (shared) starting at Stage 3, allocated from global_smem"),
    ]
    if shape.direction == "load":
        rows.append(
            SpaceRow(f"Mbarrier slot %mbar_{n.small}", "space-3 (shared), 64-bit aligned, lives in global_smem")
        )
    rows.append(SpaceRow("Loop iterator / coordinates", "space-0 (generic register)"))
    return tuple(rows)
