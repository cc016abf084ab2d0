"""Read types, names and error messages about block scales: explain the order as a CuTe layout, and find a change.

A row of `rows/scale_names.toml` maps a library's name to an order of `formats.ORDERS`; `scale_type_readings` reads the
configurations of CUTLASS with their numbers; `rows/scale_errors.toml` lists the messages of torch, torchao, vLLM,
FlashInfer and cuBLASLt. If a message contains the sizes, the sizes that work are computed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from cute_py.errors import CuteError, unless_refused
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.rows.known_texts import found, rows, tables
from cute_py.explanation.rows.scale_counts import MOST_DIGITS, scale_counts
from cute_py.formats.format import Format, fp8, mxfp8, nvfp4
from cute_py.formats.scale_orders import NAMED_ORDERS, ScaleOrder, scale_order, sf_atom
from cute_py.layout.layout import Layout
from cute_py.notation.parse import parse

_SIZES: Final = "for M = 256, K = 512"


_ORDERS: Final = tables("scale_names")["row"]
_NAMES: Final = re.compile("|".join(rf"(?P<n{i}>(?<![\w.]){row['pattern']}(?!\w))" for i, row in enumerate(_ORDERS)))

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
    """The formula of an order, its layout for one size, and its padding."""
    form = _of_order(order, block)
    rows, scales = order.tile
    lines = [f"index of the scale for row m and block kb of Kb: {order.row.formula}" if order.row else ""]
    lines.append(f"as a layout {_SIZES}, {block} elements per scale: {form.scale_layout(256, 512)}")
    if (rows, scales) != (1, 1):
        lines.append(f"allocate round_up(M, {rows}) x round_up(ceil(K / {block}), {scales}) scales")
    lines.append(f"here: cute.formats.{form!r}")
    return [line for line in lines if line]


def _source(order: ScaleOrder) -> list[str]:
    return [f"source: {order.row.source}"] if order.row else []


def order_readings(text: str) -> Iterator[Reading]:
    """Read names of orders."""
    for name in some(_NAMES.finditer(text)):
        row = _ORDERS[int(str(name.lastgroup)[1:])]
        order = scale_order(row["order"])
        meaning = [*_lines(order, row["block"]), *_source(order)]
        yield Reading(f"{name[0]}, the scale order {order} ({row['program']})", *name.span(), meaning)


def order_name_text(text: str) -> str | None:
    """The explanation of an order of scales, if the string is its name, with or without parameters; otherwise None.

    Raises:
        InvalidValueError: the order does not have these parameters.

    >>> print(order_name_text("triton_blackwell").splitlines()[0])
    triton_blackwell, a scale order, also named blackwell_mx_scale
    """
    bare = text.strip()
    row = NAMED_ORDERS.get(bare.partition("(")[0].strip().lower())
    if row is None:
        return None
    order = scale_order(bare) if "(" in bare else unless_refused(scale_order, bare)
    used = [(named["program"], named["block"]) for named in _ORDERS if named["order"].partition("(")[0] == row.name]
    block = used[0][1] if used else 128 if row.name in _OF_128 else 32
    also = [name for name in row.aliases if name != bare.lower()]
    head = f"{order or row.name}, a scale order" + (f", also named {', '.join(also)}" if also else "")
    if order is not None and order.is_layout:
        lines = [*_lines(order, block)]
    else:
        lines = [row.formula, f"here: cute.formats.mxfp8(scales=scale_order({row.name!r}, ...)), with its parameters"]
    if programs := list(dict.fromkeys(program for program, _ in used)):
        lines.append(f"used by: {'; '.join(programs)}")
    if parameters := [f"{name} ({'required' if usual is None else usual})" for name, usual in row.parameters]:
        lines.append(f"parameters: {', '.join(parameters)}")
    return str(Reading(head, 0, len(text), [*lines, f"source: {row.source}"]))


_OF_128: Final = ("mn_major", "deepgemm_sm90", "deepgemm_sm100")
"""Orders of the scales of blocks of 128 elements."""


def scale_type_readings(text: str) -> Iterator[Reading]:
    """Read configurations of CUTLASS and the type of scales."""
    for match in some(_CONFIG.finditer(text)):
        block = int(match[2])
        if block not in (16, 32):
            meaning = [f"{block} elements per scale: tcgen05 and mma.sync support only 16 and 32 elements per scale"]
            yield Reading(f"{match[0]}: a configuration that no instruction supports", *match.span(), meaning)
            continue
        turned = "MN" in match[0].partition(",")[2] and match[1] != "Config"
        meaning = [f"SfAtom: {_swapped(sf_atom(block)) if turned else sf_atom(block)}"]
        if turned:
            meaning.append("MN-major: the scales run along M; tile_to_shape(SfAtom, (M,N,L), Step<_1,_2,_3>)")
        else:
            meaning.append(
                "tile_to_shape(SfAtom, (M,K,L), Step<_2,_1,_3>): tiles of 128 rows x 4 scales, along K first"
            )
            meaning += _lines(scale_order("32_4_4"), block)
        yield Reading(f"{match[0]}, scales of SM100, SM103 and SM120 in CUTLASS", *match.span(), meaning)
    for match in some(_BLOCKWISE.finditer(text)):
        rows, columns = int(match[2]), int(match[4])
        k_major = re.search(r"Major::K\b", match[5]) is not None
        form = fp8((rows, columns), scales="linear" if k_major else "mn_major")
        meaning = [
            f"float32 scales of A, one for {rows} rows x {columns} columns, {'K' if k_major else 'MN'}-major",
            f"as a layout {_SIZES}: {form.scale_layout(256, 512)} (C++ appends the batch)",
            f"in cute_py: cute.formats.{form!r}; for B, one for {match[3]} x {match[4]}",
        ]
        yield Reading(f"{match[0]}, blockwise scales of CUTLASS", *match.span(), meaning)
    for match in some(_ATOM.finditer(text)):
        meaning = [
            f"16 elements per scale: {sf_atom(16)}",
            f"32 elements per scale: {sf_atom(32)}",
            "128 rows x 4 scales in 512 bytes: rows that are 32 apart are adjacent, each with its 4 scales along K",
            *_lines(scale_order("32_4_4"), 32)[1:],
        ]
        yield Reading(f"{match[0]}, the tile of scales of SM100 in CUTLASS", *match.span(), meaning)


def exponent_readings(text: str) -> Iterator[Reading]:
    """Read the type of the scales of MX formats, once per text."""
    if (match := E8M0.search(text)) is not None:
        yield Reading(f"{match[0]}, a power of two", *match.span(), E8M0_LINES)


E8M0_LINES: Final = (
    "an exponent of 8 bits without sign or mantissa: code e is 2^(e - 127), and 255 is NaN; there is no zero and no "
    "infinity",
    "PTX rounds to it toward zero or up (cvt.rz, cvt.rp, sm_100 and newer), never to the nearest",
    "0xFF in the padding of scales is NaN, and 0 x NaN is NaN",
    "MXFP8, MXFP6 and MXFP4 use it as the scale of 32 elements: cute.formats.mxfp8()",
)


def _swapped(layout: Layout) -> Layout:
    shape, stride = layout.shape, layout.stride
    return Layout((shape[1], shape[0]), (stride[1], stride[0]))  # type: ignore[index]


def error_readings(text: str) -> Iterator[Reading]:
    """Read error messages about scales."""
    for row, match in found(text, rows("scale_errors")):
        kind = f"An error from {row.program} about scales"
        meaning, changes = [row.says(match)], [*filter(None, [row.changed(match)])]
        if row.note == "count_of_scales" and max(map(len, match.groups())) <= MOST_DIGITS:
            counts = scale_counts(text, match)
            missing = int(match[2]) < int(match[1])
            said = counts.expected and not (counts.padded and (missing or counts.places))
            meaning += [row.noted(match)] if said else []
            meaning += counts.meaning
            changes = changes if counts.expected and not counts.padded else []
            for place in counts.places:
                yield Reading(f"The sizes of the product: {counts.sizes}", *place)
        yield Reading(kind, *match.span(), [*filter(None, meaning)], changes=changes)


def read_formats(text: str) -> list[Reading]:
    """Read everything about block scales in a text.

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
    """The explanation of a name, a type or a printed layout of an order, if the string is exactly that.

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
    head = f"{layout}, the tile of scales of SM100: SfAtom with {block} elements per scale"
    meaning = ["128 rows x 4 scales in 512 bytes; stride 0: the elements of a block share a scale"]
    return str(Reading(head, 0, len(bare), [*meaning, *_lines(scale_order("32_4_4"), block)]))


def scale_atom_of(text: str) -> tuple[int, Layout] | None:
    """The block and the layout, if a string is SfAtom's shape or layout, as C++ types or as printed."""
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
