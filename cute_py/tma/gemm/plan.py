"""Plan a GEMM kernel from a tiled MMA and three TMA atoms: tiles, descriptors, stages and coordinates.

    A (M,K) --tma_a--> stages of A --descriptor--> wgmma --accumulators--> stmatrix --> staging --tma_c--> C (M,N)
    B (N,K) --tma_b--> stages of B --descriptor-->

A CTA computes a tile of M by N, with the M of A's tile and the N of B's tile. Each warpgroup of the tiled MMA computes
the 64 rows of its atom, once or several times. One step of the main loop is one tile along K. It has `k_steps`
instructions, whose descriptors are `k_unit` apart. If tma_b is a multicast, two CTAs along M form a cluster and share
B. If tma_a is a multicast, two CTAs along N form a cluster and share A.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from cute_py.argument_checks import expect, expect_fields, expect_integer, record
from cute_py.arith_tuple import ScaledBasis
from cute_py.atom.element_types import cpp_type_text
from cute_py.atom.smem_descriptor import SmemDescriptor
from cute_py.atom.smem_layouts import make_gmma_desc
from cute_py.atom.tiled_mma import TiledMma
from cute_py.diagnostics import Diagnostic, refuse
from cute_py.dtypes import DType
from cute_py.errors import CuteError, InvalidValueError, counted, given
from cute_py.gpu.kernels.source import MAX_SHARED_BYTES
from cute_py.layout import Int, product_each
from cute_py.layout.layout import domain_of
from cute_py.layout.trees import leaves
from cute_py.targets import MAX_CLUSTER, SECTOR_BYTES
from cute_py.tensor import local_tile, make_smem_ptr, make_tensor
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.atom.smem_layout import make_smem_layout
from cute_py.tma.atom.tiles import first_tile

STAGE_ALIGNMENT: Final = 1024
"""Period of the 128-byte swizzle, in bytes."""
MAX_STAGES: Final = 16
BARRIER_ROOM: Final = 2 * 8 * MAX_STAGES
"""Bytes of shared memory for the barriers: 8 for each of the two barriers of a stage."""
WARPGROUP_ROWS: Final = 64
"""Rows of one wgmma. Source: PTX ISA, wgmma.mma_async."""
MOST_SUMS: Final = 192
"""Largest number of accumulators per thread. ptxas keeps this many in the 232 registers of a thread without
spilling."""
_STORED: Final = ("bfloat16", "float16")
_NAMES: Final = {"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N")}


@record
class TileBox:
    """One TMA instruction of a tile: its first coordinates, relative to the tile, and its shared-memory byte offset."""

    coords: tuple[int, ...]
    place: int


@record
class TileBoxes:
    """The boxes of a tile at any position.

    The coordinates of a box are the sum of index * step over the two tile modes, plus the box's own coordinates.

    Attributes:
        boxes: the boxes that one CTA issues.
        steps: the coordinate step of each tile mode, in TMA order.
        shift: if CTAs of a cluster share the tile, the coordinates and the byte offset that a CTA adds for its rank.
    """

    boxes: tuple[TileBox, ...]
    steps: tuple[tuple[int, ...], tuple[int, ...]]
    shift: TileBox
    bytes: int

    def of_all(self, ctas: int) -> list[TileBox]:
        """The boxes of all CTAs that share the tile, in the order of the CTA ranks."""
        ctas = expect_integer(ctas, "ctas", 1, MAX_CLUSTER)
        return [
            TileBox(
                tuple(c + rank * s for c, s in zip(box.coords, self.shift.coords, strict=True)),
                box.place + rank * self.shift.place,
            )
            for rank in range(ctas)
            for box in self.boxes
        ]


@record
class GemmOperand:
    """A wgmma operand in shared memory: its first descriptor, without an address, and the steps to the others.

    row_units, k_units: steps in units of 16 bytes. row_units is the step from 64 rows of A to the next 64 rows, and
    k_units is the step from one instruction along K to the next.
    """

    major: str
    descriptor: SmemDescriptor
    row_units: int
    k_units: int


@dataclass(frozen=True, slots=True)
class GemmPlan:
    """The tiles, stages, descriptors and coordinates of one GEMM kernel.

    Sizes are in elements, except sizes whose name contains "bytes".

    >>> import cute_py as cute
    >>> def atom(op, rows, columns, tile):
    ...     shape, stride = (rows, columns), (columns, cute.Int(1))
    ...     gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.Layout(shape, stride))
    ...     return cute.tma.make_tma_copy(op, gmem, cute.tma.make_smem_layout("K", "128B", "bfloat16", (tile, 64)))
    >>> a = atom("SM90_TMA_LOAD", 4096, 1024, 128)
    >>> b = atom("SM90_TMA_LOAD", 8192, 1024, 256)
    >>> c = atom("SM90_TMA_STORE", 4096, 8192, 64)
    >>> mma = cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_SS", (2, 1, 1))
    >>> plan = cute.tma.gemm_kernel(mma, a, b, c).plan
    >>> plan.shape, plan.tile, plan.stages
    ((4096, 8192, 1024), (128, 256, 64), 4)
    """

    tiled_mma: TiledMma
    atoms: Mapping[str, TmaAtom] = field(hash=False)
    shape: tuple[int, int, int]
    tile: tuple[int, int, int]
    warpgroups: int
    stages: int
    staging: int
    group: int
    operands: Mapping[str, GemmOperand] = field(hash=False)
    walks: Mapping[str, TileBoxes] = field(hash=False)

    def __post_init__(self) -> None:
        expect_fields(self)
        for what, named, names in (
            ("atoms", self.atoms, "ABC"),
            ("operands", self.operands, "AB"),
            ("walks", self.walks, "ABC"),
        ):
            if set(named) != set(names):
                raise InvalidValueError(f"GemmPlan.{what} has {given([*named])}; must have {', '.join(names)}")

    def __repr__(self) -> str:
        tile, stages = " x ".join(map(str, self.tile)), counted(self.stages, "stage")
        return f"<plan of a GEMM, {tile} per tile, {stages}, {counted(self.cluster, 'CTA')} per cluster>"

    @property
    def cluster(self) -> int:
        """Number of CTAs that share an operand."""
        return max(self.atoms[name].num_multicast for name in "AB")

    @property
    def shared_by(self) -> str:
        """'M' if the CTAs of a cluster follow along M and share B, 'N' if they share A, '' without a cluster."""
        return "" if self.cluster == 1 else "M" if self.atoms["B"].num_multicast > 1 else "N"

    @property
    def k_steps(self) -> int:
        """Number of instructions along K in one stage."""
        return self.tile[2] // int(self.tiled_mma.shape_mnk[2])

    @property
    def row_steps(self) -> int:
        """Number of instructions along M for one warpgroup."""
        return self.tile[0] // (WARPGROUP_ROWS * self.warpgroups)

    @property
    def split_rows(self) -> tuple[str, ...]:
        """The loaded operands whose rows do not all start at a 32-byte sector of the L2 cache."""
        strides = {name: self.atoms[name].request.global_strides for name in "AB"}
        return tuple(name for name, steps in strides.items() if any(step % SECTOR_BYTES for step in steps))

    @property
    def c_tile(self) -> tuple[int, int]:
        """(rows, columns) of one tile of tma_c."""
        rows, columns = (int(n) for n in product_each(self.atoms["C"].tile.shape))
        return rows, columns

    @property
    def tiles(self) -> tuple[int, int, int]:
        """Number of tiles along M, N and K; the count along M or N is rounded up to full clusters."""
        counts = [-(-n // t) for n, t in zip(self.shape, self.tile, strict=True)]
        mode = {"M": 0, "N": 1}.get(self.shared_by)
        if mode is not None:
            counts[mode] = -(-counts[mode] // self.cluster) * self.cluster
        return counts[0], counts[1], counts[2]

    @property
    def stage_bytes(self) -> int:
        """Bytes of A and B in one stage, which its full barrier expects."""
        return self.walks["A"].bytes + self.walks["B"].bytes

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block: stages, staging of C, and barriers."""
        return self.stage_bytes * self.stages + self.staging_bytes + BARRIER_ROOM

    @property
    def staging_bytes(self) -> int:
        """Bytes of the staging buffers of all warpgroups."""
        return self.staging * self.warpgroups * self.walks["C"].bytes

    @property
    def threads(self) -> int:
        return 128 * (1 + self.warpgroups)


