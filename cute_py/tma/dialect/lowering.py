"""`lower(atom, tile_coord, arch)`: one copy through every stage, from the tile view to machine code.

On sm_90 and newer that is the walk of a TMA copy, and with it LowerTMALoadStoreToAsync in its eight phases (`phases`).
On older architectures the same copy is emitted with cp.async or plain loads, as a whole PTX module. Stages 1 to 5 are
traces (`stages`); stage 6 is text that ptxas takes; stage 7 is the machine code, if a disassembler is installed.
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
from typing import Any, Final, TextIO

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
    address_spaces,
    coordinate_orders,
    names_of,
    stage1_text,
    stage2_text,
    stage3_legacy_text,
    stage3_text,
    stage4_text,
    stage5_text,
    tiled_copy_text,
    transaction_flow,
)

SASS_OPCODES: Final = {"load": "UTMALDG", "store": "UTMASTG", "reduce": "UTMAREDG"}
"""Direction -> the machine instruction that it becomes. Source: CUDA Binary Utilities 13.0, Hopper instruction set."""

_CLASSES: Final = (("rd", "b64"), ("r", "b32"), ("h", "b16"), ("p", "pred"))
"""Prefix of a register's name -> its type."""


def _instruction(shape: CopyShape, coords: list[str], address: str, arch: str | None) -> str:
    """The instruction for one box, on lines of its own with comments."""
    operands: dict[str, object] = {"tensor": f"%rd_desc_{names_of(shape).small}", "coords": coords}
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
    text = ptx(shape.direction, operands=operands, arch=arch, **modifiers)  # type: ignore[arg-type]
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
    if is_load:
        base = "%rd_smem_dst"
        lines = [
            f"// ---- mbarrier publishes the {shape.transaction_bytes}-byte expectation",
            f"mbarrier.arrive.expect_tx.shared.b64 _, [%rd_mbar], {shape.transaction_bytes};",
        ]
    else:
        base = "%rd_smem_src"
        lines = [
            "// ---- writes of the tile become visible to the asynchronous proxy",
            "fence.proxy.async.shared::cta;",
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
    """A PTX module around a piece of text: every register in it is declared by the prefix of its name."""
    names = sorted(set(re.findall(r"%(\w+)", text)))
    kinds = [(name, bits) for name in names for prefix, bits in _CLASSES if re.fullmatch(rf"{prefix}(_\w+|\d+)", name)]
    body = "\n".join([*(f".reg .{bits} %{name};" for name, bits in kinds), text])
    return (
        f".version {version_text(version)}\n.target {arch}\n.address_size 64\n"
        f".visible .entry lowered()\n{{\n{body}\nret;\n}}\n"
    )


def find_disassembler() -> Path | None:
    """nvdisasm, else cuobjdump, on PATH; None if neither is there."""
    found = shutil.which("nvdisasm") or shutil.which("cuobjdump")
    return None if found is None else Path(found)


def stage7_text(text: str, arch: str, direction: str) -> tuple[str, tuple[str, ...]]:
    """The machine code of stage 6's text, and notes: disassembled if the tools are there, else what is expected.

    Raises:
        DeviceError: ptxas is there and refuses the text.
    """
    notes = (f"expected machine instruction: {SASS_OPCODES[direction]} (CUDA Binary Utilities)",)
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
        text = ["\n".join(parts), *map(str, self.stages)]
        if self.phases is not None:
            text.append(f"LowerTMALoadStoreToAsync\n{self.phases}")
        flow = [f"  {row.stage} | {row.form} | {row.carrier} | {row.source}" for row in self.flow]
        orders = [f"  {row.stage} | {row.order} | {row.why}" for row in self.orders]
        spaces = [f"  {row.operand} | {row.trail}" for row in self.spaces]
        tables = (("Transaction-byte count", flow), ("Coordinate order", orders), ("Address spaces", spaces))
        return "\n\n".join([*text, *("\n".join([title, *rows]) for title, rows in tables if rows)])

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


def _tma_stages(shape: CopyShape, arch: str, checked: dict[str, tuple[str, ...]]) -> list[Stage]:
    """Stages 3 to 7."""
    n = names_of(shape)
    outer, inner = (n.outer_list, OUTER_FIRST), (n.inner_list, INNER_FIRST)
    count = shape.transaction_bytes
    carriers = (
        f"tx_count = {count} : i32",
        f"llvm.nvvm.mbarrier.arrive.expect_tx.shared, {count}",
        f"MBARRIER_ARRIVE_EXPECT_TX_SHARED, {count}",
        f"mbarrier.arrive.expect_tx.shared.b64, {count}",
    )
    forms = [row.form for row in transaction_flow(shape)[2:]]
    held = list(zip(forms, carriers, strict=True)) if forms else [("none: completion by bulk group", "")] * 4
    notes = [shape.was_split] if shape.was_split else []
    if shape.multicast > 1 and shape.origins:
        first = f"the boxes are the slice of the first of {shape.multicast} CTAs"
        notes.append(f"{first}; each receives the whole tile")
    notes.append(
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
        Stage("3", "nv_tileas", stage3_text(shape), *outer, *held[0], tuple(notes), found),
        Stage("4", "LLVM IR", stage4_text(shape), *inner, *held[1], (token, scale)),
        Stage("5", "NVPTX MIR", stage5_text(shape), *inner, *held[2]),
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
    order = (names_of(shape).outer_list, OUTER_FIRST)
    implicit = ("implicit", "tile shape and element type") if shape.direction == "load" else ("", "")
    traces = (
        ("1", "cuda_tile", stage1_text(shape)),
        ("2", "nv_tileaa", stage2_text(shape, witness)),
        ("3a", "nv_tileas before the rewrite", tiled_copy_text(shape, witness, "nv_tileas")),
    )
    stages = [Stage(*trace, *order, *implicit, checked=checked[trace[0]]) for trace in traces]
    spaces = address_spaces(shape)
    if not witness.is_tma:
        stages += _legacy_stages(shape, witness, arch)
        return Lowering(shape, arch, witness, tuple(stages), (), (), spaces[::2], None, coords)
    stages += _tma_stages(shape, arch, checked)
    tables = (transaction_flow(shape), coordinate_orders(shape), spaces)
    phases = run_phases(KernelFunction(arch, (shape,), allow_tma=allow_tma))
    return Lowering(shape, arch, witness, tuple(stages), *tables, phases, coords)
