"""MmaAtom: one matrix-multiply instruction, and the elements of A, B and C that each thread holds.

    D = A * B + C        A is (M,K), B is (N,K), C and D are (M,N)

One thread, a quad pair, a warp, a warpgroup, or one thread in each of one or two CTAs executes an atom. The
thread-value layouts of an atom give the element for each value of each thread: `(thread, value) -> m + M*k` for A,
`n + N*k` for B, `m + M*n` for C. This is C of SM80_16x8x16, which a warp executes:

    ((_4,_8),(_2,_2)):((_32,_1),(_16,_8))        thread 5 = (1,1), value 3 = (1,1)  ->  32 + 1 + 16 + 8 = 57 = (9, 3)

The instruction reads an operand in shared memory through a descriptor, and no thread holds it. In the layout of such an
operand, every thread has all elements.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from cute_py.argument_checks import expect_choice, expect_fields, expect_integer, record
from cute_py.arith_tuple import text
from cute_py.atom.element_types import ElementType, SparseElement, cpp_type_text
from cute_py.atom.pictures import Colour, mma_latex, mma_svg
from cute_py.atom.template_name import Arguments, Operation, written
from cute_py.dtypes import DType
from cute_py.errors import InvalidValueError
from cute_py.layout import Int, Layout, complement, composition, make_layout, right_inverse, size, static
from cute_py.layout.arguments import IntTuple

_ONE: Final = Layout(Int(1), Int(0))

OPERANDS: Final = ("A", "B", "C", "D", "E", "SFA", "SFB")
"""Operands of an atom: E is the metadata of a sparse A, SFA and SFB are scale factors."""


@functools.lru_cache(maxsize=4096)
def static_layout(shape: IntTuple, stride: IntTuple) -> Layout:
    """Return a layout with static sizes and strides; repeated calls return the same object.

    >>> print(static_layout(((4, 8), 2), ((16, 1), 8)))
    ((_4,_8),_2):((_16,_1),_8)
    """
    return Layout(static(shape), static(stride))


@record
class FragmentType:
    """How an instruction receives an operand.

    `kind`: 'value' (registers), 'smem_desc' (a descriptor of shared memory), 'tmem' (tensor memory). `name` and
    `parameters` describe C++'s fragment type: `smem_desc<K>`, `tmem_frg<float32,uint32,1,Interleaved>`.

    >>> from cute_py.atom import mma_atom
    >>> print(mma_atom("SM80_16x8x16_F32F16F16F32_TN").fragment_type("A").kind)
    value
    """

    kind: Literal["value", "smem_desc", "tmem"]
    name: str
    parameters: tuple[Any, ...] = ()

    def __str__(self) -> str:
        parts = [cpp_type_text(p) if isinstance(p, (DType, SparseElement)) else str(p) for p in self.parameters]
        return f"{self.name}<{','.join(parts)}>" if parts else self.name


@dataclass(frozen=True, slots=True, eq=False)
class MmaAtom:
    """One MMA instruction: its shape, its threads, and the thread-value layouts of its operands.

    Two atoms are equal if their names are equal. `str(atom)` is the text that CuTe C++ prints.

    >>> from cute_py.atom.mma_atoms import mma_atom
    >>> atom = mma_atom("SM80_16x8x16_F32F16F16F32_TN")
    >>> print(atom.layoutC_TV, atom.a_dtype, atom.registers["A"], atom.ptx)
    ((_4,_8),(_2,_2)):((_32,_1),(_16,_8)) float16 (4, 'uint32') mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    """

    name: str
    """C++'s operation with all its template arguments."""
    op: str
    """C++'s operation without template arguments."""
    arch: str
    """First architecture that supports it: `sm80`, or `any`."""
    family: str
    """The header of CuTe that declares it: `sm80`, `sm90_gmma_sparse`, `sm100_umma`, ..."""
    shape_mnk: tuple[Int, Int, Int]
    thr_id: Layout
    """Index of a thread within the atom -> thread index in the CTA."""
    layouts: Mapping[str, Layout]
    """Operand -> (thread, value) -> index of an element."""
    types: Mapping[str, ElementType]
    """Operand -> element type."""
    registers: Mapping[str, tuple[int, str]]
    """Operand -> (number of registers, their type); `(0, 'void')` if the instruction has none."""
    ptx: str
    """The PTX instruction with its modifiers, without operands."""
    source: str
    """Header of CuTe that defines the traits."""
    fragments: Mapping[str, FragmentType] = field(default_factory=dict)
    """Operand -> how the instruction receives it, if not in registers of the element type."""
    template_args: Arguments = field(default_factory=dict)
    sf_vec_size: int | None = None
    """Elements of K that share one scale factor."""
    idesc: int | None = None
    """32-bit instruction descriptor of a tensor-memory MMA, as C++ makes it by default."""

    def __post_init__(self) -> None:
        expect_fields(self)
        for table, what in ((self.layouts, "layouts"), (self.types, "types")):
            if missing := {"A", "B", "C"} - table.keys():
                why = f"the {what} of an MMA atom must have A, B and C; missing: {', '.join(sorted(missing))}"
                raise InvalidValueError(why)

    @property
    def layoutA_TV(self) -> Layout:
        return self.layouts["A"]

    @property
    def layoutB_TV(self) -> Layout:
        return self.layouts["B"]

    @property
    def layoutC_TV(self) -> Layout:
        return self.layouts["C"]

    @property
    def a_dtype(self) -> ElementType:
        return self.types["A"]

    @property
    def b_dtype(self) -> ElementType:
        return self.types["B"]

    @property
    def c_dtype(self) -> ElementType:
        return self.types["C"]

    @property
    def d_dtype(self) -> ElementType:
        return self.types["D"]

    def fragment_type(self, operand: str) -> FragmentType:
        """Return the fragment type of an operand; by default, registers of its element type."""
        expect_choice(operand, tuple(x for x in OPERANDS if x in self.types), f"an operand of {self.name}")
        found = self.fragments.get(operand)
        return found or FragmentType("value", cpp_type_text(self.types["C" if operand == "D" else operand]))

    def layout_TV(self, operand: Literal["A", "B", "C"]) -> Layout:
        """Return the layout (thread index, value) -> element of an operand, as in a tiled MMA of this one atom.
        Thread indices count the threads of the atom, not of the CTA.

        >>> from cute_py.atom.mma_atoms import mma_atom
        >>> print(mma_atom("SM70_8x8x4_F16F16F16F16_TN").layout_TV("A"))      # threads 0 to 3 and 16 to 19
        ((_4,_4,_2),(_4,(_1,_1))):((_1,_0,_4),(_8,(_0,_0)))
        """
        layout = self.layouts[expect_choice(operand, ("A", "B", "C"), "operand")]
        numbers = right_inverse(make_layout(self.thr_id, complement(self.thr_id)))
        coordinates = composition(Layout((size(self.thr_id), Int(1)), (Int(1), Int(0))), numbers)
        threads: Layout = composition(make_layout(layout[0], _ONE), coordinates)
        return make_layout(threads, make_layout(layout[1], make_layout(_ONE, _ONE)))

    def holders(self, operand: Literal["A", "B", "C"], row: int, column: int) -> tuple[tuple[int, int], ...]:
        """List (thread, value) for each thread with the element in its registers, in the order of the threads.

        Args:
            row, column: the element's indices: (m, k) of A, (n, k) of B, (m, n) of C.
        Raises:
            InvalidValueError: the operand has no such element, or no thread holds it, because the operand is in shared
                or tensor memory.

        >>> from cute_py.atom import mma_atom
        >>> mma_atom("SM90_64x128x16_F32BF16BF16_SS").holders("C", 17, 42)
        ((37, 20),)
        """
        layout = self.layouts[expect_choice(operand, ("A", "B", "C"), "operand")]
        expect_registers(self, operand)
        m, n, k = (int(size(extent)) for extent in self.shape_mnk)
        rows, columns = {"A": (m, k), "B": (n, k), "C": (m, n)}[operand]
        row = expect_integer(row, "row", 0, rows - 1)
        place = row + rows * expect_integer(column, "column", 0, columns - 1)
        values: dict[int, list[int]] = {}
        for value in range(int(size(layout[1]))):
            values.setdefault(int(layout[1](value)), []).append(value)
        threads = [(int(self.thr_id(at)), int(layout[0](at))) for at in range(int(size(layout[0])))]
        return tuple([(thread, value) for thread, begin in threads for value in values.get(place - begin, ())])

    def latex(self, color: Colour | None = None) -> str:
        """Return the text of C++'s print_latex: a picture of A, B and C, with the thread and the value in each cell.

        Args:
            color: (thread, value) -> TikZ colour; default: one of eight colours by thread.
        """
        return mma_latex({x: self.layout_TV(x) for x in ("A", "B", "C")}, self.shape_mnk, color)

    def svg(self, color: Colour | None = None) -> str:
        """Return the text of C++'s print_svg.

        Args:
            color: (thread, value) -> `red,green,blue`; default: one of eight colours by thread.
        """
        return mma_svg({x: self.layout_TV(x) for x in ("A", "B", "C")}, self.shape_mnk, color)

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, MmaAtom) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"mma_atom({self.name!r})"

    def __str__(self) -> str:
        return (
            "MMA_Atom\n"
            f"  ThrID:      {self.thr_id}\n"
            f"  Shape_MNK:  {text(self.shape_mnk)}\n"
            f"  LayoutA_TV: {self.layoutA_TV}\n"
            f"  LayoutB_TV: {self.layoutB_TV}\n"
            f"  LayoutC_TV: {self.layoutC_TV}\n"
        )


