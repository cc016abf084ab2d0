"""Function `run_ptx`: runs a kernel on numpy arrays as a GPU would, and returns the findings."""

from __future__ import annotations

import collections
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from cute_py.argument_checks import expect, expect_integer, has, is_integer, record
from cute_py.diagnostics import Diagnostic, Scope, refuse
from cute_py.errors import CuteError, InvalidTypeError, InvalidValueError, counted, given
from cute_py.machine.code import Code, find_kernel
from cute_py.machine.cuda_source import ptx_of_file, ptx_of_text
from cute_py.machine.faults import Fault, finding
from cute_py.machine.judgement.causes import with_cause_first
from cute_py.machine.judgement.judge import judges
from cute_py.machine.judgement.observer import Observer, together
from cute_py.machine.judgement.story import story
from cute_py.machine.judgement.timeline import RunTimeline, TimelineRecorder, build_timeline
from cute_py.machine.judgement.traffic import Traffic, Traffics
from cute_py.machine.judgement.tried import with_changes
from cute_py.machine.launch import Arguments, Extended, MachineLaunch, place_variables, triple
from cute_py.machine.memory import Memory
from cute_py.machine.rules import REASONS
from cute_py.machine.schedule import Machine, Shape, Totals
from cute_py.machine.table import decoded
from cute_py.machine.tensor_memory.products import Product
from cute_py.machine.tensor_memory.umma_operands import UmmaOperands, operands_of_product
from cute_py.machine.tensor_memory.writers import NOTHING, TensorContents
from cute_py.machine.threads import LANES, Array
from cute_py.notation.source_lines import source_file
from cute_py.ptx.flow import MAX_BLOCK, lines_text
from cute_py.ptx.source import Module, read_module
from cute_py.targets import BLOCK_SHARED_BYTES, MAX_CLUSTER, MULTIPROCESSORS, SM_SHARED_BYTES, SM_THREADS, architecture

LIMIT: Final = 10**9
"""Maximum number of instructions that a run may execute, counted for each thread."""

TRIED_STEPS: Final = 1 << 28
"""Changes for errors are tried only for runs with at most this number of instructions."""

TRIED_WARNINGS: Final = 1 << 14
"""The limit for a run without errors. It is low, because most kernels have warnings, and trials slow a run down."""

SLACK: Final = 1 << 16
"""Instructions that a changed kernel may execute in addition to twice the number of the original kernel."""

SM_CTAS: Final = 32
WORKSPACE_BYTES: Final = 8
"""The workspace of a cooperative launch: its size, and the word of `grid.sync()`."""

MAX_STATE: Final = 768 << 20
"""Maximum bytes of registers and shared memory of the CTAs that run together."""


class PtxError(CuteError):
    """Error raised for a kernel run with errors; `.run` is the run with all findings."""

    run: PtxRun


@record
class Count:
    """Execution counts of one instruction, and its memory traffic.

    Attributes:
        line: line in the PTX. source, source_line: file and line of the source, if the PTX names them.
        executions: executions by warps. threads: executions by threads.
        wavefronts: shared-memory wavefronts of its accesses. bank_conflicts: wavefronts beyond the first of each group
            of lanes.
        sectors: 32-byte sectors of global memory.

    `wavefronts`, `bank_conflicts` and `sectors` are None after `traffic=False`.
    """

    line: int
    source_line: int | None
    instruction: str
    executions: int
    threads: int
    wavefronts: int | None = None
    bank_conflicts: int | None = None
    sectors: int | None = None
    source: str = ""


