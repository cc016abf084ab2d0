"""Explanations of MMA and copy atoms and of tiled operations: the instruction, its operands, and the elements that each
thread holds."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, Final

from cute_py.arith_tuple import text
from cute_py.atom.copy_atom import CopyAtom, in_values
from cute_py.atom.copy_atoms import COPY_ATOMS, copy_atom
from cute_py.atom.element_types import ElementType, cpp_type_text
from cute_py.atom.evidence import evidence_of
from cute_py.atom.mma_atom import OPERANDS, MmaAtom
from cute_py.atom.mma_atoms import MMA_ATOMS, find_mma_atoms, mma_atom
from cute_py.atom.template_name import split_template
from cute_py.atom.tiled_copy import ThrCopy, TiledCopy
from cute_py.atom.tiled_mma import ThrMma, TiledMma
from cute_py.dtypes import DTypeLike, as_dtype
from cute_py.errors import InvalidValueError, counted, given, nearest_names, unless_refused
from cute_py.explanation.definitions import member_text
from cute_py.layout import Layout, cosize, product_each, size
from cute_py.notation.parse import parse

SHOWN_ATOMS: Final = 2
"""Other atoms with one instruction that are named."""
SHOWN_SHAPES: Final = 3
SHOWN_THREADS: Final = 6
SHOWN_VALUES: Final = 8
_ROWS: Final = {"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N")}
_HOW: Final = {"value": "registers", "smem_desc": "shared memory, through a descriptor", "tmem": "tensor memory"}


def atom_of(name: str, dtype: DTypeLike | None = None) -> MmaAtom | CopyAtom:
    """Look up an MMA or copy atom by its name. A template name without arguments gets typical arguments.

    Args:
        dtype: the type of a copy atom's values; None: the atom counts its values in bits.
    Raises:
        InvalidValueError: CuTe has no such operation; the error lists the nearest names. StaticAssertError: CuTe C++
            refuses the template arguments.

    >>> atom_of("SM75_U32x4_LDSM_N", "half").num_val_dst, atom_of("SM80_16x8x8_F16F16F16F16_TN").arch
    (8, 'sm80')
    """
    bare = name.strip()
    plain = bare.partition("<")[0].rsplit("::", 1)[-1]
    try:
        return mma_atom(bare)
    except InvalidValueError as error:
        if plain in MMA_ATOMS:
            if "<" not in bare:
                return MMA_ATOMS[plain]
            raise
        of_mma = error
    try:
        return copy_atom(bare, dtype)
    except InvalidValueError:
        if plain in COPY_ATOMS:
            if "<" not in bare:
                return in_values(COPY_ATOMS[plain], None if dtype is None else as_dtype(dtype))
            raise
    near = nearest_names(plain, [*MMA_ATOMS, *COPY_ATOMS])
    facts = {"nearest": ", ".join(near)} if near else None
    raise InvalidValueError(f"{given(name)} is not an MMA or copy operation of CuTe", facts) from of_mma


def atom_text(thing: Any) -> str:
    """Explain an atom, a tiled operation, or one thread's slice of a tiled operation."""
    if isinstance(thing, MmaAtom):
        return _mma_atom(thing)
    if isinstance(thing, CopyAtom):
        return _copy_atom(thing)
    if isinstance(thing, TiledMma):
        return _tiled_mma(thing)
    if isinstance(thing, TiledCopy):
        return _tiled_copy(thing)
    return _thread(thing)


def mnemonic_text(text: str) -> str | None:
    """Explain an instruction without operands by the atom that issues it; None if no atom does.

    >>> print(mnemonic_text("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32").splitlines()[0])
    SM80_16x8x8_F32TF32TF32F32_TN issues this instruction.
    """
    wanted = _mnemonic(text)
    names = [
        name
        for table in (MMA_ATOMS, COPY_ATOMS)
        for name, row in table.items()
        if row.ptx and _mnemonic(row.ptx) == wanted
    ]
    if not names:
        return None
    atom = atom_of(names[0])
    head = f"{names[0]} issues this instruction."
    if len(names) > 1:
        more = f" and {len(names) - SHOWN_ATOMS - 1} more" if len(names) > SHOWN_ATOMS + 1 else ""
        head += f" Other atoms that issue it: {', '.join(names[1 : SHOWN_ATOMS + 1])}{more}."
    if "<" in atom.name:
        head += " Its template arguments below are examples."
    return f"{head}\n\n{atom_text(atom)}"


