"""MMA atoms with all operands in registers: SM61, SM70, SM75, SM80, SM89, SM90 (f64), SM120, and plain FMA.

Since SM75, the registers of a warp hold 8 rows by 4 columns of 32-bit pieces. A piece consists of V = 32 / bits
elements along K, or of one element of 32 bits or more. The layouts of A (M,K), B (N,K) and C (M,N, with N instead of K)
follow from this:

    thread (4,8)   4 pieces along K, 8 rows
    value (V,2,R)  V elements of a piece, 2 halves of 16 rows, R pieces along K, 4 pieces apart

`warp_fragment` implements this rule. Like CuTe, it omits modes of size 1. The quad pairs of SM70 follow an older rule,
with four layouts of their own.
Source: cute/atom/mma_traits_sm{61,70,75,80,89,90,120,120_sparse}.hpp, mma_traits_sm100.hpp (FMA).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from cute_py.atom.element_types import GAUSS_COMPLEX, ElementType, SparseElement, cpp_type_text, element_type
from cute_py.atom.mma_atom import FragmentType, MmaAtom, MmaOperation, make_mma_atom, static_layout
from cute_py.atom.template_name import Arguments, Parameter, static_assert
from cute_py.dtypes import DType, as_dtype
from cute_py.layout import Layout, size

_COMPLEX: Final = {"C64": as_dtype("complex128"), "GC64": GAUSS_COMPLEX}

_WARP: Final = static_layout(32, 1)
_THREAD: Final = static_layout(1, 0)
_QUAD_PAIR: Final = static_layout((4, 2), (1, 16))


@functools.cache
def short_type(name: str) -> DType:
    """Return the element type for an abbreviation in an operation's name.

    >>> short_type("BF16")
    DType('bfloat16')
    """
    return _COMPLEX.get(name) or as_dtype(name)


def ptx_type(name: str) -> str:
    """Return PTX's type name for an abbreviation in an operation's name; for a complex type, the type of its parts.

    >>> ptx_type("BF16"), ptx_type("U1"), ptx_type("C64")
    ('bf16', 'b1', 'f64')
    """
    return {"U1": "b1", "C64": "f64", "GC64": "f64"}.get(name, name.lower())


@functools.lru_cache(maxsize=256)
def warp_fragment(rows: int, columns: int, piece: int, wrapped: bool = False) -> Layout:
    """Return the layout (thread, value) -> row + rows * column for a warp's fragment.

    Args:
        rows: 8 or 16; columns: a multiple of 4 pieces, in elements.
        piece: the number of elements in one 32-bit piece.
        wrapped: keep the brackets around a single value mode, as CuTe does in a few atoms.

    >>> print(warp_fragment(16, 16, 2), warp_fragment(8, 4, 1))
    ((_4,_8),(_2,_2,_2)):((_32,_1),(_16,_8,_128)) ((_4,_8),_1):((_8,_1),_0)
    """
    values = [(piece, rows), (rows // 8, 8), (columns // (4 * piece), 4 * piece * rows)]
    modes = [m for m in values if m[0] > 1] or [(1, 0)]
    if len(modes) == 1 and not wrapped:
        return static_layout(((4, 8), modes[0][0]), ((piece * rows, 1), modes[0][1]))
    shape, stride = zip(*modes, strict=True)
    return static_layout(((4, 8), shape), ((piece * rows, 1), stride))


def registers_of(layout: Layout, element: DType) -> tuple[int, str]:
    """Return (number, type) of one thread's registers: 32-bit words, except for float32, float64 and complex."""
    values = int(size(layout[1]))
    if element.name in ("float32", "float64", "complex128", "gauss_complex128"):
        return values, element.name
    return values * element.bits // 32, "uint32"


