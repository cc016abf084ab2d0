"""Render the text of an instruction from its form: modifiers in the ISA's order, and operands as given or as default
registers.

For example, `ptx("load", dim=2, multicast=True)` returns the text of a load. Errors are found without an assembler:
unknown modifiers, wrong numbers of coordinates and offsets, mask bits beyond the cluster, and with `arch`, an
unsupported target.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence

from cute_py.argument_checks import expect, expect_integer, has, is_integer
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.errors import EmissionError, InvalidTypeError, given, integer_text
from cute_py.ptx.catalog import FORMS, forms_named
from cute_py.ptx.catalog import form as find_form
from cute_py.ptx.check import VECTORS, examine
from cute_py.ptx.forms_barrier import WIDE_FIELDS
from cute_py.ptx.forms_tcgen05 import register_count
from cute_py.ptx.instruction import InstructionForm, Operand, OperandClass, Slot, coordinate_count, holds, offset_count
from cute_py.targets import MAX_CLUSTER, NEWEST_VERSION, Version
from cute_py.tma.descriptor.request import HasTraits, TmaCopyTraits, load_mode_of, traits_of

Value = str | int | Sequence[str | int]
"""The string or integers to write for an operand."""

Modifier = str | int | bool | None
"""The choice for a slot: True for a slot with one choice, False or None for an empty one."""

# What is written for operands of these names, so that an instruction does not read its own results.
_DEFAULTS: dict[tuple[str, OperandClass], str] = {
    ("barrier", OperandClass.SHARED_ADDRESS): "[%r2]",
    ("policy", OperandClass.B64): "%rd3",
    ("size", OperandClass.B32): "%r6",
    ("value", OperandClass.B32): "%r2",
    ("bytes", OperandClass.B32): "%r3",
    ("count", OperandClass.B32): "1",
    ("parity", OperandClass.B32): "%r3",
    ("members", OperandClass.B32): "0xffffffff",
    ("cta", OperandClass.B32): "%r3",
    ("registers", OperandClass.IMMEDIATE): "40",
}
_PREDICATE = re.compile(r"(@!?%?[A-Za-z_$][\w$]*)?", re.ASCII)
_SOURCE_BESIDE = {"bulk.peer": "[%r5]", "bulk.reduce.peer": "[%r5]"}
_SLOT_ALIASES = {"rank": "dim", "space": "spaces", "red_kind": "op", "kind": "op", "load_mode": "mode"}


def check_modifiers(modifiers: Mapping[str, Modifier]) -> None:
    """Raise an error for modifiers that are not strings, integers, booleans or None.

    Raises:
        InvalidTypeError: a modifier has another type.
    """
    for name, value in modifiers.items():
        if is_integer(value):
            expect_integer(value, name)
        elif not (value is None or isinstance(value, bool | str)):
            raise InvalidTypeError(f"{name} must be a str, an integer or a bool, got {given(value)}")


def operand_text(value: Value, what: str) -> str:
    """Return the text of an operand: a string is returned unchanged, and an integer in decimal.

    Raises:
        InvalidTypeError: the operand is neither a string nor an integer.

    >>> operand_text("%r1", "cta"), operand_text(4, "cta")
    ('%r1', '4')
    """
    if is_integer(value):
        return str(expect_integer(value, what))
    if not isinstance(value, str):
        raise InvalidTypeError(f"{what} must be a str or an integer, got {type(value).__name__} {given(value)}")
    return value


def _choice(form: InstructionForm, slot: Slot, value: Modifier) -> str:
    """Return the choice of `slot` for the caller's `value` ('' for an empty slot)."""
    if value is None or value is False or value == "":
        return ""
    if value is True:
        if len(slot.choices) == 1:
            return slot.choices[0]
        text = "True, but a slot with several choices needs the name of one"
    else:
        text = operand_text(value, slot.name).removeprefix(".")
        for candidate in (text, f"{text}d" if slot.name == "dim" else "", f"{slot.name}::{text}"):
            if candidate in slot.choices:
                return candidate
    raise EmissionError(f"{form.name}: {slot.name} = {text}", {"one of": ", ".join(slot.choices)})


