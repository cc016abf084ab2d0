"""`explain`: choose the explanation for an object, and build it.

An `Explanation` is a string; a notebook displays it with headings, lists of facts and code blocks.
"""

from __future__ import annotations

import enum
import importlib
import re
import sys
from collections.abc import Callable
from html import escape
from itertools import groupby
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cute_py.arith_tuple.arith_tuple import ScaledBasis
from cute_py.errors import CuteError, InvalidTypeError, ParseError, given, unless_refused
from cute_py.explanation.compositions import (
    composition_text,
    spelled_atom,
    spelled_call,
    spelled_composition,
    spelled_place,
    spelled_statements,
    static_lines,
    undefined_call,
)
from cute_py.explanation.definitions import (
    Thing,
    class_text,
    constant_text,
    found_by_name,
    function_text,
    instance_text,
    is_constant,
    is_function,
    is_ours,
    member_text,
    module_text,
    picture_text,
)
from cute_py.explanation.layouts import (
    any_layout,
    basis_text,
    composed_text,
    coordinate_tensor,
    counting,
    is_coordinates,
    is_counting,
    modes_text,
    stored,
    swizzle_text,
)
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.layout import Layout
from cute_py.layout.steps import explained, steps
from cute_py.layout.swizzle import Swizzle
from cute_py.notation.log_lines import as_printed, unwrapped, without_prompts
from cute_py.notation.parse import address_notes, check_length, parse
from cute_py.tensor.tensor import Tensor

if TYPE_CHECKING:
    from cute_py.explanation.readings import Reading

_PROSE = 'style="margin-top:.4em;white-space:pre-wrap"'
_PRE = 'style="margin:.2em 0 .6em 1em;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace"'


