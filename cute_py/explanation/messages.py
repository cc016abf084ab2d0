"""Error texts on TMA, layouts and placements of Triton, TileLang, CuTe DSL, CUTLASS, CCCL, JAX, PyTorch and others.

A message states its rule and mostly its numbers; the table below has how each is recognised, the rule (one of tensor
maps, or the program's own) and the change that follows from the numbers. `messages.txt` has those by which the program
is known, and whose change needs no arithmetic. A message that is in neither is read by what it demands: an alignment, a
power of two, a contiguous mode, a rank, a size of the box. Nsight Compute's counts of bank conflicts are read as well.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Final

from cute_py.diagnostics import Diagnostic, reason_table
from cute_py.explanation.readings import Reading, some
from cute_py.explanation.reasons import STEP_REASONS
from cute_py.tma.descriptor.limits import BY_NAME, GPUS


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a program.

    Attributes:
        pattern: how it is recognised; groups are its numbers. rule: the rule of a tensor map, or a name of its own.
        text: what it means, `{0}` its first group; change: (numbers) -> what works instead.
        fix: the same as a text, `{0}` the first group; program: what prints it, if the text around it does not matter.
    """

    pattern: str
    rule: str
    text: str
    change: Callable[[Sequence[int]], str] | None = None
    fix: str = ""
    program: str = ""


