"""Rebind a tensor map on the device: write new address, extents and strides to a map that keeps its format and box.

The sequence follows the TMA Atoms reference pages: an optional seed copy (a host map, copied by cp_fenceproxy), the
acquire fence, the address, all extents, the strides of modes 1.., and the release fence. It has 1 + rank + (rank - 1) =
2 x rank replacements. The fence scope is cta within one CTA and gpu across CTAs. A consumer executes an acquire fence
before the copy that reads the map.

On these pages, the three instructions that write a field are LLVM inline assembly with the slot as `$0` and the value
as `$1`; `mutator` returns them. Only the host can make im2col maps and maps of 2-CTA copies, because no mutator writes
the fields that they need. A slot that contains zeros has no rank, box or format, and no mutator sets these. It needs
the seed copy, or the full set of ten replacements (`init_sequence`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_choice, expect_having, expect_integer, record
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import EmissionError
from cute_py.ptx.check import examine
from cute_py.ptx.forms_barrier import WIDE_FIELDS
from cute_py.ptx.module import ptx_module
from cute_py.ptx.render import ptx
from cute_py.targets import NEWEST_VERSION, Version, architecture, expect_version
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.limits import bounds
from cute_py.tma.descriptor.replace import DEVICE_MUTABLE, ELEMTYPES, IM2COL_HOST_ONLY, REPLACE_FIELDS
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled, request_of
from cute_py.tma.dialect.diagnostics import broken, short_repr
from cute_py.tma.dialect.traced_copy import TracedCopy

__all__ = ["RebindSequence", "init_sequence", "mutator", "rebind_ptx", "rebind_sequence"]

SPACES = ("global", "shared::cta")
SCOPES = ("cta", "gpu", "sys")


@dataclass(frozen=True, slots=True)
class RebindInstruction:
    """One step of a rebind: its role, its PTX instruction, and the field and ordinal of a replacement."""

    role: str
    text: str
    field: str = ""
    ordinal: int | None = None


@record
class RebindSequence:
    """The steps of a rebind in order, for maps of `rank` modes in the state space `space`.

    >>> len(rebind_sequence(2).steps)
    6
    """

    rank: int
    space: str
    scope: str
    steps: tuple[RebindInstruction, ...]

    @property
    def replacements(self) -> tuple[RebindInstruction, ...]:
        """The 2 x rank steps with a tensormap.replace."""
        return tuple(step for step in self.steps if step.field)

    @property
    def text(self) -> str:
        """The instructions as text, one per line, each with its role as a comment."""
        return "\n".join(f"{step.text} // {step.role}" for step in self.steps)

    def __str__(self) -> str:
        return f"rebind of a map of rank {self.rank} in {self.space}: {len(self.replacements)} replacements"

    __repr__ = short_repr


def check_host_only(copy: TracedCopy | TensorMap) -> list[Diagnostic]:
    """List the reasons why only the host can make the tensor map of a copy or request.

    The list is empty if a device can rebind the map.
    """
    request, pair = request_of(copy), getattr(getattr(copy, "instruction", None), "ctas", 1) == 2
    im2col = request.KIND != "tiled"
    folded = "2-CTA descriptors can only be made on the host: the CTA V-map folds into the box, which has no mutator"
    return broken((im2col, "host_only", IM2COL_HOST_ONLY), (pair, "host_only", folded))


def check_rebind(
    rank: int,
    fields: Sequence[str] = DEVICE_MUTABLE,
    *,
    space: str = "global",
    scope: str = "cta",
    crosses_cta: bool = False,
    zeroed: bool = False,
    seed_copy: bool = False,
) -> list[Diagnostic]:
    """List every reason why a rebind with these arguments is impossible.

    >>> print(*check_rebind(2, scope="cta", crosses_cta=True))
    fence scope cta; across CTAs the scope gpu (or sys) is mandatory, or the map is staged in each CTA
    """
    across = "across CTAs the scope gpu (or sys) is mandatory, or the map is staged in each CTA"
    unset = "a zeroed slot has no rank, box or format: copy a host map into it first, or replace all ten fields"
    anew = "has no mutator on the rebind path; make a new map on the host"
    seeded = "the seed copy goes from shared::cta to a slot in global memory"
    low, high = bounds("rank")
    return broken(
        (not low <= rank <= high, "rank", f"rank = {rank}; must be {low} to {high}"),
        (space not in SPACES, "space", f"the address space is {space}; must be global or shared::cta"),
        (scope not in SCOPES, "scope", f"fence scope {scope}; expected one of {', '.join(SCOPES)}"),
        (crosses_cta and scope == "cta", "scope", f"fence scope cta; {across}"),
        *((field not in DEVICE_MUTABLE, "field", f"{field} {anew}") for field in fields),
        (zeroed and not seed_copy, "zeroed", unset),
        (seed_copy and space != "global", "seed_copy", seeded),
    )


def mutator(field: str, space: str = "global", ordinal: int | None = None) -> str:
    """Return the inline assembly that writes one field of a map on the device.

    `$0` is the address of the map, and `$1` is the value.

    Args:
        field: global_address, global_dim or global_stride. space: the state space of the map, global or shared::cta.
        ordinal: the mode of a size, or the mode minus 1 of a stride; None for the address.

    >>> mutator("global_stride", ordinal=0)
    'tensormap.replace.tile.global_stride.global.b1024.b64 [$0], 0, $1;'
    >>> mutator_constraints("global_dim", "shared::cta")
    'r,r'

    Raises:
        EmissionError: the field has no mutator, the space can't hold a map, or the field does not have this ordinal.
    """
    expect(field, str, "the name of a field")
    expect(space, str, "space")
    found = check_rebind(1, (field,), space=space)
    ordinals = next((row.ordinals for row in REPLACE_FIELDS if row.name == field), 0)
    if ordinal is not None:
        ordinal = expect_integer(ordinal, "ordinal")
    if ordinals and (ordinal is None or not 0 <= ordinal < ordinals):
        found += broken((True, "ordinal", f"ordinal of {field} = {ordinal}; must be 0 to {ordinals - 1}"))
    if not ordinals and ordinal is not None:
        found += broken((True, "ordinal", f"{field} takes no ordinal, got {ordinal}"))
    refuse(EmissionError, found)
    value = "%rd_value" if field in WIDE_FIELDS else "%r_value"
    return re.sub(r"\[[^\s\[\]]+\]", "[$0]", _replace(field, space, value, "", ordinal).text).replace(value, "$1")


def mutator_constraints(field: str, space: str = "global") -> str:
    """Return the operand constraints of a mutator: l for 64 bits, r for 32 bits.

    Addresses in shared::cta have 32 bits.
    """
    return f"{'l' if space == 'global' else 'r'},{'l' if field in WIDE_FIELDS else 'r'}"


def _replace(field: str, space: str, value: str | int, role: str, ordinal: int | None = None) -> RebindInstruction:
    operands: dict[str, str | int] = {"map": "[%rd_map]" if space == "global" else "[%r_map]", "value": str(value)}
    operands |= {} if ordinal is None else {"ordinal": ordinal}
    return RebindInstruction(
        role, ptx("tensormap.replace", field=field, spaces=space, operands=operands), field, ordinal
    )


def rebind_sequence(
    rank: int,
    *,
    space: str = "global",
    scope: str = "cta",
    crosses_cta: bool = False,
    seed_copy: bool = False,
    zeroed: bool = False,
) -> RebindSequence:
    """Return the instructions of one rebind.

    Registers: `%rd_map` (or `%r_map` in shared::cta) is the address of the slot, and `%r_seed` is the address of the
    seed in shared memory. `%rd_address`, `%r_extent0..` and `%rd_stride1..` are the values, innermost mode first,
    strides in bytes.

    Args:
        rank: modes of the map, 1 to 5.
        space: the space of the slot, global or shared::cta.
        scope: the scope of the fences; across CTAs it must be gpu or sys.
        crosses_cta: whether other CTAs read the map.
        seed_copy: copy a host map from shared memory to the slot first.
        zeroed: whether the slot contains zeros; it then needs the seed copy.
    Raises:
        EmissionError: `check_rebind` finds a reason; the first one is the headline.

    >>> [step.field for step in rebind_sequence(2).replacements]
    ['global_address', 'global_dim', 'global_dim', 'global_stride']
    """
    rank = expect_integer(rank, "rank")
    for name, value in (("space", space), ("scope", scope)):
        expect(value, str, name)
    for name, flag in (("crosses_cta", crosses_cta), ("seed_copy", seed_copy), ("zeroed", zeroed)):
        expect(flag, bool, name)
    options = {"space": space, "scope": scope, "crosses_cta": crosses_cta, "seed_copy": seed_copy, "zeroed": zeroed}
    refuse(EmissionError, check_rebind(rank, **options))  # type: ignore[arg-type]
    steps = []
    if seed_copy:
        text = ptx("tensormap.cp_fenceproxy", scope=scope, operands={"destination": "[%rd_map]", "source": "[%r_seed]"})
        steps.append(RebindInstruction("seed copy of a host map, by all threads of a warp", text))
    # The fence takes a generic address. A global address is one; a shared address is converted before.
    generic = "[%rd_map]" if space == "global" else "[%rd_map_generic]"
    steps += [
        RebindInstruction("acquire", ptx("fence.proxy.tensormap.acquire", scope=scope, operands={"map": generic})),
        _replace("global_address", space, "%rd_address", "address"),
        *(_replace("global_dim", space, f"%r_extent{mode}", f"extent of mode {mode}", mode) for mode in range(rank)),
        *(
            _replace("global_stride", space, f"%rd_stride{mode}", f"byte stride of mode {mode}", mode - 1)
            for mode in range(1, rank)
        ),
        RebindInstruction("release", ptx("fence.proxy.tensormap.release", scope=scope)),
    ]
    return RebindSequence(rank, space, scope, tuple(steps))


def ptx_elemtype(request: TensorMapTiled) -> int:
    """Return PTX's code of the request's element format, which differs from the driver's code.

    >>> ptx_elemtype(TensorMapTiled(9, 4096, (64,), (), (64,)))
    10

    Raises:
        EmissionError: the format is unknown, or its code was not measured.
    """
    if request.data_type is None:
        raise EmissionError("the element format is not known")
    row = FORMATS[int(request.data_type)]
    for number, (_, code, tf32_round) in enumerate(ELEMTYPES):
        if (code, tf32_round) == (row.code, row.tf32_round):
            return number
    raise EmissionError(f"{row.data_type.name}: the elemtype number of this format was not measured")


def init_sequence(request: TensorMapTiled, *, space: str = "global") -> tuple[RebindInstruction, ...]:
    """Return the instructions that write all ten fields of a request, as literals, to a slot that contains zeros.

    The rank is written as rank - 1. Extents, box and strides are written for the modes that exist. `swizzle_atomicity`,
    the eleventh field, exists from sm_100 on and stays 0 here.

    Args:
        request: a tiled request. space: the state space of the slot, global or shared::cta.
    Raises:
        EmissionError: the request is not a tiled map with a known format.
        InvalidValueError: the space does not exist.

    >>> from cute_py.tma.descriptor import TensorMapTiled
    >>> len(init_sequence(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8))))
    13
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    expect_choice(space, SPACES, "space")
    refuse(EmissionError, check_host_only(request))
    elemtype = ptx_elemtype(request)
    if request.swizzle > bounds("swizzle")[1]:
        raise EmissionError(f"swizzle {request.swizzle}: tensormap.replace writes the modes 0..3")
    rank = request.rank
    by_mode = (
        ("box_dim", request.box_dim, "box of mode", 0),
        ("global_dim", request.global_dim, "extent of mode", 0),
        ("global_stride", request.global_strides, "byte stride of mode", 1),  # the ordinal is the mode minus 1
        ("element_stride", request.element_strides, "element stride of mode", 0),
    )
    return (
        _replace("global_address", space, request.global_address, "address"),
        _replace("rank", space, rank - 1, f"rank {rank}, written as rank - 1"),
        *(
            _replace(field, space, value, f"{role} {ordinal + first}", ordinal)
            for field, values, role, first in by_mode
            for ordinal, value in enumerate(values)
        ),
        _replace("elemtype", space, elemtype, f"element format {ELEMTYPES[elemtype][0]}"),
        _replace("interleave_layout", space, int(request.interleave), "interleave"),
        _replace("swizzle_mode", space, int(request.swizzle), "swizzle"),
        _replace("fill_mode", space, int(request.oob_fill), "fill"),
    )


