"""What an argument must be: objects of one class, plain integers."""

from __future__ import annotations

import operator
from typing import Any, TypeVar

from cute_py.errors import InvalidTypeError, given

Kind = TypeVar("Kind")


def is_integer(value: Any) -> bool:
    """One known integer: an int, an `Int`, a numpy or sympy integer; no bool, symbol, array or class.

    >>> is_integer(4), is_integer(True), is_integer(4.0), is_integer(int)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return False
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def expect(value: Any, kind: type[Kind], what: str) -> Kind:
    """The value itself, if it is a `kind`.

    Raises:
        InvalidTypeError: it is not; the text names `what`, the kind, and the value.

    >>> expect(4, str, "a name")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: a name must be a str, got int 4
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise InvalidTypeError(f"{what} must be {article} {kind.__name__}, got {type(value).__name__} {given(value)}")
    return value


def expect_integer(value: Any, what: str) -> int:
    """The value as a plain int, if it is one known integer (see `is_integer`).

    Raises:
        InvalidTypeError: it is not.

    >>> expect_integer(Int(4), "the rank")
    4
    """
    if not is_integer(value):
        raise InvalidTypeError(f"{what} must be an integer, got {type(value).__name__} {given(value)}")
    return operator.index(value)


def expect_having(value: Any, names: tuple[str, ...], what: str) -> None:
    """Refuse what lacks an attribute of `what`, for objects whose class the checking module must not import.

    Raises:
        InvalidTypeError: an attribute is missing.

    >>> expect_having(4, ("box",), "a TMA plan")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: expected a TMA plan, got int 4
    """
    if not all(hasattr(value, name) for name in names):
        raise InvalidTypeError(f"expected {what}, got {type(value).__name__} {given(value)}")
