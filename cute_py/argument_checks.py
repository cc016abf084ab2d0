"""Checks of arguments: their class, their integer values and ranges. Each kind of mistake has one message.

    expect(value, kind, what)                                 an object of a class
    expect_integer(value, what, low, high, unit)              one known integer, in a range
    expect_integers(values, what, low, high, unit, count)     a sequence of them
    expect_integer_array(values, what)                        an array of integers
    items_of(values, what)                                    the items of a finite iterable
    has(value, *names)                                        whether an object really has these attributes
    refuse_mask(array, what)                                  that an array is not masked
    expect_name(value, what)                                  an identifier, for generated source code
    expect_expression(value, what)                            an expression, for generated source code
    expect_choice(value, choices, what)                       one of a few values
    expect_function(value, what)                              a function
    expect_path(value, what)                                  a path of a file or a folder
    expect_fields(record)                                     every field of a dataclass, by its annotation
    NamedEnum, NamedFlag                                      bases of enums that refuse an unknown name or value

`what` is the name that the error message gives the argument ("num_multicast", "boxDim[0]"). A check raises an
InvalidTypeError for a wrong type, an InvalidValueError for a value out of range, and no other error. Every check
refuses an integer beyond `MAX_INTEGER`, because no machine has such a size, stride, address or coordinate, and because
Python does not print integers of arbitrary length.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import itertools
import operator
import os
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self, TypeVar

from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, UnknownNameError, given, known_names, stated

if TYPE_CHECKING:
    from pathlib import Path

    import numpy
    from numpy.typing import ArrayLike, NDArray
else:
    from cute_py.optional_packages import numpy

MAX_INTEGER: Final = 1 << 128
"""The largest magnitude of an integer that is accepted as input."""

MIN_INTEGER: Final = -MAX_INTEGER

MOST_ITEMS: Final = 1 << 22
"""Maximum number of items that are read from an array or another object with a length; a tuple or list may have
more."""

MOST_ITERATED: Final = 1 << 20
"""Maximum number of items of an iterator, which are all made before the end is known."""

MOST_ELEMENTS: Final = 1 << 31
"""Maximum number of elements of an array of integers that is accepted as input: 16 GiB."""

Kind = TypeVar("Kind")
Given = TypeVar("Given")


def is_bool(value: Kind) -> bool:
    """Whether a value is a Python bool or a numpy bool (whose type is named `bool_` before numpy 2, and `bool` since).

    >>> is_bool(True), is_bool(1)
    (True, False)
    """
    return isinstance(value, bool) or type(value).__name__ in ("bool", "bool_")


def is_integer(value: object) -> bool:
    """Whether a value is one known integer: an int, an `Int`, a numpy or sympy integer, but not a bool, symbol, array
    or class.

    >>> is_integer(4), is_integer(True), is_integer(4.0), is_integer(int)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        return False
    try:
        operator.index(value)  # type: ignore[arg-type]
    except Exception:  # a class, a symbol, an array, or a foreign __index__ that fails
        return False
    return True


PARSE_READS: Final = "cute_py.parse(text) reads a layout from its text"
"""The hint of errors that refuse a string in place of a layout."""


def wrong_type(
    rule: str, value: object, facts: Mapping[str, object] | None = None, hint: str | None = None
) -> InvalidTypeError:
    """Make the error for an argument whose type is not the one that `rule` requires; the caller raises it.

    >>> print(wrong_type("slice_ takes a layout", 4.5))
    slice_ takes a layout, got float 4.5
    """
    if hint is None and isinstance(value, str) and ":" in value and "layout" in rule:
        hint = PARSE_READS
    if hint is None and type(value).__module__ == "numpy" and getattr(value, "ndim", 0) > 0 and "a tensor" in rule:
        hint = "cute_py.make_tensor(array) makes a tensor of an array"
    return InvalidTypeError(f"{rule}, got {type(value).__name__} {given(value)}", facts, hint)


def expect(value: object, kind: type[Kind], what: str) -> Kind:
    """Return the value if it is an instance of the class `kind`.

    Raises:
        InvalidTypeError: the value is of another class; the message has `what`, the required class and the value.

    >>> expect(4, str, "a name")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: a name must be a str, got int 4
    """
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise wrong_type(f"{what} must be {article} {kind.__name__}", value)
    return value


