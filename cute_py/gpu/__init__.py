"""The GPU: device, arrays, compiler, launches with bounded waits."""

from __future__ import annotations

from cute_py.gpu.device import Device, device_available, open_device
from cute_py.gpu.driver import encode_with_driver

__all__ = ["Device", "device_available", "encode_with_driver", "open_device"]
