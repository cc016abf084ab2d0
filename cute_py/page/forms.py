"""The tabs of the page as data: fields with their labels and choices, defaults, and examples."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from cute_py.draw.explorer_answer import DEFAULTS, EXAMPLES
from cute_py.dtypes import DTYPES
from cute_py.tma.atom.op import FORMAT_OF, OPS
from cute_py.tma.descriptor.limits import ARCHITECTURES


@dataclass(frozen=True, slots=True)
class Field:
    """One input of a form.

    Attributes:
        kind: text, area (several lines), choice, check, or list (a text with suggestions).
        half: whether the field shares a row of the form with the next field.
        choices: pairs of a value and its label; for the kind 'list', the suggestions.
        only: the values of the form's field 'kind' that this field is shown for, separated by blanks; empty: all.
    """

    name: str
    label: str
    note: str = ""
    kind: str = "text"
    half: bool = False
    choices: tuple[tuple[str, str], ...] = ()
    only: str = ""


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab of the page: its form, its examples, and the module that answers it."""

    name: str
    title: str
    purpose: str
    fields: tuple[Field, ...]
    defaults: dict[str, str]
    examples: tuple[tuple[str, dict[str, str]], ...]
    module: str

    def label_of(self, name: str) -> str:
        """The label of a field, by its name."""
        return next((field.label for field in self.fields if field.name == name), name)

    def as_json(self) -> dict[str, Any]:
        """The data that the page builds the form from."""
        fields = [asdict(field) for field in self.fields]
        examples = [{"name": name, "inputs": inputs} for name, inputs in self.examples]
        about = {"name": self.name, "title": self.title, "purpose": self.purpose, "defaults": self.defaults}
        return {**about, "fields": fields, "examples": examples}


def _same(*values: str) -> tuple[tuple[str, str], ...]:
    return tuple((value, value) for value in values)


UNARY: Final = ("coalesce", "complement", "right_inverse", "left_inverse", "flatten", "filter", "nullspace")
DIVIDES: Final = ("logical_divide", "zipped_divide", "tiled_divide", "flat_divide")
PRODUCTS: Final = (
    "logical_product", "zipped_product", "tiled_product", "flat_product", "blocked_product", "raked_product",
)  # fmt: skip
OPERATIONS: Final = ("none", "composition", *DIVIDES, *PRODUCTS, *UNARY)

_DTYPES: Final = _same(*(row.name for row in DTYPES if row.bits >= 8))
_TMA_TYPES: Final = _same(*(row.name for row in DTYPES if row.bits >= 8 and FORMAT_OF.get(row.name) is not None))
_ARCHITECTURES: Final = _same("sm_90a", *(f"{row.name}a" for row in ARCHITECTURES[1:]))
_NUMBERS: Final = Field(
    "static", "read sizes as static (4 as _4), as a constant of C++", kind="check", choices=(("1", ""),)
)

_SWIZZLED: Final = "Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)"

LAYOUT: Final = Tab(
    "layout",
    "Layout",
    "The offsets of a layout, and the algebra of layouts step by step.",
    (
        Field("layout", "Layout A", "as CuTe prints it, or C++", "area"),
        Field("op", "Operation", "", "choice", True, _same(*OPERATIONS)),
        Field("color", "Colours say", "", "choice", True, _same("value", "thread", "bank")),
        Field("operand", "B", "a layout, a tiler such as (2,4), or a number", "area"),
        _NUMBERS,
    ),
    {"layout": "((2,2),4):((1,8),2)", "op": "none", "operand": "", "color": "value", "static": "1"},
    (
        ("nested modes", {"layout": "((2,2),4):((1,8),2)"}),
        ("composition", {"layout": "(20,2):(16,4)", "op": "composition", "operand": "(4,5):(1,4)"}),
        ("complement", {"layout": "4:2", "op": "complement", "operand": "24"}),
        ("logical divide", {"layout": "(4,2,3):(2,1,8)", "op": "logical_divide", "operand": "4:2"}),
        ("zipped divide by a tiler", {"layout": "(9,(4,8)):(59,(13,1))", "op": "zipped_divide",
                                      "operand": "(3:3,(2,4):(1,8))"}),
        ("blocked product", {"layout": "(2,5):(5,1)", "op": "blocked_product", "operand": "(3,4):(1,3)"}),
        ("raked product", {"layout": "(2,5):(5,1)", "op": "raked_product", "operand": "(3,4):(1,3)"}),
        ("left inverse", {"layout": "(4,8):(1,5)", "op": "left_inverse"}),
        ("coalesce", {"layout": "(2,(1,6)):(1,(6,2))", "op": "coalesce"}),
        ("swizzled", {"layout": "Sw<2,0,3> o _0 o (8,8):(8,1)"}),
        ("coordinates", {"layout": "(4,5):(_1@0,_1@1)"}),
        ("error: not divisible", {"layout": "(6,2):(8,2)", "op": "composition", "operand": "8:1"}),
    ),
    "algebra",
)  # fmt: skip

