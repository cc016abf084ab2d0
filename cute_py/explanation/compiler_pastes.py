"""Failed assertions of CuTe in the output of a compiler or a program: the condition, the operands, and a change that
compiles.

nvcc, g++ and clang print types; this module converts them to layouts in CuTe's notation. If the output contains the
operation and its operands, explain runs the operation on them, so that the answer shows the actual numbers. Changes are
tried in the same way before they are offered.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from cute_py.arith_tuple import text as shown
from cute_py.atom.copy_atom import CopyAtom
from cute_py.atom.copy_atoms import COPY_ATOMS, copy_atom
from cute_py.atom.mma_atoms import mma_atom
from cute_py.atom.smem_layouts import gmma_layout
from cute_py.atom.tiled_copy import TiledCopy
from cute_py.diagnostics import Diagnostic
from cute_py.errors import CuteError, counted, unless_refused
from cute_py.explanation.compositions import whether_function
from cute_py.explanation.offers import composes, divides_whole, passes_check
from cute_py.explanation.readings import Reading, condition_id, some, type_bits
from cute_py.layout.arguments import Tree
from cute_py.layout.coalesce import coalesce
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import rank, size
from cute_py.layout.layout import Layout, cosize, domain_of
from cute_py.layout.recast import upcast
from cute_py.layout.tiling import complement, logical_divide, logical_product, tile_to_shape
from cute_py.layout.trees import leaves, modes
from cute_py.notation.argument_lists import matching_bracket, split_operands
from cute_py.notation.compiler_types import BINDINGS, MOST_TYPES, bindings, spelled_type
from cute_py.notation.parse import Parsed, parse
from cute_py.tma.descriptor.limits import BY_NAME, bounds

_STATIC: Final = re.compile(
    r"static[ _]assert(?:ion)?\s{1,80}failed(?:\s{1,80}due to requirement\s{1,80}'(?P<requirement>[^\n]{0,4000}?)')?"
    r"[ \t]{0,9}(?:with|:)?[ \t]{0,9}[\"']?"
    r"(?P<condition>[^\n\"]{0,300})",
    re.IGNORECASE,
)
_SHOWN: Final = re.compile(
    r"(?:(?<![^\s:])(?P<file>[^\s:]{1,400}+):(?P<line>[0-9]{1,100}):[0-9]{1,100}: n"
    r"ote: in expansion of macro [^\n]{0,400}\n\s{0,80}[0-9]{1,100} \||"
    r"static assertion failed[ \t]{0,100}\n)\s{0,80}(?:[0-9]{1,100} \|\s{0,80})?"
    r"(?:CUTE_STATIC_ASSERT_V|static_assert)\((?:decltype\()?"
    r"(?P<condition>[^\n]{1,300}?)(?:\)::value)?\);"
)
"""Patterns for the condition of a static_assert without a message, and for the place of CuTe's macro in g++ output."""
_RUN_TIME: Final = re.compile(r"Assertion [`'\"](?P<condition>[^\n]{1,300}?)['`\"] failed")
_PLACE: Final = re.compile(r"(?:[^\s:]+: )?(?P<file>[^\s:(]+)[:(](?P<line>[0-9]+)")
_INSTANCE: Final = re.compile(
    r"(?:instantiation of (?:function |class |variable )?[\"']|required from [‘'`]|In instantiation of "
    r"[‘'`])(?P<name>[^\n]{1,6000})"
)
_REMAINDER: Final = re.compile(r"C<([0-9]{1,12})>::value % C<([0-9]{1,12})>::value == 0 \|\|")
_TILED_COPY: Final = re.compile(r"(?:struct |class )?cute::TiledCopy<")
_USER: Final = re.compile(
    r"at line (?P<line>[0-9]{1,100}) of (?P<file>[^\s\"]{1,400})|^(?P<gfile"
    r">[^\s:]{1,400}):(?P<gline>[0-9]{1,100}):[0-9]{1,100}:\s{1,80}required "
    r"from here",
    re.MULTILINE,
)
_OF_MLIR: Final = re.compile(r"'!?(?:cute|nvgpu|nvvm|llvm|ttg|tt)\w{0,80}\.[\w.]{1,100}'|\bdialect\b")
_OTHER: Final = re.compile(r"(?<!CUDA )(?<!cuda )(?<!cutlass )\berror:\s{0,80}(?P<what>[^\n]{1,300})")

