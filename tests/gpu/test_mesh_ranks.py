"""A process for each GPU: NCCL and gloo over both, one of them ended or stopped in the middle."""

from __future__ import annotations

from typing import Any

import pytest

from cute_py.gpu.device import Device, device_count


@pytest.fixture
def jobs(device: Device) -> Any:
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        pytest.skip("PyTorch without NCCL")
    if device_count() < 2:
        pytest.skip("needs two GPUs")
    from tests.mesh import torch_jobs

    return torch_jobs


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_data_arrive(jobs: Any, backend: str) -> None:
    assert jobs.run_torch(jobs.data_arrive, 2, backend=backend) == [[], []]


def test_other_types_layouts_and_groups(jobs: Any) -> None:
    assert all(all(one) for one in jobs.run_torch(jobs.other_types_and_layouts, 2, backend="nccl"))


@pytest.mark.parametrize(
    ("backend", "how", "lost"), [("nccl", "killed", 1), ("nccl", "stopped", 0), ("gloo", "killed", 0)]
)
def test_a_lost_rank_is_found(jobs: Any, backend: str, how: str, lost: int) -> None:
    one = jobs.run_torch(jobs.failing, 2, how, lost, backend=backend, lost=lost)[1 - lost]
    assert one["rank"] == lost, one
    assert one["kept"]
    assert one["seconds"] < jobs.BOUND + 1
