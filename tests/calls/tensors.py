"""Calls of arithmetic tuples, basis strides, iterators, pointers, tensors, and of what prints and parses."""

from __future__ import annotations

from typing import Any

from tests.calls.call import add, calls_of, entry, method, methods_of, operation
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker, elements

BASIS = Maker.basis
NUMBER = Maker.shape_tree


def leaf(m: Maker) -> str:
    return m.leaf(m.integer(0, 12), "mixed")


def ratio(m: Maker) -> str:
    return f"ratio({m.integer(1, 9)}, {m.choice((2, 4, 8))})"


def basis(m: Maker) -> str:
    return f"ScaledBasis({leaf(m)}, {m.integer(0, 2)})"


def pair(m: Maker) -> str:
    return f"ArithTuple({leaf(m)}, {leaf(m)})"


def coordinate(m: Maker) -> str:
    return m.one_of(f"({m.integer(0, 9)}, {m.integer(0, 9)})", f"(Int({m.integer(0, 9)}), 2)")


def array_tensor(m: Maker) -> str:
    tree = m.shape_tree(2, depth=1)
    dtype = m.dtype()
    return m.one_of(
        f"make_tensor(array({tree}, {dtype}))",
        f"make_tensor(array({elements(tree)}, {dtype}), {m.layout_of(tree, 'compact')})",
    )


def bare_tensor(m: Maker) -> str:
    tree = m.shape_tree(2)
    return f"make_tensor({pointer(m)}, {m.layout_of(tree)})"


def pointer(m: Maker) -> str:
    return m.one_of(
        f"make_gmem_ptr({m.choice((0, 16, 4096))}, {m.dtype()})",
        f"make_smem_ptr({m.choice((0, 16, 4096))}, {m.dtype()})",
        "make_smem_ptr(0, 'float16', Swizzle(3, 4, 3))",
        f"make_ptr(4096, {m.dtype()})",
        f"make_rmem_ptr(0, {m.dtype()})",
    )


def coordinate_tensor(m: Maker) -> str:
    return f"make_identity_tensor({m.shape(2)})"


def counting_tensor(m: Maker) -> str:
    return f"make_tensor(counting_iterator({m.integer(0, 50)}), {m.layout(2)})"


def tensor(m: Maker) -> str:
    return m.choice((array_tensor, bare_tensor, coordinate_tensor, counting_tensor))(m)


INSTANCES.update(
    {
        "ArithTuple": Maker.arith_tuple,
        "ArithTupleIterator": "make_inttuple_iter(42, Int(2), Int(7))",
        "ArrayEngine": lambda m: f"make_tensor(array(24, {m.dtype()}), Layout((4, 6))).engine",
        "CountingIterator": lambda m: (
            f"counting_iterator({m.integer(0, 99)}, {m.one_of(repr('int32'), repr('uint8'))})"
        ),
        "Pointer": pointer,
        "Ratio": "ratio(1, 2)",
        "ScaledBasis": basis,
        "SmemPtrFlag": "smem_ptr_flag(16)",
        "Tensor": tensor,
        "TmemPointer": "make_tmem_ptr(32, 'float16')",
    }
)

# ---- numbers with a place

add("ArithTuple", leaf, lambda m: m.shape())
add("ArithTuple", leaf, leaf, lambda m: m.basis())
add("as_arith_tuple", lambda m: m.choice((m.shape, m.basis, m.arith_tuple))())
add("E", lambda m: str(m.integer(0, 3)), lambda m: str(m.integer(0, 3)))
add("E")
add("ScaledBasis", leaf, lambda m: str(m.integer(0, 3)))
add("ScaledBasis", ratio, "0", "1")
add("Ratio", lambda m: str(m.integer(-9, 9)), lambda m: str(m.integer(1, 9)))
add("ratio", lambda m: str(m.integer(-9, 9)), lambda m: str(m.integer(1, 9)))
add("SmemPtrFlag", lambda m: m.one_of("8", "16", "32"))
add("smem_ptr_flag", lambda m: m.one_of("8", "16", "32", "4"), named={"offset": "8"})
add("basis_value", BASIS)
add("basis_get", "E(1, 0)", "(4, (5, 6))")
add("basis_get", "Int(2) * E(0)", "((4, 2), (5, 6))")
add("make_basis_like", Maker.shape)
add("make_identity_layout", Maker.shape)
add("make_identity_tensor", Maker.shape)
add("make_coord_tensor", Maker.identity)
add("make_inttuple_iter", leaf, leaf)
add("make_inttuple_iter", Maker.shape)

