"""The page's engine gives the library's answer: recorded copies, random copies, and texts with mistakes."""

from __future__ import annotations

import contextlib
import json
import math
import random
from collections import Counter
from typing import Any

import pytest

import cute_py as cute
from cute_py.draw.explorer import EXAMPLES
from cute_py.draw.explorer_answer import answer_query
from cute_py.dtypes import as_dtype
from cute_py.errors import CuteError
from tests.draw.explorer_node import ask, covered, differences
from tests.oracle.records import rows

SEED = 20_251_120
RANDOM = 500
BROKEN = 150


def recorded() -> list[dict[str, str]]:
    """The tiled copies of the recordings of CuTe C++, as forms."""
    found = []
    for row in rows("gbasis_cpp"):
        if row["kind"] == "tiled" and row["cta_tiler"]:
            texts = {"gmem": row["gmem"]["str"], "smem": row["smem"]["str"], "tile": row["cta_tiler"], "op": row["op"]}
            address = str(row.get("gmem_address", 4096))
            found.append({**texts, **_types(row, "internal_type"), "address": address, **_count(row["num_multicast"])})
    for row in rows("gbasis_cpp_random"):
        texts = {"gmem": row["gmem"], "smem": row["smem"], "tile": row["tiler"], "op": row["op"], "arch": row["arch"]}
        found.append({**texts, **_types(row, "internal"), **_count(row["multicast"])})
    return found


def _types(row: dict[str, Any], internal: str) -> dict[str, str]:
    return {"dtype": row["dtype"], "internal": "" if row[internal] == row["dtype"] else row[internal]}


def _count(multicast: Any) -> dict[str, str]:
    return {"multicast": str(multicast).lstrip("_")}


