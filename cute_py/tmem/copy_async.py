"""copy_async: the dispatch of a copy to the variant "smem->tmem", its predicates, and the plan that it gets.

Source: the reference page of copy_async -> tcgen05_cp (variant, priority, predicates and their words).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from cute_py.argument_checks import expect, expect_fields
from cute_py.errors import InvalidTypeError, TmemError, given
from cute_py.tmem.atom_split import Side
from cute_py.tmem.buffers import Buffer, BufferRegion
from cute_py.tmem.copy_plan import CopyPlan, Refusal
from cute_py.tmem.cp_forms import FORMS, CpForm, cp_form
from cute_py.tmem.planner import COMPATS, candidates, plan_form
from cute_py.tmem.swizzled_layout import ComposeLayout
from cute_py.tmem.tile_layout import TileLayout


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """A copy as it is asked for.

    Args:
        scope: who issues it: "thread", "warp", "warpgroup" or "cta".
        cta_group: 1, or 2 for a pair of CTAs; each copies its own shared memory to its own tensor memory.
        shape, multicast: the form of the instruction; found from the layouts if left out.
        compat: which planner (`COMPATS`).
        ldo: leading offset of the descriptor in 16-byte units, in place of the planner's.
        decompress: a source format; no planner supports it.
    """

    dst: BufferRegion
    src: BufferRegion
    scope: str = "thread"
    cta_group: int = 1
    shape: str | None = None
    multicast: str | None = None
    compat: str = "seed"
    ldo: int | None = None
    decompress: str | None = None

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class Predicate:
    """A condition of a dispatch: `check` gives the reason why it does not hold, or None."""

    name: str
    check: Callable[[CopyRequest], str | None]


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One registered way to carry out an operation."""

    op: str
    target: str
    variant: str
    priority: int
    when: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        expect_fields(self)


@dataclass(frozen=True, slots=True)
class CopyAsync:
    """A copy that was dispatched and planned. It issues the copy only; the caller commits and waits."""

    request: CopyRequest
    plan: CopyPlan

    def __post_init__(self) -> None:
        expect_fields(self)

    @property
    def src(self) -> Buffer:
        return self.request.src.buffer

    @property
    def dst(self) -> Buffer:
        return self.request.dst.buffer

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
    if request.compat == "seed":
        return _router(dst.layout)
    return None


def _router(layout: TileLayout | ComposeLayout) -> str | None:
    replica = (layout.tile if isinstance(layout, ComposeLayout) else layout).replica
    if len(replica) == 1 and (replica[0].extent, replica[0].stride, replica[0].axis) == (4, 32, "TLane"):
        return None
    said = ", ".join(f"({it.extent}, {it.stride}@{it.axis})" for it in replica)
    return f"requires R[4:32@TLane] on tmem, got replica=[{said}]"


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
"""The variants of copy_async that this package carries out, highest priority first."""


def why_not(request: CopyRequest) -> list[Refusal] | CopyPlan:
    """The plan of a copy, or every reason found against it: a predicate, or one reason for each form that was tried."""
    expect(request, CopyRequest, "a request of a copy")
    settings = _settings(request)
    if settings:
        return settings
    for predicate in DISPATCHES[0].when:
        reason = predicate.check(request)
        if reason is not None:
            return [Refusal(predicate.name, reason)]
    src, dst = request.src.buffer, request.dst.buffer
    if src.layout is None or dst.layout is None:
        return [Refusal("validate_smem_tmem_copy", "both buffers must have layouts")]
    if src.dtype.bits != dst.dtype.bits:
        said = f"{src.dtype} has {src.dtype.bits} bits, {dst.dtype} has {dst.dtype.bits}; a copy does not convert"
        return [Refusal("element", said)]
    refusals = []
    for form in _forms(request):
        plan = plan_form(
            form,
            Side(src.layout, src.shape, request.src.region),
            Side(dst.layout, dst.shape, request.dst.region),
            src.dtype.bits,
            compat=request.compat,
            cta_group=request.cta_group,
            ldo=request.ldo,
        )
        if isinstance(plan, CopyPlan):
            return _capacity(plan, dst) or plan
        refusals.append(Refusal(form.name, plan.text))
    return refusals


