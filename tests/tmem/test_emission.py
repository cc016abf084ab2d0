"""What is emitted: the trace, the CUDA calls, and complete kernels that assemble for sm_100a and sm_103a."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import cute_py as cute
from cute_py.errors import EmissionError, TmemError
from cute_py.machine.cuda_source import compiler_available, ptx_of_text
from cute_py.tmem import (
    FORMS,
    Buffer,
    CopyAsync,
    Iter,
    R,
    S,
    TCol,
    TensorMemory,
    TileLayout,
    TLane,
    TmemAllocation,
    copy_async,
    demonstration_copy,
    dynamic_shared_bytes,
    emit_cuda,
    emit_kernel,
    emit_tirx,
    examine,
    mma_shared_layout,
    mnemonic,
    ptx_line,
    run,
)
from tests.shares import one_in

NVCC = shutil.which("nvcc")
ARCHS = ("sm_100a", "sm_103a")


def tiles(count: int, name: str = "A_smem", compat: str = "reference", cta_group: int = 1) -> CopyAsync:
    smem = Buffer(name, (count, 32, 16), "uint8", "shared", S[count, 32, 16])
    layout = S[(count, 32, 16) : (16 @ TCol, 1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    tmem = Buffer("tmem", (count, 32, 16), "uint8", "tmem", layout, TmemAllocation(32))
    return copy_async(tmem.whole(), smem.whole(), compat=compat, cta_group=cta_group)


def swizzled(rows: int = 128, swizzle: int = 2, cta_group: int = 1, form: int = 0) -> CopyAsync:
    one = FORMS[form]
    smem = Buffer("B_smem", (rows, 64), "bfloat16", "shared", mma_shared_layout("bfloat16", swizzle, (rows, 64)))
    layout = TileLayout([*one.lanes, Iter(64, 1, "TCol")], one.copies)
    tmem = Buffer("tmem", (one.rows, 64), "bfloat16", "tmem", layout, TmemAllocation(64))
    return copy_async(
        tmem.whole(), smem[0 : one.rows, 0:64], compat="tvm-0.27", cta_group=cta_group, shape=one.shape,
        multicast=one.multicast,
    )  # fmt: skip


def test_the_trace_of_the_reference_page() -> None:
    assert emit_tirx(demonstration_copy()) == (
        "T.ptx.tcgen05.encode_matrix_descriptor(cp_desc.data, T.address_of(A_smem[0]), 16, 8, 0)\n"
        "T.ptx.tcgen05.cp(tmem_addr[0],\n"
        "                 smem_desc_add_16B_offset(cp_desc[0], 0),\n"
        '                 shape="32x128b", cta_group=1, multicast="warpx4")'
    )
    assert ptx_line(demonstration_copy()) == "tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;"
    assert ptx_line(demonstration_copy(cta_group=2)) == "tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;"


def issued(text: str) -> list[tuple[int, int]]:
    """The trace, run: (column, offset in 16 bytes) of each instruction; the tensor memory and the descriptor are 0."""
    found: list[tuple[int, int]] = []
    tcgen05 = SimpleNamespace(
        encode_matrix_descriptor=lambda *operands: None, cp=lambda taddr, desc, **_: found.append((taddr, desc))
    )
    T = SimpleNamespace(
        unroll=range, meta_var=tuple, address_of=lambda place: place, ptx=SimpleNamespace(tcgen05=tcgen05)
    )
    names = {f"cp_desc{end}": Held() for end in ("", "_1")}
    add = {"smem_desc_add_16B_offset": lambda held, offset: held + offset}
    exec(text, {"T": T, "tmem_addr": [0], "A_smem": [0], "B_smem": [0], **names, **add})
    return found


class Held(list[int]):
    """A descriptor's buffer."""

    def __init__(self) -> None:
        super().__init__([0])
        self.data = self


