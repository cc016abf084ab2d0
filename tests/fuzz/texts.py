"""python -m tests.fuzz.texts: mutated texts of PTX, C++ and Triton, given to the calls that read what users paste.

A finding is an exception outside `CuteError`, or an answer that takes more than 2 s of CPU time.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import json
import random
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cute_py as cute
from cute_py.errors import CuteError
from cute_py.ptx.order import check_program
from tests.oracle.records import rows

SECONDS = 2.0
"""CPU time of one answer."""
LONGEST = 65_536
"""Characters of a text; `explain` and `parse` refuse longer ones."""
TOKEN = re.compile(r"\s+|[\w.%$]+|.", re.DOTALL)
WORDS = (
    "_128", "_1@0", "1@", "((", "))", ",", ":", "o", "Sw<3,4,3>", "-1", "0x", "1e999", "[", "]", "{", "}", "<", ">",
    "::", "%r1", "mbarrier.init.shared::cta.b64", "@%p1", ";", '"', "'", "/*", "//", "\\", "\n", "\x00", "\u2028",
    "\U0001f600", "9" * 40, "cute::C<", "Layout<", "#ttg.blocked<{", "sizePerThread", "=", "->", "lane=1",
    "std::integral_constant<int, ", "CUtensorMap", "#", "error:", "None", "float8_e8m0fnu", "|", "^", "*", "+",
)  # fmt: skip


@functools.cache
def sources() -> dict[str, tuple[str, ...]]:
    """Texts of each kind: kernels of compilers, C++ and what C++ programs print, and Triton's layouts."""
    return {
        "ptx": tuple(row["ptx"] for name in ("triton_kernels", "ring_ptx") for row in rows(name)),
        "cpp": tuple(
            [row["text"] for row in rows("pastes")]
            + [row["text"] for name in ("print_cpp", "dsl_prints") for row in rows(name)]
        ),
        "triton": tuple(row[key] for row in rows("triton_layouts") for key in ("encoding", "text")),
    }


def mutated(dice: random.Random, kind: str) -> str:
    """One of the texts, or a window of it, with up to twelve tokens changed, or a part repeated."""
    text = dice.choice(sources()[kind])
    if len(text) > 2_000 and dice.random() < 0.7:
        begin = dice.randrange(len(text) - 1_000)
        text = text[begin : begin + dice.choice((200, 2_000, 20_000))]
    parts = TOKEN.findall(text) or [""]
    for _ in range(dice.choice((1, 1, 2, 4, 12))):
        i, change = dice.randrange(len(parts)), dice.randrange(6)
        if change == 0:
            parts[i] = dice.choice(WORDS)
        elif change == 1:
            parts.insert(i, dice.choice(WORDS))
        elif change == 2 and len(parts) > 1:
            del parts[i]
        elif change == 3:
            j = dice.randrange(len(parts))
            parts[i], parts[j] = parts[j], parts[i]
        elif change == 4:
            parts[i] = parts[i][: len(parts[i]) // 2]
        else:
            j = min(len(parts), i + dice.randrange(1, 9))
            parts[i:j] = parts[i:j] * dice.choice((2, 50, 1_000))
    return "".join(parts)[: LONGEST + 1]


def _explained(text: str) -> None:
    str(cute.explain(text))


def _parsed(text: str) -> None:
    repr(cute.parse(text))


def _checked(text: str) -> None:
    str(check_program(text))


DOORS: dict[str, tuple[Callable[[str], object], ...]] = {
    "ptx": (_explained, _checked),
    "cpp": (_explained, _parsed),
    "triton": (_explained, _parsed, cute.parse_triton, cute.parse_triton_encoding),
}
"""The calls that read a text of each kind."""


def finding(door: Callable[[str], object], text: str) -> dict[str, Any] | None:
    """What is wrong with the answer to a text, if anything is."""
    begin, said = time.process_time(), ""
    try:
        door(text)
    except CuteError:
        pass
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        place = traceback.extract_tb(error.__traceback__)[-1]
        said += f" ({Path(place.filename).name}:{place.lineno})"
    seconds = time.process_time() - begin
    if not said and seconds > SECONDS:
        said = f"{seconds:.1f} s"
    return {"door": door.__name__.strip("_"), "said": said, "text": text} if said else None


def findings(count: int, seed: object) -> tuple[Counter[str], list[dict[str, Any]]]:
    """How many texts of each kind were read, and the findings."""
    dice, read, found = random.Random(f"{seed}/texts"), Counter[str](), []
    for i in range(count):
        kind = list(DOORS)[i % len(DOORS)]
        text = mutated(dice, kind)
        read[kind] += 1
        found += [one for door in DOORS[kind] if (one := finding(door, text))]
    return read, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.texts", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", help="a file for the findings as JSON")
    options = parser.parse_args()
    shares = [len(range(i, options.count, options.jobs)) for i in range(options.jobs)]
    read, found = Counter[str](), []
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        seeds = [f"{options.seed}/{i}" for i in range(options.jobs)]
        for counted, some in pool.map(findings, shares, seeds):
            read += counted
            found += some
    print(f"{dict(read)}: {len(found)} findings")
    for one in sorted(found, key=lambda one: len(one["text"]))[:20]:
        print(one["door"], one["said"], repr(one["text"][:300]))
    if options.json:
        Path(options.json).write_text(json.dumps(found), encoding="utf-8")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
