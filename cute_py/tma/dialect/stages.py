"""Stages 1 to 5 of a lowering as traces, and three tables that follow one property through all stages.

    1   cuda_tile    the tile view                        4   LLVM IR     the intrinsic calls
    2   nv_tileaa    the aliased copy with its witness    5   NVPTX MIR   the machine instructions
    3a  nv_tileas    the same, assembler-near             6   PTX, 7 SASS: `lowering`
    3   nv_tileas    after the rewrite: descriptor, barrier, asynchronous copy with its byte count

The stages follow the TMA load walkthrough, which does not cover stores and reductions; their stages are defined by
analogy. Traces are for reading: stage 6 is the first text that an assembler accepts.

Coordinates are outermost first up to stage 3. Between stages 3 and 4 they are reversed, once, to the order of the
instruction, innermost first. The im2col offsets are the first operands in stage 4; in PTX they follow the barrier.
Stages 1, 2 and 3a name no descriptor, barrier or byte count, because the element type and the tile imply the bytes. In
stage 3 the descriptor has the attribute `tmaIdx`, and the copy has the attribute `tx_count`: the bytes that this copy
adds to its barrier, not the sum over all copies of the barrier. The descriptor has the box of one instruction, but the
copy is still one operation with the bytes of all its boxes. From stage 4 on, no instruction takes a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from cute_py.argument_checks import expect
from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.ptx.check import examine
from cute_py.ptx.instruction import coordinate_count, offset_count
from cute_py.targets import NEWEST_VERSION, architecture
from cute_py.tma.descriptor.violations import listed_violations
from cute_py.tma.dialect.diagnostics import (
    broken,
    check_atom,
    check_box_row,
    check_memory_order,
    check_operands,
    check_padding,
    check_pointer,
    check_row,
    check_tile,
    mlir_type,
    short_repr,
)
from cute_py.tma.dialect.legacy_copy import granule_bytes
from cute_py.tma.dialect.rebind import RebindInstruction, check_host_only, mutator, mutator_constraints, rebind_sequence
from cute_py.tma.dialect.traced_copy import TracedCopy

OUTER_FIRST = "outer-axis-first"
INNER_FIRST = "inner-axis-first"


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a lowering.

    number: "1" .. "7", and "3a" .. "3c" for the parts of stage 3. text: the trace. coordinates, order: the names of the
    coordinates, and their order. tx_form, tx_carrier: the form of the byte count, and the object that has it. checked:
    the diagnostics of the stage's verifier; empty if the stage is valid.
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

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One row of the transaction-byte flow table: the form, carrier and source of the byte count at a stage."""

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

    small: the tensor's name in lower case. coords: the coordinates of its axes, outermost first. inner: the coordinates
    of the instruction, innermost first; for gather4 and scatter4, these include four rows.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> from cute_py.tma.dialect.traced_copy import trace_copy
    >>> value_names(trace_copy(TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128)))).coords
    ('%bm', '%bk')
    """

    small: str
    coords: tuple[str, ...]
    inner: tuple[str, ...]

    @property
    def outer_list(self) -> str:
        """The coordinates outermost first, as in stages 1 to 3: `[%bm, %bk]`."""
        return f"[{_list(self.coords)}]"

    @property
    def inner_list(self) -> str:
        """The coordinates innermost first, as from stage 4 on: `[%bk, %bm]`."""
        return f"[{_list(self.inner)}]"


def value_names(copy: TracedCopy) -> Names:
    """Return the value names of a copy, made from the names of its tensor and axes."""
    coords = tuple([f"%b{axis.lower()}" for axis in copy.view.outer_first(copy.view.axes)])
    inner = coords[::-1]
    if copy.rows_by_index:
        inner = (inner[0], *(f"{inner[1]}_row{row}" for row in range(4)))
    return Names(copy.tensor.lower(), coords, inner)


def _list(items: Sequence[str] | Sequence[int]) -> str:
    return ", ".join(map(str, items))


def extents_text(copy: TracedCopy) -> str:
    """Format the extents of a tile and its element type: `128x128xbf16`."""
    return "x".join([*map(str, copy.tile), mlir_type(copy.dtype)])


def _memref(copy: TracedCopy) -> str:
    """Format the memref type of the global tensor; extents that are not static print as `?`."""
    extents = ["?" if size.startswith("%") else size for size in copy.view.sizes]
    return f"!nv_tileaa.memref<{'x'.join([*extents, mlir_type(copy.dtype)])}>"


def _view(copy: TracedCopy) -> str:
    return f"shape = [{_list(copy.view.sizes)}], stride = [{_list(copy.view.strides)}]"


def stage1_text(copy: TracedCopy) -> str:
    """Write the cuda_tile trace: tensor view, partition view, token, load or store."""
    n = value_names(copy)
    tile = extents_text(copy)
    if copy.operation == "load":
        moved = f"%{n.small}_tile, %tok_{n.small} = cuda_tile.load_view_tko %{n.small}_part"
    else:
        moved = f"%tok_{n.small} = cuda_tile.store_view_tko %{n.small}_tile, %{n.small}_part"
    return (
        f"%{n.small}_view = cuda_tile.tensor_view %{copy.tensor}, {_view(copy)}\n"
        f": !cuda_tile.tensor_view<{tile}>\n"
        f"%{n.small}_part = cuda_tile.partition_view %{n.small}_view, tile = [{_list(copy.tile)}], "
        f"dim_map = [{_list(copy.view.dim_map)}]\n"
        f": !cuda_tile.partition_view<{tile}>\n"
        "%tok0 = cuda_tile.make_token : !cuda_tile.token\n"
        f"{moved}, {n.outer_list}, %tok0\n"
        f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
    )


GENERATIONS: Final = {
    "sm70": "nv_tileas.tiled_load",
    "sm80": "nv_tileas.async.cp_async",
    "sm90": "nv_tileas.async.tiled_tma_load",
}
"""First architecture of each generation of copy hardware -> the operation of a load at stage 3.

