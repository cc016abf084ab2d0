"""Tables of the operations, swizzle modes and element formats that an atom can have.

An operation has CuTe's name. Its row has the direction, the load mode of the instruction, and the first architecture
that supports it.

A swizzle on bytes Sw<B,M,S> permutes units of 2**M bytes within spans of 2**(M+B) bytes: it XORs the index of a unit in
its span with B address bits, starting at bit M+S. The engine supports units of 16 bytes with spans of 32, 64 and 128
bytes, and on sm_100 two larger units with a span of 128 bytes.

The format depends on the width and the sign of an element, not on its meaning. All 8-bit types move as UINT8.

Source: cute/arch/copy_sm90_tma.hpp, copy_sm100_tma.hpp; PTX ISA, cp.async.bulk.tensor. Swizzles:
cute/atom/copy_traits_sm90_tma_swizzle.hpp; codes: CUtensorMapSwizzle in cuda.h. Formats:
cute/arch/copy_sm90_desc.hpp, to_CUtensorMapDataType.
"""

from __future__ import annotations

import re
from typing import Final, get_args

from cute_py.argument_checks import NamedEnum, expect, expect_integer, is_integer, record
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType
from cute_py.errors import InvalidValueError, StaticAssertError, given, known_names
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import MAX_CLUSTER
from cute_py.tma.descriptor.data_types import TensorMapDataType
from cute_py.tma.descriptor.limits import SWIZZLE_SPAN
from cute_py.tma.descriptor.request import Direction, Mode, OpRow


class Op(NamedEnum):
    """A TMA operation; `Op.SM90_TMA_LOAD.row` has its properties.

    >>> Op.SM90_TMA_LOAD_MULTICAST.row.multicast, str(Op.SM90_TMA_LOAD)
    (True, 'SM90_TMA_LOAD')
    """

    SM90_TMA_LOAD = "SM90_TMA_LOAD"
    SM90_TMA_LOAD_MULTICAST = "SM90_TMA_LOAD_MULTICAST"
    SM90_TMA_LOAD_IM2COL = "SM90_TMA_LOAD_IM2COL"
    SM90_TMA_LOAD_IM2COL_MULTICAST = "SM90_TMA_LOAD_IM2COL_MULTICAST"
    SM90_TMA_STORE = "SM90_TMA_STORE"
    SM90_TMA_STORE_IM2COL = "SM90_TMA_STORE_IM2COL"
    SM90_TMA_REDUCE_ADD = "SM90_TMA_REDUCE_ADD"
    SM90_TMA_REDUCE_MIN = "SM90_TMA_REDUCE_MIN"
    SM90_TMA_REDUCE_MAX = "SM90_TMA_REDUCE_MAX"
    SM90_TMA_REDUCE_INC = "SM90_TMA_REDUCE_INC"
    SM90_TMA_REDUCE_DEC = "SM90_TMA_REDUCE_DEC"
    SM90_TMA_REDUCE_AND = "SM90_TMA_REDUCE_AND"
    SM90_TMA_REDUCE_OR = "SM90_TMA_REDUCE_OR"
    SM90_TMA_REDUCE_XOR = "SM90_TMA_REDUCE_XOR"
    SM90_TMA_PREFETCH = "SM90_TMA_PREFETCH"
    SM100_TMA_2SM_LOAD = "SM100_TMA_2SM_LOAD"
    SM100_TMA_2SM_LOAD_MULTICAST = "SM100_TMA_2SM_LOAD_MULTICAST"
    SM100_TMA_2SM_LOAD_IM2COL = "SM100_TMA_2SM_LOAD_IM2COL"
    SM100_TMA_2SM_LOAD_IM2COL_MULTICAST = "SM100_TMA_2SM_LOAD_IM2COL_MULTICAST"
    SM100_TMA_LOAD_2D_GATHER4 = "SM100_TMA_LOAD_2D_GATHER4"
    SM100_TMA_LOAD_MULTICAST_2D_GATHER4 = "SM100_TMA_LOAD_MULTICAST_2D_GATHER4"
    SM100_TMA_2SM_LOAD_2D_GATHER4 = "SM100_TMA_2SM_LOAD_2D_GATHER4"
    SM100_TMA_2SM_LOAD_MULTICAST_2D_GATHER4 = "SM100_TMA_2SM_LOAD_MULTICAST_2D_GATHER4"
    SM100_TMA_STORE_2D_SCATTER4 = "SM100_TMA_STORE_2D_SCATTER4"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def _missing_(cls, value: str) -> Op:  # type: ignore[override]
        return as_op(value)

    @property
    def row(self) -> OpRow:
        return OPS[self]


def _row(name: str) -> OpRow:
    """Make the table row of a name SM<arch>_TMA[_2SM]_<direction>[_<reduction>][_MULTICAST][_2D][_<mode>]."""
    parts = name.split("_")
    direction: Direction = next(d for d in get_args(Direction) if d.upper() in parts)
    mode: Mode = next((m for m in get_args(Mode) if m.upper() in parts), "tile")
    reduction = parts[-1].lower() if direction == "reduce" else ""
    return OpRow(direction, mode, "MULTICAST" in parts, 2 if "2SM" in parts else 1, reduction, int(parts[0][2:]))


