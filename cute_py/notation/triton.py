"""Convert Triton's linear layouts to and from CuTe layouts, which describe the same maps in another notation.

The inputs of a linear layout are indices such as register, lane and warp. To each bit of an input, it assigns a basis,
which is a coordinate of the tile. The coordinate for given inputs is the XOR of the bases of all bits that are set.
This is the 16x8 accumulator of a warp:

     - register=1 -> (0, 1)            thread bits (lane, then warp)   (0,2) (0,4) (1,0) (2,0) (4,0)
       register=2 -> (8, 0)            value bits                      (0,1) (8,0)
     - lane=1 -> (0, 2)
       lane=2 -> (0, 4)                in CuTe, m + 16*n:
       lane=4 -> (1, 0)                ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))
       lane=8 -> (2, 0)
       lane=16 -> (4, 0)
     - warp is a size 1 dimension
    where out dims are: [dim0 (size 16), dim1 (size 8)]

In a distributed layout, `register` is CuTe's value, `lane` and `warp` together are its thread, and `block` is a third
mode. A shared layout of Triton maps offsets to coordinates, and CuTe's layout maps coordinates to offsets, so one is
the inverse of the other. A swizzle is linear, so a swizzled CuTe layout has bases in Triton. A function that is not
linear (because of sizes that are not powers of two, padding, an addition that carries, or a start offset) has no bases,
and some bases can't be expressed by a layout with one swizzle. The error for these cases has the reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from cute_py.argument_checks import check_magnitude, expect, expect_fields, expect_integer, expect_integers
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, ParseError, counted, given, shortened
from cute_py.layout.arguments import Shape
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout
from cute_py.layout.linear import LinearLayout, coefficients, independent, kernel, linear
from cute_py.layout.recast import memory_layout
from cute_py.layout.trees import modes

Basis = tuple[int, ...]

_DISTRIBUTED: Final = ("register", "lane", "warp", "block")
_SHARED: Final = ("offset", "block")
_NOUNS: Final = {"block": "CTA"}
"""In dim -> the noun for one index, where it differs from the name of the dim."""
LANES: Final = 32
"""Threads of a warp."""
_MOST_FREE: Final = 16
"""Maximum number of bits of a place that do not change the element, in `holders`."""
_MOST_BITS: Final = 32
"""Maximum number of bits of an in dim, and of an index in the tile, because Triton's numbers have 32 bits."""
_BASIS: Final = re.compile(r"(?:- )?(\w+)=([0-9]{1,39}) -> \(([-0-9, ]*)\)")
_SINGLE: Final = re.compile(r"- (\w+) is a size 1 dimension")
_OUT: Final = re.compile(r"(?:where out dims are: |\(empty layout with out-dims )\[([^\]]*)\]\)?")
_OUT_DIM: Final = re.compile(r"(\w+) \(size ([0-9]{1,39})\)")
_ATTRIBUTE: Final = re.compile(r"(?:#ttg\.)?(?:generic_)?(?:linear|shared_linear)\s*<")
_GLUON: Final = re.compile(r"(?:\w{1,40}\.){0,3}(?:DistributedLinear|SharedLinear)Layout\(")
_LIST: Final = re.compile(r"(?<!\w)(\w{1,80}) ?= ?(\[[\[\]0-9, ]*\])")
_GLUON_NAMES: Final = {
    "reg_bases": "register",
    "lane_bases": "lane",
    "warp_bases": "warp",
    "block_bases": "block",
    "offset_bases": "offset",
}


def _bits(size: int) -> int:
    return size.bit_length() - 1


