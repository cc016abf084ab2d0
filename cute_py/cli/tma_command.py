"""`cute-py tma`: from a global layout, a shared layout and a tile to the box, the partition and the reasons."""

from __future__ import annotations

import argparse
import json
from typing import Any

import cute_py as cute
from cute_py.cli.argument_types import integer
from cute_py.tma.copy_atom.make import make_tma_copy
from cute_py.tma.copy_atom.tiles import instructions


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "tma",
        help="which box a tile becomes, and why: G-basis, TMA tensor, partition, descriptor",
        description="Layouts are written as CuTe prints them: '(1024,512):(512,_1)', "
        "'Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)', tile '(_128,_64)'.",
    )
    p.add_argument("gmem", help="layout of the global tensor, in elements")
    p.add_argument("smem", help="layout of the tile in shared memory")
    p.add_argument("tile", nargs="?", help="the tile; default the shape of the shared layout")
    p.add_argument("--dtype", default="float16", help="element type")
    p.add_argument("--op", default="SM90_TMA_LOAD", help="operation, such as SM90_TMA_LOAD_MULTICAST")
    p.add_argument("--multicast", type=int, default=1, help="CTAs that share the tile")
    p.add_argument("--internal-dtype", help="the type that TMA counts in")
    p.add_argument("--address", type=integer, default=4096, help="global address")
    p.add_argument("--arch", default="sm_90a")
    p.add_argument("--no-check", action="store_true", help="show the atom even where the driver would refuse it")
    p.add_argument("--json", action="store_true", help="the result as JSON")
    p.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Explain the atom."""
    gmem = cute.make_tensor(cute.make_gmem_ptr(options.address, options.dtype), cute.parse(options.gmem))
    atom = make_tma_copy(
        options.op,
        gmem,
        cute.parse(options.smem),
        cute.parse(options.tile) if options.tile else None,
        options.multicast,
        options.internal_dtype,
        options.arch,
        check=not options.no_check,
    )
    if not options.json:
        print(atom.explain())
        return 0
    work = instructions(atom)
    data = {
        "g_basis": str(atom.gbasis),
        "stages": {name: str(value) for name, value, _ in atom.gbasis.trace.steps()},
        "tma_tensor": str(atom.get_tma_tensor()),
        "partition": {"gmem": str(work.gmem_partition), "smem": str(work.smem_partition)},
        "global_dim": list(atom.plan.dims),
        "global_strides": list(atom.plan.strides),
        "box_dim": list(atom.plan.box),
        "swizzle": atom.swizzle_row.name,
        "instructions_per_tile": atom.instructions,
        "tiles": work.tiles,
        "transaction_bytes": atom.transaction_bytes,
        "alignment": atom.alignment,
    }
    print(json.dumps(data, indent=2))
    return 0
