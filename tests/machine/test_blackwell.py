"""CUTLASS's programs for Blackwell, compiled by nvcc and launched by their own host code: D is what numpy computes.

`python -m tests.oracle.record.cutlass_kernels CUTLASS OUT --blackwell` records them again. No device ran them.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_py.formats import of_codes, to_float32
from tests.machine.cutlass_launch import launches, run, with_scalars

ROWS = launches("blackwell_kernels")
TUTORIALS = [name for name in ROWS if name.startswith("blackwell_")]


def integers(seed: int, shape: tuple[int, int], dtype: Any) -> Any:
    """Numbers from -4 to 4: every sum of their products is exact."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def check_tutorial(name: str, schedule: str | int) -> Any:
    """D = A B^T + C / 2, all row-major; the program allocates D first."""
    row = with_scalars(ROWS[name], "<f", 1.0, 0.5)
    m, n, k = map(int, row["words"].split())
    a, b, c = integers(1, (m, k), np.float16), integers(2, (n, k), np.float16), integers(3, (m, n), np.float32)
    d = np.zeros((m, n), np.float32)
    arrays = [x.reshape(-1).view(np.uint8) for x in (d, a, b, c)]
    assert [x.nbytes for x in arrays] == row["allocations"]
    found = run(row, arrays, schedule)
    assert found.ok, found.explain()
    assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32).T + 0.5 * c)
    return found


@pytest.mark.slow
def test_the_first_tutorial() -> None:
    found = check_tutorial("blackwell_01", "eager")
    printed = "".join(found.printed)
    assert "tCtAcc:\ttmem_[32b](TMEM_ADDR)".replace("TMEM_ADDR", "0x0000.0000") in printed
    assert "tCrA:\tUMMA::DescriptorIterator o (_1,_1,_4):(_0,_0,_2)" in printed


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials(name: str, schedule: str | int) -> None:
    check_tutorial(name, schedule)


# ---- seeded faults ---------------------------------------------------------------------------------------------------

