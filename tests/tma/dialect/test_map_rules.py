"""`lower` of a request says which rules of tensor maps it breaks."""

import pytest

from cute_py import tma
from cute_py.errors import TmaBuildError
from cute_py.tma.dialect import lower

SOUND = {"sizes": (64, 8), "strides": (128,), "box": (64, 8), "address": 4096}
BROKEN = [
    ({"strides": (120,)}, "globalStrides[0] = 120 bytes; must be a multiple of 16"),
    ({"sizes": (0, 8)}, "globalDim[0] = 0 elements"),
    ({"box": (512, 8)}, "boxDim[0] = 512 elements"),
    ({"address": 4100}, "globalAddress = "),
]


def request(**changed: object) -> tma.TensorMapTiled:
    numbers: dict[str, object] = SOUND | changed
    return tma.TensorMapTiled(6, numbers["address"], numbers["sizes"], numbers["strides"], numbers["box"])  # type: ignore[arg-type]


def test_a_sound_map_has_no_diagnostic() -> None:
    trace = lower(request())
    assert trace.diagnostics == ()
    assert "breaks" not in str(trace)


@pytest.mark.parametrize(("changed", "said"), BROKEN)
def test_a_broken_rule_is_a_diagnostic_of_stage_3(changed: dict[str, object], said: str) -> None:
    trace = lower(request(**changed))
    assert any(said in text for text in trace.diagnostics)
    assert {found.rule for found in tma.violations(request(**changed))}
    assert "the tensor map breaks 1 rule, which stage 3b names" in trace.reasons
    with pytest.raises(TmaBuildError) as refused:
        trace.verify()
    assert said in str(refused.value)


def test_a_copy_without_a_tensor_map_has_no_rules_of_one() -> None:
    assert lower(request(strides=(120,)), arch="sm_80").diagnostics == ()
