"""Compile the expressions in the tables of rules and of bit fields to Python functions of a request.

For example, `violations.CHECKS` states that `box_dim[i]` must satisfy the rule 'box', and `fields.FIELDS` states that
bits 24-31 contain `box_dim[i] - 1`. A `RequestForm` is a kind of map and the lengths of its tuple fields. It determines
the values of `i`, and `RequestForm.function` compiles an expression to a Python function of a request. The same
function accepts columns: an object whose fields are integers, or arrays with one integer per map. One row of a table
therefore applies to a single map and to many.

Names in an expression, besides the fields of the request:

    rank            number of modes
    bits            bits of one element
    strided         False if all element strides are 1, as in nearly every map; a function for columns does not test it
    row             elements of one row of the box
    row_bits        bits of such a row
    box_size        elements of the box, as the driver counts them: element strides divide each edge, rounded down
    box_bits        bits of these elements
    lower, upper    corners of an im2col map, W first; an im2col-wide map has one of each
    first           the innermost spatial mode of an im2col map: 0 with interleave, 1 without
    spatial         sizes of the spatial modes
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from cute_py.argument_checks import record
from cute_py.tma.descriptor.data_types import FORMATS
from cute_py.tma.descriptor.limits import CORNER_BOUNDS, SWIZZLE_SPAN
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Value = int | NDArray[numpy.int64]
else:
    from cute_py.optional_packages import numpy

TABLES: Final[dict[str, tuple[int, ...]]] = {
    "BITS": (*[row.bits for row in FORMATS], 0),
    "IS_INTEGER": (*[int(not row.is_float) for row in FORMATS], 0),
    "CODE": (*[row.code or 0 for row in FORMATS], 0),
    "TF32_ROUND": (*[row.tf32_round for row in FORMATS], 0),
    "SPAN": (*[SWIZZLE_SPAN[min(swizzle, 3)] or 0 for swizzle in range(7)], 0),
    "IS_SLICED": (0, 1, 1, 0),
    "SMEM_ALIGNMENT": (16, 256, 512, 1024),
}
"""Numbers by the value of an enum. A span of 0 does not limit a row. The last entry of the tables of formats is for an
unknown format (-1). Swizzles 4 and up permute larger chunks within the same 128 bytes."""


class Lookup:
    """A lookup table indexed by any integer or integer array.

    An integer outside the table selects its last entry. So does an array's entry beyond the end; an array's entry below
    0 selects the first one.
    """

    def __init__(self, entries: Sequence[int]) -> None:
        self.entries = entries

    def __getitem__(self, index: Value) -> Value:
        if isinstance(index, int):
            return self.entries[index if 0 <= index < len(self.entries) else -1]
        return numpy.array(self.entries, numpy.int64).take(index, mode="clip")


def edge_visits(edge: Value, step: Value) -> Value:
    """Count the elements of a box edge that an element stride visits, rounded down.

    A stride below 1, which is illegal, raises no error here.
    """
    if isinstance(step, int):
        return edge // step if step > 0 else 1
    return edge // numpy.maximum(step, 1)


def low_32(text: str) -> str:
    """Return an expression for the low 32 bits of an expression as a signed integer."""
    return f"({text} + 0x80000000 & 0xFFFFFFFF) - 0x80000000"


_FUNCTIONS: Final = {"edge_visits": edge_visits}
_STRICT: Final[dict[str, Any]] = _FUNCTIONS | TABLES
SCOPE: Final[dict[str, Any]] = _FUNCTIONS | {name: Lookup(entries) for name, entries in TABLES.items()}
_CORNER: Final = re.compile(r"\Apixel_box_(lower|upper)_corner(_width)?\Z")
_INDEX: Final = re.compile(r"\b(\w+)\[(?:(i)(?: \+ (\d))?|(\d))\]")


def instantiated(text: str, i: int = 0) -> str:
    """Replace the index `i` in an expression by a number; each entry of a tuple is a separate variable.

    >>> instantiated("global_dim[i + 1] - BITS[data_type]", 2)
    'global_dim_3 - BITS[data_type]'
    """
    text = _INDEX.sub(lambda m: f"{m[1]}_{int(m[4]) if m[4] else i + int(m[3] or 0)}", text)
    return re.sub(r"\bi\b", str(i), text)


@record
class RequestForm:
    """The form that an expression is compiled for: the kind of map and the length of each tuple field."""

    kind: type[TensorMap]
    lengths: tuple[int, ...]
    """Lengths in the order of `kind.TUPLES`."""

    @classmethod
    def of(cls, request: TensorMap) -> RequestForm:
        """Return the form of a request, legal or not."""
        return RequestForm(type(request), tuple([len(getattr(request, name)) for name in request.TUPLES]))

    @property
    def tiled(self) -> bool:
        """Whether the map is tiled, not im2col."""
        return self.kind is TensorMapTiled

    @property
    def length(self) -> Mapping[str, int]:
        """The length of each tuple by name, including the corners and the spatial modes."""
        return _lengths(self)

    @property
    def corner_bounds(self) -> tuple[int, int]:
        """The smallest and the largest legal corner."""
        return CORNER_BOUNDS.get(self.length["rank"], CORNER_BOUNDS[3])

    def variables(self, strict: bool = False) -> list[str]:
        """Return the statements that assign each name of an expression its value from the fields of `source`."""
        length, lines = self.length, []
        for name in self.kind.FIELDS:
            if name == "data_type":  # an argument of the function: it may be None
                continue
            variable = _CORNER.sub(r"\1", name)
            if name in self.kind.TUPLES:
                variable = "".join([f"{variable}_{i}, " for i in range(length[name])]) or "()"
            elif variable != name:
                variable += "_0"  # the one corner of a wide map
            lines.append(f"{variable} = source.{name}")
        lines += [f"length_{name} = {count}" for name, count in length.items()]
        steps = f"source.element_strides != {(1,) * length['element_strides']}" if strict else "1"
        lines += [f"rank = {length['rank']}", "bits = BITS[data_type]", f"strided = {steps}"]
        if self.tiled:
            lines += [f"row = {'box_dim_0' if length['box_dim'] else 0}"]
            edges = range(min(length["box_dim"], length["element_strides"]))
            edge = "(box_dim_{0} // element_strides_{0})" if strict else "edge_visits(box_dim_{0}, element_strides_{0})"
            size = " * ".join([edge.format(i) for i in edges]) or "1"
            if strict:
                whole = " * ".join([f"box_dim_{i}" for i in edges]) or "1"
                size = f"{size} if strided else {whole}"
        else:
            lines += ["row = channels_per_pixel", "first = 1 - IS_SLICED[interleave]"]
            choice = "global_dim_{1} if first else global_dim_{0}"
            if not strict:  # `first` may be an array
                choice = "global_dim_{0} * (1 - first) + global_dim_{1} * first"
            lines += [f"spatial_{i} = {choice.format(i, i + 1)}" for i in range(length["spatial"])]
            size = "channels_per_pixel * pixels_per_column"
        return [*lines, "row_bits = row * bits", f"box_size = {size}", "box_bits = bits * box_size"]

    def function(self, arguments: str, body: Sequence[str], *, strict: bool = False) -> Callable[..., Any]:
        """Compile a function of `source` and `arguments` that runs `body`.

        Args:
            strict: make a faster function that accepts only legal values; a value without an entry in a table raises
                IndexError.
        """
        used = set(re.findall(r"\w+", " ".join(body)))
        lines: list[str] = []
        for line in reversed(self.variables(strict)):  # values that the body does not use are not computed
            names, _, value = line.partition(" = ")
            if names == "()" or used & set(re.findall(r"\w+", names)):
                used |= set(re.findall(r"\w+", value))
                lines.insert(0, line)
        text = "\n    ".join([f"def made(source, {arguments}):", *lines, *body])
        scope = dict(_STRICT if strict else SCOPE)
        exec(text, scope)
        made: Callable[..., Any] = scope["made"]
        return made


@functools.lru_cache(maxsize=256)
def _lengths(form: RequestForm) -> Mapping[str, int]:
    known = dict(zip(form.kind.TUPLES, form.lengths, strict=True))
    known["rank"] = known["global_dim"]
    if not form.tiled:
        known["lower"] = known.get("pixel_box_lower_corner", 1)
        known["upper"] = known.get("pixel_box_upper_corner", 1)
        known["spatial"] = max(known["rank"] - 2, 0)
    return known


def legal_form(kind: type[TensorMap], rank: int) -> RequestForm:
    """Return the form of a map of `rank` modes with tuples of the correct lengths."""
    of_corners = max(rank - 2, 0)
    wanted = {"global_strides": rank - 1, "pixel_box_lower_corner": of_corners, "pixel_box_upper_corner": of_corners}
    return RequestForm(kind, tuple([wanted.get(name, rank) for name in kind.TUPLES]))


@functools.lru_cache(maxsize=256)
def _evaluator(form: RequestForm, text: str) -> Callable[[Any, int], int]:
    return form.function("data_type", [f"return {instantiated(text)}"])


def request_value(request: TensorMap, text: str) -> int:
    """Evaluate an expression for any request, legal or not.

    >>> request_value(TensorMapTiled(7, 0, (64, 64), (256,), (16, 9), (1, 2)), "(bits // 8) * box_size")
    256
    """
    return _evaluator(RequestForm.of(request), text)(request, -1 if request.data_type is None else request.data_type)
