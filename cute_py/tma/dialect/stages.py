"""The stages of one lowering before PTX: their traces, and three tables that follow one thing through all of them.

    1   cuda_tile    the tile view                        4   LLVM IR     the intrinsic calls
    2   nv_tileaa    the aliased copy with its witness    5   NVPTX MIR   the machine instructions
    3a  nv_tileas    the same, assembler-near             6   PTX, 7 SASS: `lowering`
    3   nv_tileas    after the rewrite: descriptor, barrier, asynchronous copy with its byte count

The stages are those of the TMA load walkthrough; what it does not walk, stores and reductions, is written by analogy.
Their texts are traces: stage 6 is the first that an assembler takes.

Coordinates are outermost first up to stage 3 and are reversed exactly once, from 3 to 4: inner axis first, as the
instruction takes them. The im2col offsets are at the head of the operand list in stage 4; in PTX they come after the
barrier. Stages 1, 2 and 3a name no descriptor, barrier or byte count: the element type and the tile imply the bytes. In
stage 3 the descriptor carries `tmaIdx`, and the copy `tx_count`: the bytes that this copy adds to its barrier, not the
sum over the barrier. A box that can't be encoded is split there, with a comment; the descriptor's box is then
the box of one instruction, and the copy stays one operation with the bytes of all its boxes. From stage 4 on the token
is the constant i32 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.tma.dialect.copy_shape import CopyShape, Witness, atom_name, mlir_type, swizzle_name

OUTER_FIRST = "outer-axis-first"
INNER_FIRST = "inner-axis-first"


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage of one lowering.

    number: "1" .. "7", with "3a" .. "3c" for the parts of the third. text: its trace. coordinates: their order and
    the names in it. tx_form, tx_carrier: how and where the transaction-byte count is held. checked: the diagnostics
    that its verifier gave (empty if the stage holds).
    """

    number: str
    name: str
    text: str
    coordinates: str = ""
    order: str = ""
    tx_form: str = ""
    tx_carrier: str = ""
    notes: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"Stage {self.number}: {self.name}"]
        if self.order:
            lines.append(f"  coordinates : {self.coordinates}, {self.order}")
        if self.tx_form:
            lines.append(f"  bytes       : {self.tx_form} ({self.tx_carrier})")
        lines += [f"  note        : {note}" for note in self.notes]
        lines += [f"  verifier    : {diagnostic}" for diagnostic in self.checked]
        return "\n".join([*lines, "", self.text])


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One row of the transaction-byte flow table: stage, form, carrier, source."""

    stage: str
    form: str
    carrier: str
    source: str


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One row of the coordinate-order table."""

    stage: str
    order: str
    why: str


@dataclass(frozen=True, slots=True)
class SpaceRow:
    """One row of the address-space trail."""

    operand: str
    trail: str


@dataclass(frozen=True, slots=True)
class Names:
    """The value names of one copy in all traces: `%a_view`, `%bm`, `%M`, ...

    small: the tensor's name in them. coords: of its axes, outermost first. inner: the coordinates of the instruction,
    reversed; gather4 and scatter4 name four rows.

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> names_of(copy_shape("load", (128, 128), "bf16")).coords
    ('%bm', '%bk')
    """

    small: str
    coords: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def outer_list(self) -> str:
        """`[%bm, %bk]`: outermost first, as all stages up to the third have it."""
        return f"[{_list(self.coords)}]"

    @property
    def inner_list(self) -> str:
        """`[%bk, %bm]`: innermost first, as the stages from the fourth on have it."""
        return f"[{_list(self.inner)}]"


def names_of(shape: CopyShape) -> Names:
    """The names for a copy, from its tensor's and its axes' names."""
    coords = tuple(f"%b{axis.lower()}" for axis in shape.axes)
    inner = coords[::-1]
    if shape.rows_by_index:
        inner = (inner[0], *(f"{inner[1]}_row{row}" for row in range(4)))
    return Names(shape.tensor.lower(), coords, inner)


def _list(items: Sequence[str] | Sequence[int]) -> str:
    return ", ".join(map(str, items))


def extents_text(shape: CopyShape) -> str:
    """`128x128xbf16`."""
    return "x".join([*map(str, shape.tile), mlir_type(shape.dtype)])


def _memref(shape: CopyShape) -> str:
    """The global tensor's type, of unknown extents."""
    return f"!nv_tileaa.memref<{'?x' * shape.rank}{mlir_type(shape.dtype)}>"


