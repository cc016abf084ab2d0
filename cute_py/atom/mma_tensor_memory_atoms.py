"""MMA atoms with accumulators in tensor memory (SM100, SM103): tcgen05.mma for one or two CTAs; dense, sparse, scaled.

    SM100_MMA_F16BF16_SS<half_t,half_t,float,128,256,K,K>       A and B by descriptors
    SM100_MMA_F16BF16_2x1SM_TS<...>                             two CTAs, A in tensor memory
    SM100_MMA_MXF8F6F4_SS<..., float_ue8m0_t, 128, 64, K, K>    a scale factor for each 32 elements of K

One thread issues the instruction for its CTA, so an operand's thread-value layout covers the whole operand,
(1,(M,K)):(0,(1,M)). With two CTAs, each holds half of M and half of N: (2,(M/2,K)):(M/2,(1,M)).

The name of an operation encodes all its properties: the kind, 2x1SM, SS or TS (the memory of A), and SCALED, SPARSE or
INTERLEAVED. The checks are C++'s static_asserts; their bounds and messages differ between operations. The 32-bit
instruction descriptor contains types, sizes, majors and signs:

    bits    without block scaling       with block scaling
    0-2     sparse id, sparse flag      the same
    3       saturate                    -
    4-5     format of C                 scale factor of B
    7-9     format of A                 10-12 of B      13, 14 negate A, B      15, 16 major of A, B (1 is MN)
    17-22   N / 8
    23      -                           1 for ue8m0 scale factors
    24-28   M / 16

Source: cute/arch/mma_sm100_umma.hpp (checks), cute/atom/mma_traits_sm100.hpp (rows, checks),
cute/arch/mma_sm100_desc.hpp (instruction descriptor); PTX ISA, tcgen05 instruction descriptor.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cute_py.atom.element_types import COMPLEX_TF32, ElementType, SparseElement, cpp_type_text, element_type
from cute_py.atom.mma_atom import FragmentType, MmaAtom, MmaOperation, make_mma_atom, static_layout
from cute_py.atom.template_name import Arguments, Parameter, static_assert
from cute_py.dtypes import DType, as_dtype
from cute_py.layout import Layout


@dataclass(frozen=True, slots=True)
class Form:
    """The properties that an operation's name encodes."""

    kind: str
    """TF32, F16BF16, S8, F8F6F4, MXF8F6F4, MXF4, MXF4NVF4 or MXF4_ULTRA."""
    ctas: int
    from_tmem: bool
    scaled: bool = False
    """Multiplies the accumulator by a power of two."""
    sparse: bool = False
    interleaved: bool = False
    """Complex numbers, real and imaginary part next to each other."""

    @property
    def block_scaled(self) -> bool:
        return self.kind.startswith("MX")

    @property
    def name(self) -> str:
        pair = "2x1SM_" if self.ctas == 2 else ""
        if self.kind == "MXF4_ULTRA":
            return f"SM103_MXF4_ULTRA_{pair}SS_VS"
        tail = "_SCALED" if self.scaled else "_SPARSE" if self.sparse else ""
        tail = "_INTERLEAVED_CF32CTF32CTF32CF32_TN" if self.interleaved else tail
        return f"SM100_MMA_{self.kind}_{pair}{'TS' if self.from_tmem else 'SS'}{tail}"


def _forms() -> Iterator[Form]:
    for ctas in (1, 2):
        for kind in ("TF32", "F16BF16"):
            for from_tmem in (False, True):
                yield Form(kind, ctas, from_tmem)
                yield Form(kind, ctas, from_tmem, scaled=True)
            yield Form(kind, ctas, False, sparse=True)
        yield Form("TF32", ctas, True, interleaved=True)
        for kind in ("S8", "F8F6F4"):
            for from_tmem in (False, True):
                yield Form(kind, ctas, from_tmem)
            yield Form(kind, ctas, False, sparse=True)
        yield Form("MXF8F6F4", ctas, False)
        yield Form("MXF8F6F4", ctas, False, sparse=True)
        yield Form("MXF4", ctas, False)
        yield Form("MXF4NVF4", ctas, False, sparse=True)
        yield Form("MXF4_ULTRA", ctas, False)


def whole_layout(ctas: int, extent: int, columns: int) -> Layout:
    """Return the layout (CTA, value) -> index in the operand: one CTA has all rows; each of two CTAs has half.

    >>> print(whole_layout(1, 128, 16), whole_layout(2, 128, 16))
    (_1,(_128,_16)):(_0,(_1,_128)) (_2,(_64,_16)):(_64,(_1,_128))
    """
    half = extent // ctas
    return static_layout((ctas, (half, columns)), (0 if ctas == 1 else half, (1, extent)))


