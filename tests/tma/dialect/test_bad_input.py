"""Names, versions, texts and records that make no instruction or kernel end in a typed error, and at once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_py.tma as lower
import cute_py.tma as tma
from benchmarks.assembler import assemble_each
from cute_py import Int, Layout, LayoutRight
from cute_py.copies import kernel_texts
from cute_py.errors import (
    CuteError,
    EmissionError,
    FileFormatError,
    InvalidTypeError,
    InvalidValueError,
    ParseError,
    UnknownFactError,
)
from cute_py.ptx.module import find_ptxas
from cute_py.ptx.parse import parse_instruction
from tests.pace import within
from tests.ptx.texts import SAID
from tests.refusals import Refusal, assert_refused, refusals
from tests.tma.dialect.atoms import tile_atom

X = np.zeros((64, 64), np.uint8)
ATOM = tma.make_tma_copy("SM90_TMA_LOAD", X, Layout((Int(32), Int(32)), LayoutRight))
COPY = tile_atom("load", (64, 64), "bf16", swizzle=3)
LOAD = lower.entry_point("SM90_TMA_LOAD_MULTICAST_2D")
FENCE = "prefetch.tensormap [%rd1];"
REFUSED: list[Refusal] = [
    ("kernel name", lambda: lower.cuda_kernel(COPY, "a; b"), InvalidValueError, "the kernel's name is 'a; b'"),
    ("unicode name", lambda: lower.cuda_kernel(COPY, "\u00e9"), InvalidValueError, "must be an identifier"),
    ("variable", lambda: lower.encode_call(ATOM.request, variable="x y"), InvalidValueError, "variable = 'x y'"),
    ("address", lambda: lower.encode_call(ATOM.request, address="a; b"), InvalidValueError, "must be an expression"),
    ("path", lambda: lower.write_export(ATOM, "cu", 5), InvalidTypeError, "path must be a text or a path"),
    ("no path", lambda: lower.write_export(ATOM, "cu", ""), InvalidValueError, "the name of a file"),
    ("folder", lambda: lower.write_export(ATOM, "cu", "/no/such/folder/x.cu"), FileFormatError, "can't be written"),
    ("target", lambda: lower.export(ATOM, "cu", arch="sm_1"), InvalidValueError, "not a known architecture"),
    ("version", lambda: lower.verdict(FENCE, "sm_90", 8.0), InvalidTypeError, "a PTX version must be two integers"),
    ("one number", lambda: lower.why_not("load", "sm_90", (8,)), InvalidTypeError, "a PTX version must be two"),
    ("module", lambda: lower.single_tile_ptx(COPY, version=()), InvalidTypeError, "a PTX version must be two"),
    ("symbols", lambda: lower.examine(FENCE, 5), InvalidTypeError, "symbols must be a Mapping"),
    ("space of", lambda: lower.examine(FENCE, {"a": 1}), InvalidTypeError, "the space of a symbol must be a str"),
    ("variant", lambda: lower.capability([], "sm_90"), InvalidTypeError, "a variant must be a str"),
    ("target", lambda: lower.Targets.FROM_90.has("sm_90"), InvalidTypeError, "a target must be a Target"),
    ("mask", lambda: LOAD.copy("%rd1", "%r1", None, 0, "%r2", 1, 2), InvalidTypeError, "multicast_mask must be a str"),
    ("desc", lambda: LOAD.copy([], "%r1", 3, 0, "%r2", 1, 2), InvalidTypeError, "desc must be a str or an integer"),
    ("entry point", lambda: lower.EntryPoint("n", "load", (), ()), InvalidValueError, "'n' has no parameter desc"),
    ("modifier", lambda: lower.ptx("load", dim=np.zeros(3)), InvalidTypeError, "dim must be a str, an integer"),
    ("modifier asked", lambda: lower.why_not("load", "sm_90", mode=[]), InvalidTypeError, "mode must be a str, an"),
    ("operand", lambda: lower.ptx("load", dim=1, operands={"coords": None}), InvalidTypeError, "coords must be a str"),
    ("operands", lambda: lower.ptx("load", dim=1, operands=5), InvalidTypeError, "operands must be a Mapping"),
    ("predicate", lambda: lower.ptx("load", dim=1, predicate="@%p1 x;"), EmissionError, "must be a predicate such"),
    ("cluster", lambda: lower.ptx("load", dim=1, cluster_size="4"), InvalidTypeError, "cluster_size must be"),
    ("flag of", lambda: lower.ch_opnum(2, 0, np.zeros(3)), InvalidTypeError, "multicast must be a bool"),
    ("swizzle", lambda: lower.lower(replace(COPY.request, swizzle=99)), InvalidValueError, "swizzle = 99; must be"),
    ("no TMA", lambda: lower.lower(COPY, allow_tma=[]), InvalidTypeError, "allow_tma must be a bool"),
    ("stage", lambda: lower.lower(COPY).stage(6), InvalidTypeError, "the name of a stage must be a str"),
    ("file", lambda: lower.lower(COPY).print("x"), InvalidTypeError, "expected a file that is open for text"),
    ("kind", lambda: lower.legacy_ptx(COPY, "sm_80", "bulk"), InvalidValueError, "kind = 'bulk'; must be one of"),
    ("init", lambda: lower.init_sequence(8), InvalidTypeError, "expected a request of a tensor map"),
    ("init space", lambda: lower.init_sequence(ATOM.request, space="x"), InvalidValueError, "space = 'x'"),
    ("rebind", lambda: lower.rebind_ptx(2, "sm_1"), InvalidValueError, "not a known architecture"),
    ("rebind flag", lambda: lower.rebind_sequence(2, zeroed=1), InvalidTypeError, "zeroed must be a bool"),
    ("device", lambda: lower.KernelFunction("sm_90a", (), device=(1,)), InvalidTypeError, "KernelFunction.device[0]"),
    ("kernel", lambda: lower.KernelFunction("sm_90a", (1,)), InvalidTypeError, "KernelFunction.copies[0] must be"),
    ("counters", lambda: lower.KernelFunction("sm_90a", (), "1"), InvalidTypeError, "KernelFunction.num_host_tmas"),
    ("lowering record", lambda: lower.Lowering(*[0] * 9), InvalidTypeError, "Lowering.copy must be a TracedCopy"),
    ("verdict record", lambda: lower.Verdict(*[None] * 8), InvalidTypeError, "Verdict.text must be a str"),
    ("statement", lambda: lower.InlineAsm("x", None), InvalidTypeError, "InlineAsm.operands must be a tuple"),
    ("rebind record", lambda: lower.RebindSequence(2, "global", "cta", 5), InvalidTypeError, "RebindSequence.steps"),
    ("texts", lambda: kernel_texts(8), InvalidTypeError, "a kernel must be a LoadedKernel, got int 8"),
    ("long text", lambda: lower.examine("a " + "(" * 20000), ParseError, "20002 characters; must have at most 16384"),
]  # fmt: skip


@refusals(REFUSED)
def test_refused(call: Callable[[], Any], kind: type[CuteError], words: str) -> None:
    assert_refused(call, kind, words)


@pytest.mark.parametrize(
    "text",
    [
        f"prefetch.tensormap [{'(' * 4000}{')' * 4000}];",
        f"mbarrier.init.shared::cta.b64 [%r1], {'9' * 6000};",
        "mbarrier.init.shared::cta.b64 [%r1], 09;",
        "mbarrier.init.shared::cta.b64 [%r1], \u0663;",
        "prefetch.tensormap [x" + " -1" * 4000 + "];",
        f"prefetch.tensormap [x+{'1' * 4000}x];",
        f"prefetch.tensormap [x+{'1 ' * 4000}x];",
        "a" + ".a" * 8000,
    ],
)
def test_odd_texts_have_an_answer_at_once(text: str) -> None:
    with within(100), contextlib.suppress(CuteError):
        assert not lower.verdict(text, "sm_90").assembles


def test_numbers_of_an_instruction() -> None:
    texts = {"0x10": 16, "((1 + 2))": 3, "017": 15, "0b11": 3, "4U": 4, "-4": -4, "16*(1<<2)": 64, "~0": -1}
    assert {text: parse_instruction(f"x {text};").operands[0].value for text in texts} == texts
    for text in ("09", "4u", "0x", "1e3", "99999999999999999999", "%%r1", "[_]", "[09]", "[%tid.x]"):
        with pytest.raises(ParseError):
            parse_instruction(f"x {text};")
    operand = parse_instruction("x [%r1 + 16], !%p1;").operands
    assert (operand[0].base, operand[0].offset, operand[1].base) == ("%r1", True, "%p1")


def assembles(text: str) -> bool:
    try:
        return lower.verdict(text, "sm_100a").assembles
    except (ParseError, UnknownFactError):
        return False


def test_spellings_that_ptxas_judged() -> None:
    assert {text: assembles(text) for text in SAID} == SAID
    assert not lower.verdict("wgmma.wait_group.sync.aligned -1;", "sm_90a").assembles
    assert lower.verdict("tcgen05.ld.red.sync.32x32b.x2.min.u32 {%r1, %r2}, %r3, [%r4];", "sm_103a").assembles


ADDRESSES: dict[str, bool] = {
    "%rd1": True, "gmap": True, "%rd1 + 16": True, "%rd1+-16": True, "gmap+4*2": True, "gmap+(1+2)": True,
    "%rd1-16": False, "%rd1+x": False, "%rd1 %rd2": False, "(gmap)": False, "gmap gmap": False, "a!": False, "": False,
}  # fmt: skip


def taken(address: str) -> bool:
    try:
        return lower.verdict(f"prefetch.tensormap [{address}];", "sm_90").assembles
    except ParseError:
        return False


def test_addresses() -> None:
    """A base and `+` a constant; what ptxas says of each, where it is there."""
    assert {address: taken(address) for address in ADDRESSES} == ADDRESSES
    if find_ptxas() is not None:
        said = assemble_each([f"prefetch.tensormap [{address}];" for address in ADDRESSES], "sm_90", (9, 0))
        assert [message is None for message in said] == list(ADDRESSES.values())


def test_what_was_taken_is_still_taken(tmp_path: Path) -> None:
    assert lower.ptx("load", dim=2, operands={"coords": (np.int64(1), Int(2))}).count("{1, 2}") == 1
    assert lower.EntryPoint(*(getattr(LOAD, name) for name in ("name", "form", "modifiers", "parameters"))) == LOAD
    assert lower.write_export(ATOM, "cu", str(tmp_path / "x")).suffix == ".cu"
    assert "move_it(" in lower.cuda_kernel(COPY, "move_it")
