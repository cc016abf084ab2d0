"""Errors of CuTe DSL: of its Python layer, and of the verifiers of its compiler.

The compiler wraps its lines, so that a space of a pattern here is any white space. Where a message has the operands,
they are compared, or the operation is run on them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from cute_py.diagnostics import Diagnostic
from cute_py.errors import unless_refused
from cute_py.explanation.compiler_pastes import Outcome, run_operation
from cute_py.explanation.messages import Message, messages_of, spaced
from cute_py.explanation.readings import Reading, some, without
from cute_py.layout.int_tuple import product_each
from cute_py.notation.parse import parse

_SOURCE: Final = "CuTe DSL"
_NUMBER: Final = re.compile(r"(?<![\w@_])([0-9]{1,18})(?!@|\w)|(?<![\w@_])([0-9]{1,18})(?=@)")


def _bytes_of(bits: int) -> int:
    return max(bits // 8, 1)


def _rows(n: Sequence[int]) -> str:
    need = _bytes_of(n[1])
    return (
        f"rows of {need} bytes that lie side by side: K-major tiles as they are, MN-major ones with transpose=True; "
        f"the other strides multiples of {need} bytes, byte_alignment={need} of the shared memory"
    )


def _aligned(n: Sequence[int]) -> str:
    have, need = n
    narrower = f"; or a copy of {have} bits (num_bits_per_copy={have})" if have in (32, 64) else ""
    return (
        f"{_bytes_of(need)} bytes side by side for each thread: values along the mode of stride 1, as many as fill "
        f"them, the other strides multiples of {_bytes_of(need)} bytes; assumed_align={_bytes_of(need)} of "
        f"from_dlpack, byte_alignment={_bytes_of(need)} of shared memory{narrower}"
    )


def _arch(n: Sequence[int]) -> str:
    if n[0] // 10 == 12:
        return "the warp's operations: MmaF16BF16Op, MmaSM120BlockScaledOp of cute.nvgpu.warp"
    return (
        "a GPU of the list, with CUTE_DSL_ARCH set to its own name (sm_90a, sm_100a), which also compiles for it where "
        "there is no GPU"
    )


def _extent(n: Sequence[int]) -> str:
    return f"N = {min(max(-(-n[0] // 8) * 8, 8), 256)}, or another multiple of 8 up to 256"


_WRITTEN: Final[tuple[Message, ...]] = (
    Message(r"'cute\.copy' op (?:src|dst) ptr alignment \(([0-9]+) bits\) does not meet requirement \(([0-9]+) bits\) "
            r"of atom '!cute_nvgpu\.atom\.(?:ldsm|stsm)[^']*'", "copy alignment",
            "ldmatrix and stmatrix take addresses of rows of {1} bits, known to be multiples of {0} bits only",
            _rows),
    Message(r"'cute\.copy' op (?:src|dst) ptr alignment \(([0-9]+) bits\) does not meet requirement \(([0-9]+) bits\)"
            r"(?: of atom '[^']*')?", "copy alignment",
            "one operation moves {1} bits, and the addresses are known to be multiples of {0} bits only: the values of "
            "a thread do not lie side by side, a stride is not a multiple, or the pointer is not known to be aligned",
            _aligned),
    Message(r"'cute\.copy' op (src|dst) expects (\w+) based memref, but got (\w+)", "address space",
            "the {0} of this copy must be in {1} memory, and is in {2} memory (generic: of the host, or a pointer made "
            "without a memory space)",
            fix="cp.async and bulk loads go from global to shared memory: an array of the GPU for from_dlpack, "
            "make_ptr(..., AddressSpace.gmem); to and from registers CopyUniversalOp"),
    Message(r"(?:'cute\.copy' op '[^']{0,300}' )?'cp_size' only supports \(32, 64, 128\), but got ([0-9]+)", "cp.async",
            "cp.async moves 4, 8 or 16 bytes, not {0} bits",
            fix="num_bits_per_copy=32, 64 or 128 with as many values a thread, or CopyUniversalOp"),
    Message(r"(?:'cute\.copy' op `src\.rank\(\) = |source and destination tensors to have the same rank, but got )"
            r"([0-9]+)(?:` != `dst\.rank\(\) = | and )([0-9]+)", "copy rank",
            "the source has {0} modes, the destination {1}: a copy needs the same number, the values of the atom first",
            fix="both from one thread slice (partition_S, partition_D), a fragment as make_fragment_like "
            "of it or retile; the same coordinate for both slices"),
    Message(r"`copy` currently only supports equal source and destination element type bit width", "copy type",
            "a copy moves bits and converts nothing: both tensors need elements of one width",
            fix="fragment.store(source.load().to(cutlass.BFloat16)) of a fragment of the new type, then "
            "the copy"),
    Message(r"`c` must have rank <= 2 when `a` has rank 1", "gemm rank",
            "A and B were sliced to one atom, the accumulator was not: slices of gemm keep their modes of M, N and K",
            fix="cute.gemm(tiled_mma, C, A[None, None, k], B[None, None, k], C): only the mode of K is sliced"),
    Message(r"expects the N-mode to satisfy 8 <= N <= 256 and N % (?:8|16) == 0[,.] but got ([0-9]+)",
            "instruction shape",
            "N of one instruction is {0}; it must be a multiple of 8 from 8 to 256 (of 16 for some)", _extent),
    Message(r"expects the M-mode to be ([0-9]+) or ([0-9]+), but got ([0-9]+)", "instruction shape",
            "M of one instruction is {0} or {1}, not {2}: 64 or 128 for one CTA, 128 or 256 for two",
            lambda n: f"M = {n[0] if n[2] <= n[0] else n[1]}; other tiles are several instructions, or padded"),
    Message(r"expects the instruction extent in the K-mode to be ([0-9]+), but got ([0-9]+)", "instruction shape",
            "K of one instruction is 32 bytes, {0} elements; the K of the tile, {1}, is that of the shared layout",
            lambda n: f"K = {n[0]} here, and {-(-n[1] // max(n[0], 1))} instructions, one for each k of "
            "A[None, None, k]"),
    Message(r"expects the '(\w+)' Op parameter to be (?:one of )?([\w ,]{1,120}\w)", "instruction type",
            "this operation has no form with such a type: {0} must be {1}",
            fix="the operation of that type (MmaTF32Op, MmaFP8Op, MmaI8Op, ...), or a conversion before"),
    Message(r"(x[0-9]+(?: and x[0-9]+)?) repetition is not supported", "repetition",
            "this load or store of tensor memory has no {0}: one instruction fills at most 128 registers of a thread",
            fix="Repetition.x32 of 16x256b, x64 of 16x128b, x128 of 16x64b and 32x32b, or fewer"),
    Message(r"expects arch to be one of \[[^\]]{0,800}\], but got \S*?sm_([0-9]+)[af]?(?:\s+Error Code: \w+)?",
            "target",
            "sm_{0} does not have this instruction: wgmma is of sm_90a alone, tcgen05 and tensor memory of sm_100a to "
            "sm_110a; sm_120 and sm_121 (GeForce RTX 50, DGX Spark) have neither", _arch),
    Message(r"expects (?:a |an )?(`?\w[\w `]{0,80}?)(?: value)? to be provided via the (\w+) kw argument",
            "copy argument",
            "this copy operation needs {1}, {0}",
            fix="cute.copy(atom, source, destination, tma_bar_ptr=...) of a load, and mcast_mask=... of a "
            "multicast one; stores need neither"),
    Message(r"expects an input with static shape, but got '!cute\.layout<\"([^\"]*)\">'", "static shape",
            "a size of {0} is known at run time only (?), and this operation of CuTe DSL takes none",
            fix="sizes that are Python numbers or Constexpr; the operation on the static modes alone"),
    Message(r"failed to partition `input` '!cute\.shape<\"([^\"]*)\">' with `tiled_mma`", "partition",
            "the tile of the tiled MMA does not divide the shape {0}",
            fix="sizes that are multiples of the MMA's tile: print(tiled_mma) has Shape MNK and the atoms"),
    Message(r"shape and stride must be congruent", "congruent",
            "shape and stride have different nesting or lengths: one stride for each size",
            fix="the same parentheses on both sides: (4, (2, 2)) and (1, (4, 8))"),
    Message(r"Expected strides\[leading_dim\] == 1, but got ([0-9]+)", "leading_dim",
            "the mode that is named as contiguous has stride {0}",
            fix="leading_dim = the mode of stride 1 in x.stride(), not one of size 1 (x.dim_order() orders those "
            "by chance); x.contiguous() if there is none"),
    Message(r"Can't de[cd]u[cd]e the leading dimension", "leading_dim",
            "no mode, or more than one, has stride 1 (a mode of size 1 has any stride)",
            fix="mark_layout_dynamic(leading_dim=k) with k the mode that stays contiguous"),
    Message(r"stride_order is not consistent with the (?:layout|deduced stride_order)", "stride_order",
            "stride_order names the modes from the largest stride to the smallest, and the strides say another order "
            "(before 4.3 also where a stride is above 2**31)",
            fix="stride_order=x.dim_order(): (0, 1) for row-major, (1, 0) for column-major"),
    Message(r"shape\(([0-9]+)\) of mode\(([0-9]+)\) is not divisible by the divisibility\(([0-9]+)\)", "divisibility",
            "mode {1} has {0} elements, and was declared a multiple of {2}",
            lambda n: f"divisibility={math.gcd(n[0], n[2])}, or a mode padded to "
            f"{-(-n[0] // n[2]) * n[2] if n[2] else 0}"),
    Message(r"Unable to convert dynamic Boolean value to bool at compile time", "run time",
            "a Python if, and, or or comparison needs a value while the program is traced, and this one is known at "
            "run time only",
            fix="an if statement in the jitted function itself (it becomes a branch), const_expr(...) around "
            "what is static, & and | in place of and, or"),
    Message(r"unable to convert [^\n]{1,200}? in type <class '(\w+)'> to Numeric", "run time",
            "a {0} is assigned in a branch or loop of run time, which keeps numbers and tensors only",
            fix="const_expr(...) in the condition, range_constexpr for the loop, or a fragment"),
    Message(r"operand #[0-9]+ does not dominate this use", "run time",
            "a value that was made inside of a branch or loop of run time (or in another jitted function) is used "
            "outside of it",
            fix="the variable assigned before the branch or loop, and again inside; values passed as arguments"),
    Message(r"failed to legalize operation '((?!cute_nvgpu\.make_[gu]mma_smem)(?:cute|nvvm)[\w.]*)' that was "
            r"explicitly marked illegal", "target",
            "the compiler has no code for {0} with these operands at this target: the GPU or this release lacks it",
            fix="CUTE_DSL_ARCH with the GPU's own name (sm_90a, sm_100a); a newer nvidia-cutlass-dsl"),
    Message(r"JIT session error: Symbols not found: \[ ?[^\]\n]*(cu(?:da_dialect|Kernel|daLaunch)\w*)[^\n]*",
            "runtime library",
            "the runtime library of CuTe DSL, which has {0}, was not found, or is of another release",
            fix="pip install again with -libs- packages of the same version; CUTE_DSL_LIBS = the path of "
            "libcute_dsl_runtime.so"),
    Message(r"No module named 'cutlass(?:\._mlir)?'|_mlir_libs\S*: undefined symbol: \w+", "packages",
            "CuTe DSL's compiler is not installed, or of another release than its Python files: nvidia-cutlass is "
            "another package, and a checkout of CUTLASS has no _mlir",
            fix="pip install nvidia-cutlass-dsl in a fresh environment, its -libs- packages of one version, no "
            "folder named cutlass beside the program"),
    Message(r"failed to legalize operation 'cute_nvgpu\.make_[gu]mma_smem_desc' that was explicitly marked "
            r"illegal", "canonical layout",
            "the shared layout is none of the canonical ones of wgmma and tcgen05, so that no descriptor holds it",
            fix="tile_to_shape of a layout atom (SmemLayoutAtomKind.K_SW128, ...); make_smem_layout has them"),
    Message(r"unable to partition input tensors for TMA", "tma_partition",
            "mode 0 of the shared and of the global tensor must be the atom's whole tile, of one size and in one order",
            fix="group_modes(x, 0, 2) of both, tiled by the tile that the atom was made with: explain(print)"),
    Message(r"'cute\.copy' op '!?[\w.]+<\w+, ([0-9]+) b>' "
            r"ptr alignment does not meet requirement", "alignment",
            "one operation moves {0} bits, and a pointer of the copy is not known to be a multiple of that: it is the "
            "!cute.memref of the note without align<n>, or with a smaller n",
            lambda n: f"from_dlpack(x, assumed_align={n[0] // 8}) and strides known to be multiples of it "
            f"(mark_compact_shape_dynamic(divisibility=...), cute.assume), or fewer than {n[0]} bits a copy"),
    Message(r"unknown attribute `(\w+)` in dialect `(cute\w*)", "version",
            "this release's compiler has no {0}: the operation does not take this argument yet, or the packages are of "
            "several releases", fix="a newer nvidia-cutlass-dsl, its -libs- packages of the same version"),
)  # fmt: skip
_ROWS: Final = tuple(replace(row, pattern=spaced(row.pattern), program=_SOURCE) for row in _WRITTEN)
"""Messages that say what is wrong without a computation, the more specific ones first."""

_Found: TypeAlias = tuple[str, str, Sequence[str], Sequence[str]]
"""Rule, message, lines on the operands, changes."""


def read_dsl(text: str) -> list[Reading]:
    """Every message of CuTe DSL in a text."""
    found = [*_computed(text)]
    found += messages_of(without(text, found), _ROWS)
    return [_whole(text, reading) for reading in found]


_HEAD: Final = re.compile(r"(?:[^\n]*compiler pass failed[ \t]{0,9}\n)?[^\n]*\Z")
_NOTE: Final = re.compile(r"[^\n]*(?:\n[ \t]{0,40}note: [^\n]*see current operation[^\n]*)?")


def _whole(text: str, reading: Reading) -> Reading:
    """A reading of the lines of its message, from the compiler's `error:` to the note on the operation."""
    begin = max(0, reading.begin - 1000)
    head, note = _HEAD.search(text[begin : reading.begin]), _NOTE.match(text, reading.end)
    return replace(
        reading,
        begin=begin + head.start() if head is not None else reading.begin,
        end=note.end() if note is not None else reading.end,
    )


