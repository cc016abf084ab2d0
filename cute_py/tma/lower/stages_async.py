"""Stage 3 of a TMA copy after the rewrite: descriptor, barrier, asynchronous copy with its byte count.

The descriptor carries `tmaIdx`, the copy carries `tx_count`: the bytes that this copy adds to its barrier, not the sum
over the barrier. A box that can't be encoded is split here and the text says so; the descriptor's box is then the box
of one instruction, and the copy stays one operation with the bytes of the whole tile.
"""

from __future__ import annotations

from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.stages_tile import extents_text, names_of
from cute_py.tma.lower.witness import Witness, field_atom, mlir_type


def _atom(shape: CopyShape) -> str:
    kind = {"load": "tmaload", "store": "tmastore", "reduce": "tmareduce"}[shape.direction]
    return f"#cute_nvgpu.atom_copy_field_{kind}<{field_atom(shape)}>"


def descriptor_text(shape: CopyShape, tma_index: int) -> str:
    """`make_tiled_tma_desc`, as phase 4 binds it."""
    n = names_of(shape)
    box = ", ".join(str(extent) for extent in shape.instruction_box)
    split = f"// ---- {shape.was_split}\n" if shape.was_split else ""
    return (
        "// ---- descriptor materialized by phase 4\n"
        f"{split}"
        f"%desc_{n.small} = nv_tileas.make_tiled_tma_desc %{n.small}_ref, box = [{box}],\n"
        f"atom = {_atom(shape)},\n"
        f"tmaIdx = {tma_index} : i32\n"
        f": !nv_tileas.tma_desc<{extents_text(shape)}>\n"
    )


def stage3_text(shape: CopyShape, tma_index: int = 0) -> str:
    """The four-operation sequence: descriptor, barrier slot, asynchronous copy (a store has no barrier)."""
    n, tile = names_of(shape), extents_text(shape)
    desc, smem = f"%desc_{n.small}", f"%{n.small}_smem"
    indices = ", ".join(["index"] * shape.rank)
    if shape.direction == "load":
        return descriptor_text(shape, tma_index) + (
            "// ---- mbarrier reserved by phase 6 (one slot, count=1, expecting one arrival)\n"
            f"%mbar_{n.small} = nv_tileas.alloc_mbarrier {{ count = 1 : i32 }}\n"
            ": !nv_tileas.mbarrier\n"
            "// ---- async TMA load: phase 5 emission\n"
            f"%tok_{n.small} = nv_tileas.async.tiled_tma_load\n"
            f"{desc}, {smem}{n.coord_list()}, %mbar_{n.small}\n"
            f"{{ atom = {_atom(shape)},\n"
            f"tx_count = {shape.transaction_bytes} : i32,\n"
            f"tmaIdx = {tma_index} : i32 }}\n"
            f": !nv_tileas.tma_desc<{tile}>,\n"
            f"!nv_tileas.smem<{tile}>,\n"
            f"{indices},\n"
            "!nv_tileas.mbarrier\n"
            "-> !nv_tileas.async"
        )
    verb = "store" if shape.direction == "store" else "reduce"
    kind = f"red_kind = {shape.reduce_kind},\n" if shape.direction == "reduce" else ""
    return descriptor_text(shape, tma_index) + (
        f"// ---- async TMA {verb}: phase 5 emission (completion by bulk group, no mbarrier)\n"
        f"%tok_{n.small} = nv_tileas.async.tiled_tma_{verb}\n"
        f"{smem}{n.coord_list()}, {desc}\n"
        f"{{ atom = {_atom(shape)},\n"
        f"{kind}"
        f"tmaIdx = {tma_index} : i32 }}\n"
        f": !nv_tileas.smem<{tile}>,\n"
        f"{indices},\n"
        f"!nv_tileas.tma_desc<{tile}>\n"
        "-> !nv_tileas.async"
    )


def stage3_legacy_text(shape: CopyShape, witness: Witness) -> str:
    """Stage 3 of a copy without TMA: cp.async becomes asynchronous, ldg stays as it is."""
    n, tile = names_of(shape), extents_text(shape)
    if witness.row.stage3 == "nv_tileas.tiled_load":
        return (
            f"// ---- no rewrite: {witness.name} is no TMA atom, the copy stays a synchronous tiled_{shape.direction}"
        )
    return (
        f"%tok_{n.small} = {witness.row.stage3} %off_{n.small}, %{n.small}_smem{n.coord_list()}\n"
        f"{{ atom = #cute.copy_atom<{witness.name}> }}\n"
        f": !nv_tileaa.memref<{'x'.join(['?'] * shape.rank)}x{mlir_type(shape.dtype)}>, !nv_tileas.smem<{tile}>\n"
        "-> !nv_tileas.async"
    )
