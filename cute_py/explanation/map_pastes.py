"""Read tensor maps in pasted text: their 128 bytes, and the arguments of an encoding that succeeded or failed.

The arguments may be named (output of CUTLASS and TileLang, a debugger's frame, generated C, this library's repr), in
the order of the driver's functions (a call in C, TVM's packed calls), or printed by DeepGEMM. Each form is converted to
a request, which `violations` and `hazards` judge. A change is offered if the changed request breaks no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, InvalidValueError, shortened, unless_refused
from cute_py.explanation.cuda_pastes import EARLIER, refused_at, refused_code, refused_why
from cute_py.explanation.readings import TYPE_NAME, Reading, some, type_bits
from cute_py.explanation.rows.map_arguments import (
    SOME_ELEMENTS,
    argument_value,
    known_value,
    packed_arguments,
    positional_arguments,
)
from cute_py.explanation.rows.source_constants import SourceConstants, Used, without_comments
from cute_py.explanation.rows.source_integers import OVERFLOW
from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.source_numbers import LONGEST_NUMBER, Value, read_value
from cute_py.tma.descriptor.data_types import FORMATS, format_of
from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.fixes import find_changes
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.limits import SWIZZLE_SPAN
from cute_py.tma.descriptor.read import MAX_TEXT, read_map
from cute_py.tma.descriptor.request import ENUM_OF, TensorMap, TensorMapIm2col, TensorMapTiled
from cute_py.tma.descriptor.violations import violations

Span: TypeAlias = tuple[int, int]
_HEADER: Final = re.compile(r"TMA Desc Addr", re.IGNORECASE)
_LIST: Final = r"[(\[{]\s*(?:[-\w.+*:<> ()]+?\s*,\s*)*[-\w.+*:<> ()]*?\s*[)\]}]"
_NAMES: Final[dict[str, str]] = {
    "format|tensor_?data_?type|data_?type|tensorDataType|elem_?type|tma_format|dtype": "data_type",
    "dim|tensor_?rank|rank|tma_dim": "rank",
    "gmem_?addr(?:ess)?|global_?addr(?:ess)?|base_?addr(?:ess)?": "global_address",
    "global_?(?:dims?|shape|sizes?)|gmem_(?:prob_)?(?:shape|dims?)|gdims?": "global_dim",
    "globalStridesRaw|cudaGlobalStrides|global_?strides?|gmem_(?:prob_)?strides?|gstrides?": "global_strides",
    "box_?(?:dims?|shape|sizes?)|smem_box_shape|smem_(?:dims?|box)|boxdims?": "box_dim",
    "(?:element|elem|traversal)_?strides?|smem_box_stride": "element_strides",
    "interleave(?:_?layout)?": "interleave",
    "(?:smem_)?swizzle(?:_?mode)?": "swizzle",
    "(?:tma_)?l2_?promotion": "l2_promotion",
    "(?:tma_)?oob_?fill(?:_?mode)?": "oob_fill",
    "(?:pixel_?)?(?:box_?)?lower_?corner(?:_whd)?": "pixel_box_lower_corner",
    "(?:pixel_?)?(?:box_?)?upper_?corner(?:_whd)?": "pixel_box_upper_corner",
    "channels_?per_?pixel|smem_box_channels?": "channels_per_pixel",
    "pixels_?per_?column|smem_box_pixels?": "pixels_per_column",
}
"""Spellings of an argument -> the field of a request."""
_FIELDS: Final = tuple(_NAMES.values())
_ARGUMENT: Final = re.compile(
    r"(?<![A-Za-z])(?:" + "|".join(f"({names})" for names in _NAMES) + r")(?![A-Za-z])"
    r"(?=[\s:=@\[\"'])(?:@[0-9]{1,100})?(?:\[[^\]\n]{0,20}\])?[\"']"
    r"?[ \t]{0,20}(?:\n?\$[0-9]{1,100})?[ \t]{0,20}[:=]?[ \t]{0,20}"
    r"(?:\([\w ]{1,100}\)[ \t]{0,20}(?=[0-9]))?(?P<value>\((?:nil|null)\)|[(\[{][^()\[\]{}\n]{0,200}[)\]}]?|"
    r"<[\w.]{1,100}:\s{0,9}[0-9]{1,100}>|[-\w.]{1,100}(?:::\w{1,100})?)",
    re.IGNORECASE,
)
_CALL: Final = re.compile(
    r"(?P<name>(?:cu|mu)?TensorMapEncode(?:Tiled|Im2col)|(?:__)?tvm_tensormap_create_(?:tiled|im2col))\){0,200}\W{0,4}[(,]"
)
_DEEP_GEMM: Final = re.compile(
    r"Making (?:[0-9]D )?TMA desc: global memory: (?P<dims>[0-9 ]{1,100}), shared memory: (?P<box>[0-9 ]{1,100}), "
    r"outer strides?: (?P<strides>[0-9 ]{1,100}), swizzle: (?P<swizz"
    r"le>[0-9]{1,100})[^\n]{0,400}?elem size: (?P<bytes>[0-9]{1,100})"
    r"(?:, pointer: (?P<address>[0-9]{1,20}))?"
)
_KERNELS: Final = re.compile(
    r"(?P<why>(?<![^\n])[^\n]{0,400}TMA descriptor due to [^\n]{1,100}\s{1,80})?"
    r"tmaFormat: (?P<kind>[0-9]{1,3}) dim: (?P<rank>[1-5]) gmem: (?P<address>0x[0-9a-f]{1,16}|0)\s{1,80}"
    r"Shape: (?P<dims>[0-9 ]{1,100})\s{1,80}Stride: (?P<strides>[0-"
    r"9 ]{1,100})\s{1,80}tileShapes: (?P<box>[0-9 ]{1,100})\s{1,80}"
    r"tileStrides: (?P<steps>[0-9 ]{1,100})\s{1,80}swizzleType: (?P<swizzle>[0-9])"
)
"""Pattern for the output of TensorRT-LLM kernels: five numbers of each kind for every rank."""
_CUTLASS_PRINT: Final = "what CUTLASS prints when cuTensorMapEncodeTiled fails"
_TILELANG_PRINT: Final = "the arguments of cuTensorMapEncode* as TileLang prints them"

_NO_ADDRESS: Final = "the text does not contain the address; the rules were checked with an aligned address"
LOOK_ELSEWHERE: Final = (
    "If the driver still refused it, check these: the driver's version and the GPU (sm_90 or later), cuInit and a "
    "current context on this thread, the address of the map itself (a multiple of 64; of 128 since CUDA 13), an "
    "earlier asynchronous error that this call reports, and whether these are the numbers of the call that failed."
)
_EARLIER_ERROR: Final = (
    "The driver's result is the error of an earlier kernel. compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1, names that "
    "kernel."
)
_NULL_ADDRESS: Final = (
    "The address is null. The measured driver accepts it, but other drivers have returned 1 for it: encode no map for "
    "an operand that does not exist, or give it the address of another tensor."
)


# ---- the answer to a request ---------------------------------------------------------------------------------------


_ENCODED: Final = (
    "These bytes are a valid map. If the copy fails or loads wrong data, check these: whether the kernel expects this "
    "tensor, type and box, its coordinates (innermost first; the inner one at a multiple of 16 bytes), the alignment "
    "of shared memory, the bytes that its barrier expects, and the fence after a change of the map."
)


def map_reading(
    kind: str,
    span: tuple[int, int],
    request: TensorMap,
    notes: Sequence[str] = (),
    elsewhere: str = LOOK_ELSEWHERE,
    missing: Sequence[str] = (),
) -> Reading:
    """Make the reading of a request: its meaning, the rules that it breaks, and the changes that work."""
    found = violations(request)
    shown = describe(request).splitlines()
    apart = ("  broken rule", "  warning", "  judged", "  not judged")  # these parts belong to the reading
    meaning = [line.strip() for line in shown if not line.startswith(apart)]
    meaning += [*_names(request), *notes]
    changes = _offered(request) if found else []
    warned: list[Diagnostic] = [w for w in hazards(request) if not found or w.rule != "null address"]
    if elsewhere == LOOK_ELSEWHERE and not request.global_address:
        elsewhere = f"{_NULL_ADDRESS} {elsewhere}"
    rules = (*found, *warned)
    return Reading(kind, *span, meaning, rules, changes, missing, elsewhere, judged=True, scope=found.scope)


def _offered(request: TensorMap) -> list[str]:
    """The changes that make a tensor map break no rule and have no new hazard."""
    from cute_py.explanation.offers import passes_check

    return [
        text
        for text, changed in find_changes(request)
        if passes_check(lambda changed=changed: changed, request)  # type: ignore[misc]
    ]


def _names(request: TensorMap) -> list[str]:
    """Lines with the names of the codes in a request: its format, swizzle and L2 promotion."""
    kind = -1 if request.data_type is None else request.data_type
    row = FORMATS[kind] if 0 <= kind < len(FORMATS) else None
    lines = [f"format {int(row.data_type)} is {row.data_type.name}: {', '.join(row.dtypes)}"] if row else []
    span = SWIZZLE_SPAN.get(request.swizzle)
    named = f"{span}B, Sw<{int(request.swizzle)},4,3> on byte addresses" if span else "none"
    lines.append(f"swizzle {int(request.swizzle)} is {named if request.swizzle in SWIZZLE_SPAN else 'unknown'}")
    if request.l2_promotion in (1, 2, 3):
        lines.append(f"L2 promotion {int(request.l2_promotion)} is {32 << int(request.l2_promotion)}B")
    return lines


# ---- the bytes of a map --------------------------------------------------------------------------------------------

_MAP_WORDS: Final = re.compile(r"desc|map|tma|opaque|CUtensor|\bx/[0-9]{1,100}|uint8|hexdump|xxd", re.IGNORECASE)
_TOKEN: Final = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]{1,16}|[0-9a-fA-F]{2,16}|[0-9]{1,20})(?![\w.])")
_ON_ONE_LINE: Final = re.compile(
    r"\b0[xX][0-9a-fA-F]{6,16}(?:\s{0,80}<[^<>\n]{0,80}>)?\s{0,80}:|(?<!\w)[A-Za-z_]\w{0,80}\[[0-9]{1,2}\]\s{0,80}=|^[0-9]{1,2}\]\s{0,80}="
)
"""Addresses and subscripts between the numbers of a dump whose line breaks were lost."""
_NOT_NUMBERS: Final = re.compile(
    r"\bdtype\s{0,80}=\s{0,80}[\w.]{1,100}|\bdevice\s{0,80}="
    r"\s{0,80}'[^'\n]{0,400}'|\b(?:torch|np|numpy)\.[\w.]{1,100}(?=\()"
)


def read_bytes(text: str) -> list[Reading]:
    """Read every part of `text` that is the 64 or 128 bytes of a tensor map."""
    found: list[Reading] = []
    for begin, end in _places(text):
        if any(begin < r.end and r.begin < end for r in found):
            continue
        piece = text[begin:end]
        raw = _map_of(piece)
        if raw is None:
            continue
        request = decode(raw)
        broken = violations(request)
        if broken and not _MAP_WORDS.search(text[max(0, begin - 200) : end + 40]):
            continue  # these numbers are not a map
        notes = [] if any(raw) else ["all bytes are 0: no map was encoded here, or the memory was cleared"]
        found.append(map_reading(f"The {len(raw)} bytes of a tensor map", (begin, end), request, notes, _ENCODED))
    return found


def _places(text: str) -> Iterator[tuple[int, int]]:
    """The spans of `text` that may be the bytes of a tensor map: all of it, runs of lines with numbers, and brackets.
    Longer spans come first."""
    if len(text) <= MAX_TEXT:
        yield 0, len(text)
    runs: list[tuple[int, int, int]] = []
    position, start, rows = 0, None, 0
    for line in text.splitlines(keepends=True):
        count = len(some(_TOKEN.finditer(line[:2000]), 130))
        if start is not None and rows >= 8 and re.match(r"\s*[\w.>-]{0,60}\[0\]\s*[=:]", line):  # the next array
            runs.append((start, position, rows))
            start, rows = None, 0
        if count >= 1 and (
            count >= 2 or re.search(r"\[[0-9]{1,100}\]|^\s{0,80}0[xX][0-" r"9a-fA-F]{1,100}\s{0,80},?\s{0,80}$", line)
        ):
            start, rows = (position if start is None else start), rows + count
        else:
            if start is not None and rows >= 8:
                runs.append((start, position, rows))
            start, rows = None, 0
        position += len(line)
    if start is not None and rows >= 8:
        runs.append((start, position, rows))
    yield from ((begin, end) for begin, end, _ in runs[:32] if end - begin <= MAX_TEXT)
    for match in some(re.finditer(r"[\[{][^\[\]{}]{20,4000}[\]}]", text), 32):
        yield match.span()
    for match in some(re.finditer(r"\b[0-9a-fA-F]{128}(?:[0-9a-fA-F]{128})?\b", text), 8):
        yield match.span()


def _map_of(piece: str) -> bytes | None:
    tokens = some(_TOKEN.finditer(piece), 200)
    bare = piece[tokens[0].start() : tokens[-1].end()] if tokens else ""
    forms = (piece, _NOT_NUMBERS.sub(" ", piece), bare, re.sub(r"[|/\\;&]", " ", bare), _ON_ONE_LINE.sub(" ", bare))
    for form in dict.fromkeys(forms):
        if raw := unless_refused(read_map, form):
            return raw
    return None


def bytes_refused(text: str) -> CuteError | None:
    """The error that explains why numbers in `text` are not a tensor map: they are only part of a map, or too many.
    None if nothing looks like a map."""
    found = [text[begin:end] for begin, end in _places(text) if _MAP_WORDS.search(text[max(0, begin - 200) : end])]
    for piece in found[1:] + found[:1]:  # the runs of numbers before the whole text
        try:
            read_map(piece)
        except InvalidValueError as error:
            return error
        except CuteError as error:
            if "indices" in error.facts:
                return error
    return None


# ---- the arguments of a map ----------------------------------------------------------------------------------------


def read_arguments(text: str) -> list[Reading]:
    """Read every set of arguments of cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col in `text`."""
    read: list[Span] = []
    found = [*_deep_gemm(text), *_kernels(text), *_calls(text, read), *_by_name(text, read)]
    return found or [*_by_short_name(text)]


def _deep_gemm(text: str) -> Iterator[Reading]:
    for match in some(_DEEP_GEMM.finditer(text)):
        dims, box, steps = (_integers(match[name].split()) for name in ("dims", "box", "strides"))
        width, swizzle = int(match["bytes"][:3]), int(match["swizzle"][:5])
        mode = {0: 0, 16: 0, 32: 1, 64: 2, 128: 3}.get(swizzle, swizzle)
        kind = {1: 0, 2: 9, 4: 7, 8: 8}.get(width)
        if kind is None or not dims:
            continue
        address, strides = int(match["address"] or 1 << 20), tuple(step * width for step in steps)
        request = unless_refused(TensorMapTiled, kind, address, dims, strides, box, swizzle=mode, l2_promotion=3)
        if request is None:
            continue
        notes = [
            f"the text does not contain the type; the rules are those for any type of {width} bytes",
            f"outer stride {' '.join(map(str, steps))} elements x {width} bytes = "
            f"{' '.join(str(step * width) for step in steps)} bytes",
            *([] if match["address"] else [_NO_ADDRESS]),
        ]
        yield map_reading("A tensor map as DeepGEMM prints it", match.span(), request, notes)


def _kernels(text: str) -> Iterator[Reading]:
    for match in some(_KERNELS.finditer(text)):
        rank = int(match["rank"])
        dims, strides, box, steps = (_integers(match[name].split()) for name in ("dims", "strides", "box", "steps"))
        address = int(match["address"], 16)
        lists = dims[:rank], strides[: rank - 1], box[:rank], steps[:rank]
        kind, swizzle = int(match["kind"]), int(match["swizzle"])
        request = unless_refused(TensorMapTiled, kind, address, *lists, 0, swizzle, 2, 0)
        if request is None:
            continue
        result = match["why"] or ""
        five = f"five numbers of each kind are printed; a map of rank {rank} has the first {rank} of them"
        notes = [*refused_why(result), five]
        printed = "A tensor map as TensorRT-LLM kernels print it"
        yield map_reading(printed, match.span(), request, notes, _where_else(result))


def _where_else(result: str) -> str:
    """Other causes to check if the arguments break no rule; `result`: a text with the driver's result."""
    return _EARLIER_ERROR if refused_code(result) in EARLIER else LOOK_ELSEWHERE


