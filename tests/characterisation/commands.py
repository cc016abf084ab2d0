"""What each command prints with `--json`, and its `--help`."""

from __future__ import annotations

import os
import tempfile

from tests.calls import surface
from tests.calls.described import normalised
from tests.calls.objects import command, saved, saved_kernel, saved_ptx, saved_shards, saved_weights

GMEM = "(1024,512):(512,_1)"
SMEM = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
SIZES = ("--dtype", "float16", "--dims", "512,1024", "--strides", "1024", "--box", "64,128")
MAP = "0010000000000000" + "1063000040000000" + "00" * 16 + "ff010000ff030000" + "00" * 16 + "0000000000003f7f"

COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "demo": [()],
    "print": [("(4,8):(8,1)",), ("ArithTuple(0,0) o (4,5):(_1@0,_1@1)",), ("(4,8):(8,1)", "--latex")],
    "explain": [("128x64",), ("error 716: misaligned address",), ("zipped_divide",)],
    "copy": [("copied.npy", "--tile", "32x32")],
    "tma": [
        (GMEM, SMEM, "--show", view) for view in ("explain", "box", "partition", "check", "lower", "ptx", "cu", "c")
    ],
    "desc": [("encode", *SIZES), *((action, MAP) for action in ("decode", "check", "slots")), ("diff", MAP, MAP)],
    "tmem": [("demo",), ("forms",), ("descriptor", "0x0000400800100000")],
    "atom": [
        ("list", "--count"),
        ("find", "--a", "bfloat16", "--arch", "sm80"),
        ("show", "SM80_16x8x16_F32F16F16F32_TN"),
        ("show", "SM75_U32x4_LDSM_N", "--dtype", "float16"),
    ],
    "draw": [("(4,8):(8,1)",), (GMEM, "--smem", SMEM), ("Sw<3,4,3>",)],
    "check": [("kernel.ptx",)],
    "convert": [("w.safetensors", "--to", "nvfp4", "--out", "made"), ("made", "--to", "mxfp8", "--out", "again")],
    "reshard": [("plan.toml",)],
    "skill": [("--out", "skills")],
    "run": [("twice.ptx", "--arg", "null", "--arg", "0")],
    "completion": [(shell,) for shell in ("bash", "zsh", "fish")],
}
"""Command -> arguments. The other commands do not end, or say what is installed here."""

NOT_PRINTED = {"cute-py serve", "cute-py doctor", "cute-py watch"}


def _text(outcome: tuple[object, str, str]) -> str:
    status, out, err = outcome
    return f"exit status {status}\n{out}{err}"


def printed() -> dict[str, str]:
    """Command line -> exit status, standard output and standard error, in a folder with the files that they name."""
    names = {f"cute-py {name}" for name in COMMANDS} | NOT_PRINTED
    if names != set(surface.commands()):
        raise ValueError("a command without a line in COMMANDS")
    found = {}
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            saved((64, 64), "float16", "copied.npy")
            saved_ptx()
            saved_kernel()
            saved_shards()
            saved_weights()
            for name, lines in COMMANDS.items():
                for line in lines:
                    said = _text(command(name, *line, "--json"))
                    found[" ".join(["cute-py", name, *line, "--json"])] = normalised(said)
        finally:
            os.chdir(before)
    return found