def expect_registers(atom: MmaAtom, operand: Literal["A", "B", "C"]) -> None:
    """Refuse an operand that is not in registers.

    Raises:
        InvalidValueError: the operand is in shared or tensor memory.
    """
    kind = atom.fragment_type(operand).kind
    if kind != "value":
        where = "tensor memory" if kind == "tmem" else "shared memory"
        raise InvalidValueError(f"{operand} of {atom.op} is in {where}; no thread holds its elements")


MmaOperation: TypeAlias = Operation[MmaAtom]


def make_mma_atom(
    operation: MmaOperation,
    values: Arguments,
    shape_mnk: tuple[int, int, int],
    thr_id: Layout,
    layouts: Mapping[str, Layout],
    types: Mapping[str, ElementType],
    registers: Mapping[str, tuple[int, str]],
    ptx: str,
    header: str,
    **more: Any,
) -> MmaAtom:
    """Make the atom of an operation, given the values of its template arguments and its properties."""
    m, n, k = map(Int, shape_mnk)
    op = operation.namespace + operation.name
    head = (written(op, operation.parameters, values), op, operation.arch, operation.family, (m, n, k))
    source = f"cute/atom/{header}.hpp"
    return MmaAtom(*head, thr_id, layouts, types, registers, ptx, source, template_args=values, **more)
