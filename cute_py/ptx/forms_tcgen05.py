"""The tcgen05 instructions: tensor memory, the copies into and out of it, and the matrix instructions.

The matrix instructions have a row for each group of kinds that share their operands. ptxas accepts modifiers in any
order, except the two formats of a decompression. It supports no other tcgen05 instructions, such as wait::cp.

Sources: PTX ISA 9.0, tcgen05 instructions; every row, rule and bound measured with ptxas 13.0.88 (November 2026).
Acceptance by ptxas does not imply that a form is legal at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from cute_py.ptx.instruction import FormRule, InstructionForm, Operand, by_space, forbid, needs, operand, row
from cute_py.targets import Targets, Version

COUNTS: tuple[str, ...] = tuple(f"x{1 << power}" for power in range(8))
"""`.num`: the number of repetitions of the shape along the columns."""

SHAPE_REGISTERS: dict[str, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Shape of ld and st -> 32-bit registers of each thread, for `.x1`."""

MAX_REGISTERS = 128
ALLOCATIONS = (32, 64, 128, 256, 512)
"""Numbers of columns that tcgen05.alloc accepts; ptxas: "out of range, expected to be in range [32..512]"."""

CP_MULTICASTS: dict[str, tuple[str, ...]] = {
    "128x256b": ("",),
    "4x256b": ("",),
    "128x128b": ("",),
    "64x128b": ("warpx2::02_13", "warpx2::01_23"),
    "32x128b": ("warpx4",),
}
"""Shape of tcgen05.cp -> its multicasts."""

DECOMPRESSIONS: dict[str, tuple[int, int]] = {"b6x16_p32": (6, 12), "b4x16_p64": (4, 8)}
"""Source format -> (bits of an element, bytes of 16 of them, before the padding to 16 bytes)."""

