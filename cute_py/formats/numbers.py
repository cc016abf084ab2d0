"""Types of numbers with few bits, and exact casts between them with explicit rounding and saturation.

A float format is (sign, exponent bits, mantissa bits). Between two powers of two, its numbers are spaced by `quantum`:

    e4m3, 2^E <= |x| < 2^(E+1), E >= -6      quantum 2^(E-3)        below 2^-6: 2^-9

A cast adds a number C between 2^(E+20) and 2^(E+21) to |x| in float32. The last mantissa bit of C has the weight of
the quantum, so the sum is rounded to a multiple of the quantum, ties to even. This is |x| rounded to the nearest number
of the format. C also counts the codes that precede those of the exponent E, so the last bits of the sum are the code:

    C = 2^(E+20) + 8 (E+6) quanta, |x| is 8 to 16 quanta      code = 8 (E+6) + |x| / quantum

C depends only on the exponent of |x|; below 2^-6, E is -6. For 64-bit sources the sum is in float64, so they are also
rounded only once. A source of at most 16 bits has few codes: a table, made in this way, has the result for each.

`policy` lists how each cast treats ties, overflow, infinities, NaN, zeros and subnormal numbers.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from cute_py.argument_checks import expect, expect_choice
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given, known_names
from cute_py.formats.threads import BATCH, in_threads, thread_count

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    from cute_py.optional_packages import numpy as np

Codes: TypeAlias = "NDArray[np.unsignedinteger[Any]]"
Floats: TypeAlias = "NDArray[np.floating[Any]]"
Buffers: TypeAlias = "list[NDArray[Any]]"

ALIGNED: Final = 64
"""Alignment of buffers in bytes: a line of the cache, and the widest vector register of x86-64."""
MOST_ELEMENTS: Final = 1 << 36
"""Largest number of elements of an input array. A view that repeats one element may have more than any memory holds."""


@dataclass(frozen=True, slots=True)
class Number:
    """A numeric type that casts support.

    Attributes:
        name: short name, as PTX spells it. dtype: the element type that stores it.
        exponent, mantissa: widths in bits; both are 0 for an integer type. signed: whether it has a sign bit.
        largest: the largest finite number.
        infinite: the code of infinity, or None if the type has none. nan: the code of NaN, or None.

    >>> number("e4m3").largest, number("e2m1").largest, number("ue8m0").nan
    (448.0, 6.0, 255)
    """

    name: str
    dtype: DType
    exponent: int
    mantissa: int
    largest: float
    infinite: int | None = None
    nan: int | None = None
    signed: bool = True

    @property
    def bits(self) -> int:
        """The width of an element in memory, in bits."""
        return self.dtype.bits

    @property
    def is_integer(self) -> bool:
        return not self.exponent

    @property
    def bias(self) -> int:
        """The bias of the exponent field."""
        return 127 if self.name == "ue8m0" else (1 << (self.exponent - 1)) - 1

    def is_nan(self, bits: Codes) -> NDArray[np.bool_]:
        """Return which codes, of any shape, are NaN.

        Raises:
            InvalidTypeError: the codes are not an array of unsigned integers.

        >>> import numpy
        >>> number("e4m3").is_nan(numpy.uint8([0x7E, 0x7F, 0xFF])).tolist()
        [False, True, True]
        """
        if expect_array(bits, "the array of codes").dtype.kind != "u":
            raise InvalidTypeError(f"the codes must be unsigned integers, got {bits.dtype}")
        if self.nan is None:
            return np.zeros(bits.shape, bool)
        if self.infinite is None:
            return np.asarray((bits & bits.dtype.type(self.nan)) == self.nan)
        magnitude = (1 << self.bits - 1) - 1
        return np.asarray((bits & bits.dtype.type(magnitude)) > self.infinite)

    @property
    def max_power(self) -> int:
        """The exponent of the largest power of two that the type represents.

        >>> number("e4m3").max_power, number("e5m2").max_power, number("e2m1").max_power
        (8, 15, 2)
        """
        return math.frexp(self.largest)[1] - 1


def _row(name: str, dtype: str, exponent: int, mantissa: int, largest: float, **more: Any) -> Number:
    return Number(name, as_dtype(dtype), exponent, mantissa, largest, **more)


NUMBERS: Final = (
    _row("float64", "float64", 11, 52, sys.float_info.max, infinite=0x7FF << 52, nan=0x7FF8 << 48),
    _row("float32", "float32", 8, 23, 2.0**127 * (2 - 2**-23), infinite=0x7F800000, nan=0x7FC00000),
    _row("bf16", "bfloat16", 8, 7, 2.0**127 * (2 - 2**-7), infinite=0x7F80, nan=0x7FC0),
    _row("f16", "float16", 5, 10, 65504.0, infinite=0x7C00, nan=0x7E00),
    _row("e5m2", "float8_e5m2", 5, 2, 57344.0, infinite=0x7C, nan=0x7F),
    _row("e4m3", "float8_e4m3fn", 4, 3, 448.0, nan=0x7F),
    _row("e3m2", "float6_e3m2fn", 3, 2, 28.0),
    _row("e2m3", "float6_e2m3fn", 2, 3, 7.5),
    _row("e2m1", "float4_e2m1fn", 2, 1, 6.0),
    _row("ue8m0", "float8_e8m0fnu", 8, 0, 2.0**127, nan=0xFF, signed=False),
    _row("ue4m3", "float8_e4m3fn", 4, 3, 448.0, nan=0x7F, signed=False),
    _row("int8", "int8", 0, 0, 127.0),
    _row("int4", "int4", 0, 0, 7.0),
)
"""PTX ISA 9.0, section 5.2.3 (alternate floating-point formats); OCP MX 1.0, tables 1 to 7, for e3m2, e2m3, e2m1 and
ue8m0. ue4m3 is e4m3 without a sign: the storage of NVFP4's scales, whose sign bit is 0."""

