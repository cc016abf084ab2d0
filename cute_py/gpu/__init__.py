"""GPU support: devices, arrays, the compiler, and launches whose waits have a time limit."""

from __future__ import annotations

from cute_py.gpu.device import Device, device_available, open_device
from cute_py.gpu.driver import driver_encode

__all__ = ["Device", "device_available", "driver_encode", "open_device"]
