"""Command lines with one argument wrong, and with several: exit status 2 and one line, or an answer; and soon."""

from __future__ import annotations

import io
import json
import random
import time
from pathlib import Path

import numpy as np
import pytest

from cute_py.tma.descriptor.decode import decode
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.plain_data import to_json
from cute_py.tma.descriptor.request import TensorMapTiled
from tests.cli.test_commands import shell
from tests.pace import took_more
from tests.refusals import is_refusal

MAP = encode(TensorMapTiled(9, 4096, (512, 1024), (1024,), (64, 128), swizzle=3))
PACES = 200
"""Of the processor, for one command; see `tests.pace`."""

GMEM, SMEM = "(64,64):(64,_1)", "(_32,_32):(_32,_1)"
COMMANDS = [
    ["print", "(4,8):(8,1)", "--latex"],
    ["print", "ArithTuple(0,0) o (4,5):(_1@0,_1@1)", "--explain", "--json"],
    ["copy", "x.npy", "--tile", "32x32", "--swizzle", "64B", "--order", "row", "--out", "out.npy"],
    ["copy", "x.npz", "--tile", "8x8", "--key", "a", "--dtype", "f32", "--json"],
    ["demo", "x.npy", "--tile", "32x32"],
    ["tma", "box", GMEM, SMEM, "(32,32)", "--dtype", "f16", "--address", "0x1000", "--arch", "sm_100a", "--json"],
    ["tma", "ptx", GMEM, SMEM, "--op", "SM90_TMA_LOAD_MULTICAST", "--multicast", "1", "--internal-dtype", "u16"],
    ["tma", "check", GMEM, SMEM, "--no-check"],
    ["desc", "encode", "--request", "good.json", "--driver", "13000", "--arch", "sm_90", "--out", "o.bin"],
    ["desc", "decode", "map.bin", "--view", "fields"],
    ["desc", "diff", "map.bin", MAP.hex(), "--json"],
    ["desc", "check", "--dtype", "f16", "--dims", "64", "--box", "64", "--interleave", "NONE"],
    ["desc", "slots", MAP.hex()],
    ["tmem", "demo", "--through", "tma", "--columns", "64", "--show", "ptx"],
    ["tmem", "descriptor", "0x4000404000010000", "--kind", "wgmma"],
    ["draw", "(4,8):(8,1)", "--out", "p.svg", "--color", "bank", "--dtype", "f32"],
    ["draw", "(4,8):(8,1)", "(8,4):(1,8)", "--what", "compare"],
    ["draw", GMEM, "--smem", SMEM, "--tile", "(32,32)", "--at", "1", "--what", "smem", "--multicast", "1"],
    ["completion", "bash"],
    [
        "desc",
        "encode",
        "--dtype",
        "f16",
        "--dims",
        "512,1024",
        "--strides",
        "1024",
        "--box",
        "64,64",
        "--swizzle",
        "128B",
    ],
    [
        "desc",
        "encode",
        "--npy",
        "x.npy",
        "--box",
        "32,32",
        "--element-strides",
        "1,1",
        "--l2",
        "128B",
        "--fill",
        "NONE",
    ],
    ["serve", "--port", "65536", "--host", "::1"],
]
BAD = [
    "",
    "-",
    "--",
    " ",
    "0",
    "-1",
    "9" * 30,
    "9" * 5000,
    "0x" + "f" * 5000,
    "1e9",
    "nan",
    "inf",
    "\u0663",
    "\u0663:\u0661",
    "1_000",
    "010",
    "True",
    "None",
    "[]",
    "{}",
    "(",
    ")",
    "(" * 3000,
    "_",
    "@",
    "x",
    "/",
    ".",
    "no/such/file.npy",
    "bin",
    "empty.npy",
    "text.npy",
    "map.bin",
    "bad.json",
    "/dev/zero",
    "/dev/null",
    "\0",
    "a\0b.npy",
    "é😀",
    "a\nb",
    "%s",
    "(4,8):(8,1)",
    "(_2,_2):(_1,0)",
    "(M,N):(N,1)",
    "(1000000,1000000):(1,1000000)",
    "(0,0):(1,1)",
    "(4,-8):(8,1)",
    f"{2**64}:1",
    "(4,8):(8,1@0)",
    "E<0,1>",
    "Sw<99,99,99>",
    "Sw<3,4,3>",
    "gmem_ptr[16b](0x1000) o 4:1",
    "4x",
    "x4",
    "4x4x4x4x4x4",
    "1000000x1000000",
    "float4",
    "f999",
    "complex128",
    "SM90_TMA_STORE",
    "SM90_TMA_PREFETCH",
    "SM100_TMA_LOAD_2D_GATHER4",
    "sm_80",
    "sm_120",
    "128B",
    "13000",
    str(2**32),
    str(-(2**63) - 1),
    "0.5",
    ".png",
    "--json",
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with good files and bad ones."""
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(64 * 64, dtype=np.float16).reshape(64, 64))
    np.savez("x.npz", a=np.zeros((8, 8), np.float32), b=np.ones(4))
    for name, data in {
        "bin": random.Random(1).randbytes(500),
        "empty.npy": b"",
        "text.npy": b"hello",
        "bad.json": b"[[[[",
        "map.bin": MAP,
        "good.json": json.dumps(to_json(decode(MAP))).encode(),
    }.items():
        Path(name).write_bytes(data)
    return tmp_path


def one_wrong(command: list[str], chance: random.Random, each: int) -> list[list[str]]:
    """Every argument replaced by so many of the bad ones."""
    places = [i for i, word in enumerate(command) if i and not word.startswith("--")]
    return [[*command[:i], bad, *command[i + 1 :]] for i in places for bad in chance.sample(BAD, each)]


def several_wrong(chance: random.Random) -> list[str]:
    """Arguments replaced, left out, added, and with another letter in them."""
    words = list(chance.choice(COMMANDS[:-1]))
    for _ in range(chance.randint(1, 3)):
        i = chance.randrange(1, len(words)) if len(words) > 1 else 0
        kind = chance.randrange(5)
        if i == 0 or kind == 0:
            words.insert(i + 1, chance.choice(BAD))
        elif kind == 1:
            words[i] = chance.choice(BAD)
        elif kind == 2:
            del words[i]
        elif kind == 3:
            words.insert(i, chance.choice(chance.choice(COMMANDS)[1:]))
        elif words[i]:
            at = chance.randrange(len(words[i]))
            words[i] = words[i][:at] + chance.choice("()[]:,_@019-xXo<>. \0é٣*^") + words[i][at + 1 :]
    return words


def tried(capsys: pytest.CaptureFixture[str], words: list[str]) -> str | None:
    """What is wrong with what a command does, or None."""
    start = time.process_time()
    try:
        status, _, err = shell(capsys, *words)
    except SystemExit as ended:  # argparse
        status, err = int(ended.code or 0), capsys.readouterr().err
    took = time.process_time() - start
    if status not in (0, 1, 2) or (status == 2 and not is_refusal(err)) or "Traceback" in err or len(err) > 3000:
        return f"exit {status}, {err[:500]!r}"
    return f"{took:.1f} s" if took_more(took, PACES) else None


def check(capsys: pytest.CaptureFixture[str], lines: list[list[str]]) -> None:
    wrong = [(words, reason) for words in lines if (reason := tried(capsys, words)) is not None]
    assert not wrong, "\n".join(f"{[w[:60] for w in words]}: {reason}" for words, reason in wrong[:10])


@pytest.fixture(autouse=True)
def no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))


@pytest.mark.parametrize("each", [1, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: "-".join(words[:2])[:20])
def test_one_argument_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str], command: list[str], each: int) -> None:
    lines = one_wrong(command, random.Random(len(command)), each)
    if command[0] == "serve":  # a right port would serve
        lines = [words for words in lines if "65536" in words or not words[2].isdecimal()]
    check(capsys, lines)


@pytest.mark.parametrize("lines", [100, pytest.param(300, marks=pytest.mark.slow)])
def test_several_are_wrong(folder: Path, capsys: pytest.CaptureFixture[str], lines: int) -> None:
    chance = random.Random(2)
    check(capsys, [several_wrong(chance) for _ in range(lines)])


@pytest.mark.parametrize(
    "words",
    [
        ["desc", "encode", "--request", "/dev/zero"],
        ["desc", "check", "--request", "/dev/zero"],
        ["tma", GMEM, SMEM, "--multicast", "\u0664"],
        ["tma", GMEM, SMEM, "--address", "\u0664"],
        ["tma", GMEM, SMEM, "--multicast", "1_0"],
        ["tmem", "demo", "--columns", "\uff13\uff12"],
        ["serve", "--port", "\u0668\u0660"],
        ["serve", "--host", ""],
        ["tma", GMEM, SMEM, "--arch", "9" * 5000],
        ["tma", GMEM, SMEM, "--arch", "sm_9\u00b2"],
    ],
)
def test_what_was_taken_or_went_wrong(folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert tried(capsys, words) is None
    with pytest.raises((SystemExit, AssertionError)):
        assert shell(capsys, *words)[0] == 0


class Endless:
    """Standard input that never ends."""

    def __init__(self) -> None:
        self.buffer = self

    def read(self, count: int = -1) -> bytes:
        assert 0 <= count <= 1 << 24, "all of it was asked for"
        return b"y\n" * (count // 2 + 1)


@pytest.mark.parametrize(
    "words",
    [
        ["print", "-"],
        ["draw", "-"],
        ["desc", "decode", "-"],
        ["desc", "encode", "--request", "-"],
        ["tmem", "descriptor", "-"],
        ["tma", "-", SMEM],
        ["copy", "-", "--tile=4"],
        ["desc", "encode", "--npy", "-", "--box", "4"],
    ],
    ids=" ".join,
)
def test_an_endless_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Endless())
    assert tried(capsys, words) is None
    monkeypatch.setattr("sys.stdin", Endless())
    assert shell(capsys, *words)[0] == 2