def _chosen(form: InstructionForm, modifiers: Mapping[str, Modifier]) -> dict[str, str]:
    named = {name if form.slot(name) else _SLOT_ALIASES.get(name, name): value for name, value in modifiers.items()}
    spaces = form.slot("spaces")
    to, source = (str(named.pop(name, "") or "") if spaces else "" for name in ("dst", "src"))
    if spaces and (to or source):
        fitting = [c for c in spaces.choices if c.startswith(to) and c.endswith(source)]
        named["spaces"] = fitting[0] if fitting else f"{to}.{source}".strip(".")
    unknown = [name for name in named if (slot := form.slot(name)) is None or slot.tolerated]
    if unknown:
        known = ", ".join(slot.name for slot in form.slots) or "none"
        raise EmissionError(f"{form.name} has no modifier named {', '.join(unknown)}", {"modifiers": known})
    chosen = {}
    for slot in form.slots:
        if slot.name in named:
            chosen[slot.name] = _choice(form, slot, named[slot.name])
        elif slot.optional:
            chosen[slot.name] = slot.default
        elif slot.default or len(slot.choices) == 1 or slot.name == "spaces":
            chosen[slot.name] = slot.default or slot.choices[0]
        elif slot.name == "type":
            # A tensormap field implies its type; other forms have their first one.
            wide = chosen.get("field") in WIDE_FIELDS
            chosen[slot.name] = "b64" if wide else slot.choices[0]
        else:
            raise EmissionError(f"{form.name} needs {slot.name}", {"one of": ", ".join(slot.choices)})
    return {name: value for name, value in chosen.items() if value}


def _vector(first: str, start: int, count: int) -> str:
    return "{" + ", ".join(f"{first}{start + index}" for index in range(count)) + "}"


def _default(form: InstructionForm, operand: Operand, chosen: Mapping[str, str]) -> str:
    kind = operand.kinds[0]
    if kind is OperandClass.OFFSETS:
        return _vector("%h", 2, offset_count(chosen))
    if kind in (OperandClass.VECTOR, OperandClass.REGISTERS):
        vectors = kind is OperandClass.VECTOR
        return _vector("%r", 10, VECTORS.get(chosen.get("vector", ""), 1) if vectors else register_count(chosen))
    if operand.written and kind is OperandClass.B32:
        return "%r2"
    if operand.name == "source" and form.name in _SOURCE_BESIDE:
        return _SOURCE_BESIDE[form.name]
    if kind is OperandClass.IMMEDIATE and operand.values:
        return _DEFAULTS.get((operand.name, kind), str(operand.values[0]))
    return _DEFAULTS.get((operand.name, kind), kind.default)


def _sequence(value: Value, what: str) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return (operand_text(value, what),)
    return tuple([operand_text(element, f"{what}[{i}]") for i, element in enumerate(value)])


def check_cluster_mask(mask: int, cluster_size: int | None) -> list[Diagnostic]:
    """Return the reasons why a multicast mask does not fit a cluster of `cluster_size` CTAs (None: any size up to 16).

    >>> print(*check_cluster_mask(0b10011, cluster_size=4))
    the multicast mask 0x13 names CTA 4, but the cluster has 4 CTAs
    """
    limit = MAX_CLUSTER if cluster_size is None else cluster_size
    if mask <= 0:
        text = f"the multicast mask {integer_text(mask)} names no CTA"
    elif mask >> limit:
        text = f"the multicast mask {mask:#x} names CTA {mask.bit_length() - 1}, but the cluster has {limit} CTAs"
    else:
        return []
    return [Diagnostic("multicast mask", text=text)]


def _check_width(value: Value, what: str, bits: int) -> None:
    """Raise an error for a number that does not fit in its register, because an assembler would truncate it
    silently."""
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
    for i, number in enumerate(listed):
        if is_integer(number) and not -1 << bits - 1 <= int(number) < 1 << bits:
            raise EmissionError.of_value(f"{what}[{i}]", int(number), f"fit in {bits} bits")


def _counted(form: InstructionForm, chosen: Mapping[str, str], texts: Sequence[str], what: str, count: int) -> str:
    if len(texts) != count:
        mode = chosen.get("mode", "tile")
        raise EmissionError(f"{form.name} has {len(texts)} {what}; .{chosen.get('dim')} in mode {mode} takes {count}")
    return "{" + ", ".join(texts) + "}"


