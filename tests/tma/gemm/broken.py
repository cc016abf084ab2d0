"""One kernel, broken in eight ways: what is changed, and what is found of it without a GPU.

What is broken in the plan (a map, the places and coordinates of loads) is seen in the bytes of a stage, on a device and
in the emulator; what is broken in the text, in its PTX, in its descriptors, or by a wait that does not end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

import cute_py as cute
from benchmarks.gemm import Case, kernel_of
from cute_py.gpu.nvrtc import kernel_ptx
from cute_py.tma import GemmKernel, TmaAtom, check_program, compare_tile
from cute_py.tma.gemm.plan import GemmPlan
from cute_py.tma.gemm.source import gemm_source
from tests.tma.gemm.problem import arrays

WAIT_CYCLES: Final = 20_000_000
"""10 ms: what a broken kernel waits."""
K_MAJOR: Final = Case(512, 768, 512)
MN_MAJOR: Final = Case(512, 768, 512, majors="MM")
CLUSTERED: Final = Case(512, 768, 512, cluster="M")
TILE: Final = (1, 2)
STEP: Final = 1


@dataclass(frozen=True)
class Broken:
    """A way to break a kernel. operand: whose stage shows it, where a stage does. cause: as a wait that times out names
    it, where one does."""

    case: Case
    breaks: Callable[[GemmKernel], GemmKernel]
    find: Callable[[GemmKernel, GemmKernel], str]
    name: str
    operand: str = ""
    cause: str = ""

    def kernels(self) -> tuple[GemmKernel, GemmKernel]:
        """The right one and the broken one."""
        right = kernel_of(self.case, wait_cycles=WAIT_CYCLES)
        return right, self.breaks(right)


def of_plan(kernel: GemmKernel, plan: GemmPlan) -> GemmKernel:
    return GemmKernel(plan, gemm_source(plan, "x", WAIT_CYCLES))


def without_swizzle(kernel: GemmKernel) -> GemmKernel:
    atom = kernel.plan.atoms["A"]
    bare = replace(atom, request=replace(atom.request, swizzle=cute.tma.TensorMapSwizzle.NONE))
    return of_plan(kernel, replace(kernel.plan, atoms={**kernel.plan.atoms, "A": bare}))


def other_lbo(kernel: GemmKernel) -> GemmKernel:
    right = int(kernel.plan.operands["B"].descriptor)
    wrong = int(replace(kernel.plan.operands["B"].descriptor, leading=64))
    return kernel.edited(f"DESCRIPTOR_B = {right:#018x}ull", f"DESCRIPTOR_B = {wrong:#018x}ull")


def other_places(kernel: GemmKernel) -> GemmKernel:
    walk = kernel.plan.walks["B"]
    places = [box.place for box in walk.boxes][::-1]
    boxes = tuple(replace(box, place=place) for box, place in zip(walk.boxes, places, strict=True))
    return of_plan(kernel, replace(kernel.plan, walks={**kernel.plan.walks, "B": replace(walk, boxes=boxes)}))


def exchanged(kernel: GemmKernel) -> GemmKernel:
    walk = kernel.plan.walks["A"]
    first, second = (step[::-1] for step in walk.steps)
    return of_plan(kernel, replace(kernel.plan, walks={**kernel.plan.walks, "A": replace(walk, steps=(first, second))}))


def cause_in_stage(right: GemmKernel, broken: GemmKernel, backend: str = "emulator") -> str:
    """What `compare_tile` names in a stage of the broken kernel."""
    case = MN_MAJOR if right.plan.operands["A"].major == "MN" else K_MAJOR
    given = arrays(case, largest=8)
    stage = broken.stage(*given, TILE, STEP, backend=backend)
    causes = [
        compare_tile(right.plan.atoms[name], array, (TILE[i], STEP), stage[name]).cause
        for i, (name, array) in enumerate(zip("AB", given, strict=True))
    ]
    return " ".join(causes).strip()


def rule_in_ptx(right: GemmKernel, broken: GemmKernel) -> str:
    """The rule that `check_program` finds broken, given the maps."""
    maps: dict[int, TmaAtom] = {i: right.plan.atoms[name] for i, name in enumerate("ABC")}
    return " ".join({found.rule for found in check_program(kernel_ptx(broken.kernel), maps=maps).found})


def field_of_descriptor(right: GemmKernel, broken: GemmKernel) -> str:
    """The field of B's descriptor, as it stands in the text, that is not the layout's."""
    constant = broken.source.partition("DESCRIPTOR_B = ")[2].partition("ull")[0]
    operand = right.plan.operands["B"]
    return " ".join(found.rule for found in operand.descriptor.diff(int(constant, 16), operand.major))


def end_of_first_wait(right: GemmKernel, broken: GemmKernel) -> str:
    """How the producer's first wait ends, for the parity that the text has."""
    flipped = "await(empty + 8 * stage, phase, " in broken.source
    empty = cute.tma.Mbarrier(right.plan.warpgroups)
    return "completed" if empty.try_wait(0 if flipped else 1) else "would hang"


