"""The verifier of each stage: pure functions that give every diagnostic, in the words of the TMA load walkthrough.

Where the pages print `…` the value that was found follows. Stages 3b and 3c have more diagnostics in the packages of
the atom and of the descriptor; here are those of the walkthrough's catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.dtypes import DType
from cute_py.tma.descriptor.formats import OobFill
from cute_py.tma.dialect import diagnostics
from cute_py.tma.dialect.copy_shape import CopyShape, mlir_type
from cute_py.tma.dialect.stages import MAX_TILE_ELEMENTS

DESCRIPTOR_ALIGNMENT = 128
"""Bytes."""


def _list(values: Sequence[object]) -> str:
    return "[" + ", ".join(str(value) for value in values) + "]"


def verify_tile(extents: Sequence[int]) -> tuple[str, ...]:
    """Stage 1: extents are positive constants and powers of two, the tile has at most 16 million elements.

    >>> verify_tile((96, 128))
    ('all dimensions must be powers of two, got [96, 128]',)
    """
    found = []
    constant = all(isinstance(extent, int) and extent > 0 for extent in extents)
    if not constant:
        found.append(f"all dimensions must be positive constants, got {_list(extents)}")
        return tuple(found)
    if any(extent & (extent - 1) for extent in extents):
        found.append(f"all dimensions must be powers of two, got {_list(extents)}")
    total = 1
    for extent in extents:
        total *= extent
    if total > MAX_TILE_ELEMENTS:
        found.append(f"tile would exceed the maximum of {MAX_TILE_ELEMENTS}")
    return tuple(found)


def verify_tiled_copy(
    rank: int,
    coordinates: int,
    view_dtype: DType,
    tensor_dtype: DType,
    coordinate_type: str = "index",
    index_type: str = "index",
) -> tuple[str, ...]:
    """Stage 2: as many coordinates as modes, of the memref's index type; one element type."""
    found = []
    if coordinates != rank:
        found.append(f"expects {rank} coordinates, but got {coordinates}")
    if coordinate_type != index_type:
        found.append("expects CoordType is same as memref index type")
    if view_dtype != tensor_dtype:
        found.append(
            f"view elementType not equal with tensor element type: {mlir_type(view_dtype)} vs {mlir_type(tensor_dtype)}"
        )
    return tuple(found)


def verify_tiled_memop(direction: str, mem_semantic: str, in_bounds: int, rank: int) -> tuple[str, ...]:
    """Stage 3a: a load forbids acquire (a store forbids release); one in_bounds element per mode.

    The walkthrough has the load's half; the store's is by analogy.
    """
    found = []
    forbidden = "acquire" if direction == "load" else "release"
    if mem_semantic == forbidden:
        found.append(f"unsupported mem_semantic: {mem_semantic}")
    if in_bounds != rank:
        found.append(f"incorrect number of in_bounds elements: expected {rank}")
    return tuple(found)


def verify_descriptor(
    box: Sequence[int],
    dtype: DType,
    *,
    alignment: int = DESCRIPTOR_ALIGNMENT,
    smem_compatible: bool = True,
    oob_fill: OobFill = OobFill.NONE,
    is_load: bool = True,
) -> tuple[str, ...]:
    """Stage 3b: pointer alignment, 16-byte rows, a TMA layout in shared memory, zero padding.

    Args:
        box: innermost first, in elements. alignment: of the descriptor pointer, in bytes.

    >>> from cute_py.dtypes import as_dtype
    >>> verify_descriptor((4, 64), as_dtype("bf16"))
    ('tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes',)
    """
    found = []
    if alignment % DESCRIPTOR_ALIGNMENT:
        found.append(diagnostics.DESCRIPTOR_ALIGNMENT)
    if box[0] * dtype.bits % 128:
        found.append(diagnostics.BOX_GRANULARITY)
    if not smem_compatible:
        found.append(diagnostics.SMEM_NOT_COMPATIBLE)
    if is_load and oob_fill is not OobFill.NONE:
        found.append(diagnostics.ZERO_PADDING_ONLY)
    return tuple(found)


def verify_async_copy(
    atom_kind: str, tma_box_rank: int, atom_box_rank: int, bytes_per_atom: int, multicast: int = 1
) -> tuple[str, ...]:
    """Stage 3c: the atom's kind, equal box ranks, and at least 128 bytes per atom with multicast.

    Args:
        bytes_per_atom: bytes of the box of one instruction (a CTA of a multicast issues its slice).
    """
    found = []
    if atom_kind != "tma_load":
        found.append(diagnostics.EXPECT_LOAD_ATOM)
    if tma_box_rank != atom_box_rank:
        found.append(diagnostics.BOX_LENGTH_MISMATCH)
    if multicast > 1 and bytes_per_atom < 128:
        found.append(diagnostics.SMALL_MULTICAST)
    return tuple(found)


def verify_intrinsic(name: str, operands: int, expected: int) -> tuple[str, ...]:
    """Stage 4: the operand count of the intrinsic's declaration (the pages give no text; this one is ours)."""
    if operands == expected:
        return ()
    return (f"{name} takes {expected} operands, but got {operands}",)


def verify_copy(shape: CopyShape) -> dict[str, tuple[str, ...]]:
    """Every verifier on one copy: stage number -> diagnostics."""
    inner_box = tuple(reversed(shape.instruction_box))
    in_flight = "relaxed"
    return {
        "1": verify_tile(shape.tile),
        "2": verify_tiled_copy(shape.rank, len(shape.axes), shape.dtype, shape.dtype),
        "3a": verify_tiled_memop(shape.direction, in_flight, shape.rank, shape.rank),
        "3b": verify_descriptor(inner_box, shape.dtype, is_load=shape.direction == "load"),
        "3c": (
            verify_async_copy("tma_load", shape.rank, len(inner_box), shape.box_bytes, shape.multicast)
            if shape.direction == "load"
            else ()
        ),
    }
