"""The tab Threads: for each element of an atom or tiled operation, the thread that holds it and the index of its
value."""

from __future__ import annotations

import re
from typing import Any, Final

import cute_py as cute
from cute_py.atom import COPY_ATOMS, MMA_ATOMS
from cute_py.draw.threads import draw_copy, draw_mma, draw_tv
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, counted, given
from cute_py.layout.int_tuple import product_each, size
from cute_py.layout.layout import Layout, static
from cute_py.layout.offsets import domain_size
from cute_py.page.algebra import layout_of
from cute_py.page.answer import Answer, FieldError, read
from cute_py.page.html import pairs, pre
from cute_py.page.spelled import cpp

MOST_HELD: Final = 1 << 14
"""Maximum number of elements in the tiles of a picture."""
_HALF_MMA: Final = re.compile(r"SM80_(16)x(8)x(8|16)_(F32|F16)(F16|BF16)\5(F32|F16)_TN")
_DSL_TYPES: Final = {"F16": "cutlass.Float16", "BF16": "cutlass.BFloat16", "F32": "cutlass.Float32"}


def fill_threads(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab Threads."""
    kinds = {"mma": _mma, "copy": _copy, "tv": _tv}
    if inputs["kind"] not in kinds:
        raise FieldError("kind", InvalidValueError(f"unknown kind {given(inputs['kind'])}"))
    kinds[inputs["kind"]](out, inputs)


def _atom(out: Answer, inputs: dict[str, str], make: Any) -> Any:
    """Find the atom. If the name does not exist, add a problem with buttons for the nearest names, and return None."""
    try:
        return make(inputs["atom"])
    except CuteError as error:
        near = str(error.facts.get("nearest", ""))
        other = "copy" if inputs["kind"] == "mma" else "mma"
        there = COPY_ATOMS if other == "copy" else MMA_ATOMS
        buttons = [{"words": name, "inputs": {"atom": name}} for name in near.split(", ") if name]
        if any(name.partition("<")[0] == inputs["atom"].partition("<")[0] for name in there):
            buttons.insert(0, {"words": f"it is an atom of {other}", "inputs": {"kind": other}})
        out.verdict = ("bad", error.headline)
        out.problem(error, "atom", buttons)
        return None


def _tree(text: str) -> Any:
    """Parse a layout, or a shape such as (2,2,1), and make it static."""
    found = cute.parse(text)
    if isinstance(found, (Layout, tuple, int)):
        return static(found if isinstance(found, Layout) else Layout(found))
    raise InvalidTypeError(f"{given(text)}; write a shape such as (2,2,1) or a layout")


def _tiler(text: str) -> Any:
    found = cute.parse(text)
    return tuple(static(part) if isinstance(part, Layout) else cute.Int(part) if type(part) is int else part
                 for part in (found if isinstance(found, tuple) else (found,)))  # fmt: skip


def _mma(out: Answer, inputs: dict[str, str]) -> None:
    atom = _atom(out, inputs, cute.mma_atom)
    if atom is None:
        return
    atoms = read(inputs, "atoms", _tree) if inputs["atoms"] else None
    tiler = read(inputs, "permutation", _tiler) if inputs["permutation"] else None
    arguments = {} if atoms is None else {"atom_layout_mnk": atoms}
    tiled = cute.make_tiled_mma(atom, **arguments, **({} if tiler is None else {"permutation_mnk": tiler}))
    m, n, k = (int(extent) for extent in tiled.tile_shape())
    _bound("atoms", max(m * k, n * k, m * n))
    text = f"{atom.name}: {counted(int(tiled.size()), 'thread')}, a tile of {m} x {n} x {k}"
    out.verdict = ("good", text)
    out.picture("picture", "A, B and C: the thread and the value of each element", draw_mma(tiled), "mma")
    rows = [(f"layout{x}_TV", pre(atom.layouts[x])) for x in "ABC"]
    out.section("atom", "The atom", pairs([("shape", f"{atom.shape_mnk}"), ("threads", f"{atom.thr_id}"), *rows]))
    out.section("tiled", "As C++ prints it", pre(tiled))
    shown = "" if atoms is None else f', cute.static(cute.parse("{atoms}"))'
    if tiler is not None:
        shown += f", permutation_mnk={_python(tiler)}"
    out.panel("Python", f'import cute_py as cute\n\nmma = cute.make_tiled_mma(cute.mma_atom("{atom.name}"){shown})\n'
                        "print(mma)\nprint(cute.draw.draw(mma))  # .save('mma.svg')")  # fmt: skip
    native = ["#include <cute/tensor.hpp>", "using namespace cute;", "",
              f"auto mma = make_tiled_mma({atom.name}{{}}{'' if atoms is None else ', ' + cpp(atoms)}"
              f"{'' if tiler is None else ', ' + cpp(tiler)});",
              "print_latex(mma);"]  # fmt: skip
    out.panel("C++", "\n".join(native))
    out.panel("CuTe DSL", _dsl_mma(atom.name, atoms, tiler))


def _python(tiler: tuple[Any, ...]) -> str:
    return (
        f"({', '.join(repr(part) if not isinstance(part, cute.Int) else f'cute.Int({int(part)})' for part in tiler)},)"
    )


def _dsl_mma(name: str, atoms: Any, tiler: Any) -> str | None:
    """Write a half-precision MMA in CuTe DSL; None for any other operation."""
    found = _HALF_MMA.fullmatch(name)
    if found is None or tiler is not None:
        return None
    shape = f"({found[1]}, {found[2]}, {found[3]})"
    shown = "(1, 1, 1)" if atoms is None else str(product_each(atoms.shape)).replace("_", "").replace(",", ", ")
    return "\n".join(
        [
            "import cutlass",
            "import cutlass.cute as cute",
            "",
            f"op = cute.nvgpu.warp.MmaF16BF16Op({_DSL_TYPES[found[5]]}, {_DSL_TYPES[found[4]]}, {shape})",
            f"mma = cute.make_tiled_mma(op, {shown})  # inside @cute.jit",
        ]
    )


def _copy(out: Answer, inputs: dict[str, str]) -> None:
    dtype = read(inputs, "dtype", as_dtype)
    atom = _atom(out, inputs, lambda name: cute.copy_atom(name, dtype.name))
    if atom is None:
        return
    thing: Any = atom
    lines = ["import cute_py as cute", "", f'atom = cute.copy_atom("{atom.name}", "{dtype.name}")']
    native = [f"auto atom = Copy_Atom<{atom.name}, {_cpp_type(dtype.name)}>{{}};"]
    shown = "atom"
    if inputs["threads"] or inputs["values"]:
        threads = read(inputs, "threads", lambda text: _tree(text or "1"))
        values = read(inputs, "values", lambda text: _tree(text or "1"))
        thing = cute.make_tiled_copy(atom, threads, values)
        lines.append(
            f'copy = cute.make_tiled_copy(atom, cute.static(cute.parse("{threads}")), '
            f'cute.static(cute.parse("{values}")))'
        )
        native.append(f"auto copy = make_tiled_copy(atom, {cpp(threads)}, {cpp(values)});")
        shown = "copy"
        _bound("threads", int(size(thing.tile_shape())))
    picture = draw_copy(thing)
    out.verdict = ("good", picture.title)
    out.picture("picture", "The thread and the value of each element", picture, "copy")
    out.section("printed", "As C++ prints it", pre(thing))
    out.panel("Python", "\n".join([*lines, f"print({shown})", f"print(cute.draw.draw({shown}))"]))
    out.panel(
        "C++", "\n".join(["#include <cute/tensor.hpp>", "using namespace cute;", "", *native, f"print({shown});"])
    )


def _cpp_type(name: str) -> str:
    known = {"float16": "half_t", "bfloat16": "bfloat16_t", "float32": "float", "float64": "double"}
    return known.get(name, f"{name}_t")


def _tv(out: Answer, inputs: dict[str, str]) -> None:
    layout = read(inputs, "layout", layout_of)
    tile = read(inputs, "tile", _sizes)
    _bound("layout", domain_size(layout))
    picture = draw_tv(layout, tile)  # type: ignore[arg-type]
    notes = "; ".join(picture.notes)
    out.verdict = ("unknown" if notes else "good", notes or f"{picture.title}: each element belongs to one thread")
    out.picture("picture", "The thread and the value of each element", picture, "tv")
    out.panel("Python", "import cute_py as cute\n\n"
                        f'layout = cute.static(cute.parse("{layout}"))\n'
                        f"print(cute.draw.draw_tv(layout, {tuple(map(int, tile))}))")  # fmt: skip
    out.panel("C++", f"#include <cute/tensor.hpp>\nusing namespace cute;\n\nprint_layout({cpp(layout)});")


def _sizes(text: str) -> tuple[int, ...]:
    found = cute.parse(text) if text else None
    sizes = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(n, int) for n in sizes) or not 1 <= len(sizes) <= 2:
        raise InvalidValueError(f"the tile is {given(text)}; write its sizes, such as (8,16)")
    return tuple(int(n) for n in sizes)  # type: ignore[arg-type]


def _bound(name: str, elements: int) -> None:
    if elements > MOST_HELD:
        raise FieldError(
            name, InvalidValueError(f"the tile has {elements} elements; must have at most {MOST_HELD} for a picture")
        )
