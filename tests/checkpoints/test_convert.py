"""convert: what it writes is what `cute.copy` makes, in every convention, and it goes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py as cute
from cute_py import formats
from cute_py.checkpoints import convert, describe_checkpoint, journal, open_checkpoint, pieces
from cute_py.errors import CuteError, FileFormatError, InvalidValueError
from cute_py.formats.format import parse_format
from cute_py.formats.stored_weights import read_weight
from tests.checkpoints.files import load, model, numbers, save, saved_in_two
from tests.shares import one_in

Q = "layers.0.q_proj.weight"

STORED = [
    ("cute", "nvfp4()"),
    ("cute", "mxfp8(scales='8x4')"),
    ("cute", "mxfp8(axis=0)"),
    ("cute", "mxfp8(transposed=True)"),
    ("cute", "mxfp6(packing='dense')"),
    ("cute", "fp8((128, 128))"),
    ("cute", "fp8('column')"),
    ("cute", "nvfp4(like='te')"),
    ("cute", "nvfp4(block=(16, 16))"),
    ("compressed-tensors", "nvfp4(scales='linear')"),
    ("compressed-tensors", "mxfp4(scales='linear')"),
    ("compressed-tensors", "mxfp8(scales='linear')"),
    ("compressed-tensors", "fp8('row')"),
    ("modelopt", "nvfp4(scales='linear')"),
    ("modelopt", "mxfp8(scales='linear')"),
    ("modelopt", "fp8('tensor')"),
    ("torchao", "nvfp4()"),
    ("torchao", "nvfp4(scales='linear', tensor_scale=False)"),
    ("torchao", "mxfp8(scales='linear')"),
    ("torchao", "mxfp4()"),
]


def weights_of(path: Path) -> dict[str, formats.ScaledTensor]:
    checkpoint = open_checkpoint(path)
    assert checkpoint.weights.problems == ()
    return {
        one.name: read_weight(one, {p: load(path)[n] for p, n in one.tensors.items()})
        for one in checkpoint.weights.weights
    }


@pytest.mark.parametrize(("convention", "form"), one_in(5, STORED))
def test_a_weight_is_what_copy_makes_and_goes_back(
    convention: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1 << 11)  # several pieces, the last one short
    source = save(tmp_path / "model.safetensors", model(), {"format": "pt"})
    convert(source, tmp_path / "made", form, convention=convention)
    found = weights_of(tmp_path / "made")
    assert list(found) == [Q, "layers.0.down_proj.weight"] or set(found) == {Q, "layers.0.down_proj.weight"}
    for name, weight in found.items():
        wanted = cute.copy(model()[name], parse_format(form))
        assert weight.data.tobytes() == wanted.data.tobytes()
        assert weight.scales.tobytes() == wanted.scales.tobytes()
        assert weight.tensor_scale == wanted.tensor_scale
    convert(tmp_path / "made", tmp_path / "plain", "bf16")
    plain = load(tmp_path / "plain")
    assert sorted(plain) == sorted(model())
    for name, array in model().items():
        want = cute.copy(array, parse_format(form)).dequantize("bf16") if name in found else array
        assert plain[name].tobytes() == want.tobytes(), name


@pytest.mark.parametrize(
    ("form", "same_order"),
    [("nvfp4(scales='linear')", ("rename", "keep")), ("mxfp8(scales='linear')", ("keep", "rename"))],
)
def test_any_way_through_the_conventions_ends_in_the_same_bytes(
    form: str, same_order: tuple[str, str], tmp_path: Path
) -> None:
    """The work is a reorder only if the order of the scales changes: MXFP8 has the same tensors in two conventions."""
    first = save(tmp_path / "model.safetensors", model())
    at = tmp_path / "0"
    convert(first, at, form, convention="modelopt")
    before = load(at)
    plain = parse_format(form)
    tour = [
        ("compressed-tensors", plain),
        ("torchao", plain.with_(scales="32_4_4")),
        ("cute", plain),
        ("modelopt", plain),
    ]
    works = [same_order[0], "reorder", "reorder", same_order[1]]
    for step, ((convention, to), work) in enumerate(zip(tour, works, strict=True), 1):
        report = convert(at, tmp_path / str(step), to, convention=convention)
        assert {one.work for one in report.tensors} == {work, "copy"}
        at = tmp_path / str(step)
    after = load(at)
    assert {n: a.tobytes() for n, a in after.items()} == {n: a.tobytes() for n, a in before.items()}
    assert (at / "model.safetensors").read_bytes() == (tmp_path / "0" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("convention", ["torchao", "compressed-tensors", "cute"])
@pytest.mark.parametrize("form", ["nvfp4", "mxfp8"])
def test_the_way_to_another_order_and_back_ends_in_the_same_file(convention: str, form: str, tmp_path: Path) -> None:
    there = f"{form}(scales='linear')"
    convert(save(tmp_path / "model.safetensors", model()), tmp_path / "0", there, convention=convention)
    convert(tmp_path / "0", tmp_path / "1", f"{form}(scales='8x4')")
    convert(tmp_path / "1", tmp_path / "2", there, convention=convention)
    assert (tmp_path / "2" / "model.safetensors").read_bytes() == (tmp_path / "0" / "model.safetensors").read_bytes()


def test_reciprocals_of_tensor_scales_come_back_exactly(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    scales = (1 + rng.random(40)).astype(np.float32)
    assert (np.float32(1) / (np.float32(1) / scales) != scales).any()  # rounding alone would lose some
    tensors: dict[str, Any] = {}
    for i, scale in enumerate(scales):
        x = np.zeros((1, 16), np.float32)
        x[0, 0] = scale * 2688
        tensors[f"m{i}.weight"] = x
    convert(save(tmp_path / "a.safetensors", tensors), tmp_path / "o", "nvfp4(scales='linear')", convention="modelopt")
    convert(tmp_path / "o", tmp_path / "c", "nvfp4(scales='linear')", convention="compressed-tensors")
    convert(tmp_path / "c", tmp_path / "b", "nvfp4(scales='linear')", convention="modelopt")
    assert (tmp_path / "o" / "a.safetensors").read_bytes() == (tmp_path / "b" / "a.safetensors").read_bytes()


def test_several_files_keep_their_names_and_get_an_index(tmp_path: Path) -> None:
    index = saved_in_two(tmp_path / "in")
    (tmp_path / "in" / "config.json").write_text('{"model_type": "llama"}')
    report = convert(index, tmp_path / "out", "nvfp4(scales='linear')", convention="compressed-tensors")
    assert [path.name for path in report.files] == [f"model-0000{i}-of-00002.safetensors" for i in (1, 2)]
    made = json.loads((tmp_path / "out" / index.name).read_text())
    for name, file in made["weight_map"].items():
        assert name in load(tmp_path / "out" / file)
    assert made["metadata"]["total_size"] == sum(a.nbytes for a in load(tmp_path / "out").values())
    config = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
    assert config["format"] == "nvfp4-pack-quantized" and "embed_tokens" in config["ignore"]
    left = [path.name for path in (tmp_path / "out").iterdir() if path.name.startswith(".")]
    assert left == []
    assert describe_checkpoint(tmp_path / "out").errors == ()


@pytest.mark.parametrize(
    ("to", "convention", "nan"),
    [
        ("nvfp4()", "cute", "2 scales are NaN"),
        ("mxfp8(scales='linear')", "torchao", "2 scales are NaN"),
        ("mxfp8(transposed=True, axis=0)", "cute", "2 scales are NaN"),
        ("fp8('row')", "compressed-tensors", "1 scale is NaN"),
        ("fp8('column')", "cute", "2 scales are NaN"),
    ],
)
def test_nan_is_reported(to: str, convention: str, nan: str, tmp_path: Path) -> None:
    """In what is quantised, brought into another order and dequantised; a tensor that is copied is not judged."""
    x = numbers((64, 128))
    x[3, 5] = x[3, 100] = np.nan
    path = save(tmp_path / "a.safetensors", {Q: x, "b": np.float32([np.nan])})
    made = convert(path, tmp_path / "new", to, convention=convention)
    assert {one.name: one.nan for one in made.tensors} == {Q: nan, "b": ""}
    assert made.scope.judged[-1] == "NaN in the results"
    assert made.scope.not_judged == ("the contents of copied tensors",)
    again = convert(tmp_path / "new", tmp_path / "again", to, convention=convention)
    assert [(one.work, one.nan) for one in again.tensors if one.name == Q] == [("keep", nan)]
    back = convert(tmp_path / "new", tmp_path / "back", "float16")
    count = int(np.isnan(load(tmp_path / "back")[Q].astype(np.float32)).sum())
    assert [one.nan for one in back.tensors if one.name == Q] == [f"{count} values are NaN"]


def test_nan_elements_below_finite_scales_are_reported(tmp_path: Path) -> None:
    x = cute.copy(numbers((64, 128)), formats.mxfp8())
    data = x.data.view(np.uint8).copy()
    data[7, 9] = 0x7F
    path = save(
        tmp_path / "a.safetensors", {Q: data.view(x.data.dtype), Q + "_scale": np.zeros((64, 4), np.uint8) + 127}
    )
    made = convert(path, tmp_path / "new", "mxfp8(scales='linear')", convention="compressed-tensors")
    assert [(one.work, one.nan) for one in made.tensors] == [("keep", "1 element is NaN")]


def test_patterns_choose(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", model())
    report = convert(source, tmp_path / "o", "mxfp8", patterns=("*proj.weight", "embed*"), keep=("*down*",))
    assert {one.name for one in report.tensors if one.work == "quantise"} == {Q, "embed_tokens.weight"}
    assert next(one.why for one in report.tensors if "down" in one.name) == "kept: *down*"


def test_patterns_that_match_nothing_are_refused(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", model())
    with pytest.raises(
        InvalidValueError, match=r"no tensor has a name that matches 'q\*'; nothing is written"
    ) as refused:
        convert(source, tmp_path / "o", "mxfp8", patterns=("q*",))
    assert refused.value.rule == "patterns"
    assert not (tmp_path / "o").exists()


def test_experts_of_three_dimensions_share_a_tensor_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE", 1 << 10)
    x = numbers((3, 40, 64))
    convert(save(tmp_path / "m.safetensors", {"e.weight": x}), tmp_path / "o", "nvfp4")
    made, wanted = weights_of(tmp_path / "o")["e.weight"], cute.copy(x, formats.nvfp4())
    assert made.data.tobytes() == wanted.data.tobytes() and made.scales.tobytes() == wanted.scales.tobytes()
    convert(tmp_path / "o", tmp_path / "p", "f32")
    assert np.array_equal(load(tmp_path / "p")["e.weight"], wanted.dequantize())


@pytest.mark.parametrize("dot", ["_", "."])
def test_experts_of_gpt_oss(dot: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 16 bytes with the even element in the low nibble, and a biased exponent for each."""
    monkeypatch.setattr(pieces, "PIECE", 1 << 9)
    rng = np.random.default_rng(3)
    blocks = rng.integers(0, 256, (3, 40, 4, 16), dtype=np.uint8)
    scales = rng.integers(100, 140, (3, 40, 4), dtype=np.uint8)
    magnitudes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    table = np.concatenate([magnitudes, -magnitudes])
    values = np.stack([table[blocks & 15], table[blocks >> 4]], axis=-1).reshape(3, 40, 4, 32)
    want = (values * 2.0 ** (scales.astype(np.int32) - 127)[..., None]).reshape(3, 40, 128).astype(np.float32)
    name = "model.layers.0.mlp.experts.down_proj"
    source = save(tmp_path / "m.safetensors", {f"{name}{dot}blocks": blocks, f"{name}{dot}scales": scales})
    (weight,) = describe_checkpoint(source).weights
    assert (weight.weight.shape, weight.weight.format) == ((3, 40, 128), formats.mxfp4(scales="linear"))
    assert weight.found == () and weight.weight.convention.name == "gpt-oss"
    convert(source, tmp_path / "plain", "f32")
    assert np.array_equal(load(tmp_path / "plain")[name], want)
    convert(source, tmp_path / "ordered", "mxfp4")
    made = weights_of(tmp_path / "ordered")[name]
    assert np.array_equal(made.dequantize(), want) and made.format == formats.mxfp4()
    with pytest.raises(InvalidValueError, match="no tensor has a name"):
        convert(source, tmp_path / "named", "f32", patterns=("*weight",))
    with pytest.raises(InvalidValueError, match="gpt-oss"):
        convert(source, tmp_path / "same", "mxfp4(scales='linear')", convention="gpt-oss")


