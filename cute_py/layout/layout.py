"""Layout: a function from coordinates to offsets, written shape:stride.

    (4,8):(1,4)      column j, row i  ->  1*i + 4*j

A shape is an integer or a tuple of shapes; the stride has the same profile. A coordinate is the natural coordinate
`(i, j)`, one integer, which is split colexicographically (the first mode runs fastest), or a tuple with an integer in
place of a nested mode. The offset is the inner product of the natural coordinate with the strides. Strides may be
elements of any integer module (see `leaf.IntegerModule`), so that offsets can be coordinates.

Guarantee: `layout(i) == layout(idx2crd(i, layout.shape))` for every integer i, even beyond the size.

A composed layout `outer o offset o inner` and a tensor `engine o layout` have the coordinates of the layout inside
them. Coalescing, grouping, dividing and tiling change only that layout. `apply_to_inner` applies such an operation, and
calls the method `with_domain` of the object, which rebuilds the object around the changed layout:

    coalesce(outer o offset o inner)  =  outer o offset o coalesce(inner)

The codomain is the set of possible offsets. With integer strides, offsets are integers, of profile `_0`. With basis
strides, they are coordinates: the strides (_1@0,(_1@0@1,_1@1@1)) give offsets of profile (_0,(_0,_0)). A stride `v@i`
moves along axis i by v, so inverses and complements separate into one integer problem per axis, where the strides of
the other axes are 0. CuTe C++ does not compile these operations; the rule follows arXiv 2603.02298 (per-codomain-axis
inverse and complement). A basis element is any stride with `modes` (its path) and `value`; its method `at(path, value)`
makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from numbers import Integral
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from cute_py.argument_checks import Immutable, expect, expect_integer, is_integer, wrong_type
from cute_py.errors import InvalidTypeError, InvalidValueError, LayoutError, given, integer_text
from cute_py.layout.arguments import (
    Coordinate,
    IntCoordinate,
    IntTuple,
    LayoutLike,
    Leaf,
    Shape,
    Shaped,
    Tiler,
    Tree,
    Value,
)
from cute_py.layout.int_tuple import compact_left, compact_order, crd2idx_of, product_of
from cute_py.layout.leaf import (
    KNOWN,
    KNOWN_KINDS,
    MAX_DEPTH,
    STATIC,
    STATIC_ZERO,
    Int,
    are_numbers,
    as_leaf,
    as_leaves,
    coordinate,
    is_one,
    is_symbolic,
    is_zero,
    substituted,
    times,
    tree_text,
    value_of,
)
from cute_py.layout.trees import (
    as_tree,
    at,
    check_depth,
    congruent_trees,
    fits,
    has_underscore,
    leaves,
    map_leaves,
    modes,
    slice_tree,
    unflatten_leaves,
)

if TYPE_CHECKING:
    import sympy


class Major:
    """The class of the tags `LayoutLeft` and `LayoutRight`, which select the order of the modes of a compact layout."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


LayoutLeft = Major("LayoutLeft")
"""Column-major: the first mode is contiguous."""
LayoutRight = Major("LayoutRight")
"""Row-major: the last mode is contiguous."""

Assumptions: TypeAlias = "tuple[sympy.Basic, ...]"
Stride: TypeAlias = "Tree | Major | None"


class _Parts:
    """Mutable builder of a Layout: `make` sets the slots, and then makes the object a Layout."""

    __slots__ = ("assumptions", "shape", "stride")

    shape: IntTuple
    stride: Tree
    assumptions: Assumptions
    """Conditions on symbols that this result assumes, as sympy relations; empty for known numbers."""


