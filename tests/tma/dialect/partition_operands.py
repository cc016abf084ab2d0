"""Operands for the partition verifier: one that passes, and one for each step that makes exactly this step refuse."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cute_py as cute
from cute_py import ComposedLayout, E, Int, Layout, LayoutRight, Swizzle
from cute_py.tma.dialect.record import TmaPartitionResult
from cute_py.tma.dialect.verifier import partition, verify_partition

ROW_MAJOR = (512, Int(1))


def gmem(shape: Any = (1024, 512), stride: Any = ROW_MAJOR, dtype: str = "float16", address: int = 4096) -> Any:
    return cute.make_tensor(cute.make_gmem_ptr(address, dtype), Layout(shape, stride))


def ints(*values: int) -> tuple[Int, ...]:
    return tuple(Int(v) for v in values)


SMEM = Layout(ints(128, 64), LayoutRight)
TILE = (128, 64)
SWIZZLED = ComposedLayout(Swizzle(3, 4, 3), cute.smem_ptr_flag(16), SMEM)


@dataclass
class Operands:
    smem: Any = SMEM
    gmem: Any = field(default_factory=gmem)
    tile: Any = TILE
    v_map: Any = None
    options: dict[str, Any] = field(default_factory=dict)

    def partition(self, **more: Any) -> list[TmaPartitionResult]:
        return partition(self.smem, self.gmem, self.tile, self.v_map, **self.options, **more)

    def walk(self, **more: Any) -> Any:
        return verify_partition(self.smem, self.gmem, self.tile, self.v_map, **self.options, **more)


NHWC = gmem((64, 16, 8, 2), (Int(1), 64, 1024, 8192))
PATCHES = Operands(smem=Layout(ints(128, 64), LayoutRight), gmem=NHWC)
"""An image of 64 channels, 16 x 8 pixels, 2 of them; a tile of 128 pixels."""

SIX = (64, 32, 16, 8, 4, 2)
SIX_STRIDES = (Int(1), 64, 2048, 32768, 262144, 1048576)
COMPOSED_GMEM = ComposedLayout(Swizzle(3, 4, 3), Int(0), Layout((1024, 512), (512, Int(1))))
NOT_A_SWIZZLE = ComposedLayout(Layout(ints(8192), ints(1)), Int(0), SMEM)

FAILING: dict[int, list[Operands]] = {
    1: [
        Operands(gmem=cute.make_identity_tensor((1024, 512))),
        Operands(gmem=gmem(SIX, SIX_STRIDES), smem=Layout(ints(8, 2, 2, 2, 2, 2)), tile=(8, 2, 2, 2, 2, 2)),
        Operands(gmem=None),
        Operands(tile="a tile"),
        Operands(tile=(128, 64, 1)),
        Operands(v_map="a map"),
        Operands(v_map=Layout(ints(128, 64))),
        Operands(v_map=Layout(ints(128, 64), (E(0), Int(1)))),
        Operands(gmem=cute.make_tensor(cute.make_smem_ptr(0, "float16"), Layout((1024, 512), (512, Int(1))))),
        Operands(smem=cute.make_tensor(cute.make_gmem_ptr(0, "float16"), SMEM)),
        Operands(smem=cute.make_identity_tensor(ints(128, 64))),
        *(Operands(smem=thing) for thing in (None, "smem", 5, [1])),
    ],
    2: [Operands(smem=ints(128, 64)), Operands(smem=Swizzle(3, 4, 3))],
    3: [Operands(gmem=cute.make_tensor(cute.make_gmem_ptr(0, "float16"), COMPOSED_GMEM))],
    4: [
        Operands(gmem=gmem((1024, 250), (250, Int(1)))),
        Operands(smem=Layout(ints(128, 64), (E(0), E(1)))),
        Operands(gmem=gmem((1024, 512), (Int(2), 2048))),
    ],
    5: [
        Operands(smem=NOT_A_SWIZZLE),
        Operands(smem=ComposedLayout(Swizzle(3, 5, 3), Int(0), SMEM)),
        Operands(smem=ComposedLayout(Swizzle(2, 5, 2), Int(0), SMEM)),
    ],
    6: [
        Operands(smem=Layout((128, Int(64)), (Int(64), Int(1)))),
        Operands(smem=Layout(ints(128, 64), (64, Int(1)))),
        Operands(tile=None, v_map=Layout((128, Int(64)), (E(0), E(1)))),
    ],
    7: [
        Operands(smem=Layout(ints(64, 128), LayoutRight)),
        Operands(smem=Layout(ints(128, 64, 2), ints(64, 1, 8192))),
        Operands(smem=Layout(Int(8192))),
    ],
    8: [
        Operands(smem=Layout(ints(128, 64), ints(128, 2))),
        Operands(smem=Layout(ints(128, 64), ints(0, 0))),
        Operands(tile=None, v_map=Layout(ints(128, 64), (Int(2) * E(0), Int(2) * E(1)))),
        Operands(tile=None, v_map=Layout(ints(128, 64), (E(0), E(7)))),
    ],
    9: [
        Operands(smem=Layout(ints(8, 512), LayoutRight), tile=(8, 512)),
        Operands(options={"load_mode": "W_MULTICAST", "num_multicast": 3}),
        Operands(smem=Layout(ints(128, 64))),
        Operands(
            gmem=gmem(
                ((*ints(64), ints(4, 2)), (*ints(16), ints(8, 4))), ((Int(1), (262144, 1048576)), (64, (2048, 32768)))
            ),
            smem=Layout(ints(64, 8)),
            tile=(64, 8),
        ),
    ],
    11: [
        Operands(options={"load_mode": "W_MULTICAST", "num_multicast": 0}),
        Operands(options={"load_mode": "W128_MULTICAST", "num_multicast": None}),
        Operands(options={"num_multicast": 2}),
        Operands(options={"num_multicast": 3}),
        Operands(options={"num_multicast": 0}),
        Operands(options={"load_mode": "TWO_CTA", "num_multicast": 2, "arch": "sm_100a"}),
    ],
}
"""Step 10 is not here: nothing that passes steps 1 to 9 makes it refuse."""
