"""CuTe's entry points with a rank suffix, such as `SM90_TMA_STORE_3D.copy(desc, smem, crd0, crd1, crd2)`; a call
returns the instruction.

Parameters are in CuTe's order: a load has desc, mbar, (mask,) cache hint, smem, coordinates, (im2col offsets); a
store or reduction has desc, smem, coordinates. Arguments are strings (registers) or numbers; the innermost coordinate
comes first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import EmissionError, InvalidValueError, given
from cute_py.ptx.forms_copy import REDUCE_KINDS
from cute_py.ptx.inline_asm import InlineAsm, inline_asm
from cute_py.ptx.render import Modifier, Value, operand_text, ptx


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One entry point: its name, the form and the modifiers that it emits, and its parameters in order.

    >>> ENTRY_POINTS[0].name, ENTRY_POINTS[0].form
    ('SM90_TMA_LOAD_1D', 'load')
    """

    name: str
    form: str
    modifiers: tuple[tuple[str, Modifier], ...]
    parameters: tuple[str, ...]

    def __post_init__(self) -> None:
        expect_fields(self)
        needed = ("desc", "smem") if "mbar" in self.parameters else ("desc",)
        missing = [name for name in needed if name not in self.parameters]
        if missing:
            raise InvalidValueError(f"{given(self.name)} has no parameter {missing[0]}")

    def copy(self, *arguments: str | int) -> str:
        """Return the instruction with these arguments.

        If `cache_hint` is 0, the instruction has no policy operand (CuTe passes 0 for "none").

        Raises:
            EmissionError: the number of arguments is wrong, or the mask is empty or names a CTA beyond 16.
        """
        if len(arguments) != len(self.parameters):
            text = f"{self.name}::copy takes {len(self.parameters)} arguments; got {len(arguments)}"
            raise EmissionError(text, {"parameters": ", ".join(self.parameters)})
        named = {name: operand_text(value, name) for name, value in zip(self.parameters, arguments, strict=True)}
        modifiers = dict(self.modifiers)
        coords = tuple(value for name, value in named.items() if name.startswith(("crd", "coord", "col", "row")))
        offsets = tuple(value for name, value in named.items() if name.startswith("offset"))
        operands: dict[str, Value] = {"tensor": named["desc"], "coords": coords}
        if "mbar" in named:
            operands["barrier"] = f"[{named['mbar']}]"
            operands["destination"] = f"[{named['smem']}]"
        elif "smem" in named:
            operands["source"] = f"[{named['smem']}]"
        if "multicast_mask" in named:
            operands["mask"] = arguments[self.parameters.index("multicast_mask")]
        if offsets:
            operands["offsets"] = offsets
        if named.get("cache_hint", "0") != "0":
            operands["policy"] = named["cache_hint"]
            modifiers["cache_hint"] = True
        return ptx(self.form, operands=operands, **modifiers)  # type: ignore[arg-type]

    @property
    def asm(self) -> InlineAsm:
        """Return the inline assembly statement, without a cache hint."""
        return inline_asm(self.form, **dict(self.modifiers))


_ROWS = ("col", "row0", "row1", "row2", "row3")


def _tile(rank: int) -> tuple[str, ...]:
    return tuple(f"crd{index}" for index in range(rank))


def _im2col(rank: int) -> tuple[str, ...]:
    """Return the names of the im2col coordinates: channels, then as many of w, h, d as the rank has, then the image."""
    return tuple(f"coord_{axis}" for axis in ("c", *"whd"[: rank - 2], "n"))


def _row(name: str, form: str, places: tuple[str, ...], **modifiers: Modifier) -> EntryPoint:
    """Make an entry point whose parameters are the first parameters of its form, then these coordinates and offsets."""
    mask = ("multicast_mask",) if modifiers.get("multicast") else ()
    loads = ("desc", "mbar", *mask, "cache_hint", "smem")
    head = {"load": loads, "prefetch": ("desc",)}.get(form, ("desc", "smem"))
    return EntryPoint(name, form, tuple(modifiers.items()), (*head, *places))


def _loads() -> Iterator[EntryPoint]:
    groups: tuple[tuple[str, dict[str, Modifier]], ...] = (("SM90_TMA", {}), ("SM100_TMA_2SM", {"cta_group": 2}))
    for prefix, group in groups:
        for multicast, cast in ((False, ""), (True, "_MULTICAST")):
            for rank in range(1, 6):
                modifiers: dict[str, Modifier] = {"dim": rank, "mode": "tile", "multicast": multicast, **group}
                yield _row(f"{prefix}_LOAD{cast}_{rank}D", "load", _tile(rank), **modifiers)
            for rank in range(3, 6):
                modifiers = {"dim": rank, "mode": "im2col", "multicast": multicast, **group}
                places = (*_im2col(rank), *(f"offset_{axis}" for axis in "whd"[: rank - 2]))
                yield _row(f"{prefix}_LOAD_IM2COL{cast}_{rank}D", "load", places, **modifiers)
    for multicast, cast in ((False, ""), (True, "_MULTICAST")):
        name = f"SM100_TMA_LOAD{cast}_2D_GATHER4"
        yield _row(name, "load", _ROWS, dim=2, mode="tile::gather4", multicast=multicast)


def _stores() -> Iterator[EntryPoint]:
    for rank in range(1, 6):
        tile, modifiers = _tile(rank), dict[str, Modifier](dim=rank, mode="tile")
        yield _row(f"SM90_TMA_STORE_{rank}D", "store", tile, **modifiers)
        for kind in REDUCE_KINDS:
            yield _row(f"SM90_TMA_REDUCE_{kind.upper()}_{rank}D", "reduce", tile, **modifiers, op=kind)
        yield _row(f"SM90_TMA_LOAD_{rank}D_PREFETCH", "prefetch", tile, **modifiers)
    for rank in range(3, 6):
        yield _row(f"SM90_TMA_STORE_IM2COL_{rank}D", "store", _im2col(rank), dim=rank, mode="im2col_no_offs")
    yield _row("SM100_TMA_STORE_2D_SCATTER4", "store", _ROWS, dim=2, mode="tile::scatter4")


ENTRY_POINTS: tuple[EntryPoint, ...] = (*_loads(), *_stores())
"""All entry points. Each is also an attribute of this module: `entry_points.SM90_TMA_STORE_3D`."""

_BY_NAME = {row.name: row for row in ENTRY_POINTS}


def entry_point(name: str) -> EntryPoint:
    """Return the entry point of that name.

    >>> entry_point("SM90_TMA_STORE_3D").copy("%rd1", "%r1", "%r2", "%r3", "%r4")
    'cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%rd1, {%r2, %r3, %r4}], [%r1];'

    Raises:
        InvalidValueError: the entry point does not exist.
    """
    expect(name, str, "a name")
    if name not in _BY_NAME:
        facts = {"known": f"{len(_BY_NAME)} names in ENTRY_POINTS"}
        raise InvalidValueError(f"{given(name)} is not an entry point", facts)
    return _BY_NAME[name]


def __getattr__(name: str) -> EntryPoint:
    if name in _BY_NAME:
        return _BY_NAME[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
