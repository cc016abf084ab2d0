"""The modes of the partition verifier: how a tile is loaded, how it is stored, how it is reduced.

Names and numbers are those of the TMA Atoms reference page. Its load modes are instruction variants of one tiled load;
the im2col walk of the hardware (`.im2col::w`, `.im2col::w::128`) has similar names and is something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, TypeVar

from cute_py.errors import InvalidTypeError, InvalidValueError, given


class TmaLoadMode(IntEnum):
    """How a load reaches its CTAs. The long names are the reference page's.

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
        """Does this mode take a multicast count above 1? By meaning, not by number: W and W128."""
        return self in (TmaLoadMode.W_MULTICAST, TmaLoadMode.W128_MULTICAST)


class TmaStoreMode(IntEnum):
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


class TmaReduceKind(IntEnum):
    """What a reduction does with the element in global memory; all that the instruction family has.

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


TILED_LOAD_SPELLINGS: Final = ("tiled", "tma_load_mode<tiled>", "#cute_nvgpu.tma_load_mode<tiled>")
"""Spellings in the reference page's worked example; the enum beside it has no `tiled`. Taken as NO_MULTICAST."""

_Mode = TypeVar("_Mode", bound=IntEnum)


def _as_member(kind: type[_Mode], value: Any, what: str) -> _Mode:
    """A member from itself, its number or one of its names."""
    if isinstance(value, kind):
        return value
    if isinstance(value, str) and value in kind.__members__:
        return kind[value]
    if isinstance(value, int) and not isinstance(value, (bool, IntEnum)) and value in {int(m) for m in kind}:
        return kind(value)
    known = ", ".join(f"{m.name} = {int(m)}" for m in kind)
    if isinstance(value, (int, str)) and not isinstance(value, (bool, IntEnum)):
        raise InvalidValueError(f"unknown {what} {given(value)}", {"known": known})
    raise InvalidTypeError(
        f"{what} must be a {kind.__name__}, its name or its number, got {given(value)}", {"known": known}
    )


def as_load_mode(value: Any) -> TmaLoadMode:
    """A load mode, from its number or name; `tma_load_mode<tiled>` is NO_MULTICAST.

    Raises:
        InvalidValueError: no such mode. InvalidTypeError: no number and no name.

    >>> as_load_mode("#cute_nvgpu.tma_load_mode<tiled>")
    <TmaLoadMode.NO_MULTICAST: 0>
    """
    if isinstance(value, str) and value in TILED_LOAD_SPELLINGS:
        return TmaLoadMode.NO_MULTICAST
    return _as_member(TmaLoadMode, value, "load mode")


def as_store_mode(value: Any) -> TmaStoreMode:
    """A store mode, from its number or name.

    >>> as_store_mode(1)
    <TmaStoreMode.IM2COL: 1>
    """
    return _as_member(TmaStoreMode, value, "store mode")


def as_reduce_kind(value: Any) -> TmaReduceKind:
    """A reduction, from its number or name, PTX's too.

    >>> as_reduce_kind("xor")
    <TmaReduceKind.XOR: 7>
    """
    return _as_member(TmaReduceKind, value.upper() if isinstance(value, str) else value, "reduce kind")


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature that not every architecture has. `first` and `before` are architecture numbers, 90 of sm_90a."""

    feature: str
    first: int
    before: int | None
    source: str


PTX_TENSOR: Final = "PTX ISA 9.0, cp.async.bulk.tensor, Target ISA Notes"
TMA_GATE: Final = Gate("TMA", 90, None, PTX_TENSOR)
MULTICAST_GATE: Final = Gate("multicast", 90, None, PTX_TENSOR)
IM2COL_GATE: Final = Gate("im2col", 90, None, PTX_TENSOR)
TWO_CTA_GATE: Final = Gate("a two-CTA load", 100, 120, f"{PTX_TENSOR}, .cta_group")
CHUNKED_SWIZZLE_GATE: Final = Gate("a swizzle of 32- or 64-byte chunks", 100, None, "CUDA 13.0 driver API")


def why_not_gate(gate: Gate, number: int) -> str | None:
    """Why a feature is not on an architecture, or None.

    >>> why_not_gate(TWO_CTA_GATE, 90)
    'a two-CTA load needs sm_100 or newer, not sm_90'
    """
    if number < gate.first:
        return f"{gate.feature} needs sm_{gate.first} or newer, not sm_{number}"
    if gate.before is not None and number >= gate.before:
        return f"sm_{number} has no pairs of CTAs for {gate.feature}"
    return None


def why_not_modes(load: TmaLoadMode | None, store: TmaStoreMode | None, number: int) -> str | None:
    """Why an architecture has not what these modes need, or None.

    >>> why_not_modes(TmaLoadMode.W_MULTICAST, None, 89)
    'multicast needs sm_90 or newer, not sm_89'
    """
    gates = []
    if load is not None and load.is_multicast:
        gates.append(MULTICAST_GATE)
    if load is TmaLoadMode.TWO_CTA:
        gates.append(TWO_CTA_GATE)
    if store is not None and store.is_im2col:
        gates.append(IM2COL_GATE)
    gates.append(TMA_GATE)
    return next((reason for gate in gates if (reason := why_not_gate(gate, number)) is not None), None)
