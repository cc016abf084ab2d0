"""`cute-py completion`: the script for bash completes commands, options, choices and files, in a real bash."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cute_py.cli.completion_command import CHOICES, FILES, SHELLS, script
from cute_py.cli.draw_command import WHATS
from cute_py.cli.main import COMMANDS, main, parser
from cute_py.cli.tma_command import VIEWS
from tests.cli.test_commands import shell

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
function=$(complete -p cute-py | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" cute-py "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
needs_shtab = pytest.mark.skipif(importlib.util.find_spec("shtab") is None, reason="needs shtab")
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def commands() -> set[str]:
    return set(COMMANDS)


@needs_shtab
@needs_bash
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([""], commands()),
        (["d"], {"demo", "desc", "draw", "doctor"}),
        (["draw", "(4,8):(8,1)", "--what", ""], set(WHATS)),
        (["draw", "(4,8):(8,1)", "--what", "s"], {"swizzle", "smem"}),
        (["desc", ""], {"encode", "decode", "diff", "check", "slots"}),
        (["desc", "encode", "--sw"], {"--swizzle"}),
        (["copy", "x.npy", "--swizzle", ""], {"none", "32B", "64B", "128B"}),
        (["tma", "--show", "p"], {"partition", "ptx"}),
        (["tma", "ex"], {"explain"}),
        (["completion", ""], set(SHELLS)),
        (["copy", "{here}/a."], {"{here}/a.npy", "{here}/a.npz"}),
        (["desc", "encode", "--npy", "{here}/a."], {"{here}/a.npy", "{here}/a.npz"}),
        (["desc", "decode", "{here}/a.npz"], {"{here}/a.npz"}),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_bash_completes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], expected: set[str]
) -> None:
    for name in ("a.npy", "a.npz", "b.npy"):
        (tmp_path / name).touch()
    status, text, _ = shell(capsys, "completion", "bash")
    assert status == 0
    (tmp_path / "script").write_text(text)
    given = [word.replace("{here}", str(tmp_path)) for word in words]
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", str(tmp_path / "script"), "cute-py", *given],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert set(done.stdout.split()) == {name.replace("{here}", str(tmp_path)) for name in expected}


@needs_shtab
@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_every_shell_has_a_script_with_every_command(capsys: pytest.CaptureFixture[str], name: str) -> None:
    status, text, _ = shell(capsys, "completion", name, "--json")
    data = json.loads(text)
    assert status == 0
    assert data["shell"] == name
    for command in commands():
        assert command in data["script"]
    assert shell(capsys, "completion", name)[1] == data["script"].rstrip("\n") + "\n"


def test_the_named_files_and_choices_are_arguments() -> None:
    """A renamed argument would silently lose its completion."""
    made = parser()._subparsers
    assert made is not None
    found: dict[str, set[str]] = {}
    todo = list(made._group_actions)
    while todo:
        action = todo.pop()
        for name, command in (action.choices or {}).items():  # type: ignore[union-attr]
            found.setdefault(name, set()).update(a.dest for a in command._actions)
            todo += [a for a in command._actions if type(a).__name__ == "_SubParsersAction"]
    for name, arguments in [*FILES.items(), *((name, tuple(row)) for name, row in CHOICES.items())]:
        assert set(arguments) <= found[name], name
    assert CHOICES["tma"]["operands"] == tuple(VIEWS)


def test_without_the_package_the_extra_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert shell(capsys, "completion", "bash") == (
        2,
        "",
        "cute-py: error: completion needs the package shtab\n  hint : pip install 'cute-py[cli]'\n",
    )


def test_an_old_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", SimpleNamespace(SUPPORTED_SHELLS=["bash"]))
    with pytest.raises(ImportError, match="this version of shtab can't write a script for fish"):
        script(parser(), "fish")


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["completion", "ksh"])
    assert end.value.code == 2
    assert "invalid choice: 'ksh'" in capsys.readouterr().err