def test_several_instructions_are_an_unrolled_loop() -> None:
    text = emit_tirx(tiles(4))
    assert text.split("\n", 1)[1] == (
        "compute_offsets = [(0, 0), (4, 32), (8, 64), (12, 96)].__getitem__  # flat -> columns, units of 16 bytes\n"
        "for flat in T.unroll(4):\n"
        "    t_off, s_off = T.meta_var(compute_offsets(flat))\n"
        "    T.ptx.tcgen05.cp(tmem_addr[0] + t_off,\n"
        "                     smem_desc_add_16B_offset(cp_desc[0], s_off),\n"
        '                     shape="32x128b", cta_group=1, multicast="warpx4")'
    )
    calls = re.findall(r"\(tmem_addr \+ (0x\w+)u, smem_desc_add_16B_offset\(cp_desc, (\d+)u\)\);", emit_cuda(tiles(4)))
    assert calls == [("0x0", "0"), ("0x4", "32"), ("0x8", "64"), ("0xC", "96")]
    assert "commit" not in text


@pytest.mark.parametrize("count", (1, 2, 3, 8))
def test_the_trace_issues_the_tiles_of_the_plan(count: int) -> None:
    copies = (tiles(count), tiles(count, "B_smem"))
    planned = [(tile.taddr_offset, tile.smem_offset) for copy in copies for tile in copy.plan.tiles]
    assert issued(emit_tirx(*copies)) == planned and len(planned) == 2 * count


def test_descriptors_are_encoded_once() -> None:
    same = (tiles(4), tiles(4))
    other = (tiles(4), tiles(4, "B_smem"))
    newer = tuple(tiles(4, name, "tvm-0.27") for name in ("A_smem", "B_smem"))
    for copies, variables in (
        (same, ["cp_desc"]),
        (other, ["cp_desc", "cp_desc_1"]),
        (newer, ["cp_desc"]),
        ((newer[0], swizzled()), ["cp_desc", "cp_desc_1"]),
    ):
        assert re.findall(r"encode_matrix_descriptor\((\w+)\.data", emit_tirx(*copies)) == variables
        assert re.findall(r"long (\w+) = encode_matrix_descriptor", emit_cuda(*copies)) == variables


def test_the_newer_trace_writes_the_start_address() -> None:
    text = emit_tirx(swizzled())
    assert text.startswith("T.ptx.tcgen05.encode_matrix_descriptor(cp_desc.data, 0, 1, 32, 2)\n")
    assert re.findall(r"B_smem \+ (\d+)\)", text) == ["0", "8192", "32", "8224"]


def test_the_newer_calls_write_the_start_address() -> None:
    calls = re.findall(
        r"\(tmem_addr \+ (0x\w+)u, replace_start_address\(cp_desc, shared_address\(B_smem\) \+ (\d+)u\)\);",
        emit_cuda(swizzled()),
    )
    assert calls == [("0x0", "0"), ("0x10", "8192"), ("0x8", "32"), ("0x18", "8224")]


def test_every_instruction_of_a_kernel_is_in_the_table() -> None:
    for copy in (demonstration_copy(), demonstration_copy(cta_group=2), swizzled()):
        found = re.findall(r'"(tcgen05\.[^"]*?);"', emit_kernel(copy))
        names = {text.split()[0] for text in found}
        assert {"tcgen05.wait::ld.sync.aligned", "tcgen05.fence::after_thread_sync"} <= names
        for text in found:
            name, *operands = text.split(" ", 1)
            checked = examine(f"{name} {_registers(name, operands[0]) if operands else ''};")
            assert not checked.errors, checked.errors
            assert checked.canonical
            assert not checked.why_not("sm_100a")
            assert not checked.why_not("sm_103a")


def _registers(name: str, operands: str) -> str:
    """Numbers of operands -> registers of the width that they have in the kernel."""
    if name.startswith("tcgen05.cp"):
        return operands.replace("%0", "%r1").replace("%1", "%rd1")
    if name.startswith("tcgen05.commit"):
        return operands.replace("%0", "%r1").replace("%1", "%h1")
    return re.sub(r"%(\d+)", r"%r\1", operands)


def test_the_order_of_a_kernel() -> None:
    text = emit_kernel(demonstration_copy())
    order = ["tcgen05.alloc", "relinquish", "mbarrier.init", "fence.proxy.async", "cp_cta_group_1_32x128b_warpx4(tmem",
             "tcgen05.commit", "mbarrier.try_wait", "tcgen05.ld", "tcgen05.wait::ld", "tcgen05.dealloc"]  # fmt: skip
    body = text[text.index("extern") :]
    places = [body.index(words) for words in order]
    assert places == sorted(places)