def atoms_of_shape(text: str) -> list[MmaAtom] | None:
    """Find the MMA atoms whose instruction has a shape such as m64n256k16, without those of tcgen05, whose M and N are
    template arguments. None if the string is not a shape.

    >>> [atom.op for atom in atoms_of_shape("m8n8k4")[:2]], atoms_of_shape("64x256x16")
    (['SM70_8x8x4_F16F16F16F16_TN', 'SM70_8x8x4_F16F16F16F16_NT'], None)
    """
    found = _SHAPE.fullmatch(text.strip().lower())
    if found is None:
        return None
    atoms = find_mma_atoms(m=int(found["m"]), n=int(found["n"]), k=int(found["k"]))
    return [atom for atom in atoms if not atom.family.endswith(_OF_TENSOR_MEMORY)]


_OF_TENSOR_MEMORY: Final = "_umma"
"""The end of the names of the tcgen05 families."""


def shape_text(text: str) -> str | None:
    """List the MMA atoms whose instruction has a shape such as m64n256k16; None if the string is not a shape.

    Raises:
        InvalidValueError: no instruction has this shape; the facts list the nearest shapes.

    >>> print(shape_text("m8n8k16").splitlines()[0])
    m8n8k16 is the shape of 9 MMA operations of CuTe.
    """
    atoms, shape = atoms_of_shape(text), text.strip().lower()
    if atoms is None:
        return None
    wanted = [int(digits) for digits in re.findall("[0-9]{1,9}", shape)]
    of_tmem = [
        one for one in MMA_ATOMS.values() if one.family.endswith(_OF_TENSOR_MEMORY) and one.shape_mnk[2] == wanted[2]
    ]
    known = dict.fromkeys(tuple(map(int, one.shape_mnk)) for one in MMA_ATOMS.values())
    near = sorted(known, key=lambda one: sum(abs(a - b) for a, b in zip(one, wanted, strict=True)))[:SHOWN_SHAPES]
    nearest = ", ".join(f"m{m}n{n}k{k}" for m, n, k in near)
    if not atoms and not of_tmem:
        raise InvalidValueError(f"no MMA operation of CuTe has the shape {shape}", {"nearest": nearest})
    lines = [f"{shape} is the shape of {counted(len(atoms), 'MMA operation')} of CuTe."]
    if not atoms:
        lines = [f"No MMA operation of CuTe has the fixed shape {shape}.", "", f"  nearest: {nearest}"]
    else:
        width = max(len(atom.op) for atom in atoms)
        types = [", ".join(f"{x} {cpp_type_text(atom.types[x])}" for x in "ABC") for atom in atoms]
        lines += ["", "Operations, with the architecture that introduced them and their types"]
        lines += [f"  {atom.op:<{width}}  {atom.arch:<5}  {row}" for atom, row in zip(atoms, types, strict=True)]
        lines += ["", f"  see    : explain({atoms[0].op!r}) has the registers and the layouts."]
    if of_tmem:
        names = ", ".join(one.op for one in of_tmem[:SHOWN_ATOMS])
        more = f" and {len(of_tmem) - SHOWN_ATOMS} more" if len(of_tmem) > SHOWN_ATOMS else ""
        lines += ["", f"M and N of tcgen05 operations are template arguments. With K = {wanted[2]}: {names}{more}."]
    return "\n".join(lines)


def traits_operation(written: str) -> tuple[str, tuple[str, ...]]:
    """The operation of a `Copy_Traits`, and its other arguments. Any other type is the operation itself.

    >>> traits_operation("cute::Copy_Traits<cute::SM90_TMA_LOAD, cute::C<16384>>")
    ('SM90_TMA_LOAD', ('cute::C<16384>',))
    """
    name, parts = split_template(written)
    if name.removeprefix("cute::") != "Copy_Traits" or not parts:
        return written.removeprefix("cute::"), ()
    return parts[0].removeprefix("cute::"), parts[1:]


