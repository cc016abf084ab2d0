"""Requests for tensor maps as values: the arguments of cuTensorMapEncodeTiled, -Im2col and -Im2colWide.

Modes are listed innermost first. Strides are in bytes, sizes and boxes in elements. Mode 0 has no stride, so
`global_strides[i]` belongs to mode i + 1. A request may be illegal: `violations(request)` lists why, and
`encode(request)` refuses it. The constructor refuses only values that are not integers.

If a map has bits that its fields do not explain, its decoded request has a `Residue`, so that encoding the request
returns the same map.

`OpRow` describes the instruction that uses a map. `TmaCopyTraits` is the common interface of all objects that copy
through a map. Lower layers use this interface instead of the atom classes, so they do not depend on higher layers.
"""

from __future__ import annotations

import functools
import operator
import struct
from dataclasses import dataclass, field, fields, make_dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, Literal, Protocol, Self, TypeAlias, TypeVar

from cute_py.argument_checks import expect, expect_integer, expect_integers, is_integer, record
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.tma.descriptor.data_types import (
    FORMATS,
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
    member_named,
)

__all__ = ["Residue", "TensorMap", "TensorMapIm2col", "TensorMapIm2colWide", "TensorMapTiled"]

ENUM_OF: Final[dict[str, type[IntEnum]]] = {
    "data_type": TensorMapDataType,
    "interleave": Interleave,
    "swizzle": TensorMapSwizzle,
    "l2_promotion": L2Promotion,
    "oob_fill": OobFill,
    "mode": Im2ColWideMode,
}
"""Field -> the enum of its values."""
_MEMBERS: Final = {name: {int(member): member for member in kind} for name, kind in ENUM_OF.items()}
MAX_NUMBERS: Final = 100
"""Maximum number of integers in a request: five times as many as a map has, because a request may have too many
modes."""

_PACK: Final = tuple(struct.Struct(f"<{count}q").pack for count in range(MAX_NUMBERS + 1))

_INT: Final = frozenset((int,))

FieldNumbers: TypeAlias = int | tuple[int, ...] | None
"""The value of one field of a request."""


def _fit(numbers: list[int]) -> bool:
    """Whether each number fits in a signed 64-bit integer; struct is three times as fast as min and max."""
    try:
        _PACK[len(numbers)](*numbers)
    except struct.error:
        return False
    return True


_E = TypeVar("_E", bound=IntEnum)


def as_member(kind: type[_E], value: object, what: str) -> _E | int:
    """Return the member of an enum, from the member, its number or one of its names.

    Names are 'B128', '128B' or 'CU_TENSOR_MAP_SWIZZLE_128B'.

    A number without a member is returned unchanged; `violations` reports it. A format may be given as an element type.

    Raises:
        InvalidValueError: the name is unknown.
        InvalidTypeError: the value is neither a number nor a name.

    >>> as_member(TensorMapSwizzle, "SWIZZLE_128B", "swizzle"), as_member(L2Promotion, 2, "l2_promotion")
    (TensorMapSwizzle.B128, L2Promotion.B128)
    >>> as_member(TensorMapDataType, "bf16", "data_type"), as_member(L2Promotion, 9, "l2_promotion")
    (TensorMapDataType.BFLOAT16, 9)
    """
    if type(value) is kind:
        return value
    if not is_integer(value):
        found = member_named(kind, value)  # type: ignore[arg-type]
        if found is not None:
            return found
        if isinstance(value, str):
            raise InvalidValueError(
                f"{what} = {given(value)} is not a known name", {"known": ", ".join(kind.__members__)}
            )
    number = expect_integer(value, what)
    return kind(number) if number in kind._value2member_map_ else number


def format_bits(data_type: int | None) -> int:
    """Return the width of an element in global memory in bits; 0 if the format is not known.

    >>> format_bits(6), format_bits(99), format_bits(None)
    (16, 0, 0)
    """
    return FORMATS[data_type].bits if data_type is not None and 0 <= data_type < len(FORMATS) else 0


