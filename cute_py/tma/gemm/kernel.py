"""gemm_kernel: make a GEMM kernel from a tiled MMA and three TMA atoms, to read, compile, run and explain.

The kernel shows how the parts of cute_py work together, and runs at the speed that these parts allow. This module is
not a GEMM library: it has one kind of epilogue and one schedule, and does not search for a better schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from cute_py.argument_checks import (
    expect,
    expect_choice,
    expect_expression,
    expect_integer,
    expect_integers,
    expect_items,
    record,
)
from cute_py.atom.tiled_mma import TiledMma
from cute_py.copies.device_copy import moved_to_device
from cute_py.copies.emulated_copy import check_tensor
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given
from cute_py.gpu.arrays import array_view, host_bytes, host_copy, require_place
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.kernels.source import ERROR_RECORD_BYTES, MAX_SHARED_BYTES, WAIT_CYCLES, KernelSource
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, WaitTimeout, load_kernel
from cute_py.gpu.nvrtc import CompiledKernel, compile_kernel
from cute_py.machine.launch import MachineLaunch
from cute_py.targets import architecture
from cute_py.tensor.array_views import ArrayLike, ArrayView, StreamLike, stream_handle
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.descriptor.limits import STORE_UNIT
from cute_py.tma.descriptor.replace import replace as replace_field
from cute_py.tma.emulator.emulator import Emulator
from cute_py.tma.emulator.memory import Bytes
from cute_py.tma.gemm.plan import GemmPlan, plan_gemm
from cute_py.tma.gemm.source import CONSUMER_REGISTERS, DUMP_HERE, PRODUCER_REGISTERS, gemm_source

MACHINE_CTAS: Final = 4
"""Number of CTAs of a launch on the emulated multiprocessor."""


class PreparedGemm:
    """A GEMM of three arrays on a device, ready to launch on one stream at a time.

    Args:
        views: the device views of A, B and C. keep: objects that must outlive the launches.
        others: values of additional kernel parameters, for kernels whose source was changed.
    """

    def __init__(
        self,
        kernel: GemmKernel,
        views: dict[str, ArrayView],
        device: Device,
        others: tuple[int, ...] = (),
        keep: tuple[object, ...] = (),
    ) -> None:
        expect(kernel, GemmKernel, "a GEMM kernel")
        self.device = expect(device, Device, "device")
        expect(views, dict, "the views of A, B and C")
        self.kernel = load_kernel(kernel.kernel, device)
        self.plan = plan = kernel.plan
        self._maps = [
            bytes(replace_field(plan.atoms[name].descriptor, "global_address", views[name].address)) for name in "ABC"
        ]
        self._record = WaitRecord(device, 2)
        tiles = plan.tiles[0] * plan.tiles[1]
        self.blocks = min(device.multiprocessors // plan.cluster * plan.cluster, tiles)
        self._parameters = Parameters([*self._maps, self._record.address, *others])
        self._launches: dict[int, PreparedLaunch] = {}
        self._keep = (views, keep)

    def launch(self, stream: StreamLike = None) -> None:
        """Launch the GEMM on the stream, and return without waiting for it.

        Raises:
            DeviceError: the driver refuses the launch.
        """
        handle = stream_handle(stream)
        if handle not in self._launches:
            self._launches[handle] = PreparedLaunch(self.kernel, self.blocks, self._parameters, handle)
        self._launches[handle].launch()

    def check(self, stream: StreamLike = None) -> None:
        """Wait for the stream, and raise an error if the kernel failed.

        Raises:
            DeviceError: a barrier did not complete, or the kernel trapped.
        """
        full, empty = self._record.read(stream_handle(stream))
        found = full or empty
        if found is not None:
            counts = [len(self.plan.walks[name].boxes) * self.plan.atoms[name].num_multicast for name in "AB"]
            loads = list(zip(self._maps[:2], counts, strict=True))
            found = replace(found, stage=found.stage % self.plan.stages)
            raise found.error(self.kernel.source.name, loads, cause=cause_of(self.plan, full, empty))


def cause_of(plan: GemmPlan, full: WaitTimeout | None, empty: WaitTimeout | None) -> str:
    """Return the reason why a barrier of a GEMM kernel does not complete, if the records of two waits show it.

    Args:
        full: record of the first wait on a full barrier that timed out. empty: the same for an empty barrier. In both,
            `stage` is the number of earlier waits of the thread.
    """
    if empty is not None and empty.stage < plan.stages:
        return (
            f"flipped parity: the producer waits for phase {empty.phase} of a new barrier; there a wait for parity 1 "
            f"passes immediately, and a wait for parity 0 does not"
        )
    if full is None:
        arrivals = counted(plan.cluster * plan.warpgroups, "arrival")
        return f"missing arrivals: an empty barrier needs {arrivals} per phase"
    if full.expected != plan.stage_bytes:
        return (
            f"wrong expect_tx: a full barrier expects {full.expected} bytes, but the loads deliver {plan.stage_bytes}"
        )
    if plan.cluster > 1:
        mask = (1 << plan.cluster) - 1
        return f"wrong mask, because the bytes are right: each CTA's part must go to all {plan.cluster}, mask {mask:#x}"
    return "the loads complete on another barrier, or were not issued; their bytes match the expected ones"


@record
class GemmKernel:
    """A GEMM kernel: C (M,N) = epilogue(A (M,K) * B (N,K)).

    Attributes:
        plan: tiles, stages and descriptors of the kernel. kernel: its source and launch configuration.

    >>> import cute_py as cute
    >>> def atom(op, rows, columns, tile):
    ...     shape, stride = (rows, columns), (columns, cute.Int(1))
    ...     gmem = cute.make_tensor(cute.make_gmem_ptr(4096, "bfloat16"), cute.Layout(shape, stride))
    ...     return cute.tma.make_tma_copy(op, gmem, cute.tma.make_smem_layout("K", "128B", "bfloat16", (tile, 64)))
    >>> a = atom("SM90_TMA_LOAD", 4096, 1024, 128)
    >>> b = atom("SM90_TMA_LOAD", 8192, 1024, 256)
    >>> c = atom("SM90_TMA_STORE", 4096, 8192, 64)
    >>> mma = cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_SS", (2, 1, 1))
    >>> kernel = cute.tma.gemm_kernel(mma, a, b, c)
    >>> kernel.plan.stages, "wgmma" in kernel.source
    (4, True)
    """

    plan: GemmPlan
    kernel: KernelSource

    def __repr__(self) -> str:
        m, n, k = self.plan.shape
        return f"<GEMM of {m} x {n} x {k} by {self.plan.tiled_mma.atom.op}, {self.plan.stages} stages>"

    @property
    def source(self) -> str:
        """The complete CUDA C++ source. It includes no header."""
        return self.kernel.text

    def edited(self, old: str, new: str) -> GemmKernel:
        """Return a kernel with every `old` in the source replaced by `new`. The result is not checked.

        Raises:
            InvalidValueError: the source does not contain `old`.
        """
        if expect(old, str, "the old text") not in self.source:
            raise InvalidValueError(f"the source has no {given(old)}")
        text = self.source.replace(old, expect(new, str, "the new text"))
        return replace(self, kernel=replace(self.kernel, text=text))

    def compile(self, arch: str | None = None) -> CompiledKernel:
        """Return the machine code, from the cache or from NVRTC.

        Raises:
            MissingPackageError: cuda-python is not installed.
            DeviceError: NVRTC is missing, or it refuses the source.
            InvalidValueError: the architecture does not exist.
        """
        return compile_kernel(self.kernel, None if arch is None else architecture(arch).name)

    def prepare(self, a: ArrayLike, b: ArrayLike, c: ArrayLike, device: Device | None = None) -> PreparedGemm:
        """Compile and load the kernel, and bind it to arrays in device memory.

        Args:
            a, b, c: (M,K), (N,K), (M,N) arrays with the strides and types of the atoms' tensors.
        Raises:
            InvalidValueError, InvalidTypeError: shapes, strides or types of the arrays do not match the atoms' tensors.
            DeviceError: there is no device.
        """
        views = {name: self._view(name, array) for name, array in zip("ABC", (a, b, c), strict=True)}
        device = as_device(device, common_device({name: view.device for name, view in views.items()}))
        require_place(views, device.ordinal)
        if views["C"].readonly:
            raise InvalidValueError("C is read-only")
        return PreparedGemm(self, views, device)

    def run(self, a: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, *, stream: StreamLike = None) -> ArrayLike:
        """Compute C = epilogue(A * B) on a device.

        Args:
            a, b: (M,K) and (N,K), device arrays or numpy arrays, which are copied to the device.
            c: (M,N), the result; a numpy array is copied back from the device. Default: a new array of the kind of `a`.
            stream: the stream of the device arrays. The GEMM is launched on it, and `run` neither waits for it nor
                checks it.
        Returns:
            c.
        Raises:
            InvalidValueError, InvalidTypeError: shapes, strides or types of the arrays do not match the atoms' tensors.
            DeviceError: there is no device, or a barrier did not complete; the message has the expected and arrived
                bytes.
        """
        arrays = {"A": a, "B": b, "C": self._new(a) if c is None else c}
        views = {name: self._view(name, array) for name, array in arrays.items()}
        device = as_device(None, common_device({name: view.device for name, view in views.items()}))
        if views["C"].readonly:
            raise InvalidValueError("C is read-only")
        there, buffers = _on_device(arrays, views, device)
        prepared = PreparedGemm(self, there, device, keep=tuple(buffers))
        prepared.launch(stream)
        if stream is None or buffers:
            prepared.check(stream)
        if views["C"].device is None:
            import numpy as np

            np.asarray(arrays["C"])[...] = host_copy(there["C"])
        return arrays["C"]

    def machine_launches(self, args: Sequence[Any]) -> tuple[MachineLaunch, ...]:
        """Return the launch on the emulated multiprocessor that `run_ptx(kernel, args=(a, b, c))` runs.

        The arguments are numpy arrays.

        Raises:
            InvalidValueError, InvalidTypeError: shapes, strides or types of the arrays do not match the atoms' tensors.
        """
        import numpy as np

        arrays = expect_items(args, "args")
        if len(arrays) != 3:
            raise InvalidValueError(f"a GEMM kernel takes A, B and C, got {counted(len(arrays), 'argument')}")
        maps = []
        for name, array in zip("ABC", arrays, strict=True):
            self._view(name, array)
            maps.append((bytes(self.plan.atoms[name].descriptor), array))
        record = np.zeros(2 * ERROR_RECORD_BYTES, np.uint8)
        tiles = self.plan.tiles[0] * self.plan.tiles[1]
        blocks = min(MACHINE_CTAS // self.plan.cluster * self.plan.cluster, tiles)
        return (MachineLaunch(self.kernel, max(blocks, self.plan.cluster), (*maps, record)),)

    def stage(
        self, a: ArrayLike, b: ArrayLike, tile: tuple[int, int] = (0, 0), k: int = 0, *, backend: str = "emulator"
    ) -> dict[str, Bytes]:
        """Return the bytes of the tiles of A and B in one stage of shared memory, as a warpgroup reads them.

        Args:
            tile: the tile of C, as indices of CTA tiles along M and N. k: the step of the main loop.
            backend: 'emulator', for numpy arrays, or 'cuda', which runs the kernel on a device and copies the stage
                out.
        Raises:
            InvalidValueError: the tile, step or backend does not exist, or the arrays do not fit.
            TmaTrap, DeviceError: a load fails.
        """
        numbers = expect_integers(tile, "a tile of C", 0)
        if len(numbers) != 2:
            raise InvalidValueError(f"a tile of C must be two numbers, along M and N, got {given(tile)}")
        m, n, k = (
            expect_integer(one, what, 0, count - 1)
            for what, one, count in zip(("tile M", "tile N", "k"), (*numbers, k), self.plan.tiles, strict=True)
        )
        views = {"A": self._view("A", a), "B": self._view("B", b)}
        if expect_choice(backend, ("emulator", "cuda"), "the backend") == "emulator":
            return {name: self._emulated(name, views[name], at, k) for name, at in (("A", m), ("B", n))}
        return self._dumped({"A": a, "B": b}, (m, n), k)

    def _emulated(self, name: str, view: ArrayView, index: int, k: int) -> Bytes:
        import numpy as np

        walk, atom = self.plan.walks[name], self.plan.atoms[name]
        image = host_copy(view)
        content = np.frombuffer(host_bytes(array_view(image)), np.uint8)
        smem = np.zeros(walk.bytes, np.uint8)
        for box in walk.of_all(atom.num_multicast):
            coords = [index * m + k * s + c for m, s, c in zip(*walk.steps, box.coords, strict=True)]
            base = atom.request.global_address
            Emulator(atom.arch).load(atom.descriptor, content, coords, smem, smem_offset=box.place, gmem_base=base)
        return smem

    def _dumped(self, arrays: dict[str, ArrayLike], tile: tuple[int, int], k: int) -> dict[str, Bytes]:
        import numpy as np

        dumping = self.edited("ErrorRecord* record) {\n  extern", "ErrorRecord* record, u8* dump) {\n  extern").edited(
            DUMP_HERE,
            f"        if (own == 0 && m == {tile[0]} && n == {tile[1]} && k == {k})\n"
            f"          for (u32 i = thread; i < STAGE_BYTES; i += 128) dump[i] = shared[stage * STAGE_BYTES + i];\n"
            f"{DUMP_HERE}",
        )
        arrays["C"] = self._new(arrays["A"])
        views = {name: self._view(name, array) for name, array in arrays.items()}
        device = as_device(None, common_device({name: view.device for name, view in views.items()}))
        there, buffers = _on_device(arrays, views, device)
        with DeviceBuffer(device, self.plan.stage_bytes) as dump:
            prepared = PreparedGemm(dumping, there, device, (dump.address,), tuple(buffers))
            prepared.launch()
            prepared.check()
            content = np.frombuffer(bytes(dump.read()), np.uint8)
        first = self.plan.walks["A"].bytes
        return {"A": content[:first].copy(), "B": content[first:].copy()}

    def _view(self, name: str, array: ArrayLike) -> ArrayView:
        view, atom = array_view(array), self.plan.atoms[name]
        check_tensor(atom, view.shape, view.strides, view.dtype.bits, name)
        if view.dtype.storage != atom.dtype.storage:  # float32 arrays hold tfloat32
            raise InvalidTypeError(f"{name} has elements of {view.dtype}, its atom of {atom.dtype}")
        return view

    def _new(self, like: ArrayLike) -> ArrayLike:
        m, n, _ = self.plan.shape
        name, library = self.plan.atoms["C"].dtype.name, type(like).__module__.partition(".")[0]
        if library == "torch":
            import torch

            made: ArrayLike = torch.empty((m, n), dtype=getattr(torch, name), device=like.device)  # type: ignore[union-attr]
            return made
        if library == "numpy":
            import numpy as np

            return np.zeros((m, n), self.plan.atoms["C"].dtype.numpy)
        raise InvalidTypeError(f"C is missing, and a GEMM kernel can't allocate an array like {type(like).__name__}")

    def explain(self) -> str:
        """Describe the kernel's tiles, shared memory, barriers, registers and descriptors, and their consequences."""
        plan = self.plan
        m, n, k = plan.shape
        tiles_m, tiles_n, tiles_k = plan.tiles
        a, b, c = (plan.walks[name] for name in "ABC")
        loads = sum(
            len(walk.boxes) * plan.atoms[name].num_multicast for name, walk in plan.walks.items() if name != "C"
        )
        shared = f"; {plan.cluster} CTAs along {plan.shared_by} share {'B' if plan.shared_by == 'M' else 'A'}"
        shared *= bool(plan.shared_by)
        rows = " and ".join(plan.split_rows)
        split = [f"  split sectors   {rows}: rows start inside a 32-byte sector and take one more"]
        if plan.cluster == 1:
            split.append("                  clusters that share B (num_multicast=2) halve its loads")
        registers = PRODUCER_REGISTERS[plan.warpgroups], CONSUMER_REGISTERS[plan.warpgroups]
        lines = [
            f"C (M,N) = A (M,K) * B (N,K), M {m}, N {n}, K {k}: {2 * m * n * k / 1e9:.6g} GFLOP",
            f"  by {plan.tiled_mma.atom.ptx}",
            "",
            "work",
            f"  tile            {plan.tile[0]} x {plan.tile[1]} of C per CTA, K in steps of {plan.tile[2]}{shared}",
            f"  tiles           {tiles_m} x {tiles_n}, {counted(tiles_k, 'step')} each; {plan.group} rows go together",
            f"  past the end    {tiles_m * plan.tile[0] - m} rows, {tiles_n * plan.tile[1] - n} columns, "
            f"{tiles_k * plan.tile[2] - k} of K: loaded as zeros, not stored",
            *(split if plan.split_rows else []),
            "",
            f"shared memory, {plan.shared_bytes} of {MAX_SHARED_BYTES} bytes",
            f"  stages          {plan.stages} x {plan.stage_bytes}: A {a.bytes}, B {b.bytes}",
            f"  staging of C    {plan.staging_bytes}: {plan.warpgroups} x {plan.staging} x {c.bytes}",
            "",
            "barriers of a stage",
            f"  full            1 arrival and {plan.stage_bytes} bytes, from {counted(loads, 'load')}",
            f"  empty           {counted(plan.cluster * plan.warpgroups, 'arrival')}: one from each warpgroup "
            "that reads it",
            "",
            f"threads, {plan.threads}",
            f"  warpgroup 0     one thread loads; {registers[0]} registers",
            f"  {'the others':<15} {plan.k_steps * plan.row_steps} wgmma per stage, sums in "
            f"{plan.row_steps * plan.tiled_mma.atom.registers['C'][0]} of {registers[1]} registers",
        ]
        for name, operand in plan.operands.items():
            lines += ["", f"{name}, {operand.major}-major: {plan.atoms[name].smem_layout}"]
            lines += [f"  {line}" for line in operand.descriptor.explain(operand.major).splitlines()]
        return "\n".join(lines)


