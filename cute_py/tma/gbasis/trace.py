"""The stages on the way from a tile to its TMA box, with what each of them is for."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from cute_py.argument_checks import expect_fields
from cute_py.layout.layout import Layout


@dataclass(frozen=True, slots=True)
class GBasisTrace:
    """Every intermediate value of `construct_tma_gbasis`, under the names that CuTe C++ gives them.

    `str()` prints them in order, each with its reason; `steps()` gives (name, value, reason).
    """

    cta_v_map: Layout
    """CTA value index -> mode of the global tensor."""
    inv_smem_layout: Layout
    """shared-memory index -> coordinate of the shared-memory tile."""
    sidx2gmode_full: Layout
    """shared-memory index -> mode of the global tensor, everything that is contiguous in shared memory."""
    smem_rank: int
    """How many leading modes of it walk one global mode in steps of 1."""
    sidx2gmode: Layout
    """Those modes."""
    tile_gstride: Layout
    """The same walk with the strides that it has in global memory, in elements of the internal type."""
    tma_gstride: Layout
    """Contiguous neighbours merged up to 256 elements: the shape of the TMA box."""
    tile_gbasis: Layout
    """The walk with basis strides and the recast shape."""
    tma_gbasis_tile: Layout
    """The walk with basis strides, in the shape of the box."""
    tma_gbasis: Layout
    """The G-basis: box shape : global mode(s), the modes that the tile does not move appended with extent 1."""
    notes: tuple[str, ...] = ()
    """What was special: merged, cut or grouped modes."""

    def __post_init__(self) -> None:
        expect_fields(self)

    def steps(self) -> list[tuple[str, Any, str]]:
        """(name, value, reason) of each stage."""
        reasons = {
            "cta_v_map": "which global mode each value of the tile comes from",
            "inv_smem_layout": "right inverse of the shared layout: its longest contiguous run",
            "sidx2gmode_full": "composed: where in global memory the run goes",
            "smem_rank": "modes before the first that does not step by 1 through a global mode",
            "sidx2gmode": "the run is cut there: one box can't start in the middle of a mode",
            "tile_gstride": "its strides in global memory, in elements of the internal type",
            "tma_gstride": "neighbours that continue each other merged, at most 256 elements",
            "tile_gbasis": "the same walk as basis elements",
            "tma_gbasis_tile": "as basis elements in the shape of the box",
            "tma_gbasis": "other moving modes appended with extent 1; at most 5 modes",
        }
        return [(f.name, getattr(self, f.name), reasons[f.name]) for f in fields(self) if f.name in reasons]

    def __str__(self) -> str:
        width = max(len(name) for name, _, _ in self.steps())
        lines = [f"{name:<{width}} : {value}\n{'':<{width}}   {why}" for name, value, why in self.steps()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])