@record
class PtxRun:
    """The result of a kernel run.

    Attributes:
        kernel: name of the kernel. diagnostics: the findings. printed: the output of vprintf.
        counts: execution counts of each executed instruction. instructions: sum of all executions by threads.
        approximate: executed opcodes whose results are correctly rounded here; on a GPU they may differ within the
            bounds of the ISA.
        schedules: the schedules that ran. not_run: the requested schedules that did not run because of an earlier
            error.
        assumed: texts about trailing pointers that the kernel reads, but that were not passed; they are null.

    >>> import cute_py as cute
    >>> text = ".version 8.0\\n.target sm_90a\\n.address_size 64\\n.visible .entry nothing() { ret; }"
    >>> run = cute.run_ptx(text, block=32)
    >>> run.ok, run.kernel
    (True, 'nothing')
    """

    kernel: str
    diagnostics: tuple[Diagnostic, ...]
    printed: tuple[str, ...]
    counts: tuple[Count, ...]
    instructions: int
    approximate: tuple[str, ...]
    schedules: tuple[str, ...]
    not_run: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    _trace: Any = field(default=(), repr=False, compare=False)
    _code: Any = field(default=None, repr=False, compare=False)
    _wave: Any = field(default=(1, 32), repr=False, compare=False)
    _events: Any = field(default=(), repr=False, compare=False)
    _unjudged: tuple[str, ...] = field(default=(), repr=False, compare=False)
    _left: tuple[str, ...] = field(default=(), repr=False, compare=False)
    _tensor: Any = field(default=None, repr=False, compare=False)

    @property
    def scope(self) -> Scope:
        """The scope of the run: which properties were judged, and which were not, such as unreached code and other
        launches.
        """
        steps = f"{counted(self.instructions, 'instruction')} of threads ({' and '.join(self.schedules) or 'not run'})"
        ran = {one.line for one in self.counts}
        instructions = () if self._code is None else self._code.instructions
        rest = [one.line for one in instructions if one.line not in ran]
        unreached = f"{counted(len(rest), 'instruction')}: no thread executed them in this launch; "
        left = [*self._unjudged, *self._left, *([unreached + lines_text(rest, self.sources)] if rest else [])]
        if any(one.opcode.startswith("tensormap.") for one in instructions):
            left.append("tensor maps that ordinary stores change: a run assumes that their fences are right")
        left += [f"other values of arguments: the run assumed that {text}" for text in self.assumed]
        left.append("other launches: other sizes, arguments and contents of memory")
        return Scope((steps,), tuple(left))

    @property
    def sources(self) -> Mapping[int, str]:
        """The source line of each PTX line, such as 'ring.cu:21', where the PTX names it."""
        return {} if self._code is None else self._code.sources

    @property
    def ok(self) -> bool:
        """Whether the run found no error."""
        return not any(one.severity == "error" for one in self.diagnostics)

    def trace(self, thread: int, cta: int = 0) -> list[tuple[int, str]]:
        """Return (line, instruction) of each instruction that a thread executed, in order; for a long run, only the
        beginning.

        Args:
            thread: linear index in its CTA, x fastest. cta: linear index in the grid, x fastest.
        """
        code: Code = self._code
        ctas, size = self._wave
        expect_integer(thread, "thread", 0, size - 1)
        wave, inside = divmod(expect_integer(cta, "cta", 0), ctas)
        wanted = inside * size + thread
        found = []
        for number, pc, threads in self._trace:
            if number != wave:
                continue
            place = int(np.searchsorted(threads, wanted))
            block = code.blocks[pc]
            if place < len(threads) and threads[place] == wanted and block is not None:
                found += [(one.line, one.text) for one in code.instructions[pc : pc + block.length]]
        return found

    def timeline(self, cta: int = 0) -> RunTimeline:
        """Return the timeline of a CTA: its warps, barriers, copies and matrix instructions; for a long run, only the
        beginning.

        `print` shows it as text, and `cute_py.draw.draw` makes a picture. With `schedule="lazy"`, copies and products
        are in flight until a thread waits for them. After `run_ptx(..., judge=False)`, the timeline has only warps.

        Args:
            cta: linear index in the grid, x fastest; must be one of the CTAs of the first wave.
        Raises:
            InvalidValueError: the first wave has no such CTA.
        """
        if self._code is None:
            raise InvalidValueError("this run was not made by run_ptx, so it has no steps")
        ctas, size = self._wave
        return build_timeline(self._trace, self._events, self._code, size, expect_integer(cta, "cta", 0, ctas - 1))

    def tensor_memory(self, cta: int = 0) -> TensorContents:
        """Return the tensor memory of a CTA at the end of the run, with the instructions that wrote it.

        `print` shows it as text, and `cute_py.draw.draw` makes a picture.

        Args:
            cta: linear index in the grid, x fastest; must be one of the CTAs of the first wave.
        Raises:
            InvalidValueError: the first wave has no such CTA, or the kernel has no tcgen05 instructions.
        """
        if self._tensor is None:
            raise InvalidValueError("this run has no tensor memory; its kernel executed no tcgen05 instruction")
        cells, written, _ = self._tensor
        place = expect_integer(cta, "cta", 0, len(cells) - 1)
        code: Code = self._code
        line_of = np.array([NOTHING, *(one.line for one in code.instructions)])
        texts = {one.line: one.text for one in code.instructions if one.opcode.startswith("tcgen05")}
        title = f"{self.kernel}: tensor memory of CTA {place}, 128 lanes of 512 columns of 4 bytes"
        return TensorContents(title, cells[place], line_of[written[place]], texts)

    def umma_operands(self, line: int, cta: int = 0) -> UmmaOperands:
        """Return the operands of the first product that a tcgen05.mma instruction computed for a CTA.

        `print` shows the reads as text, and `cute_py.draw.draw` makes a picture.

        Args:
            line: line of the instruction in the PTX. cta: linear index in the grid, x fastest; for a CTA pair, either
                CTA.
        Raises:
            InvalidValueError: the instruction at that line computed no product for the CTA; the facts list the lines
                that did.
        """
        place = expect_integer(cta, "cta", 0)
        held = {} if self._tensor is None else self._tensor[2]
        wanted = expect_integer(line, "line", 0)
        pair = held.get((place & ~1, wanted))
        found = held.get((place, wanted)) or (pair if pair is not None and pair.ctas == 2 else None)
        if found is None:
            lines = sorted({at for of, at in held if of in (place, place & ~1)})
            facts = {"lines of tcgen05.mma": lines_text(lines) if lines else "none"}
            raise InvalidValueError(f"CTA {place} computed no product at line {wanted}", facts)
        return operands_of_product(found)

    def explain(self) -> str:
        """Return a report: each finding with its lines, the reason for the rule, and a change that may fix it."""
        schedules = ", ".join(self.schedules) or "none"
        head = f"{self.kernel}: {counted(self.instructions, 'instruction')} of all threads, schedule {schedules}"
        code: Code | None = self._code
        texts = {} if code is None else {one.line: one.text for one in code.instructions}
        lines = story(head, self.diagnostics, texts, REASONS, self.sources)
        for one in self.not_run:
            lines += [
                "",
                f"not run: the schedule {one}, which may find more; schedule={one!r} (--schedule {one}) runs it",
            ]
        assumed = [f"assumed: {text}; pass None (--arg null) or an array" for text in self.assumed]
        if notes := [*assumed, *(f"not judged: {text}" for text in self._unjudged)]:
            lines += ["", *notes]
        if self.approximate:
            lines.append(f"correctly rounded here, approximate on a GPU: {', '.join(self.approximate)}")
        return "\n".join(lines)

    def raise_for_diagnostics(self) -> None:
        """Raise an exception if the run has errors.

        Raises:
            PtxError: the run has errors; `.run` is this run.
        """
        errors = [one for one in self.diagnostics if one.severity == "error"]
        try:
            refuse(PtxError, errors)
        except PtxError as error:
            error.run = self
            raise