def _view(shape: CopyShape) -> str:
    """Shape and row-major strides: the innermost 1, then products of the inner sizes."""
    sizes = [f"%{axis}" for axis in shape.axes]
    strides = ["*".join(sizes[i:]) or "1" for i in range(1, shape.rank + 1)]
    return f"shape = [{_list(sizes)}], stride = [{_list(strides)}]"


def stage1_text(shape: CopyShape) -> str:
    """The cuda_tile trace: tensor view, partition view, token, load or store."""
    n, tile = names_of(shape), extents_text(shape)
    if shape.direction == "load":
        copy = f"%{n.small}_tile, %tok_{n.small} = cuda_tile.load_view_tko %{n.small}_part"
    else:
        copy = f"%tok_{n.small} = cuda_tile.store_view_tko %{n.small}_tile, %{n.small}_part"
    return (
        f"%{n.small}_view = cuda_tile.tensor_view %{shape.tensor}, {_view(shape)}\n"
        f": !cuda_tile.tensor_view<{tile}>\n"
        f"%{n.small}_part = cuda_tile.partition_view %{n.small}_view, tile = [{_list(shape.tile)}], "
        f"dim_map = [{_list(range(shape.rank))}]\n"
        f": !cuda_tile.partition_view<{tile}>\n"
        "%tok0 = cuda_tile.make_token : !cuda_tile.token\n"
        f"{copy}, {n.outer_list}, %tok0\n"
        f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
    )


def stage2_text(shape: CopyShape, witness: Witness) -> str:
    """The nv_tileaa trace: memref, address, the copy with its copy-atom witness."""
    n, memref = names_of(shape), _memref(shape)
    return (
        f"%{n.small}_ref = nv_tileaa.make_memref %{shape.tensor}, {_view(shape)},\n"
        "space = #nv_tileaa.global\n"
        f": {memref}\n"
        f"%off_{n.small} = nv_tileaa.addptr %{n.small}_ref, {n.outer_list}\n"
        f": {memref}\n"
    ) + tiled_copy_text(shape, witness, "nv_tileaa")


def tiled_copy_text(shape: CopyShape, witness: Witness, dialect: str) -> str:
    """The copy of stages 2 and 3a (the nv_tileas trace before the asynchronous rewrite): the operation renamed, the
    witness verbatim."""
    small, tensor = names_of(shape).small, f"tensor<{extents_text(shape)}>"
    if shape.direction == "load":
        copy = f"%{small}_tile, %tok_{small} = {dialect}.tiled_load %off_{small}, %tok0"
        types = f"{_memref(shape)} -> {tensor},"
    else:
        copy = f"%tok_{small} = {dialect}.tiled_store %{small}_tile, %off_{small}, %tok0"
        types = f"{tensor}, {_memref(shape)} ->"
    return (
        f"{copy}\n"
        f"{{ atom = #cute.copy_atom<{witness.name}>,\n"
        f"in_bounds = array<i1: {_list(('true',) * shape.rank)}>,\n"
        f"mem_semantic = #{dialect}<mem_semantic relaxed>,\n"
        f"mem_scope = #{dialect}<mem_scope cluster> }}\n"
        f": {types}\n"
        "!nv_tileaa.mem_token"
    )


