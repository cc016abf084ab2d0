"""The same copy as CuTe C++ and as a Triton tensor descriptor, for readers who have one of them.

The snippets have the tensor's extents and strides as literals in elements, outermost first for Triton, innermost first
(column-major order of modes) for CuTe. They are text: neither framework is needed to write them.
"""

from __future__ import annotations

from cute_py.argument_checks import expect
from cute_py.errors import EmissionError
from cute_py.tma.descriptor.formats import FORMATS, TensorMapSwizzle
from cute_py.tma.descriptor.request import TensorMapTiled
from cute_py.tma.dialect.copy_shape import CopyShape, span_of

CUTLASS_TYPES: dict[str, str] = {
    "bfloat16": "cute::bfloat16_t",
    "float16": "cute::half_t",
    "float32": "float",
    "tfloat32": "cute::tfloat32_t",
    "float64": "double",
    "float8_e4m3fn": "cute::float_e4m3_t",
    "float8_e5m2": "cute::float_e5m2_t",
    "float4_e2m1fn": "cute::float_e2m1_t",
    "float6_e2m3fn": "cute::float_e2m3_t",
    "float6_e3m2fn": "cute::float_e3m2_t",
}
"""Element types in CuTe C++; integers are int8_t, uint16_t, ..."""

TRITON_TYPES: dict[str, str] = {
    "bfloat16": "tl.bfloat16",
    "float16": "tl.float16",
    "float32": "tl.float32",
    "tfloat32": "tl.float32",
    "float64": "tl.float64",
    "float8_e4m3fn": "tl.float8e4nv",
    "float8_e5m2": "tl.float8e5",
}
"""Element types in Triton; integers are tl.int8, tl.uint16, ..."""

_SWIZZLES = {
    TensorMapSwizzle.NONE: "INTER",
    TensorMapSwizzle.B32: "SW32",
    TensorMapSwizzle.B64: "SW64",
    TensorMapSwizzle.B128: "SW128",
}