def test_another_format_only_with_requantize(tmp_path: Path) -> None:
    convert(save(tmp_path / "m.safetensors", model()), tmp_path / "o", "mxfp8")
    with pytest.raises(InvalidValueError, match="already has another format") as refused:
        convert(tmp_path / "o", tmp_path / "p", "nvfp4")
    assert refused.value.rule == "requantize"
    assert not list((tmp_path / "p").glob("*")) if (tmp_path / "p").exists() else True
    convert(tmp_path / "o", tmp_path / "p", "nvfp4", requantize=True)
    wanted = cute.copy(cute.copy(model()[Q], formats.mxfp8()).dequantize(), formats.nvfp4())
    assert weights_of(tmp_path / "p")[Q].data.tobytes() == wanted.data.tobytes()


REFUSED = [
    ({"to": "int8"}, "must be a format"),
    ({"to": "nvfp5"}, "unknown format 'nvfp5'"),
    ({"to": "nvfp4", "convention": "modelopt"}, "modelopt does not store scales in the order 32_4_4"),
    ({"to": "nvfp4", "convention": "gguf"}, "unknown convention"),
    ({"to": "fp8('column')", "device": "cuda"}, "must be a format with a fixed number of rows"),
    ({"to": "mxfp6(packing='dense')", "device": "cuda"}, "elements of e2m3, packed as dense"),
    ({"to": "mxfp6", "convention": "torchao"}, "torchao does not store"),
]


