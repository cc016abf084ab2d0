"""Read the layouts that Triton and Gluon print (linear layouts, encodings, tensor memory, padding), and calls that make
tensor descriptors.

This module finds the layouts among other lines of the text and behind MLIR aliases, `notation` parses them, and the
reading applies them to the tiles that the text mentions. Tensor memory and padded layouts have no linear layout, so
this module explains their parameters.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, counted
from cute_py.explanation.layout_pastes import array_reading, layout_facts
from cute_py.explanation.readings import TYPE_NAME, Reading, some, type_bits
from cute_py.layout.layout import Layout
from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.triton import TritonLayout, parse_triton
from cute_py.notation.triton_encodings import TritonEncoding
from cute_py.notation.triton_texts import NAMES, parse_any
from cute_py.tma.descriptor.fields import MAX_RANK

_LINE: Final = re.compile(
    r"^[ \t]{0,100}(?:[A-Za-z_%#][\w .%#()\[\]]{0,60}[:=][ \t]{0,9})?(?P<row>(?:- )?"
    r"(?:\w{1,80}=[0-9]{1,9} -> \([-0-9, ]{0,60}\)|\w{1,80} is a size 1 dimension))[ \t]{0,100}$",
    re.MULTILINE,
)
_OUT: Final = re.compile(r"where out dims are: \[[^\]\n]{1,200}\]")
_ATTRIBUTE: Final = re.compile(r"#(?:ttg|triton_gpu|gluon|ttng|triton_nvidia_gpu)\.(?P<kind>\w{1,80})\s{0,80}<")
_CLASS: Final = re.compile(
    r"\b(?P<kind>Blocked|DistributedLinear|SharedLinear|Slice|DotOperand|NVMMADistributed|NVMMAShared|SwizzledShared|"
    r"PaddedShared|TensorMemory|TensorMemoryScales)Layout\("
)
_ALIAS: Final = re.compile(
    r"^[ \t]{0,100}(?P<name>#\w{1,80})[ \t]{0,100}=[ \t" r"]{0,100}(?P<begin>#\w{1,80}\.\w{1,80}[ \t]{0,100}<)",
    re.MULTILINE,
)
_RENAMED: Final = re.compile(
    r"^[ \t]{0,100}(?P<name>#\w{1,80})[ \t]{0,100}=[ \t]{0,100}(?P<other>#\w{1,80})\b(?!\.)", re.MULTILINE
)
_BARE: Final = re.compile(r"(?<!<)\{(?=\s{0,9}sizePerThread = \[)")
"""The parameters of a blocked layout without its name."""
_USED: Final = re.compile(r"(?:tensor|memdesc)<(?:[0-9]{1,7}x){1,6}[\w<>!.]{1,40}, (?P<name>#\w{1,80})\b(?!\.)")
_COUNTED: Final = re.compile(r"(?:ttg|triton_gpu)\.(?P<name>num-warps|threads-per-warp)\"? = (?P<count>[0-9]{1,4})")
_SPECIALIZED: Final = re.compile(r"warp_specialize|total-num-warps|num_warps\(")
"""Matches a module whose partitions have their own numbers of warps."""
_ON_TILE: Final = re.compile(r"\b(?P<type>tensor|memdesc)<(?P<sizes>(?:[0-9]{1,7}x){1,6})\w{1,80}, (?P<name>#\w{1,80})")
_MOST_TILES: Final = 2
"""Number of tiles that one encoding is shown for."""


def read_triton_layouts(text: str) -> list[Reading]:
    """Read every layout of Triton or Gluon in `text`."""
    aliases = _aliases(text)
    tiles: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for match in some(_ON_TILE.finditer(text), 200):
        sizes = tuple([int(n) for n in match["sizes"].rstrip("x").split("x")])
        tiles.setdefault(aliases.get(match["name"], ""), []).append((match["type"], sizes))
    found = [*_linear_prints(text)]
    counts = {} if _SPECIALIZED.search(text) else {m["name"]: int(m["count"]) for m in some(_COUNTED.finditer(text), 8)}
    for match in sorted([*some(_ATTRIBUTE.finditer(text)), *some(_CLASS.finditer(text))], key=re.Match.start):
        if any(one.begin <= match.start() < one.end for one in found):
            continue
        end = matching_bracket(text, match.end()) + 1
        found += _named(match["kind"], text[match.start() : end], (match.start(), end), aliases, tiles, counts)
    for match in some(_BARE.finditer(text), 8):
        if not any(one.begin <= match.start() < one.end for one in found):
            end = matching_bracket(text, match.end()) + 1
            shown = f"#ttg.blocked<{text[match.start() : end]}>"
            found += _named("blocked", shown, (match.start(), end), aliases, tiles, counts)
    return found or [*_undefined(text)]


def _undefined(text: str) -> Iterator[Reading]:
    """Name the layouts that operations use and that the text does not define."""
    used = some(_USED.finditer(text))
    names = list(dict.fromkeys(match["name"] for match in used))
    if names:
        missing = [f"the definition of {name}: the line of the module that begins {name} =" for name in names[:8]]
        span = used[0].start(), used[-1].end()
        yield Reading("Operations of Triton's IR, without the layouts of their tensors", *span, missing=missing)


def _aliases(text: str) -> dict[str, str]:
    """MLIR alias -> the attribute that it names."""
    found: dict[str, str] = {}
    for match in some(_ALIAS.finditer(text)):
        found[match["name"]] = text[match.start("begin") : matching_bracket(text, match.end()) + 1]
    for match in some(_RENAMED.finditer(text)):
        if match["other"] in found:
            found[match["name"]] = found[match["other"]]
    return found


def _miscounted(thing: TritonEncoding, counts: Mapping[str, int]) -> Iterator[Diagnostic]:
    """Compare the warps and the threads of a layout with the numbers in the module."""
    own = {
        "num-warps": getattr(thing, "warps_per_cta", None),
        "threads-per-warp": getattr(thing, "threads_per_warp", None),
    }
    for name, sizes in own.items():
        if sizes is not None and name in counts and math.prod(sizes) != counts[name]:
            have = counted(math.prod(sizes), "warp") if name == "num-warps" else f"{math.prod(sizes)} threads per warp"
            text = f"the layout has {have}; the module states {name} = {counts[name]}"
            yield Diagnostic("warps of a layout", text=text, source="Triton, verifier of tensor layouts")


def _named(
    kind: str,
    shown: str,
    span: tuple[int, int],
    aliases: Mapping[str, str],
    tiles: Mapping[str, list[tuple[str, tuple[int, ...]]]],
    counts: Mapping[str, int],
) -> Iterator[Reading]:
    """Make the reading of an MLIR attribute or a Gluon layout class."""
    head = f"A layout of Triton: {shown[:160]}"
    if kind in ("shared_memory", "tensor_memory"):
        return
    if re.search("tensor_?memory", kind, re.IGNORECASE):
        yield Reading(head, *span, _tensor_memory(shown))
        return
    if kind.lower().startswith("padded"):
        yield Reading(head, *span, _padded(shown))
        return
    spelled = shown
    for _ in range(4):  # an encoding may name another one as its parent
        spelled = re.sub(r"#\w{1,80}\b(?![.\w])", lambda name: aliases.get(name[0], name[0]), spelled)
    if kind in ("linear", "generic_linear", "shared_linear") or kind.endswith("Linear"):
        spelled = spelled.removeprefix("#gluon.").removeprefix("#triton_gpu.")
    try:
        thing: TritonLayout | TritonEncoding = parse_any(spelled)
    except CuteError as error:
        if kind not in NAMES:
            meaning = f"{kind}: an encoding for other GPUs, or an encoding that cute_py does not know"
            yield Reading(
                head, *span, (meaning,), missing=("the bases of the layout: print the linear layout of the tile",)
            )
        elif unknown := re.findall(r"(?<=parent = )#\w{1,80}\b(?![.\w])", spelled):
            lacking = f"the definition of {unknown[0]}: the line of the module that begins {unknown[0]} ="
            yield Reading(head, *span, (f"{kind} of {unknown[0]}",), missing=(lacking,))
        else:
            found = Diagnostic("encoding", text=error.headline)
            yield Reading(head, *span, (f"{kind}, but with parameters that this encoding does not have",), (found,))
        return
    if isinstance(thing, TritonLayout):
        yield _linear_reading(head, thing, span)
        return
    lines, broken = thing.facts(), [*_miscounted(thing, counts)]
    for place, sizes in list(dict.fromkeys(tiles.get(shown, ())))[:_MOST_TILES]:
        tile = sizes[-thing.rank :] if place == "memdesc" else sizes  # buffers of a pipeline come first
        named = " x ".join(map(str, tile))
        try:
            layout = thing.linear(tile)
        except CuteError as error:
            broken.append(Diagnostic("tile", text=f"a tile of {named}: {error.headline}"))
            continue
        with contextlib.suppress(CuteError):  # CuTe has no layout of these bases
            lines.append(f"for a tile of {named}, as CuTe writes it: {layout.to_layout()}")
    yield Reading(head, *span, lines, broken)


def _linear_prints(text: str) -> Iterator[Reading]:
    """Read the bases of linear layouts as Triton prints them, one per line, with or without a line of sizes below."""
    rows, begin = some(_LINE.finditer(text), 400), 0
    ends = [*[(match.end(), match[0]) for match in some(_OUT.finditer(text), 8)], (len(text), "")]
    for end, sizes in ends:
        own = [row for row in rows if begin <= row.start() < end]
        begin = end
        if not own:
            continue
        lines = "\n".join([row["row"] for row in own])
        span = own[0].start("row"), end if sizes else own[-1].end()
        try:
            layout = parse_triton(f"{lines}\n{sizes or _smallest(lines)}")
        except CuteError as error:
            yield Reading("A linear layout of Triton", *span, broken=(Diagnostic("bases", text=error.headline),))
            continue
        yield _linear_reading("A linear layout of Triton", layout, span)


def _smallest(lines: str) -> str:
    """The sizes of the smallest tile that contains the printed bases, as Triton's line of out dims."""
    points = [[int(n) for n in re.findall("[0-9]+", point)] for point in re.findall(r"\(([-0-9, ]{0,100})\)", lines)]
    rank = max([len(point) for point in points], default=0)
    sizes = [1 << max([p[i] for p in points if i < len(p)]).bit_length() for i in range(rank)]
    return f"where out dims are: [{', '.join(f'dim{i} (size {n})' for i, n in enumerate(sizes))}]"


