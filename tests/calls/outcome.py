"""What came of a call: touched as an interactive user would, judged, and written down the same in every process."""

from __future__ import annotations

import copy
import dataclasses
import os
import traceback
from typing import Any

import cute_py
from cute_py.errors import CuteError

PACKAGE = os.path.dirname(os.path.abspath(cute_py.__file__)) + os.sep

DIVISIONS = ("operator.floordiv", "operator.mod", "reflected(operator.floordiv", "reflected(operator.mod")

UNHASHABLE = ("unhashable type", "cannot use")


class Overtime(BaseException):
    """The call is above its time; no handler in the package catches it."""


MANY_ITEMS = 1 << 16
"""Items of a container that is printed."""


def touch(result: Any, from_a_class: bool = False) -> None:
    """str, repr, hash and == of a result, as printing it, keeping it in a dict and comparing it do.

    A record with arrays that the package made (not a class that was called with anything) is also copied and compared.
    """
    if type(result).__module__ == "numpy":
        return
    if isinstance(result, tuple | list | dict) and len(result) > MANY_ITEMS:  # a tuple times an Int
        return
    str(result)
    repr(result)
    if isinstance(result, tuple | list | dict):
        return
    try:
        hash(result)
    except TypeError as error:
        if not str(error).startswith(UNHASHABLE):
            raise
    _ = result == result
    _ = result == "x"
    _ = result != (1, None)
    if dataclasses.is_dataclass(result) and not from_a_class and _holds_array(result):
        _ = result == copy.deepcopy(result)


def _holds_array(record: Any) -> bool:
    """Of which a copy is made: not of a view that has more elements than memory has room for."""
    held = [getattr(record, field.name, None) for field in dataclasses.fields(record)]
    arrays = [one for one in held if type(one).__module__ == "numpy"]
    return bool(arrays) and all(getattr(one, "size", 0) < 1 << 24 for one in arrays)


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    """The frames of the package, outermost first; generated functions of its classes count."""
    found = []
    step = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        code = frame.f_code
        own = code.co_filename.startswith(PACKAGE)
        generated = code.co_filename == "<string>" and str(frame.f_globals.get("__name__")).startswith("cute_py")
        if own or generated:
            place = code.co_filename if own else str(frame.f_globals.get("__name__")).replace(".", os.sep)
            found.append(traceback.FrameSummary(place, step.tb_lineno or 0, code.co_name, lookup_line=False))
        step = step.tb_next
    return found


def place_of(error: BaseException) -> str:
    """`file:line function` of the innermost frame of the package."""
    frames = frames_of(error)
    if not frames:
        return "outside the package"
    last = frames[-1]
    name = last.filename.removeprefix(PACKAGE) if last.filename.startswith(PACKAGE) else last.filename
    return f"{name}:{last.lineno} {last.name}"


def is_pythons_own(error: BaseException, text: str) -> bool:
    """Python's protocol refused, and the package had no say: an operator that neither side has, a wrong number of
    arguments, the text of a plain number or tuple, or the generated repr of a record that holds one. Numbers divide by
    zero as Python's do."""
    if isinstance(error, ZeroDivisionError) and text.startswith(DIVISIONS):
        return True
    own = [frame for frame in frames_of(error) if frame.filename.startswith(PACKAGE)]
    if own:
        return False
    if isinstance(error, RecursionError) or "int_max_str_digits" in str(error):
        return "touch" in _functions(error) and not frames_of(error)
    if frames_of(error):
        return False
    if isinstance(error, TypeError | AttributeError):
        return True
    return text.startswith(("operator.", "reflected(")) and "touch" not in _functions(error)


def _functions(error: BaseException) -> list[str]:
    step, names = error.__traceback__, []
    while step is not None:
        names.append(step.tb_frame.f_code.co_name)
        step = step.tb_next
    return names


def is_refusal(error: BaseException, text: str) -> bool:
    """An error that a user may see: typed, Python's own, or what an assertion is for."""
    if isinstance(error, AssertionError) and text.startswith("testing.assert_"):
        return True
    return isinstance(error, CuteError) or is_pythons_own(error, text)