@pytest.mark.parametrize(("arguments", "text"), REFUSED)
def test_refusals_write_nothing(arguments: dict[str, Any], text: str, tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", model())
    with pytest.raises(CuteError, match=text.replace("(", r"\(").replace(")", r"\)")):
        convert(source, tmp_path / "o", **arguments)
    assert not (tmp_path / "o").exists() or not list((tmp_path / "o").iterdir())


def test_a_file_that_is_there_is_replaced_only_by_force(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", model())
    convert(source, tmp_path / "o", "mxfp8")
    with pytest.raises(FileFormatError, match="the file exists already"):
        convert(source, tmp_path / "o", "mxfp4")
    with pytest.raises(FileFormatError, match="the new file would replace a file of the source"):
        convert(source, tmp_path, "mxfp4", force=True)
    convert(source, tmp_path / "o", "mxfp4", force=True)
    assert weights_of(tmp_path / "o")[Q].format == formats.mxfp4()


@pytest.mark.parametrize("arguments", [{"to": "bf16"}, {"to": "mxfp8", "requantize": True}])
def test_formats_that_a_device_would_read_are_judged(arguments: dict[str, Any], tmp_path: Path) -> None:
    convert(save(tmp_path / "m.safetensors", model()), tmp_path / "o", "fp8('column')")
    with pytest.raises(InvalidValueError, match=r"to or from fp8\(block=\(None, 1\)\) is not supported"):
        convert(tmp_path / "o", tmp_path / "p", device="cuda", **arguments)


# ---- interruptions

KILLED = """
import os, signal, sys
from cute_py.checkpoints import convert, journal
journal.JOURNAL_BYTES = 1
calls = 0
def stop(done, total):
    global calls
    calls += 1
    if calls == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
convert(sys.argv[1], sys.argv[2], "nvfp4", progress=stop)
"""


@pytest.mark.parametrize("after", one_in(2, [1, 4]))
def test_a_killed_conversion_loses_nothing(after: int, tmp_path: Path) -> None:
    index = saved_in_two(tmp_path / "in")
    convert(index, tmp_path / "whole", "nvfp4")
    command = [sys.executable, "-c", KILLED, str(index), str(tmp_path / "out"), str(after)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    wholes = {path.name: path.read_bytes() for path in (tmp_path / "whole").iterdir()}
    for path in (tmp_path / "out").iterdir():
        assert path.name.startswith(".") or path.read_bytes() == wholes[path.name]  # whole, or not there
    assert not (tmp_path / "out" / index.name).exists()
    report = convert(index, tmp_path / "out", "nvfp4")
    assert report.resumed == after
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == wholes


class Interrupted(Exception):
    """What a progress function raises."""


@pytest.mark.parametrize("damage", ["bytes", "line", "job"])
def test_leftovers_that_are_damaged_or_of_another_job_are_not_used(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "JOURNAL_BYTES", 1)
    source = save(tmp_path / "m.safetensors", model())
    convert(source, tmp_path / "whole", "nvfp4")
    wanted = (tmp_path / "whole" / "m.safetensors").read_bytes()
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if len(calls) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        convert(source, tmp_path / "out", "nvfp4", progress=stop)
    part, log = (tmp_path / "out" / f".m.safetensors.{kind}" for kind in ("part", "journal"))
    assert len(log.read_bytes().splitlines()) == 4  # the job, and three tensors
    if damage == "bytes":
        at = part.read_bytes().index(model()["layers.0.q_proj.bias"].tobytes())
        with part.open("r+b") as file:
            file.seek(at)
            file.write(b"\xff")
    elif damage == "line":
        log.write_bytes(log.read_bytes()[:-5])
    else:
        os.utime(source, ns=(1, 1))
    report = convert(source, tmp_path / "out", "nvfp4")
    assert report.resumed == (0 if damage == "job" else 2)
    assert (tmp_path / "out" / "m.safetensors").read_bytes() == wanted


def test_two_conversions_of_one_file_at_once_are_refused(tmp_path: Path) -> None:
    source = save(tmp_path / "m.safetensors", model())
    seen = []

    def again(done: int, total: int) -> None:
        if not seen:
            seen.append(done)
            with pytest.raises(FileFormatError, match="another conversion is writing to it"):
                convert(source, tmp_path / "o", "mxfp8")

    convert(source, tmp_path / "o", "mxfp8", progress=again)
    assert seen and weights_of(tmp_path / "o")


MEMORY = """
import sys
from cute_py.checkpoints import convert
convert(sys.argv[1], sys.argv[2], "nvfp4")
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_checkpoint(tmp_path: Path) -> None:
    peaks = []
    for count in (1, 6):
        tensors = {f"l{i}.weight": numbers((4096, 4096), i) for i in range(count)}
        source = save(tmp_path / f"{count}.safetensors", tensors)
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, str(source), str(tmp_path / str(count))], capture_output=True, check=True
        )
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] - peaks[0] < 4096 * 4096 * 2  # less than one more tensor, of five more