class Forms:
    """Random forms: mostly copies that one could mean, with a mistake here and there."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def _chance(self, p: float) -> bool:
        return self.random.random() < p

    def _number(self, n: int, static: float) -> str:
        return f"_{n}" if self._chance(static) else str(n)

    def _layout(self, sizes: list[int], order: list[int], static: float, pads: tuple[int, ...]) -> str:
        """A layout of `sizes` whose modes follow each other in memory in `order`, rows padded now and then."""
        strides, step = [0] * len(sizes), 1
        for i in order:
            strides[i] = step
            step *= sizes[i]
            if pads and self._chance(0.3):
                step = -(-step // pads[0]) * pads[0] + self.random.choice(pads)
        if self._chance(0.04):
            strides[self.random.randrange(len(sizes))] = self.random.choice((0, 2, 24, 2**37, 2**40))
        shape, stride = [], []
        for n, d in zip(sizes, strides, strict=True):
            if n % 4 == 0 and n > 8 and self._chance(0.15):  # a mode in two parts
                shape.append(f"({self._number(n // 4, static)},{self._number(4, static)})")
                stride.append(f"({self._number(d, static)},{self._number(d * (n // 4), static)})")
            else:
                shape.append(self._number(n, static))
                stride.append(self._number(d, 1.0 if d == 1 else static))
        if len(sizes) == 1 and self._chance(0.3):
            return f"{shape[0]}:{stride[0]}"
        return f"({','.join(shape)}):({','.join(stride)})"

    def form(self) -> dict[str, str]:
        r = self.random
        kinds = ("float16", "bfloat16", "half_t", "float32", "uint8", "int8", "e4m3", "float64", "tf32")
        kind = r.choice(kinds) if self._chance(0.95) else r.choice(("int16", "complex64"))
        bits = as_dtype(kind).bits
        rank = r.choice((1, 2, 2, 2, 2, 3, 3, 4, 5, 6))
        sizes = [r.choice((1, 3, 8, 16, 40, 64, 100, 128, 256, 1000, 1024, 2**20)) for _ in range(rank)]
        order = r.sample(range(rank), rank)
        if self._chance(0.8):
            sizes[order[0]] = r.choice((64, 128, 256, 1024))
        grain = max(128 // bits, 1)
        gmem = self._layout(sizes, order, r.choice((0.0, 0.2, 1.0)), r.choice(((grain, 0, 0, 4 * grain), (1, 0, 3))))
        tiled = rank if self._chance(0.6) else r.randint(1, rank)
        tile = [r.choice((1, 2, 8, 16, 32, 64, 128, 256, 512)) for _ in range(tiled)]
        while math.prod(tile) > 2**15:
            tile[tile.index(max(tile))] //= 4
        kept = [i for i in order if i < tiled] if self._chance(0.75) else r.sample(range(tiled), tiled)
        smem = self._layout(tile, kept, 0.995, (1, 8, 16) if self._chance(0.1) else ())
        if self._chance(0.5):
            b, m = r.choice((1, 2, 3, 3, 0)), 4 if self._chance(0.92) else r.choice((3, 5, 6))
            flag = f"smem_ptr[{bits}b](unset)" if self._chance(0.85) else r.choice(("_0", "0"))
            smem = f"Sw<{b},{m},{3 if self._chance(0.95) else 4}> o {flag} o {smem}"
        if tiled == 2 and self._chance(0.4):
            with contextlib.suppress(CuteError):
                major = "K" if order[0] == 1 else "MN"
                smem = str(cute.tma.make_smem_layout(major, r.choice(("128B", "64B", "32B")), kind, tuple(tile)))
        given = "" if self._chance(0.5) and tiled == rank else f"({','.join(self._number(n, 0.5) for n in tile)})"
        ops = ("SM90_TMA_LOAD", "SM90_TMA_LOAD_MULTICAST", "SM90_TMA_STORE", "SM90_TMA_REDUCE_ADD", "SM90_TMA_PREFETCH")
        return {
            "gmem": gmem,
            "smem": smem,
            "tile": given,
            "dtype": kind,
            "internal": "" if self._chance(0.8) else r.choice(("uint8", "uint16", "uint32", "uint64")),
            "address": "0x1000" if self._chance(0.8) else r.choice(("0", "0x10008", str(2**57), str(2**40), "-16")),
            "op": r.choice(ops),
            "multicast": "1" if self._chance(0.7) else r.choice(("2", "4", "3", "16", "17")),
            "arch": "sm_90a" if self._chance(0.8) else r.choice(("sm_90", "sm_100a", "sm_120")),
            "split": "" if self._chance(0.7) else "1",
            "at": r.choice(("0", "1", "7", "100000")),
        }

    def broken(self) -> dict[str, str]:
        """A form with one to three characters of a text changed."""
        r = self.random
        form = self.form()
        for _ in range(r.choice((1, 2, 3))):
            name = r.choice(("gmem", "smem", "tile", "address", "multicast", "dtype", "op", "arch"))
            text = form[name]
            at = r.randrange(len(text) + 1)
            added = r.choice(("", "(", ")", ",", ":", "_", "@", "0", "-", " ", "o", "x", "1", "()", "@1", " o "))
            form[name] = text[:at] + added + text[at + r.choice((0, 1)) :]
        return form


def compared(forms: list[dict[str, str]], kinds: Counter[str] | None = None) -> tuple[int, list[str], list[str]]:
    """(forms answered alike, differences, what the engine said that it does not cover); what came out is counted."""
    same, wrong, left = 0, [], []
    for form, got in zip(forms, ask(forms), strict=True):
        if kinds is not None:
            kinds["accepted"] += not got["problems"]
            kinds["followed to bytes"] += bool(got["samples"])
            kinds["with fixes"] += bool(got["fixes"])
            kinds.update({p["rule"] for p in got["problems"]})
        if got["not_covered"]:
            left += got["not_covered"]
            continue
        found = differences(json.loads(json.dumps(answer_query(form))), got)
        same += not found
        wrong += [f"{form}: {what}" for what in found[:3]]
    return same, wrong, left


@pytest.mark.slow
def test_recorded_copies() -> None:
    forms = recorded()
    own = [form for form in forms if covered(form)]
    same, wrong, left = compared(own)
    assert not wrong, "\n".join(wrong[:20])
    assert not left
    assert same == len(own) > 400
    others = [form for form in forms if not covered(form)]
    assert all(got["not_covered"] and got["plan"] is None for got in ask(others))


@pytest.mark.slow
def test_random_copies() -> None:
    forms, kinds = Forms(SEED), Counter[str]()
    same, wrong, left = compared([forms.form() for _ in range(RANDOM)], kinds)
    assert not wrong, "\n".join(wrong[:20])
    assert not left
    assert same == RANDOM
    # the sweep is worth something only if it comes by most outcomes, often
    assert min(kinds["accepted"], kinds["followed to bytes"]) > RANDOM // 6
    rules = {"stride_alignment", "inner_bytes", "inner_span", "box", "cute", "work", "collapsed", "address_alignment"}
    assert {"with fixes", "GBasisError", "StaticAssertError", "InvalidValueError", *rules} <= set(kinds)


SIX = "(64,4,4,2,4,2):(_1,64,256,1024,{},{})"
EDGES: list[dict[str, str]] = [
    # modes 4 and 5 share a TMA mode: a run of steps, and none; whole and cut
    *(
        {"gmem": SIX.format(*strides), "smem": "(_16,_2,_2,_2,_4,_2):(_1,_16,_32,_64,_128,_512)", "split": split}
        for strides in ((2048, 8192), (2048, 16384), (8192, 2048))
        for split in ("", "1")
    ),
    # the same with more than 256 of them
    *(
        {
            "gmem": f"(64,4,4,2,32,16):(_1,64,256,1024,2048,{stride})",
            "smem": "(_16,_2,_2,_2,_32,_16):(_1,_16,_32,_64,_128,_4096)",
            "dtype": "uint8",
            "split": split,
        }
        for stride in (65536, 131072)
        for split in ("", "1")
    ),
    # merged modes beyond 256, cut at the largest divisor that is left to them
    {"gmem": "((_16,_24),64):((_1,_16),384)", "smem": "((_16,_24),_8):((_1,_16),_384)", "dtype": "uint8", "split": "1"},
    {"gmem": "((_16,_16,_3),64):((_1,_16,_256),768)", "smem": "(_768,_4):(_1,_768)", "dtype": "uint8", "split": "1"},
    {"gmem": "(4096,64):(_1,4096)", "smem": "(_384,_4):(_1,_384)", "dtype": "uint8", "split": "1"},
    # a tile that is larger than shared memory, and one that only just fits; a coordinate beyond 32 bits
    *(
        {"gmem": "(4096,4096):(4096,_1)", "smem": f"(_{n},_128):(_128,_1)", "dtype": "uint8", "split": split}
        for n in (1815, 1816, 2048)
        for split in ("", "1")
    ),
    *(  # and rows that are shorter than their swizzle, which take its span
        {"gmem": gmem, "smem": f"Sw<{bits},4,3> o smem_ptr[16b](unset) o {tile}", "split": split}
        for gmem, tile, split in (
            ("(4096,64):(64,_1)", "(_3584,_32):(_32,_1)", "1"),
            ("(64,1024,64):(65536,64,_1)", "(_8,_256,_32):(_8192,_32,_1)", ""),
        )
        for bits in (2, 3)
    ),
    {"gmem": f"({2**32},64):(64,_1)", "smem": "(_2,_64):(_64,_1)", "at": str(2**31 - 1)},
    # a box of 256 and one above, of 255 multiples of 16 bytes; the last stride and size that are legal
    *(
        {"gmem": "(4096,4096):(4096,_1)", "smem": f"(_{n},_16):(_16,_1)", "dtype": "uint8"}
        for n in (255, 256, 257, 512)
    ),
    {"gmem": f"(2,64):({2**40 - 16},_1)", "smem": "(_2,_64):(_64,_1)", "dtype": "uint8"},
    {"gmem": f"(2,64):({2**40},_1)", "smem": "(_2,_64):(_64,_1)", "dtype": "uint8"},
    {"gmem": f"({2**32},64):(64,_1)", "smem": "(_2,_64):(_64,_1)", "dtype": "uint8"},
    {"gmem": f"({2**32 + 1},64):(64,_1)", "smem": "(_2,_64):(_64,_1)", "dtype": "uint8"},
    {"gmem": "(64,64):(64,_1)", "smem": "(_64,_64):(_64,_1)", "address": str(2**57 - 16)},
    # static strides of 0, static sizes of 1, tiles along them
    {"gmem": "(64,_8,64):(64,_0,_1)", "smem": "(_8,_4,_64):(_256,_64,_1)"},
    {"gmem": "(64,_8,64):(64,_0,_1)", "smem": "(_8,_1,_64):(_64,_64,_1)"},
    {"gmem": "(64,_1,64):(64,_64,_1)", "smem": "(_8,_4,_64):(_256,_64,_1)"},
    {"gmem": "(_1,_1):(_1,_1)", "smem": "(_1,_8):(_8,_1)"},
    {"gmem": "(64,64):(_0,_1)", "smem": "(_8,_64):(_64,_1)"},
    {"gmem": "(64,64):(0,_1)", "smem": "(_8,_64):(_64,_1)"},
    # equal strides in shared memory, negative ones
    {"gmem": "(64,64):(64,_1)", "smem": "((_2,_4),_64):((_0,_64),_1)"},
    {"gmem": "(64,64):(64,_1)", "smem": "((_4,_2),_64):((_64,_64),_1)"},
    {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_-64,_1)"},
    {"gmem": "(64,64):(-64,_1)", "smem": "(_8,_64):(_64,_1)"},
    # multicast counts that cut one mode, spill over, do not divide, leave nothing
    *(
        {"gmem": "(64,64,64):(4096,64,_1)", "smem": smem, "op": "SM90_TMA_LOAD_MULTICAST", "multicast": str(count)}
        for smem in ("(_4,_6,_64):(_384,_64,_1)", "(_3,_2,_64):(_128,_64,_1)", "(_1,_1,_8):(_8,_8,_1)")
        for count in (2, 3, 4, 6, 12, 16)
    ),
    # counted in other types, up and down
    *(
        {"gmem": "(64,128):(128,_1)", "smem": "(_8,_64):(_64,_1)", "dtype": kind, "internal": internal, "at": "3"}
        for kind in ("uint8", "float32", "complex64")
        for internal in ("uint8", "uint16", "uint64")
    ),
    {"gmem": "(64,128):(128,1)", "smem": "(_8,_64):(_64,_1)", "internal": "uint32"},
    {"gmem": "(64,128):(128,1)", "smem": "(_8,_64):(_64,_1)", "internal": "uint8"},
    # what the driver accepts and may surprise
    {"gmem": "(64,9):(8,_1)", "smem": "(_4,_16):(_16,_1)", "address": "0"},
    {"gmem": f"({2**31 + 1},64):(64,_1)", "smem": "Sw<3,4,3> o smem_ptr[16b](unset) o (_16,_32):(_32,_1)"},
    {"gmem": "(64,64):(64,_1)", "smem": "(_8,_64):(_64,_1)", "dtype": "tf32"},
    {"gmem": "(20,4,64):(256,64,_1)", "smem": "((_4,_4),_64):((_64,_256),_1)", "tile": "((_4:_1,_4:_4),_64)"},
    {"gmem": "((_4,20),64):((64,256),_1)", "smem": "(_16,_64):(_64,_1)", "tile": "(16,64)"},
]
"""What random forms come by too seldom: bounds and corners, one after the other."""


def test_edges() -> None:
    kinds = Counter[str]()
    same, wrong, left = compared(EDGES, kinds)
    assert not wrong, "\n".join(wrong)
    assert not left
    assert same == len(EDGES)
    assert kinds["accepted"] > 15
    assert {"size", "stride_range", "box", "collapsed", "cute", "work"} <= set(kinds)


def test_texts_with_mistakes() -> None:
    forms = Forms(SEED + 1)
    _, wrong, left = compared([forms.broken() for _ in range(BROKEN)])
    assert not wrong, "\n".join(wrong[:20])
    assert len(left) < BROKEN // 4


@pytest.mark.parametrize(("name", "form"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_examples(name: str, form: dict[str, str]) -> None:
    got = ask([form])[0]
    assert differences(json.loads(json.dumps(answer_query(form))), got) == []
    assert bool(got["problems"]) == name.startswith("error")
