"""All rows of the instruction table, by name and by opcode, and the instructions that no assembler supports."""

from __future__ import annotations

from cute_py.argument_checks import expect
from cute_py.errors import InvalidValueError, given, known_names
from cute_py.ptx.forms_barrier import FENCE_FORMS, MBARRIER_FORMS, TENSORMAP_FORMS
from cute_py.ptx.forms_copy import BULK_FORMS, LEGACY_FORMS, TENSOR_FORMS
from cute_py.ptx.forms_sync import CACHE_FORMS, SYNC_FORMS, WARPGROUP_FORMS
from cute_py.ptx.forms_tcgen05 import TCGEN05_FORMS
from cute_py.ptx.instruction import InstructionForm

FORMS: tuple[InstructionForm, ...] = (
    *TENSOR_FORMS,
    *BULK_FORMS,
    *TENSORMAP_FORMS,
    *MBARRIER_FORMS,
    *FENCE_FORMS,
    *SYNC_FORMS,
    *CACHE_FORMS,
    *WARPGROUP_FORMS,
    *LEGACY_FORMS,
    *TCGEN05_FORMS,
)
"""Every row of the table."""

ABSENT: dict[str, str] = {
    "multimem.cp.async.bulk": "ptxas 13.0.88 has no instruction of that name (PTX ISA 9.1 documents it)",
    "multimem.cp.reduce.async.bulk": "ptxas 13.0.88 has no instruction of that name (PTX ISA 9.1 documents it)",
    "barrier.cluster.sync": "barrier.cluster.sync does not exist; use barrier.cluster.arrive, then "
    "barrier.cluster.wait",
}
"""Instruction names that the measured assembler rejects on every architecture, with the reason."""

COMPLETE = ("tcgen05",)
"""The table has every instruction with these name prefixes that the measured assembler knows."""

_BY_NAME = {form.name: form for form in FORMS}
_BY_OPCODE: dict[str, list[InstructionForm]] = {}
for _form in FORMS:
    _BY_OPCODE.setdefault(_form.opcode, []).append(_form)
_LONGEST = max(form.opcode.count(".") + 1 for form in FORMS)
_ALIASES = {
    "cp.async.bulk.tensor.load": "load",
    "cp.async.bulk.tensor.store": "store",
    "cp_fenceproxy": "tensormap.cp_fenceproxy",
}


def forms_named(name: str) -> tuple[InstructionForm, ...]:
    """Return the rows that `name` refers to: the name of a row, an opcode that several rows share, or a family.

    >>> [form.name for form in forms_named("cp.async.bulk.tensor")]
    ['load', 'store']
    >>> [form.name for form in forms_named("bulk.tensor.load")]
    ['load']
    """
    key = _ALIASES.get(expect(name, str, "a name"), name)
    if key in _BY_NAME:
        return (_BY_NAME[key],)
    return tuple(_BY_OPCODE.get(name, ())) or tuple(form for form in FORMS if form.family == name)


def form(name: str) -> InstructionForm:
    """Return the row of that name.

    >>> form("load").opcode
    'cp.async.bulk.tensor'

    Raises:
        InvalidValueError: no row has that name.
    """
    key = _ALIASES.get(expect(name, str, "a name"), name)
    if key not in _BY_NAME:
        known = known_names(name, sorted(_BY_NAME), _ALIASES)
        raise InvalidValueError(f"{given(name)} is not an instruction form", known)
    return _BY_NAME[key]


def forms_of_opcode(parts: tuple[str, ...]) -> tuple[InstructionForm, ...]:
    """Return the rows whose opcode is the longest prefix of the dotted name with these `parts`."""
    names = (".".join(parts[:length]) for length in range(min(len(parts), _LONGEST), 0, -1))
    return next((tuple(_BY_OPCODE[name]) for name in names if name in _BY_OPCODE), ())
