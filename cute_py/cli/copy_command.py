"""`cute-py copy`: copy a tensor from a file and compare the result. The copy goes tile by tile through the emulated TMA
engine, or moves the whole tensor into another order or layout.

For this command and `demo`, this module also makes the TMA atom for an array and a tile. If the atom is refused, the
error lists fixes that were tried and work.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import cute_py as cute
from cute_py.array_files import SUFFIXES, Array, check_output, read_array, write_array
from cute_py.cli.arguments import file_of, json_option, report
from cute_py.copies.copy import copy
from cute_py.copies.emulated_copy import CopyResult, HostArray
from cute_py.copies.modes import refine, side_bounds
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import CuteError, GBasisError, InvalidValueError, TmaLimitError, counted, shortened
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight
from cute_py.layout.leaf import Int
from cute_py.tensor.printing import format_tensor
from cute_py.terminal import progress_bar
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.make import make_tma_copy
from cute_py.tma.atom.op import movable_type
from cute_py.tma.atom.smem_layout import SPANS, span_row
from cute_py.tma.atom.tile_atom import expect_fits
from cute_py.tma.atom.tiles import instructions
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.fields import MAX_RANK
from cute_py.tma.descriptor.limits import architecture

if TYPE_CHECKING:
    from cute_py.copies.layout_copy import LayoutCopyResult

SHOWN_ELEMENTS: Final = 64
"""Largest TMA tensor, in elements, that is printed in full; of a larger one only the first corner is printed."""
SWIZZLES: Final = tuple(row.name for row in reversed(SPANS))
SHARED_MEMORY = architecture("sm_90a").block_shared_memory_bytes
MAX_OUTPUT: Final = 1 << 36
"""Largest amount of new memory for a copy, in bytes."""
BASE_ADDRESS = 0x10_0000_0000
"""Address of the emulated global tensor."""


@dataclass(frozen=True, slots=True)
class TensorCopy:
    """An array in emulated memory, and the TMA atom that copies it."""

    bits: Array
    """The array's elements as unsigned integers, in the memory order of the copy."""
    dtype: DType
    atom: TmaAtom
    order: str


def parse_tile(text: str) -> tuple[int, ...]:
    """Parse a tile: `128x64`, `(128, 64)` or `(_128,_64)` -> (128, 64). The sizes are in the order of the array's
    shape.

    Raises:
        InvalidValueError: the string is not one to five positive integers.

    >>> parse_tile("128x64")
    (128, 64)
    """
    inside = re.fullmatch(r"\s*\((.*)\)\s*", text)
    parts = (text if inside is None else inside[1]).lower().replace(",", "x").split("x")
    if not all(re.fullmatch(r"\s*_?-?[0-9]{1,40}\s*", part) for part in parts):
        raise InvalidValueError(f"tile {shortened(repr(text), 80)}; must be sizes joined by x, such as 128x64")
    tile = tuple(int(part.strip().removeprefix("_")) for part in parts)
    if any(n < 1 for n in tile):
        raise InvalidValueError(f"tile {text!r}; every size must be at least 1")
    if len(tile) > MAX_RANK:
        raise InvalidValueError(f"tile {text!r} has {len(tile)} modes; a TMA box has at most 5")
    return tile


