"""`lower(atom, tile_coord, arch)`: one copy through every stage, from the tile view to machine code.

On sm_90 and newer that is the walk of a TMA copy. On older architectures the same copy is emitted with cp.async or
plain loads, as a complete PTX module. Stages 1 to 5 are traces (`stages`); stage 6 is text that ptxas takes; stage 7 is
the machine code, if a disassembler is installed.

The rewrite between stages 3a and 3 is LowerTMALoadStoreToAsync in its eight phases, on a function that holds any
number of copies: 1 KernelSpec gate, 2 TMA-eligibility scan, 3 tmaIdx assignment, 4 descriptor bind, 5 async op
materialization, 6 mbarrier emission, 7 wait sinking, 8 diagnostic finalization. A function without a kernel spec is
left as it is, with a diagnostic; a copy whose witness is no TMA atom is skipped in phase 2.

A kernel has two populations of tensor maps, made on the host and made on the device, each with its own counter. Device
slots are before host slots in the block of parameters that the kernel gets appended, so that a kernel finds its working
buffer at a fixed offset. A host map is passed by value, marked `cute_nvgpu.grid_constant`, which is later
`nvvm.grid_constant`; the marked parameter is 128-byte aligned in .param.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TextIO

from cute_py.argument_checks import expect, expect_having, expect_integer, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CoordinateError, DeviceError, TmaBuildError, counted, given
from cute_py.ptx.assembler import assemble_module, find_ptxas
from cute_py.ptx.module import disassemble, find_disassembler, ptx_module
from cute_py.ptx.render import Value, ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture
from cute_py.tma.dialect import stages as texts
from cute_py.tma.dialect.copy_shape import Copyable, CopyShape, Witness, choose_witness, copy_shape_of, modifiers_of
from cute_py.tma.dialect.diagnostics import broken, check_stages, short_repr
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.dialect.stages import FlowRow, OrderRow, SpaceRow, Stage, names_of

__all__ = ["KernelFunction", "Lowering", "PhaseTrace", "lower", "run_phases"]

SASS_OPCODES: Final = {"load": "UTMALDG", "store": "UTMASTG", "reduce": "UTMAREDG"}
"""Direction -> the machine instruction that it becomes. Source: CUDA Binary Utilities 13.0, Hopper instruction set."""

_CLASSES: Final = (("rd", "b64"), ("r", "b32"), ("h", "b16"), ("p", "pred"))
"""Prefix of a register's name -> its type."""


def _instruction(shape: CopyShape, coords: list[str], address: str, arch: str | None) -> str:
    """The instruction for one box, on lines of its own with comments."""
    operands: dict[str, Value] = {"tensor": f"%rd_desc_{names_of(shape).small}", "coords": coords}
    if shape.cache_hint:
        operands["policy"] = "%rd_policy"
    if shape.direction == "load":
        operands |= {"destination": address, "barrier": "%rd_mbar"}
        if shape.multicast > 1:
            operands["mask"] = "%h_mask"
        im2col = shape.mode.startswith("im2col")  # without numbers the offsets are registers
        if shape.im2col_offsets:
            operands["offsets"] = shape.im2col_offsets
        comments = ["destination: SMEM address of tile", "source: descriptor + coords (inner-axis first)"]
        comments.append("completion barrier address")
        comments += ["im2col offsets"] * im2col + ["multicast mask"] * (shape.multicast > 1)
    else:
        operands["source"] = address
        comments = ["destination: descriptor + coords (inner-axis first)", "source: SMEM address of tile"]
    comments += ["L2 cache policy"] * shape.cache_hint
    text = ptx(shape.direction, operands=operands, arch=arch, **modifiers_of(shape))
    mnemonic, tail = text.rstrip(";").split(" ", 1)
    parts = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s]+", tail)
    ends = [*[","] * (len(parts) - 1), ";"]
    lines = [f"{part}{end} // {comment}" for part, end, comment in zip(parts, ends, comments, strict=True)]
    return "\n".join([mnemonic, *lines])


