"""Every type that a .safetensors file is read with can be written to one: what bounds the package's version."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cute_py.array_files import read_array, write_array
from cute_py.dtypes import SAFETENSORS_HEADER_TYPES, SAFETENSORS_TYPES, as_dtype
from cute_py.errors import FileFormatError
from cute_py.mesh.stored_tensors import stored_file

pytest.importorskip("safetensors")


@pytest.mark.parametrize("name", SAFETENSORS_TYPES.values())
def test_written_and_read(name: str, tmp_path: Path) -> None:
    array = np.arange(8).astype(as_dtype(name).numpy).reshape(2, 4)
    path = str(tmp_path / "a.safetensors")
    write_array(path, array)
    again = read_array(path)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()


@pytest.mark.parametrize("kind", ["F4", "F6_E2M3", "F6_E3M2"])
def test_packed_types_are_refused(kind: str, tmp_path: Path) -> None:
    bits = as_dtype(SAFETENSORS_HEADER_TYPES[kind]).bits
    header = json.dumps({"a": {"dtype": kind, "shape": [8], "data_offsets": [0, bits]}}).encode()
    path = tmp_path / "a.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(bits))
    for read in (read_array, stored_file):
        with pytest.raises(FileFormatError):
            read(str(path))
