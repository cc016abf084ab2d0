"""The exceptions of cute_py, and the format of their messages.

A message begins with a headline: the rule, with the value and its unit. Facts follow, one per line, and then a hint
that was tried, if there is one:

    TmaLimitError: globalStrides[0] = 24 bytes; must be a multiple of 16
      stride : 12 elements x 16 bits, TMA mode 1 (layout mode 0)
      hint   : pad the row to 16 elements

Catch `CuteError` to catch everything that this library raises on purpose.
"""

from __future__ import annotations

import importlib
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, Self, TypeVar

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    _P = ParamSpec("_P")
    _Made = TypeVar("_Made")

SHOWN_BITS: Final = 512
"""Integers with more bits are shortened: Python refuses to print more than 4,300 digits, and 155 are too many to
read."""

GIVEN_CHARACTERS: Final = 405
"""Maximum number of characters of a value's repr in a message; a longer repr is reduced to its beginning and its
end."""


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural if the number is not 1.

    >>> counted(1, "load"), counted(4, "pass")
    ('1 load', '4 passes')
    """
    return f"{count} {noun}{'' if count == 1 else 'es' if noun.endswith('s') else 's'}"


def stated(what: str, value: str | float) -> str:
    """State the value of something: as an equation if its name is an identifier, or as a clause if it is a noun phrase.

    >>> stated("boxDim[0]", 300), stated("the size of a range", "-1 bytes")
    ('boxDim[0] = 300', 'the size of a range is -1 bytes')
    """
    name = what if isinstance(what, str) else given(what)
    return f"{name} {'is' if name.startswith(('the ', 'a ', 'an ', 'item ')) else '='} {value}"


def shortened(text: str, limit: int = 240) -> str:
    """Return a string of at most `limit` characters: a longer one loses its middle.

    >>> shortened("a" * 500, 11)
    'aaa ... aaa'
    """
    if len(text) <= limit:
        return text
    side = (limit - 5) // 2
    return f"{text[:side]} ... {text[-side:]}"


def integer_text(number: int) -> str:
    """An integer in decimal; a huge one as its first hexadecimal digits and its number of bits.

    >>> integer_text(-40), integer_text(1 << 20000)
    ('-40', '0x1000000000... (20001 bits)')
    """
    bits = int(number).bit_length()
    return str(int(number)) if bits <= SHOWN_BITS else f"{hex(number)[:12]}... ({bits} bits)"


class _Shortened(reprlib.Repr):
    """A `reprlib.Repr` that shortens long integers and long containers, and tolerates objects whose own repr fails."""

    def __init__(self) -> None:
        super().__init__()
        self.maxtuple = self.maxlist = self.maxdict = self.maxset = self.maxother = self.maxstring = 60

    def repr_int(self, x: int, level: int) -> str:
        return integer_text(x) if type(x) is int else f"{type(x).__name__}({integer_text(int(x))})"

    repr_Int = repr_int

    def repr_ndarray(self, x: NDArray[numpy.generic], level: int) -> str:
        return f"<ndarray of shape {x.shape}>"

    def repr_instance(self, x: object, level: int) -> str:
        try:
            return shortened(repr(x), self.maxother)
        except Exception:  # a foreign __repr__ may raise anything, and the text of an error must not fail
            return f"<{type(x).__name__} that can't be printed>"


def system_reason(error: OSError | ValueError) -> str:
    """The reason why a file can't be opened or a name can't be resolved, without the number and the name. The system
    refuses a name with a zero byte with a `ValueError`.

    >>> system_reason(FileNotFoundError(2, "No such file or directory", "a.map"))
    'No such file or directory'
    >>> system_reason(ValueError("embedded null byte"))
    'embedded null byte'
    """
    return getattr(error, "strerror", None) or str(error)


def given(value: object) -> str:
    """A user's value as an error message prints it: its repr on one line, shortened. It works even if the repr raises.

    >>> given((4, "a")), len(given(list(range(1000))))
    ("(4, 'a')", 405)
    >>> given([1 << 20000])
    '[0x1000000000... (20001 bits)]'
    """
    items = value if isinstance(value, (tuple, list)) else (value,)
    # numpy shows 6 indices per mode of an array, so it shows all million elements of an array with 20 modes of 2.
    # Where it omits elements, the shape says more than the elements that remain.
    arrays = [x for x in items if type(x).__module__ == "numpy"]
    deep = any(getattr(x, "ndim", 0) > 4 or getattr(x, "size", 0) > 1000 for x in arrays)
    try:
        text = _Shortened().repr(value) if deep else repr(value)
    except RecursionError:
        return f"<{type(value).__name__} nested too deep to print>"
    except Exception:  # digits beyond Python's limit, or a foreign __repr__
        text = _Shortened().repr(value)
    return shortened(" ".join(text.split("\n")), GIVEN_CHARACTERS)


MOST_COMPARED: Final = 128
"""Maximum number of names whose whole spelling is compared. From a longer list, only the names with the most in common
are compared, to save time."""


def nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """At most three of `names`: first names that begin with the given name, then names with a similar spelling.

    >>> nearest_names("SM80_16x8x4", ["SM80_16x8x8_F32", "SM80_16x8x4_F32TF32", "SM80_8x8x4_F64"])[:2]
    ['SM80_16x8x4_F32TF32', 'SM80_16x8x8_F32']
    """
    import difflib

    held = list(names)
    begun = [one for one in held if name and one.startswith(name)]
    return list(dict.fromkeys([*begun, *difflib.get_close_matches(name, _likely(name, held), 3, 0.6)]))[:3]


def _likely(name: str, names: list[str]) -> list[str]:
    """Preselect the names that share the most trigrams with the given name."""
    if len(names) <= MOST_COMPARED:
        return names
    pieces = {name[i : i + 3] for i in range(len(name) - 2)}
    return sorted(names, key=lambda one: -sum(map(one.__contains__, pieces)))[:MOST_COMPARED]


def known_names(name: object, names: Sequence[str], also: Iterable[str] = ()) -> dict[str, str]:
    """The facts of an error about an unknown name: the nearest names, if any, then all names.

    Args:
        also: other accepted spellings, such as aliases. They may appear among the nearest names, but not in the list
            of all names.

    >>> known_names("flaot16", ["float16", "float32", "int8"])
    {'nearest': 'float16', 'known': 'float16, float32, int8'}
    >>> known_names("tensor", ["float16", "int8"])
    {'known': 'float16, int8'}
    """
    near = nearest_names(name, dict.fromkeys([*names, *also])) if isinstance(name, str) else []
    return {**({"nearest": ", ".join(near)} if near else {}), "known": ", ".join(names)}


def format_report(headline: str, facts: Mapping[str, object] | None = None, hint: str | None = None) -> str:
    """Format the message of an error: the headline, aligned `name : value` lines, and the hint last.

    >>> print(format_report("box[0] = 300; must be at most 256", {"mode": "TMA mode 0"}, "split the mode"))
    box[0] = 300; must be at most 256
      mode : TMA mode 0
      hint : split the mode
    """
    lines = dict(facts or {})
    if hint is not None:
        lines["hint"] = hint
    width = max((len(name) for name in lines), default=0)
    return "\n".join([headline, *(f"  {name:<{width}} : {_fact_text(value)}" for name, value in lines.items())])


LONGEST_FACT: Final = 2000
"""Maximum number of characters of one fact in the text of an error."""


def _fact_text(value: object) -> str:
    """A fact as a string, or a short replacement if its `str` fails. A very long fact loses its middle."""
    try:
        return shortened(str(value), LONGEST_FACT)
    except Exception:  # digits beyond Python's limit, lists without end, or a foreign __str__
        return given(value)


class Measured(NamedTuple):
    """The value that breaks a rule, with the name of its argument, its unit, and the requirement.

    >>> Measured("globalStrides[0]", 40, "bytes", "be a multiple of 16").value
    40
    """

    argument: str
    value: int
    unit: str
    requirement: str


class CuteError(Exception):
    """Base class of every error of cute_py. `headline`, `facts` and `hint` are the parts of its message.

    What to do: read the headline (the rule), compare the facts with your input, apply the hint if there is one.
    """

    measured: Measured | None = None
    # The number that the headline is about, if a single number breaks the rule; `diagnostics_of` records it.
    rule: str
    # The id of the rule that was broken, by which `explain` finds its reason. A condition of CuTe C++, a race, and a
    # cause without values are their own ids; where a headline has values, `of_rule` or `diagnostics.refuse` sets it.

    def __init__(self, headline: str, facts: Mapping[str, object] | None = None, hint: str | None = None) -> None:
        parts: tuple[object, ...] = (headline, facts, hint)
        if not all(map(isinstance, parts, (str, Mapping | None, str | None))):
            got = f"{given(headline)}, {given(facts)}, {given(hint)}"
            raise InvalidTypeError(f"{type(self).__name__} takes a text, a mapping of facts and a hint, got {got}")
        super().__init__(format_report(headline, facts, hint))
        self.headline = headline
        self.facts: dict[str, object] = dict(facts or {})
        self.hint = hint
        self.rule = headline

    @classmethod
    def of_value(
        cls,
        what: str,
        value: float,
        requirement: str,
        unit: str = "",
        facts: Mapping[str, object] | None = None,
        hint: str | None = None,
    ) -> Self:
        """Make the error for a value that breaks a rule; the caller raises it. If the value is an integer, the error
        stores it as a `Measured`.

        Args:
            what: the name of the value. requirement: the requirement, in the form that follows 'must'. unit: the unit
                of the value.

        >>> error = InvalidValueError.of_value("num_multicast", 17, "be 1 to 16", "CTAs")
        >>> print(error, error.measured.value)
        num_multicast = 17 CTAs; must be 1 to 16 17
        """
        number = int(value) if isinstance(value, int) and not isinstance(value, bool) else None
        shown = value if number is None else integer_text(number)
        unit = unit if isinstance(unit, str) else given(unit)
        error = cls(f"{stated(what, f'{shown} {unit}'.rstrip())}; must {requirement}", facts, hint)
        if number is not None:
            error.measured = Measured(what, number, unit, requirement)
        return error

    def of_rule(self, rule: str) -> Self:
        """Set the id of the broken rule and return the error; the caller raises it.

        >>> CuteError("n = 3; must be even").of_rule("parity").rule
        'parity'
        """
        self.rule = rule
        return self


def unless_refused(make: Callable[_P, _Made], *args: _P.args, **kwargs: _P.kwargs) -> _Made | None:
    """Return the function's result, or None if the function raises a `CuteError`.

    >>> def half(n):
    ...     if n % 2:
    ...         raise CuteError(f"n = {n}; must be even")
    ...     return n // 2
    >>> unless_refused(half, 4), unless_refused(half, 3)
    (2, None)
    """
    try:
        return make(*args, **kwargs)
    except CuteError:
        return None


class InvalidTypeError(CuteError, TypeError):
    """An argument has a type that the operation does not accept (a float or bool as a size, a string as a tile).

    What to do: convert it; sizes, strides and coordinates are `Int`, `int`, numpy integers or sympy integers.
    """


class InvalidValueError(CuteError, ValueError):
    """An argument has the right type, but a value that is not allowed (a negative size, an unknown name)."""


class UnknownNameError(InvalidValueError, KeyError):
    """An enum has no member with this name or value. The error is also a `KeyError`, because Python's enums raise that.

    What to do: use one of the names that the message lists, the nearest ones first.
    """

    __str__ = Exception.__str__  # that of a KeyError is the repr


class LayoutError(CuteError, ValueError):
    """A layout operation has no result for these operands."""


class StaticAssertError(LayoutError):
    """CuTe C++ would refuse this operation at compile time; `condition` is the message of its static_assert.

    What to do: look at the facts for the modes that do not divide; change the tile, or the shape that is tiled.
    """

    @property
    def condition(self) -> str:
        return self.headline


class CoordinateError(LayoutError, IndexError):
    """A coordinate does not fit the profile of the shape that it addresses."""


class CompositionMismatchError(LayoutError):
    """`strict=True` found that the composition is not A(B(i)) for some i (CuTe C++ accepts it silently).

    `difference` describes the first such i and both values; it is empty if the two functions have different numbers of
    elements.
    """

    def __init__(
        self, headline: str, facts: Mapping[str, object] | None = None, hint: str | None = None, difference: str = ""
    ) -> None:
        super().__init__(headline, facts, hint)
        self.difference = difference


class ParseError(CuteError, ValueError):
    """A string is not a layout, basis element, tuple, pointer or tensor in the notation that CuTe prints. `position` is
    the index of the first character that can't be read."""

    def __init__(
        self, headline: str, facts: Mapping[str, object] | None = None, hint: str | None = None, position: int = 0
    ) -> None:
        super().__init__(headline, facts, hint)
        self.position = position


