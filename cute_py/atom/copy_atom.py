"""CopyAtom: one copy instruction, and the thread that has each bit before and after it.

An atom describes a copy bit by bit. Three layouts map (thread, bit of that thread) to a bit number: one for the source,
one for the destination, and a reference layout that tilings of the atom use. If the source layout assigns a bit number
to one thread and the destination layout assigns it to another, the instruction moves the bit between these threads.
This is ldmatrix for 16-bit elements, in bits and in values of float16:

    SM75_U32x1_LDSM_N   source       ((8,4),128):((128,0),1)      8 threads give addresses of rows of 16 bytes
                        destination  (32,32):(32,1)               each of 32 threads gets 32 bits
    of float16          source       ((8,4),8):((8,0),1)          destination  (32,2):(2,1)
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from cute_py.argument_checks import record
from cute_py.atom.element_types import cpp_type_text
from cute_py.atom.template_name import Arguments, Operation
from cute_py.dtypes import DType
from cute_py.errors import StaticAssertError
from cute_py.layout import Layout, recast_layout, size


@dataclass(frozen=True, slots=True, eq=False)
class CopyTraits:
    """CuTe's Copy_Traits: the threads, layouts and registers of a copy instruction, counted in bits.

    >>> from cute_py.atom.copy_atoms import COPY_ATOMS
    >>> row = COPY_ATOMS["SM75_U32x4_LDSM_N"]
    >>> print(row.src_layout, row.dst_layout, row.registers["D"])
    (_32,_128):(_128,_1) (_32,(_32,_4)):(_32,(_1,_1024)) (4, 'uint32')
    """

    name: str
    """C++'s operation with its template arguments."""
    op: str
    arch: str
    family: str
    thr_id: Layout
    src_layout: Layout
    """(thread, bit) -> bit number, of the source."""
    dst_layout: Layout
    ref_layout: Layout
    registers: Mapping[str, tuple[int, str]]
    """S and D -> (number of registers, their type)."""
    ptx: str
    source: str
    val_id: Layout | None = None
    """Bit -> address in tensor memory, in bits; only tensor-memory copies have it."""
    template_args: Arguments = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"copy_traits({self.name!r})"


@record
class CopyAtom:
    """A copy instruction that moves values of one type.

    `str(atom)` is the text that CuTe C++ prints. If `dtype` is None, the layouts count bits. Two atoms are equal if
    their operations and types are equal.

    >>> from cute_py.atom.copy_atoms import copy_atom
    >>> atom = copy_atom("SM75_U32x4_LDSM_N", "half_t")
    >>> print(atom.layout_src_TV, atom.layout_dst_TV, atom.num_val_src)
    (_32,_8):(_8,_1) (_32,(_2,_4)):(_2,(_1,_64)) 8
    """

    traits: CopyTraits
    dtype: DType | None
    layout_src_TV: Layout
    """(thread, value) -> value number, of the source."""
    layout_dst_TV: Layout
    layout_ref_TV: Layout

    @property
    def name(self) -> str:
        return self.traits.name

    @property
    def op(self) -> str:
        return self.traits.op

    @property
    def arch(self) -> str:
        return self.traits.arch

    @property
    def thr_id(self) -> Layout:
        return self.traits.thr_id

    @property
    def bits(self) -> int:
        """Width of one value in bits."""
        return 1 if self.dtype is None else self.dtype.bits

    @property
    def num_val_src(self) -> int:
        """Number of source values per thread."""
        return int(size(self.layout_src_TV[1]))

    @property
    def num_val_dst(self) -> int:
        return int(size(self.layout_dst_TV[1]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CopyAtom):
            return NotImplemented
        return self.name == other.name and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.name, self.dtype))

    def __repr__(self) -> str:
        return f"copy_atom({self.name!r})" if self.dtype is None else f"copy_atom({self.name!r}, {self.dtype.name!r})"

    def __str__(self) -> str:
        return (
            "Copy_Atom\n"
            f"  ThrID:        {self.thr_id}\n"
            f"  ValLayoutSrc: {self.layout_src_TV}\n"
            f"  ValLayoutDst: {self.layout_dst_TV}\n"
            f"  ValLayoutRef: {self.layout_ref_TV}\n"
            f"  ValueType:    {self.bits}b\n"
        )


CopyOperation: TypeAlias = Operation[CopyTraits]


@functools.lru_cache(maxsize=4096)
def in_values(traits: CopyTraits, dtype: DType | None) -> CopyAtom:
    """Make the atom of a copy instruction for values of one type.

    Raises:
        StaticAssertError: a value has more bits than a thread moves in one instruction.
    """
    if dtype is None:
        return CopyAtom(traits, None, traits.src_layout, traits.dst_layout, traits.ref_layout)
    layouts = []
    for label, layout in (("Src", traits.src_layout), ("Dst", traits.dst_layout), ("Ref", traits.ref_layout)):
        found = recast_layout(layout, 1, dtype.bits)
        if size(found[0]) != size(traits.thr_id):
            raise StaticAssertError(
                f"CopyOperation is not valid for {label} of ValType.",
                {
                    "operation": traits.name,
                    "value": f"{cpp_type_text(dtype)}, {dtype.bits} bits",
                    "layout in bits": layout,
                },
            )
        layouts.append(found)
    return CopyAtom(traits, dtype, *layouts)
