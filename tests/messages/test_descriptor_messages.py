"""The exact words of the descriptor package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cute_py.errors import CuteError
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.read import read_map
from cute_py.tma.descriptor.replace import rebind, update_tma_descriptor
from cute_py.tma.descriptor.replace import replace as rewritten
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import violations
from tests.each import each_of
from tests.tma.descriptor.requests import IM2COL, TILED, WIDE

MEASURED = "measured on NVIDIA H200, driver 580.159.04"
BOTH = f"CUDA 13.0 driver API, Tensor Map Object Management; {MEASURED}"


def text_of(action: Callable[[], Any]) -> str:
    with pytest.raises(CuteError) as caught:
        action()
    return str(caught.value)


def test_one_broken_rule() -> None:
    assert text_of(lambda: encode(replace(TILED, global_strides=(1032,)))) == (
        "globalStrides[0] = 1032 bytes; must be a multiple of 16\n"
        "  mode   : TMA mode 1 (0 is innermost)\n"
        "  call   : cuTensorMapEncodeTiled, sm_90a\n"
        "  rule   : stride_alignment\n"
        f"  source : {BOTH}\n"
        "  hint   : this change makes the request legal: globalStrides (1032,) -> (1040,) bytes: "
        "pad each row to 520 elements"
    )


def test_several_broken_rules() -> None:
    bad = replace(TILED, global_address=8, global_strides=(24,), box_dim=(128, 300), oob_fill=2)
    assert text_of(lambda: encode(bad)) == (
        "cuTensorMapEncodeTiled: the request breaks 5 rules of sm_90a\n  1    : oobFill = 2; must be 0 (zeros) "
        "or 1 (NaN)\n  2    : globalAddress = 0x8; must be a multiple of 16\n  3    : globalStrides[0] = 24 "
        "bytes; must be a multiple of 16\n  4    : boxDim[1] = 300 elements; must be 1 to 256\n  5    : "
        "boxDim[0] in bytes = 256 bytes; must be at most 128 with swizzle 128B\n  hint : this change makes the "
        "request legal: oob_fill 2 -> 0 (zeros); globalAddress 0x8 -> 0x0: start 8 bytes earlier, at a multiple of 16; "
        "globalStrides (24,) -> (32,) bytes: pad each row to 16 elements; boxDim (128, 300) -> (128, 150): 2 "
        "instructions per tile; boxDim (128, 150) -> (64, 150): rows of 128 bytes, 2 instructions side by side"
    )


@each_of(
    ("request_", "message"),
    [
        (
            replace(TILED, box_dim=(7, 1)),
            "boxDim[0] in bytes = 14 bytes (7 elements x 16 bits); must be a multiple of 16",
        ),
        (
            replace(TILED, data_type=2, oob_fill=1, box_dim=(32, 1)),
            "oobFill = 1 (with UINT32); must be 0 (zeros) with an integer format",
        ),
        (replace(TILED, data_type=13), "tensorDataType = 13; must be 0 to 12 on sm_90; 13 to 15 need sm_100 or later"),
        (replace(TILED, global_strides=()), "len(globalStrides) = 0 entries; must be 1 for this rank"),
        (
            TensorMapTiled(0, 0, (16, 4), (16,), (16, 1), interleave=1),
            "tensorRank = 2 modes; must be 3 to 5 with interleave",
        ),
        (replace(IM2COL, pixels_per_column=2000), "pixelsPerColumn = 2000 pixels; must be 1 to 1024"),
        (
            replace(IM2COL, pixel_box_upper_corner=(-20, 0)),
            "pixels of mode 1 after the first = -4 elements (16 - 1 + -20 - -1); "
            "must be 0 or more in signed 32-bit arithmetic",
        ),
        (
            replace(IM2COL, pixel_box_lower_corner=(-129, 0)),
            "pixelBoxLowerCorner[0] = -129 elements; must be -128 to 127 at rank 4",
        ),
        (replace(WIDE, mode=5), "mode = 5; must be 0 (W) or 1 (W128)"),
        (
            replace(
                TILED,
                data_type=0,
                swizzle=0,
                global_dim=(512, 512, 64),
                global_strides=(512, 1 << 18),
                box_dim=(256, 256, 4),
                element_strides=(1, 1, 1),
            ),
            "bytes of the box = 262144 bytes; must be at most 232448, the shared memory of a block on sm_90",
        ),
    ],
)
def test_rules(request_: Any, message: str) -> None:
    assert message in [violation.message for violation in violations(request_)]


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (lambda: decode(bytes(100)), "the tensor map has 100 bytes; must have 64 or 128"),
        (lambda: decode(3.5), "a tensor map must be bytes, a buffer, words or text, got float"),
        (
            lambda: read_map("none here"),
            "the text has neither the words nor the bytes of a tensor map\n  text : 'none here'",
        ),
        (lambda: replace(TILED, box_dim=(64, 1.5)), "box_dim[1] must be an integer, got float 1.5"),
        (
            lambda: update_tma_descriptor(bytes(128), "box_dim", 0, 1),
            "TMA descriptor field is not device-mutable\n"
            "  field   : box_dim\n  mutable : global_address, global_dim, global_stride",
        ),
        (
            lambda: rebind(bytes(128), 0, (4, 4), (16,)),
            "rebind got 2 extents for a map of rank 1, but it can't change the rank\n"
            "  hint : replace(map, 'rank', 1) first",
        ),
        (lambda: rewritten(bytes(128), "rank", 1, 2), "rank has no ordinals"),
        (
            lambda: encode(replace(TILED, swizzle=4), arch="sm_100a"),
            "the bits of a tensor map that encode 128B_ATOM_32B are unknown\n"
            "  field     : swizzle\n"
            "  known     : chunks of 32 bytes within 128; PTX swizzle_mode 3 with swizzle_atomicity 1\n"
            "  exists on : sm_100, sm_103, sm_110, sm_120, sm_121\n"
            "  source    : CUDA 13.0 driver API, Tensor Map Object Management; ptxas 13.0.88\n"
            "  hint      : let the driver of such a GPU encode the map: cute_py.tma.driver_encode(request)",
        ),
    ],
)
def test_errors(action: Callable[[], Any], text: str) -> None:
    assert text_of(action) == text


SUMMARY = """\
tiled tensor map, FLOAT16, rank 2
  address          : 0x1000
  tensor           : (509,1024):(1,512), row-major (1024,509):(512,1), elements
  global strides   : (1024) bytes, modes 1 up
  box              : (32,9) elements, innermost first
  shared memory    : Sw<3,4,3> on bytes over (32,5):(1,64), row-major (5,32):(64,1), elements
  element strides  : (1,2)
  interleave       : NONE
  swizzle          : B128
  l2 promotion     : NONE
  out of bounds    : zeros
  transaction      : 320 bytes
  driver's note    : 256 bytes (word 8; a barrier must not expect it)
  warning          : ragged rows: rows of 1018 bytes; a store at the end of a row overwrites up to the next 16-byte \