def _computed(text: str) -> Iterator[Reading]:
    for pattern, made in _COMPUTED:
        for match in some(re.finditer(spaced(pattern), text), 8):
            if (outcome := made(match)) is not None:
                rule, message, lines, changes = outcome
                broken = (Diagnostic(rule, text=message, source=_SOURCE),)
                yield Reading("An error of CuTe DSL", *match.span(), lines, broken, changes)


def _static(spelled: str) -> str:
    """A layout of CuTe DSL as C++ prints it: its numbers are static.

    >>> _static("(4,(2,?)):(1@0,(8,1))")
    '(_4,(_2,?)):(_1@0,(_8,_1))'
    """
    return _NUMBER.sub(r"_\1\2", re.sub(r"\s+|\{[^}]*\}", "", spelled))


def _sizes(spelled: str) -> list[int] | None:
    """The sizes of the modes of a layout or shape; None where one is known at run time."""
    shape = unless_refused(parse, _static(spelled.rpartition(" o ")[2].partition(":")[0]))
    sizes = product_each(shape) if isinstance(shape, tuple) else (shape,)
    known = [int(n) for n in sizes if isinstance(n, int)]
    return known if len(known) == len(sizes) else None


def _run(name: str, left: str, right: str, of: tuple[str, str]) -> Outcome | None:
    parts = [part for one in (left, right) for part in _static(one).split(":")]
    names = [f"{side}{part}" for side in of for part in ("Shape", "Stride")]
    return run_operation(name, dict(zip(names, parts, strict=True))) if len(parts) == len(names) else None


