"""Lower one copy through all stages, from the tile view to machine code: `lower(atom, tile_coord, arch)`.

On sm_90 and newer these are the stages of a TMA copy. On older architectures the same copy becomes a complete PTX
module with cp.async or plain loads. Stages 1 to 5 are traces (`stages`); stage 6 is text that ptxas accepts; stage 7 is
the machine code, if a disassembler is installed.

The module `phases` makes the rewrite between stages 3a and 3. At stages 3 to 6, the consumer's wait is a separate
operation, shown as stages `3w` to `6w`. It waits on the barrier of the load, for the parity of the phase that the load
completes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TextIO

from cute_py.argument_checks import expect, expect_having, record
from cute_py.errors import CoordinateError, DeviceError, MissingPackageError, TmaBuildError, given
from cute_py.ptx.inline_asm import mcast_opnum
from cute_py.ptx.module import assemble_module, disassemble, find_ptxas, ptx_module
from cute_py.ptx.render import Value, ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture
from cute_py.tma.atom.tile_atom import expect_block
from cute_py.tma.dialect import stages as texts
from cute_py.tma.dialect.atoms import store_bounds
from cute_py.tma.dialect.diagnostics import short_repr
from cute_py.tma.dialect.legacy_copy import granule_bytes, legacy_ptx
from cute_py.tma.dialect.phases import KernelFunction, PhaseTrace, run_phases
from cute_py.tma.dialect.stages import (
    FlowRow,
    OrderRow,
    SpaceRow,
    Stage,
    box_operands,
    im2col_offset_texts,
    value_names,
)
from cute_py.tma.dialect.traced_copy import Copyable, TracedCopy, trace_copy

if TYPE_CHECKING:
    from cute_py.layout.arguments import Tree

__all__ = ["Lowering", "lower"]

SASS_OPCODES: Final = {"load": "UTMALDG", "store": "UTMASTG", "reduce": "UTMAREDG"}
"""Direction -> the machine instruction that it becomes. Source: CUDA Binary Utilities 13.0, Hopper instruction set."""

_CLASSES: Final = (("rd", "b64"), ("r", "b32"), ("h", "b16"), ("p", "pred"))
"""Prefix of a register's name -> its type."""


def _instruction(copy: TracedCopy, coords: Sequence[str], address: str, arch: str | None) -> str:
    """Write the instruction for one box, with one operand and its comment per line."""
    operands: dict[str, Value] = {"tensor": f"%rd_desc_{value_names(copy).small}", "coords": coords}
    if copy.cache_hint:
        operands["policy"] = "%rd_policy"
    if copy.direction == "load":
        operands |= {"destination": address, "barrier": "%rd_mbar"}
        if copy.multicast > 1:
            operands["mask"] = "%h_mask"
        if offsets := im2col_offset_texts(copy):
            operands["offsets"] = [offset.replace("%", "%h_") for offset in offsets]
        comments = ["destination: SMEM address of tile", "source: descriptor + coords (inner-axis first)"]
        comments.append("completion barrier address")
        comments += ["im2col offsets"] * bool(offsets) + ["multicast mask"] * (copy.multicast > 1)
    else:
        operands["source"] = address
        comments = ["destination: descriptor + coords (inner-axis first)", "source: SMEM address of tile"]
    comments += ["L2 cache policy"] * copy.cache_hint
    text = ptx(copy.direction, operands=operands, arch=arch, **copy.modifiers)
    mnemonic, tail = text.rstrip(";").split(" ", 1)
    parts = re.findall(r"\[[^\]]*\]|\{[^}]*\}|[^,\s]+", tail)
    ends = [*[","] * (len(parts) - 1), ";"]
    lines = [f"{part}{end} // {comment}" for part, end, comment in zip(parts, ends, comments, strict=True)]
    return "\n".join([mnemonic, *lines])