def _plain(operation: MmaOperation, values: Arguments) -> MmaAtom:
    """Make the atom of a warp's instruction without template parameters (SM75 to SM90)."""
    m, n, k, letters, instruction = operation.details
    d, a, b, c = (short_type(x) for x in letters)
    wrapped = a.bits == 4
    layouts = {
        "A": warp_fragment(m, k, max(1, 32 // a.bits), wrapped),
        "B": warp_fragment(n, k, max(1, 32 // b.bits), wrapped),
        "C": warp_fragment(m, n, 2),
    }
    types = {"A": a, "B": b, "C": c, "D": d}
    registers = {x: registers_of(layouts["C" if x == "D" else x], types[x]) for x in "ABCD"}
    held, header = (_WARP, layouts, types, registers), f"mma_traits_{operation.arch}"
    return make_mma_atom(operation, values, (m, n, k), *held, instruction, header)


def _row(arch: str, m: int, n: int, k: int, letters: tuple[str, ...], suffix: str = "", op: str = "") -> MmaOperation:
    name = f"{op or arch.upper()}_{m}x{n}x{k}_{''.join(letters)}_TN{suffix}"
    d, a, b, c = map(ptx_type, letters)
    tail = {"_SATURATE": ".satfinite", "_ANDPOPC": ".and.popc", "_XORPOPC": ".xor.popc"}.get(suffix, "")
    ptx = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{d}.{a}.{b}.{c}{tail}"
    if letters[0] == "C64":
        ptx = f"4 x {ptx}"
    if letters[0] == "GC64":
        ptx = f"3 x {ptx}"
    aliases = (name.replace("SM90_", "SM90::MMA_"),) if arch == "sm90" else ()
    return MmaOperation(name, arch, arch, _plain, details=(m, n, k, letters, ptx), aliases=aliases)


def _same(a: str, c: str) -> tuple[str, str, str, str]:
    return (c, a, a, c)


def _plain_rows() -> Iterator[MmaOperation]:  # noqa: C901 - each family of operations is one case
    yield _row("sm75", 16, 8, 8, _same("F16", "F32"))
    yield _row("sm75", 16, 8, 8, _same("F16", "F16"))
    yield _row("sm75", 8, 8, 16, _same("S8", "S32"))
    for a, c in (("F16", "F16"), ("F16", "F32"), ("BF16", "F32")):
        for k in (8, 16):
            yield _row("sm80", 16, 8, k, _same(a, c))
    for k in (4, 8):
        yield _row("sm80", 16, 8, k, _same("TF32", "F32"))
    yield _row("sm80", 8, 8, 4, _same("F64", "F64"))
    yield _row("sm80", 8, 8, 4, _same("C64", "C64"))
    yield _row("sm80", 8, 8, 4, _same("C64", "GC64"))
    for bits, k in ((8, 16), (4, 32)):
        for a in (f"S{bits}", f"U{bits}"):
            for b in (f"S{bits}", f"U{bits}"):
                for m, n, depth in ((8, 8, k), (16, 8, k), (16, 8, 2 * k)):
                    for suffix in ("", "_SATURATE"):
                        yield _row("sm80", m, n, depth, ("S32", a, b, "S32"), suffix)
    for m, n, k in ((8, 8, 128), (16, 8, 128), (16, 8, 256)):
        for suffix in ("_XORPOPC", "_ANDPOPC"):
            yield _row("sm80", m, n, k, _same("U1", "S32"), suffix)
    for c in ("F32", "F16"):
        for a in ("E4M3", "E5M2"):
            for b in ("E4M3", "E5M2"):
                yield _row("sm89", 16, 8, 32, (c, a, b, c))
    for letters in (_same("F64", "F64"), _same("C64", "C64")):
        for k in (4, 8, 16):
            yield _row("sm90", 16, 8, k, letters)


_SM70: Final = {
    "row": static_layout((8, 4), (1, 8)),
    "col": static_layout(((4, 2), 4), ((8, 4), 1)),
    "F16": static_layout((8, 8), (1, 8)),
    "F32": static_layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32))),
}
"""SM70's quad pair: A and B by their order in memory, C by its type."""


def _quad_pair(operation: MmaOperation, values: Arguments) -> MmaAtom:
    c, order = operation.details
    a_order, b_order = ("row" if order[0] == "T" else "col"), ("row" if order[1] == "N" else "col")
    half, wide = as_dtype("float16"), short_type(c)
    count = (4, "uint32") if c == "F16" else (8, "float32")
    b_ptx = {"row": "col", "col": "row"}[b_order]
    layouts = {"A": _SM70[a_order], "B": _SM70[b_order], "C": _SM70[c]}
    types = {"A": half, "B": half, "C": wide, "D": wide}
    registers = {"A": (2, "uint32"), "B": (2, "uint32"), "C": count, "D": count}
    ptx = f"mma.sync.aligned.m8n8k4.{a_order}.{b_ptx}.{c.lower()}.f16.f16.{c.lower()}"
    return make_mma_atom(operation, values, (8, 8, 4), _QUAD_PAIR, layouts, types, registers, ptx, "mma_traits_sm70")


def _one_thread(operation: MmaOperation, values: Arguments) -> MmaAtom:
    """Make the atom of an FMA or dot product of one thread, which holds A (M,K), B (N,K) and C (M,N) completely."""
    m, n, k, types, registers, ptx, header = operation.details
    if operation.parameters:
        types = tuple(values[x] for x in "DABC")
        registers = tuple((1, cpp_type_text(t)) for t in types)
    extents = {"A": m * k, "B": n * k, "C": m * n}
    layouts = {x: static_layout((1, e), (0, 1 if e > 1 else 0)) for x, e in extents.items()}
    held, counts = (dict(zip("DABC", each, strict=True)) for each in (types, registers))
    return make_mma_atom(operation, values, (m, n, k), _THREAD, layouts, held, counts, ptx, header)


def _thread_rows() -> Iterator[MmaOperation]:
    f32, s32 = as_dtype("float32"), as_dtype("int32")
    fma = tuple(Parameter(x, "type", default) for x, default in zip("DABC", (None, "D", "A", "D"), strict=True))
    yield MmaOperation(
        "UniversalFMA", "any", "universal", _one_thread, fma, ("float",), (1, 1, 1, (), (), "fma", "mma_traits")
    )
    for name, k, element in (("SM61_DP4A", 4, "int8"), ("SM61_DP2A", 2, "int16")):
        a = as_dtype(element)
        words = ((1, "int32"), (1, "uint32"), (1, "uint32"), (1, "int32"))
        details = (1, 1, k, (s32, a, a, s32), words, f"{name[5:].lower()}.s32.s32", "mma_traits_sm61")
        yield MmaOperation(name, "sm61", "sm61", _one_thread, details=details)
    for m, n in ((2, 1), (1, 2)):
        counts = {"D": 2, "A": m, "B": n, "C": 2}
        registers = tuple((1, "float2" if counts[x] == 2 else "float32") for x in "DABC")
        packed = (m, n, 1, (f32,) * 4, registers, "fma.rn.f32x2", "mma_traits_sm100")
        yield MmaOperation(f"SM100_{m}x{n}x1_F32F32F32F32", "sm100", "sm100_fma", _one_thread, details=packed)


_NARROW: Final = ("float_e2m1_t", "float_e2m3_t", "float_e3m2_t", "float_e4m3_t", "float_e5m2_t")
"""A and B of SM120's kind::f8f6f4 and kind::mxf8f6f4."""


def _sm120(operation: MmaOperation, values: Arguments) -> MmaAtom:
    """Make the atom of an SM120 instruction. Sparse forms also have metadata, block-scaled forms scale factors.

    A and B are in containers: of 4 bits for packed e2m1, and of 8 bits for all other types.
    """
    k, sparse, scaled = operation.details
    a_type, c_type = values["a_type"], values["c_type"]
    wide = k == (128 if sparse else 64)  # only e2m1 is packed, two elements in a byte
    _check_sm120(operation, values, wide)
    container, stored = as_dtype("uint4" if wide else "uint8"), as_dtype("uint8")
    layouts = {
        "A": warp_fragment(16, k, k // 8 if sparse else 32 // container.bits),
        "B": warp_fragment(8, k, 32 // container.bits),
        "C": warp_fragment(16, 8, 2),
    }
    types: dict[str, ElementType] = {"A": container, "B": container, "C": c_type, "D": c_type}
    fragments: dict[str, FragmentType] = {}
    if sparse:
        ratio, metadata = (4, 16) if wide else (2, 8)
        types["A"] = SparseElement(ratio, stored if wide else a_type)
        types["E"] = SparseElement(metadata, stored)
        fragments = {
            "A": FragmentType("value", "sparse_elem", (ratio, stored)),
            "E": FragmentType("value", "sparse_elem", (metadata, stored)),
        }
        half, deep = ((k // 2,), (16,)) if wide else (k // 2, 16)
        layouts["E"] = static_layout(((2, 2, 8), half), ((8, 8 * k, 1), deep))
    registers = {"A": (4, "uint32"), "B": registers_of(layouts["B"], container)}
    registers |= dict.fromkeys("CD", (4, "float32") if c_type.bits == 32 else (2, "uint32"))
    if sparse:
        registers["E"] = (1, "uint32")
    vector = values.get("VS")
    if scaled:
        types["SF"] = values["sf_type"]
        layouts["SFA"] = static_layout(((2, 2, 8), k), ((8, 0, 1), 16))
        layouts["SFB"] = static_layout(((4, 8), k), ((0, 1), 8))
        factors = 8 if not wide else 16 if values["VS"] * 2 == k else 32
        registers |= dict.fromkeys(("SFA", "SFB"), (1, f"uint{factors}"))
    ptx, header = _sm120_ptx(operation, values, wide), f"mma_traits_sm120{'_sparse' if sparse else ''}"
    held = (_WARP, layouts, types, registers, ptx, header)
    return make_mma_atom(operation, values, (16, 8, k), *held, fragments=fragments, sf_vec_size=vector)


def _check_sm120(operation: MmaOperation, values: Arguments, wide: bool) -> None:
    """Refuse types without a C++ specialisation of the operation."""
    narrow = (element_type(_NARROW[0]),) if wide else tuple(element_type(t) for t in _NARROW)
    sums = (as_dtype("float32"),) if "sf_type" in values else (as_dtype("float32"), as_dtype("float16"))
    factors = ("float8_ue8m0", "float8_ue4m3") if wide else ("float8_ue8m0",)
    known = values["a_type"] in narrow and values["b_type"] in narrow and values["c_type"] in sums
    known = known and ("sf_type" not in values or cpp_type_text(values["sf_type"]) in factors)
    facts = {x: cpp_type_text(values[x]) for x in ("a_type", "b_type", "c_type", "sf_type") if x in values}
    static_assert(known, f"No MMA matches {operation.name} for given data types.", lambda: facts)


def _factors_of_a_row(factor: ElementType, wide: bool) -> int:
    """Return the number of scale factors per row of A, which C++ and ptxas derive from the type of the factors."""
    return 1 if not wide else 2 if cpp_type_text(factor) == "float8_ue8m0" else 4


def _sm120_ptx(operation: MmaOperation, values: Arguments, wide: bool) -> str:
    k, sparse, scaled = operation.details
    kind = ("mxf4nvf4" if wide else "mxf8f6f4") if scaled else "f8f6f4"
    metadata = ".sp::ordered_metadata" if sparse else ""
    block = f".block_scale.scale_vec::{_factors_of_a_row(values['sf_type'], wide)}X" if scaled else ""
    short = {t: cpp_type_text(t).split("_")[-1] for t in (values["a_type"], values["b_type"])}
    c = "f32" if values["c_type"].bits == 32 else "f16"
    factor = f".{cpp_type_text(values['sf_type']).split('_')[-1]}" if scaled else ""
    a, b = short[values["a_type"]], short[values["b_type"]]
    a, b = a.removesuffix("fn"), b.removesuffix("fn")
    return f"mma.sync.aligned.kind::{kind}{metadata}{block}.m16n8k{k}.row.col.{c}.{a}.{b}.{c}{factor}"


def _sm120_rows() -> Iterator[MmaOperation]:
    abc = tuple(Parameter(x, "type") for x in ("a_type", "b_type", "c_type"))
    scale = (Parameter("sf_type", "type"), Parameter("VS", "int"))
    e4m3, e2m1, factor = "float_e4m3_t", "float_e2m1_t", "float_ue8m0_t"
    dense = ("SM120_16x8x", "sm120", False)
    sparse = ("SM120_SPARSE_16x8x", "sm120_sparse", True)
    for (prefix, family, is_sparse), depths in ((dense, (32, 64)), (sparse, (64, 128))):
        space = "SM120::SPARSE::" if is_sparse else ""
        name, details = f"{prefix}{depths[0]}_TN", (depths[0], is_sparse, False)
        yield MmaOperation(name, "sm120", family, _sm120, abc, (e4m3, e4m3, "float"), details, space)
        space = f"SM120::BLOCKSCALED::{'SPARSE::' if is_sparse else ''}"
        for k, element in zip(depths, (e4m3, e2m1), strict=True):
            typical = (element, element, "float", factor, "64" if is_sparse and k == 64 else "32")
            name, details = f"{prefix}{k}_TN_VS", (k, is_sparse, True)
            yield MmaOperation(name, "sm120", family, _sm120, (*abc, *scale), typical, details, space)


@functools.cache
def register_operations() -> tuple[MmaOperation, ...]:
    """Every operation with all operands in registers."""
    sm70 = tuple(
        MmaOperation(f"SM70_8x8x4_{c}F16F16{c}_{order}", "sm70", "sm70", _quad_pair, details=(c, order))
        for c in ("F16", "F32")
        for order in ("TN", "NT", "NN", "TT")
    )
    return (*_thread_rows(), *sm70, *_plain_rows(), *_sm120_rows())
