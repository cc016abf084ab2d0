"""The mutants of a source file: one changed comparison, operator, number, condition, result or call each.

`other_operators` has a second set of changes, for a sample of mutants that the tests were not written against.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from tests.mutation.other_operators import Changes, other_changes

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file: its line, what stood there, what stands there now; `number` finds it again."""

    number: int
    line: int
    column: int
    before: str
    after: str

    @property
    def text(self) -> str:
        return f"{self.line}:{self.column}: {self.before} -> {self.after}"


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of one node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        new = copy.copy(node)
        new.ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield new
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not of_texts(node):
        new_operation = copy.copy(node)
        new_operation.op = OPERATORS[type(node.op)]()
        yield new_operation
    elif isinstance(node, ast.BoolOp):
        other = copy.copy(node)
        other.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield other
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield ast.copy_location(ast.Constant(node.value + 1), node)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield ast.copy_location(ast.Constant(not node.value), node)
    elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        flipped = copy.copy(node)
        flipped.test = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test)
        yield flipped
    elif isinstance(node, ast.Return) and node.value is not None and not is_none(node.value):
        yield ast.copy_location(ast.Return(ast.copy_location(ast.Constant(None), node)), node)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.copy_location(ast.Pass(), node)
    elif isinstance(node, ast.Break | ast.Continue):
        yield ast.copy_location(ast.Continue() if isinstance(node, ast.Break) else ast.Break(), node)


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def of_texts(node: ast.BinOp) -> bool:
    """`%` and `+` of texts, which no test of a value reads."""
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in (node.left, node.right)
    )


def outside_of_code(tree: ast.Module) -> set[int]:
    """ids of the nodes that do not run, or only make a message: annotations, texts, `if TYPE_CHECKING`."""
    found: set[int] = set()
    for node in ast.walk(tree):
        skipped: list[ast.AST | None] = []
        if isinstance(node, ast.JoinedStr):
            skipped.append(node)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped += [node.returns, *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg))]
            skipped += node.decorator_list
        elif isinstance(node, ast.ClassDef):
            skipped += node.decorator_list
        elif isinstance(node, ast.AnnAssign):
            skipped.append(node.annotation)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            skipped.append(node)
        for top in skipped:
            if top is not None:
                found.update(id(n) for n in ast.walk(top))
    return found


Place = tuple[ast.AST, str, int | None, ast.AST]
"""A node, its field, the index in it where it is a list, and what may stand there instead."""


SETS = ("own", "others")
"""The sets of operators: those of this file, and those of `other_operators`."""


def changes_of(tree: ast.Module, operators: str) -> Changes:
    return other_changes(tree) if operators == "others" else changes


def places(tree: ast.Module, operators: str) -> Iterator[Place]:
    """All changes of a file, in an order that its text alone decides."""
    skipped, changed = outside_of_code(tree), changes_of(tree, operators)
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            for i, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST) and id(child) not in skipped and hasattr(child, "lineno"):
                    for new in changed(child):
                        yield node, name, i if isinstance(value, list) else None, new


def standing(place: Place) -> ast.AST:
    node, name, i, _ = place
    value = getattr(node, name)
    found = value if i is None else value[i]
    return cast(ast.AST, found)


def mutants(source: str, operators: str = "own") -> list[Mutant]:
    """All mutants of a file."""
    found = []
    for number, place in enumerate(places(ast.parse(source), operators)):
        child = cast(ast.expr, standing(place))
        before, after = (ast.unparse(x) for x in (child, place[3]))
        if operators == "own":
            before, after = (text.split("\n")[0][:80] for text in (before, after))
        else:
            before, after = told_apart(before, after)
        found.append(Mutant(number, child.lineno, child.col_offset, before, after))
    return found


def told_apart(before: str, after: str) -> tuple[str, str]:
    """Both on one line, a long one by its ends, or, if these are alike, from a little before what differs."""
    before, after = " ".join(before.split()), " ".join(after.split())
    short = [text if len(text) <= 80 else f"{text[:48]}...{text[-29:]}" for text in (before, after)]
    if short[0] == short[1]:
        start = max(0, next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0) - 20)
        short = [text[start : start + 80] for text in (before, after)]
    return short[0], short[1]


def mutated(source: str, number: int, operators: str = "own") -> str:
    """The text of a file with one mutant in it."""
    return ast.unparse(mutated_tree(source, number, operators))


def mutated_tree(source: str, number: int, operators: str = "own") -> ast.Module:
    """The same as a tree, whose lines are those of the file."""
    tree = ast.parse(source)
    place = next(p for i, p in enumerate(places(tree, operators)) if i == number)
    node, name, i, new = place
    if i is None:
        setattr(node, name, new)
    else:
        getattr(node, name)[i] = new
    return ast.fix_missing_locations(tree)