def check_magnitude(number: int, what: str) -> int:
    """Return the integer if it is at most `MAX_INTEGER` in magnitude.

    >>> check_magnitude(1 << 20000, "a stride")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: a stride is 0x1000000000... (20001 bits); must be at most 2**128 in magnitude
    """
    if not MIN_INTEGER <= number <= MAX_INTEGER:
        raise out_of_range(what, number, "be at most 2**128 in magnitude")
    return number


def out_of_range(
    what: str, number: int, requirement: str, unit: str = "", hint: str | None = None
) -> InvalidValueError:
    """Make the error for an integer that is out of range; the caller raises it. The error stores the value as a
    `Measured`.

    >>> error = out_of_range("num_multicast", 17, "be 1 to 16", "CTAs")
    >>> print(error, error.measured.value)
    num_multicast = 17 CTAs; must be 1 to 16 17
    """
    return InvalidValueError.of_value(what, number, requirement, unit, hint=hint)


def expect_integer(
    value: object, what: str, low: int | None = None, high: int | None = None, unit: str = "", hint: str | None = None
) -> int:
    """Return the value as a plain int if it is one known integer (see `is_integer`) from `low` to `high`, both
    included.

    Raises:
        InvalidTypeError: the value is not an integer. InvalidValueError: it is out of range.

    >>> expect_integer(Int(4), "the rank")
    4
    >>> expect_integer(-1, "the size", 0, unit="bytes")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: the size is -1 bytes; must be at least 0
    """
    if type(value) is not int and not is_integer(value):
        raise wrong_type(f"{what} must be an integer", value, hint=hint)
    number = operator.index(value)  # type: ignore[arg-type]
    if (low is not None and number < low) or (high is not None and number > high):
        if low is None:
            bound = f"at most {high}"
        else:
            bound = f"at least {low}" if high is None else f"{low} to {high}"
        raise out_of_range(what, number, f"be {bound}", unit, hint)
    return check_magnitude(number, what)


def has(value: Kind, *names: str) -> bool:
    """Whether an object really has these attributes: its class defines them, or they were set on it.

    Attributes that only `__getattr__` provides do not count: an object with an attribute of every name is neither a
    layout nor a file. The contents of a module or of a class do not count either.

    >>> import types
    >>> has(types.SimpleNamespace(box=(4,)), "box"), has(types, "SimpleNamespace")
    (True, False)
    """
    kind = type(value)
    held = () if isinstance(value, (types.ModuleType, type)) else getattr(value, "__dict__", ())
    return all(hasattr(kind, name) or (isinstance(held, dict) and name in held) for name in names)


def items_of(values: Iterable[Kind], what: str, kind: str = "a sequence") -> tuple[Kind, ...]:
    """Return the items of an iterable as a tuple; the iterable must be finite. `kind` is the rule in the error message.

    Raises:
        InvalidTypeError: the length or an item can't be read. InvalidValueError: an iterable other than a tuple or list
            has more than `MOST_ITEMS` items, or an iterator has more than `MOST_ITERATED`.

    >>> import itertools
    >>> items_of(itertools.count(), "offsets")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: offsets must have at most 1048576 items, so an iterator must end
    """
    if isinstance(values, (tuple, list)):
        return tuple(values)
    try:
        has_length = hasattr(type(values), "__len__")
        known = len(values) if has_length else 0  # type: ignore[arg-type]
        most = MOST_ITEMS if has_length else MOST_ITERATED
        items = tuple(itertools.islice(values, most + 1)) if known <= most else ()
    except Exception:  # not iterable, such as a numpy array of rank 0, or an iterator that fails
        raise wrong_type(f"{what} must be {kind}", values) from None
    if max(len(items), known) > most:
        raise InvalidValueError(f"{what} must have at most {most} items, so an iterator must end")
    return items


def expect_items(values: Iterable[Kind], what: str, kind: str = "a sequence") -> tuple[Kind, ...]:
    """Return the items of a sequence as a tuple; the items may be of any type. `kind` describes the sequence in the
    error message.

    >>> expect_items(4, "paddings")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: paddings must be a sequence, got int 4
    """
    if isinstance(values, (str, bytes, dict, set, frozenset, type)):  # a set has no order
        raise wrong_type(f"{what} must be {kind}", values)
    return items_of(values, what, kind)


