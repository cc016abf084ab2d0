"""Checkpoints that the tests make, and how they read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from cute_py.dtypes import as_dtype
from cute_py.mesh.stored_tensors import header_bytes, stored_tensors

Arrays = dict[str, NDArray[Any]]


def save(path: Path, tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> Path:
    head = header_bytes({n: (as_dtype(a.dtype), a.shape) for n, a in tensors.items()}, metadata or {})
    path.write_bytes(head + b"".join(a.tobytes() for a in tensors.values()))
    return path


def load(path: Path) -> Arrays:
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    return {n: t.mapped().reshape(t.shape) for file in files for n, t in stored_tensors(file).items()}


def numbers(shape: tuple[int, ...], seed: int = 0) -> NDArray[Any]:
    made = np.random.default_rng(seed).standard_normal(shape) * np.exp2(np.arange(shape[-2]) % 5)[:, None]
    return made.astype(ml_dtypes.bfloat16)


def model() -> Arrays:
    """A tensor of each kind, whose names end as those of a transformer do."""
    return {
        "layers.0.q_proj.weight": numbers((96, 128)),
        "layers.0.q_proj.bias": np.arange(7, dtype=np.float32),
        "layers.0.norm.weight": np.ones(128, ml_dtypes.bfloat16),
        "layers.0.down_proj.weight": numbers((128, 256), 1),
        "embed_tokens.weight": numbers((10, 64), 2),
    }


def saved_in_two(folder: Path) -> Path:
    """The model in two files with an index; returns the index."""
    folder.mkdir(exist_ok=True)
    tensors = model()
    names = list(tensors)
    parts = {"model-00001-of-00002.safetensors": names[:3], "model-00002-of-00002.safetensors": names[3:]}
    for file, held in parts.items():
        save(folder / file, {name: tensors[name] for name in held}, {"format": "pt"})
    index = folder / "model.safetensors.index.json"
    weight_map = {name: file for file, held in parts.items() for name in held}
    index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return index
