"""An option of another program: the one that means the same is named."""

import pytest

from cute_py.cli import main
from cute_py.cli.main import MEANT


@pytest.mark.parametrize(("written", "meant"), [("--shape", "--dims"), ("--output", "--out"), ("--tile", "--box")])
def test_the_option_that_is_meant_is_named(written: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["desc", "encode", written, "64,8"])
    said = capsys.readouterr().err
    assert f"nearest: {meant} " in said
    assert "--help (see" not in said.partition("nearest")[2].partition("(see")[0]


def test_a_meaning_is_named_only_by_commands_that_have_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--dims" in MEANT["--shape"]
    with pytest.raises(SystemExit):
        main(["doctor", "--shape", "4"])
    assert "--dims" not in capsys.readouterr().err
