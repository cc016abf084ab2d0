"""Errors of PyTorch, NumPy and einops about shapes; those of NumPy are raised here."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import cute_py as cute
from cute_py.explanation.dispatch import readings_of
from cute_py.formats.format import mxfp8


def _said(text: str) -> str:
    (reading,) = readings_of(text)
    return str(reading)


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (lambda: np.zeros(24).reshape(5, 5), "5 x 5 = 25 elements, but the tensor has 24"),
        (lambda: np.zeros(24).reshape(6, 2), "the tensor has 2 times as many elements"),
        (lambda: np.zeros(24).reshape(6, 8), "4 in place of 8 at mode 1"),
        (lambda: np.zeros(24).reshape(5, -1), "24 = 4 x 5 + 4"),
        (lambda: np.zeros(24).reshape(5, -1), "  5 does not divide the number of elements, 24"),
        (lambda: np.zeros(24).reshape(25), "  25 elements, but the tensor has 24"),
        (lambda: np.zeros((3, 4)) + np.zeros(3), "at mode -1 the sizes are 4 and 3"),
        (lambda: np.zeros((3, 4)) + np.zeros(3), "reshape it to (3, 1)"),
        (lambda: np.zeros((2, 3, 4, 5)) + np.zeros((3, 5)), "if (3, 5) belongs to modes 1 and 3 of (2, 3, 4, 5)"),
        (lambda: np.where(np.zeros((2, 3)), np.zeros(3), np.zeros(4)), "at mode -1 the sizes are 3 and 4"),
        (lambda: np.zeros((3, 4, 4)) + np.zeros((3, 5)), "at mode -1 the sizes are 4 and 5, at mode -2 the sizes"),
        (lambda: np.zeros((8, 10)).dot(np.zeros((8, 8))), "mode 1 of the first array has 10 elements, and mode 0"),
        (lambda: np.zeros((8, 10)) @ np.zeros((8, 8)), "the first matrix has 10 columns, and the second has 8 rows"),
    ],
)
def test_an_error_of_numpy(fails: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=r"shape|dimension|aligned") as raised:
        fails()
    assert said in _said(f"ValueError: {raised.value}")


def test_no_reshape_is_offered_that_does_not_broadcast() -> None:
    with pytest.raises(ValueError, match="broadcast") as raised:
        np.zeros((3, 4, 4)) + np.zeros((3, 5))
    assert "A change that works" not in _said(str(raised.value))


def test_a_reshape_of_one_of_three_shapes_is_not_offered() -> None:
    with pytest.raises(ValueError, match="broadcast") as raised:
        np.where(np.zeros((3, 2)), np.zeros(3), np.zeros(4))
    assert "A change that works" not in _said(str(raised.value))


@pytest.mark.parametrize(
    ("text", "said", "not_said"),
    [
        (
            "The expanded size of the tensor (5) must match the existing size (3) at non-singleton dimension 1.  "
            "Target sizes: [-1, 5].  Tensor sizes: [4, 3]",
            "mode -1 has 3 in place of 5",
            "in place of -1",
        ),
        (
            "copying a param with shape torch.Size([64, 8]) from checkpoint, the shape in current model is "
            "torch.Size([64, 0])",
            "but 64 x 0 in the model",
            "0 times",
        ),
    ],
)
def test_sizes_without_a_meaning_are_not_compared(text: str, said: str, not_said: str) -> None:
    assert said in _said(text) and not_said not in _said(text)


def test_the_padding_of_scales_is_named_only_if_it_gives_the_number() -> None:
    rows, columns = 100, 90
    count = mxfp8(scales="32_4_4").scale_size(rows, columns * 32)
    said = _said(f"RuntimeError: shape '[{rows}, {columns}]' is invalid for input of size {count}")
    assert "128 x 92 has 11776 elements too" in said and "32_4_4 pads the rows" in said
    assert "32_4_4" not in _said(f"RuntimeError: shape '[{rows}, {columns}]' is invalid for input of size {count + 1}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "RuntimeError: Expected size for first two dimensions of batch2 tensor to be: [4, 64] but got: [4, 32].",
            "the first tensor has B = 4 and K = 64, and the second has B = 4 and K = 32",
        ),
        ("batch1 and batch2 must have same number of batches, got 4 and 8", "the first has 4, and the second has 8"),
        (
            "RuntimeError: linear(): input and weight.T shapes cannot be multiplied (1024x512 and 768x2048)",
            "rows of 512 features, and the layer takes 768: its weight is (out_features, in_features) = (2048, 768)",
        ),
        (
            "RuntimeError: Sizes of tensors must match except in dimension 1. Expected size 64 but got size 32 for "
            "tensor number 1 in the list.",
            "cat joins tensors along mode 1",
        ),
        (
            "The size of tensor a (64) must match the size of tensor b (128) at non-singleton dimension 1",
            "at mode 1 the sizes are 64 and 128, and neither is 1",
        ),
        (
            "RuntimeError: The expanded size of the tensor (128) must match the existing size (64) at non-singleton "
            "dimension 1.  Target sizes: [2, 128].  Tensor sizes: [64]",
            "mode -1 has 64 in place of 128",
        ),
        (
            "RuntimeError: einsum(): subscript k has size 64 for operand 1 which does not broadcast with previously "
            "seen size 32",
            "the letter k has 32, but 64 in operand 1",
        ),
        ("Shape mismatch, can't divide axis of length 100 in chunks of 8", "100 = 12 x 8 + 4"),
        ("IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)", "it has no mode 2"),
        ("Dimension out of range (expected to be in range of [-3, 2], but got 5)", "if unsqueeze or stack adds one"),
        (
            "RuntimeError: setStorage: sizes [4, 4], strides [8, 1], storage offset 0, and itemsize 4 requiring a "
            "storage size of 112 are out of bounds for storage of size 64",
            "the last element is 27, and ends at byte 112; the storage has 64 bytes",
        ),
        (
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            "ordering of dimensions i.e. input.dim() = 3 is not equal to len(dims) = 2",
            "the tensor has 3, and the order names 2",
        ),
    ],
)
def test_an_error_of_pytorch_or_einops(text: str, said: str) -> None:
    assert said in _said(text)


@pytest.mark.parametrize(
    ("held", "wanted", "said"),
    [
        ("64, 32", "32, 64", "the checkpoint may hold the transpose"),
        ("64, 32", "2048", "one may be a reshape of the other"),
        ("4096, 2048", "4096, 4096", "two values of 4 bits in a byte, as NVFP4"),
        ("512, 4096", "4096, 4096", "eight values of 4 bits in an int32"),
        ("4096, 1024", "4096, 3072", "3 times fewer elements at mode 1"),
        ("100, 7", "120, 7", "the parameter is 100 x 7 in the checkpoint, but 120 x 7 in the model"),
    ],
)
def test_a_parameter_of_another_shape(held: str, wanted: str, said: str) -> None:
    text = (
        "RuntimeError: Error(s) in loading state_dict for Linear: size mismatch for weight: copying a param with shape "
        f"torch.Size([{held}]) from checkpoint, the shape in current model is torch.Size([{wanted}])."
    )
    shown = _said(text)
    assert said in shown
    assert ("quantised" in shown) == ("values of" in said)


def test_strides_of_compiled_code() -> None:
    said = _said(
        "    assert_size_stride(buf4, (16, 64, 128, 128), (1048576, 1, 8192, 64))\n"
        "AssertionError: expected size 64==64, stride 16384==1 at dim=1; expected size 1==128, stride 64==64 at dim=2"
    )
    assert "mode 1 has stride 16384, not 1" in said and "mode 2 has size 1, not 128" in said
    assert "the code was made for (16,64,128,128):(1048576,1,8192,64), as CuTe writes it" in said


@pytest.mark.parametrize(
    "text",
    [
        "expected size 4==4, stride 1==1 at dim=1",
        "shape '[-1, -1]' is invalid for input of size 8",
        "shape '[0, 4]' is invalid for input of size 8",
        "operands could not be broadcast together with shapes (3,4) (4,)",
        "can't divide axis of length 16 in chunks of 8",
    ],
)
def test_numbers_that_fit_are_no_error(text: str) -> None:
    assert all("An error from" not in reading.kind for reading in readings_of(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mA:\tgmem_ptr[16b](GMEM_ADDR_A) o (512,256):(256,_1)", "global memory, elements of 16 bits"),
        (
            "tCsA:\tSw<3,4,3>_smem_ptr[16b](SMEM_ADDR_A) o ((_128,_16),_1,_4):((_64,_1),_0,_16)",
            "mode 0.1 is contiguous",
        ),
        ("tCtAcc:\ttmem_[32b](TMEM_ADDR) o ((_128,_256),_1,_1):((_65536,_1),_0,_0)", "128 lanes, 256 columns"),
        ("tmem_[32b](TMEM_ADDR) o ((_128,_256),_1,_1):((_65536,_1),_0,_0)", "128 lanes, 256 columns"),
        (
            "tCgA:\tgmem_ptr[16b](GMEM_ADDR_A + offset_for_mma_tile + offset_for_mma) o "
            "((_128,_16),_1,_4,4):((256,_1),_0,_16,_64)",
            "the name GMEM_ADDR_A + offset_for_mma_tile + offset_for_mma instead",
        ),
    ],
)
def test_a_name_may_stand_for_an_address(text: str, said: str) -> None:
    shown = cute.explain(text)
    assert said in shown and "instead of an address; 0 stands for it" in shown
    assert "no memory stores" not in shown and "major" not in shown


def test_a_pointer_is_no_coordinate() -> None:
    said = cute.explain("gA: gmem_ptr[16b](p) o (_128,_64):(256,_1)")
    assert "no memory stores" not in said and "8192 elements, 128 x 64, cosize 32576" in said


def test_two_named_addresses_are_not_one_buffer() -> None:
    said = cute.explain(
        "sA: Sw<3,4,3>_smem_ptr[16b](SMEM_ADDR_A) o (64,64):(64,_1)\nsB: smem_ptr[16b](SMEM_ADDR_B) o (64,64):(64,_1)"
    )
    assert "One buffer, two layouts" not in said and "K-major: mode 1 is contiguous" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("expects the N-mode to satisfy 32 <= N <= 256 and N % 32 == 0, but got 48", "N = 64, or another multiple"),
        ("OpError: expects the M-mode to be 128, but got 64", "this operation has only M = 128"),
        (
            "OpError: Expected affine layout for X's operand A, but got composed layout instead: "
            "S<3,4,3> o 0 o (64,16):(64,1)\nPlease use recast_ptr(ptr, S<3,4,3>, element_type) operation",
            "swizzle=layout.inner",
        ),
        (
            "DSLRuntimeError: expects argument #1 (A) to be <class 'cutlass.cute.typing.Tensor'>, but got "
            "<class 'torch.Tensor'>",
            "pass from_dlpack(A)",
        ),
        (
            "expects argument #1 (A) to be <class 'cutlass.cute.typing.Tensor'>, but got <class 'int'>",
            "the call passes an object of the type int",
        ),
        ("error[UNSUP_NO_SOURCE]: The source of `run` is not available", "save the function to a .py file"),
        ("RuntimeError: Unknown function cutlass_add_one_FakeTensorFloat32", "runtime library of CuTe DSL"),
        ("TypeError: got an unexpected keyword argument 'config'", ".launch(grid="),
        (
            "load & store swizzled memory is not supported yet: tensor<ptr<f32, smem, align<1024>, S<3,4,3>> o "
            "(64,32):(32,1)>",
            "Copies (cute.copy, ldmatrix, TMA) take such a tensor",
        ),
        (
            "x_ =  Tensor<0x00007f4b22000000@gmem o (8,4):(4,1)>",
            "in gmem at 0x7f4b22000000; the text has no element type",
        ),
        ("Feature 'cvt with .e4m3x2/.e5m2x2' requires .target sm_90 or higher", "-arch=sm_90,"),
        ("Instruction 'cvt with .e2m1x2' not supported on .target 'sm_100'", "-arch=sm_100a,"),
        ("ValueError: arange's range must be a power of 2", "mask the elements past n"),
        ("AssertionError: Input shapes should have M >= 16, N >= 16 and K >= 16", "M = 16, N = 16, K = 16"),
    ],
)
def test_an_error_that_users_post(text: str, said: str) -> None:
    shown = cute.explain(text)
    assert said in shown
    assert "TensorMapSwizzle" not in shown  # the rule of another swizzle


def test_an_assertion_with_notes_does_not_ask_for_notes() -> None:
    text = (
        'cutlass/epilogue/collective/builders/sm90_builder.inl(231): error: static assertion failed with "Should meet '
        'TMA alignment requirement\\n"\n          detected during:\n            instantiation of class '
        '"cutlass::epilogue::collective::detail::Sm90TmaBuilderImpl<A> [with A=cute::_1]" at line 1'
    )
    said = cute.explain(text)
    assert "Pass 128 divided by the bits of the element" in said and "Missing" not in said
    assert "  condition: Should meet TMA alignment requirement\n" in said
    assert "Pass 128 divided" in cute.explain(text.replace("Should meet", "C/D Should meet"))


@pytest.mark.parametrize("condition", ["value < upper_bound", "value >= lower_bound"])
def test_a_value_that_does_not_fit_into_4_bits(condition: str) -> None:
    text = f"a.out: cutlass/integer_subbyte.h:96: f(int) [with int Bits = 4]: Assertion `{condition}' failed."
    assert "In integer_subbyte.h, the value" in " ".join(cute.explain(text).split())
    assert "int4b_t holds -8 to 7" in " ".join(cute.explain(text).split())


def test_a_product_in_a_constant() -> None:
    assert cute.parse("make_layout(make_shape(Int<4 * 3>{}, C<8*4>{}))") == cute.parse("(_12,_32):(_1,_12)")