def _condition(outcome: Outcome) -> str:
    """The condition of CuTe that the operation broke when it was run here."""
    return outcome[0][1].partition(" (")[0]


def _composition(match: re.Match[str]) -> _Found | None:
    if "?" in match["right"].partition(":")[0]:
        message = "the shape of the right side must be static: CuTe DSL composes with no size of run time"
        return "static shape", message, [f"{match['left']} o {match['right']}"], ["static sizes in the right layout"]
    outcome = _run("composition", match["left"], match["right"], ("L", "R"))
    message = "the right side can't be composed with the left"
    return None if outcome is None else (_condition(outcome), message, *outcome)


def _product(match: re.Match[str]) -> _Found | None:
    outcome = _run("logical_product", match["left"], match["right"], ("L", "T"))
    return None if outcome is None else (_condition(outcome), "these layouts have no product", *outcome)


def _gemm(match: re.Match[str]) -> _Found | None:
    a, b, d = (_sizes(match[name]) for name in "abd")
    if a is None or b is None or d is None or min(len(a), len(b)) < 2 or len(d) < 3:
        return None
    lines = [f"A has {a[1]} atoms along M, B {b[1]} along N, D {d[1]} along M and {d[2]} along N"]
    wrong = [f"M: {a[1]} of A, {d[1]} of D"] if a[1] != d[1] else []
    wrong += [f"N: {b[1]} of B, {d[2]} of D"] if b[1] != d[2] else []
    if len(a) > 2 and len(b) > 2:
        lines.append(f"along K A has {a[2]}, B {b[2]}")
        wrong += [f"K: {a[2]} of A, {b[2]} of B"] if a[2] != b[2] else []
    if not wrong:
        message = "the numbers of atoms agree: this release refuses a form that it has (N = 8 of wgmma before 4.8)"
        return "gemm", message, lines, ["a newer nvidia-cutlass-dsl, or N of 16 or more"]
    change = "A and B partitioned and sliced alike, the accumulator of partition_shape_C of the same tile (M, N)"
    return "gemm", f"the numbers of atoms differ: {'; '.join(wrong)}", lines, [change]