OPS: dict[Op, OpRow] = {op: _row(op.name) for op in Op}


def as_op(op: Op | str) -> Op:
    """Return an `Op` from an `Op` or its name, in C++ or Python spelling.

    Raises:
        InvalidValueError: the operation does not exist; the message lists the nearest names.

    >>> as_op("SM90_TMA_STORE"), as_op("cute::SM90_TMA_STORE{}")
    (<Op.SM90_TMA_STORE: 'SM90_TMA_STORE'>, <Op.SM90_TMA_STORE: 'SM90_TMA_STORE'>)
    """
    if isinstance(op, Op):
        return op
    name = op.strip().removeprefix("cute::").removesuffix("{}").upper() if isinstance(op, str) else ""
    if name in Op.__members__:
        return Op[name]
    raise InvalidValueError(f"unknown TMA operation {given(op)}", known_names(name, tuple(Op.__members__)))


_ARCHITECTURE: Final = re.compile(r"(?:sm_|compute_)?([0-9]{1,4})[af]?")


def architecture_number(arch: str) -> int:
    """Return the number of an architecture: 90 for 'sm_90a', 103 for 'sm_103f'.

    >>> architecture_number("sm_90a")
    90
    """
    found = _ARCHITECTURE.fullmatch(arch) if isinstance(arch, str) else None
    if found is None:
        raise InvalidValueError(
            f"unknown architecture {given(arch)}", {"examples": "sm_90a, sm_100a, sm_103a, sm_120a"}
        )
    return int(found[1])


def cta_count(num_multicast: int | tuple[int, ...] | Layout) -> int:
    """Return the number of CTAs of a multicast, from an integer or the size of a shape or layout.

    >>> cta_count(2), cta_count((2, 1)), cta_count(Layout(Int(4)))
    (2, 2, 4)
    """
    shaped = Layout(num_multicast) if isinstance(num_multicast, tuple) else num_multicast  # sizes are 1 or more
    count = size(shaped) if hasattr(shaped, "shape") and not is_integer(shaped) else shaped
    return expect_integer(count, "num_multicast, the number of CTAs,")


def check_op(op: Op, arch: str, num_multicast: int = 1) -> list[Diagnostic]:
    """Check that an architecture has an operation, and that this number of CTAs may share a tile in it.

    The result has at most one reason, the first that applies.
    """
    row = op.row
    number = architecture_number(arch)
    if number < row.arch:
        return [Diagnostic("op_architecture", text=f"{op} needs sm_{row.arch} or newer, not {arch}")]
    if row.ctas == 2 and number >= 120:
        return [Diagnostic("op_pair", text=f"{op} pairs two CTAs, which {arch} does not support")]
    if not 1 <= num_multicast <= MAX_CLUSTER:
        must = "be at least 1" if num_multicast < 1 else f"be at most {MAX_CLUSTER}, the largest cluster"
        return [Diagnostic("num_multicast", "num_multicast", num_multicast, "CTAs", must)]
    return []


def receives_slices(op: Op, num_multicast: int) -> bool:
    """Whether each CTA receives only its slice of a tile.

    This holds for a load without multicast that several CTAs share.
    """
    row = op.row
    return row.direction == "load" and not row.multicast and row.ctas == 1 and num_multicast > 1


def check_shared(op: Op, num_multicast: int) -> list[Diagnostic]:
    """Return the reason why CTAs that share a tile do not all receive the whole tile; empty if they do.

    >>> print(*check_shared(Op.SM90_TMA_LOAD, 4))
    SM90_TMA_LOAD does not multicast, so each of the 4 CTAs receives only its slice of the tile
    >>> check_shared(Op.SM90_TMA_LOAD_MULTICAST, 4)
    []
    """
    if not receives_slices(op, num_multicast):
        return []
    text = f"{op} does not multicast, so each of the {num_multicast} CTAs receives only its slice of the tile"
    return [Diagnostic("slice_alone", text=text)]


@record
class SwizzleRow:
    """One swizzle mode of TMA.

    `bits`, `base` and `shift` are B, M and S of Sw<B,M,S> (`shift` None: any), and `code` is the driver's number.
    `span`, and `alignment` of the tile in shared memory, are in bytes.

    >>> swizzle_row(Swizzle(3, 4, 3)).span, swizzle_row(Swizzle(3, 4, 3)).alignment
    (128, 1024)
    """

    name: str
    bits: int
    base: int
    shift: int | None
    code: int
    span: int
    alignment: int


SWIZZLE_MODES: tuple[SwizzleRow, ...] = (
    SwizzleRow("NONE", 0, 4, 3, 0, 0, 128),
    *(SwizzleRow(f"{SWIZZLE_SPAN[b]}B", b, 4, 3, b, SWIZZLE_SPAN[b] or 0, 128 << b) for b in (1, 2, 3)),
    SwizzleRow("128B_ATOM_32B", 2, 5, 2, 4, 128, 1024),
    SwizzleRow("128B_ATOM_64B", 2, 6, None, 6, 128, 1024),
)
"""The pattern of a swizzle repeats every 8 spans: the alignment of the tile, and at least 128 bytes."""


