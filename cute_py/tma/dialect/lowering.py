"""`lower(atom, tile_coord, arch)`: one copy through every stage, from the tile view to machine code.

On sm_90 and newer that is the walk of a TMA copy. On older architectures the same copy is emitted with cp.async or
plain loads, as a whole PTX module. Stages 1 to 5 are traces; stage 6 is text that ptxas takes.

Stages 6 and 7 of a TMA copy: PTX text that assembles, and the machine code if a disassembler is installed.

Three tables of one lowering: where the byte count is, in which order the coordinates are, in which space all is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from cute_py.argument_checks import expect, expect_fields, expect_having, expect_integer
from cute_py.errors import CoordinateError, DeviceError, TmaBuildError, given
from cute_py.ptx.assembler import assemble_module, find_ptxas
from cute_py.ptx.render import ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture, version_text
from cute_py.tma.dialect.copy_shape import CopyShape, Witness, choose_witness, copy_shape_of
from cute_py.tma.dialect.diagnostics import check_stages
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.dialect.phases import KernelFunction, PhaseTrace, run_phases
from cute_py.tma.dialect.stages import (
    INNER_FIRST,
    OUTER_FIRST,
    FlowRow,
    OrderRow,
    SpaceRow,
    Stage,
    extents_text,
    intrinsic_name,
    names_of,
    opcode_name,
    stage1_text,
    stage2_text,
    stage3_legacy_text,
    stage3_text,
    stage3a_text,
    stage4_text,
    stage5_text,
)

SASS_OPCODES: dict[str, str] = {
    "load": "UTMALDG",
    "store": "UTMASTG",
    "reduce": "UTMAREDG",
    "prefetch": "UTMAPF",
    "bulk.load": "UBLKCP",
    "bulk.store": "UBLKCP",
}
"""Form -> the machine instruction that it becomes. Source: CUDA Binary Utilities 13.0, Hopper instruction set."""

_CLASSES = (("rd", "b64"), ("r", "b32"), ("h", "b16"), ("p", "pred"))


def _instruction(shape: CopyShape, coords: list[str], address: str, arch: str | None) -> str:
    """The instruction for one box, on lines of its own with comments."""
    n = names_of(shape)
    operands: dict[str, object] = {"tensor": f"%rd_desc_{n.small}", "coords": coords}
    modifiers: dict[str, object] = {"dim": shape.rank, "mode": shape.mode, "cache_hint": shape.cache_hint}
    if shape.cache_hint:
        operands["policy"] = "%rd_policy"
    if shape.direction == "load":
        operands |= {"destination": address, "barrier": "%rd_mbar"}
        modifiers |= {"multicast": shape.multicast > 1, "cta_group": shape.cta_group or None}
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
        if shape.direction == "reduce":
            modifiers["op"] = shape.reduce_kind
        comments = ["destination: descriptor + coords (inner-axis first)", "source: SMEM address of tile"]
    comments += ["L2 cache policy"] * shape.cache_hint
    form = shape.direction
    text = ptx(form, operands=operands, arch=arch, **modifiers)  # type: ignore[arg-type]
    mnemonic, tail = text.rstrip(";").split(" ", 1)
    parts = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s]+", tail)
    lines = [mnemonic]
    for index, (part, comment) in enumerate(zip(parts, comments, strict=True)):
        lines.append(f"{part}{';' if index == len(parts) - 1 else ','} // {comment}")
    return "\n".join(lines)


def stage6_text(shape: CopyShape, arch: str | None = None) -> str:
    """The PTX of one tile: the byte expectation as a literal, then one instruction per box.

    Raises:
        EmissionError: `arch` does not have the instruction.
    """
    n = names_of(shape)
    lines = []
    title = {"load": "load", "store": "store", "reduce": f"reduce ({shape.reduce_kind})"}[shape.direction]
    if shape.direction == "load":
        lines += [
            f"// ---- mbarrier publishes the {shape.transaction_bytes}-byte expectation",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], {shape.transaction_bytes};",
        ]
    else:
        lines += [
            "// ---- writes of the tile become visible to the asynchronous proxy",
            "fence.proxy.async.shared::cta;",
        ]
    base = "%rd_smem_dst" if shape.direction == "load" else "%rd_smem_src"
    names = [f"%r_{coord[1:]}" for coord in n.inner_first(shape)]
    for box in range(shape.num_boxes):
        coords = []
        for name, start in zip(names, shape.instruction_origin(box), strict=True):
            if start:
                lines.append(f"add.s32 {name}_{box}, {name}, {start};")
            coords.append(f"{name}_{box}" if start else name)
        address = base
        if shape.box_offset(box):
            address = f"{base}_{box}"
            lines.append(f"add.s64 {address}, {base}, {shape.box_offset(box)};")
        which = f", box {box} of {shape.num_boxes}" if shape.num_boxes > 1 else ""
        lines.append(f"// ---- TMA bulk-tensor {shape.rank}D {title}{which}")
        lines.append(_instruction(shape, coords, address, arch))
    if shape.direction != "load":
        lines += ["cp.async.bulk.commit_group;", "cp.async.bulk.wait_group.read 0;"]
    return "\n".join(lines)


def wait_text(parity: str = "%r_parity") -> str:
    """The consumer's wait: it releases when the phase flips, that is when all arrivals and all bytes are in."""
    return "\n".join(
        [
            "$wait:",
            f"mbarrier.try_wait.parity.shared::cta.b64 %p_done, [%rd_mbar], {parity};",
            "@!%p_done bra $wait;",
        ]
    )