def _congruent(match: re.Match[str]) -> _Found | None:
    sizes = _sizes(match["layout"].replace("?", "1"))
    if sizes is None:
        return None
    modes, given = len(sizes), len(_sizes(re.sub(r"\b_|\?", "1", match["coord"])) or ())
    lines = [f"the tensor is {match['layout']}: {modes} modes; the coordinate {match['coord']} has {given} entries"]
    changes = [f"{modes} entries, one for each mode (None keeps a mode)"] if modes != given else []
    if "@" in match["layout"]:
        changes.append(
            "a tensor of tma_partition has mode 0 = one tile: group_modes(x, 0, 2) of both tensors before it, then one "
            "entry for each further mode"
        )
    return "coordinate", "the coordinate has another nesting than the tensor", lines, changes


def _first_modes(match: re.Match[str]) -> _Found | None:
    counts = []
    for name in ("smem", "gmem"):
        sizes = _sizes(re.sub(r"^\((\(\(.*\)\))\)$", r"\1", re.sub(r"\s+", "", match[name])))
        whole = match[name].startswith("(((")
        counts.append(None if sizes is None else math.prod(sizes) if whole else sizes[0])
    if None in counts:
        return None
    message = f"one tile is {counts[0]} elements in shared memory and {counts[1]} in the global tensor"
    change = "local_tile(gmem, tile, ...) with the tile of the TMA atom, then group_modes(x, 0, 2) of both tensors"
    return "tma_partition", message, [], [change]