class TensorAccessError(CuteError, TypeError):
    """Elements were read from a tensor whose engine has no memory (a bare pointer), or written to a read-only
    tensor."""


class TmaError(CuteError):
    """Base class of the errors that prevent a TMA copy of a tensor."""


class GBasisError(TmaError, ValueError):
    """The shared-memory layout and the tile have no TMA box in common. `condition` names CuTe's condition."""

    @property
    def condition(self) -> str:
        return self.headline


class TmaLimitError(TmaError, ValueError):
    """A tensor map breaks rules of the driver or of the hardware; `violations` lists all of them.

    What to do: change the values that the message lists. It has every violated rule, with the value, unit and source.
    """

    def __init__(
        self,
        headline: str,
        facts: Mapping[str, object] | None = None,
        hint: str | None = None,
        violations: Sequence[object] = (),
    ) -> None:
        super().__init__(headline, facts, hint)
        self.violations = tuple(violations)


class TmaVerifyError(TmaError, ValueError):
    """One of the eleven steps of the partition verifier refused the copy. `step` is the number of the step, the
    headline is the text that the reference page prescribes for it, and the facts list the rules that the operands
    break."""

    def __init__(self, step: int, text: str, facts: Mapping[str, object] | None = None) -> None:
        super().__init__(text, facts)
        self.step = step


