"""Layout: a function from coordinates to offsets, written shape:stride.

    (4,8):(1,4)      column j, row i  ->  1*i + 4*j

A shape is an integer or a tuple of shapes; the stride has the same profile. A coordinate is any tuple that the shape
can be split into: the natural one `(i, j)`, one integer (split colexicographically, the first mode runs fastest), or
anything between. The offset is the inner product of the natural coordinate with the strides; strides may be any
integer module (see `leaf.IntegerModule`), so that offsets can be coordinates.

Guarantee: `layout(i) == layout(idx2crd(i, layout.shape))` for every integer i, also beyond the size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError
from cute_py.layout.arithmetic import compact_left, compact_order, compact_right, crd2idx_of
from cute_py.layout.leaf import Dynamic, Int, Tree, internal, internal_leaf, public, tree_text
from cute_py.layout.trees import congruent_trees, has_underscore, leaves, slice_tree


class _Major:
    """A tag: the order in which a compact layout fills its modes."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


LayoutLeft = _Major("LayoutLeft")
"""Column-major: the first mode is contiguous."""
LayoutRight = _Major("LayoutRight")
"""Row-major: the last mode is contiguous."""

_new = object.__new__


class Layout:
    """A layout, immutable and hashable; `layout(coord)` evaluates, `layout[i]` is mode i.

    Args:
        shape: sizes, `Int` or int (or sympy), nested tuples; zero is allowed, negative is not.
        stride: same profile as shape, in elements; default compact column-major, where static size-1 modes get
            stride 0. `LayoutLeft` and `LayoutRight` name the compact ones.
    Raises:
        InvalidTypeError: a leaf is no integer (booleans and floats are none).
        LayoutError: shape and stride are not congruent.

    >>> print(Layout((Int(4), Int(8))))
    (_4,_8):(_1,_4)
    >>> a = Layout((4, (2, 3)), (6, (3, 1)))
    >>> a(1, (1, 2)), a(5), a(None, (1, 0))
    (11, 9, Layout((4,), (6,)))
    """

    __slots__ = ("_assumptions", "_public", "_raw", "_shape", "_stride")

    _shape: Tree
    _stride: Tree
    _public: tuple[Tree, Tree] | None
    _raw: Any  # (shape, stride) as bare ints, () where there are none, None before the first call
    _assumptions: tuple[Any, ...]

    def __init__(self, shape: Tree, stride: Tree = None) -> None:
        self._shape = _checked_shape(internal(shape))
        if stride is None or stride is LayoutLeft:
            self._stride = compact_left(self._shape)[0]
        elif stride is LayoutRight:
            self._stride = compact_right(self._shape)[0]
        else:
            self._stride = internal(stride)
            if not congruent_trees(self._shape, self._stride):
                raise LayoutError(
                    "shape and stride must be congruent",
                    {"shape": tree_text(self._shape), "stride": tree_text(self._stride)},
                )
        self._public = None
        self._raw = None
        self._assumptions = ()

    @property
    def shape(self) -> Tree:
        if self._public is None:
            self._public = (public(self._shape), public(self._stride))
        return self._public[0]

    @property
    def stride(self) -> Tree:
        if self._public is None:
            self._public = (public(self._shape), public(self._stride))
        return self._public[1]

    @property
    def assumptions(self) -> tuple[Any, ...]:
        """Conditions on symbols that this result rests on, as sympy relations; empty for known numbers."""
        return self._assumptions

    def __call__(self, *coord: Any) -> Any:
        """The offset at a coordinate, or the sublayout that a coordinate with `_` (or None) keeps."""
        c = coord[0] if len(coord) == 1 else coord
        raw = self._raw
        if raw is None:
            raw = self._raw = _raw_numbers(self._shape, self._stride)
        if raw:
            kind = type(c)
            if kind is int:
                total = _offset_of_int(c, raw[0], raw[1])
                if total:
                    return total
            elif kind is tuple:
                shape, stride = raw
                if type(shape) is tuple and len(c) == len(shape):
                    total = 0
                    for x, s, d in zip(c, shape, stride, strict=True):
                        if type(x) is not int:
                            if type(x) is tuple and type(s) is tuple:
                                part = _offset_of_tuple(x, s, d)
                                if part is not None:
                                    total += part
                                    continue
                            total = 0
                            break
                        total += x * d if type(d) is int else _offset_of_int(x, s, d)
                    if total:
                        return total
        return self._general_call(c)

    def _general_call(self, coord: Any) -> Any:
        """Any coordinate, any strides, and the static results that the fast way does not tell apart."""
        if has_underscore(coord):
            return make(slice_tree(coord, self._shape), slice_tree(coord, self._stride), self._assumptions)
        return public(crd2idx_of(internal(coord), self._shape, self._stride))

    def __getitem__(self, mode: int) -> Layout:
        """Mode `mode` as a layout; a layout of an integer shape is its own only mode."""
        if not isinstance(mode, int):
            raise InvalidTypeError(f"layout[i] takes one mode number, got {mode!r}; evaluate with layout(coord)")
        if type(self._shape) is not tuple:
            if mode not in (0, -1):
                raise InvalidValueError(f"layout[{mode}]: {self} has 1 mode")
            return self
        if not -len(self._shape) <= mode < len(self._shape):
            raise InvalidValueError(f"layout[{mode}]: {self} has {len(self._shape)} modes")
        return make(self._shape[mode], self._stride[mode], self._assumptions)

    __iter__ = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return bool(self.shape == other.shape and self.stride == other.stride)

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __str__(self) -> str:
        return f"{tree_text(self._shape)}:{tree_text(self._stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"

    def __reduce__(self) -> Any:
        return (Layout, (self.shape, self.stride))

    def subs(self, values: dict[Any, Any]) -> Layout:
        """The layout with sympy symbols replaced by values (plain ints stay run-time ints, `Int` makes them static)."""
        exact = {k: (int(v) if isinstance(v, int) else v) for k, v in values.items()}

        def replaced(leaf: Any) -> Any:
            if type(leaf) is Dynamic and not isinstance(leaf.value, int):
                if type(values.get(leaf.value)) is Int:
                    return int(values[leaf.value])
                return internal_leaf(leaf.value.subs(exact).doit())
            return leaf

        left = tuple(a for a in (x.subs(exact) for x in self._assumptions) if a not in (True,) and str(a) != "True")
        broken = [a for a in left if str(a) == "False"]
        if broken:
            raise LayoutError(
                "the values break an assumption of this layout",
                {"assumptions": ", ".join(map(str, self._assumptions)), "values": values},
            )
        return make(_mapped(replaced, self._shape), _mapped(replaced, self._stride), left)