WITHOUT_TRAITS: Final = ("SM100_MMA_TF32_SS_SCALED", "SM100_MMA_TF32_2x1SM_SS_SCALED")
"""Operations without MMA_Traits in CuTe: cute_py refuses their names, as C++ does."""

_N_TEXT: Final = {
    8: "a multiple of 8 between 8 and 256.",
    16: "a multiple of 16 between 16 and 256.",
    32: "a multiple of 32 between 32 and 256.",
}
_CONTINUED: Final = " " * 17
"""C++'s texts that span two source lines keep the blanks between them."""


def _multiple(n: int, step: int) -> bool:
    return n % step == 0 and step <= n <= 256


def _check_m(form: Form, m: int) -> tuple[bool, str]:
    """Return whether M is allowed, and the text of C++'s static_assert."""
    name = form.name
    if form.kind == "MXF4_ULTRA":
        text = "MMA M-mode size should be 128 for 1 CTA cluster MMA."
        return (m == 128, text) if form.ctas == 1 else (m in (128, 256), text.replace("128 for 1", "128 or 256 for 2"))
    if form.kind == "MXF4NVF4" and form.ctas == 2:
        return True, ""
    label = _label(form)
    if form.ctas == 1:
        allowed: tuple[int, ...] = (128,) if form.block_scaled else (64, 128)
        said = "64 or 128" if allowed == (64, 128) or (form.kind == "MXF8F6F4" and not form.sparse) else "128"
        return m in allowed, f"{label} M-mode size should be {said} for 1 CTA cluster MMA."
    allowed = (256,) if form.kind == "MXF8F6F4" else (128, 256)
    if form.kind == "F8F6F4" and not form.sparse:  # as CuTe writes it
        return m in allowed, f"{name} M-mode size should be 64 or 128 for 1 CTA cluster MMA."
    said = "256" if form.kind == "MXF8F6F4" and form.sparse else "128 or 256"
    return m in allowed, f"{label} M-mode size should be {said} for 2 CTA cluster MMA."


def _label(form: Form) -> str:
    """Return the name that C++'s static_asserts use for the operation, which is sometimes shorter."""
    plain = form.ctas == 1 and not (form.scaled or form.sparse or form.interleaved)
    if form.kind in ("TF32", "F16BF16") and plain:
        return f"SM100_MMA_{form.kind}"
    if form.kind == "S8" and form.ctas == 2 and form.sparse:
        return "SM100_MMA_S8"
    return form.name


def _check_n(form: Form, m: int, n: int, b_major: str) -> tuple[bool, str]:
    """Return whether N is allowed, and the text of C++'s static_assert."""
    label = _label(form)
    if form.kind == "MXF4_ULTRA":
        return _multiple(n, 16), f"MMA N-mode size should be {_N_TEXT[16]}"
    if form.kind == "F8F6F4" and not form.from_tmem and not form.sparse:
        step = 8 * form.ctas
        text = (
            f"{label} N-mode size should be {_N_TEXT[step][:-1]} when B is K major. {_CONTINUED}"
            f"{label} N-mode size should be {_N_TEXT[2 * step][:-1]} when B is MN major."
        )
        return _multiple(n, step if b_major == "K" else 2 * step), text
    if form.kind == "S8" and form.ctas == 1:
        text = f"{label} N-mode size should be 8 or a multiple of 16 between 16 and 256."
        return n == 8 or _multiple(n, 16), text
    if form.ctas == 1:
        if form.from_tmem or (form.kind == "F8F6F4" and form.sparse):
            text = (
                f"{label} N-mode size should be {_N_TEXT[8][:-1]} for M=64,{_CONTINUED}or {_N_TEXT[16][:-1]} for M=128."
            )
            return (m == 64 and _multiple(n, 8)) or (m == 128 and _multiple(n, 16)), text
        return _multiple(n, 8), f"{label} N-mode size should be {_N_TEXT[8]}"
    step = 32 if form.from_tmem or form.kind in ("S8", "F8F6F4") else 16
    return _multiple(n, step), f"{label} N-mode size should be {_N_TEXT[step]}"