class Explanation(str):
    """The result of `explain`: a string, which a notebook displays as HTML.

    >>> text = Explanation("4:1\\n\\nIn all\\n  4 elements")
    >>> print(text.splitlines()[0], len(text) == len(str(text)))
    4:1 True
    >>> text._repr_html_().count("<pre")
    1
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        first, *rest = str(self).split("\n\n")
        parts = [f'<div style="font-weight:bold;font-family:monospace;white-space:pre-wrap">{escape(first)}</div>']
        return f'<div class="cute-explanation">{"".join([*parts, *map(_block, rest)])}</div>'


def _block(text: str) -> str:
    """Render a paragraph as HTML. Lines without indentation are prose; indented lines, and all lines from the first
    `>>>` on, keep their format."""
    lines = text.split("\n")
    code_from = next((i for i, line in enumerate(lines) if line.startswith(">>> ")), len(lines))
    out = []
    for is_code, group in groupby(enumerate(lines), lambda row: row[0] >= code_from or row[1].startswith(" ")):
        shown = escape("\n".join(line for _, line in group))
        out.append(f"<pre {_PRE}>{shown}</pre>" if is_code else f"<div {_PROSE}>{shown}</div>")
    return "".join(out)


def explain(thing: Thing, *operands: Thing) -> Explanation:
    """Explain an object, or the effect of an operation on its operands.

    `explain(composition, a, b)` lists the steps of `composition(a, b)` with their values; `cute.steps` gives them as
    data. For a function, class or table it returns the definition; for an error, it returns the long form: the rule,
    the reason for the rule, its source, and a change that fixes the error.

    Args:
        thing: a layout, a composed layout, a swizzle, a tensor, an atom or its name, a tiled operation, a tensor map (a
            request, or 64 or 128 bytes), an error of this library, or anything with a method `explain()`; any other
            object, function, class or table of this library, or the name of one ("zipped_divide",
            "tma.SWIZZLE_MODES"); a term ("G-basis"), an enum's spelling ("128B"), an error of the driver
            ("CUDA_ERROR_INVALID_VALUE"), or a text that `parse` reads ("1@0"); or an operation of the layout algebra.
        operands: the operands of the operation.
    Returns:
        a string; a notebook shows it as HTML.
    Raises:
        InvalidTypeError: explain has no explanation for the object; for a string, the error gives the reason why
            `parse` can't read it. InvalidValueError: the string has more than 65,536 characters.

    >>> print(explain(coalesce, Layout((Int(2), Int(6)), (Int(1), Int(2)))))
    merge: _2:_1 and _6:_2 merge into _12:_1: _2 * _1 = _2
    result: (_2,_6):(_1,_2) coalesces to _12:_1
    >>> print(explain(make_identity_tensor((4, 5))).splitlines()[0])
    ArithTuple(_0,_0) o (4,5):(_1@0,_1@1)
    """
    if thing is composition and len(operands) == 2:
        return Explanation(composition_text(*operands))
    if operands:
        return Explanation("\n".join([*map(str, steps(thing, *operands)), *static_lines(thing, *operands)]))
    if isinstance(thing, str) and not (isinstance(thing, enum.Enum) or is_constant(thing)):
        return _of_text(thing)
    return next(Explanation(text(thing)) for takes, text in _KINDS if takes(thing))


def _of_text(text: str) -> Explanation:
    """Explain a name, a term, a question about either, or the output of a program."""
    check_length(text)
    from cute_py.explanation.rows.terms import asked

    text = _CPP_NAME.sub(r"\1", asked(without_prompts(text)))
    if _ORDER_NAME.fullmatch(text.strip().lower()):
        from cute_py.explanation.format_pastes import order_name_text

        if (order := order_name_text(text)) is not None:
            other = unless_refused(_of_other_text, text)  # 'linear' also names a function, and '8x4' a tile
            return Explanation(order if other is None else f"{other}\n\n{order}")
    return _of_other_text(text)


def _of_other_text(text: str) -> Explanation:
    """Explain a string without treating it as the name of an order of scales."""
    from cute_py.explanation.rows.terms import word_of

    if text.strip().upper() in ("LBO", "SBO"):
        from cute_py.atom.smem_descriptor import offset_text

        return Explanation(offset_text(text.strip().upper()))
    if _OF_SCALES.search(text):
        from cute_py.explanation.format_pastes import format_name_text

        if (scales := format_name_text(text)) is not None:
            return Explanation(scales)
    named = found_by_name(text)
    # Names of strategies are plain words.
    if named is not None and not (named[0].startswith("testing.") and word_of(text)):
        name, value = named
        return Explanation(constant_text(name, value)) if is_constant(value) else explain(value)
    if not set(text) & _OF_LAYOUTS:
        from cute_py.explanation.reasons import term_text

        if (term := term_text(text)) is not None:
            return Explanation(term)
    for row in _FORMS:
        if row.cue.fullmatch(text.strip()) and (found := _explainer(row.module, row.name)(text)) is not None:
            return Explanation(found)
    if " " in text.strip() and (named := found_by_name("_".join(text.split()))) is not None:  # "right inverse"
        return explain(named[1])
    if "\n" not in text and _ATOM_NAME.match(text.strip()):
        from cute_py.explanation.atoms import atom_of, atom_text

        return Explanation(atom_text(atom_of(text)))
    readers = (spelled_atom, spelled_composition, spelled_call, spelled_place, spelled_statements)
    if (composed := next(filter(None, (read(text) for read in readers)), None)) is not None:
        return Explanation(composed)
    return Explanation(_text_explained(as_printed(text)))


_CPP_NAME: Final = re.compile(r"\A\s{0,80}cute::(\w{1,200})\s{0,80}\Z")
"""Matches a name in the namespace of CuTe C++."""
_OF_SCALES: Final = re.compile(
    r"e8m0|\(\(_32,_4\)|\(\(_8,_4,_4\)|<_32,\s?_4>|<_8,\s?_4,\s?_4>|<cute::C<32>|Sm1xx|SfAtom|BlockWise|ScalingType|_32F|"
    r"float[468]_t|float4_e2m1fn_x2|ue4m3|(?-i:MXFP|NVFP4)",
    re.IGNORECASE,
)
"""Names, types and layouts of scales each contain at least one of these parts."""
_ORDER_NAME: Final = re.compile(
    r"(?:[^\W_]*+_\w*+|[0-9]+x[0-9]+|linear|blocked|ragged|cdna4|sfatom)(?:\([\w=,() ]*\))?"
)
"""Matches the form of a name of an order of scales."""
_WORDS: Final = re.compile(r"[a-z][a-z0-9_.,: -]{2,60}", re.IGNORECASE)
"""Matches the form of the name of a finding."""
_OF_LAYOUTS: Final = frozenset("():\n")
"""Characters that occur in no term and in no name of an element type."""
_ATOM_NAME: Final = re.compile(
    r"(?:[\w:]{0,80}::)?(?:SM\d{1,9}(?:::|_)|GMMA_|Universal(?:Copy|FMA)|DefaultCopy|AutoVectorizingCopy)"
)
"""Matches the beginning of the names of CuTe's operations."""