boundary
  warning          : driver's note: note 256 bytes, delivered 320 bytes; a barrier must expect the delivered bytes, \
not word 8 of the map
  warning          : row gap: rows of 64 bytes, 128 apart; the bytes between the rows in shared memory \
keep their old values
  judged           : 37 rules of tensor maps on sm_90a"""

IM2COL_SUMMARY = """\
im2col tensor map, FLOAT16, rank 4
  address          : 0x1000
  tensor           : (64,16,16,2):(1,64,1024,16384), row-major (2,16,16,64):(16384,1024,64,1), elements
  global strides   : (128,2048,32768) bytes, modes 1 up
  box              : 64 channels x 128 pixels
  corners          : lower (-1,-1), upper (-1,-1), W first
  shared memory    : Sw<3,4,3> on bytes over (64,128):(1,64), row-major (128,64):(64,1), elements
  element strides  : (1,1,1,1)
  interleave       : NONE
  swizzle          : B128
  l2 promotion     : NONE
  out of bounds    : zeros
  transaction      : 16384 bytes
  warning          : store corners: corners (-1, -1) to (-1, -1); an im2col store through this map traps
  judged           : 37 rules of tensor maps on sm_90a"""

FIELDS = """\
64 bytes, word and bits, value, raw
  w0[0:63]   global_address           4096 bytes (0x1000)
  w1[0]      load_mode                0 (0x0)  tiled
  w1[4:6]    rank                     2 (0x1)
  w1[7:10]   format                   6 (0x6)  FLOAT16
  w1[11:12]  interleave               0 (0x0)  NONE
  w1[13:14]  swizzle                  3 (0x3)  B128
  w1[15]     oob_fill                 0 (0x0)  NONE
  w1[16]     tf32_round               0 (0x0)
  w1[17:18]  l2_promotion             0 (0x0)  NONE
  w1[32:63]  global_stride_low[1]     64 x 16 bytes (0x40)  stride 1024 bytes
  w3[32:35]  global_stride_high[1]    0 x 2**36 bytes (0x0)
  w4[0:31]   global_dim[0]            512 elements (0x1ff)
  w4[32:63]  global_dim[1]            1024 elements (0x3ff)
  w6[32:34]  element_strides[0]       1 elements (0x0)
  w6[35:37]  element_strides[1]       1 elements (0x0)
  w6[56:63]  box_dim[0]               64 elements (0x3f)
  w7[0:7]    box_dim[1]               128 elements (0x7f)"""

SEED_VIEW = """\
eleven fields; the TMA Atoms reference pages call 8 immutable on the device
  global base address      : 0x1000 [mutable; tensormap.replace global_address]
  per-axis dimension sizes : (512,1024) [mutable; tensormap.replace global_dim, not dim_size]
  per-axis strides         : (1024) [mutable; bytes, modes 1 up; global_stride, not stride_size]
  element type             : FLOAT16 [immutable; tensormap.replace elemtype exists]
  rank                     : 2 [immutable; w1[4:6]; tensormap.replace rank exists]
  format                   : tiled [immutable; w1[0]; _at forms leave no bit]
  box shape                : (64,128) [immutable; tensormap.replace box_dim exists]
  swizzle mode             : B128 [immutable; swizzle_mode exists]
  fill mode                : zeros [immutable; one bit, w1[15]; tensormap.replace fill_mode exists]
  OOB fill value           : 0 [immutable; the same bit; no field holds a value]
  interleave layout        : NONE [immutable; interleave_layout exists]
  not in this view         : element strides, L2 promotion, round to tf32, im2col corners"""


def test_summaries() -> None:
    ragged = replace(TILED, global_dim=(509, 1024), box_dim=(32, 9), element_strides=(1, 2))
    assert describe(ragged) == SUMMARY
    assert describe(encode(ragged)) == SUMMARY
    assert describe(IM2COL) == IM2COL_SUMMARY


def test_other_views() -> None:
    assert describe(encode(TILED)[:64], "fields") == FIELDS
    assert describe(TILED, "seed001") == SEED_VIEW
    assert describe(TILED, "slots").splitlines()[:4] == [
        "eight logical slots; the rank is that of the operation",
        "  +0x00 tensor_base_ptr        device address 4096",
        "        measured: w0, as in the view",
        "  +0x08 fmt_dim_stride_packed  device format 6, dim[0] 512, dim[1] 1024",
    ]


def test_a_broken_map_is_told_in_its_summary() -> None:
    lines = describe(bytes([8]) + encode(TILED)[1:]).splitlines()
    assert "  broken rule      : globalAddress = 0x1008; must be a multiple of 16" in lines
