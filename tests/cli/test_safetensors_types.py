"""Every type that a .safetensors file is read with can be written to one: what bounds the package's version."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_py.array_files import read_array, write_array
from cute_py.dtypes import SAFETENSORS_TYPES, as_dtype

pytest.importorskip("safetensors")


@pytest.mark.parametrize("name", SAFETENSORS_TYPES.values())
def test_written_and_read(name: str, tmp_path: Path) -> None:
    array = np.arange(8).astype(as_dtype(name).numpy).reshape(2, 4)
    path = str(tmp_path / "a.safetensors")
    write_array(path, array)
    again = read_array(path)
    assert again.dtype == array.dtype
    assert again.tobytes() == array.tobytes()
