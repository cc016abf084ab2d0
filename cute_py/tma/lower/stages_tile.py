"""Stages 1, 2 and 3a of a copy: tile view, aliased copy with its witness, the same in the assembler-near dialect.

None of them names a descriptor, a barrier or a byte count; the element type and the tile imply the bytes. The store is
written by analogy with the load: the walkthrough walks a load only.
"""

from __future__ import annotations

from dataclasses import dataclass

from cute_py.tma.lower.copy_shape import CopyShape
from cute_py.tma.lower.witness import Witness, mlir_type

MAX_TILE_ELEMENTS = 16_777_216
"""Elements of one tile: the ceiling of the tile dialect (16 million)."""


@dataclass(frozen=True, slots=True)
class Names:
    """The value names of one copy in all traces: `%a_view`, `%bm`, `%M`, ...

    >>> from cute_py.tma.lower.copy_shape import copy_shape
    >>> names_of(copy_shape("load", (128, 128), "bf16")).coords
    ('%bm', '%bk')
    """

    tensor: str
    small: str
    sizes: tuple[str, ...]
    coords: tuple[str, ...]

    def coord_list(self) -> str:
        """`[%bm, %bk]`: outermost first, as all stages up to the third have it."""
        return f"[{', '.join(self.coords)}]"

    def inner_first(self, shape: CopyShape) -> list[str]:
        """The coordinates of the instruction: reversed; gather4 and scatter4 name four rows."""
        inner = list(reversed(self.coords))
        return [inner[0], *(f"{inner[1]}_row{row}" for row in range(4))] if shape.rows_by_index else inner


def names_of(shape: CopyShape) -> Names:
    """The names for a copy, from its tensor's and its axes' names."""
    small = shape.tensor.lower()
    return Names(
        shape.tensor,
        small,
        tuple(f"%{axis}" for axis in shape.axes),
        tuple(f"%b{axis.lower()}" for axis in shape.axes),
    )


def extents_text(shape: CopyShape) -> str:
    """`128x128xbf16`."""
    return "x".join([*(str(extent) for extent in shape.tile), mlir_type(shape.dtype)])


def _strides(names: Names) -> str:
    """Row-major strides in words: the innermost 1, then products of the inner sizes."""
    strides = ["1"]
    for position in range(len(names.sizes) - 1, 0, -1):
        inner = names.sizes[position:]
        strides.append("*".join(inner))
    return ", ".join(reversed(strides))


def _list(items: tuple[object, ...]) -> str:
    return ", ".join(str(item) for item in items)


def stage1_text(shape: CopyShape) -> str:
    """The cuda_tile trace: tensor view, partition view, token, load or store."""
    n, tile = names_of(shape), extents_text(shape)
    dims = _list(tuple(range(shape.rank)))
    head = (
        f"%{n.small}_view = cuda_tile.tensor_view %{n.tensor}, shape = [{_list(n.sizes)}], stride = [{_strides(n)}]\n"
        f": !cuda_tile.tensor_view<{tile}>\n"
        f"%{n.small}_part = cuda_tile.partition_view %{n.small}_view, tile = [{_list(shape.tile)}], "
        f"dim_map = [{dims}]\n"
        f": !cuda_tile.partition_view<{tile}>\n"
        "%tok0 = cuda_tile.make_token : !cuda_tile.token\n"
    )
    if shape.direction == "load":
        return head + (
            f"%{n.small}_tile, %tok_{n.small} = cuda_tile.load_view_tko %{n.small}_part, {n.coord_list()}, %tok0\n"
            f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
        )
    return head + (
        f"%tok_{n.small} = cuda_tile.store_view_tko %{n.small}_tile, %{n.small}_part, {n.coord_list()}, %tok0\n"
        f": !cuda_tile.tile<{tile}>, !cuda_tile.token"
    )


def _tiled_op(shape: CopyShape, witness: Witness, dialect: str) -> str:
    n, tile = names_of(shape), extents_text(shape)
    memref = "x".join(["?"] * shape.rank + [mlir_type(shape.dtype)])
    in_bounds = _list(("true",) * shape.rank)
    attributes = (
        f"{{ atom = #cute.copy_atom<{witness.name}>,\n"
        f"in_bounds = array<i1: {in_bounds}>,\n"
        f"mem_semantic = #{dialect}<mem_semantic relaxed>,\n"
        f"mem_scope = #{dialect}<mem_scope cluster> }}\n"
    )
    if shape.direction == "load":
        return (
            f"%{n.small}_tile, %tok_{n.small} = {dialect}.tiled_load %off_{n.small}, %tok0\n"
            f"{attributes}"
            f": !nv_tileaa.memref<{memref}> -> tensor<{tile}>,\n"
            "!nv_tileaa.mem_token"
        )
    return (
        f"%tok_{n.small} = {dialect}.tiled_store %{n.small}_tile, %off_{n.small}, %tok0\n"
        f"{attributes}"
        f": tensor<{tile}>, !nv_tileaa.memref<{memref}> ->\n"
        "!nv_tileaa.mem_token"
    )


def stage2_text(shape: CopyShape, witness: Witness) -> str:
    """The nv_tileaa trace: memref, address, the copy with its copy-atom witness."""
    n = names_of(shape)
    memref = "x".join(["?"] * shape.rank + [mlir_type(shape.dtype)])
    return (
        f"%{n.small}_ref = nv_tileaa.make_memref %{n.tensor}, shape = [{_list(n.sizes)}], stride = [{_strides(n)}],\n"
        "space = #nv_tileaa.global\n"
        f": !nv_tileaa.memref<{memref}>\n"
        f"%off_{n.small} = nv_tileaa.addptr %{n.small}_ref, {n.coord_list()}\n"
        f": !nv_tileaa.memref<{memref}>\n"
    ) + _tiled_op(shape, witness, "nv_tileaa")


def stage3a_text(shape: CopyShape, witness: Witness) -> str:
    """The nv_tileas trace before the asynchronous rewrite: the operation renamed, the witness verbatim."""
    return _tiled_op(shape, witness, "nv_tileas")