def _integers(parts: Sequence[str]) -> tuple[int, ...]:
    return tuple(int(part) for part in parts if part.isdecimal() and len(part) <= LONGEST_NUMBER)


def _calls(text: str, read: list[Span]) -> Iterator[Reading]:
    """Read the arguments of each call. Append the spans of the declarations that a call reads to `read`."""
    if _CALL.search(text) is None:
        return
    source = without_comments(text)
    constants = SourceConstants(text)
    for match in some(_CALL.finditer(text), 16):
        end = matching_bracket(source, match.end())
        used = Used()
        parts = [argument_value(part, source, used, constants) for part in split_operands(source[match.end() : end])]
        im2col = "im2col" in match["name"].lower()
        of_tvm = "tvm" in match["name"].lower()
        fields = (packed_arguments if of_tvm else positional_arguments)(parts, im2col)
        if fields is None:
            continue
        read += used.spans
        kind = f"Arguments of {'TVM’s ' if of_tvm else ''}{match['name']}".replace("’", "'")
        for reading in _judged(kind, (match.start(), min(end + 1, len(text))), fields, used.notes):
            yield _sourced(reading, used, constants)


def _sourced(reading: Reading, used: Used, constants: SourceConstants) -> Reading:
    """Add to a reading the definitions that its arguments use, and the overflows of their expressions."""
    overflows = [
        Diagnostic(OVERFLOW, text=f"`{written}`: {text}", source="ISO C17, 6.5: a result that its type can't represent")
        for written, text in used.overflows.items()
    ]
    wider = [(written, constants.widened(written)) for written in used.overflows]
    changes = [*reading.changes, *(f"{written} -> {change}" for written, change in wider if change is not None)]
    return replace(reading, broken=(*reading.broken, *overflows), changes=changes, further=used.spans)


