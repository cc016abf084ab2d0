"""make_tma_atom and make_tma_copy: make the atom of a global tensor, a shared layout and a tile as CuTe C++ does.

Source: cute/atom/copy_traits_sm90_tma.hpp, make_tma_atom, make_tma_copy_atom, make_tma_copy_desc. Differs: where C++
asserts, or leaves the check to the driver, cute_py raises an error with all reasons. `check=False` still returns the
atom.

The error of a refused atom lists fixes. A fix is a change of one or two arguments of `make_tma_atom` that makes the
atom legal: pad the tensor, change the layout of the tile, or cut the tile. cute_py tries each fix before it lists it:
the atom can be made, it fits in shared memory, and all its instructions start at legal addresses.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from cute_py.argument_checks import expect, expect_integer, record, wrong_type
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import (
    CuteError,
    GBasisError,
    InvalidTypeError,
    InvalidValueError,
    TmaLimitError,
    given,
    known_names,
    unless_refused,
)
from cute_py.layout.composed import ComposedLayout
from cute_py.layout.composition import composition
from cute_py.layout.int_tuple import product_each
from cute_py.layout.layout import Layout, LayoutLeft, LayoutRight, domain_of, has_numbers
from cute_py.layout.leaf import Int
from cute_py.layout.recast import recast_layout
from cute_py.layout.swizzle import Swizzle, get_nonswizzle_portion, get_swizzle_portion
from cute_py.layout.trees import leaves, map_leaves, rank_of
from cute_py.notation.parse import parse
from cute_py.targets import MAX_CLUSTER
from cute_py.tensor.arrays import ArrayEngine
from cute_py.tensor.pointers import Pointer
from cute_py.tensor.tensor import Tensor, make_identity_layout, make_tensor, swizzle_of
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.gbasis import (
    GBasis,
    Tiler,
    as_shared_layout,
    as_tiler,
    check_collapsed,
    gbasis_of,
    tiled_identity,
)
from cute_py.tma.atom.op import Op, as_op, check_op, cta_count, swizzle_row, tensor_map_format
from cute_py.tma.atom.smem_layout import SPANS, make_smem_layout
from cute_py.tma.atom.tile_atom import TmaPlan, expect_fits, layout_modes, plan_tiled
from cute_py.tma.atom.tiles import first_tile
from cute_py.tma.descriptor.data_types import Interleave, L2Promotion, OobFill, TensorMapSwizzle
from cute_py.tma.descriptor.fixes import first_that_work
from cute_py.tma.descriptor.limits import BY_NAME
from cute_py.tma.descriptor.request import TensorMapTiled, as_member
from cute_py.tma.descriptor.violations import listed_violations


@record
class Fix:
    """A change of arguments: its description, and the arguments that it replaces.

    >>> Fix("take a tile of 64x64", {"cta_tiler": (64, 64)}).words
    'take a tile of 64x64'
    """

    words: str
    arguments: dict[str, Any]

    def __str__(self) -> str:
        return self.words


def _padded(tensor: Tensor, unit: int) -> Tensor | None:
    """Return the tensor with non-unit strides rounded up to multiples of `unit` elements; None if none changes."""
    stride = tensor.stride
    rounded = map_leaves(lambda d: d if int(d) in (0, 1) else type(d)(-(-int(d) // unit) * unit), stride)
    return None if rounded == stride else make_tensor(tensor.engine, Layout(tensor.shape, rounded))


_COMPACT: Final = ((LayoutRight, "row-major"), (LayoutLeft, "column-major"))
"""The orders of compact tiles, and their names."""


def fix_candidates(tensor: Tensor, smem_layout: Layout | ComposedLayout, num_multicast: int) -> Iterator[Fix]:
    """Yield changes that may make the atom legal, the smallest first."""
    dtype = as_dtype(tensor.element_type)
    unit = max(1, 8 * BY_NAME["inner_bytes"].multiple // dtype.bits)
    padded = _padded(tensor, unit)
    if padded is not None:
        row = max(int(d) for d in leaves(padded.stride)) if len(leaves(padded.stride)) <= 2 else None
        words = f"pad the row to {row} elements" if row else f"pad the rows to multiples of {unit} elements"
        yield Fix(words, {"gtensor": padded})
    plain = domain_of(smem_layout)
    tile = product_each(plain.shape)
    swizzled = isinstance(smem_layout, ComposedLayout)
    if len(tile) == 2 and swizzled:
        for major in ("K", "MN"):
            for span in SPANS:
                words = f'make_smem_layout("{major}", "{span.name}", "{dtype.name}", {tuple(map(int, tile))})'
                layout = unless_refused(make_smem_layout, major, span.name, dtype, tile)
                if layout is not None:  # the atom divides the tile
                    yield Fix(words, {"smem_layout": layout})
    if swizzled:
        yield Fix("no swizzle", {"smem_layout": plain})
    for order, name in _COMPACT:
        compact_tile = Layout(tile, order)
        yield Fix(f"a {name} shared tile {compact_tile}", {"smem_layout": compact_tile})
    yield Fix("split_oversize=True: several instructions per tile", {"split_oversize": True})
    for count in (8, 4, 2, 1):
        if count < num_multicast:
            yield Fix(f"num_multicast={count}", {"num_multicast": count})
    sizes = [int(n) for n in tile]
    smaller = [(i, next((size for size in (256, 128, 64, 32, 16, 8) if size < n), n)) for i, n in enumerate(sizes)]
    rows_of_16_bytes = [(i, -(-n // unit) * unit) for i, n in enumerate(sizes)]
    for i, size in smaller + rows_of_16_bytes:
        if size != sizes[i]:
            part = tuple([Int(size if j == i else n) for j, n in enumerate(sizes)])
            words = f"tile of {'x'.join(str(int(n)) for n in part)}"
            for compact, name in _COMPACT:
                kept = Layout(tile, compact) == plain
                of_order = f"a {words}" if kept else f"a {name} {words}"
                yield Fix(of_order, {"smem_layout": Layout(part, compact), "cta_tiler": part})


def find_fixes(make: Callable[..., TmaAtom], arguments: dict[str, Any], most: int = 2, pairs: bool = True) -> list[Fix]:
    """Find up to `most` changes of `arguments` such that `make(**arguments)` returns an atom that can copy.

    A fix changes one argument. With `pairs`, a fix may change two arguments if two rules are broken and no single
    change is enough.

    Args:
        make: `make_tma_atom`, or a function with the same arguments.
        arguments: the arguments by name: at least gtensor (a tensor), smem_layout and num_multicast.
        most: largest number of fixes. pairs: whether a fix may change two arguments.
    Raises:
        InvalidTypeError: `make` does not make an atom, or an argument has a wrong type.
        InvalidValueError: an argument is missing.

    >>> wide = ComposedLayout(Swizzle(2, 4, 3), smem_ptr_flag(16), Layout((Int(64), Int(64)), LayoutRight))
    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> arguments = {"op": "SM90_TMA_LOAD", "gtensor": x, "smem_layout": wide, "num_multicast": 1, "suggest": False}
    >>> print(cute.tma.find_fixes(cute.tma.make_tma_atom, arguments, most=1)[0])
    make_smem_layout("K", "128B", "float16", (64, 64))
    """
    expect(arguments, dict, "arguments")
    most, pairs = expect_integer(most, "most", 0, 1 << 16, "fixes"), expect(pairs, bool, "pairs")
    parameters: Mapping[str, Any]
    try:
        parameters = inspect.signature(make).parameters
    except (TypeError, ValueError, RecursionError):  # not callable, or without a signature
        parameters = {}
    if not {"gtensor", "smem_layout"} <= set(parameters):
        raise InvalidTypeError(f"expected a function that makes an atom, got {type(make).__name__} {given(make)}")
    missing = [name for name in ("gtensor", "smem_layout", "num_multicast") if name not in arguments]
    if missing:
        raise InvalidValueError(f"the arguments lack {missing[0]}; must be the arguments of make_tma_atom, by name")
    tensor = as_global_tensor(arguments["gtensor"])
    try:
        count = cta_count(arguments["num_multicast"])
    except InvalidValueError:  # beyond 2**128
        count = MAX_CLUSTER + 1
    smem_layout = as_shared_layout(arguments["smem_layout"])
    smem_layout = smem_layout.layout if isinstance(smem_layout, Tensor) else smem_layout
    if not isinstance(smem_layout, Layout | ComposedLayout):
        raise wrong_type("smem_layout must be a layout", smem_layout)
    if not has_numbers(tensor.layout) or not has_numbers(domain_of(smem_layout)):
        return []

    def works(fix: Fix) -> bool:
        try:
            atom = make(**{**arguments, **fix.arguments})
            expect_fits(atom)
            first_tile(atom)
        except CuteError:
            return False
        return True

    single = list(fix_candidates(tensor, smem_layout, count))
    if arguments.get("oob_fill"):
        single.append(Fix("oob_fill=0: zeros", {"oob_fill": OobFill.NONE}))
    two = (
        Fix(f"{a}, and {b}", a.arguments | b.arguments)
        for a, b in itertools.combinations(single, 2)
        if a.arguments.keys().isdisjoint(b.arguments)
    )
    found = first_that_work(single, works, most) or (first_that_work(two, works, most) if pairs else [])
    if not found:
        _expect_types(lambda: make(**arguments))
    return found


def _expect_types(make: Callable[[], TmaAtom]) -> None:
    """Raise the error of an argument of a wrong type: without this, an empty list of fixes would hide it."""
    try:
        make()
    except InvalidTypeError:
        raise
    except CuteError:
        return


def as_global_tensor(gtensor: Any) -> Tensor:
    """Return the tensor in global memory that the argument describes.

    The argument is a tensor with a pointer, its printed form, an array, or a pair (pointer or array, layout).

    Raises:
        InvalidTypeError: the argument is a tensor of coordinates or in shared memory, has a composed layout, or is a
            layout without memory.

    >>> print(as_global_tensor((make_gmem_ptr(4096, "float16"), "(64,128):(128,_1)")))
    gmem_ptr[16b](0x1000) o (64,128):(128,_1)
    """
    if isinstance(gtensor, tuple) and len(gtensor) == 2 and not isinstance(gtensor[0], tuple | int):
        engine, layout = gtensor
        gtensor = make_tensor(engine, parse(layout) if isinstance(layout, str) else layout)
    if isinstance(gtensor, str):
        gtensor = parse(gtensor)
    if isinstance(gtensor, Layout | ComposedLayout | tuple):
        raise InvalidTypeError(
            "a TMA atom needs a tensor in global memory; a layout has no address and no element type",
            {"got": gtensor},
            "make_tensor(make_gmem_ptr(address, 'float16'), layout), or a text: gmem_ptr[16b](0x1000) o (8,64):(64,1)",
        )
    tensor = gtensor if isinstance(gtensor, Tensor) else make_tensor(gtensor)
    if not isinstance(tensor.engine, (Pointer, ArrayEngine)) or getattr(tensor.engine, "space", "gmem") != "gmem":
        raise InvalidTypeError(
            "a TMA atom needs a tensor in global memory",
            {"tensor": tensor},
            "make_tensor(make_gmem_ptr(...), ...)",
        )
    if not isinstance(tensor.layout, Layout):
        raise InvalidTypeError("the global tensor of a TMA atom must have a plain layout", {"layout": tensor.layout})
    return tensor


def engine_swizzle(smem_layout: Layout | ComposedLayout | Tensor) -> Swizzle:
    """Return the swizzle on bytes that the engine must apply to produce a shared layout."""
    if isinstance(smem_layout, Tensor):
        if isinstance(smem_layout.layout, ComposedLayout):
            return get_swizzle_portion(smem_layout.layout)
        return swizzle_of(smem_layout)
    return get_swizzle_portion(smem_layout)


def check_map(plan: TmaPlan, request: TensorMapTiled, arch: str) -> list[Diagnostic]:
    """List the driver's rules that a map breaks, then CuTe's failed conditions on other arguments."""
    found = listed_violations(request, arch)
    arguments = {violation.argument for violation in found}
    return [*found, *[condition for condition in plan.broken if condition.argument not in arguments]]


def _refusal(found: list[Diagnostic], plan: TmaPlan, gmem: Layout, fixes: Sequence[Fix]) -> TmaLimitError:
    """Make one error that lists every reason with the layout modes at fault, and the fixes that work."""
    conditions = [condition.source for condition in plan.broken]
    hint = "; or ".join(fix.words for fix in fixes) or None
    where = [None if d.mode is None else layout_modes(plan, gmem, d.mode) for d in found]
    if len(found) == 1:
        source = "" if found[0] in plan.broken else found[0].source
        facts = {"mode": where[0], "CuTe asserts": conditions[0] if conditions else None, "source": source or None}
        return TmaLimitError(found[0].message, {k: v for k, v in facts.items() if v is not None}, hint, found)
    texts = [d.message + (f"; {mode}" if mode else "") for d, mode in zip(found, where, strict=True)]
    lines = {str(i): text for i, text in enumerate(texts, 1)}
    lines.update({f"CuTe asserts {i}": condition for i, condition in enumerate(conditions, 1)})
    return TmaLimitError(f"the tensor map breaks {len(found)} rules", lines, hint, found)


def make_tma_atom(
    op: Op | str,
    gtensor: Any,
    smem_layout: Layout | ComposedLayout | Tensor | str,
    cta_tiler: Tiler | str | None = None,
    num_multicast: int | tuple[int, ...] | Layout = 1,
    internal_dtype: DTypeLike | None = None,
    arch: str | None = None,
    *,
    cta_v_map: Layout | None = None,
    check: bool = True,
    split_oversize: bool = False,
    suggest: bool = True,
    l2_promotion: L2Promotion | int | str = L2Promotion.B128,
    oob_fill: OobFill | int | str = OobFill.NONE,
) -> TmaAtom:
    """Make the TMA atom for a tile.

    Args:
        op: an `Op` or its name.
        gtensor: the global tensor, in elements: a tensor over `make_gmem_ptr`, its printed form, an array, or a pair
            (pointer or array, layout).
        smem_layout: the static layout of one tile in shared memory, or its printed form; composed with a swizzle for a
            swizzled tile.
        cta_tiler: the tile, by mode: static sizes or layouts, or a string ('128x64', '(_128,_64)'). Modes of the tensor
            that it omits are not part of the tile. Default: the shape of the shared layout.
        num_multicast: the number of CTAs of a cluster that share the load: an int, or the size of a shape or layout.
        internal_dtype: the element type of the tensor map, for tensors whose own type has no TMA format; default: the
            type of the tensor.
        arch: the architecture whose rules apply; default: the oldest that has the operation, sm_90a or sm_100a.
        cta_v_map: the CTA's value map, if it is not the identity composed with the tiler.
        check: raise an error if CuTe would assert, if the driver would refuse the map, or if the box does not match the
            tile (see `gbasis.check_collapsed`).
        split_oversize: cut box modes above 256, and boxes over collapsed modes, into several instructions.
        suggest: if the atom is refused, search for changes that work, try them, and list them in the error.
        l2_promotion, oob_fill: the driver's arguments of these names, as an enum member, a number or a name.
    Raises:
        GBasisError: no TMA box fits the tile and the shared layout.
        StaticAssertError: TMA does not have the swizzle or the element type.
        TmaLimitError: the tensor map breaks limits; the error lists all of them.
        InvalidValueError: the architecture lacks the operation, or the multicast count does not fit it.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))
    >>> atom = cute.tma.make_tma_atom("SM90_TMA_LOAD", x, smem)
    >>> print(atom.gbasis, atom.transaction_bytes)
    (_64,_128):(_1@1,_1@0) 16384
    """
    op = as_op(op)
    if op.row.mode == "im2col":
        hint = "use make_im2col_tma_copy and pass it the window; C++'s make_tma_copy calls it for these operations"
        raise InvalidTypeError(f"{op.name} needs an im2col map, but make_tma_copy makes a tiled one", None, hint)
    arch = f"sm_{op.row.arch}a" if arch is None else arch
    for name, switch in (("check", check), ("split_oversize", split_oversize), ("suggest", suggest)):
        expect(switch, bool, name)
    count = cta_count(num_multicast)
    if unfit := check_op(op, arch, count):
        refuse(InvalidValueError, unfit)
    tensor = as_global_tensor(gtensor)
    dtype = as_dtype(tensor.element_type)
    internal = dtype if internal_dtype is None else as_dtype(internal_dtype)
    smem_layout = as_shared_layout(smem_layout)
    swizzle = engine_swizzle(smem_layout)
    layout = smem_layout.layout if isinstance(smem_layout, Tensor) else smem_layout
    smem = get_nonswizzle_portion(layout)
    if not has_numbers(smem):
        raise InvalidTypeError("a shared layout must have known sizes and strides", {"layout": layout})
    if isinstance(cta_tiler, str):
        cta_tiler = as_tiler(cta_tiler)
    tiler = product_each(smem) if cta_tiler is None else cta_tiler
    gmem = domain_of(tensor)
    identity = make_identity_layout(gmem)
    v_map = tiled_identity(identity, tiler) if cta_v_map is None else cta_v_map
    basis = gbasis_of(gmem, smem, v_map, identity, (dtype.bits, internal.bits), split_oversize)
    plan = _plan(op, gmem, basis, dtype, internal, count)
    request = TensorMapTiled(
        tensor_map_format(internal),
        int(tensor.engine.address),
        plan.dims,
        plan.strides,
        plan.box,
        plan.element_strides,
        Interleave.NONE,
        TensorMapSwizzle(swizzle_row(swizzle).code),
        as_member(L2Promotion, l2_promotion, "l2_promotion"),
        as_member(OobFill, oob_fill, "oob_fill"),
    )
    if check:
        found = check_map(plan, request, arch)
        found += check_collapsed(recast_layout(gmem, dtype, internal), plan.gbasis)
        if found:
            arguments = {
                "op": op,
                "gtensor": tensor,
                "smem_layout": layout,
                "cta_tiler": cta_tiler,
                "num_multicast": count,
                "internal_dtype": internal.name,
                "arch": arch,
                "split_oversize": split_oversize,
                "suggest": False,
                "l2_promotion": request.l2_promotion,
                "oob_fill": request.oob_fill,
            }
            fixes = find_fixes(make_tma_atom, arguments) if suggest and cta_v_map is None else []
            raise _refusal(found, plan, gmem, fixes)
    return TmaAtom(op, tensor, layout, tiler, basis, plan, request, swizzle, dtype, internal, arch)


def _plan(op: Op, gmem: Layout, basis: GBasis, dtype: DType, internal: DType, count: int) -> TmaPlan:
    layout, factor = basis.layout, 1
    if op.row.mode in ("gather4", "scatter4"):
        if rank_of(layout.shape) != 2:
            raise GBasisError("TMA Gather/Scatter only supports 2D tensors", {"G-basis": layout})
        layout = composition(layout, (layout[0].shape, Int(1)))
        factor = 4
    return plan_tiled(gmem, layout, dtype, internal, count, factor)


def make_tma_copy(
    op: Op | str,
    gtensor: Any,
    smem_layout: Layout | ComposedLayout | Tensor | str,
    cta_tiler: Tiler | str | None = None,
    num_multicast: int | tuple[int, ...] | Layout = 1,
    internal_dtype: DTypeLike | None = None,
    arch: str | None = None,
    **options: Any,
) -> TmaAtom:
    """Make a TMA atom as C++'s make_tma_copy does.

    Without `cta_tiler`, the tile is the shape of the shared layout. Sizes of the tile become static, whether it is a
    string ('128x64') or a tuple ((128, 64)).

    Args:
        options: keyword arguments of `make_tma_atom`, which also describes the other arguments.
    Raises:
        InvalidTypeError: an option does not exist.
        See `make_tma_atom`.

    >>> x = make_tensor(make_gmem_ptr(4096, "float16"), Layout((1024, 512), (512, Int(1))))
    >>> smem = cute.tma.make_smem_layout("K", "128B", "float16", (128, 64))
    >>> print(cute.tma.make_tma_copy(cute.tma.Op.SM90_TMA_STORE, x, smem).get_tma_tensor())
    ArithTuple(_0,_0) o (1024,512):(_1@1,_1@0)
    """
    cta_tiler = None if cta_tiler is None else as_tiler(cta_tiler)
    known = inspect.signature(make_tma_atom).parameters if options else {}
    for name in [name for name in options if name not in known]:
        hint = "make_smem_layout('K', '128B', dtype, tile): the shared layout includes the swizzle"
        others = [one for one, kind in known.items() if kind.kind is inspect.Parameter.KEYWORD_ONLY]
        facts = known_names(name, others)
        raise InvalidTypeError(f"make_tma_copy has no option {name!r}", facts, hint if "swizzle" in name else None)
    return make_tma_atom(op, gtensor, smem_layout, cta_tiler, num_multicast, internal_dtype, arch, **options)