def _linear_reading(head: str, layout: TritonLayout, span: tuple[int, int]) -> Reading:
    lines, broken, tile = layout.facts(), [], math.prod(layout.shape)
    if layout.reached < tile:
        text = f"{layout.reached} of {tile} elements are reached"
        broken.append(Diagnostic("coverage", text=text, severity="warning"))
    try:
        lines.append(f"as CuTe writes it: {layout.to_layout()}")
    except CuteError as error:
        lines.append(f"CuTe can't express this layout: {error.headline}")
    return Reading(head, *span, lines, broken)


# ---- layouts without bases -----------------------------------------------------------------------------------------


def _number(text: str, name: str, default: int) -> int:
    found = re.search(rf"\b(?:{name})\s{{0,80}}=\s{{0,80}}([0-9]{{1,9}})", text, re.IGNORECASE)
    return int(found[1]) if found else default


def _tensor_memory(shown: str) -> list[str]:
    """Lines with the lanes, columns and CTAs of an accumulator or operand in tensor memory."""
    if "scales" in shown.lower():
        return ["scale factors in tensor memory: 128 rows, copied to each group of 32 lanes"]
    # The first arguments of Gluon's class are the block and the stride of the columns, with or without their names.
    block = re.search(
        r"(?:block\s{0,80}=\s{0,80}|Layout\(\s{0,80})[(\[]\s{0,9}([0-9]{1,6}),\s{0,9}([0-9]{1,6})\s{0,9},?[)\]]"
        r"(?:\s{0,9},\s{0,9}([0-9]{1,6})\b)?",
        shown,
    )
    rows = int(block[1]) if block else _number(shown, "blockM", 128)
    columns = int(block[2]) if block else _number(shown, "blockN", 0)
    step = int(block[3]) if block and block[3] else _number(shown, "colStride|col_stride", 1)
    lanes = (
        "128 lanes" if rows == 128 else f"{rows} rows, which use 16 of every 32 lanes" if rows == 64 else f"{rows} rows"
    )
    lines = [f"tensor memory of tcgen05, blocks of {rows} x {columns}: {lanes}, {columns} columns of elements"]
    if not columns:
        lines = ["tensor memory of tcgen05; the text does not have the numbers of the block"]
    unpacked = re.search(r"unpacked\s{0,80}=\s{0,80}(true|false)", shown)
    if unpacked:
        apart = (
            "each element has its own column of 32 bits"
            if unpacked[1] == "true"
            else "elements are packed into the columns"
        )
        lines.append(f"unpacked = {unpacked[1]}: {apart}")
    else:
        lines.append(
            f"elements are {step} element widths apart" if step > 1 else "elements are contiguous in the columns"
        )
    if re.search(r"two_?CTAs\s{0,80}=\s{0,80}true\b", shown, re.IGNORECASE):
        lines.append("two CTAs compute one result (cta_group::2); each holds half of the rows")
    pair = re.search(r"cta_split_num\s{0,80}=\s{0,80}[(\[]\s{0,9}([0-9]{1,6}),\s{0,9}([0-9]{1,6})", shown)
    for i, (name, mode) in enumerate((("M", "rows"), ("N", "columns")), 1):
        if (split := int(pair[i]) if pair else _number(shown, f"CTASplit{name}", 1)) > 1:
            lines.append(f"{mode} are split over {split} CTAs")
    return [*lines, "a CTA has 128 lanes x 512 columns of 32 bits"]