class TmaBuildError(TmaError, ValueError):
    """A descriptor builder, an executable binding or a lowering entry point refuses its operands; the headline is the
    message of the diagnostic."""


class UnknownFactError(TmaError, NotImplementedError):
    """The answer is neither documented nor measured, such as the bits of a format that only a newer GPU has.

    What to do: see the known values in the message. Encode the map with the driver on a machine with such a GPU, and
    compare.
    """


class TmaTrap(TmaError, RuntimeError):
    """The hardware would trap at this operation. `cuda_error` is the name of the CUresult, and `cause` is the broken
    rule.

    On a GPU the trap ends the CUDA context; the emulator raises this error instead.
    """

    def __init__(
        self, cuda_error: str, cause: str, facts: Mapping[str, object] | None = None, hint: str | None = None
    ) -> None:
        named = isinstance(cuda_error, str) and isinstance(cause, str)
        super().__init__(f"{cuda_error}: {cause}" if named else (cuda_error, cause), facts, hint)  # type: ignore[arg-type]
        self.cuda_error = cuda_error
        self.cause = self.rule = cause


class WouldHangError(TmaError, RuntimeError):
    """A barrier would never complete: the number of bytes that it expects differs from the number that arrives."""


class RaceError(TmaError, RuntimeError):
    """Bytes are read or written while an asynchronous copy may still be using them."""