class Layout(_Parts, Immutable):
    """A layout, immutable and hashable. `layout(coord)` returns an offset, and `layout[i]` mode i.

    Args:
        shape: sizes (`Int`, int or sympy expressions, at least 0) in nested tuples.
        stride: strides in elements, with the profile of the shape. The default is compact column-major, where modes of
            static size 1 have stride 0. `LayoutLeft` selects this default, and `LayoutRight` compact row-major.
    Raises:
        InvalidTypeError: a leaf is not an integer (a boolean, a float).
        LayoutError: shape and stride are not congruent.

    >>> print(Layout((Int(4), Int(8))))
    (_4,_8):(_1,_4)
    >>> a = Layout((4, (2, 3)), (6, (3, 1)))
    >>> a(1, (1, 2)), a(5), a(None, (1, 0))
    (11, 9, Layout((4,), (6,)))
    """

    __slots__ = ()
    _state = attrgetter("shape", "stride")

    def __new__(cls, shape: Shape, stride: Stride = None) -> Layout:
        if stride is not None and fits(shape, stride):  # no leaf must be converted or refused
            return make(shape, stride)  # type: ignore[arg-type]
        if stride is None or isinstance(stride, Major):
            sizes = _checked_shape(shape)
            return make(sizes, compact_left(sizes, order=-1 if stride is LayoutRight else 1)[0])
        return make(*_checked(shape, stride))

    @overload
    def __call__(self, *coord: IntCoordinate) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *coord: Coordinate) -> Layout: ...
    def __call__(self, *coord: Coordinate) -> int | Layout:
        """Return the offset at a coordinate; for a coordinate with `_` or None, the sublayout that it keeps."""
        c: Any = coord[0] if len(coord) == 1 else coord
        if not are_numbers(c):
            if has_underscore(c):
                check_depth(c)
                return self._sliced(c)
            c = coordinate(c)
        return crd2idx_of(c, self.shape, self.stride)  # type: ignore[return-value]

    def _sliced(self, coord: Coordinate) -> Layout:
        """Return the layout of the modes that `coord` keeps."""
        return regrouped(self, lambda tree: slice_tree(coord, tree))

    def __getitem__(self, mode: int) -> Layout:
        """Return mode `mode` as a layout. A layout whose shape is an integer is its own only mode."""
        shape: Any = self.shape
        stride: Any = self.stride
        if type(mode) is not int:
            mode = expect_integer(mode, "the mode in layout[mode]", hint="use layout(coord) to evaluate the layout")
        try:
            return make(shape[mode], stride[mode], self.assumptions)
        except (IndexError, TypeError):  # TypeError: the shape is an integer
            if type(shape) is not tuple and mode in (0, -1):
                return self
            count = f"{len(shape)} modes" if type(shape) is tuple else "1 mode"
            raise InvalidValueError(f"layout[{integer_text(mode)}]: {self} has {count}") from None

    __iter__ = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not Layout:
            return NotImplemented
        return bool(self.shape == other.shape and self.stride == other.stride)

    def __ne__(self, other: object) -> bool:  # the same result as Python's default, in half the time
        if type(other) is not Layout:
            return NotImplemented
        return bool(self.shape != other.shape or self.stride != other.stride)

    def __hash__(self) -> int:
        return hash((self.shape, self.stride))

    def __str__(self) -> str:
        return f"{tree_text(self.shape)}:{tree_text(self.stride)}"

    def __repr__(self) -> str:
        return f"Layout({self.shape!r}, {self.stride!r})"

    def subs(self, values: dict[sympy.Expr, Value]) -> Layout:
        """Replace sympy symbols by values. Plain ints stay run-time ints; leaves that depend only on `Int` values
        become static.

        Raises:
            InvalidTypeError: the argument is not a dict, or a value is neither a number nor an expression.
            LayoutError: the values break an assumption, or divide by zero.
        """
        expect(values, dict, "values")
        for symbol, value in values.items():
            if not is_symbolic(symbol):
                raise InvalidTypeError(f"subs replaces symbols only, got {given(symbol)}", {"layout": self})
            if not (isinstance(as_leaf(value), int) or is_symbolic(value)):
                raise InvalidTypeError(
                    f"subs needs numbers or expressions as values, got {given(value)}", {"layout": self}
                )
        exact = {k: (int(v) if isinstance(v, Int) else v) for k, v in values.items()}
        known: dict[sympy.Basic, sympy.Basic] = {}

        def replaced(leaf: Any) -> Tree:
            if is_symbolic(leaf):
                number = as_leaf(substituted(leaf, exact, known))
                free = leaf.free_symbols
                static = free and all(type(values.get(symbol)) is Int for symbol in free)
                return STATIC[number] if static and type(number) is int else number
            if hasattr(leaf, "with_value"):  # a basis element: its scale
                return as_leaf(leaf.with_value(replaced(as_leaf(leaf.value))))  # type: ignore[no-any-return]
            return leaf  # type: ignore[no-any-return]

        try:
            left = tuple(a for a in (substituted(x, exact, known) for x in self.assumptions) if str(a) != "True")
            shape, stride = map_leaves(replaced, self.shape), map_leaves(replaced, self.stride)
        except ZeroDivisionError:
            raise LayoutError("division by zero", {"layout": self, "values": values}) from None
        if any(str(a) == "False" for a in left):
            raise LayoutError(
                "these values break an assumption of the layout",
                {"assumptions": ", ".join(map(str, self.assumptions)), "values": values},
            )
        return make(_checked_shape(shape), stride, left)


