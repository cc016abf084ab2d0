"""Transport of bytes between ranks, with one process for each device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from cute_py.dtypes import DType
from cute_py.mesh.host import Elements, NumpyElements


class Transport(ABC):
    """Interface for messages between ranks, and for a store of strings that all ranks read and write.

    A redistribution uses the store to agree on its plan and to find lost ranks, and moves data in messages. The
    messages of a pair of ranks must arrive in sending order. `TorchTransport` uses
    torch.distributed; a custom class may use MPI, UCX or sockets. `put` and `get` are called from a separate thread.

    Attributes: `rank`, the number of this process and of its device; `ranks`, the number of ranks; `maps`, whether
        ranks of one host may map each other's GPU memory (False: only messages).
    """

    rank: int
    ranks: int
    maps: bool = True

    @abstractmethod
    def put(self, key: str, value: str) -> None:
        """Set a key of the store; a later value replaces the earlier one."""

    @abstractmethod
    def get(self, key: str) -> str | None:
        """Return the value of a key, or None if it has no value. The call does not block."""

    @abstractmethod
    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        """Start to send flat arrays to ranks, and to receive flat arrays from ranks.

        Returns:
            A function that does not block, and returns True when everything has been sent and received. It may raise
                any exception of its library if the connection is lost.
        """

    @abstractmethod
    def abort(self) -> None:
        """Cancel pending messages; nothing is sent afterwards. The method may be called twice, and must not block."""

    def elements(self, dtype: DType) -> Elements:
        """Return the operations on the arrays that the transport moves: numpy arrays, unless a class overrides this
        method."""
        return NumpyElements(dtype)
