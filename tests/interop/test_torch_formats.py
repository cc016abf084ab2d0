"""Formats in PyTorch: operators under compile, opcheck and autocast; torchao's tensors; DLPack."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_py as cute
from cute_py import formats

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")
cute_torch: Any = pytest.importorskip("cute_py.torch")

pytestmark = pytest.mark.filterwarnings("ignore")

FORMS = [
    "mxfp8()",
    "mxfp8(scales='linear')",
    "mxfp4()",
    "nvfp4()",
    "fp8('row')",
    "fp8((128, 128))",
    "mxfp6(packing='dense')",
]


def numbers(*shape: int, dtype: Any = None, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return torch.randn(shape).to(dtype or torch.bfloat16)


@pytest.mark.parametrize("form", FORMS)
def test_quantize_is_copy_and_goes_back(form: str) -> None:
    x = numbers(100, 256)
    data, scales, total = torch.ops.cute_py.quantize(x, form)
    wanted = cute.copy(cute_torch.as_numpy(x), formats.parse_format(form))
    assert data.view(torch.uint8).numpy().tobytes() == wanted.data.tobytes()
    assert scales.view(torch.uint8).numpy().tobytes() == wanted.scales.tobytes()
    assert float(total) == (1.0 if wanted.tensor_scale is None else float(wanted.tensor_scale))
    for dtype in (torch.float32, torch.bfloat16):
        back = torch.ops.cute_py.dequantize(data, scales, total, form, (100, 256), dtype)
        assert back.dtype == dtype
        assert np.array_equal(back.float().numpy(), wanted.dequantize(str(dtype)).astype(np.float32))


def samples() -> dict[str, tuple[Any, ...]]:
    x = numbers(64, 128)
    data, scales, total = torch.ops.cute_py.quantize(x, "mxfp8()")
    # opcheck multiplies its inputs, and PyTorch multiplies no fp8 on the host: the operators take bytes as well
    triple = data.view(torch.uint8), scales.view(torch.uint8), total
    index = torch.tensor([3, -1, 5, 0])
    return {
        "quantize": (x, "mxfp8()"),
        "dequantize": (*triple, "mxfp8()", (64, 128), torch.float32),
        "convert": (*triple, "mxfp8()", "mxfp8(scales='8x4')", (64, 128)),
        "gather_rows": (x, index, 2.0),
        "scatter_rows_": (torch.zeros(8, 128), numbers(4, 128, dtype=torch.float32), index),
        "relayout": (x, "(64,128):(128,1)", "(64,128):(1,64)"),
    }


@pytest.mark.parametrize("name", ["quantize", "dequantize", "convert", "gather_rows", "scatter_rows_", "relayout"])
def test_opcheck_accepts_each_operator(name: str) -> None:
    found = torch.library.opcheck(getattr(torch.ops.cute_py, name), samples()[name])
    assert set(found.values()) == {"SUCCESS"}


def step(x: Any, w: Any, index: Any, out: Any) -> Any:
    rows = torch.ops.cute_py.gather_rows(x, index)
    data, scales, total = torch.ops.cute_py.quantize(rows * 2, "mxfp8()")
    data, scales, total = torch.ops.cute_py.convert(
        data, scales, total, "mxfp8()", "mxfp8(scales='linear')", rows.shape
    )
    back = torch.ops.cute_py.dequantize(data, scales, total, "mxfp8(scales='linear')", rows.shape, torch.float32)
    torch.ops.cute_py.scatter_rows_(out, back, index)
    return torch.nn.functional.linear(back, w).relu() + out.sum()


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_graph_has_no_break_and_the_same_numbers(backend: str, dynamic: bool) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend=backend)
    for rows in (64, 96):
        x, w, index = numbers(rows, 128), numbers(32, 128, dtype=torch.float32), torch.randperm(rows)
        one, other = torch.zeros(rows, 128), torch.zeros(rows, 128)
        torch.testing.assert_close(compiled(x, w, index, one), step(x, w, index, other))
        assert torch.equal(one, other) and one.abs().sum() > 0


def test_autocast_leaves_the_operands_as_they_are() -> None:
    x = numbers(32, 64, dtype=torch.float32)
    plain = torch.ops.cute_py.quantize(x, "mxfp8()")
    with torch.autocast("cpu", torch.bfloat16):
        inside = torch.ops.cute_py.quantize(x, "mxfp8()")
    assert all(
        torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in zip(plain[:2], inside[:2], strict=True)
    )


def test_functions_take_a_format() -> None:
    x = numbers(32, 64)
    made = cute_torch.quantize(x, formats.nvfp4())
    scaled = cute_torch.scaled_of(*made, formats.nvfp4(), (32, 64))
    assert np.array_equal(scaled.dequantize(), cute.copy(cute_torch.as_numpy(x), formats.nvfp4()).dequantize())


@pytest.mark.parametrize("form", ["nvfp4()", formats.nvfp4()])
@pytest.mark.parametrize("dynamic", [False, True])
def test_the_functions_compile_without_a_break(form: Any, dynamic: bool) -> None:
    torch._dynamo.reset()
    x, index, linear = numbers(64, 96), torch.tensor([3, -1]), "nvfp4(scales='linear')"

    def all_of(x: Any, out: Any) -> Any:
        made = cute_torch.convert_scaled(*cute_torch.quantize(x * 2, form), form, linear, x.shape)
        back = cute_torch.dequantize(*made, linear, x.shape, torch.float32)
        rows = cute_torch.gather_rows(back, index)
        cute_torch.scatter_rows_(out, rows, index)
        return rows, cute_torch.relayout(back, "(64,96):(96,1)", "(64,96):(1,64)")

    one, other = torch.zeros(64, 96), torch.zeros(64, 96)
    compiled = torch.compile(all_of, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    pairs = zip(compiled(x, one), all_of(x, other), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert torch.equal(one, other) and one.abs().sum() > 0


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn_x2", "bfloat16"])
def test_rows_of_every_type_are_gathered_and_scattered(name: str) -> None:
    bits = torch.arange(1, 97, dtype=torch.uint8).reshape(6, 16)
    x = bits.view(getattr(torch, name))
    rows = torch.ops.cute_py.gather_rows(x, torch.tensor([2, -1, 5]))
    assert rows.dtype == x.dtype and rows.is_contiguous()
    assert torch.equal(rows.view(torch.uint8)[[0, 2]], bits[[2, 5]])
    assert (rows.view(torch.uint8)[1] == 0).all()  # the code of 0, and of 2^-127 for e8m0, as on a device
    out = torch.zeros_like(bits).view(x.dtype)
    torch.ops.cute_py.scatter_rows_(out, rows, torch.tensor([1, -1, 0]))
    assert torch.equal(out.view(torch.uint8)[[1, 0]], bits[[2, 5]]) and not out.view(torch.uint8)[2:].any()


def test_a_masked_row_has_the_fill_in_the_type_of_the_rows() -> None:
    x = numbers(4, 8).to(torch.float8_e4m3fn)
    rows = torch.ops.cute_py.gather_rows(x, torch.tensor([-1, 3]), 1.5)
    assert (rows[0].float() == 1.5).all() and torch.equal(rows[1].float(), x[3].float())


def test_a_row_that_is_not_there_is_refused() -> None:
    with pytest.raises(Exception, match=r"index\[1\] = 9; must be -1 to 3"):
        torch.ops.cute_py.gather_rows(numbers(4, 8), torch.tensor([0, 9]))
    with pytest.raises(Exception, match="unknown format"):
        torch.ops.cute_py.quantize(numbers(4, 32), "int3")


def test_nothing_imports_torch_unless_the_user_did() -> None:
    program = (
        "import sys, numpy as np, cute_py as cute, cute_py.torch; "
        "cute.copy(np.ones((4, 32), np.float32), cute.formats.mxfp8()); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# ---- arrays and DLPack

KINDS = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
}


@pytest.mark.parametrize("name", [*KINDS, "bfloat16", "float32", "uint8"])
def test_numpy_and_torch_share_memory(name: str) -> None:
    bits = torch.arange(64, dtype=torch.uint8).reshape(4, 16)
    tensor = bits.view(getattr(torch, name))
    array = cute_torch.as_numpy(tensor)
    assert array.tobytes() == bits.numpy().tobytes() and array.ctypes.data == tensor.data_ptr()
    again = cute_torch.as_torch(array)
    assert again.dtype == tensor.dtype and again.data_ptr() == tensor.data_ptr()


@pytest.mark.parametrize("name", [*KINDS, "float4_e2m1fn_x2"])
def test_dlpack_brings_narrow_types_in_and_out(name: str) -> None:
    from cute_py.tensor.array_views import host_view
    from cute_py.tensor.dlpack_export import DlpackArray

    bits = torch.arange(64, dtype=torch.uint8).reshape(4, 16)
    tensor = bits.view(getattr(torch, name))
    view = host_view(tensor)
    assert view is not None and view.address == tensor.data_ptr()
    engine = cute.make_tensor(tensor).engine
    assert engine.address == tensor.data_ptr()
    assert engine.dtype.name == ("uint8" if name.endswith("x2") else name)
    array = bits.numpy() if name.endswith("x2") else bits.numpy().view(KINDS[name])
    made = torch.from_dlpack(DlpackArray(array, "float4_e2m1fn" if name.endswith("x2") else None))
    assert made.dtype == tensor.dtype and made.data_ptr() == bits.data_ptr()
    del bits, array, view, tensor
    assert made.view(torch.uint8)[3, 15] == 63


# ---- torchao, and the product

AO = {
    "mxfp8": ("mxfp8(rule='floor', scales='linear')", "mxfp8(rule='floor')"),
    "mxfp4": ("mxfp4(rule='floor', scales='linear')", "mxfp4(rule='floor')"),
    "nvfp4": ("nvfp4(scales='linear')", "nvfp4()"),
}


@pytest.mark.parametrize("kind", AO)
@pytest.mark.parametrize("swizzled", [False, True])
def test_torchao_tensors_have_the_same_bytes_both_ways(kind: str, swizzled: bool) -> None:
    pytest.importorskip("torchao")
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale

    x = numbers(200, 256)
    if kind == "nvfp4":
        total = per_tensor_amax_to_scale(x.abs().max().float())
        theirs = NVFP4Tensor.to_nvfp4(x, per_tensor_scale=total, is_swizzled_scales=swizzled)
    else:
        element = torch.float8_e4m3fn if kind == "mxfp8" else torch.float4_e2m1fn_x2
        theirs = MXTensor.to_mx(x, element, 32, is_swizzled_scales=swizzled)
    ours = cute.copy(cute_torch.as_numpy(x), formats.parse_format(AO[kind][swizzled]))
    read = cute_torch.from_torchao(theirs)
    assert read.data.tobytes() == ours.data.tobytes()
    assert read.scales.tobytes() == ours.scales.tobytes()
    assert np.array_equal(read.dequantize("bf16"), ours.dequantize("bf16"))
    made = cute_torch.to_torchao(ours)
    assert type(made) is type(theirs) and made.shape == theirs.shape
    assert torch.equal(made.qdata.view(torch.uint8), theirs.qdata.view(torch.uint8))
    assert made.scale.shape == theirs.scale.shape
    assert torch.equal(made.dequantize(torch.float32), theirs.dequantize(torch.float32))


@pytest.mark.parametrize("form", ["fp8('tensor')", "fp8('row')"])
def test_the_pair_of_scaled_mm_gives_the_product(form: str) -> None:
    a, b = numbers(32, 64, dtype=torch.float32), numbers(48, 64, dtype=torch.float32, seed=1)
    ours = [cute.copy(cute_torch.as_numpy(one), formats.parse_format(form)) for one in (a, b)]
    device = "cuda" if torch.cuda.is_available() else "cpu"  # some builds multiply on a CPU with one scale alone
    (x, sx), (y, sy) = ([part.to(device) for part in cute_torch.scaled_mm_operands(one)] for one in ours)
    got = torch._scaled_mm(x, y.t(), sx, sy.t(), out_dtype=torch.bfloat16).double().cpu()
    exact = torch.from_numpy(ours[0].dequantize().astype(np.float64) @ ours[1].dequantize().astype(np.float64).T)
    bound = torch.from_numpy(np.abs(ours[0].dequantize()).astype(np.float64) @ np.abs(ours[1].dequantize()).T)
    assert ((got - exact).abs() <= bound * 2**-8).all()
