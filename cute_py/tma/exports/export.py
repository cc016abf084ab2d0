"""Export a copy as code for another program: CUDA C++, PTX, the driver call, CuTe C++ or Triton.

The driver call has literal arguments; only the address is a variable. The CuTe and Triton snippets have the extents and
strides of the tensor as literals in elements: outermost first for Triton, innermost first (column-major order of modes)
for CuTe. The snippets are text, so neither framework must be installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Final

from cute_py.argument_checks import expect, expect_expression, expect_having, expect_name, expect_path
from cute_py.errors import EmissionError, FileFormatError, InvalidValueError, given
from cute_py.targets import architecture
from cute_py.tma.descriptor.data_types import (
    FORMATS,
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
)
from cute_py.tma.descriptor.request import (
    FUNCTIONS,
    TensorMap,
    TensorMapIm2col,
    TensorMapIm2colWide,
    TensorMapTiled,
    request_of,
)
from cute_py.tma.dialect.legacy_copy import legacy_ptx
from cute_py.tma.dialect.stages import witness_of
from cute_py.tma.dialect.traced_copy import Copyable, TracedCopy, enumerator, trace_copy
from cute_py.tma.exports.single_tile import cuda_kernel, single_tile_ptx


def data_type_name(data_type: TensorMapDataType) -> str:
    """Return the driver's enumerator of an element format.

    >>> data_type_name(TensorMapDataType.BFLOAT16), data_type_name(TensorMapDataType.PACKED_16U4_ALIGN8B)
    ('CU_TENSOR_MAP_DATA_TYPE_BFLOAT16', 'CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B')
    """
    return f"CU_TENSOR_MAP_DATA_TYPE_{data_type.name.removeprefix('PACKED_')}"


def _array(kind: str, name: str, values: Sequence[int], suffix: str = "") -> str:
    # A map of rank 1 has no strides, but C has no empty array, so the array gets one element.
    written = ", ".join(f"{value}{suffix}" for value in values) or f"0{suffix}"
    return f"{kind} {name}[{max(1, len(values))}] = {{{written}}};"


def encode_call(request: TensorMap, *, variable: str = "map", address: str = "global_address") -> str:
    """Write the C code that encodes `request` with the driver: literal arrays, then the call.

    Args:
        variable: the name of the CUtensorMap. address: a C expression for the tensor's address (void*).

    >>> print(encode_call(TensorMapTiled(9, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)).splitlines()[-3])
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,

    Raises:
        EmissionError: the request has an enum value without an enumerator in the driver.
        InvalidValueError: the variable is not an identifier, or the address is not an expression.
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    expect_name(variable, "variable")
    expect_expression(address, "address")
    try:
        data_type = data_type_name(TensorMapDataType(int(request.data_type if request.data_type is not None else -1)))
        interleave, swizzle = enumerator(Interleave(request.interleave)), enumerator(TensorMapSwizzle(request.swizzle))
        promotion, fill = L2Promotion(request.l2_promotion), OobFill(request.oob_fill)
        wide = Im2ColWideMode(request.mode).name if isinstance(request, TensorMapIm2colWide) else ""
    except ValueError as error:
        raise EmissionError("the request has a number without a name in the driver", {"number": error}) from None
    pixels = []
    if isinstance(request, TensorMapTiled):
        arrays, own = [_array("cuuint32_t", "box_dim", request.box_dim)], "box_dim, element_strides"
    else:
        arrays, own = [], "lower_corner, upper_corner"
        pixels = [f"    {request.channels_per_pixel}, {request.pixels_per_column}, element_strides,"]
    if isinstance(request, TensorMapIm2col):
        arrays.append(_array("int", "lower_corner", request.pixel_box_lower_corner))
        arrays.append(_array("int", "upper_corner", request.pixel_box_upper_corner))
    elif isinstance(request, TensorMapIm2colWide):
        own = f"{request.pixel_box_lower_corner_width}, {request.pixel_box_upper_corner_width}"
    # The wide call takes its mode between the interleave and the swizzle.
    mode = f" CU_TENSOR_MAP_IM2COL_WIDE_MODE_{wide}," if wide else ""
    return "\n".join(
        [
            f"CUtensorMap {variable};",
            _array("cuuint64_t", "global_dim", request.global_dim, "ULL"),
            _array("cuuint64_t", "global_strides", request.global_strides, "ULL") + "  // bytes, modes 1..",
            *arrays,
            _array("cuuint32_t", "element_strides", request.element_strides),
            f"CUresult result = {FUNCTIONS[request.KIND]}(",
            f"    &{variable}, {data_type}, {request.rank}, {address}, global_dim, global_strides, {own},",
            *pixels,
            f"    CU_TENSOR_MAP_INTERLEAVE_{interleave},{mode} CU_TENSOR_MAP_SWIZZLE_{swizzle},",
            f"    CU_TENSOR_MAP_L2_PROMOTION_{'L2_' if promotion else ''}{enumerator(promotion)},",
            f"    CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill.name});",
        ]
    )


