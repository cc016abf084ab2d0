"""Which instructions are measured: each distinct one of sm_70 to sm_90, with the operations of CuTe that are it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from benchmarks.silicon.kernels import Form, GroupForm
from cute_py.atom import MMA_ATOMS, MmaAtom
from cute_py.atom.copy_atoms import COPY_ATOMS

WARP_FAMILIES = ("sm70", "sm75", "sm80", "sm89", "sm90")
GROUP_FAMILIES = ("sm90_gmma", "sm90_gmma_ext")
SPARSE_FAMILIES = ("sm90_gmma_sparse", "sm90_gmma_sparse_ext")
SPARSE_N = 16
SWIZZLES = ("INTER", "SW32", "SW64", "SW128")

BITS: Mapping[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f64": 64,
    "f32": 32, "s32": 32,
}  # fmt: skip
"""Width of an element, of a type as PTX abbreviates it."""
CUTE_TYPES: Mapping[str, str] = {
    "f16": "half_t", "bf16": "bfloat16_t", "tf32": "tfloat32_t", "e4m3": "float_e4m3_t", "e5m2": "float_e5m2_t",
    "s8": "int8_t", "u8": "uint8_t",
}  # fmt: skip


@dataclass(frozen=True)
class MatrixForm:
    """An mma.sync: m, n, k and types of A, B, C (as PTX has them), the kernel around it, the operations that are it."""

    form: Form
    shape: tuple[int, int, int]
    types: tuple[str, str, str]
    operations: tuple[str, ...]


def matrix_forms() -> list[MatrixForm]:
    """Every distinct mma.sync of sm_70 to sm_90, in the order of the table."""
    found: dict[str, list[MmaAtom]] = {}
    for atom in MMA_ATOMS.values():
        if atom.family in WARP_FAMILIES:
            found.setdefault(atom.ptx.split(" x ")[-1], []).append(atom)
    forms = []
    for number, (ptx, atoms) in enumerate(found.items()):
        parts = re.match(r"mma\.sync\.aligned\.m(\d+)n(\d+)k(\d+)\.\w+\.\w+\.(\w+)\.(\w+)\.(\w+)\.(\w+)", ptx)
        assert parts is not None
        m, n, k = (int(parts[i]) for i in (1, 2, 3))
        d, a, b, _ = (parts[i] for i in (4, 5, 6, 7))
        plain = next((x for x in atoms if not x.ptx[0].isdigit()), None)
        words = 8 if a == "f64" else 4
        if plain is not None:
            counts = (plain.registers["A"][0], plain.registers["B"][0], plain.registers["C"][0])
        else:
            counts = (m * k // 32, n * k // 32, m * n // 32)
        forms.append(
            MatrixForm(
                Form(f"m{number}", ptx, counts, words, d == "f32"), (m, n, k), (a, b, d), tuple(x.name for x in atoms)
            )
        )
    return forms


@dataclass(frozen=True)
class Operand:
    """A wgmma in a module: its kernel, types of A, B, D, extents, majors (`K` in registers), and the operation."""

    form: GroupForm
    operation: str
    types: tuple[str, str, str]
    shape: tuple[int, int, int]
    majors: tuple[str, str]
    sparse: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


def group_forms(sparse: bool = False) -> Iterator[Operand]:
    """Every wgmma: N, types, A from shared memory or registers, each major mode; sparse ones of one N."""
    families = SPARSE_FAMILIES if sparse else GROUP_FAMILIES
    number = 0
    for atom in MMA_ATOMS.values():
        m, n, k = (int(x) for x in atom.shape_mnk)
        if atom.family not in families or (sparse and n != SPARSE_N):
            continue
        d, a, b = re.sub(r"\.satfinite$", "", atom.ptx).split(".")[-3:]
        registers = atom.registers["A"][0] == 4
        majors = [("K", "K")]
        if BITS[a] == 16:
            majors = [(x, y) for x in ("K", "MN") for y in ("K", "MN") if not (registers and x == "MN")]
        for x, y in majors:
            tail = "" if d == "s32" else ", 1, 1"
            if BITS[a] == 16:
                tail += ("" if registers else f", {int(x == 'MN')}") + f", {int(y == 'MN')}"
            entry = f"{'s' if sparse else 'g'}{number}"
            number += 1
            form = GroupForm(entry, atom.ptx, atom.registers["C"][0], d == "f32", registers, tail, sparse)
            yield Operand(form, atom.op, (a, b, d), (m, n, k), (x, y), sparse)


@dataclass(frozen=True)
class MoverForm:
    """An instruction that moves bits: text with %s, %d, %at; registers read and written; bytes of the image."""

    entry: str
    instruction: str
    sources: int
    results: int
    image: int
    operation: str = ""
    addressed: bool = False


def mover_forms() -> list[MoverForm]:
    """ldmatrix, stmatrix, movmatrix of sm_75 and sm_90, and the modes of shfl.sync."""
    found = []
    for name, traits in COPY_ATOMS.items():
        if traits.arch not in ("sm75", "sm90") or not re.match(r"(ld|st|mov)matrix", traits.ptx):
            continue
        load, store = traits.ptx.startswith("ld"), traits.ptx.startswith("st")
        count = traits.registers["S" if store else "D"][0]
        listed = ", ".join(f"%{'s' if store else 'd'}{n + store}" for n in range(count))
        if load:
            text = f"{traits.ptx} {{{listed}}}, [%at];"
        elif store:
            text = f"{traits.ptx} [%at], {{{listed}}};"
        else:
            text = f"{traits.ptx} %d0, %s1;"
        sources, results = (1 + count, 0) if store else (1, count) if load else (2, 1)
        found.append(MoverForm(f"v{len(found)}", text, sources, results, 512, name, load or store))
    for mode, control, lane in (("idx", 31, "%s2"), ("bfly", 31, "5"), ("up", 0, "3"), ("down", 31, "3")):
        text = f"shfl.sync.{mode}.b32 %d0, %s1, {lane}, {control}, 0xffffffff;"
        found.append(MoverForm(f"v{len(found)}", text, 3, 1, 512, f"shfl {mode}"))
    for mode, control in (("idx", 0x181F), ("up", 0x1800), ("down", 0x181F), ("bfly", 0x101F)):
        text = f"shfl.sync.{mode}.b32 %d0|%q0, %s1, %s2, {control}, 0xffffffff; selp.u32 %d1, 1, 0, %q0;"
        found.append(MoverForm(f"v{len(found)}", text, 3, 2, 512, f"shfl {mode} segments"))
    found.append(MoverForm(f"v{len(found)}", "prmt.b32 %d0, %s1, %s2, %s3;", 4, 1, 512, "prmt"))
    return found
