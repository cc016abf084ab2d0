"""The diagnostics of the dialect's verifiers, byte for byte, and the checks that produce them.

A check lists every broken rule as a `Diagnostic`, whose `text` is the text on the reference page. Where a page prints
`…`, the text has the actual value; elsewhere the value is in the diagnostic's `detail`. The stages follow the TMA load
walkthrough:

    1    the tile                3a  the copy before the rewrite     3c  the atom of the asynchronous copy
    2    the copy's operands     3b  the descriptor

The descriptor builder and the executable atom also make the checks of stages 3b and 3c on their own operands. The TMA
Atoms reference page states some of their requirements only as code; for these, the text is cute_py's own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Sized
from typing import Final

from cute_py.argument_checks import is_integer
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType
from cute_py.errors import TmaBuildError, given, shortened
from cute_py.tma.descriptor.limits import BY_NAME

TEXTS: Final[dict[str, str]] = {
    "descriptor_alignment": "expected tma descriptor pointer to have alignment at least 128",
    "box_granularity": "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes",
    "smem_not_compatible": "smem layout is not TMA compatible",
    "zero_padding_only": "TmaLoad only support zero padding now",
    "expect_load_atom": "expect a tma_load atom type",
    "box_length_mismatch": "tmaBoxDim and atomBoxDim length mismatch",
    "small_multicast": "mcast is not supported for TMA load with less than 128bytes per atom",
    "not_device_mutable": "TMA descriptor field is not device-mutable",
    "not_global": "the tensor of a TMA descriptor must be in global memory",
    "composed_layout": "a TMA descriptor takes a plain static layout, not a composed one",
    "not_static": "the layout of a TMA descriptor must be static",
    "store_padding": "non-zero padding requires a mode that supports it; a store or reduction fills nothing",
    "not_verified": "an executable TMA atom needs a non-exec atom that the partition verifier accepted",
    "barrier_not_shared": "the barrier of an executable TMA atom must be in shared memory",
    "no_barrier": "an executable TMA atom needs a barrier",
    "expect_store_atom": "expect a tma_store or tma_reduce atom type",
    "not_shared": "the tile of a TMA copy must be in shared memory",
    "no_tma": "allow_tma = false; this operation is a TMA copy",
    "counters.host": "tmaIdx exceed tmaHostNum.",
    "counters.device": "tmaIdx exceed tmaDeviceNum.",
}
"""Rule -> text. The pages have the first eight texts and the texts of the counters."""

DESCRIPTOR_BYTES: Final = 128
"""Bytes and alignment of a descriptor."""
ROW_BITS: Final = 8 * BY_NAME["inner_bytes"].multiple
"""Granularity of the innermost row of a box, in bits."""
SMALLEST_MULTICAST_BYTES: Final = 128
"""The walkthrough refuses a multicast if the box of one CTA has fewer bytes. A rule of the dialect."""
MAX_TILE_ELEMENTS: Final = 16_777_216
"""Largest number of elements in a tile of the tile dialect (16 million)."""


def mlir_type(dtype: DType) -> str:
    """Return the name of an element type in MLIR, as the traces print it: bf16, f32, i8.

    >>> from cute_py.dtypes import as_dtype
    >>> [mlir_type(as_dtype(name)) for name in ("bfloat16", "float8_e4m3fn", "uint8", "bool")]
    ['bf16', 'f8E4M3FN', 'i8', 'i1']
    """
    if dtype.kind != "float":
        return "i1" if dtype.kind == "bool" else f"i{dtype.bits}"
    name, *fields = dtype.name.split("_")
    return name.replace("float", "f") + "".join(fields[:1]).upper()


def short_repr(thing: object) -> str:
    """Return a repr with the class and the first line of the text: `<Lowering: sm90_tma_load_2d_bf16 on sm_90a>`."""
    return shortened(f"<{type(thing).__name__}: {str(thing).partition(chr(10))[0]}>", 300)


def broken(*rows: tuple[int | Sized, str, str]) -> list[Diagnostic]:
    """Make the diagnostics of the rows whose first entry is true.

    A row is (whether the rule is broken, rule, finding). If a rule has no fixed text, the finding is the text of the
    diagnostic.

    >>> found = broken((True, "rank", "rank = 6; must be 1 to 5"), (False, "no_tma", ""), (True, "no_barrier", ""))
    >>> [d.text for d in found]
    ['rank = 6; must be 1 to 5', 'an executable TMA atom needs a barrier']
    """
    return [
        Diagnostic(rule, text=TEXTS.get(rule, found), detail=found if rule in TEXTS else "")
        for is_broken, rule, found in rows
        if is_broken
    ]


def refuse_operation(found: Sequence[Diagnostic]) -> None:
    """Raise all diagnostics as one error with the first text as headline; do nothing if there are none.

    Raises:
        TmaBuildError: there is a diagnostic.
    """
    if found:
        first, *others = found
        facts: dict[str, object] = {"found": first.detail} if first.text and first.detail else {}
        for i, other in enumerate(others, 2):
            facts[f"also {i}"] = f"{other.text} ({other.detail})" if other.text and other.detail else other.message
        raise TmaBuildError(first.message, facts)


def check_tile(extents: Sequence[int]) -> list[Diagnostic]:
    """Stage 1: check that extents are constant powers of two, and that the tile has at most 16 million elements.

    >>> [d.text for d in check_tile((96, 128))]
    ['all dimensions must be powers of two, got [96, 128]']
    """
    got = f"got [{', '.join(map(str, extents))}]"
    positive = all(isinstance(extent, int) and extent > 0 for extent in extents)
    uneven = positive and any(extent & (extent - 1) for extent in extents)
    too_large = positive and math.prod(extents) > MAX_TILE_ELEMENTS
    return broken(
        (not positive, "tile_positive", f"all dimensions must be positive constants, {got}"),
        (uneven, "tile_powers", f"all dimensions must be powers of two, {got}"),
        (too_large, "tile_elements", f"tile would exceed the maximum of {MAX_TILE_ELEMENTS}"),
    )


def check_operands(
    rank: int, coordinates: int, dtypes: tuple[DType, DType], coordinate_type: str = "index"
) -> list[Diagnostic]:
    """Stage 2: check the coordinates, their type, and the element types of view and tensor.

    There must be one coordinate per mode, of the memref's index type, and view and tensor must have the same element
    type. Integers of one width count as the same type, with or without a sign, and a bool counts as a byte.
    """
    view, tensor = dtypes
    integers = all(dtype.kind in ("int", "uint", "bool") for dtype in dtypes) and view.bits == tensor.bits
    names = " vs ".join(mlir_type(dtype) for dtype in dtypes)
    return broken(
        (coordinates != rank, "coordinates", f"expects {rank} coordinates, but got {coordinates}"),
        (coordinate_type != "index", "coordinate_type", "expects CoordType is same as memref index type"),
        (view != tensor and not integers, "types", f"view elementType not equal with tensor element type: {names}"),
    )


def check_memory_order(direction: str, mem_semantic: str, in_bounds: int, rank: int) -> list[Diagnostic]:
    """Stage 3a: check that a load is not acquire, a store is not release, and `in_bounds` has one element per mode.

    The walkthrough has the rule for loads; the rule for stores is by analogy.
    """
    forbidden = "acquire" if direction == "load" else "release"
    return broken(
        (mem_semantic == forbidden, "mem_semantic", f"unsupported mem_semantic: {mem_semantic}"),
        (in_bounds != rank, "in_bounds", f"incorrect number of in_bounds elements: expected {rank}"),
    )


def check_pointer(alignment: int) -> list[Diagnostic]:
    """Stage 3b: check the alignment of the descriptor itself, which is given in bytes."""
    wrong = alignment < DESCRIPTOR_BYTES or alignment % DESCRIPTOR_BYTES
    return broken((wrong, "descriptor_alignment", f"{alignment} bytes"))


def check_box_row(elements: int, bits: int) -> list[Diagnostic]:
    """Stage 3b: check the size of the innermost row of the box in bytes."""
    size = f"{elements} elements x {bits} bits = {elements * bits / 8:g} bytes"
    return broken((elements * bits % ROW_BITS, "box_granularity", size))


def check_row(row_bits: int, span: int, swizzle: str) -> list[Diagnostic]:
    """Stage 3b: check that a row of the box is not longer than the span of its swizzle; span 0 means no swizzle."""
    text = f"box rows of {row_bits // 8} bytes; at most {span} with {swizzle}"
    return broken((0 < 8 * span < row_bits, "smem_not_compatible", text))


def check_padding(paddings: Sequence[int | float], is_store: bool) -> list[Diagnostic]:
    """Stage 3b: check that padding is zeros, because no mode of this dialect supports another fill value."""
    bad = [p for p in paddings if not (is_integer(p) or isinstance(p, float)) or p != 0]
    rule = "store_padding" if is_store else "zero_padding_only"
    return broken((True, rule, f"paddings({given(bad[0])})")) if bad else []


def check_atom(
    kind: str, tma_box_rank: int, atom_box_rank: int, bytes_per_atom: int, multicast: int = 1
) -> list[Diagnostic]:
    """Stage 3c of loads: check the kind of the atom, the ranks of the boxes, and the bytes per atom with multicast.

    Args:
        kind: 'load', 'store' or 'reduce'.
        bytes_per_atom: bytes of the box of one instruction. With multicast, it is the slice that one CTA issues.
    """
    small = multicast > 1 and bytes_per_atom < SMALLEST_MULTICAST_BYTES
    return broken(
        (kind != "load", "expect_load_atom", f"a {kind} atom"),
        (tma_box_rank != atom_box_rank, "box_length_mismatch", f"{tma_box_rank} and {atom_box_rank} extents"),
        (small, "small_multicast", f"{bytes_per_atom} bytes"),
    )
