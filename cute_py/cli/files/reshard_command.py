"""`cute-py reshard`: convert the shards of one mesh in .safetensors files to the shards of another."""

from __future__ import annotations

import argparse
from typing import Any

from cute_py.cli.arguments import json_option, report
from cute_py.errors import counted
from cute_py.terminal import progress_bar

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}

_DESCRIPTION = """Converts the .safetensors shards of one mesh into the shards of another.
The destination folders must exist. The plan is TOML; {device} counts from 0,
and {device:05d} has five digits:

  [source]
  mesh = [8]
  files = "model-{device}-of-8.safetensors"

  [destination]
  mesh = [4]
  files = "out/model-{device}-of-4.safetensors"

  [placements]                    # the first pattern that matches a name
  "*.qkv_proj.weight" = "fused-qkv(heads=32, kv_heads=8, head_dim=128)"
  "*.gate_up_proj.weight" = "gate-up"
  "*.o_proj.weight" = "row-parallel"
  "*.down_proj.weight" = "row-parallel"
  "*.[qkv]_proj.weight" = "column-parallel"
  "*.gate_proj.weight" = "column-parallel"
  "*.up_proj.weight" = "column-parallel"
  "*embed_tokens.weight" = "embedding"
  "lm_head.weight" = "column-parallel"
  "*norm.weight" = "replicate"

The command refuses a tensor that no pattern matches. It checks the placements
against the names, the shapes and the data, and refuses parts that are
byte-identical, copies that differ, and, without --overwrite, destination files
that exist. If a name or a shape contradicts a placement, it warns: it writes
the files, and the exit status is 1, or 0 with --force. The answer ends with
what was judged and what was not. A name without a known role is judged only by
its data."""

_EPILOG = """placements:
{table}
  or a placement as in Python: {kinds}
  a list has one placement for each mode of the mesh
"""


def register(command: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    from cute_py.mesh.weight_placements import PYTHON_PLACEMENTS, listed_placements

    command.formatter_class = argparse.RawDescriptionHelpFormatter
    command.description = _DESCRIPTION
    command.epilog = _EPILOG.format(table=listed_placements(), kinds=", ".join(PYTHON_PLACEMENTS))
    command.add_argument("plan", metavar="PLAN.toml", help="meshes, files and placements")
    command.add_argument(
        "--memory",
        type=_memory,
        default=1 << 30,
        metavar="BYTES",
        help="maximum number of bytes of files to map at a time, such as 1G, 512M or 64K",
    )
    command.add_argument("--overwrite", action="store_true", help="replace existing files")
    command.add_argument(
        "--force",
        action="store_true",
        help="accept byte-identical shards as different parts, and exit with 0 despite warnings",
    )
    command.add_argument("--strict", action="store_true", help="exit with 1 if a placement was not judged")
    json_option(command, _reshard)


def _memory(text: str) -> int:
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].upper() in ("K", "M", "G") else (text, "")
    if not number.isascii() or not number.isdigit() or len(number) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of bytes")
    return int(number) * _UNITS[unit]


def _reshard(options: argparse.Namespace) -> int:
    from cute_py.mesh.files import ReshardReport, read_plan, reshard, stored_tensors

    plan = read_plan(options.plan)
    size = sum(tensor.nbytes for path in plan.source.files for tensor in stored_tensors(path).values())
    with progress_bar(size, "resharding") as progress:
        done = reshard(plan, options.memory, progress, options.force, options.overwrite)

    def data(done: ReshardReport = done) -> dict[str, Any]:
        return {
            "files": [str(path) for path in plan.destination.files],
            "tensors": [
                {
                    "name": one.name,
                    "shape": one.shape,
                    "dtype": one.dtype.name,
                    "checksum": f"{one.checksum:016x}",
                    "bytes_moved": one.bytes_moved,
                    "placements": {"source": one.source, "destination": one.destination},
                    "scope": one.scope.to_json(),
                }
                for one in done.tensors
            ],
            "warnings": [
                {"rule": one.rule, "tensor": one.argument, "message": one.message, "source": one.source}
                | {"fixes": list(one.fixes)}
                for one in done.warnings
            ],
            "scope": done.scope.to_json(),
        }

    count = f"{counted(len(done.tensors), 'tensor')} in {counted(len(plan.destination.files), 'file')}"
    report(options, data, lambda: f"{done}\n{count}")
    return int((bool(done.warnings) and not options.force) or (options.strict and not done.scope.complete))
