"""Transport of bytes between ranks, with one process for each device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from cute_py.dtypes import DType
from cute_py.mesh.host import Elements, NumpyElements


class Transport(ABC):
    """Messages between ranks, and a store of strings that all ranks read and write.

    A redistribution uses the store to agree on its plan and to find lost ranks, and moves data in messages. The
    messages of a pair of ranks must arrive in the order in which they are sent. `TorchTransport` uses
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
        """The value of a key, or None if it has no value. Returns at once."""

    @abstractmethod
    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        """Begin to send flat arrays to ranks, and to receive from ranks into flat arrays.

        Returns:
            A function that returns at once, and returns True when all of it is sent and received. It may raise any
            exception of its library for a lost connection.
        """

    @abstractmethod
    def abort(self) -> None:
        """Cancel pending messages; nothing is sent afterwards. It may be called twice, and must not block."""

    def elements(self, dtype: DType) -> Elements:
        """The arrays that the transport moves: numpy's, unless a class overrides this."""
        return NumpyElements(dtype)
