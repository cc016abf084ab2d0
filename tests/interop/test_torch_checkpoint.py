"""A model of PyTorch, converted by the command, loaded again, and compared with the original."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_py.cli.main import main
from tests.interop import tiny_transformer

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
files: Any = pytest.importorskip("safetensors.torch")
cute_torch: Any = pytest.importorskip("cute_py.torch")

pytestmark = pytest.mark.filterwarnings("ignore")

FORMATS = {"mxfp8": (32, 2.0**-4, 0.0), "nvfp4": (16, 0.0, 1.07 / 6)}
"""Format -> (block, error of an element as a share of it, and as a share of its block's largest): half the distance of
two numbers of e4m3 and of e2m1; e4m3 scales of NVFP4 are rounded by at most 1/16."""


def linear(name: str) -> bool:
    return "_proj." in name


def bound(weight: Any, form: str) -> Any:
    """How far an element may be from the original."""
    block, own, of_block = FORMATS[form]
    w = weight.float().abs()
    largest = w.unflatten(-1, (-1, block)).amax(-1, keepdim=True)
    return own * w + (of_block * largest + 2.0**-18 * largest).expand(-1, -1, block).flatten(-2)


def saved(folder: Path) -> Any:
    model = tiny_transformer.make(torch)
    files.save_file(model.state_dict(), folder / "model.safetensors", {"format": "pt"})
    return model


def convert(folder: Path, *arguments: str) -> Path:
    out = folder / "-".join(arguments)
    assert main(["convert", str(folder / "model.safetensors"), "--to", *arguments, "--out", str(out)]) == 0
    return out / "model.safetensors"


@pytest.mark.parametrize("form", FORMATS)
def test_products_are_within_the_error_of_the_format(form: str, tmp_path: Path) -> None:
    model = saved(tmp_path)
    out = convert(tmp_path, form)
    plain = tmp_path / "plain"
    assert main(["convert", str(out.parent), "--to", "f32", "--out", str(plain)]) == 0
    made = files.load_file(plain / "model.safetensors")
    assert out.stat().st_size < (tmp_path / "model.safetensors").stat().st_size
    torch.manual_seed(1)
    for name, weight in model.state_dict().items():
        if not linear(name):
            assert torch.equal(made[name], weight)
            continue
        far = (made[name] - weight.float()).abs()
        assert (far <= bound(weight, form)).all(), name
        assert far.max() > 0
        x = torch.randn(8, weight.shape[1], dtype=torch.float64)
        product = x @ made[name].double().T - x @ weight.double().T
        assert (product.abs() <= x.abs() @ bound(weight, form).double().T).all(), name
    words = torch.randint(0, tiny_transformer.WORDS, (2, 16))
    before = model(words).float()
    other = tiny_transformer.make(torch, 5)
    other.load_state_dict({name: array.to(torch.bfloat16) for name, array in made.items()})
    change = (other(words).float() - before).norm() / before.norm()
    assert change < (0.1 if form == "mxfp8" else 0.35)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("order", ["linear", "32_4_4"])
def test_torchao_loads_what_the_command_wrote(form: str, order: str, tmp_path: Path) -> None:
    support: Any = pytest.importorskip("torchao.prototype.safetensors.safetensors_support")
    model = saved(tmp_path)
    out = convert(tmp_path, form, "--as", "torchao", "--scales", order)
    with open(out, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    loaded, left = support.unflatten_tensor_state_dict(files.load_file(out), header["__metadata__"])
    assert left == {} and set(loaded) == set(model.state_dict())
    for name, weight in model.state_dict().items():
        if linear(name):
            assert type(loaded[name]).__name__ == ("NVFP4Tensor" if form == "nvfp4" else "MXTensor")
            numbers = loaded[name].dequantize(torch.float32)
            assert ((numbers - weight.float()).abs() <= bound(weight, form)).all(), name
        else:
            assert torch.equal(loaded[name], weight)


@pytest.mark.parametrize("form", ["mxfp8", "nvfp4"])
def test_the_command_reads_what_torchao_wrote(form: str, tmp_path: Path) -> None:
    support: Any = pytest.importorskip("torchao.prototype.safetensors.safetensors_support")
    from torchao.prototype.mx_formats.mx_tensor import MXTensor, ScaleCalculationMode
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    tensors: dict[str, Any] = {}
    for name, weight in tiny_transformer.make(torch).state_dict().items():
        if not linear(name):
            tensors[name] = weight
        elif form == "nvfp4":
            total = per_tensor_amax_to_scale(weight.abs().max().float())
            tensors[name] = NVFP4Tensor.to_nvfp4(weight, per_tensor_scale=total, is_swizzled_scales=True)
        else:
            tensors[name] = MXTensor.to_mx(weight, torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)
    data, metadata = support.flatten_tensor_state_dict(tensors)
    folder = tmp_path / "theirs"
    folder.mkdir()
    files.save_file(data, folder / "model.safetensors", metadata)
    assert main(["explain", str(folder)]) == 0
    assert main(["convert", str(folder), "--to", "f32", "--out", str(tmp_path / "plain")]) == 0
    made = files.load_file(tmp_path / "plain" / "model.safetensors")
    for name, tensor in tensors.items():
        wanted = tensor.dequantize(torch.float32) if linear(name) else tensor
        assert torch.equal(made[name], wanted), name
    again = ["convert", str(folder), "--to", form, "--as", "torchao", "--out", str(tmp_path / "again")]
    order = ["--scales", "32_4_4" if form == "nvfp4" else "linear"]
    assert main([*again, *order]) == 0
    for name, array in files.load_file(tmp_path / "again" / "model.safetensors").items():
        mine, theirs = (one.contiguous().reshape(-1).view(torch.uint8) for one in (array, data[name]))
        assert torch.equal(mine, theirs), name


def test_a_compiled_model_reads_converted_weights_in_its_graph(tmp_path: Path) -> None:
    model = saved(tmp_path)
    x = torch.randn(4, tiny_transformer.HIDDEN)
    weight = model.layers[0].up_proj.weight.detach()
    parts = torch.ops.cute_py.quantize(weight, "nvfp4()")

    def product(x: Any, data: Any, scales: Any, total: Any) -> Any:
        w = torch.ops.cute_py.dequantize(data, scales, total, "nvfp4()", tuple(weight.shape), torch.float32)
        return torch.nn.functional.linear(x, w)

    torch._dynamo.reset()
    compiled = torch.compile(product, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, *parts), product(x, *parts))
    assert np.isfinite(compiled(x, *parts).numpy()).all()