@functools.lru_cache(maxsize=16)
def _module(text: str) -> Module:
    return read_module(text)


def run_ptx(
    source: Any,
    *,
    grid: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    cluster: int | Sequence[int] | None = None,
    args: Sequence[Any] = (),
    kernel: str | None = None,
    dynamic_shared: int = 0,
    arch: str | None = None,
    cooperative: bool = False,
    schedule: str | int = "both",
    limit: int = LIMIT,
    judge: bool = True,
    traffic: bool = True,
) -> PtxRun:
    """Run a kernel on numpy arrays, without a GPU.

    Args:
        source: PTX text; the path of a PTX file, a CUDA C++ file (.cu, compiled by nvcc or NVRTC) or a fatbin that
            contains PTX; a `KernelSource`, whose CUDA C++ is compiled; or an object that defines its own launches, such
            as a `GemmKernel` (args are A, B and C) or a `PreparedCopy`.
        grid, block, cluster: one to three sizes, x first. The default of `block` is the kernel's `.reqntid`, and the
            default of `cluster` is its `.reqnctapercluster`.
        args: one value for each parameter. The kernel reads and writes an array in place, and accesses outside of it
            are faults. A number or bytes are passed unchanged. A pair of a tensor map (a request or 128 bytes) and an
            array passes a map that points into the array. A pair of bytes and {offset: array or such a pair} passes a
            structure with pointers; a pair of an array and such a dictionary passes an array with pointers, and each
            run stores the addresses in it. None and a trailing pointer that is omitted are null pointers.
        kernel: name of the kernel, if the module has several. dynamic_shared: bytes of dynamic shared memory.
        arch: the target, by default the target of the text.
        cooperative: whether the launch is cooperative, as with `cudaLaunchCooperativeKernel`: all CTAs run together,
            and `grid.sync()` works. In another launch, `grid.sync()` traps, as on a GPU.
        schedule: 'eager' completes asynchronous work when it is issued, and 'lazy' as late as the rules allow. An
            integer seed completes it at random times, and runs warps in a different order. 'both' runs eager and lazy,
            and reports arrays whose results differ.
        limit: maximum number of executed instructions, summed over all threads; beyond it, the run ends with a
            diagnostic.
        judge: whether to also find races, missing fences and other faults that do not make this run fail.
        traffic: whether to count wavefronts, bank conflicts and sectors, in `.counts`. Counting takes a few percent of
            the run time, or up to half of it if the kernel mostly accesses memory.
    Returns:
        the run with its findings. The arrays contain the results of the kernel; under 'both', the results of the eager
        schedule.
    Raises:
        ParseError: the text is not PTX. InvalidValueError, InvalidTypeError: no GPU accepts the launch, the arguments
            do not fit the parameters, or the machine does not emulate some instructions. The machine checks all
            instructions before the run starts, and the error lists all that it does not emulate.

    >>> import numpy as np
    >>> text = '''.version 8.7
    ... .target sm_90a
    ... .address_size 64
    ... .entry twice(.param .u64 x) .reqntid 32 {
    ...     .reg .b32 %r<3>; .reg .b64 %rd<3>;
    ...     ld.param.u64 %rd1, [x];
    ...     mov.u32 %r1, %tid.x;
    ...     mad.wide.u32 %rd2, %r1, 4, %rd1;
    ...     ld.global.u32 %r2, [%rd2];
    ...     shl.b32 %r2, %r2, 1;
    ...     st.global.u32 [%rd2], %r2;
    ...     ret; }'''
    >>> x = np.arange(32, dtype=np.uint32)
    >>> run_ptx(text, args=[x]).ok, x[:4].tolist()
    (True, [0, 2, 4, 6])
    """
    if has(source, "machine_launches"):
        launches = source.machine_launches(args)
        return run_launches(launches, schedule=schedule, limit=limit, judge=judge, traffic=traffic)
    if _has_kernel(source):
        block = source.threads if block is None else block
        cluster = source.cluster if cluster is None and source.cluster > 1 else cluster
        dynamic_shared = dynamic_shared or source.shared_bytes
    expect(cooperative, bool, "cooperative")
    text = ptx_of(source, arch)
    launch = _Launch(text, grid, block, cluster, args, kernel, dynamic_shared, arch, {}, cooperative)
    return _run(launch, schedule, limit, judge, traffic)


