"""Corners in which CuTe C++ and this library met late. The expected texts are printed by CuTe C++ (host build)."""

from typing import Any

import numpy
import pytest

import cute_py as cute
from cute_py import E, Int, Layout, Swizzle, parse
from cute_py.arith_tuple import text
from cute_py.atom import tile_to_mma_shape
from cute_py.errors import InvalidTypeError

ARITH = cute.ArithTuple(Int(1), 2, 3)


def static(tree: Any) -> Any:
    return tuple(map(static, tree)) if isinstance(tree, tuple) else Int(tree)


@pytest.mark.parametrize(
    ("made", "printed"),
    [
        (lambda: cute.take(ARITH, 0, 2), "(_1,2)"),
        (lambda: cute.select(ARITH, 0, 2), "(_1,3)"),
        (lambda: cute.flatten(cute.ArithTuple(1, cute.ArithTuple(2, Int(3)))), "(1,2,_3)"),
        (lambda: cute.group_modes(ARITH, 0, 2), "((_1,2),3)"),
        (lambda: cute.append(ARITH, 7), "(_1,2,3,7)"),
        (lambda: cute.prepend(ARITH, 7), "(7,_1,2,3)"),
        (lambda: cute.append(ARITH, 7, 5), "(_1,2,3,7,7)"),
        (lambda: cute.replace(ARITH, 1, 9), "(_1,9,3)"),
        (lambda: cute.unflatten(cute.ArithTuple(1, 2, 3), (1, (1, 1))), "(1,(2,3))"),
    ],
)
def test_modes_of_arithmetic_tuples(made: Any, printed: str) -> None:
    assert text(made()) == printed
    assert type(made()) is tuple


@pytest.mark.parametrize("operation", [cute.append, cute.prepend])
def test_errors_name_the_operation_that_was_called(operation: Any) -> None:
    with pytest.raises(InvalidTypeError, match=f"^{operation.__name__} takes a layout"):
        operation(Swizzle(3, 4, 3), 1)


def test_elements_of_128_bits() -> None:
    """Printed types, and elements that are read and written exactly."""
    assert str(cute.make_tensor(cute.make_gmem_ptr(0x1000, "uint128_t"), Int(4))) == "gmem_ptr[128b](0x1000) o _4:_1"
    words = cute.make_tensor(cute.make_gmem_ptr(0x1000, "uint32"), (Int(8), Int(4)))
    assert str(cute.recast(words, "uint128_t")) == "gmem_ptr[128b](0x1000) o (_2,_4):(_1,_2)"
    held = numpy.arange(8, dtype=numpy.uint64) + 2**63
    units = cute.recast(cute.make_tensor(held, Int(8)), "uint128")
    assert [units[i] for i in range(4)] == [int(held[2 * i]) + (int(held[2 * i + 1]) << 64) for i in range(4)]
    assert cute.format_tensor(units, header=False).split() == [str(units[i]) for i in range(4)]
    units[1] = 2**128 - 3
    assert held[2:4].tolist() == [2**64 - 3, 2**64 - 1]
    for wrong in (2**128, -1, 1.5):
        with pytest.raises(cute.errors.TensorAccessError):
            units[1] = wrong


@pytest.mark.parametrize(
    ("layout", "right", "left", "complement", "below_32"),
    [
        ("(_1,_1):(_1@0,_1@1)", "_1:_0", "_1:_0", "_1:_0", "_32:_1"),
        ("_1:_1@0", "_1:_0", "_1:_0", "_1:_0", "_32:_1"),
        ("(_1,_4):(_1@0,_2)", "_1:_0", "(_2,_4):(_0,_1)", "_2:_1", "(_2,_4):(_1,_8)"),
    ],
)
def test_basis_strides_that_never_move(layout: str, right: str, left: str, complement: str, below_32: str) -> None:
    """C++ drops the modes of size 1 first, and compiles what is left."""
    made: Any = parse(layout)
    assert str(cute.right_inverse(made)) == right
    assert str(cute.left_inverse(made)) == left
    assert str(cute.complement(made)) == complement
    assert str(cute.complement(made, Int(32))) == below_32


def test_what_is_static() -> None:
    composed: Any = parse("Sw<3,4,3> o _0 o _8:_1")
    assert cute.is_static(Swizzle(3, 4, 3))
    assert cute.is_static((Layout(Int(8), Int(2)), Int(32)))
    assert cute.is_static(composed)
    assert not cute.is_static((Layout(8, Int(2)), Int(32)))
    assert not cute.is_static(parse("Sw<3,4,3> o 4 o _8:_1"))
    assert not cute.is_static(parse("Sw<3,4,3> o _0 o 8:_1"))