_MNEMONIC: Final = re.compile(r"(?:w?g?mma|tcgen05|ldmatrix|stmatrix|movmatrix|cp)(?:\.[\w:]{1,40}){1,20}\s?;?")
"""Matches the form of an instruction of an atom, without operands."""


class _Recogniser(NamedTuple):
    """A function `text -> readings`, by its module and name. It is imported when a text matches its cue."""

    module: str
    name: str
    cue: re.Pattern[str]


_FORMS: Final[tuple[_Recogniser, ...]] = (
    _Recogniser("reasons", "finding_text", _WORDS),
    _Recogniser("atoms", "shape_text", re.compile("m[0-9]{1,9}n[0-9]{1,9}k[0-9]{1,9}", re.IGNORECASE)),
    _Recogniser("tiled_pastes", "number_text", re.compile("0x[0-9a-f]{9,16}(?:u?ll?)?|[0-9]{14,20}", re.IGNORECASE)),
    _Recogniser("atoms", "mnemonic_text", _MNEMONIC),
)
"""Functions that explain a string of the form of their cue, or return None."""


def _recogniser(module: str, name: str, cue: str = "") -> _Recogniser:
    return _Recogniser(f"cute_py.explanation.{module}", name, re.compile(cue, re.IGNORECASE))


_RECOGNISERS: Final[tuple[_Recogniser, ...]] = (
    _recogniser(
        "triton_pastes",
        "read_triton_layouts",
        r"#(?:ttg|triton|gluon|ttng)|Layout\(|-> \(|is a size 1|sizePerThread|x\w{1,40}, #",
    ),
    _recogniser(
        "rows.scaled_products", "read_scaled_products", "Invalid scaling configuration|scaling, scale_a should be"
    ),
    _recogniser(
        "rows.checkpoints", "read_checkpoints", r"quant_method|quant_algo|config_groups|[\"']dtype[\"']\s{0,9}:"
    ),
    _recogniser("rows.cuda_core", "read_tensor_maps", "from_tiled|as_tensor_map"),
    _recogniser(
        "rows.shape_errors",
        "read_shape_errors",
        r"expected size|for input of size|cannot reshape|shapes|Target sizes|storage of size|Sizes of tensors"
        r"|size of tensor|einsum\(\)|batch2|out of range|divide axis|copying a param|number of dimensions"
        r"|core dimension",
    ),
    _recogniser("map_pastes", "read_maps", r"[0-9]"),
    _recogniser("messages", "read_messages"),
    _recogniser(
        "format_pastes",
        "read_formats",
        r"scal|Sf\w{0,8}Atom|swizzle|e8m0|block_size|%\s?128|of 128|to_blocked|SF transformation|tma_aligned|128x4|8x4"
        r"|UE4M3|VEC128|sf\.s|FP4 GEMM|e2m1fn_x2|Float8|fp8|row-?wise",
    ),
    _recogniser(
        "format_pastes",
        "read_permuted",
        r"\.\s?(?:permute|trans|transpose|swapaxes|swapdims|move(?:dim|axis)|(?:un)?flatten|m?T\b|t\()|rearrange\(",
    ),
    _recogniser("dsl_pastes", "read_dsl"),
    _recogniser("messages", "read_steps"),
    _recogniser("compiler_pastes", "read_compiler", "assert|error:|instantiation of"),
    _recogniser(
        "ptx_pastes",
        "read_instructions",
        r";|ptxas|' (?:not supported on|requires) \.target|Advisory|wgmma|warpgroup|[ls][td]matrix|setmaxnreg|spill"
        r"|bytes smem",
    ),
    _recogniser("ptx_pastes", "read_waits", "mbarrier"),
    _recogniser("cuda_pastes", "read_errors"),
    _recogniser("messages", "read_metrics", "bank.conflict"),
    _recogniser("rows.kernel_names", "read_kernel_names", r"cutlass\w{0,40}(?:tensorop|simt)_"),
    _recogniser("tiled_pastes", "read_tiled", r"Tiled|[_ ]Atom|desc|Thr(?:Copy|MMA)"),
    _recogniser("dsl_pastes", "read_dsl_tensors", "tensor|raw_ptr"),
    _recogniser("triton_pastes", "read_tensor_descriptors", "tensor_?descriptor"),
    _recogniser("dsl_pastes", "read_dsl_types", "!cute"),
    _recogniser("layout_pastes", "read_printed"),
    _recogniser("layout_pastes", "read_spelled"),
)
"""Readers of a pasted text, in order; each sees only the text that earlier ones have not read."""


