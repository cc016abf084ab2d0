"""The atom family of the dialect: ten operations and types, each a frozen value, checked when it is made.

    desc = tma_descriptor_tiled(tensor, layout, paddings=(), mode="tiled", elementBitWidth=16)
    atom = non_exec_tiled_tma_load(desc, tile, cta_map, num_multicast=1)
    exec = make_exec_tma(atom, barrier, cache_mode="load_cache_mode<cg>")
    op   = tma_load(exec, smem_tile, coord, allow_tma=True, inBounds=True)

Attributes have the dialect's own names. Source: the TMA Atoms reference page, Atom Family and Worked Example.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import InvalidTypeError
from cute_py.layout.layout import Layout
from cute_py.layout.trees import leaves
from cute_py.tma.dialect import diagnostics as say
from cute_py.tma.dialect.descriptor_builder import build_tma_descriptor, build_tma_descriptor_im2col
from cute_py.tma.dialect.descriptors import TmaDescriptorIm2col, TmaDescriptorTiled
from cute_py.tma.dialect.diagnostics import Finding, refuse
from cute_py.tma.dialect.exec_atom import (
    BulkTensorCopy,
    ExecTmaAtom,
    ExpectTx,
    PrefetchDescriptor,
    lower_tma_load,
    lower_tma_store,
    why_not_load,
)
from cute_py.tma.dialect.modes import TmaReduceKind, TmaStoreMode
from cute_py.tma.dialect.non_exec_atom import NonExecTmaAtom
from cute_py.tma.dialect.verifier import partition


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One member of the family: its name in the dialect, the function of this package, its role."""

    name: str
    function: str
    role: str


ATOM_FAMILY: Final[tuple[FamilyRow, ...]] = (
    FamilyRow("atom.tma_load", "tma_load", "run an asynchronous load from global to shared memory"),
    FamilyRow("atom.tma_store", "tma_store", "run an asynchronous store from shared to global memory"),
    FamilyRow("atom.tma_reduce", "tma_reduce", "run an asynchronous reduction into global memory"),
    FamilyRow("atom.non_exec_tiled_tma_load", "non_exec_tiled_tma_load", "a tiled load before barrier and cache mode"),
    FamilyRow("atom.non_exec_tiled_tma_store", "non_exec_tiled_tma_store", "a tiled store before it is bound"),
    FamilyRow("atom.non_exec_tiled_tma_reduce", "non_exec_tiled_tma_reduce", "a tiled reduction before it is bound"),
    FamilyRow("prefetch_tma_desc", "prefetch_tma_desc", "prefetch a descriptor before a transfer"),
    FamilyRow("tma_descriptor_tiled", "tma_descriptor_tiled", "descriptor type of tiled movement"),
    FamilyRow("tma_descriptor_im2col", "tma_descriptor_im2col", "descriptor type of im2col movement"),
    FamilyRow("atom.make_exec_tma", "make_exec_tma", "bind an atom to barrier, multicast and cache mode"),
)

tma_descriptor_tiled = build_tma_descriptor
tma_descriptor_im2col = build_tma_descriptor_im2col


@dataclass(frozen=True, slots=True)
class TmaOperation:
    """One copy: atom.tma_load, atom.tma_store or atom.tma_reduce.

    Attributes:
        exec_atom: the bound atom; tile: in shared memory; coord: of the tile's first element, innermost first.
        operations: what the copy is lowered to, in order.
        allow_tma: may the copy be a TMA copy? inBounds: does the producer promise that the tile is inside the tensor?
    """

    name: str
    exec_atom: ExecTmaAtom
    tile: Any
    coord: tuple[Any, ...]
    operations: tuple[PrefetchDescriptor | ExpectTx | BulkTensorCopy, ...]
    allow_tma: bool = True
    inBounds: bool = False

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def attributes(self) -> dict[str, bool]:
        return {"allow_tma": self.allow_tma, "inBounds": self.inBounds}

    def __str__(self) -> str:
        attributes = ", ".join(f"{name} = {str(value).lower()}" for name, value in self.attributes.items())
        return f"cute_nvgpu.{self.name} %exec, %tile, %coord {{{attributes}}}"


def _outside(exec_atom: ExecTmaAtom, coord: tuple[Any, ...]) -> list[Finding]:
    """Coordinates that break an inBounds promise, as far as they are known."""
    descriptor = exec_atom.atom.descriptor
    if not isinstance(descriptor, TmaDescriptorTiled) or len(coord) != descriptor.rank:
        return []
    found = []
    for index in range(exec_atom.atom.instructions):
        place = exec_atom.atom.instruction(index).coord
        for axis, (start, step, box) in enumerate(zip(coord, place, exec_atom.atom.box, strict=True)):
            if not isinstance(start, int):
                continue
            first, extent = int(start) + step, descriptor.shape[axis]
            if first < 0 or first + box > extent:
                text = f"inBounds = true; axis {axis} reaches elements {first} to {first + box - 1} of {extent}"
                found.append(Finding(text))
        if found:
            break
    return found


def _checked(name: str, kind: str, exec_atom: Any, coord: Any, allow_tma: bool, in_bounds: bool) -> tuple[Any, ...]:
    """The coordinate as a tuple, once atom and attributes fit the operation."""
    if not isinstance(exec_atom, ExecTmaAtom):
        raise InvalidTypeError(f"{name} takes what make_exec_tma gives, got {type(exec_atom).__name__}")
    expect(allow_tma, bool, "allow_tma")
    expect(in_bounds, bool, "inBounds")
    place = tuple(coord) if isinstance(coord, (tuple, list)) or hasattr(coord, "items") else (coord,)
    found = [] if allow_tma else [Finding(say.NO_TMA)]
    if kind == "load":
        found += why_not_load(exec_atom)
    elif exec_atom.atom.kind != kind:
        found.append(Finding(f"expect a tma_{kind} atom type", f"a {exec_atom.atom.kind} atom"))
    if in_bounds:
        found += _outside(exec_atom, place)
    refuse(found)
    return place


