"""The modes of a layout as the axes of a table: mode 0 runs down, mode 1 across, further modes are grouped with mode 1.

Nested modes have brackets: the innermost leaf changes from cell to cell, each bracket is one value of an outer leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cute_py.draw.table import Cell, Legend, Table, axis_limit, brackets, cut_note, labels, shown
from cute_py.errors import InvalidTypeError
from cute_py.layout.coordinate import idx2crd
from cute_py.layout.layout import domain_of
from cute_py.layout.leaf import Tree, leaf_text, value_of
from cute_py.layout.modes import group_modes
from cute_py.layout.trees import leaves, modes


@dataclass(frozen=True)
class Axis:
    """One mode as an axis: `shape` and `stride` are trees with internal leaves, `path` the mode's number or ''."""

    name: str
    shape: Tree
    stride: Tree
    path: str

    @cached_property
    def size(self) -> int:
        n = 1
        for leaf in leaves(self.shape):
            n *= int(value_of(leaf))
        return n

    @property
    def sizes(self) -> list[int]:
        return [int(value_of(leaf)) for leaf in leaves(self.shape)]

    @cached_property
    def paths(self) -> list[str]:
        """Names of the leaves: '1.0', '1.1', ..."""
        out: list[str] = []

        def walk(tree: Tree, path: str) -> None:
            if isinstance(tree, tuple):
                for i, part in enumerate(tree):
                    walk(part, f"{path}.{i}" if path else str(i))
            else:
                out.append(path or "0")

        walk(self.shape, self.path)
        return out

    @cached_property
    def steps(self) -> list[tuple[int, str]]:
        """(size, stride as text) of every leaf, innermost first."""
        return [
            (n, leaf_text(stride).replace("_", "")) for n, stride in zip(self.sizes, leaves(self.stride), strict=True)
        ]

    def terms(self, index: int) -> list[str]:
        """What the leaves add to the value at an index, those that add nothing left out: '3*8'."""
        out = []
        for size, stride in self.steps:
            index, at = divmod(index, max(size, 1))
            if at:
                out.append(f"{at}*{stride}" if not stride.startswith("-") else f"{at}*({stride})")
        return out

    def coordinate(self, index: int) -> str:
        """The natural coordinate of an index."""
        return str(idx2crd(index, self.plain)).replace(" ", "")

    @cached_property
    def plain(self) -> Any:
        """The shape as plain ints."""

        def number(tree: Tree) -> Any:
            return tuple(number(t) for t in tree) if isinstance(tree, tuple) else int(value_of(tree))

        return number(self.shape)


def _tree(tree: Tree) -> str:
    if isinstance(tree, tuple):
        return "(" + ",".join(_tree(t) for t in tree) + ")"
    return leaf_text(tree)


def axes_of(thing: Any) -> tuple[Any, Axis, Axis]:
    """(the same layout or tensor with at most two modes, the axis down, the axis across).

    Raises:
        InvalidTypeError: no layout or tensor, or sizes that are not known numbers.
    """
    domain = domain_of(thing)
    for leaf in leaves(domain._shape):
        if not isinstance(value_of(leaf), int):
            raise InvalidTypeError(
                f"a picture needs known sizes, got {leaf_text(leaf)}",
                {"layout": domain},
                "replace the symbols with layout.subs({...}) first",
            )
    rank = len(modes(domain._shape))
    if rank > 2:
        thing = group_modes(thing, 1, rank)
        domain = domain_of(thing)
    shape, stride = modes(domain._shape), modes(domain._stride)
    one = Axis("", 1, 0, "")
    if rank < 2:
        return thing, one, Axis("mode 0", shape[0], stride[0], "0") if rank else one
    across = "mode 1" if rank == 2 else f"modes 1..{rank - 1}"
    return thing, Axis("mode 0", shape[0], stride[0], "0"), Axis(across, shape[1], stride[1], "1")


def axis_text(axis: Axis) -> str:
    """Name, shape and stride of an axis."""
    return f"{axis.name} = {_tree(axis.shape)}:{_tree(axis.stride)}" if axis.name else ""


def coordinate_text(down: Axis, across: Axis, rank: int, i: int, j: int) -> str:
    """The natural coordinate of row i and column j of a layout with `rank` modes, at most two."""
    if rank == 2:
        return f"({down.coordinate(i)},{across.coordinate(j)})"
    return across.coordinate(j) if rank else "()"


def table_of(
    title: str, thing: Any, cell: Callable[[int, int, str, Any], Cell], tables: int = 1, legends: Sequence[Legend] = ()
) -> Table:
    """The table of a layout or tensor of any rank.

    Args:
        cell: (row, column, way, value) -> Cell; the way is the coordinate, and the sum that the strides make of it:
            '(1,6) -> 1*8 + 6*1'.
        tables: how many the picture has; legends: of the colours.
    """
    thing, down, across = axes_of(thing)
    rank = len(modes(domain_of(thing)._shape))
    limit = axis_limit(down.size, across.size, tables)
    rows, columns = shown(down.size, limit), shown(across.size, limit)

    def one(i: int | None, j: int | None) -> Cell | None:
        if i is None or j is None:
            return None
        sum_of = " + ".join([*down.terms(i), *across.terms(j)]) or "0"
        value = thing(i, j) if rank == 2 else thing(j) if rank else thing(())
        return cell(i, j, f"{coordinate_text(down, across, rank, i, j)} -> {sum_of}", value)

    return Table(
        title,
        tuple(tuple(one(i, j) for j in columns) for i in rows),
        labels(rows),
        labels(columns),
        axis_text(down),
        axis_text(across),
        brackets(down.sizes, down.paths, rows),
        brackets(across.sizes, across.paths, columns),
        cut_note(down.size, across.size, limit),
        tuple(legends),
    )


def plain(value: Any) -> str:
    """A value without the underscore of static numbers."""
    return str(int(value)) if isinstance(value, int) else str(value).replace("_", "")


def equals(way: str, value: str) -> str:
    """A way and the value it ends with, said once.

    >>> equals("(0,0) -> 0", "0"), equals("(0,2) -> 2*4", "8")
    ('(0,0) -> 0', '(0,2) -> 2*4 = 8')
    """
    return way if way.endswith(f" -> {value}") else f"{way} = {value}"
