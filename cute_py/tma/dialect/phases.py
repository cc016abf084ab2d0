"""LowerTMALoadStoreToAsync in its eight phases, on a function that holds any number of copies.

1 KernelSpec gate, 2 TMA-eligibility scan, 3 tmaIdx assignment, 4 descriptor bind, 5 async op materialization,
6 mbarrier emission, 7 wait sinking, 8 diagnostic finalization. A function without a kernel spec is left as it is,
with a diagnostic; a copy whose witness is no TMA atom is skipped in phase 2.

A kernel has two populations of tensor maps, made on the host and made on the device, each with its own counter. Device
slots are before host slots in the block of parameters that the kernel gets appended, so that a kernel finds its working
buffer at a fixed offset. A host map is passed by value, marked `cute_nvgpu.grid_constant`, which is later
`nvvm.grid_constant`; the marked parameter is 128-byte aligned in .param.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect, expect_fields
from cute_py.diagnostics import Diagnostic
from cute_py.tma.dialect.copy_shape import CopyShape, Witness, choose_witness
from cute_py.tma.dialect.diagnostics import DESCRIPTOR_BYTES, broken, check_stages
from cute_py.tma.dialect.stages import names_of, stage3_text

HOST_COUNTER: Final = "nv_tileas.num-host-tmas"
DEVICE_COUNTER: Final = "nv_tileas.num-device-tmas"


@dataclass(frozen=True, slots=True)
class DescriptorSlot:
    """One slot: its byte offset in the block, the population, the index in it (`tmaIdx`), the parameter's attribute
    (device maps are plain pointers to working memory)."""

    offset: int
    origin: str
    tma_index: int
    attribute: str


def descriptor_slots(num_device: int, num_host: int) -> tuple[DescriptorSlot, ...]:
    """The slots in block order: device first.

    >>> [(slot.origin, slot.offset) for slot in descriptor_slots(1, 2)]
    [('device', 0), ('host', 128), ('host', 256)]
    """
    kinds = [("device", i, "") for i in range(num_device)]
    kinds += [("host", i, "cute_nvgpu.grid_constant") for i in range(num_host)]
    return tuple(DescriptorSlot(position * DESCRIPTOR_BYTES, *kind) for position, kind in enumerate(kinds))


def check_counters(host: Sequence[int], device: Sequence[int], num_host: int, num_device: int) -> list[Diagnostic]:
    """Do the counters agree with the indices in use?

    >>> print(*check_counters([0, 1], [], num_host=1, num_device=0))
    tmaIdx exceed tmaHostNum.
    """
    return broken(
        (any(not 0 <= index < num_host for index in host), "counters.host", ""),
        (any(not 0 <= index < num_device for index in device), "counters.device", ""),
    )


PASS = "LowerTMALoadStoreToAsync"
MISSING_SPEC = f"{PASS}: missing or invalid KernelSpecAttr on function"
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


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """What the pass reads: the kernel spec's architecture (None: no attribute), the copies, the counters.

    num_host_tmas, num_device_tmas: the function's counters if they are set already; None lets phase 3 set them.
    """

    arch: str | None
    copies: tuple[CopyShape, ...]
    num_host_tmas: int | None = None
    num_device_tmas: int | None = None
    allow_tma: bool = True

    def __post_init__(self) -> None:
        expect_fields(self)


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


@dataclass(frozen=True, slots=True)
class PhaseTrace:
    """The outcome: phases in order, the copies that were rewritten, the counters, diagnostics.

    `rewritten` is empty and one diagnostic is there if the gate stopped the pass.
    """

    phases: tuple[Phase, ...]
    rewritten: tuple[BoundCopy, ...]
    num_host_tmas: int
    num_device_tmas: int
    diagnostics: tuple[str, ...]

    def __post_init__(self) -> None:
        expect_fields(self)

    def __str__(self) -> str:
        lines = []
        for phase in self.phases:
            lines.append(f"phase {phase.number}: {phase.name}")
            lines += [f"  {line}" for line in phase.lines]
        return "\n".join(lines + [f"diagnostic: {text}" for text in self.diagnostics])


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
    used: dict[str, list[int]] = {"host": [], "device": []}
    bound = []
    for shape, witness in chosen:
        if witness.is_tma:  # phase 3 counts each population from zero, in program order
            indices = used["device" if shape.device_descriptor else "host"]
            indices.append(len(indices))
            bound.append(BoundCopy(shape, witness, indices[-1]))
    num_host = len(used["host"]) if function.num_host_tmas is None else function.num_host_tmas
    num_device = len(used["device"]) if function.num_device_tmas is None else function.num_device_tmas
    diagnostics = [d.text for d in check_counters(used["host"], used["device"], num_host, num_device)]
    for copy in bound:
        diagnostics += [f"stage {stage}: {text}" for stage, found in check_stages(copy.shape).items() for text in found]
    named = [(f"%{names_of(copy.shape).small}", copy) for copy in bound]
    loads = [(name, copy.shape.transaction_bytes) for name, copy in named if copy.shape.direction == "load"]
    lines: tuple[tuple[str, ...], ...] = (
        (f"nv_tileaa.kernel_spec is there: {function.arch}",),
        tuple(f"{witness.name}: {'TMA' if witness.is_tma else 'skipped, no TMA atom'}" for _, witness in chosen),
        (
            *(f"{name}: tmaIdx = {copy.tma_index} ({copy.origin})" for name, copy in named),
            f"{HOST_COUNTER} = {num_host}",
            f"{DEVICE_COUNTER} = {num_device}",
        ),
        tuple(f"%desc_{name[1:]}: {copy.origin} descriptor" for name, copy in named),
        tuple(f"{stage3_text(copy.shape, copy.tma_index).splitlines()[-1]} {name}" for name, copy in named),
        tuple(f"{name}: one slot, count = 1, expects {count} bytes" for name, count in loads),
        tuple(f"{name}: mbarrier.try_wait.parity before the first use of the tile" for name, _ in loads),
        (f"{len(diagnostics)} diagnostics",),
    )
    phases = tuple(Phase(number, name, text) for number, (name, text) in enumerate(zip(PHASES, lines, strict=True), 1))
    return PhaseTrace(phases, tuple(bound), num_host, num_device, tuple(diagnostics))
