"""Weights that are found in a checkpoint: whose convention they follow, and weights that are stored twice."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.checkpoints import convert
from cute_py.errors import FileFormatError, InvalidValueError
from cute_py.formats.publishers import configured_publisher
from cute_py.formats.stored_weights import find_weights, stored_arrays
from cute_py.mesh.stored_tensors import stored_file
from tests.checkpoints.files import Arrays, save


def numbers(shape: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def blocks(name: str, separator: str) -> Arrays:
    """A weight of GPT-OSS, in the names of Transformers ('_') or of its own repository ('.')."""
    data, scales = np.full((2, 32, 4, 16), 0x21, np.uint8), np.full((2, 32, 4), 127, np.uint8)
    return {f"{name}{separator}blocks": data, f"{name}{separator}scales": scales}


def test_a_weight_that_is_stored_twice_is_refused_with_both_names(tmp_path: Path) -> None:
    both = {**blocks("mlp.w", "_"), **blocks("mlp.w", ".")}
    path = save(tmp_path / "m.safetensors", both)
    found = find_weights(stored_file(path).tensors, {})
    assert [(one.rule, one.message) for one in found.problems] == [
        ("weight-twice", "'mlp.w' is stored by mlp.w_blocks (gpt-oss mxfp4) and by mlp.w.blocks (gpt-oss mxfp4); must "
         "be stored once")
    ]  # fmt: skip
    assert [weight.tensors["data"] for weight in found.weights] == ["mlp.w_blocks"] and found.others == ()
    with pytest.raises(FileFormatError, match=r"mlp\.w_blocks .* and by mlp\.w\.blocks"):
        convert(path, tmp_path / "o", "bfloat16", patterns=("*",))
    assert not (tmp_path / "o").exists()


def test_two_weights_of_different_names_are_both_found(tmp_path: Path) -> None:
    path = save(tmp_path / "m.safetensors", {**blocks("mlp.w", "_"), **blocks("mlp.v", ".")})
    found = find_weights(stored_file(path).tensors, {})
    assert [weight.name for weight in found.weights] == ["mlp.w", "mlp.v"] and found.problems == ()


@pytest.mark.parametrize("convention", ["compressed-tensors", "torchao"])
def test_a_weight_beside_a_plain_tensor_of_its_name_is_refused(tmp_path: Path, convention: str) -> None:
    source = save(tmp_path / "m.safetensors", {"a.weight": numbers((32, 64)).astype(ml_dtypes.bfloat16)})
    convert(source, tmp_path / "q", "nvfp4(scales='linear')", convention=convention)
    file = stored_file(tmp_path / "q" / "m.safetensors")
    tensors = {name: tensor.mapped().reshape(tensor.shape) for name, tensor in file.tensors.items()}
    path = save(tmp_path / "n.safetensors", {**tensors, "a.weight": numbers((32, 64))}, file.metadata)
    with pytest.raises(FileFormatError, match=r"'a\.weight' is stored by a\..* and as a tensor of float32; must be"):
        convert(path, tmp_path / "o", "bfloat16")


def of_one_scale(shape: tuple[int, ...]) -> Arrays:
    made = cute.copy(numbers((32, 64)), formats.fp8("tensor"))
    return {
        "a.weight": made.data.view(ml_dtypes.float8_e4m3fn),
        "a.weight_scale": made.scales.reshape(shape),
    }


@pytest.mark.parametrize(("shape", "name"), [((), "modelopt"), ((1,), "compressed-tensors")])
def test_the_shape_of_one_scale_tells_who_wrote_it(tmp_path: Path, shape: tuple[int, ...], name: str) -> None:
    tensors = stored_file(save(tmp_path / "m.safetensors", of_one_scale(shape))).tensors
    (weight,) = find_weights(tensors, {}).weights
    assert weight.convention.name == name and weight.format == formats.fp8("tensor") and weight.problems == ()


@pytest.mark.parametrize(
    ("publisher", "name", "alike"),
    [(None, "modelopt", ("autofp8",)), ("modelopt", "modelopt", ()), ("autofp8", "autofp8", ())],
)
def test_two_publishers_store_one_scale_without_modes(
    tmp_path: Path, publisher: str | None, name: str, alike: tuple[str, ...]
) -> None:
    """ModelOpt and AutoFP8 write the same tensors, so only the configuration tells them apart."""
    tensors = stored_file(save(tmp_path / "m.safetensors", of_one_scale(()))).tensors
    (weight,) = find_weights(tensors, {}, publisher).weights
    assert weight.convention.name == name and tuple(row.name for row in weight.alike) == alike
    assert weight.problems == () and weight.format == formats.fp8("tensor")


def test_a_scale_per_row_has_one_publisher(tmp_path: Path) -> None:
    """ModelOpt and AutoFP8 have one scale for the whole weight."""
    made = cute.copy(numbers((32, 64)), formats.fp8("row"))
    arrays = {"a.weight": made.data.view(ml_dtypes.float8_e4m3fn), "a.weight_scale": made.scales.reshape(32, 1)}
    (weight,) = find_weights(stored_file(save(tmp_path / "m.safetensors", arrays)).tensors, {}).weights
    assert (weight.convention.name, weight.alike) == ("compressed-tensors", ())


def test_autofp8_is_only_read() -> None:
    with pytest.raises(InvalidValueError, match="unknown convention 'autofp8'"):
        stored_arrays("a.weight", cute.copy(numbers((32, 64)), formats.fp8("tensor")), "autofp8")


@pytest.mark.parametrize("form", [formats.fp8("tensor"), formats.nvfp4(scales="linear")], ids=repr)
@pytest.mark.parametrize("name", ["modelopt", "compressed-tensors"])
def test_a_weight_is_found_as_its_convention_stores_it(tmp_path: Path, form: formats.Format, name: str) -> None:
    arrays = stored_arrays("a.weight", cute.copy(numbers((32, 64)), form), name)
    (weight,) = find_weights(stored_file(save(tmp_path / "m.safetensors", arrays)).tensors, {}).weights
    assert (weight.convention.name, weight.format, weight.problems) == (name, form, ())


def test_the_configuration_decides_between_conventions_that_store_the_same_tensors(tmp_path: Path) -> None:
    arrays = stored_arrays("a.weight", cute.copy(numbers((32, 64)), formats.mxfp8(scales="linear")), "modelopt")
    tensors = stored_file(save(tmp_path / "m.safetensors", arrays)).tensors
    for publisher in ("modelopt", "compressed-tensors"):
        (weight,) = find_weights(tensors, {}, publisher).weights
        assert weight.convention.name == publisher
    for publisher in (None, "gpt-oss"):
        assert find_weights(tensors, {}, publisher).weights[0].convention.name == "compressed-tensors"


PRODUCER = {"name": "modelopt", "version": "0.37.0"}


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ({"producer": PRODUCER, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": None}}, "modelopt"),
        ({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}}, "modelopt"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "MXFP8"}}, "modelopt"),
        ({"quantization_config": {"quant_method": "compressed-tensors"}}, "compressed-tensors"),
        ({"quantization_config": {"quant_method": "fp8", "activation_scheme": "static"}}, "autofp8"),
        ({"quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}, "autofp8"),
        ({"quantization_config": {"quant_method": "fp8", "activation_scheme": 3}}, None),
        ({"quantization_config": {"quant_method": "fp8"}}, None),
        (
            {
                "quantization_config": {
                    "quant_method": "fp8",
                    "activation_scheme": "dynamic",
                    "weight_block_size": [128, 128],
                }
            },
            None,
        ),
        ({"quantization_config": {"quant_method": "gptq"}}, None),
        ({"producer": "modelopt", "quantization": [], "quantization_config": None}, None),
        ({"producer": {"name": 7}, "quantization": {"quant_algo": None}}, None),
        ([], None),
    ],
    ids=str,
)
def test_the_publisher_of_a_configuration(config: object, name: str | None) -> None:
    assert configured_publisher(json.dumps(config)) == name
    assert configured_publisher(json.dumps(config)[:-1]) is None
