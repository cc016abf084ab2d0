"""An mkdocs hook: what the site shows as pages, and the repository has in other forms.

Notebooks become pages with the outputs that they store, and links to them lead to the pages. CHANGELOG.md, above docs,
is a page. A fence marked `python no-run` becomes a plain `python` fence, since the parser of
fences knows no second word.

Pictures are part of the page (inline SVG) instead of <img> elements: their cells keep their titles, and their dark
rules follow the theme that the reader chose on the page.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent))
from reference_entries import expanded

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

TO_NOTEBOOK = re.compile(r"(\]\([^)\s]*)\.ipynb(?=[#)])")
NO_RUN = re.compile(r"^(`{3,}python) no-run[ \t]*$", re.MULTILINE)
IMAGE = re.compile(r'<p><img alt="([^"]*)" src="([^"]+\.svg)" ?/?></p>')
DARK_RULES = re.compile(
    r"@media \(prefers-color-scheme: dark\)\{((?:[^{}]*\{[^{}]*\})*)\}"
)
WIDTH = re.compile(r'<svg [^>]*?width="([0-9.]+)"')
LEAST_SCALE = 9 / 11
DARK_THEME = '[data-md-color-scheme="slate"] '
CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def inline(svg: str) -> str:
    """A picture as a part of a page, dark where the theme of the page is dark.

    It may shrink to the width of the page, as far as its labels of 11 px stay 9 px high.
    """

    def follow_theme(found: re.Match[str]) -> str:
        return re.sub(r"(?=svg\.cute-)", DARK_THEME, found[1])

    themed = DARK_RULES.sub(follow_theme, svg.strip())
    width = WIDTH.match(themed)
    if width:
        least = f'style="min-width:{float(width[1]) * LEAST_SCALE:.0f}px" '
        themed = themed.replace('width="', f'{least}width="', 1)
    return f'<div class="picture">{themed}</div>'


def _output(output: dict[str, Any]) -> str:
    """An output as Markdown: text in a fence, a picture as it is."""
    if output["output_type"] == "stream":
        return "```text\n" + "".join(output["text"]).rstrip("\n") + "\n```"
    ((kind, lines),) = output["data"].items()
    text = "".join(lines)
    if kind == "image/svg+xml":
        return inline(text)
    return f"```text\n{text}\n```"


def notebook_page(notebook: dict[str, Any], name: str) -> str:
    """The Markdown of a notebook; `name` is that of its file, for a link after the title."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts += [f"```python\n{source}\n```", *map(_output, cell["outputs"])]
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f'{title}\n\n<a href="../{name}" download>This page is a notebook: {name}</a>\n{rest}\n'


def changes_page(text: str) -> str:
    """The list of changes as a page of docs: its links begin in the folder of the repository."""
    return text.replace("](docs/", "](")


def on_files(files: Files, config: Any) -> Files:
    """A page next to each notebook, and one of the list of changes, which is above docs."""
    from mkdocs.structure.files import File

    changes = changes_page(CHANGELOG.read_text(encoding="utf-8"))
    files.append(File.generated(config, "changes.md", content=changes))
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            path = Path(file.abs_src_path)
            text = notebook_page(
                json.loads(path.read_text(encoding="utf-8")), path.name
            )
            files.append(
                File.generated(
                    config,
                    file.src_uri.removesuffix(".ipynb") + ".md",
                    content=text,
                )
            )
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to notebooks lead to their pages, and fences lose the mark `no-run`."""
    if page.file.src_uri.startswith("reference/"):
        markdown = expanded(markdown)
    return NO_RUN.sub(r"\1", TO_NOTEBOOK.sub(r"\1.md", markdown))


def on_page_content(
    html: str, *, page: Any, config: Any, files: Files, **_: Any
) -> str:
    """Pictures of this library become inline SVG."""

    def drawn(found: re.Match[str]) -> str:
        address = posixpath.normpath(
            posixpath.join(posixpath.dirname(page.file.dest_uri), found[2])
        )
        file = next((file for file in files if file.dest_uri == address), None)
        svg = (
            ""
            if file is None
            else Path(str(file.abs_src_path)).read_text(encoding="utf-8")
        )
        return (
            inline(svg)
            if svg.startswith(
                '<svg xmlns="http://www.w3.org/2000/svg" class="cute '
            )
            else found[0]
        )

    return IMAGE.sub(drawn, html)
