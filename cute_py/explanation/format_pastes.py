"""Read types, names and error messages about block scales; explain the order of the scales as a CuTe layout, and find a
change.

A row of `rows/scale_names.toml` maps a library's name to an order of `formats.ORDERS`; `scale_type_readings` reads the
configurations of CUTLASS with their numbers; `rows/scale_errors.toml` lists the messages of torch, torchao, vLLM,
FlashInfer and cuBLASLt. If a message contains the sizes, this module computes sizes that work.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cute_py.errors import CuteError, unless_refused
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.rows.known_texts import found, rows, tables
from cute_py.explanation.rows.scale_counts import MOST_DIGITS, scale_counts
from cute_py.explanation.rows.view_steps import ELLIPSIS, spelled_views
from cute_py.formats.format import Format, fp8, mxfp8, nvfp4, parse_format
from cute_py.formats.scale_orders import NAMED_ORDERS, ScaleOrder, scale_order, sf_atom
from cute_py.layout.layout import Layout
from cute_py.layout.leaf import Int
from cute_py.notation.parse import parse
from cute_py.notation.torch_views import PermutedView, permuted_views

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SIZES: Final = "for M = 256, K = 512"


_ORDERS: Final = tables("scale_names")["row"]
_RECIPES: Final = tables("scale_names")["recipe"]
_RECIPE_NAMES: Final = tuple([re.compile(row["pattern"]) for row in _RECIPES])
_NAMES: Final = re.compile("|".join(rf"(?P<n{i}>(?<![\w.]){row['pattern']}(?!\w))" for i, row in enumerate(_ORDERS)))

E8M0: Final = re.compile(
    r"(?<!\w)(?:torch\.|ml_dtypes\.|jnp\.|cutlass::)?(float8_e8m0fnu|float_ue8m0_t|__nv_fp8_e8m0|f8E8M0FNU|u?e8m0)(?!\w)",
    re.IGNORECASE,
)
_CONFIG: Final = re.compile(
    r"(?<!\w)(?:cutlass::detail::)?Sm(?:1xx|103)BlockScaled(Config|OutputConfig|BasicChunk)\s*<\s*([0-9]{1,4})\s*"
    r"(?:,[^<>\n]{0,80})?>"
)
_BLOCKWISE: Final = re.compile(
    r"(?<!\w)(?:cutlass::detail::)?Sm(90|1xx|100|120)BlockwiseScaleConfig\s*<\s*([0-9]{1,5})\s*,\s*([0-9]{1,5})\s*,"
    r"\s*([0-9]{1,5})\s*((?:,[^<>\n]{0,120})?)>"
)
_RUN_TIME: Final = re.compile(r"(?<!\w)(?:cutlass::detail::)?RuntimeBlockwiseScaleConfig\s*<([^<>\n]{0,120})>")
_ATOM: Final = re.compile(r"(?<!\w)Sf(?:KMajor|MNMajor)?Atom(?!\w)")


def _of_order(order: ScaleOrder, block: int) -> Format:
    if block == 16:
        return nvfp4(scales=order)
    if block == 128:
        return fp8((1, 128), rule="rceil" if order.name == "deepgemm_sm100" else "amax", scales=order)
    return mxfp8(scales=order)


def _lines(order: ScaleOrder, block: int) -> list[str]:
    """Lines about a scale order: its formula, its layout for one size, and its padding."""
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
    """Read every name of a scale order in `text`."""
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
    """Read every block-scale configuration of CUTLASS in `text`, such as Sm1xxBlockScaledConfig<16>."""
    for match in some(_CONFIG.finditer(text)):
        block = int(match[2])
        if block not in (16, 32):
            meaning = [f"{block} elements per scale: tcgen05 and mma.sync support only 16 and 32 elements per scale"]
            yield Reading(f"{match[0]}: a configuration that no instruction supports", *match.span(), meaning)
            continue
        turned = "MN" in match[0].partition(",")[2] and match[1] != "Config"
        sm103 = "Sm103" in match[0]
        atom = sf_atom_sm103(block) if sm103 else sf_atom(block)
        meaning = [f"SfAtom: {_swapped(atom) if turned else atom}"]
        if sm103:
            meaning.append(f"the same function as the SfAtom of Sm1xxBlockScaledConfig, {sf_atom(block)}")
        if turned:
            meaning.append("MN-major: the scales run along M; tile_to_shape(SfAtom, (M,N,L), Step<_1,_2,_3>)")
        else:
            meaning.append(
                "tile_to_shape(SfAtom, (M,K,L), Step<_2,_1,_3>): tiles of 128 rows x 4 scales, along K first"
            )
            meaning += _lines(scale_order("32_4_4"), block)
        chips = "SM103" if sm103 else "SM100, SM103 and SM120"
        yield Reading(f"{match[0]}, scales of {chips} in CUTLASS", *match.span(), meaning)
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
    for match in some(_RUN_TIME.finditer(text)):
        order = "linear" if re.search(r"Major::K\b", match[1]) else "mn_major"
        form = fp8((1, 128), scales=order)
        meaning = [
            "blocks of run-time sizes: their modes print without an underscore, and the layout comes from "
            "Sm1xxBlockwiseScaleConfig",
            f"as a layout {_SIZES}, 1 x 128 elements per scale: {form.scale_layout(256, 512)}",
            f"in cute_py: cute.formats.{form!r}",
        ]
        yield Reading(f"{match[0]}, blockwise scales of CUTLASS", *match.span(), meaning)
    for match in some(_ATOM.finditer(text)):
        yield Reading(f"{match[0]}, the tile of scales of SM100 in CUTLASS", *match.span(), _atom_lines())


def _atom_lines() -> list[str]:
    return [
        f"16 elements per scale: {sf_atom(16)}",
        f"32 elements per scale: {sf_atom(32)}",
        "128 rows x 4 scales in 512 bytes: rows that are 32 apart are adjacent, each with its 4 scales along K",
        *_lines(scale_order("32_4_4"), 32)[1:],
    ]


def sf_atom_sm103(block: int) -> Layout:
    """The SfAtom of CUTLASS's Sm103BlockScaledConfig. It is the same function as `sf_atom`, with the rows in three
    modes.

    >>> print(sf_atom_sm103(16))
    ((_8,_4,_4),(_16,_4)):((_16,_128,_4),(_0,_1))
    """
    eight, four = Int(8), Int(4)
    return Layout(((eight, four, four), (Int(block), four)), ((Int(16), Int(128), four), (Int(0), Int(1))))


def recipe_text(text: str) -> str | None:
    """The explanation of a recipe of scales, if the string is its name; otherwise None.

    >>> print(recipe_text("BlockWise1x16").splitlines()[0])
    BlockWise1x16, a recipe of scales (torch.nn.functional.ScalingType)
    """
    bare = text.strip()
    for row, pattern in zip(_RECIPES, _RECIPE_NAMES, strict=True):
        if pattern.fullmatch(bare):
            form = parse_format(row["format"])
            meaning = [f"here: cute.formats.{form!r}", *(line.strip() for line in form.explain().splitlines()[1:])]
            return str(Reading(f"{bare}, a recipe of scales ({row['program']})", 0, len(text), meaning))
    return None


def exponent_readings(text: str) -> Iterator[Reading]:
    """Read the scale type of MX formats (ue8m0, a power of two), at most once per text."""
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
    """Read every error message about scales in `text`."""
    for row, match in found(text, rows("scale_errors")):
        kind = f"An error from {row.program} about scales"
        meaning, (changes, advice) = [row.says(match)], row.remedies(match)
        if row.note == "count_of_scales" and max(map(len, match.groups())) <= MOST_DIGITS:
            counts = scale_counts(text, match)
            missing = int(match[2]) < int(match[1])
            said = counts.expected and not (counts.padded and (missing or counts.places))
            meaning += [row.noted(match)] if said else []
            meaning += counts.meaning
            if not counts.expected or counts.padded:
                advice = ()
            elif counts.sizes:  # both numbers were compared with these sizes
                changes, advice = advice, ()
            for place in counts.places:
                yield Reading(f"The sizes of the product: {counts.sizes}", *place)
        yield Reading(kind, *match.span(), [*filter(None, meaning)], changes=changes, advice=advice)


def read_formats(text: str) -> list[Reading]:
    """Read everything about block scales in `text`.

    >>> read_formats("SWIZZLE_32_4_4")[0].kind
    'SWIZZLE_32_4_4, the scale order 32_4_4 (torch.nn.functional.SwizzleType, torchao)'
    """
    taken: list[Reading] = []
    readers = error_readings, scale_type_readings, order_readings, exponent_readings
    for reading in [reading for read in readers for reading in read(text)]:
        if all(reading.end <= other.begin or reading.begin >= other.end for other in taken):
            taken.append(reading)
    return taken


_INTERLEAVED: Final = ("32_4_4", "8x4", "triton_blackwell", "rocm_32_8", "vllm_v_4x4")
"""Orders that programs make from the plain grid, or read as it, by a reshape and a permutation."""
MOST_SCALES: Final = 1 << 20
"""Maximum number of elements of a permuted tensor that is compared with the orders."""


def read_permuted(text: str) -> list[Reading]:
    """Read each chain of reshapes and permutations as a layout, and name the scale order that it reads or writes."""
    taken: list[Reading] = []
    spelled = spelled_views(text)
    for view in permuted_views(spelled.text):
        lines = [
            f"as CuTe writes it: {view.layout}",
            "from a coordinate of the result to the index of its element in the memory of the tensor, if that is "
            "contiguous",
        ]
        if view.examples:
            rows = [_example(name, value) for name, value in view.examples]
            lines.append(f"sizes that the text does not contain are examples: {', '.join(rows)}")
        if view.copied:
            lines.append("a view of it needs a copy, so PyTorch refuses .view here; .reshape makes the copy")
        scales = order_of_view(view)
        if view.keeps:
            kept = [line for line in scales if "the result has the order" in line]
            scales = [f"not read: {view.rest}, which has no layout, and keeps the order of the elements", *kept]
        elif view.rest:
            scales = [f"not read: {view.rest}, which may change the result"]
        span = spelled.span(view.begin, view.end)
        taken.append(Reading("A reshaped and permuted tensor", *span, lines + scales))
    return taken


def _example(name: str, value: int) -> str:
    """An example value of a size."""
    if name == ELLIPSIS:
        return f"the modes of `...` as one mode of {value} elements"
    return f"{value} in place of -1" if name == "-1" else f"{name} = {value}"


def order_of_view(view: PermutedView) -> list[str]:
    """Lines that name the scale order of the memory that a chain reads, or of the memory of its result."""
    import numpy as np

    from cute_py.layout.offsets import offsets

    count = math.prod(view.first)
    if count > MOST_SCALES:
        return []
    places = offsets(view.layout)
    flat = places.reshape(-1)
    grids = [(math.prod(view.first[:cut]), math.prod(view.first[cut:])) for cut in range(len(view.first) + 1)]
    if any(np.array_equal(flat, np.arange(count).reshape(shape).T.reshape(-1)) for shape in grids):
        return []  # the same elements or a transpose, as in the orders linear and mn_major
    for name in _INTERLEAVED:
        form = mxfp8(scales=name)
        plain = _grid(form, (places.shape[0], places.shape[1])) if places.ndim == 2 else None
        if plain is not None and np.array_equal(places, plain):
            return [f"if it holds scales: the memory has the order {name}, and the result is the plain grid"]
        for shape in grids[1:-1]:
            grid = _grid(form, shape)
            if grid is not None and np.array_equal(flat[grid].reshape(-1), np.arange(count)):
                made = f"the tensor is the plain grid of {shape[0]} x {shape[1]}, and the result has the order {name}"
                return [f"if it holds scales: {made}"]
    return []


def _grid(form: Format, shape: tuple[int, int]) -> NDArray[np.int64] | None:
    """The index of each scale of a plain grid in the order of a format; None if the order has padding for this grid."""
    import numpy as np

    rows, columns = shape
    if form.scale_size(rows, columns * 32) != rows * columns:
        return None
    index = form.scale_index(rows, columns * 32)
    return np.asarray(index(np.arange(rows)[:, None], np.arange(columns)[None, :] * 32))


_LAYOUT_TEXT: Final = 4000


def format_name_text(text: str) -> str | None:
    """The explanation of a scale type, a recipe, or SfAtom's type or layout, if the string is exactly that; otherwise
    None.

    >>> print(format_name_text("float8_e8m0fnu").splitlines()[0])
    float8_e8m0fnu, a power of two
    """
    bare = text.strip()
    if not bare or len(bare) > _LAYOUT_TEXT:
        return None
    if E8M0.fullmatch(bare):
        return str(Reading(f"{bare}, a power of two", 0, len(bare), E8M0_LINES))
    if (recipe := recipe_text(bare)) is not None:
        return recipe
    if "_4" not in bare and "<4>" not in bare:
        return None
    if begins_as_atom(bare):
        head = f"{bare}, the beginning of the tile of scales of SM100: SfAtom"
        return str(Reading(head, 0, len(bare), _atom_lines()))
    atom = scale_atom_of(bare)
    if atom is None:
        return None
    block, layout = atom
    head = f"{layout}, the tile of scales of SM100: SfAtom with {block} elements per scale"
    meaning = ["128 rows x 4 scales in 512 bytes; stride 0: the elements of a block share a scale"]
    return str(Reading(head, 0, len(bare), [*meaning, *_lines(scale_order("32_4_4"), block)]))


def scale_atom_of(text: str) -> tuple[int, Layout] | None:
    """(elements per scale, layout), if a string is SfAtom's shape or layout, as a C++ type or as CuTe prints it."""
    spelled = _spelled_type(text)
    for block in (16, 32):
        atom = sf_atom(block)
        shape = f"Shape<Shape<_32,_4>,Shape<_{block},_4>>"
        tupled = f"cute::tuple<cute::tuple<_32,_4>,cute::tuple<_{block},_4>>"
        strides = "cute::tuple<cute::tuple<_16,_4>,cute::tuple<_0,_1>>"
        if spelled in (shape, tupled, f"cute::Layout<{tupled},{strides}>", f"Layout<{tupled},{strides}>"):
            return block, atom
        if spelled.startswith(f"Layout<{shape},Stride<Stride<_16,_4>,Stride<_0,_1>>"):
            return block, atom
    if not spelled.startswith(("((_32", "((_8,_4,_4)")):
        return None
    try:
        thing = parse(text.strip())
    except CuteError:
        return None
    return next(((b, atom) for b in (16, 32) for atom in (sf_atom(b), sf_atom_sm103(b)) if thing == atom), None)


def _spelled_type(text: str) -> str:
    """A C++ type with its static numbers as CuTe prints them, without blanks."""
    spelled = re.sub(r"\s+", "", text)
    return re.sub(r"(?:cute::)?(?:C|Int|constant<int)[<,]([0-9]+)>+?(?=[,>)])", r"_\1", spelled)


def begins_as_atom(text: str) -> bool:
    """Whether a string is the beginning of SfAtom's type, truncated with `...` as compilers do.

    >>> begins_as_atom("Shape<Shape<_32,_4>,...>"), begins_as_atom("Shape<_32,...>")
    (True, False)
    """
    begin, dots, rest = _spelled_type(text).partition("...")
    return bool(dots) and not rest.strip(">)") and begin.rstrip(",") in _BEGINNINGS


_BEGINNINGS: Final = tuple(
    [outer + inner for outer in ("", "Layout<", "cute::Layout<") for inner in (
        "Shape<Shape<_32,_4>", "cute::tuple<cute::tuple<_32,_4>", "Shape<Shape<_8,_4,_4>",
    )]
)  # fmt: skip
"""SfAtom's type begins with one of these, up to the modes of the rows."""