def readings_of(text: str) -> list[Reading]:
    """Return all readings of a pasted text.

    Raises:
        InvalidValueError: the text has more than 65,536 characters.

    >>> [reading.kind for reading in readings_of("misaligned address\\n(8,4):(4,1)")]
    ['CUDA_ERROR_MISALIGNED_ADDRESS, a CUDA error', 'A layout: (8,4):(4,1)']
    """
    check_length(text)
    printed = as_printed(text)
    from cute_py.explanation.layout_pastes import read_alone

    return _readings(printed) or read_alone(printed)


def _readings(text: str) -> list[Reading]:
    """Return every reading of a text that a program printed, without correcting its spelling."""
    from cute_py.explanation.readings import without

    found: list[Reading] = []
    for row in _RECOGNISERS:
        if row.cue.search(text):
            readings = getattr(importlib.import_module(row.module), row.name)(text)
            found += readings
            text = without(text, readings)
    if not found:
        from cute_py.explanation.messages import read_demands

        found += read_demands(text)
    return found


def _printed_atom(text: str) -> list[str]:
    """The explanation of an atom or tiled operation, if the string is exactly its printed form."""
    if "Atom" not in text or len(text) > _LONGEST_LAYOUT:
        return []
    from cute_py.explanation.atoms import atom_text, is_atom
    from cute_py.explanation.tiled_pastes import part_names

    try:
        thing = parse(text.strip())
        shown = [atom_text(thing)] if is_atom(thing) else []
    except CuteError:  # not an operation of CuTe, or layouts with run-time numbers, which no C++ operation has
        return []
    names = part_names(thing)
    several = (
        f"The printed text does not name its operation. {len(names)} operations of CuTe have these layouts; this is "
        "the first."
    )
    return [*([several] if len(names) > 1 else []), *shown]


def _text_explained(text: str) -> str:
    """Explain a string that is not a name of this library.

    Raises:
        InvalidTypeError: explain recognises nothing in it; the facts list what is missing.
    """
    facts = {"takes": f"{_TAKES}, names of this library, terms, texts that `parse` reads, and what programs print"}
    readings: list[Reading] | None = None
    modes = ""
    if _NAMED_VALUE.fullmatch(text.strip()):  # `error: NAME` would parse as a layout of symbols
        readings = _readings(text)
    is_sentence = _NAMED_WORD.fullmatch(text.strip()) is not None
    if not readings and not is_sentence and "\n" not in text.strip() and len(text) < _LONGEST_LAYOUT:
        try:
            thing = parse(text.strip())
            modes = modes_text(thing)
            more = "\n".join(["\n".join(_in_short(thing, "S<" in text)), *address_notes(text)])
            untyped = _WIDTH_ALONE.search(text) is not None
            whole = stored(thing, typed=False) if isinstance(thing, Tensor) and untyped else str(explain(thing))
            return whole + (f"\n\nIn short\n{more}" if more else "")
        except ParseError as error:
            facts["parse"] = error.headline
            if error.position or error.__cause__ is not None:  # a part of it was read
                facts |= {name: str(value) for name, value in error.facts.items()}
            facts |= _reason_facts(error.__cause__)
        except CuteError:
            pass
    readings = _readings(text) if readings is None else readings
    if not readings and (joined := unwrapped(text)) != text:
        readings = _readings(joined)
    if not readings:
        from cute_py.explanation.layout_pastes import read_alone

        readings = read_alone(text)
    if readings:
        from cute_py.explanation.readings import answer

        return "\n\n".join([*_printed_atom(text), answer(readings)])
    return modes or _named_terms(text, facts)


