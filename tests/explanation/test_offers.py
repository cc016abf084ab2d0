"""A change that explain offers passes the strictest check there is; a composition says whether it is the function."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cute_py as cute
from cute_py import Int, Layout, static
from cute_py.errors import CompositionMismatchError, CuteError, InvalidTypeError, StaticAssertError
from cute_py.explanation.compiler_pastes import run_operation
from cute_py.explanation.dispatch import readings_of
from cute_py.testing.strategies import layouts
from cute_py.tma.descriptor.fixes import find_changes
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.violations import violations

A = static(Layout((6, 4), (4, 1)))
NVCC = """/i/cute/layout.hpp(1101): error: static assertion failed with "Shape Divisibility Condition"
          detected during:
            instantiation of "auto cute::composition(const cute::Layout<LShape, LStride> &, const cute::Layout<RShape,\
 RStride> &) [with LShape=cute::tuple<cute::_{m}, cute::_{n}>, LStride=cute::tuple<cute::_{n}, cute::_1>,\
 RShape=cute::C<{size}>, RStride=cute::_{step}]" at line 3 of /tmp/bad.cu
"""


@given(m=st.integers(2, 12), n=st.integers(2, 8), size=st.integers(2, 24), step=st.integers(1, 12))
def test_offered_right_sides_compose_to_the_function(m: int, n: int, size: int, step: int) -> None:
    text = NVCC.format(m=m, n=n, size=size, step=step)
    for reading in readings_of(text):
        for change in reading.changes:
            offered = re.match(r"B = (\S+):", change)
            if offered:
                right = cute.parse(re.match(r"B = (_[0-9]+:_[0-9]+)", change)[1])  # type: ignore[index]
                cute.composition(static(Layout((m, n), (n, 1))), right, strict=True)


def test_a_change_that_is_another_function_is_not_offered() -> None:
    (reading,) = readings_of(NVCC.format(m=6, n=4, size=5, step=4))
    assert not any("_4:_4" in change for change in reading.changes)
    with pytest.raises(CompositionMismatchError) as refused:
        cute.composition(A, Layout(Int(4), Int(4)), strict=True)
    assert refused.value.difference == "R(2) = 1, A(B(2)) = 9"


@given(layouts(), layouts())
def test_the_last_line_of_a_composition_is_what_strict_says(a: Layout, b: Layout) -> None:
    try:
        last = cute.explain(cute.composition, a, b).splitlines()[-1]
    except CuteError:
        return
    try:
        cute.composition(a, b, strict=True)
        assert last == "judged: R(i) = A(B(i)) for every i"
    except CompositionMismatchError:
        assert last.startswith("R differs from A(B(i)): ")
        assert "strict=True" in last
    except CuteError:
        assert last.startswith("not judged: ")


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("(6,2):(8,2) o (4,3):(3,1)", "judged: R(i) = A(B(i)) for every i"),
        (
            "(_6,_4):(_4,_1) o _4:_5",
            "R differs from A(B(i)): R(2) = 1, A(B(2)) = 17. CuTe C++ computes R without a check; "
            "strict=True refuses it.",
        ),
        ("Sw<3,3,3> o (8,64):(64,1)", "  composition(Swizzle(3, 3, 3), Layout((8, 64), (64, 1))) makes it."),
    ],
)
def test_two_functions_with_an_o_between_them_are_a_composition(text: str, last: str) -> None:
    assert cute.explain(text).splitlines()[-1] == last


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("(4,8):(8,1)(1,2)", ["  offset: 1 * 8 + 2 * 1 = 10"]),
        ("Layout((4, 8), (8, 1))((1, 2))", ["  offset: 1 * 8 + 2 * 1 = 10"]),
        ("(4,8):(8,1)(6)", ["  natural coordinate: (2,1)", "  offset: 2 * 8 + 1 * 1 = 17"]),
        ("(4,8):(8,1)(_,2)", ["  slice: (4):(8)", "  offset: 2"]),
        ("(4,8):(_1@0,_1@1)(1,2)", ["  offset: 1 * _1@0 + 2 * _1@1 = (1,2)"]),
        ("Sw<3,0,3> o _0 o (8,8):(8,1)(1,2)", ["  offset: 11"]),
        (
            "(4,8):(8,1)(5,2)",
            [
                "  offset: 5 * 8 + 2 * 1 = 42",
                "  the coordinate is outside the shape (4,8), which CuTe does not check",
            ],
        ),
        (
            "(4,8):(8,1)(-1,2)",
            ["  offset: -1 * 8 + 2 * 1 = -6", "  the coordinate is outside the shape (4,8), which CuTe does not check"],
        ),
        ("(4,8):(8,1)(1,2,3)", ["is refused: Mismatched Ranks", "  coordinate : (1,2,3)", "  shape      : (4,8)"]),
    ],
)
def test_a_layout_at_a_coordinate(text: str, lines: list[str]) -> None:
    assert cute.explain(text).splitlines()[1:] == lines


def test_an_operation_on_layouts_as_python_writes_them() -> None:
    for text in ("cute.logical_divide(cute.Layout((4, 8), (8, 1)), 4)", "logical_divide((4,8):(8,1), 4)"):
        assert "result: logical_divide((4,8):(8,1), 4) = ((4,1),(1,8)):((8,1),(32,1))" in cute.explain(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "SM90_64x128x16_F32BF16BF16_SS"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32;", "SM80_16x8x16_F32F16F16F32_TN"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16", "SM75_U32x4_LDSM_N"),
        ("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13", "SM100_UTCCP_2x64dp128bitlw0213_1cta"),
    ],
)
def test_an_instruction_is_explained_by_its_atom(text: str, name: str) -> None:
    said = cute.explain(text)
    assert said.startswith(f"{name} issues this instruction.")
    assert str(cute.explain(name)).split("\n\n", 1)[1] in said


@pytest.mark.parametrize(
    "text", ["GMMA::Layout_K_SW128_Atom<half_t>", "using A = cute::GMMA::Layout_K_SW128_Atom<half_t>;"]
)
def test_a_layout_atom_alone_is_explained(text: str) -> None:
    assert cute.explain(text).startswith("A swizzled layout: Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", "SM75_U32x4_LDSM_N"),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, "
            "{%r4, %r5}, {%f0, %f1, %f2, %f3};",
            "SM80_16x8x8_F32TF32TF32F32_TN",
        ),
    ],
)
def test_an_instruction_with_operands(text: str, name: str) -> None:
    said = cute.explain(text)
    assert said.startswith(f"{name} issues this instruction.") and said.endswith("The operands were not judged.")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("setmaxnreg.dec.sync.aligned.u32 25;", True),
        ("setmaxnreg.inc.sync.aligned.u32 264;", True),
        ("setmaxnreg.dec.sync.aligned.u32 24;", False),
        ("griddepcontrol.wait;", False),
    ],
)
def test_instructions_whose_opcode_is_one_word(text: str, wrong: bool) -> None:
    said = cute.explain(text)
    assert said.startswith("A PTX instruction: ") and ("\nWrong" in said) == wrong
    assert ("expected 24..256 in steps of 8" in said) == wrong


def test_the_state_spaces_of_an_instruction_have_an_order() -> None:
    assert cute.explain("cp.async.cg.shared.global").startswith("SM80_CP_ASYNC_CACHEGLOBAL")
    with pytest.raises(CuteError):
        cute.explain("cp.async.cg.global.shared")


def test_operations_within_operations() -> None:
    text = "composition(make_layout(24), logical_divide(make_layout(12), make_layout(4)))"
    assert "result: 24:_1 o (4,3):(_1,4) = (4,3):(_1,4)" in cute.explain(text)
    text = "logical_divide(Layout<Shape<_8,_16>, Stride<_16,_1>>{}, Tile<_4,_2>{})"
    assert cute.explain(text).endswith("= ((_4,_2),(_2,_8)):((_16,_64),(_1,_2))")
    text = "local_tile(make_layout(make_shape(128, 64), make_stride(64, 1)), make_shape(32, 16), make_coord(1, 2))"
    assert cute.explain(text).endswith("result: (32,16):(64,1)")
    text = "coalesce(Layout<Shape<_2,Shape<_1,_6>>, Stride<_1,Stride<_6,_2>>>{}, make_step(_1{}, _1{}))"
    assert cute.explain(text).endswith("coalesces by mode to (_2,_6):(_1,_2)")


def test_an_instruction_of_no_atom_is_refused() -> None:
    with pytest.raises(CuteError):
        cute.explain("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f64")


@pytest.mark.parametrize(
    ("operands", "said"),
    [
        ("[%r1], 1048576", "expect_tx = 1048576 bytes; must be 0 to 1048575"),
        ("[%r1], 128", "a wait, such as mbarrier.try_wait: without one, only the operands were judged"),
    ],
)
def test_an_arrival_alone(operands: str, said: str) -> None:
    text = cute.explain(f"mbarrier.arrive.expect_tx.shared::cta.b64 _, {operands};")
    assert said in " ".join(text.split())
    assert "no rule" not in text and "A change" not in text


def test_a_wait_without_operands_is_not_judged() -> None:
    said = cute.explain("mbarrier.try_wait.parity hangs")
    assert "no rule" not in said and "the operands of the mbarrier instructions" in said


def test_the_offered_spelling_of_a_swizzled_layout_is_read() -> None:
    text = cute.explain("Sw<3,3,3> o (8,64):(64,1)")
    spelled = re.search(r"Sw<3,3,3> o _0 o \S+", text)
    assert spelled is not None
    assert cute.parse(spelled[0]) == cute.composition(cute.Swizzle(3, 3, 3), Layout((8, 64), (64, 1)))


def test_a_refused_composition_says_why() -> None:
    assert "Shape Divisibility Condition" in cute.explain("(_6,_4):(_4,_1) o _5:_4")


def test_static_numbers_are_named_where_they_help() -> None:
    with pytest.raises(StaticAssertError) as refused:
        cute.logical_product(Layout((2, 2), (4, 1)), Layout(6, 1))
    assert refused.value.hint == "plain ints are run-time; with cute.static(layout), the complement is (_2,_3):(_2,_8)"
    assert str(cute.complement(static(Layout((2, 2), (4, 1))), Int(24))) == "(_2,_3):(_2,_8)"
    text = cute.explain(cute.right_inverse, Layout((4, 8), (8, 1)))
    assert text.splitlines()[-1].endswith("with cute.static operands right_inverse gives (_8,_4):(_4,_1)")
    assert "cute.static" not in cute.explain(cute.right_inverse, static(Layout((4, 8), (8, 1))))


def test_declarations_of_c_are_no_shape_of_an_array() -> None:
    text = "uint64_t size[2] = {4096, 8192}; uint64_t stride[1] = {8192};\n"
    call = "cuTensorMapEncodeTiled(&m, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, ptr, size, stride, box, es, 0, 0, 0, 0);"
    assert [reading.kind for reading in readings_of(text + call)] == ["Arguments of cuTensorMapEncodeTiled"]
    (torch,) = readings_of("torch.Size([64, 32]) stride (32, 1)")
    assert torch.kind == "Shape and stride of an array, as in PyTorch"


@pytest.mark.parametrize("name", [op.name for op in cute.tma.Op if op.row.mode == "im2col"])
def test_im2col_operations_make_no_tiled_map(name: str) -> None:
    tensor = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), Layout((256, 128), (128, Int(1))))
    for make in (cute.tma.make_tma_copy, cute.tma.make_tma_atom):
        with pytest.raises(InvalidTypeError, match="im2col map") as refused:
            make(name, tensor, Layout((Int(64), Int(64)), cute.LayoutRight))
        assert "make_im2col_tma_copy" in str(refused.value.hint)


REQUESTS = st.builds(
    cute.tma.TensorMapTiled,
    st.integers(0, 12),
    st.sampled_from((0, 16, 4096, 4104)),
    st.tuples(st.integers(1, 5000), st.integers(1, 5000)),
    st.tuples(st.integers(1, 20000)),
    st.tuples(st.integers(1, 300), st.integers(1, 300)),
    swizzle=st.integers(0, 3),
)


@given(REQUESTS)
def test_changes_of_maps_break_no_rule_and_add_no_hazard(request: cute.tma.TensorMapTiled) -> None:
    text = repr(request)
    known = {found.rule for found in hazards(request)}
    offered = [change for reading in readings_of(text) for change in reading.changes]
    sound = {
        words
        for words, changed in find_changes(request)
        if not violations(changed) and {found.rule for found in hazards(changed)} <= known
    }
    assert set(offered) <= sound


def test_all_wrong_strides_of_an_upcast_are_padded_together() -> None:
    made = run_operation("upcast", {"Shape": "(_4,_6,_8)", "Stride": "(_1,_6,_10)", "N": "4"})
    assert made is not None
    assert list(made.changes) == ["recast by 2 at most", "pad stride 6 to 8, and stride 10 to 12"]
    with pytest.raises(CuteError):
        cute.upcast(cute.parse("(_4,_6,_8):(_1,_8,_10)"), 4)
    cute.upcast(cute.parse("(_4,_6,_8):(_1,_8,_12)"), 4)
    of_run_time = run_operation("upcast", {"Shape": "(_4,_8)", "Stride": "(int,_6)", "N": "4"})
    assert of_run_time is not None and not any("pad" in change for change in of_run_time.changes)
    assert of_run_time.lines[1].startswith("stride 6 (of the mode of size 8)")


@pytest.mark.parametrize(("columns", "works"), [(33, False), (32, True)])
def test_a_dense_copy_is_a_change_only_if_a_tensor_map_takes_it(columns: int, works: bool) -> None:
    (reading,) = readings_of(f"torch.Size([64, {columns}]) stride ({2 * columns}, 2), torch.float16")
    offered = ("copy it once: x.contiguous()",)
    assert (reading.changes, reading.advice) == ((offered, ()) if works else ((), offered))


@pytest.mark.parametrize(("count", "advice"), [(1024, 1), (1000, 0)])
def test_padded_scales_without_sizes_are_advice(count: int, advice: int) -> None:
    text = f"for MX scaling scale_a must have {count} (got: 800)"
    (reading,) = [one for one in readings_of(text) if one.kind.startswith("An error")]
    assert not reading.changes and len(reading.advice) == advice
