"""The full sweep: every variant, every combination of the tensor forms and many random texts, on every architecture.

    python -m tests.ptx.sweep [--random 4000] [--out docs/measurements/ptx-sweep.json]

Asks ptxas for each text and architecture at the newest PTX version, and for the first version of each variant, compares
with the table, and writes what it found. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.assembler import assemble_each
from cute_py.errors import UnknownFactError
from cute_py.ptx.check import ParsedInstruction, examine
from cute_py.ptx.forms_barrier import ORDINAL_FIELDS, REPLACE_FIELDS, WIDE_FIELDS
from cute_py.ptx.module import find_ptxas, ptxas_version
from cute_py.ptx.reasons import VARIANTS
from cute_py.targets import ARCHITECTURES, NEWEST_VERSION, Version, architecture, version_text
from tests.ptx.refusals import REFUSALS
from tests.ptx.texts import MODES, random_texts

# Versions below 7.0 are older than everything that the table asks for.
VERSIONS: tuple[Version, ...] = (
    *((7, minor) for minor in range(9)),
    *((8, minor) for minor in range(9)),
    NEWEST_VERSION,
)
KINDS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "sub")
DEFAULT_OUT = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "ptx-sweep.json"


def _coords(dim: int, mode: str) -> str:
    return "{" + ", ".join(f"%r{10 + n}" for n in range(5 if "4" in mode else dim)) + "}"


def _offsets(dim: int, mode: str) -> str:
    count = {"im2col": max(1, dim - 2), "im2col::w": 2, "im2col::w::128": 2}.get(mode, 0)
    return ", {" + ", ".join(f"%h{2 + n}" for n in range(count)) + "}" if count else ""


def tensor_texts() -> Iterator[str]:
    """Every combination of dimension, mode, space and option of the four tensor forms, legal or not."""
    for dim, mode, hint in itertools.product(range(1, 6), MODES, (False, True)):
        at, offsets, dot = _coords(dim, mode), _offsets(dim, mode), f".{mode}" if mode else ""
        suffix, policy = (".L2::cache_hint", ", %rd3") if hint else ("", "")
        for space, mask, group in itertools.product(
            ("shared::cluster", "shared::cta"), (False, True), ("", ".cta_group::1", ".cta_group::2")
        ):
            options = (".multicast::cluster" if mask else "") + group + suffix
            yield (
                f"cp.async.bulk.tensor.{dim}d.{space}.global{dot}.mbarrier::complete_tx::bytes{options} "
                f"[%r1], [%rd1, {at}], [%r2]{offsets}{', %h1' if mask else ''}{policy};"
            )
        for space in ("shared::cta", "shared::cluster"):
            name = f"cp.async.bulk.tensor.{dim}d.global.{space}{dot}.bulk_group{suffix}"
            yield f"{name} [%rd1, {at}], [%r1]{offsets}{policy};"
        for kind in KINDS:
            name = f"cp.reduce.async.bulk.tensor.{dim}d.global.shared::cta.{kind}{dot}.bulk_group{suffix}"
            yield f"{name} [%rd1, {at}], [%r1]{offsets}{policy};"
        yield f"cp.async.bulk.prefetch.tensor.{dim}d.L2.global{dot}{suffix} [%rd1, {at}]{offsets}{policy};"


def replace_texts() -> Iterator[str]:
    """Every field, space and type of tensormap.replace, and the values around each limit."""
    for field, space, type_ in itertools.product(REPLACE_FIELDS, ("", ".global", ".shared::cta"), ("b32", "b64")):
        ordinal = "0, " if field in ORDINAL_FIELDS else ""
        for value in ("%r2", "%rd2", *map(str, (-1, 0, 1, 2, 3, 4, 5, 12, 13, 15, 16))):
            yield f"tensormap.replace.tile.{field}{space}.b1024.{type_} [%rd1], {ordinal}{value};"
    for field, ordinal in itertools.product(ORDINAL_FIELDS, range(-1, 7)):
        type_, value = ("b64", "%rd2") if field in WIDE_FIELDS else ("b32", "%r2")
        yield f"tensormap.replace.tile.{field}.shared::cta.b1024.{type_} [%r1], {ordinal}, {value};"


def texts(random_count: int) -> dict[str, ParsedInstruction]:
    """All texts that the table covers, with its answer."""
    known = {}
    sources = ([variant.text for variant in VARIANTS], (text for _, text in REFUSALS), tensor_texts(), replace_texts())
    for text in itertools.chain(*sources, random_texts(random_count, seed=20261120)):
        try:
            known[text] = examine(text)
        except UnknownFactError:
            continue
    return known


def compare(
    known: dict[str, ParsedInstruction], arch: str, version: Version
) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Ask ptxas for all texts at once: (accepted per family, differences)."""
    accepted: Counter[str] = Counter()
    differences = []
    for (text, examined), message in zip(known.items(), assemble_each(list(known), arch, version), strict=True):
        family = examined.form.family if examined.form is not None else "absent"
        accepted[family] += message is None
        reasons = examined.reasons(arch, version)
        if (not reasons) != (message is None):
            differences.append(
                {"text": text, "arch": arch, "version": version_text(version), "table": reasons, "ptxas": message}
            )
    return accepted, differences