Source: TMA load walkthrough, capability cross-check. It lists sm_90a, sm_100 and sm_120 for TMA; sm_90 and every newer
architecture has the instruction.
"""


def witness_of(copy: TracedCopy, arch: str, allow_tma: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return the witness (the name of the copy atom) of a copy on an architecture, and the reasons for it.

    The witness names a family of instructions; multicast, cache hint and im2col select among their PTX forms.

    Args:
        arch: "sm_70" .. "sm_121a". allow_tma: the attribute of the copy; False falls back to plain loads.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> from cute_py.tma.dialect.traced_copy import trace_copy
    >>> witness_of(trace_copy(TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128))), "sm_90a")[0]
    'sm90_tma_load_2d_bf16'

    Raises:
        InvalidValueError: the architecture does not exist.
    """
    target, element = architecture(arch), mlir_type(copy.dtype)
    plain = f"sm70_ldg_{8 * granule_bytes(copy, 'ldg')}_{element}"
    reasons = [f"{arch}: compute capability {target.number // 10}.{target.number % 10}, {target.chip}"]
    if target.number < 80:
        return plain, (*reasons, "no TMA and no cp.async: vector loads through registers")
    if target.number < 90:
        one = "no TMA before sm_90: cp.async, one 4-byte word per thread and instruction"
        return f"sm80_cp_async_4_{element}", (*reasons, one)
    blockers = [] if expect(allow_tma, bool, "allow_tma") else ["allow_tma = false"]
    if check_box_row(copy.box[-1], copy.dtype.bits):
        row = f"the innermost box extent is {copy.box[-1] * copy.dtype.bits} bits"
        blockers.append(f"{row}; must be a multiple of 16 bytes")
    if blockers:
        reasons += [*(f"not TMA: {blocker}" for blocker in blockers), "falls back to plain ldg"]
        return plain, tuple(reasons)
    reasons.append("the tile meets the TMA eligibility rules: 16-byte rows, global source")
    if broken_rules := len(check_map_rules(copy, arch)):
        reasons.append(f"the tensor map breaks {counted(broken_rules, 'rule')}, which stage 3b names")
    return f"sm90_tma_{copy.atom_name}", tuple(reasons)


def stage2_text(copy: TracedCopy, witness: str) -> str:
    """Write the nv_tileaa trace: memref, address, and the copy with its copy-atom witness."""
    n, memref = value_names(copy), _memref(copy)
    return (
        f"%{n.small}_ref = nv_tileaa.make_memref %{copy.tensor}, {_view(copy)},\n"
        "space = #nv_tileaa.global\n"
        f": {memref}\n"
        f"%off_{n.small} = nv_tileaa.addptr %{n.small}_ref, {n.outer_list}\n"
        f": {memref}\n"
    ) + tiled_copy_text(copy, witness, "nv_tileaa")