def stage3_text(shape: CopyShape, tma_index: int = 0) -> str:
    """The four-operation sequence: descriptor, barrier slot, asynchronous copy (a store has no barrier). Phase 4 binds
    the descriptor."""
    n, tile, verb = names_of(shape), extents_text(shape), shape.direction
    atom = f"atom = #cute_nvgpu.atom_copy_field_tma{verb}<{atom_name(shape)}, {swizzle_name(shape)}>,\n"
    split = f"// ---- {shape.was_split}\n" if shape.was_split else ""
    descriptor = (
        "// ---- descriptor materialized by phase 4\n"
        f"{split}"
        f"%desc_{n.small} = nv_tileas.make_tiled_tma_desc %{n.small}_ref, box = [{_list(shape.instruction_box)}],\n"
        f"{atom}"
        f"tmaIdx = {tma_index} : i32\n"
        f": !nv_tileas.tma_desc<{tile}>\n"
    )
    desc, smem = f"%desc_{n.small}", f"%{n.small}_smem{n.outer_list}"
    desc_type, smem_type = f"!nv_tileas.tma_desc<{tile}>", f"!nv_tileas.smem<{tile}>"
    if verb == "load":
        before = (
            "// ---- mbarrier reserved by phase 6 (one slot, count=1, expecting one arrival)\n"
            f"%mbar_{n.small} = nv_tileas.alloc_mbarrier {{ count = 1 : i32 }}\n"
            ": !nv_tileas.mbarrier\n"
            "// ---- async TMA load: phase 5 emission\n"
        )
        operands, attribute = f"{desc}, {smem}, %mbar_{n.small}", f"tx_count = {shape.transaction_bytes} : i32,\n"
        first, last = f"{desc_type},\n{smem_type}", "!nv_tileas.mbarrier"
    else:
        before = f"// ---- async TMA {verb}: phase 5 emission (completion by bulk group, no mbarrier)\n"
        operands, attribute = f"{smem}, {desc}", f"red_kind = {shape.reduce_kind},\n" * (verb == "reduce")
        first, last = smem_type, desc_type
    return (
        f"{descriptor}{before}"
        f"%tok_{n.small} = nv_tileas.async.tiled_tma_{verb}\n"
        f"{operands}\n"
        f"{{ {atom}{attribute}"
        f"tmaIdx = {tma_index} : i32 }}\n"
        f": {first},\n"
        f"{_list(['index'] * shape.rank)},\n"
        f"{last}\n"
        "-> !nv_tileas.async"
    )


def stage3_legacy_text(shape: CopyShape, witness: Witness) -> str:
    """Stage 3 of a copy without TMA: cp.async becomes asynchronous, ldg stays as it is."""
    n, operation = names_of(shape), witness.row.stage3
    if operation == "nv_tileas.tiled_load":
        kept = f"the copy stays a synchronous tiled_{shape.direction}"
        return f"// ---- no rewrite: {witness.name} is no TMA atom, {kept}"
    return (
        f"%tok_{n.small} = {operation} %off_{n.small}, %{n.small}_smem{n.outer_list}\n"
        f"{{ atom = #cute.copy_atom<{witness.name}> }}\n"
        f": {_memref(shape)}, !nv_tileas.smem<{extents_text(shape)}>\n"
        "-> !nv_tileas.async"
    )


def _box_operands(shape: CopyShape, box: int, suffix: str = "") -> tuple[list[str], str, list[str]]:
    """For box number `box`: coordinate names inner first, the shared address, and the lines that compute them."""
    names = names_of(shape)
    address = f"%{names.small}_smem_{'dst' if shape.direction == 'load' else 'src'}"
    lines, coords = [], []
    for name, start in zip(names.inner, shape.instruction_origin(box), strict=True):
        coords.append(f"{name}{suffix}_{box}" if start else f"{name}{suffix}")
        if start:
            lines.append(f"{coords[-1]} = add i32 {name}{suffix}, {start}")
    if offset := shape.box_offset(box):
        lines.append(f"{address}_{box} = getelementptr i8, ptr addrspace(3) {address}, i32 {offset}")
        address = f"{address}_{box}"
    return coords, address, lines


def intrinsic_name(shape: CopyShape) -> str:
    """The intrinsic of stage 4: space pair and rank; im2col and the reduction in its name.

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> intrinsic_name(copy_shape("load", (128, 128), "bf16"))
    'llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.2d'
    """
    mode = "" if shape.mode == "tile" else "." + shape.mode.replace("::", ".")
    kind = f".reduce.{shape.reduce_kind}" if shape.direction == "reduce" else ""
    spaces = "shared.cluster.global" if shape.direction == "load" else "global.shared.cta"
    return f"llvm.nvvm.cp.async.bulk.tensor{kind}.{spaces}{mode}.{shape.rank}d"


def opcode_name(shape: CopyShape) -> str:
    """The machine opcode of stage 5: one per rank, mode, direction and options.

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> opcode_name(copy_shape("load", (128, 128), "bf16"))
    'CP_ASYNC_BULK_TENSOR_2D_SHARED_CLUSTER_GLOBAL_MBARRIER'
    """
    mode = "" if shape.mode == "tile" else "_" + shape.mode.upper().replace("::", "_")
    options = ("_MULTICAST" if shape.multicast > 1 else "") + ("_CACHE_HINT" if shape.cache_hint else "")
    kind = f"_REDUCE_{shape.reduce_kind.upper()}" if shape.direction == "reduce" else ""
    spaces = "SHARED_CLUSTER_GLOBAL_MBARRIER" if shape.direction == "load" else "GLOBAL_SHARED_CTA_BULK_GROUP"
    return f"CP_ASYNC_BULK_TENSOR{kind}_{shape.rank}D{mode}{options}_{spaces}"


