"""Corner cases of every operation, as CuTe C++ prints them (its headers, compiled and run), written as expressions.

`L(shape, stride)` has static leaves, `D(n)` is a run-time integer, `SW(b,m,s)` a swizzle, None an underscore.
"""

from __future__ import annotations

import pytest

from cute_py.errors import StaticAssertError
from tests.each import each_of
from tests.oracle.expressions import evaluate, shown

TEXTS = {
    # default strides: static 1s get stride 0, run-time 1s do not
    "L((1,4))": "(_1,_4):(_0,_1)",
    "L((4,1,8))": "(_4,_1,_8):(_1,_0,_4)",
    "L((4,D(1),8))": "(_4,1,_8):(_1,_4,4)",
    "L(1)": "_1:_0",
    # coalesce: static neighbours merge, run-time ones do not
    "coalesce(L((4,D(8)),(1,4)))": "(_4,8):(_1,_4)",
    "coalesce(L((D(4),8),(1,D(4))))": "(4,_8):(_1,4)",
    "coalesce(L((1,1)))": "_1:_0",
    "coalesce(L((2,(1,6)),(1,(6,2))),(1,1))": "(_2,_6):(_1,_2)",
    "coalesce(L((2,4),(4,1)),8)": "(_2,_4):(_4,_1)",
    "filter(L((2,1,3),(0,7,1)))": "_3:_1",
    # composition: accepted though it is another function; size-1, negative, beyond the domain
    "composition(L((4,6,8),(2,3,5)),L(6,3))": "(_2,_3):(_6,_3)",
    "composition(L((4,2,8),(3,12,97)),L(3,3))": "_3:_9",
    "composition(L((4,8),(8,1)),L(1,3))": "_1:_1",
    "composition(L((4,8),(8,1)),L(4,-1))": "_4:_-8",
    "composition(L(1,1),L((1,4),(1,1)))": "(_1,_4):(_1,_1)",
    "composition(L((4,8),(8,1)),(2,))": "(_2):(_8)",
    "composition(L((4,8),(8,1)),(None,4))": "(_4,_4):(_8,_1)",
    "composition(L((D(10),2),(16,4)),L((5,4),(1,5)))": "((5,1),(2,2)):((_16,4),(_80,4))",
    # size 0: a static 0 over run-time modes is kept
    "composition(L((D(4),3)),L(0))": "(0,_0):(_1,4)",
    "composition(L((2,3),(3,1)),L(0,D(4)))": "(0,_0):(12,2)",
    # complement: default bound, tuples, garbage of negative strides
    "complement(L(4,2),24)": "(_2,_3):(_1,_8)",
    "complement(L((4,8),(8,1)))": "_1:_0",
    "complement(L(4,0),24)": "_24:_1",
    "complement(L(4,-1),8)": "(_-1,_0):(_1,_-4)",
    # inverses
    "right_inverse(L((4,2),(0,1)))": "_2:_4",
    "right_inverse(L((4,8),(1,5)))": "_4:_1",
    "right_inverse(L((4,2),(-1,4)))": "_1:_0",
    "left_inverse(L(6,0))": "_6:_0",
    "left_inverse(L((4,8),(1,5)))": "(_5,_8):(_1,_4)",
    "left_inverse(L(4,2))": "(_2,_4):(_0,_1)",
    # divides and products
    "logical_divide(L((3,4),(4,1)),L(2,1))": "(_2,(_2,_4)):(_4,(_8,_1))",
    "blocked_product(L(2,1),L((3,4)))": "((_2,_3),(_1,_4)):((_1,_2),(_0,_6))",
    "tile_to_shape(L((2,2),(2,1)),(2,8),(0,1))": "((_2,_1),(_2,_4)):((_2,_0),(_1,_4))",
    # coordinates: the last mode is not reduced, division truncates
    "L((4,8),(8,1))(100)": "_25",
    "L((4,8),(8,1))((9,9))": "_81",
    "L((4,8),(8,1))(-1)": "_-8",
    "idx2crd(100,(4,8))": "(_0,_25)",
    "idx2crd(17,(4,8),(8,1))": "(_2,_1)",
    "crd2idx((1,2),(4,8))": "_9",
    # codomain
    "cosize(L((4,8),(-8,1)))": "_32",
    "cosize(L((0,4),(1,0)))": "_0",
    "coshape(L((4,8),(E(0),S(2,1))))": "(_4,_15)",
    # strides of modes of size 1 don't move, static zeros neither: they may name a mode that has modes, or none
    "coshape(L((8,1),(E([1,1]),E(1))))": "(_1,(_1,_8))",
    "coshape(L((4,1),(E(0),D(5))))": "(_4)",
    "cosize(L((8,4),(E([1,1]),S(0,1))))": "_8",
    "coprofile(L((8,4),(E([1,1]),S(0,1))))": "(_0,(_0,_0))",
    # swizzles
    "slice_((3,None),composition(SW(2,0,3),L((8,8),(8,1))))": "((_4,_2)):((_-1,_4))",
    "composition(SW(2,3,3),SW(1,5,3))": "Sw<3,3,3>",
    "composition(L((8,8),(8,1)),SW(3,0,3))": "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)",
    "upcast(composition(SW(3,4,3),L((8,64),(64,1))),2)": "Sw<3,3,3> o _0 o (_8,_32):(_32,_1)",
    "recast_layout(L((8,64),(64,1)),6,8)": "(_8,_48):(_48,_1)",
    # modes
    "group(L((2,3,4)),0,2)": "((_2,_3),_4):((_1,_2),_6)",
    "append(L(4,1),L(2,9),3)": "(_4,_2,_2):(_1,_9,_9)",
    "replace(L((4,8)),0,L(2,9))": "(_2,_8):(_9,_4)",
    "select(L((2,3,4)),2,0)": "(_4,_2):(_6,_1)",
    "replace(L(4),0,L((2,3)))": "(_2,_3):(_1,_2)",
    "replace(4,0,(2,3))": "(_2,_3)",
    "take((1,2,3),1,-1)": "(_2,_3)",
    "take((1,2,3),3,3)": "()",
    "zip_(composition(SW(2,0,2),L((4,2))))": "Sw<2,0,2> o _0 o ((_4,_2)):((_1,_4))",
    "zip_(composition(SW(2,0,2),L(((4,2),(2,3)))))": "Sw<2,0,2> o _0 o ((_4,_2),(_2,_3)):((_1,_8),(_4,_16))",
    "tile_unzip(composition(SW(2,0,2),L(((4,2),(2,3),5))),(4,2))": (
        "Sw<2,0,2> o _0 o ((_4,_2),(_2,_3,_5)):((_1,_8),(_4,_16,_48))"
    ),
    # a static 0 of the profile, which comes first where both are bare tuples
    "filter_zeros(L(((3,1),4,5)),((None,0),0,None))": "((_3,_1),_1,_5):((_1,_0),_3,_12)",
    "filter_zeros((0,1,D(0)),(3,(4,2),5))": "(_1,(_4,_2),_5)",
    "tuple_max((2,(D(1),2)))": "2",
    # layouts in tilers
    "ceil_div((12,7),(L(2,3),L(2,3)))": "((_3,_2),(_3,_2))",
    "evenly_divides((12,4),(L(2,5),2))": "_0",
    "evenly_divides((12,4),(L(2,6),2))": "_1",
    "evenly_divides((12,4),L((2,3),(6,1)))": "_1",
    "evenly_divides(12,(4,3))": "_0",
    # composed of layouts
    "composition(L((4,2),(2,1)),3,L(4))": "(_4,_2):(_2,_1) o _3 o _4:_1",
    "composition(L((4,2),(2,1)),0,L(4))(2)": "_4",
}