def _element_strides(request: TensorMapTiled) -> tuple[int, ...]:
    """Strides in elements, innermost first; mode 0 has stride 1."""
    row = FORMATS[int(request.data_type if request.data_type is not None else 0)]
    return (1, *(stride * 8 // row.bits for stride in request.global_strides))


def _operation(shape: CopyShape) -> str:
    if shape.direction == "load":
        return "SM90_TMA_LOAD_MULTICAST{}" if shape.multicast > 1 else "SM90_TMA_LOAD{}"
    return "SM90_TMA_STORE{}" if shape.direction == "store" else "SM90_TMA_REDUCE_ADD{}"


def _require_tiled(shape: CopyShape, what: str) -> None:
    if shape.mode != "tile":
        raise EmissionError(f"{what}: mode {shape.mode} has no snippet, only tile has")


def _cute_smem_layout(shape: CopyShape, element: str, tile: str) -> str:
    """The expression of the tile's layout: row-major, or a canonical atom repeated.

    Raises:
        EmissionError: rows of a box that are neither whole nor one row of the atom, or an atom for a rank other than 2.
    """
    row, whole = shape.instruction_box[-1], shape.tile[-1]
    if shape.swizzle is TensorMapSwizzle.NONE and row == whole:
        return f"make_layout(make_shape({tile}), LayoutRight{{}})"
    span = span_of(shape) or 16
    if row * shape.dtype.bits != 8 * span:
        raise EmissionError(f"CuTe C++: a box with rows of {row * shape.dtype.bits // 8} bytes; the atom has {span}")
    if shape.rank != 2:
        raise EmissionError(f"CuTe C++: the atom has rank 2; the tile has rank {shape.rank}")
    atom = f"GMMA::Layout_K_{_SWIZZLES[shape.swizzle]}_Atom<{element}>{{}}"
    return f"tile_to_shape({atom}, make_shape({tile}))"


def cute_cpp(shape: CopyShape, request: TensorMapTiled) -> str:
    """CuTe C++: the tensor, the canonical shared-memory layout of the swizzle, `make_tma_copy`.

    Raises:
        EmissionError: a mode other than tile, a reduction other than add, a swizzle without a canonical layout, or a
            tile that this layout does not have.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect(request, TensorMapTiled, "the request")
    _require_tiled(shape, "CuTe C++")
    if shape.direction == "reduce" and shape.reduce_kind != "add":
        raise EmissionError(f"CuTe C++: SM90_TMA_REDUCE_ADD is the reduction of CuTe; got {shape.reduce_kind}")
    if shape.swizzle not in _SWIZZLES:
        raise EmissionError(f"CuTe C++: swizzle {shape.swizzle.name} has no canonical K-major layout atom")
    element = CUTLASS_TYPES.get(shape.dtype.name, f"{shape.dtype.name}_t")
    extents = ", ".join(str(extent) for extent in reversed(request.global_dim))
    strides = ", ".join("Int<1>{}" if s == 1 else str(s) for s in reversed(_element_strides(request)))
    tile = ", ".join(f"Int<{extent}>{{}}" for extent in shape.tile)
    layout = _cute_smem_layout(shape, element, tile)
    return "\n".join(
        [
            "#include <cute/tensor.hpp>",
            "using namespace cute;",
            f"auto g{shape.tensor} = make_tensor(make_gmem_ptr(static_cast<{element}*>(pointer)),",
            f"                      make_shape({extents}), make_stride({strides}));",
            f"auto s{shape.tensor}_layout = {layout};",
            f"auto tma = make_tma_copy({_operation(shape)}, g{shape.tensor}, s{shape.tensor}_layout,",
            f"                         make_shape({tile}), Int<{shape.multicast}>{{}});",
        ]
    )


def triton(shape: CopyShape, request: TensorMapTiled) -> str:
    """Triton: `tl.make_tensor_descriptor` and the load or store of one block.

    Raises:
        EmissionError: a mode other than tile, multicast, an element type that Triton has not, or a reduction that its
            descriptors have not.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect(request, TensorMapTiled, "the request")
    _require_tiled(shape, "Triton")
    if shape.multicast > 1:
        raise EmissionError("Triton: descriptors have no multicast")
    if shape.dtype.bits < 8:
        raise EmissionError(f"Triton: {shape.dtype.name} is no element type of a descriptor")
    reductions = ("add", "min", "max", "and", "or", "xor")
    if shape.direction == "reduce" and shape.reduce_kind not in reductions:
        raise EmissionError(f"Triton: descriptors reduce by {', '.join(reductions)}; got {shape.reduce_kind}")
    element = TRITON_TYPES.get(shape.dtype.name, f"tl.{shape.dtype.name}")
    names = [axis.lower() for axis in shape.axes]
    extents = ", ".join(str(extent) for extent in reversed(request.global_dim))
    strides = ", ".join(str(stride) for stride in reversed(_element_strides(request)))
    block = ", ".join(str(extent) for extent in shape.tile)
    origin = ", ".join(f"block_{name} * {extent}" for name, extent in zip(names, shape.tile, strict=True))
    verb = {"load": "tile = desc.load", "store": "desc.store", "reduce": f"desc.atomic_{shape.reduce_kind}"}
    arguments = f"[{origin}]" if shape.direction == "load" else f"[{origin}], tile"
    blocks = ", ".join(f"block_{name}" for name in names)
    parameters = f"pointer, {blocks}" if shape.direction == "load" else f"pointer, tile, {blocks}"
    return "\n".join(
        [
            "import triton",
            "import triton.language as tl",
            "",
            "",
            "@triton.jit",
            f"def {shape.direction}_tile({parameters}):",
            f"    # pointer: *{element}",
            "    desc = tl.make_tensor_descriptor(",
            f"        pointer, shape=[{extents}], strides=[{strides}], block_shape=[{block}]",
            "    )",
            f"    {verb[shape.direction]}({arguments})",
            *(["    return tile"] if shape.direction == "load" else []),
        ]
    )