SCALES: dict[str, tuple[str, ...]] = {
    "kind::mxf8f6f4": ("", "scale_vec::1X", "block32"),
    "kind::mxf4": ("", "scale_vec::2X", "block32"),
    "kind::mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
"""Kind with scale factors -> the vector sizes that it accepts; '' is the default of the kind."""


def register_count(chosen: Mapping[str, str]) -> int:
    """Return the number of 32-bit registers of a vector operand: the data of ld or st, or the mask of disabled lanes of
    a matrix instruction, which has 128 bits for each CTA of its group."""
    if "num" in chosen:
        return SHAPE_REGISTERS[chosen["shape"]] * int(chosen["num"][1:])
    return 8 if chosen.get("cta_group") == "cta_group::2" else 4


def _form(
    opcode: str,
    slots: str,
    operands: tuple[Operand, ...] = (),
    rules: tuple[FormRule, ...] = (),
    *,
    name: str = "",
    targets: Targets = Targets.TMA_FULL,
    since: Version = (8, 6),
) -> InstructionForm:
    opcode = f"tcgen05.{opcode}"
    return row(
        opcode, slots, operands, name=name, family="tcgen05", section=opcode, targets=targets, since=since, rules=rules
    )


_GROUP = "cta_group=cta_group::1|cta_group::2"
_ALIGNED = "sync=sync aligned=aligned"
_TADDR = operand("taddr", "tmem")
_REGISTERS = operand("registers", "registers")
_HALF = operand("half_split", "immediate", shape="16x32bx2")
_DESCRIPTOR = operand("descriptor", "b64")


def _copy_rules() -> tuple[FormRule, ...]:
    """Return the rules of tcgen05.cp: each shape has its own multicasts, and a decompression names both of its
    formats."""
    every = {"": None, **{multicast: None for some in CP_MULTICASTS.values() for multicast in some}}
    found = []
    for shape, allowed in CP_MULTICASTS.items():
        must = " or ".join(f".{multicast}" for multicast in allowed if multicast) or "no multicast"
        for wrong in every:
            if wrong not in allowed:
                said = f"multicast .{wrong}" if wrong else "no multicast"
                found.append(forbid(f"{said} with .{shape}; must be {must}", shape=shape, multicast=wrong))
    both = f"a decompression is .b8x16 and one of .{', .'.join(DECOMPRESSIONS)}"
    found.append(forbid(both, dst_format="b8x16", src_format=""))
    found.append(forbid(both, dst_format="", src_format=tuple(DECOMPRESSIONS)))
    return tuple(found)


_TOO_MANY = tuple(
    forbid(f".{shape}.{num} moves {count} registers; must be at most {MAX_REGISTERS}", shape=shape, num=num)
    for shape, each in SHAPE_REGISTERS.items()
    for num in COUNTS
    if (count := each * int(num[1:])) > MAX_REGISTERS
)
_OPTIONAL = "sync=sync aligned?=(aligned)"
"""ptxas also accepts the moves without `.aligned`, which the ISA requires."""
_MOVED = f"{_OPTIONAL} shape={'|'.join(SHAPE_REGISTERS)} num={'|'.join(COUNTS)}"
_MOVES = (
    _form("ld", f"{_MOVED} pack?=pack::16b type=b32", (replace(_REGISTERS, written=True), _TADDR, _HALF), _TOO_MANY),
    _form("st", f"{_MOVED} pack?=unpack::16b type=b32", (_TADDR, _HALF, _REGISTERS), _TOO_MANY),
    _form(
        "ld.red",
        f"{_OPTIONAL} shape=32x32b|16x32bx2 num={'|'.join(COUNTS[1:])} op=min|max abs?=abs NaN?=NaN type=u32|s32|f32",
        (replace(_REGISTERS, written=True), operand("reduced", "b32 f32", written=True), _TADDR, _HALF),
        (
            *(forbid(f".abs with .{type_}; only .f32 supports it", type=type_, abs="abs") for type_ in ("u32", "s32")),
            *(forbid(f".NaN with .{type_}; only .f32 supports it", type=type_, NaN="NaN") for type_ in ("u32", "s32")),
        ),
        targets=Targets.TMEM_REDUCING,
    ),
)

_FLOAT_KINDS, _INTEGER_KINDS = "kind=kind::f16|kind::tf32|kind::f8f6f4", "kind=kind::i8"
_USES = ("fill", "use", "lastuse", "discard")
_COLLECTOR_A = f"collector?={'|'.join(f'collector::a::{use}' for use in _USES)}"
_COLLECTOR_B = f"collector?={'|'.join(f'collector::b{number}::{use}' for number in range(4) for use in _USES)}"
_FACTORS = (
    _TADDR,
    # A shifted A is read from tensor memory; without a shift it may also be described by a matrix descriptor.
    operand("a", "b64 tmem", ashift=""),
    operand("a", "tmem", ashift="ashift"),
    operand("b", "b64"),
    operand("metadata", "tmem", sparse="sp"),
    operand("instruction", "b32"),
)
_LANES = operand("disabled_lanes", "registers", optional=True)
_ENABLE = operand("enable", "predicate negated immediate")


def _dense(name: str, kinds: str, last: Operand, targets: Targets) -> InstructionForm:
    """Return a row of tcgen05.mma without scale factors; `last` is its last operand."""
    return _form(
        "mma",
        f"sparse?=sp {_GROUP} {kinds} ashift?=ashift {_COLLECTOR_A}",
        (*_FACTORS, _LANES, _ENABLE, last),
        (
            forbid(
                ".ashift takes only .collector::a::lastuse or .collector::a::discard",
                ashift="ashift",
                collector=("collector::a::fill", "collector::a::use"),
            ),
            # ptxas takes any number here, though the ISA has an input scale only for kind::f16 and kind::tf32.
            forbid("kind::f8f6f4 has no input scale", given=("input_scale",), kind="kind::f8f6f4"),
            needs(Targets.TMEM_INPUT_SCALE, given=("input_scale",)),
            forbid(
                "a sparse kind::i8 takes either disabled lanes or a number as its last operand, not both",
                given=("disabled_lanes", "last"),
                sparse="sp",
            ),
        ),
        name=name,
        targets=targets,
    )


def _weights(name: str, kinds: str, targets: Targets) -> InstructionForm:
    """Return a row of tcgen05.mma.ws, which keeps B in the collector."""
    return _form(
        "mma.ws",
        f"sparse?=sp cta_group=cta_group::1 {kinds} {_COLLECTOR_B}",
        (*_FACTORS, _ENABLE, operand("zero_column_mask", "b64", optional=True)),
        name=name,
        targets=targets,
    )


def _scaled() -> InstructionForm:
    every = ("", "scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")
    combinations = []
    for kind, taken in SCALES.items():
        wrong = tuple(scale for scale in every if scale not in taken)
        says = "takes" if "" in taken else "needs one of"
        must = ", ".join(f".{scale}" for scale in taken if scale)
        combinations.append(forbid(f"{kind} {says} {must}", kind=kind, scale=wrong))
    return _form(
        "mma",
        f"sparse?=sp {_GROUP} kind={'|'.join(SCALES)} block_scale=block_scale scale?={'|'.join(every[1:])} "
        f"{_COLLECTOR_A}",
        (*_FACTORS, operand("scales_a", "tmem"), operand("scales_b", "tmem"), _ENABLE),
        (
            *combinations,
            needs(Targets.TMEM_SPECIFIC, scale=every[1:4]),
            needs(since=(8, 7), kind="kind::mxf4nvf4"),
            needs(since=(8, 8), scale=("", "block16", "block32")),
            needs(Targets.TMEM_SPECIFIC, sparse="sp", kind=("kind::mxf4", "kind::mxf4nvf4")),
        ),
        name="tcgen05.mma.block_scale",
    )


TCGEN05_FORMS: tuple[InstructionForm, ...] = (
    _form(
        "alloc",
        f"{_GROUP} {_ALIGNED} spaces?=shared::cta type=b32",
        (*by_space("address", "", "shared::cta"), operand("columns", "b32", values=ALLOCATIONS)),
    ),
    _form("dealloc", f"{_GROUP} {_ALIGNED} type=b32", (operand("taddr", "b32"), operand("columns", "b32", step=32))),
    _form("relinquish_alloc_permit", f"{_GROUP} {_ALIGNED}"),
    _form(
        "cp",
        f"{_GROUP} shape={'|'.join(CP_MULTICASTS)} multicast?=warpx2::02_13|warpx2::01_23|warpx4 dst_format?=b8x16 "
        f"src_format>dst_format?={'|'.join(DECOMPRESSIONS)}",
        (_TADDR, _DESCRIPTOR),
        _copy_rules(),
    ),
    _form(
        "commit",
        f"{_GROUP} completion=mbarrier::arrive::one spaces?=shared::cluster multicast?=multicast::cluster type=b64",
        (
            *by_space("barrier", "", "shared::cluster"),
            operand("mask", "b16", multicast="multicast::cluster", register=True),
        ),
    ),
    *_MOVES,
    _form("shift", f"{_GROUP} direction=down", (_TADDR,), targets=Targets.TMEM_SPECIFIC),
    _form("wait::ld", _ALIGNED),
    _form("wait::st", _ALIGNED),
    _form("fence::before_thread_sync", ""),
    _form("fence::after_thread_sync", ""),
    _dense(
        "tcgen05.mma",
        _FLOAT_KINDS,
        operand("input_scale", "immediate", optional=True, values=tuple(range(16))),
        Targets.TMA_FULL,
    ),
    _dense("tcgen05.mma.i8", _INTEGER_KINDS, operand("last", "immediate", optional=True), Targets.TMEM_INTEGER),
    _scaled(),
    _weights("tcgen05.mma.ws", _FLOAT_KINDS, Targets.TMA_FULL),
    _weights("tcgen05.mma.ws.i8", _INTEGER_KINDS, Targets.TMEM_INTEGER),
)
