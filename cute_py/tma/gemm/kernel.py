"""gemm_kernel: from a tiled MMA and three TMA atoms to a kernel that can be read, compiled, run and explained.

It shows every part of this library in the place where it is needed, and runs at the speed that these parts allow. It is
no GEMM library: one kind of epilogue, one schedule, nothing is searched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cute_py.argument_checks import expect
from cute_py.atom.tiled_mma import TiledMma
from cute_py.copies.device_copy import host_bytes, host_copy, moved_to_device
from cute_py.copies.emulated_copy import check_tensor
from cute_py.errors import InvalidTypeError, InvalidValueError, counted, given
from cute_py.gpu.arrays import ArrayLike, ArrayView, StreamLike, array_view, device_of_array, require_place, stream_handle
from cute_py.gpu.device import Device, DeviceBuffer, as_device, common_device
from cute_py.gpu.kernels.source import WAIT_CYCLES, KernelSource
from cute_py.gpu.launch import Parameters, PreparedLaunch, WaitRecord, load_kernel
from cute_py.gpu.nvrtc import CompiledKernel, compile_kernel
from cute_py.tma.atom.atom import TmaAtom
from cute_py.tma.descriptor.replace import replace as replace_field
from cute_py.tma.gemm.plan import GemmPlan, plan_gemm
from cute_py.tma.gemm.source import gemm_source


class PreparedGemm:
    """A GEMM of three arrays on a device, ready to launch. Launches on one stream at a time."""

    def __init__(self, kernel: GemmKernel, views: dict[str, ArrayView], device: Device, keep: tuple[object, ...]) -> None:
        self.device = device
        self.kernel = load_kernel(kernel.kernel, device)
        plan = kernel.plan
        self._maps = [
            bytes(replace_field(plan.atoms[name].descriptor, "global_address", views[name].address)) for name in "ABC"
        ]
        self._loads = [len(plan.walks[name].boxes) * plan.atoms[name].num_multicast for name in "AB"]
        self._record = WaitRecord(device)
        tiles = plan.tiles[0] * plan.tiles[1]
        self.blocks = min(device.multiprocessors // plan.cluster * plan.cluster, tiles)
        self._parameters = Parameters([*self._maps, self._record.address])
        self._launches: dict[int, PreparedLaunch] = {}
        self._keep = (views, keep)

    def launch(self, stream: StreamLike = None) -> None:
        """Enqueue the GEMM. Raises DeviceError if the driver refuses it."""
        handle = stream_handle(stream)
        if handle not in self._launches:
            self._launches[handle] = PreparedLaunch(self.kernel, self.blocks, self._parameters, handle)
        self._launches[handle].launch()

    def check(self, stream: StreamLike = None) -> None:
        """Wait for the stream, and raise DeviceError if a barrier did not complete or the kernel trapped."""
        loads = [(one, count) for one, count in zip(self._maps, self._loads, strict=False)]
        self._record.check(self.kernel.source.name, stream_handle(stream), loads)


@dataclass(frozen=True)
class GemmKernel:
    """A GEMM kernel: C (M,N) = epilogue(A (M,K) * B (N,K)).

    plan: its numbers. kernel: its text with how it is launched.
    """

    plan: GemmPlan
    kernel: KernelSource

    @property
    def source(self) -> str:
        """The whole CUDA C++ file. It includes nothing."""
        return self.kernel.text

    def edited(self, old: str, new: str) -> GemmKernel:
        """The kernel with another text: every `old` is `new`. What it then computes is the editor's business.

        Raises:
            InvalidValueError: the text has no `old`.
        """
        if expect(old, str, "the old text") not in self.source:
            raise InvalidValueError(f"the source has no {given(old)}")
        text = self.source.replace(old, expect(new, str, "the new text"))
        return replace(self, kernel=replace(self.kernel, text=text))

    def compile(self, arch: str | None = None) -> CompiledKernel:
        """The machine code, from the cache or from NVRTC.

        Raises:
            MissingPackageError: no cuda-python. DeviceError: NVRTC is missing, or refuses the text.
        """
        return compile_kernel(self.kernel, arch)

    def prepare(self, a: ArrayLike, b: ArrayLike, c: ArrayLike, device: Device | None = None) -> PreparedGemm:
        """Compile, load, and bind to arrays in device memory.

        Args:
            a, b, c: (M,K), (N,K), (M,N), with the strides and types of the atoms' tensors.
        Raises:
            InvalidValueError, InvalidTypeError: other arrays than the atoms were made for. DeviceError: no device.
        """
        views = {name: self._view(name, array) for name, array in zip("ABC", (a, b, c), strict=True)}
        device = as_device(device, common_device({name: view.device for name, view in views.items()}))
        require_place(views, device.ordinal)
        if views["C"].readonly:
            raise InvalidValueError("C is read-only")
        return PreparedGemm(self, views, device, ())

    def run(self, a: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, *, stream: StreamLike = None) -> ArrayLike:
        """C = epilogue(A * B) on a device.

        Args:
            a, b: (M,K) and (N,K), arrays on a device, or of numpy, which are moved there and back.
            c: (M,N); by default a new array beside a.
            stream: of device arrays: the GEMM is enqueued there, and neither waited for nor checked.
        Returns:
            c.
        Raises:
            InvalidValueError, InvalidTypeError: other arrays than the atoms were made for.
            DeviceError: no device, or a barrier did not complete; its text has the bytes expected and brought.
        """
        arrays = {"A": a, "B": b, "C": self._new(a) if c is None else c}
        views = {name: self._view(name, array) for name, array in arrays.items()}
        device = as_device(None, common_device({name: view.device for name, view in views.items()}))
        there: dict[str, ArrayView] = {}
        buffers: list[DeviceBuffer | None] = []
        for name, array in arrays.items():
            there[name], buffer = moved_to_device(array, views[name], device, 16)
            buffers.append(buffer)
        if views["C"].readonly:
            raise InvalidValueError("C is read-only")
        prepared = PreparedGemm(self, there, device, tuple(buffers))
        prepared.launch(stream)
        if stream is None or any(buffers):
            prepared.check(stream)
        if views["C"].device is None:
            import numpy as np

            np.asarray(arrays["C"])[...] = host_copy(there["C"])
        return arrays["C"]

    def _view(self, name: str, array: ArrayLike) -> ArrayView:
        view, atom = array_view(array), self.plan.atoms[name]
        check_tensor(atom, view.shape, view.strides, view.dtype.bits, name)
        if view.dtype.name != atom.dtype.name:
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
        raise InvalidTypeError(f"no C given, and none can be made beside {type(like).__name__}")


    def explain(self) -> str:
        """The stages, tiles, bytes and descriptors, with what follows from them."""
        return ""


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
    plan = plan_gemm(tiled_mma, tma_a, tma_b, tma_c, stages, staging, group)
    return GemmKernel(plan, gemm_source(plan, epilogue, wait_cycles))
