"""Calls of the command line, in this process. `serve` is only asked for its help."""

from __future__ import annotations

from collections.abc import Callable

from tests.calls.call import Call, entry
from tests.calls.text import Maker

LAYOUTS = (
    "(4,8):(8,1)",
    "((_2,_2),_3):((_24,_2),_8)",
    "Sw<3,4,3> o _0 o (8,64):(64,_1)",
    "ArithTuple(0,0) o (4,5):(_1@0,_1@1)",
    "_1@1@0",
    "Sw<3,4,3>",
    "((2,2),4):((1,8),2)",
)
GMEM = "(1024,512):(512,_1)"
SMEM = "Sw<3,4,3> o smem_ptr[16b](unset) o (_128,_64):(_64,_1)"
WORDS = "0x0000000000001000 0x0000004000006310 0x0 0x0 0x000003ff000001ff 0x0 0x3f00000000000000 0x7f"
MAP = "0010000000000000" + "1063000040000000" + "00" * 16 + "ff010000ff030000" + "00" * 16 + "0000000000003f7f"

Make = Callable[[Maker], list[str]]


def option(m: Maker, *texts: str) -> list[str]:
    return list(texts) if m.chance(0.4) else []


def printed(m: Maker) -> list[str]:
    return [m.choice(LAYOUTS), *option(m, m.one_of("--latex", "--explain"))]


def atoms(m: Maker) -> list[str]:
    action = m.one_of("list", "find", "show", "show")
    if action == "list":
        return [action, "--family", m.one_of("sm80", "sm90_gmma"), *option(m, "--count")]
    if action == "find":
        return [action, "--a", m.one_of("float16", "int8"), "--arch", m.one_of("sm80", "sm90"), *option(m, "--k", "16")]
    name = m.one_of("SM80_16x8x16_F32F16F16F32_TN", "SM75_U32x1_LDSM_N", "SM90_64x8x16_F32F16F16_SS<K,MN>")
    return [action, name, *option(m, "--draw"), *option(m, "--out", "p.svg")]


def explained(m: Maker) -> list[str]:
    texts = ("128x64", "zipped_divide", "error 716: misaligned address", "boxDim[1] must be <= 256, but got 512", "LBO")
    return [m.choice((*LAYOUTS, *texts)), *option(m, "--json")]


def drawn(m: Maker) -> list[str]:
    if m.chance(0.3):
        return [GMEM, "--smem", SMEM, *option(m, "--what", m.one_of("boxes", "smem")), *option(m, "--at", "1")]
    return [
        m.choice((*LAYOUTS[:4], *LAYOUTS[5:])),
        *option(m, "--color", m.one_of("value", "bank", "thread")),
        *option(m, "--out", m.one_of("p.svg", "p.txt", "p.html")),
    ]


def tma(m: Maker) -> list[str]:
    view = m.one_of("explain", "box", "partition", "check", "lower", "ptx", "cu", "c", "cute", "triton")
    return [
        GMEM,
        m.one_of(SMEM, "(_128,_64):(_64,_1)"),
        *option(m, "(_128,_64)"),
        "--show",
        view,
        *option(m, "--dtype", m.one_of("float16", "float32", "uint8")),
        *option(m, "--op", m.one_of("SM90_TMA_STORE", "SM90_TMA_LOAD_MULTICAST")),
        *option(m, "--multicast", "2"),
        *option(m, "--no-check"),
    ]


def desc(m: Maker) -> list[str]:
    raw = m.one_of(MAP, WORDS)
    return m.choice(
        (
            ["decode", raw, *option(m, "--view", m.one_of("summary", "fields", "seed001", "slots"))],
            ["check", raw],
            ["diff", raw, MAP.replace("7f", "3f")],
            ["slots", raw],
            [
                "encode",
                "--dtype",
                m.one_of("float16", "uint8"),
                "--dims",
                "512,1024",
                "--strides",
                "1024",
                "--box",
                "64,128",
                *option(m, "--swizzle", "128B"),
                *option(m, "--address", "0x1000"),
            ],
        )
    )


def tmem(m: Maker) -> list[str]:
    return m.choice((["demo"], ["forms"], ["descriptor", m.one_of("0x0000400800100000", "0")]))


def copied(m: Maker) -> list[str]:
    return [
        "{file}",
        "--tile",
        m.one_of("32x32", "16x16"),
        *option(m, "--swizzle", m.one_of("none", "32B")),
        *option(m, "--out", "copied.npy"),
        *option(m, "--order", "row"),
    ]


MAKES: dict[str, tuple[Make, float]] = {
    "print": (printed, 1.5),
    "atom": (atoms, 0.5),
    "explain": (explained, 0.6),
    "draw": (drawn, 0.6),
    "tma": (tma, 0.8),
    "desc": (desc, 1.5),
    "tmem": (tmem, 0.2),
    "copy": (copied, 0.3),
    "demo": (lambda m: option(m, "--tile", "32x32"), 0.05),
    "doctor": (lambda m: option(m, "--driver", "12080"), 0.03),
    "completion": (lambda m: [m.one_of("bash", "zsh", "fish")], 0.05),
    "serve": (lambda m: ["--help"], 0.03),
    "convert": (lambda m: ["{weights}", "--to", m.one_of("nvfp4", "mxfp8", "fp8"), "--out", "made"], 0.1),
    "skill": (lambda m: ["--out", "skills"], 0.03),
    "reshard": (lambda m: ["{plan}", *option(m, "--memory", "4M")], 0.1),
    "check": (lambda m: ["{ptx}", *option(m, "--arch", m.one_of("sm_90a", "sm_100a", "sm_80"))], 0.1),
    "run": (lambda m: ["{kernel}", "--arg", "null", "--arg", "0", *option(m, "--schedule", "eager")], 0.1),
    "watch": (lambda m: ["--help"], 0.03),
}
"""Command -> its arguments, and its weight. A command that is added needs a row."""

FILES = {
    "{file}": "saved((64, 64), 'float16')",
    "{plan}": "saved_shards()",
    "{weights}": "saved_weights()",
    "{ptx}": "saved_ptx()",
    "{kernel}": "saved_kernel()",
}
"""In place of an argument, what makes the file and gives its name."""

STRINGS = (
    "",
    "x",
    "-",
    "--help",
    "9" * 5000,
    "-1",
    "\u0663:\u0661",
    "0x",
    "(" * 2000,
    "nan",
    "1e999",
    "a\x00b"[:1],
    "_",
    "-99999999999999999999",
    "missing.npy",
    ",".join(["1"] * 3000),
)
"""In place of one argument."""

UNSTEADY = ("doctor",)
"""Says what is installed here."""


def _register(name: str, make: Make, weight: float) -> None:
    def made(m: Maker) -> Call:
        arguments = make(m)
        arguments += ["--json"] if m.chance(0.4) and "--help" not in arguments else []
        if m.chance(0.4) and name not in ("serve", "demo", "doctor", "watch"):
            arguments[m.integer(0, len(arguments) - 1)] = m.choice(STRINGS)
        texts = [FILES.get(a, repr(a)) for a in arguments]
        stdin = (("stdin", repr(m.choice(LAYOUTS))),) if "-" in arguments else ()
        return Call(f"cute-py {name}", "command", (repr(name), *texts), stdin)

    entry(f"cute-py {name}", weight=weight, mutable=False, steady=name not in UNSTEADY).makers.append(made)


for _name, (_make, _weight) in MAKES.items():
    _register(_name, _make, _weight)
