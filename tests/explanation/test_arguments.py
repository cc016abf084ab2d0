"""The arguments of tensor maps in source code: expressions with the types of C, arrays, and addresses."""

from __future__ import annotations

import pytest

import cute_py as cute
from cute_py.errors import InvalidValueError
from cute_py.explanation.dispatch import readings_of
from cute_py.explanation.readings import Reading, type_bits
from cute_py.explanation.rows.source_constants import SourceConstants, Used
from cute_py.explanation.rows.source_integers import OVERFLOW, IntegerType, typed_integer

CALL = """\
cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void*)ADDRESS, dims, strides, box, steps,
    CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
    CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)"""
ARRAYS = {"dims": "uint64_t dims[2] = {128, 64}", "strides": "uint64_t strides[1] = {256}"}
ARRAYS |= {"box": "uint32_t box[2] = {64, 64}", "steps": "uint32_t steps[2] = {1, 1}"}


def encoded(before: str = "", address: str = "0x7f0000000000", **arrays: str) -> Reading:
    """The reading of a call with these definitions of its arrays."""
    source = ";\n".join([*(ARRAYS | arrays).values(), CALL.replace("ADDRESS", address)])
    (reading,) = readings_of(f"{before}\n{source};\n")
    return reading


# ---- the address ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [ARRAYS["dims"], "uint64_t* dims = sizes"])
def test_an_address_is_hexadecimal(dims: str) -> None:
    (found,) = encoded(address="0x7f5c0000a404", dims=dims).broken
    assert found.message == "globalAddress = 0x7f5c0000a404; must be a multiple of 16"
    assert found.value == 0x7F5C0000A404


def test_an_address_of_a_printed_map_is_hexadecimal() -> None:
    text = "TMA Desc Addr: 0x7ffe0d7f7d40\nformat 9\ndim 2\ngmem_address 0x7f5c0000a404\nglobalDim (64,64)\n"
    text += "globalStrides (2,128)\nboxDim (64,64)\nelementStrides (1,1)\ninterleave 0\nswizzle 3\n"
    said = str(cute.explain(text))
    assert "globalAddress = 0x7f5c0000a404; must be a multiple of 16" in said and "140033113760772" not in said


# ---- the types of C ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value", "kind"),
    [
        ("2147483647", 2**31 - 1, IntegerType(32)),
        ("2147483648", 2**31, IntegerType(64)),
        ("0xffffffff", 2**32 - 1, IntegerType(32, signed=False)),
        ("46340 * 46340", 46340**2, IntegerType(32)),
        ("65536LL * 65536", 2**32, IntegerType(64)),
        ("(uint64_t)65536 * 65536", 2**32, IntegerType(64, signed=False)),
        ("uint64_t(65536) * 65536", 2**32, IntegerType(64, signed=False)),
        ("static_cast<int64_t>(65536) * 65536", 2**32, IntegerType(64)),
        ("sizeof(half) * 65536 * 65536", 2**33, IntegerType(64, signed=False)),
        ("1u << 31", 2**31, IntegerType(32, signed=False)),
        ("(100 + 15) & ~15", 112, IntegerType(32)),
        ("-7 / 2", -3, IntegerType(32)),
        ("-7 % 3", -1, IntegerType(32)),
        ("017 + 1'000", 1015, IntegerType(32)),
        ("cute::ceil_div(100, 64) * 64", 128, IntegerType(32)),
        ("(unsigned char)65 * 2", 130, IntegerType(32)),
        ("sizeof_bits<half>::value / 8", 2, IntegerType(32)),
    ],
)
def test_an_expression_has_the_value_and_the_type_of_c(written: str, value: int, kind: IntegerType) -> None:
    assert typed_integer(written, type_bits) == (value, kind)


