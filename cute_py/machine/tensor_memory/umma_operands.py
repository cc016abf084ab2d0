"""The operands of one tcgen05.mma as CuTe tensors: A and B in shared memory, scale factors and D in tensor memory.

    UmmaOperands(idesc, a, b)      .A, .B, .D, .SFA, .SFB     CuTe tensors of one CTA: the address of each element
                                   explain()                  a description of the operands as text

The machine computes with these layouts: `machine/operands` has the layouts of shared memory, and `operand_layouts` has
the layouts of tensor memory.
Source: PTX ISA 9.0, tcgen05: canonical layouts, data path layouts, layouts of scale factors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from cute_py.argument_checks import expect, expect_integer, expect_integers, is_integer
from cute_py.atom.element_types import element_type
from cute_py.atom.smem_descriptor import (
    UNIT_BYTES,
    DescriptorKind,
    Major,
    SmemDescriptor,
    SmemSwizzle,
    offset_meanings,
)
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import InvalidTypeError, TmemError, counted, given
from cute_py.layout import Swizzle
from cute_py.machine.judgement.observer import OperandRead
from cute_py.machine.operands import operand_layout, operand_places
from cute_py.machine.tensor_memory.instruction_descriptor import MMA_KINDS, InstructionDescriptor
from cute_py.machine.tensor_memory.operand_layouts import GROUP, factor_layout, lane_layout
from cute_py.machine.tensor_memory.products import (
    PACKED,
    SCALE_ADDRESS,
    Product,
    check_places,
    half_lanes,
    lane_parts,
    operand_reads,
    scale_halves,
    split_address,
    units_of,
    width_of_a,
)
from cute_py.tensor import Tensor, make_smem_ptr, make_tensor, make_tmem_ptr

VECTORS: Final = {"mxf8f6f4": (1,), "mxf4": (2,), "mxf4nvf4": (4, 2)}
"""Kind -> permitted numbers of scale factors of a row, the usual number first."""
_SHOWN_LINES: Final = 8
_SHOWN_UNITS: Final = 8


@dataclass(frozen=True, slots=True)
class UmmaOperands:
    """The operands of one tcgen05.mma as tensors, which give the address of each element of A, B, D and the scale
    factors.

    Args:
        idesc: the instruction descriptor, 32 bits. a, b: the descriptors of A and B in shared memory, 64 bits or
            `SmemDescriptor`; for A in tensor memory (`a_in_tmem`), its address.
        kind: the name after `kind::`, such as 'f16'. cta_group: number of participating CTAs, 1 or 2. d: address of D
            in tensor memory, with the lane in bits 16 and up and the column in bits 0 to 15.
        scales: addresses of the scale factors of A and B. scale_vec: number of factors per row; the default is the
            number that the kind has without a modifier, and 4 for mxf4nvf4.
        weights: whether the instruction has .ws.
    Raises:
        TmemError: the instruction does not support the instruction descriptor, the location of an operand, or the
            number of factors.
        InvalidTypeError, InvalidValueError: another argument has a wrong type or value.

    `explain` describes the operands as text, and `cute_py.draw.draw` makes a picture. The tensors belong to one CTA;
    the second CTA of a pair has its rows at the same addresses. The tensor of a sparse A has only its stored elements.

    >>> operands = UmmaOperands(0x08400010, 0x4000404000010040, 0x4000404000010440)
    >>> print(operands.A, operands.D, sep="\\n")
    Sw<3,4,3>_smem_ptr[16b](0x400) o ((_8,_16),(_16,_1)):((_64,_512),(_1,_8))
    tmem_[32b](0x0000.0000) o (_128,_256):(_65536,_1)
    """

    idesc: int
    a: int | SmemDescriptor
    b: int | SmemDescriptor
    kind: str = "f16"
    cta_group: int = 1
    d: int = 0
    scales: tuple[int, int] = (0, 0)
    scale_vec: int | None = None
    a_in_tmem: bool = False
    weights: bool = False

    def __post_init__(self) -> None:
        one = InstructionDescriptor(self.idesc, self.kind)
        object.__setattr__(self, "cta_group", expect_integer(self.cta_group, "cta_group", 1, 2))
        for name, flag in (("a_in_tmem", self.a_in_tmem), ("weights", self.weights)):
            expect(flag, bool, name)
        for name in ("a", "b"):
            value = getattr(self, name)
            if isinstance(value, SmemDescriptor):
                if value.kind is not DescriptorKind.TCGEN05:
                    raise InvalidTypeError(f"{name} is a {value.kind.value} descriptor; must be a tcgen05 descriptor")
                value = value.encode()
            object.__setattr__(self, name, expect_integer(value, f"the descriptor {name}", 0, (1 << 64) - 1))
        object.__setattr__(self, "d", expect_integer(self.d, "the address of D", 0, (1 << 32) - 1))
        pair = expect_integers(self.scales, "an address of scale factors", 0, (1 << 32) - 1)
        if len(pair) != 2:
            raise TmemError(
                f"scales has {counted(len(pair), 'address')}; must have two, those of the factors of A and of B"
            )
        object.__setattr__(self, "scales", (pair[0], pair[1]))
        allowed = VECTORS.get(self.kind, (0,))
        vector = allowed[0] if self.scale_vec is None else self.scale_vec
        if not is_integer(vector) or vector not in allowed:
            must = " or ".join(map(str, allowed)) if allowed != (0,) else "None"
            raise TmemError(f"scale_vec = {given(vector)}; must be {must} with kind::{self.kind}")
        object.__setattr__(self, "scale_vec", vector or None)
        found = one.check(self.cta_group, weights=self.weights)
        if found:
            more = {f"and {number}": other.message for number, other in enumerate(found[1:], 2)}
            raise TmemError(f"instruction descriptor {one}: {found[0].message}", more)
        check_places(self._product)
        for read in self.reads:
            operand_places(read.words, read.major, read.extent, read.depth, read.bits, read.kind)

    # ---- tensors -----------------------------------------------------------------------------------------------------

    @property
    def descriptor(self) -> InstructionDescriptor:
        """The instruction descriptor."""
        return InstructionDescriptor(self.idesc, self.kind)

    @property
    def A(self) -> Tensor:
        """The tensor of A, (rows of one CTA, K), in shared or tensor memory."""
        return self._operand("A")

    @property
    def B(self) -> Tensor:
        """The tensor of B, (rows of one CTA, K), in shared memory."""
        return self._operand("B")

    @property
    def D(self) -> Tensor:
        """The tensor of D, (rows of one CTA, N), in tensor memory."""
        product = self._product
        element = as_dtype(product.descriptor.d_type)
        layout = lane_layout(
            product.rows, product.descriptor.n, lane_parts(product), halves=half_lanes(product), bits=element.bits
        )
        return make_tensor(make_tmem_ptr(self.d, element), layout)

    @property
    def SFA(self) -> Tensor | None:
        """The scale factors of A in tensor memory: ((row, copy), (k, factor)); None for kinds without scale factors."""
        return self._factors("A")

    @property
    def SFB(self) -> Tensor | None:
        """The scale factors of B in tensor memory: ((row, copy), (k, factor)); None for kinds without scale factors."""
        return self._factors("B")

    @property
    def _product(self) -> Product:
        scales = self.scales if self.scale_vec else (0, 0)
        return Product(
            self.descriptor, self.cta_group, int(self.a), self.a_in_tmem, int(self.b), self.d, adds=True,
            vectors=self.scale_vec or 0, scales_a=scales[0], scales_b=scales[1], weights=self.weights,
        )  # fmt: skip

    @property
    def reads(self) -> list[OperandRead]:
        """The operands in shared memory, as the machine reads them."""
        return operand_reads(self._product, 0)

    def _operand(self, name: str) -> Tensor:
        product = self._product
        descriptor = product.descriptor
        element = self._element(name)
        if name == "A" and self.a_in_tmem:
            held = descriptor.k // 2 if descriptor.sparse else descriptor.k
            layout = lane_layout(
                product.rows, held, 1, halves=half_lanes(product), bits=width_of_a(product), packed=True
            )
            return make_tensor(make_tmem_ptr(int(self.a), element), layout)
        read = next(one for one in self.reads if one.name == name)
        fields = SmemDescriptor.decode(read.words)
        depth = 2 * read.depth if product.kind.packed else read.depth
        layout = operand_layout(
            fields.swizzle,
            fields.leading * UNIT_BYTES,
            fields.stride * UNIT_BYTES,
            read.major,
            read.extent,
            depth,
            element.bits,
        )
        swizzle = Swizzle(*fields.swizzle.cute) if fields.swizzle else None
        return make_tensor(make_smem_ptr(fields.start * UNIT_BYTES, element, swizzle), layout)

    def _element(self, name: str) -> DType:
        """The element type of A or B; for narrow elements that occupy a byte each, CuTe's unpacked type for shared
        memory.
        """
        short = (self.descriptor.a_type if name == "A" else self.descriptor.b_type) or ""
        found = as_dtype(short)
        if short not in PACKED or MMA_KINDS[self.kind].packed:
            return found
        return as_dtype("uint8") if name == "A" and self.a_in_tmem else as_dtype(f"{found.name}_unpacksmem")

    def _factors(self, operand: str) -> Tensor | None:
        product, one = self._product, self.descriptor
        if not product.vectors:
            return None
        rows = product.rows if operand == "A" else one.n
        layout = factor_layout(rows, one.k, product.vectors, scale_halves(product, operand))
        address = self.scales["AB".index(operand)] & SCALE_ADDRESS
        pointer = make_tmem_ptr(address, element_type(f"float_{one.scale_type}_t"))
        return make_tensor(pointer + one.raw(f"scale_{operand.lower()}_id"), layout)

    # ---- text --------------------------------------------------------------------------------------------------------

    def explain(self) -> str:
        """Describe the operands as text: extents, core matrices, offsets, swizzle, addresses, lanes and columns.

        >>> print(UmmaOperands(0x08400010, 0x4000404000010040, 0x4000404000010440).explain().split("\\n\\n")[1])
        A in shared memory: 128 rows x 16 of f16, K-major
          tensor       : Sw<3,4,3>_smem_ptr[16b](0x400) o ((_8,_16),(_16,_1)):((_64,_512),(_1,_8))
          core matrices: 16 x 2, of 8 rows of 16 bytes; from one row to the next 128 bytes
          LBO          : 16 bytes, unused: swizzled rows are contiguous
          SBO          : 1024 bytes from 8 rows to the next 8 rows
          swizzle      : B128: units of 16 bytes are permuted within 1024 bytes
          reads        : 256 units of 16 bytes, 4096 bytes, from 0x400 to 0x43ff
          row 0        : 0x400 0x410
          row 1        : 0x490 0x480
          row 2        : 0x520 0x530
          row 3        : 0x5b0 0x5a0
          row 4        : 0x640 0x650
          row 5        : 0x6d0 0x6c0
          row 6        : 0x760 0x770
          row 7        : 0x7f0 0x7e0
        """
        return "\n\n".join("\n".join(part) for part in self._parts())

    def __str__(self) -> str:
        return self.explain()

    def _parts(self) -> Iterator[list[str]]:
        one = self.descriptor
        words = f"tcgen05.mma{'.ws' if self.weights else ''}{'.sp' if one.sparse else ''}"
        head = [
            f"{words} of kind::{self.kind}, cta_group::{self.cta_group}",
            f"  D {one.m} x {one.n} of {one.d_type}, A {one.m} x {one.k} of {one.a_type}, "
            f"B {one.n} x {one.k} of {one.b_type}",
        ]
        head += [f"  {name} is negated" for name, negative in zip("AB", one.negated, strict=True) if negative]
        if self.cta_group == 2:
            head.append(
                f"  two CTAs: the first has rows 0 to {one.m // 2 - 1} of A and D and rows 0 to {one.n // 2 - 1} of B, "
                f"and the second has the other rows at the same places"
            )
        yield head
        if self.a_in_tmem:
            yield self._a_in_tmem()
        for read in sorted(self.reads, key=lambda one: one.name):
            yield self._in_shared(read)
        yield self._accumulator()
        for operand in "AB":
            if (factors := self._factors(operand)) is not None:
                yield self._scales(operand, factors)

    def _in_shared(self, read: OperandRead) -> list[str]:
        fields = SmemDescriptor.decode(read.words)
        element = self._element(read.name)
        depth = 2 * read.depth if MMA_KINDS[self.kind].packed else read.depth
        meanings = offset_meanings(read.major, not fields.swizzle)
        units = units_of(read)
        addresses = unit_addresses(read)
        pitch = fields.swizzle.row_bytes
        rows = 4 if fields.swizzle is SmemSwizzle.B128_ATOM32 and read.major is Major.MN else 8
        line = "row" if read.major is Major.K else "k"
        core = (
            f"{rows} rows of 16 bytes"
            if read.major is Major.K
            else f"{rows} k by 16 bytes along {'MN'[read.name == 'B']}"
        )
        counts = (
            (read.extent // 8, addresses.shape[1])
            if read.major is Major.K
            else (addresses.shape[1], len(addresses) // rows)
        )
        stored = " that are stored" if read.name == "A" and self.descriptor.sparse else ""
        last = int(units.max()) + UNIT_BYTES - 1
        lines = [
            f"{read.name} in shared memory: {read.extent} rows x {depth}{stored} of {read.element}, {read.major}-major",
            f"  tensor       : {self._operand(read.name)}",
            f"  core matrices: {counts[0]} x {counts[1]}, of {core}; from one {line} to the next {pitch} bytes",
            f"  LBO          : {fields.leading * UNIT_BYTES} bytes{meanings['leading']}",
            f"  SBO          : {fields.stride * UNIT_BYTES} bytes{meanings['stride']}",
            f"  swizzle      : {_swizzle_text(fields.swizzle)}",
            f"  reads        : {len(units)} units of 16 bytes, {len(units) * UNIT_BYTES} bytes, "
            f"from {int(units.min()):#x} to {last:#x}",
        ]
        if "unpacksmem" in element.name:
            held = 16 * as_dtype(read.element).bits // 8
            lines.append(f"  packing      : 16 elements in 16 bytes, in the first {held}")
        for number, row in enumerate(addresses[:_SHOWN_LINES]):
            shown = " ".join(f"{address:#x}" for address in row[:_SHOWN_UNITS].tolist())
            more = " ..." if len(row) > _SHOWN_UNITS else ""
            lines.append(f"  {f'{line} {number}':<13}: {shown}{more}")
        return lines

    def _a_in_tmem(self) -> list[str]:
        product = self._product
        lane, column = split_address(int(self.a))
        held = product.descriptor.k // 2 if product.descriptor.sparse else product.descriptor.k
        count = held * width_of_a(product) // 32
        stored = " that are stored" if product.descriptor.sparse else ""
        lines = [
            f"A in tensor memory: {product.rows} rows x {held}{stored} of {product.descriptor.a_type}",
            f"  tensor       : {self._operand('A')}",
            f"  columns      : {column} to {column + count - 1}, {32 // width_of_a(product)} elements in each",
            f"  row r        : {_lane_text(product, lane)}",
        ]
        if lane_parts(product) > 1:
            lines[-1] = "  row r        : lane r, and again lane r + 64"
        return lines

    def _accumulator(self) -> list[str]:
        product, one = self._product, self.descriptor
        lane, column = split_address(self.d)
        parts = lane_parts(product)
        width = one.n // parts
        each = " in each CTA" if self.cta_group == 2 else ""
        if parts > 1:
            place = f"lane r + {product.rows} * (n // {width}), column {_plus(column, f'n % {width}')}"
        else:
            place = f"{_lane_text(product, lane)}, column {_plus(column, 'n')}"
        lines = [
            f"D in tensor memory: {product.rows} rows x {one.n} of {one.d_type}{each}",
            f"  tensor       : {self.D}",
            f"  columns      : {column} to {column + width - 1}",
            f"  D(r, n)      : {place}",
        ]
        if one.d_type == "f16":
            lines.append("  elements     : the lower half of each column")
        return lines

    def _scales(self, operand: str, tensor: Tensor) -> list[str]:
        product, one = self._product, self.descriptor
        rows = product.rows if operand == "A" else one.n
        halves = scale_halves(product, operand)
        column = split_address(self.scales["AB".index(operand)] & SCALE_ADDRESS)[1]
        first = one.raw(f"scale_{operand.lower()}_id")
        held = rows // halves
        count = -(-held // GROUP)
        bytes_of = f"byte {first}" if product.vectors == 1 else f"bytes {first} to {first + product.vectors - 1}"
        lines = [
            f"SF{operand} in tensor memory: {rows} rows x {product.vectors} of {one.scale_type}, "
            f"each for {one.k // product.vectors} elements of K",
            f"  tensor       : {tensor}",
            f"  columns      : {column} to {column + count - 1}, {bytes_of} of each",
        ]
        if halves == 1:
            lines.append(
                f"  row r        : lane r % 32, column {_plus(column, 'r // 32')}; again in lanes + 32, 64, 96"
            )
        else:
            lines.append(
                f"  row r        : lane 64 * (r // {held}) + r % 32, column {_plus(column, f'r % {held} // 32')}; "
                "again in lanes + 32"
            )
        return lines


def unit_addresses(read: OperandRead) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """Addresses of the 16-byte units of an operand in shared memory, with axes (row, unit along K) for a K-major
    operand and (k, unit along the rows) for an MN-major operand.
    """
    places, _, _ = operand_places(read.words, read.major, read.extent, read.depth, read.bits, read.kind)
    lines = (places if read.major is Major.K else places.T) * (read.bits // 8)
    found: np.ndarray[tuple[int, int], np.dtype[np.int64]] = lines[:, :: UNIT_BYTES * 8 // read.bits]
    return found


def _plus(first: int, text: str) -> str:
    return f"{first} + {text}" if first else text


def _lane_text(product: Product, lane: int) -> str:
    if half_lanes(product):
        return f"lane {_plus(lane, '32 * (r // 16) + r % 16')}"
    return f"lane {_plus(lane, 'r')}"


def _swizzle_text(swizzle: SmemSwizzle) -> str:
    if not swizzle:
        return "none"
    size = 1 << swizzle.cute[1]
    return f"{swizzle.name}: units of {size} bytes are permuted within {swizzle.period} bytes"


def operands_of_product(product: Product) -> UmmaOperands:
    """Return the operands of a product that the machine ran."""
    return UmmaOperands(
        product.descriptor.value, product.a, product.b, product.descriptor.kind, product.ctas, product.d,
        (product.scales_a, product.scales_b), product.vectors or None, product.a_in_tmem, product.weights,
    )  # fmt: skip
