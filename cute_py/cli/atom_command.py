"""`cute-py atom`: list CuTe's MMA and copy operations, find them by their properties, and show which thread holds which
element."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.copy_atoms import COPY_ATOMS
from cute_py.atom.element_types import cpp_type_text
from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS, find_mma_atoms
from cute_py.atom.tiled_mma import make_tiled_mma
from cute_py.cli.arguments import add_action, integer, json_option, report, sizes, text_of
from cute_py.draw.threads import draw_copy, draw_mma
from cute_py.errors import InvalidValueError, counted
from cute_py.explanation.atoms import atom_data, atom_of, atom_text, atoms_of_shape, shape_text
from cute_py.layout import size
from cute_py.tensor.latex import format_latex

Row = dict[str, Any]


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = "Shows the MMA and copy operations of CuTe C++ under their C++ names. Every action takes --json."
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)
    listed = add_action(actions, "list", "list all operations, or the operations of one family or architecture")
    listed.add_argument("--kind", choices=("mma", "copy"), help="list only this kind")
    listed.add_argument("--family", help="such as sm80, sm90_gmma, sm100_umma")
    listed.add_argument("--arch", help="such as sm80: operations that first appear in this architecture")
    listed.add_argument("--count", action="store_true", help="count the operations in each family")
    json_option(listed, run_list)
    find = add_action(actions, "find", "find MMA operations by their element types and extents")
    for operand in ("a", "b", "c"):
        find.add_argument(f"--{operand}", metavar="TYPE", help=f"element type of {operand.upper()}, such as bfloat16")
    find.add_argument("--arch", help="such as sm90")
    find.add_argument("--family", help="such as sm90_gmma")
    for extent in ("m", "n", "k"):
        find.add_argument(f"--{extent}", type=integer, help=f"extent {extent.upper()} of one instruction")
    find.add_argument("--sparse", action=argparse.BooleanOptionalAction, help="with or without a sparse A")
    json_option(find, run_find)
    show = add_action(
        actions, "show", "show one atom: instruction, registers, layouts, and the elements of each thread"
    )
    show.add_argument("name", help="C++ name, such as SM90_64x128x16_F32BF16BF16_SS, or - for standard input")
    show.add_argument(
        "--at",
        type=sizes,
        metavar="ROW,COLUMN",
        help="only print which thread holds this element of an MMA's operand, and the index of its value",
    )
    show.add_argument("--operand", choices=("A", "B", "C"), default="C", help="the operand of --at; default: C")
    show.add_argument("--dtype", help="element type of the values of a copy; default: bits")
    show.add_argument("--draw", action="store_true", help="print the picture as text")
    show.add_argument("--out", metavar="FILE", help="write the picture to FILE.svg, FILE.png, FILE.html or FILE.txt")
    show.add_argument("--latex", action="store_true", help="print an MMA as C++'s print_latex does")
    json_option(show, run_show)


def _mma_row(atom: MmaAtom) -> Row:
    shape = [int(extent) for extent in atom.shape_mnk]
    types = {x: cpp_type_text(atom.types[x]) for x in "ABC"}
    return {"op": atom.op, "kind": "mma", "arch": atom.arch, "family": atom.family, "shape_mnk": shape, "types": types}


def _rows(options: argparse.Namespace) -> Iterator[Row]:
    if options.kind != "copy":
        yield from map(_mma_row, MMA_ATOMS.values())
    if options.kind != "mma":
        for traits in COPY_ATOMS.values():
            yield {"op": traits.op, "kind": "copy", "arch": traits.arch, "family": traits.family}


def run_list(options: argparse.Namespace) -> int:
    """List operations."""
    every = list(_rows(options))
    rows = [
        row
        for row in every
        if (options.family is None or row["family"] == options.family)
        and (options.arch is None or row["arch"] == options.arch.replace("_", "").rstrip("af"))
    ]
    if not rows:
        facts = {key: ", ".join(sorted({row[key] for row in every})) for key in ("family", "arch")}
        raise InvalidValueError("no operation matches this family and architecture", facts)
    if options.count:
        counts = Counter(f"{row['kind']} {row['family']}" for row in rows)
        width = max(map(len, counts))
        report(
            options,
            lambda: {"total": len(rows), "families": dict(counts)},
            lambda: "\n".join([*(f"{name:<{width}} {n:>5}" for name, n in counts.items()), f"{len(rows)} operations"]),
        )
    else:
        report(options, lambda: rows, lambda: _table(rows))
    return 0


def _table(rows: list[Row]) -> str:
    """Format the operations, one per line."""
    width = max(len(row["op"]) for row in rows)
    lines = []
    for row in rows:
        extra = ""
        if row["kind"] == "mma":
            extra = "x".join(map(str, row["shape_mnk"])) + "  " + " ".join(row["types"].values())
        lines.append(f"{row['op']:<{width}}  {row['arch']:<5}  {row['kind']:<4}  {extra}".rstrip())
    return "\n".join(lines)


def run_find(options: argparse.Namespace) -> int:
    """Find MMA operations."""
    asked = ("a", "b", "c", "arch", "family", "m", "n", "k", "sparse")
    found = find_mma_atoms(**{name: getattr(options, name) for name in asked})
    rows = [{**_mma_row(atom), "name": atom.name} for atom in found]
    report(
        options,
        lambda: rows,
        lambda: _table(rows) if rows else "no MMA operation of CuTe has these properties",
    )
    return 0


def _show_holders(atom: MmaAtom | CopyAtom, options: argparse.Namespace) -> int:
    """Print the threads that hold one element."""
    if not isinstance(atom, MmaAtom):
        raise InvalidValueError(f"--at needs an MMA atom, but {atom.name} is a copy atom")
    if len(options.at) != 2:
        raise InvalidValueError(f"--at has {counted(len(options.at), 'number')}; must have 2, a row and a column")
    operand = options.operand
    held = atom.holders(operand, *options.at)
    values = int(size(atom.layouts[operand][1]))
    count, register = atom.registers[operand]
    rows = [{"thread": thread, "value": value, "register": value * count // values} for thread, value in held]
    name = f"{operand}({options.at[0]},{options.at[1]})"
    report(
        options,
        lambda: {"op": atom.op, "operand": operand, "at": list(options.at), "holders": rows},
        lambda: "\n".join(
            f"{name}  thread {row['thread']}, value {row['value']} of {values}; register {row['register']} of {count} "
            f"({register})"
            for row in rows
        ),
    )
    return 0


def _show_shape(options: argparse.Namespace, name: str, atoms: list[MmaAtom]) -> int:
    """List the atoms whose instruction has a shape such as m64n256k16."""
    asked = ("at", "dtype", "draw", "out", "latex")
    if chosen := [f"--{one}" for one in asked if getattr(options, one) not in (None, False)]:
        names = {"operations": ", ".join(atom.op for atom in atoms)} if atoms else None
        raise InvalidValueError(f"{' and '.join(chosen)} needs one operation, but {name} is a shape", names)
    shown = shape_text(name)
    report(options, lambda: [{**_mma_row(atom), "name": atom.name} for atom in atoms], lambda: shown)
    return 0


def run_show(options: argparse.Namespace) -> int:
    """Show an atom."""
    name = text_of(options.name)
    if (atoms := atoms_of_shape(name)) is not None:
        return _show_shape(options, name.strip(), atoms)
    atom = atom_of(name, options.dtype)
    if options.latex and not isinstance(atom, MmaAtom):
        raise InvalidValueError(f"--latex needs an MMA atom, but {atom.name} is a copy atom")
    if options.at is not None:
        return _show_holders(atom, options)
    data = atom_data(atom)
    picture = None
    if options.draw or options.out:
        picture = draw_mma(atom) if isinstance(atom, MmaAtom) else draw_copy(atom)
    if options.out and picture is not None:
        picture.save(options.out)
        data["out"] = options.out
    latex = format_latex(make_tiled_mma(atom)) if options.latex else None  # type: ignore[arg-type]
    if options.json:
        data |= {"latex": latex} if latex is not None else {}
        data |= {"picture": picture.text} if options.draw and picture is not None else {}
        print(json.dumps(data, indent=2))
    elif latex is not None:
        print(latex, end="")
    else:
        report(options, lambda: data, lambda: picture.text if options.draw and picture is not None else atom_text(atom))
    return 0