@dataclass(frozen=True, slots=True)
class Residue:
    """The bits of a decoded map that the fields of its request do not explain.

    `bits` is the XOR of the map with the bits that only the fields would write (1024 bits; bit 0 is bit 0 of word 0,
    and word 1 starts at bit 64). `bits` is 0 if the fields explain all bits but the map breaks rules. `fields` are the
    decoded values. While the request has these values, `encode` returns the original map. After a value is changed, the
    rules apply, and `encode` keeps only the bits without a field.

    >>> from cute_py.tma.descriptor import decode, encode
    >>> decode(encode(TensorMapTiled("float16", 4096, (64, 16), (128,), (64, 8)))).residue is None
    True
    """

    bits: int
    fields: tuple[FieldNumbers, ...]

    def __post_init__(self) -> None:
        for value in expect(self.fields, tuple, "fields of a residue"):
            for number in value if isinstance(value, tuple) else (value,):
                if number is not None:
                    expect_integer(number, "a field of a residue")
        if not is_integer(self.bits):
            raise InvalidTypeError(f"the bits of a residue must be an integer, got {given(self.bits)}")
        if not 0 <= operator.index(self.bits) < 1 << 1024:
            raise InvalidValueError(f"the bits of a residue must be the 1024 bits of a map, got {given(self.bits)}")
        object.__setattr__(self, "bits", operator.index(self.bits))

    def __repr__(self) -> str:
        return f"Residue(bits={self.bits:#x}, fields={self.fields!r})"

    @property
    def unknown_words(self) -> dict[int, int]:
        """Return the unexplained bits of each 64-bit word that has some, by the index of the word.

        >>> Residue(1 << 85, ()).unknown_words
        {1: 2097152}
        """
        left = ((word, (self.bits >> (64 * word)) & 0xFFFFFFFFFFFFFFFF) for word in range(16))
        return {word: bits for word, bits in left if bits}


class _Request:
    """Base class of the three kinds of request. It is not public; `TensorMap` is the union of the three.

    `FIELDS` are the names of the fields without the residue, in order. `TUPLES`, `NUMBERS` and `ENUMS` are the names of
    the fields of each type. The module computes all four from the annotations, below the classes.
    """

    __slots__ = ()
    KIND: ClassVar[str]
    FIELDS: ClassVar[tuple[str, ...]]
    TUPLES: ClassVar[tuple[str, ...]]
    NUMBERS: ClassVar[tuple[str, ...]]
    ENUMS: ClassVar[tuple[str, ...]]

    global_dim: tuple[int, ...]
    data_type: TensorMapDataType | int | None
    residue: Residue | None

    def _normalise(self) -> None:
        put = object.__setattr__
        numbers: list[Any] = [getattr(self, name) for name in self.NUMBERS]
        for name in self.TUPLES:
            values: Any = getattr(self, name)
            if type(values) is not tuple:
                unset = values is None and name == "element_strides"
                values = (1,) * len(self.global_dim) if unset else expect_integers(values, name)
                put(self, name, values)
            numbers += values
        if len(numbers) > MAX_NUMBERS:
            raise InvalidValueError(f"the request has {len(numbers)} numbers; must have at most {MAX_NUMBERS}")
        # Check all numbers at once: nearly every request consists of plain integers of at most 64 bits.
        if not (_INT.issuperset(map(type, numbers)) and _fit(numbers)):
            for name in self.TUPLES:
                put(self, name, expect_integers(getattr(self, name), name))
            for name in self.NUMBERS:
                put(self, name, expect_integer(getattr(self, name), name))
        for name in self.ENUMS:
            value, members = getattr(self, name), _MEMBERS[name]
            if type(value) is not ENUM_OF[name] and not (value is None and name == "data_type"):
                member: Any = members.get(value) if type(value) is int else None
                put(self, name, as_member(ENUM_OF[name], value, name) if member is None else member)
        if self.residue is not None and type(self.residue) is not Residue:
            raise InvalidTypeError(f"residue = {given(self.residue)}; must be a Residue from decode, or None")

    @property
    def rank(self) -> int:
        """Number of modes: the length of `global_dim`."""
        return len(self.global_dim)

    @property
    def element_bits(self) -> int:
        """Width of one element in global memory, in bits.

        Raises:
            InvalidValueError: the element format is not known.
        """
        if not (bits := format_bits(self.data_type)):
            raise InvalidValueError(f"data_type = {self.data_type}; must be a known element format")
        return bits

    @classmethod
    def restore(cls, values: tuple[FieldNumbers, ...], residue: Residue | None) -> Self:
        """Make a request from the values that `field_values` returns: all fields in the order of `FIELDS`.

        Raises:
            InvalidTypeError, InvalidValueError: the errors of the constructor, or the number of values is wrong.
        """
        if len(expect(values, tuple, "values of fields")) != len(cls.FIELDS):
            raise InvalidValueError(f"the request has {len(values)} field values; must have {len(cls.FIELDS)}")
        made: Any = cls
        request: Self = made(*values, residue)
        return request

    def field_values(self) -> tuple[FieldNumbers, ...]:
        """The values of all fields except the residue, in the order of `FIELDS`."""
        return tuple([getattr(self, name) for name in self.FIELDS])


