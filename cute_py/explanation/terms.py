"""Words of the trade that are no names of this library: what each of them means, and where to go on.

A text is looked up here as a whole, as a question too: "bank conflicts", "TV-layout", "what is a tiler?".
"""

from __future__ import annotations

import re
from typing import Final

from cute_py.diagnostics import Reason, reason_table

WORDS: Final = reason_table("""
layout | A function from coordinates to offsets: a shape and a stride of the same profile, printed shape:stride. The
    offset of a coordinate is the sum of index times stride, in elements.
    -> Layout((4, 8), (8, 1)); explain("(4,8):(8,1)").
    <- CuTe documentation, CuTe Layouts
swizzle | A function that permutes offsets: Swizzle(B, M, S), printed Sw<B,M,S>, XORs the B bits that begin at bit M+S
    into the B bits that begin at bit M. The elements of a tile stay, and neighbouring rows begin in other banks of
    shared memory. A tensor map has the swizzles 32B, 64B and 128B, which act on bytes.
    -> Swizzle(3, 4, 3); explain(Swizzle(3, 4, 3)); explain("128B"); bank_conflicts.
    <- cute/swizzle.hpp
tiler | What a divide or a composition cuts a layout by: a size, a layout, or a tuple with one of them for each mode;
    `_` in a tuple leaves its mode whole.
    -> zipped_divide(layout, (4, 8)); explain(zipped_divide, layout, tiler).
    <- CuTe documentation, CuTe Layout Algebra
TV layout | A layout from (thread, value) to a place in a tile: it says which element of the tile each value of each
    thread is.
    -> mma.get_layoutC_TV(), copy.get_layoutS_TV(), TiledCopy(...).layout_TV; explain(atom).
    <- cute/atom/mma_atom.hpp, cute/atom/copy_atom.hpp
descriptor | Two things have this name. A TMA descriptor is a tensor map of 128 bytes, which describes a global tensor
    and its box. A shared-memory descriptor is a number of 64 bits, which tells wgmma and tcgen05.mma where a tile lies:
    its start, its leading and stride offsets, and its swizzle.
    -> explain("tensor map"), cute.tma.decode; make_gmma_desc, make_umma_desc, explain("LBO").
    <- CUDA driver API, Tensor Map Object Management; PTX ISA, wgmma.mma_async and tcgen05.mma
TMA | The Tensor Memory Accelerator of sm_90 and later. One thread issues an instruction, cp.async.bulk.tensor, and the
    engine moves a box between global and shared memory as a tensor map describes it. A load counts its bytes off an
    mbarrier; a store is waited for by its bulk group.
    -> cute.tma.make_tma_copy; explain("tensor map"), explain("mbarrier").
    <- PTX ISA, cp.async.bulk.tensor
bank conflict | Shared memory has 32 banks of 4 bytes. Threads of a warp that touch different words of one bank in one
    access are served one after the other; a word that several of them read counts once.
    -> bank_conflicts(layout, dtype) counts them; find_smem_layout looks for a layout without; a swizzle avoids them.
    <- CUDA C++ Programming Guide, Shared Memory
out of bounds | Of a box that reaches beyond its tensor: a load writes the fill value, zero or NaN, for those elements,
    and counts their bytes; a store leaves them out. Of a thread that reads or writes beyond its memory: an error,
    CUDA_ERROR_ILLEGAL_ADDRESS, or the value of another object.
    -> OobFill; cute.tma.compare_tile shows a tile with its fill; compute-sanitizer finds such threads.
    <- CUDA driver API, cuTensorMapEncodeTiled
coordinate tensor | A tensor whose elements are coordinates in place of data: its strides are basis elements such as
    1@0. What a TMA instruction is given is an element of one.
    -> make_identity_tensor((4, 5)); atom.get_tma_tensor(); explain("1@0").
    <- CuTe documentation, CuTe TMA Tensors
basis element | A stride that moves one mode of a coordinate: 1@0 is one step in mode 0, 1@1 one step in mode 1, 1@0@1
    one step in mode 0 of mode 1. C++ writes E<0>, E<1>, E<1,0>.
    -> E(0), E(1), E(1, 0); explain("1@0").
    <- CuTe documentation, CuTe TMA Tensors
""")
"""Word -> what it is, where to go on, and who defines it."""

_ALSO: Final = {
    "tv": "TV layout",
    "threadvaluelayout": "TV layout",
    "oob": "out of bounds",
    "swizzling": "swizzle",
    "tmatensor": "TMA tensor",
    "identitytensor": "coordinate tensor",
    "tmadescriptor": "tensor map",
    "cutensormap": "tensor map",
    "smemdescriptor": "descriptor",
    "basis": "basis element",
    "scaledbasis": "basis element",
    "proxyfence": "fence.proxy.async",
}
"""Other ways to write a word or a term, as `key` spells them."""

_QUESTION: Final = re.compile(
    r"(?:what(?:'s| is| are| does| do)|explain|define|meaning of)\s(?:an? |the )?(.*?)(?: mean| stand for)?\s?\??",
    re.IGNORECASE,
)
LONGEST_QUESTION: Final = 120


def asked(text: str) -> str:
    """What a question asks about; another text is itself.

    >>> asked("What is a bank conflict?"), asked("what does 1@0 mean"), asked("(4,8):(8,1)")
    ('bank conflict', '1@0', '(4,8):(8,1)')
    """
    if len(text) > LONGEST_QUESTION:
        return text
    found = _QUESTION.fullmatch(" ".join(text.split()))
    return text if found is None or not found[1] else found[1]


def key(text: str) -> str:
    """The letters and digits of a text, in lower case."""
    return "".join(c for c in text.lower() if c.isalnum())


def spellings(text: str) -> list[str]:
    """The keys under which a word may be listed: its own, without a plural's ending, and of another way to write it.

    >>> spellings("Bank conflicts"), spellings("OOB")
    (['bankconflicts', 'bankconflict'], ['oob', 'outofbounds'])
    """
    own = key(text)
    found = [own, *([own[:-1]] if own.endswith("s") else []), *([own[:-2]] if own.endswith("es") else [])]
    return [*found, *(key(_ALSO[one]) for one in found if one in _ALSO)]


def word_of(text: str, *tables: dict[str, Reason]) -> tuple[str, Reason] | None:
    """The row of a word, of this table or of the others."""
    if len(text) > LONGEST_QUESTION or text.endswith("."):  # `tma.` is the start of a name
        return None
    for wanted in spellings(text):
        for table in (WORDS, *tables):
            for name, row in table.items():
                if key(name) == wanted:
                    return name, row
    return None