@pytest.mark.parametrize(
    "written",
    [
        *("46341 * 46341", "65536 * 65536", "2147483647 + 1", "-2147483647 - 2", "1 << 31", "1 << 32", "1 << 64"),
        *("65536 * 65536 * sizeof(half)", "(uint64_t)(65536 * 65536)", "3u - 5", "65536u * 65536u", "0xffffffff + 1"),
        *("9223372036854775807 + 1", "1ll << 63"),
    ],
)
def test_a_result_that_does_not_fit_its_type_is_refused(written: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        typed_integer(written, type_bits)
    assert refused.value.rule == OVERFLOW


@pytest.mark.parametrize("written", ["", "1 +", "x", "2 * (3", "09", "7 // 2", "1 / 0", "1.5", "sizeof(T)", "1 << -1"])
def test_other_texts_are_no_expressions(written: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        typed_integer(written, type_bits)
    assert refused.value.rule != OVERFLOW


@pytest.mark.parametrize(("written", "value"), [("7 // 2", 3), ("-7 // 2", -4), ("6 / 2", 3), ("65536 * 65536", 2**32)])
def test_numbers_of_python_have_no_width(written: str, value: int) -> None:
    assert typed_integer(written, type_bits, of_python=True).value == value


def test_a_product_of_ints_that_overflows_is_no_size() -> None:
    reading = encoded("const int M = 65536, N = 65536;", dims="uint64_t dims[2] = {M * N, 64}")
    (found,) = reading.broken
    assert found.rule == OVERFLOW and not reading.judged
    overflows = "65536 * 65536 = 4294967296 overflows int, which holds -2147483648 to 2147483647"
    assert found.message == f"`M * N`: {overflows}"
    assert reading.changes == ("M * N -> (int64_t)M * N",)
    repaired = encoded("const int M = 65536, N = 65536;", dims="uint64_t dims[2] = {(int64_t)M * N, 64}")
    assert repaired.judged and OVERFLOW not in {one.rule for one in repaired.broken}


@pytest.mark.parametrize("written", ["65536 * 65536", "1 << 40"])
def test_an_overflow_without_names_is_found(written: str) -> None:
    (found,) = encoded(dims=f"uint64_t dims[2] = {{{written}, 64}}").broken
    assert found.rule == OVERFLOW


def test_an_overflow_of_a_definition_is_found_where_it_is_used() -> None:
    reading = encoded("int count = 65536 * 65536;", dims="uint64_t dims[2] = {count, 64}")
    assert [one.rule for one in reading.broken] == [OVERFLOW] and not reading.changes
    assert not encoded("int count = 65536 * 65536;").broken


@pytest.mark.parametrize("declared", ["int64_t", "size_t", "long long", "unsigned long", "auto64"])
def test_a_wide_type_holds_the_product(declared: str) -> None:
    source = f"const {declared} M = 65536, N = 65536;".replace("auto64 M = 65536", "auto M = 65536ll")
    assert SourceConstants(source).evaluate("M * N") == "4294967296"


# ---- types by other names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("defined", "size"),
    [
        ("using T = half;", "2"),
        ("typedef float T;", "4"),
        ("#define T __nv_bfloat16\n", "2"),
        ("using U = cutlass::half_t; using T = U;", "2"),
        ("using T = half2;", "4"),
        ("using T = float4;", "16"),
        ("using T = long;", "8"),
        ("using T = unsigned char;", "1"),
        ("using T = half; using T = float;", "sizeof(T)"),
        ("using T = HalfTile;", "sizeof(T)"),
        ("template <class T> void f();", "sizeof(T)"),
        ("using T = U; using U = T;", "sizeof(T)"),
    ],
)
def test_the_size_of_a_type_by_another_name(defined: str, size: str) -> None:
    assert SourceConstants(f"{defined} int N = 1;").evaluate("sizeof(T)") == size


# ---- arrays --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "listed"),
    [
        ("uint64_t d[2]; d[0] = 128; d[1] = 64;", "{128, 64}"),
        ("const int M = 128; uint64_t d[2]; d[1] = M / 2; d[0] = M;", "{128, 64}"),
        ("uint64_t d[2] = {1, 2}; d[1] = 64;", "{1, 64}"),
        ("uint64_t d[3] = {}; d[0] = 8;", "{8, 0, 0}"),
        ("d[0] = 128\nd[1] = 64\n", "{128, 64}"),
        ("d = [1, 2]\nd[1] = 64\n", "{1, 64}"),
        ("uint64_t d[2]; d[0] = 128;", None),  # not all elements
        ("uint64_t d[2]; d[0] = 128; d[0] = 64; d[1] = 1;", None),  # several values
        ("uint64_t d[2]; d[0] = 128; d[1] = n;", None),
        ("uint64_t d[2]; for (int i = 0; i < 2; ++i) d[i] = 1;", "{1, 1}"),
        ("uint64_t d[2] = {1, 2}; d[0] *= 2;", None),
        ("uint64_t d[2] = {1, 2}; if (x) d[0] = 4;", None),
        ("uint64_t d[n]; d[0] = 128; d[1] = 64;", "{128, 64}"),
    ],
)
def test_elements_that_code_sets(source: str, listed: str | None) -> None:
    assert SourceConstants(source).elements("d", Used()) == listed


def test_an_array_that_code_sets_element_by_element_is_judged() -> None:
    reading = encoded(dims="uint64_t dims[2];\ndims[0] = 128; dims[1] = 64")
    assert reading.judged and not reading.broken
    assert "tensor           : (128,64):(1,128), row-major (64,128):(128,1), elements" in reading.meaning


def test_an_array_with_other_elements_is_not_judged() -> None:
    reading = encoded(dims="uint64_t dims[2] = {0, 0};\nfor (int i = 0; i < 2; ++i) dims[i] = shape[i]")
    assert not reading.judged and not reading.broken
    assert any("the code sets elements of `dims` to values that are not constants" in one for one in reading.missing)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("dims", "std::array<uint64_t, 2> dims = {128, 64}"),
        ("dims", "std::array<uint64_t, 2> dims{128, 64}"),
        ("dims", "std::vector<uint64_t> dims({128, 64})"),
        ("dims", "auto dims = std::array<uint64_t, 2>{128, 64}"),
        ("strides", "uint64_t strides[] = {128 * sizeof(half)}"),
    ],
)
def test_forms_of_arrays(name: str, written: str) -> None:
    reading = encoded(**{name: written})
    assert reading.judged and not reading.broken


