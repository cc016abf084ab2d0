"""Capabilities: for each instruction and architecture, the first PTX version that supports the instruction, or the
reason why no version supports it.

A variant is a form with those modifiers that determine which targets support it. `CAPABILITIES[variant][architecture]`
is computed by `examine` from the variant's text and the rows of the instruction table; `check_target` also accepts
other names.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, overload

from cute_py.argument_checks import expect, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import EmissionError, InvalidValueError, given
from cute_py.ptx.catalog import FORMS, forms_named
from cute_py.ptx.check import examine
from cute_py.ptx.forms_barrier import REPLACE_FIELDS
from cute_py.ptx.forms_copy import LOAD_MODES, REDUCE_KINDS, REDUCE_TYPES_CLUSTER, REDUCE_TYPES_GLOBAL, STORE_MODES
from cute_py.ptx.instruction import InstructionForm
from cute_py.ptx.render import Modifier, Value, check_modifiers, complete, ptx
from cute_py.targets import ARCHITECTURES, NEWEST_VERSION, Version, architecture, version_text

__all__ = ["CAPABILITIES", "Capability", "VARIANTS", "Variant", "capability", "check_target", "why_not"]


@record
class Variant:
    """A form with those modifiers that determine which targets support it; `text` is an instruction with default
    operands.

    >>> from cute_py.ptx import VARIANTS
    >>> VARIANTS[0].form
    'load'
    """

    name: str
    form: str
    text: str


@record
class Capability:
    """Support for a variant on an architecture. accepted_from: the first PTX version that accepts the variant on this
    architecture, or None if no version accepts it; `why_not` is then the reason.

    >>> from cute_py.ptx import capability
    >>> capability("mbarrier.init", "sm_80")
    Capability(accepted_from=(7, 8), why_not=None)
    """

    accepted_from: Version | None
    why_not: str | None

    def __str__(self) -> str:
        return f"PTX {version_text(self.accepted_from)}" if self.accepted_from is not None else f"no: {self.why_not}"


def _dim(mode: str) -> int:
    return 3 if mode.startswith("im2col") else 2


def _first_choices(row: InstructionForm, given: Mapping[str, Modifier]) -> dict[str, Modifier]:
    """Add the modifiers that a row requires: two dimensions (three for im2col), and the first choice of other slots."""
    found: dict[str, Modifier] = {}
    for slot in row.slots:
        needed = not slot.optional and not slot.default and len(slot.choices) > 1
        if needed and slot.name not in given and slot.name not in ("spaces", "type"):
            found[slot.name] = slot.choices[0] if slot.name != "dim" else _dim(str(given.get("mode", "")))
    return found


def _variant(name: str, form: str, operands: Mapping[str, Value] | None = None, /, **modifiers: Modifier) -> Variant:
    return Variant(name, form, ptx(form, operands=operands, **modifiers))  # type: ignore[arg-type]


def _variants() -> Iterator[Variant]:
    """Return every variant; a form that is not listed here is itself a variant."""
    for mode in LOAD_MODES:
        tile: dict[str, Modifier] = {"dim": _dim(mode), "mode": mode}
        for space in ("shared::cluster", "shared::cta"):
            yield _variant(f"load {mode} {space}", "load", **tile, dst=space)
            yield _variant(f"load {mode} {space} cta_group", "load", **tile, dst=space, cta_group=2)
        yield _variant(f"load {mode} multicast", "load", **tile, multicast=True)
        yield _variant(f"load {mode} cache_hint", "load", **tile, cache_hint=True)
        yield _variant(f"prefetch {mode}", "prefetch", **tile)
    for mode in STORE_MODES:
        tile = {"dim": _dim(mode), "mode": mode}
        yield _variant(f"store {mode}", "store", **tile)
        for kind in REDUCE_KINDS:
            yield _variant(f"reduce {kind} {mode}", "reduce", **tile, op=kind)
    yield _variant("bulk load shared::cluster", "bulk.load")
    yield _variant("bulk load shared::cta", "bulk.load", dst="shared::cta")
    yield _variant("bulk load multicast", "bulk.load", multicast=True)
    yield _variant("bulk peer", "bulk.peer")
    yield _variant("bulk store", "bulk.store")
    yield _variant("bulk store cp_mask", "bulk.store", cp_mask=True)
    yield _variant("bulk prefetch", "bulk.prefetch")
    for kind, types in REDUCE_TYPES_GLOBAL.items():
        for type_ in types:
            noftz = kind == "add" and type_ in ("f16", "bf16")
            yield _variant(f"bulk reduce {kind} {type_}", "bulk.reduce", op=kind, type=type_, noftz=noftz)
    for kind, types in REDUCE_TYPES_CLUSTER.items():
        for type_ in types:
            yield _variant(f"bulk reduce peer {kind} {type_}", "bulk.reduce.peer", op=kind, type=type_)
    for field in REPLACE_FIELDS:
        for space in ("global", "shared::cta"):
            yield _variant(f"replace {field} {space}", "tensormap.replace", field=field, spaces=space)
    for name, field, value in (("elemtype 13..15", "elemtype", 13), ("swizzle_mode 96B", "swizzle_mode", 4)):
        yield _variant(f"replace {name}", "tensormap.replace", {"value": value}, field=field, spaces="global")
    yield _variant("setmaxnreg", "setmaxnreg", action="inc")
    named = {"load", "store", "reduce", "prefetch", "tensormap.replace", "setmaxnreg"}
    named |= {"bulk.load", "bulk.store", "bulk.peer", "bulk.reduce", "bulk.reduce.peer"}
    for form in FORMS:
        if form.name not in named:
            yield _variant(form.name, form.name, **_first_choices(form, {}))


@functools.cache
def _by_name() -> Mapping[str, Variant]:
    return {variant.name: variant for variant in _variants()}


class _Variants(Sequence[Variant]):
    """The variants, which are rendered on first use, so that an import does not wait for 200 instructions."""

    @overload
    def __getitem__(self, index: int) -> Variant: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Variant, ...]: ...
    def __getitem__(self, index: int | slice) -> Variant | tuple[Variant, ...]:
        return tuple(_by_name().values())[index]

    def __iter__(self) -> Iterator[Variant]:
        return iter(_by_name().values())

    def __len__(self) -> int:
        return len(_by_name())

    def __repr__(self) -> str:
        return f"<{len(self)} variants of instructions>"


VARIANTS: Sequence[Variant] = _Variants()
"""Every variant of the table, in the order of the catalogue."""


@functools.cache
def _capabilities(name: str) -> Mapping[str, Capability]:
    examined = examine(_by_name()[name].text)
    rows = {}
    for target in ARCHITECTURES:
        version = examined.min_version(target.name)
        reasons = None if version is not None else "; ".join(examined.reasons(target.name))
        rows[target.name] = Capability(version, reasons)
    return MappingProxyType(rows)


class _Table(Mapping[str, Mapping[str, Capability]]):
    """The table of capabilities. Each row is computed on first use, so a program that only copies never computes it."""

    def __getitem__(self, name: str) -> Mapping[str, Capability]:
        return _capabilities(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_by_name())

    def __len__(self) -> int:
        return len(_by_name())


CAPABILITIES: Mapping[str, Mapping[str, Capability]] = _Table()
"""variant -> architecture -> Capability."""


def capability(variant: str, arch: str) -> Capability:
    """Return the capability of one variant on one architecture, a cell of the table `CAPABILITIES`.

    >>> str(capability("load tile::gather4 shared::cta", "sm_100a"))
    'PTX 8.6'
    >>> capability("replace rank global", "sm_90").why_not
    'tensormap.replace needs an a or f variant of sm_90 or newer; got sm_90'

    Raises:
        InvalidValueError: the variant or architecture is unknown.
    """
    architecture(arch)
    if expect(variant, str, "a variant") not in CAPABILITIES:
        text = f"{given(variant)} is not a variant of the capability table"
        raise InvalidValueError(text, {"variants": len(VARIANTS)})
    return CAPABILITIES[variant][arch]


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


def check_target(form: str, arch: str, version: Version = NEWEST_VERSION, **modifiers: Modifier) -> list[Diagnostic]:
    """List the reasons why `arch` does not accept this instruction; empty if it does.

    Args:
        form: a variant of `CAPABILITIES`; a mode ("tile::gather4"); an opcode ("cp.async.bulk.tensor": its first
            variant); the name of a row, with `modifiers` as for `ptx` (a required modifier that you do not pass gets
            its first choice); the text of an instruction; or a mnemonic, which gets default operands.

    >>> check_target("load", "sm_80")
    [Diagnostic(rule='target', text='cp.async.bulk.tensor needs sm_90 or newer; got sm_80')]
    >>> check_target("tile::gather4", "sm_90a") == check_target("load", "sm_90a", dim=2, mode="tile::gather4")
    True

    Raises:
        InvalidValueError: the architecture is unknown.
        ParseError, UnknownFactError: the text is not an instruction, or no row covers it.
    """
    expect(form, str, "a form")
    check_modifiers(modifiers)
    try:
        text = _text_of(form, modifiers)
    except EmissionError as error:
        return [Diagnostic("instruction", text=error.why)]
    return examine(text).check_target(arch, version)


def _text_of(form: str, modifiers: dict[str, Modifier]) -> str:
    """Return the text of the instruction that a variant, mode, opcode, row or mnemonic refers to."""
    rows = forms_named(form)
    if not modifiers:
        variant = _by_name().get(MODE_NAMES.get(form, form))
        if variant is None and rows and form == rows[0].opcode != rows[0].name:
            variant = next(one for one in VARIANTS if one.form == rows[0].name)
        if variant is not None:
            return variant.text
    if rows and (modifiers or len(rows) == 1):
        first = _first_choices(rows[0], modifiers) if len(rows) == 1 else {}
        return ptx(form, **{**first, **modifiers})  # type: ignore[arg-type]
    if modifiers:
        raise InvalidValueError(f"{given(form)} is not the name of a form; only names of forms accept modifiers")
    return form if ";" in form or " " in form else complete(form)


def why_not(form: str, arch: str, version: Version = NEWEST_VERSION, **modifiers: Modifier) -> str | None:
    """Return the messages of `check_target` in one line, or None; this is an earlier form of that function.

    >>> why_not("load", "sm_80")
    'cp.async.bulk.tensor needs sm_90 or newer; got sm_80'
    """
    return "; ".join(found.text for found in check_target(form, arch, version, **modifiers)) or None