def rebind_ptx(rank: int, arch: str = "sm_90a", *, scope: str = "gpu", version: Version = NEWEST_VERSION) -> str:
    """Write a PTX module with the kernel `rebind`, where one thread rebinds a map in global memory.

    Parameters: p_map u64, p_address u64, p_extent0.. u32, p_stride1.. u64 (bytes).

    Args:
        rank: modes of the map, 1 to 5.
        arch: the target. scope: the scope of the fences.
        version: the PTX version of the module.
    Raises:
        EmissionError: `check_rebind` refuses the sequence, or the target does not have its instructions.
        InvalidValueError: the architecture or the version does not exist.

    >>> print(rebind_ptx(1).splitlines()[0])
    .version 9.0
    """
    version, arch = expect_version(version), architecture(arch).name
    sequence = rebind_sequence(rank, space="global", scope=scope)
    for step in sequence.steps:
        if reasons := examine(step.text).reasons(arch, version):
            raise EmissionError(reasons[0], {"instruction": step.text})
    names = [
        ("u64", "map", "%rd_map"),
        ("u64", "address", "%rd_address"),
        *(("u32", f"extent{mode}", f"%r_extent{mode}") for mode in range(rank)),
        *(("u64", f"stride{mode}", f"%rd_stride{mode}") for mode in range(1, rank)),
    ]
    lines = [f".reg .b{kind[1:]} {register};" for kind, _, register in names]
    lines += [".reg .b32 %r_tid;", ".reg .pred %p_idle;", "mov.u32 %r_tid, %tid.x;", "setp.ne.u32 %p_idle, %r_tid, 0;"]
    lines += ["@%p_idle ret;", *(f"ld.param.{kind} {register}, [p_{name}];" for kind, name, register in names)]
    parameters = [f".{kind} p_{name}" for kind, name, _ in names]
    return ptx_module("rebind", [*lines, sequence.text, "ret;"], arch, version, parameters=parameters)