def _padded(shown: str) -> list[str]:
    """Lines about padded shared memory: the number of elements between two paddings, and the size of each padding."""
    pairs = re.findall(r"([0-9]{1,9}):\+([0-9]{1,9})", shown)
    if not pairs and (
        listed := re.search(
            r"\[\s{0,80}(?:\[\s{0,80}[0-9]{1,9}\s{0,80}," r"\s{0,80}[0-9]{1,9}\s{0,80}\][\s,]{0,100})+\]", shown
        )
    ):
        pairs = re.findall(r"([0-9]{1,9})\s{0,80},\s{0,80}([0-9]{1,9})\s{0,80}\]", listed[0])
    lines = [
        f"{pad} elements of padding follow each {interval} elements, so {interval} elements occupy the space of "
        f"{int(interval) + int(pad)}"
        for interval, pad in pairs[:4]
    ]
    return [*lines, "padding is not linear over bits, and TMA can't write it, because a box has no gaps"]


# ---- tensor descriptors ---------------------------------------------------------------------------------------------
#
#     tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[128, 64])
#     TensorDescriptor(a, [M, K], [K, 1], [128, 64])            TensorDescriptor.from_tensor(a, [128, 64])
#
# Shape, strides and block are outermost first. A descriptor becomes a tensor map: its strides must be multiples of 16
# bytes, and the rows of its block must have at least 16 bytes. Triton splits a block that is larger than a box.

