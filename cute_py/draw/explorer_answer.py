"""The answer to the form that describes one TMA copy, as JSON data. The TMA tab of the page, `GET /answer` and Python
code use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.arith_tuple.cells import text
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError, GBasisError, InvalidTypeError, InvalidValueError, given, unless_refused
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, domain_of, has_numbers, static
from cute_py.layout.recast import recast_layout, smem_ptr_flag
from cute_py.layout.trees import leaves
from cute_py.notation.parse import parse
from cute_py.tensor.pointers import make_gmem_ptr
from cute_py.tensor.tensor import Tensor, make_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.gbasis import check_collapsed, construct_tma_gbasis, make_cta_v_map
from cute_py.tma.atom.make import check_map, engine_swizzle, find_fixes, make_tma_atom
from cute_py.tma.atom.op import as_op, check_byte_swizzle, check_op, tensor_map_format
from cute_py.tma.atom.tile_atom import layout_modes
from cute_py.tma.atom.tiles import FirstTile, first_tile, last_coordinates, tile_start, tile_steps
from cute_py.tma.descriptor.diff import field_table
from cute_py.tma.descriptor.fields import PAYLOAD_BYTES
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.limits import architecture, unknown_addition
from cute_py.tma.descriptor.violations import violations
from cute_py.tma.emulator.trace import Trace

T = TypeVar("T")
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
Problem = dict[str, Json]

DEFAULTS: Final = {
    "gmem": "",
    "dtype": "float16",
    "internal": "",
    "address": "0x1000",
    "smem": "",
    "tile": "",
    "op": "SM90_TMA_LOAD",
    "multicast": "1",
    "arch": "sm_90a",
    "split": "",
    "at": "0",
}
"""The fields of the form, in order, with their defaults, as strings that a person types."""

LIMITS: Final = {"most_listed": 64, "most_work": 65_536, "most_traced": 4096, "most_fixes": 2, "max_text": 2000}
"""Limits of an answer: the instructions that it lists, lays out and traces to bytes; the fixes that it lists; the
characters of one string."""

SAMPLE_BYTES: Final = tuple(k * (256 + 18) for k in range(16))
"""Bytes of a tile that are compared between the page and the library: spread over lines, units and elements."""

WANTED: Final = {
    "address": "the address must be an integer such as 4096 or 0x1000",
    "multicast": "the multicast count must be an integer such as 4",
}
"""The message for a field that does not hold an integer."""


def _copy(gmem: str, smem: str, **fields: str) -> dict[str, str]:
    return {"gmem": gmem, "smem": smem, **fields}


_WIDE = "(1024,512):(512,_1)"
_SWIZZLED = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
EXAMPLES: Final = (
    ("K-major tile, 128B swizzle", _copy(_WIDE, _SWIZZLED, tile="(128,64)")),
    ("plain tile over the end", _copy("(100,200):(200,_1)", "(_32,_64):(_64,_1)", dtype="bfloat16")),
    ("multicast by 4", _copy(_WIDE, _SWIZZLED, op="SM90_TMA_LOAD_MULTICAST", multicast="4")),
    (
        "batched, nested tensor",
        _copy(
            "((_32,40),(_8,3)):((_1,_32),(1280,10240))",
            "((_32,_4),_8):((_1,_32),_128)",
            tile="(128,8)",
            dtype="float32",
        ),
    ),
    ("box above 256, split", _copy("(4096,1024):(1024,_1)", "(_512,_64):(_64,_1)", dtype="uint8", split="1")),
    ("error: inner stride not 1", _copy("(256,128):(_1,256)", "(_64,_64):(_64,_1)")),
    ("error: stride not a multiple of 16 bytes", _copy("(256,100):(100,_1)", "(_64,_32):(_32,_1)")),
    ("error: rows wider than the swizzle", _copy(_WIDE, "Sw<2,4,3> o smem_ptr[16b](unset) o (_64,_64):(_64,_1)")),
    ("error: pieces below 128 bytes", _copy("(256,256):(256,_1)", "(_32,_40):(_48,_1)")),
    ("error: box above 256", _copy("(4096,1024):(1024,_1)", "(_512,_64):(_64,_1)", dtype="uint8")),
    ("error: run-time tile", _copy("(256,128):(128,_1)", "(64,64):(64,1)")),
    ("error: several at once", _copy("(256,100):(100,_1)", "(_512,_20):(_20,_1)", address="0x1008")),
)
"""(name, fields) of each example; an example whose name begins with 'error' shows a frequent error."""

LONGEST_VALUE: Final = 132
"""Maximum number of characters in a field that is not a layout: 2**128 in binary, and its sign."""

_CROSSED: Final = re.compile(r"\d{1,9}(?:x\d{1,9}){1,4}")
_INTEGER: Final = re.compile(r"\s*([-+]?(?:0x[0-9a-f]+|0o[0-7]+|0b[01]+|[1-9]\d*|0+))\s*\Z", re.IGNORECASE | re.ASCII)


def problem(
    rule: str,
    message: str,
    *,
    field: str | None = None,
    mode: int | None = None,
    source: str | None = None,
    facts: list[Json] | None = None,
) -> Problem:
    """Return one problem as JSON data: the name of the rule or error, its text, and the field or TMA mode that causes
    it.
    """
    return {"rule": rule, "field": field, "message": message, "mode": mode, "source": source, "facts": facts}


def _number(n: int) -> int | str:
    """Convert an integer to JSON: a number if every JSON reader represents it exactly, else a string of its digits.

    >>> _number(2**53), _number(2**53 + 1)
    (9007199254740992, '9007199254740993')
    """
    return int(n) if abs(n) <= 2**53 else str(int(n))


def _numbers(values: Iterable[int]) -> list[Json]:
    """Convert integers to JSON, each with `_number`."""
    return [_number(n) for n in values]


def _integer(text: str, wanted: str) -> int:
    """Parse an integer: decimal, or with the prefix 0x, 0o or 0b.

    Raises:
        InvalidValueError: the string is not an integer; `wanted` is the message.
    """
    found = _INTEGER.match(text)
    if found is None:
        raise InvalidValueError(wanted)
    return int(found[1], 0)


def checked_query(query: Mapping[str, str]) -> dict[str, str]:
    """Return all fields of the form, with defaults for the missing ones.

    Raises:
        InvalidValueError: a field is unknown, the layouts are missing, or a value has more than `LONGEST_VALUE`
            characters.

    >>> checked_query({"gmem": "8:_1", "smem": "_8:_1"})["op"]
    'SM90_TMA_LOAD'
    """
    unknown = [name for name in query if name not in DEFAULTS]
    if unknown:
        raise InvalidValueError(f"unknown field {given(unknown[0])}", {"known": ", ".join(DEFAULTS)})
    missing = [name for name in ("gmem", "smem") if name not in query]
    if missing:
        raise InvalidValueError(f"no field {missing[0]!r}", {"needed": "gmem and smem, the layouts of a copy"})
    for name in DEFAULTS.keys() - {"gmem", "smem", "tile"}:  # layouts are measured where they are read
        length = len(query.get(name, ""))
        if length > LONGEST_VALUE:
            raise InvalidValueError(f"field {name!r} of {length} characters; must be at most {LONGEST_VALUE}")
    return {name: query.get(name, default).strip() for name, default in DEFAULTS.items()}


def _parsed(text: str) -> Any:
    """Parse a layout or tensor from a form field of limited length.

    Raises:
        InvalidValueError: the string is too long, or a basis element names a mode that no layout has; ParseError: see
            `parse`.
    """
    if len(text) > LIMITS["max_text"]:
        raise InvalidValueError(f"the text has {len(text)} characters; must have at most {LIMITS['max_text']}")
    if re.search(r"@\d{3}", text) or re.search(r"E<[^<>]{0,400}?\d{3}", text):
        raise InvalidValueError("a basis element names a mode above 99; must be at most 99")
    return parse(text)


def _gmem(text: str) -> Layout:
    layout = _parsed(text)
    if isinstance(layout, Tensor):  # as the library prints it; `tensor_address` has its address
        layout = layout.layout
    if not isinstance(layout, Layout) or any(isinstance(d, ScaledBasis) for d in leaves(layout.stride)):
        raise InvalidTypeError("the global tensor is not a layout; write one such as (1024,512):(512,_1)")
    return layout


def _smem(text: str) -> Layout | ComposedLayout:
    layout = _parsed(text)
    if isinstance(layout, Tensor):
        swizzle = getattr(layout.engine, "swizzle", None)
        bits = as_dtype(layout.element_type).bits
        layout = ComposedLayout(swizzle, smem_ptr_flag(bits), layout.layout) if swizzle else layout.layout
    if not isinstance(layout, (Layout, ComposedLayout)):
        raise InvalidTypeError("the shared tile is not a layout; write one such as (_128,_64):(_64,_1)")
    return layout


def tensor_address(text: str) -> int | None:
    """Return the address that the text of a tensor contains; None if the text is not a tensor or contains no address.

    >>> tensor_address("gmem_ptr[16b](0x2000) o (64,64):(64,_1)"), tensor_address("(64,64):(64,_1)")
    (8192, None)
    """
    found = unless_refused(_parsed, text)
    address = getattr(found.engine, "address", None) if isinstance(found, Tensor) else None
    return address if isinstance(address, int) else None


def _tile(text: str) -> Any:
    """Parse a tile: sizes or layouts by mode; `64x64` means (64,64)."""
    if _CROSSED.fullmatch(text):
        text = f"({text.replace('x', ',')})"
    return static(_parsed(text)) if text else None


def _address(text: str) -> int:
    value = _integer(text, WANTED["address"])
    make_gmem_ptr(value, "uint8")
    return value


def _arch(text: str) -> str:
    architecture(text)
    return text


_READERS: Final[dict[str, Callable[[str], Any]]] = {
    "gmem": _gmem,
    "dtype": as_dtype,
    "internal": lambda text: as_dtype(text) if text else None,
    "address": _address,
    "smem": _smem,
    "tile": _tile,
    "op": as_op,
    "multicast": lambda text: _integer(text, WANTED["multicast"]),
    "arch": _arch,
}


def _attempt(make: Callable[[], T], problems: list[Problem], rule: str | None = None) -> T | None:
    try:
        return make()
    except CuteError as error:
        listed: list[Json] = [[name, str(fact)] for name, fact in error.facts.items()]
        facts = listed if isinstance(error, GBasisError) else None
        problems.append(problem(rule or type(error).__name__, error.headline, facts=facts))
        return None


def answer_query(query: Mapping[str, str]) -> dict[str, Any]:
    """Return all data that the page shows for a filled-in form.

    Args:
        query: the text of each field; `DEFAULTS` lists the fields.
    Returns:
        plain data. `problems` lists all problems; it is empty if the copy can be made and every instruction starts at a
        legal address. Data that can't be computed because of the problems is None. `not_covered` names questions that
        the form can't answer.
    Raises:
        InvalidValueError: `checked_query` refuses the form.

    >>> found = answer_query({"gmem": "(256,100):(100,_1)", "smem": "(_64,_32):(_32,_1)"})
    >>> [p["message"] for p in found["problems"]], found["fixes"][0]
    (['globalStrides[0] = 200 bytes; must be a multiple of 16'], 'pad the row to 104 elements')
    """
    examined = examined_query(query)
    found = examined.found
    if examined.helps:
        fixes = find_fixes(make_tma_atom, examined.arguments, LIMITS["most_fixes"], pairs=False)
        found["fixes"] = [fix.words for fix in fixes]
    return found


@dataclass(frozen=True, slots=True)
class ExaminedQuery:
    """The answer to a form, with the arguments and the atom behind it.

    Attributes:
        found: the answer without fixes.
        arguments: the arguments of `make_tma_atom`; empty if a field can't be read.
        helps: whether a change of the arguments may solve the problems.
        atom: the atom; None if it can't be made.
    """

    found: dict[str, Any]
    arguments: dict[str, Any]
    helps: bool
    atom: TmaAtom | None


def examined_query(query: Mapping[str, str]) -> ExaminedQuery:
    """Read a form, make its atom, and examine it.

    Raises:
        InvalidValueError: `checked_query` refuses the form.
    """
    fields = checked_query(query)
    problems: list[Problem] = []
    form: dict[str, Any] = {}
    for name, read in _READERS.items():
        try:
            form[name] = read(fields[name])
        except CuteError as error:
            problems.append(problem(type(error).__name__, error.headline, field=name))
    empty = dict.fromkeys(("gbasis", "stages", "notes", "plan", "work", "samples", "descriptor", "warnings"))
    found: dict[str, Any] = {"not_covered": [], "problems": problems, **empty, "fixes": []}
    arguments: dict[str, Any] = {}
    atom: TmaAtom | None = None
    if not problems and form["op"].row.mode == "im2col":
        found["not_covered"] = [f"im2col ({form['op']}), which the explorer does not cover"]
    elif not problems:
        arguments = {
            "op": form["op"],
            "gtensor": make_tensor(make_gmem_ptr(form["address"], form["dtype"]), form["gmem"]),
            "smem_layout": form["smem"],
            "cta_tiler": form["tile"],
            "num_multicast": form["multicast"],
            "internal_dtype": None if form["internal"] is None else form["internal"].name,
            "arch": form["arch"],
            "split_oversize": fields["split"] == "1",
            "suggest": False,
        }
        basis, atom = _examined(arguments, problems)
        found.update(basis)
        if atom is not None:
            found.update(_of_atom(atom, fields["at"], problems))
    refused = any(p["rule"] != "work" for p in problems)
    helps = bool(arguments) and refused and all(map(has_numbers, (form["gmem"], domain_of(form["smem"]))))
    return ExaminedQuery(found, arguments, helps, atom)


def _examined(arguments: dict[str, Any], problems: list[Problem]) -> tuple[dict[str, Any], TmaAtom | None]:
    """Make the G-basis of a copy and its atom; add the reasons for a failure to `problems`."""
    op, tensor, smem = arguments["op"], arguments["gtensor"], arguments["smem_layout"]
    dtype = tensor.element_type
    internal = as_dtype(arguments["internal_dtype"] or dtype)
    for broken in check_op(op, arguments["arch"], arguments["num_multicast"]):
        problems.append(problem("InvalidValueError", broken.message, field="op"))
    found: dict[str, Any] = {}
    before = len(problems)
    _attempt(lambda: tensor_map_format(internal), problems)
    problems[before:] = [{**p, "field": "dtype"} for p in problems[before:]]
    swizzle = _attempt(lambda: engine_swizzle(smem), problems)
    for broken in [] if swizzle is None else check_byte_swizzle(swizzle):
        problems.append(problem("StaticAssertError", broken.message, field="smem"))
    plain = domain_of(smem)
    tiler = product_each(plain.shape) if arguments["cta_tiler"] is None else arguments["cta_tiler"]
    gmem = tensor.layout
    basis = _attempt(
        lambda: construct_tma_gbasis(
            gmem,
            plain,
            make_cta_v_map(tensor.shape, tiler),
            internal,
            dtype=dtype,
            split_oversize=arguments["split_oversize"],
        ),
        problems,
    )
    if basis is not None:
        steps = [[name, str(value), reason] for name, value, reason in basis.trace.steps()]
        found.update(gbasis=str(basis), stages=steps, notes=list(basis.trace.notes))
    return found, None if problems else _attempt(lambda: make_tma_atom(**arguments, check=False), problems)


def _of_atom(atom: TmaAtom, at: str, problems: list[Problem]) -> dict[str, Any]:
    gmem = atom.gtensor.layout
    for broken in check_map(atom.plan, atom.request, atom.arch):
        asserted = broken in atom.plan.broken
        rule, source = ("cute", None) if asserted else (broken.rule, broken.source)
        problems.append(problem(rule, broken.message, mode=broken.mode, source=source))
    for broken in check_collapsed(recast_layout(gmem, atom.dtype, atom.internal_dtype), atom.plan.gbasis):
        problems.append(problem("collapsed", broken.message, mode=broken.mode))
    sound = not violations(atom.request, arch=atom.arch) and unknown_addition(atom.request) is None
    small = 0 < atom.instructions * atom.num_multicast <= LIMITS["most_work"]
    # else instructions may step by a part of an element
    whole = atom.internal_dtype.bits == atom.dtype.bits or atom.plan.box[0] * atom.internal_dtype.bits % 128 == 0
    walks = whole and all(b.mode != 0 for b in atom.plan.broken) and all(0 < n <= 1 << 32 for n in atom.plan.dims)
    work = _attempt(lambda: first_tile(atom), problems, "work") if small and walks else None
    # Rows that the swizzle places apart are among the warnings of the map.
    reason = next((found.message for found in atom.check() if found.rule != "swizzled_rows"), None)
    warned = [[w.rule, w.detail, w.facts["effect"]] for w in hazards(atom.request)]
    drawn = samples = None
    if work is not None and work.tiles:
        typed = _INTEGER.match(at)
        which = min(max(int(typed[1], 0), 0), work.tiles - 1) if typed else 0
        drawn = _attempt(lambda: _work(work, which, atom.plan.rank), problems, "work")
        samples = _samples(atom, work, which) if sound and drawn is not None else None
    return {
        "plan": _plan(atom),
        "work": drawn,
        "samples": samples,
        "descriptor": _descriptor(atom.descriptor) if sound else None,
        "warnings": warned if reason is None else [*warned, ["layouts", "", reason]],
    }


def _plan(atom: TmaAtom) -> dict[str, Any]:
    plan = atom.plan
    form = atom.request.data_type
    counts = ("instructions", "num_val_src", "bytes_per_instruction", "transaction_bytes")
    return {
        "format": getattr(form, "name", str(form)),
        "swizzle": atom.swizzle_row.name,
        **{name: _numbers(getattr(plan, name)) for name in ("dims", "strides", "box")},
        "modes": [layout_modes(plan, atom.gtensor.layout, i) for i in range(plan.rank)],
        "g_stride": text(plan.g_stride),
        "tma_tensor": str(atom.get_tma_tensor()),
        "alignment": atom.alignment,
        **{name: _number(getattr(atom, name)) for name in counts},
    }


def _work(work: FirstTile, which: int, rank: int) -> dict[str, Any]:
    listed = LIMITS["most_listed"]
    kept = _moved(work.rows[:listed], tile_start(work, which, rank))
    return {
        "tiles": _number(work.tiles),
        "tile_shape": text(tile_steps(work).shape),
        "tile": _number(which),
        "total": len(work.rows),
        "coords": [_numbers(coord) for coord in kept],
        "offsets": [_number(n) for n in work.places[:listed]],
        "last": _numbers(last_coordinates(work)),
    }


def _moved(rows: Iterable[tuple[int, ...]], by: list[int]) -> list[tuple[int, ...]]:
    """Coordinates of a tile, moved by `by` along each mode."""
    return [tuple(c + step for c, step in zip(row, by, strict=True)) for row in rows]


def _samples(atom: TmaAtom, work: FirstTile, which: int) -> list[list[Json]] | None:
    """Return [byte, TMA coordinate, inside, global address, instruction, bank] for a few bytes of the tile; None if the
    tile can't be traced.
    """
    if len(work.rows) > LIMITS["most_traced"] or atom.op.row.mode != "tile" or atom.internal_dtype.bits < 8:
        return None
    coords = _moved(work.rows, tile_start(work, which, atom.plan.rank))
    if any(not -(1 << 31) <= c < 1 << 31 for row in coords for c in row):  # no instruction takes such a coordinate
        return None
    trace = Trace(atom.descriptor, coords, work.places)
    shape = trace.geometry
    end = max(trace.starts) + (trace.rows - 1) * shape.pitch + shape.row_bytes
    out: list[list[Json]] = []
    for byte in SAMPLE_BYTES:
        step = trace.backward(byte) if byte < end else None
        if step is not None:
            address = hex(step.global_address)
            out.append([byte, _numbers(step.tma_coord), step.inside, address, step.instruction, step.bank])
        elif byte < end:
            out.append([byte, None])
    return out


def _descriptor(raw: bytes) -> dict[str, Any]:
    live = raw[:PAYLOAD_BYTES]
    rows = [[r.label, r.where, _number(r.raw), _number(r.value), r.unit, r.meaning] for r in field_table(live)]
    return {"hex": live.hex(), "fields": rows}
