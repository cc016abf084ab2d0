"""Make the records of CuTe C++ again, and compare them with the stored ones or write them.

    python -m tests.oracle.record CUTLASS --check
    python -m tests.oracle.record CUTLASS --out DIR --only algebra
    python -m tests.oracle.record CUTLASS --cuda /usr/local/cuda/include --check --every 20

CUTLASS is a checkout, or its include folder; g++ and the CUDA headers are needed, no GPU, driver or nvcc. `--check`
exits with 1 where a row differs. Nothing of CUTLASS is kept. All of it takes about a quarter of an hour of one core;
`--every` takes a sample.

Not made again, because no C++ gives them, and copied from the stored rows: the fields that each family names in
`copied` (labels, the Python expressions, an evaluation of the driver's documentation). A part of a row that the
stored row does not have (a tiled copy that was not asked for) is not asked for again. Where a stored row that does not
compile has no tiler, the shape of its shared layout stands in. Places in the headers (`@ file:line`) are those of one
CUTLASS version: another one gives other lines.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.oracle.record import algebra, atoms, gbasis, printing
from tests.oracle.record.batches import again, difference, moved
from tests.oracle.record.family import Family, Row
from tests.oracle.record.program import compiler
from tests.oracle.records import rows

FAMILIES: dict[str, tuple[Family, ...]] = {
    "algebra": algebra.FAMILIES,
    "print": printing.FAMILIES,
    "gbasis": (gbasis.GBASIS, atoms.RANDOM),
    "tiled": (printing.TILED,),
}

CUDA = Path("/usr/local/cuda/include")
"""Where the CUDA headers are unless --cuda says otherwise."""

SHOWN = 10
"""Differences shown of each file."""


def arguments(words: Sequence[str] | None) -> argparse.Namespace:
    summary, _, details = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle.record",
        description=summary,
        epilog=details,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cutlass", type=Path, help="a CUTLASS checkout, or its include folder")
    parser.add_argument("--cuda", type=Path, nargs="+", default=[CUDA], help="folders of the CUDA headers")
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=list(FAMILIES), help="these families")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth row only (with --check)")
    parser.add_argument("--jobs", type=int, default=1, help="programs compiled at a time (1 GiB each)")
    todo = parser.add_mutually_exclusive_group(required=True)
    todo.add_argument("--check", action="store_true", help="compare with the stored rows")
    todo.add_argument("--out", type=Path, metavar="DIR", help="write the rows to DIR/<file>.jsonl.xz")
    options = parser.parse_args(words)
    if options.every != 1 and options.out:
        parser.error("--every leaves rows out; it goes with --check only")
    return options


def show_progress(file: str) -> Callable[[int, int], None]:
    """A line on stderr that says how many programs are done."""
    start = time.monotonic()

    def show(done: int, total: int) -> None:
        end = "\n" if done == total else "\r"
        print(
            f"{file}: {done} of {total} programs, {time.monotonic() - start:.0f} s",
            end=end,
            file=sys.stderr,
            flush=True,
        )

    return show


def compare(file: str, stored: Sequence[Row], made: Sequence[Row]) -> int:
    """Print equal and different rows; the number of different ones."""
    found = [(old, text) for old, new in zip(stored, made, strict=True) if (text := difference(old, new))]
    places = sum(moved(old, new) for old, new in zip(stored, made, strict=True))
    tail = f" ({places} of them but for the line of a header)" if places else ""
    print(f"{file}: {len(stored) - len(found)} of {len(stored)} rows equal{tail}, {len(found)} different")
    for row, text in found[:SHOWN]:
        name = row.get("name") or row.get("id") or row.get("expr") or f"{row['op']} {row['gmem']} {row['smem']}"
        print(f"  {name}\n    {text}")
    if len(found) > SHOWN:
        print(f"  and {len(found) - SHOWN} more")
    return len(found)


def not_made(family: Family, stored: Sequence[Row]) -> list[str]:
    """What of these rows no C++ gives, each with the reason."""
    copied = [f"{name} ({why})" for name, why in family.copied.items() if any(name in row for row in stored)]
    return [*copied, *family.limits]


def cuda_includes(folders: Sequence[Path]) -> list[Path]:
    """The folders, each with the `cccl` in it if there is one."""
    if not any((folder / "cuda.h").is_file() for folder in folders):
        raise FileNotFoundError(f"no cuda.h in {', '.join(map(str, folders))}; --cuda names the CUDA headers")
    return [path for folder in folders for path in (folder, folder / "cccl") if path.is_dir()]


def write(folder: Path, file: str, made: Sequence[Row]) -> None:
    """The rows as JSON lines, xz-compressed, in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    with lzma.open(folder / f"{file}.jsonl.xz", "wt") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in made)


def main(words: Sequence[str] | None = None) -> int:
    options = arguments(words)
    different = 0
    try:
        with compiler(options.cutlass, cuda_includes(options.cuda)) as made:
            for family in (family for name in options.only for family in FAMILIES[name]):
                stored = rows(family.file)[:: options.every]
                result = again(family, stored, made, jobs=options.jobs, progress=show_progress(family.file))
                print(f"{family.file}: not made again: " + "; ".join(not_made(family, stored)))
                if options.check:
                    different += compare(family.file, stored, result)
                else:
                    write(options.out, family.file, result)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