REFUSED = {
    "composition(L((4,3),(1,7)),L(5,1))": "Shape Divisibility Condition",
    "composition(L((4,1),(3,0)),L(6,1))": "Shape Divisibility Condition",
    "composition(L((6,2),(1,12)),L((4,6),(2,0)))": "Shape Divisibility Condition",
    "composition(L((4,8),(8,1)),L(2,6))": "Stride Divisibility Condition",
    "composition(L((2,3),(3,1)),L(0))": "Shape Divisibility Condition",
    "composition(L((4,8),(8,1)),5)": "Shape Divisibility Condition",
    "complement(L((2,2),(1,1)),24)": "Non-injective Layout detected in complement.",
    "complement(L((D(4),8),(1,D(4))),64)": "Dynamic-stride complement only for rank-1 layouts",
    "left_inverse(L((3,2),(5,2)))": "Left inverse divisibility condition",
    "left_inverse(L(4,D(2)))": "Left inverse requires static strides.",
    "upcast(L((4,3),(1,4)),3)": "Divisibility condition",
    "downcast(L((4,3),(2,8)),2)": "Downcast requires adjacent elements",
    "shape_div(12,5)": "Divisibility Condition",
    "tile_to_shape(L((4,8)),(6,8))": "tile_to_shape: block shape does not divide the target shape.",
    "tile_to_shape(L((D(4),8)),(8,8))": "tile_to_shape: block shape does not divide the target shape.",
    "tile_to_shape(L((4,8)),8)": "Rank of layout must be <= rank of target shape.",
    "blocked_product(L((8,)),L(2))": "Mismatched Ranks",
    "composition(SW(2,3,3),SW(2,0,2))": "Can only merge swizzles of the same shift.",
    "composition(SW(3,4,3),SW(3,1,3))": "abs(SShift) must be more than BBits.",
    "crd2crd((9,),(16,),(4,2,5))": "Mismatched Ranks",
    "elem_scale((5,3,16),(6,6))": "Mismatched tuple_size",
    "logical_divide(L((4,8)),(2,2,2))": "logical_divide: Too many modes in tiler.",
    "take(L((4,8)),1,1)": "take: empty range error",
    "take(L((4,8)),1,-1)": "take: empty range error",
    "filter_zeros((0,1),((3,1),4,5))": "Mismatched tuple_size",
    "tile_unzip(L(((4,2),(2,3),5)),4)": "Mismatched ranks",
}


@each_of("expression", TEXTS)
def test_text(expression: str) -> None:
    assert shown(evaluate(expression)) == TEXTS[expression]


@each_of("expression", REFUSED)
def test_refusal(expression: str) -> None:
    with pytest.raises(StaticAssertError) as caught:
        evaluate(expression)
    assert caught.value.condition == REFUSED[expression]