def tma_atom_text(name: str) -> str | None:
    """Explain the arguments of a `Copy_Atom` of a TMA operation; None for another operation.

    >>> print(tma_atom_text("SM90_TMA_LOAD, half_t").splitlines()[1])
      elements: half_t
    """
    from cute_py.tma.atom.op import Op

    _, (written, *types) = split_template(f"Copy_Atom<{name}>")
    operation, more = traits_operation(written)
    if operation not in Op.__members__:
        return None
    moved = unless_refused(parse, more[0].removeprefix("cute::")) if more else None
    lines = [f"elements: {types[0]}"] if types else []
    if isinstance(moved, int) and int(moved) > 0:
        lines.append(f"one instruction moves {int(moved)} bits, {int(moved) / 8:g} bytes")
    lines.append("not in the type: the tensor map, and the layout of the tile in shared memory")
    listed = "\n".join(f"  {line}" for line in lines)
    return f"A copy atom of {operation}\n{listed}\n\n{member_text(Op[operation])}"


WHOLE_FAMILIES: Final = ("wgmma.mma_async", "ldmatrix", "stmatrix")
"""Instructions for whose shapes and counts CuTe has an atom each."""
_SHAPE: Final = re.compile(r"m(?P<m>[0-9]{1,9})n(?P<n>[0-9]{1,9})k(?P<k>[0-9]{1,9})")
_COUNT: Final = re.compile(r"x[0-9]{1,9}")


def wrong_form(text: str) -> str | None:
    """The rule that the shape or the count of an instruction breaks, from the instructions of the atoms. None if an
    atom issues the instruction, or if more than its shape or count differs from all of them.

    >>> wrong_form("wgmma.mma_async.sync.aligned.m64n100k16.f32.f16.f16")
    'n is 100 in m64n100k16; must be a multiple of 8 from 8 to 256'
    >>> wrong_form("ldmatrix.sync.aligned.m8n8.x3.shared.b16")
    'the number of matrices is x3; must be x1, x2 or x4'
    """
    wanted = _mnemonic(text)
    if not ".".join(wanted).startswith(WHOLE_FAMILIES):
        return None
    forms = {_mnemonic(row.ptx) for table in (MMA_ATOMS, COPY_ATOMS) for row in table.values() if row.ptx}
    if wanted in forms:
        return None
    for pattern in (_SHAPE, _COUNT):
        places = [i for i, part in enumerate(wanted) if pattern.fullmatch(part)]
        if len(places) != 1:
            continue
        bare = _without(wanted, pattern)
        parts = [next(filter(pattern.fullmatch, form)) for form in forms if _without(form, pattern) == bare]
        if parts:
            written = wanted[places[0]]
            return _wrong_shape(written, parts) if pattern is _SHAPE else _wrong_count(written, parts)
    return None


def _without(form: tuple[str, ...], pattern: re.Pattern[str]) -> tuple[str, ...]:
    """The parts of an instruction, without those that match a pattern."""
    return tuple(part for part in form if not pattern.fullmatch(part))


def _wrong_count(written: str, parts: Sequence[str]) -> str:
    return f"the number of matrices is {written}; must be {listed_or(sorted(parts))}"


def _wrong_shape(written: str, parts: Sequence[str]) -> str:
    found = _SHAPE.fullmatch(written)
    extents = [one.groupdict() for part in parts if (one := _SHAPE.fullmatch(part))]
    wrong = []
    for name, digits in found.groupdict().items() if found is not None else ():
        numbers = sorted({int(one[name]) for one in extents})
        if int(digits) not in numbers:
            wrong.append(f"{name} is {int(digits)} in {written}; must be {_numbers(numbers)}")
    return "; ".join(wrong)


