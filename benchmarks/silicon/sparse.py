"""Which bits of which thread's metadata move which stored element of A: found from random metadata, then compared.

For every stored element and every random metadata, the device says which (n, k) of B it met. The place within its group
is a two-bit number that follows one field of one thread's register; with 16 random registers that field is the only
one that agrees every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.silicon.device import Array
from benchmarks.silicon.encodings import digit_count, results, unpack
from benchmarks.silicon.forms import BITS, SWIZZLES, Operand, group_forms
from benchmarks.silicon.measure import image_of, random_metadata, register_positions, tile
from cute_py.atom import MMA_ATOMS
from cute_py.layout import offsets


def element_places(form: Operand) -> Array:
    """(m, n) -> number of the element of the accumulator as the reduction counts them."""
    width = 16 if form.types[2] == "f16" else 32
    per = 32 // width
    table = np.asarray(offsets(MMA_ATOMS[form.operation].layoutC_TV)).reshape(128, -1, order="F")
    thread, value = np.indices(table.shape)
    number = (value // per * 128 + thread) * per + value % per
    found = np.empty(table.size, np.int64)
    found[table.reshape(-1)] = number.reshape(-1)
    return found.reshape(64, form.shape[1], order="F")


def met(form: Operand, swizzle: str, meta: int, held: Any, key: str) -> Array | None:
    """(m, stored k) -> k of B that the stored element met, -1 where none or several fit; None without a tile."""
    m, n, k = form.shape
    a, b, d = form.types
    if form.form.a_registers:
        run_of, start = register_positions(k // 2, BITS[a]), 0
    else:
        first = tile(64, k // 2, a, form.majors[0], swizzle, 0)
        if first is None:
            return None
        run_of, start = first[0], -(-first[1] // 1024) * 1024
    second = tile(n, k, b, form.majors[1], swizzle, start)
    if second is None or f"{key} {swizzle} {meta} 0" not in held:
        return None
    places = element_places(form)
    expected = []
    for place in range(digit_count(b, second[1] * 8 // BITS[b])):
        numbers = image_of(form, start, second[1], place)[1]
        bits = results(b, d)[numbers[second[0]]].astype(np.uint64)  # (n, k)
        sent = np.where(bits != 0, places[:, :, None].astype(np.uint64) << np.uint64(32) | bits, ~np.uint64(0))
        expected.append(sent.min(axis=1))  # (m, k)
    found = np.full((m, k // 2), -1)
    for row in range(m):
        got = [held[f"{key} {swizzle} {meta} {p}"][run_of[row]] for p in range(len(expected))]
        fits = np.all([e[row][None, :] == g[:, None] for e, g in zip(expected, got, strict=True)], axis=0)
        found[row] = np.where(fits.sum(axis=1) == 1, fits.argmax(axis=1), -1)
    return found


def metadata_place(form: Operand) -> Array:
    """(m, stored k) -> thread * 16 + field of two bits, by the row's E layout; of equal threads the first."""
    layout = MMA_ATOMS[form.operation].layouts["E"]
    table = np.asarray(offsets(layout)).reshape(128, -1, order="F")
    bits = 32 // table.shape[1]
    found = np.full((form.shape[0], form.shape[2]), -1)
    for thread in range(127, -1, -1):
        found[table[thread] % 64, table[thread] // 64] = thread * 16 + np.arange(table.shape[1]) * bits // 2
    group = 2 if form.types[0] == "tf32" else 4
    stored = np.arange(form.shape[2] // 2)
    if group == 2:
        return found[:, 2 * stored]
    return found[:, 4 * (stored // 2) + 2 * (stored % 2)]


def analyse(held: Any) -> dict[str, dict[str, Any]]:
    """For each form and swizzle whether the measured fields are those of the table."""
    report: dict[str, dict[str, Any]] = {}
    for form in group_forms(True):
        key = f"{form.form.instruction} {'RS' if form.form.a_registers else 'SS'} {form.majors[0]} {form.majors[1]}"
        row: dict[str, Any] = {"operation": form.operation, "equal": [], "different": []}
        group = 2 if form.types[0] == "tf32" else 4
        first = np.arange(form.shape[2] // 2) // (group // 2) * group
        fields = np.stack(
            [unpack(random_metadata(form.types[0], np.random.default_rng(100 + x))[:, None], 2) for x in range(16)]
        ).reshape(16, -1)
        table = metadata_place(form)
        for swizzle in SWIZZLES:
            metas = [x for x in range(16) if f"{key} {swizzle} {x} 0" in held]
            if not metas:
                continue
            all_met = [met(form, swizzle, x, held, key) for x in metas]
            if any(x is None for x in all_met):
                continue
            seen = np.stack([x for x in all_met if x is not None])
            place = np.where(seen >= 0, seen - first, -9)
            if group == 2:
                place = np.where(place >= 0, place * 2, place)
            same = all((fields[x][table] == p).all() for x, p in zip(metas, place, strict=True))
            row["equal" if same else "different"].append(swizzle)
            if len(metas) == 16:
                agree = (fields[:, :, None] == place[:, 0, :][:, None, :]).all(axis=0)  # row 0: (field, stored k)
                row[f"row 0 {swizzle}"] = [
                    [(int(f) // 16, int(f) % 16) for f in np.flatnonzero(agree[:, k])] for k in range(agree.shape[1])
                ]
        report[key] = row
    return report