def _mapped(f: Any, tree: Tree) -> Tree:
    return tuple([_mapped(f, x) for x in tree]) if type(tree) is tuple else f(tree)


def _checked_shape(shape: Tree) -> Tree:
    for s in leaves(shape):
        value = s.value if type(s) is Dynamic else s
        if type(value) is int:
            if value < 0:
                raise InvalidValueError(f"a size is {value}; must not be negative", {"shape": tree_text(shape)})
        elif type(s) is not Dynamic:
            raise InvalidTypeError(f"a shape holds integers, got {s!r}", {"shape": tree_text(shape)})
    return shape


def _raw_numbers(shape: Tree, stride: Tree) -> Any:
    """Shape and stride as bare ints for quick evaluation; `()` if a leaf is symbolic or no integer."""
    try:
        return _bare(shape), _bare(stride)
    except TypeError:
        return ()


def _bare(tree: Tree) -> Tree:
    if type(tree) is tuple:
        return tuple([x if type(x) is int else _bare(x) for x in tree])
    value = tree.value if type(tree) is Dynamic else tree
    if type(value) is not int:
        raise TypeError
    return value


def _offset_of_int(c: int, shape: Tree, stride: Tree) -> int:
    """Bare integers: split `c` over the modes, the last takes the rest; division rounds toward zero."""
    if type(shape) is not tuple:
        return int(c * stride)
    total = 0
    last = len(shape) - 1
    for i, s in enumerate(shape):
        d = stride[i]
        if i == last:
            return total + (c * d if type(d) is int else _offset_of_int(c, s, d))
        size = s if type(s) is int else _size(s)
        if size == 0:
            raise LayoutError("a coordinate can't be split over a mode of size 0", {"shape": shape})
        rest = c // size if c >= 0 else -(-c // size)
        part = c - rest * size
        total += part * d if type(d) is int else _offset_of_int(part, s, d)
        c = rest
    return total


