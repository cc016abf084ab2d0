"""What every TMA atom of a tile has, tiled or im2col, once its plan is known: bytes, alignment, checks, explanation.

Some legal atoms do not copy what their layouts say. Their tile may not fit into the shared memory of one block, with
the barrier that counts its bytes: a tensor map holds a box and knows nothing of a tile of several boxes. And a swizzle
with a plain offset acts on elements, while the engine swizzles bytes: at element widths other than one byte the same
three numbers are two functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from cute_py.argument_checks import expect_fields, expect_having, expect_integer
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType
from cute_py.errors import InvalidValueError, TmaLimitError
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.coprofile import cosize
from cute_py.layout.int_tuple import size
from cute_py.layout.layout import Layout, domain_of
from cute_py.layout.swizzle import Swizzle
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.tensor import Tensor
from cute_py.tma.atom.op import Op, SwizzleRow, check_shared, receives_slices, swizzle_row
from cute_py.tma.descriptor.encode import encode
from cute_py.tma.descriptor.limits import architecture
from cute_py.tma.descriptor.request import OpRow

BARRIER_BYTES: Final = 8
"""Bytes of an mbarrier, which lies in shared memory beside the tile of a load."""


@dataclass(frozen=True, slots=True, eq=False)  # a barrier may be an array, which has no one equality
class ExecutableCopy:
    """An atom bound to the state of one execution: `barrier`, `multicast_mask` (0: none), `cache_hint` (None: none).

    `atom` is a `TmaAtom` or an `Im2colAtom`.
    """

    atom: Any
    barrier: Any
    multicast_mask: int = 0
    cache_hint: int | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


class TileAtom:
    """The common part of `TmaAtom` and `Im2colAtom`; they hold the fields and say what an instruction slot is."""

    op: Op
    gtensor: Tensor
    smem_layout: Any
    cta_tiler: Any
    gbasis: Any
    plan: Any
    _first_tile: Any
    request: Any
    swizzle: Swizzle
    dtype: DType
    arch: str

    def __post_init__(self) -> None:
        expect_fields(self)
        expect_having(self.smem_layout, ("shape",), "the layout of a tile in shared memory")

    @cached_property
    def descriptor(self) -> bytes:
        """The 128 bytes of the tensor map.

        Raises:
            TmaLimitError: the driver would refuse it (an atom made with check=False).
        """
        return encode(self.request, arch=self.arch)

    @property
    def instruction(self) -> OpRow:
        """What the instruction of this copy does: direction, load mode, multicast, CTAs, reduction."""
        return self.op.row

    @property
    def num_multicast(self) -> int:
        """CTAs that share the tile."""
        count: int = self.plan.num_multicast
        return count

    @property
    def num_bits_per_tma(self) -> int:
        """Bits of one instruction slot: of the whole box, not divided by a multicast count."""
        raise NotImplementedError

    @property
    def bytes_per_instruction(self) -> int:
        """Bytes that one instruction delivers to each CTA that receives it, out-of-bounds elements included."""
        raise NotImplementedError

    def get_tma_tensor(self, shape: Any = None) -> Tensor:
        """The coordinate tensor of the global tensor."""
        raise NotImplementedError

    @property
    def num_val_src(self) -> int:
        """Elements (of `dtype`) of one instruction slot, all CTAs of a multicast together."""
        return self.num_bits_per_tma // self.dtype.bits

    @property
    def tile(self) -> Layout:
        """The plain layout of one tile in shared memory."""
        return domain_of(self.smem_layout)

    @property
    def instructions(self) -> int:
        """Instructions that one CTA issues for a tile."""
        return -(-int(size(self.tile)) // self.num_val_src) if self.num_val_src else 0

    @property
    def transaction_bytes(self) -> int:
        """Bytes that a CTA's barrier must expect for one tile.

        The whole tile, also where it hangs over the tensor's end: out-of-bounds elements are filled and counted. With
        multicast every receiving CTA gets the whole tile, a part from each of the CTAs that issue; an operation without
        multicast that is divided among CTAs brings each of them its slice alone.
        """
        slices = self.num_multicast if receives_slices(self.op, self.num_multicast) else 1
        return self.instructions * self.num_bits_per_tma // 8 // slices

    @property
    def swizzle_row(self) -> SwizzleRow:
        """The mode of the tensor map that swizzles so."""
        return swizzle_row(self.swizzle)

    @property
    def alignment(self) -> int:
        """Alignment of the tile in shared memory, bytes: 128, or where the swizzle pattern repeats."""
        return self.swizzle_row.alignment

    def with_(self, barrier: Any, multicast_mask: int = 0, cache_hint: int | None = None) -> ExecutableCopy:
        """The executable atom: bound to a barrier, a multicast mask and an L2 cache hint, as C++'s `.with(...)`.

        Raises:
            InvalidTypeError: a mask or a cache hint that is no integer. InvalidValueError: a mask on an operation
                without multicast, or of more than 16 bits; a hint of more than 64.
        """
        mask = expect_integer(multicast_mask, "the multicast mask", 0, (1 << MAX_CLUSTER) - 1)
        if mask and not self.instruction.multicast:
            raise InvalidValueError(f"{self.op} takes no multicast mask, got {mask:#x}")
        hint = None if cache_hint is None else expect_integer(cache_hint, "the cache hint", 0, (1 << 64) - 1)
        return ExecutableCopy(self, barrier, mask, hint)

    def check(self) -> list[Diagnostic]:
        """What about this atom does not do what its layouts say: see `check_fits`, `check_units`, `check_shared`."""
        units = check_units(self.smem_layout, self.dtype.bits)
        return [*check_fits(self), *units, *check_shared(self.op, self.num_multicast)]

    def why_not(self) -> str | None:
        """The first message of `check`, or None. Deprecated: an earlier form."""
        return next((found.message for found in self.check()), None)

    def _story(self, of: str, counted: str, middle: list[str], instructions: list[str], outside: str) -> list[str]:
        """The whole story of an atom, a section each.

        Args:
            of: what is copied; counted: the type that TMA counts in, where it can be another one; middle: the sections
                between box and instructions; outside: what the bytes include.
        """
        lines = [
            f"{self.op}: {self.instruction.direction} of {of}, {self.arch}",
            "",
            "operands",
            f"  global tensor  {self.gtensor}  ({self.dtype}{counted})",
            f"  shared tile    {self.smem_layout}",
            f"  swizzle        {self.swizzle} on bytes = mode {self.swizzle_row.name}",
            f"  multicast      {self.num_multicast} CTA(s)",
            "",
            "from the tile to the box",
            *[f"  {name:<16} {value}\n  {'':<16} ({why})" for name, value, why in self.gbasis.trace.steps()],
        ]
        lines += [*middle, "", "instructions", *instructions, "", "bytes"]
        lines += [
            f"  one instruction delivers {self.bytes_per_instruction} bytes to each CTA that receives it",
            f"  a CTA's barrier expects {self.transaction_bytes} bytes a tile, {outside} included",
            f"  the tile in shared memory is aligned to {self.alignment} bytes",
        ]
        reason = self.why_not()
        return lines if reason is None else [*lines, "", "where it differs from its layouts", f"  {reason}"]


def check_fits(atom: TileAtom) -> list[Diagnostic]:
    """Why the tile of this atom can't lie in the shared memory of one block.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 1024), (1024, Int(1))))
    >>> tile = Layout((Int(256), Int(512)), LayoutRight)
    >>> print(*check_fits(cute.tma.make_tma_atom("SM90_TMA_LOAD", x, tile, split_oversize=True)))
    a tile of 262144 bytes and a barrier of 8; a block has at most 232448 bytes of shared memory on sm_90
    """
    direction = atom.instruction.direction
    gpu = architecture(atom.arch)
    taken = -(-int(cosize(atom.tile)) * atom.dtype.bits // 8)
    barrier = BARRIER_BYTES if direction == "load" else 0
    if direction == "prefetch" or taken + barrier <= gpu.block_shared_memory_bytes:
        return []
    beside = f" and a barrier of {barrier}" if barrier else ""
    limit = f"a block has at most {gpu.block_shared_memory_bytes} bytes of shared memory on {gpu.name}"
    text = f"a tile of {taken} bytes{beside}; {limit}"
    return [Diagnostic("shared_memory", value=taken, unit="bytes", text=text, facts={"shared tile": atom.smem_layout})]


def expect_fits(atom: TileAtom) -> None:
    """Refuse an atom whose copy can never run.

    Raises:
        TmaLimitError: its tile does not fit, see `check_fits`.
    """
    refuse(TmaLimitError, check_fits(atom))


def check_units(layout: Any, bits: int) -> list[Diagnostic]:
    """What the engine does differently with this shared layout of elements of `bits` bits.

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
        text = f"{on_bytes} on elements of {bits} bits permutes parts of elements when it is read on bytes"
    else:
        on_elements = Swizzle(on_bytes.bits, on_bytes.base - shift, on_bytes.shift)
        text = (
            f"{on_bytes} acts on elements in this layout, and on bytes in the TMA engine; for {bits}-bit elements "
            f"{on_bytes} on bytes is {on_elements} on elements"
        )
    return [Diagnostic("swizzle_units", text=text)]