BANKS: Final = Tab(
    "banks",
    "Swizzle and banks",
    "The bank conflicts of an access to shared memory, and the swizzles that remove them.",
    (
        Field("layout", "Tile in shared memory", "(row, column) to element", "area"),
        Field("swizzle", "Swizzle", "if the layout has none: Sw<3,4,3> or 128B", half=True),
        Field("on", "It moves", "", "choice", True, (("bytes", "bytes (TMA, ldmatrix)"), ("elements", "elements"))),
        Field("dtype", "Element type", "", "list", True, _DTYPES),
        Field("width", "Bits at once", "per thread; empty: the widest", half=True),
        Field("access", "Access", "row, column, ldmatrix, thread, or a thread-value layout", "list",
              choices=_same("row", "column", "ldmatrix", "thread")),
        _NUMBERS,
    ),
    {"layout": "(8,64):(64,1)", "swizzle": "", "on": "bytes", "dtype": "float16", "access": "ldmatrix", "width": "",
     "static": "1"},
    (
        ("ldmatrix of a plain tile", {"layout": "(8,64):(64,1)"}),
        ("the same with 128B", {"layout": "(8,64):(64,1)", "swizzle": "128B"}),
        ("a column of 32 x 32 floats", {"layout": "(32,32):(32,1)", "dtype": "float32", "access": "column"}),
        ("padded by one float", {"layout": "(32,32):(33,1)", "dtype": "float32", "access": "column"}),
        ("a swizzled tile as TMA writes it", {"layout": _SWIZZLED}),
        ("a swizzle of elements", {"layout": "Sw<3,3,3> o _0 o (8,64):(64,1)", "access": "column"}),
        ("error: rows of 12 halves", {"layout": "(8,12):(12,1)", "access": "ldmatrix"}),
    ),
    "banks",
)  # fmt: skip

THREADS: Final = Tab(
    "threads",
    "Threads",
    "The thread and the value of each element, of MMA and copy atoms and of tiled operations.",
    (
        Field("kind", "What", "", "choice", choices=(("mma", "MMA, tiled"), ("copy", "copy, tiled"),
                                                     ("tv", "a thread-value layout"))),
        Field("atom", "Atom", "such as SM80_16x8x16_F32F16F16F32_TN, SM75_U32x4_LDSM_N", "area", only="mma copy"),
        Field("atoms", "Atoms", "along M, N, K: (2,2,1)", half=True, only="mma"),
        Field("permutation", "Permutation", "(32,32,16)", half=True, only="mma"),
        Field("threads", "Threads", "(16,8):(8,1)", half=True, only="copy"),
        Field("values", "Values", "(1,8)", half=True, only="copy"),
        Field("dtype", "Element type", "", "list", True, _DTYPES, only="copy"),
        Field("tile", "Tile", "(8,8)", half=True, only="tv"),
        Field("layout", "Thread-value layout", "(thread, value) to element", "area", only="tv"),
    ),
    {"kind": "mma", "atom": "SM80_16x8x16_F32F16F16F32_TN", "atoms": "", "permutation": "", "threads": "",
     "values": "", "dtype": "float16", "tile": "", "layout": ""},
    (
        ("m16n8k16", {}),
        ("2 x 2 atoms", {"atoms": "(2,2,1)"}),
        ("m8n8k4 of doubles", {"atom": "SM80_8x8x4_F64F64F64F64_TN"}),
        ("wgmma m64n16k16", {"atom": "SM90_64x16x16_F32F16F16_SS"}),
        ("ldmatrix x4", {"kind": "copy", "atom": "SM75_U32x4_LDSM_N"}),
        ("16 bytes a thread", {"kind": "copy", "atom": "UniversalCopy<uint128_t>", "threads": "(16,8):(8,1)",
                               "values": "(1,8)"}),
        ("a thread-value layout", {"kind": "tv", "layout": "((4,8),(2,2)):((16,1),(8,32))", "tile": "(8,16)"}),
        ("error: no such atom", {"atom": "SM80_16x8x15_F32F16F16F32_TN"}),
    ),
    "threads",
)  # fmt: skip

