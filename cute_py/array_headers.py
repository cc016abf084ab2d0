"""Headers of .npy, .npz and .safetensors files: the contents that they declare, and the parts that are missing from the
file."""

from __future__ import annotations

import io
import json
import math
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from cute_py.errors import counted, integer_text

if TYPE_CHECKING:
    import numpy

NPY_MAGIC = b"\x93NUMPY"
MAX_SAFETENSORS_HEADER = 100_000_000
"""Longest header of a .safetensors file, in bytes; the safetensors package refuses a longer one."""
HEADER_BYTES = 1 << 16
"""The longest header of a .npy that is read, in bytes; numpy reads at most 10,000 characters."""


def npy_header(start: bytes) -> tuple[tuple[int, ...], numpy.dtype[numpy.generic], int]:
    """(shape, element type, offset of the elements in bytes) of a .npy, from its first bytes."""
    import numpy as np

    file = io.BytesIO(start)
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, _, dtype = read(file)  # version 3 differs only in the encoding of field names
    return shape, dtype, file.tell()


def npy_lacks(start: bytes, size: int) -> str | None:
    """Compare a .npy of `size` bytes with its header. Return a message that names the missing part, or None if the file
    is complete."""
    begin = 10 if start[6:7] == b"\1" else 12
    if not NPY_MAGIC.startswith(start[: len(NPY_MAGIC)]):
        return None
    if lacking := _header_lacks(int.from_bytes(start[8:begin], "little"), begin, size):
        return lacking
    shape, dtype, at = npy_header(start)
    return _short_elements(math.prod(shape) * dtype.itemsize, size - at)


def _header_lacks(length: int, begin: int, size: int) -> str | None:
    """Check that a file of `size` bytes contains its header, `length` bytes at the offset `begin`. Return a message
    that names the missing part, or None."""
    if size < begin:
        return f"truncated: {counted(size, 'byte')}; the first {begin} should hold the length of the header"
    if begin + length > size:
        return f"truncated: its header has {length} bytes, there {counted_are(size - begin)}"
    return None


def _short_elements(wanted: int, there: int) -> str | None:
    if wanted <= there:
        return None
    return f"truncated: its header asks for {integer_text(wanted)} bytes of elements, there {counted_are(there)}"


def counted_are(count: int) -> str:
    """A number after the form of 'to be' that agrees with it: 'is 1' or 'are 4'.

    >>> counted_are(1), counted_are(0)
    ('is 1', 'are 0')
    """
    return f"{'is' if count == 1 else 'are'} {count}"


def truncated(path: str) -> str | None:
    """Compare a file with its own header, and return a message that names the missing part. Return None if the file is
    complete, or damaged in another way."""
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            start = file.read(HEADER_BYTES)
            if not start:
                return "the file is empty"
            if start[:4] == b"PK\3\4":  # its directory is at the end, before a comment of up to 64 KiB
                file.seek(max(size - (1 << 16) - 22, 0))
                end = file.read()
                whole = len(end) - end.rfind(b"PK\5\6") >= 22 and b"PK\5\6" in end
                return None if whole else "truncated: the directory at the archive's end is missing"
            if Path(path).suffix.lower() != ".safetensors":
                return npy_lacks(start, size)
            length = int.from_bytes(start[:8], "little")
            if size >= 8 and length > MAX_SAFETENSORS_HEADER:
                return None
            if lacking := _header_lacks(length, 8, size):
                return lacking
            file.seek(8)
            header = json.loads(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
    except Exception:  # broken, as its reader reports
        return None
    return _short_elements(max((end for end in ends if type(end) is int), default=0), size - 8 - length)
