"""Instructions as CUDA inline assembly: operand numbers, constraint letters, and the text of the statement.

Operand numbers follow the emission catalogue of the TMA Atoms reference pages. In a load, `%0` is the destination, `%1`
the tensor map and `%2` the barrier, followed by the coordinates, the im2col offsets, the mask and the policy. Therefore

    mcast_opnum = rank + 3 + im2col_count
    ch_opnum    = mcast_opnum + (1 if there is a mask else 0)

In a store or reduction, `%0` is the tensor map and `%1` the source, followed by the coordinates and the policy.
Constraint letters are `l` for 64-bit pointers and policies, `r` for coordinates and shared-memory addresses, and `h`
for 16-bit masks and offsets.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_integer, record
from cute_py.errors import EmissionError, counted, shortened
from cute_py.ptx.catalog import form as find_form
from cute_py.ptx.check import examine
from cute_py.ptx.instruction import coordinate_count, offset_count
from cute_py.ptx.render import Modifier, ptx

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