_BY_NAME: Final = {row.name: row for row in NUMBERS}
_BY_DTYPE: Final = {row.dtype.name: row for row in reversed(NUMBERS) if row.name != "ue4m3"}

ROUNDINGS: Final = ("nearest_even", "toward_zero", "up")
"""Rounding modes of a cast: to the nearest, ties to even (PTX .rn); toward zero (.rz); up (.rp). ue8m0 has the last
two."""


def number(name: DTypeLike | Number) -> Number:
    """Look up a numeric type by its PTX name, or by any argument that `as_dtype` accepts.

    Raises:
        InvalidValueError: casts do not support the element type.

    >>> number("torch.float8_e4m3fn").name, number("bfloat16").name
    ('e4m3', 'bf16')
    """
    if isinstance(name, Number):
        return name
    if isinstance(name, str) and name.lower() in _BY_NAME:
        return _BY_NAME[name.lower()]
    dtype = as_dtype(name)
    if dtype.name not in _BY_DTYPE:
        raise InvalidValueError(
            f"casts don't support {dtype.name}", known_names(dtype.name, [row.name for row in NUMBERS])
        )
    return _BY_DTYPE[dtype.name]


def codes(values: NDArray[Any]) -> Codes:
    """The bits of an array's elements, as unsigned integers of the same size.

    >>> codes(cast(np.float32([1.0, -448.0]), "e4m3")).tolist()
    [56, 254]
    """
    expect_array(values)
    if values.dtype.itemsize not in (1, 2, 4, 8):
        raise InvalidTypeError(f"elements of {values.dtype} have no codes; only elements of 1, 2, 4 or 8 bytes do")
    return values.view(f"u{values.dtype.itemsize}")


