"""The tcgen05 instructions that move data to, from and within tensor memory: modifiers, operands, architectures.

Each row is one instruction. Slots stand in the order in which the PTX ISA writes them; ptxas takes them in any order
but for the two formats of a decompression. Operands are named by what they are; `instruction_check` knows what each
name may look like.

Sources: PTX ISA 9.0, tcgen05 instructions; every row and every bound measured with ptxas 13.0.88 (November 2026).
What ptxas takes says nothing about what is legal at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError, given
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
class InstructionForm:
    """One instruction.

    Args:
        opcode: the words before the modifiers.
        operands: names of operands, in order; some are there only with certain modifiers.
        targets: architecture -> first PTX version.
    """

    name: str
    opcode: tuple[str, ...]
    slots: tuple[Slot, ...]
    operands: tuple[str, ...]
    section: str
    targets: Mapping[str, tuple[int, int]]


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
    InstructionForm(
        "tcgen05.mma",
        ("tcgen05", "mma"),
        (_GROUP, Slot("kind", ("kind::f16", "kind::tf32", "kind::f8f6f4"))),
        ("[tensor-memory address]", "first operand", "matrix descriptor", "instruction descriptor", "enable"),
        "tcgen05.mma, the plain dense forms only",
        FULL,
    ),
    InstructionForm(
        "tcgen05.mma.i8",
        ("tcgen05", "mma"),
        (_GROUP, Slot("kind", ("kind::i8",))),
        ("[tensor-memory address]", "first operand", "matrix descriptor", "instruction descriptor", "enable"),
        "tcgen05.mma, the plain dense forms only",
        _INTEGER_MMA,
    ),
)


def combination_errors(form: InstructionForm, chosen: Mapping[str, str]) -> list[str]:
    """What the chosen modifiers break together, each slot being filled as it must."""
    out = []
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
        got = modifiers.get(slot.name, slot.choices[0] if slot.required and len(slot.choices) == 1 else "")
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
