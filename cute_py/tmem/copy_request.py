"""copy_async: buffers, their regions, and the dispatch of a copy to the variant "smem->tmem", which plans the copy.

smem = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
tmem = Buffer("tmem", (32, 16), "uint8", "tmem", demo_layout, allocated_addr=TmemAllocation(n_cols=32))
copy_async(tmem[0:32, 0:16], smem[0:32, 0:16])

Source: the reference page of copy_async -> tcgen05_cp (variant, priority, predicates and their messages).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

from cute_py.argument_checks import expect, expect_fields, expect_integer, expect_integers, expect_name, record
from cute_py.diagnostics import Diagnostic
from cute_py.dtypes import DType, DTypeLike, as_dtype
from cute_py.errors import CoordinateError, InvalidTypeError, InvalidValueError, TmemError, given
from cute_py.machine.tensor_memory.memory import check_columns
from cute_py.tmem.cp_forms import FORMS, CpForm, cp_form
from cute_py.tmem.cp_plan import CpPlan
from cute_py.tmem.planner import COMPATS, Side, candidates, plan_form
from cute_py.tmem.swizzled_layout import ComposeLayout, Layout
from cute_py.tmem.tile_layout import TileLayout


@dataclass(frozen=True, slots=True)
class TmemAllocation:
    """An allocation by tcgen05.alloc: its columns, and the name of the word in shared memory that contains its address.

    Args:
        n_cols: the number of columns: 32, 64, 128, 256 or 512.
    Raises:
        TmemError: any other number of columns; the error names a valid number.

    >>> TmemAllocation(64)
    TmemAllocation(n_cols=64, name='tmem_addr')
    """

    n_cols: int
    name: str = "tmem_addr"

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_cols", check_columns(self.n_cols))
        expect_name(self.name, "the name of an allocation")


@dataclass(frozen=True, slots=True)
class Buffer:
    """A tile in one memory, with its shape, element type and layout.

    Args:
        shape: extents, the slowest dimension first.
        scope: "global", "shared" (or "shared.dyn", ...), "local" or "tmem".
        layout: the location of each element, in elements on the axis `m`, or on TLane and TCol.
        allocated_addr: for tensor memory, its allocation.
        align: alignment of a shared buffer, in bytes.
    Raises:
        InvalidValueError: the name is not an identifier, or the alignment is not a power of two of at least 16 bytes.

    >>> from cute_py.tmem.tile_layout import S
    >>> tile = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
    >>> tile[0:16, 0:16].region
    ((0, 16), (0, 16))
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    scope: str
    layout: Layout | None
    allocated_addr: TmemAllocation | None
    align: int

    def __init__(
        self,
        name: str,
        shape: Sequence[int],
        dtype: DTypeLike,
        scope: str,
        layout: Layout | None = None,
        allocated_addr: TmemAllocation | None = None,
        align: int = 1024,
    ) -> None:
        if layout is not None and not isinstance(layout, TileLayout | ComposeLayout):
            raise InvalidTypeError(
                f"the layout of a buffer must be a TileLayout or a ComposeLayout, got {given(layout)}"
            )
        if not isinstance(shape, (tuple, list)):
            raise InvalidTypeError(f"the shape of a buffer must be a tuple of integers, got {given(shape)}")
        extents = expect_integers(shape, "shape", 1)
        expect_name(name, "the name of a buffer")
        expect(scope, str, "the scope of a buffer")
        if allocated_addr is not None:
            expect(allocated_addr, TmemAllocation, "allocated_addr")
        align = expect_integer(align, "align", unit="bytes")
        if align < 16 or align & (align - 1):
            raise InvalidValueError.of_value("align", align, "be a power of two, at least 16", "bytes")
        values = (name, extents, as_dtype(dtype), scope, layout, allocated_addr, align)
        for one, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, one.name, value)

    def __getitem__(self, key: slice | tuple[slice, ...]) -> BufferRegion:
        """Return the region that one slice per dimension selects. Slices have no step, and may omit their ends."""
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.shape):
            raise CoordinateError(f"{len(keys)} slices of {self.name}, which has {len(self.shape)} dimensions")
        ranges = []
        for one, extent in zip(keys, self.shape, strict=True):
            if not isinstance(one, slice) or one.step is not None:
                raise InvalidTypeError(f"a region must have slices begin:end, got {given(one)}")
            ranges.append((0 if one.start is None else one.start, extent if one.stop is None else one.stop))
        return BufferRegion(self, tuple(ranges))

    def whole(self) -> BufferRegion:
        """The region of all elements."""
        return BufferRegion(self, tuple((0, extent) for extent in self.shape))