def _around_index(what: str) -> tuple[str, str]:
    """The strings before and after an item's index: 'shape[0]' for 'the shape', 'item 0 of the sizes of a box' for 'the
    sizes of a box'."""
    name = what.removeprefix("the ")
    return ("item ", f" of {what}") if name != what and " " in name else (f"{name}[", "]")


def expect_integers(
    values: object, what: str, low: int | None = None, high: int | None = None, unit: str = "", count: int | None = None
) -> tuple[int, ...]:
    """Return the values as plain ints if they are a sequence (of length `count`, if given) of integers from `low` to
    `high`.

    >>> expect_integers([1, 2], "coords", count=2)
    (1, 2)
    >>> expect_integers("12", "coords")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: coords must be a sequence of integers, got str '12'
    """
    items = expect_items(values, what, "a sequence of integers")  # type: ignore[arg-type, var-annotated]
    if count is not None and len(items) != count:
        raise InvalidValueError(f"{what} has {len(items)} entries; must have {count}", {"got": given(values)})
    before, after = _around_index(what)
    return tuple([expect_integer(item, f"{before}{i}{after}", low, high, unit) for i, item in enumerate(items)])


@functools.cache
def _is_masked(kind: type) -> bool:
    return any(str(one.__module__).startswith("numpy.ma") for one in kind.__mro__)


def refuse_mask(array: Kind, what: str) -> Kind:
    """Return the array; refuse a numpy masked array, because reading its elements would lose the mask.

    >>> import numpy
    >>> refuse_mask(numpy.ma.array([4, 8]), "the source")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: the source is a masked array, and its mask would be lost
      hint : use array.data for all elements, or array.filled(x) to replace the masked elements with x
    """
    if _is_masked(type(array)):  # type: ignore[arg-type]
        hint = "use array.data for all elements, or array.filled(x) to replace the masked elements with x"
        raise InvalidTypeError(f"{what} is a masked array, and its mask would be lost", hint=hint)
    return array


def check_elements(count: int, what: str) -> None:
    """Refuse an array of more than `MOST_ELEMENTS` elements before it is allocated.

    A view with zero strides can have any number of elements, however small its memory is.

    >>> check_elements(1 << 40, "coordinates")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: coordinates must have at most 2147483648 elements, got 1099511627776
    """
    if count > MOST_ELEMENTS:
        raise InvalidValueError(f"{what} must have at most {MOST_ELEMENTS} elements, got {count}")


def expect_integer_array(values: ArrayLike, what: str) -> NDArray[numpy.int64]:
    """Return an int64 array of any shape from an array of integers or from nested sequences of equal lengths.

    Raises:
        InvalidTypeError: the values are not integers. InvalidValueError: an integer does not fit in 64 bits.

    >>> expect_integer_array([(0, 64)], "coordinates").shape
    (1, 2)
    >>> expect_integer_array([0, 1 << 63], "coordinates")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: coordinates must each fit in 64 bits, got [0, 9223372036854775808]
    """
    refuse_mask(values, what)
    try:
        array = numpy.asarray(values)
        if array.dtype.kind == "f" and not hasattr(values, "dtype"):
            array = numpy.asarray(values, dtype=object)  # numpy makes floats of integers around 2**63
        kind = array.dtype.kind
        check_elements(array.size, what)
        listed = array.reshape(-1).tolist() if kind == "O" or array.dtype == numpy.uint64 else []
    except CuteError:
        raise
    except Exception:  # rows of different lengths, or a foreign __array__ that raises
        array, kind, listed = numpy.empty(1), "f", []
    if (kind not in "iuO" and array.size) or not all(map(is_integer, listed)):
        raise wrong_type(f"{what} must be integers", values)
    if any(not -(1 << 63) <= operator.index(number) < 1 << 63 for number in listed):
        raise InvalidValueError(f"{what} must each fit in 64 bits, got {given(values)}")
    return array.astype(numpy.int64, copy=False)


def expect_name(value: str, what: str) -> str:
    """Return the value if it is an identifier in C and Python: ASCII letters, digits and `_`, not beginning with a
    digit.

    >>> expect_name("a b", "the kernel's name")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: the kernel's name is 'a b'; must be an identifier
    """
    name = expect(value, str, what)
    if not (name.isidentifier() and name.isascii()):
        raise InvalidValueError(f"{stated(what, given(name))}; must be an identifier")
    return name