# A condition of make_tma_copy_desc -> the rule of tensor maps that it checks.
_MAP_CONDITIONS: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (re.compile(r"gmem_address.{0,200}(0b1111|% *16|& *15)"), "address_alignment", "globalAddress"),
    (re.compile(r"gmem_prob_shape\[([0-9])\].{0,200}(>=|<=|<|>)"), "size", "globalDim"),
    (re.compile(r"gmem_prob_stride\[([0-9])\].{0,200}(0b1111|% *16|& *15)"), "stride_alignment", "globalStrides"),
    (re.compile(r"gmem_prob_stride\[([0-9])\].{0,200}<"), "stride_range", "globalStrides"),
    (re.compile(r"smem_box_shape\[([0-9])\]"), "box", "boxDim"),
    (re.compile(r"smem_box_stride\[([0-9])\]"), "element_stride", "elementStrides"),
    (re.compile(r"(tma_dim|rank|R\b).{0,200}5"), "rank", "tensorRank"),
)


@dataclass(frozen=True, slots=True)
class _Call:
    """One template instantiation: the name of the function, and its template arguments in CuTe's notation."""

    name: str
    types: dict[str, str]


def _calls(text: str) -> list[_Call]:
    """The instantiations of CuTe's functions in `text`, innermost first."""
    found: list[_Call] = []
    for match in some(_INSTANCE.finditer(text), 60):
        head = match["name"].partition("[with ")[0]
        names = re.findall(r"\bcut(?:e|lass)::(?:\w{1,80}::){0,9}(\w{1,80})\s{0,80}(?:<[^()]{0,400}>)?\s{0,80}\(", head)
        types = {name: spelled_type(value) for name, value in bindings(match["name"]).items()}
        if names and "lambda" not in names[0]:
            found.append(_Call(names[0], types))
        elif tiled := _TILED_COPY.match(head):
            inside = (
                head[tiled.end() : matching_bracket(head, tiled.end(), MOST_TYPES)].replace("<", "[").replace(">", "]")
            )
            parts = [part.replace("[", "<").replace("]", ">") for part in split_operands(inside)]
            written = dict(zip(("Copy_Atom", "LayoutCopy_TV", "ShapeTiler_MN"), map(spelled_type, parts), strict=False))
            found.append(_Call("TiledCopy", {**written, **types}))  # g++ writes the arguments, nvcc binds names to them
    if not found:  # clang names the specialisation, g++'s run-time assertion the function
        for match in some(BINDINGS.finditer(text), 4):
            names = re.findall(
                r"\bcute::(?:\w{1,80}::){0,4}(\w{1,80})", text[max(0, match.start() - 3000) : match.start()]
            )
            types = {name: spelled_type(value) for name, value in bindings(text[match.start() :]).items()}
            found += [_Call(names[0], types)] if names else []
    return found


# ---- the operation, run here ---------------------------------------------------------------------------------------

_Made: TypeAlias = Layout | ComposedLayout


def _layout(call: _Call, *names: str) -> _Made | None:
    """Make the layout of the named template arguments, which are a shape and a stride, or one layout. None if they do
    not give one."""
    symbols = itertools.count()
    parts = [re.sub(r"\?", lambda _: f"n{next(symbols)}", call.types.get(name, "")) for name in names]
    thing = unless_refused(parse, ":".join(parts) if len(parts) == 2 else parts[0]) if all(parts) else None
    return thing if isinstance(thing, (Layout, ComposedLayout)) else None


def _tree(call: _Call, name: str) -> Parsed | None:
    return unless_refused(parse, call.types[name]) if name in call.types else None


def _numbers(tree: Parsed | None) -> tuple[int, ...]:
    """The sizes in an integer or a flat tuple of integers; empty for anything else."""
    items = tree if isinstance(tree, tuple) else (tree,)
    return tuple(int(item) for item in items if isinstance(item, int)) if all(isinstance(i, int) for i in items) else ()


def _sized(sizes: Sequence[int]) -> str:
    return f"({','.join(f'_{n}' for n in sizes)})"


class Trial(NamedTuple):
    """Lines about the operands and the problem; changes that were tried; advice that was not tried."""

    lines: Sequence[str]
    changes: Sequence[str] = ()
    advice: Sequence[str] = ()


def _refusal(make: Callable[[], _Made]) -> str:
    try:
        return f"these operands compile: {make()}"
    except CuteError as error:
        facts = "; ".join(f"{name}: {value}" for name, value in error.facts.items())
        return f"{error.headline}{f' ({facts})' if facts else ''}"