def _at_least(numbers: Sequence[int]) -> str:
    width = numbers[1] if len(numbers) > 1 and numbers[1] else 1
    least = -(-16 // width)
    return f"a last block dimension of at least {least}: {least} elements x {width} bytes = {least * width} bytes"


def _box_row(numbers: Sequence[int]) -> str:
    edge, bits = (*numbers, 0, 0)[:2]
    if not bits or bits > 128:
        return ""
    unit = max(1, 128 // bits)
    fitted = max(unit, -(-edge // unit) * unit)
    return f"boxDim[0] = {fitted}: {fitted} x {bits} bits = {fitted * bits // 8} bytes"


def _span(numbers: Sequence[int]) -> str:
    span, _, bits = (*numbers, 0, 0, 0)[:3]
    return f"boxDim[0] = {span * 8 // bits} elements = {span} bytes, or a wider swizzle" if bits else ""


_LARGEST: Final = {GPUS[name].block_shared_memory_bytes: GPUS[name] for name in ("sm_90", "sm_120")}
"""Bytes of shared memory of a block -> a GPU."""


MESSAGES: Final[tuple[Message, ...]] = (
    Message(
        r"block shape must have at least 16 bytes in the last dimension,"
        r"\s+but got ([0-9]+) \* ([0-9]+) = ([0-9]+) bytes",
        "inner_bytes",
        "the innermost box is {0} elements x {1} bytes = {2} bytes, and must be at least 16",
        _at_least,
    ),
    Message(
        r"boxDim\[0\] \* elementSize must be a multiple of 16 bytes[^\n]*but got ([0-9]+) \* ([0-9]+) bits",
        "inner_bytes",
        "the innermost box is {0} x {1} bits; it must be a multiple of 16 bytes",
        _box_row,
    ),
    Message(
        r"boxDim\[0\] \* elementSize must be <= swizzle span \(([0-9]+) bytes\)[^\n]*but got ([0-9]+) \* ([0-9]+) bits",
        "inner_span",
        "a row of the box is {1} x {2} bits, and the swizzle permutes {0} bytes",
        _span,
    ),
    Message(r"boxDim\[([0-9])\] must be <= 256, but got ([0-9]+)", "box", "boxDim[{0}] = {1}; at most 256 elements",
            lambda n: f"boxDim[{n[0]}] = {next(k for k in range(256, 0, -1) if n[1] % k == 0)}, several copies a tile"),
    Message(r"boxDim\[([0-9])\] must be non-zero", "box", "boxDim[{0}] = 0; at least 1 element"),
    Message(r"elementStrides\[([0-9])\] must be in \[1, 8\], but got ([0-9]+)", "element_stride",
            "elementStrides[{0}] = {1}; must be 1 to 8"),
    Message(r"globalDim\[([0-9])\] must be non-zero", "size", "globalDim[{0}] = 0: an empty tensor has no map"),
    Message(r"globalDim\[([0-9])\] must be <= 2\^32, but got ([0-9]+)", "size", "globalDim[{0}] = {1}; at most 2**32"),
    Message(
        r"globalStrides?\[([0-9])\][^\n]*?= ([0-9]+)\) must be a multiple of ([0-9]+) bytes",
        "stride_alignment",
        "globalStrides[{0}] = {1} bytes; must be a multiple of {2}",
        lambda n: f"pad the row: {-(-n[1] // n[2]) * n[2]} bytes in place of {n[1]}",
    ),
    Message(r"globalStrides?\[([0-9])\][^\n]*?= ([0-9]+)\) must be < 2\^40", "stride_range",
            "globalStrides[{0}] = {1} bytes; must be below 2**40 (a negative stride shows as a huge one)"),
    Message(r"globalStrides?\[([0-9])\][^\n]*must be non-zero", "stride 0",
            "globalStrides[{0}] = 0: the driver takes it (a broadcast), TileLang does not"),
    Message(r"globalAddress must be ([0-9]+)-byte aligned, but mod[0-9]+=([0-9]+)", "address_alignment",
            "the base address must be a multiple of {0} bytes and is {1} bytes beyond one",
            lambda n: f"begin {n[1]} bytes earlier, or copy the view to memory of its own"),
    Message(r"globalAddress must be non-null", "null address", "the base address is null: nothing was allocated"),
    Message(r"tensorMap (?:address )?must be (?:64-byte aligned|non-null)", "map alignment",
            "the map itself must lie at a multiple of 64 bytes (128 since CUDA 13): alignas(64) CUtensorMap"),
    Message(r"tensorRank must be in \[1, 5\], but got ([0-9]+)", "rank", "a map has 1 to 5 modes, not {0}"),
    Message(r"tensorRank must be >= 3 when interleave", "rank_interleave", "interleave needs 3 modes or more"),
    Message(r"swizzle must be CU_TENSOR_MAP_SWIZZLE_32B when", "interleave 32B",
            "interleave 32B is documented to go with swizzle 32B"),
    Message(r"OOB_FILL_NAN\w* can only be used with floating", "nan_fill", "an integer type has no NaN to fill with"),
    Message(r"(?:tensorDataType|data type)[^\n]{0,40}not (?:a )?supported", "data_type",
            "tensor maps have no format for this element type: move the bits as an integer of its width"),
    Message(r"(?:descriptor )?gather must have at least ([0-9]+) rows, but got \D*([0-9]+)", "gather rows",
            "a gather takes at least {0} rows and {1} were given: two gather4 instructions or more",
            lambda n: f"{n[0]} offsets or more; repeat the last one, or load {n[1]} rows without TMA"),
    Message(r"(?:descriptor )?scatter must have at least ([0-9]+) rows, but got \D*([0-9]+)", "scatter rows",
            "a scatter takes at least {0} rows and {1} were given", lambda n: f"{n[0]} offsets or more"),
    Message(r"(?:gather|scatter) of (?:\S+) must have at least ([0-9]+) columns, but got ([0-9]+)", "gather columns",
            "a row of a gather or scatter has at least 32 bytes: {0} columns of this type, not {1}",
            lambda n: f"a block of [1, {n[0]}] or wider"),
    Message(r"descriptor block must have (?:exactly )?1 row, but got \D*([0-9]+)", "gather block",
            "the block of a gather or scatter is one row: the offsets name the rows",
            fix="block_shape=[1, columns]"),
    Message(r"descriptor must be 2D, but got", "gather rank", "gather and scatter take maps of 2 modes"),
    Message(r"x[ _]offsets must be 1D|x offsets must have dtype", "gather offsets",
            "the rows of a gather are one vector of int16 or int32"),
    Message(r"Shape element ([0-9]) must be a power of 2", "power of 2",
            "block dimension {0} is not a power of 2: Triton's own rule, the hardware takes 1 to 256",
            fix="powers of 2 for every block dimension (32, 64, 128, ...); let the descriptor fill what hangs "
            "over the tensor"),
    Message(r"expected ([0-9]+) offsets?, but got ([0-9]+)", "offsets",
            "the descriptor has {0} modes and {1} offsets were given: one for each mode, outermost first",
            lambda n: f"{n[0]} offsets"),
    Message(r"Expected (?:1 <= ndim <= 5|ndim in range \[1, 5\]) but got ([0-9]+)", "rank",
            "a map has 1 to 5 modes, not {0}", fix="merge modes that continue each other, or view fewer"),
    Message(r"Expected ([0-9]+) strides but got ([0-9]+)", "length", "{0} modes need {0} strides, {1} were given",
            lambda n: f"{n[0]} strides"),
    Message(r"Expected block_shape to have ([0-9]+) dimensions but got ([0-9]+)", "length",
            "{0} modes need a block of {0} dimensions, {1} were given", lambda n: f"a block of {n[0]} dimensions"),
    Message(r"last dim(?: stride)? must be 1 but got (-?[0-9]+)", "contiguous mode",
            "the last dimension has stride {0}; TMA's innermost mode has stride 1",
            fix="transpose the view so that the contiguous mode is last, or x.contiguous()"),
    Message(r"Last dimension must be contiguous", "contiguous mode",
            "the last stride is not 1; TMA's innermost mode has stride 1",
            fix="transpose the view so that the contiguous mode is last, or x.contiguous()"),
    Message(r"strides must be 16-byte aligned", "stride_alignment",
            "a stride but the last, in bytes, is not a multiple of 16",
            fix="pad the row: a multiple of 8 elements of 16 bits, 4 of 32 bits, 16 of 8 bits"),
    Message(r"base must be 16-byte aligned", "address_alignment",
            "the tensor begins at an address that is not a multiple of 16: a view at an odd offset",
            fix="begin the view at a multiple of 16 bytes, or clone() it; put the offset into the coordinates"),
    Message(r"shape must be positive", "size", "a dimension is 0 (or negative): an empty tensor has no map; "
    "sizes are 1 to 2**32",
            fix="launch nothing where a dimension is 0"),
    Message(r"rank mismatch", "length", "shape, strides and block_shape have different lengths; one entry for "
    "each mode"),
    Message(r"swizzling_?Byte_?Width\W{0,3}([0-9]+) does not fit[^\n]{0,60}?([0-9]+) bytes", "inner_span",
            "a row of {1} bytes holds no pattern of {0} bytes: the contiguous block is at least the swizzle's span",
            lambda n: f"a contiguous block of {n[0]} bytes or more, or a swizzle of {n[1]} bytes"),
    Message(r"has no attribute '(?:make_tensor_descriptor|_?experimental_make_tensor_descriptor)'", "version",
            "this Triton is older than its tensor descriptors: tl.make_tensor_descriptor came with Triton 3.4",
            fix="Triton 3.4 or later; before it, tl._experimental_make_tensor_descriptor (3.3)"),
    Message(r"rank must not be zero|rank cannot be more than 5|(?:rank|ndim) must be (?:between 1 and 5|<= ?5)",
            "rank", "a map has 1 to 5 modes"),
    Message(r"(?:Illegal value for padding|Padding option `?nan`? is (?:only supported|not supported))", "nan_fill",
            "NaN padding needs a floating-point type; 'zero' works for all"),
    Message(r"int1 type is not supported", "data_type", "there is no format of 1 bit; use 8-bit integers"),
    Message(r"numel \(?([0-9]+)\)? exceeds triton maximum", "block size", "a block of {0} elements is above "
    "Triton's limit"),
    Message(r"out of resource: shared memory, Required: ([0-9]+), Hardware limit: ([0-9]+)", "box_bytes",
            "{0} bytes of shared memory are asked for, a block has {1}",
            lambda n: f"fewer stages or a smaller block: {n[0] - n[1]} bytes less"),
    Message(r"Please set allocator|requires? a (?:global )?(?:memory )?allocator|no allocator was set", "allocator",
            "device-side descriptors are written to global memory that the host allocates",
            fix="triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8, "
            "device='cuda'))"),
    Message(r"CUtensorMap must be aligned to ([0-9]+)B?, but got [^\n]{0,20}mod [0-9]+ = ([0-9]+)", "map alignment",
            "the map lies {1} bytes beyond a multiple of {0}: 64 bytes until CUDA 12, 128 since CUDA 13",
            lambda n: f"alignas({n[0]}) CUtensorMap, also where a launcher packs it among parameters; a newer Triton"),
    Message(r"block offset start must be 16-byte aligned", "inner coordinate",
            "the innermost coordinate, in bytes, is not a multiple of 16; the other coordinates are free",
            fix="a first column that is a multiple of 16 bytes, or a descriptor that begins at that column"),
    Message(r"isinstance\(base\.dtype, tl\.pointer_type\)", "pointer",
            "make_tensor_descriptor takes a pointer; a descriptor of the host, or a tensor of values, was given",
            fix="use a descriptor that the host made as it is, or give the kernel the pointer"),
    Message(r"descriptor block and tensor types must match(?:[^\n]*\n){0,3}?[^\n]*?tensordesc<(?:tensor<)?"
            r"([0-9x]+)x(\w+)[^\n]*?[ (]tensor<([0-9x]+)x(\w+)", "block type",
            "the descriptor's block is {0} of {1}, the value {2} of {3}: both must have the same shape and type",
            fix="block_shape as the value has it, or a cast and a reshape of the value"),
    Message(r"descriptor block and tensor types must match", "block type",
            "the value has another shape or type than the descriptor's block: both must have the same shape and type",
            fix="block_shape as the value has it, or a cast and a reshape of the value"),
    Message(r"Illegal shared layout; expected shape to be at least \[([0-9]+), ([0-9]+)\], "
            r"shape: \[([0-9]+), ([0-9]+)\]", "inner_span",
            "the swizzle's pattern has {0} rows of {1} elements, the tile {2} rows of {3}",
            lambda n: f"a block of at least {n[0]} x {n[1]}, or a narrower swizzle"),
    Message(r"out of resource: tensor memory, Required: ([0-9]+), Hardware limit: ([0-9]+)", "tensor memory",
            "{0} columns of tensor memory are asked for, a multiprocessor has {1} columns of 128 lanes",
            lambda n: f"accumulators of {n[1]} columns at most in all: smaller blocks, or fewer of them at once"),
    Message(r"Layout has rank ([0-9]+), but the tensor it's attached to has rank ([0-9]+)", "encoding rank",
            "an encoding of rank {0} on a tensor of rank {1}: each dimension of the tensor needs one of the encoding",
            lambda n: f"a slice of it (#ttg.slice) for rank {n[1]}, or a tensor of rank {n[0]}"),
    Message(r"Arch conditional MMA instruction used without targeting ?[^\n]{0,40}|"
            r"(?:Trying|Attempting) to use [^\n]{1,80}? without CUTE_ARCH_\w*?(?:SM([0-9]{2,3}))?A?_ENABLED", "target",
            "the kernel was compiled for a target that lacks its instructions: it stops there and writes nothing",
            lambda n: f"the target that has them, if it is the GPU's own: -arch=sm_{n[0]}{'a' * (n[0] >= 90)}" if n[0]
            else "the GPU's own target: -arch=sm_90a (sm_100a, sm_103a, sm_120a), not sm_90 or an older PTX"),
    Message(r"undefined (?:reference to|symbol:?) ?[`'\"]?(cu[A-Z]\w+)", "link",
            "{0} is a function of the driver's own library, libcuda, and was not linked",
            fix="link with -lcuda, or ask for it at run time: cudaGetDriverEntryPointByVersion(name, &f, 12000, "
            "cudaEnableDefault, &found), which needs no link"),
    Message(r"Barrier must be located in local shared memory", "barrier",
            "the cuda::barrier is not in the shared memory of this block",
            fix="__shared__ cuda::barrier<cuda::thread_scope_block> bar;"),
    Message(r"(dest|src) must point to (shared|global) memory", "address space",
            "{0} is not an address of {1} memory: a bulk copy of CCCL goes from global to shared memory"),
    Message(r"(Transaction|Arrival) count update cannot exceed 2\^20 - 1", "tx_count",
            "{0} count: one update of a barrier is at most 1048575 (of bytes: 1 MiB less 1)",
            fix="several updates, one for each copy"),
    Message(r"(?:memcpy|mempcy)_async_tx expects arguments to be at least 16 byte aligned", "address_alignment",
            "both addresses and the size of a bulk copy are multiples of 16 bytes, and its type must say so",
            fix="cuda::aligned_size_t<16>(bytes), and alignas(16) or more of the shared array"),
    Message(r"\b(?:Error Misaligned Operand|kErrorMisalignedOperand)\b", "stride_alignment",
            "CUTLASS's kMisalignedOperand: an operand's address or leading dimension is not a multiple of its "
            "alignment, which is 16 bytes for TMA",
            fix="leading dimensions of a multiple of 8 elements of 16 bits, 16 of 8 bits; or another kernel"),
    Message(r"(?:error: )?\b(?:Error Internal|kErrorInternal)\b[^\n]{0,80}", "initialize",
            "CUTLASS's kErrorInternal: initialize() or the launch failed: a TMA descriptor was refused (its arguments "
            "are printed before), the kernel asks for more shared memory than a block has, or the grid is not a "
            "multiple of the cluster"),
    Message(r"\b(?:Error (?:Invalid Problem|Not Supported)|kError(?:InvalidProblem|NotSupported)|"
            r"cutlass error: Invalid status)\b", "can_implement",
            "can_implement() is false: a shape, an alignment or a mode that this kernel was not made for",
            program="CUTLASS or CuTe DSL"),
    Message(r"\b(?:Error (?:Arch(?:itecture)? Mismatch|Insufficient Driver)|kErrorArchMismatch)\b", "target",
            "the kernel is for another architecture, or the driver is older than its toolkit"),
    Message(r"trailing dimension of (mat[12]) to be divisible by ([0-9]+) but got mat[12] shape: \(([0-9]+)x([0-9]+)\)",
            "stride_alignment",
            "{0} has rows of {3} elements of 8 bits; a row must be a multiple of {1} elements, 16 bytes",
            lambda n: f"pad the row to {-(-n[3] // n[1]) * n[1]} elements" if n[1] else ""),
    Message(r"mn % ([0-9]+) == 0", "stride_alignment",
            "scale factors of 32 bits go through a tensor map: their extent MN, its stride, must be a multiple of {0}, "
            "16 bytes", lambda n: f"pad MN to a multiple of {n[0]}"),
    Message(r"(?:Lower|Upper) corner must be in range \[(-[0-9]+), ([0-9]+)\] for ([345])D im2col", "corner_range",
            "a corner of the bounding box is beyond {0} to {1}, all that a map of {2} modes holds",
            lambda n: f"padding and dilation * (filter - 1) within {n[0]} to {n[1]}; wider filters, such as those of a "
            "gradient, go without im2col maps"),
    Message(r"WGMMA type or shape is not supported", "wgmma",
            "wgmma has no such form: M is 64, N a multiple of 8 up to 256, K 32 bytes; operands of 32 and of 8 bits "
            "are K-major in shared memory, only those of 16 bits may be MN-major",
            fix="operands of 32 or 8 bits with K contiguous: transpose the array, not the tile; or 16 bits",
            program="Triton"),
    Message(r"mma -> mma layout conversion is only supported on Ampere", "version",
            "this Triton changes the layout of a product of mma.sync alone, not of one of wgmma",
            fix="a newer Triton"),
    Message(r"LLVM ERROR: Failed to find a valid layout", "canonical layout",
            "the shared layout of an operand is none that a descriptor of wgmma or tcgen05 holds",
            fix="blocks of at least 8 rows of 32 bytes along each mode; operands loaded as they lie, without a "
            "reshape or a transpose in between"),
    Message(r"unsupported (?:shared memory layout for MMAv3|NVMMA layout)", "canonical layout",
            "the rows of an operand's tile are shorter than the narrowest swizzle, 32 bytes",
            fix="a BLOCK_K of 32 bytes or more: 32 elements of 8 bits, 16 of 16 bits"),
    Message(r"descriptor block and tensor must have the same number of elements, but got descriptor block with "
            r"([0-9]+) elements tensor with ([0-9]+) elements", "block type",
            "the descriptor's box has {0} elements, the shared tile {1}: a copy fills its tile exactly",
            lambda n: f"a block_shape of {n[1]} elements; where a compiler split the tile (warp specialization), make "
            "the descriptor in the kernel, or take the smaller block"),
    Message(r"cp\.async does not support transfers smaller than 4 bytes", "cp.async",
            "one thread's run of contiguous elements is shorter than 4 bytes, the least that cp.async moves (4, 8, 16)",
            fix="loads whose contiguous mode the layout's order names first, or num_stages=1, which needs none",
            program="a front end"),
    Message(r"layout for fragment (\w+) can not be inferred", "layout inference",
            "no tile operation gives the fragment {0} a layout: it is only assigned to, or not used",
            fix="use it in T.copy, T.gemm, T.reduce or a T.Parallel loop, or T.annotate_layout",
            program="TileLang"),
    Message(r"Layout may conflict with ParallelOp for buffer (\w+)", "layout inference",
            "two operations need the fragment {0} in different layouts: each thread would hold other elements",
            fix="a copy through T.alloc_shared between them, or loops of the same shape and order",
            program="TileLang"),
    Message(r"Get different layout for (\w+)", "layout inference",
            "two operations need {0} in different layouts; wgmma and ldmatrix take their own swizzles only",
            fix="no T.annotate_layout on that buffer, or make_swizzled_layout; or a buffer for each operation",
            program="TileLang"),
    Message(r"Not a canonical GMMA_(K|MN) layout", "canonical layout",
            "the shared tile, {0}-major, is none of the canonical layouts of wgmma: one warpgroup's part may be too "
            "narrow",
            fix="fewer threads (128 are one warpgroup), or a wider tile"),
    Message(r"Failed to set the allowed dynamic shared memory size to ([0-9]+)(?:[^\n]{0,30}invalid argument)?",
            "dynamic shared memory", "{0} bytes of dynamic shared memory are asked for; a block has at most "
            + ", ".join(f"{row.block_shared_memory_bytes} on {row.name}" for row in _LARGEST.values()),
            lambda n: "fewer stages, or smaller tiles: " + "; ".join(
                f"{n[0] - most} bytes less for {row.name}" for most, row in _LARGEST.items() if n[0] > most),
            program="TileLang"),
    Message(r"identifier \"mbarrier\" is undefined", "mbarrier",
            "TileLang lowered copies to TMA and made no barriers for them: warp specialization was disabled alone",
            fix="TL_DISABLE_TMA_LOWER beside TL_DISABLE_WARP_SPECIALIZED, or a newer TileLang",
            program="TileLang"),
    Message(r"[‘'\"`](CUtensorMap\w*)[’'\"`] (?:(?:has not been|was not) declared|is undefined|does not name a type)"
            r"(?:[\s\S]{0,8000}CUtensorMap\w*[’'\"`] (?:has|was) not (?:been )?declared)?", "version",
            "{0} is declared by cuda.h of CUDA 12.0 or later: an older toolkit's header was found, or none",
            fix="#include <cuda.h>, and the -I of a toolkit of CUDA 12.0 or later (nvcc --version names one; the "
            "compiler may find another)"),
    Message(r"namespace \"cuda::(?:device::experimental|ptx)\" has no member \"(\w+)\""
            r"(?:[\s\S]{0,8000}namespace \"cuda::(?:device::experimental|ptx)\" has no member \"\w+\")?", "target",
            "libcu++ has {0} only in compile passes for sm_90 and later; each -gencode is a pass",
            fix="sm_90 and later alone for this file, or #if __CUDA_ARCH__ >= 900 around the code"),
    Message(r"tcgen05 instructions? (?:are|is) only (?:applicable|available|supported)", "target",
            "this GPU has no tcgen05: sm_100, sm_101, sm_103 and sm_110 have it, sm_120 and sm_121 (GeForce RTX 50, "
            "DGX Spark) do not, whatever the target", fix="a kernel of mma.sync for sm_120"),
    Message(r"Cannot select: intrinsic %llvm\.nvvm\.([\w.]+)", "target",
            "LLVM has no instruction for {0} at this target: the target lacks it, or this LLVM is older than the "
            "target",
            fix="the GPU's own target (sm_90a, sm_100a) with a newer -mattr=+ptx; for a newer GPU a newer LLVM"),
    Message(r"smxx_layout\S* 'dim == 2 or dim == 3'", "scale factors",
            "scale factors have 2 modes, (MN, K / 128), or 3 with the groups before them"),
    Message(r"block shape must have at least 8 rows, but got ([0-9]+)", "swizzle rows",
            "the block has {0} rows, and the swizzle's pattern 8: this Triton makes no layout of fewer",
            fix="a block of 8 rows or more, or rows of less than 32 bytes, which have no swizzle"),
    Message(r"Only copies transferring a number of bytes divisible by the warpgroup size", "bulk size",
            "one copy of Mosaic GPU moves a multiple of 128 bytes, as many as a warpgroup has threads",
            fix="blocks whose bytes are a multiple of 128: 32 elements of 32 bits, 64 of 16"),
    Message(r"cudaGetDriverEntryPoint(?!ByVersion)\W{1,3}cuTensorMapEncode\w+[^\n]{0,40}?(?:fail|error|invalid)"
            r"(?:[^\n]{0,60}invalid argument)?", "version",
            "the driver's function was not found: from CUDA 13 on the version that it is asked for must be named",
            fix="cudaGetDriverEntryPointByVersion(name, &f, 12000, cudaEnableDefault, &found)"),
    Message(r"(PFN_cuTensorMapEncode\w+)[’'\"`]? (?:was not declared|has not been declared|is undefined)", "version",
            "{0} is a type of cudaTypedefs.h; in CUDA 13 only with its version in the name",
            fix="#include <cudaTypedefs.h>, and PFN_cuTensorMapEncodeTiled_v12000"),
    Message(r"nvrtc: error: invalid value for --gpu-architecture", "target",
            "this NVRTC does not know the target: it is older than the GPU, or the name lacks its letter (sm_90a)",
            fix="the NVRTC of a toolkit that has the GPU, found before an older one; one target only"),
    Message(r"has no attribute '(fill_[12]d_tma_descriptor)", "version",
            "{0} was of Triton before 3.4",
            fix="triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(x, block_shape) on the host"),
    Message(r"must have contiguous last dimension", "contiguous mode",
            "the last stride is not 1; TMA's innermost mode has stride 1", fix="x.contiguous()"),
    Message(r"(?:CAN IMPLEMENT: )?Problem [Ss]ize doesn't meet the minimum alignment requirements for[^\n]{0,60}",
            "stride_alignment",
            "can_implement() is false: the contiguous mode of a tensor (A, B, C or D, as its layout tag says) is "
            "not a multiple of 16 bytes",
            fix="that extent padded to a multiple of 8 elements of 16 bits, 16 of 8, 32 of 4; for C and D "
            "also an epilogue without TMA (NoSmemWarpSpecialized)"),
    Message(r"CAN IMPLEMENT: (?!Ignoring)([^\n]{1,120})", "can_implement", "can_implement() is false: {0}",
            program="CUTLASS or CuTe DSL"),
    Message(r"requires ([0-9]+) bytes (?:of )?shared memory but (?:the )?device supports ([0-9]+)",
            "dynamic shared memory",
            "{0} bytes of shared memory are asked for, a block has {1}",
            lambda n: f"fewer stages (StageCount<n> in place of Auto) or a smaller tile: {n[0] - n[1]} bytes less",
            program="a front end"),
    Message(r"(?:error[^\n:]{0,12}: )?calling a constexpr __host__ function(?:\(\"[^\n]{1,200}?\"\))? from a "
            r"(?:__\w+__ ?){1,2} function[^\n]{0,200}?expt-relaxed-constexpr[^\n]{0,40}", "compiler option",
            "device code calls a constexpr function without __device__, which nvcc allows with an option only",
            fix="nvcc --expt-relaxed-constexpr, as CUTLASS's own build has it",
            program="nvcc"),
    Message(r"(?:error[^\n:]{0,12}: )?calling a __device__ function\(\"cute::(\w+)[^\n]{0,200}?\"\) from a "
            r"__host__ __device__ function[^\n]{0,120}not allowed", "host and device",
            "cute::{0} exists on the device only, and is called in a function that is compiled for the host as well",
            fix="the fragment or descriptor made in __global__ or __device__ code alone, not in a host function; "
            "a newer CUTLASS",
            program="CuTe C++"),
    Message(r"asm operand type size\(8\) does not match type/size implied by constraint 'r'", "asm operand",
            "an operand of 64 bits, a pointer, is given as a register of 32 (r); from a header of CUDA itself the "
            "compiler runs for 32 bits",
            fix="\"l\" for generic and global addresses; \"r\" with __cvta_generic_to_shared(p), as an uint32_t, "
            "for shared ones; on Windows a compiler for x64 (vcvars64)",
            program="nvcc"),
    Message(r"(?:error: )?no instance of overloaded function \"(\w+)\" matches the argument list\s+argument types are: "
    r"\([^\n]*?\bvoid,[^\n]*",
            "layout atom",
            "{0} was given void: the collective's builder found no layout atom for this tile",
            fix="a tile whose contiguous mode is at least 16 bytes, 128 bits for the copies of the epilogue",
            program="CuTe C++"),
    Message(r"cudaErrorInsufficientDriver|CUDA driver version is insufficient for CUDA runtime version",
            "driver version",
            "35: the driver is older than the CUDA runtime of this program or package",
            fix="a driver of the runtime's major version or newer (nvidia-smi shows the version that it has), or "
            "packages for the driver's (-cu12 in place of -cu13)",
            program="CUDA"),
    Message(r"\bcu(?:BLAS|blas)\w*\b[^\n]{0,120}?(?:status|code)[ =:]{1,3}(?:7|15)\b|"
            r"CUBLAS_STATUS_(?:NOT_SUPPORTED|INVALID_VALUE)",
            "cuBLAS",
            "7 is CUBLAS_STATUS_INVALID_VALUE, 15 CUBLAS_STATUS_NOT_SUPPORTED: no kernel takes these types, "
            "layouts and alignments; leading dimensions count elements, of column-major matrices",
            fix="for 8-bit floats A transposed and B not (both K-major), pointers and leading dimensions "
            "multiples of 16 bytes, CUBLAS_COMPUTE_32F and scales of CUDA_R_32F",
            program="cuBLAS"),
    Message(r"No (?:valid )?(?:execution|engine) (?:plans?|configs?) (?:support the graph|built successfully|returned)",
            "cuDNN", "no engine of this cuDNN takes the graph on this GPU: a type, a layout, an alignment or the GPU",
            fix="strides with the contiguous mode that its engines want (convolutions: channels, stride 1 in "
            "mode 1), 16-byte alignment, io types of 16 bits; a newer cuDNN; CUDNN_LOGLEVEL_DBG=3 with "
            "CUDNN_LOGDEST_DBG=stderr names the reason",
            program="cuDNN"),
    Message(r"(?:error: )?(?:(?:cannot|could not) open source file \"|fatal error: )"
            r"((?:cute|cutlass|cuda/std)/[\w./]+)[^\n]{0,40}", "include path",
            "{0} is not found: the folder that has it is not given to the compiler",
            fix="-I <cutlass>/include (and tools/util/include); for cuda/std the toolkit's include, from CUDA 13 "
            "on include/cccl; NVRTC takes them as options, it has no folder of its own",
            program="a front end"),
    Message(r"libcuda\.so(?:\.1)?: cannot open shared object file", "driver library",
            "libcuda.so.1, which the NVIDIA driver installs, is not on this machine or not visible in this container",
            fix="a machine with the driver, or a container started with --gpus all; to link alone "
            "<toolkit>/lib64/stubs",
            program="the loader"),
    Message(r"(?:Error|Warning): Race reported between (?:Read|Write) access at [^\n]{1,400}"
            r"(?:\n=+\s*and (?:Read|Write) access at [^\n]{1,400})*", "race",
            "two threads touch the same shared memory, one of them writes, and nothing orders them",
            fix="a barrier of all their threads between the two places (__syncwarp() within one warp); after "
            "TMA, cp.async or wgmma the wait of its barrier or group; fence.proxy.async between writes of threads and "
            "TMA or wgmma",
            program="compute-sanitizer"),
)  # fmt: skip
"""Messages of the programs, the more specific ones first."""

_BLANK: Final = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]| ")
"""A blank of a pattern, outside of brackets."""


def spaced(pattern: str) -> str:
    """A pattern whose blanks are any white space: compilers and logs wrap their lines."""
    return _BLANK.sub(lambda part: r"\s{1,400}" if part[0] == " " else part[0], pattern)


@functools.cache
def by_program() -> tuple[Message, ...]:
    """The rows of `messages.txt`, `pattern = program; rule | text -> fix`; a blank of a pattern is any white space."""
    rows = resources.files("cute_py.explanation").joinpath("messages.txt").read_text(encoding="utf-8")
    found = []
    for pattern, row in reason_table(rows).items():
        program, _, rule = row.name.partition("; ")
        found.append(Message(spaced(pattern), rule, row.why.rstrip("."), fix=row.fix, program=program))
    return tuple(found)


_GENERAL: Final[tuple[tuple[str, str, str], ...]] = (
    (r"power[- ]of[- ](?:2|two)", "power of 2", "a size must be a power of 2"),
    (r"(?:base|pointer|address|data_ptr)[^\n]{0,40}(?:align|multiple of (?:16|32))", "address_alignment",
     "the base address must be aligned, to 16 bytes (32 with interleave 32B)"),
    (r"stride[^\n]{0,60}(?:align|multiple of|divisible by) ?(?:16|32)?", "stride_alignment",
     "strides in bytes, but that of the contiguous mode, must be a multiple of 16"),
    (r"(?:last|inner(?:most)?|contiguous)[^\n]{0,30}(?:dim|mode|stride|axis)[^\n]{0,30}(?:contiguous|\b1\b|unit)",
     "contiguous mode", "the innermost mode must have stride 1"),
    (r"(?:inner(?:most)?|last)[^\n]{0,40}(?:16|32) ?bytes", "inner_bytes",
     "the innermost box must be a multiple of 16 bytes"),
    (r"box[^\n]{0,40}(?:256|<=|exceed|too large)", "box", "a box has 1 to 256 elements along each mode"),
    (r"(?:rank|ndim|dimensions?)[^\n]{0,30}(?:<= ?5|at most 5|more than 5|in \[1, ?5\]|1 to 5)", "rank",
     "a map has 1 to 5 modes"),
    (r"swizzle[^\n]{0,60}(?:span|inner|<=|exceed|bytes)", "inner_span",
     "a row of the box is at most the span of the swizzle: 32, 64 or 128 bytes"),
    (r"(?:smem|shared memory|shared)[^\n]{0,40}(?:128|1024)[^\n]{0,12}align", "shared-memory address",
     "shared memory must be aligned: 128 bytes, 1024 with the 128B swizzle"),
)  # fmt: skip
"""What a message demands, where the table does not have it: (pattern, rule, text)."""
_IS_ERROR: Final = re.compile(
    r"error|assert|must|expected|failed|invalid|illegal|require|cannot|can't|not supported|exception", re.IGNORECASE
)
_ABOUT_TMA: Final = re.compile(
    r"tma|descriptor|tensor_?map|cp\.async\.bulk|stride|block_shape|boxDim|triton|tilelang|smem", re.IGNORECASE
)


_WRAPPED: Final = re.compile(
    r"static[ _]assert(?:ion)? failed (?:with )?[\"'][^\"\n]{1,300}[\"']|Assertion [`'\"][^\n]{1,400}?['`\"] failed",
    re.IGNORECASE,
)
"""An assertion, whose text may be a message of the table; the whole of it is the message then."""


def read_messages(text: str) -> list[Reading]:
    """Every message of Triton, TileLang or another front end on TMA in a text."""
    return messages_of(text, (*by_program(), *MESSAGES))


def messages_of(text: str, rows: Sequence[Message]) -> list[Reading]:
    """Every message of a table in a text."""
    found: list[Reading] = []
    wrapped = some(_WRAPPED.finditer(text), 32)
    for row in rows:
        for match in some(re.finditer(row.pattern, text, re.IGNORECASE), 8):
            if not any(r.begin <= match.start() < r.end for r in found):
                whole = next((w for w in wrapped if w.start() <= match.start() < w.end()), match)
                span = min(whole.start(), match.start()), max(whole.end(), match.end())
                found.append(_message(text, match, row, span))
    return found


def read_steps(text: str) -> list[Reading]:
    """Every text of the partition verifier's steps.

    >>> [reading.kind for reading in read_steps("failed to compute the TMA G-basis, got !cute.layout<...>")]
    ['Step 8 of the partition verifier of the TMA reference pages']
    """
    found = []
    for number, reason in STEP_REASONS.items():
        for match in some(re.finditer(re.escape(reason.name), text, re.IGNORECASE), 8):
            kind = f"Step {number} of the partition verifier of the TMA reference pages"
            broken = Diagnostic(
                f"step {number}", text=reason.why, source="TMA Atoms page, Eleven-Step Partition Verifier"
            )
            found.append(Reading(kind, *match.span(), _context(text, match), (broken,), (reason.fix,)))
    return found


def _message(text: str, match: re.Match[str], row: Message, span: tuple[int, int]) -> Reading:
    numbers = [int(group) if group and re.fullmatch(r"-?[0-9]{1,18}", group) else 0 for group in match.groups()]
    meaning = row.text.format(*[group or "" for group in match.groups()])
    change = row.change(numbers) if row.change is not None and all(abs(n) < 1 << 60 for n in numbers) else ""
    change = change or row.fix.format(*[group or "" for group in match.groups()])
    rule = BY_NAME.get(row.rule)
    source = "" if row.program else _SOURCES.get(_named(text), "")
    broken = Diagnostic(row.rule, text=meaning, source=rule.source if rule else source)
    program = f"An error of {row.program}" if row.program else _program(text)
    return Reading(program, *span, _context(text, match), (broken,), (change,) if change else ())


_PROGRAMS: Final = (
    ("tvm_tensormap", "TileLang"),
    ("tilelang", "TileLang"),
    ("triton", "Triton"),
    ("tt.descriptor", "Triton"),
    ("deep_gemm", "DeepGEMM"),
    ("smxx_layout", "DeepGEMM"),
    ("cute_nvgpu", "CuTe DSL"),
    ("dslruntimeerror", "CuTe DSL"),
    ("input tensors for tma", "CuTe DSL"),
    ("arch conditional", "CUTLASS"),
    ("cute_arch_", "CUTLASS"),
    ("cutlass", "CUTLASS or CuTe DSL"),
    ("count update", "CCCL"),
    ("async_tx", "CCCL"),
    ("in local shared memory", "CCCL"),
    ("ttng.", "Triton"),
    ("mmav3", "Triton"),
    ("nvmma layout", "Triton"),
    ("divisible by the warpgroup size", "JAX"),
    ("mma -> mma", "Triton"),
    ("find a valid layout", "Triton"),
    ("cute.copy'", "CuTe DSL"),
    ("kerror", "CUTLASS"),
    ("gmma_", "TileLang"),
    (".mojo", "Mojo"),
    ("for 3d im2col", "CubeCL"),
    ("for 4d im2col", "CubeCL"),
    ("for 5d im2col", "CubeCL"),
    ("cannot select", "LLVM"),
    ("nvrtc: error", "NVRTC"),
    ("fill_1d_tma", "Triton"),
    ("fill_2d_tma", "Triton"),
    ("cutensormap", "a compiler"),
    ("cuda::device::experimental", "CCCL"),
    ("cuda::ptx", "CCCL"),
    ("undefined ", "the linker"),
)
"""(what a text of a program has, the program), the first that fits."""
_SOURCES: Final = {**dict.fromkeys(("Triton", ""), "Triton, tensor descriptors"), "CCCL": "libcu++, cuda::barrier"}


def _named(text: str) -> str:
    return next((name for mark, name in _PROGRAMS if mark in text.lower()), "")


def _program(text: str) -> str:
    return f"An error of {_named(text) or 'a front end'}, on a tensor map or a copy"


def _context(text: str, match: re.Match[str]) -> list[str]:
    """The message, and what the source line in the text says of the descriptor."""
    begin = text.rfind("\n", 0, match.start()) + 1
    end = text.find("\n", match.end())
    message = " ".join(text[begin : end if end >= 0 else len(text)].split())  # layouts in it were read and blanked
    lines = [f"message: {message[:300]}"]
    for name in ("shape", "strides", "block_shape"):
        if given := re.search(rf"\b{name}=(\[[^\]\n]{{0,80}}\])", text):
            lines.append(f"{name} = {given[1]}, outermost first")
    return lines


_MULTIPLE: Final = re.compile(
    r"(?:multiples? of|divisible by|aligned to|(?P<name>[A-Za-z_][\w.]{0,40})\s?%)\s?"
    r"(?:[A-Za-z][\w ]{0,30}[ =])?(?P<unit>[0-9]{1,7})\b",
    re.IGNORECASE,
)
_HAD: Final = re.compile(
    r"(?P<name>[A-Za-z_][\w.\[\]]{0,40})(?:\s?[=:(]\s?|\s(?=[0-9]{1,12} (?:is|must|should|needs?|has|not)\b))"
    r"(?P<value>[0-9]{1,12})\b"
)
_GOT: Final = re.compile(
    r"\b(?:got|found|given|received|but|is|was|actual\w*)\b[^\d\[\n]{0,24}?(?P<value>[0-9]{1,12})\b"
)


def _no_multiple(line: re.Match[str]) -> Reading | None:
    """A message that names a size and what it should be a multiple of."""
    demand = _MULTIPLE.search(line[0])
    if demand is None or not int(demand["unit"]):
        return None
    before, unit = line[0][: demand.start()], int(demand["unit"])
    had, got = some(_HAD.finditer(before))[-1:], _GOT.search(line[0], demand.end())
    named = some(re.finditer(r"(\w+) (?:must|should|needs?|has to|to be|is)\b", before))[-1:]
    name = demand["name"] or next((m["name"] for m in had), "") or next((m[1] for m in named), "") or "the size"
    value = int(got["value"] if got else had[0]["value"] if had else 0)
    if value % unit == 0:
        return None
    low = value - value % unit
    broken = Diagnostic("multiple", name, value, text=f"{name} = {value} is {low // unit} x {unit} + {value % unit}")
    padded = f"{low + unit}, which pads by {unit - value % unit}"
    change = f"{padded}; or {low}" if low else padded
    return Reading("A size between two multiples", line.start(), line.end(), (line[0].strip(),), (broken,), (change,))


def read_demands(text: str) -> Iterator[Reading]:
    """What the messages of a text demand, where the table has none of them."""
    about_tma = _ABOUT_TMA.search(text) is not None
    for line in some(re.finditer(r"[^\n]{8,500}", text), 200):
        if not _IS_ERROR.search(line[0]):
            continue
        demands = (row for row in _GENERAL if re.search(row[0], line[0], re.IGNORECASE))
        if about_tma and (demand := next(demands, None)) is not None:
            _, rule, meaning = demand
            row = BY_NAME.get(rule)
            broken = Diagnostic(rule, text=meaning, source=row.source if row else "")
            said = (f"message: {line[0].strip()[:300]}",)
            yield Reading(_program(text), line.start(), line.end(), said, (broken,))
        elif (reading := _no_multiple(line)) is not None:
            yield reading


# ---- bank conflicts, as Nsight Compute counts them -------------------------------------------------------------

_METRIC: Final = re.compile(
    r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared(?:_op_(?P<op>\w+))?\.sum\b[^\n0-9]{0,60}(?P<count>[0-9][0-9,]{0,20})"
)
_WAYS: Final = re.compile(
    r"causes on average an?\s+(?P<ways>[0-9.]{1,6})\s*-\s*way bank conflict across all (?P<requests>[0-9]{1,15}) "
    r"shared (?P<op>load|store) requests[^\n]{0,30}?This results in (?P<count>[0-9]{1,15}) bank conflicts"
)
_COUNTED: Final = {
    "ld": "loads (ld.shared, ldmatrix)",
    "load": "loads (ld.shared, ldmatrix)",
    "st": "stores (st.shared, stmatrix)",
    "store": "stores (st.shared, stmatrix)",
    "ldgsts": "cp.async",
    "gmma": "operands of wgmma",
    "atom": "atomics",
}
"""The end of a metric's name -> what it counts."""
_CONFLICTS: Final = (
    "a pass (wavefront) serves 32 banks of 4 bytes; a conflict is a pass more than the bytes of a request need",
    "the metrics also count waits for other traffic of the same memory: a few remain where there is no conflict",
)
_APART: Final = (
    "bank_conflicts(layout, dtype, access=...) says which threads meet in which bank; a swizzle takes them apart: "
    "make_smem_layout for TMA and wgmma, composition(Swizzle(3, 3, 3), ...) for rows of 64 elements of 16 bits"
)


def read_metrics(text: str) -> list[Reading]:
    """Counts of bank conflicts, all in one reading; without a conflict it says so."""
    matches = sorted([*some(_METRIC.finditer(text), 32), *some(_WAYS.finditer(text), 8)], key=re.Match.start)
    if not matches:
        return []
    found = []
    for match in matches:
        count = int(match["count"].replace(",", ""))
        if count and (match["op"] or len(matches) == 1):
            each = f", {match['ways']} passes a request" if "ways" in match.groupdict() else ""
            shown = f"{_COUNTED.get(match['op'] or '', match['op'] or 'all')}: {count} conflicts{each}"
            found.append(Diagnostic("bank conflicts", text=shown, severity="warning"))
    meaning = _CONFLICTS if found else (*_CONFLICTS, "no operation has a conflict")
    span = matches[0].start(), max(match.end() for match in matches)
    missing = ("the shared layout, the element type, and which thread reads or writes what",) if found else ()
    changes = (_APART,) if found else ()
    return [Reading("Bank conflicts, as Nsight Compute counts them", *span, meaning, found, changes, missing)]
