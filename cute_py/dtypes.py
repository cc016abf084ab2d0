"""Element types: name, width in bits, kind, and the numpy or ml_dtypes type that stores one element.

All other modules look up element types in this table. The table does not depend on GPUs: the descriptor package defines
which types TMA can move, and their format numbers.

In numpy, as in ml_dtypes, each element of a type narrower than a byte takes a whole byte; `bits` is its width in GPU
memory. numpy has no 128-bit integers, so the 16 bytes of one are stored as a complex number of two doubles.
"""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeGuard

from cute_py.errors import InvalidTypeError, InvalidValueError, given, known_names

if TYPE_CHECKING:
    import numpy
else:
    from cute_py.optional_packages import numpy


class HasItemSize(Protocol):
    """A dtype of another library: any object with an `itemsize`.

    >>> import numpy
    >>> type_of: HasItemSize = numpy.dtype("float16")
    >>> type_of.itemsize
    2
    """

    @property
    def itemsize(self) -> int:
        """The size of one element, in bytes."""


DTypeLike: TypeAlias = "DType | str | type | HasItemSize"
"""Name or object that identifies an element type: see `as_dtype`."""

Kind = Literal["bool", "int", "uint", "float", "complex"]


@dataclass(frozen=True, slots=True)
class DType:
    """One element type.

    >>> as_dtype("bf16")
    DType('bfloat16')
    >>> as_dtype("float4_e2m1fn").bits
    4
    """

    name: str
    bits: int
    kind: Kind
    storage: str
    """Name of the scalar type that holds one element: numpy's, or ml_dtypes' where numpy has none."""
    aliases: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"DType({self.name!r})"

    def __str__(self) -> str:
        return self.name

    @property
    def numpy(self) -> numpy.dtype[Any]:
        """The numpy dtype of one stored element.

        >>> as_dtype("half").numpy
        dtype('float16')
        """
        return _numpy_dtype(self.storage)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"


DTYPES: tuple[DType, ...] = (
    DType("bool", 8, "bool", "bool"),
    DType("uint1", 1, "uint", "uint8", ("uint1b_t", "uint1_t", "u1")),
    DType("int2", 2, "int", "int2", ("int2b_t", "int2_t", "s2")),
    DType("uint2", 2, "uint", "uint2", ("uint2b_t", "uint2_t", "u2")),
    DType("int4", 4, "int", "int4", ("int4b_t", "int4_t", "s4")),
    DType("uint4", 4, "uint", "uint4", ("uint4b_t", "uint4_t", "u4")),
    DType("int8", 8, "int", "int8", ("int8_t", "s8", "i8")),
    DType("uint8", 8, "uint", "uint8", ("uint8_t", "u8")),
    DType("int16", 16, "int", "int16", ("int16_t", "s16", "i16")),
    DType("uint16", 16, "uint", "uint16", ("uint16_t", "u16")),
    DType("int32", 32, "int", "int32", ("int32_t", "int", "s32", "i32")),
    DType("uint32", 32, "uint", "uint32", ("uint32_t", "u32")),
    DType("int64", 64, "int", "int64", ("int64_t", "s64", "i64")),
    DType("uint64", 64, "uint", "uint64", ("uint64_t", "u64")),
    DType("uint128", 128, "uint", "complex128", ("uint128_t", "u128")),
    DType("float16", 16, "float", "float16", ("half", "half_t", "f16", "fp16", "__half")),
    DType("bfloat16", 16, "float", "bfloat16", ("bf16", "bfloat16_t", "__nv_bfloat16")),
    DType("float32", 32, "float", "float32", ("float", "f32", "fp32")),
    DType("tfloat32", 32, "float", "float32", ("tf32", "tfloat32_t")),
    DType("float64", 64, "float", "float64", ("double", "f64", "fp64")),
    DType("float8_e4m3fn", 8, "float", "float8_e4m3fn", ("e4m3", "float_e4m3_t", "fp8_e4m3", "__nv_fp8_e4m3")),
    DType("float8_e5m2", 8, "float", "float8_e5m2", ("e5m2", "float_e5m2_t", "fp8_e5m2", "__nv_fp8_e5m2")),
    DType("float8_e4m3", 8, "float", "float8_e4m3"),
    DType("float8_e3m4", 8, "float", "float8_e3m4"),
    DType("float8_e4m3fnuz", 8, "float", "float8_e4m3fnuz"),
    DType("float8_e5m2fnuz", 8, "float", "float8_e5m2fnuz"),
    DType("float8_e4m3b11fnuz", 8, "float", "float8_e4m3b11fnuz"),
    DType("float8_e8m0fnu", 8, "float", "float8_e8m0fnu", ("ue8m0", "e8m0", "float_ue8m0_t", "__nv_fp8_e8m0")),
    DType("float6_e2m3fn", 6, "float", "float6_e2m3fn", ("e2m3", "float_e2m3_t", "fp6_e2m3", "__nv_fp6_e2m3")),
    DType("float6_e3m2fn", 6, "float", "float6_e3m2fn", ("e3m2", "float_e3m2_t", "fp6_e3m2", "__nv_fp6_e3m2")),
    DType("float4_e2m1fn", 4, "float", "float4_e2m1fn", ("e2m1", "float_e2m1_t", "fp4", "fp4_e2m1", "__nv_fp4_e2m1")),
    DType("float6_e2m3fn_unpacksmem", 6, "float", "float6_e2m3fn", ("float_e2m3_unpacksmem_t",)),
    DType("float6_e3m2fn_unpacksmem", 6, "float", "float6_e3m2fn", ("float_e3m2_unpacksmem_t",)),
    DType("float4_e2m1fn_unpacksmem", 4, "float", "float4_e2m1fn", ("float_e2m1_unpacksmem_t",)),
    DType("complex64", 64, "complex", "complex64", ("complex<float>",)),
    DType("complex128", 128, "complex", "complex128", ("complex<double>",)),
)