def run_launches(
    launches: Sequence[MachineLaunch],
    *,
    schedule: str | int = "both",
    limit: int = LIMIT,
    judge: bool = True,
    traffic: bool = False,
) -> PtxRun:
    """Run launches one after another, and stop after the first that fails.

    Returns:
        the run of the last launch, with the findings of all launches.
    Raises:
        InvalidValueError: `launches` is empty. For other errors, see `run_ptx`.
    """
    if not launches:
        raise InvalidValueError("launches is empty; must have at least one entry")
    runs: list[PtxRun] = []
    for one in launches:
        kernel = one.kernel
        cluster = kernel.cluster if kernel.cluster > 1 else None
        text = ptx_of(kernel)
        launch = _Launch(text, one.grid, kernel.threads, cluster, one.args, None, kernel.shared_bytes, None, one.memory)
        runs.append(_run(launch, schedule, limit, judge, traffic))
        if not runs[-1].ok:
            break
    *before, last = runs
    left = [f"{run.kernel}: {text}" for run in before for text in run.scope.not_judged[:-1]]
    left += ["the launches after this one, because of its errors"] if len(runs) < len(launches) else []
    found = [one for run in runs for one in run.diagnostics]
    return replace(last, diagnostics=tuple(found), _unjudged=(*left, *last._unjudged))


@dataclass(frozen=True, slots=True)
class _Launch:
    text: str
    grid: Any
    block: Any
    cluster: Any
    args: Sequence[Any]
    kernel: str | None
    dynamic_shared: Any
    arch: str | None
    memory: Mapping[str, Array | Extended]
    cooperative: bool = False

    def shape(self, code: Code) -> Shape:
        """The sizes of the launch, checked as a driver does."""
        made = _shape(code, self.grid, self.block, self.cluster, self.dynamic_shared)
        return replace(made, cooperative=self.cooperative)


