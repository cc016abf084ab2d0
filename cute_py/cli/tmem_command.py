"""`cute-py tmem`: run a demonstration of copies from shared to tensor memory, list the forms of the copy, and decode
matrix descriptors."""

from __future__ import annotations

import argparse

from cute_py.atom.smem_descriptor import DescriptorKind, SmemDescriptor
from cute_py.cli.arguments import add_action, integer, json_option, report, text_of
from cute_py.errors import InvalidValueError
from cute_py.tmem.cp_forms import FORMS
from cute_py.tmem.demonstration import demonstrate

VIEWS = ("all", "plan", "trace", "ptx", "cuda", "kernel", "picture")


def register(p: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    p.description = "Plans tcgen05.cp, prints its PTX and CUDA, and emulates it. Nothing runs on a GPU."
    actions = p.add_subparsers(dest="action", metavar="ACTION", required=True)

    d = add_action(actions, "demo", "copy a 32 x 16 tile of bytes to the lanes of all four warps, and back")
    d.add_argument("--through", choices=["plain", "tma"], default="plain", help="how the tile reaches shared memory")
    d.add_argument(
        "--columns", type=integer, default=32, help="number of allocated columns: a power of 2 from 32 to 512"
    )
    d.add_argument("--show", choices=VIEWS, default="all", help="view of the copy")

    f = add_action(actions, "forms", "list the shapes and multicasts of tcgen05.cp")

    m = add_action(actions, "descriptor", "show the fields of a 64-bit matrix descriptor")
    m.add_argument("value", help="the descriptor, such as 0x4000404000010000, or - for standard input")
    m.add_argument(
        "--kind", choices=["tcgen05", "wgmma"], default="tcgen05", help="the instructions that read the descriptor"
    )
    for action, runs in ((d, run_demo), (f, run_forms), (m, run_descriptor)):
        json_option(action, runs)


def value(text: str) -> int:
    """Parse an integer; for `-`, the integer on standard input.

    Raises:
        InvalidValueError: the string is not an integer.
    """
    try:
        return integer(text_of(text))
    except argparse.ArgumentTypeError as error:
        raise InvalidValueError(f"a matrix descriptor: {error}") from None


def run_demo(options: argparse.Namespace) -> int:
    """Run the demonstration program in the emulator."""
    done = demonstrate(n_cols=options.columns, through=options.through)
    views = {
        "plan": done.copy.explain(),
        "trace": done.tirx,
        "ptx": done.ptx,
        "cuda": done.cuda,
        "kernel": done.kernel,
        "picture": done.picture,
    }
    data = {**views, "readback": done.readback.tolist()}
    report(options, lambda: data, lambda: views.get(options.show) or done.explain(), print)  # "all" of them
    return 0


def run_forms(options: argparse.Namespace) -> int:
    """List the forms of the copy."""
    rows = [{"form": form.name, "rows": form.rows, "bits": form.bits, "columns": form.columns} for form in FORMS]
    lines = [f"{'form':<24}{'rows':>5}{'bits a row':>12}{'columns':>9}"]
    lines += [f"{row['form']:<24}{row['rows']:>5}{row['bits']:>12}{row['columns']:>9}" for row in rows]
    report(options, lambda: rows, lambda: "\n".join(lines), print)
    return 0


def run_descriptor(options: argparse.Namespace) -> int:
    """Decode a matrix descriptor. Return 1 if it breaks a rule, else 0."""
    descriptor = SmemDescriptor.decode(value(options.value), DescriptorKind(options.kind))
    broken = descriptor.violations() + descriptor.restrictions()
    text = descriptor.explain()
    report(options, lambda: {"text": text, "violations": broken}, lambda: "\n".join([text, *broken]))
    return 1 if broken else 0