def _by_name(text: str, read: Sequence[Span] = ()) -> Iterator[Reading]:
    """Read named arguments, except declarations that a call reads."""
    heads = [match.start() for match in some(_HEADER.finditer(text))]
    matches = [m for m in some(_ARGUMENT.finditer(text), 600) if not any(a <= m.start() < b for a, b in read)]
    constants, used = SourceConstants(text if matches else ""), Used()
    matches = [match for match in matches if not _is_declaration(match, text)]
    found = _joined_elements([(m.start(), m.end(), *_named(m, constants, used)) for m in matches], matches)
    names = {name for _, _, name, _ in found}
    if "global_dim" not in names or not (heads or names & {"box_dim", "pixels_per_column"}):
        return
    groups = _grouped(found, heads)
    for fields, span, copies in groups:
        notes = [f"printed by {copies} threads at once; the lines of all of them agree"] if copies > 1 else []
        notes += [*used.notes, *refused_why(text)]
        if "data_type" not in fields and (stated := _stated_type(text)):
            fields["data_type"] = format_of(stated).name
        kind = _TILELANG_PRINT if "cudaGlobalStrides" in text or "globalStridesRaw" in text else _CUTLASS_PRINT
        if not heads:
            kind = f"Arguments of cuTensorMapEncode{'Im2col' if 'pixels_per_column' in fields else 'Tiled'}"
        results = [end for begin, end in refused_at(text) if begin >= span[0]]  # each printed map ends with its result
        until = results[-1] if len(groups) == 1 and results else min([e for e in results if e >= span[1]], default=0)
        for reading in _judged(kind[0].upper() + kind[1:], (span[0], max(span[1], until)), fields, notes):
            elsewhere = _where_else(text) if reading.elsewhere == LOOK_ELSEWHERE else reading.elsewhere
            yield _sourced(replace(reading, elsewhere=elsewhere), used, constants)


