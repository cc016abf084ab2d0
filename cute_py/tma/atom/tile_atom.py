"""Compute a tensor map's values from its G-basis; the common base class of tiled and im2col atoms.

The plan (`TmaPlan`) has sizes, strides, the box, and the strides of the TMA tensor. A mode of the map with one basis
element has the size and stride of that global mode. A mode with several basis elements (merged or collapsed modes) has
the greatest common divisor of their strides as its stride, and a size that reaches the last element in steps of that
stride. A multicast count divides the box, last mode first; every CTA issues its part.
Source: cute/atom/copy_traits_sm90_tma.hpp, fill_tma_gmem_shape_stride and make_tma_copy_desc.

Some legal atoms can't copy, or do not copy as their layouts describe. A tensor map describes one box, but a tile may
have several boxes, so the tile and its barrier may exceed the shared memory of one block. A swizzle with a plain offset
permutes elements, but the engine permutes bytes: unless an element has one byte, the same Sw<B,M,S> is a different
function on elements and on bytes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from cute_py.argument_checks import MAX_INTEGER, MIN_INTEGER, expect, expect_fields, expect_integer, record
from cute_py.arith_tuple.arith_tuple import E, ScaledBasis
from cute_py.arith_tuple.ratio import ratio
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType, as_dtype
from cute_py.errors import GBasisError, InvalidValueError, StaticAssertError, TmaLimitError, counted, given, shortened
from cute_py.layout.arguments import Leaf, Tree
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, cosize, domain_of
from cute_py.layout.leaf import Int, is_one, is_zero, tree_text, value_of
from cute_py.layout.recast import recast_layout
from cute_py.layout.swizzle import Swizzle
from cute_py.layout.trees import at, leaves, modes
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.op import Op, SwizzleRow, check_shared, receives_slices, swizzle_row
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.limits import BY_NAME, SWIZZLE_SPAN, architecture, bounds
from cute_py.tma.descriptor.request import OpRow

_GRAIN = BY_NAME["stride_alignment"].multiple
_STRIDE_MAX = bounds("stride_range")[1]
_SIZE_MIN, _SIZE_MAX = bounds("size")
_BOX_MIN, _BOX_MAX = bounds("box")
_MAJORNESS = "Majorness of smem doesn't match majorness of gmem"


BrokenCondition = Diagnostic
"""Former name of the type of a failed condition of CuTe; `source` is the text of the condition."""


@record
class TmaPlan:
    """Sizes, strides and box of a tiled tensor map, innermost mode first.

    `dims` are in elements of the internal type, `strides` in bytes for modes 1.., `box` and `element_strides` in
    elements. `g_stride` are the strides of the TMA tensor, congruent with the global shape. `broken` lists CuTe's
    assertions that fail.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> plan = cute.tma.make_tma_copy("SM90_TMA_LOAD", gmem, "(_128,_64):(_64,_1)").plan
    >>> plan.dims, plan.strides, plan.box
    ((128, 256), (256,), (64, 128))
    """

    gbasis: Layout
    internal_dtype: DType
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    element_strides: tuple[int, ...]
    g_stride: Tree
    num_bits_per_tma: int
    num_multicast: int
    broken: tuple[Diagnostic, ...] = field(default=())

    @property
    def rank(self) -> int:
        return len(self.dims)


def _number(leaf: Leaf, what: str) -> int:
    number = value_of(leaf)
    if type(number) is int and MIN_INTEGER <= number <= MAX_INTEGER:  # the common case: makes no error text
        return number
    return expect_integer(number, f"{what} of a tensor map", hint="replace the symbols with .subs() first")


def _paths(stride: Tree) -> list[tuple[int, ...]]:
    """Return the paths of the global modes that form one TMA mode; the path of an integer shape is empty."""
    return [tuple(getattr(d, "modes", ())) for d in leaves(stride)]


def shape_and_stride(gmem: Layout, gbasis: Layout) -> tuple[list[int], list[int]]:
    """Return the (sizes, strides) of the TMA modes. Both, and `gmem`, are in elements of the internal type."""
    sizes, strides = [], []
    for mode in modes(gbasis.stride):
        paths = _paths(mode)
        if any(type(at(gmem.shape, p)) is tuple for p in paths):
            raise GBasisError(
                "the tile is a single element of the internal type, so its box moves along no mode of the tensor",
                {"global layout in that type": gmem, "G-basis": gbasis},
            )
        size, stride = 1, 0
        pairs = [(_number(at(gmem.shape, p), "a size"), _number(at(gmem.stride, p), "a stride")) for p in paths]
        if len(pairs) == 1:
            size, stride = pairs[0]
        else:
            for s, d in pairs:
                old, stride = stride, math.gcd(stride, d)
                size = (size - 1) * (old // stride) + (s - 1) * (d // stride) + 1 if stride else s
        sizes.append(size)
        strides.append(stride)
    return sizes, strides


def multicast_box(box: list[int], num_multicast: int) -> tuple[list[int], Diagnostic | None]:
    """Return the box that each of `num_multicast` CTAs issues; the last mode is divided first."""
    box = list(box)
    left, i = num_multicast, len(box) - 1
    while left > 1:
        if i < 0 or (box[i] % left and left % box[i]):
            elements = math.prod(box) * num_multicast // left
            must = (
                f"be at most the {elements} elements of the box, so that every CTA gets a part"
                if i < 0
                else f"divide or be divided by boxDim[{i}] = {box[i]} elements"
            )
            condition = "smem_box_shape[i] % multicast == 0 || multicast % smem_box_shape[i] == 0"
            text = f"num_multicast = {num_multicast} CTAs; must {must}"
            return box, _asserted(condition, "num_multicast", "num_multicast", text, None if i < 0 else i)
        rest = -(-left // box[i])
        box[i] = -(-box[i] // left)
        left, i = rest, i - 1
    return box, None


def _asserted(condition: str, rule: str, argument: str, text: str, mode: int | None) -> Diagnostic:
    """Make the diagnostic of a failed CuTe assertion; its `source` is the asserted condition."""
    return Diagnostic(rule, argument, source=condition, text=text, mode=mode)


def tma_strides(gmem: Layout, gmem_t: Layout, gbasis: Layout, byte_strides: list[int], bits: tuple[int, int]) -> Tree:
    """Return the strides of the TMA tensor, one basis element per global mode (static 0 for a mode outside the map)."""
    owners = [_paths(mode) for mode in modes(gbasis.stride)]
    old, new = bits

    def leaf(path: tuple[int, ...]) -> Tree:
        size, stride = at(gmem_t.shape, path), at(gmem_t.stride, path)
        if is_one(size) or is_zero(stride):
            return Int(0)
        found = [j for j, paths in enumerate(owners) if path in paths]
        if not found:
            return Int(0)
        j = found[0]
        if j == 0:
            scale = at(gmem.stride, path)
            return ScaledBasis(scale if old == new else ratio(old, new) * scale, 0)
        if len(owners[j]) == 1:
            return E(j)
        step = _number(stride, "a stride") * new // max(byte_strides[j], _GRAIN)
        return ScaledBasis(-(-step // 8), j)

    def walk(tree: Tree, path: tuple[int, ...]) -> Tree:
        if type(tree) is tuple:
            return tuple([walk(t, (*path, i)) for i, t in enumerate(tree)])
        found: Tree = leaf(path)
        return found

    return walk(gmem.shape, ())


def plan_tiled(
    gmem: Layout, gbasis: Layout, dtype: DType, internal_dtype: DType, num_multicast: int = 1, nval: int = 1
) -> TmaPlan:
    """Compute sizes, strides and box of the tensor map for a G-basis.

    Args:
        gmem: layout of the global tensor in elements of `dtype`.
        gbasis: the G-basis, box shape : global modes, in elements of `internal_dtype`.
        num_multicast: CTAs that share the box.
        nval: number of elements that one instruction moves per element of the box: 4 for gather4 and scatter4,
            otherwise 1.

    >>> from cute_py.dtypes import as_dtype
    >>> from cute_py.notation import parse
    >>> half = as_dtype("float16")
    >>> plan_tiled(parse("(256,128):(128,_1)"), parse("(_64,_128):(_1@1,_1@0)"), half, half).box
    (64, 128)
    """
    expect(gmem, Layout, "the global layout")
    expect(gbasis, Layout, "the G-basis")
    dtype, internal_dtype = as_dtype(dtype), as_dtype(internal_dtype)
    num_multicast, nval = expect_integer(num_multicast, "num_multicast", 1), expect_integer(nval, "nval", 1)
    gmem_t = recast_layout(gmem, dtype, internal_dtype)
    sizes, strides = shape_and_stride(gmem_t, gbasis)
    bits = internal_dtype.bits
    byte_strides = [d * bits // 8 for d in strides]
    full_box = [math.prod(_number(s, "a box size") for s in leaves(mode)) for mode in modes(gbasis.shape)]
    box, uncut = multicast_box(full_box, num_multicast)
    broken = [*_check_tensor(sizes, strides, byte_strides, bits), *([uncut] if uncut else []), *_check_box(box)]
    g_stride = tma_strides(gmem, gmem_t, gbasis, byte_strides, (dtype.bits, bits))
    return TmaPlan(
        gbasis,
        internal_dtype,
        tuple(sizes),
        tuple(byte_strides[1:]),
        tuple(box),
        (1,) * len(sizes),
        g_stride,
        math.prod(full_box) * nval * bits,
        num_multicast,
        tuple(broken),
    )


def _check_tensor(sizes: list[int], strides: list[int], byte_strides: list[int], bits: int) -> list[Diagnostic]:
    """Check CuTe C++'s assertions on the global tensor (make_tma_copy_desc); `strides` are in elements."""
    broken = []
    if strides and strides[0] != 1:
        text = f"{_MAJORNESS}: TMA mode 0 has stride {strides[0]} elements; must be 1"
        broken.append(_asserted(f'gmem_prob_stride[0] == 1 && "{_MAJORNESS}"', "majorness", "", text, 0))
    for i, d in enumerate(strides[1:], 1):
        name = f"globalStrides[{i - 1}]"
        if d * bits % (8 * _GRAIN):
            text = f"{name} = {d * bits / 8:g} bytes; must be a multiple of {_GRAIN}"
            broken.append(_asserted(f"(gmem_prob_stride[{i}] & 0b1111) == 0", "stride_alignment", name, text, i))
        if not 0 <= byte_strides[i] <= _STRIDE_MAX:
            condition = f"(gmem_prob_stride[{i}]) < (uint64_t(1) << 40)"
            text = f"{name} = {byte_strides[i]} bytes; must be below 2**40"
            broken.append(_asserted(condition, "stride_range", name, text, i))
    for i, n in enumerate(sizes):
        if not _SIZE_MIN <= n <= _SIZE_MAX:
            condition = f"gmem_prob_shape[{i}] {'>= (uint64_t(1))' if n < _SIZE_MIN else '<= (uint64_t(1) << 32)'}"
            text = f"globalDim[{i}] = {n} elements; must be 1 to 2**32"
            broken.append(_asserted(condition, "size", f"globalDim[{i}]", text, i))
    return broken


