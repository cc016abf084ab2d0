"""Rebinding a tensor map on the device: new address, extents and strides in a map that keeps its format and box.

The sequence of the TMA Atoms reference pages: (optional seed copy by cp_fenceproxy,) acquire fence, address, all
extents, strides of modes 1.., release fence; 1 + rank + (rank - 1) = 2 x rank replacements. The fence scope is cta
within one CTA and gpu across CTAs. A consumer acquires before the copy that reads the map.

Two kinds of map are made on the host only: im2col maps, and maps of 2-CTA copies; no mutator writes what they need. A
zeroed slot has neither rank nor box nor format, which no mutator sets either: it needs the seed copy, or the full set
of ten replacements (`birth_sequence`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_choice, expect_fields, expect_having, expect_integer
from cute_py.errors import EmissionError
from cute_py.ptx.render import ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture, expect_version, version_text
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.replace import ELEMTYPES
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled
from cute_py.tma.dialect.copy_shape import CopyShape

SPACES = ("global", "shared::cta")
SCOPES = ("cta", "gpu", "sys")
MUTABLE_FIELDS = ("global_address", "global_dim", "global_stride")
"""What the rebind path writes. Everything else is fixed at the map's birth."""

SLOT_ALIGNMENT = 128
"""Bytes: the .b1024 operation works on an aligned slot."""


@dataclass(frozen=True, slots=True)
class RebindStep:
    """One step: its role, the instruction as the assembler takes it, the field and ordinal of a replacement."""

    role: str
    text: str
    field: str = ""
    ordinal: int | None = None


@dataclass(frozen=True, slots=True)
class RebindSequence:
    """The steps in order, for maps of `rank` in `space`."""

    rank: int
    space: str
    scope: str
    steps: tuple[RebindStep, ...]

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def replacements(self) -> tuple[RebindStep, ...]:
        """The tensormap.replace steps: 2 x rank of them."""
        return tuple(step for step in self.steps if step.field)

    @property
    def text(self) -> str:
        """The instructions, one a line, each with its role as a comment."""
        return "\n".join(f"{step.text} // {step.role}" for step in self.steps)


def scope_for(crosses_cta: bool) -> str:
    """The fence scope: cta if producer and consumer are one CTA, else gpu."""
    return "gpu" if crosses_cta else "cta"


def scope_violations(scope: str, crosses_cta: bool) -> tuple[str, ...]:
    """Why this scope does not order the rebind.

    >>> scope_violations("cta", crosses_cta=True)
    ('fence scope cta; across CTAs the scope gpu (or sys) is mandatory, or the map is staged in each CTA',)
    """
    found = []
    if scope not in SCOPES:
        found.append(f"fence scope {scope}; expected one of {', '.join(SCOPES)}")
    elif crosses_cta and scope == "cta":
        found.append(
            "fence scope cta; across CTAs the scope gpu (or sys) is mandatory, or the map is staged in each CTA"
        )
    return tuple(found)


def host_born_reasons(copy: CopyShape | TensorMap) -> tuple[str, ...]:
    """Why the map of this copy (or this request) can only be made on the host; () if a device may rebind it."""
    found = []
    if isinstance(copy, CopyShape):
        if copy.mode.startswith("im2col"):
            found.append("im2col descriptors are host-born: no mutator writes the im2col fields")
        if copy.cta_group == 2:
            found.append("2-CTA descriptors are host-born: the CTA V-map folds into the box, which has no mutator")
    elif not isinstance(copy, TensorMapTiled):
        found.append("im2col descriptors are host-born: no mutator writes the im2col fields")
    return tuple(found)