def expect_path(value: object, what: str) -> Path:
    """Return the value as a `Path` if it is a text, or an object with a path of text such as a `Path`.

    >>> expect_path("tile.map", "a map").name
    'tile.map'
    >>> expect_path(0, "a map")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: a map must be a text or a path, got int 0
    """
    if isinstance(value, (str, os.PathLike)):
        try:
            path = os.fspath(value)
        except Exception:  # a foreign __fspath__ may raise anything
            path = b""
        if isinstance(path, str):
            from pathlib import Path  # an import of cute_py names no file

            return Path(path)
    raise wrong_type(f"{what} must be a text or a path", value)


_EXPRESSION = re.compile(r"[^;{}\\\x00-\x1f\x7f-\U0010ffff]+")


def expect_expression(value: str, what: str) -> str:
    """Return the value if it is one line of text that can be an expression: ASCII, no semicolon, brace or backslash.

    >>> expect_expression("slot[0]; f()", "taddr")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: taddr = 'slot[0]; f()'; must be an expression on one line, without ; { } and \\
    """
    text = expect(value, str, what)
    if not text.strip() or not _EXPRESSION.fullmatch(text):
        raise InvalidValueError(
            f"{stated(what, given(text))}; must be an expression on one line, without ; {{ }} and \\"
        )
    return text


def expect_choice(value: Kind, choices: Collection[Kind], what: str) -> Kind:
    """Return the value if it is one of `choices` (compared by class and value: True is not 1).

    >>> expect_choice("c", ("a", "b"), "the mode")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidValueError: the mode is 'c'; must be one of 'a', 'b'
    """
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    kind = InvalidValueError if any(type(value) is type(choice) for choice in choices) else InvalidTypeError
    raise kind(f"{stated(what, given(value))}; must be one of {', '.join(map(repr, choices))}")


def expect_function(value: Kind, what: str, arguments: int | None = None) -> Kind:
    """Return the value if it can be called and is not a class.

    Args:
        arguments: the number of positional arguments that it will be called with; None: not known.
    Raises:
        InvalidTypeError: the value can't be called; it is a class, whose call makes an object; or its signature does
            not accept this number of arguments.

    >>> expect_function(5, "progress")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: progress must be a function, got int 5
    """
    if not callable(value) or isinstance(value, type):
        raise wrong_type(f"{what} must be a function", value)
    if arguments is not None:
        try:
            signature = inspect.signature(value)
        except (ValueError, TypeError):  # built-in functions may have none, or an object one of its own making
            return value
        try:
            signature.bind(*range(arguments))
        except TypeError:
            raise wrong_type(f"{what} must be a function of {arguments} arguments", value) from None
    return value


def expect_having(value: object, names: tuple[str, ...], what: str) -> None:
    """Refuse an object that lacks one of the attributes `names`, for modules that must not import the expected class.

    `what` names that class in the error message.

    Raises:
        InvalidTypeError: the object lacks an attribute.

    >>> expect_having(4, ("box",), "a TMA plan")
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: expected a TMA plan, got int 4
    """
    if not has(value, *names):
        raise wrong_type(f"expected {what}", value)


def expect_fields(record: object) -> None:
    """Check that each field of a dataclass instance has its annotated type.

    Integers are accepted as by `expect_integer` and stored as plain ints; tuples and mappings are checked item by item.

    Raises:
        InvalidTypeError: a field has another type. InvalidValueError: an integer is beyond `MAX_INTEGER`.
    """
    kind: Any = type(record)
    for name, what, kept, check in _field_checks(kind):
        value = getattr(record, name)
        if type(value) not in kept:
            checked = check(value, what)
            if checked is not value:
                object.__setattr__(record, name, checked)


def record_text(record: Kind) -> str:
    """The repr of a dataclass instance, made from the repr of each field. If a field's repr fails, all fields are
    shortened as in `given`.

    >>> @record
    ... class Row:
    ...     extents: tuple[int, ...]
    ...     note: object = None
    >>> deep = []
    >>> for _ in range(5000):
    ...     deep = [deep]
    >>> Row((4,)), Row((4,), deep)
    (Row(extents=(4,), note=None), Row(extents=(4,), note=<list nested too deep to print>))
    """
    fields = [(field.name, getattr(record, field.name)) for field in dataclasses.fields(record) if field.repr]  # type: ignore[arg-type]
    try:
        parts = [f"{name}={value!r}" for name, value in fields]
    except Exception:  # too deep, an integer of more digits than Python writes, or a foreign __repr__
        parts = [f"{name}={given(value)}" for name, value in fields]
    return f"{type(record).__qualname__}({', '.join(parts)})"


