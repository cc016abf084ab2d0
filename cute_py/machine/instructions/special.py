"""Special registers: position of a thread, sizes of the launch, clocks.

Source: PTX ISA 9.0, special registers. Each instruction that a warp executes counts as one cycle; %globaltimer counts
the same way. %envreg1 and %envreg2 are the upper and the lower half of the address of the workspace of a cooperative
launch: cooperative_groups/details/driver_abi.h of CUDA 13.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from cute_py.machine.code import RESERVED_BYTES
from cute_py.machine.kinds import Kind
from cute_py.machine.sites import Site
from cute_py.machine.threads import LANES, Array, Frame, Host, Reader
from cute_py.targets import MULTIPROCESSORS

Build = Callable[[Site, Kind], Reader]


def _row(name: str, made: Callable[[Host], Array]) -> Build:
    """Return the builder of a register with a constant value for each thread."""

    def build(site: Site, kind: Kind) -> Reader:
        dtype = np.dtype(f"uint{max(kind.bits, 16)}")

        def read(f: Frame) -> Array:
            key = ("special", name, dtype.itemsize)
            found = f.cache.get(key)
            if found is None:
                row = f.m.row(name, lambda: made(f.m))
                found = f.cache[key] = f.take(row).astype(dtype).view(kind.dtype)
            result: Array = found
            return result

        return read

    return build


def _one(made: Callable[[Host], int]) -> Build:
    """Return the builder of a register with one value for all threads."""
    return lambda site, kind: lambda f: kind.dtype.type(made(f.m))


def _inside(axis: int) -> Callable[[Host], Array]:
    def made(m: Host) -> Array:
        x, y, _ = m.shape.block
        number = np.arange(m.count) % m.cta_threads
        found: Array = (number % x, number // x % y, number // (x * y))[axis]
        return found

    return made


def _cta(axis: int) -> Callable[[Host], Array]:
    return lambda m: np.repeat(m.numbers[:, axis], m.cta_threads)


def _in_cluster(axis: int) -> Callable[[Host], Array]:
    return lambda m: np.repeat(m.numbers[:, axis] % m.shape.cluster[axis], m.cta_threads)


def _cluster(axis: int) -> Callable[[Host], Array]:
    return lambda m: np.repeat(m.numbers[:, axis] // m.shape.cluster[axis], m.cta_threads)


def _size(field: str, axis: int) -> Callable[[Host], int]:
    return lambda m: int(getattr(m.shape, field)[axis])


def _clusters(axis: int) -> Callable[[Host], int]:
    return lambda m: m.shape.grid[axis] // m.shape.cluster[axis]


def _clock(bits: int) -> Build:
    def build(site: Site, kind: Kind) -> Reader:
        def read(f: Frame) -> Any:
            f.m.looked = True
            return kind.dtype.type(f.m.totals.clock % (1 << min(bits, 63)))

        return read

    return build


def _reserved(added: int) -> Build:
    """A shared address in the memory that a system reserves."""

    def build(site: Site, kind: Kind) -> Reader:
        offset = site.code.reserved_shared() + added
        return lambda f: (f.m.shared_window(f) + offset).astype(kind.dtype)

    return build


def _lanes(compare: Callable[[Array, Array], Array]) -> Callable[[Host], Array]:
    def made(m: Host) -> Array:
        lane = np.arange(LANES)
        words = (compare(lane[None, :], lane[:, None]) * (np.uint32(1) << lane.astype(np.uint32))).sum(axis=1)
        return np.tile(words.astype(np.uint32), m.count // LANES)

    return made


def _grid_number(m: Host) -> Array:
    x, y, _ = m.shape.grid
    number = m.numbers[:, 0] + x * (m.numbers[:, 1] + y * m.numbers[:, 2])
    return np.repeat(number, m.cta_threads)


TABLE: Final[Mapping[str, Build]] = {
    **{f"%tid.{a}": _row(f"tid{i}", _inside(i)) for i, a in enumerate("xyz")},
    **{f"%ctaid.{a}": _row(f"ctaid{i}", _cta(i)) for i, a in enumerate("xyz")},
    **{f"%ntid.{a}": _one(_size("block", i)) for i, a in enumerate("xyz")},
    **{f"%nctaid.{a}": _one(_size("grid", i)) for i, a in enumerate("xyz")},
    **{f"%cluster_ctaid.{a}": _row(f"in_cluster{i}", _in_cluster(i)) for i, a in enumerate("xyz")},
    **{f"%cluster_nctaid.{a}": _one(_size("cluster", i)) for i, a in enumerate("xyz")},
    **{f"%clusterid.{a}": _row(f"cluster{i}", _cluster(i)) for i, a in enumerate("xyz")},
    **{f"%nclusterid.{a}": _one(_clusters(i)) for i, a in enumerate("xyz")},
    "%cluster_ctarank": _row("rank", lambda m: np.repeat(np.arange(m.ctas) % m.cluster_size, m.cta_threads)),
    "%cluster_nctarank": _one(lambda m: m.cluster_size),
    "%is_explicit_cluster": _one(lambda m: int(m.shape.explicit_cluster)),
    "%laneid": _row("lane", lambda m: np.arange(m.count) % LANES),
    "%warpid": _row("warp", lambda m: np.arange(m.count) % m.cta_threads // LANES),
    "%nwarpid": _one(lambda m: 64),
    "%smid": _row("sm", lambda m: _grid_number(m) % MULTIPROCESSORS),
    "%nsmid": _one(lambda m: MULTIPROCESSORS),
    "%gridid": _one(lambda m: 1),
    "%lanemask_eq": _row("eq", _lanes(np.equal)),
    "%lanemask_lt": _row("lt", _lanes(np.less)),
    "%lanemask_le": _row("le", _lanes(np.less_equal)),
    "%lanemask_gt": _row("gt", _lanes(np.greater)),
    "%lanemask_ge": _row("ge", _lanes(np.greater_equal)),
    "%clock": _clock(32),
    "%clock_hi": lambda site, kind: lambda f: kind.dtype.type(f.m.totals.clock >> 32),
    "%clock64": _clock(63),
    "%globaltimer": _clock(63),
    "%globaltimer_lo": _clock(32),
    "%globaltimer_hi": lambda site, kind: lambda f: kind.dtype.type(f.m.totals.clock >> 32),
    "%dynamic_smem_size": _one(lambda m: m.shape.dynamic_shared),
    "%total_smem_size": _one(lambda m: m.shared_bytes),
    "%aggr_smem_size": _one(lambda m: m.shared_bytes + 1024),
    "%reserved_smem_offset_begin": _reserved(0),
    "%reserved_smem_offset_end": _reserved(RESERVED_BYTES),
    "%reserved_smem_offset_cap": _one(lambda m: RESERVED_BYTES),
    "%reserved_smem_offset_0": _reserved(0),
    "%reserved_smem_offset_1": _reserved(RESERVED_BYTES // 2),
    "%envreg0": _one(lambda m: 0),
    "%envreg1": _one(lambda m: m.memory.workspace >> 32),
    "%envreg2": _one(lambda m: m.memory.workspace & 0xFFFF_FFFF),
}
