"""Read the names of the GEMM kernels of CUTLASS's library and profiler.

    cutlass3x_sm90_tensorop_gemm_f16_f16_f32_void_f16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_epi_tma
    cutlass_tensorop_h16816gemm_256x128_32x3_nn_align8

A name consists of parts between underscores. CUTLASS writes them in a fixed order and omits some of them, so each
reader below takes the parts that have its form from the front of the rest. The reading lists the parts that no reader
takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeAlias

from cute_py.dtypes import as_dtype
from cute_py.errors import counted, unless_refused
from cute_py.explanation.readings import Reading, some

_NAME: Final = re.compile(
    r"\bcutlass(?P<version>3x)?(?:_(?:sm)?(?P<arch>[0-9]{2,3}[af]?))?"
    r"_(?P<op>wmma_tensorop|bssptensorop|bstensorop|sptensorop|tensorop|simt)_(?P<rest>\w{1,300})"
)
_OPS: Final = {
    "simt": "FMA instructions of CUDA cores",
    "tensorop": "tensor cores",
    "wmma_tensorop": "tensor cores, through the WMMA interface",
    "sptensorop": "tensor cores, with a sparse A",
    "bstensorop": "tensor cores, with block scales",
    "bssptensorop": "tensor cores, with block scales and a sparse A",
}
_LETTERS: Final = {
    "i": "s32",
    "h": "f16",
    "s": "f32",
    "d": "f64",
    "c": "complex f32",
    "z": "complex f64",
    "gc": "complex f32, with 3 real products (Gaussian)",
    "gz": "complex f64, with 3 real products (Gaussian)",
}
"""Letter before the instruction -> the type of the accumulator."""
_KINDS: Final = {
    "gemm": "a GEMM",
    "spgemm": "a GEMM with a sparse A",
    "gemm_grouped": "a grouped GEMM",
    "moe_gemm": "a grouped GEMM of experts (MoE)",
    "gemm_planar_complex": "a GEMM of complex numbers in separate planes",
    "gemm_planar_complex_array": "an array of GEMMs of complex numbers in separate planes",
}
_CORE: Final = re.compile(
    r"(?P<letter>g?[cz]|[ihsd])?(?P<shape>[0-9]{1,3}x[0-9]{1,3}x[0-9]{1,3}|[0-9]{3,7})?"
    r"(?P<math>xor|and|fastaccum)?(?P<inner>t?f32|b?f16|[su][0-9]{1,2})?(?P<kind>(?:moe_|sp)?gemm"
    r"(?:_grouped|_planar_complex(?:_array)?)?)(?=_|$)_?"
)
_MATH: Final = {
    "xor": "XOR and population count",
    "and": "AND and population count",
    "fastaccum": "fast accumulation of 8-bit floats",
}
_DIGITS: Final = {
    "884": (8, 8, 4),
    "1684": (16, 8, 4),
    "1688": (16, 8, 8),
    "16816": (16, 8, 16),
    "16832": (16, 8, 32),
    "16864": (16, 8, 64),
    "168128": (16, 8, 128),
    "168256": (16, 8, 256),
    "8816": (8, 8, 16),
    "8832": (8, 8, 32),
    "88128": (8, 8, 128),
    "161616": (16, 16, 16),
    "32816": (32, 8, 16),
    "83216": (8, 32, 16),
}
"""Shape of an instruction without separators, as CUTLASS 2.x writes it -> M, N, K."""
_PLAIN: Final = r"void|c?(?:b?f16|t?f32|f64)|c?[su][0-9]{1,2}|b1|e4m3|e5m2|e2m3|e3m2|e2m1|f[468]|ue8m0|ue4m3"
_TYPE: Final = re.compile(
    rf"(?:(?P<block>[0-9]{{1,4}}x[0-9]{{1,4}})?(?P<scale>{_PLAIN})x)?(?P<plain>{_PLAIN})(?=_|$)_?"
)
_MIXED: Final = re.compile(r"(?P<mode>cvt|sclzr|scl)(?P<shuffled>_shfl)?(?=_|$)_?")
_MODES: Final = {
    "cvt": "the narrow operand is only converted",
    "scl": "the narrow operand is converted and scaled",
    "sclzr": "the narrow operand is converted and scaled, with a zero point",
}
_TRIPLE: Final = re.compile(r"(?P<m>[0-9]{1,4})x(?P<n>[0-9]{1,4})x(?P<k>[0-9]{1,4})(?=_|$)_?")
_TILE_2X: Final = re.compile(r"(?P<m>[0-9]{1,4})x(?P<n>[0-9]{1,4})_(?P<k>[0-9]{1,4})x(?P<stages>[0-9]{1,2})(?=_|$)_?")
_STAGES: Final = re.compile(r"(?P<stages>[0-9]{1,2})(?=_|$)_?")
_MAJOR: Final = r"[nt](?:2|32|64)?|[ch]"
_LAYOUTS: Final = re.compile(rf"(?P<A>{_MAJOR})(?P<B>{_MAJOR})(?P<C>{_MAJOR})?(?=_|$)_?")
_ALIGN: Final = re.compile(r"align(?P<count>[0-9]{1,3})(?=_|$)_?")
_STREAM_K: Final = re.compile(r"stream_k(?=_|$)_?")
_SCHEDULE: Final = re.compile(
    r"(?P<words>(?:unspecialized|mixed|cpasync|warpspecialized|pingpong|cooperative|fp8_fastaccum|FastF32|acc2x4|[oq]|"
    r"vs(?:16|32)|ultra|[12]sm|nopf|tmapf)(?:_|$)){1,8}"
)
_WORDS: Final = {
    "unspecialized": "TMA copies, and every warp computes (not warp-specialised)",
    "mixed": "one operand arrives by TMA, the other by cp.async",
    "cpasync": "cp.async copies",
    "warpspecialized": "warp-specialised: a producer warp copies, and consumer warps compute",
    "pingpong": "pingpong: two consumer warpgroups work on different tiles in turn",
    "cooperative": "cooperative: two consumer warpgroups share one tile",
    "fp8_fastaccum": "fast accumulation of 8-bit floats, without promotion to full float32",
    "FastF32": "float32 products from several bfloat16 products",
    "vs16": "one scale for 16 elements of K",
    "vs32": "one scale for 32 elements of K",
    "ultra": "the ultra instructions of sm_103",
    "1sm": "one CTA executes an MMA (cta_group::1)",
    "2sm": "a pair of CTAs executes an MMA (cta_group::2)",
    "nopf": "no prefetch of the tensor maps or tiles",
    "tmapf": "prefetch by TMA",
}
"""Word of a schedule -> its meaning."""
_UNKNOWN_WORDS: Final = ("o", "q", "acc2x4")
"""Words of a schedule that the naming rule does not explain."""
_EPILOGUE: Final = re.compile(
    r"epi_(?P<kind>tma|nosmem)(?P<fast>_fastf32)?(?=_|$)_?|epiVs(?P<vector>[0-9]{1,3})(?P<major>[nt])(?=_|$)_?"
)
_EPILOGUES: Final = {
    "tma": "by TMA, through shared memory",
    "nosmem": "from registers, without shared memory",
}
_ROWS: Final = {"A": ("K", "M"), "B": ("N", "K"), "C": ("N", "M")}
"""Operand -> its contiguous mode if it is row-major, and if it is column-major."""
_SOURCE: Final = "python/cutlass_library/gemm_operation.py of CUTLASS defines the names"
_INSTRUCTION_TILES: Final = ("100", "103")
"""Architectures whose names give M and N of the MMA instruction, not of the tile."""
_Taker: TypeAlias = Callable[[re.Pattern[str]], re.Match[str] | None]
_Reader: TypeAlias = Callable[[_Taker], Iterator[str]]


def read_kernel_names(text: str) -> list[Reading]:
    """Read the name of each GEMM kernel of CUTLASS.

    >>> found = read_kernel_names("cutlass_tensorop_h16816gemm_256x128_32x3_nn_align8")
    >>> found[0].meaning[1]
    'instruction: 16x8x16 (M x N x K), accumulator of f16'
    """
    return [reading for match in some(_NAME.finditer(text), 8) if (reading := _reading(match)) is not None]


def _reading(match: re.Match[str]) -> Reading | None:
    rest = match["rest"]
    leading = _TYPE.match(rest) if match["version"] is None else None  # C, if it differs from the accumulator
    at = leading.end() if leading is not None else 0
    core = _CORE.match(rest, at)
    if core is None:
        return None
    at = core.end()

    def take(pattern: re.Pattern[str]) -> re.Match[str] | None:
        nonlocal at
        found = pattern.match(rest, at)
        at = found.end() if found is not None else at
        return found

    is_3x, arch = match["version"] is not None, match["arch"] or ""
    where = f" for sm_{arch}" if arch else ""
    lines = [f"{_KINDS[core['kind']]}{where}, CUTLASS {'3.x' if is_3x else '2.x'}; {_OPS[match['op']]}"]
    lines += _instruction(core)
    unread: list[str] = []
    readers = _READERS_3X if is_3x else _READERS_2X
    while at < len(rest):
        begin = at
        for number, reader in enumerate(readers):
            lines += reader(take)
            if at > begin:
                readers = readers[number + 1 :]
                break
        if at == begin:
            part = rest[at:].partition("_")[0]
            unread += [part] if part else []
            at += len(part) + 1
    lines += _defaults(lines, leading) if not is_3x else []
    if is_3x and arch.rstrip("af") in _INSTRUCTION_TILES:
        lines.append(f"on sm_{arch}, M and N of the tile in the name are those of the MMA instruction")
    unread += [line[2:] for line in lines if line[2:] in _UNKNOWN_WORDS]
    lines = [line for line in lines if line[2:] not in _UNKNOWN_WORDS]
    missing = [f"not read in the name: {', '.join(unread)}"] if unread else []
    return Reading(f"A kernel of CUTLASS: {match[0]}", *match.span(), [*lines, _SOURCE], missing=missing)


def _instruction(core: re.Match[str]) -> Iterator[str]:
    """The shape of the instruction and the type of the accumulator, if the name has them."""
    said = []
    if (shape := core["shape"]) is not None:
        known = shape if "x" in shape else "x".join(map(str, _DIGITS.get(shape, ())))
        said.append(f"{known} (M x N x K)" if known else f"of the shape {shape}, whose digits have no separators")
    if core["letter"] is not None:
        said.append(f"accumulator of {_LETTERS[core['letter']]}")
    if core["math"] is not None:
        said.append(_MATH[core["math"]])
    if core["inner"] is not None:
        said.append(f"the instruction computes with {core['inner']}")
    if said:
        yield f"instruction: {', '.join(said)}"


def _type_text(found: re.Match[str]) -> str:
    """A type with its scales, as text."""
    plain = found["plain"]
    if found["scale"] is None:
        return plain
    of = f" for {found['block']} elements" if found["block"] else ""
    return f"{plain} with scales of {found['scale']}{of}"


def _types_3x(take: _Taker) -> Iterator[str]:
    """The types of A, B, the accumulator, C and D, and the conversion of mixed types."""
    for name in ("A", "B", "accumulator", "C", "D"):
        if (found := take(_TYPE)) is None:
            break
        if found["plain"] == "void":
            yield f"{name}: void, so the kernel does not {'read' if name == 'C' else 'write'} it"
            continue
        dtype = unless_refused(as_dtype, found["plain"])
        width = f", {counted(dtype.bits, 'bit')}" if dtype is not None else ""
        yield f"{name}: {_type_text(found)}{width}"
    if (mixed := take(_MIXED)) is not None:
        yield _MODES[mixed["mode"]] + (", and its elements are reordered" if mixed["shuffled"] else "")


def _types_2x(take: _Taker) -> Iterator[str]:
    """The types of A and B of CUTLASS 2.x."""
    first, second = take(_TYPE), take(_TYPE)
    if first is not None:
        yield f"A: {_type_text(first)}" if second is not None else f"A and B: {_type_text(first)}"
    if second is not None:
        yield f"B: {_type_text(second)}"


def _defaults(lines: Sequence[str], leading: re.Match[str] | None) -> Iterator[str]:
    """The types that CUTLASS 2.x does not write, because they are the type of the accumulator."""
    if not any(line.startswith(("A: ", "A and B: ")) for line in lines):
        yield "A and B: the type of the accumulator, because the name has no other type"
    yield f"C and D: {_type_text(leading)}" if leading is not None else "C and D: the type of the accumulator"


def _tiles(take: _Taker) -> Iterator[str]:
    """The tile, the cluster and the stages of CUTLASS 3.x."""
    first, second = take(_TRIPLE), take(_TRIPLE)
    if second is None:
        first, second = None, first
    if first is not None:
        yield f"tile: {first['m']}x{first['n']}x{first['k']} (M x N x K)"
    if second is not None:
        sizes = [int(second[name]) for name in "mnk"]
        whole = "chosen at run time" if 0 in sizes else counted(sizes[0] * sizes[1] * sizes[2], "CTA")
        yield f"cluster: {'x'.join(map(str, sizes))}, {whole}"
    if (stages := take(_STAGES)) is not None:
        automatic = "0, so the builder chooses as many as fit in shared memory"
        yield f"stages: {int(stages['stages']) or automatic}"


def _tile_2x(take: _Taker) -> Iterator[str]:
    """The tile and the stages of CUTLASS 2.x."""
    if (found := take(_TILE_2X)) is not None:
        yield f"tile: {found['m']}x{found['n']}x{found['k']} (M x N x K)"
        yield f"stages: {int(found['stages'])}"


def _layouts(take: _Taker) -> Iterator[str]:
    """The layouts of the operands, and the mode that is contiguous in each."""
    if (found := take(_LAYOUTS)) is None:
        return
    for name, (row, column) in _ROWS.items():
        if (major := found[name]) is None:
            continue
        is_row = major[0] in "th"
        said = f"{'row' if is_row else 'column'}-major, {row if is_row else column} is contiguous"
        if major[1:]:
            said += f", interleaved by {major[1:]}"
        said += ", conjugated" * (major in "ch")
        said += "; the name does not give the layout of D" * (name == "C")
        yield f"layout of {name}: {major}, {said}"


def _alignment(take: _Taker) -> Iterator[str]:
    """The alignment of the operands in elements."""
    if (align := take(_ALIGN)) is not None:
        yield f"alignment: {counted(int(align['count']), 'element')}, the larger alignment of A and B"


def _scheduler(take: _Taker) -> Iterator[str]:
    """The tile scheduler, if it is not the default one."""
    if take(_STREAM_K) is not None:
        yield "tile scheduler: stream-K, which splits the K of some tiles over CTAs"


def _schedule(take: _Taker) -> Iterator[str]:
    """The schedule of the kernel, with the meaning of its words."""
    if (found := take(_SCHEDULE)) is not None:
        schedule = found[0].rstrip("_")
        yield f"schedule: {schedule}"
        for part in schedule.replace("fp8_fastaccum", "fp8-fastaccum").split("_"):
            name = part.replace("-", "_")
            yield f"  {_WORDS.get(name, name)}"


def _epilogue(take: _Taker) -> Iterator[str]:
    """The schedule of the epilogue."""
    while (epilogue := take(_EPILOGUE)) is not None:
        if epilogue["vector"] is not None:
            order = "row" if epilogue["major"] == "t" else "column"
            yield f"epilogue: writes one scale for {epilogue['vector']} elements of D, {order}-major"
        else:
            fast = ", for float32 from bfloat16 products" if epilogue["fast"] else ""
            yield f"epilogue: stores D {_EPILOGUES[epilogue['kind']]}{fast}"


_AFTER_TILES: Final = (_layouts, _alignment, _scheduler, _schedule, _epilogue)
_READERS_3X: Final[tuple[_Reader, ...]] = (_types_3x, _tiles, *_AFTER_TILES)
_READERS_2X: Final[tuple[_Reader, ...]] = (_types_2x, _tile_2x, *_AFTER_TILES)
"""Readers of the parts of a name, in the order of the parts."""
