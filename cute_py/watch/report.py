"""Report on a recording: a description of each distinct map, the broken rule and the fix of each refused map, harmful
settings, and the cost of encoding."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cute_py.argument_checks import expect, expect_path, record
from cute_py.diagnostics import Diagnostic
from cute_py.errors import FileFormatError, UnknownFactError, counted, shortened, system_reason
from cute_py.explanation.cuda_pastes import result_of_encode
from cute_py.explanation.reasons import MAP_REASONS
from cute_py.targets import architecture
from cute_py.tma.descriptor.describe import describe
from cute_py.tma.descriptor.hazards import hazards
from cute_py.tma.descriptor.plain_data import to_json
from cute_py.tma.descriptor.transfer import transaction_bytes
from cute_py.tma.descriptor.violations import violations
from cute_py.watch.records import Recording, WatchedMap

REPEATED: Final = 10
"""The report names the cost of a map's encodes if there are at least this many."""


@dataclass(frozen=True, slots=True)
class JudgedMap:
    """A map with its findings. `number` is its index in the report, from 0."""

    number: int
    watched: WatchedMap
    found: tuple[Diagnostic, ...]

    def __str__(self) -> str:
        one = self.watched
        state = "refused" if one.result else "encoded"
        cost = f"{one.nanoseconds / 1000 / max(one.count, 1):.1f} us each"
        lines = [f"map {self.number}: {one.call}, {state} {counted(one.count, 'time')} ({cost})"]
        if one.module:
            lines += [f"  by     : {one.module}"]
        for taken in one.kernels:
            place = f"parameter {taken.parameter}" if taken.parameter >= 0 else "the parameter buffer"
            lines += [
                f"  kernel : {shortened(taken.kernel, 100) or '(no name)'}, {place}, byte {taken.offset}, "
                f"{taken.shared} bytes of shared memory"
            ]
        if one.request is not None and not one.result:
            lines += [f"  {line}" for line in describe(one.request).split("\n")]
        elif one.request is not None:
            lines += [f"  {one.request!r}"]
        for found in self.found:
            lines += [f"  {found.severity:<7}: {found.message}  [{found.rule}]"]
            lines += [f"  {'fix':<7}: {fix}" for fix in found.fixes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The map as plain data."""
        one = self.watched
        return {
            "call": one.call,
            "result": one.result,
            "count": one.count,
            "nanoseconds": one.nanoseconds,
            "module": one.module,
            "request": None if one.request is None else to_json(one.request),
            "bytes": one.data.hex(),
            "kernels": [
                {"kernel": t.kernel, "parameter": t.parameter, "offset": t.offset, "shared_memory": t.shared}
                for t in one.kernels
            ],
            "found": [
                {"rule": d.rule, "severity": d.severity, "message": d.message, "fixes": list(map(str, d.fixes))}
                for d in self.found
            ],
        }


@record
class WatchReport:
    """The maps of a program, judged for the architecture `arch`; `notes` lists what could not be recorded.

    >>> WatchReport("sm_90a", ()).maps
    ()
    """

    arch: str
    maps: tuple[JudgedMap, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def found(self) -> tuple[Diagnostic, ...]:
        """The findings of all maps."""
        return tuple(one for judged in self.maps for one in judged.found)

    def __str__(self) -> str:
        refused = sum(judged.watched.result != 0 for judged in self.maps)
        calls = sum(judged.watched.count for judged in self.maps)
        head = f"{counted(len(self.maps), 'distinct map')} in {counted(calls, 'call')}, {refused} refused"
        return "\n".join([head, *map(str, self.maps), *(f"note: {note}" for note in self.notes)])

    def to_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"arch": self.arch, "maps": [judged.to_json() for judged in self.maps], "notes": list(self.notes)}

    def dump(self, folder: str | Path) -> list[Path]:
        """Write the 128 bytes of each encoded map to <number>.map in a folder, for `cute-py desc`, the emulator and
        `explain`. Return the paths.

        Raises:
            FileFormatError: the folder can't be made, or a file can't be written.
        """
        place = expect_path(folder, "folder")
        written = []
        try:
            place.mkdir(parents=True, exist_ok=True)
            for judged in self.maps:
                if judged.watched.data:
                    path = place / f"{judged.number:04d}.map"
                    path.write_bytes(judged.watched.data)
                    written.append(path)
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{place}: can't be written: {system_reason(error)}") from None
        return written


def _refusal(one: WatchedMap, arch: str) -> list[Diagnostic]:
    """The findings on a call that the driver refused: the rules that its request breaks."""
    if one.request is None:
        return [
            Diagnostic(
                "refused",
                text=f"the driver refused it (CUresult {one.result}); its arguments do not form a request: a null "
                f"pointer, or a rank outside 1 to 5",
                fixes=("pass every array, and a rank of 1 to 5",),
            )
        ]
    broken = violations(one.request, arch=arch) if one.result == _INVALID_VALUE else []
    listed = [
        Diagnostic(
            b.rule, text=b.message, source=b.source, fixes=(MAP_REASONS[b.rule].fix,) if b.rule in MAP_REASONS else ()
        )
        for b in broken
    ]
    if listed:
        return listed
    why = result_of_encode(one.result) if one.result != _INVALID_VALUE else f"no known rule of {arch} is broken"
    fix = _FIXES.get(one.result, "see whether the driver and the device support tensor maps")
    return [Diagnostic("refused", text=f"the driver refused it (CUresult {one.result}); {why}", fixes=(fix,))]


_INVALID_VALUE: Final = 1
"""CUresult of a broken rule; other results do not depend on the arguments."""
_FIXES: Final = {
    3: "call cuInit(0), or any function of the runtime, before you encode the first map",
    201: "make a context current on this thread first: cudaFree(0), or cuCtxSetCurrent",
}


def _judge(one: WatchedMap, arch: str) -> tuple[Diagnostic, ...]:
    found = _refusal(one, arch) if one.result else []
    if one.result == 0 and one.request is not None:
        found += hazards(one.request)
        found += _too_large(one)
    if one.count >= REPEATED:
        total = one.nanoseconds / 1e6
        text = f"encoded {one.count} times with the same arguments, {total:.1f} ms in total"
        fix = "keep the 128 bytes, or replace only the address (cuTensorMapReplaceAddress)"
        found.append(Diagnostic("repeated_encode", text=text, severity="warning", fixes=(fix,)))
    return tuple(found)


def _too_large(one: WatchedMap) -> list[Diagnostic]:
    """Findings on the kernels whose shared memory is smaller than one box."""
    if one.request is None:
        return []
    try:
        size = transaction_bytes(one.request)
    except (UnknownFactError, ValueError):
        return []
    return [
        Diagnostic(
            "box_shared_memory",
            text=f"a box is {size} bytes; {shortened(taken.kernel, 80)} has {taken.shared} bytes of shared memory",
            severity="warning",
            fixes=("use a smaller box, or request more dynamic shared memory at the launch",),
        )
        for taken in one.kernels
        if taken.shared < size
    ]


def judged_map(number: int, one: WatchedMap, arch: str) -> JudgedMap:
    """Judge one map, and return it with its findings."""
    return JudgedMap(number, one, _judge(one, arch))


def report_on(recording: Recording, arch: str = "sm_90a") -> WatchReport:
    """Return the report on a recording.

    Args:
        arch: the architecture whose rules apply.
    Raises:
        InvalidTypeError, InvalidValueError: `recording` is not a recording, or the architecture does not exist.

    >>> print(report_on(Recording((), 0)))
    0 distinct maps in 0 calls, 0 refused
    note: the program did not initialise CUDA
    """
    expect(recording, Recording, "a recording")
    architecture(arch)
    notes = [f"no tensor map was recorded in a process: {said}" for said in recording.refusals]
    if any("subscriber" in said.lower() for said in recording.refusals):
        notes.append("a profiler holds CUPTI (ncu, nsys, torch.profiler); run without it")
    if recording.processes == 0:
        notes.append("the program did not initialise CUDA")
    if recording.damaged:
        notes.append(
            f"{counted(recording.damaged, 'line')} of the records could not be read (the program was terminated)"
        )
    judged = tuple(judged_map(number, one, arch) for number, one in enumerate(recording.maps))
    return WatchReport(arch, judged, tuple(notes))