OPERANDS = {
    "ArithTuple": (pair, pair),
    "Ratio": (ratio, leaf),
    "ScaledBasis": (basis, basis),
    "SmemPtrFlag": (lambda m: "smem_ptr_flag(16)", leaf),
}
for kind, (instance, other) in OPERANDS.items():
    for symbol in ("add", "sub", "radd", "rsub"):
        plain = symbol.removeprefix("r")
        operation(
            f"{kind}.__{symbol}__", ("" if plain == symbol else "reflected_") + plain, instance, other, weight=0.5
        )
    operation(f"{kind}.__eq__", "eq", instance, other, weight=0.3)
    for symbol in ("mul", "rmul"):
        plain = symbol.removeprefix("r")
        operation(f"{kind}.__{symbol}__", ("" if plain == symbol else "reflected_") + plain, instance, leaf, weight=0.5)
    operation(f"{kind}.__neg__", "neg", instance, weight=0.1)
for kind in ("Ratio", "ScaledBasis", "SmemPtrFlag"):
    operation(f"{kind}.__abs__", "abs", OPERANDS[kind][0], weight=0.1)
operation(
    "ScaledBasis.__floordiv__",
    "floordiv",
    lambda m: f"ScaledBasis({m.choice((4, 8))}, 1)",
    lambda m: m.one_of("2", "Int(4)"),
)
for symbol in ("floordiv", "mod"):
    operation(f"SmemPtrFlag.__{symbol}__", symbol, "smem_ptr_flag(16)", lambda m: m.one_of("2", "Int(4)"), weight=0.2)
    operation(
        f"SmemPtrFlag.__r{symbol}__",
        f"reflected_{symbol}",
        "smem_ptr_flag(16)",
        lambda m: m.one_of("2", "64"),
        weight=0.2,
    )
operation("SmemPtrFlag.__pow__", "pow", "smem_ptr_flag(16)", lambda m: m.one_of("2", "Int(4)"), weight=0.2)
operation("SmemPtrFlag.__rpow__", "reflected_pow", "smem_ptr_flag(16)", lambda m: m.one_of("2", "64"), weight=0.2)
operation("SmemPtrFlag.__pos__", "pos", "smem_ptr_flag(16)", weight=0.1)
method("SmemPtrFlag.__format__", "smem_ptr_flag(16)", "''", weight=0.1, mutable=False)
method("SmemPtrFlag.upcast", "smem_ptr_flag(16)", lambda m: m.one_of("1", "2"))
method("SmemPtrFlag.downcast", "smem_ptr_flag(16)", lambda m: m.one_of("1", "2"))
operation("ArithTuple.__getitem__", "getitem", pair, lambda m: str(m.integer(0, 1)))
method("ScaledBasis.at", basis, lambda m: m.one_of("(0,)", "(1, 0)", "()"), leaf)
method("ScaledBasis.ceil_div", basis, lambda m: m.one_of("2", "Int(3)"))
method("ScaledBasis.safe_div", lambda m: f"ScaledBasis({m.choice((4, 8))}, 1)", lambda m: m.one_of("2", "Int(4)", "16"))
method("ScaledBasis.with_value", basis, leaf)

# ---- engines

