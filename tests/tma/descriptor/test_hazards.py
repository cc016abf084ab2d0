"""Each row of the table of legal and harmful, on a map that it applies to and on one that it does not."""

from __future__ import annotations

import types
from dataclasses import replace

import pytest
from hypothesis import given

import cute_py as cute
from cute_py import Int, Layout
from cute_py.errors import InvalidTypeError
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.hazards import HAZARDS, hazards
from cute_py.tma.descriptor.request import TensorMap, TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE, near_legal, wild

SMALL = replace(TILED, global_dim=(512, 128))
SLICED = TensorMapTiled(6, 0x1000, (16, 8, 4), (512, 4096), (16, 1, 1), interleave=2, swizzle=1)


def _with_bit(request: TensorMap, word: int, bit: int) -> TensorMap:
    raw = int.from_bytes(encode(request), "little") ^ 1 << (64 * word + bit)
    return decode(raw.to_bytes(128, "little"))


CASES: list[tuple[str, TensorMap, TensorMap, str]] = [
    ("null address", replace(TILED, global_address=0), replace(TILED, global_address=16), "globalAddress = 0"),
    ("ragged rows", replace(TILED, global_dim=(509, 64)), replace(TILED, global_dim=(504, 64)), "rows of 1018 bytes"),
    ("box beyond tensor", replace(TILED, global_dim=(63, 128)), TILED, "boxDim[0] = 64 > 63"),
    (
        "stride 0",
        replace(TILED, global_strides=(0,)),
        replace(TILED, global_strides=(0,), global_dim=(512, 1)),
        "globalStrides[0] = 0",
    ),
    ("overlap", replace(TILED, global_strides=(1008,)), TILED, "globalStrides[0] = 1008 < 1024 bytes"),
    (
        "tf32 rounding",
        replace(TILED, data_type=11, box_dim=(32, 8)),
        replace(TILED, data_type=7, box_dim=(32, 8)),
        "TFLOAT32",
    ),
    ("ftz", replace(TILED, data_type=10, box_dim=(32, 8)), replace(TILED, data_type=7, box_dim=(32, 8)), "FLOAT32_FTZ"),
    (
        "driver's note",
        replace(TILED, box_dim=(64, 9), element_strides=(1, 2)),
        replace(TILED, box_dim=(64, 8), element_strides=(1, 2)),
        "note 512 bytes, delivered 640 bytes",
    ),
    ("element stride of mode 0", replace(TILED, element_strides=(2, 1)), TILED, "elementStrides[0] = 2"),
    ("interleave 32B", replace(SLICED, swizzle=3), SLICED, "swizzle 3"),
    ("channel slice", replace(SLICED, box_dim=(16, 4, 1)), SLICED, "boxDim[1] = 4"),
    ("row gap", replace(TILED, box_dim=(32, 8)), TILED, "rows of 64 bytes, 128 apart"),
    ("store corners", IM2COL, replace(IM2COL, pixel_box_lower_corner=(0, 0)), "corners (-1, -1) to (-1, -1)"),
    ("wide swizzle", replace(WIDE, swizzle=1, channels_per_pixel=16), WIDE, "swizzle 1"),
    (
        "coordinates",
        replace(TILED, global_dim=(512, (1 << 31) + 1)),
        replace(TILED, global_dim=(512, 1 << 31)),
        "globalDim[1] = 2147483649",
    ),
    ("unknown bits", _with_bit(TILED, 3, 60), TILED, "word 3 has 0x1000000000000000"),
    ("old notes", _with_bit(TILED, 8, 0), TILED, "words 8"),
    ("driver bug", _with_bit(replace(SMALL, global_dim=(512, 127)), 1, 21), _with_bit(SMALL, 1, 21), "bit 85"),
]


@each_of(("name", "applies", "does_not", "values"), CASES, ids=lambda case: case if isinstance(case, str) else "")
def test_each_row(name: str, applies: TensorMap, does_not: TensorMap, values: str) -> None:
    assert not violations(applies) and not violations(does_not), "hazards are legal"
    assert {warned.rule: warned.detail for warned in hazards(applies)}[name] == values
    assert name not in {warned.rule for warned in hazards(does_not)}


def test_every_row_has_a_case() -> None:
    assert [row.name for row in HAZARDS] == [name for name, *_ in CASES]
    assert all(row.effect and row.source for row in HAZARDS)


def test_an_atom_has_the_hazards_of_its_map() -> None:
    """`hazards` reads what `violations` reads: a request, or an object that holds one."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(0, "float16"), Layout((64, 64), (64, Int(1))))
    atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_64,_64):(_64,_1)")
    assert [one.rule for one in hazards(atom)] == [one.rule for one in hazards(atom.request)]
    assert "null address" in [one.rule for one in hazards(atom)] and violations(atom) == []
    for wrong in (3, None, object(), atom.tile):
        with pytest.raises(InvalidTypeError, match="a tensor map must be bytes, a buffer, words or text"):
            hazards(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidTypeError, match="expected a tensor map request"):
        hazards(types.SimpleNamespace(request=4))


def test_a_plain_map_has_none() -> None:
    assert hazards(TILED) == []
    assert hazards(encode(TILED)) == []
    assert hazards(encode(TILED).hex()) == []


@given(near_legal)
def test_near_legal_requests_have_an_answer(request: TensorMap) -> None:
    assert all(str(warned) for warned in hazards(request))


@given(wild())
def test_any_request_has_an_answer(request: TensorMap) -> None:
    assert all(str(warned) for warned in hazards(request))


def test_channel_slices_of_im2col() -> None:
    sliced = replace(IM2COL, interleave=1, swizzle=0, channels_per_pixel=16)
    assert {warned.rule: warned.detail for warned in hazards(sliced)}[
        "channel slice"
    ] == "32 channel bytes, slice of 16"


def test_strides_in_any_order_do_not_overlap() -> None:
    permuted = TensorMapTiled(6, 0x1000, (64, 8, 16), (16 * 128, 128), (64, 8, 1))
    assert "overlap" not in {warned.rule for warned in hazards(permuted)}