def _run(launch: _Launch, schedule: str | int, limit: int, judge: bool, traffic: bool) -> PtxRun:
    modes = _modes(schedule)
    limit = expect_integer(limit, "limit", 1)
    expect(judge, bool, "judge")
    expect(traffic, bool, "traffic")
    module = _module(launch.text)
    architecture(module.target if launch.arch is None else launch.arch)
    found = find_kernel(module, launch.kernel)
    code = decoded(module, found)
    shape = launch.shape(code)
    arguments = Arguments(found.parameters, launch.args, launch.memory, _map_target(module.target, launch.arch))
    before = arguments.bytes_of() if judge or len(modes) > 1 else {}
    first = _Execution(code, shape, arguments, modes[0], limit, judge=judge, traffic=traffic)
    first.run()
    diagnostics = list(first.totals.findings)
    result = first.result((), ())
    ran = [str(modes[0])]
    if judge and _worth_trying(diagnostics, first.totals.steps):
        after = arguments.bytes_of()
        diagnostics = with_changes(
            launch.text, diagnostics, functools.partial(_again, launch, arguments, before, first), code.sources
        )
        arguments.restore(after)
    if len(modes) > 1 and not first.failed and first.asynchronous:
        eager = arguments.bytes_of()
        arguments.restore(before)
        second = _Execution(code, shape, arguments, modes[1], limit, judge=judge, first=False)
        second.run()
        ran.append(str(modes[1]))
        diagnostics += _differences(second, eager, arguments, diagnostics)
        arguments.restore(eager)
    unjudged = [] if judge else ["races, fences and barriers, because of judge=False"]
    unjudged += first.totals.unjudged
    left = ["the rest of the run, because an error ended it"] if first.failed else []
    not_run = tuple([str(mode) for mode in modes[1:]]) if first.failed and first.asynchronous else ()
    left += [f"the schedule {mode}, because an error ended the run before it" for mode in not_run]
    return replace(
        result, diagnostics=tuple(with_cause_first(diagnostics)), schedules=tuple(ran), not_run=not_run,
        assumed=arguments.assumed(code), _unjudged=tuple(unjudged), _left=tuple(left),
    )  # fmt: skip


def _worth_trying(found: Sequence[Diagnostic], steps: int) -> bool:
    """Whether to try changes: for errors in all but the longest runs, for warnings only in short runs."""
    most = TRIED_STEPS if any(one.severity == "error" for one in found) else TRIED_WARNINGS
    return bool(found) and steps <= most


def _again(
    launch: _Launch, arguments: Arguments, before: Mapping[str, Array], first: _Execution, text: str
) -> list[Diagnostic] | None:
    """Run a changed text under the same schedule and from the same initial bytes, and return its findings; None if it
    can't run.
    """
    arguments.restore(before)
    try:
        module = read_module(text)
        found = find_kernel(module, launch.kernel)
        code = decoded(module, found)
        shape = launch.shape(code)
    except CuteError:
        return None
    run = _Execution(code, shape, arguments, first.mode, 2 * first.totals.steps + SLACK, judge=True)
    run.run()
    return run.totals.findings


def _map_target(text: str, given_arch: str | None) -> str:
    """The architecture that tensor maps are encoded for: the kernel's target for sm_100 and newer, else sm_90a."""
    name = text if given_arch is None else given_arch
    return name if architecture(name).number >= 100 else "sm_90a"


def _has_kernel(source: Any) -> bool:
    return has(source, "name", "text", "threads", "shared_bytes", "cluster", "arch")


@functools.lru_cache(maxsize=64)
def _compiled(text: str, name: str, arch: str) -> str:
    return ptx_of_text(text, name, arch)


def ptx_of(source: Any, arch: str | None = None) -> str:
    """Return the PTX of a source: PTX text, a file, or a kernel in CUDA C++.

    Raises:
        InvalidTypeError: the argument is not a source. InvalidValueError: the file can't be read or has no PTX, or the
            compiler reports an error. MissingPackageError: no compiler is installed.
    """
    if _has_kernel(source):
        return _compiled(source.text, source.name, arch or source.arch)
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise InvalidTypeError(
            f"a kernel must be PTX text, the path of a file, or an object that has one; got {given(source)}"
        )
    return ptx_of_file(os.fspath(source), arch or "sm_90a")