_DESCRIPTOR_CALL: Final = re.compile(r"\b(?:make_tensor_descriptor|TensorDescriptor(?P<tensor>\.from_tensor)?)\(")
_ARGUMENTS: Final = ("base", "shape", "strides", "block_shape")
_KEY: Final = re.compile(r"(\w{1,40})\s?=\s?(.+)", re.DOTALL)
_LIST: Final = re.compile(r"[\[(]\s?(-?[0-9]{1,18}(?:\s?,\s?-?[0-9]{1,18}){0,7})\s?,?\s?[\])]")
_SOURCE: Final = "Triton, make_tensor_descriptor"
_WIDTHS: Final = (8, 16, 32, 64)
MOST_ARGUMENTS: Final = 8
"""Maximum number of arguments that are read."""
ROW_BYTES: Final = 16
"""Minimum number of bytes of a row of a block."""
BLOCK_ELEMENTS: Final = 1 << 20
"""Maximum number of elements of a block: TRITON_MAX_TENSOR_NUMEL."""


def read_tensor_descriptors(text: str) -> list[Reading]:
    """Read every call in `text` that makes a tensor descriptor."""
    found = []
    for match in some(_DESCRIPTOR_CALL.finditer(text)):
        end = matching_bracket(text, match.end()) + 1
        names = ("base", "block_shape") if match["tensor"] else _ARGUMENTS
        arguments = _arguments(text[match.end() : end - 1], names)
        if "block_shape" in arguments:
            dtype = _type_of_call(text, (match.start(), end), arguments.get("base", ""))
            found.append(_descriptor(arguments, (match.start(), end), dtype))
    return found


def _type_of_call(text: str, span: tuple[int, int], base: str) -> str:
    """The element type that the lines of a call name, or else the line that assigns the tensor `base`, or else the only
    one that the text names; '' if there is none."""
    lines = text[text.rfind("\n", 0, span[0]) + 1 : (text.find("\n", span[1]) + 1 or len(text) + 1) - 1]
    assigned = (
        re.search(rf"^\s{{0,99}}{base}\s?=[^\n=][^\n]{{0,400}}", text, re.MULTILINE) if base.isidentifier() else None
    )
    for part in (lines, assigned[0] if assigned else "", text):
        names = {match[1] for match in some(TYPE_NAME.finditer(part))}
        if len(names) == 1:
            return names.pop()
        if names:
            break
    return ""


def _arguments(text: str, names: Sequence[str]) -> dict[str, str]:
    """The text of each argument, by its name; names: of the positional ones."""
    found: dict[str, str] = {}
    for name, part in itertools.zip_longest(names, split_operands(text)[:MOST_ARGUMENTS], fillvalue=""):
        if not part:
            break
        key = _KEY.fullmatch(part)
        found[key[1] if key else name] = (key[2] if key else part).strip()
    return found