def module_of(text: str, arch: str, version: Version = NEWEST_VERSION) -> str:
    """A PTX module around a piece of text: every register in it is declared by the prefix of its name."""
    names = sorted(set(re.findall(r"%(\w+)", text)))
    declared = []
    for name in names:
        found = next((bits for prefix, bits in _CLASSES if re.fullmatch(rf"{prefix}(_\w+|\d+)", name)), None)
        if found is not None:
            declared.append(f".reg .{found} %{name};")
    body = "\n".join([*declared, text])
    return (
        f".version {version_text(version)}\n.target {arch}\n.address_size 64\n"
        f".visible .entry lowered()\n{{\n{body}\nret;\n}}\n"
    )


def find_disassembler() -> Path | None:
    """nvdisasm, else cuobjdump, on PATH; None if neither is there."""
    for name in ("nvdisasm", "cuobjdump"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    return None


def stage7_text(text: str, arch: str, form: str) -> tuple[str, tuple[str, ...]]:
    """The machine code of stage 6's text, and notes: disassembled if the tools are there, else what is expected.

    Raises:
        DeviceError: ptxas is there and refuses the text.
    """
    notes = (f"expected machine instruction: {SASS_OPCODES[form]} (CUDA Binary Utilities)",)
    disassembler = find_disassembler()
    if disassembler is None or find_ptxas() is None:
        return "// not disassembled: needs ptxas and one of nvdisasm, cuobjdump on PATH", notes
    accepted, messages, cubin = assemble_module(module_of(text, arch), arch)
    if not accepted:
        raise DeviceError("ptxas refuses the text of stage 6", {"arch": arch, "ptxas": messages})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "lowered.cubin"
        path.write_bytes(cubin)
        options = ["-c"] if disassembler.name == "nvdisasm" else ["-sass"]
        done = subprocess.run([str(disassembler), *options, str(path)], capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr.strip(), notes


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


@dataclass(frozen=True, slots=True)
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
    element_coords: tuple[int, ...] | None = field(default=None)

    def __post_init__(self) -> None:
        expect_fields(self)

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
        """What the stages' verifiers say, `stage: text`; () if all hold."""
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
        text = ["\n".join(parts), *(str(stage) for stage in self.stages)]
        if self.phases is not None:
            text.append(f"LowerTMALoadStoreToAsync\n{self.phases}")
        if self.flow:
            rows = "\n".join(f"  {row.stage} | {row.form} | {row.carrier} | {row.source}" for row in self.flow)
            text.append(f"Transaction-byte count\n{rows}")
        if self.orders:
            rows = "\n".join(f"  {row.stage} | {row.order} | {row.why}" for row in self.orders)
            text.append(f"Coordinate order\n{rows}")
        rows = "\n".join(f"  {row.operand} | {row.trail}" for row in self.spaces)
        return "\n\n".join([*text, f"Address spaces\n{rows}"])

    def print(self, file: TextIO | None = None) -> None:
        """Write the whole trace."""
        if file is not None:
            expect_having(file, ("write",), "a file that is open for text")
        print(self, file=sys.stdout if file is None else file)


def _element_coords(shape: CopyShape, tile_coord: tuple[int, ...] | None) -> tuple[int, ...] | None:
    if tile_coord is None:
        return None
    coords = tuple(tile_coord) if isinstance(tile_coord, Sequence) else (tile_coord,)
    coords = tuple([expect_integer(c, "a coordinate of a tile") for c in coords])
    if len(coords) != shape.rank:
        raise CoordinateError(f"expects {shape.rank} coordinates, but got {len(coords)}")
    return tuple(c * t for c, t in zip(coords, shape.tile, strict=True))[::-1]


def _tma_stages(shape: CopyShape, witness: Witness, arch: str, checked: dict[str, tuple[str, ...]]) -> list[Stage]:
    n = names_of(shape)
    outer, inner = n.coord_list(), f"[{', '.join(n.inner_first(shape))}]"
    count = str(shape.transaction_bytes)
    is_load = shape.direction == "load"
    explicit = [
        ("explicit attr", f"tx_count = {count} : i32"),
        ("explicit i32 operand", f"llvm.nvvm.mbarrier.arrive.expect_tx.shared, {count}"),
        ("explicit immediate", f"MBARRIER_ARRIVE_EXPECT_TX_SHARED, {count}"),
        ("explicit literal", f"mbarrier.arrive.expect_tx.shared.b64, {count}"),
    ]
    if not is_load:
        explicit = [("none: completion by bulk group", "")] * 4
    split: tuple[str, ...] = (shape.was_split,) if shape.was_split else ()
    if shape.multicast > 1 and shape.origins:
        split = (
            *split,
            f"the boxes are the slice of the first of {shape.multicast} CTAs; each receives the whole tile",
        )
    origin = (
        "descriptor made on the device: the sequence of tensormap.replace with its fences"
        if shape.device_descriptor
        else "descriptor made on the host: a .param slot marked cute_nvgpu.grid_constant, lifted to nvvm.grid_constant"
    )
    token = f"the token %tok_{n.small} becomes the constant i32 0: an ordering edge without hardware state"
    scale = "the coordinate of an instruction is in elements: tile coordinate x tile extent"
    text6 = stage6_text(shape, arch)
    text7, notes7 = stage7_text(text6, arch, shape.direction)
    found = (*checked["3b"], *checked["3c"])
    return [
        Stage("3", "nv_tileas", stage3_text(shape), outer, OUTER_FIRST, *explicit[0], (*split, origin), found),
        Stage("4", "LLVM IR", stage4_text(shape), inner, INNER_FIRST, *explicit[1], (token, scale)),
        Stage("5", "NVPTX MIR", stage5_text(shape), inner, INNER_FIRST, *explicit[2]),
        Stage("6", "PTX text", text6, inner, INNER_FIRST, *explicit[3]),
        Stage("7", "SASS", text7, notes=notes7),
    ]


def _legacy_stages(shape: CopyShape, witness: Witness, arch: str) -> list[Stage]:
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
        Stage("3", "nv_tileas", stage3_legacy_text(shape, witness), notes=(note,)),
        Stage("4", "LLVM IR", llvm),
        Stage("5", "NVPTX MIR", mir),
        Stage("6", "PTX text", text6),
    ]


def lower(
    atom: Any, tile_coord: tuple[int, ...] | None = None, arch: str = "sm_90a", *, allow_tma: bool = True
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
    coords = _element_coords(shape, tile_coord)
    witness = choose_witness(shape, arch, allow_tma=allow_tma)
    checked = check_stages(shape)
    n = names_of(shape)
    outer = n.coord_list()
    implicit = ("implicit", "tile shape and element type") if shape.direction == "load" else ("", "")
    stages = [
        Stage("1", "cuda_tile", stage1_text(shape), outer, OUTER_FIRST, *implicit, checked=checked["1"]),
        Stage("2", "nv_tileaa", stage2_text(shape, witness), outer, OUTER_FIRST, *implicit, checked=checked["2"]),
        Stage(
            "3a",
            "nv_tileas before the rewrite",
            stage3a_text(shape, witness),
            outer,
            OUTER_FIRST,
            *implicit,
            checked=checked["3a"],
        ),
    ]
    if witness.is_tma:
        stages += _tma_stages(shape, witness, arch, checked)
        phases = run_phases(KernelFunction(arch, (shape,), allow_tma=allow_tma))
        return Lowering(
            shape,
            arch,
            witness,
            tuple(stages),
            transaction_flow(shape),
            coordinate_orders(shape),
            address_spaces(shape),
            phases,
            coords,
        )
    stages += _legacy_stages(shape, witness, arch)
    return Lowering(shape, arch, witness, tuple(stages), (), (), address_spaces(shape)[::2], None, coords)
