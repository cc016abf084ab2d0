"""`cute-py demo`: show four kinds of use on one screen; with a file, show the copy of its array step
by step."""

from __future__ import annotations

import argparse
import json
from textwrap import indent

import cute_py as cute
from cute_py.array_files import Array, read_array
from cute_py.cli.arguments import file_of, json_option
from cute_py.cli.copy_command import SWIZZLES, TensorCopy, make_copy, parse_tile, report_data, swizzle_option
from cute_py.copies.copy import copy, execute
from cute_py.errors import CuteError, counted
from cute_py.tensor.printing import format_tensor
from cute_py.terminal import print_report, progress_bar
from cute_py.tma.descriptor.describe import describe


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "Shows a layout, a refused TMA copy with its fix, quantised numbers, a sharded tensor, and a copy through an "
        "emulated TMA engine. With your own file, it shows each step of the copy instead."
    )
    p.add_argument("input", nargs="?", help="your own .npy, .npz or .safetensors file (- for standard input)")
    p.add_argument("--key", help="name of the array in a .npz or .safetensors file")
    p.add_argument("--tile", help="tile, such as 64x64; default 64 rows of 128 bytes")
    p.add_argument(
        "--swizzle",
        type=swizzle_option,
        choices=SWIZZLES,
        help="shared-memory swizzle; default 128B, or none with --tile",
    )
    p.add_argument("--order", choices=["row", "col"], help="the contiguous dimension: last (row) or first (col)")
    json_option(p, run, "print the report of the copy as JSON")


def default_tile(array: Array) -> tuple[int, ...]:
    """The default tile: 128 bytes of the contiguous dimension, 64 elements of the dimension before it, and 1 of the
    others."""
    inner = max(1, 128 // array.dtype.itemsize)
    tile = (1,) * max(0, array.ndim - 2) + (64, inner)[-min(2, array.ndim) :]
    return tile if array.flags.c_contiguous else tuple(reversed(tile))


def run(options: argparse.Namespace) -> int:
    """Run the demonstration; with a file, run the copy and show its steps. Return 0 if the copy equals the source, else
    1."""
    import numpy as np

    if options.input is None:
        array: Array = np.random.default_rng(0).standard_normal((192, 256)).astype(np.float16)
        name = "a float16 array of 192 x 256 random numbers"
    else:
        with file_of(options.input) as path:
            array = read_array(path, options.key)
        name = options.input
    tile = parse_tile(options.tile) if options.tile is not None else default_tile(array)
    swizzle = options.swizzle or ("128B" if options.tile is None else "none")
    work = make_copy(array, tile, swizzle, options.order)
    with progress_bar(array.nbytes) as progress:
        result = copy(work.atom, work.bits, progress=progress)
    if options.json:
        print(json.dumps(report_data(work, result, name), indent=2))
        return 0 if result.equal else 1
    if options.input is None and options.tile is None:
        print_report(_for_four_readers())
    else:
        _show_steps(work, name)
    moves = counted(result.instructions, "load") + (" and store" if result.instructions == 1 else " and stores")
    print(f"\n{counted(result.tiles, 'tile')}, {moves}, {result.bytes} bytes copied:")
    print_report("equal" if result.equal else f"NOT EQUAL: {result.difference}")
    return 0 if result.equal else 1


def _for_four_readers() -> str:
    """One result for each of four kinds of use, with the command that shows more."""
    import numpy as np

    from cute_py import formats, mesh

    layout = cute.Layout(((2, 2), 4), ((1, 8), 2))
    rows = ["".join(f"{int(layout((i, j))):4}" for j in range(4)) for i in range(4)]
    x = np.linspace(-4, 4, 64 * 256, dtype=np.float32).reshape(64, 256)
    refused = "this copy should be refused"
    try:
        cute.tma.make_tma_copy("SM90_TMA_LOAD", x, "Sw<1,4,3> o smem_ptr[32b](unset) o (_64,_32):(_32,_1)")
    except CuteError as error:
        refused = f"{error.headline}\n    hint : {(error.hint or '').partition('; or')[0]}"
    scaled = cute.copy(x, formats.mxfp8())
    eight, four = (mesh.distribute(x.shape, n, [mesh.Shard(dim)]) for n, dim in ((8, 0), (4, 1)))
    plan = mesh.redistribute(eight, four, "float32")
    moved = len([one for one in plan.transfers() if one.source_device != one.destination_device])
    return f"""\
Learn CuTe: a layout maps coordinates to offsets      cute-py print LAYOUT
  {layout}, so coordinate (3,2) has offset {int(layout((3, 2)))}
  {chr(10).join(rows).replace(chr(10), chr(10) + "  ")}

Debug a TMA copy: the broken rule and a fix           cute-py explain ERROR
  {refused}

Move or quantise tensors: any layout, any format      cute-py convert MODEL
  float32 (64,256) as mxfp8: {scaled.data.nbytes} bytes of elements, {scaled.scales.size} scales

Shard tensors: who holds what, and what moves         cute-py reshard PLAN
  rows on 8 devices to columns on 4: {moved} transfers, {plan.bytes_moved} bytes

Copy a file through the emulated TMA engine           cute-py copy FILE"""


def _show_steps(work: TensorCopy, name: str) -> None:
    """Print the steps of a copy, from its layouts to the bytes of the first tile."""
    atom = work.atom
    coordinates = cute.make_tensor(cute.make_inttuple_iter(0, 0), (2, 5), (cute.E(0), cute.E(1)))
    live = atom.descriptor[:64].hex(" ", 8)
    print(f"""\
A tensor is an iterator and a layout.
Strides of basis elements make a tensor of coordinates:

{format_tensor(coordinates)}
A TMA instruction takes coordinates,
so the TMA tensor of a global tensor is such a tensor of coordinates.
The tensor: {name}, {atom.gtensor}
its tile in shared memory, {atom.smem_layout}
the box that one instruction moves (G-basis), {atom.gbasis}
and its TMA tensor, {atom.get_tma_tensor()}

The descriptor, 64 live bytes of 128:
  {live[:67]}
  {live[68:]}""")
    print_report(indent(describe(atom.descriptor), "  ") + "\n")
    first = execute(atom, work.bits, 0, poison=0xCD)
    row = " ".join(f"{b:02x}" for b in first.smem[:16].tolist())
    print(f"The first tile's instruction at {tuple(first.coords[0].tolist())} leaves {first.transaction_bytes} bytes:")
    print(f"  {row} ...")