def most_stages(stage: int, staging: int) -> int:
    """Return how many stages of `stage` bytes fit in the shared memory of a block next to the staging buffers."""
    return min((MAX_SHARED_BYTES - BARRIER_ROOM - staging) // stage, MAX_STAGES)


def _extents(atom: TmaAtom) -> tuple[int, ...]:
    return tuple(int(n) for n in product_each(atom.gtensor.shape))


def _tile(atom: TmaAtom) -> tuple[int, ...]:
    return tuple(int(n) for n in product_each(domain_of(atom.smem_layout).shape))


def check_gemm(
    tiled_mma: TiledMma, tma_a: TmaAtom, tma_b: TmaAtom, tma_c: TmaAtom, stages: int | None = None, staging: int = 2
) -> list[Diagnostic]:
    """List every rule of `gemm_kernel` that its arguments break. If the list is empty, `gemm_kernel` accepts them.

    The rules are `mma` (a dense wgmma of shared operands with float32 accumulators), `warpgroups`, `operand_type`,
    `direction`, `extents`, `tile`, `no_descriptor`, `staging_tile`, `multicast`, `stages`.

    Args:
        See `gemm_kernel`.
    Raises:
        InvalidTypeError: the arguments are not a tiled MMA and TMA atoms.
        InvalidValueError: stages or staging is out of range.

    >>> import cute_py as cute
    >>> def atom(op, rows, columns, tile):
    ...     shape, stride = (rows, columns), (columns, cute.Int(1))
    ...     gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.Layout(shape, stride))
    ...     return cute.tma.make_tma_copy(op, gmem, cute.tma.make_smem_layout("K", "128B", "bfloat16", (tile, 64)))
    >>> a = atom("SM90_TMA_LOAD", 4096, 1024, 128)
    >>> b = atom("SM90_TMA_LOAD", 8192, 1024, 256)
    >>> c = atom("SM90_TMA_STORE", 4096, 8192, 64)
    >>> mma = cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_SS", (2, 1, 1))
    >>> [found.rule for found in check_gemm(mma, a, b, c, stages=16)], check_gemm(mma, a, b, c)
    (['stages'], [])
    """
    atoms, stages, staging = _arguments(tiled_mma, tma_a, tma_b, tma_c, stages, staging)
    found = [*_check_mma(tiled_mma), *_check_tensors(tiled_mma, atoms)]
    return found or _check_memory(tiled_mma, atoms, stages, staging)


def _arguments(
    tiled_mma: TiledMma, tma_a: TmaAtom, tma_b: TmaAtom, tma_c: TmaAtom, stages: int | None, staging: int
) -> tuple[dict[str, TmaAtom], int | None, int]:
    """Check the types of the arguments; return the atoms by operand, and the numbers of stages and staging buffers."""
    expect(tiled_mma, TiledMma, "the tiled MMA of a GEMM kernel")
    given = {"A": tma_a, "B": tma_b, "C": tma_c}
    atoms = {name: expect(atom, TmaAtom, f"the TMA atom of {name}") for name, atom in given.items()}
    if stages is not None:
        stages = expect_integer(stages, "stages", 2, MAX_STAGES)
    return atoms, stages, expect_integer(staging, "staging", 1, 8)


def _check_mma(mma: TiledMma) -> Iterator[Diagnostic]:
    atom = mma.atom
    dense = atom.family in ("sm90_gmma", "sm90_gmma_ext") and "A" in atom.fragments
    sums = isinstance(atom.d_dtype, DType) and atom.d_dtype.name == "float32"
    if not dense or not sums:
        yield Diagnostic(
            "mma",
            text=f"{atom.name}: a GEMM kernel needs a dense wgmma with A and B in shared memory and float32 "
            f"accumulators",
            facts={"family": atom.family, "sums": cpp_type_text(atom.d_dtype)},
            fixes=("SM90_64x256x16_F32BF16BF16_SS",),
        )
    _, m, n, k = (int(x) for x in product_each(mma.thr_layout_vmnk.shape))
    if m not in (1, 2) or n != 1 or k != 1 or any(p is not None for p in mma.permutation_mnk):
        yield Diagnostic(
            "warpgroups",
            text=(
                f"the tiled MMA has {m} x {n} x {k} atoms; a GEMM kernel needs 1 or 2 warpgroups along M and no "
                "permutation"
            ),
            facts={"tiled MMA": mma.thr_layout_vmnk},
            fixes=("make_tiled_mma(atom, (2, 1, 1))",),
        )


def _check_tensors(mma: TiledMma, atoms: dict[str, TmaAtom]) -> Iterator[Diagnostic]:
    flat = True
    for name, atom in atoms.items():
        loads = atom.instruction.direction == "load"
        if loads != (name != "C") or atom.instruction.mode != "tile":
            wanted = "store" if name == "C" else "load"
            yield Diagnostic(
                "direction", text=f"the copy operation of {name} is {atom.op}; must be a {wanted} of tiles"
            )
        kind = mma.atom.types["A" if name == "A" else "B"]
        wanted_types = _STORED if name == "C" else (cpp_type_text(kind),)
        if atom.dtype.name not in wanted_types:
            yield Diagnostic(
                "operand_type",
                text=f"{name} has elements of {atom.dtype}; {'stmatrix stores' if name == 'C' else 'the MMA takes'} "
                f"{' or '.join(wanted_types)}",
                facts={"MMA": mma.atom.name},
            )
        if len(_extents(atom)) != 2 or len(_tile(atom)) != 2 or atom.plan.rank != 2:
            flat = False
            shape = f"({', '.join(_NAMES[name])})"
            yield Diagnostic("extents", text=f"{name} has the shape {atom.gtensor.shape}; must be a matrix {shape}")
    if not flat:
        return
    extents = {name: dict(zip(_NAMES[name], _extents(atom), strict=True)) for name, atom in atoms.items()}
    for mode, first, second in (("K", "A", "B"), ("M", "A", "C"), ("N", "B", "C")):
        if extents[first][mode] != extents[second][mode]:
            yield Diagnostic(
                "extents",
                text=f"{mode} is {extents[first][mode]} in {first}, {extents[second][mode]} in {second}; must be equal",
            )
    (rows, depth), (columns, depth_b) = _tile(atoms["A"]), _tile(atoms["B"])
    m, n, k = mma.tile_shape()
    for what, have, unit, exact in (
        ("tile of A along M", rows, int(m), False),
        ("tile of A along K", depth, int(k), False),
        ("tile of B along N", columns, int(n), True),
    ):
        if have % unit or (exact and have != unit):
            must = f"be {unit}" if exact else f"be a multiple of {unit}"
            yield Diagnostic("tile", what, have, "elements", f"{must}, the size in the tiled MMA")
    if depth != depth_b:
        yield Diagnostic("tile", "tile of B along K", depth_b, "elements", f"be {depth}, like the tile of A")
    sums = rows * columns // (128 * int(m) // WARPGROUP_ROWS)
    if sums > MOST_SUMS:
        yield Diagnostic("tile", "accumulators", sums, "registers per thread", f"be at most {MOST_SUMS}")


def _check_memory(mma: TiledMma, atoms: dict[str, TmaAtom], stages: int | None, staging: int) -> list[Diagnostic]:
    found = []
    for name in "AB":
        try:
            _operand(mma, name, atoms[name])
            _walk(atoms[name])
        except CuteError as reason:
            found.append(
                Diagnostic(
                    "no_descriptor",
                    text=f"no wgmma descriptor can describe the stages of {name}: {reason.headline}",
                    facts={"layout": atoms[name].smem_layout, **reason.facts},
                    fixes=(f"make_smem_layout('K', '128B', '{atoms[name].dtype.name}', {_tile(atoms[name])})",),
                )
            )
    found += _check_staging(atoms["C"], int(mma.shape_mnk[1]))
    counts = [atoms[name].num_multicast for name in "ABC"]
    if sorted(counts)[1:] not in ([1, 1], [1, 2]) or counts[2] != 1:
        text = f"A goes to {counts[0]} CTAs, B to {counts[1]} and C to {counts[2]}; only A or B may go to 2"
        found.append(Diagnostic("multicast", text=text))
    if not found:
        stage = sum(first_tile(atoms[name]).smem_bytes for name in "AB")
        room = _staging_bytes(atoms["C"]) * staging * int(product_each(mma.thr_layout_vmnk.shape)[1])
        most = most_stages(stage, room)
        if most < 2 or (stages or 2) > most:
            found.append(
                Diagnostic(
                    "stages",
                    "stages",
                    stages or 2,
                    requirement=f"be at most {max(most, 0)}",
                    facts={
                        "a stage": f"{stage} bytes of A and B",
                        "staging of C": f"{room} bytes",
                        "a block": f"{MAX_SHARED_BYTES} bytes of shared memory",
                    },
                    fixes=(f"stages={most}",) if most >= 2 else ("a smaller tile",),
                )
            )
    return found


def _staging_bytes(atom: TmaAtom) -> int:
    return -(-first_tile(atom).smem_bytes // STAGE_ALIGNMENT) * STAGE_ALIGNMENT


def _check_staging(atom: TmaAtom, columns: int) -> list[Diagnostic]:
    """Check that the stmatrix of one warpgroup can fill a tile of C: 64 rows of complete swizzle spans."""
    rows, width = _tile(atom)
    span = atom.plan.box[0] * 2
    swizzle = atom.swizzle
    sound = (
        rows == WARPGROUP_ROWS
        and columns % width == 0
        and atom.plan.box[1] == rows
        and span in (32, 64, 128)
        and swizzle.bits in (0, {32: 1, 64: 2, 128: 3}[span])
        and atom.tile == _k_major(atom, rows, width)
    )
    if sound:
        return []
    return [
        Diagnostic(
            "staging_tile",
            text=f"a tile of C has {rows} x {width} elements in {atom.smem_layout}; must be K-major, with 64 rows and "
            f"a divisor of the MMA's {columns} columns",
            fixes=(f"make_smem_layout('K', '128B', '{atom.dtype.name}', (64, 64))",),
        )
    ]


def _k_major(atom: TmaAtom, rows: int, width: int) -> object:
    span = {32: "32B", 64: "64B", 128: "128B"}[atom.plan.box[0] * 2]
    return domain_of(make_smem_layout("K", span, atom.dtype, (Int(rows), Int(width))))


def _walk(atom: TmaAtom) -> TileBoxes:
    """Return the boxes that one CTA issues for a tile, and the coordinate steps from tile to tile."""
    work = first_tile(atom)
    rank, per_cta = atom.plan.rank, work.per_tile // atom.num_multicast
    coords = list(work.rows)
    places = list(work.places)
    boxes = tuple(TileBox(c, p) for c, p in zip(coords[:per_cta], places[:per_cta], strict=True))
    shift = TileBox((0,) * rank, 0)
    if atom.num_multicast > 1:
        shift = TileBox(
            tuple(b - a for a, b in zip(coords[0], coords[per_cta], strict=True)), places[per_cta] - places[0]
        )
        for i in range(per_cta):
            second = TileBox(coords[per_cta + i], places[per_cta + i])
            moved = TileBox(tuple(a + s for a, s in zip(coords[i], shift.coords, strict=True)), places[i] + shift.place)
            if second != moved:
                raise InvalidValueError("the second CTA's boxes are not the first CTA's boxes moved by one offset")
    steps = []
    for extent, basis in zip(_tile(atom), leaves(atom.g_stride), strict=True):
        if not isinstance(basis, ScaledBasis):
            raise InvalidValueError("a mode with the static size 1 has no coordinate", {"tensor": atom.gtensor})
        coordinate = basis.as_arith_tuple().as_tuple()
        numbers = [int(c) * extent for c in leaves(coordinate)]
        steps.append(tuple((numbers + [0] * rank)[:rank]))
    return TileBoxes(boxes, (steps[0], steps[1]), shift, atom.transaction_bytes)


def _operand(mma: TiledMma, name: str, atom: TmaAtom) -> GemmOperand:
    """Return the descriptor of an operand's first instruction, and the steps along rows and along K.

    Raises:
        StaticAssertError: the layout is not canonical.
        InvalidValueError: the instructions do not have a constant step.
    """
    extent = WARPGROUP_ROWS if name == "A" else int(mma.shape_mnk[1])
    k = int(mma.shape_mnk[2])
    major = str(mma.atom.template_args.get(f"tnsp{name}", "K"))
    rows, depth = _tile(atom)
    stage = make_tensor(make_smem_ptr(0, atom.dtype), atom.smem_layout)

    def at(i: int, j: int) -> SmemDescriptor:
        return make_gmma_desc(major, local_tile(stage, (Int(extent), Int(k)), (i, j)))

    first = at(0, 0)
    down, along = rows // extent, depth // k
    row_units = at(1, 0).start - first.start if down > 1 else 0
    k_units = at(0, 1).start - first.start if along > 1 else 0
    for i in range(down):
        for j in range(along):
            one = at(i, j)
            same = (one.leading, one.stride, one.swizzle) == (first.leading, first.stride, first.swizzle)
            if not same or one.start != first.start + i * row_units + j * k_units:
                raise InvalidValueError(
                    f"the descriptor at row {i * extent} and K {j * k} is not the first descriptor moved by whole steps"
                )
    return GemmOperand(major, first, row_units, k_units)


def plan_gemm(
    tiled_mma: TiledMma,
    tma_a: TmaAtom,
    tma_b: TmaAtom,
    tma_c: TmaAtom,
    stages: int | None = None,
    staging: int = 2,
    group: int = 8,
) -> GemmPlan:
    """Compute the plan of a GEMM kernel. For arguments and errors, see `gemm_kernel`."""
    atoms, stages, staging = _arguments(tiled_mma, tma_a, tma_b, tma_c, stages, staging)
    group = expect_integer(group, "group", 1)
    refuse(InvalidValueError, check_gemm(tiled_mma, tma_a, tma_b, tma_c, stages, staging))
    warpgroups = int(product_each(tiled_mma.thr_layout_vmnk.shape)[1])
    walks = {name: _walk(atom) for name, atom in atoms.items()}
    most = most_stages(walks["A"].bytes + walks["B"].bytes, staging * warpgroups * walks["C"].bytes)
    (m, k), (n, _) = _extents(tma_a), _extents(tma_b)
    (rows, depth), (columns, _) = _tile(tma_a), _tile(tma_b)
    return GemmPlan(
        tiled_mma,
        atoms,
        (m, n, k),
        (rows, columns, depth),
        warpgroups,
        stages or most,
        staging,
        group,
        {name: _operand(tiled_mma, name, atoms[name]) for name in "AB"},
        walks,
    )
