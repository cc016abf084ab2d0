"""Find the closing bracket of an argument list in a string, and split the list at its commas."""

from __future__ import annotations


def split_operands(text: str, angles: bool = False) -> list[str]:
    """Split a string at the commas outside brackets and braces, and with `angles` also outside < and >.

    >>> split_operands("[%rd1, {%r1, %r2}], 4")
    ['[%rd1, {%r1, %r2}]', '4']
    """
    opening, closing = ("[{(<", "]})>") if angles else ("[{(", "]})")
    if not any(letter in text for letter in opening):
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        if letter in opening:
            depth += 1
        elif letter in closing:
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return parts


def matching_bracket(text: str, begin: int, most: int = 4000) -> int:
    """Return the index of the bracket that closes an argument list starting at `begin`, or the end of the string.
    Brackets in quotes are ignored.

    >>> matching_bracket("f(a[1], (2)) + 1", 2)
    11
    """
    depth, quoted = 1, False
    end = min(len(text), begin + most)
    for i in range(begin, end):
        c = text[i]
        if c == '"':
            quoted = not quoted
        elif not quoted:
            depth += (c in "([{<") - (c in ")]}" or (c == ">" and text[i - 1] not in "-="))
        if depth == 0:
            return i
    return end
