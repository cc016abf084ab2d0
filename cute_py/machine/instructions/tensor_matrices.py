"""tcgen05.mma: one thread issues it for its CTA or pair of CTAs. In PTX, the operands are:

    [d], a, b, idesc, {lanes}, enable, scale         A is a matrix descriptor or [address]
    [d], a, b, [metadata], idesc, ...                .sp
    [d], a, b, idesc, [scales of A], [scales of B], enable    .block_scale
    [d], a, b, idesc, enable, zero columns           .ws

`tensor_memory/products` computes the product. `.collector` names the buffer that keeps A or B, and does not change
results.
Source: PTX ISA 9.0, tcgen05.mma, tcgen05.mma.sp, tcgen05.mma.ws, instruction descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from cute_py.atom.smem_descriptor import UNIT_BYTES
from cute_py.errors import CuteError
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.tensor_memory import (
    BUILDERS,
    errors_as_faults,
    group_of,
    pair_of,
    tmem_address,
)
from cute_py.machine.judgement.observer import AsyncWork, TensorColumns, Touched
from cute_py.machine.sites import Site
from cute_py.machine.tensor_memory.copy_shapes import COLUMNS, LANES
from cute_py.machine.tensor_memory.in_flight import ALL_LANES, TensorState, region_of
from cute_py.machine.tensor_memory.instruction_descriptor import MMA_KINDS, InstructionDescriptor
from cute_py.machine.tensor_memory.products import (
    SHIFTED_COLUMNS,
    CtaMemory,
    Product,
    cells_read,
    check_places,
    columns_of_d,
    multiply,
    operand_reads,
    places_of_d,
    split_address,
    units_of,
)
from cute_py.machine.threads import Array, Frame, Reader, Run, broadcast, each_thread
from cute_py.ptx.parse import OperandKind
from cute_py.targets import Targets, architecture

_VECTORS: Final = {
    ("mxf8f6f4", ""): 1, ("mxf8f6f4", "scale_vec::1X"): 1, ("mxf8f6f4", "block32"): 1,
    ("mxf4", ""): 2, ("mxf4", "scale_vec::2X"): 2, ("mxf4", "block32"): 2,
    ("mxf4nvf4", "scale_vec::2X"): 2, ("mxf4nvf4", "block32"): 2,
    ("mxf4nvf4", "scale_vec::4X"): 4, ("mxf4nvf4", "block16"): 4,
}  # fmt: skip
"""Kind and vector size -> scale factors of a row."""
_SCALE_WORDS: Final = ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32")
_COLLECTORS: Final = tuple(
    f"collector::{buffer}::{use}"
    for buffer in ("a", "b0", "b1", "b2", "b3")
    for use in ("fill", "use", "lastuse", "discard")
)


@dataclass(frozen=True, slots=True)
class _Mma:
    """A tcgen05.mma instruction: its modifiers, and its operands as functions of a frame."""

    kind: str
    group: int
    sparse: bool
    weights: bool
    vectors: int
    d: Callable[[Frame], Array]
    a: Callable[[Frame], Array]
    a_in_tmem: bool
    b: Reader
    metadata: Callable[[Frame], Array] | None
    descriptor: Reader
    scales: tuple[Callable[[Frame], Array], ...]
    disabled: tuple[Reader, ...]
    enable: Reader
    shift: int
    zero_columns: Reader | None
    moves_a: bool
    collector: tuple[str, ...]


def _mma(site: Site) -> _Mma:
    """Parse the modifiers and operands of a tcgen05.mma."""
    weights, sparse = site.flag("ws"), site.flag("sp")
    group = group_of(site)
    kind = site.choice(*(f"kind::{name}" for name in MMA_KINDS)).removeprefix("kind::")
    scaled = site.flag("block_scale")
    scale = site.choice(*_SCALE_WORDS)
    moves_a = site.flag("ashift")
    _, _, used = site.choice(*_COLLECTORS).partition("collector::")
    collector = tuple((used or ("b0::discard" if weights else "a::discard")).split("::"))
    site.finish()
    if not kind or scaled != MMA_KINDS[kind].scaled or (scaled and (kind, scale) not in _VECTORS):
        raise Refused(f"{site.one.opcode} is not emulated")
    a_in_tmem = site.operand(1).kind is OperandKind.ADDRESS
    place = 3
    metadata = None
    if sparse:
        metadata = tmem_address(site, place)
        place += 1
    descriptor = site.reader(place, "u32")
    rest = list(range(place + 1, len(site.operands)))
    scales = tuple(tmem_address(site, rest.pop(0)) for _ in range(2)) if scaled else ()
    disabled: tuple[Reader, ...] = ()
    if rest and site.operand(rest[0]).kind is OperandKind.VECTOR:
        disabled = tuple(site.read(text, "b32") for text in site.elements(rest.pop(0)))
        if len(disabled) != 4 * group:
            raise Refused(f"{site.one.opcode} has {len(disabled)} words of disabled lanes; must have {4 * group}")
    enable = site.read(site.operand(rest.pop(0)), "pred")
    zero_columns = site.reader(rest.pop(0), "b64") if weights and rest else None
    shift = site.constant(rest.pop(0)) if rest else 0
    if shift and kind not in ("f16", "tf32"):
        raise Refused(f"{site.one.opcode} has no scale for D")
    return _Mma(
        kind, group, sparse, weights, _VECTORS.get((kind, scale), 0), tmem_address(site, 0),
        tmem_address(site, 1) if a_in_tmem else site.reader(1, "b64"), a_in_tmem, site.reader(2, "b64"), metadata,
        descriptor, scales, disabled, enable, shift, zero_columns, moves_a,
        collector,
    )  # fmt: skip


def _one(reader: Callable[[Frame], object], f: Frame) -> int:
    """The operand's value in a frame of a single thread."""
    return int(broadcast(reader(f), f)[0])


