"""Every copy atom of CuTe except the TMA atoms, by C++'s name.

copy_atom("SM75_U32x4_LDSM_N", "half_t")        one atom, for values of one type
copy_atom("UniversalCopy<uint128_t>", "float")
COPY_ATOMS["SM75_U32x4_LDSM_N"]                 the row, counted in bits

The layouts of a row count bits:

    UniversalCopy, cp.async     one thread, its bits in order
    ldmatrix (LDSM)             a thread of the source gives the address of a row of 16 bytes; the destination is the
    stmatrix (STSM)             fragment of a warp; stmatrix is ldmatrix with source and destination exchanged
    tensor memory load, store   the source is everything that the instruction reads, the same for every thread; the
                                destination has a shape of lanes and bits, repeated n times, that gives the instruction
                                its name

Fragments of 8x8 matrices of 16 bits: 4 threads along a row, 8 rows; transposed, a thread's two elements are a column
apart. Source: cute/atom/copy_traits.hpp, copy_traits_sm{50,75,80,90,100}.hpp, cute/arch/copy*.hpp.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from cute_py.atom.copy_atom import CopyAtom, CopyOperation, CopyTraits, in_values
from cute_py.atom.element_types import cpp_type_text, element_type
from cute_py.atom.mma_atom import static_layout
from cute_py.atom.template_name import (
    Arguments,
    OperationRows,
    Parameter,
    expect_target,
    split_template,
    static_assert,
    written,
)
from cute_py.dtypes import DType
from cute_py.errors import InvalidTypeError, InvalidValueError, given, nearest_names
from cute_py.layout import Layout

_WARP: Final = static_layout(32, 1)
_THREAD: Final = static_layout(1, 0)
_LANE: Final = 1 << 21
"""Distance in bits from one lane of tensor memory to the next: an address of 32-bit cells has the lane in bits 16 and
up."""


def _traits(
    operation: CopyOperation,
    values: Arguments,
    thr_id: Layout,
    layouts: tuple[Layout, Layout, Layout],
    registers: tuple[tuple[int, str], tuple[int, str]],
    ptx: str,
    header: str,
    val_id: Layout | None = None,
) -> CopyTraits:
    name, held = written(operation.name, operation.parameters, values), dict(zip("SD", registers, strict=True))
    head = (name, operation.name, operation.arch, operation.family, thr_id, *layouts)
    return CopyTraits(*head, held, ptx, f"cute/atom/{header}.hpp", val_id, values)


def _bytes(element: DType) -> int:
    return -(-element.bits // 8)


def _typed(operation: CopyOperation, values: Arguments) -> CopyTraits:
    """Make the traits of UniversalCopy or cp.async: one thread moves one value of type S to one of type D."""
    allowed, ptx, header = operation.details
    source, target = values["S"], values["D"]
    facts = {"operation": operation.name, "S": cpp_type_text(source), "D": cpp_type_text(target)}
    if allowed:
        condition = "cp.async requires sizeof(src_value_type) == sizeof(dst_value_type)"
        static_assert(_bytes(source) == _bytes(target), condition, lambda: facts)
        static_assert(_bytes(source) in allowed, "cp.async sizeof(TS) is not supported", lambda: facts)
    else:
        static_assert(source.bits >= 8, "sizeof_bits_v<S> >= 8", lambda: facts)
        static_assert(target.bits >= 8, "sizeof_bits_v<D> >= 8", lambda: facts)
    src, dst = (static_layout((1, t.bits), (0, 1)) for t in (source, target))
    registers = ((1, cpp_type_text(source)), (1, cpp_type_text(target)))
    found = _traits(operation, values, _THREAD, (src, dst, src), registers, ptx, header)
    if source != target:
        return found
    return replace(found, name=written(operation.name, operation.parameters[:1], values))


def _vectorizing(operation: CopyOperation, values: Arguments) -> CopyTraits:
    bits = values["MaxVecBits"]
    static_assert(
        bits in (8, 16, 32, 64, 128),
        "Expected MaxVecBits to be 8 or 16 or 32 or 64 or 128 for alignment and performance.",
        lambda: {"MaxVecBits": bits},
    )
    one = static_layout((1, 1), (0, 0))
    word = (1, f"uint{bits}")
    return _traits(operation, values, _THREAD, (one, one, one), (word, word), "mov", "copy_traits")


def _typed_rows() -> Iterator[CopyOperation]:
    two = (Parameter("S", "type"), Parameter("D", "type", "S"))
    yield CopyOperation("UniversalCopy", "any", "universal", _typed, two, ("uint128_t",), ((), "ld, st", "copy_traits"))
    vector = (Parameter("MaxVecBits", "int", 128),)
    yield CopyOperation("AutoVectorizingCopyWithAssumedAlignment", "any", "universal", _vectorizing, vector)
    for cache, sizes in (("ALWAYS", (4, 8, 16)), ("GLOBAL", (16,))):
        for fill in ("", "_ZFILL"):
            ptx = f"cp.async.{'ca' if cache == 'ALWAYS' else 'cg'}.shared.global"
            details = (sizes, ptx, "copy_traits_sm80")
            yield CopyOperation(
                f"SM80_CP_ASYNC_CACHE{cache}{fill}", "sm80", "sm80", _typed, two, ("uint128_t",), details
            )


def _matrix(operation: CopyOperation, values: Arguments) -> CopyTraits:
    """Make the traits of ldmatrix or stmatrix: a warp, with row addresses on one side and a fragment on the other."""
    rows, fragment, store, words, ptx, header = operation.details
    register = (words, "uint32")
    if store:
        return _traits(operation, values, _WARP, (fragment, rows, fragment), (register, (1, "uint128")), ptx, header)
    return _traits(operation, values, _WARP, (rows, fragment, fragment), ((1, "uint128"), register), ptx, header)


def row_addresses(matrices: int) -> Layout:
    """Return the layout (thread, bit) -> bit number for the rows that the threads address, 8 rows for each matrix.

    >>> print(row_addresses(1), row_addresses(4))
    ((_8,_4),_128):((_128,_0),_1) (_32,_128):(_128,_1)
    """
    if matrices == 4:
        return static_layout((32, 128), (128, 1))
    return static_layout(((8 * matrices, 4 // matrices), 128), ((128, 0), 1))


def matrix_fragment(matrices: int, transposed: bool) -> Layout:
    """Return the layout (thread, bit) -> bit number for a warp's fragment of 8x8 matrices of 16-bit elements.

    >>> print(matrix_fragment(2, False), matrix_fragment(2, True))
    (_32,(_32,_2)):(_32,(_1,_1024)) ((_4,_8),(_16,_2,_2)):((_256,_16),(_1,_128,_1024))
    """
    if transposed:
        count = ((matrices,), (1024,)) if matrices > 1 else ((), ())
        return static_layout(((4, 8), (16, 2, *count[0])), ((256, 16), (1, 128, *count[1])))
    if matrices == 1:
        return static_layout((32, 32), (32, 1))
    return static_layout((32, (32, matrices)), (32, (1, 1024)))


def byte_fragment(matrices: int) -> Layout:
    """Return the layout (thread, bit) -> bit number for a warp's transposed fragment of 8-bit elements.

    >>> print(byte_fragment(1))
    ((_4,_8),(_8,_2,_2)):((_256,_8),(_1,_128,_64))
    """
    count = ((matrices,), (1024,)) if matrices > 1 else ((), ())
    return static_layout(((4, 8), (8, 2, 2, *count[0])), ((256, 8), (1, 128, 64, *count[1])))


def _matrix_rows() -> Iterator[CopyOperation]:
    for matrices in (1, 2, 4):
        for transposed in (False, True):
            letters = f"U16x{2 * matrices}" if transposed else f"U32x{matrices}"
            tail, form = ("T", ".trans") if transposed else ("N", "")
            rows, fragment = row_addresses(matrices), matrix_fragment(matrices, transposed)
            for arch, name, verb in (("sm75", "LDSM", "ldmatrix"), ("sm90", "STSM", "stmatrix")):
                ptx = f"{verb}.sync.aligned.x{matrices}{form}.m8n8.shared.b16"
                details = (rows, fragment, verb == "stmatrix", matrices, ptx, f"copy_traits_{arch}")
                yield CopyOperation(f"{arch.upper()}_{letters}_{name}_{tail}", arch, arch, _matrix, details=details)
        for bits, packed in ((4, "b4x16_p64"), (6, "b6x16_p32")):
            ptx = f"ldmatrix.sync.aligned.m8n16.x{matrices}.shared.b8x16.{packed}"
            fragment = matrix_fragment(matrices, False)
            details = (row_addresses(matrices), fragment, False, matrices, ptx, "copy_traits_sm100")
            name = f"SM100_SU{bits}_DU8x16_x{matrices}_LDSM_N"
            yield CopyOperation(name, "sm100", "sm100", _matrix, details=details)
        ptx = f"stmatrix.sync.aligned.m16n8.x{matrices}.trans.shared.b8"
        details = (row_addresses(matrices), byte_fragment(matrices), True, matrices, ptx, "copy_traits_sm100")
        yield CopyOperation(f"SM100_U8x{4 * matrices}_STSM_T", "sm100", "sm100", _matrix, details=details)
    for matrices, far in ((2, 0), (4, 2048)):
        rows = static_layout(((2, 2, 4, 2), 128), ((128, 1024, 256, far), 1))
        ptx = f"ldmatrix.sync.aligned.m16n16.x{matrices // 2}.trans.shared.b8"
        details = (rows, byte_fragment(matrices), False, matrices, ptx, "copy_traits_sm100")
        yield CopyOperation(f"SM100_U8x{4 * matrices}_LDSM_T", "sm100", "sm100", _matrix, details=details)


def _exchange(operation: CopyOperation, values: Arguments) -> CopyTraits:
    """Make the traits of movmatrix, a shuffle or another copy whose layouts the operation's details list."""
    return _traits(operation, values, *operation.details)