def _numbers(numbers: Sequence[int]) -> str:
    """A set of numbers as a rule, if it is one, or as a list."""
    step = numbers[1] - numbers[0] if len(numbers) > 2 else 0
    if step and list(numbers) == list(range(step, numbers[-1] + 1, step)):
        return f"a multiple of {step} from {numbers[0]} to {numbers[-1]}"
    return listed_or([str(number) for number in numbers])


def listed_or(names: Sequence[str]) -> str:
    """Join names with commas, and the last one with 'or'.

    >>> listed_or(["x1", "x2", "x4"]), listed_or(["x1"])
    ('x1, x2 or x4', 'x1')
    """
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last


def _mnemonic(text: str) -> tuple[str, ...]:
    """The parts of an instruction. ptxas accepts the modifiers of ldmatrix and stmatrix in several orders."""
    opcode, *modifiers = text.strip().removesuffix(";").rstrip().replace("shared::cta", "shared").split(".")
    return (opcode, *(sorted(modifiers) if opcode in ("ldmatrix", "stmatrix") else modifiers))


def is_atom(thing: object) -> bool:
    """Whether `atom_text` accepts an object."""
    return isinstance(thing, (MmaAtom, CopyAtom, TiledMma, TiledCopy, ThrMma, ThrCopy))


def _rows(rows: dict[str, object]) -> list[str]:
    width = max(map(len, rows), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in rows.items()]


def _named(element: ElementType | None) -> str:
    return "bits" if element is None else cpp_type_text(element)


def _operand_rows(atom: MmaAtom) -> dict[str, object]:
    """Operand -> its type, and where it is: in registers (with their number) or in memory."""
    rows: dict[str, object] = {}
    for name in OPERANDS:
        if name not in atom.types or name not in atom.registers:
            continue
        count, register = atom.registers[name]
        kind = atom.fragment_type("C" if name == "D" else name).kind if name in "ABCD" else "value"
        where = _HOW[kind] if kind != "value" else counted(count, "register")
        held = f" of {register}" if count else ""
        if kind == "value" and not count:
            where = "in the registers of C" if name == "D" else "no registers"
        rows[name] = f"{_named(atom.types[name])}, {where}" + (held if kind == "value" else "")
    return rows


def _holding(layout: Layout, extents: tuple[int, int], operand: str) -> list[str]:
    """One line per thread, such as `thread 1 C(0,2) C(0,3) ...`, for the first threads."""
    threads, values = int(size(layout[0])), int(size(layout[1]))
    lines = []
    for thread in range(min(SHOWN_THREADS, threads)):
        places = []
        for value in range(min(values, SHOWN_VALUES)):
            column, row = divmod(int(layout(thread, value)), extents[0])
            places.append(f"{operand}({row},{column})")
        more = f" ... ({values} values)" if values > SHOWN_VALUES else ""
        lines.append(f"  thread {thread:<3} {' '.join(places)}{more}")
    if threads > SHOWN_THREADS:
        lines.append(f"  ... {threads} threads")
    return lines


def _extents(shape_mnk: Any, operand: str) -> tuple[int, int]:
    m, n, k = (int(size(extent)) for extent in shape_mnk)
    return {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]


def _who_holds(atom: MmaAtom, layouts: dict[str, Layout], shape_mnk: Any) -> list[str]:
    """A paragraph for each operand in registers: the elements that each thread holds."""
    lines: list[str] = []
    for operand in "ABC":
        rows, columns = _ROWS[operand]
        if atom.fragment_type(operand).kind != "value":
            continue
        lines += ["", f"Who holds {operand}({rows.lower()},{columns.lower()}), in the order of its registers"]
        lines += _holding(layouts[operand], _extents(shape_mnk, operand), operand)
    return lines


