"""Instructions as CUDA inline assembly: operand numbers, constraint letters, the statement text.

Numbers follow the emission catalogue of the TMA Atoms reference pages. A load is `%0` destination, `%1` tensor map,
`%2` barrier, then the coordinates, the im2col offsets, the mask, the policy; so

    mcast_opnum = rank + 3 + im2col_count
    ch_opnum    = mcast_opnum + (1 if there is a mask else 0)

A store or reduction is `%0` tensor map, `%1` source, then the coordinates and the policy. Constraint letters: `l` for
64-bit pointers and policies, `r` for coordinates and shared addresses, `h` for 16-bit masks and offsets.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields, expect_integer
from cute_py.errors import EmissionError
from cute_py.ptx.catalog import form as find_form
from cute_py.ptx.check import examine
from cute_py.ptx.instruction import OperandClass, coordinate_count, offset_count
from cute_py.ptx.render import ptx

_SHARED = "r"
_POINTER = "l"


def mcast_opnum(rank: int, im2col_count: int) -> int:
    """Operand number of the multicast mask of a load: rank + 3 + im2col_count.

    >>> mcast_opnum(4, 2)
    9
    """
    rank, im2col_count = expect_integer(rank, "rank"), expect_integer(im2col_count, "im2col_count")
    return rank + 3 + im2col_count


def ch_opnum(rank: int, im2col_count: int, multicast: bool) -> int:
    """Operand number of the cache policy of a load: one more than the mask's if there is a mask, else the mask's."""
    return mcast_opnum(rank, im2col_count) + int(expect(multicast, bool, "multicast"))


def descriptor_opnum(form: str) -> int:
    """Operand number of the tensor map: 1 on loads, 0 on stores, reductions and prefetches.

    Raises:
        EmissionError: the form has no tensor map operand.
    """
    row = find_form(form)
    if not any(operand.name == "tensor" for operand in row.operands):
        raise EmissionError(f"{form} has no tensor map operand")
    return 1 if form == "load" else 0


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """One operand of the statement: its number, constraint letter, C expression, and whether it is written."""

    number: int
    constraint: str
    expression: str
    written: bool = False


@dataclass(frozen=True, slots=True)
class InlineAsm:
    """An asm statement: `template` with %n, its operands in order; `text` is CUDA C++."""

    template: str
    operands: tuple[AsmOperand, ...]

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def constraints(self) -> tuple[str, ...]:
        """Constraint letters in operand order (LLVM's "r,l,r,..." is their join)."""
        return tuple(operand.constraint for operand in self.operands)

    @property
    def text(self) -> str:
        inputs = ", ".join(f'"{operand.constraint}"({operand.expression})' for operand in self.operands)
        return f'asm volatile("{self.template}"\n             :: {inputs} : "memory");'


def _tensor_operands(form: str, rank: int, offsets: int, multicast: bool, policy: bool) -> list[tuple[str, str, str]]:
    """(role, constraint, expression) in operand order."""
    desc = ("tensor", _POINTER, "desc")
    coords = [("coord", "r", f"crd{index}") for index in range(rank)]
    tail = [("offset", "h", f"offset{index}") for index in range(offsets)]
    tail += [("mask", "h", "mask")] if multicast else []
    tail += [("policy", _POINTER, "policy")] if policy else []
    if form == "load":
        return [("destination", _SHARED, "smem"), desc, ("barrier", _SHARED, "mbar"), *coords, *tail]
    if form == "prefetch":
        return [desc, *coords, *tail]
    return [desc, ("source", _SHARED, "smem"), *coords, *tail]


def inline_asm(form: str, **modifiers: object) -> InlineAsm:
    """The asm statement of a tensor load, store, reduction or prefetch.

    >>> statement = inline_asm("load", dim=2, multicast=True)
    >>> statement.template.split(" ", 1)[1]
    '[%0], [%1, {%3, %4}], [%2], %5;'
    >>> statement.constraints
    ('r', 'l', 'r', 'r', 'r', 'h')

    Raises:
        EmissionError: the form has no tensor map operand, or the modifiers do not fit it.
    """
    descriptor_opnum(form)
    row = find_form(form)
    plain = ptx(form, **modifiers)  # type: ignore[arg-type]
    chosen = _chosen_of(plain)
    rank, offsets = coordinate_count(chosen), offset_count(chosen)
    roles = _tensor_operands(form, rank, offsets, "multicast" in chosen, "cache_hint" in chosen)
    numbers: dict[str, list[str]] = {}
    operands = []
    for number, (role, constraint, expression) in enumerate(roles):
        numbers.setdefault(role, []).append(f"%{number}")
        operands.append(AsmOperand(number, constraint, expression))
    written: list[str] = []
    for operand in row.expected(chosen):
        if operand.kinds[0] is OperandClass.TENSOR:
            written.append(f"[{numbers['tensor'][0]}, {{{', '.join(numbers['coord'])}}}]")
        elif operand.name == "offsets":
            written.append("{" + ", ".join(numbers["offset"]) + "}")
        elif operand.kinds[0] is OperandClass.SHARED_ADDRESS:
            written.append(f"[{numbers[operand.name][0]}]")
        else:
            written.append(numbers[operand.name][0])
    mnemonic = plain.split(" ", 1)[0]
    return InlineAsm(f"{mnemonic} {', '.join(written)};", tuple(operands))


def _chosen_of(text: str) -> dict[str, str]:
    return dict(examine(text).chosen)


LOAD_MODE_GATES: tuple[tuple[int, str, bool], ...] = (
    (0, "NO_MULTICAST", False),
    (1, "TWO_CTA", False),
    (2, "W_MULTICAST", True),
    (3, "W128_MULTICAST", True),
)
"""Load-mode enum: number, name, and whether it lets `.multicast::cluster` through.

Source: TMA Atoms reference pages, emission catalogue (the enum gates the modifier).
"""

STORE_MODE_EMITTERS: tuple[tuple[int, str, str], ...] = (
    (0, "TILED", "tile"),
    (1, "IM2COL", "im2col_no_offs"),
    (2, "IM2COL_W", "im2col_no_offs"),
    (3, "IM2COL_W128", "im2col_no_offs"),
)
"""Store-mode enum: number, name, and the mode that its emitter writes; there are two emitters.

A store has no im2col::w forms of its own: the map's im2col shape and the coordinates are all that it takes.
"""


def gates_multicast(load_mode: int) -> bool:
    """Whether this load mode writes `.multicast::cluster`.

    Raises:
        EmissionError: no such mode.
    """
    for number, _, gate in LOAD_MODE_GATES:
        if number == load_mode:
            return gate
    raise EmissionError(f"load mode {load_mode}; expected 0..{len(LOAD_MODE_GATES) - 1}")


def store_emitter(store_mode: int) -> str:
    """The mode modifier that this store mode's emitter writes.

    Raises:
        EmissionError: no such mode.
    """
    for number, _, mode in STORE_MODE_EMITTERS:
        if number == store_mode:
            return mode
    raise EmissionError(f"store mode {store_mode}; expected 0..{len(STORE_MODE_EMITTERS) - 1}")