def _v_map(match: re.Match[str]) -> _Found | None:
    smem, tile = _sizes(match["smem"]), _sizes(match["tile"])
    if smem is None or tile is None:
        return None
    message = f"the shared layout has {tuple(smem)} elements by mode, the tile of the copy {tuple(tile)}"
    change = f"a tiler of {tuple(smem)}, or a shared layout of {tuple(tile)}; without the mode of stages (slice it off)"
    return "TMA requires CTA_Tile and SLayout top-level size equivalence.", message, [], [change]


def _quoted(kind: str, name: str) -> str:
    return rf"'!cute\.{kind}<\"(?P<{name}>[^\"]*)\">'"


_LAYOUT: Final = r"(?:composed_)?layout"
_SHAPE: Final = r"\([^\n:]{1,200}\)"
_COMPUTED: Final[tuple[tuple[str, Callable[[re.Match[str]], _Found | None]], ...]] = (
    (rf"unable to compute the following composition: {_quoted(_LAYOUT, 'left')} o {_quoted(_LAYOUT, 'right')}",
     _composition),
    (rf"unable to compute product with {_quoted(_LAYOUT, 'left')} and {_quoted(_LAYOUT, 'right')}", _product),
    (rf"'cute\.gemm' op (?:invalid layout of A/B/D|layoutA, layoutB and layoutD fail to form a gemm)\. "
     rf"A: (?P<a>{_SHAPE}:{_SHAPE}), B: (?P<b>{_SHAPE}:{_SHAPE}), D:\s?(?P<d>{_SHAPE}:{_SHAPE})", _gemm),
    (rf"expects `coord` and shape of view are weakly congruent, but got {_quoted(_LAYOUT, 'layout')}, "
     rf"{_quoted('coord', 'coord')}", _congruent),
    (rf"expects smem and gmem have the same size in the first rank, but got smemShape: (?P<smem>{_SHAPE}) and "
     rf"gmemShape: (?P<gmem>{_SHAPE})", _first_modes),
    (rf"expected top-level shape equivalence between the SMEM layout and the CTA V-map, but got "
     rf"{_quoted(_LAYOUT, 'smem')} and {_quoted(_LAYOUT, 'tile')}", _v_map),
)  # fmt: skip
"""Messages whose operands are compared or run."""