def _mma_atom(atom: MmaAtom) -> str:
    m, n, k = (int(extent) for extent in atom.shape_mnk)
    lines = [
        atom.name,
        "",
        f"An MMA atom: D = A * B + C, A is ({m},{k}), B is ({n},{k}), C and D are ({m},{n}).",
        "",
        "Instruction",
    ]
    rows: dict[str, object] = {"PTX": atom.ptx, "since": atom.arch, "threads": atom.thr_id, "source": atom.source}
    rows["evidence"] = evidence_of(atom)
    if atom.sf_vec_size is not None:
        rows["scale"] = f"one factor for {atom.sf_vec_size} elements of K"
    if atom.idesc is not None:
        rows["idesc"] = f"0x{atom.idesc:08x}"
    lines += [*_rows(rows), "", "Operands", *_rows(_operand_rows(atom)), "", "Thread-value layouts"]
    lines += _rows({f"Layout{x}_TV": atom.layouts[x] for x in "ABC"})
    return "\n".join([*lines, *_who_holds(atom, dict(atom.layouts), atom.shape_mnk)])


def _tiled_mma(mma: TiledMma) -> str:
    atom = mma.atom
    tile = tuple(int(extent) for extent in mma.tile_shape())
    vmnk = [int(size(mode)) for mode in mma.thr_layout_vmnk.shape]  # type: ignore[union-attr]
    layouts: dict[str, Layout] = {x: mma.get_layout_TV(x) for x in ("A", "B", "C")}
    beyond = [f"But for {x} {reached}." for x in layouts if (reached := beyond_tile(layouts[x], _extents(tile, x)))]
    lines = [
        f"TiledMMA of {atom.name}",
        "",
        f"A tile of {tile[0]} x {tile[1]} x {tile[2]} (M x N x K) over {counted(int(mma.size()), 'thread')}: "
        f"{vmnk[1]} x {vmnk[2]} x {vmnk[3]} atoms of {vmnk[0]} along M, N, K.",
        *beyond,
        "",
        "Parts",
        *_rows(
            {
                "ThrLayoutVMNK": mma.thr_layout_vmnk,
                "PermutationMNK": text(mma.permutation_mnk),
                "instructions": f"{_instructions(mma)} for the tile; each thread executes {_instructions(mma, True)} "
                "of them",
            }
        ),
        "",
        "Thread-value layouts, (thread, value) -> index in the tile",
        *_rows({f"layout{x}_TV": layout for x, layout in layouts.items()}),
    ]
    if not beyond:
        lines += _who_holds(atom, layouts, mma.tile_shape())
    return "\n".join([*lines, "", f"The atom: explain({atom!r})"])