def full_tile(tile: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Extend a tile to all dimensions of an array. A shorter tile applies to the last dimensions, and its size is 1 in
    the others."""
    if len(tile) > len(shape):
        raise InvalidValueError(
            f"the tile has {len(tile)} modes; must have at most as many as the array, of shape {shape}"
        )
    return (1,) * (len(shape) - len(tile)) + tile


def swizzle_layout(tile: tuple[int, ...], swizzle: str, bits: int, order: str) -> Layout | ComposedLayout:
    """The shared-memory layout of a tile: compact in the tensor's order, with a swizzle on byte offsets."""
    plain = Layout(tuple([Int(n) for n in tile]), LayoutRight if order == "row" else LayoutLeft)
    if not span_row(swizzle).bits:
        return plain
    return cute.ComposedLayout(cute.Swizzle(span_row(swizzle).bits, 4, 3), cute.smem_ptr_flag(bits), plain)


def swizzle_option(text: str) -> str:
    """Parse a swizzle: return the name in `SWIZZLES` for any spelling of it.

    Raises:
        argparse.ArgumentTypeError: the swizzle does not exist.

    >>> swizzle_option("SWIZZLE_128B"), swizzle_option("NONE")
    ('128B', 'none')
    """
    try:
        return span_row(text).name
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(error.headline) from None


def make_copy(array: Array, tile: tuple[int, ...], swizzle: str = "none", order: str | None = None) -> TensorCopy:
    """Lay an array out in emulated memory, and make the TMA atom that copies it by tiles.

    Args:
        array: numpy array of rank 1 to 5; tile: one size for each dimension, or only for the trailing
            dimensions.
        order: 'row' (last dimension contiguous) or 'col'; default: the order of the array.
    Raises:
        TmaLimitError, GBasisError: the copy is refused. If the tile or the swizzle is the cause, the error lists
            changes that work.
    """
    import numpy as np

    order = order or ("row" if array.flags.c_contiguous else "col")
    tile = full_tile(tile, array.shape)
    dtype = as_dtype(array.dtype)
    width = array.dtype.itemsize
    if width not in (1, 2, 4, 8):
        text = f"an element of {dtype} has {width} bytes; must have 1, 2, 4 or 8 for TMA"
        raise InvalidValueError(text, hint="view the array as float64 pairs")
    bits = np.asarray(array.view(f"u{width}"), order="C" if order == "row" else "F")
    size = width * math.prod(tile)
    if size > SHARED_MEMORY:
        text = f"a tile of {'x'.join(map(str, tile))} takes {size} bytes, but shared memory has {SHARED_MEMORY}"
        raise InvalidValueError(text)
    try:
        return TensorCopy(bits, dtype, _atom(bits, dtype, tile, swizzle, order), order)
    except (TmaLimitError, GBasisError) as error:
        hint = _fixes(bits, dtype, tile, swizzle, order)
        if isinstance(error, GBasisError):
            raise GBasisError(error.condition, error.facts, hint) from None
        raise TmaLimitError(error.headline, error.facts, hint, error.violations) from None


def _atom(bits: Array, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str, suggest: bool = False) -> TmaAtom:
    moved = dtype if dtype.bits == bits.dtype.itemsize * 8 else as_dtype(f"uint{bits.dtype.itemsize * 8}")
    gmem = cute.make_tensor(cute.make_gmem_ptr(BASE_ADDRESS, moved), Layout(bits.shape, _strides(bits, order)))
    internal = movable_type(moved)
    return make_tma_copy(
        "SM90_TMA_LOAD",
        gmem,
        swizzle_layout(tile, swizzle, moved.bits, order),
        tile,
        internal_dtype=None if internal == moved.name else internal,
        suggest=suggest,
    )


def _strides(bits: Array, order: str) -> tuple[int | Int, ...]:
    """The strides of a compact array, in elements. Only the stride of the contiguous dimension is static; it is 1.

    The stride of a dimension of size 1 is never used. It is rounded up to a multiple of 16 bytes, because TMA requires
    this for all strides except the first.
    """
    grain = max(1, 16 // bits.itemsize)
    n, out = 1, []
    shape = bits.shape if order == "col" else bits.shape[::-1]  # the contiguous dimension first
    for size in shape:
        out.append(n if size > 1 else -(-n // grain) * grain)
        n *= int(size)
    out = [Int(1), *out[1:]]
    return tuple(out if order == "col" else out[::-1])


def _fixes(bits: Array, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str) -> str | None:
    """A hint for a refused copy, or None: up to four tiles and swizzles that were tried and work. If none works in this
    order, the hint gives the change of the tensor that helps, and the tiles that work in the other order."""
    works = _working(bits, dtype, tile, swizzle, order)
    if not works:
        import numpy as np

        other = "col" if order == "row" else "row"
        turned = np.asarray(bits, order="C" if other == "row" else "F")
        works = [f"{label} --order {other}" for label in _working(turned, dtype, tile, swizzle, other)]
        if (changed := _changed(bits, dtype, tile, swizzle, order)) is not None:
            return f"{changed}; or these work: {', '.join(works[:4])}" if works else changed
    return f"these work: {', '.join(works[:4])}" if works else _thinner(bits, dtype, swizzle)


def _changed(bits: Array, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str) -> str | None:
    """The change of the tensor, such as a padded row, that makes this copy legal; `make_tma_copy` tried it."""
    try:
        _atom(bits, dtype, tile, swizzle, order, suggest=True)
    except TmaLimitError as refused:
        return refused.hint
    except CuteError:
        pass
    return None


def _thinner(bits: Array, dtype: DType, swizzle: str) -> str | None:
    """Suggest removing the array's dimensions of size 1, if the copy then works."""
    shape = tuple([n for n in bits.shape if n > 1]) or (1,)
    if len(shape) == bits.ndim:
        return None
    works = _working(bits.reshape(shape), dtype, (1,) * len(shape), swizzle, "row")
    return f"save the array without its dimensions of size 1, as {shape}; then {works[0]} works" if works else None


def _working(bits: Array, dtype: DType, tile: tuple[int, ...], swizzle: str, order: str) -> list[str]:
    """The combinations of --tile and --swizzle, near the given ones, that allow the atom to be made."""
    works: list[str] = []
    inner = len(tile) - 1 if order == "row" else 0
    width = int(bits.dtype.itemsize)
    grain = max(1, 16 // width)  # the inner side of a box is a multiple of 16 bytes
    near = tuple([min(-(-n // grain) * grain if i == inner else n, 256) for i, n in enumerate(tile)])
    others = ("128B", "64B", "32B") if swizzle != "none" else ()
    tries = [(near, name) for name in (swizzle, *others, "none")]
    for name in (swizzle, "128B", "64B", "32B", "none"):
        span = span_row(name)
        for size in (span.span // width if span.bits else 256, 16 // width if width <= 16 else 1):
            box = tuple([size if i == inner else min(n, 256) for i, n in enumerate(tile)])
            tries.append((box, name))
    for box, name in tries:
        label = f"--tile {'x'.join(map(str, box))} --swizzle {name}"
        if label in works or (box == tile and name == swizzle) or width * math.prod(box) > SHARED_MEMORY:
            continue
        try:
            expect_fits(_atom(bits, dtype, box, name, order))
        except CuteError:
            continue
        works.append(label)
    return works


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = (
        "With --tile: builds the layout of a tensor, a shared-memory tile, the TMA atom and its descriptor, "
        "copies the whole tensor tile by tile, and compares the result. With --permute or --layout: copies the "
        "whole tensor into that order or layout, and reports the plan. The exit status is 0 only if the copy "
        "equals the input, and 2 if the copy is refused."
    )
    p.add_argument("input", help=".npy, .npz or .safetensors file, or - for standard input")
    p.add_argument("--permute", help="order of the dimensions in the row-major copy, such as 0,2,1,3")
    p.add_argument(
        "--layout",
        help="layout of the copy in memory, such as '(4,8):(8,1)'; its indices count the elements after --permute, the "
        "first dimension fastest",
    )
    p.add_argument("--tile", help="tile, such as 128x64; a tile with fewer sizes applies to the last dimensions")
    p.add_argument("--key", help="name of the array in a .npz or .safetensors file")
    p.add_argument(
        "--swizzle", type=swizzle_option, choices=SWIZZLES, default="none", help="shared-memory swizzle, on bytes"
    )
    p.add_argument("--order", choices=["row", "col"], help="the contiguous dimension: last (row) or first (col)")
    p.add_argument("--dtype", help="interpret the elements as this type of the same width, such as bf16")
    p.add_argument(
        "--out", help="write the copy to this file (.npy, .npz or .safetensors); a link is followed to its target"
    )
    p.add_argument(
        "--backend",
        choices=["auto", "host", "emulator", "cuda", "both"],
        help="where the copy runs. With --tile: emulator (the default), cuda or both. Without --tile: any choice; "
        "emulator works only if tensor maps can describe the copy",
    )
    json_option(p, run, "print the report as JSON")


def corner(atom: TmaAtom) -> str:
    """The TMA tensor as `print_tensor` prints it; of a large tensor, only the header and the first elements."""
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


def report_data(work: TensorCopy, result: CopyResult[HostArray], source: str) -> dict[str, Any]:
    """Everything that the command reports, as data."""
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
        **_outcome(result, list(result.warnings)),
    }


def _outcome(result: CopyResult[HostArray] | LayoutCopyResult, warnings: list[str]) -> dict[str, Any]:
    """The outcome of a copy, as data."""
    return {
        "bytes": result.bytes,
        "seconds": round(result.seconds, 6),
        "backend": result.backend,
        "warnings": warnings,
        "equal": result.equal,
        "difference": result.difference,
    }


def _finish(options: argparse.Namespace, copied: Array, data: dict[str, Any], lines: Callable[[], list[str]]) -> int:
    """Write the copy to the file of --out, and print the report as JSON or as lines. Return 0 if the copy equals the
    source, else 1."""
    if options.out is not None:
        note = write_array(options.out, copied, options.key or "tensor")
        data["out"] = options.out
        data["warnings"] += [note] if note else []
    end = [
        *[f"warning      {w}" for w in data["warnings"]],
        *([f"written      {data['out']}"] if "out" in data else []),
        "equal" if data["equal"] else f"NOT EQUAL: {data['difference']}",
    ]
    report(options, lambda: data, lambda: "\n".join([*lines(), *end]))
    return 0 if data["equal"] else 1


def run(options: argparse.Namespace) -> int:
    """Copy the tensor and print the report. Return 0 if the copy equals the source, else 1."""
    if options.out is not None:
        check_output(options.out, SUFFIXES)
    if options.permute is not None or options.layout is not None:
        return _run_whole(options)
    if options.tile is None:
        raise InvalidValueError("pass --tile, --permute or --layout")
    backend = options.backend or "emulator"
    tile = parse_tile(options.tile)
    with file_of(options.input) as name:
        array = read_array(name, options.key, options.dtype)
    work = make_copy(array, tile, options.swizzle, options.order)
    with progress_bar(array.nbytes) as progress:
        result = copy(work.atom, work.bits, backend=backend, progress=progress)
    data = report_data(work, result, options.input)
    return _finish(options, result.destination.view(array.dtype), data, lambda: _lines(work, data))


def parse_order(text: str, rank: int) -> tuple[int, ...]:
    """Parse a permutation of `rank` dimensions: `0,2,1` or `(0,2,1)` -> (0, 2, 1).

    Raises:
        InvalidValueError: the string is not a permutation of the dimensions.

    >>> parse_order("0,2,1", 3)
    (0, 2, 1)
    """
    inside = text.strip()
    inside = inside[1:-1] if inside.startswith("(") and inside.endswith(")") else inside
    parts = [part.strip() for part in inside.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,4}", part) for part in parts) or sorted(map(int, parts)) != list(range(rank)):
        why = f"--permute {shortened(repr(text), 80)}; must list each of the {counted(rank, 'dimension')} once, from 0"
        raise InvalidValueError(why)
    return tuple(map(int, parts))


def _run_whole(options: argparse.Namespace) -> int:
    """Copy a whole tensor into another order or layout."""
    tiled = {"tile": options.tile is not None, "swizzle": options.swizzle != "none", "order": options.order is not None}
    for name in [name for name, given in tiled.items() if given]:
        raise InvalidValueError(f"--{name} needs --tile; omit it with --permute or --layout")
    with file_of(options.input) as name:
        array = read_array(name, options.key, options.dtype)
    source = array if options.permute is None else array.transpose(parse_order(options.permute, array.ndim))
    made, destination = _new_memory(source, options.layout)
    from cute_py.copies.layout_copy import copy as copy_layouts  # It imports the kernels; other copies need none.

    result = copy_layouts(source, destination, backend=options.backend or "auto")
    plan = result.plan
    data: dict[str, Any] = {
        "input": options.input,
        "dtype": str(plan.dtype),
        "source": str(plan.source),
        "destination": str(plan.destination),
        "plan": {
            "form": plan.form,
            "kernel": plan.kernel,
            "launches": plan.launches,
            "vectors": [plan.source_vector, plan.destination_vector],
            "tile": str(plan.tile),
            "shared_layout": None if plan.shared_layout is None else str(plan.shared_layout),
            "sectors": list(plan.sectors),
            "wavefronts": plan.wavefronts,
            "expected": round(plan.expected, 4),
            "why": plan.why,
        },
        **_outcome(result, []),
    }
    lines = [
        f"source       {data['source']}",
        f"destination  {data['destination']}",
        str(plan),
        f"copied       {data['bytes']} bytes in {data['seconds']:.3f} s ({data['backend']})",
    ]
    return _finish(options, made, data, lambda: lines)


def _new_memory(source: Array, text: str | None) -> tuple[Array, Any]:
    """Allocate zeroed memory for a copy; return the memory, and its view in the layout `text` (None: row-major)."""
    import numpy as np

    if text is None:
        same: Array = np.zeros(source.shape, source.dtype)
        return same, same
    layout = cute.parse(text)
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidValueError(f"--layout {shortened(repr(text), 80)}; must be a layout, such as '(4,8):(8,1)'")
    refinement = refine(layout, Layout(int(cute.size(layout))))
    low, high = (0, -1) if refinement is None else side_bounds(refinement, 0)
    if low < 0 or high >= MAX_OUTPUT // source.dtype.itemsize:
        why = f"--layout has the offsets {low} to {high}; must be in 0 to {MAX_OUTPUT // source.dtype.itemsize - 1}"
        raise InvalidValueError(why)
    made: Array = np.zeros(high + 1, source.dtype)
    return made, (made, layout)


def _lines(work: TensorCopy, data: dict[str, Any]) -> list[str]:
    """The report as text, without the outcome of the copy."""
    atom = work.atom
    rate = data["bytes"] / max(data["seconds"], 1e-9) / 1e9
    return [
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
        f"barrier      expects {data['transaction_bytes']} bytes per tile",
        f"copied       {data['bytes']} bytes in {data['seconds']:.3f} s ({rate:.2f} GB/s, {data['backend']})",
    ]