def tiled_copy_text(copy: TracedCopy, witness: str, dialect: str) -> str:
    """Write the copy of stage 2 or 3a. The stages differ in the name of the operation; the witness is the same."""
    small, tensor = value_names(copy).small, f"tensor<{extents_text(copy)}>"
    if copy.direction == "load":
        moved = f"%{small}_tile, %tok_{small} = {dialect}.tiled_load %off_{small}, %tok0"
        types = f"{_memref(copy)} -> {tensor},"
    else:
        moved = f"%tok_{small} = {dialect}.tiled_store %{small}_tile, %off_{small}, %tok0"
        types = f"{tensor}, {_memref(copy)} ->"
    return (
        f"{moved}\n"
        f"{{ atom = #cute.copy_atom<{witness}>,\n"
        f"in_bounds = array<i1: {_list([str(inside).lower() for inside in copy.in_bounds])}>,\n"
        f"mem_semantic = #{dialect}<mem_semantic {copy.mem_semantic}>,\n"
        f"mem_scope = #{dialect}<mem_scope cluster> }}\n"
        f": {types}\n"
        "!nv_tileaa.mem_token"
    )


@dataclass(frozen=True, slots=True)
class Replacement:
    """One step of a rebind in the traces: its instruction, and the value that it writes."""

    step: RebindInstruction
    value: str
    value_type: str