def _exchange_rows() -> Iterator[CopyOperation]:
    pair = (2, "uint32")
    own = static_layout((32, 64), (64, 1))
    for distance, target in (
        (1, static_layout(((2, 16), (32, 2)), ((32, 128), (1, 64)))),
        (4, static_layout(((4, 2, 4), (32, 2)), ((64, 32, 512), (1, 256)))),
    ):
        details = (_WARP, (own, target, own), (pair, pair), "shfl.sync.bfly.b32", "copy_traits_sm50")
        name = f"SM50_Shuffle_U32_2x2Trans_XOR{distance}"
        yield CopyOperation(name, "sm50", "sm50", _exchange, details=details)
    word = static_layout((32, 32), (32, 1))
    one = (1, "uint32")
    details = (_WARP, (word, word, word), (one, one), "movmatrix.sync.aligned.m8n8.trans.b16", "copy_traits_sm75")
    yield CopyOperation("SM75_U32x1_MOVM_T", "sm75", "sm75", _exchange, details=details)
    wide = static_layout((1, 256), (0, 1))
    for verb, registers in (("LOAD", ((1, "uint256"), (8, "uint32"))), ("STORE", ((8, "uint32"), (1, "uint256")))):
        ptx = f"{'ld' if verb == 'LOAD' else 'st'}.global.L1::no_allocate.v8.f32"
        details = (_THREAD, (wide, wide, wide), registers, ptx, "copy_traits_sm100")
        yield CopyOperation(f"SM100_{verb}_256bit_CACHE_NOALLOCATION", "sm100", "sm100", _exchange, details=details)


