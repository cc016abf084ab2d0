"""The transcripts of the documentation: a ```console block shows commands after `$` and what each of them printed.

The commands of a page run one after another in one empty folder. A line `...` in the output stands for any lines,
` ...` at the end of a line for the rest of it, and `make demo` for what it ends with, `cute-py demo`. Commands that get
and install the package are shown and not run.
"""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from cute_py.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHOWN_ONLY = ("git clone", "cd ", ". .venv/bin/activate", "cute-py serve")
HERE_TEXT = re.compile(r" <<'(\w+)'$")

Step = tuple[str, str, str]
"""(command, standard input, the output that is shown)"""


def commands_in(block: str) -> list[Step]:
    """The commands of a block, with the lines `> ` that continue them or are a here-document, and what follows each.

    >>> commands_in("$ a <<'END'\\n> 1\\n> END\\nfound\\n$ b\\n")
    [('a', '1', 'found'), ('b', '', '')]
    """
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *lines = part.splitlines()
        while command.endswith("\\"):
            command = f"{command[:-1].rstrip()} {lines.pop(0).removeprefix('>').strip()}"
        given = []
        if here := HERE_TEXT.search(command):
            command = command[: here.start()]
            end = lines.index(f"> {here[1]}")
            given, lines = [line.removeprefix("> ") for line in lines[:end]], lines[end + 1 :]
        found.append((command, "\n".join(given), "\n".join(lines)))
    return found


def pattern(shown: str) -> str:
    """A regular expression for an output in which `...` stands for what is left out."""
    return "".join(_line(line.rstrip()) for line in shown.splitlines())


def _line(shown: str) -> str:
    if shown == "...":
        return r"(?:.*\n)*?"
    if shown.endswith(" ..."):
        return re.escape(shown.removesuffix("...")) + r".*\n"
    return re.escape(shown) + r"[ ]*\n"


def printed(command: str, given: str, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> str:
    """What a command prints, on standard output and then on standard error."""
    words = shlex.split(command)
    if words[:2] == ["python", "-c"]:
        exec(words[2], {})
    elif command == "make demo":
        assert "demo: $(VENV)/installed\n\t$(BIN)/cute-py demo\n" in (ROOT / "Makefile").read_text()
        assert main(["demo"]) == 0
    else:
        assert words[0] == "cute-py", command
        patch.setattr("sys.stdin", io.StringIO(given))
        main(words[1:])
    out, err = capsys.readouterr()
    return out + err


PAGES = [page for page in sorted((ROOT / "docs").glob("**/*.md")) if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_transcript_is_what_happens(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for block in BLOCK.findall(page.read_text()):
        for command, given, shown in commands_in(block):
            if command.startswith(SHOWN_ONLY):
                continue
            found = printed(command, given, capsys, monkeypatch)
            assert re.fullmatch(pattern(shown), found), f"{page.name}: {command} printed\n{found}\nnot\n{shown}"


def test_a_wrong_transcript_is_found() -> None:
    assert re.fullmatch(pattern("a\n...\nd"), "a \nb\nc\nd\n")
    assert re.fullmatch(pattern("a\n..."), "a\n")
    assert not re.fullmatch(pattern("a\n...\nd"), "a\nb\nc\n")
    assert re.fullmatch(pattern("a ...\nb"), "a c\nb\n")
    assert not re.fullmatch(pattern("a ..."), "b c\n")
    assert not re.fullmatch(pattern("a"), "a\nb\n")
    assert not re.fullmatch(pattern(""), "a\n")


def test_the_tutorial_has_a_transcript() -> None:
    commands = [c for block in BLOCK.findall((ROOT / "docs/tutorial.md").read_text()) for c, _, _ in commands_in(block)]
    for name in ("make demo", "cute-py copy", "cute-py draw", "cute-py desc decode"):
        assert any(command.startswith(name) for command in commands), name
