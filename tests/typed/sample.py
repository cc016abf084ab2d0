"""Code as users write it, for type checkers: what a call gives, said with `assert_type`, and errors that must be found.

`tests/typed/test_checkers.py` runs mypy --strict and basedpyright on this file; each line that ends in `# error` must
be refused, and no other. The file also runs.
"""

from __future__ import annotations

from typing import assert_type

import cute_py as cute
from cute_py.notation.parse import Parsed

layout = cute.static(cute.Layout((4, 8), (8, 1)))
tile = cute.make_layout((cute.Int(2), cute.Int(4)), stride=(cute.Int(4), cute.Int(1)))
swizzled = cute.ComposedLayout(cute.Swizzle(2, 0, 3), 0, layout)
tensor = cute.make_tensor(cute.counting_iterator(0), layout)

# Numbers: a coordinate gives an offset, `_` or None a layout.
assert_type(cute.Layout((4, 8))(1, 2), int)
assert_type(layout(5), int)
assert_type(layout((1, 2)), int)
assert_type(layout(None, 2), cute.Layout)
assert_type(layout((1, cute._)), cute.Layout)
assert_type(layout[0], cute.Layout)
assert_type(swizzled(1, 2), int)
assert_type(cute.size(layout), cute.Int | int)
assert_type(cute.size((4, (2, 3)), 1), cute.Int | int)
assert_type(cute.Int(4) * cute.size(layout) // 2, int)
assert_type(cute.cosize(swizzled), cute.Int | int)
assert_type(cute.rank(tensor), cute.Int)
assert_type(cute.crd2idx((1, 2), (4, 8)), cute.Int | int)
assert_type(cute.Swizzle(2, 0, 3)(9), int)

# The algebra gives back what it is given.
assert_type(tile, cute.Layout)
assert_type(cute.composition(layout, tile), cute.Layout)
assert_type(cute.composition(layout, (2, None)), cute.Layout)
assert_type(cute.composition(tensor, (2, 4)), cute.Tensor)
assert_type(cute.coalesce(layout), cute.Layout)
assert_type(cute.coalesce(swizzled), cute.ComposedLayout)
assert_type(cute.complement(tile, 24), cute.Layout)
assert_type(cute.right_inverse(layout), cute.Layout)
assert_type(cute.logical_divide(layout, (2, 4)), cute.Layout)
assert_type(cute.zipped_divide(swizzled, (2, 4)), cute.ComposedLayout)
assert_type(cute.tiled_divide(tensor, tile), cute.Tensor)
assert_type(cute.logical_product(layout, tile), cute.Layout)
assert_type(cute.blocked_product(layout, tile), cute.Layout)
assert_type(cute.group_modes(layout, 0, 2), cute.Layout)
assert_type(cute.append(tensor, cute.Layout(2), 3), cute.Tensor)
assert_type(cute.upcast(layout, 2), cute.Layout)
assert_type(cute.recast_layout(cute.Swizzle(3, 4, 3), 8, 16), cute.Swizzle)
assert_type(cute.static(layout), cute.Layout)
assert_type(cute.is_injective(layout), bool)

# Tensors and coordinates.
assert_type(tensor, cute.Tensor)
assert_type(tensor(None, 0), cute.Tensor)
assert_type(cute.local_tile(tensor, (2, 4), (0, None)), cute.Tensor)
assert_type(cute.make_identity_tensor((4, 8)), cute.Tensor)
assert_type(cute.make_smem_ptr(0, "float16"), cute.Pointer)
assert_type(2 * cute.E(1), cute.ScaledBasis)
assert_type(cute.E(0) + cute.E(1), cute.ArithTuple)
assert_type(cute.format_tensor(tensor), str)

# Texts: which of them it is, is known when it is read.
parsed = cute.parse("(4,8):(8,1)")
if isinstance(parsed, cute.Layout | cute.ComposedLayout):
    assert_type(parsed, cute.Layout | cute.ComposedLayout)

assert_type(cute.parse("4:1"), Parsed)

# Packages that are imported on first use.
assert_type(cute.explain(layout).upper(), str)
assert_type(cute.draw.draw(layout), cute.draw.Picture)
assert_type(cute.draw.draw(layout).svg, str)
assert_type(cute.tma.encode(cute.tma.decode(bytes(128))), bytes)
assert_type(cute.tmem.__name__, str)
assert_type(cute.testing.__name__, str)


def wrong() -> None:
    """What is not there is an error."""
    print(layout.shapes)  # error
    print(cute.coalesc(layout))  # error
    print(layout(1, 2).shape)  # error
    print(cute.logical_divide(layout, (2, 4)).equall)  # error
    print(cute.offsets(layout).equall)  # error
    print(cute.draw.drawing)  # error
    print(cute.tmem.copy_asynk)  # error
    print(cute.testing.layots)  # error
