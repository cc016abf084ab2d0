"""Explanation: a text that a terminal prints and a notebook shows with headings, lists of facts and code apart."""

from __future__ import annotations

from html import escape

_PROSE = 'style="margin-top:.4em;white-space:pre-wrap"'
_PRE = 'style="margin:.2em 0 .6em 1em;white-space:pre-wrap;overflow-wrap:anywhere;font-family:monospace"'


class Explanation(str):
    """The words of `explain`. It is a string; a notebook shows its HTML form.

    >>> words = Explanation("4:1\\n\\nAs a whole\\n  4 elements")
    >>> print(words.splitlines()[0], len(words) == len(str(words)))
    4:1 True
    >>> words._repr_html_().count("<pre")
    1
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        first, *rest = str(self).split("\n\n")
        parts = [f'<div style="font-weight:bold;font-family:monospace;white-space:pre-wrap">{escape(first)}</div>']
        return f'<div class="cute-explanation">{"".join([*parts, *map(_block, rest)])}</div>'


def _block(text: str) -> str:
    """A paragraph: lines without indent are prose, the others, and all from the first `>>>` on, stay as they are."""
    out: list[str] = []
    kept: list[str] = []
    code = is_code = False
    for line in [*text.split("\n"), None]:
        code = code or (line is not None and line.startswith(">>> "))
        of_code = code or (line is not None and line.startswith(" "))
        if kept and (line is None or of_code != is_code):
            words = escape("\n".join(kept))
            out.append(f"<pre {_PRE}>{words}</pre>" if is_code else f"<div {_PROSE}>{words}</div>")
            kept = []
        if line is not None:
            kept.append(line)
        is_code = of_code
    return "".join(out)