def stage6_text(copy: TracedCopy, arch: str | None = None) -> str:
    """Write the PTX for one tile (stage 6).

    The text has the rebind if the map is made on the device, the byte expectation with a literal count, and one
    instruction per box.

    Raises:
        EmissionError: `arch` does not have the instruction.
    """
    is_load = copy.direction == "load"
    title = f"reduce ({copy.reduce_kind})" if copy.direction == "reduce" else copy.direction
    lines = [f"{_rebind_text(copy, made)} // {made.step.role}" for made in texts.rebind_of(copy)]
    if copy.prefetch:
        prefetched = ptx("prefetch.tensormap", operands={"map": f"[%rd_desc_{value_names(copy).small}]"}, arch=arch)
        lines += ["// ---- the descriptor is prefetched", prefetched]
    before, after = ([], []) if is_load else store_bounds(arch)
    if is_load:
        expected: dict[str, Value] = {"state": "_", "barrier": "[%rd_mbar]", "bytes": copy.transaction_bytes}
        lines += [
            f"// ---- mbarrier publishes the {copy.transaction_bytes}-byte expectation",
            ptx("mbarrier.arrive.expect_tx", spaces="shared", operands=expected),
        ]
    else:
        lines += ["// ---- writes of the tile become visible to the asynchronous proxy", *before]
    for box in range(copy.num_boxes):
        held = box_operands(copy, box)
        lines += held.moved("add.s32 %r_{}, %r_{}, {};", "add.s64 %rd_{}, %rd_{}, {};")
        which = f", box {box} of {copy.num_boxes}" if copy.num_boxes > 1 else ""
        operands = [f"%r_{name}" for name in held.coords], f"%rd_{held.address}"
        lines += [f"// ---- TMA bulk-tensor {copy.rank}D {title}{which}", _instruction(copy, *operands, arch)]
    return "\n".join([*lines, *after])


def _rebind_text(copy: TracedCopy, made: texts.Replacement) -> str:
    """Write one step of a rebind in PTX. The map is at the address in the descriptor's register."""
    text: str = made.step.text.replace("%rd_map", f"%rd_desc_{value_names(copy).small}")
    if not made.step.field:
        return text
    register = f"%{'r' if made.value_type == 'i32' else 'rd'}_{made.value[1:]}"
    value = register if made.value.startswith("%") else made.value
    return f"{text.rpartition(', ')[0]}, {value};"


def wait_text() -> str:
    """Write the consumer's wait in PTX. It ends when the phase of parity %r_parity has all its arrivals and bytes.

    >>> print(wait_text().splitlines()[1])
    mbarrier.try_wait.parity.shared.b64 %p_done, [%rd_mbar], %r_parity;
    """
    operands = {"barrier": "[%rd_mbar]", "parity": "%r_parity", "done": "%p_done"}
    waits = ptx("mbarrier.try_wait.parity", spaces="shared", operands=operands)
    return "\n".join(["$wait:", waits, "@!%p_done bra $wait;"])


def module_of(text: str, arch: str, version: Version = NEWEST_VERSION) -> str:
    """Write a PTX module that contains the given instructions.

    The prefix of a register's name decides its type. Registers that the instructions do not write are parameters.
    """
    lines = [f".reg .{kind} %{name};" for name, kind in _registers(text)]
    inputs = _inputs(text)
    lines += [f"ld.param.{kind} %{name}, [p_{name}];" for name, kind in inputs]
    parameters = [f".{kind} p_{name}" for name, kind in inputs]
    return ptx_module("lowered", [*lines, text, "ret;"], arch, version, parameters=parameters)


def _inputs(text: str) -> list[tuple[str, str]]:
    """List the registers that the instructions read before they write them."""
    written = set(re.findall(r"^(?:add|mbarrier\.try_wait)\S* %(\w+),", text, re.MULTILINE))
    return [(name, kind) for name, kind in _registers(text) if name not in written]


def _registers(text: str) -> list[tuple[str, str]]:
    """List the registers of instructions, each with the type that the prefix of its name determines."""
    names = sorted(set(re.findall(r"%(\w+)", text)))
    return [(name, bits) for name in names for prefix, bits in _CLASSES if re.fullmatch(rf"{prefix}(_\w+|\d+)", name)]


