"""The integer constants that source code in C, C++ or Python defines, and the source code without its comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from cute_py.dtypes import as_dtype
from cute_py.errors import InvalidValueError, unless_refused
from cute_py.explanation.readings import blank, some, type_bits
from cute_py.explanation.rows.source_integers import OVERFLOW, TypedInteger, integer_type, typed_integer
from cute_py.notation.argument_lists import matching_bracket, split_operands


@dataclass
class Used:
    """The parts of a text that the evaluation of an expression read, and its findings.

    Attributes:
        spans: the definitions that the expression needs. notes: statements that may change a value. overflows: the
            operations whose results do not fit their types, with the expressions.
    """

    spans: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    overflows: dict[str, str] = field(default_factory=dict)


class SourceConstants:
    """The integer constants that source code defines: `constexpr int M = 1024;`, `#define N 64`, `K = M / 2`.

    Numbers have the types of C, unless the source is Python. A name that the code fills, changes, or defines with
    different values, is not a constant. A macro is replaced by its text, as the preprocessor does.

    >>> constants = SourceConstants("constexpr int M = 1024, N = M / 4; int i = 0; i++; using T = half;")
    >>> constants.evaluate("{N, (M + 1) * sizeof(T)}"), constants.evaluate("{i, M}")
    ('{256, 2050}', '{i, M}')
    """

    def __init__(self, text: str) -> None:
        self._values: dict[str, int] = {}
        self._spelled: dict[str, str] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        self._overflows: dict[str, str] = {}
        self._of_python = _is_python(text)
        self._source = source = without_comments(text, strings=False)
        self._types = _type_aliases(source)
        self._filled = _filled_names(source)
        self._questions = {} if self._of_python else _passed_names(source)
        unknown = set(self._filled)
        calls = _call_places(source)
        for one in some(_CONSTANT.finditer(source), MOST_CONSTANTS):
            name = one["name"] or one["macro"]
            if one["name"] and _is_keyword(source, one.start(), calls):
                continue
            number = self._defined(one, source)
            if number is not None and number.value <= 0 and name in self._questions:
                self._filled.add(name)
                unknown.add(name)
            if number is None or self._values.get(name, number.value) != number.value:
                unknown.add(name)
            if name in unknown or number is None:
                self._values.pop(name, None)
                continue
            self._values[name] = number.value
            self._spelled[name] = self._expanded(one["value"], []) if one["macro"] else str(number)
            self._spans.setdefault(name, one.span())
            if _is_fixed(one, source):
                self._questions.pop(name, None)

    def is_filled(self, name: str) -> bool:
        """Whether the code gives the variable its value elsewhere: `get_shape(&M)`, `std::cin >> M`, a parameter M.

        >>> constants = SourceConstants("int M = 0, N = 0; get_shape(&M);")
        >>> constants.is_filled("M"), constants.is_filled("N")
        (True, False)
        """
        return name in self._filled

    def evaluate(self, written: str, used: Used | None = None) -> str:
        """Replace an expression, or each expression of a list, by its number. A string that is neither is returned
        unchanged. The definitions that the expression needs, and its overflows, are added to `used`."""
        written = without_comments(written) if "/" in written or "#" in written else written
        whole = _IN_BRACES.fullmatch(written)
        read = Used()
        items = split_operands(whole["items"].strip().removesuffix(",")) if whole else [written]
        numbers = [self._number(item, read) for item in items]
        if None in numbers and whole and not read.overflows:  # `(int)N * sizeof(half)` is no list
            whole, read = None, Used()
            numbers = [self._number(written, read)]
        if used is not None:
            used.overflows |= read.overflows
        if None in numbers:
            return written
        if used is not None:
            used.spans += read.spans
            used.notes += [note for note in read.notes if note not in used.notes]
        listed = ", ".join(str(number.value) for number in numbers if number is not None)
        return f"{{{listed}}}" if whole else listed

    def elements(self, name: str, used: Used) -> str | None:
        """The list that code gives an array element by element: `dims[0] = 128; dims[1] = 64;`. None if the code does
        not set each element once, to a constant.

        >>> SourceConstants("uint64_t dims[2]; dims[0] = 128; dims[1] = 64;").elements("dims", Used())
        '{128, 64}'
        """
        found = self._element_places(name)
        array = _ARRAY.format(re.escape(name))
        declared = re.search(array + _LENGTH, self._source) or re.search(array + _PYTHON_LIST, self._source)
        listed = declared["list"] if declared is not None else None
        first = split_operands(listed.strip().removesuffix(",")) if listed else []
        values: dict[int, str] = dict(enumerate(one for one in first if one))
        length = self._number(declared["length"], used) if declared is not None and declared["length"] else None
        if listed is not None and length is not None:
            values |= dict.fromkeys(range(len(values), min(length.value, MOST_ELEMENTS)), "0")
        seen: dict[int, int] = {}
        for one in found:
            before = self._source[: one.start()]
            steps = self._loop_values(before, one["index"], used)
            ends = before.rstrip(" \t" if self._of_python else None)[-1:] in ("", ";", "{", "}", "\n")
            if one["changed"] or (steps is None and not ends):
                return None
            for step in steps or ({},):
                index, value = (_with_names(one[part], step) for part in ("index", "value"))
                place = self._number(index, used)
                number = self._number(_with_elements(value, name, values), used)
                if place is None or number is None or seen.setdefault(place.value, number.value) != number.value:
                    return None
                values[place.value] = str(number.value)
        if sorted(values) != list(range(len(values) if length is None else length.value)):
            return None
        used.spans += [one.span() for one in (*found, *([declared] if declared is not None else []))]
        return self.evaluate(f"{{{', '.join(values[i] for i in range(len(values)))}}}", used)

    def _loop_values(self, before: str, index: str, used: Used) -> list[dict[str, int]] | None:
        """The values of the variable of the loop around an assignment, by its name. None if the index has no such
        variable, or if the loop has bounds that are not constants.

        >>> SourceConstants("")._loop_values("for (int i = 1; i < 3; ++i) ", "i", Used())
        [{'i': 1}, {'i': 2}]
        """
        loop = _LOOP.search(before[-LONGEST_LOOP:])
        if loop is None:
            return None
        variable = loop["name"] or loop["python"]
        body = loop["body"].strip()
        braced = body.startswith("{") or bool(loop["python"])
        if not re.search(rf"\b{variable}\b", index) or _LEAVES.search(body) or (body and not braced):
            return None
        if body.lstrip("{").strip() and not body.endswith((";", "{")):
            return None
        bounds = (loop["first"], loop["last"]) if loop["name"] else (loop["from"] or "0", loop["to"])
        first, last = (self._number(bound, used) for bound in bounds)
        if first is None or last is None:
            return None
        end = last.value + (loop["test"] == "<=")
        return [{variable: value} for value in range(first.value, min(end, first.value + MOST_ELEMENTS))]

    def call_with(self, name: str) -> str | None:
        """The first call that gets a variable and may change it; None if there is none.

        >>> SourceConstants("int M = 8; get_shape(x, M);").call_with("M")
        'get_shape(x, M)'
        """
        return self._questions.get(name)

    def widened(self, written: str) -> str | None:
        """The expression with a cast to 64 bits that prevents its overflow; None if such a cast does not.

        >>> SourceConstants("int M = 65536;").widened("M * M")
        '(int64_t)M * M'
        """
        change = f"(int64_t){written}"
        return change if not written.isidentifier() and self._number(change, Used()) is not None else None

    def sets_elements(self, name: str) -> bool:
        """Whether the code assigns to an element of a variable.

        >>> SourceConstants("for (int i = 0; i < 2; ++i) dims[i] = shape[i];").sets_elements("dims")
        True
        """
        return bool(self._element_places(name))

    def _element_places(self, name: str) -> list[re.Match[str]]:
        """The assignments to elements of a variable."""
        found = some(re.finditer(_ARRAY.format(re.escape(name)) + _ELEMENT, self._source), MOST_ELEMENTS)
        return [one for one in found if not re.search(r"[\w>*&][ \t]{1,9}\Z", self._source[: one.start()][-10:])]

    def _defined(self, one: re.Match[str], source: str) -> TypedInteger | None:
        """The number that a definition gives; None if the value does not end where `_CONSTANT` stopped, or does not fit
        the declared type."""
        after = source[one.end() : one.end() + 80]
        following = after.lstrip(" \t")
        ends = not following or following[0] in ";\n}"
        if following.startswith(",") and not one["macro"]:
            ends = re.match(r",\s{0,40}[*&A-Za-z_]", after) is not None  # `int M = 1, N = 2`, but no `M = 1, 2`
        if not ends or (not one["macro"] and _CONTINUED.match(after)):
            return None
        read = Used()
        number = self._number(one["value"], read)
        if read.overflows:
            self._overflows[one["name"] or one["macro"]] = next(iter(read.overflows.values()))
        if number is None or one["macro"] or self._of_python:
            return number
        kind = integer_type(_head(one, source)) or number.kind
        if not kind.fits(number.value):
            self._overflows[one["name"]] = f"{number.value} does not fit {kind.name}"
            return None
        return TypedInteger(number.value, kind)

    def _expanded(self, written: str, used: list[tuple[int, int]]) -> str:
        """The expression with its constants as numbers."""

        def number(word: re.Match[str]) -> str:
            if word["sized"] or word["name"] not in self._values:
                return word[0]
            used.append(self._spans[word["name"]])
            return self._spelled[word["name"]]

        return _OPERAND.sub(number, written.strip())

    def _number(self, written: str, used: Used) -> TypedInteger | None:
        """The integer that an expression of constants denotes; None for anything else, and for a result that does not
        fit its type, which is added to `used`."""
        plain = self._expanded(written, used.spans)
        names = {word["name"] for word in some(_OPERAND.finditer(written)) if word["name"]}
        shown = " ".join(written.split())
        try:
            number = typed_integer(plain, self._bits_of, self._of_python)
        except InvalidValueError as error:
            if error.rule == OVERFLOW:
                used.overflows[shown] = error.headline
            used.overflows |= {name: self._overflows[name] for name in names if name in self._overflows}
            return None
        for name in names & self._values.keys() & self._questions.keys():
            note = (
                f"{name} = {self._values[name]}, as defined; not judged: whether `{self._questions[name]}` changes it"
            )
            used.notes += [note] if note not in used.notes else []
        return number

    def _bits_of(self, name: str) -> int:
        """The bits of a type that `sizeof` names; 0 if it is unknown."""
        for _ in range(MOST_ALIASES):
            name = self._types.get(name, name)
        if vector := _VECTOR.fullmatch(name):
            return type_bits(vector["part"]) * int(vector["count"])
        kind = integer_type(name)
        if kind is not None:
            return kind.bits
        bits = type_bits(name) if _TYPE.fullmatch(name) or unless_refused(as_dtype, name) else 0
        return -(-bits // 8) * 8


LONGEST_LOOP: Final = 600
"""Longest text, in characters, between the beginning of a loop and an assignment in it."""
_LOOP: Final = re.compile(
    r"\bfor\s?(?:\(\s?(?:[A-Za-z_][\w:]{0,30}\s{1,9}){0,2}(?P<name>[A-Za-z_]\w{0,30}+)\s?=\s?(?P<first>[^;]{1,80});\s?(?P=name)\s?"
    r"(?P<test><=?|!=)\s?(?P<last>[^;]{1,80});\s?(?:\+\+\s?(?P=name)|(?P=name)\s?(?:\+\+|\+=\s?1))\s?\)"
    r"|(?P<python>[A-Za-z_]\w{0,30}+) in range\((?:(?P<from>[^,()\n]{1,80}),\s?)?(?P<to>[^,()\n]{1,80})\):)"
    r"(?P<body>\s{0,80}+\{?[^{}]{0,300})\Z"
)
"""A loop over consecutive integers, from its beginning to an assignment in it."""
_LEAVES: Final = re.compile(r"\b(?:if|else|elif|continue|break|return|goto|while|for|switch)\b")
"""Statements of a loop that may skip an assignment."""
MOST_CONSTANTS: Final = 600
"""Maximum number of definitions of constants that are read."""
LONGEST_HEAD: Final = 200
"""Longest text, in characters, before a name that is searched for the type of its declaration."""
MOST_ELEMENTS: Final = 32
"""Maximum number of assignments to elements of an array that are read."""
MOST_ALIASES: Final = 4
"""Maximum length of a chain of names for one type."""
_CONSTANT: Final = re.compile(
    r"(?:(?<![\w.>])(?P<name>[A-Za-z_]\w{0,60}+)\s{0,9}+=(?!=)|#define\s{1,9}(?P<macro>[A-Za-z_]\w{0,60}+)[ \t]{1,9})"
    r"[ \t]{0,9}(?P<value>[^;,\n{}=]{1,200})"
)
_CONTINUED: Final = re.compile(r"\s{0,60}+[-+*/%&|^<>?]")
"""Matches after a value that continues on the next line."""
_IN_BRACES: Final = re.compile(r"\s*[{\[(](?P<items>[^{}\[\]]{0,2000})[}\])]\s*")
_OPERAND: Final = re.compile(
    r"(?P<sized>\bsizeof(?:_bits)?(?:_v)?\s?[(<][^()<>]{1,80}[)>])"
    r"|(?<![\w.:>])(?P<name>[A-Za-z_]\w{0,60}+)(?!\s?[(.:\[]|<(?!<)|->)"
)
_ARRAY: Final = r"(?<![\w.>]){0}"
"""The name of an array; the patterns below follow it."""
_ELEMENT: Final = (
    r"\s?\[(?P<index>[^\]\n]{1,80})\]\s{0,9}+(?P<changed>[-+*/%|&^]?)=(?!=)\s{0,9}(?P<value>[^;\n{}=]{1,200})"
)
_LENGTH: Final = r"\s?\[(?P<length>[^\]\n]{0,80})\]\s?(?:;|,|=?\s?\{(?P<list>[^{}]{0,300})\}|(?=\)))"
_PYTHON_LIST: Final = r"(?P<length>)\s?=\s?[\[(](?P<list>[^\[\]()]{0,300})[\])]\s{0,9}(?:\n|;|\Z)"
_ALIAS: Final = re.compile(
    r"\busing\s{1,9}(?P<name>\w{1,60})\s?=\s?(?P<type>[\w:]{1,80}(?: [\w:]{1,80}){0,2})\s?;"
    r"|\btypedef\s{1,9}(?P<old>[\w:]{1,80}(?: [\w:]{1,80}){0,2}?)\s{1,9}(?P<new>\w{1,60})\s?;"
    r"|#define\s{1,9}(?P<macro>\w{1,60})[ \t]{1,9}(?P<text>[A-Za-z_][\w:]{0,80})[ \t]{0,9}(?=\n|\Z)"
)
_VECTOR: Final = re.compile(
    r"(?P<part>u?(?:char|short|int|long)|float|double|half|__half|__nv_bfloat16)(?P<count>[1-4])"
)
"""A vector type of CUDA: `float4`."""
_TYPE: Final = re.compile(
    r"(?:\w{1,40}::)*_{0,2}(?:nv_)?"
    r"(?:(?:unsigned |signed )?char|byte|half|BFloat16|Half|(?:fp8|float8|bfloat)\w{0,20})(?:_t)?"
)
"""An element type in a spelling of C++."""


def _with_names(written: str, values: Mapping[str, int]) -> str:
    """An expression with numbers in place of names.

    >>> _with_names("i - 1", {"i": 2})
    '2 - 1'
    """
    return re.sub(r"\b[A-Za-z_]\w{0,60}\b", lambda word: str(values.get(word[0], word[0])), written)


def _with_elements(written: str, name: str, values: Mapping[int, str]) -> str:
    """An expression with numbers in place of the elements of an array that are known.

    >>> _with_elements("2 * s[3 - 1]", "s", {2: "7"})
    '2 * 7'
    """

    def element(found: re.Match[str]) -> str:
        index = unless_refused(typed_integer, found["index"], lambda kind: 0, False)
        return values.get(index.value, found[0]) if found["name"] == name and index is not None else found[0]

    return _SUBSCRIPTED.sub(element, written)


_SUBSCRIPTED: Final = re.compile(r"\b(?P<name>[A-Za-z_]\w{0,60}+)\s?\[(?P<index>[^\[\]]{1,40})\]")


def _type_aliases(source: str) -> dict[str, str]:
    """The types that source code gives a name, by that name. A name with several types is left out.

    >>> _type_aliases("using T = half; typedef float F; using U = half; using U = float;")
    {'T': 'half', 'F': 'float'}
    """
    found: dict[str, set[str]] = {}
    for one in some(_ALIAS.finditer(source), MOST_CONSTANTS):
        name = one["name"] or one["new"] or one["macro"]
        found.setdefault(name, set()).add(one["type"] or one["old"] or one["text"])
    return {name: types.pop() for name, types in found.items() if len(types) == 1}


def _head(one: re.Match[str], source: str) -> str:
    """The text between the beginning of a statement and the name that the statement defines."""
    return re.split(r"[;{}]", source[max(0, one.start() - LONGEST_HEAD) : one.start()])[-1]


def _is_fixed(one: re.Match[str], source: str) -> bool:
    """Whether nothing can change the name: a macro, or a variable that is const."""
    return bool(one["macro"]) or re.search(r"\bconst(?:expr)?\b|\benum\b", _head(one, source)) is not None


def _is_python(text: str) -> bool:
    """Whether source code may be Python, because it has neither semicolons nor macros."""
    return ";" not in text and "#define" not in text


# ---- names that are no constants -----------------------------------------------------------------------------------


_WORD: Final = r"[A-Za-z_]\w{0,60}+"
_NUMERIC: Final = r"(?:auto|char|short|int|long|unsigned|size_t|u?int(?:8|16|32|64)_t|cuuint(?:32|64)_t)"
_FILLED: Final = (
    re.compile(rf"(?<!\w)({_WORD})\s{{0,9}}+(?:\+\+|--|(?:[-+*/%&|^]|<<|>>)=)|(?:\+\+|--)\s{{0,9}}({_WORD})"),
    re.compile(rf"[(,=]\s{{0,9}}+&\s{{0,9}}+({_WORD})"),
    re.compile(
        rf"(?:(?:\A|[;{{}}\n])\s{{0,40}}+(?:std::)?{_WORD}|\bcin)((?:\s{{0,9}}+>>\s{{0,9}}+{_WORD}){{1,8}})",
    ),
    re.compile(
        rf"[(,<]\s{{0,40}}+(?:const\s{{1,9}}+)?(?:{_NUMERIC}\s{{0,9}}+[*&]{{1,2}}\s{{0,9}}+|[A-Za-z_][\w:]{{0,60}}+\s{{1,9}}+)"
        rf"({_WORD})\s{{0,9}}+(?=[,):=>])"
    ),
    re.compile(r"\bdef\s{1,9}\w{1,60}\s?\(([^()]{0,400})\)"),
    re.compile(r"\bfor\s{1,9}\(?([A-Za-z_][\w, ]{0,80}?)\)?\s{1,9}in\b"),
    re.compile(
        rf"(?:(?:\A|\n)[ \t]{{0,40}}+|\btie\s?\(|\bauto&{{0,2}}\s?\[)"
        rf"({_WORD}(?:[ \t]{{0,3}}+,[ \t]{{0,3}}+{_WORD}){{1,8}})"
        r"[)\]]?\s{0,9}+=(?!=)"
    ),
    re.compile(rf"#undef\s{{1,9}}+({_WORD})"),
)
"""Patterns for the names that code increments, assigns to with an operator, passes by address, reads from a stream,
takes as a parameter, counts with, assigns together with others, or undefines."""


_ENCODES: Final = re.compile(r"\bcuTensorMapEncode\w{1,20}\s?\(")


def _filled_names(source: str) -> set[str]:
    """The names that the code fills or changes. A call that encodes a tensor map only reads."""
    for call in some(_ENCODES.finditer(source), MOST_ELEMENTS):
        end = matching_bracket(source, call.end())
        source = source[: call.end()] + blank(source[call.end() : end]) + source[end:]
    parts = [
        group for pattern in _FILLED for one in some(pattern.finditer(source), MOST_CONSTANTS) for group in one.groups()
    ]
    return {name for part in parts if part for name in re.findall(r"[A-Za-z_]\w{0,60}", part)}


_CALL: Final = re.compile(
    rf"(?:\A|[;{{}}\n])\s{{0,40}}+(?:[A-Za-z_][\w:]{{0,40}}+\s{{1,9}}+{_WORD}\s?=\s?)?"
    r"(?P<name>[A-Za-z_][\w:.]{0,60}+)\s?\((?P<operands>[^();{}]{1,200})\)\s?(?=;)"
)
"""A statement that is a call, or that defines its result."""
_READS: Final = re.compile(
    r"(?:cu|cuda|std|cute)(?:[A-Z_:]\w{0,60})+|cute::\w{1,60}|(?:std::)?f?printf?\w{0,20}|[A-Z][A-Z_0-9]{1,60}|static_assert|assert"
    r"|make_\w{1,60}|dim3|return"
)
"""Functions that do not change their operands of integer types."""


def _passed_names(source: str) -> dict[str, str]:
    """The variables that source code passes to functions that may take references, and the first such call.

    >>> _passed_names("get_shape(x, M); printf(format, N); int K = size(P * 2, Q);")
    {'x': 'get_shape(x, M)', 'M': 'get_shape(x, M)', 'Q': 'size(P * 2, Q)'}
    """
    found: dict[str, str] = {}
    for one in some(_CALL.finditer(source), MOST_CONSTANTS):
        if _READS.fullmatch(one["name"]) or one["name"] in _NO_CALL:
            continue
        for operand in split_operands(one["operands"]):
            if operand.isidentifier():
                found.setdefault(operand, f"{one['name']}({' '.join(one['operands'].split())})")
    return found


_NO_CALL: Final = ("if", "while", "for", "switch", "return", "and", "or", "not", "in", "elif")
"""Words whose brackets contain no arguments."""


def _call_places(source: str) -> list[tuple[int, bool]]:
    """After each bracket: its position, and whether the text behind it is inside the brackets of a call."""
    inside, found = [False], [(0, False)]
    for one in re.finditer(r"[()\[\]{}]", source):
        if one[0] in "([{":
            word = re.search(r"(\w{1,60})\s?\Z", source[max(0, one.start() - 62) : one.start()])
            inside.append(one[0] == "(" and word is not None and word[1] not in _NO_CALL)
        elif len(inside) > 1:
            inside.pop()
        found.append((one.end(), inside[-1]))
    return found


def _is_keyword(source: str, begin: int, calls: list[tuple[int, bool]]) -> bool:
    """Whether the name at a position, which `=` follows, is a keyword argument of a call."""
    before = source[max(0, begin - 80) : begin].rstrip()[-1:]
    return before in ("(", ",") and calls[bisect_right(calls, (begin, True)) - 1][1]


# ---- comments ------------------------------------------------------------------------------------------------------


_SKIPPED: Final = re.compile(
    r"(?P<string>\"(?:[^\"\\\n]|\\.){0,400}\"|(?<!\w)'(?:[^'\\\n]|\\.){0,400}')|(?s:/\*.*?(?:\*/|\Z))|//[^\n]*"
    r"|#(?![ \t]{0,3}(?:define|undef|include|if|ifdef|ifndef|else|elif|endif|pragma|error|line)\b|[0-9#])[^\n]*"
)
"""A string, or a comment in C or Python. `#0` begins a frame of a debugger."""


def without_comments(text: str, strings: bool = True) -> str:
    """The source code with blanks in place of its comments, and of its strings if `strings` is False.

    `//` after an operand divides, if the text has neither semicolons nor macros, as in Python.

    >>> without_comments("int N = 4; // rows"), without_comments("N = M // 2")
    ('int N = 4;        ', 'N = M // 2')
    """
    divides = _is_python(text)

    def kept(one: re.Match[str]) -> str:
        if one["string"] is not None:
            return one[0] if strings else blank(one[0])
        before = text[max(0, one.start() - 10) : one.start()].rstrip(" \t")[-1:]
        operand = before.isalnum() or before in ("_", ")", "]")
        return one[0] if divides and one[0].startswith("//") and operand and before else blank(one[0])

    return _SKIPPED.sub(kept, text)