def _instructions(mma: TiledMma, of_a_thread: bool = False) -> int:
    """The number of MMA instructions for the tile, or with `of_a_thread` the number that each thread executes."""
    count = 1
    for mode in range(3):
        atoms = int(size(mma.thr_layout_vmnk[mode + 1])) if of_a_thread else 1
        count *= max(int(mma.tile_size(mode)) // int(mma.atom.shape_mnk[mode]) // atoms, 1)
    return count


def _copy_atom(atom: CopyAtom) -> str:
    traits = atom.traits
    moved = int(size(atom.layout_ref_TV)) * atom.bits
    lines = [
        f"{atom.name} of {_named(atom.dtype)}",
        "",
        f"A copy atom: {counted(int(size(atom.thr_id)), 'thread')} at a time, {moved} bits; each thread has "
        f"{counted(atom.num_val_src, 'value')} in the source and {atom.num_val_dst} in the destination.",
        "",
        "Instruction",
        *_rows(
            {
                "PTX": traits.ptx,
                "since": atom.arch,
                "threads": atom.thr_id,
                "source": traits.source,
                "evidence": evidence_of(atom),
            }
        ),
        "",
        "Registers",
        *_rows({x: f"{count} of {kind}" if count else "none" for x, (count, kind) in traits.registers.items()}),
        "",
        "Thread-value layouts, (thread, value) -> index of the value",
        *_rows({"source": atom.layout_src_TV, "destination": atom.layout_dst_TV, "reference": atom.layout_ref_TV}),
    ]
    if atom.layout_src_TV != atom.layout_dst_TV:
        lines += [
            "",
            "Source and destination differ: a value that one thread addresses in the source may arrive in another "
            "thread.",
        ]
    return "\n".join(lines)


def _tiled_copy(copy: TiledCopy) -> str:
    tile = [int(extent) for extent in product_each(copy.tile_shape())]
    threads, values = int(copy.size()), int(size(copy.layout_TV[1]))
    each = int(size(copy.atom.layout_ref_TV[1]))
    lines = [
        f"TiledCopy of {copy.atom.name}, {_named(copy.atom.dtype)}",
        "",
        f"A tile of {' x '.join(map(str, tile))} over {counted(threads, 'thread')}, {counted(values, 'value')} each, "
        f"in {counted(values // each, 'instruction')} of {each}.",
        *([f"But {beyond}."] if (beyond := beyond_tile(copy.layout_TV, tile)) else []),
        "",
        "Thread-value layouts, (thread, value) -> index in the tile",
        *_rows({"source": copy.get_layoutS_TV(), "destination": copy.get_layoutD_TV()}),
    ]
    if len(tile) == 2 and all(tile) and not beyond:
        for side, layout in (("reads", copy.get_layoutS_TV()), ("writes", copy.get_layoutD_TV())):
            lines += ["", f"Who {side} element (m,n)", *_holding(layout, (tile[0], tile[1]), "")]
    return "\n".join([*lines, "", f"The atom: explain({copy.atom!r})"])


def beyond_tile(layout: Layout, tile: Sequence[int]) -> str:
    """Say that a thread-value layout leaves its tile; an empty string if it does not.

    >>> beyond_tile(Layout((4, 2), (2, 1)), (4, 2)), beyond_tile(Layout((4, 2), (4, 1)), (4, 2))
    ('', 'the thread-value layout reaches index 13 and leaves the tile, because 4x2 elements have the indices 0 to 7')
    """
    area, last = math.prod(tile), int(cosize(layout)) - 1
    if last < area:
        return ""
    shape = "x".join(map(str, tile))
    indices = f"because {shape} elements have the indices 0 to {area - 1}"
    return f"the thread-value layout reaches index {last} and leaves the tile, {indices}"


def _thread(part: Any) -> str:
    if isinstance(part, ThrMma):
        vmnk = ",".join(str(int(c)) for c in part.thr_vmnk)
        head = f"One thread of a tiled MMA: (ThrV,ThrM,ThrN,ThrK) = ({vmnk})"
        calls, whole = "partition_A(tensor), partition_B and partition_C return its parts", part.tiled_mma
    else:
        head = f"Thread {part.thr_idx} of a tiled copy"
        calls, whole = "It reads partition_S(tensor) and writes partition_D(tensor)", part.tiled_copy
    return "\n".join([head, "", f"{calls}.", "", atom_text(whole)])


def atom_data(atom: MmaAtom | CopyAtom) -> dict[str, Any]:
    """The facts of an atom, for JSON."""
    layouts: dict[str, Layout]
    if isinstance(atom, MmaAtom):
        layouts = {f"{x}": layout for x, layout in atom.layouts.items()}
        more: dict[str, Any] = {
            "shape_mnk": [int(extent) for extent in atom.shape_mnk],
            "types": {x: _named(t) for x, t in atom.types.items()},
            "fragments": {x: str(atom.fragment_type(x)) for x in "ABC"},
            "registers": {x: list(row) for x, row in atom.registers.items()},
        }
        ptx, source, family = atom.ptx, atom.source, atom.family
    else:
        layouts = {"source": atom.layout_src_TV, "destination": atom.layout_dst_TV, "reference": atom.layout_ref_TV}
        more = {"dtype": _named(atom.dtype), "registers": {x: list(row) for x, row in atom.traits.registers.items()}}
        ptx, source, family = atom.traits.ptx, atom.traits.source, atom.traits.family
    kind = "mma" if isinstance(atom, MmaAtom) else "copy"
    head = {"name": atom.name, "op": atom.op, "kind": kind, "arch": atom.arch, "family": family}
    end: dict[str, Any] = {"layouts": {x: str(layout) for x, layout in layouts.items()}, "ptx": ptx, "source": source}
    end["evidence"] = evidence_of(atom)
    return {**head, "thr_id": str(atom.thr_id), **more, **end}
