"""Read atoms and tiled operations as CuTe C++, CuTe DSL and cute_py print them.

    TiledMMA                                   MMA_Atom
      ThrLayoutVMNK:  (_32,_2,_1,_1):...         ThrID:      _32:_1
      PermutationMNK: (_,_,_)                    Shape_MNK:  (_16,_8,_16)
    MMA_Atom                                     LayoutA_TV: ...
      ...

The text does not name the operation. The result is the first operation of CuTe that has these layouts; if a type is
passed, the first that also has this type of A (or of the values). Dense operations come first, otherwise in the order
of CuTe's headers.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from cute_py.arith_tuple import text as shown
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.copy_atoms import COPY_ATOMS, copy_atom
from cute_py.atom.element_types import SparseElement
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS, mma_atom
from cute_py.atom.tiled_copy import ThrCopy, TiledCopy, tiler_shape
from cute_py.atom.tiled_mma import ThrMma, TiledMma
from cute_py.dtypes import DType
from cute_py.errors import CuteError, ParseError, shortened, unless_refused
from cute_py.layout import Layout, coalesce, complement, composition, cosize, left_inverse, make_layout
from cute_py.layout.trees import is_underscore, leaves
from cute_py.notation.argument_lists import matching_bracket

HEADS: Final = ("TiledMMA", "TiledCopy", "ThrMMA", "ThrCopy", "MMA_Atom", "Copy_Atom")
"""The first words of the texts that this module reads."""
_OF_DSL: Final = {
    "Tiled MMA": "TiledMMA",
    "Tiled Copy": "TiledCopy",
    "MMA Atom": "MMA_Atom",
    "Copy Atom": "Copy_Atom",
    "Thr Layout VMNK": "ThrLayoutVMNK",
    "Permutation MNK": "PermutationMNK",
    "Shape MNK": "Shape_MNK",
    "TV Layout A": "LayoutA_TV",
    "TV Layout B": "LayoutB_TV",
    "TV Layout C": "LayoutC_TV",
    "Tiler MN": "Tiler_MN",
    "TV Layout tiled": "TiledLayout_TV",
    "TV Layout Src": "ValLayoutSrc",
    "TV Layout Dst": "ValLayoutDst",
    "Value type": "ValueType",
    "ThrID": "ThrID",
}
"""Prefix that CuTe DSL prints before a value -> the prefix that C++ prints."""
_EXTENT: Final = re.compile(r"(?<=[(,])([0-9]+):1(?=[,)])")
_INTEGER: Final = re.compile(r"(?<![0-9_?])(?=[0-9])")
_FIELD: Final = re.compile(r"(?<!\w)(\w{1,80}):[ \t]+([^\n]*)")
_WIDTH: Final = re.compile(r"([0-9]{1,9})b?")
_PLACE: Final = re.compile(r"(?:Thr VMNK|ThrIdx):[ \t]*+([^\n]*)")
_WORDS: Final = ("uint8_t", "uint16_t", "uint32_t", "uint64_t", "uint128_t")

Made = TypeVar("Made")
Read = Callable[[str], Any]


def _fields(text: str) -> dict[str, tuple[str, int]]:
    """Map the name in every line `  Name: value` to the value and its position in the text."""
    return {found[1]: (found[2].strip(), found.start(2)) for found in _FIELD.finditer(text)}


def _failure(text: str, position: int, expected: str) -> ParseError:
    return ParseError(f"at position {position}: {expected}", {"text": shortened(text, 80)}, position=position)


def _read(text: str, at: int, part: str, read: Callable[[str], Made]) -> Made:
    """Apply `read` to the part that begins at position `at`; errors have positions in the whole text."""
    try:
        return read(part)
    except ParseError as error:
        raise _failure(text, at + error.position, error.headline.partition(": ")[2]) from None


def _needed(text: str, fields: dict[str, tuple[str, int]], name: str) -> str:
    if name not in fields:
        raise _failure(text, len(text), f"expected a line {name}:")
    return fields[name][0]


@functools.cache
def _mma_by_layouts() -> dict[tuple[str, ...], list[MmaAtom]]:
    """Map printed layouts to the operations that have them."""
    found: dict[tuple[str, ...], list[MmaAtom]] = {}
    for atom in MMA_ATOMS.values():
        found.setdefault(_key(atom), []).append(atom)
    return found


def _key(atom: MmaAtom) -> tuple[str, ...]:
    return (str(atom.thr_id), shown(atom.shape_mnk), *(str(atom.layouts[x]) for x in "ABC"))


def _of_other_extents(shape: str) -> Iterator[MmaAtom]:
    """Yield the operations whose M and N are template arguments, with the printed extents."""
    extents = re.findall(r"[0-9]{1,9}", shape)
    for typical in MMA_ATOMS.values():
        if "M" not in typical.template_args or len(extents) != 3:
            continue
        old = [str(typical.template_args[x]) for x in "MN"]
        new = typical.name.replace(f",{old[0]},{old[1]},", f",{extents[0]},{extents[1]},", 1)
        new = new.replace(f"<{old[0]},{old[1]},", f"<{extents[0]},{extents[1]},", 1)
        if (found := unless_refused(mma_atom, new)) is not None:
            yield found


def _mma_atoms(key: tuple[str, ...]) -> list[MmaAtom]:
    """Return the operations with these layouts, dense operations first."""
    found = _mma_by_layouts().get(key) or [a for a in _of_other_extents(key[1]) if _key(a) == key]
    return sorted(found, key=lambda atom: isinstance(atom.a_dtype, SparseElement))


def same_layouts(atom: MmaAtom | CopyAtom) -> list[str]:
    """Return the names of all operations with the same printed text, in the order that `parse` tries them.

    >>> same_layouts(mma_atom("SM80_16x8x16_F32BF16BF16F32_TN"))[1:]
    ['SM80_16x8x16_F32F16F16F32_TN', 'SM80_16x8x16_F32BF16BF16F32_TN']
    """
    if isinstance(atom, MmaAtom):
        return [one.name for one in _mma_atoms(_key(atom))]
    return [one.name for one in _copy_atoms(atom.dtype) if str(one) == str(atom)]


def _parsed_mma_atom(text: str, dtype: DType | None) -> MmaAtom:
    fields = _fields(text)
    names = ("ThrID", "Shape_MNK", "LayoutA_TV", "LayoutB_TV", "LayoutC_TV")
    key = tuple(_needed(text, fields, name) for name in names)
    found = _mma_atoms(key)
    if dtype is not None:
        found = [a for a in found if _stored(a) == dtype]
    if not found:
        raise _failure(text, fields["ThrID"][1], "CuTe has no MMA atom with these layouts")
    return found[0]


def _stored(atom: MmaAtom) -> DType:
    element = atom.a_dtype
    return element.stored if isinstance(element, SparseElement) else element


def _split(text: str) -> list[tuple[int, str]]:
    """Split `(a,(b,c):(d,e),_)`, or `(a,)`, at top-level commas: return where each part begins, and the part."""
    parts: list[tuple[int, str]] = []
    depth, begin = 0, 1
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if (char == "," and depth == 1) or (char == ")" and depth == 0 and (begin < i or len(parts) != 1)):
            parts.append((begin, text[begin:i]))
            begin = i + 1
    return parts


def _read_field(text: str, fields: dict[str, tuple[str, int]], name: str, read: Callable[[str], Made]) -> Made:
    return _read(text, fields.get(name, ("", 0))[1], _needed(text, fields, name), read)


def _read_parts(
    text: str, fields: dict[str, tuple[str, int]], name: str, read: Callable[[str], Made]
) -> list[Made | None]:
    """Read the parts of the tuple in a field; a part `_` becomes None."""
    value, at = _needed(text, fields, name), fields[name][1]
    if not value.startswith("(") or matching_bracket(value, 1, len(value)) != len(value) - 1:
        raise _failure(text, at, "expected a tuple in brackets")
    return [None if part == "_" else _read(text, at + begin, part, read) for begin, part in _split(value)]


def _parsed_tiled_mma(text: str, dtype: DType | None, read: Read) -> TiledMma:
    fields = _fields(text)
    threads = _read_field(text, fields, "ThrLayoutVMNK", read)
    permutation = _read_parts(text, fields, "PermutationMNK", read)
    if not isinstance(threads, Layout) or not isinstance(threads.shape, tuple) or len(threads.shape) != 4:
        raise _failure(text, fields["ThrLayoutVMNK"][1], "expected a layout of (ThrV,ThrM,ThrN,ThrK)")
    if len(permutation) != 3:
        raise _failure(text, fields["PermutationMNK"][1], "expected three permutations")
    atom = _parsed_mma_atom(text, dtype)
    back = left_inverse(complement(atom.thr_id, cosize(threads)))
    atoms = make_layout(*(coalesce(composition(back, threads[i])) for i in (1, 2, 3)))
    return TiledMma(atom, atoms, (permutation[0], permutation[1], permutation[2]), threads)


@functools.cache
def _copy_names() -> tuple[str, ...]:
    typed = [name for name in COPY_ATOMS if "S" in COPY_ATOMS[name].template_args]
    plain = [name for name in COPY_ATOMS if name not in typed]
    return (*(f"{name}<{word}>" for word in _WORDS for name in typed), "DefaultCopy", *plain)


def _copy_atoms(element: DType | None) -> Iterator[CopyAtom]:
    """Yield the atoms of all copy operations that can move values of this type."""
    for name in _copy_names():
        with contextlib.suppress(CuteError):
            yield copy_atom(name, element)


def _parsed_copy_atom(text: str, dtype: DType | None, unsigned: Callable[[int], DType]) -> CopyAtom:
    fields = _fields(text)
    names = ("ThrID", "ValLayoutSrc", "ValLayoutDst", "ValLayoutRef")
    key = tuple(_needed(text, fields, name) for name in (names if names[3] in fields else names[:3]))
    width = _WIDTH.fullmatch(_needed(text, fields, "ValueType"))
    if width is None:
        raise _failure(text, fields["ValueType"][1], "expected a width such as 16b")
    element = dtype or _read(text, fields["ValueType"][1], width[1], lambda bits: unsigned(int(bits)))
    for atom in _copy_atoms(element):
        own = (atom.thr_id, atom.layout_src_TV, atom.layout_dst_TV, atom.layout_ref_TV)
        if key == tuple(map(str, own[: len(key)])):  # CuTe DSL does not print the reference layout
            return atom
    raise _failure(text, fields["ThrID"][1], f"CuTe has no copy atom with these layouts of {element.bits}-bit values")


def as_cpp(text: str, dtype: DType | None, named: Callable[[str], DType]) -> tuple[str, DType | None]:
    """Convert text that CuTe DSL printed to C++'s form, line by line; return it and the type of the values. Numbers
    become static, and the extent `32:1` of a tile becomes `_32`."""
    lines: list[str] = []
    for line in text.split("\n"):
        label, _, value = line.partition(":")
        label, value = label.strip(), value.strip()
        if label == "Value type":
            try:
                dtype = dtype or named(value)
            except CuteError as error:
                raise _failure(text, _value_of(text, len(lines)), error.headline) from None
            lines.append(f"  ValueType: {dtype.bits}b")
            continue
        if label in ("Tiler MN", "Permutation MNK"):
            value = _EXTENT.sub(r"\1", value)
        label = _OF_DSL.get(label, label)
        lines.append(f"  {label}: {_INTEGER.sub('_', value)}" if value else label)
    return "\n".join(lines), dtype


def _value_of(text: str, number: int) -> int:
    """Return the position where the value in this line begins."""
    lines = text.split("\n")
    line = lines[number]
    value = line.partition(":")[2].strip()
    return sum(len(before) + 1 for before in lines[:number]) + (line.rindex(value) if value else len(line))


def _in_dsl(text: str, cpp: str, error: ParseError) -> ParseError:
    """Convert an error in the C++ text to an error in the CuTe DSL text with the same lines; its position is the value
    of the line, or the end."""
    expected = error.headline.partition(": ")[2]
    for name, cpp_name in _OF_DSL.items():
        expected = expected.replace(f"a line {cpp_name}:", f"a line {name}:")
    at_end = error.position >= len(cpp)
    return _failure(text, len(text) if at_end else _value_of(text, cpp.count("\n", 0, error.position)), expected)


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, int)


def _parsed_slice(text: str, head: str, whole: Read, read: Read) -> ThrMma | ThrCopy:
    """Read the part of one thread: a line with the thread, followed by the tiled operation."""
    begin = text.find("Tiled")
    if begin < 0:
        raise _failure(text, len(text), f"expected a line Tiled{head.removeprefix('Thr')}")
    found = _PLACE.search(text, 0, begin)
    if found is None:
        raise _failure(text, len(head), f"expected a line {'Thr VMNK' if head == 'ThrMMA' else 'ThrIdx'}:")
    operation = _read(text, begin, text[begin:], whole)
    place = _read(text, found.start(1), found[1], read)
    try:
        if isinstance(operation, TiledMma) and isinstance(place, tuple):
            place = operation.thr_layout_vmnk(*place)
        if isinstance(operation, TiledMma if head == "ThrMMA" else TiledCopy):
            part: ThrMma | ThrCopy = operation.get_slice(place)
            if f"{part}".split("\n")[1].split(":")[1].strip().replace("_", "") == found[1].strip().replace("_", ""):
                return part
    except CuteError:
        pass
    raise _failure(text, found.start(1), "expected a thread of the tiled operation")


def parse_operation(
    text: str, dtype: DType | None, read: Read, named: Callable[[str], DType], unsigned: Callable[[int], DType]
) -> MmaAtom | CopyAtom | TiledMma | TiledCopy | ThrMma | ThrCopy:
    """Parse what C++ or CuTe DSL prints for an atom, a tiled operation, or one thread's part of a tiled operation.

    Args:
        dtype: the type of A, or of a copy's values. By default, an MMA is the first operation with the layouts, and the
            values of a copy have the type in the text, or the unsigned integer type of the printed width.
        read: function that reads a layout or a tuple.
        named: function that returns the type for a name in CuTe DSL.
        unsigned: function that returns the unsigned integer type of a width in bits.
    Raises:
        ParseError: a line is missing, or no operation of CuTe has these layouts.
    """
    head = text.strip().partition("\n")[0].strip()
    if head in _OF_DSL:
        cpp, dtype = as_cpp(text, dtype, named)
        try:
            return parse_operation(cpp, dtype, read, named, unsigned)
        except ParseError as error:
            raise _in_dsl(text, cpp, error) from None
    if head in ("ThrMMA", "ThrCopy"):
        return _parsed_slice(text, head, lambda part: parse_operation(part, dtype, read, named, unsigned), read)
    if head == "MMA_Atom":
        return _parsed_mma_atom(text, dtype)
    if head == "TiledMMA":
        return _parsed_tiled_mma(text, dtype, read)
    if head == "Copy_Atom":
        return _parsed_copy_atom(text, dtype, unsigned)
    if head != "TiledCopy":
        raise _failure(text, 0, f"expected one of {', '.join(HEADS)}")
    fields = _fields(text)
    whole = not _needed(text, fields, "Tiler_MN").startswith("(")
    parts = tuple(
        [_read_field(text, fields, "Tiler_MN", read)] if whole else _read_parts(text, fields, "Tiler_MN", read)
    )
    extents = leaves(tiler_shape(parts))
    if not all((is_underscore(n) and not whole) or (_is_number(n) and n > 0) for n in extents):
        raise _failure(text, fields["Tiler_MN"][1], "expected a tiler whose extents are positive numbers")
    layout = _read_field(text, fields, "TiledLayout_TV", read)
    if not isinstance(layout, Layout) or not all(map(_is_number, (*leaves(layout.shape), *leaves(layout.stride)))):
        raise _failure(text, fields["TiledLayout_TV"][1], "expected a layout of numbers")
    atom = _parsed_copy_atom(text, dtype, unsigned)
    try:
        return TiledCopy(atom, layout, parts)
    except CuteError as error:
        raise _failure(text, fields["TiledLayout_TV"][1], error.headline) from None