@record
class BufferRegion:
    """A region of a buffer: `region[d]` is (begin, end) in dimension d.

    >>> from cute_py.tmem.tile_layout import S
    >>> tile = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
    >>> tile[0:32, 0:8] == BufferRegion(tile, ((0, 32), (0, 8)))
    True
    """

    buffer: Buffer
    region: tuple[tuple[int, int], ...]

    def __repr__(self) -> str:
        return f"{self.buffer.name}[{', '.join(f'{begin}:{end}' for begin, end in self.region)}]"


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """The parameters of a copy: its two regions, and how it is to be issued and planned.

    Args:
        scope: who issues the copy: "thread", "warp", "warpgroup" or "cta".
        cta_group: 1; or 2 for a pair of CTAs, where each copies its own shared memory to its own tensor memory.
        shape, multicast: the form of the instruction; by default, the layouts determine it.
        compat: the planner whose rules apply (`COMPATS`).
        ldo: leading offset of the descriptor in 16-byte units; replaces the offset that the planner computes.
        decompress: the format that the copy decompresses from; no planner supports this.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> request = demonstration_copy().request
    >>> request.scope, request.cta_group, request.compat
    ('thread', 1, 'reference')
    """

    dst: BufferRegion
    src: BufferRegion
    scope: str = "thread"
    cta_group: int = 1
    shape: str | None = None
    multicast: str | None = None
    compat: str = "reference"
    ldo: int | None = None
    decompress: str | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition of a dispatch: `check` returns the reason why it does not hold, or None."""

    name: str
    check: Callable[[CopyRequest], str | None] = field(repr=False)


@record
class Dispatch:
    """One registered implementation of an operation.

    >>> [(one.variant, one.priority) for one in DISPATCHES]
    [('smem->tmem', 10)]
    """

    op: str
    target: str
    variant: str
    priority: int
    when: tuple[Predicate, ...]


@record
class CopyAsync:
    """A copy that was dispatched and planned. It only issues the copy; the caller commits and waits.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> copy = demonstration_copy()
    >>> copy.plan.form.name, copy.plan.count
    ('32x128b.warpx4', 1)
    """

    request: CopyRequest
    plan: CpPlan

    @property
    def src(self) -> Buffer:
        return self.request.src.buffer

    @property
    def dst(self) -> Buffer:
        return self.request.dst.buffer

    def __repr__(self) -> str:
        issued = f"{self.plan.count} x tcgen05.cp.{self.plan.form.name}"
        return f"<CopyAsync {self.request.src} -> {self.request.dst}: {issued}>"

    def explain(self) -> str:
        return f"{self.request.src} -> {self.request.dst}\n{self.plan.explain()}"


def _is_valid_smem_tmem_copy(request: CopyRequest) -> str | None:
    src, dst = request.src.buffer, request.dst.buffer
    if not (src.scope.startswith("shared") and dst.scope == "tmem"):
        return f"expected shared->tmem, got {src.scope}->{dst.scope}"
    if src.layout is None or dst.layout is None:
        return "both buffers must have layouts"
    if dst.allocated_addr is None:
        return "tmem buffer must have allocated_addr"
    if request.compat == "reference":
        return _router(dst.layout)
    return None


def _router(layout: TileLayout | ComposeLayout) -> str | None:
    replica = (layout.tile if isinstance(layout, ComposeLayout) else layout).replica
    if len(replica) == 1 and (replica[0].extent, replica[0].stride, replica[0].axis) == (4, 32, "TLane"):
        return None
    return f"requires R[4:32@TLane] on tmem, got {list(replica)}"


def _single_thread_exec(request: CopyRequest) -> str | None:
    return None if request.scope == "thread" else f"expected thread exec_scope, got {request.scope}"


DISPATCHES: tuple[Dispatch, ...] = (
    Dispatch(
        op="copy_async",
        target="cuda",
        variant="smem->tmem",
        priority=10,
        when=(
            Predicate("validate_smem_tmem_copy", _is_valid_smem_tmem_copy),
            Predicate("exec_scope", _single_thread_exec),
        ),
    ),
)
"""The variants of copy_async in this package, highest priority first."""


def check_copy(request: CopyRequest) -> list[Diagnostic]:
    """Return all reasons against a copy: a failed predicate, or one reason for each form of the instruction that was
    tried. The list is empty if the copy has a plan.

    >>> from dataclasses import replace
    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> check_copy(replace(demonstration_copy().request, scope="warp"))
    [Diagnostic(rule='exec_scope', text='expected thread exec_scope, got warp')]
    """
    return _planned(request)[1]


def why_not(request: CopyRequest) -> list[Diagnostic] | CpPlan:
    """Return the plan of a copy, or the reasons of `check_copy` against it. New code should use `copy_async` and
    `check_copy`.

    >>> from cute_py.tmem.demonstration import demonstration_copy
    >>> why_not(demonstration_copy().request).form.name
    '32x128b.warpx4'
    """
    plan, found = _planned(request)
    return plan or found


def _planned(request: CopyRequest) -> tuple[CpPlan | None, list[Diagnostic]]:
    expect(request, CopyRequest, "a request of a copy")
    found = _check_settings(request)
    if not found:
        reasons = ((predicate.name, predicate.check(request)) for predicate in DISPATCHES[0].when)
        found = [Diagnostic(name, text=reason) for name, reason in reasons if reason is not None][:1]
    src, dst = request.src.buffer, request.dst.buffer
    if not found and src.dtype.bits != dst.dtype.bits:
        said = (
            f"{src.dtype} has {src.dtype.bits} bits, but {dst.dtype} has {dst.dtype.bits}; copy_async does not "
            "convert types"
        )
        found = [Diagnostic("element", text=said)]
    # Without layouts the first predicate does not hold.
    if found or src.layout is None or dst.layout is None:
        return None, found
    smem, tmem = Side(src.layout, src.shape, request.src.region), Side(dst.layout, dst.shape, request.dst.region)
    compat, cta_group, ldo = request.compat, request.cta_group, request.ldo
    for form in _forms(request):
        plan = plan_form(form, smem, tmem, src.dtype.bits, compat=compat, cta_group=cta_group, ldo=ldo)
        if isinstance(plan, CpPlan):
            found = plan.check_capacity(dst.allocated_addr.n_cols if dst.allocated_addr else 0)
            return (None if found else plan), found
        found.append(Diagnostic(form.name, text=plan.text))
    return None, found


def _region(operand: BufferRegion | Buffer) -> BufferRegion:
    if isinstance(operand, Buffer):
        return operand.whole()
    if not isinstance(operand, BufferRegion):
        raise InvalidTypeError(f"copy_async takes buffers and their regions, got {type(operand).__name__}")
    return operand


def copy_async(dst: BufferRegion | Buffer, src: BufferRegion | Buffer, **settings: str | int | None) -> CopyAsync:
    """Plan the copy of a shared region to a tensor-memory region.

    Args:
        dst, src: regions; a buffer means the region of all its elements.
        settings: the other fields of `CopyRequest`.
    Raises:
        TmemError: no variant accepts the copy, or no form of the instruction fits the two layouts.

    >>> from cute_py.tmem.axes import TCol, TLane
    >>> from cute_py.tmem.tile_layout import R, S
    >>> smem = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
    >>> demo = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    >>> tmem = Buffer("tmem", (32, 16), "uint8", "tmem", demo, TmemAllocation(32))
    >>> copy = copy_async(tmem[0:32, 0:16], smem[0:32, 0:16])
    >>> copy.plan.ldo, copy.plan.sdo, int(copy.plan.swizzle), copy.plan.count
    (16, 8, 0, 1)
    """
    unknown = set(settings) - {one.name for one in fields(CopyRequest)}
    if unknown:
        raise InvalidTypeError(f"copy_async has no setting {', '.join(sorted(unknown))}")
    request = CopyRequest(_region(dst), _region(src), **settings)  # type: ignore[arg-type]
    plan, found = _planned(request)
    if plan is not None:
        return CopyAsync(request, plan)
    raise _refusal(f"{src} -> {dst}", found)


def _refusal(copy: str, reasons: list[Diagnostic]) -> TmemError:
    """Make one error for all reasons. The first reason is the headline, unless several forms were tried."""
    variant, names = DISPATCHES[0], {form.name for form in FORMS}
    facts: dict[str, object] = {"copy": copy}
    first, *others = reasons
    if first.rule in names and others:
        return TmemError("no tcgen05.cp form fits the two layouts", facts | {r.rule: r.text for r in reasons})
    if first.rule in names:
        facts["form"] = first.rule
    elif first.rule in {predicate.name for predicate in variant.when}:
        facts |= {"variant": f'{variant.op} "{variant.variant}", priority {variant.priority}', "predicate": first.rule}
    return TmemError(first.text, facts | {f"and {n}": reason.text for n, reason in enumerate(others, 2)})


def _check_settings(request: CopyRequest) -> list[Diagnostic]:
    known = ", ".join(map(repr, COMPATS))
    by_hand = "copy_async does not plan copies that decompress; issue tcgen05.cp with a format by hand"
    rules = (
        ("compat", request.compat in COMPATS, f"compat = {given(request.compat)}; must be one of {known}"),
        ("cta_group", request.cta_group in (1, 2), f"cta_group = {request.cta_group!r}; must be 1 or 2"),
        ("decompress", request.decompress is None, by_hand),
    )
    return [Diagnostic(rule, text=text) for rule, holds, text in rules if not holds]


def _forms(request: CopyRequest) -> tuple[CpForm, ...]:
    allowed = candidates(request.compat)
    if request.shape is not None:
        form = cp_form(request.shape, request.multicast)
        if form not in allowed:
            text = f"compat = {request.compat!r} plans only {', '.join(f.name for f in allowed)}; got {form.name}"
            raise TmemError(text, {"other planners": 'compat="tvm-0.27" plans every form'})
        return (form,)
    found = tuple(form for form in allowed if request.multicast in (None, form.multicast))
    if not found:
        facts = {"forms": ", ".join(form.name for form in allowed)}
        raise TmemError(f"no form supports the multicast {given(request.multicast)}", facts)
    return found