PRODUCTS: list[Any] = [
    cute.logical_product,
    cute.zipped_product,
    cute.tiled_product,
    cute.flat_product,
    cute.blocked_product,
    cute.raked_product,
    lambda block, tiler: cute.tile_to_shape(block, (Int(16), Int(16))),
]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_product_of_a_tensor_is_refused(product: Any) -> None:
    """Copies of a tensor lie outside its memory; C++ does not compile them."""
    block = Layout((Int(8), Int(4)))
    made = product(block, Layout(Int(2)))
    assert cute.size(made) > cute.size(block)
    with pytest.raises(InvalidTypeError, match="takes a layout") as refused:
        product(cute.make_tensor(numpy.zeros(32), block), Layout(Int(2)))
    assert "tensor.layout" in str(refused.value)


def test_a_tensor_as_std_cout_shows_it() -> None:
    tensor = cute.make_tensor(cute.counting_iterator(40), (Int(2), 3))
    assert cute.ostream_text(tensor) == cute.format_tensor(tensor, style="ostream")
    with pytest.raises(cute.errors.TensorAccessError):
        cute.ostream_text(cute.make_tensor(cute.make_gmem_ptr(0x1000, "half"), Int(4)))


def test_members_of_cpp_layouts() -> None:
    layout: Any = parse("(_4,(_2,_3)):(_6,(_1,_2))")
    swizzled: Any = parse("Sw<2,0,3> o _0 o (_4,(_2,_3)):(_6,(_1,_2))")
    assert [text(cute.get_flat_coord(layout, i)) for i in (9, Int(9), 30)] == ["(1,3)", "(_1,_3)", "(1,0)"]
    assert cute.get_flat_coord(Layout(Int(8)), 5) == 5
    assert str(cute.with_shape(layout, Int(8), Int(3))) == "((_4,_2),_3):((_6,_1),_2)"
    assert cute.with_shape(layout, (Int(8), Int(3))) == cute.with_shape(layout, Int(8), Int(3))
    assert str(cute.with_shape(Layout(8), 4, 2)) == "(4,2):(_1,4)"
    assert str(cute.with_shape(swizzled, Int(8), Int(3))) == "Sw<2,0,3> o _0 o ((_4,_2),_3):((_6,_1),_2)"


def test_the_size_of_tiled_operations_is_their_threads() -> None:
    mma = cute.make_tiled_mma("SM80_16x8x16_F32F16F16F32_TN", (Int(2), Int(2), Int(1)))
    assert [cute.size(mma), *(cute.size(mma, mode) for mode in range(4))] == [128, 32, 2, 2, 1]
    atom = cute.copy_atom("UniversalCopy<uint128_t>", "half_t")
    copy = cute.make_tiled_copy(atom, Layout((Int(32), Int(8)), (Int(8), Int(1))), Layout((Int(1), Int(8))))
    assert cute.size(copy) == copy.size() == 256


@pytest.mark.parametrize(
    ("atom", "shape", "order", "printed"),
    [
        ("K_SW128", ((128, 16), 1, 4), None, "((_128,_16),_1,_4):((_64,_1),_0,_16)"),
        ("K_SW128", ((128, 16), 1, 4, 3), None, "((_128,_16),_1,_4,(_1,_3)):((_64,_1),_0,_16,(_0,_8192))"),
        (
            "MN_SW64",
            ((128, 16), 2, 4, 3),
            None,
            "(((_32,_4),(_8,_2)),_2,_4,(_1,_3)):(((_1,_256),(_32,_2048)),_1024,_4096,(_0,_16384))",
        ),
        (
            "MN_SW64",
            ((128, 16), 2, 4, 3),
            (2, 1, 3),
            "(((_32,_4),_16),_2,_4,(_1,_3)):(((_1,_2048),_32),_8192,_512,(_0,_16384))",
        ),
    ],
)
def test_a_layout_atom_over_the_tile_of_an_mma(atom: str, shape: Any, order: Any, printed: str) -> None:
    args = () if order is None else (static(order),)
    made = tile_to_mma_shape(cute.umma_layout(atom, "half_t"), static(shape), *args)
    assert str(made).endswith(f"smem_ptr[16b](unset) o {printed}")


@pytest.mark.parametrize("shape", [8, (8, 8), ((8, 8), 1), (8, 8, 8), ((8, 8, 8), 1, 1)])
def test_the_tile_of_an_mma_has_its_profile(shape: Any) -> None:
    with pytest.raises(InvalidTypeError, match="MMA_M"):
        tile_to_mma_shape(Layout((Int(8), Int(8))), shape)


def test_strides_that_move_keep_their_axis() -> None:
    """With a mode that moves, each axis is inverted by itself, as before."""
    assert str(cute.right_inverse(Layout((Int(4), Int(8)), (E(1), E(0))))) == "(_8,_4):(_4,_1)"