add("ArithTupleIterator", pair)
add("CountingIterator", leaf, lambda m: m.one_of("'int32'", "'uint8'", "'float32'"))
add(
    "counting_iterator",
    lambda m: str(m.integer(-5, 300)),
    named={"dtype": lambda m: m.one_of("'int32'", "'uint8'", "'float32'")},
)
add("ArrayEngine", "array(24)", "0")
add("ArrayEngine", "array(24, 'int32')", "3", "'int32'")
add("Pointer", lambda m: m.one_of("'gmem'", "'smem'", "'rmem'"), "4096", "make_gmem_ptr(0, 'float16').dtype")
add("TmemPointer", "32", "make_gmem_ptr(0, 'float16').dtype")
for name in ("make_gmem_ptr", "make_smem_ptr", "make_rmem_ptr", "make_ptr", "make_tmem_ptr"):
    add(name, lambda m: str(m.choice((0, 16, 4096, 0x7F0000000000))) if m.chance(0.8) else "32", Maker.dtype)
add("make_smem_ptr", "0", Maker.dtype, Maker.swizzle)
operation("ArithTupleIterator.__add__", "add", "make_inttuple_iter(1, 2)", coordinate)
operation("ArithTupleIterator.__getitem__", "getitem", "make_inttuple_iter(1, 2)", coordinate)
for kind in ("ArrayEngine", "CountingIterator", "Pointer", "TmemPointer"):
    operation(f"{kind}.__add__", "add", INSTANCES[kind], lambda m: str(m.integer(0, 3)), weight=0.6)
    operation(f"{kind}.__getitem__", "getitem", INSTANCES[kind], lambda m: str(m.integer(0, 3)), weight=0.6)
for kind in ("ArrayEngine", "Pointer", "TmemPointer"):
    method(f"{kind}.recast", INSTANCES[kind], Maker.dtype)
for kind in ("ArithTupleIterator", "ArrayEngine", "CountingIterator", "Pointer", "TmemPointer", "Tensor"):
    operation(f"{kind}.__eq__", "eq", INSTANCES[kind], INSTANCES[kind], weight=0.3)
method("ArrayEngine.store", INSTANCES["ArrayEngine"], lambda m: str(m.integer(0, 23)), leaf)
entry("ArrayEngine.store", steady=True)

# ---- tensors


@calls_of("make_tensor", weight=2)
def _make_tensor(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1)
    dtype = m.dtype()
    return m.choice(
        (
            (f"array({tree}, {dtype})",),
            (f"array({elements(tree)}, {dtype})", m.layout_of(tree, "compact")),
            (pointer(m), m.layout_of(tree)),
            (pointer(m), m.tree(tree)),
            (pointer(m), m.tree(tree, "dynamic"), m.tree(m.stride_tree(tree), "dynamic")),
            (f"counting_iterator({m.integer(0, 9)})", m.tree(tree)),
            ("make_inttuple_iter(0, 0)", m.tree(tree), "(E(0), E(1))"),
            (
                (f"array({elements(tree)}, 'uint8')", m.layout_of(tree, "compact")),
                {"dtype": m.one_of("'uint8'", "'float8_e4m3fn'")},
            ),
        )
    )


add("Tensor", lambda m: m.choice((pointer, lambda n: "counting_iterator(3)"))(m), Maker.layout)


def at(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1)
    coord = m.tree(tuple(m.coord_tree(n, 0.2) for n in tree), "dynamic")
    made = m.one_of(
        f"make_tensor(array({tree}))",
        f"make_tensor(counting_iterator(3), {m.tree(tree)})",
        f"make_identity_tensor({m.tree(tree)})",
    )
    return made, [coord]


methods_of("Tensor.__call__")(at)
methods_of("Tensor.__getitem__")(at)


@methods_of("Tensor.__setitem__")
def _set(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1)
    return f"make_tensor(array({tree}, {m.dtype()}))", [m.tree(m.coord_tree(tree), "dynamic"), str(m.integer(0, 100))]


@methods_of("Tensor.domain_offset")
def _tensor_offset(m: Maker) -> Any:
    tree = m.shape_tree(2, depth=1)
    return f"make_tensor(array({tree}))", [m.tree(m.coord_tree(tree), "dynamic")]


