"""The texts of the kernels: every instruction is one of the table, every wait is bounded, sizes are folded.

Where NVRTC is installed, all of them are compiled as well.
"""

from __future__ import annotations

import functools
import re

import pytest

from benchmarks.kernels import blackwell as kernel_blackwell
from benchmarks.kernels.bandwidth_probe import load_only, store_only
from benchmarks.kernels.bulk import copy_bulk, exchange_bulk
from benchmarks.kernels.multicast import load_cluster
from benchmarks.kernels.rebind import copy_groups
from benchmarks.kernels.replace import IMMEDIATE_FIELDS, ORDINAL_FIELDS, PLAIN_FIELDS, ReplaceCase, replace_fields
from benchmarks.kernels.single import JOB, JOB_STATUS_OFFSET, STATUS, single_instructions
from cute_py.errors import InvalidValueError, UnknownFactError
from cute_py.gpu.kernels.copy import copy_once
from cute_py.gpu.kernels.copy_op import CopyOp
from cute_py.gpu.kernels.device_barrier import device_barrier
from cute_py.gpu.kernels.edges import copy_edges
from cute_py.gpu.kernels.listed import copy_listed
from cute_py.gpu.kernels.realign import copy_realigned
from cute_py.gpu.kernels.ring import copy_ring
from cute_py.gpu.kernels.source import ERROR_RECORD, ERROR_RECORD_BYTES, MAX_SHARED_BYTES, KernelSource, enum_constants
from cute_py.gpu.kernels.transpose import TILES, copy_transposed
from cute_py.gpu.kernels.walk import cover
from cute_py.ptx.check import examine
from cute_py.ptx.forms_copy import REDUCE_KINDS
from cute_py.ptx.render import ptx
from tests.each import each_of
from tests.shares import one_in

WALK = cover((16384, 32768), (256, 32))


def every_op() -> tuple[CopyOp, ...]:
    tiles = range(1, 6)
    found = [CopyOp(kind, rank) for kind in ("load", "store", "prefetch") for rank in tiles]
    found += [CopyOp(kind, rank, "im2col") for kind in ("load", "store", "prefetch") for rank in (3, 4, 5)]
    found += [CopyOp("reduce", rank, op=op) for op in REDUCE_KINDS for rank in tiles]
    found += [CopyOp("reduce", rank, "im2col", op=op) for op in REDUCE_KINDS for rank in (3, 4, 5)]
    found += [CopyOp("load", rank, multicast=True, hint=hint) for rank in tiles for hint in (None, "evict_last")]
    found += [CopyOp("load", rank, "im2col", multicast=True) for rank in (3, 4, 5)]
    return (*found, *(CopyOp(kind, 2, hint="evict_first") for kind in ("load", "store", "prefetch")))


def every_case() -> tuple[ReplaceCase, ...]:
    ordinals = [
        ReplaceCase(field, i) for field in sorted(ORDINAL_FIELDS) for i in range(5 - (field == "global_stride"))
    ]
    counts = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "fill_mode": 2}
    immediates = [ReplaceCase(field, immediate=i) for field in sorted(IMMEDIATE_FIELDS) for i in range(counts[field])]
    return (*(ReplaceCase(field) for field in sorted(PLAIN_FIELDS)), *ordinals, *immediates)


