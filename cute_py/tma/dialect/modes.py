"""The dialect's modes for loads, stores, reductions and caches, with the architectures that support them.

Names and values come from the TMA Atoms reference page. Its load modes are instruction variants of one tiled load.
They are not the im2col modes of the hardware (`.im2col::w`, `.im2col::w::128`), although the names are similar.

Cache modes are the cache operators of ordinary loads and stores (`load_cache_mode<cg>`). A TMA copy bypasses L1 and
always caches in L2. For TMA, an operator only expresses how long a line should stay in L2; it becomes the 64-bit
operand of `.L2::cache_hint`. Modes without such a preference have no operand.

Like the page, the partition verifier accepts all eight reductions for any element type. The hardware traps on element
types that `REDUCTION_TYPES` does not list for a reduction, so the lowering refuses them.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final, TypeVar

from cute_py.argument_checks import NamedEnum, is_integer, record
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.gpu.kernels.copy_op import CACHE_POLICY
from cute_py.tma.atom.op import Op
from cute_py.tma.descriptor.data_types import FORMATS, Im2ColWideMode
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide
from cute_py.tma.emulator.values import REDUCTIONS

__all__ = [
    "CACHE_MODES",
    "CacheMode",
    "L2Policy",
    "REDUCTION_TYPES",
    "TmaLoadMode",
    "TmaReduceKind",
    "TmaStoreMode",
    "as_cache_mode",
    "as_load_mode",
    "as_reduce_kind",
    "as_store_mode",
    "why_not_reduction",
]


class TmaLoadMode(NamedEnum, IntEnum):
    """How a load reaches its CTAs. The reference page uses the long names.

    >>> int(TmaLoadMode.W128_MULTICAST), TmaLoadMode.TMA_LOAD_TWO_CTA.name
    (3, 'TWO_CTA')
    """

    NO_MULTICAST = 0
    TWO_CTA = 1
    W_MULTICAST = 2
    W128_MULTICAST = 3
    TMA_LOAD_NO_MULTICAST = 0
    TMA_LOAD_TWO_CTA = 1
    TMA_LOAD_W_MULTICAST = 2
    TMA_LOAD_W128_MULTICAST = 3

    @property
    def is_multicast(self) -> bool:
        """Whether this mode allows a multicast count above 1: whether it is W or W128."""
        return self in (TmaLoadMode.W_MULTICAST, TmaLoadMode.W128_MULTICAST)


class TmaStoreMode(NamedEnum, IntEnum):
    """How a store walks global memory.

    >>> TmaStoreMode.TMA_STORE_IM2COL_W is TmaStoreMode.IM2COL_W
    True
    """

    TILED = 0
    IM2COL = 1
    IM2COL_W = 2
    IM2COL_W128 = 3
    TMA_STORE_TILED = 0
    TMA_STORE_IM2COL = 1
    TMA_STORE_IM2COL_W = 2
    TMA_STORE_IM2COL_W128 = 3

    @property
    def is_im2col(self) -> bool:
        return self is not TmaStoreMode.TILED


class TmaReduceKind(NamedEnum, IntEnum):
    """The operation that a reduction applies to the elements in global memory. TMA has no other reductions.

    >>> TmaReduceKind.XOR.ptx
    'xor'
    """

    ADD = 0
    MIN = 1
    MAX = 2
    INC = 3
    DEC = 4
    AND = 5
    OR = 6
    XOR = 7
    TMA_REDUCE_ADD = 0
    TMA_REDUCE_MIN = 1
    TMA_REDUCE_MAX = 2
    TMA_REDUCE_INC = 3
    TMA_REDUCE_DEC = 4
    TMA_REDUCE_AND = 5
    TMA_REDUCE_OR = 6
    TMA_REDUCE_XOR = 7

    @property
    def ptx(self) -> str:
        """The reduction's name in cp.reduce.async.bulk.tensor."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class ReductionTypes:
    """A reduction and the element types that it supports. The hardware traps on other types of one or more bytes."""

    kind: TmaReduceKind
    dtypes: tuple[str, ...]
    source: str = "measured on NVIDIA H200, driver 580.159.04"


REDUCTION_TYPES: Final[tuple[ReductionTypes, ...]] = tuple(
    ReductionTypes(kind, tuple(dict.fromkeys(FORMATS[data_type].dtypes[0] for data_type in REDUCTIONS[kind.ptx])))
    for kind in TmaReduceKind
)
"""The rows are in the order of the enum's numbers."""


def check_reduction(kind: TmaReduceKind, dtype: str) -> list[Diagnostic]:
    """Check that the hardware supports a reduction for this element type."""
    row = REDUCTION_TYPES[kind]
    if dtype in row.dtypes:
        return []
    text = f"reduction {kind.name} of {dtype}; the hardware supports it for {', '.join(row.dtypes)}"
    return [Diagnostic("reduction_type", text=text, source=row.source)]