def _modes(schedule: str | int) -> list[str | int]:
    if isinstance(schedule, str) and schedule in ("both", "eager", "lazy"):
        return ["eager", "lazy"] if schedule == "both" else [schedule]
    if is_integer(schedule):
        return [int(schedule)]
    raise InvalidValueError(f"schedule = {given(schedule)}; must be 'both', 'eager', 'lazy' or a seed")


def _shape(code: Code, grid: object, block: object, cluster: object, dynamic_shared: object) -> Shape:
    """Check the sizes of a launch as a driver does, and return them."""
    kernel = code.kernel
    required = kernel.triple("reqntid")
    if block is None:
        if required is None:
            raise InvalidValueError(f"{kernel.name} has no .reqntid; pass block (--block of cute-py run)")
        block = required
    threads = triple(block, "block")
    if required is not None and threads != required:
        raise InvalidValueError(f"block = {threads}; {kernel.name} requires {required} (.reqntid)")
    count = threads[0] * threads[1] * threads[2]
    if count > MAX_BLOCK or threads[2] > 64:
        raise InvalidValueError(f"block = {threads}; must have at most {MAX_BLOCK} threads, 64 along z")
    most = kernel.triple("maxntid")
    if most is not None and count > most[0] * most[1] * most[2]:
        raise InvalidValueError(f"block = {threads}; {kernel.name} takes at most {most[0] * most[1] * most[2]} threads")
    clusters = kernel.triple("reqnctapercluster")
    size = triple((1 if cluster is None else cluster) if clusters is None else clusters, "cluster")
    if cluster is not None and clusters is not None and triple(cluster, "cluster") != clusters:
        raise InvalidValueError(f"cluster = {cluster}; {kernel.name} requires {clusters} (.reqnctapercluster)")
    if size[0] * size[1] * size[2] > MAX_CLUSTER:
        raise InvalidValueError(f"cluster = {size}; must have at most {MAX_CLUSTER} CTAs")
    ctas = triple(grid, "grid")
    if any(g % c for g, c in zip(ctas, size, strict=True)):
        raise InvalidValueError(f"grid = {ctas}; must be a multiple of the cluster {size}")
    dynamic = expect_integer(dynamic_shared, "dynamic_shared", 0, BLOCK_SHARED_BYTES, "bytes")
    used = code.shared_bytes(dynamic)
    if used > BLOCK_SHARED_BYTES:
        raise InvalidValueError(
            f"the kernel uses {used} bytes of shared memory; a CTA has at most {BLOCK_SHARED_BYTES}"
        )
    return Shape(ctas, threads, size, dynamic, clusters is not None or cluster is not None)


