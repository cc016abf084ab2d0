"""An mkdocs hook: what the site shows as pages, and the repository has in other forms.

Notebooks become pages with the outputs that they store, pictures as SVG, so that their cells keep their titles; links
to them lead to the pages. The list of changes has the texts of the files that it names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

TO_NOTEBOOK = re.compile(r"(\]\([^)\s]*)\.ipynb(?=[#)])")
TO_CHANGE = re.compile(r"^- \[([^\]]+)\]\((\d{4}-[a-z0-9-]+\.md)\)$", re.MULTILINE)


def _output(output: dict[str, Any]) -> str:
    """An output as Markdown: text in a fence, a picture as it is."""
    if output["output_type"] == "stream":
        return "```text\n" + "".join(output["text"]).rstrip("\n") + "\n```"
    ((kind, lines),) = output["data"].items()
    text = "".join(lines)
    if kind == "image/svg+xml":
        return f'<div class="picture" style="overflow-x:auto">{text}</div>'
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


def changes_page(text: str, folder: Path) -> str:
    """The list of changes, each name followed by the text of its file."""
    return TO_CHANGE.sub(lambda m: f"\n**{m[1]}**\n\n{(folder / m[2]).read_text(encoding='utf-8')}", text)


def on_files(files: Files, config: Any) -> Files:
    """A page beside each notebook."""
    from mkdocs.structure.files import File

    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            path = Path(file.abs_src_path)
            text = notebook_page(json.loads(path.read_text(encoding="utf-8")), path.name)
            files.append(File.generated(config, file.src_uri.removesuffix(".ipynb") + ".md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to notebooks lead to their pages; the list of changes gets its texts."""
    if page.file.src_uri == "changes/README.md":
        markdown = changes_page(markdown, Path(page.file.abs_src_path).parent)
    return TO_NOTEBOOK.sub(r"\1.md", markdown)
