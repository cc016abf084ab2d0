"""Convert objects to and from the printed forms of CuTe DSL.

    cute_py and CuTe C++                          CuTe DSL
    ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))         ((4,8),(2,2)):((32,1),(16,8))
    Sw<3,3,3> o _0 o (_8,_64):(_64,_1)            S<3,3,3> o 0 o (8,64):(64,1)
    TiledCopy, Tiler_MN: (_32,_64)                Tiled Copy, Tiler MN: (32:1,64:1)

The DSL prints static numbers, and `?` for a number that is known only at run time; cute_py can't read a `?`. The DSL
prints neither the reference layout of a copy atom nor whether an integer type is signed.
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

from cute_py.arith_tuple import text as shown
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.element_types import ElementType
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.atom.tiled_mma import TiledMma
from cute_py.dtypes import DType, DTypeLike
from cute_py.errors import CuteError, InvalidTypeError, LayoutError, given
from cute_py.layout import Layout, is_static, static
from cute_py.layout.arguments import Tiler
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.recast import as_position_independent_swizzle_layout
from cute_py.notation.parse import dsl_type, parse

DslObject: TypeAlias = Layout | ComposedLayout | MmaAtom | CopyAtom | TiledMma | TiledCopy
"""An object that both CuTe DSL and this library have."""

_STATIC: Final = re.compile(r"_(?=[0-9])")
_TYPES: Final = {"bfloat16": "bf16", "tfloat32": "tf32", "bool": "i1"}
_NAMED: Final = re.compile(r"(float|int)([0-9]+)(?:_(\w+))?")


def to_dsl(thing: DslObject) -> str:
    """Return the text that CuTe DSL prints for the same object.

    Args:
        thing: a layout, a swizzled layout (in elements), an atom or a tiled operation, with only static numbers.
    Raises:
        LayoutError: the object has an unsigned type, a type without a name in CuTe DSL, or a run-time number, which
            CuTe DSL can't express.
        InvalidTypeError: the object is of another kind.

    >>> print(to_dsl(static(Layout(((4, 8), 2), ((16, 1), 8)))))
    ((4,8),2):((16,1),8)
    """
    if isinstance(thing, (Layout, ComposedLayout)):
        return _layout(thing)
    if isinstance(thing, (MmaAtom, TiledMma)):
        return _mma(thing)
    if isinstance(thing, (CopyAtom, TiledCopy)):
        return _copy(thing)
    raise InvalidTypeError(f"to_dsl needs a layout, an atom or a tiled operation, got {type(thing).__name__}")


def _layout(layout: Layout | ComposedLayout) -> str:
    layout = as_position_independent_swizzle_layout(layout)
    parts = (layout.offset, layout.inner) if isinstance(layout, ComposedLayout) else (layout,)
    if not all(is_static(part) for part in parts):
        facts = {"layout": layout}
        raise LayoutError("CuTe DSL prints ? for a number that is known only at run time", facts, "cute.static(layout)")
    return _STATIC.sub("", str(layout)).replace("Sw<", "S<")


def _tile(part: Tiler) -> str:
    """Return the text that CuTe DSL prints for a tile, where an extent is printed as a layout."""
    if part is None:
        return "_"
    return _layout(part if isinstance(part, Layout) else Layout(part))


def _tiles(parts: tuple[Tiler, ...]) -> str:
    return "(" + ",".join(_tile(part) for part in parts) + ("," if len(parts) == 1 else "") + ")"


def _lines(head: str, rows: dict[str, str], width: int) -> str:
    return "\n".join([head, *(f"  {name + ':':<{width}}{value}" for name, value in rows.items())])


def _mma(thing: MmaAtom | TiledMma) -> str:
    atom = thing if isinstance(thing, MmaAtom) else thing.atom
    rows = {"ThrID": _layout(atom.thr_id), "Shape MNK": _STATIC.sub("", shown(atom.shape_mnk))}
    rows |= {f"TV Layout {x}": _layout(atom.layouts[x]) for x in "ABC"}
    if isinstance(thing, MmaAtom):
        return _lines("MMA Atom", rows, 13)
    tiled = {"Thr Layout VMNK": _layout(thing.thr_layout_vmnk), "Permutation MNK": _tiles(thing.permutation_mnk)}
    return _lines("Tiled MMA", tiled, 17) + "\n" + _lines("MMA Atom", rows, 17)


def _copy(thing: CopyAtom | TiledCopy) -> str:
    atom = thing if isinstance(thing, CopyAtom) else thing.atom
    rows = {"ThrID": _layout(atom.thr_id), "TV Layout Src": _layout(atom.layout_src_TV)}
    rows |= {"TV Layout Dst": _layout(atom.layout_dst_TV), "Value type": type_name(atom.dtype)}
    if isinstance(thing, CopyAtom):
        return _lines("Copy Atom", rows, 15)
    tiled = {"Tiler MN": _tiles(thing.tiler_mn), "TV Layout tiled": _layout(thing.layout_TV)}
    return _lines("Tiled Copy", tiled, 17) + "\n" + _lines("Copy Atom", rows, 17)


def type_name(element: ElementType | None) -> str:
    """Return the name that CuTe DSL prints for an element type.

    Raises:
        LayoutError: the type has no name, or shares it with another type.

    >>> from cute_py.dtypes import as_dtype
    >>> type_name(as_dtype("float8_e4m3fn")), type_name(as_dtype("bfloat16"))
    ('f8E4M3FN', 'bf16')
    """
    if isinstance(element, DType):
        found = _NAMED.fullmatch(element.name)
        named = f"{found[1][0]}{found[2]}{(found[3] or '').upper()}" if found else ""
        name = _TYPES.get(element.name, named)
        try:
            if name and dsl_type(name) == element:
                return name
        except CuteError:
            pass
    text = f"CuTe DSL has no name for the element type {given(element if element is None else element.name)}"
    facts = {"integers": "CuTe DSL does not distinguish signs: int8 and uint8 are both i8"}
    raise LayoutError(text, facts, "use an atom of a type of the same width that has a name")


def from_dsl(text: str, *, dtype: DTypeLike | None = None) -> DslObject:
    """Return the object that CuTe DSL printed as `text`; its numbers are static.

    Args:
        dtype: the element type of A of an MMA. The text has no types; by default, the result is the first MMA of CuTe
            with these layouts.
    Raises:
        ParseError: the text has another form, or a `?`.
        InvalidTypeError: the text describes another object, such as a tensor; use `parse`.

    >>> print(from_dsl("S<3,3,3> o 0 o (8,64):(64,1)"))
    Sw<3,3,3> o _0 o (_8,_64):(_64,_1)
    """
    found = parse(text, dtype=dtype)
    if isinstance(found, (MmaAtom, CopyAtom, TiledMma, TiledCopy)):
        return found
    if isinstance(found, Layout):
        return static(found)
    if isinstance(found, ComposedLayout) and isinstance(found.inner, Layout):
        return ComposedLayout(found.outer, static(found.offset), static(found.inner))
    raise InvalidTypeError(f"from_dsl reads layouts, atoms and tiled operations, got {type(found).__name__}")
