"""The integer constants that source code in C, C++ or Python defines, and the source code without its comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from cute_py.explanation.readings import blank, some, type_bits
from cute_py.notation.argument_lists import split_operands
from cute_py.notation.source_numbers import read_sum, without_casts


class SourceConstants:
    """The integer constants that source code defines: `constexpr int M = 1024;`, `#define N 64`, `K = M / 2`.

    A name that the code fills, changes, or defines with different values, is not a constant. A macro is replaced by its
    text, as the preprocessor does.

    >>> constants = SourceConstants("constexpr int M = 1024, N = M / 4; int i = 0; i++;")
    >>> constants.evaluate("{N, (M + 1) * sizeof(float)}"), constants.evaluate("{i, M}")
    ('{256, 4100}', '{i, M}')
    """

    def __init__(self, text: str) -> None:
        self._values: dict[str, int] = {}
        self._spelled: dict[str, str] = {}
        self._spans: dict[str, tuple[int, int]] = {}
        source = without_comments(text, strings=False)
        self._filled = _filled_names(source)
        unknown = set(self._filled)
        calls = _call_places(source)
        for one in some(_CONSTANT.finditer(source), MOST_CONSTANTS):
            name = one["name"] or one["macro"]
            if one["name"] and _is_keyword(source, one.start(), calls):
                continue
            number = self._defined(one, source)
            if number is None or self._values.get(name, number) != number:
                unknown.add(name)
            if name in unknown or number is None:
                self._values.pop(name, None)
                continue
            self._values[name] = number
            self._spelled[name] = self._expanded(one["value"], []) if one["macro"] else _literal(number)
            self._spans.setdefault(name, one.span())

    def is_filled(self, name: str) -> bool:
        """Whether the code gives the variable its value elsewhere: `get_shape(&M)`, `std::cin >> M`, a parameter M.

        >>> constants = SourceConstants("int M = 0, N = 0; get_shape(&M);")
        >>> constants.is_filled("M"), constants.is_filled("N")
        (True, False)
        """
        return name in self._filled

    def evaluate(self, written: str, used: list[tuple[int, int]] | None = None) -> str:
        """Replace an expression, or each expression of a list, by its number. A string that is neither is returned
        unchanged. The spans of the definitions that are needed are appended to `used`."""
        written = without_comments(written) if "/" in written or "#" in written else written
        whole = _IN_BRACES.fullmatch(written)
        spans: list[tuple[int, int]] = []
        items = split_operands(whole["items"].strip().removesuffix(",")) if whole else [written]
        numbers = [self._number(item, spans) for item in items]
        if None in numbers and whole:  # `(int)N * sizeof(half)` is no list
            whole, spans = None, []
            numbers = [self._number(written, spans)]
        if None in numbers:
            return written
        if used is not None:
            used += spans
        listed = ", ".join(map(str, numbers))
        return f"{{{listed}}}" if whole else listed

    def _defined(self, one: re.Match[str], source: str) -> int | None:
        """The number that a definition gives; None if the value does not end where `_CONSTANT` stopped, or does not fit
        the declared type."""
        after = source[one.end() : one.end() + 80]
        following = after.lstrip(" \t")
        ends = not following or following[0] in ";\n}"
        if following.startswith(",") and not one["macro"]:
            ends = re.match(r",\s{0,40}[*&A-Za-z_]", after) is not None  # `int M = 1, N = 2`, but no `M = 1, 2`
        if not ends or (not one["macro"] and _CONTINUED.match(after)):
            return None
        number = self._number(one["value"], [])
        if number is None or one["macro"]:
            return number
        head = re.split(r"[;{}]", source[max(0, one.start() - LONGEST_HEAD) : one.start()])[-1]
        if number < 0 and re.search(r"unsigned|uint|size_t", head):
            return None
        narrow = re.search(r"\b(?:unsigned|u?int(?:32_t)?)\b", head) and "long" not in head
        return None if narrow and number >= 1 << 32 else number

    def _expanded(self, written: str, used: list[tuple[int, int]]) -> str:
        """The expression with its constants and the sizes of its types as numbers."""

        def number(word: re.Match[str]) -> str:
            if word["type"]:
                bits = type_bits(word["type"])
                return str(bits // 8) if bits else word[0]
            if word["name"] not in self._values:
                return word[0]
            used.append(self._spans[word["name"]])
            return self._spelled[word["name"]]

        return _OPERAND.sub(number, written.strip())

    def _number(self, written: str, used: list[tuple[int, int]]) -> int | None:
        """The integer that an expression of constants denotes; None for anything else, and for a shift or a negative
        unsigned number whose value depends on the types."""
        from cute_py.ptx.parse import immediate

        plain = self._expanded(written, used)
        bare = _SUFFIX.sub("", without_casts(plain))
        if not _has_known_shifts(bare):
            return None
        number = immediate(bare)
        number = read_sum(plain, type_bits) if number is None else number
        unsigned = "sizeof" in written or re.search(r"[0-9a-fA-F][lL]{0,2}[uU]", plain)
        return None if number is not None and number < 0 and unsigned else number


MOST_CONSTANTS: Final = 600
"""Maximum number of definitions of constants that are read."""
LONGEST_HEAD: Final = 200
"""Longest text, in characters, before a name that is searched for the type of its declaration."""
MOST_SHIFTED: Final = 62
"""Largest shift count that is evaluated."""
_CONSTANT: Final = re.compile(
    r"(?:(?<![\w.>])(?P<name>[A-Za-z_]\w{0,60}+)\s{0,9}+=(?!=)|#define\s{1,9}(?P<macro>[A-Za-z_]\w{0,60}+)[ \t]{1,9})"
    r"[ \t]{0,9}(?P<value>[^;,\n{}=]{1,200})"
)
_CONTINUED: Final = re.compile(r"\s{0,60}+[-+*/%&|^<>?]")
"""Matches after a value that continues on the next line."""
_IN_BRACES: Final = re.compile(r"\s*[{\[(](?P<items>[^{}\[\]]{0,2000})[}\])]\s*")
_OPERAND: Final = re.compile(
    r"\bsizeof\s?\(\s?(?P<type>[\w:]{1,80})\s?\)|(?<![\w.:>])(?P<name>[A-Za-z_]\w{0,60}+)(?!\s?[(.:\[]|<(?!<)|->)"
)
_SUFFIX: Final = re.compile(r"(?<=[0-9a-fA-F])[uUlLzZ]{1,3}\b")
_SHIFT: Final = re.compile(r"(?:<<|>>)(?P<count>\s{0,9}\(?\s{0,9}[0-9]{1,4}\s{0,9}\)?)?(?P<more>\s{0,9}[-+*/%\w.(])?")


def _literal(number: int) -> str:
    """The number as an operand in an expression."""
    return f"({number})" if number < 0 else str(number)


def _has_known_shifts(expression: str) -> bool:
    """Whether the expression shifts only by numbers of bits that every type of 64 bits permits.

    >>> [_has_known_shifts(one) for one in ("3 + 4", "1 << 6", "1 << 64", "1 << -1", "1 << 60 + 4")]
    [True, True, False, False, False]
    """
    for one in some(_SHIFT.finditer(expression)):
        if one["count"] is None or one["more"] or int(one["count"].strip(" \t\n()")) > MOST_SHIFTED:
            return False
    return True


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


def _filled_names(source: str) -> set[str]:
    """The names that the code fills or changes."""
    parts = [
        group for pattern in _FILLED for one in some(pattern.finditer(source), MOST_CONSTANTS) for group in one.groups()
    ]
    return {name for part in parts if part for name in re.findall(r"[A-Za-z_]\w{0,60}", part)}


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
    divides = ";" not in text and "#define" not in text

    def kept(one: re.Match[str]) -> str:
        if one["string"] is not None:
            return one[0] if strings else blank(one[0])
        before = text[max(0, one.start() - 10) : one.start()].rstrip(" \t")[-1:]
        operand = before.isalnum() or before in ("_", ")", "]")
        return one[0] if divides and one[0].startswith("//") and operand and before else blank(one[0])

    return _SKIPPED.sub(kept, text)