def _stated_type(text: str) -> str:
    """The element type that `text` mentions outside the arguments; '' if it mentions none, or several."""
    types = {as_dtype(match[0]).name for match in some(TYPE_NAME.finditer(text)) if unless_refused(format_of, match[0])}
    return types.pop() if len(types) == 1 else ""


_SHORT_NAMES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"\b(?:g?dims?|sizes?|shape|gmem_shape)(?=\W{1,6}[0-9])"), "globalDim"),
    (re.compile(r"\b(?:g?strides?)(?=\W{1,6}[0-9])"), "globalStrides"),
    (re.compile(r"\b(?:box|smem_shape)(?=\W{1,6}[0-9])"), "boxDim"),
    (re.compile(r"\bestrides?\b"), "elementStrides"),
    (re.compile(r"\b(?:ptr|gaddr)\b"), "gmem_address"),
    (re.compile(r"\bswz\b"), "swizzle"),
    (re.compile(r"\btype(?=\W{1,3}\w)"), "format"),
    (re.compile(r"\belem_?size\W{1,3}1\b"), "format=UINT8"),
    (re.compile(r"\belem_?size\W{1,3}2\b"), "format=FLOAT16"),
    (re.compile(r"\belem_?size\W{1,3}4\b"), "format=FLOAT32"),
)
"""Short names in a program's own output, next to a box -> the names that are read."""
_SHORT_BOX: Final = re.compile(r"\b(?:box|smem_shape)\W{0,6}[\[({]\s{0,80}[0-9]")


