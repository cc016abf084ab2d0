"""Layout: a function from coordinates to offsets, written shape:stride.

    (4,8):(1,4)      column j, row i  ->  1*i + 4*j

A shape is an integer or a tuple of shapes; the stride has the same profile. A coordinate is any tuple that the shape
can be split into: the natural one `(i, j)`, one integer (split colexicographically, the first mode runs fastest), or
anything between. The offset is the inner product of the natural coordinate with the strides; strides may be any
integer module (see `leaf.IntegerModule`), so that offsets can be coordinates.

Guarantee: `layout(i) == layout(idx2crd(i, layout.shape))` for every integer i, also beyond the size.

`int_tuple.crd2idx_of` takes any coordinate and any stride, as internal leaves. `known` handles the common case,
integers in a layout of known numbers, without leaf objects: it gives the same number, or None for a symbol, a basis
stride or a coordinate that does not fit. A run-time coordinate gives a run-time offset, except that an offset of 0 may
be static: `is_run_time_zero` decides which. A layout of known numbers (`_known`) goes the same way through the algebra.

A composed layout `outer o offset o inner` and a tensor `engine o layout` take their coordinates from a layout inside
them. Coalescing, grouping, dividing and tiling change only that layout; the method `with_domain` of these classes
rebuilds the object around the changed layout, and `apply_to_inner` calls it:

    coalesce(outer o offset o inner)  =  outer o offset o coalesce(inner)

The codomain: integer strides give integer offsets, of profile `_0`. Basis strides give coordinates: the strides
(_1@0,(_1@0@1,_1@1@1)) give offsets of profile (_0,(_0,_0)). A stride `v@i` moves along axis i by v, so inverses and
complements separate into one integer problem per axis, with the strides of the other axes set to 0. CuTe C++ does not
compile these operations; the rule is that of arXiv 2603.02298 (per-codomain-axis inverse and complement). A basis
element is any stride with `modes` (its path) and `value`; its method `at(path, value)` makes another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from numbers import Integral
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, expect, expect_integer, is_integer, wrong_type
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
from cute_py.layout.known import (
    Undecided,
    is_run_time_zero,
    known_extent,
    offset_of_int,
    offset_of_tuple,
)
from cute_py.layout.leaf import (
    STATIC,
    Dynamic,
    Int,
    check_results,
    coordinate,
    inner_tree,
    internal_leaf,
    is_symbolic,
    public_text,
    substituted,
    times,
    to_internal,
    to_public,
    tree_text,
    value_of,
)
from cute_py.layout.trees import (
    are_numbers,
    at,
    check_depth,
    compact_numbers,
    congruent_trees,
    has_underscore,
    leaves,
    map_leaves,
    slice_tree,
    unflatten_leaves,
)

if TYPE_CHECKING:
    import sympy


class Major:
    """A tag: the order in which a compact layout fills its modes."""

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

_new = object.__new__


class Layout:
    """A layout, immutable and hashable; `layout(coord)` evaluates, `layout[i]` is mode i.

    Args:
        shape: sizes, `Int` or int (or sympy), nested tuples; zero is allowed, negative is not.
        stride: same profile as shape, in elements; default compact column-major, where static size-1 modes get
            stride 0. `LayoutLeft` and `LayoutRight` name the compact ones.
    Raises:
        InvalidTypeError: a leaf is not an integer (a boolean, a float).
        LayoutError: shape and stride are not congruent.

    >>> print(Layout((Int(4), Int(8))))
    (_4,_8):(_1,_4)
    >>> a = Layout((4, (2, 3)), (6, (3, 1)))
    >>> a(1, (1, 2)), a(5), a(None, (1, 0))
    (11, 9, Layout((4,), (6,)))
    """

    __slots__ = ("_assumptions", "_inner", "_known", "_public")

    _inner: tuple[Tree, Tree] | None
    """Shape and stride as internal trees, for the algebra: made at first use where the constructor was given public
    ones."""
    _public: tuple[IntTuple, Tree] | None
    """Shape and stride as users see them, for users and for offsets: made at first use of a result of the algebra."""
    _known: bool
    """Is every leaf of `_public` an `Int` or an int, so that the operations' second paths, without leaf objects, take
    it? False too where nobody has looked."""
    _assumptions: Assumptions

    def __init__(self, shape: Shape, stride: Stride = None) -> None:
        self._assumptions = ()
        self._inner = None
        if stride is None or stride is LayoutLeft:
            if (found := compact_numbers(shape)) is not None:
                self._public = (shape, found[0])  # type: ignore[assignment]
                self._known = True
                return
        elif (known := are_numbers(shape, stride)) is not None:  # nothing to refuse, and nothing to convert yet
            self._public = (shape, stride)  # type: ignore[assignment]
            self._known = known
            return
        self._known = False
        changed: list[Tree] = []
        sizes = _checked_shape(to_internal(shape, 0, changed))
        self._public = None
        if stride is None or stride is LayoutLeft:
            self._inner = (sizes, compact_left(sizes)[0])
        elif stride is LayoutRight:
            self._inner = (sizes, compact_left(sizes, order=-1)[0])
        else:
            steps = to_internal(stride, 0, changed)
            if not congruent_trees(sizes, steps):
                facts = {"shape": tree_text(sizes), "stride": tree_text(steps)}
                raise LayoutError("shape and stride must be congruent", facts)
            self._inner = (sizes, steps)
            if not changed:
                self._public = (shape, stride)  # type: ignore[assignment]

    @property
    def shape(self) -> IntTuple:
        return (self._public or self._seen())[0]

    @property
    def stride(self) -> Tree:
        return (self._public or self._seen())[1]

    @property
    def _shape(self) -> Tree:
        return (self._inner or self._trees())[0]

    @property
    def _stride(self) -> Tree:
        return (self._inner or self._trees())[1]

    def _seen(self) -> tuple[IntTuple, Tree]:
        """(shape, stride) as users see them."""
        if self._public is None:
            self._public = (to_public(self._shape), to_public(self._stride))
        return self._public

    def _trees(self) -> tuple[Tree, Tree]:
        """(shape, stride) as internal trees."""
        if self._inner is None:
            shape, stride = self._public  # type: ignore[misc]
            self._inner = (inner_tree(shape), inner_tree(stride))
        return self._inner

    @property
    def assumptions(self) -> Assumptions:
        """Conditions on symbols that this result rests on, as sympy relations; empty for known numbers."""
        return self._assumptions

    @overload
    def __call__(self, *coord: IntCoordinate) -> int: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *coord: Coordinate) -> Layout: ...
    def __call__(self, *coord: Coordinate) -> int | Layout:
        """The offset at a coordinate, or the sublayout that a coordinate with `_` (or None) keeps."""
        c: Any = coord[0] if len(coord) == 1 else coord
        if type(c) is tuple:
            found = offset_of_tuple(c, *(self._public or self._seen()))
            if found is not None:
                offset, static = found
                if MIN_INTEGER <= offset <= MAX_INTEGER:
                    return STATIC[offset] if static else offset
        elif type(c) is int:
            shape, stride = self._public or self._seen()
            found_int = offset_of_int(c, shape, stride)
            if found_int and MIN_INTEGER <= found_int <= MAX_INTEGER:
                return found_int
            if found_int == 0 and is_run_time_zero(stride):
                return 0
        return self._general_call(c)

    def _general_call(self, coord: Coordinate) -> int | Layout:
        """Any coordinate, any strides, and the static results that the fast path does not distinguish."""
        check_depth(coord)
        if has_underscore(coord):
            return self._sliced(coord)
        return to_public(crd2idx_of(coordinate(coord), self._shape, self._stride))

    def _sliced(self, coord: Coordinate) -> Layout:
        """The modes that `coord` keeps."""
        return regrouped(self, lambda tree: slice_tree(coord, tree))

    def __getitem__(self, mode: int) -> Layout:
        """Mode `mode` as a layout; a layout of an integer shape is its own only mode."""
        shape, stride = self._public or self._seen()
        if type(mode) is not int:
            mode = expect_integer(mode, "a mode number, layout[i],", hint="layout(coord) evaluates")
        part = _new(Layout)
        try:
            part._public = (shape[mode], stride[mode])  # type: ignore[index]
        except (IndexError, TypeError):  # TypeError: of an integer shape
            if type(shape) is not tuple and mode in (0, -1):
                return self
            count = f"{len(shape)} modes" if type(shape) is tuple else "1 mode"
            raise InvalidValueError(f"layout[{integer_text(mode)}]: {self} has {count}") from None
        part._inner = None
        part._known = self._known
        part._assumptions = self._assumptions
        return part

    __iter__ = None

    def __eq__(self, other: object) -> bool:
        if type(other) is not Layout:
            return NotImplemented
        return (self._public or self._seen()) == (other._public or other._seen())

    def __ne__(self, other: object) -> bool:  # as Python would derive it, in half of the time
        if type(other) is not Layout:
            return NotImplemented
        return (self._public or self._seen()) != (other._public or other._seen())

    def __hash__(self) -> int:
        return hash(self._public or self._seen())

    def __str__(self) -> str:
        shape, stride = self._public or self._seen()
        return f"{public_text(shape)}:{public_text(stride)}"

    def __repr__(self) -> str:
        shape, stride = self._public or self._seen()
        return f"Layout({shape!r}, {stride!r})"

    def __reduce__(self) -> tuple[type[Layout], tuple[IntTuple, Tree]]:
        return (Layout, (self.shape, self.stride))

    def subs(self, values: dict[sympy.Expr, Value]) -> Layout:
        """The layout with sympy symbols replaced by values (plain ints stay run-time ints; what depends on
        `Int` values only becomes static).

        Raises:
            InvalidTypeError: not a dict, or a value that is neither a number nor an expression.
            LayoutError: the values break an assumption, or divide by zero.
        """
        expect(values, dict, "the values of symbols")
        for symbol, value in values.items():
            if not is_symbolic(symbol):
                raise InvalidTypeError(f"subs replaces symbols, got {given(symbol)}", {"layout": self})
            if type(internal_leaf(value)) not in (int, Dynamic):
                raise InvalidTypeError(f"subs puts in numbers and expressions, got {given(value)}", {"layout": self})
        exact = {k: (int(v) if isinstance(v, Int) else v) for k, v in values.items()}
        known: dict[sympy.Basic, sympy.Basic] = {}

        def replaced(leaf: Leaf) -> Tree:
            if type(leaf) is Dynamic and not isinstance(leaf.value, int):
                number: Any = internal_leaf(substituted(leaf.value, exact, known))
                free = leaf.value.free_symbols
                static = free and all(type(values.get(symbol)) is Int for symbol in free)
                return number.value if static and type(number.value) is int else number
            if hasattr(leaf, "with_value"):  # a basis element: its scale
                value = to_public(replaced(internal_leaf(leaf.value)))  # type: ignore[attr-defined]
                return internal_leaf(leaf.with_value(value))  # type: ignore[no-any-return]
            return leaf

        try:
            left = tuple(a for a in (substituted(x, exact, known) for x in self._assumptions) if str(a) != "True")
            shape, stride = map_leaves(replaced, self._shape), map_leaves(replaced, self._stride)
        except ZeroDivisionError:
            raise LayoutError("division by zero", {"layout": self, "values": values}) from None
        if any(str(a) == "False" for a in left):
            raise LayoutError(
                "the values break an assumption of this layout",
                {"assumptions": ", ".join(map(str, self._assumptions)), "values": values},
            )
        return make(_checked_shape(shape), stride, left)


def _checked_shape(shape: Tree) -> Tree:
    """The internal shape itself, if every size is an integer that is not negative."""
    s: Any
    for s in shape if type(shape) is tuple else (shape,):
        kind = type(s)
        if kind is tuple:
            _checked_shape(s)
            continue
        value = s.value if kind is Dynamic else s
        if type(value) is int:
            if value < 0:
                raise InvalidValueError(f"a size is {value}; must not be negative", {"shape": tree_text(shape)})
        elif kind is not Dynamic:
            raise InvalidTypeError(f"a shape holds integers, got {given(s)}", {"shape": tree_text(shape)})
    return shape


def make(shape: Tree, stride: Tree, assumptions: Assumptions = ()) -> Layout:
    """A layout of internal trees, unchecked: for the algebra, whose results are congruent by construction."""
    check_results(shape)
    check_results(stride)
    return rearranged(shape, stride, assumptions)


def rearranged(shape: Tree, stride: Tree, assumptions: Assumptions = ()) -> Layout:
    """As `make`, of numbers that other layouts have already."""
    layout = _new(Layout)
    layout._inner = (shape, stride)
    layout._public = None
    layout._known = False
    layout._assumptions = assumptions
    return layout


def of_numbers(shape: Tree, stride: Tree) -> Layout:
    """A layout of public trees of known numbers, unchecked: what the second paths of the algebra come to."""
    layout = _new(Layout)
    layout._public = (shape, stride)  # type: ignore[assignment]
    layout._inner = None
    layout._known = True
    layout._assumptions = ()
    return layout


def in_numbers(layout: Layout, operation: Callable[..., tuple[Tree, Tree]], *operands: Any) -> Layout | None:
    """What the second path of an operation, for known numbers, makes of a layout; None where the general path has to
    decide."""
    if not layout._known:
        return None
    try:
        return of_numbers(*operation(*layout._public, *operands))  # type: ignore[misc]
    except (Undecided, LayoutError):
        return None


def regrouped(layout: Layout, change: Callable[[Tree], Tree]) -> Layout:
    """A layout whose shape and stride are `change` of those of another: of the trees that it has already."""
    if layout._public is None:
        shape, stride = layout._inner  # type: ignore[misc]
        return rearranged(change(shape), change(stride), layout._assumptions)
    shape, stride = layout._public
    part = of_numbers(change(shape), change(stride))
    part._known, part._assumptions = layout._known, layout._assumptions
    return part


def make_layout(*parts: Shape | Tree | Major | Layout, stride: Stride = None) -> Layout:
    """As C++: of a shape, of a shape and a stride (or `LayoutLeft` / `LayoutRight`), or of layouts to join as modes.

    Args:
        stride: the stride, where it is not the second of the parts.

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
    """One layout whose modes are the given layouts."""
    if all(p._known for p in parts):
        known: Any = [p._public for p in parts]
        return of_numbers(tuple([t[0] for t in known]), tuple([t[1] for t in known]))
    notes = tuple([a for p in parts for a in p._assumptions])
    trees = [p._inner or p._trees() for p in parts]
    return rearranged(tuple([t[0] for t in trees]), tuple([t[1] for t in trees]), notes)


