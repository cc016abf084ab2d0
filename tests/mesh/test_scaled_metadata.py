"""Metadata of resharded weights: each file has the shapes of its own shards, so that it is a checkpoint itself."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cute_py.checkpoints import convert, describe_checkpoint
from cute_py.formats.stored_weights import METADATA
from cute_py.mesh.files import read_plan, reshard
from cute_py.mesh.scaled_files import formats_of_files
from cute_py.mesh.stored_tensors import StoredFile, stored_file
from tests.checkpoints.files import Arrays, load, numbers, save

ROWS, COLUMNS, FUSED = "m.q_proj.weight", "m.o_proj.weight", "m.gate_up_proj.weight"
PLACEMENTS = """
[placements]
"*q_proj.weight" = "column-parallel"
"*o_proj.weight" = "row-parallel"
"*gate_up_proj.weight" = "gate-up"
"""


def moved(folder: Path, source: int, destination: int) -> tuple[str, ...]:
    """Reshard FOLDER/SOURCE to FOLDER/DESTINATION; return the warnings."""
    goal = folder / str(destination)
    goal.mkdir()
    plan = folder / "plan.toml"
    sides = (("source", source, folder / str(source)), ("destination", destination, goal))
    text = "".join(f'[{side}]\nmesh = [{n}]\nfiles = "{place}/{{device}}.safetensors"\n' for side, n, place in sides)
    plan.write_text(text + PLACEMENTS)
    return tuple(one.message for one in reshard(read_plan(plan)).warnings)


def plain(path: Path, out: Path) -> Arrays:
    convert(path, out, "float32")
    return load(out / path.name)


@pytest.mark.parametrize(
    ("form", "convention", "columns"),
    [
        ("nvfp4(scales='linear')", "compressed-tensors", 256),
        ("nvfp4(scales='linear')", "cute", 256),
        ("mxfp8(scales='linear')", "cute", 256),
        ("mxfp8(scales='linear')", "cute", 240),  # the last block is padded
        ("nvfp4(scales='linear')", "cute", 250),
        ("mxfp8(scales='linear')", "torchao", 256),
    ],
)
def test_a_shard_is_a_checkpoint_of_its_own_numbers(form: str, convention: str, columns: int, tmp_path: Path) -> None:
    tensors = {
        ROWS: numbers((128, columns)),
        COLUMNS: numbers((columns, columns), 1),
        FUSED: numbers((64, columns), 2),
    }
    convert(save(tmp_path / "0.safetensors", tensors, {"format": "pt", "z": "1", "a": "2"}), tmp_path / "1", form,
            convention=convention)  # fmt: skip
    whole = plain(tmp_path / "1" / "0.safetensors", tmp_path / "numbers")
    wholly = columns % 32 == 0  # a shape with padding is compared with its padding
    assert not (moved(tmp_path, 1, 2) and wholly)
    for device in range(2):
        file = tmp_path / "2" / f"{device}.safetensors"
        assert describe_checkpoint(file).errors == ()
        shard = plain(file, tmp_path / f"plain{device}")
        half = slice(64 * device, 64 * device + 64)
        assert np.array_equal(shard[ROWS], whole[ROWS][half])
        assert np.array_equal(shard[COLUMNS], whole[COLUMNS][:, 128 * device : 128 * device + 128])
        gate, up = whole[FUSED][:32], whole[FUSED][32:]
        part = slice(16 * device, 16 * device + 16)
        assert np.array_equal(shard[FUSED], np.concatenate([gate[part], up[part]]))
    before = (tmp_path / "1" / "0.safetensors").read_bytes()
    (tmp_path / "1").rename(tmp_path / "first")
    assert not (moved(tmp_path, 2, 1) and wholly)
    after = tmp_path / "1" / "0.safetensors"
    assert after.read_bytes() == before


def test_a_device_without_rows_keeps_the_format_of_the_others(tmp_path: Path) -> None:
    convert(save(tmp_path / "0.safetensors", {ROWS: numbers((3, 64))}), tmp_path / "1", "mxfp8(scales='linear')")
    assert moved(tmp_path, 1, 4) == ()
    files = [stored_file(tmp_path / "4" / f"{device}.safetensors") for device in range(4)]
    entries = [json.loads(file.metadata[METADATA])[ROWS] for file in files]
    assert [entry["shape"] for entry in entries] == [[1, 64], [1, 64], [1, 64], [0, 64]]
    empty = describe_checkpoint(tmp_path / "4" / "3.safetensors")
    assert empty.errors == () and "the weight has no elements" in str(empty)
    before = (tmp_path / "1" / "0.safetensors").read_bytes()
    (tmp_path / "1").rename(tmp_path / "first")
    assert moved(tmp_path, 4, 1) == ()
    assert (tmp_path / "1" / "0.safetensors").read_bytes() == before


def test_files_whose_formats_differ_share_none() -> None:
    def entry(shape: list[int], bits: str = "0x1") -> StoredFile:
        return StoredFile(
            {}, {METADATA: json.dumps({"w": {"format": "nvfp4()", "shape": shape, "tensor_scale": bits}})}
        )

    assert formats_of_files([entry([4, 64]), entry([4, 32])]) is not None
    assert formats_of_files([entry([4, 64]), entry([4, 64], "0x2")]) is None
    assert formats_of_files([entry([4, 64]), StoredFile({}, {})]) is None
    assert formats_of_files([StoredFile({}, {METADATA: "[]"})]) is None
    assert formats_of_files([StoredFile({}, {METADATA: '{"w": {"format": "nvfp4()"}}'})]) is None
