"""Pointers as the CuTe DSL prints them: `ptr<f16, smem, align<128>, S<3,4,3>>`. The address is not in the text.

Read off CuTe DSL 4.8. Integers have no sign there; int8 and uint8 are both `i8`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from cute_py.arith_tuple.pointers import make_gmem_ptr, make_ptr, make_smem_ptr, make_tmem_ptr
from cute_py.arith_tuple.scan import read_integer
from cute_py.dtypes import DType, as_dtype
from cute_py.layout.swizzle import Swizzle

DSL_POINTER: Final = re.compile(
    r"ptr<\s*(?P<type>\w+)\s*,\s*(?P<space>gmem|smem|tmem|rmem|generic)(?:\s*,\s*align<[0-9]+>)?"
    r"(?:\s*,\s*S<\s*(?P<bits>[0-9]+)\s*,\s*(?P<base>[0-9]+)\s*,\s*(?P<shift>-?[0-9]+)\s*>)?\s*>"
)

_INTEGER: Final = re.compile(r"i([0-9]+)")
_SMALL_FLOAT: Final = re.compile(r"f([0-9]+)(E[0-9]+M[0-9]+\w*)")


def dsl_type(name: str) -> DType:
    """The element type of an MLIR name.

    Raises:
        InvalidValueError: an unknown one.

    >>> dsl_type("f8E4M3FN"), dsl_type("bf16"), dsl_type("i1")
    (DType('float8_e4m3fn'), DType('bfloat16'), DType('bool'))
    """
    if name == "i1":
        return as_dtype("bool")
    if found := _INTEGER.fullmatch(name):
        return as_dtype(f"int{found[1]}")
    if found := _SMALL_FLOAT.fullmatch(name):
        return as_dtype(f"float{found[1]}_{found[2].lower()}")
    return as_dtype(name)


def dsl_pointer(found: re.Match[str], dtype: DType | None = None) -> Any:
    """The pointer of a match of `DSL_POINTER`, at address 0; `dtype` in place of the type that is written."""
    kind = dsl_type(found["type"]) if dtype is None else dtype
    if found["space"] == "smem":
        numbers = [read_integer(found.string, found.start(n), found[n]) for n in ("bits", "base", "shift") if found[n]]
        swizzle = Swizzle(*numbers) if numbers else None
        return make_smem_ptr(0, kind, swizzle)
    make = {"gmem": make_gmem_ptr, "tmem": make_tmem_ptr}.get(found["space"], make_ptr)
    return make(0, kind)
