"""Matrix instructions: mma, wgmma and its groups, ldmatrix, stmatrix, movmatrix; for all warps of a frame together.

A wgmma runs as an agent: under the lazy schedule, it reads its operands and writes its sums when a thread waits for its
group.
Source: PTX ISA 9.0, warp-level and asynchronous warpgroup-level matrix instructions; the arithmetic was measured on an
H200.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from cute_py.atom.mma_atom import MmaAtom
from cute_py.atom.smem_descriptor import UNIT_BYTES, Major
from cute_py.errors import CuteError
from cute_py.machine.arithmetic import element_width
from cute_py.machine.decode import Builder, Turn
from cute_py.machine.faults import Refused
from cute_py.machine.instructions.lanes import collective
from cute_py.machine.judgement.observer import WEAK, AsyncWork, OperandRead, Touched
from cute_py.machine.kinds import KINDS, Kind
from cute_py.machine.matrix import MatrixInstruction, matrix_instruction, run_mma, run_wgmma
from cute_py.machine.memory import Locate, locate
from cute_py.machine.operands import operand_units
from cute_py.machine.schedule import Pending
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, WARPGROUP, Array, Frame, Reader, Run, broadcast, warpgroup_of
from cute_py.ptx.parse import OperandKind
from cute_py.ptx.source import operand_of

_UNIT: Final = np.dtype(np.uint16)


# ---- registers of a list ---------------------------------------------------------------------------------------------


def _rows(site: Site, names: tuple[str, ...], kind: Kind) -> Callable[[Frame], Array]:
    """Return a function of a frame that reads a list of registers as words (n, k); it reads adjacent registers as one
    block.
    """
    slots = _slots(site, names, kind)
    if slots is None:
        readers = [site.read(name, kind) for name in names]
        return lambda f: np.stack([broadcast(read(f), f) for read in readers], axis=1)
    code = kind.code
    return lambda f: f.rows(code, slots).T


def _slots(site: Site, names: tuple[str, ...], kind: Kind) -> Any:
    """The row indices of registers, as a slice if they are adjacent; None if a name is not a register."""
    found = []
    for name in names:
        one = operand_of(name)
        if one.kind is not OperandKind.REGISTER or site.code.register(site.function, one.base) is None:
            return None
        if site.bits_of(one.base) != kind.bits:
            raise Refused(
                f"the register {name} of {site.one.opcode} has {site.bits_of(one.base)} bits, not {kind.bits}"
            )
        found.append(site.slot(one.base))
    if found == list(range(found[0], found[0] + len(found))):
        return slice(found[0], found[0] + len(found))
    return found


def _put_rows(site: Site, names: tuple[str, ...], kind: Kind) -> Callable[[Frame, Array], None]:
    """Return a function of a frame that writes words (n, k) to a list of registers."""
    slots = _slots(site, names, kind)
    if slots is None:
        puts = [site.write(name, kind) for name in names]

        def each(f: Frame, words: Array) -> None:
            for place, put in enumerate(puts):
                put(f, words[:, place])

        return each
    code = kind.code
    return lambda f, words: f.put_rows(code, slots, words.T)


# ---- matrices of 8 rows ----------------------------------------------------------------------------------------------


def _matrix_form(site: Site, registers: int, address: int) -> tuple[int, bool, tuple[str, ...], Locate]:
    """Parse ldmatrix or stmatrix: number of matrices, whether they are transposed, registers, address.

    registers, address: indices of these two operands.
    """
    site.flag("sync")
    site.flag("aligned")
    shape = site.choice("m8n8", "m16n16", "m8n16")
    count = int(site.choice("x1", "x2", "x4", default="x1")[1:])
    transposed = site.flag("trans")
    site.flag("shared", "shared::cta")
    kind = site.kind("b16", "b8")
    site.finish(2)
    if shape != "m8n8" or kind.bits != 16:
        raise Refused(f"{site.one.opcode} is not emulated; only m8n8 and b16 matrices are")
    names = site.elements(registers)
    if len(names) != count:
        raise Refused(f"{site.one.opcode} has {len(names)} registers; must have {count}")
    space = "shared" if "shared" in site.one.opcode else "generic"
    return count, transposed, names, locate(site, address, space, 16, writes=address == 0)


def build_load_matrix(site: Site) -> Turn:
    """Build the function that runs ldmatrix."""
    count, transposed, names, where = _matrix_form(site, 0, 1)
    put = _put_rows(site, names, KINDS["b32"])

    def run(f: Frame) -> None:
        given = f if count == 4 else f.subset(f.lanes < 8 * count)
        array, offsets = where(given)
        f.m.observer.read(given, site, array, offsets, 16, WEAK)
        rows = f.m.memory.typed(array, _UNIT, 8)[offsets >> 4].reshape(-1, count, 8, 8)
        held = np.ascontiguousarray(rows.swapaxes(2, 3) if transposed else rows)
        words = held.view(np.uint32).reshape(-1, count, LANES)
        put(f, words.swapaxes(1, 2).reshape(-1, count))

    return collective(site, None, run, full=True)


def build_store_matrix(site: Site) -> Turn:
    """Build the function that runs stmatrix."""
    count, transposed, names, where = _matrix_form(site, 1, 0)
    read = _rows(site, names, KINDS["b32"])

    def run(f: Frame) -> None:
        given = f if count == 4 else f.subset(f.lanes < 8 * count)
        array, offsets = where(given)
        f.m.observer.wrote(given, site, array, offsets, 16, WEAK)
        words = np.ascontiguousarray(read(f).reshape(-1, LANES, count).swapaxes(1, 2))
        held = words.view(_UNIT).reshape(-1, count, 8, 8)
        rows = np.ascontiguousarray(held.swapaxes(2, 3) if transposed else held).reshape(-1, 8)
        f.m.memory.typed(array, _UNIT, 8)[offsets >> 4] = rows
        f.m.version += 1

    return collective(site, None, run, full=True)


def build_transpose_matrix(site: Site) -> Turn:
    """Build the function that runs movmatrix."""
    for word in ("sync", "aligned", "m8n8", "trans"):
        site.flag(word)
    site.kind("b16")
    site.finish(2)
    put, read = site.writer(0, "b32"), site.reader(1, "b32")

    def run(f: Frame) -> None:
        words = np.ascontiguousarray(broadcast(read(f), f)).view(_UNIT).reshape(-1, 8, 8)
        put(f, np.ascontiguousarray(words.swapaxes(1, 2)).view(np.uint32).reshape(-1))

    return collective(site, None, run, full=True)


# ---- mma -------------------------------------------------------------------------------------------------------------


def _fragments_of(site: Site, atom: MmaAtom) -> list[tuple[str, ...]]:
    """The registers of D, A, B and C; the number of registers must match the atom."""
    lists = [site.elements(place) for place in range(4)]
    for operand, names in zip("CABC", lists, strict=True):
        count = atom.registers[operand][0]
        if len(names) != count:
            what = "D" if names is lists[0] else operand
            raise Refused(f"operand {what} has {len(names)} registers; must be {count}")
    return lists


def build_mma(site: Site) -> Turn:
    """Build the function that runs mma.sync."""
    found = matrix_instruction(site.one.opcode)
    kind = KINDS["b64" if found.a == "f64" else "b32"]
    site.used = [True] * len(site.modifiers)
    site.finish(4)
    lists = _fragments_of(site, found.atom)
    put = _put_rows(site, lists[0], kind)
    reads = [_rows(site, names, kind) for names in lists[1:]]

    def run(f: Frame) -> None:
        words = [np.ascontiguousarray(read(f)).reshape(-1, LANES, len(lists[i + 1])) for i, read in enumerate(reads)]
        put(f, run_mma(found, *words).reshape(f.n, -1))

    return collective(site, None, run, full=True)


# ---- wgmma -----------------------------------------------------------------------------------------------------------


class _Products:
    """The wgmma products of a run: the number of groups that each warp has committed, and the products in flight."""

    def __init__(self, warps: int) -> None:
        self.committed = np.zeros(warps, np.int64)
        self.issued: dict[int, list[tuple[int, Pending]]] = {}
        """Warpgroup -> (group, agent), in the order of issue."""


def _products(f: Frame) -> _Products:
    found = f.m.state.get("wgmma")
    if found is None:
        found = f.m.state["wgmma"] = _Products(f.m.count // LANES)
    products: _Products = found
    return products


def build_wgmma(site: Site) -> Turn | Run:
    """Build the function that runs a wgmma instruction: fence, mma_async, commit_group or wait_group."""
    action = site.choice("fence", "mma_async", "commit_group", "wait_group")
    if action == "mma_async":
        return _build_product(site)
    site.flag("sync")
    site.flag("aligned")
    site.finish(1 if action == "wait_group" else 0)
    if action == "fence":
        return collective(site, None, lambda f: f.m.observer.multiply_fenced(f, site))
    if action == "commit_group":

        def commit(f: Frame) -> None:
            _products(f).committed[f.warps] += 1
            f.m.observer.committed(f, site, "wgmma")

        return collective(site, None, commit)
    left = site.constant(0)

    def wait(f: Frame) -> None:
        products = _products(f)
        f.m.observer.waited(f, site, "wgmma", left, False, False)
        if not products.issued:
            return
        for warp, group in zip(f.warps.tolist(), warpgroup_of(f.m, f.warps * LANES).tolist(), strict=True):
            limit = int(products.committed[warp]) - left
            held = products.issued.get(group, [])
            while held and held[0][0] < limit:
                f.m.finish(held.pop(0)[1])
            if not held:
                products.issued.pop(group, None)

    return collective(site, None, wait)


@dataclass(frozen=True, slots=True)
class _Product:
    """A wgmma instruction: its operands as functions of a frame, and its immediates.

    first: reader of A, as registers or as a descriptor. scale: whether the product is added to D. negated: whether A
    and B are negated.
    """

    found: MatrixInstruction
    in_registers: bool
    read_d: Any
    put_d: Any
    first: Any
    second: Reader
    scale: Reader
    metadata: Reader | None
    orders: tuple[Major, Major]
    negated: tuple[bool, bool]


def _product(site: Site) -> _Product:
    """Parse the operands and immediates of a wgmma.mma_async."""
    in_registers = site.operand(1).kind is OperandKind.VECTOR
    found = matrix_instruction(site.one.opcode, in_registers)
    site.used = [True] * len(site.modifiers)
    names = site.elements(0)
    wanted = found.atom.registers["C"][0]
    if len(names) != wanted:
        raise Refused(f"operand D has {len(names)} registers; must be {wanted}")
    word = KINDS["b32"]
    rest = list(site.operands[3:])
    metadata = None
    if found.sparse:
        metadata = site.read(rest[0], word)
        if rest[1].value != 0:
            raise Refused("a sparse wgmma with a selector other than 0 is not emulated")
        rest = rest[2:]
    numbers = [one.value for one in rest[1:]]
    scales = 0 if found.d == "s32" else 2
    count = scales + (2 - in_registers if element_width(found.a) == 16 else 0)
    if len(numbers) != count or None in numbers:
        raise Refused(f"wgmma of {found.a} has {count} immediates after the scale of D, got {len(numbers)}")
    majors = [0, *numbers[2:]] if in_registers else numbers[2:]
    orders = [Major.MN if x else Major.K for x in majors] + [Major.K, Major.K]
    return _Product(
        found=found,
        in_registers=in_registers,
        read_d=_rows(site, names, word),
        put_d=_put_rows(site, names, word),
        first=_rows(site, site.elements(1), word) if in_registers else site.reader(1, "b64"),
        second=site.reader(2, "b64"),
        scale=site.read(rest[0], "pred"),
        metadata=metadata,
        orders=(orders[0], orders[1]),
        negated=(numbers[:1] == [-1], numbers[1:2] == [-1]),
    )


def _build_product(site: Site) -> Turn:
    product = _product(site)
    found, a, read_d = product.found, product.first, product.read_d

    def one_group(f: Frame) -> None:
        m = f.m
        left = np.ascontiguousarray(a(f)) if product.in_registers else _same(site, f, broadcast(a(f), f))
        right = _same(site, f, broadcast(product.second(f), f))
        keep = broadcast(product.scale(f), f).copy()
        selected = None if product.metadata is None else broadcast(product.metadata(f), f).copy()
        cta = int(f.threads[0]) // m.cta_threads
        window = m.shared[cta * m.shared_stride : cta * m.shared_stride + m.shared_bytes]

        def complete() -> None:
            words = np.where(keep[:, None], read_d(f), np.uint32(0))
            held = np.ascontiguousarray(a(f)) if product.in_registers else left
            try:
                result = run_wgmma(
                    found, window, held, right, words, product.orders, product.negated, selected, base=m.shared_base
                )
            except CuteError as error:
                raise site.fault("wgmma operand", f"{f.text()}: {error.headline}", f, "wgmma.mma_async") from None
            product.put_d(f, result)

        if m.observer.active:
            _report(site, product, f, cta * m.shared_stride, left, right)
        products = _products(f)
        agent = Pending("a wgmma", site.number, complete, waited_for=True)
        number = int(warpgroup_of(m, f.threads[0]))
        m.asynchronous = True
        if m.eager or (number not in products.issued and m.dice is not None and m.dice.random() < 0.5):
            complete()
            return
        m.agents.append(agent)
        products.issued.setdefault(number, []).append((int(products.committed[f.warps[0]]), agent))

    def run(f: Frame) -> None:
        if f.n == WARPGROUP:
            one_group(f)
            return
        for start in range(0, f.n, WARPGROUP):
            lo = int(f.threads[start])
            one_group(f.m.span(lo, lo + WARPGROUP))

    return collective(site, None, run, warps=4, full=True)


def _report(site: Site, product: _Product, f: Frame, start: int, a: Any, b: int) -> None:
    """Report to the observer which bytes of shared memory a product reads."""
    m, found = f.m, product.found
    rows, columns, depth = (int(x) for x in found.atom.shape_mnk)
    width = element_width(found.a)
    operands = [OperandRead("B", b, product.orders[1], columns, depth, width, start)]
    if not product.in_registers:
        held = depth if product.metadata is None else depth // 2
        operands.append(OperandRead("A", a, product.orders[0], rows, held, width, start))
    reads = []
    for one in operands:
        try:
            units = operand_units(one.words, one.major, one.extent, one.depth, width) - m.shared_base
        except CuteError:
            continue  # the product itself reports this
        if int(units[0]) >= 0 and int(units[-1]) + UNIT_BYTES <= m.shared_bytes:  # units are sorted
            reads.append(Touched(m.shared, 0, UNIT_BYTES, units + start))
    m.observer.multiplied(f, site)
    m.observer.issued(f, site, AsyncWork("wgmma", reads, group="wgmma", operands=operands))


def _same(site: Site, f: Frame, words: Array) -> int:
    value = int(words[0])
    if (words != words[0]).any():
        text = f"{f.text()}: the threads of a warpgroup have different descriptors"
        raise site.fault("wgmma descriptor", text, f, "wgmma.mma_async")
    return value


TABLE: Final[Mapping[str, Builder]] = {
    "ldmatrix": build_load_matrix,
    "stmatrix": build_store_matrix,
    "movmatrix": build_transpose_matrix,
    "wgmma": build_wgmma,
}
