"""Handles: 64-bit numbers that stand for interned objects in a packed record, and resolve back to them.

Equal objects have one handle, as a compiler's interned types have one address. The number is derived from the object's
text, so that the same partition packs to the same bytes in every process; it is a multiple of 8, as an address is, and
never 0.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from typing import Any

from cute_py.errors import InvalidTypeError, InvalidValueError

_STEP = 8
"""Bytes; handles look like addresses of aligned objects."""


class InternTable:
    """Objects by handle. Objects stay for the life of the table.

    >>> table = InternTable()
    >>> handle = table.intern(("a", 1))
    >>> table.intern(("a", 1)) == handle, table.resolve(handle), handle % 8
    (True, ('a', 1), 0)
    """

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._lock = threading.Lock()

    def intern(self, value: Any) -> int:
        """The handle of a hashable object."""
        digest = hashlib.blake2b(repr(value).encode(), digest_size=8).digest()
        handle = int.from_bytes(digest, "little") & ~(_STEP - 1) or _STEP
        with self._lock:
            while handle in self._objects and self._objects[handle] != value:
                handle = (handle + _STEP) % 2**64 or _STEP
            self._objects.setdefault(handle, value)
        return handle

    def resolve(self, handle: int) -> Any:
        """The object of a handle.

        Raises:
            InvalidValueError: no object of this process has it.
        """
        if isinstance(handle, bool) or not isinstance(handle, int):
            raise InvalidTypeError(f"a handle is an integer, got {handle!r}")
        if handle not in self._objects:
            raise InvalidValueError(
                f"no object has the handle {handle:#x}",
                {"rule": "a handle resolves in the process whose partition made it"},
            )
        return self._objects[handle]


@functools.cache
def interned_objects() -> InternTable:
    """The table of this process."""
    return InternTable()