def _check_box(box: list[int]) -> list[Diagnostic]:
    """Check CuTe C++'s assertions on the box (make_tma_copy_desc)."""
    broken = []
    for i, n in enumerate(box):
        if not _BOX_MIN <= n <= _BOX_MAX:
            condition, must = ("<= (uint32_t(1) << 8)", f"at most {_BOX_MAX}")
            if n < _BOX_MIN:
                condition, must = (">= (uint32_t(1))", f"at least {_BOX_MIN}")
            text = f"boxDim[{i}] = {n} elements; must be {must}"
            broken.append(_asserted(f"smem_box_shape[{i}] {condition}", "box", f"boxDim[{i}]", text, i))
    return broken


def layout_modes(plan: TmaPlan, gmem: Layout, tma_mode: int) -> str:
    """Describe the global modes that form a TMA mode, with their sizes and strides.

    An example is 'TMA mode 1 (layout mode 0: 1024 elements, stride 12)'.
    """
    parts = []
    for d in leaves(modes(plan.gbasis.stride)[tma_mode]):
        path = tuple(getattr(d, "modes", ()))
        where = ".".join(map(str, path)) or "0"
        size, stride = tree_text(at(gmem.shape, path)), tree_text(at(gmem.stride, path))
        parts.append(f"layout mode {where}: {size.strip('_')} elements, stride {stride.strip('_')}")
    return f"TMA mode {tma_mode} ({'; '.join(parts)})"