def _run_composition(call: _Call) -> Trial | None:
    a, b = _layout(call, "LShape", "LStride"), _layout(call, "RShape", "RStride")
    if not isinstance(a, Layout) or not isinstance(b, Layout) or not leaves(b.shape):
        return None
    lines = [f"composition(A, B) with A = {a}, B = {b}", _refusal(lambda: composition(a, b))]
    if unless_refused(composition, a, b) is not None:
        return Trial([*lines, whether_function(a, b)])
    changes = []
    whole = coalesce(a)
    sizes = _flat(b.shape)
    for i, n in enumerate(sizes):
        steps = _flat(b.stride)
        for other in sorted(range(max(1, n - 128), n + 129), key=lambda m: (abs(m - n), m))[:256]:
            made = (*sizes[:i], other, *sizes[i + 1 :])
            new = parse(f"{_sized(made) if isinstance(b.shape, tuple) else f'_{other}'}:{shown(b.stride)}")
            if isinstance(new, Layout) and other > 1 and len(steps) == len(sizes) and composes(a, new):
                changes.append(f"B = {new}: {other} elements instead of {n} compose with {a}")
                break
    if whole != a and composes(whole, b):
        changes.append(f"coalesce A first: {whole} composes with {b}")
    return Trial(lines, changes)


