"""Call a function in a separate process, so that a trap on the GPU destroys the context of that process, not the
caller's.

The function, its arguments, and the result or the exception are pickled and sent over a pipe. The child is terminated
if it exceeds its time limit.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from cute_py.errors import CuteError, DeviceError, InvalidValueError

Result = TypeVar("Result")

_MARK = b"cute_py result\n"


def call_isolated(function: Callable[..., Result], *arguments: Any, seconds: float = 60.0, **options: Any) -> Result:
    """Call `function(*arguments, **options)` in a child process.

    Args:
        function: importable by its module and name. arguments, options and the result must be picklable.
        seconds: the child is terminated after this wall-clock time.
    Raises:
        the exception of the function, if it is an error of this library; its facts state that the call was isolated.
        InvalidValueError: the function is defined in the main script, which the child process can't import.
        DeviceError: the child took too long, or ended without a result.
    """
    if function.__module__ == "__main__":
        raise InvalidValueError(
            f"{function.__name__} is defined in the main script, which a separate process can't import",
            hint="move it into a module",
        )
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path[1:]])}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cute_py.gpu.isolate"],
            input=pickle.dumps((function, arguments, options)),
            capture_output=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(
            f"{function.__name__} took more than {seconds:g} s in a separate process, which was terminated"
        ) from None
    _, mark, content = done.stdout.partition(_MARK)
    if not mark:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise DeviceError(
            f"{function.__name__} ended its process without a result",
            {"exit status": done.returncode, "last line": lines[-1] if lines else "none"},
        )
    kind, value = pickle.loads(content)
    if kind == "result":
        result: Result = value
        return result
    name, headline, facts, hint = value
    raise _rebuilt(name, headline, {**facts, "process": "isolated; the context of this process is untouched"}, hint)


def _rebuilt(name: str, headline: str, facts: dict[str, object], hint: str | None) -> CuteError:
    from cute_py import errors

    # The error is not one of `errors`, or has more fields than its message.
    with contextlib.suppress(AttributeError, TypeError):
        error: CuteError = getattr(errors, name)(headline, facts, hint)
        return error
    return DeviceError(f"{name}: {headline}", facts, hint)


def _serve() -> None:
    """Run the main loop of the child: read a call, execute it, and write the result or the exception."""
    function, arguments, options = pickle.load(sys.stdin.buffer)
    try:
        outcome: tuple[str, Any] = ("result", function(*arguments, **options))
    except CuteError as problem:
        facts = {name: str(value) for name, value in problem.facts.items()}
        hint = None if problem.hint and "isolate" in problem.hint else problem.hint
        outcome = ("error", (type(problem).__name__, problem.headline, facts, hint))
    sys.stdout.buffer.write(_MARK + pickle.dumps(outcome))
    sys.stdout.buffer.flush()
    os._exit(0)  # After a trap the context may prevent the interpreter from a clean exit.


if __name__ == "__main__":
    _serve()
