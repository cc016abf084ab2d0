"""Shards in files: .safetensors files of one mesh into those of another, streamed, with a checksum on both sides."""

from __future__ import annotations

import contextlib
import fnmatch
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from cute_py.argument_checks import expect_integer, expect_integers, expect_items
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import SAFETENSORS_TYPES, DType, as_dtype
from cute_py.errors import CuteError, FileFormatError, InvalidValueError, LayoutError, given, shortened
from cute_py.mesh.host import HostRedistribution
from cute_py.mesh.placements import Partial, Placement, Replicate, SectionedShard, Shard, parse_placement
from cute_py.mesh.redistribution import Redistribution, redistribute
from cute_py.mesh.sharded_layout import MOST_DEVICES, ShardedLayout, distribute
from cute_py.mesh.transfer import Transfer

MAX_HEADER = 100_000_000
"""Bytes of a header; the package safetensors takes no longer one."""

DEFAULT_MEMORY = 1 << 30
"""Bytes of files that are mapped at once."""

PRESETS: Mapping[str, Callable[[tuple[int, ...]], Placement]] = {
    "replicate": lambda shape: Replicate(),
    "column-parallel": lambda shape: Shard(0),
    "row-parallel": lambda shape: Shard(len(shape) - 1),
    "embedding": lambda shape: Shard(0),
    "gate-up": lambda shape: SectionedShard(0, (_rows(shape) // 2, _rows(shape) - _rows(shape) // 2)),
}
"""Name -> placement of a weight of that shape, (outputs, inputs) as PyTorch's Linear holds it."""

_FUSED_QKV = re.compile(r"fused-qkv\((\d{1,6}), *(\d{1,6})\)")
"""Heads of queries, and of keys and values."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a .safetensors file."""

    path: Path
    name: str
    dtype: DType
    shape: tuple[int, ...]
    begin: int
    """Where its first byte lies in the file."""

    @property
    def nbytes(self) -> int:
        """Bytes in the file."""
        return math.prod(self.shape) * self.dtype.bits // 8

    def mapped(self, mode: str = "r") -> NDArray[Any]:
        """Its elements, flat."""
        if not self.nbytes:
            return numpy.empty(0, self.dtype.numpy)
        count = math.prod(self.shape)
        return numpy.memmap(self.path, self.dtype.numpy, mode, self.begin, (count,))  # type: ignore[call-overload,no-any-return]


def stored_tensors(path: str | os.PathLike[str]) -> dict[str, StoredTensor]:
    """The tensors of a .safetensors file by name; only its header is read.

    Raises:
        FileFormatError: no such file, no such format, or a tensor that reaches beyond its end.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            if 8 + length > size:
                raise ValueError(f"a header of {length} bytes in a file of {size}")
            header = json.loads(opened.read(min(length, MAX_HEADER)))
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        found = {
            name: StoredTensor(
                file,
                name,
                as_dtype(SAFETENSORS_TYPES[entry["dtype"]]),
                expect_integers(entry["shape"], "shape", 0),
                8 + length + expect_integers(entry["data_offsets"], "data_offsets", 0, count=2)[0],
            )
            for name, entry in entries.items()
        }
    except OSError as error:
        raise FileFormatError(f"{path}: can't be read: {error.strerror}") from None
    except (CuteError, ValueError, KeyError, TypeError, AttributeError, RecursionError, IndexError) as error:
        raise FileFormatError(f"{path}: no .safetensors file: {shortened(str(error))}") from None
    for tensor in found.values():
        begin, end = entries[tensor.name]["data_offsets"]
        if end != begin + tensor.nbytes:
            raise FileFormatError(
                f"{path}: {given(tensor.name)} of shape {tensor.shape} has data_offsets {given([begin, end])};"
                f" must be {tensor.nbytes} bytes"
            )
        if tensor.begin + tensor.nbytes > size:
            raise FileFormatError(
                f"{path}: {given(tensor.name)} ends at byte {tensor.begin + tensor.nbytes}; the file has {size}",
                hint="the file is cut off",
            )
    return found


@dataclass(frozen=True, slots=True)
class Side:
    """A mesh, the file of each device, and the placements of the tensors, the first pattern that matches."""

    mesh_shape: tuple[int, ...]
    files: tuple[Path, ...]
    placements: tuple[tuple[str, tuple[str, ...]], ...]

    def layout(self, name: str, shape: tuple[int, ...]) -> ShardedLayout:
        """How a tensor of that name and shape is distributed."""
        try:
            return distribute(shape, self.mesh_shape, self._placements(name, shape))
        except InvalidValueError as error:
            raise InvalidValueError(
                f"{given(name)} of shape {shape}: {error.headline}", error.facts, error.hint
            ) from None

    def _placements(self, name: str, shape: tuple[int, ...]) -> list[Placement]:
        for pattern, texts in self.placements:
            if fnmatch.fnmatchcase(name, pattern):
                found = [_placement(text, shape, f"{pattern!r}") for text in texts]
                if any(isinstance(placement, Partial) for placement in found):
                    raise InvalidValueError(f"{pattern!r}: Partial; files hold sums, not summands")
                return found
        raise InvalidValueError(f"no placement for {given(name)}", hint="a last line '*' = \"replicate\"")

    def shape_of(self, name: str, shards: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        """The shape of the whole tensor, from the shapes of its shards.

        Raises:
            LayoutError: no shape is divided into these.
        """
        whole = list(shards[0])
        devices = numpy.arange(len(shards)).reshape(self.mesh_shape)
        for dim in range(len(whole)):
            divides = [getattr(placement, "dim", None) == dim for placement in self._placements(name, shards[0])]
            parts = devices[tuple([slice(None) if one else 0 for one in divides])].ravel().tolist()
            whole[dim] = sum(shards[device][dim] if dim < len(shards[device]) else 0 for device in parts)
        layout = self.layout(name, tuple(whole))
        for device, shard in enumerate(shards):
            if shard != layout.local_shape(device):
                wanted = layout.local_shape(device)
                raise LayoutError(
                    f"{given(name)}: the shard of device {device} has shape {shard}; must be {wanted}",
                    {"file": str(self.files[device]), "whole tensor": tuple(whole), "placements": layout.placements},
                )
        return tuple(whole)


@dataclass(frozen=True, slots=True)
class ReshardPlan:
    """What `reshard` does: from which files to which."""

    source: Side
    destination: Side


def read_plan(path: str | os.PathLike[str]) -> ReshardPlan:
    """A plan in TOML.

    `[source]` and `[destination]` have `mesh`, extents of the mesh, and `files`, a list or a text with `{device}`;
    `[placements]` has lines `pattern = placements`, for both sides, or each side has its own. Placements are one text
    or a list with one for each mode of the mesh: "Shard(0)", "BlockCyclic(0, 64)", "Replicate()",
    "SectionedShard(0, (4096, 1024, 1024))", a name of `PRESETS`, or "fused-qkv(32, 8)" for a weight whose rows are
    of 32 heads of queries, 8 of keys and 8 of values.

    Raises:
        FileFormatError: no TOML, a key that is missing or unknown.
    """
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise FileFormatError(f"{path}: can't be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FileFormatError(f"{path}: no TOML: {shortened(str(error))}") from None
    unknown = [key for key in table if key not in ("source", "destination", "placements")]
    if unknown:
        raise FileFormatError(f"{path}: unknown table {given(unknown[0])}; must be source, destination or placements")
    folder = Path(path).parent
    return ReshardPlan(*[_side(table, name, folder, str(path)) for name in ("source", "destination")])


def _side(table: dict[str, Any], name: str, folder: Path, path: str) -> Side:
    what, side = f"{path}: [{name}]", table.get(name)
    if not isinstance(side, dict):
        raise FileFormatError(f"{what} is missing")
    for key in ("mesh", "files"):
        if key not in side:
            raise FileFormatError(f"{what} has no {key!r}")
    unknown = [key for key in side if key not in ("mesh", "files", "placements")]
    if unknown:
        raise FileFormatError(f"{what}: unknown key {given(unknown[0])}; must be mesh, files or placements")
    mesh = (side["mesh"],) if isinstance(side["mesh"], int) else side["mesh"]
    shape = expect_integers(mesh, f"{what} mesh", 1, MOST_DEVICES)
    count = math.prod(shape)
    if not shape or count > MOST_DEVICES:
        raise FileFormatError(f"{what} mesh = {list(shape)}; must be of 1 to {MOST_DEVICES} devices")
    files = side["files"]
    if isinstance(files, str):
        if count > 1 and "{device}" not in files:
            raise FileFormatError(f"{what} files = {given(files)} for {count} devices; must have {{device}} in it")
        files = [files.replace("{device}", str(device)) for device in range(count)]
    files = expect_items(files, f"{what} files")
    if len(files) != count or not all(isinstance(file, str) for file in files):
        raise FileFormatError(f"{what} has {len(files)} files for {count} devices; must be one text for each")
    if any("\0" in file for file in files):
        raise FileFormatError(f"{what} files: the name of a file has no NUL")
    if name == "destination" and len(set(files)) < count:
        raise FileFormatError(f"{what} files: one file for two devices; must be another for each")
    rules = side.get("placements", table.get("placements"))
    if not isinstance(rules, dict) or not rules:
        raise FileFormatError(f"{what} has no placements: lines pattern = placement, here or in [placements]")
    placements = []
    for pattern, value in rules.items():
        texts = [value] * len(shape) if value == "replicate" else value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise FileFormatError(f"{what} placements of {given(pattern)}: {given(value)}; must be texts")
        if len(texts) != len(shape):
            raise FileFormatError(f"{what} placements of {given(pattern)}: {len(texts)}; a mesh of {len(shape)} modes")
        placements.append((pattern, tuple(texts)))
    return Side(shape, tuple([folder / file for file in files]), tuple(placements))


def _rows(shape: tuple[int, ...]) -> int:
    return shape[0] if shape else 0


def _placement(text: str, shape: tuple[int, ...], what: str) -> Placement:
    made, fused = PRESETS.get(text), _FUSED_QKV.fullmatch(text)
    if fused is not None:
        heads, others = map(int, fused.groups())
        rows = _rows(shape) // max(1, heads + 2 * others)
        return SectionedShard(0, (heads * rows, others * rows, others * rows))
    return made(shape) if made is not None else parse_placement(text, what)


def reshard(
    plan: ReshardPlan, memory: int = DEFAULT_MEMORY, progress: Callable[[int, int], None] | None = None
) -> list[Resharded]:
    """Read the shards of the source's files, write those of the destination's; all of them, or none.

    Files are written beside their names and renamed when the checksums of each whole tensor agree on both sides.

    Args:
        memory: bytes of files that are mapped at once, at most.
        progress: called with bytes done and bytes in all.
    Returns:
        One for each tensor.
    Raises:
        FileFormatError: a file that can't be read or written, or replicas that differ; LayoutError: a shard of another
            shape than its place; InvalidValueError: a tensor without a placement. Nothing is written then.
    """
    expect_integer(memory, "memory", 1 << 20, unit="bytes")
    stored = [stored_tensors(path) for path in plan.source.files]
    names = list(stored[0])
    refuse(FileFormatError, _missing(plan.source, stored), "not every file has every tensor")
    works = [_work(plan, name, [tensors[name] for tensors in stored]) for name in names]
    total, done = 4 * sum(work.nbytes for work in works), 0

    def report(bytes_more: int) -> None:
        nonlocal done
        done += bytes_more
        if progress is not None:
            progress(done, total)

    with _new_files(plan.destination, works) as written:
        found = []
        for work in works:
            shards = [tensors[work.name] for tensors in written]
            before = _checksum(work.redistribution.source, work.shards, memory, report)
            _copy(work.redistribution, work.shards, shards, memory)
            report(2 * work.nbytes)
            after = _checksum(work.redistribution.destination, shards, memory, report)
            if before != after:
                raise FileFormatError(
                    f"{given(work.name)}: checksum {before:016x} of what was read, {after:016x} of what was written",
                    hint="a file changed meanwhile, or the disk is full; nothing was renamed",
                )
            moved = work.redistribution.bytes_moved
            found.append(Resharded(work.name, work.redistribution.source.shape, work.shards[0].dtype, after, moved))
    return found


@dataclass(frozen=True, slots=True)
class Resharded:
    """A tensor that was written: its whole shape, the checksum that both sides agree on, bytes between devices."""

    name: str
    shape: tuple[int, ...]
    dtype: DType
    checksum: int
    bytes_moved: int

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"{self.checksum:016x}  {self.dtype.name:10} {shape:18} {self.name}"


@dataclass(frozen=True, slots=True)
class _Work:
    name: str
    shards: list[StoredTensor]
    redistribution: Redistribution

    @property
    def nbytes(self) -> int:
        return math.prod(self.redistribution.source.shape) * self.shards[0].dtype.bits // 8


def _missing(side: Side, stored: list[dict[str, StoredTensor]]) -> list[Diagnostic]:
    every = dict.fromkeys(name for tensors in stored for name in tensors)
    return [
        Diagnostic("reshard-tensor", str(path), text=f"{path} has no {given(name)}")
        for path, tensors in zip(side.files, stored, strict=True)
        for name in every
        if name not in tensors
    ]


def _work(plan: ReshardPlan, name: str, shards: list[StoredTensor]) -> _Work:
    kinds = {shard.dtype.name for shard in shards}
    if len(kinds) > 1:
        raise LayoutError(f"{given(name)} has elements of several types: {', '.join(sorted(kinds))}")
    shape = plan.source.shape_of(name, [shard.shape for shard in shards])
    sides = plan.source.layout(name, shape), plan.destination.layout(name, shape)
    return _Work(name, shards, redistribute(*sides, shards[0].dtype))


@contextlib.contextmanager
def _new_files(side: Side, works: list[_Work]) -> Iterator[list[dict[str, StoredTensor]]]:
    """Files of the right length beside their names, renamed at the end and removed after an exception."""
    named = {value: key for key, value in SAFETENSORS_TYPES.items()}
    opened: list[tuple[Path, Path]] = []
    written = []
    try:
        for device, path in enumerate(side.files):
            header, at = {}, 0
            for work in works:
                shape, dtype = work.redistribution.destination.local_shape(device), work.shards[0].dtype
                end = at + math.prod(shape) * dtype.bits // 8
                header[work.name] = {"dtype": named[dtype.name], "shape": list(shape), "data_offsets": [at, end]}
                at = end
            text = json.dumps(header, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)
            beside = path.with_name(f".{path.name}.{os.getpid()}")
            opened.append((beside, path))
            with beside.open("xb") as file:
                file.write(len(text).to_bytes(8, "little") + text)
                file.truncate(8 + len(text) + at)
            written.append(stored_tensors(beside))
        yield written
        for beside, path in opened:
            beside.replace(path)
    except OSError as error:
        path = opened[-1][1] if opened else side.files[0]
        raise FileFormatError(f"{path}: can't be written: {error.strerror}") from None
    finally:
        for beside, _ in opened:
            beside.unlink(missing_ok=True)


def _copy(plan: Redistribution, sources: list[StoredTensor], written: list[StoredTensor], memory: int) -> None:
    for transfer in plan.transfers():
        for piece in transfer.pieces(lambda one: _touched(one, plan.dtype.bits // 8) <= memory):
            ends = {piece.source_device: sources[piece.source_device].mapped()}
            goal = {piece.destination_device: written[piece.destination_device].mapped("r+")}
            HostRedistribution([[piece]], plan.dtype, ends, goal).launch()
            # the maps close here, and their pages no longer count


PAGE = 4096


def _touched(transfer: Transfer, itemsize: int) -> int:
    """Bytes of the pages that a transfer touches on both sides, at most."""
    total = 0
    for side in ("source", "destination"):
        runs, run = transfer.elements, 1
        for mode in transfer.modes:
            if getattr(mode, side) == run:
                run, runs = run * mode.size, runs // mode.size
        total += runs * (run * itemsize + 2 * PAGE)
    return total


def _checksum(side: ShardedLayout, shards: list[StoredTensor], memory: int, report: Callable[[int], None]) -> int:
    """The sum over all elements of bits times an odd number of the coordinate, in 64 bits; replicas must agree."""
    found: dict[tuple[int, ...], tuple[int, Path]] = {}
    for device, shard in enumerate(shards):
        for box in side._boxes_of(device) if shard.nbytes else ():  # else: an empty tensor may have any other extent
            weights = [
                _weights(i, d.runs(part).indices())
                for i, (d, part) in enumerate(zip(side._dimensions, box, strict=True))
            ]
            value = _weighted(shard, weights, memory // 4)
            if found.setdefault(box, (value, shard.path))[0] != value:
                first = found[box][1]
                raise FileFormatError(f"{given(shard.name)}: {shard.path} and {first} hold the same part, and differ")
    report(math.prod(side.shape) * shards[0].dtype.bits // 8)
    return sum(value for value, _ in found.values()) & _WORD


_WORD = (1 << 64) - 1


def _weights(dim: int, indices: NDArray[numpy.int64]) -> NDArray[numpy.uint64]:
    """An odd number for each index of a dimension: splitmix64's mixing."""
    offset = (dim + 1) * 0x9E3779B97F4A7C15 & _WORD
    z = (indices.astype(numpy.uint64) + numpy.uint64(offset)) * numpy.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> numpy.uint64(31)
    z *= numpy.uint64(0x94D049BB133111EB)
    z ^= z >> numpy.uint64(29)
    return z | numpy.uint64(1)


def _weighted(shard: StoredTensor, weights: list[NDArray[numpy.uint64]], memory: int) -> int:
    """The weighted sum of a shard, a part of the rows at a time."""
    size = shard.dtype.bits // 8
    words = max(1, size // 8)
    inner = numpy.ones(words, numpy.uint64) if words == 1 else _weights(63, numpy.arange(words))
    outer = numpy.ones(1, numpy.uint64)
    for i, one in enumerate(reversed(weights)):  # the rows: as many dimensions inside as fit
        if len(inner) * len(one) * 24 > memory and i:
            outer = numpy.multiply.outer(one, outer).ravel()
        else:
            inner = numpy.multiply.outer(one, inner).ravel()
    total, rows = 0, max(1, memory // (24 * len(inner)))
    for start in range(0, len(outer), rows):
        count = min(rows, len(outer) - start)
        bits = shard.mapped().view(f"u{min(size, 8)}")[start * len(inner) : (start + count) * len(inner)]
        sums = (bits.reshape(count, -1).astype(numpy.uint64) * inner).sum(axis=1, dtype=numpy.uint64)
        total += int((sums * outer[start : start + count]).sum(dtype=numpy.uint64))
    return total & _WORD