def _on_device(
    arrays: dict[str, ArrayLike], views: dict[str, ArrayView], device: Device
) -> tuple[dict[str, ArrayView], list[DeviceBuffer]]:
    """Copy host arrays to the device; return the device arrays, and the buffers of the host arrays."""
    there: dict[str, ArrayView] = {}
    buffers = []
    for name, array in arrays.items():
        there[name], buffer = moved_to_device(array, views[name], device, STORE_UNIT)
        buffers += [] if buffer is None else [buffer]
    return there, buffers


def gemm_kernel(
    tiled_mma: TiledMma,
    tma_a: TmaAtom,
    tma_b: TmaAtom,
    tma_c: TmaAtom,
    stages: int | None = None,
    epilogue: str = "x",
    *,
    staging: int = 2,
    group: int = 8,
    wait_cycles: int = WAIT_CYCLES,
) -> GemmKernel:
    """Make a kernel for C (M,N) = epilogue(A (M,K) * B (N,K)) from a tiled MMA and three TMA atoms.

    The kernel is persistent and warp-specialised. TMA loads fill a ring of stages, wgmma reads them through
    descriptors, and stmatrix and TMA stores write C. If a tile extends past the tensor, loads fill the rest with zeros
    and stores omit it.

    Args:
        tiled_mma: a dense wgmma with A and B in shared memory and float32 accumulators; 1 or 2 warpgroups along M, at
            most 192 accumulators per thread (a tile of 256 x 192).
        tma_a, tma_b: loads of A (M,K) and B (N,K). The shared layout of each describes one stage, and is canonical for
            wgmma. If one of them is a multicast to 2 CTAs, two CTAs form a cluster and share that operand.
        tma_c: the store of C (M,N). Its shared layout is a K-major tile of 64 rows, of bfloat16 or float16.
        stages: number of stages of the ring, 2 to 16; default: as many as fit in shared memory.
        epilogue: a CUDA C++ expression in `x`, an element of A * B (float).
        staging: number of buffers for a tile of C per warpgroup, 1 to 8.
        group: number of rows of tiles that are computed together, so that they find B in L2.
        wait_cycles: the longest wait on a barrier, in SM clock cycles.
    Raises:
        InvalidValueError: the objects break rules of `check_gemm`, which runs before the compilation.
        InvalidTypeError: the arguments are not a tiled MMA and TMA atoms.
    Source:
        PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix Instructions", cp.async.bulk.tensor, stmatrix, setmaxnreg.

    >>> def matrix(rows, columns):
    ...     return make_tensor(make_gmem_ptr(4096, "bfloat16"), Layout((rows, columns), (columns, Int(1))))
    >>> def stage(rows):
    ...     return cute.tma.make_smem_layout("K", "128B", "bfloat16", (rows, 64))
    >>> mma = cute.make_tiled_mma("SM90_64x256x16_F32BF16BF16_SS", (2, 1, 1))
    >>> a = cute.tma.make_tma_copy("SM90_TMA_LOAD", matrix(4096, 1024), stage(128))
    >>> b = cute.tma.make_tma_copy("SM90_TMA_LOAD", matrix(8192, 1024), stage(256))
    >>> c = cute.tma.make_tma_copy("SM90_TMA_STORE", matrix(4096, 8192), stage(64))
    >>> kernel = cute.tma.gemm_kernel(mma, a, b, c)
    >>> kernel.plan.stages, kernel.plan.tiles, len(kernel.source.splitlines()) < 250
    (4, (32, 32, 16), True)
    >>> cute.tma.gemm_kernel(mma, a, b, c, stages=5)
    Traceback (most recent call last):
    cute_py.errors.InvalidValueError: stages = 5; must be at most 4
      a stage      : 49152 bytes of A and B
      staging of C : 32768 bytes
      a block      : 232448 bytes of shared memory
      hint         : stages=4
    """
    plan = plan_gemm(tiled_mma, tma_a, tma_b, tma_c, stages, staging, group)
    expression = expect_expression(epilogue, "the epilogue")
    cycles = expect_integer(wait_cycles, "wait_cycles", 1)
    return GemmKernel(plan, gemm_source(plan, expression, cycles))