def _checked_shape(shape: Shape | Tree) -> Tree:
    """Convert a shape to a tree of leaves.

    Raises:
        InvalidTypeError: a size is not an integer. InvalidValueError: a size is negative or too large.
    """
    if fits(shape, shape):
        return shape  # type: ignore[return-value]
    shape = as_leaves(shape)
    s: Any
    for s in leaves(shape):
        if type(s) in KNOWN:
            if s < 0:
                raise InvalidValueError(
                    f"the shape has the size {s | 0}; must be at least 0", {"shape": tree_text(shape)}
                )
        elif not is_symbolic(s):
            raise InvalidTypeError(f"a shape must consist of integers, got {given(s)}", {"shape": tree_text(shape)})
        elif s.is_negative:
            text = f"the shape has the size {s}, which is negative; must be at least 0"
            raise InvalidValueError(text, {"shape": tree_text(shape)})
    return shape


def _checked(shape: Shape, stride: Tree) -> tuple[Tree, Tree]:
    """Convert a shape and a stride to trees of leaves.

    Raises:
        InvalidTypeError, InvalidValueError: a leaf is not a size or stride.
        LayoutError: shape and stride are not congruent.
    """
    sizes, steps = _checked_shape(shape), as_leaves(stride)
    if not congruent_trees(sizes, steps):
        facts = {"shape": tree_text(sizes), "stride": tree_text(steps)}
        raise LayoutError("shape and stride must be congruent", facts)
    return sizes, steps


def make(shape: Tree, stride: Tree, assumptions: Assumptions = ()) -> Layout:
    """Make a layout from trees of leaves without a check, for operations whose results are congruent by
    construction."""
    layout: Any = _Parts()
    layout.shape = shape
    layout.stride = stride
    layout.assumptions = assumptions
    layout.__class__ = Layout
    return layout  # type: ignore[no-any-return]


def assumed(layouts: Sequence[Layout]) -> Assumptions:
    """Return the union of the assumptions of several layouts."""
    return tuple([a for p in layouts for a in p.assumptions])


def regrouped(layout: Layout, change: Callable[[Tree], Tree]) -> Layout:
    """Apply `change` to the shape and stride of a layout."""
    return make(change(layout.shape), change(layout.stride), layout.assumptions)


