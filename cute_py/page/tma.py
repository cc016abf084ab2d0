"""The tab TMA: the tensor map and the instructions of a copy, every broken rule, and changes that fix problems.

`explorer_answer` returns the answer as data; this module makes the sections of the page from it. A change is offered
only if a trial shows that it removes the problem and adds none.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final

from cute_py.draw.boxes import draw_boxes, draw_multicast
from cute_py.draw.explorer_answer import DEFAULTS, examined_query, tensor_address
from cute_py.draw.shared_memory import draw_smem
from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError, counted, unless_refused
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.layout import Layout, LayoutRight, domain_of, has_numbers
from cute_py.layout.recast import SmemPtrFlag, smem_ptr_flag
from cute_py.layout.trees import leaves
from cute_py.page.answer import Answer, closed
from cute_py.page.html import Html, code, html_table, join_html, list_html, pairs, pre, tag
from cute_py.tma.atom.make import fix_candidates
from cute_py.tma.atom.op import FORMAT_OF, OPS, SAME_WIDTH
from cute_py.tma.exports.export import export

MOST_TRIED: Final = 48
"""Maximum number of changes that one answer tries."""
MOST_FIXES: Final = 3
"""Maximum number of buttons for one problem."""
MOST_STEPS: Final = 6
"""Maximum number of changes that one button makes."""
_KINDS: Final = (("cute", "C++"), ("triton", "Triton"), ("c", "C, driver"), ("ptx", "PTX"))
_NO_OFFSET: Final = re.compile(r"\s*(Sw<[^<>]{1,40}>)\s+o\s+(?=\()")
_BITS: Final = re.compile(r"(?:fp|f|float)(\d{1,3})", re.IGNORECASE)
_SIZE: Final = re.compile(r"(?<![\w@])(\d+)")

Change = tuple[str, dict[str, str]]
"""A change: a sentence, and the fields that it sets."""


def form_of_copy(inputs: dict[str, str]) -> dict[str, str]:
    """The form for `explorer_answer`. If the address field has its default, the form gets the address of the pasted
    tensor."""
    address = tensor_address(inputs["gmem"])
    if address is not None and inputs["address"] == DEFAULTS["address"]:
        return {**inputs, "address": hex(address)}
    return dict(inputs)


def fill_tma(out: Answer, inputs: dict[str, str], fixes: bool) -> None:
    """Answer the tab TMA."""
    query = form_of_copy(inputs)
    examined = examined_query(query)
    found, atom = examined.found, examined.atom
    out.verdict = _verdict(found)
    for one in found["problems"]:
        facts = [f"{name}: {value}" for name, value in one["facts"] or []]
        out.problems.append({**one, "facts": facts, "hint": one["source"], "fixes": []})
    if out.problems and fixes:
        _offer(out, query, found)
    out.more = bool(out.problems) and not fixes
    if found["plan"] is not None:
        _sections(out, found, atom, query)
        if atom is not None and not out.problems:
            _code(out, query, atom)
    if found["stages"]:
        rows = [(code(name), code(value), reason) for name, value, reason in found["stages"]]
        out.section(
            "stages", "From the tile to the box", html_table(("stage", "value", "why"), rows), _notes(found["notes"])
        )


def _verdict(found: dict[str, Any]) -> tuple[str, str]:
    if found["not_covered"]:
        return ("unknown", f"Not answered here: {'; '.join(found['not_covered'])}")
    if found["problems"]:
        count = len(found["problems"])
        return ("bad", f"Refused: {found['problems'][0]['message']}" + (f", and {count - 1} more" if count > 1 else ""))
    plan = found["plan"]
    return (
        "good",
        f"Accepted: a tile is {counted(plan['instructions'], 'instruction')}, {plan['transaction_bytes']} bytes",
    )


def _notes(notes: list[str] | None) -> Html:
    return list_html(notes, class_="notes") if notes else Html("")


# ---- sections --------------------------------------------------------------------------------------------------------


def _sections(out: Answer, found: dict[str, Any], atom: Any, query: dict[str, str]) -> None:
    plan, work = found["plan"], found["work"]
    box = " x ".join(map(str, plan["box"]))
    rows: list[tuple[str, Any]] = [
        ("box", f"{box} elements of {plan['format']}, innermost mode first"),
        ("swizzle", plan["swizzle"]),
        ("a tile", f"{counted(plan['instructions'], 'instruction')} of {plan['bytes_per_instruction']} bytes"),
        ("barrier expects", f"{plan['transaction_bytes']} bytes"),
        ("shared alignment", f"{plan['alignment']} bytes"),
        ("G-basis", code(found["gbasis"])),
        ("TMA tensor", code(plan["tma_tensor"])),
        ("G-stride", code(plan["g_stride"])),
    ]
    if work is not None:
        rows.insert(3, ("tiles", f"{work['tiles']}, {work['tile_shape']}"))
    out.section("numbers", "Numbers", pairs(rows))
    if atom is not None and work is not None:
        _pictures(out, atom, work)
        _instructions(out, work)
    head = ("TMA mode", "elements", "stride in bytes", "box", "modes of the tensor")
    strides = [None, *plan["strides"]]
    body = [
        (i, dim, "element" if stride is None else stride, edge, code(modes))
        for i, (dim, stride, edge, modes) in enumerate(
            zip(plan["dims"], strides, plan["box"], plan["modes"], strict=False)
        )
    ]
    out.section("map", "Modes of the tensor map", html_table(head, body))
    if found["descriptor"] is not None:
        _descriptor(out, found["descriptor"])
    if found["warnings"]:
        out.section(
            "warnings", "Legal, but possibly unintended", html_table(("what", "values", "effect"), found["warnings"])
        )


def _pictures(out: Answer, atom: Any, work: dict[str, Any]) -> None:
    parts: tuple[tuple[str, str, Any], ...] = (
        ("boxes", "Boxes on the global tensor", lambda: draw_boxes(atom)),
        ("tile", f"Tile {work['tile']} in shared memory", lambda: draw_smem(atom, int(work["tile"]))),
        ("multicast", "Slices by CTA", lambda: draw_multicast(atom) if atom.num_multicast > 1 else None),
    )
    for name, title, make in parts:
        picture = unless_refused(make)
        if picture is not None:
            out.picture(name, title, picture, f"tma-{name}")


def _instructions(out: Answer, work: dict[str, Any]) -> None:
    rows = [
        (i, code(f"({','.join(map(str, coord))})"), offset)
        for i, (coord, offset) in enumerate(zip(work["coords"], work["offsets"], strict=True))
    ]
    left = work["total"] - len(rows)
    note = _notes(
        [f"{left} more", *([f"the last instruction of all tiles: ({','.join(map(str, work['last']))})"])]
        if left
        else []
    )
    out.section(
        "instructions",
        f"Instructions of tile {work['tile']}",
        html_table(("", "TMA coordinates", "shared byte"), rows),
        note,
    )


def _descriptor(out: Answer, descriptor: dict[str, Any]) -> None:
    hexadecimal = descriptor["hex"]
    lines = [
        (
            f"{i}",
            join_html(tag("span", hexadecimal[2 * j : 2 * j + 2], class_="byte", data_at=j) for j in range(i, i + 16)),
        )
        for i in range(0, len(hexadecimal) // 2, 16)
    ]
    rows = [
        (label, code(where), str(raw), f"{value} {unit}".strip(), meaning)
        for label, where, raw, value, unit, meaning in descriptor["fields"]
    ]
    whole = tag("details", tag("summary", "as one text, for cute-py desc"), pre(hexadecimal))
    fields = html_table(("field", "bits", "stored", "value", "meaning"), rows, "fields")
    out.section("descriptor", "Descriptor", html_table((), lines, "bytes"), whole, fields)


def _code(out: Answer, query: dict[str, str], atom: Any) -> None:
    arguments = [f'"{query["op"]}"', "x", f'cute.parse("{atom.smem_layout}")']
    if query["tile"]:
        arguments.append(f"cta_tiler={query['tile'].replace('x', ', ') if 'x' in query['tile'] else query['tile']!r}")
    arguments += [f"num_multicast={query['multicast']}"] if query["multicast"] != "1" else []
    arguments += [f'internal_dtype="{query["internal"]}"'] if query["internal"] else []
    arguments += [f'arch="{query["arch"]}"'] if query["arch"] != DEFAULTS["arch"] else []
    arguments += ["split_oversize=True"] if query["split"] == "1" else []
    lines = [
        "import cute_py as cute",
        "",
        f'pointer = cute.make_gmem_ptr({query["address"]}, "{query["dtype"]}")',
        f'x = cute.make_tensor(pointer, cute.parse("{atom.gtensor.layout}"))',
        f"atom = cute.tma.make_tma_copy({', '.join(arguments)})",
        "print(atom.explain())",
        "print(atom.descriptor.hex())",
    ]
    out.panel("Python", "\n".join(lines))
    for kind, name in _KINDS:
        out.panel(name, unless_refused(lambda kind=kind: export(atom, kind, arch=query["arch"])))  # type: ignore[misc]


# ---- changes that help -----------------------------------------------------------------------------------------------


def _messages(query: dict[str, str]) -> list[str] | None:
    """The messages of the problems of a form; None if the form can't be read."""
    try:
        return [problem["message"] for problem in examined_query(query).found["problems"]]
    except CuteError:
        return None