def _run_tile_to_shape(call: _Call) -> Trial | None:
    block = _layout(call, "Shape", "Stride") or _layout(call, "B")
    target = _tree(call, "TrgShape") or _tree(call, "TargetShape")
    if block is None or not isinstance(target, tuple):
        return None
    sizes, wanted = _numbers(domain_of(block).shape), _numbers(target)
    lines = [f"tile_to_shape({block}, {_sized(wanted)})"]
    for i, (have, want) in enumerate(zip(sizes, wanted, strict=False)):
        if have and want % have:
            lines.append(f"mode {i}: the block has {have}, the target {want}; {have} does not divide {want}")
    if len(lines) == 1:
        return Trial(lines)
    fitted = tuple(math.gcd(have, want) for have, want in zip(sizes, wanted, strict=False))
    grown = tuple(-(-want // have) * have for have, want in zip(sizes, wanted, strict=False) if have)
    changes = []
    smaller = parse(f"{_sized(fitted)}:(_{fitted[1]},_1)") if len(fitted) == 2 else None
    if isinstance(smaller, Layout) and passes_check(lambda: tile_to_shape(smaller, target)):
        such = f"such as {smaller} (the next smaller swizzle atom)"
        changes.append(f"a block of {_sized(fitted)}, {fitted[-1]} wide, {such}")
    padded = parse(_sized((*grown, *wanted[len(grown) :]))) if grown else None
    if isinstance(padded, tuple) and passes_check(lambda: tile_to_shape(domain_of(block), padded)):
        changes.append(f"a target of {_sized(_numbers(padded))} with this block")
    return Trial(lines, changes)


def _run_divide(call: _Call) -> Trial | None:
    layout = _layout(call, "LShape", "LStride") or _layout(call, "Shape", "Stride")
    tiler = _tree(call, "Tiler") or _tree(call, "Tile") or _tree(call, "TShape")
    if not isinstance(layout, Layout) or tiler is None:
        return None
    count, held = len(tiler) if isinstance(tiler, tuple) else 1, len(modes(layout.shape))
    lines = [f"dividing {layout} by the tiler {shown(tiler)}"]
    changes = []
    if count > held:
        lines.append(f"the tiler has {count} modes, but the layout has {held}")
        shorter = tiler[:held] if isinstance(tiler, tuple) else tiler
        if divides_whole(layout, shorter):
            changes.append(f"the tiler {shown(shorter)}, of {held} modes")
        return Trial(lines, changes)
    lines.append(_refusal(lambda: logical_divide(layout, tiler)))
    sizes, extents = _numbers(tiler), _numbers(layout.shape)
    fitted = tuple(math.gcd(n, size) for n, size in zip(sizes, extents, strict=False))
    if sizes and fitted != sizes and divides_whole(layout, parse(_sized(fitted))):
        changes.append(f"the tiler {_sized(fitted)}, which divides the layout")
    return Trial(lines, changes)


def _run_upcast(call: _Call) -> Trial | None:
    layout = _layout(call, "Shape", "Stride")
    factor = call.types.get("N", "").strip("_?")
    if not isinstance(layout, Layout) or not factor.isdecimal() or len(factor) > 6:
        return None
    n = int(factor)
    lines = [f"upcast<{n}> of {layout}: {n} elements become one"]
    trees = layout.shape, layout.stride
    sizes, steps = ([int(leaf) if isinstance(leaf, int) else leaf for leaf in leaves(tree)] for tree in trees)
    bad = [(s, d) for s, d in zip(sizes, steps, strict=True) if isinstance(d, int) and d and d % n and n % d]
    lines += [f"stride {d} (of the mode of size {s}) neither divides {n} nor is a multiple of it" for s, d in bad]
    if not bad:
        return Trial([*lines, _refusal(lambda: upcast(layout, n))])
    fits = [k for k in range(min(n - 1, 64), 0, -1) if passes_check(functools.partial(upcast, layout, k))]
    changes = [f"recast by {fits[0]} at most" + (": no recast to a wider type" if fits[0] == 1 else "")] if fits else []
    wrong = [d for _, d in bad]
    strides = [-(-d // n) * n if d in wrong else d for d in _flat(layout.stride)]
    known = all(isinstance(number, int) for number in (*sizes, *steps))
    padded = parse(f"{_sized(_flat(layout.shape))}:{_sized(strides)}") if known else None
    if isinstance(padded, Layout) and passes_check(lambda: upcast(padded, n)):
        changes.append("pad " + ", and ".join(f"stride {d} to {-(-d // n) * n}" for d in dict.fromkeys(wrong)))
    return Trial(lines, changes)


def _flat(tree: Tree) -> tuple[int, ...]:
    return tuple([int(n) for n in leaves(tree) if isinstance(n, int)])


def _refused(operation: Callable[..., Layout], *arguments: tuple[str, str]) -> Callable[[_Call], Trial | None]:
    """Return a function that runs an operation on the layouts of a call and reports the error. Each argument names the
    shape and the stride of one layout. No change is offered."""

    def run(call: _Call) -> Trial | None:
        made = [_layout(call, *names) for names in arguments]
        if not all(isinstance(layout, Layout) for layout in made):
            return None
        shown_call = f"{operation.__name__}({', '.join(map(str, made))})"
        return Trial([shown_call, _refusal(lambda: operation(*made))])

    return run


def _copy_operation(operation: str, dtype: str = "") -> CopyAtom | None:
    name = re.sub(r"Copy_Traits<((?:[^<>]|<[^<>]{0,400}>)*)>", r"\1", operation)
    return unless_refused(copy_atom, name, dtype or None)


def _narrower(atom: CopyAtom) -> list[CopyAtom]:
    """The copy atoms of the same kind, from the widest to the narrowest."""
    names = [name for name in COPY_ATOMS if _WIDTH.sub("", name) == _WIDTH.sub("", atom.name)]
    names += [_WIDTH.sub(f"<uint{bits}_t>", atom.name) for bits in (128, 64, 32, 16, 8) if "<" in atom.name]
    made = [
        copy_atom(name, atom.dtype) for name in names if passes_check(functools.partial(copy_atom, name, atom.dtype))
    ]
    return sorted(made, key=lambda a: -int(size(a.layout_ref_TV[1])))


_WIDTH: Final = re.compile(r"(?<=x)[0-9]+|<.*")


def _run_tiled_copy(call: _Call) -> Trial | None:
    """Explain a tiled copy that has fewer threads or values than its copy atom needs."""
    atom, layout = _copy_operation(call.types.get("Copy_Atom", "")), _layout(call, "LayoutCopy_TV")
    tiler = _tree(call, "ShapeTiler_MN")
    if atom is None or atom.dtype is None or not isinstance(layout, Layout) or not isinstance(tiler, tuple):
        return None
    need = [int(size(atom.layout_ref_TV[mode])) for mode in (0, 1)]
    have = [int(size(layout[mode])) for mode in (0, 1)]
    lines = [
        f"the tiled copy has {counted(have[0], 'thread')} of {counted(have[1], 'value')} each; {atom.name} of "
        f"{atom.dtype.name} needs {counted(need[0], 'thread')} of {counted(need[1], 'value')} each"
    ]
    changes = [
        f"{one.name}: {counted(int(size(one.layout_ref_TV[1])), 'value')} of {one.dtype.bits} bits per thread"
        for one in _narrower(atom)
        if one.dtype is not None and one != atom and passes_check(functools.partial(TiledCopy, one, layout, tiler))
    ][:1]
    more = [
        f"{counted(n, what)} or a multiple of it"
        for n, h, what in zip(need, have, ("thread", "value"), strict=True)
        if h % n
    ]
    advice = [f"a layout with {part}{' per thread' * ('value' in part)}" for part in more]
    return Trial(lines, changes if more else [], advice)


def _run_copy_atom(call: _Call) -> Trial | None:
    """Explain a copy atom that is called on parts of the wrong size."""
    atom = _copy_operation(call.types.get("Args", ""), call.types.get("CopyInternalType", ""))
    source, target = _layout(call, "SLayout"), _layout(call, "DLayout")
    if atom is None or atom.dtype is None or source is None or target is None:
        return None
    held, given = int(size(source)), int(size(target))
    lines = [
        f"{atom.name} of {atom.dtype.name} reads {counted(int(atom.num_val_src), 'value')} per thread and writes "
        f"{int(atom.num_val_dst)}; the source has {held}, the destination {given}"
    ]
    if held == int(atom.num_val_src) and given == int(atom.num_val_dst):
        return Trial(lines)
    fits = [one for one in _narrower(atom) if int(one.num_val_src) == held and int(one.num_val_dst) == given]
    changes = [f"{one.name}, which moves {held}" for one in fits[:1]]
    advice = "partition both with one tiled copy: use partition_S and partition_D, and retile_D for a fragment"
    return Trial(lines, changes, [advice])


def _run_mma(call: _Call) -> Trial | None:
    """Explain an MMA operation that is called on fragments of the wrong size."""
    atom = unless_refused(mma_atom, re.sub(r"^MMA_Traits<(.*)>$", r"\1", call.types.get("AnyMMATraits", "")))
    if atom is None:
        return None
    lines = []
    for letter in "ABC":
        held, need = _layout(call, f"{letter}Layout"), int(size(atom.layouts[letter][1]))
        have = int(size(held)) if held is not None else need
        if have != need and atom.fragment_type(letter).kind == "value":
            lines.append(
                f"{letter}: the fragment has {counted(have, 'value')}, but {atom.name} needs {need} per thread"
            )
    advice = ["use fragments of the tiled MMA: partition_fragment_A, _B and _C have its sizes"]
    return Trial(lines, advice=advice if lines else [])


_RUNS: Final[dict[str, Callable[[_Call], Trial | None]]] = {
    "composition": _run_composition,
    "composition_impl": _run_composition,
    "tile_to_shape": _run_tile_to_shape,
    "zipped_divide": _run_divide,
    "logical_divide": _run_divide,
    "tiled_divide": _run_divide,
    "flat_divide": _run_divide,
    "upcast": _run_upcast,
    "logical_product": _refused(logical_product, ("LShape", "LStride"), ("TShape", "TStride")),
    "complement": _refused(complement, ("Shape", "Stride")),
    "TiledCopy": _run_tiled_copy,
    "Copy_Atom": _run_copy_atom,
    "mma_unpack": _run_mma,
}
"""C++'s function -> the function that runs it here."""


def run_operation(name: str, types: dict[str, str]) -> Trial | None:
    """Run an operation of CuTe on operands given by the names of its C++ template arguments; None if it can't be
    run."""
    return _RUNS[name](_Call(name, types))


# ---- the readings --------------------------------------------------------------------------------------------------


def read_compiler(text: str) -> list[Reading]:
    """Read every failed assertion in the output of a compiler or a program."""
    statics = some(_STATIC.finditer(text), 8)
    found = [
        _static(text, match, statics[i + 1].start() if i + 1 < len(statics) else len(text))
        for i, match in enumerate(statics)
    ]
    found += [_run_time(text, match) for match in some(_RUN_TIME.finditer(text), 8) if match["condition"].strip()]
    return found or [*_other_errors(text)] or [*_backtrace(text)]


def _run_first(calls: Sequence[_Call]) -> Trial | None:
    """Run the first operation that can be run; the function that users call comes before its steps."""
    known = [call for call in calls if call.name in _RUNS]
    outcomes = (_RUNS[call.name](call) for call in sorted(known, key=lambda call: call.name == "composition_impl"))
    return next((made for made in outcomes if made is not None), None)


def _chain(calls: Sequence[_Call]) -> list[str]:
    """The functions of a backtrace, and the operands of the outermost one."""
    names = list(dict.fromkeys(call.name for call in calls))
    return [f"in {' < '.join(names[:8])} (the innermost first)", *_operands(calls[-1])] if names else []


def _backtrace(text: str) -> Iterator[Reading]:
    """Read the instantiations of CuTe's functions in a text without the error that they belong to."""
    places = some(_INSTANCE.finditer(text), 60)
    calls = [call for call in _calls(text) if call.types] if places else []
    if not calls:
        return
    lines, changes, advice = _run_first(calls) or Trial([])
    missing = ("the error before these instantiations, with its condition",)
    kind = "Instantiations of CuTe's functions, from a compiler"
    span = places[0].start(), max(place.end() for place in places)
    yield Reading(kind, *span, [*_undivided(calls), *lines, *_chain(calls)], (), changes, missing, advice=advice)


def _static(text: str, match: re.Match[str], end: int) -> Reading:
    notes = text[match.start() : end]
    source = _SHOWN.search(notes)
    written = _unbroken(text, match) or (source["condition"] if source else match["requirement"]) or ""
    condition = written.strip("\"'")
    chained = "required from" in text or "instantiation of" in text
    before = text[max(0, match.start() - 6000) : match.start()] if chained else ""
    calls = _calls(notes) or _calls(before + notes)
    lines = [f"condition: {condition}"]
    if match["requirement"]:
        lines.append(f"it requires {match['requirement']}")
    places = [_named(source)] if source and source["file"] else _place(text, match)
    lines += [f"asserted in {place}" for place in places]
    lines += _where(before + notes)
    lines += [f"{m[1]} and {m[2]}: neither divides the other" for m in some(_REMAINDER.finditer(notes), 1)]
    lines += _undivided(calls)
    if outcome := _run_first(calls):
        more, changes, advice = outcome
        lines += more
    else:
        more, changes, advice = _multiples(condition, calls)
        lines += [*_compared(condition, calls), *_entries(calls), *more]
    lines += _chain(calls)
    known = condition_id(condition)
    line = text[text.rfind("\n", 0, match.start()) + 1 : end]
    of_cute = known is not None or re.search(r"cute|cutlass", before + line, re.IGNORECASE) is not None
    rule = known or "static_assert"
    broken = Diagnostic(rule, text=condition or "a static_assert", source="CuTe C++" if of_cute else "")
    notes_asked = "the instantiation notes, which contain the types: compile without -w, or print the layouts"
    missing = () if calls or _INSTANCE.search(before + notes) else (notes_asked,)
    kind = f"A static assertion{' of CuTe' if of_cute else ''}, from a compiler"
    return Reading(kind, match.start(), end, lines, (broken,), changes, missing, advice=advice)


_WRAPPED_REST: Final = re.compile(r'\n([^"\n]{1,300})"')


def _unbroken(text: str, match: re.Match[str]) -> str:
    """The message of an assertion, with the rest that a log wrapped to the next line."""
    condition = match["condition"]
    quoted = text[: match.start("condition")].endswith('"')
    rest = _WRAPPED_REST.match(text, match.end()) if quoted and condition else None
    return (condition + rest[1] if rest is not None else condition).removesuffix("\\n").strip()


def _undivided(calls: Sequence[_Call]) -> list[str]:
    """Name the two sizes that shape_div was called with, if neither divides the other."""
    for call in calls:
        if call.name == "shape_div":
            a, b = (_static_size(call.types.get(name, "")) for name in ("IntTupleA", "IntTupleB"))
            if a and b and a % b and b % a:
                return [f"{a} and {b}: neither divides the other"]
    return []


def _static_size(text: str) -> int:
    """A static size as CuTe prints it; 0 for another text."""
    digits = text.removeprefix("_")
    return int(digits) if digits.isdecimal() and len(digits) < 19 else 0


_SIDE: Final = r"(?P<f{0}>size|rank|cosize)(?:<(?P<mode{0}>[0-9]{{1,2}})>)?\((?P<name{0}>\w+)\)"
_COMPARED: Final = re.compile(_SIDE.format(1) + r"\s{0,80}==\s{0,80}" + _SIDE.format(2))
_FUNCTIONS: Final[dict[str, Callable[[Layout], int]]] = {"size": size, "rank": rank, "cosize": cosize}


def _compared(condition: str, calls: Sequence[_Call]) -> list[str]:
    """Compute both sides of a condition such as size<1>(A) == size<1>(C) from the operands' layouts."""
    lines = []
    for match in some(_COMPARED.finditer(condition), 4):
        sides = []
        for side in ("1", "2"):
            held = _layout_named(match[f"name{side}"], calls)
            mode = match[f"mode{side}"]
            if held is None or (mode is not None and int(mode) >= int(rank(held))):
                break
            part = held if mode is None else held[int(mode)]
            sides.append((match[f"f{side}"] + (f"<{mode}>" if mode else ""), match[f"name{side}"], part, side))
        if len(sides) == 2:
            known = [f"{f}({name}) = {int(_FUNCTIONS[match['f' + side]](part))}" for f, name, part, side in sides]
            lines.append(f"{' and '.join(known)}; they must be equal")
    return lines


_MULTIPLE: Final = re.compile(
    r"(?P<name>BLK_[A-Z]{1,100})0? must be a multiple of size<(?P<mode>[01])>"
    r"\(GMMA::Layout_(?P<atom>\w{1,80}?)_Atom<(?P<type>\w{1,80})>"
)


def _multiples(condition: str, calls: Sequence[_Call]) -> Trial:
    """Explain a block size that is not a multiple of any shared-memory layout atom of wgmma."""
    for match, call in itertools.product(some(_MULTIPLE.finditer(condition), 1), calls):
        have, bits = call.types.get(match["name"], "").removeprefix("_"), type_bits(call.types.get(match["type"], ""))
        if have.isdecimal() and bits in (8, 16, 32, 64):
            atom = gmma_layout(match["atom"], f"uint{bits}")
            unit = int(size(domain_of(atom)[int(match["mode"])]))
            more = f"{match['name']} = {have}, and the narrowest atom, {atom}, has {unit} elements of {bits} bits there"
            wider = f"{match['name']} = {-(-int(have) // unit) * unit}, or another multiple of {unit}"
            return Trial([more], advice=[wider])
    return Trial([])


def _entries(calls: Sequence[_Call]) -> list[str]:
    """One line with the numbers of entries of a tiler and of its coordinate, if the coordinate has more entries."""
    for types in (call.types for call in calls if {"Tiler", "Coord"} <= call.types.keys()):
        tiler, coord = (len(split_operands(types[name].removeprefix("("))) for name in ("Tiler", "Coord"))
        if coord > tiler:
            return [f"entries of the coordinate: {coord}; entries of the tiler: {tiler}"]
    return []


def _layout_named(name: str, calls: Sequence[_Call]) -> Layout | None:
    """The layout of an operand, from the template argument with the operand's name: ALayout for A, SrcLayout for
    src."""
    for call in calls:
        for key in call.types:
            if key.lower() in (f"{name.lower()}layout", f"{name.lower()[:1]}layout", f"layout{name.lower()}"):
                found = _layout(call, key)
                if isinstance(found, Layout):
                    return found
    return None


def _place(text: str, match: re.Match[str]) -> list[str]:
    """The file and line number at the beginning of the line of a match, if the line begins with them."""
    begin = text.rfind("\n", 0, match.start()) + 1
    found = _PLACE.match(text[begin : min(match.start(), begin + 600)])
    return [_named(found)] if found else []


def _named(found: re.Match[str]) -> str:
    return f"{found['file'].rpartition('/')[2]}, line {found['line']}"


def _where(notes: str) -> list[str]:
    """One line with the innermost location in the user's own source, outside CuTe and CUTLASS."""
    places = [(m["file"] or m["gfile"], m["line"] or m["gline"]) for m in some(_USER.finditer(notes))]
    own = [place for place in places if "cute/" not in place[0] and "cutlass" not in place[0]]
    return [f"called at line {own[-1][1]} of {own[-1][0]}"] if own else []


def _operands(call: _Call) -> list[str]:
    """One line with the template arguments of a call; each shape and its stride are joined to a layout."""
    types, lines = dict(call.types), []
    for name in list(types):
        other = name.replace("Shape", "Stride")
        if name.endswith("Shape") and other in types:
            lines.append(f"{name.removesuffix('Shape') or 'layout'}: {types.pop(name)}:{types.pop(other)}")
    lines += [f"{name} = {value}" for name, value in types.items() if len(value) < 200 and "lambda" not in value][:8]
    return [f"operands of {call.name}: " + "; ".join(lines)] if lines else []


def _run_time(text: str, match: re.Match[str]) -> Reading:
    condition = match["condition"].strip()
    begin = max(0, text.rfind("\n", 0, match.start()) + 1)
    notes = text[begin : match.end()]
    named = {name: spelled_type(value) for name, value in bindings(notes).items()}
    lines = [f"condition: {condition}"]
    lines += [f"asserted in {place}, when the program ran" for place in _place(text, match)]
    broken: Diagnostic | None = None
    for pattern, rule, argument in _MAP_CONDITIONS:
        if found := pattern.search(condition):
            mode = int(found[1]) if found.groups() and (found[1] or "").isdecimal() else None
            broken = _map_rule(rule, argument, mode, named)
            break
    lines += _map_operands(named)
    missing: tuple[str, ...] = ()
    if broken is not None and broken.value is None:
        missing = (f"the run-time numbers: print the global tensor, to see its {broken.argument}",)
    advice = _advice(broken, named) if broken is not None else []
    stated = condition.rpartition('&& "')[2].rstrip('"')
    of_cute = broken is not None or re.search(r"cute|cutlass", notes) is not None
    source = "CuTe C++" if of_cute else ""
    made = broken or Diagnostic(condition_id(stated) or "assert", text=condition, source=source)
    kind = f"An assertion{' of CuTe' if of_cute else ''} that failed when the program ran"
    return Reading(kind, begin, match.end(), lines, (made,), missing=missing, advice=advice)


def _map_rule(rule: str, argument: str, mode: int | None, types: dict[str, str]) -> Diagnostic:
    """The tensor-map rule that an assertion of make_tma_copy_desc checks, as a diagnostic. It has the value if the
    types contain it."""
    row = BY_NAME[rule]
    where = argument if mode is None else f"{argument}[{mode - 1 if argument == 'globalStrides' else mode}]"
    value: int | None = None
    box = _static_sizes(types.get("TShape", ""))
    if rule == "box" and mode is not None and mode < len(box):
        value = box[mode]
    unit = f" ({row.unit})" if row.unit else ""
    message = "" if value is not None else f"{where} breaks a rule: it must {row.requirement}{unit}"
    if rule == "size" and value is None:
        message += "; the usual cause is a mode of size 0 (an empty tensor), or a size above 2**32"
    if rule == "stride_range" and value is None:
        message += (
            "; the usual cause is a negative stride, read as an unsigned number, or a stride of 2^40 bytes or more"
        )
    return Diagnostic(rule, where, value, row.unit, row.requirement, row.source, mode, text=message)


def _static_sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"_([0-9]{1,12})\b", text)]


def _map_operands(types: dict[str, str]) -> list[str]:
    """Lines with the element type, layout, box and swizzle of the tensor map, from the types of make_tma_copy_desc."""
    lines = []
    if kind := types.get("TmaInternalType"):
        lines.append(f"element type {kind}")
    if layout := types.get("GLayout"):
        lines.append(f"global layout {layout} (? is known at run time)")
    if box := types.get("TShape"):
        lines.append(f"box {box}, innermost first; basis {types.get('TStride', 'not in the text')}")
    numbers = [types.get(name, "").strip("_?") for name in ("B", "M", "S")]
    if all(n.isdecimal() for n in numbers):
        bits = int(numbers[0])
        named = f"{16 << bits}B" if 0 < bits < 4 else "none"
        lines.append(f"swizzle Sw<{','.join(numbers)}>: {named}")
    return lines


def _advice(broken: Diagnostic, types: dict[str, str]) -> list[str]:
    """Return advice on a broken tensor-map rule, if the types contain the numbers that it needs."""
    if broken.rule == "box" and broken.value is not None and broken.value > bounds("box")[1]:
        part = next(n for n in range(bounds("box")[1], 0, -1) if broken.value % n == 0)
        return [f"use a box of {part} along mode {broken.mode}, with {broken.value // part} instructions per tile"]
    if broken.rule == "stride_alignment":
        bits = type_bits(types.get("TmaInternalType", ""))
        return [f"pad the row to a multiple of {128 // bits} elements of {bits} bits = 16 bytes"] if bits else []
    return []


def _other_errors(text: str) -> Iterator[Reading]:
    """Read compile errors in CuTe's headers that are not assertions: no overload accepts these types."""
    for match in some(_OTHER.finditer(text), 1 if "cute" in text or "cutlass" in text else 0):
        calls = _calls(text)
        lines = [match["what"], *_where(text), *(_operands(calls[-1]) if calls else [])]
        if "ptxas" in match["what"]:
            continue
        missing = ("a static assertion is missing, because the compiler stopped before CuTe's own check",)
        if _OF_MLIR.search(match["what"]):
            missing = ("the operation with the types of its operands: the line that begins with see current operation",)
        yield Reading("A compile error in code that uses CuTe", match.start(), len(text), lines, missing=missing)