def bytes_of_second_cta(right: GemmKernel, broken: GemmKernel) -> str:
    """Whether the barrier of CTA 1 gets what it expects of B, under the mask that the text has."""
    mask = int(broken.source.partition("tile_2d_multicast(at")[2].partition(");")[0].rpartition(" ")[2], 16)
    plan, atom = right.plan, right.plan.atoms["B"]
    _, b = arrays(CLUSTERED)
    ctas = cute.tma.Cluster(2, plan.walks["B"].bytes + 1024)
    barriers = ctas.init_barriers(plan.walks["B"].bytes, 1)
    for rank in range(2):
        barriers[rank].arrive_expect_tx(plan.walks["B"].bytes)
    content = np.ascontiguousarray(b).view(np.uint8).reshape(-1)
    for rank, box in enumerate(plan.walks["B"].of_all(2)):
        cute.tma.Emulator().load(
            atom.descriptor,
            content,
            box.coords,
            ctas[rank],
            smem_offset=box.place,
            barrier=plan.walks["B"].bytes,
            multicast_mask=mask,
            gmem_base=atom.request.global_address,
        )
    return " ".join(f"CTA {rank} waits" for rank in range(2) if not barriers[rank].try_wait(0))


BROKEN: Final[dict[str, Broken]] = {
    "wrong swizzle": Broken(K_MAJOR, without_swizzle, cause_in_stage, "other swizzle", "A"),
    "wrong LBO": Broken(MN_MAJOR, other_lbo, field_of_descriptor, "leading"),
    "wrong expect_tx": Broken(
        K_MAJOR,
        lambda kernel: kernel.edited("LOADED_BYTES = 49152u", "LOADED_BYTES = 32768u"),
        rule_in_ptx,
        "expect_tx",
        cause="wrong expect_tx",
    ),
    "missing fence": Broken(
        K_MAJOR, lambda kernel: kernel.edited("          fence_async_shared();\n", ""), rule_in_ptx, "proxy_fence"
    ),
    "flipped parity": Broken(
        K_MAJOR,
        lambda kernel: kernel.edited("await(empty + 8 * stage, phase ^ 1,", "await(empty + 8 * stage, phase,"),
        end_of_first_wait,
        "would hang",
        cause="flipped parity",
    ),
    "wrong mask": Broken(
        CLUSTERED,
        lambda kernel: kernel.edited(", 0x3);", ", 0x1);"),
        bytes_of_second_cta,
        "CTA 1 waits",
        cause="wrong mask",
    ),
    "box in the wrong order": Broken(MN_MAJOR, other_places, cause_in_stage, "other box order", "B"),
    "coordinates exchanged": Broken(K_MAJOR, exchanged, cause_in_stage, "exchanged coordinates", "A"),
}