def modes_of(layout: Layout) -> list[Layout]:
    """The modes as layouts; a layout of an integer shape is its own only mode."""
    shape: Any
    stride: Any
    if layout._known:
        shape, stride = layout._public  # type: ignore[misc]
        return list(map(of_numbers, shape, stride)) if type(shape) is tuple else [layout]
    shape, stride = layout._inner or layout._trees()
    if type(shape) is not tuple:
        return [layout]
    return list(map(rearranged, shape, stride, repeat(layout._assumptions)))


def make_ordered_layout(shape: Shape, order: Tree | Major) -> Layout:
    """A compact layout whose strides grow in the order of `order` (static numbers; run-time ones come last).

    >>> print(make_ordered_layout((Int(2), Int(3), Int(4), Int(5)), (Int(1), Int(0), Int(3), Int(2))))
    (_2,_3,_4,_5):(_3,_1,_30,_6)
    """
    if isinstance(order, Major):
        return Layout(shape, order)
    inner = _checked_shape(to_internal(shape))
    return make(inner, compact_order(inner, to_internal(order)))


@overload
def static(tree: Layout) -> Layout: ...
@overload
def static(tree: Shape) -> IntTuple: ...
def static(tree: Layout | Shape) -> Layout | IntTuple:
    """Every plain int of a tuple or layout made static: `static((4, 8))` is `(Int(4), Int(8))`.

    >>> print(static(Layout((4, 8), (8, 1))))
    (_4,_8):(_8,_1)
    """
    check_depth(tree)
    if isinstance(tree, Layout):
        return Layout(static(tree.shape), static(tree.stride))
    if type(tree) is tuple:
        return tuple([static(x) for x in tree])  # type: ignore[misc]
    if isinstance(tree, int):
        return Int(tree) if type(tree) is int else tree
    return Int(tree) if isinstance(tree, Integral) else tree  # type: ignore[return-value]


