"""What CuTe's fragments of tensor memory print: where D, A and scale factors of tcgen05.mma lie, on the host.

    CUTLASS_PATH=... python -m tests.oracle.record.umma_fragments OUT.jsonl.xz

Rows: `operand` (D, A, SFA or SFB), `rows` of one CTA, `columns` (K of scale factors), `bits` of an element, `ctas`,
`ws` (weight-stationary), `factors` of a row (0: no scale factors), `text`. Needs g++ and the CUDA headers (CUDA_PATH).
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HEAD = """
#include <cstdio>
#include "cute/tensor.hpp"
#include "cute/atom/mma_traits_sm100.hpp"
using namespace cute;
template <class Fragment, class Shape> void out(Shape shape) { print(Fragment::make(shape)); printf("\\n"); }
int main() {
"""


def asked() -> list[tuple[dict[str, Any], str]]:
    """(row without its text, C++ type and shape) of each fragment."""
    made = []

    def add(fragment: str, shape: str, **row: Any) -> None:
        usual = {"bits": 32, "ctas": 1, "ws": False, "factors": 0}
        made.append((usual | row, f"out<UMMA::{fragment}>({shape});"))

    def shape(rows: int, columns: str) -> str:
        return f"make_shape(make_shape(Int<{rows}>{{}}, {columns}), _1{{}}, _1{{}})"

    for value, bits in (("float", 32), ("half_t", 16)):
        for ctas, sizes in ((1, (64, 128)), (2, (64, 128))):
            for rows in sizes:
                for n in (16, 32, 128, 256):
                    fragment = f"tmem_frg<{value}, uint32_t, {ctas}, UMMA::TmemAllocMode::Interleaved>"
                    add(fragment, shape(rows, f"Int<{n}>{{}}"), operand="D", rows=rows, columns=n, bits=bits, ctas=ctas)
        for rows in (32, 64, 128):
            for n in (64, 128, 256):
                fragment = f"tmem_frg_ws<{value}, uint32_t, 1>"
                add(fragment, shape(rows, f"Int<{n}>{{}}"), operand="D", rows=rows, columns=n, bits=bits, ws=True)
    for value, bits in (("half_t", 16), ("tfloat32_t", 32), ("int8_t", 8)):
        for rows in (64, 128):
            fragment = f"tmem_frg<{value}, {value}, 1, UMMA::TmemAllocMode::NonInterleaved>"
            k = 256 // bits
            add(fragment, shape(rows, f"Int<{k}>{{}}"), operand="A", rows=rows, columns=k, bits=bits)
    for vector, factors, element in ((16, 4, "float_ue4m3_t"), (32, 2, "float_ue8m0_t"), (32, 1, "float_ue8m0_t")):
        k = f"make_shape(Int<{vector}>{{}}, Int<{factors}>{{}})"
        size = vector * factors
        for operand, ctas, rows, mode in (
            ("SFA", 1, 128, "4by1"), ("SFA", 2, 64, "4by1"), ("SFA", 2, 128, "4by1"), ("SFB", 1, 64, "4by1"),
            ("SFB", 1, 256, "4by1"), ("SFB", 2, 128, "2by2"), ("SFB", 2, 256, "2by2"),
        ):  # fmt: skip
            first = "true" if operand == "SFA" else "false"
            mode_name = f"UMMA::TmemAllocMode::ScaleFactorDuplicated{mode}"
            fragment = f"tmem_sf_frg<{element}, {vector}, {ctas}, {first}, {mode_name}>"
            row = {"operand": operand, "rows": rows, "columns": size, "bits": 8, "ctas": ctas, "factors": factors}
            add(fragment, shape(rows, k), **row)
    return made


def main(path: str) -> None:
    cuda = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"
    wanted = asked()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "p.cpp", Path(folder) / "p"
        source.write_text(HEAD + "\n".join(statement for _, statement in wanted) + "\n}\n")
        include = [f"-I{os.environ['CUTLASS_PATH']}/include", f"-I{cuda}", f"-I{cuda}/cccl"]
        subprocess.run(["g++", "-std=c++17", "-w", *include, str(source), "-o", str(program)], check=True)
        lines = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.splitlines()
    with lzma.open(path, "wt") as out:
        for (row, _), line in zip(wanted, lines, strict=True):
            out.write(json.dumps(row | {"text": line}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