@typing.dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def record(kind: type[Kind]) -> type[Kind]:
    """Make a class a frozen dataclass with slots, whose constructor checks the fields with `expect_fields`.

    >>> @record
    ... class Row:
    ...     extents: tuple[int, ...]
    >>> Row((4, "a"))
    Traceback (most recent call last):
    ...
    cute_py.errors.InvalidTypeError: Row.extents[1] must be an int, got str 'a'
    """
    kind.__post_init__ = expect_fields  # type: ignore[attr-defined]
    if "__repr__" not in vars(kind):
        kind.__repr__ = record_text  # type: ignore[method-assign]
    return dataclasses.dataclass(frozen=True, slots=True)(kind)


class Immutable:
    """Base class of immutable objects with slots. A constructor sets the slots with `object.__setattr__`; `_state`
    returns the values that equality compares."""

    __slots__ = ()
    _state: ClassVar[operator.attrgetter[tuple[Any, ...]]]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; can't set {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; can't delete {name}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._state(self) == self._state(other)

    def __hash__(self) -> int:
        return hash(self._state(self))

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return (type(self), self._state(self))


class Check(Protocol):
    """A check of one field. It returns the value to store: the value itself, or the value with its integers as plain
    ints."""

    def __call__(self, value: Kind, what: str, /) -> Kind: ...


class _ArrayNames(dict[str, Any]):
    """The names `NDArray` and `ArrayLike`, which modules import only for type checkers. numpy is imported when an
    annotation needs one of them."""

    def __missing__(self, name: str) -> Any:
        if name not in ("NDArray", "ArrayLike"):
            raise KeyError(name)
        return getattr(importlib.import_module("numpy.typing"), name)


@functools.cache
def _field_checks(kind: Any) -> tuple[tuple[str, str, frozenset[type], Check], ...]:
    """(name, name in errors, classes whose instances need no check, check) for each field of a dataclass."""
    hints = typing.get_type_hints(kind, localns=_ArrayNames())
    names = [field.name for field in dataclasses.fields(kind)]
    return tuple([(name, f"{kind.__name__}.{name}", _kept(hints[name]), _check_of(hints[name])) for name in names])


def _kept(hint: Any) -> frozenset[type]:
    """The classes whose instances need no check against an annotation. int is not one of them, because the magnitude of
    an integer is checked."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = frozenset[type]().union(*map(_kept, typing.get_args(hint)))
        return frozenset([kind for kind in kinds if not issubclass(kind, int)])  # which a union with int makes an int
    return frozenset([hint]) if isinstance(hint, type) and hint is not int else frozenset()


def _check_of(hint: Any) -> Check:
    """Make the check for one type annotation."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in (Any, object) or isinstance(hint, (TypeVar, typing.ForwardRef)) or getattr(hint, "_is_protocol", False):
        return lambda value, what: value
    if hint is None or hint is type(None):
        return lambda value, what: expect(value, type(None), what)  # type: ignore[return-value]
    if hint is int:
        return _plain_integer
    if hint is float:
        return lambda value, what: value if isinstance(value, float) else float(_plain_integer(value, what))  # type: ignore[return-value]
    if origin in (types.UnionType, typing.Union):
        return _any_check(
            tuple(_check_of(one) for one in inner),
            " or ".join("None" if one is type(None) else getattr(one, "__name__", str(one)) for one in inner),
            type(None) in inner,
        )
    if origin is tuple:
        many = len(inner) == 2 and inner[1] is ...
        return _tuple_check(tuple(_check_of(one) for one in inner if one is not ...), many)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_check(_check_of(inner[0]), _check_of(inner[1]))
    if origin is typing.Literal:
        return lambda value, what: expect_choice(value, inner, what)
    alias = origin if hasattr(origin, "__value__") else hint
    if hasattr(alias, "__value__"):  # a `type` statement's name, as newer numpy writes NDArray
        return _check_of(alias.__value__)
    kind = origin if isinstance(origin, type) else hint
    return lambda value, what: expect(value, kind, what)