def stage4_text(shape: CopyShape, tma_index: int = 0) -> str:
    """The LLVM IR trace: descriptor address, byte expectation, one call per box."""
    n, is_load = names_of(shape), shape.direction == "load"
    made = (
        "made on the device, in global memory" if shape.device_descriptor else "taken from the kernel's grid-constant"
    )
    descriptor = (
        f"ptr addrspace(1) %desc_{n.small}_ptr",
        f"{'source' if is_load else 'destination'}: TMA descriptor in global",
    )
    barrier = f"ptr addrspace(3) %mbar_{n.small}"
    parts = [
        f"; ---- descriptor pointer ({made}{'' if shape.device_descriptor else ' .param slot'})",
        f"%desc_{n.small}_ptr = call ptr addrspace(1) @llvm.nvvm.tma.get.descriptor.address(i32 {tma_index})",
    ]
    if is_load:
        parts += [
            "; ---- mbarrier publishes expected transaction-byte count",
            "call void @llvm.nvvm.mbarrier.arrive.expect_tx.shared(",
            f"{barrier}, i32 {shape.transaction_bytes})",
        ]
    spaces = "shared <- global" if is_load else "global <- shared"
    parts += [
        f"; ---- TMA bulk-tensor {shape.direction}: {spaces}, through the descriptor,",
        "; coordinate order reversed to inner-axis-first (column-major)",
    ]
    # The rows of gather4 and scatter4 are four instances of the outermost coordinate.
    before = n.coords if not shape.rows_by_index else (*n.coords, *n.coords[-1:] * 3)
    tail = [("i16 %mask", "multicast mask: bit i is CTA i")] * (shape.multicast > 1)
    tail += [("i64 %policy", "L2 cache policy")] * shape.cache_hint
    for box in range(shape.num_boxes):
        names, address, lines = _box_operands(shape, box, "_coord")
        places = ["inner-axis", *(f"axis {i} from the inside" for i in range(1, len(names) - 1)), "outer-axis"]
        rows = enumerate(zip(names, places, before, strict=False))  # of one coordinate, the inner axis
        coords = [(f"i32 {coord}", f"coord[{i}]: {place} (was {was})") for i, (coord, place, was) in rows]
        smem = (f"ptr addrspace(3) {address}", f"{'destination' if is_load else 'source'}: shared base address")
        if is_load:
            offsets = [(f"i16 {offset}", f"im2col offset[{i}]") for i, offset in enumerate(shape.im2col_offsets)]
            operands = [*offsets, smem, descriptor, *coords, (barrier, "completion barrier"), *tail]
        else:
            operands = [smem, descriptor, *coords, *tail]
        ends = [*[","] * (len(operands) - 1), ")"]
        called = [f"{operand}{end} ; {comment}" for (operand, comment), end in zip(operands, ends, strict=True)]
        parts += [*lines, f"call void @{intrinsic_name(shape)}(", *called]
    return "\n".join(parts if is_load else [*parts, "call void @llvm.nvvm.cp.async.bulk.commit.group()"])


def stage5_text(shape: CopyShape) -> str:
    """The machine-instruction trace; the token is gone, the byte count is an immediate."""
    n, is_load = names_of(shape), shape.direction == "load"
    if is_load:
        lines = [
            "; --- mbarrier arrives with expected transaction byte count",
            f"MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_{n.small}:b64, {shape.transaction_bytes}",
            "; --- TMA load: shared destination, global source via descriptor, mbarrier completion",
        ]
    else:
        spaces = "global destination via descriptor, shared source"
        lines = [f"; --- TMA {shape.direction}: {spaces}, bulk-group completion"]
    rest = ["%mask:b16"] * (shape.multicast > 1) + ["%policy:b64"] * shape.cache_hint
    if is_load:
        rest = [f"%mbar_{n.small}", *map(str, shape.im2col_offsets), *rest]
    for box in range(shape.num_boxes):
        coords, address, _ = _box_operands(shape, box)
        lines += [
            opcode_name(shape),
            f"{address}:b64, ; {'destination' if is_load else 'source'} shared address (b64 SMEM ptr)",
            f"%desc_{n.small}:b64, ; descriptor address (b64 global ptr)",
            f"{_list([f'{coord}:b32' for coord in coords])}{',' if rest else ''} ; coordinates, inner-axis first",
        ]
        if rest:
            lines.append(_list(rest) + (" ; completion barrier (b64 SMEM ptr)" if is_load else ""))
    return "\n".join(["bb.loop:", *lines, *([] if is_load else ["CP_ASYNC_BULK_COMMIT_GROUP"])])