def test_shared_memory_to_launch_with() -> None:
    assert dynamic_shared_bytes(demonstration_copy()) == 512 + 1023
    assert dynamic_shared_bytes(swizzled()) == 128 * 64 * 2 + 1023


def test_what_has_no_name() -> None:
    for name, modifiers in (
        ("tcgen05.cpp", {}),
        ("tcgen05.cp", {"cta_group": "cta_group::1", "shape": "64x128b"}),
        ("tcgen05.cp", {"shape": "128x256b"}),
        ("tcgen05.cp", {"cta_group": "cta_group::3", "shape": "128x256b"}),
        ("tcgen05.ld", {"shape": "16x256b", "num": "x64"}),
        ("tcgen05.ld", {"shape": "32x32b", "num": "x1", "speed": "fast"}),
    ):
        with pytest.raises(EmissionError):
            mnemonic(name, **modifiers)


def test_a_kernel_needs_an_allocation() -> None:
    copy = demonstration_copy()
    bare = Buffer("tmem", copy.dst.shape, "uint8", "tmem", copy.dst.layout)
    request = type(copy.request)(bare.whole(), copy.request.src)
    with pytest.raises(TmemError, match="allocated_addr"):
        emit_kernel(CopyAsync(request, copy.plan))


KERNELS = {
    "demonstration": demonstration_copy,
    "demonstration, pair": lambda: demonstration_copy(cta_group=2),
    "tiles": lambda: tiles(4),
    "tiles, newer": lambda: tiles(4, compat="tvm-0.27", cta_group=2),
    **{FORMS[i].name: lambda i=i: swizzled(cta_group=1 + i % 2, form=i) for i in range(len(FORMS))},
}


def all_kernels() -> str:
    """One source with all kernels, `kernel_0` and on, and each device function once."""
    parts: dict[str, None] = {}
    for number, make in enumerate(KERNELS.values()):
        text = emit_kernel(make(), f"kernel_{number}")  # type: ignore[no-untyped-call]
        parts |= dict.fromkeys(re.split(r"\n\n(?=__device__|extern|//)", text))
    return "\n\n".join(parts)


@pytest.mark.slow
@pytest.mark.skipif(not compiler_available(), reason="no CUDA compiler; it makes the PTX")
def test_kernels_leave_what_the_emulator_leaves() -> None:
    """The kernels on the machine, beside tensor memory that the plan's instructions fill in the emulator."""
    text = ptx_of_text(all_kernels(), "kernels.cu", "sm_100a")
    for number, make in enumerate(KERNELS.values()):
        copy = make()  # type: ignore[no-untyped-call]
        plan, columns = copy.plan, copy.dst.allocated_addr.n_cols
        size = dynamic_shared_bytes(copy) - copy.src.align + 1
        image = np.random.default_rng(number).integers(0, 256, (plan.cta_group, size), np.uint8)
        result = np.zeros((plan.cta_group, 128, columns), np.uint32)
        found = cute.run_ptx(
            text, kernel=f"kernel_{number}", grid=plan.cta_group, block=128, args=[image, result],
            dynamic_shared=dynamic_shared_bytes(copy),
        )  # fmt: skip
        assert found.ok, found.explain()
        for cta in range(plan.cta_group):
            held = TensorMemory()
            run(plan, held, held.alloc(columns, plan.cta_group), image[cta], 0)
            copied = held.sources[:, :columns] >= 0
            assert copied.any()
            left = result[cta].view(np.uint8).reshape(128, columns, 4)
            assert np.array_equal(
                left[copied], held.cells[:, :columns].copy().view(np.uint8).reshape(left.shape)[copied]
            )


@pytest.mark.skipif(NVCC is None, reason="nvcc is not on PATH; it assembles the kernels")
@pytest.mark.parametrize("arch", one_in(2, ARCHS))
def test_kernels_assemble(arch: str, tmp_path: Path) -> None:
    """All kernels in one file."""
    source = tmp_path / "kernels.cu"
    source.write_text(all_kernels())
    wanted = f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}"
    done = subprocess.run(
        [str(NVCC), "-fatbin", "-Werror", "all-warnings", wanted, "-o", str(tmp_path / "kernels.fatbin"), str(source)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kernels.fatbin").stat().st_size > 0