Thing = TypeVar("Thing", bound=LayoutLike)
Rest = ParamSpec("Rest")


class OfLayouts(Protocol[Rest]):
    """An operation on the domain of a layout, a composed layout or a tensor; the result is of the same class."""

    def __call__(self, thing: Thing, /, *args: Rest.args, **options: Rest.kwargs) -> Thing: ...


class OfShapes(Protocol[Rest]):
    """An operation on the modes of a layout, a composed layout or a tensor; or of a bare shape."""

    @overload
    def __call__(self, thing: Thing, /, *args: Rest.args, **options: Rest.kwargs) -> Thing: ...
    @overload
    def __call__(self, thing: Shape, /, *args: Rest.args, **options: Rest.kwargs) -> IntTuple: ...


def of_layouts(operation: Callable[Concatenate[Layout, Rest], Layout]) -> OfLayouts[Rest]:
    """For type checkers: an operation that is written for layouts, and calls `apply_to_inner` for the others."""
    return operation  # type: ignore[return-value]


def of_shapes(operation: Callable[Concatenate[Layout | Shape, Rest], Layout | IntTuple]) -> OfShapes[Rest]:
    """For type checkers, as `of_layouts`: an operation that takes bare shapes too."""
    return operation  # type: ignore[return-value]


def apply_to_inner(
    operation: Callable[..., Layout | IntTuple], thing: LayoutLike | Shape, *args: Tiler | Stride, strict: bool = False
) -> Layout:
    """Apply `operation(layout, *args)` to the layout that has the domain of `thing`, and rebuild the rest."""
    other: Any = thing
    if not hasattr(other, "with_domain"):
        raise wrong_type(f"{operation.__name__} takes a layout or a tensor", thing)
    options = {"strict": True} if strict else {}
    return other.with_domain(operation(other.domain, *args, **options))  # type: ignore[no-any-return]