def cuda_of(text: str) -> str:
    """Convert PTX to a CUDA C++ kernel, for a compiler that does not accept PTX modules."""
    code = [line.partition("//")[0].strip() for line in text.splitlines()]
    inputs = _inputs(text)
    types = {"b64": ("unsigned long long", "l"), "b32": ("unsigned", "r"), "b16": ("unsigned short", "h")}
    declared = [f".reg .{kind} %{name};" for name, kind in _registers(text)]
    moved = [f"mov.{kind} %%{name}, %{number};" for number, (name, kind) in enumerate(inputs)]
    lines = [line.replace("%", "%%") for line in declared] + moved + [line.replace("%", "%%") for line in code if line]
    parameters = ", ".join([f"{types[kind][0]} {name}" for name, kind in inputs])
    operands = ", ".join([f'"{types[kind][1]}"({name})' for name, kind in inputs])
    return "\n".join(
        [
            f'extern "C" __global__ void lowered({parameters}) {{',
            '  asm volatile("{\\n"',
            *[f'    "{line}\\n"' for line in lines],
            f'    "}}" :: {operands} : "memory");',
            "}",
            "",
        ]
    )


def cubin_of(text: str, arch: str) -> bytes:
    """Compile instructions to a cubin with NVRTC, or with ptxas if NVRTC is not installed.

    Raises:
        MissingPackageError: neither is installed.
        DeviceError: the compiler refuses the text.
    """
    from cute_py.gpu.nvrtc import run_nvrtc

    is_module = ".version" in text
    if not is_module:
        try:
            return run_nvrtc(cuda_of(text), "lowered", arch, "cubin")
        except MissingPackageError:
            if find_ptxas() is None:
                raise
    module = text if is_module else module_of(text, arch)
    accepted, messages, cubin = assemble_module(module, arch)
    if not accepted:
        raise DeviceError("ptxas rejects the PTX of stage 6", {"arch": arch, "ptxas": messages})
    return cubin


_BESIDE: Final = {
    re.compile(r"cp\.(reduce\.)?async\.bulk\.tensor"): "UTMALDG|UTMASTG|UTMAREDG",
    re.compile(r"mbarrier\.arrive"): r"SYNCS\.ARRIVE",
    re.compile(r"cp\.async\.bulk\.commit_group"): "UTMACMDFLUSH",
}
"""Start of a PTX instruction -> its machine instruction."""


def stage7_text(text: str, arch: str, sass: bool) -> str:
    """Return the machine code of stage 6 as text, after a table of the tensor copies and arrivals in it.

    Raises:
        MissingPackageError: no disassembler, or no compiler for a cubin, is installed.
        DeviceError: one of them fails.
    """
    if not sass:
        return "// on request: lower(..., sass=True)"
    code = disassemble(cubin_of(text, arch)).strip()
    whole = re.sub(r"//[^\n]*|^\$\w+:|\s+", lambda found: "" if found[0].strip() else " ", text)
    beside = []
    for beginning, opcodes in _BESIDE.items():
        became = re.findall(rf"(?:{opcodes})[^;]*", code)
        written = [" ".join(part.split()) for part in whole.split(";") if beginning.match(part.strip())]
        beside += [f"// {ptx_};  ->  {machine.strip()};" for ptx_, machine in zip(written, became, strict=False)]
    return "\n".join([*beside, code])