method("Tensor.with_domain", "make_tensor(array((4, 6)))", "Layout((2, 3), (12, 2))")
method("Tensor.data", tensor, weight=0.3)
SAME = "make_tensor(make_gmem_ptr(0, 'float16'), (Int(8), Int(8)))"
for name in ("max_common_layout", "max_common_vector"):
    method(f"Tensor.{name}", tensor, tensor)
    method(f"Tensor.{name}", SAME, SAME)
add("recast", "make_tensor(make_gmem_ptr(4096, 'float16'), (Int(8), Int(4)))", Maker.dtype)
add("recast", "make_tensor(array((4, 8), 'float32'))", Maker.dtype)

# ---- text

PRINTED = (
    "'((_2,_2),_3):((_24,_2),_8)'",
    "'(4,8):(1,4)'",
    "'Sw<3,4,3> o _0 o (8,64):(64,_1)'",
    "'ArithTuple(0,_0) o (4,5):(_1@0,_1@1)'",
    "'_1@1@0'",
    "'(_128,_64)'",
    "'((_2,_32):(_32,_1),_32:_1)'",
    "'Sw<2,4,3> o smem_ptr[16b](unset) o (_8,_8):(_64,_1)'",
    "'gmem_ptr[16b](0x1000) o (4,8):(8,_1)'",
    "'counting_iter(42) o (4,5):(_1,4)'",
    "'tmem_[32b](0x0010.0020)'",
    "'Layout((Int(4), Int(8)), (Int(8), Int(1)))'",
    "'(8,(2,2)):(1,(8,16))'",
    "'_1/_2@0'",
)
add("parse", lambda m: m.choice(PRINTED), weight=2)
add("parse", lambda m: f"str({m.any_layout()})", weight=2)


@calls_of("parse")
def _damaged(m: Maker) -> Any:
    text = m.choice(PRINTED)[1:-1]
    at = m.integer(0, len(text))
    with_ = m.choice(["", "(", ")", ",", "_", ":", "@", "9" * 30, " ", "o", "N", "²", "\\n", "-", "**", "0x"])
    return (repr(text[:at] + with_ + text[at + m.integer(0, 2) :]),)


add(
    "parse",
    "'(M,N):(N,_1)'",
    named={"symbols": "{'M': sympy.Symbol('M', integer=True, positive=True)}", "dtype": "'float32'"},
)
add(
    "text",
    lambda m: m.choice(
        (m.shape, m.any_layout, m.basis, m.arith_tuple, m.swizzle, lambda: tensor(m), lambda: ratio(m))
    )(),
)
add("ostream_text", lambda m: m.choice((m.shape, m.any_layout, m.basis, m.arith_tuple, m.swizzle, lambda: tensor(m)))())


def printed_layout(m: Maker) -> str:
    return m.choice((m.layout, m.composed))(2)


add("format_layout", printed_layout)
add("print_layout", printed_layout, named={"file": "io.StringIO()"})
add("format_latex", printed_layout)
add("print_latex", printed_layout, named={"file": "io.StringIO()"})
LAYOUT_TV = "Layout((4, 2), (E(1), E(0)))"
MADE_TV = "make_layout_tv(Layout((Int(2), Int(2)), (Int(2), Int(1))), Layout((Int(1), Int(2))))"
add("format_latex_tv", LAYOUT_TV, "(2, 4)")
add("format_latex_tv", f"{MADE_TV}[1]", f"{MADE_TV}[0]")
add("print_latex_tv", LAYOUT_TV, "(2, 4)", named={"file": "io.StringIO()"})


def shown(m: Maker) -> str:
    return m.choice((array_tensor, coordinate_tensor, counting_tensor))(m)


add("format_tensor", shown, named={"header": "False", "style": lambda m: m.one_of("'cute'", "'python'")})
add("print_tensor", shown, named={"file": "io.StringIO()", "header": "True", "style": "'cute'"})