def _checks(form: Form, values: Arguments) -> Iterator[tuple[bool, str]]:
    """Yield (whether it holds, its text) for every static_assert of the operation and its traits."""
    a, b, c = _types(form, values)
    m, n = values["M"], values["N"]
    name = form.name
    if name in WITHOUT_TRAITS:
        yield _check_m(form, m)
        yield _check_n(form, m, n, values["b_major"])
        yield False, "MMA_Traits not implemented for this MMA_Operation."
    bits = {"TF32": 32, "F16BF16": 16, "S8": 8, "MXF4": 4, "MXF4NVF4": 4}.get(form.kind)
    if form.kind == "F16BF16" and form.scaled and a.kind == "complex" and a == b and c == as_dtype("float32"):
        pass
    elif form.interleaved:
        yield values["a_major"] == "K", f"{name} A from TMEM can't be transposed"
        yield values["b_major"] == "K", f"{name} B from SMEM requires non-transpose"
    elif bits is not None:
        yield a.bits == b.bits == bits, f"{name} supports {bits}bit types"
    elif form.kind != "MXF4_ULTRA":
        yield max(a.bits, b.bits) <= 8, f"{name} supports types with leq 8bit types"
    if form.kind == "S8" and not form.from_tmem and form.ctas == 1:
        yield c == as_dtype("int32"), f"{name} result type can only be int32_t."
    yield from _check_scaling(form, a, b, values)
    yield _check_m(form, m)
    yield _check_n(form, m, n, values["b_major"])
    if form.from_tmem:
        yield values["a_major"] == "K", f"{_label(form)} A from TMEM can't be transposed"
    yield from _check_vector(form, a, values)


def _check_scaling(form: Form, a: DType, b: DType, values: Arguments) -> Iterator[tuple[bool, str]]:
    """Yield the checks in the traits of a block-scaled operation: vector sizes, and the types that allow them."""
    if form.kind == "MXF4_ULTRA":
        yield values["a_major"] == values["b_major"] == "K", "This MMA does not support transpose"
    elif "VS" in values and (form.sparse or form.ctas == 1):
        long = 64 if form.sparse else 32
        yield (
            (values["VS"] == long and _takes_long_vectors(a, b, values)) or values["VS"] == long // 2,
            f"2x mode (VectorSize={long}) only supports a_type and b_type=float_e2m1_t or "
            "cutlass::type_erased_dynamic_float4_t and sf_type=ue8m0_t",
        )