def _offer(out: Answer, query: dict[str, str], found: dict[str, Any]) -> None:
    """Add buttons with fixes to the problems. If no single change fixes all of them, add a button that makes several
    changes."""
    before = [problem["message"] for problem in found["problems"]]
    tried = _helpful(query, before)
    for problem in out.problems:
        for words, changes, after in tried:
            if problem["message"] not in after and len(problem["fixes"]) < MOST_FIXES:
                problem["fixes"].append({"words": words, "inputs": changes})
    if any(not after for _, _, after in tried) or not tried:
        return
    said, together = _chain(query, before)
    if together:
        out.problems[0]["fixes"].insert(0, {"words": f"all of them: {'; '.join(said)}", "inputs": together})


def _helpful(query: dict[str, str], before: list[str]) -> list[tuple[str, dict[str, str], list[str]]]:
    """(text, changes, remaining problems) for each change that removes a problem and adds none; the best change
    first."""
    out, seen = [], set()
    for words, changes in _candidates(query):
        key = tuple(sorted(changes.items()))
        if key in seen or all(query.get(name) == text for name, text in changes.items()):
            continue
        seen.add(key)
        if len(seen) > MOST_TRIED:
            break
        after = _messages({**query, **changes})
        if after is not None and len(after) < len(before) and set(after) < set(before):
            out.append((words, changes, after))
    return sorted(out, key=lambda row: len(row[2]))


