"""The tcgen05 instructions: their modifiers, operands, architectures, and the rules between these.

Each row is one instruction; the matrix instructions have a row for each group of kinds that share their operands.
Slots stand in the order in which the PTX ISA writes them; ptxas takes them in any order but for the two formats of a
decompression. Operands are named by what they are; `instruction_check` knows what each name may look like.

Sources: PTX ISA 9.0, tcgen05 instructions; every row, rule and bound measured with ptxas 13.0.88 (November 2026), which
has no other tcgen05 instruction. What ptxas takes says nothing about what is legal at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import EmissionError, given
from cute_py.ptx.instruction import Condition, holds, when
from cute_py.tmem.cp_forms import DECOMPRESSIONS, FORMS

FULL: dict[str, tuple[int, int]] = {
    "sm_100a": (8, 6),
    "sm_100f": (8, 8),
    "sm_103a": (8, 8),
    "sm_103f": (8, 8),
    "sm_110a": (9, 0),
    "sm_110f": (9, 0),
}
"""Architectures with tensor memory, and the first PTX version that assembles for them."""

_NO_F = {arch: version for arch, version in FULL.items() if not arch.endswith("f")}
_REDUCING = {arch: version for arch, version in FULL.items() if not arch.startswith("sm_100")}
_INTEGER_MMA = {arch: version for arch, version in FULL.items() if arch in ("sm_100a", "sm_110a")}
_SCALED_INPUT = {arch: version for arch, version in FULL.items() if not arch.startswith("sm_110")}
_FROM_8_7 = {arch: max(version, (8, 7)) for arch, version in FULL.items()}
_FROM_8_8 = {arch: max(version, (8, 8)) for arch, version in FULL.items()}

COUNTS: tuple[str, ...] = tuple(f"x{1 << power}" for power in range(8))
"""`.num`: how often the shape is repeated along the columns."""

SHAPE_REGISTERS: dict[str, int] = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Shape of ld and st -> 32-bit registers of each thread, for `.x1`."""

MAX_REGISTERS = 128


@dataclass(frozen=True, slots=True)
class Slot:
    """One modifier: at most one of `choices`, exactly one if it is required."""

    name: str
    choices: tuple[str, ...]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Rule:
    """If `condition` holds and the operands `given` are written: only these targets have it, or (`forbid`) none."""

    condition: Condition
    targets: Mapping[str, tuple[int, int]] | None = None
    forbid: str = ""
    given: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstructionForm:
    """One instruction.

    Args:
        opcode: the words before the modifiers.
        operands: names of operands, in order; some are there only with certain modifiers.
        targets: architecture -> first PTX version.
        rules: which modifiers exclude each other, and which architectures a combination needs.
    """

    name: str
    opcode: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[str, ...]
    section: str
    targets: Mapping[str, tuple[int, int]] = field(hash=False)
    rules: tuple[Rule, ...] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        expect_fields(self)


_GROUP = Slot("cta_group", ("cta_group::1", "cta_group::2"))
_SYNC, _ALIGNED = Slot("sync", ("sync",)), Slot("aligned", ("aligned",))
_B32, _B64 = Slot("type", ("b32",)), Slot("type", ("b64",))
_SHAPE = Slot("shape", tuple(SHAPE_REGISTERS))
_COUNT = Slot("num", COUNTS)


def _moved(name: str, extra: str, operands: tuple[str, ...]) -> InstructionForm:
    slots = (_SYNC, _ALIGNED, _SHAPE, _COUNT, Slot("pack", (extra,), required=False), _B32)
    return InstructionForm(f"tcgen05.{name}", ("tcgen05", name), slots, operands, f"tcgen05.{name}", FULL)


def _plain(name: str, words: tuple[str, ...], *slots: Slot) -> InstructionForm:
    return InstructionForm(name, words, slots, (), name, FULL)


_SPARSE = Slot("sparse", ("sp",), required=False)
_FLOAT_KINDS, _INTEGER_KINDS = ("kind::f16", "kind::tf32", "kind::f8f6f4"), ("kind::i8",)
_USES = ("fill", "use", "lastuse", "discard")
_COLLECTOR_A = Slot("collector", tuple(f"collector::a::{use}" for use in _USES), required=False)
_COLLECTOR_B = Slot(
    "collector", tuple(f"collector::b{number}::{use}" for number in range(4) for use in _USES), required=False
)
_SCALE_VECTORS = tuple(f"scale_vec::{count}X" for count in (1, 2, 4))
_FACTORS = (
    "[tensor-memory address]",
    "first operand",
    "matrix descriptor",
    "[sparsity metadata]",
    "instruction descriptor",
)