@record
class Lowering:
    """The lowering of one copy.

    Attributes:
        copy: the lowered copy.
        witness: the name of the copy atom that was chosen for the architecture. reasons: the reasons for the choice.
        stages: the stages, in order.
        flow: the form of the byte count at each stage.
        orders: the coordinate order of each stage.
        spaces: the address space of each operand.
        phases: the phases of LowerTMALoadStoreToAsync.
        consumer: stages 3w to 6w of the consumer's wait.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> trace = cute.tma.lower(atom)
    >>> trace.witness, [stage.name for stage in trace.stages][:2]
    ('sm90_tma_load_2d_f16', ['cuda_tile', 'nv_tileaa'])
    """

    copy: TracedCopy
    arch: str
    witness: str
    reasons: tuple[str, ...]
    stages: tuple[Stage, ...]
    flow: tuple[FlowRow, ...]
    orders: tuple[OrderRow, ...]
    spaces: tuple[SpaceRow, ...]
    phases: PhaseTrace | None
    consumer: tuple[Stage, ...] = ()

    @property
    def element_coords(self) -> tuple[int, ...] | None:
        """Coordinates of the tile's first element, innermost first; None without a tile coordinate."""
        return self.copy.start

    def stage(self, number: str) -> Stage:
        """Return a stage by its number ("1", "3a", "6"); "3w" to "6w" are the stages of the consumer's wait.

        Raises:
            CoordinateError: this lowering has no such stage.
        """
        expect(number, str, "the name of a stage")
        every = (*self.stages, *self.consumer)
        for stage in every:
            if stage.number == number:
                return stage
        raise CoordinateError(
            f"stage {given(number)} does not exist", {"stages": " ".join(stage.number for stage in every)}
        )

    @property
    def ptx(self) -> str:
        """The text of stage 6."""
        return self.stage("6").text

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """The diagnostics of the stages' verifiers as `stage: text`; () if every stage is valid."""
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
        parts = [f"{self.witness} on {self.arch}"]
        parts += [f"  {reason}" for reason in self.reasons]
        if self.element_coords is not None:
            parts.append(f"  first element of the tile, innermost first: {self.element_coords}")
        text = ["\n".join(parts), *map(str, self.stages), *map(str, self.consumer)]
        if self.phases is not None:
            text.append(f"LowerTMALoadStoreToAsync\n{self.phases}")
        flow = [f"  {row.stage} | {row.form} | {row.carrier} | {row.source}" for row in self.flow]
        orders = [f"  {row.stage} | {row.order} | {row.why}" for row in self.orders]
        spaces = [f"  {row.operand} | {row.trail}" for row in self.spaces]
        tables = (("Transaction-byte count", flow), ("Coordinate order", orders), ("Address spaces", spaces))
        return "\n\n".join([*text, *("\n".join([title, *rows]) for title, rows in tables if rows)])

    __repr__ = short_repr

    def print(self, file: TextIO | None = None) -> None:
        """Print the trace to standard output, or to `file`."""
        if file is not None:
            expect_having(file, ("write",), "a file that is open for text")
        print(self, file=sys.stdout if file is None else file)


_ADAPTOR: Final = (("multicast mask", 7, "OptionalAttr<I16Attr>"), ("L2 cache hint", 8, "OptionalAttr<I64Attr>"))
"""The optional operands of the NVVM operation: name, adaptor slot, attribute. Source: TMA emission page."""


def _operand_notes(copy: TracedCopy) -> tuple[str, ...]:
    """Describe the positions of a load's optional operands: slot in the adaptor, number in the assembly."""
    given_ = copy.multicast > 1, copy.cache_hint
    if copy.direction != "load" or not any(given_):
        return ()
    first = mcast_opnum(copy.rank, len(im2col_offset_texts(copy)))
    numbers = first, first + given_[0]
    return tuple(
        [
            f"{name}: adaptor slot {slot}, {attribute}, operand {number} of the instruction"
            for (name, slot, attribute), there, number in zip(_ADAPTOR, given_, numbers, strict=True)
            if there
        ]
    )


def _boxes_note(copy: TracedCopy) -> str:
    """Describe how many boxes a tile has, and whether the swizzle is the reason."""
    row, boxes = copy.tile[-1] * copy.dtype.bits // 8, f"the tile takes {copy.num_boxes} boxes of {list(copy.box)}"
    why = f": a row has {row} bytes, and a {copy.span}B-swizzled row at most {copy.span}"
    return boxes + why * (0 < copy.span < row)


def _tma_stages(copy: TracedCopy, arch: str, checked: dict[str, tuple[str, ...]], sass: bool) -> list[Stage]:
    """Make stages 3 to 7 of a TMA copy."""
    n = value_names(copy)
    outer, inner = (n.outer_list, texts.OUTER_FIRST), (n.inner_list, texts.INNER_FIRST)
    flow = [(row.form, row.carrier) for row in texts.transaction_flow(copy)[2:]]
    held = flow or [("none: completion by bulk group", "")] * 4
    notes = [_boxes_note(copy)] if copy.num_boxes > 1 else []
    if copy.multicast > 1:
        which = f"CTA {copy.cta} of" if copy.cta else "the first of"
        first = f"the boxes are the slice of {which} {copy.multicast} CTAs"
        notes.append(f"{first}; each receives the whole tile")
    if "::w" in copy.mode:
        notes.append("the bytes do not count halo pixels; the bytes of im2col-wide loads were not measured")
    host = "descriptor made on the host: a .param slot marked cute_nvgpu.grid_constant"
    device = "descriptor made on the device: the sequence of tensormap.replace with its fences"
    notes.append(device if copy.device else host)
    for made in texts.rebind_of(copy):
        if made.step.field == "global_stride" and made.value.startswith("%"):
            notes.append(f"{made.value}: the {made.step.role} of the tensor map, an argument of the kernel")
    scale = "the coordinate of an instruction is in elements: tile coordinate x tile extent"
    wrong = (*checked["4"], *checked["5"], *checked["6"])
    text6 = f"// not emitted: {wrong[0]}" if wrong else stage6_text(copy, arch)
    text7 = text6 if wrong else stage7_text(text6, arch, sass)
    notes7 = (f"expected machine instruction: {SASS_OPCODES[copy.direction]} (CUDA Binary Utilities)",)
    found = (*checked["3b"], *checked["3c"])
    return [
        Stage("3", "nv_tileas", texts.stage3_text(copy), *outer, *held[0], tuple(notes), found),
        Stage(
            *("4", "LLVM IR", texts.stage4_text(copy), *inner, *held[1]),
            notes=(scale, *_operand_notes(copy)),
            checked=checked["4"],
        ),
        Stage("5", "NVPTX MIR", texts.stage5_text(copy), *inner, *held[2], checked=checked["5"]),
        Stage("6", "PTX text", text6, *inner, *held[3], checked=checked["6"]),
        Stage("7", "SASS", text7, notes=notes7),
    ]


