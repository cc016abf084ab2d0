"""The tones of cells: 32 colours for light backgrounds and 32 for dark backgrounds.

    light: the text on them is dark        dark: the text on them is light

Any two of the 32 tones differ by at least 5 in CIEDE2000, for people with normal colour vision and for people without
red cones (protanopia) or green cones (deuteranopia). The first eight tones differ by at least 8, and each tone differs
from the background by at least 5. Text on a tone has a contrast ratio of at least 4.5. `tests/draw/test_tones.py`
computes all of this. Further tones repeat the 32.
"""

from __future__ import annotations

from typing import Final

LIGHT: Final = (
    "#dce6f8", "#f2a866", "#dcf5d3", "#e26c95", "#d5c3fb", "#f6f1a2", "#78cbb7", "#9aa4b5",
    "#d56e55", "#388cf3", "#f7f37a", "#d3ebe1", "#5f958d", "#bd8a21", "#71a3fc", "#f0c857",
    "#bddada", "#cbae91", "#b576b1", "#d3eeb7", "#bfac36", "#bec3d6", "#3f9c72", "#b96ed0",
    "#c3dbba", "#d19ea2", "#a6b3d7", "#da9368", "#d67878", "#c2d39b", "#eab7bf", "#98a0d6",
)  # fmt: skip
"""Fills of the tones on light paper."""
DARK: Final = (
    "#143b60", "#994d1c", "#144126", "#852843", "#5c4999", "#473f04", "#136d6a", "#2e546a",
    "#331e1f", "#02007b", "#467637", "#8345bc", "#396059", "#241700", "#0a004a", "#754525",
    "#51669b", "#855061", "#343634", "#271497", "#9b5754", "#974984", "#603b54", "#691923",
    "#3f1530", "#277453", "#562b9f", "#a05377", "#094f3b", "#531746", "#4f633f", "#6a494f",
)  # fmt: skip
"""Fills of the tones on dark paper."""

DISTINCT: Final = len(LIGHT)
"""Number of different tones; if there are more threads, the tones repeat."""


def shade(tone: int, dark: bool = False) -> str:
    """The fill colour of a tone, given its index of at least 0; tones repeat after 32.

    >>> shade(1), shade(33), shade(1, dark=True)
    ('#f2a866', '#f2a866', '#994d1c')
    """
    return (DARK if dark else LIGHT)[tone % DISTINCT]
