"""`convert(..., device="cuda")` writes the files of the host, byte for byte, to a format and back."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cute_py.checkpoints import convert, pieces
from cute_py.gpu.device import Device
from tests.checkpoints.files import numbers, save, saved_in_two

FORMATS = [
    ("mxfp8", "cute"),
    ("mxfp8(rule='floor', scales='linear')", "torchao"),
    ("mxfp6", "cute"),
    ("mxfp4(scales='linear')", "compressed-tensors"),
    ("mxfp8(element='e5m2', rule='even')", "cute"),
    ("nvfp4", "cute"),
    ("nvfp4(scales='linear')", "modelopt"),
    ("fp8((128, 128))", "cute"),
]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize(("form", "convention"), FORMATS)
def test_a_checkpoint_there_and_back(
    device: Device, form: str, convention: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PIECE is small, so that a weight is converted in several pieces."""
    monkeypatch.setattr(pieces, "PIECE", 1 << 13)
    index = saved_in_two(tmp_path / "in")
    for name in ("host", "cuda"):
        convert(index, tmp_path / name, form, convention=convention, device=name)
        for dtype in ("bf16", "f32"):
            convert(tmp_path / name, tmp_path / f"{name} {dtype}", dtype, device=name)
        convert(tmp_path / name, tmp_path / f"{name} again", "mxfp8(rule='ceil')", requantize=True, device=name)
    for made in ("", " bf16", " f32", " again"):
        assert digests(tmp_path / f"cuda{made}") == digests(tmp_path / f"host{made}")


def test_experts_of_three_dimensions(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    source = save(tmp_path / "m.safetensors", {"e.weight": numbers((3, 40, 90))})
    for name in ("host", "cuda"):
        convert(source, tmp_path / name, "nvfp4", device=name)
        convert(tmp_path / name, tmp_path / f"{name} back", "bf16", device=name)
    for made in ("", " back"):
        assert digests(tmp_path / f"cuda{made}") == digests(tmp_path / f"host{made}")