def stage6_text(shape: CopyShape, arch: str | None = None) -> str:
    """The PTX of one tile: the byte expectation as a literal, then one instruction per box.

    Raises:
        EmissionError: `arch` does not have the instruction.
    """
    is_load = shape.direction == "load"
    title = f"reduce ({shape.reduce_kind})" if shape.direction == "reduce" else shape.direction
    base = "%rd_smem_dst" if is_load else "%rd_smem_src"
    lines = ["// ---- writes of the tile become visible to the asynchronous proxy", "fence.proxy.async.shared::cta;"]
    if is_load:
        lines = [
            f"// ---- mbarrier publishes the {shape.transaction_bytes}-byte expectation",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], {shape.transaction_bytes};",
        ]
    names = [f"%r_{coord[1:]}" for coord in names_of(shape).inner]
    for box in range(shape.num_boxes):
        coords = []
        for name, start in zip(names, shape.instruction_origin(box), strict=True):
            if start:
                lines.append(f"add.s32 {name}_{box}, {name}, {start};")
            coords.append(f"{name}_{box}" if start else name)
        address = base
        if offset := shape.box_offset(box):
            address = f"{base}_{box}"
            lines.append(f"add.s64 {address}, {base}, {offset};")
        which = f", box {box} of {shape.num_boxes}" if shape.num_boxes > 1 else ""
        lines += [f"// ---- TMA bulk-tensor {shape.rank}D {title}{which}", _instruction(shape, coords, address, arch)]
    if not is_load:
        lines += ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"]
    return "\n".join(lines)


def module_of(text: str, arch: str, version: Version = NEWEST_VERSION) -> str:
    """A PTX module around instructions: every register in them is declared by the prefix of its name."""
    names = sorted(set(re.findall(r"%(\w+)", text)))
    kinds = [(name, bits) for name in names for prefix, bits in _CLASSES if re.fullmatch(rf"{prefix}(_\w+|\d+)", name)]
    return ptx_module("lowered", [*(f".reg .{bits} %{name};" for name, bits in kinds), text, "ret;"], arch, version)


def stage7_text(text: str, arch: str, direction: str) -> tuple[str, tuple[str, ...]]:
    """The machine code of stage 6's text, and notes: disassembled if the tools are there, else what is expected.

    Raises:
        DeviceError: ptxas is there and refuses the text, or the disassembler refuses the cubin.
    """
    notes = (f"expected machine instruction: {SASS_OPCODES[direction]} (CUDA Binary Utilities)",)
    if find_disassembler() is None or find_ptxas() is None:
        return "// not disassembled: needs ptxas and one of nvdisasm, cuobjdump on PATH", notes
    accepted, messages, cubin = assemble_module(module_of(text, arch), arch)
    if not accepted:
        raise DeviceError("ptxas refuses the text of stage 6", {"arch": arch, "ptxas": messages})
    return disassemble(cubin).strip(), notes


def check_counters(host: Sequence[int], device: Sequence[int], num_host: int, num_device: int) -> list[Diagnostic]:
    """Do the counters agree with the indices in use?

    >>> print(*check_counters([0, 1], [], num_host=1, num_device=0))
    tmaIdx exceed tmaHostNum.
    """
    return broken(
        (any(not 0 <= index < num_host for index in host), "counters.host", ""),
        (any(not 0 <= index < num_device for index in device), "counters.device", ""),
    )


MISSING_SPEC = "LowerTMALoadStoreToAsync: missing or invalid KernelSpecAttr on function"
PHASES = (
    "KernelSpec gate",
    "TMA-eligibility scan",
    "tmaIdx assignment",
    "descriptor bind",
    "async op materialization",
    "mbarrier emission",
    "wait sinking",
    "diagnostic finalization",
)
"""The names of the phases, in order."""


@record
class KernelFunction:
    """What the pass reads: the kernel spec's architecture (None: no attribute), the copies, the counters.

    num_host_tmas, num_device_tmas: the function's counters if they are set already; None lets phase 3 set them.
    """

    arch: str | None
    copies: tuple[CopyShape, ...]
    num_host_tmas: int | None = None
    num_device_tmas: int | None = None
    allow_tma: bool = True


@dataclass(frozen=True, slots=True)
class Phase:
    """What one phase did: its number and name, one line per copy or decision."""

    number: int
    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoundCopy:
    """A copy that became asynchronous: its index in its population, and whether the map is made on the device."""

    shape: CopyShape
    witness: Witness
    tma_index: int

    @property
    def origin(self) -> str:
        return "device" if self.shape.device_descriptor else "host"