def domain_of(thing: LayoutLike) -> Layout:
    """The layout that has the domain: itself, the inner layout of a composed one, the layout of a tensor."""
    while not isinstance(thing, Layout):
        if not hasattr(thing, "domain"):
            raise wrong_type("expected a layout or a tensor", thing)
        thing = thing.domain
    return thing


def shape_of(thing: Shaped) -> Tree:
    """The internal shape of a layout or a tensor; anything else is a shape itself."""
    if isinstance(thing, Layout) or hasattr(thing, "domain"):
        return domain_of(thing)._shape  # type: ignore[arg-type]
    return to_internal(thing)


def has_numbers(layout: Layout) -> bool:
    """Whether every size and stride is a known integer: no symbol, no basis element.

    >>> has_numbers(Layout((4, 8))), has_numbers(Layout((4, 8), (E(0), E(1))))
    (True, False)
    """
    return all(is_integer(value_of(leaf)) for leaf in (*leaves(layout._shape), *leaves(layout._stride)))


def axis_paths(profile: Tree) -> list[tuple[int, ...]]:
    """The path of every leaf of a codomain profile, in order.

    >>> axis_paths((0, (0, 0)))
    [(0,), (1, 0), (1, 1)]
    """

    def walk(tree: Tree, path: tuple[int, ...]) -> list[tuple[int, ...]]:
        if type(tree) is not tuple:
            return [path]
        return [p for i, t in enumerate(tree) for p in walk(t, (*path, i))]

    return walk(profile, ())


