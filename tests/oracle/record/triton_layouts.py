"""Records what Triton computes and prints for random encodings: `triton_layouts.jsonl.xz`.

    python tests/oracle/record/triton_layouts.py OUT.jsonl.xz [ROWS]

Runs in any Python that has Triton (a CPU is enough), and needs nothing of this package. A row is the encoding as Triton
prints it, a shape, the bases of each dimension that comes in, and for some rows the text of the whole linear layout.
Triton ends the process where parameters do not fit, so every row is made in a process of its own; those are left out.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import os
import random
import re
import sys
from typing import Any

SEED = 20261122


def _power(random_: random.Random, low: int, high: int) -> int:
    return int(1 << random_.randint(low, high))


def _split(random_: random.Random, bits: int, rank: int) -> list[int]:
    """`rank` powers of two whose product is 2**bits."""
    sizes = [1] * rank
    for _ in range(bits):
        sizes[random_.randrange(rank)] *= 2
    return sizes


def _ctas(random_: random.Random, rank: int) -> list[list[int]]:
    """Bases of the blocks of a cluster; mostly none."""
    if random_.random() < 0.8:
        return []
    sizes, bases = [1] * rank, []
    for _ in range(random_.randint(1, 2)):
        mode, basis = random_.randrange(rank + 1), [0] * rank
        if mode < rank:
            basis[mode] = sizes[mode]
            sizes[mode] *= 2
        bases.append(basis)
    return bases


def _blocked(random_: random.Random, rank: int) -> Any:
    from triton.experimental.gluon.language._layouts import BlockedLayout

    order = list(range(rank))
    random_.shuffle(order)
    values = _split(random_, random_.randint(0, 5), rank)
    warps = _split(random_, random_.randint(0, 3), rank)
    return BlockedLayout(values, _split(random_, 5, rank), warps, order, _ctas(random_, rank))


def _mma(random_: random.Random, rank: int, ampere: bool = False) -> Any:
    from triton.experimental.gluon.language._layouts import NVMMADistributedLayout

    hopper = rank == 2 and not ampere and random_.random() < 0.5
    batch = [1] * (rank - 2)
    if hopper:
        n, k = _power(random_, 3, 8), random_.choice([8, 16, 32])
        warps = [4 * _power(random_, 0, 1), _power(random_, 0, 1)]
        return NVMMADistributedLayout([3, 0], warps, [16, n, k], _ctas(random_, rank))
    warps = _split(random_, random_.randint(0, 3), rank)
    return NVMMADistributedLayout([2, 0], warps, [*batch, 16, 8], _ctas(random_, rank))


def _dot(random_: random.Random, rank: int) -> Any:
    from triton.experimental.gluon.language._layouts import DotOperandLayout

    operand = random_.randrange(2)
    if random_.random() < 0.3:
        return DotOperandLayout(operand, _blocked(random_, rank), 0)
    parent = _mma(random_, rank, ampere=operand == 1)
    return DotOperandLayout(operand, parent, random_.choice([1, 2, 4, 8]))


def _slice(random_: random.Random, rank: int) -> Any:
    from triton.experimental.gluon.language._layouts import SliceLayout

    make = random_.choice([_blocked, _mma]) if rank >= 1 else _blocked
    parent = make(random_, rank + 1)
    return SliceLayout(random_.randrange(rank + 1), parent)


def _swizzled(random_: random.Random, rank: int) -> Any:
    from triton.experimental.gluon.language._layouts import SwizzledSharedLayout

    order = list(range(rank))
    random_.shuffle(order)
    numbers = (_power(random_, 0, 4), _power(random_, 0, 2), _power(random_, 0, 3))
    return SwizzledSharedLayout(*numbers, order, _ctas(random_, rank))


def _nvmma(random_: random.Random, rank: int) -> Any:
    from triton.experimental.gluon.language._layouts import NVMMASharedLayout

    width = random_.choice([8, 16, 32])
    packed = width == 8 and random_.random() < 0.3
    swizzle = 128 if packed else random_.choice([0, 32, 64, 128])
    return NVMMASharedLayout(swizzle, width, rank, random_.random() < 0.4, packed, _ctas(random_, rank))


MAKERS = {
    "blocked": (_blocked, (1, 2, 2, 3, 4)),
    "nvidia_mma": (_mma, (2, 2, 3)),
    "dot_op": (_dot, (2, 2, 3)),
    "slice": (_slice, (1, 2)),
    "swizzled_shared": (_swizzled, (1, 2, 2, 3, 4)),
    "nvmma_shared": (_nvmma, (1, 2, 2, 2, 2, 3, 4)),
}


def _row(kind: str, seed: int) -> dict[str, Any]:
    from triton._C.libtriton import gluon_ir, ir
    from triton.tools import LinearLayout

    random_ = random.Random(seed)
    make, ranks = MAKERS[kind]
    rank = random_.choice(ranks)
    layout = make(random_, rank)
    shape = [_power(random_, *((1, 10) if rank < 3 else (0, 5))) for _ in range(rank)]
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    encoding = layout._to_ir(builder)
    shared = kind.endswith("shared")
    element = builder.get_half_ty()
    if shared:
        whole = str(builder.get_shared_mem_desc_ty(element, shape, encoding, shape))
        text = re.sub(r"^[^#]*|, #ttg\.shared_memory.*$", "", whole)
    else:
        text = re.sub(r"^[^#]*|>$", "", str(builder.get_distributed_ty(element, shape, encoding)))
    found = builder.to_linear_layout(encoding, shape)
    if shared:
        bases = {"offset": found.offset_bases, "block": found.block_bases}
    else:
        bases = {"register": found.reg_bases, "lane": found.lane_bases, "warp": found.warp_bases}
        bases["block"] = found.block_bases
    names = [f"dim{i}" for i in range(rank)]
    printed = str(LinearLayout.from_bases(list(bases.items()), names, shape, False))
    return {"kind": kind, "encoding": text, "shape": shape, "bases": bases, "text": printed}


def _in_a_process(kind: str, seed: int) -> dict[str, Any] | None:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with contextlib.suppress(Exception):
            os.write(writer, json.dumps(_row(kind, seed)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        data = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(data) if status == 0 and data else None


def main(out: str, count: int) -> None:
    import triton
    import triton.experimental.gluon  # once, before the processes

    seeds = random.Random(SEED)
    found: list[dict[str, Any]] = []
    kinds, tries = list(MAKERS), 0
    while len(found) < count and tries < 4 * count:
        kind = kinds[tries % len(kinds)]
        tries += 1
        row = _in_a_process(kind, seeds.getrandbits(48))
        if row is not None:
            found.append({"id": f"triton_{len(found)}", "triton": triton.__version__, **row})
    with lzma.open(out, "wt", preset=9) as file:
        file.writelines(json.dumps(row) + "\n" for row in found)
    print(len(found), "rows of", tries, "tries")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1200)