TMA: Final = Tab(
    "tma",
    "TMA",
    "The tensor map and the instructions of a copy between global and shared memory.",
    (
        Field("gmem", "Global tensor", "layout in elements, or the tensor as it prints", "area"),
        Field("dtype", "Element type", "", "list", True, _TMA_TYPES),
        Field("internal", "Counted in", "if another", "list", True, _TMA_TYPES),
        Field("smem", "Tile in shared memory", "static: _64; with a swizzle or plain", "area"),
        Field("tile", "Tile", "if another shape: (64,64)", half=True),
        Field("address", "Address", "bytes", half=True),
        Field("op", "Operation", "", "choice", False, _same(*(str(op) for op in OPS))),
        Field("multicast", "CTAs", "that share it", half=True),
        Field("arch", "Architecture", "", "choice", True, _ARCHITECTURES),
        Field("at", "Tile drawn", "number, from 0", half=True),
        Field("split", "cut boxes above 256 into several instructions", kind="check", choices=(("1", ""),)),
    ),
    {**DEFAULTS, "gmem": EXAMPLES[0][1]["gmem"], "smem": EXAMPLES[0][1]["smem"], "tile": ""},
    EXAMPLES,
    "tma",
)

FORMATS: Final = Tab(
    "formats",
    "Formats",
    "The places of the scales of block-scaled formats.",
    (
        Field("format", "Format", "", "choice", True, _same("mxfp8", "mxfp6", "mxfp4", "nvfp4", "fp8")),
        Field("block", "Block", "fp8: row, column, tensor, or (1,128)", half=True),
        Field("scales", "Order of scales", "empty: the format's own", "list", choices=_same(
            "32_4_4", "8x4", "linear", "mn_major", "triton_blackwell", "triton_hopper", "rocm_32_8", "deepgemm_sm90",
            "deepgemm_sm100", "vllm_v_4x4")),
        Field("M", "M", "rows", half=True),
        Field("K", "K", "columns", half=True),
        Field("axis", "Scales along", "", "choice", True, (("-1", "K (rows)"), ("0", "M (columns)"))),
    ),
    {"format": "mxfp8", "block": "", "scales": "", "M": "128", "K": "128", "axis": "-1"},
    (
        ("MXFP8", {}),
        ("NVFP4", {"format": "nvfp4", "K": "128"}),
        ("FP8 of DeepGEMM", {"format": "fp8", "block": "(1,128)", "scales": "deepgemm_sm90", "K": "512"}),
        ("MXFP4 on Hopper, Triton", {"format": "mxfp4", "scales": "triton_hopper", "K": "128"}),
        ("8x4 tiles", {"scales": "8x4", "M": "32", "K": "256"}),
        ("scales in rows", {"scales": "linear", "M": "64"}),
        ("error: unknown order", {"scales": "128x5"}),
    ),
    "formats",
)  # fmt: skip

EXPLAIN: Final = Tab(
    "explain",
    "Explain",
    "Paste a layout, an atom, a descriptor, PTX, or the error of a compiler, a driver or a framework.",
    (Field("text", "Text", "any text that CuTe, CUDA, Triton or this library prints", "area"),),
    {"text": "CUDA_ERROR_INVALID_VALUE"},
    (
        ("an error of the driver", {"text": "CUDA_ERROR_INVALID_VALUE"}),
        ("a layout", {"text": "((2,2),4):((1,8),2)"}),
        ("a static assertion", {"text": 'static assertion failed with "TiledCopy uses too few thrs for selected '
                                        'CopyAtom"'}),
        ("an MMA atom", {"text": "SM90_64x128x16_F32F16F16_SS"}),
        ("a swizzled pointer", {"text": _SWIZZLED}),
        ("a layout of Triton", {"text": "#ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], "
                                        "warpsPerCTA = [4, 1], order = [1, 0]}>"}),
        ("a term", {"text": "G-basis"}),
        ("PTX", {"text": "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                         "[%r1], [%rd1, {%r2, %r3}], [%r4];"}),
        ("error: nothing is known", {"text": "zzz"}),
    ),
    "explain",
)  # fmt: skip

TABS: Final[dict[str, Tab]] = {tab.name: tab for tab in (LAYOUT, BANKS, THREADS, TMA, FORMATS, EXPLAIN)}
