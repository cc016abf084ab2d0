"""explain of a checkpoint: what each tensor is, the order of its scales, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.checkpoints import convert, describe_checkpoint
from cute_py.cli.main import main
from cute_py.formats.stored_weights import stored_arrays
from tests.checkpoints.files import Arrays, load, model, numbers, save

FORM = formats.nvfp4(scales="linear")


def arrays(shape: tuple[int, int] = (128, 256)) -> Arrays:
    return dict(stored_arrays("a.weight", cute.copy(numbers(shape), FORM), "modelopt"))


def test_a_sound_checkpoint_has_no_errors(tmp_path: Path) -> None:
    made = describe_checkpoint(save(tmp_path / "m.safetensors", {**arrays(), "b.bias": np.ones(3, np.float32)}))
    assert made.errors == () and list(made.others) == ["b.bias"]
    assert made.weights[0].weight.format == FORM
    assert not made.weights[0].certain and "32_4_4" in made.weights[0].order


def test_a_reference_decides_the_order(tmp_path: Path) -> None:
    x = numbers((128, 256))
    original = save(tmp_path / "x.safetensors", {"a.weight": x})
    path = save(tmp_path / "m.safetensors", arrays())
    row = describe_checkpoint(path, original).weights[0]
    assert row.certain and row.order.startswith("linear: all")
    swizzled = cute.copy(x, formats.nvfp4()).scales.reshape(128, 16)
    save(path, {**arrays(), "a.weight_scale": swizzled})
    made = describe_checkpoint(path, original)
    assert [one.rule for one in made.errors] == ["scale-order"]
    assert "in the order 32_4_4, but modelopt says linear" in made.errors[0].message


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    good = arrays((100, 64))
    padded = cute.copy(numbers((100, 64)), formats.nvfp4()).scales.reshape(128, 4)
    broken = {
        "must have 400 in the order linear; 512 is the size of the order 32_4_4": {**good, "a.weight_scale": padded},
        "a.weight_scale is a scale, but the file lacks a.weight": {"a.weight_scale": good["a.weight_scale"]},
        ") match no known convention": {n: a for n, a in good.items() if n != "a.weight_scale_2"},
        "has the shape (2,) of float32; must be one float32": {**good, "a.weight_scale_2": np.ones(2, np.float32)},
        "has the shape (4, 100); must be (100, 4) in the order linear": {
            **good,
            "a.weight_scale": np.ascontiguousarray(good["a.weight_scale"].T),
        },
    }
    for text, tensors in broken.items():
        made = describe_checkpoint(save(path, tensors))
        assert any(text in one.message for one in made.errors), text
    nan = good["a.weight_scale"].copy()
    nan.view(np.uint8)[3, 2] = 0x7F
    made = describe_checkpoint(save(path, {**good, "a.weight_scale": nan}))
    assert any("NaN" in one.message for one in made.weights[0].found)


@pytest.mark.parametrize(
    ("data", "scales"), [("mlp.gate_up_proj_blocks", "mlp.gate_up_proj_scales"), ("mlp.w13", "mlp.w13_scale")]
)
def test_scales_that_no_convention_names_are_not_other_tensors(tmp_path: Path, data: str, scales: str) -> None:
    """The order and the rule of such scales are not known: the answer says so."""
    tensors = {data: np.zeros((2, 64, 32), np.uint8), scales: np.ones((2, 64, 4), np.uint8), "t_scale": np.ones(1)}
    made = describe_checkpoint(save(tmp_path / "m.safetensors", tensors))
    (warning,) = made.problems
    assert made.errors == ()
    assert warning.message.startswith(f"{scales} (uint8, (2, 64, 4)) and {data} ")
    assert f"warning: {warning.message}" in str(made)
    assert "match no known convention" in warning.message


def test_a_changed_byte_is_found_by_its_checksum(tmp_path: Path) -> None:
    convert(save(tmp_path / "m.safetensors", model()), tmp_path / "o", "mxfp8")
    assert describe_checkpoint(tmp_path / "o").errors == ()
    file = tmp_path / "o" / "m.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    assert [one.rule for one in describe_checkpoint(tmp_path / "o").errors] == ["checksum"]


def test_the_command_says_it_and_exits_with_1_if_something_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(tmp_path / "m.safetensors", arrays((100, 64)))
    assert main(["explain", str(path)]) == 0
    assert "modelopt NVFP4" in capsys.readouterr().out
    tensors = load(path)
    save(tmp_path / "n.safetensors", {n: a for n, a in tensors.items() if n != "a.weight"})
    assert main(["explain", str(tmp_path / "n.safetensors"), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["broken"][0]["rule"] == "weight-tensor"


def test_the_command_converts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(save(tmp_path / "m.safetensors", model()))
    out = str(tmp_path / "o")
    assert main(["convert", path, "--to", "nvfp4", "--scales", "8x4", "--out", out, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["to"] == "nvfp4(scales='8x4')" and len(data["tensors"]) == 5
    assert main(["convert", out, "--to", "bf16", "--scales", "8x4", "--out", str(tmp_path / "p")]) == 2
    assert "which has no scales" in capsys.readouterr().err
