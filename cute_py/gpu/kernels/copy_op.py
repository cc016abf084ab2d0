"""Device functions for the kernels, each with one TMA instruction of a fixed rank, mode and cache hint.

A `CopyOp` corresponds to `SM90_TMA_LOAD_2D::copy` in CuTe: it is one row of the instruction table (`cute_py.ptx`) with
chosen modifiers. The row defines the opcode and the order of modifiers and operands; this module adds only the names
and types of the function's parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.ptx.forms_copy import TENSOR_FORMS
from cute_py.ptx.instruction import InstructionForm, coordinate_count, offset_count

CACHE_POLICY: Final[dict[str, int]] = {
    "evict_normal": 0x1000000000000000,
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
}
"""Encoded L2 policies. CUTLASS, cute/arch/copy_sm90_desc.hpp, TMA::CacheHintSm90."""

_LETTERS: Final = {"u16": "h", "u32": "r", "int": "r", "const": "l"}
"""First word of a parameter -> the constraint letter of its register in inline assembly."""

_ROWS: Final[dict[str, InstructionForm]] = {row.name: row for row in TENSOR_FORMS}


@dataclass(frozen=True, slots=True)
class CopyOp:
    """One TMA tensor instruction as a device function.

    kind: "load", "store", "reduce" or "prefetch". rank: rank of the tensor map, 1..5. mode: mode of the load; a store
    to an im2col map uses im2col_no_offs instead. op: the reduction. hint: a name of `CACHE_POLICY`, or None. multicast:
    whether the load takes a 16-bit mask of CTAs. pair: whether it has cta_group::2.
    """

    kind: str
    rank: int
    mode: str = "tile"
    op: str = ""
    hint: str | None = None
    multicast: bool = False
    pair: bool = False

    @property
    def name(self) -> str:
        """The name of the device function.

        >>> CopyOp("load", 3, "im2col").name
        'load_im2col_3d'
        """
        parts = [self.kind, self.op, self.mode.replace("::", "_"), f"{self.rank}d", self.hint or ""]
        parts += ["multicast"] * self.multicast + ["pair"] * self.pair
        return "_".join(part for part in parts if part)

    def _chosen(self) -> dict[str, str]:
        """Return the chosen modifiers by slot of the row. A required slot that is not listed has only one choice."""
        without_offsets = self.mode == "im2col" and self.kind in ("store", "reduce")
        named = {
            "dim": f"{self.rank}d",
            "mode": "im2col_no_offs" if without_offsets else self.mode,
            "op": self.op,
            "multicast": "multicast::cluster" * self.multicast,
            "cta_group": "cta_group::2" * self.pair,
            "cache_hint": "L2::cache_hint" if self.hint else "",
        }
        found = {slot.name: named.get(slot.name, slot.choices[0]) for slot in _ROWS[self.kind].slots}
        return {name: choice for name, choice in found.items() if choice}

    @property
    def coordinates(self) -> int:
        """Number of 32-bit coordinates of the instruction."""
        return coordinate_count(self._chosen())

    @property
    def offsets(self) -> int:
        """Number of 16-bit im2col operands of the instruction."""
        return offset_count(self._chosen())

    @property
    def instruction(self) -> str:
        """The opcode with its modifiers, in the order of the PTX ISA.

        >>> CopyOp("load", 2, hint="evict_first").instruction
        'cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint'
        >>> CopyOp("reduce", 3, "im2col", op="add").instruction
        'cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group'
        """
        return ".".join([_ROWS[self.kind].opcode, *self._chosen().values()])

    @property
    def text(self) -> str:
        """The device function as text. Of the parameters (shared address, map, barrier, coordinates, offsets, mask), it
        has those that the instruction needs."""
        chosen = self._chosen()
        operands = [operand.name for operand in _ROWS[self.kind].expected(chosen)]
        declared = {
            "destination": ["u32 shared"],
            "source": ["u32 shared"],
            "tensor": ["const TensorMap* map"],
            "barrier": ["u32 barrier"],
            "coords": [f"int c{i}" for i in range(coordinate_count(chosen))],
            "offsets": [f"u16 o{i}" for i in range(offset_count(chosen))],
            "mask": ["u16 mask"],
        }
        parameters = [
            (role, text) for role, texts in declared.items() if role in ("coords", *operands) for text in texts
        ]
        inputs = [f'"{_LETTERS[text.split()[0]]}"({text.split()[-1]})' for _, text in parameters]
        numbers: dict[str, list[str]] = {}
        for number, (role, _) in enumerate(parameters):
            numbers.setdefault(role, []).append(f"%{number}")
        if self.hint:
            numbers["policy"] = [f"%{len(parameters)}"]
            inputs.append(f'"l"({CACHE_POLICY[self.hint]:#x}ull)')

        def written(role: str) -> str:
            if role == "tensor":
                return f"[{numbers['tensor'][0]}, {{{', '.join(numbers['coords'])}}}]"
            if role == "offsets":
                return f"{{{', '.join(numbers['offsets'])}}}"
            return numbers[role][0] if role in ("mask", "policy") else f"[{numbers[role][0]}]"

        listed = ", ".join(written(name) for name in operands)
        return (
            f"__device__ __forceinline__ void {self.name}({', '.join(text for _, text in parameters)}) {{\n"
            f'  asm volatile("{self.instruction} {listed};" ::{", ".join(inputs)} : "memory");\n}}\n'
        )


def copy_functions(*which: CopyOp) -> str:
    """Return the device functions of several instructions as text, without duplicates."""
    return "".join(op.text for op in dict.fromkeys(which))
