"""why_not: why an architecture does not have an instruction, asked by whatever name is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError, InvalidValueError, given
from cute_py.tma.lower.architectures import NEWEST_VERSION, Version
from cute_py.tma.lower.capabilities import VARIANT_BY_NAME, VARIANTS
from cute_py.tma.lower.catalog import FORMS, forms_named
from cute_py.tma.lower.check import verdict
from cute_py.tma.lower.instruction import Form
from cute_py.tma.lower.render import check_modifiers, complete, ptx

MODE_NAMES: Final[dict[str, str]] = {
    "tile": "load tile shared::cluster",
    "gather4": "load tile::gather4 shared::cluster",
    "tile::gather4": "load tile::gather4 shared::cluster",
    "scatter4": "store tile::scatter4",
    "tile::scatter4": "store tile::scatter4",
    "im2col": "load im2col shared::cluster",
    "im2col::w": "load im2col::w shared::cluster",
    "im2col::w::128": "load im2col::w::128 shared::cluster",
    "im2col_no_offs": "store im2col_no_offs",
    "multicast": "load tile multicast",
    "cta_group": "load tile shared::cluster cta_group",
}
"""A load or store mode, or a modifier of loads -> the variant of the capability table that shows it."""

OPCODES: Final[dict[str, str]] = {form.name: form.opcode for form in FORMS}
"""Name of a row -> its opcode."""


def why_not(form: str, arch: str, version: Version = NEWEST_VERSION, **modifiers: object) -> str | None:
    """Why `arch` does not take this instruction, None if it does.

    Args:
        form: a variant of `CAPABILITIES`; a mode ("tile::gather4"); an opcode ("cp.async.bulk.tensor": its first
            variant); the name of a row, with `modifiers` as for `ptx`
            (those that a row must have and that are not given get their first choice); a whole instruction text; or
            a mnemonic alone, which gets default operands.

    >>> why_not("load", "sm_80")
    'cp.async.bulk.tensor needs sm_90 or newer; got sm_80'
    >>> why_not("tile::gather4", "sm_90a") == why_not("load", "sm_90a", dim=2, mode="tile::gather4")
    True

    Raises:
        InvalidValueError: no such architecture.
        ParseError, UnknownFactError: the text is no instruction, or none that a row covers.
    """
    expect(form, str, "a form")
    check_modifiers(modifiers)
    if not modifiers:
        variant = VARIANT_BY_NAME.get(MODE_NAMES.get(form, form))
        if variant is None and form not in OPCODES:
            variant = next((one for one in VARIANTS if OPCODES[one.form] == form), None)
        if variant is not None:
            return verdict(variant.text, arch, version).why_not
    rows = forms_named(form)
    if rows and (modifiers or len(rows) == 1):
        if len(rows) == 1:
            modifiers = {**_first_choices(rows[0], modifiers), **modifiers}
        try:
            text = ptx(form, **modifiers)  # type: ignore[arg-type]
        except EmissionError as error:
            return error.why
        return verdict(text, arch, version).why_not
    if modifiers:
        raise InvalidValueError(f"{given(form)} is not the name of a form, so it takes no modifiers")
    text = form if ";" in form or " " in form else complete(form)
    return verdict(text, arch, version).why_not


def _first_choices(row: Form, given: Mapping[str, object]) -> dict[str, object]:
    """What a row must have and is not given: two dimensions (im2col: three), of other modifiers the first choice."""
    found: dict[str, object] = {}
    for slot in row.slots:
        needed = not slot.optional and not slot.default and len(slot.choices) > 1
        if needed and slot.name not in given and slot.name not in ("spaces", "type"):
            found[slot.name] = slot.choices[0]
    if "dim" in found:
        found["dim"] = 3 if str(given.get("mode", "")).startswith("im2col") else 2
    return found
