"""Terms without an object of their own: the vocabulary of TMA, and the errors that the CUDA driver returns."""

from __future__ import annotations

import difflib
from enum import Enum
from typing import Final

from cute_py.dtypes import DTYPES, as_dtype
from cute_py.errors import CuteError
from cute_py.explanation.definitions import filled, instance_text, member_text, public_objects
from cute_py.explanation.reasons import reason_table
from cute_py.tma.descriptor.formats import Interleave, L2Promotion, OobFill, TensorMapDataType, TensorMapSwizzle

TERMS: Final = reason_table("""
G-basis | The box of a TMA copy as a layout, before it is cut to five modes: shared-memory order on the outside, and
    basis strides n@m that say by how much each step moves along global mode m. CuTe C++ calls it tma_gbasis.
    -> atom.gbasis; atom.gbasis.trace lists the stages; explain(atom) has the reasons.
    <- cute/atom/copy_traits_sm90_tma.hpp, construct_tma_gbasis
TMA tensor | A tensor of coordinates in place of data: partition it as the data would be, and each element is the
    coordinate that an instruction takes.
    -> atom.get_tma_tensor(); printed as ArithTuple(_0,_0) o shape:(_1@1,_1@0).
    <- CuTe documentation, TMA Tensors
tensor map | The 128 bytes (CUtensorMap) that describe a global tensor and its box to the TMA engine: address, sizes,
    byte strides, box, element strides, swizzle, interleave, fill.
    -> cute.tma.encode(request), decode(bytes), describe(bytes); `cute-py desc decode`.
    <- CUDA driver API, Tensor Map Object Management
box | What one TMA instruction moves: 1 to 256 elements along each of one to five modes of the tensor map.
    -> atom.request.box_dim; draw_boxes(atom) shows all of them on the tensor.
CTA V-map | The layout from a value of the tile to its coordinate in the global tensor.
    -> make_cta_v_map(shape, tiler).
transaction bytes | The bytes that a tile delivers to its mbarrier, elements outside the tensor included; expect_tx must
    announce exactly this number, or the phase never completes.
    -> atom.transaction_bytes.
mbarrier | A 64-bit barrier in shared memory: a phase completes when all arrivals have come and the announced bytes have
    been delivered; waits name the parity of the phase.
    -> cute.tma.Mbarrier emulates one.
    <- PTX ISA, mbarrier
multicast | One load whose box is written to the shared memory of every CTA of the mask; each CTA issues its slice, and
    every barrier expects the bytes of the whole tile.
    -> make_tma_copy("SM90_TMA_LOAD_MULTICAST", ..., num_multicast=4); create_tma_multicast_mask.
CUDA_ERROR_INVALID_VALUE | From cuTensorMapEncode*: a rule of tensor maps is broken. The driver returns one code for
    all of them and does not name the rule.
    -> violations(request) or `cute-py desc check` lists every broken rule; explain(TmaLimitError) lists all rules.
CUDA_ERROR_ILLEGAL_INSTRUCTION | From a kernel with TMA: the engine refuses how a legal map is used, such as an inner
    coordinate that is not a multiple of 16 bytes, or a reduction that the element type does not have. The CUDA
    context is lost.
    -> Run the copy in the emulator, which raises TmaTrap with the cause; explain(TmaTrap) lists the causes.
CUDA_ERROR_ILLEGAL_ADDRESS | From a kernel with TMA: the box touches bytes that no allocation holds, because of a wrong
    address, size or stride in the map. The CUDA context is lost.
    -> Compare describe(map) with the allocation; the emulator raises TmaTrap.
CUDA_ERROR_MISALIGNED_ADDRESS | From a kernel with TMA: a shared-memory address, an mbarrier or the tensor map is not
    aligned as it must be.
    -> 128 bytes for tiles (atom.alignment for swizzled ones), 8 for barriers, 64 for maps; 128 since CUDA 13.
CUDA_ERROR_LAUNCH_TIMEOUT | A kernel did not end: mostly a wait for a phase that never completes.
    -> diagnose(...) and explain(WouldHangError): compare the bytes that are expected with those that arrive.
CUDA_ERROR_UNSUPPORTED_PTX_VERSION | NVRTC or nvcc is newer than the driver, and PTX was loaded.
    -> Compile to a cubin, as this library does, or update the driver; `cute-py doctor`.
""")
"""Term -> what it is, where to find it, and who defines it."""
ENUMS: Final[tuple[type[Enum], ...]] = (TensorMapSwizzle, TensorMapDataType, Interleave, L2Promotion, OobFill)


def _key(text: str) -> str:
    return "".join(c for c in text.lower() if c.isalnum())


def term_text(text: str) -> str | None:
    """The explanation of a term, an enum's spelling ('128B', 'FLOAT16') or an element type ('bf16'), or None.

    >>> print(term_text("gbasis").splitlines()[0], term_text("128B").splitlines()[0])
    G-basis TensorMapSwizzle.B128 = 3
    """
    for name, term in TERMS.items():
        if _key(name) == _key(text):
            parts = [name, "", filled("", term.why), "", filled("  see    : ", term.fix)]
            return "\n".join([*parts, *([filled("  source : ", term.source)] if term.source else [])])
    name = text.strip().upper()
    spelled = [kind[m] for kind in ENUMS for m in (name, f"B{name.removesuffix('B')}") if m in kind.__members__]
    if spelled:
        also = [f"{type(other).__name__}.{other.name}" for other in spelled[1:]]
        return member_text(spelled[0]) + (f"\n\nThe same spelling: {', '.join(also)}" if also else "")
    try:
        return instance_text(as_dtype(text.strip()))
    except CuteError:
        return None


def nearest(text: str) -> list[str]:
    """Names and terms that a misspelled one may mean.

    >>> nearest("ziped_divide")[0]
    'zipped_divide'
    """
    names = [name.rpartition(".")[2] for name, _ in public_objects()]
    return difflib.get_close_matches(text, dict.fromkeys([*names, *TERMS, *(row.name for row in DTYPES)]), 3)