@functools.cache
def hopper() -> dict[str, KernelSource]:
    wide = cover((16384, 32768), (256, 64))
    found = {
        "once": copy_once(WALK, 16384),
        "once with all": copy_once(
            WALK, 16384, per_block=3, tail_bytes=13, load_hint="evict_last", store_hint="evict_first", pad_shared=4096
        ),
        "once reducing": copy_once(WALK, 16384, reduction="add"),
        "ring": copy_ring(WALK, 16384, blocks=132),
        "ring, early": copy_ring(WALK, 16384, blocks=132, early=True, stages=3, stores=0),
        "ring, static": copy_ring(WALK, 16384, blocks=132, dynamic=False, load_hint="evict_last"),
        "listed": copy_listed(3, (0, 4096, 8192), 2048, 12288),
        "listed, shown": copy_listed(2, (0,), 2048, 2048, dump=True),
        "realigned": copy_realigned(cover((512, 4096), (32, 16)), 256, 16, 6, element_bytes=8),
        "cluster": load_cluster(wide, 32768, (0, 16), cluster=4, clusters=30, stages=6),
        "cluster, checked": load_cluster(wide, 32768, (0, 16), cluster=4, clusters=30, stages=6, check=True, passes=3),
        "cluster of one": load_cluster(wide, 32768, (0, 64), cluster=1, clusters=132, stages=6, multicast=False),
        "bulk": copy_bulk(),
        "exchange": exchange_bulk(4096, 4),
        "edges": copy_edges(((3, 1, 1), (1000, 132, 160), (7, 2**34, 2**33))),
        "meet": device_barrier(8),
        "groups": copy_groups((64, 32, 2), 8192, split=2),
        "replace": replace_fields(every_case()),
        "single": single_instructions(every_op(), window_bytes=65536),
        "single in clusters": single_instructions((CopyOp("load", 2, multicast=True),), window_bytes=1024, cluster=4),
    }
    for bulk in (False, True):
        found[f"load only {bulk}"] = load_only(WALK, 16384, blocks=132, stages=8, bulk=bulk)
        found[f"store only {bulk}"] = store_only(WALK, 16384, blocks=132, stages=4, bulk=bulk)
    for width in TILES:
        found[f"transposed {width}"] = copy_transposed(32768, 16384, width)
    for width in (2, 4, 8):
        found[f"transposed {width} paired"] = copy_transposed(1024, 512, width, paired=True, batches=width // 2)
    found["transposed bands"] = copy_transposed(300, 1000, 2, tile=(64, 128), band=3)
    found["transposed batches"] = copy_transposed(300, 100, 2, batches=3, in_place=True)
    return found


@functools.cache
def blackwell() -> dict[str, KernelSource]:
    return {
        "gather and scatter": kernel_blackwell.gather_scatter(),
        "pair": kernel_blackwell.load_pair(),
        "tensor memory": kernel_blackwell.copy_to_tensor_memory(),
        "atomicity": kernel_blackwell.replace_atomicity(),
    }


def instructions_of(source: KernelSource) -> list[str]:
    """The instructions of all inline assembly, operands replaced by registers of their class."""
    found = []
    letters = {"r": "%r", "l": "%rd", "h": "%h", "n": "7"}
    literal = r'"(?:[^"\\]|\\.)*"'
    for block in re.finditer(rf"asm volatile\(((?:\s*{literal})+)(.*?)\);", source.text, re.S):
        text = "".join(part[1:-1] for part in re.findall(literal, block[1])).replace("\\n", "\n").replace("\\t", " ")
        operands = re.findall(r'"=?([rlhn])"\s*\(', block[2])
        for index in range(len(operands) - 1, -1, -1):
            name = letters[operands[index]] + (str(index) if operands[index] != "n" else "")
            text = re.sub(rf"%{index}(?!\d)", name, text)
        text = re.sub(r"^\{\n|\n\s*\}$", "", text)
        found += [line.strip() for line in text.replace(";", ";\n").splitlines() if line.strip()]
    return found


ELSEWHERE = ("ldmatrix", "stmatrix", "ld.shared", "st.shared", "selp", ".reg", "mov")


@each_of("name", hopper())
def test_every_instruction_is_one_of_the_table(name: str) -> None:
    """What the kernels say in assembly, the table of forms takes for sm_90a without an error."""
    judged = 0
    for text in instructions_of(hopper()[name]):
        if text.startswith(ELSEWHERE):
            continue
        clean = (
            text.replace("remote", "%r90").replace("there", "%r91").replace("signal", "%r92").replace(" p,", " %p1,")
        )
        clean = re.sub(r"^\{\s*", "", clean)
        try:
            examined = examine(clean)
        except UnknownFactError:
            continue
        assert not examined.errors, (text, examined.errors)
        assert not examined.reasons("sm_90a", (8, 6)), (text, examined.reasons("sm_90a", (8, 6)))
        judged += 1
    assert judged >= 6


@each_of("op", every_op(), ids=lambda op: op.name)
def test_device_functions_say_what_the_renderer_says(op: CopyOp) -> None:
    modifiers: dict[str, object] = {"dim": op.rank}
    stored = "im2col_no_offs" if op.mode == "im2col" else "tile"
    modifiers["mode"] = op.mode if op.kind in ("load", "prefetch") else stored
    if op.op:
        modifiers["op"] = op.op
    if op.multicast:
        modifiers["multicast"] = True
    if op.hint:
        modifiers["cache_hint"] = True
    rendered = ptx(op.kind, **modifiers)
    assert rendered.split(" ")[0] == op.instruction
    body = re.search(rf"{re.escape(op.instruction)} (.*?);", op.text)
    assert body is not None
    assert len(re.findall(r"%\d+", body[1])) == len(re.findall(r"%[a-z]+\d+", rendered.split(" ", 1)[1]))


@each_of("name", [name for name in hopper() if name not in ("replace",)])
def test_waits_are_bounded(name: str) -> None:
    """The only loops around a try_wait are those that look at the clock."""
    text = hopper()[name].text
    assert "WAIT_CYCLES" in text
    for loop in re.findall(r"while \(![^;]*?try_wait\([^;]*\)\)", text):
        after = text[text.index(loop) :][:300]
        assert "clock64()" in after


@each_of("name", hopper())
def test_no_arrival_has_a_scope_that_drains_the_loads(name: str) -> None:
    assert "arrive.release.cluster.shared" not in hopper()[name].text
    assert "mbarrier.arrive.release.cluster" not in hopper()[name].text


@pytest.mark.parametrize("name", ["realigned", "transposed 2", "transposed 4", "store only False", "single"])
def test_tiles_that_threads_wrote_are_fenced_before_the_store(name: str) -> None:
    text = hopper()[name].text
    body = text[text.index('extern "C"') :]
    store = min(i for i in (body.find("store_t"), body.find("issue(job")) if i >= 0)
    assert (
        body.find("fence_async_shared();") < body.find("__syncthreads();", body.find("fence_async_shared();")) < store
    )


@each_of("name", hopper())
def test_shared_memory_fits_a_block(name: str) -> None:
    assert hopper()[name].shared_bytes <= MAX_SHARED_BYTES


def test_records_are_as_long_as_their_structs() -> None:
    assert (JOB.size, JOB_STATUS_OFFSET + STATUS.size + 8) == (96, 96)
    assert ERROR_RECORD.size == 40 <= ERROR_RECORD_BYTES


def test_constants_are_enumerators() -> None:
    assert enum_constants({"A": 1, "B": 2**40}) == "enum : u32 { A = 1u };\nenum : u64 { B = 1099511627776ull };\n"


REFUSED = [
    (lambda: copy_once(WALK, 16384, per_block=17), "per_block = 17; must be 1 to 16"),
    (lambda: copy_ring(WALK, 16384, blocks=1, stages=17), "stages = 17; must be 1 to 16"),
    (lambda: copy_ring(WALK, 16384, blocks=1, stages=4, stores=4), "stores = 4; must be 0 to stages - 1 = 3"),
    (lambda: copy_transposed(8, 8, 16), "element = 16 bytes; a transposing copy takes 1, 2, 4, 8"),
    (
        lambda: copy_transposed(8, 8, 2, tile=(128, 96)),
        "tile = 128 x 96 elements, band = 1; edges must be multiples of 64 and at most 256",
    ),
    (
        lambda: copy_transposed(64, 96, 2, paired=True),
        "64 x 96 elements; paired lines need multiples of 64",
    ),
    (lambda: copy_realigned(WALK, 256, 16, 16, element_bytes=8), "shift = 16 bytes; must be 1 to 15"),
    (lambda: copy_realigned(WALK, 256, 16, 0, element_bytes=8), "shift = 0 bytes; must be 1 to 15"),
    (lambda: copy_realigned(WALK, 250, 16, 2, element_bytes=2), "row = 250 bytes; must be a multiple of 16 and of 2"),
    (lambda: copy_bulk(24), "tile = 24 bytes; must be a positive multiple of 16"),
    (lambda: exchange_bulk(4096, 1), "cluster = 1 CTAs; must be 2 to 16: a block alone has no peer"),
    (lambda: exchange_bulk(4096, 17), "cluster = 17 CTAs; must be 2 to 16: a block alone has no peer"),
    (lambda: single_instructions((), window_bytes=0), "no instruction forms; at least one is needed"),
    (
        lambda: single_instructions((CopyOp("load", 1),), window_bytes=8),
        "window = 8 bytes; must be a multiple of 16",
    ),
    (lambda: replace_fields((ReplaceCase("colour"),)), "tensormap.replace has no field 'colour'"),
    (
        lambda: replace_fields((ReplaceCase("elemtype"),)),
        "elemtype: an immediate value is for elemtype, fill_mode, interleave_layout, swizzle_mode",
    ),
    (lambda: copy_groups((1,) * 6, 16), "rank = 6; must be 1 to 5"),
    (lambda: copy_groups((16,), 16, stages=9), "stages = 9, split = 1; stages must be 1 to 8, split at least 1"),
    (lambda: copy_listed(0, (0,), 16, 16), "rank = 0; must be 1 to 5"),
    (lambda: copy_listed(1, (), 16, 16), "0 instructions in a tile; must be 1 to 4096"),
    (lambda: copy_listed(1, (64,), 16, 256), "places = (64,); must be multiples of 128 in a window of 256 bytes"),
    (
        lambda: copy_listed(1, (0, 0), 2**19, 2**19),
        "tile = 1048576 bytes; a barrier counts at most 1048575",
    ),
    (
        lambda: load_cluster(WALK, 1000, (0, 8), cluster=4, clusters=1, stages=2),
        "tile = 1000 bytes; must be a multiple of 4 slices of 128 bytes",
    ),
]


@each_of(("make", "words"), REFUSED, ids=[words[:30] for _, words in REFUSED])
def test_refusals_in_words(make: object, words: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        make()  # type: ignore[operator]
    assert str(caught.value) == words


@pytest.mark.parametrize("name", [*one_in(4, hopper()), *one_in(4, blackwell())])
def test_kernels_compile(name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    from cute_py.gpu.nvrtc import KernelCompiler

    source = {**hopper(), **blackwell()}[name]
    kernel = KernelCompiler(None).compile(source)
    assert kernel.arch == ("sm_100a" if name in blackwell() else "sm_90a")
    assert kernel.cubin[:4] == b"\x7fELF"
