"""Refuse an atom whose tensor map cannot work, with every reason at once and the layout modes at fault."""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.errors import TmaLimitError
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import tree_text
from cute_py.layout.trees import at, leaves, modes
from cute_py.tma.atom.plan import TmaPlan
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.descriptor.violations import Violation, violations


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