BARRIER_BYTES: Final = 8
"""Bytes of an mbarrier; it is in shared memory, next to the tile of a load."""


@dataclass(frozen=True, slots=True, eq=False)  # a barrier may be an array, whose == is elementwise
class ExecutableCopy:
    """An atom bound to the operands of one execution: barrier, multicast mask and cache hint.

    `multicast_mask` 0 means no mask, and `cache_hint` None means no hint.

    `atom` is a `TmaAtom` or an `Im2colAtom`.

    >>> import cute_py as cute
    >>> gmem = cute.make_tensor(cute.make_gmem_ptr(0x1000, "float16"), cute.parse("(256,128):(128,_1)"))
    >>> atom = cute.tma.make_tma_copy("SM90_TMA_LOAD_MULTICAST", gmem, "(_128,_64):(_64,_1)", num_multicast=2)
    >>> bound = atom.with_(cute.tma.Mbarrier(1), multicast_mask=0b11)
    >>> bound.multicast_mask, bound.cache_hint
    (3, None)
    """

    atom: Any
    barrier: Any
    multicast_mask: int = 0
    cache_hint: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)
        expect(self.atom, TileAtom, "the atom of an execution")

    def __repr__(self) -> str:
        state = f"mask {self.multicast_mask:#x}, cache hint {self.cache_hint}"
        return f"<{shortened(str(self.atom), 160)}; barrier {shortened(given(self.barrier), 60)}, {state}>"