def _by_short_name(text: str) -> Iterator[Reading]:
    if _SHORT_BOX.search(text) is None:
        return
    spelled = text
    for pattern, name in _SHORT_NAMES:
        spelled = pattern.sub(name, spelled)
    for reading in _by_name(spelled):
        yield replace(reading, begin=0, end=len(text))


def _named(match: re.Match[str], constants: SourceConstants, used: Used) -> tuple[str, Value]:
    name = next(field for field, group in zip(_FIELDS, match.groups(), strict=False) if group)
    value = match["value"]
    if value[:1] in "([{" and value[-1:] not in ")]}":
        return name, "cut"
    parsed = known_value(value, constants, used) if value[:1] in "([{" else read_value(value, type_bits)
    spelled = match[0].lower()
    if name == "global_strides" and isinstance(parsed, tuple) and "cudaglobal" in spelled:
        return name, (-1, *parsed)  # without the stride of mode 0
    return name, parsed


_Found: TypeAlias = tuple[int, int, str, Value]


_SUBSCRIPT: Final = re.compile(r"\[\s?([0-9]{1,2})\s?\][\s:=]{0,20}\Z")


def _is_declaration(match: re.Match[str], text: str) -> bool:
    """Whether a match is the declaration of an array without its elements: `uint64_t globalDim[2];`."""
    return (
        match["value"].startswith("[")
        and match[0][-len(match["value"]) - 1] not in " =:"
        and text[match.end() : match.end() + 1] == ";"
    )


