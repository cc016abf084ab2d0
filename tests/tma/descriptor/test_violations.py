"""Each rule at its bound and one beyond, for each kind; all broken rules at once."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cute_py.errors import InvalidTypeError, InvalidValueError, TmaLimitError
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.expressions import RequestForm
from cute_py.tma.descriptor.limits import BY_NAME, RULES, architecture, unknown_addition
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapTiled
from cute_py.tma.descriptor.violations import CHECKS, _lister, broken_rules, keeps_rules, map_judge, violations
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE, near_legal, wild

U8 = TensorMapTiled(0, 0x1000, (512, 64, 64), (1024, 65536), (128, 8, 2))
INTERLEAVED = TensorMapTiled(6, 0x1000, (16, 8, 4), (256, 2048), (16, 4, 1), interleave=2, swizzle=1)
IM3 = TensorMapIm2col(6, 0x1000, (64, 16, 2), (128, 2048), (0,), (0,), 64, 8)
IM5 = TensorMapIm2col(6, 0x1000, (64, 16, 16, 16, 2), (128, 2048, 32768, 1 << 20), (0,) * 3, (0,) * 3, 64, 8)
PACKED = TensorMapTiled(14, 0x1000, (256, 8), (128,), (128, 8))

EDGES: list[tuple[TensorMap, str, Any, Any, str]] = [
    # request, argument, last legal value, first illegal value, rule
    (TILED, "global_address", (1 << 57) - 16, 1 << 57, "address_range"),
    (TILED, "global_address", 0, -16, "address_range"),
    (TILED, "global_address", 16, 8, "address_alignment"),
    (INTERLEAVED, "global_address", 32, 16, "address_alignment_interleave_32b"),
    (TILED, "global_dim", (1, 1024), (0, 1024), "size"),
    (TILED, "global_dim", (512, 1 << 32), (512, (1 << 32) + 1), "size"),
    (TILED, "global_strides", (0,), (-16,), "stride_range"),
    (TILED, "global_strides", ((1 << 40) - 16,), (1 << 40,), "stride_range"),
    (TILED, "global_strides", (16,), (24,), "stride_alignment"),
    (INTERLEAVED, "global_strides", (32, 32), (32, 16), "stride_alignment_interleave_32b"),
    (TILED, "element_strides", (1, 8), (1, 9), "element_stride"),
    (TILED, "element_strides", (1, 1), (0, 1), "element_stride"),
    (U8, "box_dim", (128, 256, 1), (128, 257, 1), "box"),
    (U8, "box_dim", (128, 1, 1), (128, 0, 1), "box"),
    (U8, "box_dim", (256, 1, 1), (272, 1, 1), "box"),
    (U8, "box_dim", (16, 1, 1), (15, 1, 1), "inner_bytes"),
    (TILED, "box_dim", (64, 1), (72, 1), "inner_span"),
    (U8, "box_dim", (128, 256, 7), (128, 256, 8), "box_bytes"),
    (replace(U8, data_type=5, global_dim=(512, 64, 64)), "box_dim", (64, 57, 8), (64, 58, 8), "box_bytes"),
    (TILED, "interleave", 0, 3, "interleave"),
    (TILED, "interleave", 0, 1, "rank_interleave"),
    (TILED, "swizzle", 3, 4, "swizzle"),
    (TILED, "l2_promotion", 3, 4, "l2_promotion"),
    (TILED, "oob_fill", 1, 2, "oob_fill"),
    (replace(TILED, oob_fill=1), "data_type", 6, 1, "nan_fill"),
    (replace(TILED, box_dim=(32, 8)), "data_type", 12, 13, "data_type"),
    (replace(TILED, box_dim=(32, 8)), "data_type", 0, -1, "data_type"),
    (WIDE, "mode", 1, 2, "wide_mode"),
    (IM3, "channels_per_pixel", 256, 264, "channels"),
    (IM3, "channels_per_pixel", 8, 0, "channels"),
    (IM3, "pixels_per_column", 1024, 1025, "pixels"),
    (IM3, "pixels_per_column", 1, 0, "pixels"),
    (replace(IM3, channels_per_pixel=256), "pixels_per_column", 456, 457, "box_bytes"),
    (replace(IM3, global_dim=(64, 1 << 20, 2)), "pixel_box_lower_corner", (32767,), (32768,), "corner_range"),
    (IM3, "pixel_box_lower_corner", (-32768,), (-32769,), "corner_range"),
    (replace(IM3, global_dim=(64, 1 << 20, 2)), "pixel_box_upper_corner", (-32768,), (-32769,), "corner_range"),
    (IM2COL, "pixel_box_upper_corner", (127, 127), (127, 128), "corner_range"),
    (IM2COL, "pixel_box_lower_corner", (-128, -128), (-129, -128), "corner_range"),
    (IM5, "pixel_box_lower_corner", (-16, 15, 15), (-17, 15, 15), "corner_range"),
    (IM5, "pixel_box_upper_corner", (15, 15, 15), (15, 15, 16), "corner_range"),
    (IM3, "pixel_box_lower_corner", (15,), (16,), "bounding_box"),
    (IM3, "pixel_box_upper_corner", (-15,), (-16,), "bounding_box"),
    (IM3, "global_dim", (64, 1 << 31, 2), (64, (1 << 31) + 1, 2), "bounding_box"),
    (replace(IM3, pixel_box_upper_corner=(1,)), "global_dim", (64, (1 << 31) - 1, 2), (64, 1 << 31, 2), "bounding_box"),
    (replace(WIDE, data_type=0, interleave=1, channels_per_pixel=256), "pixels_per_column", 912, 913, "box_bytes"),
    (WIDE, "global_dim", (64, 16, 1 << 31, 2), (64, 16, (1 << 31) + 1, 2), "wide_size"),
    (replace(IM3, interleave=1, pixel_box_lower_corner=(3,)), "global_dim", (4, 1, 1), (3, 9, 1), "bounding_box"),
]


@each_of(("request_", "argument", "good", "bad", "rule"), EDGES)
def test_the_bound_itself_is_legal_and_the_next_value_is_not(
    request_: TensorMap, argument: str, good: Any, bad: Any, rule: str
) -> None:
    legal = replace(request_, **{argument: good})
    assert violations(legal) == []
    assert len(encode(legal)) == 128
    illegal = replace(request_, **{argument: bad})
    assert rule in [violation.rule for violation in violations(illegal)]
    with pytest.raises(TmaLimitError):
        encode(illegal)


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        ({"global_dim": (), "global_strides": (), "box_dim": (), "element_strides": ()}, ["rank"]),
        (
            {
                "global_dim": (64,) * 6,
                "global_strides": (128,) * 5,
                "box_dim": (8,) + (1,) * 5,
                "element_strides": (1,) * 6,
            },
            ["rank"],
        ),
        ({"global_strides": ()}, ["length"]),
        ({"box_dim": (64,)}, ["length"]),
        ({"element_strides": (1,)}, ["length"]),
    ],
)
def test_rank_and_lengths(change: dict[str, Any], rules: list[str]) -> None:
    assert [violation.rule for violation in violations(replace(TILED, **change))] == rules


def test_im2col_needs_rank_three() -> None:
    flat = TensorMapIm2col(6, 0x1000, (64, 16), (128,), (), (), 64, 8)
    assert [violation.rule for violation in violations(flat)] == ["rank_im2col"]


def test_a_request_without_a_format_is_refused() -> None:
    assert [violation.rule for violation in violations(replace(TILED, data_type=None))] == ["data_type"]


PACKED_EDGES = [
    ("global_address", 0x1020, 0x1010, "packed_address"),
    ("global_dim", (128, 8), (130, 8), "packed_size"),
    ("global_strides", (64,), (48,), "packed_stride"),
    ("box_dim", (128, 8), (64, 8), "packed_box"),
    ("swizzle", 3, 2, "packed_swizzle"),
]


@pytest.mark.parametrize(("argument", "good", "bad", "rule"), PACKED_EDGES)
def test_packed_formats_on_sm_100(argument: str, good: Any, bad: Any, rule: str) -> None:
    assert violations(replace(PACKED, **{argument: good}), arch="sm_100a") == []
    assert rule in [v.rule for v in violations(replace(PACKED, **{argument: bad}), arch="sm_100a")]


def test_packed_formats_of_six_bits_and_of_eight_bytes() -> None:
    six = TensorMapTiled(15, 0x1000, (256, 8, 2), (192, 1536), (128, 8, 1), interleave=1)
    assert "packed_interleave" in [v.rule for v in violations(six, arch="sm_100a")]
    odd = TensorMapTiled(13, 0x1000, (65, 8), (64,), (32, 8))
    assert [v.rule for v in violations(odd, arch="sm_100a")] == ["packed_size_align8"]


def test_every_rule_has_an_edge() -> None:
    tried = {rule for *_, rule in (*EDGES, *PACKED_EDGES)}
    tried |= {"rank", "rank_im2col", "length", "packed_interleave", "packed_size_align8"}
    tried |= {"unknown_format", "unknown_rank"}  # test_round_trip.py
    assert tried == {rule.name for rule in RULES}
    assert len(BY_NAME) == len(RULES)
    assert {check.rule for check in CHECKS} == set(BY_NAME), "each rule is applied by a row of the one table"
    assert all(rule.source and rule.requirement for rule in RULES)


def test_all_violations_are_told_together() -> None:
    bad = TensorMapTiled(1, 8, (0, 4), (24,), (300, 0), (9, 1), oob_fill=1)
    assert [violation.rule for violation in violations(bad)] == [
        "nan_fill",
        "address_alignment",
        "size",
        "stride_alignment",
        "element_stride",
        "box",
        "box",
        "inner_bytes",
    ]


@given(wild())
def test_any_request_has_an_answer(request: TensorMap) -> None:
    for violation in violations(request):
        assert violation.message and violation.source and violation.rule in BY_NAME


FIELD_OF = {
    "globalDim": "global_dim",
    "globalStrides": "global_strides",
    "elementStrides": "element_strides",
    "boxDim": "box_dim",
}


@given(st.one_of(wild(), near_legal))
def test_a_violation_names_the_mode_of_its_argument(request: TensorMap) -> None:
    """And its value. `globalStrides` begins at mode 1, everything else at mode 0."""
    for violation in violations(request, arch="sm_100a"):
        indexed = re.fullmatch(r"(\w+)\[(\d)\]", violation.argument)
        if indexed and indexed[1] in FIELD_OF:
            index = int(indexed[2])
            assert violation.mode == index + (indexed[1] == "globalStrides")
            assert violation.value == getattr(request, FIELD_OF[indexed[1]])[index]


@pytest.mark.parametrize(
    ("change", "argument", "mode"),
    [
        ({"global_strides": (128, 1 << 40)}, "globalStrides[1]", 2),
        ({"global_strides": (-16, 128)}, "globalStrides[0]", 1),
        ({"global_dim": (130, 8, 2)}, "globalDim[0]", 0),
        ({"box_dim": (64, 8, 2)}, "boxDim[0]", 0),
        ({"global_strides": (128, 48)}, "globalStrides[1]", 2),
    ],
)
def test_the_mode_of_a_violation_of_a_packed_map(change: dict[str, Any], argument: str, mode: int) -> None:
    packed = TensorMapTiled(14, 0x1000, (256, 8, 2), (128, 1024), (128, 8, 2))
    assert violations(packed, arch="sm_100a") == []
    found = violations(replace(packed, **change), arch="sm_100a")
    value = change[FIELD_OF[argument[:-3]]][int(argument[-2])]
    assert (argument, mode, value) in [(violation.argument, violation.mode, violation.value) for violation in found]


@given(
    st.integers(0, 1 << 32),
    st.integers(-(1 << 15), (1 << 15) - 1),
    st.integers(-(1 << 15), (1 << 15) - 1),
)
def test_the_bounding_box_is_counted_in_32_bits(size: int, low: int, high: int) -> None:
    """size - 1 + high - low, wrapped to 32 bits with a sign, must not be negative."""
    request = replace(IM3, global_dim=(64, size, 2), pixel_box_lower_corner=(low,), pixel_box_upper_corner=(high,))
    wrapped = (size - 1 + high - low) % (1 << 32)
    found = [violation for violation in violations(request) if violation.rule == "bounding_box"]
    assert bool(found) == (wrapped >= 1 << 31)
    assert [violation.mode for violation in found] == [1] * len(found)


@given(near_legal)
def test_violations_and_encode_agree(request: TensorMap) -> None:
    if violations(request):
        with pytest.raises(TmaLimitError):
            encode(request)
    else:
        encode(request)


def test_the_limit_of_a_box_is_that_of_the_gpu() -> None:
    large = replace(U8, box_dim=(128, 256, 4))
    assert violations(large, arch="sm_90a") == []
    assert [violation.rule for violation in violations(large, arch="sm_120a")] == ["box_bytes"]


@pytest.mark.parametrize("arch", ["sm_80", "90", "", "sm_900"])
def test_an_unknown_gpu_is_refused(arch: str) -> None:
    with pytest.raises(InvalidValueError, match="is not a known architecture with TMA"):
        violations(TILED, arch=arch)


def test_what_is_no_request_is_refused() -> None:
    with pytest.raises(InvalidTypeError, match="expected a tensor map request, got bytes"):
        violations(b"")  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="expected a tensor map request, got int"):
        encode(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="must be a name"):
        violations(TILED, arch=90)  # type: ignore[arg-type]


def _quick_answer_agrees(request: TensorMap, arch: str = "sm_90a") -> bool:
    """`keeps_rules` is true of the requests that break no rule and whose bits are known, and of no other."""
    gpu = architecture(arch)
    known = unknown_addition(request) is None
    return keeps_rules(request, gpu) == (known and not broken_rules(request, gpu))


@given(st.one_of(near_legal, wild()), st.sampled_from(["sm_90a", "sm_100a"]))
def test_the_quick_answer(request: TensorMap, arch: str) -> None:
    assert _quick_answer_agrees(request, arch)


@each_of(("request_", "argument", "last", "first", "rule"), EDGES)
def test_the_quick_answer_at_each_edge(request_: TensorMap, argument: str, last: Any, first: Any, rule: str) -> None:
    assert _quick_answer_agrees(replace(request_, **{argument: last}))
    assert _quick_answer_agrees(replace(request_, **{argument: first}))


def test_the_quick_answer_bounds_no_batch() -> None:
    many = replace(IM3, global_dim=(64, 16, 1 << 32))
    assert not violations(many) and _quick_answer_agrees(many)


def test_a_bound_stands_in_the_table_alone() -> None:
    """The quick answer, the list and the batch judge by one row: moved there, the bound moves in all three."""
    judged, form = map_judge.__wrapped__, RequestForm.of(U8)
    gpu = architecture("sm_90a")
    shorter = replace(BY_NAME["box"], maximum=4)
    try:
        BY_NAME["box"] = shorter
        for strict in (True, False):
            assert judged(form, strict=strict)(U8, U8.data_type, gpu.shared_memory_bytes)
        lister = _lister.__wrapped__
        found: list[str] = []
        lister(form.kind, form.lengths)(
            *(U8, 0, True, False, 0, 0, 12, 3, gpu.shared_memory_bytes, gpu, ()),
            lambda rule, argument, value, *rest: found.append(f"{rule}, {argument}: {value}"),
        )
        assert found == ["box, boxDim[0]: 128", "box, boxDim[1]: 8"]
    finally:
        BY_NAME["box"] = RULES[[rule.name for rule in RULES].index("box")]