def _consumer_stages(copy: TracedCopy) -> tuple[Stage, ...]:
    """Make stages 3 to 6 of the consumer's wait."""
    names = ("nv_tileas", "LLVM IR", "NVPTX MIR", "PTX text")
    waits = zip("3456", names, (*texts.wait_texts(copy), wait_text()), strict=True)
    return tuple([Stage(f"{number}w", f"{name}, the consumer's wait", text) for number, name, text in waits])


def _legacy_stages(copy: TracedCopy, witness: str, arch: str, found: tuple[str, ...], sass: bool) -> list[Stage]:
    """Make stages 3 to 7 of a copy without TMA; `found` lists the reasons why no code is emitted."""
    asynchronous = witness.startswith("sm80_") and copy.direction == "load"
    granule = granule_bytes(copy, "cp.async" if asynchronous else "ldg")
    words = granule // 4
    vector, many = (f"<{words} x i32>", f"v{words}i32") if words > 1 else ("i32", "i32")
    held = ", ".join(f"%v{word}" for word in range(words))
    if asynchronous:
        llvm = f"call void @llvm.nvvm.cp.async.ca.shared.global.{granule}(ptr addrspace(3) %dst, ptr addrspace(1) %src)"
        mir = f"CP_ASYNC_CA_SHARED_GLOBAL_{granule} %dst, %src"
    elif copy.direction == "load":
        llvm = f"%v = load {vector}, ptr addrspace(1) %src, align {granule}, !invariant.load !0"
        mir = f"INT_PTX_LDG_G_{many} %src"
    else:
        llvm = f"store {vector} %v, ptr addrspace(1) %dst, align {granule}"
        mir = f"{f'STV_i32_v{words}' if words > 1 else 'ST_i32'} {held}, %dst"
    text6 = legacy_ptx(copy, arch, "cp.async" if asynchronous else "ldg")
    note = "every thread computes its addresses; no descriptor, no barrier, no transaction bytes"
    return [
        Stage("3", "nv_tileas", texts.stage3_legacy_text(copy, witness), notes=(note,), checked=found),
        Stage("4", "LLVM IR", llvm),
        Stage("5", "NVPTX MIR", mir),
        Stage("6", "PTX text", text6),
        *([Stage("7", "SASS", stage7_text(text6, arch, sass))] if sass else []),
    ]


