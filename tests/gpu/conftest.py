"""Tests here need a GPU with TMA and are skipped, and counted as skipped, where there is none.

Those in `host/` need no GPU: they hold the modules of `cute_py.gpu` beside a made-up driver.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_py.gpu.device import Device, device_available, open_device

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = None if device_available() else "no GPU with TMA (or no driver, or no cuda-python)"
    paths = {item.path for item in items}
    here = {path for path in paths if HERE in path.parents and HERE / "host" not in path.parents}
    for item in items:
        if item.path in here:
            item.add_marker(pytest.mark.gpu)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def device() -> Device:
    return open_device()
