"""Cache modes of an executable atom, and the L2 policy that stands for each.

The dialect writes the cache operators of ordinary loads and stores (`load_cache_mode<cg>`). A TMA copy passes no L1,
so caching at L2 is what it does anyway; what is left of an operator is how long the line should stay in L2, and that is
the 64-bit operand of `.L2::cache_hint`. Modes without such a wish have no operand.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidTypeError, InvalidValueError, given


@dataclass(frozen=True, slots=True)
class L2Policy:
    """An eviction priority: its name in `createpolicy`, and the 64-bit operand for all of the access."""

    name: str
    value: int

    def __post_init__(self) -> None:
        expect_fields(self)


EVICT_NORMAL: Final = L2Policy("L2::evict_normal", 0x1000000000000000)
EVICT_FIRST: Final = L2Policy("L2::evict_first", 0x12F0000000000000)
EVICT_LAST: Final = L2Policy("L2::evict_last", 0x14F0000000000000)
"""Values: cute/arch/copy_sm90_desc.hpp, TMA::CacheHintSm90."""


class CacheMode(Enum):
    """How a copy uses the caches: PTX's cache operators, and the three eviction priorities by name.

    >>> CacheMode.CG.policy, hex(CacheMode.CS.policy.value)
    (None, '0x12f0000000000000')
    """

    CA = "ca"
    CG = "cg"
    CS = "cs"
    LU = "lu"
    CV = "cv"
    WB = "wb"
    WT = "wt"
    EVICT_NORMAL = "evict_normal"
    EVICT_FIRST = "evict_first"
    EVICT_LAST = "evict_last"

    @property
    def row(self) -> CacheModeRow:
        return _ROW_OF[self]

    @property
    def policy(self) -> L2Policy | None:
        """The L2 policy that the copy carries, or None."""
        return self.row.policy

    @property
    def cache_hint(self) -> int | None:
        """The operand of `.L2::cache_hint`, or None where the instruction takes none."""
        return None if self.policy is None else self.policy.value


@dataclass(frozen=True, slots=True)
class CacheModeRow:
    """One mode: whether loads and stores have it, its L2 policy, and why."""

    mode: CacheMode
    loads: bool
    stores: bool
    policy: L2Policy | None
    reason: str


CACHE_MODES: Final[tuple[CacheModeRow, ...]] = (
    CacheModeRow(CacheMode.CA, True, False, None, "all levels; a TMA copy passes no L1, L2 caches as usual"),
    CacheModeRow(CacheMode.CG, True, True, None, "L2 only, which is what a TMA copy does"),
    CacheModeRow(CacheMode.CS, True, True, EVICT_FIRST, "accessed once: first to be evicted"),
    CacheModeRow(CacheMode.LU, True, False, EVICT_FIRST, "last use: first to be evicted"),
    CacheModeRow(CacheMode.CV, True, False, None, "volatile; L2 is coherent, nothing to ask for"),
    CacheModeRow(CacheMode.WB, False, True, None, "write back, L2's default"),
    CacheModeRow(CacheMode.WT, False, True, None, "write through to system memory; a TMA store has no such form"),
    CacheModeRow(CacheMode.EVICT_NORMAL, True, True, EVICT_NORMAL, "by name"),
    CacheModeRow(CacheMode.EVICT_FIRST, True, True, EVICT_FIRST, "by name"),
    CacheModeRow(CacheMode.EVICT_LAST, True, True, EVICT_LAST, "by name"),
)
"""The mapping is a choice of this library: the TMA Atoms reference page names the attribute and says no more.
Operators: PTX ISA 9.0, Cache Operators."""

_ROW_OF: Final = {row.mode: row for row in CACHE_MODES}
_SPELLING: Final = re.compile(r"(?:#cute_nvgpu\.)?(?:load|store)_cache_mode<(\w+)>")


def as_cache_mode(value: Any) -> CacheMode:
    """A cache mode, from its name or from the attribute's text.

    Raises:
        InvalidValueError: no such mode. InvalidTypeError: no mode and no text.

    >>> as_cache_mode("#cute_nvgpu.load_cache_mode<cg>")
    <CacheMode.CG: 'cg'>
    """
    if isinstance(value, CacheMode):
        return value
    known = ", ".join(m.value for m in CacheMode)
    if not isinstance(value, str):
        raise InvalidTypeError(f"a cache mode is a CacheMode or its name, got {given(value)}", {"known": known})
    found = _SPELLING.fullmatch(value)
    name = (found[1] if found else value).lower()
    for mode in CacheMode:
        if mode.value == name:
            return mode
    raise InvalidValueError(f"unknown cache mode {value!r}", {"known": known})


def why_not_cache_mode(mode: CacheMode, kind: str) -> str | None:
    """Why a load, store or reduction has no such cache mode, or None.

    >>> why_not_cache_mode(CacheMode.WB, "load")
    'cache mode wb is not for a load'
    """
    if mode.row.loads if kind == "load" else mode.row.stores:
        return None
    return f"cache mode {mode.value} is not for a {kind}"
