"""Named axes, and the terms `n @ axis` that strides and offsets are written in.

The location of an element is not one address, but a point in a space with named axes: `TLane` and `TCol` in tensor
memory, `m` in linear memory, `laneid`, `warpid` and others across threads. `4 @ TCol` means four steps along `TCol`.
Terms can be added: `3 @ TLane + 4 @ TCol + 5`, where the bare number 5 is on the axis `m`.

Source: the axis names of TVM's TIRx tile layouts (apache-tvm 0.27.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, SupportsIndex

from cute_py.argument_checks import expect, expect_integer, expect_name, record
from cute_py.errors import InvalidTypeError, given

AxisKind = Literal["thread", "memory"]

THREAD_AXES: tuple[str, ...] = (
    "bx", "by", "bz", "cbx", "cby", "cbz", "tx", "warpid", "laneid", "wgid", "tid_in_wg", "wid_in_wg",
)  # fmt: skip
MEMORY_AXES: tuple[str, ...] = ("m", "P", "F", "Bank", "TCol", "TLane")


@dataclass(frozen=True, slots=True)
class Axis:
    """A named axis. `n @ axis` means n steps along it; a step is one element, or one lane on `TLane`.

    Any identifier is a valid name. The names that TIRx defines have a known kind; all others are memory axes.

    >>> 4 @ TCol
    4 @ TCol
    >>> TLane.kind, laneid.kind
    ('memory', 'thread')
    """

    name: str

    def __post_init__(self) -> None:
        expect_name(self.name, "the name of an axis")

    @property
    def kind(self) -> AxisKind:
        return "thread" if self.name in THREAD_AXES else "memory"

    __array_ufunc__ = None  # numpy arrays defer `@` to this class

    def __rmatmul__(self, steps: SupportsIndex) -> AxisTerm:
        return AxisTerm(expect_integer(steps, f"steps along {self.name}"), self.name)

    def __repr__(self) -> str:
        return self.name


def axis_name(axis: Axis | str) -> str:
    """Return the name of an axis, which is passed as an `Axis` or by name.

    >>> axis_name(TLane), axis_name("m")
    ('TLane', 'm')

    Raises:
        InvalidTypeError: the argument is neither.
    """
    name = axis.name if isinstance(axis, Axis) else axis
    if not isinstance(name, str):
        raise InvalidTypeError(f"an axis must be an Axis or a name, got {given(axis)}")
    return name


@record
class AxisTerm:
    """`value` steps along the axis named `axis`.

    >>> AxisTerm(32, "TLane")
    32 @ TLane
    """

    value: int
    axis: str

    def __add__(self, other: Offset) -> AxisSum:
        return AxisSum.of(self) + other

    def __radd__(self, other: Offset) -> AxisSum:
        return AxisSum.of(other) + self

    def __repr__(self) -> str:
        return str(self.value) if self.axis == "m" else f"{self.value} @ {self.axis}"


@record
class AxisSum:
    """A sum of terms with one term per axis, in the order of the first appearance of the axes.

    >>> 3 @ TLane + 4 @ TCol + 5 + 1 @ TCol
    3 @ TLane + 5 @ TCol + 5
    """

    terms: tuple[AxisTerm, ...]

    @classmethod
    def of(cls, value: Offset) -> AxisSum:
        """Convert a number (steps along `m`), a term or a mapping of axis names to a sum; return a sum unchanged."""
        if isinstance(value, AxisSum):
            return value
        if isinstance(value, AxisTerm):
            return cls((value,))
        if isinstance(value, Mapping):
            return cls(tuple([AxisTerm(steps, expect(name, str, "an axis")) for name, steps in value.items()]))
        return cls((AxisTerm(expect_integer(value, "an offset"), "m"),))

    def __add__(self, other: Offset) -> AxisSum:
        totals = {term.axis: term.value for term in self.terms}
        for term in AxisSum.of(other).terms:
            totals[term.axis] = totals.get(term.axis, 0) + term.value
        return AxisSum(tuple(AxisTerm(value, axis) for axis, value in totals.items()))

    __radd__ = __add__

    def as_dict(self) -> dict[str, int]:
        return {term.axis: term.value for term in self.terms}

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms)) or "0"


Offset = SupportsIndex | AxisTerm | AxisSum | Mapping[str, int]
"""Distance of a move: steps along `m`, or along named axes."""


def as_term(value: AxisTerm | SupportsIndex) -> AxisTerm:
    """Convert a stride to a term: a bare number is on the axis `m`.

    >>> as_term(16), as_term(1 @ TLane)
    (16, 1 @ TLane)
    """
    return value if isinstance(value, AxisTerm) else AxisTerm(expect_integer(value, "a stride"), "m")


bx, by, bz = Axis("bx"), Axis("by"), Axis("bz")
cbx, cby, cbz = Axis("cbx"), Axis("cby"), Axis("cbz")
tx, warpid, laneid = Axis("tx"), Axis("warpid"), Axis("laneid")
wgid, tid_in_wg, wid_in_wg = Axis("wgid"), Axis("tid_in_wg"), Axis("wid_in_wg")
m, P, F, Bank = Axis("m"), Axis("P"), Axis("F"), Axis("Bank")
TCol, TLane = Axis("TCol"), Axis("TLane")