def _product(site: Site, mma: _Mma, f: Frame) -> Product:
    """Return the product that a thread issues.

    Raises:
        Fault: the instruction does not support the instruction descriptor.
    """
    descriptor = InstructionDescriptor(_one(mma.descriptor, f), mma.kind)
    found = descriptor.check(mma.group, weights=mma.weights)
    if descriptor.sparse != mma.sparse:
        said = "states that A is sparse" if descriptor.sparse else "states that A is dense"
        text = f"{f.text()}: instruction descriptor {descriptor} {said}, but {site.one.opcode} requires the opposite"
        raise site.fault("instruction descriptor", text, f, "tcgen05 instruction descriptor")
    if found:
        text = f"{f.text()}: instruction descriptor {descriptor}: {found[0].message}"
        more = {f"and {number}": one.message for number, one in enumerate(found[1:], 2)}
        raise site.fault("instruction descriptor", text, f, "tcgen05 instruction descriptor", **more)
    if mma.moves_a and descriptor.m // mma.group != LANES:
        text = f"{f.text()}: .ashift with M = {descriptor.m}; must be {LANES * mma.group} with cta_group::{mma.group}"
        raise site.fault("instruction descriptor", text, f, "tcgen05.mma")
    zeros = 0 if mma.zero_columns is None else _one(mma.zero_columns, f)
    if zeros >> 56 & 0x3F:
        text = f"{f.text()}: a column shift of {zeros >> 56 & 0x3F} in a mask of zero columns is not emulated"
        raise site.fault("not emulated", text, f, "tcgen05, zero-column mask descriptor")
    disabled = None
    if mma.disabled:
        words = np.array([_one(read, f) for read in mma.disabled], np.uint32)
        flags = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.bool_)
        disabled = tuple(flags.reshape(-1, LANES))
    scales = [_one(read, f) for read in mma.scales] or [0, 0]
    return Product(
        descriptor=descriptor,
        ctas=mma.group,
        a=_one(mma.a, f),
        a_in_tmem=mma.a_in_tmem,
        b=_one(mma.b, f),
        d=_one(mma.d, f),
        adds=bool(_one(mma.enable, f)),
        metadata=None if mma.metadata is None else _one(mma.metadata, f),
        vectors=mma.vectors,
        scales_a=scales[0],
        scales_b=scales[1],
        weights=mma.weights,
        shift=mma.shift,
        disabled=disabled,
        moves_a=mma.moves_a,
        zeros=zeros,
    )


