"""Format layouts, tensors and tilers as types in an MLIR dump: `!cute.layout<(128,64),(64,1)>`.

A known integer prints without the underscore of CuTe's own text, and an unknown integer prints as `?`. The two dialects
differ. The TMA Atoms reference page prints run-time integers of known value as integers, and a layout as shape and
stride with a comma between them. The public builder of CuTe DSL prints `?` for integers that are not static, and prints
CuTe's text in quotes: `!cute.layout<"(128,64):(64,1)">`.
"""

from __future__ import annotations

from cute_py.argument_checks import expect, has
from cute_py.errors import integer_text
from cute_py.layout.arguments import Leaf, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int, as_leaf, is_symbolic
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import check_depth, is_underscore
from cute_py.tensor.pointers import Pointer, TmemPointer
from cute_py.tensor.tensor import Tensor

__all__ = ["type_text"]


def mlir_leaf(leaf: Leaf, known: bool = True) -> str:
    """Format one integer or basis element.

    Args:
        known: whether run-time integers of known value print as integers; otherwise they print as `?`.

    >>> mlir_leaf(Int(64)), mlir_leaf(64), mlir_leaf(64, known=False)
    ('64', '64', '?')
    """
    if isinstance(leaf, int):
        return integer_text(int(leaf)) if known or isinstance(leaf, Int) else "?"
    if has(leaf, "modes", "value"):
        return mlir_leaf(leaf.value, known) + "".join(f"@{mode}" for mode in reversed(leaf.modes))  # type: ignore[attr-defined]
    if is_symbolic(leaf):
        return "?"
    if not is_underscore(leaf):
        as_leaf(leaf)  # refuses objects without such a text
    return str(leaf).replace("_", "")


def mlir_tree(tree: Tree, known: bool = True) -> str:
    """Format a shape, stride or coordinate.

    >>> mlir_tree((Int(4), (2, 3)))
    '(4,(2,3))'
    """
    if hasattr(type(tree), "as_tuple"):
        tree = tree.as_tuple()  # type: ignore[union-attr]
    if type(tree) is tuple:
        check_depth(tree)
        return "(" + ",".join(mlir_tree(x, known) for x in tree) + ")"
    return mlir_leaf(tree, known)


def layout_text(layout: object, known: bool = True) -> str:
    """Format a layout, swizzle or composed layout, without the enclosing type.

    >>> from cute_py.layout.swizzle import Swizzle
    >>> layout_text(ComposedLayout(Swizzle(3, 4, 3), Int(0), Layout((Int(8), Int(64)), (Int(64), Int(1)))))
    'S<3,4,3> o 0 o (8,64):(64,1)'
    """
    if isinstance(layout, Layout):
        return f"{mlir_tree(layout.shape, known)}:{mlir_tree(layout.stride, known)}"
    if isinstance(layout, Swizzle):
        return f"S<{layout.bits},{layout.base},{layout.shift}>"
    if isinstance(layout, ComposedLayout):
        parts = (layout_text(layout.outer, known), mlir_tree(layout.offset, known), layout_text(layout.inner, known))
        return " o ".join(parts)
    return str(layout)


def _type(name: str, quoted: bool, *parts: str) -> str:
    """Format a type with its parts; with `quoted`, the parts are in quotes and separated by spaces."""
    inner = ", ".join(f'"{part}"' for part in parts) if quoted else ",".join(parts)
    return f"!cute.{name}<{inner}>"


def type_text(value: object, known: bool = True, quoted: bool = False) -> str:
    """Format the type of an operand. A tensor in memory prints its layout; a coordinate tensor also prints its origin.

    Args:
        known: whether run-time integers of known value print as integers; otherwise they print as `?`.
        quoted: print a layout as CuTe DSL does, in CuTe's notation and in quotes; otherwise shape, comma, stride.

    >>> tile = Layout((Int(64), Int(32)), (Int(32), Int(1)))
    >>> type_text(tile), type_text(tile, quoted=True)
    ('!cute.layout<(64,32),(32,1)>', '!cute.layout<"(64,32):(32,1)">')
    >>> from cute_py.tensor.tensor import make_identity_tensor
    >>> type_text(make_identity_tensor((1024, 256)))
    '!cute.coord_tensor<(0,0),(1024,256),(1@0,1@1)>'
    """
    expect(known, bool, "known")
    expect(quoted, bool, "quoted")
    if isinstance(value, Layout):
        return _type("layout", quoted, *_parts(value, known, quoted))
    if isinstance(value, ComposedLayout):
        return _type("composed_layout", quoted, layout_text(value, known))
    if isinstance(value, Swizzle):
        return _type("swizzle", quoted, layout_text(value))
    if isinstance(value, Tensor):
        coord = getattr(value.engine, "coord", None)
        if coord is None or not isinstance(value.layout, Layout):
            return type_text(value.layout, known, quoted)
        return _type("coord_tensor", quoted, mlir_tree(coord, known), *_parts(value.layout, known, quoted))
    if isinstance(value, (Pointer, TmemPointer)):
        return f"!cute.ptr<{value.dtype.name}, {value.space}>"
    if value is None or isinstance(value, (bool, float, str)):
        return repr(value)
    if type(value) is tuple and all(isinstance(x, Layout) for x in value) and value:
        return tile_text(value, known, quoted)
    if type(value) is tuple or isinstance(value, int) or is_symbolic(value):
        return _type("shape", quoted, mlir_tree(value, known))
    return f"a Python {type(value).__name__}"


def _parts(layout: Layout, known: bool, quoted: bool) -> tuple[str, ...]:
    """Format the text between the brackets of a layout type."""
    if quoted:
        return (layout_text(layout, known),)
    return mlir_tree(layout.shape, known), mlir_tree(layout.stride, known)


def tile_text(tiler: Tree, known: bool = True, quoted: bool = False) -> str:
    """Format the type of a tiler; a size n prints as `n:1`.

    >>> tile_text((Int(128), Int(64)))
    '!cute.tile<[128:1;64:1]>'
    """
    parts = tiler if type(tiler) is tuple else (tiler,)
    texts = [
        layout_text(part, known) if isinstance(part, (Layout, ComposedLayout)) else f"{mlir_tree(part, known)}:1"
        for part in parts
    ]
    return _type("tile", quoted, f"[{';'.join(texts)}]")