def tma_load(
    exec_atom: ExecTmaAtom,
    dst: Any,
    coord: Any,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
    cta: int = 0,
) -> TmaOperation:
    """atom.tma_load: load one tile. A barrier that counts is raised by the tile's bytes.

    Args:
        dst: in shared memory. coord: of the tile's first element, innermost first.
        allow_tma, inBounds: the operation's attributes; see `TmaOperation`.
        prefetch: prefetch the descriptor first. cta: which of the CTAs of a multicast issues.
    Raises:
        TmaBuildError: 'expect a tma_load atom type' and the other texts of the atom verifier, a tile outside shared
            memory, a coordinate of another rank, or one that breaks the inBounds promise. The barrier is left alone.
    """
    name = "atom.tma_load"
    place = _checked(name, "load", exec_atom, coord, allow_tma, inBounds)
    operations = lower_tma_load(exec_atom, dst, place, prefetch=prefetch, cta=cta)
    return TmaOperation(name, exec_atom, dst, place, operations, allow_tma, inBounds)


def _written(
    kind: str, exec_atom: ExecTmaAtom, src: Any, coord: Any, allow_tma: bool, in_bounds: bool, prefetch: bool
) -> TmaOperation:
    """A store or a reduction of one tile."""
    name = f"atom.tma_{kind}"
    place = _checked(name, kind, exec_atom, coord, allow_tma, in_bounds)
    operations = lower_tma_store(exec_atom, src, place, prefetch=prefetch)
    return TmaOperation(name, exec_atom, src, place, operations, allow_tma, in_bounds)


def tma_store(
    exec_atom: ExecTmaAtom,
    src: Any,
    coord: Any,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
) -> TmaOperation:
    """atom.tma_store: store one tile. Arguments and errors as `tma_load`; no barrier is raised."""
    return _written("store", exec_atom, src, coord, allow_tma, inBounds, prefetch)


def tma_reduce(
    exec_atom: ExecTmaAtom,
    src: Any,
    coord: Any,
    *,
    allow_tma: bool = True,
    inBounds: bool = False,
    prefetch: bool = False,
) -> TmaOperation:
    """atom.tma_reduce: reduce one tile into global memory. Arguments and errors as `tma_store`."""
    return _written("reduce", exec_atom, src, coord, allow_tma, inBounds, prefetch)


def prefetch_tma_desc(descriptor: Any) -> PrefetchDescriptor:
    """prefetch_tma_desc: bring a descriptor into the descriptor cache.

    Raises:
        InvalidTypeError: no descriptor.
    """
    if not isinstance(descriptor, (TmaDescriptorTiled, TmaDescriptorIm2col)):
        raise InvalidTypeError(f"prefetch_tma_desc takes a TMA descriptor, got {type(descriptor).__name__}")
    return PrefetchDescriptor(descriptor)


def _non_exec(source: Any, tile: Any, cta_map: Any, **options: Any) -> NonExecTmaAtom:
    """Verify, and give the atom with the descriptor that it was made of."""
    tensor = source.tensor if isinstance(source, TmaDescriptorTiled) else source
    is_v_map = isinstance(cta_map, Layout) and any(hasattr(d, "modes") for d in leaves(cta_map.stride))
    tiler, v_map = (None, cta_map) if is_v_map else (cta_map, None)
    [record] = partition(tile, tensor, tiler, v_map, **options)
    atom: NonExecTmaAtom = record.body
    return replace(atom, descriptor=source) if isinstance(source, TmaDescriptorTiled) else atom


def non_exec_tiled_tma_load(
    descriptor: Any,
    tile: Any,
    cta_map: Any = None,
    *,
    num_multicast: int | None = 1,
    load_mode: Any = None,
    arch: str = "sm_90a",
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_load: a verified load.

    Args:
        descriptor: a tiled descriptor, or the global tensor itself. tile: the shared layout.
        cta_map: the CTA's value map (basis strides), or the tile by mode. num_multicast, load_mode: as in `partition`.
    Raises:
        TmaVerifyError: a step of the partition verifier refuses.
    """
    return _non_exec(descriptor, tile, cta_map, num_multicast=num_multicast, load_mode=load_mode, arch=arch)


def non_exec_tiled_tma_store(
    descriptor: Any, tile: Any, cta_map: Any = None, *, store_mode: Any = TmaStoreMode.TILED, arch: str = "sm_90a"
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_store: a verified store. Arguments and errors as `non_exec_tiled_tma_load`."""
    return _non_exec(descriptor, tile, cta_map, store_mode=store_mode, arch=arch)


def non_exec_tiled_tma_reduce(
    descriptor: Any, tile: Any, cta_map: Any = None, *, kind: Any = TmaReduceKind.ADD, arch: str = "sm_90a"
) -> NonExecTmaAtom:
    """atom.non_exec_tiled_tma_reduce: a verified reduction of one of the eight kinds. Arguments and errors as
    `non_exec_tiled_tma_load`."""
    return _non_exec(descriptor, tile, cta_map, reduce_kind=kind, arch=arch)
