"""Runs the notebooks of docs/notebooks, and stores what they show or tells what has changed.

    python docs/run_notebooks.py                    run and store
    python docs/run_notebooks.py --check            run and compare; exit status 1 where something differs
    python docs/run_notebooks.py --jupyter ...      in real kernels (the extra `notebook`); the default is plain Python

Stored is what a cell prints, and of the value of its last line the SVG if it has one, else its text. Both ways of
running store the same.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

NOTEBOOKS = Path(__file__).resolve().parent / "notebooks"
SVG, TEXT = "image/svg+xml", "text/plain"

Notebook = dict[str, Any]
Output = dict[str, Any]


def _lines(text: str) -> list[str]:
    """Text as notebooks store it, a list of lines with their ends."""
    return text.splitlines(keepends=True)


def _stream(text: str, name: str = "stdout") -> Output:
    return {"name": name, "output_type": "stream", "text": _lines(text)}


def _value(kind: str, text: str, count: int) -> Output:
    return {
        "data": {kind: _lines(text)},
        "execution_count": count,
        "metadata": {},
        "output_type": "execute_result",
    }


def code_cells(notebook: Notebook) -> list[dict[str, Any]]:
    """The cells that run, in order."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run_plain(notebook: Notebook) -> Iterator[list[Output]]:
    """The outputs of each code cell, run one after the other in one namespace of this process."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for count, cell in enumerate(code_cells(notebook), 1):
        tree = ast.parse("".join(cell["source"]))
        last = (
            tree.body.pop()
            if tree.body and isinstance(tree.body[-1], ast.Expr)
            else None
        )
        name, printed, complaints = (
            f"<cell {cell['id']}>",
            io.StringIO(),
            io.StringIO(),
        )
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(complaints),
        ):
            exec(compile(tree, name, "exec"), namespace)
            value = (
                None
                if last is None
                else eval(
                    compile(ast.Expression(last.value), name, "eval"), namespace
                )
            )
        outputs = [
            _stream(text.getvalue(), kind)
            for kind, text in (("stdout", printed), ("stderr", complaints))
        ]
        found = [output for output in outputs if output["text"]]
        if value is not None:
            drawn = getattr(value, "_repr_svg_", None)
            found.append(
                _value(SVG, drawn(), count)
                if drawn
                else _value(TEXT, repr(value), count)
            )
        yield found


def run_jupyter(notebook: Notebook) -> Iterator[list[Output]]:
    """The outputs of each code cell, run in a Jupyter kernel.

    Raises:
        ImportError: nbclient or ipykernel is not installed.
    """
    import ipykernel  # noqa: F401  (the kernel that nbclient starts)
    import nbformat
    from nbclient import NotebookClient

    whole = nbformat.reads(json.dumps(notebook), as_version=4)
    ran = NotebookClient(whole, timeout=300, kernel_name="python3").execute()
    for count, cell in enumerate(code_cells(ran), 1):
        found: list[Output] = []
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                text, name = output["text"], output["name"]
                if (
                    found and found[-1].get("name") == name
                ):  # a kernel that is slow sends one stream in parts
                    text = "".join(found.pop()["text"]) + text
                found.append(_stream(text, name))
            else:
                kind = SVG if SVG in output["data"] else TEXT
                found.append(_value(kind, output["data"][kind], count))
        yield found


def words(output: Output) -> str:
    """What a reader sees of an output: its text; of a picture its labels, titles and number of cells."""
    if output["output_type"] == "stream":
        return "".join(output["text"])
    ((kind, lines),) = output["data"].items()
    if kind != SVG:
        return "".join(lines)
    root = ElementTree.fromstring("".join(lines))
    texts = [
        node.text or ""
        for node in root.iter()
        if node.tag.endswith(("}text", "}title"))
    ]
    return "\n".join(
        [
            f"picture of {sum(1 for node in root.iter() if node.tag.endswith('}rect'))} boxes",
            *texts,
        ]
    )


def differences(
    notebook: Notebook,
    run: Callable[[Notebook], Iterator[list[Output]]] = run_plain,
) -> list[str]:
    """What each cell shows now where that is not what is stored, one text a cell."""
    found = []
    for cell, outputs in zip(code_cells(notebook), run(notebook), strict=True):
        now, stored = (
            "\n".join(map(words, outputs)),
            "\n".join(map(words, cell["outputs"])),
        )
        if now != stored:
            found.append(f"cell {cell['id']} shows\n{now}\nstored is\n{stored}")
    return found


def store(
    notebook: Notebook,
    run: Callable[[Notebook], Iterator[list[Output]]] = run_plain,
) -> None:
    """Run, and put the outputs into the notebook."""
    for count, (cell, outputs) in enumerate(
        zip(code_cells(notebook), run(notebook), strict=True), 1
    ):
        cell["execution_count"], cell["outputs"] = count, outputs


def text_of(notebook: Notebook) -> str:
    """The file's text: the same for the same notebook, whatever wrote it."""
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run all notebooks, or those named. Returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "notebooks", nargs="*", type=Path, help="default: all of docs/notebooks"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare with what is stored, and store nothing",
    )
    parser.add_argument(
        "--jupyter", action="store_true", help="run in Jupyter kernels"
    )
    options = parser.parse_args(arguments)
    run = run_jupyter if options.jupyter else run_plain
    status = 0
    for path in options.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if options.check:
            found = differences(notebook, run)
            print(
                f"{path.name}: {'as stored' if not found else f'{len(found)} cell(s) differ'}"
            )
            for text in found:
                print(text)
            status |= bool(found)
        else:
            store(notebook, run)
            path.write_text(text_of(notebook), encoding="utf-8")
            print(f"{path.name}: stored, {path.stat().st_size} bytes")
    return status


if __name__ == "__main__":
    sys.exit(main())
