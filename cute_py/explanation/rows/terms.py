"""Technical terms that are not names of this library, with their meaning and where to read more.

The whole string must be a term, or a question about one: "bank conflicts", "TV-layout", "what is a tiler?".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from cute_py.diagnostics import Reason
from cute_py.explanation.rows.known_texts import reasons

WORDS: Final = reasons("word")
"""Word -> its meaning, where to read more, and its source."""

_ALSO: Final = {
    "tv": "TV layout",
    "tldotscaled": "dot_scaled",
    "tritonlanguagedotscaled": "dot_scaled",
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
    "basisstride": "basis element",
    "proxyfence": "fence.proxy.async",
    "genericproxy": "async proxy",
    "mnmajor": "K-major",
    "majorness": "K-major",
    "kmajorlayout": "K-major",
    "rowmajorlayout": "row-major",
    "columnmajorlayout": "row-major",
    "threadlayout": "value layout",
    "columnmajor": "row-major",
    "residual": "residue",
    "hierarchical": "hierarchical layout",
    "arrivalcount": "arrival",
    "pendingcount": "arrival",
    "txcount": "transaction count",
    "testwait": "try_wait",
    "ctapair": "cta_group",
    "umma": "tcgen05",
    "tmem": "tensor memory",
    "sharedmemory": "smem",
    "globalmemory": "gmem",
    "registers": "rmem",
    "copyatom": "atom",
    "mmaatom": "atom",
    "zerofill": "out of bounds",
    "stride0": "broadcast",
    "runtime": "static integer",
    "runtimeinteger": "static integer",
    "runtimenumber": "static integer",
    "dynamicinteger": "static integer",
    "dynamic": "static integer",
    "dynamicnumber": "static integer",
    "dynamicshape": "static integer",
    "dynamicstride": "static integer",
    "cooperativethreadarray": "CTA",
    "threadblock": "CTA",
    "transposed": "transpose",
    "safetensors": "checkpoint",
    "warpspecialisation": "warp specialization",
    "warpspecialized": "warp specialization",
    "warpspecialised": "warp specialization",
    "producer": "pipeline",
    "consumer": "pipeline",
    "proxy": "async proxy",
    "leadingdim": "leading dimension",
    "staticnumber": "static integer",
    "integralconstant": "static integer",
    "compiletimeconstant": "static integer",
    "torchscaledmm": "scaled_mm",
    "torchnnfunctionalscaledmm": "scaled_mm",
    "fscaledmm": "scaled_mm",
}
"""Other ways to write a word or a term, as `key` spells them."""

_QUESTION: Final = re.compile(
    r"(?:what(?:'s| is| are| does| do)|explain|define|meaning of)\s(?:an? |the )?(.*?)(?: mean| stand for)?\s?\??",
    re.IGNORECASE,
)
_CALLED: Final = re.compile(r"(?:cute(?:_py)?\.)?explain\(\s*+['\"]?([\w. -]++)['\"]?\s*+\)")
"""Python's call of `explain` for one name or term."""
LONGEST_QUESTION: Final = 120


def asked(text: str) -> str:
    """The subject of a question; any other string is returned unchanged.

    >>> asked("What is a bank conflict?"), asked("what does 1@0 mean"), asked("(4,8):(8,1)")
    ('bank conflict', '1@0', '(4,8):(8,1)')
    """
    if len(text) > LONGEST_QUESTION:
        return text
    found = _CALLED.fullmatch(text.strip()) or _QUESTION.fullmatch(" ".join(text.split()))
    return text if found is None or not found[1] else found[1].rstrip()


def key(text: str) -> str:
    """The letters and digits of a string, in lower case."""
    return "".join(c for c in text.lower() if c.isalnum())


def spellings(text: str) -> list[str]:
    """The possible keys of a term in a list: its own key, and the keys of its singular and of its synonyms.

    >>> spellings("Bank conflicts"), spellings("OOB")
    (['bankconflicts', 'bankconflict'], ['oob', 'outofbounds'])
    """
    own = key(text)
    found = [own, *([own[:-1]] if own.endswith("s") else []), *([own[:-2]] if own.endswith("es") else [])]
    return [*found, *(key(_ALSO[one]) for one in found if one in _ALSO)]


def word_of(text: str, *tables: Mapping[str, Reason]) -> tuple[str, Reason] | None:
    """Find the (name, row) of a term, in this table or in `tables`; None if no table has it."""
    if len(text) > LONGEST_QUESTION or text.endswith("."):  # `tma.` is the start of a name
        return None
    for wanted in spellings(text):
        for table in (WORDS, *tables):
            for name, row in table.items():
                if key(name) == wanted:
                    return name, row
    return None