def make_layout(*parts: Shape | Tree | Major | Layout, stride: Stride = None) -> Layout:
    """Make a layout from a shape, from a shape and a stride (or `LayoutLeft` / `LayoutRight`), or from layouts, which
    become its modes.

    Args:
        stride: the stride, as an alternative to a second positional argument.

    >>> print(make_layout((4, 8), LayoutRight), make_layout(Layout(Int(4)), Layout(Int(2), Int(8))))
    (4,8):(8,_1) (_4,_2):(_1,_8)
    """
    layouts = [p for p in parts if isinstance(p, Layout)]
    if stride is not None:
        parts = (*parts, stride)
    elif layouts and len(layouts) == len(parts):
        return joined(layouts)
    if not 1 <= len(parts) <= 2 or isinstance(parts[0], Layout):
        facts = {"got": given(parts)} if parts else None
        raise InvalidTypeError("make_layout takes a shape, a shape and a stride, or layouts", facts)
    return Layout(*parts)  # type: ignore[arg-type]


def joined(parts: Sequence[Layout]) -> Layout:
    """Make one layout whose modes are the given layouts."""
    return make(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]), assumed(parts))


def modes_of(layout: Layout) -> list[Layout]:
    """Return the modes as layouts. A layout whose shape is an integer is its own only mode."""
    shape: Any = layout.shape
    stride: Any = layout.stride
    if type(shape) is not tuple:
        return [layout]
    return list(map(make, shape, stride, repeat(layout.assumptions)))


def make_ordered_layout(shape: Shape, order: Tree | Major) -> Layout:
    """Make a compact layout whose strides increase in the order of `order`; run-time orders come after static ones.

    >>> print(make_ordered_layout((Int(2), Int(3), Int(4), Int(5)), (Int(1), Int(0), Int(3), Int(2))))
    (_2,_3,_4,_5):(_3,_1,_30,_6)
    """
    if isinstance(order, Major):
        return Layout(shape, order)
    sizes = _checked_shape(shape)
    return make(sizes, compact_order(sizes, as_leaves(order)))


@overload
def static(tree: Layout) -> Layout: ...
@overload
def static(tree: Shape) -> IntTuple: ...
def static(tree: Layout | Shape) -> Layout | IntTuple:
    """Make every plain int of a tuple or layout static: `static((4, 8))` is `(Int(4), Int(8))`.

    >>> print(static(Layout((4, 8), (8, 1))))
    (_4,_8):(_8,_1)
    """
    if isinstance(tree, Layout):
        return Layout(static(tree.shape), static(tree.stride))
    plain: Any = as_tree(tree)
    if type(plain) is tuple:
        return tuple([static(x) for x in plain])  # type: ignore[misc]
    if isinstance(plain, int):
        return Int(plain) if type(plain) is int else plain
    return Int(plain) if isinstance(plain, Integral) else plain


Thing = TypeVar("Thing", bound=LayoutLike)
Rest = ParamSpec("Rest")


class OfLayouts(Protocol[Rest]):
    """The type of an operation on the domain of a layout, composed layout or tensor; the result has the same class."""

    def __call__(self, thing: Thing, /, *args: Rest.args, **options: Rest.kwargs) -> Thing: ...


class OfShapes(Protocol[Rest]):
    """The type of an operation on the modes of a layout, composed layout, tensor or bare shape."""

    @overload
    def __call__(self, thing: Thing, /, *args: Rest.args, **options: Rest.kwargs) -> Thing: ...
    @overload
    def __call__(self, thing: Shape, /, *args: Rest.args, **options: Rest.kwargs) -> IntTuple: ...


def of_layouts(operation: Callable[Concatenate[Layout, Rest], Layout]) -> OfLayouts[Rest]:
    """Declare the type of an operation that handles layouts itself and calls `apply_to_inner` for other objects."""
    return operation  # type: ignore[return-value]


def of_shapes(operation: Callable[Concatenate[Layout | Shape, Rest], Layout | IntTuple]) -> OfShapes[Rest]:
    """Declare the type of an operation as `of_layouts` does, for one that also accepts bare shapes."""
    return operation  # type: ignore[return-value]