def _joined_elements(found: Sequence[_Found], matches: Sequence[re.Match[str]]) -> list[_Found]:
    """Join the elements of a list that were set or printed one by one: `globalDim[0] = 128`, `globalDim[1] = 64`."""
    rows: list[_Found] = []
    places: dict[str, int] = {}
    for (begin, end, name, value), match in zip(found, matches, strict=True):
        subscript = _SUBSCRIPT.search(match[0][: match.start("value") - begin])
        if subscript is None or not isinstance(value, int) or name not in (*_LISTS, *_CORNERS):
            rows.append((begin, end, name, value))
            continue
        before = rows[places[name]][3] if name in places else ()
        if isinstance(before, tuple) and before and int(subscript[1]) == len(before):
            start = rows[places[name]][0]
            rows[places[name]] = (start, end, name, (*before, value))
        else:
            places[name] = len(rows)
            rows.append((begin, end, name, (value,) if int(subscript[1]) == 0 else value))
    return rows


def _grouped(found: Sequence[_Found], heads: Sequence[int]) -> list[tuple[dict[str, Value], tuple[int, int], int]]:
    """(fields, span, number of threads that printed them) of each tensor map.

    A new map begins at a header, or where a field name repeats. The output of several threads may be interleaved; if
    all complete values of each name agree, they belong to one map.
    """
    whole = [row for row in found if row[3] != "cut"]
    values: dict[str, set[Value]] = {}
    for _, _, name, value in whole:
        if not (isinstance(value, str) and name in ("global_dim", "box_dim", "global_strides", "element_strides")):
            values.setdefault(name, set()).add(value if name != "global_strides" else _plain_strides(value))
    if values and all(len(seen) == 1 for seen in values.values()):
        first = min(heads[0], found[0][0]) if heads else found[0][0]
        fields = {name: value for _, _, name, value in whole}
        return [(fields, (first, found[-1][1]), max(len(heads), 1))]
    groups: list[tuple[dict[str, Value], tuple[int, int], int]] = []
    fields, begin, last = {}, -1, -1
    for start, end, name, value in whole:
        new = any(last < head <= start for head in heads) if begin >= 0 else False
        if begin < 0 or new or (name in fields and name not in ("global_strides", "rank", "data_type") and not heads):
            if fields:
                groups.append((fields, (begin, last), 1))
            fields, begin = {}, start
        if not (name in fields and isinstance(value, str)):
            fields[name] = value
        last = end
    if fields:
        groups.append((fields, (begin, last), 1))
    return [group for group in groups if "global_dim" in group[0]]


_WIDTHS: Final = {1: 0, 2: 1, 4: 2, 8: 4}
"""Bytes of an element -> the unsigned integer of that width, for texts without the type."""
_PRINTED_ADDRESS: Final = "{0} (an address was printed, not the numbers: print {0}[0] to {0}[rank-1])"
_NOT_COMPUTED: Final = "{0} (`{1}` is not computed here: replace it with its numbers)"
_NOT_DEFINED: Final = "{0} (the text does not define `{1}`: add its definition, with the numbers)"
_NOT_READ: Final = "{0} (the code sets elements of `{1}` to values that are not constants: add the numbers)"
_LISTS: Final = ("global_dim", "global_strides", "box_dim", "element_strides")
_CORNERS: Final = ("pixel_box_lower_corner", "pixel_box_upper_corner")
_WITH_DEFAULTS: Final = ("interleave", "swizzle", "l2_promotion", "oob_fill")
_TURNED: Final = "sizes and strides were read in reverse order, because the last stride is the size of one element"
_NO_STRIDES: Final = "the text does not contain the strides; the other rules were checked with valid strides"


