"""`lower(atom, tile_coord, arch)`: one copy through every stage, from the tile view to machine code.

On sm_90 and newer that is the walk of a TMA copy. On older architectures the same copy is emitted with cp.async or
plain loads, as a whole PTX module. Stages 1 to 5 are traces; stage 6 is text that ptxas takes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from cute_py.argument_checks import expect, expect_fields, expect_having, expect_integer
from cute_py.errors import CoordinateError, TmaBuildError, given
from cute_py.tma.lower.architectures import architecture
from cute_py.tma.lower.atom_shape import copy_shape_of
from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.legacy_copy import legacy_ptx
from cute_py.tma.lower.phases import KernelFunction, PhaseTrace, run_phases
from cute_py.tma.lower.stage_verifiers import verify_copy
from cute_py.tma.lower.stages import INNER_FIRST, OUTER_FIRST, FlowRow, OrderRow, SpaceRow, Stage
from cute_py.tma.lower.stages_async import stage3_legacy_text, stage3_text
from cute_py.tma.lower.stages_llvm import stage4_text, stage5_text
from cute_py.tma.lower.stages_ptx import stage6_text, stage7_text
from cute_py.tma.lower.stages_tables import address_spaces, coordinate_orders, transaction_flow
from cute_py.tma.lower.stages_tile import names_of, stage1_text, stage2_text, stage3a_text
from cute_py.tma.lower.witness import Witness, choose_witness


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

    >>> from cute_py.tma.lower.copy_shape import copy_shape
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
    checked = verify_copy(shape)
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
