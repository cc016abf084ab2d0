"""The long form of an error: the broken rule, the reason for it, its source, and the change.

A rule is identified by its id, never by a message: a `Diagnostic` of a tensor map has an id, a step of the verifier has
its number, and every error of this library has the attribute `.rule`. The tables below have a row for each rule of
these groups: tensor maps (`descriptor.limits`; the reasons about bits follow from the fields of the map), the steps of
the verifier, the conditions of the G-basis, the traps of the hardware, the races that `RaceError` reports, a barrier
that never completes, and the conditions that CuTe C++ asserts in the layout algebra (`rows/assertions.toml` has those
on tensors, copies and MMAs).

Another table has one row for each class of `cute_py.errors`, which applies if no rule is known. The last table has
terms that are not objects of this library: the vocabulary of TMA, and the errors that the CUDA driver returns.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from enum import Enum
from typing import Final

from cute_py.diagnostics import Diagnostic, Reason
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, TmaTrap, TmaVerifyError, unless_refused
from cute_py.explanation.definitions import dotted_names, filled, instance_text, listed, member_text
from cute_py.explanation.rows.known_texts import reasons, rows
from cute_py.explanation.rows.terms import WORDS, word_of
from cute_py.tma.descriptor.data_types import (
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
    member_named,
)

_VERIFIER_SOURCE = "the TMA Atoms reference page, the steps of the partition verifier"


MAP_REASONS: Final = reasons("map")
"""Rule of a tensor map -> its reason. The source is the source of the rule."""

STEP_REASONS: Final = reasons("step")
"""Step of the verifier -> its reason; its name is the text that the step prints, without operands."""

GBASIS_REASONS: Final = reasons("gbasis")

TRAP_REASONS: Final = reasons("trap")
"""Cause of a trap -> its reason."""

RACE_REASONS: Final = reasons("race")
"""Race -> its reason. The source of all rows is PTX ISA, asynchronous operations and proxies."""

HANG_REASONS: Final = reasons("hang")

CONDITION_REASONS: Final = reasons("condition")
"""Condition that CuTe C++ asserts -> its reason."""

CLASS_REASONS: Final = reasons("class")
"""Class of errors -> its general reason."""
_VECTORIZED: Final = CONDITION_REASONS["Copy_Traits: src failed to vectorize into registers"]
SEVERAL_IDS: Final = {
    "TMA requires CTA_Tile and SLayout top-level shape equivalence.": next(iter(GBASIS_REASONS.values())),
    "exit before the load was waited for": RACE_REASONS["exit before the group was read"],
    "Static shape_div failure": CONDITION_REASONS["Divisibility Condition"],
    "Mismatched Ranks": CONDITION_REASONS["Mismatched ranks"],
    "Mismatched tuple_size": CONDITION_REASONS["Mismatched ranks"],
    "tuple index must be in range": CONDITION_REASONS["Index out of range"],
    **dict.fromkeys(
        ("C/D Should meet TMA alignment requirement", "Not meet TMA alignment requirement yet"),
        CONDITION_REASONS["Should meet TMA alignment requirement"],
    ),
    **dict.fromkeys(
        (
            "value <= upper_bound",
            "value >= lower_bound",
            "value < static_cast<int>(upper_bound)",
            "value <= static_cast<unsigned>(upper_bound)",
        ),
        CONDITION_REASONS["value < upper_bound"],
    ),
    "Copy_Traits: dst failed to vectorize into registers. Layout is incompatible with this CopyOp.": _VECTORIZED,
    **{
        f"In CopyAtom, {side} layout doesn't vectorize into registers. This {side} layout is incompatible with this "
        f"{what}.": _VECTORIZED
        for side in ("src", "dst")
        for what in ("tiled copy", "CopyOp")
    },
    "Expected desc registers in MMA_Atom::call": CONDITION_REASONS["Expected registers in MMA_Atom::call"],
}
"""Further rule ids with the same reason."""
REASONS: Final[dict[str, Reason]] = {
    **GBASIS_REASONS,
    **TRAP_REASONS,
    **RACE_REASONS,
    **HANG_REASONS,
    **CONDITION_REASONS,
    **SEVERAL_IDS,
}
"""Value of `CuteError.rule` -> its reason."""


@functools.cache
def assertions() -> dict[str, Reason]:
    """Message of a CuTe C++ static assertion -> its reason. The table is read at first use.

    A key lists all messages of a row, separated by semicolons. `*` matches any text, and the final dot is omitted.
    If two rows match a message, the first gives the reason.
    """
    return {" ; ".join(row.messages): Reason(row.text, row.change, row.source) for row in rows("assertions")}


def assertion_reason(message: str) -> Reason | None:
    """The reason for a static assertion of CuTe, from its message; None if the string has more text before or after the
    message.

    >>> assertion_reason("Unrecognized CopyPolicy.").source
    'cute/algorithm/copy.hpp'
    >>> assertion_reason("Unrecognized CopyPolicy of mine") is None
    True
    """
    said = message.strip().rstrip(".")
    fits = (row for row in rows("assertions") if any(_is_message(said, one) for one in row.messages))
    row = next(fits, None)
    return None if row is None else Reason(row.text, row.change, row.source)


def _is_message(said: str, pattern: str) -> bool:
    """Whether a string matches a message; each `*` in the message matches any text.

    >>> _is_message("a of b", "a * b"), _is_message("a b", "a * b"), _is_message("a of b.", "a * b")
    (True, False, False)
    """
    first, *others = pattern.split("*")
    if not others:
        return said == pattern
    *middle, last = others
    if not said.startswith(first) or not said.endswith(last) or len(said) < len(first) + len(last):
        return False
    at, end = len(first), len(said) - len(last)
    for part in middle:
        at = said.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return "\n" not in said


def error_text(error: CuteError) -> str:
    """Explain an error: its message, the broken rules with their reasons, and the base classes of its class.

    >>> print(error_text(CuteError("no")).splitlines()[0])
    CuteError: no
    """
    found = [_rule(*row) for row in reasons_of(error)] or _in_general(type(error))
    return "\n\n".join([f"{type(error).__name__}: {error}", *found, _about(type(error))])


def error_class_text(kind: type[CuteError]) -> str:
    """Explain an error class: its docstring, what to do, and the rules that raise it."""
    parts = [kind.__name__, inspect.getdoc(kind) or "", *_in_general(kind), _rules_of(kind), _about(kind)]
    return "\n\n".join(part for part in parts if part)


def reasons_of(error: CuteError) -> list[tuple[str, Reason, str]]:
    """(title, reason, source) of each rule that an error reports; empty if no table has its rule."""
    broken = [v for v in getattr(error, "violations", ()) if isinstance(v, Diagnostic) and v.rule in MAP_REASONS]
    if broken:
        return [(f"{v.argument}: it must {v.requirement}", MAP_REASONS[v.rule], v.source) for v in broken]
    if isinstance(error, TmaVerifyError):
        reason = STEP_REASONS.get(str(error.step))
        name = f"step {error.step}, {_step_names().get(error.step)}"
        return [] if reason is None else [(name, reason, _VERIFIER_SOURCE)]
    reason = REASONS.get(error.rule) or assertion_reason(error.rule)
    title = error.cause if isinstance(error, TmaTrap) else error.headline
    return [] if reason is None else [(title, reason, reason.source)]


def _step_names() -> dict[int, str]:
    from cute_py.tma.dialect.verifier import STEPS

    return {step.number: step.name for step in STEPS}


def _in_general(kind: type) -> list[str]:
    """The general reason for an error class, or for its nearest base class that has one."""
    return [_rule("", CLASS_REASONS[c.__name__], "") for c in kind.__mro__ if c.__name__ in CLASS_REASONS][:1]


def _rule(title: str, reason: Reason, source: str) -> str:
    lines = [f"The rule: {title}"] if title else ["In general"]
    lines += [filled("  why    : ", reason.why), filled("  to do  : ", reason.fix)]
    return "\n".join([*lines, *([filled("  source : ", source)] if source else [])])


def _rules_of(kind: type[CuteError]) -> str:
    """A list of the rules that raise an error of this class, if a table has them; otherwise an empty string."""
    from cute_py.tma.descriptor.limits import RULES

    if kind.__name__ == "TmaLimitError":
        return listed("The rules of a tensor map", [(rule.name, f"must {rule.requirement}") for rule in RULES])
    if kind.__name__ == "TmaVerifyError":
        return listed("The steps", [(str(number), name) for number, name in _step_names().items()])
    tables: dict[str, tuple[str, dict[str, Reason]]] = {
        "TmaTrap": ("The causes begin with", TRAP_REASONS),
        "RaceError": ("The rules", RACE_REASONS),
        "StaticAssertError": ("The conditions begin with", CONDITION_REASONS),
        "GBasisError": ("The conditions", GBASIS_REASONS),
        "WouldHangError": ("The rule", HANG_REASONS),
    }
    title, rows = tables.get(kind.__name__, ("", {}))
    return listed(title, [(row.name or rule, row.why) for rule, row in rows.items()])


def _about(kind: type) -> str:
    words = " ".join((inspect.getdoc(kind) or "").split())
    parents = [c.__name__ for c in kind.__mro__[1:] if issubclass(c, Exception) and c is not Exception]
    caught = f"except {' or '.join(parents)} catches it as well." if parents else "It is the base class of all errors."
    return "\n".join([filled("", f"About {kind.__name__}: {words}"), caught])


TERMS: Final = reasons("term")
"""Term -> its meaning, where to find it, and its source."""
DRIVER_ENUMS: Final = (TensorMapSwizzle, TensorMapDataType, Interleave, L2Promotion, OobFill)
_NAMES_OF_ENUMS: Final = (*(kind.__name__ for kind in DRIVER_ENUMS), "Op")


def _enums() -> tuple[type[Enum], ...]:
    from cute_py.tma.atom.op import Op

    return (*DRIVER_ENUMS, Op)


_OF_ENUM: Final = re.compile(rf"(?:cute\.tma\.|tma\.)?(?:{'|'.join(_NAMES_OF_ENUMS)}|CUtensorMap\w+)\.\w+\Z")
"""Matches a member with its enum, as this library or cuda-python prints it."""


def term_text(text: str) -> str | None:
    """The explanation of a term, an enum's spelling ('128B', 'FLOAT16') or an element type ('bf16'); None for any other
    string.

    >>> print(term_text("gbasis").splitlines()[0], term_text("128B").splitlines()[0])
    G-basis TensorMapSwizzle.B128 = 3
    """
    if (row := word_of(text, TERMS)) is not None:
        name, term = row
        return _entry(name, term.why, "  see    : ", term.fix, term.source)
    owner, _, name = (
        text.strip().upper().rpartition(".") if _OF_ENUM.match(text.strip()) else ("", "", text.strip().upper())
    )
    names = (name, f"B{name.removesuffix('B')}") if name[:1].isdigit() else (name,)
    enums = _enums() if name.isidentifier() or names[0] != names[-1] else ()
    of_owner = [kind for kind in enums if kind.__name__.upper() == owner.rpartition(".")[2]]
    spelled = [kind[m] for kind in of_owner or enums for m in names if m in kind.__members__]
    dtype = unless_refused(as_dtype, text.strip())
    if not spelled and dtype is None:
        spelled = [found for kind in DRIVER_ENUMS if (found := member_named(kind, name)) is not None]
    if spelled:
        also = [f"{type(other).__name__}.{other.name}" for other in spelled[1:]]
        return member_text(spelled[0]) + (f"\n\nOther objects with this spelling: {', '.join(also)}" if also else "")
    return None if dtype is None else instance_text(dtype)


def finding_text(text: str) -> str | None:
    """The explanation of a `run_ptx` finding by its name, which is the first part of the finding's message; None for
    any other string.

    >>> print(finding_text("hang: parity").splitlines()[0])
    hang: parity, a finding of run_ptx
    """
    from cute_py.machine.rules import REASONS

    if (row := word_of(text, REASONS)) is None or row[0] not in REASONS:
        return None
    name, reason = row
    title = f"{name.replace(', ', ': ', 1)}, a finding of run_ptx"
    return _entry(title, reason.why, "  to do  : ", f"{reason.fix}.", reason.source and f"PTX ISA, {reason.source}")


def _entry(title: str, why: str, label: str, fix: str, source: str) -> str:
    """Format the explanation of a term or a finding: title, meaning, what to do or where to read more, and the
    source."""
    parts = [title, "", filled("", why), "", filled(label, fix)]
    return "\n".join([*parts, *([filled("  source : ", source)] if source else [])])


def nearest(text: str) -> list[str]:
    """At most three names or terms that are spelled like the given string.

    >>> nearest("ziped_divide")[0]
    'zipped_divide'
    """
    names = [name for _, _, name in dotted_names()] if len(text.split()) <= MOST_WORDS else []
    return difflib.get_close_matches(text, dict.fromkeys([*names, *TERMS, *WORDS, *(row.name for row in DTYPES)]), 3)


MOST_WORDS: Final = 4
"""Longer texts are not compared with the names of the library."""
