"""The demonstration program of the reference page, end to end, and its picture."""

from __future__ import annotations

import numpy
import pytest

from cute_py.errors import TmemError
from cute_py.machine.tensor_memory.memory import NOT_A_SOURCE
from cute_py.tmem import Side, demonstrate, expected_tmem, picture
from cute_py.tmem.demonstration import SMEM_ADDRESS


@pytest.mark.parametrize("through", ["plain", "tma"])
def test_every_warp_reads_the_tile(through: str) -> None:
    tile = (numpy.arange(512) * 37 + 11).astype(numpy.uint8).reshape(32, 16)
    done = demonstrate(tile, through=through)
    for warp in range(4):
        words = numpy.ascontiguousarray(done.readback[32 * warp : 32 * warp + 32, :4])
        assert (words.view(numpy.uint8).reshape(32, 16) == tile).all()
    assert not done.readback[:, 4:].any()


def test_it_ends_where_the_layouts_say() -> None:
    done = demonstrate()
    src, dst = done.copy.request.src, done.copy.request.dst
    assert src.buffer.layout is not None
    assert dst.buffer.layout is not None
    sides = [Side(one.buffer.layout, one.buffer.shape, one.region) for one in (src, dst) if one.buffer.layout]
    assert (done.tmem.sources == expected_tmem(sides[0], sides[1], 8, SMEM_ADDRESS)).all()


def test_the_picture() -> None:
    assert demonstrate().picture == "\n".join(
        [
            "   lane |       0        1        2        3",
            "--------+-----------------------------------",
            "      0 |     0-3      4-7     8-11    12-15",
            "      1 |   16-19    20-23    24-27    28-31",
            "      2 |   32-35    36-39    40-43    44-47",
            "      3 |   48-51    52-55    56-59    60-63",
            "    ... |",
            "     31 | 496-499  500-503  504-507  508-511",
            " 32-127 | as lanes 0-31",
        ]
    )


def test_the_page_allocates_what_no_gpu_has() -> None:
    with pytest.raises(TmemError) as caught:
        demonstrate(n_cols=16)
    assert caught.value.headline == "n_cols = 16 columns; must be within 32..512"
    assert caught.value.hint == "allocate n_cols=32"


def test_what_it_does_not_take() -> None:
    with pytest.raises(TmemError, match=r"must be \(32, 16\) uint8"):
        demonstrate(numpy.zeros((16, 32), numpy.uint8))
    with pytest.raises(TmemError, match="through = 'mail'"):
        demonstrate(through="mail")


def test_pictures_of_odd_cells() -> None:
    sources = numpy.full((128, 512, 4), NOT_A_SOURCE, numpy.int64)
    assert picture(sources).splitlines()[-1].split() == ["32-127", "|", "as", "lanes", "0-31"]
    sources[40, 3] = [9, 8, 7, NOT_A_SOURCE]
    text = picture(sources, lanes_shown=9)
    assert "9,8,7,." in text
    assert "64-127 | as lanes 0-31" in text
    assert picture(sources, range(2, 5)).splitlines()[0].split() == ["lane", "|", "2", "3", "4"]
