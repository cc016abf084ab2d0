"""`-` in place of a text or a file: standard input, once, as text or as a file of the kind that its bytes say."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from cute_py.cli.argument_types import standard_bytes, standard_text
from cute_py.cli.files import MAX_SAFETENSORS_HEADER
from cute_py.errors import FileFormatError, InvalidValueError

STANDARD_INPUT = "-"
HEAD_BYTES = 1 << 20
MAGIC = ((b"\x93NUMPY", ".npy"), (b"PK\x03\x04", ".npz"), (b"PK\x05\x06", ".npz"))
"""(first bytes, suffix of such a file); everything else is taken for .safetensors, which begins with a length."""


def text_of(argument: str) -> str:
    """A text given as an argument, or on standard input for -.

    Raises:
        FileFormatError: standard input is closed, or no text.
    """
    return standard_text().strip() if argument == STANDARD_INPUT else argument


def only_one(*arguments: str | None) -> None:
    """Refuse more than one - among arguments: standard input can be read once.

    Raises:
        InvalidValueError: there are more.

    >>> only_one("-", "a", None)
    """
    count = sum(argument == STANDARD_INPUT for argument in arguments)
    if count > 1:
        raise InvalidValueError(f"{count} arguments are -; standard input can be read only once")


@contextmanager
def file_of(argument: str) -> Iterator[str]:
    """The name of a file: the argument itself, or for - a temporary copy of standard input, named for its kind.

    Raises:
        FileFormatError: standard input is closed or empty; refusals of what is in it name it in place of the copy.
    """
    if argument != STANDARD_INPUT:
        yield argument
        return
    with tempfile.TemporaryDirectory() as folder:
        name = _copied(folder)
        try:
            yield name
        except FileFormatError as error:
            headline = error.headline.replace(name, "standard input")
            raise FileFormatError(headline, error.facts, error.hint) from None


def _copied(folder: str) -> str:
    """The name of a copy of standard input in a folder.

    Of what can be no such file, because it begins with no magic and no length of a header, the beginning is copied:
    enough to say what is wrong with it.
    """
    head = standard_bytes(HEAD_BYTES)
    if not head:
        raise FileFormatError("standard input is empty")
    suffix = next((suffix for magic, suffix in MAGIC if head.startswith(magic)), ".safetensors")
    name = os.path.join(folder, f"input{suffix}")
    whole = suffix != ".safetensors" or int.from_bytes(head[:8], "little") <= MAX_SAFETENSORS_HEADER
    with open(name, "wb") as file:
        file.write(head)
        while whole and (piece := standard_bytes(HEAD_BYTES)):
            file.write(piece)
    return name