def expect_array(values: object, what: str = "the array") -> NDArray[Any]:
    """Return the array; refuse an object that is not a numpy array, or has more than `MOST_ELEMENTS` elements.

    Raises:
        InvalidTypeError: the object is not a numpy array of numbers. InvalidValueError: the array has too many
            elements.
    """
    if not isinstance(values, np.ndarray):
        raise InvalidTypeError(f"{what} must be a numpy array, got {given(values)}")
    if values.dtype.hasobject:
        raise InvalidTypeError(f"{what} must be an array of numbers, got {values.dtype}")
    if values.size > MOST_ELEMENTS:
        raise InvalidValueError(f"{what} has {values.size} elements; must be at most {MOST_ELEMENTS}")
    return values


def of_codes(bits: NDArray[Any], dtype: DTypeLike | Number) -> NDArray[Any]:
    """View unsigned integers as an array of the type that has these bits, without a copy: the inverse of `codes`.

    >>> of_codes(np.array([0x38, 0x40], np.uint8), "float8_e4m3fn").astype(float).tolist()
    [1.0, 2.0]
    """
    kind = number(dtype).dtype.numpy
    expect_array(bits)
    if bits.dtype.itemsize % kind.itemsize or (bits.dtype.itemsize > kind.itemsize and not bits.ndim):
        raise InvalidTypeError(
            f"codes of {number(dtype).name} have {kind.itemsize} bytes, got elements of type {bits.dtype}"
        )
    if bits.dtype.itemsize > kind.itemsize and bits.strides[-1] != bits.dtype.itemsize:
        raise InvalidTypeError("codes in wider words must be contiguous along the last axis")
    return bits.view(kind)


@functools.cache
def _table(name: str) -> NDArray[np.float32]:
    """A table of the value of each code as float32, for a type of at most 8 bits or for f16."""
    row = _BY_NAME[name]
    bits = np.arange(1 << 8 * row.dtype.numpy.itemsize).astype(f"u{row.dtype.numpy.itemsize}")
    if row.name == "int4":
        return (((bits & 15) ^ 8).astype(np.int8) - 8).astype(np.float32)
    if row.bits < 8:
        bits &= np.uint8((1 << row.bits) - 1)
    with np.errstate(invalid="ignore"):
        return of_codes(bits, row).astype(np.float32)


def _look_up(table: NDArray[Any], index: NDArray[Any], out: NDArray[Any]) -> None:
    """Write the table entry of each index to `out`."""

    def work(part: slice) -> None:
        for begin in range(part.start, part.stop, BATCH):
            batch = slice(begin, min(begin + BATCH, part.stop))
            np.take(table, index[batch], out=out[batch], mode="clip")

    in_threads([work] * thread_count(index.size, BATCH, index.size), index.size)