@dataclass(frozen=True, slots=True)
class TritonLayout:
    """A linear layout of Triton. `str(layout)` is the text that Triton prints; `parse_triton` reads it.

    Triton calls the inputs in dims, and the dimensions of the tile out dims. `bases` lists the name of each in dim and
    the basis of each of its bits, lowest bit first. `out_dims` lists the name and the size, a power of two, of each out
    dim.

    >>> layout = TritonLayout((("register", ((0, 1),)), ("lane", ((0, 2), (1, 0)))), (("dim0", 2), ("dim1", 4)))
    >>> print(str(layout).strip())
    - register=1 -> (0, 1)
     - lane=1 -> (0, 2)
       lane=2 -> (1, 0)
    where out dims are: [dim0 (size 2), dim1 (size 4)]
    >>> layout(register=1, lane=3)
    (1, 3)
    """

    bases: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]
    out_dims: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        expect_fields(self)
        rank = len(self.out_dims)
        for name, size in self.out_dims:
            expect_integer(size, f"the size of {name}", 1, 1 << _MOST_BITS)
            if size & (size - 1):
                raise InvalidValueError(f"the size of {name} is {size}; must be a power of 2")
        if prod(self.shape) > 1 << _MOST_BITS:
            raise InvalidValueError(f"the tile has {prod(self.shape)} elements; must have at most 2**{_MOST_BITS}")
        for names, what in ((self.sizes, "in"), (dict(self.out_dims), "out")):
            if len(names) != len(self.bases if what == "in" else self.out_dims):
                raise InvalidValueError(f"each {what} dim must be listed once", {f"{what} dims": ", ".join(names)})
        for name, own in self.bases:
            if len(own) > _MOST_BITS:
                raise InvalidValueError(f"{name} has {len(own)} bits; must have at most {_MOST_BITS}")
            for i, basis in enumerate(own):
                what = f"the basis of {name}={1 << i}"
                if len(basis) != rank:
                    raise InvalidValueError(f"{what} is {given(basis)}; must have {rank} entries, one for each out dim")
                for entry, (dim, size) in zip(basis, self.out_dims, strict=True):
                    expect_integer(entry, f"{what}, along {dim}", 0, size - 1)

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each in dim, which is a power of two."""
        return {name: 1 << len(own) for name, own in self.bases}

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the out dims."""
        return tuple([size for _, size in self.out_dims])

    def __call__(self, **place: int) -> Basis:
        """Return the coordinate for an index along each in dim; the index of an omitted in dim is 0.

        Raises:
            InvalidValueError: an in dim does not exist, or an index exceeds its size.
        """
        if unknown := [name for name in place if name not in self.sizes]:
            raise InvalidValueError(
                f"{given(unknown[0])} is not an in dim of this layout", {"in dims": ", ".join(self.sizes)}
            )
        found = [0] * len(self.out_dims)
        for name, own in self.bases:
            index = expect_integer(place.get(name, 0), name, 0, (1 << len(own)) - 1)
            for i, basis in enumerate(own):
                if index >> i & 1:
                    found = [a ^ b for a, b in zip(found, basis, strict=True)]
        return tuple(found)

    def holders(self, *coordinate: int) -> tuple[dict[str, int], ...]:
        """List the places that have an element, each as the index along each in dim; empty if no place has it.

        Args:
            coordinate: the element's index along each out dim.
        Raises:
            InvalidValueError: the tile has no such element, or more than 65,536 places have it.

        >>> layout = TritonLayout((("lane", ((0, 1), (1, 0))), ("warp", ((0, 0),))), (("dim0", 2), ("dim1", 2)))
        >>> layout.holders(1, 0)
        ({'lane': 2, 'warp': 0}, {'lane': 2, 'warp': 1})
        """
        if len(coordinate) != len(self.out_dims):
            numbers = counted(len(coordinate), "number")
            raise InvalidValueError(
                f"the coordinate has {numbers}; must have {len(self.out_dims)}, one for each out dim"
            )
        left, shift = 0, 0
        for index, (name, extent) in zip(coordinate, self.out_dims, strict=True):
            left |= expect_integer(index, name, 0, extent - 1) << shift
            shift += _bits(extent)
        columns = self._columns(*self.sizes)
        chosen = coefficients(left, columns)
        if chosen is None:
            return ()
        free = kernel([1 << k for k in range(len(columns))], columns)
        if len(free) > _MOST_FREE:
            raise InvalidValueError(f"2**{len(free)} places have the element; must be at most 2**{_MOST_FREE}")
        places = [chosen]
        for one in free:
            places += [place ^ one for place in places]
        return tuple([self._place(place) for place in sorted(places)])

    def _place(self, bits: int) -> dict[str, int]:
        """Split the bits of a place into the index along each in dim."""
        found = {}
        for name, own in self.bases:
            found[name] = bits & (1 << len(own)) - 1
            bits >>= len(own)
        return found

    def _columns(self, *names: str) -> tuple[int, ...]:
        """Return the bases of several in dims in order, each as an index in the tile, first mode fastest."""
        shifts = [_bits(prod(self.shape[:i])) for i in range(len(self.out_dims))]
        all_of = dict(self.bases)
        chosen = [basis for name in names for basis in all_of.get(name, ())]
        return tuple([sum(c << s for c, s in zip(basis, shifts, strict=True)) for basis in chosen])

    def to_layout(self) -> Layout | ComposedLayout:
        """Return CuTe's layout: (thread, value[, block]) -> index in the tile; in shared memory, coordinate -> offset.

        Raises:
            LayoutError: CuTe has no layout with these in dims, or no layout with one swizzle has these bases. For
                shared memory: two offsets have the same element (padding), or there are several blocks, and each one
                has its own shared memory.
        """
        names = set(self.sizes)
        if names <= set(_SHARED) and "offset" in names:
            return self._shared()
        if not names <= set(_DISTRIBUTED):
            shown = ", ".join(self.sizes)
            facts = {"in dims": shown, "of threads": ", ".join(_DISTRIBUTED), "of shared memory": "offset, block"}
            raise LayoutError("CuTe can express only a layout of threads and values, or of shared memory", facts)
        size = self.sizes
        shape = [size.get("lane", 1) * size.get("warp", 1), size.get("register", 1)]
        shape += [size["block"]] if size.get("block", 1) > 1 else []
        columns = self._columns("lane", "warp", "register", "block")
        return LinearLayout(tuple(shape), columns).to_layout()

    def _shared(self) -> Layout | ComposedLayout:
        if self.sizes.get("block", 1) > 1:
            facts = {"blocks": self.sizes["block"]}
            raise LayoutError(
                "CuTe can express the shared memory of one block, but this layout has several blocks", facts
            )
        inverse = LinearLayout(self.sizes["offset"], self._columns("offset")).inverse()
        if len(inverse.columns) != _bits(prod(self.shape)):
            text = "the offsets do not reach every element exactly once"
            raise LayoutError(text, {"offsets": self.sizes["offset"], "tile": self.shape})
        return LinearLayout(self.shape, inverse.columns).to_layout()

    def attribute(self, alignment: int = 16) -> str:
        """Return the layout as an attribute of Triton's IR: `#ttg.linear<...>` or `#ttg.shared_linear<...>`.

        Args:
            alignment: the alignment of shared memory, in bytes.
        """
        names = _SHARED if "offset" in self.sizes else _DISTRIBUTED
        if not set(self.sizes) <= set(names):
            raise LayoutError(
                f"this attribute supports only the in dims {', '.join(names)}", {"in dims": ", ".join(self.sizes)}
            )
        all_of = dict(self.bases)
        shown = [f"{name} = {[list(b) for b in all_of.get(name, ())]}" for name in names]
        if names is _DISTRIBUTED:
            return f"#ttg.linear<{{{', '.join(shown)}}}>"
        kept = shown if all_of.get("block") else shown[:1]
        bytes_ = expect_integer(alignment, "the alignment", 1, 1 << 20, "bytes")
        return f"#ttg.shared_linear<{{{', '.join(kept)}}}, alignment = {bytes_}>"

    def __str__(self) -> str:
        out = "[" + ", ".join(f"{name} (size {size})" for name, size in self.out_dims) + "]"
        if not self.bases:
            return f"\n(empty layout with out-dims {out})" if self.out_dims else "\n(empty layout)"
        lines = []
        for name, own in self.bases:
            rows = [f"{name}={1 << i} -> ({', '.join(map(str, basis))})" for i, basis in enumerate(own)]
            lines.append(" - " + ("\n   ".join(rows) if rows else f"{name} is a size 1 dimension"))
        return "\n" + "\n".join(lines) + f"\nwhere out dims are: {out}"

    @property
    def reached(self) -> int:
        """The number of distinct elements of the tile that the layout reaches, a power of two."""
        return 1 << len(independent(self._columns(*self.sizes)))

    def facts(self) -> list[str]:
        """Describe the bits in lines of text: copies of elements and who holds them, contiguous elements, a swizzle."""
        held, tile = prod(self.sizes.values()), prod(self.shape)
        named = [counted(n, _NOUNS.get(name, name)) for name, n in self.sizes.items()]
        lines = [f"{' x '.join(named)} = {held} places"] if named else []
        lines.append(f"a tensor of {' x '.join(map(str, self.shape))} = {counted(tile, 'element')}")
        for name, own in self.bases:
            if zeros := [i for i, basis in enumerate(own) if not any(basis)]:
                bits = " and ".join([f"{name} bit {i} (value {1 << i})" for i in zeros])
                verb = "moves" if len(zeros) == 1 else "move"
                lines.append(
                    f"{bits} {verb} no dimension, so {_NOUNS.get(name, name)}s that differ only there hold copies"
                )
        if self.reached < held:
            lines.append(f"each element is held {held // self.reached} times")
        elif self.reached == tile:
            lines.append("each element is held exactly once")
        all_of = dict(self.bases)
        if own := all_of.get("register", ()):
            along = [i for i, basis in enumerate(own) if basis != (*[0] * (len(basis) - 1), 1 << i)]
            count = 1 << (along[0] if along else len(own))
            near = counted(count, "neighbouring element")
            lines.append(f"{near} of the last dimension in the registers of one thread")
        if own := all_of.get("offset", ()):
            mixed = [basis for basis in own if sum(x > 0 for x in basis) > 1]
            unit = min([basis[-1] for basis in mixed if basis[-1]], default=1)
            rows = f"rows are permuted in units of {unit} elements over {1 << len(mixed)} rows"
            plain = f"({len(own) - len(mixed)} bits are plain)"
            lines.append(f"{rows} {plain}" if mixed else "no swizzle: every offset bit moves along one dimension")
        return lines

    def explain(self) -> str:
        """Describe the inputs, the outputs and the equal CuTe layout, or the reason why there is none."""
        into = ", ".join(f"{name} {size}" for name, size in self.sizes.items()) or "nothing"
        try:
            layout = str(self.to_layout())
        except LayoutError as error:
            layout = f"none: {error.headline}"
        kind = "coordinate -> offset" if "offset" in self.sizes else "(thread, value) -> index in the tile"
        lines = [f"Triton linear layout: {into} -> {' x '.join(map(str, self.shape))}"]
        lines += [*[f"  {line}" for line in self.facts()], "", f"In CuTe ({kind})", f"  {layout}"]
        return "\n".join([*lines, "", "Bases", *str(self).strip("\n").splitlines()])


