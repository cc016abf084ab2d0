"""Every copy atom of CuTe but TMA's, by C++'s name.

copy_atom("SM75_U32x4_LDSM_N", "half_t")        one atom, of values of a type
copy_atom("UniversalCopy<uint128_t>", "float")
COPY_ATOMS["SM75_U32x4_LDSM_N"]                 the row, counted in bits
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cute_py.atom.copy_atom import CopyAtom, CopyOperation, CopyTraits, in_values
from cute_py.atom.copy_rows import copy_operations
from cute_py.atom.element_types import element_type
from cute_py.atom.template_name import bind, split_template
from cute_py.errors import InvalidTypeError, InvalidValueError, given

_ALIASES: Final = {"DefaultCopy": 8, "AutoVectorizingCopy": 128}
"""C++'s aliases of AutoVectorizingCopyWithAssumedAlignment, and their bits."""
_NAMESPACE: Final = re.compile(r"^(::)?(cute::)?((SM100|TMEM|LOAD|STORE|LOAD_STAT|UTCCP)::)*")


@functools.cache
def _operations() -> dict[str, CopyOperation]:
    return {row.name: row for row in copy_operations()}


@functools.lru_cache(maxsize=4096)
def copy_traits(name: str) -> CopyTraits:
    """The row of an operation, counted in bits.

    Args:
        name: as C++ writes it, `UniversalCopy<uint128_t>`, `SM75_U32x4_LDSM_N`.
    Raises:
        InvalidValueError: no such operation, or other arguments; StaticAssertError: C++ refuses them.

    >>> print(copy_traits("SM90_U32x1_STSM_N").src_layout)
    (_32,_32):(_32,_1)
    """
    op, texts = split_template(name)
    bare = _NAMESPACE.sub("", op)
    if bare in _ALIASES:
        operation = _operations()["AutoVectorizingCopyWithAssumedAlignment"]
        found = operation.build(operation, {"MaxVecBits": _ALIASES[bare]})
        return CopyTraits(**{f: getattr(found, f) for f in CopyTraits.__slots__} | {"name": bare, "op": bare})
    found_operation = _operations().get(bare)
    if found_operation is None:
        near = difflib.get_close_matches(bare, (*_operations(), *_ALIASES), 3, 0.6)
        raise InvalidValueError(
            f"{given(name)} is no copy operation of CuTe", {"nearest": ", ".join(near)} if near else None
        )
    return found_operation.build(found_operation, bind(bare, found_operation.parameters, texts))


@functools.lru_cache(maxsize=8192)
def _atom(name: str, dtype: Any) -> CopyAtom:
    op, texts = split_template(name)
    if op.rsplit("::", 1)[-1] == "Copy_Atom" and len(texts) == 2:
        return _atom(texts[0], texts[1])
    return in_values(copy_traits(name), None if dtype is None else element_type(dtype))


def copy_atom(name: str | CopyAtom, dtype: Any = None) -> CopyAtom:
    """The atom of a copy operation that moves values of a type.

    Args:
        name: C++'s operation with its template arguments, or `Copy_Atom<operation,type>`. An atom is itself, or the
            same operation with another type.
        dtype: element type of a value (anything `as_dtype` takes, and C++'s names); None counts in bits.
    Raises:
        InvalidValueError: no such operation or type; StaticAssertError: C++ refuses the arguments, or the type.

    >>> print(copy_atom("SM75_U16x4_LDSM_T", "half_t").layout_dst_TV)
    ((_4,_8),(_1,_2,_2)):((_16,_1),(_1,_8,_64))
    """
    if isinstance(name, CopyAtom):
        return name if dtype is None else in_values(name.traits, element_type(dtype))
    if not isinstance(name, str):
        raise InvalidTypeError(f"copy_atom takes the name of an operation, got {type(name).__name__} {given(name)}")
    try:
        return _atom(name, dtype)
    except TypeError as unhashable:
        if isinstance(unhashable, InvalidTypeError):
            raise
        return _atom(name, element_type(dtype))


class _Rows(Mapping[str, CopyTraits]):
    """Operation name -> its row, counted in bits; of a template, with typical arguments."""

    def __getitem__(self, name: str) -> CopyTraits:
        if not isinstance(name, str) or (name not in _operations() and name not in _ALIASES):
            raise KeyError(name)
        operation = _operations().get(name)
        typical = operation.typical if operation is not None else ()
        return copy_traits(f"{name}<{','.join(typical)}>" if typical else name)

    def __iter__(self) -> Iterator[str]:
        return iter(_operations())

    def __len__(self) -> int:
        return len(_operations())

    def __repr__(self) -> str:
        return "COPY_ATOMS"


COPY_ATOMS: Final[Mapping[str, CopyTraits]] = _Rows()
"""C++'s operation name -> its row, counted in bits; templates with typical arguments.

    >>> len(COPY_ATOMS), COPY_ATOMS["SM75_U32x1_MOVM_T"].arch
    (196, 'sm75')
"""