def _reason_facts(error: BaseException | None) -> dict[str, str]:
    """The reason and the fix of the rule that an error reports, as facts; empty if no table has the rule."""
    if not isinstance(error, CuteError):
        return {}
    from cute_py.explanation.readings import reason_of

    reason = reason_of(error.headline)
    return {} if reason is None else {"why": reason.why, "to do": reason.fix}


def _in_short(thing: Any, of_dsl: bool) -> list[str]:
    """Lines with facts about a swizzled layout or a tensor, for the end of its explanation."""
    if not isinstance(thing, (ComposedLayout, Tensor)):
        return []
    from cute_py.explanation.layout_pastes import facts_of

    return [f"  {line.strip()}" for line in facts_of(thing, of_dsl)]


def _named_terms(text: str, facts: dict[str, str]) -> str:
    """Explain the terms in a string where explain recognises nothing else.

    Raises:
        InvalidTypeError: the string contains no terms, or is a single word.
    """
    from cute_py.explanation.map_pastes import bytes_refused
    from cute_py.explanation.readings import HANG
    from cute_py.explanation.reasons import TERMS, nearest, term_text

    if near := nearest(text) if len(text) < _LONGEST_NAME else []:
        facts = {"takes": facts["takes"], "nearest": ", ".join(near), **facts}
    known = [
        name
        for name in TERMS
        if (HANG.search(text) if name == "hang" else re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE))
    ]
    sentence = len(text.split()) > 1
    opcode = _MNEMONIC.match(text.strip())
    if opcode is not None and text.count(";") <= 1:
        from cute_py.explanation.atoms import mnemonic_text

        if (instruction := mnemonic_text(opcode[0])) is not None:
            return f"{instruction}\n\nThe operands were not judged."
    if (refused := bytes_refused(text)) is not None:
        of_map = {name: str(value) for name, value in refused.facts.items()}
        facts |= {"recognised": "numbers of a tensor map", "missing": refused.headline, **of_map}
    elif sentence:
        facts |= {"recognised": ", ".join(known) or "nothing", "missing": MISSING}
    if not known or not sentence:
        if (called := undefined_call(text)) is not None:
            of_call = f"the definition of {called}: if it is a layout, write {called} = (4,8):(8,1) before its call"
            facts = {"takes": facts["takes"], "missing": of_call}
        hint = "`cute-py check FILE` and `cute-py run FILE` judge a kernel" if _KERNEL.search(text) else None
        raise InvalidTypeError(f"no explanation of str {given(text)}", facts, hint)
    terms = [part for name in known if (part := term_text(name)) is not None]
    return "\n\n".join([f"Recognised in this text: {', '.join(known)}", *terms, f"Missing in the text\n  {MISSING}"])


