"""Exports for a CUDA C++ program: the driver call that makes the tensor map, and a kernel that moves one tile.

The call has literal arguments; only the address is a variable. The kernel needs no header but <cuda.h> for the type of
its parameter (or none at all with NVRTC, where a 128-byte struct stands for it).
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_py.argument_checks import expect, expect_expression, expect_having, expect_name
from cute_py.errors import EmissionError
from cute_py.ptx.inline_asm import inline_asm
from cute_py.tma.descriptor.formats import (
    Im2ColWideMode,
    Interleave,
    L2Promotion,
    OobFill,
    TensorMapDataType,
    TensorMapSwizzle,
)
from cute_py.tma.descriptor.request import TensorMap, TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.tma.dialect.copy_shape import CopyShape
from cute_py.tma.exports.single_tile import barrier_offset

_DATA_TYPES = {
    TensorMapDataType.PACKED_16U4_ALIGN8B: "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B",
    TensorMapDataType.PACKED_16U4_ALIGN16B: "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B",
    TensorMapDataType.PACKED_16U6_ALIGN16B: "CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B",
}
_INTERLEAVES = {Interleave.NONE: "NONE", Interleave.B16: "16B", Interleave.B32: "32B"}
_SWIZZLES = {
    TensorMapSwizzle.NONE: "NONE",
    TensorMapSwizzle.B32: "32B",
    TensorMapSwizzle.B64: "64B",
    TensorMapSwizzle.B128: "128B",
    TensorMapSwizzle.B128_ATOM_32B: "128B_ATOM_32B",
    TensorMapSwizzle.B128_ATOM_32B_FLIP_8B: "128B_ATOM_32B_FLIP_8B",
    TensorMapSwizzle.B128_ATOM_64B: "128B_ATOM_64B",
}
_PROMOTIONS = {
    L2Promotion.NONE: "NONE",
    L2Promotion.B64: "L2_64B",
    L2Promotion.B128: "L2_128B",
    L2Promotion.B256: "L2_256B",
}
_FILLS = {OobFill.NONE: "NONE", OobFill.NAN_REQUEST_ZERO_FMA: "NAN_REQUEST_ZERO_FMA"}
_WIDE = {
    Im2ColWideMode.W: "CU_TENSOR_MAP_IM2COL_WIDE_MODE_W",
    Im2ColWideMode.W128: "CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128",
}


def data_type_name(data_type: TensorMapDataType) -> str:
    """The driver's enumerator.

    >>> data_type_name(TensorMapDataType.BFLOAT16)
    'CU_TENSOR_MAP_DATA_TYPE_BFLOAT16'
    """
    return _DATA_TYPES.get(data_type, f"CU_TENSOR_MAP_DATA_TYPE_{data_type.name}")


def _array(kind: str, name: str, values: Sequence[int], suffix: str = "") -> str:
    # C has no empty array: a map of rank 1 has no strides.
    written = ", ".join(f"{value}{suffix}" for value in values) or f"0{suffix}"
    return f"{kind} {name}[{max(1, len(values))}] = {{{written}}};"


def encode_call(request: TensorMap, *, variable: str = "map", address: str = "global_address") -> str:
    """The C code that makes `request` with the driver: literal arrays, then the call.

    Args:
        variable: name of the CUtensorMap. address: expression of the tensor's address (void*).

    >>> print(encode_call(TensorMapTiled(9, 4096, (512, 1024), (1024,), (64, 128), swizzle=3)).splitlines()[-3])
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,

    Raises:
        EmissionError: the request has a number that no enumerator of the driver has.
        InvalidValueError: the variable is no identifier, or the address no expression.
    """
    expect_having(request, ("KIND", "data_type"), "a request of a tensor map")
    expect_name(variable, "variable")
    expect_expression(address, "address")
    try:
        data_type = data_type_name(TensorMapDataType(int(request.data_type if request.data_type is not None else -1)))
        interleave = _INTERLEAVES[Interleave(request.interleave)]
        swizzle = _SWIZZLES[TensorMapSwizzle(request.swizzle)]
        promotion = _PROMOTIONS[L2Promotion(request.l2_promotion)]
        fill = _FILLS[OobFill(request.oob_fill)]
    except ValueError as error:
        raise EmissionError("the request holds a number that the driver has no name for", {"number": error}) from None
    lines = [
        f"CUtensorMap {variable};",
        _array("cuuint64_t", "global_dim", request.global_dim, "ULL"),
        _array("cuuint64_t", "global_strides", request.global_strides, "ULL") + "  // bytes, modes 1..",
        _array("cuuint32_t", "element_strides", request.element_strides),
    ]
    head = f"&{variable}, {data_type}, {request.rank}, {address}, global_dim, global_strides"
    tail = [
        f"    CU_TENSOR_MAP_INTERLEAVE_{interleave}, CU_TENSOR_MAP_SWIZZLE_{swizzle},",
        f"    CU_TENSOR_MAP_L2_PROMOTION_{promotion},",
        f"    CU_TENSOR_MAP_FLOAT_OOB_FILL_{fill});",
    ]
    if isinstance(request, TensorMapTiled):
        lines.insert(3, _array("cuuint32_t", "box_dim", request.box_dim))
        call = ["CUresult result = cuTensorMapEncodeTiled(", f"    {head}, box_dim, element_strides,", *tail]
    elif isinstance(request, TensorMapIm2col):
        lines.insert(3, _array("int", "lower_corner", request.pixel_box_lower_corner))
        lines.insert(4, _array("int", "upper_corner", request.pixel_box_upper_corner))
        middle = f"{request.channels_per_pixel}, {request.pixels_per_column}, element_strides,"
        call = [
            "CUresult result = cuTensorMapEncodeIm2col(",
            f"    {head}, lower_corner, upper_corner,",
            f"    {middle}",
            *tail,
        ]
    else:
        call = _wide_call(request, head, tail)
    return "\n".join([*lines, *call])


def _wide_call(request: TensorMapIm2colWide, head: str, tail: list[str]) -> list[str]:
    corners = f"{request.pixel_box_lower_corner_width}, {request.pixel_box_upper_corner_width}"
    mode = _WIDE[Im2ColWideMode(request.mode)]
    # The wide call takes its mode between the interleave and the swizzle.
    first = tail[0].replace(", CU_TENSOR_MAP_SWIZZLE", f", {mode}, CU_TENSOR_MAP_SWIZZLE")
    return [
        "CUresult result = cuTensorMapEncodeIm2colWide(",
        f"    {head}, {corners},",
        f"    {request.channels_per_pixel}, {request.pixels_per_column}, element_strides,",
        first,
        *tail[1:],
    ]


def _statement(shape: CopyShape) -> tuple[str, tuple[str, ...]]:
    modifiers: dict[str, object] = {"dim": shape.rank, "mode": shape.mode}
    if shape.direction == "reduce":
        modifiers["op"] = shape.reduce_kind
    if shape.cta_group:
        modifiers["cta_group"] = shape.cta_group
    statement = inline_asm(shape.direction, **modifiers)
    return statement.template, statement.constraints


def cuda_kernel(shape: CopyShape, name: str = "move_tile") -> str:
    """CUDA C++ of a kernel that moves one tile; self-contained, for NVRTC or nvcc, 128 threads.

    Dynamic shared memory: `single_tile.shared_bytes(shape)`. `image` receives the bytes of shared memory after a load
    and provides them for a store or reduction.

    Raises:
        EmissionError: multicast or a cache hint, which need a cluster or a policy.
        InvalidValueError: the name is no identifier.
    """
    expect(shape, CopyShape, "the shape of a copy")
    expect_name(name, "the kernel's name")
    if shape.multicast > 1 or shape.cache_hint:
        raise EmissionError(
            "a single-tile kernel has no cluster and no policy: multicast and cache hints are not in it"
        )
    template, letters = _statement(shape)
    count = 5 if shape.rows_by_index else shape.rank
    is_load = shape.direction == "load"
    issue = []
    for box in range(shape.num_boxes):
        coords = [f"c{i} + {start}" if start else f"c{i}" for i, start in enumerate(shape.instruction_origin(box))]
        at = f"base + {shape.box_offset(box)}" if shape.box_offset(box) else "base"
        head = [at, "desc", "barrier"] if is_load else ["desc", at]
        fixed = [*head, *coords]
        # of an im2col load whose filter position is not given: the first one
        offsets = shape.im2col_offsets or (0,) * (len(letters) - len(fixed))
        values = [*fixed, *map(str, offsets)]
        inputs = ", ".join(
            f'"{letter}"((short){value})' if letter == "h" else f'"{letter}"({value})'
            for letter, value in zip(letters, values, strict=True)
        )
        issue += [f'    asm volatile("{template}"', f'                 :: {inputs} : "memory");']
    words = shape.smem_bytes // 4
    copy_out = f"  for (unsigned i = threadIdx.x; i < {words}; i += blockDim.x) image[i] = ((const unsigned*)tile)[i];"
    copy_in = f"  for (unsigned i = threadIdx.x; i < {words}; i += blockDim.x) ((unsigned*)tile)[i] = image[i];"
    if is_load:
        body = [
            f"  const unsigned barrier = base + {barrier_offset(shape)};",
            "  if (threadIdx.x == 0) {",
            '    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(barrier) : "memory");',
            '    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
            "  }",
            "  __syncthreads();",
            "  if (threadIdx.x == 0) {",
            f'    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], {shape.transaction_bytes};"',
            '                 :: "r"(barrier) : "memory");',
            *issue,
            "  }",
            "  unsigned done = 0;",
            "  while (!done)",
            '    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"',
            '                 " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier) : "memory");',
            copy_out,
        ]
    else:
        body = [
            copy_in,
            "  // every writer fences its own writes, then all meet",
            '  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
            "  __syncthreads();",
            "  if (threadIdx.x == 0) {",
            *issue,
            '    asm volatile("cp.async.bulk.commit_group;" ::: "memory");',
            '    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");',
            "  }",
        ]
    coordinates = ", ".join(f"int c{index}" for index in range(count))
    return "\n".join(
        [
            f"// {shape.direction} of one tile by TMA: {shape.num_boxes} instructions, {shape.transaction_bytes} bytes",
            "struct __align__(64) TensorMap { unsigned long long word[16]; };",
            f'extern "C" __global__ void __launch_bounds__(128) {name}(',
            f"    const __grid_constant__ TensorMap map, {coordinates}, unsigned* image) {{",
            "  extern __shared__ __align__(1024) unsigned char tile[];",
            "  const unsigned base = (unsigned)__cvta_generic_to_shared(tile);",
            "  const unsigned long long desc = (unsigned long long)&map;",
            *body,
            "}",
            "",
        ]
    )