def _region(operand: object) -> BufferRegion:
    if isinstance(operand, Buffer):
        return operand.whole()
    if not isinstance(operand, BufferRegion):
        raise InvalidTypeError(f"copy_async takes buffers and their regions, got {type(operand).__name__}")
    return operand


def copy_async(dst: BufferRegion | Buffer, src: BufferRegion | Buffer, **settings: object) -> CopyAsync:
    """Plan the copy of a shared region to a tensor-memory region.

    Args:
        dst, src: regions, or buffers, which are meant as a whole.
        settings: the other fields of `CopyRequest`.
    Raises:
        TmemError: no variant takes the copy, or no form of the instruction fits the two layouts.

    >>> from cute_py.tmem.axes import TCol, TLane
    >>> from cute_py.tmem.buffers import TmemAllocation
    >>> from cute_py.tmem.spec import R, S
    >>> smem = Buffer("A_smem", (32, 16), "uint8", "shared", S[(32, 16) : (16, 1)])
    >>> demo = S[(32, 16) : (1 @ TLane, 1 @ TCol)] + R[4 : 32 @ TLane]
    >>> tmem = Buffer("tmem", (32, 16), "uint8", "tmem", demo, TmemAllocation(32))
    >>> copy = copy_async(tmem[0:32, 0:16], smem[0:32, 0:16])
    >>> copy.plan.ldo, copy.plan.sdo, int(copy.plan.swizzle), copy.plan.count
    (16, 8, 0, 1)
    """
    unknown = set(settings) - {field.name for field in fields(CopyRequest)}
    if unknown:
        raise InvalidTypeError(f"a copy has no setting {', '.join(sorted(unknown))}")
    request = CopyRequest(_region(dst), _region(src), **settings)  # type: ignore[arg-type]
    found = why_not(request)
    if isinstance(found, CopyPlan):
        return CopyAsync(request, found)
    raise _refusal(f"{src} -> {dst}", found)


def _refusal(copy: str, reasons: list[Refusal]) -> TmemError:
    """One error for all reasons: the first rule is the headline, unless it is one form among several."""
    way, names = DISPATCHES[0], {form.name for form in FORMS}
    facts: dict[str, object] = {"copy": copy}
    first, *others = reasons
    if first.rule in names and others:
        return TmemError("no tcgen05.cp form fits the two layouts", facts | {r.rule: r.text for r in reasons})
    if first.rule in names:
        facts["form"] = first.rule
    elif first.rule in {predicate.name for predicate in way.when}:
        facts |= {"variant": f'{way.op} "{way.variant}", priority {way.priority}', "predicate": first.rule}
    return TmemError(first.text, facts | {f"and {n}": reason.text for n, reason in enumerate(others, 2)})


def _settings(request: CopyRequest) -> list[Refusal]:
    out = []
    if request.compat not in COMPATS:
        out.append(
            Refusal("compat", f"compat = {given(request.compat)}; must be one of {', '.join(map(repr, COMPATS))}")
        )
    if request.cta_group not in (1, 2) or isinstance(request.cta_group, bool):
        out.append(Refusal("cta_group", f"cta_group = {request.cta_group!r}; must be 1 or 2"))
    if request.decompress is not None:
        out.append(Refusal("decompress", "a planned copy does not decompress; issue tcgen05.cp with a format by hand"))
    return out


def _forms(request: CopyRequest) -> tuple[CpForm, ...]:
    allowed = candidates(request.compat)
    if request.shape is not None:
        form = cp_form(request.shape, request.multicast)
        if form not in allowed:
            raise TmemError(
                f"compat = {request.compat!r} plans {', '.join(f.name for f in allowed)} alone; got {form.name}",
                {"other planners": 'compat="tvm-0.27" plans every form'},
            )
        return (form,)
    found = tuple(form for form in allowed if request.multicast in (None, form.multicast))
    if not found:
        raise TmemError(
            f"no form has the multicast {given(request.multicast)}", {"forms": ", ".join(form.name for form in allowed)}
        )
    return found


def _capacity(plan: CopyPlan, dst: Buffer) -> list[Refusal]:
    columns = dst.allocated_addr.n_cols if dst.allocated_addr else 0
    return [Refusal("capacity", text) for text in plan.capacity_violations(columns)]