SCALES: dict[str, tuple[str, ...]] = {
    "kind::mxf8f6f4": ("", "scale_vec::1X", "block32"),
    "kind::mxf4": ("", "scale_vec::2X", "block32"),
    "kind::mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
"""Kind with scale factors -> the vector sizes that it takes; '' is the kind's own."""


def _dense(name: str, kinds: tuple[str, ...], scale: str, targets: Mapping[str, tuple[int, int]]) -> InstructionForm:
    """tcgen05.mma without scale factors; `scale` is the name of its last operand."""
    shifted = tuple(f"collector::a::{use}" for use in ("fill", "use"))
    return InstructionForm(
        name,
        ("tcgen05", "mma"),
        (_SPARSE, _GROUP, Slot("kind", kinds), Slot("ashift", ("ashift",), required=False), _COLLECTOR_A),
        (*_FACTORS, "disabled lanes", "enable", scale),
        "tcgen05.mma",
        targets,
        (
            Rule(
                when(ashift="ashift", collector=shifted),
                forbid=".ashift takes .collector::a::lastuse or .collector::a::discard alone",
            ),
            Rule(when(kind="kind::f8f6f4"), forbid="kind::f8f6f4 has no input scale", given=("input scale",)),
            Rule((), _SCALED_INPUT, given=("input scale",)),
            # ptxas takes any number here, though the ISA gives an input scale to kind::f16 and kind::tf32 alone.
            Rule(
                when(sparse="sp"),
                forbid="a sparse kind::i8 has either disabled lanes or a last number",
                given=("disabled lanes", "last number"),
            ),
        ),
    )


def _weights(name: str, kinds: tuple[str, ...], targets: Mapping[str, tuple[int, int]]) -> InstructionForm:
    """tcgen05.mma.ws, where B stays in the collector."""
    slots = (_SPARSE, Slot("cta_group", ("cta_group::1",)), Slot("kind", kinds), _COLLECTOR_B)
    operands = (*_FACTORS, "enable", "zero-column mask")
    return InstructionForm(name, ("tcgen05", "mma", "ws"), slots, operands, "tcgen05.mma.ws", targets)


def _scaled() -> InstructionForm:
    every = ("", *_SCALE_VECTORS, "block16", "block32")
    combinations = []
    for kind, taken in SCALES.items():
        wrong = when(kind=kind, scale=tuple(scale for scale in every if scale not in taken))
        says = "takes" if "" in taken else "needs one of"
        combinations.append(Rule(wrong, forbid=f"{kind} {says} .{', .'.join(scale for scale in taken if scale)}"))
    return InstructionForm(
        "tcgen05.mma.block_scale",
        ("tcgen05", "mma"),
        (
            _SPARSE,
            _GROUP,
            Slot("kind", tuple(SCALES)),
            Slot("block_scale", ("block_scale",)),
            Slot("scale", every[1:], required=False),
            _COLLECTOR_A,
        ),
        (*_FACTORS, "[scales of A]", "[scales of B]", "enable"),
        "tcgen05.mma",
        FULL,
        (
            *combinations,
            Rule(when(scale=_SCALE_VECTORS), _NO_F),
            Rule(when(kind="kind::mxf4nvf4"), _FROM_8_7),
            Rule(when(scale=("", "block16", "block32")), _FROM_8_8),
            Rule(when(sparse="sp", kind=("kind::mxf4", "kind::mxf4nvf4")), _NO_F),
        ),
    )


FORMS_TABLE: tuple[InstructionForm, ...] = (
    InstructionForm(
        "tcgen05.alloc",
        ("tcgen05", "alloc"),
        (_GROUP, _SYNC, _ALIGNED, Slot("space", ("shared::cta",), required=False), _B32),
        ("address", "columns to allocate"),
        "tcgen05.alloc",
        FULL,
    ),
    InstructionForm(
        "tcgen05.dealloc",
        ("tcgen05", "dealloc"),
        (_GROUP, _SYNC, _ALIGNED, _B32),
        ("tensor-memory address", "columns to free"),
        "tcgen05.dealloc",
        FULL,
    ),
    _plain("tcgen05.relinquish_alloc_permit", ("tcgen05", "relinquish_alloc_permit"), _GROUP, _SYNC, _ALIGNED),
    InstructionForm(
        "tcgen05.cp",
        ("tcgen05", "cp"),
        (
            _GROUP,
            Slot("shape", tuple(dict.fromkeys(form.shape for form in FORMS))),
            Slot("multicast", tuple(dict.fromkeys(form.multicast for form in FORMS if form.multicast)), required=False),
            Slot("dst_format", ("b8x16",), required=False),
            Slot("src_format", tuple(DECOMPRESSIONS), required=False),
        ),
        ("[tensor-memory address]", "matrix descriptor"),
        "tcgen05.cp",
        FULL,
    ),
    InstructionForm(
        "tcgen05.commit",
        ("tcgen05", "commit"),
        (
            _GROUP,
            Slot("completion", ("mbarrier::arrive::one",)),
            Slot("space", ("shared::cluster",), required=False),
            Slot("multicast", ("multicast::cluster",), required=False),
            _B64,
        ),
        ("address", "CTA mask"),
        "tcgen05.commit",
        FULL,
    ),
    _moved("ld", "pack::16b", ("registers", "[tensor-memory address]", "half split")),
    _moved("st", "unpack::16b", ("[tensor-memory address]", "half split", "registers")),
    InstructionForm(
        "tcgen05.ld.red",
        ("tcgen05", "ld", "red"),
        (
            _SYNC,
            _ALIGNED,
            Slot("shape", ("32x32b", "16x32bx2")),
            Slot("num", COUNTS[1:]),
            Slot("op", ("min", "max")),
            Slot("abs", ("abs",), required=False),
            Slot("NaN", ("NaN",), required=False),
            Slot("type", ("u32", "s32", "f32")),
        ),
        ("registers", "reduced value", "[tensor-memory address]", "half split"),
        "tcgen05.ld.red",
        _REDUCING,
    ),
    InstructionForm(
        "tcgen05.shift",
        ("tcgen05", "shift"),
        (_GROUP, Slot("direction", ("down",))),
        ("[tensor-memory address]",),
        "tcgen05.shift",
        _NO_F,
    ),
    _plain("tcgen05.wait::ld", ("tcgen05", "wait::ld"), _SYNC, _ALIGNED),
    _plain("tcgen05.wait::st", ("tcgen05", "wait::st"), _SYNC, _ALIGNED),
    _plain("tcgen05.fence::before_thread_sync", ("tcgen05", "fence::before_thread_sync")),
    _plain("tcgen05.fence::after_thread_sync", ("tcgen05", "fence::after_thread_sync")),
    _dense("tcgen05.mma", _FLOAT_KINDS, "input scale", FULL),
    _dense("tcgen05.mma.i8", _INTEGER_KINDS, "last number", _INTEGER_MMA),
    _scaled(),
    _weights("tcgen05.mma.ws", _FLOAT_KINDS, FULL),
    _weights("tcgen05.mma.ws.i8", _INTEGER_KINDS, _INTEGER_MMA),
)


def combination_errors(form: InstructionForm, chosen: Mapping[str, str]) -> list[str]:
    """What the chosen modifiers break together, each slot being filled as it must."""
    out = [rule.forbid for rule in form.rules if rule.forbid and not rule.given and holds(rule.condition, chosen)]
    if form.name == "tcgen05.cp" and "shape" in chosen:
        allowed = [row.multicast for row in FORMS if row.shape == chosen["shape"]]
        if chosen.get("multicast", "") not in allowed:
            said = f".{chosen['multicast']}" if chosen.get("multicast") else "no multicast"
            words = " or ".join(f".{multicast}" for multicast in allowed if multicast) or "no multicast"
            out.append(f"{said} with .{chosen['shape']}; must be {words}")
        if ("dst_format" in chosen) != ("src_format" in chosen):
            out.append(f"a decompression is .b8x16 and one of .{', .'.join(DECOMPRESSIONS)}")
    if "num" in chosen and "shape" in chosen:
        count = SHAPE_REGISTERS.get(chosen["shape"], 1) * int(chosen["num"][1:])
        if count > MAX_REGISTERS:
            out.append(f".{chosen['shape']}.{chosen['num']} moves {count} registers; must be at most {MAX_REGISTERS}")
    if chosen.get("type", "f32") != "f32":
        out += [f".{slot} with .{chosen['type']}; only .f32 has it" for slot in ("abs", "NaN") if slot in chosen]
    return out


def register_count(chosen: Mapping[str, str]) -> int:
    """32-bit registers of each thread that a ld or st with these modifiers moves."""
    return SHAPE_REGISTERS[chosen["shape"]] * int(chosen["num"][1:])


def mnemonic(name: str, **modifiers: str) -> str:
    """The dotted name of an instruction, its modifiers in the order of the PTX ISA.

    Args:
        name: a row of the table, such as "tcgen05.cp".
        modifiers: slot -> modifier; slots with one choice that are required may be left out.
    Raises:
        EmissionError: no such row, slot or modifier, or the combination does not exist.

    >>> mnemonic("tcgen05.cp", cta_group="cta_group::1", shape="32x128b", multicast="warpx4")
    'tcgen05.cp.cta_group::1.32x128b.warpx4'
    """
    expect(name, str, "the name of an instruction")
    form = next((row for row in FORMS_TABLE if row.name == name), None)
    if form is None:
        raise EmissionError(f"no instruction {given(name)}", {"known": ", ".join(row.name for row in FORMS_TABLE)})
    chosen = {}
    unknown = set(modifiers) - {slot.name for slot in form.slots}
    if unknown:
        raise EmissionError(f"{name} has no modifier {', '.join(sorted(unknown))}")
    for slot in form.slots:
        only = slot.choices[0] if len(slot.choices) == 1 else ""
        got = expect(modifiers.get(slot.name, only if slot.required else ""), str, slot.name)
        if got and got not in slot.choices:
            raise EmissionError(f"{name}: {slot.name} = {given(got)}; must be one of {', '.join(slot.choices)}")
        if slot.required and not got:
            raise EmissionError(f"{name} needs {slot.name}: one of {', '.join(slot.choices)}")
        if got:
            chosen[slot.name] = got
    errors = combination_errors(form, chosen)
    if errors:
        raise EmissionError(f"{name}: {errors[0]}")
    return ".".join([*form.opcode, *chosen.values()])
