"""The skill: its commands run in its folder, and the answers have the lines that it shows."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from cute_py.cli.files.skill_command import skill_files
from cute_py.cli.main import COMMANDS, main

TEXT = skill_files()["SKILL.md"].decode()
SHOWN = re.findall(r"^```sh\n(.*?)\n```\n\n```text\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def answered(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command of the skill prints, in its folder of examples."""
    monkeypatch.chdir(folder / "cute-py" / "examples")
    words = shlex.split(line)
    if words[0] == "cute-py":
        assert main(words[1:]) in (0, 1)
    else:
        assert words[0] == "python"
        source = Path(words[1]).read_text()
        exec(compile(source, words[1], "exec"), {"__name__": "__main__"})
    return capsys.readouterr().out


@pytest.mark.parametrize(("line", "shown"), SHOWN, ids=[line for line, _ in SHOWN])
def test_a_command_of_the_skill_answers_as_it_says(
    line: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["skill", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    said = answered(line, tmp_path, monkeypatch, capsys)
    for part in shown.splitlines():
        assert part.strip() in said, said


def test_every_block_is_run_and_every_example_is_used() -> None:
    assert len(SHOWN) == TEXT.count("```sh\n") >= 10
    for name in skill_files():
        assert name == "SKILL.md" or Path(name).name in TEXT


def test_the_front_matter_names_the_skill() -> None:
    found = re.match(r"---\nname: ([a-z0-9-]+)\ndescription: (.+)\n---\n", TEXT)
    assert found is not None and found[1] == "cute-py" and len(found[2]) < 1024


def test_the_table_names_commands_and_calls_that_exist() -> None:
    import cute_py as cute

    table = re.findall(r"^\|(.+)\|(.+)\|(.+)\|$", TEXT, re.MULTILINE)[2:]
    assert len(table) >= 10
    for _, command, call in table:
        for name in re.findall(r"`cute-py (\w+)", command):
            assert name in COMMANDS
        for path in re.findall(r"`((?:cute|tma|formats)\.[\w.]+)", call):
            found: object = cute
            for part in path.removeprefix("cute.").split("."):
                found = getattr(found, part)
            assert callable(found)


def test_a_changed_file_is_replaced_only_by_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["skill", "--out", str(tmp_path)]) == 0
    page = tmp_path / "cute-py" / "SKILL.md"
    page.write_text("mine")
    assert main(["skill", "--out", str(tmp_path)]) == 2
    assert "the file exists and differs" in capsys.readouterr().err and page.read_text() == "mine"
    assert main(["skill", "--out", str(tmp_path), "--force"]) == 0
    assert page.read_text() == TEXT
    assert sys.modules["cute_py"]