_FLOATS: Final = {
    "bfloat16": ("cute::bfloat16_t", "tl.bfloat16"),
    "float16": ("cute::half_t", "tl.float16"),
    "float32": ("float", "tl.float32"),
    "tfloat32": ("cute::tfloat32_t", "tl.float32"),
    "float64": ("double", "tl.float64"),
    "float8_e4m3fn": ("cute::float_e4m3_t", "tl.float8e4nv"),
    "float8_e5m2": ("cute::float_e5m2_t", "tl.float8e5"),
    "float4_e2m1fn": ("cute::float_e2m1_t", ""),
    "float6_e2m3fn": ("cute::float_e2m3_t", ""),
    "float6_e3m2fn": ("cute::float_e3m2_t", ""),
}
"""Element types in CuTe C++ and Triton that have their own name; integers are int8_t and tl.int8, ..."""

_ATOMS: Final = ("INTER", "SW32", "SW64", "SW128")
"""CuTe's canonical K-major layout atoms, by the driver's swizzle."""


def _element_strides(request: TensorMapTiled) -> tuple[int, ...]:
    """Return the strides in elements, outermost first; the last is 1."""
    row = FORMATS[int(request.data_type if request.data_type is not None else 0)]
    return (*(stride * 8 // row.bits for stride in reversed(request.global_strides)), 1)


def _tiled(atom: Copyable | TracedCopy, request: TensorMapTiled, what: str) -> TracedCopy:
    """Trace a copy, and refuse it if a CuTe or Triton snippet can't express it."""
    copy = trace_copy(atom)
    expect(request, TensorMapTiled, "the request")
    if copy.mode != "tile":
        raise EmissionError(f"{what}: only mode tile can be exported, got {copy.mode}")
    return copy


def _cute_smem_layout(copy: TracedCopy, element: str, tile: str) -> str:
    """Write the C++ expression of the tile's layout: row-major, or a canonical atom that is repeated.

    Raises:
        EmissionError: a row of the box is neither a row of the tile nor a row of the atom, or the rank is not 2.
    """
    if copy.swizzle is TensorMapSwizzle.NONE and copy.box[-1] == copy.tile[-1]:
        return f"make_layout(make_shape({tile}), LayoutRight{{}})"
    row, span = copy.row_bytes, copy.span or 16
    if copy.box[-1] * copy.dtype.bits != 8 * span:
        raise EmissionError(f"CuTe C++: the box has rows of {row} bytes, but the atom has {span}")
    if copy.rank != 2:
        raise EmissionError(f"CuTe C++: the tile has rank {copy.rank}, but the atom has rank 2")
    atom = f"GMMA::Layout_K_{_ATOMS[copy.swizzle]}_Atom<{element}>{{}}"
    return f"tile_to_shape({atom}, make_shape({tile}))"


def cute_cpp(atom: Copyable | TracedCopy, request: TensorMapTiled) -> str:
    """Write CuTe C++ for a copy: the tensor, the canonical shared-memory layout of the swizzle, and `make_tma_copy`.

    Args:
        atom: an atom or operation, as for `lower`.
    Raises:
        EmissionError: the copy has a mode other than tile, a reduction other than add, a swizzle without a canonical
            layout, or a tile that this layout can't describe.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(cute_cpp(atom, atom.request).splitlines()[-1])
                             make_shape(Int<128>{}, Int<64>{}), Int<1>{});
    """
    copy = _tiled(atom, request, "CuTe C++")
    if copy.direction == "reduce" and copy.reduce_kind != "add":
        raise EmissionError(f"CuTe C++: SM90_TMA_REDUCE_ADD is the reduction of CuTe; got {copy.reduce_kind}")
    if copy.swizzle >= len(_ATOMS):
        raise EmissionError(f"CuTe C++: swizzle {copy.swizzle.name} has no canonical K-major layout atom")
    operation = {"load": "LOAD_MULTICAST" if copy.multicast > 1 else "LOAD", "store": "STORE", "reduce": "REDUCE_ADD"}
    element = _FLOATS.get(copy.dtype.name, (f"{copy.dtype.name}_t",))[0]
    extents = ", ".join(str(extent) for extent in reversed(request.global_dim))
    strides = ", ".join("Int<1>{}" if s == 1 else str(s) for s in _element_strides(request))
    tile = ", ".join(f"Int<{extent}>{{}}" for extent in copy.tile)
    layout, name = _cute_smem_layout(copy, element, tile), copy.tensor
    return "\n".join(
        [
            "#include <cute/tensor.hpp>",
            "using namespace cute;",
            f"auto g{name} = make_tensor(make_gmem_ptr(static_cast<{element}*>(pointer)),",
            f"                      make_shape({extents}), make_stride({strides}));",
            f"auto s{name}_layout = {layout};",
            f"auto tma = make_tma_copy(SM90_TMA_{operation[copy.direction]}{{}}, g{name}, s{name}_layout,",
            f"                         make_shape({tile}), Int<{copy.multicast}>{{}});",
        ]
    )


def triton(atom: Copyable | TracedCopy, request: TensorMapTiled) -> str:
    """Write Triton code for a copy: `tl.make_tensor_descriptor`, and the load or store of one block.

    Args:
        atom: an atom or operation, as for `lower`.
    Raises:
        EmissionError: the copy has a mode other than tile, multicast, an element type that Triton lacks, or a reduction
            that Triton's descriptors lack.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(triton(atom, atom.request).splitlines()[0])
    import triton
    """
    copy = _tiled(atom, request, "Triton")
    if copy.multicast > 1:
        raise EmissionError("Triton: descriptors have no multicast")
    if copy.dtype.bits < 8:
        raise EmissionError(f"Triton: a descriptor can't have the element type {copy.dtype.name}")
    reductions = ("add", "min", "max", "and", "or", "xor")
    if copy.direction == "reduce" and copy.reduce_kind not in reductions:
        raise EmissionError(f"Triton: descriptors reduce by {', '.join(reductions)}; got {copy.reduce_kind}")
    element = _FLOATS.get(copy.dtype.name, ("", f"tl.{copy.dtype.name}"))[1]
    names = [f"block_{axis.lower()}" for axis in copy.view.outer_first(copy.view.axes)]
    extents = ", ".join(str(extent) for extent in reversed(request.global_dim))
    strides = ", ".join(map(str, _element_strides(request)))
    origin = ", ".join(f"{name} * {extent}" for name, extent in zip(names, copy.tile, strict=True))
    is_load = copy.direction == "load"
    verb = {"load": "tile = desc.load", "store": "desc.store", "reduce": f"desc.atomic_{copy.reduce_kind}"}
    return "\n".join(
        [
            "import triton",
            "import triton.language as tl",
            "",
            "",
            "@triton.jit",
            f"def {copy.direction}_tile({', '.join(['pointer', *([] if is_load else ['tile']), *names])}):",
            f"    # pointer: *{element}",
            "    desc = tl.make_tensor_descriptor(",
            f"        pointer, shape=[{extents}], strides=[{strides}], block_shape=[{', '.join(map(str, copy.tile))}]",
            "    )",
            f"    {verb[copy.direction]}([{origin}]{'' if is_load else ', tile'})",
            *(["    return tile"] if is_load else []),
        ]
    )


KINDS: dict[str, str] = {"cu": ".cu", "ptx": ".ptx", "c": ".c", "cute": ".cute.cu", "triton": ".py"}
"""Kind of export -> ending of its file."""


def export(atom: Copyable, kind: str, *, request: TensorMap | None = None, arch: str = "sm_90a") -> str:
    """Return a copy as code for another program.

    Args:
        atom: an atom or operation, as for `lower`.
        kind: "cu": a CUDA C++ kernel for one tile; "ptx": a module for one tile (without TMA before sm_90); "c": the
            cuTensorMapEncode* call with literal arguments; "cute": CuTe C++; "triton": a Triton kernel.
        request: the request of the tensor map; default: the request of the atom.
        arch: the target, for "ptx".
    Raises:
        InvalidValueError: the kind or the architecture does not exist.
        InvalidTypeError, TmaBuildError: the argument is not an atom.
        EmissionError: this kind of code can't express the copy, or the request is not tiled.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> print(export(atom, "c").splitlines()[0])
    CUtensorMap map;
    """
    expect(kind, str, "the kind of an export")
    if kind not in KINDS:
        raise InvalidValueError(f"export {given(kind)}; expected one of {', '.join(KINDS)}")
    architecture(arch)
    if kind == "c":
        return encode_call(request_of(atom) if request is None else request)  # type: ignore[arg-type]
    copy = trace_copy(atom)
    if kind == "cu":
        return cuda_kernel(copy)
    if kind == "ptx":
        has_tma = witness_of(copy, arch)[0].startswith("sm90_")
        return single_tile_ptx(copy, arch) if has_tma else legacy_ptx(copy, arch)
    tiled = copy.request if request is None else request
    if not isinstance(tiled, TensorMapTiled):
        raise EmissionError(f"export {given(kind)} needs a tiled request; got {type(tiled).__name__}")
    return cute_cpp(copy, tiled) if kind == "cute" else triton(copy, tiled)


def write_export(
    atom: Copyable, kind: str, path: str | PathLike[str], *, request: TensorMap | None = None, arch: str = "sm_90a"
) -> Path:
    """Write an export to a file. If the path has no file extension, the extension of the kind is added.

    Args:
        path: the file. atom, kind, request, arch: as in `export`.
    Returns:
        the path of the file, with its extension.
    Raises:
        InvalidValueError: the path does not name a file.
        FileFormatError: the file can't be written.
        See `export`.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "float16"), cute.parse("(1024,512):(512,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_export(atom, "ptx", folder + "/tile").name)
    tile.ptx
    """
    text = export(atom, kind, request=request, arch=arch)
    target = expect_path(path, "path")
    if not target.name:
        raise InvalidValueError(f"path = {given(path)}; must end in the name of a file")
    if not target.suffix:
        target = target.with_name(target.name + KINDS[kind])
    try:
        target.write_text(text if text.endswith("\n") else text + "\n")
    except (OSError, ValueError) as error:  # ValueError: a path with a null character
        raise FileFormatError(f"{given(str(target))}: can't be written: {error}") from None
    return target
