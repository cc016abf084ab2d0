"""The colours of pictures: told apart without red or green cones too, and dark or light enough for the text on them."""

from __future__ import annotations

import itertools
import re

import pytest

from cute_py.draw.render_svg import style_sheet
from cute_py.draw.tones import DARK, LIGHT, shade
from cute_py.page.document import web_file
from tests.draw.colour_vision import MATRICES, contrast, difference, lab

APART = 5.0
"""CIEDE2000 between any two tones."""
APART_FIRST = 8.0
"""Between any two of the first eight, which legends name."""
READABLE = 4.5
PALETTES = {"light": LIGHT, "dark": DARK}
PAPER = {"light": "#ffffff", "dark": "#12161b"}


@pytest.mark.parametrize(
    ("one", "other", "known"),
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((50.0, 2.5, 0.0), (50.0, 3.1736, 0.5854), 1.0),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
        ((63.0109, -31.0961, -5.8663), (62.8187, -29.7946, -4.0864), 1.2630),
        ((35.0831, -44.1164, 3.7933), (35.0232, -40.0716, 1.5901), 1.8645),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_the_difference_is_that_of_the_published_pairs(
    one: tuple[float, float, float], other: tuple[float, float, float], known: float
) -> None:
    """Sharma, Wu and Dalal (2005), table 1."""
    assert difference(one, other) == pytest.approx(known, abs=5e-5)
    assert difference(other, one) == pytest.approx(known, abs=5e-5)


@pytest.mark.parametrize("sight", MATRICES)
@pytest.mark.parametrize("palette", PALETTES)
def test_any_two_tones_are_told_apart(palette: str, sight: str) -> None:
    tones = PALETTES[palette]
    assert len(tones) == 32
    seen = [lab(tone, sight) for tone in tones]
    close = [
        (i, j, round(difference(seen[i], seen[j]), 1))
        for i, j in itertools.combinations(range(32), 2)
        if difference(seen[i], seen[j]) < (APART_FIRST if j < 8 else APART)
    ]
    assert close == []
    paper = lab(PAPER[palette], sight)
    assert min(difference(paper, tone) for tone in seen) >= APART


@pytest.mark.parametrize("palette", PALETTES)
def test_text_is_read_on_every_tone_and_on_paper(palette: str) -> None:
    sheet = style_sheet()[1]
    found = [re.findall(rf" {name}\{{fill:(#\w+)\}}", sheet) for name in ("text", r"\.faint", r"\.paper")]
    ink, faint, paper = (fills[palette == "dark"] for fills in found)
    assert paper == PAPER[palette]
    assert min(contrast(ink, tone) for tone in PALETTES[palette]) >= READABLE
    assert contrast(faint, paper) >= READABLE


def test_tones_of_more_threads_repeat_after_32() -> None:
    assert [shade(tone) for tone in range(32)] == list(LIGHT)
    assert shade(37) == LIGHT[5] and shade(37, dark=True) == DARK[5]


def variables(dark: bool) -> dict[str, str]:
    """The colours of the playground."""
    light, _, rest = web_file("page.css").partition("@media (prefers-color-scheme: dark)")
    text = rest[: rest.index("* {")] if dark else light
    return dict(re.findall(r"--([\w-]+): (#\w{6})", text))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_of_the_playground_is_read(dark: bool) -> None:
    colours = variables(dark)
    for text, papers in {
        "ink": ("paper", "raised"),
        "faint": ("paper", "raised"),
        "accent": ("paper", "raised"),
        "good": ("good-paper", "raised"),
        "bad": ("bad-paper", "paper", "raised"),
        "unknown": ("unknown-paper",),
        "paper": ("accent",),
    }.items():
        for paper in papers:
            assert contrast(colours[text], colours[paper]) >= READABLE, (text, paper)