def rebind_violations(
    rank: int,
    fields: Sequence[str] = MUTABLE_FIELDS,
    *,
    space: str = "global",
    scope: str = "cta",
    crosses_cta: bool = False,
    alignment: int = SLOT_ALIGNMENT,
    zeroed: bool = False,
    seed_copy: bool = False,
) -> tuple[str, ...]:
    """Every reason why a rebind can't be done; () if it can."""
    found = []
    if not 1 <= rank <= MAX_RANK:
        found.append(f"rank = {rank}; must be 1 to 5")
    if space not in SPACES:
        found.append(f"address space {space}; a map is replaced in global or shared::cta")
    if alignment % SLOT_ALIGNMENT:
        found.append(f"slot alignment = {alignment} bytes; must be a multiple of {SLOT_ALIGNMENT}")
    found += scope_violations(scope, crosses_cta)
    for field in fields:
        if field not in MUTABLE_FIELDS:
            found.append(f"{field} has no mutator on the rebind path: make the map anew on the host")
    if zeroed and not seed_copy:
        found.append(
            "a zeroed slot has no rank, box or format: copy a host map into it first, or replace all ten fields"
        )
    return tuple(found)


def _slot(space: str) -> str:
    return "%rd_map" if space == "global" else "%r_map"


def _replace(field: str, space: str, ordinal: int | None, value: str, role: str) -> RebindStep:
    operands: dict[str, str | int] = {"map": f"[{_slot(space)}]", "value": value}
    if ordinal is not None:
        operands["ordinal"] = ordinal
    text = ptx("tensormap.replace", field=field, spaces=space, operands=operands)
    return RebindStep(role, text, field, ordinal)


def rebind_sequence(
    rank: int,
    *,
    space: str = "global",
    scope: str = "cta",
    crosses_cta: bool = False,
    seed_copy: bool = False,
    zeroed: bool = False,
) -> RebindSequence:
    """The instructions of one rebind.

    Registers: `%rd_map` (or `%r_map` in shared::cta) the slot, `%r_seed` the seed in shared memory, `%rd_address`,
    `%r_extent0..`, `%rd_stride1..` in bytes, innermost mode first.

    >>> [step.field for step in rebind_sequence(2).replacements]
    ['global_address', 'global_dim', 'global_dim', 'global_stride']

    Raises:
        EmissionError: one of `rebind_violations`, the first as the headline.
    """
    rank = expect_integer(rank, "rank")
    for name, value in (("space", space), ("scope", scope)):
        expect(value, str, name)
    for name, flag in (("crosses_cta", crosses_cta), ("seed_copy", seed_copy), ("zeroed", zeroed)):
        expect(flag, bool, name)
    wrong = rebind_violations(
        rank, space=space, scope=scope, crosses_cta=crosses_cta, seed_copy=seed_copy, zeroed=zeroed
    )
    if seed_copy and space != "global":
        wrong = (*wrong, "the seed copy goes from shared::cta to a slot in global memory")
    if wrong:
        raise EmissionError(wrong[0], {f"also {n}": text for n, text in enumerate(wrong[1:], 1)})
    steps = []
    if seed_copy:
        text = ptx("tensormap.cp_fenceproxy", scope=scope, operands={"destination": "[%rd_map]", "source": "[%r_seed]"})
        steps.append(RebindStep("seed copy of a host map, by a whole warp", text))
    acquire = ptx("fence.proxy.tensormap.acquire", scope=scope, operands={"map": f"[{_generic(space)}]"})
    steps.append(RebindStep("acquire", acquire))
    steps.append(_replace("global_address", space, None, "%rd_address", "address"))
    for mode in range(rank):
        steps.append(_replace("global_dim", space, mode, f"%r_extent{mode}", f"extent of mode {mode}"))
    for mode in range(1, rank):
        steps.append(_replace("global_stride", space, mode - 1, f"%rd_stride{mode}", f"byte stride of mode {mode}"))
    steps.append(RebindStep("release", ptx("fence.proxy.tensormap.release", scope=scope)))
    return RebindSequence(rank, space, scope, tuple(steps))


def _generic(space: str) -> str:
    """The fence takes a generic address: a global one is one, a shared one is converted before."""
    return "%rd_map" if space == "global" else "%rd_map_generic"


def consumer_acquire(scope: str) -> str:
    """The acquire of the thread that reads the map, before its copy."""
    return ptx("fence.proxy.tensormap.acquire", scope=scope, operands={"map": "[%rd_map]"})


