"""Tensors in files: places, headers, equality and checksums, against bytes and sums that are computed one by one."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from cute_py.dtypes import as_dtype
from cute_py.errors import FileFormatError
from cute_py.mesh import BlockCyclic, Placement, Replicate, SectionedShard, Shard, Zigzag, distribute
from cute_py.mesh import stored_tensors as module
from cute_py.mesh.stored_tensors import (
    Progress,
    StoredTensor,
    checksum,
    equal_groups,
    has_one_value,
    header_bytes,
    new_files,
    stored_file,
    stored_tensors,
)
from tests.mesh.places import indices_of, part_of

safetensors = pytest.importorskip("safetensors.numpy")

MASK = (1 << 64) - 1


def saved(folder: Path, number: int, content: np.ndarray) -> StoredTensor:
    path = folder / f"{number}.safetensors"
    safetensors.save_file({"before": np.zeros(3, np.uint8), "x": np.ascontiguousarray(content)}, path)
    return stored_tensors(path)["x"]


# ---- places


def test_places_of_tensors_and_of_their_rows(tmp_path: Path) -> None:
    content = {
        "a": np.arange(24, dtype=np.int16).reshape(4, 3, 2),
        "b": np.arange(5, dtype=np.float64),
        "c": np.array(7, np.uint8),
        "d": np.zeros((0, 3), np.float32),
    }
    path = tmp_path / "x.safetensors"
    safetensors.save_file(content, path, {"made": "here"})
    stored = stored_file(path)
    assert stored.metadata == {"made": "here"}
    raw = path.read_bytes()
    for name, array in content.items():
        one = stored.tensors[name]
        assert (one.name, one.path, one.shape, one.dtype) == (name, path, array.shape, as_dtype(str(array.dtype)))
        assert one.nbytes == array.nbytes
        assert raw[one.begin : one.begin + one.nbytes] == array.tobytes()
        assert one.mapped().tolist() == array.ravel().tolist()
        assert one.mapped().dtype == array.dtype
    rows = stored.tensors["a"].rows(1, 2)
    assert (rows.shape, rows.nbytes) == ((2, 3, 2), 24)
    assert rows.mapped().tolist() == content["a"][1:3].ravel().tolist()
    assert stored.tensors["a"].part(5, 7).tobytes() == content["a"].tobytes()[5:12]
    assert stored.tensors["b"].rows(2, 3).mapped().tolist() == [2, 3, 4]
    changed = stored.tensors["b"].mapped("r+")
    changed[1] = 9
    del changed
    assert stored.tensors["b"].mapped().tolist() == [0, 9, 2, 3, 4]


@pytest.mark.parametrize("metadata", [{}, {"format": "pt", "é": "ü"}])
def test_headers_are_read_by_the_package(tmp_path: Path, metadata: dict[str, str]) -> None:
    tensors = {
        "a": (as_dtype("float16"), (3, 5)),
        "empty": (as_dtype("float32"), (0, 4)),
        "scalar": (as_dtype("int64"), ()),
        "ü": (as_dtype("bfloat16"), (7,)),
    }
    head = header_bytes(tensors, metadata)
    length = int.from_bytes(head[:8], "little")
    assert len(head) == 8 + length and len(head) % 8 == 0
    text = head[8:].decode()
    table = json.loads(text)
    assert table.get("__metadata__", {}) == metadata
    assert [table[name]["data_offsets"] for name in tensors] == [[0, 30], [30, 30], [30, 38], [38, 52]]
    assert [table[name]["dtype"] for name in tensors] == ["F16", "F32", "I64", "BF16"]
    path = tmp_path / "x.safetensors"
    path.write_bytes(head + bytes(52))
    stored = stored_file(path)
    assert {name: (one.dtype, one.shape) for name, one in stored.tensors.items()} == tensors
    assert [one.begin - len(head) for one in stored.tensors.values()] == [0, 30, 30, 38]
    assert stored.metadata == metadata


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError) as caught:
        stored_file(tmp_path / "no")
    assert caught.value.headline == f"{tmp_path / 'no'}: can't be read: No such file or directory"
    content = json.dumps({"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(len(content).to_bytes(8, "little") + content + bytes(2))
    with pytest.raises(FileFormatError) as caught:
        stored_file(path)
    assert f"{path}: " in caught.value.headline
    safetensors.save_file({"x": np.zeros(9)}, path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileFormatError) as caught:
        stored_file(path)
    assert ": not a .safetensors file: truncated" in caught.value.headline
    assert caught.value.hint == "the file is truncated"
    path.write_bytes(b"\0" * 8 + b"{}")
    with pytest.raises(FileFormatError) as caught:
        stored_file(path)
    assert caught.value.hint is None


def test_progress_is_told_after_every_step() -> None:
    seen: list[tuple[int, int]] = []
    one = Progress(10, lambda done, total: seen.append((done, total)))
    one.add(3)
    one.add(7)
    assert seen == [(3, 10), (10, 10)]
    silent = Progress(5, None)
    silent.add(5)
    assert silent.done == 5


# ---- new files


def new(folder: Path) -> tuple[list[Path], list[Any]]:
    paths = [folder / f"{device}.safetensors" for device in range(2)]
    return paths, [("a", as_dtype("int32"), [(2, 3), (1, 3)]), ("b", as_dtype("uint8"), [(5,), ()])]


def test_new_files_appear_at_the_end(tmp_path: Path) -> None:
    paths, tensors = new(tmp_path)
    with new_files(paths, tensors, [{"k": "v"}] * len(paths)) as written:
        assert not any(path.exists() for path in paths)
        assert sorted(os.listdir(tmp_path)) == sorted(f".{path.name}.{os.getpid()}" for path in paths)
        for device, one in enumerate(written):
            for name, array in (("a", np.int32), ("b", np.uint8)):
                flat = one[name].mapped("r+")
                assert flat.dtype == array and not flat.any()
                flat[:] = device + 1
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in paths)
    for device, path in enumerate(paths):
        found = stored_file(path)
        assert {name: one.shape for name, one in found.tensors.items()} == {
            name: shapes[device] for name, _, shapes in tensors
        }
        assert all((one.mapped() == device + 1).all() for one in found.tensors.values())
        assert found.metadata == {"k": "v"}


def test_new_files_do_not_appear_after_an_exception(tmp_path: Path) -> None:
    paths, tensors = new(tmp_path)
    paths[0].write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), new_files(paths, tensors, [{}] * len(paths)):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == [paths[0].name] and paths[0].read_bytes() == b"old"
    beside = tmp_path / f".{paths[1].name}.{os.getpid()}"
    beside.write_bytes(b"of another process")
    with pytest.raises(FileFormatError) as caught, new_files(paths, tensors, [{}] * len(paths)):
        raise AssertionError("the block is not entered")
    assert caught.value.headline.startswith(f"{paths[1]}: can't be written: ")
    assert not (tmp_path / f".{paths[0].name}.{os.getpid()}").exists()


# ---- equality


def test_groups_of_equal_shards(tmp_path: Path) -> None:
    """At their ends, in their middle, beyond a piece that is compared at once, and of one shape alone."""
    ends, chunk = module.ENDS, module.CHUNK
    size = 3 * ends
    plain = np.random.default_rng(0).integers(0, 256, size, np.uint8)
    contents = [plain.copy() for _ in range(8)]
    contents[1][0] ^= 1
    contents[2][-1] ^= 1
    contents[3][size // 2] ^= 1
    contents[4][size // 2] ^= 1
    shards = {10 + i: saved(tmp_path, i, content) for i, content in enumerate(contents)}
    assert sorted(map(sorted, equal_groups(shards))) == [[10, 15, 16, 17], [13, 14]]
    shapes = {0: saved(tmp_path, 20, plain.reshape(2, -1)), 1: saved(tmp_path, 21, plain.reshape(-1, 2))}
    assert equal_groups(shapes) == []
    empty = {i: saved(tmp_path, 30 + i, np.zeros((0, 4), np.float32)) for i in range(2)}
    assert equal_groups(empty) == [] and equal_groups({}) == []
    short = {i: saved(tmp_path, 40 + i, np.arange(4, dtype=np.uint8)) for i in range(2)}
    assert equal_groups(short) == [[0, 1]]
    assert chunk > size


def test_large_shards_are_compared_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 64)
    monkeypatch.setattr(module, "ENDS", 4)
    plain = np.arange(200, dtype=np.uint8)
    for at in (5, 63, 64, 127, 128, 192, 195):
        other = plain.copy()
        other[at] ^= 0x80
        shards = {0: saved(tmp_path, 0, plain), 1: saved(tmp_path, 1, other), 2: saved(tmp_path, 2, plain)}
        assert equal_groups(shards) == [[0, 2]], at
    assert [list(module._chunks(n, 64)) for n in (0, 64, 65)] == [[], [(0, 64)], [(0, 64), (64, 1)]]


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.int32, np.float64])
def test_shards_of_one_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    monkeypatch.setattr(module, "CHUNK", 64)
    size = 150
    same = np.full(size, 3, dtype)
    assert has_one_value(saved(tmp_path, 0, same))
    assert has_one_value(saved(tmp_path, 1, np.zeros((0, 3), dtype)))
    for at in (0, 1, size // 2, size - 1):
        other = same.copy()
        other[at] = 5
        assert not has_one_value(saved(tmp_path, 2, other)), at


def test_ones_are_one_value_and_their_bytes_are_not(tmp_path: Path) -> None:
    """Elements of two bytes that repeat, and bytes that do not."""
    assert has_one_value(saved(tmp_path, 0, np.full(9, 0x3C00, np.uint16)))
    assert not has_one_value(saved(tmp_path, 1, np.array([0x3C00, 0x003C] * 4, np.uint16)))


# ---- the checksum


def mixed(dim: int, index: int) -> int:
    """The odd number of an index of a dimension."""
    z = (index + (dim + 1) * 0x9E3779B97F4A7C15) * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 31
    z = z * 0x94D049BB133111EB & MASK
    return (z ^ z >> 29) | 1


def summed(content: np.ndarray, first_row: int = 0) -> int:
    """The checksum of a whole tensor, element by element."""
    width = content.dtype.itemsize
    words = max(1, width // 8)
    flat = np.ascontiguousarray(content).reshape(-1).view(f"u{min(width, 8)}").reshape(-1, words)
    total = 0
    for number, at in enumerate(itertools.product(*[range(n) for n in content.shape])):
        weight = 1
        for dim, index in enumerate(at):
            weight = weight * mixed(dim, index + (first_row if dim == 0 else 0)) & MASK
        for word, value in enumerate(flat[number].tolist()):
            total += value * weight * (mixed(63, word) if words > 1 else 1)
    return total & MASK


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.complex64])
@pytest.mark.parametrize("memory", [1 << 10, 1 << 20])
def test_the_checksum_is_the_sum_over_elements_however_they_are_divided(
    tmp_path: Path, dtype: Any, memory: int
) -> None:
    dice = Random(str(dtype) + str(memory))
    kinds: list[tuple[Any, list[Placement]]] = [
        (1, [Replicate()]),
        (3, [Shard(0)]),
        (2, [Shard(1)]),
        (2, [BlockCyclic(0, 2)]),
        (2, [Zigzag(1)]),
        ((2, 2), [Shard(0), Shard(1)]),
        ((2, 2), [Replicate(), Shard(0)]),
        (2, [SectionedShard(0, (3, 4))]),
    ]
    shape = (7, 4, 3)
    content = np.random.default_rng(1).integers(1, 100, shape).astype(dtype)
    wanted = summed(content)
    for mesh, placements in kinds:
        layout = distribute(shape, mesh, placements)
        shards = [
            saved(tmp_path, d, part_of(layout, content, d).reshape(layout.local_shape(d)))
            for d in range(layout.devices)
        ]
        assert checksum(layout, shards, memory) == wanted, placements
    first = dice.randint(1, 9)
    assert checksum(distribute(shape, 1, [Replicate()]), [saved(tmp_path, 0, content)], memory, first) == summed(
        content, first
    )


def test_checksums_of_sections_add_up(tmp_path: Path) -> None:
    content = np.arange(40, dtype=np.int16).reshape(10, 4)
    parts = [(0, 6), (6, 4)]
    sums = []
    for number, (first, count) in enumerate(parts):
        rows = content[first : first + count]
        layout = distribute(rows.shape, 1, [Replicate()])
        sums.append(checksum(layout, [saved(tmp_path, number, rows)], 1 << 20, first))
    assert sum(sums) & MASK == summed(content)


def test_checksums_of_wide_and_empty_and_scalar_tensors(tmp_path: Path) -> None:
    wide = np.arange(6, dtype=np.complex128) * (1 + 2j)
    whole = distribute(6, 1, [Replicate()])
    assert checksum(whole, [saved(tmp_path, 0, wide.view(np.complex64).reshape(6, 2)[:, 0])], 1 << 20) == summed(
        wide.view(np.complex64).reshape(6, 2)[:, 0]
    )
    assert checksum(distribute((), 1, [Replicate()]), [saved(tmp_path, 1, np.array(5, np.int32))], 1 << 20) == 5
    empty = distribute((0, 3), 2, [Shard(0)])
    shards = [saved(tmp_path, 2 + d, np.zeros((0, 3), np.float32)) for d in range(2)]
    assert checksum(empty, shards, 1 << 20) == 0


def test_copies_of_a_part_must_not_differ(tmp_path: Path) -> None:
    layout = distribute(6, (2, 2), [Replicate(), Shard(0)])
    whole = np.arange(6, dtype=np.float32)
    shards = [saved(tmp_path, d, whole[indices_of(layout, d)[0]]) for d in range(4)]
    assert checksum(layout, shards, 1 << 20) == summed(whole)
    shards[3] = saved(tmp_path, 3, np.array([3, 4, 6], np.float32))
    with pytest.raises(FileFormatError) as caught:
        checksum(layout, shards, 1 << 20)
    assert caught.value.headline == f"'x': {shards[3].path} and {shards[1].path} hold the same part, but differ"


def test_metadata_is_in_one_order(tmp_path: Path) -> None:
    """The package returns it in a random order, and new files copy it."""
    metadata = {name: name for name in ["format", "zeta", "alpha", "eta", "beta", "theta", "gamma", "delta"]}
    path = tmp_path / "m.safetensors"
    path.write_bytes(header_bytes({}, metadata))
    assert all(list(stored_file(path).metadata) == sorted(metadata) for _ in range(8))