def to_float32(values: NDArray[Any], dtype: DTypeLike | Number | None = None) -> NDArray[np.float32]:
    """Convert the values to float32. This is exact for every type except float64, which is rounded to nearest.

    Args:
        values: an array of one of `NUMBERS`; with `dtype`, codes of this type as unsigned integers.

    >>> to_float32(np.array([0x38, 0x7E], np.uint8), "e4m3").tolist()
    [1.0, 448.0]
    """
    expect_array(values)
    row = number(values.dtype if dtype is None else dtype)
    if dtype is not None and values.dtype.kind == "u" and row.name != "float64":
        values = of_codes(np.ascontiguousarray(values), row)
    if row.name == "float32":
        return np.asarray(values, np.float32)
    if row.bits <= 8 or row.name == "f16":
        made = np.empty(values.shape, np.float32)
        source, out = codes(np.ascontiguousarray(values)).reshape(-1), made.reshape(-1)
        table = _table(row.name)
        _look_up(table, source, out)
        return made
    if row.name == "bf16":
        made = np.empty(values.shape, np.float32)
        source, out32 = codes(np.ascontiguousarray(values)).reshape(-1), made.reshape(-1).view(np.uint32)
        np.left_shift(source, 16, out=out32, dtype=np.uint32)
        return made
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def cast(
    values: NDArray[Any],
    dtype: DTypeLike | Number,
    *,
    rounding: str | None = None,
    saturate: bool = True,
    source: DTypeLike | Number | None = None,
) -> NDArray[Any]:
    """Cast values to another type; each value is rounded once.

    Args:
        values: an array of one of `NUMBERS`; with `source`, its codes as unsigned integers.
        rounding: one of `ROUNDINGS`. The default is nearest_even, and for ue8m0 up. nearest_even is not defined for
            ue8m0. toward_zero is defined for ue8m0 and integers, and up only for ue8m0.
        saturate: whether a number beyond the largest finite one becomes the largest (PTX .satfinite). If False, it
            becomes infinity, or NaN if the type has no infinity. Integers, and types with neither infinity nor NaN,
            always saturate.
    Returns:
        an array with the numpy dtype of the type. Each element narrower than a byte takes one byte.
    Raises:
        InvalidValueError: the type does not have the rounding. InvalidTypeError: the values are not an array of
            numbers.
    Source:
        PTX ISA 9.0, cvt. `formats.POLICY` has each special case, and where other libraries differ.

    >>> cast(np.float32([0.3, 449.0, 1e9, -0.0]), "e4m3").astype(float).tolist()
    [0.3125, 448.0, 448.0, -0.0]
    >>> [float(cast(np.float32([3.0]), "ue8m0", rounding=mode)[0]) for mode in ("up", "toward_zero")]
    [4.0, 2.0]
    """
    row = number(dtype)
    expect(saturate, bool, "saturate")
    expect_array(values)
    if not values.ndim:
        return cast(values.reshape(1), row, rounding=rounding, saturate=saturate, source=source).reshape(())
    mode = _rounding(row, rounding)
    origin = number(values.dtype if source is None else source)
    if source is not None and values.dtype.kind == "u":
        values = of_codes(np.ascontiguousarray(values), origin)
    values = np.ascontiguousarray(values)
    if not values.size:
        return np.empty(values.shape, row.dtype.numpy)
    if origin.name == row.name:
        return values.copy()
    if row.name == "ue8m0":
        return of_codes(_powers(values, origin, mode == "up", saturate), row)
    wide = values if origin.name == "float64" else None
    if row.is_integer:
        return _integers(to_float32(values) if wide is None else values, row, mode)
    if row.name == "float64":
        return (values if origin.name == "f16" else to_float32(values)).astype(np.float64)
    if row.name == "float32":
        return _to_single(values, saturate)
    made = np.empty(values.shape, f"u{row.dtype.numpy.itemsize}")
    flat, out = values.reshape(-1), made.reshape(-1)
    if values.dtype.itemsize <= 2:
        _look_up(_conversions(origin.name, row.name, saturate), codes(flat), out)
    else:
        _round(row, flat, out, saturate)
    return of_codes(made, row)


def _round(row: Number, values: Floats, out: Codes, saturate: bool) -> None:
    """Write the codes of float32 or float64 numbers to `out`."""
    threads = thread_count(values.size, 4 * BATCH)  # for fewer batches, a thread costs more than it saves
    batch = min(values.size, BATCH)

    rounding = rounding_of(row, values.dtype, saturate)

    def work(buffers: Buffers) -> Callable[[slice], None]:
        return lambda part: rounding(values[part], out[part], buffers)

    in_threads([work(rounding.buffers(batch)) for _ in range(threads)], values.size)


@functools.cache
def _conversions(source: str, target: str, saturate: bool) -> Codes:
    """A table that maps each code of a source type of at most 16 bits to its code in `target`."""
    origin, row = _BY_NAME[source], _BY_NAME[target]
    unsigned = f"u{origin.dtype.numpy.itemsize}"
    values = to_float32(np.arange(1 << (8 * origin.dtype.numpy.itemsize)).astype(unsigned), origin)
    made = np.empty(values.shape, f"u{row.dtype.numpy.itemsize}")
    rounding = rounding_of(row, values.dtype, saturate)
    rounding(values, made, rounding.buffers(values.size))
    return made


