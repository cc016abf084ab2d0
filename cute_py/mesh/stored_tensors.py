"""Tensors in .safetensors files: map them, compare them and compute checksums; write new files atomically.

The package safetensors reads the headers, and rejects files that violate the format. It returns no offsets, but the
format has no gaps, so a tensor begins where the previous tensor ends. This module maps elements and writes headers
itself, because the package needs whole tensors in memory, and a checkpoint may not fit.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect_path
from cute_py.array_headers import truncated
from cute_py.dtypes import SAFETENSORS_TYPES, DType, as_dtype
from cute_py.errors import FileFormatError, given, imported, shortened, system_reason
from cute_py.mesh.sharded_layout import ShardedLayout

CHUNK = 1 << 22
"""Bytes of each of two shards that are compared at a time."""

ENDS = 4096
"""Bytes at both ends of a shard that are compared first."""


@dataclass(slots=True)
class Progress:
    """Progress in bytes: after every step, `call` is called with the number of bytes done and the total number."""

    total: int
    call: Callable[[int, int], None] | None
    done: int = 0

    def add(self, count: int) -> None:
        """Add `count` bytes to the bytes done."""
        self.done += count
        if self.call is not None:
            self.call(self.done, self.total)


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a .safetensors file, or some of its rows."""

    path: Path
    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    """Offset of the tensor's first byte in the file."""

    @property
    def nbytes(self) -> int:
        """Number of bytes of the tensor in the file."""
        return math.prod(self.shape) * self.dtype.bits // 8

    def rows(self, first: int, count: int) -> StoredTensor:
        """Return `count` rows, starting at row `first`."""
        row = math.prod(self.shape[1:]) * self.dtype.bits // 8
        return replace(self, shape=(count, *self.shape[1:]), begin=self.begin + first * row)

    def mapped(self, mode: str = "r") -> NDArray[Any]:
        """Return the elements as a flat array that is mapped from the file."""
        if not self.nbytes:
            return numpy.empty(0, self.dtype.numpy)
        count = math.prod(self.shape)
        return numpy.memmap(str(self.path), self.dtype.numpy, mode, self.begin, (count,))  # type: ignore[call-overload,no-any-return]

    def part(self, first: int, count: int) -> NDArray[numpy.uint8]:
        """Return a range of the bytes, which stays mapped until the result is deleted."""
        return numpy.memmap(str(self.path), numpy.uint8, "r", self.begin + first, (count,))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The tensors of a .safetensors file, in the order of the file, and its metadata."""

    tensors: dict[str, StoredTensor]
    metadata: dict[str, str]


def stored_file(path: str | os.PathLike[str]) -> StoredFile:
    """Open a .safetensors file; only its header is read.

    Raises:
        FileFormatError: the file does not exist, has another format, or has elements of an unsupported type.
        MissingPackageError: the package safetensors is not installed.
    """
    safetensors = imported("safetensors", "reading .safetensors files", "safetensors", "pip install 'cute-py[cli]'")
    file = expect_path(path, "path")
    found: dict[str, StoredTensor] = {}
    try:
        with file.open("rb") as opened:
            at = 8 + int.from_bytes(opened.read(8), "little")
        with safetensors.safe_open(os.fspath(file), framework="numpy") as header:
            for name in header.offset_keys():
                tensor = header.get_slice(name)
                kind = SAFETENSORS_TYPES.get(str(tensor.get_dtype()))
                if kind is None:
                    raise FileFormatError(
                        f"{path}: {given(name)} has elements of type {tensor.get_dtype()}, which is not supported",
                        {"supported": ", ".join(SAFETENSORS_TYPES)},
                    )
                found[name] = StoredTensor(file, name, as_dtype(kind), tuple(tensor.get_shape()), at)
                at += found[name].nbytes
            metadata = header.metadata() or {}
            return StoredFile(found, dict(sorted(metadata.items())))  # the package returns them in a random order
    except FileFormatError:
        raise
    except OSError as error:
        raise FileFormatError(f"{path}: can't be read: {system_reason(error)}") from None
    except Exception as error:  # SafetensorError does not derive from a Python error
        lacks = truncated(os.fspath(file))
        raise FileFormatError(
            f"{path}: not a .safetensors file: {lacks or shortened(str(error))}",
            hint="the file is truncated" if lacks else None,
        ) from None


def stored_tensors(path: str | os.PathLike[str]) -> dict[str, StoredTensor]:
    """Return the tensors of a .safetensors file by name, in the order of the file. For the errors, see
    `stored_file`."""
    return stored_file(path).tensors


def header_bytes(tensors: Mapping[str, tuple[DType, Sequence[int]]], metadata: Mapping[str, str]) -> bytes:
    """Return the header of a .safetensors file that contains these tensors in this order, with this metadata.

    >>> header_bytes({"a": (as_dtype("uint8"), (2,))}, {})[8:].decode().strip()
    '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}'
    """
    named = {value: key for key, value in SAFETENSORS_TYPES.items()}
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))} if metadata else {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        end = at + math.prod(shape) * dtype.bits // 8
        header[name] = {"dtype": named[dtype.name], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


NewTensor = tuple[str, DType, Sequence[tuple[int, ...]]]
"""Name, element type, and the shape on each device."""


@contextlib.contextmanager
def new_files(
    paths: Sequence[Path], tensors: Sequence[NewTensor], metadata: Sequence[Mapping[str, str]]
) -> Iterator[list[dict[str, StoredTensor]]]:
    """Create files of their final size under temporary names (a context manager). They are renamed at the end of the
    block, or removed after an exception.

    Args:
        metadata: the metadata of each file.
    Raises:
        FileFormatError: a file can't be written.
    """
    opened: list[tuple[Path, Path]] = []
    written = []
    try:
        for device, path in enumerate(paths):
            held = {name: (dtype, shapes[device]) for name, dtype, shapes in tensors}
            head = header_bytes(held, metadata[device])
            size = sum(math.prod(shape) * dtype.bits // 8 for dtype, shape in held.values())
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            opened.append((beside, path))
            with beside.open("xb") as file:
                file.write(head)
                file.truncate(len(head) + size)
            written.append(stored_tensors(beside))
        yield written
        for beside, path in opened:
            beside.replace(path)
    except OSError as error:
        path = opened[-1][1] if opened else paths[0]
        raise FileFormatError(f"{path}: can't be written: {system_reason(error)}") from None
    finally:
        for beside, _ in opened:
            beside.unlink(missing_ok=True)


def equal_groups(shards: Mapping[int, StoredTensor]) -> list[list[int]]:
    """Return groups of two or more keys whose shards are byte-identical. Empty shards are in no group.

    If shards differ at the start or the end, the rest of them is not read.
    """
    likely: dict[tuple[Any, ...], list[int]] = {}
    for key, shard in shards.items():
        if shard.nbytes:
            end = min(ENDS, shard.nbytes)
            ends = shard.part(0, end).tobytes(), shard.part(shard.nbytes - end, end).tobytes()
            likely.setdefault((shard.shape, *ends), []).append(key)
    found: list[list[int]] = []
    for keys in likely.values():
        groups: list[list[int]] = []
        for key in keys:
            for group in groups:
                if _equal(shards[group[0]], shards[key]):
                    group.append(key)
                    break
            else:
                groups.append([key])
        found += [group for group in groups if len(group) > 1]
    return found


def _equal(one: StoredTensor, other: StoredTensor) -> bool:
    return all(
        numpy.array_equal(one.part(at, count), other.part(at, count)) for at, count in _chunks(one.nbytes, CHUNK)
    )


def _chunks(size: int, chunk: int) -> Iterator[tuple[int, int]]:
    for at in range(0, size, chunk):
        yield at, min(chunk, size - at)


def has_one_value(shard: StoredTensor) -> bool:
    """Whether all elements have the same bits."""
    size = shard.dtype.bits // 8
    first = shard.part(0, size).tobytes() if shard.nbytes else b""
    return all(shard.part(at, count).tobytes() == first * (count // size) for at, count in _chunks(shard.nbytes, CHUNK))


_WORD = (1 << 64) - 1


def checksum(side: ShardedLayout, shards: Sequence[StoredTensor], memory: int, first_row: int = 0) -> int:
    """Compute the checksum of a tensor: the sum, modulo 2**64, of each element's bits times an odd number that depends
    on its coordinate.

    Args:
        memory: number of bytes that are mapped and processed at a time.
        first_row: the row of the whole tensor where this section begins, so that the sums of the sections add up to
            the sum of the whole.
    Raises:
        FileFormatError: replicas differ.
    """
    found: dict[tuple[int, ...], tuple[int, Path]] = {}
    for device, shard in enumerate(shards):
        # An empty tensor may have any other extent, so it has no boxes here.
        for box in side._boxes_of(device) if shard.nbytes else ():
            weights = [
                _weights(i, d.runs(part).indices() + (0 if i else first_row))
                for i, (d, part) in enumerate(zip(side._dimensions, box, strict=True))
            ]
            value = _weighted(shard, weights, memory // 4)
            if found.setdefault(box, (value, shard.path))[0] != value:
                first = found[box][1]
                raise FileFormatError(f"{given(shard.name)}: {shard.path} and {first} hold the same part, but differ")
    return sum(value for value, _ in found.values()) & _WORD


def _weights(dim: int, indices: NDArray[numpy.int64]) -> NDArray[numpy.uint64]:
    """Return an odd number for each index of a dimension, mixed as in splitmix64."""
    offset = (dim + 1) * 0x9E3779B97F4A7C15 & _WORD
    z = (indices.astype(numpy.uint64) + numpy.uint64(offset)) * numpy.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> numpy.uint64(31)
    z *= numpy.uint64(0x94D049BB133111EB)
    z ^= z >> numpy.uint64(29)
    return z | numpy.uint64(1)


def _weighted(shard: StoredTensor, weights: list[NDArray[numpy.uint64]], memory: int) -> int:
    """Return the weighted sum of a shard, computed for a part of the rows at a time."""
    size = shard.dtype.bits // 8
    words = max(1, size // 8)
    inner = numpy.ones(words, numpy.uint64) if words == 1 else _weights(63, numpy.arange(words))
    outer = numpy.ones(1, numpy.uint64)
    fits = True
    for i, one in enumerate(reversed(weights)):  # a row has as many inner dimensions as fit; the others are outside
        fits = fits and (len(inner) * len(one) * 24 <= memory or i == 0)
        if fits:
            inner = numpy.multiply.outer(one, inner).ravel()
        else:
            outer = numpy.multiply.outer(one, outer).ravel()
    total, rows = 0, max(1, memory // (24 * len(inner)))
    for start in range(0, len(outer), rows):
        count = min(rows, len(outer) - start)
        bits = shard.mapped().view(f"u{min(size, 8)}")[start * len(inner) : (start + count) * len(inner)]
        sums = (bits.reshape(count, -1).astype(numpy.uint64) * inner).sum(axis=1, dtype=numpy.uint64)
        total += int((sums * outer[start : start + count]).sum(dtype=numpy.uint64))
    return total & _WORD