@record
class PhaseTrace:
    """The outcome: phases in order, the copies that were rewritten, the counters, diagnostics.

    `rewritten` is empty and one diagnostic is there if the gate stopped the pass.
    """

    phases: tuple[Phase, ...]
    rewritten: tuple[BoundCopy, ...]
    num_host_tmas: int
    num_device_tmas: int
    diagnostics: tuple[str, ...]

    def __str__(self) -> str:
        lines = []
        for phase in self.phases:
            lines.append(f"phase {phase.number}: {phase.name}")
            lines += [f"  {line}" for line in phase.lines]
        return "\n".join(lines + [f"diagnostic: {text}" for text in self.diagnostics])

    __repr__ = short_repr


def run_phases(function: KernelFunction) -> PhaseTrace:
    """Run the pass.

    >>> print(run_phases(KernelFunction(None, ())).diagnostics[0])
    LowerTMALoadStoreToAsync: missing or invalid KernelSpecAttr on function

    Raises:
        InvalidValueError: the architecture is not known.
    """
    expect(function, KernelFunction, "a kernel")
    if function.arch is None:
        return PhaseTrace((Phase(1, PHASES[0], (MISSING_SPEC,)),), (), 0, 0, (MISSING_SPEC,))
    chosen = [(shape, choose_witness(shape, function.arch, allow_tma=function.allow_tma)) for shape in function.copies]
    counts = {"host": 0, "device": 0}
    bound = []
    for shape, witness in chosen:
        if witness.is_tma:  # phase 3 counts each population from zero, in program order
            origin = "device" if shape.device_descriptor else "host"
            bound.append(BoundCopy(shape, witness, counts[origin]))
            counts[origin] += 1
    num_host = counts["host"] if function.num_host_tmas is None else function.num_host_tmas
    num_device = counts["device"] if function.num_device_tmas is None else function.num_device_tmas
    diagnostics = [d.text for d in check_counters(range(counts["host"]), range(counts["device"]), num_host, num_device)]
    for copy in bound:
        diagnostics += [f"stage {stage}: {text}" for stage, found in check_stages(copy.shape).items() for text in found]
    named = [(f"%{names_of(copy.shape).small}", copy) for copy in bound]
    loads = [(name, copy.shape.transaction_bytes) for name, copy in named if copy.shape.direction == "load"]
    lines: tuple[tuple[str, ...], ...] = (
        (f"nv_tileaa.kernel_spec is there: {function.arch}",),
        tuple(f"{witness.name}: {'TMA' if witness.is_tma else 'skipped, no TMA atom'}" for _, witness in chosen),
        (
            *(f"{name}: tmaIdx = {copy.tma_index} ({copy.origin})" for name, copy in named),
            f"nv_tileas.num-host-tmas = {num_host}",
            f"nv_tileas.num-device-tmas = {num_device}",
        ),
        tuple(f"%desc_{name[1:]}: {copy.origin} descriptor" for name, copy in named),
        tuple(f"{texts.stage3_text(copy.shape, copy.tma_index).splitlines()[-1]} {name}" for name, copy in named),
        tuple(f"{name}: one slot, count = 1, expects {count} bytes" for name, count in loads),
        tuple(f"{name}: mbarrier.try_wait.parity before the first use of the tile" for name, _ in loads),
        (counted(len(diagnostics), "diagnostic"),),
    )
    phases = tuple(Phase(number, name, text) for number, (name, text) in enumerate(zip(PHASES, lines, strict=True), 1))
    return PhaseTrace(phases, tuple(bound), num_host, num_device, tuple(diagnostics))


