"""Atomic writes: a file is written under a temporary name in the same folder, then renamed.

Writing to a symbolic link keeps the link and writes its target, which may not exist yet. A link that leads back to
itself is refused, never replaced.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

from cute_py.argument_checks import expect_path
from cute_py.errors import FileFormatError, given, system_reason


def unwritable_reason(path: str | os.PathLike[str]) -> str | None:
    """The reason why no file can be written to this path, or None. Reasons are a missing folder, a path that is not a
    plain file, and a link to itself.

    >>> unwritable_reason("/"), unwritable_reason("no such folder/file")
    ('Is a directory', 'No such file or directory')
    """
    try:
        target = os.path.realpath(path)
        if os.path.islink(target):
            return "a symbolic link that leads back to itself"
        os.stat(os.path.dirname(target) or ".")
        mode = os.stat(target).st_mode if os.path.exists(target) else stat.S_IFREG
    except (OSError, ValueError) as error:
        return system_reason(error)
    if not os.fspath(path) or not stat.S_ISREG(mode):
        return "Is a directory" if not os.fspath(path) or stat.S_ISDIR(mode) else "not a plain file"
    return None


def write_whole(path: str | os.PathLike[str], content: str | bytes | Callable[[IO[bytes]], None]) -> Path:
    """Write a file atomically and return its path. An existing file keeps its permissions.

    Args:
        path: the file to write; if it is a symbolic link, its target is written.
        content: a string, bytes, or a function that writes to an open file. A lone surrogate in a string, which UTF-8
            can't encode, is written as an escape such as `\\udc80`.
    Raises:
        FileFormatError: the file can't be written there. InvalidTypeError: `path` is neither a string nor a path
            object.
    """
    expect_path(path, "path")
    name = os.fspath(path)
    shown = name if name.isprintable() else given(name)
    reason = unwritable_reason(path)
    if reason is not None:
        raise FileFormatError(f"{shown or '(empty name)'}: can't be written: {reason}")
    target = os.path.realpath(path)
    import tempfile  # most commands write none

    temporary = ""
    try:
        mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".")
        with os.fdopen(handle, "wb") as file:
            if callable(content):
                content(file)
            else:
                file.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise FileFormatError(f"{shown}: can't be written: {system_reason(error)}") from None
        raise
    return Path(path)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