def _rounding(row: Number, rounding: str | None) -> str:
    if rounding is None:
        return "up" if row.name == "ue8m0" else "nearest_even"
    expect_choice(expect(rounding, str, "rounding"), ROUNDINGS, "rounding")
    allowed = ("toward_zero", "up") if row.name == "ue8m0" else ("nearest_even",)
    if row.is_integer:
        allowed = ("nearest_even", "toward_zero")
    if rounding not in allowed:
        raise InvalidValueError(f"rounding = {rounding!r} for a cast to {row.name}; must be {' or '.join(allowed)}")
    return rounding


def _to_single(values: NDArray[Any], saturate: bool) -> NDArray[np.float32]:
    made = to_float32(values)
    if made is values:
        made = made.copy()
    if saturate and values.dtype == np.float64:
        limit = np.float32(_BY_NAME["float32"].largest)
        np.clip(made, -limit, limit, out=made)
    return made


def _integers(values: NDArray[Any], row: Number, mode: str) -> NDArray[Any]:
    """Round values to integers and saturate them; NaN becomes 0."""
    low = -row.largest - 1
    whole = np.rint(values) if mode == "nearest_even" else np.trunc(values)
    whole = np.where(np.isnan(whole), 0, np.clip(whole, low, row.largest))
    return whole.astype(np.int8).astype(row.dtype.numpy)


def _powers(values: NDArray[Any], origin: Number, up: bool, saturate: bool) -> NDArray[np.uint8]:
    """The ue8m0 codes of |x|: the next power of two below or above. Float64 input is not rounded to float32 first."""
    wide = origin.name == "float64"
    bits = codes(values if wide else to_float32(values)) & (0x7FFFFFFFFFFFFFFF if wide else 0x7FFFFFFF)
    mantissa, bias = (52, 1023) if wide else (23, 127)
    exponent = (bits >> mantissa).astype(np.int64) - bias
    below = bits & ((1 << mantissa) - 1)
    special = (bits >> mantissa) == 2 * bias + 1
    if wide:
        rest = (below != 0) | ((bits >> mantissa) == 0) & (bits != 0)
        found = np.where((bits >> mantissa) == 0, -bias, exponent) + 127 + (up & rest)
        found = np.where(exponent < -127, 0, found)  # 2^-127 is the smallest
    else:
        half = 1 << (mantissa - 1)  # 2^-127 is a subnormal float32
        grow = np.where(exponent == -127, below > half, below != 0)
        found = exponent + 127 + (up & grow)
    top = 254 if saturate else 255
    found = np.clip(found, 0, top)
    found = np.where(special, np.where(below == 0, top, 255), found)
    return found.astype(np.uint8)