def first_versions(arch: str) -> dict[str, str | None]:
    """The first version that takes each variant on `arch`, found with ptxas alone."""
    floor = architecture(arch).floor
    found: dict[str, str | None] = {variant.name: None for variant in VARIANTS}
    for version in reversed([v for v in VERSIONS if floor is not None and v >= floor]):
        said = assemble_each([variant.text for variant in VARIANTS], arch, version)
        for variant, message in zip(VARIANTS, said, strict=True):
            if message is None:
                found[variant.name] = version_text(version)
    return found


def grouped(versions: dict[str, dict[str, str | None]]) -> dict[str, dict[str, str]]:
    """variant -> first version -> the architectures that take it from there on."""
    rows: dict[str, dict[str, list[str]]] = {variant.name: {} for variant in VARIANTS}
    for arch, found in versions.items():
        for name, version in found.items():
            if version is not None:
                rows[name].setdefault(version, []).append(arch)
    return {name: {version: " ".join(archs) for version, archs in sorted(row.items())} for name, row in rows.items()}


def sweep(random_count: int) -> dict[str, Any]:
    """The whole measurement as one JSON value."""
    known = texts(random_count)
    counts, differences, versions = {}, [], {}
    families = Counter(e.form.family if e.form is not None else "absent" for e in known.values())
    for row in ARCHITECTURES:
        if row.floor is None:
            continue
        accepted, found = compare(known, row.name, NEWEST_VERSION)
        counts[row.name] = dict(sorted(accepted.items()))
        differences += found
        versions[row.name] = first_versions(row.name)
        for variant in VARIANTS:
            ours = known[variant.text].min_version(row.name)
            said = versions[row.name][variant.name]
            if row.floor >= VERSIONS[0] and (version_text(ours) if ours else None) != said:
                differences.append({"variant": variant.name, "arch": row.name, "table": ours, "ptxas": said})
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "ptxas": ptxas_version(),
        "texts": len(known),
        "texts_by_family": dict(sorted(families.items())),
        "verdicts": len(known) * len(counts),
        "differences": differences,
        "accepted_at_newest_version": counts,
        "first_version_of_each_variant": grouped(versions),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=4000, help="random texts beside the systematic ones")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    options = parser.parse_args()
    if find_ptxas() is None:
        print("no ptxas on PATH or in an nvidia-cuda-nvcc wheel", file=sys.stderr)
        return 2
    result = sweep(options.random)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['verdicts']} verdicts on {result['texts']} texts, {len(result['differences'])} differences")
    return 1 if result["differences"] else 0


if __name__ == "__main__":
    sys.exit(main())
