"""The texts of the descriptor builder and of the atom verifier after it, byte for byte, and what else they require.

The quoted texts are those of the TMA load walkthrough (stages 3b and 3c) and of the TMA Atoms reference page; the
others are requirements that the page writes as code, in words of this library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from cute_py.errors import TmaBuildError

DESCRIPTOR_ALIGNMENT: Final = "expected tma descriptor pointer to have alignment at least 128"
BOX_GRANULARITY: Final = "tma boxDims[0] * elemTypeBitWidth is not a multiple of 16 bytes"
SMEM_NOT_COMPATIBLE: Final = "smem layout is not TMA compatible"
ZERO_PADDING_ONLY: Final = "TmaLoad only support zero padding now"
EXPECT_LOAD_ATOM: Final = "expect a tma_load atom type"
BOX_LENGTH_MISMATCH: Final = "tmaBoxDim and atomBoxDim length mismatch"
SMALL_MULTICAST: Final = "mcast is not supported for TMA load with less than 128bytes per atom"
NOT_DEVICE_MUTABLE: Final = "TMA descriptor field is not device-mutable"

NOT_GLOBAL: Final = "the tensor of a TMA descriptor must be in global memory"
COMPOSED_LAYOUT: Final = "a TMA descriptor takes a plain static layout, not a composed one"
NOT_STATIC: Final = "the layout of a TMA descriptor must be static"
STORE_PADDING: Final = "non-zero padding requires a mode that supports it; a store or reduction fills nothing"
NOT_VERIFIED: Final = "an executable TMA atom needs a non-exec atom that the partition verifier accepted"
BARRIER_NOT_SHARED: Final = "the barrier of an executable TMA atom must be in shared memory"
NO_BARRIER: Final = "an executable TMA load needs a barrier"
NOT_SHARED: Final = "the tile of a TMA copy must be in shared memory"
NO_TMA: Final = "allow_tma = false; this operation is a TMA copy"


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken requirement: its text, and the value behind it, with its unit."""

    text: str
    found: str = ""


def refuse(findings: list[Finding]) -> None:
    """Raise all findings as one error whose headline is the first one's text; return if there is none.

    Raises:
        TmaBuildError: there is a finding.
    """
    if not findings:
        return
    first, *others = findings
    facts: dict[str, object] = {"found": first.found} if first.found else {}
    for i, finding in enumerate(others, 2):
        facts[f"also {i}"] = f"{finding.text} ({finding.found})" if finding.found else finding.text
    raise TmaBuildError(first.text, facts)