def _written(
    form: InstructionForm,
    operand: Operand,
    chosen: Mapping[str, str],
    operands: Mapping[str, Value],
    cluster_size: int | None,
) -> str:
    kind = operand.kinds[0]
    if kind is OperandClass.TENSOR:
        address = operand_text(operands.get("tensor", "%rd1"), "tensor").strip("[]")
        count = coordinate_count(chosen)
        given_ = _sequence(operands.get("coords", ()), "coords")
        _check_width(operands.get("coords", ()), "coords", 32)
        coordinates = _counted(form, chosen, given_, "coordinates", count) if given_ else _vector("%r", 10, count)
        return f"[{address}, {coordinates}]"
    if operand.name not in operands:
        return _default(form, operand, chosen)
    value = operands[operand.name]
    texts = _sequence(value, operand.name)
    if kind is OperandClass.OFFSETS:
        _check_width(value, operand.name, 16)
        return _counted(form, chosen, texts, "im2col offsets", offset_count(chosen))
    if operand.name == "mask" and is_integer(value):
        refuse(EmissionError, check_cluster_mask(expect_integer(value, "mask"), cluster_size))
    text = texts[0] if isinstance(value, str) or is_integer(value) else "{" + ", ".join(texts) + "}"
    return f"[{text}]" if "ADDRESS" in kind.name and not text.startswith("[") else text


def traits_modifiers(
    traits: TmaCopyTraits, given_: Mapping[str, Modifier] | None = None
) -> tuple[str, dict[str, Modifier]]:
    """Return the form and the modifiers of a copy's instruction."""
    row = traits.instruction
    walk = {"gather4": "tile::gather4", "scatter4": "tile::scatter4"}.get(row.mode, row.mode)
    if walk == "im2col":
        walk = "im2col_no_offs" if row.direction in ("store", "reduce") else load_mode_of(traits.request)
    found: dict[str, Modifier] = {"dim": traits.request.rank, "mode": walk}
    found |= {"op": row.reduction} if row.reduction else {}
    found |= {"multicast": True} if row.multicast else {}
    found |= {"cta_group": 2} if row.ctas == 2 else {}
    return row.direction, {**found, **(given_ or {})}


def ptx(
    form: str | TmaCopyTraits | HasTraits,
    *,
    operands: Mapping[str, Value] | None = None,
    predicate: str = "",
    cluster_size: int | None = None,
    arch: str | None = None,
    version: Version = NEWEST_VERSION,
    canonical: bool = True,
    **modifiers: Modifier,
) -> str:
    """Return the text of one instruction, with its modifiers in the ISA's order.

    Args:
        form: the name of a row (`catalog.FORMS`), such as "load", "store", "reduce", "tensormap.replace" or
            "mbarrier.init"; or a TMA atom, an operation or a descriptor of the reference pages, for its instruction
            (for a `TmaOperation`, all instructions that it is lowered to); or an opcode or family such as
            "cp.async.bulk.tensor", which selects the first of its rows that accepts the modifiers.
        operands: a string or an integer for each operand, by its name; a tensor operand has the names `tensor` (the
            address) and `coords` (innermost first). An operand that you do not pass gets a default register.
        predicate: such as "@%p1".
        cluster_size: CTAs in the cluster, 1 to 16, for the check of a literal multicast mask.
        arch, version: if given, an instruction that this target does not support is an error.
        canonical: if False, a tensor copy is written as in the templates on the TMA emission page: the mode follows the
            completion (gather4 and scatter4 follow the rank), and `.tile` is omitted. An assembler accepts both orders.
        modifiers: slot name = choice; True for a slot with one choice; `dim=2` for .2d; `dst`, `src` for the state
            spaces.

    >>> ptx("load", dim=2, multicast=True)[:80]
    'cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes'
    >>> ptx("tensormap.replace", field="global_dim", spaces="global", operands={"ordinal": 1})
    'tensormap.replace.tile.global_dim.global.b1024.b32 [%rd1], 1, %r2;'
    >>> ptx("load", dim=3, mode="im2col", canonical=False)[:85]
    'cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.im2col [%'

    Raises:
        InvalidValueError: the form does not exist.
        InvalidTypeError: a modifier or operand is neither a string nor an integer.
        EmissionError: a modifier or value does not exist, the number of coordinates or offsets is wrong, a mask bit is
            beyond the cluster, the cluster has more than 16 CTAs, a number does not fit in its register, no target
            supports the combination, or (with `arch`) this target does not support it.
    """
    if not isinstance(form, str):
        if has(form, "ptx"):
            text: str = form.ptx(arch)  # type: ignore[union-attr]
            return text
        form, modifiers = traits_modifiers(traits_of(form), modifiers)
    rows = forms_named(form) or (find_form(form),)
    check_modifiers(modifiers)
    expect(canonical, bool, "canonical")
    if not _PREDICATE.fullmatch(expect(predicate, str, "predicate")):
        raise EmissionError(f"predicate = {given(predicate)}; must be a predicate such as @%p1 or @!%p1")
    if cluster_size is not None:
        size = expect_integer(cluster_size, "cluster_size")
        if not 1 <= size <= MAX_CLUSTER:
            raise EmissionError.of_value("cluster_size", size, f"be 1 to {MAX_CLUSTER}", "CTAs")
    for name in {} if operands is None else expect(operands, Mapping, "operands"):  # type: ignore[type-abstract]
        expect(name, str, "the name of an operand")
    target = None if arch is None else (arch, version)
    for row in rows[:-1]:
        try:
            return _write(row, operands or {}, predicate, cluster_size, target, modifiers, canonical)
        except EmissionError:
            continue
    return _write(rows[-1], operands or {}, predicate, cluster_size, target, modifiers, canonical)