def why_not_reduction(kind: TmaReduceKind | int | str, dtype: str) -> str | None:
    """Return the reason why the hardware does not support a reduction for an element type, or None.

    Args:
        kind: a `TmaReduceKind`, its value or name. dtype: the name of an element type.
    Raises:
        InvalidValueError, InvalidTypeError: the reduction or the element type does not exist.

    >>> why_not_reduction(TmaReduceKind.INC, "int32")
    'reduction INC of int32; the hardware supports it for uint32'
    """
    return next((d.text for d in check_reduction(as_reduce_kind(kind), as_dtype(dtype).name)), None)


_Mode = TypeVar("_Mode", bound=Enum)


def _as_member(kind: type[_Mode], value: _Mode | int | str, what: str, attribute: str) -> _Mode:
    """Return an enum member from a member, its value, its name in any case, or an MLIR attribute with the name."""
    if isinstance(value, kind):
        return value
    numbered = issubclass(kind, int)
    known = {"known": ", ".join(f"{m.name} = {m.value}" if numbered else m.value for m in kind)}
    number = numbered and is_integer(value)
    if not (number or isinstance(value, str)) or isinstance(value, Enum):
        spellings = ", its name or its number" if numbered else " or its name"
        raise InvalidTypeError(f"{what} must be a {kind.__name__}{spellings}, got {given(value)}", known)
    try:
        if number:
            return kind(operator.index(value))  # type: ignore[arg-type]
        return kind[re.sub(rf"^(?:#cute_nvgpu\.)?{attribute}<(\w+)>\Z", r"\1", str(value)).upper()]
    except (KeyError, ValueError):
        raise InvalidValueError(f"unknown {what} {given(value)}", known) from None


_TILED: Final = re.compile(r"(#cute_nvgpu\.)?tma_load_mode<tiled>|tiled", re.IGNORECASE)
"""The load mode of the reference page's worked example; the page's enum has no `tiled`."""


def as_load_mode(value: TmaLoadMode | int | str) -> TmaLoadMode:
    """Return a load mode from its value or name; `tma_load_mode<tiled>` is NO_MULTICAST.

    Raises:
        InvalidValueError: the mode does not exist.
        InvalidTypeError: the argument is neither a number nor a name.

    >>> as_load_mode("#cute_nvgpu.tma_load_mode<tiled>"), as_load_mode("two_cta")
    (<TmaLoadMode.NO_MULTICAST: 0>, <TmaLoadMode.TWO_CTA: 1>)
    """
    if isinstance(value, str) and _TILED.fullmatch(value):
        return TmaLoadMode.NO_MULTICAST
    return _as_member(TmaLoadMode, value, "load mode", "tma_load_mode")


def as_store_mode(value: TmaStoreMode | int | str) -> TmaStoreMode:
    """Return a store mode from its value or name.

    Raises:
        InvalidValueError: the mode does not exist.
        InvalidTypeError: the argument is neither a number nor a name.

    >>> as_store_mode(1)
    <TmaStoreMode.IM2COL: 1>
    """
    return _as_member(TmaStoreMode, value, "store mode", "tma_store_mode")


def as_reduce_kind(value: TmaReduceKind | int | str) -> TmaReduceKind:
    """Return a reduction from its value, its name or PTX's name.

    Raises:
        InvalidValueError: the reduction does not exist.
        InvalidTypeError: the argument is neither a number nor a name.

    >>> as_reduce_kind("xor")
    <TmaReduceKind.XOR: 7>
    """
    return _as_member(TmaReduceKind, value, "reduce kind", "tma_reduce_kind")


@record
class L2Policy:
    """An L2 eviction priority: its name in `createpolicy`, and the 64-bit operand that applies it to the whole access.

    >>> L2Policy("evict_first", 0x12F0000000000000).name
    'evict_first'
    """

    name: str
    value: int


_NORMAL, _FIRST, _LAST = [L2Policy(f"L2::{name}", value) for name, value in CACHE_POLICY.items()]


@dataclass(frozen=True, slots=True)
class CacheModeRow:
    """One cache mode: whether loads and stores support it, its L2 policy, and the reason for the policy."""

    mode: CacheMode
    loads: bool
    stores: bool
    policy: L2Policy | None
    reason: str


