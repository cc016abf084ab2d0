"""A process for each GPU, or two for one: memory that is mapped, NCCL, gloo, and a rank that ends in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py.gpu.device import Device, device_count


@pytest.fixture
def jobs(device: Device) -> Any:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        pytest.skip("PyTorch without NCCL")
    from tests.mesh import torch_jobs

    return torch_jobs


@pytest.mark.parametrize(
    ("backend", "maps"),
    [("nccl gpus", True), ("nccl gpus", False), ("gloo gpus", True), ("gloo gpu", True), ("gloo gpu", False)],
)
def test_data_arrive(jobs: Any, backend: str, maps: bool) -> None:
    if "gpus" in backend and device_count() < 2:
        pytest.skip("needs two GPUs")
    first, second = jobs.run_torch(jobs.data_arrive, 2, maps, backend=backend)
    assert first[0] == second[0] == []
    allowed = {"", "push", "local", "threads"} if maps else {"messages"}
    assert first[1] | second[1] <= allowed


def test_memory_without_a_handle(jobs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's allocator maps segments itself, if it is asked to."""
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.setenv(name, "expandable_segments:True")
    for one in jobs.run_torch(jobs.expandable, 2, backend="gloo gpu"):
        assert one == (
            True,
            "messages (rank 0: its memory has no IPC handle, because it comes from expandable segments, symmetric "
            "memory or a pool)",
        )


def test_other_types_layouts_and_groups(jobs: Any) -> None:
    if device_count() < 2:
        pytest.skip("needs two GPUs")
    assert all(all(one) for one in jobs.run_torch(jobs.other_types_and_layouts, 2, backend="nccl gpus"))


@pytest.mark.parametrize(
    ("backend", "how", "lost", "maps"),
    [
        ("nccl gpus", "killed", 1, False),
        ("nccl gpus", "stopped", 0, False),
        ("gloo gpus", "killed", 0, False),
        ("nccl gpus", "killed", 0, True),
        ("gloo gpu", "stopped", 1, True),
    ],
)
def test_a_lost_rank_is_found(jobs: Any, backend: str, how: str, lost: int, maps: bool) -> None:
    if "gpus" in backend and device_count() < 2:
        pytest.skip("needs two GPUs")
    one = jobs.run_torch(jobs.failing, 2, how, lost, maps, backend=backend, lost=lost)[1 - lost]
    assert one["rank"] == lost, one
    assert one["kept"]
    assert one["seconds"] < jobs.BOUND + 1
