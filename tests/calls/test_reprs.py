"""What the calls of tensor maps, atoms, instructions, the emulator and pictures return has a repr of at most 300
characters, or one that evaluates to an equal object."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import cute_py as cute
from tests.calls import arena
from tests.calls.namespace import names
from tests.calls.registry import registry

MOST = 300
ROOMS = ("tma.descriptor", "tma.atom", "tma.dialect", "tma.exports", "tma.gemm", "tma.emulator")
ROOMS += ("ptx", "gpu", "tmem", "draw")


def objects(prefix: str, draws: Iterable[int]) -> Iterator[tuple[str, object]]:
    """(call, what it returned) of every name under a prefix, where that is an object of one of the rooms."""
    namespace = names()
    for name, entry in registry().items():
        if not name.startswith(prefix) or entry.device:
            continue
        for number in draws:
            call = entry.call(f"repr/{number}")
            arena.reset()
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                function, args, kwargs = call.made(namespace)
                made = function(*args, **kwargs)
                home = type(made).__module__.removeprefix("cute_py.")
                if not isinstance(made, type) and f"{home}.".startswith(tuple(f"{room}." for room in ROOMS)):
                    yield call.text, made


def is_short_or_evaluable(made: object, public: dict[str, object]) -> bool:
    text = repr(made)
    if len(text) <= MOST:
        return True
    try:
        return bool(eval(text, dict(public)) == made)
    except Exception:  # no name of the public ones, or no expression
        return False


class Long:
    """An object with a long repr that is no expression."""

    def __repr__(self) -> str:
        return f"<{'x' * MOST}>"


def test_a_long_repr_that_is_no_expression_is_found() -> None:
    assert not is_short_or_evaluable(Long(), {})
    assert is_short_or_evaluable([7] * MOST, {})


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draws", [range(1), pytest.param(range(1, 4), marks=pytest.mark.slow)])
@pytest.mark.parametrize("prefix", ["tma.", "tmem.", "draw."])
def test_a_repr_is_short_or_evaluates_to_an_equal_object(
    prefix: str, draws: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    public = {**vars(cute), **{name: getattr(cute.tma, name) for name in cute.tma.__all__}, **vars(cute.tmem)}
    found = list(objects(prefix, draws))
    assert found
    assert not [f"{call}: {repr(made)[:200]}" for call, made in found if not is_short_or_evaluable(made, public)]
