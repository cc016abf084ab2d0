"""Configurations of quantised checkpoints, and headers of safetensors files."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

import cute_py as cute
from cute_py.explanation.dispatch import readings_of
from cute_py.formats.stored_weights import CONVENTIONS
from tests.each import each_of

HEADER: dict[str, Any] = {
    "__metadata__": {"format": "pt"},
    "a.weight": {"dtype": "U8", "shape": [256, 64], "data_offsets": [0, 16384]},
    "a.weight_scale": {"dtype": "F8_E4M3", "shape": [256, 8], "data_offsets": [16384, 18432]},
    "a.weight_scale_2": {"dtype": "F32", "shape": [], "data_offsets": [18432, 18436]},
    "norm.weight": {"dtype": "BF16", "shape": [64], "data_offsets": [18436, 18564]},
}
"""A weight of ModelOpt's NVFP4, and another tensor."""
GROUPS = {"group_0": {"weights": {"num_bits": 4, "strategy": "tensor_group", "group_size": 16}}}


@each_of(
    ("config", "lines"),
    [
        (
            {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}},
            ("modelopt NVFP4: elements of e2m1, one ue4m3 scale per 16 elements of a row, and one float32 scale",
             "order of the scales: linear: row by row, (M, K / 16)", "judged: 1 block size of the configuration"),
        ),
        (
            {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}},
            ("modelopt FP8: elements of e4m3, scales of float32", "not quantised: lm_head", "judged: nothing"),
        ),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            ("deepseek fp8: elements of e4m3, scales of float32, one per block of 128 x 128 elements",),
        ),
        (
            {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": GROUPS},
            ("layer.weight_global_scale is the reciprocal of the scale of the whole weight",),
        ),
        ({"quant_method": "fp8"}, ("weight_block_size, because without it",)),
        ({"quant_method": "awq", "bits": 4}, ("not judged: quant_method awq, format awq; known are",)),
    ],
)  # fmt: skip
def test_a_configuration_names_its_format(config: dict[str, Any], lines: tuple[str, ...]) -> None:
    for text in (json.dumps(config), json.dumps(config, indent=2), repr(config)):
        answer = cute.explain(text)
        for line in lines:
            assert line in answer, answer


def test_another_block_size_is_wrong() -> None:
    text = '{"quantization": {"quant_algo": "NVFP4", "group_size": 32}}'
    (reading,) = readings_of(text)
    assert [one.message for one in reading.broken] == ["group_size = 32; must be 16 for modelopt NVFP4"]
    assert not readings_of(text.replace("32", "16"))[0].broken


def test_every_convention_of_a_configuration_is_read() -> None:
    for row in CONVENTIONS:
        if row.name in ("compressed-tensors", "modelopt"):
            key = "format" if row.name == "compressed-tensors" else "quant_algo"
            answer = cute.explain(json.dumps({"quant_method": row.name, key: row.algorithm}))
            assert f"{row.name} {row.algorithm}: elements of {row.element}" in answer


def test_a_header_lists_its_weights() -> None:
    (reading,) = readings_of(json.dumps(HEADER))
    assert reading.kind == "The header of a safetensors file: 4 tensors"
    assert reading.meaning[0] == "1 weight of modelopt NVFP4: cute.formats.nvfp4(scales='linear')"
    assert reading.judged and not reading.broken and not reading.missing
    assert reading.scope is not None and "tensors in other files of the checkpoint" in reading.scope.not_judged


def test_a_header_without_a_tensor_says_which() -> None:
    lacking = {name: entry for name, entry in HEADER.items() if name != "a.weight_scale_2"}
    (reading,) = readings_of(json.dumps(lacking))
    assert "a.weight and a.weight_scale are modelopt NVFP4, but the file lacks a.weight_scale_2" in str(reading)
    assert "Wrong" in str(reading)
    (part,) = readings_of(json.dumps(lacking)[:-1])
    assert not part.broken and not part.judged and any("but the file lacks" in line for line in part.missing)


def test_the_offsets_of_a_header_fit_its_shapes() -> None:
    wrong = {**HEADER, "a.weight_scale": {**HEADER["a.weight_scale"], "shape": [128, 8]}}
    (reading,) = readings_of(json.dumps(wrong, indent=1))
    assert [one.rule for one in reading.broken] == ["header-offsets", "weight-scales"]


def test_the_configuration_decides_for_the_header() -> None:
    mx = {
        "b.weight": {"dtype": "F8_E4M3", "shape": [128, 64], "data_offsets": [0, 8192]},
        "b.weight_scale": {"dtype": "U8", "shape": [128, 2], "data_offsets": [8192, 8448]},
    }
    config = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "MXFP8"}}
    assert "1 weight of modelopt MXFP8" in cute.explain(f"{json.dumps(config)}\n{json.dumps(mx)}")
    assert "1 weight of compressed-tensors mxfp8-quantized" in cute.explain(json.dumps(mx))


@pytest.mark.parametrize(
    "text",
    [
        "{'quant_method': ", '{"quant_method": {}}', '{"quant_method": "fp8", "weight_block_size": [[1], 2]}',
        '{"config_groups": [1]}', '{"quant_algo": null}', '{"w": {"dtype": "F4", "shape": [2]}}',
        '{"w": {"dtype": "U8", "shape": [99999999999999999999, 9999999999999999999999]}}',
        "{" * 3000 + '"quant_method":',
    ],
)  # fmt: skip
def test_broken_texts_are_refused_with_a_type(text: str) -> None:
    with contextlib.suppress(cute.CuteError):
        assert "break no rule" not in cute.explain(text)


@each_of(
    ("kind", "shape", "size", "wrong"),
    [
        ("F4", [4], 2, ""),
        ("F4", [4], 4, "'a' has 4 bytes by its data_offsets; must have 2 by its type and shape"),
        ("F4", [3], 2, "'a' has 12 bits by its type and shape; must be a multiple of 8"),
        ("F6_E2M3", [4], 3, ""),
        ("F6_E3M2", [4], 4, "'a' has 4 bytes by its data_offsets; must have 3 by its type and shape"),
        ("F8_E8M0", [4], 4, ""),
        ("F8_E4M3FNUZ", [4], 4, ""),
    ],
)
def test_types_of_the_format_have_their_widths(kind: str, shape: list[int], size: int, wrong: str) -> None:
    (reading,) = readings_of(json.dumps({"a": {"dtype": kind, "shape": shape, "data_offsets": [0, size]}}))
    assert [one.message for one in reading.broken] == ([wrong] if wrong else [])
    assert not any("not known here" in line for line in reading.missing)


def test_weights_of_packed_types_match_no_convention_and_break_none() -> None:
    header = {**HEADER, "a.weight": {"dtype": "F4", "shape": [256, 128], "data_offsets": [0, 16384]}}
    (reading,) = readings_of(json.dumps(header))
    assert not reading.broken and not reading.judged
    assert "the known ones store them as U8" in reading.missing[0]