def mnemonic(name: str, **modifiers: str) -> str:
    """Return the dotted name of an instruction, with its modifiers in the order of the PTX ISA.

    Args:
        name: a row of the table, such as "tcgen05.cp".
        modifiers: a modifier for each slot; a required slot with only one choice may be omitted.
    Raises:
        EmissionError: the row, slot, modifier or combination does not exist.

    >>> mnemonic("tcgen05.cp", cta_group="cta_group::1", shape="32x128b", multicast="warpx4")
    'tcgen05.cp.cta_group::1.32x128b.warpx4'
    """
    expect(name, str, "a name")
    for slot, modifier in modifiers.items():
        expect(modifier, str, slot)
    return _mnemonic(name, tuple(modifiers.items()))


@functools.lru_cache(256)
def _mnemonic(name: str, modifiers: tuple[tuple[str, str], ...]) -> str:
    rows = forms_named(name)
    if len(rows) != 1:
        known = ", ".join(row.name for row in FORMS if row.family == "tcgen05")
        raise EmissionError(f"{given(name)} is not an instruction", {"known": known})
    chosen = _chosen(rows[0], dict(modifiers))
    for rule in rows[0].rules:
        if rule.forbid and not rule.given and holds(rule.condition, chosen):
            raise EmissionError(f"{name}: {rule.forbid}")
    return _joined(rows[0], chosen)


def _joined(row: InstructionForm, chosen: Mapping[str, str], canonical: bool = True) -> str:
    names = [slot.name for slot in row.slots if slot.name in chosen]
    if not canonical and {"dim", "mode", "completion"} <= set(names):
        names.remove("mode")
        if chosen["mode"] != "tile":
            names.insert(names.index("dim" if chosen["mode"].startswith("tile::") else "completion") + 1, "mode")
    return ".".join([row.opcode, *(chosen[name] for name in names)])


def _write(
    row: InstructionForm,
    operands: Mapping[str, Value],
    predicate: str,
    cluster_size: int | None,
    target: tuple[str, Version] | None,
    modifiers: Mapping[str, Modifier],
    canonical: bool,
) -> str:
    """Return the instruction of one row; for the errors, see `ptx`."""
    chosen = _chosen(row, modifiers)
    expected = row.expected(chosen)
    names = {operand.name for operand in expected}
    if "tensor" in names:
        names.add("coords")
    extra = [name for name in operands if name not in names]
    if extra:
        facts = {"operands": ", ".join(sorted(names))}
        raise EmissionError(f"{row.name} has no operand {', '.join(extra)} with these modifiers", facts)
    kept = [operand for operand in expected if not operand.optional or operand.name in operands]
    texts = [_written(row, operand, chosen, operands, cluster_size) for operand in kept]
    text = f"{predicate} {_joined(row, chosen, canonical)} {', '.join(texts)}".strip() + ";"
    examined = examine(text)
    reasons = examined.errors or (() if target is None else examined.reasons(*target))
    if reasons:
        raise EmissionError(reasons[0], {"instruction": text})
    return text


def complete(mnemonic: str) -> str:
    """Return a mnemonic followed by the default operands of its row.

    >>> complete("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group")
    'cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r10, %r11}], [%r1];'
    """
    examined = examine(mnemonic)
    if examined.form is None:
        return mnemonic + ";"
    row = examined.form
    chosen = examined.chosen
    texts = [_written(row, operand, chosen, {}, None) for operand in row.expected(chosen) if not operand.optional]
    return f"{mnemonic} {', '.join(texts)};" if texts else f"{mnemonic};"
