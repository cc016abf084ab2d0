"""What CUTLASS prints for its configurations of scales, at random sizes, on the host.

    CUTLASS_PATH=... python -m tests.oracle.record.scale_layouts OUT.jsonl.xz [SEED]

Rows: `configuration`, `M`, `K`, `L` (0: none given), `text`. Needs g++ and the CUDA headers (CUDA_PATH).
"""

from __future__ import annotations

import json
import lzma
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

CONFIGURATIONS = (
    "scaled16",
    "scaled32",
    "output16mn",
    "output32mn",
    "wise1x128mn",
    "wise1x128k",
    "wise128x128mn",
    "wise128x128k",
    "wise128x1k",
    "wise32x1mn",
)

PROGRAM = r"""
#include <cstdio>
#include <string>
#include "cute/layout.hpp"
#include "cutlass/detail/sm100_blockscaled_layout.hpp"
#include "cutlass/detail/blockwise_scale_layout.hpp"
using namespace cute;
template <class Shown> void out(Shown const& shown) { print(shown); printf("\n"); fflush(stdout); }
template <int V> void scaled(int m, int k, int l) {
  using Config = cutlass::detail::Sm1xxBlockScaledConfig<V>;
  if (l == 0) out(Config::tile_atom_to_shape_SFA(make_shape(m, 8, k)));
  else out(Config::tile_atom_to_shape_SFA(make_shape(m, 8, k, l)));
}
template <int V> void output(int m, int k, int l) {
  using Config = cutlass::detail::Sm1xxBlockScaledOutputConfig<V, UMMA::Major::MN>;
  out(Config::tile_atom_to_shape_SFD(make_shape(m, k, 8, l)));
}
template <int VM, int VK, UMMA::Major A> void wise(int m, int k, int l) {
  out(cutlass::detail::Sm1xxBlockwiseScaleConfig<VM, 128, VK, A, A>::tile_atom_to_shape_SFA(make_shape(m, 8, k, l)));
}
int main() {
  char name[64];
  int m, k, l;
  constexpr auto MN = UMMA::Major::MN, KM = UMMA::Major::K;
  while (scanf("%63s %d %d %d", name, &m, &k, &l) == 4) {
    std::string s = name;
    if (s == "scaled16") scaled<16>(m, k, l);
    if (s == "scaled32") scaled<32>(m, k, l);
    if (s == "output16mn") output<16>(m, k, l);
    if (s == "output32mn") output<32>(m, k, l);
    if (s == "wise1x128mn") wise<1, 128, MN>(m, k, l);
    if (s == "wise1x128k") wise<1, 128, KM>(m, k, l);
    if (s == "wise128x128mn") wise<128, 128, MN>(m, k, l);
    if (s == "wise128x128k") wise<128, 128, KM>(m, k, l);
    if (s == "wise128x1k") wise<128, 1, KM>(m, k, l);
    if (s == "wise32x1mn") wise<32, 1, MN>(m, k, l);
  }
}
"""


def sizes(seed: int, count: int = 24) -> list[tuple[str, int, int, int]]:
    """Random (configuration, M, K, L): sizes that divide, and others."""
    rng = random.Random(seed)
    made = []
    for name in CONFIGURATIONS:
        for i in range(count):
            m, k = (128 * rng.randint(1, 40) if i % 2 else rng.randint(1, 5000) for _ in range(2))
            made.append(
                (name, m, k, rng.choice((0, 0, 1, 2, 7)) if name.startswith("scaled") else rng.choice((1, 2, 5)))
            )
    return made


def main(path: str, seed: int) -> None:
    cuda = Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")) / "include"
    asked = sizes(seed)
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "p.cpp", Path(folder) / "p"
        source.write_text(PROGRAM)
        include = [f"-I{os.environ['CUTLASS_PATH']}/include", f"-I{cuda}", f"-I{cuda}/cccl"]
        subprocess.run(["g++", "-std=c++17", "-w", *include, str(source), "-o", str(program)], check=True)
        text = "".join(f"{name} {m} {k} {batch}\n" for name, m, k, batch in asked)
        lines = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout.split(
            "\n"
        )
    with lzma.open(path, "wt") as out:
        for (name, m, k, batch), line in zip(asked, lines, strict=False):
            out.write(json.dumps({"configuration": name, "M": m, "K": k, "L": batch, "text": line}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
