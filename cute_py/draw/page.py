"""A single HTML page with pictures in it: no script, no network, one file."""

from __future__ import annotations

import html
from collections.abc import Sequence

_STYLE = (
    ":root{color-scheme:light dark}body{margin:1.5rem;background:#fff;color:#14181d;"
    "font-family:system-ui,sans-serif}h1{font-size:1.2rem;overflow-wrap:anywhere}"
    "figure{margin:1.5rem 0;overflow-x:auto}pre{overflow-x:auto;font-size:12px}"
    "@media (prefers-color-scheme:dark){body{background:#12161b;color:#eef1f4}}"
)


def html_page(title: str, pictures: Sequence[tuple[str, str]]) -> str:
    """The page.

    Args:
        pictures: (SVG, text twin) of each.

    >>> page = html_page("a < b", [("<svg/>", "text")])
    >>> "<title>a &lt; b</title>" in page, page.count("<figure>")
    (True, 1)
    """
    figures = [
        f"<figure>{svg}<details><summary>as text</summary><pre>{html.escape(text)}</pre></details></figure>"
        for svg, text in pictures
    ]
    name = html.escape(title)
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{name}</title>'
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head>{head}<style>{_STYLE}</style></head>',
            f"<body><h1>{name}</h1>",
            *figures,
            "</body></html>",
        ]
    )
