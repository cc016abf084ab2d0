"""Record again what C++ prints: `python -m tests.oracle.record_print_cpp DIR -I cutlass/include -I cuda/include ...`.

Each row of print_cpp_run has a C++ statement (`cpp`) and the Python expression that must give the same text (`py`).
This program compiles the statements with g++ (C++17, on the host), runs them and writes the rows with the texts that
came out to DIR/print_cpp_run.jsonl.xz. Memory that the statements read is `BUF`, filled as in `MEMORY`.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

from tests.oracle.records import rows

MEMORY = "uint8_t((i*37+11)^(i>>3))"

HEAD = f"""#include <cute/tensor.hpp>
#include <cute/util/print_latex.hpp>
#include <cutlass/core_io.h>
#include <iostream>
using namespace cute;
alignas(1024) static uint8_t BUF[4096];
template <class T> T* P() {{ return (T*)BUF; }}
int main() {{ for (int i = 0; i < 4096; i++) BUF[i] = {MEMORY};
"""


def program(group: list[dict[str, Any]]) -> str:
    """One program that prints the text of every row, each after its id between two control characters."""
    body = "".join(
        f'printf("\\001{row["id"]}\\002"); {{ {row["cpp"]} }} fflush(stdout); std::cout.flush();\n' for row in group
    )
    return HEAD + body + "}\n"


def run(group: list[dict[str, Any]], folder: Path, options: list[str]) -> dict[str, str]:
    """id -> text, as the compiled program prints them."""
    source, binary = folder / "rows.cpp", folder / "rows"
    source.write_text(program(group))
    subprocess.run(["g++", "-std=c++17", "-w", *options, str(source), "-o", str(binary)], check=True)
    out = subprocess.run([str(binary)], check=True, capture_output=True).stdout.decode("latin1")
    return dict(part.split("\2", 1) for part in out.split("\1")[1:])


def main() -> None:
    folder, options = Path(sys.argv[1]), sys.argv[2:]
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows("print_cpp_run"):
        groups[row["group"]].append(row)
    with lzma.open(folder / "print_cpp_run.jsonl.xz", "wt") as lines:
        for group in groups.values():
            texts = run(group, folder, options)
            for row in group:
                lines.write(json.dumps({**row, "text": texts[row["id"]]}) + "\n")


if __name__ == "__main__":
    main()
