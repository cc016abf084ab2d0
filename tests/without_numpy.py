"""What works in an interpreter that has neither numpy nor sympy nor ml_dtypes; run as a script, or loaded by Pyodide.

`python -m tests.without_numpy` blocks the three packages, runs everything that pages and pictures need, and prints a
line of JSON: name -> the text that came out.
"""

from __future__ import annotations

import importlib.abc
import json
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

BLOCKED = ("numpy", "ml_dtypes", "sympy")


class Blocker(importlib.abc.MetaPathFinder):
    """Refuses to find the blocked packages."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


WIDE = "(1024,512):(512,_1)"
SWIZZLED = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
MMA = "SM80_16x8x16_F32F16F16F32_TN"


def answers() -> dict[str, Callable[[], Any]]:
    """Name -> call."""
    import cute_py as cute
    from cute_py import formats
    from cute_py.layout import analysis
    from cute_py.layout.offset_table import offset_table
    from cute_py.tma.atom.tiles import first_tile

    layout = cute.static(cute.parse("((2,2),4):((1,8),2)"))
    shared = cute.parse("Sw<3,3,3> o _0 o (_8,_64):(_64,_1)")
    atom = cute.tma.make_tma_copy(
        "SM90_TMA_LOAD", cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse(WIDE)), cute.parse(SWIZZLED)
    )
    mma = cute.make_tiled_mma(cute.mma_atom(MMA), cute.static(cute.Layout((2, 2, 1))))
    copy = cute.make_tiled_copy(
        cute.copy_atom("UniversalCopy<uint128_t>", "half"),
        cute.static(cute.Layout((16, 8), (8, 1))),
        cute.static(cute.Layout((1, 8))),
    )
    ldmatrix = cute.make_tiled_copy_A(cute.copy_atom("SM75_U32x4_LDSM_N", "half"), mma)

    rows = cute.static(cute.Layout((32, 16), (16, 1)))

    def drawn(thing: Any) -> str:
        picture = cute.draw.draw(thing)
        return f"{picture.text}\n{picture.svg}"

    two = {name: getattr(cute, name) for name in ("composition", "logical_divide", "zipped_divide", "logical_product")}
    one = ("coalesce", "complement", "right_inverse", "left_inverse", "flatten", "filter", "nullspace")
    pictured = (layout, shared, atom, mma, copy, cute.Swizzle(3, 4, 3), atom.descriptor)
    pastes = (WIDE, SWIZZLED, MMA, "CUDA_ERROR_INVALID_VALUE", "TiledCopy uses too few thrs", "mbarrier.try_wait")
    return {
        "print": lambda: cute.format_layout(layout),
        **{name: lambda f=f: f(layout, cute.static(cute.Layout(4, 2))) for name, f in two.items()},  # type: ignore[misc]
        **{name: lambda name=name: getattr(cute, name)(layout) for name in one},  # type: ignore[misc]
        "table": lambda: offset_table(shared)[:70],
        "injective": lambda: [analysis.is_injective(x) for x in (layout, shared)],
        "bijective": lambda: [analysis.is_bijective(x) for x in (layout, shared)],
        "footprint": lambda: [analysis.footprint(x) for x in (layout, shared)],
        "contiguity": lambda: [analysis.contiguity(x) for x in (layout, shared)],
        "cycles": lambda: analysis.cycles(shared),
        "overlaps": lambda: cute.overlaps(layout, shared),
        "banks": lambda: [cute.bank_conflicts(shared, "half", access=x) for x in ("ldmatrix", "row", "column")],
        "banks of a copy": lambda: cute.bank_conflicts(rows, 16, access=ldmatrix),
        "coalescing": lambda: cute.coalescing(cute.Layout(32, 4), "float32"),
        "gbasis": lambda: atom.gbasis,
        "plan": lambda: atom.plan,
        "explain atom": atom.explain,
        "encode": lambda: cute.tma.encode(atom.request).hex(),
        "decode": lambda: cute.tma.decode(atom.descriptor),
        "describe": lambda: cute.tma.describe(atom.descriptor),
        "violations": lambda: cute.tma.violations(cute.tma.decode(atom.descriptor)),
        "lower": lambda: cute.tma.lower(atom),
        "export": lambda: cute.tma.export(atom, "cute"),
        "tiles": lambda: first_tile(atom).rows,
        "tiled mma": lambda: mma,
        "tiled copy": lambda: copy,
        **{f"explain {text}": lambda text=text: cute.explain(text) for text in pastes},  # type: ignore[misc]
        **{f"draw {i}": lambda x=x: drawn(x) for i, x in enumerate(pictured)},  # type: ignore[misc]
        "tile": lambda: cute.draw.draw_smem(atom, 3).svg,
        "multicast": lambda: cute.draw.draw_multicast(atom).svg,
        "ldmatrix": lambda: cute.draw.draw_ldmatrix(ldmatrix, rows).svg,
        "formats": lambda: [drawn(formats.mxfp8(scales=name)) for name in ("32_4_4", "8x4", "linear")],
        "nvfp4": lambda: [formats.nvfp4().explain(), formats.nvfp4().scale_layout(256, 256)],
        "offsets": lambda: refused(lambda: cute.offsets(layout)),
        "emulator": lambda: refused(lambda: cute.tma.Emulator().load(atom.descriptor, [0], (0, 0), [0])),
    }


def refused(call: Callable[[], Any]) -> str:
    """The error of a call that needs numpy; empty where numpy is there."""
    from cute_py.errors import MissingPackageError

    try:
        call()
    except MissingPackageError as error:
        return str(error)
    except Exception:
        return ""
    return ""


def run() -> dict[str, str]:
    """Every answer as text."""
    return {name: str(call()) for name, call in answers().items()}


if __name__ == "__main__":
    sys.meta_path.insert(0, Blocker())
    print(json.dumps(run()))