@record
class Lowering:
    """One copy, lowered.

    stages: in order. flow: the byte count's journey. orders: the coordinate order per stage. spaces: the address-space
    trail. phases: what LowerTMALoadStoreToAsync did. element_coords: of the tile's first element, innermost first
    (None without a tile coordinate).
    """

    shape: CopyShape
    arch: str
    witness: Witness
    stages: tuple[Stage, ...]
    flow: tuple[FlowRow, ...]
    orders: tuple[OrderRow, ...]
    spaces: tuple[SpaceRow, ...]
    phases: PhaseTrace | None
    element_coords: tuple[int, ...] | None = None

    def stage(self, number: str) -> Stage:
        """The stage of that number ("1", "3a", "6").

        Raises:
            CoordinateError: this lowering has no such stage.
        """
        expect(number, str, "the number of a stage")
        for stage in self.stages:
            if stage.number == number:
                return stage
        raise CoordinateError(f"no stage {given(number)}", {"stages": " ".join(stage.number for stage in self.stages)})

    @property
    def ptx(self) -> str:
        """The text of stage 6."""
        return self.stage("6").text

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """What the stages' verifiers found, `stage: text`; () if all hold."""
        return tuple(f"stage {stage.number}: {text}" for stage in self.stages for text in stage.checked)

    def verify(self) -> None:
        """Raise the first diagnostic of the first stage that has one.

        Raises:
            TmaBuildError: the headline is the diagnostic's text.
        """
        for stage in self.stages:
            if stage.checked:
                others = {f"also {n}": text for n, text in enumerate(stage.checked[1:], 1)}
                raise TmaBuildError(stage.checked[0], {"stage": f"{stage.number} ({stage.name})", **others})

    def __str__(self) -> str:
        parts = [f"{self.witness.name} on {self.arch}"]
        parts += [f"  {reason}" for reason in self.witness.reasons]
        if self.element_coords is not None:
            parts.append(f"  first element of the tile, innermost first: {self.element_coords}")
        text = ["\n".join(parts), *map(str, self.stages)]
        if self.phases is not None:
            text.append(f"LowerTMALoadStoreToAsync\n{self.phases}")
        flow = [f"  {row.stage} | {row.form} | {row.carrier} | {row.source}" for row in self.flow]
        orders = [f"  {row.stage} | {row.order} | {row.why}" for row in self.orders]
        spaces = [f"  {row.operand} | {row.trail}" for row in self.spaces]
        tables = (("Transaction-byte count", flow), ("Coordinate order", orders), ("Address spaces", spaces))
        return "\n\n".join([*text, *("\n".join([title, *rows]) for title, rows in tables if rows)])

    __repr__ = short_repr

    def print(self, file: TextIO | None = None) -> None:
        """Write the trace."""
        if file is not None:
            expect_having(file, ("write",), "a file that is open for text")
        print(self, file=sys.stdout if file is None else file)


def _tma_stages(shape: CopyShape, arch: str, checked: dict[str, tuple[str, ...]]) -> list[Stage]:
    """Stages 3 to 7."""
    n = names_of(shape)
    outer, inner = (n.outer_list, texts.OUTER_FIRST), (n.inner_list, texts.INNER_FIRST)
    count = shape.transaction_bytes
    carriers = (
        f"tx_count = {count} : i32",
        f"llvm.nvvm.mbarrier.arrive.expect_tx.shared, {count}",
        f"MBARRIER_ARRIVE_EXPECT_TX_SHARED, {count}",
        f"mbarrier.arrive.expect_tx.shared.b64, {count}",
    )
    forms = [row.form for row in texts.transaction_flow(shape)[2:]]
    held = list(zip(forms, carriers, strict=True)) if forms else [("none: completion by bulk group", "")] * 4
    notes = [shape.was_split] if shape.was_split else []
    if shape.multicast > 1 and shape.origins:
        first = f"the boxes are the slice of the first of {shape.multicast} CTAs"
        notes.append(f"{first}; each receives the whole tile")
    host = "descriptor made on the host: a .param slot marked cute_nvgpu.grid_constant, lifted to nvvm.grid_constant"
    device = "descriptor made on the device: the sequence of tensormap.replace with its fences"
    notes.append(device if shape.device_descriptor else host)
    token = f"the token %tok_{n.small} becomes the constant i32 0: an ordering edge without hardware state"
    scale = "the coordinate of an instruction is in elements: tile coordinate x tile extent"
    text6 = stage6_text(shape, arch)
    text7, notes7 = stage7_text(text6, arch, shape.direction)
    found = (*checked["3b"], *checked["3c"])
    return [
        Stage("3", "nv_tileas", texts.stage3_text(shape), *outer, *held[0], tuple(notes), found),
        Stage("4", "LLVM IR", texts.stage4_text(shape), *inner, *held[1], (token, scale)),
        Stage("5", "NVPTX MIR", texts.stage5_text(shape), *inner, *held[2]),
        Stage("6", "PTX text", text6, *inner, *held[3]),
        Stage("7", "SASS", text7, notes=notes7),
    ]


