"""explain of a checkpoint: what each tensor is, the order of its scales, and what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.checkpoints import convert, describe_checkpoint
from cute_py.cli.main import main
from cute_py.formats.stored_weights import stored_arrays
from cute_py.mesh.stored_tensors import stored_file
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
    assert "in the order 32_4_4, but modelopt specifies linear" in made.errors[0].message


def test_numbers_that_differ_from_a_reference_are_reported(tmp_path: Path) -> None:
    original = save(tmp_path / "x.safetensors", {"a.weight": numbers((128, 256))})
    good = arrays()
    path = save(tmp_path / "m.safetensors", good)
    sound = describe_checkpoint(path, original)
    assert (
        sound.weights[0].found == ()
        and sound.scope.judged[-1] == "elements and scales compared with the original: 1 weight"
    )
    elements, scales = good["a.weight"].copy(), good["a.weight_scale"].copy()
    elements.view(np.uint8)[5, 7] ^= 0x88
    scales.view(np.uint8)[9, 3] += 1
    save(path, {**good, "a.weight": elements, "a.weight_scale": scales})
    made = describe_checkpoint(path, original)
    assert [(one.rule, one.severity) for one in made.weights[0].found] == [
        ("reference-scale", "warning"),
        ("reference-element", "warning"),
    ]
    assert "1 scale differs from the reference, rounded to nearest; the first is at (row, block) (9, 3)" in str(made)
    assert "2 elements differ from the reference, rounded to nearest; the first is at (row, column) (5, 14)" in str(
        made
    )
    other = save(tmp_path / "y.safetensors", {"a.weight": numbers((128, 256), 7)})
    assert any(
        "comparison with the original: 1 weight; no order reproduces" in text
        for text in describe_checkpoint(path, other).scope.not_judged
    )


@pytest.mark.parametrize("form", ["nvfp4()", "mxfp8()", "mxfp4()", "fp8('row')", "fp8((1, 128))"])
@pytest.mark.parametrize("columns", [256, 4096])
def test_any_format_of_rows_is_compared(form: str, columns: int, tmp_path: Path) -> None:
    """Also with NaN, which no number equals."""
    x = numbers((64, columns))
    x[3, 5] = x[7, 9] = np.nan
    original = save(tmp_path / "x.safetensors", {"a.weight": x})
    convert(original, tmp_path / "new", form)
    made = describe_checkpoint(tmp_path / "new", original)
    assert made.scope.judged[-1] == "elements and scales compared with the original: 1 weight"
    assert not [one for one in made.weights[0].found if one.rule.startswith("reference")]


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({"b.weight": numbers((128, 256))}, "the original has no tensor of this name"),
        ({"a.weight": numbers((128, 128))}, "the original has the shape (128, 128)"),
        ({"a.weight": np.zeros((128, 256), np.int32)}, "the original has elements of int32"),
        ({"a.weight": numbers((128, 256), 7)}, "no order reproduces the original's scales"),
    ],
)
def test_a_weight_that_is_not_compared_is_listed_with_the_reason(tensors: Arrays, why: str, tmp_path: Path) -> None:
    original = save(tmp_path / "x.safetensors", tensors)
    made = describe_checkpoint(save(tmp_path / "m.safetensors", arrays()), original)
    assert f"comparison with the original: 1 weight; {why}" in made.scope.not_judged


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    good = arrays((100, 64))
    padded = cute.copy(numbers((100, 64)), formats.nvfp4()).scales.reshape(128, 4)
    broken = {
        "must have 400 in the order linear; 512 is the size of the order 32_4_4": {**good, "a.weight_scale": padded},
        "a.weight_scale is a scale, but the file lacks a.weight": {"a.weight_scale": good["a.weight_scale"]},
        "a.weight and a.weight_scale are modelopt NVFP4, but the file lacks a.weight_scale_2": {
            n: a for n, a in good.items() if n != "a.weight_scale_2"
        },
        ") match no known convention": {n: a for n, a in good.items() if n != "a.weight_scale"},
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
    assert [one.message for one in made.errors] == ["1 scale is NaN; the first belongs to (row, block) (3, 2)"]


@pytest.mark.parametrize("total", [np.nan, np.inf, 0.0, -1.0])
def test_a_tensor_scale_that_no_quantiser_makes_is_an_error(tmp_path: Path, total: float) -> None:
    path = save(tmp_path / "m.safetensors", {**arrays(), "a.weight_scale_2": np.float32(total)[()]})
    (error,) = describe_checkpoint(path).errors
    assert error.message == f"a.weight_scale_2: the tensor scale is {np.float32(total)}; must be positive and finite"
    smallest = np.nextafter(np.float32(0), np.float32(1))
    assert describe_checkpoint(save(path, {**arrays(), "a.weight_scale_2": smallest})).errors == ()


def mx(names: tuple[str, ...] = ("a.weight",)) -> Arrays:
    form = formats.mxfp8(scales="linear")
    made = [stored_arrays(name, cute.copy(numbers((128, 256)), form), "modelopt") for name in names]
    return {name: array for one in made for name, array in one.items()}


def test_an_element_that_is_nan_is_an_error(tmp_path: Path) -> None:
    good = mx()
    for code, count in ((0x7E, 0), (0x7F, 1), (0xFF, 1)):
        bad = good["a.weight"].copy()
        bad.view(np.uint8)[5, 7] = code
        made = describe_checkpoint(save(tmp_path / "m.safetensors", {**good, "a.weight": bad}))
        assert [one.message for one in made.errors] == ["1 element is NaN, first at (5, 7)"] * count


def test_fp8_without_scales_is_an_error_beside_weights_that_have_them(tmp_path: Path) -> None:
    both = mx(("a.weight", "b.weight"))
    del both["b.weight_scale"]
    (error,) = describe_checkpoint(save(tmp_path / "m.safetensors", both)).errors
    assert error.message == "b.weight has elements of float8_e4m3fn, but the file lacks b.weight_scale"
    alone = {"b.weight": both["b.weight"]}  # a plain cast to fp8 has no scales
    made = describe_checkpoint(save(tmp_path / "m.safetensors", alone))
    (warning,) = made.problems
    assert made.errors == () and warning.severity == "warning"
    assert warning.message.startswith("1 tensor of fp8 elements, such as b.weight, and no scales: ")


def test_scales_of_blocks_may_be_bfloat16(tmp_path: Path) -> None:
    form = formats.fp8((128, 128))
    made = cute.copy(numbers((256, 384)), form)
    for kind in (np.float32, ml_dtypes.bfloat16):
        scales = made.scales.astype(kind).reshape(2, 3)
        tensors = {"a.weight": made.data.view(ml_dtypes.float8_e4m3fn), "a.weight_scale_inv": scales}
        described = describe_checkpoint(save(tmp_path / "m.safetensors", tensors))
        assert described.problems == described.errors == () and described.weights[0].weight.format == form
    row = {"a.weight": tensors["a.weight"], "a.weight_scale": np.ones((256, 1), ml_dtypes.bfloat16)}
    assert describe_checkpoint(save(tmp_path / "m.safetensors", row)).errors == ()


@pytest.mark.parametrize(
    ("file", "config"),
    [
        ("hf_quant_config.json", {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "MXFP8"}}),
        ("config.json", {"quantization_config": {"quant_method": "modelopt", "quant_algo": "MXFP8"}}),
    ],
)
def test_the_configuration_names_the_publisher(tmp_path: Path, file: str, config: object) -> None:
    path = save(tmp_path / "m.safetensors", mx())
    assert describe_checkpoint(path).weights[0].weight.convention.name == "compressed-tensors"
    (tmp_path / file).write_text(json.dumps(config))
    for one in (path, tmp_path):
        assert describe_checkpoint(one).weights[0].weight.convention.name == "modelopt"
    (tmp_path / file).write_bytes(b"\xff{")
    assert describe_checkpoint(path).weights[0].weight.convention.name == "compressed-tensors"


def test_a_description_states_which_publishers_the_tensors_fit(tmp_path: Path) -> None:
    made = cute.copy(numbers((32, 64)), formats.fp8("tensor"))
    tensors = {"a.weight": made.data.view(ml_dtypes.float8_e4m3fn), "a.weight_scale": made.scales.reshape(())}
    path = save(tmp_path / "m.safetensors", tensors)
    described = describe_checkpoint(path)
    assert "stored  : modelopt FP8 or autofp8 fp8: a.weight, a.weight_scale" in str(described)
    said = "publisher: 1 weight; the tensors fit several, and hf_quant_config.json and config.json name none"
    assert said in described.scope.not_judged
    config = {"quantization_config": {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": []}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    described = describe_checkpoint(path)
    assert "stored  : autofp8 fp8: a.weight, a.weight_scale" in str(described)
    assert not any("publisher" in text for text in described.scope.not_judged)
    report = convert(path, tmp_path / "out", "fp8('tensor')", convention="modelopt")
    assert [one.work for one in report.tensors] == ["keep"]
    assert "stored  : modelopt FP8: a.weight" in str(describe_checkpoint(tmp_path / "out"))


def test_a_weight_of_this_library_is_described_by_its_name(tmp_path: Path) -> None:
    path = save(tmp_path / "m.safetensors", {"a.weight": numbers((32, 64))})
    convert(path, tmp_path / "out", "mxfp8()")
    assert "stored  : cute: a.weight, a.weight_scale" in str(describe_checkpoint(tmp_path / "out"))


def test_packed_blocks_without_scales_are_an_error(tmp_path: Path) -> None:
    tensors = {"e.down_proj_blocks": np.zeros((2, 32, 4, 16), np.uint8), "other_blocks": np.zeros((2, 3), np.uint8)}
    (error,) = describe_checkpoint(save(tmp_path / "m.safetensors", tensors)).errors
    assert error.message == "e.down_proj_blocks has packed elements, but the file lacks e.down_proj_scales"
    tensors["e.down_proj_scales"] = np.zeros((2, 32, 4), np.float32)
    (error,) = describe_checkpoint(save(tmp_path / "m.safetensors", tensors)).errors
    assert "match no known convention" in error.message
    tensors["e.down_proj_scales"] = np.full((2, 32, 4), 127, np.uint8)
    tensors["e.down_proj_scales"][1, 5, 2] = 255
    (error,) = describe_checkpoint(save(tmp_path / "m.safetensors", tensors)).errors
    assert error.message == "1 scale is NaN; the first belongs to (row, block) (5, 2) of matrix 1"
    tensors["e.down_proj_scales"] = np.zeros((2, 32, 3), np.uint8)
    (error,) = describe_checkpoint(save(tmp_path / "m.safetensors", tensors)).errors
    assert "has 192 scales of shape (2, 32, 3); must have 256" in error.message


def test_types_and_shapes_are_those_that_the_metadata_promises(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", {"a.weight": numbers((256, 128))})
    for convention, change, text in (
        ("cute", lambda a: a.view(ml_dtypes.float8_e5m2), "has the type float8_e5m2; must be float8_e4m3fn"),
        ("torchao", lambda a: np.ascontiguousarray(a.T), "the shape (32, 64); must be (64, 32) in the order 32_4_4"),
    ):
        convert(source, tmp_path / convention, "nvfp4", convention=convention)
        file = tmp_path / convention / "m.safetensors"
        (tmp_path / convention / "checksums.json").unlink()
        tensors, metadata = load(file), stored_file(file).metadata
        (name,) = (one for one in tensors if one.endswith("_scale") and "tensor" not in one)
        assert describe_checkpoint(file).errors == ()
        tensors = {n: change(a) if n == name else np.array(a) for n, a in tensors.items()}
        (error,) = describe_checkpoint(save(file, tensors, metadata)).errors
        assert text in error.message


def test_a_missing_tensor_is_reported_once(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", {"a.weight": numbers((128, 256))})
    convert(source, tmp_path / "o", FORM, convention="compressed-tensors")
    file = tmp_path / "o" / "m.safetensors"
    (tmp_path / "o" / "checksums.json").unlink()
    metadata = stored_file(file).metadata
    for lost in ("a.weight_global_scale", "a.weight_scale"):
        tensors = {n: np.array(a) for n, a in load(file).items() if n != lost}
        (error,) = describe_checkpoint(save(tmp_path / "x.safetensors", tensors, metadata)).errors
        assert error.message == f"'a.weight' is compressed-tensors nvfp4-pack-quantized, but the file lacks {lost}"


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