_TMEM_SHAPES: Final = ((16, 256, 32), (16, 128, 64), (16, 64, 128), (16, 32, 128), (32, 32, 128))
"""(lanes, bits of a lane, most repetitions) of tcgen05.ld and tcgen05.st."""


def tmem_fragment(lanes: int, bits: int, repeat: int) -> Layout:
    """Return the layout (thread, bit) -> bit number for the result of a warp's tensor-memory load.

    >>> print(tmem_fragment(16, 256, 1), tmem_fragment(32, 32, 2))
    ((_4,_8),(_64,_2)):((_64,_256),(_1,_2048)) (_32,_64):(_64,_1)
    """
    n = repeat
    if lanes == 32:
        return static_layout((32, 32 * n), (32 * n, 1))
    if bits == 32:
        return static_layout(((16, 2), 32 * n), ((64 * n, 32 * n), 1))
    if bits == 64:
        value: tuple[Any, Any] = (32, 1) if n == 1 else ((32, n), (1, 64))
        return static_layout(((2, 2, 8), value[0]), ((512 * n, 32, 64 * n), value[1]))
    more = ((n,), (bits,)) if n > 1 else ((), ())
    word = bits // 4
    return static_layout(((4, 8), (word, 2, *more[0])), ((word, bits * n), (1, 8 * bits * n, *more[1])))