def _aligned_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Assumed strides in bytes for a tensor of these sizes, for elements of 8 bytes; each is a multiple of 32 bytes.
    The first number, -1, is a placeholder for mode 0."""
    strides, step = [-1], 8
    for size in dims[:-1]:
        step = -(-step * max(size, 1) // 32) * 32
        strides.append(step)
    return tuple(strides)


def _plain_strides(value: Value) -> Value:
    """The strides without the stride of mode 0, which is present if the first number is an element size or -1."""
    if isinstance(value, tuple) and len(value) > 1 and value[0] in (-1, 1, 2, 4, 8):
        return value[1:]
    return value


def _judged(kind: str, span: tuple[int, int], fields: Mapping[str, Value], notes: Sequence[str]) -> Iterator[Reading]:
    """Make the readings of one set of arguments: a judged request if the set is complete, otherwise a list of the
    missing arguments."""
    rank = _rank_of(fields)
    if rank == 1 and fields.get("global_strides") == 0:  # a null pointer
        fields = {**fields, "global_strides": ()}
    dims = fields.get("global_dim")
    strides = fields.get("global_strides", () if rank == 1 else None)
    pointers = [name for name in _LISTS if name in fields and not isinstance(fields[name], tuple)]
    lacking = pointers or [name for name in _needed(fields) if name not in fields]
    lacking += ["global_strides"] if strides is None else []
    if strides is None and len(lacking) == 1 and isinstance(dims, tuple):
        taken = {**fields, "global_strides": _aligned_strides(dims[:rank] if rank else dims)}
        judged = [one for one in _judged(kind, span, taken, [*notes, _NO_STRIDES]) if one.broken]
        if judged:
            yield from judged
            return
    left_out = [name for name in _WITH_DEFAULTS if name not in fields]
    said = [*notes, *([] if isinstance(fields.get("global_address"), int) else [_NO_ADDRESS])]
    if lacking or not isinstance(dims, tuple) or not isinstance(strides, tuple):
        missing = [_unread(name, fields[name]) if name in fields and name in pointers else name for name in lacking]
        missing += [] if "data_type" in fields else ["data_type"]
        said += ["not judged: the rules of sizes, strides and boxes, because the text does not have all of them"]
        yield _incomplete(kind, span, _settings(fields), rank, [*missing, *left_out], said)
    elif rank > 1 and len(dims) == len(strides) == rank and strides[0] > strides[-1] in _WIDTHS:
        yield from _outermost_first(kind, span, fields, notes)
    else:
        defaults = [f"{', '.join(left_out)} (0 was assumed)"] if left_out else []
        yield _complete(kind, span, fields, rank, said, defaults)


def _unread(name: str, value: Value) -> str:
    """Say why a list of numbers is missing: its address was printed, it has names or operations, or it is a variable
    without a definition."""
    if isinstance(value, str) and value.endswith(SOME_ELEMENTS):
        return _NOT_READ.format(name, shortened(value.removesuffix(SOME_ELEMENTS)))
    if isinstance(value, str) and re.fullmatch(r"(?!0x)[A-Za-z_][\w.:>()-]*", value):
        return _NOT_DEFINED.format(name, shortened(value))
    spelled = value.lower().replace("0x", "") if isinstance(value, str) else ""
    computed = spelled[:1] in ("{", "[", "(") and re.search(r"[A-Za-z_]|\w\s?[-+*/<]", spelled)
    return _NOT_COMPUTED.format(name, shortened(str(value))) if computed else _PRINTED_ADDRESS.format(name)


def _rank_of(fields: Mapping[str, Value]) -> int:
    """The rank argument, or else the number of modes of the box or of the tensor; 0 if none of them is known."""
    rank = fields.get("rank")
    if isinstance(rank, int) and 0 <= rank <= 64:
        return rank
    lists = (fields.get("box_dim"), fields.get("global_dim"))
    return next((len(one) for one in lists if isinstance(one, tuple)), 0)


def _is_im2col(fields: Mapping[str, Value]) -> bool:
    return "pixels_per_column" in fields and "channels_per_pixel" in fields


def _needed(fields: Mapping[str, Value]) -> tuple[str, ...]:
    return ("global_dim",) if _is_im2col(fields) else ("global_dim", "box_dim")


def _settings(fields: Mapping[str, Value]) -> dict[str, object]:
    """The enums and the address of a request. If the text lacks the element type or the address, they have values that
    break no rule by themselves."""
    values: dict[str, object] = {"data_type": 1, **{name: fields[name] for name in ENUM_OF if name in fields}}
    for name, value in values.items():
        if isinstance(value, str):
            values[name] = re.split(r"::|\.", value)[-1]  # TensorMapDataType.FLOAT16, CUtensorMapDataType::CU_...
    address = fields.get("global_address")
    return {**values, "global_address": address if isinstance(address, int) else 1 << 20}


def _steps(strides: tuple[int, ...], rank: int, of_driver: bool) -> tuple[int, ...]:
    """The strides of mode 1 and higher. The text may have the stride of mode 0 before them, and unused numbers after
    them."""
    if strides[:1] == (-1,):
        return strides[1:]
    if len(strides) == rank - 1 or of_driver:
        return strides[: max(rank - 1, 0)]
    return strides[1:rank] if len(strides) >= rank else strides


def _complete(
    kind: str,
    span: tuple[int, int],
    fields: Mapping[str, Value],
    rank: int,
    notes: Sequence[str],
    missing: Sequence[str],
) -> Reading:
    """Make the reading of a complete set of arguments."""
    values = _settings(fields)
    lists = {name: value for name in _LISTS if isinstance(value := fields.get(name), tuple)}
    strides = lists.pop("global_strides", ())
    width = strides[0] if rank and len(strides) >= rank and strides[0] in _WIDTHS else 0
    if "data_type" not in fields:
        values["data_type"] = _WIDTHS.get(width, 1)
    values |= {name: value[:rank] if rank else value for name, value in lists.items()}
    values["global_strides"] = _steps(strides, rank, "map" in fields)
    try:
        if _is_im2col(fields):
            values.pop("box_dim", None)
            assumed = [name for name in _CORNERS if name not in fields]
            notes = [*notes, *(f"the text does not contain {name}; 0 was assumed" for name in assumed)]
            for name in _CORNERS:
                corner = fields.get(name, (0,) * (rank - 2))
                values[name] = corner[: max(rank - 2, 0)] if isinstance(corner, tuple) else ()
            values |= {name: fields[name] for name in ("channels_per_pixel", "pixels_per_column")}
            request: TensorMap = TensorMapIm2col(**values)  # type: ignore[arg-type]
        else:
            request = TensorMapTiled(**values)  # type: ignore[arg-type]
    except CuteError as error:
        return Reading(kind, *span, notes, (Diagnostic("argument", text=error.headline),))
    if "data_type" not in fields:
        by = f"{8 * width} bits by the stride of mode 0" if width else "16 bits were assumed"
        notes = [*notes, f"the text does not contain the type; {by}"]
    return map_reading(kind, span, request, notes, missing=missing)


def _outermost_first(
    kind: str, span: tuple[int, int], fields: Mapping[str, Value], notes: Sequence[str]
) -> Iterator[Reading]:
    """Make the readings of arguments whose sizes and strides are outermost first. The box is read in the order that
    breaks no rule."""
    turned: dict[str, Any] = dict(fields)
    for name in ("global_dim", "global_strides"):
        turned[name] = turned[name][::-1]
    bits = type_bits(str(fields.get("data_type", ""))) or 8
    if turned["global_strides"][0] == 1 and bits > 8:
        turned["global_strides"] = tuple([n * bits // 8 for n in turned["global_strides"]])
        notes = [*notes, "strides were read as elements"]
    box: Any = fields.get("box_dim")
    orders = (box[::-1], box) if isinstance(box, tuple) else (box,)
    readings = [
        list(_judged(kind, span, {**turned, "box_dim": order}, [*notes, said]))
        for order, said in zip(orders, (_TURNED, f"{_TURNED}; the box is innermost first"), strict=False)
    ]
    yield from next((found for found in readings if not any(one.broken for one in found)), readings[0])


def _incomplete(
    kind: str,
    span: tuple[int, int],
    values: Mapping[str, object],
    rank: int,
    missing: Sequence[str],
    notes: Sequence[str],
) -> Reading:
    """Make the reading of a tensor map whose arrays were printed as pointers, or omitted."""
    known: dict[str, Any] = {**values, "global_dim": (256,), "box_dim": (8,)}
    partial = unless_refused(TensorMapTiled, **{**known, "global_strides": (), "element_strides": None})
    if partial is None:
        return Reading(kind, *span, notes, missing=missing)
    found = [
        d
        for d in violations(partial)
        if d.argument in ("tensorDataType", "interleave", "swizzle", "l2Promotion", "oobFill", "globalAddress")
    ]
    stated = [f"rank {rank}"] if rank else []
    without_address = _NO_ADDRESS in notes
    notes = [note for note in notes if note != _NO_ADDRESS]
    missing = [*missing, *(["global_address"] if without_address else [])]
    stated += [] if without_address else [f"address {partial.global_address:#x}"]
    unknown = {*missing, *(("format",) if "data_type" in missing else ())}
    stated += [line for line in _names(partial) if line.split()[0] not in unknown]
    for name in ("interleave", "l2_promotion", "oob_fill"):
        value = getattr(partial, name)
        stated += [] if name in missing else [f"{name} {int(value)} is {getattr(value, 'name', 'unknown')}"]
    return Reading(kind, *span, [*stated, *notes], found, missing=missing)


def read_maps(text: str) -> list[Reading]:
    """Read the arguments and the bytes of tensor maps in `text`."""
    named = read_arguments(text)
    return named or read_bytes(text)
