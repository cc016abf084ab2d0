"""Random arguments as source text: trees of integers, layouts, coordinates, tensors' element types."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")

DTYPES = ("float16", "bfloat16", "float32", "uint8", "int32", "float64", "float8_e4m3fn", "int16", "uint16", "int64")
SUB_BYTE = ("int4", "uint4", "float4_e2m1fn", "float6_e3m2fn")
ARCHITECTURES = ("sm_90", "sm_90a", "sm_100a", "sm_100", "sm_103a", "sm_110a", "sm_120a", "sm_80")

Tree = Any


def flat(tree: Tree) -> list[Any]:
    return [leaf for mode in tree for leaf in flat(mode)] if isinstance(tree, tuple) else [tree]


def filled(tree: Tree, leaves: Iterator[Any]) -> Tree:
    return tuple(filled(mode, leaves) for mode in tree) if isinstance(tree, tuple) else next(leaves)


def elements(tree: Tree) -> int:
    return math.prod(flat(tree))


class Maker:
    """Draws arguments from one `random.Random`."""

    def __init__(self, source: random.Random) -> None:
        self.random = source

    def choice(self, items: Sequence[Item]) -> Item:
        return self.random.choice(items)

    def chance(self, of: float) -> bool:
        return self.random.random() < of

    def integer(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def one_of(self, *texts: str) -> str:
        return self.random.choice(texts)

    def dtype(self) -> str:
        return repr(self.choice(DTYPES))

    def arch(self) -> str:
        return repr(self.choice(ARCHITECTURES))

    # Trees, as tuples of ints

    def shape_tree(self, rank: int | None = None, depth: int = 2, sizes: Sequence[int] = (1, 2, 3, 4, 5, 6, 8)) -> Tree:
        """A shape of at most 512 elements; `rank` None draws one, where 0 is a bare integer."""
        chosen = self.choice((0, 1, 2, 2, 2, 3)) if rank is None else rank
        if chosen == 0:
            return self.choice(sizes)
        while True:
            tree = tuple(
                self.shape_tree(self.choice((1, 2, 2)), depth - 1, sizes)
                if depth > 1 and self.chance(0.25)
                else self.choice(sizes)
                for _ in range(chosen)
            )
            if elements(tree) <= 512:
                return tree

    def stride_tree(self, shape: Tree, kind: str | None = None) -> Tree:
        """Strides of a kind: compact (in any order of modes), gaps, zeros, wild, negative, left."""
        chosen = kind or self.choice(("compact", "compact", "gaps", "zeros", "wild", "negative"))
        sizes = flat(shape)
        if chosen == "wild":
            return filled(shape, iter([self.integer(0, 40) for _ in sizes]))
        steps = [0] * len(sizes)
        end = 1
        order = list(range(len(sizes)))
        if chosen != "left":
            self.random.shuffle(order)
        for i in order:
            if chosen == "gaps" and self.chance(0.5):
                end *= self.integer(2, 3)
            steps[i] = end
            end *= sizes[i]
        if chosen == "zeros":
            steps = [0 if self.chance(0.34) else step for step in steps]
        if chosen == "negative":
            steps = [-step if self.chance(0.5) else step for step in steps]
        return filled(shape, iter(steps))

    def coord_tree(self, shape: Tree, keep: float = 0.0) -> Tree:
        """A coordinate within a shape; each leaf is None with the chance `keep`."""
        if isinstance(shape, tuple) and self.chance(0.8):
            return tuple(self.coord_tree(mode, keep) for mode in shape)
        if self.chance(keep):
            return None
        return self.integer(0, max(elements(shape) - 1, 0))

    # Text of trees

    def leaf(self, number: int | None, how: str) -> str:
        if number is None:
            return self.one_of("None", "_")
        static = how == "static" or (how == "mixed" and self.chance(0.5))
        return f"Int({number})" if static else str(number)

    def tree(self, tree: Tree, how: str | None = None) -> str:
        """Text of a tree of numbers: its leaves `Int` (static), plain (dynamic), or mixed."""
        kind = how or self.choice(("static", "dynamic", "mixed"))
        if not isinstance(tree, tuple):
            return self.leaf(tree, kind)
        inner = ", ".join(self.tree(mode, kind) for mode in tree)
        return f"({inner},)" if len(tree) == 1 else f"({inner})"

    def shape(self, rank: int | None = None, how: str | None = None) -> str:
        return self.tree(self.shape_tree(rank), how)

    def layout_of(self, shape: Tree, kind: str | None = None, how: str | None = None) -> str:
        how = how or self.choice(("static", "static", "dynamic", "mixed"))
        if kind is None and self.chance(0.2):
            major = self.one_of("", ", LayoutRight", ", LayoutLeft")
            return f"Layout({self.tree(shape, how)}{major})"
        return f"Layout({self.tree(shape, how)}, {self.tree(self.stride_tree(shape, kind), how)})"

    def layout(self, rank: int | None = None, kind: str | None = None, how: str | None = None) -> str:
        return self.layout_of(self.shape_tree(rank), kind, how)

    def power_layout(self, rank: int | None = None, how: str | None = None, kind: str = "compact") -> str:
        return self.layout_of(self.shape_tree(rank, sizes=(2, 4, 8)), kind, how)

    def swizzle(self) -> str:
        bits = self.integer(0, 3)
        shift = self.integer(max(bits, 1), 4) * self.choice((1, 1, 1, -1))
        return f"Swizzle({bits}, {self.integer(0, 4)}, {shift})"

    def composed(self, rank: int | None = None) -> str:
        offset = self.one_of("0", "Int(0)", "Int(8)", "smem_ptr_flag(16)")
        return f"ComposedLayout({self.swizzle()}, {offset}, {self.power_layout(rank, 'static')})"

    def any_layout(self, rank: int | None = None) -> str:
        return self.composed(rank) if self.chance(0.2) else self.layout(rank)

    def basis(self) -> str:
        modes = ", ".join(str(self.integer(0, 2)) for _ in range(self.integer(1, 2)))
        scale = self.one_of("", f"{self.integer(1, 9)} * ", f"Int({self.integer(1, 9)}) * ")
        return f"{scale}E({modes})"

    def arith_tuple(self) -> str:
        return f"ArithTuple({', '.join(self.shape(self.choice((0, 0, 0, 2))) for _ in range(self.integer(1, 3)))})"

    def identity(self) -> str:
        return f"make_identity_layout({self.shape()})"

    def tiler(self, shape: Tree, how: str | None = None) -> str:
        """A tiler that divides the modes of a shape: a tuple of sizes, a size, or layouts."""
        modes = shape if isinstance(shape, tuple) else (shape,)
        parts = [self.choice([d for d in (1, 2, 3, 4, 8) if elements(mode) % d == 0]) for mode in modes]
        kind = self.choice(("tuple", "tuple", "layouts", "first"))
        how = how or "static"
        if kind == "first" or not isinstance(shape, tuple):
            return self.tree(parts[0], how)
        if kind == "layouts":
            return f"({', '.join(f'Layout({self.tree(p, how)})' for p in parts)},)"
        return self.tree(tuple(parts), how)