def _tmem(operation: CopyOperation, values: Arguments) -> CopyTraits:
    lanes, bits, repeat, packed, store, ptx = operation.details
    width = (64 if (lanes, bits) == (16, 32) else bits) * repeat
    whole = static_layout((32, width * lanes), (0, 1))
    fragment = tmem_fragment(lanes, bits, repeat)
    column: tuple[Any, Any] = ((16, width // 16), (1, 32)) if packed else (width, 1)
    val_id = static_layout((column[0], lanes), (column[1], _LANE))
    words, address = (width * lanes // 1024, "uint32"), (1, "uint32")
    layouts = (fragment, whole, whole) if store else (whole, fragment, whole)
    registers = (words, address) if store else (address, words)
    return _traits(operation, values, _WARP, layouts, registers, ptx, "copy_traits_sm100", val_id)


def _tmem_rows() -> Iterator[CopyOperation]:
    for verb in ("LOAD", "STORE"):
        short = "ld" if verb == "LOAD" else "st"
        pack = "pack" if verb == "LOAD" else "unpack"
        for lanes, bits, most in _TMEM_SHAPES:
            shape = "16x32bx2" if (lanes, bits) == (16, 32) else f"{lanes}x{bits}b"
            repeat = 1
            while repeat <= most:
                for packed in (False, True):
                    name = f"SM100_TMEM_{verb}_{lanes}dp{bits}b{repeat}x{'_16b' if packed else ''}"
                    form = f".{pack}::16b" if packed else ""
                    ptx = f"tcgen05.{short}.sync.aligned.{shape}.x{repeat}{form}.b32"
                    details = (lanes, bits, repeat, packed, verb == "STORE", ptx)
                    yield CopyOperation(name, "sm100", f"sm100_tmem_{verb.lower()}", _tmem, details=details)
                repeat *= 2
    for repeat in (32, 128):
        ptx = f"tcgen05.ld.red.sync.aligned.32x32b.x{repeat}.max.f32"
        details = (32, 32, repeat, False, False, ptx)
        name = f"SM100_TMEM_LOAD_STAT_32dp32b{repeat}x"
        yield CopyOperation(name, "sm100", "sm100_tmem_load", _tmem, details=details)


_SHARED_TO_TMEM: Final[tuple[tuple[str, str, Any, Any, Any, Any], ...]] = (
    ("128dp256bit", "128x256b", 32768, 1, (128, 256), (_LANE, 1)),
    ("128dp128bit", "128x128b", 16384, 1, (128, 128), (_LANE, 1)),
    ("4dp256bit", "4x256b", (4, 256), (32, 128), (128, 256), (_LANE, 1)),
    ("4x32dp128bit", "32x128b.warpx4", (32, 128, 4), (1, 32, 0), (32, 128, 4), (_LANE, 1, 32 * _LANE)),
    ("2x64dp128bitlw0213", "64x128b.warpx2::02_13", (64, 128, 2), (1, 64, 0), (64, 128, 2), (_LANE, 1, 64 * _LANE)),
    (
        "2x64dp128bitlw0123",
        "64x128b.warpx2::01_23",
        (32, 128, 2, 2),
        (1, 32, 4096, 0),
        (32, 128, 2, 2),
        (_LANE, 1, 64 * _LANE, 32 * _LANE),
    ),
)
"""tcgen05.cp: name, PTX shape, the source's bits (shape, stride), where they go in tensor memory (shape, stride)."""


def _shared_to_tmem(operation: CopyOperation, values: Arguments) -> CopyTraits:
    ctas, name, shape, bits, strides, id_shape, id_stride = operation.details
    source = static_layout((ctas, bits), (0, strides))
    target = source if name == "4dp256bit" else static_layout((ctas, 32768 if name == "128dp256bit" else 16384), (0, 1))
    held = static_layout(ctas, 0 if ctas == 1 else 1), (source, target, target), ((1, "uint64"), (1, "uint32"))
    ptx, val_id = f"tcgen05.cp.cta_group::{ctas}.{shape}", static_layout(id_shape, id_stride)
    return _traits(operation, values, *held, ptx, "copy_traits_sm100", val_id=val_id)


def _shared_to_tmem_rows() -> Iterator[CopyOperation]:
    for row in _SHARED_TO_TMEM:
        for ctas in (1, 2):
            name = f"SM100_UTCCP_{row[0]}_{ctas}cta"
            yield CopyOperation(name, "sm100", "sm100_utccp", _shared_to_tmem, details=(ctas, *row))


@functools.cache
def copy_operations() -> tuple[CopyOperation, ...]:
    """Every copy operation of CuTe except the TMA operations."""
    return (*_typed_rows(), *_exchange_rows(), *_matrix_rows(), *_tmem_rows(), *_shared_to_tmem_rows())


# ---- by name --------------------------------------------------------------------------------------------------------

_ALIASES: Final = {"DefaultCopy": 8, "AutoVectorizingCopy": 128}
"""C++'s aliases of AutoVectorizingCopyWithAssumedAlignment, and their bits."""
_NAMESPACE: Final = re.compile(r"^(::)?(cute::)?((SM100|TMEM|LOAD|STORE|LOAD_STAT|UTCCP)::)*")


@functools.cache
def _operations() -> dict[str, CopyOperation]:
    return {row.name: row for row in copy_operations()}


@functools.lru_cache(maxsize=4096)
def copy_traits(name: str) -> CopyTraits:
    """Return the traits of a copy operation, counted in bits.

    Args:
        name: the name in C++, such as `UniversalCopy<uint128_t>` or `SM75_U32x4_LDSM_N`.
    Raises:
        InvalidValueError: the operation does not exist, or takes other arguments; StaticAssertError: C++ refuses the
            arguments.

    >>> print(copy_traits("SM90_U32x1_STSM_N").src_layout)
    (_32,_32):(_32,_1)
    """
    op, texts = split_template(name)
    bare = _NAMESPACE.sub("", op)
    if bare in _ALIASES:
        operation = _operations()["AutoVectorizingCopyWithAssumedAlignment"]
        return replace(operation.made(str(_ALIASES[bare])), name=bare, op=bare)
    if bare not in _operations():
        near = nearest_names(bare, (*_operations(), *_ALIASES))
        text = f"CuTe has no copy operation named {given(name)}"
        raise InvalidValueError(text, {"nearest": ", ".join(near)} if near else None)
    return _operations()[bare].made(*texts)


@functools.lru_cache(maxsize=8192)
def _atom(name: str, dtype: DType | None) -> CopyAtom:
    op, texts = split_template(name)
    if op.rsplit("::", 1)[-1] == "Copy_Atom" and len(texts) == 2:
        return _atom(texts[0], element_type(texts[1]))
    return in_values(copy_traits(name), dtype)


def copy_atom(name: str | CopyAtom, dtype: object = None, *, arch: str | None = None) -> CopyAtom:
    """Make the atom of a copy operation for values of one type.

    Args:
        name: C++'s operation with its template arguments, or `Copy_Atom<operation,type>`. An atom is
            returned unchanged if `dtype` is None, and otherwise with that type.
        dtype: the type of a value (any type that `as_dtype` accepts, or C++'s name); None: the layouts count bits.
        arch: the target architecture, such as `sm_90a` or CuTe's `sm90`; default any.
    Raises:
        InvalidValueError: the operation or type does not exist, or the architecture lacks the instruction;
            StaticAssertError: C++ refuses the arguments or the type.

    >>> print(copy_atom("SM75_U16x4_LDSM_T", "half_t").layout_dst_TV)
    ((_4,_8),(_1,_2,_2)):((_16,_1),(_1,_8,_64))
    """
    kind = None if dtype is None else element_type(dtype)
    if isinstance(name, CopyAtom):
        found = name if kind is None else in_values(name.traits, kind)
    elif isinstance(name, str):
        found = _atom(name, kind)
    else:
        raise InvalidTypeError(f"copy_atom takes the name of an operation, got {type(name).__name__} {given(name)}")
    expect_target(found.traits, arch)
    return found


def _typical(name: str) -> CopyTraits:
    if name in _ALIASES:
        return copy_traits(name)
    typical = _operations()[name].typical
    return copy_traits(f"{name}<{','.join(typical)}>" if typical else name)


COPY_ATOMS: Final[Mapping[str, CopyTraits]] = OperationRows("COPY_ATOMS", _operations, _typical)
"""C++'s operation name -> its row, counted in bits; templates with typical arguments.

    >>> len(COPY_ATOMS), COPY_ATOMS["SM75_U32x1_MOVM_T"].arch
    (196, 'sm75')
"""
