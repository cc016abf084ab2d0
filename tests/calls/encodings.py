"""Calls of what reads and writes the texts of Triton and of CuTe DSL."""

from __future__ import annotations

from tests.calls.call import add, method
from tests.calls.instances import INSTANCES
from tests.calls.text import Maker

BASES = "((('register', ((0, 1),)), ('lane', ((0, 2), (1, 0)))), (('dim0', 2), ('dim1', 4)))"
LINEAR = "#ttg.linear<{register = [[0, 1]], lane = [[0, 2], [1, 0]], warp = [], block = []}>"
BLOCKED = "BlockedEncoding((1, 4), (4, 8), (2, 1), (1, 0))"
MMA = "NvidiaMmaEncoding(2, 0, (1, 1), (16, 8))"
ENCODINGS = {
    "BlockedEncoding": BLOCKED,
    "DotOperandEncoding": f"DotOperandEncoding(1, {MMA}, 2)",
    "NvidiaMmaEncoding": MMA,
    "NvmmaSharedEncoding": "NvmmaSharedEncoding(128, False, 16)",
    "SliceEncoding": f"SliceEncoding(0, {BLOCKED})",
    "SwizzledSharedEncoding": "SwizzledSharedEncoding(8, 1, 8, (1, 0))",
}


def written(m: Maker) -> str:
    return m.one_of(
        "static(Layout(((4, 8), (2, 2)), ((32, 1), (16, 8))))",
        "ComposedLayout(Swizzle(1, 0, 2), Int(0), static(Layout((2, 4), (4, 1))))",
        f"Layout(({m.choice((2, 3, 8))}, 4))",
    )


INSTANCES.update({"TritonLayout": f"TritonLayout(*{BASES})", **ENCODINGS})
add("TritonLayout", "(('register', ((0, 1),)), ('lane', ((0, 2), (1, 0))))", "(('dim0', 2), ('dim1', 4))")
method("TritonLayout.__call__", INSTANCES["TritonLayout"], named={"register": "1", "lane": "3"})
method("TritonLayout.holders", INSTANCES["TritonLayout"], "1", "2")
method("TritonLayout.attribute", INSTANCES["TritonLayout"], "16")
add("to_triton", written)
add("from_triton", f"'{LINEAR}'")
add("parse_triton", f"'{LINEAR}'")
add("parse_triton_encoding", lambda m: f"str({m.choice(list(ENCODINGS.values()))})")
add("to_dsl", written)
add("from_dsl", "'S<3,3,3> o 0 o (8,64):(64,1)'")
add("BlockedEncoding", "(1, 4)", "(4, 8)", "(2, 1)", "(1, 0)")
add("NvidiaMmaEncoding", "2", "0", "(1, 1)", "(16, 8)")
add("DotOperandEncoding", "1", MMA, "2")
add("SliceEncoding", "0", BLOCKED)
add("SwizzledSharedEncoding", "8", "1", "8", "(1, 0)")
add("NvmmaSharedEncoding", "128", "False", "16")
for name, text in ENCODINGS.items():
    method(f"{name}.linear", text, "(8,)" if name == "SliceEncoding" else "(64, 64)")
