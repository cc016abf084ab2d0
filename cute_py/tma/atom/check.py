"""Refuse an atom whose tensor map cannot work, with every reason at once and the layout modes at fault.

Where a tile hangs over the end of a mode and the engine does not fill with zeros, although the layouts say so.

The engine tests one coordinate for each mode of the tensor map. Two cases escape it, in CuTe too:

- global modes that were merged into one mode of the map share its test: past the end of the first lies the second;
- a mode that is statically of size 1 never moves a coordinate: a further instruction along it reads its first row.

Where a swizzle of elements is not the swizzle of bytes that the engine applies.

A swizzle with a plain offset acts on elements; the engine swizzles bytes. At element widths other than one byte the
same three numbers are two functions.

Whether a tile fits into the shared memory of one block, with the barrier that counts its bytes.

A tensor map holds a box and knows nothing of a tile of several boxes: it can be legal, and its copy can never run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from cute_py.errors import TmaLimitError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import cosize
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import tree_text, value_of
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import at, leaves, modes
from cute_py.tma.atom.plan import TmaPlan
from cute_py.tma.descriptor.limits import architecture
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import Violation, violations

if TYPE_CHECKING:
    from cute_py.tma.atom.atom import TmaAtom
    from cute_py.tma.atom.tile_atom import TileAtom

Path = tuple[int, ...]


def tile_extents(atom: TmaAtom) -> dict[Path, int]:
    """How far the tile reaches along each global mode that it walks, in elements."""
    v_map = atom.gbasis.trace.cta_v_map
    reach: dict[Path, int] = {}
    for n, d in zip(leaves(v_map._shape), leaves(v_map._stride), strict=True):
        path = tuple(getattr(d, "modes", ()))
        if path:
            reach[path] = reach.get(path, 1) + (int(value_of(n)) - 1) * int(value_of(d.value))
    return reach


def why_not_filled(atom: TmaAtom) -> str | None:
    """The first mode whose overhang is not filled with zeros, or None."""
    gmem = atom.gtensor.layout
    reach = tile_extents(atom)
    walked: dict[Path, tuple[int, int]] = {}
    for j, (shape, stride) in enumerate(
        zip(modes(atom.plan.gbasis._shape), modes(atom.plan.gbasis._stride), strict=True)
    ):
        paths = [tuple(getattr(d, "modes", ())) for d in leaves(stride)]
        extents = [int(n) for n in leaves(shape)]
        if len(extents) == len(paths):
            walked.update({path: (j, n) for path, n in zip(paths, extents, strict=True)})
        if len(paths) < 2:
            continue
        outermost = max(paths, key=lambda p: int(value_of(at(gmem._stride, p))))
        for path in paths:
            size, tile = int(value_of(at(gmem._shape, path))), reach.get(path, 1)
            if path != outermost and size % tile:
                return (
                    f"a tile reaches {tile} elements along layout mode {_name(path)} of {size}, which shares TMA mode"
                    f" {j} with others: what lies past its end is read, not filled with zeros"
                )
    for path, tile in reach.items():
        size = at(gmem._shape, path)
        if type(size) is not int or size != 1 or tile == 1:
            continue
        j, extent = walked.get(path, (0, 1))
        full = math.prod(int(n) for n in leaves(modes(atom.plan.gbasis._shape)[j]))
        if extent != tile or atom.plan.box[j] != full:
            return (
                f"a tile reaches {tile} elements along layout mode {_name(path)}, statically of size 1: coordinates"
                " never move along it, so instructions past its end read its first row again"
            )
    return None


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def why_not_units(layout: Any, bits: int) -> str | None:
    """What the engine does differently with this shared layout of elements of `bits` bits, or None.

    >>> from cute_py.layout.layout import Layout
    >>> why_not_units(ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1))), 16)[-52:]
    'elements Sw<3,4,3> on bytes is Sw<3,3,3> on elements'
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.outer, Swizzle) or not layout.outer.bits:
        return None
    if hasattr(layout.offset, "bits") or bits == 8 or bits % 8:
        return None
    on_bytes = layout.outer
    shift = (bits // 8).bit_length() - 1
    if on_bytes.base < shift:
        return f"{on_bytes} on elements of {bits} bits permutes parts of elements when it is read on bytes"
    on_elements = Swizzle(on_bytes.bits, on_bytes.base - shift, on_bytes.shift)
    return (
        f"{on_bytes} acts on elements in this layout, and on bytes in the TMA engine; for {bits}-bit elements "
        f"{on_bytes} on bytes is {on_elements} on elements"
    )


BARRIER_BYTES: Final = 8
"""Bytes of an mbarrier, which lies in shared memory beside the tile of a load."""


def why_not_fits(atom: TileAtom) -> str | None:
    """Why the tile of this atom can't lie in the shared memory of one block, or None.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 1024), (1024, Int(1))))
    >>> tile = Layout((Int(256), Int(512)), LayoutRight)
    >>> why_not_fits(cute.tma.make_tma_atom("SM90_TMA_LOAD", x, tile, split_oversize=True))
    'a tile of 262144 bytes and a barrier of 8; a block has at most 232448 bytes of shared memory on sm_90'
    """
    direction = atom.op.row.direction
    if direction == "prefetch":
        return None
    gpu = architecture(atom.arch)
    taken = -(-int(cosize(atom.tile)) * atom.dtype.bits // 8)
    barrier = BARRIER_BYTES if direction == "load" else 0
    if taken + barrier <= gpu.block_shared_memory_bytes:
        return None
    beside = f" and a barrier of {barrier}" if barrier else ""
    limit = f"a block has at most {gpu.block_shared_memory_bytes} bytes of shared memory on {gpu.name}"
    return f"a tile of {taken} bytes{beside}; {limit}"


def expect_fits(atom: TileAtom) -> None:
    """Refuse an atom whose copy can never run.

    Raises:
        TmaLimitError: its tile does not fit, see `why_not_fits`.
    """
    reason = why_not_fits(atom)
    if reason is not None:
        raise TmaLimitError(reason, {"shared tile": atom.smem_layout})


def layout_modes(plan: TmaPlan, gmem: Layout, tma_mode: int) -> str:
    """Which modes of the global tensor a TMA mode is made of, with their strides.

    Example: 'TMA mode 1 (layout mode 0: 1024 elements, stride 12)'.
    """
    parts = []
    for d in leaves(modes(plan.gbasis._stride)[tma_mode]):
        path = tuple(getattr(d, "modes", ()))
        where = ".".join(map(str, path)) or "0"
        size, stride = tree_text(at(gmem._shape, path)), tree_text(at(gmem._stride, path))
        parts.append(f"layout mode {where}: {size.strip('_')} elements, stride {stride.strip('_')}")
    return f"TMA mode {tma_mode} ({'; '.join(parts)})"


def reasons(plan: TmaPlan, request: TensorMapTiled, gmem: Layout, arch: str) -> list[tuple[str, int | None, object]]:
    """(message, TMA mode, what it came from) of everything that is wrong: CuTe's conditions and the driver's rules."""
    found: list[tuple[str, int | None, object]] = []
    for v in violations(request, arch=arch):
        found.append((v.message, v.mode, v))
    for b in plan.broken:
        argument = b.message.split(" ")[0]
        if not any(message.startswith(argument + " ") for message, _, _ in found):
            found.append((b.message, b.mode, b))
    return found


def refusal(
    found: list[tuple[str, int | None, object]], plan: TmaPlan, gmem: Layout, fixes: Sequence[str] = ()
) -> TmaLimitError:
    """One TmaLimitError that tells all reasons, and the changes that were tried and work."""
    conditions = [b.condition for b in plan.broken]
    sources = [w for _, _, w in found]
    hint = "; or ".join(fixes) or None
    if len(found) == 1:
        message, mode, what = found[0]
        facts: dict[str, object] = {}
        if mode is not None:
            facts["mode"] = layout_modes(plan, gmem, mode)
        if conditions:
            facts["CuTe asserts"] = conditions[0]
        if isinstance(what, Violation):
            facts["source"] = what.source
        return TmaLimitError(message, facts, hint, sources)
    lines: dict[str, object] = {
        str(i + 1): message + (f"; {layout_modes(plan, gmem, mode)}" if mode is not None else "")
        for i, (message, mode, _) in enumerate(found)
    }
    for i, condition in enumerate(conditions):
        lines[f"CuTe asserts {i + 1}"] = condition
    return TmaLimitError(f"{len(found)} rules of the tensor map are broken", lines, hint, sources)