def rebind_of(copy: TracedCopy) -> tuple[Replacement, ...]:
    """Return the steps that rebind a device descriptor, then the consumer's acquire; () for a host descriptor.

    With multicast, the fences have the scope gpu, because several CTAs read the map.
    """
    if not copy.device or check_host_only(copy):
        return ()
    n, view, bits = value_names(copy), copy.view, copy.dtype.bits
    sequence = rebind_sequence(copy.rank, scope="gpu" if copy.multicast > 1 else "cta", seed_copy=True)
    sizes, strides = view.outer_first(view.sizes)[::-1], view.outer_first(view.strides)[::-1]
    found = []
    for step in (*sequence.steps, replace(sequence.steps[1], role="the consumer's acquire")):
        value, value_type = "", ""
        if step.field == "global_address":
            value, value_type = f"%{copy.tensor}", "i64"
        elif step.field == "global_dim":
            value, value_type = sizes[step.ordinal or 0], "i32"
        elif step.field:
            stride = strides[(step.ordinal or 0) + 1]
            known = not stride.startswith("%")
            value = str(int(stride) * bits // 8) if known else f"%{n.small}_stride{(step.ordinal or 0) + 1}"
            value_type = "i64"
        found.append(Replacement(step, value, value_type))
    return tuple(found)


def stage3_text(copy: TracedCopy) -> str:
    """Write stage 3: the descriptor, the replacements of a device descriptor, a load's barrier slot, and the copy."""
    n, tile, verb = value_names(copy), extents_text(copy), copy.direction
    atom = f"atom = #cute_nvgpu.atom_copy_field_tma{verb}<{copy.atom_name}, {copy.swizzle_name}>,\n"
    descriptor = (
        "// ---- descriptor materialized by phase 4\n"
        f"%desc_{n.small} = nv_tileas.make_tiled_tma_desc %{n.small}_ref, box = [{_list(copy.box)}],\n"
        f"{atom}"
        "tmaIdx = 0 : i32\n"
        f": !nv_tileas.tma_desc<{tile}>\n"
    )
    desc, smem = f"%desc_{n.small}", f"%{n.small}_smem{n.outer_list}"
    if rebind_of(copy):
        descriptor += "// ---- descriptor made on the device: its slot is rebound before the copy\n"
        descriptor += "".join(f"{line}\n" for line in rebind_lines(copy))
    desc_type, smem_type = f"!nv_tileas.tma_desc<{tile}>", f"!nv_tileas.smem<{tile}>"
    if verb == "load":
        before = (
            "// ---- mbarrier reserved by phase 6 (one slot, count=1, expecting one arrival)\n"
            f"%mbar_{n.small} = nv_tileas.alloc_mbarrier {{ count = 1 : i32 }}\n"
            ": !nv_tileas.mbarrier\n"
            "// ---- async TMA load: phase 5 emission\n"
        )
        operands, attribute = f"{desc}, {smem}, %mbar_{n.small}", f"tx_count = {copy.transaction_bytes} : i32,\n"
        first, last = f"{desc_type},\n{smem_type}", "!nv_tileas.mbarrier"
    else:
        before = f"// ---- async TMA {verb}: phase 5 emission (completion by bulk group, no mbarrier)\n"
        operands, attribute = f"{smem}, {desc}", f"red_kind = {copy.reduce_kind},\n" * (verb == "reduce")
        first, last = smem_type, desc_type
    return (
        f"{descriptor}{before}"
        f"%tok_{n.small} = nv_tileas.async.tiled_tma_{verb}\n"
        f"{operands}\n"
        f"{{ {atom}{attribute}"
        "tmaIdx = 0 : i32 }\n"
        f": {first},\n"
        f"{_list(['index'] * copy.rank)},\n"
        f"{last}\n"
        "-> !nv_tileas.async"
    )


def rebind_lines(copy: TracedCopy) -> list[str]:
    """Write the steps of a rebind at stage 3, one per line."""
    lines = []
    for made in rebind_of(copy):
        value = f", {made.value} : {made.value_type}" if made.value else ""
        name = made.step.text.split()[0].rstrip(";")
        lines.append(f"nv_tileas.{name} %desc_{value_names(copy).small}{_ordinal(made.step)}{value}")
    return lines


def _ordinal(step: RebindInstruction) -> str:
    return "" if step.ordinal is None else f"[{step.ordinal}]"


def stage3_legacy_text(copy: TracedCopy, witness: str) -> str:
    """Write stage 3 of a copy without TMA: cp.async becomes asynchronous, ldg stays unchanged."""
    n, operation = value_names(copy), GENERATIONS[witness[:4]]
    if operation == "nv_tileas.tiled_load":
        kept = f"the copy stays a synchronous tiled_{copy.direction}"
        return f"// ---- no rewrite: {witness} is not a TMA atom, {kept}"
    return (
        f"%tok_{n.small} = {operation} %off_{n.small}, %{n.small}_smem{n.outer_list}\n"
        f"{{ atom = #cute.copy_atom<{witness}> }}\n"
        f": {_memref(copy)}, !nv_tileas.smem<{extents_text(copy)}>\n"
        "-> !nv_tileas.async"
    )


@dataclass(frozen=True, slots=True)
class BoxOperands:
    """The coordinate and shared-address operands of the instruction for box number `box`, without their `%`.

    Coordinates are innermost first. `origins` and `offset` are the values that the box adds to the tile's operands.
    """

    box: int
    coords: tuple[str, ...]
    origins: tuple[int, ...]
    address: str
    offset: int

    def moved(self, coordinate: str, address: str) -> list[str]:
        """Write an instruction for each operand that differs from the tile's. In the format strings, {0} is the
        operand, {1} the tile's operand, and {2} the number to add."""
        rows = [(coordinate, name, start) for name, start in zip(self.coords, self.origins, strict=True)]
        rows.append((address, self.address, self.offset))
        return [form.format(name, name.removesuffix(f"_{self.box}"), added) for form, name, added in rows if added]


def box_operands(copy: TracedCopy, box: int, suffix: str = "") -> BoxOperands:
    """Return the operands of box number `box`; `suffix` comes after each coordinate's name."""
    origins, offset, inner = copy.instruction_origin(box), copy.offsets[box], value_names(copy).inner
    if copy.rows_by_index:  # each row has its own index
        inner = (inner[0], *(f"{value_names(copy).coords[0]}_row{copy.origins[box][0] + row}" for row in range(4)))
    places = zip(inner, origins, strict=True)
    coords = [f"{name[1:]}{suffix}{f'_{box}' if start else ''}" for name, start in places]
    address = f"smem_{'dst' if copy.direction == 'load' else 'src'}"
    return BoxOperands(box, tuple(coords), origins, f"{address}_{box}" if offset else address, offset)


def im2col_offset_texts(copy: TracedCopy) -> tuple[str, ...]:
    """Return an im2col load's offsets as integers or names, W first; im2col::w modes have halo and offset."""
    if copy.im2col_offsets or copy.direction != "load":
        return tuple(map(str, copy.im2col_offsets))
    count = offset_count({"dim": f"{copy.rank}d", "mode": copy.mode})
    names = "whd" if copy.mode == "im2col" else ("halo", "w")
    return tuple([f"%off_{name}" for name in names[:count]])


def intrinsic_name(copy: TracedCopy) -> str:
    """Return the name of the intrinsic of stage 4.

    The name of a load has both memory spaces, the rank, and im2col for an im2col load. Stores and reductions have the
    names on the TMA emission page.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> from cute_py.tma.dialect.traced_copy import trace_copy
    >>> intrinsic_name(trace_copy(TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128))))
    'llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global.2d'
    """
    if copy.direction == "load":
        mode = "" if copy.mode == "tile" else "." + copy.mode.replace("::", ".")
        return f"llvm.nvvm.cp.async.bulk.tensor.shared.cluster.global{mode}.{copy.rank}d"
    kind = f"reduce.{copy.reduce_kind}" if copy.direction == "reduce" else "s2g"
    mode = copy.mode.removesuffix("_no_offs").replace("::", ".")
    return f"llvm.nvvm.cp.async.bulk.tensor.{kind}.{mode}.{copy.rank}d"


def operand_count(copy: TracedCopy) -> int:
    """Count the operands that a copy's intrinsic declares: two addresses, the coordinates, a load's barrier and im2col
    offsets, and the mask and policy if the copy has them."""
    form = {"dim": f"{copy.rank}d", "mode": copy.mode}
    load = 1 + offset_count(form) if copy.direction == "load" else 0
    return 2 + coordinate_count(form) + load + (copy.multicast > 1) + copy.cache_hint


def opcode_name(copy: TracedCopy) -> str:
    """Return the machine opcode of stage 5. There is one opcode per rank, mode, direction and set of options.

    >>> from cute_py.tma.descriptor.request import TensorMapTiled
    >>> from cute_py.tma.dialect.traced_copy import trace_copy
    >>> opcode_name(trace_copy(TensorMapTiled(9, 4096, (512, 512), (1024,), (64, 128))))
    'CP_ASYNC_BULK_TENSOR_2D_SHARED_CLUSTER_GLOBAL_MBARRIER'
    """
    mode = "" if copy.mode == "tile" else "_" + copy.mode.upper().replace("::", "_")
    options = ("_MULTICAST" if copy.multicast > 1 else "") + ("_CACHE_HINT" if copy.cache_hint else "")
    kind = f"_REDUCE_{copy.reduce_kind.upper()}" if copy.direction == "reduce" else ""
    spaces = "SHARED_CLUSTER_GLOBAL_MBARRIER" if copy.direction == "load" else "GLOBAL_SHARED_CTA_BULK_GROUP"
    return f"CP_ASYNC_BULK_TENSOR{kind}_{copy.rank}D{mode}{options}_{spaces}"


def call_operands(copy: TracedCopy, box: int) -> list[tuple[str, str]]:
    """Return the operands of one call in stage 4, each with its comment."""
    n, is_load = value_names(copy), copy.direction == "load"
    held = box_operands(copy, box, "_coord")
    places = ["inner-axis", *(f"axis {i} from the inside" for i in range(1, len(held.coords) - 1)), "outer-axis"]
    # The rows of gather4 and scatter4 are four instances of the outermost coordinate.
    before = n.coords if not copy.rows_by_index else (*n.coords, *n.coords[-1:] * 3)
    rows = enumerate(zip(held.coords, places, before, strict=False))  # if there is one coordinate, it is the inner axis
    coords = [(f"i32 %{coord}", f"coord[{i}]: {place} (was {was})") for i, (coord, place, was) in rows]
    smem = (
        f"ptr addrspace(3) %{n.small}_{held.address}",
        f"{'destination' if is_load else 'source'}: shared base address",
    )
    descriptor = (
        f"ptr addrspace(1) %desc_{n.small}_ptr",
        f"{'source' if is_load else 'destination'}: TMA descriptor in global",
    )
    tail = [("i16 %mask", "multicast mask: bit i is CTA i")] * (copy.multicast > 1)
    tail += [("i64 %policy", "L2 cache policy")] * copy.cache_hint
    if not is_load:
        return [smem, descriptor, *coords, *tail]
    offsets = [(f"i16 {offset}", f"im2col offset[{i}]") for i, offset in enumerate(im2col_offset_texts(copy))]
    return [*offsets, smem, descriptor, *coords, (f"ptr addrspace(3) %mbar_{n.small}", "completion barrier"), *tail]


def stage4_text(copy: TracedCopy) -> str:
    """Write the LLVM IR trace: descriptor address, byte expectation, one call per box."""
    n, is_load = value_names(copy), copy.direction == "load"
    made = (
        "made on the device, in global memory" if copy.device else "taken from the kernel's grid-constant .param slot"
    )
    parts = [
        f"; ---- descriptor pointer ({made})",
        f"%desc_{n.small}_ptr = call ptr addrspace(1) @llvm.nvvm.tma.get.descriptor.address(i32 0)",
    ]
    pointer = f"ptr addrspace(1) %desc_{n.small}_ptr"
    for replaced in rebind_of(copy):
        step, value = replaced.step, f"{replaced.value_type} {replaced.value}"
        if step.field:
            text = mutator(step.field, "global", step.ordinal)
            letters, operands = mutator_constraints(step.field), f"{pointer}, {value}"
        else:
            text = step.text.replace("[%rd_map]", "[$0]").replace("[%r_seed]", "[$1]")
            seed = ", ptr addrspace(3) %seed_" + n.small if "$1" in text else ""
            operands = f"{pointer}{seed}" if "$0" in text else ""
            letters = "l,r" if seed else "l" * bool(operands)
        parts += [f"; ---- {step.role}", f'call void asm sideeffect "{text}", "{letters}"({operands})']
    if copy.prefetch:
        parts.append(f"call void @llvm.nvvm.prefetch.tensormap({pointer})")
    if is_load:
        parts += [
            "; ---- mbarrier publishes expected transaction-byte count",
            "call void @llvm.nvvm.mbarrier.arrive.expect_tx.shared(",
            f"ptr addrspace(3) %mbar_{n.small}, i32 {copy.transaction_bytes})",
        ]
    spaces = "shared <- global" if is_load else "global <- shared"
    parts += [
        f"; ---- TMA bulk-tensor {copy.direction}: {spaces}, through the descriptor,",
        "; coordinate order reversed to inner-axis-first (column-major)",
    ]
    for box in range(copy.num_boxes):
        address = f"%{n.small}_{{}} = getelementptr i8, ptr addrspace(3) %{n.small}_{{}}, i32 {{}}"
        parts += box_operands(copy, box, "_coord").moved("%{} = add i32 %{}, {}", address)
        passed = call_operands(copy, box)
        ends = [*[","] * (len(passed) - 1), ")"]
        called = [f"{operand}{end} ; {comment}" for (operand, comment), end in zip(passed, ends, strict=True)]
        parts += [f"call void @{intrinsic_name(copy)}(", *called]
    return "\n".join(parts if is_load else [*parts, "call void @llvm.nvvm.cp.async.bulk.commit.group()"])


def stage5_text(copy: TracedCopy) -> str:
    """Write stage 5 (no token, an immediate byte count). The operands of each later box are computed before it."""
    n, is_load = value_names(copy), copy.direction == "load"
    if is_load:
        lines = [
            "; --- mbarrier arrives with expected transaction byte count",
            f"MBARRIER_ARRIVE_EXPECT_TX_SHARED %mbar_{n.small}:b64, {copy.transaction_bytes}",
            "; --- TMA load: shared destination, global source via descriptor, mbarrier completion",
        ]
    else:
        spaces = "global destination via descriptor, shared source"
        lines = [f"; --- TMA {copy.direction}: {spaces}, bulk-group completion"]
    rest = ["%mask:b16"] * (copy.multicast > 1) + ["%policy:b64"] * copy.cache_hint
    if is_load:
        rest = [f"%mbar_{n.small}", *(_typed(offset, "b16") for offset in im2col_offset_texts(copy)), *rest]
    for box in range(copy.num_boxes):
        held = box_operands(copy, box)
        lines += [
            *held.moved("%{}:b32 = ADD32ri %{}:b32, {}", f"%{n.small}_{{}}:b64 = ADD64ri %{n.small}_{{}}:b64, {{}}"),
            opcode_name(copy),
            f"%{n.small}_{held.address}:b64, ; {'destination' if is_load else 'source'} shared address (b64 SMEM ptr)",
            f"%desc_{n.small}:b64, ; descriptor address (b64 global ptr)",
            f"{_list([f'%{coord}:b32' for coord in held.coords])}{',' if rest else ''} ; coordinates, inner-axis first",
        ]
        if rest:
            lines.append(_list(rest) + (" ; completion barrier (b64 SMEM ptr)" if is_load else ""))
    if copy.prefetch:
        lines.insert(0, f"PREFETCH_TENSORMAP %desc_{n.small}:b64")
    return "\n".join(["bb.loop:", *lines, *([] if is_load else ["CP_ASYNC_BULK_COMMIT_GROUP"])])


def _typed(name: str, kind: str) -> str:
    """Format a register with its type; an integer stays unchanged."""
    return f"{name}:{kind}" if name.startswith("%") else name


def check_call(copy: TracedCopy) -> list[Diagnostic]:
    """Stage 4: check that each call has the operands that the intrinsic declares (cute_py's own text)."""
    expected, name = operand_count(copy), intrinsic_name(copy)
    found = {len(call_operands(copy, box)) for box in range(copy.num_boxes)} - {expected}
    return broken(*((True, "arity", f"{name} takes {expected} operands, but got {count}") for count in found))


def check_bundle(copy: TracedCopy) -> list[Diagnostic]:
    """Stage 5: check that each integer operand fits in its register class (cute_py's own text)."""
    start = copy.start or ()
    found = [(int(offset), "b16", 0, 16) for offset in im2col_offset_texts(copy) if not offset.startswith("%")]
    boxes = range(copy.num_boxes if start and not copy.rows_by_index else 0)
    for box in boxes:
        places = zip(start, copy.instruction_origin(box), strict=True)
        found += [(first + origin, "b32", -(2**31), 31) for first, origin in places]
    wrong = [(number, kind) for number, kind, low, bits in found if not low <= number < 2**bits]
    return broken(*((True, "bundle", f"{opcode_name(copy)}: {n} does not fit {kind}") for n, kind in wrong[:1]))


def check_device_descriptor(copy: TracedCopy, arch: str) -> list[Diagnostic]:
    """Stage 6: check that the target supports descriptors that are made on the device; host descriptors pass."""
    steps = [examine(made.step.text) for made in rebind_of(copy)]
    reasons = dict.fromkeys([reason for step in steps for reason in step.reasons(arch, NEWEST_VERSION)])
    return broken(*((True, "target", reason) for reason in reasons))


def check_map_rules(copy: TracedCopy, arch: str) -> list[Diagnostic]:
    """List the driver's rules that the copy's tensor map breaks, except rules about box rows, which stage 3b checks."""
    if architecture(arch).number < 90:
        return []
    judged = [
        found for found in listed_violations(copy.request, arch) if found.rule not in ("inner_bytes", "inner_span")
    ]
    return [replace(found, text=found.message) for found in judged]


def check_stages(copy: TracedCopy, arch: str) -> dict[str, tuple[str, ...]]:
    """Run the verifier of every stage on a TMA copy and its target, and return the diagnostics by stage."""
    is_load = copy.direction == "load"
    inner, rank = copy.box[-1], copy.rank
    found = {
        "1": check_tile(copy.tile),
        "2": check_operands(rank, rank, copy.dtypes, copy.coordinate_type),
        "3a": check_memory_order(copy.direction, copy.mem_semantic, len(copy.in_bounds), rank),
        "3b": check_pointer(copy.alignment)
        + check_box_row(inner, copy.dtype.bits)
        + check_row(inner * copy.dtype.bits, copy.span, copy.swizzle_name)
        + check_padding((copy.fill,), not is_load)
        + (check_host_only(copy) if copy.device else [])
        + check_map_rules(copy, arch),
        "3c": [],
        "4": check_call(copy),
        "5": check_bundle(copy),
        "6": check_device_descriptor(copy, arch),
    }
    if copy.operation == "load":
        found["3c"] = check_atom(copy.direction, rank, copy.box_rank, copy.box_bytes, copy.multicast)
    elif copy.operation != copy.direction:
        found["3c"] = broken((True, "expect_store_atom", f"a {copy.direction} atom"))
    return {stage: tuple([d.text for d in diagnostics]) for stage, diagnostics in found.items()}


def wait_texts(copy: TracedCopy) -> tuple[str, str, str]:
    """Write the consumer's wait at stages 3, 4 and 5. It is a separate operation on the load's barrier.

    The wait ends when the phase of the given parity is complete. Source: TMA load walkthrough, Consumer-Side Pairing.
    """
    small = value_names(copy).small
    barrier = f"%mbar_{small}"
    return (
        f"%ready_{small} = nv_tileas.async.pipeline.consumer_wait {barrier}, %parity, %tok_{small}\n"
        ": !nv_tileas.mbarrier, i1, !nv_tileas.async\n"
        "-> !nv_tileas.async",
        f"br label %wait_{small}\n"
        f"wait_{small}:\n"
        f"%done_{small} = call i1 @llvm.nvvm.mbarrier.try_wait.parity.shared(\n"
        f"ptr addrspace(3) {barrier}, ; completion barrier\n"
        "i32 %parity) ; of the phase that the load completes: (i / D) & 1\n"
        f"br i1 %done_{small}, label %use_{small}, label %wait_{small}\n"
        f"use_{small}:",
        f"bb.wait:\n%done_{small}:b1 = MBARRIER_TRY_WAIT_PARITY_SHARED {barrier}:b64, %parity:b32\n"
        f"CBranchOther %done_{small}, %bb.wait",
    )


def transaction_flow(copy: TracedCopy) -> tuple[FlowRow, ...]:
    """Return the form of the byte count at each stage: implicit up to 2, an attribute at 3, then an operand.

    A store has none, because it completes by a bulk group. Source: TMA load walkthrough, transaction-byte count.
    """
    if copy.direction != "load":
        return ()
    tile, derived = extents_text(copy), "derived at lower time"
    attribute = f"tx_count = {copy.transaction_bytes} : i32 on async.tiled_tma_load"
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


def coordinate_orders(copy: TracedCopy) -> tuple[OrderRow, ...]:
    """Return the coordinate order at each stage. The order is reversed once, between stages 3 and 4."""
    n, verb = value_names(copy), copy.direction
    outer, inner = f"{OUTER_FIRST} {n.outer_list}", f"{INNER_FIRST} {n.inner_list}"
    side, mnemonic = ("load", "cp") if verb == "load" else ("store", "cp.reduce" if verb == "reduce" else "cp")
    spaces = "shared::cluster.global" if verb == "load" else "global.shared::cta"
    places = f"{copy.rank}d.{spaces}.{copy.mode}"
    rows = (
        (f"1 — cuda_tile.{side}_view_tko", outer, "matches Python-style tile indexing in the frontend bytecode"),
        (f"2 — nv_tileaa.tiled_{side}", outer, "preserved verbatim through Part-B rewrite for SSA-edge stability"),
        (f"3 — nv_tileas.async.tiled_tma_{verb}", outer, "layout-assignment writes coordinates in row-major order"),
        (f"4 — {intrinsic_name(copy).removeprefix('llvm.')}", inner, "matches the PTX instruction operand order"),
        (f"5 — {opcode_name(copy)}", inner, "survives ISel verbatim"),
        (f"6 — {mnemonic}.async.bulk.tensor.{places}…", inner, "PTX consumes inner-axis-first"),
    )
    return tuple(OrderRow(*row) for row in rows)


def address_spaces(copy: TracedCopy) -> tuple[SpaceRow, ...]:
    """Return the address space of each operand at each stage."""
    small, is_load = copy.tensor.lower(), copy.direction == "load"
    mark = "made on the device" if copy.device else "with grid_constant mark routing it to .param"
    ends = ("Source", "Destination") if is_load else ("Destination", "Source")
    barrier = SpaceRow(f"Mbarrier slot %mbar_{small}", "space-3 (shared), 64-bit aligned, lives in global_smem")
    return (
        SpaceRow(f"{ends[0]} tensor %{copy.tensor}", "space-1 (global) at every stage"),
        SpaceRow(f"TMA descriptor %desc_{small}", f"space-1 (global), {mark}"),
        SpaceRow(f"{ends[1]} tile (SMEM)", "space-3 (shared) starting at Stage 3, allocated from global_smem"),
        *([barrier] if is_load else []),
        SpaceRow("Loop iterator / coordinates", "space-0 (generic register)"),
    )
