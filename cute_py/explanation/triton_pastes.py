"""Error texts of Triton, TileLang and CuTe DSL on TMA, and the layouts that Triton prints.

A message states its rule and mostly its numbers; the table below has how each is recognised, the rule (one of tensor
maps, or the program's own) and the change that follows from the numbers. A message that is not in the table is read
by what it demands: an alignment, a power of two, a contiguous mode, a rank, a size of the box.

A linear layout is bases: bit i of register, lane, warp or block moves to one point of the tensor; a basis of zeros
moves nowhere, so that both values of the bit hold the same element.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import counted
from cute_py.explanation.readings import Reading, some
from cute_py.tma.descriptor.limits import BY_NAME

_TRITON: Final = "Triton, tensor descriptors"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a program.

    Attributes:
        pattern: how it is recognised; groups are its numbers. rule: the rule of a tensor map, or a name of its own.
        text: what it means, `{0}` its first group; change: (numbers) -> what works instead.
    """

    pattern: str
    rule: str
    text: str
    change: Callable[[Sequence[int]], str] | None = None


def _at_least(numbers: Sequence[int]) -> str:
    width = numbers[1] if len(numbers) > 1 and numbers[1] else 1
    least = -(-16 // width)
    return f"a last block dimension of at least {least}: {least} elements x {width} bytes = {least * width} bytes"


def _power(numbers: Sequence[int]) -> str:
    return (
        "powers of 2 for every block dimension (32, 64, 128, ...); let the descriptor fill what hangs over the tensor"
    )


def _box_row(numbers: Sequence[int]) -> str:
    edge, bits = (*numbers, 0, 0)[:2]
    if not bits or bits > 128:
        return ""
    unit = max(1, 128 // bits)
    fitted = max(unit, -(-edge // unit) * unit)
    return f"boxDim[0] = {fitted}: {fitted} x {bits} bits = {fitted * bits // 8} bytes"


def _span(numbers: Sequence[int]) -> str:
    span, _, bits = (*numbers, 0, 0, 0)[:3]
    return f"boxDim[0] = {span * 8 // bits} elements = {span} bytes, or a wider swizzle" if bits else ""


MESSAGES: Final[tuple[Message, ...]] = (
    Message(
        r"block shape must have at least 16 bytes in the last dimension, but got ([0-9]+) \* ([0-9]+) = ([0-9]+) bytes",
        "inner_bytes",
        "the innermost box is {0} elements x {1} bytes = {2} bytes, and must be at least 16",
        _at_least,
    ),
    Message(
        r"boxDim\[0\] \* elementSize must be a multiple of 16 bytes[^\n]*but got ([0-9]+) \* ([0-9]+) bits",
        "inner_bytes",
        "the innermost box is {0} x {1} bits; it must be a multiple of 16 bytes",
        _box_row,
    ),
    Message(
        r"boxDim\[0\] \* elementSize must be <= swizzle span \(([0-9]+) bytes\)[^\n]*but got ([0-9]+) \* ([0-9]+) bits",
        "inner_span",
        "a row of the box is {1} x {2} bits, and the swizzle permutes {0} bytes",
        _span,
    ),
    Message(r"boxDim\[([0-9])\] must be <= 256, but got ([0-9]+)", "box", "boxDim[{0}] = {1}; at most 256 elements",
            lambda n: f"boxDim[{n[0]}] = {next(k for k in range(256, 0, -1) if n[1] % k == 0)}, several copies a tile"),
    Message(r"boxDim\[([0-9])\] must be non-zero", "box", "boxDim[{0}] = 0; at least 1 element"),
    Message(r"elementStrides\[([0-9])\] must be in \[1, 8\], but got ([0-9]+)", "element_stride",
            "elementStrides[{0}] = {1}; must be 1 to 8"),
    Message(r"globalDim\[([0-9])\] must be non-zero", "size", "globalDim[{0}] = 0: an empty tensor has no map"),
    Message(r"globalDim\[([0-9])\] must be <= 2\^32, but got ([0-9]+)", "size", "globalDim[{0}] = {1}; at most 2**32"),
    Message(
        r"globalStrides?\[([0-9])\][^\n]*?= ([0-9]+)\) must be a multiple of ([0-9]+) bytes",
        "stride_alignment",
        "globalStrides[{0}] = {1} bytes; must be a multiple of {2}",
        lambda n: f"pad the row: {-(-n[1] // n[2]) * n[2]} bytes in place of {n[1]}",
    ),
    Message(r"globalStrides?\[([0-9])\][^\n]*?= ([0-9]+)\) must be < 2\^40", "stride_range",
            "globalStrides[{0}] = {1} bytes; must be below 2**40 (a negative stride shows as a huge one)"),
    Message(r"globalStrides?\[([0-9])\][^\n]*must be non-zero", "stride 0",
            "globalStrides[{0}] = 0: the driver takes it (a broadcast), TileLang does not"),
    Message(r"globalAddress must be ([0-9]+)-byte aligned, but mod[0-9]+=([0-9]+)", "address_alignment",
            "the base address must be a multiple of {0} bytes and is {1} bytes beyond one",
            lambda n: f"begin {n[1]} bytes earlier, or copy the view to memory of its own"),
    Message(r"globalAddress must be non-null", "null address", "the base address is null: nothing was allocated"),
    Message(r"tensorMap (?:address )?must be (?:64-byte aligned|non-null)", "map alignment",
            "the map itself must lie at a multiple of 64 bytes (128 since CUDA 13): alignas(64) CUtensorMap"),
    Message(r"tensorRank must be in \[1, 5\], but got ([0-9]+)", "rank", "a map has 1 to 5 modes, not {0}"),
    Message(r"tensorRank must be >= 3 when interleave", "rank_interleave", "interleave needs 3 modes or more"),
    Message(r"swizzle must be CU_TENSOR_MAP_SWIZZLE_32B when", "interleave 32B",
            "interleave 32B is documented to go with swizzle 32B"),
    Message(r"OOB_FILL_NAN\w* can only be used with floating", "nan_fill", "an integer type has no NaN to fill with"),
    Message(r"(?:tensorDataType|data type)[^\n]{0,40}not (?:a )?supported", "data_type",
            "tensor maps have no format for this element type: move the bits as an integer of its width"),
    Message(r"(?:descriptor )?gather must have at least ([0-9]+) rows, but got \D*([0-9]+)", "gather rows",
            "a gather takes at least {0} rows and {1} were given: two gather4 instructions or more",
            lambda n: f"{n[0]} offsets or more; repeat the last one, or load {n[1]} rows without TMA"),
    Message(r"(?:descriptor )?scatter must have at least ([0-9]+) rows, but got \D*([0-9]+)", "scatter rows",
            "a scatter takes at least {0} rows and {1} were given", lambda n: f"{n[0]} offsets or more"),
    Message(r"(?:gather|scatter) of (?:\S+) must have at least ([0-9]+) columns, but got ([0-9]+)", "gather columns",
            "a row of a gather or scatter has at least 32 bytes: {0} columns of this type, not {1}",
            lambda n: f"a block of [1, {n[0]}] or wider"),
    Message(r"descriptor block must have (?:exactly )?1 row, but got \D*([0-9]+)", "gather block",
            "the block of a gather or scatter is one row: the offsets name the rows",
            lambda _: "block_shape=[1, columns]"),
    Message(r"descriptor must be 2D, but got", "gather rank", "gather and scatter take maps of 2 modes"),
    Message(r"x[ _]offsets must be 1D|x offsets must have dtype", "gather offsets",
            "the rows of a gather are one vector of int16 or int32"),
    Message(r"Shape element ([0-9]) must be a power of 2", "power of 2",
            "block dimension {0} is not a power of 2: Triton's own rule, the hardware takes 1 to 256", _power),
    Message(r"expected ([0-9]+) offsets?, but got ([0-9]+)", "offsets",
            "the descriptor has {0} modes and {1} offsets were given: one for each mode, outermost first",
            lambda n: f"{n[0]} offsets"),
    Message(r"Expected (?:1 <= ndim <= 5|ndim in range \[1, 5\]) but got ([0-9]+)", "rank",
            "a map has 1 to 5 modes, not {0}", lambda _: "merge modes that continue each other, or view fewer"),
    Message(r"Expected ([0-9]+) strides but got ([0-9]+)", "length", "{0} modes need {0} strides, {1} were given",
            lambda n: f"{n[0]} strides"),
    Message(r"Expected block_shape to have ([0-9]+) dimensions but got ([0-9]+)", "length",
            "{0} modes need a block of {0} dimensions, {1} were given", lambda n: f"a block of {n[0]} dimensions"),
    Message(r"last dim(?: stride)? must be 1 but got (-?[0-9]+)", "contiguous mode",
            "the last dimension has stride {0}; TMA's innermost mode has stride 1",
            lambda _: "transpose the view so that the contiguous mode is last, or x.contiguous()"),
    Message(r"Last dimension must be contiguous", "contiguous mode",
            "the last stride is not 1; TMA's innermost mode has stride 1",
            lambda _: "transpose the view so that the contiguous mode is last, or x.contiguous()"),
    Message(r"strides must be 16-byte aligned", "stride_alignment",
            "a stride but the last, in bytes, is not a multiple of 16",
            lambda _: "pad the row: a multiple of 8 elements of 16 bits, 4 of 32 bits, 16 of 8 bits"),
    Message(r"base must be 16-byte aligned", "address_alignment",
            "the tensor begins at an address that is not a multiple of 16: a view at an odd offset",
            lambda _: "begin the view at a multiple of 16 bytes, or clone() it; put the offset into the coordinates"),
    Message(r"shape must be positive", "size", "a dimension is 0 (or negative): an empty tensor has no map; "
    "sizes are 1 to 2**32",
            lambda _: "launch nothing where a dimension is 0"),
    Message(r"rank mismatch", "length", "shape, strides and block_shape have different lengths; one entry for "
    "each mode"),
    Message(r"swizzling_?Byte_?Width\W{0,3}([0-9]+) does not fit[^\n]{0,60}?([0-9]+) bytes", "inner_span",
            "a row of {1} bytes holds no pattern of {0} bytes: the contiguous block is at least the swizzle's span",
            lambda n: f"a contiguous block of {n[0]} bytes or more, or a swizzle of {n[1]} bytes"),
    Message(r"has no attribute '(?:make_tensor_descriptor|_?experimental_make_tensor_descriptor)'", "version",
            "this Triton is older than its tensor descriptors: tl.make_tensor_descriptor came with Triton 3.4",
            lambda _: "Triton 3.4 or later; before it, tl._experimental_make_tensor_descriptor (3.3)"),
    Message(r"rank must not be zero|rank cannot be more than 5|(?:rank|ndim) must be (?:between 1 and 5|<= ?5)",
            "rank", "a map has 1 to 5 modes"),
    Message(r"(?:Illegal value for padding|Padding option `?nan`? is (?:only supported|not supported))", "nan_fill",
            "NaN padding needs a floating-point type; 'zero' works for all"),
    Message(r"int1 type is not supported", "data_type", "there is no format of 1 bit; use 8-bit integers"),
    Message(r"numel \(?([0-9]+)\)? exceeds triton maximum", "block size", "a block of {0} elements is above "
    "Triton's limit"),
    Message(r"out of resource: shared memory, Required: ([0-9]+), Hardware limit: ([0-9]+)", "box_bytes",
            "{0} bytes of shared memory are asked for, a block has {1}",
            lambda n: f"fewer stages or a smaller block: {n[0] - n[1]} bytes less"),
    Message(r"Please set allocator|requires? a (?:global )?(?:memory )?allocator|no allocator was set", "allocator",
            "device-side descriptors are written to global memory that the host allocates",
            lambda _: "triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, "
            "device='cuda'))"),
)  # fmt: skip
"""Messages of Triton and TileLang, the more specific ones first."""

_GENERAL: Final[tuple[tuple[str, str, str], ...]] = (
    (r"power[- ]of[- ](?:2|two)", "power of 2", "a size must be a power of 2"),
    (r"(?:base|pointer|address|data_ptr)[^\n]{0,40}(?:align|multiple of (?:16|32))", "address_alignment",
     "the base address must be aligned, to 16 bytes (32 with interleave 32B)"),
    (r"stride[^\n]{0,60}(?:align|multiple of|divisible by) ?(?:16|32)?", "stride_alignment",
     "strides in bytes, but that of the contiguous mode, must be a multiple of 16"),
    (r"(?:last|inner(?:most)?|contiguous)[^\n]{0,30}(?:dim|mode|stride|axis)[^\n]{0,30}(?:contiguous|\b1\b|unit)",
     "contiguous mode", "the innermost mode must have stride 1"),
    (r"(?:inner(?:most)?|last)[^\n]{0,40}(?:16|32) ?bytes", "inner_bytes",
     "the innermost box must be a multiple of 16 bytes"),
    (r"box[^\n]{0,40}(?:256|<=|exceed|too large)", "box", "a box has 1 to 256 elements along each mode"),
    (r"(?:rank|ndim|dimensions?)[^\n]{0,30}(?:<= ?5|at most 5|more than 5|in \[1, ?5\]|1 to 5)", "rank",
     "a map has 1 to 5 modes"),
    (r"swizzle[^\n]{0,60}(?:span|inner|<=|exceed|bytes)", "inner_span",
     "a row of the box is at most the span of the swizzle: 32, 64 or 128 bytes"),
    (r"(?:smem|shared memory|shared)[^\n]{0,40}(?:128|1024)[^\n]{0,12}align", "shared-memory address",
     "shared memory must be aligned: 128 bytes, 1024 with the 128B swizzle"),
)  # fmt: skip
"""What a message demands, where the table does not have it: (pattern, rule, text)."""
_IS_ERROR: Final = re.compile(
    r"error|assert|must|expected|failed|invalid|illegal|require|cannot|can't|not supported|exception", re.IGNORECASE
)
_ABOUT_TMA: Final = re.compile(
    r"tma|descriptor|tensor_?map|cp\.async\.bulk|stride|block_shape|boxDim|triton|tilelang|smem", re.IGNORECASE
)


def read_messages(text: str) -> list[Reading]:
    """Every message of Triton, TileLang or another front end on TMA in a text."""
    found: list[Reading] = []
    for row in MESSAGES:
        for match in some(re.finditer(row.pattern, text, re.IGNORECASE), 8):
            if not any(r.begin <= match.start() < r.end for r in found):
                found.append(_message(text, match, row))
    return found


def _message(text: str, match: re.Match[str], row: Message) -> Reading:
    numbers = [int(group) if group and re.fullmatch(r"-?[0-9]{1,18}", group) else 0 for group in match.groups()]
    meaning = row.text.format(*numbers)
    change = row.change(numbers) if row.change is not None and all(abs(n) < 1 << 60 for n in numbers) else ""
    rule = BY_NAME.get(row.rule)
    broken = Diagnostic(row.rule, text=meaning, source=rule.source if rule else _TRITON)
    return Reading(
        _program(text), match.start(), match.end(), tuple(_context(text, match)), (broken,), (change,) if change else ()
    )


def _program(text: str) -> str:
    for mark, name in (
        ("tvm_tensormap", "TileLang"),
        ("tilelang", "TileLang"),
        ("triton", "Triton"),
        ("cutlass", "CuTe DSL"),
    ):
        if mark in text.lower():
            return f"An error of {name}"
    return "An error of Triton or another front end, on a tensor descriptor"


def _context(text: str, match: re.Match[str]) -> list[str]:
    """The message, and what the source line in the text says of the descriptor."""
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    lines = [f"message: {text[begin : end if end >= 0 else len(text)].strip()[:300]}"]
    for name in ("shape", "strides", "block_shape"):
        if given := re.search(rf"\b{name}=(\[[^\]\n]{{0,80}}\])", text):
            lines.append(f"{name} = {given[1]}, outermost first")
    return lines


def read_demands(text: str) -> list[Reading]:
    """What the messages of a text demand, where the table has none of them."""
    return [*_demands(text)]


def _demands(text: str) -> Iterator[Reading]:
    if not (_IS_ERROR.search(text) and _ABOUT_TMA.search(text)):
        return
    for line in some(re.finditer(r"[^\n]{8,500}", text), 200):
        if not _IS_ERROR.search(line[0]):
            continue
        for pattern, rule, meaning in _GENERAL:
            if re.search(pattern, line[0], re.IGNORECASE):
                row = BY_NAME.get(rule)
                broken = Diagnostic(rule, text=meaning, source=row.source if row else "")
                yield Reading(
                    _program(text), line.start(), line.end(), (f"message: {line[0].strip()[:300]}",), (broken,)
                )
                break


# ---- layouts -------------------------------------------------------------------------------------------------------

Bases: TypeAlias = dict[str, list[tuple[int, ...]]]
"""Input dimension -> where each of its bits moves."""

_BASIS: Final = re.compile(
    r"(?:^|[\s-])(?P<name>[a-z_]+)=(?P<index>[0-9]{1,7}) -> \((?P<point>[-0-9, ]{1,60})\)", re.MULTILINE
)
_SINGLE: Final = re.compile(r"- (?P<name>[a-z_]+) is a size 1 dimension")
_OUT: Final = re.compile(r"where out dims are: \[(?P<dims>[^\]\n]{1,200})\]")
_CLASS: Final = re.compile(
    r"(?P<kind>Blocked|DistributedLinear|SharedLinear|Linear|Slice|NVMMADistributed|NVMMAShared|SwizzledShared|PaddedShared)"
    r"(?:Layout|Encoding)?\((?P<body>[^\n]{0,1500})\)"
)
_MLIR: Final = re.compile(
    r"(?:(?P<alias>#\w+)\s*=\s*)?#(?:ttg|triton_gpu|gluon)\.(?P<kind>\w+)\s*<\s*\{(?P<body>[^\n]{0,1500}?)\}\s*>"
)
_PLACES: Final = {"reg": "register", "registers": "register", "lanes": "lane", "warps": "warp", "blocks": "block"}
_NOUNS: Final = {"register": "registers", "lane": "lanes", "warp": "warps", "block": "CTAs", "offset": "offsets"}


def read_triton_layouts(text: str) -> list[Reading]:
    """Every layout of Triton or Gluon in a text: printed linear layouts, classes, MLIR attributes."""
    named = [*some(_CLASS.finditer(text)), *some(_MLIR.finditer(text))]
    made = [_layout_of(match["kind"], match["body"], match.span(), match[0]) for match in named]
    return [*_linear_prints(text), *(reading for reading in made if reading is not None)]


def _linear_prints(text: str) -> Iterator[Reading]:
    matches = some(_BASIS.finditer(text), 400)
    if not matches:
        return
    outs = some(_OUT.finditer(text), 8)
    begin = matches[0].start()
    for i, out in enumerate(outs or [None]):
        end = out.end() if out is not None else matches[-1].end()
        rows = [m for m in matches if begin <= m.start() < end]
        bases: Bases = {}
        for row in rows:
            point = tuple(int(n[:18]) for n in re.findall(r"-?[0-9]+", row["point"]))
            bases.setdefault(_PLACES.get(row["name"], row["name"]), []).append(point)
        for single in some(_SINGLE.finditer(text, begin, end)):
            bases.setdefault(single["name"], [])
        sizes = [int(n[:18]) for n in re.findall(r"size ([0-9]+)", out["dims"])] if out is not None else []
        if rows:
            lines, broken = _linear_facts(bases, sizes)
            yield Reading("A linear layout of Triton", begin, end, tuple(lines), tuple(broken))
        begin = end
        if i + 1 == len(outs):
            return


def _linear_facts(bases: Bases, sizes: Sequence[int]) -> tuple[list[str], list[Diagnostic]]:
    lines, broken = [], []
    counts = {name: 1 << len(points) for name, points in bases.items() if len(points) < 40}
    named = [f"{counted(n, _NOUNS.get(name, name).rstrip('s'))}" for name, n in counts.items()]
    held = math.prod(counts.values())
    lines.append(f"{' x '.join(named)} = {held} places")
    if sizes:
        lines.append(f"a tensor of {' x '.join(map(str, sizes))} = {math.prod(sizes)} elements")
    distinct = [point for points in bases.values() for point in points]
    rank = _rank_of_bits(distinct)
    reached = 1 << rank
    for name, points in bases.items():
        zeros = [i for i, point in enumerate(points) if not any(point)]
        if zeros:
            bits = " and ".join(f"{name} bit {i} (value {1 << i})" for i in zeros)
            lines.append(
                f"{bits} {'moves' if len(zeros) == 1 else 'move'} nowhere: {_NOUNS.get(name, name)} that differ "
                "there hold copies"
            )
    if reached < held:
        lines.append(f"each element is held {held // reached} times")
    elif sizes and reached == math.prod(sizes):
        lines.append("each element is held exactly once")
    if sizes and reached < math.prod(sizes):
        text = f"{reached} of {math.prod(sizes)} elements are reached"
        broken.append(Diagnostic("coverage", text=text, severity="warning"))
    register = bases.get("register", [])
    vector = 0
    for i, point in enumerate(register):
        if point and point[-1] == 1 << i and not any(point[:-1]):
            vector += 1
        else:
            break
    if register:
        lines.append(f"{1 << vector} neighbouring elements of the last dimension in the registers of one thread")
    return lines, broken


def _rank_of_bits(points: Sequence[tuple[int, ...]]) -> int:
    """How many of the points are independent under XOR."""
    pivots: list[int] = []
    for point in points:
        number = 0
        for part in point:
            number = (number << 40) | (abs(part) & ((1 << 40) - 1))
        for pivot in pivots:
            number = min(number, number ^ pivot)
        if number:
            pivots.append(number)
    return len(pivots)


def _lists(body: str) -> dict[str, tuple[int, ...] | list[tuple[int, ...]]]:
    """name -> its list of numbers, or of lists, of a printed class or attribute; a number is a list of one."""
    found: dict[str, tuple[int, ...] | list[tuple[int, ...]]] = {}
    for match in some(re.finditer(r"(\w+)\s*=\s*(\[(?:[^\[\]]|\[[^\[\]]*\])*\]|-?[0-9]+|true|false|True|False)", body)):
        name, value = match[1].lower().replace("_", ""), match[2]
        if "[[" in value.replace(" ", ""):
            found[name] = [_point(part) for part in re.findall(r"\[([^\[\]]*)\]", value)]
        elif value.lower() in ("true", "false"):
            found[name] = (int(value.lower() == "true"),)
        else:
            found[name] = _point(value)
    return found


def _point(text: str) -> tuple[int, ...]:
    return tuple(int(n[:18]) for n in re.findall(r"-?[0-9]+", text))


def _layout_of(kind: str, body: str, span: tuple[int, int], shown: str) -> Reading | None:
    values = _lists(body)
    plain = kind.lower().replace("_", "")

    def one(*names: str) -> tuple[int, ...]:
        return next((v for n in names if isinstance(v := values.get(n), tuple) and v), ())

    lines: list[str] = []
    broken: list[Diagnostic] = []
    if plain == "blocked":
        parts = one("sizeperthread"), one("threadsperwarp"), one("warpspercta")
        if all(parts) and len({len(part) for part in parts}) == 1:
            tile = [math.prod(sizes) for sizes in zip(*parts, strict=True)]
            names = [" x ".join(map(str, part)) for part in parts]
            lines.append(
                f"{names[0]} registers, {names[1]} lanes, {names[2]} warps: a tile of {' x '.join(map(str, tile))}"
            )
            lines.append(f"{math.prod(parts[1]) * math.prod(parts[2])} threads, {math.prod(parts[0])} elements each")
            order = one("order")
            if order and order[0] < len(parts[0]):
                lines.append(f"dimension {order[0]} is contiguous: {parts[0][order[0]]} neighbouring elements a thread")
            if math.prod(parts[1]) != 32:
                text = f"threads_per_warp multiplies to {math.prod(parts[1])}; a warp has 32 lanes"
                broken.append(Diagnostic("lanes", text=text))
    elif plain in ("distributedlinear", "linear", "sharedlinear"):
        bases: Bases = {}
        for name, value in values.items():
            if name.endswith("bases") or name in ("register", "lane", "warp", "block", "offset"):
                place = _PLACES.get(name.removesuffix("bases"), name.removesuffix("bases"))
                bases[place] = value if isinstance(value, list) else [value] if value else []
        sizes = one("shape")
        if any(bases.values()):
            lines, broken = _linear_facts(bases, sizes or _reach(bases))
            if "offset" in bases:
                lines += _shared_facts(bases["offset"])
    elif plain == "swizzledshared":
        vec, phase, most = (one(n)[:1] or (1,) for n in ("vec", "perphase", "maxphase"))
        lines += _swizzled_facts(vec[0], phase[0], most[0])
    elif plain == "nvmmashared":
        lines += _nvmma_facts(values, one)
    elif plain in ("nvidiamma", "nvmmadistributed"):
        lines += _mma_facts(one)
    elif plain == "sharedmemory":
        return None
    if not lines:
        return None
    return Reading(f"A layout of Triton: {shown[:160]}", *span, tuple(lines), tuple(broken))


def _reach(bases: Bases) -> list[int]:
    """The sizes that the bases span, from their largest parts."""
    points = [point for points in bases.values() for point in points]
    width = max((len(point) for point in points), default=0)
    return [1 << max((p[i].bit_length() for p in points if i < len(p)), default=0) for i in range(width)]


def _shared_facts(offsets: Sequence[tuple[int, ...]]) -> list[str]:
    """Which swizzle the bases of offsets of shared memory are."""
    plain = [p for p in offsets if sum(1 for x in p if x) == 1]
    mixed = [p for p in offsets if sum(1 for x in p if x) > 1]
    if not mixed:
        return ["no swizzle: every offset bit moves along one dimension"]
    unit = min((part for p in mixed for part in p[-1:] if part), default=1)
    return [f"rows are permuted in units of {unit} elements over {1 << len(mixed)} rows ({len(plain)} bits are plain)"]


def _swizzled_facts(vec: int, phase: int, most: int) -> list[str]:
    lines = [
        f"units of {vec} elements; every {phase} rows the unit is XORed with the next number, {most} numbers in "
        "all: the"
        f" pattern repeats after {phase * most} rows",
    ]
    if most <= 1:
        return [*lines, "max phase 1: no swizzle"]
    for bits in (8, 16, 32):
        if vec * bits == 128 and most in (2, 4, 8):
            span = 16 * most
            same = " as TMA and wgmma have it" if phase * span == 128 else ""
            lines.append(
                f"for elements of {bits} bits the units are 16 bytes, and the XOR is that of the {span}B swizzle{same}"
                f" (rows of {128 // phase * 8 // bits} elements)"
            )
    return lines


def _nvmma_facts(
    values: dict[str, tuple[int, ...] | list[tuple[int, ...]]], one: Callable[..., tuple[int, ...]]
) -> list[str]:
    width, bits = one("swizzlingbytewidth", "swizzlebytewidth"), one("elementbitwidth")
    lines = []
    if width:
        span = width[0]
        known = {32: 1, 64: 2, 128: 3}.get(span)
        lines.append(
            f"shared memory with the {span}B swizzle of TMA and wgmma, Sw<{known},4,3> on bytes; align to "
            f"{span * 8} bytes"
            if known
            else "shared memory without a swizzle"
        )
        if bits and known:
            lines.append(f"a row of the atom has {span * 8 // bits[0]} elements of {bits[0]} bits; 8 rows are an atom")
    if (transposed := one("transposed")) != ():
        lines.append(
            "transposed: the other dimension is contiguous (MN-major)" if transposed[0] else "not transposed (K-major)"
        )
    return lines


def _mma_facts(one: Callable[..., tuple[int, ...]]) -> list[str]:
    version, warps, shape = one("versionmajor", "version"), one("warpspercta"), one("instrshape")
    lines = []
    if version:
        names = {2: "mma.sync (sm_80)", 3: "wgmma (sm_90)", 5: "tcgen05.mma (sm_100)"}
        lines.append(f"version {version[0]}: {names.get(version[0], 'unknown')}")
    if warps:
        count = math.prod(warps)
        group = f", {count // 4} warpgroups" if version and version[0] == 3 and count % 4 == 0 else ""
        lines.append(f"{' x '.join(map(str, warps))} warps{group}: {32 * count} threads")
    if shape:
        lines.append(
            f"instruction {' x '.join(map(str, shape))} (M x N x K; of wgmma M is that of one warp, 4 warps make 64)"
        )
        if warps and len(shape) >= 2 and len(warps) >= 2:
            lines.append(
                f"one step of all warps covers {shape[0] * warps[0]} x {shape[1] * warps[1]} of the accumulator"
            )
    return lines
