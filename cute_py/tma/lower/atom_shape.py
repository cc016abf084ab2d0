"""Reading a `CopyShape` from an atom: its tile, its box, and where each of its instructions goes.

An atom from `make_tma_copy` knows the coordinates and the place in shared memory of every instruction; they are taken
from it. Anything else with `.op` and `.request` (an im2col atom, a stand-in) is read by its numbers: bytes of a tile
divided by bytes of a box.
"""

from __future__ import annotations

import math
from typing import Any

from cute_py.dtypes import as_dtype
from cute_py.errors import TmaBuildError
from cute_py.tma.copy_atom.copy_atom import TmaAtom
from cute_py.tma.copy_atom.shared_fit import expect_fits
from cute_py.tma.copy_atom.tile_atom import TileAtom
from cute_py.tma.copy_atom.tiles import instructions
from cute_py.tma.descriptor.formats import FORMATS
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.lower.copy_shape import CopyShape


def _direction(op: str) -> tuple[str, str]:
    """Direction and reduction of an operation by its name.

    Raises:
        TmaBuildError: a prefetch, which has no tile in shared memory.
    """
    if "PREFETCH" in op:
        raise TmaBuildError(f"{op} has no tile in shared memory: it is one instruction, ptx('prefetch', ...)")
    if "REDUCE" in op:
        return "reduce", op.rsplit("_", 1)[-1].lower()
    return ("store", "add") if "STORE" in op or "SCATTER" in op else ("load", "add")


def _mode(op: str, direction: str) -> str:
    if "IM2COL" in op:
        return "im2col" if direction == "load" else "im2col_no_offs"
    return "tile::gather4" if "GATHER4" in op else "tile::scatter4" if "SCATTER4" in op else "tile"


def _box(request: Any) -> tuple[int, ...]:
    """Extents that one instruction moves, outermost first: the box over the element strides, or pixels x channels."""
    if isinstance(request, TensorMapTiled):
        extents = zip(request.box_dim, request.element_strides, strict=True)
        return tuple(-(-extent // stride) for extent, stride in extents)[::-1]
    return (*(1,) * (request.rank - 2), request.pixels_per_column, request.channels_per_pixel)


def _placed(atom: TmaAtom) -> dict[str, Any]:
    """Tile, origins and offsets of a tiled atom, from its own list of instructions.

    The tile is what all CTAs of a multicast move together; the origins are those of the first CTA.
    """
    listed = instructions(atom)
    first = listed.coords[: listed.per_tile]
    lowest = first.min(axis=0)
    starts = [tuple(int(x) for x in reversed(row - lowest)) for row in first]
    box = _box(atom.request)
    tile = tuple(max(start[mode] for start in starts) + box[mode] for mode in range(len(box)))
    mine = listed.per_tile // atom.num_multicast
    base = int(listed.smem_offsets[0])
    offsets = tuple(int(offset) - base for offset in listed.smem_offsets[:mine])
    return {"tile": tile, "origins": tuple(starts[:mine]), "offsets": offsets}


def _simplest(fields: dict[str, Any], shape: CopyShape) -> CopyShape:
    """Without origins and offsets if they are what a plain shape has anyway."""
    plain = CopyShape(**{**fields, "origins": (), "offsets": ()})
    same = plain.instruction_box == shape.instruction_box and plain.box_origins == shape.box_origins
    if same and all(plain.box_offset(box) == shape.box_offset(box) for box in range(shape.num_boxes)):
        return plain
    return shape


def copy_shape_of(atom: Any, *, tensor: str = "A") -> CopyShape:
    """Read a `CopyShape` from an atom.

    Args:
        atom: a `TmaAtom`, an im2col atom, a `CopyShape` (returned as it is), or anything with `.op` (an enum or text
            with CuTe's name), `.request` (a TensorMap request) and `.transaction_bytes` (bytes that one CTA receives);
            optional `.num_multicast`, `.dtype`, and `.tile_shape` (elements that one CTA issues, outermost first; else
            its boxes are laid along the innermost mode).
    Raises:
        TmaBuildError: the atom has no request, its numbers contradict each other, or it is a prefetch.
        InvalidValueError: an instruction of the atom starts at an address that TMA does not take.
        TmaLimitError: its tile fits into no block's shared memory.
    """
    if isinstance(atom, CopyShape):
        return atom
    if isinstance(atom, TileAtom):
        expect_fits(atom)
    missing = [name for name in ("op", "request") if not hasattr(atom, name)]
    if missing:
        raise TmaBuildError(f"not an atom: no attribute {', '.join(missing)}", {"got": type(atom).__name__})
    op = str(getattr(atom.op, "name", atom.op))
    direction, kind = _direction(op)
    mode = _mode(op, direction)
    row = FORMATS[int(atom.request.data_type)]
    dtype = as_dtype(getattr(atom, "dtype", None) or row.dtypes[0])
    if dtype.bits != row.bits:
        dtype = as_dtype(getattr(atom, "internal_dtype", None) or row.dtypes[0])
    box = _box(atom.request)
    if mode in ("tile::gather4", "tile::scatter4"):
        box = (4, box[-1])
    per_box = math.prod(box) * dtype.bits // 8
    total = int(getattr(atom, "transaction_bytes", per_box) or per_box)
    multicast = int(getattr(atom, "num_multicast", 1) or 1)
    if total % per_box:
        raise TmaBuildError(
            f"transaction bytes = {total}; must be a multiple of one box",
            {"box": f"{per_box} bytes, {' x '.join(map(str, box))}"},
        )
    # Each CTA of a multicast issues its slice, and receives the slices of all.
    issued = max(1, total // per_box // multicast)
    fields: dict[str, Any] = {
        "direction": direction,
        "tile": tuple(getattr(atom, "tile_shape", None) or (*box[:-1], box[-1] * issued)),
        "dtype": dtype,
        "box": box,
        "mode": mode,
        "swizzle": atom.request.swizzle,
        "multicast": multicast,
        "reduce_kind": kind,
        "tensor": tensor,
        "cta_group": 2 if "2SM" in op else 0,
        "tx_bytes": total,
    }
    if isinstance(atom, TmaAtom) and mode == "tile":
        fields |= _placed(atom)
    return _simplest(fields, CopyShape(**fields))