class CacheMode(NamedEnum):
    """How a copy uses the caches: PTX's cache operators, and three eviction priorities by name.

    >>> CacheMode.CG.policy, hex(CacheMode.CS.policy.value)
    (None, '0x12f0000000000000')
    """

    _value_: str
    _row: CacheModeRow

    CA = "ca", True, False, None, "all levels; a TMA copy bypasses L1, L2 caches as usual"
    CG = "cg", True, True, None, "L2 only, as a TMA copy always caches"
    CS = "cs", True, True, _FIRST, "accessed once: first to be evicted"
    LU = "lu", True, False, _FIRST, "last use: first to be evicted"
    CV = "cv", True, False, None, "volatile; L2 is coherent, so a copy needs no hint"
    WB = "wb", False, True, None, "write back, L2's default"
    WT = "wt", False, True, None, "write through to system memory; a TMA store has no such form"
    EVICT_NORMAL = "evict_normal", True, True, _NORMAL, "by name"
    EVICT_FIRST = "evict_first", True, True, _FIRST, "by name"
    EVICT_LAST = "evict_last", True, True, _LAST, "by name"

    def __new__(cls, name: str, loads: bool, stores: bool, policy: L2Policy | None, reason: str) -> CacheMode:
        made = object.__new__(cls)
        made._value_, made._row = name, CacheModeRow(made, loads, stores, policy, reason)
        return made

    @property
    def row(self) -> CacheModeRow:
        """The table row of this cache mode."""
        return self._row

    @property
    def policy(self) -> L2Policy | None:
        """The L2 policy that a copy in this mode has, or None."""
        return self.row.policy

    @property
    def cache_hint(self) -> int | None:
        """The operand of `.L2::cache_hint`, or None if the instruction has no such operand."""
        return None if self.policy is None else self.policy.value


CACHE_MODES: Final[tuple[CacheModeRow, ...]] = tuple(mode.row for mode in CacheMode)
"""This library chose the mapping, because the TMA Atoms reference page only names the attribute.
Source of the operators: PTX ISA 9.0, Cache Operators."""


def as_cache_mode(value: CacheMode | str) -> CacheMode:
    """Return a cache mode from its name, or from an MLIR attribute that contains the name.

    Raises:
        InvalidValueError: the mode does not exist.
        InvalidTypeError: the argument is neither a mode nor a string.

    >>> as_cache_mode("#cute_nvgpu.load_cache_mode<cg>")
    <CacheMode.CG: 'cg'>
    """
    return _as_member(CacheMode, value, "cache mode", "(?:load|store)_cache_mode")


def check_cache_mode(mode: CacheMode, kind: str) -> list[Diagnostic]:
    """Check that a load, store or reduction supports this cache mode.

    >>> print(*check_cache_mode(CacheMode.WB, "load"))
    load does not support cache mode wb
    """
    if mode.row.loads if kind == "load" else mode.row.stores:
        return []
    return [Diagnostic("cache_mode", text=f"{kind} does not support cache mode {mode.value}")]


def check_instruction(mode: TmaLoadMode | None) -> list[Diagnostic]:
    """Check that PTX has an instruction for this load mode. The only multicast mode with one is W_MULTICAST.

    >>> print(*check_instruction(TmaLoadMode.W128_MULTICAST))
    no instruction for load mode W128_MULTICAST; the multicast of a tile is W_MULTICAST
    """
    if mode is not TmaLoadMode.W128_MULTICAST:
        return []
    text = f"no instruction for load mode {mode.name}; the multicast of a tile is {TmaLoadMode.W_MULTICAST.name}"
    return [Diagnostic("load_mode", text=text, source="PTX ISA 9.0, cp.async.bulk.tensor")]


def operation_of(
    load: TmaLoadMode | None, store: TmaStoreMode | None, reduce: TmaReduceKind | None, is_im2col: bool
) -> Op:
    """Return CuTe's operation for these modes. For an im2col reduction, it is the store through the same map.

    >>> operation_of(TmaLoadMode.TWO_CTA, None, None, False), operation_of(None, TmaStoreMode.IM2COL, None, True)
    (<Op.SM100_TMA_2SM_LOAD: 'SM100_TMA_2SM_LOAD'>, <Op.SM90_TMA_STORE_IM2COL: 'SM90_TMA_STORE_IM2COL'>)
    """
    if store is None:
        name = "SM100_TMA_2SM_LOAD" if load is TmaLoadMode.TWO_CTA else "SM90_TMA_LOAD"
        return Op[f"{name}{'_IM2COL' * is_im2col}{'_MULTICAST' * (load is not None and load.is_multicast)}"]
    if is_im2col or reduce is None:
        return Op[f"SM90_TMA_STORE{'_IM2COL' * is_im2col}"]
    return Op[f"SM90_TMA_REDUCE_{reduce.name}"]


_Map = TypeVar("_Map", bound=TensorMap)


def bounded_along_w(request: _Map, mode: TmaStoreMode | None) -> _Map | TensorMapIm2colWide:
    """Return the request for a store mode.

    With modes W and W128, an im2col request becomes im2col-wide, with corners only along W.

    Raises:
        InvalidValueError: with W or W128, a corner along another mode is not 0.
    """
    wide = {TmaStoreMode.IM2COL_W: Im2ColWideMode.W, TmaStoreMode.IM2COL_W128: Im2ColWideMode.W128}
    found = None if mode is None else wide.get(mode)
    return request if found is None or not isinstance(request, TensorMapIm2col) else request.as_wide(found)
