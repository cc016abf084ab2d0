"""LowerTMALoadStoreToAsync in its eight phases, on a function that holds any number of copies.

1 KernelSpec gate, 2 TMA-eligibility scan, 3 tmaIdx assignment, 4 descriptor bind, 5 async op materialization,
6 mbarrier emission, 7 wait sinking, 8 diagnostic finalization. A function without a kernel spec is left as it is,
with a diagnostic; a copy whose witness is no TMA atom is skipped in phase 2.

The two populations of tensor maps of a kernel: made on the host, made on the device; their slots and counters.

Device slots stand before host slots in the block of parameters that the kernel gets appended, so that a kernel finds
its working buffer at a fixed offset. A host map is passed by value, marked `cute_nvgpu.grid_constant`, which is later
`nvvm.grid_constant`; the marked parameter is 128-byte aligned in .param.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import TmaBuildError
from cute_py.tma.dialect.copy_shape import CopyShape, Witness, choose_witness
from cute_py.tma.dialect.diagnostics import check_stages
from cute_py.tma.dialect.stages import names_of, stage3_text

SLOT_BYTES = 128
GRID_CONSTANT = "cute_nvgpu.grid_constant"
LIFTED_GRID_CONSTANT = "nvvm.grid_constant"
HOST_COUNTER = "nv_tileas.num-host-tmas"
DEVICE_COUNTER = "nv_tileas.num-device-tmas"


@dataclass(frozen=True, slots=True)
class DescriptorSlot:
    """One slot: its place in the block, its byte offset there, the population and the index in it (`tmaIdx`)."""

    position: int
    offset: int
    origin: str
    tma_index: int

    @property
    def attribute(self) -> str:
        """The parameter attribute: host maps are grid constants, device maps are plain pointers to working memory."""
        return GRID_CONSTANT if self.origin == "host" else ""


def descriptor_slots(num_device: int, num_host: int) -> tuple[DescriptorSlot, ...]:
    """The slots in block order: device first.

    >>> [(slot.origin, slot.offset) for slot in descriptor_slots(1, 2)]
    [('device', 0), ('host', 128), ('host', 256)]
    """
    kinds = [("device", i) for i in range(num_device)] + [("host", i) for i in range(num_host)]
    return tuple(
        DescriptorSlot(position, position * SLOT_BYTES, origin, index) for position, (origin, index) in enumerate(kinds)
    )


def counter_violations(
    host_indices: Sequence[int], device_indices: Sequence[int], num_host: int, num_device: int
) -> tuple[str, ...]:
    """Whether the counters agree with the indices in use, in the verifier's words.

    >>> counter_violations([0, 1], [], num_host=1, num_device=0)
    ('tmaIdx exceed tmaHostNum.',)
    """
    found = []
    if any(not 0 <= index < num_host for index in host_indices):
        found.append("tmaIdx exceed tmaHostNum.")
    if any(not 0 <= index < num_device for index in device_indices):
        found.append("tmaIdx exceed tmaDeviceNum.")
    return tuple(found)


def check_counters(host_indices: Sequence[int], device_indices: Sequence[int], num_host: int, num_device: int) -> None:
    """Raise the first diagnostic of `counter_violations`.

    Raises:
        TmaBuildError: an index is beyond its counter.
    """
    found = counter_violations(host_indices, device_indices, num_host, num_device)
    if found:
        raise TmaBuildError(
            found[0],
            {
                HOST_COUNTER: num_host,
                DEVICE_COUNTER: num_device,
                "host tmaIdx": list(host_indices),
                "device tmaIdx": list(device_indices),
            },
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


def _bind(copies: list[tuple[CopyShape, Witness]]) -> tuple[BoundCopy, ...]:
    """Phase 3: count each population from zero, in program order."""
    counts = {"host": 0, "device": 0}
    bound = []
    for shape, witness in copies:
        origin = "device" if shape.device_descriptor else "host"
        bound.append(BoundCopy(shape, witness, counts[origin]))
        counts[origin] += 1
    return tuple(bound)


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
    tma = [(shape, witness) for shape, witness in chosen if witness.is_tma]
    bound = _bind(tma)
    host = [copy.tma_index for copy in bound if copy.origin == "host"]
    device = [copy.tma_index for copy in bound if copy.origin == "device"]
    num_host = len(host) if function.num_host_tmas is None else function.num_host_tmas
    num_device = len(device) if function.num_device_tmas is None else function.num_device_tmas
    loads = [copy for copy in bound if copy.shape.direction == "load"]
    diagnostics = list(counter_violations(host, device, num_host, num_device))
    for copy in bound:
        for stage, found in check_stages(copy.shape).items():
            diagnostics += [f"stage {stage}: {text}" for text in found]
    label = {id(copy): f"%{names_of(copy.shape).small}" for copy in bound}
    lines: tuple[tuple[str, ...], ...] = (
        (f"nv_tileaa.kernel_spec is there: {function.arch}",),
        tuple(f"{witness.name}: {'TMA' if witness.is_tma else 'skipped, no TMA atom'}" for _, witness in chosen),
        (
            *(f"{label[id(copy)]}: tmaIdx = {copy.tma_index} ({copy.origin})" for copy in bound),
            f"{HOST_COUNTER} = {num_host}",
            f"{DEVICE_COUNTER} = {num_device}",
        ),
        tuple(f"%desc_{names_of(copy.shape).small}: {copy.origin} descriptor" for copy in bound),
        tuple(stage3_text(copy.shape, copy.tma_index).splitlines()[-1] + f" {label[id(copy)]}" for copy in bound),
        tuple(
            f"{label[id(copy)]}: one slot, count = 1, expects {copy.shape.transaction_bytes} bytes" for copy in loads
        ),
        tuple(f"{label[id(copy)]}: mbarrier.try_wait.parity before the first use of the tile" for copy in loads),
        (f"{len(diagnostics)} diagnostics",),
    )
    phases = tuple(Phase(number, name, text) for number, (name, text) in enumerate(zip(PHASES, lines, strict=True), 1))
    return PhaseTrace(phases, bound, num_host, num_device, tuple(diagnostics))
