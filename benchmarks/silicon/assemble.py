"""Instructions of newer architectures through ptxas: assembled for their target, not executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchmarks.assembler import assemble_each
from cute_py.atom import COPY_ATOMS, MMA_ATOMS, CopyTraits, MmaAtom, mma_atom
from cute_py.errors import CuteError

ARCHS = ("sm100", "sm103", "sm120")
NARROW = ("float_e2m1_t", "float_e2m3_t", "float_e3m2_t", "float_e4m3_t", "float_e5m2_t")


def registers(prefix: str, first: int, count: int) -> str:
    """`{%r4, %r5}`."""
    return "{" + ", ".join(f"%{prefix}{first + n}" for n in range(count)) + "}"


def warp_text(atom: MmaAtom) -> str:
    """An mma.sync of sm_120 with its operands."""
    sums = "f" if atom.registers["C"][1] == "float32" else "r"
    count = atom.registers["C"][0]
    parts = [registers(sums, 0, count), registers("r", 20, atom.registers["A"][0])]
    parts += [registers("r", 30, atom.registers["B"][0]), registers(sums, 8, count)]
    if "E" in atom.types:
        parts += ["%r40", "0"]
    if "SFA" in atom.types:
        parts += ["{%r41}", "{%h1, %h2}", "{%r42}", "{%h3, %h4}"]
    return f"{atom.ptx} {', '.join(parts)};"


def tensor_text(atom: MmaAtom) -> str:
    """A tcgen05.mma with its operands."""
    a = "%rd1" if atom.registers["A"][1] == "uint64" else "[%r2]"
    parts = ["[%r1]", a, "%rd2", *(["[%r6]"] if ".sp" in atom.ptx else []), "%r3"]
    if "block_scale" in atom.ptx:
        parts += ["[%r4]", "[%r5]"]
    parts.append("%p1")
    if atom.op.endswith("_SCALED"):
        parts.append("0")
    return f"{atom.ptx} {', '.join(parts)};"


def copy_text(traits: CopyTraits) -> str:
    """A copy of sm_100 with its operands."""
    ptx = traits.ptx
    count = max(traits.registers[x][0] for x in "SD")
    listed = registers("r", 20, count)
    if ptx.startswith("tcgen05.cp"):
        return f"{ptx} [%r1], %rd1;"
    if ptx.startswith("tcgen05.ld.red"):
        return f"{ptx} {registers('r', 20, int(re.findall(r'x([0-9]+)[.]', ptx)[-1]))}, %f1, [%r1];"
    half = ", 0" if "16x32bx2" in ptx else ""
    if ptx.startswith("tcgen05.ld"):
        return f"{ptx} {listed}, [%r1]{half};"
    if ptx.startswith("tcgen05.st"):
        return f"{ptx} [%r1]{half}, {listed};"
    if ptx.startswith("ldmatrix"):
        return f"{ptx} {listed}, [%r1];"
    if ptx.startswith("stmatrix"):
        return f"{ptx} [%r1], {listed};"
    wide = registers("f", 0, 8)
    return f"{ptx} {wide}, [%rd1];" if ptx.startswith("ld.") else f"{ptx} [%rd1], {wide};"


def rows() -> Iterator[tuple[str, str, str]]:
    """(name, target, text) of every row of a newer architecture."""
    for name, atom in MMA_ATOMS.items():
        if atom.arch not in ARCHS:
            continue
        target = f"sm_{atom.arch[2:]}a"
        if atom.ptx.startswith("tcgen05"):
            yield name, target, tensor_text(atom)
        elif atom.ptx.startswith("fma"):
            yield name, target, f"{atom.ptx} %rd1, %rd2, %rd3, %rd4;"
        else:
            for made in narrow_types(atom):
                yield f"{made.name}", target, warp_text(made)
    for name, traits in COPY_ATOMS.items():
        if traits.arch == "sm100":
            target = "sm_103a" if ".ld.red" in traits.ptx else "sm_100a"
            yield name, target, copy_text(traits)


def narrow_types(atom: MmaAtom) -> Iterator[MmaAtom]:
    """An operation of sm_120 with every choice of types that C++ takes."""
    vectors = (("float_ue8m0_t", v) for v in ("16", "32", "64"))
    scales = [*vectors, ("float_ue4m3_t", "16"), ("float_ue4m3_t", "32")] if "SFA" in atom.types else [()]
    for a in NARROW:
        for b in NARROW:
            for c in ("float", "half_t"):
                for scale in scales:
                    try:
                        yield mma_atom(f"{atom.op}<{','.join((a, b, c, *scale))}>")
                    except CuteError:
                        continue


def assemble() -> dict[str, dict[str, Any]]:
    """Name -> target, text, and what ptxas said where it refused."""
    found: dict[str, dict[str, Any]] = {}
    listed = list(rows())
    for target in sorted({target for _, target, _ in listed}):
        own = [(name, text) for name, at, text in listed if at == target]
        for (name, text), verdict in zip(own, assemble_each([t for _, t in own], target, (9, 0)), strict=True):
            found[name] = {"target": target, "text": text} | ({} if verdict is None else {"refused": verdict})
    return found