def along_axis(stride: Tree, path: tuple[int, ...]) -> Tree:
    """Basis strides -> integer strides: the movement along one axis, 0 where a mode moves along another."""

    def value(d: Leaf) -> Tree:
        return to_internal(d.value) if getattr(d, "modes", ()) == path else 0  # type: ignore[attr-defined]

    return map_leaves(value, stride)


def on_axis(stride: Tree, path: tuple[int, ...], like: Tree) -> Tree:
    """Integer strides -> basis strides along the axis at `path`, of the module that the strides `like` are of."""
    sample = next(d for d in leaves(like) if getattr(d, "modes", None))

    def basis(d: Leaf) -> Tree:
        return 0 if type(d) is int and d == 0 else to_internal(sample.at(path, to_public(d)))

    return map_leaves(basis, stride)


MOST_MODES: Final = 4096
"""Far more than a tuple of C++ has; a coordinate has an entry for every mode, so the number of a mode must be small."""


_INTEGERS: Final = frozenset((int, Dynamic))


def coprofile_of(stride: Tree) -> Tree:
    """Internal strides -> tree of zeros: the profile that the offsets have."""
    if type(stride) is int or (type(stride) is tuple and _INTEGERS.issuperset(map(type, stride))):
        return 0
    paths = [d.modes for d in leaves(stride) if type(d) not in _INTEGERS and getattr(d, "modes", None)]
    if not paths:
        return 0
    root: Axes = {}
    for path in paths:
        node = root
        for i in path:
            node = node.setdefault(i, {})
    tree = _zeros(root)
    for path in paths:
        if type(at(tree, path)) is tuple:
            raise LayoutError("strides of incompatible hierarchy", {"strides": tree_text(stride)})
    return tree


