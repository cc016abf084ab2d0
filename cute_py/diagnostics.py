"""`Diagnostic`, the record of every check: a broken rule, or a legal but harmful setting.

A check is a function `check_x(...) -> list[Diagnostic]`. It returns all its findings; an empty list means that the
input is sound. A check never raises an error about its input, so that callers can list the findings, raise them, or
search over inputs.

`reason_table` parses tables of prose that explain why each rule exists and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from cute_py.argument_checks import expect, expect_choice, expect_integer, is_integer
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, TmaLimitError, given, integer_text

MAX_BITS: Final = 14_000
"""Maximum number of bits of a value that is printed. A value may be the product of all numbers of a request, and Python
limits the digits that it prints."""

SEVERITIES: Final = ("error", "warning", "note")
"""'error': refused, or wrong when it runs. 'warning': legal, but harmful or slow. 'note': information, not a fault."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding of a check: a broken rule, or a legal but harmful setting.

    Attributes:
        rule: the stable id of the rule. Programs compare this id, never a message.
        argument: the argument or field that breaks the rule, by its own name ('globalStrides[0]').
        value: the value of the argument, in `unit`; None if no single number breaks the rule.
        requirement: the requirement, in the form that follows 'must' ('be a multiple of 16').
        source: where the rule comes from: a document and its section, a C++ condition, or a measurement.
        mode: the TMA mode that the argument belongs to, 0 innermost; None: no single mode.
        detail: how the value was computed, if it was.
        text: the message, if it does not have the form 'argument = value unit; must requirement'.
        severity: one of `SEVERITIES`.
        facts: other facts, by name.
        fixes: changes that were tried and work.

    >>> found = Diagnostic("stride", "globalStrides[0]", 40, "bytes", "be a multiple of 16")
    >>> print(found.message)
    globalStrides[0] = 40 bytes; must be a multiple of 16
    """

    rule: str
    argument: str = ""
    value: int | None = None
    unit: str = ""
    requirement: str = ""
    source: str = ""
    mode: int | None = None
    detail: str = ""
    text: str = ""
    severity: str = "error"
    facts: dict[str, object] = field(default_factory=dict, hash=False)
    fixes: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        texts = self.rule, self.argument, self.unit, self.requirement, self.source, self.detail, self.text
        if not _TEXT.issuperset(map(type, texts)):
            for name, text in zip(_TEXTS, texts, strict=True):
                expect(text, str, name)
        if self.value is not None:
            if type(self.value) is not int and not is_integer(self.value):
                raise InvalidTypeError(f"value must be an integer, got {type(self.value).__name__} {given(self.value)}")
            if int(self.value).bit_length() > MAX_BITS:
                raise InvalidValueError.of_value("value", int(self.value), f"have at most {MAX_BITS} bits")
        if self.mode is not None and type(self.mode) is not int:
            expect_integer(self.mode, "mode")
        if type(self.severity) is not str or self.severity not in SEVERITIES:
            expect_choice(self.severity, SEVERITIES, "severity")
        if type(self.facts) is not dict or type(self.fixes) is not tuple:
            expect(self.facts, dict, "facts")
            expect(self.fixes, tuple, "fixes")

    @property
    def message(self) -> str:
        """The finding as one line: the argument, its value, and the requirement.

        >>> Diagnostic("address", "globalAddress", 8, "bytes", "be a multiple of 16").message
        'globalAddress = 8 bytes; must be a multiple of 16'
        """
        if self.text:
            return self.text
        number = "" if self.value is None else f" = {integer_text(self.value)}"
        unit = f" {self.unit}" if self.unit else ""
        how = f" ({self.detail})" if self.detail else ""
        must = f"; must {self.requirement}" if self.requirement else ""
        return f"{self.argument}{number}{unit}{how}{must}"

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        values = {x.name: getattr(self, x.name) for x in fields(self)}
        said = {n: integer_text(v) if type(v) is int else repr(v) for n, v in values.items()}
        return f"Diagnostic({', '.join(f'{n}={v}' for n, v in said.items() if v not in _UNSAID)})"


_TEXT: Final = frozenset({str})
_TEXTS: Final = ("rule", "argument", "unit", "requirement", "source", "detail", "text")
_UNSAID: Final = ("None", "''", "{}", "()", "'error'")


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a check: the parts that it judged, and the parts that it did not judge, with the reason.

    A check without findings proves the input sound only if its scope is complete.

    Attributes:
        judged: the parts that were judged, with their counts: '4 barriers'.
        not_judged: the parts that were not judged, with the reason: '1 barrier: used in blocks at lines 120, 188'.

    >>> print(Scope(("4 barriers",), ("1 barrier: used in blocks at lines 120, 188",)))
    judged: 4 barriers
    not judged: 1 barrier: used in blocks at lines 120, 188
    """

    judged: tuple[str, ...] = ()
    not_judged: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("judged", "not_judged"):
            for text in expect(getattr(self, name), tuple, name):
                expect(text, str, name)

    @property
    def complete(self) -> bool:
        """Whether everything in the input was judged."""
        return not self.not_judged

    def to_json(self) -> dict[str, object]:
        """The fields as `--json` prints them."""
        return {"judged": list(self.judged), "not_judged": list(self.not_judged), "complete": self.complete}

    def __str__(self) -> str:
        lines = [f"judged: {', '.join(self.judged) or 'nothing'}"]
        return "\n".join([*lines, *(f"not judged: {text}" for text in self.not_judged)])


