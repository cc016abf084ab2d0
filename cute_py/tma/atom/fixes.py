"""Ways out of a refusal, each tried before it is told: pad the tensor, lay the tile out otherwise, cut the tile.

A fix is a change of one argument of `make_tma_atom` that makes the atom legal. Nothing is suggested that was not made,
that does not fit into shared memory, or whose instructions do not start where they may.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cute_py.argument_checks import expect, expect_integer
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, given
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, domain_of, has_numbers
from cute_py.layout.leaf import Int
from cute_py.layout.trees import leaves, map_leaves
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.check import expect_fits
from cute_py.tma.atom.smem_layout import SPANS, make_smem_layout
from cute_py.tma.atom.tiles import first_tile


@dataclass(frozen=True, slots=True)
class Fix:
    """What to change, in words, and the arguments that change with it."""

    words: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return self.words


def _padded(tensor: Tensor, unit: int) -> Tensor | None:
    """The tensor with every non-unit stride rounded up to a multiple of `unit` elements."""
    stride = tensor.stride
    rounded = map_leaves(lambda d: d if int(d) in (0, 1) else type(d)(-(-int(d) // unit) * unit), stride)
    return None if rounded == stride else make_tensor(tensor.engine, Layout(tensor.shape, rounded))


def candidates(tensor: Tensor, smem_layout: Any, cta_tiler: Any, num_multicast: int) -> Iterator[Fix]:
    """Changes worth trying, the smallest first."""
    dtype = as_dtype(tensor.element_type)
    unit = max(1, 128 // dtype.bits)
    padded = _padded(tensor, unit)
    if padded is not None:
        row = max(int(d) for d in leaves(padded.stride)) if len(leaves(padded.stride)) <= 2 else None
        words = f"pad the row to {row} elements" if row else f"pad the rows to multiples of {unit} elements"
        yield Fix(words, {"gtensor": padded})
    plain = domain_of(smem_layout)
    tile = product_each(plain.shape)
    swizzled = isinstance(smem_layout, ComposedLayout)
    if len(tile) == 2 and swizzled:
        for major in ("K", "MN"):
            for span in SPANS:
                yield _canonical(major, span.name, dtype, tile)
    if swizzled:
        yield Fix("no swizzle", {"smem_layout": plain})
    for order, name in ((LayoutRight, "row-major"), (LayoutLeft, "column-major")):
        layout = Layout(tile, order)
        yield Fix(f"a {name} shared tile {layout}", {"smem_layout": layout})
    yield Fix("split_oversize=True: several instructions a tile", {"split_oversize": True})
    for count in (8, 4, 2, 1):
        if count < num_multicast:
            yield Fix(f"num_multicast={count}", {"num_multicast": count})
    for half in _smaller(tile):
        for compact in (LayoutRight, LayoutLeft):
            yield Fix(
                f"a tile of {'x'.join(str(int(n)) for n in half)}",
                {"smem_layout": Layout(half, compact), "cta_tiler": half},
            )


def _canonical(major: str, name: str, dtype: Any, tile: tuple[Any, ...]) -> Fix:
    words = f'make_smem_layout("{major}", "{name}", "{dtype.name}", {tuple(int(n) for n in tile)})'
    try:
        return Fix(words, {"smem_layout": make_smem_layout(major, name, dtype, tile)})
    except CuteError:
        return Fix(words, {"smem_layout": None})


def _smaller(tile: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for i, n in enumerate(tile):
        for size in (256, 128, 64, 32, 16, 8):
            if size < int(n):
                yield tuple([Int(size) if j == i else Int(int(m)) for j, m in enumerate(tile)])
                break


def find_fixes(make: Any, arguments: dict[str, Any], most: int = 2) -> list[Fix]:
    """Up to `most` single changes of `arguments` for which `make(**arguments)` gives an atom that can copy.

    Args:
        make: `make_tma_atom`; arguments: its arguments by name, with `gtensor` a tensor.

    >>> wide = ComposedLayout(Swizzle(2, 4, 3), smem_ptr_flag(16), Layout((Int(64), Int(64)), LayoutRight))
    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> arguments = {"op": "SM90_TMA_LOAD", "gtensor": x, "smem_layout": wide, "num_multicast": 1, "suggest": False}
    >>> print(cute.tma.find_fixes(cute.tma.make_tma_atom, arguments, most=1)[0])
    make_smem_layout("K", "128B", "float16", (64, 64))
    """
    found: list[Fix] = []
    expect(arguments, dict, "arguments")
    most = expect_integer(most, "most", 0, unit="fixes")
    parameters: Mapping[str, Any]
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError, RecursionError):  # nothing that can be called, or one that doesn't say how
        parameters = {}
    if not {"gtensor", "smem_layout"} <= set(parameters):
        raise InvalidTypeError(f"expected a function that makes an atom, got {type(make).__name__} {given(make)}")
    missing = [name for name in ("gtensor", "smem_layout", "num_multicast") if name not in arguments]
    if missing:
        raise InvalidValueError(f"arguments without {missing[0]}; must be those of make_tma_atom, by name")
    tensor, smem_layout = arguments["gtensor"], arguments["smem_layout"]
    if not has_numbers(tensor.layout) or not has_numbers(domain_of(smem_layout)):
        return found
    for fix in candidates(tensor, smem_layout, arguments.get("cta_tiler"), int(arguments["num_multicast"])):
        if len(found) == most:
            break
        if any(value is None for value in fix.arguments.values()):
            continue
        try:
            atom = make(**{**arguments, **fix.arguments})
            expect_fits(atom)
            first_tile(atom)
        except CuteError:
            continue
        found.append(fix)
    return found