class TileAtom:
    """The common base class of `TmaAtom` and `Im2colAtom`.

    The subclasses declare the fields and define the instruction slot.
    """

    op: Op
    gtensor: Tensor
    smem_layout: Layout | ComposedLayout
    cta_tiler: Any
    gbasis: Any
    plan: Any
    _first_tile: Any
    request: Any
    swizzle: Swizzle
    dtype: DType
    internal_dtype: Any
    arch: str

    def __post_init__(self) -> None:
        expect_fields(self)

    @cached_property
    def descriptor(self) -> bytes:
        """The 128 bytes of the tensor map.

        Raises:
            TmaLimitError: the driver would refuse the map of an atom that was made with check=False.
        """
        return encode(self.request, arch=self.arch)

    @property
    def instruction(self) -> OpRow:
        """The instruction that this copy issues: direction, load mode, multicast, CTAs, reduction."""
        return self.op.row

    @property
    def num_multicast(self) -> int:
        """Number of CTAs that share the tile."""
        count: int = self.plan.num_multicast
        return count

    @property
    def num_bits_per_tma(self) -> int:
        """Size of one instruction slot in bits: the whole box, not divided by the multicast count."""
        raise NotImplementedError

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers to each receiving CTA, including out-of-bounds elements."""
        raise NotImplementedError

    @property
    def _box_bytes(self) -> int:
        """Bytes of shared memory that one instruction occupies; a swizzled row occupies at least its swizzle span."""
        delivered, span = self.bytes_per_instruction, SWIZZLE_SPAN.get(self.request.swizzle, 128) or 0
        rows: int = delivered * 8 // max(self.plan.box[0] * self.internal_dtype.bits, 1)
        return max(delivered, rows * span)

    def get_tma_tensor(self, shape: Tree | None = None) -> Tensor:
        """Return the coordinate tensor of the global tensor."""
        raise NotImplementedError

    @property
    def num_val_src(self) -> int:
        """Number of elements of `dtype` in one instruction slot, for all CTAs of a multicast together."""
        return self.num_bits_per_tma // self.dtype.bits

    @property
    def tile(self) -> Layout:
        """The plain layout of one tile in shared memory."""
        return domain_of(self.smem_layout)

    @property
    def instructions(self) -> int:
        """Number of instructions that one CTA issues for a tile.

        Raises:
            StaticAssertError: the size of the tile in shared memory is not a number.
        """
        count = size(self.tile)
        if not isinstance(count, (int, Int)):
            raise StaticAssertError("the size of the tile must be a number", {"smem_layout": self.smem_layout})
        return -(-int(count) // self.num_val_src) if self.num_val_src else 0

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a CTA's barrier must expect for one tile.

        The count covers the whole tile, even if it extends past the tensor's end: out-of-bounds elements are filled and
        counted. With multicast, every receiving CTA gets the whole tile, one part from each issuing CTA. If CTAs share
        an operation without multicast, each of them gets only its slice.
        """
        slices = self.num_multicast if receives_slices(self.op, self.num_multicast) else 1
        return self.instructions * self.num_bits_per_tma // 8 // slices

    @property
    def swizzle_row(self) -> SwizzleRow:
        """The swizzle mode of the tensor map."""
        return swizzle_row(self.swizzle)

    @property
    def alignment(self) -> int:
        """Alignment of the tile in shared memory in bytes: 128, or the period of the swizzle pattern."""
        return self.swizzle_row.alignment

    def with_(self, barrier: Any, multicast_mask: int = 0, cache_hint: int | None = None) -> ExecutableCopy:
        """Bind the atom to a barrier, a multicast mask and an L2 cache hint, as C++'s `.with(...)` does.

        Raises:
            InvalidTypeError: the mask or the cache hint is not an integer.
            InvalidValueError: the operation does not multicast but gets a mask, the mask has more than 16 bits, or the
                hint has more than 64 bits.
        """
        mask = expect_integer(multicast_mask, "the multicast mask", 0, (1 << MAX_CLUSTER) - 1)
        if mask and not self.instruction.multicast:
            raise InvalidValueError(f"{self.op} does not multicast, so it takes no mask, got {mask:#x}")
        hint = None if cache_hint is None else expect_integer(cache_hint, "the cache hint", 0, (1 << 64) - 1)
        return ExecutableCopy(self, barrier, mask, hint)

    def __str__(self) -> str:
        return (
            f"{self.op} {self.gtensor} -> {self.smem_layout}: box {self.plan.box} of {self.internal_dtype}, "
            f"{counted(self.instructions, 'instruction')}, {self.transaction_bytes} bytes per tile"
        )

    def __repr__(self) -> str:
        return f"<{shortened(str(self))}>"

    def check(self) -> list[Diagnostic]:
        """List the differences between the copy that the TMA engine makes and the layouts.

        See `check_fits`, `check_units`, `check_shared` and `check_rows`.
        """
        units = check_units(self.smem_layout, self.dtype.bits)
        return [*check_fits(self), *units, *check_shared(self.op, self.num_multicast), *check_rows(self)]

    def why_not(self) -> str | None:
        """Return the first message of `check`, or None."""
        return next((found.message for found in self.check()), None)

    def _sections(
        self, of: str, counted_in: str, middle: list[str], instructions: list[str], outside: str
    ) -> list[str]:
        """Build the lines that describe an atom, section by section.

        Args:
            of: a noun phrase for the object that is copied; counted_in: the element type of the tensor map, if it may
                differ from the tensor's type.
            middle: the sections between box and instructions; outside: the elements that the bytes include.
        """
        lines = [
            f"{self.op}: {self.instruction.direction} of {of}, {self.arch}",
            "",
            "operands",
            f"  global tensor  {self.gtensor}  ({self.dtype}{counted_in})",
            f"  shared tile    {self.smem_layout}",
            f"  swizzle        {self.swizzle} on bytes = mode {self.swizzle_row.name}",
            f"  multicast      {counted(self.num_multicast, 'CTA')}",
            "",
            "from the tile to the box",
            *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in self.gbasis.trace.steps()],
        ]
        lines += [*middle, "", "instructions", *instructions, "", "bytes"]
        aligned = f"the tile in shared memory is aligned to {self.alignment} bytes"
        moved = {
            "load": (
                f"one instruction delivers {self.bytes_per_instruction} bytes to each receiving CTA",
                f"a CTA's barrier expects {self.transaction_bytes} bytes per tile, {outside} included",
                aligned,
            ),
            "prefetch": (
                f"one instruction prefetches {self.bytes_per_instruction} bytes into the L2 cache, {outside} excluded",
                "a prefetch uses no barrier and no shared memory",
            ),
        }
        stored = (
            f"one instruction reads {self.bytes_per_instruction} bytes of shared memory, {outside} included",
            "no barrier expects these bytes: stores and reductions complete by bulk group",
            aligned,
        )
        lines += [f"  {line}" for line in moved.get(self.instruction.direction, stored)]
        reason = self.why_not()
        return lines if reason is None else [*lines, "", "differences from its layouts", f"  {reason}"]


