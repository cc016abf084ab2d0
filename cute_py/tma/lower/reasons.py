"""why_not: why an architecture does not have an instruction, asked by whatever name is at hand."""

from __future__ import annotations

from typing import Final

from cute_py.tma.lower.architectures import NEWEST_VERSION, Version
from cute_py.tma.lower.capabilities import VARIANTS
from cute_py.tma.lower.catalog import FORMS, forms_named
from cute_py.tma.lower.check import verdict
from cute_py.tma.lower.render import why_not as why_not_text

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
FORM_NAMES: Final = frozenset(OPCODES)


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
    if not modifiers:
        name = MODE_NAMES.get(form, form)
        text = next((variant.text for variant in VARIANTS if variant.name == name), None)
        if text is None and form not in FORM_NAMES:
            text = next((variant.text for variant in VARIANTS if OPCODES[variant.form] == form), None)
        if text is not None:
            return verdict(text, arch, version).why_not
    rows = forms_named(form)
    if len(rows) == 1:
        for slot in rows[0].slots:
            needed = not slot.optional and not slot.default and len(slot.choices) > 1
            if needed and slot.name not in modifiers and slot.name not in ("spaces", "type"):
                modifiers[slot.name] = slot.choices[0]
        if "dim" in modifiers and str(modifiers["dim"]).endswith("d"):
            modifiers["dim"] = 3 if str(modifiers.get("mode", "")).startswith("im2col") else 2
    return why_not_text(form, arch, version, **modifiers)
