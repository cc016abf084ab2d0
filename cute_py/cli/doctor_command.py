"""`cute-py doctor`: what is here, what works and what not, and why; and what is known to go wrong with this driver."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from cute_py.cli.argument_types import driver_version
from cute_py.cli.colours import ERROR, HINT, painted, tell, wants_colour
from cute_py.cli.findings import PACKAGES, findings

NAMES = {
    "cute_py": "cute_py",
    "python": "python",
    "platform": "platform",
    "ptxas": "ptxas",
    "kernel_module": "NVIDIA kernel module",
    "driver": "driver",
    "driver_version": "driver's CUDA version",
    "gpu": "GPU",
    "compute_capability": "compute capability",
    "architecture": "architecture",
    "multiprocessors": "multiprocessors",
    "shared_memory": "shared memory, bytes",
    "l2": "L2 cache, bytes",
    "codec": "codec",
}
"""Key of a finding -> its name in the report, in the report's order."""


def register(commands: Any) -> None:
    """Add the command's arguments."""
    p = commands.add_parser(
        "doctor",
        help="versions, driver, GPU, what works here, and known traps of the driver",
        description="Tries what this library does, and says why what does not work does not. Exit status 1 if the "
        "emulator's copy is not equal, or the encoder and the driver disagree.",
    )
    p.add_argument("--driver", type=driver_version, help="list the traps of this driver version, such as 12080")
    p.add_argument("--json", action="store_true", help="the result as JSON")
    p.set_defaults(run=run)


def shown(key: str, value: Any) -> str:
    """A finding as text.

    >>> shown("driver_version", 13000), shown("compute_capability", [9, 0]), shown("ptxas", None)
    ('13.0', '9.0', 'not found')
    """
    if value is None:
        return "not found"
    if key == "driver_version":
        return f"{value // 1000}.{value % 1000 // 10}"
    return ".".join(map(str, value)) if isinstance(value, list) else str(value)


def report(data: dict[str, Any]) -> list[str]:
    """The findings in words."""
    lines = [f"{name:<22} {shown(key, data[key])}" for key, name in NAMES.items() if key in data]
    lines += ["", "packages"]
    for row in PACKAGES:
        version = data["packages"][row.name]
        missing = f"not installed (pip install 'cute-py[{row.extra}]')" if row.extra else "not installed"
        lines.append(f"  {row.name:<18} {version or missing:<14}  {row.purpose}")
    lines += ["", "works here"]
    lines += [f"  {'yes' if row['works'] else 'no':<4} {row['name']:<24} {row['told']}" for row in data["works"]]
    asked = data["traps_for"]
    if asked is None:
        return [*lines, "", "known traps: no driver here; cute-py doctor --driver 13000 lists those of a version"]
    lines += ["", f"known traps of drivers for CUDA {shown('driver_version', asked)}"]
    for row in data["traps"]:
        lines += [f"  {row['name']}: {row['what']}", f"      remedy : {row['remedy']}"]
        lines.append(
            f"      source : {row['source']}{'' if row['measured_here'] else '; not measured with this version'}"
        )
    return lines


def run(options: argparse.Namespace) -> int:
    """Print the findings. Returns 1 if something does not work as it should."""
    data = findings(options.driver)
    if options.json:
        print(json.dumps(data, indent=2, default=str))
    else:
        for line in report(data):
            _say(line)
    return 0 if data["healthy"] else 1


def _say(line: str) -> None:
    """One line, with yes green and no red on a terminal."""
    for word, style in (("yes", HINT), ("no", ERROR)):
        if line.startswith(f"  {word} ") and wants_colour(sys.stdout):
            print(f"  {painted(word, style)}{line[2 + len(word) :]}")
            return
    tell(line)
