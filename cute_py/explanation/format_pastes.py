"""Types, names and error texts about block scales: which order they mean, as a CuTe layout, and what to change.

A row of `ORDER_NAMES` says which order of `formats.ORDERS` a name of a library means; `scale_type_readings` reads the
configurations of CUTLASS with their numbers; `ERRORS` has the texts of torch, torchao, vLLM, FlashInfer and cuBLASLt.
Where a text has the sizes, the sizes that work are computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cute_py.errors import CuteError
from cute_py.explanation.readings import Reading, some
from cute_py.formats.format import Format, fp8, mxfp8, nvfp4
from cute_py.formats.scale_orders import ScaleOrder, scale_order, sf_atom
from cute_py.layout.layout import Layout
from cute_py.notation.parse import parse

_SIZES: Final = "for M = 256, K = 512"


@dataclass(frozen=True, slots=True)
class OrderName:
    """A name of a library for an order of scales: a pattern, the order, elements a scale, and who has it."""

    pattern: str
    order: str
    block: int
    owner: str


ORDER_NAMES: Final = (
    OrderName(r"(?:SwizzleType\.)?SWIZZLE_32_4_4", "32_4_4", 32, "torch.nn.functional.SwizzleType, torchao"),
    OrderName(r"(?:SwizzleType\.)?SWIZZLE_32_8", "rocm_32_8", 32, "torch.nn.functional.SwizzleType on gfx950"),
    OrderName(r"SwizzleType\.NO_SWIZZLE", "linear", 32, "torch.nn.functional.SwizzleType"),
    OrderName(r"(?:HIPBLASLT_MATMUL_MATRIX_SCALE_)?BLK32_UE8M0_32_8(?:_EXT)?", "rocm_32_8", 32, "hipBLASLt"),
    OrderName(r"(?:CUBLASLT_MATMUL_MATRIX_SCALE_)?VEC32_UE8M0", "32_4_4", 32, "cublasLtMatmulMatrixScale_t"),
    OrderName(r"(?:CUBLASLT_MATMUL_MATRIX_SCALE_)?VEC16_UE4M3", "32_4_4", 16, "cublasLtMatmulMatrixScale_t"),
    OrderName(r"(?:CUBLASLT_MATMUL_MATRIX_SCALE_)?VEC128_32F", "mn_major", 128, "cublasLtMatmulMatrixScale_t"),
    OrderName(r"(?:(?:QuantizationSFLayout::|SfLayout[._])\w*?|SWIZZLED_|layout_)128x4", "32_4_4", 16,
              "TensorRT-LLM, FlashInfer"),
    OrderName(r"(?:(?:QuantizationSFLayout::|SfLayout[._])\w*?|SWIZZLED_|layout_)8x4", "8x4", 16,
              "TensorRT-LLM, FlashInfer"),
    OrderName(r"(?:QuantizationSFLayout::|SfLayout[._])(?:LINEAR|layout_linear)", "linear", 16,
              "TensorRT-LLM, FlashInfer"),
    OrderName(r"BlackwellMX(?:Value)?ScaleLayout|BLACKWELL_SCALE", "triton_blackwell", 32, "triton_kernels"),
    OrderName(r"HopperMXScaleLayout|HOPPER_SCALE", "triton_hopper", 32, "triton_kernels"),
    OrderName(r"GFX950MXScaleLayout|CDNA4MXScaleLayout|(?:GFX950|CDNA4)_SCALE", "rocm_32_8", 32, "triton_kernels"),
    OrderName(r"get_mn_major_tma_aligned_packed_ue8m0_tensor(?:_torch)?|pack_ue8m0_to_int|packed[ _]UE8M0",
              "deepgemm_sm100", 128, "DeepGEMM"),
    OrderName(r"get_mn_major_tma_aligned_tensor", "deepgemm_sm90", 128, "DeepGEMM"),
    OrderName(r"swizzle_scale_offset", "vllm_v_4x4", 16, "vLLM, nvfp4_kv_cache_kernels.cu"),
    OrderName(r"(?:torchao\.\S*)?\bto_blocked", "32_4_4", 32, "torchao"),
    OrderName(r"(?:nvfp4_)?block_scale_interleave", "32_4_4", 16, "FlashInfer"),
)  # fmt: skip

_NAMES: Final = re.compile("|".join(rf"(?P<n{i}>(?<![\w.]){row.pattern}(?!\w))" for i, row in enumerate(ORDER_NAMES)))

E8M0: Final = re.compile(
    r"(?<!\w)(?:torch\.|ml_dtypes\.|jnp\.|cutlass::)?(float8_e8m0fnu|float_ue8m0_t|__nv_fp8_e8m0|f8E8M0FNU|u?e8m0)(?!\w)",
    re.IGNORECASE,
)
_CONFIG: Final = re.compile(
    r"(?<!\w)(?:cutlass::detail::)?Sm1xxBlockScaled(Config|OutputConfig|BasicChunk)\s*<\s*([0-9]{1,4})\s*"
    r"(?:,[^<>\n]{0,80})?>"
)
_BLOCKWISE: Final = re.compile(
    r"(?<!\w)(?:cutlass::detail::)?Sm(90|1xx|100|120)BlockwiseScaleConfig\s*<\s*([0-9]{1,5})\s*,\s*([0-9]{1,5})\s*,"
    r"\s*([0-9]{1,5})\s*((?:,[^<>\n]{0,120})?)>"
)
_ATOM: Final = re.compile(r"(?<!\w)Sf(?:KMajor|MNMajor)?Atom(?!\w)")


def _of_order(order: ScaleOrder, block: int) -> Format:
    if block == 16:
        return nvfp4(scales=order)
    if block == 128:
        return fp8((1, 128), rule="rceil" if order.name == "deepgemm_sm100" else "amax", scales=order)
    return mxfp8(scales=order)


def _lines(order: ScaleOrder, block: int) -> list[str]:
    """The order as a layout at one size, its formula, its padding."""
    form = _of_order(order, block)
    rows, scales = order.tile
    lines = [f"index of the scale of row m, block kb of Kb: {order.row.formula}" if order.row else ""]
    lines.append(f"as a layout {_SIZES}, {block} elements a scale: {form.scale_layout(256, 512)}")
    if (rows, scales) != (1, 1):
        lines.append(f"allocate round_up(M, {rows}) x round_up(ceil(K / {block}), {scales}) scales")
    lines.append(f"here: cute.formats.{form!r}")
    return [line for line in lines if line]


def _source(order: ScaleOrder) -> list[str]:
    return [f"source: {order.row.source}"] if order.row else []


def order_readings(text: str) -> Iterator[Reading]:
    """Names of orders."""
    for found in some(_NAMES.finditer(text)):
        row = ORDER_NAMES[int(str(found.lastgroup)[1:])]
        order = scale_order(row.order)
        meaning = [*_lines(order, row.block), *_source(order)]
        yield Reading(f"{found[0]}, the scale order {order} ({row.owner})", *found.span(), meaning)


def scale_type_readings(text: str) -> Iterator[Reading]:
    """Configurations of CUTLASS and the type of scales."""
    for found in some(_CONFIG.finditer(text)):
        block = int(found[2])
        if block not in (16, 32):
            meaning = [f"{block} elements a scale: tcgen05 and mma.sync have scales of 16 and 32 elements"]
            yield Reading(f"{found[0]}: a configuration of CUTLASS that no instruction reads", *found.span(), meaning)
            continue
        turned = "MN" in found[0].partition(",")[2] and found[1] != "Config"
        meaning = [f"SfAtom: {_swapped(sf_atom(block)) if turned else sf_atom(block)}"]
        if turned:
            meaning.append("MN-major: the scales run along M; tile_to_shape(SfAtom, (M,N,L), Step<_1,_2,_3>)")
        else:
            meaning.append(
                "tile_to_shape(SfAtom, (M,K,L), Step<_2,_1,_3>): tiles of 128 rows x 4 scales, along K first"
            )
            meaning += _lines(scale_order("32_4_4"), block)
        yield Reading(f"{found[0]}, scales of SM100, SM103 and SM120 in CUTLASS", *found.span(), meaning)
    for found in some(_BLOCKWISE.finditer(text)):
        rows, columns = int(found[2]), int(found[4])
        k_major = re.search(r"Major::K\b", found[5]) is not None
        form = fp8((rows, columns), scales="linear" if k_major else "mn_major")
        meaning = [
            f"float32 scales of A, one for {rows} rows x {columns} columns, {'K' if k_major else 'MN'}-major",
            f"as a layout {_SIZES}: {form.scale_layout(256, 512)} (C++ appends the batch)",
            f"here: cute.formats.{form!r}; of B, one for {found[3]} x {found[4]}",
        ]
        yield Reading(f"{found[0]}, blockwise scales of CUTLASS", *found.span(), meaning)
    for found in some(_ATOM.finditer(text)):
        meaning = [
            f"of 16 elements a scale: {sf_atom(16)}",
            f"of 32 elements a scale: {sf_atom(32)}",
            "128 rows x 4 scales in 512 bytes: rows 32 apart lie side by side, each with its 4 scales along K",
            *_lines(scale_order("32_4_4"), 32)[1:],
        ]
        yield Reading(f"{found[0]}, the tile of scales of SM100 in CUTLASS", *found.span(), meaning)


def exponent_readings(text: str) -> Iterator[Reading]:
    """The type of the scales of MX formats, once."""
    if (found := E8M0.search(text)) is not None:
        yield Reading(f"{found[0]}, a power of two", *found.span(), E8M0_LINES)


E8M0_LINES: Final = (
    "an exponent of 8 bits, no sign, no mantissa: code e is 2^(e - 127), 255 is NaN; no zero, no infinity",
    "PTX rounds to it toward zero or up (cvt.rz, cvt.rp, sm_100 and newer), never to the nearest",
    "0xFF in the padding of scales is NaN, and 0 x NaN is NaN",
    "it is the scale of MXFP8, MXFP6 and MXFP4, one for 32 elements: cute.formats.mxfp8()",
)


def _swapped(layout: Layout) -> Layout:
    shape, stride = layout.shape, layout.stride
    return Layout((shape[1], shape[0]), (stride[1], stride[0]))  # type: ignore[index]


@dataclass(frozen=True, slots=True)
class ScaleError:
    """An error about scales: its pattern, what it means, and what works, from its numbers."""

    pattern: str
    program: str
    meaning: str
    change: str = ""
    compute: Callable[[Sequence[int]], str] | None = None


def _padded_count(numbers: Sequence[int]) -> str:
    """Which padding explains the wanted and the given count."""
    want, have = numbers[:2]
    if have < want:
        return f"{want - have} scales are missing: pad rows to 128 and the scales of a row to 4"
    if have == 2 * want:
        return "twice as many: of packed float4 it counts K in bytes (torch before #176357), or V is 16 and not 32"
    return f"{have - want} scales too many"


def _rows_of_128(numbers: Sequence[int]) -> str:
    return f"{numbers[0]} rows become {-(-numbers[0] // 128) * 128}" if numbers else ""


ERRORS: Final = (
    ScaleError(
        r"(?:For blockwise scaling|for MX scaling|for (?:single-level )?NV scaling),? scale_a (?:should|must) have "
        r"([0-9]+)(?: elements, got | \(got: )([0-9]+)",
        "torch.nn.functional.scaled_mm",
        "scale_a has {1} scales, and 32_4_4 of this size has {0}: round_up(M, 128) x round_up(ceil(K / V), 4)",
        "cute.copy(scaled, formats.mxfp8(scales='32_4_4')).scales has the padding",
        _padded_count,
    ),
    ScaleError(
        r"For Block[wW]ise 1x(32|16) scaling,[^\n]{0,120}?scale_a should have ([0-9]+) elements and "
        r"scale_b should have ([0-9]+) elements",
        "torch._scaled_mm",
        "of 1x{0} blocks it wants {1} and {2} scales: 32_4_4, padded to 128 rows and 4 scales a row",
        "formats.mxfp8() (1x32) or formats.nvfp4() (1x16): scale_size(M, K)",
    ),
    ScaleError(
        r"For BlockWise 1x128 scaling,[^\n]{0,120}?scale_a should be \(([0-9]+), ([0-9]+)\)[^\n]{0,80}outer-dim-major",
        "torch._scaled_mm",
        "of 1x128 blocks scale_a is ({0}, {1}), outer-dim-major: stride 1 along M",
        "formats.fp8((1, 128), scales='mn_major')",
    ),
    ScaleError(
        r"scale a must have shape \[([0-9]+), ([0-9]+)\] \(got: [^\n]{0,120}stride \[1, ([0-9]+)\]",
        "torch.nn.functional.scaled_mm",
        "scales of ({0}, {1}) with stride 1 along M and {2} along K: mn_major",
        "formats.fp8((1, 128), scales='mn_major')",
    ),
    ScaleError(
        r"scale_([ab]) must have shape ([0-9]+) x ([0-9]+) Float elements, got \[([0-9]+), ([0-9]+)\]",
        "torch.nn.functional.scaled_mm",
        "the shape of the scales is ({3}, {4}); it wants ({1}, {2})",
        "exchange the two modes if they are exchanged: formats.check(data, scales, format, shape) says so",
    ),
    ScaleError(
        r"the last dimension of shape (?:torch\.Size\(\[)?[0-9, ()\[\]]*\)? must be divisible by block_size ([0-9]+)",
        "torchao.to_mx",
        "K must be a multiple of the block of {0} elements; torchao does not pad",
        "cute.copy(x, formats.mxfp8()) pads K with zeros; or pad x",
    ),
    ScaleError(
        r"K dim must be divisible by block_size",
        "torchao.nvfp4_quantize",
        "K must be a multiple of 16; torchao does not pad",
        "cute.copy(x, formats.nvfp4()) pads K with zeros; or pad x",
    ),
    ScaleError(
        r"(Row|Column) slicing of NVFP4Tensor with swizzled scales requires",
        "torchao",
        "a slice of scales in 32_4_4 must begin and end at a tile: 128 rows, 64 columns (4 scales of 16)",
        "order the scales linearly: cute.copy(scaled, format.with_(scales='linear')); slice, and order them again",
    ),
    ScaleError(
        r"assert M % 128 == 0|(?:rows|M)\D{0,20}(?:must be|is not)\D{0,20}(?:divisible by|multiple of) 128",
        "FlashInfer, vLLM",
        "scales in 32_4_4 come in tiles of 128 rows, and the rows of this shard do not fill whole tiles",
        "pad the rows to a multiple of 128, or shard at multiples of 128",
    ),
    ScaleError(
        r"Only TRTLLM FP4 GEMM supports 8x4 scale factor layout",
        "FlashInfer",
        "the scales are in the order 8x4, and this backend reads 128x4, which is 32_4_4",
        "backend='trtllm', or cute.copy(scaled, formats.nvfp4(scales='32_4_4')): the data stays as it is",
    ),
    ScaleError(
        r"(?:cute_dsl|b12x) FP4 GEMM only supports 128x4 scale factor layout",
        "FlashInfer",
        "this backend reads scales in 128x4, which is 32_4_4",
        "cute.copy(scaled, formats.nvfp4(scales='32_4_4')): the data stays as it is",
    ),
    ScaleError(
        r"([ab])_(?:de)?scale must be a (uint8|float32) tensor, (?:but )?got",
        "FlashInfer",
        "the scales have another type: bytes (uint8) hold ue8m0 or e4m3, float32 holds amax / max",
        "scales.view(uint8) of ue8m0 or e4m3 has the same bytes",
    ),
    ScaleError(
        r"V-scale swizzling requires page_size % 4 == 0 and head_dim % 64 == 0, got page_size=([0-9]+), "
        r"head_dim=([0-9]+)",
        "FlashInfer",
        "V's scales lie in tiles of 4 tokens x 4 scales (vllm_v_4x4); page_size {0}, head_dim {1} must hold them",
        "page_size a multiple of 4, head_dim a multiple of 64",
    ),
    ScaleError(
        r"scaling mode for (?:A|B|C|D) scale \((VEC(?:16|32)_UE\w+)\) requires a custom pointer",
        "cuBLASLt",
        "{0} reads its scales from memory, and no address was set",
        "set CUBLASLT_MATMUL_DESC_A_SCALE_POINTER (B, D_OUT) to scales in 32_4_4, 16-byte aligned",
    ),
    ScaleError(
        r"(?:scale_major_mode is required in CUTLASS)",
        "FlashInfer",
        "blockwise scales are K-major or MN-major, and the call does not say which",
        "'K' is formats.fp8((1, 128), scales='linear'), 'MN' scales='mn_major'",
    ),
    ScaleError(
        r"scale_granularity_mnk must be \(1, 128, 128\)",
        "FlashInfer",
        "TensorRT-LLM reads one scale for 1 x 128 of A and 128 x 128 of B",
        "formats.fp8((1, 128)) and formats.fp8((128, 128))",
    ),
    ScaleError(
        r"Unknown SF transformation|sf\.stride\(-1\) == get_tma_aligned_size",
        "DeepGEMM",
        "the scales are in an order that this GPU's kernels do not read",
        "SM90: formats.fp8((1, 128), scales='deepgemm_sm90'); SM100: rule='rceil', scales='deepgemm_sm100'",
    ),
)  # fmt: skip


def error_readings(text: str) -> Iterator[Reading]:
    """Error texts about scales."""
    for row in ERRORS:
        for found in some(re.finditer(row.pattern, text), 8):
            groups = [group or "" for group in found.groups()]
            numbers = [int(group) for group in groups if group.isdigit()]
            more = [row.compute(numbers)] if row.compute is not None else []
            meaning = [row.meaning.format(*groups), *filter(None, more)]
            changes = [row.change] if row.change else []
            yield Reading(f"An error of {row.program} about scales", *found.span(), meaning, changes=changes)


def read_formats(text: str) -> list[Reading]:
    """Everything about block scales in a text.

    >>> read_formats("SWIZZLE_32_4_4")[0].kind
    'SWIZZLE_32_4_4, the scale order 32_4_4 (torch.nn.functional.SwizzleType, torchao)'
    """
    taken: list[Reading] = []
    readers = error_readings, scale_type_readings, order_readings, exponent_readings
    for reading in [reading for read in readers for reading in read(text)]:
        if all(reading.end <= other.begin or reading.begin >= other.end for other in taken):
            taken.append(reading)
    return taken


_LAYOUT_TEXT: Final = 4000


def format_name_text(text: str) -> str | None:
    """The text of a name, of a type, or of a printed layout that is one of the orders, if the text is nothing else.

    >>> print(format_name_text("float8_e8m0fnu").splitlines()[0])
    float8_e8m0fnu, a power of two
    """
    bare = text.strip()
    if not bare or len(bare) > _LAYOUT_TEXT:
        return None
    if E8M0.fullmatch(bare):
        return str(Reading(f"{bare}, a power of two", 0, len(bare), E8M0_LINES))
    if "32" not in bare:
        return None
    atom = scale_atom_of(bare)
    if atom is None:
        return None
    block, layout = atom
    head = f"{layout}, the tile of scales of SM100: SfAtom of {block} elements a scale"
    meaning = ["128 rows x 4 scales in 512 bytes; stride 0: the elements of a block share a scale"]
    return str(Reading(head, 0, len(bare), [*meaning, *_lines(scale_order("32_4_4"), block)]))


def scale_atom_of(text: str) -> tuple[int, Layout] | None:
    """The block and the layout, if a text is SfAtom's shape or layout, as C++ types or as printed."""
    spelled = re.sub(r"\s+", "", text)
    spelled = re.sub(r"(?:cute::)?(?:C|Int|constant<int)[<,]([0-9]+)>+?(?=[,>)])", r"_\1", spelled)
    for block in (16, 32):
        atom = sf_atom(block)
        shape = f"Shape<Shape<_32,_4>,Shape<_{block},_4>>"
        tupled = f"cute::tuple<cute::tuple<_32,_4>,cute::tuple<_{block},_4>>"
        strides = "cute::tuple<cute::tuple<_16,_4>,cute::tuple<_0,_1>>"
        if spelled in (shape, tupled, f"cute::Layout<{tupled},{strides}>", f"Layout<{tupled},{strides}>"):
            return block, atom
        if spelled.startswith(f"Layout<{shape},Stride<Stride<_16,_4>,Stride<_0,_1>>"):
            return block, atom
    if not spelled.startswith("((_32"):
        return None
    try:
        thing = parse(text.strip())
    except CuteError:
        return None
    return next(((b, sf_atom(b)) for b in (16, 32) if thing == sf_atom(b)), None)