class Rounding:
    """Rounds float32 or float64 numbers to the codes of a narrower float type."""

    def __init__(self, row: Number, source: np.dtype[Any], saturate: bool) -> None:
        wide = source.itemsize == 8
        self.row = row
        self.unsigned: Any = np.uint64 if wide else np.uint32
        self.float: Any = np.float64 if wide else np.float32
        mantissa, bias = (52, 1023) if wide else (23, 127)
        self.infinite = (2 * bias + 1) << mantissa
        largest = int(np.array(row.largest, self.float).view(self.unsigned))
        shift, first = mantissa - row.mantissa, bias + 1 - row.bias
        # Without saturation, larger numbers become the number after the largest: its code is that of infinity or NaN. A
        # type that has neither always saturates.
        always = row.infinite is None and row.nan is None
        top = largest if saturate or always else largest + (1 << shift)
        self.same_exponent = row.exponent == 8 and not wide
        # 0-d arrays, which a ufunc does not have to convert at each call.
        self.magnitude, self.zero, self.top, self.smallest, self.mantissa, self.step, self.start = (
            np.array(value, self.unsigned)
            for value in (
                (1 << (8 * source.itemsize - 1)) - 1,
                0,
                top,
                first << mantissa,
                mantissa,
                (1 << mantissa) + (1 << row.mantissa),
                (shift << mantissa) - (first << row.mantissa),
            )
        )
        self.shift, self.one, self.below_half = (
            np.array(value, self.unsigned) for value in (shift, 1, (1 << shift - 1) - 1)
        )
        self.sign = np.array(1 << row.bits - 1, np.uint8 if row.bits <= 8 else np.uint16)

    def buffers(self, count: int) -> Buffers:
        """Allocate the arrays that a call needs for batches of at most `count` numbers: magnitudes, sums, sign bits of
        codes, and signs."""
        kinds = self.magnitude.dtype, self.magnitude.dtype, self.sign.dtype, np.dtype(bool)
        room = -(-count // ALIGNED) * ALIGNED
        memory = np.empty(ALIGNED + room * sum(kind.itemsize for kind in kinds), np.uint8)
        made, at = [], -memory.ctypes.data % ALIGNED
        for kind in kinds:
            made.append(memory[at : at + room * kind.itemsize].view(kind)[:count])
            at += room * kind.itemsize
        return made

    def __call__(self, values: Floats, out: Codes, buffers: Buffers) -> None:
        """Write the codes of `values` to `out`, in batches of the size of the buffers."""
        batch = len(buffers[0])
        for begin in range(0, len(values), batch):
            part = slice(begin, begin + batch)
            count = len(values[part])
            self._batch(values[part], out[part], *(buffer[:count] for buffer in buffers))

    def _batch(
        self, values: Floats, out: Codes, size_of: Codes, total: Codes, sign: Codes, negative: NDArray[np.bool_]
    ) -> None:
        np.bitwise_and(values.view(self.unsigned), self.magnitude, out=size_of)
        np.signbit(values, out=negative)
        peak = int(np.maximum.reduce(size_of))
        nan = size_of > self.infinite if peak > self.infinite else None
        if peak > int(self.top):
            np.clip(size_of, self.zero, self.top, out=size_of)
        if self.same_exponent:
            self._same_exponent(size_of, total)
        else:
            np.clip(size_of, self.smallest, self.top, out=total)
            np.right_shift(total, self.mantissa, out=total)
            np.multiply(total, self.step, out=total)
            np.add(total, self.start, out=total)  # the bits of C
            np.add(size_of.view(self.float), total.view(self.float), out=total.view(self.float))
        np.copyto(out, total, casting="unsafe")
        if nan is not None:
            self._write_nan(out, nan, negative)
        if self.row.signed:
            np.multiply(negative.view(np.uint8), self.sign, out=sign)
            np.bitwise_or(out, sign, out=out)
        else:
            out[negative if nan is None else negative & ~nan] = 0

    def _same_exponent(self, size_of: Codes, total: Codes) -> None:
        """Cast to a type with the same exponent width, such as float32 to bf16: round the bits as an integer, ties to
        even. The sum with C would overflow."""
        np.right_shift(size_of, self.shift, out=total)
        np.bitwise_and(total, self.one, out=total)
        np.add(total, self.below_half, out=total)
        np.add(total, size_of, out=total)
        np.right_shift(total, self.shift, out=total)

    def _write_nan(self, out: Codes, nan: NDArray[np.bool_], negative: NDArray[np.bool_]) -> None:
        """Write the code of NaN. If the type has none, NaN becomes the positive largest number, as in PTX."""
        row = self.row
        if row.nan is not None:
            out[nan] = row.nan
        else:
            out[nan], negative[nan] = codes(np.array([row.largest]).astype(row.dtype.numpy))[0], False


@functools.cache
def rounding_of(row: Number, source: np.dtype[Any], saturate: bool) -> Rounding:
    """Return the Rounding from a source type to a type; repeated calls return the same object."""
    return Rounding(row, source, saturate)
