"""Statements to outcomes: compile many C++ statements at once, run them, and say what each printed or why it failed.

A statement that does not compile is found by the line that the compiler names, is taken out, and the rest is compiled
again, until all of the rest compiles. Each statement runs in a process of its own, so an assertion ends only itself.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent

MEMORY = "uint8_t((i*37+11)^(i>>3))"
"""What byte i of `BUF` holds: the memory that printed tensors read."""

HEAD = f"""#include "gbasis.hpp"
int main() {{ for (int i = 0; i < 4096; i++) BUF[i] = {MEMORY};
"""
FIRST_LINE = HEAD.count("\n") + 1

ENDED = re.compile("\1(\\d+)\2([^\5]*)\5")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a statement printed, its named fields, and the condition that ended it with the place in the headers."""

    text: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    compiler: str = ""
    """The compiler's first message."""
    assertion: str = ""
    """The condition of the assertion, or the signal, that ended it while it ran."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """g++ with the headers of one CUTLASS, and a folder with our own headers, precompiled."""

    folder: Path
    includes: tuple[Path, ...]

    def command(self, *arguments: str) -> list[str]:
        includes = [f"-I{path}" for path in (self.folder, *self.includes)]
        flags = ["-std=c++17", "-w", "-O0", "-fmax-errors=0", "-fdiagnostics-color=never"]
        return ["g++", *flags, *includes, *arguments]

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        # The quotes in g++'s messages depend on the locale.
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, env=environment)

    def run(self, name: str, statements: Sequence[str]) -> list[Outcome]:
        """The outcome of each statement; `name` names the program's files."""
        outcomes: dict[int, Outcome] = {}
        left = list(range(len(statements)))
        while left:
            source, binary = self.folder / f"{name}.cpp", self.folder / name
            lines = [f"row({i}, []{{ {statements[i]} }});\n" for i in left]
            source.write_text(HEAD + "".join(lines) + "}\n")
            done = self.call(str(source), "-o", str(binary))
            if done.returncode == 0:
                outcomes |= self.outputs(binary)
                binary.unlink()
                break
            failed = first_messages(done.stderr, str(source))
            failed = {line - FIRST_LINE: message for line, message in failed.items()}
            if not failed or not all(0 <= line < len(left) for line in failed):
                raise RuntimeError(f"g++ failed, and names no statement:\n{done.stderr[:4000]}")
            outcomes |= {left[line]: Outcome(compiler=message) for line, message in failed.items()}
            left = [i for line, i in enumerate(left) if line not in failed]
        return [outcomes[i] for i in range(len(statements))]

    @staticmethod
    def outputs(binary: Path) -> dict[int, Outcome]:
        out = subprocess.run([str(binary)], check=True, capture_output=True).stdout.decode("latin1")
        return {int(index): outcome(body) for index, body in ENDED.findall(out)}


def outcome(body: str) -> Outcome:
    """One statement's output, taken apart."""
    body, _, reason = body.partition("\6")
    text, *fields = body.split("\3")
    return Outcome(text, dict(part.split("\4", 1) for part in fields), assertion=in_headers(reason))


def in_headers(text: str) -> str:
    """Paths as seen from the include folder: `/a/include/cute/layout.hpp` -> `cute/layout.hpp`."""
    return re.sub(r"(?<= @ )\S*/(?=(?:cute|cutlass)/)", "", text)


def first_messages(stderr: str, source: str) -> dict[int, str]:
    """Line of the source -> the first error that g++ reports for it, and where in the headers."""
    found: dict[int, str] = {}
    line = None
    for text in stderr.splitlines():
        if named := re.match(re.escape(source) + r":(\d+):", text):
            line = int(named[1])
        error = re.match(r"(.+?):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", text)
        if error and line is not None:
            found.setdefault(line, in_headers(f"{error[3]} @ {error[1]}:{error[2]}"))
    return found


@contextmanager
def compiler(cutlass: Path, cuda: Sequence[Path]) -> Iterator[Compiler]:
    """A compiler for the headers of `cutlass`: a checkout, or its include folder."""
    root = cutlass / "include" if (cutlass / "include" / "cute").is_dir() else cutlass
    if not (root / "cute" / "layout.hpp").is_file():
        raise FileNotFoundError(f"{cutlass}: no CUTLASS checkout; cute/layout.hpp is not in it nor in its include/")
    with tempfile.TemporaryDirectory(prefix="record-") as folder:
        made = Compiler(Path(folder), (root.resolve(), *cuda))
        for header in HERE.glob("*.hpp"):
            (made.folder / header.name).write_text(header.read_text())
        done = made.call("-x", "c++-header", str(made.folder / "gbasis.hpp"), "-o", str(made.folder / "gbasis.hpp.gch"))
        if done.returncode:
            raise RuntimeError(f"the headers do not compile:\n{done.stderr[:4000]}")
        yield made
