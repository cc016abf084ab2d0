"""Record files as they come from programs that ended well, were cut off, or wrote junk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cute_py.errors import FileFormatError
from cute_py.tma import encode
from cute_py.tma.descriptor.request import TensorMapIm2col, TensorMapIm2colWide, TensorMapTiled
from cute_py.watch import read_records, report_on

TILED = TensorMapTiled(6, 4096, (250, 128), (512,), (64, 64), (1, 1), 0, 3)
IM2COL = TensorMapIm2col(6, 4096, (64, 8, 8), (128, 1024), (0,), (0,), 64, 32, (1, 1, 1))
WIDE = TensorMapIm2colWide(6, 4096, (64, 8, 8), (128, 1024), 0, 0, 64, 32, (1, 1, 1))


def line(kind: str, **more: object) -> str:
    return json.dumps({"kind": kind, "at": 1, "thread": 1, **more})


def encoded(
    key: str, call: str, request: TensorMapTiled | TensorMapIm2col | TensorMapIm2colWide, **more: object
) -> str:
    values = dict(
        zip(request.FIELDS, (list(v) if isinstance(v, tuple) else int(v) for v in request.field_values()), strict=True)
    )
    said = {
        "key": key,
        "call": call,
        "result": 0,
        "ns": 5000,
        "module": "/x/libtorch.so",
        "rank": len(request.global_dim),
    }
    return line("encode", **{**said, **values, **more})


def folder(tmp_path: Path, *processes: list[str]) -> Path:
    for number, lines in enumerate(processes):
        (tmp_path / f"{100 + number}.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_every_call(tmp_path: Path) -> None:
    data = encode(TILED).hex()
    got = read_records(
        folder(
            tmp_path,
            [
                line("start", pid=100),
                encoded("a", "cuTensorMapEncodeTiled", TILED, map=data),
                encoded("b", "cuTensorMapEncodeIm2col", IM2COL),
                encoded("c", "cuTensorMapEncodeIm2colWide", WIDE),
                line("encode", key="d", call="cuTensorMapReplaceAddress", result=0, ns=9, module="", map=data),
            ],
        )
    )
    assert [one.request for one in got.maps] == [TILED, IM2COL, WIDE, TILED]
    assert (got.processes, got.damaged) == (1, 0)


def test_equal_calls_of_two_processes_are_one(tmp_path: Path) -> None:
    lines = [line("start"), encoded("a", "cuTensorMapEncodeTiled", TILED), line("again", key="a", ns=1000)]
    got = read_records(folder(tmp_path, lines, lines))
    assert [(one.count, one.nanoseconds) for one in got.maps] == [(4, 12_000)]
    assert got.processes == 2


def test_hazards_and_repeats(tmp_path: Path) -> None:
    """Rows of 500 bytes: a store overwrites the next 12."""
    many = [line("again", key="a", ns=14_000)] * 19_999
    got = report_on(
        read_records(folder(tmp_path, [line("start"), encoded("a", "cuTensorMapEncodeTiled", TILED), *many]))
    )
    assert [one.rule for one in got.found] == ["ragged rows", "repeated_encode"]
    assert "encoded 20000 times with the same arguments, 280.0 ms in total" in str(got)


@pytest.mark.parametrize(
    "junk",
    [
        '{"kind":"encode","key":"a","ns":',
        "[]",
        "null",
        '{"kind":"encode","key":"a","ns":"x","result":0}',
        '{"kind":"encode","key":"a","ns":1}',
        '{"kind":"again","key":"never","ns":1}',
        '{"kind":"launch","parameter":0}',
        "\x00\xff" * 40,
        "[" * 9000,
        "9" * 20_000,
    ],
)
def test_damaged_lines_are_counted(junk: str, tmp_path: Path) -> None:
    got = read_records(folder(tmp_path, [line("start"), junk, encoded("a", "cuTensorMapEncodeTiled", TILED)]))
    assert (got.damaged, len(got.maps)) == (1, 1)
    assert "could not be read" in str(report_on(got))


def test_a_result_that_says_nothing_of_the_arguments(tmp_path: Path) -> None:
    """Encoded before there was a context: measured on an H200, the result is 201."""
    text = encoded("a", "cuTensorMapEncodeTiled", TILED, result=201)
    (found,) = report_on(read_records(folder(tmp_path, [line("start"), text]))).found
    assert found.message == (
        "the driver refused it (CUresult 201); CUDA_ERROR_INVALID_CONTEXT: no context is current on this thread"
    )
    assert "cudaFree(0)" in str(found.fixes[0])


@pytest.mark.parametrize("rank", [0, 6, 1 << 40])
def test_arguments_that_are_no_request(rank: int, tmp_path: Path) -> None:
    text = line("encode", key="a", call="cuTensorMapEncodeTiled", result=1, ns=1, rank=rank, global_dim=None)
    got = report_on(read_records(folder(tmp_path, [text])))
    assert [one.rule for one in got.found] == ["refused"]


@pytest.mark.parametrize("place", ["/no/such/folder", "a\0b", __file__])
def test_no_folder(place: str) -> None:
    with pytest.raises(FileFormatError):
        read_records(place)