@dataclass(frozen=True, slots=True)
class TensorMapTiled(_Request):
    """The arguments of cuTensorMapEncodeTiled.

    Args:
        data_type: a `TensorMapDataType`, its number or its name, or an element type. It is None only if the map that
            was decoded has an unknown format. The other enums accept the same forms: 3, 'B128', '128B',
            'CU_TENSOR_MAP_SWIZZLE_128B'.
        global_address: bytes.
        global_dim: (R,) elements, innermost mode first, R in 1..5.
        global_strides: (R-1,) bytes, of modes 1 to R-1.
        box_dim: (R,) elements, before the element strides divide it.
        element_strides: (R,) elements; all 1 if omitted.
    Raises:
        InvalidTypeError: a field is not an integer or a sequence of integers.
    Source:
        CUDA 13.0 driver API, cuTensorMapEncodeTiled.

    >>> TensorMapTiled(6, 4096, (512, 1024), (1024,), (64, 128), swizzle=3).swizzle
    TensorMapSwizzle.B128
    """

    data_type: TensorMapDataType | int | None
    global_address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] = None  # type: ignore[assignment]
    interleave: Interleave | int = Interleave.NONE
    swizzle: TensorMapSwizzle | int = TensorMapSwizzle.NONE
    l2_promotion: L2Promotion | int = L2Promotion.NONE
    oob_fill: OobFill | int = OobFill.NONE
    residue: Residue | None = None

    KIND: ClassVar[str] = "tiled"

    def __post_init__(self) -> None:
        self._normalise()


@dataclass(frozen=True, slots=True)
class TensorMapIm2col(_Request):
    """The arguments of cuTensorMapEncodeIm2col.

    Args:
        data_type, global_address, global_dim, global_strides, element_strides: as for `TensorMapTiled`, R in 3..5.
        pixel_box_lower_corner, pixel_box_upper_corner: (R-2,) elements, W first, then H, D; signed.
        channels_per_pixel: elements of the innermost mode in a pixel, 1..256.
        pixels_per_column: 1..1024.
    Raises:
        InvalidTypeError: a field is not an integer or a sequence of integers.
    Source:
        CUDA 13.0 driver API, cuTensorMapEncodeIm2col.

    >>> one = TensorMapIm2col("float16", 4096, (64, 28, 28, 4), (128, 3584, 100352), (0, 0), (0, 0), 64, 128)
    >>> one.channels_per_pixel, one.pixels_per_column
    (64, 128)
    """

    data_type: TensorMapDataType | int | None
    global_address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    pixel_box_lower_corner: tuple[int, ...]
    pixel_box_upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] = None  # type: ignore[assignment]
    interleave: Interleave | int = Interleave.NONE
    swizzle: TensorMapSwizzle | int = TensorMapSwizzle.NONE
    l2_promotion: L2Promotion | int = L2Promotion.NONE
    oob_fill: OobFill | int = OobFill.NONE
    residue: Residue | None = None

    KIND: ClassVar[str] = "im2col"

    def __post_init__(self) -> None:
        self._normalise()

    def as_wide(self, mode: Im2ColWideMode | int = Im2ColWideMode.W) -> TensorMapIm2colWide:
        """Return the im2col-wide request with the same bits in the descriptor.

        A wide map is stored as an im2col map whose corners are 0 in every spatial mode except the first. The bits do
        not distinguish the two; only the instruction differs.

        Raises:
            InvalidValueError: there is no spatial mode, or a corner other than the first is not 0.
        """
        if not self.pixel_box_lower_corner or not self.pixel_box_upper_corner:
            raise InvalidValueError("an im2col-wide map needs a corner along W, but this map has no corners")
        if any(self.pixel_box_lower_corner[1:]) or any(self.pixel_box_upper_corner[1:]):
            raise InvalidValueError(
                "an im2col-wide map can only have corners along W",
                {"lower": self.pixel_box_lower_corner, "upper": self.pixel_box_upper_corner},
            )
        values = self.field_values()
        corners = self.pixel_box_lower_corner[0], self.pixel_box_upper_corner[0]
        residue = self.residue if self.residue is not None and self.residue.bits else None
        arguments: tuple[Any, ...] = (*values[:4], *corners, *values[6:], mode, residue)
        return TensorMapIm2colWide(*arguments)


