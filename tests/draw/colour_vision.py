"""How far apart two colours are, and how people see them who lack a kind of cone.

Colour difference: CIEDE2000 (ISO/CIE 11664-6), as Sharma, Wu and Dalal (2005) write it. Colour blindness: the matrices
of Machado, Oliveira and Fernandes (2009) of full severity, applied to linear sRGB. Contrast: WCAG 2.1.
"""

from __future__ import annotations

from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from typing import Final

Triple = tuple[float, float, float]
MATRICES: Final[dict[str, tuple[Triple, Triple, Triple]]] = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
}
_XYZ: Final = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE: Final = (0.95047, 1.0, 1.08883)


def linear(colour: str) -> Triple:
    """Linear parts of '#rrggbb'."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return red, green, blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio, 1 to 21."""
    low, high = sorted(sum(w * c for w, c in zip(_XYZ[1], linear(x), strict=True)) for x in (one, other))
    return (high + 0.05) / (low + 0.05)


def _times(matrix: tuple[Triple, Triple, Triple], vector: Triple) -> Triple:
    x, y, z = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return x, y, z


def lab(colour: str, sight: str = "all cones") -> Triple:
    """CIE L*a*b* of a colour as it is seen."""
    seen = tuple(min(max(part, 0.0), 1.0) for part in _times(MATRICES[sight], linear(colour)))
    parts = [part / white for part, white in zip(_times(_XYZ, seen), _WHITE, strict=True)]  # type: ignore[arg-type]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in parts)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _hue(a: float, b: float) -> float:
    return degrees(atan2(b, a)) % 360 if a or b else 0.0


def difference(one: Triple, other: Triple) -> float:
    """CIEDE2000 of two colours in L*a*b*."""
    chroma = (hypot(*one[1:]) + hypot(*other[1:])) / 2
    stretch = 1.5 - 0.5 * sqrt(chroma**7 / (chroma**7 + 25**7))
    (l1, a1, b1), (l2, a2, b2) = ((L, stretch * a, b) for L, a, b in (one, other))
    c1, c2, h1, h2 = hypot(a1, b1), hypot(a2, b2), _hue(a1, b1), _hue(a2, b2)
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0.0
    d_light, d_chroma, d_hue = l2 - l1, c2 - c1, 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    hue = h1 + h2 if not c1 * c2 else (h1 + turn / 2) % 360
    wave = 1 - 0.17 * cos(radians(hue - 30)) + 0.24 * cos(radians(2 * hue))
    wave += 0.32 * cos(radians(3 * hue + 6)) - 0.20 * cos(radians(4 * hue - 63))
    s_light = 1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2)
    s_chroma, s_hue = 1 + 0.045 * chroma, 1 + 0.015 * chroma * wave
    rotation = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    parts = d_light / s_light, d_chroma / s_chroma, d_hue / s_hue
    return sqrt(sum(part**2 for part in parts) + rotation * parts[1] * parts[2])