WAIT = r"mbarrier\.try_wait\.parity\.shared::cta\.b64 P1, "
PASSED = "setp.eq.u32 P1, 0, 0;"
FAULTS = [
    ("half an allocation", r"mov\.b32\s+%r875, 512;", "mov.b32 %r875, 64;", "tensor memory"),
    ("no dealloc", r"tcgen05\.dealloc[^;]*;", "", "tensor memory"),
    ("dealloc of 256", r"mov\.b32\s+%r4019, 512;", "mov.b32 %r4019, 256;", "tensor memory"),
    ("no commit", r"tcgen05\.commit\S* \[%r1657\];", "", "hang"),
    ("no wait for products", WAIT + r"\[%r1657\], %r1658;", PASSED, "overwritten while in use"),
    ("no last wait for products", WAIT + r"\[%r1657\], %r1874;", PASSED, "tensor memory race"),
    ("no wait for the first load", WAIT + r"\[%r1598\], %r1599;", PASSED, "read before it arrives"),
    ("no wait for the second load", WAIT + r"\[%r1598\], %r1671;", PASSED, "read before it arrives"),
    ("too few bytes", r"mov\.b32\s+%r1661, 49152;", "mov.b32 %r1661, 32768;", "hang"),
    ("too many bytes", r"mov\.b32\s+%r1733, 49152;", "mov.b32 %r1733, 65536;", "hang"),
    ("a commit to another barrier", r"(tcgen05\.commit\S* )\[%r1657\]", r"\1[%r1598]", "hang"),
    ("a count of 2 products", r"(mbarrier\.init\S* \[%r1567\]), %r1570;", r"\1, 2;", "hang"),
    ("a count of 2 loads", r"(mbarrier\.init\S* \[%r1569\]), %r1570;", r"\1, 2;", "hang"),
    ("an alloc of a pair", r"tcgen05\.alloc\.cta_group::1", "tcgen05.alloc.cta_group::2", "tensor memory"),
    ("commits of a pair", r"tcgen05\.commit\.cta_group::1", "tcgen05.commit.cta_group::2", "tensor memory"),
    (
        "an early end of allocation", r"(tcgen05\.alloc)",
        r"tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; \1", "tensor memory",
    ),
    ("lanes of another warp", r"(tcgen05\.ld\S*\{%r\d+\},)\[(%r\d+)\]", r"\1[\2+2097152]", "tensor memory"),
    ("a column beyond", r"(tcgen05\.ld\S*\{%r\d+\},)\[(%r\d+)\]", r"\1[\2+512]", "tensor memory"),
    ("sums from nothing", r"setp\.ne\.b32 p, (%r\d+), 0;", "setp.eq.b32 p, 0, 0;", "tensor memory never written"),
    ("another parity", rf"({WAIT}\[%r1657\]), %r1730;", r"\1, %r1658;", "hang"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("what", "old", "new", "rule"), FAULTS, ids=[one[0] for one in FAULTS])
def test_seeded_faults(what: str, old: str, new: str, rule: str) -> None:
    """The second tutorial with one fault is told from the one without, by the rule that it breaks."""
    row = with_scalars(ROWS["blackwell_02"], "<f", 1.0, 0.5)
    text, count = re.subn(old, new, row["ptx"])
    assert count
    m, n, k = map(int, row["words"].split())
    matrices = (np.zeros((m, n), np.float32), integers(1, (m, k), np.float16), integers(2, (n, k), np.float16))
    arrays = [x.reshape(-1).view(np.uint8) for x in (*matrices, integers(3, (m, n), np.float32))]
    found = run({**row, "ptx": text}, arrays, "both")
    assert rule in [one.rule for one in found.diagnostics if one.severity == "error"], what


# ---- kernels of the collective builder: persistent, warp-specialised, pairs of CTAs ----------------------------------

LISTED = {
    "initialisation not known",
    "store under way at exit",
    "missing tcgen05 fence",
}
"""Warnings on these kernels, which break the text of the ISA, and which devices run: an mbarrier for the end of tensor
memory is initialised behind the last fence.mbarrier_init and before a relaxed barrier of the cluster; a kernel without
C exits before its stores have read; there is no tcgen05.fence."""


def options(row: dict[str, Any]) -> tuple[int, int, int]:
    numbers = dict(word.removeprefix("--").split("=") for word in row["words"].split())
    return int(numbers["m"]), int(numbers["n"]), int(numbers["k"])


def check_run(row: dict[str, Any], arrays: list[Any], schedule: str | int, *more: str) -> None:
    """more: further rules that the kernel breaks."""
    assert [x.nbytes for x in arrays] == row["allocations"]
    found = run(row, arrays, schedule)
    assert found.ok, found.explain()
    assert {one.rule for one in found.diagnostics} <= LISTED | set(more), found.explain()


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_70(schedule: str | int) -> None:
    """float16, D of float32 and M-major; loads and products of two CTAs, cluster launch control."""
    row = ROWS["example_70"]
    m, n, k = options(row)
    a, b = integers(1, (m, k), np.float16), integers(2, (n, k), np.float16)
    d, c, unused = np.zeros((n, m), np.float32), integers(3, (n, m), np.float32), np.zeros((n, m), np.float32)
    arrays = [x.reshape(-1).view(np.uint8) for x in (a, b, c, d, unused)] + [np.zeros(0, np.uint8)]
    check_run(row, arrays, schedule)
    assert np.array_equal(d.T, a.astype(np.float32) @ b.astype(np.float32).T)


def in_atoms(codes: Any) -> Any:
    """Scales (rows, K / 16) in atoms of 128 rows by 4, as tcgen05.cp.32x128b.warpx4 wants them."""
    rows, k = codes.shape
    atoms = codes.reshape(rows // 128, 4, 32, k // 4, 4).transpose(0, 3, 2, 1, 4)
    return np.ascontiguousarray(atoms).reshape(-1)


def check_nvfp4(row: dict[str, Any], schedule: str | int) -> None:
    """NVFP4: elements of e2m1, a scale of ue4m3 for 16 of them; D of bfloat16."""
    m, n, k = options(row)
    dice = np.random.default_rng(4)
    codes = [dice.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n)]
    scales = [dice.choice([0.5, 1.0, 2.0], (rows, k // 16)).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n)]
    packed = [(one[:, ::2] | one[:, 1::2] << 4).reshape(-1) for one in codes]
    laid = [in_atoms(one.view(np.uint8)) for one in scales]
    c, d, unused = (np.zeros(2 * m * n, np.uint8) for _ in range(3))
    check_run(row, [*packed, c, d, unused, *laid, np.zeros(0, np.uint8)], schedule)
    numbers = [
        to_float32(of_codes(one, "e2m1")).astype(np.float64) * np.repeat(scale.astype(np.float64), 16, axis=1)
        for one, scale in zip(codes, scales, strict=True)
    ]
    expected = (numbers[0] @ numbers[1].T).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(d.view(ml_dtypes.bfloat16).reshape(m, n), expected)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_72a(schedule: str | int) -> None:
    """tcgen05.mma; tcgen05.cp brings the scale factors to tensor memory."""
    check_nvfp4(ROWS["example_72a"], schedule)


@pytest.mark.parametrize(
    ("name", "schedule"),
    [
        ("example_79a", "eager"),
        pytest.param("example_79a", "lazy", marks=pytest.mark.slow),
        pytest.param("example_79a_tiles", "both", marks=pytest.mark.slow),
        pytest.param("example_79a_tiles", 1, marks=pytest.mark.slow),
    ],
)
def test_example_79a(name: str, schedule: str | int) -> None:
    """mma.sync of sm_120a, with scale factors in registers."""
    check_nvfp4(launches("geforce_kernels")[name], schedule)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_72c(schedule: str | int) -> None:
    """MXFP8 times MXFP4: e4m3, e2m1 unpacked by the tensor map, a scale of ue8m0 for 32 elements; D of bfloat16.

    The ring has one stage, so that the producer tries the barrier of the next load before it issues this one: only the
    time limit of that try_wait lets it go on.
    """
    row = ROWS["example_72c"]
    m, n, k = options(row)
    dice = np.random.default_rng(5)
    a = dice.integers(-3, 4, (m, k)).astype(ml_dtypes.float8_e4m3fn)
    b = dice.integers(0, 16, (n, k)).astype(np.uint8)
    scales = [dice.integers(126, 129, (rows, k // 32)).astype(np.uint8) for rows in (m, n)]
    c, d, unused = (np.zeros(2 * m * n, np.uint8) for _ in range(3))
    packed = (b[:, ::2] | b[:, 1::2] << 4).reshape(-1)
    check_run(
        row, [a.view(np.uint8).reshape(-1), packed, c, d, unused, *map(in_atoms, scales), np.zeros(0, np.uint8)],
        schedule, "hang",
    )  # fmt: skip
    numbers = [
        one.astype(np.float64) * np.repeat(np.exp2(scale.astype(np.float64) - 127), 32, axis=1)
        for one, scale in zip((a, to_float32(of_codes(b, "e2m1"))), scales, strict=True)
    ]
    expected = (numbers[0] @ numbers[1].T).astype(np.float32).astype(ml_dtypes.bfloat16)
    assert np.array_equal(d.view(ml_dtypes.bfloat16).reshape(m, n), expected)


def quantised(values: Any, norm: float) -> tuple[Any, Any]:
    """Codes of e2m1 (M, N), and of the ue8m0 scale (M, N / 16) of 16 neighbours: the next power of two above a sixth of
    their largest magnitude times the norm."""
    rows, n = values.shape
    groups = values.reshape(rows, n // 16, 16).astype(np.float32)
    sixth = np.float32(1) / np.float32(6)
    wanted = np.abs(groups).max(axis=2) * (np.float32(norm) * sixth)
    fraction, exponent = np.frexp(wanted)
    scales = np.where(wanted == 0, 0, exponent - (fraction == 0.5) + 127).astype(np.int64)
    largest = np.finfo(np.float32).max
    factors = np.minimum(norm * np.exp2(127.0 - scales), largest).astype(np.float32)
    codes = (groups * factors[..., None]).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
    return codes.reshape(rows, n), scales.astype(np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["both", 1])
def test_example_72b(schedule: str | int) -> None:
    """NVFP4 in and out: the epilogue quantises D to e2m1 and writes its scale factors."""
    row = ROWS["example_72b"]
    m, n, k = options(row)
    dice = np.random.default_rng(6)
    codes = [dice.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n)]
    scales = [dice.choice([0.5, 1.0, 2.0], (rows, k // 16)).astype(ml_dtypes.float8_e4m3fn) for rows in (m, n)]
    packed = [(one[:, ::2] | one[:, 1::2] << 4).reshape(-1) for one in codes]
    c, norm = np.zeros(4 * m * n, np.uint8), np.float32([2]).view(np.uint8)
    d, unused = np.zeros(m * n // 2, np.uint8), np.zeros(m * n // 2, np.uint8)
    factors, others = np.zeros(m * n // 16, np.uint8), np.zeros(m * n // 16, np.uint8)
    laid = [in_atoms(one.view(np.uint8)) for one in scales]
    check_run(row, [*packed, c, d, unused, others, norm, *laid, factors, np.zeros(0, np.uint8)], schedule)
    numbers = [
        to_float32(of_codes(one, "e2m1")).astype(np.float64) * np.repeat(scale.astype(np.float64), 16, axis=1)
        for one, scale in zip(codes, scales, strict=True)
    ]
    expected, wanted = quantised(numbers[0] @ numbers[1].T, 2)
    assert np.array_equal(factors, in_atoms(wanted))
    assert np.array_equal(d, (expected[:, ::2] | expected[:, 1::2] << 4).reshape(-1))
