"""The Python notation of layout algebra, in C++.

`L((4,8),(8,1))` is a layout, `E([0,1])` a basis, `S(2,0)` a scaled one, `SW(3,4,3)` a swizzle, `None` an underscore,
a tuple a tuple; every integer is a static one but those in `D(...)`. A call of any other name is the C++ function of
that name. What C++ takes as template arguments is written here as the last arguments: `upcast(layout, 2)`.

>>> cpp("composition(L((4,D(8)),(8,1)), (None,2))")
'composition(make_layout(cute::make_tuple(Int<4>{},8),cute::make_tuple(Int<8>{},Int<1>{})),cute::make_tuple(_,Int<2>{}))'
"""

from __future__ import annotations

import ast

TEMPLATE_ARGUMENTS = {"upcast": 1, "downcast": 1, "group": 2, "get": 1, "take": 2}
"""function -> how many of its last arguments are template arguments in C++"""

NAMES = {"slice_": "slice"}
"""function -> its name in C++, where Python's own got in the way"""

OPERATORS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


class NotationError(ValueError):
    """An expression that the notation does not have."""


def static_integer(number: int) -> str:
    """A static integer: `Int` up to 32 bits, `C` above.

    >>> static_integer(4), static_integer(2**40)
    ('Int<4>{}', 'C<1099511627776ll>{}')
    """
    return f"Int<{number}>{{}}" if -(2**31) <= number < 2**31 else f"C<{number}ll>{{}}"


def dynamic_integer(number: int) -> str:
    """A run-time integer, of 64 bits where 32 do not hold it."""
    return str(number) if -(2**31) <= number < 2**31 else f"{number}ll"


def tupled(items: list[str]) -> str:
    return f"cute::make_tuple({','.join(items)})"


def cpp(expression: str) -> str:
    """The C++ expression."""
    return _cpp(ast.parse(expression.strip(), mode="eval").body)


def _integer(node: ast.expr) -> int:
    value = ast.literal_eval(node)
    if type(value) is not int:
        raise NotationError(f"{ast.unparse(node)}: an integer is wanted here")
    return value


def _path(node: ast.expr) -> str:
    modes = node.elts if isinstance(node, ast.List) else [node]
    return f"E<{','.join(str(_integer(mode)) for mode in modes)}>{{}}"


def _cpp(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=None):
            return "_"
        case ast.Constant(value=str(words)):  # C++ as it is: LayoutRight{}
            return words
        case ast.Constant() | ast.UnaryOp():
            return static_integer(_integer(node))
        case ast.Tuple(elts=items):
            return tupled([_cpp(item) for item in items])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return f"({_cpp(left)}{OPERATORS[type(op)]}{_cpp(right)})"
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, arguments)
        case ast.Call(func=function, args=arguments, keywords=[]):  # a layout of a coordinate
            return f"{_cpp(function)}({','.join(_cpp(a) for a in arguments)})"
    raise NotationError(f"{ast.unparse(node)}: not a form of the notation")


def _call(name: str, arguments: list[ast.expr]) -> str:
    match name, arguments:
        case "D", [number]:
            return dynamic_integer(_integer(number))
        case "E", []:
            return "E<>{}"
        case "E", [path]:
            return _path(path)
        case "S", [value, path]:
            return f"({_cpp(value)}*{_path(path)})"
        case "SW", [bits, base, shift]:
            return f"Swizzle<{_integer(bits)},{_integer(base)},{_integer(shift)}>{{}}"
        case "L", [_] | [_, _]:
            return f"make_layout({','.join(_cpp(a) for a in arguments)})"
        case (("D" | "E" | "S" | "SW" | "L"), _):
            raise NotationError(f"{name} does not take {len(arguments)} arguments")
    count = TEMPLATE_ARGUMENTS.get(name, 0)
    plain, templated = arguments[: len(arguments) - count], arguments[len(arguments) - count :]
    brackets = f"<{','.join(str(_integer(a)) for a in templated)}>" if templated else ""
    return f"{NAMES.get(name, name)}{brackets}({','.join(_cpp(a) for a in plain)})"
