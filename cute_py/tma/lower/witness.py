"""Which hardware copy moves a tile: the copy-atom witness, chosen from the architecture, the memory space and the tile.

The names are those of the TMA load walkthrough: sm_70/75 `ldg_128`, sm_80..89 `cp_async_4`, sm_90a and later
`tma_load`. The walkthrough lists sm_90a, sm_100 and sm_120; every architecture from sm_90 on has the instruction, so
all of them choose it here. A witness names a family: multicast, cache hint and im2col select among its PTX forms.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields, expect_integer
from cute_py.dtypes import DType
from cute_py.errors import InvalidValueError
from cute_py.tma.descriptor.formats import TensorMapSwizzle
from cute_py.tma.lower.architectures import architecture
from cute_py.tma.lower.copy_shape import CopyShape

MLIR_TYPES: dict[str, str] = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "tfloat32": "tf32",
    "float64": "f64",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
    "float8_e8m0fnu": "f8E8M0FNU",
    "float4_e2m1fn": "f4E2M1FN",
    "float6_e2m3fn": "f6E2M3FN",
    "float6_e3m2fn": "f6E3M2FN",
    "bool": "i1",
}
"""Element types as the traces write them; integers are i8, i16, i32, i64."""


def mlir_type(dtype: DType) -> str:
    """The element type's spelling in the traces: bf16, f32, i8.

    >>> from cute_py.dtypes import as_dtype
    >>> mlir_type(as_dtype("bfloat16")), mlir_type(as_dtype("uint8"))
    ('bf16', 'i8')
    """
    return MLIR_TYPES.get(dtype.name, f"i{dtype.bits}")


@dataclass(frozen=True, slots=True)
class WitnessRow:
    """One generation of copy hardware, as the capability table of the walkthrough has it.

    lowest, highest: architecture numbers. stage3: the operation that the copy becomes. mnemonic: of its PTX, as
    printed there; `instruction` is what an assembler takes.
    """

    lowest: int
    highest: int
    name: str
    is_tma: bool
    stage3: str
    mnemonic: str
    instruction: str


WITNESSES: tuple[WitnessRow, ...] = (
    WitnessRow(70, 79, "sm70_ldg_128_{t}", False, "nv_tileas.tiled_load", "ld.global.nc.v4.b32", "ld.global.nc.v4.b32"),
    WitnessRow(
        80,
        89,
        "sm80_cp_async_4_{t}",
        False,
        "nv_tileas.async.cp_async",
        "cp.async.ca.shared.global.4",
        "cp.async.ca.shared.global",
    ),
    WitnessRow(
        90,
        129,
        "sm90_tma_load_{r}d_{t}",
        True,
        "nv_tileas.async.tiled_tma_load",
        "cp.async.bulk.tensor.{r}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
        "cp.async.bulk.tensor.{r}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    ),
)
"""The capability cross-check of the walkthrough. `{t}` element type, `{r}` rank.