def _descriptor(arguments: dict[str, str], span: tuple[int, int], dtype: str) -> Reading:
    kind = "A tensor descriptor of Triton"
    lists = {name: match for name in _ARGUMENTS[1:] if (match := _LIST.fullmatch(arguments.get(name, "")))}
    shape, strides, block = (
        tuple([int(n) for n in lists[name][1].split(",")]) if name in lists else () for name in _ARGUMENTS[1:]
    )
    if lacking := [name for name in _ARGUMENTS[1:] if name not in lists]:
        meaning = [f"{name} = {arguments[name]}, outermost first" for name in _ARGUMENTS[1:] if name in arguments]
        return Reading(kind, *span, meaning, missing=[f"the numbers of {name}" for name in lacking])
    if not len(shape) == len(strides) == len(block):
        ranks = f"shape has {len(shape)} modes, strides {len(strides)}, and block_shape {len(block)}; must be equal"
        return Reading(kind, *span, broken=[Diagnostic("ranks", text=ranks, source=_SOURCE)])
    try:
        layout = Layout(shape, strides)
        lines = [f"as CuTe writes it: {layout}", *(line.strip() for line in layout_facts(layout))]
    except CuteError as error:
        return Reading(kind, *span, broken=[Diagnostic("layout", text=error.headline)])
    bits = type_bits(dtype) if dtype else 0
    of_array = array_reading(span, shape, strides, lines, dtype)
    return replace(
        of_array,
        kind=f"{kind}, of {dtype}" if dtype else kind,
        meaning=[*of_array.meaning, *_block_lines(block, strides, bits)],
        broken=[*of_array.broken, *_array_rules(shape, strides, bits), *_block_rules(block, strides, bits)],
    )


def _block_lines(block: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Iterator[str]:
    """Describe the block; if the width is unknown, also the widths whose strides are multiples of 16 bytes."""
    shown, count = " x ".join(map(str, block)), math.prod(block)
    widths = (bits,) if bits else _WIDTHS
    rows = ", ".join(f"{block[-1] * width // 8} bytes with {width} bits" for width in widths)
    yield f"a block of {shown} has {count} elements; its rows have {rows}"
    if not bits:
        fit = [width for width in _WIDTHS if not any(stride * width % 128 for stride in strides[:-1])]
        if fit:
            yield f"the strides are multiples of 16 bytes for elements of {', '.join(map(str, fit))} bits"


def _array_rules(shape: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Iterator[Diagnostic]:
    """Yield the rules that the shape and the strides break and that `array_reading` does not judge. bits: width of an
    element; 0 if it is unknown, then only what no width fits is broken."""
    if len(shape) > MAX_RANK:
        yield Diagnostic("rank", text=f"{len(shape)} modes; must be 1 to {MAX_RANK}", source=_SOURCE)
    if bits:
        return
    for i, size in enumerate(shape):
        if size < 1:
            yield Diagnostic("size", text=f"shape[{i}] = {size}; must be at least 1", source=_SOURCE)
    for i, stride in enumerate(strides[:-1]):
        if stride < 1 or all(stride * width % 128 for width in _WIDTHS):
            must = "be positive" if stride < 1 else "be a multiple of 16 bytes, which it is for no width up to 64 bits"
            yield Diagnostic("stride_alignment", text=f"strides[{i}] = {stride}; must {must}", source=_SOURCE)


def _block_rules(block: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Iterator[Diagnostic]:
    """Yield the rules of Triton that the block breaks. bits: width of an element; 0 if it is unknown, then only what no
    width fits is broken."""
    for i, extent in enumerate(block):
        if extent < 1 or extent & (extent - 1):
            text = f"block_shape[{i}] = {extent}; must be a power of 2"
            yield Diagnostic("power of 2", text=text, source=_SOURCE)
    if block[-1] * (bits or 64) // 8 < ROW_BYTES:
        size = f"{block[-1] * bits // 8} bytes" if bits else f"{block[-1]} elements of at most 64 bits"
        text = f"a row of the block has {size}; must have at least {ROW_BYTES} bytes"
        yield Diagnostic("box_row", text=text, source=_SOURCE)
    if (count := math.prod(block)) > BLOCK_ELEMENTS:
        text = f"the block has {count} elements; must have at most {BLOCK_ELEMENTS}"
        yield Diagnostic("block elements", text=text, source=_SOURCE)
    if strides[-1] != 1:
        text = f"strides[-1] = {strides[-1]}; must be 1, the last mode is the contiguous one"
        yield Diagnostic("contiguous mode", text=text, source=_SOURCE)
