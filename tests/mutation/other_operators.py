"""Changes that `operators` does not make: a statement left out, arguments swapped, another result, a looser test."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Changes = Callable[[ast.AST], Iterator[ast.AST]]

LOOSER: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.GtE, ast.LtE),
    ast.NotEq: (ast.Gt, ast.Lt),
    ast.Lt: (ast.NotEq,),
    ast.Gt: (ast.NotEq,),
    ast.LtE: (ast.Eq,),
    ast.GtE: (ast.Eq,),
}
"""`operators` changes `<` to `<=`, and `==` to `!=`; these keep one side of what was compared."""

NOT_SWAPPED = frozenset(
    {"max", "min", "gcd", "lcm", "isinstance", "issubclass", "hasattr", "getattr", "__setattr__", "cast"}
)
"""Functions whose arguments may stand in any order, or whose arguments in another order are no call at all."""

SEQUENCES = ("tuple", "list", "np.ndarray", "NDArray", "Array")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def other_changes(tree: ast.Module) -> Changes:
    """The changes of a node of this file: `python -m tests.mutation run --operators others`."""
    left_out = {id(node) for node in may_be_left_out(tree)}
    results = {id(node): annotation for node, annotation in annotated_results(tree)}
    conditions = {id(node.test) for node in ast.walk(tree) if isinstance(node, ast.If | ast.IfExp | ast.While)}

    def changes(node: ast.AST) -> Iterator[ast.AST]:
        if id(node) in left_out:
            yield ast.copy_location(ast.Pass(), node)
        if isinstance(node, ast.Call):
            yield from swapped(node)
        elif isinstance(node, ast.Return) and id(node) in results:
            yield from other_results(node, results[id(node)])
        elif isinstance(node, ast.Compare):
            yield from looser(node)
        elif isinstance(node, ast.BoolOp):
            yield from one_less(node)
        if id(node) in conditions and isinstance(node, ast.Compare | ast.Call | ast.Name | ast.Attribute):
            for value in (True, False):
                yield ast.copy_location(ast.Constant(value), node)

    return changes


def of_one_scope(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of the functions in it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def may_be_left_out(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements of functions without which no name is unknown.

    `operators` leaves out calls. An assignment of a name counts only where the name is assigned elsewhere, too: without
    it every use of the name would fail. The last `return` of a function is not one of them: `operators` makes it None.
    """
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        nodes = list(of_one_scope(function))
        names = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        names += [a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)]
        again = {name for name in names if names.count(name) > 1}
        for node in nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                stored = {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name) and is_stored(n)}
                if stored <= again and getattr(node, "value", None) is not None:
                    yield node
            elif isinstance(node, ast.Return):
                if node is not function.body[-1] and node.value is not None:
                    yield node
            elif isinstance(node, ast.AugAssign | ast.Raise | ast.If | ast.For | ast.While | ast.Delete):
                yield node


def is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def annotated_results(tree: ast.Module) -> Iterator[tuple[ast.Return, str]]:
    """Each `return` of a value, and the type that its function says it has."""
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        if function.name == "__hash__":  # every other number is a hash as well
            continue
        said = ast.unparse(function.returns).strip("'\"") if function.returns else ""
        for node in of_one_scope(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield node, said


def swapped(call: ast.Call) -> Iterator[ast.Call]:
    """Two neighbours among the arguments exchanged, by position or between two names."""
    name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
    if name in NOT_SWAPPED:
        return
    for i, (a, b) in enumerate(zip(call.args, call.args[1:], strict=False)):
        if not isinstance(a, ast.Starred) and not isinstance(b, ast.Starred) and ast.dump(a) != ast.dump(b):
            new = copy.copy(call)
            new.args = [*call.args[:i], b, a, *call.args[i + 2 :]]
            yield new
    for i, (k, m) in enumerate(zip(call.keywords, call.keywords[1:], strict=False)):
        if k.arg and m.arg and ast.dump(k.value) != ast.dump(m.value):
            exchanged = [ast.keyword(k.arg, m.value), ast.keyword(m.arg, k.value)]
            new = copy.copy(call)
            new.keywords = [*call.keywords[:i], *exchanged, *call.keywords[i + 2 :]]
            yield new


def other_results(node: ast.Return, said: str) -> Iterator[ast.Return]:
    """Another value of the type that the function says: negated, one more, one character or element less, reversed."""
    value = f"({ast.unparse(node.value or ast.Constant(None))})"
    if is_literal(node.value):
        return
    if said == "bool" or said.startswith("TypeGuard"):
        texts = [f"not {value}"]
    elif said in ("int", "float", "Leaf"):
        texts = [f"{value} + 1", f"-{value}"]
    elif said == "str":
        texts = [f"{value}[:-1]"]
    elif said.startswith(SEQUENCES) and "|" not in said:
        texts = [f"{value}[::-1]", f"{value}[:-1]"]
    elif isinstance(node.value, ast.Tuple) and len(node.value.elts) > 1:
        texts = [f"{value}[::-1]"]
    else:
        texts = []
    for text in texts:
        expression = ast.parse(text, mode="eval").body
        for part in ast.walk(expression):
            ast.copy_location(part, node)
        yield ast.copy_location(ast.Return(expression), node)


def is_literal(node: ast.AST | None) -> bool:
    """A number or truth, which `operators` changes, or what an operation returns that does not know its operand."""
    if isinstance(node, ast.Name):
        return node.id == "NotImplemented"
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def looser(node: ast.Compare) -> Iterator[ast.Compare]:
    for i, operation in enumerate(node.ops):
        for other in LOOSER.get(type(operation), ()):
            if not isinstance(node.comparators[i], ast.Constant) or is_number(node.comparators[i]):
                new = copy.copy(node)
                new.ops = [*node.ops[:i], other(), *node.ops[i + 1 :]]
                yield new


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def one_less(node: ast.BoolOp) -> Iterator[ast.expr]:
    """A condition of several without one of them."""
    for i in range(len(node.values)):
        rest = [*node.values[:i], *node.values[i + 1 :]]
        if len(rest) == 1:
            yield rest[0]
        else:
            new = copy.copy(node)
            new.values = rest
            yield new
