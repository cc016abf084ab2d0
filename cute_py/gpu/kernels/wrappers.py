"""Device functions around one TMA instruction each, with a fixed rank, mode and cache hint.

`Wrapper` says which instruction; `text` is the device function. The order of operands is that of the PTX ISA:
destination, map and coordinates (innermost first), barrier, im2col offsets, multicast mask, cache policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

CACHE_POLICY: Final[dict[str, int]] = {
    "evict_normal": 0x1000000000000000,
    "evict_first": 0x12F0000000000000,
    "evict_last": 0x14F0000000000000,
}
"""Encoded L2 policies. CUTLASS, cute/arch/copy_sm90_desc.hpp, TMA::CacheHintSm90."""

MODES: Final = ("tile", "im2col", "tile::gather4", "tile::scatter4", "im2col::w", "im2col::w::128")


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One TMA tensor instruction as a device function.

    kind: "load", "store", "reduce" or "prefetch". rank: of the map, 1..5. mode: one of `MODES`. op: the reduction.
    hint: a name of `CACHE_POLICY`, or None. multicast: the load takes a 16-bit mask of CTAs. pair: cta_group::2.
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
        """Name of the device function.

        >>> Wrapper("load", 3, "im2col").name
        'load_im2col_3d'
        """
        parts = [self.kind, self.op, self.mode.replace("::", "_"), f"{self.rank}d", self.hint or ""]
        parts += ["multicast"] * self.multicast + ["pair"] * self.pair
        return "_".join(part for part in parts if part)

    @property
    def coordinates(self) -> int:
        """How many 32-bit coordinates the instruction takes."""
        return 5 if self.mode in ("tile::gather4", "tile::scatter4") else self.rank

    @property
    def offsets(self) -> int:
        """How many 16-bit im2col operands the instruction takes."""
        if self.kind not in ("load", "prefetch"):
            return 0
        return {"im2col": self.rank - 2, "im2col::w": 2, "im2col::w::128": 2}.get(self.mode, 0)

    @property
    def instruction(self) -> str:
        """Opcode with its modifiers, in the order of the PTX ISA.

        >>> Wrapper("load", 2, hint="evict_first").instruction
        'cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint'
        >>> Wrapper("reduce", 3, "im2col", op="add").instruction
        'cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.im2col_no_offs.bulk_group'
        """
        hint = ".L2::cache_hint" if self.hint else ""
        stored = {"im2col": "im2col_no_offs"}.get(self.mode, self.mode)
        if self.kind == "load":
            tail = ".multicast::cluster" * self.multicast + ".cta_group::2" * self.pair + hint
            head = f"cp.async.bulk.tensor.{self.rank}d.shared::cluster.global.{self.mode}"
            return f"{head}.mbarrier::complete_tx::bytes{tail}"
        if self.kind == "store":
            return f"cp.async.bulk.tensor.{self.rank}d.global.shared::cta.{stored}.bulk_group{hint}"
        if self.kind == "reduce":
            return f"cp.reduce.async.bulk.tensor.{self.rank}d.global.shared::cta.{self.op}.{stored}.bulk_group{hint}"
        return f"cp.async.bulk.prefetch.tensor.{self.rank}d.L2.global.{self.mode}{hint}"

    @property
    def text(self) -> str:
        """The device function: (shared address, map, barrier, coordinates, offsets, mask), as far as they apply."""
        parameters: list[tuple[str, str, str]] = []
        if self.kind != "prefetch":
            parameters.append(("u32", "shared", "r"))
        parameters.append(("const TensorMap*", "map", "l"))
        if self.kind == "load":
            parameters.append(("u32", "barrier", "r"))
        coordinates = [f"c{i}" for i in range(self.coordinates)]
        offsets = [f"o{i}" for i in range(self.offsets)]
        parameters += [("int", name, "r") for name in coordinates]
        parameters += [("u16", name, "h") for name in offsets]
        if self.multicast:
            parameters.append(("u16", "mask", "h"))
        slot = {name: f"%{i}" for i, (_, name, _) in enumerate(parameters)}
        source = f"[{slot['map']}, {{{', '.join(slot[name] for name in coordinates)}}}]"
        operands = {
            "load": [f"[{slot.get('shared')}]", source, f"[{slot.get('barrier')}]"],
            "store": [source, f"[{slot.get('shared')}]"],
            "reduce": [source, f"[{slot.get('shared')}]"],
            "prefetch": [source],
        }[self.kind]
        if offsets:
            operands.append(f"{{{', '.join(slot[name] for name in offsets)}}}")
        if self.multicast:
            operands.append(slot["mask"])
        inputs = [f'"{letter}"({name})' for _, name, letter in parameters]
        if self.hint:
            operands.append(f"%{len(parameters)}")
            inputs.append(f'"l"({CACHE_POLICY[self.hint]:#x}ull)')
        signature = ", ".join(f"{kind} {name}" for kind, name, _ in parameters)
        return (
            f"__device__ __forceinline__ void {self.name}({signature}) {{\n"
            f'  asm volatile("{self.instruction} {", ".join(operands)};" ::{", ".join(inputs)} : "memory");\n}}\n'
        )


def wrappers(*which: Wrapper) -> str:
    """The device functions of several instructions, each once."""
    return "".join(wrapper.text for wrapper in dict.fromkeys(which))
