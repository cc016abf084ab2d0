"""`cute-py copy`: a tensor from a file, tile by tile through the emulated TMA engine, into another; is it equal?"""

from __future__ import annotations

import argparse
import json
from typing import Any

import cute_py as cute
from cute_py.cli.colours import tell
from cute_py.cli.files import SUFFIXES, check_output, read_array, write_array
from cute_py.cli.progress import progress_bar
from cute_py.cli.standard_input import file_of
from cute_py.cli.tensor_copy import SWIZZLES, TensorCopy, make_copy, parse_tile
from cute_py.copies.copy import copy
from cute_py.copies.emulated_copy import CopyResult
from cute_py.errors import counted
from cute_py.tensor.printing import format_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.descriptor.describe import describe

SHOWN_ELEMENTS = 64
"""A TMA tensor of at most so many elements is printed whole, of a larger one its first corner."""


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "copy",
        help="copy a tensor from a file tile by tile through an emulated (or real) TMA engine",
        description="Reads a tensor, builds its layout, a shared-memory tile, the TMA atom and its descriptor, copies "
        "the whole tensor tile by tile, and compares. Exit status 0 only if the copy equals the input, 2 if it is "
        "refused.",
    )
    p.add_argument("input", help=".npy, .npz or .safetensors file; - reads standard input")
    p.add_argument("--tile", required=True, help="tile, such as 128x64; a shorter one is for the last dimensions")
    p.add_argument("--key", help="name of the array in a .npz or .safetensors file")
    p.add_argument("--swizzle", choices=list(SWIZZLES), default="none", help="shared-memory swizzle (bytes)")
    p.add_argument("--order", choices=["row", "col"], help="which dimension is contiguous: last (row) or first (col)")
    p.add_argument("--dtype", help="read the elements as this type of the same width, such as bf16")
    p.add_argument(
        "--out", help="write the copy to this file (.npy, .npz or .safetensors); of a link to what it points to"
    )
    p.add_argument("--backend", choices=["emulator", "cuda", "both"], default="emulator")
    p.add_argument("--json", action="store_true", help="the report as JSON")
    p.set_defaults(run=run)


def corner(atom: TmaAtom) -> str:
    """The TMA tensor as print_tensor shows it; of a large one the header and its first elements."""
    tensor = atom.get_tma_tensor()
    if int(cute.size(tensor)) <= SHOWN_ELEMENTS:
        return format_tensor(tensor).rstrip("\n")
    shape = tuple([min(int(cute.size(tensor, i)), 4 if i < 2 else 1) for i in range(int(cute.rank(tensor)))])
    first = cute.composition(tensor, shape)
    rank = int(cute.rank(first))
    if rank > 2:
        first = first((None, None, *(0,) * (rank - 2)))
    rows = format_tensor(first, header=False).rstrip("\n")
    return f"{tensor}:\n{rows}\n  ... (first elements of {int(cute.size(tensor))})"


def report(work: TensorCopy, result: CopyResult, source: str) -> dict[str, Any]:
    """Everything that the command tells, as data."""
    atom = work.atom
    plan = instructions(atom)
    request = atom.request
    return {
        "input": source,
        "dtype": work.dtype.name,
        "order": work.order,
        "gmem_layout": str(atom.gtensor.layout),
        "smem_layout": str(atom.smem_layout),
        "g_basis": str(atom.gbasis),
        "tma_tensor": str(atom.get_tma_tensor()),
        "partition": {"gmem": str(plan.gmem_partition), "smem": str(plan.smem_partition)},
        "descriptor": {
            "bytes": atom.descriptor.hex(),
            "data_type": getattr(request.data_type, "name", request.data_type),
            "global_dim": list(request.global_dim),
            "global_strides": list(request.global_strides),
            "box_dim": list(request.box_dim),
            "swizzle": atom.swizzle_row.name,
        },
        "tiles": result.tiles,
        "instructions": result.instructions,
        "instructions_per_tile": atom.instructions,
        "transaction_bytes": result.transaction_bytes,
        "smem_alignment": atom.alignment,
        "bytes": result.bytes,
        "seconds": round(result.seconds, 6),
        "backend": result.backend,
        "warnings": list(result.warnings),
        "equal": result.equal,
        "difference": result.difference,
    }


def run(options: argparse.Namespace) -> int:
    """Copy and report. Returns 0 if equal, else 1."""
    if options.out is not None:
        check_output(options.out, SUFFIXES)
    tile = parse_tile(options.tile)
    with file_of(options.input) as name:
        array = read_array(name, options.key, options.dtype)
    work = make_copy(array, tile, options.swizzle, options.order)
    with progress_bar(array.nbytes) as progress:
        result = copy(work.atom, work.bits, backend=options.backend, progress=progress)
    data = report(work, result, options.input)
    if options.out is not None:
        note = write_array(options.out, result.destination.view(array.dtype), options.key or "tensor")
        data["out"] = options.out
        if note:
            data["warnings"].append(note)
    if options.json:
        print(json.dumps(data, indent=2))
    else:
        tell(told(work, data))
    return 0 if result.equal else 1


def told(work: TensorCopy, data: dict[str, Any]) -> str:
    """The report in words."""
    atom = work.atom
    rate = data["bytes"] / max(data["seconds"], 1e-9) / 1e9
    lines = [
        f"tensor       {data['input']}: {data['dtype']} {atom.gtensor.layout}",
        f"shared tile  {atom.smem_layout}, aligned to {atom.alignment} bytes",
        f"G-basis      {atom.gbasis}",
        "",
        "TMA tensor",
        *[f"  {line}" for line in corner(atom).splitlines()],
        "",
        "partition    ((TMA, TMA_Iter), tiles)",
        f"  gmem       {data['partition']['gmem']}",
        f"  smem       {data['partition']['smem']}",
        "",
        *[line.rstrip() for line in str(describe(atom.descriptor)).splitlines()],
        "",
        f"tiles        {data['tiles']} of {counted(data['instructions_per_tile'], 'instruction')}: "
        f"{counted(data['instructions'], 'load')}",
        f"barrier      expects {data['transaction_bytes']} bytes a tile",
        f"copied       {data['bytes']} bytes in {data['seconds']:.3f} s ({rate:.2f} GB/s, {data['backend']})",
        *[f"warning      {w}" for w in data["warnings"]],
        *([f"written      {data['out']}"] if "out" in data else []),
        "equal" if data["equal"] else f"NOT EQUAL: {data['difference']}",
    ]
    return "\n".join(lines)