class _Execution:
    """One run of a launch under one schedule."""

    def __init__(
        self,
        code: Code,
        shape: Shape,
        arguments: Arguments,
        mode: str | int,
        limit: int,
        *,
        judge: bool,
        traffic: bool = False,
        first: bool = True,
    ) -> None:
        self.code, self.shape, self.arguments, self.mode, self.limit = code, shape, arguments, mode, limit
        self.recorder = TimelineRecorder()
        self.traffic = Traffics() if traffic else None
        beside: list[Observer] = [] if self.traffic is None else [self.traffic]
        if judge:
            self.observer = judges(code, first=first, beside=[*beside, self.recorder])
        else:
            self.observer = together(beside) if beside else Observer()
        self.totals = Totals()
        self.failed = False
        self.tensor: tuple[Array, Array, dict[tuple[int, int], Product]] | None = None
        """Cells, writers and products of the tensor memory of the CTAs of the first wave."""
        self.asynchronous = False
        self.resident = self._resident()
        for block in code.blocks:
            if block is not None:
                block.warps = block.threads = 0
                block.observed = None

    def _resident(self) -> int:
        """Number of CTAs that run together: as many as fit on a GPU, limited by the memory that the machine needs for
        them.
        """
        x, y, z = self.shape.block
        threads = -(-x * y * z // LANES) * LANES
        cluster = self.shape.cluster[0] * self.shape.cluster[1] * self.shape.cluster[2]
        shared = self.code.shared_bytes(self.shape.dynamic_shared) + 1024
        counts = self.code.counts
        each = (
            threads * (counts[0] + 2 * counts[1] + 4 * counts[2] + 8 * counts[3] + self.code.local_bytes + 64) + shared
        )
        on_one = max(1, min(SM_CTAS, SM_THREADS // threads, SM_SHARED_BYTES // shared))
        fits = min(MULTIPROCESSORS * on_one, max(1, MAX_STATE // each))
        found = max(fits // cluster, 1) * cluster
        x, y, z = self.shape.grid
        if self.shape.cooperative and x * y * z > found:
            text = f"a cooperative launch of {counted(x * y * z, 'CTA')}; at most {found} can run together"
            raise InvalidValueError(text, hint="use a smaller grid, or smaller CTAs")
        return found

    def run(self) -> None:
        """Run all CTAs, one wave of resident CTAs after another."""
        memory = Memory()
        place_variables(memory, self.code)
        self.arguments.place(memory, self.code)
        if self.shape.cooperative:
            content = np.zeros(WORKSPACE_BYTES, np.uint8)
            content.view(np.uint32)[0] = WORKSPACE_BYTES
            memory.workspace = memory.add("the workspace of the grid", content).address
        size = self.shape.cluster[0] * self.shape.cluster[1] * self.shape.cluster[2]
        rest = collections.deque(self.shape.coordinates().reshape(-1, size, 3))
        wave = -1
        while rest:
            wave += 1
            part = np.concatenate([rest.popleft() for _ in range(min(self.resident // size, len(rest)))])
            machine = Machine(
                self.code, memory, self.shape, part, self.mode, self.limit, self.totals, observer=self.observer
            )
            machine.wave = wave
            machine.state["not launched"] = rest
            try:
                machine.run()
            except Fault as fault:
                self.totals.findings += [fault.diagnostic, *fault.others]
                self.failed = True
            self.observer.ended(machine, self.failed)
            held = machine.state.get("tcgen05")
            if held is not None and self.tensor is None:
                self.tensor = held.cells, held.written, held.products
            self.asynchronous |= machine.asynchronous
            memory.forget()
            if self.failed:
                break
        self.totals.findings += self.observer.findings()

    def result(self, diagnostics: tuple[Diagnostic, ...], ran: tuple[str, ...]) -> PtxRun:
        """Return the `PtxRun` of this run."""
        code = self.code
        counts = []
        for block in code.blocks:
            if block is not None and block.threads:
                for number in range(block.start, block.start + block.length):
                    counts.append(self._count(number, block.warps, block.threads))
        x, y, z = self.shape.block
        i, j, k = self.shape.grid
        wave = (min(self.resident, i * j * k), -(-x * y * z // LANES) * LANES)
        trace = tuple(self.totals.trace)
        return PtxRun(
            code.kernel.name, diagnostics, tuple(self.totals.printed), tuple(counts), self.totals.steps,
            tuple(sorted(code.approximate)), ran, _trace=trace, _code=code, _wave=wave,
            _events=tuple(self.recorder.events), _tensor=self.tensor,
        )  # fmt: skip

    def _count(self, number: int, warps: int, threads: int) -> Count:
        one = self.code.instructions[number]
        source = None if one.loc is None else one.loc[1]
        file = "" if one.loc is None else source_file(one.loc[0], self.code.files)
        if self.traffic is None:
            return Count(one.line, source, one.text, warps, threads, source=file)
        held = self.traffic.of.get(number, Traffic())
        return Count(
            one.line, source, one.text, warps, threads, held.wavefronts, held.bank_conflicts, held.sectors, file
        )  # fmt: skip


def _differences(
    lazy: _Execution, eager: dict[str, Array], arguments: Arguments, known: list[Diagnostic]
) -> list[Diagnostic]:
    """Return the findings of only the lazy schedule, and one for each array that differs between the schedules."""
    seen = collections.Counter(one.message for one in known)
    found = [one for one in lazy.totals.findings if not seen[one.message]]
    if lazy.failed:
        return found
    for name, raw in arguments.bytes_of().items():
        differ = np.flatnonzero(raw != eager[name])
        if len(differ):
            text = (
                f"{name} differs between the schedules eager and lazy in {counted(len(differ), 'byte')}, the "
                f"first at byte {int(differ[0])}: the kernel reads or overwrites bytes that a copy or product is "
                "still using"
            )
            found.append(finding("schedules differ", text, facts={"argument": name, "byte": int(differ[0])}))
    return found