def of_columns(names: Mapping[str, int], columns: tuple[int, ...], tile: tuple[int, ...]) -> TritonLayout:
    """Make a linear layout from the sizes of the in dims and the bases of all bits, as indices in the tile."""
    shifts = [prod(tile[:i]) for i in range(len(tile))]
    own = iter([tuple([c // s % n for s, n in zip(shifts, tile, strict=True)]) for c in columns])
    bases = tuple([(name, tuple([next(own) for _ in range(_bits(size))])) for name, size in names.items()])
    return TritonLayout(bases, tuple([(f"dim{i}", n) for i, n in enumerate(tile)]))


def to_triton(layout: Layout | ComposedLayout, tile: Shape | None = None, *, lanes: int = LANES) -> TritonLayout:
    """Convert a layout of threads and values, or of shared memory, to Triton's linear layout.

    Args:
        layout: with a tile, the layout (thread, value[, block]) -> index in the tile, first mode fastest, as
            `get_layoutC_TV()` returns it; without a tile, the layout coordinate -> offset in shared memory, in
            elements.
        tile: the shape of the tile, powers of two.
        lanes: the number of threads per warp.
    Raises:
        LayoutError: the function is not linear over bits (the message has the reason), an index is outside the tile, or
            the offsets in shared memory have gaps.
        InvalidTypeError, InvalidValueError: an argument has the wrong type or value.

    >>> from cute_py.layout import Int, Swizzle, static
    >>> print(to_triton(static(Layout(((4, 8), (2, 2)), ((32, 1), (16, 8)))), (16, 8)).attribute())
    #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>
    >>> swizzled = ComposedLayout(Swizzle(1, 0, 2), Int(0), static(Layout((2, 4), (4, 1))))
    >>> print(to_triton(swizzled).attribute())
    #ttg.shared_linear<{offset = [[0, 1], [0, 2], [1, 1]]}, alignment = 16>
    """
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidTypeError(f"to_triton needs a layout, got {type(layout).__name__} {given(layout)}")
    view = linear(memory_layout(layout) if tile is None else layout)
    if view.origin:
        text = f"a linear layout must map 0 to 0, but this layout begins at {view.origin}"
        raise LayoutError(text, {"layout": layout}, "subtract the start from the layout, and add it to the pointer")
    sizes = expect_integers(modes(product_each(view.shape)), "the layout's sizes", 1)
    if tile is None:
        inverse = LinearLayout(prod(sizes), view.columns).inverse()
        return of_columns({"offset": prod(sizes), "block": 1}, inverse.columns, sizes)
    extents = expect_integers(modes(product_each(tile)), "the tile's extents", 1)
    if any(n & (n - 1) for n in extents):
        raise LayoutError("the extents of a Triton tile must be powers of two", {"tile": extents})
    if not 2 <= len(sizes) <= 3:
        text = (
            "a layout of threads must have modes (thread, value) or (thread, value, block), but this layout has "
            f"{len(sizes)}"
        )
        raise LayoutError(text, {"layout": layout})
    if any(c >= prod(extents) for c in view.columns):
        raise LayoutError("an index is beyond the tile", {"layout": layout, "tile": extents})
    expect_integer(lanes, "lanes", 1, 1 << 10)
    if lanes & (lanes - 1):
        raise InvalidValueError.of_value("lanes", lanes, "be a power of two")
    own = min(lanes, sizes[0])
    cut = _bits(sizes[0])
    columns = (*view.columns[cut : cut + _bits(sizes[1])], *view.columns[:cut], *view.columns[cut + _bits(sizes[1]) :])
    blocks = sizes[2] if len(sizes) == 3 else 1
    return of_columns({"register": sizes[1], "lane": own, "warp": sizes[0] // own, "block": blocks}, columns, extents)


def _failure(text: str, expected: str, position: int = 0) -> ParseError:
    return ParseError(f"at position {position}: {expected}", {"text": shortened(text, 80)}, position=position)


def is_linear(text: str) -> bool:
    """Whether a string is the attribute of a linear layout."""
    return _ATTRIBUTE.match(text.strip()) is not None


def parse_triton(text: str) -> TritonLayout:
    """Parse a linear layout: the bases that Triton prints, an attribute `#ttg.linear<...>`, or a class of Gluon.

    The attributes and `SharedLinearLayout` do not contain the sizes of the tile; the result has the smallest sizes that
    all bases fit in.

    Raises:
        ParseError: the text has another form, or the bases are not numbered 1, 2, 4, ...
        InvalidValueError: a basis exceeds the size of an out dim.

    >>> parse_triton("#ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = [], block = []}>")(register=1, lane=1)
    (1, 1)
    """
    stripped = expect(text, str, "the text of a linear layout").strip()
    if is_linear(text) or _GLUON.match(stripped):
        return _of_lists(stripped)
    out: tuple[tuple[str, int], ...] | None = None
    bases: dict[str, list[Basis]] = {}
    at = 0
    for line in text.split("\n"):
        words = line.strip()
        if words == "(empty layout)":
            out = ()
        elif found := _SINGLE.fullmatch(words):
            bases.setdefault(found[1], [])
        elif found := _BASIS.fullmatch(words):
            own = bases.setdefault(found[1], [])
            if int(found[2]) != 1 << len(own):
                raise _failure(text, f"expected {found[1]}={1 << len(own)}", at)
            own.append(_numbers(text, found[3], at))
        elif found := _OUT.fullmatch(words):
            rows = [_OUT_DIM.fullmatch(part.strip()) for part in found[1].split(",")] if found[1] else []
            out = tuple([(row[1], check_magnitude(int(row[2]), "a size")) for row in rows if row])
            if len(out) != len(rows):
                raise _failure(text, "expected out dims such as dim0 (size 16)", at)
        elif words:
            raise _failure(text, "expected a basis such as lane=1 -> (0, 2)", at)
        at += len(line) + 1
    if out is None:
        raise _failure(text, "expected a line `where out dims are: [...]`", len(text))
    return TritonLayout(tuple([(name, tuple(own)) for name, own in bases.items()]), out)


def _numbers(text: str, inside: str, at: int) -> Basis:
    parts = [part.strip() for part in inside.split(",")] if inside.strip() else []
    if not all(re.fullmatch(r"-?[0-9]{1,39}", part) for part in parts):
        raise _failure(text, "expected integers of a basis", at)
    return tuple([check_magnitude(int(part), "an entry of a basis") for part in parts])


def _lists(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for match in _LIST.finditer(text):
        try:
            value = ast.literal_eval(match[2])
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise _failure(text, f"expected a list of bases of {match[1]}", match.start(2)) from None
        found[_GLUON_NAMES.get(match[1], match[1])] = value
    return found


def _of_lists(text: str) -> TritonLayout:
    """Read the layout from an attribute, or from the repr of a class of Gluon."""
    found = _lists(text)
    shape = found.pop("shape", None)
    names = _SHARED if "offset" in found else _DISTRIBUTED
    if not set(found) <= set(names) or not set(found) & {"register", "lane", "warp", "offset"}:
        raise _failure(text, f"expected bases of {', '.join(names)}")
    bases = {name: found.get(name, []) for name in names}
    rows = [basis for own in bases.values() for basis in own]
    if not all(isinstance(basis, list) and all(type(x) is int for x in basis) for basis in rows):
        raise _failure(text, "expected lists of integers as bases")
    ranks = {len(basis) for basis in rows} | ({len(shape)} if shape is not None else set())
    if len(ranks) != 1:
        raise _failure(text, "expected bases of one rank" if ranks else "no basis defines the rank of the tile")
    if shape is None:
        shape = [1 << max([basis[i] for basis in rows]).bit_length() for i in range(ranks.pop())]
    sizes = expect_integers(shape, "the shape", 1)
    made = tuple([(name, tuple([tuple(basis) for basis in own])) for name, own in bases.items()])
    return TritonLayout(made, tuple([(f"dim{i}", size) for i, size in enumerate(sizes)]))


def from_triton(layout: str | TritonLayout) -> Layout | ComposedLayout:
    """Convert a linear layout of Triton, or its text, to a CuTe layout, as `parse_triton(text).to_layout()` does.

    >>> print(from_triton("#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []}>"))
    ((_2,_2),_2):((_4,_1),_2)
    """
    return (layout if isinstance(layout, TritonLayout) else parse_triton(layout)).to_layout()