_NAMESPACE = re.compile(r"^(torch\.|numpy\.|np\.|cutlass\.|(cute::|cutlass::|cuda::)?(std::|detail::)?)")
"""Modules of C++ and Python that define these types."""

_BY_NAME: dict[str, DType] = {name: row for row in DTYPES for name in (row.name, *row.aliases)}

_KNOWN = tuple(row.name for row in DTYPES)


@functools.cache
def _numpy_dtype(storage: str) -> numpy.dtype[Any]:
    home: Any = numpy if hasattr(numpy, storage) else importlib.import_module("ml_dtypes")
    dtype: numpy.dtype[Any] = numpy.dtype(getattr(home, storage))
    return dtype


def is_dtype(value: object) -> TypeGuard[DTypeLike]:
    """Whether a value is a known name or alias, a `DType`, or a type or dtype of numpy, ml_dtypes or torch.

    The table may lack the type or dtype; then `as_dtype` refuses it.

    >>> import numpy
    >>> is_dtype("bf16"), is_dtype(numpy.float16), is_dtype(numpy.dtype("f4")), is_dtype(4.0)
    (True, True, True, False)
    """
    if isinstance(value, str):
        return _row_named(value) is not None
    home = value if isinstance(value, type) else type(value)
    return isinstance(value, DType) or str(home.__module__).partition(".")[0] in ("numpy", "ml_dtypes", "torch")


def _row_named(name: str) -> DType | None:
    plain = _NAMESPACE.sub("", name, count=1)
    return _BY_NAME.get(name) or _BY_NAME.get(plain) or _BY_NAME.get(plain.lower())


def as_dtype(value: object) -> DType:
    """Look up an element type by its name or alias, by a numpy, ml_dtypes or torch type or dtype, or by a `DType`.

    A name may include its namespace, in upper or lower case: `cutlass::half_t`, `torch.bfloat16`, `FLOAT16`.

    Raises:
        InvalidValueError: the table has no such name or dtype, or the dtype has another byte order.
        InvalidTypeError: the value is not a type.

    >>> import numpy, ml_dtypes
    >>> as_dtype(numpy.dtype("<f4")), as_dtype(ml_dtypes.bfloat16), as_dtype("half_t")
    (DType('float32'), DType('bfloat16'), DType('float16'))
    """
    if isinstance(value, DType):
        return value
    if type(value).__module__ == "torch":
        value = str(value)
    if isinstance(value, str):
        row = _row_named(value)
        if row is None:
            facts = known_names(_NAMESPACE.sub("", value, count=1), _KNOWN, _BY_NAME)
            raise InvalidValueError(f"unknown element type {given(value)}", facts)
        return row
    if value is None or isinstance(value, (tuple, list, dict)):  # numpy reads them as float64, or as types with parts
        raise InvalidTypeError(f"not an element type: {given(value)}")
    try:
        dtype = numpy.dtype(value)  # type: ignore[call-overload]
    except Exception:  # a `dtype` that numpy does not know, or any exception of a foreign object in numpy
        raise InvalidTypeError(f"not an element type: {given(value)}") from None
    if dtype.byteorder == ">":
        raise InvalidValueError(
            f"element type {dtype.str!r} is big-endian; must be little-endian, as on a GPU",
            hint="convert with array.astype(array.dtype.newbyteorder('<'))",
        )
    row = _BY_NAME.get(dtype.name)
    if row is None:
        raise InvalidValueError(f"no GPU element type for numpy dtype {dtype.name!r}", {"known": ", ".join(_KNOWN)})
    return row


SAFETENSORS_TYPES = {
    "BOOL": "bool",
    **{f"{letter}{n}": f"{kind}{n}" for letter, kind in (("U", "uint"), ("I", "int")) for n in (8, 16, 32, 64)},
    **{f"F{n}": f"float{n}" for n in (16, 32, 64)},
    "BF16": "bfloat16",
    **{f"F8_{kind}": f"float8_{name}" for kind, name in (("E4M3", "e4m3fn"), ("E5M2", "e5m2"), ("E8M0", "e8m0fnu"))},
    "C64": "complex64",
}
"""Maps the name of a type in a .safetensors file to its name here, for the types that this library reads and writes."""
SAFETENSORS_HEADER_TYPES = {
    **SAFETENSORS_TYPES,
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
    "F4": "float4_e2m1fn",
}
"""Maps the name of every type of the safetensors format to its name here. A file packs elements of 4 and 6 bits without
gaps. Source: safetensors 0.8, safetensors/src/tensor.rs, Dtype."""