def apply_to_inner(
    operation: Callable[..., Layout | IntTuple], thing: LayoutLike | Shape, *args: Tiler | Stride, strict: bool = False
) -> Layout:
    """Apply `operation(layout, *args)` to the layout inside `thing`, and rebuild `thing` around the result."""
    other: Any = thing
    if not hasattr(type(other), "with_domain"):
        hint = "shapes and strides are tuples" if type(thing) is list else None
        raise wrong_type(f"{operation.__name__} takes a layout or a tensor", thing, hint=hint)
    domain_of(other)  # refuses an object that contains itself
    options = {"strict": True} if strict else {}
    return other.with_domain(operation(other.domain, *args, **options))  # type: ignore[no-any-return]


def domain_of(thing: LayoutLike) -> Layout:
    """Return the layout itself, the inner layout of a composed layout, or the layout of a tensor."""
    inner: Any = thing
    for _ in range(MAX_DEPTH):
        if isinstance(inner, Layout):
            return inner
        if not hasattr(type(inner), "domain"):
            break
        inner = inner.domain
    raise wrong_type("expected a layout or a tensor", thing)


def shape_of(thing: Shaped) -> Tree:
    """Return the shape of a layout or tensor; any other object is a shape itself."""
    if isinstance(thing, Layout) or hasattr(type(thing), "domain"):
        return domain_of(thing).shape  # type: ignore[arg-type]
    return as_leaves(thing)


def has_numbers(layout: Layout) -> bool:
    """Whether every size and stride is a known integer, not a symbol or a basis element.

    >>> has_numbers(Layout((4, 8))), has_numbers(Layout((4, 8), (E(0), E(1))))
    (True, False)
    """
    return all(is_integer(value_of(leaf)) for leaf in (*leaves(layout.shape), *leaves(layout.stride)))


def axis_paths(profile: Tree) -> list[tuple[int, ...]]:
    """Return the path of indices to every leaf of a codomain profile, in order.

    >>> axis_paths((0, (0, 0)))
    [(0,), (1, 0), (1, 1)]
    """
    if type(profile) is not tuple:
        return [()]
    return [(i, *path) for i, mode in enumerate(profile) for path in axis_paths(mode)]


def along_axis(stride: Tree, path: tuple[int, ...]) -> Tree:
    """Convert basis strides to integer strides along one axis; a mode that moves along another axis gets 0."""
    if type(stride) is tuple:
        return tuple([along_axis(d, path) for d in stride])
    return stride.value if getattr(stride, "modes", ()) == path else STATIC_ZERO  # type: ignore


def on_axis(stride: Tree, path: tuple[int, ...], like: Tree) -> Tree:
    """Convert integer strides to basis strides along the axis at `path`, of the same kind as the strides `like`."""
    sample = next(d for d in leaves(like) if getattr(d, "modes", None))

    def basis(d: Leaf) -> Tree:
        return STATIC_ZERO if is_zero(d) else as_leaf(sample.at(path, d))

    return map_leaves(basis, stride)


MOST_MODES: Final = 4096
"""The largest index of a mode, far above any tuple of C++. A coordinate has an entry for every mode, so the indices
must be small."""


def coprofile_of(stride: Tree) -> Tree:
    """Return the profile of the offsets that these strides give, as a tree of static zeros."""
    if type(stride) in KNOWN_KINDS or (type(stride) is tuple and KNOWN_KINDS.issuperset(map(type, stride))):
        return STATIC_ZERO
    named: list[Any] = [d for d in leaves(stride) if type(d) not in KNOWN_KINDS and getattr(d, "modes", None)]
    if not named:
        return STATIC_ZERO
    root: Axes = {}
    ends = []
    for d in named:
        node = root
        for i in d.modes:
            node = node.setdefault(i, {})
        if not is_zero(d.value):
            ends.append(node)
    if any(ends):  # one stride moves along a mode, others along modes inside it
        raise LayoutError("the strides belong to coordinates of different profiles", {"strides": tree_text(stride)})
    return _zeros(root)


