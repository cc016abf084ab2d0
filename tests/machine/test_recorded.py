"""Emulated warps against an H200, bit for bit: results of random operands are kept as digests in tests/oracle/data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_py as cute
from benchmarks.silicon.encodings import one
from benchmarks.silicon.forms import BITS, SWIZZLES, Operand, group_forms, matrix_forms, mover_forms
from benchmarks.silicon.inputs import FIELDS, STYLES, digest
from benchmarks.silicon.measure import (
    RANDOM_N,
    RUNS,
    TIMES,
    image_of,
    random_group,
    random_matrix,
    random_metadata,
    random_moves,
    tile,
)
from tests.oracle.records import rows, tally
from tests.shares import in_part, one_in

ROWS = {(row["kind"], row["name"]): row.get("digests") or row["met"] for row in rows("h200_warps")}


def names(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"%{prefix}{n}" for n in range(count)) + "}"


@in_part(6)
def test_mma_sync(every: int) -> None:
    """Every form of sm_70 to sm_90: floats of exponents far apart, any bits, NaN and infinity; integers that wrap."""
    held = 0
    forms = matrix_forms()[::every]
    for form in forms:
        a, b, c = form.form.counts
        found = []
        for style in STYLES:
            for number in range(RUNS):
                words = random_matrix(form, style, number)[0]
                warps = cute.Warps(1)
                for name, part in (("%a", words[:a]), ("%b", words[a : a + b]), ("%c", words[a + b :])):
                    warps.write(name, part.T)
                operands = ", ".join((names("d", c), names("a", a), names("b", b), names("c", c)))
                warps.run(f"{form.form.instruction} {operands};")
                found.append(digest(warps.read("%d", c).T, form.types[2] if form.types[2] in FIELDS else ""))
        assert found == ROWS["matrix", form.form.instruction], form.form.instruction
        held += 1
    tally("h200_warps: mma.sync", held, len(forms), every=every)
    assert every > 1 or held == len([k for k in ROWS if k[0] == "matrix"])


def test_moves() -> None:
    """ldmatrix, stmatrix, movmatrix, shfl.sync with segments and clamps, prmt."""
    held = 0
    for form in mover_forms():
        words, images = random_moves(form)
        outs, afters = [], []
        for run in range(TIMES):
            warps = cute.Warps(1, shared=images[run])
            warps.write("%s", words[run].T)
            warps.run(form.instruction.replace("%at", "%s0"))
            outs.append(warps.read("%d", form.results).T if form.results else np.empty((0, 32), np.uint32))
            afters.append(warps.shared)
        content = np.concatenate([np.ascontiguousarray(np.stack(x)).reshape(-1).view(np.uint8) for x in (outs, afters)])
        assert [digest(content)] == ROWS["mover", form.instruction], form.instruction
        held += 1
    tally("h200_warps: moves", held, len([k for k in ROWS if k[0] == "mover"]))


def wgmma_cases() -> list[Any]:
    """(form, style, turn) in the order of the measurement."""
    found = []
    for form in group_forms():
        if form.shape[1] in RANDOM_N:
            found += [(form, style, len(found) + 1 + i) for i, style in enumerate(STYLES)]
    return found


@pytest.mark.parametrize("part", one_in(2, range(4)))
def test_wgmma(part: int) -> None:
    """Every type, A from shared memory and registers, each major mode, swizzles in turn, C added."""
    cases = wgmma_cases()
    assert len(cases) == len([k for k in ROWS if k[0] == "random"])
    for form, style, turn in cases[part::4]:
        case = random_group(form, style, turn)
        warps = cute.Warps(4, shared=case["image"])
        for name, descriptor in zip(("%x", "%y"), case["descriptors"], strict=True):
            warps.write(name, np.full(128, descriptor, np.uint64))
        warps.write("%d", case["c"].T)
        a = "%x0"
        if form.form.a_registers:
            warps.write("%a", case["a"].T)
            a = names("a", 4)
        count = form.form.registers
        warps.run(f"{form.form.instruction} {names('d', count)}, {a}, %y0, 1{form.form.tail};")
        found = digest(warps.read("%d", count).T, form.types[2] if form.types[2] in FIELDS else "")
        where = "RS" if form.form.a_registers else "SS"
        name = f"{form.form.instruction} {where} {form.majors[0]} {form.majors[1]} {case['swizzle']} {style} {turn}"
        assert [found] == ROWS["random", name], name


@in_part(3)
def test_sparse_wgmma(every: int) -> None:
    """One hot element of A and random metadata: where it went, what of B it met, and how often."""
    held = 0
    for form in list(group_forms(True))[::every]:
        where = "RS" if form.form.a_registers else "SS"
        key = f"{form.form.instruction} {where} {form.majors[0]} {form.majors[1]}"
        for swizzle in SWIZZLES:
            expected = ROWS.get(("sparse", f"{key} {swizzle}"))
            if expected is not None:
                found = [hot_sparse(form, swizzle, run) for run, _, _ in expected]
                assert found == [(int(first, 16), count) for _, first, count in expected], f"{key} {swizzle}"
                held += 1
    tally("h200_warps: wgmma.sp", held, held if every > 1 else len([k for k in ROWS if k[0] == "sparse"]), every=every)
    assert held == {1: 190, 3: 66}[every]


def hot_sparse(form: Operand, swizzle: str, run: int) -> tuple[int, int]:
    """(first result that is not zero << 32 | its bits, how many there are) of a hot element of A, B's first digit."""
    a, _, d = form.types
    bits, depth, registers = BITS[a], form.shape[2] // 2, np.zeros((128, 4), np.uint32)
    first = None if form.form.a_registers else tile(64, depth, a, form.majors[0], swizzle, 0)
    start = 0 if first is None else -(-first[1] // 1024) * 1024
    second = tile(form.shape[1], form.shape[2], form.types[1], form.majors[1], swizzle, start)
    assert second is not None
    image, _ = image_of(form, start, second[1], 0)
    if first is None:
        word, place = divmod(run, 32 // bits)
        registers[word // 4, word % 4] = one(a) << place * bits
    else:
        image.view(f"uint{bits}")[run] = one(a)
    warps = cute.Warps(4, shared=image)
    warps.write("%a", registers)
    warps.write("%x", np.full(128, 0 if first is None else first[2], np.uint64))
    warps.write("%y", np.full(128, second[2], np.uint64))
    warps.write("%m", random_metadata(a, np.random.default_rng(100)))
    count = form.form.registers
    warps.write("%d", np.zeros((128, count), np.uint32))
    operand = names("a", 4) if first is None else "%x0"
    warps.run(f"{form.form.instruction} {names('d', count)}, {operand}, %y0, %m0, 0, 0{form.form.tail};")
    words = np.ascontiguousarray(warps.read("%d", count).T).reshape(-1)
    elements = words.view(np.uint16 if d == "f16" else np.uint32)
    met = np.flatnonzero(elements)
    return int(met[0]) << 32 | int(elements[met[0]]), len(met)