Axes: TypeAlias = dict[int, "Axes"]
"""Modes that strides name -> the modes within each of them."""


def _zeros(node: Axes) -> Tree:
    if not node:
        return 0
    if max(node) >= MOST_MODES:
        raise LayoutError(f"strides of mode {max(node)}: a coordinate has at most {MOST_MODES} modes")
    return tuple([_zeros(node.get(i, {})) for i in range(max(node) + 1)])


def coprofile(layout: LayoutLike) -> IntTuple:
    """The profile of the layout's offsets, static zeros.

    >>> print(coprofile(Layout((4, 8))))
    _0
    """
    return to_public(coprofile_of(domain_of(layout)._stride))


def coshape_of(shape: Tree, stride: Tree) -> Tree:
    """Internal: 1 + the largest offset in each codomain mode, with the absolute values of the strides."""
    profile = coprofile_of(stride)
    if profile == 0:
        return _extent(shape, stride)
    if any(not getattr(d, "modes", None) and d != 0 for d in leaves(stride)):
        raise LayoutError("an integer stride beside basis strides", {"strides": tree_text(stride)})
    return unflatten_leaves([_extent(shape, along_axis(stride, path)) for path in axis_paths(profile)], profile)


def _extent(shape: Tree, stride: Tree) -> Leaf:
    total: Leaf = 1
    for s, d in zip(leaves(shape), leaves(stride), strict=True):
        if type(d) not in _INTEGERS:
            facts = {"shape": tree_text(shape), "stride": tree_text(stride)}
            raise LayoutError(f"no cosize: stride {d} has no order", facts)
        total = total + times(s + -1, abs(d))
    return total


def coshape(layout: LayoutLike, *mode: int) -> IntTuple:
    """The smallest shape that holds every offset, of the layout or of one of its modes: one size per codomain mode.

    >>> print(coshape(Layout((4, 8), (8, 1))))
    32
    """
    inner = domain_of(layout)
    return to_public(coshape_of(at(inner._shape, mode), at(inner._stride, mode)))


def cosize(layout: LayoutLike, *mode: int) -> Int | int:
    """The product of the coshape: for integer strides, 1 + the largest offset.

    Negative strides count with their absolute values, as in C++. A layout with a size of 0 has cosize 0 where the
    stride of that mode is 1.

    >>> from cute_py.layout.leaf import Int
    >>> print(cosize(Layout((Int(4), Int(8)), (Int(8), Int(1)))))
    _32
    """
    if type(layout) is Layout and layout._known and not mode:
        known = known_extent(*layout._public)  # type: ignore[misc]
        if known is not None:
            return STATIC[known[0]] if known[1] else known[0]
    inner = domain_of(layout)
    return to_public(product_of(coshape_of(at(inner._shape, mode), at(inner._stride, mode))))