class Findings(list[Diagnostic]):
    """A list of diagnostics that carries the scope of the check: `.scope`.

    An empty list means that no rule is broken within `scope`.

    >>> found = Findings([], scope=Scope(("box", "strides"), ("global address: symbolic",)))
    >>> found == [], found.scope.complete
    (True, False)
    """

    __slots__ = ("scope",)

    def __init__(self, found: Iterable[Diagnostic] = (), *, scope: Scope) -> None:
        self.extend(found)
        self.scope = scope if type(scope) is Scope else expect(scope, Scope, "scope")

    @staticmethod
    def none(scope: Scope) -> Findings:
        """Make an empty list, the result of most checks, without the cost of checking items."""
        made = _no_findings(Findings)
        made.scope = scope
        return made


_no_findings: Final = Findings.__new__


def refuse(error: type[CuteError], found: Sequence[Diagnostic], several: str = "", **arguments: Any) -> None:
    """Raise one error that lists all diagnostics; if there are none, return.

    Args:
        error: the class to raise, called as (headline, facts, hint, **arguments).
        several: the headline if there is more than one diagnostic. Without it, the headline is the first message, and
            the other messages are facts.

    >>> refuse(CuteError, [])
    >>> refuse(CuteError, [Diagnostic("size", "n", 3, requirement="be even"), Diagnostic("sign", text="n < 0")], "n")
    Traceback (most recent call last):
    cute_py.errors.CuteError: n
      1 : n = 3; must be even
      2 : n < 0
    """
    if not found:
        return
    if issubclass(error, TmaLimitError):
        arguments.setdefault("violations", found)
    first = found[0]
    if len(found) == 1:
        facts = {**first.facts, **({"source": first.source} if first.source else {})}
        made = error(first.message, facts, "; or ".join(map(str, first.fixes)) or None, **arguments)
    else:
        listed = found if several else found[1:]
        facts = {str(i): d.message for i, d in enumerate(listed, 1 if several else 2)}
        made = error(several or first.message, facts, **arguments)
    vars(made)["diagnostics"] = tuple(found)
    raise made.of_rule(first.rule)


def diagnostics_of(error: CuteError) -> list[Diagnostic]:
    """The broken rules behind an error. For an error that was raised without diagnostics, return one diagnostic with
    its headline, facts and hint.

    >>> from cute_py.argument_checks import out_of_range
    >>> diagnostics_of(out_of_range("num_multicast", 17, "be 1 to 16", "CTAs"))[0].value
    17
    """
    held = vars(error)
    found = [d for d in held.get("diagnostics") or held.get("violations", ()) if isinstance(d, Diagnostic)]
    if found:
        return found
    fixes = () if error.hint is None else (error.hint,)
    measured = error.measured
    if measured is None or measured.value.bit_length() > MAX_BITS:
        return [Diagnostic(error.rule, text=error.headline, facts=error.facts, fixes=fixes)]
    argument, value, unit, must = measured
    rule = argument if error.rule == error.headline else error.rule
    return [Diagnostic(rule, argument, value, unit, must, facts=error.facts, fixes=fixes)]


@dataclass(frozen=True, slots=True)
class Reason:
    """One row of a table of reasons: why a rule exists, and what to do if it is broken.

    Attributes:
        why: why the rule exists; fix: what to do.
        source: where the rule comes from; empty if the error or another table names it.
        name: the rule's name in a list of rules; empty: the rule's id is its name.
    """

    why: str
    fix: str
    source: str = ""
    name: str = ""


def reason_table(rows: str) -> dict[str, Reason]:
    """Parse a table of reasons, rule -> reason, from rows of prose.

    A row begins at the margin with `rule | why` or `rule = name | why`, and continues with `-> what to do` and `<-
    source`.

    >>> reason_table("parity | Pairs.\\n  -> Add one.\\nsign | None.\\n  -> Drop\\n  it.\\n  <- a manual")["sign"].fix
    'Drop it.'
    """
    found = {}
    for row in re.split(r"\n(?=\S)", rows.strip()):
        label, _, reason = " ".join(row.split()).partition(" | ")
        rule, _, name = label.partition(" = ")
        why, _, remedy = reason.partition(" -> ")
        fix, _, source = remedy.partition(" <- ")
        found[rule] = Reason(why, fix, source, name)
    return found