@dataclass(frozen=True, slots=True)
class TensorMapIm2colWide(_Request):
    """The arguments of cuTensorMapEncodeIm2colWide: im2col with a bounding box along W only.

    The corners are single numbers. The descriptor does not store `mode` (W or W128).

    Source:
        CUDA 13.0 driver API, cuTensorMapEncodeIm2colWide.

    >>> one = TensorMapIm2colWide("float16", 4096, (64, 28, 28, 4), (128, 3584, 100352), 0, 0, 64, 128)
    >>> one.pixel_box_lower_corner_width, one.pixels_per_column
    (0, 128)
    """

    data_type: TensorMapDataType | int | None
    global_address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    pixel_box_lower_corner_width: int
    pixel_box_upper_corner_width: int
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] = None  # type: ignore[assignment]
    interleave: Interleave | int = Interleave.NONE
    swizzle: TensorMapSwizzle | int = TensorMapSwizzle.NONE
    l2_promotion: L2Promotion | int = L2Promotion.NONE
    oob_fill: OobFill | int = OobFill.NONE
    mode: Im2ColWideMode | int = Im2ColWideMode.W
    residue: Residue | None = None

    KIND: ClassVar[str] = "im2col_wide"

    def __post_init__(self) -> None:
        self._normalise()

    def as_im2col(self) -> TensorMapIm2col:
        """Return the im2col request with the same bits in the descriptor (corners are 0 in every mode except W)."""
        others = (0,) * max(self.rank - 3, 0)
        values = self.field_values()
        corners = (self.pixel_box_lower_corner_width, *others), (self.pixel_box_upper_corner_width, *others)
        residue = self.residue if self.residue is not None and self.residue.bits else None
        arguments: tuple[Any, ...] = (*values[:4], *corners, *values[6:-1], residue)
        return TensorMapIm2col(*arguments)


TensorMap = TensorMapTiled | TensorMapIm2col | TensorMapIm2colWide
"""Any of the three requests."""

KINDS: Final[dict[str, type[TensorMap]]] = {k.KIND: k for k in (TensorMapTiled, TensorMapIm2col, TensorMapIm2colWide)}
"""Name of a kind -> its class."""

FUNCTIONS: Final = {
    "tiled": "cuTensorMapEncodeTiled",
    "im2col": "cuTensorMapEncodeIm2col",
    "im2col_wide": "cuTensorMapEncodeIm2colWide",
}
"""Name of a kind -> the driver's function."""

for _kind in KINDS.values():
    _sorts = [(f.name, str(f.type).partition("[")[0]) for f in fields(_kind)[:-1]]
    _kind.FIELDS = tuple([name for name, _ in _sorts])
    _kind.TUPLES = tuple([name for name, sort in _sorts if sort == "tuple"])
    _kind.NUMBERS = tuple([name for name, sort in _sorts if sort == "int"])
    _kind.ENUMS = tuple([name for name, sort in _sorts if sort not in ("tuple", "int")])