def _offset_of_tuple(c: tuple[Any, ...], shape: tuple[Any, ...], stride: tuple[Any, ...]) -> int | None:
    """Bare integers; None where the coordinate needs the general way."""
    if len(c) != len(shape):
        return None
    total = 0
    for x, s, d in zip(c, shape, stride, strict=True):
        if type(x) is int:
            total += x * d if type(d) is int else _offset_of_int(x, s, d)
        elif type(x) is tuple and type(s) is tuple:
            part = _offset_of_tuple(x, s, d)
            if part is None:
                return None
            total += part
        else:
            return None
    return total


def _size(shape: Tree) -> int:
    n = 1
    for s in shape:
        n *= s if type(s) is int else _size(s)
    return n


def make(shape: Tree, stride: Tree, assumptions: tuple[Any, ...] = ()) -> Layout:
    """A layout of internal trees, unchecked: for the algebra, whose results are congruent by construction."""
    layout = _new(Layout)
    layout._shape = shape
    layout._stride = stride
    layout._public = None
    layout._raw = None
    layout._assumptions = assumptions
    return layout


def make_layout(*parts: Any) -> Any:
    """As C++: of a shape, of a shape and a stride (or `LayoutLeft` / `LayoutRight`), or of layouts to join as modes.

    >>> print(make_layout((4, 8), LayoutRight), make_layout(Layout(Int(4)), Layout(Int(2), Int(8))))
    (4,8):(8,_1) (_4,_2):(_1,_8)
    """
    if not parts:
        raise InvalidTypeError("make_layout takes a shape, a shape and a stride, or layouts")
    if all(isinstance(p, Layout) for p in parts):
        return joined(parts)
    if len(parts) > 2 or isinstance(parts[0], Layout):
        raise InvalidTypeError("make_layout takes a shape, a shape and a stride, or layouts", {"got": parts})
    return Layout(*parts)


def joined(parts: Iterable[Layout]) -> Layout:
    """One layout whose modes are the given layouts."""
    parts = tuple(parts)
    notes = tuple(a for p in parts for a in p._assumptions)
    return make(tuple([p._shape for p in parts]), tuple([p._stride for p in parts]), notes)


def make_ordered_layout(shape: Tree, order: Tree) -> Layout:
    """A compact layout whose strides grow in the order of `order` (static numbers; run-time ones come last).

    >>> print(make_ordered_layout((Int(2), Int(3), Int(4), Int(5)), (Int(1), Int(0), Int(3), Int(2))))
    (_2,_3,_4,_5):(_3,_1,_30,_6)
    """
    if order is LayoutLeft or order is LayoutRight:
        return Layout(shape, order)
    inner = _checked_shape(internal(shape))
    return make(inner, compact_order(inner, internal(order)))


def static(tree: Any) -> Any:
    """Every plain int of a tuple or layout made static: `static((4, 8))` is `(Int(4), Int(8))`.

    >>> print(static(Layout((4, 8), (8, 1))))
    (_4,_8):(_8,_1)
    """
    if isinstance(tree, Layout):
        return Layout(static(tree.shape), static(tree.stride))
    if type(tree) is tuple:
        return tuple([static(x) for x in tree])
    return Int(tree) if type(tree) is int else tree