class EmissionError(TmaError, ValueError):
    """An instruction form does not exist, or this architecture does not have it; `why` is the reason in one line."""

    @property
    def why(self) -> str:
        return self.headline


class TmemError(CuteError, ValueError):
    """A copy from shared to tensor memory can't be planned, encoded or run as requested."""


class DeviceError(CuteError, RuntimeError):
    """No usable GPU, driver or compiler was found, or a launch failed. The message has the cause, and what to do."""


class RankError(DeviceError):
    """A process that takes part in a redistribution ended, stalled or can't be reached; `rank` is its number.

    What to do: read in the message what the destinations contain. The communicator was aborted, so make a new one, or
    restart.
    """

    def __init__(
        self, headline: str, facts: Mapping[str, object] | None = None, hint: str | None = None, rank: int = 0
    ) -> None:
        super().__init__(headline, facts, hint)
        self.rank = rank


class FileFormatError(CuteError, ValueError):
    """An input file can't be read as the requested tensor."""


class MissingPackageError(CuteError, ImportError):
    """A feature needs an optional package; the message names the package and the extra to install."""


def imported(module: str, feature: str, package: str, install: str, named: bool = False) -> ModuleType:
    """Import a module that a feature needs from an optional package. With `named`, the error also names the missing
    module.

    Raises:
        MissingPackageError: the module can't be imported.

    >>> imported("no_such", "a picture", "such", "pip install such")
    Traceback (most recent call last):
    cute_py.errors.MissingPackageError: a picture needs the package such
      hint : pip install such
    """
    try:
        return importlib.import_module(module)
    except ImportError as problem:
        facts = {"missing": problem.name or module} if named else None
        raise MissingPackageError(f"{feature} needs the package {package}", facts, install) from None


def first_line(problem: Exception) -> str:
    """The first line of the message of an error from another library; the error's class if the message is empty.

    >>> first_line(ValueError("no such file\\nnor folder"))
    'no such file'
    """
    text = str(problem).strip()
    return text.splitlines()[0] if text else type(problem).__name__