_KERNEL: Final = re.compile(r"\.entry\b|__global__\b")
_WIDTH_ALONE: Final = re.compile(
    r"(?:(?:ptr|tmem_)\[[0-9]{1,100}b\]|ptr(?:_S<[-0-9,]{1,30}>)?_[0-9]{1,100}b)\([^\n]{0,400}\) o "
)
"""A tensor whose text gives only the width of an element, not its type."""
_NAMED_VALUE: Final = re.compile(r"[A-Za-z_][\w.]*\s*:\s*[A-Za-z0-9_]+")
_NAMED_WORD: Final = re.compile(r"[A-Za-z_][\w.]{2,80}\s{0,9}:\s{1,9}[A-Za-z_]\w{2,80}")
"""A word after a name and a blank, such as `Status: CUTLASS_STATUS_ERROR`. It is not a layout of symbols."""
_LONGEST_NAME: Final = 80
_LONGEST_LAYOUT: Final = 20_000
MISSING: Final = (
    "numbers that can be checked: the arguments or the bytes of the map, the printed layout or tensor, the assertion "
    "with its notes, or the error with its instruction"
)
_TAKES = "layouts, swizzles, tensors, atoms, tensor maps, errors of this library, objects with explain()"


def _operation_text(operation: Callable[..., Thing]) -> str:
    names = "a" if operation.__name__ in ("coalesce", "right_inverse", "left_inverse") else "a, b"
    hint = f"The steps with their values: explain({operation.__name__}, {names})"
    return f"{function_text(operation)}\n\n{hint}"


def _is_map(thing: Thing) -> bool:
    """Whether an object is a tensor map: 64 or 128 bytes, or a request."""
    if isinstance(thing, (bytes, bytearray)):
        return len(thing) in (64, 128)
    return _is_of(thing, "cute_py.tma.descriptor.request", "TensorMapTiled", "TensorMapIm2col", "TensorMapIm2colWide")


def _is_of(thing: Thing, module: str, *names: str) -> bool:
    """Whether an object is an instance of a class of a module, without importing the module: if it was not imported, no
    instance exists."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(thing, tuple([getattr(loaded, name) for name in names]))


def _is_atom(thing: Thing) -> bool:
    return "cute_py.atom" in sys.modules and _explainer("atoms", "is_atom")(thing)


def _explainer(module: str, name: str) -> Callable[..., Any]:
    """A stand-in for a function of an explanation module, which imports the module when it is called."""

    def call(*arguments: Any) -> Any:
        return getattr(importlib.import_module(module if "." in module else f"cute_py.explanation.{module}"), name)(
            *arguments
        )

    return call


def _refuse(thing: Thing) -> str:
    raise InvalidTypeError(f"no explanation of {type(thing).__name__} {given(thing)}", {"takes": _TAKES})


_KINDS: tuple[tuple[Callable[[Thing], bool], Callable[[Thing], str]], ...] = (
    (lambda thing: any(thing is operation for operation in explained()), _operation_text),
    (lambda thing: isinstance(thing, type) and issubclass(thing, CuteError), _explainer("reasons", "error_class_text")),
    (lambda thing: isinstance(thing, type) and is_ours(thing), class_text),
    (lambda thing: isinstance(thing, ModuleType) and thing.__name__.split(".")[0] == "cute_py", module_text),
    (is_function, function_text),
    (lambda thing: isinstance(thing, type), _refuse),
    (_is_atom, _explainer("atoms", "atom_text")),
    (is_coordinates, coordinate_tensor),
    (is_counting, counting),
    (lambda thing: isinstance(thing, Layout), any_layout),
    (lambda thing: isinstance(thing, Swizzle), swizzle_text),
    (lambda thing: isinstance(thing, ScaledBasis), basis_text),
    (lambda thing: isinstance(thing, ComposedLayout), composed_text),
    (lambda thing: isinstance(thing, Tensor), stored),
    (lambda thing: _is_of(thing, "cute_py.draw.picture", "Picture"), picture_text),
    (lambda thing: isinstance(thing, CuteError), _explainer("reasons", "error_text")),
    (_is_map, _explainer("cute_py.tma.descriptor.describe", "describe")),
    (lambda thing: callable(getattr(thing, "explain", None)), lambda thing: str(thing.explain())),
    (lambda thing: isinstance(thing, enum.Enum) and is_ours(type(thing)), member_text),
    (is_constant, lambda thing: constant_text(None, thing)),
    (lambda thing: is_ours(type(thing)), instance_text),
    (lambda thing: True, _refuse),
)
"""(function that tests whether an object is accepted, function that makes the text); the first row whose test passes is
used. Add new kinds of objects here."""
