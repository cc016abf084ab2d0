"""python -m tests.characterisation: compare the outcomes of 20,000 seeded calls with the record, or record them.

Every text of kernels, instructions and exports is compared too, and the public surface. Exit status 1 if anything
differs that `reworded.txt` does not list.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys

from tests.characterisation import surface_text, texts
from tests.characterisation.compare import calls_that_differ, surface_that_differs, texts_that_differ
from tests.characterisation.outcomes import UNSTEADY, digest, in_full, outcomes, sample, tasks
from tests.characterisation.record import DATA, SURFACE, environment, load, save


def record() -> int:
    """Make the record. A second process makes the calls again: what differs there is left out as unsteady."""
    calls = outcomes(tasks())
    first = DATA / "first.xz"
    save(calls, {}, first)
    other = dict(os.environ, PYTHONHASHSEED="4711")
    again = subprocess.run(
        [sys.executable, "-m", __spec__.name.rpartition(".")[0], "--unsteady", str(first)],
        env=other,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    first.unlink()
    unsteady = set(again.stdout.split("\n")) - {""}
    for task, kept in calls.items():
        if f"{task.name}\t{task.number}" in unsteady:
            kept["kind"], kept["hash"] = UNSTEADY, "0" * 16
    said = texts.texts()
    save(calls, {label: digest(text) for label, text in said.items()})
    SURFACE.write_text(surface_text.text(), encoding="utf-8")
    print(f"{len(calls)} calls, {sum(r['kind'] == UNSTEADY for r in calls.values())} unsteady, {len(said)} texts")
    return 0


def list_unsteady(path: str) -> int:
    """Print the calls of a record that have another outcome in this process."""
    from pathlib import Path

    before = load(Path(path)).calls
    for task, now in outcomes(list(before)).items():
        if before[task] != (now["kind"], now["hash"]):
            print(f"{task.name}\t{task.number}")
    return 0


def compare(names: str, one_in: int) -> int:
    """Print what differs. Returns 1 if anything does."""
    recorded = load()
    if recorded.environment != environment():
        print(f"recorded with {recorded.environment}, this is {environment()}: outcomes of other packages may differ")
    of = [task for task in sample(tasks(), one_in) if re.search(names, task.name)]
    differences, accepted, missing = calls_that_differ(recorded, of)
    for difference in differences:
        print(difference)
    changed = texts_that_differ(recorded) if not names else []
    surface = surface_that_differs() if not names else []
    for text in [*changed, *surface]:
        print(text)
    print(f"{len(of)} calls: {len(differences)} differ, {accepted} reworded, {len(missing)} not recorded")
    print(f"{len(changed)} texts differ; {len(surface)} lines of the surface")
    return 1 if differences or changed or surface else 0


def show(name: str, number: int) -> int:
    """One call and its whole outcome."""
    for kept in outcomes(
        [task for task in tasks(10**6) if (task.name, task.number) == (name, number)], in_full
    ).values():
        print(kept.get("text", ""), kept["kind"], kept.get("said", ""), sep="\n")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.characterisation", description=__doc__)
    parser.add_argument("--record", action="store_true", help="make the record anew from this code")
    parser.add_argument("--names", default="", help="a regular expression: only calls of these names")
    parser.add_argument("--one-in", type=int, default=1, help="only one of so many calls")
    parser.add_argument("--show", nargs=2, metavar=("NAME", "NUMBER"), help="print one call and its outcome")
    parser.add_argument("--unsteady", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.unsteady:
        return list_unsteady(options.unsteady)
    if options.record:
        return record()
    if options.show:
        return show(options.show[0], int(options.show[1]))
    return compare(options.names, options.one_in)


if __name__ == "__main__":
    sys.exit(main())
