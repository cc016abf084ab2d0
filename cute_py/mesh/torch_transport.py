"""Use torch.distributed as a transport: one process for each device, over NCCL, gloo or another backend of a process
group."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from cute_py.dtypes import DType, as_dtype
from cute_py.errors import DeviceError, InvalidTypeError, InvalidValueError, imported
from cute_py.mesh.host import Described, Elements
from cute_py.mesh.transport import Transport


class TorchTransport(Transport):
    """Transport between the ranks of a PyTorch process group: batched isend and irecv, and the store of the default
    group.

    Args:
        group: a process group; by default, the group of all processes.
        maps: whether ranks of one host may map each other's GPU memory; if False, they only exchange messages.
    Raises:
        DeviceError: torch.distributed is not initialised, or this process is not in the group.
    """

    def __init__(self, group: Any = None, maps: bool = True) -> None:
        torch: Any = imported("torch", "backend 'torch'", "torch", "pip install torch")
        self.maps = maps
        self._torch, self._dist = torch, torch.distributed
        if not self._dist.is_available() or not self._dist.is_initialized():
            raise DeviceError(
                "torch.distributed is not initialised", hint="use torchrun, and torch.distributed.init_process_group()"
            )
        self._group = self._dist.group.WORLD if group is None else group
        self.rank, self.ranks = self._dist.get_rank(self._group), self._dist.get_world_size(self._group)
        if self.rank < 0:
            raise DeviceError("this process is not a rank of the group", {"ranks": self.ranks})
        self._store = self._dist.distributed_c10d._get_default_store()
        self._prefix = f"cute_py/{getattr(self._group, 'group_name', 'group')}"
        nccl = "nccl" in str(self._dist.get_backend(self._group))
        self.device = torch.device("cuda", torch.cuda.current_device()) if nccl else torch.device("cpu")
        self._aborted = False

    def put(self, key: str, value: str) -> None:
        self._store.set(f"{self._prefix}/{key}", value)

    def get(self, key: str) -> str | None:
        name = f"{self._prefix}/{key}"
        return self._store.get(name).decode() if self._store.check([name]) else None

    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        if self._aborted:
            raise DeviceError("the process group was aborted", hint="make a new one")
        calls = [
            self._dist.P2POp(
                function, tensor.view(self._torch.uint8), self._dist.get_global_rank(self._group, peer), self._group
            )
            for function, side in ((self._dist.isend, sends), (self._dist.irecv, receives))
            for peer, tensor in sorted(side.items())
        ]
        works = self._dist.batch_isend_irecv(calls) if calls else []

        if self.device.type == "cpu":
            return _waited_for(works)

        def done() -> bool:
            while works and works[-1].is_completed():
                works.pop().wait()  # raises the error of the transfer; the current stream waits
            return not works

        return done

    def abort(self) -> None:
        self._aborted = True
        with contextlib.suppress(Exception):  # a backend that does not support it, or that has ended
            self._group.abort()

    def elements(self, dtype: DType) -> Elements:
        return TorchElements(dtype, self._torch, self.device)


def _waited_for(works: Sequence[Any]) -> Callable[[], bool]:
    """Return a function that tests whether gloo's messages have arrived. They complete only while a thread waits for
    them, so this function starts such a thread."""
    ended: list[Exception | None] = []

    def wait() -> None:
        try:
            for work in works:
                work.wait()
            ended.append(None)
        except Exception as problem:
            ended.append(problem)

    def done() -> bool:
        if ended and ended[0] is not None:
            raise ended[0]
        return bool(ended)

    threading.Thread(target=wait, daemon=True).start()
    return done


class TorchElements:
    """Operations on PyTorch tensors; messages are on `device`, and parts may be on another device."""

    kind = "a torch tensor"

    def __init__(self, dtype: DType, torch: Any, device: Any) -> None:
        self.dtype = dtype
        self._torch, self._device = torch, device
        self._type = next((t for t in vars(torch).values() if isinstance(t, torch.dtype) and _is(t, dtype)), None)
        if self._type is None:
            raise InvalidValueError(f"PyTorch has no element type {dtype.name}")

    def described(self, array: Any, what: str) -> Described:
        if not isinstance(array, self._torch.Tensor):
            raise InvalidTypeError(f"{what} must be {self.kind}, got {type(array).__name__}")
        begin = array.data_ptr()
        end = begin + array.numel() * array.element_size()
        same = array.dtype == self._type
        return Described(str(array.dtype), same, tuple(array.shape), array.is_contiguous(), True, begin, end)

    def flat(self, array: Any) -> Any:
        return array.detach().reshape(-1)

    def strided(self, flat: Any, base: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return flat.as_strided(shape, strides, flat.storage_offset() + base)

    def index(self, places: NDArray[numpy.int64], flat: Any) -> Any:
        return self._torch.from_numpy(numpy.ascontiguousarray(places)).to(flat.device)

    def empty(self, count: int) -> Any:
        return self._torch.empty(count, dtype=self._type, device=self._device)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self._torch.zeros(shape, dtype=self._type, device=self._device)

    def wide(self, values: Any) -> Any:
        narrow = self.dtype.is_float and self.dtype.bits < 32
        return values.to(self._torch.float32 if narrow else self._type, copy=True)

    def settle(self) -> None:
        if self._torch.cuda.is_initialized():
            self._torch.cuda.current_stream().synchronize()


def _is(kind: Any, dtype: DType) -> bool:
    try:
        return as_dtype(kind) == dtype
    except (InvalidTypeError, InvalidValueError):
        return False