def _plain_integer(value: Any, what: str) -> Any:
    if type(value) is not int and not is_integer(value):
        raise wrong_type(f"{what} must be an int", value)
    return check_magnitude(operator.index(value), what)


def _any_check(checks: tuple[Check, ...], names: str, optional: bool) -> Check:
    def check(value: Kind, what: str) -> Kind:
        if value is None and optional:  # without the text of an error for each kind that it is not
            return value
        for one in checks:
            try:
                return one(value, what)
            except InvalidTypeError:
                continue
        raise wrong_type(f"{what} must be {names}", value)

    return check


def _tuple_check(checks: tuple[Check, ...], many: bool) -> Check:
    def check(value: Kind, what: str) -> Kind:
        items = expect(value, tuple, what)
        if not many and len(items) != len(checks):
            raise InvalidTypeError(f"{what} must have {len(checks)} items, got {given(value)}")
        each = checks * len(items) if many else checks
        try:
            checked = [one(item, "") for one, item in zip(each, items, strict=True)]
        except CuteError:  # once more, with the place in the text
            before, after = _around_index(what)
            checked = [one(item, f"{before}{i}{after}") for i, (one, item) in enumerate(zip(each, items, strict=True))]
        same = all(map(operator.is_, checked, items))
        return value if same else tuple(checked)  # type: ignore[return-value]

    return check


def _mapping_check(key: Check, item: Check) -> Check:
    def check(value: Kind, what: str) -> Kind:
        for name, one in expect(value, Mapping, what).items():  # type: ignore[type-abstract]
            key(name, what)
            item(one, what)
        return value

    return check


class NamedEnumType(enum.EnumType):
    """Metaclass of enums whose `Kind[name]` raises an `UnknownNameError` (a `KeyError`) for an unknown name."""

    def __call__(cls: type[Kind], value: Given, *args: Given, **options: Given) -> Kind:
        """Return the member with a value. The error of Python's own lookup has the whole repr of the value, which can
        be huge."""
        kind: Any = cls
        if args or options or not kind._member_map_:
            return super().__call__(value, *args, **options)  # type: ignore[misc, no-any-return]
        if type(value) is cls:
            return value  # type: ignore[return-value]
        try:
            return kind._value2member_map_[value]  # type: ignore[no-any-return]
        except (KeyError, TypeError):
            return kind._missing_(value)  # type: ignore[no-any-return]

    def __getitem__(cls: type[Kind], name: str) -> Kind:
        try:
            return cls._member_map_[name]  # type: ignore[attr-defined, no-any-return]
        except (KeyError, TypeError):  # TypeError: of what has no hash
            raise unknown_member(cls, name) from None  # type: ignore[arg-type]


class NamedEnum(enum.Enum, metaclass=NamedEnumType):
    """An enum whose error for an unknown name or value lists the nearest names. List it before other enum bases."""

    @classmethod
    def _missing_(cls, value: Given) -> Self:
        raise unknown_member(cls, value)


class NamedFlag(enum.IntFlag, metaclass=NamedEnumType):
    """A flag enum that refuses unknown names, and values that are not integers."""

    @classmethod
    def _missing_(cls, value: Given) -> Self:
        if not isinstance(value, int):
            raise unknown_member(cls, value)
        return super()._missing_(value)  # type: ignore[no-any-return]


def unknown_member(kind: type[enum.Enum], value: Kind) -> UnknownNameError:
    """Make the error for a name or value that an enum does not have; the caller raises it.

    >>> class Side(NamedEnum, enum.IntEnum):
    ...     LEFT = 0
    ...     RIGHT = 1
    >>> print(unknown_member(Side, "LEFTT"))
    'LEFTT' is not a valid Side
      nearest : LEFT
      known   : LEFT = 0, RIGHT = 1
    """
    name = value.upper() if isinstance(value, str) else value
    facts = known_names(name, [one.name for one in kind], tuple(kind.__members__))
    if issubclass(kind, int):
        facts["known"] = ", ".join(f"{one.name} = {one.value}" for one in kind)
    return UnknownNameError(f"{given(value)} is not a valid {kind.__name__}", facts)
