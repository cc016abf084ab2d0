"""torch.distributed over gloo: 2 and 4 processes, one of them ended or stopped in the middle."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cute_py.errors import CuteError  # noqa: E402
from tests.mesh.rank_jobs import plan_of  # noqa: E402
from tests.mesh.torch_jobs import BOUND, data_arrive, failing, other_types_and_layouts, run_torch  # noqa: E402


@pytest.mark.parametrize("ranks", [2, 4])
def test_data_arrive(ranks: int) -> None:
    assert run_torch(data_arrive, ranks) == [([], {"messages"})] * ranks


@pytest.mark.parametrize("ranks", [2, 4])
def test_other_types_layouts_and_groups(ranks: int) -> None:
    assert all(all(one) for one in run_torch(other_types_and_layouts, ranks))


@pytest.mark.parametrize(
    ("ranks", "how", "lost"), [(2, "killed", 1), (4, "killed", 0), (2, "stopped", 0), (4, "stopped", 3)]
)
def test_a_lost_rank_is_found(ranks: int, how: str, lost: int) -> None:
    for rank, one in enumerate(run_torch(failing, ranks, how, lost, lost=lost)):
        if rank != lost:
            assert one["rank"] == lost, one
            assert one["kept"]
            assert one["seconds"] < 2 * BOUND


def bad(rank: int, ranks: int) -> list[tuple[str, str]]:
    found = []
    plan, _ = plan_of(ranks)
    shape = plan.source.local_shape(rank)
    whole = torch.zeros(shape, dtype=torch.int32)
    cases = [torch.zeros(shape), whole.t() if rank else whole, np.zeros(shape, np.int32)]
    for tensor in cases:
        try:
            plan.run({rank: tensor}, backend="torch", seconds=BOUND)
        except CuteError as problem:
            found.append((type(problem).__name__, str(problem)))
    return found


def test_bad_tensors_are_refused_on_all_ranks() -> None:
    first, second = run_torch(bad, 2)
    assert first == second
    assert "rank 1: sources[1] has elements of type torch.float32; must be int32" in first[0][1]
    assert first[1] == ("InvalidValueError", first[1][1])
    assert "rank 1: sources[1] must be C-contiguous" in first[1][1]
    assert "rank 0: sources[0] must be a torch tensor, got ndarray" in first[2][1]


def test_without_a_process_group() -> None:
    with pytest.raises(CuteError, match=r"torch\.distributed is not initialised"):
        plan_of(2)[0].run({0: torch.zeros((8, 16), dtype=torch.int32)}, backend="torch")