def corners_of(request: TensorMapIm2col | TensorMapIm2colWide) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the (lower, upper) corners, W first; a wide request has one of each.

    >>> corners_of(TensorMapIm2colWide(6, 4096, (64, 16, 8, 2), (128, 2048, 16384), -1, -2, 64, 128))
    ((-1,), (-2,))
    """
    if isinstance(request, TensorMapIm2col):
        return request.pixel_box_lower_corner, request.pixel_box_upper_corner
    return (request.pixel_box_lower_corner_width,), (request.pixel_box_upper_corner_width,)


W128_PIXELS: Final = 128
"""Pixels of one im2col::w::128 load, for any map. Source: PTX ISA 9.0, im2col::w::128 mode."""


def load_mode_of(request: TensorMap) -> str:
    """Return the mode of a load through this map in PTX spelling, for example 'tile' or 'im2col::w'.

    The bits of an im2col-wide map do not contain its mode; the instruction does, and the request has it as `mode`.

    >>> load_mode_of(TensorMapIm2colWide(6, 4096, (64, 16, 8, 2), (128, 2048, 16384), -1, -2, 64, 128, mode=1))
    'im2col::w::128'
    """
    if isinstance(request, TensorMapIm2colWide):
        return "im2col::w::128" if request.mode == Im2ColWideMode.W128 else "im2col::w"
    return "tile" if isinstance(request, TensorMapTiled) else "im2col"


Direction = Literal["load", "store", "reduce", "prefetch"]
Mode = Literal["tile", "im2col", "gather4", "scatter4"]


@record
class OpRow:
    """Properties of a TMA instruction: its direction and load mode, whether it accepts a multicast count above 1, and
    the number of CTAs that issue it.

    >>> from cute_py.tma.atom.op import OPS, Op
    >>> OPS[Op.SM90_TMA_LOAD_MULTICAST].multicast, OPS[Op.SM100_TMA_2SM_LOAD].ctas
    (True, 2)
    """

    direction: Direction
    mode: Mode = "tile"
    multicast: bool = False
    ctas: int = 1
    reduction: str = ""
    arch: int = 90


class HasRequest(Protocol):
    """Interface of an object that has the request of a tensor map: an atom, or a descriptor or operation of the
    reference pages.
    """

    @property
    def request(self) -> TensorMap:
        """The request that the tensor map was encoded from."""


def request_of(what: TensorMap | HasRequest) -> TensorMap:
    """Return the argument if it is a request, or the request that it holds.

    Raises:
        InvalidTypeError: the object is neither.
    """
    found: Any = what if isinstance(what, _Request) else getattr(what, "request", None)
    if not isinstance(found, _Request):
        hint = (
            "decode(bytes) returns the request of a map" if isinstance(what, (bytes, bytearray, memoryview)) else None
        )
        raise InvalidTypeError(f"expected a tensor map request, got {type(what).__name__}", hint=hint)
    request: TensorMap = found  # type: ignore[assignment]
    return request


class TmaCopyTraits(HasRequest, Protocol):
    """Interface of a copy through a tensor map, for all layers.

    The name comes from CuTe's Copy_Traits of a TMA operation.
    """

    @property
    def descriptor(self) -> bytes:
        """The 128 bytes of the tensor map."""

    @property
    def instruction(self) -> OpRow:
        """The instruction that uses the map."""


class HasTraits(Protocol):
    """Interface of an object that holds a copy: an operation of the reference pages, or a descriptor, which is a copy
    of one box.
    """

    @property
    def traits(self) -> TmaCopyTraits | None:
        """The copy; None if its sizes or strides are not known."""


def traits_of(what: TmaCopyTraits | HasTraits) -> TmaCopyTraits:
    """Return the argument if it is a copy, or the copy that it holds.

    Raises:
        InvalidTypeError: the object is neither, or the sizes or strides of the copy are unknown.
    """
    found: Any = getattr(what, "traits", what)
    missing = [name for name in ("request", "instruction") if not hasattr(found, name)]
    if missing:
        raise InvalidTypeError(f"expected a TMA atom, got {type(what).__name__} without {missing[0]}")
    copy: TmaCopyTraits = found
    return copy


Kind = TypeVar("Kind", bound=_Request)


def normal_request(kind: type[Kind], *values: object) -> Kind:
    """Make a request from the values of its fields, in order. The values must be normalised; they are not checked here.

    A frozen class sets each field through `object.__setattr__`, which takes four times as long as an assignment. So the
    fields are assigned to an object of an unfrozen class with the same slots, which then becomes a request.
    """
    request: Any = _unfrozen(kind)(*values)  # type: ignore[arg-type]
    request.__class__ = kind
    made: Kind = request
    return made


@functools.cache
def _unfrozen(kind: Any) -> Any:
    names = [(one.name, Any, field(default=one.default)) for one in fields(kind)]
    return make_dataclass(kind.__name__, names, bases=(_Request,), slots=True, eq=False)
