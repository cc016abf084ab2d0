"""Transport of bytes between ranks: one process for each device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from cute_py.dtypes import DType
from cute_py.mesh.host import Elements, NumpyElements


class Transport(ABC):
    """Messages between ranks, and a store of texts that all of them read and write.

    A redistribution agrees on its plan and finds lost ranks over the store, and moves data in messages, which for each
    pair of ranks arrive in the order in which they are sent. `TorchTransport` is one over torch.distributed; a class of
    your own may be one over MPI, UCX or sockets. `put` and `get` are called from a thread of their own.

    Attributes: `rank`, the number of this process, which is that of its device; `ranks`, how many there are; `maps`,
        whether ranks of one host may map each other's GPU memory: False for messages alone.
    """

    rank: int
    ranks: int
    maps: bool = True

    @abstractmethod
    def put(self, key: str, value: str) -> None:
        """Set a key of the store; a second value replaces the first."""

    @abstractmethod
    def get(self, key: str) -> str | None:
        """The value of a key, None where it has none. Returns at once."""

    @abstractmethod
    def start(self, sends: Mapping[int, Any], receives: Mapping[int, Any]) -> Callable[[], bool]:
        """Begin to send these flat arrays to ranks, and to receive into these from ranks.

        Returns:
            A function that returns at once, and returns True when all of it is sent and received. It may raise any
            exception of its library for a lost connection.
        """

    @abstractmethod
    def abort(self) -> None:
        """Cancel messages under way; nothing is sent afterwards. May be called twice. Must return."""

    def elements(self, dtype: DType) -> Elements:
        """The arrays that it moves: numpy's, unless a class overrides this."""
        return NumpyElements(dtype)
