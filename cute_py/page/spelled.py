"""Write layouts in other languages: C++ and CuTe DSL.

((2,2),4):((1,8),2)   make_layout(make_shape(make_shape(2, 2), 4), make_stride(make_stride(1, 8), 2))     C++
                      cute.make_layout(((2, 2), 4), stride=((1, 8), 2))                              CuTe DSL
"""

from __future__ import annotations

from typing import Any

from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, leaf_text, value_of
from cute_py.layout.recast import SmemPtrFlag
from cute_py.layout.swizzle import Swizzle


def _cpp_leaf(leaf: Any) -> str:
    if isinstance(leaf, ScaledBasis):
        basis = f"E<{','.join(map(str, leaf.modes))}>{{}}"
        return basis if value_of(leaf.value) == 1 else f"{_cpp_leaf(leaf.value)} * {basis}"
    return f"Int<{int(leaf)}>{{}}" if isinstance(leaf, Int) else leaf_text(leaf)


def _cpp_tree(tree: Any, made: str) -> str:
    if isinstance(tree, tuple):
        return f"{made}({', '.join(_cpp_tree(part, made) for part in tree)})"
    return _cpp_leaf(tree)


def cpp(thing: Any) -> str:
    """The C++ expression for a layout, a composed layout, a swizzle, a number or a tiler.

    >>> cpp(Layout((Int(4), 8), (8, Int(1))))
    'make_layout(make_shape(Int<4>{}, 8), make_stride(8, Int<1>{}))'
    """
    if isinstance(thing, Layout):
        return f"make_layout({_cpp_tree(thing.shape, 'make_shape')}, {_cpp_tree(thing.stride, 'make_stride')})"
    if isinstance(thing, Swizzle):
        return f"Swizzle<{thing.bits},{thing.base},{thing.shift}>{{}}"
    if isinstance(thing, ComposedLayout):
        start = thing.offset
        offset = (
            f"smem_ptr_flag_bits<{start.bits}>{{}}"
            if isinstance(start, SmemPtrFlag)
            else _cpp_tree(start, "make_tuple")
        )
        return f"make_composed_layout({cpp(thing.outer)}, {offset}, {cpp(thing.inner)})"
    if isinstance(thing, tuple):
        return f"make_tile({', '.join(map(cpp, thing))})"
    return _cpp_leaf(thing)


def _plain(tree: Any) -> str:
    if isinstance(tree, tuple):
        return f"({', '.join(map(_plain, tree))}{',' if len(tree) == 1 else ''})"
    if isinstance(tree, ScaledBasis):
        return f"cute.ScaledBasis({_plain(tree.value)}, {list(tree.modes)})"
    return leaf_text(tree).replace("_", "")


def dsl(thing: Any) -> str | None:
    """The CuTe DSL expression for the same objects as `cpp`; None if CuTe DSL has none.

    >>> dsl(Layout((Int(4), 8), (8, Int(1))))
    'cute.make_layout((4, 8), stride=(8, 1))'
    """
    if isinstance(thing, Layout):
        return f"cute.make_layout({_plain(thing.shape)}, stride={_plain(thing.stride)})"
    if isinstance(thing, Swizzle):
        return f"cute.make_swizzle({thing.bits}, {thing.base}, {thing.shift})"
    if isinstance(thing, ComposedLayout):
        outer, inner = dsl(thing.outer), dsl(thing.inner)
        if outer is None or inner is None or isinstance(thing.offset, SmemPtrFlag):
            return None
        return f"cute.make_composed_layout({outer}, {_plain(thing.offset)}, {inner})"
    if isinstance(thing, tuple):
        parts = [dsl(part) for part in thing]
        return None if None in parts else f"({', '.join(map(str, parts))})"
    return _plain(thing)
