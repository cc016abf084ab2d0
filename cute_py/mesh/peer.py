"""placeholder"""
from typing import Any

def on_device(array: Any) -> bool:
    return False

def prepare(*args: Any) -> Any: ...