def test_a_compound_literal_is_a_list() -> None:
    arrays = {name: f"(cuuint64_t[]){{{line.partition('{')[2]}" for name, line in ARRAYS.items()}
    text = CALL.replace("ADDRESS", "0x1000")
    for name, literal in arrays.items():
        text = text.replace(f" {name},", f" {literal},")
    (reading,) = readings_of(f"{text};")
    assert reading.judged and not reading.broken


def test_bindings_of_python_make_numbers() -> None:
    lists = {"dims": (128, 64), "strides": (256,), "box": (64, 64), "steps": (1, 1)}
    made = [f"{n} = [{', '.join(f'cuda.cuuint64_t({one})' for one in row)}]" for n, row in lists.items()]
    (reading,) = readings_of(
        "\n".join([*made, "cuTensorMapEncodeTiled(FLOAT16, 2, p, dims, strides, box, steps, 0, 3, 0, 0)"])
    )
    assert reading.judged and not reading.broken
    made = [f"{n} = (ctypes.c_uint64 * {len(row)}){str(row).replace(',)', ')')}" for n, row in lists.items()]
    (reading,) = readings_of(
        "\n".join([*made, "cuTensorMapEncodeTiled(FLOAT16, 2, p, dims, strides, box, steps, 0, 3, 0, 0)"])
    )
    assert reading.judged and not reading.broken


# ---- variables that a call may change ------------------------------------------------------------------------------


def test_a_variable_that_a_call_fills_by_reference_is_no_size() -> None:
    reading = encoded("int M = 0, N = 64; get_shape(x, M);", dims="uint64_t dims[2] = {M, N}")
    assert not reading.judged and not reading.broken
    assert any(one.startswith("global_dim (`{M, N}` is not computed here") for one in reading.missing)


def test_a_call_that_may_change_a_value_is_named() -> None:
    reading = encoded("int M = 128; get_shape(x, M);", dims="uint64_t dims[2] = {M, 64}")
    assert reading.judged
    assert "M = 128, as defined; not judged: whether `get_shape(x, M)` changes it" in reading.meaning


@pytest.mark.parametrize(
    "before",
    ["const int M = 128; get_shape(x, M);", 'int M = 128; printf("%d", M);', "int M = 128; cudaMalloc(&p, M);"],
)
def test_a_call_that_can_not_change_a_value_is_not_named(before: str) -> None:
    reading = encoded(before, dims="uint64_t dims[2] = {M, 64}")
    assert reading.judged and not any("not judged" in line for line in reading.meaning)


def test_an_array_that_a_call_fills_is_no_list_of_zeros() -> None:
    reading = encoded("void f();", strides="uint64_t strides[1] = {0};\nfill(strides)")
    assert not reading.judged and not reading.broken


@pytest.mark.parametrize(("box", "rules"), [("256", set()), ("272", {"box"})])
def test_a_map_of_one_mode_takes_addresses_of_numbers(box: str, rules: set[str]) -> None:
    call = CALL.replace("2, (void*)ADDRESS, dims, strides, box, steps", "1, p, &n, nullptr, &box, &one")
    call = call.replace("FLOAT16", "UINT8").replace("SWIZZLE_128B", "SWIZZLE_NONE")
    (reading,) = readings_of(f"uint64_t n = 1024; uint32_t box = {box}, one = 1;\n{call};")
    assert reading.judged and {one.rule for one in reading.broken} == rules


PRINTED = "globalDim[0] = 128\nglobalDim[1] = 64\nglobalStrides[0] = STRIDE\nboxDim[0] = 64\nboxDim[1] = 64\n"
INTERLEAVED = "globalDim[0]: 128 boxDim[0]: 64 globalStrides[0]: STRIDE\nglobalDim[1]: 64 boxDim[1]: 64"


@pytest.mark.parametrize("text", [PRINTED, INTERLEAVED, PRINTED.replace("\n", "; "), "long globalDim[2];\n" + PRINTED])
@pytest.mark.parametrize(("stride", "rules"), [("256", set()), ("250", {"stride_alignment"})])
def test_named_elements_are_one_list(text: str, stride: str, rules: set[str]) -> None:
    (reading,) = readings_of(text.replace("STRIDE", stride))
    assert reading.judged and {one.rule for one in reading.broken if one.severity == "error"} == rules
    assert any(line.startswith("tensor           : (128,64)") for line in reading.meaning)


def test_an_expression_that_is_not_computed_is_no_address() -> None:
    (reading,) = readings_of("globalDim = {65536 * 65536, 4}; globalStrides = {8192}; boxDim = {64, 4};")
    assert [one.rule for one in reading.broken] == [OVERFLOW]
    assert reading.missing[0].startswith("global_dim (`{65536 * 65536, 4}` is not computed here")
