"""Every public name has a call, the calls are valid, and they are the same in every process."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.calls import arena, descriptors, surface
from tests.calls.call import Call, Entry
from tests.calls.mutations import JUNK, mutated
from tests.calls.namespace import names
from tests.calls.outcome import is_refusal
from tests.calls.registry import EXCEPTIONS, registry
from tests.calls.text import Maker
from tests.fuzz.worker import call_of

ROOT = Path(__file__).parents[2]

ALWAYS_REFUSED = {
    "ComposedLayout.max_common_layout": "CuTe does not define max_common_layout for two composed layouts",
    "ComposedLayout.stride": "a composed layout has none",
    "Pointer.__getitem__": "a bare pointer has no elements",
    "SmemPtrFlag.__rfloordiv__": "its value is 0",
    "SmemPtrFlag.__rmod__": "its value is 0",
    "TmemPointer.__getitem__": "a bare pointer has no elements",
}
"""Names whose calls are right to be refused, and why."""


def test_every_public_name_has_a_call() -> None:
    missing = [name for name in surface.public_names() if name not in registry() and name not in EXCEPTIONS]
    assert not missing, "tests/calls needs a call of each of these"


def test_no_call_is_of_another_name() -> None:
    public = set(surface.public_names())
    assert not [name for name in registry() if name not in public and not name.endswith(".__eq__")]
    assert not [name for name in EXCEPTIONS if name not in public]


def test_strides_of_the_maps_fit_their_field() -> None:
    made = (descriptors.numbers(Maker(random.Random(seed)))[3] for seed in range(20_000))
    assert max(max(strides, default=0) for strides in made) < 1 << 40


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def _made(call: Call, namespace: dict[str, object]) -> BaseException | None:
    arena.reset()
    function, args, kwargs = call.made(namespace)
    try:
        function(*args, **kwargs)
    except Exception as error:
        return error
    return None


FEW, MANY = 3, 12
"""Calls of a name that is drawn seldom and of one that is drawn often, in the whole sweep. By default the calls of a
name end with the first that returns."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [1, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("room", sorted({entry.room for entry in registry().values()}))
def test_the_calls_of_a_room_are_valid(room: str, most: int, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They return, or are refused by an error that a user may see; each name has one that returns."""
    namespace = names()
    foreign, never = [], []
    for name, entry in registry().items():
        if entry.room != room or entry.device:
            continue
        errors: list[BaseException | None] = []
        for number in range(FEW if entry.weight < 0.3 else MANY):
            if number >= most and None in errors:
                break
            call = entry.call(f"valid/{number}")
            errors.append(_made(call, namespace))
            if errors[-1] is not None and not is_refusal(errors[-1], call.text):
                foreign.append(f"{call.text}: {errors[-1]!r}"[:500])
        if None not in errors and name not in ALWAYS_REFUSED:
            never.append(f"{name}: {errors[0]!r}"[:500])
    capsys.readouterr()
    assert not foreign
    assert not never


def calls_as_text(each: int) -> str:
    """Calls of every name, which depend on their seeds alone, and not on the hashes of texts in this process."""
    return "".join(f"{call_of(entry, 1, n).text}\n" for entry in registry().values() for n in range(each))


@pytest.mark.parametrize("each", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_calls_are_the_same_in_every_process(each: int) -> None:
    code = f"from tests.calls.test_registry import calls_as_text; print(calls_as_text({each}), end='')"
    other = subprocess.run(
        [sys.executable, "-c", code],
        env=dict(os.environ, PYTHONHASHSEED="2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"),
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert other == calls_as_text(each)


def test_a_mutation_changes_one_argument() -> None:
    call = Call("f", "f", ("(4, 8)", "'text'"), (("key", "{'a': 1}"),))
    for seed in range(200):
        other = mutated(call, random.Random(seed))
        before, after = ((*(made.args or ()), *made.kwargs) for made in (call, other))
        assert sum(a != b for a, b in zip(before, after, strict=True)) <= 1
        assert other.target == call.target


def test_what_an_operator_is_applied_to_is_not_mutated() -> None:
    call = Call("f", "operator.add", ("E(0)", "E(1)"), (), 1)
    assert all((mutated(call, random.Random(seed)).args or ())[0] == "E(0)" for seed in range(50))


def test_every_mutation_can_be_evaluated() -> None:
    namespace = names()
    entry = Entry("f", [lambda maker: Call("f", "list", (maker.choice(JUNK),))])
    assert all(entry.call(seed).made(namespace) for seed in range(300))
