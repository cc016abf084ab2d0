"""Stages 4 and 5 of a TMA copy: the intrinsic calls and the machine instructions.

Here the coordinates are reversed, once: inner axis first, as the instruction takes them. The im2col offsets stand at
the head of the operand list in stage 4; in PTX they come after the barrier. The token becomes the constant i32 0.

One stage of a lowering: what it is called, its text, the order of its coordinates, where the byte count is.

The stages are those of the TMA load walkthrough. Their texts are traces: stage 6 is the first that an assembler
takes. Coordinates are outermost first up to stage 3 and are reversed exactly once, from 3 to 4.

Stages 1, 2 and 3a of a copy: tile view, aliased copy with its witness, the same in the assembler-near dialect.

None of them names a descriptor, a barrier or a byte count; the element type and the tile imply the bytes. The store is
written by analogy with the load: the walkthrough walks a load only.

Stage 3 of a TMA copy after the rewrite: descriptor, barrier, asynchronous copy with its byte count.

The descriptor carries `tmaIdx`, the copy carries `tx_count`: the bytes that this copy adds to its barrier, not the sum
over the barrier. A box that can't be encoded is split here and the text says so; the descriptor's box is then the box
of one instruction, and the copy stays one operation with the bytes of the whole tile.
"""

from __future__ import annotations

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


MAX_TILE_ELEMENTS = 16_777_216
"""Elements of one tile: the ceiling of the tile dialect (16 million)."""


@dataclass(frozen=True, slots=True)
class Names:
    """The value names of one copy in all traces: `%a_view`, `%bm`, `%M`, ...

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> names_of(copy_shape("load", (128, 128), "bf16")).coords
    ('%bm', '%bk')
    """

    tensor: str
    small: str
    sizes: tuple[str, ...]
    coords: tuple[str, ...]

    def coord_list(self) -> str:
        """`[%bm, %bk]`: outermost first, as all stages up to the third have it."""
        return f"[{', '.join(self.coords)}]"

    def inner_first(self, shape: CopyShape) -> list[str]:
        """The coordinates of the instruction: reversed; gather4 and scatter4 name four rows."""
        inner = list(reversed(self.coords))
        return [inner[0], *(f"{inner[1]}_row{row}" for row in range(4))] if shape.rows_by_index else inner


def names_of(shape: CopyShape) -> Names:
    """The names for a copy, from its tensor's and its axes' names."""
    small = shape.tensor.lower()
    return Names(
        shape.tensor,
        small,
        tuple(f"%{axis}" for axis in shape.axes),
        tuple(f"%b{axis.lower()}" for axis in shape.axes),
    )


def extents_text(shape: CopyShape) -> str:
    """`128x128xbf16`."""
    return "x".join([*(str(extent) for extent in shape.tile), mlir_type(shape.dtype)])


def _strides(names: Names) -> str:
    """Row-major strides in words: the innermost 1, then products of the inner sizes."""
    strides = ["1"]
    for position in range(len(names.sizes) - 1, 0, -1):
        inner = names.sizes[position:]
        strides.append("*".join(inner))
    return ", ".join(reversed(strides))


def _list(items: tuple[object, ...]) -> str:
    return ", ".join(str(item) for item in items)


def stage1_text(shape: CopyShape) -> str:
    """The cuda_tile trace: tensor view, partition view, token, load or store."""
    n, tile = names_of(shape), extents_text(shape)
    dims = _list(tuple(range(shape.rank)))
    head = (
        f"%{n.small}_view = cuda_tile.tensor_view %{n.tensor}, shape = [{_list(n.sizes)}], stride = [{_strides(n)}]\n"
        f": !cuda_tile.tensor_view<{tile}>\n"
        f"%{n.small}_part = cuda_tile.partition_view %{n.small}_view, tile = [{_list(shape.tile)}], "
        f"dim_map = [{dims}]\n"
        f": !cuda_tile.partition_view<{tile}>\n"
        "%tok0 = cuda_tile.make_token : !cuda_tile.token\n"
    )
    if shape.direction == "load":
        return head + (
            f"%{n.small}_tile, %tok_{n.small} = cuda_tile.load_view_tko %{n.small}_part, {n.coord_list()}, %tok0\n"
            f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
        )
    return head + (
        f"%tok_{n.small} = cuda_tile.store_view_tko %{n.small}_tile, %{n.small}_part, {n.coord_list()}, %tok0\n"
        f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
    )


def _tiled_op(shape: CopyShape, witness: Witness, dialect: str) -> str:
    n, tile = names_of(shape), extents_text(shape)
    memref = "x".join(["?"] * shape.rank + [mlir_type(shape.dtype)])
    in_bounds = _list(("true",) * shape.rank)
    attributes = (
        f"{{ atom = #cute.copy_atom<{witness.name}>,\n"
        f"in_bounds = array<i1: {in_bounds}>,\n"
        f"mem_semantic = #{dialect}<mem_semantic relaxed>,\n"
        f"mem_scope = #{dialect}<mem_scope cluster> }}\n"
    )
    if shape.direction == "load":
        return (
            f"%{n.small}_tile, %tok_{n.small} = {dialect}.tiled_load %off_{n.small}, %tok0\n"
            f"{attributes}"
            f": !nv_tileaa.memref<{memref}> -> tensor<{tile}>,\n"
            "!nv_tileaa.mem_token"
        )
    return (
        f"%tok_{n.small} = {dialect}.tiled_store %{n.small}_tile, %off_{n.small}, %tok0\n"
        f"{attributes}"
        f": tensor<{tile}>, !nv_tileaa.memref<{memref}> ->\n"
        "!nv_tileaa.mem_token"
    )


def stage2_text(shape: CopyShape, witness: Witness) -> str:
    """The nv_tileaa trace: memref, address, the copy with its copy-atom witness."""
    n = names_of(shape)
    memref = "x".join(["?"] * shape.rank + [mlir_type(shape.dtype)])
    return (
        f"%{n.small}_ref = nv_tileaa.make_memref %{n.tensor}, shape = [{_list(n.sizes)}], stride = [{_strides(n)}],\n"
        "space = #nv_tileaa.global\n"
        f": !nv_tileaa.memref<{memref}>\n"
        f"%off_{n.small} = nv_tileaa.addptr %{n.small}_ref, {n.coord_list()}\n"
        f": !nv_tileaa.memref<{memref}>\n"
    ) + _tiled_op(shape, witness, "nv_tileaa")


def stage3a_text(shape: CopyShape, witness: Witness) -> str:
    """The nv_tileas trace before the asynchronous rewrite: the operation renamed, the witness verbatim."""
    return _tiled_op(shape, witness, "nv_tileas")


def _atom(shape: CopyShape) -> str:
    kind = {"load": "tmaload", "store": "tmastore", "reduce": "tmareduce"}[shape.direction]
    return f"#cute_nvgpu.atom_copy_field_{kind}<{atom_name(shape)}, {swizzle_name(shape)}>"


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

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
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

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
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
