"""An atom bound to the state of one execution, as C++'s `.with(...)` does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect_fields, expect_integer
from cute_py.errors import InvalidValueError


@dataclass(frozen=True, slots=True, eq=False)  # a barrier may be an array, which has no one equality
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
        InvalidTypeError: a mask or a cache hint that is no integer. InvalidValueError: a mask on an operation without
            multicast, or of more than 16 bits; a hint of more than 64.
    """
    mask = expect_integer(multicast_mask, "the multicast mask", 0, (1 << 16) - 1)
    if mask and not atom.op.row.multicast:
        raise InvalidValueError(f"{atom.op} takes no multicast mask, got {mask:#x}")
    hint = None if cache_hint is None else expect_integer(cache_hint, "the cache hint", 0, (1 << 64) - 1)
    return ExecutableCopy(atom, barrier, mask, hint)