def ptx_elemtype(request: TensorMapTiled) -> int:
    """PTX's number of the request's element format, which is not the driver's.

    >>> ptx_elemtype(TensorMapTiled(9, 4096, (64,), (), (64,)))
    10

    Raises:
        EmissionError: the format is not known, or has no number that was measured.
    """
    if request.data_type is None:
        raise EmissionError("the element format is not known")
    row = FORMATS[int(request.data_type)]
    for number, (_, code, tf32_round) in enumerate(ELEMTYPES):
        if (code, tf32_round) == (row.code, row.tf32_round):
            return number
    raise EmissionError(f"{row.data_type.name}: which elemtype number writes this format was not measured")


def birth_sequence(request: TensorMapTiled, *, space: str = "global") -> tuple[RebindStep, ...]:
    """All ten fields into a zeroed slot, with the request's literal values.

    rank is written as rank - 1; extents, box and strides of the modes that exist. `swizzle_atomicity`, the
    eleventh field, exists from sm_100 on and stays 0 here.

    Raises:
        EmissionError: the request is no tiled map with a known format.
        InvalidValueError: no such space.
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    expect_choice(space, SPACES, "space")
    reasons = host_born_reasons(request)
    if reasons:
        raise EmissionError(reasons[0])
    elemtype = ptx_elemtype(request)
    if request.swizzle > 3:
        raise EmissionError(f"swizzle {request.swizzle}: tensormap.replace writes the modes 0..3")
    rank = request.rank
    steps = [
        _replace("global_address", space, None, str(request.global_address), "address"),
        _replace("rank", space, None, str(rank - 1), f"rank {rank}, written as rank - 1"),
    ]
    for mode in range(rank):
        steps.append(_replace("box_dim", space, mode, str(request.box_dim[mode]), f"box of mode {mode}"))
    for mode in range(rank):
        steps.append(_replace("global_dim", space, mode, str(request.global_dim[mode]), f"extent of mode {mode}"))
    for mode in range(1, rank):
        stride = str(request.global_strides[mode - 1])
        steps.append(_replace("global_stride", space, mode - 1, stride, f"byte stride of mode {mode}"))
    for mode in range(rank):
        stride = str(request.element_strides[mode])
        steps.append(_replace("element_stride", space, mode, stride, f"element stride of mode {mode}"))
    steps += [
        _replace("elemtype", space, None, str(elemtype), f"element format {ELEMTYPES[elemtype][0]}"),
        _replace("interleave_layout", space, None, str(int(request.interleave)), "interleave"),
        _replace("swizzle_mode", space, None, str(int(request.swizzle)), "swizzle"),
        _replace("fill_mode", space, None, str(int(request.oob_fill)), "fill"),
    ]
    return tuple(steps)


def rebind_ptx(rank: int, arch: str = "sm_90a", *, scope: str = "gpu", version: Version = NEWEST_VERSION) -> str:
    """A PTX module with one kernel, `rebind`, that one thread runs on a map in global memory.

    Parameters: p_map u64, p_address u64, p_extent0.. u32, p_stride1.. u64 (bytes).

    Raises:
        EmissionError: the sequence has violations.
        InvalidValueError: no such architecture, or no such version.
    """
    version, arch = expect_version(version), architecture(arch).name
    sequence = rebind_sequence(rank, space="global", scope=scope)
    names = [
        ("u64", "map", "%rd_map"),
        ("u64", "address", "%rd_address"),
        *(("u32", f"extent{mode}", f"%r_extent{mode}") for mode in range(rank)),
        *(("u64", f"stride{mode}", f"%rd_stride{mode}") for mode in range(1, rank)),
    ]
    parameters = ",\n".join(f"  .param .{kind} p_{name}" for kind, name, _ in names)
    lines = [f".reg .b{kind[1:]} {register};" for kind, _, register in names]
    lines += [".reg .b32 %r_tid;", ".reg .pred %p_idle;", "mov.u32 %r_tid, %tid.x;", "setp.ne.u32 %p_idle, %r_tid, 0;"]
    lines += ["@%p_idle ret;", *(f"ld.param.{kind} {register}, [p_{name}];" for kind, name, register in names)]
    body = "\n".join([*lines, sequence.text, "ret;"])
    return (
        f".version {version_text(version)}\n.target {arch}\n.address_size 64\n"
        f".visible .entry rebind(\n{parameters})\n{{\n{body}\n}}\n"
    )
