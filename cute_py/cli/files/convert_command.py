"""`cute-py convert`: convert weights of a checkpoint from plain numbers to a block-scaled format, between such formats,
or back to plain numbers."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from cute_py.cli.arguments import json_option, report
from cute_py.errors import InvalidValueError, counted, given
from cute_py.terminal import progress_bar

_DESCRIPTION = """Converts the weights of a .safetensors file, an index or a folder.
The new files keep their names and go into another folder:

  cute-py convert model.safetensors --to nvfp4 --scales 32_4_4 --out fp4
  cute-py convert FOLDER --to mxfp8 --as compressed-tensors --out fp8
  cute-py convert fp4 --to bf16 --out plain
  cute-py convert fp4 --to nvfp4 --as modelopt --out for_modelopt

Each file is written atomically. After an interruption the same command
continues where the last one stopped. The folder also gets the index, and
checksums.json with the SHA-256 of each tensor's bytes; `cute-py explain FOLDER`
reads both.

Converts tensors of two or three dimensions whose name matches --tensors, except
those that match --keep. A weight that is already in the format keeps its
elements: only the order of its scales, and its names, change."""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    from cute_py.checkpoints.convert import DEVICES, FLOATS, KEPT, WEIGHTS
    from cute_py.formats.stored_weights import NAMES

    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.description = _DESCRIPTION
    command.add_argument("source", metavar="SOURCE", help="a .safetensors file, an index, or a folder")
    command.add_argument(
        "--to",
        required=True,
        metavar="FORMAT",
        help='mxfp8, mxfp6, mxfp4, nvfp4, fp8, or with arguments: "fp8((128, 128))"; '
        f"or plain numbers: bf16, f16, f32 ({', '.join(FLOATS)})",
    )
    command.add_argument("--out", required=True, metavar="DIR", help="folder for the new files")
    command.add_argument(
        "--scales",
        metavar="ORDER",
        help="order of the scales, such as 32_4_4, linear or 8x4; default: the order that the convention stores, "
        "32_4_4 in cute",
    )
    command.add_argument(
        "--as", dest="convention", choices=NAMES, default="cute", help="convention of names and types; default: cute"
    )
    command.add_argument(
        "--tensors",
        action="append",
        metavar="PATTERN",
        help=f"names to convert; default: {' '.join(WEIGHTS)}, and every quantised weight",
    )
    command.add_argument(
        "--keep", action="append", metavar="PATTERN", help=f"names to keep unchanged; default: {' '.join(KEPT)}"
    )
    command.add_argument(
        "--requantize", action="store_true", help="dequantise weights of another format, then quantise them again"
    )
    command.add_argument(
        "--device", choices=DEVICES, default="host", help="device that scales and rounds blocks; default: host"
    )
    command.add_argument("--overwrite", "--force", action="store_true", help="replace existing files in DIR")
    json_option(command, _convert)


def _format(options: argparse.Namespace) -> Any:
    """The format, or the plain element type, that --to and --scales name. A format gets the order of scales that the
    convention stores."""
    from cute_py.dtypes import as_dtype
    from cute_py.formats.format import parse_format

    try:
        plain = as_dtype(options.to)
    except InvalidValueError:
        plain = None
    if plain is not None:
        if options.scales is not None:
            raise InvalidValueError(
                f"--scales {given(options.scales)} can't be used with {plain.name}, which has no scales"
            )
        return plain
    form = parse_format(options.to)
    if options.scales is not None:
        return form.with_(scales=options.scales)
    stores_linear = options.convention in ("compressed-tensors", "modelopt")
    return form.with_(scales="linear") if stores_linear else form


def _convert(options: argparse.Namespace) -> int:
    from cute_py.checkpoints import convert, open_checkpoint
    from cute_py.checkpoints.convert import KEPT

    form = _format(options)
    with progress_bar(open_checkpoint(options.source).nbytes, "converting") as progress:
        done = convert(
            options.source,
            options.out,
            form,
            convention=options.convention,
            patterns=options.tensors,
            keep=KEPT if options.keep is None else tuple(options.keep),
            requantize=options.requantize,
            device=options.device,
            force=options.overwrite,
            progress=progress,
        )

    def data() -> dict[str, Any]:
        return {
            "to": str(form),
            "convention": options.convention,
            "files": [str(path) for path in done.files],
            "resumed": done.resumed,
            "scope": done.scope.to_json(),
            "tensors": [
                {
                    "name": one.name,
                    "work": one.work,
                    "why": one.why,
                    "file": str(one.file),
                    "checksums": dict(one.checksums),
                    "nan": one.nan,
                }
                for one in done.tensors
            ],
        }

    kinds = Counter(one.work for one in done.tensors)
    words = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    again = f"; {counted(done.resumed, 'tensor')} from an earlier run" if done.resumed else ""
    report(options, data, lambda: f"{done}\n{words}, in {counted(len(done.files), 'file')}{again}\n{done.scope}")
    return 0
