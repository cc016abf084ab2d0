"""An atom bound to the state of one execution, as C++'s `.with(...)` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_fields
from cute_py.errors import InvalidTypeError, InvalidValueError


@dataclass(frozen=True, slots=True)
class ExecutableCopy:
    """An atom bound to the state of one execution: `barrier`, `multicast_mask` (0: none), `cache_hint` (None: none).

    `atom` is a `TmaAtom` or an `Im2colAtom`.
    """

    atom: Any
    barrier: Any
    multicast_mask: int = 0
    cache_hint: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


def bind(atom: Any, barrier: Any, multicast_mask: int, cache_hint: int | None) -> ExecutableCopy:
    """The executable atom.

    Raises:
        InvalidTypeError: a mask that is no integer. InvalidValueError: a mask on an operation without multicast, or of
            more than 16 bits.
    """
    if isinstance(multicast_mask, bool) or not hasattr(multicast_mask, "__index__"):
        raise InvalidTypeError(f"a multicast mask is an integer, got {multicast_mask!r}")
    mask = multicast_mask.__index__()
    if mask and not atom.op.row.multicast:
        raise InvalidValueError(f"{atom.op} takes no multicast mask, got {mask:#x}")
    if not 0 <= mask < 1 << 16:
        raise InvalidValueError(f"multicast mask {mask:#x}; must have 16 bits")
    return ExecutableCopy(atom, barrier, mask, cache_hint)
