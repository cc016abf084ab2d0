"""Calls of the layout algebra."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, expression, method, methods_of, operation
from tests.calls.text import Maker, elements, flat

ANY = Maker.any_layout
LAYOUT = Maker.layout
COMPOSED = Maker.composed
FLAGGED = "ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), Layout((Int(8), Int(64)), (Int(64), Int(1))))"
OF = {"of": lambda m: m.one_of("'memory'", "'call'")}
POWER = Maker.power_layout


def shape(maker: Maker) -> str:
    return maker.shape()


def thing(maker: Maker) -> str:
    """A layout, shape or tensor."""
    return maker.choice((maker.any_layout, maker.layout, maker.shape, maker.identity))()


def number(low: int, high: int) -> Any:
    return lambda maker: maker.leaf(maker.integer(low, high), maker.choice(("static", "dynamic")))


def static_layout(maker: Maker) -> str:
    return maker.layout(how="static")


# ---- leaves and trees

add("Int", number(0, 99))
add("Int", lambda m: str(m.integer(-5, 10**6)))
INT = number(-4, 12)
for symbol in ("add", "sub", "mul", "floordiv", "mod", "pow"):
    operation(f"Int.__{symbol}__", symbol, lambda m: f"Int({m.integer(-8, 20)})", number(1, 9), weight=0.3)
    operation(
        f"Int.__r{symbol}__", f"reflected_{symbol}", lambda m: f"Int({m.integer(1, 9)})", number(1, 9), weight=0.3
    )
for symbol in ("abs", "neg", "pos"):
    operation(f"Int.__{symbol}__", symbol, lambda m: f"Int({m.integer(-8, 20)})", weight=0.1)
method(
    "Int.__format__",
    lambda m: f"Int({m.integer(-8, 20)})",
    lambda m: m.one_of("''", "'5'", "'>8'"),
    weight=0.1,
    mutable=False,
)
expression("_", "_", weight=0.05)
expression("LayoutLeft", "LayoutLeft", weight=0.05)
expression("LayoutRight", "LayoutRight", weight=0.05)
expression("__version__", "cute_py.__version__", weight=0.05)

for name in ("rank", "size", "depth", "shape", "stride", "cosize", "coshape"):
    source = ANY if name in ("stride", "cosize", "coshape") else thing

    @calls_of(name)
    def _measured(m: Maker, source: Any = source, name: str = name) -> Any:
        tree = m.shape_tree(m.integer(1, 3))
        text = m.layout_of(tree) if name in ("stride", "cosize", "coshape") else m.choice((m.layout_of, m.tree))(tree)
        return (text, str(m.integer(0, len(tree) - 1))) if m.chance(0.5) else (source(m),)


add("is_static", thing)
add("static", thing)
add("flatten", thing)
add("coprofile", LAYOUT)
add("product", shape)
add("product_each", shape)


def pair_of_trees(m: Maker, change: Any) -> tuple[str, str]:
    tree = m.shape_tree()
    return m.tree(tree), m.tree(change(m, tree))


def grouped(m: Maker, tree: Any) -> Any:
    return elements(tree) if m.chance(0.5) else tree


for name in ("congruent", "weakly_congruent", "compatible", "weakly_compatible", "evenly_divides", "elem_less"):

    @calls_of(name)
    def _compared(m: Maker) -> Any:
        first, second = pair_of_trees(m, grouped)
        return (first, second) if m.chance(0.6) else (thing(m), thing(m))


for name in ("shape_div", "ceil_div", "round_up", "inner_product", "elem_scale"):

    @calls_of(name)
    def _paired(m: Maker, name: str = name) -> Any:
        tree = m.shape_tree(m.choice((0, 2)), depth=1)
        other = tuple(m.choice((1, 2, 4)) for _ in tree) if isinstance(tree, tuple) else m.choice((1, 2, 4))
        return m.tree(tree), m.tree(other)


@calls_of("crd2idx")
def _crd2idx(m: Maker) -> Any:
    tree = m.shape_tree()
    coord = m.tree(m.coord_tree(tree))
    if m.chance(0.5):
        return coord, m.tree(tree)
    if m.chance(0.3):
        return coord, m.layout_of(tree)
    return coord, m.tree(tree), m.tree(m.stride_tree(tree))


@calls_of("idx2crd")
def _idx2crd(m: Maker) -> Any:
    tree = m.shape_tree()
    index = m.leaf(m.integer(0, elements(tree) * 2), "mixed")
    if m.chance(0.5):
        return index, m.tree(tree)
    return index, m.tree(tree), m.tree(m.stride_tree(tree, "left"))


@calls_of("crd2crd")
def _crd2crd(m: Maker) -> Any:
    a, b = m.choice((((4, 6), (2, 12)), ((4, (2, 3)), 24), ((8, 3), (4, 6)), (24, (4, 6))))
    return m.tree(m.coord_tree(a)), m.tree(a), m.tree(b)


# ---- layouts


@calls_of("Layout", weight=2)
def _layout(m: Maker) -> Any:
    tree = m.shape_tree()
    how = m.choice(("static", "dynamic", "mixed"))
    if m.chance(0.3):
        return (m.tree(tree, how),)
    return m.tree(tree, how), m.one_of(m.tree(m.stride_tree(tree), how), "LayoutRight", "LayoutLeft")


@calls_of("Layout")
def _symbolic(m: Maker) -> Any:
    n = "sympy.Symbol('N', integer=True, positive=True)"
    return f"({m.tree(m.integer(1, 8))}, {n})", m.one_of("LayoutLeft", "LayoutRight", f"({n}, 1)")


@methods_of("Layout.__call__", weight=2)
def _call(m: Maker) -> Any:
    tree = m.shape_tree(m.choice((1, 2, 3)))
    coord = m.coord_tree(tree, 0.2)
    if isinstance(coord, tuple) and m.chance(0.7):
        return m.layout_of(tree), [m.tree(c) for c in coord]
    return m.layout_of(tree), [m.tree(coord)]


@methods_of("ComposedLayout.__call__")
def _composed_call(m: Maker) -> Any:
    tree = m.shape_tree(2, sizes=(2, 4, 8))
    inner = m.layout_of(tree, "compact", "static")
    coord = m.coord_tree(tree)
    return f"ComposedLayout({m.swizzle()}, {m.one_of('0', 'Int(0)')}, {inner})", [m.tree(coord)]


for kind in ("Layout", "ComposedLayout"):

    @methods_of(f"{kind}.__getitem__")
    def _mode(m: Maker, kind: str = kind) -> Any:
        rank = m.integer(1, 3)
        return (m.layout(rank) if kind == "Layout" else m.composed(rank)), [str(m.integer(0, rank - 1))]


SYMBOLIC = (
    "Layout((4, sympy.Symbol('N', integer=True, positive=True)), (sympy.Symbol('N', integer=True, positive=True), 1))"
)
method("Layout.subs", SYMBOLIC, lambda m: f"{{sympy.Symbol('N', integer=True, positive=True): {m.integer(1, 9)}}}")
for kind, instance, other in (
    ("Layout", LAYOUT, LAYOUT),
    ("ComposedLayout", COMPOSED, COMPOSED),
    ("Swizzle", Maker.swizzle, Maker.swizzle),
):
    operation(f"{kind}.__eq__", "eq", instance, other, weight=0.5)
operation("Layout.__ne__", "ne", LAYOUT, LAYOUT, weight=0.5)

add("LinearLayout", "(2, 4)", "(4, 1, 2)", named={"origin": number(0, 9)})
add("BankConflicts", "128", "(1, 2)")
add("Coalescing", "4", "1", "128")
add("Footprint", "0", "9", "8")
add("Step", "'merge'", "'a text'", "{'a': 1}", named={"result": LAYOUT})


@calls_of("ComposedLayout")
def _composed(m: Maker) -> Any:
    inner = m.power_layout(how="static")
    outer = m.one_of(m.swizzle(), m.layout(how="static"), "Layout(1024)")
    return outer, m.one_of("0", "Int(0)", "8", "smem_ptr_flag(16)"), inner


@calls_of("make_composed_layout")
def _make_composed(m: Maker) -> Any:
    return m.swizzle(), m.one_of("0", "Int(0)", "8"), m.power_layout(how="static")


@calls_of("make_layout")
def _make_layout(m: Maker) -> Any:
    tree = m.shape_tree()
    return m.choice(
        (
            (m.tree(tree),),
            (m.tree(tree), m.one_of("LayoutRight", "LayoutLeft")),
            (m.tree(tree, "dynamic"), m.tree(m.stride_tree(tree), "dynamic")),
            tuple(m.layout() for _ in range(m.integer(1, 3))),
        )
    )


@calls_of("make_ordered_layout")
def _ordered(m: Maker) -> Any:
    tree = m.shape_tree(m.integer(1, 3), depth=1)
    order = list(range(len(tree)))
    m.random.shuffle(order)
    return m.tree(tree), m.tree(tuple(order), "static")


add("make_layout_like", LAYOUT)
add(
    "make_swizzle",
    lambda m: m.one_of("0b11000000", "0b1110000000", "0"),
    lambda m: m.one_of("0b00000110", "0b111", "0"),
)

for name in ("nullspace", "get_swizzle_portion", "get_nonswizzle_portion", "max_alignment", "linear"):
    add(name, lambda m: m.choice((m.power_layout, m.composed))() if m.chance(0.6) else m.layout(kind="compact"))
for name in ("right_inverse", "left_inverse"):
    add(name, lambda m: m.layout(kind=m.choice(("compact", "gaps")), how="static"))
    add(name, COMPOSED)
for name in ("is_injective", "is_bijective", "footprint"):
    add(name, ANY)

for name in ("coalesce", "filter", "filter_zeros"):

    @calls_of(name, weight=1.5)
    def _profiled(m: Maker) -> Any:
        tree = m.shape_tree()
        if m.chance(0.4) or not isinstance(tree, tuple):
            return (m.choice((m.layout_of(tree), m.composed())),)
        return m.layout_of(tree), m.tree(tuple(1 for _ in tree), "static")


@calls_of("complement")
def _complement(m: Maker) -> Any:
    layout = m.layout(kind=m.choice(("compact", "gaps")), how="static")
    return (layout,) if m.chance(0.5) else (layout, f"Int({m.choice((24, 64, 4096))})")


@calls_of("composition", weight=2)
def _composition(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1, sizes=(4, 8, 16))
    left = m.layout_of(tree, "compact", "static")
    right = m.choice(
        (
            f"Layout(Int({m.choice((2, 4, 8))}), Int({m.choice((1, 2, 4))}))",
            f"(Int({m.choice((1, 2, 4))}), Int(2))",
            f"Layout((Int(2), Int(2)), (Int(1), Int({m.choice((2, 4, 8))})))",
        )
    )
    if m.chance(0.2):
        return m.swizzle(), left
    return (left, right), {"strict": "True"} if m.chance(0.2) else {}


for name in ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide"):

    @calls_of(name)
    def _divided(m: Maker) -> Any:
        tree = m.shape_tree(m.choice((0, 1, 2, 2, 3)), sizes=(2, 4, 8))
        composed = m.chance(0.2)
        layout = m.layout_of(tree, "compact", "static")
        text = f"ComposedLayout({m.swizzle()}, Int(0), {layout})" if composed else m.layout_of(tree, "compact")
        return text, m.tiler(tree)


for name in ("logical_product", "zipped_product", "tiled_product", "flat_product", "blocked_product", "raked_product"):

    @calls_of(name)
    def _multiplied(m: Maker) -> Any:
        rank = m.integer(1, 2)
        block = m.layout(rank, "compact", "static")
        return block, m.layout_of(m.shape_tree(rank, depth=1, sizes=(1, 2, 3)), "compact", "static")


@calls_of("get_flat_coord")
def _get_flat_coord(m: Maker) -> Any:
    return m.layout_of(m.shape_tree(m.integer(1, 3)), "compact"), m.leaf(
        m.integer(0, 7), m.choice(("static", "dynamic"))
    )


@calls_of("with_shape")
def _with_shape(m: Maker) -> Any:
    rows, columns = m.choice((1, 2, 4)), m.choice((1, 2, 4))
    layout = m.layout_of((rows * 2, columns), "compact", "static")
    whole = f"(Int({rows}), Int({2 * columns}))"
    return (layout, whole) if m.chance(0.5) else (layout, f"Int({rows})", f"Int({2 * columns})")


@calls_of("tile_to_shape")
def _tile_to_shape(m: Maker) -> Any:
    tile = m.shape_tree(2, depth=1, sizes=(2, 4, 8))
    block = m.layout_of(tile, "compact", "static")
    block = f"ComposedLayout({m.swizzle()}, Int(0), {block})" if m.chance(0.3) else block
    whole = m.tree(tuple(n * m.choice((1, 2, 4)) for n in tile), "static")
    return (
        (block, whole) if m.chance(0.5) else (block, whole, m.one_of("LayoutRight", "(Int(1), Int(0))", "LayoutLeft"))
    )


for name in ("slice_", "dice", "slice_and_offset"):

    @calls_of(name)
    def _sliced(m: Maker, name: str = name) -> Any:
        tree = m.shape_tree(m.integer(1, 3))
        return m.tree(tuple(m.coord_tree(n, 0.5) for n in tree)), m.one_of(m.layout_of(tree), m.tree(tree)) if (
            name == "dice"
        ) else m.layout_of(tree)


@calls_of("domain_offset")
def _domain_offset(m: Maker) -> Any:
    tree = m.shape_tree()
    return m.tree(m.coord_tree(tree)), m.layout_of(tree)


@calls_of("domain_distribute")
def _distribute(m: Maker) -> Any:
    return m.tree(m.shape_tree(2, depth=1), "static"), f"Int({m.choice((2, 4, 6))})"


for name in ("group_modes", "group", "take"):

    @calls_of(name)
    def _ranged(m: Maker, name: str = name) -> Any:
        rank = m.integer(1, 3)
        begin = m.integer(0, rank - 1)
        end = m.integer(begin + 1, rank)
        return m.choice((m.layout, m.shape))(rank), str(begin), str(end)


for name in ("append", "prepend"):

    @calls_of(name)
    def _added(m: Maker) -> Any:
        if m.chance(0.3):
            return (m.layout(2),), {"up_to_rank": str(m.integer(2, 5))}
        return m.layout(), m.layout()


@calls_of("replace")
def _replaced(m: Maker) -> Any:
    rank = m.integer(1, 3)
    return m.layout(rank), str(m.integer(0, rank - 1)), m.layout()


@calls_of("select")
def _selected(m: Maker) -> Any:
    rank = m.integer(1, 3)
    modes = [str(m.integer(0, rank - 1)) for _ in range(m.integer(1, 2))]
    return (m.choice((m.layout, m.shape))(rank), *modes)


@calls_of("unflatten")
def _unflattened(m: Maker) -> Any:
    tree = m.shape_tree(2)
    return m.tree(tuple(flat(tree)), "static"), m.tree(tree, "static")


@calls_of("local_tile")
def _local_tile(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1, sizes=(4, 8, 16))
    return m.layout_of(tree), "(Int(2), Int(4))", m.one_of("(0, None)", "(1, 0)", "(None, None)", "(_, 0)")


@calls_of("local_tile")
def _projected_tile(m: Maker) -> Any:
    return (
        "Layout((Int(16), Int(8)))",
        "(Int(4), Int(8), Int(2))",
        m.one_of("(0, 0, 0)", "(1, _, 0)"),
        m.one_of("(Int(1), _, Int(1))", "(1, 1, None)"),
    )


@calls_of("local_partition")
def _local_partition(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1, sizes=(4, 8))
    return m.layout_of(tree), "Layout((Int(2), Int(4)))", str(m.integer(0, 7))


for name in ("inner_partition", "outer_partition"):

    @calls_of(name)
    def _partition(m: Maker) -> Any:
        tree = m.shape_tree(2, depth=1, sizes=(4, 8))
        return m.layout_of(tree), "(Int(2), Int(4))", m.one_of("(1, None)", "(0, 0)", "(None, None)", "1")


@calls_of("recast_layout")
def _recast(m: Maker) -> Any:
    return "Layout((Int(8), Int(64)), (Int(64), Int(1)))", m.dtype(), m.dtype()


for name in ("upcast", "downcast"):

    @calls_of(name)
    def _cast(m: Maker) -> Any:
        return m.one_of("Layout((Int(8), Int(64)), (Int(64), Int(1)))", m.power_layout(how="static"), m.composed()), (
            m.one_of("2", "4", "Int(2)", "1")
        )


for name in ("max_common_layout", "max_common_vector", "same_function"):

    @calls_of(name)
    def _common(m: Maker) -> Any:
        tree = m.shape_tree(2, sizes=(2, 4, 8))
        return m.layout_of(tree, "compact", "static"), m.layout_of(tree, "compact", "static")


add(
    "max_common_vector",
    "make_tensor(make_gmem_ptr(0, 'float16'), (Int(8), Int(8)))",
    "make_tensor(make_gmem_ptr(0, 'float16'), (Int(8), Int(8)))",
)


@calls_of("overlaps")
def _overlaps(m: Maker) -> Any:
    if m.chance(0.5):
        return (m.layout(),)
    return (m.layout(), m.layout()), {"shift": str(m.integer(0, 50))}


@calls_of("offsets")
def _offsets(m: Maker) -> Any:
    tree = m.shape_tree(m.integer(1, 3), depth=1)
    layout = m.one_of(m.layout_of(tree), f"make_identity_layout({m.tree(tree)})")
    kwargs = {"dtype": m.one_of("'int32'", "numpy.int64", "'uint32'")} if m.chance(0.3) else {}
    kwargs.update({"of": m.one_of("'memory'", "'call'")} if m.chance(0.2) else {})
    if m.chance(0.5):
        return (layout,), kwargs
    return (
        layout,
        m.one_of(m.tree(m.coord_tree(tree), "dynamic"), "numpy.arange(3)", f"[{m.integer(0, 3)}, 0]"),
    ), kwargs


add("offsets", FLAGGED, named=OF)
add("coordinates", FLAGGED, "[0, 9, 511]", named=OF)


@calls_of("coordinates")
def _coordinates(m: Maker) -> Any:
    tree = m.shape_tree(2)
    return m.layout_of(tree, "compact"), m.one_of(f"[0, {elements(tree) - 1}]", "0", "numpy.arange(2)")


add(
    "bank_conflicts",
    lambda m: m.choice((m.layout, m.power_layout))(),
    Maker.dtype,
    named={"vector_bits": lambda m: m.one_of("128", "64", "32"), "base": number(0, 64)},
)
add("coalescing", lambda m: m.choice((m.layout, m.power_layout))(), Maker.dtype, named={"base": number(0, 64)})


@calls_of("steps")
def _steps(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1, sizes=(2, 4, 8))
    layout = m.layout_of(tree, "compact", "static")
    return m.choice(
        (
            ("coalesce", m.layout()),
            ("right_inverse", layout),
            ("complement", layout, "Int(256)"),
            ("logical_divide", layout, "(Int(2), Int(2))"),
            ("composition", layout, "Layout(Int(4), Int(2))"),
            ("logical_product", layout, "Layout(Int(3))"),
        )
    )


add("explained")


@calls_of("explain", weight=2)
def _explain(m: Maker) -> Any:
    return m.choice(
        (
            _steps(m),
            (ANY(m),),
            (m.identity(),),
            (m.basis(),),
            (m.swizzle(),),
            ("crd2idx", "(1, 2)", "(4, 8)"),
            (f"'{m.choice(('(_4,8):(_1,4)', 'Sw<3,4,3> o _0 o (_8,_64):(_64,_1)', '_1@0', 'coalesce'))}'",),
            (
                m.one_of(
                    "request()", "load_atom()", "tma.encode(request())", "tma.make_tma_copy", "tmem.demonstrate().copy"
                ),
            ),
        )
    )


THREADS = "Layout((Int(4), Int(8)), (Int(8), Int(1)))"
VALUES = "Layout((Int(2), Int(2)))"
TV = f"make_layout_tv({THREADS}, {VALUES})"


@calls_of("make_layout_tv")
def _layout_tv(m: Maker) -> Any:
    return (
        m.layout_of(m.shape_tree(2, depth=1, sizes=(2, 4)), "compact", "static"),
        m.layout_of(m.shape_tree(2, depth=1, sizes=(1, 2)), "compact", "static"),
    )


# ---- swizzles

add(
    "Swizzle",
    lambda m: str(m.integer(0, 3)),
    lambda m: str(m.integer(0, 4)),
    lambda m: m.one_of("3", "4", "-3", "None"),
)
method(
    "Swizzle.__call__",
    Maker.swizzle,
    lambda m: m.one_of(str(m.integer(0, 4096)), f"Int({m.integer(0, 99)})", "numpy.arange(64)"),
)
method("Swizzle.of", Maker.swizzle, lambda m: str(m.integer(0, 4096)))
method("Swizzle.upcast", Maker.swizzle, lambda m: m.one_of("1", "2", "4"))
method("Swizzle.downcast", Maker.swizzle, lambda m: m.one_of("1", "2", "4"))
method("Swizzle.left_inverse", Maker.swizzle, weight=0.2)
method("Swizzle.right_inverse", Maker.swizzle, weight=0.2)

add("byte_swizzle", Maker.swizzle, Maker.dtype)
add("element_swizzle", lambda m: m.one_of("Swizzle(3, 4, 3)", "Swizzle(2, 4, 3)", "Swizzle(1, 5, 2)"), Maker.dtype)
add("as_position_independent_swizzle_layout", COMPOSED)
add("as_position_independent_swizzle_layout", FLAGGED)

# ---- methods of composed layouts

COMPOSED_8x8 = "ComposedLayout(Swizzle(2, 0, 3), Int(0), Layout((Int(8), Int(8)), (Int(8), Int(1))))"
method("ComposedLayout.domain_offset", COMPOSED_8x8, lambda m: f"({m.integer(0, 7)}, {m.integer(0, 7)})")
method("ComposedLayout.slice_and_offset", COMPOSED_8x8, lambda m: m.one_of("(1, None)", "(None, 0)", "(2, 3)"))
method("ComposedLayout.with_domain", COMPOSED_8x8, POWER)
method("ComposedLayout.max_common_layout", COMPOSED_8x8, COMPOSED_8x8)
method("ComposedLayout.max_common_vector", COMPOSED_8x8, COMPOSED_8x8)
for name in ("cosize", "left_inverse", "right_inverse"):
    method(f"ComposedLayout.{name}", COMPOSED, weight=0.3)

LINEAR = "linear(Layout((Int(2), Int(4)), (Int(4), Int(1))))"
method("LinearLayout.__call__", LINEAR, lambda m: m.one_of(str(m.integer(0, 7)), "(1, 3)"))
method("LinearLayout.compose", LINEAR, LINEAR)
