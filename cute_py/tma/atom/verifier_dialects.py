"""The two ways in which the partition verifier speaks.

`seed` is the TMA Atoms reference page: its order, its operand order, types without quotes. `dsl` is what the builder of
CuTe DSL 4.8.1 was seen to do: the multicast check first, the global operand before the shared one, types in quotes,
run-time numbers of the shared layout and the V-map as `?`, and none of the gates that look at descriptor limits. Steps
2, 8, 9 and 10 were never seen there; in this dialect their texts are the reference page's in its style. A global
tensor's numbers are known here, and print: what was seen had static global shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from cute_py.errors import InvalidValueError, given
from cute_py.tma.atom.mlir_text import tile_text, type_text
from cute_py.tma.atom.verifier_operands import PartitionOperands
from cute_py.tma.atom.verifier_steps import COMPANION_TEXT, STEPS, Gates, Step


@dataclass(frozen=True, slots=True)
class Dialect:
    """Order of the steps, how operands are printed and joined, which gates are closed.

    Attributes:
        known: print run-time integers of the shared layout and the V-map as numbers. quote: around each type. pair:
            between two types.
        trio: order of three operands. companion: step 11's text for a count with a mode that is no multicast.
    """

    name: str
    order: tuple[int, ...]
    known: bool
    quote: str
    pair: str
    trio: tuple[str, ...]
    companion: str
    gates: Gates
    split_oversize: bool


SEED: Final = Dialect(
    "seed",
    tuple(range(1, 12)),
    True,
    "",
    ", and ",
    ("smem", "gmem", "v_map"),
    COMPANION_TEXT + "{count}",
    Gates(),
    False,
)
DSL: Final = Dialect(
    "dsl",
    (11, *range(1, 11)),
    False,
    "'",
    " and ",
    ("gmem", "smem", "v_map"),
    "expects a return TMA load type with multicast for num_multicast of {count} but got a return TMA load type "
    "does not support multicast",
    Gates(rank=False, alignment=False, swizzle=False, box=False),
    True,
)
DIALECTS: Final = (SEED, DSL)


def as_dialect(name: Any) -> Dialect:
    """The dialect of that name.

    Raises:
        InvalidValueError: no such dialect.
    """
    for dialect in DIALECTS:
        if name is dialect or (isinstance(name, str) and name == dialect.name):
            return dialect
    raise InvalidValueError(f"unknown dialect {given(name)}", {"known": ", ".join(d.name for d in DIALECTS)})


def step_order(dialect: Dialect) -> tuple[Step, ...]:
    """The steps as this dialect walks them.

    >>> [step.number for step in step_order(DSL)][:3]
    [11, 1, 2]
    """
    return tuple(STEPS[number - 1] for number in dialect.order)


def _operand(dialect: Dialect, op: PartitionOperands, name: str) -> str:
    if name == "smem":
        return type_text(op.smem if op.smem_layout is None else op.smem_layout, dialect.known)
    if name == "gmem":
        return type_text(op.shown_gmem)
    if name == "gbasis":
        return type_text(None if op.gbasis is None else op.gbasis.layout, dialect.known)
    if op.cta_v_map is not None:
        return type_text(op.cta_v_map, dialect.known)
    if op.explicit_v_map is not None:
        return type_text(op.explicit_v_map, dialect.known)
    return _tiler_text(op.partitioner, dialect)


def _tiler_text(tiler: Any, dialect: Dialect) -> str:
    """A tiler that has no V-map with this tensor: as a tile if it is one at all."""
    parts = tiler if type(tiler) is tuple else (tiler,)
    if tiler is not None and all(hasattr(p, "shape") or isinstance(p, (int, tuple)) for p in parts):
        return tile_text(tiler, dialect.known)
    return type_text(tiler, dialect.known)


def joined_operands(dialect: Dialect, texts: list[str]) -> str:
    """One, two or three types in a sentence.

    >>> joined_operands(SEED, ["A", "B"]), joined_operands(DSL, ["A", "B"]), joined_operands(SEED, ["A", "B", "C"])
    ('A, and B', "'A' and 'B'", 'A, B, and C')
    """
    quoted = [f"{dialect.quote}{text}{dialect.quote}" for text in texts]
    if len(quoted) == 2:
        return dialect.pair.join(quoted)
    return ", ".join([*quoted[:-1], f"and {quoted[-1]}"]) if len(quoted) > 2 else "".join(quoted)


def diagnostic(dialect: Dialect, step: Step, op: PartitionOperands) -> str:
    """The whole text of a step that fails."""
    if step.number == 11 and op.load_mode is not None and not op.load_mode.is_multicast:
        return dialect.companion.format(count=op.num_multicast)
    names = dialect.trio if len(step.shows) == 3 else step.shows
    return step.text + joined_operands(dialect, [_operand(dialect, op, name) for name in names])
