"""Restore the output of a program: remove what terminals, logs, quotations and mail added to it."""

from __future__ import annotations

import html
import re
from typing import Final

_ESCAPES: Final = re.compile(
    r"(?:\x1b|\^\[|\u241b|\\(?:x1b|033|u001b|e))(?:\[[0-?]{0,100}[ -/]{0,100}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\))"
    r"|\[[0-9]{1,3}(?:;[0-9]{1,3})*m"
)
"""Colour codes of a terminal, also as `cat -v` and string literals write them, and without the escape character."""
_INVISIBLE: Final = re.compile("[\ufeff\u200b\u200c\u200d\u2060]")
_BLANKS: Final = re.compile("[\u00a0\u2007\u202f\x00]")
_SMART: Final = str.maketrans({"\u201c": '"', "\u201d": '"', "\u2019": "'"})
"""Typographic quotes. The opening single quote stays, because gcc prints it too."""
_ENTITY: Final = re.compile(r"&(?:lt|gt|amp|quot|nbsp|apos|#39|#x27);")
_STAMP: Final = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9:]{4,5})?"
_LEVEL: Final = r"\[?(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b\]?"
_PREFIXES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:> ?)+",  # a quotation
        r"\[(?:(?:rank|default|proc)?[0-9]{1,6}(?:,[0-9]{1,6})*)\](?:<std(?:out|err)>)?: ?",  # torchrun, mpirun
        r"\([A-Za-z_][^()\n]{0,60}\bpid=[0-9]+[^()\n]{0,40}\) ?",  # Ray, vLLM
        rf"{_LEVEL}[ :]\s*[0-9]{{2}}-[0-9]{{2}} [0-9:.]{{8,15}} \[[^\]\n]{{1,80}}\] ?",  # vLLM
        r"[IWEF][0-9]{4} [0-9:.]{8,15} +[0-9]+ [^\s\]]{1,120}:[0-9]+\] ?",  # glog
        rf"\[?{_STAMP}\]?(?:[ ,]?[-|:]? ?{_LEVEL}\s*(?:[|] [^\n|]{{1,80}}? - |[-|:] )?)? ?",
        r"[a-z][a-z0-9_.]{0,80}(?:-[a-z0-9_.]{1,80}){0,8}-[0-9]{1,9} {1,80}\| ?",  # Docker
        r"E {3,7}(?=\S| )",  # pytest
    )
)
"""Prefixes that logs and quotations put before every line."""


def as_printed(text: str) -> str:
    """Return the text as the program printed it, without colours, log prefixes, quotation marks and escapes.

    >>> as_printed("[rank0]: \\x1b[31mformat\\x1b[0m   9\\n[rank0]: dim      2")
    'format   9\\ndim      2'
    """
    text = without_prompts(text.replace("\r\n", "\n"))
    of_windows = re.search(r"(?<![A-Za-z])[A-Za-z]:\\", text) is not None
    if "\n" not in text.strip() and "\\n" in text and not of_windows:  # a literal
        text = re.sub(r"\\([nt\"'])", lambda found: {"n": "\n", "t": "\t"}.get(found[1], found[1]), text)
    text = _BLANKS.sub(" ", _INVISIBLE.sub("", _ESCAPES.sub("", text.translate(_SMART))))
    text = re.sub(r"\A\s{0,80}(```|[\"'`])\n?((?:(?!\1).)*)\1\s{0,80}\Z", r"\2", text, flags=re.DOTALL)
    if _ENTITY.search(text):
        text = _BLANKS.sub(" ", html.unescape(text))
    lines = text.split("\n")
    while any((cut := _cut(lines, prefix)) is not None and (lines := cut) for prefix in _PREFIXES):
        pass
    return "\n".join(lines)


def without_prompts(text: str) -> str:
    """Return the text of a session of Python or IPython without its prompts; any other text is returned unchanged.

    >>> without_prompts(">>> for i in 1, 2:\\n...     i\\n1\\n2")
    'for i in 1, 2:\\n    i\\n1\\n2'
    >>> without_prompts("... and 3 more")
    '... and 3 more'
    >>> without_prompts("In [1]: f(\\n   ...:     2)\\nOut[1]: 4")
    'f(\\n    2)\\n4'
    """
    if _IPYTHON_INPUT.search(text):
        return _IPYTHON.sub("", text)
    return _PROMPT.sub("", text) if _FIRST_PROMPT.search(text) else text


_FIRST_PROMPT: Final = re.compile(r"^[ \t]{0,40}>>> ", re.MULTILINE)
_PROMPT: Final = re.compile(r"^[ \t]{0,40}(?:>>>|\.\.\.) ", re.MULTILINE)

_IPYTHON_INPUT: Final = re.compile(r"^[ \t]{0,40}(?:In ?\[[0-9 *]{1,6}\]:|Out\[[0-9]{1,6}\]:)", re.MULTILINE)
_IPYTHON: Final = re.compile(
    r"^[ \t]{0,40}(?:In ?\[[0-9 *]{1,6}\]:[ \t]?|\.\.\.:[ \t]?|Out\[[0-9]{1,6}\]:[ \t]?\n?)", re.MULTILINE
)
"""A prompt of IPython, also as notebooks print it."""


def _cut(lines: list[str], prefix: re.Pattern[str]) -> list[str] | None:
    """Remove the prefix that all lines have; the first line may lack it, because its beginning was not copied."""
    found = [prefix.match(line) for line in lines]
    full = [i for i, line in enumerate(lines) if line.strip()]
    if not full or any(found[i] is None for i in full[min(1, len(full) - 1) :]):
        return None
    return [line[match.end() :] if match else line for line, match in zip(lines, found, strict=True)]


def unwrapped(text: str) -> str:
    """Join lines that a terminal broke at its width, by removing the line breaks after the longest lines.

    >>> unwrapped("a" * 60 + "\\n" + "b")[58:]
    'aab'
    """
    lines = text.split("\n")
    width = max(map(len, lines))
    if width < 60:
        return text
    return "".join(line if len(line) == width else line + "\n" for line in lines).removesuffix("\n")