def _legacy_stages(shape: CopyShape, witness: Witness, arch: str) -> list[Stage]:
    """Stages 3 to 6."""
    asynchronous = witness.row.stage3 == "nv_tileas.async.cp_async" and shape.direction == "load"
    if asynchronous:
        llvm = "call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3) %dst, ptr addrspace(1) %src)"
        mir = "CP_ASYNC_CA_SHARED_GLOBAL_4 %dst, %src"
    elif shape.direction == "load":
        llvm = "%v = load <4 x i32>, ptr addrspace(1) %src, align 16, !invariant.load !0"
        mir = "INT_PTX_LDG_G_v4i32 %src"
    else:
        llvm = "store <4 x i32> %v, ptr addrspace(1) %dst, align 16"
        mir = "STV_i32_v4 %v0, %v1, %v2, %v3, %dst"
    text6 = legacy_ptx(shape, arch, "cp.async" if asynchronous else "ldg")
    note = "every thread computes its addresses; no descriptor, no barrier, no transaction bytes"
    return [
        Stage("3", "nv_tileas", texts.stage3_legacy_text(shape, witness), notes=(note,)),
        Stage("4", "LLVM IR", llvm),
        Stage("5", "NVPTX MIR", mir),
        Stage("6", "PTX text", text6),
    ]


def lower(
    atom: Copyable, tile_coord: Sequence[int] | int | None = None, arch: str = "sm_90a", *, allow_tma: bool = True
) -> Lowering:
    """One copy through every stage.

    Args:
        atom: a TMA atom, or a `CopyShape`.
        tile_coord: which tile, outermost first, in tiles; only the notes need it.
        arch: the target; below sm_90 the copy is emitted with cp.async or plain loads.
        allow_tma: False refuses TMA on any architecture.

    >>> from cute_py.tma.dialect.copy_shape import copy_shape
    >>> trace = lower(copy_shape("load", (128, 128), "bf16", swizzle=3))
    >>> trace.witness.name, trace.shape.transaction_bytes, trace.shape.instruction_box
    ('sm90_tma_load_2d_bf16', 32768, (128, 64))

    Raises:
        TmaBuildError: not an atom, or its numbers contradict each other.
        CoordinateError: a wrong number of coordinates.
        EmissionError: no code for this copy on this architecture.
        InvalidValueError: no such architecture.
    """
    shape = copy_shape_of(atom)
    architecture(arch)
    coords = None
    if tile_coord is not None:
        tiles = tuple(tile_coord) if isinstance(tile_coord, Sequence) else (tile_coord,)
        tiles = tuple([expect_integer(c, "a coordinate of a tile") for c in tiles])
        if len(tiles) != shape.rank:
            raise CoordinateError(f"expects {shape.rank} coordinates, but got {len(tiles)}")
        coords = tuple(c * t for c, t in zip(tiles, shape.tile, strict=True))[::-1]
    witness = choose_witness(shape, arch, allow_tma=allow_tma)
    checked = check_stages(shape)
    order = (names_of(shape).outer_list, texts.OUTER_FIRST)
    implicit = ("implicit", "tile shape and element type") if shape.direction == "load" else ("", "")
    traces = (
        ("1", "cuda_tile", texts.stage1_text(shape)),
        ("2", "nv_tileaa", texts.stage2_text(shape, witness)),
        ("3a", "nv_tileas before the rewrite", texts.tiled_copy_text(shape, witness, "nv_tileas")),
    )
    walked = [Stage(*trace, *order, *implicit, checked=checked[trace[0]]) for trace in traces]
    spaces = texts.address_spaces(shape)
    if not witness.is_tma:
        walked += _legacy_stages(shape, witness, arch)
        return Lowering(shape, arch, witness, tuple(walked), (), (), spaces[::2], None, coords)
    walked += _tma_stages(shape, arch, checked)
    tables = (texts.transaction_flow(shape), texts.coordinate_orders(shape), spaces)
    phases = run_phases(KernelFunction(arch, (shape,), allow_tma=allow_tma))
    return Lowering(shape, arch, witness, tuple(walked), *tables, phases, coords)