def _chain(query: dict[str, str], before: list[str]) -> tuple[list[str], dict[str, str]]:
    """Find changes that, made one after the other, leave no problem. Return empty results if problems remain."""
    words: list[str] = []
    changes: dict[str, str] = {}
    for _ in range(MOST_STEPS):
        helpful = _helpful({**query, **changes}, before)
        if not helpful:
            return [], {}
        said, change, before = helpful[0]
        words, changes = [*words, said], {**changes, **change}
        if not before:
            return words, changes
    return [], {}


def _candidates(query: dict[str, str]) -> Iterator[Change]:
    examined = examined_query(query)
    for problem in examined.found["problems"]:
        if problem["field"]:
            yield from _of_field(query, problem["field"])
    if examined.arguments:
        yield from _of_arguments(examined.arguments, query)
    smem = _static_text(query["smem"])
    yield f"sizes that are known at compile time are written with _: {smem}", {"smem": smem}
    if query["tile"]:
        yield "leave the tile empty to use the shape of the shared layout", {"tile": ""}
    if query["internal"]:
        yield "count in the tensor's own type", {"internal": ""}


def _of_field(query: dict[str, str], name: str) -> Iterator[Change]:
    """Yield changes for a field whose text can't be read."""
    text = query[name]
    if (whole := closed(text)) is not None:
        yield f"close the brackets: {whole}", {name: whole}
    if (broken := _NO_OFFSET.match(text)) is not None:
        rest = text[broken.end() :]
        dtype = unless_refused(as_dtype, query["dtype"])
        for offset in ([f"smem_ptr[{dtype.bits}b](unset)"] if dtype else []) + ["_0"]:
            yield f"with its offset: {broken[1]} o {offset} o {rest}", {name: f"{broken[1]} o {offset} o {rest}"}
    if name in ("gmem", "smem") and text.startswith("(") and text.endswith(")") and ":" not in text:
        for order in ("LayoutRight", "LayoutLeft"):
            words = "row-major" if order == "LayoutRight" else "column-major"
            yield f"{words}: {text}:{order}", {name: f"{text}:{order}"}
    if name in ("dtype", "internal"):
        for near in near_types(text):
            yield near, {name: near}
    elif name == "op":
        for near in difflib.get_close_matches(text, [str(op) for op in OPS], 2):
            yield near, {name: near}
        if f"{text}_MULTICAST" in {str(op) for op in OPS}:
            yield f"{text}_MULTICAST", {name: f"{text}_MULTICAST"}
    elif DEFAULTS.get(name):
        yield f"the default: {DEFAULTS[name]}", {name: DEFAULTS[name]}


