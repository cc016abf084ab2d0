"""Evidence for the row of each operation: measured on a device, assembled by ptxas, or only compared with CuTe C++.

`evidence.txt` next to this module has a line for each operation that was also executed or assembled.
`python -m benchmarks.silicon record` writes it, and docs/measurements/atoms-h200.md describes the measurements.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources
from typing import Final

from cute_py.atom.copy_atom import CopyAtom, CopyTraits
from cute_py.atom.mma_atom import MmaAtom

_SENTENCES: Final[Mapping[str, str]] = {
    "executed": "measured on {device}: the threads hold these elements",
    "differs": "measured on {device}: the instruction moves values between threads, which these layouts do not show",
    "instruction": "measured on {device}: the underlying instruction was run",
    "assembled": "assembled by {assembler}, not executed",
    "refused": "rejected by {assembler}",
}


@functools.cache
def _lines() -> tuple[str, Mapping[str, str]]:
    """Return the device and assembler of the measurements, and a mapping operation -> evidence."""
    first, *lines = resources.files("cute_py.atom").joinpath("evidence.txt").read_text().splitlines()
    pairs = (line.partition(" ") for line in lines)
    return first.lstrip("# "), {operation: verdict for verdict, _, operation in pairs}


def evidence_of(atom: MmaAtom | CopyAtom | CopyTraits) -> str:
    """Return the evidence for an atom's row, as a sentence without a full stop.

    >>> from cute_py.atom import mma_atom
    >>> evidence_of(mma_atom("SM80_16x8x16_F32F16F16F32_TN")).partition(":")[0]
    'measured on NVIDIA H200, driver 580.159.04, 2026-11-22'
    >>> evidence_of(mma_atom("SM100_MMA_TF32_SS<tfloat32_t,tfloat32_t,float,128,64,K,K>"))
    'assembled by ptxas 13.0.88, not executed'
    """
    head, words = _lines()
    device, _, rest = head.partition(": ")
    word = words.get(atom.op.rsplit("::", 1)[-1])
    if word is None:
        return "as in C++; not measured"
    return _SENTENCES[word].format(device=device, assembler=rest.rpartition(": ")[2])