Axes: TypeAlias = dict[int, "Axes"]
"""Maps each mode that strides name to the modes within it."""


def _zeros(node: Axes) -> Tree:
    if not node:
        return STATIC_ZERO
    if max(node) >= MOST_MODES:
        raise LayoutError(f"a stride moves along mode {max(node)}; a coordinate has at most {MOST_MODES} modes")
    return tuple([_zeros(node.get(i, {})) for i in range(max(node) + 1)])


def coprofile(layout: LayoutLike) -> IntTuple:
    """Return the profile of a layout's offsets, as static zeros: `_0` if the offsets are integers.

    >>> print(coprofile(Layout((4, 8))))
    _0
    """
    return coprofile_of(domain_of(layout).stride)  # type: ignore[return-value]


def coshape_of(shape: Tree, stride: Tree) -> Tree:
    """Return 1 + the largest offset in each codomain mode, computed with the absolute values of the strides."""
    if type(stride) is tuple and KNOWN_KINDS.issuperset(map(type, stride)):  # flat strides
        return _extent(modes(shape), stride)
    sizes, strides = leaves(shape), leaves(stride)
    if KNOWN_KINDS.issuperset(map(type, strides)):
        return _extent(sizes, strides)
    pairs = zip(sizes, strides, strict=True)
    moving = tuple([times(STATIC_ZERO, d) if is_one(s) else d for s, d in pairs])  # modes of size 1 don't move
    profile = coprofile_of(moving)
    if profile == 0:
        return _extent(sizes, moving)
    if any(not getattr(d, "modes", None) and not is_zero(d) for d in moving):
        raise LayoutError("the layout mixes integer strides and basis strides", {"strides": tree_text(moving)})
    extents = [_extent(sizes, leaves(along_axis(moving, path))) for path in axis_paths(profile)]
    return unflatten_leaves(extents, profile)


def _extent(sizes: Sequence[Any], strides: Sequence[Any]) -> Leaf:
    """Return 1 + the sum of (size - 1) * |stride|."""
    last = tuple([STATIC[(s | 0) - 1] if type(s) is Int else s - 1 for s in sizes])
    steps = tuple([d if type(d) in KNOWN_KINDS and d >= 0 else _magnitude(d, sizes, strides) for d in strides])
    return crd2idx_of(last, last, steps, start=1)


def _magnitude(d: Leaf, sizes: Sequence[Leaf], strides: Sequence[Leaf]) -> Leaf:
    """Return |d| of a stride; refuse a stride without an order."""
    if type(d) in KNOWN_KINDS or is_symbolic(d):
        return abs(d)  # type: ignore[arg-type]
    facts = {"shape": tree_text(tuple(sizes)), "stride": tree_text(tuple(strides))}
    raise LayoutError(f"the layout has no cosize, because strides such as {d} have no order", facts)


def coshape(layout: LayoutLike, *mode: int) -> IntTuple:
    """The smallest shape that contains every offset of the layout, or of one of its modes. It has one size per codomain
    mode.

    >>> print(coshape(Layout((4, 8), (8, 1))))
    32
    """
    inner = domain_of(layout)
    return coshape_of(at(inner.shape, mode), at(inner.stride, mode))  # type: ignore[return-value]


def cosize(layout: LayoutLike, *mode: int) -> Int | int:
    """The product of the coshape: for integer strides, 1 + the largest offset.

    As in C++, negative strides count with their absolute values. A mode of size 0 adds -|stride|, so the cosize of 0:1
    is 0.

    >>> from cute_py.layout.leaf import Int
    >>> print(cosize(Layout((Int(4), Int(8)), (Int(8), Int(1)))))
    _32
    """
    inner = layout if type(layout) is Layout else domain_of(layout)
    if mode:
        inner = make(at(inner.shape, mode), at(inner.stride, mode))
    return product_of(coshape_of(inner.shape, inner.stride))  # type: ignore[return-value]
