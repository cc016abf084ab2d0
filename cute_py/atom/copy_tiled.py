"""Execute a tiled copy in numpy: every element passes through the registers of the lanes that move it.

    registers of the source       src at partition_S        (thread, value)
    the instruction               value with reference number r of the source -> value r of the destination
    registers of the destination  dst at partition_D        (thread, value)

The reference numbers come from the atom's three layouts. The layouts of movmatrix do not show its transposition, so it
is executed as the PTX ISA defines it: thread t holds two elements of row t / 4, and receives two of column t / 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from cute_py.argument_checks import check_elements, expect, refuse_mask, wrong_type
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.tiled_copy import Side, TiledCopy
from cute_py.errors import InvalidTypeError, InvalidValueError, given
from cute_py.layout import Int, Layout, offsets, size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array: TypeAlias = NDArray[Any]
else:
    from cute_py.optional_packages import numpy as np


def copy_registers(atom: CopyAtom, registers: ArrayLike) -> Array:
    """Execute a copy instruction on its source values, and return the values in each lane's registers afterwards.

    Args:
        atom: a copy atom with an element type.
        registers: an array (threads, values of the source, ...); each further axis is a separate copy.
    Returns:
        (threads, values of the destination, ...).
    Raises:
        InvalidValueError: the number of threads or values does not fit the atom.

    >>> import numpy as np
    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> rows = np.arange(32 * 8).reshape(32, 8)
    >>> copy_registers(copy_atom("SM75_U32x1_LDSM_N", "half"), rows)[5]
    array([10, 11])
    >>> copy_registers(copy_atom("SM75_U16x2_LDSM_T", "half"), rows)[5]
    array([17, 25])
    """
    expect(atom, CopyAtom, "the copy atom")
    refuse_mask(registers, "the array of registers")
    try:
        values = np.asarray(registers)
    except (ValueError, TypeError, RecursionError):
        raise wrong_type("the registers must be an array", registers) from None
    threads = int(size(atom.thr_id))
    if values.ndim < 2 or values.shape[:2] != (threads, atom.num_val_src):
        raise InvalidValueError(
            f"registers have the shape {values.shape}; must begin with {(threads, atom.num_val_src)}, the "
            "threads of the atom and the values per thread",
            {"operation": atom.name},
        )
    source = np.asarray(offsets(atom.layout_src_TV))
    target = np.asarray(offsets(atom.layout_dst_TV))
    reference = np.zeros((int(max(source.max(), target.max())) + 1, *values.shape[2:]), values.dtype)
    for thread in reversed(range(threads)):  # if several lanes give the same address, the first one counts
        reference[source[thread]] = values[thread]
    moved: Array = reference[target]
    return _transposed(moved) if atom.op == "SM75_U32x1_MOVM_T" else moved


def _transposed(registers: Array) -> Array:
    """Execute movmatrix.trans on an 8x8 matrix of 16-bit elements, with two elements in each thread."""
    last = np.ascontiguousarray(np.moveaxis(registers, 1, -1))
    halves = last.view(np.uint16)
    if halves.shape[-1] != 2:
        raise InvalidTypeError(
            f"movmatrix moves 32 bits per thread, but the registers hold {last.shape[-1]} elements of {last.dtype}"
        )
    matrix = halves.reshape(8, 4, *halves.shape[1:])
    rows = np.moveaxis(matrix, -1, 2).reshape(8, 8, *halves.shape[1:-1])
    turned = np.moveaxis(np.swapaxes(rows, 0, 1).reshape(8, 4, 2, *halves.shape[1:-1]), 2, -1)
    back = np.ascontiguousarray(turned.reshape(halves.shape)).view(last.dtype)
    return np.moveaxis(back, -1, 1)


def _indices(copy: TiledCopy, side: Side, shape: tuple[int, ...]) -> Array:
    """Return the index of every value in a row-major array; -1 for values beyond the array.

    Axes: threads of the atom, values, other threads, atoms of a tile, tiles.
    """
    tile = copy.tile_shape()
    exact = all(extent % int(size(t)) == 0 for extent, t in zip(shape, tile, strict=False))
    extents = tuple(Int(e) for e in shape) if exact else shape
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    divided = copy.tidfrg(side, Layout(extents, tuple(Int(s) for s in strides)))
    index = np.asarray(offsets(divided))
    inside = _inside(copy, side, extents)
    threads = int(size(copy.atom.thr_id))
    values = int(size(divided[1][0]))
    split = (threads, index.shape[0] // threads, values, index.shape[1] // values, index.shape[2])
    return np.where(inside, index, -1).reshape(split, order="F").transpose(0, 2, 1, 3, 4)


def _inside(copy: TiledCopy, side: Side, extents: tuple[int, ...]) -> Array:
    """Return which values are within the array, comparing one mode of their coordinates at a time."""
    found: Any = True
    for mode, extent in enumerate(extents):
        strides = tuple(Int(int(i == mode)) for i in range(len(extents)))
        found = found & (np.asarray(offsets(copy.tidfrg(side, Layout(extents, strides)))) < int(extent))
    return np.asarray(found)


def copy_tiled(tiled_copy: TiledCopy, src: ArrayLike, dst: Array | None = None) -> Array:
    """Copy an array with a tiled copy: read by partition_S, moved by the instruction, written by partition_D.

    Args:
        tiled_copy: the copy; its tile need not divide the array. Elements beyond the array are neither read nor
            written.
        src: an array of at least the tile's rank, with elements as wide as the copy's values.
        dst: the array to write, of the same shape; default a new array of zeros.
    Returns:
        dst.
    Raises:
        InvalidTypeError, InvalidValueError: the arrays have other shapes or element widths.

    >>> import numpy as np
    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> from cute_py.atom.make_tiled_copy import make_tiled_copy_A
    >>> from cute_py.atom.tiled_mma import make_tiled_mma
    >>> mma = make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN")
    >>> copy = make_tiled_copy_A(copy_atom("SM75_U32x4_LDSM_N", "half"), mma)
    >>> tile = np.arange(256, dtype=np.float16).reshape(16, 16)
    >>> bool((copy_tiled(copy, tile) == tile).all())
    True
    """
    copy = expect(tiled_copy, TiledCopy, "the tiled copy")
    refuse_mask(src, "src")
    refuse_mask(dst, "dst")
    try:
        source = np.asarray(src)
    except Exception:  # rows of different lengths, or an __array__ of a user's class that raises
        raise InvalidTypeError(f"src must be an array, got {given(src)}") from None
    check_elements(source.size, "src")
    target = np.zeros_like(source) if dst is None else dst
    if not isinstance(target, np.ndarray) or target.shape != source.shape:
        raise InvalidTypeError(f"dst must be an array of shape {source.shape}, got {given(dst)}")
    for array, what in ((source, "src"), (target, "dst")):
        if array.dtype.itemsize * 8 != max(8, copy.atom.bits):
            text = f"{what} has elements of {array.dtype.itemsize * 8} bits, but the copy moves {copy.atom.bits} bits"
            raise InvalidTypeError(text, {"array": array.dtype, "copy": copy.atom.name})
    if source.ndim < len(copy.tiler_mn):
        raise InvalidValueError(
            f"src has {source.ndim} modes; must have {len(copy.tiler_mn)}, like the tile of this copy"
        )
    read, written = (_indices(copy, side, source.shape) for side in ("S", "D"))
    flat = source.reshape(-1)
    registers = np.where(read >= 0, flat[np.maximum(read, 0)], np.zeros((), source.dtype))
    moved = copy_registers(copy.atom, registers)
    filled = target.reshape(-1).copy()
    filled[written[written >= 0]] = moved[written >= 0].astype(target.dtype)
    target[...] = filled.reshape(target.shape)
    return target
