"""What is given in place of one argument, or of one element of it."""

from __future__ import annotations

import ast
import dataclasses
import random

from tests.calls.call import Call

JUNK = (
    "None",
    "True",
    "False",
    "-1",
    "0",
    "1",
    "3",
    "7",
    "-2**63",
    "2**31",
    "2**64",
    "2**127",
    "2**200",
    "-2**200",
    "10**5000",
    "1.5",
    "0.0",
    "float('nan')",
    "float('inf')",
    "1j",
    "''",
    "'x'",
    "'_1:_0'",
    "'12'",
    "b''",
    "b'abc'",
    "bytearray(3)",
    "()",
    "(1,)",
    "(2, 3)",
    "(None, 2)",
    "((2, (3,)), ())",
    "(2, 'x')",
    "(2**64, 2)",
    "(-1, 2)",
    "(0, 0)",
    "tuple(range(40))",
    "tuple(range(5000))",
    "nested(30)",
    "nested(3000)",
    "[]",
    "[1, 2]",
    "[[1], [2, [3]]]",
    "{}",
    "{'a': 1}",
    "{1, 2}",
    "range(3)",
    "iter(())",
    "numpy.int64(4)",
    "numpy.float32(1.5)",
    "numpy.bool_(True)",
    "numpy.uint8(255)",
    "numpy.array(5)",
    "numpy.arange(3)",
    "numpy.zeros((2, 3), numpy.float16)",
    "numpy.zeros(0, numpy.uint8)",
    "numpy.array(['a'])",
    "numpy.array([None, object()], dtype=object)",
    "numpy.float16",
    "sympy.Symbol('n')",
    "sympy.Symbol('M', integer=True, positive=True)",
    "sympy.Integer(4)",
    "sympy.Rational(1, 2)",
    "sympy.oo",
    "sympy.Matrix([[1]])",
    "Exception()",
    "object()",
    "int",
    "Layout",
    "NotImplemented",
    "...",
    "slice(None)",
    "slice(2, 0)",
    "Int(4)",
    "Int(-3)",
    "Int(0)",
    "_",
    "E(0)",
    "2 * E(1, 0)",
    "ratio(1, 2)",
    "ArithTuple(1, (2, 3))",
    "Layout((Int(4), 2), (2, Int(8)))",
    "Layout(())",
    "Layout(5, 0)",
    "Layout(2**62, 2**62)",
    "Layout(10**9)",
    "Layout((10**5, 10**5), (1, 10**5))",
    "make_tensor(counting_iterator(0), (10**4, 10**4))",
    "'_1@9999999'",
    "'((((9)**64)**64)**64)**64'",
    "'(M,N):(N,_1)'",
    "'M' + ' ' * 3000",
    "'(' * 1500",
    "Layout(sympy.Symbol('M', integer=True, positive=True))",
    "ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 64), (64, 1)))",
    "make_identity_layout((4, 5))",
    "make_identity_tensor((4, 5))",
    "make_gmem_ptr(16, 'float16')",
    "make_tensor(make_gmem_ptr(16, 'float16'), (4, 5))",
    "Swizzle(2, 0, 3)",
    "numpy.int8(-128)",
    "2**63",
    "E(9)",
    "fractions.Fraction(1, 2)",
    "datetime.datetime(2026, 1, 1)",
    "'\\ud800'",
    "'x_64'.replace('x', '\u0445')",
    "targets",
    "tma.Op",
    "tma.Op.SM90_TMA_LOAD",
    "tiled_mma()",
    "load_atom()",
    "Answering()",
    "Agreeable()",
    "Itself()",
    "endless()",
    "endless_tuples()",
    "deep_list(30)",
    "deep_list(3000)",
    "deep_dict(3000)",
    "(2, deep_list(900))",
    "broad(1 << 40)",
    "broad(1 << 20, 1 << 20)",
    "lambda *args, **options: 1",
    "print",
)
"""Texts; most are wrong for most arguments, some only unusual."""


def _places(tree: ast.expr) -> list[ast.expr]:
    """The argument and every element of it that stands in a tuple, list or dict display."""
    found = [tree]
    if isinstance(tree, ast.Tuple | ast.List):
        for element in tree.elts:
            found += _places(element)
    elif isinstance(tree, ast.Dict):
        for element in tree.values:
            found += _places(element)
    return found


def _nearby(tree: ast.expr, source: random.Random) -> str | None:
    """Something like it: another number, a damaged text, a sequence with an element more or less."""
    if isinstance(tree, ast.Constant) and type(tree.value) is int:
        number = tree.value
        return source.choice((f"-{number}", f"({number} + 1)", f"({number} * 3)", f"({number} << 40)", f"{number}.0"))
    if isinstance(tree, ast.Constant) and isinstance(tree.value, str) and tree.value:
        at = source.randrange(len(tree.value))
        return repr(tree.value[:at] + source.choice(("", "x", " ", "\u0663", "9" * 400)) + tree.value[at + 1 :])
    if isinstance(tree, ast.Tuple | ast.List) and tree.elts:
        parts = [ast.unparse(element) for element in tree.elts]
        at = source.randrange(len(parts))
        parts = source.choice((parts[:at] + parts[at + 1 :], [*parts, parts[at]], parts[::-1], parts * 8))
        inner = ", ".join(parts)
        return f"[{inner}]" if isinstance(tree, ast.List) else f"({inner}{',' if len(parts) == 1 else ''})"
    return None


def mutated_text(text: str, source: random.Random) -> str:
    """An argument with itself or one element replaced."""
    junk = source.choice(JUNK)
    if source.random() < 0.35:
        return junk
    try:
        place = source.choice(_places(ast.parse(text, mode="eval").body))
    except (SyntaxError, RecursionError):
        return junk
    lines = text.encode()
    start, end = place.col_offset, place.end_col_offset
    if place.lineno != 1 or place.end_lineno != 1 or end is None:
        return junk
    if source.random() < 0.5:
        junk = _nearby(place, source) or junk
    return (lines[:start] + junk.encode() + lines[end:]).decode()


def mutated(call: Call, source: random.Random) -> Call:
    """The call with one argument mutated; itself where it has none that may be."""
    args = list(call.args or ())
    kwargs = list(call.kwargs)
    places = [*range(call.fixed, len(args)), *range(len(args), len(args) + len(kwargs))]
    if not places:
        return call
    at = source.choice(places)
    if at < len(args):
        args[at] = mutated_text(args[at], source)
    else:
        key, text = kwargs[at - len(args)]
        kwargs[at - len(args)] = (key, mutated_text(text, source))
    return dataclasses.replace(call, args=tuple(args), kwargs=tuple(kwargs))