def transaction_flow(shape: CopyShape) -> tuple[FlowRow, ...]:
    """The byte count through the stages: implicit up to 2, an attribute at 3, then an operand.

    Source: TMA load walkthrough, transaction-byte count. A store has none: its completion is a bulk group.
    """
    if shape.direction != "load":
        return ()
    tile, derived = extents_text(shape), "derived at lower time"
    attribute = f"tx_count = {shape.transaction_bytes} : i32 on async.tiled_tma_load"
    operand = "operand to MBARRIER_ARRIVE_EXPECT_TX_SHARED"
    argument = "argument to llvm.nvvm.mbarrier.arrive.expect_tx.shared"
    literal = "last operand to mbarrier.arrive.expect_tx.shared.b64"
    return (
        FlowRow("1 — cuda_tile", "implicit", f"tile shape <{tile}>", derived),
        FlowRow("2 — nv_tileaa", "implicit", f"tensor shape <{tile}> plus CopyAtom witness", derived),
        FlowRow("3 — nv_tileas", "explicit attr", attribute, "computed by LowerTMALoadStoreToAsync phase 5"),
        FlowRow("4 — LLVM IR", "explicit i32 operand", argument, "folded from tx_count attribute"),
        FlowRow("5 — NVPTX MIR", "explicit immediate", operand, "selected through ISelDAG"),
        FlowRow("6 — PTX text", "explicit literal", literal, "rendered by AsmPrinter"),
    )


def coordinate_orders(shape: CopyShape) -> tuple[OrderRow, ...]:
    """The coordinate order at each stage; it turns round once, between 3 and 4."""
    n, verb = names_of(shape), shape.direction
    outer, inner = f"{OUTER_FIRST} {n.outer_list}", f"{INNER_FIRST} {n.inner_list}"
    side, mnemonic = ("load", "cp") if verb == "load" else ("store", "cp.reduce" if verb == "reduce" else "cp")
    rows = (
        (f"1 — cuda_tile.{side}_view_tko", outer, "matches Python-style tile indexing in the frontend bytecode"),
        (f"2 — nv_tileaa.tiled_{side}", outer, "preserved verbatim through Part-B rewrite for SSA-edge stability"),
        (f"3 — nv_tileas.async.tiled_tma_{verb}", outer, "layout-assignment writes coordinates in row-major order"),
        (f"4 — {intrinsic_name(shape).removeprefix('llvm.')}", inner, "matches the PTX instruction operand order"),
        (f"5 — {opcode_name(shape)}", inner, "survives ISel verbatim"),
        (f"6 — {mnemonic}.async.bulk.tensor", inner, "PTX consumes inner-axis-first"),
    )
    return tuple(OrderRow(*row) for row in rows)


def address_spaces(shape: CopyShape) -> tuple[SpaceRow, ...]:
    """The address space of each operand at each stage."""
    small, is_load = names_of(shape).small, shape.direction == "load"
    mark = "made on the device" if shape.device_descriptor else "with grid_constant mark routing it to .param"
    ends = ("Source", "Destination") if is_load else ("Destination", "Source")
    barrier = SpaceRow(f"Mbarrier slot %mbar_{small}", "space-3 (shared), 64-bit aligned, lives in global_smem")
    return (
        SpaceRow(f"{ends[0]} tensor %{shape.tensor}", "space-1 (global) at every stage"),
        SpaceRow(f"TMA descriptor %desc_{small}", f"space-1 (global), {mark}"),
        SpaceRow(f"{ends[1]} tile (SMEM)", "space-3 (shared) starting at Stage 3, allocated from global_smem"),
        *([barrier] if is_load else []),
        SpaceRow("Loop iterator / coordinates", "space-0 (generic register)"),
    )