def lower(
    atom: Copyable | TracedCopy,
    tile_coord: Tree | None = None,
    arch: str = "sm_90a",
    *,
    allow_tma: bool = True,
    device_descriptor: bool = False,
    alignment: int | None = None,
    mem_semantic: str = "relaxed",
    in_bounds: Sequence[bool] | None = None,
    operation: str | None = None,
    im2col_offsets: Sequence[int] | None = None,
    sass: bool = False,
) -> Lowering:
    """Lower one copy through all stages.

    Args:
        atom: a TMA atom, bound or not; an operation or a descriptor of the reference pages; or a request of a tensor
            map. A descriptor or a request is a load of one box.
        tile_coord: the tile, as for `execute`: its index, or its coordinate in the tile modes of the divided tensor.
            For a copy without a divided tensor, such as a request without an atom, the coordinate counts tiles,
            outermost first. It determines the element coordinates and the offsets of an im2col load. If `atom` is an
            operation, the default is the coordinate of the operation; its CTA, prefetch and inBounds promise then apply
            too.
        arch: the target; below sm_90 the copy is emitted with cp.async or plain loads.
        allow_tma: False refuses TMA on any architecture.
        device_descriptor: whether the tensor map is made on the device; its rebind is then part of stages 3, 4 and 6.
        alignment: alignment of the address of the tensor map, in bytes; by default the alignment of the descriptor.
        mem_semantic: memory semantic of the copy. A load can't be acquire, and a store can't be release.
        in_bounds: one value per mode of the tile, outermost first. The default is true if an operation promises it,
            otherwise whether the tile (or, without a coordinate, every tile) is inside the tensor.
        operation: load, store or reduce, as the program requests it; by default the operation of the atom. Stage 3c
            checks that the atom supports it.
        im2col_offsets: offsets of an im2col load, W first. Stage 4 checks their number.
        sass: make stage 7, the machine code of a cubin from NVRTC or ptxas, disassembled by nvdisasm (`pip install
            'cute-py[sass]'`).

    >>> import cute_py as cute
    >>> x = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.Layout((512, 512), (512, cute.Int(1))))
    >>> tile = cute.tma.make_smem_layout("K", "128B", "bfloat16", (128, 128))
    >>> trace = lower(cute.tma.make_tma_copy("SM90_TMA_LOAD", x, tile))
    >>> trace.witness, trace.copy.transaction_bytes, trace.copy.box
    ('sm90_tma_load_2d_bf16', 32768, (128, 64))

    Raises:
        TmaBuildError: the argument is not an atom, or its values contradict each other.
        CoordinateError: the number of coordinates is wrong.
        InvalidValueError: the tile or the architecture does not exist.
        EmissionError: no code exists for this copy on this architecture.
        TmaLimitError: the tile does not fit into the shared memory of a block on this architecture.
        MissingPackageError: `sass` is set, but no disassembler or no compiler for a cubin is installed.
    """
    copy = trace_copy(
        atom,
        tile_coord,
        device_descriptor=device_descriptor,
        alignment=alignment,
        mem_semantic=mem_semantic,
        in_bounds=in_bounds,
        operation=operation,
        im2col_offsets=im2col_offsets,
    )
    has_tma = architecture(arch).number >= 90
    if has_tma:
        expect_block(copy.smem_bytes, copy.direction, arch)
    expect(sass, bool, "sass")
    witness, reasons = texts.witness_of(copy, arch, allow_tma)
    checked = texts.check_stages(copy, arch)
    order = (value_names(copy).outer_list, texts.OUTER_FIRST)
    implicit = [(row.form, row.carrier) for row in texts.transaction_flow(copy)[:2]] or [("", "")] * 2
    traces = (
        ("1", "cuda_tile", texts.stage1_text(copy)),
        ("2", "nv_tileaa", texts.stage2_text(copy, witness)),
        ("3a", "nv_tileas before the rewrite", texts.tiled_copy_text(copy, witness, "nv_tileas")),
    )
    notes = (f"the tensor: {copy.view.values}",) if copy.view.values else ()
    walked = [
        Stage(*trace, *order, *held, notes if trace[0] == "1" else (), checked[trace[0]])
        for trace, held in zip(traces, (*implicit, implicit[1]), strict=True)
    ]
    spaces = texts.address_spaces(copy)
    if not witness.startswith("sm90_"):
        found = (*checked["3b"], *checked["3c"]) if has_tma and allow_tma else ()
        walked += _legacy_stages(copy, witness, arch, found, sass)
        return Lowering(copy, arch, witness, reasons, tuple(walked), (), (), spaces[::2], None)
    walked += _tma_stages(copy, arch, checked, sass)
    tables = (texts.transaction_flow(copy), texts.coordinate_orders(copy), spaces)
    phases = run_phases(KernelFunction(arch, (copy,), allow_tma=allow_tma))
    consumer = _consumer_stages(copy) if copy.direction == "load" else ()
    return Lowering(copy, arch, witness, reasons, tuple(walked), *tables, phases, consumer)