def build_product(site: Site) -> Run:
    """Build the function that runs tcgen05.mma: dense, sparse, block-scaled or .ws."""
    mma = _mma(site)

    def one(f: Frame) -> None:
        m, state = f.m, TensorState.of(f.m)
        product = _product(site, mma, f)
        ctas = pair_of(f, site, mma.group)
        state.products.setdefault((ctas[0], site.one.line), product)
        column = split_address(product.d)[1]
        with errors_as_faults(site, f):
            check_places(product)
            for cta in ctas:
                state.memories[cta].use_group(mma.group)
                state.memories[cta].expect_allocated(column, columns_of_d(product))
        lanes, columns = places_of_d(product)
        region = region_of(lanes + split_address(product.d)[0], columns + column)

        _expect_read(f, site, state, product, ctas)
        buffer, use = mma.collector
        for cta in ctas:
            state.collects(f, site, cta, buffer, use, product.a if buffer == "a" else product.b)
        for cta in ctas:
            cells = (cta, lanes + split_address(product.d)[0], columns + column)
            if product.adds:
                state.expect_written(f, site, cells, "adds to", "error")
            state.written[cells] = site.number + 1
            state.expect_still(f, site, cta, region, "writes", pipelined=True)
            m.observer.tensor_used(f, site, cta, region, True, True)

        def complete() -> None:
            memories = []
            for cta in ctas:
                shared = m.shared[cta * m.shared_stride : cta * m.shared_stride + m.shared_bytes]
                memories.append(CtaMemory(shared, m.shared_base, state.cells[cta]))
            with errors_as_faults(site, f, "tcgen05.mma operand"):
                multiply(product, memories)

        if m.observer.active:
            _report(f, site, product, ctas)
        regions = [region]
        if product.moves_a:
            first = split_address(product.a)[1]
            regions.append((ALL_LANES, first, first + SHIFTED_COLUMNS))
        state.issue(f, site, "a tcgen05.mma", complete, [(cta, one) for cta in ctas for one in regions])

    return each_thread(one)


def _expect_read(f: Frame, site: Site, state: TensorState, product: Product, ctas: list[int]) -> None:
    """Check that the product's operands in tensor memory were written, and that no write to them is pending."""
    for what, lanes, columns in cells_read(product):
        if int(columns.max()) >= COLUMNS or int(lanes.max()) >= LANES:
            continue  # the product itself reports this
        region = region_of(lanes, columns)
        for cta in ctas:
            with errors_as_faults(site, f):
                state.memories[cta].expect_allocated(region[1], region[2] - region[1])
            state.expect_still(f, site, cta, region, f"reads {what} in", pipelined=True)
            state.expect_written(f, site, (cta, lanes, columns), f"reads {what} in", "error")
            f.m.observer.tensor_used(f, site, cta, region, False, True)


def _report(f: Frame, site: Site, product: Product, ctas: list[int]) -> None:
    """Report to the observer which bytes of shared memory a product reads."""
    m = f.m
    reads, operands = [], []
    for cta in ctas:
        for operand in operand_reads(product, cta * m.shared_stride):
            try:
                units = units_of(operand) - m.shared_base
            except CuteError:
                return  # the product itself reports this
            if int(units.min()) >= 0 and int(units.max()) + UNIT_BYTES <= m.shared_bytes:
                reads.append(Touched(m.shared, 0, UNIT_BYTES, units + operand.start))
                operands.append(operand)
    column = split_address(product.d)[1]
    spans = [("D", column, column + columns_of_d(product))]
    names = {"the scales of A": "SFA", "the scales of B": "SFB"}
    for what, _, columns in cells_read(product):
        if what in names:
            spans.append((names[what], int(columns.min()), int(columns.max()) + 1))
    work = AsyncWork(
        "tcgen05.mma",
        reads,
        group="tcgen05",
        operands=operands,
        cells=[TensorColumns(what, cta, first, last) for cta in ctas for what, first, last in spans],
        block=product.descriptor.k // product.vectors if product.vectors else 0,
    )
    m.observer.issued(f, site, work)


def build_tcgen05(site: Site) -> Run | Turn | None:
    """Build the function that runs a tcgen05 instruction, for targets that support tcgen05."""
    target = str(site.code.module.target).split(",")[0].strip()
    if not Targets.TMA_FULL.has(architecture(target)):
        raise Refused(f"{site.one.opcode} needs {Targets.TMA_FULL.value}; the kernel is for {target}")
    action = site.choice("mma", *BUILDERS)
    if not action:
        raise Refused(f"{site.one.opcode} is not emulated")
    return build_product(site) if action == "mma" else BUILDERS[action](site)


TABLE: Final[Mapping[str, Builder]] = {"tcgen05": build_tcgen05}
