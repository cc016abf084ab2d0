"""Pictures as PNG: real images of the asked size, light or dark, with text in them; and the refusals in full."""

from __future__ import annotations

import struct
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from cute_py.draw import picture as png_module
from cute_py.draw.layouts import draw_layout
from cute_py.draw.picture import MOST_PIXELS, monospace_family, opened, png
from cute_py.draw.render_svg import style_sheet
from cute_py.errors import InvalidTypeError, InvalidValueError, MissingPackageError
from cute_py.layout.layout import Layout
from tests.shares import one_in

PICTURE = draw_layout(Layout((2, (2, 4)), (8, (4, 1))))


@pytest.fixture
def drawable() -> None:
    pytest.importorskip("resvg_py", reason="needs the extra png")
    try:
        monospace_family()
    except MissingPackageError as error:
        pytest.skip(error.headline)


def pixels(data: bytes) -> tuple[int, int, list[bytes]]:
    """(width, height, rows of RGBA bytes) of a PNG of 8-bit RGBA without interlace, by the PNG specification."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed, wide, high = 8, b"", 0, 0
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"IHDR":
            wide, high, *rest = struct.unpack(">IIBBBBB", body)
            assert rest == [8, 6, 0, 0, 0]
        packed += body if kind == b"IDAT" else b""
        at += 12 + length
    raw, rows, before = zlib.decompress(packed), [], bytes(4 * wide)
    for y in range(high):
        form, line = raw[y * (4 * wide + 1)], bytearray(raw[y * (4 * wide + 1) + 1 : (y + 1) * (4 * wide + 1)])
        for x in range(len(line)):
            left, up = line[x - 4] if x >= 4 else 0, before[x]
            corner = before[x - 4] if x >= 4 else 0
            near = min((left, up, corner), key=lambda c: abs(left + up - corner - c))
            line[x] = (line[x] + (0, left, up, (left + up) // 2, near)[form]) & 255
        before = bytes(line)
        rows.append(before)
    return wide, high, rows


def colours(data: bytes) -> dict[bytes, int]:
    """RGB -> how many pixels."""
    found: dict[bytes, int] = {}
    for row in pixels(data)[2]:
        for x in range(0, len(row), 4):
            found[row[x : x + 3]] = found.get(row[x : x + 3], 0) + 1
    return found


@pytest.mark.usefixtures("drawable")
@pytest.mark.parametrize("scale", [0.5, 1, 2.5])
def test_the_size_is_that_of_the_picture_times_the_scale(scale: float) -> None:
    wide, high = struct.unpack(">II", PICTURE.png(scale)[16:24])
    whole = png_module._SIZE.search(PICTURE.svg)
    assert whole is not None
    assert abs(wide - float(whole[1]) * scale) <= 1
    assert abs(high - float(whole[2]) * scale) <= 1


@pytest.mark.usefixtures("drawable")
@pytest.mark.parametrize(
    ("dark", "paper", "ink", "tone"),
    one_in(2, [(False, "ffffff", "14181d", "dce6f8"), (True, "12161b", "eef1f4", "143b60")]),
    ids=["light", "dark"],
)
def test_paper_ink_and_tones_are_there(dark: bool, paper: str, ink: str, tone: str) -> None:
    image = PICTURE.png(1, dark)
    found = colours(image)
    assert max(found, key=lambda c: found[c]) == bytes.fromhex(paper)
    assert found[bytes.fromhex(ink)] > 20  # the middles of letters
    assert found[bytes.fromhex(tone)] > 300  # two cells of it
    assert all(row[-4:-1] == bytes.fromhex(paper) for row in pixels(image)[2])  # up to the last column


@pytest.mark.usefixtures("drawable")
def test_text_is_drawn() -> None:
    bare = PICTURE.svg.replace("<text", "<desc").replace("</text", "</desc")
    assert len(png(PICTURE.svg, 1)) > 2 * len(png(bare, 1))


@pytest.mark.usefixtures("drawable")
def test_saving_writes_the_image(tmp_path: Path) -> None:
    written = PICTURE.save(tmp_path / "a.PNG", scale=1, dark=True)
    assert written.read_bytes() == PICTURE.png(1, dark=True)
    assert [path.name for path in tmp_path.iterdir()] == ["a.PNG"]


def test_the_dark_rules_are_laid_open_whole() -> None:
    sheet = opened(style_sheet()[1])
    assert "@media" not in sheet
    assert sheet.count("{") == sheet.count("}")
    assert sheet.count(".paper{") == 2
    assert sheet.rindex("#ffffff") < sheet.rindex("#12161b")
    assert opened("<svg>no style</svg>") == "<svg>no style</svg>"


@pytest.mark.parametrize(
    ("scale", "kind", "words"),
    [
        (0, InvalidValueError, "scale = 0; must be a positive number"),
        (-2, InvalidValueError, "scale = -2; must be a positive number"),
        (float("nan"), InvalidValueError, "scale = nan; must be a positive number"),
        (float("inf"), InvalidValueError, "scale = inf; must be a positive number"),
        ("2", InvalidTypeError, "scale = '2'; must be a number such as 2"),
        (True, InvalidTypeError, "scale = True; must be a number such as 2"),
        (1e-9, InvalidValueError, "scale = 1e-09: the picture of "),
    ],
)
def test_scales_that_are_none(scale: float, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind) as caught:
        PICTURE.png(scale)
    assert str(caught.value).startswith(words)


@pytest.mark.usefixtures("drawable")
def test_an_image_that_is_too_large_is_refused_with_a_scale_that_is_not() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="4000" height="4000"><title>x</title></svg>'
    with pytest.raises(InvalidValueError) as caught:
        png(svg, 1.01)
    assert str(caught.value) == (
        f"an image of 4040 x 4040 pixels; must have at most {MOST_PIXELS}\n"
        "  picture : 4000 x 4000\n"
        "  scale   : 1.01\n"
        "  hint    : a scale of 1"
    )
    assert pixels(png(svg.replace("4000", "40"), 2))[:2] == (80, 80)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    monospace_family.cache_clear()
    with pytest.raises(MissingPackageError) as caught:
        PICTURE.save(tmp_path / "a.png")
    assert str(caught.value) == ("a picture as .png needs the package resvg-py\n  hint : pip install 'cute-py[png]'")
    assert list(tmp_path.iterdir()) == []


def test_without_any_font_nothing_is_drawn_without_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=lambda **options: b"blank"))
    monospace_family.cache_clear()
    with pytest.raises(MissingPackageError, match=r"^no font for a \.png, so the picture would have no text\n"):
        PICTURE.png()
    monospace_family.cache_clear()


def test_another_font_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(**options: str) -> bytes:
        return b"8" if "<text" in options["svg_string"] and options.get("monospace_family") == "FreeMono" else b""

    monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=drawn))
    monospace_family.cache_clear()
    assert monospace_family() == "FreeMono"
    assert PICTURE.png() == b"8"  # drawn with that font
    monospace_family.cache_clear()


def test_a_large_picture_is_drawn_at_a_scale_of_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(png_module, "LARGE", 10**9)
    wide, high = struct.unpack(">II", PICTURE.png()[16:24])
    assert PICTURE.png() == PICTURE.png(2)
    monkeypatch.setattr(png_module, "LARGE", wide * high // 2)
    assert PICTURE.png() == PICTURE.png(1)


def test_titles_are_not_given_to_the_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "<title>" in PICTURE.svg
    seen: list[str] = []
    whole = png_module._resvg()

    class Renderer:
        @staticmethod
        def svg_to_bytes(svg_string: str, **options: object) -> bytes:
            seen.append(svg_string)
            return bytes(whole.svg_to_bytes(svg_string=svg_string, **options))

    monospace_family()
    monkeypatch.setattr(png_module, "_resvg", lambda: Renderer)
    PICTURE.png(1)
    assert seen
    assert not any("<title>" in svg for svg in seen)
