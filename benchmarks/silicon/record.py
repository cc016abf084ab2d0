"""What a device returned, compared with the tables: docs/measurements/atoms-h200.json and the list of evidence.

    python -m benchmarks.silicon record OUT

OUT is a folder with matrix, mover and sparse .npz, and all .json of a run. Digests of what random operands gave go to
the tests' records: `digests`.
"""

from __future__ import annotations

import json
import lzma
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.silicon.assemble import assemble
from benchmarks.silicon.device import Array
from benchmarks.silicon.forms import MatrixForm, MoverForm, matrix_forms, mover_forms
from benchmarks.silicon.sparse import analyse
from cute_py.atom import COPY_ATOMS, MMA_ATOMS
from cute_py.layout import Layout, offsets, size

ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = ROOT / "cute_py" / "atom" / "evidence.txt"
MEASURED = ROOT / "docs" / "measurements" / "atoms-h200.json"
DIGESTS = ROOT / "tests" / "oracle" / "data" / "h200_warps.jsonl.xz"
HEAD = "NVIDIA H200, driver 580.159.04, 2026-11-22"


def table_of(layout: Layout, threads: int) -> Array:
    """(thread, value) -> index."""
    return np.asarray(offsets(layout)).reshape(threads, -1, order="F")


def expected_products(form: MatrixForm) -> Array:
    """(position of A, lane, value of D) -> position of B that the table says it meets, -1 for none."""
    atom = MMA_ATOMS[next((x for x in form.operations if not MMA_ATOMS[x].ptx[0].isdigit()), form.operations[0])]
    m, n, k = form.shape
    threads = int(size(atom.thr_id))
    a, b, c = (table_of(atom.layouts[x], threads) for x in "ABC")
    lanes = [np.arange(32)]
    if threads == 8:
        lanes = [np.r_[4 * q : 4 * q + 4, 16 + 4 * q : 20 + 4 * q] for q in range(4)]
    found = np.full((32 * a.shape[1], 32, c.shape[1]), -1)
    for group in lanes:
        b_at = np.zeros((n, k), int)
        b_at[b % n, b // n] = group[:, None] * b.shape[1] + np.arange(b.shape[1])
        a_at = (group[:, None] * a.shape[1] + np.arange(a.shape[1])).reshape(-1)
        row, depth = (a % m).reshape(-1), (a // m).reshape(-1)
        meets = np.where(row[:, None, None] == c % m, b_at[c // m, depth[:, None, None]], -1)
        found[a_at[:, None], group[None, :]] = meets
    return found


def classes(met: Array) -> dict[str, int]:
    """How many rows, columns and depths the products have, from them alone."""
    flat = met.reshape(len(met), -1)
    rows = {tuple(np.flatnonzero(column >= 0)) for column in flat.T}
    columns = {tuple(sorted(column[column >= 0])) for column in flat.T}
    depths = {tuple(sorted(set(line[line >= 0].tolist()))) for line in flat}
    return {"rows": len(rows), "columns": len(columns), "depths": len(depths)}


def matrices(held: Any) -> list[dict[str, Any]]:
    """A row for every mma.sync."""
    found = []
    for form in matrix_forms():
        met = held[f"{form.form.instruction}:met"].astype(np.int64)
        found.append(
            {
                "instruction": form.form.instruction,
                "operations": list(form.operations),
                "products": int((met >= 0).sum()),
                **classes(met),
                "equal": bool(np.array_equal(met, expected_products(form))),
            }
        )
    return found


def _bits(words: Array) -> Array:
    """(run, lane, register) words -> (run, lane, bit)."""
    raw = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape[:2], -1)
    return np.unpackbits(raw, axis=2, bitorder="little")


def moved_bits(form: MoverForm, held: Any) -> tuple[Array, Array]:
    """(run, thread, bit) of the source and of the destination: registers, or the row that a thread addresses."""
    name = form.instruction
    words = held[f"{name}:in"].transpose(0, 2, 1)
    load, store = name.startswith("ldmatrix"), name.startswith("stmatrix")
    image = held[f"{name}:after" if store else f"{name}:image"]
    addresses = words[:, :, 0].astype(np.int64)
    rows = (
        np.take_along_axis(image[:, None, :], addresses[:, :, None] + np.arange(16), axis=2) if load or store else None
    )
    registers = words[:, :, 1:] if store else words[:, :, 1:2]
    source = np.unpackbits(rows, axis=2, bitorder="little") if load and rows is not None else _bits(registers)
    if store and rows is not None:
        return source, np.unpackbits(rows, axis=2, bitorder="little")
    return source, _bits(held[f"{name}:out"].transpose(0, 2, 1))


def movers(held: Any) -> list[dict[str, Any]]:
    """A row for every ldmatrix, stmatrix and movmatrix: each bit of the destination is which bit of the source."""
    found = []
    for form in mover_forms():
        if form.operation not in COPY_ATOMS:
            continue
        traits = COPY_ATOMS[form.operation]
        source, target = moved_bits(form, held)
        src, dst = table_of(traits.src_layout, 32), table_of(traits.dst_layout, 32)
        source, target = source[:, :, : src.shape[1]], target[:, :, : dst.shape[1]]
        first = np.full(int(max(src.max(), dst.max())) + 1, -1)
        first[src[::-1].reshape(-1)] = np.arange(src.size).reshape(src.shape)[::-1].reshape(-1)
        weights = np.random.default_rng(0).integers(0, 1 << 62, len(source))
        signature = (source.astype(np.int64) * weights[:, None, None]).sum(axis=0).reshape(-1)
        wanted = (target.astype(np.int64) * weights[:, None, None]).sum(axis=0)
        order = np.argsort(signature, kind="stable")
        place = np.minimum(np.searchsorted(signature[order], wanted), signature.size - 1)
        measured = order[place]
        known = signature[measured] == wanted
        lanes = 8 * len(dst[0]) // 32 if form.instruction.startswith("stmatrix") else 32
        used = np.arange(32) < (8 * traits.registers["S"][0] if form.instruction.startswith("stmatrix") else lanes)
        equal = bool(known[used].all() and (measured == first[dst])[used].all())
        found.append({"instruction": traits.ptx, "operation": form.operation, "equal": equal})
    return found


def record(out: Path) -> dict[str, Any]:
    """Compare, and write both files; returns what was written to the first."""
    with np.load(out / "matrix.npz") as held:
        rows = matrices(held)
    with np.load(out / "mover.npz") as held:
        moved = movers(held)
    with np.load(out / "sparse.npz") as held:
        sparse = analyse(dict(held))
    group = json.loads((out / "group.json").read_text())
    assembled = assemble()
    result = {
        "device": HEAD,
        "command": "python -m benchmarks.silicon",
        "mma.sync": rows,
        "moves": moved,
        "wgmma": {k: {x: v[x] for x in ("operation", "equal", "different")} for k, v in group.items()},
        "wgmma.sp": {k: {x: v[x] for x in ("operation", "equal", "different")} for k, v in sparse.items()},
        "tiles": json.loads((out / "tiles.json").read_text()),
        "conversions": json.loads((out / "conversions.json").read_text()),
        "assembled": {k: v["target"] for k, v in assembled.items() if "refused" not in v},
        "refused": {k: v for k, v in assembled.items() if "refused" in v},
    }
    DIGESTS.write_bytes(lzma.compress("".join(json.dumps(x) + "\n" for x in digests(out)).encode(), preset=9))
    MEASURED.write_text(json.dumps(result, indent=None, separators=(",", ":")) + "\n")
    EVIDENCE.write_text(evidence_text(result))
    return result


def digests(out: Path) -> Iterator[dict[str, Any]]:
    """A row for every instruction whose result of random operands is kept as a digest; operands as in `measure`.

    Of a sparse one, what two hot elements of A met: the run, the first result and its bits, how many there were.
    """
    for kind in ("matrix", "mover", "random"):
        for name, row in json.loads((out / f"{kind}.json").read_text()).items():
            yield {"kind": kind, "name": name, "digests": row.get("digests", [row.get("digest")])}
    with np.load(out / "sparse.npz") as held:
        for name in held.files:
            if name.endswith(" 0 0"):
                first, count = held[name], held[f"{name} n"]
                runs = random.Random(name).sample(np.flatnonzero(count).tolist(), 2)
                met = [[run, f"{int(first[run]):x}", int(count[run])] for run in runs]
                yield {"kind": "sparse", "name": name.removesuffix(" 0 0"), "met": met}


def evidence_text(result: dict[str, Any]) -> str:
    """`word name` of every row: executed, differs, instruction (of a product of several), assembled, refused."""
    verdicts: dict[str, list[str]] = {}
    for row in result["mma.sync"]:
        for name in row["operations"]:
            several = MMA_ATOMS[name].ptx[0].isdigit()
            verdicts.setdefault(name, []).append(
                "differs" if not row["equal"] else "instruction" if several else "executed"
            )
    for row in result["moves"]:
        verdicts.setdefault(row["operation"], []).append("executed" if row["equal"] else "differs")
    for part in ("wgmma", "wgmma.sp"):
        for row in result[part].values():
            name = row["operation"].rsplit("::", 1)[-1]
            verdicts.setdefault(name, []).append("executed" if row["equal"] else "differs")
    for name in result["assembled"]:
        verdicts.setdefault(name.partition("<")[0].rsplit("::", 1)[-1], []).append("assembled")
    for name in result["refused"]:
        verdicts.setdefault(name.partition("<")[0].rsplit("::", 1)[-1], []).append("refused")
    order = ("differs", "refused", "instruction", "executed", "assembled")
    lines = [f"{next(x for x in order if x in found)} {name}" for name, found in verdicts.items()]
    head = f"# {HEAD}: python -m benchmarks.silicon; newer architectures: ptxas 13.0.88\n"
    return head + "\n".join(lines) + "\n"


def summary(result: dict[str, Any]) -> str:
    """Counts of what was found."""
    parts = {
        "mma.sync": Counter(x["equal"] for x in result["mma.sync"]),
        "moves": Counter(x["equal"] for x in result["moves"]),
        "wgmma": Counter("equal" if not x["different"] else "different" for x in result["wgmma"].values()),
        "wgmma.sp": Counter("equal" if not x["different"] else "different" for x in result["wgmma.sp"].values()),
    }
    return "\n".join(f"{name}: {dict(count)}" for name, count in parts.items())
