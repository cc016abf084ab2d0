"""Instructions as CUDA inline assembly: operand numbers, constraint letters, and the text of the statement.

Operand numbers follow the emission catalogue of the TMA Atoms reference pages. In a load, `%0` is the destination, `%1`
the tensor map and `%2` the barrier, followed by the coordinates, the im2col offsets, the mask and the policy. Therefore

    mcast_opnum = rank + 3 + im2col_count
    ch_opnum    = mcast_opnum + (1 if there is a mask else 0)

In a store or reduction, `%0` is the tensor map and `%1` the source, followed by the coordinates and the policy.
Constraint letters are `l` for 64-bit pointers and policies, `r` for coordinates and shared-memory addresses, and `h`
for 16-bit masks and offsets.

A template that is read does not state the types of its operands. Each operand gets the width that the instructions of
the table accept. An operand that can only be a number (constraint "n") keeps its name, and its instructions are not
judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.errors import EmissionError, ParseError, UnknownFactError, counted, shortened
from cute_py.ptx.catalog import form as find_form
from cute_py.ptx.check import examine
from cute_py.ptx.instruction import coordinate_count, offset_count
from cute_py.ptx.program import Function, Program, parse_program
from cute_py.ptx.render import Modifier, ptx
from cute_py.targets import NEWEST_VERSION, version_text

__all__ = ["InlineAsm", "ch_opnum", "inline_asm", "mcast_opnum"]


def mcast_opnum(rank: int, im2col_count: int) -> int:
    """Return the operand number of the multicast mask of a load: rank + 3 + im2col_count.

    Raises:
        InvalidValueError: the rank is not 1 to 5, or the number of im2col offsets is not 0 to 3.

    >>> mcast_opnum(4, 2)
    9
    """
    rank = expect_integer(rank, "rank", 1, 5, unit="modes")
    im2col_count = expect_integer(im2col_count, "im2col_count", 0, 3, unit="offsets")
    return rank + 3 + im2col_count


def ch_opnum(rank: int, im2col_count: int, multicast: bool) -> int:
    """Return the operand number of the cache policy of a load: one more than the mask's number with a mask, otherwise
    the number that the mask would have.

    >>> ch_opnum(2, 0, True), ch_opnum(2, 0, False)
    (6, 5)
    """
    return mcast_opnum(rank, im2col_count) + int(expect(multicast, bool, "multicast"))


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """One operand of an asm statement: its number, constraint letter, C expression, and whether it is written."""

    number: int
    constraint: str
    expression: str
    written: bool = False


@record
class InlineAsm:
    """An asm statement: `template` is its text with %n for operands, which are listed in order; `text` is the statement
    in CUDA C++.

    >>> InlineAsm("fence.proxy.async;", ()).text
    'asm volatile("fence.proxy.async;"\\n             ::  : "memory");'
    """

    template: str
    operands: tuple[AsmOperand, ...]

    @property
    def constraints(self) -> tuple[str, ...]:
        """The constraint letters in operand order (joined by commas, they are LLVM's "r,l,r,...")."""
        return tuple(operand.constraint for operand in self.operands)

    def __repr__(self) -> str:
        return f"<asm {shortened(self.template)!r}, {counted(len(self.operands), 'operand')}>"

    @property
    def text(self) -> str:
        inputs = ", ".join(f'"{operand.constraint}"({operand.expression})' for operand in self.operands)
        return f'asm volatile("{self.template}"\n             :: {inputs} : "memory");'


_LETTERS = {"smem": "r", "desc": "l", "mbar": "r", "crd": "r", "offset": "h", "mask": "h", "policy": "l"}
"""C expression -> its constraint letter."""

_HEADS = {"load": ("[%0], [%1, {}], [%2]", "smem", "desc", "mbar"), "prefetch": ("[%0, {}]", "desc")}
_STORE_HEAD = ("[%0, {}], [%1]", "desc", "smem")
"""The operands before the offsets, with {} for the coordinates, and the expressions that are numbered before these."""


def inline_asm(form: str, **modifiers: Modifier) -> InlineAsm:
    """Return the asm statement of a tensor load, store, reduction or prefetch.

    >>> statement = inline_asm("load", dim=2, multicast=True)
    >>> statement.template.split(" ", 1)[1]
    '[%0], [%1, {%3, %4}], [%2], %5;'
    >>> statement.constraints
    ('r', 'l', 'r', 'r', 'r', 'h')

    Raises:
        EmissionError: the form has no tensor map operand, or does not accept the modifiers.
    """
    if not any(operand.name == "tensor" for operand in find_form(form).operands):
        raise EmissionError(f"{form} has no tensor map operand")
    plain = ptx(form, **modifiers)  # type: ignore[arg-type]
    chosen = examine(plain).chosen
    rank, offsets = coordinate_count(chosen), offset_count(chosen)
    head, *names = _HEADS.get(form, _STORE_HEAD)
    first = len(names)
    names += [f"crd{index}" for index in range(rank)] + [f"offset{index}" for index in range(offsets)]
    names += [name for name, slot in (("mask", "multicast"), ("policy", "cache_hint")) if slot in chosen]
    numbers = [f"%{number}" for number in range(len(names))]
    written = [head.format(f"{{{', '.join(numbers[first : first + rank])}}}")]
    if offsets:
        written.append(f"{{{', '.join(numbers[first + rank : first + rank + offsets])}}}")
    written += numbers[first + rank + offsets :]
    operands = (AsmOperand(n, _LETTERS[name.rstrip("01234")], name) for n, name in enumerate(names))
    return InlineAsm(f"{plain.split(' ', 1)[0]} {', '.join(written)};", tuple(operands))


# ---- reading a template ----------------------------------------------------------------------------------------------

FUNCTION: Final = "template"
"""Name of the function that contains a template."""
_MODULE: Final = re.compile(r"^[^\S\n]*\.(?:version|target|visible|weak|extern|entry|func)\b", re.MULTILINE)
_OPERAND: Final = re.compile(r"(?<![\w$%])%(\d{1,3})(?!\w)")
_WIDTHS: Final = {"r": "%r_op_", "rd": "%rd_op_", "rs": "%rs_op_", "p": "%p_op_"}
_NAMED: Final = re.compile(r"%(?:r|rd|rs|p)_op_(\d+)")
_NUMBERS: Final = ("0", "1", "16", "32")


@record
class Template:
    """A template as PTX: its text with typed operands, and the parsed function."""

    text: str
    program: Program


def has_unknown_number(text: str) -> bool:
    """Whether an instruction has an operand of a template that can only be a number.

    >>> has_unknown_number("cp.async.bulk.wait_group %0;"), has_unknown_number("mov.u32 %r0, 1;")
    (True, False)
    """
    return _OPERAND.search(text) is not None


def as_written(text: str) -> str:
    """Return a text with the operands of its template as they were written.

    >>> as_written("mbarrier.init.shared::cta.b64 [%r_op_0], %r_op_1;")
    'mbarrier.init.shared::cta.b64 [%0], %1;'
    """
    return _NAMED.sub(r"%\1", text)


def read_template(text: str, judged: tuple[str, ...], target: str) -> Template | None:
    """Read a template; None if the text is a module, is not PTX, or has no instruction with one of these prefixes.

    `%%` stands for the % of a register, and `%=` for a number, as in CUDA C++. Line numbers are those of the text.

    >>> made = read_template("mbarrier.init.shared::cta.b64 [%0], %1;", ("mbarrier",), "sm_90a")
    >>> [one.text for one in made.program.functions[0].statements()]
    ['mbarrier.init.shared::cta.b64 [%r_op_0], %r_op_1;']
    """
    if not isinstance(text, str) or _MODULE.search(text):
        return None
    plain = text.replace("%=", "_0")
    plain = plain.replace("%%", "%") if _OPERAND.search(text) else plain
    plain = f".func {FUNCTION}() {{ {plain}\n}}\n.version {version_text(NEWEST_VERSION)}\n.target {target}\n"
    try:
        [function] = parse_program(plain).functions
    except (ParseError, ValueError):
        return None
    found = [one for one in function.statements() if one.opcode.startswith(judged)]
    if not found:
        return None
    typed = _typed(plain, function, judged)
    return Template(typed, parse_program(typed))


def _typed(text: str, function: Function, judged: tuple[str, ...]) -> str:
    """Give each operand the first width that the judged instructions accept."""
    uses: dict[str, list[str]] = {}
    for one in function.statements():
        for name in dict.fromkeys(_OPERAND.findall(one.text)):
            uses.setdefault(name, []).extend([one.text] if one.opcode.startswith(judged) else [])
    made = {name: f"{_WIDTHS['r']}{name}" for name in uses}
    for name, texts in uses.items():
        widths = [f"{prefix}{name}" for prefix in _WIDTHS.values()]
        costs = [_errors(texts, {**made, name: one}) for one in widths]
        made[name] = widths[costs.index(min(costs))]
        if min(costs) > min(_errors(texts, {**made, name: number}) for number in _NUMBERS):
            made[name] = f"%{name}"
    return _filled(text, made)


def _filled(text: str, made: dict[str, str]) -> str:
    return _OPERAND.sub(lambda found: made.get(found[1], found[0]), text)


def _errors(texts: Iterable[str], made: dict[str, str]) -> int:
    """Count the errors of instructions with these operands."""
    count = 0
    for text in texts:
        try:
            count += len(examine(_filled(text, made)).errors)
        except (ParseError, UnknownFactError):
            count += 1
    return count
