"""What came of a call: touched as a user's session would, judged, and written down the same in every process."""

from __future__ import annotations

import os
import traceback
from typing import Any

import cute_py
from cute_py.errors import CuteError

PACKAGE = os.path.dirname(os.path.abspath(cute_py.__file__)) + os.sep

UNHASHABLE = ("unhashable type", "cannot use")


class Overtime(BaseException):
    """The call is above its time; no handler in the package catches it."""


def touch(result: Any) -> None:
    """str, repr, hash and == of a result, as printing it, keeping it in a dict and comparing it do."""
    if type(result).__module__ == "numpy":
        return
    str(result)
    repr(result)
    try:
        hash(result)
    except TypeError as error:
        if not str(error).startswith(UNHASHABLE):
            raise
    _ = result == result
    _ = result == "x"
    _ = result != (1, None)


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


def is_pythons_own(error: BaseException) -> bool:
    """Python's protocol refused the call before the package saw it: an operator that neither side has, a wrong number
    of arguments, an enumerator that does not exist."""
    if frames_of(error):
        return False
    if isinstance(error, TypeError | AttributeError):
        return True
    step, files = error.__traceback__, []
    while step is not None:
        files.append(os.path.basename(step.tb_frame.f_code.co_filename))
        step = step.tb_next
    return isinstance(error, ValueError | KeyError) and "enum.py" in files


def is_refusal(error: BaseException) -> bool:
    """An error that a user may see: typed, or Python's own."""
    return isinstance(error, CuteError) or is_pythons_own(error)