The pages' `cp.async.ca.shared.global.4` writes the size as a modifier; the assembler takes it as an operand.
"""


@dataclass(frozen=True, slots=True)
class Witness:
    """The choice for one copy: `name`, whether it is a TMA atom, the swizzle beside it, and why it was chosen."""

    name: str
    is_tma: bool
    row: WitnessRow
    swizzle: str
    reasons: tuple[str, ...]

    def __post_init__(self) -> None:
        expect_fields(self)


SWIZZLE_NAMES: dict[TensorMapSwizzle, str] = {
    TensorMapSwizzle.NONE: "swizzle_none",
    TensorMapSwizzle.B32: "swizzle_32B",
    TensorMapSwizzle.B64: "swizzle_64B",
    TensorMapSwizzle.B128: "swizzle_128B",
    TensorMapSwizzle.B128_ATOM_32B: "swizzle_128B_atom_32B",
    TensorMapSwizzle.B128_ATOM_32B_FLIP_8B: "swizzle_128B_atom_32B_flip_8B",
    TensorMapSwizzle.B128_ATOM_64B: "swizzle_128B_atom_64B",
}


def tma_ineligible(shape: CopyShape, address_space: int = 1) -> tuple[str, ...]:
    """Why a copy can't be a TMA copy whatever the architecture; () if it can.

    Source: TMA load walkthrough, box-dim invariants; CUDA 13.0 driver API, cuTensorMapEncodeTiled.
    """
    found = []
    row_bits = shape.instruction_box[-1] * shape.dtype.bits
    if row_bits % 128:
        found.append(f"the innermost box extent is {row_bits} bits; must be a multiple of 16 bytes")
    if address_space != 1:
        found.append(f"the source is in address space {address_space}; must be 1 (global)")
    return tuple(found)


def _row_for(number: int) -> WitnessRow:
    return next(row for row in WITNESSES if row.lowest <= number <= row.highest)


def choose_witness(shape: CopyShape, arch: str, *, address_space: int = 1, allow_tma: bool = True) -> Witness:
    """The copy atom for this copy on this architecture, with the reasons.

    Args:
        arch: "sm_70" .. "sm_121a".
        address_space: of the source: 1 global, 3 shared.
        allow_tma: the attribute of the load; False falls back to plain ldg.

    >>> from cute_py.tma.lower.copy_shape import copy_shape
    >>> choose_witness(copy_shape("load", (128, 128), "bf16", swizzle=3), "sm_90a").name
    'sm90_tma_load_2d_bf16'

    Raises:
        InvalidValueError: no such architecture.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect_integer(address_space, "address_space", 0)
    expect(allow_tma, bool, "allow_tma")
    target = architecture(arch)
    row = _row_for(target.number)
    reasons = [f"{arch}: compute capability {target.number // 10}.{target.number % 10}, {target.chip}"]
    if row.is_tma:
        blockers = [] if allow_tma else ["allow_tma = false"]
        blockers += tma_ineligible(shape, address_space)
        if blockers:
            row = WITNESSES[0]
            reasons += [f"not TMA: {blocker}" for blocker in blockers]
            reasons.append("falls back to plain ldg")
        else:
            reasons.append("the tile meets the TMA eligibility rules: 16-byte rows, global source")
            if shape.was_split:
                reasons.append(shape.was_split)
    elif row.lowest == 80:
        reasons.append("no TMA before sm_90: cp.async, one 4-byte word per thread and instruction")
    else:
        reasons.append("no TMA and no cp.async: vector loads through registers")
    name = row.name.format(t=mlir_type(shape.dtype), r=shape.rank)
    if row.is_tma:
        name = _tma_name(shape)
    return Witness(name, row.is_tma, row, SWIZZLE_NAMES[shape.swizzle] if row.is_tma else "", tuple(reasons))


def _tma_name(shape: CopyShape) -> str:
    """The TMA witness: direction, rank, element type; multicast as a suffix."""
    kind = {"load": "load", "store": "store", "reduce": f"reduce_{shape.reduce_kind}"}[shape.direction]
    suffix = "_mcast" if shape.multicast > 1 else ""
    return f"sm90_tma_{kind}_{shape.rank}d_{mlir_type(shape.dtype)}{suffix}"


def field_atom(shape: CopyShape) -> str:
    """The descriptor-side atom of stage 3: `load_2d_bf16, swizzle_128B`."""
    kind = {"load": "load", "store": "store", "reduce": f"reduce_{shape.reduce_kind}"}[shape.direction]
    suffix = "_mcast" if shape.multicast > 1 else ""
    return f"{kind}_{shape.rank}d_{mlir_type(shape.dtype)}{suffix}, {SWIZZLE_NAMES[shape.swizzle]}"


def witness_row(arch: str) -> WitnessRow:
    """The capability row of an architecture.

    Raises:
        InvalidValueError: no such architecture.
    """
    number = architecture(arch).number
    if not any(row.lowest <= number <= row.highest for row in WITNESSES):
        raise InvalidValueError(f"no copy-atom witness for {arch}")
    return _row_for(number)