def check_fits(atom: TileAtom) -> list[Diagnostic]:
    """Return the reason why the tile of this atom can't fit in the shared memory of one block; empty if it fits.

    A row that is shorter than the swizzle's span occupies the whole span, even if the shared layout has less room for
    it.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 1024), (1024, Int(1))))
    >>> tile = Layout((Int(256), Int(512)), LayoutRight)
    >>> print(*check_fits(cute.tma.make_tma_atom("SM90_TMA_LOAD", x, tile, split_oversize=True)))
    the tile needs 262144 bytes and a barrier of 8; a block has at most 232448 bytes of shared memory on sm_90
    """
    taken = -(-int(cosize(atom.tile)) * atom.dtype.bits // 8) + atom._box_bytes - atom.bytes_per_instruction
    return check_block(taken, atom.instruction.direction, atom.arch, {"shared tile": atom.smem_layout})


def check_block(taken: int, direction: str, arch: str, facts: dict[str, object]) -> list[Diagnostic]:
    """Return the reason why a tile of `taken` bytes does not fit in the shared memory of one block on `arch`.

    The list is empty if the tile fits.

    A load also needs room for a barrier.
    """
    gpu = architecture(arch)
    barrier = BARRIER_BYTES if direction == "load" else 0
    if direction == "prefetch" or taken + barrier <= gpu.block_shared_memory_bytes:
        return []
    beside = f" and a barrier of {barrier}" if barrier else ""
    limit = f"a block has at most {gpu.block_shared_memory_bytes} bytes of shared memory on {gpu.name}"
    text = f"the tile needs {taken} bytes{beside}; {limit}"
    return [Diagnostic("shared_memory", value=taken, unit="bytes", text=text, facts=facts)]


def expect_fits(atom: TileAtom) -> None:
    """Refuse an atom whose tile does not fit in the shared memory of any block.

    Raises:
        TmaLimitError: its tile does not fit, see `check_fits`.
    """
    refuse(TmaLimitError, check_fits(atom))


def expect_block(taken: int, direction: str, arch: str) -> None:
    """Refuse a tile that does not fit in a block of `arch`, which may differ from the atom's target.

    Raises:
        TmaLimitError: see `check_block`.
    """
    refuse(TmaLimitError, check_block(taken, direction, arch, {"target": arch}))


def check_units(layout: Layout | ComposedLayout | Tensor, bits: int) -> list[Diagnostic]:
    """List differences between the engine's swizzle and the swizzle of a shared layout; elements have `bits` bits.

    >>> from cute_py.layout.layout import Layout
    >>> print(str(*check_units(ComposedLayout(Swizzle(3, 4, 3), 0, Layout((8, 64), (64, 1))), 16))[-52:])
    elements Sw<3,4,3> on bytes is Sw<3,3,3> on elements
    """
    if not isinstance(layout, ComposedLayout) or not isinstance(layout.outer, Swizzle) or not layout.outer.bits:
        return []
    if hasattr(layout.offset, "bits") or bits == 8 or bits % 8:
        return []
    on_bytes = layout.outer
    shift = (bits // 8).bit_length() - 1
    if on_bytes.base < shift:
        text = f"the hardware applies {on_bytes} to bytes, where it splits the elements of {bits} bits"
    else:
        on_elements = Swizzle(on_bytes.bits, on_bytes.base - shift, on_bytes.shift)
        text = (
            f"this layout applies {on_bytes} to elements, but the TMA engine applies it to bytes; for {bits}-bit "
            f"elements {on_bytes} on bytes is {on_elements} on elements"
        )
    return [Diagnostic("swizzle_units", text=text)]


def check_rows(atom: TileAtom) -> list[Diagnostic]:
    """List rows of a box that are contiguous in the shared layout but not in the engine's copy.

    A swizzled row occupies the span of its swizzle: 32, 64 or 128 bytes. C++ derives the box only from the order of the
    shared layout, and ignores the length of a row.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((64, 64), (64, Int(1))))
    >>> tile = ComposedLayout(Swizzle(3, 4, 3), smem_ptr_flag(16), Layout((Int(8), Int(32)), LayoutRight))
    >>> print(*check_rows(cute.tma.make_tma_atom("SM90_TMA_LOAD", x, tile)))
    rows of 64 bytes; with swizzle 128B the engine places them 128 bytes apart, but the shared layout 64 bytes apart

    Source:
        measured on NVIDIA H200, driver 580.159.04.
    """
    row, swizzle = int(atom.plan.box[0]) * atom.internal_dtype.bits // 8, atom.swizzle_row
    if row >= swizzle.span or atom.bytes_per_instruction <= row:
        return []
    apart = f"with swizzle {swizzle.name} the engine places them {swizzle.span} bytes apart"
    text = f"rows of {row} bytes; {apart}, but the shared layout {row} bytes apart"
    return [Diagnostic("swizzled_rows", value=row, unit="bytes", text=text, facts={"shared tile": atom.smem_layout})]