def near_types(text: str) -> list[str]:
    """Element types that a name may mean.

    >>> near_types("fp8"), near_types("flaot16")
    (['float8_e4m3fn', 'float8_e5m2'], ['float16', 'bfloat16'])
    """
    names = [row.name for row in DTYPES if FORMAT_OF.get(row.name) is not None]
    sized = _BITS.fullmatch(text)
    if sized is not None:
        found = [row.name for row in DTYPES if row.name.startswith(f"float{sized[1]}") and row.bits == int(sized[1])]
        usual = [name for name in found if name in ("float8_e4m3fn", "float8_e5m2")]
        return (usual or found)[:3]
    return difflib.get_close_matches(text, names, 2)


def _static_text(text: str) -> str:
    """The text of a layout with static numbers; the part before the last ` o ` is not changed.

    >>> _static_text("Sw<3,4,3> o smem_ptr[16b](unset) o (8,64):(64,1)")
    'Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)'
    """
    head, joint, tail = text.rpartition(" o ")
    return head + joint + _SIZE.sub(r"_\1", tail)


def _of_arguments(arguments: dict[str, Any], query: dict[str, str]) -> Iterator[Change]:
    """Yield changes of fields that may fix arguments of `make_tma_atom` that were refused."""
    tensor, smem = arguments["gtensor"], arguments["smem_layout"]
    if has_numbers(tensor.layout) and has_numbers(domain_of(smem)):
        for fix in fix_candidates(tensor, smem, int(arguments["num_multicast"])):
            yield fix.words, _fields(fix.arguments)
    bits = tensor.element_type.bits
    if not any(int(d) == 1 for d in leaves(tensor.layout.stride) if isinstance(d, int)):
        copy = Layout(tensor.layout.shape, LayoutRight)
        yield f"copy it to a contiguous tensor: {copy}", {"gmem": str(copy)}
    address = int(tensor.engine.address)
    if address % 16:
        up = hex(-(-address // 16) * 16)
        yield f"the next address that is a multiple of 16: {up}", {"address": up}
    other = SAME_WIDTH.get(bits)
    if FORMAT_OF.get(tensor.element_type.name) is None and other and not query["internal"]:
        yield f"count in {other}, which moves the same bits", {"internal": other}
    if isinstance(smem, ComposedLayout) and not isinstance(smem.offset, SmemPtrFlag):
        flagged = str(ComposedLayout(smem.outer, smem_ptr_flag(bits), smem.inner))
        yield f"a swizzle of bytes: {flagged}", {"smem": flagged}
    wanted = f"{arguments['op']}_MULTICAST"
    if wanted in {str(op) for op in OPS} and int(arguments["num_multicast"]) > 1:
        yield wanted, {"op": wanted}


def _fields(arguments: dict[str, Any]) -> dict[str, str]:
    """Convert arguments of `make_tma_atom` to the texts of form fields."""
    out = {}
    for name, value in arguments.items():
        if name == "gtensor":
            out["gmem"] = str(value.layout)
        elif name == "smem_layout":
            out["smem"] = str(value)
        elif name == "cta_tiler":
            out["tile"] = f"({','.join(map(str, value))})".replace(" ", "")
        elif name == "split_oversize":
            out["split"] = "1" if value else ""
        elif name == "num_multicast":
            out["multicast"] = str(value)
    return out
