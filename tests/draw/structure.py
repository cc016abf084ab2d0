"""What tests ask of an SVG: its cells with their titles and texts, read back from the XML."""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree import ElementTree

from cute_py.draw.picture import Picture

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class DrawnCell:
    title: str
    text: str
    tone: str
    hatches: int


def cells(picture: Picture) -> list[DrawnCell]:
    """The cells of a picture's SVG, in drawing order."""
    out = []
    for group in ElementTree.fromstring(picture.svg).iter(f"{SVG}g"):
        if group.get("class") != "c":
            continue
        title = group.find(f"{SVG}title")
        rectangles = group.findall(f"{SVG}rect")
        out.append(
            DrawnCell(
                "" if title is None or title.text is None else title.text,
                "\n".join(t.text or "" for t in group.findall(f"{SVG}text")),
                (rectangles[0].get("class") or "").removeprefix("cell").strip(),
                sum(1 for r in rectangles if r.get("class") == "hatched"),
            )
        )
    return out


def words(picture: Picture) -> set[str]:
    """Every text of the SVG."""
    return {t.text or "" for t in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")}