def _check_vector(form: Form, a: DType, values: Arguments) -> Iterator[tuple[bool, str]]:
    """Yield the checks in the operation itself: the number of elements that share a scale factor."""
    if form.kind == "MXF4_ULTRA":
        yield (
            (values["VS"] == 32 and _takes_long_vectors(a, a, values)) or values["VS"] == 16,
            "Vector size can only be 4x mode (VS=16) or 2x mode (VS=32) for MMA. 2x mode only supports float_e2m1_t "
            "for a/b types and ue8m0_t for sf type",
        )
    elif "VS" in values and (not form.sparse or form.ctas == 2):
        long = 64 if form.sparse else 32
        yield values["VS"] in (long, long // 2), f"{form.name} Vector size can only be {long // 2} or {long}."


def _takes_long_vectors(a: DType, b: DType, values: Arguments) -> bool:
    return a == b == element_type("float_e2m1_t") and values["sf_type"] == element_type("float_ue8m0_t")


def _types(form: Form, values: Arguments) -> tuple[DType, DType, DType]:
    if form.interleaved:
        return COMPLEX_TF32, COMPLEX_TF32, as_dtype("float32")
    return values["a_type"], values["b_type"], values["c_type"]


def _depth(form: Form, a: DType) -> int:
    """Return the K extent of the instruction."""
    if form.kind in ("MXF4", "MXF4NVF4"):
        return 128 if form.sparse else 64
    if form.kind == "MXF4_ULTRA":
        return 96
    if form.kind in ("F8F6F4", "MXF8F6F4"):
        return 64 if form.sparse else 32
    return (512 if form.sparse else 256) // a.bits


_FORMATS: Final = {
    "float16": 0,
    "bfloat16": 1,
    "tfloat32": 2,
    "uint8": 0,
    "int8": 1,
    "float8_e4m3fn": 0,
    "float8_e5m2": 1,
    "float6_e2m3": 3,
    "float6_e3m2": 4,
    "float4_e2m1": 1,
    "float6_e2m3_unpacksmem": 3,
    "float6_e3m2_unpacksmem": 4,
    "float4_e2m1_unpacksmem": 5,
}
"""Format of A and B. float4_e2m1 is 1 if two of them share a byte, and 5 if each has its own."""
_SUMS: Final = {"float16": 0, "float32": 1, "int32": 2}
"""Format of C."""


def instruction_descriptor(
    a: DType,
    b: DType,
    c: DType | None,
    m: int,
    n: int,
    values: Arguments,
    sparse: bool = False,
    scale: DType | None = None,
) -> int:
    """Return the 32-bit instruction descriptor of tcgen05.mma.

    Args:
        a, b: element types; for complex numbers, the type of their parts. c: type of the sum; None with block scaling.
        m, n: extents.
        values: `a_major`, `b_major` ('K' or 'MN'), and optionally `a_neg`, `b_neg`, `c_sat`.
        scale: element type of the scale factors.
    Raises:
        StaticAssertError: a type has no format.

    >>> from cute_py.dtypes import as_dtype
    >>> half = as_dtype("half")
    >>> hex(instruction_descriptor(half, half, as_dtype("float"), 64, 8, {"a_major": "K", "b_major": "MN"}))
    '0x4030010'
    """
    bits = int(sparse) << 2 | int(values.get("c_sat") == "True") << 3
    bits |= _format(a) << 7 | _format(b) << 10
    bits |= int(values.get("a_neg") == "Neg") << 13 | int(values.get("b_neg") == "Neg") << 14
    bits |= int(values["a_major"] == "MN") << 15 | int(values["b_major"] == "MN") << 16
    bits |= n // 8 << 17 | m // 16 << 24
    if c is not None:
        static_assert(c.name in _SUMS, "Unknown type for CFormat", lambda: {"type": cpp_type_text(c)})
        bits |= _SUMS[c.name] << 4
    if scale is not None:
        text = cpp_type_text(scale)
        static_assert(text in ("float8_ue8m0", "float8_ue4m3"), "Unknown type for ScaleFormat", lambda: {"type": text})
        bits |= int(text == "float8_ue8m0") << 23
    return bits


def _format(element: ElementType) -> int:
    text = cpp_type_text(element).removeprefix("complex_")
    static_assert(text in _FORMATS, "Unknown type for UMMAFormat", lambda: {"type": text})
    return _FORMATS[text]


def _umma(operation: MmaOperation, values: Arguments) -> MmaAtom:
    form: Form = operation.details[0]
    a, b, c = _types(form, values)
    for holds, condition in _checks(form, values):
        static_assert(holds, condition, lambda: {"operation": operation.name, **_shown(values)})
    m, n, ctas = values["M"], values["N"], form.ctas
    k = _depth(form, a)
    types: dict[str, ElementType] = {"A": a, "B": b, "C": c, "D": c}
    fragments = _fragments(form, values, a, c)
    registers = {
        "A": (1, "uint32" if form.from_tmem else "uint64"),
        "B": (1, "uint64"),
        "C": (1, "uint32"),
        "D": (0, "void"),
    }
    if form.sparse:
        narrow = form.kind == "MXF4NVF4"
        stored = as_dtype("uint8")
        types["A"] = SparseElement(4, stored) if narrow else SparseElement(2, a)
        types["E"] = SparseElement(16 if narrow else 4 if form.kind == "TF32" else 8, stored)
    vector = None
    if form.block_scaled:
        vector = values.get("VS") or (64 if form.sparse else 32)
        types |= {"SFA": values["sf_type"], "SFB": values["sf_type"]}
        if form.kind != "MXF8F6F4" or ctas == 1:
            registers |= dict.fromkeys(("SFA", "SFB"), (1, "uint32"))
    layouts = {"A": whole_layout(ctas, m, k), "B": whole_layout(ctas, n, k), "C": whole_layout(ctas, m, n)}
    held = (static_layout(ctas, 0 if ctas == 1 else 1), layouts, types, registers, _ptx(form, vector))
    idesc = instruction_descriptor(
        a, b, None if form.block_scaled else c, m, n, _signed(form, values), form.sparse, values.get("sf_type")
    )
    made = make_mma_atom(operation, values, (m, n, k), *held, "mma_traits_sm100", fragments=fragments)
    return replace(made, op=operation.name, sf_vec_size=vector, idesc=idesc)


def _signed(form: Form, values: Arguments) -> Arguments:
    """Return the template arguments that CuTe makes the descriptor from: SM100_MMA_S8_TS ignores its signs."""
    if form.kind == "S8" and form.from_tmem and form.ctas == 1:
        return {**values, "a_neg": "One", "b_neg": "One"}
    return values


def _shown(values: Arguments) -> dict[str, object]:
    return {k: cpp_type_text(v) if isinstance(v, DType) else v for k, v in values.items()}


def _fragments(form: Form, values: Arguments, a: DType, c: DType) -> dict[str, FragmentType]:
    ctas = form.ctas
    word = as_dtype("uint32")
    alone = ctas == 1 and form.from_tmem
    found = {
        "B": FragmentType("smem_desc", "smem_desc", (values["b_major"],)),
        "C": FragmentType(
            "tmem", "tmem_frg", (c, as_dtype("int32"), 1, "NonInterleaved") if alone else (c, word, ctas, "Interleaved")
        ),
    }
    if form.from_tmem:
        mode = "NonInterleaved" if ctas == 1 else "Duplicated"
        found["A"] = FragmentType("tmem", "tmem_frg", (a, a, ctas, mode))
    else:
        found["A"] = FragmentType("smem_desc", f"{'sparse_' if form.sparse else ''}smem_desc", (values["a_major"],))
    if form.sparse:
        stored = as_dtype("uint8") if form.kind in ("F8F6F4", "MXF8F6F4") else a
        found["E"] = FragmentType("tmem", "tmem_e_frg", (stored,))
    if form.block_scaled:
        vector = values.get("VS") or (64 if form.sparse else 32)
        mode = f"ScaleFactorDuplicated{'2by2' if ctas == 2 and values['M'] == 128 else '4by1'}"
        for operand, is_a in (("SFA", "true"), ("SFB", "false")):
            found[operand] = FragmentType("tmem", "tmem_sf_frg", (values["sf_type"], vector, ctas, is_a, mode))
    return found


def _ptx(form: Form, vector: int | None) -> str:
    kind = {"TF32": "tf32", "F16BF16": "f16", "S8": "i8", "F8F6F4": "f8f6f4", "MXF8F6F4": "mxf8f6f4"}.get(form.kind)
    block = ".block_scale" if form.block_scaled else ""
    if kind is None:
        short = vector == (32 if form.sparse else 16)
        kind = "mxf4nvf4" if short or form.kind == "MXF4_ULTRA" else "mxf4"
        block += ".block16" if short else ".block32"
    return f"tcgen05.mma{'.sp' if form.sparse else ''}.cta_group::{form.ctas}.kind::{kind}{block}"


def _parameters(form: Form) -> tuple[Parameter, ...]:
    def scale(name: str) -> Parameter:
        return Parameter(name, "ScaleIn", "One", "UMMA")

    sizes = (Parameter("M", "int"), Parameter("N", "int"))
    majors = (Parameter("a_major", "Major", None, "UMMA"), Parameter("b_major", "Major", None, "UMMA"))
    saturate = Parameter("c_sat", "Saturate", "False", "UMMA")
    abc = () if form.interleaved else tuple(Parameter(x, "type") for x in ("a_type", "b_type", "c_type"))
    factor = (Parameter("sf_type", "type"),) if form.block_scaled else ()
    vector = (Parameter("VS", "int"),) if form.kind.startswith("MXF4") else ()
    power = (Parameter("ScaleC", "int"),) if form.scaled else ()
    signs: tuple[Parameter, ...] = (scale("a_neg"), scale("b_neg"))
    if form.kind == "S8" and not form.from_tmem:
        signs = ()
    tail = (saturate,) if form.from_tmem or form.kind == "S8" else ()
    return (*abc, *factor, *sizes, *vector, *majors, *power, *signs, *tail)


def _typical(form: Form) -> tuple[str, ...]:
    small = "float_e4m3_t" if form.kind.endswith("F8F6F4") else "float_e2m1_t"
    element = {"TF32": "tfloat32_t", "F16BF16": "half_t", "S8": "int8_t"}.get(form.kind, small)
    abc = () if form.interleaved else (element, element, "int32_t" if form.kind == "S8" else "float")
    factor = ("float_ue8m0_t",) if form.block_scaled else ()
    vector = ("64" if form.sparse else "32",) if form.kind.startswith("MXF4") else ()
    power = ("0",) if form.scaled else ()
    return (*abc, *factor, str(128 * form.ctas), "128", *vector, "K", "K", *power)


@functools.cache
def tensor_memory_operations() -> tuple[MmaOperation, ...]:
    """Every tcgen05.mma operation of CuTe."""
    found = []
    for form in _forms():
        ultra = form.kind == "MXF4_ULTRA"
        arch = "sm103" if ultra else "sm100"
        rows = (_parameters(form), _typical(form), (form,), "SM103::" if ultra else "")
        found.append(MmaOperation(form.name, arch, f"{arch}_umma", _umma, *rows))
    return tuple(found)
