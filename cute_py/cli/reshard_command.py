"""`cute-py reshard`: shards in .safetensors files of one mesh into those of another."""

from __future__ import annotations

import argparse

from cute_py.cli.arguments import json_option, report
from cute_py.errors import counted
from cute_py.terminal import progress_bar

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.description = """Reads the .safetensors files of one mesh and writes those of another, into folders
that exist. The plan is TOML:

  [source]
  mesh = [8]
  files = "model-{device}-of-8.safetensors"

  [destination]
  mesh = [4]
  files = "out/model-{device}-of-4.safetensors"

  [placements]                    # the first pattern that matches a name
  "*.qkv.weight" = "SectionedShard(0, (4096, 1024, 1024))"
  "*.o_proj.weight" = "row-parallel"
  "*.weight" = "column-parallel"
  "*" = "replicate"
"""
    command.add_argument("plan", metavar="PLAN.toml", help="meshes, files and placements")
    command.add_argument(
        "--memory", type=_memory, default=1 << 30, metavar="BYTES", help="of files, mapped at once: 1G; or K, M"
    )
    json_option(command, _reshard)


def _memory(text: str) -> int:
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(number) * _UNITS[unit]


def _reshard(options: argparse.Namespace) -> int:
    from cute_py.mesh.files import read_plan, reshard, stored_tensors

    plan = read_plan(options.plan)
    size = sum(tensor.nbytes for path in plan.source.files for tensor in stored_tensors(path).values())
    with progress_bar(size, "resharding") as progress:
        done = reshard(plan, options.memory, progress)
    report(
        options,
        lambda: {
            "files": [str(path) for path in plan.destination.files],
            "tensors": [
                {
                    "name": one.name,
                    "shape": one.shape,
                    "dtype": one.dtype.name,
                    "checksum": f"{one.checksum:016x}",
                    "bytes_moved": one.bytes_moved,
                }
                for one in done
            ],
        },
        lambda: "\n".join(
            [*map(str, done), f"{counted(len(done), 'tensor')} in {counted(len(plan.destination.files), 'file')}"]
        ),
    )
    return 0