_MODE_OF: Final = {(row.bits, row.base): row for row in reversed(SWIZZLE_MODES)}


def check_byte_swizzle(swizzle: Swizzle) -> list[Diagnostic]:
    """Return the first of CuTe's conditions that a swizzle on bytes breaks; empty if TMA supports the swizzle."""
    expect(swizzle, Swizzle, "a swizzle of bytes")
    b, m, s = swizzle.bits, swizzle.base, swizzle.shift
    expected = ""
    if m == 4:
        expected = "" if 0 <= b <= 3 else "Expected B = 0,1,2, or 3 when M == 4. "
        expected = expected or ("" if s == 3 else "Expected S = 3 when M == 4. ")
    elif m in (5, 6):
        expected = "" if b == 2 else "Expected B = 2 when M == 5 or 6. "
        expected = expected or ("" if m == 6 or s == 2 else "Expected S = 2 when M == 5. ")
    if m in (4, 5, 6) and not expected:
        return []
    return [Diagnostic("swizzle", text=f"{expected}Unsupported layout swizzle.", source="CuTe's static_assert")]


def why_not_swizzle(swizzle: Swizzle) -> str | None:
    """Return CuTe's condition that a swizzle on bytes breaks, or None if TMA supports the swizzle.

    >>> why_not_swizzle(Swizzle(3, 5, 3))
    'Expected B = 2 when M == 5 or 6. Unsupported layout swizzle.'
    """
    return next((found.message for found in check_byte_swizzle(swizzle)), None)


def swizzle_row(swizzle: Swizzle) -> SwizzleRow:
    """Return the TMA swizzle mode of a swizzle on bytes.

    Raises:
        StaticAssertError: TMA does not support the swizzle; the message is CuTe's condition.

    >>> swizzle_row(Swizzle(3, 4, 3)).name
    '128B'
    """
    found = check_byte_swizzle(swizzle)
    if not found:  # a legal swizzle: B and M select the mode
        return _MODE_OF[swizzle.bits, swizzle.base]
    known = ", ".join(f"Sw<{r.bits},{r.base},{3 if r.shift is None else r.shift}> = {r.name}" for r in SWIZZLE_MODES)
    facts = {"swizzle": f"{swizzle}, read as a permutation of bytes", "TMA knows": known}
    raise StaticAssertError(found[0].message, facts)


_T = TensorMapDataType

FORMAT_OF: Final[dict[str, TensorMapDataType]] = {
    **dict.fromkeys(("int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"), _T.UINT8),
    "uint16": _T.UINT16,
    "uint32": _T.UINT32,
    "int32": _T.INT32,
    "uint64": _T.UINT64,
    "int64": _T.INT64,
    "float16": _T.FLOAT16,
    "float32": _T.FLOAT32,
    "float64": _T.FLOAT64,
    "bfloat16": _T.BFLOAT16,
    "tfloat32": _T.TFLOAT32,
    "float4_e2m1fn": _T.PACKED_16U4_ALIGN8B,
    "float4_e2m1fn_unpacksmem": _T.PACKED_16U4_ALIGN16B,
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn"), _T.PACKED_16U6_ALIGN16B),
    **dict.fromkeys(("float6_e2m3fn_unpacksmem", "float6_e3m2fn_unpacksmem"), _T.PACKED_16U6_ALIGN16B),
}

SAME_WIDTH: Final[dict[int, str]] = {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"}
"""bits -> a type of that width that TMA moves."""


def tensor_map_format(dtype: DType) -> TensorMapDataType:
    """Return the tensor-map format of an element type.

    Raises:
        StaticAssertError: 'Unknown TMA Format!'; the hint names a type of the same width that TMA can move.

    >>> from cute_py.dtypes import as_dtype
    >>> tensor_map_format(as_dtype("bfloat16"))
    TensorMapDataType.BFLOAT16
    """
    expect(dtype, DType, "an element type")
    found = FORMAT_OF.get(dtype.name)
    if found is None:
        other = SAME_WIDTH.get(dtype.bits)
        raise StaticAssertError(
            "Unknown TMA Format!",
            {"element type": dtype.name, "TMA moves": ", ".join(FORMAT_OF)},
            f"internal_dtype={other!r} moves the same bits" if other else None,
        )
    return found


def movable_type(dtype: DType) -> str:
    """Return the type itself if TMA has a format for it, otherwise a type of the same width.

    The width of the type must be a multiple of 8 bits.

    >>> from cute_py.dtypes import as_dtype
    >>> movable_type(as_dtype("int16"))
    'uint16'
    """
    expect(dtype, DType, "an element type")
    if dtype.name in FORMAT_OF and dtype.bits >= 8:
        return dtype.name
    if dtype.bits in SAME_WIDTH:
        return SAME_WIDTH[dtype.bits]
    tensor_map_format(dtype)
    return dtype.name
